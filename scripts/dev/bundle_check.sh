#!/usr/bin/env bash
# Unpacks the bundle into an empty folder and trains the census job there, with nothing of this
# checkout and no library beyond the C library and what the bundle brings.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
bundle=$(readlink -f "${1:-$here/../../build/hdps-bundle.tar.xz}")
[[ -f "$bundle" ]] || { echo "bundle_check.sh: error: no bundle at $bundle; run scripts/dev/bundle.sh" >&2; exit 2; }
folder=$(mktemp -d 2>/dev/null) ||
  { echo "bundle_check.sh: error: nothing can be written in ${TMPDIR:-/tmp}; set TMPDIR" >&2; exit 2; }
trap 'rm -rf "$folder"' EXIT
tar -C "$folder" -xJf "$bundle"
cd "$folder/hdps"

# Every library a program loads is the bundle's own, the C library's, or CUDA's.
machine='^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util)|libcuda.*|libcublas.*|libcudart.*|libnvidia.*)\.so'
foreign=$(for program in bin/* tests/*; do ldd "$program"; done |
  awk '{name = $1; sub(".*/", "", name); place = ($2 == "=>") ? $3 : $1; print name, place}' |
  sort -u | while read -r name place; do
    [[ "$name" =~ $machine || "$place" == "$folder"/* ]] || echo "$name from $place"
  done)
[[ -z "$foreign" ]] || { printf 'bundle_check.sh: error: not in the bundle: %s\n' "$foreign" >&2; exit 3; }

"$here/hardened.py" bin/*
# What the bundle brings for the programs is in its bill of materials.
unlisted=$(ldd bin/* | awk -v own="$folder/" 'index($3, own) {print $1}' | sort -u | while read -r library; do
  grep -qF "\"./lib/$library\"" hdps.spdx.json || echo "$library"
done)
[[ -z "$unlisted" ]] || { printf 'bundle_check.sh: error: not in hdps.spdx.json: %s\n' "$unlisted" >&2; exit 3; }

env -i PATH=/usr/bin:/bin ./local_cluster.sh --job=examples/census/census.json --out="$folder/out" \
  --servers=2 --workers=2
env -i PATH=/usr/bin:/bin ./gpu_check.sh --dry_run

# A job on Parquet names what is missing and the mend, and the mend helps.
if [[ -e lib/hdps/libhdps_parquet.so ]]; then
  cp "$here/../../tests/worker/data/records/files/rows.parquet" "$folder/"
  cat >"$folder/rows.json" <<'JSON'
{"data": {"format": "parquet", "train": ["rows.parquet"], "columns": [{"name": "click", "type": "label"}, {"name": "user"}]},
 "model": {"type": "logistic"}}
JSON
  train=(env -i PATH=/usr/bin:/bin bin/hdps train --job="$folder/rows.json" --out="$folder/rows")
  status=0
  said=$("${train[@]}" 2>&1) || status=$?
  mend=$(sed -n 's/.*\(install_parquet.sh --into=[^ ]*\) puts the libraries.*/\1/p' <<<"$said" | head -n 1)
  [[ $status == 2 && -n $mend ]] ||
    { echo "bundle_check.sh: error: status $status, expected 2 and a mend for Parquet: $said" >&2; exit 3; }
  if [[ -e $("$here/../install_parquet.sh" --folder)/pyarrow/libparquet.so ]]; then
    "./install_parquet.sh" "${mend#* }"
    said=$("${train[@]}" 2>&1) || { echo "bundle_check.sh: error: Parquet is not read after its mend: $said" >&2; exit 3; }
    echo "bundle_check: Parquet files are read after $mend"
  fi
fi
env -i PATH=/usr/bin:/bin python3 - "$folder/out/summary.json" "$(stat -c %s "$bundle")" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1]))
print(f"bundle_check: {int(sys.argv[2]) / 2**20:.1f} MiB; census from the bundle: AUC {summary['eval_auc']:.4f}")
sys.exit(0 if summary["eval_auc"] >= 0.912 else 3)
PY
