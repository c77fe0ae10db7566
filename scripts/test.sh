#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to ctest, as in -R name.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

scripts/install_deps.sh
scripts/build.sh release
echo "test.sh: running the tests"
# Some tests start whole clusters: no more of them at once than there are cores.
ctest --test-dir build --output-on-failure -j "$(nproc)" --no-tests=error "$@"
