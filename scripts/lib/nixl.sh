# shellcheck shell=bash
# A real NIXL for the tests, in a Python environment of its own. Of its dependencies the tests need NumPy: PyTorch is left out.

NIXL_VERSION=1.5.1
NIXL_VENV=.test-cache/nixl

have_nixl() { have_package "$NIXL_VENV" nixl-cu12 "$NIXL_VERSION"; }

# venv and pip are wanted only where NIXL has to be fetched.
ensure_nixl_tools() {
  [[ -n ${NLAUNCH_TEST_NIXL:-} ]] || have_nixl || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_NIXL. Without NIXL the tests that want it are skipped, and say so.
provide_nixl() {
  [[ -z ${NLAUNCH_TEST_NIXL:-} ]] || return 0
  if ! have_nixl && ! fetch_venv "$NIXL_VENV" "nixl-cu12==$NIXL_VERSION" "90 MB" --no-deps numpy; then
    say "PyPI cannot be reached: the tests with NIXL are skipped (NLAUNCH_TEST_NIXL=PATH names a Python environment that has it)"
    return 0
  fi
  export NLAUNCH_TEST_NIXL=$PWD/$NIXL_VENV
}
