"""Attack on the latency of single calls, together with the output of the call.

The latency of a call drifts: caches fill, clocks slow down, and other programs start and stop. If
all calls on input x are timed before all calls on input x', drift looks like a privacy loss.
Therefore a fair coin draws the input of every call, x or x'. The audit counts how many calls on x
and how many calls on x' are hits, which means that they are in the event.

The bound is valid for these reasons:

- Let S_i be the input of call i, drawn by a fair coin, independently of all earlier calls. The
  event depends on output and latency. It is chosen before the count, or on calls that are not
  counted.
- Suppose that output and latency together have a privacy loss of at most epsilon in every state of
  the machine: ``P(hit | x, state) <= e^epsilon P(hit | x', state)``.
- By Bayes' rule, ``P(S_i = x | hit, state) <= e^epsilon / (1 + e^epsilon)``.
- Suppose that the state of the machine does not depend on the inputs of earlier calls. Then the
  inputs of the m hits are independent, given the states. The number of hits on x is stochastically
  at most ``Binomial(m, e^epsilon / (1 + e^epsilon))``, for any drift of the states.
- Therefore epsilon is at least ``ln(t / (1 - t))`` with confidence 1 - alpha. Here t is the
  alpha-quantile of Beta(k, k' + 1), and k and k' are the numbers of hits on x and on x'. With x and
  x' exchanged, the bound is valid too.

This is the bound `dpcore.bounds.conditional` with ``sides="coin"``. This bound is defined only for
delta 0. It is not valid if the machine remembers earlier inputs, for example in a cache that one
call fills for the next call.

The latency without the output is not enough. For example, some mechanisms draw geometric noise as
the number of failures in a loop, and the time of the loop is proportional to the noise. The
distribution of the noise is the same on x and on x'. However, the latency shows the noise of the
call, and the output minus this noise is the input.
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
from ..pairs.differences import pair_to_vectors
from ..records import Array, Flags, Floats, Pair, frozen_array
from ..report.shown import qualname_of
from ..sampling.sources import Call, Clock, Timed, time_calls
from ..suggestions import explain_argument_errors
from .additive import Additive
from .arrays import Merged, freeze_arrays
from .attack import AuditAttack, Goal, TimingCounts, choose_events
from .bins import safe_gap_thresholds
from .histogram import make_keys
from .threshold import Threshold

_SHOWN_COLUMNS = 4
"""Largest number of columns whose names are all shown in a report."""
_COLUMN_ATTACKS: Final = (Threshold("coordinate"), Additive(), Additive(128))
"""The attacks that make scores of the columns. The last one has more bins, for latencies that lie
on a fine grid."""
_MIN_FINE_COMB_CALLS: Final = 3200
"""Number of pilot calls above which the last attack of `_COLUMN_ATTACKS` is used."""
_NO_INPUTS: Final = Pair("x", "x_prime")
"""Placeholder for the inputs, because the columns do not correspond to entries of the inputs."""
_USUAL_LATENCY_QUANTILES: Final = (0.02, 0.5)
"""Quantiles that define the usual latency. The fastest calls vary least. If the fastest calls are
unusual, the median is still reliable."""
_MAX_LATENCY_PLACES: Final = 64
"""Largest number of column values at which a usual latency is computed."""
_MAX_KEPT_ENTRIES: Final = 2
"""Number of output entries that are kept. They are chosen among the first `_MAX_SCREENED_ENTRIES`
entries."""
_MAX_SCREENED_ENTRIES: Final = 256
_MAX_VALUE_GROUPS: Final = 16
_MAX_OUTCOMES: Final = 64
_EXTRAPOLATION_FACTOR: Final = 10.0
"""A fitted line ends at this multiple of the largest absolute value in the pilot."""
ClockName = Literal["perf_counter_ns", "process_time_ns", "thread_time_ns"]
CLOCKS: Final[tuple[ClockName, ...]] = get_args(ClockName)
"""Clocks of the module `time` that count nanoseconds."""
_UNREAD_OUTPUTS_NOTE: Final = (
    "the outputs are neither numbers nor values that repeat: Timing looked at their latency alone"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Latency(Merged, word="Latency"):
    """Score of a timed call: the time that the call took, in nanoseconds.

    Example:
        >>> Latency()(np.array([1200, 900])).tolist()
        [1200.0, 900.0]
        >>> Latency()(np.array([[0.5, 1200.0], [0.1, 900.0]])).tolist()
        [1200.0, 900.0]
    """

    def __call__(self, rows: Array) -> Floats:
        """Return the latencies as float64.

        Args:
            rows: the timed calls. Either latencies in nanoseconds, shape `(size,)`, or rows whose
                last column is the latency, shape `(size, columns)`.

        Returns:
            The latencies, shape `(size,)`.
        """
        rows = np.asarray(rows)
        return (rows if rows.ndim == 1 else rows[:, -1]).astype(np.float64)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return "latency in ns"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputEntry(Merged, word="OutputEntry"):
    """Score of a timed call: one entry of the output that the call returned.

    Args:
        index: index of the entry in the flattened output (row-major order).
    """

    index: int

    def __post_init__(self) -> None:
        """Check the index."""
        object.__setattr__(self, "index", integer("index", self.index, 0))

    def __call__(self, rows: Array) -> Floats:
        """Return the entry of each output, shape `(size,)`."""
        if self.index + 1 >= rows.shape[1]:
            raise invalid("rows", f"of at least {self.index + 2} columns", rows.shape)
        return rows[:, self.index].astype(np.float64)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return f"entry {self.index} of the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutcomeCode(Merged, word="OutcomeCode"):
    """Score of a timed call: the position of its (hashable) output in a list of frequent outputs.

    Args:
        keys: list of frequent outputs of the pilot calls, on which the event is chosen. The score
            is -1 for an output that is not in the list.
    """

    keys: tuple[Hashable, ...]

    def __call__(self, rows: Array) -> Floats:
        """Return the position of each output, shape `(size,)`."""
        table = {key: float(place) for place, key in enumerate(self.keys)}
        return np.array([table.get(key, -1.0) for key in make_keys(rows[:, 0])], np.float64)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return "the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputDistance(Merged, word="OutputDistance"):
    """Score of a timed call: the L1 distance of its output from the input x, or from the input x'.

    Suppose that the mechanism adds noise to its input, and that the call was made on the input
    `point`. The distance is then the L1 norm of the noise.

    Args:
        side: "x" or "x'": the name of the input in the report.
        point: the input, with one number for each entry of an output.
    """

    side: str
    point: Floats

    def __post_init__(self) -> None:
        """Make the input read-only."""
        object.__setattr__(self, "point", frozen_array(vector("point", self.point)))

    def __call__(self, rows: Array) -> Floats:
        """Return the distance of each output, shape `(size,)`."""
        apart = np.zeros(len(rows))
        for entry, value in zip(rows[:, :-1].T, self.point, strict=True):
            apart += np.abs(entry - value)
        return apart

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return f"the output's distance from {self.side}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputGroup(Merged, word="OutputGroup"):
    """Score of a timed call: the index of the interval that contains a value of its output.

    Each interval contains about equally many pilot calls (calls on which the event is chosen).

    Args:
        column: function that reads the value from timed calls, `rows -> numbers`.
        edges: limits between the intervals, in increasing order.
    """

    column: Any
    edges: Floats

    def __post_init__(self) -> None:
        """Make `edges` read-only."""
        freeze_arrays(self)

    def __call__(self, rows: Array) -> Floats:
        """Return the number of the interval of each call, shape `(size,)`, from 0."""
        groups = np.searchsorted(self.edges, self.column(rows), side="right")
        return np.asarray(groups, np.float64)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return f"{self.edges.size + 1} groups by {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExcessLatency(Merged, word="ExcessLatency"):
    """Score of a timed call: its time minus the usual time for a similar output, in nanoseconds.

    A number is read from each output. Outputs are similar if their numbers are similar. The usual
    time is estimated only from calls on x, or only from calls on x'.

    Args:
        side: "x" or "x'": the input of the calls from which the usual time is estimated.
        column: function that reads the number from timed calls, `rows -> numbers`.
        places: some values of this number, in increasing order.
        usual: usual time in nanoseconds at each of these values. Between two values, the usual time
            is interpolated linearly.
    """

    side: str
    column: Any
    places: Floats
    usual: Floats

    def __post_init__(self) -> None:
        """Make `places` and `usual` read-only and check their shapes."""
        freeze_arrays(self)
        if self.places.size == 0 or self.places.shape != self.usual.shape:
            raise invalid("usual", "one latency for each of the places", self.usual.shape)

    def __call__(self, rows: Array) -> Floats:
        """Return the score of each call, shape `(size,)`; NaN if the output's number is NaN."""
        usual = np.interp(self.column(rows), self.places, self.usual)
        return np.asarray(Latency()(rows) - usual)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        return f"latency in ns less the usual one on {self.side} at {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedScore(Merged, word="TimedScore"):
    """Score of a timed call, computed from the running time and from numbers read from the output.

    Args:
        columns: functions from timed calls to one number per call, such as the running time.
        score: function from the table of these numbers, shape `(size, columns)`, to one score per
            call.
    """

    columns: tuple[Any, ...]
    score: Any

    def __call__(self, rows: Array) -> Floats:
        """Return the score of each call, shape `(size,)`."""
        return np.asarray(self.score(make_column_table(self.columns, rows)), np.float64)

    def __str__(self) -> str:
        """Return a description in one line, for the report of an audit."""
        index = score_attribute(self.score, "index")
        if index is None:
            return f"latency and output: {self.score} of {_name_columns(self.columns)}"
        column = self.columns[index]
        about = {ExcessLatency: "latency and output: ", Latency: ""}
        return f"{about.get(type(column), 'output alone: ')}{column}"


def _name_columns(columns: Sequence[Any]) -> str:
    """Return short names of the columns in one text.

    If the usual latency on x, or on x', is subtracted from the latency, the two differences get one
    common name.
    """
    named = [str(column) for column in columns if not isinstance(column, ExcessLatency)]
    excesses = [column for column in columns if isinstance(column, ExcessLatency)]
    if excesses:
        by = str(excesses[0].column).removesuffix(f" from {excesses[0].side}")
        named.append(f"its excess over the usual one on either side at {by}")
    if len(named) > _SHOWN_COLUMNS:
        named[1:-1] = ["..."]
    return ", ".join(named)


def make_column_table(functions: Sequence[Any], rows: Array) -> Floats:
    """Apply several functions to timed calls, and return their results as columns of one table."""
    return np.column_stack([column(rows) for column in functions])


def fit_output_and_time_scores(rows: Array, sides: Flags, pair: Pair) -> list[TimedScore]:
    """Fit scores (functions) of the output and the running time of a call, to make events.

    Args:
        rows: timed calls, one per row. The last column is the running time in nanoseconds. The
            other columns are the entries of the output, or one column of objects.
        sides: True for a call on x, False for a call on x', shape `(calls,)`.
        pair: the two inputs x and x'.

    Returns:
        The scores. The list is empty if all calls are on one input, if the output is always the
        same, or if outputs cannot be compared with each other.
    """
    scores: list[TimedScore] = []
    if sides.all() or not sides.any():
        return scores
    members = _COLUMN_ATTACKS[: 3 if len(rows) > _MIN_FINE_COMB_CALLS else 2]
    for columns in _yield_column_function_sets(rows, sides, pair):
        table = make_column_table(columns, rows)
        split = table[sides], table[~sides]
        made = [score for member in members for score in member.candidates(*split, _NO_INPUTS)]
        scores += [TimedScore(columns, score) for score in dict.fromkeys(made)]
    return scores


def _yield_column_function_sets(rows: Array, sides: Flags, pair: Pair) -> Iterator[tuple[Any, ...]]:
    """Yield sets of columns (quantities of output and latency) from which scores are made."""
    entries = _output_column_functions(rows)
    if not any(np.ptp(entry(rows)) for entry in entries):
        # If the output never changes, only the latency is informative.
        return
    yield (*entries, Latency())
    telling = _top_time_gap_entries(entries, rows, sides)
    first = telling[0](rows)
    if np.unique(first).size > _MAX_VALUE_GROUPS:
        yield OutputGroup(telling[0], _find_even_edges(first, _MAX_VALUE_GROUPS)), Latency()
    for share in _USUAL_LATENCY_QUANTILES:
        for excesses in _excess_latency_score_pairs(rows, sides, pair, telling, share):
            yield telling[0], Latency(), *excesses


def _output_column_functions(rows: Array) -> tuple[Any, ...]:
    """Return the columns for the output without the latency.

    The tuple is empty if the outputs are objects that cannot be compared.
    """
    if rows.dtype != object:
        return tuple(OutputEntry(i) for i in range(rows.shape[1] - 1))
    try:
        tally = Counter(make_keys(rows[:, 0]))
    except TypeError:
        return ()
    return (OutcomeCode(tuple(key for key, _ in tally.most_common(_MAX_OUTCOMES))),)


def _top_time_gap_entries(entries: tuple[Any, ...], rows: Array, sides: Flags) -> tuple[Any, ...]:
    """Return at most two entries: those with the largest differences of latency between x and x'.

    Calls with similar values of an entry form a group. In each group, the medians of the latencies
    on x and on x' are compared.
    """
    if len(entries) == 1:
        return entries
    latencies = Latency()(rows)

    def latency_difference(entry: Any) -> float:
        values = entry(rows)
        edges = _find_even_edges(values, 8)
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


def _find_even_edges(values: Floats, groups: int) -> Floats:
    """Return limits that divide values into at most `groups` groups of about equal size."""
    return np.unique(np.nanquantile(values, np.arange(1, groups) / groups))


def _excess_latency_score_pairs(
    rows: Array, sides: Flags, pair: Pair, telling: tuple[Any, ...], share: float
) -> Iterator[tuple[ExcessLatency, ...]]:
    """Yield pairs of scores, each the latency minus a usual latency.

    In the first pairs, the usual latency depends on an entry of the output. It is estimated from
    calls on x for the first score, and from calls on x' for the second score. In the other pairs,
    the usual latency depends on the distance of the output from x for the first score, and from x'
    for the second score.

    Args:
        rows: timed calls, one per row, with the latency in the last column.
        sides: True for a call on x, False for a call on x', shape `(calls,)`.
        pair: the two inputs.
        telling: the entries of the output on which the usual latency may depend.
        share: probability, from 0 to 1, of the quantile of latencies that is the usual latency.
    """
    latencies = Latency()(rows)
    for entry in telling:
        values = entry(rows)
        curves = [_quantile_curve(values[own], latencies[own], share) for own in (sides, ~sides)]
        yield ExcessLatency("x", entry, *curves[0]), ExcessLatency("x'", entry, *curves[1])
    x, x_prime = (np.ravel(x) if isinstance(x, np.ndarray) else x for x in (pair.x, pair.x_prime))
    ends = None if rows.dtype == object else pair_to_vectors(x, x_prime, (rows.shape[1] - 1,))
    if ends is None:
        return
    distances = [OutputDistance(side, end) for side, end in zip(("x", "x'"), ends, strict=True)]
    # The time that the noise takes does not depend on the input: one curve fits all calls.
    own_distance = np.where(sides, *(distance(rows) for distance in distances))
    curve = _quantile_curve(own_distance, latencies, share)
    for places, usual in (curve, _two_points_of_least_absolute_line(*curve)):
        yield tuple(
            ExcessLatency(measured_distance.side, measured_distance, places, usual)
            for measured_distance in distances
        )


def _quantile_curve(values: Floats, latencies: Floats, share: float) -> tuple[Floats, Floats]:
    """Return increasing values, and the quantile of the latency near each of them.

    Args:
        values: quantity of the output in each call.
        latencies: latency of each call.
        share: the quantile, from 0 to 1.
    """
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


def _two_points_of_least_absolute_line(places: Floats, usual: Floats) -> tuple[Floats, Floats]:
    """Fit a straight line to points, with the least sum of absolute vertical distances.

    Returns:
        Two points of the line: their abscissas and their ordinates.
    """
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


def choose_output_or_time_event(
    rows: Array, sides: Flags, pair: Pair, trials: int, confidence: float = 0.95
) -> tuple[Above, str]:
    """Choose the event of output and running time with the largest expected bound on epsilon.

    The event is chosen on pilot calls, which are not counted. The scores are fitted on every second
    pilot call. One score and its threshold are chosen on the other pilot calls. The score "running
    time" needs no fit. Therefore its threshold is chosen on all pilot calls.

    Args:
        rows: pilot calls (calls on which the event is chosen), one per row, with the running time
            in nanoseconds in the last column. Do not count these calls later.
        sides: True for a call on x, False for a call on x', shape `(calls,)`.
        pair: the two inputs x and x'.
        trials: number of calls that will be counted. Calls on x and on x' are counted together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event, and the input on which the event is more frequent: "x" or "x_prime".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """
    goal = Goal(max(1, count("trials", trials) // 2), 0.0, confidence_level(confidence))
    alone = Latency()
    events = choose_events([alone], rows[sides], rows[~sides], goal)
    scores = fit_output_and_time_scores(rows[::2], sides[::2], pair)
    rest, rest_sides = rows[1::2], sides[1::2]
    events += choose_events(scores, rest[rest_sides], rest[~rest_sides], goal)
    # Of equal merits, max() takes the first, which is the simplest.
    best = max(events, key=lambda choice: choice.merit)
    if best.event.score is alone:
        latencies = alone(rows).astype(np.int64)
        return pick_latency_and_side(Timed(sides, latencies, []), trials, confidence)
    return best.event, best.direction


def pick_latency_and_side(pilot: Timed, trials: int, confidence: float = 0.95) -> tuple[Above, str]:
    """Choose the event "running time above (or below) a threshold" with the largest expected bound.

    Args:
        pilot: timed calls on the inputs x and x'. Do not count these calls later.
        trials: number of calls that will be counted. Calls on x and on x' are counted together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event, and the input on which the event is more frequent: "x" or "x_prime".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """
    trials, alpha = count("trials", trials), 1.0 - confidence_level(confidence)
    values = pilot.latencies.astype(np.float64)
    low, high = np.sort(values[pilot.sides]), np.sort(values[~pilot.sides])
    points = safe_gap_thresholds(low, high)
    if points.size == 0:
        # A single distinct latency: no threshold can be learnt from it.
        return Above(Latency(), float(values[0]) if values.size else 0.0), "x"
    below = [np.searchsorted(side, points).astype(np.float64) for side in (low, high)]
    above = [low.size - below[0], high.size - below[1]]
    scale = trials / values.size
    options = [(hits, way) for hits in (above, below) for way in (0, 1)]
    merits = [_expected_eps_bound(hits[way], hits[1 - way], scale, alpha) for hits, way in options]
    which, place = divmod(int(np.argmax(merits)), points.size)
    event = Above(Latency(), float(points[place]), "above" if which < 2 else "below")
    return event, "x_prime" if which % 2 else "x"


def _expected_eps_bound(k: Floats, k_prime: Floats, calls_ratio: float, alpha: float) -> Floats:
    """Return the conditional bound on epsilon that a count is expected to certify.

    The expected share of hits on the first input is the lower confidence limit from the pilot.

    Args:
        k: number of pilot hits on the first input.
        k_prime: number of pilot hits on the second input.
        calls_ratio: number of counted calls divided by the number of pilot calls.
        alpha: error probability of the limit and of the bound.
    """
    from scipy.special import betaincinv, logit

    share = betaincinv(np.maximum(k, 0.5), k_prime + 1.0, alpha)
    hits = (k + k_prime) * calls_ratio
    own, other = np.maximum(share * hits, 0.5), hits - share * hits + 1.0
    return np.asarray(logit(betaincinv(own, other, alpha)))


@explain_argument_errors
@dataclass(frozen=True, slots=True)
class Timing(AuditAttack):
    """Attack on the running time (latency) of single calls, together with the output of the call.

    The mechanism is called once for each output, and the time of each call is measured. A fair coin
    chooses the input of each call: x or x'. The attack chooses an event, which may depend on output
    and latency. It makes this choice on separate calls, the pilot calls. It compares three kinds of
    scores:

    - scores of the output without the latency;
    - scores of the latency;
    - scores of the latency minus the usual latency of calls with a similar output.

    Outputs may be numbers, arrays of numbers of any shape, or hashable values that repeat. For
    other outputs, only the latency is used, and a note in the report states this.

    Args:
        clock: the clock, as the name of a function in the module `time`: "perf_counter_ns",
            "process_time_ns" or "thread_time_ns". It can also be a function `() -> nanoseconds`
            that never decreases.
        warmup: number of calls that are made and discarded before the pilot calls.

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
        """Return the constructor call as text. A clock that is a function appears by its name."""
        clock = repr(self.clock) if isinstance(self.clock, str) else qualname_of(self.clock)
        return f"Timing(clock={clock}, warmup={self.warmup})"

    def default_pilot(self, trials: int) -> int:
        """Return the default number of pilot calls on each input: a quarter of `trials`.

        The event is chosen on the pilot calls. The result is at least 100.

        Args:
            trials: number of counted calls on each input.
        """
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
        """Choose an event of output and running time on pilot calls, and count it on other calls.

        A fair coin chooses the input of each call: x or x'. The pilot calls are made at random
        times between the counted calls. Therefore slow changes of the machine affect pilot calls
        and counted calls in the same way. The bound is valid only if the chosen event does not
        depend on the inputs of the counted calls. This condition is true if no call depends on the
        inputs of earlier calls.

        A second run with the same seed does not give the same running times and counts.

        Args:
            call: the mechanism, a function `input -> output` that makes one output.
            pair: the two inputs x and x'.
            calls: number of counted calls. Calls on x and on x' are counted together.
            rng: random generator that draws the input of each call and the positions of the pilot
                calls.
            pilot: number of pilot calls. Calls on x and on x' are counted together. Defaults to a
                quarter of `calls`, but at least 200.
            confidence: confidence of the bound for which the event is chosen, strictly between 0
                and 1.

        Returns:
            The event, the input on which the event is more frequent, and the counts. The function
            `dpcore.bounds.conditional` computes the bound from these counts.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range.

        Source:
            Przyborowski and Wilenski (1940), Biometrika 31, on the conditional bound. Fisher
            (1935), The Design of Experiments, chapter 2, on inputs drawn at random.

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
        rows = first.to_output_latency_rows()
        event, direction = choose_output_or_time_event(rows, first.sides, pair, trials, confidence)
        parts = fresh.split_for_memory(rows.shape[1])
        hits = np.concatenate([event(part.to_output_latency_rows(rows)) for part in parts])
        k, n, total = (int(flags.sum()) for flags in (hits & fresh.sides, fresh.sides, hits))
        counts = k, total - k, n, trials - n
        return TimingCounts(event, direction, *counts, n_calls, _note_unusable_outputs(rows))


def _note_unusable_outputs(rows: Array) -> tuple[str, ...]:
    """Return a note if the outputs are objects that are not hashable or hardly ever repeat."""
    try:
        shown = len(set(rows[:, 0].tolist())) if rows.dtype == object else 0
    except TypeError:
        shown = len(rows)
    return () if 2 * shown <= len(rows) else (_UNREAD_OUTPUTS_NOTE,)
