"""Wide&Deep on the census data in PyTorch, with all that it learns at hdps' servers.

    python3 examples/torch/wide_deep.py      scheduler, servers and worker in this process

README.md has the commands for daemons and for several machines: nothing here changes.
"""
import os
import pathlib

import torch

import hdps
import hdps.torch

JOB = pathlib.Path(__file__).with_suffix(".json")
EPOCHS = 4
DEEP = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex",
        "native_country", "age_range", "hours_range", "gain_range", "loss_range"]


class WideDeep(torch.nn.Module):
    """A weight a key, and an MLP over rows of the keys and numbers (Cheng et al. 2016)."""

    def __init__(self, worker, features, numbers):
        super().__init__()
        self.wide = hdps.torch.EmbeddingBagCollection(worker, dict.fromkeys(features, "wide"))
        self.deep = hdps.torch.EmbeddingBagCollection(worker, dict.fromkeys(DEEP, "deep"))
        self.wide_numbers = torch.nn.Linear(numbers, 1)
        inputs = len(DEEP) * worker.tables["deep"] + numbers
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32), torch.nn.ReLU(),
            torch.nn.Linear(32, 1))

    def forward(self, batch):
        features, numbers = batch["features"], batch["numeric"]
        wide = self.wide(features).values().sum(1, keepdim=True) + self.wide_numbers(numbers)
        deep = self.mlp(torch.cat([self.deep(features).values(), numbers], 1))
        return (wide + deep).squeeze(1)


def auc_of(scores, labels):
    """The share of pairs of a positive and a negative example that stand in the right order."""
    ranks = scores.argsort().argsort().double() + 1
    positive = labels > 0.5
    count = positive.sum()
    return ((ranks[positive].sum() - count * (count + 1) / 2) / (count * (~positive).sum())).item()


def main():
    torch.manual_seed(1)
    launched = "HDPS_SCHEDULER" in os.environ  # By local_cluster.sh, cluster.sh or a command of torchrun.
    with hdps.join() if launched else hdps.local(JOB, "out/torch_wide_deep", servers=2) as worker:
        data, test = (hdps.torch.Dataset(worker, which="train", epochs=EPOCHS),
                      list(hdps.torch.Dataset(worker, which="eval")))
        model = WideDeep(worker, test[0]["features"].keys(), test[0]["numeric"].shape[1])
        optimizer = hdps.torch.ServerOptimizer(worker, model.parameters(), table="layers")
        hdps.torch.keep(worker, data=data)
        loss_of = torch.nn.BCEWithLogitsLoss()

        def evaluate(_):
            optimizer.pull(train=False)
            model.eval()
            with torch.no_grad():
                scores = torch.cat([model(batch) for batch in test])
            model.train()
            return {"auc": auc_of(scores, torch.cat([batch["labels"] for batch in test]))}

        for batch in worker.loop(lambda _: data, evaluate, examples=lambda batch: len(batch["labels"]),
                                 finish=False):
            optimizer.pull()
            loss = loss_of(model(batch), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"AUC {evaluate(worker)['auc']:.4f} after {worker.clock} steps", flush=True)


if __name__ == "__main__":
    main()
