"""Tests checkpoints: with any number of servers, resumed, and damaged."""
import pathlib
import random
import shutil
import signal
import subprocess

import harness


class Checkpoint(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=20480, eval_rows=2048, vocabulary=5000, zipf=1.05, seed=3)
        cls.job = harness.write_job(cls.data / "job.json", harness.reference_job(cls.data, epochs=2))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data, ignore_errors=True)

    def test_other_numbers_of_servers_and_workers(self):
        """4 servers write; 1, 2, 3 and 5 load: the digest is the writer's."""
        written = harness.train(self.job, self.out("first"), 4, 2)["digest"]
        shown = harness.run([harness.program("hdps"), "inspect", "--digest", "--which=newest",
                             f"--checkpoint={self.out('first')}/checkpoint"]).stdout
        self.assertIn(written, shown)
        for servers in (1, 2, 3, 5):
            shutil.copytree(self.out("first"), self.out(f"s{servers}"))
            loaded = harness.train(self.job, self.out(f"s{servers}"), servers, 1)
            harness.figure(f"4 servers -> {servers}: {loaded['digest']}")
            self.assertEqual(loaded["digest"], written)
            self.assertEqual(loaded["steps"], 40)

    def test_resumed_is_uninterrupted(self):
        """Stopped at steps in the middle and resumed, the run ends with the same digest."""
        whole = harness.train(self.job, self.out("whole"), 2, 2)["digest"]
        for stop_at, dense in ((7, "servers"), (20, "servers"), (27, "servers"), (13, "allreduce")):
            name = f"stopped{stop_at}"
            sets = {"parallel.dense_exchange": dense}
            first = harness.train(self.job, self.out(name), 2, 2, {**sets, "train.max_steps": stop_at})
            self.assertEqual(first["steps"], stop_at)
            last = harness.train(self.job, self.out(name), 3, 2, sets)
            if dense == "allreduce":
                whole_dense = harness.train(self.job, self.out("whole_ar"), 2, 2, sets)["digest"]
                self.assertEqual(last["digest"], whole_dense)
            else:
                self.assertEqual(last["digest"], whole)
            harness.figure(f"stopped at {stop_at} ({dense}), resumed on 3 servers: {last['digest']}")

    def test_sigterm_checkpoints_and_resumes(self):
        """SIGTERM in the middle: exit 0, a checkpoint, nothing left running; then the same end."""
        slow = {"train.epochs": 6}
        whole = harness.train(self.job, self.out("whole"), 2, 2, slow)
        out = self.out("stopped")
        process = subprocess.Popen(
            [str(harness.ROOT / "scripts/local_cluster.sh"), f"--job={self.job}", f"--out={out}",
             "--servers=2", "--workers=2", *harness.merged_settings(slow)],
            env={**__import__("os").environ, "HDPS_BIN": str(harness.BIN)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.wait_until(lambda: (out / "metrics.jsonl").exists()
                           and (out / "metrics.jsonl").stat().st_size > 0, 60, "a first report")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(harness.processes_with(str(out)), [])
        self.assertEqual(list((out / "pid").iterdir()), [])
        stopped = harness.summary_of(out)
        resumed = harness.cluster(self.job, out, 1, 2, slow)
        harness.figure(f"SIGTERM at step {stopped['steps']} of {whole['steps']}; resumed: {resumed['digest']}")
        self.assertEqual(resumed["digest"], whole["digest"])

    def resume(self, out, sets, how="changed", expect=0):
        return harness.train(self.job, out, 1, 2, sets, expect=expect, extra=[f"--resume={how}"])

    def test_goes_on_with_another_learning_rate(self):
        """--resume=changed from step 7 on with half the rate: the bits of a schedule that halves it
        there. Without it the refusal names both values; behind it the job is the new one."""
        rates = ("model.deep_optimizer.learning_rate", "model.dense_optimizer.learning_rate")
        half = {name: 1.75e-4 for name in rates}
        schedule = {"kind": "step", "decay_steps": 7, "decay": 0.5}
        expected = harness.train(self.job, self.out("scheduled"), 1, 2, {
            "train.max_steps": 14, "model.deep_schedule": schedule, "model.dense_schedule": schedule})
        out = self.out("run")
        harness.train(self.job, out, 1, 2, {"train.max_steps": 7})
        new = {**half, "train.max_steps": 14}
        said = self.resume(out, new, "auto", expect=2).stderr
        self.assertIn("model.tables.1.optimizer.learning_rate (deep) is 0.000175, the checkpoint's is 0.00035", said)
        self.assertIn("--resume=changed", said)
        changed = self.resume(out, new)
        harness.figure(f"half the rate by a schedule {expected['digest']}, by --resume=changed {changed['digest']}")
        self.assertEqual(changed["digest"], expected["digest"])
        self.assertEqual([(c["step"], c["from"], c["to"]) for c in changed["changes"]],
                         [(7, "0.00035", "0.000175")] * 2)
        again = self.resume(out, {**half, "train.max_steps": 16}, "auto")
        self.assertEqual((again["steps"], again["changes"]), (16, changed["changes"]))
        self.assertIn("the checkpoint's is 0.000175", self.resume(out, {}, "auto", expect=2).stderr)
        shown = harness.run([harness.program("hdps"), "inspect", "--which=newest",
                             f"--checkpoint={out}"]).stdout
        self.assertIn("changed     at step 7: model.tables.1.optimizer.learning_rate (deep) from 0.00035 to 0.000175", shown)
        # Which rate is next does not matter to who scores: the first checkpoint has the old one.
        harness.run([harness.program("hdps"), "evaluate", f"--job={self.job}", f"--checkpoint={out}",
                     "--which=newest"])
        fixed = self.resume(out, {**half, "model.embedding_dim": 8}, expect=2).stderr
        self.assertIn("--resume=changed does not help, for model.tables.1.dim (deep) stays", fixed)

    def test_goes_on_with_another_batch_size(self):
        """At the same row where that is a step, else with the epoch anew; and across exchanges."""
        for stop_at, batch, steps, examples in ((8, 2048, 24, 40960), (7, 2048, 27, 40960 + 7168)):
            out = self.out(f"batch{stop_at}")
            harness.train(self.job, out, 1, 2, {"train.max_steps": stop_at})
            done = harness.train(self.job, out, 2, 1, {"train.batch_size": batch, "parallel.dense_exchange": "allreduce"},
                                 extra=["--resume=changed"])
            harness.figure(f"{stop_at} steps of 1024, then of {batch}: {done['steps']} steps, {done['examples']} examples")
            self.assertEqual((done["steps"], done["examples"]), (steps, examples))
            self.assertEqual([c["setting"] for c in done["changes"]], ["train.batch_size", "parallel.dense_exchange"])
            log = (out / "log" / "train.log").read_text()
            self.assertEqual("epoch 1 begins anew: of it 7168 rows were trained" in log, stop_at == 7)

    def test_goes_on_with_other_layers_at_the_servers(self):
        """A checkpoint has all layers as rows, whoever keeps them: changed at step 7, the bits are those of one way."""
        sets = {"parallel.dense_exchange": "allreduce"}
        kept = [{**sets, **{f"model.layer_settings.{layer}.dense_exchange": "servers" for layer in layers}}
                for layers in (("deep1", "wide_bias"), ("deep2",))]
        whole = harness.train(self.job, self.out("whole"), 1, 2, {**sets, "train.max_steps": 14})["digest"]
        for name, first, second in (("some", *kept), ("none", kept[0], sets), ("all", kept[1], {})):
            harness.train(self.job, self.out(name), 2, 2, {**first, "train.max_steps": 7})
            said = self.resume(self.out(name), {**second, "train.max_steps": 14}, "auto", expect=2).stderr
            self.assertIn("dense_exchange (deep", said)
            done = self.resume(self.out(name), {**second, "train.max_steps": 14})
            self.assertEqual(done["digest"], whole, name)
        harness.figure(f"layers of servers changed at step 7, three ways: {whole}")

    def test_counts_of_rows_go_on(self):
        """Rows admitted, refused and evicted are those of the job, not of its last run."""
        sets = {"model.policy": {"admit_after": 2, "evict_after_steps": 4}, "train.epochs": 1}
        counts = ("rows_admitted", "gradients_refused", "rows_evicted", "steps", "examples")
        whole = harness.train(self.job, self.out("whole"), 2, 1, sets)
        harness.train(self.job, self.out("parts"), 2, 1, {**sets, "train.max_steps": 9})
        parts = harness.train(self.job, self.out("parts"), 1, 1, sets)
        harness.figure(", ".join(f"{name} {whole[name]}" for name in counts))
        self.assertEqual([parts[name] for name in counts], [whole[name] for name in counts])
        self.assertGreater(min(whole[name] for name in counts), 0)

    def damaged(self, name, damage):
        """A run with two checkpoints whose newest is damaged; returns what resuming says."""
        out = self.out(name)
        shutil.copytree(self.out("sound"), out)
        newest = sorted((out / "checkpoint").glob("step_*"))[-1]
        victim = damage(newest)
        done = harness.run([harness.program("hdps"), "train", f"--job={self.job}", f"--out={out}"])
        text = done.stdout + done.stderr
        self.assertIn(victim, text)
        self.assertEqual(harness.summary_of(out)["digest"], self.expected)
        self.assertEqual(harness.summary_of(out)["resumed_from"], 20)
        return text

    def test_damage_is_refused_by_name(self):
        """Truncated, flipped or missing files: refused by name, and the checkpoint before is used."""
        self.expected = harness.train(self.job, self.out("sound"), 2, 1,
                                      {"checkpoint.every_steps": 20})["digest"]
        random.seed(5)

        def biggest(folder):
            return max([*folder.glob("*.snapshot"), *folder.glob("*.pack")], key=lambda f: f.stat().st_size)

        def truncate(folder):
            file = biggest(folder)
            file.write_bytes(file.read_bytes()[:-random.randrange(1, 2000)])
            return file.name

        def flip(folder):
            file = biggest(folder)
            data = bytearray(file.read_bytes())
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            file.write_bytes(bytes(data))
            return file.name

        def remove(folder):
            file = biggest(folder)
            file.unlink()
            return file.name

        def manifest(folder):
            file = folder / "manifest.json"
            file.write_text(file.read_text().replace('"clock"', '"clocc"', 1))
            return "manifest.json"

        for name, damage in (("truncated", truncate), ("flipped", flip), ("removed", remove),
                             ("manifest", manifest)):
            text = self.damaged(name, damage)
            harness.figure(f"{name}: " + next(l for l in text.splitlines() if "refus" in l.lower()))


if __name__ == "__main__":
    harness.main()
