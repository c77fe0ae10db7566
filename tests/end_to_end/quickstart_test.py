"""Tests what the quickstart removes and builds, and a later build in its folder. Builds no program."""
import os
import shutil
import subprocess

import harness

TOLD = "#!/bin/sh\necho \"$(basename \"$0\")\" \"$@\" >>\"$TOLD\"\nexit {}\n"
ENDS_HERE = 7  # The status of the stand-in for the build: nothing behind it is run.


class Quickstart(harness.Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.told = self.folder / "told"
        (self.root / "scripts").mkdir(parents=True)
        (self.folder / "path").mkdir()
        shutil.copy(harness.ROOT / "scripts" / "quickstart.sh", self.root / "scripts")
        self.stand_in(self.root / "scripts" / "install_deps.sh", 0)
        self.stand_in(self.root / "scripts" / "build.sh", ENDS_HERE)

    def stand_in(self, path, status):
        path.write_text(TOLD.format(status))
        path.chmod(0o755)

    def run_script(self, name, *words):
        self.told.unlink(missing_ok=True)
        path = f"{self.folder / 'path'}:{os.environ['PATH']}"
        done = subprocess.run(["bash", self.root / "scripts" / name, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "TOLD": str(self.told), "PATH": path})
        return done, self.told.read_text() if self.told.exists() else ""

    def test_builds_the_programs_and_says_what_it_leaves_out(self):
        done, told = self.run_script("quickstart.sh", "--cuda=off")
        self.assertEqual(done.returncode, ENDS_HERE)
        self.assertIn("build.sh release -DHDPS_CUDA=OFF hdps hdps-scheduler hdps-server hdps-worker\n", told)
        self.assertIn("without device code", done.stdout)
        self.assertRegex(done.stdout, rf"about \d+ minutes the first time on {os.cpu_count()} quiet cores")

    def test_removes_only_what_an_earlier_run_left(self):
        foreign = {"a file": ["thesis.tex"], "its name alone": ["embedded/mine.c"],
                   "beside a run": ["embedded/summary.json", "cluster/summary.json", "notes"]}
        for what, files in foreign.items():
            with self.subTest(what):
                folder = self.folder / what
                for file in files:
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    (folder / file).write_text("mine")
                done, told = self.run_script("quickstart.sh", folder)
                self.assertEqual((done.returncode, told), (2, ""))
                self.assertIn("name another folder or remove it", done.stderr)
                for file in files:
                    self.assertEqual((folder / file).read_text(), "mine")
        earlier = self.folder / "earlier"
        for form in ("embedded", "cluster"):
            (earlier / form).mkdir(parents=True)
            (earlier / form / "summary.json").write_text("{}")
        self.assertEqual(self.run_script("quickstart.sh", earlier)[0].returncode, ENDS_HERE)
        self.assertEqual(list(earlier.iterdir()), [])
        self.assertEqual(self.run_script("quickstart.sh", earlier)[0].returncode, ENDS_HERE, "an empty one")

    def test_a_later_build_brings_device_code(self):
        shutil.copy(harness.ROOT / "scripts" / "build.sh", self.root / "scripts")
        for program in ("cmake", "ninja"):
            self.stand_in(self.folder / "path" / program, 0)
        build = self.root / "build"
        build.mkdir()
        (build / "build.ninja").write_text("")
        (build / "CMakeCache.txt").write_text("HDPS_CUDA:BOOL=OFF\nHDPS_CUDA_ARCHITECTURES:STRING=80;90\n")
        without, told = self.run_script("build.sh", "release", "-DHDPS_CUDA=OFF", "hdps")
        self.assertEqual((without.stdout, told), ("", "ninja -C build hdps\n"))
        done, told = self.run_script("build.sh", "release")
        self.assertEqual(done.stdout, "build.sh: build/ is configured anew: HDPS_CUDA=ON, not OFF\n")
        self.assertIn("cmake --preset release -DHDPS_CUDA=ON", told)


if __name__ == "__main__":
    harness.main()
