#!/usr/bin/env bash
# From a fresh machine to a trained recommender: installs what is missing, builds, and trains
# Wide&Deep on the census data, first in one process, then as a cluster of daemons.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

out=${1:-out/quickstart}
if [[ -e "$out" ]]; then
  echo "quickstart.sh: '$out' is there from an earlier run: removing it"
  rm -rf "$out"
fi
mkdir -p "$out"

echo "== 1 of 4: packages"
scripts/install_deps.sh
echo "== 2 of 4: build (a few minutes the first time)"
scripts/build.sh release hdps hdps-scheduler hdps-server hdps-worker
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
Next (more in README.md and docs/operations.md):
  build/bin/hdps predict --job=examples/census/census.json --checkpoint=$out/cluster/checkpoint \\
      --data=examples/census/adult.test.gz | head
  build/bin/hdps inspect --checkpoint=$out/cluster/checkpoint
TXT
