"""Attacks on pairs of columns: products of their signs and of their centred values.

Each column by itself may have one law on both sides while two of them agree on x and disagree on
x': a bit that is the exclusive or of another and of the secret, noise that is shared. No sum over
columns sees that. Second moments of all pairs show it, at the price of one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from ..events.above import Score
from .arrays import Array, Floats, Whole
from .attack import NumericAttack
from .scores import quadratic
from .scores.columns import has_frequent_rows
from .scores.quadratic import MOST_COLUMNS, Frame, Moments, SignProducts, ValueProducts
from .scores.rows import Special

_MOMENT_NUMBERS: Final = 2**20
_MOMENT_ROWS: Final = (2**13, 2**16)
"""Numbers a side from which moments are taken; at least and at most so many rows."""
_CENTRED_VALUE_LIMIT: Final = 4.0
"""Centred values are cut off here for the moments, so that rare ones do not hide the rest."""
_MAX_PRODUCT_TERMS: Final = 256
_MAX_TRIPLE_COLUMNS: Final = 32
"""Columns whose products of three are compared."""
_TRIPLE_STANDARD_ERRORS: Final = 5.5
"""Standard errors by which a product of three must differ: one pilot in 5,000 has one by chance."""
_MAX_JOINT_COLUMNS: Final = 20
"""Columns of the quadratic form of all telling pairs together."""
_MIN_EIGENVALUE: Final = 1e-3
"""Least eigenvalue of a matrix of moments before it is inverted."""


@dataclass(frozen=True, slots=True, repr=False)
class Products(NumericAttack):
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

    least_columns: ClassVar[int] = 2
    fallback: ClassVar[tuple[Score, ...]] = (Special("nan"),)

    def make_scores(self, rows: Array, rows_prime: Array) -> Iterator[Score]:
        """Make at most six scores; none where no columns differ together between the sides."""
        if has_frequent_rows(rows, rows_prime):
            return
        frame = quadratic.frame_of(rows, rows_prime)
        if frame.entries.size < 2:
            return
        most = min(max(_MOMENT_NUMBERS // rows.shape[1], _MOMENT_ROWS[0]), _MOMENT_ROWS[1])
        columns = [side[:most][:, frame.entries].T for side in (rows, rows_prime)]
        yield from _multiply_signs(columns, frame)
        yield from _multiply_triples(columns, frame)
        if frame.many.any():
            yield from _multiply_values(columns, frame)


def _multiply_signs(columns: list[Array], frame: Frame) -> Iterator[SignProducts]:
    """Yield the product of the best pair of signs, and the weighted sum of all informative ones."""
    sides = [quadratic.signs_of(side.T, frame.cuts).T for side in columns]
    moments = Moments.of(*sides)
    first, second = moments.telling()
    for size in {1, first.size} if first.size else ():
        i, j = first[:size], second[:size]
        odds, odds_prime = map(_log_odds, (moments.on_x[i, j], moments.on_x_prime[i, j]), sides)
        weights = np.ones(1) if size == 1 else 0.5 * (odds - odds_prime)
        used, (one, other) = _renumber_columns(i, j)
        yield SignProducts(frame.entries[used], frame.cuts[used], one, other, weights)


def _multiply_triples(columns: list[Array], frame: Frame) -> Iterator[SignProducts]:
    """Yield the product of three signs whose mean differs most, where that is beyond chance."""
    most = frame.entries.size
    if not 3 <= most <= _MAX_TRIPLE_COLUMNS:
        return
    sides = [quadratic.signs_of(side.T, frame.cuts).T for side in columns]
    # Around their means: signs that depend on the input one by one have no joint moment.
    sides = [side - side.mean(axis=1, keepdims=True) for side in sides]
    sides = [np.ascontiguousarray(side, dtype=np.float32) for side in sides]
    peaks = np.max([np.abs(side).max(axis=1) for side in sides], axis=0)
    # Bernstein (1924): what a few outputs may add where a sign is rare.
    room = _TRIPLE_STANDARD_ERRORS / (3.0 * min(side.shape[1] for side in sides))
    evidence = np.zeros((most, most, most))
    for i in range(most - 2):
        rest = slice(i + 1, None)
        means, errors = [], []
        for side in sides:
            # In single precision, as `Moments`.
            product = side[rest] * side[i]
            mean = product @ side[rest].T / side.shape[1]
            square = (product * product) @ (side[rest] * side[rest]).T / side.shape[1]
            means.append(mean)
            errors.append(np.maximum(square - mean * mean, 1.0 / side.shape[1]) / side.shape[1])
        noise = np.sqrt(errors[0] + errors[1])
        noise += room * peaks[i] * np.outer(peaks[rest], peaks[rest])
        evidence[i, rest, rest] = np.triu((means[0] - means[1]) / noise, 1)
    place = int(np.argmax(np.abs(evidence)))
    if abs(evidence.flat[place]) > _TRIPLE_STANDARD_ERRORS:
        used = np.array(np.unravel_index(place, evidence.shape))
        first, second, third = np.arange(3)[:, np.newaxis]
        yield SignProducts(frame.entries[used], frame.cuts[used], first, second, np.ones(1), third)


def _log_odds(mean: Floats, side: Floats) -> Floats:
    """Return log odds that a product of signs is 1, from its mean; half a count is added."""
    size = side.shape[1]
    agree = 0.5 * (1.0 + mean) * size
    return np.asarray(np.log(agree + 0.5) - np.log(size - agree + 0.5))


def _renumber_columns(first: Whole, second: Whole) -> tuple[Whole, Whole]:
    """Return the columns that pairs need, and the pairs by their places among those."""
    used, places = np.unique(np.stack([first, second]), return_inverse=True)
    return used, places.reshape(2, -1)


def _multiply_values(columns: list[Array], frame: Frame) -> Iterator[ValueProducts]:
    """Yield the product and likelihood ratio of the best pair; then of all informative pairs."""
    sides = [
        quadratic.centre_columns(side, frame.centres, frame.scales, _CENTRED_VALUE_LIMIT)
        for side in columns
    ]
    moments = Moments.of(*sides)
    first, second = moments.telling()
    if first.size > 0:
        yield _sum_products(frame, first[:1], second[:1], np.ones(1))
        yield _likelihood_ratio(frame, moments, np.union1d(first[:1], second[:1]))
    if first.size > 1:
        first, second = first[:_MAX_PRODUCT_TERMS], second[:_MAX_PRODUCT_TERMS]
        weights = moments.on_x[first, second] - moments.on_x_prime[first, second]
        yield _sum_products(frame, first, second, weights)
        strength = np.abs(moments.evidence).max(axis=0)
        joint = np.intersect1d(
            np.union1d(first, second), np.argsort(-strength)[:_MAX_JOINT_COLUMNS]
        )
        yield _likelihood_ratio(frame, moments, joint)


def _likelihood_ratio(frame: Frame, moments: Moments, used: Whole) -> ValueProducts:
    """Return the log-likelihood ratio of normal laws with the moments of these columns."""
    sides = moments.on_x, moments.on_x_prime
    inverses = [_invert_matrix(side[np.ix_(used, used)]) for side in sides]
    form = 0.5 * (inverses[1] - inverses[0])
    first, second = np.triu_indices(used.size)
    # The form counts a pair of two columns twice.
    weights = form[first, second] * np.where(first == second, 1.0, 2.0)
    return _sum_products(frame, used[first], used[second], weights)


def _invert_matrix(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.maximum(values, _MIN_EIGENVALUE)) @ vectors.T)


def _sum_products(frame: Frame, first: Whole, second: Whole, weights: Floats) -> ValueProducts:
    used, (one, other) = _renumber_columns(first, second)
    centres, scales = frame.centres[used], frame.scales[used]
    return ValueProducts(frame.entries[used], centres, scales, one, other, weights)


__all__ = ["MOST_COLUMNS", "Products", "SignProducts", "ValueProducts"]
