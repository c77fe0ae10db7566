#!/usr/bin/env bash
# Runs everything that needs a GPU in at most 8 minutes, and writes one JSON with all figures; the
# steps are in gpu_check.py. Works in an unpacked bundle and in a built checkout.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
if [[ -d "$here/bin" ]]; then # An unpacked bundle.
  folders=("--bin=$here/bin" "--tests=$here/tests" "--examples=$here/examples" "--peers=$here/peers")
else
  root=$here/../..
  folders=("--bin=$root/build/bin" "--tests=$root/build/bin" "--examples=$root/examples" "--peers=$root/benchmarks/peers")
fi
exec python3 "$here/gpu_check.py" "${folders[@]}" "$@"
