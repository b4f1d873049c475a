# shellcheck shell=bash
# RL frameworks for the tests, each in a Python environment of its own.

# Of these two the tests want the parsers of their commands alone: what they depend on, PyTorch among it, is left out.
VERL_VERSION=0.9.1
VERL_VENV=.test-cache/verl
HYDRA_VERSION=1.3.2
OPENRLHF_VERSION=0.11.2
OPENRLHF_VENV=.test-cache/openrlhf

# have_package FOLDER PACKAGE VERSION
have_package() {
  [[ $("$1/bin/python" -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' "$2" 2>/dev/null) == "$3" ]]
}

# venv and pip are wanted only where one of them has to be fetched.
ensure_framework_tools() {
  [[ -n ${NLAUNCH_TEST_VERL:-} ]] || have_package "$VERL_VENV" verl "$VERL_VERSION" || ensure_packages python3-venv
  [[ -n ${NLAUNCH_TEST_OPENRLHF:-} ]] || have_package "$OPENRLHF_VENV" openrlhf "$OPENRLHF_VERSION" || ensure_packages python3-venv
}

# fetch_parsers FOLDER PACKAGE==VERSION SIZE [DEPENDENCY==VERSION...]: the package, of what it depends on these alone; false where PyPI
# cannot be reached, and nothing is left then.
fetch_parsers() {
  local folder=$1 package=$2 size=$3 pip
  shift 3
  pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check --timeout 30)
  say "fetching $package from PyPI into $folder (about $size, once)"
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder"
  if ! { (($# == 0)) || "${pip[@]}" "$@"; } || ! "${pip[@]}" --no-deps --only-binary=:all: "$package"; then
    rm -rf "$folder"
    return 1
  fi
}

# Exports NLAUNCH_TEST_VERL. Without verl the test that wants it is skipped, and says so.
provide_verl() {
  [[ -z ${NLAUNCH_TEST_VERL:-} ]] || return 0
  if ! have_package "$VERL_VENV" verl "$VERL_VERSION" &&
    ! fetch_parsers "$VERL_VENV" "verl==$VERL_VERSION" "10 MB" "hydra-core==$HYDRA_VERSION"; then
    say "PyPI cannot be reached: the test with verl is skipped (NLAUNCH_TEST_VERL=PATH names a Python environment that has it)"
    return 0
  fi
  export NLAUNCH_TEST_VERL=$PWD/$VERL_VENV
}

# Exports NLAUNCH_TEST_OPENRLHF. Without OpenRLHF the test that wants it is skipped, and says so.
provide_openrlhf() {
  [[ -z ${NLAUNCH_TEST_OPENRLHF:-} ]] || return 0
  if ! have_package "$OPENRLHF_VENV" openrlhf "$OPENRLHF_VERSION" &&
    ! fetch_parsers "$OPENRLHF_VENV" "openrlhf==$OPENRLHF_VERSION" "1 MB"; then
    say "PyPI cannot be reached: the test with OpenRLHF is skipped (NLAUNCH_TEST_OPENRLHF=PATH names a Python environment that has it)"
    return 0
  fi
  export NLAUNCH_TEST_OPENRLHF=$PWD/$OPENRLHF_VENV
}
