"""Two audits of consecutive trials, for tests of their addition."""

from __future__ import annotations

import dpcore
from dpcore import Pair, audit
from dpcore.attacks import MajorityVote


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, 1))


STEP = {"pair": ([0.0], [1.0]), "trials": 1000, "block": 100, "rng": 1, "attack": MajorityVote()}
FIRST = audit(noisy, claim=1.0, **STEP)
SECOND = audit(noisy, claim=1.0, start=1000, **STEP)
OTHER_EVENT = dpcore.events.Vote.between(Pair([0.0], [3.0]))
