"""Uses the Python package as a program or a notebook does, beside the command that it equals."""
import contextlib
import doctest
import fcntl
import importlib.util
import io
import json
import math
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import types
import unittest
import unittest.mock

import harness
import pages

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps
    from hdps._progress import Progress

SETS = {"train.epochs": 2, "train.batch_size": 256}
FORKED = """
    import os, sys, hdps
    {before}
    child = os.fork()
    if child == 0:
        try:
            print(hdps.Job.load({job!r}).name, flush=True)
        except hdps.RunError as error:
            print("RunError", error, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
INTERRUPTED = """
    import hdps, signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored where the test is in the background.
    def tell(step):
        if step["step"] == 5:
            print("five", flush=True)
    hdps.train(hdps.Job.load({job!r}, {sets!r}), {out!r}, threads=1, on_step=tell)
    """
INTERRUPTED_TWICE = """
    import hdps, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    class Interrupting:
        def write(self, text):
            if "stopping" in text:
                signal.raise_signal(signal.SIGINT)
        def flush(self):
            pass
        def isatty(self):
            return False
    def tell(step):
        if step["step"] == 5:
            signal.raise_signal(signal.SIGINT)
    sys.stderr = Interrupting()
    try:
        hdps.train({job!r}, {out!r}, threads=1, on_step=tell)
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
    """


def python(code, **kwargs):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


@unittest.skipIf(why, why)
class Python(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        harness.generate(cls.data, rows=4096, eval_rows=512, vocabulary=100, seed=7)
        cls.settings = harness.reference_job(cls.data)
        cls.job_file = harness.write_job(cls.data / "own.json", cls.settings)
        cls.job = hdps.Job.load(cls.job_file, SETS)
        cls.expected = harness.train(cls.job_file, cls.data / "run", sets=SETS)
        cls.of_two = harness.train(cls.job_file, cls.data / "two", 2, 2, sets=SETS)

    def train(self, job=None, name="run", **kwargs):
        return hdps.train(job or self.job, self.out(name), threads=1, quiet=True, **kwargs)

    def finished(self, process):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        return out

    def test_import_is_quick(self):
        code = ("import time, sys\nbegan = time.perf_counter()\nimport hdps\n"
                "print(time.perf_counter() - began, *sorted(sys.modules))")
        runs = [self.finished(python(code)).split() for _ in range(3)]
        harness.figure(f"import hdps: {min(float(run[0]) for run in runs):.3f} s")
        for heavy in ("numpy", "sklearn", "torch", "pandas", "pyarrow", "IPython", "multiprocessing", "asyncio"):
            self.assertNotIn(heavy, runs[0])

    def test_train_gives_the_digest_of_the_command(self):
        self.assertEqual(self.train()["digest"], self.expected["digest"])
        nested = {"train": {"epochs": 2, "batch_size": 256}}
        of_dict = hdps.Job({**self.settings, "name": "of a dict"}, nested)
        self.assertEqual(self.train(of_dict, "dict", workers=2, servers=2)["digest"], self.of_two["digest"])
        # Each run has its own log, and what follows them has none.
        logs = [(self.out(name) / "log" / "train.log").read_text() for name in ("run", "dict")]
        self.assertIn("worker 0 ended", logs[0])
        self.assertNotIn("worker 1 ended", logs[0])
        self.assertIn("worker 1 ended", logs[1])
        self.assertEqual(json.loads((self.out("dict") / "job_as_given.json").read_text())["name"], "of a dict")

    def test_relative_data_of_a_dict(self):
        settings = json.loads(json.dumps(self.settings).replace(f"{self.data}/", ""))
        with self.assertRaisesRegex(hdps.JobError, r"the dict.*data\.train\.0"):
            hdps.Job(settings)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.data)
        self.assertEqual(self.train(hdps.Job(settings, SETS))["digest"], self.expected["digest"])

    def test_job(self):
        self.assertEqual(repr(self.job), f"<hdps.Job 'reference_small' of {self.job_file}>")
        settings = self.job.to_dict()
        self.assertEqual((settings["train"]["epochs"], settings["name"]), (2, self.job.name))
        self.assertEqual(self.job.warnings, [])
        self.assertTrue(hdps.Job.load(str(self.job_file), {"train.staleness_bound": 3}).warnings)
        # A text stays a text, whatever it looks like.
        for name in ("true", "1", "[a]", 'a"b', "a=b,c", "null", "", "ü"):
            self.assertEqual(hdps.Job.load(os.fsencode(self.job_file), {"name": name}).name, name)
        again = hdps.Job(settings)
        self.assertEqual(again.to_dict(), settings)

    def test_callbacks_hear_all_and_stop(self):
        steps, evaluations, heard_on = [], [], set()
        def on_step(step):
            heard_on.add(threading.current_thread())
            steps.append(step)
        summary = self.train(workers=2, on_step=on_step, on_eval=evaluations.append)
        self.assertEqual(summary["digest"], self.of_two["digest"])
        self.assertEqual(heard_on, {threading.current_thread()})
        self.assertEqual([sorted(s["step"] for s in steps if s["worker"] == w) for w in (0, 1)],
                         [list(range(1, summary["steps"] + 1))] * 2)
        self.assertEqual(sum(s["examples"] for s in steps), summary["examples"])
        self.assertEqual({s["epoch"] for s in steps}, {1, 2})
        last = [s for s in steps if s["epoch"] == 2]
        self.assertAlmostEqual(sum(s["loss"] * s["examples"] for s in last) / sum(s["examples"] for s in last),
                               summary["train_logloss"], places=6)
        lines = (self.out("run") / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(evaluations, [json.loads(line) for line in lines if "eval_auc" in line])
        self.assertEqual(evaluations[-1]["eval_metrics"], summary["eval_metrics"])

    def test_a_callback_stops_the_run_and_another_goes_on(self):
        job = hdps.Job.load(self.job_file, {**SETS, "train.epochs": 20})
        whole = self.train(job, "whole")
        for name, stop, at in (("step", {"on_step": lambda step: step["step"] < 5}, 5),
                               ("evaluation", {"on_eval": lambda told: False}, whole["steps"] // 20)):
            stopped = self.train(job, name, **stop)
            self.assertTrue(at <= stopped["steps"] < whole["steps"], stopped["steps"])
            self.assertEqual(self.train(job, name)["digest"], whole["digest"])

    def test_what_a_callback_raises_comes_out_after_the_drain(self):
        heard = []
        def on_step(step):
            heard.append(step["step"])
            if step["step"] == 3:
                raise LookupError("mine")
        with self.assertRaisesRegex(LookupError, "mine"):
            self.train(on_step=on_step)
        self.assertEqual(heard, [1, 2, 3])
        self.assertIsNotNone(harness.summary_of(self.out("run"))["checkpoint"])
        with self.assertRaisesRegex(TypeError, "not callable"):
            self.train(name="other", on_eval="no function")
        self.assertEqual(self.train()["digest"], self.expected["digest"])

    def test_ctrl_c_drains(self):
        out = self.out("run")
        process = python(INTERRUPTED.format(job=str(self.job_file), out=str(out),
                                            sets={**SETS, "train.epochs": 2000}))
        self.assertEqual(process.stdout.readline(), "five\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        self.assertIn("stopping: this process was told to stop", err)
        self.assertTrue(err.rstrip().endswith("KeyboardInterrupt"), err)
        saved = harness.summary_of(out)["steps"]
        self.assertGreaterEqual(saved, 5)
        more = hdps.Job.load(self.job_file, {**SETS, "train.max_steps": saved + 3, "train.epochs": 2000})
        self.assertEqual(self.train(more)["steps"], saved + 3)

    def test_a_second_ctrl_c_ends_at_once(self):
        """It comes while the job is being saved: a save takes far longer than telling what it begins with."""
        out = self.out("run")
        large = hdps.Job.load(self.job_file, {**SETS, "model.hidden": [2048, 2048], "train.max_steps": 8,
                                              "checkpoint.every_steps": 3})
        said = self.finished(python(INTERRUPTED_TWICE.format(job=large.to_dict(), out=str(out))))
        self.assertEqual(said, "KeyboardInterrupt\n")
        log = (out / "log" / "train.log").read_text()
        self.assertIn("told to end at once: nothing more was saved", log)
        self.assertFalse((out / "summary.json").exists())
        saved = [path.name for path in (out / "checkpoint").iterdir() if (path / "manifest.json").exists()]
        self.assertEqual(len(saved), 1, saved)
        # What was saved before is where the next run begins.
        again = self.train(large)
        self.assertEqual((again["steps"], again["resumed_from"]), (8, 3))

    def test_begins_from_an_export(self):
        folder = self.out("model")
        hdps.export(self.data / "run", folder, format="safetensors")
        other = hdps.Job.load(self.job_file, {**SETS, "train.max_steps": 3})
        expected = harness.train(self.job_file, self.out("command"), sets={**SETS, "train.max_steps": 3},
                                 extra=(f"--init={folder}",))
        begun = self.train(other, "begun", init=folder)
        self.assertEqual(begun["digest"], expected["digest"])
        self.assertNotEqual(self.train(other, "plain")["digest"], expected["digest"])
        for wrong, kind in ((self.out("gone"), hdps.JobError), (5, TypeError), ("a\0b", ValueError)):
            with self.assertRaises(kind):
                self.train(other, "mistake", init=wrong)

    def test_other_threads_run_meanwhile(self):
        def tell(step):
            if step["step"] != 2:
                return
            # The interpreter is free, and so is the library for other calls.
            with self.assertRaisesRegex(hdps.RunError, "trained in this process already"):
                hdps.train(self.job, self.out("second"))
            loads = [threading.Thread(target=lambda: loaded.append(hdps.Job.load(self.job_file).name))
                     for _ in range(4)]
            for thread in loads:
                thread.start()
            for thread in loads:
                thread.join()
        loaded, digests = [], []
        thread = threading.Thread(target=lambda: digests.append(self.train(on_step=tell)["digest"]))
        thread.start()
        thread.join()
        self.assertEqual(loaded, [self.job.name] * 4)
        self.assertEqual(digests, [self.expected["digest"]])
        self.assertFalse(self.out("second").exists())

    def test_forks(self):
        job = str(self.job_file)
        used = self.finished(python(FORKED.format(before=f"hdps.Job.load({job!r})", job=job)))
        self.assertRegex(used, "RunError .*forked.*spawn")
        self.assertEqual(self.finished(python(FORKED.format(before="", job=job))), self.job.name + "\n")

    def test_prepare_generate_and_report_do_what_the_commands_do(self):
        hdps_program = harness.program("hdps")
        made = hdps.generate(self.out("data"), rows=4096, eval_rows=512, vocabulary=100, seed=7)
        for name in ("train.tsv", "eval.tsv", "job.json"):
            self.assertEqual((self.out("data") / name).read_bytes(), (self.data / name).read_bytes(), name)
        said = harness.run([hdps_program, "generate", f"--out={self.out('again')}", "--rows=4096",
                            "--eval_rows=512", "--vocabulary=100", "--seed=7"]).stdout
        self.assertIn(f"best reachable AUC on eval.tsv: {made['auc']:.5f} (mean over draws of the labels: "
                      f"{made['expected_auc']:.5f})\nbest reachable logloss: {made['logloss']:.5f}, "
                      f"CTR: {made['ctr']:.4f}\n", said)
        self.assertEqual(pathlib.Path(made["job"]), self.out("data") / "job.json")
        own = self.out("own.csv")
        own.write_text("clicked,color,price\n" +
                       "".join(f"{n % 2},{'red' if n % 3 else 'blue'},{n % 7}\n" for n in range(500)))
        prepared = hdps.prepare(own, self.out("a"), label="clicked", categorical=["color"], min_count=2)
        said = harness.run([hdps_program, "prepare", own, f"--out={self.out('b')}", "--label=clicked",
                            "--categorical=color", "--min_count=2"]).stdout
        for name in ("job.json", "report.txt", "vocabulary.keys"):
            self.assertEqual((self.out("a") / name).read_bytes(), (self.out("b") / name).read_bytes(), name)
        self.assertTrue(said.startswith(prepared.report))
        self.assertEqual(repr(prepared), f"{prepared.report}\n{prepared.path}")
        self.assertEqual(prepared.job.name, "own")
        run = self.out("run")
        shutil.copytree(self.data / "run", run)
        report = hdps.report(run)
        page = pathlib.Path(report.path).read_text()
        harness.run([hdps_program, "report", run, f"--html={self.out('other.html')}"])
        self.assertEqual(page, self.out("other.html").read_text())
        self.assertEqual(page, report.page)
        shown = report._repr_html_()
        self.assertTrue(shown.startswith("<iframe srcdoc=") and "<style" not in shown)
        self.assertIn("&lt;style", shown)
        both = hdps.report(run, other=run, html=self.out("both.html"))
        self.assertEqual(pathlib.Path(both.path).read_text(), both.page)
        self.assertNotEqual(both.page, page)

    def test_metrics_as_columns(self):
        run = self.data / "run"
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        metrics = hdps.read_metrics(run)
        self.assertEqual({len(column) for column in metrics.values()}, {len(lines)})
        self.assertEqual(metrics["step"].typecode, "q")
        self.assertEqual(list(metrics["step"]), [line["step"] for line in lines])
        auc = [line["eval_metrics"]["auc"] for line in lines if "eval_auc" in line]
        self.assertEqual([value for value in metrics["eval_metrics.auc"] if not math.isnan(value)], auc)
        self.assertEqual(memoryview(metrics["eval_auc"]).format, "d")
        with self.assertRaises(FileNotFoundError):
            hdps.read_metrics(self.folder)

    def test_progress_on_each_kind_of_stream(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            hdps.train(self.job, self.out("run"), threads=1)
        self.assertIn("Done.\n", said.getvalue())
        self.assertIn("data: ", said.getvalue())
        self.assertNotIn("\r", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as silent:
            self.train(name="silent")
        self.assertEqual(silent.getvalue(), "")
        # A notebook's stderr is no terminal, and knows the carriage return.
        notebook = types.ModuleType("IPython")
        notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        stream = io.StringIO()
        with unittest.mock.patch.dict(sys.modules, IPython=notebook):
            progress = Progress(stream)
        progress.progress("step 1")
        progress.progress("step")
        progress.notice("saved")
        progress.warning("w")
        progress.close()
        self.assertEqual(stream.getvalue(), "step 1\r      \rstep\r    \rsaved\nstep\r    \rwarning: w\nstep\r    \r")
        closed = io.StringIO()
        closed.close()
        Progress(closed).notice("to nobody")
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 10, 0, 0))
        with open(terminal, "w") as stream:
            shown = Progress(stream)
            self.assertTrue(shown.live)
            shown.progress("x" * 1000)
            shown.notice("n")
        written = b""
        while b"n\r\nx" not in written:  # It comes in pieces.
            written += os.read(controller, 1 << 16)
        self.assertRegex(written.decode(), r"^\r\x1b\[Kx{9}\r\x1b\[Kn\r\nx+$")
        os.close(controller)

    def test_stubs_say_what_is_there(self):
        if not importlib.util.find_spec("mypy") and not shutil.which("stubtest"):
            self.skipTest("no mypy here")
        package = pathlib.Path(hdps.__file__).parent.parent
        # The metaclass of pybind11, and classes that only functions make.
        allowed = self.out("allowed")
        made = "Array|Batch|Batches|Connection|Feature|Model|Pulled|SentRows|TableWorker"
        allowed.write_text(f"hdps\\._hdps\\.[A-Z]\\w*\nhdps\\._hdps\\.({made})\\.__init__\n")
        done = subprocess.run(["stubtest", "hdps._hdps", f"--allowlist={allowed}"], cwd=self.folder, text=True,
                              capture_output=True,
                              env={**os.environ, "MYPYPATH": str(package), "PYTHONPATH": str(package)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no issues found", done.stdout)
        checked = subprocess.run(["mypy", "--strict", "-m", "hdps"], cwd=self.folder, text=True,
                                 capture_output=True, env={**os.environ, "MYPYPATH": str(package)})
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_examples_of_the_docstrings_run(self):
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        examples = 0
        for name in hdps.__all__:
            value = getattr(hdps, name)
            with self.subTest(name):
                self.assertTrue(value.__doc__, "no docstring")
            if isinstance(value, type):
                parts = [getattr(value, part) for part in vars(value) if not part.startswith("_")]
                for part in parts:
                    self.assertTrue(part.__doc__, f"{name}.{part} has no docstring")
            else:
                parts = []
            for doc in [value.__doc__, *(part.__doc__ for part in parts)]:
                test = doctest.DocTestParser().get_doctest(doc or "", {"hdps": hdps}, name, None, 0)
                examples += len(test.examples)
                said = io.StringIO()
                runner.run(test, out=said.write)
                self.assertEqual(said.getvalue(), "")
        self.assertGreater(examples, 10)

    def test_the_page_runs(self):
        """The blocks of docs/python.md, one after the other."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        found = pages.blocks(pages.DOCS / "python.md", "python")
        self.assertGreaterEqual(len(found), 4)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for block in found:
                exec(compile(block, "docs/python.md", "exec"), names)
        self.assertLess(names["stopped"]["steps"], names["resumed"]["steps"])
        self.assertEqual(names["same"].to_dict(), names["job"].to_dict())

    def test_mistakes(self):
        bad_json = self.out("bad.json")
        bad_json.write_text('{"name": ')
        no_run = self.out("empty")
        no_run.mkdir()
        used = self.out("used")
        used.mkdir()
        (used / "job.json").write_text("{}")
        csv = self.out("one.csv")
        csv.write_text("a,b\n1,2\n")
        job, load, train = self.job, hdps.Job.load, hdps.train
        out = self.out("never")
        deep = []
        deep.append(deep)
        with_model = lambda model: {**self.settings, "model": model}
        Refused, Failed = hdps.JobError, hdps.RunError
        mistakes = [
            ("no such job", Refused, r"nowhere\.json", lambda: load(self.out("nowhere.json"))),
            ("a job that is no JSON", Refused, r"bad\.json:1", lambda: load(bad_json)),
            ("a path that is a number", TypeError, "PathLike", lambda: load(5)),
            ("a path with a zero", ValueError, "zero byte", lambda: load("a\0b")),
            ("settings that are a list", TypeError, "set", lambda: load(self.job_file, ["train.epochs"])),
            ("an unknown setting", Refused, r'--set: train\.epochss.*did you mean "epochs"',
             lambda: load(self.job_file, {"train.epochss": 1})),
            ("a value of another type", Refused, r"train\.epochs", lambda: load(self.job_file, {"train": {"epochs": "1"}})),
            ("a key that is no text", Refused, "the key 5 is no text", lambda: load(self.job_file, {5: 1})),
            ("a key with =", Refused, "no name of a setting", lambda: load(self.job_file, {"a=b": 1})),
            ("NaN", Refused, r"set: train\.epochs: .*finite numbers", lambda: load(self.job_file, {"train.epochs": math.nan})),
            ("an object as a value", Refused, "not JSON serializable", lambda: load(self.job_file, {"name": object()})),
            ("a list in itself", Refused, "the dict: Circular", lambda: hdps.Job({"a": deep})),
            ("a job that is a list", TypeError, "settings", lambda: hdps.Job([1])),
            ("an unknown model", Refused, r'the dict:1: model\.type.*did you mean "wide_deep"', lambda: hdps.Job(with_model({"type": "wide_dep"}))),
            ("half a surrogate", Refused, "the dict", lambda: hdps.Job({**self.settings, "name": "\ud800"})),
            ("missing data", Refused, r"data\.train\.0.*gone\.tsv",
             lambda: hdps.Job({**self.settings, "data": {**self.settings["data"], "train": ["gone.tsv"]}})),
            ("a job that is None", TypeError, "PathLike", lambda: train(None, out)),
            ("no folder", Refused, "--out is missing", lambda: train(job, "", quiet=True)),
            ("a file as folder", Refused, "--out=.*cannot be written", lambda: train(job, csv, quiet=True)),
            ("no workers", Refused, "workers", lambda: train(job, out, workers=0, quiet=True)),
            ("workers below zero", TypeError, "workers", lambda: train(job, out, workers=-1, quiet=True)),
            ("more servers than shards", Refused, "servers", lambda: train(job, out, servers=5000, quiet=True)),
            ("another word for resume", Refused, "--resume=yes: expected auto, never or changed",
             lambda: train(job, out, resume="yes", quiet=True)),
            ("too many threads", Refused, "threads=5000 is out of range", lambda: train(job, out, threads=5000, quiet=True)),
            ("a run that is there", Refused, "checkpoint", lambda: train(job, self.data / "run", resume="never", quiet=True)),
            ("an unknown argument", TypeError, "epochs", lambda: train(job, out, epochs=3)),
            ("prepare without files", Refused, "no file is named", lambda: hdps.prepare([], out)),
            ("prepare over a job", Refused, "there is a job.json already", lambda: hdps.prepare(csv, used)),
            ("prepare an unknown task", Refused, 'did you mean "rating"', lambda: hdps.prepare(csv, out, task="ratng")),
            ("prepare an unknown column", Refused, "no such column", lambda: hdps.prepare(csv, out, label="a", skip="c")),
            ("prepare columns of numbers", TypeError, "skip: expected texts, not int", lambda: hdps.prepare(csv, out, skip=[1])),
            ("generate another kind", Refused, "--kind=logs", lambda: hdps.generate(out, kind="logs")),
            ("generate too many columns", Refused, "categorical", lambda: hdps.generate(out, categorical=27)),
            ("generate half a row", TypeError, "rows", lambda: hdps.generate(out, rows=1.5)),
            ("report of no run", Refused, "empty", lambda: hdps.report(no_run)),
            ("metrics of no run", FileNotFoundError, "metrics.jsonl", lambda: hdps.read_metrics(no_run)),
            ("no address", Refused, "--scheduler is missing", lambda: hdps.connect("")),
            ("a wrong address", Refused, "tcp", lambda: hdps.connect("localhost")),
            ("keys that are none", Refused, "empty", lambda: hdps.connect("tcp://127.0.0.1:1", no_run)),
            ("keys and insecure", Refused, "--insecure is for jobs without keys",
             lambda: hdps.connect("tcp://127.0.0.1:1", no_run, insecure=True)),
        ]
        for name, kind, text, mistake in mistakes:
            with self.subTest(name), self.assertRaisesRegex(kind, text):
                mistake()
        self.assertFalse(out.exists())
        harness.figure(f"{len(mistakes)} mistakes raise what they should")
        self.assertTrue(issubclass(hdps.JobError, hdps.HdpsError) and issubclass(Failed, hdps.HdpsError))
        self.assertEqual((hdps.JobError.__module__, hdps.Job.__module__), ("hdps", "hdps"))


    def test_no_argument_ends_the_interpreter(self):
        """Each function with each argument exchanged for odd ones raises what callers can expect."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        odd = [None, True, -1, 2**70, 1.5, math.nan, "", "a\0b", "\ud800", "\udcff", b"\xff", [], [None], ["\ud800"],
               {}, {1: 2}, {"": 1}, object(), print, int, memoryview(b"x"), hdps.Job, self.job]
        short = hdps.Job.load(self.job_file, {"train.max_steps": 1})
        calls = [
            (hdps.Job, [self.settings, {}], {}),
            (hdps.Job.load, [self.job_file, {}], {}),
            (hdps.prepare, ["gone.csv", "made"], {"label": "", "eval": (), "skip": (), "min_count": 0, "max_bad_rows": None}),
            (hdps.generate, ["made"], {"rows": 10, "numeric": 1, "noise": None, "kind": "log", "seed": 1}),
            (hdps.report, ["gone"], {"other": None, "html": None}),
            (hdps.read_metrics, ["gone"], {}),
            (hdps.connect, ["tcp://127.0.0.1:1"], {"keys": None, "insecure": False}),
            (hdps.train, [short, "run"], {"workers": 1, "servers": 1, "resume": "auto", "threads": 1}),
        ]
        expected = (hdps.HdpsError, TypeError, ValueError, OSError)
        raised = asked = 0
        for function, arguments, named in calls:
            for place in [*range(len(arguments)), *named]:
                for value in odd:
                    given, words = list(arguments), dict(named)
                    (given if isinstance(place, int) else words)[place] = value
                    if function is hdps.train:
                        words["quiet"] = True
                    asked += 1
                    try:
                        function(*given, **words)
                    except expected:
                        raised += 1
        harness.figure(f"{asked} calls with an odd argument, {raised} raise")
        self.assertGreater(raised, asked * 3 // 4)

    def test_a_name_that_is_no_utf_8(self):
        name = os.fsencode(self.folder) + b"/\xff.json"
        with open(name, "wb") as file:
            file.write(self.job_file.read_bytes())
        job = hdps.Job.load(name)
        self.assertEqual(repr(job), f"<hdps.Job 'reference_small' of {os.fsdecode(name)}>")
        with self.assertRaisesRegex(hdps.JobError, r"\\xff.json: --set: name"):
            hdps.Job.load(name, {"name": 5})


def no_registry():
    """Why there is no PyPI here; empty if there is one."""
    try:
        socket.create_connection(("pypi.org", 443), timeout=5).close()
    except OSError as error:
        return f"PyPI cannot be reached: {error}"
    return ""


@harness.at_night
class Wheel(harness.Case):
    """It compiles the package once more."""

    def test_a_wheel_works_where_there_is_nothing_else(self):
        if no := no_registry():
            self.skipTest(no)
        harness.run([harness.ROOT / "scripts" / "wheel.sh", self.out("dist")], timeout=3600)
        wheel, = self.out("dist").glob("*.whl")
        megabytes = wheel.stat().st_size / 1e6
        harness.figure(f"{wheel.name}: {megabytes:.1f} MB")
        self.assertLess(megabytes, 60)
        harness.run([sys.executable, "-m", "venv", self.out("venv")])
        bare = {"PATH": "/usr/bin:/bin"}
        harness.run([self.out("venv") / "bin" / "pip", "install", "--no-index", "--no-deps", wheel], env=bare)
        data = harness.generate(self.out("data"), rows=2048, eval_rows=512)
        expected = harness.train(data / "job.json", self.out("run"))["digest"]
        code = (f"import hdps; print(hdps.__file__); "
                f"print(hdps.train({str(data / 'job.json')!r}, {str(self.out('own'))!r}, quiet=True)['digest'])")
        said = harness.run([self.out("venv") / "bin" / "python", "-c", code], env=bare).stdout.split()
        self.assertEqual(said[-1], expected)
        self.assertIn(str(self.out("venv")), said[0])


@unittest.skipIf(why, why)
class Questions(harness.DaemonsCase):
    def test_a_running_scheduler_answers(self):
        data = harness.generate(self.out("data"), rows=512, eval_rows=64)
        job = harness.write_job(self.out("job.json"), harness.reference_job(data))
        address_file = self.out("address")
        scheduler = self.start("hdps-scheduler", f"--job={job}", f"--out={self.out('run')}", "--listen=tcp://127.0.0.1:0",
                               f"--address_file={address_file}", stderr=subprocess.DEVNULL)
        harness.wait_until(address_file.exists, 30, "the scheduler's address")
        connection = hdps.connect(address_file.read_text().strip())
        status = connection.status()
        self.assertEqual((status["job"], status["members"]), ("reference_small", []))
        why_it_waits = connection.why()
        self.assertEqual((why_it_waits["waits"], why_it_waits["kind"]), (True, "missing"))
        said = harness.run([harness.program("hdps"), "why", f"--scheduler={connection.address}", "--json"]).stdout
        self.assertEqual(why_it_waits["explanation"].split(" s ")[0].rstrip("0123456789."),
                         json.loads(said)["explanation"].split(" s ")[0].rstrip("0123456789."))
        scheduler.kill()
        scheduler.wait()
        with self.assertRaisesRegex(hdps.RunError, "the scheduler is not there"):
            connection.why()


if __name__ == "__main__":
    harness.main()
