"""Asks running jobs from Python: their state, what they wait for, and rows of their servers."""
import importlib.util
import signal
import subprocess
import unittest

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps

BATCH, STEPS, SETTLED = 64, 400, 20
EARLY = ["7", "eight", "ten"]  # Values of the first batch alone: their rows are final after its step.


def job_in(folder, slice_mode):
    rows = [f"{i % 2},{EARLY[i % 3]},first" for i in range(BATCH)]
    rows += [f"{i % 2},later {i % 50},{i % 7}" for i in range(BATCH * (STEPS - 1))]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    columns = [{"name": "y", "type": "label"}, {"name": "shop"}, {"name": "day"}]
    return {"name": "running", "seed": 3, "data": {"train": ["rows.csv"], "columns": columns, "shuffle_rows": 0},
            "model": {"type": "wide_deep", "embedding_dim": 8, "hidden": [4], "slice_mode": slice_mode},
            "train": {"batch_size": BATCH, "epochs": 1}, "checkpoint": {"keep": 1},
            "cluster": {"heartbeat_ms": 100, "dead_after_ms": 60000}}


@unittest.skipIf(why, why)
class Connection(harness.DaemonsCase):
    def start_scheduler(self, job, *flags, servers=2):
        address = self.out("address")
        self.start("hdps-scheduler", f"--job={job}", f"--out={self.out('run')}", f"--servers={servers}",
                   f"--address_file={address}", *flags, stderr=subprocess.DEVNULL)
        harness.wait_until(address.exists, 30, "the scheduler's address")
        return address.read_text().strip()

    def check_rows(self, slice_mode, keys=None):
        """Rows of a job that stands still are those of its last checkpoint, if no later step changes them."""
        job = harness.write_job(self.out("job.json"), job_in(self.folder, slice_mode))
        common = [f"--job={job}"]
        if keys:
            harness.run([harness.program("hdps"), "keygen", f"--out={keys}"])
            common.append(f"--keys={keys}")
        address = self.start_scheduler(job, "--listen=tcp://127.0.0.1:0", *common[1:])
        connection = hdps.connect(address, keys)
        with self.assertRaisesRegex(hdps.RunError, "no rows yet"):
            connection.lookup("deep", keys=[1])
        members = [self.start(name, *common, f"--scheduler={address}", stderr=subprocess.DEVNULL)
                   for name in ("hdps-server", "hdps-server", "hdps-worker")]
        harness.wait_until(lambda: connection.status()["step"] >= SETTLED, 60, "some steps")
        members[-1].send_signal(signal.SIGSTOP)
        told = {table: connection.lookup(table, feature="shop", values=EARLY + ["nowhere"])
                for table in ("wide", "deep")}
        many = connection.lookup("deep", feature="shop", values=[f"none {i}" for i in range(6000)])
        by_key = None
        if slice_mode != "field_slice":
            by_key = connection.lookup("deep", keys=[1, 2**64 - 1, -1])
        else:
            with self.assertRaisesRegex(hdps.JobError, "cut by feature"):
                connection.lookup("deep", keys=[1])
        for table, error, needle, wanted in (
                ("dep", hdps.JobError, 'did you mean "deep"', {"keys": [1]}),
                ("deep", TypeError, "keys=", {}),
                ("deep", hdps.JobError, "no feature", {"feature": "shops", "values": [1]})):
            with self.assertRaisesRegex(error, needle):
                connection.lookup(table, **wanted)
        members[-1].send_signal(signal.SIGCONT)
        for member in members:
            self.assertEqual(member.wait(120), 0)
        model = hdps.Model.open(self.out("run"))
        self.assertGreater(model.step, SETTLED)
        for table, rows in told.items():
            expected = model.lookup(table, feature="shop", values=EARLY + ["nowhere"])
            self.assertEqual((rows.shape, rows.dtype), (expected.shape, expected.dtype))
            self.assertEqual(rows.tolist(), expected.tolist(), table)
            self.assertTrue(model.contains(table, feature="shop", values=EARLY))
        self.assertEqual(many.tolist(),
                         model.lookup("deep", feature="shop", values=[f"none {i}" for i in range(6000)]).tolist())
        if by_key is not None:
            self.assertEqual(by_key.tolist(), model.lookup("deep", keys=[1, 2**64 - 1, -1]).tolist())
            self.assertEqual(by_key.tolist()[1], by_key.tolist()[2])

    def test_rows_without_keys(self):
        self.check_rows("field_slice")

    def test_rows_with_keys(self):
        self.check_rows("table_column_slice", self.out("keys"))

    def test_rows_of_hashed_keys(self):
        self.check_rows("batch_slice", self.out("keys"))

    def test_without_keys_rows_stay_on_their_machine(self):
        job = harness.write_job(self.out("job.json"), job_in(self.folder, "batch_slice"))
        address = self.start_scheduler(job, "--listen=tcp://0.0.0.0:0", "--insecure")
        connection = hdps.connect("tcp://127.0.0.1:" + address.rsplit(":", 1)[1])
        self.assertEqual(connection.status()["job"], "running")
        with self.assertRaisesRegex(hdps.JobError, "without keys.*hdps keygen"):
            connection.lookup("deep", keys=[1])


if __name__ == "__main__":
    harness.main()
