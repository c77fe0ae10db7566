"""Each recipe has an example job, and each of these learns something within a moment."""
import gzip
import json
import math
import re

import harness

FOLDER = harness.ROOT / "examples" / "recipes"
RECIPES = harness.ROOT / "common" / "job" / "recipes" / "recipe_list.def"
STEPS = 120
# Each must be better than a constant by so much: 0.5 is the AUC of a constant, and the entropy of the
# labels is its log loss.
AUC_MARGIN, LOSS_MARGIN = 0.15, 0.02


def words():
    return re.findall(r"^HDPS_RECIPE\((\w+),", RECIPES.read_text(), re.M)


def labels_of(job):
    """The labels of the evaluation rows, by label column."""
    data = job["data"]
    columns = data["columns"]
    found = {column["name"]: [] for column in columns if column.get("type") == "label"}
    for file in data["eval"]:
        for line in gzip.open(FOLDER / file, "rt"):
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) != len(columns):
                continue
            for column, cell in zip(columns, cells):
                if column["name"] in found:
                    found[column["name"]].append(cell in column.get("positive", ["1"]))
    return found


def entropy(labels):
    share = sum(labels) / len(labels)
    return -share * math.log(share) - (1 - share) * math.log(1 - share)


class Recipes(harness.Case):
    def test_every_recipe_has_an_example(self):
        jobs = sorted(file.stem for file in FOLDER.glob("*.json"))
        self.assertEqual(jobs, sorted(words()))
        rows = re.findall(r"^\| `(\w+)\.json` \|", (FOLDER / "README.md").read_text(), re.M)
        self.assertEqual(sorted(rows), jobs)

    def learns(self, name, sets=None):
        """The margins by which the example is better than a constant, the least of its tasks."""
        path = FOLDER / f"{name}.json"
        job = json.loads(path.read_text())
        self.assertEqual(job["model"]["type"], name)
        summary = harness.train(path, self.out(name), sets={"train.max_steps": STEPS, **(sets or {})})
        self.assertEqual(summary["steps"], STEPS)
        found = summary["eval_metrics"]
        tasks = [task["label"] for task in job["model"].get("tasks", [])]
        margins = []
        for label, labels in labels_of(job).items():
            before = f"{label}." if tasks else ""
            auc, loss = found[f"{before}auc"], found[f"{before}logloss"]
            margins.append((auc - 0.5, entropy(labels) - loss))
            harness.figure(f"{name:10} {label:14} AUC {auc:.4f}, logloss {loss:.4f} of a constant's "
                           f"{entropy(labels):.4f}, {STEPS} steps, {summary['wall_seconds']:.1f} s")
        return min(auc for auc, _ in margins), min(loss for _, loss in margins)

    def test_each_is_better_than_a_constant(self):
        for name in words():
            with self.subTest(name):
                auc, loss = self.learns(name)
                self.assertGreater(auc, AUC_MARGIN)
                self.assertGreater(loss, LOSS_MARGIN)

    def test_layer_settings_are_those_of_the_equal_graph(self):
        """Two workers exchange and train alike, with settings of layers by name or in the graph that is spelled out."""
        recipe = FOLDER / "wide_deep.json"
        common = {"train.max_steps": 20, "parallel.dense_exchange": "allreduce"}
        printed = harness.run([harness.program("hdps"), "train", f"--job={recipe}", f"--out={self.out('none')}",
                               "--print_config"]).stdout
        graph = harness.write_job(self.out("graph.json"), json.loads(printed))
        names = [layer["name"] for layer in json.loads(printed)["model"]["layers"]]
        given = {"deep1": {"fusion": 0, "device": "cpu"}, "deep2": {"layerwise_parallel": True}}
        of_graph = {f"model.layers.{names.index(name)}.{key}": value
                    for name, settings in given.items() for key, value in settings.items()}
        runs = [harness.train(job, self.out(f"run{i}"), workers=2, sets={**common, **sets})
                for i, (job, sets) in enumerate([(recipe, {"model.layer_settings": given}), (graph, of_graph),
                                                 (recipe, {})])]
        self.assertEqual(runs[0]["digest"], runs[1]["digest"])
        self.assertEqual(runs[0]["collectives"], runs[1]["collectives"])
        self.assertNotEqual(runs[0]["digest"], runs[2]["digest"])
        self.assertNotEqual(runs[0]["collectives"]["allreduce_calls"], runs[2]["collectives"]["allreduce_calls"])

    def test_a_model_that_does_not_learn_is_seen(self):
        """With rates of nearly zero nothing is learned, and the margins say so."""
        still = {"model.dense_optimizer.kind": "sgd", "model.dense_optimizer.learning_rate": 1e-12,
                 "model.deep_optimizer.kind": "sgd", "model.deep_optimizer.learning_rate": 1e-12}
        _, loss = self.learns("din", still)
        self.assertLess(loss, LOSS_MARGIN)


if __name__ == "__main__":
    harness.main()
