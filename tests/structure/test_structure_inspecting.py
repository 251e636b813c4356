"""Structural checks: power on named faults, passes on sound noise, and the false-alarm rate."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore.structure import CHECKS, FAULTS, inspect

MASKED = np.ma.masked_array([0.0, 1.0], [False, True])

ALPHA = 1e-6
"""Significance of the tests of false-alarm rates, each on its own."""

RUNS = 300
RATE = 0.05
"""A raised rate of false alarms, so that a wrong one would show in so many inspections."""

INSPECTED = [fault for fault in FAULTS if fault.flagged_by != ("fork",)]


def laplace(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def gaussian(x, size, rng):
    return x + rng.normal(size=(size, len(x)))


def heavy(x, size, rng):
    return x + rng.standard_cauchy(size=(size, len(x)))


def geometric(x, size, rng, p=0.6):
    noise = rng.geometric(p, size=(2, size, len(x)))
    return np.round(x) + noise[0] - noise[1]


rare = partial(geometric, p=0.99)


def rounded(x, size, rng):
    return laplace(x, size, rng).astype(np.float32)


def encoder(x, size, rng):
    """Noise around something that nobody told, of another length than x."""
    return 3 * np.tanh(x[0]) + rng.laplace(size=(size, 5))


def flipped(x, size, rng):
    return (np.round(x) + (rng.random((size, len(x))) < 0.3)) % 2


SOUND = {
    "laplace": laplace, "gaussian": gaussian, "heavy": heavy, "geometric": geometric, "rare": rare,
    "rounded": rounded, "encoder": encoder, "flipped": flipped, "native": dpcore.Gaussian(2.0),
    "bits": dpcore.RandomBits(), "clipped": dpcore.published.ADePTClipL1(1.0),
    "halved": dpcore.published.HalvedOutput(1.0), "scipy": stats.laplace(scale=0.1),
}  # fmt: skip


# Every fault of the literature is found, every twin passes.


@pytest.mark.parametrize("fault", INSPECTED, ids=lambda fault: fault.name)
def test_a_fault_is_flagged_by_its_checks_and_no_other(fault):
    draws = None if fault.name == "float32_laplace" else 20_000
    found = inspect(fault.mechanism, fault.x, rng=1, draws=draws)
    assert found.flagged == tuple(name for name in CHECKS if name in fault.flagged_by)
    assert not found.passed


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_repaired_twin_passes_all_checks(fault):
    for seed in range(30):
        found = inspect(fault.repaired, fault.x, rng=seed, draws=1000)
        assert found.passed, str(found)


@pytest.mark.parametrize("dim", [1, 2, 768])
def test_faults_are_found_in_every_dimension(dim):
    x = np.linspace(0.0, 1.0, dim) if dim > 1 else np.array([0.5])
    for fault in INSPECTED:
        if dim == 1 and fault.name in ("shared_draw", "row_range"):
            # With one coordinate nothing is shared; its range is 0.
            continue
        # The grid needs many draws, all others show in few.
        draws = None if fault.name == "float32_laplace" else 600
        found = inspect(fault.mechanism, x, rng=2, draws=draws)
        assert set(fault.flagged_by) <= set(found.flagged), f"{fault.name}: {found}"


@pytest.mark.parametrize("dim", [1, 2, 768])
def test_sound_noise_passes_in_every_dimension(dim):
    x = np.linspace(0.0, 1.0, dim) if dim > 1 else np.array([0.5])
    assert inspect(dpcore.Laplace(3.0), x, rng=3).passed
    assert inspect(laplace, x, rng=3, draws=300).passed


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("draws", [200, 20_000])
def test_sound_laws_of_every_kind_pass(name, draws):
    for dim in (1, 3, 20):
        found = inspect(SOUND[name], np.linspace(0.0, 1.0, dim) + 0.5, rng=4, draws=draws)
        assert found.passed, str(found)


# The rate of false alarms.


def alarms(mechanism, dim, draws):
    """Inspections that flagged something, and those that would without counting the checks."""
    flagged = single = 0
    for seed in range(RUNS):
        found = inspect(mechanism, np.full(dim, 0.5), rng=seed, draws=draws, false_alarm=RATE)
        p = [check.p_value for check in found.checks if check.p_value is not None]
        flagged += not found.passed
        single += min(p) <= RATE
    return flagged, single


def too_many(count):
    return stats.binom.sf(count - 1, RUNS, RATE) < ALPHA


@pytest.mark.parametrize("mechanism", [laplace, gaussian, geometric])
def test_false_alarms_are_no_more_than_stated(mechanism):
    flagged, single = alarms(mechanism, 3, 400)
    assert not too_many(flagged)
    # The control: the same p-values without regard to how many checks there are.
    if mechanism is not geometric:
        assert too_many(single)


def test_the_level_is_shared_by_the_checks_that_are_made():
    assert inspect(laplace, [0.0], draws=200, rng=1).level == 1e-4 / 12
    skipped = inspect(laplace, [0.0], draws=200, rng=1, skip=("modes", "rank"), false_alarm=0.01)
    assert skipped.level == 0.01 / 11
    made = [name for name in CHECKS if name not in ("modes", "rank")]
    assert [check.name for check in skipped.checks] == made


# The record, and bad input.


def test_the_record():
    found = inspect(FAULTS[0].mechanism, [0.0, 1.0], rng=7, draws=500)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found == inspect(FAULTS[0].mechanism, [0.0, 1.0], rng=7, draws=500)
    assert (found.seed, found.draws, found.dim) == (7, 500, 2)
    lines = str(found).splitlines()
    assert len(lines) == 3 + len(CHECKS)
    assert "rank, correlation, shared_size flagged" in lines[0]
    assert sum("FLAGGED" in line for line in lines) == 3
    with pytest.raises(ValueError, match="name must be one of"):
        found["nonsense"]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"draws": 199}, ValueError, "draws must be an integer at least 200"),
        ({"draws": 1000.5}, TypeError, "draws must be an integer"),
        ({"skip": "rank"}, TypeError, "skip must be a sequence"),
        ({"skip": ("ranks",)}, ValueError, "skip must be one of"),
        ({"others": 3.0}, TypeError, "others must be a sequence"),
        ({"false_alarm": 0.0}, ValueError, "false_alarm must be"),
        ({"x": "text"}, TypeError, "x must be an array of finite numbers"),
        ({"x": None}, TypeError, "x must be an array of finite numbers"),
        ({"x": [0.0, np.nan]}, ValueError, "x must be an array of finite numbers"),
        ({"x": []}, ValueError, "x must be a non-empty array"),
        ({"x": [[1.0], [1.0, 2.0]]}, ValueError, "x must be an array of finite numbers"),
        ({"clean": [1.0]}, ValueError, "clean must be as many numbers as one output"),
        ({"x": MASKED}, ValueError, "x must be an array of finite numbers"),
        ({"clean": MASKED}, ValueError, "clean must be an array of finite numbers"),
        ({"skip": CHECKS}, ValueError, "skip must be names that leave a check to make"),
        ({"mechanism": lambda x, n, rng: MASKED}, ValueError, "array without masked entries"),
        ({"mechanism": 3}, TypeError, "mechanism must be a native mechanism, a callable"),
        ({"mechanism": dpcore.DPTextNoise(1.0, nan="keep")}, ValueError, "NaN or infinite"),
        ({"mechanism": lambda x, n, rng: np.full((n, 2), "a")}, TypeError, "real numbers"),
        ({"mechanism": lambda x, n, rng: np.zeros((n + 1, 2))}, ValueError, "one per output"),
        ({"mechanism": lambda x, n, rng: np.zeros((n, 0))}, ValueError, "at least one number"),
    ],
)
def test_bad_input(change, error, text):
    arguments = {"mechanism": laplace, "x": [0.0, 1.0], "rng": 1, **change}
    with pytest.raises(error, match=text):
        inspect(arguments.pop("mechanism"), arguments.pop("x"), **arguments)


def test_outputs_of_changing_shape():
    calls = []

    def growing(x, size, rng):
        calls.append(size)
        return np.zeros((size, len(calls)))

    with pytest.raises(ValueError, match=r"rows of shape \(1,\) in every call"):
        inspect(growing, [0.0], rng=1, draws=200)


def test_whole_numbers_stay_whole():
    kinds = set()

    def seen(x, size, rng):
        kinds.add(x.dtype)
        return laplace(x, size, rng)

    assert inspect(seen, np.array([1, 2]), rng=1, draws=300).passed
    assert kinds == {np.dtype(np.int64)}
