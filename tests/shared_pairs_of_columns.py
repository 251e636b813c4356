"""Mechanisms whose secret no single column tells, and the scores that somebody who knows would use.

Each has a true loss, and each can be turned: other columns, an offset, a sign.
"""

from __future__ import annotations

import math

import numpy as np

from dpcore import Pair
from dpcore.bounds import clopper_pearson
from dpcore.records import Counts

UNIT = Pair(np.zeros(1), np.ones(1))
FLIP = 0.05
"""A bit of the secret is told wrongly so often: a loss of ln 19 = 2.944, whatever hides it."""
LOSS = math.log((1.0 - FLIP) / FLIP)


def secret(x, size, rng):
    return (rng.random(size) < FLIP) ^ (x[0] > 0.5)


def twisted(i=4, j=19, width=32, offset=0, sign=1):
    """Uniform bits, of which bit j is bit i exclusive-or a bit of the secret."""

    def mechanism(x, size, rng):
        bits = rng.integers(0, 2, (size, width))
        bits[:, j] = bits[:, i] ^ secret(x, size, rng)
        return offset + sign * bits

    return mechanism


def correlated(r, r_prime, i=4, j=13, width=20, offset=0.0, sign=1.0):
    """Standard normal columns; the correlation of columns i and j is r on x, r_prime on x'."""

    def mechanism(x, size, rng):
        outputs = rng.normal(size=(size, width))
        own = r_prime if x[0] > 0.5 else r
        rest = math.sqrt(1.0 - own * own)
        outputs[:, j] = own * outputs[:, i] + rest * outputs[:, j]
        return offset + sign * outputs

    return mechanism


def likelihood(r, r_prime, i=4, j=13):
    """The log-likelihood ratio of `correlated`."""
    inverses = [np.linalg.inv([[1.0, own], [own, 1.0]]) for own in (r_prime, r)]
    form = 0.5 * (inverses[0] - inverses[1])

    def score(outputs):
        pair = outputs[:, [i, j]]
        return np.einsum("ni,ij,nj->n", pair, form, pair)

    return score


def odd(offset=0, sign=1, scale=1e4, dtype=np.int64):
    """A whole number whose parity is a bit of the secret, and which says nothing else."""

    def mechanism(x, size, rng):
        half = np.rint(rng.normal(0.0, scale, (size, 1))).astype(np.int64)
        return (offset + sign * (2 * half + secret(x, size, rng)[:, None])).astype(dtype)

    return mechanism


def told(mechanism, event, trials=10**6):
    """What an event certifies: the bound at 95 % of its counts, the better side first."""
    rng = np.random.default_rng(12345)
    k, k_prime = (int(event(mechanism(x, trials, rng)).sum()) for x in (UNIT.x, UNIT.x_prime))
    counts = Counts(k, trials, k_prime, trials)
    return max(clopper_pearson(c, 0.0, 0.95) for c in (counts, counts.swapped()))
