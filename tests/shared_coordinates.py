"""Noise and the bound of the tests about all coordinates at once."""

from __future__ import annotations

import numpy as np

from dpcore.attacks.attack import Goal
from dpcore.attacks.entrywise import Coordinatewise
from dpcore.bounds.binomial import every_coordinate
from dpcore.records import Counts

ALPHA = 1e-3
"""Significance of the tests that count overclaims and refusals; the seeds are fixed."""

CONFIDENCE = 0.95


def laplace(scale):
    return lambda x, size, rng: x + rng.laplace(0.0, scale, (size, x.size))


def geometric(x, size, rng):
    return x + (rng.geometric(0.4, (size, x.size)) - rng.geometric(0.4, (size, x.size)))


def certified(mechanism, pair, trials, seed=1, pilot=4000, delta=0.0, confidence=CONFIDENCE):
    """(bound, chosen, joint counts) by the rules of an audit."""
    rng = np.random.default_rng(seed)
    pilots = [mechanism(x, pilot, rng) for x in (pair.x, pair.x_prime)]
    chosen = Coordinatewise().choose(*pilots, pair, Goal(trials, delta, confidence))
    return counted(chosen.event, chosen.direction, mechanism, pair, trials, rng, delta, confidence)


def counted(event, direction, mechanism, pair, trials, rng, delta=0.0, confidence=CONFIDENCE):
    sides = [mechanism(x, trials, rng) for x in (pair.x, pair.x_prime)]
    pooled = [event.pooled(side) for side in sides]
    sizes = [trials * many for many in event.multiplicities]
    counts = [Counts(k, n, q, n) for k, q, n in zip(*pooled, sizes, strict=True)]
    if direction == "x_prime":
        counts = [one.swapped() for one in counts]
    bound = every_coordinate(counts, event.multiplicities, delta, confidence)
    return bound, event, tuple(int(event(side).sum()) for side in sides)


def constant(x, size, rng):
    return np.tile(x, (size, 1))
