"""Certified lower limits on epsilon, delta and mu, from counts of an event on two inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from ..records import Counts
from .binomial import bound_of, clopper_pearson, conditional, every_coordinate, limits
from .canaries import gdp_epsilon, guesses_needed, one_run, one_run_curve, one_run_fdp, one_run_mu
from .canaries import one_run_refutes as one_run_refutes
from .power import detectable, predicted
from .sequential import Martingale, anytime
from .tradeoff import Band, delta_lower, epsilon_lower_at, mu_lower, tradeoff_band
from .unconditional import berger_boos

BoundName = Literal["clopper_pearson", "exact", "conditional", "anytime"]
"""Names of the bounds for counted draws, in the order in which messages list them."""

RecordedBound = Literal["clopper_pearson", "exact", "one_run", "one_run_fdp", "one_run_curve"]
"""Names of the bounds for recorded outputs."""

BOUNDS: Final[dict[str, Callable[[Counts, float, float], float]]] = {
    name: bound_of(name) for name in get_args(BoundName)
}
"""Bounds by name. Each bound is a function `(counts, delta, confidence) -> epsilon_lower`.

The decorator `@Declared` of each function states further properties of the bound.
"""

ONE_RUN: Final[dict[str, Callable[..., float]]] = {
    name: bound_of(name, "one_run") for name in get_args(RecordedBound) if name not in BOUNDS
}
"""Bounds for audits of one training run, by name. Each bound is a function
`(guesses, correct, canaries, delta, confidence) -> epsilon_lower`."""

__all__ = [
    "BOUNDS", "Band", "Martingale", "anytime", "berger_boos", "clopper_pearson", "conditional",
    "delta_lower", "detectable", "epsilon_lower_at", "every_coordinate", "gdp_epsilon",
    "guesses_needed", "limits", "mu_lower", "one_run", "one_run_curve", "one_run_fdp", "one_run_mu",
    "predicted", "tradeoff_band",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names of the module, without the other imported names."""
    return [*__all__]
