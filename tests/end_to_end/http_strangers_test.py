#!/usr/bin/env python3
"""Strangers at the port of a job's page: malformed, cut, pipelined and endless requests, wrong tokens and hosts.

HDPS_STRANGERS_SECONDS: about how long they go on; HDPS_STRANGERS_PAIRS: runs with them, in turns with undisturbed runs.
"""
import multiprocessing
import os
import random
import re
import socket
import statistics
import struct
import threading
import time

import harness

SECONDS = harness.asked("HDPS_STRANGERS_SECONDS", 4, 20, "seconds of strangers at the port of a page")
PAIRS = harness.asked("HDPS_STRANGERS_PAIRS", 1, 7, "pairs of runs with strangers at the port of a page")
MORE_MIB = 16
SLOW, PIPELINED_A_SECOND, CUT_A_SECOND = 500, 9000, 1500
TICK, AT_ONCE = 0.02, 45
WRONG = "0" * 32
# The connection stays open after each of these.
REFUSED = [f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRONG}\r\n\r\n",
           f"GET /api/v1/page?token={WRONG} HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
           "GET /none HTTP/1.1\r\nHost: 127.0.0.1:80:80\r\n\r\n",
           "GET /%00%ff?%=%&&since=%zz HTTP/1.1\r\nHost: localhost\r\nCookie: hdps_1=; =;;a\r\n\r\n"]
# It ends with each of these.
MALFORMED = [b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" + b"\xff" * 300,
             b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nno colon\r\n\r\n",
             b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
             b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
             b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: a=\"\r\n\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
             b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 3000 + b"\r\n", b"G" * 70000, b"\x00" * 100]


def visitor(port, source, blocking=True):
    one = socket.socket()
    one.settimeout(10)
    one.bind((source, 0))
    one.connect(("127.0.0.1", port))
    one.setblocking(blocking)
    if blocking:
        one.settimeout(10)
    return one


def paced(turn, stop, counts, index):
    """Calls turn() each tick, and counts what it returns. What the server closes is opened again."""
    os.nice(19)  # As far as one machine can, their own time is not the job's.
    state, due = {}, time.monotonic()
    while not stop.is_set():
        try:
            with_answer = turn(state)
        except OSError:
            state.clear()
            with_answer = 0
        counts[index] += with_answer
        due = max(due + TICK, time.monotonic() - TICK)
        stop.wait(max(0, due - time.monotonic()))


def pipelined(port, stop, counts):
    batch = "".join(REFUSED * (AT_ONCE // len(REFUSED))).encode()

    def turn(state):
        done = 0
        for number in range(int(PIPELINED_A_SECOND * TICK / AT_ONCE)):
            if number not in state:
                state[number] = visitor(port, f"127.0.1.{number + 1}")
            state[number].sendall(batch)
            answers = b""
            while answers.count(b"HTTP/1.1 4") < AT_ONCE:
                got = state[number].recv(1 << 16)
                if not got:
                    raise OSError("closed")
                answers += got
            done += AT_ONCE
        return done

    paced(turn, stop, counts, 0)


def cut(port, stop, counts):
    choice = random.Random(1)

    def turn(_):
        done = 0
        for _ in range(int(CUT_A_SECOND * TICK)):
            with visitor(port, f"127.0.2.{choice.randrange(1, 100)}") as one:
                text = choice.choice(MALFORMED)
                try:
                    one.send(text[:choice.randrange(len(text) + 1)] if choice.random() < 0.3 else text)
                except OSError:
                    pass  # Closed before all was sent.
                if choice.random() < 0.5:  # A reset in place of an end.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            done += 1
        return done

    paced(turn, stop, counts, 1)


def slow(port, stop, counts):
    """500 connections, each of which sends a byte a second of a request that never ends."""
    os.nice(19)
    text, open_ones = b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 4000, {}
    while not stop.wait(1 / 10):
        for number in range(SLOW):
            if number % 10 != int(time.monotonic() * 10) % 10:
                continue
            try:
                if number not in open_ones:
                    open_ones[number] = [visitor(port, f"127.0.3.{number % 200 + 1}", blocking=False), 0]
                    counts[2] += 1
                one = open_ones[number]
                one[0].send(text[one[1]:one[1] + 1])
                one[1] += 1
            except OSError:
                open_ones.pop(number, [socket.socket()])[0].close()


class Strangers(harness.DaemonsCase):
    def run_job(self, name, with_strangers):
        """Returns the summary of a run, the most MiB that it had, and what strangers counted."""
        out = self.out(name)
        job = self.start("hdps", "train", f"--job={self.job}", f"--out={out}", "--http=127.0.0.1:0", "--threads=1")
        port, said = None, []
        for line in job.stderr:
            said.append(line)
            if found := re.search(r"watch at http://127\.0\.0\.1:(\d+)/", line):
                port = int(found[1])
                break
        self.assertIsNotNone(port, said)
        reader = threading.Thread(target=lambda: said.extend(job.stderr))
        reader.start()
        stop, counts = multiprocessing.Event(), multiprocessing.Array("q", 3)
        strangers = [multiprocessing.Process(target=target, args=(port, stop, counts), daemon=True)
                     for target in (pipelined, cut, slow)] if with_strangers else []
        for stranger in strangers:
            stranger.start()
        begin, peak = time.monotonic(), 0
        while job.poll() is None:
            for line in open(f"/proc/{job.pid}/status", encoding="utf-8"):
                if line.startswith("VmHWM"):
                    peak = max(peak, int(line.split()[1]) / 1024)
            time.sleep(0.1)
        seconds = time.monotonic() - begin
        stop.set()
        for stranger in strangers:
            stranger.join(30)
        reader.join(30)
        self.assertEqual(job.returncode, 0, said)
        return harness.summary_of(out), peak, [count / seconds for count in counts]

    def test_a_job_is_the_same_with_strangers_at_its_port(self):
        data = harness.generate(self.out("data"), rows=20000, eval_rows=64, seed=3)
        self.job = harness.write_job(self.out("job.json"), harness.reference_job(data, eval_each_epoch=False, epochs=1))
        summary, _, _ = self.run_job("first", False)
        epochs = max(1, round(SECONDS * summary["examples_per_second"] / 20000))
        self.job = harness.write_job(self.out("job.json"),
                                     harness.reference_job(data, eval_each_epoch=False, epochs=epochs))
        ratios, more = [], []
        for pair in range(PAIRS):
            quiet, quiet_mib, _ = self.run_job(f"quiet_{pair}", False)
            summary, mib, rates = self.run_job(f"strangers_{pair}", True)
            self.assertEqual(summary["digest"], quiet["digest"])
            self.assertGreater(min(rates), 0, "no stranger came")
            ratios.append(summary["examples_per_second"] / quiet["examples_per_second"])
            more.append(mib - quiet_mib)
            self.assertLess(more[-1], MORE_MIB, "MiB more with strangers")
        harness.figure(f"strangers at the page's port: {rates[0]:.0f} refused and {rates[1]:.0f} malformed or cut requests, "
                       f"{rates[2]:.0f} slow connections opened a second: {statistics.median(ratios):.3f} of the speed "
                       f"(median of {PAIRS}), {max(more):.1f} MiB more")


if __name__ == "__main__":
    harness.main()
