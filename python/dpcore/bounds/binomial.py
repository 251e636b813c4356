"""Clopper-Pearson: two exact binomial limits, one on each side of the pair."""

from __future__ import annotations

import math
from functools import lru_cache

from ..errors import confidence_level, delta_level, instance, integer, invalid
from ..hints import hinted
from ..records import Counts
from .declaration import Declared

__all__ = ["clopper_pearson", "limits"]


@Declared(title="Clopper-Pearson", recorded=True, paired=True, implied=True, curves="point")
@hinted
def clopper_pearson(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon from an event's counts on the two sides.

    ``epsilon_lower = max(0, ln((p_low - delta) / q_high))`` with ``p_low`` the lower limit for
    P(event | x) and ``q_high`` the upper limit for P(event | x'), each at (1 - confidence)/2, so
    that both hold at once with probability at least `confidence`. It is sound when the draws are
    independent, the numbers of draws were fixed in advance, and the event and the order of the
    sides were fixed before the counted draws.

    Args:
        counts: k of n on the side of the numerator, k' of n' on the other (`Counts.swapped` puts
            x' in the numerator).
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0: no event at all on x' still leaves q_high > 0.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` not a number.
        ValueError: if `delta` or `confidence` is out of range.

    Source:
        Clopper and Pearson (1934), Biometrika 26; Jagielski, Ullman and Oprea (2020), section 4,
        for the quotient.

    Example:
        >>> round(clopper_pearson(Counts(900, 1000, 100, 1000)), 4)
        1.9897
    """
    counts, delta = instance("counts", counts, Counts), delta_level(delta)
    alpha = (1.0 - confidence_level(confidence)) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    if p_low <= delta:
        return 0.0
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    return max(0.0, math.log(p_low - delta) - math.log(q_high))


@hinted
def limits(k: int, n: int, alpha: float) -> tuple[float, float]:
    """Compute one-sided limits for the probability of an event seen k times in n draws.

    ``low`` solves P(Binomial(n, low) >= k) = alpha and ``high`` solves
    P(Binomial(n, high) <= k) = alpha; low is 0 at k = 0, high is 1 at k = n.

    Args:
        k: times the event happened, from 0 to `n`.
        n: independent draws, at least 1.
        alpha: probability that a limit fails, for each of the two, strictly between 0 and 1.

    Returns:
        The pair (low, high).

    Raises:
        TypeError: if `k` or `n` is not an integer or `alpha` not a number.
        ValueError: if one of them is out of range.

    Source:
        Clopper and Pearson (1934); the beta form is Johnson, Kemp and Kotz (2005), equation 3.38.

    Example:
        >>> low, high = limits(0, 10, 0.05)
        >>> low, round(high, 4)
        (0.0, 0.2589)
    """
    n = integer("n", n, 1)
    if n >= 2**63:
        raise invalid("n", "below 2**63", n)
    k = integer("k", k, 0, n)
    alpha = confidence_level(alpha, "alpha")
    # The two ends have closed forms, which keep every digit: alpha = low^n at k = n.
    end = math.log(alpha) / n
    low = 0.0 if k == 0 else math.exp(end) if k == n else _beta_quantile(k, n - k + 1, alpha, False)
    high = 1.0 if k == n else -math.expm1(end) if k == 0 else _beta_quantile(k + 1, n - k, alpha)
    return low, high


# Each figure of a report asks for the same few limits again.
@lru_cache(maxsize=1024)
def _beta_quantile(a: int, b: int, alpha: float, upper: bool = True) -> float:
    """Find the point at which the upper (or lower) tail of Beta(a, b) is alpha.

    The tail is asked for as such: 1 - alpha would round a small alpha away. scipy's inverse can
    stop at a relative error of 1e-9 (a = 2, b = 1e8), so Newton steps on its own tail follow;
    they change so little that the density need not be exact.
    """
    from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln

    tail, inverse = (betaincc, betainccinv) if upper else (betainc, betaincinv)
    point = float(inverse(a, b, alpha))
    for _ in range(4):
        if not 0.0 < point < 1.0:
            break
        log_density = (a - 1) * math.log(point) + (b - 1) * math.log1p(-point) - betaln(a, b)
        residual = float(tail(a, b, point)) - alpha
        # At a density below e^-700 the quotient would overflow; scipy's answer stays.
        if log_density < -700.0 or log_density > 700.0:
            break
        step = residual * math.exp(-log_density)
        improved = point + step if upper else point - step
        # A long step is not a last digit but a failure of the density: keep what scipy found.
        if abs(improved - point) > 1e-2 * min(point, 1.0 - point):
            break
        point = improved
    return point
