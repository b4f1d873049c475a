# shellcheck shell=bash
# Configures the release preset in build/. An existing configuration is kept.

# A tree that was moved or copied still has the CMake cache of its old path, which CMake refuses.
stale_cache() {
  local cache=build/CMakeCache.txt
  [[ -f $cache ]] && [[ $(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache") != "$PWD" ]]
}

# configure TESTS: ON also builds the tests; OFF leaves a build directory that has them unchanged.
configure() {
  local tests=$1 fresh=()
  if stale_cache; then
    say "build/ was configured for another directory; configuring again"
    fresh=(--fresh)
  elif [[ -f build/build.ninja ]] && { [[ $tests == OFF ]] || grep -q '^NLAUNCH_BUILD_TESTS:BOOL=ON$' build/CMakeCache.txt; }; then
    return 0
  fi
  cmake "${fresh[@]}" --preset release -DNLAUNCH_BUILD_TESTS="$tests"
}
