#!/usr/bin/env python3
"""Strangers flood a running job with frames that are none and with connections that say nothing.

HDPS_FLOOD_SECONDS: for how long; a few seconds with every change, 60 at night.
"""
import multiprocessing
import os
import pathlib
import random
import socket
import struct
import subprocess
import time

import harness

SECONDS = int(os.environ.get("HDPS_FLOOD_SECONDS", "5"))
FRAMES_A_SECOND, SPEAKERS, SILENT = 10_000, 20, 500
# What a daemon may take more than undisturbed: as many connections with their buffers, and no more.
MORE_MIB = 64


def greeting(mechanism):
    """ZMTP 3.0 (rfc.zeromq.org/spec/23), and with NULL the command that ends the handshake."""
    hello = b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    if mechanism != b"NULL":
        return hello + b"\x04\xc8\x05HELLO" + os.urandom(194)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER\x08Identity" + struct.pack(">I", 0)
    return hello + b"\x04" + bytes([len(ready)]) + ready


def connect(port):
    try:
        door = socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        return None
    door.setblocking(False)
    return door


def open_still(door):
    """Takes what came, and tells whether the other side holds the connection."""
    try:
        while data := door.recv(65536):
            pass
        return data != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def flood(ports, mechanism, stop, counts):
    """Holds SILENT connections, and sends frames that are none through SPEAKERS others, until `stop`."""
    chance = random.Random(7)
    speakers, silent, turn, begin = [None] * SPEAKERS, [None] * SILENT, 0, time.monotonic()
    while not stop.is_set():
        # As many as are due by now, at most a tenth of a second's at once.
        due = int((time.monotonic() - begin) * FRAMES_A_SECOND) - counts[0]
        for _ in range(min(due, FRAMES_A_SECOND // 10) // 50):
            turn = (turn + 1) % SPEAKERS
            if speakers[turn] is None or not open_still(speakers[turn]):
                speakers[turn] = connect(ports[turn % len(ports)])
                counts[1] += 1
                if speakers[turn] is None:
                    continue
                frames = greeting(mechanism)
            else:
                frames = b""
            for _ in range(50):
                body = chance.randbytes(chance.randrange(1, 200))
                frames += bytes([chance.choice((0, 1)), len(body)]) + body
            try:
                speakers[turn].settimeout(5)
                speakers[turn].sendall(frames)
                speakers[turn].setblocking(False)
            except OSError:
                speakers[turn].close()
                speakers[turn] = None
            counts[0] += 50
        for i in range(counts[2] % 10, SILENT, 10):  # A tenth of them in each turn.
            if silent[i] is None or not open_still(silent[i]):
                silent[i] = connect(ports[i % len(ports)])
                counts[1] += 1
        counts[2] += 1
        stop.wait(0.005)
    for door in filter(None, (*speakers, *silent)):
        door.close()


def resident_mib(process):
    """The most that it has had so far; 0 of one that has ended."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


class Flood(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.folder / "data", rows=16384, eval_rows=256, vocabulary=2000, zipf=1.05, seed=5)
        self.job = harness.reference_job(data, batch_size=256, epochs=4, eval_each_epoch=False)
        self.path = harness.write_job(self.folder / "job.json", self.job)
        # So many epochs as an undisturbed run takes SECONDS for.
        speed = harness.cluster(self.path, self.out("speed"))["examples_per_second"]
        self.job["train"]["epochs"] = max(4, int(SECONDS * speed / 16384))
        self.path = harness.write_job(self.folder / "job.json", self.job)

    def run_job(self, name, flags, mechanism=None):
        """A job of three daemons, flooded where a mechanism is given: summary, MiB of each, counts."""
        out, common = self.out(name), [f"--job={self.path}", *flags]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = self.out(f"{name}_address")
        daemons = [self.start("hdps-scheduler", *common, f"--out={out}", "--listen=tcp://127.0.0.1:0",
                              f"--address_file={address}", f"--log_file={out}_scheduler.log")]
        harness.wait_until(address.exists, 30, "the scheduler's address")
        at = address.read_text().strip()
        daemons.append(self.start("hdps-server", *common, f"--scheduler={at}", f"--listen=tcp://127.0.0.1:{port}",
                                  f"--log_file={out}_server.log"))
        ports = [int(at.rsplit(":", 1)[1]), port]
        stop, counts = multiprocessing.Event(), multiprocessing.Array("q", 3)
        flooder = multiprocessing.Process(target=flood, args=(ports, mechanism, stop, counts), daemon=True)
        begin = time.monotonic()
        if mechanism:
            flooder.start()
            harness.wait_until(lambda: counts[1] > SILENT, 30, "connections of strangers")
        worker = self.start("hdps-worker", *common, f"--scheduler={at}")
        peaks = [0.0, 0.0]
        while worker.poll() is None:
            peaks = [max(peak, resident_mib(process)) for peak, process in zip(peaks, daemons)]
            try:
                worker.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
        seconds = time.monotonic() - begin
        stop.set()
        for process in (worker, *daemons):
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)
        if mechanism:
            flooder.join(timeout=30)
        return harness.summary_of(out), peaks, counts[0] / seconds, counts[1]

    def flooded(self, name, flags, mechanism):
        plain, before, _, _ = self.run_job(f"{name}_plain", flags)
        told, after, rate, opened = self.run_job(f"{name}_flooded", flags, mechanism)
        self.assertEqual(told["digest"], plain["digest"])
        self.assertEqual(told["failures_survived"], 0)
        # Fewer were sent than were wanted where the machine is slow; without any nothing is shown.
        self.assertGreater(rate, 0)
        self.assertGreater(opened, SILENT)
        for peak, undisturbed in zip(after, before):
            self.assertLess(peak, undisturbed + MORE_MIB)
        logs = sum(pathlib.Path(f"{self.out(f'{name}_flooded')}_{who}.log").stat().st_size
                   for who in ("scheduler", "server"))
        self.assertLess(logs, 1 << 20)
        share = told["examples_per_second"] / plain["examples_per_second"]
        harness.figure(f"flood {name}: {rate:,.0f} frames a second that are none, {SILENT} silent connections, "
                       f"{opened:,} opened: {share:.2f} of the undisturbed speed on {os.cpu_count()} cores that the "
                       f"flood shares, peaks {before[0]:.0f} and {before[1]:.0f} MiB -> {after[0]:.0f} and "
                       f"{after[1]:.0f} MiB, logs {logs >> 10} KiB, the same digest")

    def test_without_keys(self):
        self.flooded("without keys", [], b"NULL")

    def test_with_keys(self):
        keys = self.out("keys")
        harness.run([harness.program("hdps"), "keygen", f"--out={keys}"])
        self.flooded("with keys", [f"--keys={keys}"], b"CURVE")


if __name__ == "__main__":
    harness.main()
