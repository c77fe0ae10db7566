#!/usr/bin/env bash
# Fuzzes the code that reads untrusted bytes, two targets at once: fuzz.sh [SECONDS] [TARGET...]
#   fuzz.sh             the runs of each target in tests/fuzz/runs.txt, about 10 s, always the same:
#                       from the corpus and one seed
#   fuzz.sh 3600 job    an hour of one target from a random seed; begins with its earlier inputs
#   fuzz.sh --unsealed 60 frame manifest snapshot delta
#                       measures the coverage from the seeds alone, with checksums that are made
#                       valid and without
#   fuzz.sh --merge     writes tests/fuzz/corpus again: the fewest inputs, from the seeds, the corpus
#                       and earlier runs, that reach the same coverage
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

bin=build/fuzz/bin work=build/fuzz/work corpus=tests/fuzz/corpus known=tests/fuzz/found
seed=1
limits=(-rss_limit_mb=1024 -malloc_limit_mb=128 -timeout=20)
told_bytes_max=4096
merged_bytes_max=4096 # Longer inputs reach nothing more.
symbolizer=$(command -v llvm-symbolizer-14 || true)
# Stacks of allocations would cost a fifth of the runs; repeat an input to see them.
export ASAN_OPTIONS=handle_abort=1:malloc_context_size=1 UBSAN_OPTIONS=print_stacktrace=1
[[ -n $symbolizer ]] && export ASAN_SYMBOLIZER_PATH=$symbolizer

runs_of() { sed -n "s/^$1 *\([0-9]*\)$/\1/p" tests/fuzz/runs.txt; } # NAME
edges_of() { sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$1" | tail -n 1; }
stat_of() { sed -n "s/^stat::$1: *//p" "$2"; }

# Prints the failure of a target and a short input itself, because the machine may be gone later.
tell_found() { # NAME LOG
  local name=$1 log=$2 input
  grep -a -m 12 -E 'ERROR|SUMMARY|Check failed|runtime error|#[0-9]+ .* in hdps' "$log" || tail -n 20 "$log"
  echo "fuzz.sh: error: $name: an input ends it; all of it is in $log. Repeat, then keep it as $known/$name/WHAT_IT_IS:"
  sed -n 's/.*Test unit written to //p' "$log" | while read -r input; do
    echo "  $bin/fuzz_$name $input"
    (($(stat -c %s "$input") < told_bytes_max)) || continue
    echo "  base64 -d >$input <<<$(base64 -w 0 "$input")"
  done
}

# Writes the first inputs of a target as files: its seeds, its corpus, earlier findings.
unpack() { # NAME
  local name=$1 begin=$work/$1.begin
  rm -rf "$begin"
  "$bin/fuzz_$name" "--seeds=$begin" || return 1
  scripts/dev/fuzz_corpus.py unpack "$corpus/$name.txt" "$begin"
  [[ ! -d $known/$name ]] || cp "$known/$name"/* "$begin/"
}

# Runs one target and prints its line.
fuzz() { # NAME SECONDS|fixed
  local name=$1 seconds=$2 log=$work/$1.log status=0 how
  unpack "$name" 2>"$log" || { cat "$log"; return 1; }
  if [[ $seconds == fixed ]]; then
    # Sorted, because the order of a folder differs between disks.
    find "$work/$name.begin" -type f | LC_ALL=C sort | paste -sd, | tr -d '\n' >"$work/$name.inputs"
    how=("-seed=$seed" "-runs=$(runs_of "$name")" "-seed_inputs=@$work/$name.inputs")
  else
    mkdir -p "$work/$name"
    how=("-max_total_time=$seconds" "$work/$name" "$work/$name.begin")
  fi
  "$bin/fuzz_$name" "${limits[@]}" -print_final_stats=1 -artifact_prefix="$work/$name." "${how[@]}" \
    >"$log" 2>&1 || status=$?
  ((status == 0)) || { tell_found "$name" "$log"; return 1; }
  local all covered inputs
  all=$(sed -n 's/.*Loaded 1 modules *(\([0-9]*\) inline.*/\1/p' "$log")
  covered=$(edges_of "$log")
  inputs=$(sed -n 's/.* corp: \([0-9]*\)\/.*/\1/p' "$log" | tail -n 1)
  printf 'figure: fuzz: %-16s %9d runs %7d a second %6d of %6d edges %5d inputs %5d MiB\n' "$name" \
    "$(stat_of number_of_executed_units "$log")" "$(stat_of average_exec_per_sec "$log")" \
    "$covered" "$all" "$inputs" "$(stat_of peak_rss_mb "$log")"
  touch "$work/$name.quiet"
}

# Runs from the seeds alone, with checksums that are made valid and without.
compare() { # NAME SECONDS
  local name=$1 seconds=$2 log tried flag edges=()
  rm -rf "$work/$name.seeds"
  "$bin/fuzz_$name" "--seeds=$work/$name.seeds"
  for flag in --sealed --unsealed; do
    log=$work/$name.${flag#--}.log tried=$work/$name.${flag#--}
    rm -rf "$tried"
    mkdir -p "$tried"
    "$bin/fuzz_$name" "$flag" "${limits[@]}" -max_total_time="$seconds" -artifact_prefix="$work/$name." \
      "$tried" "$work/$name.seeds" >"$log" 2>&1 || { tell_found "$name" "$log"; return 1; }
    edges+=("$(edges_of "$log")")
  done
  printf 'figure: fuzz: %-16s %6d edges with checksums that fit in half of the inputs, %6d without\n' \
    "$name" "${edges[@]}"
  touch "$work/$name.quiet"
}

merge() { # NAME
  local name=$1 new=$work/$1.merged
  rm -rf "$new"
  mkdir -p "$new" "$work/$name"
  unpack "$name"
  "$bin/fuzz_$name" "${limits[@]}" -merge=1 -use_counters=0 -max_len="$merged_bytes_max" "$new" "$work/$name.begin" \
    "$work/$name" >"$work/$name.log" 2>&1
  scripts/dev/fuzz_corpus.py pack "$corpus/$name.txt" "$new"
  echo "$name: $(wc -l <"$corpus/$name.txt") inputs, $(wc -c <"$corpus/$name.txt") bytes"
}

case ${1:-} in
  --fuzz) fuzz "$2" "$3"; exit ;; # Of this script itself.
  --compare) compare "$2" "$3"; exit ;;
  --one-merge) merge "$2"; exit ;;
esac
what=--fuzz seconds=fixed
if [[ ${1:-} == --merge ]]; then
  what=--one-merge
  shift
elif [[ ${1:-} == --unsealed && ${2:-} =~ ^[0-9]+$ && -n ${3:-} ]]; then
  what=--compare seconds=$2
  shift 2
elif [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
mkdir -p build
scripts/build.sh fuzz fuzz >build/fuzz.log 2>&1 || { tail -n 40 build/fuzz.log; exit 1; }
mkdir -p "$work"
if (($#)); then
  targets=("$@")
else
  mapfile -t targets < <(find "$bin" -name 'fuzz_*' | sed 's/.*fuzz_//' | sort)
fi
for name in "${targets[@]}"; do
  [[ $seconds != fixed || -n $(runs_of "$name") ]] ||
    { echo "fuzz.sh: error: tests/fuzz/runs.txt does not say how many runs '$name' makes" >&2; exit 2; }
  [[ -e $bin/fuzz_$name ]] && continue
  echo "fuzz.sh: error: no target '$name'; there are $(find "$bin" -name 'fuzz_*' | sed 's/.*fuzz_//' | sort | xargs)" >&2
  exit 2
done
rm -f "$work"/*.quiet
status=0
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} "$0" "$what" {} "$seconds" || status=$?
[[ $what == --one-merge ]] && exit "$status"
# A target that did not finish counts as a finding, whatever the cause.
found=()
for name in "${targets[@]}"; do [[ -e $work/$name.quiet ]] || found+=("$name"); done
echo "figure: fuzz: ${#targets[@]} targets, ${#found[@]} of them with a finding${found[*]:+: ${found[*]}}"
((${#found[@]} == 0))
