"""A mechanism's own log ratio as one more score of `auto`, and its own loss in the report."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore.calibration import L2Laplace
from dpcore.mechanisms.declarations import StatedLogRatio, declared_loss, stated_log_ratio

PAIR = dpcore.Pair([0.0, 0.0], [1.34, 0.0])
NEAR = dpcore.Pair([0.0, 0.0], [1.0, 0.0])
AUDITS = 200
ALPHA = 1e-4


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


def audit(mechanism, pair=PAIR, **named):
    return dpcore.audit(mechanism, pair, **{"trials": 20_000, "claim": 10.0, "rng": 1} | named)


def test_a_stated_ratio_certifies_what_no_pilot_can_show():
    """2,500 pilot draws see no output that is rarer than 1 in 2,500 on the other side."""
    found = [audit(L2Laplace(0.1), rng=seed) for seed in range(9)]
    assert statistics.median(report.epsilon_lower for report in found) >= 8.3
    assert str(found[0].event).startswith("log ratio that the mechanism states")
    assert found[0].epsilon_lower <= 13.4


def test_a_ratio_that_draws_contradict_is_not_taken_at_its_word():
    pair = dpcore.Pair([0.0], [3.0])
    honest, boasting = (audit(Stated(factor), pair, claim=2.0) for factor in (1.0, 3.0))
    plain = audit(lambda x, size, rng: x + rng.laplace(size=(size, 1)), pair, claim=2.0)
    assert honest.epsilon_lower > 2.8
    assert boasting.epsilon_lower == pytest.approx(plain.epsilon_lower, rel=0.03)


def test_audits_at_the_exact_loss_refute_no_more_often_than_allowed():
    """A binomial test at 1e-4; at twice the noise's claim all audits must refute."""
    mechanism = L2Laplace(1.0)
    refuted = [
        audit(mechanism, NEAR, trials=2_000, claim=1.0, rng=s).refuted for s in range(AUDITS)
    ]
    assert sum(refuted) <= stats.binom.isf(ALPHA, AUDITS, 0.05)
    assert all(audit(mechanism, NEAR, trials=20_000, claim=0.5, rng=s).refuted for s in range(5))


def test_the_event_is_kept_by_json():
    report = audit(L2Laplace(0.1))
    again = dpcore.Audit.from_json(report.to_json())
    assert again.event == report.event
    outputs = np.array([[0.0, 0.0], [-1.0, 0.5], [np.nan, 0.0]])
    assert np.array_equal(again.event(outputs), report.event(outputs))


def test_outputs_that_are_not_finite_have_no_ratio():
    score = StatedLogRatio(L2Laplace(0.5), NEAR)
    assert np.isnan(score(np.array([[np.inf, 0.0], [np.nan, 1.0]]))).all()


def test_a_mechanism_without_a_ratio_states_none():
    assert stated_log_ratio(print, NEAR) == ()
    with pytest.raises(TypeError, match="mechanism must be one with log_ratio"):
        StatedLogRatio(print, NEAR)


def test_other_attacks_do_not_take_it():
    report = audit(Stated(), dpcore.Pair([0.0], [1.0]), attack=dpcore.attacks.Threshold())
    assert "states" not in str(report.event)


def test_its_loss_is_read_without_a_clean_vector():
    report = audit(Stated(), dpcore.Pair([0.0], [1.0]), claim=1.0)
    assert report.declared_loss == 1.0
    assert "1.0000 for this pair (computed from the declared noise, not certified)" in str(report)


def test_the_loss_of_an_object_that_states_no_privacy_is_not_read():
    class Layer:
        def loss(self, rows, wrong):
            raise AssertionError("a loss function of another kind was called")

    assert declared_loss(Layer(), NEAR, 0.0) is None


def test_a_mechanism_with_a_table_is_sent_to_the_audit_of_tables():
    @dataclass(frozen=True)
    class Table(Stated):
        def log_rows(self, start, stop):
            raise AssertionError("a sampled audit read the table")

    report = audit(Table(), dpcore.Pair([0.0], [1.0]), claim=1.0)
    assert "another pair (dpcore.audit_table compares all exactly)" in str(report)
