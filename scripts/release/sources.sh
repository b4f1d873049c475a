# shellcheck shell=bash
# Debian source packages, verified by apt. A separate apt configuration is used, so the system's is not changed.

RELEASE_SOURCES=$RELEASE_CACHE/sources
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2034  # used by scripts that source this file
SOURCE_PACKAGES=(zlib libzstd openssl libseccomp ncurses elfutils hwloc yaml-cpp re2 fmtlib cli11 nlohmann-json3 boost1.81)
# Mirrors no longer have Gloo's source package of Debian 12; the one of Debian 13 is from the same year.
GLOO_SUITE=trixie

provide_apt() {
  local apt=$RELEASE_CACHE/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  cat >"$apt/sources.list" <<LIST
deb [arch=amd64,arm64 signed-by=$KEYRING] http://deb.debian.org/debian bookworm main
deb-src [signed-by=$KEYRING] http://deb.debian.org/debian bookworm main
deb-src [signed-by=$KEYRING] http://deb.debian.org/debian $GLOO_SUITE main
LIST
  cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Architectures {"amd64"; "arm64";};
APT::Sandbox::User "";
CONF
}

release_apt() { APT_CONFIG=$RELEASE_CACHE/apt/apt.conf apt-get -q "$@"; }

# Unpacks a package with Debian's patches into .release-cache/sources/PACKAGE, and writes its version to PACKAGE.version.
unpack_source() {
  local package=$1
  rm -rf "$RELEASE_SOURCES/$package.part" # from an interrupted call
  (
    mkdir -p "$RELEASE_SOURCES/$package.part"
    cd "$RELEASE_SOURCES/$package.part" || exit
    release_apt -t bookworm source --download-only "$package" >fetch.log 2>&1 || { cat fetch.log >&2 && exit 1; }
    dpkg-source --no-check -x ./*.dsc tree >/dev/null
    sed -n 's/^Version: //p' ./*.dsc | tail -n1 >"../$package.version"
    rm -rf "../$package" && mv tree "../$package"
  )
  rm -rf "$RELEASE_SOURCES/$package.part"
}

unpack_gloo() {
  rm -rf "$RELEASE_SOURCES/gloo.part"
  (
    mkdir -p "$RELEASE_SOURCES/gloo.part/tree"
    cd "$RELEASE_SOURCES/gloo.part" || exit
    release_apt -t "$GLOO_SUITE" source --download-only --tar-only gloo >fetch.log 2>&1 || { cat fetch.log >&2 && exit 1; }
    tar -xf gloo_*.orig.tar.* -C tree
    basename gloo_*.orig.tar.* | sed -E 's/^gloo_(.*)\.orig\.tar.*/\1/' >../gloo.version
    rm -rf ../gloo && mv tree ../gloo
    echo "$GLOO_SUITE" >../gloo.suite
  )
  rm -rf "$RELEASE_SOURCES/gloo.part"
}

# unpack_deb PACKAGE[:ARCH] FOLDER
unpack_deb() {
  local download
  download=$(mktemp -d "$RELEASE_CACHE/deb.XXXXXX")
  (cd "$download" && release_apt download "$1" >fetch.log 2>&1) || { cat "$download/fetch.log" >&2 && return 1; }
  mkdir -p "$2"
  dpkg-deb -x "$download"/*.deb "$2"
  dpkg-deb -f "$download"/*.deb Version >"$RELEASE_SOURCES/${1%%:*}.version"
  rm -rf "$download"
}

provide_sources() {
  local package complete
  mkdir -p "$RELEASE_SOURCES"
  complete=$RELEASE_SOURCES/complete-$(pins "${SOURCE_PACKAGES[@]}" "$GLOO_SUITE")
  [[ ! -f $complete ]] || return 0
  say "downloading the Debian sources of the linked libraries (about 100 MB, once)"
  provide_apt
  release_apt update >/dev/null
  for package in "${SOURCE_PACKAGES[@]}" googletest; do [[ -d $RELEASE_SOURCES/$package ]] || unpack_source "$package"; done
  [[ -d $RELEASE_SOURCES/gloo && $(cat "$RELEASE_SOURCES/gloo.suite" 2>/dev/null) == "$GLOO_SUITE" ]] || unpack_gloo
  unpack_deb libfabric-dev "$RELEASE_SOURCES/libfabric-dev"
  for package in libc6 libgcc-s1; do unpack_deb "$package:arm64" "$RELEASE_CACHE/aarch64/sysroot"; done
  # Debian removes these tables from re2's source and generates them from its own Unicode data.
  make -s -C "$RELEASE_SOURCES/re2" REBUILD_TABLES=1 re2/perl_groups.cc re2/unicode_casefold.cc re2/unicode_groups.cc
  touch "$complete"
}
