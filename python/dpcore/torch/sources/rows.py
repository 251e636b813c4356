"""One recorded call as a mechanism: rows in place of its input, which is a batch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from ...errors import integer, invalid, mistyped
from ...streams.generators import seeded_globals
from ..needed import torch
from .copying import cloned, tensors
from .recording import Call, Key, calls_go_to, eval_mode

Varying = tuple[int, tuple[int, ...]]

__all__ = ["Rows", "main_input"]

NUMBERS: Final = 1024
"""Numbers of an output that an inspection looks at: 1,536 draws of more would fill the memory."""
_MAX_BATCH_NUMBERS: Final = 2**22
"""Numbers of the input that go through the module at a time."""


def main_input(call: Call, key: Key, kinds: dict[int, str], varying: Varying) -> int | None:
    """Find the place of the tensor argument that the noise is for; None if there is none.

    It is the one to which noise is added, else the first floating point one, else the first.
    """
    found = tensors((call.args, call.kwargs))
    places = [place for place, one in enumerate(found) if not one.is_nested]
    floating = [place for place in places if found[place].is_floating_point()]
    for place in floating if len(floating) > 1 else ():
        if Rows(call, key, kinds, varying, place, None).additive():
            return place
    return next(iter(floating or places), None)


class Rows(torch.nn.Module):
    """A module that takes a batch of rows and runs one recorded call on them.

    The main input is the batch. Every other tensor that is as long as the recorded batch gives its
    first row to all; all else is as recorded. The calls within it run; sources among them run in
    eval mode, if that takes their noise, or else return the first row of what they returned.

    Args:
        call: the call.
        key: tells modules apart, as in the record.
        kinds: of the sources, by the number of their calls.
        varying: at which stage of a replay its randomness shows, and the numbers of the tensors
            there; of all if empty.
        place: number of the main input among the tensors in the arguments.
        axis: of the batch, None for 1 where the module says `batch_first=False`, else 0.
    """

    def __init__(
        self, call: Call, key: Key, kinds: dict[int, str], varying: Varying, place: int | None,
        axis: int | None,
    ) -> None:  # fmt: skip
        """Find the main input and its first row."""
        super().__init__()
        self.module, self.training = call.module, call.module.training
        # In a list, or torch would take them for modules of this one.
        self._held: Any = [call, key, kinds]
        self._varying = varying
        if place is None:
            requirement = "a call with a tensor among its arguments; dpcore.audit takes the others"
            raise mistyped("source", requirement, type(call.module).__name__)
        main = tensors((call.args, call.kwargs))[place]
        if main.is_complex() or main.numel() == 0:
            requirement = "real numbers, at least one"
            raise invalid("input", requirement, (tuple(main.shape), main.dtype))
        self._main = [main]
        self._alone = main.ndim < 2
        late = main.ndim > 2 and getattr(call.module, "batch_first", True) is False
        self.axis = 1 if axis is None and late else integer("axis", axis or 0, 0)
        if self.axis >= max(1, main.ndim):
            raise invalid("axis", f"below {main.ndim}, the dimensions of the input", axis)
        x = main if self._alone else main.select(self.axis, 0)
        # numpy has no bfloat16; float32 holds its values exactly.
        self.x = x.float() if x.dtype == torch.bfloat16 else x

    def __repr__(self) -> str:
        return repr(self.module)

    @property
    def partial(self) -> bool:
        """True if the clean vector is not simply the input."""
        return bool(self.x.numel() > NUMBERS or self.x.dtype != self._main[0].dtype)

    def clean(self, x: Any) -> Any:
        """Return what the noise is added to: x as the module gets it, cut to the outputs in use."""
        return x.detach().to(self._main[0].dtype).reshape(-1)[:NUMBERS].double().cpu()

    @property
    def plain(self) -> bool:
        """True if the call computes nothing by children or floating point parameters."""
        held = [one for one in self.module.parameters() if one.is_floating_point()]
        return not (self._held[0].children or held)

    def additive(self) -> bool:
        """Return True if the noise is added to the input: outputs then move as far as the input."""
        if not self.x.is_floating_point():
            return False
        step = 1.0 + float(self.x.abs().max())
        try:
            with torch.no_grad():
                low, high = (self._seeded(point) for point in (self.x, self.x + step))
        except Exception:
            return False
        moved = (high - low).double() - step
        return low.shape[1] == min(NUMBERS, self.x.numel()) and bool(
            (moved.abs() <= 0.05 * step).all()
        )

    def _seeded(self, point: Any) -> Any:
        with seeded_globals(np.random.default_rng(1)):
            return self(point.unsqueeze(0).repeat(2, *(1 for _ in point.shape)))

    def forward(self, batch: Any) -> Any:
        """Compute outputs on a batch of rows, shape `(size, numbers)`."""
        at_once = max(2, _MAX_BATCH_NUMBERS // max(1, self.x.numel()))
        return torch.cat([self._some(part) for part in batch.split(at_once)])

    def _some(self, batch: Any) -> Any:
        call = self._held[0]
        size, main = len(batch), self._main[0]
        placed = batch.to(main.device, main.dtype)
        memo = {id(one): self._repeated(one, size) for one in tensors((call.args, call.kwargs))}
        memo[id(main)] = placed if self._alone else placed.movedim(0, self.axis)
        args, kwargs = cloned((call.args, call.kwargs), memo)
        handed: list[Any] = []
        with calls_go_to(self._called(size, handed)):
            outputs = call.module(*args, **kwargs)
        stages = [outputs, (args, kwargs), *handed]
        stage, places = self._varying
        found = tensors(stages[stage] if stage < len(stages) else outputs)
        if places:
            wanted = [found[place] for place in places if place < len(found)]
        else:
            wanted = [one for one in found if one.is_floating_point()]
        return self._numbers(wanted, size)

    def _repeated(self, tensor: Any, size: int) -> Any:
        """Repeat the first row of a tensor as long as the recorded batch; copy any other tensor."""
        main, axis = self._main[0], self.axis
        if self._alone:
            return tensor.clone()
        if tensor.is_nested or tensor.ndim <= axis or tensor.shape[axis] != main.shape[axis]:
            return tensor.clone()
        return tensor.narrow(axis, 0, 1).repeat_interleave(size, axis)

    def _called(self, size: int, handed: list[Any]) -> Any:
        """Handle calls within this one; those that it makes itself are recorded."""
        call, key, kinds = self._held
        waiting: dict[Any, list[Call]] = {}
        for child in list(call.everything())[1:]:
            waiting.setdefault(child.key, []).append(child)
        depth = 0

        def called(inner: Any, one: Any, args: Any, kwargs: Any) -> Any:
            nonlocal depth
            if depth == 1:
                handed.append(cloned((key(one), args, kwargs)))
            child = waiting[key(one)].pop(0) if depth and waiting.get(key(one)) else None
            kind = kinds.get(id(child))
            if child is not None and kind == "noise":
                memo = {id(t): self._repeated(t, size) for t in tensors(child.outputs)}
                return cloned(child.outputs, memo)
            depth += 1
            try:
                with eval_mode(one) if kind else nullcontext():
                    return inner(one, *args, **kwargs)
            finally:
                depth -= 1

        return called

    def _numbers(self, wanted: list[Any], size: int) -> Any:
        """Return the numbers that vary, one line for each of the `size` rows."""
        axis = 0 if self._alone else self.axis
        rows = [
            one.movedim(axis, 0).reshape(size, -1)
            for one in wanted
            if not one.is_nested and one.ndim > axis and one.shape[axis] == size
        ]
        if not rows:
            requirement = f"with {size} rows along axis {axis} (axis= names another one)"
            raise invalid("outputs", requirement, [tuple(one.shape) for one in wanted])
        return torch.cat(rows, dim=1)[:, :NUMBERS]
