"""The audit of one noisy step: what is right passes, every fault of a step is refuted."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import dpcore
from dpcore import training
from dpcore.experiments import dpsgd_audit
from dpcore.experiments.dpsgd_audit import RIGHT, Recipe, make_opposing_record
from dpcore.training.step import choose_projections

RNG = np.random.default_rng(20)
ROWS = np.column_stack([5.0 * RNG.normal(size=(12, 10)), RNG.random(12) < 0.5])
BATCH = np.concatenate([make_opposing_record(ROWS)[None], ROWS])
OTHERS = {*dpsgd_audit.REPAIRED, dpsgd_audit.FIXED}
STEP_FAULTS = [fault for fault in dpsgd_audit.FAULTS if fault not in OTHERS]


def make_step(fault=RIGHT):
    """A step of the recipe at weights 0, its sum as two tensors."""
    draw = partial(Recipe(1.0, fault).draw_noisy_gradient_sum, at=np.zeros(ROWS.shape[1]))
    return lambda records, rng: np.split(draw(records, rng), [-1])


def audit(fault=RIGHT, **options):
    options = {"sigma": 1.0, "clip": 1.0, "left_out": 0, "trials": 2000, "rng": 1} | options
    return training.audit_step(make_step(fault), BATCH, **options)


class Clean:
    """The same step with its sum without noise."""

    def __call__(self, records, rng):
        return make_step()(records, rng)

    def clean(self, records):
        return make_step("no noise")(records, np.random.default_rng(0))


@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_every_fault_of_a_step_is_refuted(fault):
    assert audit(fault).refuted is True


def test_the_repaired_step_is_not_refuted():
    report = audit()
    assert report.refuted is False
    # Half of what is true at least is seen: the audit is no empty pass.
    assert report.parameter_lower > 0.7 * report.claim.mu


@pytest.mark.sweep
def test_right_steps_are_refuted_no_more_than_allowed_and_half_the_noise_always():
    # benches/record_claims.py does so with 20 seeds and every fault.
    right = [audit(rng=seed, trials=600).refuted for seed in range(8)]
    assert binom.sf(sum(right) - 1, 8, 0.05) > 1e-4
    assert all([audit("half the noise", rng=seed, trials=600).refuted for seed in range(8)])


def test_sigma_for_sigma_times_clip_is_refuted():
    # Clipping at 1.5, noise of standard deviation sigma: sigma is claimed, sigma / 1.5 is drawn.
    step = partial(Recipe(0.8 / 1.5, clip=1.5).draw_noisy_gradient_sum, at=np.zeros(ROWS.shape[1]))
    options = {"clip": 1.5, "left_out": 0, "trials": 2000, "rng": 1}
    assert training.audit_step(step, BATCH, sigma=0.8, **options).refuted is True
    assert training.audit_step(step, BATCH, sigma=0.8 / 1.5, **options).refuted is False


def test_a_clean_sum_gives_the_exact_loss_and_a_pilot_none():
    report = training.audit_step(Clean(), BATCH, sigma=1.0, clip=1.0, trials=500, rng=1)
    # The record moves the sum by clip, so that its loss is the claim.
    assert report.declared_loss == pytest.approx(report.claim.epsilon(report.delta), abs=1e-6)
    assert audit(trials=500).declared_loss is None


def test_the_record_that_moves_the_sum_most_is_left_out():
    rows = np.array([0.0, 0.3, 0.0, 0.9, 0.0])[:, None] * np.ones(3)

    def step(records, rng):
        return np.asarray(records).sum(axis=0) + rng.normal(size=3)

    report = training.audit_step(step, rows, sigma=1.0, clip=2.0, trials=500, rng=1)
    assert report.pair.x_prime.left_out == 3
    assert (report.pair.x.records, report.pair.x_prime.records) == (5, 4)
    with pytest.raises(ValueError, match="left_out must be a record that moves the sum"):
        training.audit_step(step, rows, sigma=1.0, clip=2.0, left_out=0, rng=1)


def test_lists_ranges_arrays_are_batches_and_the_seed_repeats_an_audit():
    rows = ROWS[:4, :3]

    def step(records, rng):
        return np.asarray(records, float).sum(axis=0) / 50.0 + rng.normal(size=3)

    options = {"sigma": 1.0, "clip": 1.0, "trials": 300, "rng": 4}
    first, second = (training.audit_step(step, kind, **options) for kind in (rows, rows.tolist()))
    assert first.counts == second.counts
    by_number = training.audit_step(lambda k, rng: step(rows[list(k)], rng), range(4), **options)
    assert by_number.counts == first.counts


def test_one_draw_for_all_weights_cancels_from_a_contrast():
    columns = choose_projections(np.array([1.0, -0.5, 0.1]), np.zeros(3), [3])
    shared = columns.project(np.full(3, 7.0))
    last = len(columns.contrasts)
    assert len(columns.contrasts) > 0
    np.testing.assert_allclose(shared[-last:], 0.0, atol=1e-12)
    assert abs(shared[0]) > 1.0
    assert choose_projections(np.ones(3), np.ones(3), [3]) is None


def test_a_report_and_its_file_hold_the_two_batches():
    report = audit(trials=300)
    text = str(report)
    assert "clip apart" in text
    assert "column 0 is the projection" in text
    back = dpcore.Audit.from_json(report.to_json())
    assert (back.pair, back.counts) == (report.pair, report.counts)


def test_a_step_that_changes_its_records_is_refused():
    def step(records, rng):
        records /= np.maximum(1.0, np.linalg.norm(records, axis=1, keepdims=True))
        return records.sum(axis=0) + rng.normal(size=records.shape[1])

    for options in ({}, {"left_out": 0}):
        with pytest.raises(ValueError, match="step must be a function that leaves its records"):
            training.audit_step(step, 5.0 * ROWS, sigma=1.0, clip=1.0, trials=300, **options)
