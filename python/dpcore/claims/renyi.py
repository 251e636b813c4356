"""Claims of Renyi and of zero-concentrated differential privacy, as trade-off curves.

Let p and q be the probabilities of an event on two neighbouring inputs x and x'. The claim limits
the Renyi divergence D_a of each order a by epsilon(a). Post-processing cannot increase a Renyi
divergence. So (p, q) satisfies ``D_a(Ber p || Ber q) <= epsilon(a)`` and
``D_a(Ber q || Ber p) <= epsilon(a)`` at every order a of the claim. The pairs (p, q) that satisfy
these inequalities form a convex set, the joint range. The set does not change if p and q are
exchanged, or if the event is replaced by its complement. The upper edge of the set is 1 - f, where
f is the trade-off curve. With fewer orders, the set is larger and the claim is weaker. So the code
may use any finite number of orders.

The code stores each probability as its log odds, which are precise for probabilities close to 0 and
close to 1.

The function `of` makes claims from privacy accountants of other packages.
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

from ..errors import invalid, mistyped, real
from ..packages import has_all
from ..records import Floats, frozen_array, set_fields
from ..suggestions import explain_argument_errors
from . import trade_off

_MAX_LOG_ODDS: Final = 800.0
"""Beyond these log odds, a probability is 0 or 1 as a float64."""
_RATE_ROUNDING: Final = 4e-16
_RATE_ERROR: Final = 1e-12
"""Relative error of a probability computed from log odds, and of the difference of two of them."""
_ROOT_STEPS: Final = 60
_EDGE_LOG_ODDS: Final = np.concatenate(
    [
        -np.geomspace(700.0, 50.0, 20)[:-1],
        np.linspace(-50.0, -12.0, 76)[:-1],
        np.linspace(-12.0, 0.0, 201),
    ]
)
"""Log odds of q at which the code computes the edge of the joint range, once for every claim."""
_BRACKET_POINTS, _BRACKET_ROUNDS = 17, 13
"""Number of points in a search interval, and the number of times that its width is divided by 8.
The final width is 1e-11 for log odds up to 50. For a delta of p / 5,000, this width gives a
relative error of at most 5e-8."""
_LOG_ODDS_ERROR: Final = 4e-13
"""Error of the log odds after the search. For log odds above 1, it is a relative error."""
_ROOT_MARGIN: Final = 1e-7
"""Relative safety margin of the result of the search, for rounding errors."""
_COARSE_STRIDE: Final = 5
"""The search for a maximum begins with every fifth point of the edge."""
_NEARBY_ORDERS: Final = 6
"""Number of orders that the search keeps on each side of the orders that limit p."""
_MIN_CORNERS: Final = 4
"""Least number of points. With fewer, lines between them give no limit, and all (p, q) are
allowed."""
_MAX_EDGE_ORDERS: Final = 100
"""If a claim has more orders, the polygon uses only every second (third, ...) order."""

_SCALED_ORDERS: Final = np.concatenate(
    [np.geomspace(1e-3, 0.1, 17)[:-1], np.geomspace(0.1, 40.0, 284)]
)
"""Values of (a - 1) sqrt(rho) for the orders a of a zCDP claim. For a given delta, the order with
the sharpest limit is about 1 + sqrt(ln(1/delta)/rho). Neighbouring values differ by 2 %, which
increases a delta of 1e-10 by at most .25 %."""

_ACCEPTED_OBJECTS: Final = (
    "an accountant of Opacus (RDPAccountant or PRVAccountant), a privacy loss distribution of "
    "dp-accounting, or an OpenDP measurement with its d_in (dpcore.adapters.OpenDP(measurement, "
    "d_in=1))"
)
_OPACUS_ORDERS: Final = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.arange(12.0, 64.0)])
"""The default orders of the RDP accountant of Opacus."""
_PROFILE_DELTAS: Final = np.geomspace(0.5, 1e-12, 100)
"""Deltas at which a privacy profile is read. For the slow PRV accountant, fewer are read."""
_SEARCHED_DELTAS: Final = np.geomspace(0.5, 1e-9, 24)
_MAX_PROFILE_EPSILON: Final = 700.0
_PROFILE_EPSILON_COUNT: Final = 1000


class Renyi(trade_off.Claim):
    """Base class of privacy claims that are upper limits on Renyi divergences at several orders."""

    __slots__ = ()

    @abstractmethod
    def at_orders(self) -> tuple[Floats, Floats]:
        """Return orders of the Renyi divergence, and the claimed upper limit at each order.

        The result is a pair of arrays with the same length. All orders are above 1. The limits hold
        for any two neighbouring inputs.
        """

    def least_type_one(self, power: float) -> float:
        """Return the least type I error that this claim allows for a test with a given power.

        The test decides from an output which of two neighbouring inputs was used. `power` is 1
        minus the type II error of the test. The result is rounded down.
        """
        p, q = _joint_range_polygon(self)
        if power <= p[-1]:
            return float(np.interp(power, p, q, left=0.0)) * (1.0 - _RATE_ERROR)
        # The other half of the edge follows from complements, with the sides exchanged.
        return max(0.0, 1.0 - float(np.interp(1.0 - power, q, p)) - _RATE_ROUNDING)

    def tangents(self) -> tuple[Floats, Floats]:
        """Return several pairs (epsilon, delta) for which this claim implies (epsilon, delta)-DP.

        The result is an array of the epsilons and an array of the deltas. An audit chooses one of
        the pairs and tests it.
        """
        epsilons = trade_off.choose_epsilon_grid(self)
        p, q = _joint_range_polygon(self)
        deltas = (p - np.exp(epsilons)[:, np.newaxis] * q).max(axis=1, initial=0.0)
        return epsilons[deltas < 1.0], deltas[deltas < 1.0]

    def _type_two(self, errors: Floats) -> Floats:
        type_two = 1.0 - errors
        inside = (errors > 0.0) & (errors < 1.0)
        q = np.log(errors[inside]) - np.log1p(-errors[inside])
        q += _RATE_ROUNDING * (1.0 + np.abs(q))
        power, _ = _largest_allowed_p_log_odds(q, *self.at_orders())
        # Close to 1, the power keeps the digits.
        type_two[inside] = np.where(
            power < 0.0,
            np.nextafter(1.0 - _log_odds_to_probability(power) * (1.0 + _RATE_ERROR), 0.0),
            _log_odds_to_probability(-power) * (1.0 - _RATE_ERROR),
        )
        return type_two

    def _deltas(self, epsilons: Floats) -> Floats:
        return np.array([_implied_delta_rounded_up(self, epsilon) for epsilon in epsilons.tolist()])

    def _epsilon(self, delta: float) -> float:
        if delta == 0.0:
            return math.inf
        if _implied_delta_rounded_up(self, 0.0) <= delta:
            return 0.0

        def ratio(q: Floats, p: Floats) -> Floats:
            margin = _log_odds_to_probability(p) - delta
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(margin > 0.0, np.log(margin) - _log_prob(q), -math.inf)

        _, limit = _edge_max_and_bound(self, ratio)
        return max(0.0, min(_renyi_epsilon_upper_limit(self, delta), limit * (1.0 + _ROOT_MARGIN)))


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZCDP(Renyi, word="ZCDP"):
    """A claim of rho-zero-concentrated DP: the Renyi divergence of order a is at most rho a.

    The claim is about every order a > 1 and any two neighbouring inputs. dpcore computes the
    trade-off curve of the claim from the limits at 300 orders. This curve is *not* the curve of
    sqrt(2 rho)-Gaussian DP, because rho-zCDP does not imply Gaussian DP with mu = sqrt(2 rho). For
    example, randomised response with epsilon 1 satisfies .5-zCDP, so that sqrt(2 rho) = 1. However,
    the same mechanism satisfies mu-Gaussian DP only if mu is at least 1.23.

    Args:
        rho: parameter of zCDP, above 0.

    Raises:
        TypeError: if `rho` is not a number.
        ValueError: if `rho` is not finite or not above 0.

    Source:
        Bun and Steinke (2016), definition 1.1. Asoodeh, Liao, Calmon, Kosut and Sankar (2021), for
        the least delta that follows from the limit at one order.

    Example:
        >>> claim = ZCDP(0.5)
        >>> round(claim.delta(1.0), 4), round(claim.epsilon(1e-5), 4)
        (0.2149, 4.7285)
    """

    rho: float

    parameter: ClassVar[str | None] = "rho"
    conversion: ClassVar[str] = "delta and trade-off curve from Renyi divergences at 300 orders"

    def __post_init__(self) -> None:
        """Check rho and store it as a float."""
        object.__setattr__(self, "rho", real("rho", self.rho, low=0.0, open_low=True))

    def in_words(self) -> str:
        """Return this claim as text for reports, such as "rho <= 0.5 (zCDP)"."""
        return f"rho <= {self.rho:g} (zCDP)"

    def gaussian(self) -> float:
        """Return sqrt(2 rho), the mu of Gaussian noise whose exact zCDP parameter is rho.

        Here mu is the exact parameter of Gaussian DP that this noise satisfies.
        """
        return math.sqrt(2.0 * self.rho)

    def at_orders(self) -> tuple[Floats, Floats]:
        """Return 300 orders of the Renyi divergence, and the claimed limit at each order.

        The limit at order a is rho a. The orders are chosen to suit the rho of this claim.
        """
        orders = np.maximum(1.0 + _SCALED_ORDERS / math.sqrt(self.rho), math.nextafter(1.0, 2.0))
        return orders, np.nextafter(self.rho * orders, math.inf)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RDP(Renyi, word="RDP"):
    """A claim of Renyi DP: upper limits on the Renyi divergence at several orders.

    Args:
        alphas: orders of the Renyi divergence, shape `(m,)`, with m at least 1. The orders are
            above 1 and increase.
        epsilons: claimed upper limit on the Renyi divergence at each order, shape `(m,)`, at least
            0. An entry inf means that the claim has no limit at this order. At least one entry must
            be finite.

    Raises:
        TypeError: if `alphas` or `epsilons` does not contain numbers.
        ValueError: if the orders are not above 1 or do not increase, if an entry of `epsilons` is
            negative or NaN, or if the lengths differ.

    Source:
        Mironov (2017), definition 4. Asoodeh, Liao, Calmon, Kosut and Sankar (2021), for the
        trade-off curve that follows from the limits.

    Example:
        >>> orders = [1.5, 2.0, 4.0, 8.0, 16.0]
        >>> claim = RDP(orders, [order / 2 for order in orders])
        >>> claim
        <RDP 5 orders from 1.5 to 16 (Renyi DP): delta and trade-off curve from these orders>
        >>> round(claim.epsilon(1e-5), 3)
        5.087
    """

    alphas: Floats
    epsilons: Floats

    conversion: ClassVar[str] = "delta and trade-off curve from these orders"

    def __post_init__(self) -> None:
        """Check the arrays and make them read-only."""
        alphas = trade_off.check_number_row("alphas", self.alphas)
        epsilons = trade_off.check_number_row("epsilons", self.epsilons, (alphas, "order"))
        if not (np.isfinite(alphas) & (alphas > 1.0)).all():
            raise invalid("alphas", "finite and above 1 in every entry", self.alphas)
        trade_off.check_rising("alphas", alphas)
        if not (epsilons >= 0.0).all():
            raise invalid("epsilons", "at least 0 in every entry", self.epsilons)
        if not np.isfinite(epsilons).any():
            raise invalid("epsilons", "finite at one order at least", self.epsilons)
        set_fields(self, alphas=frozen_array(alphas), epsilons=frozen_array(epsilons))

    def in_words(self) -> str:
        """Return this claim as text for reports.

        An example is "5 orders from 1.5 to 16 (Renyi DP)".
        """
        first, last = self.alphas[0], self.alphas[-1]
        if self.alphas.size == 1:
            return f"D <= {self.epsilons[0]:g} at order {first:g} (Renyi DP)"
        return f"{self.alphas.size} orders from {first:g} to {last:g} (Renyi DP)"

    def at_orders(self) -> tuple[Floats, Floats]:
        """Return the orders with a finite limit on the Renyi divergence, and these limits."""
        claimed = np.isfinite(self.epsilons)
        return self.alphas[claimed], self.epsilons[claimed]


def _log_prob(log_odds: Floats) -> Floats:
    """Return the logarithms of probabilities, from their log odds."""
    return -np.logaddexp(0.0, -log_odds)


def _log_odds_to_probability(log_odds: Floats) -> Floats:
    return np.exp(_log_prob(log_odds))


def _compute_excess(q: Floats, p: Floats, orders: Floats, levels: Floats) -> Floats:
    """Return the differences between divergences of an event's probabilities and claimed limits.

    Args:
        q: log odds of the event's probability on x', shape `(m,)`.
        p: log odds of the event's probability on x, shape `(m,)`, at least `q`.
        orders: orders of the Renyi divergences, shape `(k,)`.
        levels: claimed upper limit on the divergence at each order, shape `(k,)`.

    Returns:
        At each order, the larger of the two divergences between Bernoulli distributions with these
        probabilities, minus the claimed limit, shape `(m, k)`. The result is reduced by the largest
        possible rounding error.
    """
    log_q, log_not_q, log_p, log_not_p = (_log_prob(odds)[:, np.newaxis] for odds in (q, -q, p, -p))
    up, down = orders * (log_p - log_q), orders * (log_not_p - log_not_q)
    forward = np.logaddexp(log_q + up, log_not_q + down)
    backward = np.logaddexp(log_p - up, log_not_p - down)
    largest = np.maximum(np.abs(log_q + log_not_q), np.abs(log_p + log_not_p))
    slack = _RATE_ROUNDING * (1.0 + orders * largest)
    return (np.maximum(forward, backward) - slack) / (orders - 1.0) - levels


def _largest_allowed_p_log_odds(
    q: Floats, orders: Floats, levels: Floats
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return, for each q, log odds just above the largest p that the claim allows.

    Here p and q are the probabilities of an event on x and x'. The function searches the p at which
    a divergence reaches its claimed limit. The search keeps an interval that contains this p. It
    narrows the interval by false position (with the Illinois rule), and by bisection in every third
    step.

    Args:
        q: log odds of the event's probability on x', shape `(m,)`.
        orders: orders of the Renyi divergences, shape `(k,)`.
        levels: claimed upper limit on the divergence at each order, shape `(k,)`.

    Returns:
        The upper ends of the intervals for p, as log odds. Also, for each q, the index of the order
        whose limit the upper end exceeds most.
    """
    low, high = q.copy(), np.full(q.shape, _MAX_LOG_ODDS)

    def look(p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        excess = _compute_excess(q, p, orders, levels)
        which = excess.argmax(axis=1)
        return np.take_along_axis(excess, which[:, np.newaxis], axis=1)[:, 0], which

    at_low, _ = look(low)
    at_high, active = look(high)
    # If no limit is exceeded even at this end, the rate may be 1.
    open_end = at_high <= 0.0
    for step in range(_ROOT_STEPS):
        width = high - low
        if (width <= 1e-14 * (1.0 + np.abs(high)))[~open_end].all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            share = at_low / (at_low - at_high)
        share = np.where(np.isfinite(share) & (step % 3 < 2), share.clip(0.01, 0.99), 0.5)
        # Shares are clipped and would keep a bracket wide. Near the ends, bisections halve it.
        middle = low + share * width
        value, which = look(middle)
        above = value > 0.0
        at_high = np.where(above, value, 0.5 * at_high)
        at_low = np.where(above, 0.5 * at_low, value)
        active = np.where(above, which, active)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(open_end, math.inf, high), active


def _renyi_delta_upper_limit(claim: Renyi, epsilon: float) -> float:
    """Return a simple upper limit on the delta that the claim implies at an epsilon.

    Source:
        Canonne, Kamath and Steinke (2020), proposition 12.
    """
    orders, levels = claim.at_orders()
    # orders - 1 is exact; 1 - 1/orders is not exact for an order close to 1.
    above = orders - 1.0
    gap, shift = levels - epsilon, np.log(above / orders)
    with np.errstate(over="ignore"):
        rounded = gap + shift + _RATE_ROUNDING * (np.abs(gap) + np.abs(shift))
        logs = above * rounded - np.log(orders)
    return math.exp(min(0.0, float(logs.min()))) * (1.0 + _RATE_ERROR)


def _renyi_epsilon_upper_limit(claim: Renyi, delta: float) -> float:
    """Return a simple upper limit on the epsilon that the claim implies at a delta."""
    orders, levels = claim.at_orders()
    above = orders - 1.0
    shift = np.log(above / orders) - (math.log(delta) + np.log(orders)) / above
    epsilons = levels + shift
    return float((epsilons + _RATE_ROUNDING * (np.abs(epsilons) + np.abs(shift))).min())


@lru_cache(maxsize=1024)
def _implied_delta_rounded_up(claim: Renyi, epsilon: float) -> float:
    """Return delta(epsilon) of the claim, rounded up: the largest p - e^epsilon q on the edge."""

    def difference(q: Floats, p: Floats) -> Floats:
        # In logarithms: e^epsilon may overflow although e^epsilon q is small.
        return _log_odds_to_probability(p) - np.exp(np.minimum(epsilon + _log_prob(q), 1.0))

    if epsilon == math.inf:
        return 0.0
    relaxed = _renyi_delta_upper_limit(claim, epsilon)
    value, limit = _edge_max_and_bound(claim, difference)
    # A difference that is not larger than its rounding error has no correct digits.
    return relaxed if value <= limit - value else min(relaxed, limit * (1.0 + _ROOT_MARGIN))


@lru_cache(maxsize=64)
def _edge_q_p_log_odds_and_orders(claim: Renyi) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    """Return log odds of q and p at edge points, and the index of the order that limits each p."""
    # The last point must stay, because p + q > 1 beyond it. The first point must stay too.
    q = np.append(_EDGE_LOG_ODDS[0], _EDGE_LOG_ODDS[::-_COARSE_STRIDE][::-1])
    return q, *_largest_allowed_p_log_odds(q, *claim.at_orders())


def _edge_max_and_bound(
    claim: Renyi, objective: Callable[[Floats, Floats], Floats]
) -> tuple[float, float]:
    """Maximise a function on the edge of the joint range; return the value and an upper limit.

    On the edge, p increases in q. So between two points of the edge, the function is at most its
    value at the lower q and the upper p. This value is the upper limit.

    Args:
        claim: the claim.
        objective: function that maps the log odds of q and of p to a number, for arrays of one
            shape. It must decrease in q, increase in p, and have only one peak on the edge. The
            peak must lie at p + q <= 1. Two examples are p - e^epsilon q and ln((p - delta)/q).

    Returns:
        The largest value, and an upper limit that includes all rounding errors. Both are infinite
        if the peak is beyond the first point of the edge.
    """
    q, p, active = _edge_q_p_log_odds_and_orders(claim)
    best = int(np.argmax(objective(q, p)))
    if best == 0:
        return math.inf, math.inf
    first, last = best - 1, min(q.size - 1, best + 1)
    limiting = active[first : last + 1]
    # Fewer orders allow higher rates. Therefore it is safe to ignore the distant ones.
    near = slice(max(0, limiting.min() - _NEARBY_ORDERS), limiting.max() + _NEARBY_ORDERS + 1)
    orders, levels = (row[near] for row in claim.at_orders())
    for _ in range(_BRACKET_ROUNDS):
        q = np.linspace(q[first], q[last], _BRACKET_POINTS)
        p, _ = _largest_allowed_p_log_odds(q, orders, levels)
        best = int(np.argmax(objective(q, p)))
        first, last = max(0, best - 1), min(_BRACKET_POINTS - 1, best + 1)
    low, high = q[first], p[last]
    lows = np.array([low, low - _LOG_ODDS_ERROR * (1.0 - low)])
    highs = np.array([high, high + _LOG_ODDS_ERROR * (1.0 + abs(high))])
    value, limit = objective(lows, highs).tolist()
    return value, limit


@lru_cache(maxsize=64)
def _joint_range_polygon(claim: Renyi) -> tuple[Floats, Floats]:
    """Return corners (p, q) of a polygon around the part of the joint range with p + q <= 1."""
    orders, levels = claim.at_orders()
    step = max(1, orders.size // _MAX_EDGE_ORDERS)
    p, _ = _largest_allowed_p_log_odds(_EDGE_LOG_ODDS, orders[::step], levels[::step])
    keep = np.isfinite(p)
    rates = np.minimum(_log_odds_to_probability(p[keep]) * (1.0 + _RATE_ROUNDING), 1.0)
    if np.unique(rates).size < _MIN_CORNERS:
        return np.ones(1), np.zeros(1)
    # q is a convex function of p.
    return trade_off.polyline_lower_bound(rates, _log_odds_to_probability(_EDGE_LOG_ODDS[keep]))


@explain_argument_errors
def of(held: Any) -> trade_off.Claim:
    """Convert a privacy accountant, or a similar object, to a claim for an audit.

    The claim describes the present state of the accountant. If the accountant later counts more
    steps, the claim does not change.

    Args:
        held: one of these objects:

            - `RDPAccountant` of Opacus. The result is an `RDP` claim at the default orders of
              Opacus.
            - `PRVAccountant` of Opacus. The result is a `TradeOff` claim with 24 pairs (epsilon,
              delta), for deltas from .5 to 1e-9. Each epsilon is the upper limit that the
              accountant computes. This limit exceeds the true epsilon by at most .01.
            - A privacy loss distribution of dp-accounting. The result is a `TradeOff` claim with
              the delta of the distribution at 1,000 epsilons.
            - A `dpcore.adapters.OpenDP` with a value for `d_in`, the distance between neighbouring
              inputs. The result is the privacy loss that OpenDP computes for `d_in`, as a `ZCDP` or
              a `TradeOff` claim.
            - A claim object of `dpcore.claims`. The function returns it unchanged.

            The `GaussianAccountant` of Opacus is not accepted, because it uses the central limit
            theorem and can give an epsilon that is too small.

    Returns:
        The claim, for the argument `claim` of `dpcore.audit`.

    Raises:
        TypeError: if `held` is not one of these objects.
        ValueError: if `held` is a `GaussianAccountant`, or an accountant that has not counted any
            step. The error is also raised if `held` does not imply a finite epsilon.

    Source:
        Mironov, Talwar and Zhang (2019), for the RDP accountant of Opacus. Gopi, Lee and Wutschitz
        (2021), for the PRV accountant, and for the error of the central limit theorem.

    Example:
        Audit a training with the claim of its accountant::

            engine = opacus.PrivacyEngine(accountant="rdp")
            ...
            dpcore.audit(mechanism, pair, claim=dpcore.claims.of(engine.accountant))
    """
    if isinstance(held, trade_off.Claim):
        return held
    names = {base.__name__ for base in type(held).__mro__ if base.__module__.startswith("opacus")}
    if "GaussianAccountant" in names:
        requirement = (
            "an RDPAccountant or a PRVAccountant: a GaussianAccountant can underestimate epsilon, "
            "so that a correct training would be refuted"
        )
        raise invalid("held", requirement, held)
    if names & {"RDPAccountant", "PRVAccountant"} and not len(held):
        raise invalid("held", "an accountant that has counted one step at least", held)
    if "RDPAccountant" in names:
        return _read_rdp_accountant(held)
    if "PRVAccountant" in names:
        epsilons = [float(held.get_epsilon(delta=delta)) for delta in _SEARCHED_DELTAS.tolist()]
        return _make_curve_of_points(np.array(epsilons), _SEARCHED_DELTAS, "Opacus' PRVAccountant")
    if has_all(held, "get_delta_for_epsilon", "get_epsilon_for_delta"):
        return _read_loss_distribution(held)
    if has_all(held, "measurement", "d_in"):
        return _read_measurement(held)
    raise mistyped("held", _ACCEPTED_OBJECTS, held)


def _read_rdp_accountant(accountant: Any) -> RDP:
    """Return the `RDP` claim of all steps that the accountant has counted."""
    from opacus.accountants.analysis.rdp import compute_rdp

    total = np.zeros(_OPACUS_ORDERS.size)
    for noise, rate, steps in accountant.history:
        total += compute_rdp(
            q=rate, noise_multiplier=noise, steps=steps, orders=_OPACUS_ORDERS.tolist()
        )
    # There is no claim at an order that could not be computed.
    return RDP(_OPACUS_ORDERS, np.where(np.isnan(total), math.inf, total))


def _read_loss_distribution(losses: Any) -> trade_off.TradeOff:
    """Return a table of the deltas of a privacy loss distribution at 1,000 epsilons."""
    least = float(losses.get_delta_for_epsilon(math.inf))
    most = float(losses.get_epsilon_for_delta(least * (1.0 + 1e-6) + _PROFILE_DELTAS[-1]))
    shares = np.linspace(0.0, 1.0, _PROFILE_EPSILON_COUNT) ** 1.2
    epsilons = np.unique(min(max(most, 0.0), _MAX_PROFILE_EPSILON) * shares)
    deltas = np.array(losses.get_delta_for_epsilon(epsilons), dtype=np.float64)
    if most > _MAX_PROFILE_EPSILON:
        # For these epsilons e^epsilon overflows, and delta cannot be read.
        remote = [float(losses.get_epsilon_for_delta(delta)) for delta in _PROFILE_DELTAS.tolist()]
        epsilons, deltas = np.append(epsilons, remote), np.append(deltas, _PROFILE_DELTAS)
    return _make_curve_of_points(epsilons, deltas, "a privacy loss distribution")


def _read_measurement(adapter: Any) -> trade_off.Claim:
    """Return the claim that an OpenDP measurement makes for neighbours at distance `d_in`."""
    measure = str(adapter.measurement.output_measure)
    if adapter.d_in is None:
        requirement = "a measurement with d_in, how far apart neighbouring inputs are"
        raise invalid("held", requirement, adapter)
    value = adapter.measurement.map(adapter.d_in)
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(float(value))
    if measure == "SmoothedMaxDivergence":
        epsilons = np.array([value.epsilon(d) for d in _PROFILE_DELTAS.tolist()])
        return _make_curve_of_points(epsilons, _PROFILE_DELTAS, "OpenDP's profile")
    if measure in ("MaxDivergence", "Approximate(MaxDivergence)"):
        pair = value if isinstance(value, tuple) else (value, 0.0)
        epsilons, deltas = np.array([pair], np.float64).T
        return _make_curve_of_points(epsilons, deltas, f"OpenDP's {measure}")
    raise invalid("held", "a measurement whose measure is an epsilon, a profile or zCDP", measure)


def _make_curve_of_points(epsilons: Floats, deltas: Floats, origin: str) -> trade_off.TradeOff:
    """Return a `TradeOff` of the pairs with a finite epsilon and a delta below 1."""
    # A negative epsilon at some delta implies the claim with epsilon 0.
    epsilons = np.maximum(epsilons, 0.0)
    says = np.isfinite(epsilons) & (deltas >= 0.0) & (deltas < 1.0)
    epsilons, deltas = epsilons[says], deltas[says]
    if not epsilons.size:
        raise invalid("held", "something that claims a finite epsilon", origin)
    epsilons, deltas = trade_off.least_delta_per_epsilon(epsilons, deltas)
    return trade_off.TradeOff(epsilons=epsilons, deltas=deltas, origin=origin)
