#!/usr/bin/env bash
# Configures and builds one preset:
#   scripts/build.sh [release|debug|asan|tsan|fuzz] [-DNAME=VALUE ...] [TARGET...]
#   scripts/build.sh python   only the Python package, into build/python
# Settings that are not given with -D have the preset's values, also if the folder was configured
# otherwise: scripts/quickstart.sh may have built there without device code.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

preset=${1:-release}
shift || true
if [[ "$preset" == python ]]; then
  scripts/install_deps.sh --python
  preset=release
  set -- "$@" hdps_python
fi
case "$preset" in
  release) folder=build wanted=(-DHDPS_CUDA=ON -DHDPS_CUDA_ARCHITECTURES='80;90') ;;
  debug | asan | tsan | fuzz) folder=build/$preset wanted=() ;;
  *) echo "build.sh: error: no preset '$preset'; there are release, debug, asan, tsan, fuzz" >&2; exit 2 ;;
esac
told=()
while [[ "${1:-}" == -D*=* ]]; do
  told+=("$1")
  shift
done

# Compares the configuration of the folder with the wanted one.
differences() {
  local option name value had
  for option in "${wanted[@]}" "${told[@]}"; do
    name=${option#-D} value=${option#*=}
    name=${name%%=*}
    [[ " ${told[*]} " == *" -D$name="* && " ${told[*]} " != *" $option "* ]] && continue
    had=$(sed -n "s/^$name:[A-Z]*=//p" "$folder/CMakeCache.txt" 2>/dev/null)
    [[ "$had" == "$value" ]] || echo "$name=$value, not ${had:-set}"
  done
  # Arrow C++ may have been installed since.
  if grep -qs '^PARQUET_LIBRARY:.*NOTFOUND' "$folder/CMakeCache.txt" &&
    [[ -e "$(scripts/install_parquet.sh --folder)/pyarrow/libparquet.so" ]]; then
    echo "Arrow C++ is there now"
  fi
}

mkdir -p "$folder"
log=$folder/configure.log
# In a configured folder, ninja notices when to configure again.
changed=$(differences)
if [[ ! -f "$folder/build.ninja" || -n "$changed" ]]; then
  [[ ! -f "$folder/build.ninja" ]] || echo "build.sh: $folder/ is configured anew: ${changed//$'\n'/; }"
  if ! cmake --preset "$preset" "${wanted[@]}" "${told[@]}" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    echo "build.sh: error: configuring '$preset' failed; all of it is in $log" >&2
    exit 3
  fi
fi
grep 'hdps:' "$log" 2>/dev/null || true
ninja -C "$folder" "$@"
