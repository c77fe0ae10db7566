#!/usr/bin/env python3
"""Trains the same cases with hdps and with PyTorch in turns, and prints the speed of each beside the
best PyTorch: for a first epoch from empty tables, and for a second one over the same data, whose rows
exist.

  benchmarks/peers/compare.py --bin=build/bin [--case=small] [--repeats=5] [--json=FILE]

Without PyTorch (benchmarks/peers/setup.sh installs it) it prints a note and ends with status 0, because
a missing peer is not an error.
"""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import cases
import comparison
import machine

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# How each form of a peer is run.
SCRIPTS = {"pytorch plain": "pytorch_wide_deep.py", "pytorch tuned": "pytorch_tuned.py",
           "pytorch fbgemm": "pytorch_fbgemm.py"}


def fail(message):
    print("%s: error: %s" % (os.path.basename(sys.argv[0]), message), file=sys.stderr)
    sys.exit(2)


def output_of(command, **kwargs):
    """Returns the output of a command; shows its stderr only if it fails."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **kwargs)
    if done.returncode != 0:
        print(done.stderr[-4000:], file=sys.stderr)
        print("compare.py: error: status %d of: %s" % (done.returncode, " ".join(command)),
              file=sys.stderr)
        sys.exit(3)
    return done.stdout


def has_pytorch(python):
    """Is true for an interpreter with numpy and a PyTorch that can compile (2.0 and later)."""
    asked = [python, "-c", "import numpy, torch; torch.compile"]
    return shutil.which(python) is not None and subprocess.run(
        asked, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def run_pytorch(flags, case, folder, system):
    python = flags.fbgemm_python if system.form == "pytorch fbgemm" else flags.python
    script = "pytorch_models.py" if case.model else SCRIPTS[system.form]
    command = [python, os.path.join(HERE, script), "--case=" + case.name, "--data=" + folder,
               "--threads=%d" % flags.threads, "--precision=" + system.precision,
               "--device=" + flags.device]
    environment = dict(os.environ)
    if case.model and system.form == "pytorch plain":
        environment["TORCH_COMPILE_DISABLE"] = "1"  # PyTorch's own.
    return json.loads(output_of(command, env=environment))


def epochs_of_metrics(path, case):
    """Returns the speed of both epochs, and the AUC after the first, from a run's metrics.jsonl, which has
    a line at the end of each epoch and of each evaluation."""
    epoch_ends, begins, auc = [], [0.0], None
    with open(path, encoding="ascii") as text:
        for line in map(json.loads, text):
            if "eval_auc" in line:
                auc = line["eval_auc"] if auc is None else auc
                begins[-1] = line["time"]
            elif line["epochs_done"] > len(epoch_ends):
                epoch_ends.append(line["time"])
                begins.append(line["time"])
    first, second = (case.rows / (end - begin) for begin, end in zip(begins, epoch_ends))
    return {"first_epoch": first, "second_epoch": second, "auc": auc}


def run_hdps(flags, case, folder, system):
    """Runs hdps in one process, or as daemons over tcp: a server and a worker."""
    job = cases.write_job(case, folder, flags.device)
    out = tempfile.mkdtemp(dir=folder)
    if system.form == comparison.GOAL_FORM:
        command = [os.path.join(ROOT, "scripts/local_cluster.sh"), "--servers=1", "--workers=1"]
    else:
        command = [os.path.join(flags.bin, "hdps"), "train"]
    command += ["--job=" + job, "--out=" + out, "--threads=%d" % flags.threads]
    # A job that says nothing of precision has fp32 products.
    settings = [flags.set] if flags.set else []
    settings += ["model.precision=" + system.precision] if system.precision != "fp32" else []
    if system.form == comparison.HOT_FORM:
        settings.append("model.vocab_cache_size=%d" % comparison.HOT_ROWS)
    command += ["--set=" + setting for setting in settings]
    output_of(command, env=dict(os.environ, HDPS_BIN=os.path.abspath(flags.bin)))
    run = epochs_of_metrics(os.path.join(out, "metrics.jsonl"), case)
    shutil.rmtree(out)
    return {"version": flags.version, **run}


def run_rows(flags, case, folder, system):
    """Runs PyTorch over rows of hdps: in one process, or as the worker of daemons over tcp. A limited server
    gets a part of the bytes that its rows were in the last run without a limit."""
    command = [flags.python, os.path.join(HERE, "pytorch_hdps.py"), "--case=" + case.name,
               "--data=" + folder, "--threads=%d" % flags.threads]
    environment = dict(os.environ, HDPS_BIN=os.path.abspath(flags.bin), PYTHONPATH=flags.package)
    environment.pop("HDPS_SCHEDULER", None)
    if system.form == comparison.ROWS_FORMS[0]:
        return json.loads(output_of(command, env=environment))
    out = tempfile.mkdtemp(dir=folder)
    settings, limit = [flags.set] if flags.set else [], {}
    if system.form == comparison.LIMITED_FORM:
        limit["memory_limit"] = flags.row_bytes // comparison.LIMITED_PART
        settings.append("cluster.memory_limit=%d" % limit["memory_limit"])
    output_of([os.path.join(ROOT, "scripts/local_cluster.sh"), "--servers=1", "--workers=1",
               "--job=" + cases.write_tables_job(case, folder), "--out=" + out,
               "--threads=%d" % flags.threads, "--worker_command=" + shlex.join(command)] +
              ["--set=" + setting for setting in settings], env=environment)
    with open(os.path.join(out, "log/worker_0.log"), encoding="utf-8") as text:
        printed = [line for line in text if line.startswith('{"case"')][-1]
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as text:
        flags.row_bytes = json.load(text)["row_bytes"]
    shutil.rmtree(out)
    return {**json.loads(printed), **limit}


def save(flags, figures):
    if flags.json:
        with open(flags.json, "w", encoding="ascii") as text:
            json.dump(figures, text, indent=2)


def compare(flags, case, folder, systems, about, before):
    """Returns the figures of one case, and writes them with those of earlier cases."""
    output_of([flags.python, os.path.join(HERE, "cases.py"), case.name, folder])
    runs = {system: [] for system in systems}
    for _ in range(flags.repeats):  # In turns: noise hits all alike.
        for system, own in runs.items():
            run = run_pytorch if system.is_peer else run_hdps
            if system.form in (*comparison.ROWS_FORMS, comparison.LIMITED_FORM):
                run = run_rows
            own.append(run(flags, case, folder, system))
            done = {system: own for system, own in runs.items() if own}
            save(flags, before + comparison.figures_of(case, done, about))
    return comparison.figures_of(case, runs, about)


def shared_parser(about):
    """Returns the flags of this script and of compare_models.py."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/bin"))
    parser.add_argument("--case", default="", help="cases with this in their name; empty: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default=os.path.join(ROOT, "build/peers_venv/bin/python"),
                        help="an interpreter that has torch and numpy (default: setup.sh's)")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--set", default="", help="override fields of hdps's job")
    parser.add_argument("--json", default="", help="also write the figures into this file")
    return parser


def check_shared(flags, of):
    """Ends with status 2 at a mistake, and sets flags.cases, those of `of` that the flags name."""
    if flags.repeats < 1:
        fail("--repeats=%d: at least 1" % flags.repeats)
    of = [case for case in of if flags.device == "cuda" or not case.on_gpu]
    flags.cases = [case for case in of if flags.case in case.name]
    if not flags.cases:
        fail("--case=%s: on %s there are %s" % (flags.case, flags.device, ", ".join(c.name for c in of)))


def parse_flags(arguments):
    parser = shared_parser(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"],
                        help="where all of them compute; cuda: in fp32, tf32 and bf16")
    parser.add_argument("--all", action="store_true", help="FBGEMM's fused tables too (setup.sh --all)")
    parser.add_argument("--fbgemm_python",
                        default=os.path.join(ROOT, "build/peers_venv_fbgemm/bin/python"),
                        help="an interpreter that has fbgemm-gpu-cpu (default: setup.sh's)")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction,
                        help="hdps with bf16 products too (default: where the processor has them)")
    parser.add_argument("--rows", action="store_true",
                        help="PyTorch over hdps' rows too (scripts/build.sh python)")
    parser.add_argument("--limited", action="store_true",
                        help="only PyTorch over hdps' rows, four times the server's memory, beside no limit")
    parser.add_argument("--package", default=os.path.join(ROOT, "build/python"),
                        help="where the package of --rows is")
    flags = parser.parse_args(arguments)
    check_shared(flags, cases.CASES)
    if (flags.rows or flags.limited) and not os.path.isdir(os.path.join(flags.package, "hdps")):
        fail("--rows: no Python package in %s; build it (scripts/build.sh python)" % flags.package)
    if (flags.rows or flags.limited) and flags.device == "cuda":
        fail("--rows: PyTorch over hdps' rows is compared on the CPU; leave out --device=cuda")
    if flags.all and flags.device == "cuda":
        fail("--all: FBGEMM's tables are compared on the CPU; leave out --device=cuda")
    return flags


def compare_all(flags, systems, about):
    """Prints the figures of all cases."""
    print("%s (%s), %d threads, medians of %d in turns and their range" % (
        about["cpu"], ", ".join(about["vector_extensions"]), flags.threads, flags.repeats))
    figures = []
    scratch = tempfile.mkdtemp(dir=flags.scratch)
    try:
        for case in flags.cases:
            of_case = compare(flags, case, os.path.join(scratch, case.name), systems, about, figures)
            figures += of_case
            print("\n".join(comparison.lines_of(of_case)), flush=True)
    finally:
        shutil.rmtree(scratch)


def is_ready(flags):
    """Returns false without PyTorch, and says so; finds hdps and its version."""
    if not has_pytorch(flags.python):
        print("%s: skipped: no PyTorch and numpy in %s; benchmarks/peers/setup.sh makes them (or "
              "--python=FILE)" % (os.path.basename(sys.argv[0]), flags.python))
        return False
    hdps = os.path.join(flags.bin, "hdps")
    if not os.path.exists(hdps):
        fail("--bin=%s: no hdps there; build first (scripts/build.sh)" % flags.bin)
    flags.version = output_of([hdps, "--version"]).splitlines()[0]
    return True


def main(arguments=None):
    flags = parse_flags(arguments)
    if not is_ready(flags):
        return
    if flags.all and not has_pytorch(flags.fbgemm_python):
        fail("--all: no PyTorch in %s; benchmarks/peers/setup.sh --all makes it (or --fbgemm_python=FILE)"
             % flags.fbgemm_python)
    about = {**machine.cpu(), "threads": flags.threads}
    peer_bf16 = machine.multiplies_bf16(about) or bool(flags.bf16)
    our_bf16 = peer_bf16 if flags.bf16 is None else flags.bf16
    systems = comparison.systems(peer_bf16, our_bf16, flags.all, flags.rows, flags.limited)
    if flags.device == "cuda":
        systems = comparison.systems_on_gpu()
    compare_all(flags, systems, about)


if __name__ == "__main__":
    main()
