"""Checks that rows are independent draws, which every certified bound assumes.

No check can prove that rows are independent. A check reports only differences that are not due to
chance:

- *calls* (`same_rows`, `probe_calls`): one output in all rows of a call, and another output in all
  rows of the next call. On a few extra short calls: columns that vary more between calls than
  within them.
- *neighbours* (`compare_neighbours`): rows at distance 1, 2, 3 ... in a call, compared with the
  mean and the variance over all orders of these rows.
- *dispersion* (`dispersion_p_value`): variation of the event's hits between sub-blocks.

The short calls are made before the first long call. An audit may consist of only three calls per
side, and an error in every row must be reported at once, not after an hour.

Error budget: fewer than one audit in a million with independent rows may be called invalid or end
in an error here.

| check | largest probability of a false alarm |
|---|---|
| one output for a whole call, all calls | 1e-8 |
| one output for a whole call, short calls: 1e-15 per column | 1e-10 |
| all short calls on one side equal, only of commands: 1e-11, 2 sides | 2e-11 |
| columns from call to call: 4, p-value 1e-11 | 1e-8 |
| neighbours: 7 (8) standard deviations, 25 pairs expected, 2 sides | 3e-7 |
| dispersion: p-value 1e-9, 25 hits and misses expected, all resolutions, 2 sides | 1e-7 |

The last two rows are not tails of the normal or the chi-square distribution. They are the tails
that counts of about 25 have: 7 standard deviations above a Poisson mean of 25 have probability 2e-9
(8: 2e-11), and a nominal 1e-9 of Pearson's statistic is about 3e-8 in the finest resolution.

Independent rows of one call can be permuted. Take centred scores v of n rows in a circle, and a lag
L below n/2. Over all permutations, the sum of v_i v_(i+L) has mean -S2/(n - 1) and variance
(S2^2 - S4)/(n - 1) + (S2^2 - 2 S4)/((n - 1)(n - 2)) - S2^2/(n - 1)^2, where S_k is the sum of v^k
(Wald and Wolfowitz, 1943, Annals of Mathematical Statistics 14, for L = 1; for every lag the pairs
are n edges that meet every row twice, and the proof uses only this). The number of equal pairs is
treated in the same way. Nothing is assumed about the distribution of a row, and ties are allowed.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import about, instance, integer, invalid, numeric
from ..events.event import Held, move_to_host
from ..mechanisms.answers import copy_answer, is_opaque, join_outputs
from ..records import Array
from . import columns
from .replay import encode_rows

FEWEST: Final = 32
"""Least number of rows for which two constant but different calls exclude chance."""
_EQUAL_CALLS_LEVEL: Final = 1e-8
_FIRST_COMPARED_ROWS: Final = 64
"""Number of rows that are compared first."""

WAY_TO_DRAW: Final = (
    "draw the noise with size=(size, len(x)), or write a function of x and rng that returns one "
    "output and pass dpcore.repeat(function)"
)
"""Advice on rows that share noise, unless a mechanism has its own `way_to_draw`."""

_OTHER_SIZE: Final = 1 / 16
"""Relative difference that is ignored between calls of two sizes, which may sum differently."""

_FIRST_ORDERED_TRIALS: Final = 2**11
_LATER_ORDERED_TRIALS: Final = 2**10
_ORDER_CHECK_PERIOD: Final = 2**19
"""Rows that are checked: the first 2,048 trials, then 1,024 at the start of every 2**19."""
_MIN_ORDERED_ROWS: Final = 8
"""Least number of rows of a call whose order is checked."""
_MAX_LAG: Final = 256
_EQUAL_LAGS: Final = (*range(1, 9), 10, 12, 16, 20, 32, 64, 100, 128, 256)
"""Distances at which equal rows are counted. Scores are compared at all to `_MAX_LAG`."""
_DOUBLING_LAGS: Final = tuple(2**power for power in range(9))
_DOUBLING_LAG_SIGMAS: Final = 7.0
_OTHER_LAG_SIGMAS: Final = 8.0
"""Standard deviations that are reported at distances 1, 2, 4, 8 ..., and at other distances."""
_MIN_EXPECTED_PAIRS: Final = 25.0
"""Least expected number of equal pairs, and of unequal pairs, for a report."""
_SUM_UNIT: Final = 2.0**-24
"""Unit of the sums, which are integers, so that the order of adding does not change them."""

Sums = npt.NDArray[np.int64]
"""Excess over the mean, variance, and a third value for the expected pairs; shape `(3, 6, 256)`.

The axes after the first are the sequence (equal rows, hits of the event, ranks of at most four
columns) and the lag. The third value is the expected number of pairs for equal rows, and the sum of
the fourth powers of products for scores.
"""

_LAG_THRESHOLDS: Final = np.full(_MAX_LAG, _OTHER_LAG_SIGMAS)
_LAG_THRESHOLDS[np.array(_DOUBLING_LAGS) - 1] = _DOUBLING_LAG_SIGMAS

_EARLY_SUB_BLOCKS: Final = 16
_LATER_SUB_BLOCKS: Final = 4
"""Numbers of pieces of each of the first sixteen blocks, and of each later block."""
_MIN_SUB_BLOCK_TRIALS: Final = 64
_MIN_EXPECTED_HITS: Final = 25.0
"""Least expected hits and misses in a pool. A nominal 1e-9 is 8e-7 with 5, about 3e-8 with 25."""

_DISPERSION_LEVEL: Final = 1e-9
"""p-value below which counts vary too much for independent rows."""

_NO_BOUND_REASON = "the mechanism's rows depend on each other, and no bound holds"

_PROBE_CALLS: Final = 6
_EXTRA_PROBE_CALLS: Final = 18
_EXTRA_PROBE_ROWS: Final = 512
"""Numbers of calls per side. If the first calls were constant, more and longer calls follow."""
_TRIALS_PER_PROBE_ROW: Final = 600
"""Trials per row of a first call, so that all first calls are 1 % of an audit."""
_MIN_PROBE_ROWS: Final = 16
"""Least number of rows in a call. With fewer rows, the variation within calls is not known."""
_CONSTANT_CALLS_LEVEL: Final = 1e-15
_CALL_VARIATION_LEVEL: Final = 1e-11
_MAX_RANK_KURTOSIS: Final = 3.0
"""Largest fourth moment of ranks for which so few rows follow the chi-square tail."""

Draw = Callable[[int, int, int], Array]
"""Function (side, number of the call, rows) -> outputs."""


class Same(NamedTuple):
    """Columns that are equal in all rows of one call.

    Args:
        rows: number of rows in the call.
        columns: mask of these columns, for each table of `split_by_kind`.
        values: the first row, for each table.
    """

    rows: int
    columns: tuple[npt.NDArray[np.bool_], ...]
    values: tuple[Array, ...]


def same_rows(outputs: Array | Held) -> Same | None:
    """Find the columns that are equal in all rows of a call, or None if there are none.

    A call of one row also gives None.

    Args:
        outputs: outputs of one call, any dtype, shape `(size, ...)`.

    Returns:
        The columns and their values. For independent rows, the probability that `m` rows of one
        call have one value and `m` rows of another call have another value is at most `2 / 4**m`.
    """
    if len(outputs) < 2:
        return None
    if isinstance(outputs, Held):
        return _same_held(outputs)
    tables = columns.split_by_kind(outputs)
    equal = tuple(map(_same_columns, tables))
    if not any(map(np.any, equal)):
        return None
    return Same(len(outputs), equal, tuple(map(_copy_first_row, tables)))


def _copy_first_row(table: Array) -> Array:
    """Return the first row, with copies of objects, because a later call may fill them again."""
    row: Array = table[0].copy()
    for place, value in enumerate(row.tolist()) if row.dtype == object else ():
        # A value that cannot be copied is compared with itself.
        with suppress(Exception):
            cls: Any = type(value)
            row[place] = pickle.dumps(value) if is_opaque(cls) else copy_answer(value)
    return row


def _same_held(outputs: Held) -> Same | None:
    """Find the equal columns on the device of the outputs.

    Usually the first two rows show that there are no such columns.
    """
    first = move_to_host(outputs[:2]).reshape(2, math.prod(outputs.shape[1:]))
    if not columns.entries_equal(first[0], first[1]).any():
        return None
    rows = outputs.tensor.reshape(len(outputs), first.shape[1])
    same = rows == rows[0]
    if outputs.tensor.is_floating_point():
        same |= rows.isnan() & rows[0].isnan()
    is_same = move_to_host(Held(same.all(0)))
    return Same(len(outputs), (is_same,), (first[0].copy(),)) if is_same.any() else None


def _same_columns(table: Array) -> npt.NDArray[np.bool_]:
    same = columns.entries_equal(table[0], table[1])
    for stop in (_FIRST_COMPARED_ROWS, len(table)):
        places = np.flatnonzero(same)
        if not places.size:
            break
        part = table[:stop] if places.size == same.size else table[:stop, places]
        first = np.broadcast_to(part[0], part.shape)
        same[places] = columns.entries_equal(part, first).all(axis=0)
    return same


@dataclass
class Calls:
    """Calls of a mechanism so far, by the input and the number of rows.

    Args:
        name: name of the mechanism in error messages.
        way_to_draw: advice on drawing rows that do not share their noise.
    """

    name: str
    way_to_draw: str = WAY_TO_DRAW
    _first: dict[tuple[int, int], Same] = field(default_factory=dict, repr=False)
    _seen: int = 0

    def see(self, calls: int, comparisons: Sequence[tuple[int, Same]]) -> None:
        """Record some calls.

        Args:
            calls: number of calls.
            comparisons: for each call with equal columns, its side (0 for x, 1 for x') and these
                columns.

        Raises:
            ValueError: if an earlier call on the same side was constant too, with a different
                value.
        """
        self._seen += calls
        for side, same in comparisons:
            if same.rows < FEWEST:
                continue
            for (other_side, rows), first in self._first.items():
                if other_side == side and self._excluded(min(rows, same.rows), same):
                    slack = None if rows == same.rows else _OTHER_SIZE
                    place = first_difference([first, same], slack)
                    if place is not None:
                        raise one_output(self.name, same, place, self.way_to_draw)
            self._first.setdefault((side, same.rows), same)

    def _excluded(self, rows: int, same: Same) -> bool:
        """Return True if chance is excluded, given the number of calls and columns."""
        pairs = 2 * math.log(self._seen) + math.log(sum(map(len, same.columns)))
        return pairs < rows * math.log(4) + math.log(_EQUAL_CALLS_LEVEL)


def first_difference(calls: Sequence[Same], slack: float | None = None) -> int | None:
    """Find the first column that is constant within each of some calls but differs between them."""
    start = 0
    if len({tuple(map(np.shape, call.columns)) for call in calls}) > 1:
        # One call has objects and another call has a table of numbers.
        return None
    for part, values in enumerate(calls[0].values):
        both = np.logical_and.reduce([call.columns[part] for call in calls])
        apart = [columns.entries_differ(values, call.values[part], slack) for call in calls[1:]]
        places = np.flatnonzero(both & np.logical_or.reduce(apart))
        if places.size:
            return start + int(places[0])
        start += len(values)
    return None


def by_chance(calls: Sequence[Same], column: int) -> float:
    """Compute the probability that a random order of all rows leaves each call constant.

    Args:
        calls: calls with equal numbers of rows, each of which is constant in the column.
        column: number of the column, counted over all tables.

    Returns:
        The p-value, given the number of times c that each value occurs:
        `(G! / prod c!) / ((mG)! / prod (mc)!)`.
    """
    entries = [np.concatenate([v.astype(object) for v in call.values])[column] for call in calls]
    groups: list[tuple[Any, int]] = []
    for entry in entries:
        for number, (value, count) in enumerate(groups):
            if not _calls_differ(value, entry):
                groups[number] = value, count + 1
                break
        else:
            groups.append((entry, 1))
    counts = [count for _, count in groups]
    return math.exp(_log_orders(counts) - _log_orders([calls[0].rows * count for count in counts]))


def _log_orders(counts: Sequence[int]) -> float:
    """Return the logarithm of the number of orders of values with these counts."""
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(count + 1) for count in counts)


def _calls_differ(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return bool(columns.entries_differ(np.array([first]), np.array([second]), None)[0])
    pair = np.empty((2, 1), dtype=object)
    pair[0, 0], pair[1, 0] = first, second
    return not bool(columns.entries_equal(pair[0], pair[1])[0])


def one_output(name: str, call: Same, column: int, way_to_draw: str = WAY_TO_DRAW) -> ValueError:
    """Make the error for one noise in all rows of a call, with advice on the code."""
    width = sum(map(len, call.columns))
    where = f" in place {column} of {width}" if width > 1 else ""
    what = f"outputs of {name}"
    error = ValueError(
        f"{what} must be drawn anew for every row of a call, got one value for all "
        f"{call.rows:,} rows of a call{where} and another for all rows of another call: "
        f"{way_to_draw}"
    )
    return about(error, what)


def looked_at(start: int, rows: int) -> int:
    """Return the number of a call's rows that are compared; it depends on its first trial."""
    ordered = _FIRST_ORDERED_TRIALS if start < _ORDER_CHECK_PERIOD else _LATER_ORDERED_TRIALS
    return max(0, min(rows, ordered - start % _ORDER_CHECK_PERIOD))


def compare_neighbours(outputs: Array | Held, answers: npt.NDArray[np.bool_]) -> Sums | None:
    """Compare the rows of a call with rows at small distances.

    Args:
        outputs: rows of one call, any dtype, shape `(size, ...)`.
        answers: flags of the rows that hit the event.

    Returns:
        Sums to add up over calls, or None if there are too few rows.
    """
    rows = len(outputs)
    if rows < _MIN_ORDERED_ROWS:
        return None
    ranks, codes = columns.list_sequences(columns.few_columns(outputs))
    scores = np.array([answers, *ranks], dtype=np.float64)
    sums = np.zeros((3, 2 + columns.MOST_COLUMNS, _MAX_LAG))
    _add_products(sums[:, 1 : 1 + len(scores)], scores - scores.mean(axis=1, keepdims=True))
    _add_equal(sums[:, 0], codes)
    return np.rint(sums / _SUM_UNIT).astype(np.int64)


def _add_products(sums: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> None:
    """Add the sums of v_i v_(i+L) for all lags at once, by the Fourier transform.

    Scores keep their scale in every call. With equal variances, a few chance pairs of a rare
    event's hits would outweigh all calls in which another event was counted.
    """
    rows = scores.shape[1]
    lags = min(_MAX_LAG, (rows - 1) // 2)
    squares = scores * scores
    second, fourth = squares.sum(axis=1), (squares * squares).sum(axis=1)
    waves = np.fft.rfft(scores, axis=1)
    power = waves.real * waves.real + waves.imag * waves.imag
    products = np.fft.irfft(power, rows, axis=1)[:, 1 : lags + 1]
    n = float(rows)
    mean = -second / (n - 1)
    variance = (second**2 - fourth) / (n - 1)
    variance += (second**2 - 2 * fourth) / ((n - 1) * (n - 2)) - mean**2
    sums[0, :, :lags] = products - mean[:, None]
    sums[1, :, :lags] = np.maximum(variance, 0.0)[:, None]
    sums[2, :, :lags] = (fourth**2 / n)[:, None]


def _add_equal(sums: npt.NDArray[np.float64], codes: npt.NDArray[np.intp]) -> None:
    """Add the numbers of equal pairs, at the lags of `_EQUAL_LAGS`."""
    n = float(len(codes))
    counts = np.bincount(codes).astype(np.float64)
    two, three = counts * (counts - 1), counts * (counts - 1) * (counts - 2)
    if not two.any():
        return
    pair = two.sum() / (n * (n - 1))
    triple = three.sum() / (n * (n - 1) * (n - 2))
    four = (three * (counts - 3)).sum() + two.sum() ** 2 - (two**2).sum()
    pairs = four / (n * (n - 1) * (n - 2) * (n - 3))
    mean = n * pair
    variance = mean + 2 * n * triple + n * (n - 3) * pairs - mean**2
    for lag in _EQUAL_LAGS:
        if 2 * lag < n:
            equal = np.count_nonzero(codes[lag:] == codes[:-lag])
            equal += np.count_nonzero(codes[:lag] == codes[-lag:])
            # With two values, one of them rare, equal pairs change by twos when rare values meet.
            variance_bound = min(mean, n - mean, variance / 4.0)
            sums[:, lag - 1] = equal - mean, max(variance, 0.0), variance_bound


def lag_deviations(sums: Sums) -> npt.NDArray[np.float64]:
    """Compute the excess in standard deviations, by sequence and lag; 0 if there are few pairs."""
    excess, variance, rest = sums * _SUM_UNIT
    # If a share q of n scores is large, the ratio is n q^2, the expected number of their pairs.
    fourth = np.where(rest > 0.0, rest, 1.0)
    pairs = np.where(rest > 0.0, variance**2 / fourth, 0.0)
    pairs[0] = rest[0]
    is_usable = (pairs >= _MIN_EXPECTED_PAIRS) & (variance > 0.0)
    return np.where(is_usable, excess / np.sqrt(np.where(is_usable, variance, 1.0)), 0.0)


def farthest_lag(sums: Sums) -> tuple[int, float] | None:
    """Find the lag at which rows differ most from independent rows, if chance is excluded.

    Args:
        sums: sums of `compare_neighbours`, added up over calls.

    Returns:
        The lag, and the number of standard deviations by which rows are more similar than
        independent rows (less similar if negative). None if no lag exceeds its threshold.
    """
    sigmas = lag_deviations(sums)
    beyond = np.abs(sigmas) / _LAG_THRESHOLDS
    sequence, place = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    if beyond[sequence, place] < 1.0:
        return None
    return int(place) + 1, float(sigmas[sequence, place])


@dataclass(slots=True, eq=False)
class Pieces:
    """Hits of an event in aligned pieces of 1, 2, 4 ... parts of a block, as a few sums.

    Piece `i` of level `l` has the parts from `i 2**l` to `(i + 1) 2**l`, and a block has 16 parts.
    All sums are sums of integers, so their order does not matter. The number of stored values grows
    only with the number of levels, not with the number of blocks.

    Args:
        sums: pieces, hits and squared hits, by level and trials of a piece.
        single: trials and hits of the pieces whose neighbour is not known yet, by level and index.
    """

    sums: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    single: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_block(cls, number: int, edges: Sequence[int], hits: Sequence[int]) -> Pieces:
        """Return the pieces of one block.

        Args:
            number: number of the block, counted from the first counted block.
            edges: rows at which its pieces begin and end, see `cut_block`.
            hits: hits of each piece. The number of pieces is a power of two.
        """
        pieces = cls()
        level = (_EARLY_SUB_BLOCKS // len(hits)).bit_length() - 1
        for piece, (first, end) in enumerate(itertools.pairwise(edges)):
            pieces.add(level, number * len(hits) + piece, end - first, hits[piece])
        return pieces

    def add(self, level: int, index: int, trials: int, hits: int) -> None:
        """Add one piece, and the longer pieces that it completes."""
        self._sum(level, trials, (1, hits, hits * hits))
        self._join(level, index, trials, hits)

    def _sum(self, level: int, trials: int, more: tuple[int, int, int]) -> None:
        sums = self.sums.get((level, trials), (0, 0, 0))
        self.sums[level, trials] = sums[0] + more[0], sums[1] + more[1], sums[2] + more[2]

    def _join(self, level: int, index: int, trials: int, hits: int) -> None:
        while (half := self.single.pop((level, index ^ 1), None)) is not None:
            level, index, trials, hits = level + 1, index >> 1, trials + half[0], hits + half[1]
            self._sum(level, trials, (1, hits, hits * hits))
        self.single[level, index] = trials, hits

    def __iadd__(self, other: Pieces) -> Pieces:
        """Add the pieces of other blocks."""
        for (level, trials), more in other.sums.items():
            self._sum(level, trials, more)
        for (level, index), (trials, hits) in other.single.items():
            self._join(level, index, trials, hits)
        return self

    def statistics(self) -> dict[int, tuple[float, int]]:
        """Compute Pearson's statistic and its degrees of freedom at each level.

        Pieces with fewer than 25 expected hits or misses are left out.
        """
        trials, hits = (sum(column) for column in zip(*self.single.values(), strict=True))
        rarer = min(hits, trials - hits)
        levels: dict[int, list[tuple[int, tuple[int, int, int]]]] = {}
        for (level, size), sums in sorted(self.sums.items()):
            if size * rarer >= _MIN_EXPECTED_HITS * trials:
                levels.setdefault(level, []).append((size, sums))
        values = {}
        for level, groups in levels.items():
            pieces = sum(sums[0] for _, sums in groups)
            n = sum(size * sums[0] for size, sums in groups)
            k = sum(sums[1] for _, sums in groups)
            if pieces > 1 and 0 < k < n:
                between = sum(
                    (Fraction(sums[2], size) for size, sums in groups), -Fraction(k * k, n)
                )
                values[level] = float(between * n * n / (k * (n - k))), pieces - 1
        return values


def cut_block(rows: int, start: int = 0) -> list[int]:
    """Return the edges of a block's pieces: 16 (later 4), or fewer of at least 64 trials."""
    most = _EARLY_SUB_BLOCKS if start < _EARLY_SUB_BLOCKS * rows else _LATER_SUB_BLOCKS
    pieces = 1 << (max(1, min(most, rows // _MIN_SUB_BLOCK_TRIALS)).bit_length() - 1)
    return [rows * piece // pieces for piece in range(pieces + 1)]


def dispersion_p_value(strata: Sequence[Pieces]) -> float:
    """Compute the p-value of Pearson's test that an event is equally likely in all pieces.

    The shortest pieces have at least 25 expected hits and 25 expected misses. Pieces of 2, 4, ...
    times the length are tested too, to find slow changes.

    Args:
        strata: the pieces of each event. There are several if the event changed.

    Returns:
        The smallest p-value of all these tests, or 1 if there are fewer than two pieces.
    """
    from scipy.special import chdtrc

    levels: dict[int, tuple[float, int]] = {}
    for pieces in strata:
        for level, (statistic, freedom) in (pieces.statistics() if pieces.single else {}).items():
            level_sums = levels.get(level, (0.0, 0))
            levels[level] = level_sums[0] + statistic, level_sums[1] + freedom
    return min((float(chdtrc(free, total)) for total, free in levels.values()), default=1.0)


@dataclass(slots=True, eq=False)
class Evidence:
    """Evidence on independence from the rows of some blocks, on one side and for one event.

    Args:
        pieces: hits in pieces of the blocks.
        near: sums of `compare_neighbours`, or None without a comparison.
    """

    pieces: Pieces = field(default_factory=Pieces)
    near: Sums | None = None

    @classmethod
    def of(
        cls,
        outputs: Array | Held,
        start: int,
        number: int,
        hits: Callable[[int, int], int],
        answers: Callable[[int], npt.NDArray[np.bool_]],
    ) -> Evidence:
        """Collect the evidence of one block, which is one call of the mechanism.

        Args:
            outputs: outputs of the call.
            start: first trial of the call, counted from the first counted trial.
            number: number of the block, counted from the first counted block.
            hits: function that returns the number of hits in the rows `first .. end`.
            answers: function that returns the hits of the first rows as flags, up to an end.
        """
        edges = cut_block(len(outputs), start)
        pieces = Pieces.of_block(number, edges, [hits(*ends) for ends in itertools.pairwise(edges)])
        rows = looked_at(start, len(outputs))
        return cls(pieces, compare_neighbours(outputs[:rows], answers(rows)) if rows else None)

    @classmethod
    def of_answers(
        cls, outputs: Array | Held, start: int, number: int, answers: npt.NDArray[np.bool_]
    ) -> Evidence:
        """Collect the evidence if the event was already evaluated for every row."""

        def hits(first: int, end: int) -> int:
            return int(np.count_nonzero(answers[first:end]))

        return cls.of(outputs, start, number, hits, lambda end: answers[:end])

    def __iadd__(self, other: Evidence) -> Evidence:
        """Add the evidence of other blocks, in place."""
        self.pieces += other.pieces
        if other.near is not None:
            self.near = other.near.copy() if self.near is None else self.near + other.near
        return self


def evidence_to_dict(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as plain data."""
    near, pieces = evidence.near, evidence.pieces
    return {
        "near": None if near is None else near.tolist(),
        "sums": [[*key, *value] for key, value in sorted(pieces.sums.items())],
        "single": [[*key, *value] for key, value in sorted(pieces.single.items())],
    }


def evidence_from_dict(record: Mapping[str, Any]) -> Evidence:
    """Read the evidence from plain data.

    Raises:
        TypeError: if the record is not a mapping.
        ValueError: if the numbers cannot be sums over pieces, or have a wrong shape.
    """
    record = instance("evidence", record, dict)
    pieces = Pieces()
    for level, size, many, hits, squares in _read_rows(record, "sums", 5):
        if not (size and many and hits <= many * size and squares <= hits * size):
            raise invalid("sums", "sums over pieces of a block", [level, size, many, hits, squares])
        pieces.sums[level, size] = many, hits, squares
    for level, index, size, hits in _read_rows(record, "single", 4):
        if not (size and hits <= size):
            raise invalid("single", "pieces of a block", [level, index, size, hits])
        pieces.single[level, index] = size, hits
    near = record["near"]
    if near is not None:
        near = numeric("near", "sums by sequence and lag", near, "iu").astype(np.int64)
        shape = 3, 2 + columns.MOST_COLUMNS, _MAX_LAG
        if near.shape != shape:
            raise invalid("near", f"sums of shape {shape}", near.shape)
    return Evidence(pieces, near)


def _read_rows(record: Mapping[str, Any], name: str, width: int) -> list[list[int]]:
    """Read lists of `width` nonnegative integers, which floats can hold."""
    for row in instance(name, record[name], list):
        if len(instance(name, row, list)) != width:
            raise invalid(name, f"lists of {width} whole numbers", row)
        for number in row:
            integer(name, number, 0, 2**126)
    rows: list[list[int]] = record[name]
    return rows


def list_doubts(sides: Sequence[Sequence[Evidence]]) -> tuple[str, ...]:
    """List contradictions to the assumption that an audit's rows are independent and equal in law.

    Args:
        sides: on x and on x', the evidence for each counted event.

    Returns:
        One sentence for each contradiction; empty if there is no contradiction.
    """
    doubts = []
    for side, parts in zip(("x", "x'"), sides, strict=True):
        compared = [part.near for part in parts if part.near is not None]
        apart = farthest_lag(np.sum(compared, axis=0)) if compared else None
        if apart is not None:
            doubts.append(_describe_likeness(side, *apart))
        doubts += _list_variation(side, [part.pieces for part in parts], "block to block")
    return tuple(doubts)


def blocks_apart(sides: Sequence[Sequence[tuple[int, int]]]) -> tuple[str, ...]:
    """List differences between two or more audits of one event that exclude equal distributions.

    Only the numbers of trials and hits are compared.

    Args:
        sides: on x and on x', the trials and hits of each audit.
    """
    doubts = []
    for side, audits in zip(("x", "x'"), sides, strict=True):
        pieces = Pieces()
        for number, (trials, hits) in enumerate(audits):
            pieces.add(0, number, trials, hits)
        doubts += _list_variation(side, [pieces], "audit to audit")
    return tuple(doubts)


def _describe_likeness(side: str, lag: int, sigmas: float) -> str:
    more = "more" if sigmas > 0.0 else "less"
    place = "next to each other" if lag == 1 else f"{lag} places apart"
    return (
        f"outputs on {side} that stand {place} in a call are {more} alike than independent draws "
        f"would be ({abs(sigmas):.1f} standard deviations): {_NO_BOUND_REASON}"
    )


def _list_variation(side: str, strata: Sequence[Pieces], where: str) -> list[str]:
    """Describe counts that vary too much; return an empty list if they do not."""
    chance = dispersion_p_value(strata)
    text = (
        f"counts on {side} vary more from {where} than those of independent draws would "
        f"(p-value {chance:.1e}): {_NO_BOUND_REASON}"
    )
    return [text] if chance < _DISPERSION_LEVEL else []


def probe_calls(
    draw: Draw,
    name: str,
    trials: int,
    block: int,
    way_to_draw: str = WAY_TO_DRAW,
    seeded_by: str | None = None,
) -> tuple[str, ...]:
    """Make a few short calls on both sides and compare them.

    Args:
        draw: function that makes one call.
        name: name of the mechanism in error messages.
        trials: number of trials of the audit.
        block: number of rows in a call of the audit; the short calls have at most this number.
        way_to_draw: advice on drawing rows, see `Calls`.
        seeded_by: source of the randomness, for a mechanism whose calls may all be equal. By
            default this is not checked here, because the blocks of the audit are checked later.

    Returns:
        Evidence against independence, one sentence for each contradiction.

    Raises:
        ValueError: if all rows of a call have one value, and all rows of another call have another
            value. With `seeded_by`, also if all calls on one side return the same rows, although
            the rows of a call differ.
    """
    if block < 2:
        return ()
    longest = min(FEWEST, block)
    rows = min(longest, max(_MIN_PROBE_ROWS, trials // _TRIALS_PER_PROBE_ROW))
    first = [[draw(side, number, rows) for number in range(_PROBE_CALLS)] for side in (0, 1)]
    for side, outputs in enumerate(first):
        if seeded_by is not None and _same_by_chance(outputs) < _CALL_VARIATION_LEVEL:
            calls_made = (
                f"the same varying outputs in {_PROBE_CALLS} calls on {'x_prime' if side else 'x'}"
            )
            raise invalid(
                f"outputs of {name}", f"drawn anew in every call from {seeded_by}", calls_made
            )
        if _refuse_equal_calls(outputs, name, way_to_draw):
            more = max(_EXTRA_PROBE_CALLS, _EXTRA_PROBE_ROWS // longest)
            calls = [draw(side, _PROBE_CALLS + number, longest) for number in range(more)]
            _refuse_equal_calls(calls, name, way_to_draw)
    chance = _between_calls_p_value(first) if rows >= _MIN_PROBE_ROWS else 1.0
    if chance >= _CALL_VARIATION_LEVEL:
        return ()
    return (
        f"outputs vary more from call to call than those of independent draws would "
        f"(p-value {chance:.1e}): {_NO_BOUND_REASON}",
    )


def _refuse_equal_calls(outputs: list[Array], name: str, way_to_draw: str) -> bool:
    """Raise an error if calls are constant but differ; return True if all are constant."""
    calls = [call for call in map(same_rows, outputs) if call is not None]
    shapes = {tuple(map(len, call.columns)) for call in calls}
    if len(calls) < len(outputs) or len(shapes) > 1:
        return False
    column = first_difference(calls)
    if column is not None and by_chance(calls, column) < _CONSTANT_CALLS_LEVEL:
        raise one_output(name, calls[0], column, way_to_draw)
    return True


def _same_by_chance(calls: list[Array]) -> float:
    """Return the probability that a random order of all rows makes all calls equal.

    It is 1 if the calls differ. For `G` calls of `n` rows, in which value `j` occurs `m_j` times
    per call, it is `(n! / prod m_j!) / ((G n)! / prod (G m_j)!)`.
    """
    rows = [encode_rows(call) for call in calls]
    first = rows[0]
    if first is None or not all(row is not None and np.array_equal(row, first) for row in rows):
        return 1.0
    counts = np.unique(first, axis=0, return_counts=True)[1].tolist()
    return math.exp(_log_orders(counts) - _log_orders([len(calls) * count for count in counts]))


def _between_calls_p_value(sides: list[list[Array]]) -> float:
    """Compute the smallest Kruskal-Wallis p-value over a few columns, with calls as groups.

    The statistics of both sides are added, because one side has too few rows.
    """
    from scipy.special import chdtrc

    p_values: dict[int, tuple[float, int]] = {}
    for outputs in sides:
        groups = len(outputs)
        for column, ranks in enumerate(columns.list_sequences(join_outputs(outputs))[0]):
            rows, centred = len(ranks), ranks - ranks.mean()
            squares = centred * centred
            second, fourth = float(squares.sum()), float((squares * squares).sum())
            # The variance of a constant is only rounding.
            if second > 1e-9 and rows * fourth <= _MAX_RANK_KURTOSIS * second**2:
                sums = centred.reshape(groups, -1).sum(axis=1)
                own = (rows - 1) * float((sums**2).sum()) / (rows / groups) / second
                statistic, freedom = p_values.get(column, (0.0, 0))
                p_values[column] = statistic + own, freedom + groups - 1
    return min((float(chdtrc(free, own)) for own, free in p_values.values()), default=1.0)
