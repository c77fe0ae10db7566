"""Runs the commands and requests of docs/serving.md that need a model of their own: versions, several models, ZeroMQ with
keys, Triton's client, and the join of logged answers with labels. readme_test.py runs its block of a shell."""
import json
import os
import re
import subprocess

import harness
import pages
import served

PAGE = pages.DOCS / "serving.md"
TOKEN = "0123456789abcdef0123456789abcdef"
PLACE = "127.0.0.1:8080"
# Two checkpoints: step 512 is on the page.
ROWS, BATCH = 2048, 4


class ServePage(served.ServeCase):
    def setUp(self):
        super().setUp()
        columns = [{"name": "click", "type": "label"}, {"name": "user"}, {"name": "item"}]
        self.job = {"name": "clicks", "data": {"header": True, "train": ["t.csv"], "columns": columns},
                    "model": {"type": "logistic", "device": "cpu"}, "train": {"batch_size": BATCH, "epochs": 2},
                    "checkpoint": {"every_epochs": 1, "keep": 4}}
        self.write_rows("t.csv", ROWS)
        self.token = self.out("token")
        self.token.write_text(TOKEN)
        self.token.chmod(0o600)
        (self.folder / "out").mkdir()
        os.symlink(harness.ROOT / "examples", self.folder / "examples")
        self.left = [*pages.blocks(PAGE, "text"), *pages.blocks(PAGE, "python")]

    def write_rows(self, file, rows):
        self.out(file).write_text("click,user,item\n" + "".join(f"{i % 2},u{i % 7},i{i % 11}\n" for i in range(rows)))

    def block(self, word):
        """The block of the page with this word in it; each is run once."""
        found, = [block for block in self.left if word in block]
        self.left.remove(found)
        return found

    def environment(self):
        return {**os.environ, "PATH": f"{harness.BIN}:{os.environ['PATH']}"}

    def shell(self, text):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def run_server(self, command, answers):
        """Runs a command that serves until it has said so many times who answers; returns what it said."""
        process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment(),
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        said = []
        for line in process.stderr:
            said.append(line)
            answers -= " of step " in line
            if answers == 0:
                break
        self.assertEqual(answers, 0, "".join(said))
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        return "".join(said)

    def test_the_page_can_be_followed(self):
        harness.train(harness.write_job(self.out("clicks.json"), self.job), self.folder / "out" / "clicks")
        self.versions_by_curl()
        said = self.run_server(self.block("--model=older:").strip() + " --http=127.0.0.1:0", 2)
        self.assertRegex(said, r"clicks of step 1024 answers(.|\n)*older of step 512 answers")
        harness.run([harness.program("hdps"), "keygen", f"--out={self.out('KEYS')}"])
        with_keys = self.block("--keys=KEYS").strip()
        self.assertIn("tcp://10.0.0.9:8120", with_keys)  # This machine has no such address.
        said = self.run_server(with_keys.replace("10.0.0.9:8120", "127.0.0.1:0") + " --http=none", 1)
        self.assertRegex(said, r"answers at tcp://127.0.0.1:\d+")
        self.rows_of_the_log()
        self.triton()
        self.assertEqual(self.left, [], "blocks that no test runs")

    def versions_by_curl(self):
        """Goes back by the first command, and follows again by the second."""
        process, port, _ = self.serve(f"--checkpoint={self.folder / 'out' / 'clicks'}",
                                      f"--http_token_file={self.token}")
        older, newest = self.block(":use\ncurl").replace(PLACE, f"127.0.0.1:{port}").strip().splitlines()
        connection = self.connect(port)

        def version():
            return json.loads(self.ask(connection, "/v2/models/clicks", token=TOKEN)[2])["versions"]

        self.assertEqual(version(), ["1024"])
        self.assertEqual(json.loads(self.shell(older))["version"], "512")
        harness.wait_until(lambda: version() == ["512"], 30, "version 512")
        self.assertEqual(json.loads(self.shell(newest))["version"], "newest")
        harness.wait_until(lambda: version() == ["1024"], 30, "the newest version")
        self.stop(process)

    def rows_of_the_log(self):
        """Answers are logged, joined with labels, and trained on, as the page has it: an eighth epoch of the run."""
        self.write_rows("hour_6.csv", 64)
        job = {**self.job, "data": {**self.job["data"], "train": ["hour_6.csv"]},
               "train": {"batch_size": BATCH, "epochs": 7}}
        harness.train(harness.write_job(self.out("job.json"), job), self.out("run"))
        process, port, _ = self.serve(f"--checkpoint={self.out('run')}", f"--log_requests={self.out('requests.csv')}",
                                      "--log_share=1")
        users = ["u1", "u2", "u3", "u4"]
        for request in range(8):
            columns = served.Columns({"user": users, "item": [f"i{request}"] * 4})
            body, headers = columns.predict() if request % 2 else columns.infer_json()
            if request % 2:
                headers["X-Request-Id"] = f"visit {request}"
            else:
                body = body.replace(b"{", b'{"id": "visit %d", ' % request, 1)
            path = "/v1/models/clicks:predict" if request % 2 else "/v2/models/clicks/infer"
            self.assertEqual(self.ask(self.connect(port), path, body, headers)[0], 200)
        self.stop(process)
        known = [(request, row, (request + row) % 2) for request in range(8) for row in range(4) if row != 3]
        self.out("labels.csv").write_text("".join(f"visit {request},{row},{label}\n" for request, row, label in known))
        self.shell(self.block("join.awk"))
        header, *rows = self.out("hour_7.csv").read_text().splitlines()
        self.assertEqual(header.split(",")[:4], ["click", "user", "item", "hdps_id"])
        found = {tuple(row.split(",")[:4]) for row in rows}
        self.assertEqual(found, {(str(label), users[row], f"i{request}", f"visit {request}")
                                 for request, row, label in known})
        self.assertEqual(len(rows), len(known))
        summary = harness.summary_of(self.out("run"))
        self.assertEqual(summary["steps"], 7 * 64 // BATCH + len(known) // BATCH)

    def triton(self):
        text = self.block("tritonclient")
        python = harness.python_with("triton_python", ["tritonclient[http]==2.73.0"])
        if python is None:
            harness.left_out("the request of docs/serving.md by Triton's client: it cannot be installed here")
            return
        process, port, _ = self.serve(f"--checkpoint={self.folder / 'out' / 'clicks'}")
        before = "candidates = [f'i{n}' for n in range(512)]\n"
        found = harness.run([python, "-c", before + text.replace(PLACE, f"127.0.0.1:{port}") +
                             "\nprint(len(scores), scores.dtype)"]).stdout
        self.assertEqual(found.split(), ["512", "float32"])
        self.stop(process)


if __name__ == "__main__":
    harness.main()
