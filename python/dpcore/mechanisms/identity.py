"""No noise, and its law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .native import Logs, Primitive, Tails, make_unbounded_cost, with_law


def _identity_log_votes(noise: Identity, a: Logs, up: bool) -> Tails:
    votes = a <= 0 if up else a >= 0
    return np.where(votes, 0.0, -np.inf), np.where(votes, -np.inf, 0.0)


@with_law(
    log_votes=_identity_log_votes,
    support=lambda noise: (0.0, 0.0),
    cost=make_unbounded_cost("no noise: the output is the input"),
)
@dataclass(frozen=True, slots=True, repr=False)
class Identity(Primitive):
    """No noise: the output is the input. The "no privacy" end of the scale.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    Source:
        Habernal (2022), section 5, the baseline that copies its input.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Identity(), [0.5], 2, rng=1).tolist()
        [[0.5], [0.5]]
    """
