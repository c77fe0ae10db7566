"""Wide&Deep in JAX over the tables of an hdps job: rows at the servers, dense layers in this process.

python3 examples/jax/wide_deep.py OUT runs servers and worker in one process; HDPS_SCHEDULER names a running job.
"""
import os
import pathlib
import pickle
import sys

import hdps
import jax
import jax.numpy as jnp
import numpy as np

CENSUS = hdps.Job.load(pathlib.Path(__file__).parent.parent / "census" / "census.json").to_dict()["data"]
TABLES = [{"name": "wide", "dim": 1, "optimizer": {"kind": "ftrl", "learning_rate": 0.1}},
          {"name": "deep", "dim": 8, "optimizer": {"kind": "adagrad", "learning_rate": 0.05}}]
JOB = {"data": CENSUS, "train": {"batch_size": 256}, "model": {"type": "tables", "tables": TABLES}}


def rows_of(worker, batch, train=True):
    """Returns a function that sums the rows of each feature's keys: {table: [features * n, dim]}."""
    features = batch.features.values()
    keys = np.concatenate([np.from_dlpack(feature.keys) for feature in features])
    lengths = np.concatenate([np.from_dlpack(feature.lengths) for feature in features])
    bags = np.repeat(np.arange(len(lengths)), lengths)

    def forward(_):
        sums = {table: np.zeros((len(lengths), dim), np.float32) for table, dim in worker.tables.items()}
        for table, pulled in worker.pull(dict.fromkeys(sums, keys), train=train).items():
            np.add.at(sums[table], bags, np.from_dlpack(pulled.rows)[np.from_dlpack(pulled.positions)])
        return jax.tree.map(jnp.asarray, sums), None

    def backward(_, gradients):
        for table, gradient in gradients.items():
            worker.push(table, keys, np.asarray(gradient)[bags])
        return (0.0,)

    rows = jax.custom_vjp(lambda anchor: forward(anchor)[0])
    rows.defvjp(forward, backward)
    return rows  # Its argument is a number, because JAX differentiates what depends on one.


@jax.jit
def logits_of(dense, rows, numeric):
    n = len(numeric)
    deep = jnp.hstack([numeric, *rows["deep"].reshape(-1, n, 8)])
    for w, b in dense[:-1]:
        deep = jax.nn.relu(deep @ w + b)
    return (deep @ dense[-1][0] + dense[-1][1] + rows["wide"].reshape(-1, n, 1).sum(0))[:, 0]


def loss_of(dense, anchor, rows, batch):
    logits = logits_of(dense, rows(anchor), jnp.from_dlpack(batch.numeric))
    return jnp.mean(jax.nn.softplus(logits) - jnp.from_dlpack(batch.labels) * logits)


def auc_of(worker, dense):
    scores, labels = zip(*((logits_of(dense, rows_of(worker, batch, False)(0.0), jnp.from_dlpack(batch.numeric)),
                            np.from_dlpack(batch.labels)) for batch in hdps.read(worker.job, which="eval")))
    labels, ranks = np.concatenate(labels), np.argsort(np.argsort(np.concatenate(scores))) + 1
    ones = labels.sum()
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / ones / (len(labels) - ones))


def main(out, epochs=2, rate=0.02):
    first, draw = next(hdps.read(JOB)), np.random.default_rng(1)
    widths = [len(first.features) * 8 + first.numeric.shape[1], 64, 32, 1]
    dense = [(draw.normal(0, m ** -0.5, (m, n)).astype(np.float32), np.zeros(n, np.float32))
             for m, n in zip(widths, widths[1:])]
    kept = {"dense": dense, "squares": jax.tree.map(np.zeros_like, dense), "place": (0, 0)}

    def data(restored):
        kept.update(pickle.loads(restored) if restored else {})
        for epoch in range(kept["place"][0], epochs):
            skip = kept["place"][1] if epoch == kept["place"][0] else 0
            batches = hdps.read(worker.job, part=(worker.rank, worker.workers), epoch=epoch, skip_steps=skip)
            for batch in batches:
                kept["place"] = batches.position
                yield batch

    with hdps.join() if "HDPS_SCHEDULER" in os.environ else hdps.local(JOB, out, quiet=True) as worker:
        worker.state = lambda: pickle.dumps(jax.device_get(kept))
        gradient_of = jax.value_and_grad(loss_of, argnums=(0, 1))
        for batch in worker.loop(data, examples=len):
            loss, (gradient, _) = gradient_of(kept["dense"], 0.0, rows_of(worker, batch), batch)
            kept["squares"] = jax.tree.map(lambda s, g: s + g * g, kept["squares"], gradient)
            kept["dense"] = jax.tree.map(lambda w, s, g: w - rate * g / (jnp.sqrt(s) + 1e-8),
                                         kept["dense"], kept["squares"], gradient)
        print(f"step {worker.clock}: loss {loss:.4f}, auc {auc_of(worker, kept['dense']):.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/jax")
