"""Tests what the data decides besides features: held-out rows, weights of 0, files that change, cells with
several meanings, and keys that occur once an epoch."""
import json
import random
import signal
import subprocess

import harness

HDPS = harness.program("hdps")


class DataRules(harness.Case):
    def job(self, name, columns, metrics=(), model=None, **data):
        return harness.write_job(self.out(name), {
            "data": {"format": "csv", "header": True, "columns": columns, "shuffle_rows": 256, **data},
            "model": {"type": "logistic", "wide_optimizer": {"kind": "adagrad", "learning_rate": 0.2},
                      "device": "cpu", **(model or {})},
            "train": {"batch_size": 32, "epochs": 2, "metrics": list(metrics)},
            "parallel": {"gradients_mean": True}})

    def warnings(self, done):
        return [line for line in done.stderr.splitlines() if "warning: " in line]

    # ---- Rows held out -------------------------------------------------------------------------

    def repeated(self, values, rows=4000):
        draw = random.Random(4)
        lines = ["click,ad"]
        for _ in range(rows):
            value = draw.randrange(values)
            lines.append(f"{int(draw.random() < (.8 if value % 2 else .15))},a{value}")
        self.out("t.csv").write_text("\n".join(lines) + "\n")
        return [{"name": "click", "type": "label"}, {"name": "ad"}]

    def test_few_different_rows_held_out_are_warned_of_by_name(self):
        job = self.job("job.json", self.repeated(40), train=["t.csv"], validation_share=0.1)
        out = self.out("run")
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={out}"])
        (told,) = [line for line in self.warnings(done) if "validation_share" in line]
        self.assertRegex(told, "holds out [0-9,]+ of 4,000 rows, which are too few .* different rows would")
        # Of a value all rows are on one side: whatever is held out was never met, so nothing is told apart.
        self.assertEqual(harness.summary_of(out)["eval_auc"], 0.5)
        done = harness.run([HDPS, "evaluate", f"--job={job}", f"--checkpoint={out}"])
        self.assertIn("data.validation_share holds out", done.stderr)
        harness.figure(told[told.index("data."):])
        self.repeated(3900)
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={self.out('more')}"])
        self.assertEqual([line for line in self.warnings(done) if "validation_share" in line], [])

    def test_prepare_takes_no_share_of_rows_that_repeat(self):
        self.repeated(40)
        done = harness.run([HDPS, "prepare", self.out("t.csv"), f"--out={self.out('p')}"])
        self.assertIn("keeps no rows apart to evaluate on", done.stdout)
        self.assertNotIn("validation_share", json.loads((self.out("p") / "job.json").read_text())["data"])
        self.repeated(3900)
        harness.run([HDPS, "prepare", self.out("t.csv"), f"--out={self.out('q')}"])
        self.assertEqual(json.loads((self.out("q") / "job.json").read_text())["data"]["validation_share"], 0.1)

    # ---- Weights -------------------------------------------------------------------------------

    COLUMNS = [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "c"},
               {"name": "w", "type": "weight"}, {"name": "g", "type": "group", "from": "user"}]

    def weighted(self, name, weight, rows=900):
        """Rows whose weights are weight(draw, label); those of weight 0 left out in NAME_without."""
        draw = random.Random(9)
        head, lines = "y,user,c,w", []
        for _ in range(rows):
            label = draw.randrange(2)
            lines.append((f"{label},u{draw.randrange(60)},c{draw.randrange(9) + 3 * label}", weight(draw, label)))
        self.out(name + ".csv").write_text("\n".join([head] + [f"{a},{w}" for a, w in lines]) + "\n")
        self.out(name + "_without.csv").write_text(
            "\n".join([head] + [f"{a},{w}" for a, w in lines if w > 0]) + "\n")

    def test_rows_of_weight_0_take_no_place_and_have_no_say(self):
        self.weighted("t", lambda draw, label: 1)
        self.weighted("e", lambda draw, label: draw.randrange(3))
        metrics = ["auc", "logloss", "group_auc", "hr@1", "hr@3", "ndcg@3"]
        job = self.job("job.json", self.COLUMNS, metrics, train=["t.csv"], eval=["e.csv"])
        out = self.out("run")
        harness.train(job, out)
        figures = [harness.run([HDPS, "evaluate", f"--job={job}", f"--checkpoint={out}",
                                f"--data={self.out(name)}"]).stdout.split("logloss")[1]
                   for name in ("e.csv", "e_without.csv")]
        self.assertEqual(*figures)
        for metric in metrics:
            self.assertIn(metric, "logloss" + figures[0])

    def test_no_weight_is_a_reason_and_is_warned_of(self):
        self.weighted("t", lambda draw, label: 1)
        self.weighted("zero", lambda draw, label: 0)
        self.weighted("half", lambda draw, label: 1 - label)
        job = self.job("job.json", self.COLUMNS[:4], train=["t.csv"], eval=["half.csv"])
        out = self.out("run")
        harness.train(job, out)
        self.assertRegex(harness.summary_of(out)["eval_auc_undefined"], "all [0-9]+ labels with a weight are 0")
        done = harness.run([HDPS, "evaluate", f"--job={job}", f"--checkpoint={out}",
                            f"--data={self.out('zero.csv')}"])
        self.assertRegex(done.stdout, "logloss +undefined: all 900 weights are 0")
        self.assertRegex(done.stdout, "auc +undefined: all 900 weights are 0")
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={self.out('none')}",
                            "--set=data.train.0=zero.csv"])
        self.assertIn('all 900 training weights (column "w") are 0', "".join(self.warnings(done)))

    # ---- One cell, several columns ---------------------------------------------------------------

    def test_a_user_is_a_feature_the_group_and_part_of_a_cross(self):
        self.weighted("t", lambda draw, label: 1)
        twice = ["y,user,c,w,g"]  # The same with a cell of its own.
        for line in self.out("t.csv").read_text().splitlines()[1:]:
            twice.append(line + "," + line.split(",")[1])
        self.out("twice.csv").write_text("\n".join(twice) + "\n")
        cross = [{"name": "user_c", "kind": "crossed", "from": ["user", "c"]}]
        own = self.COLUMNS[:4] + [{"name": "g", "type": "group"}]
        summaries = []
        for name, columns, file in (("shared", self.COLUMNS, "t.csv"), ("own", own, "twice.csv")):
            job = self.job(f"{name}.json", columns, ["group_auc", "auc"], train=[file], eval=[file],
                           features=cross)
            summaries.append(harness.train(job, self.out(name)))
        self.assertEqual(summaries[0]["digest"], summaries[1]["digest"])
        self.assertEqual(summaries[0]["eval_metrics"], summaries[1]["eval_metrics"])
        harness.figure(f"user as feature, cross and group: group_auc {summaries[0]['eval_metrics']['group_auc']:.3f}")
        for columns, needle in (
                (self.COLUMNS + [{"name": "x", "from": "usr"}], 'did you mean "user"'),
                (self.COLUMNS + [{"name": "x", "from": "g"}], "which itself reads that of"),
                (self.COLUMNS + [{"name": "x", "from": "y"}], "the label")):
            job = self.job("bad.json", columns, train=["t.csv"])
            done = harness.run([HDPS, "train", f"--job={job}", f"--out={self.out('bad')}"], expect=2)
            self.assertIn(needle, done.stderr)

    # ---- Files that change -----------------------------------------------------------------------

    def test_going_on_within_an_epoch_of_another_file_is_said(self):
        columns = self.repeated(50, rows=640)
        job = self.job("job.json", columns, train=["t.csv"])
        out = self.out("run")
        harness.train(job, out, sets={"train.max_steps": 25})  # Of 20 a epoch.
        text = self.out("t.csv").read_text()
        copy = self.out("copy.csv")
        copy.write_text(text)  # Another time, the same bytes.
        copy.replace(self.out("t.csv"))
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.max_steps=27"])
        self.assertEqual([line for line in self.warnings(done) if "t.csv" in line], [])
        self.out("t.csv").write_text(text + "1,a7\n" * 64)
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={out}"])
        (told,) = [line for line in self.warnings(done) if "t.csv" in line]
        size = len(text)
        self.assertIn(f"since the checkpoint of step 27 {self.out('t.csv')} had {size:,} bytes and has "
                      f"{size + 320:,}: epoch 2 goes on behind the first 224 rows (7 steps)", told)
        self.assertEqual(harness.summary_of(out)["steps"], 42)

    def test_a_file_that_changes_under_a_run_is_said(self):
        columns = self.repeated(50, rows=640)
        job = self.job("job.json", columns, train=["t.csv"], eval=["t.csv"])
        log = self.out("stderr")
        with log.open("w") as stderr:
            run = subprocess.Popen([HDPS, "train", f"--job={job}", f"--out={self.out('run')}",
                                    "--set=train.epochs=1000000"], stderr=stderr, stdout=subprocess.DEVNULL)
            self.addCleanup(run.kill)
            harness.wait_until(lambda: "epoch 1, " in log.read_text(), 60, "an evaluation")
            text = self.out("t.csv").read_text()
            more = text + text.split("\n", 1)[1]
            self.out("new.csv").write_text(more)
            self.out("new.csv").replace(self.out("t.csv"))
            told = f"t.csv had {len(text):,} bytes and has {len(more):,} bytes now: "
            harness.wait_until(lambda: told in log.read_text(), 60, "the change was told")
            harness.wait_until(lambda: "figures are of other rows" in log.read_text(), 60, "of the evaluation too")
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(60), 0)

    # ---- Keys that come once an epoch ------------------------------------------------------------

    def test_admission_counts_keys_in_the_first_epoch_alone(self):
        draw = random.Random(11)
        count, lines, step = {}, ["y,a,b"], set()
        for row in range(6000):
            cells = [f"{name}{int(8000 * draw.random() ** 2)}" for name in "ab"]
            lines.append(f"{draw.randrange(2)},{','.join(cells)}")
            step.update(cells)
            if row % 16 == 15:  # A key is counted once a step.
                for cell in step:
                    count[cell] = count.get(cell, 0) + 1
                step.clear()
        self.out("t.csv").write_text("\n".join(lines) + "\n")
        columns = [{"name": "y", "type": "label"}, {"name": "a"}, {"name": "b"}]
        job = self.job("job.json", columns, train=["t.csv"], shuffle_rows=0, model={"policy": {"admit_after": 2}})
        sets = {"train.batch_size": 16, "train.epochs": 1}
        twice = sum(times > 1 for times in count.values())
        one = harness.train(job, self.out("one"), sets=sets)
        three = harness.train(job, self.out("three"), sets={**sets, "train.epochs": 3})
        harness.figure(f"{len(count)} keys, {twice} come twice: {one['rows_admitted']} rows after an "
                       f"epoch, {three['rows_admitted']} after three")
        self.assertLess(twice, 0.6 * len(count))
        for summary in (one, three):  # The sketch takes one key in fifty for an older one, at most.
            self.assertGreaterEqual(summary["rows_admitted"], twice)
            self.assertLess(summary["rows_admitted"], twice + 0.02 * len(count))
        split = harness.train(job, self.out("split"), servers=3, sets={**sets, "train.epochs": 3})
        self.assertEqual(split["digest"], three["digest"])
        harness.train(job, self.out("parts"), sets={**sets, "train.epochs": 3, "train.max_steps": 600})
        again = harness.train(job, self.out("parts"), sets={**sets, "train.epochs": 3})
        self.assertEqual(again["digest"], three["digest"])

    @harness.at_night
    def test_what_prepare_foretells_is_what_comes(self):
        draw = random.Random(12)
        lines = ["label," + ",".join(f"c{c}" for c in range(10))]
        for _ in range(25000):
            lines.append(f"{draw.randrange(2)}," + ",".join(f"v{draw.randrange(40000)}" for _ in range(10)))
        self.out("t.csv").write_text("\n".join(lines) + "\n")
        done = harness.run([HDPS, "prepare", self.out("t.csv"), f"--out={self.out('p')}"])
        (memory,) = [line for line in done.stdout.splitlines() if line.startswith("memory")]
        foretold = int(memory.split(" rows of")[0].split()[-1].replace(",", ""))
        summary = harness.train(self.out("p") / "job.json", self.out("run"), sets={"train.epochs": 3})
        rows = summary["rows_admitted"]
        harness.figure(f"prepare foretells {foretold:,} rows, three epochs make {rows:,}")
        self.assertLess(abs(rows / foretold - 1), 0.25)


if __name__ == "__main__":
    harness.main()
