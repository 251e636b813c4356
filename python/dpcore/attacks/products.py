"""What pairs of columns say together: products of their signs and of their centred values.

Each column by itself may have one law on both sides while two of them agree on x and disagree on
x': a bit that is the exclusive or of another and of the secret, noise that is shared. No sum over
columns sees that. Second moments of all pairs show it, at the price of one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..events.above import Score
from ..records import Pair
from ._choosing import ScoreAttack
from ._columns import Floats, both, tolerance_of
from ._familiar import familiar
from ._quadratic import SignProducts, ValueProducts, Whole, centred, signs_of

Rows = npt.NDArray[Any]

MOST_COLUMNS: Final = 64
_ELEMENTS: Final = 2**20
_ROWS: Final = (2**13, 2**16)
"""Numbers a side from which moments are taken; at least and at most so many rows."""
_CENTRED_ROWS: Final = 2**11
"""Rows a side from which centres and scales are taken."""
_EVIDENCE: Final = 5.0
"""Standard errors by which a moment must differ: of 4,000 moments that do not, one in 400 pilots
has one that does."""
_CUT: Final = 4.0
"""Centred values are cut off here for the moments, so that rare ones do not hide the rest."""
_MOST_TERMS: Final = 256
_MOST_JOINT: Final = 20
"""Columns of the quadratic form of all telling pairs together."""
_LEAST_SPREAD: Final = 1e-3
"""Least eigenvalue of a matrix of moments before it is inverted."""
_SHARE: Final = 0.381966011250105
"""Where a sign changes in its gap: at no simple fraction, where an unseen atom may sit."""
_LINK, _WIDEST = 4.0, 32.0
"""As for atoms: gaps have so many tolerances, and a wider cluster is a continuum."""
_NORMAL: Final = 1.349
"""The quartiles of a normal law are so many standard deviations apart."""


@dataclass(frozen=True, slots=True)
class Products(ScoreAttack):
    """Products of the signs, and of the centred values, of all pairs of at most 64 columns.

    Second moments of the signs around each column's median, and of the values less the median in
    units of their spread, are compared between the sides. From the pairs that differ by 5
    standard errors come the scores: the product of the most telling pair, the log-likelihood
    ratio of normal laws with that pair's moments (for a correlated pair, mostly the square of the
    difference of the two), and, where several pairs tell, weighted sums over all of them. Only
    moments of second order: what takes three columns to see is not seen.

    Of more than 64 columns that vary, 32 evenly spaced ones and the neighbour of each are taken.
    NaN adds 0 to every score. The attack does not apply to outputs that are not numbers, have
    fewer than two columns that vary, or so few patterns that `Additive` knows each by itself.

    Source:
        Neyman and Pearson (1933) for the likelihood ratio; Besag (1975), The Statistician 24,
        for the sum over pairs in place of the whole.

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

    def candidates(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any], pair: Pair
    ) -> tuple[Score, ...]:
        """The scores that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on (not used).

        Returns:
            At most six scores; none where no pair of columns tells the sides apart.
        """
        rows = both(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < 2 or familiar(*rows):
            return ()
        frame = _frame(*rows)
        if frame.entries.size < 2:
            return ()
        width = rows[0].shape[1]
        most = min(max(_ELEMENTS // width, _ROWS[0]), _ROWS[1])
        columns = [side[:most][:, frame.entries].T for side in rows]
        found: list[Score] = list(_of_signs(columns, frame))
        if frame.many.any():
            found += _of_values(columns, frame)
        return tuple(found)


class Frame(NamedTuple):
    """The columns that are compared.

    Args:
        entries: their places in an output.
        cuts: where their signs change.
        centres: their medians.
        scales: their spreads, above 0.
        many: which have more than two values.
    """

    entries: Whole
    cuts: Floats
    centres: Floats
    scales: Floats
    many: npt.NDArray[np.bool_]


def _frame(rows: Rows, rows_prime: Rows) -> Frame:
    """The columns that vary, at most 64, and their places and spreads."""
    some = np.concatenate([rows[:_CENTRED_ROWS], rows_prime[:_CENTRED_ROWS]])
    entries = np.flatnonzero((some != some[:1]).any(axis=0))
    if entries.size > MOST_COLUMNS:
        # Columns that depend on each other are neighbours more often than not.
        starts = np.linspace(0, entries.size - 2, MOST_COLUMNS // 2).astype(np.int64)
        entries = np.unique(entries[np.concatenate([starts, starts + 1])])
    kept, found = [], []
    for entry in entries:
        made = _centre(some[:, entry], tolerance_of(some[:, entry]))
        if made is not None:
            kept.append(int(entry))
            found.append(made)
    cuts, centres, scales, many = np.array(found, dtype=np.float64).reshape(-1, 4).T
    return Frame(np.array(kept, dtype=np.int64), cuts, centres, scales, many > 0.0)


def _centre(values: Rows, slack: float) -> tuple[float, float, float, float] | None:
    """Where the sign changes, median, spread, 1 for more than two values; None for a constant."""
    known = np.sort(values.astype(np.float64))
    known = known[np.isfinite(known)]
    gaps = np.flatnonzero(np.diff(known) > _LINK * slack)
    if gaps.size == 0 and (known.size == 0 or known[-1] - known[0] <= _WIDEST * slack):
        return None
    middle = float(known[known.size // 2])
    quartiles = known[[known.size // 4, 3 * known.size // 4]]
    spread = float(quartiles[1] - quartiles[0]) / _NORMAL
    # A column that is mostly one value has quartiles that agree.
    scale = spread if spread > _WIDEST * slack else float(np.std(known - middle))
    many = float(gaps.size > 1 or (known[-1] - known[0] > 0.0 and gaps.size == 0))
    return (_cut(known, gaps, slack), middle, scale, many) if np.isfinite(scale) else None


def _cut(known: Floats, gaps: npt.NDArray[np.intp], slack: float) -> float:
    """The gap nearest to the median: rounding never carries a value across it."""
    middle = known.size // 2
    ends = np.concatenate([[-1], gaps, [known.size - 1]])
    place = int(np.searchsorted(ends, middle))
    first, last = known[ends[place - 1] + 1], known[ends[place]]
    if gaps.size == 0 or last - first > _WIDEST * slack:
        # The tolerance of a scale that this column does not have: no gap is near its median.
        return float(known[middle])
    gap = gaps[np.argmin(np.abs(gaps + 1 - known.size / 2))]
    return float(known[gap] + _SHARE * (known[gap + 1] - known[gap]))


class Moments(NamedTuple):
    """Covariances of all pairs of columns, on x and on x', and how they differ.

    Around each side's own means: where columns are independent on both sides, however far apart
    the sides are, nothing differs, and nothing is left to see that sums over columns do not.

    Args:
        on_x: shape `(columns, columns)`.
        on_x_prime: the same on x'.
        evidence: standard errors between them, 0 on the diagonal.
    """

    on_x: Floats
    on_x_prime: Floats
    evidence: Floats

    @classmethod
    def of(cls, values: Floats, values_prime: Floats) -> Moments:
        """The moments of columns, shape `(columns, size)`, one matrix product a side and power."""
        means, errors = [], []
        for side in (values, values_prime):
            # In single precision: half the time, and far finer than the standard error.
            single = side.astype(np.float32)
            single -= single.mean(axis=1, keepdims=True)
            mean = (single @ single.T).astype(np.float64) / side.shape[1]
            square = single * single
            second = (square @ square.T).astype(np.float64) / side.shape[1]
            means.append(mean)
            # Of a moment that seems certain, one more product is taken to be against it.
            least = 1.0 / side.shape[1]
            errors.append(np.maximum(second - mean * mean, least) / side.shape[1])
        evidence = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
        np.fill_diagonal(evidence, 0.0)
        return cls(means[0], means[1], evidence)

    def telling(self) -> tuple[Whole, Whole]:
        """Pairs that differ beyond chance, the most telling ones first."""
        size = np.abs(np.triu(self.evidence, 1))
        order = np.argsort(-size, axis=None, kind="stable")
        order = order[: np.count_nonzero(size > _EVIDENCE)]
        first, second = np.unravel_index(order, size.shape)
        return first.astype(np.int64), second.astype(np.int64)


def _of_signs(columns: list[Rows], frame: Frame) -> list[SignProducts]:
    """The product of the best pair of signs, and the weighted sum of all that tell."""
    sides = [signs_of(side.T, frame.cuts).T for side in columns]
    moments = Moments.of(*sides)
    first, second = moments.telling()
    found = []
    for size in {1, first.size} if first.size else ():
        i, j = first[:size], second[:size]
        weights = _log_odds(moments.on_x[i, j], sides[0]) - _log_odds(
            moments.on_x_prime[i, j], sides[1]
        )
        weights = np.ones(1) if size == 1 else 0.5 * weights
        used, (one, other) = _used(i, j)
        found.append(SignProducts(frame.entries[used], frame.cuts[used], one, other, weights))
    return found


def _log_odds(mean: Floats, side: Floats) -> Floats:
    """Log odds that a product of signs is 1, from its mean; half a count is added to each."""
    size = side.shape[1]
    agree = 0.5 * (1.0 + mean) * size
    odds: Floats = np.log(agree + 0.5) - np.log(size - agree + 0.5)
    return odds


def _used(first: Whole, second: Whole) -> tuple[Whole, Whole]:
    """The columns that pairs need, and the pairs by their places among those."""
    used, places = np.unique(np.stack([first, second]), return_inverse=True)
    return used, places.reshape(2, -1)


def _of_values(columns: list[Rows], frame: Frame) -> list[ValueProducts]:
    """The product and the likelihood ratio of the best pair; then those of all that tell."""
    sides = [centred(side, frame.centres, frame.scales, _CUT) for side in columns]
    moments = Moments.of(*sides)
    first, second = moments.telling()
    if first.size == 0:
        return []
    made = [_form(frame, first[:1], second[:1], np.ones(1))]
    made.append(_ratio(frame, moments, _used(first[:1], second[:1])[0]))
    if first.size > 1:
        first, second = first[:_MOST_TERMS], second[:_MOST_TERMS]
        weights = moments.on_x[first, second] - moments.on_x_prime[first, second]
        made.append(_form(frame, first, second, weights))
        strength = np.abs(moments.evidence).max(axis=0)
        joint = np.intersect1d(np.union1d(first, second), np.argsort(-strength)[:_MOST_JOINT])
        made.append(_ratio(frame, moments, joint))
    return made


def _ratio(frame: Frame, moments: Moments, used: Whole) -> ValueProducts:
    """The log-likelihood ratio of normal laws with the moments of these columns."""
    inverses = [_inverse(side[np.ix_(used, used)]) for side in (moments.on_x, moments.on_x_prime)]
    form = 0.5 * (inverses[1] - inverses[0])
    first, second = np.triu_indices(used.size)
    # The form counts a pair of two columns twice.
    weights = form[first, second] * np.where(first == second, 1.0, 2.0)
    return _form(frame, used[first], used[second], weights)


def _inverse(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    inverse: Floats = (vectors / np.maximum(values, _LEAST_SPREAD)) @ vectors.T
    return inverse


def _form(frame: Frame, first: Whole, second: Whole, weights: Floats) -> ValueProducts:
    used, (one, other) = _used(first, second)
    centres, scales = frame.centres[used], frame.scales[used]
    return ValueProducts(frame.entries[used], centres, scales, one, other, weights)


__all__ = ["MOST_COLUMNS", "Products", "SignProducts", "ValueProducts"]
