"""Claims that are trade-off curves: the base class `Claim`, Gaussian DP, and any other curve.

A trade-off curve f maps the type I error of a test between two inputs to the least type II error. A
tangent of f with slope -e^epsilon states the same as (epsilon, delta)-DP for one delta. `TradeOff`
stores a curve as a table of such pairs (epsilon, delta).
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

from ..bounds.canaries import largest_gdp_mu
from ..bounds.tradeoff import check_array_range, epsilon_of, log_delta
from ..errors import delta_level, invalid, mistyped, numeric, real, show
from ..records import Counts, Floats, Record, frozen_array, set_fields
from ..report.shown import on_one_line
from ..suggestions import explain_argument_errors

_CURVE_ERROR: Final = 1e-13
"""Relative error of the functions that compute a curve. Rounding always makes the claim weaker."""
_TANGENT_COUNT: Final = 96
"""Number of (epsilon, delta) pairs of a claim from which an audit chooses one to test."""
_MIN_TANGENT_DELTA: Final = 1e-15
_MAX_TANGENT_SLOPE: Final = 700.0
_REMOTE_DELTA: Final = 1e-5
"""Delta in reports for a claim that no count can refute."""
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
"""Type I errors at which the code evaluates a user's function."""
_FUNCTION_ROUNDING: Final = (1e-13, 4e-16)
"""Assumed rounding errors of a user's function: of its value, and of its argument (times the
slope). The check for convexity allows errors of this size. The stored values are reduced by this
size."""
_TANGENT_ROUNDING: Final = 1e-15

_Corner = tuple[float, float]
_Test = Callable[[_Corner, _Corner, _Corner], bool]


class Claim(Record):
    """Base class of privacy claims: a trade-off curve f for any two neighbouring inputs.

    Let x and x' be two neighbouring inputs. Consider a test of the hypothesis "the input was x'"
    against the alternative "the input was x". The claim states: if the type I error of the test is
    a, the type II error is at least f(a). The curve f is convex, and f(a) is at most 1 - a. The
    claim is also about the exchanged inputs, x' and x. Therefore f equals its own inverse function.
    For every epsilon, the claim implies (epsilon, delta)-DP with the delta that the method
    ``delta(epsilon)`` returns. Each pair (epsilon, delta) corresponds to the tangent of f with
    slope -e^epsilon.

    Rounding always makes the claim weaker: f is rounded down, and delta and epsilon are rounded up.

    Attributes:
        parameter: name of the parameter of the claim, "mu" or "rho", or None if the claim has more
            than one number.
        conversion: text that describes how dpcore computes the curve f from the parameters.
    """

    __slots__ = ()

    parameter: ClassVar[str | None] = None
    conversion: ClassVar[str] = ""

    def trade_off(self, alpha: npt.ArrayLike) -> Any:
        """Return the least type II error that this claim allows at given type I errors.

        A test decides from an output which of two neighbouring inputs was used. The results are the
        least type II errors of such tests, rounded down.

        Args:
            alpha: type I errors from 0 to 1: an array of any shape, or one number.

        Returns:
            The least type II errors, in the shape of `alpha`. The result is a float if `alpha` is
            one number.

        Raises:
            TypeError: if `alpha` does not contain numbers.
            ValueError: if an entry of `alpha` is below 0 or above 1.
        """
        errors = check_array_range("alpha", alpha, 0.0, 1.0)
        type_two = self._type_two(errors.ravel()).reshape(errors.shape)
        return _as_float_or_array(np.clip(type_two, 0.0, 1.0 - errors))

    def delta(self, epsilon: npt.ArrayLike) -> Any:
        """Return the least delta for which this claim implies (epsilon, delta)-DP.

        The delta is ``max over a of 1 - f(a) - e^epsilon a``. Here f is the trade-off curve of the
        claim, and a is a type I error. The delta is rounded up.

        Args:
            epsilon: epsilons, at least 0: an array of any shape, or one number.

        Returns:
            Values of delta (between 0 and 1) in the shape of `epsilon`. The result is a float if
            `epsilon` is one number.

        Raises:
            TypeError: if `epsilon` does not contain numbers.
            ValueError: if an entry of `epsilon` is negative or NaN.
        """
        epsilons = check_array_range("epsilon", epsilon, 0.0, math.inf)
        deltas = self._deltas(epsilons.ravel()).reshape(epsilons.shape)
        return _as_float_or_array(np.clip(deltas, 0.0, 1.0))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon for which this claim implies (epsilon, delta)-DP.

        The epsilon is rounded up.

        Args:
            delta: delta of (epsilon, delta)-DP, in [0, 1).

        Returns:
            The least epsilon, at least 0. The result is infinite if the claim implies no finite
            epsilon at this delta.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if `delta` is out of range.
        """
        return self._epsilon(delta_level(delta))

    def least_type_one(self, power: float) -> float:
        """Return the least type I error that this claim allows for a test with a given power.

        The test decides from an output whether the input was x or x'. Here x and x' are two
        neighbouring inputs. The type I error is the probability of the decision "x" if the input
        was x'.

        Args:
            power: probability of the decision "x" if the input was x, from 0 to 1.

        Returns:
            The least type I error, rounded down.
        """
        # f is its own inverse. If `power` is small, 1 - power has lost some of its digits.
        return float(self._type_two(np.array([1.0 - power]))[0])

    def tangents(self) -> tuple[Floats, Floats]:
        """Return several pairs (epsilon, delta) for which this claim implies (epsilon, delta)-DP.

        An audit chooses one of these pairs and tests it.

        Returns:
            Two arrays: increasing epsilons of at most 700, and the delta for each epsilon, below 1.
            Both arrays are empty if the claim does not imply a delta below 1 at any of these
            epsilons.
        """
        return _implied_epsilon_delta_pairs(self)

    def excess(self, p: Floats, q: Floats) -> Floats:
        """Return a score for each event. A larger score means a stronger violation of this claim.

        An event is a set of outputs of a mechanism. The claim limits the probabilities of an event
        on two neighbouring inputs x and x'.

        Args:
            p: lower limit on the probability of each event on x.
            q: upper limit on the probability of each event on x', in the shape of `p`.

        Returns:
            One score per event. Let r be the largest probability on x that the claim allows for an
            event with probability `q` on x'. Let m be the mu of the Gaussian DP claim that has the
            same delta at epsilon 0 as this claim. The score is Phi^-1(p) - Phi^-1(r) + m, if this
            number is above 0. Otherwise, the score is below 0 and increases with p / q.
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
        """Return the largest mu for which the Gaussian mechanism satisfies this claim.

        mu is the sensitivity divided by the standard deviation of the noise. The method tests only
        the pairs (epsilon, delta) that `tangents` returns. The result is 0 if one of these pairs
        has delta 0. If `tangents` returns empty arrays, the result is infinite.
        """
        pairs = zip(*(row.tolist() for row in self.tangents()), strict=True)
        return min((largest_gdp_mu(*pair) if pair[1] else 0.0 for pair in pairs), default=math.inf)

    def with_parameter(self, value: float) -> Claim:
        """Return a claim of the same class as this claim, with the parameter `value`.

        The parameter is mu for Gaussian DP, and rho for zCDP.
        """
        return type(self)(value)  # type: ignore[call-arg]

    def largest(self, refuted: Callable[[Claim], bool], tolerance: float = 0.0) -> float:
        """Return the largest parameter for which a claim of this class is refuted.

        The parameter is mu for Gaussian DP, and rho for zCDP. The method searches by bisection.

        Args:
            refuted: function that takes a claim, and returns True if the claim is refuted. If the
                claim with one parameter is refuted, claims with smaller parameters must be refuted
                too.
            tolerance: relative width of the search interval at which the bisection stops.

        Returns:
            The largest refuted parameter, rounded down. The result is 0 if no parameter is refuted.
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
        """Return this claim as text for reports, such as "mu <= 1 (Gaussian DP)"."""

    @abstractmethod
    def _type_two(self, errors: Floats) -> Floats:
        """Return the type II errors f at given type I errors, shape `(m,)`."""

    @abstractmethod
    def _deltas(self, epsilons: Floats) -> Floats:
        """Return the deltas that the claim implies at given epsilons, shape `(m,)`."""

    @abstractmethod
    def _epsilon(self, delta: float) -> float:
        """Return the epsilon that the claim implies at a delta."""

    def __repr__(self) -> str:
        """Return one line with the claim and the way in which dpcore computes its curve."""
        return f"<{type(self).__name__} {self.in_words()}: {self.conversion}>"

    def __str__(self) -> str:
        """Return the claim as text."""
        return self.in_words()


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GDP(Claim, word="GDP"):
    """A claim of mu-Gaussian differential privacy.

    For any two neighbouring inputs, the two output distributions are at least as hard to
    distinguish as N(0, 1) and N(mu, 1).

    The trade-off curve is ``f(a) = Phi(Phi^-1(1 - a) - mu)``. The claim implies (epsilon, delta)-DP
    with ``delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)``. Both formulas are
    exact. For example, suppose that the results of a query on two neighbouring inputs differ by at
    most s. Then the result plus noise N(0, sigma^2) satisfies GDP(s/sigma).

    Args:
        mu: parameter of Gaussian DP, above 0.

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
        """Return this claim as text for reports, such as "mu <= 1 (Gaussian DP)"."""
        return f"mu <= {self.mu:g} (Gaussian DP)"

    def gaussian(self) -> float:
        """Return the parameter mu of this claim of Gaussian DP."""
        return self.mu

    def least_type_one(self, power: float) -> float:
        """Return the least type I error that this claim allows for a test with a given power.

        The test decides from an output which of two neighbouring inputs was used. `power` is 1
        minus the type II error of the test. The result is rounded down.
        """
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
def _implied_epsilon_delta_pairs(claim: Claim) -> tuple[Floats, Floats]:
    """Compute the (epsilon, delta) pairs that the claim implies, at up to 96 epsilons."""
    epsilons = choose_epsilon_grid(claim)
    deltas = np.asarray(claim.delta(epsilons))
    epsilons, deltas = epsilons[deltas < 1.0], deltas[deltas < 1.0]
    for array in (epsilons, deltas):
        array.flags.writeable = False
    return epsilons, deltas


def choose_refutable_pair(claim: Claim, counts: Counts) -> tuple[float, float]:
    """Choose the pair (epsilon, delta) of a claim that is easiest to refute with new draws.

    A claim implies (epsilon, delta)-DP for several pairs (epsilon, delta). An audit tests one pair
    with one event, a set of outputs. The function estimates the probabilities p and q of the event
    on the inputs x and x'. For each pair, the function divides p - e^epsilon q - delta by the
    standard error of this number. The function returns the pair with the largest quotient. Do not
    use the same draws for this choice and for the test. If the claim does not imply any pair with a
    delta below 1 and an epsilon up to 700, the function returns the pair of
    `unrefutable_eps_delta`.

    Args:
        claim: claim that the audit tests.
        counts: counts of the event on x and x' among the first draws of the audit (the pilot).

    Returns:
        Epsilon and delta, rounded up.

    Example:
        >>> from dpcore.records import Counts
        >>> epsilon, delta = choose_refutable_pair(GDP(1.0), Counts(500, 1000, 100, 1000))
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
    return unrefutable_eps_delta(claim)


def unrefutable_eps_delta(claim: Claim) -> tuple[float, float]:
    """Return a pair (epsilon, delta) that follows from a claim, but that no draws can refute.

    The pair is for use in reports. No count of draws can refute the pair.
    """
    delta = min(max(_REMOTE_DELTA, claim.delta(math.inf)), math.nextafter(1.0, 0.0))
    # No count certifies this largest stated number either, and plots extend beyond it.
    return min(claim.epsilon(delta), _MAX_STATED_EPSILON), delta


@lru_cache(maxsize=64)
def choose_epsilon_grid(claim: Claim) -> Floats:
    """Return 96 epsilons at which an audit can compute the delta of a claim.

    The epsilons increase from 0 to a value at which the delta is almost 0, or above which the delta
    does not decrease. No epsilon is above 700.
    """
    most = claim.epsilon(_MIN_TANGENT_DELTA)
    if not math.isfinite(most):
        # If delta never falls so low, go to the epsilon at which it stops falling.
        most = claim.epsilon(min(0.999, claim.delta(_MAX_TANGENT_SLOPE) + _MIN_TANGENT_DELTA))
    return min(most, _MAX_TANGENT_SLOPE) * np.linspace(0.0, 1.0, _TANGENT_COUNT) ** 1.5


def _as_float_or_array(array: Floats) -> Any:
    """Return an array, or a float if the array has no dimension."""
    return array.item() if array.ndim == 0 else array


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TradeOff(Claim, word="TradeOff"):
    """A privacy claim with any trade-off curve, from a function or from pairs (epsilon, delta).

    Give either `function`, or `epsilons` and `deltas`. With `epsilons` and `deltas`, the claim
    states that the mechanism is (epsilon, delta)-DP for every pair.

    dpcore evaluates `function` at 1,019 type I errors, and replaces `function` by a convex curve
    that is never above `function`. Therefore the claim becomes slightly weaker. The curve cannot
    represent a delta below 1e-12. The claim is also about the exchanged neighbouring inputs.
    Therefore, if the function f does not equal its inverse, the claim is max(f, f^-1). dpcore
    stores the curve as a table of pairs (epsilon, delta). Files and pickles contain only this
    table, not the function.

    Args:
        function: function that takes a type I error a, a float from 0 to 1, and returns the least
            type II error. The function must be convex. Each value must be from 0 to `1 - a`. None
            if `epsilons` and `deltas` are given.
        epsilons: epsilons of the pairs, at least 0, increasing, shape `(m,)`. None if `function` is
            given.
        deltas: delta of each pair, at least 0 and below 1, shape `(m,)`. None if `function` is
            given.
        origin: text that names the source of the curve in reports.

    Raises:
        TypeError: if an argument has the wrong type, if both `function` and `epsilons` are given,
            or if neither is given.
        ValueError: if `function` is not convex, or returns a value below 0 or above 1 - a. The
            error is also raised if `epsilons` do not increase, or if an entry is out of range.

    Source:
        Dong, Roth and Su (2022), definition 2.1. Proposition 2.12 relates pairs (epsilon, delta) to
        tangents of the curve.

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
        """Evaluate the function, or check the (epsilon, delta) pairs."""
        if (function is None) == (epsilons is None) or (epsilons is None) != (deltas is None):
            raise mistyped("function", "given, or epsilons and deltas instead of it", function)
        if function is not None:
            if not callable(function):
                raise mistyped("function", "a function of a type I error", function)
            origin = origin or f"function {getattr(function, '__name__', show(function))}"
            corners = polyline_lower_bound(_TYPE_ONE_ERRORS, _read_function(function))
            epsilons, deltas = _curve_to_epsilon_deltas(*corners)
        slopes, heights = map(frozen_array, _check_pairs(epsilons, deltas))
        origin = on_one_line(origin or "pairs of epsilon and delta", 60)
        set_fields(self, epsilons=slopes, deltas=heights, origin=origin)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what pickle needs to rebuild the claim from its table."""
        return type(self), (None, self.epsilons, self.deltas, self.origin)

    def in_words(self) -> str:
        """Return this claim as text for reports. The text names the source of the curve."""
        return f"trade-off curve of {self.origin}"

    def least_type_one(self, power: float) -> float:
        """Return the least type I error that this claim allows for a test with a given power.

        The test decides from an output which of two neighbouring inputs was used. `power` is 1
        minus the type II error of the test. The result is rounded down.
        """
        epsilons, deltas = self._finite_epsilon_deltas()
        first = float(((power - deltas) * np.exp(-epsilons)).max(initial=0.0))
        second = float((1.0 - deltas - np.exp(epsilons) * (1.0 - power)).max(initial=0.0))
        return max(first * (1.0 - _TANGENT_ROUNDING), second - _TANGENT_ROUNDING)

    def tangents(self) -> tuple[Floats, Floats]:
        """Return several pairs (epsilon, delta) for which this claim implies (epsilon, delta)-DP.

        The result is an array of the epsilons and an array of the deltas. An audit chooses one of
        the pairs and tests it.
        """
        few = self.epsilons.size <= _TANGENT_COUNT
        return self._finite_epsilon_deltas() if few else _implied_epsilon_delta_pairs(self)

    def _finite_epsilon_deltas(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) pairs for which e^epsilon is finite as a float64."""
        keep = self.epsilons <= _MAX_TANGENT_SLOPE
        return self.epsilons[keep], self.deltas[keep]

    def _type_two(self, errors: Floats) -> Floats:
        epsilons, deltas = self._finite_epsilon_deltas()
        steep, flat = np.exp(epsilons), np.exp(-epsilons)
        first = (1.0 - deltas - steep * errors[:, np.newaxis]).max(axis=1, initial=0.0)
        second = (flat * (1.0 - deltas - errors[:, np.newaxis])).max(axis=1, initial=0.0)
        type_two: Floats = np.maximum(np.maximum(first, second) - _TANGENT_ROUNDING, 0.0)
        return type_two

    def _deltas(self, epsilons: Floats) -> Floats:
        logs, deltas = _tangent_log_slopes_and_deltas(self)
        # Beyond the last tangent, the point (0, 1 - delta) limits the curve.
        epsilons = np.minimum(epsilons, logs[-1])
        place = np.searchsorted(logs, epsilons)
        left, right = (logs[place - 1], deltas[place - 1]), (logs[place], deltas[place])
        raised_deltas: Floats = _delta_between_tangents(epsilons, left, right) * (
            1.0 + _TANGENT_ROUNDING
        )
        return raised_deltas

    def _epsilon(self, delta: float) -> float:
        logs, deltas = _tangent_log_slopes_and_deltas(self)
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
def _tangent_log_slopes_and_deltas(claim: TradeOff) -> tuple[Floats, Floats]:
    """Return the log slopes and the deltas of all tangents of the curve.

    Each tangent of the curve also gives a tangent of its inverse. The curve is not below 0, so the
    function adds slope 0 with delta 1. Tangents that do not limit the curve are left out.
    """
    steep, heights = claim.epsilons, claim.deltas
    logs = np.concatenate([[-math.inf], -steep[::-1], steep])
    # The line a = (1 - delta) - s b of the inverse is b = (1 - delta)/s - a/s.
    mirrored = (heights * np.exp(-steep) - np.expm1(-steep))[::-1]
    deltas = np.concatenate([[1.0], mirrored, heights])
    # 1 - a is above every curve: delta is never below 0 and never increases with the slope.
    return _lower_hull(logs, np.minimum.accumulate(deltas), _is_middle_tangent_redundant)


def _delta_between_tangents(log_slope: Any, left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Return the delta at a slope between the slopes of two tangents (all slopes as logarithms)."""
    share = np.expm1(log_slope - right[0]) / np.expm1(left[0] - right[0])
    return right[1] + (left[1] - right[1]) * share


def _is_middle_tangent_redundant(first: _Corner, middle: _Corner, last: _Corner) -> bool:
    """Return True if the two other tangents limit the curve as much without the middle one."""
    return middle[1] >= float(_delta_between_tangents(middle[0], first, last))


def check_number_row(name: str, value: Any, partner: tuple[Floats, str] | None = None) -> Floats:
    """Check that an argument is a vector of at least one number, and return it as float64.

    Args:
        name: name of the argument, for error messages.
        value: value to check.
        partner: None, or a pair of a vector and a word. `value` must have the same length as this
            vector. In error messages, the word (such as "order") describes one number of the
            vector.

    Raises:
        TypeError: if `value` does not contain numbers.
        ValueError: if `value` is empty or not one-dimensional, or if its length differs from the
            length of the vector in `partner`.
    """
    array = numeric(name, "a non-empty row of numbers", value)
    if array.ndim != 1 or array.size == 0:
        raise invalid(name, "a non-empty row of numbers", value)
    if partner is not None and array.shape != partner[0].shape:
        raise invalid(name, f"{partner[0].size} numbers, one for each {partner[1]}", value)
    return array.astype(np.float64)


def check_rising(name: str, row: Floats) -> None:
    """Raise a ValueError if the numbers in the vector `row` are not strictly increasing.

    `name` is the name of the argument, for the error message.
    """
    if (np.diff(row) <= 0.0).any():
        raise invalid(name, "in rising order, each given once", row)


def _check_pairs(epsilons: Any, deltas: Any) -> tuple[Floats, Floats]:
    """Check epsilons and deltas, and return them as float64 vectors."""
    slopes = check_number_row("epsilons", epsilons)
    heights = check_number_row("deltas", deltas, (slopes, "epsilon"))
    if not (np.isfinite(slopes) & (slopes >= 0.0)).all():
        raise invalid("epsilons", "finite and at least 0 in every entry", epsilons)
    check_rising("epsilons", slopes)
    if not ((heights >= 0.0) & (heights < 1.0)).all():
        raise invalid("deltas", "at least 0 and below 1 in every entry", deltas)
    return slopes, heights


def _read_function(function: Callable[[float], float]) -> Floats:
    """Evaluate a function at the 1,019 type I errors, check the values, and round them down."""
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


def polyline_lower_bound(x: Floats, convex_y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of a piecewise linear function that is never above a convex function.

    The convex function is known only at the points `x`. Between two neighbouring points, the convex
    function lies above two lines. The first line goes through the left point and the point before
    the left point. The second line goes through the right point and the point after the right
    point. The corners are the crossings of these lines.

    Args:
        x: points in increasing order, at least four, shape `(m,)`.
        convex_y: values of the convex function at the points `x`, shape `(m,)`.

    Returns:
        Two arrays: the x and the y coordinates of the corners, with x in increasing order.
    """
    x, convex_y = _lower_hull(x, convex_y, _is_on_or_above_line)
    if x.size < 4:
        return x, convex_y
    slopes = np.diff(convex_y) / np.diff(x)
    before, behind = slopes[:-2], slopes[2:]
    left, right = x[1:-2], x[2:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = (convex_y[2:-1] - convex_y[1:-2] - behind * (right - left)) / (before - behind)
    # The lines are parallel: the function is straight here.
    shift = np.where(np.isfinite(shift), shift, 0.0).clip(0.0, right - left)
    first = convex_y[1] - slopes[1] * (x[1] - x[0])
    last = convex_y[-2] + slopes[-2] * (x[-1] - x[-2])
    inner = convex_y[1:-2] + before * shift
    x = np.concatenate([x[:1], left + shift, x[-1:]])
    return _lower_hull(x, np.concatenate([[first], inner, [last]]), _is_on_or_above_line)


def _lower_hull(x: Floats, y: Floats, turns_up: _Test) -> tuple[Floats, Floats]:
    """Return the corners of the largest convex function that is not above any of the points."""
    kept: list[_Corner] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if kept and point[0] <= kept[-1][0]:
            kept[-1] = (kept[-1][0], min(kept[-1][1], point[1]))
            continue
        while len(kept) > 1 and turns_up(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array([vertex[0] for vertex in kept]), np.array([vertex[1] for vertex in kept])


def _is_on_or_above_line(first: _Corner, middle: _Corner, last: _Corner) -> bool:
    """Return True if the middle point is on or above the line through the other two points."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


def _curve_to_epsilon_deltas(errors: Floats, type_two: Floats) -> tuple[Floats, Floats]:
    """Return the (epsilon, delta) pairs of the linear pieces of a curve and of its inverse."""
    slopes = -np.diff(type_two) / np.diff(errors)
    heights = type_two[:-1] + slopes * errors[:-1]
    slopes, heights = slopes[slopes > 0.0], heights[slopes > 0.0]
    # A piece of slope below 1 is a piece of slope above 1 of the inverse, which holds as well.
    deltas = 1.0 - np.where(slopes >= 1.0, heights, heights / slopes)
    epsilons, deltas = least_delta_per_epsilon(np.abs(np.log(slopes)), deltas.clip(0.0, 1.0))
    if not (deltas < 1.0).any():
        return np.zeros(1), np.array([np.nextafter(1.0, 0.0)])
    return epsilons[deltas < 1.0], deltas[deltas < 1.0]


def least_delta_per_epsilon(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Return the distinct epsilons in increasing order, and the least delta of each epsilon.

    `deltas` contains one delta for each entry of `epsilons`. An epsilon can occur several times.
    The result is a pair of arrays with the same length.
    """
    order = np.lexsort((deltas, epsilons))
    distinct, first = np.unique(epsilons[order], return_index=True)
    return distinct, deltas[order][first]
