"""Runs scripts/cluster.sh on three machines made of namespaces, each with an sshd of the test."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "benchmarks" / "links"))
import namespaces  # noqa: E402  (it lies in another folder)

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
COUNT, OPERATOR, BYTES_PER_SECOND = 3, 3, 1e9 / 8
DEAD_AFTER_MS = 1500
QUICK = {"cluster.heartbeat_ms": 100, "cluster.dead_after_ms": DEAD_AFTER_MS}
CLUSTER = harness.ROOT / "scripts" / "cluster.sh"


def why_not():
    if SSHD is None or shutil.which("ssh") is None:
        return "there is no sshd or ssh (Debian: openssh-server, openssh-client)"
    return namespaces.why_not()


def keygen(path):
    harness.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])


class HostsFile(harness.Case):
    def refused(self, bundle, *flags):
        return harness.run([CLUSTER, f"--hosts={self.out('hosts')}", f"--out={self.out('out')}", f"--bundle={bundle}",
                            *flags], expect=2).stderr

    def test_mistakes_are_told_with_their_line(self):
        """Nothing is asked of a machine before the file is right."""
        bundle = self.out("bundle")
        bundle.write_text("")
        for text, said in (
                ("10.0.0.1\n10.0.0.2 slot=2\n", "hosts:2: 'slot=2': expected address=IP, slots=N"),
                ("10.0.0.1 slots=many\n", "hosts:1: slots=many: expected a count"),
                ("10.0.0.1 address=10.0.0\n", "hosts:1: address=10.0.0: expected an IPv4 address"),
                ("# none\n", "hosts: no machine in it"),
                ("10.0.0.1\n\n10.0.0.1\n", "hosts:3: '10.0.0.1' is in line 1 already"),
                ("10.0.0.1 scheduler\n10.0.0.2 scheduler\n", "hosts:2: 'scheduler' is in line 1 already"),
                ("10.0.0.1 slots=1\n10.0.0.2 slots=1\n", "--workers=3: the machines have room for 2 of them"),
                ("10.0.0.1 workers=4\n10.0.0.2 workers=0\n", "--workers=3: the machines have 4 of them"),
                ("10.0.0.1\nno.such.host.invalid\n", "hosts:2: 'no.such.host.invalid' has no address"),
                ("10.0.0.1\nlocalhost\n", "hosts:2: the address of 'localhost' is 127.0.0.1")):
            with self.subTest(text=text):
                self.out("hosts").write_text(text)
                self.assertIn(said, self.refused(bundle, f"--job={harness.CENSUS}", "--workers=3"))
        for flags, said in ((["--job=none.json"], "--job: there is no file 'none.json'"),
                            ([f"--job={harness.CENSUS}", "--epochs=3"], "unknown argument '--epochs=3'"),
                            ([f"--job={harness.CENSUS}", "--keys=none"], "--keys: there is no file 'allowed' in 'none'")):
            self.out("hosts").write_text("10.0.0.1\n")
            self.assertIn(said, self.refused(bundle, *flags))


@unittest.skipIf(why := why_not(), f"no machines reached by ssh here: {why}")
class ClusterSsh(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="hdps_test_ssh_"))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.machines = namespaces.Machines(COUNT + 1, BYTES_PER_SECOND)
        cls.machines.__enter__()
        cls.addClassCleanup(cls.machines.remove)
        os.makedirs("/run/sshd", exist_ok=True)
        keygen(cls.base / "user")
        harness.run([harness.program("hdps"), "keygen", f"--out={cls.base}/keys"])
        # What lies in here only machine 2 does not see.
        (cls.base / "hidden").mkdir()
        shutil.copytree(harness.CENSUS.parent, cls.base / "hidden" / "census")
        known = []
        for machine in range(COUNT):
            known.append(cls.start_sshd(machine))
        (cls.base / "known").write_text("".join(known))
        (cls.base / "mistaken").write_text("".join([*known[:2], f"10.77.0.3 {known[0].split(' ', 1)[1]}"]))
        cls.hosts(cls, "hosts", ["10.77.0.1", "10.77.0.2   # holds rows and trains", "10.77.0.3"])
        cls.make_bundle()

    @classmethod
    def start_sshd(cls, machine):
        """An sshd with a host key of its own; returns the line that knows it."""
        key, address = cls.base / f"host_{machine}", cls.machines.address(machine)
        keygen(key)
        config = cls.base / f"sshd_{machine}"
        config.write_text(f"ListenAddress {address}\nHostKey {key}\nAuthorizedKeysFile {cls.base}/user.pub\nPidFile none\n"
                          "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
                          "MaxStartups 50\nMaxSessions 50\n")
        # Each ssh command reads this user's .bashrc, and what that prints is not the job's.
        hide = "{ [ ! -f ~/.bashrc ] || mount --bind /dev/null ~/.bashrc; } && "
        if machine == 2:
            hide += f"mount -t tmpfs none {cls.base}/hidden && "
        log = open(cls.base / f"sshd_{machine}.log", "w", encoding="utf-8")
        cls.addClassCleanup(log.close)
        daemon = subprocess.Popen(cls.machines.command(machine, ["bash", "-c", f"{hide}exec {SSHD} -D -e -f {config}"]),
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cls.addClassCleanup(daemon.wait)
        cls.addClassCleanup(daemon.kill)
        harness.wait_until(lambda: "listening" in (cls.base / f"sshd_{machine}.log").read_text(), 30, "sshd")
        return f"{address} {(cls.base / f'host_{machine}.pub').read_text()}"

    @classmethod
    def make_bundle(cls):
        """The programs alone, as scripts/dev/bundle.sh lays them out; libraries are this machine's."""
        stage = cls.base / "stage" / "hdps"
        (stage / "bin").mkdir(parents=True)
        for role in ("scheduler", "server", "worker"):
            harness.run(["strip", "-o", stage / "bin" / f"hdps-{role}", harness.program(f"hdps-{role}")])
        shutil.copy(harness.ROOT / "scripts" / "local_cluster.sh", stage)
        harness.run(["tar", "-I", "gzip -1", "-C", stage.parent, "-cf", cls.base / "bundle.tar.gz", "hdps"])

    def hosts(self, name, lines):
        (self.base / name).write_text("\n".join(lines) + "\n")

    def command(self, out, *flags, hosts="hosts", known="known", job=harness.CENSUS, sets=None):
        ssh = f"ssh -F none -i {self.base}/user -o IdentitiesOnly=yes -o UserKnownHostsFile={self.base / known}"
        return self.machines.command(OPERATOR, [
            str(CLUSTER), f"--hosts={self.base / hosts}", f"--job={job}", f"--out={out}", f"--ssh={ssh}",
            f"--bundle={self.base}/bundle.tar.gz", f"--local={self.base}/local", f"--keys={self.base}/keys", *map(str, flags),
            *harness.merged_settings(sets)])

    def launch(self, *arguments, **named):
        process = subprocess.Popen(self.command(*arguments, **named), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, expect, seconds=400):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            logs = {log: log.read_text()[-1000:] for log in self.folder.rglob("scheduler.log")}
            self.fail(f"not ended within {seconds} s: {self.left()}; {logs}")
        self.assertEqual(process.returncode, expect, f"{out[-2000:]}\n{err[-3000:]}")
        self.nothing_is_left()
        return out, err

    def inner(self, process):
        """The number of cluster.py itself: signals are its, not those of what put it on its machine."""
        def find():
            for number in self.machines.processes(OPERATOR):
                try:
                    words = pathlib.Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue  # It has ended.
                if any(word.endswith(b"/cluster.py") for word in words[:3]) and words[0].endswith(b"python3"):
                    return int(number)
            return None
        harness.wait_until(lambda: find() or process.poll() is not None, 30, "the launcher")
        return find()

    def check_keys(self):
        """Each machine has the secrets of the roles that run there, for this user alone."""
        folders = list((self.base / "local").glob("run.*/keys"))
        self.assertEqual(sorted(len(list(folder.iterdir())) for folder in folders), [3, 3, 4])
        for file in (file for folder in folders for file in folder.iterdir()):
            self.assertIn(file.name, ("allowed", "scheduler.key", "server.key", "worker.key"))
            if file.suffix == ".key":
                self.assertEqual(file.stat().st_mode & 0o777, 0o600)

    def left(self):
        """What runs on the machines beyond their sshd, and on the operator's."""
        names = []
        for machine in range(COUNT + 1):
            for number in self.machines.processes(machine):
                try:
                    words = pathlib.Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                if words and not ("sshd_" in words or "[listener]" in words or words.startswith("sshd:")):
                    names.append(f"{machine}: {words[:120]}")
        return names

    def nothing_is_left(self, seconds=15):
        harness.wait_until(lambda: not self.left(), seconds, f"the end of all: {self.left()}")
        self.assertEqual([p.name for p in (self.base / "local").glob("*") if not p.name.startswith("bundle-")], [])

    def wait_for_step(self, out, step):
        def trained():
            lines = (out / "metrics.jsonl").read_text().splitlines() if (out / "metrics.jsonl").exists() else []
            return any(int(found[1]) >= step for line in lines if (found := re.search(r'"step": ?(\d+)', line)))
        harness.wait_until(trained, 90, f"step {step}")

    def test_a_job_on_three_machines_is_the_local_one(self):
        """Digest, output and logs are those of local_cluster.sh; the second run copies no programs."""
        plain = self.out("plain")
        local = harness.run([harness.ROOT / "scripts" / "local_cluster.sh", f"--job={harness.CENSUS}", f"--out={plain}",
                             "--servers=3", "--workers=3"], env={**os.environ, "HDPS_BIN": str(harness.BIN)})
        out, err = self.finish(self.launch(self.out("three")), 0)
        self.assertEqual(harness.summary_of(self.out("three"))["digest"], harness.summary_of(plain)["digest"])

        def shape(text):
            # Each run has a token of its own.
            text = re.sub(r"\S+/http_token\b|token=\w+", "TOKEN", text)
            text = re.sub(r"[\d.,]+", "N", text.replace(str(self.out("three")), "OUT").replace(str(plain), "OUT"))
            # Progress is told by the clock, so a slow run tells more of it.
            return re.sub(r"^.*epoch N/N .*examples/s.*\n", "", text, flags=re.MULTILINE)

        self.assertEqual(shape(out), shape(local.stdout))
        self.assertEqual(shape(err), shape(local.stderr))
        logs = sorted(p.name for p in (plain / "log").iterdir())
        self.assertEqual(sorted(p.name for p in (self.out("three") / "log").iterdir()), logs)
        programs = list((self.base / "local").glob("bundle-*"))
        self.assertEqual(len(programs), 1)
        before = programs[0].stat().st_ino
        self.hosts("otherwise", ["10.77.0.2 servers=1 workers=0", "root@10.77.0.3 slots=2 servers=0",
                                 "10.77.0.1 scheduler workers=1"])
        self.finish(self.launch(self.out("again"), "--servers=3", "--workers=3", hosts="otherwise"), 0)
        self.assertEqual(harness.summary_of(self.out("again"))["digest"], harness.summary_of(plain)["digest"])
        self.assertEqual(programs[0].stat().st_ino, before)
        harness.figure(f"three machines over ssh, census: digest {harness.summary_of(plain)['digest']} as by "
                       f"local_cluster.sh, and with servers and workers dealt out otherwise")

    def cut(self, machine, seconds):
        """Takes the machine's cable out of the switch for so long."""
        port = ["ip", "-n", self.machines.switch, "link", "set", f"port_{machine}"]
        harness.run([*port, "down"])
        try:
            harness.run(["sleep", seconds])
        finally:
            harness.run([*port, "up"])

    def test_a_machine_cut_off_and_back(self):
        """Shorter than dead_after: nobody is lost; longer: what was lost is trained again; same digest."""
        sets = {**QUICK, "train.epochs": 12, "checkpoint.every_steps": 100}
        plain = harness.train(harness.CENSUS, self.out("plain"), servers=3, workers=3, sets=sets)
        out = self.out("cut")
        process = self.launch(out, sets=sets)
        self.wait_for_step(out, 110)
        self.cut(2, 0.4 * DEAD_AFTER_MS / 1000)
        self.wait_for_step(out, 210)
        self.assertNotIn("is lost", (out / "log" / "scheduler.log").read_text())
        self.cut(2, 3 * DEAD_AFTER_MS / 1000)
        self.finish(process, 0)
        summary = harness.summary_of(out)
        self.assertEqual(summary["digest"], plain["digest"])
        self.assertGreaterEqual(summary["failures_survived"], 1)
        harness.figure(f"a machine of three cut off for {0.4 * DEAD_AFTER_MS:.0f} ms: nobody lost; for "
                       f"{3 * DEAD_AFTER_MS} ms: {summary['failures_survived']} failures survived; same digest")

    def test_stopped_by_ctrl_c_and_when_the_launcher_dies(self):
        """A signal drains and saves the job with status 0; without its launcher it does so by itself."""
        sets = {**QUICK, "train.epochs": 100000}
        for how in (signal.SIGINT, signal.SIGKILL):
            with self.subTest(how=how.name):
                out = self.out(how.name)
                process = self.launch(out, sets=sets)
                number = self.inner(process)
                self.wait_for_step(out, 10)
                self.check_keys()
                os.kill(number, how)
                if how == signal.SIGINT:
                    self.finish(process, 0)
                else:
                    process.communicate(timeout=60)
                    self.nothing_is_left(60)
                self.assertIsNotNone(harness.summary_of(out)["stopped_at"])

    def test_what_a_machine_lacks_is_told_with_its_name(self):
        hidden = self.base / "hidden"
        self.hosts("unreachable", ["10.77.0.1", "10.77.0.2", "10.77.0.9"])
        for status, said, arguments in (
                (3, "10.77.0.9 cannot be reached: ssh: connect to host 10.77.0.9", {"hosts": "unreachable"}),
                (2, "10.77.0.3 cannot be reached: ", {"known": "mistaken"}),
                (2, "Host key verification failed", {"known": "mistaken"}),
                (2, f"10.77.0.3: --job: there is no file '{hidden}/census/census.json'",
                 {"job": hidden / "census" / "census.json"})):
            _, err = self.finish(self.launch(self.out("none"), **arguments), status)
            self.assertIn(said, err)
            self.assertFalse((self.out("none") / "log").exists())
        _, err = self.finish(self.launch(hidden / "out"), 2)
        self.assertIn(f"10.77.0.3: --out: '{hidden}/out' is not the folder of 10.77.0.1", err)

    def test_a_part_that_cannot_start_ends_the_job_with_its_status(self):
        broken = self.base / "stage" / "hdps" / "bin" / "hdps-server"
        broken.write_text("#!/bin/sh\ncase $* in *10.77.0.2*) echo out of luck >&2; exit 2;; esac\nexec sleep 100\n")
        bundle = self.base / "broken.tar.gz"
        harness.run(["tar", "-I", "gzip -1", "-C", self.base / "stage", "-cf", bundle, "hdps"])
        _, err = self.finish(self.launch(self.out("broken"), f"--bundle={bundle}"), 2)
        self.assertIn("10.77.0.2: local_cluster.sh: server_1 ended with status 2; its last words:\n10.77.0.2: out of luck", err)
        self.assertIn("error: the part of 10.77.0.2 ended with status 2, and so the job", err)


if __name__ == "__main__":
    harness.main()
