"""The scripts that judge a run of the tests: what they say of it, and where they write it."""
import re
import sys

import harness

DEV = harness.ROOT / "scripts" / "dev"
REPORT = """<testsuite>
  <testcase name="A.Runs" status="run"><system-out>figure: 3 apples</system-out></testcase>
  <testcase name="B.OnGpu" status="notrun"><skipped message="x"/>
    <system-out>no CUDA device found (driver: none)</system-out></testcase>
  <testcase name="c_test.avx512" status="notrun"><skipped message="x"/>
    <system-out>skipped: this machine has no avx512 vectors, only avx2</system-out></testcase>
</testsuite>
"""


class DevScripts(harness.Case):
    def test_summary_names_what_did_not_run(self):
        report = self.out("results.xml")
        report.write_text(REPORT)
        said = harness.run([sys.executable, DEV / "test_summary.py", report]).stdout
        self.assertIn("A.Runs: 3 apples", said)
        self.assertIn("Nothing ran on a GPU: 1 tests need one and were skipped:\n  B.OnGpu\n", said)
        self.assertIn("Skipped: c_test.avx512: this machine has no avx512 vectors, only avx2", said)

    def test_night_records_its_result_in_its_page(self):
        page, report = self.out("night.md"), self.out("results.xml")
        page.write_text((harness.ROOT / "docs" / "night.md").read_text())
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

    def test_a_header_that_leans_on_another_is_noticed(self):
        harness.run([sys.executable, DEV / "headers_alone.py", "--self-test"])


if __name__ == "__main__":
    harness.main()
