# shellcheck shell=bash
# A real libnccl for the tests: preloads and their proof are tested with the real library, which needs no GPU.

NCCL_WHEEL=nvidia-nccl-cu13==2.28.9
NCCL_CACHE=.test-cache/nccl

# Prints the first libnccl in the usual places, or nothing.
find_nccl() {
  local candidate
  for candidate in "$(ldconfig -p 2>/dev/null | sed -n 's/.*libnccl\.so\.2 .*=> //p' | head -n1)" \
    /usr/local/cuda*/lib*/libnccl.so.2 /usr/lib/*/libnccl.so.2 \
    "$NCCL_CACHE"/nvidia/nccl/lib/libnccl.so.2; do
    if [[ -f $candidate ]]; then
      readlink -f "$candidate"
      return
    fi
  done
}

# pip is needed only if the library has to be downloaded.
ensure_nccl_tools() {
  [[ -n ${NLAUNCH_TEST_LIBNCCL:-} || -n $(find_nccl) ]] || ensure_packages python3-pip
}

# fetch_nccl FOLDER ARCH: downloads nvidia/nccl/lib/libnccl.so.2 to the directory. Returns false if that fails.
fetch_nccl() {
  local folder=$1 arch=$2
  say "no libnccl for $arch found; downloading $NCCL_WHEEL from PyPI into $folder (about 200 MB, once)"
  mkdir -p "$folder"
  /usr/bin/python3 -m pip download -q --no-deps --only-binary=:all: --timeout 30 --platform "manylinux_2_18_$arch" -d "$folder" "$NCCL_WHEEL" || return
  /usr/bin/python3 -m zipfile -e "$folder"/*.whl "$folder" || return
  rm -f "$folder"/*.whl
}

# Exports NLAUNCH_TEST_LIBNCCL. Without the library the tests that need it are skipped with a message.
provide_nccl() {
  [[ -z ${NLAUNCH_TEST_LIBNCCL:-} ]] || return 0
  local found
  found=$(find_nccl)
  if [[ -z $found ]]; then
    if fetch_nccl "$NCCL_CACHE" "$(uname -m)"; then
      found=$(find_nccl)
    else
      say "cannot reach PyPI: skipping the tests that need a libnccl (to use an existing one: NLAUNCH_TEST_LIBNCCL=PATH)"
      return 0
    fi
  fi
  export NLAUNCH_TEST_LIBNCCL=$found
}
