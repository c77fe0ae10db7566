#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh [release|debug|asan|tsan|fuzz] [TARGET...]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

preset=${1:-release}
shift || true
case "$preset" in
  release) folder=build ;;
  debug | asan | tsan | fuzz) folder=build/$preset ;;
  *) echo "build.sh: error: no preset '$preset'; there are release, debug, asan, tsan, fuzz" >&2; exit 2 ;;
esac
mkdir -p "$folder"
log=$folder/configure.log
# Once configured, ninja itself notices what asks for configuring again.
if [[ ! -f "$folder/build.ninja" ]] && ! cmake --preset "$preset" >"$log" 2>&1; then
  tail -n 25 "$log" >&2
  echo "build.sh: error: configuring '$preset' failed; all of it is in $log" >&2
  exit 3
fi
grep 'hdps:' "$log" 2>/dev/null || true
ninja -C "$folder" "$@"
