#!/usr/bin/env bash
# Makes release/nlaunch-VERSION-linux-{x86_64,aarch64}.tar.zst with a .sha256 each: docs/release.md says how, and why so.
# scripts/release.sh [--arch x86_64|aarch64]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh
source scripts/release/toolchain.sh
source scripts/release/sources.sh
source scripts/release/dependencies.sh
source scripts/release/cuda.sh
source scripts/release/archive.sh

usage() {
  echo "usage: scripts/release.sh [--arch x86_64|aarch64]" >&2
  exit 64
}

architectures=(x86_64 aarch64)
case $#:${1:-} in
0:) ;;
2:--arch)
  [[ $2 == x86_64 || $2 == aarch64 ]] || usage
  architectures=("$2")
  ;;
*) usage ;;
esac

ensure_packages "${RELEASE_PACKAGES[@]}"
leave_root "$PWD/scripts/release.sh" "$@"
[[ $(uname -m) == x86_64 ]] || {
  echo "release.sh: releases are built on x86_64 (CUDA's compiler is fetched for it); this is $(uname -m)" >&2
  exit 1
}
version=$(sed -n 's/^project(nlaunch VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
# The time of everything in the archives: that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
mkdir -p "$RELEASE_CACHE" release
provide_zig
for arch in "${architectures[@]}"; do provide_toolchain "$arch"; done
provide_sources
for arch in "${architectures[@]}"; do
  provide_dependencies "$arch"
  provide_cuda "$arch"
  build_release "$arch"
  pack_release "$arch" "$version"
done
python3 scripts/release/check.py release/nlaunch-"$version"-linux-*.tar.zst
