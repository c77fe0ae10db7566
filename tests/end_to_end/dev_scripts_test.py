"""Tests the scripts that evaluate a run of the tests: their output, and the pages they write."""
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import harness

DEV = harness.ROOT / "scripts" / "dev"
sys.path.insert(0, str(DEV))
import test_summary  # noqa: E402  (it lies in another folder)

REPORT = """<testsuite>
  <testcase name="A.Runs" status="run" time="3.2"><system-out>figure: 3 apples</system-out></testcase>
  <testcase name="B.OnGpu" status="notrun"><skipped message="x"/>
    <system-out>no CUDA device found (driver: none)</system-out></testcase>
  <testcase name="c_test.avx512" status="notrun"><skipped message="x"/>
    <system-out>skipped: this machine has no avx512 vectors, only avx2</system-out></testcase>
  <testcase name="end_to_end.d" status="run"><system-out>left out: 4 of 5 kills of each kind
test_plain (__main__.D.test_plain) ... ok
test_long (__main__.D.test_long)
What it tells. ... skipped 'of the full tests'
test_far (__main__.D.test_far) ... skipped "there is no 'sshd'"
test_near (__main__.D.test_near)
Of machines. ... skipped "there is no 'sshd'"
</system-out></testcase>
</testsuite>
"""


class DevScripts(harness.Case):
    def test_summary_names_what_did_not_run(self):
        report = self.out("results.xml")
        report.write_text(REPORT)
        said = harness.run([sys.executable, DEV / "test_summary.py", report]).stdout
        self.assertIn("3 s of tests, one behind the other; the longest: A.Runs 3 s, ", said)
        self.assertIn("A.Runs: 3 apples", said)
        self.assertIn("Nothing ran on a GPU: 1 tests need one and were skipped:\n  B.OnGpu\n", said)
        self.assertIn("Left out for what this machine lacks:\n"
                      "  c_test.avx512: this machine has no avx512 vectors, only avx2\n"
                      "  end_to_end.d: test_far, test_near: there is no 'sshd'\n", said)
        self.assertRegex(said, r"scripts/test.sh --full.*\n  end_to_end.d: 4 of 5 kills of each kind; test_long\n$")

    def test_what_is_left_out_is_said(self):
        """A test of the full ones and a share of another, by the harness and by Python's own words."""
        (self.out("some_test.py")).write_text(
            f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport harness, unittest\n"
            "N = harness.asked('N', 2, 5, 'plums')\n"
            "class A(harness.Case):\n"
            "    @harness.at_night\n    def test_a(self):\n        'What.'\n"
            "    @unittest.skipIf(True, 'no moon here')\n    def test_b(self):\n        pass\n"
            "@harness.at_night\nclass B(harness.Case):\n    def test_c(self):\n        pass\n"
            "harness.main()\n")
        env = {name: value for name, value in os.environ.items() if name != "HDPS_TESTS"}
        for asked, full in (({}, ["3 of 5 plums", "test_a", "test_c"]), ({"N": "2"}, ["test_a", "test_c"]),
                            ({"HDPS_TESTS": "all"}, [])):
            done = subprocess.run([sys.executable, self.out("some_test.py")], env={**env, **asked}, text=True, check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(test_summary.parts_left_out(done.stdout), (full, ["test_b: no moon here"]))

    def test_night_records_its_result_in_its_page(self):
        page, report = self.out("night.md"), self.out("results.xml")
        page.write_text((harness.ROOT / "docs" / "records" / "night.md").read_text())
        report.write_text(REPORT.replace("A.Runs", "end_to_end.failover"))
        for verdict in ("ok", "FAILED"):
            harness.run([sys.executable, DEV / "night_record.py", page, "7 kills", report],
                        input=f"seeds|{verdict}|61\n", cwd=harness.ROOT)
        text = page.read_text()
        self.assertIn("1 minutes; 7 kills.\n", text)
        self.assertIn("\n- 3 apples\n<!--", text)
        self.assertIn("| seeds | FAILED | 61 |", text)
        self.assertNotIn("| seeds | ok | 61 |", text)
        self.assertTrue(re.search(r"commit \w+, \d+ cores of .*, 1 minutes; ", text), text)
        page.write_text("no place for it\n")
        harness.run([sys.executable, DEV / "night_record.py", page, "7 kills"], input="x|ok|1\n", expect=2)

    def test_failed_tests_of_a_step_are_named(self):
        """Two by their own lines, one only by the list at the end; what was skipped is no failure."""
        log = self.out("step.log")
        log.write_text(" 1/4 Test #1: A.Runs ....   Passed    0.10 sec\n"
                       " 2/4 Test #2: end_to_end.b ....***Failed    1.20 sec\nbefore\nAssertionError: 1 != 2\n"
                       " 3/4 Test #3: C.Gpu ....***Skipped   0.00 sec\n"
                       " 3/4 Test #5: E.Ends ....Subprocess aborted***Exception:   8.81 sec\nF1 Check failed\n"
                       "50% tests passed, 2 tests failed out of 4\n"
                       "The following tests did not run:\n\t  3 - C.Gpu (Skipped)\n"
                       "The following tests FAILED:\n\t  2 - end_to_end.b (Failed)\n"
                       "\t  5 - E.Ends (Subprocess aborted)\n\t  4 - D.Long (Timeout)\n")
        said = harness.run([sys.executable, DEV / "failed_step.py", "--names", log]).stdout
        self.assertEqual(said, "  end_to_end.b: Failed: AssertionError: 1 != 2\n"
                         "  E.Ends: Subprocess aborted, Exception: F1 Check failed\n  D.Long: Timeout: see the whole log\n")

    def test_inputs_of_a_fuzzer_are_packed_and_unpacked(self):
        inputs = {b"", b"\n", b"\\x41", bytes(range(256)), '{"ä": 1}'.encode(), b"plain"}
        files, tool = self.out("files"), DEV / "fuzz_corpus.py"
        files.mkdir()
        for number, data in enumerate(inputs):
            (files / str(number)).write_bytes(data)
        packed, new = self.out("packed"), self.out("new")
        harness.run([tool, "pack", packed, files])
        self.assertEqual(len(packed.read_bytes().splitlines()), len(inputs))
        new.write_bytes(b"\x00new")
        harness.run([tool, "add", packed, new, new])
        harness.run([tool, "unpack", packed, self.out("back")])
        self.assertEqual(sorted(file.read_bytes() for file in self.out("back").iterdir()), sorted(inputs | {b"\x00new"}))
        packed.write_bytes(b"\\n\n")
        self.assertIn("no line of a corpus", harness.run([tool, "unpack", packed, self.out("back")], expect=1).stderr)

    def test_the_end_of_a_log_tells_what_failed(self):
        tests = self.out("tests")
        tests.mkdir()
        (tests / "c.py").write_text("for i in range(60): print('line', i, flush=True)\nraise ValueError('3 of 4')\n")
        (tests / "CTestTestfile.cmake").write_text(
            'add_test(a.passes true)\nadd_test(b.is_skipped sh -c "exit 77")\n'
            'set_tests_properties(b.is_skipped PROPERTIES SKIP_RETURN_CODE 77)\n'
            f'add_test(c.fails "{sys.executable}" "{tests}/c.py")\nadd_test(d.is_missing /no/such/program)\n'
            'add_test(e.takes_too_long sleep 60)\nset_tests_properties(e.takes_too_long PROPERTIES TIMEOUT 1)\n')
        script = (f"STEP_LOGS={self.out('steps')}; . scripts/dev/gates.sh; step 'good one' echo well\n"
                  f"step 'build and tests' ctest --test-dir {tests} --output-on-failure -j 2\n"
                  "step 'format' sh -c 'echo x.cc:3 is badly formed >&2; exit 1'\nfinish\n")
        said = harness.run(["bash", "-uo", "pipefail", "-c", script], cwd=harness.ROOT, expect=1).stdout
        summary, names = said[said.index("=== build and tests FAILED with"):].split("s in all\n")
        self.assertIn("line 59", summary)
        self.assertNotIn("line 5\n", summary, "the end of it alone")
        self.assertIn("ValueError: 3 of 4", summary)
        self.assertIn("=== format FAILED with\nx.cc:3 is badly formed\n", summary)
        lines = names.splitlines()
        self.assertEqual([lines[0], lines[-1]], ["=== FAILED: build and tests", "=== FAILED: format"])
        for line in ("  c.fails: Failed: ValueError: 3 of 4", "  d.is_missing: Not Run: ",
                     "  e.takes_too_long: Timeout: "):
            self.assertIn(line, names)
        self.assertEqual(len(lines), 5, names)
        passed = harness.run(["bash", "-uo", "pipefail", "-c", script.split("\n")[0] + "\nfinish"], cwd=harness.ROOT)
        self.assertTrue(passed.stdout.endswith("=== all gates passed\n"))

    def test_gpu_check_without_a_gpu_ends_clearly(self):
        check = DEV / "gpu_check.sh"
        if subprocess.run(["sh", "-c", "command -v nvidia-smi"], capture_output=True).returncode == 0:
            self.skipTest("this machine has a GPU; gpu_check.sh is for it")
        planned = harness.run([check, "--dry_run"], cwd=self.out("")).stdout
        self.assertIn("gpu_check: no GPU here: nvidia-smi", planned)
        self.assertIn("nothing was run", planned)
        steps = [line.split()[0] for line in planned.splitlines() if line.startswith("  ")]
        for step in ("yardsticks", "ref_l_host", "ref_l_hot", "timeline", "pytorch", "two_workers_one_gpu", "memcheck", "racecheck"):
            self.assertIn(step, steps)
        report = self.out("gpu.json")
        said = harness.run([check, report], expect=3).stdout
        self.assertIn("gpu_check: no GPU found: nvidia-smi", said)
        self.assertIn("REF-L with host tables: not measured", said)
        written = json.loads(report.read_text())
        self.assertEqual(list(written["steps"]), steps)
        self.assertTrue(all(row["verdict"] == "not measured" for row in written["goals"]))
        harness.figure(f"gpu_check without a GPU: {len(steps)} steps planned, none run, "
                       f"{len(written['goals'])} goals not measured")

    def test_hidden_copies_reads_the_trace_of_a_run(self):
        trace = self.out("trace.json")
        harness.run([harness.program("hdps"), "train", f"--job={harness.CENSUS}", f"--out={self.out('run')}",
                     f"--trace={trace}", "--set=train.max_steps=10"])
        said = harness.run([sys.executable, DEV / "hidden_copies.py", trace], expect=2).stderr
        self.assertIn("has no copies of a device; train with --set=model.device=cuda", said)
        trace.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "name": name, "pid": 0, "tid": 1, "ts": ts, "dur": 100}
            for name, ts in (("copy up", 0), ("compute", 25))]}))
        said = harness.run([sys.executable, DEV / "hidden_copies.py", trace]).stdout
        self.assertIn("copies hidden under compute: 75.0 % of 0.10 ms", said)

    def test_a_picture_of_a_terminal_holds_its_text(self):
        text = "$ hdps doctor\nFAULT    disk  <full> & slow\n" + "word " * 40
        drawn = harness.run([sys.executable, DEV / "terminal_picture.py", "--columns=60", "hdps doctor"],
                            input=text).stdout
        rows = ["".join(row.itertext()).replace("\u00a0", " ")
                for row in xml.etree.ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(rows[:3], ["hdps doctor", "$ hdps doctor", "FAULT    disk  <full> & slow"])
        self.assertEqual(" ".join(rows[3:]), text.splitlines()[2].strip())
        self.assertLessEqual(max(map(len, rows)), 60)

    def test_a_header_that_leans_on_another_is_noticed(self):
        harness.run([sys.executable, DEV / "headers_alone.py", "--self-test"])


if __name__ == "__main__":
    harness.main()
