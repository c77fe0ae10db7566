"""The installed package: its headers are all there, and a program outside of the project trains with it."""
import pathlib
import re

import harness

SOURCE = pathlib.Path(__file__).parent / "installed"


class Installed(harness.Case):
    def test_a_program_outside_trains(self):
        prefix, build = self.out("prefix"), self.out("outside")
        harness.run(["cmake", "--install", harness.BIN.parent, "--prefix", prefix])
        headers = prefix / "include" / "hdps"
        for header in headers.rglob("*.h"):
            for wanted in re.findall(r'^#include "([^"]+)"', header.read_text(), re.M):
                self.assertTrue((headers / wanted).exists(), f"{header} includes {wanted}")
        harness.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
        harness.run(["cmake", "--build", build], timeout=600)
        said = harness.run([build / "outside", harness.CENSUS, self.out("run")]).stdout
        self.assertIn("steps 3", said)
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 3)


if __name__ == "__main__":
    harness.main()
