"""hdps from Python: train recommenders whose tables are larger than a GPU, and use them."""
from typing import TYPE_CHECKING, Any

from hdps._data import Prepared, generate, prepare, read
from hdps._hdps import (Array, Batch, Batches, Connection, Ended, Feature, HdpsError, Job, JobError, Model,
                        Pulled, RunError, WentBack, connect, export)
from hdps._runs import Report, read_metrics, report
from hdps._train import train
from hdps._worker import Worker, join, local

if TYPE_CHECKING:
    from hdps.sklearn import ClickModel

__all__ = ["Array", "Batch", "Batches", "ClickModel", "Connection", "Ended", "Feature", "HdpsError", "Job",
           "JobError", "Model", "Prepared", "Pulled", "Report", "RunError", "WentBack", "Worker", "connect",
           "export", "generate", "join", "local", "prepare", "read", "read_metrics", "report", "train"]


def __getattr__(name: str) -> Any:
    """ClickModel is imported when it is used, for NumPy and scikit-learn take a second."""
    if name != "ClickModel":
        raise AttributeError(f"module 'hdps' has no attribute '{name}'")
    from hdps.sklearn import ClickModel

    return ClickModel
