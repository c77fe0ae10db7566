"""Tests hdps predict and evaluate: lines in the order of rows, files that stay unchanged, figures of logits."""
import json
import math
import os
import re
import subprocess
import threading

import harness

HDPS = harness.program("hdps")


def text_of(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


class PredictTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.rows = [(i % 2, f"a{i % 3}", i % 7, f"c{i % 5}") for i in range(40)]
        self.out("t.csv").write_text(text_of(self.rows))
        self.job = harness.write_job(self.out("job.json"), {
            "name": "small", "data": {
                "train": ["t.csv"],
                "columns": [{"name": "y", "type": "label"}, {"name": "a"}, {"name": "n", "type": "numeric"},
                            {"name": "c"}]},
            "model": {"type": "logistic", "device": "cpu"}, "train": {"batch_size": 20, "epochs": 2}})

    def train(self, **sets):
        harness.train(self.job, self.out("run"), sets={k.replace("__", "."): v for k, v in sets.items()})
        return self.out("run")

    def by_processes(self, count, command, *flags, meet="meet"):
        """Runs a command in so many processes, and returns the processes with what they said."""
        processes = [subprocess.Popen(
            [HDPS, command, f"--checkpoint={self.out('run')}", f"--workers={count}", f"--process={r}",
             f"--meet={self.out(meet)}", "--threads=1", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for r in range(count)]
        return [(p, *p.communicate(timeout=120)) for p in processes]

    def test_workers_that_are_processes(self):
        """Figures and lines are those of workers in one process (E0), and of one worker to 1e-6."""
        self.train(model__type="wide_deep", model__embedding_dim=4, model__hidden="[8,8]")
        self.out("q.csv").write_text(text_of((i % 2, f"a{i % 4}", i % 7, f"c{i % 6}") for i in range(3000)))
        data = f"--data={self.out('q.csv')}"
        cut = ("--set=parallel.dense_exchange=allreduce,parallel.parallel_mode=auto_parallel",)
        evaluated = [HDPS, "evaluate", f"--checkpoint={self.out('run')}", data]
        single = harness.run(evaluated).stdout
        lines = [float(line) for line in self.predict(data).stdout.split()]
        for count, how in ((2, ()), (3, ()), (2, cut)):
            with self.subTest(f"{count} processes", how=how):
                together = self.by_processes(count, "evaluate", data, *how)
                for process, said, errors in together:
                    self.assertEqual(process.returncode, 0, errors)
                self.assertEqual([said for _, said, _ in together[1:]], [""] * (count - 1))
                here = harness.run([*evaluated, f"--workers={count}", *how]).stdout
                self.assertEqual(together[0][1], here)
                auc = [re.search(r"auc +(\S+)", text)[1] for text in (single, here)]
                self.assertEqual(*auc)
                self.assertEqual(os.listdir(self.out("meet")), [], "all have left")
                together = self.by_processes(count, "predict", data, f"--out={self.out('lines')}", *how)
                self.assertEqual([p.returncode for p, _, _ in together], [0] * count, together[0][2])
                text = self.out("lines").read_text()
                self.assertEqual(text, self.predict(data, f"--workers={count}", *how).stdout)
                apart = max(abs(a - float(b)) for a, b in zip(lines, text.split(), strict=True))
                harness.figure(f"{count} processes {how}: auc {auc[0]}, lines at most {apart:.3g} from one worker's")
                self.assertLessEqual(apart, 1e-6)

    def test_keys_without_a_row_are_counted(self):
        """By evaluate and predict, one worker or two processes, as a count of the rows here does."""
        self.train()
        rows = [(i % 2, f"a{i % 4}", i % 7, f"c{i % 11 % 6}") for i in range(5000)]
        self.out("q.csv").write_text(text_of(rows))
        values = [(column, row[column]) for row in rows for column in (1, 3)]
        trained = {(column, row[column]) for row in self.rows for column in (1, 3)}
        distinct = set(values)
        share = 100 * sum(value not in trained for value in values) / len(values)
        told = (f"{len(distinct - trained)} of {len(distinct)} distinct keys "
                f"({100 * len(distinct - trained) / len(distinct):.3g} %), {share:.3g} % of all, have no row in "
                "the checkpoint and read as ")
        data = f"--data={self.out('q.csv')}"
        for command in ("evaluate", "predict"):
            for word, means in (("initial", "their initial values"), ("zero", "zeros")):
                said = harness.run([HDPS, command, f"--checkpoint={self.out('run')}", data, f"--unknown={word}"])
                self.assertIn(told + means + "\n", said.stderr)
            together = self.by_processes(2, command, data, "--unknown=initial", meet=f"meet_{command}")
            self.assertIn(told, together[0][2])
            self.assertNotIn("distinct keys", together[1][2])
        refused = self.predict(data, "--unknown=zeros", expect=2)
        self.assertIn("--unknown=zeros: expected initial or zero", refused.stderr)
        self.assertNotIn("distinct keys", self.predict(f"--data={self.out('t.csv')}", "--unknown=zero").stderr)
        self.assertNotIn("distinct keys", self.predict(data).stderr, "counting costs: it has to be asked for")

    def test_processes_that_do_not_meet(self):
        self.train()
        for flags, *needles in (
                (["--process=0"], "--workers=1", "two or more"),
                (["--process=2", "--workers=2", "--meet=x"], "--process=2", "--workers=2"),
                (["--process=0", "--workers=2"], "needs --meet=DIR"),
                (["--meet=x"], "give --process=R"),
                (["--process=0", "--workers=2", "--meet=x", "--dry_run"], "--dry_run"),
                (["--process=0", "--workers=2", "--meet=x", "--collective_host=10.1.2.3"], "10.1.2.3",
                 "--insecure_collective")):
            done = self.predict(*flags, expect=2)
            for needle in needles:
                self.assertIn(needle, done.stderr)
        # A number that is missing ends the wait by its deadline; one that is there twice, at once.
        sets = "--set=cluster.request_timeout_s=1,cluster.request_retry_ms=500"
        alone = ["--workers=2", f"--meet={self.out('meet')}", f"--data={self.out('t.csv')}", sets]
        done = self.predict("--process=1", *alone, expect=3)
        self.assertIn("process_0 did not come within 1 s", done.stderr)
        done = self.predict("--process=1", *alone, expect=2)
        self.assertIn("process_1 is there already", done.stderr)

    def predict(self, *flags, expect=0, **kwargs):
        return harness.run([HDPS, "predict", f"--checkpoint={self.out('run')}", *flags], expect=expect, **kwargs)

    def test_nothing_that_is_read_is_written_over(self):
        self.train()
        q = self.out("q.csv")
        text = text_of(self.rows[:5])
        q.write_text(text)
        os.symlink(q, self.out("link.csv"))
        os.link(q, self.out("hard.csv"))
        job = self.job.read_text()
        for out in (q, self.out("run") / ".." / "q.csv", self.out("link.csv"), self.out("hard.csv"), self.job):
            done = self.predict(f"--job={self.job}", f"--data={q}", f"--out={out}", expect=2)
            self.assertIn(f"--out={out} is", done.stderr)
            self.assertIn("written over", done.stderr)
            self.assertEqual((q.read_text(), self.job.read_text()), (text, job))
        self.predict(f"--data={self.out('hard.csv')}", f"--out={self.out('link.csv')}", expect=2)
        with open(q, "a") as log:
            done = subprocess.run([HDPS, "predict", f"--checkpoint={self.out('run')}", f"--data={q}"],
                                  stdout=log, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, q.read_text()), (2, text), done.stderr)
        run = self.out("run")
        summary = (run / "summary.json").read_text()
        for command in (
                ["train", f"--job={self.job}", f"--out={self.out('new')}", f"--trace={self.out('t.csv')}"],
                ["plan", f"--job={self.job}", "--strategy", "--set=parallel.parallel_mode=semi_auto_parallel",
                 f"--set=parallel.strategy_ckpt_save_file={self.job}"],
                ["plan", f"--job={self.job}", "--strategy", f"--dot={self.job}"],
                ["report", run, f"--html={run}/summary.json"]):
            done = harness.run([HDPS, *command], expect=2)
            self.assertIn("written over", done.stderr)
        prepared = self.out("prepared")
        prepared.mkdir()
        (prepared / "report.txt").write_text(text_of(self.rows))
        done = harness.run([HDPS, "prepare", prepared / "report.txt", f"--out={prepared}"], expect=2)
        self.assertIn("written over", done.stderr)
        for program, flag in (("hdps-scheduler", "address_file"), ("hdps-server", "pid_file"),
                              ("hdps-worker", "log_file")):
            done = harness.run([harness.program(program), f"--job={self.job}", f"--{flag}={self.job}",
                                *(["--out=x"] if flag == "address_file" else ["--scheduler=tcp://127.0.0.1:1"])],
                               expect=2)
            self.assertIn("written over", done.stderr)
        self.assertEqual((self.job.read_text(), (run / "summary.json").read_text()), (job, summary))
        self.assertEqual((prepared / "report.txt").read_text(), text_of(self.rows))
        self.assertEqual(self.out("t.csv").read_text(), text_of(self.rows))

    def test_a_failure_leaves_yesterdays_lines(self):
        self.train()
        q, scores = self.out("q.csv"), self.out("scores.txt")
        q.write_text(text_of(self.rows * 500) + "1,a,x,c\n")
        scores.write_text("yesterday\n")
        done = self.predict(f"--data={q}", f"--out={scores}", expect=2)
        self.assertIn("q.csv:20001:5: 'x'", done.stderr)
        self.assertEqual(scores.read_text(), "yesterday\n")
        self.assertEqual([f.name for f in self.folder.iterdir() if f.name.endswith(".tmp")], [])
        done = self.predict(f"--data={q}", f"--out={scores}", "--bad_rows=nan")
        lines = scores.read_text().split("\n")
        self.assertEqual((len(lines), lines[20000]), (20002, "nan"))
        self.assertIn("nan in 1 of 20001 lines", done.stderr)
        # A link stays one; what is no file is written as it is.
        q.write_text(text_of(self.rows[:4]))
        os.symlink("scores.txt", self.out("latest"))
        self.predict(f"--data={q}", f"--out={self.out('latest')}")
        self.assertTrue(self.out("latest").is_symlink())
        want = scores.read_text()
        self.assertEqual(len(want.split("\n")), 5)
        self.assertEqual(self.predict(f"--data={q}").stdout, want)
        self.assertEqual(self.predict(f"--data={q}", "--out=/dev/stdout").stdout, want)
        fifo = self.out("fifo")
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
        reader.start()
        self.predict(f"--data={q}", f"--out={fifo}")
        reader.join()
        self.assertEqual(read, [want])
        self.assertIn("cannot be written to", self.predict(f"--data={q}", f"--out={self.out('no/scores')}",
                                                           expect=2).stderr)

    def test_rows_held_out_have_no_lines(self):
        self.train(data__validation_share=0.3)
        done = self.predict(expect=2)
        self.assertIn("validation_share", done.stderr)
        self.assertIn("--data=FILE", done.stderr)
        self.assertEqual(len(self.predict(f"--data={self.out('t.csv')}").stdout.split()), 40)
        harness.run([HDPS, "evaluate", f"--checkpoint={self.out('run')}"])

    def test_commas_and_unknown_words(self):
        self.train()
        self.out("a,b.csv").write_text(text_of(self.rows[:3]))
        self.assertEqual(len(self.predict("--data=a,b.csv", cwd=self.folder).stdout.split()), 3)
        self.assertEqual(len(self.predict('--data="a,b.csv",t.csv', cwd=self.folder).stdout.split()), 43)
        self.assertIn("refuse or nan", self.predict("--data=t.csv", "--bad_rows=skip", expect=2).stderr)
        self.predict("--data=t.csv", "--max_bad_rows=3", expect=2)
        done = harness.run([HDPS, "prepare", "t.csv", "--eval=a,b.csv", "--out=p"], cwd=self.folder)
        self.assertEqual(json.loads(self.out("p/job.json").read_text())["data"]["eval"][0].split("/")[-1], "a,b.csv",
                         done.stdout)

    def test_a_score_that_is_none_of_a_probability_is_said_to_be(self):
        self.job = harness.write_job(self.out("job.json"), {
            "name": "ranks", "data": {
                "train": ["t.csv"], "item_features": ["c"],
                "columns": [{"name": "y", "type": "label"}, {"name": "g", "type": "group"},
                            {"name": "n", "type": "numeric"}, {"name": "c"}]},
            "model": {"type": "logistic", "loss": "bpr"}, "train": {"batch_size": 20}})
        self.train()
        done = self.predict(f"--data={self.out('t.csv')}")
        self.assertIn("model.loss is bpr", done.stderr)
        self.assertIn("no probability", done.stderr)
        self.assertEqual(len(done.stdout.split()), 40)

    def test_figures_follow_from_logits(self):
        """Logits far beyond 17, where a float of their probability is 1: AUC and logloss still tell them apart."""
        rows = [((i * 7919 % 11) > 2 if i % 9 else i % 2, i % 50, 0, f"c{i % 4}") for i in range(400)]
        self.out("t.csv").write_text(text_of((int(y), f"a{n % 3}", n, c) for y, n, _, c in rows))
        self.train(model__dense_optimizer='{"kind":"sgd","learning_rate":2}', train__epochs=3)
        t = f"--data={self.out('t.csv')}"
        logits = [float(x) for x in self.predict(t, "--set=model.loss=squared_error").stdout.split()]
        labels = [int(y) for y, *_ in rows]
        self.assertGreater(max(map(abs, logits)), 30)
        # The printed lines are those of the logits.
        for line, z in zip(self.predict(t).stdout.split(), logits):
            p = 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))
            self.assertAlmostEqual(float(line), p, delta=1e-7)
        logloss = sum(max(s, 0) + math.log1p(math.exp(-abs(s)))
                      for s in (-z if y else z for y, z in zip(labels, logits))) / len(rows)
        pairs = [(a > b) + 0.5 * (a == b) for a, y in zip(logits, labels) if y for b, x in zip(logits, labels) if not x]
        auc = sum(pairs) / len(pairs)
        said = dict(line.split()[:2] for line in harness.run(
            [HDPS, "evaluate", f"--checkpoint={self.out('run')}", t]).stdout.splitlines() if len(line.split()) > 1)
        harness.figure(f"logits up to {max(map(abs, logits)):.0f}: AUC {said['auc']}, logloss {said['logloss']}; from the "
                       f"logits, computed here: {auc:.6f}, {logloss:.6f}")
        self.assertAlmostEqual(float(said["auc"]), auc, places=6)
        self.assertLess(abs(float(said["logloss"]) - logloss), 1e-5 * logloss)

    def test_generate_leaves_other_files_as_they_are(self):
        folder = harness.generate(self.out("log"), rows=500, eval_rows=100)
        before = (folder / "train.tsv").read_bytes()
        harness.generate(folder, rows=500, eval_rows=100)
        done = harness.run([HDPS, "generate", f"--out={folder}", "--rows=500", "--eval_rows=100", "--seed=2"], expect=2)
        self.assertIn("train.tsv is there already", done.stderr)
        self.assertEqual((folder / "train.tsv").read_bytes(), before)


if __name__ == "__main__":
    harness.main()
