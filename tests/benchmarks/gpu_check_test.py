"""What gpu_check.py, results_page.py and hidden_copies.py make of runs on a GPU, over runs made up here."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "dev"))
import gpu_check  # noqa: E402
import gpu_goals  # noqa: E402
import hidden_copies  # noqa: E402
import results_page  # noqa: E402


def span(name, begin, end, pid=0):
    return {"ph": "X", "name": name, "pid": pid, "tid": 1, "ts": float(begin), "dur": float(end - begin)}


def result(case, figure, value, **more):
    return {"bench": "device", "case": case, "figure": figure, "value": value, "unit": "examples/s",
            "spread": 0.01, "samples": [value], "foreign_cores": 0.0, **more}


def sample_report():
    report = {
        "gpu": "A GPU, 580.1, 81559 MiB",
        "steps": {"yardsticks": {"status": "ok", "seconds": 3, "budget": 50, "shows": "x"},
                  "nsys": {"status": "skipped: no nsys", "seconds": 0, "budget": 20, "shows": "y"}},
        "bench": {"ref_l": {"results": [
            result("ref_l_cuda_sync_inproc_1s_1w", "examples", 200_000),
            result("ref_l_cuda_bf16_sync_inproc_1s_1w", "examples", 300_000, yardstick="products",
                   yardstick_value=600_000, ratio=0.5),
            result("ref_l_hot_rows_cuda_sync_inproc_1s_1w", "examples", 2_100_000)]},
            "yardsticks": {"results": [
                result("ref_l_fp32", "dense layers", 5, yardstick="alone", yardstick_value=6, ratio=0.85),
                result("ref_l_tf32", "dense layers", 5, yardstick="alone", yardstick_value=10, ratio=0.5)]}},
        "timeline": {"hidden_share": 0.93},
        "pytorch": {"figures": [
            {"system": "hdps, one process", "precision": "fp32", "phase": "rows there", "ratio": 1.5},
            {"system": "hdps, hot rows kept", "precision": "fp32", "phase": "rows there", "ratio": 2.5},
            {"system": "hdps tf32, one process", "precision": "tf32", "phase": "rows there", "ratio": 1.2},
            {"system": "hdps, one process", "precision": "fp32", "phase": "from an empty table", "ratio": 0.1},
            {"system": "pytorch plain", "precision": "fp32", "phase": "rows there", "ratio": 1.0}]},
    }
    report["goals"] = gpu_goals.judged(report)
    return report


class HiddenCopies(unittest.TestCase):
    def test_what_lies_under_compute_is_hidden_and_nothing_else(self):
        found = hidden_copies.hidden([
            span("compute", 0, 100), span("compute", 90, 120), span("compute", 200, 300),
            span("copy up", 50, 150),      # 70 of 100 hidden.
            span("copy down", 250, 350),   # 50 of 100.
            span("copy up", 210, 220),     # 10 of 10.
            span("wait for rows", 0, 500)])
        self.assertEqual((found["copy_us"], found["hidden_us"], found["compute_us"]), (210, 130, 220))
        self.assertAlmostEqual(found["hidden_share"], 130 / 210)

    def test_another_workers_compute_hides_nothing(self):
        found = hidden_copies.hidden([span("compute", 0, 100, pid=1), span("copy up", 0, 100, pid=0)])
        self.assertEqual(found["hidden_share"], 0)

    def test_the_beginning_can_be_left_out_and_without_copies_there_is_no_share(self):
        events = [span("copy up", 0, 10), span("compute", 20, 200), span("copy up", 100, 200)]
        self.assertEqual(hidden_copies.hidden(events, skip_us=50)["hidden_share"], 1)
        self.assertIsNone(hidden_copies.hidden([span("compute", 0, 1)])["hidden_share"])


class Goals(unittest.TestCase):
    def test_each_goal_is_met_missed_or_not_measured(self):
        rows = {row["goal"]: row for row in sample_report()["goals"]}
        host = rows["REF-L with host tables"]
        self.assertEqual((host["figure"], host["verdict"]), (300_000, "met"))  # Hot rows are another case.
        self.assertEqual(rows["REF-L with hot rows on the device"]["verdict"], "aim met")
        verdicts = {name.rsplit(" ", 1)[1]: row["verdict"] for name, row in rows.items() if "dense" in name}
        self.assertEqual(verdicts, {"fp32": "met", "tf32": "MISSED", "bf16": "not measured"})
        self.assertEqual(rows["share of the time of copies hidden under compute"]["verdict"], "met")
        peers = rows["beside the best PyTorch, same machine, model and batch"]
        self.assertEqual((peers["figure"], peers["verdict"]), (1.2, "MISSED"))
        self.assertAlmostEqual(peers["ratio"], 0.6)

    def test_rows_of_the_results(self):
        with tempfile.TemporaryDirectory() as folder:
            file, page = pathlib.Path(folder, "gpu.json"), pathlib.Path(folder, "results.md")
            file.write_text(json.dumps(sample_report()))
            page.write_text((ROOT / "docs" / "records" / "results.md").read_text())
            before = page.read_text()
            for _ in range(2):  # In place of those before.
                with mock.patch.object(sys, "argv", ["x", f"--gpu={file}", f"--results={page}"]), \
                     contextlib.redirect_stdout(io.StringIO()):
                    results_page.main()
            text = page.read_text()
            for line in ("Measured on A GPU, 580.1, 81559 MiB.",
                         "| REF-L with host tables | 300,000 examples/s | 283,830, 796,892 | 1.06 | met |",
                         "| beside the best PyTorch, same machine, model and batch | 1.2 | 2 | 0.6 | **MISSED** |",
                         "- nsys: skipped: no nsys",
                         "| `ref_l_cuda_bf16_sync_inproc_1s_1w` examples | 300,000 examples/s (1 %) | "
                         "products, 600,000 | 0.50 |  |"):
                self.assertEqual(text.count(line), 1, line)
            self.assertEqual(text.split(results_page.GPU_BEGIN)[0], before.split(results_page.GPU_BEGIN)[0])
            self.assertEqual(text.split(results_page.GPU_END)[1], before.split(results_page.GPU_END)[1])
            file.write_text("[]")
            with mock.patch.object(sys, "argv", ["x", f"--gpu={file}"]), self.assertRaises(SystemExit) as ended:
                results_page.main()
            self.assertIn("is not what gpu_check.sh writes", str(ended.exception))


class Check(unittest.TestCase):
    """gpu_check.py on machines that are made up: programs are short scripts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def steps(self, *steps):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            results = gpu_check.run_all(list(steps), self.folder)
        return {name: found["status"] for name, found in results.items()}, said.getvalue()

    def test_every_step_has_a_status_and_time_that_is_left_over_is_given_on(self):
        def step(name, budget, script, **more):
            return gpu_check.Step(name, budget, ["/bin/sh", "-c", script], "", **more)
        found, said = self.steps(
            step("well", 5, "true"),
            step("bad", 5, "echo the reason; exit 4"),
            step("refused", 5, "echo they share the GPU; exit 2", expect=2, said="share the GPU"),
            step("refused otherwise", 5, "echo no; exit 2", expect=2, said="share the GPU"),
            step("left out", 5, "false", needs="no tool"))
        self.assertEqual(found, {
            "well": "ok", "bad": "failed: status 4", "refused": "ok",
            "refused otherwise": "failed: it did not say 'share the GPU'", "left out": "skipped: no tool"})
        self.assertIn("the reason", said)
        found, _ = self.steps(step("ends too late", 4, "exec tail -f /dev/null"), step("no time", 0, "true"),
                              step("time again", 10, "true"))
        self.assertIn("timed out after 4 s", found["ends too late"])
        self.assertEqual((found["no time"], found["time again"]), ("not run: no time left", "ok"))

    def flags(self, *more):
        for name in ("bin", "tests", "examples", "peers"):
            (self.folder / name).mkdir(exist_ok=True)
        for file in ("bin/hdps", "bin/hdps-bench", "tests/kernels_cuda_test", "tests/worker_model_cuda_test",
                     "tests/collective_test", "peers/compare.py"):
            (self.folder / file).touch(mode=0o755)
        return [str(self.folder / "out.json"), *(f"--{n}={self.folder / n}" for n in ("bin", "tests", "examples",
                                                                                     "peers")), *more]

    def main(self, *more, gpu=("A GPU, 1, 2 MiB", "")):
        said = io.StringIO()
        with mock.patch.multiple(gpu_check, gpu_of_machine=lambda: gpu, missing_libraries=lambda _: [],
                                 why_no_pytorch=lambda _: ""), \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return gpu_check.main(self.flags(*more)), said.getvalue()

    def test_the_plan_fits_into_eight_minutes_and_names_every_part(self):
        with mock.patch.object(gpu_check.shutil, "which", lambda name, path=None: "/x/" + name):
            status, said = self.main("--dry_run")
        self.assertEqual(status, 0)
        for part in ("kernels_cuda_test", "collective_test", "yardsticks", "ref_l_host", "ref_l_hot", "timeline", "nsys", "pytorch",
                     "census_cuda", "two_workers_one_gpu", "memcheck", "racecheck"):
            self.assertIn(f"  {part} ", said)
        self.assertNotIn("skipped", said)
        seconds = int(said.rsplit(" steps, ", 1)[1].split(" s ")[0])
        self.assertLessEqual(seconds, gpu_check.SECONDS)
        self.assertFalse((self.folder / "out.json").exists())

    def test_without_a_gpu_it_says_so_and_leaves_a_report(self):
        status, said = self.main(gpu=("", "nvidia-smi: none"))
        self.assertEqual(status, 3)
        self.assertIn("no GPU found: nvidia-smi: none", said)
        report = json.loads((self.folder / "out.json").read_text())
        self.assertFalse(report["passed"])
        self.assertEqual({step["status"] for step in report["steps"].values()}, {"skipped: no GPU"})

    def test_figures_of_steps_stand_in_the_report_and_wrong_ones_fail_it(self):
        trace = {"traceEvents": [span("compute", 0, 1e5), span("copy up", 6e4, 7e4)]}
        sources = {
            "kernels_cuda_test.json": {"tests": 3, "failures": 0, "testsuites": [
                {"name": "S", "testsuite": [{"name": "T", "result": "SKIPPED"}]}]},
            "yardsticks.bench.json": {"results": [result("ref_l_fp32", "dense layers", 5, ratio=0.9)]},
            "pytorch.json": [], "cpu/summary.json": {"eval_auc": 0.92}, "cuda/summary.json": {"eval_auc": 0.9},
            "trace.json": trace}
        for name, value in sources.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(json.dumps(value))
        (self.folder / "ref_l.bench.json").write_text('{"results": [')  # Of a step that was ended.
        names = ("kernels_cuda_test", "yardsticks", "ref_l", "census_cuda")
        report = gpu_check.collect({name: {"status": "ok"} for name in names}, self.folder,
                                   self.folder / "trace.json")
        self.assertEqual(report["timeline"]["hidden_share"], 1)
        self.assertEqual(report["tests"]["kernels_cuda_test"]["run"], 2)
        self.assertEqual(list(report["bench"]), ["yardsticks"])
        self.assertEqual(report["steps"]["kernels_cuda_test"]["status"], "failed: 1 tests were skipped on a GPU")
        self.assertEqual(report["steps"]["census_cuda"]["status"], "failed: AUC 0.0200 from the CPU's")

    def test_mistakes(self):
        status, said = self.main("--only=tetris")
        self.assertEqual(status, 2)
        self.assertIn("tetris", said)


if __name__ == "__main__":
    unittest.main()
