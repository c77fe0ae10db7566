"""Tests launchers: one run at a time in an --out, children that end with their launcher, restarts."""
import os
import re
import signal
import socket
import subprocess
import time

import harness

# A scheduler that is gone is given up after a second and a half.
QUICK = {"cluster.heartbeat_ms": 100, "cluster.dead_after_ms": 1500}
LONG = {"train.epochs": 100000, **QUICK}


class Launchers(harness.Case):
    def setUp(self):
        super().setUp()
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        for number in harness.processes_with(str(self.folder)):
            os.kill(number, signal.SIGKILL)

    def start(self, *command, env=None, stdin=subprocess.DEVNULL):
        process = subprocess.Popen([str(c) for c in command], stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "HDPS_BIN": str(harness.BIN), **(env or {})})
        self.running.append(process)
        return process

    def cluster(self, out, *flags, sets=None, env=None, stdin=subprocess.DEVNULL):
        return self.start(harness.ROOT / "scripts" / "local_cluster.sh", f"--job={harness.CENSUS}",
                          f"--out={out}", *harness.merged_settings(sets), *flags, env=env, stdin=stdin)

    def train(self, out):
        return self.start(harness.program("hdps"), "train", f"--job={harness.CENSUS}",
                          f"--out={out}", *harness.merged_settings(LONG))

    def finish(self, process, expect, seconds=60):
        said = process.communicate(timeout=seconds)[0]
        self.assertEqual(process.returncode, expect, said[-3000:])
        return said

    def wait_for_training(self, out):
        metrics = out / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and metrics.read_text(), 30, "a line of metrics")

    def number_of(self, out, name):
        return int((out / "pid" / f"{name}.pid").read_text())

    def test_one_run_at_a_time_in_an_out(self):
        """A second run of any form ends with 2 and names who has the folder; a dead one has nothing."""
        out = self.out("run")
        first = self.train(out)
        self.wait_for_training(out)
        for program in (["hdps", "train"], ["hdps-scheduler"]):
            second = harness.run([harness.program(program[0]), *program[1:], f"--job={harness.CENSUS}",
                                  f"--out={out}", "--set=train.epochs=1"], expect=2)
            self.assertIn(f"hdps train ({socket.gethostname()}:{first.pid})", second.stderr)
            self.assertIn(f"--out={out} is in use", second.stderr)
        said = harness.cluster(harness.CENSUS, out, expect=2).stderr
        self.assertIn(f"{socket.gethostname()}:{first.pid}", said)
        first.send_signal(signal.SIGTERM)
        self.finish(first, 0)
        self.assertFalse((out / "lock").exists())

        killed = self.train(self.out("killed"))
        self.wait_for_training(self.out("killed"))
        killed.kill()
        killed.communicate()
        self.assertTrue((self.out("killed") / "lock").exists())
        harness.train(harness.CENSUS, self.out("killed"), sets={"train.epochs": 1})

    def test_a_hang_up_drains(self):
        """SIGHUP, as of a closed terminal, stops as SIGTERM does; under nohup it stops nothing."""
        out = self.out("train")
        run = self.train(out)
        self.wait_for_training(out)
        run.send_signal(signal.SIGHUP)
        self.finish(run, 0)
        self.assertIsNotNone(harness.summary_of(out)["stopped_at"])
        out = self.out("cluster")
        launcher = self.cluster(out, sets=LONG)
        self.wait_for_training(out)
        launcher.send_signal(signal.SIGHUP)
        self.finish(launcher, 0)
        self.assertIsNotNone(harness.summary_of(out)["stopped_at"])
        self.assertEqual(harness.processes_with(str(out)), [])
        out = self.out("nohup")
        run = self.start("nohup", harness.program("hdps"), "train", f"--job={harness.CENSUS}",
                         f"--out={out}", *harness.merged_settings({**LONG, "train.epochs": 3}))
        self.wait_for_training(out)
        run.send_signal(signal.SIGHUP)
        self.finish(run, 0)
        self.assertIsNone(harness.summary_of(out)["stopped_at"])

    def test_who_is_told_twice_at_once_is_told_once(self):
        """As by GNU timeout, which tells a process and its group: it drains and saves."""
        out = self.out("run")
        launcher = self.cluster(out, sets=LONG)
        self.wait_for_training(out)
        scheduler = self.number_of(out, "scheduler")
        for _ in range(2):
            os.kill(scheduler, signal.SIGTERM)
        self.finish(launcher, 0)
        self.assertIsNotNone(harness.summary_of(out)["stopped_at"])

    def test_who_asks_without_keys_hears_of_them(self):
        """A scheduler with keys answers nobody without one: that may be why there is silence."""
        refusing, port = harness.refusing_socket()
        with refusing:
            said = harness.run([harness.program("hdps"), "scale", "--scale_workers=+1",
                                f"--scheduler=tcp://127.0.0.1:{port}"], expect=3)
        self.assertIn("give --keys=DIR", said.stderr)

    def test_without_a_temporary_folder_it_says_so(self):
        launcher = self.cluster(self.out("run"), env={"TMPDIR": "/nonexistent"})
        self.assertIn("local_cluster.sh: error: no folder can be made in /nonexistent; set TMPDIR",
                      self.finish(launcher, 2))

    def test_children_end_with_their_launcher(self):
        """A launcher that is killed leaves a drained, saved job and no process."""
        out = self.out("run")
        launcher = self.cluster(out, "--servers=2", "--workers=2", sets=LONG)
        self.wait_for_training(out)
        self.assertEqual(len(harness.processes_with(str(out))), 5)
        launcher.kill()
        launcher.wait()
        harness.wait_until(lambda: not harness.processes_with(str(out)), 30, "the end of all daemons")
        self.assertIsNotNone(harness.summary_of(out)["stopped_at"])

    # What --worker_command starts; a worker of hdps will do, for the launcher does not know.
    COMMAND = (f"echo rank $RANK of $WORLD_SIZE; exec {harness.BIN}/hdps-worker --job={harness.CENSUS} "
               "--scheduler=$HDPS_SCHEDULER --rank=$RANK")

    def test_a_program_takes_the_place_of_hdps_worker(self):
        """It is told whom to join and as which rank, started again when killed, and ended with the job."""
        out = self.out("run")
        launcher = self.cluster(out, "--workers=2", f"--worker_command={self.COMMAND}", sets=LONG)
        self.wait_for_training(out)
        os.kill(self.number_of(out, "worker_1"), signal.SIGKILL)
        log = out / "log" / "worker_1.log"
        harness.wait_until(lambda: log.read_text().count("rank 1 of 2\n") == 2, 30, "its second start")
        # All go back if it died while the job saved or evaluated.
        harness.wait_until(lambda: re.search("was replaced in place|the job goes on from",
                                             (out / "log" / "scheduler.log").read_text()), 60, "its rank")
        launcher.send_signal(signal.SIGTERM)
        said = self.finish(launcher, 0)
        self.assertIn("worker_1 was killed by signal 9 (KILL)", said)
        self.assertIn("starting worker_1 again in 0.2 s", said)
        self.assertIn("rank 0 of 2\n", (out / "log" / "worker_0.log").read_text())
        self.assertIsNotNone(harness.summary_of(out)["stopped_at"])
        self.assertEqual(list((out / "pid").iterdir()), [])

    def test_a_program_ends_with_its_launcher(self):
        """With what it has started; and without that where the launcher was killed."""
        for how, number in (("told", signal.SIGTERM), ("killed", signal.SIGKILL)):
            with self.subTest(how=how):
                out = self.out(how)
                mark = f"{self.folder}/hdps_{how}"
                command = f"(exec -a {mark} sleep 1000) & exec -a {mark} sleep 1000"
                launcher = self.cluster(out, f"--worker_command={command}", sets=LONG)
                harness.wait_until(lambda: len(harness.processes_with(mark)) == 2, 30, "both")
                program = self.number_of(out, "worker_0")
                launcher.send_signal(number)
                launcher.wait()
                harness.wait_until(lambda: program not in harness.processes_with(mark), 30, "its end")
                if how == "told":
                    self.assertEqual(harness.processes_with(mark), [])

    def test_workers_that_come_by_themselves(self):
        out = self.out("run")
        launcher = self.cluster(out, "--workers=1", "--workers_come", sets={**QUICK, "train.epochs": 1})
        for line in launcher.stdout:
            if "HDPS_SCHEDULER=" in line:
                break
        address = line.split("HDPS_SCHEDULER=")[1].strip()
        harness.run(["bash", "-c", self.COMMAND], env={**os.environ, "HDPS_SCHEDULER": address, "RANK": "0"})
        self.finish(launcher, 0)
        self.assertEqual(harness.summary_of(out)["workers"], 1)
        self.assertFalse((out / "log" / "worker_0.log").exists())

    def test_flags_of_workers_that_contradict(self):
        for flags, why in ((["--workers_come"], "give one of them"), (["--max_bad_rows=1"], "is for hdps-worker")):
            said = self.finish(self.cluster(self.out("run"), "--worker_command=true", *flags), 2)
            self.assertIn(why, said)

    def test_who_is_watched_ends_when_told_or_left_alone(self):
        """By a line, also one that comes in two pieces; by the end of the input; by silence."""
        for how in ("told", "ended", "silent"):
            with self.subTest(how=how):
                out = self.out(how)
                watched = "--watched=2" if how == "silent" else "--watched=1000"
                launcher = self.cluster(out, watched, sets=LONG, stdin=subprocess.PIPE)
                self.wait_for_training(out)
                if how == "told":
                    for piece in ("\nst", "op\n"):
                        launcher.stdin.write(piece)
                        launcher.stdin.flush()
                        time.sleep(0.4)  # Longer than a read lasts: that is what is tried.
                elif how == "ended":
                    launcher.stdin.close()
                harness.wait_until(lambda: launcher.poll() is not None, 60, f"the end of who was {how}")
                self.assertEqual(launcher.returncode, 0)
                self.assertEqual("nothing was heard for 2 s" in launcher.stdout.read(), how == "silent")
                self.assertIsNotNone(harness.summary_of(out)["stopped_at"])
                self.assertEqual(harness.processes_with(str(out)), [])
                launcher.stdin.close()

    def test_whose_parent_has_ended_does_not_start(self):
        said = harness.run([harness.program("hdps-worker"), f"--job={harness.CENSUS}",
                            "--scheduler=tcp://127.0.0.1:9", f"--die_with_parent={2**31 - 1}"], expect=2)
        self.assertIn("--die_with_parent", said.stderr)

    def test_a_killed_scheduler_is_started_again_where_it_was(self):
        """The job resumes by itself from its newest checkpoint and ends as if nothing had happened."""
        sets = {**QUICK, "train.epochs": 6, "checkpoint.every_steps": 50}
        expected = harness.train(harness.CENSUS, self.out("undisturbed"), sets=sets)["digest"]
        out = self.out("run")
        launcher = self.cluster(out, sets=sets)
        harness.wait_until(lambda: list(out.glob("checkpoint/*/manifest.json")), 30, "a checkpoint")
        os.kill(self.number_of(out, "scheduler"), signal.SIGKILL)
        said = self.finish(launcher, 0)
        self.assertIn("scheduler was killed by signal 9 (KILL)", said)
        self.assertIn("starting scheduler again in 0.2 s", said)
        self.assertEqual(harness.summary_of(out)["digest"], expected)

    def test_a_killed_member_never_ends_the_job_with_its_signal(self):
        for member in ("server_0", "worker_0"):
            for restart, statuses in (("never", (3,)), ("on-failure", (0,))):
                with self.subTest(member=member, restart=restart):
                    out = self.out(f"{member}_{restart}")
                    launcher = self.cluster(out, f"--restart={restart}", sets={**QUICK, "train.epochs": 12})
                    self.wait_for_training(out)
                    os.kill(self.number_of(out, member), signal.SIGKILL)
                    said = launcher.communicate(timeout=120)[0]
                    self.assertIn(launcher.returncode, statuses, said)
                    self.assertIn(f"{member} was killed by signal 9 (KILL)", said)
                    self.assertEqual(restart != "never", f"starting {member} again in 0.2 s" in said, said)

    def programs_with(self, name, text):
        """A folder of all programs, of which one is a script that notes its starts."""
        folder = self.out("bin")
        folder.mkdir()
        for program in harness.BIN.glob("hdps*"):
            (folder / program.name).symlink_to(program)
        (folder / name).unlink()
        (folder / name).write_text(f"#!/bin/bash\necho $$ >>{self.out('starts')}\n{text}\n")
        (folder / name).chmod(0o755)
        return {"HDPS_BIN": str(folder)}

    def starts(self):
        return len(self.out("starts").read_text().split())

    def test_a_crash_loop_is_given_up(self):
        env = self.programs_with("hdps-worker", "echo out of luck >&2; kill -SEGV $$")
        said = self.finish(self.cluster(self.out("run"), "--workers=1", sets=QUICK, env=env), 3)
        self.assertEqual(self.starts(), 5)
        self.assertEqual(re.findall(r"again in ([\d.]+) s", said), ["0.2", "0.4", "0.8", "1.6"])
        self.assertEqual(said.count("out of luck"), 1, said)
        self.assertIn("worker_0 has died 5 times in a minute: gave up; "
                      "what came first: worker_0 was killed by signal 11 (SEGV)", said)
        self.assertEqual(harness.processes_with(str(self.folder)), [])

    def test_who_was_mistaken_is_not_started_again(self):
        env = self.programs_with("hdps-server", "echo wrong port >&2; exit 2")
        said = self.finish(self.cluster(self.out("run"), sets=QUICK, env=env), 2)
        self.assertEqual(self.starts(), 1)
        self.assertIn("server_0 ended with status 2; its last words:\nwrong port", said)
        self.assertNotIn("again", said)

    def test_too_large_a_file_is_an_error(self):
        """Under a limit on file sizes a save fails as on a full disk; no signal ends the process."""
        done = harness.run(["bash", "-c", f"ulimit -f 8; exec {harness.program('hdps')} train "
                            f"--job={harness.CENSUS} --out={self.out('run')} "
                            "--set=train.epochs=1,checkpoint.retry_s=0"], expect=3)
        self.assertIn("File too large", done.stderr)


if __name__ == "__main__":
    harness.main()
