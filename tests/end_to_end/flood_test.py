#!/usr/bin/env python3
"""Floods a running job with invalid frames, endless requests and silent connections, from strangers and
from holders of a reader's key.

HDPS_FLOOD_SECONDS: length of a flood; a few seconds with every change, 60 at night.
HDPS_FLOOD_PAIRS: runs of each flood, in turns with undisturbed runs.
"""
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import time

import harness
import strangers
from strangers import ANSWERS, FRAMES, OPENED, SILENT, TURNS

SECONDS = int(os.environ.get("HDPS_FLOOD_SECONDS", "5"))
PAIRS = int(os.environ.get("HDPS_FLOOD_PAIRS", "1"))
# What a daemon may take more than undisturbed: as many connections with their buffers, and no more.
MORE_MIB = 64
MORE_MIB_OF_PARTS = 16  # Than undisturbed, of messages that never end.


def resident_mib(process):
    """The most that it has had so far; 0 of one that has ended."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


class Run:
    """A job of three daemons that has ended well: its summary, the most MiB that scheduler and server
    had, and what the flood counted."""

    def __init__(self, test, name, flags, flood=None, opened=SILENT):
        """The worker starts once the flood has opened more than so many connections."""
        self.out, common = test.out(name), [f"--job={test.path}", *flags]
        address = test.out(f"{name}_address")
        daemons = [test.start("hdps-scheduler", *common, f"--out={self.out}", "--listen=tcp://127.0.0.1:0",
                              f"--address_file={address}", f"--log_file={self.out}_scheduler.log")]
        harness.wait_until(address.exists, 30, "the scheduler's address")
        at = address.read_text().strip()
        log = pathlib.Path(f"{self.out}_server.log")
        daemons.append(test.start("hdps-server", *common, f"--scheduler={at}", "--listen=tcp://127.0.0.1:0",
                                  f"--log_file={log}"))

        def listening():
            return log.exists() and re.search(r"listening on tcp://127\.0\.0\.1:(\d+)", log.read_text())

        harness.wait_until(listening, 30, "the server's address")
        ports = [int(at.rsplit(":", 1)[1]), int(listening()[1])]
        stop, self.counts = multiprocessing.Event(), multiprocessing.Array("q", 4)
        begin = time.monotonic()
        if flood is not None:
            target, *args = flood
            flooder = multiprocessing.Process(target=target, args=(ports, *args, stop, self.counts), daemon=True)
            flooder.start()
            harness.wait_until(lambda: self.counts[OPENED] > opened, 60, "connections of strangers")
        worker = test.start("hdps-worker", *common, f"--scheduler={at}")
        self.peaks = [0.0, 0.0]
        while worker.poll() is None:
            self.peaks = [max(peak, resident_mib(process)) for peak, process in zip(self.peaks, daemons)]
            try:
                worker.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
        self.seconds = time.monotonic() - begin
        stop.set()
        for process in (worker, *daemons):
            _, said = process.communicate(timeout=60)
            test.assertEqual(process.returncode, 0, said)
        if flood is not None:
            flooder.join(timeout=30)
        self.summary = harness.summary_of(self.out)
        self.speed = self.summary["examples_per_second"]
        self.log_bytes = sum(pathlib.Path(f"{self.out}_{who}.log").stat().st_size for who in ("scheduler", "server"))


class Flood(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.folder / "data", rows=16384, eval_rows=256, vocabulary=2000, zipf=1.05, seed=5)
        self.job = harness.reference_job(data, batch_size=256, epochs=4, eval_each_epoch=False)
        self.job["cluster"] = {"shards": 1}  # Which is what print_frames asks for rows of.
        self.path = harness.write_job(self.folder / "job.json", self.job)
        # So many epochs as an undisturbed run takes SECONDS for.
        speed = harness.cluster(self.path, self.out("speed"))["examples_per_second"]
        self.job["train"]["epochs"] = max(4, int(SECONDS * speed / 16384))
        self.path = harness.write_job(self.folder / "job.json", self.job)

    def in_turns(self, flags, floods):
        """PAIRS times an undisturbed run and one under each flood; what each costs is a figure."""
        runs = {kind: [] for kind in floods}
        plain = []
        for turn in range(PAIRS):
            plain.append(Run(self, f"plain_{turn}", flags))
            for i, (kind, flood) in enumerate(floods.items()):
                runs[kind].append(Run(self, f"flood_{i}_{turn}", flags, flood))
                self.check(runs[kind][-1], plain[-1])
        for kind, flooded in runs.items():
            shares = sorted(run.speed / before.speed for run, before in zip(flooded, plain))
            rate = statistics.median(run.counts[FRAMES] / run.seconds for run in flooded)
            most = [max(run.peaks[i] for run in flooded) for i in (0, 1)]
            before = [max(run.peaks[i] for run in plain) for i in (0, 1)]
            harness.figure(
                f"flood {kind}: {rate:,.0f} a second and {SILENT} silent connections, "
                f"{flooded[-1].counts[OPENED]:,} opened, answers of {flooded[-1].counts[ANSWERS]:,} parts: "
                f"{statistics.median(shares):.2f} of the undisturbed speed ({shares[0]:.2f} to {shares[-1]:.2f}, "
                f"{PAIRS} pairs) on {os.cpu_count()} cores that the flood shares, peaks {before[0]:.0f} and "
                f"{before[1]:.0f} MiB -> {most[0]:.0f} and {most[1]:.0f} MiB, logs "
                f"{max(run.log_bytes for run in flooded) >> 10} KiB, the same digest")

    def check(self, flooded, plain):
        self.assertEqual(flooded.summary["digest"], plain.summary["digest"])
        self.assertEqual(flooded.summary["failures_survived"], 0)
        # Fewer were sent than were wanted where the machine is slow; without any nothing is shown.
        self.assertGreater(flooded.counts[FRAMES], 0)
        self.assertGreater(flooded.counts[OPENED], SILENT)
        for peak, undisturbed in zip(flooded.peaks, plain.peaks):
            self.assertLess(peak, undisturbed + MORE_MIB)
        self.assertLess(flooded.log_bytes, 1 << 20)

    def test_without_keys(self):
        self.in_turns([], {"without keys, frames that are none": (strangers.without_key, b"NULL")})

    def test_messages_that_never_end(self):
        plain = Run(self, "plain", [])
        flooded = Run(self, "endless", [], (strangers.endless_parts,), opened=0)
        self.assertEqual(flooded.summary["digest"], plain.summary["digest"])
        for peak, undisturbed in zip(flooded.peaks, plain.peaks):
            self.assertLess(peak, undisturbed + MORE_MIB_OF_PARTS)
        harness.figure(
            f"flood with messages that never end, parts of a byte: {strangers.ENDLESS_BYTES >> 20} MiB to each of "
            f"scheduler and server over {flooded.counts[TURNS]} connections, peaks {plain.peaks[0]:.0f} and "
            f"{plain.peaks[1]:.0f} MiB -> {flooded.peaks[0]:.0f} and {flooded.peaks[1]:.0f} MiB, the same digest")

    def test_with_keys(self):
        keys = self.out("keys")
        harness.run([harness.program("hdps"), "keygen", f"--out={keys}"])
        self.in_turns([f"--keys={keys}"], {
            "with keys, strangers without one, bytes that are none": (strangers.without_key, b"CURVE"),
            "with keys, holders of a reader's, frames that are none": (strangers.with_key, keys, False),
            "with keys, holders of a reader's, all requests that are taken": (strangers.with_key, keys, True)})


if __name__ == "__main__":
    harness.main()
