"""Cauchy noise, with its tail probabilities and its privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import real
from ..suggestions import explain_argument_errors
from .native import Cost, Logs, Primitive, Tails, register_law, whole_real_line

LARGEST_SCALE = 1e290
"""Largest allowed scale. The largest noise is 2^53 / pi = 2.87e15 times the scale, thus finite."""


def _log_tail_and_rest(noise: Cauchy, a: Logs, up: bool) -> Tails:
    z = a / noise.scale
    with np.errstate(divide="ignore"):
        # Each tail is an angle divided by pi; the smaller tail is computed directly.
        tail = np.arctan2(1.0, np.abs(z)) / np.pi
        small, large = np.log(tail), np.log1p(-tail)
    above, below = np.where(z >= 0, small, large), np.where(z >= 0, large, small)
    return (above, below) if up else (below, above)


def _cauchy_privacy_cost(noise: Cauchy, distance: float, entries: int) -> Cost:
    # The loss of an entry is concave in its distance, so equal parts have the largest loss.
    part = distance / entries
    epsilon = entries * 2.0 * math.asinh(part / noise.scale / 2.0)
    parts = "" if entries == 1 else f" in {entries} entries of {part:g} each"
    return Cost(
        epsilon,
        f"L1 distance {distance:g}{parts} is at most 2 asinh(distance / (2 scale {noise.scale:g})) "
        "in each entry",
    )


@explain_argument_errors
@register_law(log_votes=_log_tail_and_rest, support=whole_real_line, cost=_cauchy_privacy_cost)
@dataclass(frozen=True, slots=True, repr=False)
class Cauchy(Primitive):
    """Additive Cauchy noise: ``x + s``, where s has the density ``1 / (pi b (1 + (s/b)^2))``.

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise. The noise is computed as ``s = b tan(pi (u - 1/2))``,
    with u uniform on [0, 1). The tails of s are so heavy that s has neither a mean nor a variance.

    The privacy loss for delta = 0 is finite. For one entry and two inputs at distance d, the loss
    is the largest log ratio of the two densities. It is ``2 asinh(d / (2 b))``. This loss is
    smaller than d/b, the loss of Laplace noise with the same scale. For large d, the loss grows as
    ``2 ln(d/b)``. For n entries and an L1 distance of d, the largest loss is
    ``2 n asinh(d / (2 n b))``. This loss is reached if the distance d/n is the same in all entries.

    Args:
        scale: scale b of the noise, in the units of x. ``abs(s) <= b`` has probability 1/2.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e290].

    Source:
        Nissim, Raskhodnikova and Smith (2007), noise for smooth sensitivity. With s in units of b,
        the loss is the logarithm of the largest ratio of 1 + s^2 and 1 + (s + d/b)^2. The two sums
        are quadratic forms in (1, s). Their largest ratio is a generalised eigenvalue.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Cauchy(2.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
        >>> from dpcore.calibration import real_epsilon
        >>> from dpcore.sensitivity import Ball
        >>> real_epsilon(dpcore.Cauchy(1.0), Ball("l1", 0.5, 1)).value  # 2 asinh(1/2)
        0.9624236501192069
    """

    scale: float

    def __post_init__(self) -> None:
        """Check the fields."""
        scale = real("scale", self.scale, low=0.0, high=LARGEST_SCALE, open_low=True)
        object.__setattr__(self, "scale", scale)
