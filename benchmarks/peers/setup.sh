#!/usr/bin/env bash
# Makes the virtual environments of the peers: PyTorch for benchmarks/peers/compare.py, onnxruntime and MLServer for
# benchmarks/peers/serving_peers.py; quick if they exist.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
venv=$root/build/peers_venv

usage() {
  cat <<TXT
usage: benchmarks/peers/setup.sh [--venv=FOLDER] [--all | --serving]
  --venv=FOLDER  where it is made (default $venv)
  --all          also FOLDER_fbgemm, with FBGEMM's fused tables and the PyTorch that they are built for
  --serving      only FOLDER_serving, with onnxruntime and MLServer, half a GiB
An environment with PyTorch takes about 5 GiB, with the libraries for GPUs that PyTorch of PyPI needs to start, and
minutes. Another index is chosen as pip has it, by PIP_INDEX_URL.
TXT
}
all=false serving=false
for argument in "$@"; do
  case "$argument" in
    --venv=?*) venv=${argument#*=} ;;
    --all) all=true ;;
    --serving) serving=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: error: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# Prints the version of the first module; fails if a module is missing or the first has another version.
there() { # FOLDER VERSION MODULES
  "$1/bin/python" -c "import $3; print('${3%%,*}', ${3%%,*}.__version__)" 2>/dev/null |
    grep -E "^[a-z]+ $2([.+]|$)"
}

# Nothing to do if it exists.
make_venv() { # FOLDER VERSION MODULES PACKAGE...
  local folder=$1 of_first=$2 modules=$3 version began=$SECONDS
  if version=$(there "$folder" "$of_first" "$modules"); then
    echo "setup.sh: $version is there already: $folder, $(du -sh "$folder" | cut -f1)"
    return
  fi
  echo "setup.sh: installing ${*:4} into $folder"
  mkdir -p "$(dirname "$folder")"
  python3 -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${@:4}"
  version=$(there "$folder" "$of_first" "$modules") || {
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
if $serving; then
  make_venv "${venv}_serving" 1.31.1 'onnxruntime, numpy, mlserver' onnxruntime==1.31.1 numpy mlserver==1.7.1 'uvloop==0.21.0'  # Workers of MLServer 1.7.1 do not start with a later uvloop.
  exit
fi
make_venv "$venv" 2.15.0 'torch, numpy' torch==2.15.0 numpy
if $all; then
  make_venv "${venv}_fbgemm" 2.14 'torch, numpy, fbgemm_gpu' 'torch==2.14.*' numpy fbgemm-gpu-cpu==1.9.0
fi
