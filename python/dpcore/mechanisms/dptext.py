"""The noise of DPText as published, with its tail probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..errors import choice
from ..suggestions import explain_argument_errors
from . import native
from .exponential import one_sided_log_tail_and_complement

Undefined = Literal["zero", "resample", "keep"]
"""Options for the treatment of draws for which the formula is undefined."""


def _dptext_log_tail_and_complement(noise: DPTextNoise, a: native.Logs, up: bool) -> native.Tails:
    votes, other = one_sided_log_tail_and_complement(noise.scale, a, up)
    if noise.nan == "resample":
        return votes, other
    half = votes - native.LN2
    if noise.nan == "keep":
        # Half of the mass is NaN; NaN votes for x.
        return half, native.log_complement(half)
    # Half of the mass is at noise 0 and has the vote of 0.
    zero = a <= 0 if up else a >= 0
    half_other = other - native.LN2
    return (
        np.where(zero, native.log_complement(half_other), half),
        np.where(zero, half_other, native.log_complement(half)),
    )


@explain_argument_errors
@native.register_law(
    log_votes=_dptext_log_tail_and_complement,
    support=native.support_of_nonnegative_noise,
    cost=native.make_unbounded_cost(
        "noise that is never negative: an output below one input is impossible there"
    ),
)
@dataclass(frozen=True, slots=True, repr=False)
class DPTextNoise(native.Primitive):
    """The noise of DPText as published: ``x - b sgn(u) ln(1 - 2 abs(u))``, u uniform on [0, 1).

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The published formula is wrong. For Laplace noise, u must be uniform on [-1/2, 1/2). As
    published, the noise is never negative. The logarithm is undefined (NaN) for u above 1/2.
    Implementations treat this NaN in different ways. The argument `nan` chooses one of these ways.

    Args:
        scale: scale b of the noise, in the units of x.
        nan: treatment of NaN. Exp(b) is the exponential distribution with mean b.

            - "zero" replaces NaN by 0. The noise is 0 or Exp(b), each with probability 1/2.
            - "resample" draws u again until the noise is defined. The noise is Exp(b).
            - "keep" leaves NaN in the output. The noise is NaN or Exp(b), each with probability
              1/2.

    Raises:
        TypeError: if `scale` is not a number, or `nan` is not a string.
        ValueError: if `scale` is not in (0, 1e300], or `nan` is not one of the three names.

    Source:
        Beigi, Shu, Guo, Wang and Liu (2019), equation 9, for the formula. Habernal (2022), theorem
        3.1, for the error in the formula.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.DPTextNoise(1.0), [0.0], 5, rng=1).round(3).ravel()
        array([2.254, 0.042, 0.   , 0.   , 0.   ])
    """

    scale: float
    nan: Undefined = "zero"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "scale", native.positive("scale", self.scale))
        choice("nan", self.nan, get_args(Undefined))
