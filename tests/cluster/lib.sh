# shellcheck shell=bash
# What the scripts of the test cluster share.
#
# A cluster is a folder and its machines: `controller` (munged and slurmctld), node0, node1, … (a slurmd each) and, where the
# nodes are hosts of their own, `switch`. A machine is a tree of processes below its init.sh, whose first argument,
# NAME@FOLDER, tells it from everything else on this computer.

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
folder=$(realpath -m "${NLAUNCH_CLUSTER:-$here/../../build/cluster}")
settings=$folder/cluster.conf # written by up.sh; a folder without it is none of ours
# shellcheck disable=SC2034  # not all scripts use all of them
hosts=no network="" uplink="" nodes=0
# shellcheck source=/dev/null
[[ ! -e $settings ]] || source "$settings"

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# The init.sh of the machines that fit a regular expression, and the unshare above it.
inits() {
  local cmdline argument arguments
  for cmdline in /proc/[0-9]*/cmdline; do
    # What has ended in between is none of them.
    { mapfile -t -d '' arguments <"$cmdline"; } 2>/dev/null || continue
    for argument in "${arguments[@]}"; do
      [[ ! $argument =~ ^($1)@"$folder"$ ]] || echo "${cmdline//[!0-9]/}"
    done
  done
}

# The processes below a process.
descendants() {
  local child list
  for list in "/proc/$1/task/"*/children; do
    # shellcheck disable=SC2013  # one line of words
    for child in $(cat "$list" 2>/dev/null); do
      echo "$child"
      descendants "$child"
    done
  done
}

# The processes of the machines that fit, without their init.sh.
processes() {
  local init all
  all=$(inits "$1")
  for init in $all; do descendants "$init"; done | sort -u | comm -23 - <(sort <<<"$all")
}

# An init.sh ends last: as long as it is there, nobody can leave its tree. Stopped it starts nothing, continued it buries the dead.
kill_machines() {
  local init pids
  while init=$(inits "$1") && [[ -n $init ]]; do
    signal STOP "$init"
    pids=$(processes "$1")
    signal KILL "${pids:-$init}"
    signal CONT "$init"
    sleep 0.02
  done
}

# signal NAME PIDS: what has ended in between needs none.
signal() {
  local pid
  for pid in $2; do
    kill "-$1" "$pid" 2>/dev/null || [[ ! -e /proc/$pid ]] || fail "Process $pid cannot be sent SIG$1."
  done
}

# start_machine NAME COMMAND...
start_machine() {
  local name=$1 adopt=(python3 -Ic 'import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: processes that lose their parent become children of init.sh
os.execvp(sys.argv[1], sys.argv[1:])')
  shift
  mkdir -p "$folder/$name"
  if [[ $hosts == yes && $name == node* ]]; then
    adopt=(unshare --net --uts --mount --pid --fork --kill-child --mount-proc)
  elif [[ $name == switch ]]; then
    adopt=(unshare --net)
  fi
  SLURM_CONF=$folder/slurm.conf setsid "${adopt[@]}" "$here/init.sh" "$name@$folder" "$@" \
    </dev/null >"$folder/$name/init.log" 2>&1 9>&- &
  disown # nobody wants to hear when it is killed
  [[ $hosts == no || $name != node* ]] || plug_in "$!" "${name#node}"
}

in_switch() { nsenter --net="/proc/$(inits switch)/ns/net" "$@"; }

# Connects host number $2, whose unshare is process $1, to the switch.
plug_in() {
  # Only once it has a child is unshare in namespaces of its own.
  until [[ -n $(descendants "$1") ]]; do
    kill -0 "$1"
    sleep 0.01
  done
  in_switch ip link add "port$2" master switch up type veth peer name eth0 netns "$1"
}

start_node() { start_machine "node$1" slurmd -N "node$1" -f "$folder/slurm.conf"; }
