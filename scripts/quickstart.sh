#!/usr/bin/env bash
# From a fresh machine to a trained recommender: installs what is missing, builds, and trains
# Wide&Deep on the census data, first in one process, then as a cluster of daemons.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Of the build from nothing, as scripts/dev/build_cost.py measures it: docs/records/results.md.
processor_minutes=10
usage="usage: scripts/quickstart.sh [--cuda=auto|on|off] [FOLDER]
  --cuda  device code for this machine's GPU; auto (default): where there is one
  FOLDER  where the results go; default out/quickstart"
fail() { printf 'quickstart.sh: error: %s\n' "$*" >&2; exit 2; }

cuda=auto out=out/quickstart
for argument in "$@"; do
  case "$argument" in
    --cuda=auto | --cuda=on | --cuda=off) cuda=${argument#*=} ;;
    -h | --help) echo "$usage"; exit 0 ;;
    -*) printf '%s\n' "quickstart.sh: error: unknown argument '$argument'" "$usage" >&2; exit 2 ;;
    *) out=$argument ;;
  esac
done

# Only what an earlier run left is removed.
if [[ -e "$out" || -L "$out" ]]; then
  [[ -d "$out" ]] || fail "'$out' is there and no folder; name another"
  others=$(find "$out/" -mindepth 1 -maxdepth 1 ! -name embedded ! -name cluster)
  if [[ -n "$others" ]] || { [[ -e "$out/embedded" || -e "$out/cluster" ]] && [[ ! -f "$out/embedded/summary.json" ]]; }; then
    fail "'$out' holds something other than an earlier run's embedded/ and cluster/; name another folder or remove it"
  fi
  rm -rf "$out/embedded" "$out/cluster"
fi
mkdir -p "$out"

gpu() { [[ -e /dev/nvidia0 ]] || { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }; }
device=(-DHDPS_CUDA=ON -DHDPS_CUDA_ARCHITECTURES=native)
if [[ "$cuda" == off ]]; then
  device=(-DHDPS_CUDA=OFF) said="without device code, as --cuda=off says"
elif gpu; then
  said="with device code for this machine's GPU; --cuda=off leaves it out"
elif [[ "$cuda" == on ]]; then
  device=(-DHDPS_CUDA=ON) said="with device code, as --cuda=on says, though this machine shows no GPU"
elif [[ -x build/bin/hdps ]] && grep -q '^HDPS_CUDA:BOOL=ON$' build/CMakeCache.txt; then
  device=() said="as build/ was configured before; --cuda=off leaves device code out"
else
  device=(-DHDPS_CUDA=OFF) said="without device code: this machine shows no GPU; --cuda=on brings it"
fi
if [[ "$cuda" == on || "$said" == with\ * ]] && ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  [[ "$cuda" != on ]] || fail "--cuda=on needs CUDA's compiler, and there is no nvcc; install CUDA 12 or newer, or leave --cuda=on out"
  device=(-DHDPS_CUDA=OFF) said="without device code: there is a GPU but no nvcc; CUDA 12 or newer brings it"
fi
cores=$(nproc)

echo "== 1 of 4: packages"
scripts/install_deps.sh
echo "== 2 of 4: build, $said"
echo "about $(((processor_minutes + cores - 1) / cores)) minutes the first time on $cores quiet cores ($processor_minutes minutes of processor time)"
scripts/build.sh release "${device[@]}" hdps hdps-scheduler hdps-server hdps-worker
echo "== 3 of 4: Wide&Deep on census data, the whole cluster in one process"
build/bin/hdps train --job=examples/census/census.json --out="$out/embedded" \
  --servers=2 --workers=2
echo "== 4 of 4: the same job as daemons: a scheduler, two servers, two workers"
scripts/local_cluster.sh --job=examples/census/census.json --out="$out/cluster" \
  --servers=2 --workers=2

python3 - "$out" <<'PY'
import json, sys
out = sys.argv[1]
print()
print(f"{'':10} {'test AUC':>9} {'logloss':>8} {'steps':>6} {'examples/s':>11} {'seconds':>8}  digest")
digests = set()
for form in ("embedded", "cluster"):
    s = json.load(open(f"{out}/{form}/summary.json"))
    digests.add(s["digest"])
    print(f"{form:10} {s['eval_auc']:9.4f} {s['eval_logloss']:8.4f} {s['steps']:6} "
          f"{s['examples_per_second']:11,.0f} {s['wall_seconds']:8.1f}  {s['digest'][:16]}")
print("Both forms trained the same parameters, bit for bit." if len(digests) == 1
      else "ERROR: the two forms trained different parameters.")
sys.exit(0 if len(digests) == 1 else 3)
PY
cat <<TXT

Everything is in $out/cluster: summary.json, metrics.jsonl, log/, checkpoint/
Next (more in README.md and docs/README.md):
  build/bin/hdps predict --job=examples/census/census.json --checkpoint=$out/cluster/checkpoint \\
      --data=examples/census/adult.test.gz | head
  build/bin/hdps inspect --checkpoint=$out/cluster/checkpoint
TXT
