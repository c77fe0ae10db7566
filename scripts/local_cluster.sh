#!/usr/bin/env bash
# Runs a job as daemons on this machine: one scheduler, M servers, N workers. Its exit status is the
# job's, and nothing is left running, whatever happens.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: scripts/local_cluster.sh --job=FILE --out=DIR [--servers=1] [--workers=1] [options]
  --set=KEY=VALUE,...   override fields of the job file
  --threads=N           threads of each server and worker (0 = one a core)
  --expected_rows=N     rows of each table in all: servers foresee their memory in their logs
  --max_bad_rows=N      pass over this many bad rows of the data (default: the job file's, 0)
  --resume=auto|never   continue from a checkpoint found in DIR (default auto)
  --log=LEVEL           info, warning or error
  --transport=tcp|ipc   between the processes (default tcp)
  --node-rank=R         this machine's number when the job spans several: 0 runs the scheduler
  --listen=ADDRESS      with --node-rank=0: where the scheduler listens
  --scheduler=ADDRESS   with --node-rank above 0: where the scheduler is
  --total-servers=M, --total-workers=N   over all machines (default: those of this one)
  --insecure            allow addresses beyond loopback
Logs are in DIR/log, process numbers in DIR/pid while they run.
TXT
}
fail() { echo "local_cluster.sh: error: $1" >&2; exit 2; }

here=$(dirname "$(readlink -f "$0")")
bin=${HDPS_BIN:-}
if [[ -z "$bin" ]]; then
  for candidate in "$here/../build/bin" "$here/../bin" "$here/bin"; do
    [[ -x "$candidate/hdps-scheduler" ]] && bin=$(readlink -f "$candidate") && break
  done
fi
[[ -n "$bin" ]] || fail "no hdps-scheduler found; build first (scripts/build.sh) or set HDPS_BIN"

job='' out='' servers=1 workers=1 total_servers='' total_workers='' node_rank=0 transport=tcp
listen='' scheduler='' common=() scheduler_flags=() member_flags=() server_flags=() worker_flags=()
for argument in "$@"; do
  value=${argument#*=}
  case "$argument" in
    --job=*) job=$value ;;
    --out=*) out=$value ;;
    --servers=*) servers=$value ;;
    --workers=*) workers=$value ;;
    --total-servers=*) total_servers=$value ;;
    --total-workers=*) total_workers=$value ;;
    --node-rank=*) node_rank=$value ;;
    --transport=*) transport=$value ;;
    --listen=*) listen=$value ;;
    --scheduler=*) scheduler=$value ;;
    --set=* | --log=*) common+=("$argument") ;;
    --insecure) common+=(--insecure) ;;
    --resume=*) scheduler_flags+=("$argument") ;;
    --threads=*) member_flags+=("$argument") ;;
    --expected_rows=*) server_flags+=("$argument") ;;
    --max_bad_rows=*) worker_flags+=("$argument") ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument '$argument' (see --help)" ;;
  esac
done
[[ -n "$job" ]] || fail "--job=FILE is missing (see --help)"
[[ -n "$out" ]] || fail "--out=DIR is missing (see --help)"
[[ -f "$job" ]] || fail "--job: there is no file '$job'"
for count in "$servers" "$workers" "$node_rank" "${total_servers:-0}" "${total_workers:-0}"; do
  [[ "$count" =~ ^[0-9]+$ ]] || fail "'$count' is not a count"
done
total_servers=${total_servers:-$servers} total_workers=${total_workers:-$workers}
((total_servers >= 1 && total_workers >= 1)) || fail "a job needs at least one server and one worker"
((node_rank == 0)) || [[ -n "$scheduler" ]] || fail "--node-rank=$node_rank needs --scheduler=ADDRESS"

mkdir -p "$out/log" "$out/pid" || fail "cannot write into --out=$out"
out=$(readlink -f "$out")
runtime=$(mktemp -d)
declare -A name_of=()
scheduler_pid=''

# Ends whatever still runs: first politely, after ten seconds by force.
# shellcheck disable=SC2317  # Called by the trap.
clean_up() {
  trap - EXIT
  trap '' INT TERM
  local alive=("${!name_of[@]}")
  if ((${#alive[@]})); then
    kill -TERM "${alive[@]}" 2>/dev/null || true
    for _ in $(seq 100); do
      kill -0 "${alive[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${alive[@]}" 2>/dev/null || true
  fi
  rm -rf "$runtime"
}
trap clean_up EXIT
# Told to stop, the scheduler drains the job, checkpoints it and ends all members.
trap '[[ -n "$scheduler_pid" ]] && kill -TERM "$scheduler_pid" 2>/dev/null || exit 130' INT TERM

start() { # NAME PROGRAM ARGUMENT...
  local name=$1 program=$2
  shift 2
  "$bin/$program" --job="$job" --pid_file="$out/pid/$name.pid" --log_file="$out/log/$name.log" \
    "${common[@]}" "$@" 2>"$runtime/$name.err" >"$runtime/$name.out" </dev/null &
  name_of[$!]=$name
}

if ((node_rank == 0)); then
  default_listen=tcp://127.0.0.1:0
  [[ "$transport" == ipc ]] && default_listen=ipc://$runtime/scheduler
  # The scheduler owns the terminal: its progress line is the job's.
  "$bin/hdps-scheduler" --job="$job" --out="$out" --servers="$total_servers" \
    --workers="$total_workers" --listen="${listen:-$default_listen}" \
    --address_file="$runtime/address" --pid_file="$out/pid/scheduler.pid" \
    --log_file="$out/log/scheduler.log" "${common[@]}" "${scheduler_flags[@]}" </dev/null &
  scheduler_pid=$!
  name_of[$scheduler_pid]=scheduler
  while [[ ! -s "$runtime/address" ]]; do
    if ! kill -0 "$scheduler_pid" 2>/dev/null; then
      status=0
      wait "$scheduler_pid" || status=$?
      unset "name_of[$scheduler_pid]"
      exit "$status"
    fi
    sleep 0.02
  done
  scheduler=$(<"$runtime/address")
fi
for ((s = 0; s < servers; s++)); do
  server_listen=tcp://127.0.0.1:0
  [[ "$transport" == ipc ]] && server_listen=ipc://$runtime/server_$s
  rank=()
  ((total_servers == servers)) && rank=(--rank="$s") # Then server_N.log is the log of server N.
  start "server_$s" hdps-server "${rank[@]}" --scheduler="$scheduler" --listen="$server_listen" \
    --servers="$total_servers" --workers="$total_workers" --spill_path="$out/spill" \
    "${member_flags[@]}" "${server_flags[@]}"
done
for ((w = 0; w < workers; w++)); do
  rank=()
  ((total_workers == workers)) && rank=(--rank="$w")
  start "worker_$w" hdps-worker "${rank[@]}" --scheduler="$scheduler" --servers="$total_servers" \
    --workers="$total_workers" "${member_flags[@]}" "${worker_flags[@]}"
done

# True once the process has ended; waits up to SECONDS for it.
ended_within() { # SECONDS PID
  for _ in $(seq $(($1 * 20))); do
    kill -0 "$2" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}

# Wait for all. The first process that fails names the cause; the scheduler's status is the job's,
# unless it waits for a member that will never come.
status=0 first_failure=''
while ((${#name_of[@]})); do
  code=0 ended=''
  wait -n -p ended "${!name_of[@]}" || code=$?
  [[ -n "${ended:-}" ]] || continue # A signal arrived: the trap has seen to it.
  name=${name_of[$ended]}
  unset "name_of[$ended]"
  if [[ "$name" == scheduler ]]; then
    status=$code
    break
  fi
  ((code == 0)) && continue
  ((code > status)) && status=$code
  [[ -n "$first_failure" ]] && continue
  first_failure=$name
  echo "local_cluster.sh: $name ended with status $code; its last words:" >&2
  tail -n 5 "$runtime/$name.err" >&2
  if [[ -n "$scheduler_pid" ]] && ! ended_within 3 "$scheduler_pid"; then
    exit "$status"
  fi
done
# Members end by themselves once the scheduler has said so; clean_up sees to those that do not.
for pid in "${!name_of[@]}"; do
  ended_within 5 "$pid" || true
done
exit "$status"
