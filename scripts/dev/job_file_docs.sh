#!/usr/bin/env bash
# Writes the tables of all settings, of the kinds of layers and of the recipes into docs/job_file.md,
# that of MindSpore's words into docs/how_to/coming_from.md, from what the job's parser reads, and the list of
# figures into docs/watching.md.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

scripts/build.sh release print_settings >/dev/null
tables=$(mktemp 2>/dev/null) ||
  { echo "job_file_docs.sh: error: nothing can be written in ${TMPDIR:-/tmp}; set TMPDIR" >&2; exit 2; }
trap 'rm -f "$tables"' EXIT
for mark in keys layers recipes mindspore figures; do
  page=docs/job_file.md
  [[ $mark != mindspore ]] || page=docs/how_to/coming_from.md
  [[ $mark != figures ]] || page=docs/watching.md
  build/bin/print_settings "$mark" >"$tables"
  sed -i -e "/^<!-- $mark -->$/,/^<!-- end of $mark -->$/{/^<!-- $mark -->$/{r $tables
b};/^<!-- end of $mark -->$/!d}" "$page"
done
