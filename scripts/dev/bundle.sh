#!/usr/bin/env bash
# Makes a relocatable tarball of the programs, the tests that want a GPU and their shared libraries. It runs on any
# x86-64 Linux machine whose C library is that of Debian 12 or newer; with CUDA 13 and a driver it
# also computes on the GPU.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

out=${1:-build/hdps-bundle.tar.xz}
limit_mib=60
scripts/install_deps.sh --developer
scripts/build.sh release
stage=$(mktemp -d 2>/dev/null) ||
  { echo "bundle.sh: error: nothing can be written in ${TMPDIR:-/tmp}; set TMPDIR" >&2; exit 2; }
trap 'rm -rf "$stage"' EXIT
root=$stage/hdps
mkdir -p "$root/bin" "$root/lib" "$root/tests" "$root/examples"

cp build/bin/hdps build/bin/hdps-* "$root/bin/"
# Those that gpu_check.py runs; the others say nothing new on another machine.
for test in build/bin/*cuda*_test build/bin/collective_test; do
  [[ "$test" == *_link_test ]] || cp "$test" "$root/tests/"
done
cp -r examples/. "$root/examples/"
cp scripts/local_cluster.sh scripts/cluster.sh scripts/cluster.py scripts/cluster_hosts.py LICENSE README.md "$root/"
cp scripts/dev/gpu_check.{sh,py} scripts/dev/gpu_goals.py scripts/dev/hidden_copies.py "$root/"
mkdir "$root/peers"
cp benchmarks/peers/*.py "$root/peers/"
scripts/dev/sbom.py --out="$root/hdps.spdx.json"

# The C library belongs to the machine, and CUDA and the driver must be the machine's own.
own='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util)|libcuda.*|libcublas.*|libcudart.*|libnccl.*|libnvidia.*)\.so'
ldd "$root"/bin/* "$root"/tests/* | awk '/=> \//{print $3}' | sort -u | while read -r library; do
  [[ $(basename "$library") =~ $own ]] || cp -L "$library" "$root/lib/"
done
strip --strip-unneeded "$root"/bin/* "$root"/tests/* "$root"/lib/* 2>/dev/null || true
for program in "$root"/bin/* "$root"/tests/*; do
  # shellcheck disable=SC2016  # $ORIGIN is the loader's.
  patchelf --set-rpath '$ORIGIN/../lib:/usr/local/cuda/lib64' "$program"
done
for library in "$root"/lib/*; do
  # shellcheck disable=SC2016
  patchelf --set-rpath '$ORIGIN' "$library"
done
# The reader of Parquet files, without the 60 MB of Arrow C++: its libraries are put beside it by who needs them.
if [[ -e build/bin/libhdps_parquet.so ]]; then
  mkdir "$root/lib/hdps"
  cp build/bin/libhdps_parquet.so "$root/lib/hdps/"
  cp scripts/install_parquet.sh "$root/"
  strip --strip-unneeded "$root/lib/hdps/libhdps_parquet.so"
  # shellcheck disable=SC2016
  patchelf --set-rpath '$ORIGIN:$ORIGIN/..' "$root/lib/hdps/libhdps_parquet.so"
else
  echo "bundle.sh: warning: the bundle cannot read Parquet files, because Arrow C++ is not here (scripts/install_parquet.sh)" >&2
fi

mkdir -p "$(dirname "$out")"
# A dictionary larger than one program halves the size, because programs contain the same libraries.
XZ_OPT='-T0 -9' tar -C "$stage" --sort=name -cJf "$out" hdps
bytes=$(stat -c %s "$out")
echo "bundle: $out, $((bytes / 1048576)) MiB (limit $limit_mib MiB)"
((bytes <= limit_mib * 1048576)) || { echo "bundle.sh: error: larger than $limit_mib MiB" >&2; exit 3; }
