#!/usr/bin/env python3
"""Trains one case with the dense half of the tuned PyTorch and FBGEMM's fused tables, which are updated
within the backward pass, and prints a line of JSON. Needs fbgemm-gpu-cpu (setup.sh --all)."""
import pytorch_tuned  # First, because it requests huge pages.
import pytorch_runs

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode, EmbeddingLocation
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

import cases

WIDE_DIM = 4  # The smallest that FBGEMM has; the other three weights get no gradient.


def table_of(rows, dim, deviation):
    table = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, EmbeddingLocation.HOST, ComputeDevice.CPU)],
        optimizer=EmbOptimType.EXACT_ADAGRAD, learning_rate=cases.TABLE_RATE,
        eps=pytorch_tuned.EPSILON, bounds_check_mode=BoundsCheckMode.NONE)
    for (squares,) in table.split_optimizer_states():
        squares.fill_(cases.ACCUMULATOR)
    (weights,) = table.split_embedding_weights()
    weights.data.normal_(std=deviation)
    return table


class FusedRows:
    """Acts like pytorch_tuned.Rows; bags of one key each for deep rows, of an example's for wide ones."""

    def __init__(self, case):
        rows = case.keys * case.vocabulary
        self.deep = table_of(rows, case.dim, 0.01)
        self.wide = table_of(rows, WIDE_DIM, 0) if case.wide else None

    def of(self, keys):
        found = self.deep(keys.flatten(), torch.arange(keys.numel() + 1)).view(*keys.shape, -1)
        if self.wide is None:
            return found, None
        ends = torch.arange(len(keys) + 1) * keys.shape[1]
        return found, self.wide(keys.flatten(), ends)[:, :1]

    def update(self, *_):
        """The backward pass has updated the rows."""


def make_trainer(case, precision):
    return pytorch_tuned.TunedTrainer(case, precision, FusedRows)


if __name__ == "__main__":
    pytorch_runs.main(__doc__, make_trainer, {"cpu": ["fp32"]})
