# shellcheck shell=bash
# rattler-build for the tests, as a Python package in an environment of its own: it reads the recipe for conda.

RATTLER_VERSION=0.73.0
RATTLER_VENV=.test-cache/rattler

have_rattler() { have_package "$RATTLER_VENV" py-rattler-build "$RATTLER_VERSION"; }

# venv and pip are wanted only where it has to be fetched.
ensure_rattler_tools() {
  [[ -n ${NLAUNCH_TEST_RATTLER:-} ]] || have_rattler || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_RATTLER, the Python. Without it the tests that want it are skipped, and say so.
provide_rattler() {
  [[ -z ${NLAUNCH_TEST_RATTLER:-} ]] || return 0
  if ! have_rattler && ! fetch_venv "$RATTLER_VENV" "py-rattler-build==$RATTLER_VERSION" "20 MB"; then
    say "PyPI cannot be reached: the test with rattler-build is skipped (NLAUNCH_TEST_RATTLER=PATH names a Python that has it)"
    return 0
  fi
  export NLAUNCH_TEST_RATTLER=$PWD/$RATTLER_VENV/bin/python
}
