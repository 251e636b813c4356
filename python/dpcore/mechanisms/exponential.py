"""Exponential noise and its distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..suggestions import suggest_arguments
from . import native


def log_tails(scale: float, a: native.Logs, up: bool) -> native.Tails:
    """Compute the log tails of a vote for one-sided noise; also used for DPText's noise."""
    above = -np.maximum(a / scale, 0.0)
    below = native.log_complement(above)
    return (above, below) if up else (below, above)


@suggest_arguments
@native.with_law(
    log_votes=lambda noise, a, up: log_tails(noise.scale, a, up),
    support=native.not_negative,
    cost=native.make_unbounded_cost(
        "one-sided noise: an output below one input is impossible there"
    ),
    traced="exponential",
)
@dataclass(frozen=True, slots=True, repr=False)
class Exponential(native.Primitive):
    """One-sided noise ``x + s`` with density ``exp(-s/b) / b``, not the exponential mechanism.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    The output is never below the input, so there is no differential privacy between x and a larger
    x'. The exponential mechanism, which chooses an answer by its utility, is audited as a function
    (x, size, rng).

    Args:
        scale: scale b of the noise, in the units of x; mean b, variance b^2.

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
        """Return a note for the report: this noise is not the exponential mechanism."""
        return (
            "Exponential adds one-sided noise. It is not the exponential mechanism, which is "
            "audited as a function (x, size, rng) that chooses an answer",
        )
