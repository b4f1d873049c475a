#!/usr/bin/env bash
# Brings up a real Slurm of N virtual nodes with G GPUs each on this machine:
#   tests/cluster/up.sh [--hosts] N G
# With --hosts each node is a host of its own, with its own network, host name and processes.
#
# Environment:
#   NLAUNCH_CLUSTER       the cluster's folder (build/cluster of this checkout); two folders are two clusters
#   NLAUNCH_CLUSTER_CONF  a file with lines for slurm.conf, which replace those of this script
#   NLAUNCH_CLUSTER_TOPOLOGY  a file that becomes topology.conf
# Ends with 0 once all nodes are idle, 1 where they do not come up, 2 after wrong arguments, 77 where this machine cannot do it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

extra=${NLAUNCH_CLUSTER_CONF:-/dev/null}

usage() {
  printf '%s\n' "$1" "usage: tests/cluster/up.sh [--hosts] N G   (1 to 128 nodes, 0 to 16 GPUs on each)" >&2
  exit 2
}

cannot() {
  printf '%s\n' "$@" >&2
  exit 77
}

read_arguments() {
  hosts=no
  if [[ ${1:-} == --hosts ]]; then
    hosts=yes
    shift
  fi
  (($# == 2)) || usage "up.sh takes the number of nodes and the number of GPUs on each, got $# arguments."
  nodes=$1 gpus=$2
  # One leading zero is an octal number to the shell, so none is allowed.
  if [[ ! $nodes =~ ^[1-9][0-9]{0,2}$ ]] || ((nodes > 128)); then usage "'$nodes' nodes?"; fi
  if [[ ! $gpus =~ ^(0|[1-9][0-9]?)$ ]] || ((gpus > 16)); then usage "'$gpus' GPUs on each node?"; fi
}

check_machine() {
  local program said missing=()
  [[ -r $extra ]] || fail "NLAUNCH_CLUSTER_CONF: $extra cannot be read."
  ((EUID == 0)) || cannot "The test cluster needs root: slurmd runs jobs as their users, and GPUs are device files."
  for program in munged slurmctld slurmd srun ip unshare python3; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  ((${#missing[@]} == 0)) || cannot "The test cluster needs ${missing[*]}:" \
    "  apt-get install -y --no-install-recommends munge slurmctld slurmd slurm-client iproute2 util-linux python3-minimal"
  [[ $hosts == no ]] || unshare --net --uts --mount --pid --fork --mount-proc ip link set lo up 2>/dev/null ||
    cannot "--hosts needs namespaces, which are not permitted here (a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN)."
  [[ $hosts == no ]] || said=$(unshare --net ip link add switch type bridge 2>&1) ||
    cannot "--hosts needs a bridge between its hosts, which is refused here: $said"
}

claim_folder() {
  [[ -z $(inits '.*') ]] || fail "A cluster is up in $folder. Take it down first: tests/cluster/down.sh"
  ((${#folder} <= 80)) || fail "$folder is too long a path for a socket: set NLAUNCH_CLUSTER to a shorter one."
  if [[ -e $settings ]]; then
    rm -rf "$folder" # of one that is gone
  elif [[ -n $(ls -A "$folder" 2>/dev/null) ]]; then
    fail "$folder has other things in it: set NLAUNCH_CLUSTER to a new or an empty folder."
  fi
  mkdir -p "$folder"
}

# The first of so many free ports in a row, below those that the kernel gives to clients.
free_ports() {
  python3 -Ic 'import contextlib, random, socket, sys
while True:
    first = random.randrange(20000, 32000)
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        for port in range(first, first + int(sys.argv[1])):
            stack.enter_context(socket.socket()).bind(("", port))
        sys.exit(print(first))' "$1"
}

# The first three numbers of a network of 256 addresses to which there is no route here.
free_network() {
  local net
  while net=10.$((RANDOM % 100 + 100)).$((RANDOM % 256)); do
    [[ -n $(ip -4 route show root "$net.0/24")$(ip -4 route show match "$net.0/24" | grep -v ^default) ]] || break
  done
  echo "$net"
}

node_lines() {
  local last=$((nodes - 1)) gres=""
  ((gpus == 0)) || gres="Gres=gpu:$gpus"
  if [[ $hosts == yes ]]; then
    echo "NodeName=node[0-$last] NodeAddr=$network.[10-$((last + 10))] Port=$((port + 1)) CPUs=16 RealMemory=8000 $gres"
  else
    echo "NodeName=node[0-$last] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))]" \
      "CPUs=16 RealMemory=8000 $gres"
  fi
}

# More CPUs than there are (config_overrides), so that a node has room for many processes. No waiting of minutes: cred_expire is
# also what a job waits when it is requeued.
slurm_conf() {
  cat <<CONF
ClusterName=nlaunch-test
SlurmctldHost=localhost($([[ $hosts == yes ]] && echo "$network.1" || echo 127.0.0.1))
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MessageTimeout=5
SlurmdTimeout=10
MailProg=/bin/true
StateSaveLocation=$folder/controller/state
SlurmdSpoolDir=$folder/%n/spool
SlurmctldPidFile=$folder/controller/slurmctld.pid
SlurmdPidFile=$folder/%n/slurmd.pid
SlurmctldLogFile=$folder/controller/slurmctld.log
SlurmdLogFile=$folder/%n/slurmd.log
GresTypes=gpu
$(node_lines)
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
PartitionName=short Nodes=ALL MaxTime=00:10:00 MaxNodes=2
CONF
}

# Slurm complains of a key that is there twice; partitions and nodes are added.
without_keys_of() {
  awk -F= 'FILENAME != "-" { given[tolower($1)] = 1; next } /^(Node|Partition)Name=/ || !(tolower($1) in given)' "$1" -
}

write_files() {
  local gpu node
  printf '%s\n' "hosts=$hosts" "network=$network" "uplink=$uplink" "nodes=$nodes" >"$settings"
  { slurm_conf | without_keys_of "$extra" && cat "$extra"; } >"$folder/slurm.conf"
  echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf" # asked for by slurmd though nothing uses it; v1 does not look for cgroups
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
  mkdir "$folder/gpus"
  # The number at the end is the one in CUDA_VISIBLE_DEVICES. The device is that of /dev/null.
  for ((gpu = 0; gpu < gpus; gpu++)); do mknod "$folder/gpus/gpu$gpu" c 1 3; done
  ((gpus == 0)) || echo "Name=gpu File=$folder/gpus/gpu[0-$((gpus - 1))]" >"$folder/gres.conf"
  [[ -z ${NLAUNCH_CLUSTER_TOPOLOGY:-} ]] || cp "$NLAUNCH_CLUSTER_TOPOLOGY" "$folder/topology.conf"
  [[ $hosts == yes ]] || return 0
  echo "127.0.0.1 localhost" >"$folder/hosts"
  echo "$network.1 login $(hostname)" >>"$folder/hosts"
  for ((node = 0; node < nodes; node++)); do echo "$network.$((node + 10)) node$node" >>"$folder/hosts"; done
}

# A bridge in a network namespace, so that no firewall of this machine is in the way; the login side is plugged into it.
start_switch() {
  start_machine switch ip link add switch up type bridge
  until in_switch ip link show switch &>/dev/null; do
    [[ ! -e $folder/switch/failed ]]
    sleep 0.01
  done
  ip link add "$uplink" type veth peer name login netns "$(inits switch)"
  in_switch ip link set login master switch up
  ip address add "$network.1/24" dev "$uplink"
  ip link set "$uplink" up
}

start_controller() {
  mkdir -p "$folder/controller/state"
  # shellcheck disable=SC2016  # for the shell that gets it
  start_machine controller bash -euc '
    munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --num-threads=2 --pid-file="$1/controller/munged.pid" \
      --log-file="$1/controller/munged.log" --seed-file="$1/controller/munged.seed"
    # In the foreground, so that it is also seen when it gives up later than a daemon has become one.
    exec slurmctld -D -f "$1/slurm.conf"' bash "$folder"
}

idle_nodes() { sinfo -hN -p main -o %T 2>/dev/null | grep -cx idle; }

wait_for_nodes() {
  local deadline=$((SECONDS + 30 + nodes / 2))
  until [[ $(idle_nodes) == "$nodes" ]]; do
    ((SECONDS < deadline)) && ! compgen -G "$folder/*/failed" >/dev/null || return 1
    sleep 0.1
  done
}

give_up() {
  local log
  echo "The cluster did not come up. What its daemons said last:" >&2
  for log in "$folder"/{controller,switch,node0,node1}/*.log; do
    [[ ! -s $log ]] || tail -vn 5 "$log" >&2
  done
  "$here/down.sh"
}

read_arguments "$@"
check_machine
# One at a time on this machine: a port that is free stays free until it is taken here.
exec 9>/run/lock/nlaunch-cluster
flock 9
claim_folder
trap give_up EXIT
port=$(free_ports $((nodes + 1)))
network=$(free_network)
uplink=nlc-${network#10.}
write_files
export SLURM_CONF=$folder/slurm.conf
[[ $hosts == no ]] || start_switch
start_controller
for ((node = 0; node < nodes; node++)); do start_node "$node"; done
wait_for_nodes
trap - EXIT
echo "$nodes nodes with $gpus GPUs each are up. To use them: . tests/cluster/env.sh"
