#!/usr/bin/env bash
# Runs every GPU test and GPU benchmark in one go of at most 8 minutes, and writes one JSON with all
# figures. Works in an unpacked bundle and in a built checkout.
set -uo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
if [[ -d "$here/bin" ]]; then bin=$here/bin tests=$here/tests examples=$here/examples; else
  root=$here/../.. bin=$here/../../build/bin tests=$here/../../build/bin examples=$here/../../examples
  [[ -x "$bin/hdps" ]] || { echo "gpu_check.sh: error: build first: $root/scripts/build.sh" >&2; exit 2; }
fi
json=${1:-gpu_check.json}
deadline=$((SECONDS + 480))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/steps"

# Runs one step within what is left of the time, and notes its status and how long it took.
step() { # NAME COMMAND...
  local name=$1 begin=$SECONDS left=$((deadline - SECONDS)) status=0
  shift
  if ((left < 5)); then
    echo "$name not_run 0" >>"$work/steps"
    return
  fi
  timeout "$left" "$@" >"$work/$name.txt" 2>&1 || status=$?
  echo "$name $status $((SECONDS - begin))" >>"$work/steps"
  echo "gpu_check: $name: status $status, $((SECONDS - begin)) s"
  ((status == 0)) || tail -n 15 "$work/$name.txt"
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader >"$work/gpu.txt" 2>&1 ||
  echo "no GPU found" >"$work/gpu.txt"
echo "gpu_check: $(head -1 "$work/gpu.txt")"
for program in "$tests"/*cuda*_test "$tests/collective_test"; do
  [[ -x "$program" && "$program" != *_link_test ]] &&
    step "$(basename "$program")" "$program" --gtest_output="json:$work/$(basename "$program").json"
done
for device in cpu cuda; do
  step "census_$device" "$bin/hdps" train --job="$examples/census/census.json" \
    --out="$work/census_$device" --workers=1 --servers=1 --set="model.device=$device"
  [[ -f "$work/census_$device/summary.json" ]] &&
    cp "$work/census_$device/summary.json" "$work/census_$device.json"
done
for device in cpu cuda; do
  step "bench_$device" "$bin/hdps-bench" end_to_end --device="$device" --json="$work/bench_$device.json"
done

python3 - "$work" "$json" <<'PY'
import json, pathlib, sys
work, out = pathlib.Path(sys.argv[1]), sys.argv[2]
result = {"gpu": (work / "gpu.txt").read_text().strip(), "steps": {}, "tests": {}, "runs": {}}
for line in (work / "steps").read_text().splitlines():
    name, status, seconds = line.split()
    result["steps"][name] = {"status": status if status == "not_run" else int(status),
                             "seconds": int(seconds)}
for file in sorted(work.glob("*_test.json")):
    report = json.loads(file.read_text())
    skipped = sum(test.get("result") == "SKIPPED" for suite in report["testsuites"]
                  for test in suite["testsuite"])
    result["tests"][file.stem] = {"run": report["tests"] - skipped, "failed": report["failures"],
                                  "skipped": skipped}
for file in sorted(work.glob("census_*.json")):
    result["runs"][file.stem] = json.loads(file.read_text())
result["bench"] = {file.stem: json.loads(file.read_text()) for file in sorted(work.glob("bench_*.json"))}
aucs = [run["eval_auc"] for run in result["runs"].values()]
if len(aucs) == 2:
    result["auc_difference"] = abs(aucs[0] - aucs[1])
ran = sum(t["run"] for t in result["tests"].values())
bad = [n for n, s in result["steps"].items() if s["status"] != 0]
bad += [f"{name} (skipped)" for name, test in result["tests"].items() if "cuda" in name and test["skipped"]]
if "auc_difference" in result and result["auc_difference"] > 0.001:
    bad.append("auc_difference")
result["passed"] = not bad
pathlib.Path(out).write_text(json.dumps(result, indent=2) + "\n")
skipped = sum(t["skipped"] for t in result["tests"].values())
print(f"gpu_check: {ran} tests run, {skipped} skipped; {'passed' if not bad else 'FAILED: ' + ', '.join(bad)}; "
      f"figures in {out}")
sys.exit(0 if not bad else 1)
PY
