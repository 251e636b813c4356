"""Draws of a Python callable: one call and one generator a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..errors import invalid
from ..events.device_outputs import Held
from ..mechanisms.answers import join_outputs, outputs_of, rows_to_objects, to_object_array
from ..mechanisms.callables import (
    Repeated,
    call_mechanism,
    make_generator,
    makes_tensors,
    name_of,
    one_by_one,
    tensor_of,
    torch_threads,
)
from ..records import Pair
from ..streams.generators import seeded_globals

_GLOBALS_STREAM: Final = 1
"""The last number of the streams from which global generators are seeded."""


_ORDER_STREAM: Final = 2
"""In the place of the side: the stream that draws which side is the first."""
_ANSWERS_PER_TURN: Final = 8
"""Answers of a turn. A law that ends within a turn gives one side at most so many answers more,
and 8 hits against none refute nothing at 95 % confidence."""
_PIECES_PER_BLOCK: Final = 16
"""Pieces of a block, of at least `_MIN_PIECE_ROWS` rows. A drift from piece to piece then shows 1/16 of
itself between the sides, at worst."""
_MIN_PIECE_ROWS: Final = 64


def _draw_orders(rng: np.random.Generator, turns: int) -> list[tuple[int, int]]:
    """Draw the side that comes first in each of some turns.

    Of two turns, one begins with x and the next with x', or the other way round, by a fair coin:
    the sides then share a linear drift, and what alternates, exactly.
    """
    coins = rng.random(-(-turns // 2)) < 0.5
    firsts = np.stack([coins, ~coins], axis=1).ravel()[:turns]
    return [(0, 1) if first else (1, 0) for first in firsts.tolist()]


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
        in_pieces: make the calls of a block in pieces, on x and on x' by turns: for a mechanism
            whose outputs do not follow from the seed.
    """

    mechanism: Callable[..., Any]
    pair: Pair
    seed: int
    block: int
    shape: tuple[int, ...]
    globals: bool = False
    fields: tuple[str, ...] | None = None
    in_pieces: bool = False
    native = False

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """Draw the requested rows of a block."""
        outputs: npt.NDArray[Any] = self._drawn(call_mechanism, purpose, side, place)
        return outputs

    def held(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any] | Held:
        """Draw the requested rows of a block; leave tensors on the device where they were made."""
        how = tensor_of if makes_tensors(self.mechanism) else call_mechanism
        outputs: npt.NDArray[Any] | Held = self._drawn(how, purpose, side, place)
        return outputs

    def draw_both(
        self, purpose: int, place: Place, held: bool = False
    ) -> Iterator[tuple[int, npt.NDArray[Any] | Held]]:
        """Yield each side and the requested rows of its block; the seed draws the first side.

        A function of one answer is called on x and on x' by turns of `_ANSWERS_PER_TURN` answers.

        Args:
            purpose: of the draws.
            place: the wanted rows.
            held: leave tensors where the mechanism made them.
        """
        mechanism, pieces = self.mechanism, 1
        # Global generators have one state, that of a whole call.
        turns = isinstance(mechanism, Repeated) and mechanism.seeded != "global"
        if self.in_pieces and not makes_tensors(mechanism):
            pieces = min(_PIECES_PER_BLOCK, place.size // _MIN_PIECE_ROWS)
        if turns and not self.globals:
            yield from self._answered_by_turns(purpose, place)
        elif pieces > 1 and not self.globals:
            yield from self._drawn_in_pieces(purpose, place, pieces)
        else:
            rng = make_generator(self.seed, purpose, _ORDER_STREAM, place.number // 2)
            draw = self.held if held else self.draw
            for side in _draw_orders(rng, 2)[place.number % 2]:
                yield side, draw(purpose, side, place)

    def _answered_by_turns(
        self, purpose: int, place: Place
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield both sides of a block of a function with one answer a call.

        The outputs are equal to those of two separate calls.
        """
        *rngs, turns = (
            make_generator(self.seed, purpose, i, place.number) for i in (0, 1, _ORDER_STREAM)
        )
        mechanism, inputs = cast(Repeated, self.mechanism), (self.pair.x, self.pair.x_prime)
        orders = _draw_orders(turns, -(-place.size // _ANSWERS_PER_TURN))
        name = f"outputs of {name_of(mechanism)}"
        both = mechanism.call_by_turns(inputs, place.size, rngs, orders, _ANSWERS_PER_TURN)
        for side in orders[0]:
            outputs = outputs_of(name, both[side], place.size, self.shape, self.fields)
            yield side, self._arranged(outputs)[place.first : place.end]

    def _drawn_in_pieces(
        self, purpose: int, place: Place, pieces: int
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield both sides of a block, each drawn in several calls from one generator."""
        *rngs, turns = (
            make_generator(self.seed, purpose, i, place.number) for i in (0, 1, _ORDER_STREAM)
        )
        inputs = self.pair.x, self.pair.x_prime
        parts: tuple[list[Any], list[Any]] = [], []
        orders = _draw_orders(turns, pieces)
        for number, order in enumerate(orders):
            rows = (number + 1) * place.size // pieces - number * place.size // pieces
            for side in order:
                one = inputs[side], rows, rngs[side], self.shape, self.fields
                parts[side].append(self._arranged(call_mechanism(self.mechanism, *one)))
        for side in orders[0]:
            yield side, join_outputs(parts[side])[place.first : place.end]

    def _drawn(self, called: Any, purpose: int, side: int, place: Place) -> Any:
        x = self.pair.x_prime if side else self.pair.x
        stream = purpose, side, place.number
        rng = make_generator(self.seed, *stream)
        # A stream of their own: the mechanism's draws from rng are the same with and without.
        seeded = (
            seeded_globals(make_generator(self.seed, *stream, _GLOBALS_STREAM))
            if self.globals
            else None
        )
        with seeded or nullcontext(), torch_threads(self.mechanism):
            outputs = called(self.mechanism, x, place.size, rng, self.shape, self.fields)
        return self._arranged(outputs)[place.first : place.end]

    def _arranged(self, outputs: Any) -> Any:
        """Return the outputs in the audit's shape, or as objects if only some rows have another.

        Raises:
            ValueError: if all rows of one call have another shape or other fields: that is one
                observation, however many rows there are.
        """
        names = getattr(getattr(outputs, "dtype", None), "names", None)
        if names is not None and self.fields is not None and names != self.fields:
            wanted = f"of the fields {self.fields} in every call"
            raise invalid(f"outputs of {name_of(self.mechanism)}", wanted, names)
        if outputs.shape[1:] == self.shape:
            return outputs
        if not isinstance(outputs, Held):
            # Each row is an answer of its own; few calls may have shown only one of the shapes.
            answers = one_by_one(self.mechanism)
            single = outputs.dtype == object or answers
            if single and self.shape == ():
                return rows_to_objects(outputs)
            if (
                answers
                or len(outputs) == 1
                or (single and any(_has_shape(row, self.shape) for row in outputs))
            ):
                return to_object_array(list(outputs))
        wanted = f"of shape {(len(outputs), *self.shape)} in every call"
        raise invalid(f"outputs of {name_of(self.mechanism)}", wanted, outputs.shape)


def _has_shape(row: Any, shape: tuple[int, ...]) -> bool:
    try:
        return bool(np.shape(row) == shape)
    except ValueError:
        return False
