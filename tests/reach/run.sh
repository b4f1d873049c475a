#!/usr/bin/env bash
# The releases where people have other machines: an old and a new Debian, aarch64 (under qemu), users who may do little.
# Wants the archives of scripts/release.sh in release/, and root (for mounts and root folders; the runs are an ordinary
# user's). Ends with "N passed, N failed, N skipped". Arguments are the cases to run: tests/reach/run.sh no_dev_shm
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source scripts/lib/expect.sh
source scripts/lib/packages.sh
source scripts/lib/nccl.sh

ROOTS=$PWD/.release-cache/roots
INSIDE=$PWD/tests/reach/inside.sh
MIRROR=${REACH_MIRROR:-http://deb.debian.org/debian}
WORK=$(mktemp -d)
EXPECT_LIMIT=600
VERSION=$(sed -n 's/^project(nlaunch VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
FORMAT=/proc/sys/fs/binfmt_misc/nlaunch-reach-aarch64

leave() {
  [[ ! -e $FORMAT ]] || echo -1 >"$FORMAT"
  rm -rf "$WORK"
}
trap leave EXIT

# A release, unpacked once: prints its folder.
unpacked() {
  local arch=$1 folder=$WORK/$1
  if [[ ! -d $folder ]]; then
    mkdir "$folder"
    tar --zstd -xf "release/nlaunch-$VERSION-linux-$arch.tar.zst" -C "$folder" --strip-components=1
    chmod -R go=u,go-w "$WORK" # the folder of mktemp is its owner's alone
  fi
  echo "$folder"
}

# debian SUITE ARCH PACKAGE...: the root folder of a Debian with Python, made once for these packages: prints its path, or nothing
# where it could not be made.
debian() {
  local suite=$1 arch=$2
  local root=$ROOTS/$suite-$arch
  shift 2
  if [[ $(cat "$root/made" 2>/dev/null) != "with $*" ]]; then
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --arch="$arch" --include="$(IFS=, && echo "python3,procps,$*")" "$suite" "$root" "$MIRROR" >"$WORK/debootstrap.txt" 2>&1 || {
      tail -n 3 "$WORK/debootstrap.txt" >&2
      return
    }
    mkdir "$root/host" "$root/image"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
    touch "$root/etc/localtime" # apptainer mounts it, and hosts
    echo 'user:x:4711:4711::/home/user:/bin/sh' >>"$root/etc/passwd"
    echo 'user:x:4711:' >>"$root/etc/group"
    echo "with $*" >"$root/made"
  fi
  echo "$root"
}

nlaunch=/opt/nlaunch/bin/nlaunch
configs=/opt/nlaunch/share/nlaunch/configs
quickstart=("$nlaunch" run "$configs/quickstart.yaml")
finished='finished after'

# --- x86-64: an old and a new Debian ---

quickstart_in() {
  local suite=$1 root
  root=$(debian "$suite" amd64)
  if [[ -z $root ]]; then
    skip "${FUNCNAME[1]}" "debootstrap cannot make $suite from $MIRROR"
    return
  fi
  expect "${FUNCNAME[1]}" 0 "$finished" -- "$INSIDE" "$root" "$(unpacked x86_64)" : "${quickstart[@]}" --runs-dir /home/user/runs
}

quickstart_on_debian_11() { quickstart_in bullseye; }
quickstart_on_debian_13() { quickstart_in trixie; }

# --- a real Apptainer: processes in a Debian 11 on a machine that has a newer one ---

# in_apptainer COMMAND PATTERN... -- OPTION...: as the case that calls it, nlaunch COMMAND of the quickstart with all its processes
# in containers.
in_apptainer() {
  local command=$1 patterns=() root image
  shift
  while [[ $1 != -- ]]; do
    patterns+=("$1")
    shift
  done
  shift
  root=$(debian sid amd64 apptainer)
  image=$(debian bullseye amd64)
  if [[ -z $root || -z $image ]]; then
    skip "${FUNCNAME[1]}" "debootstrap cannot make sid and bullseye from $MIRROR"
    return
  fi
  local wrapper='wrapper=[apptainer,exec,/image]'
  expect "${FUNCNAME[1]}" 0 "${patterns[@]}" -- "$INSIDE" "$root" "$(unpacked x86_64)" \
    "mount --bind '$image' '$root/image'; cp tests/reach/box.yaml '$root/home/user/'
     echo 'int nothing;' | g++ -shared -fPIC -x c -o '$root/home/user/libnccl.so.2' -" \
    "$nlaunch" "$command" "$configs/quickstart.yaml" --site /home/user/box.yaml --set "roles.learner.$wrapper" \
    --set "roles.engine.$wrapper" "$@"
}

a_preflight_in_a_real_apptainer() {
  in_apptainer preflight 'pass +container +learner +Debian GNU/Linux 11 \(bullseye\), glibc 2\.31' 'pass +container +engine' --
}
a_run_in_a_real_apptainer() { in_apptainer run "$finished" 'preflight pass' --; }
a_preload_in_a_real_apptainer() {
  in_apptainer run "$finished" 'learner\.1 \(pid [0-9]+\): has only libnccl /home/user/libnccl\.so\.2 mapped, as preloaded' -- --no-preflight \
    --set 'roles.learner.preload=[nccl]'
}

# --- users who may do little, on this machine ---

# restricted PREPARE COMMAND...: as the case that calls it.
restricted() {
  expect "${FUNCNAME[1]}" 0 "$finished" -- "$INSIDE" / "$(unpacked x86_64)" "$@"
}

an_ordinary_user() { restricted : "${quickstart[@]}"; }
a_home_that_is_read_only() {
  restricted 'mount -o remount,ro /home' "${quickstart[@]}" --runs-dir /tmp/runs
}
no_dev_shm() { # only ranks cannot do without
  expect "${FUNCNAME[0]}" 0 "$finished" 'warn space shared memory /dev/shm: cannot be written to: Permission denied' -- \
    "$INSIDE" / "$(unpacked x86_64)" 'mount -t tmpfs -o mode=0 tmpfs /dev/shm' "${quickstart[@]}"
}
a_tmp_without_exec() { restricted 'mount -o remount,noexec /tmp' "${quickstart[@]}"; }
a_umask_of_077() { restricted : sh -c 'umask 077; exec "$@"' sh "${quickstart[@]}"; }
no_such_locale() { restricted : env LANG=xx_YY.UTF-8 LC_ALL=xx_YY.UTF-8 "${quickstart[@]}"; }
no_terminal_at_all() { restricted : setsid --wait "${quickstart[@]}"; }
two_gb_of_addresses() { restricted : sh -c 'ulimit -v 2097152; exec "$@"' sh "${quickstart[@]}"; }
nowhere_to_write() {
  expect "${FUNCNAME[0]}" 65 "cannot create the directory '/home/user/runs" '--runs-dir DIR puts run directories elsewhere' -- \
    "$INSIDE" / "$(unpacked x86_64)" 'mount -o remount,ro /home' "${quickstart[@]}"
}

# --- aarch64, under qemu ---

# Has the kernel start aarch64's programs by qemu, until this script ends.
provide_qemu() {
  [[ -e $FORMAT ]] && return
  [[ -e /proc/sys/fs/binfmt_misc/register ]] || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null || return
  local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  # F: the interpreter is opened now, so that it need not exist below another root.
  printf '%s' ":nlaunch-reach-aarch64:M::$magic:$mask:/usr/bin/qemu-aarch64-static:F" >/proc/sys/fs/binfmt_misc/register
}

# The root folder of a Debian for aarch64 is $root then; false where there can be none, and the case that calls it is told as skipped.
on_aarch64() {
  if ! provide_qemu; then
    skip "${FUNCNAME[1]}" "this kernel lets nobody register programs of another architecture (binfmt_misc)"
    return 1
  fi
  root=$(debian bookworm arm64 lmod libfabric1)
  [[ -n $root ]] && return
  skip "${FUNCNAME[1]}" "debootstrap cannot make bookworm for arm64 from $MIRROR"
  return 1
}

aarch64_says_its_version() {
  local root
  on_aarch64 || return 0
  expect "${FUNCNAME[0]}" 0 '^nlaunch [0-9]' 'nlaunch-probe with CUDA' -- "$INSIDE" "$root" "$(unpacked aarch64)" : "$nlaunch" --version
  expect "${FUNCNAME[0]}" 0 'learner.1' -- "$INSIDE" "$root" "$(unpacked aarch64)" : "$nlaunch" plan "$configs/quickstart.yaml"
}

quickstart_on_aarch64() {
  local root
  on_aarch64 || return 0
  expect "${FUNCNAME[0]}" 0 "$finished" -- "$INSIDE" "$root" "$(unpacked aarch64)" : "${quickstart[@]}" --runs-dir /home/user/runs
}

# A real libnccl of that architecture is $libnccl then, or nothing is, and the tests that want it say that they are skipped.
provide_libnccl() {
  local folder=$PWD/.release-cache/aarch64/nccl
  libnccl=$folder/nvidia/nccl/lib/libnccl.so.2
  [[ -f $libnccl ]] || fetch_nccl "$folder" aarch64 || libnccl=
}

# leave_out PROGRAM: its tests in qemu.tsv are in left_out, and told as skipped.
leave_out() {
  local program test why
  left_out=()
  while IFS=$'\t' read -r program test why; do
    [[ $program == "$1" ]] || continue
    skip "$program $test" "$why"
    left_out+=("$test")
  done <tests/reach/qemu.tsv
}

# The tests are built as the release is, and run where this folder is at the same path as here. Those that skip themselves are
# told with their reasons, but some have to pass, which $2 matches: of Python's tests by all_but.py, of GoogleTest's by the line below "FILE:LINE: Skipped".
test_inside() {
  local name=$1 pattern=$2 test why
  shift 2
  expect "$name" 0 "$pattern" -- "$INSIDE" "$root" "$build" "mkdir -p '$root$PWD'; mount --bind '$PWD' '$root$PWD'" \
    env NLAUNCH_BUILD="$build" NLAUNCH_SOURCE="$PWD" NLAUNCH_TEST_LIBNCCL="$libnccl" NLAUNCH_SANITIZE= PYTHONDONTWRITEBYTECODE=1 "$@"
  while IFS=$'\t' read -r _ test why; do
    skip "$name $test" "$why"
  done < <(awk '/: Skipped$/ { getline why } /^\[  SKIPPED \] .* ms\)$/ { print "SKIPPED\t" $4 "\t" why } /^SKIPPED\t/' "$WORK/$name.txt")
}

unit_tests_on_aarch64() {
  local build=$PWD/.release-cache/aarch64/build root libnccl program left_out
  on_aarch64 || return 0
  provide_libnccl
  EXPECT_LIMIT=7200 expect tests_are_built_for_aarch64 0 -- scripts/release.sh --arch aarch64 --tests
  for program in "$build"/bin/*_test; do
    leave_out "${program##*/}"
    test_inside "${program##*/}_on_aarch64" '^\[  PASSED  \] [1-9]' "$program" "--gtest_filter=-$(IFS=: && echo "${left_out[*]}")"
  done
}

process_tests_on_aarch64() {
  local build=$PWD/.release-cache/aarch64/build root libnccl file left_out
  on_aarch64 || return 0
  provide_libnccl
  for file in tests/process/*_test.py; do
    leave_out "${file##*/}"
    [[ ${left_out[*]} != '*' ]] || continue # all of it
    test_inside "$(basename "$file" .py)_on_aarch64" '^OK' python3 "$PWD/tests/reach/all_but.py" "$PWD/$file" "${left_out[@]}"
  done
}

require() {
  ((EUID == 0)) || { echo "tests/reach/run.sh makes root folders and mounts: run it as root" >&2; exit 1; }
  ensure_packages debootstrap qemu-user-static zstd g++ iproute2 python3-pip
  for arch in x86_64 aarch64; do
    [[ -f release/nlaunch-$VERSION-linux-$arch.tar.zst ]] || {
      echo "there is no release $VERSION for $arch in release/: scripts/release.sh makes it" >&2
      exit 1
    }
  done
}

require
run_cases "$@"
