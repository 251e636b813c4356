"""Structural checks: power on named faults, passes on sound noise, and the false-alarm rate."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from shared_messages import check_messages, find_missing

import dpcore
from dpcore.structure import CHECKS, FAULTS, Check, Inspection, inspect

MASKED = np.ma.masked_array([0.0, 1.0], [False, True])

ALPHA = 1e-6
"""Significance of the tests of false-alarm rates, each on its own."""

RUNS = 300
RATE = 0.05
"""A raised rate of false alarms, so that a wrong one would show in so many inspections."""

INSPECTED = [fault for fault in FAULTS if fault.flagged_by not in (("fork",), ("grid",))]
"""Those that show in few draws; forks have a file of their own, and the grid is counted below."""


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
    found = inspect(fault.mechanism, fault.x, rng=1, draws=20_000)
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
        found = inspect(fault.mechanism, x, rng=2, draws=600)
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


# Structural checks one by one: what each sees, what it says, and what it leaves alone.


def test_subtracting_the_row_minimum_is_verified_before_it_is_said():
    fault = FAULTS[0]
    found = inspect(fault.mechanism, np.linspace(0, 1, 768), rng=1, draws=400)["rank"]
    assert found.what.startswith("one draw of noise for all 768 coordinates (rank 1)")
    assert "subtracting the row minimum returns the clean vector (" in found.what
    assert found.figures["error"] < 1e-13

    def weighted(x, size, rng):
        return x + rng.laplace(size=(size, 1)) * np.arange(1, len(x) + 1)

    found = inspect(weighted, [0.0, 1.0, 0.5], rng=1, draws=400)["rank"]
    assert (found.flagged, "minimum" in found.what) == (True, False)
    shifted = inspect(fault.mechanism, [1.0, 2.0], rng=1, draws=400)["rank"]
    assert "up to one constant" in shifted.what


def test_the_rank_is_counted():
    mix = np.random.default_rng(5).normal(size=(7, 100))

    def decoded(x, size, rng):
        return x + rng.laplace(size=(size, 7)) @ mix

    def single(x, size, rng):
        return decoded(x, size, rng).astype(np.float32)

    def balanced(x, size, rng):
        noise = laplace(x, size, rng)
        return noise - noise.mean(axis=1, keepdims=True)

    for mechanism, value, rank in ((decoded, 0.0, 7), (single, 1.0, 7), (balanced, 0.0, 99)):
        found = inspect(mechanism, np.full(100, value), rng=1, draws=400)["rank"]
        assert (found.flagged, found.figures["rank"]) == (True, rank)


def test_a_weak_common_part_shows_in_many_coordinates():
    def common(x, size, rng):
        return x + rng.normal(size=(size, len(x))) + 0.2 * rng.normal(size=(size, 1))

    found = inspect(common, np.zeros(300), rng=1, draws=1000)
    assert found.flagged == ("correlation",)
    assert found["correlation"].figures["largest"] < 0.2


def test_one_radius_for_the_whole_vector_is_seen_and_may_be_meant():
    def l2_laplace(x, size, rng):
        direction = rng.normal(size=(size, len(x)))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return x + rng.gamma(len(x), size=(size, 1)) * direction

    assert inspect(l2_laplace, np.zeros(5), rng=1, draws=5000).flagged == ("shared_size",)
    assert inspect(l2_laplace, np.zeros(5), rng=1, draws=5000, skip=("shared_size",)).passed


def test_a_coordinate_with_a_hundredth_of_the_noise_is_seen():
    """Equal scales in 20 seeds and unequal ones within a factor of five raise no flag."""

    def make_noise(scales):
        return lambda x, size, rng: x + np.array(scales) * rng.laplace(size=(size, len(x)))

    small, equal = make_noise([1.0] * 5 + [0.01, 1.0, 1.0]), make_noise([1.0] * 8)
    for seed in range(20):
        found = inspect(small, np.zeros(8), rng=seed, draws=500)
        assert found.flagged == ("column_scale",)
        assert found["column_scale"].figures["coordinate"] == 5
        assert inspect(equal, np.zeros(8), rng=seed, draws=200).passed
    mild = make_noise([1.0, 2.0, 3.0, 5.0, 1.0, 1.0, 0.2, 1.0])
    assert inspect(mild, np.zeros(8), rng=1, draws=500).passed
    # Unequal by design: the report says so, and the check can be left out.
    assert "by design only where the sensitivity is smaller" in found["column_scale"].what
    assert inspect(small, np.zeros(8), rng=1, draws=500, skip=("column_scale",)).passed


def test_rows_that_repeat_or_follow_each_other():
    def tiled(x, size, rng):
        return x + np.resize(rng.laplace(size=(64, len(x))), (size, len(x)))

    def antithetic(x, size, rng):
        half = rng.laplace(size=((size + 1) // 2, len(x)))
        return x + np.stack([half, -half], axis=1).reshape(-1, len(x))[:size]

    found = inspect(tiled, [0.0, 1.0], rng=1, draws=5000)["shared_rows"]
    assert (found.flagged, found.figures) == (True, {"distinct": 64, "lag": 64})
    assert found.what.startswith("rows of a call repeat every 64 rows")
    assert inspect(antithetic, [0.0, 1.0], rng=1, draws=5000)["shared_rows"].flagged


def test_calls_that_share_a_part_of_their_noise():
    part = np.random.default_rng(3).laplace(size=(5000, 2))

    def shifted(x, size, rng):
        return x + np.roll(part, int(rng.integers(100, 200)), axis=0)[:size]

    def partly(x, size, rng):
        return laplace(x, size, rng) + part[:size]

    for mechanism in (shifted, partly):
        found = inspect(mechanism, [0.0, 1.0], rng=1, draws=5000)
        assert found["shared_calls"].flagged, str(found)


def test_one_draw_for_ever_is_shared_by_rows_and_calls():
    def constant(x, size, rng):
        return np.tile(x + 1.5, (size, 1))

    found = inspect(constant, [0.0, 1.0], rng=1, draws=300)
    assert found.flagged == ("shared_rows", "shared_calls")


def test_some_coordinates_without_noise():
    def partial(x, size, rng):
        outputs = laplace(x, size, rng)
        outputs[:, 1:3] = x[1:3]
        return outputs

    found = inspect(partial, np.arange(5.0), rng=1, draws=1000)
    assert found.flagged == ("no_noise",)
    assert found["no_noise"].what == "no noise in 2 of 5 coordinates"


def test_noise_above_here_and_below_there_is_flagged_once():
    def mixed(x, size, rng):
        return x + (rng.exponential(size=(size, 2)) * np.array([1.0, -1.0]))

    found = inspect(mixed, [0.0, 1.0], rng=1, draws=1000)
    assert set(found.flagged) == {"one_sided", "off_centre"}
    assert "on one side of" in found["one_sided"].what
    above = inspect(dpcore.Exponential(1.0), [0.0, 1.0], rng=1, draws=1000)["one_sided"]
    assert above.what.startswith("never below the clean vector in")


def test_an_atom_that_moves_with_the_input_and_one_that_does_not():
    def winsorised(x, size, rng):
        return x + np.clip(rng.laplace(size=(size, len(x))), -2.0, 2.0)

    def clamped(x, size, rng):
        return np.maximum(laplace(x, size, rng), 0.0)

    found = inspect(winsorised, [0.25, 0.5], rng=1, draws=5000)["atom"]
    assert found.flagged
    assert abs(found.figures["at"]) == pytest.approx(2.0)
    there = inspect(clamped, [0.0, 0.0], rng=1, draws=5000)
    assert not {"atom", "one_sided", "off_centre"} & set(there.flagged)


def test_the_clean_vector_is_rounded_as_the_outputs_are():
    def single(x, size, rng):
        return (x + np.maximum(rng.laplace(size=(size, len(x))), 0.0)).astype(np.float32)

    x = np.array([0.1, 0.7])
    assert (x.astype(np.float32) != x).all()
    found = inspect(single, x, rng=1, draws=1000)["atom"]
    assert found.flagged
    assert (found.figures["at"], found.figures["share"]) == (0.0, pytest.approx(0.5, abs=0.1))


def test_a_clean_vector_that_is_not_x():
    def moved(x, size, rng):
        return laplace(x, size, rng) + 3.0

    x = [1.0, 4.0]
    assert inspect(moved, x, rng=1, draws=2000).flagged == ("off_centre",)
    for clean in (lambda point: np.asarray(point) + 3.0, [4.0, 7.0]):
        assert inspect(moved, x, rng=1, draws=2000, clean=clean).passed
    assert inspect(encoder, x, rng=1, draws=500)["atom"].what.endswith("(clean=): not checked")


def test_inputs_that_a_mechanism_does_not_take_are_named():
    def picky(x, size, rng):
        if np.ptp(x) == 0 or np.min(x) < 0:
            raise ArithmeticError("no range")
        return laplace(x, size, rng)

    found = inspect(picky, [0.0, 1.0], rng=1, draws=500)["scale"]
    assert "(refused: 0 (ArithmeticError), x - " in found.what
    # The user's own inputs are not refused in silence.
    with pytest.raises(ArithmeticError, match="no range"):
        inspect(picky, [0.0, 1.0], rng=1, draws=500, others=[[1.0, 1.0]])


def test_a_scale_that_depends_on_the_input_in_one_coordinate():
    def local(x, size, rng):
        return x + rng.laplace(size=(size, len(x))) * np.where(np.asarray(x) > 5, 2.0, 1.0)

    x = np.zeros(20)
    other = 6.0 * (np.arange(20) == 7)
    assert inspect(local, x, rng=1, draws=4000, others=[x + 1]).passed
    found = inspect(local, x, rng=1, draws=4000, others=[x + 1, other])
    assert (found.flagged, found["scale"].figures["at"]) == (("scale",), "others[1]")
    assert found["scale"].figures["ratio"] == pytest.approx(2.0, rel=0.2)


def test_a_wall_is_seen_where_draws_reach_it():
    noises = dpcore.Uniform(-1.0, 1.0), stats.truncnorm(-2, 2), stats.truncnorm(-9, 9)
    found = [inspect(noise, [0.0, 1.0], rng=1, draws=20_000)["range"].flagged for noise in noises]
    assert found == [True, True, False]


def test_the_grid_of_float32_laplace_is_counted():
    fault = next(fault for fault in FAULTS if fault.name == "float32_laplace")
    for dim in (1, 20):
        found = inspect(fault.mechanism, np.full(dim, 0.5), rng=1)
        assert found.flagged == ("grid",)
        assert not find_missing(found["grid"].what, "about 2^24 values", "15.942385")
    # Float64 noise rounded once to float32 has no such grid.
    assert inspect(rounded, np.full(20, 0.5), rng=1).passed


# Noise behind a clip: the tail is measured from what the noise is added to, not from the input.


FLOAT32 = next(fault for fault in FAULTS if fault.name == "float32_laplace").mechanism
CLIPS = {
    "box": lambda x: np.clip(x, -1.0, 1.0),
    "norm": lambda x: x / max(1.0, float(np.linalg.norm(x))),
    "image": lambda x: np.clip(x, 0.0, 1.0),
    "away from 0": lambda x: np.clip(x, 2.0, 5.0),
}


def behind(clip, noise):
    return lambda x, size, rng: noise(clip(np.asarray(x, np.float64)), size, rng)


def point(dim):
    return np.random.default_rng(0).normal(size=dim) * 5.0


@pytest.mark.parametrize("name", CLIPS)
def test_a_grid_is_found_behind_a_clip(name):
    found = inspect(behind(CLIPS[name], FLOAT32), point(64), rng=1)["grid"]
    assert found.flagged, str(found)
    assert "measured from" in found.what
    # Twins: the same clip before sound noise, and the same noise without a clip.
    clear = inspect(behind(CLIPS[name], laplace), point(64), rng=1, draws=4000)
    assert (clear["grid"].flagged, clear["range"].flagged) == (False, False)


def test_the_input_stays_the_centre_where_it_is_the_median():
    found = inspect(FLOAT32, point(64), rng=1)["grid"]
    assert found.flagged
    assert "measured from" not in found.what
    assert "measured from" not in inspect(laplace, point(3), rng=1, draws=500)["range"].what


def test_a_layer_that_is_silent_at_0_is_seen_at_its_wall():
    def layer(x, size, rng):
        return FLOAT32(np.clip(x, -1.0, 1.0), size, rng) if np.any(x) else np.zeros((size, len(x)))

    found = inspect(layer, point(64), rng=1)["grid"]
    assert found.flagged
    assert "clipped at a wall" in found.what

    def refusing(x, size, rng):
        if not np.any(x):
            raise ValueError("no input")
        return layer(x, size, rng)

    assert inspect(refusing, point(64), rng=1)["grid"].flagged


def test_what_no_clip_explains_is_measured_from_the_input():
    """Noise off its centre everywhere is that, and no clip."""
    found = inspect(lambda x, n, rng: laplace(x, n, rng) + 3.0, point(5), rng=1, draws=2000)
    assert found["off_centre"].flagged
    assert "measured from" not in found["grid"].what


def test_sound_noise_behind_a_clip_is_flagged_no_more_than_stated():
    from scipy import stats

    layer = behind(CLIPS["box"], laplace)
    options = {"draws": 400, "false_alarm": 0.05}
    alarms = sum(not inspect(layer, point(3), rng=s, **options).passed for s in range(150))
    assert stats.binom.sf(alarms - 1, 150, 0.05) > ALPHA


# Messages of wrong calls of `dpcore.structure`: the argument, and a word of the remedy.


fault = partial(replace, FAULTS[0])


VALUE_ERRORS = [
    # Structural checks: power on named faults, passes on sound noise, and the false-alarm rate.
    (lambda: Check("noise", True, "x"), "name", "one of 'no_noise'"),
    (lambda: Check("grid", True, "x", 2.0), "p_value", "a finite number at"),
    (lambda: fault(x=[np.nan]), "x", "a non-empty vector of finite"),
    (lambda: fault(flagged_by=()), "flagged_by", "at least one name"),
    (lambda: fault(flagged_by=("luck",)), "flagged_by", "one of 'no_noise'"),
]  # fmt: skip
TYPE_ERRORS = [
    # Structural checks: power on named faults, passes on sound noise, and the false-alarm rate.
    (lambda: Check("grid", 1, "x"), "flagged", "True or False"),
    (lambda: Check("grid", True, None), "what", "a str"),
    (lambda: Check("grid", True, "x", 0.5, (("a",),)), "evidence", "a tuple"),
    (lambda: Inspection("m", 1, 200, 1, 0.1, 0.1, [1]), "checks", "a tuple"),
    (lambda: fault(mechanism=3), "mechanism", "a mechanism"),
    (lambda: fault(repaired=3), "repaired", "a mechanism"),
    (lambda: fault(flagged_by="rank"), "flagged_by", "a tuple of names"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
