#!/usr/bin/env bash
# Fetches what the reader of Parquet files is built with: the wheel of pyarrow, which has the headers and libraries of
# Arrow C++. It is quick if they are there.
#   scripts/install_parquet.sh            into ~/.cache/hdps (or $XDG_CACHE_HOME/hdps), where CMake looks for it
#   scripts/install_parquet.sh --folder   prints that folder and installs nothing
# Needs PyPI. Then build again: libhdps_parquet.so comes beside the programs.
set -euo pipefail

# Its C++ interface changes with the major version, and the module is compiled against this one.
version=26.0.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hdps
folder=$cache/pyarrow-$version
case "${1:-}" in
  "") ;;
  --folder) echo "$folder" && exit ;;
  *) echo "usage: scripts/install_parquet.sh [--folder]" >&2; exit 2 ;;
esac

if [[ ! -e $folder/pyarrow/libparquet.so ]]; then
  for tool in python3 pip; do
    python3 -c "import ${tool/python3/sys}" 2>/dev/null && continue
    echo "install_parquet.sh: error: there is no $tool; apt install python3-pip" >&2
    exit 3
  done
  mkdir -p "$cache"
  part=$(mktemp -d "$cache/pyarrow.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  python3 -m pip install --quiet --no-deps --only-binary :all: --disable-pip-version-check --root-user-action=ignore \
    --target "$part" "pyarrow==$version"
  # The wheel has the libraries by their versions alone, by which a linker does not look.
  for library in arrow parquet; do
    ln -sf "$(basename "$part"/pyarrow/lib$library.so.*)" "$part/pyarrow/lib$library.so"
  done
  rm -rf "$folder"
  mv "$part" "$folder"
  chmod 755 "$folder"
fi
echo "Arrow C++ of pyarrow $version is in $folder"
