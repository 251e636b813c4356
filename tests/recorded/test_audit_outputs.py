"""Audits of recorded outputs: sound for independent rows and for one run, each told apart.

Soundness as in test_soundness.py: of a claim that is exactly true, at most as many audits may be
refuted as the confidence allows, by an exact binomial test at the significance ALPHA. The
controls break one rule each and must fail that test.
"""

from __future__ import annotations

import html
import json
import math
import os
import pickle
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats
from shared_outputs import ALPHA, AUDITS, CONFIDENCE, MOST, RESPONSE, canaries, laplace, refuted

from dpcore import Counts, Pair
from dpcore.attacks import MajorityVote, Threshold
from dpcore.bounds import clopper_pearson, guesses_needed, one_run, one_run_fdp
from dpcore.cli import audits as _cli_outputs
from dpcore.cli.endings import run_guarded
from dpcore.cli.options import OutputsArguments
from dpcore.errors import AssumptionWarning
from dpcore.recorded import independent_rows
from dpcore.recorded.run import audit_outputs
from dpcore.results.audit_text import ROUNDING
from dpcore.results.guesses import Guesses
from dpcore.results.outputs_audits import OutputsAudit


def audit_rows(*sides, **settings):
    return audit_outputs(*sides, **{"rows": "independent", "rng": 1} | settings)


def audit_canaries(*sides, **settings):
    return audit_outputs(*sides, **{"rows": "one_run", "rng": 1} | settings)


def response(rng, size=500, size_prime=400):
    """Randomised response: a bit, and the truth with probability e / (1 + e): loses exactly 1."""
    return (rng.random(size) < RESPONSE) * 1, (rng.random(size_prime) >= RESPONSE) * 1


# Independent rows.


@pytest.mark.sweep
@pytest.mark.parametrize("bound", ["clopper_pearson", "exact"])
@pytest.mark.parametrize("draw", [laplace, response])
def test_true_claims_about_independent_rows(draw, bound):
    overclaims, median = refuted(draw, bound=bound)
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
    in_order = lambda size, seed, side: np.arange(size)  # noqa: E731
    monkeypatch.setattr(independent_rows, "_shuffle_numbers", in_order)
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
    audit = audit_rows(*sides, rng=3, count_share=0.25, pair=([0.0], [1.0]))
    assert (audit.counts.n, audit.counts.n_prime) == (250, 160)
    assert audit.pilot == (750, 480)
    rows = []
    for number, side in enumerate(sides):
        stream = np.random.PCG64(np.random.SeedSequence(3, spawn_key=(17, number)))
        rows.append(side[np.random.Generator(stream).permutation(side.size)][audit.pilot[number] :])
    assert [int(audit.event(side).sum()) for side in rows] == [audit.counts.k, audit.counts.k_prime]
    ordered = audit.counts if audit.direction == "x" else audit.counts.swapped()
    assert audit.epsilon_lower == clopper_pearson(ordered)
    assert audit.verdict == "no claim given"
    assert audit.refuted is None


@pytest.mark.parametrize("seed", range(3))
def test_leaky_outputs_are_refuted(seed):
    rng = np.random.default_rng(seed)
    sides = rng.laplace(size=20_000), 2.0 + rng.laplace(size=10_000)
    audit = audit_rows(*sides, claim=1.5, rng=seed)
    assert audit.refuted
    assert 1.8 < audit.epsilon_lower < 2.0
    sides = 2.0 + rng.laplace(size=20_000), rng.laplace(size=10_000)
    assert audit_rows(*sides, claim=1.5, rng=seed).refuted


def test_the_seed_repeats_an_audit():
    sides = laplace(np.random.default_rng(1), 4000, 4000)
    assert audit_rows(*sides, rng=8).counts != audit_rows(*sides, rng=7).counts
    for rng in (7, None, np.random.default_rng(2)):
        first = audit_rows(*sides, rng=rng)
        assert audit_rows(*sides, rng=first.seed) == first


def test_delta_and_distance():
    sides = laplace(np.random.default_rng(1), 20_000, 20_000)
    plain, loose = audit_rows(*sides), audit_rows(*sides, delta=0.1)
    assert 0.0 < loose.epsilon_lower < plain.epsilon_lower
    far = Pair([0.0], [1.0], distance=2.0)
    metric = audit_rows(*sides, pair=far, claim=0.4)
    assert metric.epsilon_lower == plain.epsilon_lower / 2.0
    assert metric.epsilon_hat == plain.epsilon_hat / 2.0
    assert metric.refuted
    both = audit_rows(*sides, pair=far, delta=0.1, claim=loose.epsilon_lower * 0.51)
    assert both.epsilon_lower == loose.epsilon_lower
    assert not both.refuted


def test_attacks_of_several_kinds():
    rng = np.random.default_rng(2)
    noise = rng.laplace(size=(2, 4000, 3))
    sides = noise[0], noise[1] + [0.0, 0.0, 2.0]
    pair = ([0.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    for attack in (None, Threshold("coordinate"), MajorityVote()):
        audit = audit_rows(*sides, attack=attack, pair=pair)
        assert audit.epsilon_lower > 1.2
    assert audit.attack == "MajorityVote"
    words = np.where(rng.random((2, 4000)) < [[0.8], [0.2]], "yes", "no")
    audit = audit_rows(*map(list, words), attack=lambda *pilot: lambda rows: rows == "yes")
    assert 1.1 < audit.epsilon_lower < math.log(4.0)


def test_nan_outputs_are_counted_but_never_above_a_threshold():
    rng = np.random.default_rng(3)
    outputs, outputs_prime = laplace(rng, 4000, 4000)
    outputs[rng.permutation(4000)[:400]] = np.nan
    audit = audit_rows(outputs, outputs_prime, attack=Threshold())
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


@pytest.mark.parametrize("copies", [2, 10])
def test_a_file_that_holds_its_rows_several_times(copies):
    """Of integers some come several times anyway; all of them are multiples still."""
    side = RNG.geometric(0.001, size=2000)
    told = f"rows are repeated: each row of outputs occurs {copies} times or more"
    assert quiet(np.tile(side, copies), RNG.laplace(size=999), rows="independent") == (told,)


# Outputs of one run with canaries: soundness, guesses, bounds.


def flipped_canaries(rng, m=200):
    """Every canary's coin by randomised response: scores are 0 or 1, and mostly tied."""
    coins = rng.random(m) < 0.5
    scores = (coins ^ (rng.random(m) >= RESPONSE)) * 1
    return scores[coins], scores[~coins]


@pytest.mark.parametrize("guesses", [None, 60, 0.3, (40, 0), (0, 40)])
@pytest.mark.parametrize("draw", [canaries, flipped_canaries])
def test_true_claims_about_one_run(draw, guesses):
    overclaims, median = refuted(draw, rows="one_run", guesses=guesses)
    assert overclaims <= MOST
    assert median > 0.25


def sometimes_all(rng, m=100):
    """With probability 0.1 shows all coins, or else none: (0, 0.1)-DP for every canary."""
    coins = rng.random(m) < 0.5
    scores = coins * 1.0 if rng.random() < 0.1 else rng.random(m)
    return scores[coins], scores[~coins]


def test_canaries_of_one_run_are_no_independent_rows():
    """One run's noise is shared: what the independent bound takes for 50 draws is a single one."""
    most = int(stats.binom.isf(ALPHA, AUDITS, 0.01))
    settings = {"claim": 0.0, "delta": 0.1, "confidence": 0.99}
    assert refuted(sometimes_all, rows="one_run", **settings)[0] <= most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        assert refuted(sometimes_all, rows="independent", **settings)[0] > most


def test_guesses_by_hand():
    outputs, outputs_prime = [5.0, 4.0, 0.0, np.inf], [3.0, -1.0, 4.5, -np.inf]
    audit = audit_canaries(outputs, outputs_prime, guesses=(3, 2))
    # In: inf, 5, 4.5 of which the last was left out. Out: -inf, -1.
    assert audit.evidence == Guesses(3, 2, 2, 2, 8)
    assert (audit.guesses, audit.correct, audit.canaries) == (5, 4, 8)
    assert audit.epsilon_lower == one_run(5, 4, 8, 0.0, 0.95)
    assert audit.epsilon_hat == pytest.approx(math.log(4.0))
    assert audit.counts is None
    assert audit_canaries(outputs, outputs_prime, guesses=5).evidence == audit.evidence
    column = audit_canaries(*(np.array([side]).T for side in (outputs, outputs_prime)))
    assert (column.guesses, column.evidence.guessed_in) == (8, 4)


@pytest.mark.parametrize(("included", "others"), [(1000, 1000), (900, 1100)])
def test_ties_do_not_know_who_was_included(included, others):
    """All scores equal: as many right as coins give, in the order of no side."""
    audits = [audit_canaries(np.zeros(included), np.zeros(others), rng=seed) for seed in range(20)]
    right = sum(audit.correct for audit in audits)
    share = (included * 0.5 + others * 0.5) / (included + others)
    assert stats.binomtest(right, 20 * (included + others), share).pvalue > ALPHA
    assert len({audit.correct for audit in audits}) > 1


def test_guesses_in_number_do_not_depend_on_scores():
    rng = np.random.default_rng(1)
    for scores in (rng.normal(size=100), np.ones(100), np.repeat([0.0, 1.0], 50)):
        audit = audit_canaries(scores[::2], scores[1::2], guesses=0.21)
        assert (audit.evidence.guessed_in, audit.evidence.guessed_out) == (11, 10)


def test_scores_that_are_the_wrong_way_round_are_mentioned():
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    right = audit_canaries(outputs, outputs_prime, guesses=200)
    wrong = audit_outputs(-outputs, -outputs_prime, rows="one_run", guesses=200, rng=1)
    assert right.notes == ()
    assert right.epsilon_lower > 0.3
    assert wrong.epsilon_lower == 0.0
    assert "fewer than half of the guesses are right" in wrong.notes[0]
    assert wrong.notes[0] in str(wrong)


def test_the_gaussian_bound():
    rng = np.random.default_rng(1)
    coins = rng.random(2000) < 0.5
    scores = coins * 2.0 + rng.normal(size=2000)
    settings = {"guesses": 400, "delta": 1e-5, "claim": 2.0}
    sides, bounds = (scores[coins], scores[~coins]), (None, "one_run_fdp")
    plain, sharp = (audit_canaries(*sides, bound=bound, **settings) for bound in bounds)
    assert plain.bound == "one_run"
    assert plain.epsilon_lower < sharp.epsilon_lower
    assert "of a Gaussian claim" in str(sharp)


# What guesses can reach.


@pytest.mark.parametrize("guesses", [10, 100, 1000])
@pytest.mark.parametrize(("delta", "bound"), [(0.0, None), (1e-5, None), (1e-5, "one_run_fdp")])
def test_the_ceiling_is_what_right_guesses_certify(guesses, delta, bound):
    settings = {"guesses": guesses, "delta": delta, "bound": bound}
    perfect = audit_canaries(np.arange(500.0) + 1000, np.arange(500.0), **settings)
    assert (perfect.correct, perfect.ceiling) == (guesses, perfect.epsilon_lower)
    rng = np.random.default_rng(1)
    audit = audit_canaries(rng.normal(size=500) + 1, rng.normal(size=500), **settings)
    assert audit.ceiling == perfect.ceiling > audit.epsilon_lower
    assert audit.guesses_needed is None


@pytest.mark.parametrize("claim", [0.0, 0.5, 1.0, 4.0, 8.0])
@pytest.mark.parametrize(("bound", "delta"), [(one_run, 0.0), (one_run, 1e-6), (one_run_fdp, 1e-6)])
def test_the_guesses_needed_are_the_fewest(claim, delta, bound):
    needed = guesses_needed(claim, 1000, delta, 0.95, bound)
    many = max(needed, 1000)
    assert bound(needed, needed, many, delta=delta, confidence=0.95) > claim
    fewer = needed - 1
    assert fewer == 0 or bound(fewer, fewer, many, delta=delta, confidence=0.95) <= claim


def test_claims_that_no_number_of_guesses_refutes():
    assert guesses_needed(8.0, 1000, delta=0.01) is None
    assert guesses_needed(50.0, 1000) is None
    with pytest.raises(ValueError, match="claim must be a finite number at least 0"):
        guesses_needed(-1.0, 1000)


@pytest.mark.parametrize(("claim", "told"), [
    (8.0, "to refute the claim takes 8,932 guesses (and canaries) or more, all of them right"),
    (1.0, "to refute the claim takes 10 guesses (and canaries) or more, all of them right"),
    (50.0, "to refute the claim takes more guesses than any run has"),
])  # fmt: skip
def test_the_report_says_what_guesses_can_reach(claim, told):
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    audit = audit_canaries(outputs, outputs_prime, guesses=100, claim=claim)
    reach = f"100 guesses certify at most epsilon >= {one_run(100, 100, 1000):.4f}; {told}"
    assert f"  reach        {reach}\n" in str(audit)
    record = audit.to_dict()["derived"]
    assert (record["ceiling"], record["guesses_needed"]) == (audit.ceiling, audit.guesses_needed)
    without = audit_canaries(outputs, outputs_prime, guesses=100)
    assert f"  reach        {reach.split(';')[0]}\n" in str(without)


def test_coins_that_are_not_fair_are_no_verdict():
    scores = np.random.default_rng(1).normal(size=1000)
    with pytest.warns(AssumptionWarning, match="900 of 1,000 canaries"):
        audit = audit_canaries(scores[:900] + 2, scores[900:], claim=0.1)
    assert audit.epsilon_lower > 0.1
    assert audit.refuted is None
    assert audit.verdict.startswith("invalid: 900 of 1,000 canaries were included")
    assert audit_canaries(scores[:480] + 2, scores[480:], claim=0.1).refuted


# Rows i of both sides from one seed: what holds for them, and what does not.
#
# Soundness as in test_audit_outputs.py, of claims that are exactly true.


RUNS = int(os.environ.get("DPCORE_AUDITS", 1000))
MOST_RUNS = int(stats.binom.isf(ALPHA, RUNS, 1 - CONFIDENCE))


def ones(outputs, outputs_prime, pair):
    return lambda rows: rows == 1


LOSS = 0.4
TRUTH = math.exp(LOSS) / (1.0 + math.exp(LOSS))


def flips(rng, size=1000):
    """Randomised response that flips its bit, 1 or 0, with one coin for both: loses `LOSS`."""
    flip = rng.random(size) >= TRUTH
    return (1 ^ flip) * 1, flip * 1


def above_the_claim(draw, runs, claim=LOSS, **settings):
    """How many audits certify more than the claim, whatever their verdict."""
    settings["confidence"] = CONFIDENCE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sides = (draw(np.random.default_rng(seed)) for seed in range(runs))
        audits = (audit_rows(*both, rng=seed, **settings) for seed, both in enumerate(sides))
        return sum(audit.epsilon_lower > claim for audit in audits)


def test_true_claims_about_paired_rows():
    assert above_the_claim(flips, RUNS, attack=ones, paired=True) <= MOST_RUNS


@pytest.mark.sweep
def test_the_control_with_the_exact_test_overclaims():
    """Common coins spread the quotient, and the exact test takes the sides for independent."""
    assert above_the_claim(flips, RUNS, attack=ones, bound="exact") > MOST_RUNS

    def apart(rng):
        return flips(rng)[0], flips(rng)[1]

    assert above_the_claim(apart, RUNS, attack=ones, bound="exact") <= MOST_RUNS


def test_such_rows_are_no_verdict_without_paired():
    sides = flips(np.random.default_rng(1), 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for bound in ("exact", "clopper_pearson"):
            audit = audit_rows(*sides, claim=0.01, bound=bound)
            assert audit.refuted is None
            assert audit.verdict.startswith("invalid: ")
            assert audit.verdict.endswith("give paired=True")
    audit = audit_rows(*sides, claim=0.01, paired=True)
    assert audit.refuted
    assert audit.paired
    assert "; rows i of both sides come from one seed" in str(audit)
    # Files of independent rows may be said to be paired: nothing is lost but the exact bound.
    other = flips(np.random.default_rng(2), 20_000)[1]
    assert audit_rows(sides[0], other, claim=0.01, paired=True).refuted


def mirrored(rng, size=500):
    """Equal cells, true epsilon 0: row i of one side is the mirror image of row i of the other."""
    cells = rng.integers(200, size=size)
    return cells, 199 - cells


def by_mirror(outputs, outputs_prime, pair):
    """The cells whose mirror images are more frequent on the other side."""
    counts, counts_prime = (np.bincount(side, minlength=200) for side in (outputs, outputs_prime))
    return lambda rows: (counts_prime > counts)[199 - rows]


@pytest.mark.sweep
def test_pairs_stay_together_when_rows_are_shuffled(monkeypatch):
    """Otherwise the partners of rows that chose the event are counted."""
    settings = {"claim": 0.0, "attack": by_mirror, "paired": True}
    assert above_the_claim(mirrored, AUDITS, **settings) <= MOST
    together = independent_rows._shuffle_numbers
    calls = iter(range(10**6))
    apart = lambda size, seed, side: together(size, seed, next(calls) % 2)  # noqa: E731
    monkeypatch.setattr(independent_rows, "_shuffle_numbers", apart)
    assert above_the_claim(mirrored, AUDITS, **settings) > AUDITS / 2


def test_a_paired_audit_by_hand():
    noise = np.random.default_rng(3).laplace(size=1000)
    audit = audit_outputs(noise, 2.0 + noise, rows="independent", paired=True, rng=3)
    stream = np.random.PCG64(np.random.SeedSequence(3, spawn_key=(17, 0)))
    order = np.random.Generator(stream).permutation(1000)[500:]
    hits = [int(audit.event(side[order]).sum()) for side in (noise, 2.0 + noise)]
    assert hits == [audit.counts.k, audit.counts.k_prime]


# Outputs in files, what the result says, and the command.


# Files, shapes, and what the result says.


@pytest.fixture
def files(tmp_path):
    outputs, outputs_prime = laplace(np.random.default_rng(4), 3000, 2500)
    np.save(tmp_path / "x.npy", outputs)
    np.savetxt(tmp_path / "y.csv", 1.0 + outputs_prime, fmt="%.17g", header="score")
    labelled = np.array([*((v, 1) for v in outputs), *((v, 0) for v in 1.0 + outputs_prime)])
    np.savetxt(tmp_path / "both.csv", labelled, delimiter=",", header="score,member", fmt="%.17g")
    return tmp_path, outputs, 1.0 + outputs_prime


def test_files_give_what_arrays_give(files):
    folder, outputs, outputs_prime = files
    settings = {"rows": "independent", "claim": 1.0, "rng": 1}
    arrays = audit_outputs(outputs, outputs_prime, **settings)
    paths = audit_outputs(folder / "x.npy", str(folder / "y.csv"), **settings)
    label = audit_outputs(folder / "both.csv", label="member", **settings)
    mixed = audit_outputs(outputs.tolist(), folder / "y.csv", column="score", **settings)
    assert arrays.refuted
    for audit in (paths, label, mixed):
        for name in ("counts", "event", "direction"):
            assert getattr(audit, name) == getattr(arrays, name)
    assert (paths.names, paths.name) == (("x.npy", "y.csv"), "x.npy against y.csv")
    assert label.name == "both.csv"


def test_the_report_of_independent_rows():
    sides = laplace(np.random.default_rng(1), 2000, 1000)
    audit = audit_outputs(*sides, rows="independent", claim=2.5, rng=1)
    c, side = audit.counts, {"x": "x", "x_prime": "x'"}[audit.direction]
    finding = audit.floating_point
    bits = f"{finding.event}; {finding.counts.k:,} of 1,000 on x, {finding.counts.k_prime:,} of 500"
    *lines, plan, note = str(audit).splitlines()
    assert plan.startswith("  plan         noise 10 % too small")
    assert note.startswith("  note         `certified` and `rounding` have 95 % confidence each")
    assert lines == [
        "outputs against outputs_prime",
        "  verdict      not refuted by this attack",
        "  claim        epsilon <= 2.5",
        f"  certified    epsilon >= {audit.epsilon_lower:.4f} (95 % confidence, Clopper-Pearson)",
        f"  estimate     {audit.epsilon_hat:.4f} (not a bound)",
        f"  witness      {audit.event}, {side} in the numerator",
        f"  counts       {c.k:,} of 1,000 on x, {c.k_prime:,} of 500 on x'",
        "  reach        1,000 and 500 counted rows certify at most epsilon >= 5.5969",
        "  rows         independent: each row is an output of its own run, drawn independently of "
        "all others",
        f"  rounding     the code as it runs: epsilon >= {finding.epsilon_lower:.4f} (not part of "
        f"the verdict): {bits} on x'",
        f"  meaning      {ROUNDING}",
        "  seed         1 (of the shuffle; 1,000 and 500 rows chose the event)",
        "  needed       more rows, which choose another event; or outputs of another pair, another "
        "attack or an own score (dpcore.attacks.Threshold(score=...)). This event cannot refute "
        "the claim.",
    ]
    assert repr(audit).startswith("<OutputsAudit of outputs against outputs_prime: not refuted")
    assert (audit.exact, audit.parameter_ceiling, audit.guesses_needed) == (None, None, None)


def test_the_report_of_one_run():
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    audit = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=100, rng=1, delta=1e-6)
    g = audit.evidence
    lines = dict(line.strip().split(maxsplit=1) for line in str(audit).splitlines())
    assert lines["claim"] == "none given"
    assert lines["witness"] == "the 50 highest scores guessed in, the 50 lowest out"
    assert lines["counts"] == (
        f"{audit.correct} of 100 guesses right ({g.correct_in} of 50 in, {g.correct_out} of 50 "
        "out), 1,000 canaries"
    )
    assert lines["seed"] == "1 (decides ties between scores)"
    assert lines["rows"].startswith("one run: all rows are scores of canaries from a single run")


def audit_laplace(**settings):
    sides = laplace(np.random.default_rng(1), 1000, 1000)
    return audit_outputs(*sides, **{"rows": "independent", "claim": 0.1, "rng": 1} | settings)


@pytest.mark.parametrize("rows", ["independent", "one_run"])
def test_json_plot_and_pickle(rows):
    audit = audit_laplace(rows=rows)
    record = json.loads(audit.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert (record, record["format"]) == (audit.to_dict(), "dpcore.audit_outputs/2")
    assert (record["rows"], record["seed"]) == (rows, "1")
    derived = record["derived"]
    assert (derived["epsilon_lower"], derived["verdict"]) == (audit.epsilon_lower, audit.verdict)
    kind = Counts if rows == "independent" else Guesses
    evidence = dict(record["evidence"])
    assert evidence.pop("record") == kind.__name__
    assert kind(**evidence) == audit.evidence
    assert audit.verdict in audit.plot().axes[0].get_title(loc="left")
    caption = audit.plot().axes[0].get_xlabel().replace("\n", " ")
    counts = dict(audit.lines())["counts"]
    assert f"claim: epsilon <= 0.1, delta = 0; 95 % confidence; {counts}" in caption
    page = audit.to_html()
    assert all(words in page for words in ("delta of the claim", "95 %", counts.split("'")[0]))
    assert pickle.loads(pickle.dumps(audit)) == audit
    assert OutputsAudit.from_json(audit.to_json()) == audit
    assert OutputsAudit.from_dict(record).verdict == audit.verdict


def test_json_with_a_field_missing_is_refused():
    record = audit_laplace().to_dict()
    assert OutputsAudit.from_dict(record).refuted
    for name in record.keys() - {"derived"}:
        with pytest.raises(ValueError, match="must be"):
            OutputsAudit.from_dict({key: record[key] for key in record if key != name})


def test_doubts_in_json_leave_no_verdict():
    record = audit_laplace().to_dict() | {"doubts": ["rows are repeated"]}
    record["derived"]["verdict"] = "invalid: rows are repeated"
    doubted = OutputsAudit.from_dict(record)
    assert (doubted.refuted, doubted.verdict) == (None, "invalid: rows are repeated")


def test_an_event_of_ones_own_keeps_its_name_in_json():
    def attack(outputs, outputs_prime, pair):
        return lambda rows: rows > 0.0

    audit = audit_laplace(attack=attack)
    read = OutputsAudit.from_json(audit.to_json())
    assert read.epsilon_lower == audit.epsilon_lower
    assert "lambda" in read.event


@pytest.mark.parametrize(("change", "text"), [
    ({"format": "dpcore.audit/2"}, "format must be 'dpcore.audit_outputs/2'"),
    ({"rows": "both"}, "rows must be one of 'independent', 'one_run'"),
    ({"rows": "one_run"}, "record must be what OutputsAudit.to_dict wrote"),
    ({"bound": "one_run"}, "bound must be one of 'clopper_pearson', 'exact'"),
    ({"bound": "exact", "paired": True}, "bound must be 'clopper_pearson' where"),
    ({"paired": 1}, "paired must be a bool, got 1"),
    ({"direction": None}, "direction must be one of"),
    ({"confidence": 1.0}, "confidence must be"),
    ({"claim": -1.0}, "claim must be"),
    ({"delta": 1.0}, "delta must be"),
    ({"names": ["x"]}, "names must be two values"),
    ({"pilot": ["1", "2"]}, "pilot must be a int"),
    ({"doubts": "one"}, "doubts must be a list"),
    ({"evidence": {"record": "Counts", "k": 9, "n": 5, "k_prime": 0, "n_prime": 5}},
     "k must be an"),
])  # fmt: skip
def test_json_that_is_refused(change, text):
    record = audit_laplace().to_dict()
    with pytest.raises(ValueError, match=text):
        OutputsAudit.from_dict({**record, **change})
    with pytest.raises(TypeError, match="record must be a mapping"):
        OutputsAudit.from_dict([record])


@pytest.mark.parametrize("rows", ["independent", "one_run"])
def test_the_page_and_the_table(rows, tmp_path):
    audit = audit_laplace(rows=rows)
    page = audit.to_html(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_text(encoding="utf-8") == page
    xml = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>"))
    words = " ".join("".join(xml.itertext()).split())
    table = audit._repr_html_()
    for label, line in audit.lines():
        assert label in words
        assert line in words
        assert html.escape(line) in table
    assert "dpcore.OutputsAudit.from_json reads it" in words
    assert page.count("<svg") == 1


def test_the_page_of_rows_that_no_bound_holds_for():
    smooth = np.random.default_rng(11).laplace(size=5000)
    with pytest.warns(AssumptionWarning):
        audit = audit_outputs(np.tile(smooth, 2), smooth[::-1], rows="independent", claim=1.0)
    page = audit.to_html()
    assert "<dt>epsilon certified</dt><dd>none</dd>" in page
    assert "No bound holds" in page


def test_infinite_estimates_are_strict_json_too():
    audit = audit_outputs([1.0] * 20, [0.0] * 20, rows="independent", rng=1)
    assert audit.epsilon_hat == math.inf
    assert math.isfinite(audit.epsilon_lower)
    assert json.loads(audit.to_json())["derived"]["epsilon_hat"] == "inf"
    assert "estimate     infinite" in str(audit)
    sure = audit_outputs(np.arange(50.0) + 100, np.arange(50.0), rows="one_run", rng=1)
    assert (sure.epsilon_hat, sure.epsilon_lower) == (math.inf, one_run(100, 100, 100))
    null = audit_outputs([1.0] * 20, [1.0] * 20, rows="independent", rng=1)
    assert (null.epsilon_hat, null.epsilon_lower) == (0.0, 0.0)


# The command's work, without its parser.


def command(*names, **change):
    options = {"rows": "independent", "claim": 0.5, "seed": 1, **change}
    asked = OutputsArguments(files=tuple(map(str, names)), **options)
    return run_guarded(lambda: _cli_outputs.run_outputs_audit(asked))


def test_the_command_prints_the_report_and_exits_with_the_verdict(files, capsys):
    folder = files[0]
    pair = folder / "x.npy", folder / "y.csv"
    assert command(*pair) == 1
    audit = audit_outputs(*pair, rows="independent", claim=0.5, rng=1)
    assert capsys.readouterr().out == f"{audit}\n"
    assert command(*pair, claim=4.0) == 0
    assert command(*pair, claim=9.0) == 3
    assert command(*pair, claim=None, no_claim=True) == 0
    assert "no claim given" in capsys.readouterr().out
    assert command(*pair, attack="threshold", bound="exact", count_share=0.4, as_json=True) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["bound"], record["evidence"]["n"]) == ("exact", 1200)
    plot = folder / "audit.png"
    assert command(*pair, plot=str(plot)) == 1
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("guesses", "wanted"), [
    ("100", (50, 50)), ("0.02", (50, 50)), ("60,40", (60, 40)), (None, (2500, 2500)),
])  # fmt: skip
def test_the_command_for_one_run(tmp_path, capsys, guesses, wanted):
    path = tmp_path / "canaries.csv"
    included, others = canaries(np.random.default_rng(1), 5000)
    rows = [f"{score!r},7,in\n" for score in included.tolist()]
    rows += [f"{score!r},7,out\n" for score in others.tolist()]
    path.write_text("score,epoch,member\n" + "".join(rows))
    asked = {"rows": "one_run", "guesses": guesses, "label": "member", "column": ("score",)}
    assert command(path, claim=0.2, as_json=True, **asked) == 1
    record = json.loads(capsys.readouterr().out)["evidence"]
    assert (record["guessed_in"], record["guessed_out"]) == wanted
    assert command(path, claim=1.0, **asked) == 0


def test_the_command_says_doubts_on_stderr(tmp_path, capsys):
    smooth = np.random.default_rng(11).laplace(size=(2, 5000))
    np.save(tmp_path / "x.npy", np.tile(smooth[0], 2))
    np.save(tmp_path / "y.npy", smooth[1])
    assert command(tmp_path / "x.npy", tmp_path / "y.npy") == 3
    shown = capsys.readouterr()
    doubt = "rows are repeated: each row of outputs occurs 2 times or more"
    assert shown.err == f"warning: {doubt}\n"
    assert f"  verdict      invalid: {doubt}\n" in shown.out
    assert "  certified    nothing: no bound holds\n" in shown.out
    assert f"  note         {doubt}\n" in shown.out
    assert command(tmp_path / "y.npy", tmp_path / "x.npy", claim=None, no_claim=True) == 3


def test_the_command_takes_paired_rows(tmp_path, capsys):
    noise = np.random.default_rng(11).laplace(size=5000)
    np.save(tmp_path / "x.npy", noise)
    np.save(tmp_path / "y.npy", 1.0 + noise)
    files = tmp_path / "x.npy", tmp_path / "y.npy"
    assert command(*files) == 3
    assert "give --paired" in capsys.readouterr().err
    assert command(*files, paired=True) == 1
    assert "; rows i of both sides come from one seed" in capsys.readouterr().out
    assert command(*files, paired=True, bound="exact") == 2


@pytest.mark.parametrize(("names", "change", "text"), [
    ((), {}, "name two files, the outputs on x and those on x' (or one, with --label COLUMN)"),
    (("x.npy",), {}, "name two files"),
    (("x.npy", "y.csv"), {"label": "member"}, "name one file where --label is given"),
    (("x.npy", "y.csv"), {"claim": None}, "give --claim EPSILON, or --no-claim to estimate"),
    (("x.npy", "y.csv"), {"no_claim": True}, "--claim and --no-claim exclude each other"),
    (("x.npy", "y.csv"), {"rows": None}, "--rows must be 'independent' or 'one_run', got None"),
    (("x.npy", "none.csv"), {}, "No such file or directory"),

    (("x.npy", "y.csv"), {"attack": "luck"}, "--attack must be one of 'auto'"),
    (("x.npy", "y.csv"), {"guesses": "3"}, "--guesses must be None where rows"),
    (("x.npy", "y.csv"), {"rows": "one_run", "guesses": "a,b"}, "--guesses must be a number"),
    (("x.npy", "y.csv"), {"count_share": 2.0}, "--count-share must be a finite number"),

    (("x.npy", "y.csv"), {"plot": "x.txt"}, "--plot must end in one of"),
    (("both.csv",), {"label": "side"}, "label must be one of 'score', 'member' in both.csv"),
    (("-", "y.csv"), {}, "--format must be given for standard input"),
    (("-", "-"), {"format": "csv"}, "a file where outputs are standard input"),
    (("x.npy", "y.csv"), {"header": "maybe"}, "--header must be one of 'auto', 'yes', 'no'"),
    (("x.npy", "y.csv"), {"sep": "::"}, "--sep must be one character, or 'tab', got '::'"),
    (("x.npy", "y.csv"), {"encoding": "utf-9"}, "--encoding must be an encoding that Python"),
    (("x.npy", "y.csv"), {"format": "xml"}, "--format must be one of 'csv', 'tsv', 'lines'"),
])  # fmt: skip
def test_bad_usage(files, capsys, names, change, text):
    paths = (name if name == "-" else files[0] / name for name in names)
    assert command(*paths, **change) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert text in shown.err
