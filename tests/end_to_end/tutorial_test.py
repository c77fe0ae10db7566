"""Every command of docs/tutorial.md is run in an empty folder, and leaves what the page says; its seconds are printed."""
import json
import re

import harness
import pages

# The page promises 15 minutes, of which the build takes most.
SECONDS_MAX = 300


class Tutorial(pages.Case):
    def test_commands(self):
        seconds = self.run_commands(pages.TUTORIAL, 8)
        harness.figure(f"the tutorial's commands without the build: {seconds:.0f} s")
        self.assertLess(seconds, SECONDS_MAX)
        out = self.folder / "out"
        runs = {name: harness.summary_of(out / name)
                for name in ("run", "dropout", "cluster", "two", "hand", "stopped")}
        self.assertEqual(runs["cluster"]["digest"], runs["two"]["digest"])
        self.assertEqual(runs["hand"]["digest"], runs["two"]["digest"])
        self.assertGreater(runs["stopped"]["resumed_from"], 0)
        self.assertGreater(runs["dropout"]["best_auc"], runs["run"]["best_auc"])
        self.assertIsNotNone(runs["run"]["stopped_early"])
        rows = (out / "eval.csv").read_text().splitlines()[1:]
        self.assertEqual(len((out / "predictions.txt").read_text().splitlines()), len(rows))
        json.loads((out / "whole_job.json").read_text())
        self.assertIn("</html>", (out / "both.html").read_text())

    def test_figures(self):
        """What the page prints is what a run prints, but for the last digits."""
        page = pages.TUTORIAL.read_text()
        self.shell("\n".join(pages.blocks(pages.TUTORIAL, "sh")[1:3]))
        self.assertIn("\n".join((self.folder / "out/train.csv").read_text().splitlines()[:3]), page)
        summary = harness.train(self.folder / "out/job/job.json", self.folder / "out/run")
        told = re.search(r"best +step \d+, AUC ([\d.]+)", page)
        self.assertAlmostEqual(summary["best_auc"], float(told[1]), delta=0.002)


if __name__ == "__main__":
    harness.main()
