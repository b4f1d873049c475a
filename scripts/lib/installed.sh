# shellcheck shell=bash
# The nlaunch of this tree: the installed one, else the one that was built. Empty when there is neither.
find_nlaunch() {
  local candidate
  for candidate in "$PWD/dist/bin/nlaunch" "$PWD/build/bin/nlaunch"; do
    if [[ -x $candidate ]]; then
      echo "$candidate"
      return
    fi
  done
}
