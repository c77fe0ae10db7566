"""Makes jobs from files or with data from a seed, and reads the data of jobs."""
import os
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from hdps import _hdps
from hdps._train import JobLike, Path, job_of

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


def data_reader(job: JobLike, which: str, rows: Any, threads: int) -> _hdps.DataReader:
    """Returns the reader of a job's data, where `rows`, unless None, stand for the files of `which`."""
    if rows is None:
        return _hdps.DataReader(job_of(job, {}), {}, threads)
    if which not in ("train", "eval"):
        raise _hdps.JobError(f"rows: they may stand for the files of 'train' or 'eval', not of '{which}'")
    return _hdps.DataReader(job_of(job, {f"data.{which}": [f"memory:{which}"]}), {which: rows}, threads)


def read(job: JobLike, *, part: Tuple[int, int] = (0, 1), epoch: int = 0, skip_steps: int = 0,
         which: str = "train", rows: Any = None, threads: int = 0) -> _hdps.Batches:
    """Reads the data of a job as its workers do, and returns an iterator of the batches of an epoch.

    job: an hdps.Job, a dict of its settings, or the path of a job file.
    part: the rank of a worker and the number of workers. Its batches are those that this worker of
        `hdps train` trains on: shuffled, without held-out rows, with negative examples. A batch has
        train.batch_size divided by the number of workers; that of the last step may be empty, so
        that all workers have the same number of steps.
    epoch, skip_steps: where to begin, as `position` of an iterator told it, for any number of
        workers.
    which: "train", or an evaluation set: "eval", "validation", or a name of data.eval_sets. Its
        rows come in the order of the files, 4096 a batch.
    rows: stand for the files of "train" or "eval", as in hdps.train.
    threads: parse the rows of large batches; 0: one per core.

    A batch has `labels`, `numeric`, `features`, `weights` and `groups` as arrays that are not
    copied. Keys are those of the tables of hdps' own models. Raises JobError.

    >>> import hdps, tempfile
    >>> made = hdps.generate(tempfile.mkdtemp(), rows=1000, eval_rows=500)
    >>> batches = hdps.read(made["job"], part=(0, 2))
    >>> batch = next(batches)
    >>> batch.numeric.shape == (len(batch), len(batches.columns)), list(batch.features)[:2]
    (True, ['C1', 'C2'])
    >>> sum(len(b) for b in batches) + len(batch), batches.position[0]
    (500, 0)
    """
    return data_reader(job, which, rows, threads).read(which, part, epoch, skip_steps)
