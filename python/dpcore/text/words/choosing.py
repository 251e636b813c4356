"""The parameter of a mechanism at a given loss of any two words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...errors import instance, invalid, mistyped, real
from ...hints import hinted
from ...records import Record
from ..leakage import Embedding
from .exponential import MetricExponential
from .mechanism import WordMechanism
from .noisy import NoisyMechanism
from .tables import largest_over_blocks

__all__ = ["WordCalibration", "calibrate"]

_MOST_DOUBLINGS: Final = 40
"""Doublings of epsilon before a loss counts as out of reach."""

_PRECISION: Final = 1e-9
"""Relative width of the interval in which epsilon is known in the end."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordCalibration(Record):
    """A mechanism and the largest loss of any two words.

    Args:
        mechanism: the mechanism with the epsilon that was found.
        loss: its largest loss in nats.
        is_exact: True if that is the loss itself; False if it is the bound by the noise, which the
            choice of a word can only lower.
    """

    mechanism: WordMechanism
    loss: float
    is_exact: bool

    def __str__(self) -> str:
        """Return the mechanism and its loss on one line."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        return f"{self.mechanism!r}: at most {self.loss:g} nats for any two words ({kind})"


@hinted
def calibrate(kind: Any, vectors: Any, loss: float, **settings: Any) -> WordCalibration:
    """Find the epsilon at which the largest loss of any two words is a given one.

    Args:
        kind: `SanText` or `TEM`, whose loss is exact, or `MetricLaplace` or `Vickrey`, of which the
            loss of the noise is a bound: epsilon times the largest distance.
        vectors: the words and their vectors.
        loss: largest loss in nats, above 0.
        **settings: further arguments of the class.

    Returns:
        A `WordCalibration`.

    Raises:
        TypeError: if `kind` is not a class of this package or `vectors` not an `Embedding`.
        ValueError: if the class has an infinite loss for some words (`CusText`, `SanTextPlus`), or
            no epsilon gives this loss.

    Example:
        >>> from dpcore.text.words import SanText
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> found = calibrate(SanText, vectors, loss=2.0)
        >>> round(found.mechanism.epsilon, 3), round(found.mechanism.worst_loss(), 6)
        (2.456, 2.0)
    """
    vectors, loss = (
        instance("vectors", vectors, Embedding),
        real("loss", loss, low=0.0, open_low=True),
    )
    if not isinstance(kind, type) or not issubclass(kind, WordMechanism):
        raise mistyped("kind", "a class of mechanisms of dpcore.text.words", kind)
    if not issubclass(kind, (MetricExponential, NoisyMechanism)):
        requirement = "a class with a finite loss for any two words"
        raise invalid("kind", requirement, kind.__name__)
    unit = kind(vectors, 1.0, **settings)
    # The claim holds: no smaller epsilon has this loss.
    low = loss / largest_over_blocks(unit.distance_rows, len(vectors))
    if issubclass(kind, NoisyMechanism):
        return WordCalibration(kind(vectors, low, **settings), loss, is_exact=False)

    def is_below(epsilon: float) -> bool:
        return bool(kind(vectors, epsilon, **settings).worst_loss() < loss)

    high = 2.0 * low
    for _ in range(_MOST_DOUBLINGS):
        if not is_below(high):
            break
        low, high = high, 2.0 * high
    else:
        raise invalid("loss", f"one that {kind.__name__} has for some epsilon", loss)
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return WordCalibration(kind(vectors, low, **settings), loss, is_exact=True)
