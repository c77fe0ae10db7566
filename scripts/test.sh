#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests for a change: every test, of long ones a share.
#   scripts/test.sh [--full] [ARGUMENT OF CTEST...]
#   --full   all of every test, which takes hours; docs/records/night.md lists what that adds
# Prints at the end what was left out, and why. With arguments, as -R name, it runs only those tests.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

export HDPS_TESTS=share
if [[ ${1:-} == --full ]]; then
  export HDPS_TESTS=all
  shift
fi
# Core seconds: the mean of a step in a build from nothing, and of all tests together (time ctest).
step_seconds=2 share_seconds=2800
cores=$(nproc)

scripts/install_deps.sh --tests
if (($# == 0)); then
  steps=$(scripts/build.sh release -n | grep -c '^\[' || true)
  build_minutes=$((steps * step_seconds / cores / 60 + 1))
  tests="$((share_seconds / cores / 60 + 1)) minutes of tests"
  [[ $HDPS_TESTS == share ]] || tests="hours of tests"
  echo "test.sh: about $build_minutes minutes of building and $tests, on $cores cores with nothing else to do"
fi
scripts/build.sh release
echo "test.sh: running the tests"
# Two tests more than there are cores: some start whole clusters, but many wait for a limit to pass.
results=build/test_results.xml
keep=()
(($#)) || keep=(--output-junit "$PWD/$results" --test-output-size-passed 100000)
status=0
ctest --test-dir build --output-on-failure -j "$((cores + 2))" --no-tests=error "${keep[@]}" "$@" || status=$?
if (($# == 0)); then
  echo
  echo "What the tests measured, and what was left out (all that they printed: $results):"
  python3 scripts/dev/test_summary.py "$results"
fi
((status == 0)) || echo "test.sh: ctest ended with status $status"
exit "$status"
