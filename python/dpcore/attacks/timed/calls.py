"""Single calls and how long they took: each on a side drawn by a fair coin, one after the other."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import count, mistyped
from ...events import Above
from ...records import Pair
from .columns import Rows, rows_of

Clock = Callable[[], int]
"""A clock: the current time in nanoseconds."""

_CHUNK: Final = 2**20
"""Numbers of counted calls that are looked at together."""


class TimingCounts(NamedTuple):
    """The counts of a timing audit; n and n_prime are random, as the conditional bound wants.

    Args:
        event: what was counted, on rows of output and latency (see `Timed.rows`).
        direction: "x" or "x_prime": the side for the numerator, chosen on the pilot.
        k: calls on x that hit the event.
        k_prime: calls on x' that hit it.
        n: counted calls on x.
        n_prime: counted calls on x'.
        pilot: calls that chose the event, both sides together.
        notes: what a reader should know of them.
    """

    event: Above
    direction: str
    k: int
    k_prime: int
    n: int
    n_prime: int
    pilot: int
    notes: tuple[str, ...] = ()


class Timed(NamedTuple):
    """What single calls gave.

    Args:
        sides: True where the call was on x, shape `(calls,)`.
        latencies: nanoseconds, shape `(calls,)`.
        outputs: what the calls returned, in order.
    """

    sides: npt.NDArray[np.bool_]
    latencies: npt.NDArray[np.int64]
    outputs: list[Any]

    def rows(self, like: Rows | None = None) -> Rows:
        """The calls as rows, which events are decided on.

        Args:
            like: rows of the pilot, for calls that are to be counted.

        Returns:
            The numbers of each output and then its latency, shape `(calls, entries + 1)`; for
            other outputs objects of shape `(calls, 2)`.
        """
        return rows_of(self.outputs, self.latencies, like)

    def only(self, wanted: npt.NDArray[np.bool_]) -> Timed:
        """The calls for which `wanted`, of shape `(calls,)`, is True, in their order."""
        outputs = [self.outputs[i] for i in np.flatnonzero(wanted)]
        return Timed(self.sides[wanted], self.latencies[wanted], outputs)

    def parts(self, width: int) -> Iterator[Timed]:
        """Runs of calls whose rows of `width` numbers are not many at a time."""
        step = max(1, _CHUNK // width)
        for first in range(0, len(self.outputs), step):
            part = slice(first, first + step)
            yield Timed(self.sides[part], self.latencies[part], self.outputs[part])


def time_calls(
    call: Callable[[Any], Any],
    pair: Pair,
    calls: int,
    rng: np.random.Generator,
    clock: Clock = time.perf_counter_ns,
) -> Timed:
    """Call a function again and again, each time on a side drawn by a fair coin.

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
        Sides, latencies and outputs.

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
    if not isinstance(rng, np.random.Generator):
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
            outputs[i] = _kept(output)
    finally:
        if collecting:
            gc.enable()
    ticks = np.array([starts, stops])
    if ticks.dtype.kind not in "iu":
        # A clock that counts seconds would show no latency at all.
        raise mistyped("clock", "a function that returns whole nanoseconds", stops[0])
    return Timed(sides, np.diff(ticks.astype(np.int64), axis=0)[0], outputs)


def _kept(output: Any) -> Any:
    """An output that later calls cannot change."""
    if hasattr(output, "__array__"):
        # Tensors and numpy's scalars too.
        return np.array(output)
    return copy.deepcopy(output) if isinstance(output, (list, dict, set, bytearray)) else output
