"""Neighbouring rows that depend on each other, and files in orders that say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.errors import AssumptionWarning
from dpcore.recorded.independent_rows import doubts_of_order
from dpcore.recorded.run import audit_outputs

SIZE = 4000


def walk(rng, phi=1.0):
    """Return an autoregression of the first order; a random walk for 1."""
    noise, rows = rng.normal(size=SIZE), np.empty(SIZE)
    rows[0] = noise[0]
    for place in range(1, SIZE):
        rows[place] = phi * rows[place - 1] + noise[place]
    return rows


def runs(rng, many):
    """Return rows of which those of one run share its noise."""
    return np.repeat(rng.normal(size=many), SIZE // many) + rng.normal(size=SIZE)


def documents(rng):
    """Return vectors of sentences around those of their documents."""
    own = np.repeat(rng.normal(size=(40, 8)), SIZE // 40, axis=0)
    return own + rng.normal(size=(SIZE, 8))


def sort_by_column(rng):
    rows = rng.normal(size=(SIZE, 3))
    rows[:, 1] += rows[:, 0]
    return rows[np.argsort(rows[:, 0])]


DEPENDENT = {
    "random walk": walk,
    **{f"AR({phi})": lambda rng, phi=phi: walk(rng, phi) for phi in (0.5, 0.9, 0.99, 0.999)},
    "20 runs": lambda rng: runs(rng, 20),
    "100 runs": lambda rng: runs(rng, 100),
    "documents": documents,
    "runs as texts": lambda rng: [f"{x:.3f} s" for x in runs(rng, 20)],
    "runs as tuples": lambda rng: [(f"{x:.1f}", x) for x in runs(rng, 20).tolist()],
}
CLEAN = {
    "independent": lambda rng: rng.laplace(size=SIZE),
    "sorted": lambda rng: np.sort(rng.laplace(size=SIZE)),
    "falling": lambda rng: -np.sort(rng.laplace(size=SIZE)),
    "sorted by a column": sort_by_column,
    "rounded": lambda rng: np.round(rng.normal(size=SIZE), 1),
    "clipped": lambda rng: np.clip(rng.normal(size=SIZE), -0.5, 0.5),
    "Zipf": lambda rng: rng.zipf(2.0, SIZE),
    "Poisson": lambda rng: rng.poisson(3.0, SIZE),
    "rare": lambda rng: (rng.random(SIZE) < 0.01).astype(float),
    "words": lambda rng: rng.choice(["never", "daily", "weekly"], SIZE),
    "sorted words": lambda rng: np.sort(rng.choice(["never", "daily", "weekly"], SIZE)),
    "float16": lambda rng: rng.normal(size=SIZE).astype(np.float16),
    "64 columns": lambda rng: rng.normal(size=(400, 64)),
}


def audit(first, second, **more):
    return audit_outputs(first, second, rows="independent", claim=0.5, **more)


@pytest.mark.parametrize("kind", DEPENDENT)
def test_rows_that_depend_on_their_neighbours_give_no_verdict(kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        with pytest.warns(AssumptionWarning, match="rows depend on their neighbours: "):
            report = audit(DEPENDENT[kind](rng), DEPENDENT[kind](rng), rng=seed)
        assert report.verdict.startswith("invalid")
        assert report.refuted is None
        assert "give one row a run, a document, a person, or groups= " in report.doubts[-1]
        assert "or arranged=True if the rows were put in this order" in report.doubts[-1]


@pytest.mark.parametrize("kind", CLEAN)
def test_independent_rows_in_random_or_sorted_order_are_not_doubted(kind):
    """In 100 pairs of each kind; the checks alarm with probability below 1e-6."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        assert doubts_of_order((CLEAN[kind](rng), CLEAN[kind](rng))) == ()


def test_rows_in_an_order_made_afterwards_are_audited_when_that_is_said():
    """Answers by age: neighbours are alike, and the runs were independent."""
    rng = np.random.default_rng(1)
    ages = np.sort(rng.normal(size=SIZE))
    sides = ages + rng.laplace(size=SIZE), ages + 2.0 + rng.laplace(size=SIZE)
    with pytest.warns(AssumptionWarning, match="rows depend on their neighbours"):
        assert audit(*sides, rng=1).refuted is None
    report = audit(*sides, arranged=True, rng=1)
    assert report.refuted
    assert "put in this order when the runs were over" in str(report)
    assert type(report).from_json(report.to_json()).arranged


def test_few_rows_are_not_compared():
    assert doubts_of_order((np.cumsum(np.ones(59)), np.cumsum(np.ones(59)))) == ()
