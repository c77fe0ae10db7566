"""Tests the installed package: its headers are complete, and a program outside the project trains with it."""
import pathlib
import re

import harness

SOURCE = pathlib.Path(__file__).parent / "installed"
LIST = harness.ROOT / "scripts" / "dev" / "public_headers.txt"
OWN = harness.ROOT / "examples" / "own_layer"


class Installed(harness.Case):
    def install(self):
        prefix = self.out("prefix")
        harness.run(["cmake", "--install", harness.BIN.parent, "--prefix", prefix])
        return prefix

    def build(self, source, prefix, *programs):
        build = self.out("outside")
        harness.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
        harness.run(["cmake", "--build", build, "--target", *programs], timeout=600)
        return build

    def test_a_program_outside_trains(self):
        prefix = self.install()
        headers = prefix / "include" / "hdps"
        installed = {str(file.relative_to(headers)) for file in headers.rglob("*") if file.is_file()}
        listed = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
        self.assertEqual(installed, listed)
        for header in installed:
            for wanted in re.findall(r'^#include "([^"]+)"', (headers / header).read_text(), re.M):
                self.assertIn(wanted, installed, f"{header} includes it")
        harness.figure(f"{len(installed)} headers are installed, which are those of {LIST.name}")
        build = self.build(SOURCE, prefix, "outside")
        said = harness.run([build / "outside", harness.CENSUS, self.out("run")]).stdout
        self.assertIn("steps 3", said)
        self.assertIn("before: the workers have no ranks yet: they form their group in the first Step()", said)
        self.assertEqual(sorted(re.findall(r"rank \d of \d", said)), [f"rank {r} of 3" for r in range(3)])
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 3)

    def test_own_layer_and_own_loop(self):
        build = self.build(OWN, self.install(), "own_layer", "own_loop")
        harness.run([build / "own_layer", OWN / "own_layer.json", self.out("run")])
        auc = harness.summary_of(self.out("run"))["eval_auc"]
        harness.figure(f"a layer of a program's own, census: AUC {auc:.4f}")
        self.assertGreater(auc, 0.89)
        # The stock program does not know the layer, and says which it knows.
        refused = harness.train(OWN / "own_layer.json", self.out("stock"), expect=2)
        self.assertIn("powers", refused.stderr)
        # Steps driven by hand end with the parameters of hdps train, bit for bit.
        said = harness.run([build / "own_loop", harness.CENSUS, self.out("loop"), "100"]).stdout
        self.assertEqual([line.split()[3] for line in said.splitlines()], ["100", "200", "300", "400", "500"])
        trained = harness.train(harness.CENSUS, self.out("train"), workers=2)
        driven = harness.summary_of(self.out("loop"))
        harness.figure(f"digest of steps driven by hand {driven['digest']}, of hdps train {trained['digest']}")
        self.assertEqual(driven["digest"], trained["digest"])

    def test_own_optimizer(self):
        build = self.build(OWN, self.install(), "own_optimizer")
        job = OWN / "own_optimizer.json"
        harness.run([build / "own_optimizer", job, self.out("run")])
        whole = harness.summary_of(self.out("run"))
        harness.figure(f"an optimizer of a program's own, census: AUC {whole['eval_auc']:.4f}")
        self.assertGreater(whole["eval_auc"], 0.89)
        # Its state is in the checkpoint: a run that was interrupted ends with the same parameters.
        harness.run([build / "own_optimizer", job, self.out("parts"), "train.max_steps=100"])
        # A program that does not know the rule cannot go on, nor read the checkpoint, and says why.
        unknown = '"lion" is not one of sgd, momentum'
        refused = harness.train(job, self.out("parts"), workers=2, servers=2, expect=2)
        self.assertIn(unknown, refused.stderr)
        checkpoint = f"--checkpoint={self.out('parts') / 'checkpoint'}"
        refused = harness.run([harness.program("hdps"), "evaluate", checkpoint], expect=2)
        self.assertIn(unknown, refused.stderr)
        harness.run([build / "own_optimizer", job, self.out("parts")])
        self.assertEqual(harness.summary_of(self.out("parts"))["digest"], whole["digest"])
        # Rows on a GPU would be updated there, which only rules of the library can.
        refused = harness.run([build / "own_optimizer", job, self.out("cuda"), "model.device=cuda",
                               "model.vocab_cache_size=100"], expect=2)
        self.assertIn("lion is the program's own, which has no code for CUDA", refused.stderr)

    def test_a_rule_as_the_librarys_has_its_bits(self):
        build = self.build(SOURCE, self.install(), "twins")
        for name, sets in {
            "fp32": {},
            "bf16": {"model.weights": "bf16"},
            "kept": {"model.vocab_cache_size": 300, "model.device": "cpu", "parallel.dense_exchange": "allreduce"},
        }.items():
            sets = {"train.max_steps": 60, "parallel.device_num": 2, **sets}

            def kinds(prefix):
                return sets | {
                    "model.wide_optimizer.kind": prefix + "sgd", "model.deep_optimizer.kind": prefix + "adagrad",
                    "model.dense_optimizer.kind": prefix + "adagrad"}

            words = [f"{key}={value}" for key, value in kinds("twin_").items()]
            harness.run([build / "twins", harness.CENSUS, self.out(f"twins_{name}"), *words])
            own = harness.summary_of(self.out(f"twins_{name}"))
            built_in = harness.train(harness.CENSUS, self.out(name), workers=2, servers=2, sets=kinds(""))
            harness.figure(f"adagrad and sgd, {name}: digest of a program's own {own['digest']}, "
                           f"of the library's {built_in['digest']}")
            self.assertEqual(own["digest"], built_in["digest"])


if __name__ == "__main__":
    harness.main()
