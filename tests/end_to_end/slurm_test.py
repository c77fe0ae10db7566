"""Tests hdps deploy --to=slurm: the script runs under a Slurm of this test's own, on one node without cgroups."""
import getpass
import os
import pathlib
import shutil
import socket
import subprocess

import harness

SERVERS, WORKERS = 1, 2
NEEDED = ("slurmctld", "slurmd", "munged", "mungekey", "sbatch", "squeue", "scancel", "scontrol")
CONF = """ClusterName=hdps
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={daemon}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1,requeue_delay=0
PlugStackConfig={folder}/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=1000000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        missing = [name for name in NEEDED if shutil.which(name) is None]
        if missing:
            self.skipTest(f"{', '.join(missing)} missing (scripts/install_deps.sh --launchers)")
        if getpass.getuser() != "root":
            self.skipTest("slurmd starts jobs as root alone")
        self.folder.chmod(0o755)
        host = socket.gethostname().split(".")[0]
        self.conf = self.out("slurm.conf")
        for name in ("state", "spool"):
            self.out(name).mkdir()
        self.conf.write_text(CONF.format(folder=self.folder, host=host, user="root", control=harness.free_port(),
                                         daemon=harness.free_port()))
        self.env = {"SLURM_CONF": str(self.conf), "HDPS_PROGRAM": harness.program("hdps")}
        key = self.out("munge.key")
        harness.run(["mungekey", "--create", f"--keyfile={key}"])
        key.chmod(0o600)
        self.daemon("munged", "--foreground", f"--key-file={key}", f"--socket={self.out('munge.socket')}",
                    f"--pid-file={self.out('munged.pid')}", f"--log-file={self.out('munged.log')}",
                    f"--seed-file={self.out('munge.seed')}", "--force")
        harness.wait_until(lambda: self.out("munge.socket").exists(), 20, "munge's socket")
        self.daemon("slurmctld", "-D", "-f", self.conf)
        self.daemon("slurmd", "-D", "-f", self.conf, "-N", host)
        harness.wait_until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%t", expect=None), 60,
                           f"an idle node; see {self.folder}")

    def daemon(self, name, *flags):
        """Its words go into its own log; a pipe that nobody reads would fill."""
        with open(self.out(f"{name}.said"), "w") as said:
            process = subprocess.Popen([shutil.which(name), *map(str, flags)], stdin=subprocess.DEVNULL, stdout=said,
                                       stderr=said, env={**os.environ, **self.env})
        self.running.insert(0, process)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def kill_all(self):
        if getattr(self, "env", None):
            subprocess.run(["scancel", "--user=root"], env={**os.environ, **self.env}, capture_output=True, timeout=30)
            try:
                harness.wait_until(lambda: not harness.processes_with(str(self.folder)), 15, "the end of the job's members")
            except AssertionError:
                for number in harness.processes_with(str(self.folder)):
                    os.kill(number, 9)
        for process in self.running:
            process.terminate()
            process.wait(timeout=20)

    def ask(self, *command, expect=0):
        done = harness.run(command, expect=expect, env={**os.environ, **self.env})
        return done.stdout

    def submit(self, out, sets):
        script = self.out(f"{out.name}.sh")
        script.write_text(harness.run([harness.program("hdps"), "deploy", harness.CENSUS, "--to=slurm", f"--out={out}",
                                       f"--servers={SERVERS}", f"--workers={WORKERS}", "--server_memory=1Gi",
                                       "--worker_memory=1Gi", "--server_cores=1", "--worker_cores=1",
                                       *harness.merged_settings(sets)]).stdout)
        self.number = self.ask("sbatch", "--parsable", "--time=10", f"--output={self.folder}/{out.name}.txt", script).strip()
        return self.out(f"{out.name}.txt")

    def state(self):
        return self.ask("scontrol", "show", "job", self.number, expect=None)

    def wait_for_end(self, said, seconds=120):
        hastened = []

        def ended():
            state = self.state()
            if any(f"JobState={word}" in state for word in ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")):
                raise AssertionError(f"{state}\n{said.read_text()[-3000:] if said.exists() else 'no output'}")
            if "JobState=PENDING" in state and "Restarts=1" in state and not hastened:
                # A job that was put back would wait two minutes for its next turn. In the second in which its first
                # one ended Slurm would refuse it: "Job credential revoked".
                self.ask("scontrol", "update", f"JobId={self.number}", "StartTime=now+3seconds")
                hastened.append(self.number)
            return "JobState=COMPLETED" in state
        harness.wait_until(ended, seconds, "the end of Slurm's job")

    def local(self, sets):
        return harness.cluster(harness.CENSUS, self.out("local"), SERVERS, WORKERS, sets)["digest"]

    def test_the_script_trains_and_goes_on_after_a_signal(self):
        """The signal is the one that Slurm sends before the time limit, whose shortest is a minute."""
        quick = {"train.epochs": 2}
        out = self.out("whole")
        self.wait_for_end(self.submit(out, quick))
        self.assertEqual(harness.summary_of(out)["digest"], self.local(quick))
        shutil.rmtree(self.out("local"))

        longer = {"train.epochs": 30}
        out = self.out("stopped")
        said = self.submit(out, longer)
        metrics = out / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and metrics.read_text(), 60, "a line of metrics")
        self.ask("scancel", "--signal=TERM", self.number)
        harness.wait_until(lambda: "Restarts=1" in self.state(), 60, "the job is put back")
        self.wait_for_end(said, 240)
        self.assertIsNone(harness.summary_of(out).get("stopped_at"))
        self.assertEqual(harness.summary_of(out)["digest"], self.local(longer))


if __name__ == "__main__":
    harness.main()
