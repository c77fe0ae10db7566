"""Tests that the memory of a program whose model is its own does not grow with the tables: rows are only on servers."""
import importlib.util
import sys
import unittest

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"

# Each step takes the next keys of the vocabulary, so that all have rows at the end.
PROGRAM = """
import array, resource, sys, hdps
STEPS, KEYS, DIM = 250, 2048, 16
vocabulary = int(sys.argv[2])
gradients = memoryview(bytes(4 * KEYS * DIM)).cast("f", [KEYS, DIM])
with hdps.join(sys.argv[1], threads=1) as worker:
    for step in range(STEPS):
        keys = array.array("Q", (i % vocabulary for i in range(step * KEYS, (step + 1) * KEYS)))
        worker.push(worker.pull("words", keys), gradients)
        worker.advance(KEYS)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@unittest.skipIf(why, why)
class ProgramMemory(harness.DaemonsCase):
    def peak_kib(self, name, vocabulary):
        """That of a program whose model is its own, and the number of rows that the server had at its end."""
        job = harness.write_job(self.out(f"{name}.json"), {"model": {"type": "tables", "tables": [
            {"name": "words", "dim": 16, "optimizer": {"kind": "adagrad"}}]}})
        out, address = self.out(name), self.out(f"{name}.address")
        scheduler = self.start("hdps-scheduler", f"--job={job}", f"--out={out}", "--servers=1", "--workers=1",
                               "--listen=tcp://127.0.0.1:0", f"--address_file={address}")
        harness.wait_until(address.exists, 20, "the scheduler's address")
        self.start("hdps-server", f"--job={job}", f"--scheduler={address.read_text().strip()}", "--threads=1")
        done = harness.run([sys.executable, "-c", PROGRAM, address.read_text().strip(), vocabulary])
        self.assertEqual(scheduler.wait(60), 0)
        return int(done.stdout), harness.summary_of(out)["rows"]

    def test_a_vocabulary_ten_times_as_large(self):
        """The program that pulls and pushes has the same memory beside ten times the rows, within 1 %."""
        # The least of three, because threads and the allocator add a random part.
        small, few = min(self.peak_kib(f"small_{i}", 50_000) for i in range(3))
        large, many = min(self.peak_kib(f"large_{i}", 500_000) for i in range(3))
        harness.figure(f"{few:,} and {many:,} rows at the server, {small / 1024:.1f} and {large / 1024:.1f} MiB "
                       f"at the program: {100 * (large / small - 1):+.2f} %")
        self.assertEqual(many - few, 450_000)
        self.assertLess(large, 1.01 * small)


if __name__ == "__main__":
    harness.main()
