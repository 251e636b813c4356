"""From answers to figures: thresholds, accuracy and F1 with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...bounds import limits
from ...records import Record
from .encoding import Vectors
from .targets import Codes, Target

__all__ = ["Judge", "Measured", "answers_of", "threshold_of"]

Ints = npt.NDArray[np.int64]

_REPLICATES: Final = 2000
_RESAMPLING: Final = 32
"""Names the stream of the bootstrap among those of a seed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Measured(Record):
    """A figure with its interval.

    Attributes:
        value: the figure.
        low: lower end of its interval.
        high: upper end of its interval.
        how: what made the interval.
    """

    value: float
    low: float
    high: float
    how: str

    def __str__(self) -> str:
        """The figure and its interval, four decimals."""
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def answers_of(scores: Vectors, threshold: float | None) -> Codes:
    """The codes that are answered: 1 for scores at or above the threshold, or the scores as codes.

    Example:
        >>> answers_of(np.array([[0.1], [0.7]]), 0.5).tolist()
        [[0], [1]]
    """
    return (scores if threshold is None else scores >= threshold).astype(np.int64)


def threshold_of(scores: Vectors, truth: Codes, measure: str) -> float:
    """The threshold with the best measure, one for all attributes; of equal ones the middle.

    It lies between two scores; minus infinity answers always yes, infinity never.

    Args:
        scores: of the positive value, shape (n, attributes).
        truth: 0 or 1, of the same shape.
        measure: "accuracy" or "f1".

    Example:
        >>> threshold_of(np.array([[0.125], [0.25], [0.75]]), np.array([[0], [0], [1]]), "accuracy")
        0.5
    """
    flat, wanted = scores.ravel(), truth.ravel()
    order = np.argsort(-flat, kind="stable")
    ordered, hits = flat[order], np.concatenate([[0], np.cumsum(wanted[order])])
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [flat.size]])
    right, said = hits[cuts].astype(np.float64), cuts.astype(np.float64)
    total = float(hits[-1])
    f1 = 2.0 * right / np.maximum(1.0, said + total)
    merit = f1 if measure == "f1" else 2.0 * right - said
    best = cuts[np.flatnonzero(merit == merit.max())]
    cut = int(best[len(best) // 2])
    if cut == 0:
        return np.inf
    if cut == flat.size:
        return -np.inf
    above, below = float(ordered[cut - 1]), float(ordered[cut])
    middle = below + (above - below) / 2.0
    # Of two neighbouring floats the middle may be the lower one, which must stay below.
    return middle if middle > below else above


@dataclass(frozen=True)
class Judge:
    """Compares answers with the truth on texts that nothing has been chosen on.

    Args:
        truth: codes, shape (n, attributes).
        target: what is inferred.
        measure: "accuracy" or "f1".
        confidence: of each interval by itself.
        seed: of the bootstrap.
    """

    truth: Codes
    target: Target
    measure: str
    confidence: float
    seed: int

    def value(self, answers: Codes) -> float:
        """The measure of some answers."""
        if self.measure == "accuracy":
            return float((answers == self.truth).mean())
        return float(_f1(self._cells(answers).sum(axis=0)))

    def accuracy(self, answers: Codes) -> Measured:
        """Share of right answers: of one attribute with exact limits, else the mean of several."""
        right = (answers == self.truth).sum(axis=1)
        if self.target.several:
            width = len(self.target.names)
            return self._resampled(right[:, np.newaxis], lambda sums: sums[..., 0] / width, True)
        k, n = int(right.sum()), len(right)
        return Measured(k / n, *limits(k, n, self._tail), "Clopper-Pearson")

    def f1(self, answers: Codes) -> Measured:
        """F1 of the positive value; micro over several attributes, macro over several values."""
        return self._resampled(self._cells(answers).reshape(len(answers), -1), self._f1_of)

    def gain(self, answers: Codes, floor: Codes) -> Measured:
        """How much better answers are than a floor's on the same texts.

        Accuracy: texts on which just one of the two is right are as good as coins where both are
        equally good. ``gain = m (2 s - 1) / n`` with s the share of such texts, m of n, on which
        the answers are right; the limits are those of s, given m (McNemar, 1947, exact).
        F1: both on the same resampled texts.
        """
        if self.measure == "f1":
            cells = [self._cells(one).reshape(len(one), -1) for one in (answers, floor)]
            width = cells[0].shape[1]
            return self._resampled(
                np.hstack(cells),
                lambda sums: self._f1_of(sums[..., :width]) - self._f1_of(sums[..., width:]),
            )
        right, other = (one[:, 0] == self.truth[:, 0] for one in (answers, floor))
        won, apart, n = int((right & ~other).sum()), int((right != other).sum()), len(right)
        share = (0.5, 0.5) if apart == 0 else limits(won, apart, self._tail)
        low, high = (apart * (2.0 * s - 1.0) / n for s in share)
        return Measured((2 * won - apart) / n, low, high, "sign test")

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _cells(self, answers: Codes) -> Ints:
        """True positives, false positives and false negatives, shape (n, groups, 3)."""
        if self.target.binary:
            wanted, given = self.truth == 1, answers == 1
        else:
            codes = np.arange(len(self.target.values[0]))
            wanted, given = self.truth == codes, answers == codes
        cells = np.stack([wanted & given, ~wanted & given, wanted & ~given], axis=2)
        # Micro: one sum over all attributes; macro: a mean over values.
        return (cells.sum(axis=1, keepdims=True) if self.target.binary else cells).astype(np.int64)

    def _f1_of(self, sums: Any) -> Any:
        return _f1(sums.reshape(*sums.shape[:-1], -1, 3))

    def _resampled(
        self, rows: Ints, statistic: Callable[[Any], Any], mean: bool = False
    ) -> Measured:
        """A statistic of sums (or means) over rows with its percentile bootstrap (Efron, 1979)."""
        kinds, times = np.unique(rows, axis=0, return_counts=True)
        size = len(rows) if mean else 1
        # Texts drawn with replacement: so many of each kind of row.
        sequence = np.random.SeedSequence(self.seed, spawn_key=(_RESAMPLING,))
        rng = np.random.Generator(np.random.PCG64(sequence))
        drawn = rng.multinomial(len(rows), times / len(rows), size=_REPLICATES)
        value = float(statistic(rows.sum(axis=0) / size))
        low, high = np.quantile(statistic(drawn @ kinds / size), [self._tail, 1.0 - self._tail])
        return Measured(value, float(low), float(high), f"bootstrap of {_REPLICATES:,}")


def _f1(cells: Any) -> Any:
    """Mean F1 over groups from (..., groups, 3); a group that does not occur is left out."""
    found, wrong = 2.0 * cells[..., 0], cells[..., 1] + cells[..., 2]
    whole = found + wrong
    each = np.divide(found, whole, out=np.zeros_like(found), where=whole > 0)
    return each.sum(axis=-1) / np.maximum(1, (whole > 0).sum(axis=-1))
