"""Timed calls: each on a side drawn by a fair coin, and output and latency as one row.

A row holds the numbers of one output and, last, its latency in nanoseconds. An output that is not
a row of numbers is one entry of an array of objects, followed by its latency.
"""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from ..errors import count, mistyped
from ..packages import converts_to_array
from ..records import Pair

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

Call = Callable[[Any], Any]
"""A function called once per output, `input -> output`."""
Clock = Callable[[], int]
"""A clock: the current time in nanoseconds."""
_NUMBERS_PER_CHUNK: Final = 2**20
"""Numbers of counted calls that are looked at together."""


class Timed(NamedTuple):
    """Outputs of single calls, with their times.

    Args:
        sides: True where the call was on x, shape `(calls,)`.
        latencies: nanoseconds, shape `(calls,)`.
        outputs: what the calls returned, in order.
    """

    sides: Flags
    latencies: Whole
    outputs: list[Any]

    def to_rows(self, like: Array | None = None) -> Array:
        """Return the calls as rows, which events are decided on.

        Args:
            like: rows of the pilot, for calls that are to be counted.

        Returns:
            The numbers of each output and then its latency, shape `(calls, entries + 1)`; for
            other outputs objects of shape `(calls, 2)`.
        """
        return rows_of(self.outputs, self.latencies, like)

    def select_calls(self, wanted: Flags) -> Timed:
        """Return the calls for which `wanted`, of shape `(calls,)`, is True, in their order."""
        outputs = [self.outputs[i] for i in np.flatnonzero(wanted)]
        return Timed(self.sides[wanted], self.latencies[wanted], outputs)

    def split_calls(self, width: int) -> Iterator[Timed]:
        """Yield runs of calls, so that rows of `width` numbers are never many at a time."""
        step = max(1, _NUMBERS_PER_CHUNK // width)
        for first in range(0, len(self.outputs), step):
            part = slice(first, first + step)
            yield Timed(self.sides[part], self.latencies[part], self.outputs[part])


def time_calls(
    call: Call, pair: Pair, calls: int, rng: Generator, clock: Clock = time.perf_counter_ns
) -> Timed:
    """Call a function repeatedly, each time on a side drawn by a fair coin.

    One loop in one thread. All coins are tossed before the first call, so that tossing takes no
    time between calls, and the garbage collector waits until the last one is done. Between two
    calls an output is copied, for its buffer may be filled again by the next one.

    Args:
        call: `input -> output`, called once per output.
        pair: the two inputs.
        calls: number of calls, both sides together.
        rng: tosses the coins; the function's own randomness is its own business.
        clock: returns the time in nanoseconds.

    Returns:
        Flags, latencies and outputs.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `calls` is not a whole number at least 1.

    Example:
        >>> ticks = iter(range(0, 1000, 5))
        >>> timed = time_calls(abs, Pair(-1, 1), 3, np.random.default_rng(1), ticks.__next__)
        >>> timed.latencies.tolist(), timed.outputs
        ([5, 5, 5], [1, 1, 1])
    """
    if not callable(call):
        raise mistyped("call", "a callable input -> output", call)
    if not isinstance(rng, Generator):
        raise mistyped("rng", "a numpy Generator", rng)
    size = count("calls", calls)
    sides = rng.random(size) < 0.5
    ends = (pair.x_prime, pair.x)
    inputs = [ends[side] for side in sides.tolist()]
    starts, stops, outputs = [0] * size, [0] * size, [None] * size
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i, value in enumerate(inputs):
            starts[i] = clock()
            output = call(value)
            stops[i] = clock()
            outputs[i] = _copy_output(output)
    finally:
        if collecting:
            gc.enable()
    ticks = np.array([starts, stops])
    if ticks.dtype.kind not in "iu":
        # A clock that counts seconds would show no latency at all.
        raise mistyped("clock", "a function that returns whole nanoseconds", stops[0])
    return Timed(sides, np.diff(ticks.astype(np.int64), axis=0)[0], outputs)


def _copy_output(output: Any) -> Any:
    """Return an output that later calls cannot change."""
    if converts_to_array(output):
        return np.array(output)
    return copy.deepcopy(output) if isinstance(output, (list, dict, set, bytearray)) else output


def rows_of(outputs: Sequence[Any], latencies: Whole, like: Array | None) -> Array:
    """Return timed calls as rows.

    Args:
        outputs: what the calls returned, in order.
        latencies: nanoseconds, shape `(calls,)`.
        like: the rows of the pilot, for calls that are to be counted.

    Returns:
        Numbers of shape `(calls, entries + 1)`; or objects of shape `(calls, 2)`. An output that
        is not a row of numbers becomes a row of NaN if those of the pilot were.
    """
    if like is None or like.dtype != object:
        numbers = _outputs_to_numbers(outputs, None if like is None else like.shape[1] - 1)
        if numbers is not None:
            return np.column_stack([numbers, latencies.astype(np.float64)])
    rows = np.empty((len(outputs), 2), dtype=object)
    rows[:, 0] = np.fromiter(map(_as_comparable, outputs), dtype=object, count=len(outputs))
    rows[:, 1] = latencies
    return rows


def _outputs_to_numbers(outputs: Sequence[Any], width: int | None) -> Floats | None:
    """Return outputs as rows of numbers; None if they are not, and no width is given."""
    try:
        array = np.asarray(outputs)
        wide = array.size // max(1, len(outputs))
        if array.dtype.kind in "buif" and width in (None, wide):
            return array.reshape(len(outputs), wide).astype(np.float64)
    except (TypeError, ValueError, RuntimeError):
        # Outputs of changing lengths, or tensors that refuse to be arrays.
        pass
    if width is None:
        return None
    rows = np.full((len(outputs), width), np.nan)
    for row, output in zip(rows, outputs, strict=True):
        one = _outputs_to_numbers([output], None)
        if one is not None and one.size == width:
            row[:] = one[0]
    return rows


def _as_comparable(output: Any) -> Hashable:
    """Return an output that can be compared as a whole: a tuple for an array or list."""
    if isinstance(output, (np.ndarray, np.generic)):
        output = output.tolist()
    if isinstance(output, (list, tuple)):
        # The one row of a call is the output itself.
        return _as_comparable(output[0]) if len(output) == 1 else tuple(map(_as_comparable, output))
    return output  # type: ignore[no-any-return]
