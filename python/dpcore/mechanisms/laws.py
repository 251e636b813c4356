"""Laws of native noise: the facts that can be declared, and the parts of a declaration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..pairs.norms import Norm
from ..records import Shown

__all__ = [
    "LN2",
    "Cost",
    "Law",
    "Logs",
    "Tails",
    "log_complement",
    "make_unbounded_cost",
    "not_negative",
    "over_scale",
    "whole_line",
]

Logs = npt.NDArray[np.float64]
Tails = tuple[Logs, Logs]

LN2 = float(np.log(2.0))


def log_complement(log_p: Any) -> Any:
    """Compute ln(1 - p) from ln p <= 0, accurately for p near 0 and near 1.

    The switch at p = 1/2 is that of Maechler (2012), Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


class Cost(NamedTuple):
    """The privacy that a noise gives two inputs at a distance.

    Args:
        epsilon: the smallest pure epsilon that holds; inf if none does.
        reason: how it follows, one line.
        mu: distance over sigma where that fixes the whole profile, else None.
    """

    epsilon: float
    reason: str
    mu: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """All that is known of a noise, declared in its file; None is what is not known.

    Every entry of an input gets a draw of its own. Whoever asks for a part that is not known says
    so in words: the closed form of a vote is left out, `real_epsilon` gives that as its reason.

    Args:
        log_votes: `(noise, thresholds, up)`, the logarithms of the probabilities that a noisy
            entry votes for x' and that it does not. Looking up it votes where the noise is at
            least the threshold, looking down where it is at most that; NaN never votes for x'.
            Both keep their relative accuracy in both tails: the smaller probability is computed
            as such, its complement by log1p.
        support: `(noise)`, the smallest and the largest noise possible, in real numbers.
        cost: `(noise, distance)`, the privacy of two inputs so far apart, above 0.
        norm: of that distance, "l1" or "l2".
        blind: True if the output is the noise alone and does not depend on the input.

    Example:
        >>> from dpcore.mechanisms import Uniform
        >>> from dpcore.mechanisms.native import law_of
        >>> law_of(noise := Uniform(-1.0, 2.0)).support(noise)
        (-1.0, 2.0)
    """

    log_votes: Callable[[Any, Logs, bool], Tails] | None = None
    support: Callable[[Any], tuple[float, float]] | None = None
    cost: Callable[[Any, float], Cost] | None = None
    norm: Norm = "l1"
    blind: bool = False


def whole_line(noise: object) -> tuple[float, float]:
    """Return the support of noise that can be any number."""
    return -math.inf, math.inf


def not_negative(noise: object) -> tuple[float, float]:
    """Return the support of noise that is never negative."""
    return 0.0, math.inf


def over_scale(apart: float, scale: float, norm: str) -> Cost:
    """Return the cost of a distance where the loss is at most distance / scale."""
    return Cost(apart / scale, f"{norm.upper()} distance {apart:g} over scale {scale:g}")


def make_unbounded_cost(reason: str) -> Callable[[object, float], Cost]:
    """Make the cost function of noise for which no epsilon holds."""
    return lambda noise, apart: Cost(math.inf, reason)
