#!/usr/bin/env bash
# Counts lines of C++, CUDA and Python by folder and commit: lines.sh [COMMIT...] (default: HEAD)
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
[[ $# -gt 0 ]] || set -- HEAD
for commit in "$@"; do
  git grep -c '' "$commit" -- '*.h' '*.cc' '*.cu' '*.cuh' '*.def' '*.py' | awk -F: -v at="$commit" '
    { split($2, folders, "/"); print at, folders[1], $3 }'
done | awk -v order="$*" '
  { lines[$1, $2] += $3; folder[$2] }
  END {
    count = split(order, commits, " ")
    production = "common embedding kernels scheduler server tools worker"
    rest = "tests benchmarks scripts examples"
    names = split(production " = " rest, name, " ")
    printf "| folder |"; for (c = 1; c <= count; ++c) printf " %s |", commits[c]
    printf "\n|---|"; for (c = 1; c <= count; ++c) printf "--:|"; print ""
    for (n = 1; n <= names; ++n) {
      printf name[n] == "=" ? "| **production** |" : "| " name[n] " |"
      for (c = 1; c <= count; ++c) {
        printf " %d |", name[n] == "=" ? sum[c] : lines[commits[c], name[n]]
        sum[c] += lines[commits[c], name[n]]
      }
      print ""
    }
  }'
