#!/usr/bin/env bash
# inside.sh ROOT RELEASE PREPARE COMMAND...: an ordinary user's command with ROOT as its root, where RELEASE is /opt/nlaunch, /tmp
# and /home are fresh, the network is its own (ports are nobody else's) and every process ends with it. PREPARE is shell that root runs
# before, to take things away or to add them.
set -euo pipefail
if [[ $1 != --prepared ]]; then
  exec unshare --mount --net --pid --fork --kill-child --propagation private "$0" --prepared "$@"
fi
root=$2 release=$3 prepare=$4
shift 4
ip link set lo up
if [[ $root != / ]]; then
  mount --bind "$root" "$root"
  mount --rbind /dev "$root/dev"
fi
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/opt"
mkdir "$root/opt/nlaunch"
mount --bind "$release" "$root/opt/nlaunch"
for folder in tmp home dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
mkdir "$root/home/user"
chown 4711:4711 "$root/home/user"
eval "$prepare"
if [[ $root != / ]]; then # in a chroot, nobody may make user namespaces, as apptainer does
  cd "$root"
  pivot_root . host
  umount -l /host
fi
cd /home/user
ulimit -u 8000 # a program that forks and forks is held here
# Not exec: process 1 is the parent of all orphans, and this shell is to be that.
setpriv --reuid=4711 --regid=4711 --clear-groups env -i HOME=/home/user PATH=/usr/bin:/bin LOGNAME=user USER=user "$@"
