"""Replacement of words, numbers in and out; noise on vectors and the nearest word.

1,000 words with random unit vectors of 300 numbers. An operation is one word. The rivals are what
numpy can do: alias tables, cumulative sums searched word by word, products of matrices by blocks.
All run on one thread.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpcore import _core
from dpcore.text.words import Embedding, MetricLaplace, SanText

WORDS, DIM, EPSILON, NOISY_EPSILON = 1000, 300, 10.0, 50.0


@pytest.fixture(scope="module")
def vectors():
    rows = np.random.default_rng(1).normal(size=(WORDS, DIM))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Embedding([f"word{i}" for i in range(WORDS)], rows)


@pytest.fixture(scope="module")
def table(vectors):
    mech = SanText(vectors, EPSILON)
    mech.replace(np.arange(WORDS), 1)
    return mech, np.exp(mech.log_rows(0, WORDS))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(_core, "cores", lambda: 1)
    with threadpool_limits(1):
        yield


def dpcore_words(mech, probabilities):
    return lambda numbers: mech.replace(numbers, 1)


def numpy_alias(mech, probabilities):
    """Vose's table in numpy's arrays."""
    shares, aliases = probabilities * WORDS, np.zeros((WORDS, WORDS), np.int64)
    for row, alias in zip(shares, aliases, strict=True):
        small, large = list(np.flatnonzero(row < 1.0)), list(np.flatnonzero(row >= 1.0))
        while small and large:
            to, start = small.pop(), large.pop()
            alias[to] = start
            row[start] -= 1.0 - row[to]
            (small if row[start] < 1.0 else large).append(start)
        row[small + large] = 1.0
    rng = np.random.default_rng(2)

    def replace(numbers):
        column = rng.integers(0, WORDS, len(numbers))
        below = rng.random(len(numbers)) < shares[numbers, column]
        return np.where(below, column, aliases[numbers, column])

    return replace


def numpy_search(mech, probabilities):
    """Cumulative sums, searched for all draws of a word together."""
    sums, rng = np.cumsum(probabilities, axis=1), np.random.default_rng(2)

    def replace(numbers):
        order = np.argsort(numbers, kind="stable")
        uniform, out = rng.random(len(numbers)), np.empty(len(numbers), np.int64)
        ends = np.searchsorted(numbers[order], np.arange(WORDS + 1))
        for word in range(WORDS):
            part = order[ends[word] : ends[word + 1]]
            found = np.searchsorted(sums[word], uniform[part] * sums[word, -1], "right")
            out[part] = found
        return out

    return replace


@pytest.mark.parametrize("contender", [dpcore_words, numpy_alias, numpy_search])
def test_replacement(race, tiny, table, contender):
    size = 20_000 if tiny else 4_000_000
    numbers = np.random.default_rng(3).integers(0, WORDS, size)
    replace = contender(*table)
    found = race(f"replacement of {size} words", lambda: replace(numbers), size, 5)
    kept = table[1].diagonal().mean()
    assert abs((found == numbers).mean() - kept) < 5.0 * np.sqrt(kept / size)


def dpcore_noise(vectors):
    mech = MetricLaplace(vectors, NOISY_EPSILON)
    return lambda numbers: mech.replace(numbers, 1)


def numpy_noise(vectors):
    rows, rng = vectors.vectors, np.random.default_rng(2)
    half = np.einsum("ij,ij->i", rows, rows) / 2.0

    def replace(numbers):
        out = np.empty(len(numbers), np.int64)
        for start in range(0, len(numbers), 4096):
            part = numbers[start : start + 4096]
            noise = rng.standard_normal((len(part), DIM))
            lengths = rng.standard_gamma(DIM, len(part)) / NOISY_EPSILON
            noise *= (lengths / np.linalg.norm(noise, axis=1))[:, None]
            out[start : start + 4096] = ((rows[part] + noise) @ rows.T - half).argmax(axis=1)
        return out

    return replace


@pytest.mark.parametrize("contender", [dpcore_noise, numpy_noise])
def test_metric_laplace(race, tiny, vectors, contender):
    size = 1000 if tiny else 40_000
    numbers = np.random.default_rng(3).integers(0, WORDS, size)
    replace = contender(vectors)
    found = race(f"metric Laplace on {size} words", lambda: replace(numbers), size, 3)
    other = numpy_noise(vectors)(numbers)
    shares = (found == numbers).mean(), (other == numbers).mean()
    assert abs(shares[0] - shares[1]) < 5.0 * np.sqrt(2.0 * max(shares) / size)
