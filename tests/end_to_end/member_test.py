"""Tests hdps member: by each launcher's variables, by mpirun, and after a kill, it ends as local_cluster.sh does."""
import os
import pathlib
import shutil
import signal
import subprocess

import harness

SERVERS, WORKERS = 2, 2
SETS = {"train.epochs": 2, "cluster.heartbeat_ms": 100, "cluster.dead_after_ms": 1500}
# What starts this test may set some of them itself.
FOREIGN = ("HDPS_", "MS_", "DMLC_", "PMI", "OMPI_", "MPI_", "SLURM_", "KUBERNETES_")


def clean_environment(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


def numbered(number, **names):
    return {name: number if value is None else value for name, value in names.items()}


def by_words(variable, words):
    """One environment a member, of those that get a word for their role."""
    scheduler, server, worker = words
    return [{variable: word} for word in [scheduler] + [server] * SERVERS + [worker] * WORKERS]


ALL = 1 + SERVERS + WORKERS
KINDS = {
    "hdps": by_words("HDPS_ROLE", ("scheduler", "server", "worker")),
    "mindspore": [{**one, "MS_SERVER_NUM": SERVERS, "MS_WORKER_NUM": WORKERS, "MS_NODE_ID": f"pod-{i}"}
                  for i, one in enumerate(by_words("MS_ROLE", ("MS_SCHED", "MS_PSERVER", "MS_WORKER")))],
    "ps-lite": [{**one, "DMLC_NUM_SERVER": SERVERS, "DMLC_NUM_WORKER": WORKERS}
                for one in by_words("DMLC_ROLE", ("scheduler", "server", "worker"))],
    "pmix": [numbered(i, PMIX_RANK=None) for i in range(ALL)],
    "pmi": [numbered(i, PMI_RANK=None, PMI_SIZE=ALL, MPI_LOCALRANKID=None, MPI_LOCALNRANKS=ALL) for i in range(ALL)],
    "open_mpi": [numbered(i, OMPI_COMM_WORLD_RANK=None, OMPI_COMM_WORLD_SIZE=ALL, OMPI_COMM_WORLD_LOCAL_RANK=None,
                          OMPI_COMM_WORLD_LOCAL_SIZE=ALL) for i in range(ALL)],
    "slurm": [numbered(i, SLURM_PROCID=None, SLURM_NTASKS=ALL, SLURM_LOCALID=None, SLURM_NNODES=1) for i in range(ALL)],
}
MPIRUN = {"openmpi": ["--allow-run-as-root", "--oversubscribe"], "mpich": []}


class Members(harness.DaemonsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile
        folder = pathlib.Path(tempfile.mkdtemp(prefix="hdps_local_"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.digest = harness.cluster(harness.CENSUS, folder, SERVERS, WORKERS, SETS)["digest"]

    def kill_all(self):
        super().kill_all()
        for number in harness.processes_with(str(self.folder)):
            os.kill(number, signal.SIGKILL)

    def command(self, out, *flags, sets=None):
        return [harness.program("hdps"), "member", f"--job={harness.CENSUS}", f"--out={out}",
                *harness.merged_settings(sets or SETS), *flags]

    def begin(self, command, env=None):
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=env or clean_environment())
        self.running.append(process)
        return process

    def finish(self, process, expect=0):
        said = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, expect, said[-3000:])
        return said

    def test_variables_of_each_kind(self):
        """Members in any order; those with numbers alone keep logs of their own."""
        for kind, members in KINDS.items():
            with self.subTest(kind):
                out = self.out(kind)
                counts = [f"--servers={SERVERS}", f"--workers={WORKERS}"] if kind in ("hdps", "pmix") else []
                if kind in ("pmi", "open_mpi", "slurm"):
                    counts = [f"--servers={SERVERS}"]
                running = [self.begin(self.command(out, *counts), clean_environment(**one)) for one in reversed(members)]
                for process in running:
                    self.finish(process)
                self.assertEqual(harness.summary_of(out)["digest"], self.digest)
                self.assertFalse((out / "scheduler.address").exists())

    def mpirun(self, kind):
        found = shutil.which(f"mpirun.{kind}")
        if found is None:
            self.skipTest(f"mpirun.{kind} is missing (scripts/install_deps.sh --launchers)")
        return [found, *MPIRUN[kind], "-n", ALL]

    def number_of(self, program, out):
        """The process of this program, as a child of hdps member."""
        for number in harness.processes_with(str(out)):
            try:
                words = pathlib.Path(f"/proc/{number}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if words[0].endswith(program):
                return number
        return None

    def test_mpirun(self):
        for kind in MPIRUN:
            with self.subTest(kind):
                out = self.out(kind)
                self.finish(self.begin(self.mpirun(kind) + self.command(out, f"--servers={SERVERS}")))
                self.assertEqual(harness.summary_of(out)["digest"], self.digest)
                self.assertEqual(harness.processes_with(str(out)), [])

    def test_who_is_killed_comes_back(self):
        """A worker, a server and the scheduler, each once, under mpirun, which itself starts nobody again."""
        sets = {**SETS, "train.epochs": 12, "checkpoint.every_steps": 64}
        digest = harness.cluster(harness.CENSUS, self.out("local"), SERVERS, WORKERS, sets)["digest"]
        for kind, program in (("openmpi", "hdps-worker"), ("mpich", "hdps-server"), ("openmpi", "hdps-scheduler")):
            with self.subTest(program):
                out = self.out(program)
                process = self.begin(self.mpirun(kind) + self.command(out, f"--servers={SERVERS}", sets=sets))
                metrics = out / "metrics.jsonl"
                harness.wait_until(lambda: metrics.exists() and metrics.read_text(), 60, "a line of metrics")
                os.kill(self.number_of(program, out), signal.SIGKILL)
                said = self.finish(process)
                self.assertIn("was killed by signal 9 (KILL); starting it again in 0.2 s", said)
                self.assertEqual(harness.summary_of(out)["digest"], digest)

    def test_a_signal_is_passed_on(self):
        """SIGTERM to mpirun's members drains and saves the job; started again it ends as if nothing had been."""
        out = self.out("run")
        sets = {**SETS, "train.epochs": 12}
        command = self.mpirun("mpich") + self.command(out, f"--servers={SERVERS}", sets=sets)
        process = self.begin(command)
        metrics = out / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and metrics.read_text(), 60, "a line of metrics")
        for number in harness.processes_with(str(out)):
            if b"\0member\0" in pathlib.Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGTERM)
        self.finish(process)
        self.assertIsNotNone(harness.summary_of(out).get("stopped_at"))
        self.finish(self.begin(command))
        digest = harness.cluster(harness.CENSUS, self.out("local"), SERVERS, WORKERS, sets)["digest"]
        self.assertEqual(harness.summary_of(out)["digest"], digest)

    def test_mistakes(self):
        """Each says place, value and mend, and ends with 2."""
        for variables, flags, said in (
                ({}, [], "no variable tells the role of this member; set HDPS_ROLE"),
                ({"HDPS_ROLE": "boss"}, [], "--role=boss is no role; give scheduler, server or worker"),
                ({"MS_ROLE": "MS_WORKER", "DMLC_ROLE": "server"}, [], "MS_ROLE=MS_WORKER and DMLC_ROLE=server contradict"),
                ({"PMI_RANK": 1, "OMPI_COMM_WORLD_RANK": 2}, ["--servers=1", "--workers=1"], "contradict each other"),
                ({"PMIX_RANK": 5}, ["--servers=2", "--workers=2"], "PMIX_RANK=5 is beyond all"),
                ({"SLURM_PROCID": 0, "SLURM_NTASKS": 3}, ["--servers=2"], "SLURM_NTASKS=3 leaves no worker"),
                ({"HDPS_ROLE": "worker"}, ["--restart=always"], "--restart=always: expected never or on-failure"),
                ({"HDPS_ROLE": "worker"}, ["--spil_path=/tmp"], "did you mean --spill_path?")):
            with self.subTest(said):
                done = harness.run(self.command(self.out("none"), *flags), expect=2, env=clean_environment(**variables))
                self.assertIn(said, done.stderr)
        done = harness.run([harness.program("hdps"), "member", f"--job={harness.CENSUS}"], expect=2,
                           env=clean_environment(HDPS_ROLE="worker"))
        self.assertIn("--out is missing", done.stderr)

    def test_takes_the_flags_of_all_programs(self):
        def flags_of(*command):
            import re
            said = harness.run([harness.program(command[0]), *command[1:], "--help"]).stdout
            return set(re.findall(r"^  --(\w+)", said, re.MULTILINE))
        union = set.union(*[flags_of(f"hdps-{role}") for role in ("scheduler", "server", "worker")])
        self.assertEqual(flags_of("hdps", "member"), union | {"role", "restart"})


if __name__ == "__main__":
    harness.main()
