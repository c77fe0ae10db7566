#!/usr/bin/env bash
# Makes the virtual environment with the PyTorch that benchmarks/peers/compare.py compares with; quick
# when it is there.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
venv=$root/build/peers_venv
packages=(torch==2.15.0 numpy)

usage() {
  cat <<TXT
usage: benchmarks/peers/setup.sh [--venv=FOLDER]
  --venv=FOLDER  where it is made (default $venv)
What is installed comes from PyPI: ${packages[*]}, about 5 GiB with the libraries for GPUs that this
PyTorch needs to start; minutes. Another index is chosen as pip has it, by PIP_INDEX_URL.
TXT
}
for argument in "$@"; do
  case "$argument" in
    --venv=?*) venv=${argument#*=} ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: error: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# Says which PyTorch is there; fails where none is, or one of another version.
there() {
  "$venv/bin/python" -m pip freeze 2>/dev/null | grep -q -- "^${packages[0]}" &&
    "$venv/bin/python" -c 'import numpy, torch; print("PyTorch", torch.__version__)' 2>/dev/null
}
size() { du -sh "$venv" | cut -f1; }

if version=$(there); then
  echo "setup.sh: $version is there already: $venv, $(size)"
  exit 0
fi
python3 -c 'import ensurepip, venv' 2>/dev/null || {
  echo "setup.sh: error: $(command -v python3 || echo python3) has no venv; scripts/install_deps.sh --peers brings it" >&2
  exit 2
}
echo "setup.sh: installing ${packages[*]} into $venv, about 5 GiB"
mkdir -p "$(dirname "$venv")"
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
version=$(there) || {
  echo "setup.sh: error: ${packages[*]} were installed into $venv, but cannot be imported:" >&2
  "$venv/bin/python" -c 'import numpy, torch' >&2 || true
  exit 3
}
echo "setup.sh: $version, $venv, $(size), $SECONDS s"
