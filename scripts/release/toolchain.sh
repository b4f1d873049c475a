# shellcheck shell=bash
# The compilers for releases: zig's Clang and libc++, whose target includes the glibc version.

ZIG_VERSION=0.15.2
# shellcheck disable=SC2034  # used by scripts that source this file
GLIBC_OF_PROGRAMS=2.28
# shellcheck disable=SC2034
GLIBC_OF_SCOPE=2.17 # it is loaded into users' processes and containers
RELEASE_CACHE=$PWD/.release-cache
RELEASE_VENV=$RELEASE_CACHE/venv

# pins WORD...: prints a short hash of the words. It is part of the names of marker files, so another version causes a rebuild.
pins() { printf '%s\n' "$@" | sha256sum | cut -c1-16; }

wheels() { "$RELEASE_VENV/bin/python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --timeout 60 "$@"; }

provide_zig() {
  local zig=$RELEASE_CACHE/zig
  [[ -x $RELEASE_VENV/bin/python ]] || /usr/bin/python3 -m venv "$RELEASE_VENV"
  if [[ ! -f $zig/$ZIG_VERSION ]]; then
    say "downloading zig $ZIG_VERSION from PyPI (about 90 MB, once)"
    rm -rf "$zig"
    wheels -d "$zig" "ziglang==$ZIG_VERSION"
    "$RELEASE_VENV/bin/python" -m zipfile -e "$zig"/ziglang-*.whl "$zig"
    rm "$zig"/ziglang-*.whl
    chmod +x "$zig/ziglang/zig"
    touch "$zig/$ZIG_VERSION"
  fi
}

# write_tool FILE LINE...: writes an executable shell script, unless it is already the same (ccache checks its modification time).
write_tool() {
  local file=$1 text
  shift
  text=$(printf '%s\n' '#!/bin/sh' "$@")
  [[ -f $file && $(<"$file") == "$text" ]] && return 0
  printf '%s\n' "$text" >"$file"
  chmod +x "$file"
}

# provide_toolchain ARCH: .release-cache/ARCH/toolchain/{clang,clang++,ar,ranlib,emulator}
provide_toolchain() {
  local arch=$1 tools=$RELEASE_CACHE/$1/toolchain zig=$RELEASE_CACHE/zig/ziglang/zig run
  mkdir -p "$tools"
  export ZIG_GLOBAL_CACHE_DIR=$RELEASE_CACHE/zig-cache ZIG_LOCAL_CACHE_DIR=$RELEASE_CACHE/zig-cache
  local zig_is="# zig $ZIG_VERSION: ccache and the rest go by what stands here"
  local flags="-target $arch-linux-gnu.$GLIBC_OF_PROGRAMS -ffile-prefix-map=$PWD=."
  # nvcc passes -m64, which Clang accepts only on x86.
  # shellcheck disable=SC2016  # expanded by the generated script
  local drop='for a; do shift; [ "$a" = -m64 ] || set -- "$@" "$a"; done'
  write_tool "$tools/clang" "$zig_is" "$drop" "exec $zig cc $flags \"\$@\""
  # zig enables std::unexpected() of C++14, which hides std::unexpected of <expected>.
  write_tool "$tools/clang++" "$zig_is" "$drop" "exec $zig c++ $flags -U_LIBCPP_ENABLE_CXX17_REMOVED_UNEXPECTED_FUNCTIONS \"\$@\""
  write_tool "$tools/ar" "exec $zig ar \"\$@\""
  write_tool "$tools/ranlib" "exec $zig ranlib \"\$@\""
  run=""
  [[ $arch == "$(uname -m)" ]] || run="qemu-$arch-static -L $RELEASE_CACHE/$arch/sysroot"
  write_tool "$tools/emulator" "exec $run \"\$@\""
}
