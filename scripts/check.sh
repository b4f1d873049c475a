#!/usr/bin/env bash
# For developers: checks the format of all sources, runs shellcheck on the scripts, and clang-tidy on all sources.
# scripts/check.sh [--format | --changed | FILE...]
#   --format    everything except clang-tidy
#   --changed   only clang-tidy, on the files changed since the branch left origin/main, or else in the last five commits
#   FILE...     only clang-tidy, on the files that match
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh

check_format() {
  local sources scripts
  ensure_packages clang-format-14 shellcheck
  mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c' '*.cu')
  mapfile -t scripts < <(git ls-files 'scripts/*.sh' 'tests/*.sh' ':!tests/lint/cases' .ci/run)
  say "clang-format: ${#sources[@]} files"
  clang-format-14 --dry-run -Werror "${sources[@]}"
  say "shellcheck: ${#scripts[@]} scripts"
  shellcheck -x "${scripts[@]}"
}

# More files than this take too long for a quick check.
most=40

# Prints the C++ files that changed, one per line. Returns false if there is no commit to compare with.
changed_files() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null) || base=""
  [[ -n $base && $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-list --max-count=6 HEAD | tail -n 1)
  [[ $base != "$(git rev-parse HEAD)" ]] || return 1
  git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'tests/*.cpp'
}

# One unit per file and no precompiled header, so a missing include is an error.
tidy() {
  # Clang before 19 cannot compile std::expected of GCC 12's library.
  ensure_packages "${TEST_PACKAGES[@]}" clang-tidy-19
  cmake --preset dev -B build-check -DNLAUNCH_CCACHE= -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
  say "clang-tidy: $*"
  run-clang-tidy-19 -quiet -j2 -p build-check -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-deprecated-declarations "$@"
}

case ${1:-} in
--format) check_format ;;
--changed)
  if ! files=$(changed_files); then
    say "clang-tidy: no earlier commit to compare with"
  elif [[ -z $files ]]; then
    say "clang-tidy: no C++ files changed"
  else
    mapfile -t files <<<"$files"
    if ((${#files[@]} > most)); then
      say "clang-tidy: skipped because ${#files[@]} files changed; run scripts/check.sh to check all files"
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
