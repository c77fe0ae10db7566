#!/usr/bin/env bash
# Runs what takes too long for each change: every test in full, many more seeds, every test under both
# sanitizers, every benchmark once. Writes its result into docs/records/night.md. The variables below set the
# amounts; with arguments it runs only steps whose names contain one of them.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 3
# shellcheck source=scripts/dev/gates.sh
. scripts/dev/gates.sh

export HDPS_TESTS=${HDPS_TESTS:-all}                # Or share, as in .ci/run.
export HDPS_KILLS=${HDPS_KILLS:-50}                 # Of each kind, in failover_test.py.
export HDPS_TWO_KILLS=${HDPS_TWO_KILLS:-200}        # Times, in two_kills_test.py.
export HDPS_NAMES_SECONDS=${HDPS_NAMES_SECONDS:-60} # Of strangers in members' names, in names_test.py.
export HDPS_FLOOD_SECONDS=${HDPS_FLOOD_SECONDS:-60} # Of each flood of strangers, in flood_test.py.
export HDPS_KAFKA_MESSAGES=${HDPS_KAFKA_MESSAGES:-1000000} # In kafka_test.py.
export HDPS_SOAK_SECONDS=${HDPS_SOAK_SECONDS:-3600} # Of each soak, in soak_test.py.
seeds_factor=${HDPS_SEEDS_FACTOR:-20}               # Of the seeds of each simulation.
sanitized=${HDPS_SANITIZED:-all}                    # Or a share.
fuzz_seconds=${HDPS_FUZZ_SECONDS:-3600}             # Of each target, two at once.
benchmarks=${HDPS_BENCHMARKS:-}                     # Their names; none: every one.
tests() {
  if [[ $HDPS_TESTS == all ]]; then scripts/test.sh --full; else scripts/test.sh; fi
}
many_seeds() {
  build/bin/sim_test "--sim_seeds_factor=$seeds_factor" --gtest_filter='-*Mixed*' &&
    HDPS_SIM_SEEDS=$((2500 * seeds_factor)) build/bin/sim_test --gtest_filter='*Mixed*'
}
other_order() { build/cuda_on_cpu/cuda_jobs_on_cpu_test --gtest_random_seed=2; }
benchmarks() {
  scripts/dev/bench_all.sh --out=build/night_bench --quick --repeats=1 --only="$benchmarks"
}

rm -f build/test_results.xml # Figures are those of this night.
chosen=("$@")
packages() { scripts/dev/package.sh && scripts/dev/package_check.py --all; }
run_step() { # NAME COMMAND...
  local word
  for word in "${chosen[@]}"; do
    [[ "$1" == *"$word"* ]] && step "$@" && return
  done
  ((${#chosen[@]})) || step "$@"
}

run_step 'packages' scripts/install_deps.sh --developer
run_step "build and tests, $HDPS_TESTS" tests
run_step "simulation, $seeds_factor times the seeds" many_seeds
run_step 'whole jobs with device code on the CPU, in another order of threads and streams' other_order
run_step "benchmarks, ${benchmarks:-all}, each case once" benchmarks
run_step "address and undefined behaviour sanitizers, $sanitized" scripts/dev/sanitized.sh asan "$sanitized"
run_step "thread sanitizer, $sanitized" scripts/dev/sanitized.sh tsan "$sanitized"
run_step 'the same bytes twice' scripts/dev/reproducible.sh all
run_step "Debian's packages, all of them in a fresh root" packages
run_step "fuzzing, $fuzz_seconds s each" scripts/dev/fuzz.sh "$fuzz_seconds"
((${#said[@]})) || { echo "night.sh: error: no step's name holds '$*'" >&2; exit 2; }
how="$HDPS_KILLS kills of each kind, soaks of $HDPS_SOAK_SECONDS s"
printf '%s\n' "${said[@]}" | scripts/dev/night_record.py docs/records/night.md "$how" build/test_results.xml
finish
