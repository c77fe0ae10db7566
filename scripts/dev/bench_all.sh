#!/usr/bin/env bash
# Runs every benchmark, one JSON each, then draws the pictures and writes a page each: about 25
# minutes on two quiet cores. What stands on stderr is progress.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: scripts/dev/bench_all.sh --out=FOLDER [--quick] [--repeats=5] [--only="NAME NAME"] [--data=FILE]
  --out=FOLDER    gets NAME.json, NAME.txt, NAME.svg and NAME.md for each benchmark, and overview.svg
  --quick         smaller sizes
  --repeats=N     samples of each figure
  --only=NAMES    instead of all that hdps-bench --list prints, and peers: the same work on PyTorch,
                  plain and tuned (benchmarks/peers/setup.sh brings it; skipped without)
  --data=FILE     a Criteo TSV file, for the reader
TXT
}
fail() { echo "bench_all.sh: error: $1" >&2; exit 2; }

here=$(dirname "$(readlink -f "$0")")
bin=${HDPS_BIN:-$here/../../build/bin}
out='' only='' flags=() repeats=()
for argument in "$@"; do
  case "$argument" in
    --out=*) out=${argument#*=} ;;
    --only=*) only=${argument#*=} ;;
    --repeats=*) repeats=("$argument") flags+=("$argument") ;;
    --quick | --data=*) flags+=("$argument") ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument '$argument' (see --help)" ;;
  esac
done
[[ -n "$out" ]] || fail "--out=FOLDER is missing (see --help)"
[[ -x "$bin/hdps-bench" ]] || fail "no hdps-bench in $bin; build first (scripts/build.sh) or set HDPS_BIN"
mkdir -p "$out"
[[ -n "$only" ]] || only="$("$bin/hdps-bench" --list | awk '{print $1}') peers"

failed=''
for name in $only; do
  echo "== $name, $(date +%H:%M:%S)" >&2
  rm -f "$out/$name.json" # Where it is left out, the picture is not to show an earlier evening's.
  if [[ "$name" == peers ]]; then
    "$here/../../benchmarks/peers/compare.py" --bin="$bin" "${repeats[@]}" --json="$out/peers.json" || failed+=" peers"
  elif "$bin/hdps-bench" "$name" --json="$out/$name.json" "${flags[@]}" >"$out/$name.txt"; then
    cat "$out/$name.txt"
    # Without a GPU `device` measures nothing.
    [[ ! -f "$out/$name.json" ]] || "$here/plot_bench.py" "$out/$name.json" --out="$out" >&2
  else
    failed+=" $name"
  fi
done
shopt -s nullglob
files=("$out"/*.json)
if ((${#files[@]} > 0)); then
  "$here/plot_overview.py" "${files[@]}" --out="$out/overview.svg" >&2
  pages=()
  for file in "${files[@]}"; do [[ "$file" == */peers.json ]] || pages+=("$file"); done
  ((${#pages[@]} == 0)) || "$here/results_page.py" "${pages[@]}" --out="$out" --bench="$bin/hdps-bench" >&2
fi
echo "== done, $(date +%H:%M:%S); $out" >&2
[[ -z "$failed" ]] || { echo "bench_all.sh: error: failed:$failed" >&2; exit 3; }
