"""The package's promise: a true claim is refuted at most as often as the confidence allows.

2,000 small audits of each sound mechanism claim exactly the loss that their event can see, at a
confidence of 90 %. The number that overclaim must pass an exact binomial test of "at most 10 %"
at the significance ALPHA. The controls break the rules of the certificate one at a time (no
split of pilot and count, copies of one seed, a point estimate taken for a bound) and must fail
the very same test.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from decimal import Decimal

import numpy as np
import pytest
import shared_resumed as resumed
from scipy import stats
from shared_audits import ALPHA, CONFIDENCE, TRUTH, respond
from shared_extras import mark_slow
from shared_shards import ONE, add_noise

import dpcore
from dpcore import Counts, Gaussian, Pair, published
from dpcore.attacks import Histogram, MajorityVote
from dpcore.attacks.attack import Goal, choose_events
from dpcore.bounds import berger_boos, clopper_pearson
from dpcore.experiments.dp_sniper_table import exact_supremum
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS

AUDITS = 2000
TRIALS = 400
CELLS = 500

VOTE = MajorityVote()
"""The attack whose exact loss is known; the default one is audited further below."""

MOST = resumed.allow(AUDITS)
"""Overclaims in 2,000 audits that chance allows: P(more | 10 %) < ALPHA."""


def run_audits(mechanism, pair=([0.0], [1.0]), audits=AUDITS, **options):
    """Audit a mechanism with so many seeds."""
    options = {"trials": TRIALS, "confidence": CONFIDENCE, "attack": VOTE, **options}
    return [dpcore.audit(mechanism, pair, rng=seed, **options) for seed in range(audits)]


def overclaims(found, true):
    """How many of the certified bounds exceed the true loss."""
    return sum(bound > true for bound in found)


def test_the_allowance_is_that_of_an_exact_binomial_test():
    assert stats.binomtest(MOST, AUDITS, 0.1, "greater").pvalue > ALPHA
    assert stats.binomtest(MOST + 2, AUDITS, 0.1, "greater").pvalue < ALPHA
    assert 200 < MOST < 260


@pytest.mark.sweep
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("system", [cls for cls in published.SYSTEMS if cls.sound])
def test_sound_systems_are_not_overclaimed(system, dim):
    """Of a claim that is exactly what the vote sees: no slack hides a wrong bound."""
    mechanism = system(1.0)
    audits = run_audits(mechanism, mechanism.default_pair(dim))
    true = audits[0].exact
    assert 0.5 < true <= 1.0 + 1e-12
    assert overclaims((audit.epsilon_lower for audit in audits), true) <= MOST
    # The claim itself, which is no smaller, is then refuted no more often.
    assert sum(audit.refuted for audit in audits) <= MOST
    # The audits are not sound by finding nothing: half of them see a third of the loss.
    assert np.median([audit.epsilon_lower for audit in audits]) > true / 3


HALVED = published.HalvedOutput(1.0)


def test_the_vote_sees_all_of_halved_output():
    """What makes it the sharpest of the cases above: claim and visible loss agree."""
    assert dpcore.exact.vote_loss(HALVED, HALVED.default_pair(1)) == pytest.approx(1.0)


@pytest.mark.sweep
@pytest.mark.parametrize("trials", [40, TRIALS])
def test_a_callable_that_loses_exactly_its_claim(trials):
    audits = run_audits(respond, trials=trials, claim=1.0)
    assert sum(audit.refuted for audit in audits) <= MOST
    assert overclaims((audit.epsilon_lower for audit in audits), 1.0) <= MOST


DELTA = 0.05


def leaky_response(x, size, rng):
    """Randomised response that shows its input outright with probability delta."""
    answers = np.abs(x - (rng.random((size, 1)) > TRUTH))
    return np.where(rng.random((size, 1)) < DELTA, 2.0 * x - 0.5, answers)


def event_of_delta(outputs, outputs_prime, pair):
    # On x: never 1.5 and 1 with (1 - delta)/(1 + e); on x' 1.5 always when it leaks.
    return lambda outputs: outputs[:, 0] >= 1.0


@pytest.mark.sweep
def test_delta_is_respected():
    """On x' the event has (1 - d) e/(1 + e) + d, on x (1 - d)/(1 + e): (1, d) holds exactly."""
    options = {"trials": 1000, "claim": 1.0, "delta": DELTA, "attack": event_of_delta}
    audits = run_audits(leaky_response, **options)
    assert sum(audit.refuted for audit in audits) <= MOST
    # Forgetting delta is a mistake that the same test sees.
    wrong = (clopper_pearson(audit.bound_counts, 0.0, CONFIDENCE) for audit in audits)
    assert overclaims(wrong, 1.0) > MOST


# Controls: rules broken one at a time.


def no_information(x, size, rng):
    """Loses nothing: one of 500 values whatever the input."""
    return rng.integers(CELLS, size=(size, 1))


def best_cell(outputs, outputs_prime, pair):
    """The value whose frequency differs most between the two sides."""
    k, k_prime = (np.bincount(o[:, 0], minlength=CELLS) for o in (outputs, outputs_prime))
    cell = int(np.argmax(np.abs(np.log(k + 0.5) - np.log(k_prime + 0.5))))
    return lambda outputs: outputs[:, 0] == cell


@pytest.mark.sweep
def test_an_attack_that_searches_is_harmless_because_of_the_split():
    audits = run_audits(no_information, trials=2000, claim=0.0, attack=best_cell)
    assert sum(audit.refuted for audit in audits) <= MOST


def best_interval(outputs, outputs_prime, pair):
    """Choose, among CELLS intervals of [0, 1), the one that favours x most on these draws."""
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    more = np.histogram(outputs, edges)[0] - np.histogram(outputs_prime, edges)[0]
    low, high = edges[more.argmax()], edges[more.argmax() + 1]
    return lambda drawn: (low <= drawn[:, 0]) & (drawn[:, 0] < high)


def test_a_search_among_native_draws_is_harmless_because_they_are_not_counted():
    """Draws of the core on equal inputs: a pilot that is counted again overclaims in half of them.

    This rate stays in the short run, which has no other one on native draws.
    """
    audits, uniform = 100, dpcore.Uniform(0.0, 1.0)
    options = {"trials": 2000, "pilot": 2000, "confidence": CONFIDENCE, "null": True}
    claims = [
        dpcore.audit(uniform, ([0.0], [0.0]), attack=best_interval, rng=seed, **options)
        for seed in range(audits)
    ]
    assert all(report.counts.n == 2000 for report in claims)
    assert overclaims((report.epsilon_lower for report in claims), 0.0) <= resumed.allow(audits)


def test_control_the_same_search_on_the_counted_draws():
    """Event and direction chosen on the draws that are counted: true loss 0, overclaimed."""
    found = []
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        outputs, outputs_prime = (no_information(None, 2000, rng) for _ in range(2))
        event = best_cell(outputs, outputs_prime, None)
        k, k_prime = int(event(outputs).sum()), int(event(outputs_prime).sum())
        ordered = Counts(max(k, k_prime), 2000, min(k, k_prime), 2000)
        found.append(clopper_pearson(ordered, 0.0, CONFIDENCE))
    assert overclaims(found, 0.0) > AUDITS // 2 > MOST


@pytest.mark.sweep
def test_control_copies_of_one_seed_are_no_new_draws():
    """Ten audits of one seed added by hand: `+` refuses them, this is why."""
    found = []
    for audit in run_audits(HALVED, HALVED.default_pair(1)):
        c = audit.bound_counts
        copies = Counts(10 * c.k, 10 * c.n, 10 * c.k_prime, 10 * c.n_prime)
        found.append(clopper_pearson(copies, 0.0, CONFIDENCE))
    assert overclaims(found, 1.0) > MOST


@pytest.mark.sweep
def test_control_the_point_estimate_is_no_bound():
    audits = run_audits(HALVED, HALVED.default_pair(1))
    assert overclaims((audit.epsilon_hat for audit in audits), 1.0) > MOST


def test_control_a_mechanism_ten_per_cent_worse_than_its_claim():
    """The test has power: with enough trials a loss of 1.1 is not taken for 1."""
    pair = published.HalvedOutput(1.1).default_pair(1)
    audits = run_audits(published.HalvedOutput(1.1), pair, audits=300, trials=40_000, claim=1.0)
    refuted = sum(audit.refuted for audit in audits)
    assert stats.binomtest(refuted, 300, 1 - CONFIDENCE, "greater").pvalue < ALPHA


# Power: what is broken is refuted.


BROKEN = [
    published.ADePT(1.0), published.ADePTReference(1.0), published.HalfNoise(1.0),
    published.HalfNoise(0.1), published.DPText(1.0), published.DPText(10.0),
    published.DPText(1.0, nan="resample"),
]  # fmt: skip


@pytest.mark.parametrize("system", BROKEN, ids=repr)
def test_broken_systems_are_refuted_by_the_default_attack(system):
    assert dpcore.audit(system, trials=10**6, rng=1, confidence=0.99).verdict == "refuted"


@pytest.mark.parametrize("system", BROKEN, ids=repr)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_broken_systems_are_refuted(system, seed):
    report = dpcore.audit(system, trials=10**6, rng=seed, confidence=0.99, attack=VOTE)
    assert (report.pair, report.verdict) == (system.default_pair(2), "refuted")
    # The certificate is tight: it reaches 95 % of what the vote can see, where that is finite.
    assert report.exact == math.inf or report.epsilon_lower > 0.95 * report.exact - 0.02
    assert report.epsilon_lower < report.exact


def test_every_published_system_that_is_not_sound_is_refuted_above():
    assert {type(system) for system in BROKEN} == {
        cls for cls in published.SYSTEMS if not cls.sound
    }


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_broken_functions_are_refuted(delta):
    """Common mistakes, written as anybody writes them."""

    def rounded_up(x, size, rng):
        return x + np.abs(rng.laplace(size=(size, 1)))

    def std_for_scale(x, size, rng):
        # numpy's scale is b; a "standard deviation" of 1 is b = 0.707.
        return x + rng.laplace(0.0, 1.0 / math.sqrt(2.0), size=(size, 1))

    def forgotten(x, size, rng):
        noise = rng.laplace(size=(size, 1))
        return x + np.where(rng.random((size, 1)) < 0.3, 0.0, noise)

    options = {"trials": 10**6, "claim": 1.0, "delta": delta, "rng": 1}
    for mechanism in (rounded_up, std_for_scale, forgotten):
        report = dpcore.audit(mechanism, ([0.0], [1.0]), **options)
        assert report.verdict == "refuted", mechanism.__name__


def test_a_gaussian_keeps_its_delta():
    """mu = 1 at delta 1e-5 has epsilon 4.377: never refuted there, refuted well below."""
    pair = Pair([0.0], [1.0])

    def tail(outputs, outputs_prime, pair):
        return lambda outputs: outputs[:, 0] > 2.0

    arguments = {"trials": 10**6, "delta": 1e-5, "attack": tail, "rng": 1}
    assert dpcore.audit(Gaussian(1.0), pair, claim=4.377, **arguments).refuted is False
    assert dpcore.audit(Gaussian(1.0), pair, claim=1.5, **arguments).refuted is True


def test_more_trials_certify_more_on_average():
    means = []
    for trials in (100, 1000, 10_000):
        options = {"trials": trials, "attack": VOTE}
        audits = [dpcore.audit(published.HalfNoise(1.0), rng=s, **options) for s in range(50)]
        means.append(np.mean([audit.epsilon_lower for audit in audits]))
    assert all(a + 0.1 < b for a, b in itertools.pairwise(means))


# The promise of the default audit: true claims are refuted at most as often as stated.
#
# DPCORE_AUDITS audits with `attack="auto"` of every mechanism that is truly private, each at the
# exact loss of its pair, at a confidence of 90 % with `bound="exact"`: Clopper-Pearson limits miss
# ten times less often than they may and would hide a fault. The refutations must pass an exact
# binomial test of "at most 10 %" at the significance ALPHA. The controls break one rule each and
# must fail it.


AUTO_AUDITS = int(os.environ.get("DPCORE_AUDITS", "200"))
"""DPCORE_AUDITS=2000 runs the whole promise, half an hour on a core; CI runs a tenth of it."""
AUTO_MOST = resumed.allow(AUTO_AUDITS)
"""Refutations of a true claim in so many audits that chance allows: P(more | 10 %) < ALPHA."""


def tied(x, size, rng):
    """Two-sided geometric noise on the lattice of tenths, written in doubles: loses ln 2."""
    return x + 0.1 * (rng.geometric(0.5, (size, 1)) - rng.geometric(0.5, (size, 1)))


def undefined(x, size, rng):
    """NaN or infinite, twice as often on x': loses ln 2."""
    outputs = rng.normal(size=(size, 2))
    outputs[rng.random(size) < 0.2 * (1 + x[0]), 0] = np.nan
    outputs[:, 1] = np.inf
    return outputs


def share_noise(x, size, rng):
    """One draw of noise for all entries of an output: loses exactly 1."""
    return x + rng.laplace(0.0, 1.0, (size, 1)) + np.zeros(3)


def spoken(x, size, rng):
    """A word: loses ln 2."""
    return np.where(rng.random(size) < (1 + x[0]) / 4, "yes", "no")


OWN = {
    "tied": (tied, Pair([0.0], [0.1]), math.log(2.0)),
    "undefined": (undefined, Pair([0.0], [1.0]), math.log(2.0)),
    "share_noise": (share_noise, Pair([0.0] * 3, [1.0] * 3), 1.0),
    "spoken": (spoken, Pair([0.0], [1.0]), math.log(2.0)),
}


@functools.cache
def cases():
    found = dict(OWN)
    for name, benchmark in BENCHMARKS.items():
        if benchmark.private:
            pair = max(benchmark.pairs, key=lambda pair: exact_supremum(name, (pair,)))
            found[name] = (benchmark.mechanism, pair, exact_supremum(name, (pair,)))
    return found


def refuted(name, claim, trials, seed):
    mechanism, pair, _ = cases()[name]
    options = {"trials": trials, "confidence": CONFIDENCE, "bound": "exact", "rng": seed}
    return dpcore.audit(mechanism, pair, claim=claim, **options).refuted


@pytest.mark.parametrize("name", mark_slow(cases(), {*cases()} - {"Laplace"}))
def test_a_true_claim_is_refuted_as_seldom_as_promised(name):
    refutations = 0
    for seed in range(AUTO_AUDITS):
        refutations += refuted(name, cases()[name][2], TRIALS, seed)
        if refutations + AUTO_AUDITS - 1 - seed <= AUTO_MOST:
            break  # whatever those that are left may say
    assert refutations <= AUTO_MOST


BUFFER: dict[str, float] = {}


def refill(x, rng):
    BUFFER["sum"] = x[0] + rng.laplace()
    return BUFFER


def fail_often(x, rng):
    if rng.random() < 0.3:
        raise ValueError("no")
    return x[0] + rng.laplace()


ONE_ANSWER = {
    "sum": lambda x, rng: sum(x) + rng.laplace(),
    "dict": lambda x, rng: {"sum": x[0] + rng.laplace(), "rows": 3, "name": "a"},
    "clipped": lambda x, rng: max(0, x[0] + rng.laplace()),
    "mean": lambda x, rng: np.mean([x[0] + rng.laplace()]) if rng.random() < 0.9 else 0.0,
    "json": lambda x, rng: json.dumps({"a": round(x[0] + rng.laplace(), 2), "b": [1, 2]}),
    "decimal": lambda x, rng: Decimal(round(x[0] + rng.laplace(), 2)),
    "tuple": lambda x, rng: (float(x[0] + rng.laplace()), "ab"[int(rng.random() < 0.5)]),
    "none": lambda x, rng: None if rng.random() < 0.1 else x[0] + rng.laplace(),
    "set": lambda x, rng: {bool(x[0]) ^ (rng.random() < 0.3), *rng.integers(2, 9, 2).tolist()},
    "same dict": refill,
    "failure": fail_often,
}
"""Functions of one answer that lose at most 1."""
LISTS = ([0], [1]), ([0.0], [1.0]), ((False,), (True,)), (np.zeros(1), np.ones(1))
NOTE_AUDITS = 66
"""2,000 audits and more, of all sound systems together."""


def list_notes(mechanism, pair, claim, audits):
    """List what audits say of inputs, answers, forms and calls, and verdicts that they withhold."""
    options = {"claim": claim, "trials": TRIALS, "confidence": CONFIDENCE}
    reports = [dpcore.audit(mechanism, pair, rng=seed, **options) for seed in range(audits)]
    notes = [note for report in reports for note in (*report.checks, *report.notes)]
    withheld = [report.verdict for report in reports if report.refuted is None]
    return [note for note in notes if "single outputs are not compared" not in note] + withheld


@pytest.mark.sweep
@pytest.mark.parametrize("name", [*cases(), *(cls for cls in published.SYSTEMS if cls.sound)])
def test_sound_systems_have_no_note(name):
    mechanism, pair, claim = cases()[name] if name in cases() else (name(1.0), None, 1.0)
    assert list_notes(mechanism, pair, claim, NOTE_AUDITS) == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", ONE_ANSWER)
def test_sound_functions_of_one_answer_have_no_note(name):
    mechanism = dpcore.repeat(ONE_ANSWER[name], catch=ValueError if name == "failure" else ())
    for pair in LISTS:
        assert list_notes(mechanism, pair, 1.0, -(-NOTE_AUDITS // len(LISTS))) == []


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (lambda x, rng: len(x * 2) + rng.laplace(), "a list and an array give different"),
        (lambda x, rng: 1 if x[0] else True, "outputs on x are of type bool, those on"),
    ],
)
def test_control_what_deserves_a_note_has_one(function, note):
    assert any(note in line for line in list_notes(dpcore.repeat(function), LISTS[0], 1.0, 2))


@pytest.mark.sweep
@pytest.mark.parametrize("name", [*OWN])
def test_control_a_claim_of_two_thirds_of_the_loss_is_refuted_often(name):
    """The audits are not sound by finding nothing."""
    claim = cases()[name][2] * 2 / 3
    assert sum(refuted(name, claim, 2000, seed) for seed in range(100)) > 60


@pytest.mark.sweep
def test_control_an_event_chosen_on_the_counted_draws():
    """The best of 500 cells and their unions, counted where it was found."""
    overclaimed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sides = [no_information(None, 5000, rng) for _ in range(2)]
        scores = Histogram().candidates(*sides, Pair([0.0], [1.0]))
        found = choose_events(scores, *sides, Goal(5000, 0.0, CONFIDENCE))[0]
        counts = found.counts if found.direction == "x" else found.counts.swapped()
        overclaimed += berger_boos(counts, 0.0, CONFIDENCE) > 0.0
    assert overclaimed > 150 > resumed.allow(300)


@pytest.mark.sweep
def test_control_one_seed_counted_ten_times():
    overclaimed = 0
    for seed in range(400):
        options = {"claim": 1.0, "trials": TRIALS, "confidence": CONFIDENCE}
        c = dpcore.audit(spoken, OWN["spoken"][1], rng=seed, **options).bound_counts
        copies = Counts(10 * c.k, 10 * c.n, 10 * c.k_prime, 10 * c.n_prime)
        overclaimed += berger_boos(copies, 0.0, CONFIDENCE) > math.log(2.0)
    assert overclaimed > resumed.allow(400)


def test_control_two_hundred_looks_with_a_bound_for_one():
    overclaimed, audits = 0, 60
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        k, k_prime = (np.cumsum(rng.binomial(20, p, 200)) for p in (0.5, 0.25))
        for n, hits, hits_prime in zip(range(20, 4001, 20), k, k_prime, strict=True):
            # A bound at 90 % is a standard error below the quotient at least.
            error = math.sqrt(sum(1 / max(1, seen) - 1 / n for seen in (hits, hits_prime)))
            if math.log(max(1, hits) / max(1, hits_prime)) - error < math.log(2.0):
                continue
            counts = Counts(int(hits), n, int(hits_prime), n)
            if berger_boos(counts, 0.0, CONFIDENCE) > math.log(2.0):
                overclaimed += 1
                break
    assert overclaimed > resumed.allow(audits)


# Audits at the exact loss that were cut off and resumed overclaim as seldom as others.
#
# 2,000 of them: benches/record_runs.py. The controls break one rule each and must fail the same
# test.


RESUMED_AUDITS = 200
ALLOWED = resumed.allow(RESUMED_AUDITS)
SEED = 3_400_001


@pytest.mark.sweep
def test_resumed_audits_do_not_overclaim(tmp_path):
    assert resumed.count_overclaims(RESUMED_AUDITS, tmp_path, SEED) <= ALLOWED


@pytest.mark.sweep
def test_a_part_that_counts_for_all_overclaims(tmp_path):
    assert resumed.count_overclaims_of_repeated_parts(RESUMED_AUDITS, tmp_path, SEED) > ALLOWED


@pytest.mark.sweep
def test_a_mechanism_that_replays_overclaims_and_is_refused(tmp_path):
    assert resumed.count_overclaims_of_replays(RESUMED_AUDITS, tmp_path, SEED) > ALLOWED
    # Of numbers, which no chance repeats; of few values, equal blocks are no replay.
    with (
        resumed.replaying(1, seen=True),
        pytest.raises(ValueError, match="drawn anew in every call"),
    ):
        dpcore.audit(add_noise, ONE, trials=400, block=50, checkpoint=tmp_path / "run.json")


@pytest.mark.sweep
def test_looks_with_the_bound_for_a_fixed_end_overclaim_and_those_of_the_anytime_bound_do_not():
    fixed, anytime = resumed.count_overclaims_of_looks(RESUMED_AUDITS, SEED)
    assert fixed > ALLOWED
    assert anytime <= ALLOWED
