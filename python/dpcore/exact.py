"""Exact majority-vote probabilities of native mechanisms, and reasons for infinite privacy losses.

From one output, the majority vote guesses whether the input was x or x'. Entry i of the output
votes for x if it is nearer to x_i than to x'_i, and otherwise for x'. A native mechanism is one
whose outputs the compiled core of dpcore draws, such as `dpcore.Laplace`.

An audit prints exact values in addition to the bound that it certifies. These values are computed
in real numbers, from the distribution that the mechanism is meant to have. Therefore they do not
show errors in the code of the mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from . import _core
from .errors import instance, mistyped
from .events import Vote
from .mechanisms.declarations import can_core_draw
from .mechanisms.native import ClipStep, Logs, Native, facts_about_noise, log_complement, log_tails
from .pairs import distance
from .records import Pair, pair_of
from .report.shown import Shown
from .suggestions import explain_argument_errors

__all__ = ["VoteLaw", "loss", "vote_log_probabilities", "vote_loss"]


def __dir__() -> list[str]:
    """List the public names of the module, without the names that it imports."""
    return [*__all__]


_MAX_UNEQUAL_ENTRIES = 4096
"""Largest number of voting entries, if their probabilities are not all equal. The time of the
computation is quadratic in this number: 0.3 s for 4096 entries."""

_MAX_EXACT_BINOMIAL = 4096
"""Largest n for which binomial coefficients are exact. For larger n, Stirling's series is used."""

_CLIP_ROUNDING: Final = 1e-12
"""Largest rounding error of a clipped input, divided by the radius of the clipping."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class VoteLaw(Shown):
    """Log probabilities of the two results of a majority vote, which guesses the input.

    From one output, the majority vote guesses whether the input of the mechanism was x or x'.

    Entry i of the output votes for x if the entry is nearer to x_i than to x'_i, and otherwise for
    x'. The result of the vote is x or x'.

    Args:
        log_p: ln P(result is x' | input x).
        log_q: ln P(result is x | input x).
        log_p_prime: ln P(result is x' | input x').
        log_q_prime: ln P(result is x | input x').
    """

    log_p: float
    log_q: float
    log_p_prime: float
    log_q_prime: float


@explain_argument_errors
def vote_log_probabilities(mechanism: Any, pair: Pair | tuple[Any, Any]) -> VoteLaw | None:
    """Compute the exact probabilities of the results of the majority vote, on x and on x'.

    From one output, the majority vote guesses whether the input of the mechanism was x or x'.

    Entry i of an output takes part in the vote if x_i and x'_i differ. The entry votes for x if
    the entry is nearer to x_i than to x'_i, and otherwise for x'. The result of the vote is x' if
    more than half of the voting entries vote for x', and otherwise x.

    The entries vote independently. Entry i votes for x' with a probability p_i that has a closed
    form. If all p_i are equal, the probability of the result x' is a tail of a binomial
    distribution. Otherwise the probability is a tail of a Poisson-binomial distribution. All sums
    are computed in logarithms. Therefore ln P has a relative error of about 1e-12, even if P itself
    underflows.

    Args:
        mechanism: a mechanism, such as `dpcore.Laplace`. A mechanism is native if the compiled core
            of dpcore draws the outputs.
        pair: the two inputs x and x', vectors of finite numbers of equal shape.

    Returns:
        The logarithms of the four probabilities: of the two results of the vote, each on x and on
        x'. The result is None if the mechanism is not native, or if dpcore does not know the
        distribution of its noise. The result is also None if more than 4096 entries vote and the
        p_i are not all equal.

    Raises:
        TypeError: if x or x' does not hold real numbers.
        ValueError: if x and x' are not vectors of finite numbers of equal shape, or if x and x' are
            equal in every entry.

    Source:
        Habernal (2022), section 4, for the vote; Hong (2013), On computing the distribution
        function for the Poisson binomial distribution, section 2, for unequal entries.

    Example:
        >>> from dpcore.published import ADePTReference
        >>> from dpcore.pairs import zeros_ones
        >>> law = vote_log_probabilities(ADePTReference(10.0), zeros_ones(512))
        >>> round(law.log_p, 4)
        -1112.454
    """
    if isinstance(mechanism, type):
        raise mistyped("mechanism", "a mechanism", mechanism)
    if not can_core_draw(mechanism):
        return None
    pair = pair_of(pair)
    vote = Vote.between(pair)
    side = _log_p_vote_and_not(mechanism, pair.x, vote)
    side_prime = _log_p_vote_and_not(mechanism, pair.x_prime, vote)
    return None if side is None or side_prime is None else VoteLaw(*side, *side_prime)


@explain_argument_errors
def loss(law: VoteLaw) -> float:
    """Compute the privacy loss of a majority vote from the probabilities of its two results.

    From one output, the majority vote guesses whether the input was x or x'. The loss is the larger
    value of ``abs(ln P(result|x) - ln P(result|x'))`` for the two results.

    Args:
        law: the probabilities of the two results of the vote, on input x and on input x'.

    Returns:
        The privacy loss. The loss is inf if a result has probability 0 on one input and a positive
        probability on the other input. A result with probability 0 on both inputs is skipped.

    Source:
        Habernal (2022), equation 12, with a uniform prior.

    Example:
        >>> loss(VoteLaw(-2.0, -0.15, -1.0, -0.46))
        1.0
    """
    votes = ((law.log_p, law.log_p_prime), (law.log_q, law.log_q_prime))
    return max(abs(a - b) for a, b in votes if max(a, b) > -math.inf)


@explain_argument_errors
def vote_loss(mechanism: Any, pair: Pair | tuple[Any, Any]) -> float | None:
    """Compute the exact privacy loss of the majority vote between two inputs x and x'.

    From one output, the majority vote guesses whether the input was x or x'. Entry i of the output
    votes for x if the entry is nearer to x_i than to x'_i, and otherwise for x'. Entries with x_i
    equal to x'_i do not vote. The result of the vote is the input with more votes, and x if both
    have equally many votes. The loss is the larger value of
    ``abs(ln P(result|x) - ln P(result|x'))`` for the two results.

    Args:
        mechanism: a mechanism, such as `dpcore.Laplace`. A mechanism is native if the compiled core
            of dpcore draws the outputs.
        pair: the two inputs x and x', vectors of finite numbers of equal shape.

    Returns:
        The privacy loss. The result is None if the mechanism is not native, or if dpcore does not
        know the distribution of its noise. The result is also None if more than 4096 entries vote,
        and at least two of them vote for x' with different probabilities.

    Raises:
        TypeError: if x or x' does not hold real numbers.
        ValueError: if x and x' are not vectors of finite numbers of equal shape, or if x and x' are
            equal in every entry.

    Source:
        Habernal (2022), equation 12.

    Example:
        >>> from dpcore.published import ADePTReference
        >>> from dpcore.pairs import zeros_ones
        >>> round(vote_loss(ADePTReference(10.0), zeros_ones(128)), 1)
        284.2
    """
    law = vote_log_probabilities(mechanism, pair)
    return None if law is None else loss(law)


@explain_argument_errors
def explain_infinite_loss(mechanism: Any, pair: Pair) -> str | None:
    """Explain why the privacy loss of a native mechanism is infinite between two inputs x and x'.

    The compiled core of dpcore draws the outputs of a native mechanism, such as `dpcore.Laplace`.
    The explanation assumes exact arithmetic in real numbers, without rounding. Three kinds of noise
    give an infinite loss:

    - Noise that is never negative. Each output entry is then at least as large as the input entry.
      Therefore output values between x_i and x'_i have probability 0 on the input with the larger
      entry i, but a positive probability on the other input.
    - Bounded noise. The range of possible values of an output entry then depends on the input
      entry.
    - No noise. The output is then equal to the input.

    Args:
        mechanism: any mechanism.
        pair: the two inputs x and x', vectors of finite numbers of equal shape.

    Returns:
        A short explanation. The result is None if the loss is finite, or if the mechanism is not
        native.

    Raises:
        TypeError: if `pair` is not a `Pair`. For a native mechanism, also if x or x' does not hold
            real numbers.
        ValueError: for a native mechanism, if x and x' are not vectors of equal shape.

    Source:
        Habernal (2022), theorem 3.2.

    Example:
        >>> import dpcore
        >>> explain_infinite_loss(dpcore.Exponential(1.0), dpcore.Pair([0.0], [1.0]))
        'noise that is never negative: an output below 1 in entry 0 is possible on x alone'
        >>> explain_infinite_loss(dpcore.Laplace(1.0), dpcore.Pair([0.0], [1.0])) is None
        True
    """
    instance("pair", pair, Pair)
    if not can_core_draw(mechanism) or distance(pair, "linf") == 0.0:
        return None
    x, x_prime = (np.asarray(side, dtype=np.float64) for side in (pair.x, pair.x_prime))
    steps = mechanism.steps(x.size)
    if steps.clip is not None:
        x, x_prime = (_core.clip(side, steps.clip.norm, steps.clip.radius) for side in (x, x_prime))
    with np.errstate(over="ignore"):
        entry = int(np.argmax(np.abs(x - x_prime)))
    # The clip can make two inputs on one ray differ in their last bits; they are equal in real
    # numbers.
    near = 0.0 if steps.clip is None else _CLIP_ROUNDING * steps.clip.radius
    if abs(float(x[entry]) - float(x_prime[entry])) <= near:
        return None
    law = facts_about_noise(steps.noise)
    if law.blind or law.support is None:
        return None
    low, high = law.support(steps.noise)
    if low == high:
        return "no noise: the output is the input"
    if math.isfinite(low) and math.isfinite(high):
        return f"bounded noise: the ranges of entry {entry} differ between x and x'"
    if math.isinf(low) and math.isinf(high):
        return None
    beyond, end = ("below", low) if math.isfinite(low) else ("above", high)
    return _explain_one_sided_noise(beyond, end, steps.factor, x, x_prime, entry)


def _explain_one_sided_noise(
    beyond: str, end: float, factor: float, x: Logs, x_prime: Logs, entry: int
) -> str:
    """Explain why noise that has a smallest or a largest value gives an infinite privacy loss.

    `beyond` is "below" if the noise is never below `end`, and "above" if it is never above `end`.
    """
    inner = max if beyond == "below" else min
    edge = inner(float(x[entry]), float(x_prime[entry]))
    if end == 0.0:
        kind = "negative" if beyond == "below" else "positive"
    else:
        kind, edge = f"{beyond} {end:.10g}", edge + end
    side = "x'" if x[entry] == inner(x[entry], x_prime[entry]) else "x"
    return (
        f"noise that is never {kind}: an output {beyond} {factor * edge:.10g} in entry {entry} "
        f"is possible on {side} alone"
    )


def _log_p_vote_and_not(mechanism: Native, x: Any, vote: Vote) -> tuple[float, float] | None:
    steps = mechanism.steps(vote.threshold.size)
    centre = _clip_input_to_norm_ball(np.asarray(x, dtype=np.float64), steps.clip)
    if facts_about_noise(steps.noise).blind:
        centre = np.zeros_like(centre)
    with np.errstate(over="ignore"):
        a = vote.threshold / steps.factor - centre
    up, down = vote.towards > 0, vote.towards < 0
    higher, lower = log_tails(steps.noise, a[up], True), log_tails(steps.noise, a[down], False)
    if higher is None or lower is None:
        return None
    parts = (higher, lower)
    log_p, log_q = (np.concatenate(part) for part in zip(*parts, strict=True))
    if (log_p == log_p[0]).all() and (log_q == log_q[0]).all():
        return _log_binomial_majority(log_p.size, float(log_p[0]), float(log_q[0]))
    return None if log_p.size > _MAX_UNEQUAL_ENTRIES else _log_unequal_majority(log_p, log_q)


def _clip_input_to_norm_ball(x: Logs, clip: ClipStep | None) -> Logs:
    if clip is None:
        return x
    largest = float(np.abs(x).max())
    if largest == 0.0:
        return x
    # Norms of x / largest neither overflow nor vanish.
    unit = x / largest
    norm = math.fsum(np.abs(unit)) if clip.norm == "l1" else math.hypot(*unit.tolist())
    if largest <= clip.radius / norm:
        return x
    return unit * (clip.radius / norm)


def _log_binomial_majority(n: int, log_p: float, log_not_p: float) -> tuple[float, float]:
    """Compute the logarithms of P(K > n/2) and P(K <= n/2) for K ~ Binomial(n, p).

    The function sums the upper tail if p <= 1/2, and the lower tail otherwise. The terms of this
    tail decrease from the middle. Each term is divided by the first term, whose logarithm is exact.
    """
    if log_p == -math.inf or log_not_p == -math.inf:
        return (log_p, 0.0) if log_p == -math.inf else (0.0, log_not_p)
    upper = log_p <= log_not_p
    first = n // 2 + 1 if upper else n // 2
    # Counting failures instead of successes turns the lower tail into an upper one.
    hits = first if upper else n - first
    log_hit, log_miss = (log_p, log_not_p) if upper else (log_not_p, log_p)
    j = np.arange(hits, n, dtype=np.float64)
    ratios = np.log((n - j) / (j + 1.0)) + (log_hit - log_miss)
    relative = np.concatenate(([0.0], np.cumsum(ratios)))
    log_first = _log_choose(n, hits) + hits * log_hit + (n - hits) * log_miss
    with np.errstate(under="ignore"):
        log_sum = math.log(math.fsum(np.exp(relative)))
    tail = min(log_first + log_sum, 0.0)
    rest = _log_one_minus_exp(tail)
    return (tail, rest) if upper else (rest, tail)


def _log_choose(n: int, k: int) -> float:
    if n <= _MAX_EXACT_BINOMIAL:
        return math.log(math.comb(n, k))
    # k is within one of n/2 here, so all arguments are large and the error of the series is below
    # x^-7 / 1680. lgamma would lose nine digits at n = 1e6.
    fraction = k * math.log(n / k) + (n - k) * math.log(n / (n - k))
    width = 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))
    whole, part, rest = map(_stirling_correction, (n, k, n - k))
    return fraction + width + whole - part - rest


def _stirling_correction(x: int) -> float:
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * x * x)) / (x * x)) / x


def _log_unequal_majority(log_p: Logs, log_not_p: Logs) -> tuple[float, float]:
    """Compute the logarithms of P(K > n/2) and P(K <= n/2) for the number K of votes for x'.

    The n entries vote independently. Entry i votes for x' with probability exp(log_p[i]).
    """
    n = log_p.size
    masses = np.full(n + 1, -np.inf)
    masses[0] = 0.0
    for i in range(n):
        stay = masses[: i + 2] + log_not_p[i]
        stay[1:] = np.logaddexp(stay[1:], masses[: i + 1] + log_p[i])
        masses[: i + 2] = stay
    tails = (_sum_in_log_space(masses[n // 2 + 1 :]), _sum_in_log_space(masses[: n // 2 + 1]))
    # The rounding error of the larger tail could exceed a small tail: compute from the smaller
    # tail.
    if tails[0] <= tails[1]:
        return tails[0], _log_one_minus_exp(tails[0])
    return _log_one_minus_exp(tails[1]), tails[1]


def _log_one_minus_exp(log_tail: float) -> float:
    # Adding 0 turns -0.0, which looks like an error when printed, into 0.0.
    return float(log_complement(log_tail)) + 0.0


def _sum_in_log_space(logs: Logs) -> float:
    return min(float(np.logaddexp.reduce(logs)), 0.0)
