# shellcheck shell=bash
# A real Ray for the tests, in a Python environment of its own.

RAY_VERSION=2.60.0
RAY_VENV=.test-cache/ray

# Also false in a tree that was moved: the environment knows its place.
have_ray() { [[ $("$RAY_VENV/bin/ray" --version 2>/dev/null) == "ray, version $RAY_VERSION" ]]; }

# venv and pip are wanted only where Ray has to be fetched.
ensure_ray_tools() {
  [[ -n ${NLAUNCH_TEST_RAY:-} ]] || have_ray || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_RAY. Without Ray the tests that want it are skipped, and say so.
provide_ray() {
  [[ -z ${NLAUNCH_TEST_RAY:-} ]] || return 0
  if ! have_ray && ! fetch_venv "$RAY_VENV" "ray==$RAY_VERSION" "80 MB"; then
    say "PyPI cannot be reached: the tests with Ray are skipped (NLAUNCH_TEST_RAY=PATH names a Python environment that has it)"
    return 0
  fi
  export NLAUNCH_TEST_RAY=$PWD/$RAY_VENV
}
