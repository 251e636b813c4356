"""Claims, pairs and distances: what an audit tests, and when it refuses to."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dpcore
from dpcore import Gaussian, Laplace, Pair, audit
from dpcore.attacks import MajorityVote
from dpcore.bounds import clopper_pearson
from dpcore.pairs import zeros_ones
from dpcore.published import SYSTEMS, ADePT, ADePTReference, DPText, HalfNoise, LaplaceMechanism


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_published_system_brings_claim_and_pair(system):
    mechanism = system(0.7)
    report = audit(mechanism, trials=1000, rng=1)
    assert report.claim == report.own_claim == 0.7
    assert report.pair == mechanism.default_pair()
    assert "epsilon <= 0.7\n" in str(report) + "\n"
    assert "own:" not in str(report)


def test_an_explicit_claim_wins_and_both_are_shown():
    # The vote sees 1.66 of the loss of 2: it cannot refute a claim of 2, not even by chance.
    report = audit(HalfNoise(1.0), trials=10**5, claim=2.0, rng=1, attack=MajorityVote())
    assert (report.claim, report.own_claim) == (2.0, 1.0)
    assert report.verdict == "not refuted by this attack"
    assert "epsilon <= 2 (the mechanism's own: 1)" in str(report)
    assert audit(HalfNoise(1.0), trials=10**5, rng=1).verdict == "refuted"
    zero = audit(dpcore.RandomBits(), trials=1000, claim=0, rng=1, attack=MajorityVote())
    assert (zero.claim, zero.verdict) == (0.0, "not refuted by this attack")


@pytest.mark.parametrize("mechanism", [Laplace(0.01), lambda x, size, rng: rng.normal(size=size)])
def test_no_claim_is_never_a_pass(mechanism):
    report = audit(mechanism, ([0.0], [1.0]), trials=1000, rng=1)
    assert (report.claim, report.refuted, report.verdict) == (None, None, "no claim given")
    assert "none given" in str(report)


def test_a_pair_beyond_the_sensitivity_needs_an_explicit_claim():
    text = (
        "pair must be at L1 distance at most 1.0, got 128.0 "
        "(or give claim=, which is then tested as it stands)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        audit(LaplaceMechanism(1.0), zeros_ones(128), trials=1000)
    assert audit(LaplaceMechanism(1.0), zeros_ones(128), trials=1000, claim=1.0).claim == 1.0
    assert audit(LaplaceMechanism(1.0, 128.0), zeros_ones(128), trials=1000).claim == 1.0
    with pytest.raises(ValueError, match=r"^pair must be at Linf distance at most 1.0, got 2.0"):
        audit(ADePTReference(1.0), ([0.0], [2.0]), trials=1000)
    assert audit(ADePTReference(1.0), zeros_ones(128), trials=1000).claim == 1.0
    # Clipping makes any two inputs neighbours.
    assert audit(ADePT(1.0), ([0.0, 0.0], [1e6, 1e6]), trials=1000).claim == 1.0


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 49, 1000])
@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 3.3, 1e-9])
def test_default_pairs_are_within_their_own_sensitivity(dim, sensitivity):
    mechanism = DPText(1.0, sensitivity)
    assert audit(mechanism, mechanism.default_pair(dim), trials=100).claim == 1.0


def test_a_rounding_beyond_the_sensitivity_is_let_pass_and_no_more():
    audit(LaplaceMechanism(1.0), ([0.0], [1.0 + 1e-12]), trials=100)
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance"):
        audit(LaplaceMechanism(1.0), ([0.0], [1.0 + 1e-6]), trials=100)


@pytest.mark.parametrize(
    "pair",
    [
        ([0], [1]),
        (np.array([0], dtype=np.int8), np.array([1.0], dtype=np.float32)),
        (np.array([False]), np.array([True])),
        (range(1), range(1, 2)),
        ((0.0,), (1.0,)),
    ],
)
def test_pairs_of_any_real_type(pair):
    expected = audit(Laplace(1.0), ([0.0], [1.0]), trials=1000, rng=3)
    assert audit(Laplace(1.0), pair, trials=1000, rng=3).counts == expected.counts


def test_a_callable_takes_any_two_objects():
    def length(x, size, rng):
        return len(x) + rng.laplace(size=size)

    attack = lambda a, b, pair: lambda o: o > 3.5  # noqa: E731
    report = audit(length, ("short", {"a", "b"}), trials=1000, attack=attack, claim=1.0)
    assert report.verdict == "refuted"
    assert "x = 'short'" in str(report)
    # The default attack needs outputs alone, the vote thresholds between two vectors.
    assert audit(length, ("short", "longer"), trials=1000, rng=1, claim=1.0).epsilon_hat > 0.0
    with pytest.raises(TypeError, match=r"^x must be a non-empty vector"):
        audit(length, ("short", "longer"), trials=1000, attack=MajorityVote())


# Metric claims: (epsilon D, delta) at distance D.


def test_without_delta_figures_are_per_unit_of_distance():
    mechanism, far = Laplace(1.0), Pair([0.0], [3.0], distance=3.0)
    arguments = {"trials": 10**5, "claim": 1.0, "rng": 4, "attack": MajorityVote()}
    metric = audit(mechanism, far, **arguments)
    plain = audit(mechanism, Pair([0.0], [3.0]), **arguments)
    assert (metric.counts, metric.epsilon_lower) == (plain.counts, plain.epsilon_lower / 3.0)
    assert (metric.epsilon_hat, metric.exact) == (plain.epsilon_hat / 3.0, plain.exact / 3.0)
    assert (plain.verdict, metric.verdict) == ("refuted", "not refuted by this attack")
    assert "per unit of distance" in str(metric)
    assert "per unit of distance" not in str(plain)


def test_with_delta_a_bound_is_never_divided():
    """A Gaussian with mu = 5 and delta 1e-5: dividing would refute a true claim."""
    delta = 1e-5
    far = Pair([0.0], [5.0], distance=5.0)
    attack = lambda a, b, pair: lambda o: o[:, 0] > 4.0  # noqa: E731
    arguments = {"trials": 10**6, "delta": delta, "attack": attack, "rng": 5}
    report = audit(Gaussian(1.0), far, claim=1.0, **arguments)
    whole = clopper_pearson(report.bound_counts, delta, report.confidence)
    assert report.epsilon_lower == whole > 5.0
    # Metric: the claim is (5 x 1, delta) at this distance.
    assert report.refuted is True
    assert audit(Gaussian(1.0), far, claim=whole / 5 * 1.001, **arguments).refuted is False
    assert audit(Gaussian(1.0), far, claim=whole / 5 * 0.999, **arguments).refuted is True
    assert "per unit of distance" not in str(report)
    assert "epsilon <= 1, delta = 1e-05 (metric: epsilon <= 5 at distance 5)" in str(report)


def test_the_note_compares_like_with_like():
    """With delta the closed form is of the whole pair, the claim per unit of distance."""
    pair = Pair([0.0], [1.0], distance=2.0)
    arguments = {"delta": 1e-6, "rng": 6, "attack": MajorityVote()}
    report = audit(Laplace(1.0), pair, trials=1000, claim=0.5, **arguments)
    assert 0.5 < report.exact < 1.0
    assert report.refuted is False
    assert "with any number of trials" in str(report)
    closer = audit(Laplace(1.0), pair, trials=100, claim=0.4, **arguments)
    assert "with any number of trials" not in str(closer)
