#!/usr/bin/env bash
# Runs a job on several machines over ssh: copies the programs and keys to them, starts each one's
# part by local_cluster.sh, watches, and stops all. Its exit status is the job's. See --help.
exec python3 "$(dirname "$(readlink -f "$0")")/cluster.py" "$@"
