#!/usr/bin/env bash
# Makes release/nlaunch-VERSION-linux-{x86_64,aarch64}.tar.zst with a .sha256 each; docs/release.md explains how and why.
# scripts/release.sh [--arch x86_64|aarch64] [--tests]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh
source scripts/release/toolchain.sh
source scripts/release/sources.sh
source scripts/release/dependencies.sh
source scripts/release/cuda.sh
source scripts/release/archive.sh

usage() {
  echo "usage: scripts/release.sh [--arch x86_64|aarch64] [--tests]" >&2
  echo "  --tests   build the tests in .release-cache/ARCH/build, and no archive" >&2
  exit 64
}

given=("$@")
architectures=(x86_64 aarch64)
what=archives
while (($# > 0)); do
  case $1:${2:-} in
  --arch:x86_64 | --arch:aarch64)
    architectures=("$2")
    shift
    ;;
  --tests:*) what=tests ;;
  *) usage ;;
  esac
  shift
done

ensure_packages "${RELEASE_PACKAGES[@]}"
leave_root "$PWD/scripts/release.sh" "${given[@]}"
[[ $(uname -m) == x86_64 ]] || {
  echo "release.sh: releases are built on x86_64 (the CUDA compiler is downloaded for it); this machine is $(uname -m)" >&2
  exit 1
}
version=$(sed -n 's/^project(nlaunch VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
# All files in the archives get the time of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
# Unset what would change or break the build of the same commit: other compilers, flags and directories, and ccache's base
# directory, which shortens the paths in __FILE__.
unset CC CXX CPP AR RANLIB CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH CCACHE_BASEDIR
mkdir -p "$RELEASE_CACHE" release
provide_zig
for arch in "${architectures[@]}"; do provide_toolchain "$arch"; done
provide_sources
for arch in "${architectures[@]}"; do
  provide_dependencies "$arch"
  provide_cuda "$arch"
  if [[ $what == tests ]]; then
    build_tests "$arch"
    continue
  fi
  build_release "$arch"
  pack_release "$arch" "$version"
done
[[ $what == archives ]] || exit 0
python3 scripts/release/check.py release/nlaunch-"$version"-linux-*.tar.zst
