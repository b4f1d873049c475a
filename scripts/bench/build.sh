#!/usr/bin/env bash
# What a clean build of src/all costs: the release preset in a fresh folder, without ccache. Prints the CPU time, the wall time
# and the ten units that took longest, for docs/measurements.md. One unit's time is wall time with as many beside it as there are cores.
# Usage: scripts/bench/build.sh [COMMIT]    (what is in this folder; or that commit)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

WORK=$(mktemp -d)
tree=$PWD
leave() {
  [[ $tree == "$PWD" ]] || git worktree remove --force "$tree"
  rm -rf "$WORK"
}
trap leave EXIT
if (($# > 0)); then
  git worktree add --quiet --detach "$WORK/tree" "$1"
  tree=$WORK/tree
fi

export CCACHE_DISABLE=1
cmake -S "$tree" --preset release -B "$WORK/build" -DNLAUNCH_BUILD_TESTS=OFF -DNLAUNCH_CCACHE= >"$WORK/configure.txt"
TIMEFORMAT='%U %S %R'
if ! { time ninja -C "$WORK/build" src/all >"$WORK/build.txt" 2>&1; } 2>"$WORK/time.txt"; then
  tail -n 40 "$WORK/build.txt" >&2
  exit 1
fi
echo "commit $(git -C "$tree" describe --always --dirty), $(nproc) cores, $(c++ --version | head -n 1)"
awk '{ printf "CPU %.1f minutes, wall %.1f minutes\n", ($1 + $2) / 60, $3 / 60 }' "$WORK/time.txt"
awk -F'\t' '/\.o\t|\.gch\t|\.pch\t/ { printf "%6.1f s  %s\n", ($2 - $1) / 1000, $4 }' "$WORK/build/.ninja_log" | sort -rn | sed -n 1,10p
