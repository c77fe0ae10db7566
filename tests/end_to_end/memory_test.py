"""Tests that a worker's memory does not grow with the tables: rows are only on servers."""
import os
import pathlib
import shutil
import subprocess

import harness


class Memory(harness.Case):
    def peak_mib(self, pid_file):
        """VmHWM of the process while it runs; 0 when it has ended."""
        try:
            status = pathlib.Path(f"/proc/{int(pid_file.read_text())}/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) / 1024
        except (OSError, ValueError, IndexError):
            return 0

    def test_worker_beside_a_large_table(self):
        """Nearly 4 GiB of rows and state at two servers; no worker takes more than 300 MiB."""
        data = self.out("data")
        harness.generate(data, rows=40960, eval_rows=64, vocabulary=1000000, zipf=0.1, seed=2)
        job = harness.reference_job(data, batch_size=512, eval_each_epoch=False)
        job["data"]["shuffle_rows"] = 4096
        job["model"].update(embedding_dim=320, hidden=[4], wide_features=["C1"])
        job["cluster"] = {"dead_after_ms": 60000}
        out = self.out("run")
        process = subprocess.Popen(
            [str(harness.ROOT / "scripts/local_cluster.sh"), "--set=checkpoint.keep=1",
             f"--job={harness.write_job(self.out('job.json'), job)}", f"--out={out}", "--servers=2",
             "--workers=2"], env={**os.environ, "HDPS_BIN": str(harness.BIN)}, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        peaks = {}

        def ended():
            for name in ("worker_0", "worker_1", "server_0", "server_1"):
                peaks[name] = max(peaks.get(name, 0), self.peak_mib(out / "pid" / f"{name}.pid"))
            return process.poll() is not None

        harness.wait_until(ended, 280, "the end of the job")
        self.assertEqual(process.returncode, 0, process.stderr.read())
        process.stderr.close()
        servers = peaks["server_0"] + peaks["server_1"]
        harness.figure(f"servers {servers:,.0f} MiB, workers {peaks['worker_0']:.0f} and "
                       f"{peaks['worker_1']:.0f} MiB at most")
        self.assertGreater(servers, 3500)
        for name in ("worker_0", "worker_1"):
            self.assertGreater(peaks[name], 0)
            self.assertLessEqual(peaks[name], 300)

    @harness.at_night
    def test_one_server_with_more_than_2_to_the_31_bytes(self):
        """3 GiB of weights, and more than 2^31 floats with Adam's state, at one server: its rows are those of two
        servers with half of it each, and its checkpoint loads. Where a position had 31 or 32 bits, rows would differ."""
        rows, dim = 65536, 512
        data = self.out("data")
        harness.generate(data, rows=rows, eval_rows=64, vocabulary=1000000, zipf=0.1, seed=3)
        job = harness.reference_job(data, batch_size=1024, eval_each_epoch=False)
        job["data"]["shuffle_rows"] = 4096
        job["model"].update(embedding_dim=dim, hidden=[4], wide_features=["C1"])
        job["cluster"] = {"dead_after_ms": 60000}
        job["checkpoint"] = {"keep": 1}
        path = harness.write_job(self.out("job.json"), job)
        one = harness.train(path, self.out("one"), servers=1, timeout=1200)
        weights = (one["rows"] - rows) * dim  # At most one row of the wide table for each row of data.
        harness.figure(f"{one['rows']:,} rows: weights of {4 * weights / 2**30:.2f} GiB, {3 * weights / 2**31:.2f} x "
                       "2^31 floats with their state, at one server")
        self.assertGreater(4 * weights, 3 * 2**30)
        self.assertGreater(3 * weights, 2**31)
        loaded = harness.train(path, self.out("one"), servers=2, timeout=1200)
        self.assertEqual(loaded["digest"], one["digest"])
        shutil.rmtree(self.out("one"))
        two = harness.train(path, self.out("two"), servers=2, timeout=1200)
        self.assertEqual(two["digest"], one["digest"])


if __name__ == "__main__":
    harness.main()
