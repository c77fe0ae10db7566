"""The compiled part of hdps; use the package hdps."""
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

_Path = Union[str, bytes, os.PathLike[Any]]
_Paths = Union[_Path, Sequence[_Path]]
_Names = Union[str, Sequence[str]]
_Callback = Callable[[Dict[str, Any]], Any]

class HdpsError(Exception): ...
class JobError(HdpsError): ...
class RunError(HdpsError): ...

class Job:
    def __init__(self, settings: Dict[str, Any], set: Dict[str, Any] = ...) -> None: ...
    @staticmethod
    def load(path: _Path, set: Dict[str, Any] = ...) -> Job: ...
    @property
    def name(self) -> str: ...
    @property
    def warnings(self) -> List[str]: ...
    def to_dict(self) -> Dict[str, Any]: ...

class Array:
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def tolist(self) -> List[Any]: ...
    def __len__(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: None = ...,
        max_version: Optional[Tuple[int, int]] = ...,
        dl_device: Optional[Tuple[int, int]] = ...,
        copy: Optional[bool] = ...,
    ) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...

class Model:
    @staticmethod
    def open(
        path: _Path, which: str = ..., unknown: str = ..., threads: int = ...
    ) -> Model: ...
    @property
    def job(self) -> Job: ...
    @property
    def step(self) -> int: ...
    @property
    def checkpoint(self) -> str: ...
    @property
    def tables(self) -> Dict[str, Dict[str, int]]: ...
    def predict(self, data: Any) -> Array: ...
    def logits(self, data: Any) -> Array: ...
    def lookup(
        self, table: str, *, keys: Any = ..., feature: Optional[str] = ..., values: Any = ...
    ) -> Array: ...
    def contains(
        self, table: str, *, keys: Any = ..., feature: Optional[str] = ..., values: Any = ...
    ) -> List[bool]: ...
    def keys(self, feature: str, values: Any) -> Array: ...
    def item_vectors(self, data: Any) -> Array: ...
    def user_vectors(self, data: Any) -> Array: ...
    def export(self, out: _Path, **options: Any) -> str: ...

def export(
    checkpoint: _Path,
    out: _Path,
    *,
    format: str = ...,
    which: str = ...,
    data: Optional[_Paths] = ...,
    weights: str = ...,
    shard_bytes: int = ...,
    tables: str = ...,
    max_rows: int = ...,
    items: Optional[_Paths] = ...,
    item_text: str = ...,
    index: str = ...,
) -> str: ...

def seconds_of_scoring(model: Model, data: Any, times: int) -> List[float]: ...

class Connection:
    @property
    def address(self) -> str: ...
    def status(self) -> Dict[str, Any]: ...
    def why(self) -> Dict[str, Any]: ...
    def lookup(
        self, table: str, *, keys: Any = ..., feature: Optional[str] = ..., values: Any = ...
    ) -> Array: ...

def connect(
    address: str, keys: Optional[_Path] = ..., *, insecure: bool = ...
) -> Connection: ...
def train(
    job: Job,
    out: _Path,
    *,
    tables: Dict[str, Any],
    sets: Dict[str, Any],
    workers: int,
    servers: int,
    resume: str,
    init: Optional[_Path],
    threads: int,
    show: Any,
    on_step: Optional[_Callback],
    on_eval: Optional[_Callback],
) -> None: ...
def prepare(
    files: _Paths,
    out: _Path,
    *,
    label: str,
    eval: _Paths,
    model: str,
    task: str,
    positive: str,
    categorical: _Names,
    numeric: _Names,
    multi: _Names,
    skip: _Names,
    group: str,
    weight: str,
    min_count: int,
    split: str,
    max_bad_rows: Optional[int],
) -> Tuple[str, str]: ...
def generate(
    out: _Path,
    *,
    kind: str,
    format: str,
    model: str,
    rows: int,
    eval_rows: int,
    numeric: int,
    categorical: int,
    vocabulary: int,
    zipf: float,
    seed: int,
    signal: float,
    ctr: float,
    noise: Optional[float],
    missing: float,
) -> Dict[str, Any]: ...
def report(runs: _Paths, html: Optional[_Path]) -> Tuple[str, str]: ...
