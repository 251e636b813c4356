"""The worst loss of all pairs of rows of a table: ours against numpy, V x V x V differences.

The table is the exponential mechanism on random points, of which the closed form is known.
"""

import numpy as np
import pytest

from dpcore import _core, audit_table

EPSILON = 4.0


def points_table(size):
    """Distances of random points, and logarithms of P(y|x) ~ exp(-epsilon d(x, y)/2)."""
    points = np.random.default_rng(1).normal(size=(size, 5))
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    scores = -EPSILON * distances / 2.0
    return distances, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def closed_form(distances):
    """The worst loss over distance, by the triangle inequality attained at output x."""
    inner = np.log(np.exp(-EPSILON * distances / 2.0).sum(axis=1))
    losses = EPSILON * distances / 2.0 + inner - inner[:, None]
    return (losses / np.where(distances == 0.0, np.inf, distances)).max()


def dpcore_all_cores(logs, distances):
    return audit_table(logs, distances, log=True, threads=_core.cores()).epsilon


def dpcore_one_thread(logs, distances):
    return audit_table(logs, distances, log=True, threads=1).epsilon


def numpy_row_by_row(logs, distances):
    worst = 0.0
    for x, row in enumerate(logs):
        losses = (row - logs).max(axis=1)
        losses[x] = 0.0
        apart = distances[x].copy()
        apart[x] = 1.0
        worst = max(worst, (losses / apart).max())
    return worst


CONTENDERS = [dpcore_all_cores, dpcore_one_thread, numpy_row_by_row]


@pytest.mark.parametrize("contender", CONTENDERS)
def test_worst_loss_of_all_pairs(race, tiny, contender):
    size = 100 if tiny else 1_000
    distances, logs = points_table(size)
    group = "worst loss of a table, V = 1,000"
    found = race(group, lambda: contender(logs, distances), size**3, 5)
    assert found == pytest.approx(closed_form(distances), rel=1e-10)


@pytest.mark.parametrize("threads", [1, 2])
def test_hockey_stick_divergences_of_all_pairs(race, tiny, threads):
    size = 100 if tiny else 1_000
    distances, logs = points_table(size)
    audit = audit_table(logs, distances, log=True, threads=threads)
    found = race("delta of a table, V = 1,000", lambda: audit.delta(1.0), size**3, 5)
    row, others = np.exp(logs[:1]), np.exp(logs)
    least = np.maximum(row - np.exp(distances[0])[:, None] * others, 0.0).sum(axis=1).max()
    assert least <= found < 1.0
    assert audit.delta(audit.epsilon) < 1e-12
