"""The state of what stays in a worker's process, as part of the job's checkpoints."""
import io
import json
import warnings
from typing import Any, Dict, List, Sequence

import torch

_RANDOM = "torch.get_rng_state"  # No keyword has this name.

class Kept:
    """What keep() returns: the parts whose states stand in the checkpoints of a worker."""

    def __init__(self, worker: Any, parts: Dict[str, Any]) -> None:
        for name, part in parts.items():
            for method in ("state_dict", "load_state_dict"):
                if not callable(getattr(part, method, None)):
                    raise TypeError(f"{name}: {type(part).__name__} has no {method}(): expected an "
                                    "object such as a module or an optimizer of torch")
        self._worker, self._parts = worker, parts
        self._initial = self.state()

    def state(self) -> bytes:
        """Returns the states as a checkpoint keeps them: equal bytes for equal values.

        Raises TypeError for a state with other values than tensors, numbers and texts.
        """
        states = {name: part.state_dict() for name, part in self._parts.items()}
        return _bytes_of({**states, _RANDOM: torch.get_rng_state()})

    def restore(self) -> None:
        """Gives each part its state of the checkpoint that the job goes on from.

        If the job begins anew, that is the state at the call of keep(). worker.loop() calls this
        when the job has gone back; a loop of one's own calls it after hdps.WentBack.
        """
        restored, clock = self._worker.restored, self._worker.clock
        if restored is None and clock > 0:
            warnings.warn(f"the job goes on from step {clock}, and its checkpoint keeps nothing of "
                          f"worker {self._worker.rank}: {', '.join(self._parts)} begin anew",
                          stacklevel=3)
        states = _states_of(self._initial if restored is None else restored)
        random = states.pop(_RANDOM)
        if list(states) != list(self._parts):
            raise ValueError(f"the checkpoint of step {clock} keeps {', '.join(states)}: expected "
                             f"{', '.join(self._parts)}, in this order")
        for name, part in self._parts.items():
            part.load_state_dict(states[name])
        torch.set_rng_state(random)


def keep(worker: Any, **parts: Any) -> Kept:
    """Keeps the states of objects in the job's checkpoints, beside the rows, of one point in time.

    parts: objects with state_dict() and load_state_dict(), such as model=, optimizer=, scheduler=,
        and data= for a hdps.torch.Dataset. A name stands for the same object in each run.

    Each part gets the state of the checkpoint that the job goes on from, now, and before the next
    batch of worker.loop() when the job has gone back. The state of torch's random numbers of the
    CPU is kept, too. Each worker keeps its own.

    Raises TypeError for an object without these methods, and ValueError if the checkpoint has other
    parts.

        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.Adam(model.parameters())
        hdps.torch.keep(worker, model=model, optimizer=optimizer)
    """
    kept = Kept(worker, parts)
    kept.restore()
    worker.state, worker.on_restored = kept.state, kept.restore
    return kept


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
        return {"dict": [[_form_of(place, key, tensors),
                          _form_of(f"{place}[{key!r}]", part, tensors)]
                         for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [_form_of(f"{place}[{i}]", part, tensors) for i, part in enumerate(value)]
        return parts if isinstance(value, list) else {"tuple": parts}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"state{place}: {type(value).__name__}: expected tensors, numbers and texts, "
                    "in dicts and lists")


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
