"""Trains a small model in each process of torchrun; rank 0 saves rows and parameters to a file at the end.

  torch_program.py FILE [PID]     PID: a process that rank 0 kills before step 5, when it is started the first time
"""
import os
import signal
import sys

import hdps
import hdps.torch
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel


class Model(torch.nn.Module):
    def __init__(self, worker):
        super().__init__()
        self.bag = hdps.torch.EmbeddingBag(worker, "words", "mean")
        self.dense = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        self.rests = torch.nn.Linear(3, 1)  # Takes part in every second step alone.

    def forward(self, keys, all_parts):
        rows = self.bag(keys)
        return self.dense(rows) + (self.rests(rows) if all_parts else 0)


with hdps.join() as worker:
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(Model(worker), find_unused_parameters=True)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05, initial_accumulator_value=0.1)
    hdps.torch.keep(worker, model=model, optimizer=optimizer)
    for step in worker.loop(range(worker.clock, 6), finish=False):
        if step == 5 and worker.rank == 0 and len(sys.argv) > 2 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(int(sys.argv[2]), signal.SIGKILL)
        keys, labels = torch.randint(20, (8, 2)), torch.rand(8, 1)  # The same in each process.
        own = slice(worker.rank * 8 // worker.workers, (worker.rank + 1) * 8 // worker.workers)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(keys[own], step % 2 == 0), labels[own]).backward()
        optimizer.step()
    pulled = worker.pull("words", torch.arange(20))
    rows = torch.from_dlpack(pulled.rows)[torch.from_dlpack(pulled.positions)]
    if worker.rank == 0:
        torch.save({"rows": rows, **{name: value.detach() for name, value in model.named_parameters()}},
                   sys.argv[1])
