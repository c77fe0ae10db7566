"""hdps under PyTorch: modules over the rows of a job's tables, whose gradients go to the servers.

Needs PyTorch 1.13 or later, and nothing else than the package hdps.
"""
import torch

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (1, 13):
    raise ImportError(f"hdps.torch needs PyTorch 1.13 or later, and this is {torch.__version__}: "
                      "install a newer one")

from hdps.torch.bags import Embedding, EmbeddingBag
from hdps.torch.collection import EmbeddingBagCollection, KeyedTensor
from hdps.torch.dataset import Dataset, Features
from hdps.torch.kept import Kept, keep
from hdps.torch.server_optimizer import ServerOptimizer

__all__ = ["Dataset", "Embedding", "EmbeddingBag", "EmbeddingBagCollection", "Features", "Kept",
           "KeyedTensor", "ServerOptimizer", "keep"]
