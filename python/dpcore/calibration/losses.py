"""True epsilon of the noise of a mechanism, independent of the epsilon that is claimed.

A domain is a set of allowed inputs. The true epsilon depends on the largest distance of two
neighbours in the domain, after the mechanism has clipped its input. The noise is added after the
clip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from ..bounds.tradeoff import epsilon_of, log_delta
from ..errors import choice, delta_level, instance, invalid, mistyped, real
from ..mechanisms import ClipStep
from ..mechanisms.declarations import can_core_draw, get_or_default
from ..mechanisms.native import Cost, cost_over_scale, facts_about_noise
from ..pairs import Box, distance
from ..pairs.differences import Norm
from ..records import Pair, Record, set_fields
from ..sensitivity import Ball, HistogramCounts, MinMaxRows, OneHot, Simplex, Sphere, sensitivity
from ..suggestions import explain_argument_errors
from .gaussian import CalibratedGaussian, gaussian_analytic
from .pure import L2Laplace, RandomisedResponse, l2_laplace, l2_laplace_delta, laplace

_CLIP_TOLERANCE: Final = 1e-12

KNOWN: Final = (Box, MinMaxRows, Ball, Simplex, Sphere, OneHot, HistogramCounts)

_DISTANCE_NORMS: Final = ("l1", "l2", "entries")

_EPSILON_PRECISION: Final = 1e-12
"""Relative width of the interval that contains the result of a search for an epsilon."""
_SHOWN_DELTA: Final = 1e-5
"""Delta at which text output shows the epsilon of Gaussian noise."""


def max_distance_pair(domain: Any, norm: Norm, clip: ClipStep | None) -> tuple[float, Pair]:
    """Find the largest distance between two neighbouring inputs, and two inputs at this distance.

    The distance is measured after the mechanism has clipped the inputs.

    Args:
        domain: set of allowed inputs, a domain of `dpcore.sensitivity`.
        norm: norm of the distance, "l1" or "l2".
        clip: the clip that the mechanism applies to an input before it adds noise, or None if the
            mechanism does not clip.

    Returns:
        The largest distance after the clip, and the two inputs before the clip.

    Raises:
        TypeError: if the domain is not one of `dpcore.sensitivity`.
        ValueError: if dpcore has no closed form for the largest distance after the clip.
    """
    _require_known_domain(domain)
    if clip is None or (type(domain) is not HistogramCounts and _is_inside(domain, clip)):
        widest = sensitivity(domain, norm)
        return widest.value, widest.pair
    if type(domain) is HistogramCounts:
        need = "other than a histogram for a mechanism that clips (no closed form)"
        raise invalid("domain", need, domain)
    ball = Ball(clip.norm, clip.radius, domain.dim)
    whole = sensitivity(ball, norm)
    # The members of the domain nearest to the worst pair of the ball, often this pair itself.
    pair = Pair(domain.clip(whole.pair.x), domain.clip(whole.pair.x_prime))
    lower = distance(Pair(ball.clip(pair.x), ball.clip(pair.x_prime)), norm)
    if lower < whole.value * (1.0 - _CLIP_TOLERANCE):
        requirement = (
            f"within the clip's ball, or reach its width {whole.value:g} in {norm.upper()}: what "
            f"lies between has no closed form (at least {lower:g} is reached)"
        )
        raise invalid("domain", requirement, domain)
    return whole.value, pair


def _require_known_domain(domain: Any) -> Any:
    if type(domain) not in KNOWN:
        raise mistyped("domain", "one of dpcore.sensitivity's, whose diameter is known", domain)
    return domain


def _is_inside(domain: Any, clip: ClipStep) -> bool:
    """Return True if the clip does not change any input in the domain."""
    return _largest_norm(domain, clip.norm) <= clip.radius * (1.0 + _CLIP_TOLERANCE)


def _largest_norm(domain: Any, norm: Norm) -> float:
    """Compute the largest norm of an input in the domain."""
    if isinstance(domain, (Simplex, OneHot)):
        return 1.0
    if isinstance(domain, MinMaxRows):
        return float(domain.dim - 1) if norm == "l1" else math.sqrt(domain.dim - 1)
    if isinstance(domain, Box):
        radius = max(abs(domain.low), abs(domain.high))
        if radius == 0.0:
            return 0.0
        domain = Ball("linf", radius, domain.dim)
    # Balls and spheres are symmetric: the farthest member and its negative are a diameter.
    return sensitivity(domain, norm).value / 2.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RealEpsilon(Record, word="RealEpsilon"):
    """True epsilon of a noise mechanism, and two neighbouring inputs at the largest distance.

    The true epsilon does not depend on the epsilon that the mechanism claims.

    Args:
        mechanism: mechanism that adds the noise.
        domain: set of allowed inputs. It also defines which inputs are neighbours.
        value: smallest epsilon for which the mechanism is epsilon-DP (delta = 0). The value is inf
            if such an epsilon does not exist, or if dpcore does not know the epsilon.
        pair: two neighbouring inputs at the largest distance.
        distance: distance between these two inputs, after the mechanism has clipped them.
        norm: norm of `distance`: "l1", "l2", or "entries" (the number of entries that differ).
        reason: text on one line that explains the value.
        mu: for Gaussian noise, `distance` divided by sigma. For each epsilon, delta is computed
            from mu. None for other kinds of noise.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a number is negative or NaN, or if `norm` is not one of the three names.

    Example:
        >>> from dpcore.mechanisms import Gaussian
        >>> from dpcore.sensitivity import MinMaxRows
        >>> real = real_epsilon(Gaussian(4.0), MinMaxRows(16))
        >>> real.value, round(real.epsilon(1e-5), 3), round(real.delta(1.0), 3)
        (inf, 4.377, 0.127)
    """

    mechanism: Any
    domain: Any
    value: float
    pair: Pair
    distance: float
    norm: str
    reason: str
    mu: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        value = self.value if self.value == math.inf else real("value", self.value, low=0.0)
        instance("pair", self.pair, Pair)
        apart = real("distance", self.distance, low=0.0)
        choice("norm", self.norm, _DISTANCE_NORMS)
        instance("reason", self.reason, str)
        mu = None if self.mu is None else real("mu", self.mu, low=0.0)
        set_fields(self, value=value, distance=apart, mu=mu)

    @property
    def claim(self) -> float | None:
        """Epsilon that the mechanism claims, or None if the mechanism has no claim."""
        claim = get_or_default(self.mechanism, "claim")
        return None if claim is None else float(claim)

    def delta(self, epsilon: float) -> float:
        """Compute the smallest delta for which the mechanism is (epsilon, delta)-DP.

        Args:
            epsilon: epsilon for which delta is computed, at least 0.

        Returns:
            The smallest delta. For Gaussian noise, the formula is theorem 8 of Balle and Wang
            (2018). For `L2Laplace`, the result is an integral over the length of the noise vector.
            If `epsilon` is at least the attribute `value`, the result is 0.0.

        Raises:
            TypeError: if `epsilon` is not a number.
            ValueError: if `epsilon` is negative. For noise that is neither Gaussian nor
                `L2Laplace`, the error is also raised if `epsilon` is below the attribute `value`.
        """
        epsilon = real("epsilon", epsilon, low=0.0)
        if self.mu is not None:
            return math.exp(log_delta(epsilon, self.mu))
        if type(self.mechanism) is L2Laplace:
            return l2_laplace_delta(epsilon, self.value, self.pair.x.size)
        if epsilon < self.value:
            need = f"at least the pure epsilon {self.value:g} of this noise"
            raise invalid("epsilon", need, epsilon)
        return 0.0

    def epsilon(self, delta: float = 0.0) -> float:
        """Compute the smallest epsilon for which the mechanism is (epsilon, delta)-DP.

        Args:
            delta: delta for which epsilon is computed, in [0, 1).

        Returns:
            The smallest epsilon. If delta is 0, the result is the attribute `value`. A delta above
            0 is only allowed for Gaussian noise and `L2Laplace`.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if `delta` is out of range. For noise that is neither Gaussian nor
                `L2Laplace`, the error is also raised if `delta` is above 0.
        """
        delta = delta_level(delta)
        if delta == 0.0:
            return self.value
        if self.mu is not None:
            return epsilon_of(self.mu, delta)
        if type(self.mechanism) is not L2Laplace:
            raise invalid("delta", "0 for this noise", delta)
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, self.value
        while high - low > _EPSILON_PRECISION * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def __str__(self) -> str:
        """Return the true epsilon, the claimed epsilon and the derivation, on one line."""
        level = f"epsilon {self.value:.6g}"
        if self.mu is not None:
            level = f"epsilon {self.epsilon(_SHOWN_DELTA):.6g} at delta {_SHOWN_DELTA:g}"
        claim = "" if self.claim is None else f" (claimed: {self.claim:g})"
        return f"{level}{claim} for {self.mechanism} on {self.domain}: {self.reason}"


@explain_argument_errors
def real_epsilon(mechanism: Any, domain: Any) -> RealEpsilon:
    """Compute the true epsilon of a mechanism that adds noise; the claimed epsilon is not used.

    Let D be the largest distance between two neighbouring inputs, measured after the mechanism has
    clipped the inputs. The true epsilon depends on the noise:

    - Laplace noise in each entry: epsilon is D in the L1 norm, divided by the scale.
    - `L2Laplace`: epsilon is D in the L2 norm, divided by the scale.
    - `RandomisedResponse`: epsilon is the loss of one entry, times the largest number of entries in
      which two neighbours differ.
    - Gaussian noise: the mechanism is not epsilon-DP with delta 0. The result has a method that
      computes the smallest epsilon for each delta > 0.

    The epsilon is inf if some output is possible on only one of two neighbouring inputs. The result
    is for exact real numbers. Leaks that come from the rounding of floats are not included.

    Args:
        mechanism: a noise of `dpcore.mechanisms`, a system of `dpcore.published`, or an
            `L2Laplace`, `CalibratedGaussian` or `RandomisedResponse`.
        domain: set of allowed inputs, a domain of `dpcore.sensitivity`. Any two inputs in the
            domain are neighbours. For example, two inputs in `Ball("l1", 0.5, dim)` have an L1
            distance of at most 1. In the domain `HistogramCounts`, two inputs are neighbours only
            if they differ in one record.

    Returns:
        The true epsilon (for Gaussian noise, as a function of delta), and two neighbouring inputs
        at the distance D.

    Raises:
        TypeError: if the mechanism or the domain is not one of those named above.
        ValueError: if dpcore has no closed form for D. For a `RandomisedResponse`, the error is
            also raised if the domain contains entries that are not values of this mechanism.

    Source:
        Dwork and Roth (2014), theorem 3.6. Balle and Wang (2018), theorem 8. For ADePT: Habernal
        (2021), theorem 5.1.

    Example:
        >>> from dpcore.published import ADePT
        >>> from dpcore.sensitivity import Ball
        >>> real = real_epsilon(ADePT(1.0, clip=5.0), Ball("l2", 5.0, 64))
        >>> round(real.value, 12), real.claim
        (8.0, 1.0)
    """
    if type(mechanism) is L2Laplace:
        apart, pair = max_distance_pair(domain, "l2", None)
        cost = cost_over_scale(apart, mechanism.scale, "l2")
        return RealEpsilon(mechanism, domain, cost.epsilon, pair, apart, "l2", cost.reason)
    if type(mechanism) is CalibratedGaussian:
        return replace(_clip_and_noise_epsilon(mechanism.mechanism, domain), mechanism=mechanism)
    if type(mechanism) is RandomisedResponse:
        return _randomised_response_epsilon(mechanism, domain)
    if not can_core_draw(mechanism):
        need = "one of dpcore's, whose noise is known (audit any other)"
        raise mistyped("mechanism", need, mechanism)
    return _clip_and_noise_epsilon(mechanism, domain)


def _clip_and_noise_epsilon(mechanism: Any, domain: Any) -> RealEpsilon:
    # The factor of the steps multiplies after the noise. This is post-processing without loss.
    steps = mechanism.steps(_require_known_domain(domain).dim)
    law = facts_about_noise(steps.noise)
    apart, pair = max_distance_pair(domain, law.norm, steps.clip)
    if law.blind:
        cost = Cost(0.0, "the output does not depend on the input")
    elif apart == 0.0:
        cost = Cost(0.0, "all inputs agree")
    elif law.cost is None:
        name = type(steps.noise).__name__
        cost = Cost(math.inf, f"no epsilon of {name} noise is known (audit it)")
    else:
        cost = law.cost(steps.noise, apart, _max_unequal_neighbour_entries(domain, pair))
    value, reason, mu = cost
    return RealEpsilon(mechanism, domain, value, pair, apart, law.norm, reason, mu)


def _max_unequal_neighbour_entries(domain: Any, pair: Pair) -> int:
    """Return the largest number of entries in which two neighbours of the domain differ."""
    if type(domain) in (OneHot, HistogramCounts):
        return int((pair.x != pair.x_prime).sum())
    return int(domain.dim)


def _randomised_response_epsilon(mechanism: RandomisedResponse, domain: Any) -> RealEpsilon:
    whole = type(domain) is Box and domain.integers
    if not whole and type(domain) is not OneHot:
        requirement = "a Box with integers=True or OneHot for a randomised response"
        raise mistyped("domain", requirement, domain)
    pair = sensitivity(domain, "l1").pair
    # The farthest pair in L1 differs in every entry that can differ.
    apart = float((pair.x != pair.x_prime).sum())
    reason = f"{apart:g} entries can differ, each with a loss of {mechanism.entry_loss:g}"
    return RealEpsilon(mechanism, domain, mechanism.loss(pair), pair, apart, "entries", reason)


@explain_argument_errors
def noise_errors(domain: Any, epsilon: float, delta: float = 0.0) -> dict[str, float]:
    """Compute the expected squared errors of three kinds of noise that satisfy the same claim.

    The error is the expected squared L2 norm of the noise vector. Let dim be the number of entries
    of a vector. The error of Laplace noise with scale b is 2 dim b^2. The error of `L2Laplace`
    noise with scale b is dim (dim + 1) b^2. The error of Gaussian noise is dim sigma^2. For each
    kind of noise, the function uses the smallest b or sigma that satisfies the claim.

    Args:
        domain: set of allowed vectors, a domain of `dpcore.sensitivity`. Any two vectors in the
            domain are neighbours.
        epsilon: claimed epsilon, in (0, 1e300].
        delta: claimed delta, in [0, 1). If delta is 0, the result has no entry for Gaussian noise.
            The errors of Laplace noise and `L2Laplace` noise do not depend on delta, because both
            kinds of noise satisfy the claim with delta = 0.

    Returns:
        A dictionary of the errors, in squared units of the entries. The keys are "laplace",
        "l2_laplace" and "gaussian".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number is out of range, or the domain contains only one vector.

    Source:
        Dwork and Roth (2014), theorem 3.6. Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.
        Balle and Wang (2018), theorem 8.

    Example:
        >>> from dpcore.sensitivity import Ball
        >>> {name: round(error, 2) for name, error in noise_errors(Ball("l2", 1.0, 8), 8.0).items()}
        {'laplace': 8.0, 'l2_laplace': 4.5}
        >>> errors = noise_errors(Ball("l2", 1.0, 64), 8.0, 1e-5)
        >>> min(errors, key=errors.get), round(errors["gaussian"], 2)
        ('gaussian', 92.23)
    """
    delta = delta_level(delta)
    wide, far = (sensitivity(domain, norm).value for norm in ("l1", "l2"))
    dim = domain.dim
    errors = {
        "laplace": 2.0 * dim * laplace(epsilon, wide) ** 2,
        "l2_laplace": dim * (dim + 1.0) * l2_laplace(epsilon, far).scale ** 2,
    }
    if delta > 0.0:
        errors["gaussian"] = dim * gaussian_analytic(epsilon, delta, far).sigma ** 2
    return errors
