#!/usr/bin/env bash
# README's two commands on a Debian 12 that nobody has touched: what is committed, cloned below root's home, which nobody else may
# enter (0700), in a root folder that debootstrap has just made. Wants root, the network, 10 GB and about an hour of two cores. Ends with
# "N passed, N failed, N skipped", after the tests that skipped themselves. Arguments are the cases to run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source scripts/lib/expect.sh
source scripts/lib/packages.sh

MIRROR=${REACH_MIRROR:-http://deb.debian.org/debian}
WORK=$(mktemp -d)
EXPECT_LIMIT=7200
ROOT=$WORK/root
trap 'rm -rf --one-file-system "$WORK"' EXIT

make_root() {
  local output=$WORK/debootstrap.txt
  debootstrap --variant=minbase bookworm "$ROOT" "$MIRROR" >"$output" 2>&1 || {
    tail -n 3 "$output" >&2
    return 1
  }
  cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
  printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n' "$(uname -n)" >"$ROOT/etc/hosts" # as the installer of Debian does
  chmod 700 "$ROOT/root"
  git clone --quiet "file://$PWD" "$ROOT/root/nlaunch"
}

# inside COMMAND: in the clone, with nothing of this machine but its devices and network; every process ends with it.
inside() {
  # shellcheck disable=SC2016  # for the shell that gets it
  unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    mount --bind "$1" "$1" # ip enters no namespace where the root folder is no mount
    mount --rbind /dev "$1/dev"
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    for folder in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$1/$folder"; done
    mkdir "$1/run/lock"
    exec chroot "$1" env -i HOME=/root LOGNAME=root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      bash -euc "cd /root/nlaunch; $2"' bash "$ROOT" "$1"
}
export -f inside
export ROOT

quickstart_of_the_readme() {
  expect "${FUNCNAME[0]}" 0 'finished after' -- bash -c 'inside ./scripts/quickstart.sh'
}

tests_of_the_readme() {
  expect "${FUNCNAME[0]}" 0 '^100% tests passed' -- bash -c 'inside ./scripts/test.sh'
  sed -n '/^[0-9]* skipped:$/,/^$/p' "$WORK/${FUNCNAME[0]}.txt"
}

((EUID == 0)) || { echo "tests/reach/untouched.sh makes a root folder and mounts: run it as root" >&2; exit 1; }
ensure_packages debootstrap git
make_root || { echo "there is no root folder to test in" >&2; exit 1; }
run_cases "$@"
