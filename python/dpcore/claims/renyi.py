"""Renyi and zero-concentrated differential privacy, as the joint range of one event's two rates.

An event has the rate p on x and the rate q on x'. Processing cannot increase a Renyi divergence. So
(p, q) satisfies ``D_a(Ber p || Ber q) <= epsilon(a)`` and ``D_a(Ber q || Ber p) <= epsilon(a)`` at
every order a of the claim. The pairs (p, q) with this property form a convex set, the joint range.
It is symmetric in p and q and under complements, and its upper edge is 1 - f. With fewer orders the
set is larger. Therefore any finite number of orders is safe.

Rates are stored as log odds, which keep the digits of rates close to 0 and of rates close to 1.

The function `of` reads claims of other packages through their methods and copies them.
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
from ..suggestions import suggest_arguments
from . import trade_off

_MAX_LOG_ODDS: Final = 800.0
"""Log odds beyond which a rate is 0 or 1 as a float64."""
_RATE_ROUNDING: Final = 4e-16
_RATE_ERROR: Final = 1e-12
"""Relative error of a rate that is computed from log odds, and of a large difference of rates."""
_ROOT_STEPS: Final = 60
_EDGE_LOG_ODDS: Final = np.concatenate(
    [
        -np.geomspace(700.0, 50.0, 20)[:-1],
        np.linspace(-50.0, -12.0, 76)[:-1],
        np.linspace(-12.0, 0.0, 201),
    ]
)
"""Log odds of the rates on x' at which the edge is computed once for every claim."""
_BRACKET_POINTS, _BRACKET_ROUNDS = 17, 13
"""Points in a bracket, and the number of times that it is cut to an eighth. The final width is
1e-11 for log odds up to 50. Both ends together then overstate a delta of p / 5,000 by 5e-8 of
it."""
_LOG_ODDS_ERROR: Final = 4e-13
"""Error of log odds at the end of the search; relative for log odds above 1."""
_ROOT_MARGIN: Final = 1e-7
"""Relative margin on the result of the search, because the roots are rounded."""
_COARSE_STRIDE: Final = 5
"""The search for a maximum begins with every fifth of the points."""
_NEARBY_ORDERS: Final = 6
"""Orders on either side of those that limit the bracket of a maximum; other orders are ignored."""
_MIN_CORNERS: Final = 4
"""With fewer points of the edge, no line between them is a limit: then every rate is allowed."""
_MAX_EDGE_ORDERS: Final = 100
"""With more orders, only every second, third, ... is used for the edge that is computed once."""

_SCALED_ORDERS: Final = np.concatenate(
    [np.geomspace(1e-3, 0.1, 17)[:-1], np.geomspace(0.1, 40.0, 284)]
)
"""(a - 1) sqrt(rho) for the orders a of a zCDP claim. The order that matters at a delta is about
1 + sqrt(ln(1/delta)/rho). A step of 2 % between orders costs .25 % of a delta of 1e-10."""

_ACCEPTED_OBJECTS: Final = (
    "an accountant of Opacus (RDPAccountant or PRVAccountant), a privacy loss distribution of "
    "dp-accounting, or an OpenDP measurement with its d_in (dpcore.adapters.OpenDP(measurement, "
    "d_in=1))"
)
_OPACUS_ORDERS: Final = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.arange(12.0, 64.0)])
"""The orders at which Opacus' accountant computes."""
_PROFILE_DELTAS: Final = np.geomspace(0.5, 1e-12, 100)
"""Deltas at which a profile is read. An accountant that searches for each is read at fewer."""
_SEARCHED_DELTAS: Final = np.geomspace(0.5, 1e-9, 24)
_MAX_PROFILE_EPSILON: Final = 700.0
_PROFILE_EPSILON_COUNT: Final = 1000


class Renyi(trade_off.Claim):
    """Base class of claims on Renyi divergences at several orders."""

    __slots__ = ()

    @abstractmethod
    def at_orders(self) -> tuple[Floats, Floats]:
        """Return orders above 1, and the claimed largest divergence at each of them."""

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power, from `_find_boundary`."""
        p, q = _find_boundary(self)
        if power <= p[-1]:
            return float(np.interp(power, p, q, left=0.0)) * (1.0 - _RATE_ERROR)
        # The other half of the edge follows from complements, with the sides exchanged.
        return max(0.0, 1.0 - float(np.interp(1.0 - power, q, p)) - _RATE_ROUNDING)

    def tangents(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) from which a pilot chooses, with deltas from a polygon."""
        epsilons = trade_off.tangent_slopes(self)
        p, q = _find_boundary(self)
        deltas = (p - np.exp(epsilons)[:, np.newaxis] * q).max(axis=1, initial=0.0)
        return epsilons[deltas < 1.0], deltas[deltas < 1.0]

    def _type_two(self, errors: Floats) -> Floats:
        type_two = 1.0 - errors
        inside = (errors > 0.0) & (errors < 1.0)
        q = np.log(errors[inside]) - np.log1p(-errors[inside])
        q += _RATE_ROUNDING * (1.0 + np.abs(q))
        power, _ = _compute_greatest_power(q, *self.at_orders())
        # Close to 1, the power keeps the digits.
        type_two[inside] = np.where(
            power < 0.0,
            np.nextafter(1.0 - _compute_rate(power) * (1.0 + _RATE_ERROR), 0.0),
            _compute_rate(-power) * (1.0 - _RATE_ERROR),
        )
        return type_two

    def _deltas(self, epsilons: Floats) -> Floats:
        return np.array([_limit_delta(self, epsilon) for epsilon in epsilons.tolist()])

    def _epsilon(self, delta: float) -> float:
        if delta == 0.0:
            return math.inf
        if _limit_delta(self, 0.0) <= delta:
            return 0.0

        def ratio(q: Floats, p: Floats) -> Floats:
            margin = _compute_rate(p) - delta
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(margin > 0.0, np.log(margin) - _log_rate(q), -math.inf)

        _, limit = _maximise_on_edge(self, ratio)
        return max(0.0, min(_relaxed_epsilon(self, delta), limit * (1.0 + _ROOT_MARGIN)))


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZCDP(Renyi, word="ZCDP"):
    """A claim of rho-zero-concentrated differential privacy: D_a <= rho a at every order a > 1.

    The curve follows from the Renyi divergences at 300 orders. It is *not* the curve of
    sqrt(2 rho)-Gaussian DP, because zCDP does not imply Gaussian DP with this mu. For example,
    randomised response with epsilon 1 is .5-zCDP, but it needs a mu of at least 1.23.

    Args:
        rho: the parameter, above 0.

    Raises:
        TypeError: if `rho` is not a number.
        ValueError: if `rho` is not finite or not above 0.

    Source:
        Bun and Steinke (2016), definition 1.1; Asoodeh, Liao, Calmon, Kosut and Sankar (2021),
        for the joint range, which gives the least delta that a single order allows.

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
        """Return the claim as reports state it."""
        return f"rho <= {self.rho:g} (zCDP)"

    def gaussian(self) -> float:
        """Return the mu of Gaussian noise that satisfies exactly rho: sqrt(2 rho)."""
        return math.sqrt(2.0 * self.rho)

    def at_orders(self) -> tuple[Floats, Floats]:
        """Return 300 orders around those that matter for this rho, and rho times each of them."""
        orders = np.maximum(1.0 + _SCALED_ORDERS / math.sqrt(self.rho), math.nextafter(1.0, 2.0))
        return orders, np.nextafter(self.rho * orders, math.inf)


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RDP(Renyi, word="RDP"):
    """A claim of Renyi differential privacy at several orders: D_a <= epsilon(a) at each.

    Args:
        alphas: orders above 1, increasing, at least one.
        epsilons: largest divergence at each order, at least 0. It is infinite at orders without a
            claim, but finite at one order at least.

    Raises:
        TypeError: if `alphas` or `epsilons` does not hold numbers.
        ValueError: if the orders are not above 1 or not increasing, a divergence is negative or
            NaN, or the lengths differ.

    Source:
        Mironov (2017), definition 4; Asoodeh, Liao, Calmon, Kosut and Sankar (2021) for the joint
        range.

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
        """Check and freeze the arrays."""
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
        """Return the claim as reports state it."""
        first, last = self.alphas[0], self.alphas[-1]
        if self.alphas.size == 1:
            return f"D <= {self.epsilons[0]:g} at order {first:g} (Renyi DP)"
        return f"{self.alphas.size} orders from {first:g} to {last:g} (Renyi DP)"

    def at_orders(self) -> tuple[Floats, Floats]:
        """Return the orders with a finite claim, and the claimed divergences."""
        claimed = np.isfinite(self.epsilons)
        return self.alphas[claimed], self.epsilons[claimed]


def _log_rate(odds: Floats) -> Floats:
    """Return the logarithms of rates from their log odds."""
    return -np.logaddexp(0.0, -odds)


def _compute_rate(odds: Floats) -> Floats:
    return np.exp(_log_rate(odds))


def _compute_excess(q: Floats, p: Floats, orders: Floats, levels: Floats) -> Floats:
    """Return by how much the divergences exceed the claimed ones, per unit of order.

    Args:
        q: log odds of the rates on x', shape `(m,)`.
        p: log odds of the rates on x, shape `(m,)`, at least q.
        orders: orders, shape `(k,)`.
        levels: claimed divergence at each order.

    Returns:
        Excesses, shape `(m, k)`, lowered by the largest possible rounding error.
    """
    log_q, log_not_q, log_p, log_not_p = (_log_rate(odds)[:, np.newaxis] for odds in (q, -q, p, -p))
    up, down = orders * (log_p - log_q), orders * (log_not_p - log_not_q)
    forward = np.logaddexp(log_q + up, log_not_q + down)
    backward = np.logaddexp(log_p - up, log_not_p - down)
    largest = np.maximum(np.abs(log_q + log_not_q), np.abs(log_p + log_not_p))
    slack = _RATE_ROUNDING * (1.0 + orders * largest)
    return (np.maximum(forward, backward) - slack) / (orders - 1.0) - levels


def _compute_greatest_power(
    q: Floats, orders: Floats, levels: Floats
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return log odds just above the largest rate on x that is allowed with each rate on x'.

    The excess increases in p. Therefore a bracket of its root is kept and cut by false position
    (with the Illinois rule), and by a bisection in every third step.

    Args:
        q: log odds of the rates on x', shape `(m,)`.
        orders: orders, shape `(k,)`.
        levels: claimed divergence at each order.

    Returns:
        The upper ends of the brackets, and for each the order whose limit it exceeds most.
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


def _relaxed_delta(claim: Renyi, epsilon: float) -> float:
    """Return the delta that follows if only the event itself limits its rates.

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


def _relaxed_epsilon(claim: Renyi, delta: float) -> float:
    """Return the epsilon at which `_relaxed_delta` equals delta."""
    orders, levels = claim.at_orders()
    above = orders - 1.0
    shift = np.log(above / orders) - (math.log(delta) + np.log(orders)) / above
    epsilons = levels + shift
    return float((epsilons + _RATE_ROUNDING * (np.abs(epsilons) + np.abs(shift))).min())


@lru_cache(maxsize=1024)
def _limit_delta(claim: Renyi, epsilon: float) -> float:
    """Return an upper limit of the largest p - e^epsilon q on the edge."""

    def difference(q: Floats, p: Floats) -> Floats:
        # In logarithms: e^epsilon may overflow although e^epsilon q is small.
        return _compute_rate(p) - np.exp(np.minimum(epsilon + _log_rate(q), 1.0))

    if epsilon == math.inf:
        return 0.0
    relaxed = _relaxed_delta(claim, epsilon)
    value, limit = _maximise_on_edge(claim, difference)
    # A difference that is not larger than its rounding error has no correct digits.
    return relaxed if value <= limit - value else min(relaxed, limit * (1.0 + _ROOT_MARGIN))


@lru_cache(maxsize=64)
def _find_coarse_edge(claim: Renyi) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    """Return log odds of q and p on the edge, and the order that limits each p."""
    # The last point must stay, because p + q > 1 beyond it. The first point must stay too.
    q = np.append(_EDGE_LOG_ODDS[0], _EDGE_LOG_ODDS[::-_COARSE_STRIDE][::-1])
    return q, *_compute_greatest_power(q, *claim.at_orders())


def _maximise_on_edge(
    claim: Renyi, figure: Callable[[Floats, Floats], Floats]
) -> tuple[float, float]:
    """Maximise a function with one peak on the edge; return the value and an upper limit of it.

    p increases in q. Between two points of the edge, no value is above the value at the lower q and
    the upper p. A rate that rounds to 1 is rounded up.

    Args:
        claim: the claim.
        figure: function from log odds of q and of p to one number each, decreasing in q and
            increasing in p. Its peak must lie at p + q <= 1, as for p - e^epsilon q and
            ln((p - delta)/q).

    Returns:
        The value, and the limit that includes all rounding. Both are infinite if the peak is beyond
        the grid.
    """
    q, p, active = _find_coarse_edge(claim)
    best = int(np.argmax(figure(q, p)))
    if best == 0:
        return math.inf, math.inf
    first, last = best - 1, min(q.size - 1, best + 1)
    limiting = active[first : last + 1]
    # Fewer orders allow higher rates. Therefore it is safe to ignore the distant ones.
    near = slice(max(0, limiting.min() - _NEARBY_ORDERS), limiting.max() + _NEARBY_ORDERS + 1)
    orders, levels = (row[near] for row in claim.at_orders())
    for _ in range(_BRACKET_ROUNDS):
        q = np.linspace(q[first], q[last], _BRACKET_POINTS)
        p, _ = _compute_greatest_power(q, orders, levels)
        best = int(np.argmax(figure(q, p)))
        first, last = max(0, best - 1), min(_BRACKET_POINTS - 1, best + 1)
    low, high = q[first], p[last]
    lows = np.array([low, low - _LOG_ODDS_ERROR * (1.0 - low)])
    highs = np.array([high, high + _LOG_ODDS_ERROR * (1.0 + abs(high))])
    value, limit = figure(lows, highs).tolist()
    return value, limit


@lru_cache(maxsize=64)
def _find_boundary(claim: Renyi) -> tuple[Floats, Floats]:
    """Return corners (p, q) of a polygon around the joint range, up to just beyond p + q = 1."""
    orders, levels = claim.at_orders()
    step = max(1, orders.size // _MAX_EDGE_ORDERS)
    p, _ = _compute_greatest_power(_EDGE_LOG_ODDS, orders[::step], levels[::step])
    keep = np.isfinite(p)
    rates = np.minimum(_compute_rate(p[keep]) * (1.0 + _RATE_ROUNDING), 1.0)
    if np.unique(rates).size < _MIN_CORNERS:
        return np.ones(1), np.zeros(1)
    # q is a convex function of p.
    return trade_off.outer_corners(rates, _compute_rate(_EDGE_LOG_ODDS[keep]))


@suggest_arguments
def of(held: Any) -> trade_off.Claim:
    """Convert an accountant, a privacy loss distribution or a measurement to its claim.

    The claim is a copy: later steps of the accountant do not change it.

    Args:
        held: one of

            - Opacus' `RDPAccountant`: an `RDP` claim at its orders;
            - Opacus' `PRVAccountant`: a `TradeOff` of its upper epsilons at 24 deltas from .5 to
              1e-9, each too large by at most .01;
            - a privacy loss distribution of dp-accounting: a `TradeOff` of its delta at 1,000
              epsilons;
            - a `dpcore.adapters.OpenDP` with `d_in`: the value of its privacy map, as a `ZCDP` or
              a `TradeOff`;
            - a claim, which is returned unchanged.

            Opacus' `GaussianAccountant` raises an error, because its central limit theorem can give
            an epsilon that is too small.

    Returns:
        The claim.

    Raises:
        TypeError: if `held` is none of these.
        ValueError: if an accountant has counted no step, or `held` has no finite claim.

    Source:
        For the RDP accountant of Opacus: Mironov, Talwar and Zhang (2019). For the PRV accountant:
        Gopi, Lee and Wutschitz (2021), who also show that the central limit theorem can give an
        epsilon that is too small.

    Example:
        An accountant of a training::

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
        return _make_table(np.array(epsilons), _SEARCHED_DELTAS, "Opacus' PRVAccountant")
    if has_all(held, "get_delta_for_epsilon", "get_epsilon_for_delta"):
        return _read_loss_distribution(held)
    if has_all(held, "measurement", "d_in"):
        return _read_measurement(held)
    raise mistyped("held", _ACCEPTED_OBJECTS, held)


def _read_rdp_accountant(accountant: Any) -> RDP:
    """Return the divergences of the steps that Opacus has counted."""
    from opacus.accountants.analysis.rdp import compute_rdp

    total = np.zeros(_OPACUS_ORDERS.size)
    for noise, rate, steps in accountant.history:
        total += compute_rdp(
            q=rate, noise_multiplier=noise, steps=steps, orders=_OPACUS_ORDERS.tolist()
        )
    # There is no claim at an order that could not be computed.
    return RDP(_OPACUS_ORDERS, np.where(np.isnan(total), math.inf, total))


def _read_loss_distribution(losses: Any) -> trade_off.TradeOff:
    """Return the deltas of a privacy loss distribution, at epsilons up to a tiny delta."""
    least = float(losses.get_delta_for_epsilon(math.inf))
    most = float(losses.get_epsilon_for_delta(least * (1.0 + 1e-6) + _PROFILE_DELTAS[-1]))
    shares = np.linspace(0.0, 1.0, _PROFILE_EPSILON_COUNT) ** 1.2
    epsilons = np.unique(min(max(most, 0.0), _MAX_PROFILE_EPSILON) * shares)
    deltas = np.array(losses.get_delta_for_epsilon(epsilons), dtype=np.float64)
    if most > _MAX_PROFILE_EPSILON:
        # For these epsilons e^epsilon overflows, and delta cannot be read.
        remote = [float(losses.get_epsilon_for_delta(delta)) for delta in _PROFILE_DELTAS.tolist()]
        epsilons, deltas = np.append(epsilons, remote), np.append(deltas, _PROFILE_DELTAS)
    return _make_table(epsilons, deltas, "a privacy loss distribution")


def _read_measurement(adapter: Any) -> trade_off.Claim:
    """Return the claim of an OpenDP measurement's privacy map at the adapter's `d_in`."""
    measure = str(adapter.measurement.output_measure)
    if adapter.d_in is None:
        requirement = "a measurement with d_in, how far apart neighbouring inputs are"
        raise invalid("held", requirement, adapter)
    value = adapter.measurement.map(adapter.d_in)
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(float(value))
    if measure == "SmoothedMaxDivergence":
        epsilons = np.array([value.epsilon(d) for d in _PROFILE_DELTAS.tolist()])
        return _make_table(epsilons, _PROFILE_DELTAS, "OpenDP's profile")
    if measure in ("MaxDivergence", "Approximate(MaxDivergence)"):
        pair = value if isinstance(value, tuple) else (value, 0.0)
        epsilons, deltas = np.array([pair], np.float64).T
        return _make_table(epsilons, deltas, f"OpenDP's {measure}")
    raise invalid("held", "a measurement whose measure is an epsilon, a profile or zCDP", measure)


def _make_table(epsilons: Floats, deltas: Floats, origin: str) -> trade_off.TradeOff:
    """Return the table of the informative pairs, with the least delta at each epsilon."""
    # A negative epsilon at some delta implies the claim with epsilon 0.
    epsilons = np.maximum(epsilons, 0.0)
    says = np.isfinite(epsilons) & (deltas >= 0.0) & (deltas < 1.0)
    epsilons, deltas = epsilons[says], deltas[says]
    if not epsilons.size:
        raise invalid("held", "something that claims a finite epsilon", origin)
    epsilons, deltas = trade_off.least_deltas(epsilons, deltas)
    return trade_off.TradeOff(epsilons=epsilons, deltas=deltas, origin=origin)
