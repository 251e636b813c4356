"""Pilots of wide outputs: what the stream keeps, what it chooses, and the audits that follow.

Limits are lowered so that 200 columns count as wide. Audits certify at 95 %, with fixed seeds;
each check of power has a control whose two sides have one law, which must certify 0.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpcore
from dpcore.attacks import Threshold
from dpcore.attacks.classifier import LinearScore
from dpcore.attacks.grains import Tolerance
from dpcore.attacks.threshold import Closer, Coordinate, RowSum
from dpcore.auditing import wide_outputs
from dpcore.auditing.column_screen import (
    ColumnSums,
    centre_and_bin_width,
    choose_columns,
    fit_diagonal_score,
)
from dpcore.auditing.wide_outputs import EntriesScore, is_wide, widen_score
from dpcore.progress import Progress
from dpcore.records import PartsRead

COLUMNS = 200
ODD = 123
"""The column that differs, where one does."""
DIRECTION = np.full(COLUMNS, 3.0 / np.sqrt(COLUMNS))
"""A shift of mu = 3 in units of the noise, spread over all columns."""


@pytest.fixture
def wide(monkeypatch):
    """Treat more than 100 columns as wide, and read them in chunks of few rows."""
    monkeypatch.setattr(wide_outputs, "WIDE_COLUMNS", 100)
    monkeypatch.setattr(wide_outputs, "FEWEST_COLUMNS", 64)
    monkeypatch.setattr(wide_outputs, "_CHUNK_NUMBERS", 2**14)


def noise(x, size, rng):
    return rng.laplace(size=(size, COLUMNS))


def half_noise(x, size, rng):
    outputs = rng.laplace(size=(size, COLUMNS))
    outputs[:, ODD] = 0.5 * outputs[:, ODD] + (x == "with")
    return outputs


def wider_noise(x, size, rng):
    outputs = rng.normal(size=(size, COLUMNS))
    outputs[:, ODD] *= 2.5 if x == "with" else 1.0
    return outputs


def gradient(x, size, rng):
    return x + rng.normal(size=(size, COLUMNS))


def named_gradient(x, size, rng):
    return gradient(DIRECTION if x == "with" else 0.0, size, rng)


def audit(mechanism, pair=("without", "with"), trials=1000, **more):
    return dpcore.audit(mechanism, pair, trials=trials, rng=1, **more)


def add_rows(*sides):
    bins = centre_and_bin_width([side[:4] for side in sides])
    sums = [ColumnSums(*bins) for _ in sides]
    for own, rows in zip(sums, sides, strict=True):
        own.add(rows[:7])
        own.add(rows[7:])
    return sums


def test_pilots_are_wide_by_columns_or_by_bytes():
    assert [is_wide(2**15, 2), is_wide(2**15 + 1, 2)] == [False, True]
    assert [is_wide(1024, 2**15 - 1), is_wide(1024, 2**15)] == [False, True]
    assert not is_wide(512, 2**30)


def test_sums_are_those_of_numpy_in_any_number_of_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(5.0, 2.0, (600, 30))
    rows[:, 4] = 7.0
    counts, means, variances = add_rows(rows)[0].count_mean_var()
    own = add_rows(rows)[0]
    np.testing.assert_array_equal(counts, 600)
    np.testing.assert_allclose(own.centre + means, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(variances, rows.var(axis=0), rtol=1e-9, atol=1e-300)
    assert own.cells.dtype == np.uint16
    np.testing.assert_array_equal(own.cells.sum(axis=0), 600)
    assert own.steady.tolist() == [4]


def test_numbers_that_are_not_finite_are_counted_and_not_added():
    rows = np.arange(24.0).reshape(12, 2) % 5.0
    rows[[1, 8], 0], rows[2, 0], rows[3:6, 1] = np.nan, -np.inf, np.inf
    own = add_rows(rows)[0]
    assert own.cells[16:].tolist() == [[2, 0], [1, 0], [0, 3]]
    counts, means, _ = own.count_mean_var()
    finite = np.where(np.isfinite(rows), rows, np.nan)
    assert counts.tolist() == [9, 9]
    np.testing.assert_allclose(own.centre + means, np.nanmean(finite, axis=0))


def test_the_screen_chooses_columns_of_every_kind_of_difference():
    rng = np.random.default_rng(1)
    sides = rng.normal(size=(2, 128, 1000))
    sides[1, :, 10] += 2.0
    sides[1, :, 20] *= 3.0
    sides[:, :, 30] = rng.choice([-1.0, 1.0], (2, 128)) * [[1.0], [1.0]]
    sides[1, :, 30] = rng.choice([-np.sqrt(2.0), 0.0, 0.0, np.sqrt(2.0)], 128)
    sides[1, :40, 40] = np.nan
    sides[0, :, 50], sides[1, :, 50] = 0.0, 1.0
    entries, groups = choose_columns(add_rows(*sides), None)
    assert {10, 20, 30, 40, 50} <= {*entries.tolist()}
    assert entries.size <= 4 * 48
    leaders = {int(entries[group[0]]) for group in groups if group.size == 1}
    assert leaders <= {10, 20, 30, 40, 50}
    ends = np.zeros(1000), np.eye(1, 1000, 999)[0]
    assert 999 in choose_columns(add_rows(*sides), ends)[0]


def test_the_weighted_sum_is_the_diagonal_discriminant():
    rng = np.random.default_rng(2)
    sides = rng.normal(size=(2, 300, 5)) * [1.0, 2.0, 1.0, 1.0, 0.0] + 3.0
    sides[0, :, 1] += 1.0
    score = fit_diagonal_score(add_rows(*sides))
    variances = sides.var(axis=1).sum(axis=0)[:4]
    weights = (sides[0] - sides[1]).mean(axis=0)[:4] / variances
    weights /= np.sqrt(np.sum(weights**2 * variances))
    assert score.entries.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(score.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(score.centres, sides[:, :, :4].mean(axis=(0, 1)), rtol=1e-12)
    assert fit_diagonal_score(add_rows(sides[0], sides[0])) is None


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Coordinate(1), "entry 8"),
        (RowSum(), "sum of entry 3, entry 8, entry 9 and 1 more"),
        (LinearScore([0, 2], [0.0, 0.0], [1.0, 2.0]), "weighted sum of entry 9 and entry 3"),
        (Closer("l2", [0.0] * 4, [1.0] * 4),
         "closer to x than to x' in L2 of entry 3, entry 8, entry 9 and 1 more"),
    ],
)  # fmt: skip
def test_scores_of_chosen_columns_read_and_name_the_true_entries(score, text):
    entries, rows = np.array([3, 8, 9, 11]), np.random.default_rng(1).normal(size=(6, 2, 6))
    widened = widen_score(score, entries)
    assert str(widened) == text
    np.testing.assert_array_equal(widened(rows), score(rows.reshape(6, 12)[:, entries]))
    again = pickle.loads(pickle.dumps(widened))
    assert again == widened
    grains = [Tolerance(53, float(i)) for i in range(12)]
    assert widened.rounding(grains) == score.rounding([grains[i] for i in entries])


def test_entries_are_checked():
    with pytest.raises(ValueError, match=r"^entries must be an array of numbers at least 0"):
        EntriesScore([], RowSum())
    with pytest.raises(TypeError, match=r"^score must be a callable columns -> scores"):
        EntriesScore([0], 1.0)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("mechanism", "pair", "least"),
    [
        (half_noise, ("without", "with"), 1.2),
        (wider_noise, ("without", "with"), 1.0),
        (gradient, (np.zeros(COLUMNS), DIRECTION), 2.5),
        (named_gradient, ("without", "with"), 1.5),
    ],
)
def test_differences_are_found_in_wide_outputs(mechanism, pair, least):
    report = audit(mechanism, pair)
    assert report.epsilon_lower > least
    assert report.read.chosen > 0


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("pair", [("without", "with"), (np.zeros(COLUMNS), DIRECTION)])
def test_wide_outputs_of_one_law_certify_nothing(pair):
    report = audit(noise, pair)
    assert report.epsilon_lower == 0.0
    assert report.read.is_whole is False


@pytest.mark.usefixtures("wide")
def test_the_report_states_the_screen_and_survives_json():
    report = audit(half_noise)
    text = (
        "all 200 parts screened, in 256 pilot outputs per side; "
        f"{report.read.chosen} of them read, in 256 more"
    )
    assert str(report.read) == text
    assert f"read         {text}" in str(report)
    again = dpcore.Audit.from_json(report.to_json())
    assert (again.read, again.event) == (report.read, report.event)
    assert f"entry {ODD}" in str(again.event)
    assert PartsRead(5, 5, 1).is_whole


@pytest.mark.usefixtures("wide")
def test_the_progress_bar_names_the_screen(monkeypatch):
    labels = []
    monkeypatch.setattr(Progress, "relabel", lambda bar, label: labels.append(label))
    audit(noise, trials=200)
    assert labels[0] == "screening 200 columns"
    assert labels[1].endswith(" of 200 columns")
    assert labels[1].startswith("reading ")


def test_narrow_pilots_are_read_as_a_whole():
    report = audit(noise, trials=200)
    assert report.read == PartsRead(COLUMNS, COLUMNS, report.pilot // 2)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("attack", "name"),
    [
        (Threshold(ODD), f"entry {ODD}"),
        (Threshold(lambda outputs: outputs[:, ODD]), "<lambda>"),
        (Threshold("max"), "largest entry"),
        (Threshold("l1"), "closer to x than to x' in L1"),
    ],
)
def test_stated_scores_read_whole_outputs(attack, name):
    pair = np.zeros(COLUMNS), np.eye(COLUMNS)[ODD]
    report = audit(lambda x, size, rng: x + noise(x, size, rng), pair, trials=300, attack=attack)
    assert name in str(report.event)
    assert "more" not in str(report.event)


class Reshaping(dpcore.attacks.ScoreAttack):
    """An attack of somebody else, which takes outputs for pictures."""

    def candidates(self, outputs, outputs_prime, pair):
        assert outputs.shape[1:] == (COLUMNS,)
        return (lambda rows: rows.reshape(len(rows), 10, 20)[:, 6, 3],)


@pytest.mark.usefixtures("wide")
def test_attacks_of_others_read_whole_outputs():
    report = audit(half_noise, attack=Reshaping())
    assert report.epsilon_lower > 1.0
    assert report.read.chosen == 0


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows.astype(np.float32),
        lambda rows: rows.tolist(),
        lambda rows: np.rint(8.0 * rows).astype(np.int64),
        lambda rows: rows.reshape(-1, 10, 20),
    ],
)
def test_other_forms_of_wide_outputs_are_screened(convert):
    def mechanism(x, size, rng):
        return convert(half_noise(x, size, rng))

    report = audit(mechanism, trials=400, attack=Threshold())
    assert report.epsilon_lower > 0.5
    assert report.read.chosen > 0


@pytest.mark.usefixtures("wide")
def test_irregular_outputs_are_read_as_a_whole():
    def mechanism(x, size, rng):
        return half_noise(x, size, rng) + 1j

    report = audit(mechanism, trials=64)
    assert report.read.chosen == 0


@pytest.mark.usefixtures("wide")
def test_native_noise_threads_and_executors_have_one_result():
    pair = np.zeros(COLUMNS), np.eye(COLUMNS)[ODD]
    mechanism = dpcore.Laplace(1.0)
    first = audit(mechanism, pair, attack=Threshold())
    assert 0.4 < first.epsilon_lower < 1.0
    assert first.read.chosen > 0
    assert audit(mechanism, pair, threads=3, attack=Threshold()).counts == first.counts
    plain = audit(half_noise, trials=300, attack=Threshold())
    with ThreadPoolExecutor(2) as executor:
        options = {"trials": 300, "attack": Threshold(), "executor": executor}
        assert audit(half_noise, **options).counts == plain.counts


@pytest.mark.usefixtures("wide")
def test_constants_of_wide_outputs_are_stated():
    def mechanism(x, size, rng):
        outputs = noise(x, size, rng)
        outputs[:, ODD] = 7.0 if x == "with" else 0.0
        return outputs

    notes = audit(mechanism, trials=64, attack=Threshold()).notes
    assert f"entry {ODD} is always 0.0 on x and always 7.0 on x' in the pilot" in notes
    report = audit(lambda x, size, rng: np.zeros((size, COLUMNS)), trials=64)
    assert "pilot outputs per side were [0.0, 0.0" in report.constant


@pytest.mark.usefixtures("wide")
def test_the_better_of_two_pairs_is_chosen():
    pairs = [dpcore.Pair("without", "neither"), dpcore.Pair("without", "with")]
    report = audit(half_noise, pairs, trials=300, attack=Threshold())
    assert report.pair == pairs[1]


@pytest.mark.usefixtures("wide")
def test_an_early_stop_reads_the_chosen_columns():
    options = {"stop": "refuted", "claim": 0.3, "trials": 800, "attack": Threshold()}
    report = audit(half_noise, **options)
    assert report.verdict == "refuted"
    assert report.read.chosen > 0
    assert f"entry {ODD}" in str(report.event)
    assert audit(noise, **options).verdict != "refuted"


_MEASURED = """
import resource, sys
import numpy as np
import dpcore
columns, trials = map(int, sys.argv[1:])
def mechanism(x, size, rng):
    return x + rng.laplace(size=(size, columns))
pair = np.zeros(columns), np.eye(1, columns, 7)[0]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = dpcore.audit(mechanism, pair, trials=trials, rng=1)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(report.epsilon_lower, (after - before) / 1024)
"""


@pytest.mark.sweep
@pytest.mark.parametrize(("columns", "trials"), [(100_000, 300), (1_000_000, 100)])
def test_real_sizes_take_at_most_512_mebibytes(columns, trials):
    command = [sys.executable, "-c", _MEASURED, str(columns), str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    certified, mebibytes = map(float, done.stdout.split())
    assert certified > 0.0
    assert mebibytes < 512 + 2 * 8 * columns / 2**20
