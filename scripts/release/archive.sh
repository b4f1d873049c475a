# shellcheck shell=bash
# Builds nlaunch with the release's compilers, and packs it into an archive.

# build ARCH TARGET OPTION...: in .release-cache/ARCH/build
build() {
  local arch=$1 target=$2 tree=$RELEASE_CACHE/$1 made
  shift 2
  # ninja does not notice that other compilers have the same names.
  made=$tree/build/made-$(pins "$ZIG_VERSION" "$GLIBC_OF_PROGRAMS" "$GLIBC_OF_SCOPE" "${CUDA_COMPILER[@]}" "${CUDA_RUNTIME[@]}" "$NCCL_HEADER")
  if [[ ! -f $made ]]; then
    rm -rf "$tree/build"
    mkdir -p "$tree/build"
    touch "$made"
  fi
  cmake --preset release -B "$tree/build" -Wno-dev --log-level=WARNING \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DNLAUNCH_RELEASE_TREE="$tree" -DNLAUNCH_RELEASE_ARCH="$arch" \
    -DNLAUNCH_SCOPE_OPTIONS="-target;$arch-linux-gnu.$GLIBC_OF_SCOPE" "$@"
  ninja -C "$tree/build" "$target"
}

# build_tests ARCH: builds the tests and what they test.
build_tests() {
  say "$1: building nlaunch and its tests"
  build_dependency "$1" googletest
  build "$1" all -DNLAUNCH_BUILD_TESTS=ON
}

# build_release ARCH: .release-cache/ARCH/tree
build_release() {
  local arch=$1 tree=$RELEASE_CACHE/$1
  say "$arch: building nlaunch"
  build "$arch" src/all -DNLAUNCH_BUILD_TESTS=OFF
  rm -rf "$tree/tree"
  cmake --install "$tree/build" --prefix "$tree/tree" --strip >"$tree/install.log"
  list_linked "$arch" >"$tree/tree/share/nlaunch/LINKED.md"
  copy_licences "$tree" "$tree/tree/share/nlaunch/licences"
}

# list_linked ARCH: lists what is statically linked, with versions.
list_linked() {
  local package
  printf '# Linked into nlaunch, nlaunch-probe and their libraries (%s)\n\n' "$1"
  printf 'The licences are in licences/. Only glibc comes from the system: %s or later.\n\n' "$GLIBC_OF_PROGRAMS"
  printf '| what | version | from |\n|---|---|---|\n'
  for package in "${SOURCE_PACKAGES[@]}" gloo; do
    printf '| %s | %s | Debian source package |\n' "$package" "$(<"$RELEASE_SOURCES/$package.version")"
  done
  printf '| libfabric (headers) | %s | Debian package |\n' "$(<"$RELEASE_SOURCES/libfabric-dev.version")"
  printf '| libc++, libc++abi, libunwind, compiler-rt | from zig %s | PyPI |\n' "$ZIG_VERSION"
  printf '| CUDA runtime, static | %s | PyPI |\n' "${CUDA_RUNTIME[0]#*==}"
  printf '| NCCL (header) | %s | PyPI |\n' "${NCCL_HEADER#*==}"
}

copy_licences() {
  local tree=$1 folder=$2 package
  mkdir -p "$folder"
  for package in "${SOURCE_PACKAGES[@]}"; do cp "$RELEASE_SOURCES/$package/debian/copyright" "$folder/$package"; done
  cp "$RELEASE_SOURCES/gloo/LICENSE" "$folder/gloo"
  cp "$RELEASE_SOURCES/libfabric-dev/usr/share/doc/libfabric-dev/copyright" "$folder/libfabric"
  cp "$RELEASE_CACHE/zig/ziglang/lib/libcxx/LICENSE.TXT" "$folder/libcxx"
  cp "$RELEASE_CACHE/zig/ziglang/LICENSE" "$folder/zig"
  cp "$tree/cuda/LICENSE" "$folder/cuda-runtime"
}

# pack_release ARCH VERSION: the same tree results in the same bytes.
pack_release() {
  local name=nlaunch-$2-linux-$1 tree=$RELEASE_CACHE/$1/tree
  chmod -R u=rwX,go=rX "$tree"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    --transform "s,^\.,$name," -C "$tree" -cf - . | zstd -q -19 --single-thread -f -o "release/$name.tar.zst"
  (cd release && sha256sum "$name.tar.zst" >"$name.tar.zst.sha256")
  say "release/$name.tar.zst: $(stat -c %s "release/$name.tar.zst") bytes"
}
