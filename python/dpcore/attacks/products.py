"""Attacks on pairs of columns: products of their signs and of their centred values.

Each column by itself may have one law on both sides while two of them agree on x and disagree on
x': a bit that is the exclusive or of another and of the secret, noise that is shared. No sum over
columns sees that. Second moments of all pairs show it, at the price of one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..events.above import Score
from ..records import Pair
from .arrays import Array, Floats, Whole
from .attack import ScoreAttack
from .scores.columns import both, has_frequent_rows
from .scores.quadratic import (
    MOST_COLUMNS,
    Frame,
    Moments,
    SignProducts,
    ValueProducts,
    centre_columns,
    frame_of,
    signs_of,
)
from .scores.rows import Special

_ELEMENTS: Final = 2**20
_ROWS: Final = (2**13, 2**16)
"""Numbers a side from which moments are taken; at least and at most so many rows."""
_CUT: Final = 4.0
"""Centred values are cut off here for the moments, so that rare ones do not hide the rest."""
_MOST_TERMS: Final = 256
_MOST_IN_TRIPLES: Final = 32
"""Columns whose products of three are compared."""
_EVIDENCE_OF_TRIPLES: Final = 5.5
"""Standard errors by which a product of three must differ: one pilot in 5,000 has one by chance."""
_MOST_JOINT: Final = 20
"""Columns of the quadratic form of all telling pairs together."""
_LEAST_SPREAD: Final = 1e-3
"""Least eigenvalue of a matrix of moments before it is inverted."""


@dataclass(frozen=True, slots=True, repr=False)
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

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """The scores that the pilot suggests, or one that says nothing.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on (not used).

        Returns:
            What `telling` finds; the number of NaN where that is nothing, which certifies 0; none
            where the attack does not apply.
        """
        rows = both(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < 2:
            return ()
        return self.telling(outputs, outputs_prime) or (Special("nan"),)

    def telling(self, outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
        """The scores that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.

        Returns:
            At most six scores; none where no pair of columns tells the sides apart.
        """
        rows = both(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < 2 or has_frequent_rows(*rows):
            return ()
        frame = frame_of(*rows)
        if frame.entries.size < 2:
            return ()
        width = rows[0].shape[1]
        most = min(max(_ELEMENTS // width, _ROWS[0]), _ROWS[1])
        columns = [side[:most][:, frame.entries].T for side in rows]
        found: list[Score] = [*_of_signs(columns, frame), *_of_triples(columns, frame)]
        if frame.many.any():
            found += _of_values(columns, frame)
        return tuple(found)


def _of_signs(columns: list[Array], frame: Frame) -> list[SignProducts]:
    """The product of the best pair of signs, and the weighted sum of all that tell."""
    sides = [signs_of(side.T, frame.cuts).T for side in columns]
    moments = Moments.of(*sides)
    first, second = moments.telling()
    found = []
    for size in {1, first.size} if first.size else ():
        i, j = first[:size], second[:size]
        odds, odds_prime = map(_log_odds, (moments.on_x[i, j], moments.on_x_prime[i, j]), sides)
        weights = np.ones(1) if size == 1 else 0.5 * (odds - odds_prime)
        used, (one, other) = _used(i, j)
        found.append(SignProducts(frame.entries[used], frame.cuts[used], one, other, weights))
    return found


def _of_triples(columns: list[Array], frame: Frame) -> list[SignProducts]:
    """Return the product of three signs whose mean differs most, where that is beyond chance."""
    most = frame.entries.size
    if not 3 <= most <= _MOST_IN_TRIPLES:
        return []
    sides = [signs_of(side.T, frame.cuts).T for side in columns]
    # Around their means: signs that depend on the input one by one have no joint moment.
    sides = [side - side.mean(axis=1, keepdims=True) for side in sides]
    peaks = np.max([np.abs(side).max(axis=1) for side in sides], axis=0)
    # Bernstein (1924): what a few outputs may add where a sign is rare.
    room = _EVIDENCE_OF_TRIPLES / (3.0 * min(side.shape[1] for side in sides))
    evidence = np.zeros((most, most, most))
    for i in range(most):
        means = [(side * side[i]) @ side.T / side.shape[1] for side in sides]
        squares = [(side * side[i]) ** 2 @ (side * side).T / side.shape[1] for side in sides]
        errors = [
            np.maximum(square - mean * mean, 1.0 / side.shape[1]) / side.shape[1]
            for mean, square, side in zip(means, squares, sides, strict=True)
        ]
        noise = np.sqrt(errors[0] + errors[1]) + room * peaks[i] * np.outer(peaks, peaks)
        evidence[i] = np.triu((means[0] - means[1]) / noise, 1)
        evidence[i, : i + 1] = 0.0
    place = int(np.argmax(np.abs(evidence)))
    if abs(evidence.flat[place]) <= _EVIDENCE_OF_TRIPLES:
        return []
    used = np.array(np.unravel_index(place, evidence.shape))
    first, second, third = np.arange(3)[:, np.newaxis]
    return [SignProducts(frame.entries[used], frame.cuts[used], first, second, np.ones(1), third)]


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


def _of_values(columns: list[Array], frame: Frame) -> list[ValueProducts]:
    """The product and the likelihood ratio of the best pair; then those of all that tell."""
    sides = [centre_columns(side, frame.centres, frame.scales, _CUT) for side in columns]
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
