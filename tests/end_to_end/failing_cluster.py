"""Runs the daemons of one job, restarts those that die, and gives faults to each."""
import os
import pathlib
import signal
import subprocess
import time

import harness

# So often may one member die before the job is given up: a loop of crashes is a bug.
STARTS_MAX = 8


class FailingCluster:
    """The daemons of one job. A member is called scheduler, server_0, worker_1, ...

    `faults` gives members --faults, one text for each time they are started: {"server_0":
    ["point=server.push.applied:crash@9"]} crashes the first server_0 and leaves the next one alone. `flags` gives members
    further flags: {"scheduler": ["--http=none"]}.
    """

    def __init__(self, job, out, servers=2, workers=2, sets=None, faults=None, env=None, flags=None):
        self.job, self.out = job, pathlib.Path(out)
        self.servers, self.workers = servers, workers
        self.sets = harness.merged_settings(sets)
        self.faults = {name: list(texts) for name, texts in (faults or {}).items()}
        self.flags = flags or {}
        self.env = {**os.environ, **(env or {})}
        (self.out / "log").mkdir(parents=True)
        self.address = "tcp://127.0.0.1:0"
        self.processes, self.starts, self.ends = {}, {}, []
        self.newcomers = []
        self.began = time.monotonic()
        self.start("scheduler")
        address_file = self.out / "address"
        harness.wait_until(lambda: address_file.exists() or self.look(), 60, "the scheduler listens")
        self.address = address_file.read_text().strip()
        for name in self.members():
            self.start(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def start_newcomer(self, name):
        """A member that nobody counted on: it may be refused."""
        self.newcomers.append(name)
        self.start(name)

    def before(self, name):
        """The command that runs a member's program; none: it runs as it is."""
        return []

    def members(self):
        return ([f"server_{i}" for i in range(self.servers)] +
                [f"worker_{i}" for i in range(self.workers)])

    def start(self, name):
        count = self.starts[name] = self.starts.get(name, 0) + 1
        if count > STARTS_MAX:
            raise AssertionError(f"{name} died {count - 1} times\n{self.describe()}")
        command = [f"--job={self.job}", *self.sets, f"--log_file={self.log_path(name, count)}"]
        command += self.flags.get(name, [])
        if self.faults.get(name):
            text = self.faults[name].pop(0)
            command += [f"--faults={text}"] if text else []
        if name == "scheduler":
            command += [f"--out={self.out}", f"--listen={self.address}",
                        f"--address_file={self.out}/address",
                        f"--servers={self.servers}", f"--workers={self.workers}"]
        else:
            command += [f"--scheduler={self.address}", f"--rank={name.split('_')[1]}", "--threads=1"]
        program = harness.program("hdps-" + name.split("_")[0])
        with open(self.log_path(name, count).with_suffix(".err"), "w") as err:
            self.processes[name] = subprocess.Popen([*self.before(name), program, *command], stdin=subprocess.DEVNULL,
                                                    stdout=err, stderr=err, env=self.env)

    def log_path(self, name, count):
        return self.out / "log" / f"{name}.{count}.log"

    def log(self, name=None, count=None):
        """The text of the logs and error outputs of a member's processes, or of everybody's."""
        names = [name] if name else ["scheduler", *self.members()]
        text = ""
        for each in names:
            for n in [count] if count else range(1, self.starts.get(each, 0) + 1):
                for path in (self.log_path(each, n), self.log_path(each, n).with_suffix(".err")):
                    text += path.read_text() if path.exists() else ""
        return text

    def describe(self):
        ends = ", ".join(f"{name} ended with {code} at {at:.1f} s" for name, code, at in self.ends)
        tails = [f"--- {path.name}\n" + "\n".join(line[:160] for line in
                                                  path.read_text().splitlines()[-8:])
                 for path in sorted((self.out / "log").iterdir()) if path.stat().st_size]
        return f"{self.out}: {ends}\n" + "\n".join(tails)

    def look(self):
        """Starts again who died. Always False, so that a condition can look too."""
        for name, process in list(self.processes.items()):
            status = process.poll()
            if status is None or status == 0 or self.over():
                continue
            if name in self.newcomers and status == 2:
                continue
            self.ends.append((name, status, time.monotonic() - self.began))
            if status == 2 or (name == "scheduler" and status > 1):
                raise AssertionError(f"{name} gave up with status {status}\n{self.describe()}")
            self.start(name)
        return False

    def over(self):
        """The scheduler has ended well; or all members have, and it died behind its last word."""
        return (self.processes["scheduler"].poll() == 0 or
                all(name in self.processes and self.processes[name].poll() == 0
                    for name in self.members()))

    def running(self, name):
        return self.processes[name].poll() is None

    def wait_for(self, condition, seconds, what):
        """Keeps the cluster alive until `condition`, which must come before the end of the job."""
        def now():
            self.look()
            if condition():
                return True
            if self.over():
                raise AssertionError(f"the job ended before: {what}\n{self.describe()}")
            return False
        try:
            harness.wait_until(now, seconds, what)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.describe()}") from None

    def wait_for_steps(self, steps=1):
        """Until so many steps are reported: traffic flows."""
        self.wait_for(lambda: self.reported_step() >= steps, 120, f"step {steps} is reported")

    def wait_some(self, seconds):
        """Lets a fault last."""
        end = time.monotonic() + seconds
        self.wait_for(lambda: time.monotonic() > end, seconds + 60, "some time")

    def reported_step(self):
        metrics = self.out / "metrics.jsonl"
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return max([int(line.split('"step":')[1].split(",")[0].strip(" }"))
                    for line in lines if '"step":' in line], default=-1)

    def memory(self, name):
        """Bytes that the running process of a member takes; 0 when it has just ended."""
        try:
            status = pathlib.Path(f"/proc/{self.processes[name].pid}/status").read_text()
        except OSError:
            return 0
        return next((int(line.split()[1]) << 10 for line in status.splitlines()
                     if line.startswith("VmRSS:")), 0)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def finish(self, seconds=120):
        """Waits for the end of the job; returns its summary."""
        def ended():
            self.look()
            return self.over() and not any(self.running(name)
                                           for name in self.members() + self.newcomers)
        try:
            harness.wait_until(ended, seconds, "the job ends")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.describe()}") from None
        return harness.summary_of(self.out)
