#!/usr/bin/env bash
# For developers: the format of all sources, the shell scripts, and clang-tidy of all sources.
# scripts/check.sh [--format | --changed | FILE...]: without clang-tidy; or clang-tidy alone, of what changed since the branch
# left origin/main (where it has not, in the last five commits) or of the files that match.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh

check_format() {
  local sources scripts
  ensure_packages clang-format-14 shellcheck
  mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c' '*.cu')
  mapfile -t scripts < <(git ls-files 'scripts/*.sh' 'tests/*.sh' ':!tests/lint/cases' .ci/run)
  say "clang-format of ${#sources[@]} files"
  clang-format-14 --dry-run -Werror "${sources[@]}"
  say "shellcheck of ${#scripts[@]} scripts"
  shellcheck -x "${scripts[@]}"
}

# More than these take longer than a quick check may.
most=40

# The C++ files that changed, one a line; false where there is no commit to compare with.
changed_files() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null) || base=""
  [[ -n $base && $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-list --max-count=6 HEAD | tail -n 1)
  [[ $base != "$(git rev-parse HEAD)" ]] || return 1
  git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'tests/*.cpp'
}

# A unit for each file and no precompiled header: what a file does not include itself is missing.
tidy() {
  # std::expected of GCC 12's library is beyond Clang before 19.
  ensure_packages "${TEST_PACKAGES[@]}" clang-tidy-19
  cmake --preset dev -B build-check -DNLAUNCH_CCACHE= -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
  say "clang-tidy of $*"
  run-clang-tidy-19 -quiet -j2 -p build-check -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-deprecated-declarations "$@"
}

case ${1:-} in
--format) check_format ;;
--changed)
  if ! files=$(changed_files); then
    say "clang-tidy: there is no earlier commit to compare with"
  elif [[ -z $files ]]; then
    say "clang-tidy: no C++ file has changed"
  else
    mapfile -t files <<<"$files"
    if ((${#files[@]} > most)); then
      say "clang-tidy: left out, ${#files[@]} files have changed: scripts/check.sh looks at all"
      exit 0
    fi
    tidy "${files[@]/%/\$}"
  fi
  ;;
'')
  check_format
  tidy '/src/.*\.cpp$'
  ;;
*) tidy "$@" ;;
esac
