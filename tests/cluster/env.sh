# shellcheck shell=bash
# To be sourced: lets the clients of Slurm find the test cluster in $NLAUNCH_CLUSTER (build/cluster of this checkout).
NLAUNCH_CLUSTER=$(realpath -m "${NLAUNCH_CLUSTER:-$(dirname "${BASH_SOURCE[0]}")/../../build/cluster}")
export NLAUNCH_CLUSTER
if [[ -e $NLAUNCH_CLUSTER/slurm.conf ]]; then
  export SLURM_CONF=$NLAUNCH_CLUSTER/slurm.conf
else
  echo "No cluster is up in $NLAUNCH_CLUSTER: tests/cluster/up.sh 4 4" >&2
  return 1
fi
