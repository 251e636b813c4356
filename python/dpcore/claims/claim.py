"""The contract of a claim that is a curve, and Gaussian differential privacy."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..bounds.canaries import gaussian_mu
from ..bounds.profile import epsilon_of, log_delta
from ..bounds.tradeoff import check_array
from ..errors import delta_level, real
from ..hints import hinted
from ..records import Counts, Record

__all__ = ["GDP", "Claim", "choose_tangent"]

Floats = npt.NDArray[np.float64]

_CURVE_ERROR: Final = 1e-13
"""Relative error of the functions that a curve is computed with; rounding goes to the safe side."""
_TANGENT_COUNT: Final = 96
"""Slopes among which a pilot chooses the tangent of a claim."""
_MIN_TANGENT_DELTA: Final = 1e-15
_MAX_TANGENT_SLOPE: Final = 700.0
_MAX_PARAMETER: Final = 2.0**40
_BISECTION_STEPS: Final = 50


class Claim(Record):
    """A claim that is a trade-off curve f, in both orders of any two neighbouring inputs.

    A test of "the input was x'" against "it was x" with type I error a has a type II error of at
    least f(a). f is convex, falls from at most 1 - a, and is its own inverse, for the claim is
    about both orders. (epsilon, delta)-DP follows for every epsilon at ``delta(epsilon)``, which
    is the tangent of slope -e^epsilon.

    Whatever is rounded is rounded so that the claim promises less: f down, delta and epsilon up.

    Attributes:
        parameter: the name of the one number of the claim, "mu" or "rho"; None if it has several.
        conversion: how the curve follows from what is claimed.
    """

    __slots__ = ()

    parameter: ClassVar[str | None] = None
    conversion: ClassVar[str] = ""

    def trade_off(self, alpha: npt.ArrayLike) -> Any:
        """Return the least type II error of any test with a given type I error, rounded down.

        Args:
            alpha: type I errors, any shape, from 0 to 1.

        Returns:
            The type II errors, same shape; a float for a single one.

        Raises:
            TypeError: if they are not numbers.
            ValueError: if one is not from 0 to 1.
        """
        errors = check_array("alpha", alpha, 0.0, 1.0)
        found = self._type_two(errors.ravel()).reshape(errors.shape)
        return _as_float_or_array(np.clip(found, 0.0, 1.0 - errors))

    def delta(self, epsilon: npt.ArrayLike) -> Any:
        """Return the least delta for which the claim implies (epsilon, delta)-DP, rounded up.

        ``delta(epsilon) = max over a of 1 - f(a) - e^epsilon a``.

        Args:
            epsilon: epsilons, any shape, at least 0.

        Returns:
            The deltas, same shape, from 0 to 1; a float for a single one.

        Raises:
            TypeError: if they are not numbers.
            ValueError: if one is negative or not a number.
        """
        wanted = check_array("epsilon", epsilon, 0.0, math.inf)
        found = self._deltas(wanted.ravel()).reshape(wanted.shape)
        return _as_float_or_array(np.clip(found, 0.0, 1.0))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon for which the claim implies (epsilon, delta)-DP, rounded up.

        Args:
            delta: in [0, 1).

        Returns:
            Epsilon, at least 0; infinite where the claim implies none at this delta.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if it is out of range.
        """
        return self._epsilon(delta_level(delta))

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power: the inverse of 1 - f.

        Args:
            power: probability of being right on x, from 0 to 1.

        Returns:
            The type I error, rounded down.
        """
        # f is its own inverse. Where `power` is small, 1 - power has lost digits of it.
        return float(self._type_two(np.array([1.0 - power]))[0])

    def tangents(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) among which a pilot chooses what one event can refute.

        Returns:
            Epsilons in rising order and the delta of each, rounded up.
        """
        return _compute_tangents(self)

    def excess(self, p: Floats, q: Floats) -> Floats:
        """Return by how much events stand out from what the claim allows, for a pilot's choice.

        Args:
            p: rates on the numerator's side, limited from below.
            q: rates on the other side, limited from above, same shape.

        Returns:
            The difference of Phi^-1(p) and Phi^-1 of the largest rate that the tangents allow
            beside q, plus that of a Gaussian claim of the same delta(0); at least 0, and for
            `GDP` about the mu that the rates show.
        """
        from scipy.special import ndtri

        epsilons, deltas = self.tangents()
        allowed = np.full(np.shape(q), 1.0)
        for slope, delta in zip(np.exp(epsilons).tolist(), deltas.tolist(), strict=True):
            allowed = np.minimum(allowed, delta + slope * q)
        usual = 2.0 * float(ndtri(0.5 + 0.5 * min(deltas[0], 1.0 - 1e-15)))
        with np.errstate(invalid="ignore"):
            found: Floats = np.where(allowed < 1.0, ndtri(p) - ndtri(allowed) + usual, 0.0)
        return np.maximum(found, 0.0)

    def gaussian(self) -> float:
        """Return the largest mu of Gaussian noise that keeps the claim, at its tangents.

        For `ZCDP` it is sqrt(2 rho), for Gaussian noise of that mu keeps exactly rho.
        """
        pairs = zip(*(one.tolist() for one in self.tangents()), strict=True)
        return min(gaussian_mu(*pair) for pair in pairs if 0.0 < pair[1] < 1.0)

    def with_parameter(self, value: float) -> Claim:
        """Return the claim of the same kind with another number."""
        make: Callable[[float], Claim] = type(self)
        return make(value)

    def largest(self, refuted: Callable[[Claim], bool], tolerance: float = 0.0) -> float:
        """Return the largest parameter that is refuted, by bisection from below.

        Args:
            refuted: True for a claim that is refuted; what refutes a claim refutes every smaller
                one.
            tolerance: relative width at which the search ends.

        Returns:
            The parameter; 0 if not even a vanishing one is refuted.
        """
        low, high = 0.0, 1.0
        while high < _MAX_PARAMETER and refuted(self.with_parameter(high)):
            low, high = high, 2.0 * high
        for _ in range(_BISECTION_STEPS):
            middle = (low + high) / 2.0
            if middle in (low, high) or high - low <= tolerance * high:
                break
            low, high = (middle, high) if refuted(self.with_parameter(middle)) else (low, middle)
        return low

    @abstractmethod
    def in_words(self) -> str:
        """Return the claim as reports state it."""

    @abstractmethod
    def _type_two(self, errors: Floats) -> Floats:
        """Return f at type I errors, shape `(m,)`."""

    @abstractmethod
    def _deltas(self, epsilons: Floats) -> Floats:
        """Return delta at epsilons, shape `(m,)`."""

    @abstractmethod
    def _epsilon(self, delta: float) -> float:
        """Return epsilon at a delta."""

    def __repr__(self) -> str:
        """Return one line: the claim, and the derivation of its curve."""
        return f"<{type(self).__name__} {self.in_words()}: {self.conversion}>"

    def __str__(self) -> str:
        """Return the claim in words."""
        return self.in_words()


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GDP(Claim, word="GDP"):
    """A claim of mu-Gaussian differential privacy: no easier to test than N(0, 1) and N(mu, 1).

    ``f(a) = Phi(Phi^-1(1 - a) - mu)`` and ``delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu)``, both exact. Noise N(0, sigma^2) on a query whose value changes by
    at most s keeps GDP(s/sigma).

    Args:
        mu: above 0.

    Raises:
        TypeError: if `mu` is not a number.
        ValueError: if it is not finite or not above 0.

    Source:
        Dong, Roth and Su (2022), JRSS B 84, definition 2.6 and corollary 2.13.

    Example:
        >>> claim = GDP(1.0)
        >>> round(claim.delta(1.0), 4), round(claim.epsilon(1e-5), 4)
        (0.1269, 4.3772)
        >>> claim.trade_off([0.0, 0.05, 1.0]).round(4).tolist()
        [1.0, 0.7405, 0.0]
    """

    mu: float

    parameter: ClassVar[str | None] = "mu"
    conversion: ClassVar[str] = "delta and trade-off curve are exact"

    def __post_init__(self) -> None:
        """Check and store a float."""
        object.__setattr__(self, "mu", real("mu", self.mu, low=0.0, open_low=True))

    def in_words(self) -> str:
        """Return the claim as reports state it."""
        return f"mu <= {self.mu:g} (Gaussian DP)"

    def gaussian(self) -> float:
        """Return mu."""
        return self.mu

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(float(ndtri(power)) - self.mu)) * (1.0 - _CURVE_ERROR)

    def _type_two(self, errors: Floats) -> Floats:
        from scipy.special import ndtr, ndtri

        # Phi^-1(1 - a) = -Phi^-1(a), and close to 1 it is the power that has the digits.
        score = ndtri(errors) + self.mu
        found: Floats = np.where(
            score < 0.0,
            1.0 - ndtr(score) * (1.0 + _CURVE_ERROR),
            ndtr(-score) * (1.0 - _CURVE_ERROR),
        )
        return found

    def _deltas(self, epsilons: Floats) -> Floats:
        logs = [log_delta(e, self.mu) if e < math.inf else -math.inf for e in epsilons.tolist()]
        return np.exp(logs) * (1.0 + _CURVE_ERROR)

    def _epsilon(self, delta: float) -> float:
        return math.inf if delta == 0.0 else epsilon_of(self.mu, delta) * (1.0 + _CURVE_ERROR)


@lru_cache(maxsize=64)
def _compute_tangents(claim: Claim) -> tuple[Floats, Floats]:
    """Return the tangents of a claim, which every candidate of an event is compared with."""
    epsilons = tangent_slopes(claim)
    deltas = np.asarray(claim.delta(epsilons))
    for array in (epsilons, deltas):
        array.flags.writeable = False
    return epsilons, deltas


def choose_tangent(claim: Claim, counts: Counts) -> tuple[float, float]:
    """Return the (epsilon, delta) of a claim that an event is expected to refute best.

    Of the claim's tangents it is the one that the rates exceed by most standard errors. It must
    be chosen on draws that are not counted.

    Args:
        claim: the claim.
        counts: the pilot's, the numerator's side first.

    Returns:
        Epsilon and delta, rounded up.

    Example:
        >>> from dpcore.records import Counts
        >>> epsilon, delta = choose_tangent(GDP(1.0), Counts(500, 1000, 100, 1000))
        >>> round(epsilon, 2), round(delta, 3)
        (0.62, 0.209)
    """
    p = (counts.k + 0.5) / (counts.n + 1.0)
    q = (counts.k_prime + 0.5) / (counts.n_prime + 1.0)
    epsilons, deltas = claim.tangents()
    slopes = np.exp(epsilons)
    spread = p * (1.0 - p) / counts.n + slopes**2 * (q * (1.0 - q) / counts.n_prime)
    best = int(np.argmax((p - slopes * q - deltas) / np.sqrt(spread)))
    epsilon = float(epsilons[best])
    return epsilon, float(claim.delta(epsilon))


@lru_cache(maxsize=64)
def tangent_slopes(claim: Claim) -> Floats:
    """Return epsilons from 0 to where the delta of a claim is next to nothing, denser near 0."""
    most = claim.epsilon(_MIN_TANGENT_DELTA)
    if not math.isfinite(most):
        # Of a curve whose delta never falls so low, to where it stops falling.
        most = claim.epsilon(min(0.999, claim.delta(_MAX_TANGENT_SLOPE) + _MIN_TANGENT_DELTA))
    return min(most, _MAX_TANGENT_SLOPE) * np.linspace(0.0, 1.0, _TANGENT_COUNT) ** 1.5


def _as_float_or_array(array: Floats) -> Any:
    """Return an array, or the float that an array of no dimension holds."""
    return array.item() if array.ndim == 0 else array
