"""Recorded rows that are not independent give no verdict; rows that are, whatever their law, do.

The stated level of all checks together is 1e-6, so that no alarm at all may be seen here.
"""

from __future__ import annotations

import itertools
import os
import warnings
from decimal import Decimal

import numpy as np
import pandas
import pytest
from scipy.stats import rankdata

import dpcore
from dpcore.errors import AssumptionWarning
from dpcore.mechanisms.answers import answer_rows
from dpcore.recorded import independent_rows as _outputs_doubts
from dpcore.recorded.independent_rows import (
    cross_side_dependence_doubts,
    doubts_of_order,
    repeat_doubts_and_notes,
)
from dpcore.recorded.run import audit_outputs
from dpcore.sampling.columns import is_row_numbers_in_any_order, list_columns

AUDITS = int(os.environ.get("DPCORE_AUDITS", 20))
"""Audits of each law; more of them where the time is there."""


def doubts_of_rows(sides):
    return repeat_doubts_and_notes(sides)[0]


def audit(*sides, **more):
    return audit_outputs(*sides, **{"rows": "independent", "claim": 1.0, "rng": 1} | more)


# 400 rows that were resampled to many: the law is private at 1, the claim a tenth above.

KINDS = {
    "float64": lambda values: values,
    "float32": lambda values: values.astype(np.float32),
    "six decimals": lambda values: np.round(values, 6),
    "integers": lambda values: np.rint(1e9 * values).astype(np.int64),
    "wide integers": lambda values: np.rint(1e17 * values).astype(np.int64),
    "complex": lambda values: values + 1j,
    "texts": lambda values: np.array([f"{value:.12g}" for value in values]),
    "beside a constant": lambda values: np.stack([np.zeros(values.size), values], axis=1),
    "beside a text": lambda values: np.stack(
        [np.where(values < 0, "never", "daily").astype(object), values], axis=1
    ),
    "clipped": lambda values: np.clip(values, -1.0, 2.0),
}


def resampled(rng, kind="float64", rows=400, size=4000):
    for side in (0.0, 1.0):
        yield KINDS[kind](side + rng.laplace(size=rows))[rng.integers(rows, size=size)]


@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
def test_resampled_rows_are_no_verdict():
    streams = [np.random.default_rng(seed) for seed in range(AUDITS)]
    audits = [audit(*resampled(rng), claim=1.1) for rng in streams]
    assert all(one.refuted is None for one in audits)
    assert all(one.verdict.startswith("invalid: rows are repeated: ") for one in audits)
    assert "  certified    nothing: no bound holds\n" in str(audits[0])
    # What the verdicts would be: more are refuted than chance allows.
    assert sum(one.epsilon_lower > 1.1 for one in audits) > AUDITS / 3
    noise = (rng.laplace(size=(2, 4000)) for rng in streams)
    twins = [audit(x, 1.0 + x_prime, claim=1.1) for x, x_prime in noise]
    assert all(one.doubts == () for one in twins)
    assert sum(one.refuted for one in twins) <= 0.05 * AUDITS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "size"), [(400, 400), (400, 700), (400, 4000), (50, 4000)])
def test_resampled_rows_of_many_kinds(kind, rows, size):
    for seed in range(3):
        sides = tuple(resampled(np.random.default_rng(seed), kind, rows, size))
        if rows < size or kind != "clipped":
            assert len(doubts_of_rows(sides)) == 2, (kind, rows, size)


def test_one_resampled_side_is_enough():
    rng = np.random.default_rng(1)
    doubts = doubts_of_rows((rng.laplace(size=4000), list(resampled(rng))[1]))
    assert len(doubts) == 1
    assert "rows of outputs_prime occur more than once" in doubts[0]


def test_rows_that_fill_a_file_by_turns():
    """`np.resize` and its like: 13 or 14 copies of each, as no law gives them."""
    sides = [np.resize(np.random.default_rng(seed).laplace(size=300), 4000) for seed in range(2)]
    told = "each of 300 rows of outputs occurs about 13.3 times, more evenly than chance explains"
    assert doubts_of_rows(tuple(sides))[0] == f"rows are repeated: {told}"
    # Of any law: here dice with a thousand sides, all of them thrown 4 or 5 times.
    dice = np.resize(np.arange(1000), 4500)
    assert doubts_of_rows((dice, dice)) != ()


# What independent rows look like.

TABLE = np.random.default_rng(5).normal(size=(400, 3))
"""An odd value for each of 400 outcomes, such as the vector of a word."""

LAWS = {
    "density": lambda rng, size, x: x + rng.laplace(size=size),
    "float32, far out": lambda rng, size, x: np.float32(1e4 + x + rng.laplace(size=size)),
    "float16": lambda rng, size, x: (x + rng.laplace(size=size)).astype(np.float16),
    "float32 kept as float64": lambda rng, size, x: np.float32(x + rng.laplace(size=size)) * 1.0,
    "one decimal": lambda rng, size, x: np.round(x + rng.laplace(size=size), 1),

    "six decimals": lambda rng, size, x: np.round(x + rng.laplace(size=size), 6),
    "32-bit sampler": lambda rng, size, x: x - np.log(1.0 - rng.integers(2**32, size=size) / 2**32),
    "float32 uniform": lambda rng, size, x: rng.random(size, dtype=np.float32),
    "bits": lambda rng, size, x: rng.random(size) < 0.3 + 0.3 * x,
    "geometric": lambda rng, size, x: x + rng.geometric(0.01, size) - rng.geometric(0.01, size),
    "a grid of thirds": lambda rng, size, x: (x + rng.geometric(0.01, size)) / 3.0,
    "a fine grid": lambda rng, size, x: np.pi * (x + rng.geometric(0.0003, size)),
    "logarithms": lambda rng, size, x: np.log(1000 + x + rng.geometric(0.01, size)),

    "400 odd values": lambda rng, size, x: TABLE[
        np.where(rng.random(size) < 0.3, 7 * x, rng.integers(400, size=size)), 0
    ],
    "400 odd vectors": lambda rng, size, x: TABLE[rng.integers(400, size=size)],
    "a generator of 16 bits": lambda rng, size, x: np.sin(rng.integers(2**16, size=size)),
    "clamped": lambda rng, size, x: np.clip(x + rng.laplace(size=size), -1.0, 1.3),
    "an atom in a density": lambda rng, size, x: np.where(
        rng.random(size) < 0.5, 1 / 3, x + rng.laplace(size=size)
    ),
    "two atoms in a density": lambda rng, size, x: np.select(
        [(noise := rng.laplace(size=size)) < -0.5, noise > 2.0], [-1000.0, 1 / 3], x + noise
    ),
    "two numbers": lambda rng, size, x: x + rng.laplace(size=(size, 2)),

    "heavy tail": lambda rng, size, x: x + rng.zipf(1.5, size),
    "words": lambda rng, size, x: (rng.geometric(0.02, size) + x).astype(str),
    "rows": lambda rng, size, x: np.stack(
        [x + rng.geometric(0.1, size), rng.integers(5, size=size), x + rng.laplace(size=size) > 0],
        axis=1,
    ),
}  # fmt: skip


def first_column(threshold):
    return lambda rows: rows.reshape(len(rows), -1)[:, 0] > threshold


@pytest.mark.parametrize("law", LAWS)
def test_independent_rows_raise_no_doubt(law):
    for seed in range(AUDITS):
        rng = np.random.default_rng([seed, 8])
        size = int(rng.choice([100, 400, 2000, 20_000]))
        sizes = size, rng.choice([100, size])
        sides = tuple(LAWS[law](rng, int(n), x) for x, n in enumerate(sizes))
        middle = np.median(sides[0].reshape(-1)) if sides[0].dtype.kind != "U" else "5"
        assert (
            doubts_of_rows(sides) == cross_side_dependence_doubts(sides, first_column(middle)) == ()
        )


def test_float32_that_meets_itself():
    """Two hundred thousand values of 2^24: hundreds meet by chance, on both sides alike."""
    rng = np.random.default_rng(2)
    sides = tuple((x + rng.laplace(size=200_000)).astype(np.float32) for x in range(2))
    assert len(np.unique(sides[0])) < 199_900
    assert doubts_of_rows(sides) == ()
    # Nor where the other side is far away.
    assert doubts_of_rows((sides[0], sides[1] + np.float32(100.0))) == ()


@pytest.mark.parametrize(
    "release",
    [
        lambda x, rng: np.full(4000, 5.0 + x),
        lambda x, rng: x / 3.0 + rng.geometric(0.05, 4000),
        lambda x, rng: np.exp(0.01 * (x / 3.0 + rng.geometric(0.02, 4000))),
        lambda x, rng: np.stack([np.full(4000, np.pi + x), rng.integers(100, size=4000)], axis=1),
        lambda x, rng: np.round(rng.laplace(size=4000), 1) + x * 1e-3,
    ],
    ids=["the count itself", "half a grid", "curved", "a leak beside noise", "rounded too early"],
)
def test_broken_mechanisms_whose_values_repeat_are_refuted(release):
    """All values of each side are its own, and come again: that alone contradicts nothing."""
    rng = np.random.default_rng(3)
    found = audit(release(0, rng), release(1, rng), claim=2.0)
    assert (found.doubts, found.refuted) == ((), True)


# Rounded amounts, also on sides that share no value, and 400 or 1,000 of them resampled.

AMOUNTS = {
    "Laplace": lambda rng, size: rng.laplace(0, 10, size),
    "Gaussian": lambda rng, size: rng.normal(0, 10, size),
    "exponential": lambda rng, size: rng.exponential(10, size),
    "uniform": lambda rng, size: rng.uniform(0, 50, size),
    "Cauchy": lambda rng, size: 10 * rng.standard_cauchy(size),
    "log-normal": lambda rng, size: rng.lognormal(2, 3, size),
    "scales .3 and 100": lambda rng, size: rng.laplace(size=size) * rng.choice([0.3, 100], size),
    "whole amounts and cents": lambda rng, size: [
        round(x, digits)
        for x, digits in zip(rng.laplace(0, 10, size), rng.choice([0, 9], size), strict=True)
    ],
}
GRIDS = {
    "cents": lambda values: np.round(values, 2),
    "float32": lambda values: np.float32(np.round(values, 2)),
    "quarters of cents": lambda values: np.rint(values * 400) / 400,
    "thirds of cents": lambda values: np.rint(values * 300) / 300,
    "hundredths of pi": lambda values: np.rint(values * 30) * (np.pi / 100),
    "6 digits": lambda values: np.array([float(f"{value:.6g}") for value in values]),
    "another currency": lambda values: np.round(np.round(values, 2) * 1.0837, 2),
    "clipped": lambda values: np.round(np.clip(values, np.median(values) - 12.3, np.inf), 3),
    "missing": lambda values: np.where(values < np.median(values) - 12, np.nan, values.round(2)),
    "texts": lambda values: np.array([f"{value:.2f}" for value in values]),
    "seconds": lambda values: np.rint(values * 100).astype("datetime64[s]"),
    "objects": lambda values: answer_rows(
        "outputs", [(x > 0, round(x, 2)) for x in values], "rows"
    ),
    "with tax": lambda values: np.stack([values.round(2), (1.19 * values.round(2)).round(2)], 1),
    "with a sine": lambda values: np.stack([values.round(2), np.sin(values.round(2))], axis=1),
    "two columns": lambda values: np.stack([values.round(1), np.sin(9 * values).round(2)], axis=1),
}


def check_amounts(law, seeds):
    """Check independent amounts, most often on sides that share no value."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 50])
        size = int(rng.choice([1000, 4000, 20_000, 100_000], p=[0.3, 0.5, 0.15, 0.05]))
        centres, digits = rng.choice([5000, 4000, 0], 2), int(rng.integers(5))
        sides = [np.round(centre + np.array(AMOUNTS[law](rng, size)), digits) for centre in centres]
        assert doubts_of_rows(tuple(sides)) == (), (law, seed)


def check_grid(grid, seeds):
    """Check amounts on a grid of any step, fresh (the control) and resampled."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 51])
        for centre in (0, 3000):
            fresh = [GRIDS[grid](x * centre + rng.laplace(0, 10, 4000)) for x in range(2)]
            assert doubts_of_rows(tuple(fresh)) == (), (grid, seed, centre)
            base = [GRIDS[grid](x * centre + rng.laplace(0, 10, 400)) for x in range(2)]
            sides = tuple(side[rng.integers(400, size=4000)] for side in base)
            assert len(doubts_of_rows(sides)) == 2, (grid, seed, centre)


def check_decimals(rows, decimals, seeds):
    """Check resampled amounts whose sides share a centre, and many values by chance."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 52])
        base = np.round(rng.laplace(0, 10, (2, rows)), decimals)
        sides = tuple(side[rng.integers(rows, size=4000)] for side in base)
        assert len(doubts_of_rows(sides)) == 2, (rows, decimals, seed)


@pytest.mark.parametrize("law", AMOUNTS)
def test_rounded_amounts_are_not_repeated_rows(law):
    check_amounts(law, 4)


@pytest.mark.parametrize("grid", GRIDS)
def test_resampled_amounts_on_any_grid_are_repeated_rows(grid):
    check_grid(grid, 1)


@pytest.mark.parametrize("rows", [400, 1000])
@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_resampled_amounts_of_any_decimals_are_repeated_rows(rows, decimals):
    check_decimals(rows, decimals, 2)


@pytest.mark.sweep
def test_rounded_amounts_are_never_and_resampled_ones_always_repeated_rows():
    """No doubt in 2,000 pairs of files, whose level is below 1e-6; 20 of 20 resampled ones."""
    for law in AMOUNTS:
        check_amounts(law, 250)
    for grid in GRIDS:
        check_grid(grid, 20)
    for rows, decimals in itertools.product([400, 1000], [2, 3, 4]):
        check_decimals(rows, decimals, 20)


@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
def test_a_coarse_grid_is_a_remark():
    rng = np.random.default_rng(1)
    noise = rng.laplace(0, 10, (2, 4000))
    sides = np.round(noise + np.array([[5000], [4000]]), 1)
    report = audit(*sides)
    assert (report.doubts, report.refuted) == ((), True)
    remark = "outputs lie on a coarse grid: up to 10 copies of each row would not show"
    assert remark in report.remarks
    assert remark in str(report)
    assert audit(*(side[rng.integers(4000, size=4000)] for side in sides)).doubts == ()
    assert not any("coarse grid" in text for text in audit(*np.round(noise, 3)).remarks)


# Objects.

WORDS = ["".join(np.random.default_rng([9, n]).choice(list("abcdefgh"), 8)) for n in range(400)]
DAYS = np.arange("2023-01-01", "2025-01-01", dtype="datetime64[D]")
OBJECTS = {
    "tuples": lambda x: ("never" if x < 0 else "daily", x),
    "dicts": lambda x: {"answer": "yes", "scores": [0, x]},
    "Decimals": lambda x: Decimal(f"{x:.9f}"),
    "missing cells": lambda x: None if x > 2 else x,
    "lists of changing length": lambda x: [x] * (1 + (x > 0)),
}
OBJECT_LAWS = {
    "words": lambda rng, x: rng.choice(WORDS, 2000).tolist(),
    "words and counts": lambda rng, x: list(
        zip(rng.choice(WORDS[:3], 2000).tolist(), rng.poisson(3 + x, 2000).tolist(), strict=True)
    ),
    "Zipf": lambda rng, x: [{"item": WORDS[one % 400]} for one in rng.zipf(1.5, 2000)],
    "days of another year": lambda rng, x: DAYS[365 * x + rng.integers(365, size=2000)].tolist(),
    "rounded too early": lambda rng, x: [
        Decimal(f"{one:.1f}") + Decimal(x) / 1000 for one in rng.normal(size=2000)
    ],
    "answers to six questions": lambda rng, x: [
        {"page": x, "answers": row} for row in rng.choice(WORDS[:4], (2000, 6)).tolist()
    ],
    "missing": lambda rng, x: [None if one < 0 else one for one in rng.normal(x, 1, 2000).tolist()],
}


def as_rows(values, kind):
    return answer_rows("outputs", [OBJECTS[kind](value) for value in values.tolist()], "rows")


@pytest.mark.parametrize("kind", OBJECTS)
def test_resampled_objects(kind):
    for seed in range(5):
        rng = np.random.default_rng([seed, 29])
        base = [as_rows(x + rng.laplace(size=400), kind) for x in range(2)]
        assert base[0].dtype == object
        assert len(doubts_of_rows(tuple(side[rng.integers(400, size=4000)] for side in base))) == 2
        fresh = tuple(as_rows(x + rng.laplace(size=2000), kind) for x in range(2))
        assert doubts_of_rows(fresh) == ()


@pytest.mark.sweep
@pytest.mark.parametrize("law", OBJECT_LAWS)
def test_independent_objects_raise_no_doubt(law):
    for seed in range(AUDITS):
        rng = np.random.default_rng([seed, 30])
        sides = tuple(answer_rows("outputs", OBJECT_LAWS[law](rng, x), "rows") for x in range(2))
        assert doubts_of_rows(sides) == ()


# Sides that go together.


@pytest.mark.parametrize("pairs", [
    lambda noise: (noise, 1.0 + noise),
    lambda noise: (noise, 1.0 - noise),
    lambda noise: (noise, 1.0 + noise[:1500]),
    lambda noise: (np.stack([noise**2, noise], 1), np.stack([noise[::-1], 1 + noise], 1)),
    lambda noise: (np.rint(noise), np.rint(1.0 + noise)),
    lambda noise: ((noise > 0.0) * 1, (noise > -0.5) * 1),
    lambda noise: ((noise > 0.0).astype(str), (noise > -0.5).astype(str)),
    lambda noise: (noise, 1.0 + noise + np.random.default_rng(9).laplace(size=noise.size)),
])  # fmt: skip
def test_common_seeds_raise_a_doubt(pairs):
    sides = pairs(np.random.default_rng(4).laplace(size=2000))
    event = (lambda rows: rows == "True") if sides[0].dtype.kind == "U" else first_column(0.5)
    (told,) = cross_side_dependence_doubts(sides, event)
    assert "go together row by row" in told
    assert "give paired=True" in told
    assert (
        cross_side_dependence_doubts(
            (np.random.default_rng(5).permutation(sides[0]), sides[1]), event
        )
        == ()
    )


def test_hits_that_go_together():
    """Values of a kind that no rank orders, told apart by the event alone."""
    rng = np.random.default_rng(6)
    noise = rng.laplace(size=2000)
    sides = noise, np.abs(noise) * rng.choice([-1.0, 1.0], size=2000)
    (told,) = cross_side_dependence_doubts(sides, lambda rows: np.abs(rows) > 1.0)
    assert told.startswith("hits of the event of outputs and outputs_prime go together")


@pytest.mark.parametrize("step", [1, 40])
def test_sorted_files_do_not_go_together(step):
    rng = np.random.default_rng(7)
    for values in (rng.laplace(size=(2, 4000)), rng.integers(5, size=(2, 4000))):
        sides = tuple(np.sort(side.reshape(step, -1), axis=1).reshape(-1) for side in values)
        assert cross_side_dependence_doubts(sides, first_column(0.5)) == ()
        drifting = tuple(side + np.linspace(0, 3, 4000) for side in values)
        assert cross_side_dependence_doubts(drifting, first_column(0.5)) == ()


def test_rare_hits_say_nothing_of_pairs():
    hits = np.zeros(2000)
    hits[7] = 1.0
    assert cross_side_dependence_doubts((hits, hits), first_column(0.5)) == ()


def test_the_level_of_pairs():
    """The statistic is standard normal in a random order, with ties and heavy tails too."""
    rng = np.random.default_rng(8)
    columns = rng.laplace(size=400), rng.integers(3, size=400), rng.standard_cauchy(size=400)
    for one in columns:
        for other in columns:
            deviation = _outputs_doubts._correlation_deviation
            found = [deviation(one, rng.permutation(other)) for _ in range(500)]
            assert abs(np.mean(found)) < 0.2
            assert 0.85 < np.std(found) < 1.15
            assert np.abs(found).max() < 5.0


# Neighbouring rows that depend on each other, and files in orders that say nothing.


SIZE = 4000


def walk(rng, phi=1.0):
    """Return an autoregression of the first order; a random walk for 1."""
    noise, rows = rng.normal(size=SIZE), np.empty(SIZE)
    rows[0] = noise[0]
    for place in range(1, SIZE):
        rows[place] = phi * rows[place - 1] + noise[place]
    return rows


def runs(rng, many):
    """Return rows of which those of one run share its noise."""
    return np.repeat(rng.normal(size=many), SIZE // many) + rng.normal(size=SIZE)


def documents(rng):
    """Return vectors of sentences around those of their documents."""
    return np.repeat(rng.normal(size=(40, 8)), SIZE // 40, axis=0) + rng.normal(size=(SIZE, 8))


def sort_by_column(rng):
    rows = rng.normal(size=(SIZE, 3))
    rows[:, 1] += rows[:, 0]
    return rows[np.argsort(rows[:, 0])]


DEPENDENT = {
    "random walk": walk,
    **{f"AR({phi})": lambda rng, phi=phi: walk(rng, phi) for phi in (0.5, 0.9, 0.99, 0.999)},
    "20 runs": lambda rng: runs(rng, 20),
    "100 runs": lambda rng: runs(rng, 100),
    "documents": documents,
    "runs as texts": lambda rng: [f"{x:.3f} s" for x in runs(rng, 20)],
    "runs as tuples": lambda rng: [(f"{x:.1f}", x) for x in runs(rng, 20).tolist()],
}
CLEAN = {
    "independent": lambda rng: rng.laplace(size=SIZE),
    "sorted": lambda rng: np.sort(rng.laplace(size=SIZE)),
    "falling": lambda rng: -np.sort(rng.laplace(size=SIZE)),
    "sorted by a column": sort_by_column,
    "rounded": lambda rng: np.round(rng.normal(size=SIZE), 1),
    "clipped": lambda rng: np.clip(rng.normal(size=SIZE), -0.5, 0.5),
    "Zipf": lambda rng: rng.zipf(2.0, SIZE),
    "Poisson": lambda rng: rng.poisson(3.0, SIZE),
    "rare": lambda rng: (rng.random(SIZE) < 0.01).astype(float),
    "words": lambda rng: rng.choice(["never", "daily", "weekly"], SIZE),
    "sorted words": lambda rng: np.sort(rng.choice(["never", "daily", "weekly"], SIZE)),
    "float16": lambda rng: rng.normal(size=SIZE).astype(np.float16),
    "64 columns": lambda rng: rng.normal(size=(400, 64)),
}


@pytest.mark.parametrize("kind", DEPENDENT)
def test_rows_that_depend_on_their_neighbours_give_no_verdict(kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        with pytest.warns(AssumptionWarning, match="rows depend on their neighbours: "):
            report = audit(DEPENDENT[kind](rng), DEPENDENT[kind](rng), rng=seed)
        assert report.verdict.startswith("invalid")
        assert report.refuted is None
        assert "give one row a run, a document, a person, or groups= " in report.doubts[-1]
        assert "or arranged=True if the rows were put in this order" in report.doubts[-1]


@pytest.mark.sweep
@pytest.mark.parametrize("kind", CLEAN)
def test_independent_rows_in_random_or_sorted_order_are_not_doubted(kind):
    """In 100 pairs of each kind; the checks alarm with probability below 1e-6."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        assert doubts_of_order((CLEAN[kind](rng), CLEAN[kind](rng))) == ()


def test_rows_in_an_order_made_afterwards_are_audited_when_that_is_said():
    """Answers by age: neighbours are alike, and the runs were independent."""
    rng = np.random.default_rng(1)
    ages = np.sort(rng.normal(size=SIZE))
    sides = ages + rng.laplace(size=SIZE), ages + 2.0 + rng.laplace(size=SIZE)
    with pytest.warns(AssumptionWarning, match="rows depend on their neighbours"):
        assert audit(*sides).refuted is None
    report = audit(*sides, arranged=True)
    assert report.refuted
    assert "put in this order when the runs were over" in str(report)
    assert type(report).from_json(report.to_json()).arranged


def test_few_rows_are_not_compared():
    assert doubts_of_order((np.cumsum(np.ones(59)), np.cumsum(np.ones(59)))) == ()


# Columns that number the rows or tell the time: refused with their name; others never are.


COLUMN_ROWS = 500
COLUMN_NOISE = np.random.default_rng(1).laplace(size=(2, COLUMN_ROWS))
NUMBERS = np.arange(2 * COLUMN_ROWS).reshape(2, COLUMN_ROWS)


def make_frames(**columns):
    """Return a frame for each side, with the noise and further columns of both sides."""
    columns = {"response": COLUMN_NOISE, **columns}
    return [pandas.DataFrame({k: v[side] for k, v in columns.items()}) for side in (0, 1)]


def refuse_columns(text, *sides, **more):
    with pytest.raises(ValueError, match=text):
        audit(*sides, **more)


def test_a_choice_is_needed_where_columns_have_names(tmp_path):
    frames = make_frames(id=NUMBERS)
    needed = "column must be given where"
    refuse_columns(rf"{needed} outputs has 2 columns \('response', 'id'; '\*' is all\)", *frames)
    paths = [tmp_path / f"{name}.csv" for name in "ab"]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    refuse_columns(rf"{needed} a\.csv has 2 columns", *paths)
    assert audit(*paths, column="response").epsilon_lower == 0.0


@pytest.mark.parametrize("column", ["id", ["response", "id"], "*"])
def test_row_numbers_are_refused_by_name(tmp_path, column):
    named = "column 'id' of outputs numbers the rows"
    shuffled = np.random.default_rng(2).permuted(NUMBERS, axis=1)
    for numbers in (NUMBERS, NUMBERS % COLUMN_ROWS, shuffled, NUMBERS + 0.0):
        refuse_columns(f"{named}: leave it", *make_frames(id=numbers), column=column)
    label = pandas.concat(make_frames(id=NUMBERS)).assign(side=np.repeat([1, 0], COLUMN_ROWS))
    refuse_columns(named, label, label="side", column=column)


def test_row_numbers_in_arrays_texts_and_objects_are_refused():
    stacked = [np.stack([COLUMN_NOISE[side], NUMBERS[side]], axis=1) for side in (0, 1)]
    refuse_columns("column 1 of outputs numbers the rows", *stacked)
    texts = [[f"run {i}: noise {x:.3f}" for x, i in rows.tolist()] for rows in stacked]
    texts = [[one.replace(".0:", ":") for one in side] for side in texts]
    refuse_columns("number 0 of outputs numbers the rows", *texts)
    for make, place in ((tuple, "place 1"), (lambda row: {"x": row[0], 1: row[1]}, "place 1")):
        objects = [[make((f"{x:.1f}", int(i))) for x, i in rows.tolist()] for rows in stacked]
        refuse_columns(f"{place} of outputs numbers the rows", *objects)


def test_clocks_are_refused_where_all_columns_are_taken():
    gaps = np.random.default_rng(3).exponential(size=2 * COLUMN_ROWS)
    times = np.cumsum(gaps).reshape(2, COLUMN_ROWS)
    stamps = [pandas.Timestamp("2026-01-01") + pandas.to_timedelta(one, "s") for one in times]
    for clock in (times, np.floor(times / 9.0) + np.array([[0], [5]]), stamps):
        shown = "column 'time' of outputs shows when a row was"
        refuse_columns(shown, *make_frames(time=clock), column="*")
    # Sorted outputs rise, too, and their ranges overlap.
    assert not audit(*make_frames(time=np.sort(COLUMN_NOISE, axis=1)), column="*").refuted


def test_outputs_of_private_mechanisms_are_no_numbering():
    """Of independent draws none is: here 12 laws of whole numbers, 300 samples each."""
    rng = np.random.default_rng(4)
    laws = [
        lambda: rng.integers(0, 110, 100), lambda: rng.integers(0, 10**6, 100),
        lambda: rng.poisson(1000, 100), lambda: rng.geometric(0.01, 100),
        lambda: rng.zipf(2.0, 100), lambda: np.rint(rng.normal(0, 50, 100)),
        lambda: rng.binomial(10**6, 0.5, 100), lambda: rng.choice(109, 100),
        lambda: np.sort(rng.integers(0, 110, 100)), lambda: rng.integers(0, 66, 60),
        lambda: np.rint(rng.laplace(0, 30, 100)), lambda: rng.integers(0, 2**62, 100),
    ]  # fmt: skip
    assert not any(is_row_numbers_in_any_order(law()) for law in laws for _ in range(300))
    # The control: a permutation always is.
    assert all(is_row_numbers_in_any_order(rng.permutation(100) + shift) for shift in range(20))
    assert is_row_numbers_in_any_order(rng.permutation(109)[:100])
    assert not is_row_numbers_in_any_order(np.arange(59))
    assert not is_row_numbers_in_any_order(2 * np.arange(100))


def test_columns_are_read_from_rows_of_every_kind():
    rows = np.array([("a", 1.5), ("b", 2.5)], object)
    assert [name for name, _ in list_columns(rows)] == ["column 0", "column 1"]
    assert [name for name, _ in list_columns(rows, ("column 'p'", "column 'q'"))][1] == "column 'q'"
    fields = np.array([(1, 2.0)], [("n", int), ("v", float)])
    assert [name for name, _ in list_columns(fields)] == ["field 'n'", "field 'v'"]


def test_a_live_audit_names_the_column_that_numbers_the_rows():
    """The control: a constant column beside the same noise leaves the verdict alone."""
    row_numbers = itertools.count()

    def numbered(x, size, rng):
        numbers = [next(row_numbers) for _ in range(size)]
        return np.column_stack([rng.laplace(size=size) + x[0], numbers])

    def constant(x, size, rng):
        return np.column_stack([rng.laplace(size=size) + x[0], np.ones(size)])

    asked = {"claim": 1.0, "trials": 3000, "rng": 1}
    for stop in ("fixed", "refuted"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpcore.AssumptionWarning)
            report = dpcore.audit(numbered, ([0.0], [1.0]), stop=stop, **asked)
        assert report.verdict.startswith("invalid: column 1 of the outputs numbers the rows: leave")
        assert report.refuted is None
    assert dpcore.audit(constant, ([0.0], [1.0]), **asked).refuted is False


@pytest.mark.parametrize("values", [
    np.random.default_rng(1).normal(size=50), np.random.default_rng(2).integers(4, size=50),
    np.array([1.0, np.nan, 0.0, np.nan, -0.0]), np.array(["b", "a", "b"]), np.full(3, np.nan),
])  # fmt: skip
def test_ranks_are_centred_middle_ranks(values):
    ranks, share = _outputs_doubts._centred_ranks_and_mode_share(values)
    # NaN is one value, above all others.
    plain = np.where(np.isnan(values), np.inf, values) if values.dtype.kind == "f" else values
    codes = np.unique(plain, return_inverse=True)[1]
    assert ranks.tolist() == (rankdata(codes) - (values.size + 1) / 2).tolist()
    assert share == np.bincount(codes).max() / values.size
