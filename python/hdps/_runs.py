"""Shows what a run left in its folder."""
import html as _html
import json
import os
from array import array
from typing import Any, Dict, List, Mapping, Optional, Union

from hdps import _hdps
from hdps._train import Path

Column = Union["array[int]", "array[float]", List[Any]]


class Report:
    """The page of one run, or of two beside each other. A notebook shows it inline."""

    def __init__(self, path: str, page: str) -> None:
        self.path = path
        self.page = page

    def __repr__(self) -> str:
        return f"<hdps.Report {self.path}>"

    def _repr_html_(self) -> str:
        """Returns the page in a frame of its own, so that its style stays in it."""
        return (f'<iframe srcdoc="{_html.escape(self.page, quote=True)}" width="100%" '
                'height="700" style="border:0"></iframe>')


def report(out: Path, other: Optional[Path] = None, *, html: Optional[Path] = None) -> Report:
    """Writes one HTML page of a run, or of two beside each other, as `hdps report` does.

    out, other: folders of runs, which may still go on.
    html: the file to write; None: report.html in the first folder.

    Returns a Report with `path` and `page`. Raises JobError if a folder is none of a run.

    >>> import hdps, tempfile
    >>> hdps.report(tempfile.mkdtemp())
    Traceback (most recent call last):
    hdps.JobError: ...
    """
    return Report(*_hdps.report([out] if other is None else [out, other], html))


def _flat(line: Mapping[str, Any], prefix: str = "") -> Dict[str, Any]:
    values: Dict[str, Any] = {}
    for name, value in line.items():
        if isinstance(value, dict):
            values.update(_flat(value, prefix + name + "."))
        else:
            values[prefix + name] = value
    return values


def _column(values: List[Any]) -> Column:
    numbers = [value for value in values if value is not None]
    if not all(isinstance(value, (int, float)) for value in numbers):
        return values
    if len(numbers) == len(values) and all(isinstance(value, int) for value in numbers):
        return array("q", values)
    return array("d", [float("nan") if value is None else value for value in values])


def read_metrics(out: Path) -> Dict[str, Column]:
    """Reads OUT/metrics.jsonl, also of a run that goes on, as columns of one length.

    A line of the file is a row; what it has not is NaN. Numbers come as array.array, of "q" (int64)
    if every row has a whole number and else of "d" (float64), both buffers without a copy for
    NumPy; columns of texts are lists with None. Values in objects have names with a dot:
    "eval_metrics.auc". pandas.DataFrame(hdps.read_metrics(out)) is a table of it.

    Raises FileNotFoundError if there is no such file.

    >>> import hdps, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(folder + "/metrics.jsonl", "w") as file:
    ...     _ = file.write('{"step": 1, "train_loss": 0.5}\\n{"step": 2}\\n')
    >>> hdps.read_metrics(folder)
    {'step': array('q', [1, 2]), 'train_loss': array('d', [0.5, nan])}
    """
    rows = []
    with open(os.path.join(os.fsdecode(out), "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            try:
                rows.append(_flat(json.loads(line)))
            except ValueError:
                continue  # A full disk, or a run at work, leaves a part of a line.
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}
