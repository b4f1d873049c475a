#!/usr/bin/env bash
# One node of the test cluster in $NLAUNCH_CLUSTER:
#   tests/cluster/node.sh kill K        as if its power went: all its processes at once and, with --hosts, its network before
#   tests/cluster/node.sh revive K      starts it anew, and waits until Slurm has it back
#   tests/cluster/node.sh cut K         takes its way to the other nodes, with --hosts; the login side still reaches it
#   tests/cluster/node.sh connect K     gives it back
#   tests/cluster/node.sh processes [K] the processes of jobs there, or on all nodes: "PID NAME" a line
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ -e $settings ]] || fail "No cluster is up in $folder: tests/cluster/up.sh 4 4"
action=${1:-} node=${2:-}
[[ -z $node && $action == processes ]] || { [[ $node =~ ^[0-9]+$ ]] && ((node < nodes)); } ||
  fail "'$node' is not a node: this cluster has 0 to $((nodes - 1))."
export SLURM_CONF=$folder/slurm.conf

kill_node() {
  # First the network, so that nobody hears of its end.
  [[ $hosts == no || -z $(inits "node$node") ]] || in_switch ip link delete "port$node"
  kill_machines "node$node"
}

# on_node COMMAND...: with the network of that node
on_node() {
  local pids
  mapfile -t pids < <(inits "node$node")
  [[ $hosts == yes && -n ${pids[0]:-} ]] || fail "node$node is no host that is up."
  nsenter --net="/proc/${pids[0]}/ns/net" "$@"
}

wait_for_node() {
  local deadline=$((SECONDS + 60))
  # A state ends with * while Slurm waits for an answer.
  until [[ -s $folder/node$node/slurmd.pid && $(sinfo -hN -n "node$node" -p main -o %T) =~ ^(idle|mixed|allocated|completing)$ ]]; do
    ((SECONDS < deadline)) || fail "node$node did not come back: $folder/node$node/slurmd.log"
    sleep 0.1
  done
}

case $action in
  kill) kill_node ;;
  revive)
    kill_node
    rm -rf "$folder/node$node"
    start_node "$node"
    wait_for_node
    ;;
  cut)
    on_node ip route add "$network.1" dev eth0
    on_node ip route delete "$network.0/24"
    ;;
  connect)
    on_node ip route add "$network.0/24" dev eth0
    on_node ip route delete "$network.1"
    ;;
  processes)
    # What has ended in between has no name any more.
    processes "node${node:-[0-9]+}" | awk '{
      status = "/proc/" $1 "/status"
      split("", of)
      while ((getline line < status) > 0) { split(line, word); of[word[1]] = word[2] }
      close(status)
      if (of["Name:"] != "" && of["State:"] != "Z" && of["Name:"] !~ /^(init\.sh|slurmd|slurmstepd)$/) print $1, of["Name:"]
    }'
    ;;
  *) fail "node.sh knows kill, revive, cut, connect and processes, not '$action'." ;;
esac
