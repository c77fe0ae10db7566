#!/usr/bin/env bash
# Draws docs/strategy.svg: the census job with a wider tower, its strategy over four workers. Needs graphviz.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
command -v dot >/dev/null || { echo "strategy_picture: no dot; apt-get install graphviz" >&2; exit 2; }
graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
"${HDPS_BIN:-build/bin}/hdps" plan --job=examples/census/census.json --strategy --workers=4 --dot="$graph" \
  "--set=parallel.dense_exchange=allreduce,parallel.parallel_mode=auto_parallel,model.hidden=[1024,512],train.batch_size=256"
dot -Tsvg "$graph" >docs/strategy.svg
