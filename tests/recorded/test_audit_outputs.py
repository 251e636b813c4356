"""Audits of recorded outputs: sound for independent rows and for one run, each told apart.

Soundness as in test_soundness.py: of a claim that is exactly true, at most as many audits may be
refuted as the confidence allows, by an exact binomial test at the significance ALPHA. The
controls break one rule each and must fail that test.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from shared_outputs import ALPHA, AUDITS, CONFIDENCE, MOST, RESPONSE, laplace, refuted

from dpcore import Counts, Pair
from dpcore.attacks import MajorityVote, Threshold
from dpcore.bounds import clopper_pearson
from dpcore.errors import AssumptionWarning
from dpcore.recorded import independent_rows
from dpcore.recorded.run import audit_outputs


def test_the_allowance_is_that_of_an_exact_binomial_test():
    assert stats.binomtest(MOST, AUDITS, 0.1, "greater").pvalue > ALPHA
    assert stats.binomtest(MOST + 2, AUDITS, 0.1, "greater").pvalue < ALPHA
    assert 30 < MOST < 55


def response(rng, size=500, size_prime=400):
    """Randomised response: a bit, and the truth with probability e / (1 + e): loses exactly 1."""
    return (rng.random(size) < RESPONSE) * 1, (rng.random(size_prime) >= RESPONSE) * 1


# Independent rows.


@pytest.mark.parametrize("bound", ["clopper_pearson", "exact"])
@pytest.mark.parametrize("draw", [laplace, response])
def test_true_claims_about_independent_rows(draw, bound):
    overclaims, median = refuted(draw, bound=bound)
    assert overclaims <= MOST
    assert median > 0.4


def test_sorted_files_do_no_harm():
    overclaims, median = refuted(lambda rng: tuple(map(np.sort, laplace(rng))))
    assert overclaims <= MOST
    assert median > 0.4


def one_event(outputs, outputs_prime, pair):
    return lambda rows: rows < 0.3


def half_sorted(rng):
    outputs, outputs_prime = laplace(rng)
    return outputs, np.sort(outputs_prime)


def test_the_control_without_a_shuffle_overclaims(monkeypatch):
    """The first half of a sorted file has the small outputs, the half that is counted none."""
    assert refuted(half_sorted, attack=one_event)[0] <= MOST
    monkeypatch.setattr(
        independent_rows, "_shuffle_numbers", lambda size, seed, side: np.arange(size)
    )
    assert refuted(half_sorted, attack=one_event)[0] > AUDITS / 2


def cells(rng):
    """The same law on both sides: 200 equal cells, true epsilon 0."""
    return rng.integers(200, size=500), rng.integers(200, size=500)


def best_cells(outputs, outputs_prime, pair):
    """The cells that are seen more often on x."""
    counts, counts_prime = (np.bincount(side, minlength=200) for side in (outputs, outputs_prime))
    return lambda rows: (counts > counts_prime)[rows]


def test_choosing_on_the_rows_that_are_counted_overclaims():
    assert refuted(cells, attack=best_cells, claim=0.0)[0] <= MOST
    control = 0
    for seed in range(AUDITS):
        sides = cells(np.random.default_rng(seed))
        event = best_cells(*sides, None)
        k, k_prime = (int(event(side).sum()) for side in sides)
        control += clopper_pearson(Counts(k, 500, k_prime, 500), 0.0, CONFIDENCE) > 0.0
    assert control > AUDITS / 2


def test_the_certificate_is_its_counts():
    """Everything again by hand, from the seed: what is counted chose nothing."""
    sides = laplace(np.random.default_rng(5), 1000, 640)
    audit = audit_outputs(*sides, rows="independent", rng=3, count_share=0.25, pair=([0.0], [1.0]))
    assert (audit.counts.n, audit.counts.n_prime) == (250, 160)
    assert audit.pilot == (750, 480)
    rows = []
    for number, side in enumerate(sides):
        stream = np.random.PCG64(np.random.SeedSequence(3, spawn_key=(17, number)))
        shuffled = side[np.random.Generator(stream).permutation(side.size)]
        rows.append(shuffled[audit.pilot[number] :])
    hits = [int(audit.event(side).sum()) for side in rows]
    assert hits == [audit.counts.k, audit.counts.k_prime]
    ordered = audit.counts if audit.direction == "x" else audit.counts.swapped()
    assert audit.epsilon_lower == clopper_pearson(ordered)
    assert audit.verdict == "no claim given"
    assert audit.refuted is None


@pytest.mark.parametrize("seed", range(3))
def test_leaky_outputs_are_refuted(seed):
    rng = np.random.default_rng(seed)
    audit = audit_outputs(
        rng.laplace(size=20_000), 2.0 + rng.laplace(size=10_000), rows="independent",
        claim=1.5, rng=seed,
    )  # fmt: skip
    assert audit.refuted
    assert 1.8 < audit.epsilon_lower < 2.0
    swapped = audit_outputs(
        2.0 + rng.laplace(size=20_000), rng.laplace(size=10_000), rows="independent",
        claim=1.5, rng=seed,
    )  # fmt: skip
    assert swapped.refuted


def test_the_seed_repeats_an_audit():
    sides = laplace(np.random.default_rng(1), 4000, 4000)
    first, again = (audit_outputs(*sides, rows="independent", rng=7) for _ in range(2))
    assert first == again
    other = audit_outputs(*sides, rows="independent", rng=8)
    assert other.counts != first.counts
    fresh = audit_outputs(*sides, rows="independent")
    assert audit_outputs(*sides, rows="independent", rng=fresh.seed) == fresh
    drawn = audit_outputs(*sides, rows="independent", rng=np.random.default_rng(2))
    assert audit_outputs(*sides, rows="independent", rng=drawn.seed) == drawn


def test_delta_and_distance():
    sides = laplace(np.random.default_rng(1), 20_000, 20_000)
    plain = audit_outputs(*sides, rows="independent", rng=1)
    loose = audit_outputs(*sides, rows="independent", rng=1, delta=0.1)
    assert 0.0 < loose.epsilon_lower < plain.epsilon_lower
    metric = audit_outputs(
        *sides, rows="independent", rng=1, pair=Pair([0.0], [1.0], distance=2.0), claim=0.4
    )
    assert metric.epsilon_lower == plain.epsilon_lower / 2.0
    assert metric.epsilon_hat == plain.epsilon_hat / 2.0
    assert metric.refuted
    both = audit_outputs(
        *sides, rows="independent", rng=1, pair=Pair([0.0], [1.0], distance=2.0), delta=0.1,
        claim=loose.epsilon_lower * 0.51,
    )  # fmt: skip
    assert both.epsilon_lower == loose.epsilon_lower
    assert not both.refuted


def test_attacks_of_several_kinds():
    rng = np.random.default_rng(2)
    noise = rng.laplace(size=(2, 4000, 3))
    sides = noise[0], noise[1] + [0.0, 0.0, 2.0]
    pair = ([0.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    for attack in (None, Threshold("coordinate"), MajorityVote()):
        audit = audit_outputs(*sides, rows="independent", attack=attack, pair=pair, rng=1)
        assert audit.epsilon_lower > 1.2
    assert audit.attack == "MajorityVote"
    words = np.where(rng.random((2, 4000)) < [[0.8], [0.2]], "yes", "no")
    audit = audit_outputs(
        list(words[0]), list(words[1]), rows="independent", rng=1,
        attack=lambda outputs, outputs_prime, pair: lambda rows: rows == "yes",
    )  # fmt: skip
    assert 1.1 < audit.epsilon_lower < math.log(4.0)


def test_nan_outputs_are_counted_but_never_above_a_threshold():
    rng = np.random.default_rng(3)
    outputs, outputs_prime = laplace(rng, 4000, 4000)
    outputs[rng.permutation(4000)[:400]] = np.nan
    audit = audit_outputs(outputs, outputs_prime, rows="independent", attack=Threshold(), rng=1)
    assert audit.counts.n == audit.counts.n_prime == 2000
    assert not audit.event(np.full(3, np.nan)).any()


# What is wrong with the rows.


def quiet(*sides, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit = audit_outputs(*sides, rng=1, **settings)
    assert [str(warning.message) for warning in caught] == list(audit.doubts)
    assert all(warning.category is AssumptionWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return audit.doubts


RNG = np.random.default_rng(11)
SMOOTH = RNG.laplace(size=5000)


def test_repeated_rows_raise_doubts():
    some = SMOOTH[:2500].copy()
    some[100:137] = some[:37]
    told = "rows are repeated: 37 rows of outputs occur more than once"
    assert quiet(some, SMOOTH[2500:], rows="independent") == (told,)
    told = told.replace("outputs", "outputs_prime")
    assert quiet(SMOOTH[2500:], some, rows="independent") == (told,)
    wide = np.stack([some, np.zeros(2500)], axis=1)
    clean = np.stack([SMOOTH[2500:], np.zeros(2500)], axis=1)
    assert quiet(clean, wide, rows="independent") == (told,)


@pytest.mark.parametrize("side", [SMOOTH, RNG.geometric(0.001, size=2000)])
@pytest.mark.parametrize("copies", [2, 10])
def test_a_file_that_holds_its_rows_several_times(side, copies):
    told = f"rows are repeated: each row of outputs occurs {copies} times or more"
    if len(np.unique(side)) < len(side):
        # Of integers some come several times anyway; all of them are multiples still.
        assert quiet(np.tile(side, copies), RNG.laplace(size=999), rows="independent") == (told,)
    else:
        assert told in quiet(np.tile(side, copies), RNG.laplace(size=999), rows="independent")
