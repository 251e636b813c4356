"""What a claim that stands would need."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dpcore
from dpcore import Counts, Pair
from dpcore.bounds import clopper_pearson
from dpcore.results.audits import trials_needed

# What a claim that stands would need.

SEEN = replace(
    dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1, confidence=0.99),
    direction="x",
)


@pytest.mark.parametrize(
    ("counts", "claim", "delta", "distance"),
    [
        (Counts(600, 1000, 300, 1000), 0.6, 0.0, 1.0),
        (Counts(600, 1000, 300, 1000), 0.6, 0.05, 1.0),
        (Counts(600, 1000, 300, 1000), 0.3, 0.0, 2.0),
        (Counts(600, 1000, 0, 1000), 6.0, 0.0, 1.0),
        (Counts(999, 1000, 4, 2000), 6.0, 0.0, 1.0),
    ],
)
def test_trials_needed(counts, claim, delta, distance):
    pair = Pair([0.0], [1.0], distance)
    found = replace(SEEN, counts=counts, claim=claim, delta=delta, pair=pair)
    needed = trials_needed(found)

    def refuted(trials):
        # k down and k' up: never more evidence than the frequencies hold.
        k, k_prime = counts.k * trials // counts.n, -(-counts.k_prime * trials // counts.n_prime)
        same = Counts(k, trials, k_prime, trials)
        return clopper_pearson(same, delta, 0.99) > claim * distance

    assert refuted(needed)
    assert not refuted(int(0.9 * needed))
    swapped = replace(found, counts=counts.swapped(), direction="x_prime")
    assert trials_needed(swapped) == needed


@pytest.mark.parametrize(
    ("counts", "claim", "delta"),
    [
        (Counts(600, 1000, 300, 1000), 0.7, 0.0),
        (Counts(300, 1000, 600, 1000), 0.0, 0.0),
        (Counts(600, 1000, 300, 1000), 0.6, 0.2),
        (Counts(0, 1000, 300, 1000), 0.0, 0.0),
        (Counts(600, 1000, 0, 1000), 40.0, 0.0),
    ],
)
def test_no_number_of_trials_is_enough(counts, claim, delta):
    assert trials_needed(replace(SEEN, counts=counts, claim=claim, delta=delta)) is None
