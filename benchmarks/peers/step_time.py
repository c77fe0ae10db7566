#!/usr/bin/env python3
"""Measures where a step's time goes: processor time of each phase and thread, waits, context switches
and page faults of a steady step, for the cases of the comparison with peers.

  benchmarks/peers/step_time.py --bin=build/bin [--case=small] [--form=process|daemons]
  benchmarks/peers/step_time.py --bin=build/bin --beside=/tmp/before/bin --repeats=5   # in turns

Threads and switches come from /proc, phases from `perf` (Debian: linux-perf) if it is installed: the
share of a phase is that of its functions in the samples. A steady step is one after the first epoch,
when all rows exist.
"""
import argparse
import collections
import dataclasses
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")
FORMS = {"process": "one process", "daemons": "1 server + 1 worker as daemons"}
# A sample goes to the first phase whose pattern is in "thread function library". Helper threads of
# oneTBB have the name of the thread that needed them first, so a thread's name counts only if its
# function tells nothing. perf shows ended threads, as each epoch's reader, as numbers.
PHASES = [
    ("reader: find distinct keys", r"UniqueKeys|OrderByShard|KeyFinder|KeySplit|KeyTable|KeyOrder"),
    ("rows: update", r"UpdateRows|GradientSums|InitRows|TableSlice"),
    ("rows: read", r"ReadRows|ReadAll"),
    ("rows: requests checked", r"FirstNotFinite|ShardsOf|RequestPlan|CheckKeys"),
    ("model: rows of each feature", r"FeatureRows|CopyScattered|AddScattered|CopyKeys"),
    ("model: bags pooled, and back", r"PoolBags|PoolBackward|GatherSum"),
    ("model: sums over rows' users", r"AddSources|AddSegments|FinishSums|TakeGradient"),
    ("model: products", r"MultiplyAvx|MultiplyPlain|Gemm|AmxTiles|MultiplyPiece|Avx512Right|Avx512Left|LeftOperand|"
     r"dnnl|\[JIT\]|perf-\d+\.map|//anon|mkl"),
    ("model: the rest", r"CpuOps|RunRows|Loss|Chain|Graph|expm1"),
    ("messages", r"zmq|Transport|flatbuffers|Frame|Mailbox|tcp_|sock_|unix_|ip_|loopback"),
    ("looking for work, waking, switching", r"libtbb|sched|futex|switch|wake|pthread|poll|eventfd|"
     r"spin_unlock|idle|syscall"),
    ("reader: lines to batches", r"Parse|XXH|ShuffleWindow|LineReader|BatchBuilder|RowAdder|"
     r"TrimBlanks|NumericTransforms|memchr|^reader |^:\d+ "),
    ("copies", r"memmove|memcpy|memset"),
    ("pages given by the kernel", r"clear_page|fault|page|mmap|munmap|folio|memcg|zap_"),
]


def thread_times(pids):
    """Returns processor seconds by thread, and context switches and page faults, of the processes."""
    times, counts = collections.Counter(), collections.Counter()
    for role, pid in pids.items():
        # Includes threads that have ended: a reader lives for an epoch.
        ended = "%s: reader" % role
        with open("/proc/%d/stat" % pid, encoding="ascii") as text:
            stat = text.read().rsplit(")", 1)[1].split()
        times[ended] += (int(stat[11]) + int(stat[12])) / TICK
        counts["page faults"] += int(stat[7])
        for task in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/stat" % (pid, task), encoding="ascii") as text:
                    name, stat = text.read().split("(", 1)[1].rsplit(")", 1)
                with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii") as text:
                    switches = re.findall(r"ctxt_switches:\s+(\d+)", text.read())
            except (FileNotFoundError, ProcessLookupError):
                continue  # It has ended meanwhile.
            stat = stat.split()
            seconds = (int(stat[11]) + int(stat[12])) / TICK
            name = ended if name == "reader" else "%s: %s" % (role, name)
            times[name] += seconds
            times[ended] -= seconds
            counts["switches, of its own will"] += int(switches[0])
            counts["switches, taken off"] += int(switches[1])
    return times, counts


def processes_of(out, form, launcher):
    if form == "process":
        return {"hdps": launcher.pid}
    pids = {}
    for role in ("scheduler", "server_0", "worker_0"):
        with open(os.path.join(out, "pid", role + ".pid"), encoding="ascii") as text:
            pids[role.split("_")[0]] = int(text.read())
    return pids


def steps_done(out):
    path = os.path.join(out, "metrics.jsonl")
    if not os.path.exists(path):
        return 0
    with open(path, encoding="ascii") as text:
        lines = [json.loads(line) for line in text if line.endswith("\n")]
    return lines[-1].get("step", 0) if lines else 0


def wait_for_line(out, first, launcher):
    """Waits for a new line of metrics with at least `first` steps; returns its steps."""
    done = before = steps_done(out)
    while done < first or done == before:
        if launcher.poll() is not None:
            sys.exit("step_time.py: error: the job ended after %d steps; its output is in %s"
                     % (done, out))
        time.sleep(0.002)
        done = steps_done(out)
    return done


def shares_of_phases(samples):
    """Returns the share of each phase in all samples of perf."""
    text = subprocess.run(["perf", "script", "-i", samples, "-F", "comm,ip,sym,dso"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    found, names = collections.Counter(), collections.Counter()
    for line in text.splitlines():
        line = re.sub(r"\s+[0-9a-f]{6,}\s+", " ", line.strip(), count=1)
        phase = next((name for name, pattern in PHASES if re.search(pattern, line)), "other")
        found[phase] += 1
        if phase == "other":
            names[line[:100]] += 1
    total = sum(found.values())
    return {name: count / total for name, count in found.items()}, names.most_common(12)


def run(flags, programs, case, form, job, perf):
    out = tempfile.mkdtemp(dir=flags.scratch)
    if form == "process":
        command = [os.path.join(programs, "hdps"), "train", "--servers=1", "--workers=1"]
    else:
        command = [os.path.join(HERE, "../../scripts/local_cluster.sh"), "--servers=1",
                   "--workers=1", "--transport=" + flags.transport]
    epochs = max(3, 2 + -(-flags.steps // case.steps))
    settings = ",".join(filter(None, ["train.epochs=%d" % epochs, flags.set]))
    command += ["--job=" + job, "--out=" + out, "--threads=%d" % flags.threads, "--set=" + settings]
    environment = dict(os.environ, HDPS_BIN=os.path.abspath(programs))
    with open(os.path.join(out, "output"), "w", encoding="ascii") as output:
        launcher = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    first = wait_for_line(out, case.steps, launcher)
    pids = processes_of(out, form, launcher)
    begin, (times, counts) = time.monotonic(), thread_times(pids)
    samples = os.path.join(out, "perf.data")
    recorder = None
    if perf:
        recorder = subprocess.Popen(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-o", samples, "-p",
             ",".join(str(pid) for pid in pids.values())], stderr=subprocess.DEVNULL)
    last = wait_for_line(out, min(first + flags.steps, (epochs - 1) * case.steps), launcher)
    end, (times_after, counts_after) = time.monotonic(), thread_times(pids)
    if recorder is not None:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
    if launcher.wait() != 0:
        sys.exit("step_time.py: error: the job failed; its output is in " + out)
    steps = last - first
    with open(os.path.join(out, "summary.json"), encoding="ascii") as text:
        digest = json.load(text)["digest"]
    result = {"steps": steps, "wall_ms": 1e3 * (end - begin) / steps, "digest": digest,
              "threads_ms": {name: 1e3 * (value - times.get(name, 0)) / steps
                             for name, value in times_after.items()},
              "counts": {name: (value - counts[name]) / steps
                         for name, value in counts_after.items()}}
    result["cpu_ms"] = sum(result["threads_ms"].values())
    result["examples_per_second"] = 1e3 * case.batch / result["wall_ms"]
    if perf:
        result["phases"], result["other"] = shares_of_phases(samples)
    shutil.rmtree(out)
    return result


def median_of(runs, *path):
    def value(one):
        for part in path:
            one = one.get(part, 0)
        return one
    return statistics.median(value(one) for one in runs)


def print_rows(runs, key, scale):
    names = sorted({name for ones in runs for one in ones for name in one.get(key, {})},
                   key=lambda name: -median_of(runs[-1], key, name))
    for name in names:
        values = [median_of(ones, key, name) * (median_of(ones, scale) if scale else 1)
                  for ones in runs]
        if max(values) >= 0.005:
            print("  %-38s" % name + "".join("%10.2f" % value for value in values))


def print_case(case, form, labels, runs, perf):
    print("%s, %s, batch %d, %d steps" % (case.name, FORMS[form], case.batch, runs[0][0]["steps"]))
    print("  %-38s" % "" + "".join("%10s" % label for label in labels))
    for name, key in (("examples/s", "examples_per_second"), ("wall, ms a step", "wall_ms"),
                      ("processor, ms a step", "cpu_ms")):
        print("  %-38s" % name + "".join("%10.2f" % median_of(ones, key) for ones in runs))
    if perf:
        print(" processor time by phase, ms a step")
        print_rows(runs, "phases", "cpu_ms")
    print(" processor time by thread, ms a step")
    print_rows(runs, "threads_ms", None)
    print(" a step")
    print_rows(runs, "counts", None)
    if len({one["digest"] for ones in runs for one in ones}) > 1:
        print("  the digests differ: they trained other parameters")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    parser.add_argument("--beside", default="", help="programs of another state, run in turns")
    parser.add_argument("--case", default="", help="cases with this in their name; empty: all")
    parser.add_argument("--form", default="", choices=["", *FORMS], help="empty: both")
    parser.add_argument("--steps", type=int, default=400, help="to measure, about")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--transport", default="tcp", help="of the daemons: tcp or ipc")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--data", default="", help="keep the data of the cases in this folder")
    parser.add_argument("--set", default="", help="override fields of the job")
    parser.add_argument("--json", default="", help="also write every run into this file")
    parser.add_argument("--no_perf", action="store_true", help="threads only, nothing is slowed down")
    flags = parser.parse_args()
    perf = not flags.no_perf and shutil.which("perf") is not None
    flags.scratch = tempfile.mkdtemp(dir=flags.scratch)
    data = flags.data or flags.scratch
    states = {"before": flags.beside, "now": flags.bin} if flags.beside else {"now": flags.bin}
    everything = []
    try:
        for case in (case for case in cases.CASES
                     if flags.case in case.name and not case.on_gpu):
            folder = os.path.join(data, case.name)
            cases.make_data(case, folder)
            job = cases.write_job(dataclasses.replace(case, eval_rows=0), folder)
            for form in (form for form in FORMS if flags.form in ("", form)):
                runs = [[] for _ in states]
                for _ in range(flags.repeats):  # In turns: noise hits all alike.
                    for i, programs in enumerate(states.values()):
                        runs[i].append(run(flags, programs, case, form, job, perf))
                print_case(case, form, list(states), runs, perf)
                everything.append({"case": case.name, "form": form,
                                   "runs": dict(zip(states, runs))})
    finally:
        shutil.rmtree(flags.scratch)
    if flags.json:
        with open(flags.json, "w", encoding="ascii") as text:
            json.dump(everything, text, indent=2)


if __name__ == "__main__":
    main()
