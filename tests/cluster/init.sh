#!/usr/bin/env bash
# The first process of a machine of the test cluster (see lib.sh): init.sh NAME@FOLDER COMMAND... prepares the machine, runs the
# command, which leaves daemons behind, and is from then on the parent of everything there that loses its own.
set -euo pipefail
name=${1%%@*} folder=${1#*@}
shift
hosts=no network=""
# shellcheck source=/dev/null
source "$folder/cluster.conf"

# A node that is a host of its own: a name, an address, the names of the others, and what it may not share with them.
become_host() {
  until ip link show eth0 &>/dev/null; do sleep 0.01; done
  hostname "$name"
  ip link set lo up
  ip address add "$network.$((${name#node} + 10))/24" dev eth0
  ip link set eth0 up
  mount --bind "$folder/hosts" /etc/hosts
  mount -t sysfs sysfs /sys # /sys/class/net of the old one has the network of the machine where it was mounted
  mount -t tmpfs tmpfs /dev/shm
}

[[ $hosts == no || $name != node* ]] || become_host
mkfifo "$folder/$name/never"
"$@" || touch "$folder/$name/failed"
read -r _ <>"$folder/$name/never"
