"""Wide&Deep on the census data in JAX: rows at hdps' servers, dense layers in this process.

    python3 examples/jax/wide_deep.py      scheduler, servers and worker in this process
"""
import pathlib
import pickle

import hdps
import jax
import jax.numpy as jnp
import numpy as np

CENSUS = hdps.Job.load(pathlib.Path(__file__).parent.parent / "census" / "census.json").to_dict()
JOB = {"data": CENSUS["data"], "train": {"batch_size": 256}, "model": {"type": "tables", "tables": [
    {"name": "wide", "dim": 1, "optimizer": {"kind": "adagrad", "learning_rate": 0.05}},
    {"name": "deep", "dim": 8, "optimizer": {"kind": "adagrad", "learning_rate": 0.05}}]}}


def rows_of(worker, batch, train=True):
    """Returns a function that gives the sum of each feature's rows: {table: [features * n, dim]}."""
    features = batch.features.values()
    keys = np.concatenate([np.from_dlpack(feature.keys) for feature in features])
    lengths = np.concatenate([np.from_dlpack(feature.lengths) for feature in features])
    bags = np.repeat(np.arange(len(lengths)), lengths)

    def pull(_):
        sums = {table: np.zeros((len(lengths), dim), np.float32) for table, dim in worker.tables.items()}
        for table, pulled in worker.pull(dict.fromkeys(sums, keys), train=train).items():
            np.add.at(sums[table], bags, np.from_dlpack(pulled.rows)[np.from_dlpack(pulled.positions)])
        return jax.tree.map(jnp.asarray, sums), None

    def push(_, gradients):
        for table, gradient in gradients.items():
            worker.push(table, keys, np.asarray(gradient)[bags])
        return (0.0,)

    rows = jax.custom_vjp(lambda anchor: pull(anchor)[0])
    rows.defvjp(pull, push)
    return rows  # Of a number, because JAX differentiates what depends on one.


@jax.jit
def loss_of_rows(dense, rows, numeric, labels):
    deep = jnp.hstack([numeric, *rows["deep"].reshape(-1, len(labels), 8)])
    for w, b in dense[:-1]:
        deep = jax.nn.relu(deep @ w + b)
    logits = (deep @ dense[-1][0] + dense[-1][1])[:, 0] + rows["wide"].reshape(-1, len(labels)).sum(0)
    return jnp.mean(jax.nn.softplus(logits) - labels * logits)


def loss_of(dense, anchor, rows, batch):
    return loss_of_rows(dense, rows(anchor), jnp.from_dlpack(batch.numeric), jnp.from_dlpack(batch.labels))


def main(out="out/jax", rate=0.1):
    first, draw = next(hdps.read(JOB)), np.random.default_rng(1)
    sizes = [first.numeric.shape[1] + 8 * len(first.features), 64, 32, 1]
    dense = [(draw.normal(0, m ** -0.5, (m, n)).astype(np.float32), np.zeros(n, np.float32))
             for m, n in zip(sizes, sizes[1:])]
    step_of = jax.value_and_grad(loss_of, argnums=(0, 1))
    with hdps.local(JOB, out, quiet=True) as worker:
        place = (0, 0)
        if worker.restored is not None:
            dense, place = pickle.loads(worker.restored)
        batches = hdps.read(worker.job, epoch=place[0], skip_steps=place[1])
        worker.state = lambda: pickle.dumps((jax.device_get(dense), batches.position))
        for batch in worker.loop(batches, examples=len, finish=False):
            _, (gradients, _) = step_of(dense, 0.0, rows_of(worker, batch), batch)
            dense = jax.tree.map(lambda weight, slope: weight - rate * slope, dense, gradients)
        losses = [(len(batch), float(loss_of(dense, 0.0, rows_of(worker, batch, train=False), batch)))
                  for batch in hdps.read(worker.job, which="eval")]
        print(f"loss {np.average([loss for _, loss in losses], weights=[n for n, _ in losses]):.4f} "
              f"after {worker.clock} steps", flush=True)


if __name__ == "__main__":
    main()
