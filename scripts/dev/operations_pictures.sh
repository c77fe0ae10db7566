#!/usr/bin/env bash
# Draws docs/doctor.svg and docs/why.svg from runs of the built programs with faults made on purpose.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
root=$PWD bin=${HDPS_BIN:-$PWD/build/bin} folder=/tmp/hdps_pictures
draw=$root/scripts/dev/terminal_picture.py
pids=()
cleanup() {
  if ((${#pids[@]} > 0)); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
  rm -rf "$folder"
}
trap cleanup EXIT
rm -rf "$folder"
mkdir -p "$folder"
cp -r examples/census "$folder"
cd "$folder"
PATH=$bin:$PATH

start() {
  "$@" >>daemons.log 2>&1 &
  pids+=($!)
  disown
}
# Waits until a command succeeds, at most a minute.
until_done() {
  local deadline=$((SECONDS + 60))
  until "$@"; do
    ((SECONDS < deadline)) || { echo "operations_pictures.sh: error: not within a minute: $*" >&2; exit 3; }
    sleep 0.1
  done
}

# A job whose second worker cannot open its data any more.
set=--set=train.epochs=100000,train.batch_size=4096,cluster.heartbeat_ms=100,cluster.dead_after_ms=60000
start hdps-scheduler --job=census/census.json --out=out "$set" --listen=tcp://127.0.0.1:0 \
  --address_file=address --servers=2 --workers=2
until_done test -s address
address=$(cat address)
for rank in 0 1; do
  start hdps-server --job=census/census.json "$set" --scheduler="$address" --rank=$rank --threads=1
  start hdps-worker --job=census/census.json "$set" --scheduler="$address" --rank=$rank --threads=1 \
    --faults="slow=adult.data.gz:8s@while=switch_$rank"
done
until_done test -s out/metrics.jsonl
touch switch_1
explained() { hdps why --scheduler="$address" >why.txt && grep -q '^server .*has read no example for [3-6]' why.txt; }
until_done explained
{ echo "\$ hdps why --scheduler=$address"; cat why.txt; } | "$draw" --columns=128 'hdps why' >"$root/docs/why.svg"

# A machine with too few open files, whose port has another owner: the scheduler.
doctor() {
  (ulimit -n 40; hdps doctor --job=census/census.json --out=fit --rows=20000 --servers=2 --workers=2 \
    --listen="$address") 2>/dev/null || true
}
{
  echo "\$ hdps doctor --job=census/census.json --out=fit --rows=20000 --servers=2 --workers=2 --listen=$address"
  doctor
} | "$draw" --columns=128 'hdps doctor' >"$root/docs/doctor.svg"
echo "operations_pictures: docs/why.svg and docs/doctor.svg are drawn"
