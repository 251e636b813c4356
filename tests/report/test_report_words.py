"""What reports say of a claim that stands, and what they must not say."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpcore
from dpcore import Counts, Laplace, Pair, audit, cli, published
from dpcore.attacks import Coordinatewise, MajorityVote, Threshold
from dpcore.errors import AssumptionWarning
from dpcore.report.next_step import more_rows, next_step
from dpcore.report.text import rows

PAIR = Pair(0.0, 1.0)
STANDING = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1)
"""Its loss is 1.25: the claim stands."""


def noisy(x, size, rng):
    return x + rng.laplace(scale=1.0, size=size)


def always(outputs, outputs_prime, pair):
    return lambda drawn: np.ones(len(drawn), bool)


def never(outputs, outputs_prime, pair):
    return lambda drawn: np.zeros(len(drawn), bool)


def of(report, label):
    return [line for name, line in rows(report) if name == label]


# Events of probability 0 and 1.


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (always, "this event happened in every draw on both sides"),
        (never, "this event happened in no draw on either side"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"delta": 1e-3}, {"bound": "exact"}])
def test_an_event_that_always_or_never_happens_is_called_so(attack, said, options):
    report = audit(noisy, PAIR, attack=attack, claim=1.0, trials=1000, rng=1, **options)
    assert report.power == (
        f"{said}: it cannot tell the two inputs apart, and says nothing about other events"
    )
    assert "times as likely" not in str(report)
    assert of(report, "needed")[0].endswith("with this event no number of trials is enough")


def test_an_event_of_probability_one_on_one_side_still_has_power():
    # The twin: on the other side it does not always happen.
    report = replace(STANDING, counts=Counts(1000, 1000, 900, 1000), direction="x")
    assert "of probability 1 on one side, been" in report.power
    assert "times as likely there as on the other" in report.power


def test_an_event_that_never_happened_where_it_was_expected_has_no_invented_probability():
    report = replace(STANDING, counts=Counts(0, 1000, 300, 1000), direction="x")
    assert report.power.startswith("this event never happened on x, where the pilot expected")
    assert "probability 0.001" not in report.power
    swapped = replace(report, counts=Counts(300, 1000, 0, 1000), direction="x_prime")
    assert "never happened on x'," in swapped.power
    # The twin: the same counts the right way round.
    right = replace(report, direction="x_prime", claim=30.0)
    assert right.power.startswith("had this event (probability 0.3")


# The next step.


def test_a_claim_that_could_be_refuted_says_how_many_trials_it_needs():
    report = audit(Laplace(0.8), trials=2000, claim=1.2, rng=1, attack=Threshold())
    assert report.refuted is False
    (said,) = of(report, "needed")
    found = re.match(
        r"about ([\d,]+) trials on each side, if the frequencies stay as they are; or another "
        r"pair of neighbours \(dpcore.pairs.search looks for one\) or another attack \(auto\)$",
        said,
    )
    trials = int(found[1].replace(",", ""))
    assert trials > report.trials
    k, k_prime = (
        count * trials // report.trials for count in (report.counts.k, report.counts.k_prime)
    )
    many = replace(report, counts=Counts(k, trials, k_prime, trials))
    assert many.refuted
    assert of(many, "needed") == []


def test_a_claim_that_holds_needs_another_pair_or_attack():
    (said,) = of(STANDING, "needed")
    assert said.endswith("at these frequencies no number of trials is enough")
    assert "about" not in said
    assert "another pair of neighbours" in said
    assert "another attack (one of your own)" in said
    wide = audit(Laplace(2.0), dpcore.pairs.zeros_ones(3), claim=9.0, trials=1000, rng=1)
    assert "another attack (Coordinatewise, Classifier)" in of(wide, "needed")[0]
    pooled = audit(
        Laplace(2.0), dpcore.pairs.zeros_ones(3), claim=9.0, trials=1000, rng=1,
        attack=Coordinatewise(),
    )  # fmt: skip
    assert of(pooled, "needed")[0].endswith("another attack (auto, Classifier)")


def test_a_spread_pair_hears_of_one_entry():
    one = 'the same distance in one entry (dpcore.pairs.patterns(dim, "one")), another pair'
    wide = audit(published.LaplaceMechanism(1.0), published.LaplaceMechanism(1.0).default_pair(8),
                 trials=1000, rng=1)  # fmt: skip
    assert one in next_step(wide)
    related = replace(wide, mechanism="f", neighbour="L1(radius=1.0)")
    assert one in next_step(related)
    # Where the claim is about these inputs, or about a change in every entry, there is none such.
    for other in (replace(related, neighbour=""), replace(related, neighbour="Linf(radius=1.0)")):
        assert one not in next_step(other)
    ones = dpcore.pairs.patterns(8, "one")[0]
    assert one not in next_step(replace(related, pair=ones))


def test_a_vote_that_cannot_see_enough_asks_for_no_trials():
    report = audit(published.LaplaceMechanism(1.0), trials=10**4, rng=1, attack=MajorityVote())
    assert report.exact < 1.0
    lucky = replace(report, counts=Counts(4000, 10**4, 1450, 10**4), direction="x")
    assert lucky.refuted is False
    assert "no number of trials" in next_step(lucky)
    # The twin: the same counts of an event without a closed form.
    assert next_step(replace(lucky, event=len)).startswith("about ")


def test_a_wrong_direction_asks_for_a_larger_pilot():
    report = replace(STANDING, counts=Counts(100, 1000, 600, 1000), direction="x", pilot=50)
    assert next_step(report).startswith("a larger pilot than 50 draws a side, for it chose")
    right = replace(report, direction="x_prime")
    assert right.refuted


def test_a_looser_bound_names_the_tighter_one():
    counts = Counts(600, 1000, 150, 1000)
    report = replace(
        STANDING, counts=counts, direction="x", claim=1.15, bound="anytime", stop="looked"
    )
    assert report.refuted is False
    assert next_step(report).startswith('a fresh audit with bound="clopper_pearson" and 1,000')
    assert replace(report, bound="clopper_pearson", stop="fixed").refuted


def test_recorded_outputs_say_how_many_rows_they_need():
    rng = np.random.default_rng(1)
    sides = rng.laplace(size=2000), 1.0 + rng.laplace(size=2000)

    def run(claim):
        return dpcore.audit_outputs(*sides, rows="independent", claim=claim, rng=1)

    assert re.search(r"needed +about [\d,]+ counted rows on each side", str(run(0.9)))
    assert "no number of rows is enough" in str(run(3.0))
    assert "needed" not in str(run(0.1))
    assert more_rows(run(None)) == ""


# A claim that stands is no pass mark.


def test_the_command_line_paints_refuted_claims_only(monkeypatch):
    painted = []

    class Console:
        def __init__(self, **options):
            pass

        def print(self, line, style="", **options):
            painted.append((line.split()[0], style))

    monkeypatch.setattr("rich.console.Console", Console)
    styles = []
    for words in (
        "laplace --epsilon 1",
        "half-noise --epsilon 1",
        "laplace --epsilon 1 --no-claim",
    ):
        painted.clear()
        cli.main(f"audit {words} --trials 1e5 --seed 1".split())
        styles.append(dict(painted)["verdict"])
    assert styles == ["", "bold red", "bold yellow"]


def test_the_page_writes_refuted_claims_only_in_bold():
    refuted = replace(STANDING, claim=0.1)
    assert "<strong>refuted</strong>" in refuted.to_html()
    page = STANDING.to_html()
    assert "<strong>" not in page
    assert "font-weight: bold" not in page
    assert "another pair of neighbours" in page


# Two certificates at 95 %.


def test_bounds_that_do_not_hold_jointly_say_so():
    said = "the rows certified and rounding hold at 95 % each by itself, not both at once"
    assert said in of(STANDING, "note")
    assert said in STANDING.to_html()
    assert "not all of them at once" in STANDING.to_html()
    split = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1, floats=True)
    assert said not in of(split, "note")
    # One certificate: nothing to be said.
    vote = audit(Laplace(0.8), trials=10**4, claim=1.4, rng=1, attack=MajorityVote())
    assert "by itself" not in str(vote)
    assert "at once" not in vote.to_html()


def test_the_row_of_rounding_has_the_share_of_the_error_that_it_has_in_the_bound():
    split = audit(Laplace(10.0), trials=10**5, claim=0.1, rng=1, floats=True)
    assert f"epsilon >= {split.epsilon_lower:.4f}" in of(split, "rounding")[0]
    alone = replace(split, floats=False)
    assert f"epsilon >= {alone.floating_point.epsilon_lower:.4f}" in of(alone, "rounding")[0]
    assert alone.floating_point.epsilon_lower > split.epsilon_lower


def test_the_bound_at_the_audits_own_delta_is_its_bound():
    for delta in (0.0, 1e-3):
        split = audit(Laplace(10.0), trials=10**5, claim=0.1, delta=delta, rng=1, floats=True)
        assert split.epsilon_lower > 1.0
        assert split.epsilon_lower_at(delta) == split.epsilon_lower
        # The twin: without the finding the event alone certifies next to nothing.
        alone = replace(split, floats=False)
        assert alone.epsilon_lower_at(delta) == alone.epsilon_lower < 0.11
    assert split.epsilon_lower_at(0.5) < split.epsilon_lower_at(0.0)


# A pilot that is too small.


@pytest.mark.parametrize("pilot", [2, 31])
def test_a_pilot_that_is_too_small_is_named(pilot):
    with pytest.warns(AssumptionWarning, match=f"pilot={pilot} draws a side are too few"):
        report = audit(noisy, PAIR, claim=0.1, trials=1000, pilot=pilot, rng=1)
    assert "at least 32" in report.notes[0]
    assert report.notes[0] in of(report, "note")


def test_a_pilot_that_is_large_enough_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert audit(noisy, PAIR, claim=0.1, trials=1000, pilot=32, rng=1).notes == ()
        assert audit(noisy, PAIR, claim=0.1, trials=20, rng=1).notes == ()
        vote = audit(Laplace(1.0), claim=0.1, trials=1000, pilot=2, attack=MajorityVote(), rng=1)
        assert vote.notes == ()
