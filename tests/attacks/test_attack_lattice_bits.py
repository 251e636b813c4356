"""The lowest bits of floats, and the scores made of them, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_audits import assert_kept

from dpcore.attacks.arrays import FINEST, lowest_bit
from dpcore.attacks.lattice import FinerThan, LowBits, classify_exponents, find_cells, is_finer

WORDS = st.integers(0, 2**64 - 1)


# Bits.


@given(st.lists(WORDS, min_size=1, max_size=30), st.integers(-1023, FINEST))
def test_bits_are_those_of_exact_fractions(words, exponent):
    values = np.array(words, np.uint64).view(np.float64)
    found, broken = lowest_bit(values), None
    known = np.isfinite(values)
    broken = is_finer(values[known], exponent)
    for value, bit in zip(values[known].tolist(), found[known].tolist(), strict=True):
        fraction = Fraction(value)
        if fraction == 0:
            assert bit == 1024
            continue
        assert fraction % (Fraction(2) ** bit) == 0
        assert fraction % (Fraction(2) ** (bit + 1)) != 0
    assert (found[~known] == 1024).all()
    step = Fraction(2) ** -exponent
    assert broken.tolist() == [Fraction(v) % step != 0 for v in values[known].tolist()]
    # Both say the same: finer than 2^-e is a lowest bit below -e.
    assert broken.tolist() == (found[known] < -exponent).tolist()


@pytest.mark.parametrize("value", [5e-324, -5e-324, 2.0**-1022, 2.0**1023, 1.7976931348623157e308])
def test_the_ends_of_the_doubles(value):
    values = np.array([value])
    assert Fraction(value) / Fraction(2) ** int(lowest_bit(values)[0]) % 2 == 1
    for exponent in (-1023, -52, 0, 52, 1023, 1024, FINEST):
        assert is_finer(values, exponent)[0] == (Fraction(value) % Fraction(2) ** -exponent != 0)


def test_nothing_is_finer_than_the_finest_lattice():
    words = np.random.default_rng(1).integers(0, 2**64, 10**5, dtype=np.uint64).view(np.float64)
    assert not FinerThan(FINEST, -1e308, 1e308)(words).any()


def test_from_one_no_fine_output_ever_from_zero_many():
    # The arithmetic itself, for any noise: Sterbenz' lemma, and its absence.
    rng = np.random.default_rng(1)
    score = FinerThan(53, -0.5, 0.5)
    for noise in (rng.laplace(0.0, 10.0, 10**6), rng.normal(0.0, 1.0, 10**6)):
        assert not score(1.0 + noise).any()
        assert score(0.0 + noise).mean() > 0.02
    # One bit less, and 1.0 does reach it: the exponent is the right one.
    assert FinerThan(52, -0.5, 0.5)(1.0 + rng.normal(0.0, 1.0, 10**6)).any()


# Scores.


def naive(score, rows):
    hits = []
    for row in rows:
        inside = [
            math.isfinite(row[c])
            and score.low <= row[c] < score.high
            and Fraction(float(row[c])) % Fraction(2) ** -score.exponent != 0
            for c in score.columns
        ]
        hits.append(float(any(inside) if score.quantifier == "some" else all(inside)))
    return hits


@pytest.mark.parametrize("quantifier", ["some", "every"])
@pytest.mark.parametrize("columns", [(0,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_cut_is_its_definition(quantifier, columns, dtype):
    rows = np.random.default_rng(1).laplace(0.0, 1.0, (300, 3)).astype(dtype)
    rows[::7, 1], rows[3, 0], rows[4, 2] = 0.25, np.nan, np.inf
    bits = {np.float64: 53, np.float32: 24, np.float16: 10}[dtype]
    score = FinerThan(bits, -0.5, 0.5, columns, quantifier)
    assert score(rows).tolist() == naive(score, rows.astype(np.float64))
    assert 0 < score(rows).sum() < 300
    assert score(rows.reshape(300, 3, 1)).tolist() == score(rows).tolist()


def test_the_window_holds_its_lower_end_only():
    score = FinerThan(1, 0.25, 0.75)
    assert score(np.array([0.25, 0.75, np.nextafter(0.75, 0.0)])).tolist() == [1.0, 0.0, 1.0]


def test_the_table_is_its_definition():
    rng = np.random.default_rng(1)
    edges, exponents = np.array([-2.0, 0.0, 1.0]), np.array([-54, -52])
    table = rng.normal(size=(2, 3))
    rows = rng.laplace(0.0, 1.0, (4000, 2))
    rows[0], rows[1], rows[2] = (0.5, -1.0), (np.nan, np.inf), (-2.0, 1.0)
    score = LowBits(edges, exponents, table, (1, 0))
    expected = np.zeros(len(rows))
    for column in (1, 0):
        for i, value in enumerate(rows[:, column].tolist()):
            place = int(np.searchsorted(edges, value, side="right")) - 1
            if math.isfinite(value) and 0 <= place < 2:
                bit = int(lowest_bit(np.array([value]))[0])
                expected[i] += table[place, int(np.searchsorted(exponents, bit, side="right"))]
    assert score(rows).tolist() == expected.tolist()


def test_cells_of_a_table():
    place = classify_exponents(np.array([-2, 0]))
    values = np.array([-0.5, 0.25, 0.5, 3.0, 0.125, np.nan])
    # Bins: below 0, from 0 to 1, beyond; classes: t < -2, -2 <= t < 0, t >= 0.
    assert find_cells(values, np.array([0.0, 1.0]), place).tolist() == [1, 4, 4, 8, 3, 8]


def test_scores_are_records_in_words():
    scores = (
        FinerThan(53, -0.5, 0.5),
        FinerThan(52, -1.0, 0.0, (0, 1), "every"),
        LowBits(np.array([0.0, 1.0]), np.array([-53]), np.array([[1.0, -1.0]]), (0, 3)),
    )
    for score in scores:
        assert_kept(score)
        assert score.merged
    assert scores[0] != FinerThan(53, -0.5, 0.25)
    assert str(scores[0]) == "[entry 0 is in [-0.5, 0.5) and no multiple of 2^-53]"
    assert str(scores[1]) == "[each of 2 entries is in [-1, 0) and no multiple of 2^-52]"
    assert str(scores[2]) == "log ratio of the lowest set bits of entries 0, 3"
