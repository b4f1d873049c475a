#!/usr/bin/env bash
# What nlaunch is held to: the limit that each figure is compared with, what is wanted, and what this machine reaches. Runs the
# benchmarks of this directory one after the other, prints their own tables to standard error, and one table at the end.
#
# A figure that needs GPUs, root or Slurm is left out where there are none, and the table says so. Needs a machine with nothing
# else to do; takes about ten minutes. Usage: scripts/bench/all.sh [NAME...] with launch, fleet, output, diagnose, plan, slurm,
# preflight
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/lib/installed.sh

NLAUNCH=${NLAUNCH:-$(find_nlaunch)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
ROWS=()

# row WHAT LIMIT WANTED REACHED
row() {
  local reached=$4
  [[ $reached == *[0-9]* || $reached == not* ]] || reached='the benchmark failed: see above'
  ROWS+=("| $1 | $2 | $3 | $reached |")
}

# table NAME COMMAND...: runs a benchmark, and keeps the rows of its table.
table() {
  local name=$1
  shift
  echo "== $*" >&2
  "$@" >"$WORK/$name" || echo "$* exited with $?" >&2
  cat "$WORK/$name" >&2
}

# cell NAME ROW COLUMN: of the row that begins so; columns count from 1.
cell() { awk -F' *[|] *' -v first="$2" -v column="$3" '$2 == first { print $(column + 1); exit }' "$WORK/$1"; }

launch() {
  table launch scripts/bench/launch.py --nlaunch "$NLAUNCH"
  row '8 processes of /bin/true, the whole run' "a loop in bash, $(cell launch 8 3) ms" '1.8 x' "$(cell launch 8 2) ms = $(cell launch 8 5) x"
  row '64 of them' "a loop in bash, $(cell launch 64 3) ms" '1.2 x' "$(cell launch 64 2) ms = $(cell launch 64 5) x"
}

fleet() {
  table fleet scripts/bench/fleet_scale.py --nlaunch "$NLAUNCH" --nodes 4096
  row '4,096 simulated nodes with 8 processes each, the whole run; CPU and memory of the leader' '' '3 s, 0.5 s, 64 MiB' \
    "$(cell fleet 4096 3) s, $(cell fleet 4096 4) s, $(cell fleet 4096 5) MiB"
}

output() {
  table output scripts/bench/output.py --nlaunch "$NLAUNCH" --mib 24
  row '64 writers, unbuffered lines' "cat into files, $(cell output 'lines, unbuffered' 3) MB/s" '0.9 x' \
    "$(cell output 'lines, unbuffered' 2) MB/s = $(cell output 'lines, unbuffered' 4) x"
  row '64 writers, blocks of 8 KiB' "cat into files, $(cell output 'blocks of 8 KiB' 3) MB/s" '0.6 x' \
    "$(cell output 'blocks of 8 KiB' 2) MB/s = $(cell output 'blocks of 8 KiB' 4) x"
}

diagnose() {
  table diagnose scripts/bench/diagnose.py --nlaunch "$NLAUNCH" --rounds 3 --folder /dev/shm
  row 'diagnose, 1 GB in memory' "grep -F, $(cell diagnose 'grep -F -c -f' 4) MB/s a core" '2000 MB/s a core' "$(cell diagnose 'nlaunch diagnose' 4) MB/s a core"
  row 'diagnose, several files' '' 'all cores' "$(cell diagnose 'nlaunch diagnose, several files' 5) MB/s on $(nproc) cores"
}

plan() {
  printf '%s\n' 'version: 1' 'name: wide' 'nodes: 100000' 'weight_sync: {backend: none}' \
    'roles: {learner: {kind: learner, per_node: 8, gpus: 1, rendezvous: torch, command: ["true"]}}' >"$WORK/wide.yaml"
  printf '%s\n' 'version: 1' 'name: wide' 'extends: common' 'scheduler: {kind: slurm}' 'node: {gpus: 8, arch: x86_64}' >"$WORK/site.yaml"
  python3 - "$NLAUNCH" "$WORK/wide.yaml" "$WORK/site.yaml" >"$WORK/plan" <<'PYTHON'
import os, subprocess, sys, time
nlaunch, experiment, site = sys.argv[1:]
began = time.monotonic()
process = subprocess.Popen([nlaunch, "plan", experiment, "--site", site, "--json"], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
assert status == 0, f"nlaunch plan: {os.waitstatus_to_exitcode(status)}"
print(f"{time.monotonic() - began:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB")
PYTHON
  row 'plan of 100,000 nodes with 8 processes each' '' '2 s, 1000 MiB' "$(<"$WORK/plan")"
}

slurm() {
  if ((EUID != 0)) || ! command -v slurmctld >/dev/null; then
    row 'over Slurm, all of a run' 'srun of /bin/true' '1.2 x' 'not measured: needs root and Slurm'
    return
  fi
  table slurm scripts/bench/cluster_launch.py --nlaunch "$NLAUNCH"
  local srun
  srun=$(awk -F' *[|] *' '$2 ~ /^[0-9]+$/ { print $2; exit }' "$WORK/slurm")
  row 'over Slurm, the last process started' "srun of /bin/true, $srun ms" '1.0 x' "$(cell slurm "$srun" 2) ms = $(cell slurm "$srun" 3) x"
  row 'over Slurm, all of a run' "srun of /bin/true, $srun ms" '1.2 x' "$(cell slurm "$srun" 4) ms = $(cell slurm "$srun" 5) x"
}

preflight() {
  if ! command -v nvidia-smi >/dev/null; then
    row 'standard preflight: GPUs / learners and engines' 'floor.cu' '1.08 / 1.12 x' 'not measured: needs GPUs'
    return
  fi
  table preflight scripts/bench/preflight_floor.sh
  row 'standard preflight: GPUs / learners and engines' "floor.cu, $(cell preflight floor 2) s" '1.08 / 1.12 x' \
    "$(cell preflight nlaunch_preflight 3) / $(cell preflight nlaunch_rl_preflight 3) x"
}

(($# > 0)) || set -- launch fleet output diagnose plan slurm preflight
for name in "$@"; do
  case $name in
  launch | fleet | output | diagnose | plan | slurm | preflight) "$name" ;;
  *) echo "all.sh: '$name' is not one of launch, fleet, output, diagnose, plan, slurm, preflight" >&2 && exit 64 ;;
  esac
done
printf '%s\n' '| what | limit | wanted | reached |' '|---|---|---|---|' "${ROWS[@]}"
