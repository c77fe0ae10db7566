#!/usr/bin/env bash
# All that takes too long for each change: every test in full, many more seeds, every test under both
# sanitizers, every benchmark once. Writes its result into docs/night.md.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 3
# shellcheck source=scripts/dev/gates.sh
. scripts/dev/gates.sh

seeds_factor=20
export HDPS_KILLS=50 # Of each kind, in tests/end_to_end/failover_test.py.
many_seeds() {
  build/bin/sim_test "--sim_seeds_factor=$seeds_factor" --gtest_filter='-*Mixed*' &&
    HDPS_SIM_SEEDS=50000 build/bin/sim_test --gtest_filter='*Mixed*'
}
benchmarks() { scripts/dev/bench_all.sh --out=build/night_bench --quick --repeats=1; }

step 'packages' scripts/install_deps.sh --developer
step 'build and every test in full' scripts/test.sh
step "simulation, $seeds_factor times the seeds" many_seeds
step 'every benchmark, each case once' benchmarks
step 'address and undefined behaviour sanitizers, all' scripts/dev/sanitized.sh asan all
step 'thread sanitizer, all' scripts/dev/sanitized.sh tsan all
printf '%s\n' "${said[@]}" | scripts/dev/night_record.py docs/night.md
finish
