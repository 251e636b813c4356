"""Gaussian noise, with its tail probabilities and its privacy profile."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from ..suggestions import explain_argument_errors
from .native import Cost, Logs, Primitive, Tails, positive, register_law, whole_real_line


def _gaussian_log_tail_and_complement(noise: Gaussian, a: Logs, upper: bool) -> Tails:
    from scipy.special import log_ndtr

    z = a / noise.sigma if upper else -a / noise.sigma
    return log_ndtr(-z), log_ndtr(z)


def sensitivity_over_sigma(sigma: Any, sensitivity: Any) -> float:
    """Check two numbers, and return `sensitivity` divided by `sigma`.

    For Gaussian noise, this ratio determines delta as a function of epsilon.
    """
    mu = positive("sensitivity", sensitivity) / positive("sigma", sigma)
    return min(mu, sys.float_info.max)


def _gaussian_privacy_cost(noise: Gaussian, distance: float, entries: int) -> Cost:
    mu = sensitivity_over_sigma(noise.sigma, distance)
    reason = (
        f"L2 distance {distance:g} over sigma {noise.sigma:g} is mu {mu:g}: no pure epsilon, a "
        "delta for each"
    )
    return Cost(math.inf, reason, mu)


@explain_argument_errors
@register_law(
    log_votes=_gaussian_log_tail_and_complement,
    support=whole_real_line,
    cost=_gaussian_privacy_cost,
    norm="l2",
    traced="normal",
)
@dataclass(frozen=True, slots=True, repr=False)
class Gaussian(Primitive):
    """Additive Gaussian noise: ``x + s``, where s is drawn from N(0, sigma^2).

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise.

    Args:
        sigma: standard deviation of the noise, in the units of x.

    Raises:
        TypeError: if `sigma` is not a number.
        ValueError: if `sigma` is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem A.1.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Gaussian(1.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
    """

    sigma: float

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
