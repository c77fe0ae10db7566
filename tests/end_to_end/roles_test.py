"""Tests the daemons: any order of start, ranks, refusals, deadlines, and nothing left behind."""
import json
import re
import signal
import time

import harness


class Roles(harness.DaemonsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import pathlib, tempfile
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=20480, eval_rows=1024, vocabulary=1000, zipf=1.05, seed=7)
        cls.job = harness.write_job(cls.data / "job.json", harness.reference_job(cls.data))

    @classmethod
    def tearDownClass(cls):
        import shutil
        shutil.rmtree(cls.data, ignore_errors=True)

    def scheduler(self, out, servers, workers, *flags, sets=None, address="tcp://127.0.0.1:0"):
        file = self.out(f"{out}_address")
        process = self.start("hdps-scheduler", f"--job={self.job}", f"--out={self.out(out)}",
                             f"--servers={servers}", f"--workers={workers}", f"--listen={address}",
                             f"--address_file={file}", *harness.merged_settings(sets), *flags)
        harness.wait_until(lambda: file.exists() and file.read_text() or process.poll() is not None, 20,
                           "the scheduler's address")
        return process, file.read_text().strip() if file.exists() else ""

    def member(self, name, address, *flags, sets=None, env=None):
        return self.start(name, f"--job={self.job}", f"--scheduler={address}",
                          *harness.merged_settings(sets), *flags, env=env)

    def finish(self, process, expect=0, seconds=60):
        out, err = process.communicate(timeout=seconds)
        self.assertEqual(process.returncode, expect, f"{process.args}\n{out[-1500:]}\n{err[-1500:]}")
        return out + err

    def test_help_lists_own_flags(self):
        """Each program and command lists the flags that its own sources define, and no library's."""
        defined = set()
        for folder in ("common", "server", "worker", "scheduler", "tools", "benchmarks"):
            for source in (harness.ROOT / folder).rglob("*.cc"):
                defined |= set(re.findall(r"^DEFINE_\w+\(\s*(\w+)", source.read_text(), re.MULTILINE))
        overview = harness.run([harness.program("hdps"), "--help"]).stdout
        self.assertLessEqual(max(map(len, overview.splitlines())), 80, overview)
        commands = [["hdps", command] for command in re.findall(r"^  (\w+) +\S", overview, re.MULTILINE)
                    if command not in ("hdps", "help")]
        self.assertIn(["hdps", "train"], commands)
        commands += [["hdps-server"], ["hdps-worker"], ["hdps-scheduler"], ["hdps-bench"]]
        for name, *command in commands:
            said = harness.run([harness.program(name), *command, "--help"]).stdout
            flags = re.findall(r"^  --(\w+)", said, re.MULTILINE)
            harness.figure(f"{' '.join([name, *command])} --help: {len(flags)} flags")
            self.assertGreaterEqual(len(flags), 3, said)
            self.assertEqual(set(flags) - defined - {"flagfile", "help", "version"}, set(), said)
            self.assertLessEqual(max(map(len, said.splitlines())), 80, said)

    def test_forms_quickly_and_any_order(self):
        """1 + 2 + 4 form in under 5 s, members first; ranks are 0..n-1; all end with the job."""
        address = f"ipc://{self.out('socket')}"
        members = [self.member("hdps-worker", address) for _ in range(4)]
        members += [self.member("hdps-server", address) for _ in range(2)]
        begin = time.monotonic()
        scheduler, _ = self.scheduler("run", 2, 4, address=address)
        self.finish(scheduler)
        for process in members:
            self.finish(process, seconds=10)
        s = harness.summary_of(self.out("run"))
        self.assertEqual((s["servers"], s["workers"], s["steps"]), (2, 4, 20))
        total = time.monotonic() - begin
        harness.figure(f"formed, trained and ended in {total:.1f} s, of which the job took {s['wall_seconds']:.1f} s")
        self.assertLess(total - s["wall_seconds"], 5)
        self.assertEqual(harness.processes_with(str(self.job)), [])

    def test_members_find_the_scheduler_through_a_file(self):
        """Members that start first wait for the file; a file of a former run is left as soon as it is written anew."""
        place = self.out("file_address")
        place.write_text("tcp://127.0.0.1:9\n")  # Nobody listens there.
        late = self.out("late_address")
        members = [self.member(name, f"file:{place}") for name in ("hdps-server", "hdps-worker")]
        others = [self.member(name, f"file:{late}") for name in ("hdps-server", "hdps-worker")]
        for process, out in (members, "file"), (others, "late"):
            scheduler, _ = self.scheduler(out, 1, 1)
            for one in [scheduler, *process]:
                self.finish(one)
            self.assertFalse(self.out(f"{out}_address").exists())
        self.assertEqual(harness.summary_of(self.out("file"))["digest"], harness.summary_of(self.out("late"))["digest"])
        gone = harness.run([harness.program("hdps"), "status", f"--scheduler=file:{place}"], expect=3)
        self.assertIn(str(place), gone.stderr)

    def test_explicit_ranks(self):
        """Ranks 3, 1, 0, 2 are honoured and give the answer of automatic ones."""
        expected = harness.train(self.job, self.out("automatic"), 1, 4)["digest"]
        scheduler, address = self.scheduler("run", 1, 4)
        members = [self.member("hdps-server", address)]
        members += [self.member("hdps-worker", address, f"--rank={r}") for r in (3, 1, 0, 2)]
        self.finish(scheduler)
        for process in members:
            self.finish(process)
        self.assertEqual(harness.summary_of(self.out("run"))["digest"], expected)

    def test_the_rank_of_a_job(self):
        """parallel.global_rank is --rank: honoured, refused when taken, and not against the flag."""
        rank = lambda r: f"--set=parallel.global_rank={r}"
        expected = harness.train(self.job, self.out("automatic"), 1, 4)["digest"]
        scheduler, address = self.scheduler("run", 1, 4)
        members = [self.member("hdps-server", address)]
        members += [self.member("hdps-worker", address, rank(r)) for r in (3, 1, 0)]
        members += [self.member("hdps-worker", address, rank(2), "--rank=2")]
        self.finish(scheduler)
        for process in members:
            self.finish(process)
        self.assertEqual(harness.summary_of(self.out("run"))["digest"], expected)
        for flags, *needles in (((rank(1), "--rank=2"), "--rank=2", "parallel.global_rank is 1", "give one"),
                                ((rank(4096),), "parallel.global_rank", "4096", "from 0 to 4095"),
                                ((rank(-1),), "parallel.global_rank", "-1", "from 0 to 4095"),
                                (("--rank=4096",), "--rank=4096", "0 to 4095")):
            text = self.finish(self.member("hdps-worker", "tcp://127.0.0.1:9", *flags), 2, seconds=15)
            for needle in needles:
                self.assertIn(needle, text)
        scheduler, address = self.scheduler("claims", 1, 2)
        claims = [self.member("hdps-worker", address, rank(1)), self.member("hdps-worker", address, "--rank=1")]
        harness.wait_until(lambda: any(c.poll() is not None for c in claims), 10, "a refusal")
        self.assertIn("rank 1", self.finish(next(c for c in claims if c.poll() is not None), 2))
        scheduler.send_signal(signal.SIGTERM)
        scheduler.communicate(timeout=15)
        told = harness.run([harness.program("hdps"), "train", f"--job={self.job}", "--workers=2",
                            f"--out={self.out('local')}", rank(1)])
        self.assertIn("parallel.global_rank = 1 is ignored here", told.stdout + told.stderr)

    def test_second_claim_of_a_rank(self):
        scheduler, address = self.scheduler("run", 1, 2)
        first = self.member("hdps-worker", address, "--rank=1")
        second = self.member("hdps-worker", address, "--rank=1")
        harness.wait_until(lambda: first.poll() is not None or second.poll() is not None, 10, "a refusal")
        text = self.finish(first if first.poll() is not None else second, 2)
        harness.figure(text.strip().splitlines()[-1])
        self.assertIn("rank 1", text)
        scheduler.send_signal(signal.SIGTERM)
        scheduler.communicate(timeout=15)

    def test_status_before_and_while_training(self):
        """hdps status tells whom a scheduler waits for, then where the members are; nobody there: 3."""
        hdps = harness.program("hdps")
        scheduler, address = self.scheduler("run", 1, 1, sets={"train.epochs": 40})
        ask = [hdps, "status", f"--scheduler={address}"]
        self.assertIn("waiting for 1 of 1 server and 1 of 1 worker", harness.run(ask).stdout)
        members = [self.member("hdps-server", address, sets={"train.epochs": 40}),
                   self.member("hdps-worker", address, sets={"train.epochs": 40})]
        metrics = self.out("run") / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and metrics.stat().st_size, 60, "training")
        status = json.loads(harness.run([*ask, "--json"]).stdout)
        self.assertEqual((status["view"], [m["name"].split(" (")[0] for m in status["members"]]),
                         (1, ["server 0", "worker 0"]))
        scheduler.send_signal(signal.SIGTERM)
        self.finish(scheduler)
        for process in members:
            self.finish(process, seconds=10)
        gone = harness.run(ask, expect=3)
        self.assertIn("is the scheduler running there", gone.stderr)

    def test_surplus_worker_is_refused(self):
        """It may be there for one that is lost; when nobody is, it was a mistake."""
        sets = {"train.epochs": 100000, "cluster.dead_after_ms": 2000}
        scheduler, address = self.scheduler("run", 1, 1, sets=sets)
        members = [self.member("hdps-server", address, sets=sets),
                   self.member("hdps-worker", address, sets=sets)]
        metrics = self.out("run") / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and metrics.stat().st_size, 60, "training")
        text = self.finish(self.member("hdps-worker", address, sets=sets), 2, seconds=30)
        harness.figure(text.strip().splitlines()[-1])
        self.assertRegex(text, r"has its 1 worker")
        scheduler.send_signal(signal.SIGTERM)
        self.finish(scheduler)
        for process in members:
            self.finish(process, seconds=10)

    def test_missing_worker_is_named(self):
        """3 of 4 workers: the deadline passes, and every message names what is missing."""
        sets = {"cluster.rendezvous_timeout_s": 2}
        scheduler, address = self.scheduler("run", 1, 4, sets=sets)
        members = [self.member("hdps-server", address, sets=sets)]
        members += [self.member("hdps-worker", address, sets=sets) for _ in range(3)]
        text = self.finish(scheduler, 3, seconds=20)
        harness.figure(text.strip().splitlines()[-1])
        self.assertRegex(text, r"1 of 4 workers")
        for process in members:
            self.finish(process, 3, seconds=10)

    def test_started_by_environment(self):
        """No flags but --job: addresses and counts come from the environment, also MindSpore's names."""
        address = f"ipc://{self.out('socket')}"
        env = {"HDPS_SCHEDULER": address, "HDPS_SERVERS": "1", "HDPS_WORKERS": "1"}
        server = self.start("hdps-server", f"--job={self.job}", env=env)
        worker = self.start("hdps-worker", f"--job={self.job}", env=env)
        scheduler = self.start("hdps-scheduler", f"--job={self.job}", f"--out={self.out('run')}",
                               f"--listen={address}", env={"MS_SERVER_NUM": "1", "MS_WORKER_NUM": "1"})
        for process in (scheduler, server, worker):
            self.finish(process)

    def test_other_job_is_refused(self):
        _, address = self.scheduler("run", 1, 1)
        text = self.finish(self.member("hdps-worker", address, sets={"seed": 99}), 2, seconds=10)
        harness.figure(text.strip().splitlines()[-1])
        self.assertRegex(text, r"job")

    def test_bad_rows_are_passed_over_when_allowed(self):
        """--max_bad_rows decides whether the job goes on; what was passed over is counted."""
        lines = (self.data / "train.tsv").read_text().splitlines()
        lines[7] = "1\tnot a number" + lines[7][lines[7].index("\t", 2):]
        bad = self.out("bad.tsv")
        bad.write_text("\n".join(lines) + "\n")
        sets = {"data.train.0": str(bad)}
        text = harness.cluster(self.job, self.out("refused"), 1, 2, sets, expect=2).stderr
        self.assertRegex(text, r"bad.tsv:8:3")
        s = harness.cluster(self.job, self.out("allowed"), 1, 2, sets, extra=["--max_bad_rows=1"])
        harness.figure(f"bad rows passed over: {s['bad_rows']}, examples {s['examples']} of {len(lines)}")
        self.assertEqual((s["bad_rows"], s["examples"]), (1, len(lines) - 1))

    def test_log_shows_placement(self):
        """The log says where every layer and table lives (and a reader can grep it)."""
        harness.cluster(self.job, self.out("run"), 2, 1)
        worker = (self.out("run") / "log" / "worker_0.log").read_text()
        server = (self.out("run") / "log" / "server_0.log").read_text()
        for pattern in (r"kind=dense device=cpu", r"kind=embedding"):
            self.assertRegex(worker, pattern)
        for pattern in (r"table 'deep'.* update device cpu.* lazy_adam.* dim 16", r"table 'wide'.* ftrl"):
            self.assertRegex(server, pattern)


if __name__ == "__main__":
    harness.main()
