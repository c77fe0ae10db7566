#!/usr/bin/python3
"""A day in small: a job trains on a log that grows, a server follows it, and its answers become the next rows.

usage: examples/serving/day.py [--hours=24] [--requests=100] [--out=out/day] [--picture=FILE.svg]

Each hour, users ask `hdps serve` for the scores of 20 items. The server logs what it answered; whether a
user clicked is known at the end of the hour, and join.awk puts both together. The job goes on with these
rows, the server takes its newest checkpoint, and the next hour begins.

What users click is planted, and what they like turns in the course of the day, so a model that stays as
it is gets worse. The table shows the AUC of each hour's answers, that of the first model for the same
rows, and the best one there can be: that of the planted probabilities.

The picture needs python3-matplotlib.
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
USERS, ITEMS, ROWS_OF_REQUEST, FIRST_ROWS = 50, 100, 20, 200

JOB = {
    "name": "day", "seed": 3,
    "data": {"format": "csv", "header": True, "train": ["hour_0.csv"], "shuffle_rows": 4096,
             "columns": [{"name": "click", "type": "label"}, {"name": "user"}, {"name": "item"},
                         {"name": "hour_share", "type": "numeric"}]},
    # Plain steps of a constant rate forget what is no longer so; rates that fall would not.
    "model": {"type": "logistic", "device": "cpu", "wide_optimizer": {"kind": "sgd", "learning_rate": 3},
              "dense_optimizer": {"kind": "sgd", "learning_rate": 0.05}},
    "train": {"batch_size": 20, "epochs": 1},
    "checkpoint": {"every_steps": 10000, "delta_every_steps": 25},
}


class Truth:
    """Clicks are Bernoulli of a logistic model; the weights of items turn from one draw to another."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.users = [draw.gauss(0, 0.7) for _ in range(USERS)]
        self.morning = [draw.gauss(0, 1.2) for _ in range(ITEMS)]
        self.evening = [draw.gauss(0, 1.2) for _ in range(ITEMS)]

    def click(self, user, item, day_share):
        angle = day_share * math.pi / 2
        item_weight = math.cos(angle) * self.morning[item] + math.sin(angle) * self.evening[item]
        return 1 / (1 + math.exp(1 - self.users[user] - item_weight))


def auc(scores, labels):
    """The share of pairs of a click and none in which the click has the higher score; ties count half."""
    ranked = sorted(zip(scores, labels))
    rank_sum, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        rank_sum += sum(label for _, label in ranked[at:end]) * (at + end + 1) / 2
        at = end
    clicks = sum(labels)
    return (rank_sum - clicks * (clicks + 1) / 2) / (clicks * (len(labels) - clicks))


class Day:
    def __init__(self, options):
        self.hdps = str(options.bin / "hdps")
        self.out = options.out
        self.hours, self.requests = options.hours, options.requests
        self.truth, self.draw = Truth(5), random.Random(9)
        self.server = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"

    def command(self, *words, **kwargs):
        done = subprocess.run([self.hdps, *map(str, words)], cwd=self.out, capture_output=True, text=True, **kwargs)
        if done.returncode != 0:
            sys.exit(f"day.py: error: hdps {words[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def train(self, hour):
        """Goes on from the newest checkpoint with the rows of this hour, which is one more epoch."""
        self.command("train", "--job=job.json", "--out=run", "--http=none",
                     f'--set=data.train=["hour_{hour}.csv"]', f"--set=train.epochs={hour + 1}")

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode() if body else None)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer) if answer.length != 0 else {}

    def wait(self, what, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.server.poll() is not None:
                sys.exit(f"day.py: error: hdps serve ended with {self.server.returncode}; see {self.out}/serve.err")
            if time.monotonic() > deadline:
                sys.exit(f"day.py: error: {what} has not come in {seconds} s")
            time.sleep(0.02)

    def serve(self):
        self.server = subprocess.Popen(
            [self.hdps, "serve", "--checkpoint=run", "--which=newest", "--name=day",
             f"--http={self.address.removeprefix('http://')}", "--log_requests=requests.csv", "--log_share=1"],
            cwd=self.out, stderr=(self.out / "serve.err").open("w"), stdout=subprocess.DEVNULL)
        self.wait("the first answer of hdps serve", self.ready)

    def ready(self):
        try:
            self.ask("/v2/health/ready")
            return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def newest(self):
        return max(int(folder.name.split("_")[1]) for folder in (self.out / "run/checkpoint").glob("step_*"))

    def serves_newest(self):
        versions = self.ask("/v1/models/day")["model_version_status"]
        return int(versions[0]["version"]) == self.newest()

    def rows(self, count):
        return [(self.draw.randrange(USERS), self.draw.randrange(ITEMS)) for _ in range(count)]

    def first_rows(self):
        lines = [f"{int(self.draw.random() < self.truth.click(user, item, 0))},u{user},i{item},0"
                 for user, item in self.rows(FIRST_ROWS)]
        (self.out / "hour_0.csv").write_text("click,user,item,hour_share\n" + "\n".join(lines) + "\n")

    def hour(self, hour):
        """Asks for scores, logs which rows were clicked, and joins both. Returns clicks and planted probabilities."""
        clicks, planted, labels = [], [], []
        for number in range(self.requests):
            name = f"{hour}-{number}"
            user = self.draw.randrange(USERS)
            items = [self.draw.randrange(ITEMS) for _ in range(ROWS_OF_REQUEST)]
            self.ask("/v2/models/day/infer", {"id": name, "inputs": [
                {"name": "user", "shape": [1], "datatype": "BYTES", "data": [f"u{user}"]},
                {"name": "item", "shape": [len(items)], "datatype": "BYTES", "data": [f"i{item}" for item in items]},
                {"name": "hour_share", "shape": [1], "datatype": "FP32", "data": [number / self.requests]}]})
            for row, item in enumerate(items):
                planted.append(self.truth.click(user, item, hour / self.hours))
                clicks.append(int(self.draw.random() < planted[-1]))
                labels.append(f"{name},{row},{clicks[-1]}")
        (self.out / "labels.csv").write_text("\n".join(labels) + "\n")
        log = self.out / "requests.csv"
        rows_so_far = hour * self.requests * ROWS_OF_REQUEST
        self.wait("the log of the hour's answers", lambda: log.read_bytes().count(b"\n") == 1 + rows_so_far)
        joined = self.out / f"hour_{hour}.csv"
        with joined.open("w") as rows:
            subprocess.run(["awk", "-v", "label=click", "-f", HERE / "join.awk", "labels.csv", "requests.csv"],
                           cwd=self.out, stdout=rows, check=True)
        return clicks, planted

    def column(self, hour, name):
        """Cells of a column in the order of the requests: threads that answer at once log their rows as they come."""
        lines = (self.out / f"hour_{hour}.csv").read_text().splitlines()
        at, of_id, of_row = (lines[0].split(",").index(one) for one in (name, "hdps_id", "hdps_row"))
        rows = [line.split(",") for line in lines[1:]]
        rows.sort(key=lambda row: (int(row[of_id].split("-")[1]), int(row[of_row])))
        return [float(row[at]) for row in rows]

    def live(self):
        """Returns for each hour the AUC of the answers, of the first model, and of the planted probabilities."""
        (self.out / "job.json").write_text(json.dumps(JOB))
        self.first_rows()
        self.train(0)
        shutil.copytree(self.out / "run", self.out / "first")
        self.serve()
        hours = []
        for hour in range(1, self.hours + 1):
            clicks, planted = self.hour(hour)
            answers, labels = self.column(hour, "hdps_score"), self.column(hour, "click")
            if labels != clicks:
                sys.exit(f"day.py: error: the labels of hour {hour} are not those of the rows that were answered")
            first = self.command("predict", "--checkpoint=first", f"--data=hour_{hour}.csv")
            hours.append((auc(answers, labels), auc(map(float, first.split()), labels), auc(planted, labels)))
            print(f"hour {hour:2}: step {self.newest():5}, AUC of the answers {hours[-1][0]:.4f}, "
                  f"of the first model {hours[-1][1]:.4f}, at best {hours[-1][2]:.4f}", flush=True)
            self.train(hour)
            self.wait(f"the checkpoint of hour {hour} in answers", self.serves_newest)
        return hours

    def end(self):
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(30)


def draw_picture(hours, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    # The same figures give the same file, and text stays text.
    plt.rcParams.update({"svg.hashsalt": "hdps", "svg.fonttype": "none", "font.size": 9,
                         "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(8, 3.2))
    for index, (words, color, style) in enumerate((("answers", "#2f6f9f", "-"), ("the first model", "#c0392b", "-"),
                                                   ("at best: the planted probabilities", "#66727c", ":"))):
        axes.plot(range(1, len(hours) + 1), [hour[index] for hour in hours], style, color=color, label=words)
    axes.set_xlabel("hour of the day")
    axes.set_ylabel("AUC of the hour's rows")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/day"))
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/bin")
    parser.add_argument("--picture", type=pathlib.Path)
    options = parser.parse_args()
    if options.out.exists():
        sys.exit(f"day.py: error: {options.out} exists; a day begins with an empty folder, --out=FOLDER")
    options.out.mkdir(parents=True)
    options.bin = options.bin.resolve()
    day = Day(options)
    try:
        hours = day.live()
    finally:
        day.end()
    (options.out / "auc.json").write_text(json.dumps(hours))
    if options.picture:
        draw_picture(hours, options.picture)


if __name__ == "__main__":
    main()
