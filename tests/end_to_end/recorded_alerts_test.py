"""Tests alerts on recorded runs: each fires in a run with its fault, and none in a healthy one.

Two of the six have series written by hand alone, in tests.yml: a server keeps its memory limit, and a training loss that is
not finite ends a job of layers, so no run of such a job shows their faults.

The figures of running daemons are read every fifth of a second and given to promtool as samples of 5 s, the interval of
examples/monitoring/prometheus.yml. So times pass 25 times as fast, and figures that are times are stretched alike."""
import json
import re
import shutil
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import harness
from failing_cluster import FailingCluster

FOLDER = harness.ROOT / "examples" / "monitoring"
TOKEN = "0123456789abcdef0123456789abcdef"
SAMPLE_S, TOLD_S = 0.2, 5
STRETCH = TOLD_S / SAMPLE_S
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
ASKED = re.compile(r"\b(?:hdps|process)_\w+")
SCRAPED = ("scheduler", "server_0", "server_1", "worker_0", "worker_1")


class Recording:
    """Figures of a cluster's daemons as promtool wants them: a list of samples for each series."""

    def __init__(self, names):
        self.names, self.series, self.samples = names, {}, 0
        self.begin = time.time()

    def take(self, cluster):
        for member, address in addresses(cluster).items():
            for line in figures_of(address).splitlines():
                found = SAMPLE.match(line)
                if found and found[1] in self.names:
                    labels = ", ".join(filter(None, [f'instance="{member}"', found[2]]))
                    values = self.series.setdefault(f"{found[1]}{{{labels}}}", [])
                    values += ["_"] * (self.samples - len(values)) + [self.told(found[1], float(found[3]))]
        self.samples += 1

    def told(self, name, value):
        """Times of the run as times of the rules, which begin at 0."""
        if name.endswith("checkpoint_time_seconds") and value > 0:
            value = (value - self.begin) * STRETCH
        if name.endswith("interval_seconds"):
            value *= STRETCH
        return {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}.get(str(value), f"{value:.3f}")

    def tests(self, name, expressions):
        """`expressions` have their samples at the end of the recording, or at each sample where none is expected."""
        series = [{"series": one, "values": " ".join(values)} for one, values in self.series.items()]
        return {"name": name, "interval": f"{TOLD_S}s", "input_series": series, "promql_expr_test": expressions}


def addresses(cluster):
    """Where the members that said so serve HTTP."""
    found = {}
    for name in SCRAPED:
        said = re.findall(r"watch at (http://\S+/)", cluster.said(name))
        if said:
            found[name] = said[-1] + "metrics"
    return found


def figures_of(address):
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(asked, timeout=SAMPLE_S) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return ""  # A member that is dead or stopped is not scraped.


class WatchedCluster(FailingCluster):
    def said(self, name):
        path = self.log_path(name, self.starts.get(name, 1)).with_suffix(".err")
        return path.read_text() if path.exists() else ""


@unittest.skipUnless(shutil.which("promtool"), "promtool is not here (scripts/install_deps.sh --developer)")
class RecordedAlerts(harness.Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        token = self.out("token")
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        self.flags = {name: ["--http=127.0.0.1:0", f"--http_token_file={token}"] for name in SCRAPED}
        self.rules = (FOLDER / "alerts.yml").read_text()
        self.names = set(ASKED.findall(self.rules))
        shutil.copytree(FOLDER, self.out("monitoring"))

    def cluster(self, name, job=harness.CENSUS, sets=None, faults=None, **size):
        sets = {"train.epochs": 100000, "cluster.heartbeat_ms": 100, "checkpoint.every_steps": 200, **(sets or {})}
        return WatchedCluster(job, self.out(name), sets=sets, faults=faults, flags=self.flags, **size)

    def record(self, cluster, seconds, until=lambda recording: True):
        """Records so long from now on, and on until the condition holds."""
        recording = Recording(self.names)
        begin = time.monotonic()
        while recording.samples * SAMPLE_S < seconds or not until(recording):
            self.assertLess(time.monotonic() - begin, 120, sorted(recording.series))
            recording.take(cluster)
            time.sleep(max(0.0, recording.samples * SAMPLE_S - (time.monotonic() - begin)))
        return recording

    def judge(self, tests):
        """promtool's judgement of the recorded runs: its words, empty if all is as expected."""
        folder = self.out("monitoring")
        (folder / "recorded.yml").write_text(json.dumps({"rule_files": ["alerts.yml"], "evaluation_interval": f"{TOLD_S}s",
                                                         "tests": tests}))
        done = subprocess.run(["promtool", "test", "rules", "recorded.yml"], cwd=folder, capture_output=True, text=True,
                              timeout=120)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def healthy(self, recording):
        return recording.tests("healthy", [{"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{TOLD_S * n}s"}
                                           for n in range(recording.samples)])

    def fires(self, recording, alert):
        at = TOLD_S * (recording.samples - 1)
        return recording.tests(alert, [{"expr": f'count(ALERTS{{alertstate="firing", alertname="{alert}"}}) > bool 0',
                                        "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": 1}]}])

    def test_alerts_fire_in_runs_with_their_faults_and_none_in_a_healthy_one(self):
        switch = self.out("full")
        recorded = {}
        full = f"full=checkpoint/*@while={switch}"
        with self.cluster("run", faults={name: [full] for name in ("scheduler", "server_0", "server_1")}) as cluster:
            cluster.wait_for_steps()
            cluster.wait_for(lambda: len(addresses(cluster)) == len(SCRAPED), 60, "all serve")
            has_saved_twice = lambda recording: any(
                one.startswith("hdps_checkpoint_interval") and float(values[-1]) > 0 for one, values in
                recording.series.items())
            healthy = self.record(cluster, 6, has_saved_twice)
            interval = max(float(values[-1]) for one, values in healthy.series.items() if "interval_seconds" in one)
            switch.touch()
            recorded["HdpsCheckpointOld"] = self.record(cluster, 2.5 * interval / STRETCH + 3)
            switch.unlink()
            cluster.signal("worker_1", signal.SIGSTOP)
            recorded["HdpsNoStep"] = self.record(cluster, 6)
            cluster.signal("worker_1", signal.SIGKILL)
            cluster.signal("worker_1", signal.SIGCONT)
            recorded["HdpsMemberSilent"] = self.record(cluster, 4)
        with self.cluster("memory", job=harness.spilling_job(self.folder, spill_path=str(self.out("spill"))),
                          faults={"server_0": [f"full=spill/*@while={switch}"]}, servers=1, workers=1) as cluster:
            cluster.wait_for(lambda: "rows beyond the limit go to" in cluster.log("server_0"), 60, "rows are on disk")
            switch.touch()
            cluster.wait_for(lambda: "waits: no space for spilled rows" in cluster.log("scheduler"), 120, "the disk is full")
            recorded["HdpsDiskFull"] = self.record(cluster, 1)
        self.assertEqual(self.judge([self.healthy(healthy)]), "")
        for alert, recording in recorded.items():
            with self.subTest(alert):
                self.assertEqual(self.judge([self.fires(recording, alert)]), "")
                self.assertNotEqual(self.judge([self.fires(healthy, alert)]), "", "it does not fire in the healthy run")
                self.assertNotEqual(self.judge([self.healthy(recording)]), "", "the run with the fault is not healthy")
        harness.figure(f"{len(recorded)} of {self.rules.count('- alert:')} alerts on recorded runs: {', '.join(recorded)} fire "
                       f"with their faults and none in a healthy run of {healthy.samples} samples")


if __name__ == "__main__":
    harness.main()
