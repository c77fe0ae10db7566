#!/usr/bin/env bash
# Builds the current commit twice, in folders with different names and without a compiler cache, and
# compares the bytes: of some objects with `share` (default), of every program with `all`, and of device
# code if there is nvcc. Device code is built twice in one folder, because nvcc uses the sources' path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

what=${1:-share}
[[ "$what" == share || "$what" == all ]] ||
  { echo "reproducible.sh: error: '$what': expected share or all" >&2; exit 2; }
export CCACHE_DISABLE=1
begin=$SECONDS
work=$(mktemp -d 2>/dev/null) ||
  { echo "reproducible.sh: error: nothing can be written in ${TMPDIR:-/tmp}; set TMPDIR" >&2; exit 2; }
trap 'rm -rf "$work"' EXIT
folders=("$work/a" "$work/another_folder")
share=common/CMakeFiles/hdps_base.dir/base

# Prints the checksums of the targets' files in a build.
checksums() { (cd "$1/build" && sha256sum "${@:2}"); } # FOLDER TARGET...

# Fails and names the files if any differ.
compare() { # WHAT CHECKSUMS OTHER_CHECKSUMS
  if ! diff <(echo "$2") <(echo "$3") >"$work/differ"; then
    awk '/^[<>]/ {print $3}' "$work/differ" | sort -u >&2
    echo "reproducible.sh: error: these of $1 differ between two builds" >&2
    return 1
  fi
  echo "figure: $1: $(wc -l <<<"$2") files have the same bytes in both builds"
}

for folder in "${folders[@]}"; do
  git clone --quiet --shared . "$folder"
  cmake --preset release -S "$folder" -DHDPS_CUDA=OFF >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 3; }
done
targets=(bin/hdps bin/hdps-scheduler bin/hdps-server bin/hdps-worker bin/hdps-bench)
# The module for Parquet files, where Arrow C++ is.
if grep -q '^build bin/libhdps_parquet.so' "${folders[0]}/build/build.ninja"; then
  targets+=(bin/libhdps_parquet.so)
fi
if [[ "$what" == share ]]; then
  mapfile -t targets < <(ninja -C "${folders[0]}/build" -t targets all | sed -n "s|^\($share/.*\.o\):.*|\1|p")
fi
made=()
for folder in "${folders[@]}"; do
  ninja -C "$folder/build" "${targets[@]}" >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 3; }
  made+=("$(checksums "$folder" "${targets[@]}")")
done
compare "$what" "${made[@]}"

# Checks the check itself: a file with the time of the build must be noticed.
planted=$share/hash.cc.o seen=()
for folder in "${folders[@]}"; do
  echo 'extern const char kBuilt[]; const char kBuilt[] = __TIME__;' >>"$folder/common/base/hash.cc"
  ninja -C "$folder/build" "$planted" >/dev/null
  seen+=("$(checksums "$folder" "$planted")")
  read -r -t 1.1 <> <(:) || true # Another second.
done
! compare planted "${seen[@]}" >/dev/null 2>&1 ||
  { echo "reproducible.sh: error: the time of the build in a file was not noticed" >&2; exit 3; }

if [[ "$what" == all ]] && command -v nvcc >/dev/null; then
  folder=${folders[0]} made=()
  cmake -S "$folder" -B "$folder/build" -DHDPS_CUDA=ON >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 3; }
  mapfile -t targets < <(ninja -C "$folder/build" -t targets all | sed -n 's|^\(kernels/.*\.cu\.o\):.*|\1|p')
  for _ in 1 2; do
    (cd "$folder/build" && rm -f "${targets[@]}")
    ninja -C "$folder/build" "${targets[@]}" >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 3; }
    made+=("$(checksums "$folder" "${targets[@]}")")
  done
  compare 'device code' "${made[@]}"
fi
echo "reproducible: $what in $((SECONDS - begin)) s"
