"""Attack on the residues of whole numbers modulo 2 to 16, such as even and odd.

Suppose that a mechanism returns even numbers on input x and odd numbers on input x'. Even and odd
numbers lie next to each other. Therefore thresholds, bins and moments do not distinguish x from x'.
A table with the count of each number distinguishes x from x' only if there are few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from ..errors import flag, integer, invalid
from ..events.event import Score
from ..records import Array, Floats, Ints, Rows, set_fields
from . import arrays
from .arrays import Merged, has_few_distinct_rows, read_numbers
from .attack import NumericAttack
from .ratios import log_ratios, to_fixed_point, weigh_bins
from .threshold import Special

MODULI: Final = tuple(range(2, 17))
_COMMON_MULTIPLE: Final = 720720
"""A multiple of all moduli. The residue modulo this number determines all other residues."""
_COUNTED_NUMBERS: Final = 2**18
_COUNTED_ROWS: Final = (2**12, 2**15)
"""Smallest and largest number of rows, on x and also on x', whose residues are counted."""
_MAX_RESIDUE_COLUMNS: Final = 64
_MIN_COLUMN_RANGE: Final = 64
"""Least range of a column. For shorter ranges, other scores have one bin for each number."""
_MIN_WHOLE_SHARE: Final = 0.5
"""Least share of whole numbers in a column. The other entries may be infinities and NaN."""
_MAX_RESIDUE_SCORES: Final = 3
_NEGATIVE_LOG_CHANCE: Final = 16.0
"""Minus the logarithm of the probability that a modulus without information is chosen by chance."""
_MODULUS_MARGIN: Final = 1.05
"""Factor by which a larger modulus must be more informative than a smaller one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidueRatio(Merged, word="ResidueRatio"):
    """A score of an output y: the log-likelihood ratio of the residues of its entries modulo m.

    The score is ``sum_i weights[i, y_i mod m]`` over the given entries. If `summed` is True, the
    score is ``weights[0, (sum_i y_i) mod m]``. Entries that are not integers, and floats with a
    magnitude of 2^53 or more, are left out of both sums. Residues are from 0 to m - 1, also for
    negative numbers.

    Args:
        modulus: modulus m, from 2 to 16.
        entries: indices of the output's entries that the score reads, counted from 0. If `summed`
            is True, an empty array means all entries.
        weights: weight of each residue, shape `(entries, modulus)`. The shape is `(1, modulus)` if
            `summed` is True.
        summed: True if the score uses the residue of the sum of the entries.

    Raises:
        TypeError: if `modulus` is not an integer or `summed` is not a bool.
        ValueError: if `modulus` is out of range, or the shapes do not match.

    Source:
        Neyman and Pearson (1933), on the likelihood ratio.

    Example:
        >>> score = ResidueRatio(2, [0], [[1.0, -1.0]])
        >>> score(np.array([[4], [-3], [0]])).tolist()
        [1.0, -1.0, 1.0]
        >>> print(score)
        log-likelihood ratio of entry 0 modulo 2
    """

    modulus: int
    entries: Ints
    weights: Floats
    summed: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only and check that their shapes match."""
        weights = to_fixed_point(np.asarray(self.weights, np.float64))
        set_fields(self, modulus=integer("modulus", self.modulus, 2, MODULI[-1]), weights=weights)
        flag("summed", self.summed)
        arrays.freeze_arrays(self)
        entries, weights = self.entries, self.weights
        if entries.ndim != 1 or (entries.size == 0 and not self.summed) or (entries < 0).any():
            raise invalid("entries", "places counted from 0", self.entries)
        shape = (1 if self.summed else entries.size, self.modulus)
        if weights.shape != shape or not np.isfinite(weights).all():
            raise invalid("weights", f"finite and of shape {shape}", self.weights)

    @property
    def cost(self) -> int:
        """Approximate time to compute the score of one output, in nanoseconds."""
        return 20 * max(1, int(self.entries.size))

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of `size` outputs, shape `(size,)`. A score is never NaN."""
        rows = read_numbers(outputs, min_columns=self.entries.max(initial=-1) + 1)
        scores = np.empty(len(rows))
        # Entries that are not whole numbers have residue -1: they get weight 0.
        weights = np.pad(self.weights, ((0, 0), (0, 1)))
        for part in arrays.chunk_slices(rows):
            read = rows[part][:, self.entries] if self.entries.size else rows[part]
            residues = residues_of(read, self.modulus)
            if self.summed:
                residues = np.maximum(residues, 0).sum(axis=1, keepdims=True) % self.modulus
            # Weights are multiples of 2^-20: their sum is exact in any order.
            scores[part] = weights[np.arange(residues.shape[1]), residues].sum(axis=1)
        return scores

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        if self.summed:
            return f"log-likelihood ratio of the sum of the entries modulo {self.modulus}"
        if self.entries.size == 1:
            return f"log-likelihood ratio of entry {self.entries[0]} modulo {self.modulus}"
        return f"log-likelihood ratio of {self.entries.size} entries modulo {self.modulus}"


def residues_of(rows: Array, modulus: int) -> Ints:
    """Return the remainder of each number after division by `modulus`, from 0 to modulus - 1.

    Args:
        rows: array of bools, integers or floats.
        modulus: the modulus, at least 2.

    Returns:
        The remainders, in the shape of `rows`. The result is -1 for numbers that are not integers,
        and for floats with a magnitude of 2^53 or more.
    """
    if rows.dtype.kind == "f":
        whole = arrays.flag_integers_below_2_to_53(rows)
        if not whole.all():
            residues = np.remainder(np.where(whole, rows, 0.0), modulus).astype(np.int64)
            return np.where(whole, residues, -1)
    if rows.dtype.kind == "u" and rows.dtype.itemsize == 8:
        return np.remainder(rows, np.uint64(modulus)).astype(np.int64)
    # An integer holds a float below 2^53 exactly, and its remainder is faster.
    return np.remainder(rows.astype(np.int64, copy=False), np.int64(modulus))


@dataclass(frozen=True, slots=True, repr=False)
class Residues(NumericAttack):
    """Attack on the residues of whole numbers modulo 2 to 16, such as even and odd.

    The attack uses the pilot: the first draws on the two inputs x and x'. For each modulus and each
    column (entry of the output), the attack counts how often each residue occurs. If a chi-squared
    test finds that the counts on x and x' differ, the log ratios of these counts give a score. The
    attack makes up to three scores:

    - one for the most informative column;
    - one for all informative columns together;
    - one for the sum of all columns.

    The attack uses the smallest modulus that is about as informative as the best modulus. The
    attack applies to integers, and to floats if all finite values in the pilot are integers. For
    the first two scores, the attack reads at most 64 columns. They are the first columns with a
    difference of at least 64 between the largest and the smallest number. The attack does not make
    scores if whole outputs repeat often, because other attacks then count how often each output
    occurs.

    Source:
        Neyman and Pearson (1933), on the likelihood ratio. Pearson (1900), on the chi-squared test.

    Example:
        >>> import dpcore
        >>> def even(x, size, rng):
        ...     odd = (rng.random((size, 1)) < 0.1) ^ bool(x[0])
        ...     return 2 * rng.integers(-10**6, 10**6, (size, 1)) + odd
        >>> pair = dpcore.Pair([0.0], [1.0])
        >>> report = dpcore.audit(
        ...     even, pair, attack=Residues(), trials=10**5, claim=1.0, rng=1
        ... )
        >>> report.verdict, 2.1 < report.epsilon_lower < 2.1973
        ('refuted', True)
    """

    fallback: ClassVar[tuple[Score, ...]] = (Special("nan"),)

    def make_scores(self, rows: Rows, rows_prime: Rows) -> list[Score]:
        """Fit at most three scores on the pilot outputs (first draws) on x and on x'.

        A residue is the remainder of an entry of an output modulo a number. The list is empty if
        the difference between the residues on x and on x' can be due to chance.
        """
        most = int(np.clip(_COUNTED_NUMBERS // rows.shape[1], *_COUNTED_ROWS))
        sides = [rows[:most], rows_prime[:most]]
        if not all(map(_is_whole_where_finite, sides)) or has_few_distinct_rows(*sides):
            return []
        scores: list[tuple[float, ResidueRatio]] = []
        wide = _find_wide_columns(sides)
        if wide.size:
            residues = [residues_of(side[:, wide], _COMMON_MULTIPLE) for side in sides]
            scores += _divergences_and_scores(residues, wide)
        if rows.shape[1] > 1:
            best = _near_best_modulus([_row_sum_residues(side) for side in sides])
            if best.total_divergence > 0.0:
                every, weights = np.zeros(0, dtype=np.int64), best.shrink_log_ratios()
                score = ResidueRatio(best.modulus, every, weights, summed=True)
                scores.append((best.total_divergence, score))
        scores.sort(key=lambda item: -item[0])
        return [score for _, score in scores[:_MAX_RESIDUE_SCORES]]


def _is_whole_where_finite(rows: Array) -> bool:
    """Return True if all finite numbers are whole, and at least half of all entries are whole."""
    if rows.dtype.kind != "f":
        return True
    for part in (rows[:64], rows):
        whole = residues_of(part, 2) >= 0
        if not (whole | ~np.isfinite(part)).all() or whole.mean() < _MIN_WHOLE_SHARE:
            return False
    return True


def _find_wide_columns(sides: list[Array]) -> Ints:
    """Return the first columns, at most 64, whose largest and smallest numbers differ by >= 64."""
    with np.errstate(invalid="ignore"):
        lows = [np.fmin.reduce(side, axis=0).astype(np.float64) for side in sides]
        highs = [np.fmax.reduce(side, axis=0).astype(np.float64) for side in sides]
        reach = np.maximum(*highs) - np.minimum(*lows)
    return np.flatnonzero(reach >= _MIN_COLUMN_RANGE)[:_MAX_RESIDUE_COLUMNS]


def _row_sum_residues(rows: Array) -> Ints:
    """Return for each row a number with the same residues as the row's sum, shape `(size, 1)`."""
    if rows.dtype.kind == "f" or rows.dtype.itemsize == 8:
        rows = np.maximum(residues_of(rows, _COMMON_MULTIPLE), 0)
    # A sum below 0 also has a residue, but -1 means that there is none.
    return residues_of(rows.sum(axis=1, keepdims=True, dtype=np.int64), _COMMON_MULTIPLE)


def _divergences_and_scores(sides: list[Ints], wide: Ints) -> Iterator[tuple[float, ResidueRatio]]:
    """Yield a score of all informative columns, and a score of the most informative column.

    With each score, yield the divergence between x and x' that is estimated from its columns.
    """
    best = _near_best_modulus(sides)
    telling = best.worth > 0.0
    for used in {int(telling.sum()): telling, 1: best.worth == best.worth.max()}.values():
        if telling[used].all() and used.any():
            weights = best.shrink_log_ratios()[used]
            yield float(best.worth[used].sum()), ResidueRatio(best.modulus, wide[used], weights)


def _near_best_modulus(sides: list[Ints]) -> _ResidueCounts:
    """Return the counts for the smallest modulus that is about as informative as the best modulus.

    A multiple of a modulus is at least as informative as the modulus. Therefore a larger modulus is
    taken only if its divergence is more than 5 % larger.
    """
    tables = [_ResidueCounts.of(sides, modulus) for modulus in MODULI]
    most = max(table.total_divergence for table in tables)
    return next(table for table in tables if table.total_divergence * _MODULUS_MARGIN >= most)


@dataclass(frozen=True, slots=True)
class _ResidueCounts:
    """Counts of each residue in each column of the pilot outputs.

    Args:
        modulus: the modulus.
        k: number of outputs on x with each residue, shape `(columns, modulus)`.
        k_prime: number of outputs on x' with each residue, shape `(columns, modulus)`.
        worth: for each column, the estimated KL divergence from x to x' plus the one from x' to x,
            shape `(columns,)`. The expected contribution of chance is subtracted. The value is 0 if
            a chi-squared test does not find a difference.
    """

    modulus: int
    k: Floats
    k_prime: Floats
    worth: Floats

    @classmethod
    def of(cls, sides: list[Ints], modulus: int) -> _ResidueCounts:
        """Count residues modulo `modulus` on x and on x'.

        `sides` holds residues modulo a multiple of `modulus`, shape `(size, columns)`.
        """
        k, k_prime = (_count_residues_by_column(side, modulus) for side in sides)
        n, n_prime = (np.maximum(side.sum(axis=1, keepdims=True), 1.0) for side in (k, k_prime))
        ratios, variances = log_ratios(k, k_prime, n, n_prime)
        freedom = modulus - 1
        # Laurent and Massart (2000), lemma 1: the tail of the chi-square law.
        spread = np.sqrt(_NEGATIVE_LOG_CHANCE * freedom)
        chance = freedom + 2.0 * spread + 2.0 * _NEGATIVE_LOG_CHANCE
        beyond = (ratios**2 / variances).sum(axis=1) > chance
        worth = ((k / n - k_prime / n_prime) * ratios - (1.0 / n + 1.0 / n_prime)).sum(axis=1)
        return cls(modulus, k, k_prime, np.where(beyond, np.maximum(worth, 0.0), 0.0))

    @property
    def total_divergence(self) -> float:
        """Sum of the estimated divergences of all columns."""
        return float(self.worth.sum())

    def shrink_log_ratios(self) -> Floats:
        """Return the log ratios of the counts, shrunk towards 0, shape `(columns, modulus)`."""
        n, n_prime = (side.sum(axis=1, keepdims=True) for side in (self.k, self.k_prime))
        return weigh_bins(self.k, self.k_prime, n, n_prime, None)


def _count_residues_by_column(residues: Ints, modulus: int) -> Floats:
    """Return the count of each residue in each column. Entries with residue -1 are not counted."""
    columns = residues.shape[1]
    flat = residues % modulus + modulus * np.arange(columns)
    counts = np.bincount(flat[residues >= 0], minlength=modulus * columns)
    return counts.reshape(columns, modulus).astype(np.float64)
