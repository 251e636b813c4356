"""A thousand resamples of the ball against four fresh brute-force searches for each of them.

Null Gaussians, and five dimensions at mu = 2; embeddings from a file named by the environment
variable DPCORE_EMBEDDINGS (two rows of arrays y0, y1 in an .npz), where it is set. An operation is
one replicate. Both sides use one thread; the rival is timed on one replicate.
"""

import os

import numpy as np
import pytest

from dpcore.divergence import renyi

REPLICATES, K = 1000, 20
SIZES = {"null, d = 384": (10_000, 384, 0.0), "mu = 2, d = 5": (10_000, 5, 2.0)}


def pair(name, tiny):
    if name == "embeddings":
        path = os.environ.get("DPCORE_EMBEDDINGS")
        if path is None:
            pytest.skip("DPCORE_EMBEDDINGS names no .npz with y0 and y1")
        with np.load(path) as held:
            return held["y0"], held["y1"]
    rows, dim, shift = SIZES[name]
    rows = 300 if tiny else rows
    rng = np.random.default_rng(dim)
    y0, y1 = rng.normal(size=(2, rows, dim)).astype(np.float32)
    y1[:, 0] += shift
    return y0, y1


def dpcore_resamples(y0, y1, replicates):
    estimate = renyi(
        y0, y1, alphas=[1.5, 2.0, 4.0], k=K, method="ball", error="bootstrap",
        replicates=replicates, checks=False, threads=1, rng=1,
    )  # fmt: skip
    return estimate.diagnostics.replicates


def sklearn_searches(y0, y1, replicates):
    """Four searches a replicate, as each direction needs both sets: lists only, no divergence."""
    neighbors = pytest.importorskip("sklearn.neighbors")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    rng = np.random.default_rng(1)
    found = []
    with threadpoolctl.threadpool_limits(1):
        for _ in range(replicates):
            sets = [y[rng.integers(len(y), size=len(y))] for y in (y0, y1)]
            for queries in sets:
                for others in sets:
                    search = neighbors.NearestNeighbors(n_neighbors=K, algorithm="brute")
                    found.append(search.fit(others).kneighbors(queries)[0])
    return np.array([distances.mean() for distances in found])


@pytest.mark.parametrize("contender", [dpcore_resamples, sklearn_searches])
@pytest.mark.parametrize("name", [*SIZES, "embeddings"])
def test_resamples(race, tiny, name, contender):
    y0, y1 = pair(name, tiny)
    ours = contender is dpcore_resamples
    replicates = (10 if tiny else REPLICATES) if ours else 1
    work = lambda: contender(y0, y1, replicates)  # noqa: E731
    found = race(f"a replicate of the ball, {name}", work, replicates, 3)
    assert len(found) == (replicates if ours else 4)
    assert np.isfinite(found).all()
