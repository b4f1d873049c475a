# shellcheck shell=bash
# The Python client of Beaker for the tests, in two separate environments: the last release whose model of a spec checks every
# field's type, and a current release, whose model is different.

BEAKER_VERSIONS=(1.38.1 2.8.1)
BEAKER_VENVS=.test-cache/beaker-py

have_beaker() {
  [[ $("$BEAKER_VENVS/$1/bin/python" -c 'import importlib.metadata as m; print(m.version("beaker-py"))' 2>/dev/null) == "$1" ]]
}

have_all_beakers() {
  local version
  for version in "${BEAKER_VERSIONS[@]}"; do have_beaker "$version" || return 1; done
}

# venv and pip are needed only if a client has to be downloaded.
ensure_beaker_tools() {
  [[ -n ${NLAUNCH_TEST_BEAKER_PY:-} ]] || have_all_beakers || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_BEAKER_PY: the environments, separated by colons. Without them the test that needs them is skipped with a
# message.
provide_beaker() {
  local version found=()
  [[ -z ${NLAUNCH_TEST_BEAKER_PY:-} ]] || return 0
  for version in "${BEAKER_VERSIONS[@]}"; do
    if ! have_beaker "$version" && ! fetch_venv "$BEAKER_VENVS/$version" "beaker-py==$version" "20 MB"; then
      say "cannot reach PyPI: skipping the check of specs with beaker-py (to use a Python environment that has it: NLAUNCH_TEST_BEAKER_PY=PATH)"
      return 0
    fi
    found+=("$PWD/$BEAKER_VENVS/$version")
  done
  NLAUNCH_TEST_BEAKER_PY=$(IFS=: && echo "${found[*]}")
  export NLAUNCH_TEST_BEAKER_PY
}
