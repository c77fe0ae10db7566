"""hdps from Python: train recommenders whose tables are larger than a GPU, and use them."""
from hdps._hdps import HdpsError, Job, JobError, RunError
from hdps._train import train

__all__ = ["HdpsError", "Job", "JobError", "RunError", "train"]
