#!/usr/bin/env bash
# The releases where people have other machines: an old and a new Debian, aarch64 (under qemu), users who may do little.
# Wants the archives of scripts/release.sh in release/, and root (for mounts and root folders; the runs are an ordinary
# user's). Ends with "N passed, N failed, N skipped". Arguments are the cases to run: tests/reach/run.sh no_dev_shm
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source scripts/lib/expect.sh
source scripts/lib/packages.sh

ROOTS=$PWD/.release-cache/roots
MIRROR=${REACH_MIRROR:-http://deb.debian.org/debian}
WORK=$(mktemp -d)
EXPECT_LIMIT=600
FORMAT=/proc/sys/fs/binfmt_misc/nlaunch-reach-aarch64
skipped=0

leave() {
  [[ ! -e $FORMAT ]] || echo -1 >"$FORMAT"
  rm -rf "$WORK"
}
trap leave EXIT

skip() {
  skipped=$((skipped + 1))
  echo "SKIP $1: $2"
}

# A release, unpacked once: prints its folder.
unpacked() {
  local arch=$1 folder=$WORK/$1
  if [[ ! -d $folder ]]; then
    mkdir "$folder"
    tar --zstd -xf release/nlaunch-*-linux-"$arch".tar.zst -C "$folder" --strip-components=1
    chmod -R go=u,go-w "$WORK" # the folder of mktemp is its owner's alone
  fi
  echo "$folder"
}

# The root folder of a Debian with Python, made once: prints its path, or nothing where it could not be made.
debian() {
  local suite=$1 arch=$2
  local root=$ROOTS/$suite-$arch
  if [[ ! -e $root/made ]]; then
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --arch="$arch" --include=python3-minimal "$suite" "$root" "$MIRROR" >"$WORK/debootstrap.txt" 2>&1 || {
      tail -n 3 "$WORK/debootstrap.txt" >&2
      return
    }
    touch "$root/made"
  fi
  echo "$root"
}

# inside ROOT RELEASE PREPARE COMMAND...: an ordinary user's command below ROOT, where RELEASE is /opt/nlaunch, /tmp and /home are
# fresh and every process ends with it. PREPARE is shell that root runs there before, to take things away.
inside() {
  local root=$1 release=$2 prepare=$3
  shift 3
  # shellcheck disable=SC2016  # it is for the shell inside
  unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    root=$1 release=$2 prepare=$3
    shift 3
    [[ $root == / ]] || { mount --bind "$root" "$root"; mount --rbind /dev "$root/dev"; }
    mount -t proc proc "$root/proc"
    for folder in tmp home opt dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
    mkdir -p "$root/opt/nlaunch" "$root/home/user"
    chown 4711:4711 "$root/home/user"
    mount --bind "$release" "$root/opt/nlaunch"
    cd "$root/home/user"
    eval "$prepare"
    exec chroot --userspec=4711:4711 --groups="" "$root" /bin/sh -c "cd; exec \"\$@\"" sh "$@"
  ' inside "$root" "$release" "$prepare" \
    env -i HOME=/home/user PATH=/usr/bin:/bin LOGNAME=user USER=user "$@"
}

nlaunch=/opt/nlaunch/bin/nlaunch
quickstart=("$nlaunch" run /opt/nlaunch/share/nlaunch/configs/quickstart.yaml)
finished='finished after'

# --- x86-64: an old and a new Debian ---

quickstart_in() {
  local suite=$1 arch=$2 root
  root=$(debian "$suite" "$arch")
  if [[ -z $root ]]; then
    skip "${FUNCNAME[1]}" "debootstrap cannot make $suite for $arch from $MIRROR"
    return
  fi
  expect "${FUNCNAME[1]}" 0 "$finished" -- inside "$root" "$(unpacked "${3:-x86_64}")" : "${quickstart[@]}" --runs-dir /home/user/runs
}

quickstart_on_debian_11() { quickstart_in bullseye amd64; }
quickstart_on_debian_13() { quickstart_in trixie amd64; }

# --- users who may do little, on this machine ---

# restricted PREPARE COMMAND...: as the case that calls it.
restricted() {
  expect "${FUNCNAME[1]}" 0 "$finished" -- inside / "$(unpacked x86_64)" "$@"
}

an_ordinary_user() { restricted : "${quickstart[@]}"; }
a_home_that_is_read_only() {
  restricted 'mount -o remount,ro /home' "${quickstart[@]}" --runs-dir /tmp/runs
}
no_dev_shm() { restricted 'mount -t tmpfs -o mode=0 tmpfs /dev/shm' "${quickstart[@]}"; }
a_tmp_without_exec() { restricted 'mount -o remount,noexec /tmp' "${quickstart[@]}"; }
a_umask_of_077() { restricted : sh -c 'umask 077; exec "$@"' sh "${quickstart[@]}"; }
no_such_locale() { restricted : env LANG=xx_YY.UTF-8 LC_ALL=xx_YY.UTF-8 "${quickstart[@]}"; }
no_terminal_at_all() { restricted : setsid --wait "${quickstart[@]}"; }
two_gb_of_addresses() { restricted : sh -c 'ulimit -v 2097152; exec "$@"' sh "${quickstart[@]}"; }
nowhere_to_write() {
  expect "${FUNCNAME[0]}" 65 "cannot create '/home/user/runs" '--runs-dir DIR puts run directories elsewhere' -- \
    inside / "$(unpacked x86_64)" 'mount -o remount,ro /home' "${quickstart[@]}"
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

on_aarch64() {
  if ! provide_qemu; then
    skip "${FUNCNAME[1]}" "this kernel lets nobody register programs of another architecture (binfmt_misc)"
    return 1
  fi
}

aarch64_says_its_version() {
  on_aarch64 || return 0
  local root
  root=$(debian bookworm arm64)
  [[ -n $root ]] || { skip "${FUNCNAME[0]}" "debootstrap cannot make bookworm for arm64 from $MIRROR"; return; }
  expect "${FUNCNAME[0]}" 0 '^nlaunch [0-9]' 'nlaunch-probe with CUDA' -- inside "$root" "$(unpacked aarch64)" : "$nlaunch" --version
  expect "${FUNCNAME[0]}" 0 'learner.1' -- inside "$root" "$(unpacked aarch64)" : "$nlaunch" plan /opt/nlaunch/share/nlaunch/configs/quickstart.yaml
}

quickstart_on_aarch64() {
  on_aarch64 || return 0
  quickstart_in bookworm arm64 aarch64
}

require() {
  ((EUID == 0)) || { echo "tests/reach/run.sh makes root folders and mounts: run it as root" >&2; exit 1; }
  ensure_packages debootstrap qemu-user-static zstd
  for arch in x86_64 aarch64; do
    compgen -G "release/nlaunch-*-linux-$arch.tar.zst" >/dev/null || {
      echo "there is no release for $arch in release/: scripts/release.sh makes it" >&2
      exit 1
    }
  done
}

require
run_cases "$@"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
