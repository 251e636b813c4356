"""The share of pairs that ADePT's noise does not protect: counts, comparison, files."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import quad
from scipy.stats import binomtest

from dpcore import _core
from dpcore.experiments import habernal2021_figure1 as figure1

ALPHA = 1e-6
"""Significance of every statistical test: a fixed seed fails by chance once in a million."""

UNIFORM, TENTH, HUNDREDTH = ("uniform", 10.0), ("normal", 1.0), ("normal", 0.1)


def beyond(law, clip="l2", dim=2, pairs=10_000, seed=1, threads=1, radius=10.0):
    return _core.pairs_beyond(law, (clip, radius), dim, pairs, seed, threads)


def circle_share():
    """P(L1 distance of two uniform points of the unit circle > 2).

    The chord has length 2 sin u, u uniform on [0, pi/2], and its direction is at an angle v to the
    diagonal, uniform on [0, pi/4]: the L1 distance is 2 sin u sqrt(2) cos v.
    """

    def over(v):
        return 1.0 - math.asin(min(1.0, 1.0 / (math.sqrt(2.0) * math.cos(v)))) / (math.pi / 2.0)

    return quad(over, 0.0, math.pi / 4.0)[0] / (math.pi / 4.0)


def test_two_points_of_a_circle_have_an_exact_share():
    # Entries of a thousand radii: all but a millionth of the vectors are clipped.
    pairs = 1_000_000
    found = beyond(("normal", 1e4), dim=2, pairs=pairs)
    assert binomtest(found, pairs, circle_share()).pvalue > ALPHA
    # Negative control: a limit of 2C sqrt(n) would be passed by none, and 2 % more is noticed.
    assert binomtest(round(1.02 * found), pairs, circle_share()).pvalue < ALPHA


def test_comparison_values():
    result = figure1.run(figure1.Config(dims=tuple(figure1.COMPARISON), seed=11))
    assert result.smallest_p_value > ALPHA
    compared = [cell for cell in result.cells if cell.compared is not None]
    assert len(compared) == 21
    for cell in compared:
        assert cell.share == pytest.approx(cell.compared, abs=0.02)
    # Negative control: pairs of another size do not agree with the values of this one.
    other = figure1.run(figure1.Config(dims=(3, 170), seed=11))
    for dim, law, known in ((3, "uniform", 0.134), (170, "normal 0.01", 0.037)):
        cell = other.at(dim, law, "l2")
        assert figure1.p_value((cell.beyond, cell.pairs), known, 10_000) < ALPHA


@pytest.mark.parametrize(("clip", "dim"), [("l2", 1), *(("l1", n) for n in (1, 2, 3, 24, 4096))])
def test_one_entry_and_what_is_clipped_in_l1_are_protected(clip, dim):
    pairs = 20_000 if dim < 300 else 500
    for law in (UNIFORM, TENTH, HUNDREDTH, ("normal", 100.0)):
        assert beyond(law, clip, dim, pairs, threads=2) == 0


def test_the_seed_alone_decides():
    for law, dim in ((UNIFORM, 3), (TENTH, 18), (HUNDREDTH, 170)):
        first = beyond(law, dim=dim, pairs=30_000)
        assert 0 < first < 30_000
        assert [beyond(law, dim=dim, pairs=30_000, threads=n) for n in (1, 2, 3)] == [first] * 3
        assert beyond(law, dim=dim, pairs=30_000, seed=2) != first


def test_true_sensitivity_is_attained():
    rows = figure1.compare_sensitivities(10.0)
    assert [row.dim for row in rows] == [32, 64, 128, 256, 512, 1024]
    assert (round(rows[0].factor, 2), rows[-1].factor) == (5.66, 32.0)
    for row in rows:
        assert row.factor == pytest.approx(math.sqrt(row.dim), rel=1e-12)
        assert (row.attained, row.claimed) == (pytest.approx(row.true, rel=1e-12), 20.0)


def test_costs_of_the_remedies():
    found = {
        (cost.law, cost.dim, cost.norm): cost for cost in figure1.noise_over_signal(10.0, 2.0, 1)
    }
    assert len(found) == 3 * 11 * 2
    for dim in (1, 16, 1024):
        assert found["uniform", dim, "l1"].scale == 10.0
        assert found["uniform", dim, "l2"].scale == pytest.approx(10.0 * math.sqrt(dim))
        # With the same noise at n = 1, and never more noise to signal, clipping in L1 is no worse.
        for law in figure1.LAWS:
            assert found[law, dim, "l1"].ratio <= found[law, dim, "l2"].ratio * (1 + 1e-12)
    # Once all is clipped, the gain is the length over the mean magnitude: sqrt(4/3), sqrt(pi/2).
    for law, gain in (("uniform", math.sqrt(4 / 3)), ("normal 0.1", math.sqrt(math.pi / 2))):
        pair = (found[law, 1024, "l2"].ratio, found[law, 1024, "l1"].ratio)
        assert pair[0] / pair[1] == pytest.approx(gain, rel=0.01)
    # Noise of variance 2 scale^2 on an entry of variance C^2 / 3, which one entry keeps.
    assert found["uniform", 1, "l2"].ratio == pytest.approx(math.sqrt(2.0 * 3.0), rel=0.05)
    # Vectors much shorter than C are not clipped: the whole sqrt(n) is saved.
    short = (found["normal 0.01", 64, "l2"], found["normal 0.01", 64, "l1"])
    assert short[0].ratio / short[1].ratio == pytest.approx(8.0, rel=1e-6)


def test_text_and_picture():
    result = figure1.run(figure1.Config(trials=500, dims=(1, 2, 32, 4096), radius=3.0))
    text = result.table()
    assert "The true sensitivity is 5.66 to 32 times higher than claimed" in text
    assert "C = 3," in text
    assert max(map(len, text.splitlines())) <= 100
    assert result.at(4096, "normal 0.01", "l2").share == 1.0
    panels = result.plot().axes
    assert [axes.get_xscale() for axes in panels] == ["log"] * 3
    assert all(axes.get_xlabel() == "entries n of the vector" for axes in panels)
    assert figure1.choose_table_dims(range(1, 256), [2, 8]) == [2, 8]
    assert len(figure1.choose_table_dims(range(300, 500), [2])) <= 16
    # One size without a comparison: no p-value, and a picture all the same.
    lonely = figure1.run(figure1.Config(trials=100, dims=(3,)))
    assert lonely.smallest_p_value is None
    lonely.plot().canvas.draw()


@pytest.mark.timeout(120)
def test_ctrl_c_ends_a_count_in_the_core(ctrl_c):
    ctrl_c(0.2)
    with pytest.raises(KeyboardInterrupt):
        beyond(TENTH, dim=64, pairs=10**12, threads=2)


def test_both_clips_have_the_same_pairs_and_no_two_cells_more():
    result = figure1.run(figure1.Config(trials=10, dims=(2, 3)))
    seeds = {(cell.dim, cell.law): set() for cell in result.cells}
    for cell in result.cells:
        seeds[cell.dim, cell.law].add(cell.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == 6


def test_extreme_units_change_nothing():
    shares = []
    for radius in (1e-90, 10.0, 1e90):
        result = figure1.run(figure1.Config(trials=500, dims=(3, 20), radius=radius))
        shares.append([cell.share for cell in result.cells])
        assert all(math.isfinite(cost.ratio) for cost in result.correction_costs)
    # Equal up to pairs that lie within a rounding of the limit: here none.
    assert shares[0] == shares[1] == shares[2]
