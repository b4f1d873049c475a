#!/usr/bin/env bash
# Installs what the tests need, builds nlaunch, and runs all tests. Arguments are passed to ctest: scripts/test.sh -R plan
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh
source scripts/lib/build.sh
source scripts/lib/nccl.sh
source scripts/lib/venvs.sh
source scripts/lib/ray.sh
source scripts/lib/frameworks.sh
source scripts/lib/beaker.sh
source scripts/lib/py_spy.sh
source scripts/lib/rattler.sh
source scripts/lib/nixl.sh

ensure_packages "${TEST_PACKAGES[@]}"
ensure_nccl_tools
ensure_ray_tools
ensure_framework_tools
ensure_beaker_tools
ensure_py_spy_tools
ensure_rattler_tools
ensure_nixl_tools
leave_root "$PWD/scripts/test.sh" "$@"
configure ON
say "building nlaunch and its tests in build/"
ninja -C build
provide_nccl
provide_ray
provide_trl_vllm
provide_verl
provide_openrlhf
provide_beaker
provide_py_spy
provide_rattler
provide_nixl
status=0
output=build/test-output.txt
ctest --test-dir build --output-on-failure -j2 "$@" | tee "$output" || status=$?
python3 scripts/lib/skips.py build/Testing/Temporary/LastTest.log
grep -E '^[0-9]+% tests passed' "$output" || status=$((status == 0 ? 1 : status))
exit "$status"
