"""Conclusions from the figures: where robust training pays, and what beats the control."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from ... import calibration
from ...mechanisms import Laplace
from ...sensitivity import MinMaxRows
from .experiment import Result

__all__ = [
    "CONTROL",
    "RIVALS",
    "Gain",
    "compute_gains",
    "compute_mean_sd",
    "crossing_epsilon",
    "true_epsilon",
]

CONTROL = "constant 5"
RIVALS = ("stretched 10 to 2", "uniform 2 to 10", "log-uniform .5 to 10", "robust")
"""Rivals that are compared with one model trained at epsilon 5."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Gain of a line over the control at one epsilon.

    Args:
        line: its name.
        epsilon: the claim of the noise in the test.
        mean: mean of the differences, seed by seed.
        noise: the sum of both standard deviations over seeds.
    """

    line: str
    epsilon: float
    mean: float
    noise: float

    @property
    def beyond(self) -> bool:
        """True if the means differ by more than the sum of their standard deviations."""
        return abs(self.mean) > self.noise


def compute_mean_sd(values: tuple[float, ...]) -> tuple[float, float]:
    """Compute the mean and the standard deviation, which is 0 for a single value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def true_epsilon(epsilon: float, dim: int) -> float:
    """Compute the epsilon that noise of scale 1/epsilon gives any two rows of min-max.

    Example:
        >>> true_epsilon(5.0, 32)
        160.0
    """
    law = Laplace(calibration.laplace(epsilon, 1.0))
    return calibration.real_epsilon(law, MinMaxRows(dim)).value


def crossing_epsilon(result: Result, data: str, dim: int) -> float | None:
    """Return the epsilon from which on robust has a higher mean than not robust, or None."""
    found = None
    for epsilon in reversed(result.config.epsilons):
        robust, plain = (
            result.values(data, dim, line, epsilon) for line in ("robust", "not robust")
        )
        if not robust or not plain or statistics.fmean(robust) <= statistics.fmean(plain):
            break
        found = epsilon
    return found


def compute_gains(result: Result, data: str, dim: int) -> tuple[Gain, ...]:
    """Return the gains of the rivals over the control, where both have the same 2 or more seeds."""
    found = []
    for line in RIVALS:
        for epsilon in result.config.epsilons:
            mine = result.values(data, dim, line, epsilon)
            control = result.values(data, dim, CONTROL, epsilon)
            if len(mine) < 2 or len(mine) != len(control):
                continue
            differences = [a - b for a, b in zip(mine, control, strict=True)]
            noise = compute_mean_sd(mine)[1] + compute_mean_sd(control)[1]
            found.append(Gain(line, epsilon, statistics.fmean(differences), noise))
    return tuple(found)
