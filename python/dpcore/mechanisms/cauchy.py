"""Cauchy noise and its distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import real
from ..suggestions import suggest_arguments
from .native import Cost, Logs, Primitive, Tails, whole_line, with_law

LARGEST_SCALE = 1e290
"""Largest scale; the largest possible noise, 2.87e15 scales, is then finite."""


def _cauchy_log_votes(noise: Cauchy, a: Logs, up: bool) -> Tails:
    z = a / noise.scale
    with np.errstate(divide="ignore"):
        # Each tail is an angle divided by pi; the smaller tail is computed directly.
        tail = np.arctan2(1.0, np.abs(z)) / np.pi
        small, large = np.log(tail), np.log1p(-tail)
    above, below = np.where(z >= 0, small, large), np.where(z >= 0, large, small)
    return (above, below) if up else (below, above)


def _find_cauchy_cost(noise: Cauchy, apart: float, entries: int) -> Cost:
    # The loss of an entry is concave in its distance, so equal parts have the largest loss.
    part = apart / entries
    epsilon = entries * 2.0 * math.asinh(part / noise.scale / 2.0)
    parts = "" if entries == 1 else f" in {entries} entries of {part:g} each"
    return Cost(
        epsilon,
        f"L1 distance {apart:g}{parts} is at most 2 asinh(distance / (2 scale {noise.scale:g})) "
        "in each entry",
    )


@suggest_arguments
@with_law(log_votes=_cauchy_log_votes, support=whole_line, cost=_find_cauchy_cost)
@dataclass(frozen=True, slots=True, repr=False)
class Cauchy(Primitive):
    """Additive Cauchy noise: ``x + s``, density ``1 / (pi b (1 + (s/b)^2))`` in every entry.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    s is ``b tan(pi (u - 1/2))`` with u uniform on [0, 1). Its tails are so heavy that it has no
    mean and no variance. Its pure privacy loss is finite. For one entry and inputs at distance d,
    the log ratio of the two densities is at most ``2 asinh(d / (2 b))``, and this value is
    attained. It is below d/b, the loss of Laplace noise of the same scale, and grows as
    ``2 ln(d/b)``. For n entries and an L1 distance of d, the largest loss is
    ``2 n asinh(d / (2 n b))``, which is attained if all entries differ equally.

    Args:
        scale: scale b of the noise, in the units of x. Half of the draws are within b of 0.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e290].

    Source:
        Nissim, Raskhodnikova and Smith (2007), noise for smooth sensitivity. The loss follows from
        the larger eigenvalue of the two quadratic forms 1 + s^2 and 1 + (s + d/b)^2.

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
