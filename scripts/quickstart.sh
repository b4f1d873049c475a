#!/usr/bin/env bash
# From a fresh Debian 12 to a finished run: installs missing packages, builds nlaunch, and runs configs/quickstart.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib/packages.sh
source scripts/lib/build.sh

ensure_packages "${BUILD_PACKAGES[@]}"
leave_root "$PWD/scripts/quickstart.sh"
configure OFF
say "building nlaunch in build/"
ninja -C build src/all
say "build/bin/nlaunch run configs/quickstart.yaml"
build/bin/nlaunch run configs/quickstart.yaml
say "run directory: $(readlink -f runs/quickstart/latest)"
say "next: build/bin/nlaunch logs quickstart --role learner, or docs/running.md"
