"""Exact nearest neighbours, 10,000 queries among 10,000 points, k = 32, one thread.

Ours gives what no other does: the order of exact distances, with whole ties. An operation is one
coordinate of one pair. faiss's wheels bring an OpenBLAS that takes new CPUs for old ones:
OPENBLAS_CORETYPE=SkylakeX (or Haswell) in the environment gives it the kernels of AVX-512 (AVX2),
FAISS_OPT_LEVEL its own. On a busy machine, compare the time of the CPU:
--benchmark-timer=time.process_time.
"""

import numpy as np
import pytest

from dpcore import _core

DEPTH = 32


def gaussian(rng, rows, dim):
    return [rng.standard_normal((rows, dim), dtype=np.float32) for _ in range(2)]


def embeddings(rng, rows, dim):
    """Unit rows of rank 64."""
    basis = rng.standard_normal((64, dim))
    both = [rng.standard_normal((rows, 64)) @ basis for _ in range(2)]
    return [np.float32(y / np.linalg.norm(y, axis=1, keepdims=True)) for y in both]


def near_duplicates(spread):
    def rows_of(rng, rows, dim):
        """Clusters of up to 200 around unit rows."""
        centres = rng.standard_normal((-(-rows // 200), dim))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        which = rng.integers(len(centres), size=(2, rows))
        noise = rng.normal(0, spread / np.sqrt(dim), (2, rows, dim))
        return list(np.float32(centres[which] + noise))

    return rows_of


def outlier(rng, rows, dim):
    y0, y1 = gaussian(rng, rows, dim)
    y1[rows // 2] *= 1e6
    return y0, y1


def clouds(rng, rows, dim):
    """Two, 3,000 apart."""
    both = gaussian(rng, rows, dim)
    for y in both:
        y[::2] += 3e3 / np.sqrt(dim)
    return both


KINDS = {
    "Gaussian": gaussian,
    "embeddings": embeddings,
    "near-duplicates at 1e-2": near_duplicates(1e-2),
    "near-duplicates at 1e-6": near_duplicates(1e-6),
    "one outlier": outlier,
    "two clouds": clouds,
}


def sets(rows, dim, kind="Gaussian"):
    return KINDS[kind](np.random.default_rng(dim), rows, dim)


def places(rows):
    return np.arange(rows), np.arange(rows, 2 * rows)


def dpcore_nearest(y0, y1):
    starts, found, _, _ = _core.nearest(y0, y1, *places(len(y0)), DEPTH, 1)
    assert starts[-1] == DEPTH * len(y0)
    return found.reshape(-1, DEPTH)


def faiss_flat(y0, y1):
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(y1.shape[1])
    index.add(y1)
    return index.search(y0, DEPTH)[1]


def sklearn_brute(y0, y1):
    neighbors = pytest.importorskip("sklearn.neighbors")
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    with limits(1):
        search = neighbors.NearestNeighbors(n_neighbors=DEPTH, algorithm="brute", n_jobs=1)
        return search.fit(y1).kneighbors(y0, return_distance=False)


def sizes(tiny):
    return 300 if tiny else 10_000


@pytest.mark.parametrize("contender", [dpcore_nearest, faiss_flat, sklearn_brute])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [384, 768])
def test_nearest(race, tiny, dim, kind, contender):
    y0, y1 = sets(sizes(tiny), dim, kind)
    group = f"nearest neighbours, float32, dimension {dim}, {kind}"
    found = race(group, lambda: contender(y0, y1), len(y0) * len(y1) * dim, 5)
    some = slice(0, len(y0), 97)
    exact = [((y1.astype(float) - row) ** 2).sum(axis=1) for row in y0[some]]
    expected = np.argsort(exact, axis=1, kind="stable")[:, :DEPTH]
    if contender is dpcore_nearest:
        np.testing.assert_array_equal(found[some], expected)
    elif kind in ("Gaussian", "embeddings"):
        # Near ties may be listed otherwise by float32, and near-duplicates anyhow.
        assert np.mean(np.sort(found[some]) == np.sort(expected)) > 0.99


@pytest.mark.parametrize("dim", [384, 768])
def test_inside(race, tiny, dim):
    """The points of the queries' own set within each of the 32 distances."""
    y0, y1 = sets(sizes(tiny), dim)
    queries, points = places(len(y0))
    starts, _, squared, _ = _core.nearest(y0, y1, queries, points, DEPTH, 1)

    def dpcore_inside():
        return _core.inside(y0, y1, queries, queries, starts, squared, 4096, 1)

    group = f"points within 32 distances, float32, dimension {dim}"
    own_starts, own, _, inverted, capped, _ = race(group, dpcore_inside, len(y0) ** 2 * dim, 5)
    assert not inverted.any()
    assert not capped.any()
    for i in range(0, len(y0), 97):
        exact = ((y0.astype(float) - y0[i]) ** 2).sum(axis=1)
        within = np.flatnonzero(exact <= squared[starts[i + 1] - 1])
        np.testing.assert_array_equal(np.sort(own[own_starts[i] : own_starts[i + 1]]), within)
