"""Makes jobs: from files, or with data from a seed."""
import os
from typing import Any, Dict, NamedTuple, Optional, Sequence, Union

from hdps import _hdps
from hdps._train import Path

Paths = Union[Path, Sequence[Path]]
Names = Union[str, Sequence[str]]


class Prepared(NamedTuple):
    """What prepare() made: the job, its file, and what the data contain."""

    job: _hdps.Job
    path: str
    report: str

    def __repr__(self) -> str:
        return f"{self.report}\n{self.path}"


def prepare(files: Paths, out: Path, *, label: str = "", eval: Paths = (), model: str = "",
            task: str = "", positive: str = "", categorical: Names = (), numeric: Names = (),
            multi: Names = (), skip: Names = (), group: str = "", weight: str = "",
            min_count: int = 0, split: str = "rows",
            max_bad_rows: Optional[int] = None) -> Prepared:
    """Reads data files and writes a job that trains on them, as `hdps prepare` does.

    files: paths, folders or patterns of csv, tsv, criteo, libsvm, libffm or libfm files.
    out: a folder without a job.json; it gets job.json and report.txt.
    The others are the flags of the command and correct what it finds wrongly; `categorical`,
    `numeric`, `multi` and `skip` are names of columns.

    Returns a Prepared, which is shown as its report. Raises JobError with the text of the command
    line.

    >>> import hdps, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(folder + "/own.csv", "w") as file:
    ...     _ = file.write("label,color,price\\n")
    ...     _ = file.writelines(f"{n % 2},{'red' if n % 3 else 'blue'},{n}\\n" for n in range(400))
    >>> made = hdps.prepare(folder + "/own.csv", folder + "/job", label="label")
    >>> os.path.basename(made.path), made.job.name
    ('job.json', 'own')
    """
    path, report_text = _hdps.prepare(
        files, out, label=label, eval=eval, model=model, task=task, positive=positive,
        categorical=categorical, numeric=numeric, multi=multi, skip=skip, group=group,
        weight=weight, min_count=min_count, split=split, max_bad_rows=max_bad_rows)
    return Prepared(_hdps.Job.load(path), path, report_text)


def generate(out: Path, *, kind: str = "log", format: str = "csv", model: str = "",
             rows: int = 100000, eval_rows: int = 20000, numeric: int = 13,
             categorical: int = 26, vocabulary: int = 1000, zipf: float = 1.05, seed: int = 1,
             signal: float = 1.5, ctr: float = 0.25, noise: Optional[float] = None,
             missing: float = 0.02) -> Dict[str, Any]:
    """Writes data with a planted model and a job for them, as `hdps generate` does.

    Returns a dict of `job`, the path of the job file, and the best figures on the evaluation rows:
    `auc`, `expected_auc`, `logloss` and `ctr`, or `accuracy` for kind="digits". Raises JobError.

    >>> import hdps, tempfile
    >>> made = hdps.generate(tempfile.mkdtemp(), rows=1000, eval_rows=1000)
    >>> 0.5 < made["expected_auc"] < 1
    True
    """
    return _hdps.generate(
        out, kind=kind, format=format, model=model, rows=rows, eval_rows=eval_rows,
        numeric=numeric, categorical=categorical, vocabulary=vocabulary, zipf=zipf, seed=seed,
        signal=signal, ctr=ctr, noise=noise, missing=missing)
