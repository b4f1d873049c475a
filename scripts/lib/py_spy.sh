# shellcheck shell=bash
# py-spy for the tests, in a separate Python environment.

PY_SPY_VERSION=0.4.3
PY_SPY_VENV=.test-cache/py-spy

have_py_spy() { [[ $("$PY_SPY_VENV/bin/py-spy" --version 2>/dev/null) == "py-spy $PY_SPY_VERSION" ]]; }

# venv and pip are needed only if py-spy has to be downloaded.
ensure_py_spy_tools() {
  [[ -n ${NLAUNCH_TEST_PY_SPY:-} ]] || have_py_spy || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_PY_SPY, the program. Without it the tests that need it are skipped with a message.
provide_py_spy() {
  [[ -z ${NLAUNCH_TEST_PY_SPY:-} ]] || return 0
  if ! have_py_spy && ! fetch_venv "$PY_SPY_VENV" "py-spy==$PY_SPY_VERSION" "3 MB"; then
    say "cannot reach PyPI: skipping the tests with py-spy (to use an existing program: NLAUNCH_TEST_PY_SPY=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_PY_SPY=$PWD/$PY_SPY_VENV/bin/py-spy
}
