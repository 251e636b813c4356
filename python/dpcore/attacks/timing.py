"""The time of a call as one more entry of its output; each output comes from a separate call.

Latency drifts: caches fill, clocks throttle, and other programs start and stop. If one side is
timed in one block and the other side in the next block, the difference is drift. Here a fair coin
draws the side of every call. The audit counts the labels of the calls that are in the event.

Let S_i be the side of call i, tossed independently of everything before. Let the event, which
depends on output and latency together, be chosen beforehand or from other calls. Suppose that
output and latency of a call together have privacy loss at most epsilon in every state of the
machine. Then ``P(hit | x, state) <= e^epsilon P(hit | x', state)``, and by Bayes' rule with a fair
coin ``P(S_i = x | hit, state) <= e^epsilon / (1 + e^epsilon)``. If the state does not depend on the
sides of earlier calls, the labels of the m hits are independent given the states. Their number of x
is then dominated by ``Binomial(m, e^epsilon / (1 + e^epsilon))``, however the state drifts. Hence
epsilon is at least ``ln(t / (1 - t))`` at confidence 1 - alpha. Here t is the alpha-quantile of
Beta(k, k' + 1), for k labels of the numerator's side and k' labels of the other side. This is the
bound `dpcore.bounds.conditional` with ``sides="coin"``. It has no form for delta > 0. A machine
that remembers sides violates the condition; an example is a cache that one input warms for the next
call.

Latency alone is not enough. For example, a loop that counts failures takes time in proportion to
the noise, and the noise has the same law on both sides. However, output and latency together reveal
the noise, and the output minus the noise is the input.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator

from ..errors import choice, confidence_level, count, integer, invalid, vector
from ..events import Above
from ..events.event import score_attribute
from ..pairs.differences import differing_points
from ..records import Array, Flags, Floats, Pair, frozen_array
from ..report.shown import qualified_name
from ..sampling.sources import Call, Clock, Timed, time_calls
from ..suggestions import suggest_arguments
from .additive import Additive
from .arrays import Merged, freeze_arrays
from .attack import AuditAttack, Goal, TimingCounts, choose_events
from .bins import list_thresholds
from .histogram import keys_of
from .threshold import Threshold

_SHOWN_COLUMNS = 4
"""Largest number of columns that a report names one by one."""
_COLUMN_ATTACKS: Final = (Threshold("coordinate"), Additive(), Additive(128))
"""The attacks that make scores of the columns; the last one is for a comb of latencies."""
_MIN_FINE_COMB_CALLS: Final = 3200
"""Number of calls from which the last attack has more bins than the usual one."""
_NO_INPUTS: Final = Pair("x", "x_prime")
"""The columns are not entries of the inputs."""
_USUAL_LATENCY_QUANTILES: Final = (0.02, 0.5)
"""Quantiles that define the usual latency. A call is never faster than its work, and the fastest
calls scatter least. If the fastest calls are unusual, the median is still reliable."""
_MAX_LATENCY_PLACES: Final = 64
"""Largest number of places at which a usual latency is computed."""
_MAX_KEPT_ENTRIES: Final = 2
"""Number of entries that are kept: those of the first `_MAX_SCREENED_ENTRIES` whose latencies
distinguish the sides best."""
_MAX_SCREENED_ENTRIES: Final = 256
_MAX_VALUE_GROUPS: Final = 16
_MAX_OUTCOMES: Final = 64
_EXTRAPOLATION_FACTOR: Final = 10.0
"""A straight line extends this many times beyond the pilot's values."""
ClockName = Literal["perf_counter_ns", "process_time_ns", "thread_time_ns"]
CLOCKS: Final[tuple[ClockName, ...]] = get_args(ClockName)
"""Clocks of the module `time` that count nanoseconds."""
_UNREAD_OUTPUTS_NOTE: Final = (
    "the outputs are neither numbers nor values that repeat: Timing looked at their latency alone"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Latency(Merged, word="Latency"):
    """The latency itself, in nanoseconds.

    Example:
        >>> Latency()(np.array([1200, 900])).tolist()
        [1200.0, 900.0]
        >>> Latency()(np.array([[0.5, 1200.0], [0.1, 900.0]])).tolist()
        [1200.0, 900.0]
    """

    def __call__(self, rows: Array) -> Floats:
        """Return the latencies as doubles.

        Args:
            rows: latencies in nanoseconds, shape `(size,)`; or timed rows with latencies in the
                last column.

        Returns:
            The latencies, shape `(size,)`.
        """
        rows = np.asarray(rows)
        return (rows if rows.ndim == 1 else rows[:, -1]).astype(np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "latency in ns"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputEntry(Merged, word="OutputEntry"):
    """One number of the output of a timed call.

    Args:
        index: index of the number, from 0, in the row-major order of the output's entries.
    """

    index: int

    def __post_init__(self) -> None:
        """Check the index."""
        object.__setattr__(self, "index", integer("index", self.index, 0))

    def __call__(self, rows: Array) -> Floats:
        """Return the entry of every row, shape `(size,)`."""
        if self.index + 1 >= rows.shape[1]:
            raise invalid("rows", f"of at least {self.index + 2} columns", rows.shape)
        return rows[:, self.index].astype(np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"entry {self.index} of the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutcomeCode(Merged, word="OutcomeCode"):
    """The number of an output that is compared whole: its place among the outputs of the pilot.

    Args:
        keys: hashable outputs that the pilot showed; every other output has the number -1.
    """

    keys: tuple[Hashable, ...]

    def __call__(self, rows: Array) -> Floats:
        """Return the number of every output, shape `(size,)`."""
        table = {key: float(place) for place, key in enumerate(self.keys)}
        return np.array([table.get(key, -1.0) for key in keys_of(rows[:, 0])], np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputDistance(Merged, word="OutputDistance"):
    """The L1 distance of an output from an input, which is the size of the added noise.

    Args:
        side: "x" or "x'", for the report.
        point: the input, one number for each entry of an output.
    """

    side: str
    point: Floats

    def __post_init__(self) -> None:
        """Freeze the input."""
        object.__setattr__(self, "point", frozen_array(vector("point", self.point)))

    def __call__(self, rows: Array) -> Floats:
        """Return the distance of every output, shape `(size,)`."""
        apart = np.zeros(len(rows))
        for entry, value in zip(rows[:, :-1].T, self.point, strict=True):
            apart += np.abs(entry - value)
        return apart

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"the output's distance from {self.side}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputGroup(Merged, word="OutputGroup"):
    """The number of the group in which an output lies; the groups have equal sizes.

    Args:
        column: function that orders the outputs, `rows -> numbers`.
        edges: edges between the groups, increasing.
    """

    column: Any
    edges: Floats

    def __post_init__(self) -> None:
        """Freeze the edges."""
        freeze_arrays(self)

    def __call__(self, rows: Array) -> Floats:
        """Return the number of every output's group, shape `(size,)`."""
        groups = np.searchsorted(self.edges, self.column(rows), side="right")
        return np.asarray(groups, np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"{self.edges.size + 1} groups by {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExcessLatency(Merged, word="ExcessLatency"):
    """The latency minus the usual latency of such an output on one side, in nanoseconds.

    Args:
        side: "x" or "x'": the side whose usual latency is subtracted.
        column: quantity on which the usual latency depends, `rows -> numbers`.
        places: values of the column, increasing.
        usual: usual latency at each place, in nanoseconds, with straight lines in between.
    """

    side: str
    column: Any
    places: Floats
    usual: Floats

    def __post_init__(self) -> None:
        """Freeze the curve and check it."""
        freeze_arrays(self)
        if self.places.size == 0 or self.places.shape != self.usual.shape:
            raise invalid("usual", "one latency for each of the places", self.usual.shape)

    def __call__(self, rows: Array) -> Floats:
        """Return the excess of every call, shape `(size,)`; NaN if the column is NaN."""
        usual = np.interp(self.column(rows), self.places, self.usual)
        return np.asarray(Latency()(rows) - usual)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"latency in ns less the usual one on {self.side} at {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedScore(Merged, word="TimedScore"):
    """A score of columns made of output and latency.

    Args:
        columns: functions that make columns from the rows, each `rows -> numbers`.
        score: the score of these columns, `(size, columns) -> numbers`.
    """

    columns: tuple[Any, ...]
    score: Any

    def __call__(self, rows: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        return np.asarray(self.score(table_of(self.columns, rows)), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        index = score_attribute(self.score, "index")
        if index is None:
            return f"latency and output: {self.score} of {_name_columns(self.columns)}"
        column = self.columns[index]
        about = {ExcessLatency: "latency and output: ", Latency: ""}
        return f"{about.get(type(column), 'output alone: ')}{column}"


def _name_columns(columns: Sequence[Any]) -> str:
    """Name columns in a few words; two excesses that differ only in their side get one name."""
    named = [str(column) for column in columns if not isinstance(column, ExcessLatency)]
    excesses = [column for column in columns if isinstance(column, ExcessLatency)]
    if excesses:
        by = str(excesses[0].column).removesuffix(f" from {excesses[0].side}")
        named.append(f"its excess over the usual one on either side at {by}")
    if len(named) > _SHOWN_COLUMNS:
        named[1:-1] = ["..."]
    return ", ".join(named)


def table_of(columns: Sequence[Any], rows: Array) -> Floats:
    """Return the columns made of timed rows, shape `(size, columns)`."""
    return np.column_stack([column(rows) for column in columns])


def make_timed_scores(rows: Array, sides: Flags, pair: Pair) -> list[TimedScore]:
    """Make the scores that compete.

    Args:
        rows: timed calls, see `Timed.to_rows`.
        sides: True if a call was on x, shape `(calls,)`.
        pair: the two inputs.

    Returns:
        Scores, all fitted on these rows. Empty if one side is missing, or outputs cannot be
        compared.
    """
    scores: list[TimedScore] = []
    if sides.all() or not sides.any():
        return scores
    members = _COLUMN_ATTACKS[: 3 if len(rows) > _MIN_FINE_COMB_CALLS else 2]
    for columns in _choose_columns(rows, sides, pair):
        table = table_of(columns, rows)
        split = table[sides], table[~sides]
        made = [score for member in members for score in member.candidates(*split, _NO_INPUTS)]
        scores += [TimedScore(columns, score) for score in dict.fromkeys(made)]
    return scores


def _choose_columns(rows: Array, sides: Flags, pair: Pair) -> Iterator[tuple[Any, ...]]:
    """Yield the columns from which scores are made, one table after the other."""
    entries = _output_columns(rows)
    if not any(np.ptp(entry(rows)) for entry in entries):
        # If the output never changes, only the latency is informative.
        return
    yield (*entries, Latency())
    telling = _rank_entries(entries, rows, sides)
    first = telling[0](rows)
    if np.unique(first).size > _MAX_VALUE_GROUPS:
        yield OutputGroup(telling[0], _cut_evenly(first, _MAX_VALUE_GROUPS)), Latency()
    for share in _USUAL_LATENCY_QUANTILES:
        for excesses in _pair_excesses(rows, sides, pair, telling, share):
            yield telling[0], Latency(), *excesses


def _output_columns(rows: Array) -> tuple[Any, ...]:
    """Return the output's columns; empty if outputs cannot be compared."""
    if rows.dtype != object:
        return tuple(OutputEntry(i) for i in range(rows.shape[1] - 1))
    try:
        tally = Counter(keys_of(rows[:, 0]))
    except TypeError:
        return ()
    return (OutcomeCode(tuple(key for key, _ in tally.most_common(_MAX_OUTCOMES))),)


def _rank_entries(entries: tuple[Any, ...], rows: Array, sides: Flags) -> tuple[Any, ...]:
    """Return the entries for which the usual latencies of the two sides differ most."""
    if len(entries) == 1:
        return entries
    latencies = Latency()(rows)

    def latency_difference(entry: Any) -> float:
        values = entry(rows)
        edges = _cut_evenly(values, 8)
        groups = np.searchsorted(edges, values)
        difference = 0.0
        for number in range(edges.size + 1):
            here = groups == number
            usual = [latencies[here & own] for own in (sides, ~sides)]
            if usual[0].size and usual[1].size:
                difference += abs(float(np.median(usual[0]) - np.median(usual[1])))
        return difference

    ranked = sorted(entries[:_MAX_SCREENED_ENTRIES], key=latency_difference, reverse=True)
    return tuple(ranked[:_MAX_KEPT_ENTRIES])


def _cut_evenly(values: Floats, groups: int) -> Floats:
    """Return edges that cut values into groups of about equal size."""
    return np.unique(np.nanquantile(values, np.arange(1, groups) / groups))


def _pair_excesses(
    rows: Array, sides: Flags, pair: Pair, telling: tuple[Any, ...], share: float
) -> Iterator[tuple[ExcessLatency, ...]]:
    """Yield pairs of excesses over the usual latency on x and on x'."""
    latencies = Latency()(rows)
    for entry in telling:
        values = entry(rows)
        curves = [_quantile_curve(values[own], latencies[own], share) for own in (sides, ~sides)]
        yield ExcessLatency("x", entry, *curves[0]), ExcessLatency("x'", entry, *curves[1])
    x, x_prime = (np.ravel(x) if isinstance(x, np.ndarray) else x for x in (pair.x, pair.x_prime))
    ends = None if rows.dtype == object else differing_points(x, x_prime, (rows.shape[1] - 1,))
    if ends is None:
        return
    distances = [OutputDistance(side, end) for side, end in zip(("x", "x'"), ends, strict=True)]
    # The time that the noise takes does not depend on the input: one curve fits all calls.
    own_distance = np.where(sides, *(distance(rows) for distance in distances))
    curve = _quantile_curve(own_distance, latencies, share)
    for places, usual in (curve, _fit_line(*curve)):
        yield tuple(
            ExcessLatency(measured_distance.side, measured_distance, places, usual)
            for measured_distance in distances
        )


def _quantile_curve(values: Floats, latencies: Floats, share: float) -> tuple[Floats, Floats]:
    """Return some places, in increasing order, and a quantile of the latency at each."""
    is_finite = np.isfinite(values)
    order = np.argsort(values[is_finite], kind="stable")
    values, latencies = values[is_finite][order], latencies[is_finite][order]
    if values.size == 0:
        return np.zeros(1), np.zeros(1)
    distinct, first = np.unique(values, return_index=True)
    if distinct.size > _MAX_LATENCY_PLACES:
        # Equal values stay together.
        quantiles = values[np.arange(_MAX_LATENCY_PLACES) * values.size // _MAX_LATENCY_PLACES]
        first = np.unique(np.searchsorted(values, quantiles))
    parts = list(zip(first, [*first[1:], values.size], strict=True))
    places = np.array([values[a:b].mean() for a, b in parts])
    return places, np.array([np.quantile(latencies[a:b], share) for a, b in parts])


def _fit_line(places: Floats, usual: Floats) -> tuple[Floats, Floats]:
    """Fit the straight line with the least sum of absolute distances from a curve's points."""
    weights = np.ones(places.size)
    design = np.column_stack([np.ones(places.size), places])
    least = 1e-9 * max(1.0, float(np.abs(usual).max()))
    line = np.zeros(2)
    # Iterated least squares: the weight of a point is the inverse of its last distance.
    for _ in range(30):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, None], usual * root, rcond=None)[0]
        weights = 1.0 / np.maximum(np.abs(usual - design @ line), least)
    reach = _EXTRAPOLATION_FACTOR * max(1.0, float(np.abs(places).max()))
    ends = np.array([-reach, reach])
    return ends, line[0] + line[1] * ends


def choose_timed(
    rows: Array, sides: Flags, pair: Pair, trials: int, confidence: float = 0.95
) -> tuple[Above, str]:
    """Choose the score, threshold and direction that should certify most, from pilot calls.

    Every second call fits the scores, and the other calls choose among them. The latency itself
    needs no fit and is judged on all calls.

    Args:
        rows: pilot calls that will not be counted, see `Timed.to_rows`.
        sides: True if a call was on x, shape `(calls,)`.
        pair: the two inputs.
        trials: calls that will be counted, both sides together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event on rows and the direction, "x" or "x_prime".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """
    goal = Goal(max(1, count("trials", trials) // 2), 0.0, confidence_level(confidence))
    alone = Latency()
    events = choose_events([alone], rows[sides], rows[~sides], goal)
    scores = make_timed_scores(rows[::2], sides[::2], pair)
    rest, rest_sides = rows[1::2], sides[1::2]
    events += choose_events(scores, rest[rest_sides], rest[~rest_sides], goal)
    # Of equal merits, max() takes the first, which is the simplest.
    best = max(events, key=lambda choice: choice.merit)
    if best.event.score is alone:
        latencies = alone(rows).astype(np.int64)
        return choose_latency(Timed(sides, latencies, []), trials, confidence)
    return best.event, best.direction


def choose_latency(pilot: Timed, trials: int, confidence: float = 0.95) -> tuple[Above, str]:
    """Choose the threshold on the latency only, side and direction that should certify most.

    Args:
        pilot: timed calls that will not be counted.
        trials: calls that will be counted, both sides together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event on latencies and the direction, "x" or "x_prime".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """
    trials, alpha = count("trials", trials), 1.0 - confidence_level(confidence)
    values = pilot.latencies.astype(np.float64)
    low, high = np.sort(values[pilot.sides]), np.sort(values[~pilot.sides])
    points = list_thresholds(low, high)
    if points.size == 0:
        # A single distinct latency: no threshold can be learnt from it.
        return Above(Latency(), float(values[0]) if values.size else 0.0), "x"
    below = [np.searchsorted(side, points).astype(np.float64) for side in (low, high)]
    above = [low.size - below[0], high.size - below[1]]
    scale = trials / values.size
    options = [(hits, way) for hits in (above, below) for way in (0, 1)]
    merits = [_expected_bound(hits[way], hits[1 - way], scale, alpha) for hits, way in options]
    which, place = divmod(int(np.argmax(merits)), points.size)
    event = Above(Latency(), float(points[place]), "above" if which < 2 else "below")
    return event, "x_prime" if which % 2 else "x"


def _expected_bound(k: Floats, k_prime: Floats, scale: float, alpha: float) -> Floats:
    """Return the conditional bound expected at the pilot's lower limit for the share of k."""
    from scipy.special import betaincinv, logit

    share = betaincinv(np.maximum(k, 0.5), k_prime + 1.0, alpha)
    hits = (k + k_prime) * scale
    own, other = np.maximum(share * hits, 0.5), hits - share * hits + 1.0
    return np.asarray(logit(betaincinv(own, other, alpha)))


@suggest_arguments
@dataclass(frozen=True, slots=True)
class Timing(AuditAttack):
    """The latency of single calls; the event depends on output and latency together.

    Three kinds of scores are compared on separate pilot calls: scores of the output, scores of the
    latency, and scores of the difference between the latency and the usual latency for this output.
    Outputs may be numbers, rows of numbers of any shape, or hashable values that repeat. For other
    outputs only the latency is used, and a note states this.

    Args:
        clock: name of a clock of the module `time`, one of `CLOCKS`; or any function
            `() -> nanoseconds` that never decreases.
        warmup: number of discarded calls before the pilot. A coin also draws the sides of these
            calls.

    Raises:
        TypeError: if `clock` is neither a string nor callable, or `warmup` is not an integer.
        ValueError: if `clock` is a string but not one of `CLOCKS`, or `warmup` is negative.

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
        """Return the constructor call; a user's clock appears by its name, without an address."""
        clock = repr(self.clock) if isinstance(self.clock, str) else qualified_name(self.clock)
        return f"Timing(clock={clock}, warmup={self.warmup})"

    def default_pilot(self, trials: int) -> int:
        """Return the pilot calls per side: a quarter of the counted calls, at least 100."""
        return max(100, trials // 4)

    def timed_counts(
        self,
        call: Call,
        pair: Pair,
        calls: int | float | str,
        rng: Generator,
        *,
        pilot: int | None = None,
        confidence: float = 0.95,
    ) -> TimingCounts:
        """Choose an event of output and latency on pilot calls and count it on fresh calls.

        A fair coin draws the sides of all calls, including the pilot's. The pilot's calls lie at
        random places among the counted calls, and so have the same drift. Given the states of the
        machine, all calls are independent. Therefore the event is independent of the sides of the
        counted calls. The theorem and its condition are at the top of this module. A seed does not
        reproduce the latencies or the counts of a timing audit.

        Args:
            call: `input -> output`, called once per output.
            pair: the two inputs.
            calls: number of counted calls, both sides together.
            rng: random generator for the coins.
            pilot: number of calls that choose the event, both sides together. Defaults to a quarter
                of `calls`, at least 200.
            confidence: confidence of the bound that will be computed, strictly between 0 and 1.

        Returns:
            Event, direction and counts, for the conditional bound.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range.

        Source:
            The conditional bound: Przyborowski and Wilenski (1940), Biometrika 31; fair coins for
            the sides: Fisher (1935), The Design of Experiments, chapter 2.

        Example:
            >>> import itertools
            >>> now = itertools.count(0, 10)
            >>> slow = lambda x: [next(now) for _ in range(100 * x)]
            >>> timing = Timing(now.__next__)
            >>> found = timing.timed_counts(slow, Pair(0, 1), 400, np.random.default_rng(1))
            >>> abs(found.k / found.n - found.k_prime / found.n_prime)
            1.0
        """
        trials, confidence = count("calls", calls), confidence_level(confidence)
        n_calls = max(200, trials // 4) if pilot is None else count("pilot", pilot)
        clock = getattr(time, self.clock) if isinstance(self.clock, str) else self.clock
        if self.warmup:
            time_calls(call, pair, self.warmup, rng, clock)
        chosen = np.zeros(n_calls + trials, np.bool_)
        chosen[rng.permutation(chosen.size)[:n_calls]] = True
        drawn = time_calls(call, pair, chosen.size, rng, clock)
        first, fresh = drawn.select_calls(chosen), drawn.select_calls(~chosen)
        rows = first.to_rows()
        event, direction = choose_timed(rows, first.sides, pair, trials, confidence)
        parts = fresh.split_calls(rows.shape[1])
        hits = np.concatenate([event(part.to_rows(rows)) for part in parts])
        k, n, total = (int(flags.sum()) for flags in (hits & fresh.sides, fresh.sides, hits))
        counts = k, total - k, n, trials - n
        return TimingCounts(event, direction, *counts, n_calls, _note_unread(rows))


def _note_unread(rows: Array) -> tuple[str, ...]:
    """Return notes on outputs that the pilot could not read."""
    try:
        shown = len(set(rows[:, 0].tolist())) if rows.dtype == object else 0
    except TypeError:
        shown = len(rows)
    return () if 2 * shown <= len(rows) else (_UNREAD_OUTPUTS_NOTE,)
