"""Draws of a Python callable: one call and one generator a block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import invalid
from ..events.held import Held
from ..mechanisms.answers import objects, rows_to_objects
from ..mechanisms.callables import (
    call,
    generator,
    makes_tensors,
    name_of,
    one_by_one,
    tensor_of,
    torch_threads,
)
from ..records import Pair
from ..streams.generators import seeded_globals

_GLOBALS: Final = 1
"""The last number of the streams from which global generators are seeded."""


class Place(NamedTuple):
    """The wanted rows of one block.

    Args:
        number: of the block.
        size: rows in its call.
        first: first row wanted.
        end: end of the rows wanted.
    """

    number: int
    size: int
    first: int
    end: int


@dataclass(frozen=True)
class CallableDraws:
    """Draws of a Python callable, one call and one generator a block.

    Args:
        mechanism: the callable.
        pair: the two inputs.
        seed: of all generators.
        block: trials in a block.
        shape: of one output.
        globals: seed the global generators of Python, numpy and torch for every block as well.
        fields: names of the fields of one output; None where no call has shown them.
    """

    mechanism: Callable[..., Any]
    pair: Pair
    seed: int
    block: int
    shape: tuple[int, ...]
    globals: bool = False
    fields: tuple[str, ...] | None = None
    native = False

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """The wanted rows of a block."""
        outputs: npt.NDArray[Any] = self._drawn(call, purpose, side, place)
        return outputs

    def held(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any] | Held:
        """The same, where the mechanism made them if it makes tensors."""
        how = tensor_of if makes_tensors(self.mechanism) else call
        outputs: npt.NDArray[Any] | Held = self._drawn(how, purpose, side, place)
        return outputs

    def _drawn(self, called: Any, purpose: int, side: int, place: Place) -> Any:
        x = self.pair.x_prime if side else self.pair.x
        stream = purpose, side, place.number
        rng = generator(self.seed, *stream)
        # A stream of their own: the mechanism's draws from rng are the same with and without.
        seeded = seeded_globals(generator(self.seed, *stream, _GLOBALS)) if self.globals else None
        with seeded or nullcontext(), torch_threads(self.mechanism):
            outputs = called(self.mechanism, x, place.size, rng, self.shape, self.fields)
        return self._arranged(outputs)[place.first : place.end]

    def _arranged(self, outputs: Any) -> Any:
        """The outputs in the shape of all, or as objects where only some rows have another.

        Raises:
            ValueError: if all have another shape or other fields: that is one observation a call.
        """
        names = getattr(getattr(outputs, "dtype", None), "names", None)
        if names is not None and self.fields is not None and names != self.fields:
            wanted = f"of the fields {self.fields} in every call"
            raise invalid(f"outputs of {name_of(self.mechanism)}", wanted, names)
        if outputs.shape[1:] == self.shape:
            return outputs
        if not isinstance(outputs, Held):
            # Each row is an answer of its own.
            single = outputs.dtype == object or one_by_one(self.mechanism)
            if single and self.shape == ():
                return rows_to_objects(outputs)
            if len(outputs) == 1 or (
                single and any(_has_shape(row, self.shape) for row in outputs)
            ):
                return objects(list(outputs))
        wanted = f"of shape {(len(outputs), *self.shape)} in every call"
        raise invalid(f"outputs of {name_of(self.mechanism)}", wanted, outputs.shape)


def _has_shape(row: Any, shape: tuple[int, ...]) -> bool:
    try:
        return bool(np.shape(row) == shape)
    except ValueError:
        return False
