"""hdps from Python: train recommenders whose tables are larger than a GPU, and use them."""
from hdps._data import Prepared, generate, prepare
from hdps._hdps import Array, Connection, HdpsError, Job, JobError, Model, RunError, connect
from hdps._runs import Report, read_metrics, report
from hdps._train import train

__all__ = ["Array", "Connection", "HdpsError", "Job", "JobError", "Model", "Prepared", "Report",
           "RunError", "connect", "generate", "prepare", "read_metrics", "report", "train"]
