#!/usr/bin/env bash
# For developers: the format of all sources, the shell scripts, and clang-tidy. Arguments are files for clang-tidy alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh
source scripts/lib/build.sh

# std::expected of GCC 12's library is beyond Clang before 19.
tools=(clang-format-14 clang-tidy-19 shellcheck)
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || {
    echo "$tool is not here: sudo apt-get install -y --no-install-recommends ${tools[*]}" >&2
    exit 1
  }
done
mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c' '*.cu')
mapfile -t scripts < <(git ls-files 'scripts/*.sh' 'tests/*.sh' ':!tests/lint/cases' .ci/run)
say "clang-format of ${#sources[@]} files"
clang-format-14 --dry-run -Werror "${sources[@]}"
say "shellcheck of ${#scripts[@]} scripts"
shellcheck -x "${scripts[@]}"
configure ON
say "clang-tidy"
run-clang-tidy-19 -quiet -j2 -p build -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-deprecated-declarations "${@:-/src/.*\.cpp$}"
