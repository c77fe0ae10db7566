#!/usr/bin/env python3
"""Runs everything that needs a GPU, the most valuable first, in at most 8 minutes; writes one JSON.

usage: gpu_check.sh [OUT.json] [--dry_run] [--only=NAME,...]

OUT.json (default gpu_check.json) has each step's status, seconds and figures, and the goals.
scripts/dev/results_page.py turns it into rows of the results. Exit status: 0 all steps that ran are ok;
1 a step failed; 3 there is no GPU, so nothing ran.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_goals
import hidden_copies

SECONDS = 480  # All steps together.
SAID_LINES = 15  # Lines shown of a failed step.
SANITIZED = "kernels_cuda_test"
AUC_APART_MAX = 0.001
MISSING_LIBRARY = ("the programs find no {}: install CUDA 13's runtime libraries, or name their folder in "
                   "LD_LIBRARY_PATH")


@dataclasses.dataclass
class Step:
    name: str
    budget: int  # Seconds; unused time of earlier steps is added.
    command: list
    shows: str
    needs: str = ""  # Why it cannot run on this machine; empty: it can.
    expect: int = 0  # Exit status.
    said: str = ""  # Text that its output must contain.
    env: dict = dataclasses.field(default_factory=dict)


class Plan:
    """The steps, according to the tools of this machine."""

    def __init__(self, flags, work):
        self.flags, self.work = flags, work
        self.hdps, self.bench = flags.bin / "hdps", flags.bin / "hdps-bench"

    def tool(self, name):
        """Returns the path of a CUDA tool, and the reason if there is none."""
        path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
        return path or name, "" if path else f"no {name} on PATH or in /usr/local/cuda/bin"

    def tests(self):
        programs = sorted(self.flags.tests.glob("*cuda*_test")) + [self.flags.tests / "collective_test"]
        programs = [p for p in programs if p.exists() and not p.name.endswith("_link_test")]
        if not programs:
            yield Step("tests", 70, [], "tests of kernels, models and collectives on the GPU",
                       f"no tests in {self.flags.tests}; build them (scripts/build.sh)")
        for program in programs:
            yield Step(program.name, 70 // len(programs),
                       [program, f"--gtest_output=json:{self.work / program.name}.json"],
                       "tests on the real libraries")

    def benches(self):
        for name, budget, shows, arguments in (
                ("yardsticks", 50, "products by cuBLASLt, bus, memory; a model's step beside them", ["device"]),
                ("ref_l_host", 45, "REF-L with host tables, in fp32, tf32 and bf16",
                 ["end_to_end", "--device=cuda", "--case=ref_l_cuda"]),
                ("ref_l_hot", 45, "the same with hot rows on the GPU",
                 ["end_to_end", "--device=cuda", "--case=ref_l_hot_rows"])):
            yield Step(name, budget, [self.bench, *arguments, "--repeats=2", *self.quick(),
                                      f"--json={self.work / name}.bench.json", f"--scratch={self.work}"], shows)

    def quick(self):
        return ["--quick"] if self.flags.quick else []

    def wide_job(self, trace):
        """A short job with rows of dim 80 and the large MLP, which asks for rows a step ahead."""
        job = self.work / "wide.json"
        job.write_text(json.dumps({
            "name": "timeline",
            "data": {"format": "criteo", "train": [str(self.work / "log" / "train.tsv")]},
            "model": {"type": "wide_deep", "device": "cuda", "embedding_dim": 80, "numeric": False,
                      "hidden": [1024, 512, 256, 128]},
            "train": {"batch_size": 4096, "epochs": 2, "lookahead": 1}}))
        return [self.hdps, "train", f"--job={job}", f"--out={self.work / 'timeline'}", *trace]

    def timeline(self):
        yield Step("timeline_data", 5, [self.hdps, "generate", f"--out={self.work / 'log'}", "--rows=80k",
                                        "--eval_rows=1000", "--vocabulary=7685"], "a log for the timeline")
        yield Step("timeline", 20, self.wide_job([f"--trace={self.trace}", "--trace_steps=40"]),
                   "copies under compute, from events around both")
        nsys, why = self.tool("nsys")
        command = self.wide_job([])
        command[3] = f"--out={self.work / 'nsys'}"
        yield Step("nsys", 20, [nsys, "profile", "--trace=cuda", "--stats=true", "--force-overwrite=true",
                                f"--output={self.flags.out.with_suffix('')}_nsys", *command],
                   "the same by NVIDIA's tool", why)

    @property
    def trace(self):
        return self.flags.out.with_suffix(".trace.json").resolve()

    def pytorch(self):
        why = why_no_pytorch(self.flags)
        # PyTorch's dense weights are on the GPU, so those of hdps are too.
        yield Step("pytorch", 110, [sys.executable, self.flags.peers / "compare.py", f"--bin={self.flags.bin}",
                                   f"--python={sys.executable}", "--device=cuda", "--case=ref_l", "--repeats=1",
                                   f"--threads={os.cpu_count()}", "--set=parallel.dense_exchange=allreduce",
                                   f"--scratch={self.work}", f"--json={self.work / 'pytorch.json'}"],
                   "PyTorch, plain and tuned, in turns with hdps", why)

    def correctness(self):
        for device in ("cpu", "cuda"):
            yield Step(f"census_{device}", 10,
                       [self.hdps, "train", f"--job={self.flags.examples / 'census' / 'census.json'}",
                        f"--out={self.work / device}", f"--set=model.device={device}"],
                       "the census job, for its AUC")
        yield Step("two_workers_one_gpu", 10,
                   [self.hdps, "train", f"--job={self.flags.examples / 'census' / 'census.json'}",
                    f"--out={self.work / 'two'}", "--workers=2",
                    "--set=model.device=cuda,parallel.dense_exchange=allreduce,parallel.collective=nccl"],
                   "two workers on one GPU are refused by name under nccl", expect=2, said="share the GPU",
                   env={"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]})

    def sanitizers(self):
        path, why = self.tool("compute-sanitizer")
        program = self.flags.tests / SANITIZED
        if not why and not program.exists():
            why = f"no {SANITIZED} in {self.flags.tests}"
        for tool in ("memcheck", "racecheck"):
            yield Step(tool, 40, [path, f"--tool={tool}", "--error-exitcode=9", program],
                       f"compute-sanitizer {tool} of the op tests", why)

    def steps(self):
        steps = [*self.tests(), *self.benches(), *self.timeline(), *self.pytorch(), *self.correctness(),
                 *self.sanitizers()]
        return [step for step in steps if not self.flags.only or step.name in self.flags.only]


def why_no_pytorch(flags):
    if not (flags.peers / "compare.py").exists():
        return f"no {flags.peers / 'compare.py'}"
    asked = [sys.executable, "-c", "import numpy, torch; assert torch.cuda.is_available()"]
    done = subprocess.run(asked, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else f"{sys.executable} has no PyTorch with a GPU ({said[-1]})"


def gpu_of_machine():
    """Returns the first GPU from nvidia-smi; empty with the reason if there is none."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        return "", "nvidia-smi is not on PATH"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"nvidia-smi: {error}"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return "", f"nvidia-smi: {(done.stdout + done.stderr).strip()[:200] or 'it lists none'}"
    return lines[0], ""


def missing_libraries(program):
    done = subprocess.run(["ldd", str(program)], check=False, capture_output=True, text=True)
    return sorted({line.split()[0] for line in done.stdout.splitlines() if "not found" in line})


def library_folders():
    """Where CUDA's libraries may lie beside /usr/local/cuda: with Python packages, or in other versions."""
    folders = [pathlib.Path(p) for p in sorted(pathlib.Path("/usr/local").glob("cuda*/lib64"))]
    for path in sys.path:
        folders += pathlib.Path(path).glob("nvidia/*/lib") if path else []
    return [str(folder) for folder in folders]


def run(step, seconds, said_file):
    """Runs one step and returns its status as text."""
    with open(said_file, "w", encoding="utf-8") as said:
        child = subprocess.Popen([str(word) for word in step.command], stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=subprocess.STDOUT, start_new_session=True,
                                 env={**os.environ, **step.env})
        try:
            status = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return f"timed out after {seconds:.0f} s"
    text = pathlib.Path(said_file).read_text(errors="replace")
    if status != step.expect:
        return f"failed: status {status}" + (f", expected {step.expect}" if step.expect else "")
    return "ok" if step.said in text else f"failed: it did not say '{step.said}'"


def run_all(steps, work):
    """Runs each step within its budget and the unused time of earlier steps."""
    results, began, budget = {}, time.monotonic(), 0
    for step in steps:
        budget += step.budget
        left = min(budget, SECONDS) - (time.monotonic() - began)
        start = time.monotonic()
        if step.needs:
            status = f"skipped: {step.needs}"
        elif left < 3:
            status = "not run: no time left"
        else:
            said = work / f"{step.name}.txt"
            status = run(step, left, said)
            if status != "ok":
                print("\n".join(said.read_text(errors="replace").splitlines()[-SAID_LINES:]))
        seconds = round(time.monotonic() - start, 1)
        results[step.name] = {"status": status, "seconds": seconds, "budget": step.budget, "shows": step.shows}
        print(f"gpu_check: {step.name}: {status}, {seconds:.1f} s", flush=True)
    return results


def read(path):
    """Returns the JSON of a file, or None if a step left no file or an incomplete one."""
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return None


def tests_of(work):
    tests = {}
    for file in sorted(work.glob("*_test.json")):
        report = read(file)
        if report is None:
            continue
        skipped = [f"{suite['name']}.{test['name']}" for suite in report["testsuites"]
                   for test in suite["testsuite"] if test.get("result") == "SKIPPED"]
        tests[file.stem] = {"run": report["tests"] - len(skipped), "failed": report["failures"],
                            "skipped": skipped}
    return tests


def collect(results, work, trace):
    """Returns all figures of the steps; wrong figures make their step fail."""
    report = {"steps": results, "tests": tests_of(work)}
    for name, test in report["tests"].items():
        if "cuda" in name and test["skipped"] and results[name]["status"] == "ok":
            results[name]["status"] = f"failed: {len(test['skipped'])} tests were skipped on a GPU"
    files = {name: read(work / f"{name}.bench.json") for name in results}
    report["bench"] = {name: file for name, file in files.items() if file}
    events = (read(trace) or {}).get("traceEvents", [])
    if events:
        report["timeline"] = {**hidden_copies.hidden(events, skip_us=5e4), "trace": trace.name}
    peers = read(work / "pytorch.json")
    if peers:
        report["pytorch"] = {"figures": peers}
    runs = {device: read(work / device / "summary.json") for device in ("cpu", "cuda")}
    report["census"] = {device: run["eval_auc"] for device, run in runs.items() if run}
    if len(report["census"]) == 2:
        apart = abs(report["census"]["cpu"] - report["census"]["cuda"])
        report["census"]["auc_apart"] = apart
        if apart > AUC_APART_MAX:
            results["census_cuda"]["status"] = f"failed: AUC {apart:.4f} from the CPU's"
    report["goals"] = gpu_goals.judged(report)
    return report


def parse_flags(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=pathlib.Path("gpu_check.json"))
    parser.add_argument("--dry_run", action="store_true", help="say what would run here, and what would not and why")
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], help="these steps alone")
    parser.add_argument("--quick", action="store_true", help="smaller sizes of the benchmarks")
    for folder in ("bin", "tests", "examples", "peers"):
        parser.add_argument(f"--{folder}", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    flags = parser.parse_args(arguments)
    for folder in ("bin", "tests", "examples", "peers"):
        setattr(flags, folder, getattr(flags, folder).resolve())
    if not (flags.bin / "hdps").exists():
        parser.error(f"no hdps in {flags.bin}; build first (scripts/build.sh)")
    return flags


def say_plan(steps, gpu, why):
    print(f"gpu_check: {gpu or 'no GPU here: ' + why}")
    for step in steps:
        print(f"  {step.name:24} {step.budget:3d} s  {step.shows}" + (f"; skipped: {step.needs}" if step.needs else ""))
    print(f"gpu_check: {len(steps)} steps, {sum(s.budget for s in steps)} s at most; nothing was run")


def main(arguments=None):
    flags = parse_flags(arguments)
    gpu, why = gpu_of_machine()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if gpu and (missing := missing_libraries(flags.bin / "hdps")):
            os.environ["LD_LIBRARY_PATH"] = ":".join([os.environ.get("LD_LIBRARY_PATH", ""), *library_folders()])
            if missing := missing_libraries(flags.bin / "hdps"):
                print("gpu_check: error: " + MISSING_LIBRARY.format(", ".join(missing)), file=sys.stderr)
                return 2
        plan = Plan(flags, work)
        steps = plan.steps()
        unknown = set(flags.only) - {step.name for step in steps}
        if unknown:
            print(f"gpu_check: error: --only: no step {', '.join(sorted(unknown))}; --dry_run shows them",
                  file=sys.stderr)
            return 2
        if flags.dry_run:
            say_plan(steps, gpu, why)
            return 0
        if not gpu:
            steps = [dataclasses.replace(step, needs="no GPU") for step in steps]
        print(f"gpu_check: {gpu or 'no GPU found: ' + why}", flush=True)
        report = {"gpu": gpu or f"none: {why}", **collect(run_all(steps, work), work, plan.trace)}
    bad = [name for name, step in report["steps"].items() if not step["status"].startswith(("ok", "skipped"))]
    report["passed"] = bool(gpu) and not bad
    flags.out.write_text(json.dumps(report, indent=2) + "\n")
    for row in report["goals"]:
        print("gpu_check: " + gpu_goals.line_of(row))
    done = sum(step["status"] == "ok" for step in report["steps"].values())
    print(f"gpu_check: {done} of {len(report['steps'])} steps ok"
          + (f"; FAILED: {', '.join(bad)}" if bad else "") + f"; figures in {flags.out}")
    return 3 if not gpu else 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
