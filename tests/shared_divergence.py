"""Divergences for tests: the common ball by brute force, and estimates made by hand.

`naive_ball` follows the rules one query at a time, with plain loops and gamma functions by mpmath,
and shares nothing with the package; `freeze` keeps atoms and depths of a sample for data resampled
from it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np

from dpcore.divergence import Diagnostics, Estimate
from dpcore.divergence.certificates import Certificate
from dpcore.divergence.points import Raw, Task, plan_replicates
from dpcore.divergence.reliability import ESTIMATE, UNRESOLVED, Case, judge_estimate
from dpcore.records import Counts

KAPPA = 5
LANES = 8
DIGITS = 30

GOLDEN = [0.12763686867994015, 0.25043970435572294, 0.43990872603182174, 0.6028051599791849]
"""Divergences of 50, 30 and 20 rows from 20, 30 and 50 at orders 1/2, 1, 2 and 4 with k = 20."""

GRID = np.sort(np.append(1.1 ** np.arange(1, 37), 1.0))
"""Orders of `make_estimate`."""


def normal(size, dim, seed, shift=0.0):
    """Rows of normal numbers."""
    return np.random.default_rng(seed).normal(size=(size, dim)) + shift


def run_task(estimate, found, alphas, k, plan=None, **options):
    """What an estimator returns for two sets of points."""
    task = Task(found, np.asarray(alphas, float), k, plan, threads=2, progress=False)
    return estimate(task, **options)


def plan_for(kind, found, replicates, seed=3):
    """A plan to resample the points, with a number of replicates where that is free."""
    number = None if kind == "jackknife" else replicates
    return plan_replicates(kind, found.sizes, found.groups, np.random.default_rng(seed), number)


def make_raw(value, shape, spread=0.01, ceiling=4.0, **fields):
    """What a method might return: one value, or an array of them."""
    value = np.broadcast_to(np.asarray(value, float), shape).copy()
    error, nan = np.full(shape, float(spread)), np.full(shape, np.nan)
    return Raw(value, error, (20, 20), np.full(shape, float(ceiling)), nan, **fields)


def judge(alphas, value, spread=0.01, ceiling=4.0, rows=np.nan, k=20, **options):
    """The belief in values from 1,000 rows of each set."""
    raw = make_raw(value, (2, len(alphas)), spread, ceiling, rows_per_atom=rows)
    return judge_estimate(Case(alphas=alphas, raw=raw, sizes=(1000, 1000), k=k, **options))


def make_estimate(alphas=GRID, value=None, belief=None, replicates=None, **fields):
    """An estimate made by hand; resolved up to order 3 unless `belief` says otherwise."""
    alphas = np.asarray(alphas, dtype=np.float64)
    shape = (2, len(alphas))
    value = np.stack([alphas / 8.0, alphas / 7.0]) if value is None else np.asarray(value)
    if belief is None:
        belief = np.tile(np.where(alphas <= 3.0, ESTIMATE, UNRESOLVED), (2, 1))
    resolved = belief == ESTIMATE
    known = {
        "belief": belief, "reason": "from order 3.138 on, too few rows decide the average",
        "method": "ball", "alphas": alphas, "value": value,
        "std_error": np.where(resolved, 0.02, np.nan), "resolved": resolved,
        "ceiling": np.full(shape, 3.9), "alpha_max": (2.853, 2.853), "kl": np.array([0.125, 0.143]),
        "sizes": (1000, 500), "dim": 2, "k": 20, "depth": (20, 20), "error": "jackknife",
        "beside": None, "checks": None, "certificate": None, "held_out": None, "stated": False,
        "confidence": 0.95, "notes": (), "seed": 123, "seconds": 0.1234,
        "diagnostics": Diagnostics(
            np.full(shape, 100.0), np.zeros(2), np.zeros(2), math.nan, {"run_outs": 3}, None,
            replicates,
        ),
    }  # fmt: skip
    return Estimate(**{**known, **fields})


def make_certificate(bound, alphas=GRID):
    """A certificate with these bounds."""
    counts, bins = Counts(200, 250, 50, 250), np.ones((2, 3), dtype=np.int64)
    events, both = ("s > 1", "s < 1"), (counts, counts)
    return Certificate(alphas, bound, events, both, (bins, bins), 0.95, False)


@dataclass(frozen=True)
class Frozen:
    """Atoms and depths of a sample: `atoms[a]` is a set of points, None if all points are."""

    atoms: tuple[set | None, set | None]
    depths: tuple[int, int]


def rows_of(rows):
    """Rows as tuples of floats; -0.0 is 0.0."""
    rows = np.asarray(rows, float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    return [tuple(row) for row in (rows + 0.0).tolist()]


def freeze(rows0, rows1, k):
    """Atoms and depths of both directions."""
    sets = rows_of(rows0), rows_of(rows1)
    counts = Counter(sets[0]), Counter(sets[1])
    atoms = []
    for a in (0, 1):
        own, other = counts[a], counts[1 - a]
        atoms.append({u for u in own | other if max(own[u] - 1, other[u]) >= KAPPA})
    on = sum(counts[0][u] + counts[1][u] for u in atoms[0] | atoms[1])
    if on >= 0.99 * (len(sets[0]) + len(sets[1])):
        atoms = [None, None]
    sizes = len(sets[0]), len(sets[1])
    depths = tuple(-(-k * max(sizes[a], sizes[1 - a]) // sizes[a]) for a in (0, 1))
    return Frozen(tuple(atoms), depths)


def distances(y, others):
    """|y - a| in one dimension, else squares summed in the package's order."""
    with np.errstate(over="ignore"):
        gaps = np.array(others) - np.array(y)
    if len(y) == 1:
        return np.abs(gaps[:, 0])
    sums = np.zeros((len(others), LANES))
    for i in range(len(y)):
        sums[:, i % LANES] += gaps[:, i] * gaps[:, i]
    s = sums.T
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def naive_cells(own, other, atoms, depth):
    """Rows with each (n, j, atom)."""
    counts, counts_other = Counter(own), Counter(other)
    inside = set(counts) | set(counts_other) if atoms is None else atoms
    rest, rest_other = [y for y in own if y not in inside], [y for y in other if y not in inside]
    cells = Counter()
    for y, rows in counts.items():
        if y in inside:
            cells[rows - 1, counts_other[y], True] += rows
        elif len(rest_other) < depth:
            cells[len(rest) - 1, len(rest_other), True] += rows
        else:
            to_other = distances(y, rest_other)
            radius = np.sort(to_other)[depth - 1]
            n = int((distances(y, rest) <= radius).sum()) - 1
            cells[n, int((to_other <= radius).sum()) - 1, False] += rows
    return cells


@cache
def ratio(x, b):
    """Gamma(x + b) / Gamma(x)."""
    return mpmath.gammaprod([x + mpmath.mpf(b)], [x])


@cache
def falling(x, b):
    """Gamma(x + 1) / Gamma(x - b + 1), 0 where x - b + 1 <= 0."""
    return ratio(x - mpmath.mpf(b) + 1, b) if x - b + 1 > 0 else mpmath.mpf(0)


@cache
def psi(x):
    return mpmath.digamma(x)


@mpmath.workdps(DIGITS)
def naive_value(cells, own, other, alpha):
    """The estimate of one order from all cells."""
    b = float(alpha) - 1.0
    if b == 0.0:
        total = sum(rows * (psi(n + 1) - psi(j + 1)) for (n, j, _), rows in cells.items())
        return float(total / own - psi(own) + psi(other + 1))
    unseen = any(atom and j == 0 for _, j, atom in cells)
    terms = {
        cell: rows * falling(cell[0], b) / ratio(cell[1] + 1, b) for cell, rows in cells.items()
    }
    positive = [(atom and j == 0) for (_, j, atom), term in terms.items() if term > 0]
    if b > 0 and unseen and all(positive):
        return np.inf
    if not positive:
        return -np.inf
    mean = sum(terms.values()) / own / falling(own - 1, b) * ratio(other + 1, b)
    return float(mpmath.log(mean) / b)


def naive_ball(rows0, rows1, alphas, k, frozen=None):
    """Divergences of both directions, shape (2, len(alphas))."""
    frozen = freeze(rows0, rows1, k) if frozen is None else frozen
    sets = rows_of(rows0), rows_of(rows1)
    out = np.empty((2, len(alphas)))
    for a in (0, 1):
        own, other = sets[a], sets[1 - a]
        cells = naive_cells(own, other, frozen.atoms[a], frozen.depths[a])
        out[a] = [naive_value(cells, len(own), len(other), alpha) for alpha in alphas]
    return out
