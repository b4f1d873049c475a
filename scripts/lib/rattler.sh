# shellcheck shell=bash
# rattler-build for the tests, as a Python package in a separate environment. It reads the conda recipe.

RATTLER_VERSION=0.73.0
RATTLER_VENV=.test-cache/rattler

have_rattler() { have_package "$RATTLER_VENV" py-rattler-build "$RATTLER_VERSION"; }

# venv and pip are needed only if it has to be downloaded.
ensure_rattler_tools() {
  [[ -n ${NLAUNCH_TEST_RATTLER:-} ]] || have_rattler || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_RATTLER, the Python. Without it the tests that need it are skipped with a message.
provide_rattler() {
  [[ -z ${NLAUNCH_TEST_RATTLER:-} ]] || return 0
  if ! have_rattler && ! fetch_venv "$RATTLER_VENV" "py-rattler-build==$RATTLER_VERSION" "20 MB"; then
    say "cannot reach PyPI: skipping the test with rattler-build (to use a Python that has it: NLAUNCH_TEST_RATTLER=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_RATTLER=$PWD/$RATTLER_VENV/bin/python
}
