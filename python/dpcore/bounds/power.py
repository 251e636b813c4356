"""Power of an audit: the smallest violation that an audit certifies, and the draws that it needs.

The function `predicted` helps to choose an event, and does not certify a bound. Therefore it uses
approximate quantiles.

The function `detectable` accepts any bound. The functions that compute numbers of draws use only
Clopper-Pearson limits, because the inverse of these limits has a closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, count, delta_level, invalid, numeric, real
from ..records import Counts, Floats
from ..suggestions import explain_argument_errors
from .binomial import bound_of, clopper_pearson
from .canaries import gdp_epsilon, largest_gdp_mu

_PILOT_TAIL = 0.01
_MIN_PAULSON_PARAMETER = 10.0
"""Above this Beta parameter, Paulson's approximate quantile has an error below 0.2 %."""
_MAX_TABLED_DRAWS = 1024
"""Largest number of pilot draws for which a table stores the limits of all possible counts."""


_DEFAULT_CELLS = 32
_CELL_REACH = 3.5
_ROUGH_CELLS, _FINE_CELLS = 64, 2048
"""Numbers of cells (groups of consecutive counts) in a first search, and in the search for the last
digits. With 2,048 cells of one count each, the cells cover twelve standard deviations at a variance
of 29,000. Up to this variance a power is exact. Beyond it, a power is too low by at most .0005."""
_WHOLE_REACH = 6.0
_EXACT_TRIALS, _LOOSE_PARTS = 10**8, 500
"""Largest number of trials that is found exactly. Above it, the error is one part in 500."""
_MIN_SMOOTH_DEVIATION = 1e5
"""Above this standard deviation of a count, an error of one count is negligible."""
MOST_TRIALS: Final = 2**53
"""Largest number of trials in a plan. A float represents every integer up to this number."""

AUTO_FACTOR: Final = 4
"""Trials that an audit with the attack `auto` needs, divided by the trials for a known event.

The factor was measured with noise that is 10 % too small for epsilon 1 (120 to 160 audits per
case). Each pair of numbers gives the percentages of audits that refuted the claim. The first number
is for the planned number of trials. The second number is for AUTO_FACTOR times as many trials
(three times as many if marked *):

- Laplace noise in one entry: 79 and 98* %; in one of 8 entries: 74 and 99* %; clipped: 81 and 99*
  %; spread over two entries: 22 and 95 %;
- Gaussian noise at delta .01: 49 and 100 %; randomised response: 97 % with the plan's trials;
- geometric noise: 83 and 91 %; it takes 16 times as many trials for 95 %.
"""


@explain_argument_errors
def predicted(
    k: npt.ArrayLike,
    n: npt.ArrayLike,
    k_prime: npt.ArrayLike,
    n_prime: npt.ArrayLike,
    trials: int | float | str,
    delta: float = 0.0,
    confidence: float = 0.95,
    *,
    tail: float = _PILOT_TAIL,
) -> npt.NDArray[np.float64]:
    """Predict, from pilot counts, the bound on epsilon that an audit certifies for each event.

    The pilot is a first set of draws on two inputs x and x', on which an event is chosen. For each
    event, the function computes two limits from the pilot counts: a lower limit on
    ``p = P(event | x)``, and an upper limit on ``q = P(event | x')``. Each of these limits fails
    with probability `tail`. The two limits are then used as if they were the true p and q. The
    audit is expected to count the event ``trials`` p times on x, and ``trials`` q times on x'. The
    result is the Clopper-Pearson bound for these two numbers,
    ``max(0, ln((p_low - delta) / q_high))``. Therefore the result is low for an event that has a
    large ratio p/q but happened in few pilot draws.

    Use the result only to choose an event, because it is an approximation. Do not count the pilot
    draws again in the audit.

    Args:
        k: number of pilot draws on x in which each event happened.
        n: number of pilot draws on x.
        k_prime: number of pilot draws on x' in which each event happened.
        n_prime: number of pilot draws on x'.
        trials: number of draws per input that the audit will count.
        delta: delta of the claim, in [0, 1).
        confidence: confidence level of the audit, strictly between 0 and 1.
        tail: error probability of each of the two limits from the pilot. A smaller value gives
            lower, more cautious predictions. With 0.5, the two limits are close to the observed
            frequencies.

    Returns:
        One predicted bound on epsilon per event, finite and at least 0. The shape is the broadcast
        shape of `k`, `n`, `k_prime` and `n_prime`.

    Raises:
        TypeError: if an array does not contain numbers, or another argument has the wrong type.
        ValueError: if a count is not from 0 to its number of draws, the shapes do not broadcast, or
            a value is out of range.

    Source:
        Clopper and Pearson (1934); Paulson (1942), Annals of Mathematical Statistics 13, for the
        quantiles.

    Example:
        >>> predicted([500, 3], 1000, [200, 0], 1000, trials=10**6).round(2).tolist()
        [0.69, 0.0]
    """
    delta = delta_level(delta)
    limits = predict_probability_limits(k, n, k_prime, n_prime, trials, confidence, tail)
    return limits_to_epsilon_bounds(*limits, delta)


def limits_to_epsilon_bounds(p_low: Floats, q_high: Floats, delta: float) -> Floats:
    """Compute lower limits on epsilon from limits on the probabilities of events.

    Args:
        p_low: lower limits on the probabilities of the events on x.
        q_high: upper limits on the probabilities of the events on x', in the same order.
        delta: delta of the claim.

    Returns:
        One number per event: ``max(0, ln((p_low - delta) / q_high))``.
    """
    margin = np.maximum(p_low - delta, 0.0)
    return np.asarray(np.log(np.maximum(margin / q_high, 1.0)))


def predict_probability_limits(
    k: npt.ArrayLike,
    n: npt.ArrayLike,
    k_prime: npt.ArrayLike,
    n_prime: npt.ArrayLike,
    trials: int | float | str,
    confidence: float = 0.95,
    tail: float = _PILOT_TAIL,
) -> tuple[Floats, Floats]:
    """Predict the limits that an audit will compute for the probabilities of several events.

    The arguments have the same meaning as in `predicted`, which uses these limits.

    Returns:
        Two arrays with one number per event: a lower limit on the probability on x, and an upper
        limit on the probability on x'.
    """
    hits, draws = _check_counts("k", k, "n", n)
    hits_prime, draws_prime = _check_counts("k_prime", k_prime, "n_prime", n_prime)
    try:
        np.broadcast_shapes(hits.shape, hits_prime.shape)
    except ValueError:
        requirement = f"of a shape that fits k, {hits.shape}"
        raise invalid("k_prime", requirement, hits_prime.shape) from None
    total = float(count("trials", trials))
    confidence, tail = confidence_level(confidence), confidence_level(tail, "tail")
    return predict_limits_unchecked((hits, draws, hits_prime, draws_prime), total, confidence, tail)


def predict_limits_unchecked(
    counts: Sequence[Floats], trials: float, confidence: float, tail: float
) -> tuple[Floats, Floats]:
    """Predict the limits on the probabilities of several events, without argument checks.

    The function is `predict_probability_limits` without checks of the arguments.

    Args:
        counts: four arrays of shapes that broadcast. The first is the number of pilot draws on x in
            which each event happened. The second is the number of all pilot draws on x. The third
            and the fourth are the same numbers for x'.
        trials: number of draws per input that the audit will count.
        confidence: confidence level of the audit.
        tail: error probability of each limit that is computed from the pilot.

    Returns:
        Lower limits on the probabilities on x, and upper limits on the probabilities on x'.
    """
    (hits, draws, hits_prime, draws_prime), alpha = counts, (1.0 - confidence) / 2.0
    p_low = _cached_expected_limits(hits, draws, trials, tail, alpha, upper=False)
    return p_low, _cached_expected_limits(hits_prime, draws_prime, trials, tail, alpha, upper=True)


def _check_counts(k_name: str, k: Any, n_name: str, n: Any) -> tuple[Floats, Floats]:
    hits, draws = (
        numeric(name, "an array of numbers", value, "uif").astype(np.float64, copy=False)
        for name, value in ((k_name, k), (n_name, n))
    )
    if not (np.isfinite(draws) & (draws >= 1.0)).all():
        raise invalid(n_name, "at least 1 and finite", n)
    try:
        hits, draws = np.broadcast_arrays(hits, draws)
    except ValueError:
        raise invalid(k_name, f"of a shape that fits {n_name}, {draws.shape}", hits.shape) from None
    if not ((hits >= 0.0) & (hits <= draws)).all():
        raise invalid(k_name, f"from 0 to {n_name} in every entry", k)
    return hits, draws


def _cached_expected_limits(
    pilot_hits: Floats, pilot_draws: Floats, total: float, tail: float, alpha: float, *, upper: bool
) -> Floats:
    """Return `_expected_limit`. If all pilots are small and of one size, use a stored table."""
    n, places = int(pilot_draws.flat[0]) if pilot_draws.size else 0, pilot_hits.astype(np.intp)
    if 0 < n <= _MAX_TABLED_DRAWS and (pilot_draws == n).all() and (places == pilot_hits).all():
        return _limit_by_pilot_hits(n, total, tail, alpha, upper=upper)[places]
    return _expected_limit(pilot_hits, pilot_draws, total, tail, alpha, upper=upper)


@lru_cache(maxsize=64)
def _limit_by_pilot_hits(n: int, total: float, tail: float, alpha: float, *, upper: bool) -> Floats:
    hits = np.arange(n + 1.0)
    return _expected_limit(hits, np.full_like(hits, n), total, tail, alpha, upper=upper)


def _expected_limit(
    pilot_hits: Floats, pilot_draws: Floats, total: float, tail: float, alpha: float, *, upper: bool
) -> Floats:
    """Compute the limit from `total` draws if the true rate equals the limit from the pilot."""
    if upper:
        q = _beta_tail_quantile(pilot_hits + 1.0, pilot_draws - pilot_hits, tail, upper=True)
        return _beta_tail_quantile(q * total + 1.0, total - q * total, alpha, upper=True)
    p = _beta_tail_quantile(pilot_hits, pilot_draws - pilot_hits + 1.0, tail, upper=False)
    return _beta_tail_quantile(p * total, total - p * total + 1.0, alpha, upper=False)


def _beta_tail_quantile(a: Floats, b: Floats, alpha: float, *, upper: bool) -> Floats:
    """Find the point at which a tail of Beta(a, b) is alpha.

    The argument `upper` chooses the upper or the lower tail. The result is 1 at b = 0 and 0 at a =
    0.
    """
    from scipy.special import betainccinv, betaincinv, ndtri

    z = -float(ndtri(alpha)) if upper else float(ndtri(alpha))
    few = np.minimum(a, b) < max(_MIN_PAULSON_PARAMETER, z * z)
    # The filler value keeps the formula defined in entries that use the other branch.
    large = _paulson_beta_quantile(np.where(few, 1e3, a), np.where(few, 1e3, b), z)
    inside = few & (a > 0.0) & (b > 0.0)
    limit: Floats = np.where(b <= 0.0, 1.0, np.where(few, 0.0, large))
    inverse = betainccinv if upper else betaincinv
    limit[inside] = inverse(a[inside], b[inside], alpha)
    return limit


def _paulson_beta_quantile(a: Floats, b: Floats, z: float) -> Floats:
    """Compute approximately the Phi(z) quantile of Beta(a, b).

    The approximation is based on cube roots of chi-square variables, which are nearly normal.
    """
    s, t = 1.0 / (9.0 * a), 1.0 / (9.0 * b)
    lead = (1.0 - t) ** 2 - z * z * t
    middle = (1.0 - s) * (1.0 - t)
    last = (1.0 - s) ** 2 - z * z * s
    root = (middle + np.sign(z) * np.sqrt(np.maximum(middle**2 - lead * last, 0.0))) / lead
    odds: Floats = a / b * root**3
    return odds / (1.0 + odds)


@explain_argument_errors
def detectable(
    n: int | float | str,
    claim: float,
    mass: float,
    bound: Callable[[Counts, float, float], float] | str = clopper_pearson,
    delta: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.95,
) -> tuple[float, float]:
    """Find the smallest ratio p/q of event probabilities at which an audit refutes a claim.

    The event has probability p = `mass` on x and probability q on x'. Here x and x' are two
    neighbouring inputs. The audit makes n draws on x and n draws on x', and refutes the claim with
    probability at least `power`. The result supports this sentence: "If an event has probability at
    least `mass` on x, and is at least `ratio` times as likely on x as on x', then an audit
    certifies epsilon > `claim` with probability at least `power`." The result does not apply to
    events with smaller probabilities.

    Let K ~ Binomial(n, mass) and K' ~ Binomial(n, mass/ratio) be the counts of the event. The audit
    certifies a violation with probability P(bound(K, K') > claim). The bound must increase in k and
    decrease in k'. Let most(k) be the largest k' for which the bound exceeds the claim. The values
    of K are divided into at most 32 cells (groups of consecutive counts). Let f be the first count
    of a cell. Then the probability is at least the sum of P(K in the cell) P(K' <= most(f)) over
    all cells. The function uses this sum instead of the exact probability. Therefore the returned
    ratio can be larger than the exact ratio, but not smaller. No simulation is needed.

    Args:
        n: number of draws per input.
        claim: the claimed epsilon, at least 0.
        mass: probability p of the event on x, in (0, 1].
        bound: function ``(counts, delta, confidence) -> epsilon_lower``, or the name of a bound.
            The function is called about 200 times.
        delta: delta of the claim, in [0, 1).
        confidence: confidence level of the audit, strictly between 0 and 1.
        power: probability with which the audit certifies a violation, strictly between 0 and 1.

    Returns:
        The pair (mass, ratio). The ratio is infinite if the audit certifies a violation with a
        probability below `power`, even for an event that never happens on x'.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range, or the bound does not return a number.

    Source:
        Clopper and Pearson (1934) for the limits of the default bound. The power follows from the
        definition of power.

    Example:
        >>> mass, ratio = detectable(10**6, claim=1.0, mass=0.1)
        >>> mass, round(ratio, 2)
        (0.1, 2.79)
    """
    n, claim, delta = count("n", n), real("claim", claim, low=0.0), delta_level(delta)
    mass = real("mass", mass, low=0.0, high=1.0, open_low=True)
    confidence, power = confidence_level(confidence), confidence_level(power, "power")

    limit = bound_of(bound)

    def margin(k: int, k_prime: int) -> float:
        bound_value = limit(Counts(k, n, k_prime, n), delta, confidence)
        if math.isnan(bound_value):
            raise invalid("bound", "a function that returns a number", bound_value)
        return bound_value - claim

    first, weight = _binomial_cells(n, mass)
    guess = max(0.0, mass - delta) * math.exp(-claim)
    largest = [_find_largest_count(margin, k, n, guess) for k in first.tolist()]
    most = np.array(largest, dtype=np.float64)
    chance = _power_function_of_q(n, most, weight)
    if chance(0.0) < power:
        return mass, math.inf
    low, high = 0.0, mass
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) >= power else (low, middle)
    return mass, mass / low if low > 0.0 else math.inf


def _binomial_cells(
    n: int, mass: float, cells: int = _DEFAULT_CELLS, reach: float = _CELL_REACH
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Divide the values of Binomial(n, mass) into cells; return first counts and probabilities."""
    from scipy.special import betainc

    spread = reach * math.sqrt(n * mass * (1.0 - mass)) + reach
    low, high = max(0.0, n * mass - spread), min(float(n), n * mass + spread)
    first = np.unique(np.floor(np.linspace(low, high, cells)).astype(np.int64))
    # P(K >= k) is 1 at k = 0. The probability below the first cell is left out.
    tail = np.where(first > 0, betainc(np.maximum(first, 1), n - first + 1.0, mass), 1.0)
    return first, tail - np.append(tail[1:], 0.0)


def _power_function_of_q(n: int, most: Floats, weight: Floats) -> Callable[[float], float]:
    """Return a function that maps q to a lower limit on the power (probability of refutation)."""
    from scipy.special import betaincc

    some = most >= 0.0
    most, weight = most[some], weight[some]
    room = np.maximum(n - most, 0.5)

    def chance(q: float) -> float:
        below = np.where(most < n, betaincc(most + 1.0, room, q), 1.0)
        return float(weight @ below)

    return chance


def _find_largest_count(margin: Callable[[int, int], float], k: int, n: int, guess: float) -> int:
    """Find the largest k' at which the margin is above 0; -1 if the margin is never above 0."""
    at_low = margin(k, 0)
    if at_low <= 0.0:
        return -1
    low, high, at_high = 0, n + 1, -1.0
    point = min(n, max(1, math.ceil(n * guess)))
    for step in range(200):
        value = margin(k, point)
        if value > 0.0:
            low, at_low = point, value
        else:
            high, at_high = point, value
        if high - low <= 1:
            break
        # The secant's point; every third time the midpoint, so that both ends move.
        share = 0.5 if step % 3 == 2 else at_low / (at_low - at_high)
        point = min(high - 1, max(low + 1, round(low + share * (high - low))))
    return low


def certifies(
    n: int,
    claim: float,
    p: float,
    q: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    cells: int = _FINE_CELLS,
) -> float:
    """Compute the probability that an audit with n draws per input refutes a claim.

    Let K ~ Binomial(n, p) and K' ~ Binomial(n, q) be the counts of an event on two inputs x and x'.
    The probability is ``sum over k of P(K = k) P(K' <= most(k))``. Here most(k) is the largest k'
    for which the bound `clopper_pearson` from k and k' exceeds the claim. The values of K are
    divided into cells (groups of consecutive counts). The result is exact if each cell has only one
    count. Otherwise the result is a lower limit on the probability, because the function replaces
    each count by the first count of its cell.

    Args:
        n: number of draws on x, and on x', at least 1.
        claim: the claimed epsilon.
        p: probability of the event on x.
        q: probability of the event on x'.
        delta: delta of the claim.
        confidence: confidence level of the audit.
        cells: largest number of cells.

    Returns:
        The probability, or a lower limit on it.

    Source:
        Clopper and Pearson (1934) for the limits. The power follows from the definition of power.

    Example:
        >>> round(certifies(400, 1.0, p=0.5, q=0.1), 4)
        0.9506
    """
    first, weight = _binomial_cells(n, p, cells, _WHOLE_REACH)
    most = _find_largest_counts(n, first, claim, delta, (1.0 - confidence) / 2.0)
    return min(1.0, _power_function_of_q(n, most, weight)(q))


def _find_largest_counts(
    n: int, first: npt.NDArray[np.int64], claim: float, delta: float, alpha: float
) -> Floats:
    """Find, for each k, the largest k' whose bound exceeds the claim; -1 if no k' exceeds it.

    The upper limit from the count k' is below l if and only if P(Binomial(n, l) <= k') < alpha.
    """
    from scipy.special import betaincc, betaincinv, ndtri

    low = np.where(first > 0, betaincinv(np.maximum(first, 1), n - first + 1.0, alpha), 0.0)
    limit = np.maximum(low - delta, 0.0) * math.exp(-claim)

    def below(most: Floats) -> npt.NDArray[np.bool_]:
        tail = betaincc(np.maximum(most, 0.0) + 1.0, np.maximum(n - most, 0.5), limit)
        is_below: npt.NDArray[np.bool_] = (most < 0.0) | ((most < n) & (tail < alpha))
        return is_below

    z = float(ndtri(alpha))
    spread = np.sqrt(n * limit * (1.0 - limit))
    # First terms of the Cornish-Fisher expansion; the loops below correct the last few steps.
    start = n * limit + z * spread + (z * z - 1.0) * (1.0 - 2.0 * limit) / 6.0 - 0.5
    most = np.clip(np.floor(start), -1.0, n - 1.0)
    if float(spread.max()) > _MIN_SMOOTH_DEVIATION:
        return np.where(limit > 0.0, np.maximum(most - 1.0, -1.0), -1.0)
    while (high := ~below(most)).any():
        most[high] -= 1.0
    while (more := below(most + 1.0)).any():
        most[more] += 1.0
    return np.where(limit > 0.0, most, -1.0)


def trials_for(
    claim: float,
    rates: Sequence[tuple[float, float]],
    delta: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.95,
    *,
    rough: bool = False,
) -> int | None:
    """Find how many draws per input an audit needs to refute a claim with a given probability.

    The power is the probability that an audit with n draws on x and n draws on x' certifies an
    epsilon above the claim. The power is not monotone in n, because counts are whole numbers. For
    the returned n, the power is at least `power`. For n - 1, the power is smaller. If n is above
    10^8, or if `rough` is True, the returned number can be a few percent too large.

    Args:
        claim: the claimed epsilon.
        rates: pairs (p, q), one for each event: the probabilities of the event on x and on x'. An
            audit counts only one of the events, and chooses each event with the same probability.
        delta: delta of the claim.
        confidence: confidence level of the audit.
        power: probability with which the audit certifies a violation.
        rough: True for an approximate number, which is computed in a few milliseconds.

    Returns:
        The number of draws per input, or None if 2**53 draws are not enough.

    Example:
        >>> n = trials_for(1.0, [(0.5, 0.1)])
        >>> n, certifies(n, 1.0, 0.5, 0.1) >= 0.95 > certifies(n - 1, 1.0, 0.5, 0.1)
        (400, True)
    """
    from scipy.special import ndtri

    each = Counter(rates)
    starts = [
        _approximate_trials(claim, *pair_of_rates, delta, confidence, power)
        for pair_of_rates in rates
    ]
    able = sorted(start for start in starts if start is not None)
    if len(able) <= power * len(starts) and len(able) < len(starts):
        return None

    def margin(cells: int, n: int) -> float:
        parts = (
            many * certifies(n, claim, *pair_of_rates, delta, confidence, cells)
            for pair_of_rates, many in each.items()
        )
        # On this scale, power is almost linear in the square root of n.
        return float(ndtri(min(1.0, sum(parts) / len(rates))) - ndtri(power))

    start = able[len(able) // 2]
    n_trials = _find_least_with_margin(partial(margin, _ROUGH_CELLS), start, _LOOSE_PARTS)
    if rough or start >= _EXACT_TRIALS or n_trials is None:
        return n_trials
    # The first search is cheap. It leaves only a few steps of the slow second search.
    fine = max(_FINE_CELLS // len(each), 4 * _ROUGH_CELLS)
    return _find_least_with_margin(partial(margin, fine), n_trials, 1)


def _approximate_trials(
    claim: float, p: float, q: float, delta: float, confidence: float, power: float
) -> int | None:
    """Compute the number of draws by a normal approximation; return None if it is too large."""
    from scipy.special import ndtri

    if p <= delta or (q > 0.0 and math.log((p - delta) / q) <= claim):
        return None
    alpha = (1.0 - confidence) / 2.0
    # With k' = 0, the limit on q is about -ln(alpha)/n.
    n_trials = -math.log(alpha) * math.exp(min(claim, 500.0)) / (p - delta)
    if q > 0.0:
        s, s_prime = math.sqrt(p * (1.0 - p)) / (p - delta), math.sqrt((1.0 - q) / q)
        reach = float(ndtri(power)) * math.hypot(s, s_prime) - float(ndtri(alpha)) * (s + s_prime)
        n_trials = max(n_trials, (max(0.0, reach) / (math.log((p - delta) / q) - claim)) ** 2)
    return math.ceil(n_trials) if n_trials < MOST_TRIALS else None


def _find_least_with_margin(margin: Callable[[int], float], start: int, parts: int) -> int | None:
    """Find the least number near `start` with a margin of at least 0, or None if it is too large.

    The search moves away from the start in growing steps. Then secant and bisection steps narrow
    the interval. The result is exact up to one part in `parts`.
    """
    step, low, high = 1.01, start, start
    at_low = at_high = margin(start)
    while at_high < 0.0:
        low, at_low, high, step = high, at_high, math.ceil(high * step), step * step
        if high > MOST_TRIALS:
            return None
        at_high = margin(high)
    while at_low >= 0.0 and low > 0:
        high, at_high, low, step = low, at_low, math.floor(low / step), step * step
        at_low = margin(low) if low else -math.inf
    for turn in range(200):
        if high - low <= (1 if parts == 1 else 1 + high // parts):
            break
        share = 0.5 if turn % 3 == 2 else at_low / (at_low - at_high)
        share = share if math.isfinite(share) else 0.5
        middle = (math.sqrt(low) + share * (math.sqrt(high) - math.sqrt(low))) ** 2
        point = min(high - 1, max(low + 1, math.ceil(middle)))
        value = margin(point)
        if value >= 0.0:
            high, at_high = point, value
        else:
            low, at_low = point, value
    return high


def scaled_noise_epsilon(claim: float, factor: float, delta: float = 0.0) -> float:
    """Compute the true epsilon of noise whose scale is `factor` times the scale that a claim needs.

    If delta is 0, the true epsilon is ``claim / factor``. This formula is right for Laplace noise,
    and for other noise whose epsilon is inversely proportional to its scale. If delta is above 0,
    the function assumes Gaussian noise. Let mu be the distance of two neighbouring inputs, divided
    by the standard deviation that the claim needs. Then mu solves
    ``delta = Phi(mu/2 - claim/mu) - e^claim Phi(-mu/2 - claim/mu)``. The true epsilon solves the
    same equation with mu / factor in place of mu.

    Args:
        claim: the claimed epsilon.
        factor: actual scale of the noise, divided by the scale that the claim needs, above 0.
        delta: delta of the claim.

    Returns:
        The true epsilon at `delta`.

    Source:
        Dwork et al. (2006) for Laplace noise; Balle and Wang (2018), theorem 8, for Gaussian noise.

    Example:
        >>> round(scaled_noise_epsilon(1.0, 0.9), 4), round(scaled_noise_epsilon(1.0, 0.9, 1e-5), 4)
        (1.1111, 1.1228)
    """
    return gdp_epsilon(largest_gdp_mu(claim, delta) / factor, delta) if delta else claim / factor


def best_gaussian_rates(
    claim: float, true_epsilon: float, delta: float, confidence: float, power: float
) -> tuple[float, float]:
    """Find the event that needs the fewest draws to refute a claim about Gaussian noise.

    The outputs are N(mu, 1) on x and N(0, 1) on x'. Here mu is the largest number for which this
    noise is (`true_epsilon`, `delta`)-DP. The event is "the output is above t". The function
    chooses the threshold t from 321 values.

    Args:
        claim: the claimed epsilon.
        true_epsilon: the true epsilon at the same delta, above the claim.
        delta: delta of the claim and of the true loss, above 0.
        confidence: confidence level of the audit.
        power: probability with which the audit certifies a violation.

    Returns:
        The probabilities of the event on x and on x'. If no threshold gives an event that can
        refute the claim, a default threshold is used.

    Source:
        Dong, Roth and Su (2022), section 2.3: threshold events are the best events for these two
        distributions.

    Example:
        >>> p, q = best_gaussian_rates(1.0, 1.2, 1e-5, 0.95, 0.95)
        >>> round(math.log((p - 1e-5) / q), 2)  # the loss that it shows: above 1, at most 1.2
        1.13
    """
    from scipy.special import ndtr

    mu = largest_gdp_mu(true_epsilon, delta)
    # At `meet` the log ratio of the densities is the true epsilon. Thresholds around this point are
    # tried; the unit is the standard deviation.
    meet = true_epsilon / mu + mu / 2.0
    grid = np.linspace(meet - 4.0, meet + 4.0, 321)
    best_rates, best = (float(ndtr(mu - meet)), float(ndtr(-meet))), math.inf
    for p, q in zip(ndtr(mu - grid).tolist(), ndtr(-grid).tolist(), strict=True):
        trials = _approximate_trials(claim, p, q, delta, confidence, power)
        if trials is not None and trials < best:
            best_rates, best = (p, q), trials
    return best_rates
