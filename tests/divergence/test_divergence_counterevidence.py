"""No estimate is believed beside its own counter-evidence; equal laws are believed as before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from shared_divergence import judge, make_raw
from shared_messages import find_missing

from dpcore.divergence import reliability, renyi
from dpcore.divergence.points import find_points
from dpcore.divergence.score import cross_fit

ALPHAS = np.array([0.5, 1.0, 2.0])


def case(value, **options):
    return judge(ALPHAS, value, **options)


def test_a_ball_three_joint_errors_above_a_score():
    joint = np.hypot(0.01, 0.01)
    above = case(0.1, above=make_raw(0.1 + 3.01 * joint, (2, 3)))
    assert (above.belief == reliability.UNRESOLVED).all()
    assert "the ball gives 0.1426 +- 0.01 where the score gives 0.1" in above.reason
    assert case(0.1, above=make_raw(0.1 + 2.99 * joint, (2, 3))).resolved.all()
    # Without standard errors, those of equal laws: sqrt(2/1000) of each of the two at order one.
    near, far = (make_raw(value, (2, 3), np.nan) for value in (0.1 + 0.18, 0.1 + 0.20))
    assert case(0.1, spread=np.nan, above=near).resolved.all()
    assert (case(0.1, spread=np.nan, above=far).belief[:, :2] == reliability.UNRESOLVED).all()


def test_the_energy_test_rejects_what_the_interval_calls_0():
    assert (case(0.02, energy_p=0.005).belief == reliability.UNRESOLVED).all()
    assert "(p = 0.01), where the value is 0" in case(0.02, energy_p=0.01).reason
    for value, options in ((0.021, {"energy_p": 0.005}), (0.02, {"energy_p": 0.015}), (0.02, {})):
        assert case(value, **options).resolved.all()


def test_rows_beyond_count_from_order_one_on_in_their_direction():
    judged = case(0.1, outside=("30 of 900 rows of y0 lie out there", None))
    assert judged.belief[0].tolist() == [
        reliability.ESTIMATE,
        reliability.UNRESOLVED,
        reliability.UNRESOLVED,
    ]
    assert judged.resolved[1].all()
    assert "30 of 900 rows of y0 lie out there: no sample tells" in judged.reason


def parity(rng, rows, dim, sign):
    """Four signs whose product is `sign`, 2.3 times each, under unit noise: KL is 9.2."""
    signs = np.sign(rng.normal(size=(rows, 4)))
    signs[:, 3] = sign * signs[:, :3].prod(axis=1)
    out = rng.normal(size=(rows, dim))
    out[:, :4] += 2.3 * signs
    return out


def test_a_score_that_is_blind_is_not_believed():
    rng = np.random.default_rng(1)
    blind = renyi(parity(rng, 3000, 30, 1), parity(rng, 3000, 30, -1), alphas=[0.5, 1.5], rng=1)
    assert blind.method == "score"
    assert np.abs(blind.kl).max() < 0.05
    assert not blind.resolved.any()
    assert "the ball gives" in blind.reason
    # The twin: a shift that the score does see, and the ball no more than it.
    y0, y1 = rng.normal(size=(2, 3000, 20))
    assert renyi(y0 + 0.7 / np.sqrt(20.0), y1, alphas=[0.5, 1.5], rng=1).resolved.all()


def moved(share, far, dim=1):
    def draw(rng, rows):
        y0 = rng.normal(size=(rows, dim))
        y0[rng.random(rows) < share, 0] += far
        return y0, rng.normal(size=(rows, dim))

    return draw


def gap(rng, rows):
    """A twentieth of y0 lies in a hole of y1, between all of its rows."""
    y0, y1 = rng.normal(size=(2, rows)) + 50.0 * rng.choice([-1.0, 1.0], size=(2, rows))
    return np.where(rng.random(rows) < 0.05, rng.normal(size=rows), y0), y1


def ring(rng, rows):
    """The same in the plane."""
    angle = rng.uniform(0.0, 2.0 * np.pi, size=(2, rows))
    y0, y1 = np.stack([50.0 * np.cos(angle), 50.0 * np.sin(angle)], axis=2)
    y0 = np.where((rng.random(rows) < 0.05)[:, None], 0.0, y0) + rng.normal(size=(rows, 2))
    return y0, y1 + rng.normal(size=(rows, 2))


def strip(dim):
    def draw(rng, rows):
        y0, y1 = rng.random((2, rows, dim))
        y0[:, 0] *= 1.04
        return y0, y1

    return draw


BEYOND = {
    "uniform on [0, 1.04]": (strip(1), 4000), "uniform in the plane": (strip(2), 4000),
    "uniform in five dimensions": (strip(5), 4000), "4.5 % far away": (moved(0.045, 50.0), 4000),
    "0.5 % far away": (moved(0.005, 50.0), 10_000),
    "4.5 % far away in five dimensions": (moved(0.045, 50.0, 5), 4000), "in a gap": (gap, 4000),
    "in a ring": (ring, 4000),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_rows_beyond_the_other_set_are_not_believed(name):
    draw, rows = BEYOND[name]
    estimate = renyi(*draw(np.random.default_rng(3), rows), alphas=[0.5, 1.5], rng=1, checks=False)
    assert estimate.belief[0, 1] in (reliability.UNRESOLVED, reliability.SATURATED)
    assert not find_missing(estimate.reason, "of y0", "no sample tells how rare")
    # The other direction has nothing beyond: its estimate is believed as it was.
    assert "y1 lie" not in estimate.reason


MOVED = np.array([[1.0], [0.0]])

SMOOTH = {
    "equal normal": lambda rng, n: rng.normal(size=(2, n)),
    "equal Cauchy": lambda rng, n: rng.standard_cauchy((2, n)),
    "moved by its deviation": lambda rng, n: rng.normal(MOVED, 1.0, (2, n)),
    "Laplace moved": lambda rng, n: rng.laplace(MOVED, 1.0, (2, n)),
    "Cauchy twice as wide": lambda rng, n: rng.standard_cauchy((2, n)) * [[2.0], [1.0]],
    "whole numbers": lambda rng, n: rng.poisson(3.0, size=(2, n)),
    "two decimals": lambda rng, n: np.round(rng.normal(size=(2, n)), 2),
    "copies": lambda rng, n: np.repeat(rng.normal(size=(2, n // 5)), 5, axis=1),
    "rare and far": lambda rng, n: rng.normal(size=(2, n)) + 50.0 * (rng.random((2, n)) < 0.003),
    "clumps": lambda rng, n: (
        np.random.default_rng(0).normal(size=(n // 6, 3))[rng.integers(n // 6, size=(2, n))]
        + 1e-4 * rng.normal(size=(2, n, 3))
    ),
    "five dimensions": lambda rng, n: rng.normal(size=(2, n, 5)),
    "many dimensions": lambda rng, n: rng.normal(size=(2, n, 100)),
    "wider in twenty": lambda rng, n: rng.normal(size=(2, n, 20)) * [[[1.1]], [[1.0]]],
}


def found(draw, seed, rows):
    rng = np.random.default_rng((seed, 23))
    sets = find_points(*draw(rng, rows))
    return reliability.describe_far_rows(sets, cross_fit(sets, rng), rng, 1)


@pytest.mark.parametrize("name", SMOOTH)
def test_equal_and_smoothly_changing_laws_are_not_blamed(name):
    """Each run blames with a chance of a few times 1e-4: twelve runs with less than 1 %."""
    for seed in range(12):
        assert found(SMOOTH[name], seed, 1000) == (None, None)


def test_the_chance_at_an_edge_is_that_of_all_orders():
    """Orders of 5 units and 4 others that end with an other: beyond are those before the first."""
    within, others = 5, 4
    orders = itertools.combinations(range(within + others - 1), others - 1)
    before = np.array([places[0] for places in orders])
    for number in range(within + 1):
        share = np.mean(before >= number)
        assert reliability.edge_p_value(number, within, others) == pytest.approx(share, abs=1e-12)


def test_what_is_allowed_apart():
    assert reliability.max_outside_units(1000, 1000) == stats.binom.isf(
        reliability.RARE, 1000, 0.01 + 1 / 1001
    )
    # Of a set a thousand times as large, the chance is what counts.
    assert reliability.max_outside_units(100_000, 100) == int(
        np.log(reliability.RARE) / np.log(1000 / 1001)
    )


def test_groups_beyond_are_counted_once():
    """Fifty rows beyond in three groups say as much as three rows."""
    rng = np.random.default_rng(5)
    y0, y1 = rng.normal(size=(2, 1000))
    y0[:48] += 50.0
    groups = np.concatenate([np.repeat(np.arange(3), 16), np.arange(3, 955)])
    grouped = find_points(y0, y1, groups0=groups, groups1=np.arange(1000))
    alone = find_points(y0, y1)
    assert reliability.describe_far_rows(grouped, None, rng, 1) == (None, None)
    assert reliability.describe_far_rows(alone, None, rng, 1)[0] is not None


@pytest.mark.parametrize("blind", [False, True])
def test_rows_of_one_group_are_no_evidence_against_an_estimate(blind):
    """Near copies raise the ball and stand apart: one row of each group is held against both."""
    rng = np.random.default_rng(8)
    y0, y1 = (
        parity(rng, 1000, 30, sign) if blind else rng.normal(size=(1000, 30)) for sign in (1, -1)
    )
    y0, y1 = (np.repeat(y, 5, axis=0) + 0.01 * rng.normal(size=(5000, 30)) for y in (y0, y1))
    groups = np.arange(5000) // 5
    told = renyi(y0, y1, alphas=[1.1], groups0=groups, groups1=groups, rng=1).reason
    # The control: a score that is blind is found out by the ball of single rows too.
    assert ("the ball gives" in told) == blind
    assert "farther" not in told


def test_how_many_rows_are_needed_is_said():
    rng = np.random.default_rng(6)
    few = rng.normal(size=(2, 30, 384))
    with pytest.warns(UserWarning, match="and 768 for a fitted score of 384 numbers"):
        estimate = renyi(few[0], few[1], alphas=[2.0], rng=1)
    assert not estimate.resolved.any()
    assert "to see about half of one nat takes 768 rows" in estimate.reason
    assert any("of a divergence of 25.6 nats it sees about half" in n for n in estimate.notes)
    assert (
        reliability.rows_to_see_one_nat(3, 20, False),
        reliability.rows_to_see_one_nat(3, 20, True),
    ) == (244, 488)
    # The twin has enough of them.
    many = rng.normal(size=(2, 800, 384))
    estimate = renyi(many[0], many[1], alphas=[1.5], rng=1)
    assert not any("few for a fitted score" in note for note in estimate.notes)


def test_how_many_rows_would_tell_a_value_from_0():
    assert "(about 4,000 rows of each set would)" in case(0.05, spread=0.025).reason
    assert reliability.rows_to_distinguish_from_0(0.0, 0.05, 1000) == 16_000
    rng = np.random.default_rng(7)
    few, many = (renyi(rng.normal(0.3, 1.0, n), rng.normal(size=n), alphas=[1.1], rng=1)
                 for n in (400, 12_000))  # fmt: skip
    assert not few.resolved.any()
    assert many.resolved.all()
