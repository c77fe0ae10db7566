#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to ctest, as in -R name.
# HDPS_TESTS=share leaves out what docs/night.md lists.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

scripts/install_deps.sh
scripts/build.sh release
echo "test.sh: running the tests"
# Some tests start whole clusters: no more of them at once than there are cores.
results=build/test_results.xml
keep=()
(($#)) || keep=(--output-junit "$PWD/$results" --test-output-size-passed 100000)
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" --no-tests=error "${keep[@]}" "$@" || status=$?
if (($# == 0)); then
  echo
  echo "What the tests measured (all that they printed: $results):"
  python3 scripts/dev/test_summary.py "$results"
fi
exit "$status"
