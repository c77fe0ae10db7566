# shellcheck shell=bash
# Functions for .ci/run and scripts/night.sh: they run named steps, time them, and repeat the failures
# at the end of the log, where they are easy to find. Sourced, not run.
failed=()
said=()
step_logs=${STEP_LOGS:-build/steps}
step_log() { echo "$step_logs/${1//[^a-zA-Z0-9]/_}.log"; } # NAME
step() { # NAME COMMAND...
  local name=$1 begin=$SECONDS verdict=ok
  shift
  echo "=== $name"
  mkdir -p "$step_logs"
  "$@" 2>&1 | tee "$(step_log "$name")"
  ((PIPESTATUS[0] == 0)) || { verdict=FAILED; failed+=("$name"); }
  echo "=== $name: $verdict ($((SECONDS - begin)) s)"
  said+=("$name|$verdict|$((SECONDS - begin))")
}

finish() {
  local name
  for name in "${failed[@]}"; do
    echo "=== $name FAILED with"
    scripts/dev/failed_step.py "$(step_log "$name")"
  done
  echo "=== $((SECONDS / 60)) min $((SECONDS % 60)) s in all"
  if ((${#failed[@]})); then
    for name in "${failed[@]}"; do
      echo "=== FAILED: $name"
      scripts/dev/failed_step.py --names "$(step_log "$name")"
    done
    return 1
  fi
  echo "=== all gates passed"
}
