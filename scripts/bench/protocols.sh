#!/usr/bin/env bash
# What a forced protocol costs: the all-reduce of PyTorch (torch_allreduce.py) over GPUS GPUs of one machine with NCCL_PROTO unset and with
# each protocol named, in turns. Prints size, microseconds and GB/s (bus bandwidth), a line each.
# Usage: scripts/bench/protocols.sh [GPUS [ROUNDS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
gpus=${1:-2}
rounds=${2:-3}
for ((round = 1; round <= rounds; round++)); do
  for protocol in '' LL LL128 Simple; do
    echo "== round $round, NCCL_PROTO=${protocol:-unset}"
    env ${protocol:+"NCCL_PROTO=$protocol"} torchrun --standalone --nproc-per-node "$gpus" scripts/bench/torch_allreduce.py
  done
done
