"""Runs one job on machines made of namespaces, and counts time and bytes at the end of each epoch."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import namespaces

LAUNCHER = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "local_cluster.sh"
PORT = 8118
MOVED = re.compile(r"sent (\d+) bytes in \d+ frames, of these bytes (\d+) through shared memory")


class Failed(Exception):
    """The job failed; has the message of its launcher."""


def _cpu_seconds(machines):
    """Returns the processor time of all processes on the machines so far."""
    ticks = 0
    for machine in range(machines.count):
        for pid in machines.processes(machine):
            try:
                stat = pathlib.Path("/proc/%s/stat" % pid).read_text(encoding="ascii")
            except OSError:
                continue  # It has ended.
            ticks += sum(map(int, stat.rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _epoch_ends(out):
    """Returns the seconds of training at the end of each finished epoch."""
    path, ends = out / "metrics.jsonl", []
    if not path.exists():
        return ends
    for line in path.read_text(encoding="ascii").splitlines(True):
        # The last one may still be written.
        told = json.loads(line) if line.endswith("\n") else {}
        if told.get("epochs_done", 0) > len(ends) and "eval_auc" not in told:
            ends.append(told["time"])
    return ends


class ClusterRun:
    """`servers` and `workers` are counts by machine; machine 0 also runs the scheduler. `flags` must have
    --insecure or --keys, so that members may connect over the network."""

    def __init__(self, machines, binaries, job, out, servers=(1, 1), workers=(1, 1), flags=("--insecure",)):
        self.machines, self.out, self.flags = machines, pathlib.Path(out), list(flags)
        self.binaries, self.job = os.path.abspath(binaries), job
        self.servers, self.workers = servers, workers
        self.ends, self.counted, self.cpu_seconds, self.launchers = [], [], [], []

    def folder(self, machine):
        return self.out / ("machine_%d" % machine)

    def _start(self, machine):
        m = self.machines
        command = [str(LAUNCHER), "--job=%s" % self.job, "--out=%s" % self.folder(machine),
                   "--servers=%d" % self.servers[machine], "--workers=%d" % self.workers[machine],
                   "--total-servers=%d" % sum(self.servers), "--total-workers=%d" % sum(self.workers),
                   "--node-rank=%d" % machine, "--host=%s" % m.address(machine),
                   "--restart=never", "--threads=%d" % m.cores_each, *self.flags]
        address = "tcp://%s:%d" % (m.address(0), PORT)
        command.append(("--listen=" if machine == 0 else "--scheduler=") + address)
        self.folder(machine).mkdir(parents=True, exist_ok=True)
        with open(self.folder(machine) / "said", "w", encoding="ascii") as said:
            self.launchers.append(subprocess.Popen(
                m.command(machine, command), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env=dict(os.environ, HDPS_BIN=self.binaries)))

    def _look(self):
        """Counts again if an epoch has ended since the last call."""
        ends = _epoch_ends(self.folder(0))
        if len(ends) > len(self.ends):
            self.ends = ends
            counters = [self.machines.counters(m) for m in range(self.machines.count)]
            # An epoch that ended between two calls is counted with the next.
            self.counted += [counters] * (len(ends) - len(self.counted))
            self.cpu_seconds += [_cpu_seconds(self.machines)] * (len(ends) - len(self.cpu_seconds))

    def run(self, seconds_max=900):
        """Runs the job to its end; returns its summary."""
        deadline = time.monotonic() + seconds_max
        try:
            for machine in range(self.machines.count):
                self._start(machine)
            while any(launcher.poll() is None for launcher in self.launchers):
                self._look()
                if time.monotonic() > deadline:
                    raise Failed("%s: not done after %d s" % (self.job, seconds_max))
                time.sleep(0.01)
            self._look()
        finally:
            for launcher in self.launchers:
                if launcher.poll() is None:
                    launcher.send_signal(signal.SIGKILL)  # Its processes die with it.
                launcher.wait()
        for machine, launcher in enumerate(self.launchers):
            if launcher.returncode != 0:
                said = (self.folder(machine) / "said").read_text(encoding="utf-8")
                raise Failed("%s: machine %d ended with status %d:\n%s"
                             % (self.job, machine, launcher.returncode, said[-3000:]))
        return json.loads((self.folder(0) / "summary.json").read_text(encoding="ascii"))

    def counted_by_devices(self):
        """Returns the bytes of the run that left each machine, or stayed in it between processes."""
        return [sum(device["out"] for device in self.machines.counters(m).values())
                for m in range(self.machines.count)]

    def told_by_members(self):
        """Returns the bytes that the members of each machine report as sent through sockets."""
        told = []
        for machine in range(self.machines.count):
            told.append(0)
            for log in sorted((self.folder(machine) / "log").glob("*.log")):
                found = MOVED.findall(log.read_text(encoding="utf-8"))
                if not found:
                    raise Failed("%s says nothing of the bytes it moved" % log)
                told[-1] += sum(int(sent) - int(shared) for sent, shared in found)
        return told

    def steady(self, rows):
        """Returns examples per second, processor seconds, and bytes in each direction of each machine's link.
        Counts from the end of the first epoch, which creates the rows, to the end of the last."""
        if len(self.ends) < 2:
            raise Failed("%s: %d epochs of training were seen, 2 are needed"
                         % (self.job, len(self.ends)))
        seconds, epochs = self.ends[-1] - self.ends[0], len(self.ends) - 1

        def moved(machine, way):
            at = [counters[machine][namespaces.PORT][way] for counters in self.counted]
            return at[-1] - at[0]

        return {"seconds": seconds, "examples_per_second": epochs * rows / seconds,
                "cpu_seconds": self.cpu_seconds[-1] - self.cpu_seconds[0],
                "bytes": [{way: moved(m, way) for way in ("in", "out")}
                          for m in range(self.machines.count)]}
