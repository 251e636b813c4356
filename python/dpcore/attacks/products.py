"""Attacks on pairs of columns: products of their signs and of their centred values.

A column is one entry of all outputs. Each column may have the same distribution on x and on x',
although the dependence of two columns differs. For example, two bits agree on x and disagree on x'.
A sum over columns cannot show this difference. The second moments of all pairs of columns show it,
at the cost of one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np

from ..errors import invalid
from ..events.event import BITS, Score
from ..records import Array, Flags, Floats, Ints, Record, Rows, set_fields
from . import arrays
from .arrays import Places, has_few_distinct_rows, read_numbers
from .atoms import MAX_CLUSTER_TOLERANCES
from .attack import Choice, Goal, NumericAttack
from .bins import place_between
from .grains import Tolerance, bin_boundary_indices, column_tolerance
from .ratios import to_fixed_point
from .threshold import Special
from .triples import best_pair_and_triple, choose_3_interval_event, has_3_to_8_entries, ratio_score

MOST_COLUMNS: Final = 512
_CENTRED_ROWS: Final = 2**11
"""Number of rows, on x and also on x', from which centres and scales are computed."""
_FEW_COLUMNS_LIMIT: Final = 64
_MOMENT_STANDARD_ERRORS: Final = 5.0
"""Least difference of a moment between x and x', in standard errors, for few columns. If 4,000
moments have no difference, chance exceeds it in one of 400 pilots. For 512 columns it is 6."""
_NORMAL_QUARTILE_RANGE: Final = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""
REACH: Final = 16.0
"""Largest magnitude of a centred value, in multiples of its scale. Larger values, also infinite
ones, are replaced by this limit. Therefore the product of two values is finite."""
_MOMENT_NUMBERS: Final = 2**20
_MOMENT_ROWS: Final = (2**13, 2**16)
"""Smallest and largest number of rows, on x and also on x', from which moments are computed."""
_CENTRED_VALUE_LIMIT: Final = 4.0
"""Limit of centred values in moments, so that rare large values do not hide the other values."""
_MAX_PRODUCT_TERMS: Final = 256
_MAX_JOINT_COLUMNS: Final = 20
"""Largest number of columns in the quadratic form that uses all informative pairs."""
_NORM_TOLERANCE: Final = 1e-5
"""Largest relative difference between squared norms that count as equal. It is above the rounding
errors of single precision."""
_MIN_EIGENVALUE: Final = 1e-3
"""Least eigenvalue of a moment matrix. Before the inversion, smaller ones are raised to it."""


class Frame(NamedTuple):
    """The columns (entries of outputs) that are compared, with their medians and spreads.

    Args:
        entries: for each column, the index (from 0) of the output entry that the column contains.
        cuts: for each column, the limit of the sign. Below this limit the sign is -1, otherwise it
            is 1.
        centres: medians of the columns.
        scales: spreads of the columns. All are above 0.
        many: for each column, True if it has more than two distinct values.
    """

    entries: Ints
    cuts: Floats
    centres: Floats
    scales: Floats
    many: Flags


def nonconstant_medians_and_spreads(rows: Array, rows_prime: Array) -> Frame:
    """Return the columns that are not constant, at most 512, with their medians and spreads."""
    some = np.concatenate([rows[:_CENTRED_ROWS], rows_prime[:_CENTRED_ROWS]])
    entries = np.flatnonzero((some != some[:1]).any(axis=0))
    if entries.size > MOST_COLUMNS:
        # Neighbouring columns depend on each other more often than distant columns.
        starts = np.linspace(0, entries.size - 2, MOST_COLUMNS // 2).astype(np.int64)
        entries = np.unique(entries[np.concatenate([starts, starts + 1])])
    every = [_centre_spread(some[:, i], column_tolerance(some[:, i], some[:0, i])) for i in entries]
    frames = np.array([(i, *made) for i, made in zip(entries, every, strict=True) if made])
    entries_kept, cuts, centres, scales, many = frames.reshape(-1, 5).T.astype(np.float64)
    return Frame(entries_kept.astype(np.int64), cuts, centres, scales, many > 0.0)


def _centre_spread(values: Array, grain: Tolerance) -> tuple[float, float, float, float] | None:
    """Return four numbers for a column, or None if the column is constant.

    The numbers are the value at which the sign changes, the median, the spread, and a flag. The
    flag is 1 if the column has more than two distinct values, otherwise 0.
    """
    ordered = np.sort(values.astype(np.float64))
    ordered = ordered[np.isfinite(ordered)]
    gaps, slack = bin_boundary_indices(ordered, grain), grain.typical_tolerance
    if not gaps.size and (not ordered.size or np.ptp(ordered) <= MAX_CLUSTER_TOLERANCES * slack):
        return None
    middle = float(ordered[ordered.size // 2])
    quartiles = ordered[[ordered.size // 4, 3 * ordered.size // 4]]
    spread = float(quartiles[1] - quartiles[0]) / _NORMAL_QUARTILE_RANGE
    # A column with one very frequent value has equal quartiles.
    scale = spread if spread > MAX_CLUSTER_TOLERANCES * slack else float(np.std(ordered - middle))
    many = float(gaps.size > 1 or (np.ptp(ordered) > 0.0 and gaps.size == 0))
    return (
        (_find_cut_near_median(ordered, gaps, slack), middle, scale, many)
        if np.isfinite(scale)
        else None
    )


def _find_cut_near_median(ordered: Floats, gaps: Places, slack: float) -> float:
    """Return a value near the median; if possible, rounding moves no number across this value."""
    middle = ordered.size // 2
    ends = np.concatenate([[-1], gaps, [ordered.size - 1]])
    place = int(np.searchsorted(ends, middle))
    first, last = ordered[ends[place - 1] + 1], ordered[ends[place]]
    if gaps.size == 0 or last - first > MAX_CLUSTER_TOLERANCES * slack:
        # The tolerance is too large for the scale of this column: no gap is near its median.
        return float(ordered[middle])
    gap = gaps[np.argmin(np.abs(gaps + 1 - ordered.size / 2))]
    return float(place_between(ordered[gap], ordered[gap + 1]))


class Covariances(NamedTuple):
    """Covariances of all pairs of columns on x and on x', and their differences.

    The covariances on x use the means on x, and the covariances on x' use the means on x'.
    Therefore a difference of the means does not change the covariances. If two columns are
    independent on x and independent on x', the two covariances of these columns are 0 up to chance.

    Args:
        on_x: covariances on x, shape `(columns, columns)`.
        on_x_prime: covariances on x', shape `(columns, columns)`.
        evidence: for each pair of columns, the covariance on x minus the covariance on x', in
            standard errors. The diagonal is 0.
    """

    on_x: Floats
    on_x_prime: Floats
    evidence: Floats

    @classmethod
    def of(cls, values: Floats, values_prime: Floats) -> Covariances:
        """Compute covariances of columns from their values on x and x', shape `(columns, size)`."""
        means, noise = [], np.zeros(())
        for side in (values, values_prime):
            size = side.shape[1]
            # Single precision takes half the time, and its error is far below the standard error.
            single = side.astype(np.float32)
            single -= single.mean(axis=1, keepdims=True)
            mean = (single @ single.T).astype(np.float64) / size
            single *= single
            second = (single @ single.T).astype(np.float64) / size
            means.append(mean)
            # If a moment has no variance, assume that one more product would contradict it.
            noise = noise + np.maximum(second - mean * mean, 1.0 / size) / size
        evidence = (means[0] - means[1]) / np.sqrt(noise)
        np.fill_diagonal(evidence, 0.0)
        return cls(means[0], means[1], evidence)

    def informative_pairs(self) -> tuple[Ints, Ints]:
        """Return the pairs of columns whose covariances clearly differ between x and x'.

        Pair i consists of entry i of the first array and entry i of the second array. The pair with
        the largest difference in standard errors comes first.
        """
        size = np.abs(np.triu(self.evidence, 1))
        order = np.argsort(-size, axis=None, kind="stable")
        least = _MOMENT_STANDARD_ERRORS + (len(size) > _FEW_COLUMNS_LIMIT)
        order = order[: np.count_nonzero(size > least)]
        first, second = np.unravel_index(order, size.shape)
        return first.astype(np.int64), second.astype(np.int64)


class _ColumnProducts(Record):
    """Base class of `SignProducts` and `ValueProducts`. It checks their arrays."""

    __slots__ = ()
    entries: Ints
    first: Ints
    second: Ints
    weights: Floats

    def _freeze_and_check(self, *by_entry: str) -> None:
        """Make the arrays read-only, and check their shapes and values.

        The arrays named in `by_entry` must have one number for each entry.
        """
        arrays.freeze_arrays(self)
        entries, pairs = self.entries, self.first.shape
        if entries.ndim != 1 or entries.size == 0 or int(entries.min()) < 0:
            raise invalid("entries", "at least one place, counted from 0", entries)
        shapes = dict.fromkeys(by_entry, entries.shape) | {"second": pairs, "weights": pairs}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values.shape != shape or values.ndim != 1 or not np.isfinite(values).all():
                raise invalid(name, f"finite and of shape {shape}", values)
        for name, places in (("first", self.first), ("second", self.second)):
            if ((places < 0) | (places >= entries.size)).any():
                raise invalid(name, f"from 0 to {entries.size - 1}, places in entries", places)

    def _describe(self, what: str) -> str:
        """Return a description of the score, as one line of a report."""
        if self.weights.size == 1:
            i, j = self.entries[self.first[0]], self.entries[self.second[0]]
            return f"product of the {what} of entries {i} and {j}"
        return f"weighted sum of {self.weights.size} products of the {what} of two entries"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SignProducts(_ColumnProducts, word="SignProducts"):
    """A score of an output: a weighted sum of products of the signs of two (or three) entries.

    The score is ``sum_p weights[p] s[first[p]] s[second[p]]``. The sign ``s[i]`` belongs to the
    output entry with index ``entries[i]``. It is 1 if the entry is at least ``centres[i]``, and -1
    if the entry is smaller. The sign is 0 if the entry is NaN. Weights are rounded to multiples of
    2^-20. Therefore the sums are exact in any order.

    Args:
        entries: indices (from 0) of the output entries that the score uses, shape `(read,)`.
        centres: for each of these entries, the value from which the sign is 1, shape `(read,)`.
        first: for each product, the index in `entries` of the first factor, shape `(pairs,)`.
        second: for each product, the index in `entries` of the second factor, shape `(pairs,)`.
        weights: weight of each product, shape `(pairs,)`.
        third: for each product, the index in `entries` of a third factor, shape `(pairs,)`. Empty
            if the products have two factors.

    Raises:
        ValueError: if shapes do not match, a number is not finite, or an index into `entries` is
            out of range.

    Source:
        Neyman and Pearson (1933): the log-likelihood ratio is the best score. If each of two bits
        is uniform, the ratio is a multiple of the product of their signs.

    Example:
        >>> score = SignProducts([0, 2], [0.5, 0.5], [0], [1], [1.0])
        >>> score(np.array([[0, 9, 0], [1, 9, 0], [1, 9, 1]])).tolist()
        [1.0, -1.0, 1.0]
        >>> print(score)
        product of the signs of entries 0 and 2
    """

    entries: Ints
    centres: Floats
    first: Ints
    second: Ints
    weights: Floats
    third: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    merged = True
    cost = 30

    def __post_init__(self) -> None:
        """Make the arrays read-only, and check that their shapes match."""
        set_fields(self, weights=to_fixed_point(np.asarray(self.weights, np.float64)))
        self._freeze_and_check("centres")
        if self.third.size and self.third.shape != self.first.shape:
            raise invalid("third", f"empty or of shape {self.first.shape}", self.third)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`; never NaN."""
        rows = read_numbers(outputs, min_columns=self.entries.max() + 1)
        scores = np.empty(len(rows))
        matrix = np.zeros((self.entries.size, self.entries.size))
        np.add.at(matrix, (self.first, self.second), self.weights)
        for part in arrays.chunk_slices(rows):
            signs = signs_relative_to_centres(rows[part][:, self.entries], self.centres)
            if self.third.size:
                products = signs[:, self.first] * signs[:, self.second] * signs[:, self.third]
                scores[part] = products @ self.weights
            else:
                scores[part] = np.einsum("ij,ij->i", signs @ matrix, signs)
        return scores

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        if self.third.size == 1:
            i, j, k = (
                self.entries[positions[0]] for positions in (self.first, self.second, self.third)
            )
            return f"product of the signs of entries {i}, {j} and {k}"
        return self._describe("signs")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueProducts(_ColumnProducts, word="ValueProducts"):
    """A score of an output: a weighted sum of products of two centred and scaled entries.

    The score is ``sum_p weights[p] z[first[p]] z[second[p]]``. Let y be the output entry with index
    ``entries[i]``. Then ``z[i]`` is ``(y - centres[i]) / scales[i]``, limited to the range from -16
    to 16. If y is NaN, ``z[i]`` is 0. The two factors of a product may be the same entry.

    Args:
        entries: indices (from 0) of the output entries that the score uses, shape `(read,)`.
        centres: number that is subtracted from each of these entries, shape `(read,)`.
        scales: positive number by which each difference is divided, shape `(read,)`.
        first: for each product, the index in `entries` of the first factor, shape `(pairs,)`.
        second: for each product, the index in `entries` of the second factor, shape `(pairs,)`.
        weights: weight of each product, shape `(pairs,)`.

    Raises:
        ValueError: if shapes do not match, a number is not finite, a scale is not above 0, or an
            index into `entries` is out of range.

    Source:
        Neyman and Pearson (1933): the log-likelihood ratio is the best score. For two normal
        distributions with the same mean, the ratio is a quadratic form plus a constant.

    Example:
        >>> score = ValueProducts([0, 1], [1.0, 1.0], [1.0, 2.0], [0], [1], [1.0])
        >>> score(np.array([[3.0, 5.0], [3.0, -3.0], [np.nan, 0.0]])).tolist()
        [4.0, -4.0, 0.0]
        >>> print(score)
        product of the centred values of entries 0 and 1
    """

    entries: Ints
    centres: Floats
    scales: Floats
    first: Ints
    second: Ints
    weights: Floats

    @property
    def cost(self) -> int:
        """Approximate time to compute this score, in nanoseconds per output, on a usual machine."""
        return 10 * int(self.entries.size) + int(self.weights.size)

    def __post_init__(self) -> None:
        """Make the arrays read-only, and check that their shapes match."""
        self._freeze_and_check("centres", "scales")
        if not (self.scales > 0.0).all():
            raise invalid("scales", "above 0", self.scales)

    def rounding(self, grains: Sequence[Tolerance]) -> Tolerance:
        """Return how far this score can move if rounding errors move the entries of the output.

        The result is for the worst case, in which every centred and scaled entry is 16 or -16.
        `grains` contains the distance by which rounding may move each entry of the output.
        """
        moved = np.array([grains[i].typical_tolerance for i in self.entries.tolist()]) / self.scales
        pairs = np.abs(self.weights) * (moved[self.first] + moved[self.second])
        return Tolerance(BITS["float64"], absolute=REACH * float(pairs.sum()))

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`; never NaN."""
        rows = read_numbers(outputs, min_columns=self.entries.max() + 1)
        scores = np.zeros(len(rows))
        terms = list(zip(self.first, self.second, self.weights, strict=True))
        for part in arrays.chunk_slices(rows):
            values = centre_columns(rows[part][:, self.entries].T, self.centres, self.scales, REACH)
            # Add term by term: a row's score must not depend on the neighbouring rows. The last
            # bits of a matrix product do depend on them.
            for first, second, weight in terms:
                scores[part] += weight * values[first] * values[second]
        return scores

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        return self._describe("centred values")


def signs_relative_to_centres(rows: Array, centres: Floats) -> Floats:
    """Return the sign of each entry of an array: 1, -1 or 0.

    The sign is 1 if the entry is at least the centre of its column, and -1 if the entry is smaller.
    The sign is 0 if the entry is NaN. `centres` has one number for each column of `rows`.
    """
    return np.subtract(rows >= centres, rows < centres, dtype=np.float64)


def centre_columns(columns: Array, centres: Floats, scales: Floats, reach: float) -> Floats:
    """Subtract the centre from each column, divide by the scale, and limit the magnitude.

    Args:
        columns: values of the columns, shape `(columns, size)`.
        centres: number that is subtracted from each column, shape `(columns,)`.
        scales: number by which each column is divided, shape `(columns,)`.
        reach: largest magnitude of the result.

    Returns:
        Finite numbers, shape `(columns, size)`. NaN is replaced by 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.subtract(columns, centres[:, None], dtype=np.float64, order="C")
        values /= scales[:, None]
    np.clip(values, -reach, reach, out=values)
    values[np.isnan(values)] = 0.0
    return values


@dataclass(frozen=True, slots=True, repr=False)
class Products(NumericAttack):
    """Attack that compares how pairs of columns (entries of outputs) depend on each other.

    The attack computes covariances on x and on x', for all pairs of at most 512 columns. It uses
    two versions of each column. The first version is the sign of the value minus the median of the
    column. The second version is the value minus the median, divided by the spread of the column. A
    pair of columns is informative if its covariances on x and on x' differ by at least 5 standard
    errors. With more than 64 columns, 6 standard errors are necessary. The informative pairs give
    these scores:

    - the product of the two columns of the most informative pair;
    - for the same pair, the log-likelihood ratio of two normal distributions, with the means and
      covariances of the pair on x and on x';
    - if several pairs are informative, weighted sums over all informative pairs;
    - if all outputs are vectors of the same Euclidean length, such as unit vectors: a quadratic
      form of all columns.

    The attack also converts up to 32 columns to columns with few values. A converted column is one
    of these:

    - the column itself, if it has at most four values;
    - the residues of whole numbers modulo 2 and 3;
    - the signs of the column around 0 and around its median.

    The attack finds the two converted columns, and also the three converted columns, whose joint
    moments differ most between x and x'. For the pair and for the triple, the score is a table with
    one number for each combination of values. If the outputs have 3 to 8 columns of floats, the
    attack also looks for three intervals, one in each of three columns. The intervals contain many
    outputs on one input, and hardly any outputs on the other input.

    If more than 512 columns vary, the attack takes 256 evenly spaced columns and one neighbour of
    each of these columns. NaN adds 0 to every score. The attack does not apply if outputs are not
    numbers, if fewer than two columns vary, or if whole outputs repeat often. For such outputs, use
    the attack `Additive`, which scores each distinct output separately.

    Source:
        Neyman and Pearson (1933) for the likelihood ratio; Besag (1975), The Statistician 24,
        for a sum over pairs of columns in place of the joint likelihood.

    Example:
        >>> import dpcore
        >>> def twisted(x, size, rng):
        ...     bits = rng.integers(0, 2, (size, 24))
        ...     bits[:, 20] = bits[:, 3] ^ (rng.random(size) < 0.1) ^ bool(x[0])
        ...     return bits
        >>> pair = dpcore.Pair([0.0], [1.0])
        >>> report = dpcore.audit(twisted, pair, attack=Products(), trials=10**5, claim=1, rng=1)
        >>> report.verdict, 2.1 < report.epsilon_lower < 2.1973
        ('refuted', True)
        >>> print(report.event.score)
        product of the signs of entries 3 and 20
    """

    least_columns: ClassVar[int] = 2
    fallback: ClassVar[tuple[Score, ...]] = (Special("nan"),)

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose the event "three entries of the output lie in three intervals", or return None.

        The intervals contain many pilot outputs (first draws) on one of the inputs, and hardly any
        on the other input.
        """
        sides = [*outputs, *outputs_prime]
        if not (outputs and outputs_prime) or any(side.dtype.kind != "f" for side in sides):
            return None
        if not has_3_to_8_entries(sides[0]):
            return None
        return choose_3_interval_event(np.concatenate(outputs), np.concatenate(outputs_prime), goal)

    def joint(self, columns: Floats, columns_prime: Floats) -> tuple[Score, ...]:
        """Return scores that combine two or three columns, even if whole rows repeat often.

        Each column contains one real number of each output, with few distinct values.
        """
        frame = nonconstant_medians_and_spreads(columns, columns_prime)
        sides = [side[:, frame.entries].T for side in (columns, columns_prime)]
        return tuple(_tabulate_best_pair_and_triple(sides, frame))

    def make_scores(self, rows: Rows, rows_prime: Rows) -> Iterator[Score]:
        """Yield at most seven scores of pairs and triples of columns, fitted on pilot outputs."""
        if has_few_distinct_rows(rows, rows_prime):
            return
        frame = nonconstant_medians_and_spreads(rows, rows_prime)
        if frame.entries.size < 2:
            return
        most = min(max(_MOMENT_NUMBERS // rows.shape[1], _MOMENT_ROWS[0]), _MOMENT_ROWS[1])
        columns = [side[:most][:, frame.entries].T for side in (rows, rows_prime)]
        yield from _multiply_signs(columns, frame)
        yield from _tabulate_best_pair_and_triple(columns, frame)
        if frame.many.any():
            yield from _informative_pair_scores(columns, frame)
            yield from _fit_quadratic_if_constant_norm(columns, frame)


def _multiply_signs(columns: list[Array], frame: Frame) -> Iterator[SignProducts]:
    """Yield scores of the signs: the product of the most informative pair, and a weighted sum.

    The sum runs over all pairs whose covariances differ by more than chance explains.
    """
    sides = [signs_relative_to_centres(side.T, frame.cuts).T for side in columns]
    moments = Covariances.of(*sides)
    first, second = moments.informative_pairs()
    for size in {1, first.size} if first.size else ():
        i, j = first[:size], second[:size]
        odds, odds_prime = map(_to_log_odds, (moments.on_x[i, j], moments.on_x_prime[i, j]), sides)
        weights = np.ones(1) if size == 1 else 0.5 * (odds - odds_prime)
        used, (one, other) = _columns_and_reindexed_pairs(i, j)
        yield SignProducts(frame.entries[used], frame.cuts[used], one, other, weights)


def _tabulate_best_pair_and_triple(columns: list[Array], frame: Frame) -> Iterator[Score]:
    """Yield scores of the pair and of the triple of columns whose joint moments differ most.

    Each score is a table with one value for each combination of the columns' values. If the values
    of the columns are only signs, the product of the signs is an additional score.
    """
    for group in best_pair_and_triple(columns, frame.cuts):
        used = [way.column for way in group]
        if all(way.has_two_codes for way in group):
            cuts = np.array([way.cuts[0] for way in group])
            first, second, third = np.array([0]), np.array([1]), np.arange(2, len(group))
            yield SignProducts(frame.entries[used], cuts, first, second, np.ones(1), third)
        yield ratio_score(group, columns, frame.entries)


def _to_log_odds(product_mean: Floats, side: Floats) -> Floats:
    """Return the log odds that a product of two signs is 1, computed from the product's mean.

    To each of the two counts, 1/2 is added, so that the log odds are finite.
    """
    size = side.shape[1]
    agree = 0.5 * (1.0 + product_mean) * size
    return np.asarray(np.log(agree + 0.5) - np.log(size - agree + 0.5))


def _columns_and_reindexed_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the columns that occur in pairs, and the pairs as indices into these columns."""
    used, places = np.unique(np.stack([first, second]), return_inverse=True)
    return used, places.reshape(2, -1)


def _informative_pair_scores(columns: list[Array], frame: Frame) -> Iterator[ValueProducts]:
    """Yield scores of centred values for the informative pairs of columns.

    For the most informative pair, yield the product and the log-likelihood ratio of two normal
    distributions. If several pairs are informative, also yield their weighted sum, and the ratio
    for their columns.
    """
    scaling = frame.centres, frame.scales, _CENTRED_VALUE_LIMIT
    moments = Covariances.of(*(centre_columns(side, *scaling) for side in columns))
    first, second = moments.informative_pairs()
    if first.size > 0:
        yield _make_product_score(frame, first[:1], second[:1], np.ones(1))
        yield _gaussian_log_likelihood_ratio(frame, moments, np.union1d(first[:1], second[:1]))
    if first.size > 1:
        first, second = first[:_MAX_PRODUCT_TERMS], second[:_MAX_PRODUCT_TERMS]
        weights = moments.on_x[first, second] - moments.on_x_prime[first, second]
        yield _make_product_score(frame, first, second, weights)
        strength = np.abs(moments.evidence).max(axis=0)
        strongest = np.argsort(-strength)[:_MAX_JOINT_COLUMNS]
        joint = np.intersect1d(np.union1d(first, second), strongest)
        yield _gaussian_log_likelihood_ratio(frame, moments, joint)


def _gaussian_log_likelihood_ratio(frame: Frame, moments: Covariances, used: Ints) -> ValueProducts:
    """Return the log-likelihood ratio of two normal distributions as a score, up to a constant.

    The distributions have the covariances of the given columns on x and on x'.
    """
    sides = moments.on_x, moments.on_x_prime
    inverses = [_invert_with_eigenvalue_floor(side[np.ix_(used, used)]) for side in sides]
    form = 0.5 * (inverses[1] - inverses[0])
    first, second = np.triu_indices(used.size)
    # The quadratic form counts a pair of two columns twice.
    weights = form[first, second] * np.where(first == second, 1.0, 2.0)
    return _make_product_score(frame, used[first], used[second], weights)


def _fit_quadratic_if_constant_norm(columns: list[Array], frame: Frame) -> Iterator[ValueProducts]:
    """Yield a quadratic form of all columns if all outputs have the same Euclidean length.

    Such outputs are unit vectors, for example. If the density of a unit vector y is proportional to
    exp(y' A y), with different matrices A on x and on x', the log-likelihood ratio is a quadratic
    form (Bingham 1974, Annals of Statistics 2, section 2). This form is estimated by the difference
    of the second moments on x and on x'. Eigenvectors whose eigenvalues can be due to chance are
    left out.
    """
    size = min(side.shape[1] for side in columns)
    values = [np.asarray(side, np.float64) for side in columns]
    norms = np.concatenate([np.square(side).sum(axis=0) for side in values])
    radius = float(norms.mean())
    if not radius > 0.0 or not (np.abs(norms / radius - 1.0) < _NORM_TOLERANCE).all():
        return
    dim = len(values[0])
    difference = np.subtract(*(side @ side.T / side.shape[1] for side in values)) / radius
    weights, directions = np.linalg.eigh(difference)
    # Twice the largest eigenvalue that chance alone gives for two samples of uniform directions.
    largest = 4.0 * math.sqrt(2.0 / (size * (dim + 2.0)))
    weights = np.where(np.abs(weights) > largest, weights, 0.0)
    if not weights.any():
        return
    form = (directions * weights) @ directions.T
    first, second = np.triu_indices(dim)
    terms = form[first, second] * np.where(first == second, 1.0, 2.0)
    scales = np.full(dim, math.sqrt(radius))
    yield ValueProducts(frame.entries, np.zeros(dim), scales, first, second, terms)


def _invert_with_eigenvalue_floor(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.maximum(values, _MIN_EIGENVALUE)) @ vectors.T)


def _make_product_score(frame: Frame, first: Ints, second: Ints, weights: Floats) -> ValueProducts:
    used, (one, other) = _columns_and_reindexed_pairs(first, second)
    centres, scales = frame.centres[used], frame.scales[used]
    return ValueProducts(frame.entries[used], centres, scales, one, other, weights)
