"""Expected bounds of counts, from pilot counts of many events at once.

It chooses among events and certifies nothing, so its quantiles may be approximations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, count, delta_level, invalid, numeric, suggest_arguments

__all__ = ["predicted"]

_PILOT_TAIL = 0.01
_MIN_PAULSON_PARAMETER = 10.0
"""Parameters of a beta law from which Paulson's quantile is off by less than 0.2 %."""
_MAX_TABLED_DRAWS = 1024
"""Pilot draws up to which the limits of all counts are kept: hundreds of events share them."""

_Floats = npt.NDArray[np.float64]


@suggest_arguments
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
    """Compute the Clopper-Pearson bound that fresh draws would give at the pilot's limits.

    The true rates are taken to be the pilot's own pessimistic limits, p low and q high, each of
    which fails with probability `tail`. Then ``trials`` p and ``trials`` q are the counts expected,
    and the bound on those is the answer, ``max(0, ln((p_low - delta) / q_high))``. An event that
    looks good on a handful of pilot hits is thus worth little. It only chooses: the quantiles are
    approximations, and the draws it has seen must not be counted again.

    Args:
        k: times each event happened among the pilot draws on the numerator's side.
        n: pilot draws on that side.
        k_prime: times each event happened on the other side.
        n_prime: pilot draws on the other side.
        trials: draws on each side that will be counted.
        delta: delta of the claim, in [0, 1).
        confidence: confidence of the audit, strictly between 0 and 1.
        tail: probability with which each of the pilot's two limits fails; the smaller the more
            cautious, 0.5 takes the pilot at its word.

    Returns:
        One bound per event, finite and at least 0, in the shape that the four arrays share.

    Raises:
        TypeError: if an array does not hold numbers, or another argument is of the wrong kind.
        ValueError: if a count is not from 0 to its number of draws, or a value is out of range.

    Source:
        Clopper and Pearson (1934); Paulson (1942), Annals of Mathematical Statistics 13, for the
        quantiles.

    Example:
        >>> predicted([500, 3], 1000, [200, 0], 1000, trials=10**6).round(2).tolist()
        [0.69, 0.0]
    """
    delta = delta_level(delta)
    p_low, q_high = predicted_limits(k, n, k_prime, n_prime, trials, confidence, tail)
    margin = np.maximum(p_low - delta, 0.0)
    return np.log(np.maximum(margin / q_high, 1.0))


def predicted_limits(
    k: npt.ArrayLike,
    n: npt.ArrayLike,
    k_prime: npt.ArrayLike,
    n_prime: npt.ArrayLike,
    trials: int | float | str,
    confidence: float = 0.95,
    tail: float = _PILOT_TAIL,
) -> tuple[_Floats, _Floats]:
    """Return the two limits from which `predicted` makes its bound: p from below, q from above."""
    hits, draws = _check_counts("k", k, "n", n)
    hits_prime, draws_prime = _check_counts("k_prime", k_prime, "n_prime", n_prime)
    total = float(count("trials", trials))
    alpha, tail = (1.0 - confidence_level(confidence)) / 2.0, confidence_level(tail, "tail")
    p_low = _look_up_limits(hits, draws, total, tail, alpha, upper=False)
    return p_low, _look_up_limits(hits_prime, draws_prime, total, tail, alpha, upper=True)


def _check_counts(k_name: str, k: Any, n_name: str, n: Any) -> tuple[_Floats, _Floats]:
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


def _look_up_limits(
    hits: _Floats, draws: _Floats, total: float, tail: float, alpha: float, *, upper: bool
) -> _Floats:
    """Look up `_expected_limit` in a table of all counts if pilots are few and of one size."""
    n, places = int(draws.flat[0]) if draws.size else 0, hits.astype(np.intp)
    if 0 < n <= _MAX_TABLED_DRAWS and (draws == n).all() and (places == hits).all():
        return _limit_table(n, total, tail, alpha, upper=upper)[places]
    return _expected_limit(hits, draws, total, tail, alpha, upper=upper)


@lru_cache(maxsize=64)
def _limit_table(n: int, total: float, tail: float, alpha: float, *, upper: bool) -> _Floats:
    hits = np.arange(n + 1.0)
    return _expected_limit(hits, np.full_like(hits, n), total, tail, alpha, upper=upper)


def _expected_limit(
    hits: _Floats, draws: _Floats, total: float, tail: float, alpha: float, *, upper: bool
) -> _Floats:
    """Compute the limit that `total` draws at the pilot's own limit would give."""
    if upper:
        q = _beta_limit(hits + 1.0, draws - hits, tail, upper=True)
        return _beta_limit(q * total + 1.0, total - q * total, alpha, upper=True)
    p = _beta_limit(hits, draws - hits + 1.0, tail, upper=False)
    return _beta_limit(p * total, total - p * total + 1.0, alpha, upper=False)


def _beta_limit(a: _Floats, b: _Floats, alpha: float, *, upper: bool) -> _Floats:
    """Find the point at which a tail of Beta(a, b) is alpha.

    The tail is the upper or the lower one. The result is 1 at b = 0 and 0 at a = 0.
    """
    from scipy.special import betainccinv, betaincinv, ndtri

    z = -float(ndtri(alpha)) if upper else float(ndtri(alpha))
    few = np.minimum(a, b) < max(_MIN_PAULSON_PARAMETER, z * z)
    # The filler keeps the formula defined where the other branch is taken.
    large = _paulson_quantile(np.where(few, 1e3, a), np.where(few, 1e3, b), z)
    inside = few & (a > 0.0) & (b > 0.0)
    limit: _Floats = np.where(b <= 0.0, 1.0, np.where(few, 0.0, large))
    inverse = betainccinv if upper else betaincinv
    limit[inside] = inverse(a[inside], b[inside], alpha)
    return limit


def _paulson_quantile(a: _Floats, b: _Floats, z: float) -> _Floats:
    """Compute Beta(a, b)'s quantile at normal score z.

    Cube roots of chi-square variables are near normal.
    """
    s, t = 1.0 / (9.0 * a), 1.0 / (9.0 * b)
    lead = (1.0 - t) ** 2 - z * z * t
    middle = (1.0 - s) * (1.0 - t)
    last = (1.0 - s) ** 2 - z * z * s
    root = (middle + np.sign(z) * np.sqrt(np.maximum(middle**2 - lead * last, 0.0))) / lead
    odds: _Floats = a / b * root**3
    return odds / (1.0 + odds)
