"""Tables of mechanisms with finitely many outputs, and their losses one pair at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


def softmax_table(inputs, outputs, seed, zeros=0.0):
    """A random table of probabilities, a share of its entries zero."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(inputs, outputs)) * (rng.random((inputs, outputs)) >= zeros)
    weights[:, 0] += 1e-3
    return weights / weights.sum(axis=1, keepdims=True)


def logs_of(table):
    with np.errstate(divide="ignore"):
        return np.log(table)


def points_and_distances(inputs, seed):
    points = np.random.default_rng(seed).normal(size=(inputs, 3))
    return np.linalg.norm(points[:, None] - points, axis=2)


def losses_of(logs):
    """The loss of every ordered pair, from its definition."""
    with np.errstate(invalid="ignore"):
        return np.array([np.nanmax(row - logs, axis=1) for row in logs])


def worst_of(logs, distances=None, mask=None):
    """The greatest ratio, x, x' and the first output, by a loop in the order of ties."""
    best = (-np.inf,)
    for x in range(len(logs)):
        for other in range(len(logs)):
            if x == other or (mask is not None and not mask[x, other]):
                continue
            with np.errstate(invalid="ignore"):
                gaps = logs[x] - logs[other]
            ratio = np.nanmax(gaps)
            if distances is not None:
                apart = distances[x, other]
                ratio = ratio / apart if apart else (np.inf if ratio > 1e-9 else 0.0)
            if ratio > best[0]:
                best = ratio, x, other, int(np.nanargmax(gaps))
    return best


def exponential_mechanism(distances, epsilon):
    """Logarithms of P(y|x) proportional to exp(-epsilon d(x, y) / 2)."""
    scores = -epsilon * distances / 2.0
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def laplace_cells(points, epsilon):
    """Logarithms of the nearest of some points to x plus Laplace noise of scale 1 / epsilon."""
    order = np.sort(points)
    cuts = [-np.inf, *(0.5 * (a + b) for a, b in pairwise(order)), np.inf]

    def below(z):
        return 0.5 * np.exp(-epsilon * abs(z)) if z < 0 else 1.0 - 0.5 * np.exp(-epsilon * z)

    def cell(x, low, high):
        # Of the tail that is nearer, so that no digits cancel.
        if low > x:
            return below(x - low) - below(x - high)
        return below(high - x) - below(low - x)

    rows = [[cell(x, low, high) for low, high in pairwise(cuts)] for x in order]
    return np.log(np.array(rows))


@dataclass(eq=False)
class Rows:
    """A table that is computed in rows, as mechanisms compute theirs."""

    logs: np.ndarray
    distances: np.ndarray | None = None
    claim: float | None = None

    def __post_init__(self):
        self.asked = []
        self.words = [f"word {number}" for number in range(len(self.logs))]

    def __repr__(self):
        return "Rows(...)"

    @property
    def shape(self):
        return self.logs.shape

    def log_rows(self, start, stop):
        self.asked.append((start, stop))
        return self.logs[start:stop]


class MetricRows(Rows):
    """The same with distances."""

    def distance_rows(self, start, stop):
        return self.distances[start:stop]


class ClosedRows(MetricRows):
    """The same with the closed form of a metric score: the loss is attained at output x."""

    def loss_rows(self, start, stop):
        epsilon = self.claim
        inner = np.log(np.exp(-epsilon * self.distances / 2.0).sum(axis=1))
        losses = epsilon * self.distances[start:stop] / 2.0 + inner - inner[start:stop, None]
        outputs = np.broadcast_to(np.arange(start, stop)[:, None], losses.shape)
        return losses, outputs
