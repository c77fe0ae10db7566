#!/usr/bin/python3
"""Trains the cases of benchmarks/peers on two machines joined by links of 1 and 10 Gbit/s, in
several settings, and prints speed, bytes per step, and the error of `hdps plan`.

  benchmarks/links/links.py --bin=build/bin [--rate=1,10] [--case=small] [--repeats=3] [--json=FILE]

Machines are namespaces of this one, with half of its cores each. If these cannot be made, or without
numpy, it prints the reason and ends with status 0.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import namespaces
from cluster_run import ClusterRun, Failed

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import cases  # noqa: E402  (it lies in another folder)

MACHINES = 2
BUSY = 0.85  # A resource that is busy for a larger share of the time bounds the job.
# Share of each column's values whose rows stay at the workers.
KEPT = 0.01
SETTINGS = ["plain", "keys", "16 bits", "rows kept", "ahead", "16 bits, ahead"]


def job_of(case, setting, epochs, folder):
    """Writes the job of benchmarks/peers in one setting, without evaluations, and returns its path."""
    path = pathlib.Path(cases.write_job(case, str(folder)))
    job = json.loads(path.read_text(encoding="ascii"))
    job["data"]["eval"] = []
    job["train"]["epochs"] = epochs
    if "16 bits" in setting:
        job["parallel"]["wire"] = "bf16"
    if "ahead" in setting:
        job["train"]["lookahead"] = 1
    if "rows kept" in setting:
        rows = round(KEPT * cases.VOCABULARY) * case.keys
        tables = job["model"].get("tables")
        for table in tables if tables else [job["model"]]:
            table["vocab_cache_size"] = rows
    path = path.with_name("%s.json" % setting.replace(", ", "_").replace(" ", "_"))
    path.write_text(json.dumps(job, indent=2), encoding="ascii")
    return path


def predicted(flags, case, job, gbit, cores):
    """Returns the answer of `hdps plan` for such a cluster."""
    row_bytes = os.path.getsize(job.parent / "train.tsv") / case.rows
    command = [os.path.join(flags.bin, "hdps"), "plan", "--job=%s" % job, "--servers=%d" % MACHINES,
               "--workers=%d" % MACHINES, "--machines=%d" % MACHINES, "--threads=%d" % cores,
               "--network=%gGbit" % gbit, "--rows=%d" % (cases.VOCABULARY * case.keys), "--zipf=1",
               "--row_bytes=%d" % round(row_bytes), "--constants=%s" % flags.constants, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def measure(flags, case, job, gbit, scratch, setting):
    """Runs once; returns ClusterRun.steady(), and hdps' own counts of bytes for comparison."""
    out = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    connections = ["--insecure"]
    if "keys" in setting:
        connections = ["--keys=%s" % (out / "keys")]
        subprocess.run([os.path.join(flags.bin, "hdps"), "keygen", "--out=%s" % (out / "keys")], check=True,
                       stdout=subprocess.DEVNULL)
    with namespaces.Machines(MACHINES, gbit * 1e9 / 8) as machines:
        run = ClusterRun(machines, flags.bin, job, out, flags=connections)
        summary = run.run()
        sample = run.steady(case.rows)
        sample["told_share"] = sum(run.told_by_members()) / sum(run.counted_by_devices())
        sample["digest"] = summary["digest"]
        sample["cores"] = machines.cores_each * MACHINES
    shutil.rmtree(out)
    return sample


def bound_by(link, cores):
    if max(link, cores) < BUSY:
        return "link and cores in turns"
    return "link" if link > cores else "cores"


def figure_of(case, gbit, setting, epochs, samples, plan):
    """Makes a row of the table: medians of the samples of one setting."""
    steps = (epochs - 1) * case.steps
    speeds = [s["examples_per_second"] for s in samples]
    speed = statistics.median(speeds)

    def bytes_a_step(way):
        return statistics.median(max(m[way] for m in s["bytes"]) / steps for s in samples)

    out, into = bytes_a_step("out"), bytes_a_step("in")
    step_seconds = case.batch / speed
    link = max(out, into) / step_seconds / (gbit * 1e9 / 8)
    cores = statistics.median(s["cpu_seconds"] / s["seconds"] / s["cores"] for s in samples)
    answer = plan["examples_per_second"]
    return {"case": case.name, "gbit": gbit, "setting": setting, "samples": speeds,
            "examples_per_second": speed, "bytes_out": out, "bytes_in": into,
            "link_share": link, "cores_share": cores, "bound_by": bound_by(link, cores),
            "link_bound": case.batch / (max(out, into) / (gbit * 1e9 / 8)),
            "told_share": statistics.median(s["told_share"] for s in samples),
            "planned": answer, "planned_bytes": plan["machine_bytes"],
            "planned_parts": plan["busy_seconds"], "ratio": answer / speed,
            "digest": samples[0]["digest"]}


HEADER = ("%-12s %5s %-15s %9s %-17s %17s %5s %6s %5s %8s %6s  %s"
          % ("case", "Gbit", "setting", "examples", "range", "MB a step out/in", "told", "link",
             "cores", "planned", "ratio", "bound by"))


def line_of(f):
    return ("%-12s %5g %-15s %9.0f %8.0f-%-8.0f %8.2f/%8.2f %5.2f %6.2f %5.2f %8.0f %6.2f  %s"
            % (f["case"], f["gbit"], f["setting"], f["examples_per_second"], min(f["samples"]),
               max(f["samples"]), f["bytes_out"] * 1e-6, f["bytes_in"] * 1e-6, f["told_share"],
               f["link_share"], f["cores_share"], f["planned"], f["ratio"], f["bound_by"]))


def measure_constants(flags, scratch):
    """Measures the constants of this machine for `hdps plan`, if no file was given."""
    if flags.constants:
        return
    flags.constants = os.path.join(scratch, "constants.json")
    print("links.py: measuring this machine's constants", file=sys.stderr)
    subprocess.run([os.path.join(flags.bin, "hdps-bench"), "constants", "--repeats=3",
                    "--json=" + flags.constants, "--scratch=" + scratch],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def about(flags):
    """Returns machine and commit from hdps-bench, and the speed of a bare socket over the links."""
    told = json.loads(pathlib.Path(flags.constants).read_text(encoding="utf-8"))
    sockets = {}
    for gbit in flags.rates:
        with namespaces.Machines(MACHINES, gbit * 1e9 / 8) as machines:
            sockets["%g" % gbit] = namespaces.bare_socket_rate(machines) * 8e-9
    return {"machine": told["machine"], "commit": told["commit"],
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machines": MACHINES,
            "repeats": flags.repeats, "bare_socket_gbit": sockets}


def measure_all(flags, scratch):
    """Runs every case, rate and setting in turns, so that noise hits all alike."""
    chosen = [case for case in cases.CASES if flags.case in case.name and not case.on_gpu]
    samples, jobs, epochs = {}, {}, {}
    for case in chosen:
        folder = pathlib.Path(scratch) / case.name
        cases.make_data(case, str(folder))
        # Epochs of few steps would end before a counter is read.
        epochs[case] = 1 + max(flags.epochs, -(-flags.steps // case.steps))
        for setting in flags.settings:
            jobs[case, setting] = job_of(case, setting, epochs[case], folder)
    for repeat in range(flags.repeats):
        for case in chosen:
            for gbit in flags.rates:
                for setting in flags.settings:
                    sample = measure(flags, case, jobs[case, setting], gbit, scratch, setting)
                    samples.setdefault((case, gbit, setting), []).append(sample)
                    print("links.py: run %d: %s, %g Gbit/s, %s: %.0f examples/s"
                          % (repeat + 1, case.name, gbit, setting, sample["examples_per_second"]),
                          file=sys.stderr)
    cores = max(len(os.sched_getaffinity(0)) // MACHINES, 1)
    return [figure_of(case, gbit, setting, epochs[case], of,
                      predicted(flags, case, jobs[case, setting], gbit, cores))
            for (case, gbit, setting), of in samples.items()]


def read_flags():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(HERE / "../../build/bin"))
    parser.add_argument("--rate", default="1,10", help="of each link and direction, Gbit/s")
    parser.add_argument("--case", default="", help="cases with this in their name; empty: all")
    parser.add_argument("--setting", default="", help="settings with this in their name; empty: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=1, help="measured, behind one that is not")
    parser.add_argument("--steps", type=int, default=40, help="measured, at least")
    parser.add_argument("--constants", default="",
                        help="what hdps-bench constants --json wrote here; empty: measured first")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--json", default="", help="also write the figures into this file")
    flags = parser.parse_args()
    try:
        flags.rates = [float(rate) for rate in flags.rate.split(",")]
    except ValueError:
        parser.error("--rate=%s: expected Gbit/s, as 1,10" % flags.rate)
    if min(flags.rates) <= 0:
        parser.error("--rate=%s: a link has a rate above 0" % flags.rate)
    if flags.constants and not os.path.exists(flags.constants):
        parser.error("--constants=%s: no such file; write one with hdps-bench constants --json=FILE, "
                     "or leave it out" % flags.constants)
    flags.settings = [setting for setting in SETTINGS if flags.setting in setting]
    return flags


def main():
    flags = read_flags()
    why = namespaces.why_not()
    try:
        import numpy  # noqa: F401  (make_data needs it)
    except ImportError:
        why = "there is no numpy for %s (Debian: python3-numpy)" % sys.executable
    if why is not None:
        print("links.py: skipped: " + why)
        return
    namespaces.end_on_signals()
    scratch = tempfile.mkdtemp(prefix="hdps_links_", dir=flags.scratch)
    try:
        measure_constants(flags, scratch)
        result = about(flags)
        result["results"] = measure_all(flags, scratch)
    except Failed as error:
        sys.exit("links.py: error: %s" % error)
    finally:
        shutil.rmtree(scratch)
    print(HEADER)
    for figure in result["results"]:
        print(line_of(figure))
    if flags.json:
        pathlib.Path(flags.json).write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
