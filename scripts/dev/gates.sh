# shellcheck shell=bash
# What .ci/run and scripts/night.sh share: steps with a name and a time, and what failed at the end.
# Sourced, not run.
failed=()
said=()
step() { # NAME COMMAND...
  local name=$1 begin=$SECONDS verdict=ok
  shift
  echo "=== $name"
  "$@" || { verdict=FAILED; failed+=("$name"); }
  echo "=== $name: $verdict ($((SECONDS - begin)) s)"
  said+=("$name|$verdict|$((SECONDS - begin))")
}

finish() {
  echo "=== $((SECONDS / 60)) min $((SECONDS % 60)) s in all"
  if ((${#failed[@]})); then
    printf '=== FAILED: %s\n' "${failed[@]}"
    return 1
  fi
  echo "=== all gates passed"
}
