# shellcheck shell=bash
# The statically linked libraries, in .release-cache/ARCH/prefix.

# with_cmake ARCH NAME FOLDER OPTION...: builds .release-cache/sources/FOLDER with CMake, and installs it.
with_cmake() {
  local tree=$RELEASE_CACHE/$1 name=$2 folder=$3
  shift 3
  cmake -G Ninja -S "$RELEASE_SOURCES/$folder" -B "$tree/dependencies/$name" -Wno-dev \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DNLAUNCH_RELEASE_TREE="$tree" -DNLAUNCH_RELEASE_ARCH="${tree##*/}" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$tree/prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
  ninja -C "$tree/dependencies/$name" install
}

# with_configure ARCH NAME OPTION...: runs ./configure in a copy of the source.
with_configure() {
  local tree=$RELEASE_CACHE/$1 name=$2 folder=$RELEASE_CACHE/$1/dependencies/$2
  shift 2
  rm -rf "$folder" && cp -a "$RELEASE_SOURCES/$name" "$folder"
  (
    cd "$folder" || exit
    CC=$tree/toolchain/clang AR=$tree/toolchain/ar RANLIB=$tree/toolchain/ranlib CFLAGS="-O2 -fPIC -w" \
      ./configure --prefix="$tree/prefix" "$@"
  )
}

build_zlib() {
  with_configure "$1" zlib --static
  make -C "$RELEASE_CACHE/$1/dependencies/zlib" libz.a install
}

# hwloc reads what nlaunch needs from /sys, so no vendor library is used.
build_hwloc() {
  local without=(cairo libxml2 io opencl cuda nvml rsmi levelzero gl libudev pci readme doxygen) folder
  with_configure "$1" hwloc --host="$1-linux-gnu" --enable-static --disable-shared --runstatedir=/run "${without[@]/#/--disable-}"
  for folder in include hwloc; do make -C "$RELEASE_CACHE/$1/dependencies/hwloc/$folder" install; done
}

# nlaunch uses only Boost's headers.
build_boost1.81() {
  local include=$RELEASE_CACHE/$1/prefix/include folder
  mkdir -p "$include"
  for folder in "$RELEASE_SOURCES"/boost1.81/libs/{*,numeric/*}/include; do cp -r "$folder/." "$include/"; done
}

# Only libcrypto of OpenSSL, which reads no files and loads no modules. Its directory names are compiled in: the system's,
# not those of this build.
build_openssl() {
  local tree=$RELEASE_CACHE/$1 folder=$RELEASE_CACHE/$1/dependencies/openssl
  local without=(shared dso module engine legacy autoload-config async comp ui-console tests)
  rm -rf "$folder" && cp -a "$RELEASE_SOURCES/openssl" "$folder"
  (
    cd "$folder" || exit
    PATH=$tree/toolchain:$PATH
    CC=clang AR=ar RANLIB=ranlib CFLAGS="-O2 -fPIC -w" ./Configure "linux-$1" --prefix=/usr --openssldir=/usr/lib/ssl "${without[@]/#/no-}"
    make build_generated
    make -j"$(nproc)" libcrypto.a
  )
  mkdir -p "$tree/prefix/include" "$tree/prefix/lib"
  cp -r "$folder/include/openssl" "$tree/prefix/include/"
  cp "$folder/libcrypto.a" "$tree/prefix/lib/"
}

build_libseccomp() {
  local folder
  with_configure "$1" libseccomp --host="$1-linux-gnu" --enable-static --disable-shared --disable-python
  for folder in include src; do make -C "$RELEASE_CACHE/$1/dependencies/libseccomp/$folder" install; done
}

# Only what reads the stacks of a process, without compressed files of debug information.
build_elfutils() {
  local tree=$RELEASE_CACHE/$1 folder made=$RELEASE_CACHE/$1/dependencies/elfutils
  local without=(nls debuginfod libdebuginfod textrelcheck symbol-versioning)
  CPPFLAGS="-I$tree/prefix/include" LDFLAGS="-L$tree/prefix/lib" with_configure "$1" elfutils --host="$1-linux-gnu" \
    "${without[@]/#/--disable-}" --without-bzlib --without-lzma --without-zstd
  make -C "$made/lib" -j"$(nproc)"
  make -C "$made/libelf" -j"$(nproc)" libelf.a
  for folder in libcpu backends libebl libdwelf libdwfl; do make -C "$made/$folder" -j"$(nproc)"; done
  make -C "$made/libdw" -j"$(nproc)" libdw.a
  cp "$made"/libelf/libelf.a "$made"/libdw/libdw.a "$tree/prefix/lib/"
  mkdir -p "$tree/prefix/include/elfutils"
  cp "$made"/libelf/{libelf,gelf}.h "$made"/libdw/dwarf.h "$tree/prefix/include/"
  cp "$made"/libdw/libdw.h "$made"/libdwfl/libdwfl.h "$tree/prefix/include/elfutils/"
}

# Uses the system's terminal descriptions; the most common ones are compiled in, for machines that have none.
build_ncurses() {
  local terminals=xterm,xterm-256color,screen,screen-256color,tmux,tmux-256color,linux,vt100
  local without=(shared debug ada cxx cxx-binding progs tests manpages)
  with_configure "$1" ncurses --host="$1-linux-gnu" --with-build-cc=cc --enable-widec --enable-overwrite --with-termlib=tinfo \
    --with-default-terminfo-dir=/usr/share/terminfo --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo \
    --with-fallbacks="$terminals" "${without[@]/#/--without-}"
  make -C "$RELEASE_CACHE/$1/dependencies/ncurses" libs
  make -C "$RELEASE_CACHE/$1/dependencies/ncurses" install.libs install.includes
}

build_libzstd() { with_cmake "$1" libzstd libzstd/build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF; }
build_yaml-cpp() { with_cmake "$1" yaml-cpp yaml-cpp -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF; }
build_re2() { with_cmake "$1" re2 re2 -DRE2_BUILD_TESTING=OFF; }
build_fmtlib() { with_cmake "$1" fmtlib fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF; }
build_cli11() { with_cmake "$1" cli11 cli11 -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF -DCLI11_BUILD_DOCS=OFF; }
build_nlohmann-json3() { with_cmake "$1" nlohmann-json3 nlohmann-json3 -DJSON_BuildTests=OFF; }
build_gloo() { with_cmake "$1" gloo gloo -DUSE_LIBUV=OFF -DBUILD_TEST=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5; }
build_googletest() { with_cmake "$1" googletest googletest -DBUILD_GMOCK=OFF; }
build_libfabric-dev() { cp -r "$RELEASE_SOURCES/libfabric-dev/usr/include/rdma" "$RELEASE_CACHE/$1/prefix/include/"; }

# build_dependency ARCH PACKAGE: builds the package unless it exists in this version, built with these compilers.
build_dependency() {
  local arch=$1 package=$2 folder=$RELEASE_CACHE/$1/dependencies/$2 log=$RELEASE_CACHE/$1/dependencies/$2.log made
  made=$folder.$(pins "$ZIG_VERSION" "$GLIBC_OF_PROGRAMS" "$(<"$RELEASE_SOURCES/$package.version")" "$(declare -f "build_$package")").done
  [[ ! -f $made ]] || return 0
  rm -rf "$folder" "$folder".*done
  say "$arch: building $package"
  "build_$package" "$arch" >"$log" 2>&1 &  # in the background: set -e is off in a function before && or ||
  wait $! || {
    tail -n 30 "$log" >&2
    echo "release.sh: building $package for $arch failed; full log: $log" >&2
    return 1
  }
  touch "$made"
}

provide_dependencies() {
  local arch=$1 package
  mkdir -p "$RELEASE_CACHE/$arch/dependencies"
  for package in "${SOURCE_PACKAGES[@]}" gloo libfabric-dev; do build_dependency "$arch" "$package"; done
}
