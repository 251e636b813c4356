"""A bound for mechanisms declared to treat coordinates independently: counts of one coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import confidence_level, delta_level, instance, integer, invalid, mistyped
from ..hints import hinted
from ..records import Counts
from .binomial import limits

__all__ = ["every_coordinate"]


@hinted
def every_coordinate(
    pooled: Sequence[Counts],
    multiplicities: Sequence[int],
    delta: float = 0.0,
    confidence: float = 0.95,
) -> float:
    """Compute a certified lower limit on epsilon of an event that depends on every coordinate.

    If the coordinates of an output are independent, and those of one group have equal inputs
    (x_i, x'_i) and equal noise, the event "each coordinate is in the event of its group" has
    probability p = prod p_g^(m_g) on x and q = prod q_g^(m_g) on x', m_g coordinates in group g:

        epsilon >= ln((prod p_low_g^(m_g) - delta) / prod q_high_g^(m_g)).

    The 2G limits of G groups share the error probability, (1 - confidence)/(2G) each. The draws of
    a group are pooled over its coordinates and trials, which makes them many; that is what sees a
    loss of n epsilon_1 where the event of all coordinates would hardly ever be drawn.

    Independence and equal noise are *declared*, not tested: say so with the verdict. If they do
    not hold the limit certifies nothing.

    Args:
        pooled: counts of each group, all its coordinates together: k of n on the side of the
            numerator, k' of n' on the other.
        multiplicities: number of coordinates of each group, at least 1.
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is no group, the lengths differ or a value is out of range.

    Source:
        Dwork and Roth (2014), theorem 3.16 (the loss of independent parts adds up); Clopper and
        Pearson (1934).

    Example:
        >>> round(every_coordinate([Counts(60000, 10**5, 50000, 10**5)], [128]), 2)
        21.89
    """
    groups, sizes = _check_groups(pooled, multiplicities)
    delta = delta_level(delta)
    alpha = (1.0 - confidence_level(confidence)) / (2.0 * len(groups))
    log_p, log_q = 0.0, 0.0
    for counts, size in zip(groups, sizes, strict=True):
        p_low = limits(counts.k, counts.n, alpha)[0]
        if p_low == 0.0:
            return 0.0
        log_p += size * math.log(p_low)
        log_q += size * math.log(limits(counts.k_prime, counts.n_prime, alpha)[1])
    if delta > 0.0:
        # ln(p - delta) = ln p + ln(1 - delta/p), with p perhaps below the smallest double.
        excess = math.log(delta) - log_p
        if excess >= 0.0:
            return 0.0
        log_p += math.log(-math.expm1(excess))
    return max(0.0, log_p - log_q)


def _check_groups(pooled: Any, multiplicities: Any) -> tuple[list[Counts], list[int]]:
    for name, value in (("pooled", pooled), ("multiplicities", multiplicities)):
        if not isinstance(value, Sequence):
            raise mistyped(name, "a sequence", value)
        if len(value) == 0:
            raise invalid(name, "a non-empty sequence", value)
    if len(pooled) != len(multiplicities):
        raise invalid("multiplicities", f"of length {len(pooled)} like pooled", multiplicities)
    groups = [instance("pooled", counts, Counts) for counts in pooled]
    return groups, [integer("multiplicities", size, 1) for size in multiplicities]
