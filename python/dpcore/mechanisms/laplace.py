"""Laplace noise, with its tail probabilities and its privacy loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..errors import choice, invalid
from ..suggestions import explain_argument_errors
from .native import (
    LN2,
    Logs,
    Primitive,
    Tails,
    cost_over_scale,
    positive,
    register_law,
    whole_real_line,
)

Variant = Literal["two_branch", "sign", "centred"]
"""Names of the formulas that turn a uniform number into Laplace noise."""


def _laplace_log_tail_and_complement(noise: Laplace, a: Logs, upper_tail: bool) -> Tails:
    z = a / noise.scale
    # The tail beyond abs(z) is exp(-abs(z))/2 and never above 1/2.
    tail = -np.abs(z) - LN2
    rest = np.log1p(-0.5 * np.exp(-np.abs(z)))
    above, below = np.where(z >= 0, tail, rest), np.where(z >= 0, rest, tail)
    return (above, below) if upper_tail else (below, above)


@explain_argument_errors
@register_law(
    log_votes=_laplace_log_tail_and_complement,
    support=whole_real_line,
    cost=lambda noise, apart, entries: cost_over_scale(apart, noise.scale, "l1"),
    traced="laplace",
)
@dataclass(frozen=True, slots=True, repr=False)
class Laplace(Primitive):
    """Additive Laplace noise: ``x + s``, where s has the density ``exp(-abs(s)/b) / (2b)``.

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise.

    Args:
        scale: scale b of the noise, in the units of x. The noise has mean 0 and variance 2 b^2.
        variant: textbook formula that computes the noise from a uniform number: "two_branch",
            "sign" or "centred". dpcore draws uniform numbers that are multiples of 2^-53. For these
            numbers, the three formulas give the same bits.

    Raises:
        TypeError: if `scale` is not a number, or `variant` is not a string.
        ValueError: if `scale` is not in (0, 1e300], or `variant` is not one of the three names.

    Source:
        Dwork, McSherry, Nissim and Smith (2006). Habernal (2022), equations 4 to 7, for the three
        formulas.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Laplace(2.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
    """

    scale: float
    variant: Variant = "two_branch"

    def __post_init__(self) -> None:
        """Check the fields."""
        if isinstance(self.variant, (int, float)):
            need = "the only number (noise has no place: the input is what it is added to)"
            raise invalid("scale", need, (self.scale, self.variant))
        object.__setattr__(self, "scale", positive("scale", self.scale))
        choice("variant", self.variant, get_args(Variant))
