"""A two-tower model in PyTorch with a loss of its own, over rows at hdps' servers.

    python3 examples/torch/two_tower.py      scheduler, servers and worker in this process

README.md has the commands for daemons: the towers' weights are at the servers too.
"""
import os
import pathlib

import torch
from torch.nn import functional

import hdps
import hdps.torch
from wide_deep import auc_of

JOB = pathlib.Path(__file__).with_suffix(".json")
EPOCHS, TEMPERATURE = 5, 0.2


class TwoTower(torch.nn.Module):
    """Gives a vector for the items of a history, and one for an item, both of length 1."""

    def __init__(self, worker):
        super().__init__()
        self.seen = hdps.torch.EmbeddingBag(worker, "seen", mode="mean")
        self.items = hdps.torch.EmbeddingBag(worker, "items")
        dim = worker.tables["items"]
        self.user = torch.nn.Sequential(torch.nn.Linear(dim, 32), torch.nn.ReLU(), torch.nn.Linear(32, dim))

    def forward(self, features):
        user = self.user(self.seen(*features["history"]))
        return functional.normalize(user), functional.normalize(self.items(*features["target"]))


def loss_of(user, item, targets, bought):
    """What was bought shall beat the other items of the batch; what was left shall not point to the user."""
    scores = user @ item.T / TEMPERATURE
    same = (targets.unsqueeze(0) == targets.unsqueeze(1)) & ~torch.eye(len(targets), dtype=torch.bool)
    chosen = -functional.log_softmax(scores.masked_fill(same, float("-inf")), 1).diagonal()
    left = functional.relu(scores.diagonal())
    return torch.where(bought > 0.5, chosen, left).mean()


def main():
    torch.manual_seed(1)
    with hdps.join() if "HDPS_SCHEDULER" in os.environ else hdps.local(JOB, "out/torch_two_tower") as worker:
        data, test = hdps.torch.Dataset(worker, epochs=EPOCHS), hdps.torch.Dataset(worker, which="eval")
        model = TwoTower(worker)
        optimizer = hdps.torch.ServerOptimizer(worker, model.parameters(), table="layers")
        hdps.torch.keep(worker, data=data)

        for batch in worker.loop(lambda _: data, examples=lambda batch: len(batch["labels"]), finish=False):
            optimizer.pull()
            user, item = model(batch["features"])
            loss = loss_of(user, item, batch["features"]["target"].input, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        optimizer.pull(train=False)
        model.eval()
        with torch.no_grad():
            towers = [(*model(batch["features"]), batch["labels"]) for batch in test]
        scores = torch.cat([(user * item).sum(1) for user, item, _ in towers])
        auc = auc_of(scores, torch.cat([labels for _, _, labels in towers]))
        print(f"AUC {auc:.4f} after {worker.clock} steps", flush=True)


if __name__ == "__main__":
    main()
