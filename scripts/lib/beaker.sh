# shellcheck shell=bash
# The Python client of Beaker for the tests, in two environments of their own: the last release whose model of a spec checks every
# field's type, and a release of the client that people have today, whose model is another one.

BEAKER_VERSIONS=(1.38.1 2.8.1)
BEAKER_VENVS=.test-cache/beaker-py

have_beaker() {
  [[ $("$BEAKER_VENVS/$1/bin/python" -c 'import importlib.metadata as m; print(m.version("beaker-py"))' 2>/dev/null) == "$1" ]]
}

have_all_beakers() {
  local version
  for version in "${BEAKER_VERSIONS[@]}"; do have_beaker "$version" || return 1; done
}

# venv and pip are wanted only where a client has to be fetched.
ensure_beaker_tools() {
  [[ -n ${NLAUNCH_TEST_BEAKER_PY:-} ]] || have_all_beakers || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_BEAKER_PY: the environments, with colons between. Without them the test that wants them is skipped, and says
# so.
provide_beaker() {
  local version found=()
  [[ -z ${NLAUNCH_TEST_BEAKER_PY:-} ]] || return 0
  for version in "${BEAKER_VERSIONS[@]}"; do
    if ! have_beaker "$version" && ! fetch_venv "$BEAKER_VENVS/$version" "beaker-py==$version" "20 MB"; then
      say "PyPI cannot be reached: the specs are not held against beaker-py (NLAUNCH_TEST_BEAKER_PY=PATH names a Python environment that has it)"
      return 0
    fi
    found+=("$PWD/$BEAKER_VENVS/$version")
  done
  NLAUNCH_TEST_BEAKER_PY=$(IFS=: && echo "${found[*]}")
  export NLAUNCH_TEST_BEAKER_PY
}
