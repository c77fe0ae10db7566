"""Runs the built programs like a user: jobs and clusters, and checks what they leave behind."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("HDPS_BIN", ROOT / "build" / "bin"))
CENSUS = ROOT / "examples" / "census" / "census.json"
APART = {"cluster.join_tables": "false"}  # Every table of a server has rows of its own.
JOINED = "tables 'wide' and 'deep' share rows"  # Said by a server without that setting,
# where the same features read both tables, as they do in census with this.
SAME_FEATURES = {"model.wide_features": json.loads(CENSUS.read_text())["model"]["deep_features"]}


# Of long tests the share that each change is judged by, or all of them: docs/records/night.md.
SHARE = os.environ.get("HDPS_TESTS", "share") != "all"


def at_night(test):
    """Marks a test, or a class of them, that runs only where all tests are asked for."""
    return unittest.skipIf(SHARE, "of the full tests")(test)


def left_out(what):
    """Says what of a test is not run here; scripts/test.sh repeats these lines at its end."""
    print(f"left out: {what}", flush=True)


def share(part, whole, what):
    """`part` for each change, said with `what` that leaves out; `whole` where all tests are asked for."""
    if not SHARE:
        return whole
    left_out(what)
    return part


# The third of long tests that runs today, as tests/share.h chooses it.
THIRD = int(os.environ.get("HDPS_THIRD", time.time() // 86400)) % 3


def third_of(cases, what):
    """Every third of alike `cases`, others each day, said with `what`; all where all tests are asked for."""
    cases = list(cases)
    chosen = cases[THIRD % len(cases)::3]
    return share(chosen, cases, f"{len(cases) - len(chosen)} of {len(cases)} {what}, all but third {THIRD}")


def asked(name, part, whole, what):
    """The number that the environment's `name` asks for; without it a share() of `whole`."""
    return int(os.environ[name]) if name in os.environ else share(part, whole, f"{whole - part} of {whole} {what}")


def program(name):
    return str(BIN / name)


def figure(text):
    """Prints what a test measured; scripts/test.sh shows these lines when the tests have passed."""
    print(f"figure: {text}", flush=True)


def run(command, timeout=300, expect=0, **kwargs):
    """Runs a command; its exit status must be `expect` (None: any). Returns the finished process."""
    if "input" not in kwargs:
        kwargs["stdin"] = subprocess.DEVNULL
    done = subprocess.run([str(c) for c in command], timeout=timeout, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **kwargs)
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}\nexit status {done.returncode}, expected "
                             f"{expect}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


# Starts a command from a process that is small itself: the kernel counts what a program's parent held when it was started.
WITH_PEAK = """
import os, sys
nothing = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 2)])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def with_peak(command):
    """What a command prints, and the most bytes of memory that it had."""
    done = subprocess.run([sys.executable, "-c", WITH_PEAK, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, command
    return done.stdout, int(done.stderr) * 1024


def python_with(name, packages):
    """A Python that has packages of PyPI, made once as build/NAME; None where they cannot be installed.

    Tests that run at once may ask for the same one: the lock lets one of them make it, and the others wait.
    """
    folder = BIN.parent / name
    python, made = folder / "bin" / "python", folder / "done"
    with open(BIN.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Ends with the process that has it.
        if not made.exists():
            for command in ([sys.executable, "-m", "venv", "--clear", folder],
                            [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
                             *packages]):
                if subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True).returncode:
                    return None
            made.touch()
    return python


def skip_without_onnx():
    """Skips the test, or the class of tests, if the build has no ONNX."""
    said = run([program("hdps"), "export", "--checkpoint=none", "--format=onnx", "--out=none"], expect=None).stderr
    if "this build of hdps lacks it" in said:
        raise unittest.SkipTest("hdps was built without libonnx-dev (scripts/install_deps.sh --export)")


def settings(values):
    """{"train.mode": "async"} as --set flags; none for none."""
    return [f"--set={k}={json.dumps(v) if not isinstance(v, str) else v}" for k, v in values.items()]


def merged_settings(values):
    if not values:
        return []
    return ["--set=" + ",".join(f"{k}={json.dumps(v) if not isinstance(v, str) else v}"
                                for k, v in values.items())]


def summary_of(out):
    return json.loads((pathlib.Path(out) / "summary.json").read_text())


def scheduler_state(path):
    """The newest state in a scheduler.state; ValueError where that is just being written."""
    return json.loads(re.split(r"^#.*\n", path.read_text(), flags=re.M)[-1])


def train(job, out, servers=1, workers=1, sets=None, timeout=300, expect=0, extra=()):
    """The whole cluster in one process. Returns summary.json, or the process when it must fail."""
    done = run([program("hdps"), "train", f"--job={job}", f"--out={out}", f"--servers={servers}",
                f"--workers={workers}", *merged_settings(sets), *extra], timeout, expect)
    return summary_of(out) if expect == 0 else done


def cluster(job, out, servers=1, workers=1, sets=None, timeout=300, expect=0, extra=()):
    """The same as daemons."""
    done = run([ROOT / "scripts" / "local_cluster.sh", f"--job={job}", f"--out={out}",
                f"--servers={servers}", f"--workers={workers}", *merged_settings(sets), *extra],
               timeout, expect, env={**os.environ, "HDPS_BIN": str(BIN)})
    return summary_of(out) if expect == 0 else done


def processes_with(text):
    """Process numbers of running hdps programs whose command line mentions `text`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if "hdps" in line.split(" ")[0] and text in line and state != "Z":
            found.append(int(entry.name))
    return found


def free_port():
    """Of loopback; nobody listens there now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def refusing_socket():
    """Of loopback, with a port at which nobody listens while it is open: nobody else can take it."""
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    return one, one.getsockname()[1]


def wait_until(condition, seconds, what):
    """Waits for a condition; a deadline is a failure that says what never came."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Case(unittest.TestCase):
    """A test with a folder of its own, removed when it passes."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hdps_test_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def out(self, name):
        return self.folder / name


class DaemonsCase(Case):
    """A test that starts daemons of its own; none of them outlives it."""

    def setUp(self):
        super().setUp()
        self.running = []
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.running = []

    def start(self, name, *flags, env=None, stderr=subprocess.PIPE):
        return self.start_command(program(name), *flags, env=env, stderr=stderr)

    def start_command(self, *command, env=None, stderr=subprocess.PIPE):
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=stderr, text=True,
                                   env={**os.environ, **(env or {})})
        self.running.append(process)
        return process


def generate(folder, **flags):
    """A synthetic click log; returns the folder. Keyword a=b becomes --a=b."""
    run([program("hdps"), "generate", f"--out={folder}",
         *[f"--{name}={value}" for name, value in flags.items()]])
    return folder


def write_job(path, job):
    path = pathlib.Path(path)
    path.write_text(json.dumps(job, indent=2))
    return path


def spilling_job(folder, **cluster):
    """A small job, made in `folder`, whose server keeps most of its rows on disk; returns its file."""
    data = generate(folder / "data", rows=16384, eval_rows=64, vocabulary=60000, zipf=1.05, seed=3)
    job = reference_job(data, batch_size=512, eval_each_epoch=False)
    job["model"].update({"hidden": [8], "embedding_dim": 32})
    job["data"]["shuffle_rows"] = 1024
    job["checkpoint"] = {"keep": 1, "every_steps": 8}
    job["cluster"] = {"heartbeat_ms": 100, "memory_limit": "56MiB", **cluster}
    return write_job(folder / "job.json", job)


def reference_job(data, **train_settings):
    """REF-S: 13 numbers + 26 keys, dim 16, MLP 64-32-1, batch 1024, FTRL wide and LazyAdam deep."""
    return {
        "name": "reference_small", "seed": 1,
        "data": {"format": "criteo", "train": [f"{data}/train.tsv"], "eval": [f"{data}/eval.tsv"]},
        "model": {
            "type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32], "device": "cpu",
            "wide_optimizer": {"kind": "ftrl", "learning_rate": 0.05, "l1": 1e-8, "l2": 1e-8,
                               "initial_accumulator": 1.0},
            "deep_optimizer": {"kind": "lazy_adam", "learning_rate": 3.5e-4, "epsilon": 1e-8},
            "dense_optimizer": {"kind": "lazy_adam", "learning_rate": 3.5e-4, "epsilon": 1e-8},
        },
        "train": {"batch_size": 1024, "epochs": 1, "mode": "sync", **train_settings},
        "parallel": {"gradients_mean": True},
    }


def main():
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main(verbosity=2)
