"""Looks at the page of a job, and at the report of a run, with headless Chromium: recorded states of a hundred members, of
a standstill and others; hostile texts; a job that does not answer; a phone; a keyboard; no script."""
import json
import re
import signal
import subprocess
import threading

import browser
import harness
import page_server
import page_states

PAGE_BYTES_MAX, SCRIPT_BYTES_MAX, UPDATE_BYTES_MAX = 300 << 10, 20 << 10, 64 << 10
TITLES = ["Health", "Training", "Where time goes", "Stragglers", "Rows", "Checkpoints", "Events and warnings",
          "Configuration", "About"]
EVIL = "<img src=x onerror='window.taken=1'><script>window.taken=1</script>\"'&\\"
HEADINGS = "return [...document.querySelectorAll('h2')].map((h) => h.textContent)"


def updates(server):
    return [(at, size) for at, path, size in server.answers if path.startswith("/api/v1/page?since=") and path[-2:] != "=0"]


class Looked(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        browser.needed()

    def clean(self, window, *allowed):
        """Nothing is on the console, and nothing was asked for elsewhere."""
        self.assertEqual(window.console(), [])
        self.assertEqual([one for one in window.requests() if not one.startswith(allowed)], [])


class RecordedStates(Looked):
    def test_a_hundred_members(self):
        server = page_server.PageServer("hundred_members")
        with browser.Browser() as window:
            window.open(server.address())
            harness.wait_until(lambda: len(updates(server)) >= 4, 30, "the page does not ask again and again")
            self.clean(window, server.address())
            self.assertEqual(window.run(HEADINGS), TITLES)
            text = window.text()
            for part in ("nothing waits: 96 steps", "40 of 40", "60 of 60", "straggler for 34 steps", "worker 59", "server 39"):
                self.assertIn(part, text)
            self.assertEqual(window.run("return document.querySelectorAll('#time .bar').length"), 60)
            self.assertEqual(window.run("return document.querySelectorAll('#training canvas').length"), 2 * 4)
            step = window.run("return document.title")
            harness.wait_until(lambda: window.run("return document.title") != step, 30, "the step stands still")
            first = window.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
            files = [(path, size) for _, path, size in server.answers if not path.startswith("/api/")]
            script = dict(files)["/page.js"]
            seen = updates(server)
            gaps = [b - a for (a, _), (b, _) in zip(seen, seen[1:])]
            self.assertGreater(min(gaps), 0.9, "more than one update a second")
            self.assertLessEqual(max(size for _, size in seen), UPDATE_BYTES_MAX)
            self.assertLessEqual(sum(size for _, size in files), PAGE_BYTES_MAX)
            self.assertLessEqual(script, SCRIPT_BYTES_MAX)
            self.assertEqual(sorted(path for path, _ in files), sorted(page_server.FILES))
            harness.figure(f"page of 100 members: first paint after {first:.0f} ms, {sum(s for _, s in files)} bytes, of them "
                           f"{script} of our own script; an update has {max(s for _, s in seen)} bytes at most")

    def test_other_states_on_a_phone(self):
        server = page_server.PageServer("fresh")
        with browser.Browser(390, 844, dark=True) as window:
            for state, said in (("fresh", "has not begun"), ("standstill", "which has read no example for 12.0 s"),
                                ("async_job", "straggler for 34 steps")):
                server.state = state
                window.open(server.address())
                harness.wait_until(lambda said=said: said in window.text(), 30, f"{state}: {said}")
                self.assertLessEqual(window.run("return document.documentElement.scrollWidth"), 390, state)
                self.clean(window, server.address())

    def test_hostile_texts_stay_texts(self):
        server = page_server.PageServer("async_job")

        def hostile(value):
            if isinstance(value, dict):
                return {name: hostile(item) for name, item in value.items()}
            if isinstance(value, list):
                return [hostile(item) for item in value]
            return EVIL + value if isinstance(value, str) else value

        server.document = lambda since: hostile(page_states.async_job(5, 0))
        with browser.Browser() as window:
            window.open(server.address())
            harness.wait_until(lambda: "onerror" in window.text(), 30, "the texts")
            self.assertEqual(window.run("return [document.querySelectorAll('img, main script').length, window.taken]"), [0, None])
            self.clean(window, server.address())

    def test_a_job_that_does_not_answer(self):
        server = page_server.PageServer("standstill")
        with browser.Browser() as window:
            window.open(server.address())
            harness.wait_until(lambda: "waits for server 0" in window.text(), 30, "the page")
            server.failing = True
            harness.wait_until(lambda: "does not answer since" in window.text(), 30, "the page does not say it")
            self.assertIn("waits for server 0", window.text(), "what it said last stays")
            server.failing = False
            harness.wait_until(lambda: "does not answer" not in window.text(), 30, "the page does not go on")

    def test_keyboard_and_one_cursor(self):
        server = page_server.PageServer("standstill")
        with browser.Browser() as window:
            window.open(server.address())
            harness.wait_until(lambda: window.run("return charts.length") == 4, 30, "four pictures")

            def key(name):
                for kind in ("keyDown", "keyUp"):
                    window.cdp("Input.dispatchKeyEvent", type=kind, key=name, **({"text": name} if len(name) == 1 else {}))

            key("Tab")
            self.assertEqual(window.run("return document.activeElement.className"), "plot")
            key("ArrowLeft")
            key("ArrowLeft")
            cursors = "return [...document.querySelectorAll('.cursor')].filter((one) => !one.hidden).length"
            self.assertEqual(window.run(cursors), 4, "one cursor over all pictures")
            self.assertIn("step 1590", window.run("return document.querySelector('.legend').textContent"))
            key("+")
            ranges = "return charts.map((one) => one.graph.xAxisRange().map(Math.round).join(' '))"
            zoomed = window.run(ranges)
            self.assertEqual(len(set(zoomed)), 1, "one range for all pictures")
            self.assertEqual(int(zoomed[0].split()[0]) > 1000, True, zoomed)
            key("0")
            key("Escape")
            self.assertEqual(window.run(cursors), 0)
            self.assertLess(int(window.run(ranges)[0].split()[0]), 20)
            self.clean(window, server.address())


class RealJob(Looked):
    def setUp(self):
        super().setUp()
        self.job = subprocess.Popen(
            [harness.program("hdps"), "train", f"--job={harness.CENSUS}", f"--out={self.out('run')}", "--servers=2",
             "--workers=4", "--set=train.epochs=100000,checkpoint.every_steps=1000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.address = next(found[1] for found in map(lambda line: re.search(r"watch at (\S+)", line), self.job.stderr) if found)
        self.drain = threading.Thread(target=self.job.stderr.read, daemon=True)
        self.drain.start()

    def end(self):
        if self.job.poll() is None:
            self.job.send_signal(signal.SIGTERM)
            self.job.wait(60)

    def test_two_servers_and_four_workers(self):
        root = self.address.partition("?")[0]
        with browser.Browser() as window:
            window.open(self.address)
            harness.wait_until(lambda: "step_0000001000" in window.text(), 60, "a checkpoint on the page")
            self.assertEqual(window.run("return location.href"), root, "the token does not stay in the address")
            self.assertEqual(window.run(HEADINGS), TITLES)
            text = window.text()
            for part in ("2 of 2", "4 of 4", "worker 3", "server 1", "--set", "100000", "deep", "wide"):
                self.assertIn(part, text)
            self.assertEqual(window.run("return document.querySelectorAll('#time .bar').length"), 4)
            self.assertGreaterEqual(window.run("return charts.length"), 3)
            document = window.run("return fetch('api/v1/page?since=0').then((answer) => answer.json())")
            self.same_names(page_states.async_job(700, 0), document)
            self.clean(window, root)
        with browser.Browser(script=False) as window:
            window.open(self.address)
            harness.wait_until(lambda: "runs no script" in window.text(), 30, "the page without a script")
            for part in ("worker 3", "server 1", "train_loss", "deep"):
                self.assertIn(part, window.text())
            self.clean(window, root)
        self.end()
        self.assertEqual(self.job.returncode, 0)

    def same_names(self, made, real, path="page"):
        """States made for the tests have the names that a job's have, so that what they show is true of jobs."""
        if isinstance(made, dict) and isinstance(real, dict):
            if path.endswith((".rows", ".bytes")):
                return  # Tiers that there are.
            names = set(real) - {"whole"}
            self.assertEqual(set(made), names, path)
            for name in names:
                self.same_names(made[name], real[name], f"{path}.{name}")
        elif isinstance(made, list) and isinstance(real, list) and made and real:
            self.same_names(made[0], real[0], f"{path}[0]")


class Report(Looked):
    def test_a_report_and_its_pictures(self):
        outs = [self.out(name) for name in ("a", "b")]
        for out, rate in zip(outs, ("0.01", "0.02")):
            harness.train(harness.CENSUS, out, 2, 2, {"train.epochs": 2, "model.dense_optimizer.learning_rate": float(rate)})
        state = page_states.hundred_members(7, 0)
        state["figures"] = {"members": [{"name": "worker 0", "role": "worker", "figures": {"hdps_worker_examples_total": 12345}}],
                            "scheduler": {"figures": {"hdps_step": 77}}}
        (outs[0] / "figures.json").write_text(json.dumps(state))
        page = self.out("both.html")
        harness.run([harness.program("hdps"), "report", *outs, f"--html={page}"])
        address = page.as_uri()
        with browser.Browser() as window:
            window.open(address)
            self.clean(window, address)
            pictures = window.run("return document.querySelectorAll('figure.chart').length")
            self.assertGreaterEqual(pictures, 3)
            self.assertEqual(window.run("return document.querySelectorAll('figure.chart canvas').length"), 2 * pictures)
            text = window.text()
            for part in ("Settings that differ", "What the members did last", "straggler for 34 steps", "server 39"):
                self.assertIn(part, text)
            self.assertIn("12.35k", window.run("return document.body.textContent"), "figures of each member")
            window.run("select(charts[0].rows[1][0])")
            self.assertEqual(window.run("return document.querySelectorAll('.cursor:not([hidden])').length"), pictures)
            self.clean(window, address)
        with browser.Browser(script=False) as window:
            window.open(address)
            text = window.text()
            for part in ("runs no script", "straggler", "server 39", "learning_rate"):
                self.assertIn(part, text)
            self.assertEqual(window.run("return document.querySelectorAll('canvas').length"), 0)
            self.assertGreaterEqual(window.run("return document.querySelectorAll('figure.chart table').length"), pictures)
        harness.figure(f"report of two runs: {page.stat().st_size} bytes")


if __name__ == "__main__":
    harness.main()
