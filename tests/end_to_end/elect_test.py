"""Three schedulers elect the one that leads by etcd: leaders are killed and stopped, etcd goes and comes
back, and the job ends with the digest of a run that nothing disturbed."""
import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import harness

LEADS = re.compile(r"leads the job, reign (\d+)")
BACK = "the scheduler is back at step"
REFUSED = ("hdps_worker_refused_orders_total", "hdps_server_refused_orders_total")


class EtcdServer:
    """etcd of Debian on loopback, with its data in a folder; stop() and start() keep the data."""

    def __init__(self, folder, tls=None):
        self.folder, self.tls = folder, tls
        self.ports = [harness.free_port(), harness.free_port()]
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.ports[0]}"

    def start(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.ports)
        secure = []
        if self.tls:
            client = client.replace("http:", "https:")
            secure = [f"--cert-file={self.tls}/server.pem", f"--key-file={self.tls}/server.key",
                      f"--trusted-ca-file={self.tls}/ca.pem", "--client-cert-auth"]
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", f"--data-dir={self.folder}", f"--listen-client-urls={client}",
                 f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
                 f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}", *secure],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        harness.wait_until(self.serves, 60, "etcd answers")

    def serves(self):
        assert self.process.poll() is None, "etcd has ended"
        try:
            if self.tls:
                with socket.create_connection(("127.0.0.1", self.ports[0]), timeout=1):
                    return True
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=1) as answer:
                return json.load(answer)["health"] == "true"
        except (urllib.error.URLError, OSError, ValueError):
            return False

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def post(self, path, body):
        request = urllib.request.Request(f"http://{self.address}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


class Scheduler:
    def __init__(self, process, log):
        self.process, self.log = process, log

    def said(self):
        return self.log.read_text()

    def reign(self):
        found = LEADS.search(self.said())
        return int(found[1]) if found else 0


@unittest.skipIf(shutil.which("etcd") is None, "etcd is not here (scripts/install_deps.sh --election)")
class Elections(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        self.etcd = EtcdServer(self.folder / "etcd")
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.place = f"etcd://{self.etcd.address}/jobs/{self.folder.name}"
        self.logs = 0

    def candidate(self, *flags, out="elected", place=None):
        self.logs += 1
        log = self.folder / f"scheduler_{self.logs}.log"
        with open(log, "w") as stderr:
            process = self.start("hdps-scheduler", f"--job={self.job}", f"--out={self.out(out)}", "--servers=2",
                                 "--workers=2", "--listen=tcp://127.0.0.1:0", "--http=none",
                                 f"--elect={place or self.place}", f"--elect_ttl_s={self.ttl_s}", *flags,
                                 stderr=stderr)
        return Scheduler(process, log)

    def make_job(self, steps, step_ms):
        """A job of so many steps, each of at least so many milliseconds when it is disturbed."""
        data = harness.generate(self.folder / "data", rows=16384, eval_rows=256, vocabulary=500, seed=7)
        job = harness.reference_job(data, batch_size=64, max_steps=steps, epochs=1000, eval_each_epoch=False)
        job["model"].update({"hidden": [8], "embedding_dim": 4})
        job["checkpoint"] = {"every_steps": 20, "keep": 2}
        job["cluster"] = {"heartbeat_ms": 200, "dead_after_ms": 30000}
        self.job = harness.write_job(self.folder / "job.json", job)
        self.slowly = f"--faults=point=worker.step.ended:sleep={step_ms}ms@1.."
        return harness.train(self.job, self.out("undisturbed"), servers=2, workers=2)["digest"]

    def start_members(self):
        for role, faults in (("server", []), ("worker", [self.slowly])):
            for rank in range(2):
                with open(self.folder / f"{role}_{rank}.log", "w") as stderr:
                    self.start(f"hdps-{role}", f"--job={self.job}", f"--scheduler={self.place}", f"--rank={rank}",
                               *faults, stderr=stderr)
        return self.running[-4:]

    def leader(self, above):
        """The scheduler that leads in a reign above this one and has taken over; waits for it."""
        found = []

        def leads():
            found[:] = [s for s in self.schedulers if s.process.poll() is None and s.reign() > above]
            return bool(found)
        harness.wait_until(leads, 60, f"a reign after {above}")
        return max(found, key=Scheduler.reign)

    def step(self):
        """The step of the newest line of metrics.jsonl."""
        try:
            lines = (self.out("elected") / "metrics.jsonl").read_text().splitlines()
            return max((json.loads(line).get("step", 0) for line in lines[-20:]), default=0)
        except (OSError, ValueError):
            return 0

    def replace(self, scheduler):
        """What a unit does: starts another process in the place of one that has ended."""
        self.schedulers.remove(scheduler)
        self.schedulers.append(self.candidate())

    def disturb(self, leader, how):
        """Kills or stops the leader; returns the seconds until another leads, and that one."""
        begun = time.monotonic()
        leader.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        reign = leader.reign()
        if how == "kill":
            leader.process.wait()
        following = self.leader(reign)
        took = time.monotonic() - begun
        harness.wait_until(lambda: BACK in following.said(), 60, "the next leader takes over")
        if how == "stop":
            leader.process.send_signal(signal.SIGCONT)
            self.assertEqual(leader.process.wait(timeout=30), 3, leader.said())
            self.assertIn("leads no longer", leader.said())
        self.replace(leader)
        return took, following

    def refused(self):
        """How many orders of older reigns the members refused, as the last leader wrote it down."""
        written = json.loads((self.out("elected") / "figures.json").read_text())
        counts = [value for member in written["figures"]["members"] for name, value in member["figures"].items()
                  if name in REFUSED]
        self.assertEqual(len(counts), 4)
        return sum(counts)

    def check_end(self, members, digest):
        for member in members:
            self.assertEqual(member.wait(timeout=300), 0, member.args)
        for scheduler in self.schedulers:
            self.assertEqual(scheduler.process.wait(timeout=60), 0, scheduler.said())
        self.assertEqual(harness.summary_of(self.out("elected"))["digest"], digest)
        left = [name for name in os.listdir(self.out("elected")) if name.startswith("scheduler.state")]
        self.assertEqual(left, [])

    def begin(self, steps, step_ms):
        digest = self.make_job(steps, step_ms)
        self.schedulers = [self.candidate() for _ in range(3)]
        members = self.start_members()
        leader = self.leader(0)
        harness.wait_until(lambda: self.step() > 5, 120, "the job trains")
        return digest, members, leader

    def test_leaders_that_are_killed_and_stopped(self):
        times = harness.asked("HDPS_ELECTIONS", 4, 20, "elections")
        self.ttl_s = harness.share(2, 5, "a lease of 5 s, by one of 2")
        seconds = times * (self.ttl_s + 4)
        digest, members, leader = self.begin(steps=seconds * 10, step_ms=100)
        took = []
        for i in range(times):
            step = self.step()
            seconds, leader = self.disturb(leader, ("kill", "stop")[i % 2])
            took.append(seconds)
            self.assertLessEqual(seconds, self.ttl_s + 3)
            harness.wait_until(lambda: self.step() > step, 120, f"steps after {step}")
        self.check_end(members, digest)
        harness.figure(f"elections: another scheduler led {max(took):.1f} s after the one before was killed or stopped, "
                       f"at most, {sum(took) / times:.1f} s in the mean of {times}, with leases of {self.ttl_s} s; "
                       f"4 members refused {self.refused()} orders of older reigns; same digest")

    def test_etcd_goes_and_comes_back(self):
        self.ttl_s = 2
        away_s = harness.share(8, 30, "22 of 30 s without etcd")
        digest, members, leader = self.begin(steps=(away_s + 20) * 10, step_ms=100)
        self.etcd.stop()
        gone = time.monotonic()
        self.assertEqual(leader.process.wait(timeout=self.ttl_s + 3), 3)
        self.assertLessEqual(time.monotonic() - gone, self.ttl_s + 1)
        reign = leader.reign()
        self.replace(leader)
        step = self.step()
        deadline = gone + away_s
        harness.wait_until(lambda: time.monotonic() > deadline, away_s + 1, "the time without etcd")
        self.assertEqual([s.process.poll() for s in self.schedulers], [None] * 3)
        self.assertEqual([m.poll() for m in members], [None] * 4)
        self.assertIn("etcd has not answered for", self.schedulers[-1].said())
        begun = time.monotonic()
        self.etcd.start()
        leader = self.leader(reign)
        took = time.monotonic() - begun
        harness.wait_until(lambda: self.step() > step, 120, f"steps after {step}")
        self.check_end(members, digest)
        harness.figure(f"elections: after {away_s} s without etcd a scheduler led {took:.1f} s after its start; "
                       "no member was lost, same digest")

    def test_the_end_and_mistakes_of_a_job_are_for_all_candidates(self):
        self.ttl_s = 2
        self.make_job(10, 0)
        self.schedulers = [self.candidate() for _ in range(3)]
        leader = self.leader(0)
        harness.wait_until(lambda: all("stands by" in s.said() for s in self.schedulers if s is not leader), 30,
                           "the others stand by")
        leader.process.send_signal(signal.SIGTERM)
        for scheduler in self.schedulers:
            self.assertEqual(scheduler.process.wait(timeout=30), 0, scheduler.said())
            self.assertIn("was told to stop", scheduler.said())
        # A later run begins anew, and one of a candidate's own is no end of the job.
        again = [self.candidate() for _ in range(2)]
        self.schedulers = again
        leader = self.leader(0)
        other = next(s for s in again if s is not leader)
        harness.wait_until(lambda: "stands by" in other.said(), 30, "the other stands by")
        other.process.send_signal(signal.SIGTERM)
        self.assertEqual(other.process.wait(timeout=30), 0)
        self.assertIsNone(leader.process.poll())
        third = self.candidate("--init=" + str(self.folder / "nowhere"), out="other", place=self.place + "_2")
        self.assertEqual(third.process.wait(timeout=30), 2, third.said())
        self.assertIn("nowhere", third.said())


@unittest.skipIf(shutil.which("etcd") is None, "etcd is not here (scripts/install_deps.sh --election)")
class Logins(harness.DaemonsCase):
    """An etcd that lets in only who shows a password, or a certificate."""

    def scheduler(self, etcd, login=None, seconds=60):
        """A scheduler with a login; its process and the file of what it says."""
        flags = []
        if login is not None:
            path = self.folder / "login.json"
            path.write_text(json.dumps(login))
            path.chmod(0o600)
            flags = [f"--elect_file={path}"]
        said = self.folder / "scheduler.log"
        with open(said, "w") as stderr:
            process = self.start("hdps-scheduler", f"--job={harness.CENSUS}", f"--out={self.out('out')}",
                                 "--listen=tcp://127.0.0.1:0", "--http=none",
                                 f"--elect=etcd://{etcd.address}/jobs/a", "--elect_ttl_s=4",
                                 f"--set=cluster.scheduler_timeout_s={seconds}", *flags, stderr=stderr)
        return process, said

    def refused(self, etcd, login, status, words, seconds=60):
        process, said = self.scheduler(etcd, login, seconds)
        self.assertEqual(process.wait(timeout=60), status, said.read_text())
        self.assertIn(words, said.read_text())
        self.assertNotIn("geheim", said.read_text())

    def test_user_and_password(self):
        etcd = EtcdServer(self.folder / "etcd")
        self.addCleanup(etcd.stop)
        etcd.start()
        coded = [base64.b64encode(text).decode() for text in (b"jobs/", b"jobs0")]
        for path, body in (("user/add", {"name": "root", "password": "r"}), ("role/add", {"name": "root"}),
                           ("user/grant", {"user": "root", "role": "root"}), ("role/add", {"name": "jobs"}),
                           ("role/grant", {"name": "jobs", "perm": {"permType": "READWRITE", "key": coded[0],
                                                                    "range_end": coded[1]}}),
                           ("user/add", {"name": "hdps", "password": "geheim"}),
                           ("user/add", {"name": "nobody", "password": "geheim"}),
                           ("user/grant", {"user": "hdps", "role": "jobs"}), ("enable", {})):
            etcd.post(f"/v3/auth/{path}", body)
        self.refused(etcd, None, 2, "user name is empty")
        self.refused(etcd, {"user": "hdps", "password": "geheimer"}, 2, "user 'hdps' is not let in")
        self.refused(etcd, {"user": "nobody", "password": "geheim"}, 2, "permission denied")
        process, said = self.scheduler(etcd, {"user": "hdps", "password": "geheim"})
        harness.wait_until(lambda: "leads the job" in said.read_text(), 30, "it leads")
        status = harness.run([harness.program("hdps"), "status", f"--scheduler=etcd://{etcd.address}/jobs/a",
                              f"--elect_file={self.folder / 'login.json'}"]).stdout
        self.assertIn("census", status)
        # Tokens are gone with the process that gave them; the leader logs in again.
        etcd.stop()
        etcd.start()
        deadline = time.monotonic() + 6
        harness.wait_until(lambda: time.monotonic() > deadline, 10, "the time of a lease")
        self.assertIsNone(process.poll(), said.read_text())

    def certificate(self, name, extensions):
        run = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-subj", f"/CN={name}"]
        sign = ["-x509", "-days", "2"] if name.endswith("ca") else []
        harness.run([*run, *sign, "-out", f"{name}.pem" if sign else f"{name}.csr"], cwd=self.tls)
        if not sign:
            (self.tls / "extensions").write_text(extensions)
            harness.run(["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                         "-CAcreateserial", "-days", "2", "-extfile", "extensions", "-out", f"{name}.pem"], cwd=self.tls)
        (self.tls / f"{name}.key").chmod(0o600)

    def test_tls(self):
        self.tls = self.folder / "tls"
        self.tls.mkdir()
        for name in ("ca", "other_ca"):
            self.certificate(name, "")
        both = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
        for name in ("server", "client"):
            self.certificate(name, both)
        etcd = EtcdServer(self.folder / "etcd", self.tls)
        self.addCleanup(etcd.stop)
        etcd.start()
        good = {name: str(self.tls / file) for name, file in (("ca", "ca.pem"), ("cert", "client.pem"),
                                                              ("key", "client.key"))}
        self.refused(etcd, {**good, "ca": str(self.tls / "other_ca.pem")}, 3, "certificate", seconds=8)
        self.refused(etcd, {"ca": good["ca"]}, 3, "has not answered for 8 s", seconds=8)
        _, said = self.scheduler(etcd, good)
        harness.wait_until(lambda: "leads the job" in said.read_text(), 30, "it leads")
        (self.tls / "client.key").chmod(0o644)
        self.refused(etcd, good, 2, "client.key can be read or written by other users")


class Mistakes(harness.DaemonsCase):
    """What is refused before anything is written, and an etcd that nobody serves."""

    def scheduler(self, *flags, expect=2):
        return harness.run([harness.program("hdps-scheduler"), f"--job={harness.CENSUS}",
                            f"--out={self.out('out')}", "--listen=tcp://127.0.0.1:0", "--http=none", *flags],
                           expect=expect).stderr

    def test_flags(self):
        login = self.folder / "login.json"
        login.write_text('{"user": "u", "password": "geheim"}')
        login.chmod(0o644)
        good = "--elect=etcd://127.0.0.1:1/jobs"
        for flags, said in ((["--elect=http://127.0.0.1:1/jobs"], "does not begin with etcd://"),
                            (["--elect=etcd://127.0.0.1:1"], "the prefix of the job's keys is missing"),
                            (["--elect=etcd://127.0.0.1/jobs"], "is no HOST:PORT"),
                            ([good, "--elect_ttl_s=1"], "give 2 to 300"),
                            ([good, "--elect_ttl_s=301"], "give 2 to 300"),
                            ([good, "--elect_ttl_s=100"], "cluster.scheduler_timeout_s=120"),
                            ([good, "--resume=never"], "give --resume=auto"),
                            ([good, f"--elect_file={login}"], "chmod 600"),
                            ([good, f"--elect_file={self.folder / 'none'}"], "--elect_file="),
                            (["--elect=etcd://etcd.example:1/jobs"], "is beyond this machine")):
            text = self.scheduler(*flags)
            self.assertIn(said, text)
            self.assertNotIn("geheim", text)
            self.assertFalse(self.out("out").exists(), flags)
        login.chmod(0o600)
        text = self.scheduler("--elect=etcd://etcd.example:1/jobs", f"--elect_file={login}")
        self.assertIn("would leave this machine in plain text", text)

    def test_an_etcd_that_nobody_serves(self):
        refusing, port = harness.refusing_socket()
        with refusing:
            text = self.scheduler(f"--elect=etcd://127.0.0.1:{port}/jobs", "--elect_ttl_s=2",
                                  "--set=cluster.scheduler_timeout_s=4", expect=3)
        self.assertIn("stands by as a candidate: etcd has not answered for", text)
        self.assertIn(f"http://127.0.0.1:{port}: ", text)
        self.assertIn("has not answered for 4 s", text)

    def test_a_member_tells_what_it_waits_for(self):
        refusing, port = harness.refusing_socket()
        with refusing:
            text = harness.run([harness.program("hdps-worker"), f"--job={harness.CENSUS}",
                                f"--scheduler=etcd://127.0.0.1:{port}/jobs",
                                "--set=cluster.rendezvous_timeout_s=3"], expect=3).stderr
        self.assertIn(f"etcd://127.0.0.1:{port}/jobs: http://127.0.0.1:{port}: ", text)


if __name__ == "__main__":
    harness.main()
