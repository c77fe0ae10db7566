"""Watches a job from its start to its end, through kill -9 of a worker, a server and the scheduler: the page's JSON and /metrics
tell each, the sentence names the member, and the curves go on."""
import json
import re
import subprocess
import time
import urllib.request

import harness
from failing_cluster import FailingCluster

HDPS = harness.program("hdps")
SETS = {"train.epochs": 100000, "train.batch_size": 1024, "cluster.heartbeat_ms": 100, "checkpoint.every_steps": 50}


class Watched(harness.Case):
    def setUp(self):
        super().setUp()
        self.token = self.folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("0123456789abcdef0123456789abcdef\n")

    def get(self, cluster, path):
        """The answer of the scheduler's newest process; None while it does not answer."""
        address = re.findall(r"watch at (\S+)/", cluster.log("scheduler", cluster.starts["scheduler"]))
        if not address:
            return None
        request = urllib.request.Request(address[-1] + path)
        request.add_header("Authorization", "Bearer " + self.token.read_text().strip())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def page(self, cluster):
        text = self.get(cluster, "/api/v1/page")
        return json.loads(text) if text and text.startswith("{") else None

    def points(self, page):
        return next((curve["points"] for curve in page["training"]["curves"] if curve["name"] == "train_loss"), [])

    def grows(self, cluster, more):
        """Until the loss has so many points more; returns the page."""
        pages = []

        def grown():
            page = self.page(cluster)
            if page is None:
                return False
            pages.append(page)
            return len(self.points(page)) >= len(self.points(pages[0])) + more and page["health"]["kind"] == "nothing"
        cluster.wait_for(grown, 120, "the curve goes on")
        return pages[-1]

    def killed(self, cluster, name):
        """The page and /metrics tell that this member is lost, while nobody replaces it."""
        member, role = name.replace("_", " "), name.split("_")[0]
        missing = f'hdps_members{{role="{role}",state="missing"}} 1\n'
        cluster.processes[name].kill()
        begin = time.monotonic()
        pages = []

        def told():
            pages.append(self.page(cluster))
            return pages[-1]["health"]["kind"] == "lost" and missing in self.get(cluster, "/metrics")
        harness.wait_until(told, 60, f"{name} is told to be lost")
        harness.figure(f"{name} killed: told after {time.monotonic() - begin:.2f} s: "
                       f"{pages[-1]['health']['sentence']}")
        self.assertRegex(pages[-1]["health"]["sentence"], rf"{member} \(.*\) is lost: its process has ended")
        lost = [event for event in pages[-1]["events"]["events"] if event["text"].startswith(member) and event["cause"]]
        self.assertEqual(lost[-1]["cause"], "its process has ended")
        self.assertEqual(pages[-1]["health"]["members"][role + "s"], {"alive": 1, "expected": 2})
        page = self.grows(cluster, 2)  # It was started again.
        self.assertTrue(any(event["seconds"] and event["cause"] == lost[-1]["cause"] for event in page["events"]["events"]))
        self.assertIn(missing[:-2] + "0\n", self.get(cluster, "/metrics"))

    def test_three_kills(self):
        flags = {"scheduler": [f"--http_token_file={self.token}"]}
        with FailingCluster(harness.CENSUS, self.out("run"), sets=SETS, flags=flags) as cluster:
            self.grows(cluster, 3)
            follow = subprocess.Popen([HDPS, "status", f"--scheduler={cluster.address}", "--follow"],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            self.addCleanup(follow.wait)
            self.addCleanup(follow.kill)
            self.killed(cluster, "worker_1")
            self.killed(cluster, "server_0")
            before = self.page(cluster)
            cluster.processes["scheduler"].kill()
            cluster.processes["scheduler"].wait()
            begin = time.monotonic()
            self.assertIsNone(self.page(cluster))
            cluster.wait_for(lambda: self.page(cluster) is not None, 60, "the scheduler is back")
            harness.figure(f"scheduler killed: its page is back after {time.monotonic() - begin:.2f} s")
            after = self.grows(cluster, 2)
            self.assertGreater(after["version"], before["version"])
            old, new = self.points(before), self.points(after)
            self.assertEqual(new[:len(old) - 1], old[:-1])
            self.assertIn("the scheduler is back at step", json.dumps(after["events"]))
            self.assertTrue(any(one["verified"] is False for one in after["checkpoints"]["newest"]))
            status = json.loads(harness.run([HDPS, "status", f"--scheduler={cluster.address}", "--json"]).stdout)
            self.assertEqual(status["schema"], 1)
            self.assertEqual(set(status["panels"]), {*after, "figures"} - {"schema", "version", "unix_time"})
            cluster.processes["scheduler"].terminate()
            summary = cluster.finish()
            said = follow.communicate(timeout=60)[0]
            self.assertEqual(follow.returncode, 0)
            self.assertRegex(said, r"step \d+ .*examples/s")
            self.assertRegex(said, r"worker 1 \(.*\) is lost")
            self.assertIn("answers no more", said)
        last = json.loads((cluster.out / "figures.json").read_text())
        self.assertEqual(last["training"]["step"], summary["steps"])
        self.assertEqual(last["training"]["examples"], summary["examples"])
        own = last["figures"]["scheduler"]["figures"]
        self.assertEqual(own["hdps_losses_survived_total"], summary["failures_survived"])
        self.assertEqual(summary["failures_survived"], 2)
        self.assertTrue(last["figures"]["members"][0]["figures"]["hdps_server_pulls_total"] > 0)
        for one in last["training"]["evaluations"]:
            self.assertEqual(one["value"], summary["eval_metrics"][one["metric"]])


if __name__ == "__main__":
    harness.main()
