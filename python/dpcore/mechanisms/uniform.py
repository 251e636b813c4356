"""Uniform noise, with its tail probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import invalid, real
from ..suggestions import explain_argument_errors
from .native import LARGEST, Logs, Primitive, Tails, make_unbounded_cost, register_law


def _uniform_log_tail_and_complement(noise: Uniform, a: Logs, upper_first: bool) -> Tails:
    width = noise.high - noise.low
    above = np.clip((noise.high - a) / width, 0.0, 1.0)
    below = np.clip((a - noise.low) / width, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        log_above = np.where(above <= below, np.log(above), np.log1p(-np.minimum(below, 1.0)))
        log_below = np.where(above <= below, np.log1p(-np.minimum(above, 1.0)), np.log(below))
    return (log_above, log_below) if upper_first else (log_below, log_above)


@explain_argument_errors
@register_law(
    log_votes=_uniform_log_tail_and_complement,
    support=lambda noise: (noise.low, noise.high),
    cost=make_unbounded_cost(
        "bounded noise: an output out of reach of one input is impossible there"
    ),
)
@dataclass(frozen=True, slots=True, repr=False)
class Uniform(Primitive):
    """Additive uniform noise: ``x + s``, where s is uniform on [low, high].

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise. The noise is computed as ``s = low + (high - low) u``,
    with u uniform on [0, 1). Therefore s is equal to `high` only as a result of rounding.

    Args:
        low: smallest value of the noise, in the units of x, at least -1e300.
        high: largest value of the noise, above `low` and at most 1e300.

    Raises:
        TypeError: if `low` or `high` is not a number.
        ValueError: if `low` or `high` is out of range, or `low` is not below `high`.

    Source:
        Devroye (1986), Non-Uniform Random Variate Generation, section II.2 (inversion).

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Uniform(-1.0, 1.0), [0.0], 3, rng=1).shape
        (3, 1)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in ("low", "high"):
            end = real(name, getattr(self, name), low=-LARGEST, high=LARGEST)
            object.__setattr__(self, name, end)
        if self.low >= self.high:
            raise invalid("low", f"below high = {self.high!r}", self.low)
