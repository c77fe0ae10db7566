#!/usr/bin/env bash
# Builds and runs tests under a sanitizer: sanitized.sh asan|tsan share|all
# The share of asan is built by clang in the folder of the fuzz targets, which need the same libraries.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

fail() { echo "sanitized.sh: error: $1; usage: scripts/dev/sanitized.sh asan|tsan share|all" >&2; exit 2; }
preset=${1:-} part=${2:-}
[[ $part != all ]] || export HDPS_TESTS=all
folder=$preset
case "$preset:$part" in
  asan:share) target=asan_share label='\.asan' folder=fuzz ;;
  tsan:share) target=tsan_share label='\.tsan' ;;
  asan:all) target=asan_tests label='unit|simulation' ;;
  tsan:all) target=tsan_tests label='concurrent' ;;
  asan:* | tsan:*) fail "no part '$part'" ;;
  *) fail "no sanitizer '$preset'" ;;
esac
mkdir -p build
scripts/build.sh "$folder" "$target" >"build/$preset.log" 2>&1 || { tail -n 40 "build/$preset.log"; exit 1; }
ctest --test-dir "build/$folder" --output-on-failure -j "$(nproc)" --no-tests=error -L "$label"
