"""Tests of a claimed epsilon that remain valid if the draws are examined many times.

`anytime` computes a limit after any number of draws. `Martingale` tests one claim over several sets
of draws. The two methods use bets on the draws.

Let p and q be the probabilities of an event on two neighbouring inputs x and x'. The claim is
``p <= e^epsilon q + delta``. Let X be 1 if the event happens in one draw on x, and 0 otherwise. Let
X' be the same for one draw on x'. A bet has two parameters, a stake v and a centre q0. With s =
e^-epsilon, the payment of the bet is

    (1 + v (s X - s delta - q0)) (1 - v (X' - q0)).

The draws are independent, so the mean of the payment is the product of the means of both factors.
Under the claim, s p - s delta is at most q. With d = q - q0 the mean is therefore at most
``(1 + v d)(1 - v d) = 1 - v^2 d^2 <= 1``. (The second factor is positive, so a smaller p only
lowers the product.) No factor is negative for 0 <= v <= min(1/(q0 + s delta), 1/(1 - q0)). Consider
the product of the payments over all draws, or an average of such products with weights fixed in
advance. Under the claim, this value is a supermartingale that starts at 1. By Ville's inequality,
the value ever reaches 1/alpha with probability at most alpha. With n draws on x and n draws on x',
the product depends only on the counts: it has k factors for X = 1 and n - k factors for X = 0. The
same is true for X', with the count k'.

The centre q0 makes the test more powerful. To second order in v, the mean log payment is reduced by
the binomial variances of X and X' and by the term 2 (q - q0)^2. So an approximate q0 is enough.
With q0 = 0 and delta = 0, the product is (1 + v s)^k (1 - v)^k'. A mixture of such products (like a
mixture over theta of theta^k (1 - theta)^k') is less powerful than bets with a centre above 0,
because the larger Poisson variances reduce its log payment. For delta > 0, a bet a^X b^X' that pays
1 on X = X' = 0 is not valid: at q = 0, p = delta its mean is 1 + delta (a - 1).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..records import Counts, Floats
from ..suggestions import explain_argument_errors
from .binomial import Declared
from .canaries import bisect_largest

_CENTRE_COUNT = 7
_STAKE_SHARES = np.concatenate(([1.0], 1.0 / (1.0 + 2.0 ** np.arange(-4.0, 20.5, 0.5))))
"""Stakes, divided by the largest stake. Clear violations need about 1, and 1e12 draws 1e-6."""
_PREDICTED_STAKE_PARTS = 2.0 ** np.arange(-4.0, 1.5, 0.5)
"""Stakes, divided by the predicted stake. A prediction from few draws is too large."""
_LOG_ZERO = -1e200
"""Replacement for log(0). It is finite, so that 0 times this value is 0."""


class _Bets(NamedTuple):
    """Stakes, centres and log weights of the bets in a mixture."""

    stake: Floats
    centre: Floats
    log_weight: Floats


@Declared(title="anytime valid", anytime=True, implied=True)
@explain_argument_errors
def anytime(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon that is valid whenever you stop drawing.

    The limit is the largest epsilon for which the mixture of bets

        sum over (v, q0) of w (1 + v (s (1 - delta) - q0))^k (1 - v (q0 + s delta))^(n - k)
                              (1 - v (1 - q0))^k' (1 + v q0)^(n - k'),      s = e^-epsilon,

    is at least 1/(1 - confidence). The event happened k times in n draws on x, and k' times in n
    draws on x'. Each bet has a centre q0 (a guess of P(event | x')) and a stake v (the size of the
    bet). The mixture has 7 centres q0, evenly spaced in arcsine, with equal weights. The mixture
    has 50 stakes v for each centre, evenly spaced in log odds. The weight w of the largest stake is
    proportional to 1/4, the weight of the next smaller stake to 1/5, and so on. Large stakes suit
    few draws, and small stakes suit many draws. The stakes, centres and weights do not depend on
    the data.

    You may compute the limit after every draw and stop at any time. With probability at least
    `confidence`, the limits at all numbers of draws are true. This guarantee needs three
    conditions:

    - The draws are independent.
    - The numbers of draws on x and on x' are equal whenever you compute the limit.
    - The event, and the roles of x and x', are fixed before the counted draws.

    If the number of draws is fixed in advance, `berger_boos` gives a sharper limit than `anytime`.

    Each product in the sum is log-concave in s. Therefore the minimum of the product over all
    claims from 0 to epsilon is at 0 or at epsilon. The code replaces each product by this minimum.
    The sum then decreases in epsilon, and is still below a supermartingale. Therefore all claims
    below the limit are rejected, and no claim above the limit is rejected. (If delta is 0, each
    product is monotone without this replacement.)

    Args:
        counts: the event happened in k of n draws on x, and in k' of n draws on x'.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limits at all numbers of draws are true, strictly between 0
            and 1.

    Returns:
        The lower limit on epsilon, finite and at least 0.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` is not a number.
        ValueError: if `delta` or `confidence` is out of range, or the two inputs have different
            numbers of draws.

    Source:
        Ville (1939); Robbins (1970), Annals of Mathematical Statistics 41, for mixtures; Turner, Ly
        and Gruenwald (2024), Electronic Journal of Statistics, for tests of two streams, with bets
        that are likelihood ratios against the nearest null hypothesis.

    Example:
        >>> round(anytime(Counts(900, 1000, 100, 1000)), 4)
        1.8492
    """
    counts, delta = errors.instance("counts", counts, Counts), errors.delta_level(delta)
    alpha = 1.0 - errors.confidence_level(confidence)
    if counts.n != counts.n_prime:
        raise errors.invalid("n_prime", f"{counts.n} like n at every look", counts.n_prime)
    outcomes = _stack_hits_and_misses(counts.k, counts.k_prime, counts.n)
    bets = _uninformed_bets(delta, 1.0)
    # Rounding errors of a sum of n logarithms must not certify a claim.
    goal = math.log(1.0 / alpha) + 1e-9 + 1e-15 * counts.n
    start = outcomes @ _log_wealth_gains(bets, delta, 1.0)

    def rejects(epsilon: float) -> bool:
        products = np.minimum(start, outcomes @ _log_wealth_gains(bets, delta, math.exp(-epsilon)))
        return _log_sum(bets.log_weight + products) >= goal

    # At e^-1024 = 0 no product exceeds 1, so nothing is rejected there.
    return bisect_largest(rejects)


@explain_argument_errors
class Martingale:
    """Sequential test of one claim (epsilon, delta), which you may stop after any number of draws.

    The test reads the draws in slices. A slice is a set of n new draws on x and n new draws on x',
    in which one event is counted. The event must be chosen before these draws, from earlier slices
    only. Each slice may have a different event, and may exchange the roles of x and x'. The
    evidence against the claim is called wealth. The wealth starts at 1, and each slice multiplies
    the wealth by a factor. If the claim is true, the wealth ever reaches 1/(1 - confidence) with
    probability at most 1 - confidence. Therefore you may stop after the first slice that refutes
    the claim.

    Let X be 1 if the event happens in a draw on x, and 0 otherwise. Let X' be the same for a draw
    on x'. The wealth is divided among several bets. A bet has a stake v and a centre q0. For each
    pair of a draw on x and a draw on x', the wealth of this bet is multiplied by
    ``(1 + v (s X - s delta - q0)) (1 - v (X' - q0))``. Here s = e^-claim.

    The wealth has two halves. The first half uses a fixed mixture of bets with many stakes and
    centres, as in `anytime`. A new mixture starts for each new event. The second half uses
    predictions of the two probabilities of the event, if the caller gives them. Consider all pairs
    of probabilities that the claim allows. Among these pairs, the pair nearest to the predictions
    determines the centre of the bets. For one particular stake, the factor is a likelihood ratio.
    The stakes of the bets are 1/16 to 2 times this stake. The second half keeps one mixture over
    these stakes for all slices, even if the event changes. Without predictions, the second half
    uses the same bets as the first half.

    Args:
        claim: the claimed epsilon, at least 0.
        delta: delta of the claim, in [0, 1).

    Raises:
        TypeError: if `claim` or `delta` is not a number.
        ValueError: if an argument is out of range.

    Source:
        Ville (1939); Turner, Ly and Gruenwald (2024); Waudby-Smith and Ramdas (2024), JRSS B 86,
        for stakes learned from earlier draws.

    Example:
        >>> evidence = Martingale(claim=0.5)
        >>> round(evidence.update(55, 30, 100), 3)
        -0.853
        >>> round(evidence.update(560, 280, 1000, predicted=(0.55, 0.3)), 3)
        2.851
        >>> evidence.refuted(0.9)
        True
    """

    def __init__(self, claim: float, delta: float = 0.0) -> None:
        self.claim = errors.real("claim", claim, low=0.0)
        self.delta = errors.delta_level(delta)
        self._bets = _uninformed_bets(self.delta, self._exp_minus_claim)
        self._factors = _log_wealth_gains(self._bets, self.delta, self._exp_minus_claim)
        self._learners: dict[Hashable, tuple[Floats, float]] = {}
        self._mixed = 0.0
        parts = _PREDICTED_STAKE_PARTS.size
        self._followers = np.full(parts, -math.log(parts))
        self._best = 0.0

    @explain_argument_errors
    def update(
        self,
        k: int,
        k_prime: int,
        n: int,
        *,
        event: Hashable = None,
        predicted: tuple[float, float] | None = None,
    ) -> float:
        """Add the counts of a new set of draws (a slice) to this test, and update the wealth.

        The wealth is the evidence against the claim. Each slice multiplies the wealth by a factor
        that depends on its counts.

        Args:
            k: number of draws on x in which the event happened. Here x is the input on which a
                large probability of the event is evidence against the claim.
            k_prime: number of draws on x' in which the event happened.
            n: number of draws of this slice on x, and on x', at least 1.
            event: label of the event, together with the roles of x and x'. Slices with the same
                label share one mixture of bets. With a wrong label, the test has less power, but
                remains valid.
            predicted: probabilities (p, q) of the event on x and x', estimated from earlier draws.
                None if you have no estimate.

        Returns:
            The natural logarithm of the wealth after this slice.

        Raises:
            TypeError: if a count is not an integer, or if a predicted probability is not a number.
            ValueError: if an argument is out of range.
        """
        n = errors.integer("n", n, 1)
        outcomes = _stack_hits_and_misses(
            errors.integer("k", k, 0, n), errors.integer("k_prime", k_prime, 0, n), n
        )
        step = self._update_and_log_wealth_gain(event, outcomes)
        self._mixed += step
        if predicted is None:
            self._followers += step
        else:
            bets = _bets_around(
                *_check_predicted_rates(predicted), self.delta, self._exp_minus_claim
            )
            self._followers += outcomes @ _log_wealth_gains(bets, self.delta, self._exp_minus_claim)
        self._best = max(self._best, self.log_wealth)
        return self.log_wealth

    def _update_and_log_wealth_gain(self, event: Hashable, outcomes: Floats) -> float:
        """Update the mixture of an event, and return by how much its log wealth increased."""
        before, old = self._learners.get(event, (np.zeros(4), 0.0))
        after = before + outcomes
        new = _log_sum(self._bets.log_weight + after @ self._factors)
        self._learners[event] = after, new
        return new - old

    @property
    def _exp_minus_claim(self) -> float:
        return math.exp(-self.claim)

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the current wealth (evidence against the claim). Always finite."""
        return float(np.logaddexp(self._mixed, _log_sum(self._followers))) - math.log(2.0)

    @property
    def log_peak(self) -> float:
        """Natural logarithm of the largest wealth (evidence against the claim) so far.

        This number decides whether the claim is refuted.
        """
        return self._best

    def refuted(self, confidence: float = 0.95) -> bool:
        """Return True if the draws so far refute the claim.

        The evidence against the claim is called wealth. The claim is refuted as soon as the wealth
        has reached 1/(1 - confidence) after one of the sets of draws.

        Args:
            confidence: confidence level of the test, strictly between 0 and 1, fixed before the
                first draw. A true claim is refuted with probability at most 1 - confidence.

        Returns:
            True if the claim is refuted.

        Raises:
            TypeError: if `confidence` is not a number.
            ValueError: if `confidence` is out of range.
        """
        return self.log_peak >= -math.log1p(-errors.confidence_level(confidence)) + 1e-9

    def __repr__(self) -> str:
        """Return one line with the claim and the log wealth."""
        wealth = f"log_wealth={self.log_wealth:.6g}"
        return f"<Martingale against epsilon={self.claim:g}, delta={self.delta:g}: {wealth}>"


def _stack_hits_and_misses(k: int, k_prime: int, n: int) -> Floats:
    return np.array([k, n - k, k_prime, n - k_prime], dtype=np.float64)


def _log_wealth_gains(bets: _Bets, delta: float, s: float) -> Floats:
    """Compute the log factor of every bet for X = 1, X = 0, X' = 1 and X' = 0, shape (4, bets)."""
    v, q0 = bets.stake, bets.centre
    gains = np.stack([v * (s * (1.0 - delta) - q0), -v * (s * delta + q0), -v * (1.0 - q0), v * q0])
    with np.errstate(divide="ignore"):
        factors: Floats = np.maximum(np.log1p(np.maximum(gains, -1.0)), _LOG_ZERO)
    return factors


def _largest_stake(centre: Floats, delta: float, s: float) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        most: Floats = np.minimum(1.0 / (centre + s * delta), 1.0 / (1.0 - centre))
    return most


@lru_cache(maxsize=64)
def _uninformed_bets(delta: float, s: float) -> _Bets:
    """Return the fixed mixture of bets, which does not use a prediction."""
    centre = np.sin(np.linspace(0.0, math.pi / 2.0, _CENTRE_COUNT)) ** 2
    stake = np.outer(_largest_stake(centre, delta, s), _STAKE_SHARES).ravel()
    share = 1.0 / (4.0 + np.arange(_STAKE_SHARES.size))
    log_weight = np.tile(np.log(share / (_CENTRE_COUNT * share.sum())), _CENTRE_COUNT)
    return _Bets(stake, np.repeat(centre, _STAKE_SHARES.size), log_weight)


def _bets_around(p: float, q: float, delta: float, s: float) -> _Bets:
    """Return bets for the predicted rates p and q; all stakes are 0 if the claim allows (p, q).

    The centre x maximises the likelihood of (p, q) among the boundary pairs (x/s + delta, x) of the
    claim. With the stake (x - q)/(x (1 - x)), the two factors of the bet are the likelihood ratios
    for the two inputs, because the derivative of the likelihood is 0 at x.
    """
    low, high = q, (p - delta) * s
    zeros = np.zeros(_PREDICTED_STAKE_PARTS.size)
    if high <= low:
        return _Bets(zeros, zeros + 0.5, zeros)
    for _ in range(60):
        x = (low + high) / 2.0
        r = x / s + delta
        rising = (p - r) * x * (1.0 - x) > (x - q) * s * r * (1.0 - r)
        low, high = (x, high) if rising else (low, x)
    centre = zeros + x
    stake = (x - q) / (x * (1.0 - x)) * _PREDICTED_STAKE_PARTS
    return _Bets(np.minimum(stake, 0.98 * _largest_stake(centre, delta, s)), centre, zeros)


def _check_predicted_rates(predicted: Any) -> tuple[float, float]:
    if not isinstance(predicted, (tuple, list)) or len(predicted) != 2:
        raise errors.mistyped("predicted", "a pair of rates (p, q)", predicted)
    p, q = predicted
    p = errors.real("predicted p", p, low=0.0, high=1.0)
    return p, errors.real("predicted q", q, low=0.0, high=1.0)


def _log_sum(values: Floats) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))
