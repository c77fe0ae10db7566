"""Uses hdps.ClickModel as those do who start from scikit-learn, and runs the notebook that shows it."""
import copy
import gc
import importlib.util
import json
import math
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
why = why or ("" if importlib.util.find_spec("numpy") else "this Python has no NumPy")
if not why:
    import hdps
    import numpy as np
    from hdps import ClickModel

PACKAGES = ["scikit-learn", "pandas", "polars", "pyarrow"]
SETS = {"train__batch_size": 50, "train__epochs": 2, "model__embedding_dim": 4, "model__hidden": [8]}
JOB = {
    "name": "click_model",
    "data": {"train": ["train.csv"], "header": True,
             "columns": [{"name": "shop"}, {"name": "color"}, {"name": "price", "type": "numeric"},
                         {"name": "label", "type": "label"}]},
    "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8]}, "train": {"batch_size": 50, "epochs": 2}}
NOTEBOOK = harness.ROOT / "examples" / "notebooks" / "own_data.py"
WITHOUT = """
    import sys
    sys.modules["sklearn"] = None
    import hdps
    assert "numpy" not in sys.modules and "hdps.sklearn" not in sys.modules
    from hdps.sklearn import ClickModel, NotFittedError
    assert ClickModel is hdps.ClickModel and issubclass(NotFittedError, ValueError)
    try:
        ClickModel().predict([["a"]])
    except NotFittedError as error:
        print(error)
    """


class Frame:
    """What this package knows of a data frame: names, and columns by them."""

    def __init__(self, columns, names="columns"):
        self.values = columns
        setattr(self, names, list(columns))

    def __getitem__(self, name):
        return self.values[name]


class Twice(Frame):
    def __init__(self, columns):
        super().__init__(columns)
        self.columns.append(self.columns[0])


def table(rows, seed):
    draw = random.Random(seed)
    X = {"shop": [draw.randrange(5) for _ in range(rows)],
         "color": [draw.choice(["red", "blue", ""]) for _ in range(rows)],
         "price": [draw.randrange(80) / 4 for _ in range(rows)]}
    y = ["yes" if draw.random() < (0.8 if shop < 3 else 0.2) else "no" for shop in X["shop"]]
    return X, y


@unittest.skipIf(why, why)
class Estimator(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_estimator_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        cls.X, cls.y = table(400, 1)
        cls.new, cls.new_y = table(150, 2)
        cls.model = ClickModel(out=cls.data, threads=1, **SETS).fit(cls.X, cls.y)
        cls.scores = cls.model.predict_proba(cls.new)

    def fitted(self, X, y=None, **kwargs):
        return ClickModel(threads=1, **{**SETS, **kwargs}).fit(X, self.y if y is None else y)

    def write_csv(self, X, y=None):
        lines = [",".join([*X, *(["label"] if y else [])])]
        lines += [",".join(map(str, row)) for row in zip(*X.values(), *([y] if y else []))]
        path = self.out("train.csv" if y else "new.csv")
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_it_trains_and_predicts_as_the_commands_do(self):
        self.write_csv(self.X, [int(label == "yes") for label in self.y])
        run = self.out("run")
        expected = harness.train(harness.write_job(self.out("job.json"), JOB), run)
        self.assertEqual(self.model.summary_["digest"], expected["digest"])
        clicks = np.asarray(hdps.Model.open(run).predict(self.write_csv(self.new)))
        self.assertEqual((self.scores.shape, self.scores.dtype), ((150, 2), np.float32))
        self.assertTrue((self.scores[:, 1] == clicks).all() and (self.scores[:, 0] == 1 - clicks).all())

    def test_classes_and_score(self):
        self.assertEqual(self.model.classes_.tolist(), ["no", "yes"])
        likelier = ["yes" if yes > no else "no" for no, yes in self.scores]
        self.assertEqual(self.model.predict(self.new).tolist(), likelier)
        self.assertEqual(set(likelier), {"yes", "no"})
        few = ClickModel("logistic", threads=1).fit({"shop": self.X["shop"]}, self.y)  # Equal scores of five shops.
        for model in (self.model, few):
            clicks = model.predict_proba(self.new)[:, 1].tolist()
            ones, others = ([s for s, label in zip(clicks, self.new_y) if label == which] for which in ("yes", "no"))
            won = sum((one > other) + (one == other) / 2 for one in ones for other in others)
            # Halves of whole numbers: both are the same quotient.
            self.assertEqual(model.score(self.new, self.new_y), won / (len(ones) * len(others)))
        numbers = self.fitted(self.X, [7 if label == "yes" else -2 for label in self.y])
        self.assertEqual(numbers.summary_["digest"], self.model.summary_["digest"])
        self.assertEqual(set(numbers.predict(self.new).tolist()), {7, -2})

    def test_each_form_of_rows(self):
        rows = [list(row) for row in zip(*self.X.values())]
        arrays = {"shop": np.array(self.X["shop"], np.int16), "color": np.array(self.X["color"]),
                  "price": np.array(self.X["price"], np.float32)}  # Quarters are exact.
        for form in (arrays, Frame(arrays), Frame(self.X, "column_names")):
            model = self.fitted(form)
            self.assertEqual(model.summary_["digest"], self.model.summary_["digest"])
            self.assertEqual((model.n_features_in_, model.feature_names_in_.tolist()), (3, ["shop", "color", "price"]))
            self.assertTrue((model.predict_proba(Frame(self.new)) == self.scores).all())
        unnamed = [self.fitted(form) for form in (rows, np.array(rows, object), dict(enumerate(self.X.values())))]
        of_names = self.fitted({f"x{i}": column for i, column in enumerate(self.X.values())})
        for model in unnamed:
            self.assertEqual(model.summary_["digest"], of_names.summary_["digest"])
            self.assertFalse(hasattr(model, "feature_names_in_"))

    def test_types_of_columns(self):
        X = {"ids": np.arange(4), "floats": np.ones(4), "flags": [True, False, True, None],
             "texts": ["a", "b", None, ""], "mixed": [1, 2.5, math.nan, None], "gaps": ["a", math.nan, "b", "c"],
             "lists": [["a", "b"], [], ["a"], ["c"]], "pairs": np.ones((4, 2), int), "label": [1, 2, 3, 4],
             "halves": [0.5, 1.5, 2.5, 3.5]}
        model = self.fitted(X, [0, 1, 0, 1], numeric=["ids"])
        columns = model.job_.to_dict()["data"]["columns"]
        types = {column["name"]: column.get("type", "categorical") for column in columns}
        self.assertEqual(types, {
            "ids": "numeric", "floats": "numeric", "flags": "categorical", "texts": "categorical", "mixed": "numeric",
            "gaps": "categorical", "lists": "multi", "pairs": "multi", "label": "categorical", "halves": "numeric",
            "label_": "label"})
        # Floats are no keys: hdps says so, and what would be.
        with self.assertRaisesRegex(hdps.JobError, "column 'floats' has the type float64"):
            self.fitted(X, [0, 1, 0, 1], categorical=["floats"])

    def test_names_and_places(self):
        turned = {name: self.new[name] for name in reversed(self.new)}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue((self.model.predict_proba({**turned, "other": [0] * 150}) == self.scores).all())
        rows = [list(row) for row in zip(*self.new.values())]
        with self.assertWarnsRegex(UserWarning, "fitted with feature names") as said:
            self.assertTrue((self.model.predict_proba(rows) == self.scores).all())
        self.assertEqual(said.filename, __file__)
        placed = self.fitted([list(row) for row in zip(*self.X.values())])
        with self.assertWarnsRegex(UserWarning, "fitted without feature names"):
            self.assertTrue((placed.predict_proba(self.new) == placed.predict_proba(rows)).all())

    def test_parameters(self):
        model = ClickModel("fm", seed=3, train__epochs=4)
        self.assertEqual(model.get_params(), {
            "recipe": "fm", "out": None, "categorical": (), "numeric": (), "workers": 1, "threads": 0, "verbose": False,
            "seed": 3, "train__epochs": 4})
        self.assertIs(model.set_params(recipe="deepfm", workers=2, **{**SETS, "seed": 1}), model)
        self.assertEqual(ClickModel(**model.get_params()).get_params(), model.get_params())
        self.assertEqual(model.fit(self.X, self.y).summary_["digest"],
                         ClickModel(workers=2, **SETS).fit(self.X, self.y).summary_["digest"])
        with self.assertWarnsRegex(UserWarning, "staleness_bound") as said:
            self.fitted(self.X, train__staleness_bound=2)
        self.assertEqual(said.filename, __file__)

    def test_runs(self):
        self.assertEqual(pathlib.Path(self.model.out_).parent, self.data)
        self.assertEqual(hdps.read_metrics(self.model.out_)["step"][-1], self.model.summary_["steps"])
        for copied in (pickle.loads(pickle.dumps(self.model)), copy.deepcopy(self.model)):
            self.assertTrue((copied.predict_proba(self.new) == self.scores).all())
            self.assertEqual(copied.get_params(), self.model.get_params())
        model = self.fitted(self.X)
        first = model.out_
        with self.assertRaisesRegex(TypeError, "give out=FOLDER"):
            pickle.dumps(model)
        with self.assertRaises(hdps.JobError):
            model.set_params(recipe="deep").fit(self.X, self.y)
        with self.assertRaisesRegex(hdps.JobError, "memory:train row 0"):
            model.set_params(recipe="deepfm").fit({**self.X, "price": [math.inf] * 400}, self.y)
        self.assertTrue((model.predict_proba(self.new) == self.scores).all(), "a fit that failed changes nothing")
        self.assertEqual(len(hdps.read_metrics(first)["step"]), len(hdps.read_metrics(self.model.out_)["step"]))
        second = model.fit(self.X, self.y).out_
        self.assertFalse(pathlib.Path(first).exists())
        self.assertTrue(pathlib.Path(second).exists())
        del model
        gc.collect()
        self.assertFalse(pathlib.Path(second).exists())

    def test_mistakes(self):
        X, y, fit, model = self.X, self.y, self.fitted, self.model
        mistakes = [
            ("a slip in a setting", hdps.JobError, 'did you mean "epochs"', lambda: fit(X, train__epochss=2)),
            ("an unknown recipe", hdps.JobError, 'did you mean "deepfm"', lambda: fit(X, recipe="deepfn")),
            ("a recipe that lacks keys", hdps.JobError, "categorical", lambda: fit({"price": X["price"]})),
            ("an unknown column", ValueError, "numeric: X has no column 'prize'", lambda: fit(X, numeric=["prize"])),
            ("a type told twice", ValueError, "told before, as categorical",
             lambda: fit(X, numeric=["shop"], categorical=["shop"])),
            ("a name twice", ValueError, "two columns with the name 'shop'", lambda: fit(Twice(X))),
            ("one axis", ValueError, "X has 1 axes", lambda: fit([1, 2, 3])),
            ("no column", ValueError, "0 feature", lambda: fit({})),
            ("no row", ValueError, "X has 0 rows", lambda: fit({"a": []}, [])),
            ("another number of labels", ValueError, "X has 400 rows, and y has 2 labels", lambda: fit(X, [0, 1])),
            ("columns of other lengths", hdps.JobError, "column 'price'", lambda: fit({**X, "price": [1.0]})),
            ("no labels", ValueError, "requires y", lambda: ClickModel().fit(X, None)),
            ("three classes", ValueError, "multiclass: 3 classes", lambda: fit(X, [0, 1, 2, 1] * 100)),
            ("one class", ValueError, "1 class$", lambda: fit(X, [1] * 400)),
            ("labels of two axes", ValueError, "y has 2 axes", lambda: fit(X, [[0], [1]] * 200)),
            ("a label that is NaN", ValueError, "contains NaN", lambda: fit(X, [0, math.nan] * 200)),
            ("complex numbers", ValueError, "Complex", lambda: fit({"a": np.ones(400, complex)})),
            ("a column that is a number", TypeError, "", lambda: fit({"a": 5})),
            ("an infinity", hdps.JobError, "price", lambda: fit({**X, "price": [math.inf] * 400})),
            ("predicting too early", AttributeError, "not fitted yet", lambda: ClickModel().predict(X)),
            ("a column that lacks", hdps.JobError, '"price"', lambda: model.predict({"shop": [1], "color": ["red"]})),
            ("another number of columns", ValueError, "X has 1 features, but ClickModel is expecting 3",
             lambda: model.predict([["a"]])),
            ("a label never seen", ValueError, "not of", lambda: model.score(self.new, ["perhaps"] * 150)),
            ("an AUC of one class", ValueError, "AUC needs", lambda: model.score(self.new, ["yes"] * 150)),
            ("a score of other rows", ValueError, "150 rows, and y has 2",
             lambda: model.score(self.new, ["yes", "no"])),
        ]
        for name, kind, text, mistake in mistakes:
            with self.subTest(name), self.assertRaisesRegex(kind, text):
                mistake()

    def test_without_scikit_learn(self):
        code = "\n".join(line[4:] for line in WITHOUT.splitlines())
        self.assertIn("This ClickModel instance is not fitted yet", harness.run([sys.executable, "-c", code]).stdout)

    def test_the_notebook_runs(self):
        self.assertGreaterEqual(NOTEBOOK.read_text().count("# %%\n"), 6)
        said = harness.run([sys.executable, NOTEBOOK]).stdout
        aucs = json.loads(next(line for line in said.splitlines() if line.startswith("{")).replace("'", '"'))
        self.assertGreater(aucs["deepfm"], aucs["logistic"], "crosses are planted, and the seed is given")

    @harness.at_night
    def test_scikit_learn_checks_it(self):
        """Its own checks, of which estimator_checks.py names those that cannot mean anything here."""
        python = harness.python_with("sklearn", PACKAGES)
        if python is None:
            self.skipTest(f"{' '.join(PACKAGES)} cannot be installed: PyPI is not reached")
        done = subprocess.run([str(python), str(pathlib.Path(__file__).with_name("estimator_checks.py"))],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        harness.figure(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    harness.main()
