#!/usr/bin/env bash
# Writes the tables of all settings, of the kinds of layers and of the recipes into docs/job_file.md,
# from their descriptors.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

scripts/build.sh release print_settings >/dev/null
tables=$(mktemp 2>/dev/null) ||
  { echo "job_file_docs.sh: error: nothing can be written in ${TMPDIR:-/tmp}; set TMPDIR" >&2; exit 2; }
trap 'rm -f "$tables"' EXIT
for mark in keys layers recipes; do
  build/bin/print_settings "$mark" >"$tables"
  sed -i -e "/^<!-- $mark -->$/,/^<!-- end of $mark -->$/{/^<!-- $mark -->$/{r $tables
b};/^<!-- end of $mark -->$/!d}" docs/job_file.md
done
