# shellcheck shell=bash
# Configures and builds the release preset in build/. What is there already is kept.

# A tree that was moved or copied still has the cache of its old place, and CMake would refuse it.
stale_cache() {
  local cache=build/CMakeCache.txt
  [[ -f $cache ]] && [[ $(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache") != "$PWD" ]]
}

# configure TESTS: ON builds the tests too; OFF leaves a build folder that has them as it is.
configure() {
  local tests=$1 fresh=()
  if stale_cache; then
    say "build/ was configured for another folder: configuring anew"
    fresh=(--fresh)
  elif [[ -f build/build.ninja ]] && { [[ $tests == OFF ]] || grep -q '^NLAUNCH_BUILD_TESTS:BOOL=ON$' build/CMakeCache.txt; }; then
    return 0
  fi
  cmake "${fresh[@]}" --preset release -DNLAUNCH_BUILD_TESTS="$tests"
}
