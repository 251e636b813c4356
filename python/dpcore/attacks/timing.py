"""How long a call takes, as one more entry of its output; every output has a call of its own.

Latency drifts: caches fill, clocks throttle, other work comes and goes. Whoever times one side in
one block and the other in the next measures the drift. Here a fair coin draws the side of every
call, and the labels of the calls that hit the event are what is counted.

Let S_i be the side of call i, tossed independently of everything before, and let the event, one
of output and latency together, be chosen beforehand or from other calls. If output and latency of
a call together have privacy loss at most epsilon whatever the state of the machine, then
``P(hit | x, state) <= e^epsilon P(hit | x', state)``, and by Bayes' rule with a fair coin
``P(S_i = x | hit, state) <= e^epsilon / (1 + e^epsilon)``. As long as the state does not
depend on the sides of earlier calls, the labels of the m hits are independent given the states,
so that their number of x is dominated by ``Binomial(m, e^epsilon / (1 + e^epsilon))``, however the
state drifts. Hence epsilon is at least ``ln(t / (1 - t))`` at confidence 1 - alpha, with t the
alpha-quantile of Beta(k, k' + 1) for k labels of the numerator's side and k' of the other: the
bound `dpcore.bounds.conditional` with ``sides="coin"``. It has no form for delta > 0. A machine
that remembers sides (a cache that one input warms for the next call) breaks the condition.

Latency alone is not enough. A loop that counts failures takes time in proportion to the noise, and
the noise has one law on both sides; but output and latency together give the noise away, and output
less noise is the input.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np

from ..errors import choice, confidence_level, count, integer, mistyped
from ..hints import hinted
from ..records import Pair
from .attack import AuditAttack
from .timed.calls import Clock, Timed, TimingCounts, time_calls
from .timed.choosing import choose_latency, choose_timed
from .timed.columns import Latency, Rows

ClockName = Literal["perf_counter_ns", "process_time_ns", "thread_time_ns"]
CLOCKS: Final[tuple[ClockName, ...]] = get_args(ClockName)
"""Clocks of the module `time` that count nanoseconds."""

_UNREAD: Final = (
    "the outputs are neither numbers nor values that repeat: Timing looked at their latency alone"
)


@hinted
@dataclass(frozen=True, slots=True)
class Timing(AuditAttack):
    """Times single calls; the event is one of output and latency together.

    Scores of the output, the latency, and the latency beyond what is usual for such an output on
    either side compete on pilot calls that fitted none of them. Outputs may be numbers, rows of
    numbers of any shape, or anything hashable that repeats; of others the latency alone is looked
    at, and a note says so.

    Args:
        clock: name of a clock of the module `time`, one of `CLOCKS`; or any function
            `() -> nanoseconds` that never falls.
        warmup: calls made before the pilot and thrown away, their sides drawn by coin too.

    Raises:
        TypeError: if `clock` is neither a string nor callable, or `warmup` not an integer.
        ValueError: if `clock` is a string, none of `CLOCKS`, or `warmup` is negative.

    Source:
        Jin, McMurtry, Rubinstein and Ohrimenko (2022), "Are we there yet? Timing and
        floating-point attacks on differential privacy systems".

    Example:
        >>> Timing()
        Timing(clock='perf_counter_ns', warmup=100)
    """

    times: ClassVar[bool] = True

    clock: str | Clock = "perf_counter_ns"
    warmup: int = 100

    def __post_init__(self) -> None:
        """Check the fields."""
        if not callable(self.clock):
            choice("clock", self.clock, CLOCKS)
        object.__setattr__(self, "warmup", integer("warmup", self.warmup, 0))

    def __repr__(self) -> str:
        """The constructor call; a clock of one's own by its name, which is no address."""
        name = getattr(self.clock, "__qualname__", type(self.clock).__qualname__)
        clock = repr(self.clock) if isinstance(self.clock, str) else name
        return f"Timing(clock={clock}, warmup={self.warmup})"

    def timed_counts(
        self,
        call: Callable[[Any], Any],
        pair: Pair,
        calls: int,
        rng: np.random.Generator,
        *,
        pilot: int | None,
        confidence: float,
    ) -> TimingCounts:
        """See `audit_timing`."""
        return audit_timing(call, pair, calls, rng, timing=self, pilot=pilot, confidence=confidence)

    @property
    def now(self) -> Clock:
        """The clock itself."""
        found: Clock = getattr(time, self.clock) if isinstance(self.clock, str) else self.clock
        return found


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
    """Choose an event of output and latency with pilot calls and count it on fresh ones.

    The sides of all calls, the pilot's included, are drawn by a fair coin, and the pilot's calls
    lie at random places among the counted ones, so that it meets the same drift. Given the states
    of the machine all calls are independent, and so is the event of the counted calls' sides. The
    theorem and its condition stand at the top of this module. A timing audit repeats neither its
    latencies nor its counts from a seed.

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
    clock = timing.now if clock is None else clock
    if timing.warmup:
        time_calls(call, pair, timing.warmup, rng, clock)
    chosen = np.zeros(wanted + trials, np.bool_)
    chosen[rng.permutation(chosen.size)[:wanted]] = True
    timed = time_calls(call, pair, chosen.size, rng, clock)
    first, fresh = timed.only(chosen), timed.only(~chosen)
    rows = first.rows()
    event, direction = choose_timed(rows, first.sides, pair, trials, confidence)
    hits = np.concatenate([event(part.rows(rows)) for part in fresh.parts(rows.shape[1])])
    k, n = int((hits & fresh.sides).sum()), int(fresh.sides.sum())
    k_prime = int((hits & ~fresh.sides).sum())
    return TimingCounts(event, direction, k, k_prime, n, trials - n, wanted, _notes(rows))


def _notes(rows: Rows) -> tuple[str, ...]:
    """What the pilot says of outputs that could not be looked at."""
    if rows.dtype != object:
        return ()
    try:
        shown = len(set(rows[:, 0].tolist()))
    except TypeError:
        shown = len(rows)
    return () if 2 * shown <= len(rows) else (_UNREAD,)


__all__ = [
    "CLOCKS", "ClockName", "Latency", "Timed", "Timing", "TimingCounts", "audit_timing",
    "choose_latency", "choose_timed", "time_calls",
]  # fmt: skip
