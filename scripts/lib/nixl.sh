# shellcheck shell=bash
# A real NIXL for the tests, in a separate Python environment. Of its dependencies the tests need only NumPy, so PyTorch is left out.

NIXL_VERSION=1.5.1
NIXL_VENV=.test-cache/nixl

have_nixl() { have_package "$NIXL_VENV" nixl-cu12 "$NIXL_VERSION"; }

# venv and pip are needed only if NIXL has to be downloaded.
ensure_nixl_tools() {
  [[ -n ${NLAUNCH_TEST_NIXL:-} ]] || have_nixl || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_NIXL. Without NIXL the tests that need it are skipped with a message.
provide_nixl() {
  [[ -z ${NLAUNCH_TEST_NIXL:-} ]] || return 0
  if ! have_nixl && ! fetch_venv "$NIXL_VENV" "nixl-cu12==$NIXL_VERSION" "90 MB" --no-deps numpy; then
    say "cannot reach PyPI: skipping the tests with NIXL (to use a Python environment that has it: NLAUNCH_TEST_NIXL=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_NIXL=$PWD/$NIXL_VENV
}
