"""The installed package: its headers are all there, and a program outside of the project trains with it."""
import pathlib
import re

import harness

SOURCE = pathlib.Path(__file__).parent / "installed"
OWN = harness.ROOT / "examples" / "own_layer"


class Installed(harness.Case):
    def install(self):
        prefix = self.out("prefix")
        harness.run(["cmake", "--install", harness.BIN.parent, "--prefix", prefix])
        return prefix

    def build(self, source, prefix):
        build = self.out("outside")
        harness.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
        harness.run(["cmake", "--build", build], timeout=600)
        return build

    def test_a_program_outside_trains(self):
        prefix = self.install()
        headers = prefix / "include" / "hdps"
        for header in headers.rglob("*.h"):
            for wanted in re.findall(r'^#include "([^"]+)"', header.read_text(), re.M):
                self.assertTrue((headers / wanted).exists(), f"{header} includes {wanted}")
        build = self.build(SOURCE, prefix)
        said = harness.run([build / "outside", harness.CENSUS, self.out("run")]).stdout
        self.assertIn("steps 3", said)
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 3)

    def test_own_layer_and_own_loop(self):
        build = self.build(OWN, self.install())
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


if __name__ == "__main__":
    harness.main()
