"""Figures of an audit's record: the bound that applies, its counts and its confidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from ..bounds import (
    BOUNDS,
    Band,
    Martingale,
    anytime,
    clopper_pearson,
    detectable,
    every_coordinate,
    tradeoff_band,
)
from ..bounds.binomial import limits
from ..bounds.declaration import find_declaration
from ..claims.trade_off import Claim
from ..errors import invalid
from ..events import event_of
from ..records import Counts
from .evidence import Evidence, log_ratio, numerator_first
from .evidence import empirical_loss as _empirical_loss

_STEPS_BELOW_CLAIM = 10
_GRID_RATIO = 1.02
_MAX_GRID_EPSILON = 64.0
_MAX_PARAMETERS: Final = 120
"""Parameters of a claim that are tested: up to nine times the claim."""
_MAX_DIGITS, _MAX_DIGITS_ONE_SIDED = 15, 17
"""Digits after the first two of the numbers of draws that are tried."""


def certified_bound(audit: Evidence) -> float:
    """Compute the bound that decides the verdict, whole (never divided by a distance).

    Where a check of the rows failed it is 0, which holds whatever the mechanism does.
    """
    return certified_at(audit, audit.delta)


def certified_at(audit: Evidence, delta: float) -> float:
    """Compute the bound that decides the verdict at any delta, whole."""
    if audit.checks:
        return 0.0
    own = bound_at(audit, delta, single_bound_level(audit))
    if not audit.floats or audit.floating_point is None:
        return own
    # Both hold at once with the confidence asked for, so the larger one may be reported.
    bound = clopper_pearson if audit.stop == "fixed" else anytime
    return max(own, bound(audit.floating_point.bound_counts, delta, single_bound_level(audit)))


def single_bound_level(audit: Evidence) -> float:
    """Return the confidence of a single bound.

    With a counted floating-point bound, each of the two bounds gets half of alpha.
    """
    return 1.0 - (1.0 - audit.confidence) / 2.0 if audit.floats else audit.confidence


def bound_at(audit: Evidence, delta: float, confidence: float) -> float:
    """Compute the audit's own bound at any delta; return 0 if no bound holds."""
    if audit.checks:
        return 0.0
    if audit.slices:
        return _sequential_bound(audit, delta, confidence)
    if audit.pooled:
        groups = [numerator_first(c, audit.direction) for c in audit.pooled]
        return every_coordinate(groups, audit.event.multiplicities, delta, confidence)
    return BOUNDS[audit.bound](audit.bound_counts, delta, confidence)


def log_wealth(audit: Evidence, epsilon: float, delta: float) -> float:
    """Compute the log wealth of the test martingale against (epsilon, delta) over the slices."""
    martingale = Martingale(epsilon, delta)
    label, before = 0, None
    for piece in audit.slices:
        counts = piece.bound_counts
        # Slices with one event share one mixture of bets.
        label += before is not None and (piece.event, piece.direction) != before
        before = (piece.event, piece.direction)
        martingale.update(counts.k, counts.k_prime, counts.n, event=label, predicted=piece.guess)
    return martingale.log_wealth


def _sequential_bound(audit: Evidence, delta: float, confidence: float) -> float:
    """Return the end of a fixed grid up to which the martingale refutes every epsilon.

    A loss of at most e is also one of at most the next grid point g, so for the result to exceed
    the true loss the martingale of that one g must have crossed: probability 1 - confidence.
    """
    if delta != audit.delta:
        raise invalid("delta", f"{audit.delta:g}, the one that the slices were bet on", delta)
    goal = -math.log1p(-confidence)
    found = 0.0
    for epsilon in _iterate_grid(
        0.0 if audit.claimed_epsilon is None else audit.claimed_epsilon * audit.pair.distance
    ):
        if log_wealth(audit, epsilon, delta) < goal:
            break
        found = epsilon
    return found


def _iterate_grid(claim: float) -> Iterator[float]:
    """Yield epsilons fixed by the claim alone: tenths of it, then steps of 2 per cent up to 64."""
    if claim > 0.0:
        yield from (claim * step / _STEPS_BELOW_CLAIM for step in range(1, _STEPS_BELOW_CLAIM + 1))
    else:
        yield 0.0
    epsilon = max(claim, 0.01)
    while epsilon < _MAX_GRID_EPSILON:
        epsilon *= _GRID_RATIO
        yield epsilon


def require_fixed_size(audit: Evidence) -> Evidence:
    """Return the audit if its rows are independent and their number was fixed in advance."""
    if audit.checks:
        raise invalid("checks", "empty for what rests on independent rows", audit.checks[0])
    if audit.stop != "fixed":
        raise invalid("stop", "'fixed' for what rests on limits at a fixed n", audit.stop)
    return audit


def confidence_band(audit: Evidence) -> Band:
    """Compute the upper confidence band on the trade-off function."""
    curve = audit.curve
    if curve is None or event_of(audit.event).own_score is None:
        raise invalid("attack", "one whose event is a threshold on a score", audit.attack)
    sides = [(curve.k, curve.n), (curve.k_prime, curve.n_prime)]
    if audit.event.side == "below":
        # "Not above" is what the pilot found telling; thresholds in falling order then.
        sides = [((n - k)[::-1], n) for k, n in sides]
    if audit.direction == "x_prime":
        sides.reverse()
    (k, n), (k_prime, n_prime) = sides
    return tradeoff_band(k, n, k_prime, n_prime, audit.confidence)


def power_sentence(audit: Evidence) -> str:
    """Describe what a verdict that does not refute still excludes about the counted event.

    Args:
        audit: the audit.

    Returns:
        One or two short sentences; empty where a claim was refuted, not given or not tested, and
        for audits with early stop or pooled coordinates.
    """
    if (
        is_refuted(audit) is not False
        or audit.claimed_epsilon is None
        or audit.slices
        or audit.pooled
    ):
        return ""
    counts = audit.bound_counts
    first, second = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    silent = tells_nothing(counts)
    if silent:
        return f"power: {silent} and cannot refute the claim. Other events were not tested."
    if counts.k == 0:
        return (
            f"power: this event never happened on {first}, where the pilot expected more of it "
            f"than on {second}. In this direction it certifies nothing."
        )
    mass = counts.k / counts.n
    whole = audit.claimed_epsilon * audit.pair.distance
    bound = BOUNDS[audit.bound]
    # The exact test would take minutes here; what Clopper-Pearson certifies, it nearly always does.
    bound = clopper_pearson if find_declaration(bound).slow else bound
    ratio = detectable(counts.n, whole, mass, bound, audit.delta, single_bound_level(audit))[1]
    if not math.isfinite(ratio):
        return (
            "power: with these trials no event of this frequency refutes the claim with 95 % "
            f"probability, not even one that never happens on {second}."
        )
    return (
        "power: the claim would be refuted with 95 % probability if this event were "
        f"{ratio:.4g} times as likely on {first} as on {second}. Other events were not tested."
    )


def is_refuted(audit: Evidence) -> bool | None:
    """Return True if the bound exceeds the claim, False if not, None without claim or bound."""
    if audit.claimed_epsilon is None or audit.checks:
        return None
    # A metric claim is (epsilon D, delta) at distance D: the bound itself is never divided.
    if is_curve_test(audit):
        return curve_refuted(audit, audit.claim)
    whole = audit.claimed_epsilon * audit.pair.distance
    if audit.slices:
        # Whether the martingale against the claim itself has crossed.
        return log_wealth(audit, whole, audit.delta) >= -math.log1p(-audit.confidence)
    return certified_bound(audit) > whole


def is_curve_test(audit: Evidence) -> bool:
    """Return True if the whole curve of the claim is tested, not its tangent alone.

    It takes the two limits of Clopper and Pearson: any other bound knows one (epsilon, delta).
    """
    if not isinstance(audit.claim, Claim) or audit.slices or audit.pooled:
        return False
    return find_declaration(BOUNDS[audit.bound]).curves == "point"


def curve_points(audit: Evidence) -> list[tuple[float, float]]:
    """Return type I and type II errors on or above the trade-off curve, each pair from one event.

    With the confidence of the audit all of them are: each pair has half of the error probability
    where the floating-point finding counts, and each limit half of its pair's.
    """
    found = [audit.bound_counts]
    if audit.floats and audit.floating_point is not None:
        found.append(audit.floating_point.bound_counts)
    alpha = (1.0 - single_bound_level(audit)) / 2.0
    return [point_of(counts, alpha) for counts in found]


def point_of(counts: Counts, alpha: float) -> tuple[float, float]:
    """Compute upper limits on type I and type II error, each failing with probability alpha.

    Args:
        counts: of the event, the numerator's side first.
        alpha: strictly between 0 and 1.
    """
    type_one = limits(counts.k_prime, counts.n_prime, alpha)[1]
    return type_one, 1.0 - limits(counts.k, counts.n, alpha)[0]


def curve_refuted(audit: Evidence, claim: Any) -> bool:
    """Return True if a point lies below the curve of a claim."""
    return any(two < claim.trade_off(one) for one, two in curve_points(audit))


def parameter_lower(audit: Evidence) -> float | None:
    """Return the largest mu or rho that is refuted; None for a claim without such a parameter.

    Where the tangent alone is tested its slope stays, and the parameters of a fixed grid are
    tested from below until one is not refuted: for the result to exceed the true parameter, the
    test of the one grid point next to that must have failed.
    """
    claim = audit.claim
    if not isinstance(claim, Claim) or claim.parameter is None or audit.checks:
        return None
    if is_curve_test(audit):
        return parameter_of_points(claim.with_parameter(1.0), tuple(curve_points(audit)))
    epsilon = audit.tangent or 0.0
    return parameter_on_grid(
        claim, epsilon, lambda delta: _is_tangent_refuted(audit, epsilon, delta)
    )


def parameter_on_grid(claim: Claim, epsilon: float, refuted: Callable[[float], bool]) -> float:
    """Return the end of a fixed grid of parameters up to which every tangent is refuted.

    Args:
        claim: the claim, whose parameter fixes the grid.
        epsilon: of the tangent, whose slope is that of all.
        refuted: True for a delta at which (epsilon, delta) is refuted.
    """
    found = 0.0
    for value in itertools.islice(
        _iterate_grid(getattr(claim, str(claim.parameter))), _MAX_PARAMETERS
    ):
        delta = claim.with_parameter(value).delta(epsilon)
        if delta >= 1.0 or not refuted(delta):
            break
        found = value
    return found


@lru_cache(maxsize=256)
def parameter_of_points(claim: Claim, points: tuple[tuple[float, float], ...]) -> float:
    """Return the largest parameter whose curve lies above one of some points."""
    return claim.largest(lambda one: any(two < one.trade_off(q) for q, two in points))


def _is_tangent_refuted(audit: Evidence, epsilon: float, delta: float) -> bool:
    """Return True if the audit's bound refutes (epsilon, delta)."""
    if audit.slices:
        return log_wealth(audit, epsilon, delta) >= -math.log1p(-audit.confidence)
    return certified_at(audit, delta) > epsilon


def empirical_loss(audit: Evidence) -> float:
    """Compute the whole point estimate, from the counts or from those of pooled coordinates."""
    if audit.pooled:
        groups = zip(audit.pooled, audit.event.multiplicities, strict=True)
        found = (many * log_ratio(c.k, c.k_prime, c.n, c.n_prime) for c, many in groups)
        return abs(float(sum(found)))
    return _empirical_loss(audit.counts)


def tells_nothing(counts: Counts) -> str:
    """Explain why an event that happened always or never shows nothing; else return ""."""
    if counts.k == 0 and counts.k_prime == 0:
        return "this event happened in no draw on either side"
    if counts.k == counts.n and counts.k_prime == counts.n_prime:
        return "this event happened in every draw on both sides"
    return ""


def trials_needed(audit: Evidence) -> int | None:
    """Return the trials on each side with which the frequencies of an audit refute its claim.

    Args:
        audit: an audit with a claim.

    Returns:
        The number, rounded up to two digits; None if 10**16 are not enough (10**18 where the
        event never happened on the other side).
    """
    claim = (audit.claimed_epsilon or 0.0) * audit.pair.distance
    return draws_needed(audit.bound_counts, claim, audit.delta, single_bound_level(audit))


def draws_needed(seen: Counts, claim: float, delta: float, confidence: float) -> int | None:
    """Compute the trials needed from counts with the numerator's side first."""
    if not exceeds_claim(seen, claim, delta):
        return None

    def enough(trials: int) -> bool:
        k, k_prime = seen.k * trials // seen.n, -(-seen.k_prime * trials // seen.n_prime)
        counts = Counts(k, trials, k_prime, trials)
        return clopper_pearson(counts, delta, confidence) > claim

    # Beyond these the limits of a double fail, those of an event that never happened later.
    for digits in range(_MAX_DIGITS_ONE_SIDED if seen.k_prime == 0 else _MAX_DIGITS):
        if enough(99 * 10**digits):
            return next(n for n in range(10 * 10**digits, 10**18, 10**digits) if enough(n))
    return None


def exceeds_claim(seen: Counts, claim: float, delta: float) -> bool:
    """Return True if the frequencies show more than the claim, so that enough draws refute it.

    Where the event never happened on the other side they do: the bound then grows with the
    logarithm of the number of draws.

    Args:
        seen: counts with the numerator's side first.
        claim: the claimed epsilon, whole.
        delta: delta of the claim.
    """
    share, share_prime = seen.k / seen.n - delta, seen.k_prime / seen.n_prime
    return share > 0.0 and (share_prime == 0.0 or math.log(share / share_prime) > claim)
