"""The scripts that judge a run of the tests: what they say of it, and where they write it."""
import re
import sys
import xml.etree.ElementTree

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
