"""Tests the evaluation in benchmarks/peers: the best peer, ratios, goals, what is written and skipped.
The output of PyTorch and hdps is made up; neither runs."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
import cases  # noqa: E402
import compare  # noqa: E402
import compare_models  # noqa: E402
import comparison  # noqa: E402
import machine  # noqa: E402
from comparison import System  # noqa: E402

CASE = cases.case_of("peers")
PLAIN, TUNED = System("pytorch plain", "fp32"), System("pytorch tuned", "fp32")
TUNED_BF16 = System("pytorch tuned", "bf16")
ONE, CLUSTER = System("hdps, one process", "fp32"), System("hdps, 1 server + 1 worker", "fp32")
CLUSTER_BF16 = System("hdps, 1 server + 1 worker", "bf16")
# First epoch, second epoch, AUC of each repeat. The plain PyTorch is the best of the first epoch, the
# tuned one of the second, by its median and not by its best run.
RUNS = {
    PLAIN: [(50, 90, 0.688), (40, 95, 0.686), (45, 200, 0.687)],
    TUNED: [(30, 100, 0.689), (35, 120, 0.689), (99, 110, 0.689)],
    TUNED_BF16: [(60, 250, 0.687), (60, 200, 0.687), (60, 150, 0.687)],
    ONE: [(90, 165, 0.690), (90, 165, 0.690), (90, 165, 0.690)],
    CLUSTER: [(90, 220, 0.690), (90, 165, 0.690), (90, 110, 0.690)],
    CLUSTER_BF16: [(75, 300, 0.691), (75, 300, 0.691), (75, 300, 0.691)],
}


def runs_of(table):
    return {system: [{"first_epoch": first, "second_epoch": second, "auc": auc,
                      "version": "PyTorch 9" if system.is_peer else "hdps 1"}
                     for first, second, auc in runs] for system, runs in table.items()}


def figures_of(table, case=CASE):
    figures = comparison.figures_of(case, runs_of(table), {"cpu": "a processor"})
    return {(figure["system"], figure["phase"]): figure for figure in figures}


class Figures(unittest.TestCase):
    def test_the_best_peer_has_the_highest_median_of_its_precision_and_phase(self):
        runs = runs_of(RUNS)
        self.assertEqual(comparison.best_peer(runs, "first_epoch", "fp32"), PLAIN)
        self.assertEqual(comparison.best_peer(runs, "second_epoch", "fp32"), TUNED)
        self.assertEqual(comparison.best_peer(runs, "second_epoch", "bf16"), TUNED_BF16)
        del runs[TUNED_BF16]
        self.assertIsNone(comparison.best_peer(runs, "second_epoch", "bf16"))

    def test_a_figure_is_a_median_with_its_range_over_the_best_peer(self):
        figure = figures_of(RUNS)["hdps, 1 server + 1 worker", "rows there"]
        self.assertEqual((figure["low"], figure["examples_per_second"], figure["high"]), (110, 165, 220))
        self.assertEqual(figure["best_peer"], "pytorch tuned fp32")
        self.assertEqual(figure["ratio"], 1.5)
        self.assertEqual(figures_of(RUNS)["hdps, one process", "from an empty table"]["ratio"], 2)
        self.assertEqual(figures_of(RUNS)["hdps bf16, 1 server + 1 worker", "rows there"]["ratio"], 1.5)

    def test_without_a_peer_of_its_precision_a_figure_has_neither_ratio_nor_goal(self):
        alone = {system: runs for system, runs in RUNS.items() if system != TUNED_BF16}
        figure = figures_of(alone)["hdps bf16, 1 server + 1 worker", "rows there"]
        self.assertEqual((figure["ratio"], figure["best_peer"], figure["goal"]), (None, None, None))
        self.assertIn("hdps bf16, 1 server + 1 worker", comparison.line_of(figure))

    def test_goals_are_for_one_server_and_one_worker_with_rows_there(self):
        with_goal = {key: figure["goal"] for key, figure in figures_of(RUNS).items() if figure["goal"]}
        self.assertEqual(with_goal, {
            ("hdps, 1 server + 1 worker", "rows there"): CASE.goal,
            ("hdps bf16, 1 server + 1 worker", "rows there"): cases.BF16_GOAL})
        self.assertTrue(all(case.goal > 1 for case in cases.CASES if not case.on_gpu))

    def test_pytorch_over_our_rows_has_goals_of_its_own(self):
        rows = [System(form, "fp32") for form in comparison.ROWS_FORMS]
        figures = figures_of({**RUNS, **{system: RUNS[ONE] for system in rows}})
        self.assertEqual([figures[system.name, "rows there"]["goal"] for system in rows], [1.0, 0.9])
        self.assertEqual([figures[system.name, "rows there"]["ratio"] for system in rows], [1.5, 1.5])
        self.assertIsNone(figures[rows[0].name, "from an empty table"]["goal"])

    def test_a_limited_server_is_shown_over_the_same_without_a_limit(self):
        whole, limited = comparison.systems(True, True, limited=True)
        runs = {**runs_of({whole: RUNS[ONE]}), limited: [
            {"first_epoch": 9.0, "second_epoch": 99.0, "version": "hdps 1", "memory_limit": 64 << 20,
             "copied_bytes_a_step": 2_500_000}]}
        figure = comparison.figures_of(CASE, runs, {})[-1]
        self.assertEqual((figure["ratio"], figure["goal"]), (0.6, comparison.LIMITED_GOAL))
        for words in ("0.60 of %s (goal 0.5)" % comparison.ROWS_FORMS[1], "2.50 MB copied a step",
                      "64 MiB for the server"):
            self.assertIn(words, comparison.line_of(figure))

    def test_lines_name_peer_goal_version_and_precision_and_set_aucs_beside_each_other(self):
        lines = comparison.lines_of(list(figures_of(RUNS).values()))
        (goal,) = [line for line in lines if "goal %.1f" % CASE.goal in line]
        for words in ("165 (110 .. 220) examples/s", "1.50 of pytorch tuned fp32", "hdps 1, fp32"):
            self.assertIn(words, goal)
        self.assertEqual(sum("the best peer in bf16; PyTorch 9, bf16" in line for line in lines), 2)
        for words in ("pytorch plain 0.6870", "pytorch tuned bf16 0.6870", "hdps, one process 0.6900"):
            self.assertIn(words, lines[-1])


class Systems(unittest.TestCase):
    def test_names_are_unlike_and_bf16_is_left_out_where_it_is_not_wanted(self):
        everything = comparison.systems(True, True)
        self.assertEqual(len({system.name for system in everything}), 7)
        self.assertEqual(comparison.systems(True, False), everything[:2] + [TUNED_BF16, ONE, CLUSTER])
        self.assertEqual({s.precision for s in comparison.systems(False, False)}, {"fp32"})
        self.assertEqual([s.form for s in comparison.systems(False, False, rows=True)][-2:],
                         list(comparison.ROWS_FORMS))
        self.assertEqual([s.name for s in comparison.systems(False, False, True) if s.is_peer],
                         ["pytorch plain", "pytorch tuned fp32", "pytorch fbgemm"])

    def test_a_processor_is_known_by_its_name_and_its_products(self):
        with tempfile.NamedTemporaryFile("w") as file:
            for flags, multiplies in (("fpu avx2", False), ("avx2 avx512f amx_bf16", True),
                                      ("avx2 avx512f avx512_bf16", True)):
                pathlib.Path(file.name).write_text(f"model name : A B\nflags : {flags}\nmodel name : C\n")
                about = machine.cpu(file.name)
                self.assertEqual(about["cpu"], "A B")
                self.assertEqual(about["vector_extensions"][0], "avx2")
                self.assertEqual(machine.multiplies_bf16(about), multiplies)


class Compare(unittest.TestCase):
    """compare.py with its two ways to run something replaced."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "hdps").touch()
        self.turns, self.commands = [], []

    def run_main(self, *flags, pytorch=True, main=compare.main):
        def turn(_flags, case, _folder, system):
            self.turns.append(system)
            return {"version": system.form, "first_epoch": 1.0, "second_epoch": 2.0,
                    "auc": 0.7 if case.eval_rows else None}

        def output_of(command, **_):
            self.commands.append(command)
            return "hdps 1\n"

        said = io.StringIO()
        with mock.patch.multiple(compare, run_pytorch=turn, run_hdps=turn, output_of=output_of,
                                 has_pytorch=lambda _: pytorch), \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main([f"--bin={self.folder}", f"--scratch={self.folder}", *flags])
        return said.getvalue()

    def test_systems_take_turns_and_the_figures_are_written(self):
        written = self.folder / "figures.json"
        said = self.run_main("--case=peers", "--repeats=2", "--bf16", f"--json={written}")
        self.assertEqual(self.turns, 2 * comparison.systems(True, True))
        figures = json.loads(written.read_text())
        self.assertEqual(len(figures), 2 * 7)
        for figure in figures:
            self.assertEqual(figure["cpu"], machine.cpu()["cpu"])
            for field in ("vector_extensions", "threads", "version", "precision", "low", "high", "auc"):
                self.assertIsNotNone(figure[field], field)
        self.assertIn(machine.cpu()["cpu"], said)

    def test_bf16_can_be_left_out(self):
        self.run_main("--case=small", "--repeats=1", "--no-bf16")
        self.assertFalse([s for s in self.turns if s.precision == "bf16" and not s.is_peer])

    def test_without_pytorch_it_is_skipped_and_says_the_mend(self):
        said = self.run_main(pytorch=False)
        self.assertIn("skipped", said)
        self.assertIn("setup.sh", said)
        self.assertEqual((self.turns, self.commands), ([], []))
        self.assertFalse(compare.has_pytorch(str(self.folder / "python")))

    def test_mistakes_end_with_status_2(self):
        for flags in (["--case=huge"], ["--repeats=0"], [f"--bin={self.folder / 'nowhere'}"],
                      ["--rows", f"--package={self.folder}"], ["--limited", f"--package={self.folder}"]):
            with self.assertRaises(SystemExit) as ended:
                self.run_main(*flags)
            self.assertEqual(ended.exception.code, 2, flags)
        self.assertEqual(self.turns, [])

    def test_hdps_is_asked_for_its_precision_and_its_epochs_are_told_apart(self):
        lines = [{"epochs_done": 0, "time": 1.0}, {"epochs_done": 1, "time": 2.0},
                 {"eval_auc": 0.6, "time": 3.0}, {"epochs_done": 2, "time": 7.0},
                 {"eval_auc": 0.9, "time": 8.0}]

        def output_of(command, **_):
            self.commands.append(command)
            (out,) = [word[len("--out="):] for word in command if word.startswith("--out=")]
            pathlib.Path(out, "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))

        flags = mock.Mock(bin=str(self.folder), threads=2, set="train.seed=3", version="hdps 1", device="cpu")
        with mock.patch.object(compare, "output_of", output_of):
            runs = [compare.run_hdps(flags, CASE, str(self.folder), system)
                    for system in (ONE, CLUSTER_BF16)]
        self.assertEqual(runs[0], {"version": "hdps 1", "auc": 0.6, "first_epoch": CASE.rows / 2,
                                   "second_epoch": CASE.rows / 4})
        self.assertEqual(self.commands[0][:2], [str(self.folder / "hdps"), "train"])
        self.assertNotIn("--set=model.precision=bf16", self.commands[0])
        self.assertTrue(self.commands[1][0].endswith("scripts/local_cluster.sh"))
        for setting in ("--set=train.seed=3", "--set=model.precision=bf16"):
            self.assertIn(setting, self.commands[1])

    def test_pytorch_over_our_rows_runs_alone_and_as_a_worker_of_daemons(self):
        line = {"case": "peers", "first_epoch": 1.0, "second_epoch": 2.0}

        def output_of(command, env, **_):
            self.commands.append(command)
            self.assertEqual(env["PYTHONPATH"], "packages")
            self.assertNotIn("HDPS_SCHEDULER", env)
            for word in command:
                if word.startswith("--out="):
                    log = pathlib.Path(word[len("--out="):], "log")
                    log.mkdir()
                    (log / "worker_0.log").write_text(f"said\n{json.dumps(line)}\nsaid\n")
                    (log.parent / "summary.json").write_text('{"row_bytes": 400}')
            return json.dumps(line)

        flags = mock.Mock(bin="bin", threads=2, set="cluster.memory_limit=64MiB", python="python", package="packages")
        with mock.patch.object(compare, "output_of", output_of):
            runs = [compare.run_rows(flags, CASE, str(self.folder), System(form, "fp32"))
                    for form in (*comparison.ROWS_FORMS, comparison.LIMITED_FORM)]
        self.assertEqual(runs, [line, line, {**line, "memory_limit": 100}])
        alone, daemons, limited = self.commands
        self.assertEqual(limited[-1], "--set=cluster.memory_limit=100")
        self.assertEqual(alone[0], "python")
        self.assertIn(f"--worker_command={' '.join(alone)}", daemons)
        self.assertIn("--set=cluster.memory_limit=64MiB", daemons)
        job = json.loads((self.folder / "tables.json").read_text())
        self.assertEqual([table["name"] for table in job["model"]["tables"]], ["deep"])

    def test_on_a_gpu_all_take_part_in_each_precision_and_turns_are_written_as_they_come(self):
        written = self.folder / "figures.json"
        self.run_main("--case=ref_l", "--repeats=1", "--device=cuda", f"--json={written}")
        self.assertEqual(self.turns, comparison.systems_on_gpu())
        figures = json.loads(written.read_text())
        self.assertEqual(len({f["system"] for f in figures}), len(self.turns))
        for form in ("pytorch tuned", "hdps, one process", comparison.HOT_FORM):
            self.assertEqual([s.precision for s in self.turns if s.form == form], ["fp32", "tf32", "bf16"])
        self.assertEqual({f["case"] for f in figures}, {"ref_l"})
        # A comparison that is ended half-way has left what there was.
        with mock.patch.object(comparison, "lines_of", side_effect=KeyboardInterrupt), \
             self.assertRaises(KeyboardInterrupt):
            written.unlink()
            self.run_main("--case=small", "--repeats=1", "--device=cuda", f"--json={written}")
        self.assertTrue(json.loads(written.read_text()))

    def test_the_case_for_gpus_is_not_for_cpus(self):
        for flag in ("--case=ref_l", "--all --device=cuda --case=small"):
            with self.assertRaises(SystemExit) as ended:
                self.run_main(*flag.split())
            self.assertEqual(ended.exception.code, 2)

    def test_hdps_is_asked_for_its_gpu_and_its_hot_rows(self):
        def output_of(command, **_):
            self.commands.append(command)
            (out,) = [word[len("--out="):] for word in command if word.startswith("--out=")]
            pathlib.Path(out, "metrics.jsonl").write_text(
                "\n".join(json.dumps({"epochs_done": e, "time": e + 1.0}) for e in (1, 2)))

        flags = mock.Mock(bin=str(self.folder), threads=2, set="", version="hdps 1", device="cuda")
        with mock.patch.object(compare, "output_of", output_of):
            compare.run_hdps(flags, CASE, str(self.folder), System(comparison.HOT_FORM, "tf32"))
        self.assertEqual(self.commands[0][:2], [str(self.folder / "hdps"), "train"])
        for setting in ("--set=model.precision=tf32", "--set=model.vocab_cache_size=160000"):
            self.assertIn(setting, self.commands[0])
        self.assertEqual(json.loads((self.folder / "job.json").read_text())["model"]["device"], "cuda")

    def test_models_take_turns_on_pytorch_compiled_and_not_and_on_hdps(self):
        written = self.folder / "figures.json"
        self.run_main("--case=dcn", "--repeats=2", f"--json={written}", main=compare_models.main)
        self.assertEqual(self.turns, 2 * 2 * [PLAIN, TUNED, ONE, CLUSTER])
        figures = json.loads(written.read_text())
        self.assertEqual({f["case"] for f in figures if f["goal"] == 1.0}, {"dcn_v2", "dcn_mix"})
        for flags in (["--case=wide_deep"], ["--repeats=0"], ["--device=cuda"]):
            with self.assertRaises(SystemExit) as ended:
                self.run_main(*flags, main=compare_models.main)
            self.assertEqual(ended.exception.code, 2, flags)

    def test_only_plain_pytorch_is_told_not_to_compile_a_model(self):
        environments = []

        def output_of(command, env):
            self.commands.append(command)
            environments.append(env)
            return "{}"

        flags = mock.Mock(python="python", threads=2, device="cpu")
        with mock.patch.object(compare, "output_of", output_of):
            for case, system in ((cases.MODELS[0], PLAIN), (cases.MODELS[0], TUNED), (CASE, PLAIN)):
                compare.run_pytorch(flags, case, "data", system)
        self.assertEqual([pathlib.Path(command[1]).name for command in self.commands],
                         ["pytorch_models.py", "pytorch_models.py", "pytorch_wide_deep.py"])
        self.assertEqual([env.get("TORCH_COMPILE_DISABLE") for env in environments], ["1", None, None])

    def test_the_job_of_a_model_has_its_recipe_and_the_columns_that_it_reads(self):
        for case in cases.MODELS:
            job = json.loads(pathlib.Path(cases.write_job(case, str(self.folder))).read_text())
            self.assertEqual({**case.model, "hidden": [256, 128]}, {
                name: value for name, value in job["model"].items() if name in {**case.model, "hidden": 0}})
            self.assertEqual("wide_optimizer" in job["model"], case.wide)
            keys = [column.get("repeat", 1) for column in job["data"]["columns"][2:]]
            self.assertEqual(sum(keys), case.keys + bool(case.history))
        self.assertEqual((job["model"]["history"], job["model"]["target"], job["model"]["history_length"]),
                         ("H", "T", cases.MODELS[-1].history))
        self.assertEqual([column["vocabulary"] for column in job["data"]["columns"] if column["name"] == "H"], ["T"])


class PytorchRuns(unittest.TestCase):
    """What the scripts of PyTorch share, over stand-ins for torch and numpy."""

    def setUp(self):
        torch = mock.MagicMock(__version__="9.1+cu130")
        torch.zeros.return_value.device.type = "cuda"
        torch.cuda.get_device_name.return_value = "a GPU"
        modules = mock.patch.dict(sys.modules, {"torch": torch, "numpy": mock.MagicMock()})
        modules.start()
        self.addCleanup(modules.stop)
        sys.modules.pop("pytorch_runs", None)
        import pytorch_runs
        self.runs, self.torch = pytorch_runs, torch
        self.addCleanup(sys.modules.pop, "pytorch_runs", None)

    def test_a_run_on_a_gpu_is_a_line_of_json_with_its_gpu_and_precision(self):
        said = io.StringIO()
        with mock.patch.multiple(self.runs, two_epochs=lambda *_: {"first_epoch": 1.0, "second_epoch": 2.0},
                                 compiles=lambda: False), \
             mock.patch.object(cases, "make_data"), contextlib.redirect_stdout(said):
            self.runs.main("about", lambda *_: None, {"cpu": ["fp32"], "cuda": self.runs.ON_GPU},
                           ["--case=ref_l", "--data=x", "--device=cuda", "--precision=tf32"])
        line = json.loads(said.getvalue())
        self.assertEqual((line["gpu"], line["precision"], line["compiles"], line["version"]),
                         ("a GPU", "tf32", False, "PyTorch 9.1"))
        self.torch.set_default_device.assert_called_with("cuda")
        self.torch.set_float32_matmul_precision.assert_called_with("high")

    def test_precisions_belong_to_devices(self):
        precisions = {"cpu": ["fp32"], "cuda": self.runs.ON_GPU}
        for bad in (["--precision=tf32"], ["--device=tpu"], ["--device=cuda", "--precision=fp8"]):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                self.runs.parse_flags("about", precisions, ["--case=small", "--data=x", *bad])
            self.assertEqual(ended.exception.code, 2)

    def test_without_triton_functions_stay_as_they_are(self):
        with mock.patch.object(self.runs, "compiles", lambda: False):
            self.assertEqual(self.runs.compiled(dynamic=True)(lambda x: x + 1)(1), 2)
        self.torch.compile.assert_not_called()


if __name__ == "__main__":
    unittest.main()
