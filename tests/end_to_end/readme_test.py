"""Every command of README.md is run, every link leads somewhere, and its job file is a job."""
import json
import os
import re
import subprocess

import harness

README = (harness.ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


class Readme(harness.Case):
    def setUp(self):
        super().setUp()
        # A folder that looks like the project's root, so that `out/` lands in the test's own.
        for name in ("examples", "scripts", "docs"):
            os.symlink(harness.ROOT / name, self.folder / name)
        (self.folder / "build").mkdir()
        os.symlink(harness.BIN, self.folder / "build" / "bin")

    def shell(self, text):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "HDPS_BIN": str(harness.BIN)})
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
        return done.stdout

    def test_commands(self):
        found = blocks("sh")
        self.assertGreaterEqual(len(found), 7)
        for block in found:
            # This test is one of test.sh's: there it only lists them. What is built is built.
            block = block.replace("scripts/test.sh ", "scripts/test.sh -N ")
            if "build.sh" in block or "test.sh" in block:
                if harness.BIN != harness.ROOT / "build" / "bin":
                    continue
            print(f"$ {block.strip().splitlines()[0]}")
            self.shell(block)

    def test_links(self):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
            self.assertTrue((harness.ROOT / target).exists(), f"README.md links to {target}")

    def test_job_file(self):
        (text,) = blocks("json")
        for file in json.loads(text)["data"]["train"] + json.loads(text)["data"]["eval"]:
            (self.folder / file).write_text("")
        job = self.folder / "job.json"
        job.write_text(text)
        printed = self.shell(f"build/bin/hdps train --job={job} --out=out --print_config")
        again = self.folder / "again.json"
        again.write_text(printed)
        self.assertEqual(self.shell(f"build/bin/hdps train --job={again} --out=out --print_config"),
                         printed)


if __name__ == "__main__":
    harness.main()
