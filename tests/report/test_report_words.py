"""What reports say of a claim that stands, and of the reading of outputs."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import astuple, replace
from functools import partial

import numpy as np
import pytest
from shared_messages import find_missing

import dpcore
from dpcore import Audit, Counts, Laplace, Pair, audit, audit_outputs, bounds, cli, published
from dpcore.attacks import Coordinatewise, MajorityVote, Threshold, Timing, candidates
from dpcore.errors import AssumptionWarning
from dpcore.results.audit_page import make_page
from dpcore.results.audit_text import (
    describe_next_steps,
    list_report_rows_without_time,
    propose_trace,
    refutation_advice,
)

PAIR = Pair(0.0, 1.0)
LAPLACE = published.LaplaceMechanism(1.0)
STANDING = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1)
"""Its loss is 1.25: the claim stands."""


def noisy(x, size, rng):
    return x + rng.laplace(scale=1.0, size=size)


def always(outputs, outputs_prime, pair):
    return lambda drawn: np.ones(len(drawn), bool)


def never(outputs, outputs_prime, pair):
    return lambda drawn: np.zeros(len(drawn), bool)


def of(report, label):
    return [line for name, line in list_report_rows_without_time(report) if name == label]


# Events of probability 0 and 1.


@pytest.mark.parametrize(
    ("attack", "said"), [(always, "every draw on both sides"), (never, "no draw on either side")]
)
@pytest.mark.parametrize("options", [{}, {"delta": 1e-3}, {"bound": "exact"}])
def test_an_event_that_always_or_never_happens_is_called_so(attack, said, options):
    report = audit(noisy, PAIR, attack=attack, claim=1.0, trials=1000, rng=1, **options)
    first, second = report.power.split(". ")
    assert first == f"power: this event happened in {said} and cannot refute the claim"
    assert second == "Other events were not tested."
    assert "times as likely" not in str(report)
    assert of(report, "needed")[0].startswith("more trials, which choose another event; or ")
    assert of(report, "needed")[0].endswith("This event cannot refute the claim.")


def test_an_event_of_probability_one_on_one_side_still_has_power():
    # The twin: on the other side it does not always happen.
    report = replace(STANDING, counts=Counts(1000, 1000, 900, 1000), direction="x")
    assert re.search(r"if this event were [\d.]+ times as likely on x as on x'\. ", report.power)


def test_an_event_that_never_happened_where_it_was_expected_has_no_invented_probability():
    report = replace(STANDING, counts=Counts(0, 1000, 300, 1000), direction="x")
    said = "power: this event never happened on x, where the pilot expected"
    assert report.power.startswith(said)
    assert "probability 0.001" not in report.power
    swapped = replace(report, counts=Counts(300, 1000, 0, 1000), direction="x_prime")
    assert "never happened on x'," in swapped.power
    # The twin: the same counts the right way round.
    right = replace(report, direction="x_prime", claim=5.5)
    assert right.power.endswith("probability, not even one that never happens on x.")


# The next step.


def test_a_claim_that_could_be_refuted_says_how_many_trials_it_needs():
    report = audit(Laplace(0.8), trials=2000, claim=1.2, rng=1, attack=Threshold())
    assert report.refuted is False
    (said,) = of(report, "needed")
    found = re.match(
        r"about ([\d,]+) trials on each side, if the frequencies stay the same; or another attack "
        r"\(auto\) or another pair \(dpcore.pairs.search\)\.$",
        said,
    )
    trials = int(found[1].replace(",", ""))
    assert trials > report.trials
    k, _, k_prime, _ = (n * trials // report.trials for n in astuple(report.counts))
    many = replace(report, counts=Counts(k, trials, k_prime, trials))
    assert many.refuted
    assert of(many, "needed") == []


def test_a_claim_that_holds_needs_another_pair_or_attack():
    (said,) = of(STANDING, "needed")
    score = "an own score (dpcore.attacks.Threshold(score=...))"
    assert said == (
        f"another pair (dpcore.pairs.search) or {score}. This event cannot refute the claim."
    )
    three = dpcore.pairs.zeros_ones(3)
    wide = audit(Laplace(2.0), three, claim=1.7, trials=10**4, rng=1)
    assert wide.epsilon_lower > 0.85
    assert "or another attack (Coordinatewise, Classifier)" in describe_next_steps(wide)
    # Below half of the claim a score of the user's own is more promising.
    assert f"or {score}" in describe_next_steps(replace(wide, claim=7.0))
    pooled = audit(Laplace(2.0), three, claim=9.0, trials=1000, rng=1, attack=Coordinatewise())
    said = "another attack (auto, Classifier) or another pair (dpcore.pairs.search)."
    assert of(pooled, "needed") == [said]


def test_a_spread_pair_hears_of_one_entry():
    one = 'the same distance in one entry (dpcore.pairs.patterns(8, "one")) or another pair'
    wide = audit(LAPLACE, LAPLACE.default_pair(8), trials=1000, rng=1)
    related = replace(wide, mechanism="f", neighbour="L1(radius=1.0)")
    assert all(one in describe_next_steps(report) for report in (wide, related))
    # Where the claim is about these inputs, or about a change in every entry, there is none such.
    for other in (replace(related, neighbour=""), replace(related, neighbour="Linf(radius=1.0)")):
        assert one not in describe_next_steps(other)
    assert one not in describe_next_steps(replace(related, pair=dpcore.pairs.patterns(8, "one")[0]))


def test_more_draws_come_first_where_they_choose_another_event():
    # With 20,000 trials all of these are refuted; 400 often choose an event that shows too little.
    weak = 0
    for seed in range(30):
        report = audit(Laplace(0.8), claim=1.0, confidence=0.9999, trials=400, rng=seed)
        assert report.refuted is False
        step = describe_next_steps(report)
        assert step.startswith(("about ", "more trials, which choose another event; or "))
        weak += "This event cannot refute the claim." in step
    assert weak >= 3
    rng = np.random.default_rng(1)
    sides = rng.normal(0.0, 0.5, 5000), rng.normal(1.0, 0.5, 5000)
    rows = audit_outputs(*sides, rows="independent", claim=4.0, delta=1e-5, rng=1)
    assert refutation_advice(rows).startswith("more rows, which choose another event; or ")
    # The twin: as many trials as `plan` asks for are no longer few.
    many = audit(Laplace(1.2), claim=1.0, trials=10**5, rng=1)
    assert describe_next_steps(many).startswith("another pair")


def test_a_claim_on_every_entry_needs_pairs_in_which_every_entry_changes():
    eight, linf = dpcore.pairs.zeros_ones(8), dpcore.pairs.Linf(1.0)
    report = audit(Laplace(9.0), eight, neighbour=linf, claim=1.0, trials=2000, rng=1)
    assert describe_next_steps(report).startswith(
        'pairs in which every entry changes (dpcore.pairs.patterns(8, "all"))'
    )
    # The twins: one of these patterns, and a claim on the sum of all changes.
    for pair in dpcore.pairs.patterns(8, "all"):
        assert '"all"' not in describe_next_steps(replace(report, pair=pair))
    one = audit(Laplace(9.0), eight, neighbour=dpcore.pairs.L1(8.0), claim=1.0, trials=2000, rng=1)
    assert '"all"' not in describe_next_steps(one)


def test_a_vote_that_cannot_see_enough_asks_for_no_trials():
    report = audit(LAPLACE, trials=10**4, rng=1, attack=MajorityVote())
    assert report.exact < 1.0
    lucky = replace(report, counts=Counts(4000, 10**4, 1450, 10**4), direction="x")
    assert lucky.refuted is False
    seen = "sees a loss of 0.8997 on this pair, with any number of trials."
    assert describe_next_steps(lucky).endswith(seen)
    # The twin: the same counts of an event without a closed form.
    assert describe_next_steps(replace(lucky, event=len)).startswith("about ")


def test_a_wrong_direction_asks_for_a_larger_pilot():
    report = replace(STANDING, counts=Counts(100, 1000, 600, 1000), direction="x", pilot=50)
    assert describe_next_steps(report).startswith("a larger pilot than 50 draws per side: it chose")
    assert replace(report, direction="x_prime").refuted


def test_a_looser_bound_names_the_tighter_one():
    fields = {"counts": Counts(600, 1000, 150, 1000), "direction": "x", "claim": 1.15}
    report = replace(STANDING, bound="anytime", stop="looked", **fields)
    assert report.refuted is False
    assert describe_next_steps(report).startswith(
        'a fresh audit with bound="clopper_pearson" and 1,000'
    )
    assert replace(report, bound="clopper_pearson", stop="fixed").refuted


def test_recorded_outputs_say_how_many_rows_they_need():
    sides = np.random.default_rng(1).laplace(size=(2, 2000)) + np.array([[0.0], [1.0]])

    def run(claim):
        return dpcore.audit_outputs(*sides, rows="independent", claim=claim, rng=1)

    far, near = run(2.0), run(0.9)
    assert re.search(r"needed +about [\d,]+ counted rows on each side", str(near))
    assert "more rows, which choose another event; or " in str(far)
    assert "This event cannot refute the claim." in str(far)
    assert "needed" not in str(run(0.1))
    assert refutation_advice(run(None)) == ""
    assert ["an own score" in refutation_advice(report) for report in (far, near)] == [True, False]
    free = np.zeros(1000), np.ones(1000)
    never = dpcore.audit_outputs(*free, rows="independent", claim=50.0, rng=1)
    assert refutation_advice(never).endswith(
        "no machine draws the counted rows that could refute this one."
    )


def test_guesses_that_see_less_than_half_of_the_claim_hear_of_better_scores():
    rng = np.random.default_rng(1)
    sides = 1.0 + rng.normal(size=1000), rng.normal(size=1000)

    def run(claim):
        return refutation_advice(dpcore.audit_outputs(*sides, rows="one_run", claim=claim, rng=1))

    assert run(3.0) == "canaries that stand out more, or scores that separate them better."
    # Above half, and where so few guesses certify less than the claim.
    assert run(1.0) == ""
    assert run(20.0) == "more guesses than any run has, or a smaller claim or confidence."


# No two rows contradict each other.

MORE_HELPS = re.compile(r"about [\d,.e+]+ |more trials|more than 1e\+18|a fresh audit")
NOTHING_HELPS = re.compile(r"no number of|any number of|keeps the claim")
ONE = ([0.0], [1.0])


def equal(x, size, rng):
    return rng.normal(size=(size, 1))


def free(x, size, rng):
    return np.repeat(x[None], size, 0)


def timed(x, size, rng):
    return x + rng.laplace(size=(size, 1))


THREE = dpcore.pairs.zeros_ones(3)
AUDITS = {
    "noise-free, 8": (free, ONE, 8.0, {}),
    "noise-free, 30": (dpcore.Identity(), ONE, 30.0, {}),
    "noise-free, 50": (free, ONE, 50.0, {}),
    "noise-free, vote": (dpcore.Identity(), ONE, 50.0, {"attack": MajorityVote()}),
    "noise-free, delta": (free, ONE, 50.0, {"delta": 0.01}),
    "never negative": (published.DPText(1.0), None, 50.0, {}),
    "equal laws": (equal, ONE, 1.0, {}),
    "equal laws, claim 0": (equal, ONE, 0.0, {}),
    "half noise": (published.HalfNoise(1.0), None, 1.9, {}),
    "half noise, vote": (published.HalfNoise(1.0), None, 1.6, {"attack": MajorityVote()}),
    "exact claim": (Laplace(1.0), ONE, 1.0, {}),
    "exact claim, vote": (LAPLACE, None, None, {"attack": MajorityVote()}),
    "exact claim, spread": (LAPLACE, LAPLACE.default_pair(16), 1.0, {}),
    "gaussian": (dpcore.Gaussian(1.0), ONE, 4.0, {"delta": 1e-3}),
    "calibrated": (dpcore.calibration.gaussian_analytic(1.0, 1e-3, 1.0), ONE, 1.0, {"delta": 1e-3}),
    "timed": (timed, ONE, 2.0, {"attack": Timing()}),
    "pooled": (Laplace(2.0), THREE, 9.0, {"attack": Coordinatewise()}),
    "split error": (Laplace(1.0), ONE, 60.0, {"floats": True}),
    "always": (timed, ONE, 2.0, {"attack": always}),
    "stopped": (Laplace(1.0), ONE, 1.5, {"stop": "refuted"}),
}  # fmt: skip


@pytest.fixture(scope="module", params=AUDITS)
def standing(request):
    mechanism, pair, claim, options = AUDITS[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit(mechanism, pair, claim=claim, trials=1000, rng=1, **options)


def find_contradictions(report):
    """The rules that the rows of an audit break, and the advice that is not short."""
    advice = [line for label in ("needed", "plan", "note") for line in of(report, label)]
    more, nothing = (any(map(words.search, advice)) for words in (MORE_HELPS, NOTHING_HELPS))
    seen = report.bound_counts
    found = []
    if more and nothing:
        found.append("more trials help, and nothing helps")
    if nothing and seen.k_prime == 0 < seen.k and not _harmless(report):
        found.append("the bound grows without end")
    if report.exact is not None:
        seen_by_vote = report.exact > report.claim
        if more > seen_by_vote or nothing > (not seen_by_vote):
            found.append("the closed form says otherwise")
    if len(of(report, "needed")) != 1:
        found.append("not one next step")
    found += [line for line in advice if line.count(". ") > 1 or len(line) > 220]
    return found


def _harmless(report):
    return report.declared_loss is not None and report.declared_loss <= report.claim


def test_no_two_rows_contradict_each_other(standing):
    assert (bool(standing.refuted), find_contradictions(standing)) == (False, [])


@pytest.mark.parametrize("name", ["half noise, vote", "noise-free, vote"])
@pytest.mark.parametrize("counts", [(20, 1000, 40, 1000), (40, 1000, 20, 1000), (0, 9, 9, 9)])
def test_lucky_and_unlucky_counts_contradict_no_closed_form(name, counts):
    mechanism, pair, claim, options = AUDITS[name]
    report = audit(mechanism, pair, claim=claim, trials=1000, rng=1, **options)
    for direction in ("x", "x_prime"):
        drawn = replace(report, counts=Counts(*counts), direction=direction)
        assert find_contradictions(drawn) == []


def test_a_contradiction_is_found():
    # What reports of version 0.1 said of the same audit.
    said = "the vote sees a loss of inf > 50: more trials may refute, and no number of them does"
    report = replace(audit(equal, ONE, claim=1.0, trials=1000, rng=1), notes=(said,))
    assert find_contradictions(report) == ["more trials help, and nothing helps"]


def test_a_noise_free_mechanism_hears_how_many_trials_its_claim_takes():
    report = audit(free, ONE, claim=8.0, trials=1000, rng=1)
    (step,) = of(report, "needed")
    number = re.fullmatch(r"at least ([\d,]+) trials on each side, or a smaller claim .*", step)[1]
    trials = int(number.replace(",", ""))
    assert audit(free, ONE, claim=8.0, trials=trials, rng=1).refuted
    assert audit(free, ONE, claim=8.0, trials=int(0.9 * trials), rng=1).refuted is None
    for claim in (30.0, 42.0, 700.0):
        (step,) = of(replace(report, claim=claim), "needed")
        assert step.startswith("a smaller claim or a claim with a delta: no machine draws")


# A claim that stands is no pass mark.


def test_the_command_line_paints_refuted_claims_only(monkeypatch):
    painted = []

    class Console:
        def __init__(self, **options):
            pass

        def print(self, line, style="", **options):
            painted.append((line.split()[0], style))

    monkeypatch.setattr("rich.console.Console", Console)
    monkeypatch.setenv("FORCE_COLOR", "1")
    styles = []
    for words in ("laplace", "half-noise", "laplace --no-claim"):
        painted.clear()
        cli.main(f"audit {words} --epsilon 1 --trials 1e5 --seed 1".split())
        styles.append(dict(painted)["verdict"])
    assert styles == ["", "bold red", "bold yellow"]


def test_the_page_writes_refuted_claims_only_in_bold():
    assert "<strong>refuted</strong>" in replace(STANDING, claim=0.1).to_html()
    bold, said = ["<strong>", "font-weight: bold"], "another pair (dpcore.pairs.search)"
    assert find_missing(STANDING.to_html(), *bold, said) == bold


# Two certificates at 95 %.


def test_bounds_that_do_not_hold_jointly_say_so():
    said = "`certified` and `rounding` have 95 % confidence each, at least 90 % together."
    assert said in of(STANDING, "note")
    assert not find_missing(STANDING.to_html(), said, "not all of them at once")
    split = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1, floats=True)
    assert said not in of(split, "note")
    # One certificate: nothing to be said.
    vote = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1, attack=MajorityVote())
    assert ("together" in str(vote), "at once" in vote.to_html()) == (False, False)


def test_the_row_of_rounding_has_the_share_of_the_error_that_it_has_in_the_bound():
    split = audit(Laplace(10.0), trials=10**5, claim=0.1, rng=1, floats=True)
    assert of(split, "rounding") == ["the witness is a property of the code as it runs"]
    assert split.epsilon_lower == bounds.clopper_pearson(split.bound_counts, 0.0, 0.975)
    other = bounds.clopper_pearson(split.floating_point.bound_counts, 0.0, 0.975)
    assert of(split, "other event")[0].startswith(f"epsilon >= {other:.4f}: entry 0 ")
    alone = audit(Laplace(10.0), trials=10**5, claim=0.1, rng=1)
    assert f"epsilon >= {alone.floating_point.epsilon_lower:.4f}" in of(alone, "rounding")[0]
    assert alone.floating_point.epsilon_lower > split.epsilon_lower


def test_the_bound_at_the_audits_own_delta_is_its_bound():
    for delta in (0.0, 1e-3):
        split = audit(Laplace(10.0), trials=10**5, claim=0.1, delta=delta, rng=1, floats=True)
        assert split.epsilon_lower > 1.0
        assert split.epsilon_lower_at(delta) == split.epsilon_lower
        # The twin: without the finding the event alone certifies next to nothing.
        alone = replace(split.exchange_findings(), floats=False)
        assert alone.epsilon_lower_at(delta) == alone.epsilon_lower < 0.11
    assert split.epsilon_lower_at(0.5) < split.epsilon_lower_at(0.0)


# A pilot that is too small.


@pytest.mark.parametrize("pilot", [2, 31])
def test_a_pilot_that_is_too_small_is_named(pilot):
    with pytest.warns(AssumptionWarning, match=f"pilot={pilot} draws per side are too few"):
        report = audit(noisy, PAIR, claim=0.1, trials=1000, pilot=pilot, rng=1)
    (note,) = (note for note in report.notes if "at least 32" in note)
    assert note in of(report, "note")


def test_a_pilot_that_is_large_enough_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"trials": 1000, "pilot": 32}, {"trials": 20}):
            assert "pilot" not in str(audit(noisy, PAIR, claim=0.1, rng=1, **options).notes)
        vote = audit(Laplace(1.0), claim=0.1, trials=1000, pilot=2, attack=MajorityVote(), rng=1)
        assert vote.notes == ()


ANSWERS = np.array(["never", "weekly", "daily"])
FIELDS = [f"question_{number:02d}" for number in range(12)]


def draw_answers(answer, size, rng, kept=0.8):
    rows = ANSWERS[rng.integers(3, size=(size, len(FIELDS)))]
    rows[rng.random(size) < kept, 7] = answer
    return [dict(zip(FIELDS, row, strict=True)) for row in rows.tolist()]


def audited(mechanism=draw_answers, pair=("daily", "never"), **more):
    return dpcore.audit(mechanism, pair, **{"claim": 1.0, "trials": 2000, "rng": 1, **more})


@pytest.mark.parametrize(
    ("make", "left_out"),
    [
        (lambda i: {j % 3000 for j in range(7 * i, 7 * i + 40)}, 3000 - 1024),
        (lambda i: "".join(chr(256 + (i + j) % 100) for j in range(9)), 100 - 64),
        (lambda i: [f"word {j % 2000}" for j in range(5 * i, 5 * i + 30 + i % 2)], 2000 - 1024),
    ],
    ids=["members of sets", "letters", "members of lists"],
)
def test_what_is_left_out_at_one_place_is_counted(make, left_out):
    outputs = np.empty(600, object)
    outputs[:] = [make(i) for i in range(600)]
    read = candidates.differing_parts(outputs, outputs, "outputs")[1]
    assert read.found - read.compared >= left_out
    assert candidates.differing_parts(outputs[:9], outputs[:9], "outputs")[1].is_whole


def test_strings_of_an_array_that_are_left_out_are_counted():
    words = np.array([[f"word {j % 2000}" for j in range(5 * i, 5 * i + 30)] for i in range(600)])
    read = candidates.differing_parts(words, words[::-1], "outputs")[1]
    assert read.found - read.compared >= 2000 - 1024


@pytest.fixture(scope="module")
def surveyed():
    """The audit of answers with the usual settings."""
    return audited()


def test_a_report_says_that_all_was_read(surveyed):
    report = surveyed
    assert report.read.is_whole
    assert report.read.found == report.read.compared > len(FIELDS)
    said = f"all {report.read.found:,} parts, in {report.read.outputs:,} pilot outputs per side"
    assert f"  read         {said}\n" in str(report)
    assert all(said in page for page in (make_page(report), report._repr_html_()))
    assert json.loads(report.to_json())["read"]["found"] == report.read.found
    assert Audit.from_json(report.to_json()).read == report.read


def test_what_is_left_out_is_counted_and_said(monkeypatch, surveyed):
    whole = surveyed.read.found
    monkeypatch.setattr(candidates, "MOST_PARTS", 20)
    report = audited()
    assert (report.read.found, report.read.compared) == (whole, 20)
    assert not report.read.is_whole
    assert f"20 of {whole:,} parts" in str(report)


def test_the_middle_of_a_long_text_is_left_out_and_said():
    def texts(x, size, rng):
        return dpcore.mechanisms.answers.to_object_array(
            ["".join(row) for row in rng.choice(["a", "b"], size=(size, 3000)).tolist()]
        )

    report = audited(texts, trials=200)
    assert report.read.found - report.read.compared == 3000 - 2 * 1024


def test_outputs_inside_the_event_are_shown_with_their_counts():
    def word(answer, size, rng):
        return np.where(rng.random(size) < 0.8, answer, ANSWERS[rng.integers(3, size=size)])

    report = audited(word, trials=20_000)
    assert str(report.event) in ('output is "daily"', 'output is "never"')
    (one,) = report.inside
    assert one.text in ("'daily'", "'never'")
    assert max(one.k, one.k_prime) > 10 * min(one.k, one.k_prime) > 0
    assert f"  inside       {one.text} ({one.k:,} on x, {one.k_prime:,} on x')\n" in str(report)
    assert Audit.from_json(report.to_json()).inside == report.inside


def test_a_shown_output_is_cut_and_at_most_five_are_shown(surveyed):
    report = surveyed
    assert len(report.inside) == 5
    assert all(len(one.text) <= 80 for one in report.inside)
    # Distinct outputs, though cut they may look alike.
    assert len({one.text for one in report.inside}) <= 5


def test_without_source_no_output_is_shown(surveyed):
    report = audited(source=False)
    assert report.inside == ()
    assert "inside" not in str(report)
    assert report.counts == surveyed.counts
    rng = np.random.default_rng(1)
    sides = [draw_answers(answer, 2000, rng) for answer in ("daily", "never")]
    recorded = partial(audit_outputs, *sides, rows="independent", claim=1.0, rng=1)
    assert (len(recorded().inside), recorded(source=False).inside) == (5, ())
    assert "  read         all " in str(recorded())


def test_real_numbers_that_do_not_repeat_are_not_shown():
    report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
    assert report.inside == ()
    # A single number needs no word on what was read.
    assert "  read " not in str(report)


def bits(x, size, rng):
    rest = rng.integers(2**40, size=size) & ~(1 << 37)
    return rest | (np.where(rng.random(size) < 0.1, 1 - x, x) << 37)


def keyed(x, size, rng):
    towns = [f"town_{number:02d}" for number in range(30)]
    return [
        {town: 1 for town in [*rng.choice(towns, 20, False).tolist(), "great" if x else "small"]}
        for _ in range(size)
    ]


@pytest.mark.parametrize(
    ("mechanism", "pair", "words"),
    [
        (
            draw_answers, ("daily", "never"),
            ('question_07 is "daily"', 'question_07 is "never"'),
        ),
        (bits, (1, 0), ("bit 37 is 1", "bit 37 is 0")),
        (keyed, (1, 0), ('great is there', 'small is there')),
    ],
)  # fmt: skip
def test_an_event_is_told_in_the_words_of_the_user(mechanism, pair, words):
    assert str(audited(mechanism, pair, trials=20_000).event) in words


def test_a_trace_is_proposed_where_the_claim_of_a_function_is_refuted():
    report = audit(noisy, PAIR, attack=Threshold(), claim=0.2, trials=2000, rng=1)
    line = "dpcore.trace(mechanism, pair) computes which line loses how much on a pair."
    assert line in of(report, "note")
    own = dpcore.repeat(lambda x, rng: x + rng.laplace())
    assert propose_trace(replace(report, mechanism=own)) == line
    tool = dpcore.command(["node", "tool.js", "{x}", "{size}"])
    for mechanism in (Laplace(1.0), LAPLACE, tool, "module.noisy"):
        assert propose_trace(replace(report, mechanism=mechanism)) == ""
    for other in ({"claim": 2.0}, {"claim": None}, {"route": "timed"}, {"floats": True}):
        assert propose_trace(replace(report, **other)) == ""
