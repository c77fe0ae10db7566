#!/usr/bin/env python3
"""Sends frames under the peer ids of a job's members, from strangers and from holders of a reader's key,
before its view forms and through restarts of scheduler and server: no member is lost, and the model is the same.

The test gives them the peer ids from the scheduler's state, which they could only guess.
HDPS_NAMES_SECONDS: duration; a few seconds with every change, 60 at night.
"""
import errno
import json
import multiprocessing
import os
import pathlib
import random
import socket

import harness
from zmq_dealer import Dealers, Name, frames_of

SECONDS = int(os.environ.get("HDPS_NAMES_SECONDS", "6"))
WORKERS = 2
STEPS_A_SECOND = 20  # At most: a worker's frames are late, and a step takes two.
RESTARTS = max(SECONDS // 10, 1)  # Of the scheduler and of the server each.
SENT, NUMBERS = range(2)  # What is counted, in an array that processes share.


def members_in(state):
    """The numbers of all members; none without a view."""
    try:
        saved = harness.scheduler_state(state)
    except (OSError, ValueError):
        return set()
    return {int(member["peer"]) for kind in ("servers", "workers") for member in saved[kind]}


def speak_in_their_names(ports, keys, state, stop, counts):
    """At each listener a connection a member, dialed anew again and again, until `stop`."""
    dealers, frames, dial = Dealers(keys, "reader" if keys else None), {}, 0
    kinds = {"scheduler": ("status", "probe"), "server": ("probe", "pull")}
    while not stop.is_set():
        dial += 1
        lines = []
        for number in members_in(state):
            if number not in frames:
                frames[number] = frames_of(number)
            thief = Name()
            lines += [(dealers.dial(port, listener, thief.routing_id(number, dial)), frames[number], kinds[listener])
                      for listener, port in ports.items()]
        counts[NUMBERS] = len(frames)
        for _ in range(5):
            for line, said, kinds_here in lines:
                counts[SENT] += sum(dealers.send(line, said[kind]) for kind in kinds_here)
            stop.wait(0.02)
        dealers.hang_up([line for line, _, _ in lines])
    dealers.close([])


def reserve_port():
    """Listens on a port that the system gives to no outgoing connection; the thief's many would take one in seven."""
    least = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        try:
            return socket.create_server(("127.0.0.1", random.randrange(10000, least)))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


class Names(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.folder / "data", rows=4096, eval_rows=256, vocabulary=2000, zipf=1.05, seed=5)
        steps = 4096 // (128 * WORKERS)
        job = harness.reference_job(data, batch_size=128, epochs=max(SECONDS * STEPS_A_SECOND // steps, 2),
                                    eval_each_epoch=False)
        job["cluster"] = {"heartbeat_ms": 100, "dead_after_ms": 1500}
        job["checkpoint"] = {"every_steps": 20}
        self.path = harness.write_job(self.folder / "job.json", job)
        harness.train(self.path, self.out("undisturbed"), workers=WORKERS)
        self.digest = harness.summary_of(self.out("undisturbed"))["digest"]

    def begin(self, who):
        """On a port that it has again when it is started again."""
        log = self.out(f"{who}_{len(self.running)}.log")
        flags = {"scheduler": [f"--out={self.run}", f"--listen={self.at['scheduler']}", "--servers=1",
                               f"--workers={WORKERS}"],
                 "server": [f"--scheduler={self.at['scheduler']}", f"--listen={self.at['server']}"],
                 "worker": [f"--scheduler={self.at['scheduler']}", "--faults=late=25..35ms"]}[who]
        self.logs.append(log)
        return self.start(f"hdps-{who}", *self.common, *flags, f"--log_file={log}")

    def steps(self):
        path = self.run / "metrics.jsonl"
        return sum('"step"' in line for line in path.read_text().splitlines()) if path.exists() else 0

    def said(self):
        return "".join(log.read_text() for log in self.logs if log.exists())

    def await_while_it_runs(self, condition, what):
        harness.wait_until(lambda: condition() or self.workers[0].poll() is not None, 60, what)
        self.assertIsNone(self.workers[0].poll(), f"the job ended before there was {what}")

    def goes_on(self, what):
        before = self.steps()
        self.await_while_it_runs(lambda: self.steps() > before, what)

    def again(self, who):
        """Kills it, and starts it again."""
        self.daemons[who].kill()
        self.daemons[who].wait()
        self.daemons[who] = self.begin(who)

    def disturbed(self, keys=None):
        self.logs, self.numbers, self.run = [], set(), self.out("run")
        self.state = self.run / "scheduler.state"
        self.common = [f"--job={self.path}", *([f"--keys={keys}"] if keys else [])]
        free = [reserve_port() for _ in range(2)]
        ports = dict(zip(("scheduler", "server"), [door.getsockname()[1] for door in free]))
        for door in free:
            door.close()
        self.at = {who: f"tcp://127.0.0.1:{port}" for who, port in ports.items()}
        stop, counts = multiprocessing.Event(), multiprocessing.Array("q", 2)
        thief = multiprocessing.Process(target=speak_in_their_names, daemon=True,
                                        args=(ports, keys, self.state, stop, counts))
        thief.start()
        self.daemons = {who: self.begin(who) for who in ("scheduler", "server")}
        self.workers = [self.begin("worker") for _ in range(WORKERS)]
        for _ in range(RESTARTS):
            self.goes_on("a step")
            self.again("scheduler")
            self.goes_on("a step after the scheduler's restart")
            before = members_in(self.state)
            self.again("server")
            self.await_while_it_runs(lambda: members_in(self.state) - before, "a server in the place of the killed one")
            self.numbers |= before | members_in(self.state)
        for process in (*self.workers, *self.daemons.values()):
            _, said = process.communicate(timeout=120 + 2 * SECONDS)
            self.assertEqual(process.returncode, 0, said + self.said()[-3000:])
        stop.set()
        thief.join(timeout=30)
        self.assertEqual(harness.summary_of(self.run)["digest"], self.digest)
        said = self.said()
        self.assertIn("does not prove that the number it names is its own", said)
        self.assertEqual(len(self.numbers), WORKERS + 1 + RESTARTS, "workers stay, and servers are new ones")
        for number in self.numbers:
            self.assertNotIn(str(number), said, "a log tells a member's number")
        self.assertNotRegex(said, r"worker \d[^\n]* (is|are) lost")
        self.assertGreaterEqual(counts[NUMBERS], WORKERS + 1)
        harness.figure(f"names, {'a reader' if keys else 'a stranger'}: {counts[SENT]} frames in the names of "
                       f"{counts[NUMBERS]} members, nobody lost, the same digest")

    def test_a_stranger_without_keys(self):
        self.disturbed()

    def test_the_holder_of_a_readers_key(self):
        keys = self.out("keys")
        harness.run([harness.program("hdps"), "keygen", f"--out={keys}"])
        self.disturbed(keys)


if __name__ == "__main__":
    harness.main()
