"""Runs a program as a worker of a job, and kills a member of it before one step, once.

  torch_kill.py OUT MEMBER STEP PROGRAM     OUT: the run's folder; MEMBER: scheduler, server_N or worker_0
"""
import os
import pathlib
import runpy
import signal
import sys

import hdps._worker

out, member, step, program = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
batches_of = hdps._worker.Worker.loop


def loop(self, *args, **kwargs):
    for batch in batches_of(self, *args, **kwargs):
        if self.rank == 0 and self.clock == step and not (out / "killed").exists():
            (out / "killed").write_text(f"{member} before step {step}\n")
            own = member == "worker_0"
            os.kill(os.getpid() if own else int((out / "pid" / f"{member}.pid").read_text()), signal.SIGKILL)
        yield batch


hdps._worker.Worker.loop = loop
sys.argv = [program]
sys.path[0] = str(pathlib.Path(program).parent)
runpy.run_path(program, run_name="__main__")
