#!/usr/bin/env bash
# Runs configs/trl-grpo.yaml with the real TRL and vLLM on two or four GPUs, with and without faults. nlaunch has to report which process failed and
# why. Needs no network and no build, only dist/ (or build/), configs/, site-profiles/, scripts/, tests/ and a Python environment.
#
#   scripts/gpu-frameworks.sh --bundle FOLDER   with a network: packs what the machine lacks, in files of 47 MB
#   scripts/gpu-frameworks.sh --unpack FOLDER   on the machine: makes FRAMEWORKS_VENV (~/nlaunch-frameworks/venv) from it and the machine's PyTorch
#   scripts/gpu-frameworks.sh [--minutes N] [--jobs N] [--table FILE.md] [--keep FOLDER] [ROW...]   on the machine: runs the rows, most valuable first
#   scripts/gpu-frameworks.sh --list            lists the rows
#
# Exits with 1 if a row is wrong. With too few GPUs for a row (one, or of the rows with two ranks fewer than four), engine and learner share
# them, without a preflight.
# FRAMEWORKS_CPU=1 uses the recipe's overlay cpu, with vLLM's CPU build in FRAMEWORKS_VENV, and runs the rows that need no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
source scripts/lib/installed.sh
source scripts/lib/frameworks_bundle.sh

require() {
  NLAUNCH=${NLAUNCH:-$(find_nlaunch)}
  [[ -x $NLAUNCH ]] || { echo "nlaunch not found in dist/ or build/; run: cmake --install build --prefix dist --strip" >&2; exit 1; }
  [[ -x $FRAMEWORKS_VENV/bin/vllm ]] || { echo "vLLM not found in $FRAMEWORKS_VENV; run: $0 --unpack FOLDER" >&2; exit 1; }
  NLAUNCH_BUILD=$(dirname "$(dirname "$NLAUNCH")")
  export NLAUNCH_BUILD FRAMEWORKS_VENV
  [[ -z ${FRAMEWORKS_CPU:-} ]] || return 0
  FRAMEWORKS_GPUS=$(nvidia-smi -L 2>/dev/null | wc -l)
  ((FRAMEWORKS_GPUS >= 1)) || { echo "no GPU found" >&2; exit 1; }
  GPU_TEST_WHEEL_NCCL=$("$FRAMEWORKS_VENV/bin/python" -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")')
  GPU_TEST_SYSTEM_NCCL=${GPU_TEST_SYSTEM_NCCL:-$(ldconfig -p | sed -n 's/.*libnccl\.so\.2 .*=> //p' | head -n1)}
  export GPU_TEST_WHEEL_NCCL GPU_TEST_SYSTEM_NCCL FRAMEWORKS_GPUS
}

case ${1:-} in
  --bundle) bundle_frameworks "${2:?FOLDER}" ;;
  --unpack) unpack_frameworks "${2:?FOLDER}" ;;
  --list) exec python3 tests/gpu/framework_rows.py --list ;;
  *)
    require
    "$NLAUNCH" --version
    exec python3 tests/gpu/framework_rows.py "$@"
    ;;
esac
