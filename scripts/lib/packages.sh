# shellcheck shell=bash
# The Debian 12 packages for building and testing nlaunch, and how they are installed.

BUILD_PACKAGES=(
  g++ cmake ninja-build python3
  libboost1.81-dev libcli11-dev libfmt-dev nlohmann-json3-dev libhwloc-dev libyaml-cpp-dev libre2-dev zlib1g-dev libzstd-dev libssl-dev libseccomp-dev libncurses-dev libdw-dev libbz2-dev
  libfabric-dev libgloo-dev
)
# shellcheck disable=SC2034  # for those who source this file
TEST_PACKAGES=(
  "${BUILD_PACKAGES[@]}"
  libgtest-dev lmod python3-torch python3-numpy python3-jsonschema python3-yaml python3-prometheus-client zsh shellcheck git
  slurmctld slurmd slurm-client munge iproute2 zstd bubblewrap curl tmux
)
# What a release build needs in addition to the compilers that it downloads.
# shellcheck disable=SC2034
RELEASE_PACKAGES=(
  g++ g++-aarch64-linux-gnu cmake ninja-build make perl python3 python3-venv python3-six gperf unicode-data dpkg-dev debian-archive-keyring ca-certificates
  git patch xz-utils bzip2 zstd qemu-user-static
)

say() { printf '== %s\n' "$*"; }

# Prints the packages that are not installed, one per line.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

# Installs the missing packages. Without root it prints them with the command to install them, and exits.
ensure_packages() {
  local missing
  command -v dpkg-query >/dev/null || {
    echo "This is not Debian: install the equivalents of these Debian 12 packages and run cmake --preset release: $*" >&2
    exit 1
  }
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    {
      echo "Missing packages: ${missing[*]}"
      echo "Install them, then run this again:"
      echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}"
    } >&2
    exit 1
  fi
  say "installing ${missing[*]}"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
}

# Under sudo, starts the script again as the user who owns this tree, so that later files belong to that user.
leave_root() {
  ((EUID == 0)) && [[ -n ${SUDO_USER:-} && $SUDO_USER != root ]] || return 0
  [[ $(stat -c %U .) == "$SUDO_USER" ]] || return 0
  exec runuser -u "$SUDO_USER" -- "$@"
}
