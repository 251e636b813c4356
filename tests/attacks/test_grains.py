"""Columns of numbers: what rounding may move them by, formats, exact columns, atoms."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import rng
from shared_formats import FORMATS, PLACES, farthest

import dpcore
from dpcore.attacks import arrays
from dpcore.attacks.atoms import atoms_of, loose_of, take_head_rows
from dpcore.attacks.grains import (
    APART,
    EXACT,
    NEAR,
    SAME,
    Tolerance,
    bin_boundary_indices,
    classify_gaps,
    column_tolerance,
    column_tolerances,
    merge_grains,
    weighted_sum_rounding,
)
from dpcore.events.event import BITS, note_format_in_dtype, noted_format_significant_bits

RNG = np.random.default_rng(20)
NOISE = RNG.laplace(size=(2, 20_000))


def sides(made, offset=0.0):
    return made(offset + NOISE[0]), made(offset + 1.0 + NOISE[1])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kept_as", [None, np.float64])
def test_a_format_is_found_whatever_holds_it(name, kept_as):
    made = sides(FORMATS[name])
    grain = column_tolerance(*(side if kept_as is None else side.astype(kept_as) for side in made))
    assert grain.bits == PLACES[name] == BITS[name]
    assert grain.middle == pytest.approx(np.median(np.abs(np.concatenate(made))), rel=0.1)
    last = 2.0 ** -(PLACES[name] - 1)
    assert grain.tolerances(np.array([1.0, 3.0, -4.0])) == pytest.approx(
        8 * last * np.array([1, 2, 4])
    )
    # Near 0 the tolerance is that of the middle, and a sentinel widens nothing but its own place.
    assert grain.tolerances(0.0) == grain.typical_tolerance < 8 * last


def test_the_coarser_side_decides():
    plain, _ = sides(FORMATS["float64"])
    _, narrow = sides(FORMATS["float32"])
    assert column_tolerance(plain, narrow.astype(np.float64)).bits == 24
    # One number may be short by chance.
    assert column_tolerance(plain, np.full(1000, 0.5)).bits == 53


EXACTLY = [
    [331449281.0, 331449282.0], [100.0, 100.5], [200.0, 201.0], np.arange(-50.0, 50.0) / 4,
    np.append(np.arange(-400.0, 400.0) / 2, [1e12, -2147483648.0]), np.arange(10),
    np.array([2**62, 2**62 + 1]), np.array([True, False]), [np.nan, np.inf, 7.0], [np.nan], [],
    [0.0],
]  # fmt: skip
ROUNDED = [
    [2.9999999996, 3.0, 4.0], np.arange(-50, 50) * 0.1, 1e9 + np.arange(-50, 50) * 0.1,
    3e8 + NOISE[0], 1e17 + 1e6 * NOISE[0], np.append(np.round(NOISE[0], 1), 1e12),
]  # fmt: skip


def test_what_was_never_rounded_is_exact_and_what_was_is_not():
    for values in map(np.asarray, EXACTLY):
        assert column_tolerance(values, values) == EXACT, values
    assert (EXACT.exact, EXACT.tolerances(1e9)) == (True, 0.0)
    for values in map(np.asarray, ROUNDED):
        assert column_tolerance(values, values).bits == 53, values


def test_a_rare_number_that_is_not_whole_is_seen_beyond_the_sample():
    values = np.zeros(100_000)
    values[-1] = 0.1
    assert column_tolerance(values, values).bits == 53


def test_each_column_has_its_own_grain():
    bit, noise = np.repeat([0.0, 1.0], 500), NOISE[0][:1000]
    rows = np.column_stack([bit, 2.5e9 + noise, noise])
    grains = column_tolerances(rows, rows)
    assert (grains[0], grains[1].typical_tolerance) == (EXACT, pytest.approx(8 * np.spacing(2.5e9)))
    assert grains[2].typical_tolerance < 1e-14


def test_an_adapter_says_which_format_it_converted():
    few = np.array([100.25, 101.5], np.float32)
    assert noted_format_significant_bits(few) == 24
    told = note_format_in_dtype(few, "bfloat16")
    assert (
        noted_format_significant_bits(told)
        == noted_format_significant_bits(told[:1])
        == noted_format_significant_bits(told[:, np.newaxis])
        == 8
    )
    assert np.array_equal(told, few)
    assert column_tolerance(told, told) == Tolerance(8, 100.25)


def test_grains_of_sums_and_of_the_coarsest():
    fine, coarse = Tolerance(53, 1.0), Tolerance(24, 4.0)
    assert merge_grains([fine, coarse, EXACT]) == Tolerance(24, 4.0)
    assert merge_grains([EXACT, EXACT]) == EXACT
    total = weighted_sum_rounding([fine, coarse])
    assert (total.bits, total.absolute) == (53, fine.typical_tolerance + coarse.typical_tolerance)
    weighted = weighted_sum_rounding([fine, coarse], np.array([0.0, -2.0]))
    assert weighted.absolute == 2 * coarse.typical_tolerance
    # A sum in doubles rounds even what was exact.
    assert 0.0 < weighted_sum_rounding([Tolerance(0, 100.0)]).absolute < 1e-12


def test_steps():
    grain = Tolerance(53, 1.0)
    values = np.array([1.0, 1.0, 1.0 + 4e-16, 1.5, 2.0])
    assert classify_gaps(values, grain).tolist() == [SAME, SAME, APART, APART]
    assert classify_gaps(values, EXACT).tolist() == [SAME, APART, APART, APART]
    assert (classify_gaps(1.0 + np.arange(40) * 4e-16, grain) == NEAR).all()
    assert classify_gaps(np.array([1.0]), grain).size == 0


def test_a_long_computation_leaves_one_number_where_nothing_is_near():
    grain = Tolerance(53, 1.0)
    atom = 1.0 + np.array([0.0, 100.0, 900.0]) * np.spacing(1.0)
    alone = np.concatenate([[0.5], atom, [1.5]])
    assert classify_gaps(alone, grain).tolist() == [APART, SAME, SAME, APART]
    # Exact numbers are never joined, nor are those that others lie near, nor wider runs.
    assert (classify_gaps(alone, EXACT) == APART).all()
    beside = np.insert(alone, 4, 1.0 + 1e5 * np.spacing(1.0))
    assert (classify_gaps(beside, grain) == APART).all()
    wide = np.concatenate([[0.5], 1.0 + np.array([0.0, 3000.0, 6000.0]) * np.spacing(1.0), [1.5]])
    assert (classify_gaps(wide, grain) == APART).all()


@pytest.mark.parametrize("name", FORMATS)
def test_noise_of_64_last_places_is_no_single_number(name):
    values, _ = sides(FORMATS[name], farthest(name))
    values = np.unique(values.astype(np.float64))
    assert (classify_gaps(values, Tolerance(PLACES[name], farthest(name))) != SAME).all()


def test_cuts_lie_apart_or_are_16_tolerances_from_each_other():
    assert bin_boundary_indices(np.sort(NOISE[0][:500]), Tolerance(53, 1.0)).size == 499
    dense = np.unique(FORMATS["bfloat16"](NOISE[0]).astype(np.float64))
    grain = Tolerance(8, 1.0)
    middle = dense[np.abs(dense) < 2.0]
    assert 3 <= bin_boundary_indices(middle, grain).size <= 4.0 / (16 * grain.typical_tolerance) + 2
    assert bin_boundary_indices(np.array([1.0]), grain).size == 0


# What all attacks on numbers share: columns and atoms.


def test_columns():
    assert (arrays.read_columns(np.array(["a"])), arrays.read_columns(np.array(3.0))) == (
        None,
        None,
    )
    assert arrays.read_columns(np.zeros(4)).shape == (4, 1)
    assert arrays.read_columns(np.zeros((4, 2, 3))).shape == (4, 6)
    assert arrays.read_both_sides(np.zeros((4, 2)), np.zeros((5, 2)))[1].shape == (5, 2)
    assert arrays.read_both_sides(np.zeros((4, 2)), np.zeros((5, 3))) is None
    with pytest.raises(TypeError, match="outputs must be real numbers"):
        arrays.read_numbers(np.array([None, 1]))


def test_atoms_are_values_that_repeat_and_stand_apart():
    generator = rng(15)
    plain = generator.normal(size=5000)
    atom = np.full(200, 0.1 + 0.2) + generator.integers(-2, 3, 200) * 1e-16
    values = arrays.sorted_finite_values(np.concatenate([plain, atom, [np.nan, np.inf]]))
    assert values.size == 5200
    atoms = atoms_of(values, column_tolerance(values, values))
    assert atoms.counts.tolist() == [200]
    assert atoms.lows[0] < 0.3 < atoms.highs[0] < 0.3 + 1e-6
    assert loose_of(values, atoms).sum() == 5000
    assert atoms_of(np.empty(0), EXACT).counts.size == 0
    assert atoms_of(np.zeros(3), EXACT).counts.size == 0
    assert atoms_of(np.zeros(4), EXACT).counts.tolist() == [4]


def test_a_huge_outlier_does_not_make_everything_one_atom():
    values = arrays.sorted_finite_values(np.append(rng(16).normal(size=5000), 1e7))
    assert atoms_of(values, column_tolerance(values, values)).counts.sum() < 100


def test_atoms_are_looked_for_in_part_of_the_pilot():
    assert len(take_head_rows(np.zeros((2**18, 1)))) == 2**17
    assert len(take_head_rows(np.zeros((2**18, 1), np.float32))) == 2**13


def test_thresholds_keep_away_from_the_atoms_of_float32():
    """Sums of float32 meet the atoms of the real law to seven digits only."""

    def released(x, size, generator):
        noise = np.round(generator.laplace(0.0, 1.0, (size, 1)), 1)
        return np.float32(x) + noise.astype(np.float32)

    for seed in range(5):
        audit = dpcore.audit(released, ([0.0], [0.3]), claim=0.3, trials=10**5, rng=seed)
        threshold = audit.event.threshold
        if str(audit.event).startswith("entry 0"):
            assert abs(threshold * 10 - round(threshold * 10)) > 1e-4
        # Just as in real numbers: the nearest multiple of a tenth decides.
        for side in ("x", "x_prime"):
            outputs = audit.outputs(side, 0, 10**5).astype(np.float64)
            clean = np.round(outputs, 1).astype(np.float32)
            assert np.array_equal(audit.event(clean), audit.event(outputs.astype(np.float32)))
