"""Tests what monitoring reads of running jobs: promtool over /metrics of every role, the alerts, and the board's queries."""
import json
import re
import shutil
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import harness

FOLDER = harness.ROOT / "examples" / "monitoring"
TOKEN = "0123456789abcdef0123456789abcdef"
# Settings of jobs that count different things.
JOBS = {"sync": {}, "async": {"train.mode": "async"},
        "memory limit": {"cluster.memory_limit": "56MiB"},
        "kept rows": {"model.vocab_cache_size": 300, "parallel.dense_exchange": "allreduce"},
        "copies": {"cluster.replicas": 1}}
SERIES_MAX, SERIES_OF_TABLE_MAX, BYTES_MAX, SCRAPE_SECONDS_MAX = 300, 12, 64 << 10, 0.010
SCRAPES = 200
METRIC = re.compile(r"\b(?:hdps|process)_\w+")


def promtool(*arguments, **kwargs):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, **kwargs)


def series_of(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def names_of(text):
    return {re.match(r"\w+", line)[0] for line in series_of(text)}


def queries_of(board):
    """The PromQL of a Grafana board, with the variables as Grafana would fill them in."""
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return [query.replace("$__rate_interval", "1m").replace("$job", "hdps") for query in found]


@unittest.skipUnless(shutil.which("promtool"), "promtool is not here (scripts/install_deps.sh --developer)")
class Monitoring(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        self.token = self.out("token")
        self.token.write_text(TOKEN + "\n")
        self.token.chmod(0o600)

    def serving(self, name, *flags):
        """Starts a program that serves HTTP and trains without end; returns the address of its figures."""
        log = self.out(f"stderr_{len(self.running)}")
        with log.open("w") as stderr:
            self.start(name, *flags, "--http=127.0.0.1:0", f"--http_token_file={self.token}", stderr=stderr)
        said = re.compile(r"watch at (http://\S+/)")
        harness.wait_until(lambda: said.search(log.read_text()), 60, f"the address of {name}")
        return said.search(log.read_text())[1] + "metrics"

    def scrape(self, address):
        asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return answer.read().decode()

    def value(self, text, name):
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0

    def wait_for(self, address, *figures):
        """Waits until these figures are no longer zero. A program that has just begun may answer with 503."""
        def grown():
            try:
                text = self.scrape(address)
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, 503)
                return False
            return all(self.value(text, figure) > 0 for figure in figures)
        harness.wait_until(grown, 60, f"{figures} at {address}")

    def check(self, text, what):
        """promtool has nothing to say, and there are few series; returns how many."""
        checked = promtool("check", "metrics", input=text)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""), what)
        series = series_of(text)
        tables = set(re.findall(r'table="((?:[^"\\]|\\.)*)"', text))
        self.assertLessEqual(len(series), SERIES_MAX + SERIES_OF_TABLE_MAX * len(tables), what)
        without = [line for line in text.splitlines(keepends=True) if 'table="' not in line]
        self.assertLessEqual(len("".join(without)), BYTES_MAX, what)
        return len(series)

    def test_promtool_has_no_complaint_of_any_job(self):
        told = []
        for name, sets in JOBS.items():
            with self.subTest(name):
                self.kill_all()
                self.running = []
                address = self.serving("hdps", "train", f"--job={harness.CENSUS}", f"--out={self.out(name)}",
                                       "--servers=2", "--workers=2", *harness.settings({"train.epochs": 100000, **sets}))
                self.wait_for(address, "hdps_step", "hdps_server_pulls_total", "hdps_worker_examples_total")
                text = self.scrape(address)
                told.append(f"{name} {self.check(text, name)} series, {len(text)} bytes")
        harness.figure(f"/metrics of hdps train with 2 servers and 2 workers: {'; '.join(told)}")

    def daemons(self):
        """A job as daemons that trains without end; the addresses of their figures by role."""
        place = self.out("address")
        job = [f"--job={harness.CENSUS}", "--set=train.epochs=100000"]
        serving = {"scheduler": self.serving("hdps-scheduler", *job, f"--out={self.out('run')}",
                                             "--listen=tcp://127.0.0.1:0", f"--address_file={place}")}
        harness.wait_until(lambda: place.exists() and place.read_text(), 30, "the scheduler's address")
        for role in ("server", "worker"):
            serving[role] = self.serving(f"hdps-{role}", *job, f"--scheduler={place.read_text().strip()}")
        for role, figure in (("scheduler", "hdps_step"), ("server", "hdps_server_pulls_total"),
                             ("worker", "hdps_worker_examples_total")):
            self.wait_for(serving[role], figure)
        return serving

    def test_daemons_have_what_alerts_and_the_board_ask_for(self):
        """Also: promtool has no complaint of any role, and a scrape takes little while the job trains."""
        serving = self.daemons()
        # An evaluation, a checkpoint: all that appears later.
        harness.wait_until(lambda: "hdps_evaluation{" in self.scrape(serving["scheduler"]), 60, "no evaluation")
        self.wait_for(serving["scheduler"], "hdps_checkpoint_step")
        serving["serve"] = self.serving("hdps", "serve", f"--checkpoint={self.out('run')}")
        texts = {role: self.scrape(address) for role, address in serving.items()}
        told = [f"{role} {self.check(text, role)} series, {len(text)} bytes" for role, text in texts.items()]
        names = set().union(*map(names_of, texts.values()))
        board = json.loads((FOLDER / "board.json").read_text())
        queries = queries_of(board)
        self.assertGreater(len(queries), 25)
        asked = {"alerts.yml": set(METRIC.findall((FOLDER / "alerts.yml").read_text())),
                 "tests.yml": set(METRIC.findall((FOLDER / "tests.yml").read_text())),
                 "board.json": {name for query in queries for name in METRIC.findall(query)}}
        for file, wanted in asked.items():
            self.assertEqual(wanted - names, set(), f"{file} asks for what no daemon has")
        self.assertIn("hdps_nothing", {"hdps_nothing"} - names, "a name that nobody has is noticed")
        times = []
        for _ in range(SCRAPES):
            for role, address in serving.items():
                begin = time.perf_counter()
                self.scrape(address)
                times.append((time.perf_counter() - begin, role))
        p99 = sorted(times)[int(0.99 * len(times))][0]
        harness.figure(f"/metrics of daemons: {'; '.join(told)}; {len(times)} scrapes while the job trains: 99% within "
                       f"{p99 * 1000:.1f} ms")

    def test_alerts_fire_with_their_faults_and_not_in_a_healthy_job(self):
        folder = self.out("monitoring")
        shutil.copytree(FOLDER, folder)
        for name in ("token", "ca.pem"):
            (folder / name).touch()
        for arguments in (("check", "config", "prometheus.yml"), ("test", "rules", "tests.yml")):
            done = promtool(*arguments, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rules = (FOLDER / "alerts.yml").read_text()
        alerts = re.findall(r"- alert: (\w+)\n( +expr: (?:>-\n(?: {10}.*\n)+|.*\n))", rules)
        self.assertEqual(len(alerts), rules.count("- alert:"))
        for never, what in (("vector(0) > 1", "an alert that never fires"), ("vector(1)", "an alert that always fires")):
            for name, expression in alerts:
                (folder / "alerts.yml").write_text(rules.replace(expression, f"        expr: {never}\n"))
                self.assertNotEqual(promtool("test", "rules", "tests.yml", cwd=folder).returncode, 0, f"{name}: {what}")
        harness.figure(f"{len(alerts)} alerts: each fires in a run with its fault and none in a healthy one; tests.yml "
                       "notices each that never or always fires")

    def test_the_boards_queries_are_promql(self):
        queries = queries_of(json.loads((FOLDER / "board.json").read_text()))
        rules = {"groups": [{"name": "board", "rules": [{"record": f"q{i}", "expr": query} for i, query in
                                                          enumerate(queries)]}]}
        self.out("board.yml").write_text(json.dumps(rules))  # JSON is YAML.
        checked = promtool("check", "rules", self.out("board.yml"))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn(f"{len(queries)} rules found", checked.stdout)


if __name__ == "__main__":
    harness.main()
