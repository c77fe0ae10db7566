#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to ctest, as in -R name.
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
  python3 - "$results" <<'PY'
import re, sys, xml.etree.ElementTree as tree
for test in tree.parse(sys.argv[1]).iter("testcase"):
    for line in re.findall(r"figure: (.*)", test.findtext("system-out") or ""):
        print(f"  {test.get('name')}: {line}")
PY
fi
exit "$status"
