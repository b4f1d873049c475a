#!/usr/bin/env bash
# On a machine with GPUs: the whole time of nlaunch's preflight, of the least that any check can do (floor.cu), and of
# torchrun with an all-reduce in PyTorch. The three take turns. Prints tables for docs/measurements.md.
# Usage: scripts/bench/preflight_floor.sh [GPUS] [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/lib/installed.sh

GPUS=${1:-$(nvidia-smi -L | wc -l)}
ROUNDS=${2:-5}
NLAUNCH=${NLAUNCH:-$(find_nlaunch)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export CUDA_VISIBLE_DEVICES
CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((GPUS - 1)))

floor() { "$WORK/floor" "$GPUS" 22118400; }
nlaunch_preflight() {
  "$NLAUNCH" preflight --site "$PWD/tests/gpu/h200.yaml" --site-dir "$PWD/site-profiles" --runs-dir "$WORK/runs" --json
}
# Half learners, half engines: the learners' world, the weight-sync group and the node are communicators of their own.
nlaunch_rl_preflight() {
  "$NLAUNCH" preflight "$WORK/rl.yaml" --site "$PWD/tests/gpu/h200.yaml" --site-dir "$PWD/site-profiles" --runs-dir "$WORK/runs" --json
}
torch_test() { torchrun --nproc-per-node "$GPUS" scripts/bench/torch_allreduce.py; }
torch_true() { torchrun --nproc-per-node "$GPUS" --no_python true; }
nlaunch_true() { "$NLAUNCH" run "$WORK/true.yaml" --site local --no-preflight --quiet --runs-dir "$WORK/runs"; }

# seconds NAME: runs it once, keeps what it prints, adds the time to NAME.times.
seconds() {
  local start end
  start=$(date +%s%N)
  "$1" >"$WORK/$1.out" 2>"$WORK/$1.err" || { echo "$1 failed:" >&2; cat "$WORK/$1.out" "$WORK/$1.err" >&2; exit 1; }
  end=$(date +%s%N)
  echo $(((end - start) / 1000000)) >>"$WORK/$1.times"
}

median() { sort -n "$WORK/$1.times" | awk '{v[NR] = $1} END {printf "%.2f", (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2000}'; }
ratio() { awk "BEGIN {printf \"%.2f\", $1 / $2}"; }

nvcc -O2 -std=c++17 -o "$WORK/floor" scripts/bench/floor.cu -lnccl
cat >"$WORK/true.yaml" <<YAML
version: 1
name: "true"
weight_sync: {backend: gloo}
cpu_slots: true
roles: {worker: {kind: learner, count: $GPUS, command: [/bin/true]}}
YAML
cat >"$WORK/rl.yaml" <<YAML
version: 1
name: rl
roles:
  learner: {kind: learner, count: $((GPUS / 2)), gpus: 1, rendezvous: torch, command: ["true"]}
  engine: {kind: engine, count: $((GPUS / 2)), gpus: 1, command: ["true"]}
YAML
programs=(floor nlaunch_preflight nlaunch_rl_preflight torch_test torch_true nlaunch_true)
for program in "${programs[@]}"; do seconds "$program"; done # warms the caches
"$WORK/floor" "$GPUS" 22118400 134217728 >"$WORK/sizes.out"
rm "$WORK"/*.times
for ((round = 0; round < ROUNDS; round++)); do
  for program in "${programs[@]}"; do seconds "$program"; done
done

floor_s=$(median floor)
echo "Medians of $ROUNDS, seconds, $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n1) × $GPUS:"
echo
echo "| program | seconds | / floor |"
echo "|---|---|---|"
for program in "${programs[@]}"; do
  echo "| $program | $(median "$program") | $(ratio "$(median "$program")" "$floor_s") |"
done
echo
echo "All-reduce, microseconds and GB/s of bus bandwidth:"
echo
echo "| bytes | floor | PyTorch | nlaunch |"
echo "|---|---|---|---|"
python3 scripts/bench/all_reduce_rows.py "$WORK/sizes.out" "$WORK/torch_test.out" "$WORK/nlaunch_preflight.out"
