#!/usr/bin/env python3
"""Trains one case in PyTorch over rows of hdps, and prints a line of JSON.

Everything but the rows is pytorch_tuned.py's. Where HDPS_SCHEDULER is set, as by local_cluster.sh, the
process joins that job as its worker; else scheduler and server run in it. Needs the package hdps.
"""
import os
import tempfile

os.environ["THP_MEM_ALLOC_ENABLE"] = "1"  # As pytorch_tuned.py, before PyTorch is imported.

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import cases  # noqa: E402
import hdps  # noqa: E402
import pytorch_runs  # noqa: E402
import pytorch_tuned  # noqa: E402


class ServersRows:
    """The rows of the job's tables `deep` and, if the case has it, `wide`."""

    def __init__(self, case):
        threads = torch.get_num_threads()
        if os.environ.get("HDPS_SCHEDULER"):
            self.worker = hdps.join(threads=threads)
        else:
            self.out = tempfile.TemporaryDirectory()
            self.worker = hdps.local(cases.tables_job(case), self.out.name, threads=threads, quiet=True)
        self.tables = ["deep", "wide"] if case.wide else ["deep"]
        self.keys_of_example = case.keys

    def of(self, keys):
        """Returns every example's deep rows, and the sum of its wide weights or None."""
        asked = {table: keys for table in self.tables}
        self.pulled = self.worker.pull(asked, train=torch.is_grad_enabled())
        rows = {table: torch.from_dlpack(self.pulled[table].rows) for table in self.tables}
        # Both tables were asked for the same keys.
        self.positions = torch.from_dlpack(self.pulled["deep"].positions).view_as(keys)
        deep = functional.embedding(self.positions, rows["deep"])
        if "wide" not in rows:
            return deep, None
        return deep, functional.embedding_bag(self.positions, rows["wide"], mode="sum")

    @torch.no_grad()
    def update(self, keys, deep, wide):
        """Pushes each key's gradients, and ends the step."""
        self.worker.push(self.pulled["deep"], deep.grad.flatten(0, 1), each=True)
        if wide is not None:
            of_keys = wide.grad.expand(-1, self.keys_of_example).reshape(-1, 1)
            self.worker.push(self.pulled["wide"], of_keys, each=True)
        self.worker.advance(len(keys))


class Trainer(pytorch_tuned.TunedTrainer):
    def __init__(self, case, precision):
        super().__init__(case, precision, ServersRows)

    def end(self):
        worker = self.rows.worker
        copied = worker.copied_bytes / worker.clock
        worker.finish()
        worker.close()
        return {"copied_bytes_a_step": copied}


if __name__ == "__main__":
    pytorch_runs.main(__doc__, Trainer, {"cpu": ["fp32", "bf16"]})
