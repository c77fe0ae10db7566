"""Trains a job in this process."""
import json
import os
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from hdps import _hdps
from hdps._progress import Progress

Path = Union[str, bytes, "os.PathLike[Any]"]
JobLike = Union[_hdps.Job, Mapping[str, Any], Path]
Callback = Callable[[Dict[str, Any]], Any]


def job_of(job: JobLike, sets: Dict[str, Any]) -> _hdps.Job:
    """Returns the job itself, or the job of a dict or of a job file with the settings of `sets`."""
    if isinstance(job, _hdps.Job):
        return job
    if isinstance(job, Mapping):
        return _hdps.Job(dict(job), sets)
    return _hdps.Job.load(job, sets)


def _tables_of(train: Any, eval: Any, eval_sets: Optional[Mapping[str, Any]]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns the tables by the paths that stand for them, and the settings that name these paths."""
    tables: Dict[str, Any] = {}
    settings: Dict[str, Any] = {}
    for name, rows in (("train", train), ("eval", eval)):
        if rows is not None:
            tables["memory:" + name] = rows
            settings["data." + name] = ["memory:" + name]
    if eval_sets is not None:
        if not isinstance(eval_sets, Mapping) or not all(isinstance(name, str) for name in eval_sets):
            raise TypeError("eval_sets: expected a dict from names of evaluation sets to their rows")
        paths = {name: "memory:eval_sets." + name for name in eval_sets}
        tables.update((paths[name], rows) for name, rows in eval_sets.items())
        settings["data.eval_sets"] = [{"name": name, "files": [path]} for name, path in paths.items()]
    return tables, settings


def train(job: JobLike, out: Path, *, train: Any = None, eval: Any = None,
          eval_sets: Optional[Mapping[str, Any]] = None, workers: int = 1, servers: int = 1,
          resume: str = "auto", init: Optional[Path] = None, threads: int = 0,
          on_step: Optional[Callback] = None, on_eval: Optional[Callback] = None,
          quiet: bool = False) -> Dict[str, Any]:
    """Trains a job in this process, as `hdps train` does, and returns OUT/summary.json as a dict.

    job: an hdps.Job, a dict of its settings, or the path of a job file.
    out: the folder for results; docs/run_files.md says what comes into it.
    train, eval: rows that stand for the files of data.train and data.eval: anything with
        `__arrow_c_stream__` (pyarrow, polars, duckdb, pandas), or a dict of columns, as
        Model.predict takes them. Columns are found by their names. The digest is that of a file of
        the same values (docs/data.md, tables in memory).
    eval_sets: a dict from names to such rows, in the place of data.eval_sets.
    workers, servers, resume, init, threads: the flags of the command. `init` is a
        checkpoint of another job, or a folder of safetensors files as hdps.export writes them, that
        a run without a checkpoint begins with.
    on_step: is called after each step of each worker with a dict of `worker`, `epoch` (from 1),
        `step`, `examples`, and `loss`, the mean over these examples.
    on_eval: is called after each evaluation with its line of metrics.jsonl as a dict; under
        `eval_metrics` it has the figures of train.metrics by name. With train.progressive it is
        called with those figures too, whose `eval_set` is "progressive".
    quiet: shows no progress.

    Callbacks run on the calling thread while the workers wait. One that returns False stops the
    run: the steps at hand are finished, the job is saved, and the summary is returned. What a
    callback raises comes out of train() after the same end, and so does KeyboardInterrupt; a second
    one meanwhile ends the run at once: what was saved before stays, and nothing more is saved.

    Raises JobError for a mistake, with the text of the command line, and RunError if the run
    failed, or if a job is being trained in this process already.

    >>> import hdps, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = hdps.generate(folder, rows=2000, eval_rows=500)
    >>> summary = hdps.train(folder + "/job.json", folder + "/run", quiet=True)
    >>> summary["steps"] > 0, len(summary["digest"])
    (True, 32)
    """
    tables, settings = _tables_of(train, eval, eval_sets)
    checked = job_of(job, settings)
    show = None if quiet else Progress()
    try:
        _hdps.train(checked, out, tables=tables, sets=settings, workers=workers, servers=servers,
                    resume=resume, init=init, threads=threads, show=show, on_step=on_step, on_eval=on_eval)
    finally:
        if show is not None:
            show.close()
    with open(os.path.join(os.fsdecode(out), "summary.json"), encoding="utf-8") as file:
        summary: Dict[str, Any] = json.load(file)
    return summary
