"""Residues of whole numbers: what they see, that they stay sound, and their arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from shared_pairs_of_columns import UNIT, odd, secret, told

import dpcore
from dpcore.attacks import Residues
from dpcore.attacks.lattice import MODULI, ResidueRatio, residues_of

PARITY = 2.936
"""What the event "the number is even" certifies with 10^6 trials at 95 %."""


def certified(mechanism, trials=10**6, attack=None):
    report = dpcore.audit(mechanism, UNIT, attack=attack, trials=trials, claim=1.0, rng=11)
    return report.epsilon_lower


def test_the_figure_is_what_a_hand_written_event_certifies():
    assert told(odd(), lambda outputs: outputs[:, 0] % 2 == 0) == pytest.approx(PARITY, abs=0.01)


@pytest.mark.parametrize(
    "turned",
    [
        {}, {"dtype": np.float64}, {"offset": 12345}, {"sign": -1},
        {"offset": 2**52, "dtype": np.float64}, {"offset": 2**62}, {"scale": 1e12},
    ],
    ids=str,
)  # fmt: skip
def test_the_parity_of_a_whole_number_is_seen(turned):
    """Before: 0."""
    assert certified(odd(**turned), 10**6 if not turned else 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("column", [0, 7])
def test_the_parity_of_one_column_of_many_is_seen_wherever_it_is(column):
    def among(x, size, rng):
        outputs = rng.integers(-1000, 1000, (size, 8))
        outputs[:, column] = odd()(x, size, rng)[:, 0]
        return outputs

    assert certified(among, 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_the_parity_of_a_sum_is_seen(shuffled):
    """The last column makes the sum even or odd; each column, and each pair, says nothing."""

    def balanced(x, size, rng):
        outputs = rng.integers(0, 1000, (size, 6))
        outputs[:, -1] += (outputs.sum(axis=1) + secret(x, size, rng)) % 2
        return outputs[:, [3, 5, 0, 1, 4, 2]] if shuffled else outputs

    assert certified(balanced, 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float64])
def test_a_sum_is_seen_whatever_its_sign(dtype, sign):
    """Sums of short integers below 0 were once left out as if they had no residue."""
    plain, leaky = np.random.default_rng(3).integers(0, 1000, (2, 4000, 5))
    leaky[:, 4] -= leaky.sum(axis=1) % 7
    sides = [(sign * side).astype(dtype) for side in (leaky, plain)]
    found = Residues().candidates(*sides, UNIT)
    assert "log-likelihood ratio of the sum of the entries modulo 7" in map(str, found)
    # The control: two halves of the same numbers.
    halves = sides[1][::2], sides[1][1::2]
    assert not any("modulo" in str(score) for score in Residues().candidates(*halves, UNIT))


@pytest.mark.parametrize("modulus", MODULI)
def test_every_modulus_is_found_and_no_multiple_of_it(modulus):
    """Multiples of m come more often on x'; of a divisor they come less often than that."""

    def stepped(x, size, rng):
        outputs = rng.integers(-(10**6), 10**6, (size, 1))
        outputs -= np.where(rng.random((size, 1)) < 0.5 * x[0], outputs % modulus, 0)
        return outputs

    rng = np.random.default_rng(3)
    scores = Residues().telling(*(stepped(x, 2**15, rng) for x in (UNIT.x, UNIT.x_prime)))
    assert [score.modulus for score in scores] == [modulus]


def test_columns_that_each_tell_a_little_are_added():
    def several(x, size, rng):
        wide = 2 * rng.integers(-(10**6), 10**6, (size, 5))
        return wide + (rng.random((size, 5)) < 0.4 + 0.2 * x[0])

    # All five even: five times the loss ln 1.5 of one, or ln(.6 / .4)^5 = 2.03.
    assert certified(several, 2 * 10**5) > 0.9 * 5 * math.log(1.5)


@pytest.mark.parametrize("columns", [1, 20])
def test_numbers_that_say_nothing_have_no_scores(columns):
    """At most 15 moduli of 21 columns in 20 pilots, each by chance below 1e-7."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sides = (rng.integers(-5000, 5000, (2**13, columns)) for _ in range(2))
        assert Residues().telling(*sides) == ()


@pytest.mark.parametrize(
    "made",
    [
        lambda rng, shift: shift + rng.laplace(size=(500, 1)),
        lambda rng, shift: np.where(rng.random((500, 1)) < 0.5, 0.5, 2 * rng.integers(999) + shift),
        lambda rng, shift: 1e300 + np.zeros((500, 1)),
        lambda rng, shift: np.full((500, 1), "a"),
        lambda rng, shift: np.full((500, 1), np.nan),
        lambda rng, shift: rng.integers(0, 5, (500, 1)) + shift,
        lambda rng, shift: np.zeros((500, 0), dtype=int),
    ],
    ids=["reals", "halves", "beyond 2^53", "strings", "nan", "few", "empty"],
)
def test_it_does_not_apply_to_other_numbers_nor_to_few(made):
    rng = np.random.default_rng(1)
    assert Residues().telling(made(rng, 0), made(rng, 1)) == ()


def test_a_sentinel_does_not_hide_the_parity_of_the_rest():
    def missing(x, size, rng):
        outputs = odd(dtype=np.float64)(x, size, rng)
        outputs[rng.random(size) < 0.2] = np.nan
        outputs[rng.random(size) < 0.1] = -np.inf
        return outputs

    assert certified(missing, 2 * 10**5) > 0.9 * PARITY


NUMBERS = [0, 1, -1, 7, -7, 16, 720721, -(2**31), 2**52 + 1, 2**62 + 3, -(2**63)]


@pytest.mark.parametrize("modulus", [2, 3, 7, 16])
def test_residues_are_those_of_pythons_integers(modulus):
    small, large = [n for n in NUMBERS if abs(n) < 2**53], [2**64 - 1, 2**63, 5]
    for numbers, kind in ((NUMBERS, np.int64), (small, np.float64), (large, np.uint64)):
        found = residues_of(np.array(numbers, kind), modulus)
        assert found.tolist() == [n % modulus for n in numbers]
    none = [0.5, np.nan, np.inf, -np.inf, 2.0**53, -1e300]
    assert residues_of(np.array(none), modulus).tolist() == [-1] * len(none)
    assert residues_of(np.array([True, False]), modulus).tolist() == [1, 0]


@pytest.mark.parametrize("summed", [False, True], ids=["entries", "sum"])
@pytest.mark.parametrize("dtype", ["i8", "f8", "i1", "u8"])
def test_scores_are_what_a_loop_says(summed, dtype):
    rows = np.random.default_rng(4).integers(0, 100, (200, 4)).astype(dtype)
    if dtype == "f8":
        rows[:20, 0], rows[10:30, 2], rows[40, 3] = np.nan, 0.5, np.inf
    weights = np.arange(5.0 if summed else 10.0).reshape(-1, 5) - 2.0
    found = ResidueRatio(5, [] if summed else [0, 2], weights, summed)(rows)

    def one(value, table):
        return table[int(value) % 5] if math.isfinite(value) and value == int(value) else 0.0

    for row, score in zip(rows.tolist(), found, strict=True):
        known = [int(v) for v in row if math.isfinite(v) and v == int(v)]
        naive = weights[0][sum(known) % 5] if summed else one(row[0], weights[0]) + one(
            row[2], weights[1])  # fmt: skip
        assert score == naive


def test_half_precision_raises_no_warning():
    """2^53, up to which doubles hold whole numbers, is infinite in float16."""
    halves = np.random.default_rng(7).laplace(size=(64, 1)).astype(np.float16)
    assert not (residues_of(halves, 2) >= 0).all()
