#!/usr/bin/env bash
# Writes the tables of all settings into docs/job_file.md, from their descriptors.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

scripts/build.sh release print_settings >/dev/null
tables=$(mktemp)
trap 'rm -f "$tables"' EXIT
build/bin/print_settings >"$tables"
sed -i -e "/^<!-- keys -->$/,/^<!-- end of keys -->$/{/^<!-- keys -->$/{r $tables
b};/^<!-- end of keys -->$/!d}" docs/job_file.md
