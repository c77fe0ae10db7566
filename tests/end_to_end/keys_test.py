#!/usr/bin/env python3
"""Tests keys: peers without one, with a wrong one or one of another role, and a proxy in the middle."""
import json
import os
import re
import shutil
import socket
import stat
import sys
import unittest

import harness
from tcp_proxy import Proxy, door_in
from zmq_dealer import Dealers, Name, frames_of

sys.path.insert(0, str(harness.ROOT / "benchmarks" / "links"))
import namespaces  # noqa: E402  (it lies in another folder)

HDPS = harness.program("hdps")


def keygen(folder, *flags, **kwargs):
    return harness.run([HDPS, "keygen", f"--out={folder}", *flags], **kwargs)


def lines_of(folder):
    """{name: [role, name, public key, ...]} of a folder's list."""
    return {words[1]: words for line in (folder / "allowed").read_text().splitlines()
            if not line.startswith("#") for words in [line.split()]}


def another_role(keys, folder, holder, role):
    """A copy of the folder in which the key of `holder` claims another role: what a thief would do."""
    shutil.copytree(keys, folder)
    words = lines_of(keys)
    text = "".join(" ".join([role if name == holder else line[0], *line[1:]]) + "\n"
                   for name, line in words.items() if name == holder or line[0] != role)
    (folder / "allowed").write_text(text)
    return folder


class Keygen(harness.Case):
    def test_files_and_changes(self):
        keys = self.out("keys")
        keygen(keys)
        self.assertEqual(stat.S_IMODE(keys.stat().st_mode), 0o700)
        for role in ("scheduler", "server", "worker", "reader", "admin", "serving"):
            self.assertEqual(stat.S_IMODE((keys / f"{role}.key").stat().st_mode), 0o600)
        before = lines_of(keys)
        keygen(keys, "--add=worker:rack2")
        keygen(keys, "--rotate=rack2")
        keygen(keys, "--revoke=rack2.1")
        after = lines_of(keys)
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(after["rack2.1"][3:], ["revoked"])
        self.assertNotEqual(after["rack2"][2], after["rack2.1"][2])
        secrets = [path.read_text().strip() for path in keys.glob("*.key")]
        self.assertEqual(len(set(secrets)), 7)

    def test_mistakes(self):
        keys = self.out("keys")
        keygen(keys)
        for flags, *needles in ((["--add=boss:x"], "boss", "admin"), (["--add=worker:../x"], "../x"),
                                (["--add=worker:worker"], "--rotate=worker"), ([], "has keys already"),
                                (["--rotate=x"], "x", "there are scheduler, server"),
                                (["--add=worker:a", "--revoke=worker"], "one of")):
            done = keygen(keys, *flags, expect=2)
            for needle in needles:
                self.assertIn(needle, done.stderr)
        scheduler = [harness.program("hdps-scheduler"), f"--job={harness.CENSUS}",
                     f"--out={self.out('o')}", "--listen=tcp://127.0.0.1:0"]
        for change, *needles in ((lambda: (keys / "scheduler.key").chmod(0o640), "chmod 600", "scheduler.key"),
                                 (lambda: (keys / "scheduler.key").unlink(), "role scheduler"),
                                 (lambda: (keys / "allowed").write_text("boss x y\n"), "allowed:1", "boss")):
            change()
            done = harness.run([*scheduler, f"--keys={keys}"], expect=2)
            for needle in needles:
                self.assertIn(needle, done.stderr)
        done = harness.run([*scheduler[:-1], "--listen=tcp://0.0.0.0:0"], expect=2)
        self.assertIn("hdps keygen --out=DIR", done.stderr)
        self.assertIn("--keys=DIR", done.stderr)

    def test_a_port_for_data_wants_keys(self):
        server = [harness.program("hdps-server"), f"--job={harness.CENSUS}", "--scheduler=tcp://127.0.0.1:1"]
        done = harness.run([*server, "--listen=tcp://127.0.0.1:0+5001"], expect=2)
        self.assertIn("servers with --keys=DIR", done.stderr)

    def test_gradients_leave_this_machine_only_when_asked_to(self):
        """Gloo and NCCL know no keys: a worker with keys refuses them beyond loopback, unless told by name."""
        keys = self.out("keys")
        keygen(keys)
        worker = [harness.program("hdps-worker"), f"--job={harness.CENSUS}", "--scheduler=tcp://127.0.0.1:1",
                  f"--keys={keys}", "--collective_host=10.1.2.3", "--set=cluster.rendezvous_timeout_s=1"]
        allreduce = ",parallel.dense_exchange=allreduce,parallel.collective=gloo"
        done = harness.run([*worker[:-1], worker[-1] + allreduce], expect=2)
        for needle in ("--collective_host=10.1.2.3", "Gloo and NCCL know no keys", "--insecure_collective",
                       "parallel.dense_exchange to servers"):
            self.assertIn(needle, done.stderr)
        log = f"--log_file={self.out('log')}"
        harness.run([*worker[:-1], worker[-1] + allreduce, "--insecure_collective", log], expect=3)
        self.assertRegex(self.out("log").read_text(),
                         r"--insecure_collective: dense gradients travel between workers through 10\.1\.2\.3")
        # Without an allreduce nothing travels there.
        done = harness.run(worker, expect=3)
        self.assertNotIn("collective", done.stderr)

    def test_insecure_says_what_it_gives_up(self):
        out = self.out("o")
        done = harness.run([harness.program("hdps-scheduler"), f"--job={harness.CENSUS}", f"--out={out}",
                            "--listen=tcp://0.0.0.0:0", "--insecure", f"--log_file={out}/log",
                            "--set=cluster.rendezvous_timeout_s=1"], expect=3)
        for text in (done.stderr, (out / "log").read_text()):
            self.assertRegex(text, r"--insecure: this scheduler listens on tcp://\S+ \(every interface\)")
            self.assertIn("read and change all parameters", text)


class Attacks(harness.DaemonsCase):
    """One job in the clear, then the same with keys while all kinds of people try their luck."""

    def setUp(self):
        super().setUp()
        data = harness.generate(self.folder / "data", rows=16384, eval_rows=256, vocabulary=2000,
                                zipf=1.05, seed=5)
        job = harness.reference_job(data, batch_size=256, epochs=16, eval_each_epoch=False)
        job["cluster"] = {"heartbeat_ms": 100, "shards": 1}
        self.job = harness.write_job(self.folder / "job.json", job)
        self.keys = self.out("keys")
        keygen(self.keys)

    def start_job(self):
        """Scheduler and server; returns the scheduler's address."""
        out, common = self.out("run"), [f"--job={self.job}", f"--keys={self.keys}"]
        self.scheduler = self.start("hdps-scheduler", *common, f"--out={out}",
                                    "--listen=tcp://127.0.0.1:0", f"--address_file={self.out('address')}",
                                    f"--log_file={self.out('scheduler.log')}")
        harness.wait_until(lambda: self.out("address").exists(), 30, "the scheduler's address")
        self.address = self.out("address").read_text().strip()
        self.port = int(self.address.rsplit(":", 1)[1])
        self.server = self.start("hdps-server", *common, f"--scheduler={self.address}",
                                 "--listen=tcp://127.0.0.1:0", f"--log_file={self.out('server.log')}")
        listening = r"listening on tcp://127.0.0.1:(\d+)\+(\d+)"
        harness.wait_until(lambda: re.search(listening, self.log("server")), 30, "the server's address")
        self.server_port, self.data_port = map(int, re.search(listening, self.log("server")).groups())

    def log(self, name="scheduler"):
        path = self.out(f"{name}.log")
        return path.read_text() if path.exists() else ""

    def status(self, keys, **kwargs):
        return harness.run([HDPS, "status", f"--scheduler={self.address}", f"--keys={keys}"], **kwargs)

    def refused_once(self, what, by="scheduler"):
        harness.wait_until(lambda: re.search(what, self.log(by)), 20, f"a line with {what}")
        self.assertEqual(len(re.findall(what, self.log(by))), 1, self.log(by))

    def flip(self, direction, at, data):
        """A bit now and then, both ways, behind the handshake, the join and a few heartbeats with their figures: so each
        connection gets a little done before it is cut."""
        if at < 10_000 or at % 7 > 2:
            return data
        self.flipped += 1
        changed = bytearray(data)
        changed[len(changed) // 2] ^= 0x10
        return bytes(changed)

    def push_as_reader(self):
        """Pushes that want for nothing but a worker's key, straight to the server; returns how many."""
        spy, dealers = Name(), Dealers(self.keys, "reader")
        frames = frames_of(spy.number)
        line = dealers.dial(self.server_port, "server", spy.routing_id())
        self.addCleanup(dealers.close, [line])
        self.assertTrue(dealers.send(line, frames["probe"]))
        harness.wait_until(lambda: dealers.take(line), 20, "the answer to what a reader may ask")
        sent = sum(dealers.send(line, frames["push"]) for _ in range(20))
        self.refused_once("refused a frame of reader reader: the key of a reader may not "
                          "send a PushRequest, which is for a worker", by="server")
        # What comes behind them is answered: they have been looked at, all of them.
        dealers.send(line, frames["probe"])
        harness.wait_until(lambda: dealers.take(line), 20, "another answer")
        return sent

    def replay(self, recording):
        """Sends a recorded session again; returns all that comes back."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port)) as again:
            again.settimeout(8)
            try:
                again.sendall(recording)
                while data := again.recv(65536):
                    answer += data
            except (ConnectionError, TimeoutError):
                pass
        return answer

    def test_attacks_change_nothing(self):
        plain = harness.cluster(self.job, self.out("plain"))
        self.start_job()
        self.flipped = 0
        middle = Proxy(self.port, self.flip)
        self.addCleanup(middle.close)
        worker = self.start("hdps-worker", f"--job={self.job}", f"--keys={self.keys}",
                            f"--scheduler={middle.address}", f"--log_file={self.out('worker.log')}",
                            "--faults=late=20..20ms")

        # Someone who may, and whose session is recorded.
        recorder = Proxy(self.port)
        self.addCleanup(recorder.close)
        scale = [HDPS, "scale", f"--scheduler={recorder.address}", f"--keys={self.keys}",
                 "--scale_servers=+0"]
        harness.run(scale, expect=None)
        self.assertIn("job 'reference_small'", self.status(self.keys).stdout)
        admitted = [bytes(session) for session in recorder.sent]
        self.assertTrue(any(len(session) > 500 for session in admitted))

        # A recording of his session.
        for session in admitted:
            answer = self.replay(session)
            # Greeting and WELCOME, which anybody gets: nothing that only a member reads.
            self.assertLess(len(answer), 64 + 256)
        self.refused_once("has failed its handshake")

        # A key of another job; one nobody has allowed, whose holder knows the scheduler's public one; a
        # worker's on an admin's call; a reader's that wants to push, and joins for that.
        other, forged = self.out("other"), self.out("forged")
        keygen(other)
        shutil.copytree(self.keys, forged)
        keygen(forged, "--rotate=reader")
        thief = another_role(self.keys, self.out("thief"), "worker", "admin")
        spy = another_role(self.keys, self.out("spy"), "reader", "worker")
        at = f"--scheduler={self.address}"
        asked = [self.start("hdps", "status", at, f"--keys={other}"),
                 self.start("hdps", "status", at, f"--keys={forged}"),
                 self.start("hdps", "scale", at, f"--keys={thief}", "--scale_servers=+1")]
        pushing = self.start("hdps-worker", f"--job={self.job}", f"--keys={spy}", at)
        for command in asked:
            _, said = command.communicate(timeout=60)
            self.assertEqual(command.returncode, 3)
            self.assertIn("does it allow this key", said)
        self.refused_once("refused a connection from 127.0.0.1: .* is not in the list")
        self.refused_once("refused a frame of worker worker.* may not send a ScaleRequest")
        self.refused_once("refused a frame of reader reader.* may not send a JoinRequest")
        pushing.kill()

        pushes = self.push_as_reader()

        # A key that is revoked while the job runs.
        revoked = self.out("revoked")
        shutil.copytree(self.keys, revoked)
        keygen(self.keys, "--revoke=reader")
        harness.wait_until(lambda: "have changed" in self.log(), 20, "the scheduler sees the list")
        self.status(revoked, expect=3)
        self.refused_once("of reader, a reader, is revoked")
        still = self.status(self.keys)  # Of the admin now.

        worker.communicate(timeout=200)
        _, said = self.scheduler.communicate(timeout=60)
        self.assertEqual(self.scheduler.returncode, 0, said)
        self.server.communicate(timeout=60)
        refused = re.search(r"received \d+ bytes in \d+ frames, refused (\d+)", self.log("server"))
        self.assertEqual(int(refused[1]), pushes, "all of them are counted")
        with_keys = harness.summary_of(self.out("run"))
        self.assertEqual(with_keys["digest"], plain["digest"])
        self.assertEqual(with_keys["workers"], 1)
        secrets = [path.read_text().strip() for path in self.keys.glob("*.key")]
        written = "".join(self.log(name) for name in ("scheduler", "server", "worker")) + still.stdout
        self.assertFalse([secret for secret in secrets if secret in written])
        harness.figure(f"keys: {len(admitted)} sessions replayed, {self.flipped} bits flipped in the middle, "
                       "wrong, forged, revoked and other roles' keys refused and logged once each, and "
                       f"{pushes} well-formed pushes of a reader to a server; digest "
                       f"{with_keys['digest']} as without keys")

    @unittest.skipIf(why := namespaces.why_not(), f"no machines made of namespaces here: {why}")
    def test_bits_flipped_between_worker_and_server(self):
        """The worker is in a network of its own, whose every way out leads through the man in the middle,
        and sees no process of the others, with whom it would share memory."""
        job = json.loads(self.job.read_text())
        job["train"]["epochs"] = 2
        harness.write_job(self.job, job)
        plain = harness.train(self.job, self.out("plain"))
        self.start_job()
        worker = self.start_command("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                                    "sh", "-c", 'ip link set lo up && exec "$0" "$@"',
                                    harness.program("hdps-worker"), f"--job={self.job}", f"--keys={self.keys}",
                                    f"--scheduler={self.address}", f"--log_file={self.out('worker.log')}")
        ours = os.readlink("/proc/self/ns/net")
        harness.wait_until(lambda: os.readlink(f"/proc/{worker.pid}/ns/net") != ours, 20, "a network of its own")
        flipped = {"in": 0, "out": 0}

        def flip(direction, at, data):
            """A bit in each direction in turn, four in all."""
            times, half = sum(flipped.values()), len(data) // 2
            if times == 4 or at < 100_000 * (times + 1) or direction != ("in", "out")[times % 2]:
                return data
            flipped[direction] += 1
            return data[:half] + bytes([data[half] ^ 0x10]) + data[half + 1:]

        def as_it_is(_, __, data):
            return data

        ways = [Proxy(port, change, door_in(worker.pid, port)) for port, change in (
            (self.port, as_it_is), (self.server_port, as_it_is), (self.data_port, flip))]
        middle = ways[2]
        for way in ways:
            self.addCleanup(way.close)
        _, said = worker.communicate(timeout=200)
        self.assertEqual(worker.returncode, 0, said)
        self.assertEqual(self.scheduler.wait(timeout=60), 0)
        summary = harness.summary_of(self.out("run"))
        passed = sum(map(len, middle.sent))
        self.assertGreater(passed, 1 << 20, "what is pushed goes this way")
        self.assertGreaterEqual(min(flipped.values()), 2)
        self.assertIn("no valid seal", self.log("server") + self.log("worker"))
        self.assertEqual(summary["digest"], plain["digest"])
        harness.figure(f"keys: {flipped} bits flipped in {passed >> 20} MiB from a worker to its server and back, "
                       f"by {len(middle.sent)} connections, {summary['failures_survived']} members lost, job of "
                       f"{summary['wall_seconds']:.1f} s; digest {summary['digest']} as undisturbed")

    def test_sealed_frames_give_the_same(self):
        shards = {"cluster.shards": 8}
        plain = harness.train(self.job, self.out("plain"), servers=2, workers=2, sets=shards)
        sealed = harness.cluster(self.job, self.out("sealed"), servers=2, workers=2, sets=shards,
                                 extra=[f"--keys={self.keys}"])
        self.assertEqual(sealed["digest"], plain["digest"])
        for number in (0, 1):
            log = (self.out("sealed") / "log" / f"server_{number}.log").read_text()
            self.assertRegex(log, r"listening on tcp://127\.0\.0\.1:\d+\+\d+")
            self.assertIn("data travels sealed at port", log)
            self.assertNotIn("refused a", log)
        harness.figure(f"data plane: 2 servers and 2 workers, sealed: digest {sealed['digest']} as without keys")

    def test_keys_are_rotated_while_a_job_runs(self):
        plain = harness.train(self.job, self.out("plain"))
        self.start_job()
        worker = self.start("hdps-worker", f"--job={self.job}", f"--keys={self.keys}",
                            f"--scheduler={self.address}", f"--log_file={self.out('worker.log')}",
                            "--faults=late=10..10ms")
        harness.wait_until(lambda: re.search(r"step +[1-9]", self.status(self.keys).stdout), 60, "steps")
        for name in ("worker", "server", "scheduler"):
            keygen(self.keys, f"--rotate={name}")
        harness.wait_until(lambda: "anew, as keys have changed" in self.log("server"), 20,
                           "the server listens under its new key")
        for name in ("worker.1", "server.1", "scheduler.1"):
            keygen(self.keys, f"--revoke={name}")
        worker.communicate(timeout=200)
        self.assertEqual(self.scheduler.wait(timeout=60), 0)
        self.assertEqual(harness.summary_of(self.out("run"))["digest"], plain["digest"])


if __name__ == "__main__":
    harness.main()
