"""Tests the way from click to score: a row that changes in training is soon in answers; the commands of docs/online.md run."""
import importlib.util
import json
import random
import time
import unittest

import harness
import pages
import served

hdps = importlib.import_module("hdps") if importlib.util.find_spec("hdps") else None
PAGE = pages.DOCS / "online.md"
DELTA_SECONDS, LOADING_SECONDS = 5, 3
BATCH, STEPS_A_SECOND, CHANGE_AT = 40, 50, 350  # The change comes between two saves.
STEPS_MAX = 3000
# One step moves the score of the row that changes from below to above this.
MOVED = 0.05


class Page(pages.Case):
    def test_commands(self):
        self.run_commands(PAGE, 3)
        summary = harness.summary_of(self.folder / "out" / "day_2")
        self.assertEqual(summary["progressive"]["examples"], 10000)
        self.assertGreater(summary["progressive"]["auc"], 0.85, "the first day's model is known")


@unittest.skipIf(hdps is None, "the Python package was not built")
class FromClickToScore(served.ServeCase):
    def test_a_changed_row_is_soon_in_answers(self):
        """What users do with item `turn` changes at a step; the answers of a process that follows change as well."""
        draw = random.Random(3)
        rows = {"y": [], "item": []}
        for step in range(STEPS_MAX):
            for _ in range(BATCH):
                item = draw.choice(("turn", "stay", "never"))
                liked = item == "stay" or (item == "turn" and step >= CHANGE_AT)
                rows["y"].append(int(liked))
                rows["item"].append(item)
        job = {"name": "clicks",
               "data": {"train": ["rows"], "shuffle_rows": 0,
                        "columns": [{"name": "y", "type": "label"}, {"name": "item"}]},
               "model": {"type": "logistic", "device": "cpu",
                         "wide_optimizer": {"kind": "sgd", "learning_rate": 20.0}},
               "train": {"batch_size": BATCH, "epochs": 1},
               "checkpoint": {"every_seconds": 60, "delta_every_seconds": DELTA_SECONDS}, "cluster": {"shards": 8}}
        out = self.out("run")
        state = {"changed": None, "seen": None, "before": [], "answers": None}

        def on_step(step):
            """Paces the steps, as a producer would, and asks for answers meanwhile."""
            if step["step"] == CHANGE_AT + 1:  # Steps count from 1.
                state["changed"] = time.monotonic()
            if state["answers"] is None and list((out / "checkpoint").glob("step_*/manifest.json")):
                state["answers"] = self.connect(self.serve(f"--checkpoint={out}")[1])
            if state["answers"] is not None and step["step"] % 5 == 0:
                score = self.score(state["answers"])
                if state["changed"] is None:
                    state["before"].append(score)
                elif score > MOVED:
                    state["seen"] = time.monotonic()
                    return False
            time.sleep(1 / STEPS_A_SECOND)
            return True

        hdps.train(job, out, train=rows, on_step=on_step, quiet=True)
        self.assertIsNotNone(state["seen"], "no answer has changed")
        self.assertGreater(len(state["before"]), 1)
        self.assertLess(max(state["before"]), MOVED)
        seconds = state["seen"] - state["changed"]
        harness.figure(f"from the first step of a planted change to an answer with it: {seconds:.1f} s, "
                       f"with delta_every_seconds {DELTA_SECONDS}")
        self.assertLess(seconds, DELTA_SECONDS + LOADING_SECONDS)

    def score(self, connection):
        status, _, body = self.ask(connection, "/v1/models/clicks:predict",
                                   json.dumps({"instances": [{"item": "turn"}]}).encode())
        self.assertEqual(status, 200, body)
        return json.loads(body)["predictions"][0]


if __name__ == "__main__":
    harness.main()
