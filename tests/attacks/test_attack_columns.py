"""What all attacks on numbers share: columns and atoms."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import rng

import dpcore
from dpcore.attacks import arrays


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
    values = arrays.finite_values(np.concatenate([plain, atom, [np.nan, np.inf]]))
    assert values.size == 5200
    atoms = arrays.atoms_of(values, arrays.grain_of(values, values))
    assert atoms.counts.tolist() == [200]
    assert atoms.lows[0] < 0.3 < atoms.highs[0] < 0.3 + 1e-6
    assert arrays.loose_of(values, atoms).sum() == 5000
    assert arrays.atoms_of(np.empty(0), arrays.EXACT).counts.size == 0
    assert arrays.atoms_of(np.zeros(3), arrays.EXACT).counts.size == 0
    assert arrays.atoms_of(np.zeros(4), arrays.EXACT).counts.tolist() == [4]


def test_a_huge_outlier_does_not_make_everything_one_atom():
    values = arrays.finite_values(np.append(rng(16).normal(size=5000), 1e7))
    assert arrays.atoms_of(values, arrays.grain_of(values, values)).counts.sum() < 100


def test_atoms_are_looked_for_in_part_of_the_pilot():
    assert len(arrays.first_rows(np.zeros((2**18, 1)))) == 2**17
    assert len(arrays.first_rows(np.zeros((2**18, 1), np.float32))) == 2**13


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
