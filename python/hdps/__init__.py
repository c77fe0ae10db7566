"""hdps from Python: train recommenders whose tables are larger than a GPU, and use them."""
from typing import TYPE_CHECKING, Any

from hdps._data import Prepared, generate, prepare, read
from hdps._hdps import (Array, Batch, Batches, Connection, Ended, Feature, HdpsError, Job, JobError, Model,
                        Pulled, RunError, WentBack, connect, export)
from hdps._runs import Report, read_metrics, report
from hdps._train import train
from hdps._worker import Worker, join, local

if TYPE_CHECKING:
    from hdps._client import Client
    from hdps.sklearn import ClickModel

__all__ = ["Array", "Batch", "Batches", "ClickModel", "Client", "Connection", "Ended", "Feature", "HdpsError",
           "Job", "JobError", "Model", "Prepared", "Pulled", "Report", "RunError", "WentBack", "Worker",
           "connect", "export", "generate", "join", "local", "prepare", "read", "read_metrics", "report",
           "train"]


def __getattr__(name: str) -> Any:
    """Two classes are imported when they are used: NumPy, scikit-learn and HTTP take their time."""
    if name == "ClickModel":
        from hdps.sklearn import ClickModel

        return ClickModel
    if name == "Client":
        from hdps._client import Client

        return Client
    raise AttributeError(f"module 'hdps' has no attribute '{name}'")
