"""Log-probabilities that a noisy entry passes a threshold, for every native noise.

Each function takes thresholds ``a`` on the noise and returns two arrays: ln P(the entry votes for
x') and ln P(it does not). Looking up, it votes when noise >= a; looking down, when noise <= a.
NaN never votes for x'. Both logarithms keep their relative accuracy in both tails: the
smaller probability is computed as such, its complement by log1p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .noise import (
    DPTextNoise,
    Exponential,
    Gaussian,
    Identity,
    Laplace,
    Primitive,
    RandomBits,
    Uniform,
)

Logs = npt.NDArray[np.float64]
Tails = tuple[Logs, Logs]

LN2 = float(np.log(2.0))


def log_complement(log_p: Any) -> Any:
    """ln(1 - p) from ln p <= 0, accurate for p near 0 and near 1.

    The switch at p = 1/2 is that of Maechler (2012), Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


def _laplace(noise: Laplace, a: Logs, up: bool) -> Tails:
    z = a / noise.scale
    # The tail beyond abs(z) is exp(-abs(z))/2 and never above 1/2.
    tail = -np.abs(z) - LN2
    rest = np.log1p(-0.5 * np.exp(-np.abs(z)))
    above, below = np.where(z >= 0, tail, rest), np.where(z >= 0, rest, tail)
    return (above, below) if up else (below, above)


def _gaussian(noise: Gaussian, a: Logs, up: bool) -> Tails:
    from scipy.special import log_ndtr

    z = a / noise.sigma if up else -a / noise.sigma
    return log_ndtr(-z), log_ndtr(z)


def _exponential(noise: Exponential, a: Logs, up: bool) -> Tails:
    above = -np.maximum(a / noise.scale, 0.0)
    below = log_complement(above)
    return (above, below) if up else (below, above)


def _uniform(noise: Uniform, a: Logs, up: bool) -> Tails:
    width = noise.high - noise.low
    above = np.clip((noise.high - a) / width, 0.0, 1.0)
    below = np.clip((a - noise.low) / width, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        log_above = np.where(above <= below, np.log(above), np.log1p(-np.minimum(below, 1.0)))
        log_below = np.where(above <= below, np.log1p(-np.minimum(above, 1.0)), np.log(below))
    return (log_above, log_below) if up else (log_below, log_above)


def _identity(noise: Identity, a: Logs, up: bool) -> Tails:
    votes = a <= 0 if up else a >= 0
    return np.where(votes, 0.0, -np.inf), np.where(votes, -np.inf, 0.0)


def _random_bits(noise: RandomBits, a: Logs, up: bool) -> Tails:
    # The noise is the output itself: 0 or 1 with probability 1/2 each.
    p = ((a <= 0) * 0.5 + (a <= 1) * 0.5) if up else ((a >= 0) * 0.5 + (a >= 1) * 0.5)
    with np.errstate(divide="ignore"):
        return np.log(p), np.log1p(-p)


def _dptext(noise: DPTextNoise, a: Logs, up: bool) -> Tails:
    votes, other = _exponential(Exponential(noise.scale), a, up)
    if noise.nan == "resample":
        return votes, other
    half = votes - LN2
    if noise.nan == "keep":
        # Half of the mass is NaN, which votes for x.
        return half, log_complement(half)
    # Half of the mass sits at noise 0 and votes wherever 0 does.
    zero = a <= 0 if up else a >= 0
    half_other = other - LN2
    return (
        np.where(zero, log_complement(half_other), half),
        np.where(zero, half_other, log_complement(half)),
    )


_TAILS: dict[type[Primitive], Callable[[Any, Logs, bool], Tails]] = {
    Laplace: _laplace,
    Gaussian: _gaussian,
    Exponential: _exponential,
    Uniform: _uniform,
    Identity: _identity,
    RandomBits: _random_bits,
    DPTextNoise: _dptext,
}


def log_votes(noise: Primitive, a: Logs, up: bool) -> Tails:
    """The two logarithms for thresholds `a` on the noise, looking up or down."""
    # A threshold beyond the range of float64, or b below it, is simply never or always passed.
    with np.errstate(over="ignore", under="ignore"):
        return _TAILS[type(noise)](noise, a, up)
