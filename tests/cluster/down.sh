#!/usr/bin/env bash
# Takes away the test cluster in $NLAUNCH_CLUSTER (build/cluster of this checkout): every process and the folder, whatever state
# it is in. Without a cluster it does nothing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kill_machines '.*'
# With its other end the kernel takes it away too, but later, or just now.
if [[ $hosts == yes ]]; then
  ip link delete "$uplink" 2>/dev/null || [[ ! -e /sys/class/net/$uplink ]] || fail "The interface $uplink cannot be deleted."
fi
[[ ! -e $settings ]] || rm -rf "$folder"
