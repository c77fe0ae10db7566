"""Has scikit-learn check hdps.ClickModel, and uses both together, for python_estimator_test.py."""
import tempfile

import numpy as np
import pandas
import polars
import pyarrow
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import hdps

# Checks that cannot mean anything for such an estimator, with the reason.
NAMED = {
    "check_estimators_dtypes": "integers are keys, which the recipe of numbers alone does not read",
    "check_supervised_y_2d": "labels of two axes are refused, not taken with a warning"}
# A table of numbers alone, which the checks bring, is for the recipe mlp.
SETS = {"model__hidden": [8], "train__batch_size": 16, "train__epochs": 8}


def check_by_its_suite():
    model = hdps.ClickModel("mlp", out=tempfile.mkdtemp(), threads=1, **SETS)
    results = check_estimator(model, expected_failed_checks=NAMED, on_fail=None, on_skip=None)
    named = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert named == set(NAMED), f"checks that are named and pass: {set(NAMED) - named}"
    for result in results:
        assert result["status"] in ("passed", "skipped", "xfail"), (result["check_name"], result["exception"])
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    passed = sum(result["status"] == "passed" for result in results)
    return f"scikit-learn: {passed} of {len(results)} checks pass, {len(named)} named, skipped by it: {skipped}"


def check_beside_its_tools():
    draw = np.random.default_rng(1)
    X = pandas.DataFrame({"shop": draw.integers(0, 6, 600), "color": draw.choice(["red", "blue"], 600),
                          "price": draw.random(600), "old": draw.integers(0, 2, 600)})
    y = pandas.Series(np.where(draw.random(600) < X["shop"] / 6, "yes", "no"))
    model = hdps.ClickModel("deepfm", threads=1, train__batch_size=50, model__hidden=[8], model__embedding_dim=4)
    assert is_classifier(model) and clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"train__epochs": [1, 8], "recipe": ["wide_deep", "deepfm"]}, cv=3).fit(X, y)
    assert search.best_params_["train__epochs"] == 8 and search.best_score_ > 0.7, search.best_score_
    scores = cross_val_score(model.set_params(train__epochs=8), X, y, cv=3, n_jobs=2)  # In other processes.
    assert min(scores) > 0.65, scores
    model.fit(X, y)
    auc = roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert abs(model.score(X, y) - auc) < 1e-12, (model.score(X, y), auc)
    whole = make_pipeline(FunctionTransformer(lambda frame: frame.drop(columns="old")), model).fit(X, y)
    assert whole[-1].feature_names_in_.tolist() == ["shop", "color", "price"]


def check_frames():
    rows = {"shop": [1, 2, None] * 40, "color": ["red", None, "blue"] * 40, "price": [0.5, None, 1.5] * 40,
            "tags": [["a", "b"], [], ["c"]] * 40}
    y = [0, 1, 1] * 40
    whole = pandas.DataFrame(rows).assign(shop=pandas.array(rows["shop"], dtype="Int64"))
    frames = {
        "pandas": whole.astype({"color": "category"}),
        "pandas_floats": whole.assign(price=pandas.array(rows["price"], dtype="Float64")),
        "polars": polars.DataFrame(rows), "pyarrow": pyarrow.table(rows)}
    model = hdps.ClickModel("deepfm", threads=1, model__hidden=[8], model__embedding_dim=4, train__batch_size=20)
    expected = clone(model).fit(rows, y)
    for name, frame in frames.items():
        fitted = clone(model).fit(frame, y)
        assert fitted.summary_["digest"] == expected.summary_["digest"], name
        assert (fitted.predict_proba(frame) == expected.predict_proba(rows)).all(), name


if __name__ == "__main__":
    check_frames()
    check_beside_its_tools()
    print(check_by_its_suite())
