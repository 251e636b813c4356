"""Pairs of random vectors that are too far apart after clipping: ours against numpy.

Four laws, C = 10, 10,000 pairs of each size n. An operation is one entry of one vector.
"""

import numpy as np
import pytest

from dpcore import _core

RADIUS, PAIRS = 10.0, 10_000
LAWS = {
    "uniform": (("uniform", 10.0), "l2"),
    "normal 0.1": (("normal", 1.0), "l2"),
    "normal 0.01": (("normal", 0.1), "l2"),
    "uniform, L1 clip": (("uniform", 10.0), "l1"),
}
KNOWN = {
    ("uniform", 8): 0.952,
    ("normal 0.1", 24): 0.963,
    ("normal 0.01", 160): 0.037,
    ("normal 0.01", 200): 0.986,
    ("uniform, L1 clip", 200): 0.0,
}


def dpcore_all_cores(law, norm, dim):
    return _core.pairs_beyond(law, (norm, RADIUS), dim, PAIRS, dim, _core.cores())


def dpcore_one_thread(law, norm, dim):
    return _core.pairs_beyond(law, (norm, RADIUS), dim, PAIRS, dim, 1)


def clipped(rng, law, norm, shape):
    kind, spread = law
    x = rng.uniform(-spread, spread, shape) if kind == "uniform" else rng.normal(0, spread, shape)
    length = np.abs(x).sum(axis=1) if norm == "l1" else np.sqrt(np.einsum("ij,ij->i", x, x))
    x *= np.minimum(1.0, RADIUS / length)[:, None]
    return x


def far(rng, law, norm, shape):
    gap = clipped(rng, law, norm, shape)
    gap -= clipped(rng, law, norm, shape)
    return int((np.abs(gap, out=gap).sum(axis=1) > 2 * RADIUS * (1 + 1e-12)).sum())


def numpy_vectorised(law, norm, dim):
    return far(np.random.default_rng(dim), law, norm, (PAIRS, dim))


def numpy_in_cache(law, norm, dim):
    """As many pairs at a time as stay in the second-level cache."""
    rng, size = np.random.default_rng(dim), max(1, 2**15 // dim)
    parts = [min(size, PAIRS - first) for first in range(0, PAIRS, size)]
    return sum(far(rng, law, norm, (part, dim)) for part in parts)


def sweep(contender, dims):
    def work():
        return {
            (name, dim): contender(law, norm, dim) / PAIRS
            for dim in dims
            for name, (law, norm) in LAWS.items()
        }

    return work


def check(found, dims):
    assert len(found) == len(LAWS) * len(dims)
    for place, share in KNOWN.items():
        if place in found:
            # Five standard errors, and the rounding of the known value.
            error = np.sqrt(share * (1 - share) / PAIRS)
            assert abs(found[place] - share) < 5 * error * np.sqrt(2) + 0.0005


CONTENDERS = [dpcore_all_cores, dpcore_one_thread, numpy_vectorised, numpy_in_cache]


@pytest.mark.parametrize("contender", CONTENDERS)
def test_every_eighth_size(race, tiny, contender):
    dims = (8, 24, 160) if tiny else range(8, 256, 8)
    operations = 2 * PAIRS * len(LAWS) * sum(dims)
    group = "pairs too far apart, n = 8, 16, ..., 248"
    check(race(group, sweep(contender, dims), operations, 3), dims)


def test_the_whole_sweep(race, tiny):
    """Every n from 1 to 255, on all cores."""
    dims = (2, 8) if tiny else range(1, 256)
    operations = 2 * PAIRS * len(LAWS) * sum(dims)
    group = "pairs too far apart, n = 1 to 255"
    check(race(group, sweep(dpcore_all_cores, dims), operations, 3), dims)
