"""Follows logs while they are written, by the real programs: the digest is that of the finished log."""
import gzip
import os
import random
import shutil
import signal
import subprocess
import time
import urllib.request

import harness

HDPS = harness.program("hdps")
ROWS, BATCH, FILES = 3000, 100, 3
STOP_SECONDS_MAX = 10


class Follow(harness.DaemonsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.whole = {}

    def setUp(self):
        super().setUp()
        data = harness.generate(self.out("data"), rows=ROWS, eval_rows=8, vocabulary=50, seed=5)
        lines = (data / "train.tsv").read_bytes().splitlines(keepends=True)
        size = ROWS // FILES
        self.texts = {f"log-{n}.tsv": b"".join(lines[n * size:(n + 1) * size]) for n in range(FILES)}
        self.object = harness.reference_job(data, batch_size=BATCH)
        self.object["model"].update({"embedding_dim": 4, "hidden": [8]})
        del self.object["data"]["eval"]
        self.object["data"].update({"train": ["log"], "shuffle_rows": 250})
        self.object["checkpoint"] = {"every_steps": 4}
        self.object["cluster"] = {"heartbeat_ms": 100, "dead_after_ms": 2000}
        self.finished = self.job("finished")
        for name, text in self.texts.items():
            (self.finished.parent / "log" / name).write_bytes(text)
        self.object["data"].update({"follow": True, "follow_until": "_SUCCESS"})

    def job(self, name):
        """A job file of the present object, beside a log without files."""
        (self.out(name) / "log").mkdir(parents=True)
        return harness.write_job(self.out(name) / "job.json", self.object)

    def reference(self, workers, **sets):
        key = (workers, *sets.values())
        if key not in self.whole:
            self.whole[key] = harness.train(self.finished, self.out(f"whole_{workers}_{len(sets)}"), 1, workers, sets)
        return self.whole[key]

    def launch(self, job, out, workers=1, *sets):
        return self.start("hdps", "train", f"--job={job}", f"--out={out}", "--servers=1", f"--workers={workers}",
                          *(f"--set={one}" for one in sets))

    def append(self, job, name, text):
        with open(job.parent / "log" / name, "ab") as file:
            file.write(text)

    def write_in_pieces(self, job, chance):
        """Whole lines, halves of lines and whole files, with pauses; then the marker."""
        pieces = 0
        for name, text in self.texts.items():
            if chance.random() < 0.3:  # As one file, under a name that is none until it is whole.
                (job.parent / "log" / f"{name}.tmp").write_bytes(text)
                os.rename(job.parent / "log" / f"{name}.tmp", job.parent / "log" / name)
                continue
            at = 0
            while at < len(text):
                size = chance.randrange(1, len(text) // 4)
                self.append(job, name, text[at:at + size])
                at, pieces = at + size, pieces + 1
                time.sleep(chance.uniform(0, 0.15))  # The pause of a writer, not a wait for anything.
        self.append(job, "_SUCCESS", b"")
        return pieces

    def end(self, process, out, status=0):
        said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, said[0][-2000:] + said[1][-2000:])
        return harness.summary_of(out) if status == 0 else said[1]

    def same(self, summary, reference):
        self.assertEqual(summary["digest"], reference["digest"])
        self.assertEqual(summary["examples"], ROWS)

    def page_of(self, process):
        """The address of the page of a job that starts, as it says it, with its token."""
        for line in process.stderr:
            if "watch at " in line:
                return line.split("watch at ")[1].strip()
        self.fail("no address of a page")

    def value(self, page, figure):
        """The sample of a figure; 0 before the worker has told it."""
        address, _, token = page.partition("/?token=")
        request = urllib.request.Request(address + "/metrics", headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request, timeout=10) as answer:
            samples = [line.split()[1] for line in answer.read().decode().splitlines() if line.startswith(figure + " ")]
        return float(samples[0]) if samples else 0

    def until_step(self, out, step):
        harness.wait_until(lambda: any(out.glob(f"checkpoint/step_*{step}/manifest.json")), 30,
                           f"the checkpoint of step {step}")

    def test_the_digest_is_that_of_the_finished_log(self):
        for workers in (1, 3):
            job, out = self.job(f"grows_{workers}"), self.out(f"run_{workers}")
            process = self.launch(job, out, workers)
            begin = time.monotonic()
            pieces = self.write_in_pieces(job, random.Random(workers))
            written = time.monotonic() - begin
            summary = self.end(process, out)
            self.same(summary, self.reference(workers))
            harness.figure(f"{workers} workers: {ROWS} rows in {pieces} pieces over {written:.1f} s, done "
                           f"{time.monotonic() - begin - written:.1f} s behind the marker, {summary['digest']}")

    def test_a_stopped_job_goes_on_where_it_was(self):
        """SIGTERM while three workers wait for rows, within a step that is not full and a line that is not whole."""
        job, out = self.job("stops"), self.out("stopped")
        names = list(self.texts)
        lines = self.texts[names[0]].splitlines(keepends=True)
        self.append(job, names[0], b"".join(lines[:850]) + lines[850][:20])
        process = self.launch(job, out, 3, "data.shuffle_rows=0")
        page = self.page_of(process)
        self.until_step(out, 8)
        harness.wait_until(lambda: self.value(page, "hdps_worker_rows_awaited_seconds") > 0, 30, "rows that are awaited")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        stopped = self.end(process, out)
        seconds = time.monotonic() - begin
        self.assertEqual(stopped["steps"], 8)
        self.assertLess(seconds, STOP_SECONDS_MAX)
        self.append(job, names[0], lines[850][20:] + b"".join(lines[851:]))
        process = self.launch(job, out, 3, "data.shuffle_rows=0")
        for name in names[1:]:
            self.append(job, name, self.texts[name])
        self.append(job, "_SUCCESS", b"")
        summary = self.end(process, out)
        self.assertEqual(summary["resumed_from"], 8)
        self.same(summary, self.reference(3, **{"data.shuffle_rows": 0}))
        harness.figure(f"SIGTERM while rows are waited for: status 0 after {seconds:.1f} s, resumed at step 8 of "
                       f"{summary['steps']}, {summary['digest']}")

    def test_kill_of_a_worker_changes_nothing(self):
        job, out = self.job("killed"), self.out("killed_run")
        names = list(self.texts)
        self.append(job, names[0], self.texts[names[0]])
        process = self.start_command(harness.ROOT / "scripts" / "local_cluster.sh", f"--job={job}", f"--out={out}",
                                     "--servers=1", "--workers=3", env={"HDPS_BIN": str(harness.BIN)})
        self.until_step(out, 4)
        for name in names[1:]:
            pid = int((out / "pid" / "worker_1.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            self.append(job, name, self.texts[name])
            harness.wait_until(lambda: (out / "pid" / "worker_1.pid").read_text().strip() != str(pid), 20,
                               "another worker 1")
        self.append(job, "_SUCCESS", b"")
        summary = self.end(process, out)
        self.same(summary, self.reference(3))
        harness.figure(f"kill -9 of a worker twice: {summary['steps_again']} of {summary['steps']} steps again, "
                       f"{summary['digest']}")

    def test_a_log_that_changes_is_named(self):
        """Each in the middle of a run: status, place, and what to do."""
        def truncate(log):
            os.truncate(log / "log-1.tsv", 100)

        def replace(log):
            shutil.copy(log / "log-1.tsv", log / "x.tmp")
            os.rename(log / "x.tmp", log / "log-1.tsv")

        def remove(log):
            os.remove(log / "log-0.tsv")

        def grow(log):
            with open(log / "log-0.tsv", "ab") as file:
                file.write(b"0\t1\n")

        def precede(log):
            (log / "log-00.tsv").write_bytes(b"")

        def pack(log):
            (log / "log-2.tsv").write_bytes(gzip.compress(self.texts["log-2.tsv"])[:-6])

        for change, status, *needles in (
                (truncate, 3, "log/log-1.tsv has 100 bytes, and", "begin a new job"),
                (replace, 3, "log/log-1.tsv is another file now", "put the file back"),
                (remove, 3, "log/log-0.tsv is gone", "put the file back"),
                (grow, 3, "log/log-0.tsv has grown from", "ends in .tmp"),
                (precede, 2, "log/log-00.tsv has come after", "rename it to one behind"),
                (pack, 2, "log/log-2.tsv' (gzip)", "pack it again")):
            with self.subTest(change.__name__):
                job, out = self.job(change.__name__), self.out(f"run_{change.__name__}")
                for name in list(self.texts)[:2]:
                    self.append(job, name, self.texts[name])
                process = self.launch(job, out, 1, "data.shuffle_rows=0")
                self.until_step(out, 20)
                change(job.parent / "log")
                said = self.end(process, out, status)
                for needle in needles:
                    self.assertIn(needle, said)
                harness.figure(f"[status {status}] {change.__name__}: {said.strip().splitlines()[-1][-240:]}")

    def test_a_log_that_changed_since_the_checkpoint_is_named(self):
        job, out = self.job("changed"), self.out("run_changed")
        for name in list(self.texts)[:2]:
            self.append(job, name, self.texts[name])
        process = self.launch(job, out, 1, "data.shuffle_rows=0")
        self.until_step(out, 20)
        process.send_signal(signal.SIGTERM)
        self.end(process, out)
        self.append(job, "log-00.tsv", self.texts["log-2.tsv"])  # Stands second by its name.
        said = self.end(self.launch(job, out, 1, "data.shuffle_rows=0"), out, 3)
        self.assertIn("file 2 of the log, by name, had", said)
        harness.figure(f"[status 3] a file between others, at the start: {said.strip().splitlines()[-1][-240:]}")

    def test_settings_without_a_meaning_are_refused(self):
        job = self.job("refused")
        self.append(job, "log-0.tsv", self.texts["log-0.tsv"])
        (job.parent / "log.gz").write_bytes(gzip.compress(self.texts["log-0.tsv"]))
        for change, *needles in (
                ("train.epochs=2", "train.epochs: 2", "set it to 1"),
                ("train.evals_per_epoch=2", "train.evals_per_epoch: 2", "train.eval_every_steps"),
                ("data.validation_share=0.1", "data.validation_share: a share", "data.eval"),
                ('data.item_features=["C1"],data.negatives.per_positive=2', "data.negatives.per_positive", "0"),
                ('data.train=["log","more"]', "data.train: 2 entries", "a folder or a pattern"),
                ("model.type=mlp,data.format=idx", "data.format", "idx"),
                ("data.follow_until=a/b", 'data.follow_until: "a/b"', "_SUCCESS"),
                ("data.follow=false", 'data.follow_until: "_SUCCESS"', "data.follow is true"),
                ('data.train=["lgo"]', "data.train.0", "there is no such file"),
                ('data.train=["log.gz"]', "log.gz is packed", "the folder in which such files appear"),
                ("data.follow=yes", "data.follow", "true or false")):
            with self.subTest(change):
                done = subprocess.run([str(HDPS), "train", f"--job={job}", f"--out={self.out('refused_run')}",
                                       f"--set={change}"], capture_output=True, text=True, timeout=30)
                harness.figure(f"[status {done.returncode}] {change}: {done.stderr.strip().splitlines()[-1][-200:]}")
                self.assertEqual(done.returncode, 2, done.stderr)
                for needle in needles:
                    self.assertIn(needle, done.stderr)


if __name__ == "__main__":
    harness.main()
