"""Gaussian noise for (epsilon, delta)-DP, by the classical or the exact formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import errors
from ..bounds.tradeoff import epsilon_of, log_delta, mu_of
from ..mechanisms.gaussian import Gaussian, sensitivity_over_sigma
from ..mechanisms.native import positive
from ..pairs import dimension
from ..pairs.differences import Norm
from ..published import noise_scale
from ..records import Pair, Record
from ..sensitivity.closed_forms import Sensitivity, sensitivity_to_number
from ..streams import Rng
from ..suggestions import explain_argument_errors

FORMULAS = ("classical", "analytic")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibratedGaussian(Record, word="GaussianNoise"):
    """Mechanism that adds Gaussian noise, with sigma chosen for a given (epsilon, delta).

    Use this mechanism for audits and experiments, not for releasing data (`dpcore.sample` gives the
    reasons). The mechanism has the attributes `claim` and `delta`. Therefore `dpcore.audit` tests
    this (epsilon, delta) if you do not give a claim.

    Args:
        sigma: standard deviation of the noise, in the units of the input.
        epsilon: claimed epsilon, for which sigma was chosen.
        delta: claimed delta, for which sigma was chosen.
        sensitivity: largest L2 distance between two neighbouring inputs, in the units of the input.
        true_delta: smallest delta for which this noise is (epsilon, delta)-DP. This number is at
            most the claimed `delta`.
        formula: formula from which sigma was computed, "classical" or "analytic".
        note: remark on the formula, or an empty string without a remark.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a number is out of range, or if `formula` is not "classical" or "analytic".

    Example:
        >>> print(gaussian_analytic(1.0, 1e-5, 1.0))
        sigma 3.73063 for epsilon 1, delta 1e-05 at L2 sensitivity 1 (analytic)
    """

    sigma: float
    epsilon: float
    delta: float
    sensitivity: float
    true_delta: float
    formula: str
    note: str = ""

    norm: ClassVar[Norm] = "l2"
    thread_safe: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in ("sigma", "epsilon", "sensitivity"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "delta", errors.confidence_level(self.delta, "delta"))
        object.__setattr__(self, "true_delta", errors.delta_level(self.true_delta, "true_delta"))
        if self.true_delta > self.delta:
            raise errors.invalid("true_delta", f"at most delta, {self.delta:g}", self.true_delta)
        errors.choice("formula", self.formula, FORMULAS)
        errors.instance("note", self.note, str)

    @property
    def mechanism(self) -> Gaussian:
        """The mechanism `dpcore.Gaussian` with the same sigma."""
        return Gaussian(self.sigma)

    @property
    def claim(self) -> float:
        """Claimed epsilon of this mechanism. An audit tests the claim (epsilon, `delta`)."""
        return self.epsilon

    def default_pair(self, dim: int = 1) -> Pair:
        """Return two neighbouring inputs of `dim` entries for an audit of this mechanism.

        The inputs differ in one entry. Their L2 distance is the attribute `sensitivity`.
        """
        x_prime = np.zeros(dimension(dim))
        x_prime[0] = self.sensitivity
        return Pair(np.zeros(dim), x_prime)

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw outputs: the input `x` plus Gaussian noise.

        Args:
            x: the input, one dimension, shape `(dim,)`.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Outputs of shape `(size, dim)`.
        """
        return self.mechanism(x, size, rng)

    def __str__(self) -> str:
        """Return sigma, the claim and the note on one line."""
        line = (
            f"sigma {self.sigma:.6g} for epsilon {self.epsilon:g}, delta {self.delta:g} at L2 "
            f"sensitivity {self.sensitivity:g} ({self.formula})"
        )
        return f"{line}; {self.note}" if self.note else line


@explain_argument_errors
def gaussian_delta(sigma: float, epsilon: float, sensitivity: float | Sensitivity) -> float:
    """Compute the smallest delta for which Gaussian noise is (epsilon, delta)-DP.

    The result is
    ``Phi(D/(2 sigma) - epsilon sigma/D) - e^epsilon Phi(-D/(2 sigma) - epsilon sigma/D)``, where D
    is the sensitivity. The relative error is at most 1e-12 if the result is at least 1e-300.

    Args:
        sigma: standard deviation of the noise, in the units of the input.
        epsilon: epsilon for which delta is computed, at least 0.
        sensitivity: largest L2 distance D between two neighbouring inputs, in the units of the
            input, above 0. You can also give the result of
            `dpcore.sensitivity.sensitivity(domain, "l2")`.

    Returns:
        The smallest delta, in [0, 1]. The result is 0.0 if the true value is too small for a
        float64.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

    Source:
        Balle and Wang (2018), theorem 8.

    Example:
        >>> round(gaussian_delta(1.0, 1.0, 1.0), 6)
        0.126937
    """
    epsilon = errors.real("epsilon", epsilon, low=0.0)
    mu = sensitivity_over_sigma(sigma, sensitivity_to_number("sensitivity", sensitivity, "l2"))
    return math.exp(log_delta(epsilon, mu))


@explain_argument_errors
def gaussian_epsilon(sigma: float, delta: float, sensitivity: float | Sensitivity) -> float:
    """Compute the smallest epsilon for which Gaussian noise is (epsilon, delta)-DP.

    Args:
        sigma: standard deviation of the noise, in the units of the input.
        delta: delta for which epsilon is computed, in [0, 1).
        sensitivity: largest L2 distance between two neighbouring inputs, in the units of the input,
            above 0. You can also give the result of `dpcore.sensitivity.sensitivity(domain, "l2")`.

    Returns:
        The smallest epsilon, at least 0, with a relative error of at most 1e-12. The result is inf
        if delta is 0, or if the true value is too large for a float64.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

    Source:
        Balle and Wang (2018), theorem 8, solved for epsilon.

    Example:
        >>> round(gaussian_epsilon(1.0, 1e-5, 1.0), 3)
        4.377
    """
    delta = errors.delta_level(delta)
    mu = sensitivity_over_sigma(sigma, sensitivity_to_number("sensitivity", sensitivity, "l2"))
    return math.inf if delta == 0.0 else epsilon_of(mu, delta)


@explain_argument_errors
def gaussian_classical(
    epsilon: float, delta: float, sensitivity: float | Sensitivity
) -> CalibratedGaussian:
    """Compute sigma of Gaussian noise with the textbook formula, and check the true delta.

    Use this noise for audits and experiments, not for releasing data (`dpcore.sample` gives the
    reasons).

    The formula is ``sigma = D sqrt(2 ln(1.25 / delta)) / epsilon``, where D is the sensitivity. The
    theorem for this formula requires an epsilon below 1. The function also computes the true delta
    of the noise at `epsilon`. If the true delta is above `delta`, a ValueError is raised. If
    epsilon is 1 or larger and the true delta is small enough, a note in the result says that the
    theorem does not cover this epsilon.

    Args:
        epsilon: target epsilon, in (0, 1e300].
        delta: target delta, in (0, 1).
        sensitivity: largest L2 distance D between two neighbouring inputs, in the units of the
            input, above 0. You can also give the result of
            `dpcore.sensitivity.sensitivity(domain, "l2")`.

    Returns:
        A mechanism that adds this noise. Its attribute `true_delta` is the true delta.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range, or if the true delta of the noise is above
            `delta`. The error message contains the true delta.

    Source:
        Dwork and Roth (2014), theorem A.1. For the true delta: Balle and Wang (2018), theorem 8.

    Example:
        >>> round(gaussian_classical(0.5, 1e-5, 1.0).sigma, 4)
        9.6896
        >>> gaussian_classical(10.0, 1e-5, 1.0)
        Traceback (most recent call last):
        ...
        ValueError: epsilon must be small enough for the classical formula, whose true delta here
        is 2.27e-05, above the declared 1e-05 (gaussian_analytic has no such limit), got 10.0
    """
    epsilon, delta = positive("epsilon", epsilon), errors.confidence_level(delta, "delta")
    apart = positive("sensitivity", sensitivity_to_number("sensitivity", sensitivity, "l2"))
    # The logarithms are subtracted, because 1.25 / delta overflows if delta is subnormal.
    width = apart * math.sqrt(2.0 * (math.log(1.25) - math.log(delta)))
    sigma = noise_scale("sensitivity sqrt(2 ln(1.25 / delta)) / epsilon", width, epsilon)
    true_delta = gaussian_delta(sigma, epsilon, apart)
    if true_delta > delta:
        requirement = (
            f"small enough for the classical formula, whose true delta here is {true_delta:.3g}, "
            f"above the declared {delta:g} (gaussian_analytic has no such limit)"
        )
        raise errors.invalid("epsilon", requirement, epsilon)
    note = ""
    if epsilon >= 1.0:
        note = (
            "the theorem's condition epsilon < 1 is not met; the true delta is "
            f"{true_delta:.3g}, within the declared {delta:g}"
        )
    return CalibratedGaussian(sigma, epsilon, delta, apart, true_delta, "classical", note)


@explain_argument_errors
def gaussian_analytic(
    epsilon: float, delta: float, sensitivity: float | Sensitivity
) -> CalibratedGaussian:
    """Compute the smallest sigma for which Gaussian noise is (epsilon, delta)-DP.

    Use this noise for audits and experiments, not for releasing data (`dpcore.sample` gives the
    reasons).

    The function solves ``gaussian_delta(sigma, epsilon, sensitivity) = delta`` for sigma, with a
    relative error of 1e-12. Then the function rounds sigma up until the computed delta is at most
    `delta`. Values of epsilon above 1 are also allowed.

    Args:
        epsilon: target epsilon, in (0, 1e300].
        delta: target delta, in (0, 1).
        sensitivity: largest L2 distance between two neighbouring inputs, in the units of the input,
            above 0. You can also give the result of `dpcore.sensitivity.sensitivity(domain, "l2")`.

    Returns:
        A mechanism that adds this noise. Its attribute `true_delta` is the true delta.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

    Source:
        Balle and Wang (2018), theorem 8 and algorithm 1. dpcore uses a bracketing root search
        instead of the two cases of the algorithm.

    Example:
        >>> round(gaussian_analytic(10.0, 1e-5, 1.0).sigma, 6)
        0.499889
    """
    epsilon = positive("epsilon", epsilon)
    delta = errors.confidence_level(delta, "delta")
    apart = positive("sensitivity", sensitivity_to_number("sensitivity", sensitivity, "l2"))
    sigma = noise_scale("sensitivity / mu", apart, mu_of(epsilon, delta))
    step = 2.0**-52
    while (true_delta := gaussian_delta(sigma, epsilon, apart)) > delta:
        sigma, step = sigma * (1.0 + step), 2.0 * step
    return CalibratedGaussian(sigma, epsilon, delta, apart, true_delta, "analytic")
