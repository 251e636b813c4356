"""Violations as numbers that an audit sees: a loss, a rate, guesses in one run."""

from __future__ import annotations

from collections.abc import Callable

from .canaries import gaussian_epsilon, gaussian_mu, guesses_refuting

__all__ = ["gaussian_rate", "guesses_for", "guesses_power", "loss_of_factor"]

_MAX_GUESSES = 2**20


def loss_of_factor(claim: float, factor: float, delta: float = 0.0) -> float:
    """Compute the true loss if the noise's scale is `factor` times the one for the claim.

    ``claim / factor`` for Laplace noise, whose loss is its sensitivity over its scale, and for any
    other noise of delta 0 whose loss falls so. With delta > 0 it is that of Gaussian noise: mu of
    the claim solves ``delta = Phi(mu/2 - claim/mu) - e^claim Phi(-mu/2 - claim/mu)``, the true mu
    is mu / factor, and the true loss solves the same equation for it.

    Args:
        claim: the claimed epsilon.
        factor: scale of the noise over the right one, above 0.
        delta: the delta of the claim.

    Returns:
        The true epsilon at that delta.

    Source:
        Dwork et al. (2006) for Laplace noise; Balle and Wang (2018), theorem 8, for Gaussian.

    Example:
        >>> round(loss_of_factor(1.0, 0.9), 4), round(loss_of_factor(1.0, 0.9, 1e-5), 4)
        (1.1111, 1.1228)
    """
    if delta == 0.0:
        return claim / factor
    return gaussian_epsilon(gaussian_mu(claim, delta) / factor, delta)


def gaussian_rate(p: float, true_epsilon: float, delta: float) -> float:
    """Compute the other side's probability of a threshold on Gaussian noise.

    It is `Phi(Phi^-1(p) - mu)`.

    Args:
        p: probability on the numerator's side, in (0, 1].
        true_epsilon: the loss at delta, of which mu is that of the noise.
        delta: above 0.

    Returns:
        The probability.

    Source:
        Dong, Roth and Su (2022), section 2.3.

    Example:
        >>> round(gaussian_rate(0.5, 4.377, 1e-5), 3)
        0.159
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(p) - gaussian_mu(true_epsilon, delta)))


def guesses_power(
    guesses: int, canaries: int, claim: float, rate: float, delta: float, confidence: float
) -> float:
    """Compute the probability that guesses about canaries of one run refute a claim.

    ``P(W >= v)``, W ~ Binomial(guesses, rate), v the fewest right guesses that refute it.

    Args:
        guesses: guesses made.
        canaries: canaries of the run.
        claim: the claimed epsilon.
        rate: probability that a guess is right, ``e^t/(1 + e^t)`` at a true loss t.
        delta: the delta of the claim.
        confidence: confidence of the audit.

    Returns:
        The probability.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> round(guesses_power(100, 1000, 1.0, 0.9, 0.0, 0.95), 3)
        0.998
    """
    from scipy.special import bdtrc

    least = guesses_refuting(claim, guesses, canaries, delta, confidence)
    return 0.0 if least is None else float(bdtrc(least - 1, guesses, rate))


def guesses_for(
    canaries: Callable[[int], int],
    claim: float,
    rate: float,
    delta: float,
    confidence: float,
    power: float,
    most: int = _MAX_GUESSES,
) -> int | None:
    """Find the fewest guesses that refute a claim with a given probability.

    Args:
        canaries: how many canaries a run of so many guesses has.
        claim: the claimed epsilon.
        rate: probability that a guess is right.
        delta: the delta of the claim.
        confidence: confidence of the audit.
        power: the probability wanted.
        most: guesses that are possible.

    Returns:
        The number; None where `most` are not enough.

    Example:
        >>> guesses_for(lambda guesses: guesses, 1.0, 0.9, 0.0, 0.95, 0.95)
        55
    """

    def enough(guesses: int) -> bool:
        found = guesses_power(guesses, canaries(guesses), claim, rate, delta, confidence)
        return found >= power

    high = 1
    while not enough(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
