"""Staircase noise, with its tail probabilities and its privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import real
from ..suggestions import explain_argument_errors
from .native import Cost, Logs, Primitive, Tails, log_complement, register_law, whole_real_line

LARGEST_WIDTH = 1e290
"""Largest allowed width. The largest possible noise, 3.7e7 steps of this width, is still finite."""
DECAYS = 1e-6, 700.0


def _log_tail_and_rest(noise: Staircase, a: Logs, up: bool) -> Tails:
    gamma, fall = float(noise.gamma), math.exp(-noise.decay)  # type: ignore[arg-type]
    rate = -math.expm1(-noise.decay) / (gamma + (1.0 - gamma) * fall)
    steps = np.minimum(np.abs(a) / noise.width, 2.0**1000)
    k = np.floor(steps)
    place = steps - k
    # Remaining share of a step's tail at a place in the step, from 1 down to exp(-decay).
    before = -rate * np.minimum(place, gamma)
    after = np.log(fall + rate * fall * (1.0 - np.maximum(place, gamma)))
    within = np.where(place < gamma, np.log1p(np.maximum(before, -1.0)), after)
    tail = within - k * noise.decay - math.log(2.0)
    rest = log_complement(tail)
    above, below = np.where(a >= 0, tail, rest), np.where(a >= 0, rest, tail)
    return (above, below) if up else (below, above)


def _staircase_privacy_cost(noise: Staircase, apart: float, entries: int) -> Cost:
    # The loss is largest if one entry has nearly the whole distance and each other entry a little,
    # which costs one step more per entry.
    steps = float(np.ceil(apart / noise.width)) + entries - 1
    where = "" if entries == 1 else f" in {entries} entries"
    reason = f"L1 distance {apart:g}{where} over width {noise.width:g} is at most {steps:g} steps"
    return Cost(steps * noise.decay, f"{reason} of {noise.decay:g} each")


@explain_argument_errors
@register_law(log_votes=_log_tail_and_rest, support=whole_real_line, cost=_staircase_privacy_cost)
@dataclass(frozen=True, slots=True, repr=False)
class Staircase(Primitive):
    """Additive staircase noise: ``x + s``, where the density of s is a decreasing step function.

    This noise is for audits and experiments, not for releasing data. The last bits of its outputs
    reveal the input, and its random numbers are not cryptographic.

    The entries of x get independent noise. Let w be the width, ``b = exp(-decay)`` and
    ``a = (1 - b) / (2 w (gamma + (1 - gamma) b))``. For k = 0, 1, 2, ..., the density of s has
    these values:

    - ``a b^k`` for ``abs(s)/w`` in [k, k + gamma);
    - ``a b^(k+1)`` for ``abs(s)/w`` in [k + gamma, k + 1).

    For a claim of epsilon, set the width to the sensitivity, and the decay to epsilon.

    For one entry and two inputs at distance d, the privacy loss is exactly ``decay ceil(d / w)``.
    Therefore two inputs that are nearly equal also have a loss of at least `decay`. For n entries
    and an L1 distance of d, the largest loss is ``decay (ceil(d / w) + n - 1)``.

    The paper below computes s from four random numbers. dpcore computes s from one uniform number,
    by inversion of the distribution function. The distribution of s is the same.

    Args:
        width: width w of the steps, in the units of x. In the paper, it is the sensitivity.
        decay: decrease of the log density over one width w, in nats. In the paper, it is epsilon.
        gamma: place within a width w at which the density decreases, as a fraction of w, from 0 to
            1. None means ``1 / (1 + exp(decay / 2))``, which minimises ``E[abs(s)]``.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if `width` is not in (0, 1e290], `decay` is not in [1e-6, 700], or `gamma` is
            not in [0, 1].

    Source:
        Geng and Viswanath (2014), The optimal mechanism in differential privacy, for the
        distribution and for the gamma that minimises ``E[abs(s)]``.

    Example:
        >>> import dpcore
        >>> dpcore.Staircase(1.0, 2.0)
        Staircase(width=1.0, decay=2.0, gamma=0.2689414213699951)
        >>> dpcore.sample(dpcore.Staircase(1.0, 2.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
    """

    width: float
    decay: float
    gamma: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        width = real("width", self.width, low=0.0, high=LARGEST_WIDTH, open_low=True)
        decay = real("decay", self.decay, low=DECAYS[0], high=DECAYS[1])
        optimal = 1.0 / (1.0 + math.exp(decay / 2.0))
        gamma = optimal if self.gamma is None else real("gamma", self.gamma, low=0.0, high=1.0)
        for name, value in (("width", width), ("decay", decay), ("gamma", gamma)):
            object.__setattr__(self, name, value)
