"""What an audit would have found: the smallest violation that it certifies almost surely."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, count, delta_level, invalid, real
from ..hints import hinted
from ..records import Counts
from .binomial import clopper_pearson
from .declaration import BoundName, bound_of

__all__ = ["detectable"]

_Floats = npt.NDArray[np.float64]

_CELLS = 32
_REACH = 3.5


@hinted
def detectable(
    n: int | float | str,
    claim: float,
    mass: float,
    bound: Callable[[Counts, float, float], float] | BoundName = clopper_pearson,
    delta: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.95,
) -> tuple[float, float]:
    """The smallest ratio p/q of an event with p = `mass` that n draws a side certify.

    The sentence it fills in: "had this event had probability at least `mass` on one side and been
    at least `ratio` times as likely there as on the other, a violation of epsilon > `claim` would
    have been certified with probability `power`." It says nothing about other events.

    With K ~ Binomial(n, mass) and K' ~ Binomial(n, mass/ratio) the probability of a certificate is
    P(bound(K, K') > claim). For a bound that rises in k and falls in k', with most(k) the largest
    k' that still certifies, it is at least the sum over cells of K of P(K in the cell) P(K' <=
    most(the cell's first k)): binomial probabilities on at most 32 cells, rounded against the
    audit, no simulation.

    Args:
        n: draws on each side.
        claim: the claimed epsilon, at least 0.
        mass: probability of the event on the numerator's side, in (0, 1].
        bound: ``(counts, delta, confidence) -> epsilon_lower``, or the name of one; called about
            200 times.
        delta: the delta of the claim, in [0, 1).
        confidence: confidence of the audit, strictly between 0 and 1.
        power: probability of the certificate, strictly between 0 and 1.

    Returns:
        The pair (mass, ratio). An infinite ratio says that even an event that never happens on the
        other side would not be certified so often.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or the bound returns no number.

    Source:
        Clopper and Pearson (1934) for the limits behind the default bound; the power of a test by
        its definition.

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
        found = limit(Counts(k, n, k_prime, n), delta, confidence)
        if math.isnan(found):
            raise invalid("bound", "a function that returns a number", found)
        return found - claim

    first, weight = _cells(n, mass)
    guess = max(0.0, mass - delta) * math.exp(-claim)
    most = np.array([_most(margin, k, n, guess) for k in first.tolist()], dtype=np.float64)
    chance = _certifies(n, most, weight)
    if chance(0.0) < power:
        return mass, math.inf
    low, high = 0.0, mass
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) >= power else (low, middle)
    return mass, mass / low if low > 0.0 else math.inf


def _cells(n: int, mass: float) -> tuple[npt.NDArray[np.int64], _Floats]:
    """First counts of the cells of Binomial(n, mass), and the cells' probabilities."""
    from scipy.special import betainc

    spread = _REACH * math.sqrt(n * mass * (1.0 - mass)) + _REACH
    low, high = max(0.0, n * mass - spread), min(float(n), n * mass + spread)
    first = np.unique(np.floor(np.linspace(low, high, _CELLS)).astype(np.int64))
    # P(K >= k), 1 at k = 0; what lies below the first cell is given up.
    tail = np.where(first > 0, betainc(np.maximum(first, 1), n - first + 1.0, mass), 1.0)
    return first, tail - np.append(tail[1:], 0.0)


def _certifies(n: int, most: _Floats, weight: _Floats) -> Callable[[float], float]:
    """The function q -> probability of a certificate, from below."""
    from scipy.special import betaincc

    some = most >= 0.0
    most, weight = most[some], weight[some]
    room = np.maximum(n - most, 0.5)

    def chance(q: float) -> float:
        below = np.where(most < n, betaincc(most + 1.0, room, q), 1.0)
        return float(weight @ below)

    return chance


def _most(margin: Callable[[int, int], float], k: int, n: int, guess: float) -> int:
    """The largest k' at which the margin is above 0; -1 if there is none."""
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
        # The secant's point, and every third time the middle, so that both ends close in.
        share = 0.5 if step % 3 == 2 else at_low / (at_low - at_high)
        point = min(high - 1, max(low + 1, round(low + share * (high - low))))
    return low
