"""A worker whose model is the caller's own: rows of the job's tables go in, gradients come out."""
import atexit
import functools
import os
import weakref
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type,
                    TypeVar, Union, overload)

from hdps import _hdps
from hdps._progress import Progress
from hdps._train import JobLike, Path, job_of

Pulled = _hdps.Pulled
State = Callable[[], bytes]
Batch = TypeVar("Batch")
Data = Union[Iterable[Batch], Callable[[Optional[bytes]], Iterable[Batch]]]

_open: "weakref.WeakSet[Worker]" = weakref.WeakSet()


class Worker:
    """One worker of a job of model.type "tables"; join() and local() make it.

    A step is any number of pull() and push(), and then advance(). The gradients of a step count
    with its advance() and not before, so a step that is given up changes nothing. One thread at a
    time may use a worker.

    Every call may raise WentBack, after which the next call goes on from the checkpoint; Ended,
    when the job has ended; JobError or TypeError for a mistake, which changes nothing; and
    RunError, after which this worker is of no more use.

    >>> import hdps, tempfile
    >>> job = {"model": {"type": "tables", "tables": [{"name": "words", "dim": 2}]}}
    >>> with hdps.local(job, tempfile.mkdtemp(), quiet=True) as worker:
    ...     with worker.step():
    ...         pulled = worker.pull("words", [7, 3, 7])
    ...         worker.push(pulled, [[0.5, 0.5], [1.0, 1.0]])
    >>> pulled.keys.tolist(), pulled.positions.tolist(), pulled.rows.shape
    ([7, 3], [0, 1, 0], (2, 2))
    """

    def __init__(self, own: _hdps.TableWorker) -> None:
        self._own = own
        self.examples: Optional[int] = None
        # Called by loop() when the job has gone back, before it asks for data again.
        self.on_restored: Optional[Callable[[], None]] = None
        self._ends = 0  # Steps that have ended, in whichever way.
        self._in_step = False
        # While the body of loop() runs: whether the job went back meanwhile.
        self._in_loop = False
        self._void: Optional[_hdps.WentBack] = None
        _open.add(self)

    # ---- What is known.

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._own.rank

    @property
    def workers(self) -> int:
        """The number of workers of the job."""
        return self._own.workers

    @property
    def clock(self) -> int:
        """The number of steps that are finished."""
        return self._own.clock

    @property
    def job(self) -> _hdps.Job:
        """The job as the scheduler runs it."""
        return self._own.job

    @property
    def tables(self) -> Dict[str, int]:
        """The length of a row of each table, by its name."""
        return self._own.tables

    @property
    def restored(self) -> Optional[bytes]:
        """What `state` or checkpoint() gave for the checkpoint that the job began from or went
        back to; None in a new job, and where nothing was given."""
        return self._own.restored

    @property
    def state(self) -> Optional[State]:
        """A function that returns this worker's state for a checkpoint, as bytes; None: none.

        It is called inside advance() and finish(), on the caller's thread. What it raises comes out
        of that call and ends this worker.
        """
        return self._own.state

    @state.setter
    def state(self, state: Optional[State]) -> None:
        self._own.state = state

    @property
    def evaluation_due(self) -> bool:
        """True if the next step waits for report() (train.eval_every_steps)."""
        return self._own.evaluation_due

    @property
    def copied_bytes(self) -> int:
        """Bytes of keys, rows and gradients that hdps has copied in this process for pull() and push().

        What servers write and read is no copy. It tells whether arrays are given in a form that is
        read where it lies.
        """
        return self._own.copied_bytes

    # ---- A step.

    @overload
    def pull(self, where: str, keys: Any, *, train: bool = True) -> Pulled: ...

    @overload
    def pull(self, where: Mapping[str, Any], *, train: bool = True) -> Dict[str, Pulled]: ...

    def pull(self, where: Any, keys: Any = None, *, train: bool = True) -> Any:
        """Returns the rows of keys: pull("words", keys), or of several tables, {"words": keys, ...}.

        keys: int64 or uint64, of any shape, which is flattened; an array of the host by the buffer
            protocol or DLPack, read without a copy if it is contiguous, or a list. The 64 bits of a
            key count, so that -1 is 2**64 - 1.
        train: False only looks: keys without a row read as their initial row, none is made, and
            the rows cannot be pushed.

        Returns a Pulled, or a dict of them; several tables travel in one message a server. Waits
        until the step may begin (train.mode).
        """
        asked = self._asked("pull", where, keys)
        try:
            if self._void is not None:
                train = False
            pulled = self._own.pull(asked, train)
        except _hdps.WentBack as went_back:
            if not self._in_loop:
                raise
            self._void = went_back
            return self.pull(where, keys, train=False)
        return pulled[0] if isinstance(where, str) else {p.table: p for p in pulled}

    def prefetch(self, where: Union[str, Mapping[str, Any]], keys: Any = None) -> None:
        """Asks for rows of the next step ahead; its pull() of the same keys takes them.

        Arguments are those of pull(). Changes no result.
        """
        asked = self._asked("prefetch", where, keys)
        self._in_body(lambda: self._own.prefetch(asked))

    @overload
    def push(self, where: Pulled, gradients: Any, /, *, each: bool = False) -> None: ...

    @overload
    def push(self, where: str, keys: Any, gradients: Any, /) -> None: ...

    def push(self, where: Any, *given: Any, each: bool = False) -> None:
        """Adds gradients to the step: push(pulled, gradients), or push("words", keys, gradients).

        gradients: float32, those of the mean of the loss over this worker's examples. For a Pulled
            of shape [m, dim], as its rows; for keys of any shape, one row a key, and those of a
            repeated key are added up. Arrays that are contiguous are read without a copy.
        each: for a Pulled, one row for each key that was asked for, as its positions: [n, dim].

        The keys must have been pulled in this step. Raises JobError for a gradient that is not
        finite, and for another shape.
        """
        if isinstance(where, Pulled) and len(given) == 1:
            self._in_body(lambda: self._own.push(where, given[0], each))
        elif isinstance(where, str) and len(given) == 2 and not each:
            self._in_body(lambda: self._own.push_keys(where, given[0], given[1]))
        else:
            raise TypeError("push(): expected what pull() returned and its gradients, or a table's name, "
                            f"keys and gradients; not {type(where).__name__} and {len(given)} more")

    def store(self, table: str, keys: Any, rows: Any) -> None:
        """Sets rows, float32 with one row a key, and gives them the optimizer's initial state.

        The keys must be distinct. Every pull() that begins after this call gets these rows.
        """
        self._in_body(lambda: self._own.store(table, keys, rows))

    def advance(self, examples: Optional[int] = None) -> None:
        """Ends the step.

        examples: those that its gradients are the mean of, by which they are weighted beside
            those of other workers; None: `worker.examples`, if it was set in this step, else 1.
        """
        count = self.examples if examples is None else examples
        self._end_of_step()
        self._in_body(lambda: self._own.advance(1 if count is None else count))

    def give_up(self) -> None:
        """Begins the step again: nothing that was pushed in it counts."""
        self._end_of_step()
        self._own.give_up()

    def step(self, examples: Optional[int] = None) -> "Step":
        """Returns a context that ends the step when it is left, and gives it up if by an exception.

        Arguments are those of advance().
        """
        return Step(self, examples)

    def checkpoint(self, extra: Optional[bytes] = None) -> None:
        """Asks for a checkpoint at the end of this step, beside those of checkpoint.*.

        Its files are written while the next steps are made, and finish() waits for them.

        extra: this worker's state in it; None: what `state` returns.
        """
        self._in_body(lambda: self._own.checkpoint(extra))

    def report(self, **figures: float) -> None:
        """Answers an evaluation that is due: report(auc=0.81, logloss=0.4).

        Each worker answers; the figures of worker 0 count, in metrics.jsonl, checkpoint.keep_best,
        early stopping and schedules.
        """
        self._own.report(_named_numbers(figures))

    # ---- The end.

    def finish(self, evaluate: Optional["Evaluate"] = None) -> None:
        """Says that this worker has no more examples; returns when all have, and the job has ended.

        evaluate: as in loop(), for evaluations that become due meanwhile; None: they have no
            figures from this worker.
        """
        self._end_of_step()
        self._own.finish(None if evaluate is None else functools.partial(self._figures, evaluate))

    def close(self, reason: Optional[str] = None) -> None:
        """Leaves the job, which hears of a lost worker unless it has ended. May be called twice."""
        _open.discard(self)
        self._own.close(reason or "its program called close() before finish()")

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Any) -> None:
        reason = f"{kind.__name__}: {value}" if kind is not None else None
        try:
            if kind is None:
                self.finish()
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.close(reason)

    # ---- A loop over data.

    def loop(self, data: Data[Batch],
             evaluate: Optional["Evaluate"] = None, *,
             examples: Optional[Callable[[Batch], int]] = None,
             finish: bool = True) -> Iterator[Batch]:
        """Iterates over batches; the body of the loop is a step, which ends after it.

        data: an iterable of batches, or a function that takes `restored` and returns one. With a
            function the loop survives that the job goes back: it begins again with
            data(restored). The body in which that happens runs to its end over the rows of the
            checkpoint, and its step is given up.
        evaluate: is called when an evaluation is due, and returns the figures for report().
        examples: returns the number of examples of a batch, as advance() takes it.
        finish: False leaves out finish() after the last batch.

        The loop ends when data have ended or the job has. Leaving it by break or an exception gives
        the step up.

        >>> import hdps, tempfile
        >>> job = {"model": {"type": "tables", "tables": [{"name": "words", "dim": 2}]}}
        >>> with hdps.local(job, tempfile.mkdtemp(), quiet=True) as worker:
        ...     for keys in worker.loop([[1, 2], [2, 3]], examples=len):
        ...         pulled = worker.pull("words", keys)
        ...         worker.push(pulled, [[1.0, 1.0]] * len(pulled.keys))
        ...     print(worker.clock)
        2
        """
        if not callable(data) and not isinstance(data, Iterable):
            raise TypeError(f"loop(): data is a {type(data).__name__}: expected batches to iterate "
                            "over, or a function of the restored state that returns them")
        every = self.job.to_dict()["train"]["eval_every_steps"]
        if every and evaluate is None:
            raise _hdps.JobError(f"loop(): train.eval_every_steps={every} makes evaluations due, but there "
                                 "is no function for them; give evaluate=..., which returns figures")
        return self._batches(data, evaluate, examples, finish)

    def _batches(self, data: Data[Batch], evaluate: Optional["Evaluate"],
                 examples: Optional[Callable[[Batch], int]], finish: bool) -> Iterator[Batch]:
        restored = self.restored
        while True:
            try:
                self._evaluate(evaluate)
                for batch in data(restored) if callable(data) else data:
                    ends = self._ends
                    yield from self._body(batch)
                    if self._void is not None:
                        went_back, self._void = self._void, None
                        self.give_up()  # Whose number of examples is not that of the next step.
                        raise went_back
                    if self._ends == ends:
                        self.advance(None if examples is None else examples(batch))
                    self._evaluate(evaluate)
                    if self._own.ended:
                        return self.finish()
                if finish:
                    self.finish(evaluate)
                return
            except _hdps.WentBack as went_back:
                if not callable(data):
                    raise
                restored = went_back.restored
                if self.on_restored is not None:
                    self.on_restored()
            except _hdps.Ended:
                return

    def _body(self, batch: Batch) -> Iterator[Batch]:
        self._in_loop = True
        left = True
        try:
            yield batch
            left = False
        finally:
            self._in_loop = False
            if left:
                self._void = None
                self.give_up()

    def _evaluate(self, evaluate: Optional["Evaluate"]) -> None:
        while evaluate is not None and self.evaluation_due:
            self._own.report(self._figures(evaluate))

    def _figures(self, evaluate: "Evaluate") -> List[Tuple[str, float]]:
        figures = evaluate(self)
        if not isinstance(figures, Mapping):
            raise TypeError(f"evaluate returned a {type(figures).__name__}: expected a dict of figures by "
                            "name")
        return _named_numbers(figures)

    # ---- Helpers.

    def _asked(self, call: str, where: Any, keys: Any) -> List[Any]:
        if isinstance(where, str):
            if keys is None:
                raise TypeError(f'{call}("{where}"): keys are missing; give {call}("{where}", keys)')
            return [(where, keys)]
        if not isinstance(where, Mapping):
            raise TypeError(f"{call}(): expected the name of a table, or a dict of keys by table, not "
                            f"{type(where).__name__}")
        if keys is not None:
            raise TypeError(f"{call}(): keys stand in the dict, by table")
        return list(where.items())

    def _in_body(self, call: Callable[[], None]) -> None:
        """Does nothing in the rest of a body of loop() during which the job went back."""
        if self._void is not None:
            return
        try:
            call()
        except _hdps.WentBack as went_back:
            if not self._in_loop:
                raise
            self._void = went_back

    def _end_of_step(self) -> None:
        self.examples = None
        self._ends += 1

    def __repr__(self) -> str:
        return f"<hdps.Worker {self.rank} of {self.workers}, step {self.clock}>"


Evaluate = Callable[[Worker], Mapping[str, float]]


def _named_numbers(figures: Mapping[str, float]) -> List[Tuple[str, float]]:
    for name, value in figures.items():
        if not isinstance(name, str):
            raise TypeError(f"figures: the name {name!r} is a {type(name).__name__}: expected a str")
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            raise TypeError(f"figures: {name} is a {type(value).__name__}: expected a number")
    return [(name, float(value)) for name, value in figures.items()]


class Step:
    """What Worker.step() returns."""

    def __init__(self, worker: Worker, examples: Optional[int]) -> None:
        self.worker = worker
        self.examples = examples

    def __enter__(self) -> "Step":
        if self.worker._in_step:
            raise _hdps.JobError("step() inside of step(): a step has no steps; leave the outer one first")
        self.worker._in_step = True
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Any) -> None:
        self.worker._in_step = False
        if kind is None:
            self.worker.advance(self.examples)
        else:
            self.worker.give_up()


def _number_of(name: str) -> Optional[int]:
    """Returns the whole number of a variable of the environment; None if it is not set."""
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise _hdps.JobError(f'{name}="{text}" of the environment is no whole number; unset it, or '
                             "give rank=...") from None


def join(address: Optional[str] = None, keys: Optional[Path] = None, rank: Optional[int] = None,
         job: Optional[JobLike] = None, state: Optional[State] = None, insecure: bool = False,
         threads: int = 0) -> Worker:
    """Joins a running job of model.type "tables" as one of its workers.

    address: "tcp://HOST:PORT" or "ipc://PATH" of the scheduler; None: HDPS_SCHEDULER of the
        environment, and then keys=None takes HDPS_KEYS.
    keys: the folder of hdps keygen with a worker's key; None: the job has no keys.
    rank: the number of this worker; None: RANK of the environment, as torchrun sets it, else the
        scheduler chooses. If RANK was taken, WORLD_SIZE must be the job's number of workers.
    job: the job, which must be the scheduler's; None: asks the scheduler for it.
    state: as Worker.state.
    insecure: allows an address beyond this machine without keys.
    threads: of this worker; 0 for one a core.

    Returns a Worker when all members are there and the first step may begin. Raises JobError for a
    mistake, and RunError if the scheduler does not answer.

    >>> hdps.join("localhost")
    Traceback (most recent call last):
    hdps.JobError: ...
    """
    if address is None:
        address = os.environ.get("HDPS_SCHEDULER", "")
        if not address:
            raise _hdps.JobError("join() has no address; give that of the scheduler, \"tcp://HOST:PORT\", or "
                                 "set HDPS_SCHEDULER")
        if keys is None:
            keys = os.environ.get("HDPS_KEYS") or None
    of_all = None
    if rank is None:
        rank = _number_of("RANK")
        of_all = None if rank is None else _number_of("WORLD_SIZE")
    checked = None if job is None else job_of(job, {})
    worker = Worker(_hdps.join_tables(address, keys=keys, rank=rank, job=checked, state=state,
                                      insecure=insecure, threads=threads))
    if of_all is not None and of_all != worker.workers:
        text = (f"WORLD_SIZE={of_all} of the environment, but the job has {worker.workers} workers; start as "
                "many, or give rank=...")
        worker.close(text)
        raise _hdps.JobError(text)
    return worker


@overload
def local(job: JobLike, out: Path, *, servers: int = 1, resume: str = "auto",
          state: Optional[State] = None, threads: int = 0, set: Optional[Dict[str, Any]] = None,
          quiet: bool = False) -> Worker: ...


@overload
def local(job: JobLike, out: Path, *, servers: int = 1, workers: int, resume: str = "auto",
          threads: int = 0, set: Optional[Dict[str, Any]] = None,
          quiet: bool = False) -> List[Worker]: ...


def local(job: JobLike, out: Path, *, servers: int = 1, workers: Optional[int] = None,
          resume: str = "auto", state: Optional[State] = None, threads: int = 0,
          set: Optional[Dict[str, Any]] = None, quiet: bool = False) -> Union[Worker, List[Worker]]:
    """Runs scheduler, servers and worker of a job of model.type "tables" in this process.

    job: an hdps.Job, a dict of its settings, or the path of a job file; `set` replaces settings, as
        in Job.load.
    out: the folder for results; docs/run_files.md says what comes into it.
    servers, resume, threads: the flags of hdps train.
    workers: None for one; a number returns a list of so many. Each is used by a thread of its own,
        for a step waits for the others.
    state: as Worker.state, which several workers set themselves.
    quiet: shows no progress.

    Returns a Worker. One process runs one job at a time: leave the `with` of the worker, or close
    it, before the next. Raises what train() raises.
    """
    if workers is not None and state is not None:
        raise _hdps.JobError("local(): state=... is of one worker; set `state` of each worker of the list")
    show = None if quiet else Progress()
    own = _hdps.local_tables(job_of(job, set or {}), out, servers=servers,
                             workers=1 if workers is None else workers, resume=resume, state=state,
                             threads=threads, show=show, sets=set or {})
    made = [Worker(each) for each in own]
    return made[0] if workers is None else made


@atexit.register
def _close_all() -> None:
    """Leaves jobs before the interpreter ends, whose threads would be gone."""
    for worker in list(_open):
        try:
            worker.close("its program ended before finish()")
        except _hdps.HdpsError:
            pass  # A thread that is still in a call of it.
