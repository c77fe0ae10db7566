#!/usr/bin/env bash
# Makes the virtual environment with PyTorch for benchmarks/peers/compare.py; quick if it exists.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
venv=$root/build/peers_venv

usage() {
  cat <<TXT
usage: benchmarks/peers/setup.sh [--venv=FOLDER] [--all]
  --venv=FOLDER  where it is made (default $venv)
  --all          also FOLDER_fbgemm, with FBGEMM's fused tables and the PyTorch that they are built for
An environment takes about 5 GiB, with the libraries for GPUs that PyTorch of PyPI needs to start, and
minutes. Another index is chosen as pip has it, by PIP_INDEX_URL.
TXT
}
all=false
for argument in "$@"; do
  case "$argument" in
    --venv=?*) venv=${argument#*=} ;;
    --all) all=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: error: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# Prints the version of PyTorch; fails if a module is missing or has another version.
there() { # FOLDER TORCH MODULES
  "$1/bin/python" -c "import $3; print('PyTorch', torch.__version__)" 2>/dev/null |
    grep -E "^PyTorch $2([.+]|$)"
}

# Nothing to do if it exists.
make_venv() { # FOLDER TORCH MODULES PACKAGE...
  local folder=$1 torch=$2 modules=$3 version began=$SECONDS
  if version=$(there "$folder" "$torch" "$modules"); then
    echo "setup.sh: $version is there already: $folder, $(du -sh "$folder" | cut -f1)"
    return
  fi
  echo "setup.sh: installing ${*:4} into $folder, about 5 GiB"
  mkdir -p "$(dirname "$folder")"
  python3 -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${@:4}"
  version=$(there "$folder" "$torch" "$modules") || {
    echo "setup.sh: error: ${*:4} were installed into $folder, but 'import $modules' fails there:" >&2
    "$folder/bin/python" -c "import $modules" >&2 || true
    exit 3
  }
  echo "setup.sh: $version, $folder, $(du -sh "$folder" | cut -f1), $((SECONDS - began)) s"
}

python3 -c 'import ensurepip, venv' 2>/dev/null || {
  echo "setup.sh: error: $(command -v python3 || echo python3) has no venv; scripts/install_deps.sh --peers brings it" >&2
  exit 2
}
make_venv "$venv" 2.15.0 'numpy, torch' torch==2.15.0 numpy
if $all; then
  make_venv "${venv}_fbgemm" 2.14 'numpy, torch, fbgemm_gpu' 'torch==2.14.*' numpy fbgemm-gpu-cpu==1.9.0
fi
