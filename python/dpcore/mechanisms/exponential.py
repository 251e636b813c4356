"""Exponential noise, with its tail probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..suggestions import explain_argument_errors
from . import native


def one_sided_log_tail_and_complement(scale: float, a: native.Logs, up: bool) -> native.Tails:
    """Compute two arrays of log probabilities of exponential noise, for thresholds `a`.

    If `up` is True, the arrays are ln P(noise >= a) and ln P(noise < a). Otherwise they are ln
    P(noise <= a) and ln P(noise > a). The noise has mean `scale`.
    """
    above = -np.maximum(a / scale, 0.0)
    below = native.log_complement(above)
    return (above, below) if up else (below, above)


@explain_argument_errors
@native.register_law(
    log_votes=lambda noise, a, up: one_sided_log_tail_and_complement(noise.scale, a, up),
    support=native.support_of_nonnegative_noise,
    cost=native.make_unbounded_cost(
        "one-sided noise: an output below one input is impossible there"
    ),
    traced="exponential",
)
@dataclass(frozen=True, slots=True, repr=False)
class Exponential(native.Primitive):
    """Additive exponential noise ``x + s`` with s >= 0. It is not the exponential mechanism.

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise s, with the density ``exp(-s/b) / b``. The output is
    never below the input. Therefore the noise is not differentially private for any epsilon. If x'
    is larger than x, outputs between x and x' are possible on x but impossible on x'.

    The exponential mechanism is a different mechanism, which chooses an output by its utility. To
    audit the exponential mechanism, write a function `(x, size, rng)` that returns `size` outputs.

    Args:
        scale: scale b of the noise, in the units of x. The noise has mean b and variance b^2.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e300].

    Source:
        Devroye (1986), Non-Uniform Random Variate Generation, section II.2 (inversion).

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Exponential(2.0), [1.0], 4, rng=1).round(3).ravel()
        array([2.187, 1.042, 2.538, 5.792])
    """

    scale: float

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "scale", native.positive("scale", self.scale))

    def notes_on(self, pair: Any) -> tuple[str, ...]:
        """Return a note for a report: this noise is not the exponential mechanism."""
        return (
            "Exponential adds one-sided noise. It is not the exponential mechanism, which is "
            "audited as a function (x, size, rng) that chooses an answer",
        )
