"""DLRM on the census data in PyTorch: rows at hdps' servers, dense layers in DistributedDataParallel.

    python3 examples/torch/dlrm.py           scheduler, servers and worker in this process

README.md has the commands for torchrun, on one machine and on several.
"""
import os
import pathlib
import sys

import torch

import hdps
import hdps.torch
from wide_deep import DEEP as FEATURES
from wide_deep import EPOCHS, auc_of

JOB = pathlib.Path(__file__).with_suffix(".json")


class Dlrm(torch.nn.Module):
    """Dot products of all pairs of features and numbers between two MLPs (Naumov et al. 2019)."""

    def __init__(self, worker, numbers):
        super().__init__()
        self.rows = hdps.torch.EmbeddingBagCollection(worker, dict.fromkeys(FEATURES, "deep"))
        self.dim, vectors = worker.tables["deep"], len(FEATURES) + 1
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(numbers, 64), torch.nn.ReLU(), torch.nn.Linear(64, self.dim), torch.nn.ReLU())
        self.top = torch.nn.Sequential(
            torch.nn.Linear(self.dim + vectors * (vectors - 1) // 2, 64), torch.nn.ReLU(),
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.one, self.other = torch.tril_indices(vectors, vectors, offset=-1)

    def forward(self, batch):
        bottom = self.bottom(batch["numeric"])
        rows = self.rows(batch["features"]).values().view(len(bottom), -1, self.dim)
        vectors = torch.cat([bottom.unsqueeze(1), rows], 1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.one, self.other]
        return self.top(torch.cat([bottom, dots], 1)).squeeze(1)


def main():
    torch.manual_seed(1)
    launched = "HDPS_SCHEDULER" in os.environ
    several = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    with hdps.join() if launched else hdps.local(JOB, "out/torch_dlrm", servers=2) as worker:
        if worker.workers > 1 and not several:
            sys.exit("dlrm.py: each worker has dense layers of its own; start several by torchrun")
        data, test = (hdps.torch.Dataset(worker, which="train", epochs=EPOCHS),
                      list(hdps.torch.Dataset(worker, which="eval")))
        dlrm = Dlrm(worker, test[0]["numeric"].shape[1])
        optimizer = torch.optim.Adam(dlrm.parameters(), lr=0.003)
        hdps.torch.keep(worker, model=dlrm, optimizer=optimizer, data=data)
        model = dlrm
        if several:
            torch.distributed.init_process_group("gloo")  # NCCL where each has a GPU.
            model = torch.nn.parallel.DistributedDataParallel(dlrm)

        def evaluate(_):
            dlrm.eval()
            with torch.no_grad():
                scores = torch.cat([dlrm(batch) for batch in test])
            dlrm.train()
            return {"auc": auc_of(scores, torch.cat([batch["labels"] for batch in test]))}

        # Several ranks go back together: torchrun starts all of them again.
        batches = data if several else lambda restored: data
        for batch in worker.loop(batches, evaluate, examples=lambda batch: len(batch["labels"]), finish=False):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"AUC {evaluate(worker)['auc']:.4f} after {worker.clock} steps", flush=True)


if __name__ == "__main__":
    main()
