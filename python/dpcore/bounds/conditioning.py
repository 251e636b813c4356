"""The conditional test: given how often the event happened in all, on which side did it?"""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

from ..errors import choice, confidence_level, delta_level, instance, invalid
from ..hints import hinted
from ..records import Counts
from .binomial import limits
from .declaration import Declared

__all__ = ["SIDES", "Sides", "conditional"]

Sides = Literal["fixed", "coin"]
SIDES: Final[tuple[Sides, ...]] = get_args(Sides)

_MIN_CONDITIONAL_CONFIDENCE = 0.6


@Declared(title="conditional binomial", deltas="zero")
@hinted
def conditional(
    counts: Counts, delta: float = 0.0, confidence: float = 0.95, *, sides: Sides = "fixed"
) -> float:
    """Compute a certified lower limit on epsilon from the first side's share of the hits.

    ``epsilon_lower = max(0, ln(t / (1 - t)) - ln(n / n'))`` with ``t`` the (1 - confidence)
    quantile of Beta(k, k' + 1), the lower limit for the probability that a hit is one of x.

    *A fair coin chose the side of every trial* (``sides="coin"``; or the two numbers of trials
    are Poisson with equal means). Given k + k' = m, k is then Binomial(m, r/(1 + r)) with r = p/q:
    the bound is exact, whatever p and q are. n and n' came out of the same coin and are not used:
    the term ln(n/n') is left out.

    *The numbers of trials were fixed* (``sides="fixed"``). Hits are then less scattered than the
    coin's, and the bound is conservative. That is an observation, not a theorem: by enumeration
    over n and n' up to 60 (and 400 at chosen points), equal and unequal, the error probability
    stays below the nominal one for every confidence from 0.6, and exceeds it at 0.5; smaller
    confidences are refused. The loss grows with the rates: above p = 0.7 it is looser than
    `clopper_pearson`. With fixed numbers `exact` is better in every way.

    There is no form for delta > 0: the probability that a hit is one of x then depends on q
    itself, not on epsilon alone. And the draws must never be paired with only the discordant pairs
    kept: their ratio estimates p (1 - q)/(q (1 - p)), the odds ratio, which is larger than p/q.

    Args:
        counts: k of n on the side of the numerator, k' of n' on the other.
        delta: 0.
        confidence: probability that the limit holds, strictly between 0 and 1; at least 0.6 for
            fixed sides.
        sides: "fixed" if n and n' were fixed in advance, "coin" if a fair coin chose every side.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `delta` is not 0, a value is out of range, or `sides` is neither of the two.

    Source:
        Przyborowski and Wilenski (1940), Biometrika 31, for the test; Clopper and Pearson (1934)
        for the limit.

    Example:
        >>> round(conditional(Counts(90, 1000, 10, 1000)), 4)
        1.6308
    """
    counts, delta = instance("counts", counts, Counts), delta_level(delta)
    alpha = 1.0 - confidence_level(confidence)
    choice("sides", sides, SIDES)
    if delta != 0.0:
        reason = "0 (given the number of hits, their sides depend on more than epsilon)"
        raise invalid("delta", f"{reason} for the conditional bound", delta)
    if sides == "fixed" and confidence < _MIN_CONDITIONAL_CONFIDENCE:
        raise invalid(
            "confidence", f"at least {_MIN_CONDITIONAL_CONFIDENCE} for fixed sides", confidence
        )
    if counts.k == 0:
        return 0.0
    hits = counts.k + counts.k_prime
    share = limits(counts.k, hits, alpha)[0]
    # 1 - share, by its own limit: the same equation, with every digit.
    rest = limits(counts.k_prime, hits, alpha)[1]
    trials = 0.0 if sides == "coin" else math.log(counts.n) - math.log(counts.n_prime)
    return max(0.0, math.log(share) - math.log(rest) - trials)
