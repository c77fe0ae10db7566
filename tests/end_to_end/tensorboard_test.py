"""Tests --tensorboard: what TensorBoard's own package reads of runs, also of files that are cut off anywhere."""
import json
import subprocess
import unittest

import harness

# Programs for the Python that has TensorBoard's package; each prints JSON.
READ_FOLDER = r"""
import json, sys
from tensorboard.backend.event_processing import event_accumulator
read = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
read.Reload()
print(json.dumps({
    "scalars": {tag: [[p.step, p.value] for p in read.Scalars(tag)] for tag in read.Tags()["scalars"]},
    "texts": {tag: read.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in read.Tags()["tensors"]},
    "about": {tag: read.SummaryMetadata(tag).summary_description for tag in read.Tags()["scalars"]}}))
"""
# Cuts the file at every byte, shortest first, and counts the events that are read.
READ_CUTS = r"""
import json, sys
from tensorboard.backend.event_processing import event_file_loader
whole = open(sys.argv[1], "rb").read()
counts = []
for cut in range(len(whole) + 1):
    with open(sys.argv[2], "wb") as file:
        file.write(whole[:cut])
    counts.append(sum(1 for _ in event_file_loader.RawEventFileLoader(sys.argv[2]).Load()))
print(json.dumps(counts))
"""


def ends_of_records(content):
    """The offsets behind each whole record."""
    ends, at = [], 0
    while at + 12 <= len(content):
        at += 12 + int.from_bytes(content[at:at + 8], "little") + 4
        ends.append(at)
    return ends


class TensorBoard(harness.Case):
    @classmethod
    def setUpClass(cls):
        said = harness.run([harness.program("hdps"), "train", f"--job={harness.CENSUS}", "--out=", "--tensorboard"],
                           expect=None).stderr
        if "this build of hdps lacks it" in said:
            raise unittest.SkipTest("hdps was built without TensorBoard's files (scripts/install_deps.sh --tensorboard)")

    def python(self):
        python = harness.python_with("tensorboard_python", ["tensorboard==2.21.0", "setuptools<81"])
        if python is None:
            self.skipTest("TensorBoard's package cannot be installed here")
        return python

    def read(self, program, *arguments):
        return json.loads(harness.run([self.python(), "-c", program, *arguments]).stdout)

    def files_of(self, out):
        return sorted((out / "tensorboard").iterdir())

    def test_a_run_and_its_resumption_are_read_by_tensorboard(self):
        """Every point of metrics.jsonl and no other; each file is readable up to any byte at which it is cut off."""
        self.python()
        out = self.out("run")
        for epochs in (1, 2):
            harness.train(harness.CENSUS, out, sets={"train.epochs": epochs},
                          extra=["--tensorboard", *(["--resume=changed"] if epochs > 1 else [])])
        files = self.files_of(out)
        self.assertEqual(len(files), 2, "a resumed run goes on in a new file")
        seen = self.read(READ_FOLDER, out / "tensorboard")
        wanted = {}
        for line in (out / "metrics.jsonl").read_text().splitlines():
            entry = json.loads(line)
            figures = {"training_loss": entry.get("train_loss"), "learning_rate": entry.get("learning_rate"),
                       "examples_per_second": entry.get("examples_per_second")}
            for metric, value in entry.get("eval_metrics", {}).items():
                figures[f"evaluation/{metric}"] = value
            for tag, value in figures.items():
                if value is not None:
                    wanted.setdefault(tag, []).append([entry["step"], value])
        self.assertIn("evaluation/auc", wanted)
        self.assertEqual(set(seen["scalars"]), set(wanted))
        for tag, points in wanted.items():
            self.assertEqual([step for step, _ in seen["scalars"][tag]], [step for step, _ in points], tag)
            for (_, told), (_, value) in zip(seen["scalars"][tag], points):
                self.assertLessEqual(abs(told - value), abs(value) * 2**-24, tag)  # It has single precision.
        self.assertEqual(seen["about"]["evaluation/auc"], "Figures of the last evaluation of each set")
        settings = seen["texts"]["settings"]
        self.assertTrue(settings.startswith("```json\n") and settings.endswith("\n```\n"), settings[:100])
        self.assertEqual(json.loads(settings[8:-5]), json.loads((out / "job_as_run.json").read_text()))
        content = files[-1].read_bytes()
        ends = ends_of_records(content)
        counts = self.read(READ_CUTS, files[-1], self.out("events.out.tfevents.cut"))
        self.assertEqual(counts, [sum(end <= cut for end in ends) for cut in range(len(content) + 1)])
        harness.figure(f"TensorBoard reads {sum(map(len, wanted.values()))} points of {len(wanted)} curves in 2 files, "
                       f"and of {len(counts)} cuts of one always the whole records")

    def test_it_changes_nothing_else(self):
        plain = harness.train(harness.CENSUS, self.out("plain"), sets={"train.epochs": 1})
        told = harness.cluster(harness.CENSUS, self.out("told"), sets={"train.epochs": 1}, extra=["--tensorboard"])
        self.assertEqual(told["digest"], plain["digest"])
        self.assertEqual(len(self.files_of(self.out("told"))), 1)
        self.assertFalse((self.out("plain") / "tensorboard").exists())

    def test_a_folder_that_cannot_be_written_is_said_and_stops_nothing(self):
        out = self.out("run")
        out.mkdir()
        (out / "tensorboard").write_text("a file is in the way")
        done = subprocess.run([harness.program("hdps"), "train", f"--job={harness.CENSUS}", f"--out={out}",
                               "--set=train.epochs=1", "--tensorboard"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("TensorBoard's file is not written while this lasts: "), 1, done.stderr)
        self.assertIn("tensorboard", done.stderr)


if __name__ == "__main__":
    harness.main()
