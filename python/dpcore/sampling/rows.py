"""Tests that outputs are independent draws, which every certified bound assumes.

A row is one output. One call of a mechanism returns many rows. A test cannot prove that rows are
independent, but it can find dependence that is not due to chance. There are three tests:

- *calls* (`constant_columns`, `probe_calls`): all rows of a call are equal, and all rows of another
  call are equal, but the two calls differ. A few extra short calls are also tested for columns that
  vary more between calls than within calls;
- *neighbours* (`compare_at_lags`): rows at distance 1, 2, 3 ... in a call are more (or less)
  similar than rows in a random order;
- *dispersion* (`rate_change_p_value`): the number of hits (outputs in the event) varies too much
  between parts of the draws.

The short calls are made first, because a long call may take an hour. So an error is reported early.

If rows are independent, the probability that a test reports dependence or raises an error is below
1e-6 per audit. The table shows the parts of this probability:

| check | largest probability of a false alarm |
|---|---|
| all rows of a call are equal, tested in all calls | 1e-8 |
| all rows of a call are equal, tested in short calls: 1e-15 per column | 1e-10 |
| all short calls on x (or on x') are equal, only for commands: 1e-11 each | 2e-11 |
| variation of 4 columns from call to call: p-value 1e-11 | 1e-8 |
| neighbours: 7 or 8 standard deviations, 25 expected pairs, on x and on x' | 3e-7 |
| dispersion: p-value 1e-9, 25 expected hits and misses, all lengths, on x and x' | 1e-7 |

The last two rows of the table are computed from the distribution of counts of about 25, not from
the normal or the chi-square distribution. A Poisson variable with mean 25 exceeds its mean by 7
standard deviations with probability 2e-9 (by 8 with probability 2e-11). For the shortest parts, the
nominal p-value of Pearson's statistic is below 1e-9 with a probability of about 3e-8.

The test of neighbours uses that independent rows of one call can be permuted. Let v_1, ..., v_n be
numbers for the n rows, with mean 0. Let L be a distance (lag) below n/2. Row 1 follows row n. Over
all permutations, the sum of v_i v_(i+L) has mean -S2/(n - 1) and variance (S2^2 - S4)/(n - 1) +
(S2^2 - 2 S4)/((n - 1)(n - 2)) - S2^2/(n - 1)^2, where S_k is the sum of v^k (Wald and Wolfowitz,
1943, Annals of Mathematical Statistics 14, for L = 1). The proof uses only that each row is in two
of the n pairs, so it holds for every lag. The number of equal pairs is tested in the same way. The
test makes no assumption about the distribution of a row, and ties are allowed.
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

from ..errors import instance, integer, invalid, numeric, tag_error
from ..events.event import Batch, move_to_host
from ..mechanisms.answers import copy_answer, has_unreadable_contents, join_outputs
from ..records import Array
from . import columns
from .replay import encode_rows

FEWEST: Final = 32
"""Two calls that are constant but differ are judged only if each has at least this many rows."""
_EQUAL_CALLS_LEVEL: Final = 1e-8
_FIRST_COMPARED_ROWS: Final = 64
"""Number of rows that are compared first."""

WAY_TO_DRAW: Final = (
    "draw the noise with size=(size, len(x)), or write a function of x and rng that returns one "
    "output and pass dpcore.repeat(function)"
)
"""Advice on rows that share noise, unless a mechanism has its own `way_to_draw`."""

_OTHER_SIZE: Final = 1 / 16
"""Relative difference ignored between calls of two sizes, whose sums may round differently."""

_FIRST_ORDERED_TRIALS: Final = 2**11
_LATER_ORDERED_TRIALS: Final = 2**10
_ORDER_CHECK_PERIOD: Final = 2**19
"""Rows that are checked: the first 2,048 trials, then 1,024 at the start of every 2**19."""
_MIN_ORDERED_ROWS: Final = 8
"""Least number of rows of a call whose order is checked."""
_MAX_LAG: Final = 256
_EQUAL_LAGS: Final = (*range(1, 9), 10, 12, 16, 20, 32, 64, 100, 128, 256)
"""Distances at which equal rows are counted. For scores, all up to `_MAX_LAG` are used."""
_DOUBLING_LAGS: Final = tuple(2**power for power in range(9))
_DOUBLING_LAG_SIGMAS: Final = 7.0
_OTHER_LAG_SIGMAS: Final = 8.0
"""z-scores from which dependence is reported, at distances 1, 2, 4, 8 ... and at others."""
_MIN_EXPECTED_PAIRS: Final = 25.0
"""Least expected number of equal pairs, and of unequal pairs, for a report."""
_SUM_UNIT: Final = 2.0**-24
"""Unit of the sums, which are integers, so that the order of adding does not change them."""

Sums = npt.NDArray[np.int64]
"""Array of shape `(3, 6, 256)`: excess of a sum over its mean, variance, and a third value.

The second axis has six sequences: equal rows, hits of the event, and ranks of at most four columns.
The third axis is the lag. For equal rows, the third value is the expected number of pairs. For the
other sequences, it is the sum of the fourth powers of products.
"""

_LAG_THRESHOLDS: Final = np.full(_MAX_LAG, _OTHER_LAG_SIGMAS)
_LAG_THRESHOLDS[np.array(_DOUBLING_LAGS) - 1] = _DOUBLING_LAG_SIGMAS

_EARLY_SUB_BLOCKS: Final = 16
_LATER_SUB_BLOCKS: Final = 4
"""Numbers of pieces of each of the first sixteen blocks, and of each later block."""
_MIN_SUB_BLOCK_TRIALS: Final = 64
_MIN_EXPECTED_HITS: Final = 25.0
"""Least expected hits and misses in a pool. A nominal p of 1e-9 is 8e-7 with 5, 3e-8 with 25."""

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
"""Largest fourth moment of ranks for which the chi-square tail holds with few rows."""

Draw = Callable[[int, int, int], Array]
"""Function (side, number of the call, rows) -> outputs."""


class Constants(NamedTuple):
    """Columns (entries of the outputs) that have the same value in all outputs of one call.

    Args:
        rows: number of outputs of the call.
        columns: one mask for each array of `split_by_kind`. The mask is True for the constant
            columns.
        values: first row of each array of `split_by_kind`. This row contains the common values.
    """

    rows: int
    columns: tuple[npt.NDArray[np.bool_], ...]
    values: tuple[Array, ...]


def constant_columns(outputs: Array | Batch) -> Constants | None:
    """Find the columns (entries of outputs) with the same value in all outputs of a call.

    Args:
        outputs: outputs of one call, any dtype, shape `(size, ...)`.

    Returns:
        The columns and their values. None if all columns vary, or the call has only one output.
    """
    if len(outputs) < 2:
        return None
    if isinstance(outputs, Batch):
        return _constant_device_columns(outputs)
    tables = columns.split_by_kind(outputs)
    equal = tuple(map(_constant_column_mask, tables))
    if not any(map(np.any, equal)):
        return None
    return Constants(len(outputs), equal, tuple(map(_copy_first_row, tables)))


def _copy_first_row(table: Array) -> Array:
    """Return the first row, with copies of objects, because a later call may change the objects."""
    row: Array = table[0].copy()
    for place, value in enumerate(row.tolist()) if row.dtype == object else ():
        # A value that cannot be copied is compared with itself.
        with suppress(Exception):
            cls: Any = type(value)
            row[place] = pickle.dumps(value) if has_unreadable_contents(cls) else copy_answer(value)
    return row


def _constant_device_columns(outputs: Batch) -> Constants | None:
    """Find the columns that are equal in all rows, for outputs on a device such as a GPU."""
    first = move_to_host(outputs[:2]).reshape(2, math.prod(outputs.shape[1:]))
    if not columns.entries_equal(first[0], first[1]).any():
        return None
    rows = outputs.tensor.reshape(len(outputs), first.shape[1])
    same = rows == rows[0]
    if outputs.tensor.is_floating_point():
        same |= rows.isnan() & rows[0].isnan()
    is_same = move_to_host(Batch(same.all(0)))
    return Constants(len(outputs), (is_same,), (first[0].copy(),)) if is_same.any() else None


def _constant_column_mask(table: Array) -> npt.NDArray[np.bool_]:
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
    """Record of those calls of a mechanism in which an entry was equal in all outputs.

    Args:
        name: name of the mechanism in error messages.
        way_to_draw: advice in the error message on how to draw independent noise for each output.
    """

    name: str
    way_to_draw: str = WAY_TO_DRAW
    _first: dict[tuple[int, int], Constants] = field(default_factory=dict, repr=False)
    _seen: int = 0

    def check_and_add_calls(self, calls: int, comparisons: Sequence[tuple[int, Constants]]) -> None:
        """Record some calls; raise an error if recorded calls show that outputs share their noise.

        Args:
            calls: number of calls.
            comparisons: one pair for each call with constant columns (entries that are equal in all
                outputs). The pair is 0 (call on x) or 1 (call on x'), and the constant columns.

        Raises:
            ValueError: if a column has one value in all outputs of a call, and another value in all
                outputs of a second call on the same input.
        """
        self._seen += calls
        for side, same in comparisons:
            if same.rows < FEWEST:
                continue
            for (other_side, rows), first in self._first.items():
                if other_side == side and self._is_chance_excluded(min(rows, same.rows), same):
                    slack = None if rows == same.rows else _OTHER_SIZE
                    place = differing_column_index([first, same], slack)
                    if place is not None:
                        raise one_noise_in_call_error(self.name, same, place, self.way_to_draw)
            self._first.setdefault((side, same.rows), same)

    def _is_chance_excluded(self, rows: int, constants: Constants) -> bool:
        """Return True if chance cannot explain two calls with different constant outputs."""
        pairs = 2 * math.log(self._seen) + math.log(sum(map(len, constants.columns)))
        return pairs < rows * math.log(4) + math.log(_EQUAL_CALLS_LEVEL)


def differing_column_index(calls: Sequence[Constants], slack: float | None = None) -> int | None:
    """Return the index of the first column that is constant in each call but not across calls."""
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


def constant_within_calls_p_value(calls: Sequence[Constants], column: int) -> float:
    """Compute the probability that a column is constant in each call if outputs are independent.

    Args:
        calls: calls with equal numbers of outputs. The column has one value in all outputs of a
            call.
        column: index of the column (entry of the outputs), over all arrays of `Constants.columns`.

    Returns:
        The p-value `(G! / prod c!) / ((mG)! / prod (mc)!)` for G calls of m outputs. The products
        are over the different values, and c is the number of calls with the value.
    """
    entries = [np.concatenate([v.astype(object) for v in call.values])[column] for call in calls]
    groups: list[tuple[Any, int]] = []
    for entry in entries:
        for number, (value, count) in enumerate(groups):
            if not _values_differ(value, entry):
                groups[number] = value, count + 1
                break
        else:
            groups.append((entry, 1))
    counts = [count for _, count in groups]
    return math.exp(_log_orders(counts) - _log_orders([calls[0].rows * count for count in counts]))


def _log_orders(counts: Sequence[int]) -> float:
    """Return the log of the multinomial coefficient, the number of orders of the values."""
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(count + 1) for count in counts)


def _values_differ(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return bool(columns.entries_differ(np.array([first]), np.array([second]), None)[0])
    pair = np.empty((2, 1), dtype=object)
    pair[0, 0], pair[1, 0] = first, second
    return not bool(columns.entries_equal(pair[0], pair[1])[0])


def one_noise_in_call_error(
    name: str, call: Constants, column: int, way_to_draw: str = WAY_TO_DRAW
) -> ValueError:
    """Return a ValueError with advice, for outputs that are equal only within each call."""
    width = sum(map(len, call.columns))
    where = f" in place {column} of {width}" if width > 1 else ""
    what = f"outputs of {name}"
    error = ValueError(
        f"{what} must be drawn anew for every row of a call, got one value for all "
        f"{call.rows:,} rows of a call{where} and another for all rows of another call: "
        f"{way_to_draw}"
    )
    return tag_error(error, what)


def count_lag_test_rows(start: int, rows: int) -> int:
    """Return how many outputs of a call are tested for dependence on nearby outputs.

    Only the first outputs of an audit, and some outputs in every 2^19 trials, are tested.
    """
    ordered = _FIRST_ORDERED_TRIALS if start < _ORDER_CHECK_PERIOD else _LATER_ORDERED_TRIALS
    return max(0, min(rows, ordered - start % _ORDER_CHECK_PERIOD))


def compare_at_lags(outputs: Array | Batch, in_event: npt.NDArray[np.bool_]) -> Sums | None:
    """Compare each output of a call with the outputs at distances 1, 2, 3 ... in the same call.

    Args:
        outputs: outputs of one call, any dtype, shape `(size, ...)`.
        in_event: True for each output that is in the event.

    Returns:
        Sums for the test, which may be added over calls. None if the call has fewer than 8 outputs.
    """
    rows = len(outputs)
    if rows < _MIN_ORDERED_ROWS:
        return None
    ranks, codes = columns.ranks_and_codes(columns.few_columns_if_torch_batch(outputs))
    scores = np.array([in_event, *ranks], dtype=np.float64)
    sums = np.zeros((3, 2 + columns.MOST_COLUMNS, _MAX_LAG))
    _add_lagged_products(sums[:, 1 : 1 + len(scores)], scores - scores.mean(axis=1, keepdims=True))
    _set_equal_pair_deviations(sums[:, 0], codes)
    return np.rint(sums / _SUM_UNIT).astype(np.int64)


def _add_lagged_products(sums: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> None:
    """Store the sums of v_i v_(i+L) in `sums`, for each row v of `scores` and all lags L."""
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


def _set_equal_pair_deviations(sums: npt.NDArray[np.float64], codes: npt.NDArray[np.intp]) -> None:
    """Store the number of equal pairs minus its mean, and the variance, at each lag (distance)."""
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


def lag_z_scores(sums: Sums) -> npt.NDArray[np.float64]:
    """Compute z-scores of the similarity of outputs, for each compared quantity and lag.

    A lag is the distance of two outputs in a call. The z-score is 0 if too few pairs are expected.
    """
    excess, variance, rest = sums * _SUM_UNIT
    # If a share q of n scores is large, the ratio is n q^2, the expected number of their pairs.
    fourth = np.where(rest > 0.0, rest, 1.0)
    pairs = np.where(rest > 0.0, variance**2 / fourth, 0.0)
    pairs[0] = rest[0]
    is_usable = (pairs >= _MIN_EXPECTED_PAIRS) & (variance > 0.0)
    return np.where(is_usable, excess / np.sqrt(np.where(is_usable, variance, 1.0)), 0.0)


def significant_lag_and_z(sums: Sums) -> tuple[int, float] | None:
    """Find the distance (lag) at which outputs of a call depend most strongly on each other.

    Args:
        sums: results of `compare_at_lags`, added up over all calls.

    Returns:
        The lag and the z-score at this lag. If the z-score is positive, outputs are more similar
        than independent outputs. If it is negative, outputs are less similar. The result is None if
        the dependence may be due to chance.
    """
    sigmas = lag_z_scores(sums)
    beyond = np.abs(sigmas) / _LAG_THRESHOLDS
    sequence, place = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    if beyond[sequence, place] < 1.0:
        return None
    return int(place) + 1, float(sigmas[sequence, place])


@dataclass(slots=True, eq=False)
class Pieces:
    """Sums of the hits (outputs in the event) in short and long ranges of draws, called pieces.

    Each block of draws is cut into 16 parts, and the parts of all blocks are numbered. Piece `i` of
    level `l` has `2**l` parts, from `i 2**l` to `(i + 1) 2**l - 1`.

    Args:
        sums: for each level and each length of a piece (in trials): the number of pieces, the sum
            of their hits, and the sum of the squares of their hits.
        single: dict for pieces whose adjacent piece is not yet known. A key is (level, `i`), and
            its value has the numbers of trials and hits of the piece.
    """

    sums: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    single: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_block(cls, number: int, piece_edges: Sequence[int], hits: Sequence[int]) -> Pieces:
        """Return the sums of the hits in the pieces of one block of draws.

        Args:
            number: number of the block. The first counted block of the audit is 0.
            piece_edges: positions in the block at which the pieces begin and end, see
                `list_piece_edges`.
            hits: number of outputs in the event, for each piece. The number of pieces is a power of
                two.
        """
        pieces = cls()
        level = (_EARLY_SUB_BLOCKS // len(hits)).bit_length() - 1
        for piece, (first, end) in enumerate(itertools.pairwise(piece_edges)):
            pieces.add(level, number * len(hits) + piece, end - first, hits[piece])
        return pieces

    def add(self, level: int, index: int, trials: int, hits: int) -> None:
        """Add one piece (range of draws), and each longer piece whose two halves are now known."""
        self._add_sums(level, trials, (1, hits, hits * hits))
        self._join_half_pieces_into_longer(level, index, trials, hits)

    def _add_sums(self, level: int, trials: int, more: tuple[int, int, int]) -> None:
        sums = self.sums.get((level, trials), (0, 0, 0))
        self.sums[level, trials] = sums[0] + more[0], sums[1] + more[1], sums[2] + more[2]

    def _join_half_pieces_into_longer(self, level: int, index: int, trials: int, hits: int) -> None:
        while (half := self.single.pop((level, index ^ 1), None)) is not None:
            level, index, trials, hits = level + 1, index >> 1, trials + half[0], hits + half[1]
            self._add_sums(level, trials, (1, hits, hits * hits))
        self.single[level, index] = trials, hits

    def __iadd__(self, other: Pieces) -> Pieces:
        """Add the pieces of other blocks."""
        for (level, trials), more in other.sums.items():
            self._add_sums(level, trials, more)
        for (level, index), (trials, hits) in other.single.items():
            self._join_half_pieces_into_longer(level, index, trials, hits)
        return self

    def chi_squared(self) -> dict[int, tuple[float, int]]:
        """Compute Pearson's chi-square statistic for the hits in ranges of draws (pieces).

        The result has the statistic and its degrees of freedom for each level (length of pieces).
        Pieces with fewer than 25 expected hits or 25 expected misses are left out.
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


def list_piece_edges(rows: int, rows_before: int = 0) -> list[int]:
    """Return the positions where the pieces (ranges of draws) of a block begin and end.

    The block has `rows` draws. Each of the first sixteen blocks has 16 pieces, and each later block
    has 4. A block with few draws has fewer pieces, so that each piece has at least 64 draws.
    """
    most = _EARLY_SUB_BLOCKS if rows_before < _EARLY_SUB_BLOCKS * rows else _LATER_SUB_BLOCKS
    pieces = 1 << (max(1, min(most, rows // _MIN_SUB_BLOCK_TRIALS)).bit_length() - 1)
    return [rows * piece // pieces for piece in range(pieces + 1)]


def rate_change_p_value(pieces_by_event: Sequence[Pieces]) -> float:
    """Compute a p-value for the hypothesis that an event has the same probability in all draws.

    The draws are cut into pieces of equal length. Pearson's test compares the numbers of outputs in
    the event. The test is repeated for pieces of 2, 4, ... times the length, to find slow changes.

    Args:
        pieces_by_event: sums of the pieces for each event that the audit counted.

    Returns:
        The smallest p-value of all lengths, or 1 if fewer than two pieces are long enough.
    """
    from scipy.special import chdtrc

    levels: dict[int, tuple[float, int]] = {}
    for pieces in pieces_by_event:
        for level, (statistic, freedom) in (pieces.chi_squared() if pieces.single else {}).items():
            level_sums = levels.get(level, (0.0, 0))
            levels[level] = level_sums[0] + statistic, level_sums[1] + freedom
    return min((float(chdtrc(free, total)) for total, free in levels.values()), default=1.0)


@dataclass(slots=True, eq=False)
class IndependenceSums:
    """Sums for tests of whether outputs on one input are independent, for one event.

    Args:
        pieces: numbers of outputs in the event, in short and long pieces of the draws.
        near: sums of `compare_at_lags`, or None if no outputs were compared.
    """

    pieces: Pieces = field(default_factory=Pieces)
    near: Sums | None = None

    @classmethod
    def of(
        cls,
        outputs: Array | Batch,
        start: int,
        number: int,
        hits: Callable[[int, int], int],
        answers: Callable[[int], npt.NDArray[np.bool_]],
    ) -> IndependenceSums:
        """Compute the sums for the tests of independence from one block (one call).

        Args:
            outputs: outputs of the call.
            start: number of the first trial of the call. The first counted trial has number 0.
            number: number of the block. The first counted block of the audit is 0.
            hits: function `(first, end)` that counts the outputs in the event from `first` to
                `end - 1`.
            answers: function from a number n to an array. The array has a bool for each of the
                first n outputs: True if the output is in the event.
        """
        edges = list_piece_edges(len(outputs), start)
        pieces = Pieces.of_block(number, edges, [hits(*ends) for ends in itertools.pairwise(edges)])
        rows = count_lag_test_rows(start, len(outputs))
        return cls(pieces, compare_at_lags(outputs[:rows], answers(rows)) if rows else None)

    @classmethod
    def of_event_answers(
        cls, outputs: Array | Batch, start: int, number: int, answers: npt.NDArray[np.bool_]
    ) -> IndependenceSums:
        """Compute the sums for the tests of independence from one block, with a known event.

        The array `answers` is True for each output that is in the event.
        """

        def hits(first: int, end: int) -> int:
            return int(np.count_nonzero(answers[first:end]))

        return cls.of(outputs, start, number, hits, lambda end: answers[:end])

    def __iadd__(self, other: IndependenceSums) -> IndependenceSums:
        """Add the sums of other blocks, in place."""
        self.pieces += other.pieces
        if other.near is not None:
            self.near = other.near.copy() if self.near is None else self.near + other.near
        return self


def evidence_to_dict(evidence: IndependenceSums) -> dict[str, Any]:
    """Convert the sums for the tests of independence to a dictionary that can be stored as JSON."""
    near, pieces = evidence.near, evidence.pieces
    return {
        "near": None if near is None else near.tolist(),
        "sums": [[*key, *value] for key, value in sorted(pieces.sums.items())],
        "single": [[*key, *value] for key, value in sorted(pieces.single.items())],
    }


def evidence_from_dict(record: Mapping[str, Any]) -> IndependenceSums:
    """Read the sums for the tests of independence from the result of `evidence_to_dict`.

    Raises:
        TypeError: if the record is not a mapping.
        ValueError: if the numbers cannot be such sums, or a list has a wrong length.
    """
    record = instance("evidence", record, dict)
    pieces = Pieces()
    for level, size, many, hits, squares in _read_integer_lists(record, "sums", 5):
        if not (size and many and hits <= many * size and squares <= hits * size):
            raise invalid("sums", "sums over pieces of a block", [level, size, many, hits, squares])
        pieces.sums[level, size] = many, hits, squares
    for level, index, size, hits in _read_integer_lists(record, "single", 4):
        if not (size and hits <= size):
            raise invalid("single", "pieces of a block", [level, index, size, hits])
        pieces.single[level, index] = size, hits
    near = record["near"]
    if near is not None:
        near = numeric("near", "sums by sequence and lag", near, "iu").astype(np.int64)
        shape = 3, 2 + columns.MOST_COLUMNS, _MAX_LAG
        if near.shape != shape:
            raise invalid("near", f"sums of shape {shape}", near.shape)
    return IndependenceSums(pieces, near)


def _read_integer_lists(record: Mapping[str, Any], name: str, width: int) -> list[list[int]]:
    """Read lists of `width` nonnegative integers that float64 represents exactly."""
    for row in instance(name, record[name], list):
        if len(instance(name, row, list)) != width:
            raise invalid(name, f"lists of {width} whole numbers", row)
        for number in row:
            integer(name, number, 0, 2**126)
    rows: list[list[int]] = record[name]
    return rows


def list_doubts(sides: Sequence[Sequence[IndependenceSums]]) -> tuple[str, ...]:
    """Test whether all outputs on an input are independent and have the same distribution.

    Args:
        sides: for x and for x', a list of sums (`IndependenceSums`), one for each counted event.

    Returns:
        Sentences for the report: one sentence for each test that rejects this assumption.
    """
    doubts = []
    for side, parts in zip(("x", "x'"), sides, strict=True):
        compared = [part.near for part in parts if part.near is not None]
        apart = significant_lag_and_z(np.sum(compared, axis=0)) if compared else None
        if apart is not None:
            doubts.append(_describe_likeness(side, *apart))
        doubts += _list_excess_variation(side, [part.pieces for part in parts], "block to block")
    return tuple(doubts)


def compare_rates_of_audits(sides: Sequence[Sequence[tuple[int, int]]]) -> tuple[str, ...]:
    """Test whether an event has the same probability in two or more audits.

    The probabilities on x are tested for equality. The probabilities on x' are tested separately.
    For each rejected test, the result has a sentence for the report.

    Args:
        sides: for x and for x', the numbers of trials and of outputs in the event in each audit.
    """
    doubts = []
    for side, audits in zip(("x", "x'"), sides, strict=True):
        pieces = Pieces()
        for number, (trials, hits) in enumerate(audits):
            pieces.add(0, number, trials, hits)
        doubts += _list_excess_variation(side, [pieces], "audit to audit")
    return tuple(doubts)


def _describe_likeness(side: str, lag: int, sigmas: float) -> str:
    more = "more" if sigmas > 0.0 else "less"
    place = "next to each other" if lag == 1 else f"{lag} places apart"
    return (
        f"outputs on {side} that stand {place} in a call are {more} alike than independent draws "
        f"would be ({abs(sigmas):.1f} standard deviations): {_NO_BOUND_REASON}"
    )


def _list_excess_variation(side: str, strata: Sequence[Pieces], where: str) -> list[str]:
    """Return a sentence if counts vary too much for independent draws, else an empty list."""
    chance = rate_change_p_value(strata)
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
    """Make short calls of a mechanism on x and on x' to test whether outputs are independent.

    Args:
        draw: function `(side, index of the call, number of outputs)` that makes one call. The side
            is 0 for x and 1 for x'.
        name: name of the mechanism in error messages.
        trials: number of trials of the audit.
        block: number of outputs of a call in the audit. A short call is not longer.
        way_to_draw: advice in the error message on how to draw independent noise for each output.
        seeded_by: name of a source of randomness, for the error message about equal calls. None
            means that this function does not test whether calls return the same outputs.

    Returns:
        Sentences for the report: one sentence for each test that rejects independence.

    Raises:
        ValueError: if, in each of two calls, all outputs are equal, but the two calls differ. If
            `seeded_by` is given, also if all calls on one input return the same outputs, although
            the outputs of a call differ.
    """
    if block < 2:
        return ()
    longest = min(FEWEST, block)
    rows = min(longest, max(_MIN_PROBE_ROWS, trials // _TRIALS_PER_PROBE_ROW))
    first = [[draw(side, number, rows) for number in range(_PROBE_CALLS)] for side in (0, 1)]
    for side, outputs in enumerate(first):
        if seeded_by is not None and _equal_calls_p_value(outputs) < _CALL_VARIATION_LEVEL:
            calls_made = (
                f"the same varying outputs in {_PROBE_CALLS} calls on {'x_prime' if side else 'x'}"
            )
            raise invalid(
                f"outputs of {name}", f"drawn anew in every call from {seeded_by}", calls_made
            )
        if _are_calls_constant_raise_if_unequal(outputs, name, way_to_draw):
            more = max(_EXTRA_PROBE_CALLS, _EXTRA_PROBE_ROWS // longest)
            calls = [draw(side, _PROBE_CALLS + number, longest) for number in range(more)]
            _are_calls_constant_raise_if_unequal(calls, name, way_to_draw)
    chance = _between_calls_p_value(first) if rows >= _MIN_PROBE_ROWS else 1.0
    if chance >= _CALL_VARIATION_LEVEL:
        return ()
    return (
        f"outputs vary more from call to call than those of independent draws would "
        f"(p-value {chance:.1e}): {_NO_BOUND_REASON}",
    )


def _are_calls_constant_raise_if_unequal(outputs: list[Array], name: str, way_to_draw: str) -> bool:
    """Raise an error if constant calls differ; return True if all calls have constant outputs."""
    calls = [call for call in map(constant_columns, outputs) if call is not None]
    shapes = {tuple(map(len, call.columns)) for call in calls}
    if len(calls) < len(outputs) or len(shapes) > 1:
        return False
    column = differing_column_index(calls)
    if column is not None and constant_within_calls_p_value(calls, column) < _CONSTANT_CALLS_LEVEL:
        raise one_noise_in_call_error(name, calls[0], column, way_to_draw)
    return True


def _equal_calls_p_value(calls: list[Array]) -> float:
    """Return the p-value of equal calls: the probability under a random order of all rows.

    The p-value is 1 if the calls differ. For `G` equal calls of `n` rows, in which value `j` occurs
    `m_j` times per call, it is `(n! / prod m_j!) / ((G n)! / prod (G m_j)!)`.
    """
    rows = [encode_rows(call) for call in calls]
    first = rows[0]
    if first is None or not all(row is not None and np.array_equal(row, first) for row in rows):
        return 1.0
    counts = np.unique(first, axis=0, return_counts=True)[1].tolist()
    return math.exp(_log_orders(counts) - _log_orders([len(calls) * count for count in counts]))


def _between_calls_p_value(sides: list[list[Array]]) -> float:
    """Compute the smallest p-value of Kruskal-Wallis tests of a few columns, with calls as groups.

    The statistics of the calls on x and of the calls on x' are added, because each has few rows.
    """
    from scipy.special import chdtrc

    p_values: dict[int, tuple[float, int]] = {}
    for outputs in sides:
        groups = len(outputs)
        for column, ranks in enumerate(columns.ranks_and_codes(join_outputs(outputs))[0]):
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
