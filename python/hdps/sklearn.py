"""An estimator in the manner of scikit-learn, over Job, train() and Model. It needs NumPy."""
import math
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from hdps import _hdps
from hdps._train import Path, train

_HAS_SKLEARN = False
if not TYPE_CHECKING:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.exceptions import NotFittedError

        _HAS_SKLEARN = True
    except ImportError:
        pass
if not _HAS_SKLEARN:  # The estimator stands alone, with what scikit-learn asks of one.

    class BaseEstimator:
        pass

    class ClassifierMixin:
        pass

    class NotFittedError(ValueError, AttributeError):
        pass

# Arguments of the constructor that are no settings of the job.
_ARGUMENTS = ("recipe", "out", "categorical", "numeric", "workers", "threads", "verbose")


def _columns(X: Any) -> Tuple[Optional[List[str]], List[Any]]:
    """Returns the names of the columns, or None where not all have one, and the columns."""
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix: expected columns of values, such as a data frame")
    if isinstance(X, Mapping):
        given = list(X)
    elif hasattr(X, "column_names"):  # pyarrow, whose `columns` are the values.
        given = list(X.column_names)
    elif hasattr(X, "columns") and hasattr(X, "__getitem__"):
        given = list(X.columns)
    else:
        cells = np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)
        if cells.ndim != 2:
            raise ValueError(f"X has {cells.ndim} axes: expected rows and columns. "
                             "Reshape your data")
        return None, list(cells.T)
    if len(set(given)) < len(given):
        twice = next(name for place, name in enumerate(given) if name in given[:place])
        raise ValueError(f"X has two columns with the name {twice!r}")
    return given if all(isinstance(name, str) for name in given) else None, [X[n] for n in given]


def _type(column: Any) -> str:
    """Returns the type of a job's column: floats are numeric, all others are keys."""
    word = str(getattr(column, "dtype", getattr(column, "type", "object"))).lower()
    if word.startswith("complex"):
        raise ValueError("Complex data not supported: expected real numbers, texts or integers")
    if word.startswith(("float", "double", "halffloat")):  # The last two are words of pyarrow.
        return "numeric"
    if word.startswith(("list", "large_list")) or getattr(column, "ndim", 1) == 2:
        return "multi"
    if word != "object":
        return "categorical"
    floats = texts = False
    for cell in column:
        if isinstance(cell, (list, tuple, np.ndarray)):
            return "multi"
        texts = texts or isinstance(cell, (str, bytes))
        if isinstance(cell, Real) and not isinstance(cell, Integral):
            floats = floats or not math.isnan(cell)
    return "numeric" if floats and not texts else "categorical"


def _labels(y: Any) -> "np.ndarray[Any, Any]":
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y has {labels.ndim} axes: expected a label for each row")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: expected a label for each row")
    return labels


def _auc(scores: "np.ndarray[Any, Any]", positive: "np.ndarray[Any, Any]") -> float:
    """Returns the area under the ROC curve; equal scores count half (Hanley and McNeil 1982)."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    ones = int(positive.sum())
    pairs = ones * (len(positive) - ones)
    if pairs == 0:
        raise ValueError("y has 1 class: an AUC needs rows of both")
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / pairs)


class ClickModel(ClassifierMixin, BaseEstimator):
    """A classifier of two classes that trains a recipe of hdps, in the manner of scikit-learn.

    recipe: a word for `model.type` of a job (docs/job_file.md).
    out: a folder in which each fit makes a folder for its run, told as `out_`. None: a temporary
        one that goes with this object, which then can be neither pickled nor copied once fitted.
    categorical, numeric: names of columns whose type is not the one that their values tell.
    workers, threads: arguments of hdps.train.
    verbose: shows the progress.
    settings: other settings of the job, with two underscores for the dot: train__epochs=3,
        model__hidden=[64, 32], data__validation_share=0.1. fit() refuses unknown ones.

    X is a data frame or an Arrow table, a dict of columns, or rows and columns such as an array.
    Columns of floats are numeric; texts, integers and bools are keys, and lists of them several
    keys. Columns without names are called x0, x1, ... None, NaN and "" are missing values.

    Attributes after fit(): classes_, n_features_in_, feature_names_in_ (where all columns have
    names), job_ (an hdps.Job), model_ (an hdps.Model), summary_ (what hdps.train returned) and out_
    (for hdps.read_metrics and hdps.report). A pickle holds the path `out_`, and not the model.

    With scikit-learn installed it is a BaseEstimator and a ClassifierMixin.

    >>> from hdps import ClickModel
    >>> X = {"shop": ["north", "east", "south"] * 100, "price": [2.5, 7.0, 1.0] * 100}
    >>> y = ["bought", "left", "left"] * 100
    >>> model = ClickModel("logistic", train__batch_size=30, train__epochs=5).fit(X, y)
    >>> model.predict({"shop": ["north", "east"], "price": [2.5, None]}).tolist()
    ['bought', 'left']
    """

    def __init__(self, recipe: str = "deepfm", *, out: Optional[Path] = None,
                 categorical: Sequence[str] = (), numeric: Sequence[str] = (), workers: int = 1,
                 threads: int = 0, verbose: bool = False, **settings: Any) -> None:
        self.recipe = recipe
        self.out = out
        self.categorical = categorical
        self.numeric = numeric
        self.workers = workers
        self.threads = threads
        self.verbose = verbose
        self._settings = settings
        self._remove: Optional[Callable[[], Any]] = None  # Removes the temporary run.

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """Returns the arguments of the constructor, settings among them; no parameter is nested.

        >>> from hdps import ClickModel
        >>> ClickModel("fm", train__epochs=2).get_params()["train__epochs"]
        2
        """
        return {**{name: getattr(self, name) for name in _ARGUMENTS}, **self._settings}

    def set_params(self, **params: Any) -> "ClickModel":
        """Changes arguments of the constructor or settings for the next fit(), and returns self.

        >>> from hdps import ClickModel
        >>> ClickModel("fm").set_params(recipe="deepfm", seed=3).get_params()["seed"]
        3
        """
        for name, value in params.items():
            if name in _ARGUMENTS:
                setattr(self, name, value)
            else:
                self._settings[name] = value
        return self

    def fit(self, X: Any, y: Any) -> "ClickModel":
        """Trains on rows [n, columns] and their labels [n] of two values, and returns self.

        Each fit() begins anew. The greater label is the class of clicks, classes_[1].

        Raises ValueError for shapes and labels that cannot be, JobError for a setting or a cell
        that hdps refuses, and RunError if the run failed.

        >>> from hdps import ClickModel
        >>> ClickModel("logistic").fit([["a"], ["b"]], [0, 1]).classes_.tolist()
        [0, 1]
        """
        given, columns = _columns(X)
        labels = _labels(y)
        classes, which = np.unique(labels, return_inverse=True)
        self._refuse(labels, classes, columns)
        names = given or [f"x{i}" for i in range(len(columns))]
        label = "label"
        while label in names:
            label += "_"
        job = self._job(names, columns, label)
        if not self.verbose:  # Otherwise the progress tells them.
            for warning in job.warnings:
                warnings.warn(warning, stacklevel=2)
        out, remove = self._new_folder()
        summary = train(job, out, train={**dict(zip(names, columns)), label: which},
                        workers=self.workers, threads=self.threads, quiet=not self.verbose)
        self.model_ = _hdps.Model.open(out, threads=self.threads)
        if self._remove is not None:
            self._remove()
        self._remove = remove
        self.job_, self.summary_, self.out_ = job, summary, out
        self.classes_, self.n_features_in_ = classes, len(names)
        vars(self).pop("feature_names_in_", None)
        if given is not None:
            self.feature_names_in_ = np.array(given, dtype=object)
        return self

    def predict_proba(self, X: Any) -> "np.ndarray[Any, Any]":
        """Returns the probabilities of classes_: float32 [n, 2].

        Columns are found by their names, if they had some in fit(), and else by their places.

        Raises NotFittedError, ValueError for another number of columns, and JobError as
        Model.predict does.

        >>> from hdps import ClickModel
        >>> model = ClickModel("logistic").fit([["a"], ["b"]], [0, 1])
        >>> model.predict_proba([["a"], ["b"], ["unknown"]]).shape
        (3, 2)
        """
        clicks = np.asarray(self._model().predict(self._rows(X)))
        return np.stack((1 - clicks, clicks), axis=1)

    def predict(self, X: Any) -> "np.ndarray[Any, Any]":
        """Returns the likelier class of each row: [n], of the labels' dtype.

        >>> from hdps import ClickModel
        >>> model = ClickModel("logistic", train__epochs=20).fit([["a"], ["b"]], ["no", "yes"])
        >>> model.predict([["b"]]).tolist()
        ['yes']
        """
        places = self.predict_proba(X).argmax(axis=1)  # Refuses a model that is not fitted.
        predicted: "np.ndarray[Any, Any]" = self.classes_[places]
        return predicted

    def score(self, X: Any, y: Any) -> float:
        """Returns the AUC, and not the accuracy, which tells nothing where clicks are rare.

        For accuracy in a search: GridSearchCV(..., scoring="accuracy").

        Raises ValueError if y has labels that fit() has not seen, or one class alone.

        >>> from hdps import ClickModel
        >>> X, y = [["a"], ["b"]], [0, 1]
        >>> ClickModel("logistic", train__epochs=20).fit(X, y).score(X, y)
        1.0
        """
        clicks = self.predict_proba(X)[:, 1]
        labels = _labels(y)
        if len(labels) != len(clicks):
            raise ValueError(f"X has {len(clicks)} rows, and y has {len(labels)} labels")
        if not np.isin(labels, self.classes_).all():
            raise ValueError(f"y has labels that are not of {self.classes_.tolist()}")
        return _auc(clicks, labels == self.classes_[1])

    def _refuse(self, labels: Any, classes: Any, columns: List[Any]) -> None:
        """Raises ValueError for rows and labels that no training could take."""
        rows = len(columns[0]) if columns else 0
        if not columns:
            raise ValueError(f"X has 0 feature(s) (shape=({len(labels)}, 0)) while a minimum of 1 "
                             "is required.")
        if rows != len(labels) or rows == 0:
            raise ValueError(f"X has {rows} rows, and y has {len(labels)} labels: "
                             "expected as many, at least 1")
        if labels.dtype.kind == "f" and len(classes) > 2:
            raise ValueError(f"Unknown label type: {len(classes)} numbers: expected two classes")
        if len(classes) != 2:
            raise ValueError("Only binary classification is supported. The type of the target is "
                             + ("multiclass: " if len(classes) > 2 else "")
                             + f"{len(classes)} class{'es' if len(classes) > 2 else ''}")

    def _job(self, names: List[str], columns: List[Any], label: str) -> _hdps.Job:
        told: Dict[str, str] = {}
        for kind, those in (("categorical", self.categorical), ("numeric", self.numeric)):
            for name in those:
                if name not in names:
                    raise ValueError(f"{kind}: X has no column '{name}'; it has {names[:20]}")
                if name in told:
                    raise ValueError(f"{kind}: column '{name}' is told before, as {told[name]}")
                told[name] = kind
        types = [told.get(name) or _type(column) for name, column in zip(names, columns)]
        settings = {
            "name": "click_model", "model": {"type": self.recipe},
            "data": {"train": ["memory:train"],
                     "columns": [{"name": label, "type": "label"},
                                 *({"name": n, "type": t} for n, t in zip(names, types))]}}
        return _hdps.Job(settings, {name.replace("__", "."): value
                                    for name, value in self._settings.items()})

    def _new_folder(self) -> Tuple[str, Optional[Callable[[], Any]]]:
        """Returns an empty folder, and what removes it if it is temporary."""
        if self.out is not None:
            os.makedirs(self.out, exist_ok=True)
            return tempfile.mkdtemp(prefix=f"{self.recipe}_", dir=os.fsdecode(self.out)), None
        folder = tempfile.mkdtemp(prefix="hdps_")
        return folder, weakref.finalize(self, shutil.rmtree, folder, True)

    def _model(self) -> _hdps.Model:
        if "model_" not in vars(self):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call "
                                 "'fit' with appropriate arguments before using this estimator.")
        return self.model_

    def _rows(self, X: Any) -> Dict[str, Any]:
        """Returns columns by the names that the model knows them by."""
        names, columns = _columns(X)
        fitted = vars(self).get("feature_names_in_")
        if names is not None and fitted is not None:
            return dict(zip(names, columns))
        if len(columns) != self.n_features_in_:
            raise ValueError(f"X has {len(columns)} features, but {type(self).__name__} is "
                             f"expecting {self.n_features_in_} features as input")
        if fitted is not None:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was "
                          "fitted with feature names", stacklevel=3)
            return dict(zip(fitted, columns))
        if names is not None:
            warnings.warn(f"X has feature names, but {type(self).__name__} was fitted without "
                          "feature names", stacklevel=3)
        return {f"x{i}": column for i, column in enumerate(columns)}

    def __getstate__(self) -> Dict[str, Any]:
        if self._remove is not None:
            raise TypeError("a ClickModel that was fitted without `out` cannot be pickled or "
                            "copied, for its run goes with it: give out=FOLDER")
        return {name: value for name, value in vars(self).items() if name not in ("model_", "job_")}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        vars(self).update(state)
        if "out_" in state:
            self.model_ = _hdps.Model.open(self.out_, threads=self.threads)
            self.job_ = self.model_.job

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.classifier_tags.multi_class = False
        return tags
