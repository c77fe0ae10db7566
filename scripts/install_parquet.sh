#!/usr/bin/env bash
# Fetches Arrow C++, which reads Parquet files for hdps: the wheel of pyarrow has its headers and libraries. It is quick
# if they are there.
#   scripts/install_parquet.sh               into ~/.cache/hdps (or $XDG_CACHE_HOME/hdps), where CMake looks for it;
#                                            then build again: libhdps_parquet.so comes beside the programs
#   scripts/install_parquet.sh --into=FOLDER also puts the libraries that libhdps_parquet.so loads into FOLDER
#   scripts/install_parquet.sh --folder      prints where the headers and libraries are, and installs nothing
# Needs PyPI, Python and its module venv.
set -euo pipefail

# The interface in C++ changes with the major version, and the module is compiled against this one. The wheel is that
# for CPython 3.11, whatever Python is here: its libraries do not depend on Python.
version=26.0.1 python=3.11 platform=manylinux_2_28_x86_64
sha256=39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hdps
folder=$cache/pyarrow-$version
into=
case "${1:-}" in
  "") ;;
  --folder) echo "$folder" && exit ;;
  --into=*)
    into=${1#--into=}
    [[ -d $into ]] || { echo "install_parquet.sh: error: --into='$into': expected a folder" >&2; exit 2; }
    ;;
  *) echo "usage: install_parquet.sh [--folder | --into=FOLDER]" >&2; exit 2 ;;
esac
fetch() { # FOLDER
  if ! python3 -m venv "$1/venv" >"$1/log" 2>&1; then
    tail -n 3 "$1/log" >&2
    echo "install_parquet.sh: error: python3 -m venv failed; apt install python3-venv" >&2
    return 3
  fi
  echo "pyarrow==$version --hash=sha256:$sha256" >"$1/wanted.txt"
  if ! "$1/venv/bin/python" -m pip install --quiet --no-deps --only-binary :all: --disable-pip-version-check \
    --root-user-action=ignore --retries 1 --platform "$platform" --python-version "$python" --implementation cp \
    --require-hashes --target "$1/wheel" --requirement "$1/wanted.txt" >"$1/log" 2>&1; then
    tail -n 3 "$1/log" >&2
    echo "install_parquet.sh: error: PyPI did not give pyarrow $version; try again when it can be reached" >&2
    return 3
  fi
}

if [[ ! -e $folder/pyarrow/libparquet.so ]]; then
  mkdir -p "$cache"
  part=$(mktemp -d "$cache/fetched.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  fetch "$part"
  # The libraries' names end with their version, and a linker looks for names without one.
  for library in arrow parquet; do
    ln -sf "$(basename "$part"/wheel/pyarrow/lib$library.so.*)" "$part/wheel/pyarrow/lib$library.so"
  done
  rm -rf "$folder"
  mv "$part/wheel" "$folder"
  chmod 755 "$folder"
fi
if [[ -n $into ]]; then
  cp "$folder"/pyarrow/lib{arrow,parquet}.so.* "$into/"
  echo "Arrow C++ of pyarrow $version is in $into"
else
  echo "Arrow C++ of pyarrow $version is in $folder"
fi
