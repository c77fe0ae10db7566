"""Moves half of the rows to a server that is added during training, and measures the pause, beside a plain
copy of as many bytes through the same files."""
import os
import pathlib
import re
import subprocess
import tempfile
import time

import harness

# MiB of rows that move; scripts/night.sh moves a GiB.
WHOLE_MIB = 1024
MOVED_MIB = harness.asked("HDPS_MOVED_MIB", 32, WHOLE_MIB, "MiB of rows to move")
COPIES_MAX = 2  # Plain copies of the same bytes that take as long as the pause may.
DIM = 128
ROW_BYTES = 8 + 2 * 4 * DIM  # A key, weights, and as much state.


def plain_copy(folder, data_bytes, files=16):
    """Seconds to write and sync, and to read, so many bytes in files of `folder`."""
    data = bytes(data_bytes // files)
    began = time.monotonic()
    for i in range(files):
        with open(folder / f"copy_{i}", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    written = time.monotonic()
    for i in range(files):
        with open(folder / f"copy_{i}", "rb") as file:
            while file.read(1 << 20):
                pass
        (folder / f"copy_{i}").unlink()
    return written - began, time.monotonic() - written


class Moves(harness.Case):
    def move(self, where):
        """Trains on one server until every row is there, adds another; what the change is reported as."""
        keys = 2 * MOVED_MIB * (1 << 20) // ROW_BYTES
        rows = max(keys // 16, 8192)
        data = where / "data"
        harness.generate(data, rows=rows, eval_rows=64, vocabulary=keys // 16, zipf=0, seed=3)
        job = harness.reference_job(data, epochs=40, eval_each_epoch=False, batch_size=2048)
        job["model"].update({"embedding_dim": DIM, "hidden": [8]})
        job["model"]["deep_optimizer"] = {"kind": "adagrad", "learning_rate": 0.01}
        job["data"]["shuffle_rows"] = 1024
        job["checkpoint"] = {"keep": 1}
        path = harness.write_job(where / "job.json", job)
        out = where / "out"
        (out / "log").mkdir(parents=True)
        processes = {}

        def start(name, *flags):
            log = open(out / "log" / f"{name}.err", "w")
            self.addCleanup(log.close)
            processes[name] = subprocess.Popen(
                [harness.program("hdps-" + name.split("_")[0]), f"--job={path}",
                 f"--log_file={out}/log/{name}.log", *flags], stdout=log, stderr=log)
            self.addCleanup(processes[name].wait)
            self.addCleanup(processes[name].kill)

        start("scheduler", f"--out={out}", "--listen=tcp://127.0.0.1:0", f"--address_file={out}/address",
              "--servers=1", "--workers=1")
        harness.wait_until((out / "address").exists, 60, "the scheduler listens")
        address = f"--scheduler={(out / 'address').read_text().strip()}"
        start("server_0", address)
        start("worker_0", address)

        def reported(pattern):
            metrics = out / "metrics.jsonl"
            return re.findall(pattern, metrics.read_text()) if metrics.exists() else []
        first_epoch = -(-rows // 2048)
        harness.wait_until(lambda: max(map(int, reported(r'"step": ?(\d+)')), default=0) > first_epoch, 600,
                           "every row has been trained on")
        harness.run([harness.program("hdps"), "scale", address, "--scale_servers=+1"])
        start("server_1", address)
        harness.wait_until(lambda: reported(r'"rows_moved": ?\d+'), 300, "the rows have moved")
        harness.run([harness.program("hdps"), "status", address])  # It goes on.
        return {name: float(reported(rf'"{name}": ?([\d.]+)')[0])
                for name in ("shards_moved", "rows_moved", "bytes_moved", "stood_seconds")}

    def show(self, kind, where):
        moved = self.move(where)
        mib = moved["bytes_moved"] / (1 << 20)
        write, read = plain_copy(where, int(moved["bytes_moved"]))
        harness.figure(f"{kind}: {moved['shards_moved']:.0f} shards, {moved['rows_moved']:,.0f} rows, {mib:.0f} MiB "
                       f"moved, the job stood for {moved['stood_seconds']:.2f} s; plainly written, synced and read: "
                       f"{write:.2f} + {read:.2f} s")
        self.assertGreater(mib, 0.9 * MOVED_MIB)
        if MOVED_MIB >= WHOLE_MIB:  # Of fewer bytes the messages of a change take a share of the pause.
            self.assertLess(moved["stood_seconds"], COPIES_MAX * (write + read))

    def test_on_disk(self):
        self.show("disk", self.out("disk"))

    def test_in_memory(self):
        """Files of a tmpfs: what is left is what the processor does."""
        with tempfile.TemporaryDirectory(prefix="hdps_moves_", dir="/dev/shm") as folder:
            self.show("tmpfs", pathlib.Path(folder))


if __name__ == "__main__":
    harness.main()
