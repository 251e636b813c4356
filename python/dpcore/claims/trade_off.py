"""Claims that are trade-off curves: their contract, Gaussian privacy, and curves as tables.

A table is stored as the tangents of its curve.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..bounds.canaries import gdp_mu
from ..bounds.tradeoff import check_array, epsilon_of, log_delta
from ..errors import delta_level, invalid, mistyped, numeric, real, show
from ..records import Counts, Floats, Record, frozen_array, set_fields
from ..report.shown import one_line
from ..suggestions import suggest_arguments

_CURVE_ERROR: Final = 1e-13
"""Relative error of the functions that compute a curve; rounding is always to the safe side."""
_TANGENT_COUNT: Final = 96
"""Number of slopes from which a pilot chooses the tangent of a claim."""
_MIN_TANGENT_DELTA: Final = 1e-15
_MAX_TANGENT_SLOPE: Final = 700.0
_REMOTE_DELTA: Final = 1e-5
"""Delta that is stated for a claim without tangents, if the claim implies an epsilon there."""
_MAX_STATED_EPSILON: Final = 1e300
_MAX_PARAMETER: Final = 2.0**40
_BISECTION_STEPS: Final = 50

_TYPE_ONE_ERRORS: Final = np.concatenate(
    [
        [0.0],
        np.geomspace(1e-12, 1e-3, 161)[:-1],
        np.linspace(1e-3, 0.999, 697),
        1.0 - np.geomspace(1e-3, 1e-12, 161)[1:],
        [1.0],
    ]
)
"""Type I errors at which a function is read."""
_FUNCTION_ROUNDING: Final = (1e-13, 4e-16)
"""Assumed rounding errors of a function: of its value, and of its argument (times the slope).
Values may exceed a chord by this much, and they are lowered by it."""
_TANGENT_ROUNDING: Final = 1e-15

_Corner = tuple[float, float]
_Test = Callable[[_Corner, _Corner, _Corner], bool]


class Claim(Record):
    """A claim that is a trade-off curve f, in both orders of any two neighbouring inputs.

    Consider a test of "the input was x'" against "it was x". If its type I error is a, its type II
    error is at least f(a). f is convex and at most 1 - a. It is its own inverse, because the claim
    covers both orders. For every epsilon, the claim implies (epsilon, delta)-DP with the delta
    ``delta(epsilon)``. This delta belongs to the tangent of slope -e^epsilon.

    All rounding makes the claim weaker: f is rounded down, delta and epsilon are rounded up.

    Attributes:
        parameter: name of the single number of the claim, "mu" or "rho", or None if it has several.
        conversion: how the curve follows from the claim.
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
            TypeError: if `alpha` does not hold numbers.
            ValueError: if a value is not from 0 to 1.
        """
        errors = check_array("alpha", alpha, 0.0, 1.0)
        type_two = self._type_two(errors.ravel()).reshape(errors.shape)
        return _as_float_or_array(np.clip(type_two, 0.0, 1.0 - errors))

    def delta(self, epsilon: npt.ArrayLike) -> Any:
        """Return the least delta for which the claim implies (epsilon, delta)-DP, rounded up.

        ``delta(epsilon) = max over a of 1 - f(a) - e^epsilon a``.

        Args:
            epsilon: epsilons, any shape, at least 0.

        Returns:
            The deltas, same shape, from 0 to 1; a float for a single one.

        Raises:
            TypeError: if `epsilon` does not hold numbers.
            ValueError: if a value is negative or NaN.
        """
        epsilons = check_array("epsilon", epsilon, 0.0, math.inf)
        deltas = self._deltas(epsilons.ravel()).reshape(epsilons.shape)
        return _as_float_or_array(np.clip(deltas, 0.0, 1.0))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon for which the claim implies (epsilon, delta)-DP, rounded up.

        Args:
            delta: delta, in [0, 1).

        Returns:
            Epsilon, at least 0; infinite if the claim implies no epsilon at this delta.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if `delta` is out of range.
        """
        return self._epsilon(delta_level(delta))

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power: the inverse of 1 - f.

        Args:
            power: probability of the correct decision on x, from 0 to 1.

        Returns:
            The type I error, rounded down.
        """
        # f is its own inverse. If `power` is small, 1 - power has lost some of its digits.
        return float(self._type_two(np.array([1.0 - power]))[0])

    def tangents(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) pairs among which a pilot chooses the pair to refute.

        Returns:
            Increasing epsilons, up to 700, and the delta of each, below 1. Both arrays are empty if
            the claim implies no delta below 1 at any of them.
        """
        return _compute_tangents(self)

    def excess(self, p: Floats, q: Floats) -> Floats:
        """Return a merit of events, by how far they exceed the claim; the pilot chooses by it.

        Args:
            p: lower limits of the rates on the numerator's side.
            q: upper limits of the rates on the other side, same shape.

        Returns:
            A merit for each event. Let r be the largest rate that the tangents allow together with
            q. The merit is Phi^-1(p) - Phi^-1(r), plus the mu of a Gaussian claim with the same
            delta(0). For `GDP` it is about the mu that the rates show; without tangents it is that
            mu. If the rates show no violation, the merit is below 0, and a larger merit is still
            better.
        """
        from scipy.special import ndtri

        if np.shape(p) != np.shape(q):
            raise invalid("p", f"of the shape of q, {np.shape(q)}", np.shape(p))
        epsilons, deltas = self.tangents()
        allowed = np.full(np.shape(q), 1.0) if epsilons.size else q
        for slope, delta in zip(np.exp(epsilons).tolist(), deltas.tolist(), strict=True):
            allowed = np.minimum(allowed, delta + slope * q)
        # A first tangent of delta 1 was left out.
        levels = deltas if self.delta(0.0) < 1.0 else np.ones(1)
        usual = 2.0 * ndtri(0.5 + 0.5 * min(levels[0], 1.0 - 1e-15)) if epsilons.size else 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = ndtri(p) - ndtri(allowed) + usual
            # Among events without a violation, a smaller rate on the other side is better.
            rank: Floats = np.nan_to_num(p / (p + q), nan=0.5) - 2.0
        merits: Floats = np.where((allowed < 1.0) & (gain > 0.0), gain, rank)
        return merits

    def gaussian(self) -> float:
        """Return the largest mu of Gaussian noise that satisfies the claim, at its tangents.

        For `ZCDP` it is sqrt(2 rho), because Gaussian noise of that mu satisfies exactly rho. It is
        0 if a tangent has delta 0, and infinite if the claim has no tangent.
        """
        pairs = zip(*(row.tolist() for row in self.tangents()), strict=True)
        return min((gdp_mu(*pair) if pair[1] else 0.0 for pair in pairs), default=math.inf)

    def with_parameter(self, value: float) -> Claim:
        """Return the claim of the same kind with a different parameter."""
        return type(self)(value)  # type: ignore[call-arg]

    def largest(self, refuted: Callable[[Claim], bool], tolerance: float = 0.0) -> float:
        """Return the largest parameter that is refuted, by bisection from below.

        Args:
            refuted: function that returns True if a claim is refuted. If it refutes a claim, it
                must refute every smaller one.
            tolerance: relative width at which the search ends.

        Returns:
            The parameter; 0 if not even a parameter close to 0 is refuted.
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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GDP(Claim, word="GDP"):
    """A claim of mu-Gaussian differential privacy.

    The two outputs are at least as hard to distinguish as N(0, 1) and N(mu, 1).

    ``f(a) = Phi(Phi^-1(1 - a) - mu)`` and ``delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu)``. Both are exact. If the value of a query changes by at most s, noise
    N(0, sigma^2) on this value satisfies GDP(s/sigma).

    Args:
        mu: the parameter, above 0.

    Raises:
        TypeError: if `mu` is not a number.
        ValueError: if `mu` is not finite or not above 0.

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
        """Check mu and store it as a float."""
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

        # Phi^-1(1 - a) = -Phi^-1(a); close to 1, the power keeps the digits.
        score = ndtri(errors) + self.mu
        type_two: Floats = np.where(
            score < 0.0,
            np.nextafter(1.0 - ndtr(score) * (1.0 + _CURVE_ERROR), 0.0),
            ndtr(-score) * (1.0 - _CURVE_ERROR),
        )
        return type_two

    def _deltas(self, epsilons: Floats) -> Floats:
        logs = [log_delta(e, self.mu) if e < math.inf else -math.inf for e in epsilons.tolist()]
        # The rounding error of a logarithm is relative to its size.
        return np.exp(logs) * (1.0 + _CURVE_ERROR * np.clip(np.abs(logs) / 100.0, 1.0, 10.0))

    def _epsilon(self, delta: float) -> float:
        epsilon = epsilon_of(self.mu, delta) if delta else math.inf
        # On a flat part of the curve, the rounding of delta moves epsilon by more than its own
        # rounding.
        if delta > 0.5 or epsilon < self.mu:
            epsilon = epsilon_of(self.mu, delta * (1.0 - _CURVE_ERROR))
        return epsilon * (1.0 + _CURVE_ERROR)


@lru_cache(maxsize=64)
def _compute_tangents(claim: Claim) -> tuple[Floats, Floats]:
    """Return the tangents of a claim; every candidate of an event is compared with them."""
    epsilons = tangent_slopes(claim)
    deltas = np.asarray(claim.delta(epsilons))
    epsilons, deltas = epsilons[deltas < 1.0], deltas[deltas < 1.0]
    for array in (epsilons, deltas):
        array.flags.writeable = False
    return epsilons, deltas


def choose_tangent(claim: Claim, counts: Counts) -> tuple[float, float]:
    """Return the (epsilon, delta) of a claim that an event is expected to refute best.

    It is the tangent that the rates exceed by the largest number of standard errors. It must be
    chosen on draws that are not counted. For a claim without tangents it is `find_remote_tangent`.

    Args:
        claim: the claim.
        counts: counts of the pilot, the numerator's side first.

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
    # All terms are divided by e^epsilon, because its square may overflow.
    flat = np.exp(-epsilons)
    spread = flat**2 * (p * (1.0 - p) / counts.n) + q * (1.0 - q) / counts.n_prime
    for place in np.argsort((q - flat * (p - deltas)) / np.sqrt(spread), kind="stable").tolist():
        # The tangents of Renyi claims come from a polygon, but the delta here comes from the curve.
        delta = float(claim.delta(epsilons[place]))
        if delta < 1.0:
            return float(epsilons[place]), delta
    return find_remote_tangent(claim)


def find_remote_tangent(claim: Claim) -> tuple[float, float]:
    """Return the (epsilon, delta) that reports state for a claim that no count can refute."""
    delta = min(max(_REMOTE_DELTA, claim.delta(math.inf)), math.nextafter(1.0, 0.0))
    # No count certifies this largest stated number either, and plots extend beyond it.
    return min(claim.epsilon(delta), _MAX_STATED_EPSILON), delta


@lru_cache(maxsize=64)
def tangent_slopes(claim: Claim) -> Floats:
    """Return epsilons from 0 to the one at which delta is almost 0, denser near 0."""
    most = claim.epsilon(_MIN_TANGENT_DELTA)
    if not math.isfinite(most):
        # If delta never falls so low, go to the epsilon at which it stops falling.
        most = claim.epsilon(min(0.999, claim.delta(_MAX_TANGENT_SLOPE) + _MIN_TANGENT_DELTA))
    return min(most, _MAX_TANGENT_SLOPE) * np.linspace(0.0, 1.0, _TANGENT_COUNT) ** 1.5


def _as_float_or_array(array: Floats) -> Any:
    """Return an array, or a float if the array has no dimension."""
    return array.item() if array.ndim == 0 else array


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TradeOff(Claim, word="TradeOff"):
    """A claim of any trade-off curve: a function, or (epsilon, delta) pairs that hold together.

    A function is read at 1,019 type I errors. By convexity, the lines through neighbouring points
    lie below the function outside their interval. The claim is the largest convex curve that these
    lines allow. It is never above the function, and it cannot show a delta below 1e-12. If a
    function f is not its own inverse, the claim is max(f, f^-1), because it covers both orders of a
    pair. Files and other processes store the table, never the function.

    Args:
        function: function from a type I error, a float from 0 to 1, to the least type II error. It
            must be convex, at least 0 and at most 1 - a. None if epsilons and deltas are given.
        epsilons: epsilons, at least 0, increasing, shape `(m,)`.
        deltas: delta of each, from 0 to below 1.
        origin: source of the curve, for reports.

    Raises:
        TypeError: if an argument has the wrong type, or both or neither form is given.
        ValueError: if the function is not convex, is below 0, or is above 1 - a; the message names
            the point. Also if epsilons are not increasing, or an entry is out of range.

    Source:
        Dong, Roth and Su (2022), definition 2.1, proposition 2.12 for (epsilon, delta) pairs as
        tangents.

    Example:
        >>> claim = TradeOff(lambda a: max(0.0, 1.0 - 2.0 * a, (1.0 - a) / 2.0))
        >>> round(claim.epsilon(1e-9), 6), round(claim.delta(0.0), 6)
        (0.693147, 0.333333)
        >>> round(TradeOff(epsilons=[1.0, 4.0], deltas=[0.1, 1e-5]).delta(1.0), 6)
        0.1
    """

    epsilons: Floats
    deltas: Floats
    origin: str

    conversion: ClassVar[str] = "a table of tangents, rounded down"

    def __init__(
        self,
        function: Callable[[float], float] | None = None,
        epsilons: npt.ArrayLike | None = None,
        deltas: npt.ArrayLike | None = None,
        origin: str = "",
    ) -> None:
        """Read the function, or check the pairs."""
        if (function is None) == (epsilons is None) or (epsilons is None) != (deltas is None):
            raise mistyped("function", "given, or epsilons and deltas instead of it", function)
        if function is not None:
            if not callable(function):
                raise mistyped("function", "a function of a type I error", function)
            origin = origin or f"function {getattr(function, '__name__', show(function))}"
            corners = outer_corners(_TYPE_ONE_ERRORS, _read_function(function))
            epsilons, deltas = _convert_to_pairs(*corners)
        slopes, heights = map(frozen_array, _check_pairs(epsilons, deltas))
        origin = one_line(origin or "pairs of epsilon and delta", 60)
        set_fields(self, epsilons=slopes, deltas=heights, origin=origin)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the arguments that rebuild the claim from its table."""
        return type(self), (None, self.epsilons, self.deltas, self.origin)

    def in_words(self) -> str:
        """Return the claim as reports state it."""
        return f"trade-off curve of {self.origin}"

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power."""
        epsilons, deltas = self._list_representable()
        first = float(((power - deltas) * np.exp(-epsilons)).max(initial=0.0))
        second = float((1.0 - deltas - np.exp(epsilons) * (1.0 - power)).max(initial=0.0))
        return max(first * (1.0 - _TANGENT_ROUNDING), second - _TANGENT_ROUNDING)

    def tangents(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) pairs for a pilot's choice; all pairs of a short table."""
        few = self.epsilons.size <= _TANGENT_COUNT
        return self._list_representable() if few else _compute_tangents(self)

    def _list_representable(self) -> tuple[Floats, Floats]:
        """Return the pairs for which e^epsilon is a float64."""
        keep = self.epsilons <= _MAX_TANGENT_SLOPE
        return self.epsilons[keep], self.deltas[keep]

    def _type_two(self, errors: Floats) -> Floats:
        epsilons, deltas = self._list_representable()
        steep, flat = np.exp(epsilons), np.exp(-epsilons)
        first = (1.0 - deltas - steep * errors[:, np.newaxis]).max(axis=1, initial=0.0)
        second = (flat * (1.0 - deltas - errors[:, np.newaxis])).max(axis=1, initial=0.0)
        type_two: Floats = np.maximum(np.maximum(first, second) - _TANGENT_ROUNDING, 0.0)
        return type_two

    def _deltas(self, epsilons: Floats) -> Floats:
        logs, deltas = _list_tangents(self)
        # Beyond the last tangent, the point (0, 1 - delta) limits the curve.
        epsilons = np.minimum(epsilons, logs[-1])
        place = np.searchsorted(logs, epsilons)
        left, right = (logs[place - 1], deltas[place - 1]), (logs[place], deltas[place])
        raised_deltas: Floats = _interpolate_delta(epsilons, left, right) * (
            1.0 + _TANGENT_ROUNDING
        )
        return raised_deltas

    def _epsilon(self, delta: float) -> float:
        logs, deltas = _list_tangents(self)
        if delta < deltas[-1]:
            return math.inf
        # delta(epsilon) decreases: find the first place at which it is low enough.
        place = int(np.argmax(deltas <= delta))
        if place == 0 or logs[place] <= 0.0:
            return 0.0
        share = (delta - deltas[place]) / (deltas[place - 1] - deltas[place])
        last = float(logs[place])
        drop = math.log1p(share * math.expm1(logs[place - 1] - last))
        return max(0.0, last + drop + _TANGENT_ROUNDING * last)


@lru_cache(maxsize=64)
def _list_tangents(claim: TradeOff) -> tuple[Floats, Floats]:
    """Return logarithms of slopes and deltas of all tangents; delta is convex in the slope.

    A tangent of the curve gives a tangent of its inverse too. Since the curve is not below 0, slope
    0 with delta 1 is added. Between two tangents, the corner between them determines delta.
    """
    steep, heights = claim.epsilons, claim.deltas
    logs = np.concatenate([[-math.inf], -steep[::-1], steep])
    # The line a = (1 - delta) - s b of the inverse is b = (1 - delta)/s - a/s.
    mirrored = (heights * np.exp(-steep) - np.expm1(-steep))[::-1]
    deltas = np.concatenate([[1.0], mirrored, heights])
    # 1 - a is above every curve: delta is never below 0 and never increases with the slope.
    return _lower_hull(logs, np.minimum.accumulate(deltas), _is_above_chord)


def _interpolate_delta(log: Any, left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Return delta at a slope between two tangents, with all slopes as logarithms."""
    share = np.expm1(log - right[0]) / np.expm1(left[0] - right[0])
    return right[1] + (left[1] - right[1]) * share


def _is_above_chord(first: _Corner, middle: _Corner, last: _Corner) -> bool:
    """Return True if a tangent implies no more than its two neighbours (slopes as logarithms)."""
    return middle[1] >= float(_interpolate_delta(middle[0], first, last))


def check_number_row(name: str, value: Any, partner: tuple[Floats, str] | None = None) -> Floats:
    """Return an argument as a row of float64 with at least one entry.

    Args:
        name: name of the argument.
        value: value of the argument.
        partner: a row of the same length, with the name of one of its numbers; or None.

    Raises:
        TypeError: if `value` does not hold numbers.
        ValueError: if `value` is empty, not one-dimensional, or of a different length.
    """
    array = numeric(name, "a non-empty row of numbers", value)
    if array.ndim != 1 or array.size == 0:
        raise invalid(name, "a non-empty row of numbers", value)
    if partner is not None and array.shape != partner[0].shape:
        raise invalid(name, f"{partner[0].size} numbers, one for each {partner[1]}", value)
    return array.astype(np.float64)


def check_rising(name: str, row: Floats) -> None:
    """Raise a ValueError unless each number of a row is above the one before it."""
    if (np.diff(row) <= 0.0).any():
        raise invalid(name, "in rising order, each given once", row)


def _check_pairs(epsilons: Any, deltas: Any) -> tuple[Floats, Floats]:
    """Return checked epsilons and deltas."""
    slopes = check_number_row("epsilons", epsilons)
    heights = check_number_row("deltas", deltas, (slopes, "epsilon"))
    if not (np.isfinite(slopes) & (slopes >= 0.0)).all():
        raise invalid("epsilons", "finite and at least 0 in every entry", epsilons)
    check_rising("epsilons", slopes)
    if not ((heights >= 0.0) & (heights < 1.0)).all():
        raise invalid("deltas", "at least 0 and below 1 in every entry", deltas)
    return slopes, heights


def _read_function(function: Callable[[float], float]) -> Floats:
    """Return the values of a function at the type I errors, checked and lowered by rounding."""
    points = []
    for error in _TYPE_ONE_ERRORS.tolist():
        value = function(error)
        try:
            points.append(float(value))
        except (TypeError, ValueError):
            raise mistyped(f"function({error:g})", "a number", value) from None
    values = np.array(points)
    errors, (of_value, of_argument) = _TYPE_ONE_ERRORS, _FUNCTION_ROUNDING
    for index in np.flatnonzero(~((values >= 0.0) & (values <= 1.0 - errors + of_value)))[:1]:
        most = f"from 0 to 1 - {errors[index]:g}"
        raise invalid(f"function({errors[index]:.6g})", most, values[index])
    slopes = np.abs(np.diff(values) / np.diff(errors))
    slack = of_value + of_argument * np.maximum(np.append(slopes, 0.0), np.append(0.0, slopes))
    share = (errors[1:-1] - errors[:-2]) / (errors[2:] - errors[:-2])
    chord = values[:-2] + share * (values[2:] - values[:-2])
    for index in np.flatnonzero(values[1:-1] > chord + slack[1:-1])[:1]:
        requirement = f"at most {chord[index]:.6g}, as a convex function is from its neighbours"
        raise invalid(f"function({errors[index + 1]:.6g})", requirement, values[index + 1])
    lowered: Floats = np.maximum(np.minimum(values, 1.0 - errors) - slack, 0.0)
    return lowered


def outer_corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return corners of a convex line that is nowhere above a convex function.

    On each interval between points, the function is above two lines: the line through the two
    points before the interval, and the line through the two points after it. The corners are where
    these lines cross.

    Args:
        x: increasing points, at least four.
        y: values of the convex function at these points.

    Returns:
        The corners, with increasing x from the first point to the last.
    """
    x, y = _lower_hull(x, y, _turns_up)
    if x.size < 4:
        return x, y
    slopes = np.diff(y) / np.diff(x)
    before, behind = slopes[:-2], slopes[2:]
    left, right = x[1:-2], x[2:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = (y[2:-1] - y[1:-2] - behind * (right - left)) / (before - behind)
    # The lines are parallel: the function is straight here.
    shift = np.where(np.isfinite(shift), shift, 0.0).clip(0.0, right - left)
    first = y[1] - slopes[1] * (x[1] - x[0])
    last = y[-2] + slopes[-2] * (x[-1] - x[-2])
    inner = y[1:-2] + before * shift
    x = np.concatenate([x[:1], left + shift, x[-1:]])
    return _lower_hull(x, np.concatenate([[first], inner, [last]]), _turns_up)


def _lower_hull(x: Floats, y: Floats, turns_up: _Test) -> tuple[Floats, Floats]:
    """Return the corners of the largest convex function that is nowhere above the points."""
    kept: list[_Corner] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if kept and point[0] <= kept[-1][0]:
            kept[-1] = (kept[-1][0], min(kept[-1][1], point[1]))
            continue
        while len(kept) > 1 and turns_up(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array([vertex[0] for vertex in kept]), np.array([vertex[1] for vertex in kept])


def _turns_up(first: _Corner, middle: _Corner, last: _Corner) -> bool:
    """Return True if the middle point lies on or above the line between the others."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


def _convert_to_pairs(errors: Floats, type_two: Floats) -> tuple[Floats, Floats]:
    """Return the (epsilon, delta) pairs of the pieces of a curve and of its inverse."""
    slopes = -np.diff(type_two) / np.diff(errors)
    heights = type_two[:-1] + slopes * errors[:-1]
    slopes, heights = slopes[slopes > 0.0], heights[slopes > 0.0]
    # A piece of slope below 1 is a piece of slope above 1 of the inverse, which holds as well.
    deltas = 1.0 - np.where(slopes >= 1.0, heights, heights / slopes)
    epsilons, deltas = least_deltas(np.abs(np.log(slopes)), deltas.clip(0.0, 1.0))
    if not (deltas < 1.0).any():
        return np.zeros(1), np.array([np.nextafter(1.0, 0.0)])
    return epsilons[deltas < 1.0], deltas[deltas < 1.0]


def least_deltas(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Return each distinct epsilon, increasing, with its least delta."""
    order = np.lexsort((deltas, epsilons))
    distinct, first = np.unique(epsilons[order], return_index=True)
    return distinct, deltas[order][first]
