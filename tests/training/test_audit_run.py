"""The audit of one run: coins, guesses, what is said before the training, and comparisons."""

import os
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import dpcore
from dpcore import training
from dpcore.bounds import gdp_epsilon
from dpcore.experiments.dpsgd_audit import Recipe

CANARIES = np.eye(300)
RECORDS = np.zeros((50, 300))
USUAL = {"canaries": CANARIES, "guesses": 60, "delta": 1e-5, "rng": 1}


def make_fit(mu, seed=1, seen=None):
    """The sum of all records with Gaussian noise, of which a canary's entry is its score."""
    rng = np.random.default_rng(seed)

    def fit(records):
        if seen is not None:
            seen.append(records)
        noise = rng.normal(size=300) / mu if mu else 0.0
        total = np.sum(records, axis=0) + noise
        return lambda asked: -(np.asarray(asked) @ total)

    return fit


def audit(fit, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.AssumptionWarning)
        return training.audit_run(fit, RECORDS, **USUAL | options)


def test_each_canary_is_in_by_its_own_coin():
    seen = []
    report = audit(make_fit(1.0, seen=seen))
    included = seen[0][50:].sum(axis=0)
    assert seen[0].shape == (50 + int(included.sum()), 300)
    assert set(np.unique(included)) == {0.0, 1.0}
    assert 100 < included.sum() < 200
    assert (report.canaries, report.guesses, audit(make_fit(1.0, seen=seen))) == (300, 60, report)
    assert np.array_equal(seen[0], seen[1])
    audit(make_fit(1.0, seen=seen), rng=2)
    assert not np.array_equal(seen[0].sum(axis=0), seen[2].sum(axis=0))


def test_right_trainings_are_refuted_no_more_than_allowed_and_no_noise_always():
    claim = gdp_epsilon(0.5, 1e-5)
    right = [audit(make_fit(0.5, seed), claim=claim, rng=seed) for seed in range(40)]
    assert binom.sf(sum(one.refuted for one in right) - 1, 40, 0.05) > 1e-4
    assert np.mean([one.auc for one in right]) == pytest.approx(0.638, abs=0.03)
    assert all(audit(make_fit(0.0), claim=claim, rng=seed).refuted for seed in range(3))


def test_the_recipe_without_noise_is_compared_on_the_same_canaries():
    seen = []
    report = audit(make_fit(0.3, seen=seen), fit_without_noise=make_fit(0.0, seen=seen), claim=2.0)
    assert np.array_equal(seen[0], seen[1])
    (said,) = [note for note in report.notes if "without noise" in note]
    assert "AUC 1.0000, 60 of 60 guesses right" in said
    (said,) = [note for note in audit(make_fit(0.3), claim=2.0).notes if "noise" in note]
    assert "does not prove that the training adds noise" in said


def test_text_and_file_hold_the_auc():
    report = audit(make_fit(2.0))
    assert f"AUC          {report.auc:.4f} of included canaries" in str(report)
    assert dpcore.OutputsAudit.from_json(report.to_json()) == report
    with pytest.raises(ValueError, match="auc must be"):
        dpcore.OutputsAudit.from_dict(report.to_dict() | {"auc": 1.5})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"guesses": 5, "claim": 2.0}, "5 guesses cannot refute the claim .* it takes 24 guesses"),
        ({"guesses": 60, "claim": 9.0, "delta": 0.01}, "no number of guesses refutes it"),
        ({"canaries": np.repeat(CANARIES[:150], 2, axis=0)}, "300 canaries are equal to another"),
        ({"canaries": np.concatenate([RECORDS[:1], CANARIES[1:]])}, "1 canaries occur among"),
    ],
)
def test_what_cannot_work_is_said_before_the_training(options, said):
    order = []

    def fit(records):
        order.append("trained")
        return make_fit(1.0)(records)

    with warnings.catch_warnings():
        warnings.simplefilter("error", dpcore.AssumptionWarning)
        with pytest.raises(dpcore.AssumptionWarning, match=said):
            training.audit_run(fit, RECORDS, **USUAL | options)
    assert order == []


def test_good_canaries_and_enough_guesses_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = training.audit_run(make_fit(1.0), RECORDS, claim=2.0, **USUAL)
    assert report.refuted is False


def test_lists_of_anything_are_records():
    texts, mine = ["a film"] * 5, [f"code {number}" for number in range(40)]

    def fit(records):
        known = set(records)
        return lambda asked: [0.1 * len(one) - (one in known) * 9.0 for one in asked]

    report = training.audit_run(fit, texts, canaries=mine, guesses=20, rng=3)
    assert (report.correct, report.auc) == (20, 1.0)


# Processes for many trainings: one thread each, prepared once, the same counts.


PREPARED = []


def prepare():
    PREPARED.append(os.getpid())


def count_prepared(_):
    from threadpoolctl import threadpool_info

    return len(PREPARED), max((one["num_threads"] for one in threadpool_info()), default=1)


def test_each_process_is_prepared_once_and_has_one_thread():
    PREPARED.clear()
    with training.make_pool(1, prepare) as pool:
        assert list(pool.map(count_prepared, range(3))) == [(1, 1)] * 3
    # An audit tries the mechanism here.
    assert [os.getpid()] == PREPARED


def test_trainings_in_processes_count_what_one_process_counts():
    rows = np.column_stack([np.full((4, 2), 3.0), [0, 0, 1, 1]])
    train = dpcore.repeat(Recipe(1.0, steps=2).train, seeded="rng")
    options = {"claim": 1.0, "delta": 0.1, "trials": 60, "pilot": 40, "block": 20, "rng": 1}
    here = dpcore.audit(train, (rows, rows[1:]), **options)
    with training.make_pool(2) as pool:
        there = dpcore.audit(train, (rows, rows[1:]), executor=pool, **options)
    assert there.counts == here.counts
