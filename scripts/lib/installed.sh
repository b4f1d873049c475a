# shellcheck shell=bash
# Prints the nlaunch of this tree: the installed one, else the built one, else nothing.
find_nlaunch() {
  local candidate
  for candidate in "$PWD/dist/bin/nlaunch" "$PWD/build/bin/nlaunch"; do
    if [[ -x $candidate ]]; then
      echo "$candidate"
      return
    fi
  done
}
