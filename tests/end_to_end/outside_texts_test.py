"""Tests that no text of a file, frame or name controls a terminal: runs all commands and daemons on files
full of control bytes, marks that turn the writing direction, and bytes that are not UTF-8."""
import collections
import json
import os
import random
import re
import shutil
import subprocess
import unicodedata

import harness
from zmq_dealer import Dealers, Name

HDPS = harness.program("hdps")
# Clears the screen, names the window, colors by a C1 character, goes back to the first column, rings,
# and turns around what follows; words of people stand beside it.
STEERING = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\x7f\u202e\u2066\u0085"
NAME = "中文 Zürich " + STEERING
BYTES = NAME.encode() + b"\x9b32m\xff\xfe\xc3\xed\xa0\x80\x1b[1A"
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def steering(output):
    """What of these bytes steers a terminal, or is no UTF-8, with what stands around it; "" for nothing."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8: {output[max(0, error.start - 60):error.end + 20]!r}"
    for at, character in enumerate(text):
        if character in "\n\t":
            continue
        if unicodedata.category(character) == "Cc" or ord(character) in TURNING:
            return f"{character!r} in {text[max(0, at - 60):at + 20]!r}"
    return ""


class OutsideTexts(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        self.asked = collections.Counter()

    def ask(self, *command, **kwargs):
        """Runs a command of hdps, or a program; whatever it says, it steers nothing. Returns both streams."""
        words = [HDPS, *command] if not str(command[0]).startswith("/") else command
        done = subprocess.run([os.fsencode(str(word)) if not isinstance(word, bytes) else word for word in words],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, **kwargs)
        self.assertIn(done.returncode, (0, 2, 3), (words, done.stderr[-2000:]))
        for stream in (done.stdout, done.stderr):
            self.assertEqual(steering(stream), "", words)
        self.asked[str(command[0])] += 1
        return done.stdout.decode() + done.stderr.decode()

    def look_at_files(self, *folders):
        """Those that people read: logs, summaries, figures, pages and reports."""
        seen = 0
        for folder in folders:
            for file in folder.rglob("*"):
                if file.suffix in (".log", ".jsonl", ".txt") or file.name == "summary.json":
                    seen += 1
                    self.assertEqual(steering(file.read_bytes()), "", file)
        return seen

    def hostile_job(self):
        """A small job whose names, values and labels are all of this kind; and its --out, trained."""
        for part, rows in (("train", 300), ("eval", 60)):
            self.out(f"{part}.csv").write_text(
                "".join(f"{('no', 'yes' + STEERING.replace(chr(13), ''))[i % 2]},{i % 5}\x1b[2J,v{i % 7}\n"
                        for i in range(rows)), newline="")
        job = {"name": NAME, "data": {
            "format": "csv", "train": ["train.csv"], "eval": ["eval.csv"],
            "columns": [{"name": "label " + NAME, "type": "label",
                         "positive": ["yes" + STEERING.replace("\r", "")]},
                        {"name": "first " + NAME}, {"name": "second " + NAME}]},
            "model": {"type": "wide_deep", "hidden": [4], "embedding_dim": 4, "device": "cpu"},
            "train": {"batch_size": 50, "epochs": 2}}
        path = self.out("job.json")
        path.write_text(json.dumps(job, ensure_ascii=False))
        return path

    def signed(self, folder, change):
        """A manifest of other words, with the checksum that they have."""
        path = folder / "manifest.json"
        whole = json.loads(path.read_text())
        change(whole["checkpoint"])
        path.write_text(json.dumps(whole, ensure_ascii=False))
        found = re.search(r"have the checksum ([0-9a-f]{16}), not", self.ask("inspect", f"--checkpoint={folder}"))
        whole["checksum"] = found[1]
        path.write_text(json.dumps(whole, ensure_ascii=False))

    # ---- What is checked by ----------------------------------------------------------------------

    def test_what_steers_is_noticed(self):
        for character in "\x1b\x07\x9b\r\x08\x7f\u202e\u2066\u0085\0":
            self.assertNotEqual(steering(b"a" + character.encode() + b"b"), "", repr(character))
        self.assertNotEqual(steering(b"a\x9bb"), "")
        self.assertEqual(steering("中文 Zürich\n\t$ €".encode()), "")

    # ---- Commands --------------------------------------------------------------------------------

    def test_every_command_over_hostile_files(self):
        job, out = self.hostile_job(), self.out("run")
        said = self.ask("train", f"--job={job}", f"--out={out}", "--servers=2")
        self.assertIn("中文 Zürich", said, "people's words stay readable")
        checkpoint = f"--checkpoint={out}"
        self.ask("train", f"--job={job}", f"--out={out}", "--print_config")
        self.every_command(job, out)
        # The job's own names are what other programs read.
        printed = subprocess.run([HDPS, "train", f"--job={job}", f"--out={out}", "--print_config"],
                                 capture_output=True, check=True).stdout
        self.assertEqual(json.loads(printed)["name"], NAME)
        self.assertEqual(harness.summary_of(out)["job"], NAME)
        self.assertEqual(json.loads(subprocess.run([HDPS, "plan", f"--job={job}", "--json"],
                                                   capture_output=True, check=True).stdout)["job"], NAME)
        # Bytes that are no UTF-8 come by --set alone.
        self.ask("plan", f"--job={job}", b"--set=name=" + BYTES, "--json")
        self.ask("train", f"--job={job}", f"--out={self.out('set')}", b"--set=name=" + BYTES)
        self.ask("evaluate", checkpoint, b"--set=data.eval=" + BYTES)
        # A manifest with names of its own, and a checksum that fits.
        folder = sorted((out / "checkpoint").iterdir())[-1]
        kept = (folder / "manifest.json").read_text()
        for change in (self.rename, self.rename_tables, self.rename_files, self.lose_the_job):
            self.signed(folder, change)
            for command in (*self.of_checkpoint(out), ["train", f"--job={job}", f"--out={out}"]):
                self.ask(*command)
            (folder / "manifest.json").write_text(kept)
        listed = harness.run([HDPS, "--help"]).stdout.split("example:")[0]
        commands = re.findall(r"^  (\w+) ", listed, re.MULTILINE)
        self.ask("help")
        self.assertEqual([c for c in commands if self.asked[c] == 0], [], "commands that nobody asked")
        self.assertGreaterEqual(self.look_at_files(out, self.out("set"), self.out("prepared")), 6)
        harness.figure(f"{sum(self.asked.values())} commands over hostile files, none steers a terminal")

    def every_command(self, job, out):
        """Each command of hdps with these; those that need a scheduler ask one that is not there."""
        for command in (*self.of_checkpoint(out), ["predict", f"--checkpoint={out}", "--dry_run"],
                        ["report", out, f"--html={self.out('page.html')}"],
                        ["doctor", f"--job={job}", f"--out={out}"],
                        ["plan", f"--job={job}"], ["plan", f"--job={job}", "--json"],
                        ["plan", f"--job={job}", "--strategy", "--workers=2"],
                        ["prepare", self.out("train.csv"), f"--out={self.out('prepared')}"],
                        ["generate", f"--out={self.out('data')}", "--rows=100", "--eval_rows=10"],
                        ["keygen", f"--out={self.out('keys')}", f"--add=worker:{NAME}"],
                        ["deploy", job, "--to=slurm", f"--out={out}"], ["deploy", job, "--to=jobs", f"--image={NAME}"],
                        ["member", f"--job={job}", f"--out={out}", f"--role={NAME}"],
                        ["replay", f"--job={job}", f"--out={self.out('again')}", f"--record={self.out('none')}{NAME}"],
                        ["train", f"--job={job}", f"--out={out}"],
                        ["train", f"--job={job}", f"--out={self.out('begun')}", f"--init={self.out('safetensors')}"]):
            self.ask(*command)
        for command in ("status", "why", "scale", "trace"):
            self.ask(command, f"--scheduler=tcp://{NAME}")
        self.ask("serve", f"--checkpoint={out}", f"--name={NAME}")

    @staticmethod
    def of_checkpoint(out):
        """The commands that read one."""
        checkpoint = f"--checkpoint={out}"
        return (["evaluate", checkpoint], ["predict", checkpoint], ["inspect", checkpoint], ["verify", out],
                ["inspect", checkpoint, f"--row=first {NAME}:first {NAME}=3"], ["diff", out, out],
                *(["export", checkpoint, f"--format={format}", f"--out={out.parent / format}"]
                  for format in ("safetensors", "onnx", "vectors", "serving")))

    @staticmethod
    def rename(body):
        body["job_name"] = NAME
        body["arithmetic"] = [NAME]
        body["changes"] = [{"clock": 1, "setting": NAME, "from": NAME, "to": NAME}]

    @staticmethod
    def rename_tables(body):
        body["job"] = body["job"].replace('"columns"', json.dumps(NAME))

    @staticmethod
    def rename_files(body):
        body["files"][0]["name"] = NAME

    @staticmethod
    def lose_the_job(body):
        body["job"] = NAME

    # ---- Damage ----------------------------------------------------------------------------------

    def test_damaged_files(self):
        """JSON, data, state, keys, flags, lists and checkpoints with such bytes in any place."""
        chance, job, out = random.Random(7), self.hostile_job(), self.out("run")
        self.ask("train", f"--job={job}", f"--out={out}")
        folder = sorted((out / "checkpoint").iterdir())[-1]
        snapshot = max(folder.iterdir(), key=lambda f: f.stat().st_size)
        summary = out / "summary.json"
        keys, bad = self.out("keys"), self.out("bad")
        self.ask("keygen", f"--out={keys}")
        spoilt = {
            job: [["train", f"--job={job}", f"--out={self.out('new')}"], ["plan", f"--job={job}"],
                  ["doctor", f"--job={job}", f"--out={out}"]],
            self.out("train.csv"): [["train", f"--job={job}", f"--out={self.out('new')}"],
                                    ["prepare", self.out("train.csv"), f"--out={self.out('prepared')}"]],
            self.out("eval.csv"): [["evaluate", f"--checkpoint={out}"], ["predict", f"--checkpoint={out}"]],
            folder / "manifest.json": [["inspect", f"--checkpoint={out}"], ["verify", out],
                                       ["train", f"--job={job}", f"--out={out}"]],
            snapshot: [["inspect", f"--checkpoint={out}"], ["verify", out]],
            summary: [["report", out, f"--html={self.out('page.html')}"]],
            out / "metrics.jsonl": [["report", out, f"--html={self.out('page.html')}"]],
            keys / "allowed": [["keygen", f"--out={keys}", "--add=worker:w2"],
                               ["status", "--scheduler=tcp://127.0.0.1:9", f"--keys={keys}"]],
            bad: [["train", f"--flagfile={bad}"], ["plan", f"--job={job}", f"--constants={bad}"],
                  ["train", f"--job={bad}", f"--out={self.out('new')}"],
                  ["plan", f"--job={job}", f"--set=parallel.strategy_ckpt_load_file={bad}"]],
        }
        bad.write_text('{"a": 1}')
        here = harness.share(slice(2), slice(None), "bytes at the begin and the end of each file")
        for file, commands in spoilt.items():
            kept = file.read_bytes()
            places = [kept.find(b'"') + 1, chance.randrange(len(kept) + 1), 0, len(kept)]
            for at in places[here]:
                file.write_bytes(kept[:at] + BYTES + kept[at:])
                for command in commands:
                    self.ask(*command)
            file.write_bytes(kept)
        for text in (b"{", b'{"version": 1, "job": "', b'{"version": "'):
            (out / "scheduler.state").write_bytes(text + BYTES)
            self.start_scheduler(job, out, out / "log")
            self.end_all()
        self.look_at_files(out)
        harness.figure(f"{sum(self.asked.values())} commands over damaged files, none steers a terminal")

    # ---- Names and daemons -----------------------------------------------------------------------

    def test_names_of_files_and_flags(self):
        folder = self.out("names")
        folder.mkdir()
        file = os.fsencode(folder) + b"/" + BYTES.replace(b"/", b"")
        job = self.hostile_job()
        for name in harness.share((file,), (file, file + b".json"), "the same names with .json behind them"):
            for command in (["train", b"--job=" + name, b"--out=" + name], ["inspect", b"--checkpoint=" + name],
                            ["verify", name], ["diff", name, name], ["report", name],
                            ["predict", b"--checkpoint=" + name], ["evaluate", b"--checkpoint=" + name],
                            ["prepare", name, b"--out=" + name], ["train", f"--job={job}", b"--out=" + name],
                            ["train", f"--job={job}", b"--log=" + BYTES], ["train", b"--" + BYTES],
                            ["status", b"--scheduler=" + BYTES], ["keygen", b"--out=" + name],
                            ["train", f"--job={job}", f"--out={self.out('x')}", b"--set=" + BYTES + b"=1"]):
                self.ask(*command)
        for program in ("hdps-scheduler", "hdps-server", "hdps-worker"):
            for flags in ([b"--job=" + file], [f"--job={job}", b"--scheduler=" + BYTES, b"--listen=" + BYTES],
                          [f"--job={job}", b"--log_file=" + os.fsencode(job) + b"/" + BYTES],
                          [b"--" + BYTES]):
                self.ask(harness.program(program), *flags)

    def test_a_cluster_and_a_peer_whose_names_steer(self):
        """Daemons of a hostile job, asked how it is; and one that wants to join by such a name."""
        job, out = self.hostile_job(), self.out("run")
        text = json.loads(job.read_text())
        text["train"]["epochs"] = 1000
        job.write_text(json.dumps(text, ensure_ascii=False))
        logs = self.out("logs")
        common, at = [f"--job={job}"], self.start_scheduler(job, out, logs)
        self.join_as(int(at.rsplit(":", 1)[1]), BYTES)
        # It is answered, told of in the log or hung up on before the members below have trained.
        for name in ("hdps-server", "hdps-worker"):
            self.start_silent(name, *common, f"--scheduler={at}", f"--log_file={logs}/{name}.log")
        harness.wait_until(lambda: " trains" in self.ask("status", f"--scheduler={at}") or
                           '"step": 0' not in self.ask("status", f"--scheduler={at}", "--json"), 60, "steps")
        for command in (["why"], ["why", "--json"], ["status"], ["status", "--json"], ["scale", "--scale_servers=-1"]):
            self.ask(*command, f"--scheduler={at}")
        self.end_all()
        self.assertGreaterEqual(self.look_at_files(logs, out), 5)

    def start_scheduler(self, job, out, logs):
        """Its address."""
        address = self.out("address")
        address.unlink(missing_ok=True)
        self.start_silent("hdps-scheduler", f"--job={job}", f"--out={out}", "--listen=tcp://127.0.0.1:0",
                          f"--address_file={address}", f"--log_file={logs}/scheduler.log")
        harness.wait_until(address.exists, 30, "the scheduler's address")
        return address.read_text().strip()

    def end_all(self):
        """Ends the job by its scheduler; nobody has said a word that steers."""
        self.running[0].terminate()
        for process in self.running:
            self.assertEqual([steering(stream) for stream in process.communicate(timeout=60)], ["", ""])
            self.assertIn(process.returncode, (0, 2, 3))
        self.running.clear()

    def start_silent(self, name, *flags):
        self.running.append(subprocess.Popen([harness.program(name), *map(str, flags)], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def join_as(self, port, host):
        """Sends the join of a member whose host has this name, and whose job is another."""
        name, dealers = Name(), Dealers()
        printed = subprocess.run([harness.program("print_frames"), str(name.number), host], capture_output=True,
                                 check=True).stdout
        parts = next([bytes.fromhex(word) for word in line.split()[1:]] for line in printed.decode().splitlines()
                     if line.startswith("join "))
        door = dealers.dial(port, "scheduler", name.routing_id())
        self.addCleanup(dealers.close, [door])
        self.assertTrue(dealers.send(door, parts))


if __name__ == "__main__":
    harness.main()
