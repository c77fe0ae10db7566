#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to ctest, as in -R name.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

scripts/install_deps.sh
scripts/build.sh release
echo "test.sh: running the tests"
# Some tests start whole clusters: no more of them at once than there are cores.
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" --no-tests=error "$@" || status=$?
log=build/Testing/Temporary/LastTest.log
if grep -q '^figure: \|\.\.\. figure: ' "$log" 2>/dev/null; then
  echo
  echo "What the tests measured (all of their output: $log):"
  grep -o 'figure: .*' "$log" | sed 's/^figure: /  /'
fi
exit "$status"
