"""Tests what a run reports to people: warnings, suspicious labels, figures without a value, where data was
searched, and the CPU that a checkpoint was made on."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import harness

HDPS = harness.program("hdps")


def said(command, expect=0, **kwargs):
    """Both streams of a command, and its lines of stderr that are warnings."""
    done = harness.run(command, expect=expect, **kwargs)
    return done, [line for line in done.stderr.splitlines() if line.startswith("warning: ")]


class Told(harness.Case):
    def setUp(self):
        super().setUp()
        self.data = harness.generate(self.out("data"), rows=2048, eval_rows=512, vocabulary=100, seed=7)

    def job(self, **data):
        job = harness.reference_job(self.data)
        job["data"].update(data)
        return job

    def csv_job(self, positive, labels=("no", "yes"), evaluation=("no", "yes"), rows=600):
        """A small CSV job whose labels are those texts in turn."""
        for name, texts in (("train.csv", labels), ("eval.csv", evaluation)):
            self.out(name).write_text("".join(f"{texts[i % len(texts)]},{i % 7}\n" for i in range(rows)))
        return harness.write_job(self.out("csv.json"), {
            "name": "small", "data": {
                "format": "csv", "train": ["train.csv"], "eval": ["eval.csv"],
                "columns": [{"name": "answer", "type": "label", "positive": positive}, {"name": "c"}]},
            "model": {"type": "logistic"}, "train": {"batch_size": 50, "epochs": 2}})

    # ---- Warnings of the job -------------------------------------------------------------------

    WARNED = {"model.deep_optimizer.weight_decay": 0.1, "train.staleness_bound": 3, "data.delimiter": ";"}

    def test_keys_that_do_not_count_are_warned_of_on_the_terminal_and_in_every_log(self):
        job = harness.write_job(self.out("job.json"), self.job())
        sets = harness.merged_settings(self.WARNED)
        out = self.out("one")
        _, warnings = said([HDPS, "train", f"--job={job}", f"--out={out}", *sets])
        self.assert_warned(warnings)
        self.assert_warned(self.logged(out / "log" / "train.log"))
        checkpoint = f"--checkpoint={out}"
        for command in (["evaluate", checkpoint], ["predict", checkpoint], ["plan"],
                        ["train", "--out=x", "--print_config"]):
            done, warnings = said([HDPS, *command, f"--job={job}", *sets])
            self.assert_warned(warnings)
            self.assertNotIn("warning", done.stdout, "results can be piped")

    def test_daemons_warn_too(self):
        job = harness.write_job(self.out("job.json"), self.job())
        out = self.out("cluster")
        _, warnings = said([harness.ROOT / "scripts" / "local_cluster.sh", f"--job={job}", f"--out={out}",
                            *harness.merged_settings(self.WARNED)],
                           env={**os.environ, "HDPS_BIN": str(harness.BIN)})
        self.assert_warned(warnings)
        for log in ("scheduler", "server_0", "worker_0"):
            self.assert_warned(self.logged(out / "log" / f"{log}.log"))

    def logged(self, log):
        return [line for line in log.read_text().splitlines()
                if re.match(r"\S+ W ", line) and "ignored" in line]

    def assert_warned(self, lines):
        self.assertEqual(len(lines), len(self.WARNED), lines)
        for key in self.WARNED:
            self.assertEqual(sum(f"{key} is ignored" in line for line in lines), 1, f"{key}: {lines}")

    # ---- Labels --------------------------------------------------------------------------------

    def test_a_positive_text_that_never_comes(self):
        out = self.out("out")
        done, warnings = said([HDPS, "train", f"--job={self.csv_job(['Yes'])}", f"--out={out}"])
        self.assertEqual(len(warnings), 5, warnings)
        for part in ("train.csv: no label in the first 600 rows is 'Yes'",
                     "eval.csv: no label in the first 600 rows is 'Yes'", "all 600 training labels are 0", 'the positive text "Yes" of column "answer"',
                     "all 600 evaluation labels are 0"):
            self.assertEqual(sum(part in line for line in warnings), 1, f"{part}: {warnings}")
        self.assertIn("epoch 1, step 12: AUC undefined (all 600 labels are 0), logloss", done.stderr)
        self.assertIn("eval AUC      undefined: all 600 labels are 0", done.stderr)
        self.assertNotIn("nan", done.stderr)
        summary = harness.summary_of(out)
        self.assertIsNone(summary["eval_auc"])
        self.assertEqual(summary["eval_auc_undefined"], "all 600 labels are 0")
        for line in (out / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=self.fail)  # No NaN.
        shown = harness.run([HDPS, "evaluate", f"--checkpoint={out}"]).stdout
        self.assertIn('auc        undefined: all 600 labels are 0; none of them is one of the job\'s '
                      'positive texts "Yes"', shown)
        self.assertNotIn("nan", shown)

    def test_one_of_several_positive_texts_never_comes(self):
        job = self.csv_job(["yes", "Yes.", "yes."], evaluation=("no.", "yes."))
        _, warnings = said([HDPS, "train", f"--job={job}", f"--out={self.out('out')}"])
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn('"Yes." of column "answer" is that of none of the 1,200 labels', warnings[0])

    def test_good_labels_are_no_news(self):
        job = self.csv_job(["yes", "yes."], evaluation=("no.", "yes."))
        done, warnings = said([HDPS, "train", f"--job={job}", f"--out={self.out('out')}"])
        self.assertEqual(warnings, [])
        self.assertIn("epoch 1, step 12: AUC ", done.stderr)
        self.assertIn("epoch 2, step 24: AUC ", done.stderr)
        again, warnings = said([HDPS, "train", f"--job={job}", f"--out={self.out('out')}"])
        self.assertIn("already finished", again.stderr)
        self.assertEqual(warnings, [], "the training files have not been read")

    # ---- Where data is sought ------------------------------------------------------------------

    def test_evaluate_finds_the_jobs_data_from_any_folder(self):
        job = self.csv_job(["yes"])
        elsewhere = self.out("elsewhere")
        elsewhere.mkdir()
        harness.run([HDPS, "train", "--job=csv.json", "--out=out"], cwd=self.folder)
        auc = [line for line in harness.run(
            [HDPS, "evaluate", "--checkpoint=out"], cwd=self.folder).stdout.splitlines() if "auc" in line]
        for command in (["evaluate", "--checkpoint=../out"],
                        ["evaluate", "--checkpoint=../out", f"--job={job}"],
                        ["evaluate", "--checkpoint=../out", "--job=../csv.json"]):
            shown = harness.run([HDPS, *command], cwd=elsewhere).stdout
            self.assertIn(auc[0], shown)
        # To be scored, a row needs no training data beside it.
        self.out("train.csv").unlink()
        harness.run([HDPS, "evaluate", "--checkpoint=../out", f"--job={job}"], cwd=elsewhere)

    def test_data_that_is_not_found_is_said_with_all_places(self):
        self.csv_job(["yes"])
        harness.run([HDPS, "train", "--job=csv.json", "--out=out"], cwd=self.folder)
        self.out("eval.csv").unlink()
        elsewhere = self.out("elsewhere")
        elsewhere.mkdir()
        beside, here = self.folder / "eval.csv", elsewhere / "eval.csv"
        for command, *parts in (
            (["--job=../csv.json"], "csv.json: data.eval.0: ", f"looked for {beside} and {here}", "--data="),
            ([], "data.eval.0", str(beside), "--job=FILE", "--data=FILE"),
            (["--data=eval.csv"], f"--data: there is no file {here}"),
        ):
            done = harness.run([HDPS, "evaluate", "--checkpoint=../out", *command], cwd=elsewhere, expect=2)
            for part in parts:
                self.assertIn(part, done.stderr)

    # ---- Made data -----------------------------------------------------------------------------

    def test_generate_writes_a_job_that_trains(self):
        for kind, rows, flags in (("log", 4096, []), ("digits", 640, []),
                                  *[("log", 512, [f"--model={m}"])
                                    for m in ("pairwise", "crosses", "dot", "wide_deep", "pooled",
                                              "field_pairs", "triples")]):
            folder = self.out("_".join([kind, *flags]).replace("--model=", ""))
            shown = harness.run([HDPS, "generate", f"--out={folder}", f"--kind={kind}", f"--rows={rows}",
                                 "--eval_rows=256", "--vocabulary=50", *flags]).stdout
            command = re.search(r"to train on it: hdps (train .*)", shown).group(1)
            self.assertEqual(command, f"train --job={folder}/job.json --out={folder}/run")
            _, warnings = said([HDPS, *command.split()])
            self.assertEqual(warnings, [])
            self.assertLess(harness.summary_of(folder / "run")["eval_logloss"], 2.0)
        (folder / "job.json").write_text("{}")
        for name in ("train.tsv", "eval.tsv"):
            (folder / name).unlink()
        shown = harness.run([HDPS, "generate", f"--out={folder}", "--rows=64", "--eval_rows=64"]).stdout
        self.assertIn("job.json is another job than would be written, and was left as it is", shown)
        self.assertEqual((folder / "job.json").read_text(), "{}")

    # ---- What a run and a checkpoint say ---------------------------------------------------------

    def test_epochs_count_from_one_and_rows_are_not_parameters(self):
        job, out = self.csv_job(["yes"]), self.out("out")
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.max_steps=17"])
        self.assertIn("7 rows of embedding tables, 1 in dense layers", done.stderr)
        summary = harness.summary_of(out)
        self.assertEqual((summary["rows"], summary["dense_parameters"], summary["dense_rows"]), (7, 1, 1))
        log = (out / "log" / "train.log").read_text()
        self.assertIn("epoch 1 until step 12", log)
        self.assertNotIn("epoch 0", log + done.stderr)
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["epoch"] for line in lines], [(line["step"] + 11) // 12 for line in lines])
        self.assertEqual(sorted({line["epoch"] for line in lines}), [1, 2])
        shown = harness.run([HDPS, "inspect", "--which=newest", f"--checkpoint={out}"]).stdout
        self.assertIn("step 17, 850 examples, in epoch 2, which began at step 12", shown)
        self.assertIn("rows        7 of embedding tables", shown)
        self.assertIn("dense       1 parameters", shown)
        self.assertIn("computed    with ", shown)

    def test_ranks_missing_figures_and_further_sets(self):
        """What has no AUC shows what it has; what has no value says why, in every place."""
        rows = "".join(f"{int(i % 5 == i // 40 % 5)},i{i % 40},u{i // 40}\n" for i in range(800))
        self.out("rows.csv").write_text(rows)
        self.out("zeros.csv").write_text("".join(f"0{row[1:]}\n" for row in rows.splitlines()))
        job = harness.write_job(self.out("ranks.json"), {
            "data": {"train": ["rows.csv"], "eval": ["rows.csv"],
                     "eval_sets": [{"name": "late", "files": ["zeros.csv"]}],
                     "columns": [{"name": "y", "type": "label"}, {"name": "item"},
                                 {"name": "user", "type": "group"}]},
            "model": {"type": "logistic"}, "train": {"batch_size": 50, "epochs": 4, "metrics": ["hr@3", "pr_auc"]}})
        out = self.out("ranks")
        done = harness.run([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.epochs=2"])
        self.assertIn("epoch 1, step 16, eval: hr@3 ", done.stderr)
        summary = harness.summary_of(out)
        self.assertEqual(summary["best_metric"], "hr@3")
        self.assertGreater(summary["best_value"], 0)
        self.assertIn(f", hr@3 {summary['best_value']:.6f}; ", done.stderr)
        late = summary["eval_sets"]["late"]
        self.assertIsNone(late["metrics"]["pr_auc"])
        told = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        last = [line for line in told if line.get("eval_set") == "late"][-1]
        for where in (last["eval_undefined"], late["undefined"]):
            self.assertEqual(where["pr_auc"], "all 800 labels are 0")
        self.assertEqual(json.loads((out / "job_as_given.json").read_text())["train"],
                         {"batch_size": 50, "epochs": 2, "metrics": ["hr@3", "pr_auc"]})
        page = self.out("page.html")
        harness.run([HDPS, "report", out, f"--html={page}"])
        for part in ("hit rate@3 of late", "PR AUC", "undefined: all 800 labels are 0", "best, step "):
            self.assertIn(part, page.read_text())

    def test_no_speed_is_that_of_an_instant(self):
        """Epochs of some milliseconds: what is told as a speed was reached over half a second at least."""
        job, out = self.csv_job(["yes"]), self.out("out")
        harness.run([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.epochs=60,checkpoint.keep_best=false"])
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        trained = [line for line in lines if "examples_per_second" in line]
        self.assertGreaterEqual(len(trained), 60, "a line an epoch")
        for line in trained:
            if line["examples_per_second"] is not None:
                self.assertLess(line["examples_per_second"], line["examples"] / 0.5 + 1)

    def test_the_line_of_progress_stands_in_one_row(self):
        """Only one row of a terminal can be written over; and it is not older than what stands above it."""
        terminal, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        process = subprocess.Popen([HDPS, "train", f"--job={self.csv_job(['yes'])}", f"--out={self.out('out')}",
                                    "--set=train.epochs=40"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=its_end)
        os.close(its_end)
        shown = b""
        try:
            while piece := os.read(terminal, 65536):
                shown += piece
        except OSError:
            pass  # The other end is closed.
        os.close(terminal)
        self.assertEqual(process.wait(60), 0)
        live = [part.rsplit("\n", 1)[-1] for part in shown.decode().split("\r\033[K")[1:]]
        steps = [int(line.split("step ")[1].split(" ")[0]) for line in live if line.startswith("epoch ")]
        self.assertTrue(steps, shown)
        self.assertLessEqual(max(map(len, live)), 39)
        self.assertGreater(max(steps), 200, "all but the last epochs")

    def test_a_resume_on_another_kind_of_cpu_is_said(self):
        """oneDNN is held to narrower vectors, as on an older CPU."""
        job, out = self.csv_job(["yes"]), self.out("out")
        harness.run([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.max_steps=7"])
        manifest = json.loads(next((out / "checkpoint").glob("*/manifest.json")).read_text())
        self.assertEqual(len(manifest["checkpoint"]["arithmetic"]), 1)
        same, warnings = said([HDPS, "train", f"--job={job}", f"--out={out}", "--set=train.max_steps=9"])
        self.assertIn("resumed from", same.stderr)
        self.assertEqual(warnings, [])
        _, warnings = said([HDPS, "train", f"--job={job}", f"--out={out}"],
                           env={**os.environ, "ONEDNN_MAX_CPU_ISA": "SSE41"})
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn("this run computes with", warnings[0])
        self.assertIn("oneDNN at sse4.1", warnings[0])
        self.assertIn(manifest["checkpoint"]["arithmetic"][0], warnings[0])
        self.assertIn("digests depend on the CPU's vector width", (out / "log" / "train.log").read_text())


if __name__ == "__main__":
    harness.main()
