# shellcheck shell=bash
# A real Ray for the tests, in a separate Python environment.

RAY_VERSION=2.60.0
RAY_VENV=.test-cache/ray

# Also false in a tree that was moved, because the environment contains its absolute path.
have_ray() { [[ $("$RAY_VENV/bin/ray" --version 2>/dev/null) == "ray, version $RAY_VERSION" ]]; }

# venv and pip are needed only if Ray has to be downloaded.
ensure_ray_tools() {
  [[ -n ${NLAUNCH_TEST_RAY:-} ]] || have_ray || ensure_packages python3-venv
}

# Exports NLAUNCH_TEST_RAY. Without Ray the tests that need it are skipped with a message.
provide_ray() {
  [[ -z ${NLAUNCH_TEST_RAY:-} ]] || return 0
  if ! have_ray && ! fetch_venv "$RAY_VENV" "ray==$RAY_VERSION" "80 MB"; then
    say "cannot reach PyPI: skipping the tests with Ray (to use a Python environment that has it: NLAUNCH_TEST_RAY=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_RAY=$PWD/$RAY_VENV
}
