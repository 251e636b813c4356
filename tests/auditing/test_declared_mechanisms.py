"""Mechanisms that encode their inputs: attacks know the clean vectors, reports show the inputs."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from shared_audits import MOST, count_refutations

import dpcore
from dpcore.attacks import Threshold
from dpcore.calibration import L2Laplace
from dpcore.mechanisms import declarations

TEXTS = ("the flu is back again", "cancer")


class Lengths:
    """Two lengths of a text, each with Laplace noise."""

    def __init__(self, scale=2.0, **claimed):
        self.scale = scale
        vars(self).update(claimed)

    def clean(self, text):
        return np.array([len(text.split()), len(text) / 10.0])

    def loss(self, pair, delta):
        return float(np.abs(self.clean(pair.x) - self.clean(pair.x_prime)).sum() / self.scale)

    def notes_on(self, pair):
        return ("lengths are all that is told",) if "flu" in pair.x else ()

    def __call__(self, text, size, rng):
        return self.clean(text) + rng.laplace(scale=self.scale, size=(size, 2))


def audit(mechanism, pair=TEXTS, **more):
    return dpcore.audit(mechanism, pair, trials=20_000, rng=3, **more)


def test_attacks_know_the_clean_vectors():
    seen = []

    def attack(outputs, outputs_prime, pair):
        seen.append(pair)
        return Threshold()(outputs, outputs_prime, pair)

    report = audit(Lengths(), attack=attack, claim=1.0)
    assert seen == [dpcore.Pair(np.array([5.0, 2.1]), np.array([1.0, 0.6]))]
    assert (report.pair, report.clean) == (dpcore.Pair(*TEXTS), seen[0])


def test_so_does_the_default_attack_and_finds_what_there_is():
    report = audit(Lengths(), claim=3.0)
    assert report.declared_loss == pytest.approx((4.0 + 1.5) / 2.0)
    assert 2.0 < report.epsilon_lower <= report.declared_loss
    assert report.refuted is False
    needed = "another pair of texts (worst_pair of an encoder): on this one the declared noise"
    for words in (
        "exact loss   2.7500 for this pair (computed from the declared noise, not",
        "x = 'the flu is back again' (str), x' = 'cancer' (str)",
        "note         lengths are all that is told",
        "encoded      L1 5.5, L2 4.272, Linf 4, 2 of 2 entries changed", f"needed       {needed}",
    ):  # fmt: skip
        assert words in str(report)
    assert "exact loss" in report.to_html()
    # Where the pair loses more than is claimed, the usual advice stands.
    assert needed not in str(audit(Lengths(), claim=2.7))


def test_it_is_kept_in_json_and_merged():
    mine = Lengths()
    parts = [audit(mine, claim=3.0, start=start, block=1000) for start in (0, 20_000)]
    both = parts[0] + parts[1]
    assert both.clean == parts[0].clean
    again = dpcore.Audit.from_json(both.to_json())
    assert (again.clean, again.declared_loss) == (both.clean, both.declared_loss)
    assert json.loads(both.to_json())["declared_loss"] == both.declared_loss


def test_an_infinite_loss_survives_json():
    class Infinite(Lengths):
        def loss(self, pair, delta):
            return math.inf

    report = audit(Infinite(), claim=3.0)
    assert dpcore.Audit.from_json(report.to_json()).declared_loss == math.inf
    assert "exact loss   infinite for this pair" in str(report)


def test_the_most_telling_of_several_pairs_is_found_by_its_clean_vectors():
    pairs = [dpcore.Pair("the flu", "the cold"), dpcore.Pair(*TEXTS)]
    assert audit(Lengths(), pairs, claim=3.0).pair == pairs[1]


def test_early_stop_knows_them_too():
    report = audit(Lengths(0.5), claim=1.0, stop="refuted")
    assert report.refuted
    assert report.slices[0].pair == dpcore.Pair(*TEXTS)


def test_a_claim_with_its_own_delta_is_held_to_both():
    report = audit(Lengths(claim=3.0, delta=1e-5))
    assert (report.claim, report.delta) == (3.0, 1e-5)
    assert audit(report.mechanism, delta=1e-3).delta == 1e-3
    assert audit(report.mechanism, claim=4.0).delta == 0.0
    with pytest.raises(ValueError, match=r"^delta must be at least 1e-05, as the mechanism claims"):
        audit(report.mechanism, delta=1e-7)
    # Without a claim a delta is nothing but an attribute.
    assert audit(Lengths(delta=0.5), claim=3.0).delta == 0.0


def test_a_clean_that_does_not_tell_leaves_the_pair():
    class Silent(Lengths):
        def clean(self, text):
            return None

        def loss(self, pair, delta):
            return None

        def __call__(self, text, size, rng):
            return rng.normal(size=(size, 2)) + len(text)

    report = audit(Silent(), claim=3.0)
    assert (report.clean, report.declared_loss) == (None, None)


def test_wrong_notes_are_an_error():
    class Wrong(Lengths):
        def notes_on(self, pair):
            return "one"

    with pytest.raises(TypeError, match=r"^notes_on\(pair\) must be a tuple of strings, got 'one'"):
        dpcore.audit(Wrong(), TEXTS, claim=1.0)


def test_an_object_that_is_no_mechanism_itself_may_make_one():
    report = audit(SimpleNamespace(as_mechanism=lambda: Lengths(claim=3.0)))
    assert report.claim == 3.0
    assert report.declared_loss is not None


def test_inputs_that_are_encoded_alike_are_as_good_as_equal():
    alike = ("he has flu", "flu is bad"[:10])
    assert (Lengths().clean(alike[0]) == Lengths().clean(alike[1])).all()
    with pytest.raises(ValueError, match=r"does not encode to one vector.*null=True allows them"):
        dpcore.audit(Lengths(), alike, claim=1.0)
    assert audit(Lengths(), alike, claim=1.0, null=True).refuted is False


# A mechanism's own log ratio as one more score of `auto`, and its own loss in the report.


PAIR = dpcore.Pair([0.0, 0.0], [1.34, 0.0])
NEAR = dpcore.Pair([0.0, 0.0], [1.0, 0.0])


@dataclass(frozen=True)
class Stated:
    """Laplace noise of scale 1 on one number that states its log ratio times a factor."""

    factor: float = 1.0

    def __call__(self, x, size, rng):
        return x + rng.laplace(size=(size, 1))

    def log_ratio(self, outputs, pair):
        near, far = (np.abs(outputs[:, 0] - side[0]) for side in (pair.x_prime, pair.x))
        return self.factor * (near - far)

    def loss(self, pair, delta):
        return abs(pair.x[0] - pair.x_prime[0])


def audit_stated(mechanism, pair=PAIR, **named):
    return dpcore.audit(mechanism, pair, **{"trials": 20_000, "claim": 10.0, "rng": 1} | named)


def test_a_stated_ratio_certifies_what_no_pilot_can_show():
    """2,500 pilot draws see no output that is rarer than 1 in 2,500 on the other side."""
    found = [audit_stated(L2Laplace(0.1), rng=seed) for seed in range(9)]
    assert statistics.median(report.epsilon_lower for report in found) >= 8.3
    assert str(found[0].event).startswith("log ratio that the mechanism states")
    assert found[0].epsilon_lower <= 13.4


def test_a_ratio_that_draws_contradict_is_not_taken_at_its_word():
    pair = dpcore.Pair([0.0], [3.0])
    honest, boasting = (audit_stated(Stated(factor), pair, claim=2.0) for factor in (1.0, 3.0))
    plain = audit_stated(lambda x, size, rng: x + rng.laplace(size=(size, 1)), pair, claim=2.0)
    assert honest.epsilon_lower > 2.8
    assert boasting.epsilon_lower == pytest.approx(plain.epsilon_lower, rel=0.03)


@pytest.mark.sweep
def test_audits_at_the_exact_loss_refute_no_more_often_than_allowed():
    """A binomial test at 1e-4; at twice the noise's claim all audits must refute."""
    assert count_refutations(L2Laplace(1.0), 1.0, NEAR, trials=2000) <= MOST
    assert count_refutations(L2Laplace(1.0), 0.5, NEAR, audits=5, trials=20_000) == 5


def test_the_event_is_kept_by_json():
    report = audit_stated(L2Laplace(0.1))
    again = dpcore.Audit.from_json(report.to_json())
    assert again.event == report.event
    outputs = np.array([[0.0, 0.0], [-1.0, 0.5], [np.nan, 0.0]])
    assert np.array_equal(again.event(outputs), report.event(outputs))


def test_outputs_that_are_not_finite_have_no_ratio():
    score = declarations.StatedLogRatio(L2Laplace(0.5), NEAR)
    assert np.isnan(score(np.array([[np.inf, 0.0], [np.nan, 1.0]]))).all()


def test_other_attacks_do_not_take_it():
    report = audit_stated(Stated(), dpcore.Pair([0.0], [1.0]), attack=dpcore.attacks.Threshold())
    assert "states" not in str(report.event)


def test_its_loss_is_read_without_a_clean_vector():
    report = audit_stated(Stated(), dpcore.Pair([0.0], [1.0]), claim=1.0)
    assert report.declared_loss == 1.0
    assert "1.0000 for this pair (computed from the declared noise, not certified)" in str(report)


def test_the_loss_of_an_object_that_states_no_privacy_is_not_read():
    class Layer:
        def loss(self, rows, wrong):
            raise AssertionError("a loss function of another kind was called")

    assert declarations.declared_loss(Layer(), NEAR, 0.0) is None


def test_a_mechanism_with_a_table_is_sent_to_the_audit_of_tables():
    @dataclass(frozen=True)
    class Table(Stated):
        def log_rows(self, start, stop):
            raise AssertionError("a sampled audit_stated read the table")

    report = audit_stated(Table(), dpcore.Pair([0.0], [1.0]), claim=1.0)
    assert "another pair (dpcore.audit_table compares all exactly)" in str(report)
