#!/usr/bin/env bash
# Makes a relocatable tarball of the programs, the tests and their shared libraries. It runs on any
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
for test in build/bin/*_test; do
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

mkdir -p "$(dirname "$out")"
# Tests contain the same libraries, so the size falls with the number of tests that a dictionary spans. One of 256 MiB
# takes 3 GiB while it packs, and as much as itself while it unpacks.
XZ_OPT='--lzma2=preset=9,dict=256MiB' tar -C "$stage" --sort=name -cJf "$out" hdps
bytes=$(stat -c %s "$out")
echo "bundle: $out, $((bytes / 1048576)) MiB (limit $limit_mib MiB)"
((bytes <= limit_mib * 1048576)) || { echo "bundle.sh: error: larger than $limit_mib MiB" >&2; exit 3; }
