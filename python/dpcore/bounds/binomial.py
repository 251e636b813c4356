"""Bounds from exact binomial laws: Clopper-Pearson, the conditional test; what a bound declares.

Clopper-Pearson has one limit on each side of the pair. The conditional test takes the number of
events on both sides as given and asks on which side they happened. `every_coordinate` pools the
coordinates of a mechanism that is declared to treat them independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, get_args

from .. import errors
from ..records import Counts
from ..report.shown import Shown
from ..suggestions import suggest_arguments

_BoundFunction = TypeVar("_BoundFunction", bound=Callable[..., float])

BoundRows = Literal["independent", "one_run"]
_Curves = Literal["none", "point", "gaussian", "only"]
_Deltas = Literal["any", "zero", "positive"]

_PACKAGE_BOUNDS: Final[dict[str, Callable[..., float]]] = {}
"""The bounds of this package by name, as `Declared` enters them."""

Sides = Literal["fixed", "coin"]
SIDES: Final[tuple[Sides, ...]] = get_args(Sides)

_MIN_CONDITIONAL_CONFIDENCE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Declared(Shown):
    """A bound's declaration, which decorates its function and leaves it a plain function.

    All that reports, checks and the command line know of a bound stands here, beside its proof;
    the defaults promise the least.

    Args:
        title: what reports call it.
        name: name by which it is chosen; empty for that of its function.
        rows: what it speaks of: "independent" draws on both sides, or guesses about the canaries
            of "one_run".
        deltas: the deltas that it has a form for: "any", "zero" or "positive".
        anytime: it holds at every number of draws at once; the others need one fixed in advance.
        recorded: it is offered for outputs drawn elsewhere, whose sides may differ in number.
        paired: it holds for dependent sides too, as rows i of both from one seed are.
        implied: an audit that asks for none may record it, so that naming it changes no result.
        curves: how it tests a claim that is a curve: "none" (at one epsilon and delta), "point"
            (by two limits at once, as a whole), "gaussian" (Gaussian ones), "only" (no others).
        slow: it takes too long to be asked hundreds of times.
        most_draws: draws per side beyond which it gives what `clopper_pearson` does, or None.

    Raises:
        TypeError: if a field, or what is declared, is of the wrong kind.
        ValueError: if `title` is empty, or `rows` or `deltas` is none of these words.

    Example:
        >>> @Declared(title="nothing at all", anytime=True)
        ... def nothing(counts, delta=0.0, confidence=0.95):
        ...     return 0.0
        >>> find_declaration(nothing).title
        'nothing at all'
    """

    title: str
    name: str = ""
    rows: BoundRows = "independent"
    deltas: _Deltas = "any"
    anytime: bool = False
    recorded: bool = False
    paired: bool = False
    implied: bool = False
    slow: bool = False
    most_draws: int | None = None
    curves: _Curves = "none"

    def __post_init__(self) -> None:
        """Check the words: one that is not known would promise something else."""
        if not errors.instance("title", self.title, str):
            raise errors.invalid("title", "not empty", self.title)
        errors.choice("rows", self.rows, get_args(BoundRows))
        errors.choice("curves", self.curves, get_args(_Curves))
        errors.choice("deltas", self.deltas, get_args(_Deltas))
        if self.most_draws is not None:
            errors.integer("most_draws", self.most_draws, 1)
        for name in ("anytime", "recorded", "paired", "implied", "slow"):
            errors.flag(name, getattr(self, name))

    def __call__(self, bound: _BoundFunction) -> _BoundFunction:
        """Return the bound itself, declared."""
        if not hasattr(bound, "__dict__"):
            raise errors.mistyped("bound", "a function (counts, delta, confidence) -> float", bound)
        vars(bound)["declared"] = self
        if bound.__module__.startswith(f"{__package__}."):
            _PACKAGE_BOUNDS[self.name or bound.__name__] = bound
        return bound

    def check_delta(self, name: str, delta: float) -> None:
        """Raise an error if the bound of this name has no form for the delta."""
        if self.deltas == "zero" and delta != 0.0:
            raise errors.invalid("bound", f"another than {name!r} where delta is above 0", name)
        if self.deltas == "positive" and delta == 0.0:
            raise errors.invalid("delta", f"above 0 for the bound {name}", delta)


def bound_of(bound: Any, rows: BoundRows = "independent") -> Callable[..., float]:
    """Return a bound for the given rows: one of this package by name, or any function unchanged.

    Raises:
        TypeError: if it is neither a string nor callable.
        ValueError: if no bound for such rows has the name.
    """
    if isinstance(bound, str):
        names = [n for n, of in _PACKAGE_BOUNDS.items() if find_declaration(of).rows == rows]
        return _PACKAGE_BOUNDS[errors.choice("bound", bound, names)]
    if not callable(bound):
        raise errors.mistyped("bound", "a function that returns an epsilon, or a name", bound)
    function: Callable[..., float] = bound
    return function


def find_declaration(bound: Callable[..., Any]) -> Declared:
    """Return the declaration of a bound; the default is its name and the default fields."""
    declaration = getattr(bound, "declared", None)
    if isinstance(declaration, Declared):
        return declaration
    return Declared(title=getattr(bound, "__name__", "a bound without a name").replace("_", " "))


@Declared(title="Clopper-Pearson", recorded=True, paired=True, implied=True, curves="point")
@suggest_arguments
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
    counts, delta = errors.instance("counts", counts, Counts), errors.delta_level(delta)
    alpha = (1.0 - errors.confidence_level(confidence)) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    if p_low <= delta:
        return 0.0
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    return max(0.0, math.log(p_low - delta) - math.log(q_high))


@suggest_arguments
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
    n = errors.integer("n", n, 1)
    if n >= 2**63:
        raise errors.invalid("n", "below 2**63", n)
    k = errors.integer("k", k, 0, n)
    alpha = errors.confidence_level(alpha, "alpha")
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


@Declared(title="conditional binomial", deltas="zero")
@suggest_arguments
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
    `clopper_pearson`. With fixed numbers `berger_boos` is better in every way.

    No form exists for delta > 0: the probability that a hit is one of x then depends on q
    itself, not only on epsilon. And the draws must never be paired with only the discordant pairs
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
    counts, delta = errors.instance("counts", counts, Counts), errors.delta_level(delta)
    alpha = 1.0 - errors.confidence_level(confidence)
    errors.choice("sides", sides, SIDES)
    if delta != 0.0:
        reason = "0 (given the number of hits, their sides depend on more than epsilon)"
        raise errors.invalid("delta", f"{reason} for the conditional bound", delta)
    if sides == "fixed" and confidence < _MIN_CONDITIONAL_CONFIDENCE:
        need = f"at least {_MIN_CONDITIONAL_CONFIDENCE} for fixed sides"
        raise errors.invalid("confidence", need, confidence)
    if counts.k == 0:
        return 0.0
    hits = counts.k + counts.k_prime
    share = limits(counts.k, hits, alpha)[0]
    # 1 - share, by its own limit: the same equation, with every digit.
    rest = limits(counts.k_prime, hits, alpha)[1]
    trials = 0.0 if sides == "coin" else math.log(counts.n) - math.log(counts.n_prime)
    return max(0.0, math.log(share) - math.log(rest) - trials)


@suggest_arguments
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
    not hold the limit certifies no bound.

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
        ValueError: if no group is given, the lengths differ or a value is out of range.

    Source:
        Dwork and Roth (2014), theorem 3.16 (the loss of independent parts adds up); Clopper and
        Pearson (1934).

    Example:
        >>> round(every_coordinate([Counts(60000, 10**5, 50000, 10**5)], [128]), 2)
        21.89
    """
    groups, sizes = _check_groups(pooled, multiplicities)
    delta = errors.delta_level(delta)
    alpha = (1.0 - errors.confidence_level(confidence)) / (2.0 * len(groups))
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
            raise errors.mistyped(name, "a sequence", value)
        if len(value) == 0:
            raise errors.invalid(name, "a non-empty sequence", value)
    if len(pooled) != len(multiplicities):
        raise errors.invalid(
            "multiplicities", f"of length {len(pooled)} like pooled", multiplicities
        )
    groups = [errors.instance("pooled", counts, Counts) for counts in pooled]
    return groups, [errors.integer("multiplicities", size, 1) for size in multiplicities]
