#!/usr/bin/env bash
# Runs a job as daemons on this machine: one scheduler, M servers, N workers. Restarts processes that
# die, within limits. Exits with the job's status, and never leaves a process running.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: scripts/local_cluster.sh --job=FILE --out=DIR [--servers=1] [--workers=1] [options]
  --set=KEY=VALUE,...   override fields of the job file
  --threads=N           threads of each server and worker (0 = one a core)
  --expected_rows=N     rows of each table in all: servers foresee their memory in their logs
  --record=DIR          new folder where servers write the order of an async or ssp run, which hdps replay
                        trains again
  --max_bad_rows=N      pass over this many bad rows of the data (default: the job file's, 0)
  --resume=WHEN         auto (default): continue from a checkpoint found in DIR; never: refuse one;
                        changed: continue although settings differ, of those that may
  --tensorboard         also write the curves of the run to DIR/tensorboard
  --init=DIR            begin a run without a checkpoint from one of another job, or from safetensors files
  --restart=WHEN        on-failure (default): what was killed or ended with status 3 is started
                        again, later and later; never: it is not. With --node-rank above 0
                        only what was killed is started again
  --log=LEVEL           info, warning or error
  --transport=tcp|ipc   between the processes (default tcp)
  --node-rank=R         this machine's number when the job spans several: 0 runs the scheduler
  --listen=ADDRESS      with --node-rank=0: where the scheduler listens
  --scheduler=ADDRESS   with --node-rank above 0: where the scheduler is
  --total-servers=M, --total-workers=N   over all machines (default: those of this one)
  --worker_command=CMD  a program of your own in place of hdps-worker, for a job of model.type tables:
                        "python train.py"; it finds HDPS_SCHEDULER, HDPS_KEYS and RANK set
  --workers_come        start no workers: those of --workers join by themselves
  --first-server=K, --first-worker=K   ranks of those of this machine: K and on (default: the
                        scheduler picks where there are other machines)
  --spill_path=DIR      where servers put rows that memory has no room for (default DIR/spill)
  --watched=SECONDS     drain and end when standard input ends, says `stop`, or says nothing for
                        so long: whoever leads several machines by it is gone
  --host=ADDRESS        this machine's own address, as the others reach it (default 127.0.0.1)
  --keys=DIR            the job's keys, made by hdps keygen: every connection is authenticated
                        and encrypted
  --insecure-collective allow allreduce beyond loopback although it knows no keys
  --insecure            without keys: allow addresses beyond loopback
  --http=HOST:PORT      where the scheduler shows the job to browsers and monitoring (default
                        127.0.0.1:0); none: nowhere. --http_names, --http_token_file, --http_cert
                        and --http_key as hdps-scheduler --help says
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

job='' out='' restart=on-failure servers=1 workers=1 total_servers='' total_workers='' node_rank=0 transport=tcp
first_server='' first_worker='' spill='' watched='' init='' record='' worker_command='' workers_come='' program=()
host=127.0.0.1 listen='' scheduler='' http='' http_token='' common=() scheduler_flags=() member_flags=() server_flags=() worker_flags=()
for argument in "$@"; do
  value=${argument#*=}
  case "$argument" in
    --job=*) job=$value ;;
    --out=*) out=$value ;;
    --servers=*) servers=$value ;;
    --workers=*) workers=$value ;;
    --init=*) init=$value ;;
    --restart=*) restart=$value ;;
    --total-servers=*) total_servers=$value ;;
    --total-workers=*) total_workers=$value ;;
    --node-rank=*) node_rank=$value ;;
    --first-server=*) first_server=$value ;;
    --first-worker=*) first_worker=$value ;;
    --spill_path=*) spill=$value ;;
    --watched=*) watched=$value ;;
    --transport=*) transport=$value ;;
    --listen=*) listen=$value ;;
    --host=*) host=$value ;;
    --scheduler=*) scheduler=$value ;;
    --worker_command=*) worker_command=$value ;;
    --workers_come) workers_come=1 ;;
    --set=* | --log=*) common+=("$argument") ;;
    --keys=*) common+=("$argument") program+=(HDPS_KEYS="$value") ;;
    --insecure) common+=("$argument") ;;
    --insecure-collective) worker_flags+=(--insecure_collective) ;;
    --http=*) http=$value ;;
    --http_token_file=*) http_token=$value ;;
    --http_names=* | --http_cert=* | --http_key=* | --resume=* | --tensorboard) scheduler_flags+=("$argument") ;;
    --threads=*) member_flags+=("$argument") ;;
    --expected_rows=*) server_flags+=("$argument") ;;
    --record=*) record=$value server_flags+=("$argument") ;;
    --max_bad_rows=*) worker_flags+=("$argument") ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument '$argument' (see --help)" ;;
  esac
done
[[ -n "$job" ]] || fail "--job=FILE is missing (see --help)"
[[ -n "$out" ]] || fail "--out=DIR is missing (see --help)"
[[ -f "$job" ]] || fail "--job: there is no file '$job'"
[[ "$restart" == never || "$restart" == on-failure ]] ||
  fail "--restart=$restart: expected never or on-failure"
for count in "$servers" "$workers" "$node_rank" "${total_servers:-0}" "${total_workers:-0}" \
  "${first_server:-0}" "${first_worker:-0}" "${watched:-0}"; do
  [[ "$count" =~ ^[0-9]+$ ]] || fail "'$count' is not a count"
done
total_servers=${total_servers:-$servers} total_workers=${total_workers:-$workers}
[[ -z "$workers_come" ]] || workers=0
if [[ -n "$worker_command" ]]; then
  [[ -z "$workers_come" ]] || fail "--worker_command starts workers, and --workers_come none; give one of them"
  [[ -z "${worker_flags[*]}" ]] || fail "${worker_flags[*]} is for hdps-worker; leave it or --worker_command out"
  # A group of its own: Ctrl-C is the launcher's, and what the command starts ends with it.
  for tool in setsid setpriv; do
    type -P "$tool" >/dev/null || fail "--worker_command needs $tool, of the package util-linux"
  done
fi
# Of a job of this machine alone, server_N.log is that of server N.
((total_servers > servers)) || first_server=${first_server:-0}
((total_workers > workers)) || first_worker=${first_worker:-0}
((total_servers >= 1 && total_workers >= 1)) || fail "a job needs at least one server and one worker"
# Servers of other machines may have begun to write into the folder already.
if [[ -n "$record" ]] && ((total_servers == servers)) && compgen -G "$record/*.order" >/dev/null; then
  fail "--record=$record holds the record of another run; give a new folder"
fi
((node_rank == 0)) || [[ -n "$scheduler" ]] || fail "--node-rank=$node_rank needs --scheduler=ADDRESS"

mkdir -p "$out/log" "$out/pid" || fail "cannot write into --out=$out"
out=$(readlink -f "$out")
spill=${spill:-$out/spill}
if [[ -n "$init" ]]; then
  ((node_rank == 0)) || fail "--init=$init goes with --node-rank=0, which has the checkpoints"
  sets=()
  for flag in "${common[@]}"; do [[ "$flag" != --set=* ]] || sets+=("$flag"); done
  if compgen -G "$init/*.safetensors" >/dev/null; then
    "$bin/hdps" train --job="$job" --out="$out" --init="$init" --init_only --workers="$total_workers" "${sets[@]}"
  else
    scheduler_flags+=("--init=$init")
  fi
fi
# Removes what a killed launcher has left: its lock is free.
for left in "${TMPDIR:-/tmp}"/hdps_cluster.*; do
  [[ -O "$left/lock" && ! -L "$left" ]] || continue
  flock --nonblock "$left/lock" rm -rf "$left" || true
done
runtime=$(mktemp -d -t hdps_cluster.XXXXXXXXXX 2>/dev/null) ||
  fail "no folder can be made in ${TMPDIR:-/tmp}; set TMPDIR to one that can be written to"
exec {lock}>"$runtime/new"
flock "$lock" # Its daemons hold it too.
mv "$runtime/new" "$runtime/lock"
# A token of this run, which a scheduler that is started again still knows.
if [[ "$http" != none && -z "$http_token" ]]; then
  (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$runtime/http_token")
  http_token=$runtime/http_token
fi
# By process id: the name. By name: the times of start and death, the delay of the last restart, and the
# time of the next one.
declare -A name_of=() started=() deaths=() backoff_ms=() due_ms=()
scheduler_pid='' status=0 first_cause='' first_status=0 ended_well=0
# When the drain began, and the scheduler process that was told.
draining='' told_pid=''

mkfifo "$runtime/never"
exec {never}<>"$runtime/never"
# A pipe that is never written: reading from it waits without a process.
pause() { read -r -t "$1" -u "$never" || true; } # SECONDS
# Waits a moment, or reads a line from the watching launcher.
heard=$SECONDS said=''
pause_or_hear() {
  [[ -n "$watched" ]] || { pause 0.1; return; }
  local line='' code=0
  read -r -t 0.1 line || code=$?
  said+=$line # On a busy machine the time may be over within a line.
  if ((code > 128)); then
    ((SECONDS - heard <= watched)) && return
    say "nothing was heard for $watched s of who started this: its part is ended"
  elif ((code == 0)) && [[ "$said" != stop ]]; then
    heard=$SECONDS said=''
    return
  fi
  watched=''
  stop
}
# From here on nothing stands in $( ), and the handlers of signals read nothing: bash 5.2 loses its place
# when one runs while output of a command is read, and when it reads while `pause` does. What a function
# has to tell, it puts into a variable.
now_ms() { now=$((${EPOCHREALTIME//[!0-9]/} / 1000)); }

# Ends all processes that still run: by SIGTERM first, by SIGKILL after ten seconds.
# shellcheck disable=SC2317  # Called by the trap.
clean_up() {
  trap - EXIT
  trap '' INT TERM HUP
  local alive=() pid
  for pid in "${!name_of[@]}"; do
    if [[ -n "$worker_command" && "${name_of[$pid]}" == worker_* ]]; then
      alive+=("-$pid") # Its whole group.
      rm -f "$out/pid/${name_of[$pid]}.pid"
    else
      alive+=("$pid")
    fi
  done
  if ((${#alive[@]})); then
    kill -TERM -- "${alive[@]}" 2>/dev/null || true
    for ((i = 0; i < 100; i++)); do
      kill -0 -- "${alive[@]}" 2>/dev/null || break
      pause 0.1
    done
    kill -KILL -- "${alive[@]}" 2>/dev/null || true
  fi
  rm -rf "$runtime" || true # The exit status stays what it is.
}
trap clean_up EXIT
# Tells the scheduler to stop: it drains the job, saves a checkpoint and ends all members. Until then
# killed processes are restarted. A second signal ends all at once. The scheduler is told by the loop below:
# a `read` in a handler would take the time limit of the one that it came in.
# shellcheck disable=SC2317
stop() {
  local now
  now_ms
  if [[ -n "$draining" ]]; then
    ((now - draining < 500)) && return 0 # One wish, told to the group too.
    restart=never told_pid=''
    [[ -n "$scheduler_pid" ]] || exit 130
  fi
  draining=$now
  [[ -n "$scheduler_pid" || -n "${due_ms[scheduler]:-}" ]] || exit 130
}
trap stop INT TERM HUP
# Tells the scheduler of the drain, once it handles signals; one that was started in the drain too.
tell_to_stop() {
  [[ -n "$draining" && -n "$scheduler_pid" && "$told_pid" != "$scheduler_pid" ]] || return 0
  local ready=''
  [[ ! -f "$out/pid/scheduler.pid" ]] || read -r ready <"$out/pid/scheduler.pid" || true
  [[ "$ready" == "$scheduler_pid" ]] || return 0
  kill -TERM "$scheduler_pid" 2>/dev/null || true
  told_pid=$scheduler_pid
}

# Starts `scheduler`, `server_3` or `worker_0`, the first time or again. They die with this script.
start() { # NAME
  local name=$1 role=${1%_*} number=${1#*_} flags=() rank=()
  flags=(--job="$job" --pid_file="$out/pid/$name.pid" --log_file="$out/log/$name.log"
    --die_with_parent=$$ --servers="$total_servers" --workers="$total_workers" "${common[@]}")
  started[$name]=$SECONDS
  if [[ "$role" == scheduler ]]; then
    # It owns the terminal: its progress line is the job's.
    "$bin/hdps-scheduler" "${flags[@]}" --out="$out" --listen="$listen" \
      --address_file="$runtime/address" --http="$http" --http_token_file="$http_token" "${scheduler_flags[@]}" </dev/null {never}<&- &
    scheduler_pid=$!
  elif [[ "$role" == server ]]; then
    local server_listen=tcp://$host:0
    [[ "$transport" == ipc ]] && server_listen=ipc://$runtime/$name
    [[ -z "$first_server" ]] || rank=(--rank="$number")
    "$bin/hdps-server" "${flags[@]}" "${rank[@]}" --scheduler="$scheduler" \
      --listen="$server_listen" --spill_path="$spill" "${member_flags[@]}" \
      "${server_flags[@]}" 2>"$runtime/$name.err" >"$runtime/$name.out" </dev/null {never}<&- &
  elif [[ -n "$worker_command" ]]; then
    [[ -z "$first_worker" ]] || rank=(RANK="$number" LOCAL_RANK="$((number - first_worker))")
    env "${program[@]}" "${rank[@]}" WORLD_SIZE="$total_workers" HDPS_SCHEDULER="$scheduler" \
      setsid setpriv --pdeathsig KILL bash -c "$worker_command" >>"$out/log/$name.log" 2>&1 </dev/null {never}<&- &
    ln -sf "$out/log/$name.log" "$runtime/$name.err"
    echo "$!" >"$out/pid/$name.pid"
  else
    [[ -z "$first_worker" ]] || rank=(--rank="$number")
    "$bin/hdps-worker" "${flags[@]}" "${rank[@]}" --scheduler="$scheduler" \
      --collective_host="$host" --gpu=$((number - ${first_worker:-0})) "${member_flags[@]}" "${worker_flags[@]}" 2>"$runtime/$name.err" >"$runtime/$name.out" </dev/null {never}<&- &
  fi
  name_of[$!]=$name
}

# Ends what a worker's command that has ended itself has started.
end_program() { # PID PID_FILE
  kill -KILL -- "-$1" 2>/dev/null || true
  rm -f "$2"
}

# True once the process has ended; waits up to SECONDS for it.
ended_within() { # SECONDS PID
  local i
  for ((i = 0; i < $1 * 20; i++)); do
    kill -0 "$2" 2>/dev/null || return 0
    pause 0.05
  done
  return 1
}

# The job continues even if nobody reads the output, as with a closed terminal.
say() { echo "local_cluster.sh: $1" >&2 || true; }
trap '' PIPE

# Puts how a process ended into `cause`.
how_it_ended() { # NAME STATUS
  cause="$1 ended with status $2"
  (($2 > 128)) || return 0
  local signal_name=''
  kill -l $(($2 - 128)) >"$runtime/signal_name"
  read -r signal_name <"$runtime/signal_name"
  cause="$1 was killed by signal $(($2 - 128)) ($signal_name)"
}

# Reports the end of a process; the first time also the end of its log.
tell_end() { # NAME STATUS
  local cause
  how_it_ended "$1" "$2"
  if [[ -n "$first_cause" || ! -f "$runtime/$1.err" ]]; then
    say "$cause"
  else
    say "$cause; its last words:"
    tail -n 5 "$runtime/$1.err" >&2 || true
  fi
  [[ -n "$first_cause" ]] && return
  first_cause=$cause
  first_status=$(($2 > 128 ? 3 : $2))
}

# Schedules the restart of a process after a growing delay: 0.2 s the first time, at most 10 s, and 0.2 s
# again once it has lived for a minute. Returns false if it has died 5 times in a minute.
start_again_later() { # NAME STATUS
  local name=$1 at recent=()
  for at in ${deaths[$name]:-}; do
    ((SECONDS - at < 60)) && recent+=("$at")
  done
  recent+=("$SECONDS")
  deaths[$name]="${recent[*]}"
  if ((${#recent[@]} >= 5)); then
    say "$name has died ${#recent[@]} times in a minute: gave up; what came first: $first_cause"
    return 1
  fi
  local wait_ms=$((2 * ${backoff_ms[$name]:-100}))
  ((SECONDS - started[$name] >= 60)) && wait_ms=200
  # Status 3 often means that all members end; then the scheduler ends a moment later.
  (($2 == 3 && wait_ms < 1000)) && wait_ms=1000
  ((wait_ms > 10000)) && wait_ms=10000
  backoff_ms[$name]=$wait_ms
  local seconds
  printf -v seconds '%d.%d' $((wait_ms / 1000)) $((wait_ms % 1000 / 100))
  say "starting $name again in $seconds s"
  local now
  now_ms
  due_ms[$name]=$((now + wait_ms))
}

# Shows where to look, once, and keeps the place for a scheduler that is started again. The address
# stands in the scheduler's log, unless --log leaves it out.
tell_where_to_look() {
  local line='' place='' token=''
  grep -o 'watch at http.*' "$out/log/scheduler.log" >"$runtime/watch" || true
  while read -r line; do place=${line#watch at }; done <"$runtime/watch"
  [[ -n "$place" ]] || return 0
  line=${place##*:}
  http=${http:-127.0.0.1:0}
  [[ "$http" != *:0 ]] || http=${http%0}${line%/}
  [[ "$http_token" == "$runtime/http_token" ]] || return 0 # Its owner knows it.
  read -r token <"$http_token" || true # It has no line end.
  # No log gets the token.
  [[ ! -f /dev/stderr && -z "${JOURNAL_STREAM:-}" ]] || { say "watch at $place with the token in $http_token"; return 0; }
  say "watch at $place?token=$token"
}

if ((node_rank == 0)); then
  default_listen=tcp://$host:0
  [[ "$transport" == ipc ]] && default_listen=ipc://$runtime/scheduler
  listen=${listen:-$default_listen}
  start scheduler
  while [[ ! -s "$runtime/address" ]]; do
    [[ -z "$draining" ]] || exit 130 # There is nothing yet to be saved.
    if ! kill -0 "$scheduler_pid" 2>/dev/null; then
      wait "$scheduler_pid" || status=$?
      unset "name_of[$scheduler_pid]"
      exit $((status > 128 ? 3 : status))
    fi
    pause 0.02
  done
  read -r scheduler <"$runtime/address"
  [[ "$http" == none ]] || tell_where_to_look
  # A new scheduler must use the same address, and continue the job or its stop.
  scheduler_flags+=(--same_run)
  [[ "$listen" == *:0 || "$listen" == *:'*' ]] && listen=$scheduler
  [[ "${scheduler_flags[*]}" == *--resume=changed* ]] || scheduler_flags+=(--resume=auto)
fi
for ((s = 0; s < servers; s++)); do start "server_$((s + ${first_server:-0}))"; done
for ((w = 0; w < workers; w++)); do start "worker_$((w + ${first_worker:-0}))"; done
[[ -z "$workers_come" ]] || say "workers join the scheduler at HDPS_SCHEDULER=$scheduler"

# Members end by themselves once the scheduler has told them; clean_up ends the others.
end_with() { # STATUS
  if [[ -z "$scheduler_pid" ]]; then
    for pid in "${!name_of[@]}"; do
      ended_within 5 "$pid" || true
    done
  fi
  exit "$1"
}

# Returns the job's status: that of the scheduler. If there is none, or it waits in vain for a member
# that does not come back, it is that of the first process that failed. If a member was killed, the
# scheduler has time to report it.
see_to() { # NAME STATUS
  local name=$1 code=$2 patience=3
  if [[ "$name" == scheduler ]]; then
    scheduler_pid=''
    ((code == 0 || code == 2 || code == 3)) && end_with "$code"
    # All others were told that the job is done and ended well, so it died after the end of the job.
    ((node_rank == 0 && ended_well == servers + workers)) && [[ -f "$out/summary.json" ]] && end_with 0
  fi
  ((code == 0)) && ended_well=$((ended_well + 1)) && return
  tell_end "$name" "$code"
  # If another machine leads, this one cannot know whether status 3 was the end of the job; the
  # watching launcher knows, and stops this part then.
  # A member that was in the job and is not wanted any more. The scheduler decides whether the job
  # continues, also if it is on another machine or about to be restarted.
  if ((code == 2)) && [[ "$name" != scheduler && -n "${deaths[$name]:-}" ]]; then
    [[ -n "$watched" ]] || status=2 # Where nobody else is left, and no scheduler that knows better.
    return
  fi
  if [[ "$restart" == on-failure ]] && ((code != 2)) &&
    { ((code != 3 || node_rank == 0)) || [[ -n "$watched" ]]; }; then
    start_again_later "$name" "$code" || end_with "$first_status"
    return
  fi
  status=$first_status
  [[ "$name" != scheduler ]] || end_with "$status"
  [[ -n "$scheduler_pid" || -n "$watched" ]] || return 0
  [[ -n "$scheduler_pid" ]] || end_with "$status" # Who watches sees to the other machines.
  [[ "$first_cause" == *killed* ]] && patience=20
  ended_within "$patience" "$scheduler_pid" || end_with "$status"
}

while ((${#name_of[@]} + ${#due_ms[@]})); do
  for pid in $scheduler_pid "${!name_of[@]}"; do # The scheduler first: it knows how all ended.
    kill -0 "$pid" 2>/dev/null && continue
    name=${name_of[$pid]:-}
    [[ -n "$name" ]] || continue # Its turn was before.
    unset "name_of[$pid]"
    code=0
    wait "$pid" || code=$?
    [[ -z "$worker_command" || "$name" != worker_* ]] || end_program "$pid" "$out/pid/$name.pid"
    see_to "$name" "$code"
  done
  for name in "${!due_ms[@]}"; do
    now_ms
    ((now < due_ms[$name])) && continue
    unset "due_ms[$name]"
    [[ "$restart" == never ]] || start "$name"
  done
  tell_to_stop
  pause_or_hear
done
exit "$status"
