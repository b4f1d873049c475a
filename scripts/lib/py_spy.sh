# shellcheck shell=bash
# py-spy for the tests, in a Python environment of its own.

PY_SPY_VERSION=0.4.3
PY_SPY_VENV=.test-cache/py-spy

have_py_spy() { [[ $("$PY_SPY_VENV/bin/py-spy" --version 2>/dev/null) == "py-spy $PY_SPY_VERSION" ]]; }

# venv and pip are wanted only where it has to be fetched.
ensure_py_spy_tools() {
  [[ -n ${NLAUNCH_TEST_PY_SPY:-} ]] || have_py_spy || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_PY_SPY, the program. Without it the tests that want it are skipped, and say so.
provide_py_spy() {
  [[ -z ${NLAUNCH_TEST_PY_SPY:-} ]] || return 0
  if ! have_py_spy && ! fetch_venv "$PY_SPY_VENV" "py-spy==$PY_SPY_VERSION" "3 MB"; then
    say "PyPI cannot be reached: the tests with py-spy are skipped (NLAUNCH_TEST_PY_SPY=PATH names the program)"
    return 0
  fi
  export NLAUNCH_TEST_PY_SPY=$PWD/$PY_SPY_VENV/bin/py-spy
}
