"""Two baselines: an output that is equal to the input, and random bits that ignore the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .native import Logs, Primitive, Tails, make_unbounded_cost, register_law


def _identity_log_tail_and_complement(noise: Identity, a: Logs, up: bool) -> Tails:
    votes = a <= 0 if up else a >= 0
    return np.where(votes, 0.0, -np.inf), np.where(votes, -np.inf, 0.0)


@register_law(
    log_votes=_identity_log_tail_and_complement,
    support=lambda noise: (0.0, 0.0),
    cost=make_unbounded_cost("no noise: the output is the input"),
)
@dataclass(frozen=True, slots=True, repr=False)
class Identity(Primitive):
    """Mechanism without noise and without privacy: the output is equal to the input.

    This baseline is for audits and experiments, not for releasing data.

    Source:
        Habernal (2022), section 5, for the baseline that copies the input.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Identity(), [0.5], 2, rng=1).tolist()
        [[0.5], [0.5]]
    """


def _bits_log_tail_and_complement(noise: RandomBits, a: Logs, upper: bool) -> Tails:
    # The noise is the output itself: 0 or 1 with probability 1/2 each.
    p = ((a <= 0) * 0.5 + (a <= 1) * 0.5) if upper else ((a >= 0) * 0.5 + (a >= 1) * 0.5)
    with np.errstate(divide="ignore"):
        return np.log(p), np.log1p(-p)


@register_law(log_votes=_bits_log_tail_and_complement, support=lambda noise: (0.0, 1.0), blind=True)
@dataclass(frozen=True, slots=True, repr=False)
class RandomBits(Primitive):
    """Mechanism of random bits: each output entry is 0.0 or 1.0, each with probability 1/2.

    This baseline is for audits and experiments, not for releasing data. An output has as many
    entries as the input, and does not depend on their values. Therefore epsilon is 0.

    Source:
        Habernal (2022), section 5, for the baseline that ignores the input.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.RandomBits(), [7.0, 7.0], 3, rng=1)
        array([[0., 0.],
               [1., 1.],
               [1., 0.]])
    """
