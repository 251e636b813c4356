"""Tests that hold for every law of the noise: they look at ranks, with ties broken by chance.

Ranks of independent draws are a uniformly random permutation, whatever the law, atoms included.
The statistics here have lighter tails than the normal ones that their p-values are read from.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_HASH_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


def rank_scores(values: Floats, rng: np.random.Generator) -> Floats:
    """Return ranks of every column, centred and of unit length, as rows, shape `(d, n)`."""
    rows = np.ascontiguousarray(values.T)
    order = np.argsort(rows, axis=1)
    held = np.take_along_axis(rows, order, axis=1)
    tied = (held[:, 1:] == held[:, :-1]).any(axis=1)
    if tied.any():
        # Equal values in the order of their places would tie the columns to each other. Keys: which
        # value it is, then chance; that they stand almost in order is quicker than a lexsort.
        chance = rng.random((int(tied.sum()), rows.shape[1]))
        found = order[tied]
        keys = np.take_along_axis(chance, found, axis=1)
        keys[:, 1:] += np.cumsum(held[tied, 1:] != held[tied, :-1], axis=1)
        order[tied] = np.take_along_axis(found, np.argsort(keys, axis=1), axis=1)
    n = rows.shape[1]
    centred = np.arange(n, dtype=np.float64) - (n - 1) / 2
    length = math.sqrt(n * (n * n - 1) / 12)
    np.put_along_axis(rows, order, (centred / length)[None], axis=1)
    return rows


def two_sided(z: float) -> float:
    """Compute the chance of a normal deviate at least this far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def largest_deviate_p_value(z: Floats) -> tuple[float, int]:
    """Return the p-value of the largest of several deviates (Bonferroni), and its place."""
    place = int(np.argmax(np.abs(z)))
    return min(1.0, len(z) * two_sided(float(z[place]))), place


def same_rows(first: Floats, second: Floats, rng: np.random.Generator) -> tuple[float, int]:
    """Test if row i of one set is tied to row i of the other, by Spearman's correlation."""
    r = np.einsum("ij,ij->i", rank_scores(first, rng), rank_scores(second, rng))
    return largest_deviate_p_value(r * math.sqrt(len(first) - 1))


def two_samples(first: Floats, second: Floats, rng: np.random.Generator) -> tuple[float, int]:
    """Test if the columns have one law in both sets, by Wilcoxon's rank sum test."""
    m, n = len(first), len(second)
    ranks = rank_scores(np.concatenate([first, second]), rng)
    # The variance of a sum of m draws without replacement from m + n scores of variance 1/(m + n).
    sigma = math.sqrt(m * n / ((m + n) * (m + n - 1)))
    return largest_deviate_p_value(ranks[:, :m].sum(axis=1) / sigma)


def pairs_of_columns(values: Floats, rng: np.random.Generator) -> tuple[float, float, float, int]:
    """Test if the columns are independent of each other.

    Two statistics: the largest of all rank correlations, and the sum of their squares, which is
    chi-squared and sees many weak ones (Schott, 2005, Biometrika).

    Returns:
        The p-value of both together, the largest correlation, the root mean square of all, and
        the number of pairs.
    """
    from scipy.special import gammaincc

    n, d = values.shape
    ranks = rank_scores(values, rng)
    r = (ranks @ ranks.T)[np.triu_indices(d, 1)]
    square = float(r @ r)
    one, place = largest_deviate_p_value(r * math.sqrt(n - 1))
    many = float(gammaincc(len(r) / 2, (n - 1) * square / 2))
    rms = math.sqrt(square / len(r))
    return min(1.0, 2 * min(one, many)), float(r[place]), rms, len(r)


def at_least(k: int, n: int, p: float) -> float:
    """Compute the chance that a binomial variable of n trials is k or more."""
    from scipy.special import betainc

    if k <= 0 or p >= 1.0:
        return 1.0
    return float(betainc(k, n - k + 1, p)) if k <= n and p > 0 else 0.0


def hash_rows(values: Floats, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Return one number a row; equal rows share it, others only by a chance of 2^-60."""
    # Adding 0 makes one zero of both; mixing spreads the low bits, which small integers lack.
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(32))) * _HASH_MULTIPLIER
    bits ^= bits >> np.uint64(29)
    weights = rng.integers(0, 2**64, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed: npt.NDArray[np.uint64] = (bits * weights).sum(axis=1, dtype=np.uint64)
    return mixed


def collision_probability(rows: npt.NDArray[np.uint64]) -> float:
    """Compute an upper guess of the chance that two independent rows are equal.

    Half as much again as seen, and a margin for what so few rows cannot show.
    """
    counts = np.unique(rows, return_counts=True)[1].astype(np.float64)
    pairs = len(rows) * (len(rows) - 1)
    return min(1.0, 1.5 * float(counts @ (counts - 1)) / pairs + 40.0 / pairs)
