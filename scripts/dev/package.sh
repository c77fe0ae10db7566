#!/usr/bin/env bash
# Makes the packages of Debian 12 from this checkout: hdps, hdps-dev and, where it is built, python3-hdps.
#   scripts/dev/package.sh [FOLDER]     they come into FOLDER (build/packages)
# The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

folder=$(realpath -m "${1:-build/packages}")
scripts/build.sh release hdps_installed
# Without git, as from a tarball, the time of the newest entry of the changelog.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null ||
  date -d "$(dpkg-parsechangelog -l scripts/packages/changelog -S Date)" +%s)}
export SOURCE_DATE_EPOCH
mkdir -p "$folder"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
cpack --config build/CPackConfig.cmake -B "$stage" >"$stage/log" 2>&1 || { tail "$stage/log" >&2; exit 3; }
for package in "$stage"/*.deb; do
  # Once more by Debian's own program, which sorts the files, with the commit's time and root as owner.
  dpkg-deb --raw-extract "$package" "$stage/tree"
  chmod -R u+w,go-w "$stage/tree"
  find "$stage/tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz -z1 --build "$stage/tree" "$folder/$(basename "$package")" >/dev/null
  rm -rf "$stage/tree"
done
ls -l "$folder"/*.deb
