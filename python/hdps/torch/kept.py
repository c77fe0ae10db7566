"""The state of what stays in a worker's process, as part of the job's checkpoints."""
import io
import json
import warnings
from typing import Any, List, Sequence

import torch

_RANDOM = "torch.get_rng_state"  # No keyword has this name.

def keep(worker: Any, **parts: Any) -> None:
    """Keeps the state of objects in the job's checkpoints, beside the rows, of one point in time.

    parts: objects with state_dict() and load_state_dict(), such as model=, optimizer=, scheduler=,
        and data= for a hdps.torch.Dataset. A name stands for the same object in each run.

    If the job goes on from a checkpoint, each part gets its state now. If it goes back to one
    later, each gets it again before the worker's next step. The state of torch's random numbers on
    the CPU is kept, too. Each worker keeps its own.

    Raises TypeError for an object without these methods, and ValueError if a checkpoint has other
    parts.

        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.Adam(model.parameters())
        hdps.torch.keep(worker, model=model, optimizer=optimizer)
    """
    for name, part in parts.items():
        for method in ("state_dict", "load_state_dict"):
            if not callable(getattr(part, method, None)):
                raise TypeError(f"{name}: {type(part).__name__} has no {method}(): expected an "
                                "object such as a module or an optimizer of torch")

    def state() -> bytes:
        states = {name: part.state_dict() for name, part in parts.items()}
        return _bytes_of({**states, _RANDOM: torch.get_rng_state()})

    def restore() -> None:
        if worker.restored is None:
            if worker.clock > 0:
                warnings.warn(f"the job goes on from step {worker.clock}, and keeps nothing of "
                              f"worker {worker.rank}: {', '.join(parts)} are as they are here",
                              stacklevel=3)
            return
        states = _states_of(worker.restored)
        random = states.pop(_RANDOM)
        if list(states) != list(parts):
            raise ValueError(f"the checkpoint of step {worker.clock} keeps {', '.join(states)}: "
                             f"expected {', '.join(parts)}, in this order")
        for name, part in parts.items():
            part.load_state_dict(states[name])
        torch.set_rng_state(random)

    restore()
    worker.keep(state, restore)


def _bytes_of(states: Any) -> bytes:
    """Returns the same bytes for the same values, whichever objects hold them."""
    tensors: List[torch.Tensor] = []
    form = json.dumps(_form_of("", states, tensors))
    file = io.BytesIO()
    torch.save([form, *tensors], file)
    return file.getvalue()


def _states_of(kept: bytes) -> Any:
    form, *tensors = torch.load(io.BytesIO(kept), weights_only=True)
    return _value_of(json.loads(form), tensors)


def _form_of(place: str, value: Any, tensors: List[torch.Tensor]) -> Any:
    """Returns a value as JSON has it, and puts its tensors into a list.

    weights_only of torch 1.13 reads no floats, and a pickle tells whether two places hold one
    object, which a restored state need not repeat.
    """
    if isinstance(value, torch.Tensor):
        # A copy, for a view is saved with the whole memory behind it.
        tensors.append(value.detach().to("cpu", copy=True).contiguous())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, dict):
        return {"dict": [[_form_of(place, key, tensors), _form_of(f"{place}[{key!r}]", part, tensors)]
                         for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [_form_of(f"{place}[{i}]", part, tensors) for i, part in enumerate(value)]
        return parts if isinstance(value, list) else {"tuple": parts}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"state{place}: {type(value).__name__}: expected tensors, numbers and texts, in "
                    "dicts and lists")


def _value_of(form: Any, tensors: Sequence[torch.Tensor]) -> Any:
    if isinstance(form, list):
        return [_value_of(part, tensors) for part in form]
    if not isinstance(form, dict):
        return form
    if "tensor" in form:
        return tensors[form["tensor"]]
    if "tuple" in form:
        return tuple(_value_of(part, tensors) for part in form["tuple"])
    return {_value_of(key, tensors): _value_of(part, tensors) for key, part in form["dict"]}
