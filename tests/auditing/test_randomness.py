"""Whose randomness it is: probed before counting, and said wherever a seed is."""

from __future__ import annotations

import random
import secrets
from dataclasses import replace

import numpy as np
import pytest
import shared_plugin
from shared_randomness import (
    AUDITS,
    MODULE,
    PAIR,
    Congruential,
    Own,
    Rounded,
    audited,
    bits,
    by_python,
    by_secrets,
    by_the_module,
    by_the_system,
    constant,
    globally,
    half,
    kept,
    never,
    noise,
    one_side,
)

import dpcore
from dpcore import Audit
from dpcore.auditing.randomness import classify_randomness, compare_outputs
from dpcore.records import Pair
from dpcore.report.encoding import make_script
from dpcore.sampling.sources import CallableDraws

pytest_plugins = ["pytester"]

inner = shared_plugin.inner


# What the probe says.


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (noise, "seed"),
        (bits, "seed"),
        (one_side, "seed"),
        (dpcore.Laplace(1.0), "seed"),
        (dpcore.repeat(lambda x, rng: x[0] + rng.laplace()), "seed"),
        (dpcore.repeat(lambda x: random.random() < 0.5, seeded="global"), "seed"),
        (dpcore.repeat(lambda x, rng: x[0] + np.random.laplace()), "own"),  # noqa: NPY002
        (dpcore.repeat(lambda x: secrets.randbelow(9)), "own"),
        (globally, "own"),
        (by_python, "own"),
        (by_the_system, "own"),
        (by_secrets, "own"),
        (by_the_module, "own"),
        (Own(np.random.default_rng(0)), "own"),
        (Own(random.Random(0)), "own"),
        (Own(np.random.default_rng(0), 1.0), "own"),
        (Congruential(), "own"),
        (Rounded(), "rounding"),
        (Rounded(1e4), "own"),
        (constant, "not known"),
    ],
)
def test_whose_randomness_it_is(mechanism, expected):
    assert audited(mechanism).randomness == expected


def test_a_word_that_is_often_kept_needs_many_rows():
    """Twice 64 rows of it are equal by chance: only more of them say whose they are."""
    draws = CallableDraws(kept, Pair(*PAIR), 1, 2**17, ())
    assert classify_randomness(draws, 10**4) == "not known"
    assert classify_randomness(draws, 2 * 10**6) == "seed"
    again = replace(draws, mechanism=lambda x, size, rng: kept(x, size, np.random.default_rng()))
    assert classify_randomness(again, 2 * 10**6) == "own"


@pytest.mark.parametrize(("mechanism", "most"), [(noise, 128), (bits, 512), (constant, 2100)])
def test_the_probe_is_bounded_by_calls(mechanism, most):
    """By rows, whatever the clock says: 64 of them, twice, of whatever has many values."""
    rows = []

    def counting(x, size, rng):
        rows.append(size)
        return mechanism(x, size, rng)

    draws = CallableDraws(counting, Pair(*PAIR), 1, 2**17, mechanism([0.0], 1, MODULE).shape[1:])
    classify_randomness(draws, 2**14)
    assert 128 <= sum(rows) <= most


def test_blocks_of_one_row_are_probed_row_by_row():
    draws = CallableDraws(noise, Pair(*PAIR), 1, 1, (1,))
    assert classify_randomness(draws, 1000) == "seed"
    assert classify_randomness(replace(draws, mechanism=globally), 1000) == "own"
    assert (
        classify_randomness(CallableDraws(constant, Pair(*PAIR), 1, 1, (2,)), 1000) == "not known"
    )


BASE = np.random.default_rng(5).normal((0.0, 1e6), size=(64, 2))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (BASE, BASE.copy(), "seed"),
        (BASE, BASE * (1.0 + 2.0**-51), "rounding"),
        (BASE, BASE + np.array([2.0**-50, 0.0]), "rounding"),
        (BASE, BASE + np.array([1e-9, 0.0]), "own"),
        (BASE, BASE + np.array([0.0, 5e-10]), "rounding"),
        (BASE.astype("f4").astype("f8"), BASE.astype("f4") * np.float32(1 + 2**-22), "rounding"),
        (np.rint(BASE), np.rint(BASE) + np.array([0.0, 1.0]), "own"),
        (np.array([0.0, np.nan]), np.array([-0.0, np.nan]), "rounding"),
        (np.array([np.inf, 1.5]), np.array([np.inf, 1.5]), "seed"),
        (np.array([np.inf, 1.5]), np.array([-np.inf, 1.5]), "own"),
        (np.array([2**62, 1]), np.array([2**62 + 1, 1]), "own"),
        (np.array([1.5 + 1j]), np.array([1.5 + 1j * (1 + 2**-52)]), "rounding"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "own"),
        (np.array([0.1, 0.7], object), np.array([0.1, 0.7 + 2**-53], object), "rounding"),
        (np.array([0.1, "a"], object), np.array([0.1, "b"], object), "own"),
    ],
)
def test_differences_are_told_from_rounding(one, other, expected):
    assert compare_outputs(one, other) == expected


# What follows.


def test_the_report_the_page_and_the_script_say_it():
    own, seeds, rounding = audited(by_the_system), audited(noise), audited(Rounded())
    assert "draws its own randomness, which no seed repeats" in str(own)
    assert "draws its own randomness, which no seed repeats" in own.to_html()
    assert "the seed does not repeat it" in make_script(own)
    assert "the seed does not repeat it" in own.to_html()
    for words in ("own randomness", "repeat"):
        assert words not in str(seeds)
    assert "the seed does not repeat" not in make_script(seeds)
    assert "up to rounding, not bit for bit" in str(rounding)
    assert "not bit for bit" in make_script(rounding)
    assert "whether the seed repeats the outputs is not known" in str(audited(constant))


def test_outputs_are_drawn_again_only_where_that_is_possible():
    seeds = audited(noise)
    assert half(seeds.outputs("x", 0, 20_000)).sum() == seeds.counts.k
    assert audited(Rounded()).outputs("x", 0, 10).shape == (10,)
    message = r"^audit must be of a mechanism whose outputs the seed repeats, got .*by_the_system"
    with pytest.raises(ValueError, match=message):
        audited(by_the_system).outputs("x", 0, 10)


def test_json_and_merged_audits_keep_it():
    own = audited(by_the_system)
    assert Audit.from_json(own.to_json()).randomness == "own"
    options = {"trials": 16_384, "block": 4096}
    parts = [audited(bits, start=start, **options) for start in (0, 16_384)]
    assert (parts[0] + parts[1]).randomness == "seed"
    for worse in ("own", "rounding"):
        changed = replace(parts[1], randomness=worse)
        assert (parts[0] + changed).randomness == (changed + parts[0]).randomness == worse
    unknown = replace(parts[1], randomness="not known")
    assert (unknown + parts[0]).randomness == "seed"


def test_equal_seeds_give_the_counts_that_they_gave_without_a_probe():
    """Counted before there was one."""
    assert audited(noise).counts == dpcore.Counts(6095, 20000, 13894, 20000)
    assert audited(bits).counts == dpcore.Counts(4928, 20000, 15054, 20000)


TWO = """
import numpy as np

def own(x, size, rng):
    return x + np.random.default_rng().laplace(scale=2.0, size=(size, len(x)))

def test_one(dp_audit):
    for _ in range(2):
        dp_audit({name}, PAIR, epsilon=9.0, trials=1000)

def test_two(dp_audit):
    dp_audit({name}, PAIR, epsilon=9.0, trials=1000)
"""


def test_pytest_warns_once_a_run(inner):
    result = inner(TWO.format(name="own"), "-Wdefault")
    result.assert_outcomes(passed=2, warnings=1)
    text = "*AssumptionWarning: *own draws its own randomness: no seed repeats the audit in"
    result.stdout.fnmatch_lines([f"{text} *test_one*"])
    inner(TWO.format(name="noisy"), "-Wdefault").assert_outcomes(passed=2, warnings=0)


# No false alarm.


@pytest.mark.parametrize("mechanism", [noise, bits, kept, constant, one_side])
def test_clean_mechanisms_are_never_said_to_have_randomness_of_their_own(mechanism):
    for seed in range(AUDITS // 5):
        found = audited(mechanism, rng=seed, trials=2048, attack=never).randomness
        assert found in ("seed", "not known")
