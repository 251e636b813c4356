"""A linear discriminant: the direction in which the sides differ most for their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import _core
from ..errors import invalid
from ..events.above import Score
from ..records import Pair, Record
from .arrays import Array, Floats, Whole, freeze_arrays
from .attack import ScoreAttack
from .choosing.grains import Grain, summed
from .scores.columns import both, chunk_slices, has_frequent_rows, numbers

__all__ = ["Discriminant", "LinearScore"]

_MOST_COLUMNS: Final = 512
_PRODUCTS: Final = 2**32
"""Products that a side's moments may take; at least `_FEWEST_ROWS` rows."""
_FEWEST_ROWS: Final = 2**12
_SHRINKAGES: Final = (1e-1, 1e-3, 1e-6, 1e-9)
"""Added to the variances, as shares of the mean variance. The last one finds shifts in which there
is no noise; 2 % turns a bound of 9.5 into 0 there."""
_KEPT: Final = 2
"""Discriminants that go on to the choice of the event."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearScore(Record, word="LinearScore"):
    """A weighted sum of entries: ``sum_i weights[i] (y[entries[i]] - centres[i])``.

    NaN adds 0.

    Args:
        entries: entries of the output that are read, counted from 0, shape `(read,)`.
        centres: in the units of the outputs, shape `(read,)`.
        weights: shape `(read,)`.

    Raises:
        ValueError: if the arrays differ in length or hold numbers that are not finite.

    Source:
        Fisher (1936), Annals of Eugenics 7, the linear discriminant.

    Example:
        >>> score = LinearScore([0, 2], [0.0, 1.0], [1.0, 2.0])
        >>> score(np.array([[1.0, 9.0, 3.0], [np.nan, 9.0, 1.0]])).tolist()
        [5.0, 0.0]
        >>> print(score)
        weighted sum of entry 2 and entry 0
    """

    entries: Whole
    centres: Floats
    weights: Floats

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit."""
        freeze_arrays(self)
        for name in ("entries", "centres", "weights"):
            values = getattr(self, name)
            if values.ndim != 1 or values.shape != self.entries.shape or not values.size:
                raise invalid(name, f"of shape {self.entries.shape}, not empty", values.shape)
            if not np.isfinite(values).all():
                raise invalid(name, "finite", values)

    @property
    def cost(self) -> int:
        """Nanoseconds per output on a usual machine, about."""
        return 30 + int(self.entries.size)

    def rounding(self, grains: tuple[Grain, ...]) -> Grain:
        """Return what the entries' own rounding can move the sum by."""
        return summed([grains[i] for i in self.entries.tolist()], self.weights)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, shape `(size,)`; never NaN."""
        rows = numbers(outputs, least=self.entries.max() + 1)
        scores = np.zeros(len(rows))
        half = 0.5 * self.weights
        for part in chunk_slices(rows):
            values = np.array(rows[part][:, self.entries], dtype=np.float64, order="C")
            values -= self.centres
            values[np.isnan(values)] = 0.0
            # The kernel for Gaussian noise is such a sum; each row is added up by itself.
            _core.score_closer(values, half, -half, "l2", scores[part])
        return scores

    def __str__(self) -> str:
        """Return one line for a report, with the three heaviest entries."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:3]
        names = [f"entry {self.entries[i]}" for i in order]
        if self.entries.size <= 2:
            return f"weighted sum of {' and '.join(names)}"
        return f"weighted sum of {self.entries.size} entries, heaviest {', '.join(names)}"


@dataclass(frozen=True, slots=True, repr=False)
class Discriminant(ScoreAttack):
    """Linear discriminants of at most 512 columns, with several shrinkages of their covariance.

    It finds shifts that no single column shows: noise that columns share, noise that leaves a
    direction free. The weights are ``(S + s v I)^-1 (m - m')`` with the covariance S of both
    sides around their own means, its mean variance v, the means m and m' and shrinkages s down to
    1e-9, in the columns and in their differences. Half of the training draws choose the two that go
    on. It does not apply to outputs that are not numbers or have fewer than two columns that vary.

    Source:
        Fisher (1936), Annals of Eugenics 7; Friedman (1989), Journal of the American Statistical
        Association 84, for the shrinkage.

    Example:
        >>> import dpcore
        >>> def shared(x, size, rng):
        ...     noise = rng.normal(size=(size, 1)) + [0.0, 0.0]
        ...     return noise + rng.laplace(scale=0.5, size=(size, 2)) + np.outer(np.ones(size), x)
        >>> pair = dpcore.Pair([0.0, 0.0], [1.0, 0.0])
        >>> report = dpcore.audit(
        ...     shared, pair, attack=Discriminant(), trials=10**5, claim=0.5, rng=1
        ... )
        >>> report.verdict
        'refuted'
    """

    @np.errstate(over="ignore", invalid="ignore")
    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on (not used).

        Returns:
            At most two scores; none where the attack does not apply.
        """
        rows = both(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < 2 or has_frequent_rows(*rows):
            return ()
        width = min(rows[0].shape[1], _MOST_COLUMNS)
        most = max(_FEWEST_ROWS, _PRODUCTS // width**2)
        entries, sides = _columns_that_vary([side[:most] for side in rows])
        if entries.size < 2 or min(map(len, sides)) < 8:
            return ()
        fit, rest = [side[::2] for side in sides], [side[1::2] for side in sides]
        ways = [_weights(fit, shrinkage, way) for way in (False, True) for shrinkage in _SHRINKAGES]
        order = np.argsort([-_separation(rest, weights) for weights in ways], kind="stable")
        centres = np.concatenate([side.mean(axis=0, keepdims=True) for side in sides]).mean(axis=0)
        best = [divmod(int(i), len(_SHRINKAGES)) for i in order[:_KEPT]]
        made = [_weights(sides, _SHRINKAGES[place], bool(way)) for way, place in best]
        return tuple(LinearScore(entries, centres, one) for one in made if np.abs(one).max() > 0.0)


def _columns_that_vary(sides: list[Array]) -> tuple[Any, list[Floats]]:
    """Return columns that vary, of many those whose means differ most, with NaN at the mean."""
    made = []
    for side in sides:
        values = np.array(side, dtype=np.float64)
        values[~np.isfinite(values)] = np.nan
        held = np.maximum(np.count_nonzero(~np.isnan(values), axis=0), 1)
        means = np.nansum(values, axis=0) / held
        made.append(np.where(np.isnan(values), means, values))
    spread = made[0].var(axis=0) + made[1].var(axis=0)
    shift = np.abs(made[0].mean(axis=0) - made[1].mean(axis=0))
    # The squares of numbers near the end of the range of doubles are infinite.
    entries = np.flatnonzero(np.isfinite(spread + shift) & ((spread > 0.0) | (shift > 0.0)))
    if entries.size > _MOST_COLUMNS:
        merits = shift[entries] / np.sqrt(np.maximum(spread[entries], 1e-300))
        entries = np.sort(entries[np.argsort(-merits, kind="stable")[:_MOST_COLUMNS]])
    return entries, [np.ascontiguousarray(side[:, entries]) for side in made]


def _weights(sides: list[Floats], shrinkage: float, differences: bool) -> Floats:
    """Return the weights of one discriminant, of length 1 in units of the columns' spread."""
    shift = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0))
    scale = np.sqrt(sum(side.var(axis=0) for side in sides))
    # A column that is constant on each side is as wide as its shift.
    scale = np.where(scale > 0.0, scale, np.where(shift > 0.0, shift, 1.0))
    moved = [side / scale for side in sides]
    if differences:
        moved = [np.diff(side, axis=1, prepend=0.0) for side in moved]
    means = [side.mean(axis=0) for side in moved]
    total = np.zeros((means[0].size, means[0].size))
    for side, mean in zip(moved, means, strict=True):
        centred = side - mean
        total += centred.T @ centred / len(side)
    total[np.diag_indices_from(total)] += shrinkage * max(
        float(np.trace(total)) / len(total), 1e-300
    )
    weights: Floats = np.linalg.solve(total, means[0] - means[1])
    if differences:
        # A sum over differences as one over columns.
        weights = weights - np.append(weights[1:], 0.0)
    size = float(np.abs(weights).max())
    found: Floats = weights / (size if size > 0.0 else 1.0) / scale
    return found


def _separation(sides: list[Floats], weights: Floats) -> float:
    """Return the distance of the two means of a weighted sum, in standard deviations."""
    values = [side @ weights for side in sides]
    spread = sum(float(one.var()) for one in values)
    apart = abs(float(values[0].mean()) - float(values[1].mean()))
    return float(apart / (spread**0.5 + 1e-12 * apart + 1e-300))
