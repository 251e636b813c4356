"""How long a call takes, as one more output of a mechanism that is called once per output.

Latency drifts: caches fill, clocks throttle, other work comes and goes. Whoever times one side in
one block and the other in the next measures the drift. Here a fair coin draws the side of every
call, and the labels of the calls that hit the event are what is counted.

Let S_i be the side of call i, tossed independently of everything before, and let the event be
fixed beforehand. If the latency of a call has privacy loss at most epsilon whatever the state of
the machine, then ``P(hit | x, state) <= e^epsilon P(hit | x', state)``, and by Bayes' rule with a
fair coin ``P(S_i = x | hit, state) <= e^epsilon / (1 + e^epsilon)``. As long as the state does not
depend on the sides of earlier calls, the labels of the m hits are independent given the states,
so that their number of x is dominated by ``Binomial(m, e^epsilon / (1 + e^epsilon))``, however the
state drifts. Hence epsilon is at least ``ln(t / (1 - t))`` at confidence 1 - alpha, with t the
alpha-quantile of Beta(k, k' + 1) for k labels of the numerator's side and k' of the other: the
bound `dpcore.bounds.conditional` with ``sides="coin"``. It has no form for delta > 0. A machine
that remembers sides (a cache that one input warms for the next call) breaks the condition.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import choice, confidence_level, count, integer, mistyped
from ..events import Above
from ..records import Pair, Record
from ._choosing import Floats, thresholds

CLOCKS: Final = ("perf_counter_ns", "process_time_ns", "thread_time_ns")
"""Clocks of the module `time` that count nanoseconds."""

Clock = Callable[[], int]
"""A clock: the current time in nanoseconds."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Latency(Record):
    """The latency itself, in nanoseconds: the score of a timing audit.

    Example:
        >>> Latency()(np.array([1200, 900])).tolist()
        [1200.0, 900.0]
        >>> print(Above(Latency(), 1000.5))
        latency in ns >= 1000.5
    """

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The latencies as doubles.

        Args:
            outputs: latencies in nanoseconds, shape `(size,)`.

        Returns:
            The same, shape `(size,)`.
        """
        return np.asarray(outputs).astype(np.float64)

    def __str__(self) -> str:
        """One line for a report."""
        return "latency in ns"


@dataclass(frozen=True, slots=True)
class Timing:
    """Times single calls; the event is a threshold on the latency.

    Args:
        clock: name of a clock of the module `time`, one of `CLOCKS`.
        warmup: calls made before the pilot and thrown away, their sides drawn by coin too.

    Raises:
        TypeError: if `clock` is not a string or `warmup` not an integer.
        ValueError: if `clock` is none of `CLOCKS` or `warmup` is negative.

    Source:
        Jin, McMurtry, Rubinstein and Ohrimenko (2022), "Are we there yet? Timing and
        floating-point attacks on differential privacy systems".

    Example:
        >>> Timing().clock
        'perf_counter_ns'
    """

    clock: str = "perf_counter_ns"
    warmup: int = 100

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("clock", self.clock, CLOCKS)
        object.__setattr__(self, "warmup", integer("warmup", self.warmup, 0))


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


class TimingCounts(NamedTuple):
    """The counts of a timing audit; n and n_prime are random, as the conditional bound wants.

    Args:
        event: what was counted, on latencies.
        direction: "x" or "x_prime": the side for the numerator, chosen on the pilot.
        k: calls on x that hit the event.
        k_prime: calls on x' that hit it.
        n: counted calls on x.
        n_prime: counted calls on x'.
        pilot: calls that chose the event, both sides together.
    """

    event: Above
    direction: str
    k: int
    k_prime: int
    n: int
    n_prime: int
    pilot: int


def time_calls(
    call: Callable[[Any], Any],
    pair: Pair,
    calls: int,
    rng: np.random.Generator,
    clock: Clock = time.perf_counter_ns,
) -> Timed:
    """Call a function again and again, each time on a side drawn by a fair coin.

    One loop in one thread. All coins are tossed before the first call, so that tossing takes no
    time between calls, and the garbage collector waits until the last one is done.

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
            outputs[i] = call(value)
            stops[i] = clock()
    finally:
        if collecting:
            gc.enable()
    return Timed(sides, np.array(stops, np.int64) - np.array(starts, np.int64), outputs)


def audit_timing(
    call: Callable[[Any], Any],
    pair: Pair,
    trials: int | float | str,
    rng: np.random.Generator,
    *,
    timing: Timing | None = None,
    pilot: int | None = None,
    confidence: float = 0.95,
    clock: Clock | None = None,
) -> TimingCounts:
    """Choose a threshold on the latency with pilot calls and count it on fresh ones.

    The sides of all calls, the pilot's included, are drawn by a fair coin; the theorem and its
    condition stand at the top of this module. A timing audit repeats neither its latencies nor
    its counts from a seed.

    Args:
        call: `input -> output`, called once per output.
        pair: the two inputs.
        trials: counted calls, both sides together.
        rng: tosses the coins.
        timing: clock and warm-up; None is `Timing()`.
        pilot: calls that choose the event, both sides together; None is a quarter of `trials`,
            at least 200.
        confidence: confidence of the bound that will be taken, strictly between 0 and 1.
        clock: replaces the clock that `timing` names, `() -> nanoseconds`.

    Returns:
        Event, direction and counts, for the conditional bound.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range.

    Source:
        The conditional bound: Przyborowski and Wilenski (1940), Biometrika 31; fair coins for
        the sides: Fisher (1935), The Design of Experiments, chapter 2.

    Example:
        >>> import itertools
        >>> now = itertools.count(0, 10)
        >>> slow = lambda x: [next(now) for _ in range(100 * x)]
        >>> found = audit_timing(
        ...     slow, Pair(0, 1), 400, np.random.default_rng(1), clock=now.__next__
        ... )
        >>> abs(found.k / found.n - found.k_prime / found.n_prime)
        1.0
    """
    timing = Timing() if timing is None else timing
    trials, confidence = count("trials", trials), confidence_level(confidence)
    if not isinstance(timing, Timing):
        raise mistyped("timing", "a Timing", timing)
    wanted = max(200, trials // 4) if pilot is None else count("pilot", pilot)
    clock = getattr(time, timing.clock) if clock is None else clock
    if timing.warmup:
        time_calls(call, pair, timing.warmup, rng, clock)
    first = time_calls(call, pair, wanted, rng, clock)
    event, direction = choose_latency(first, trials, confidence)
    fresh = time_calls(call, pair, trials, rng, clock)
    hits = event(fresh.latencies)
    k, n = int((hits & fresh.sides).sum()), int(fresh.sides.sum())
    k_prime = int((hits & ~fresh.sides).sum())
    return TimingCounts(event, direction, k, k_prime, n, trials - n, wanted)


def choose_latency(pilot: Timed, trials: int, confidence: float = 0.95) -> tuple[Above, str]:
    """The threshold, side and direction that should certify most, from pilot calls.

    Args:
        pilot: timed calls that will not be counted.
        trials: calls that will be, both sides together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event on latencies and the direction, "x" or "x_prime".

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range.
    """
    trials, alpha = count("trials", trials), 1.0 - confidence_level(confidence)
    values = pilot.latencies.astype(np.float64)
    low, high = np.sort(values[pilot.sides]), np.sort(values[~pilot.sides])
    points = thresholds(low, high)
    if points.size == 0:
        # One latency only: nothing can be learnt from it.
        return Above(Latency(), float(values[0]) if values.size else 0.0), "x"
    below = [np.searchsorted(side, points).astype(np.float64) for side in (low, high)]
    above = [low.size - below[0], high.size - below[1]]
    scale = trials / values.size
    options = [(hits, way) for hits in (above, below) for way in (0, 1)]
    merits = np.stack([_promise(hits[way], hits[1 - way], scale, alpha) for hits, way in options])
    which, place = divmod(int(np.argmax(merits)), points.size)
    event = Above(Latency(), float(points[place]), "above" if which < 2 else "below")
    return event, "x_prime" if which % 2 else "x"


def _promise(k: Floats, k_prime: Floats, scale: float, alpha: float) -> Floats:
    """The conditional bound to be expected, at the pilot's own lower limit for the share of k."""
    from scipy.special import betaincinv, logit

    share = betaincinv(np.maximum(k, 0.5), k_prime + 1.0, alpha)
    hits = (k + k_prime) * scale
    promise: Floats = logit(
        betaincinv(np.maximum(share * hits, 0.5), hits - share * hits + 1.0, alpha)
    )
    return promise
