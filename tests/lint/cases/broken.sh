#!/bin/bash
# What can be read is linted; what cannot is said once, with its place.
export NCCL_DEBUG=ERROR
echo "this quote is open
export NCCL_P2P_LEVEL=PCI
files=(a "b c" $(ls))
case "$1" in
  (a|b) export NCCL_DEBUG=INFO ;;
  *) export NCCL_ALGO='Tree' ;;
esac
launch() { export NCCL_CROSS_NIC=yes; srun "$@"; }
if [ -n "$A" ]; then
  export NCCL_SHM_DISABLE=1
echo $(date
cat <<END
export NCCL_NVLINK_DISABLE=1
