"""Audits of recorded outputs: sound for independent rows and for one run, each told apart.

Soundness as in test_soundness.py: of a claim that is exactly true, at most as many audits may be
refuted as the confidence allows, by an exact binomial test at the significance ALPHA. The
controls break one rule each and must fail that test.
"""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

from dpcore import Counts, Pair, _cli_outputs, _outputs_independent
from dpcore._cli_outputs import AskedOutputs
from dpcore._cli_status import guard
from dpcore.attacks import MajorityVote, Threshold
from dpcore.bounds import clopper_pearson, one_run
from dpcore.errors import AssumptionWarning
from dpcore.outputs_auditing import audit_outputs
from dpcore.outputs_record import BOUNDS, Guesses

ALPHA = 1e-4
AUDITS = 300
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Overclaims in 300 audits that chance allows: P(more | 10 %) < ALPHA."""

RESPONSE = math.exp(1.0) / (1.0 + math.exp(1.0))


def test_the_allowance_is_that_of_an_exact_binomial_test():
    assert stats.binomtest(MOST, AUDITS, 0.1, "greater").pvalue > ALPHA
    assert stats.binomtest(MOST + 2, AUDITS, 0.1, "greater").pvalue < ALPHA
    assert 30 < MOST < 55


def laplace(rng, size=500, size_prime=400):
    return rng.laplace(size=size), 1.0 + rng.laplace(size=size_prime)


def response(rng, size=500, size_prime=400):
    """Randomised response: a bit, and the truth with probability e / (1 + e): loses exactly 1."""
    return (rng.random(size) < RESPONSE) * 1, (rng.random(size_prime) >= RESPONSE) * 1


def refuted(draw, **settings):
    """How many audits of a claim of exactly 1 refute it, and the median bound."""
    found = []
    for seed in range(AUDITS):
        sides = draw(np.random.default_rng(seed))
        settings = {"rows": "independent", "claim": 1.0, "confidence": CONFIDENCE, **settings}
        found.append(audit_outputs(*sides, rng=seed, **settings))
    return sum(audit.refuted for audit in found), np.median([one.epsilon_lower for one in found])


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
    monkeypatch.setattr(_outputs_independent, "_shuffled", lambda outputs, seed, side: outputs)
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
    assert audit.attack == "dpcore.attacks.majority.MajorityVote"
    words = np.where(rng.random((2, 4000)) < [[0.8], [0.2]], "yes", "no")
    audit = audit_outputs(
        list(words[0]), list(words[1]), rows="independent", rng=1,
        attack=lambda outputs, outputs_prime, pair: lambda rows: rows == "yes",
    )  # fmt: skip
    assert 1.1 < audit.epsilon_lower < math.log(4.0)


def test_nan_outputs_are_counted_but_never_above_a_threshold():
    rng = np.random.default_rng(3)
    outputs, outputs_prime = laplace(rng, 4000, 4000)
    outputs[:400] = np.nan
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


def mixed():
    values = RNG.laplace(size=5000)
    return np.where(values < -0.5, -1000.0, np.where(values > 2.0, 1 / 3, values))


def coarse():
    """A sampler with one 32-bit word: about 4 chance repetitions in 200,000 rows."""
    return -np.log((RNG.integers(1, 2**32, size=200_000) + 0.5) / 2**32)


@pytest.mark.parametrize(
    ("side", "kind"),
    [
        (SMOOTH, "a density"),
        (RNG.laplace(size=(3000, 2)), "two numbers"),
        (np.round(SMOOTH, 1), "one decimal"),
        (np.round(100 * SMOOTH, 3), "three decimals"),
        (SMOOTH.astype(np.float32), "float32"),
        (RNG.laplace(size=200_000).astype(np.float32), "much float32"),
        (RNG.laplace(size=200_000).astype(np.float32).astype(float), "float32 in float64"),
        (RNG.integers(2, size=5000), "bits"),
        (RNG.geometric(0.001, size=5000), "wide integers"),
        (RNG.geometric(0.01, size=5000) / 3.0, "a lattice with long decimals"),
        (RNG.geometric(0.5, size=(5000, 3)) * 1.0, "rows of integers"),
        (mixed(), "two atoms beside a density"),
        (coarse(), "a sampler of 32 bits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_honest_rows_raise_no_doubt(side, kind):
    half = len(side) // 2
    assert quiet(side[:half], side[half:], rows="independent") == ()


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


def test_included_canaries_that_fair_coins_do_not_give():
    scores = RNG.normal(size=1000)
    assert quiet(scores[:480], scores[480:], rows="one_run") == ()
    told = "900 of 1,000 canaries were included, which fair coins do not give"
    assert quiet(scores[:900], scores[900:], rows="one_run") == (told,)


# One run.


def canaries(rng, m=200):
    """Every canary's coin with Laplace noise of scale 1: loses exactly 1 for each."""
    coins = rng.random(m) < 0.5
    scores = coins + rng.laplace(size=m)
    return scores[coins], scores[~coins]


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
    audit = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=(3, 2), rng=1)
    # In: inf, 5, 4.5 of which the last was left out. Out: -inf, -1.
    assert audit.evidence == Guesses(3, 2, 2, 2, 8)
    assert (audit.guesses, audit.correct, audit.canaries) == (5, 4, 8)
    assert audit.epsilon_lower == one_run(5, 4, 8, 0.0, 0.95)
    assert audit.epsilon_hat == pytest.approx(math.log(4.0))
    assert audit.counts is None
    odd = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=5, rng=1)
    assert odd.evidence == audit.evidence
    columns = (np.array([side]).T for side in (outputs, outputs_prime))
    column = audit_outputs(*columns, rows="one_run", rng=1)
    assert (column.guesses, column.evidence.guessed_in) == (8, 4)


@pytest.mark.parametrize(("included", "others"), [(1000, 1000), (900, 1100)])
def test_ties_do_not_know_who_was_included(included, others):
    """All scores equal: as many right as coins give, in the order of no side."""
    audits = [
        audit_outputs(np.zeros(included), np.zeros(others), rows="one_run", rng=seed)
        for seed in range(20)
    ]
    right = sum(audit.correct for audit in audits)
    share = (included * 0.5 + others * 0.5) / (included + others)
    assert stats.binomtest(right, 20 * (included + others), share).pvalue > ALPHA
    assert len({audit.correct for audit in audits}) > 1


def test_guesses_in_number_do_not_depend_on_scores():
    rng = np.random.default_rng(1)
    for scores in (rng.normal(size=100), np.ones(100), np.repeat([0.0, 1.0], 50)):
        audit = audit_outputs(scores[::2], scores[1::2], rows="one_run", guesses=0.21, rng=1)
        assert (audit.evidence.guessed_in, audit.evidence.guessed_out) == (11, 10)


def test_scores_that_are_the_wrong_way_round_are_mentioned():
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    right = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=200, rng=1)
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
    settings = {"rows": "one_run", "guesses": 400, "delta": 1e-5, "rng": 1, "claim": 2.0}
    plain, sharp = (
        audit_outputs(scores[coins], scores[~coins], bound=bound, **settings)
        for bound in (None, "one_run_fdp")
    )
    assert plain.bound == "one_run"
    assert plain.epsilon_lower < sharp.epsilon_lower
    assert "of a Gaussian claim" in str(sharp)


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
        assert (audit.counts, audit.event, audit.direction) == (
            arrays.counts, arrays.event, arrays.direction,
        )  # fmt: skip
    assert paths.names == ("x.npy", "y.csv")
    assert paths.name == "x.npy against y.csv"
    assert label.name == "both.csv"


def test_the_report_of_independent_rows():
    sides = laplace(np.random.default_rng(1), 2000, 1000)
    audit = audit_outputs(*sides, rows="independent", claim=2.5, rng=1)
    c, side = audit.counts, {"x": "x", "x_prime": "x'"}[audit.direction]
    assert str(audit).splitlines() == [
        "outputs against outputs_prime",
        "  verdict      not refuted by this attack",
        "  claim        epsilon <= 2.5",
        f"  certified    epsilon >= {audit.epsilon_lower:.4f} (95 % confidence, Clopper-Pearson)",
        f"  estimate     {audit.epsilon_hat:.4f} (certifies nothing)",
        f"  witness      {audit.event}, {side} in the numerator",
        f"  counts       {c.k:,} of 1,000 on x, {c.k_prime:,} of 500 on x'",
        "  rows         independent: each row is an output of its own run, drawn independently of "
        "all others",
        "  seed         1 (of the shuffle; 1,000 and 500 rows chose the event)",
    ]
    assert repr(audit).startswith("<OutputsAudit of outputs against outputs_prime: not refuted")
    assert audit.exact is None


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


@pytest.mark.parametrize("rows", ["independent", "one_run"])
def test_json_plot_and_pickle(rows):
    sides = laplace(np.random.default_rng(1), 1000, 1000)
    audit = audit_outputs(*sides, rows=rows, claim=0.1, rng=1)
    record = json.loads(audit.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert record == audit.to_dict()
    assert record["format"] == "dpcore.audit_outputs/1"
    assert record["rows"] == rows
    assert record["seed"] == "1"
    assert record["derived"]["epsilon_lower"] == audit.epsilon_lower
    assert record["derived"]["verdict"] == audit.verdict
    kind = Counts if rows == "independent" else Guesses
    assert kind(**record["evidence"]) == audit.evidence
    title = audit.plot().axes[0].get_title(loc="left")
    assert audit.verdict in title
    assert pickle.loads(pickle.dumps(audit)) == audit


def test_infinite_estimates_are_strict_json_too():
    audit = audit_outputs([1.0] * 20, [0.0] * 20, rows="independent", rng=1)
    assert audit.epsilon_hat == math.inf
    assert math.isfinite(audit.epsilon_lower)
    assert json.loads(audit.to_json())["derived"]["epsilon_hat"] == "inf"
    assert "estimate     infinite" in str(audit)
    sure = audit_outputs(np.arange(50.0) + 100, np.arange(50.0), rows="one_run", rng=1)
    assert sure.epsilon_hat == math.inf
    assert sure.epsilon_lower == one_run(100, 100, 100)
    null = audit_outputs([1.0] * 20, [1.0] * 20, rows="independent", rng=1)
    assert (null.epsilon_hat, null.epsilon_lower) == (0.0, 0.0)


# What is refused.


def test_rows_must_be_said():
    told = r"independent.*each row is an output of its own run.*one_run.*canaries from a single run"
    with pytest.raises(TypeError, match=r"rows must be 'independent' or 'one_run', got None"):
        audit_outputs([1.0], [2.0])
    with pytest.raises(TypeError, match=told):
        audit_outputs([1.0], [2.0])
    with pytest.raises(ValueError, match=told):
        audit_outputs([1.0], [2.0], rows="both")
    with pytest.raises(TypeError, match=told):
        audit_outputs([1.0], [2.0], rows=["independent"])


FINE = [float(n) for n in range(8)]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"outputs": FINE[:3]}, ValueError, r"at least 4 rows on each side, got \(3, 8\)"),
        ({"outputs_prime": FINE[:3]}, ValueError, r"at least 4 rows on each side, got \(8, 3\)"),
        ({"outputs": []}, ValueError, "outputs must be at least one row"),
        ({"outputs": 1.0}, TypeError, "outputs must be an array with one row an output"),
        ({"outputs": [[1.0], [2.0, 3.0]]}, TypeError, "outputs must be an array with one row"),
        ({"outputs": np.ones(8) * 1j}, TypeError, "outputs must be an array"),
        ({"outputs": np.ma.masked_less(FINE, 3)}, ValueError, "without masked entries"),
        (
            {"outputs_prime": np.ones((8, 2))},
            ValueError,
            r"like outputs, float64 of shape \(size\)",
        ),
        ({"outputs_prime": list("abcdefgh")}, ValueError, "outputs_prime must be like outputs"),
        ({"outputs_prime": None}, TypeError, "outputs_prime must be the outputs on x'"),
        ({"claim": -1.0}, ValueError, "claim must be a finite number at least 0"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"confidence": 1.0}, ValueError, "confidence must be"),
        ({"bound": "one_run"}, ValueError, "bound must be one of 'clopper_pearson', 'exact'"),
        ({"bound": 1}, TypeError, "bound must be one of"),
        ({"attack": 3}, TypeError, "attack must be a callable"),
        ({"attack": lambda *pilot: 3}, TypeError, "event must be a callable"),
        ({"attack": lambda *pilot: lambda rows: 3}, ValueError, "event must be a function that"),
        ({"attack": Threshold(5)}, ValueError, "attack must be one that applies to these outputs"),
        ({"attack": MajorityVote()}, TypeError, "must be"),
        ({"pair": 3}, TypeError, "pair must be a Pair"),
        ({"count_share": 1.0}, ValueError, "count_share must be a finite number above 0 and below"),
        ({"count_share": "half"}, TypeError, "count_share must be"),
        ({"guesses": 4}, ValueError, "guesses must be None where rows = 'independent', got 4"),
        ({"column": 0}, ValueError, "column must be None where outputs are arrays"),
        ({"label": "side"}, TypeError, "outputs must be the path of a file where label is given"),
        ({"rng": -1}, ValueError, "rng must be"),
    ],
)
def test_independent_rows_refuse(change, error, text):
    arguments = {"outputs": FINE, "outputs_prime": FINE, "rows": "independent", **change}
    sides = arguments.pop("outputs"), arguments.pop("outputs_prime")
    with pytest.raises(error, match=text):
        audit_outputs(*sides, **arguments)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"outputs": [0.0, np.nan]},
            ValueError,
            r"scores that can be ranked .* got 'NaN in row 2'",
        ),
        ({"outputs": np.ones((4, 2)), "outputs_prime": np.ones((4, 2))}, ValueError, "one score"),
        ({"outputs": ["a"], "outputs_prime": ["b"]}, TypeError, "one real number for each canary"),
        ({"attack": Threshold()}, ValueError, "attack must be None where rows = 'one_run'"),
        ({"pair": ([0], [1])}, ValueError, "pair must be None where rows = 'one_run'"),
        ({"count_share": 0.5}, ValueError, "count_share must be None where rows = 'one_run'"),
        ({"bound": "exact"}, ValueError, "bound must be one of 'one_run', 'one_run_fdp'"),
        ({"bound": "one_run_fdp"}, ValueError, "delta must be above 0 for the bound one_run_fdp"),
        ({"guesses": 0}, ValueError, "guesses must be an integer from 1 to 16, got 0"),
        ({"guesses": 17}, ValueError, "guesses must be an integer from 1 to 16, got 17"),
        ({"guesses": 1.5}, ValueError, "guesses must be a finite number above 0 and at most 1"),
        ({"guesses": 0.0}, ValueError, "guesses must be a finite number above 0"),
        ({"guesses": True}, TypeError, "guesses must be an integer"),
        ({"guesses": "all"}, TypeError, "guesses must be an integer"),
        ({"guesses": (1, 2, 3)}, ValueError, r"guesses must be a number, a share, or a tuple"),
        ({"guesses": (0, 0)}, ValueError, "guesses out must be an integer from 1 to 16"),
        ({"guesses": (9, 8)}, ValueError, "guesses out must be an integer from 0 to 7"),
    ],
)
def test_one_run_refuses(change, error, text):
    arguments = {"outputs": FINE, "outputs_prime": FINE, "rows": "one_run", **change}
    sides = arguments.pop("outputs"), arguments.pop("outputs_prime")
    with pytest.raises(error, match=text):
        audit_outputs(*sides, **arguments)


@pytest.mark.parametrize(
    "values", [(0, 0, 0, 0, 5), (3, 4, 0, 0, 5), (3, 3, 3, 3, 5), (1, 1, 0, 0, 0)]
)
def test_guesses_out_of_range(values):
    with pytest.raises(ValueError, match="must be an integer"):
        Guesses(*values)


def test_a_label_with_one_side_only(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("score,member\n1,1\n2,1\n")
    with pytest.raises(ValueError, match=r"label must be a column with rows for both sides"):
        audit_outputs(path, rows="one_run", label="member")
    with pytest.raises(ValueError, match="outputs_prime must be None where label is given"):
        audit_outputs(path, [1.0], rows="one_run", label="member")


def test_every_kind_of_rows_has_its_bounds():
    assert list(BOUNDS["independent"]) == ["clopper_pearson", "exact"]
    assert list(BOUNDS["one_run"]) == ["one_run", "one_run_fdp"]


# The command's work, without its parser.

ASKED = {
    "rows": "independent", "claim": 0.5, "no_claim": False, "delta": 0.0, "confidence": 0.95,
    "attack": None, "bound": None, "count_share": None, "guesses": None, "column": (),
    "label": None, "seed": 1, "plot": None, "as_json": False,
}  # fmt: skip


def command(*names, **change):
    asked = AskedOutputs(files=tuple(map(str, names)), **{**ASKED, **change})
    return guard(lambda: _cli_outputs.run(asked))


def test_the_command_prints_the_report_and_exits_with_the_verdict(files, capsys):
    folder = files[0]
    pair = folder / "x.npy", folder / "y.csv"
    assert command(*pair) == 1
    audit = audit_outputs(*pair, rows="independent", claim=0.5, rng=1)
    assert capsys.readouterr().out == f"{audit}\n"
    assert command(*pair, claim=9.0) == 0
    assert command(*pair, claim=None, no_claim=True) == 0
    assert "no claim given" in capsys.readouterr().out
    assert command(*pair, attack="threshold", bound="exact", count_share=0.4, as_json=True) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["bound"] == "exact"
    assert record["evidence"]["n"] == 1200
    plot = folder / "audit.png"
    assert command(*pair, plot=str(plot)) == 1
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("guesses", ["100", "0.02", "60,40", None])
def test_the_command_for_one_run(tmp_path, capsys, guesses):
    path = tmp_path / "canaries.csv"
    included, others = canaries(np.random.default_rng(1), 5000)
    rows = [f"{score!r},7,in\n" for score in included.tolist()]
    rows += [f"{score!r},7,out\n" for score in others.tolist()]
    path.write_text("score,epoch,member\n" + "".join(rows))
    asked = {"rows": "one_run", "guesses": guesses, "label": "member", "column": ("score",)}
    assert command(path, claim=0.2, as_json=True, **asked) == 1
    record = json.loads(capsys.readouterr().out)["evidence"]
    wanted = {"100": (50, 50), "0.02": (50, 50), "60,40": (60, 40), None: (2500, 2500)}[guesses]
    assert (record["guessed_in"], record["guessed_out"]) == wanted
    assert command(path, claim=1.0, **asked) == 0


def test_the_command_says_doubts_on_stderr(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.tile(SMOOTH, 2))
    np.save(tmp_path / "y.npy", SMOOTH + 0.001)
    assert command(tmp_path / "x.npy", tmp_path / "y.npy") == 0
    shown = capsys.readouterr()
    doubt = "rows are repeated: each row of outputs occurs 2 times or more"
    assert shown.err == f"warning: {doubt}\n"
    assert f"  note         {doubt}\n" in shown.out


@pytest.mark.parametrize(
    ("names", "change", "text"),
    [
        ((), {}, "name two files, the outputs on x and those on x' (or one, with --label COLUMN)"),
        (("x.npy",), {}, "name two files"),
        (("x.npy", "y.csv"), {"label": "member"}, "name one file where --label is given"),
        (("x.npy", "y.csv"), {"claim": None}, "give --claim EPSILON, or --no-claim to estimate"),
        (("x.npy", "y.csv"), {"no_claim": True}, "--claim and --no-claim exclude each other"),
        (("x.npy", "y.csv"), {"rows": None}, "--rows must be 'independent' or 'one_run', got None"),
        (("x.npy", "none.csv"), {}, "No such file or directory"),
        (("x.npy", "x.doc"), {}, "a file that ends in one of .csv"),
        (("x.npy", "y.csv"), {"attack": "luck"}, "--attack must be one of 'auto'"),
        (("x.npy", "y.csv"), {"guesses": "3"}, "--guesses must be None where rows"),
        (("x.npy", "y.csv"), {"rows": "one_run", "guesses": "a,b"}, "--guesses must be a number"),
        (("x.npy", "y.csv"), {"count_share": 2.0}, "--count-share must be a finite number"),
        (("x.npy", "y.csv"), {"claim": -1.0}, "--claim must be"),
        (("x.npy", "y.csv"), {"plot": "x.txt"}, "--plot must end in one of"),
        (("both.csv",), {"label": "side"}, "column must be one of 'score', 'member' in both.csv"),
    ],
)
def test_bad_usage(files, capsys, names, change, text):
    assert command(*(files[0] / name for name in names), **change) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert text in shown.err
