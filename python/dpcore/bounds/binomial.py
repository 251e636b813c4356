"""Bounds from exact binomial distributions: Clopper-Pearson limits and the conditional test.

Let x and x' be two neighbouring inputs. The Clopper-Pearson bound divides a lower limit for the
probability of an event on x by an upper limit for its probability on x'. Let m be the number of
draws, on both inputs together, in which the event happened. The conditional test takes m as given,
and tests how many of these m draws were on x. `every_coordinate` pools the coordinates of the
outputs, if the mechanism is declared to treat them independently. `Declared` states the properties
of a bound.
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
from ..suggestions import explain_argument_errors

_BoundFunction = TypeVar("_BoundFunction", bound=Callable[..., float])

BoundRows = Literal["independent", "one_run"]
_Curves = Literal["none", "point", "gaussian", "only"]
_Deltas = Literal["any", "zero", "positive"]

_PACKAGE_BOUNDS: Final[dict[str, Callable[..., float]]] = {}
"""Bounds of this package by name. The decorator `Declared` adds each bound."""

Sides = Literal["fixed", "coin"]
SIDES: Final[tuple[Sides, ...]] = get_args(Sides)

_MIN_CONDITIONAL_CONFIDENCE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Declared(Shown):
    """Decorator that declares the properties of a bound (a function that limits epsilon).

    A bound is a function that returns a lower limit on epsilon. The decorator does not change this
    function. Reports, argument checks and the command line of dpcore read the properties of the
    bound only from this declaration. The default values promise the least about the bound.

    Args:
        title: name of the bound in reports.
        name: name by which users choose the bound. Defaults to the name of the function.
        rows: kind of data from which the bound is computed. "independent": counts from independent
            draws on two inputs. "one_run": guesses about the canaries (test records) of one
            training run.
        deltas: values of delta for which the bound is defined: "any", "zero" (only 0) or "positive"
            (only above 0).
        anytime: True if, with the stated confidence, the limits after 1, 2, 3, ... draws are all
            true. The user may then stop the draws at any time. If False, the number of draws must
            be fixed in advance.
        recorded: True if users may choose the bound for recorded outputs. The bound must then also
            be valid for different numbers of outputs on the two inputs.
        paired: True if the bound is also valid for pairs of draws that depend on each other. For
            example, draw i on x and draw i on x' may use the same seed.
        implied: True for a bound that dpcore itself chooses in some audits, for example with early
            stop. If a user chooses the bound by name for such an audit, this choice has no effect.
        curves: use of the bound if the claim is a trade-off curve. "none": the bound tests only one
            epsilon and delta. "point": dpcore compares the bound's limits on two probabilities with
            the whole curve. "gaussian": the bound tests curves of Gaussian noise. "only": the bound
            can only test curves.
        slow: True if one evaluation takes so long that dpcore should not repeat it hundreds of
            times.
        most_draws: largest number of draws per input for which the bound uses its own formula. For
            more draws, the bound returns the result of `clopper_pearson`. None if the formula has
            no limit.

    Raises:
        TypeError: if an argument has the wrong type, or if the decorated object is not a function.
        ValueError: if `title` is empty, or if `rows`, `deltas` or `curves` is an unknown word.

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
        """Check the fields. An unknown word could declare a property that does not hold."""
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
        """Return the bound, with this declaration stored in its attribute `declared`."""
        if not hasattr(bound, "__dict__"):
            raise errors.mistyped("bound", "a function (counts, delta, confidence) -> float", bound)
        vars(bound)["declared"] = self
        if bound.__module__.startswith(f"{__package__}."):
            _PACKAGE_BOUNDS[self.name or bound.__name__] = bound
        return bound

    def check_bound_allows_delta(self, name: str, delta: float) -> None:
        """Raise a ValueError if the bound is not defined for this value of delta.

        Args:
            name: name of the bound, for the error message.
            delta: delta of the claim.
        """
        if self.deltas == "zero" and delta != 0.0:
            raise errors.invalid("bound", f"another than {name!r} where delta is above 0", name)
        if self.deltas == "positive" and delta == 0.0:
            raise errors.invalid("delta", f"above 0 for the bound {name}", delta)


def bound_of(bound: Any, row_kind: BoundRows = "independent") -> Callable[..., float]:
    """Return the bound (a function that returns a lower limit on epsilon) with a given name.

    Args:
        bound: name of a bound of dpcore, or a function. A function is returned unchanged.
        row_kind: kind of data from which a named bound is computed. "independent": counts from
            independent draws on two inputs. "one_run": guesses about the canaries (test records) of
            one training run.

    Raises:
        TypeError: if `bound` is neither a string nor callable.
        ValueError: if dpcore has no bound of this name for this kind of data.
    """
    if isinstance(bound, str):
        names = [n for n, of in _PACKAGE_BOUNDS.items() if find_declaration(of).rows == row_kind]
        return _PACKAGE_BOUNDS[errors.choice("bound", bound, names)]
    if not callable(bound):
        raise errors.mistyped("bound", "a function that returns an epsilon, or a name", bound)
    function: Callable[..., float] = bound
    return function


def find_declaration(bound: Callable[..., Any]) -> Declared:
    """Return the `Declared` object with the properties of a bound.

    If the function was not declared as a bound, the result has the default properties.
    """
    declaration = getattr(bound, "declared", None)
    if isinstance(declaration, Declared):
        return declaration
    return Declared(title=getattr(bound, "__name__", "a bound without a name").replace("_", " "))


@Declared(title="Clopper-Pearson", recorded=True, paired=True, implied=True, curves="point")
@explain_argument_errors
def clopper_pearson(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon from the counts of an event on two inputs.

    The limit is ``max(0, ln((p_low - delta) / q_high))``. Here ``p_low`` is the Clopper-Pearson
    lower limit for P(event | x), and ``q_high`` is the upper limit for P(event | x'). Each of the
    two limits fails with probability at most (1 - confidence)/2. Therefore, with probability at
    least `confidence`, both limits are true. The lower limit on epsilon is valid under three
    conditions:

    - The draws are independent.
    - The numbers of draws were fixed in advance.
    - The event, and the roles of x and x', were fixed before the counted draws.

    Args:
        counts: the event happened in k of n draws on x, and in k' of n' draws on x'.
            `Counts.swapped` exchanges x and x'.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on epsilon, at least 0. This limit is always finite, because q_high is above
        0 even if the event never happened on x'.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` is not a number.
        ValueError: if `delta` or `confidence` is out of range.

    Source:
        Clopper and Pearson (1934), Biometrika 26; Jagielski, Ullman and Oprea (2020), section 4,
        for the quotient of the two limits.

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


@explain_argument_errors
def limits(k: int, n: int, alpha: float) -> tuple[float, float]:
    """Compute the Clopper-Pearson limits for the probability of an event.

    The event happened k times in n draws. The lower limit ``low`` solves P(Binomial(n, low) >= k) =
    alpha. If k is 0, ``low`` is 0. The upper limit ``high`` solves P(Binomial(n, high) <= k) =
    alpha. If k is n, ``high`` is 1.

    Args:
        k: number of times that the event happened, from 0 to `n`.
        n: number of independent draws, at least 1.
        alpha: error probability of each of the two one-sided limits, strictly between 0 and 1.

    Returns:
        The pair (low, high): the lower limit and the upper limit.

    Raises:
        TypeError: if `k` or `n` is not an integer, or `alpha` is not a number.
        ValueError: if an argument is out of range.

    Source:
        Clopper and Pearson (1934); Johnson, Kemp and Kotz (2005), equation 3.38, for the form with
        beta quantiles.

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
    # Both ends have closed forms, which are exact in every digit: alpha = low^n at k = n.
    end = math.log(alpha) / n
    low = 0.0 if k == 0 else math.exp(end) if k == n else _beta_quantile(k, n - k + 1, alpha, False)
    high = 1.0 if k == n else -math.expm1(end) if k == 0 else _beta_quantile(k + 1, n - k, alpha)
    return low, high


# The figures of a report use the same few limits repeatedly.
@lru_cache(maxsize=1024)
def _beta_quantile(a: int, b: int, alpha: float, upper: bool = True) -> float:
    """Find the point at which the upper (or lower) tail probability of Beta(a, b) is alpha.

    The code computes each tail with a separate function of scipy, because 1 - alpha would round
    away a small alpha. The inverse in scipy can have a relative error of 1e-9 (at a = 2, b = 1e8).
    So a few Newton steps improve its result. The steps are so small that an approximate density is
    enough.
    """
    from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln

    tail, inverse = (betaincc, betainccinv) if upper else (betainc, betaincinv)
    point = float(inverse(a, b, alpha))
    for _ in range(4):
        if not 0.0 < point < 1.0:
            break
        log_density = (a - 1) * math.log(point) + (b - 1) * math.log1p(-point) - betaln(a, b)
        residual = float(tail(a, b, point)) - alpha
        # At a density below e^-700 the quotient would overflow, so scipy's result is kept.
        if log_density < -700.0 or log_density > 700.0:
            break
        step = residual * math.exp(-log_density)
        improved = point + step if upper else point - step
        # A long step means that the density failed, so scipy's result is kept.
        if abs(improved - point) > 1e-2 * min(point, 1.0 - point):
            break
        point = improved
    return point


@Declared(title="conditional binomial", deltas="zero")
@explain_argument_errors
def conditional(
    counts: Counts, delta: float = 0.0, confidence: float = 0.95, *, sides: Sides = "fixed"
) -> float:
    """Compute a certified lower limit on epsilon from two counts of an event, given their sum.

    A hit is a draw in which the event happened. There are k hits in the n draws on x, and k' hits
    in the n' draws on x'. The limit is ``max(0, ln(t / (1 - t)) - ln(n / n'))``. Here ``t`` is the
    (1 - confidence) quantile of Beta(k, k' + 1). This quantile is a lower limit for the probability
    that a hit is a draw on x.

    Use ``sides="coin"`` if a fair coin chose the input (x or x') of each draw. (The formula is the
    same if n and n' are Poisson with equal means.) Given k + k' = m, the count k is Binomial(m,
    r/(1 + r)). Here r = p/q is the ratio of the event's probabilities on x and x'. Therefore the
    limit is exact for all p and q. The term ln(n/n') is left out of the formula, because n and n'
    also depend on the coin.

    Use ``sides="fixed"`` if the numbers n and n' were fixed in advance. The number of hits then
    varies less than with a coin, and the limit is smaller than necessary (conservative). It is not
    proved that the limit is conservative, but this was observed in the following cases. All
    outcomes were enumerated for equal and unequal n and n' up to 60, and for some larger n and n'
    up to 400. In these cases, the limit fails with a probability below 1 - confidence for each
    confidence of at least 0.6. At confidence 0.5, however, the limit fails with a probability above
    0.5. Therefore the function raises a ValueError for a confidence below 0.6. The limit becomes
    looser as p and q grow. If p is above 0.7, the limit is looser than `clopper_pearson`. For fixed
    numbers of draws, `berger_boos` is always better than this function.

    The limit is not defined for delta > 0. In this case, the probability that a hit is a draw on x
    depends on epsilon and also on q. Warning: a similar method is wrong. This wrong method forms
    pairs of one draw on x and one draw on x', and keeps only the pairs with exactly one hit. In
    some of these pairs the hit is on x, in the others on x'. The quotient of the two numbers of
    pairs estimates the odds ratio ``p (1 - q) / (q (1 - p))``, which is larger than p/q.

    Args:
        counts: the event happened in k of n draws on x, and in k' of n' draws on x'.
        delta: delta of the claim. It must be 0.
        confidence: probability that the limit holds, strictly between 0 and 1. For
            ``sides="fixed"``, at least 0.6.
        sides: "fixed" if n and n' were fixed in advance, "coin" if a fair coin chose the input of
            each draw.

    Returns:
        The lower limit on epsilon, finite and at least 0.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `delta` is not 0, if a value is out of range, or if `sides` is not "fixed" or
            "coin".

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
    # 1 - share is computed as its own limit; it is the same equation without loss of digits.
    rest = limits(counts.k_prime, hits, alpha)[1]
    trials = 0.0 if sides == "coin" else math.log(counts.n) - math.log(counts.n_prime)
    return max(0.0, math.log(share) - math.log(rest) - trials)


@explain_argument_errors
def every_coordinate(
    pooled: Sequence[Counts],
    multiplicities: Sequence[int],
    delta: float = 0.0,
    confidence: float = 0.95,
) -> float:
    """Compute a certified lower limit on epsilon for the joint event of all output coordinates.

    Assume that the coordinates of an output are independent, and that they are divided into G
    groups. All coordinates of one group have the same input entries x_i and x'_i, and noise of the
    same distribution. Each group g has m_g coordinates and one event, with probability p_g on x and
    q_g on x'. Consider the joint event "in every coordinate, the event of its group happens". The
    joint event has probability p = prod p_g^(m_g) on x and q = prod q_g^(m_g) on x', so

        epsilon >= ln((prod p_low_g^(m_g) - delta) / prod q_high_g^(m_g)).

    Here p_low_g and q_high_g are Clopper-Pearson limits for p_g and q_g. Each of these 2G limits
    fails with probability at most (1 - confidence)/(2G). The counts of a group are large, because
    they add up all coordinates of the group in all draws. If each of n coordinates has loss
    epsilon_1, the limit can come near the total loss n epsilon_1, even if the joint event almost
    never happens.

    The function does not test that the coordinates are independent and that the noise is the same
    in one group. The caller *declares* these two facts. State this declaration together with the
    verdict. If the declaration is false, the limit is not certified.

    Args:
        pooled: one `Counts` per group. Each coordinate of the group in each draw on x counts as one
            draw. The `Counts` contains the number of these draws, and how often the event of the
            group happened in these draws. It contains the same two numbers for x'.
        multiplicities: number of coordinates of each group, at least 1.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on epsilon of the whole output, finite and at least 0.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `pooled` or `multiplicities` is empty, if their lengths differ, or if a value
            is out of range.

    Source:
        Dwork and Roth (2014), theorem 3.16 (the losses of independent parts add up); Clopper and
        Pearson (1934).

    Example:
        >>> round(every_coordinate([Counts(60000, 10**5, 50000, 10**5)], [128]), 2)
        21.89
    """
    groups, sizes = _check_counts_and_sizes(pooled, multiplicities)
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
        # ln(p - delta) = ln p + ln(1 - delta/p); p may be smaller than the smallest double.
        excess = math.log(delta) - log_p
        if excess >= 0.0:
            return 0.0
        log_p += math.log(-math.expm1(excess))
    return max(0.0, log_p - log_q)


def _check_counts_and_sizes(pooled: Any, multiplicities: Any) -> tuple[list[Counts], list[int]]:
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
