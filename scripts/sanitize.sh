#!/usr/bin/env bash
# For developers: runs the tests under AddressSanitizer and UndefinedBehaviorSanitizer, or under ThreadSanitizer.
# scripts/sanitize.sh address|thread [OPTION OF CTEST...]; without options: all tests except
# the framework tests (address), or the unit and process tests (thread).
#
# A sanitizer report fails its test. Programs run several times slower, so tests of time limits can fail on a slow machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh

case ${1:-} in
address) preset=asan selection=(-LE frameworks) ;;
thread) preset=tsan selection=(-L 'unit|process') ;;
*)
  echo "usage: $0 address|thread [OPTION OF CTEST...]" >&2
  exit 64
  ;;
esac
shift
(($# == 0)) || selection=("$@")
ensure_packages "${TEST_PACKAGES[@]}"
cmake --preset "$preset" -DNLAUNCH_UNITY=32 >/dev/null
cmake --build --preset "$preset"
# Programs that nlaunch starts inherit these options. Leaks are not reported because a killed process leaks by design, and
# the link order is not checked because a preload is loaded before the sanitizer's own library.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:verify_asan_link_order=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
ctest --test-dir "build-$preset" --output-on-failure -j2 "${selection[@]}"
