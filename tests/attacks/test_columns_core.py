"""Grains, gaps and bins of columns: the core against plain numpy, one column at a time."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpcore
from dpcore import _core
from dpcore.attacks import Discriminant, arrays
from dpcore.attacks.bins import (
    SHARE,
    TRANSFORMS,
    ColumnBins,
    difference_or_sort_rows,
    place_between,
)
from dpcore.attacks.grains import (
    APART,
    EXACT,
    NEAR,
    SAME,
    THREADS,
    Tolerance,
    bin_boundary_indices,
    classify_gaps,
    column_tolerances,
    merge_grains,
    weighted_sum_rounding,
)
from dpcore.attacks.parts import _round_to_16_bits

GENERATOR = np.random.default_rng(53)
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -2147483648.0]
LONG = np.spacing(1.0) * np.arange(0, 900, 30)

KINDS = {
    "noise": lambda noise: noise,
    "whole": np.round,
    "tenths": lambda noise: np.round(noise, 1),
    "grid": lambda noise: np.round(noise * 2.0**12) / 2.0**12,
    "float32": lambda noise: noise.astype(np.float32).astype(np.float64),
    "float16": lambda noise: noise.astype(np.float16).astype(np.float64),
    "constant": lambda noise: np.full(noise.size, 0.1),
    "zeros": lambda noise: np.full(noise.size, -0.0),
    "NaN": lambda noise: np.full(noise.size, np.nan),
    "alphabet": lambda noise: np.sign(noise) + np.round(noise, 2) % 3 * 1e-16,
    "sentinel": lambda noise: np.where(noise > 1.0, -1000.0, noise),
    "specials": lambda noise: np.where(
        noise > 1.0, GENERATOR.choice(SPECIALS, size=noise.size), noise
    ),
    "long runs": lambda noise: (
        GENERATOR.choice([0.5, 1.5, 2.5, 7.0], size=noise.size)
        + GENERATOR.choice(LONG, size=noise.size)
    ),
    "large": lambda noise: 1e17 + 1e6 * noise,
    "dense": lambda noise: 1.0 + 1e-13 * noise,
    "subnormal": lambda noise: noise * 5e-323,
}
GRAINS = [
    EXACT,
    Tolerance(0, absolute=1e-6),
    Tolerance(53, 1.0),
    Tolerance(24, 1.0),
    Tolerance(8, 0.1, 1e-9),
]


def make_column(kind, size):
    return KINDS[kind](GENERATOR.laplace(size=size))


# The definitions, as plainly as possible.


def plain_steps(values, grain):
    gaps = np.diff(values).tolist()
    tolerances = grain.tolerances(np.maximum(np.abs(values[1:]), np.abs(values[:-1])))
    steps = [
        APART if gap > 2.0 * tolerance else NEAR if gap > 0.0 else SAME
        for gap, tolerance in zip(gaps, tolerances, strict=True)
    ]
    if grain.exact:
        return steps
    wide = [gap > 512.0 * tolerance for gap, tolerance in zip(gaps, tolerances, strict=True)]
    bounds = [-1, *np.flatnonzero(wide).tolist(), len(gaps)]
    runs = []
    for before, after in itertools.pairwise(bounds):
        width = values[after] - values[before + 1]
        beyond = min(gaps[i] if 0 <= i < len(gaps) else math.inf for i in (before, after))
        is_narrow = 0.0 < width <= 512.0 * grain.tolerances(values[after])
        if is_narrow and beyond >= 1000.0 * width:
            runs.append((before + 1, after))
    for first, last in runs:
        if len(runs) >= 3 or sum(gap > 0.0 for gap in gaps[first:last]) < 16:
            steps[first:last] = [SAME] * (last - first)
    return steps


def plain_cuts(values, grain):
    steps, cuts, passed, start = plain_steps(values, grain), [], 0.0, 0.0
    for i, step in enumerate(steps):
        if step == APART:
            cuts.append(i)
            start = passed
        elif NEAR in steps:
            cell = 16.0 * grain.tolerances(0.5 * values[i + 1] + 0.5 * values[i])
            reached = passed + (values[i + 1] - values[i]) / cell
            if step == NEAR and math.floor(reached - start) > math.floor(passed - start):
                cuts.append(i)
            passed = reached
    return cuts


def plain_bins(values, grain, bins):
    """Return edges and symbols of one column."""
    finite = np.sort(values[np.isfinite(values)])
    cuts = plain_cuts(finite, grain) if finite.size else []
    sizes = np.diff([0, *(cut + 1 for cut in cuts), finite.size])
    if sizes.size <= 64 and finite.size >= 8 * sizes.size:
        atoms = np.ones(sizes.size, bool)
    else:
        atoms = sizes >= max(8, 0.005 * finite.size)
        atoms &= np.count_nonzero(atoms) <= 8
    ordinary = int(sizes[~atoms].sum())
    chosen = {i for i in range(len(cuts)) if atoms[i] or atoms[i + 1]}
    if ordinary and cuts:
        reached = np.cumsum(np.where(atoms, 0, sizes))[:-1]
        count = max(1, min(bins, ordinary // 100))
        tails = [t for t in (0.001, 0.003, 0.01, 0.03) if 1.0 / count > t and t * ordinary >= 4.0]
        for level in [i / count for i in range(1, count)] + tails + [1.0 - tail for tail in tails]:
            target = level * ordinary
            after = min(max(int(np.sum(reached < target)), 1), reached.size - 1)
            before = max(after - 1, 0)
            is_before = target - reached[before] <= reached[after] - target
            chosen.add(before if is_before else after)
    edges, symbols = [], [int(atoms[0])]
    for i in sorted(chosen):
        low, high = finite[cuts[i]], finite[cuts[i] + 1]
        reach = math.inf if grain.exact else 16.0 * grain.tolerances(low)
        edge = float(place_between(low, high))
        if atoms[i] and not atoms[i + 1]:
            edge = min(edge, low + reach)
        if atoms[i + 1] and not atoms[i]:
            edge = high - min(high - low - SHARE * (high - low), reach)
        edges.append(edge if edge > low else high)
        symbols.append(max(symbols) + 1 if atoms[i + 1] else 0)
    top = max(symbols)
    if (values == -np.inf).any():
        edges, symbols = [-np.finfo(float).max, *edges], [top + 1, *symbols]
    if (values == np.inf).any():
        edges, symbols = [*edges, np.inf], [*symbols, top + 2]
    return edges, [*symbols, top + 3 if np.isnan(values).any() else 0]


def plain_grain(sides):
    """Return the grain of a short column of floats on both sides."""
    pooled = np.concatenate(sides).astype(np.float64)
    finite = pooled[np.isfinite(pooled) & (pooled != 0.0)].tolist()
    middle = sorted(map(abs, finite))[(len(finite) - 1) // 2] if finite else 0.0
    own = min({"float64": 53, "float32": 24, "float16": 11}[str(side.dtype)] for side in sides)

    def lowest(value):
        top, bottom = Fraction(value).as_integer_ratio()
        return (top & -top).bit_length() - bottom.bit_length()

    def highest(value):
        return math.frexp(value)[1]

    def narrowest(values):
        least = min(map(lowest, values), default=0)
        for bits in (8, 11, 24):
            growth = sum(min(max(highest(v) - least - bits, 0), 8) for v in values)
            needed = max((highest(value) - lowest(value) for value in values), default=99)
            fits = bits != 11 or max(map(abs, values), default=0.0) <= 65504.0
            is_sure = (own - bits) * len(values) >= 40 and growth >= 24
            if bits < own and fits and needed <= bits and is_sure:
                return bits
        return own

    if all(value == round(value) and abs(value) <= 2.0**53 for value in finite):
        return EXACT
    kept = [{v for v in side.astype(float).tolist() if math.isfinite(v) and v} for side in sides]
    bits = min(map(narrowest, kept))
    if bits == own:
        together = kept[0] | kept[1]
        step = min(map(lowest, together), default=0)
        used = max(map(highest, together), default=0) - step
        # Smaller steps than that of the smallest normal number are not looked for.
        if (own - used) * len(together) >= 40 and step >= -1022:
            return EXACT
    return Tolerance(bits, middle)


# The comparisons.


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_cuts_are_those_of_the_definition(kind):
    for size, grain in itertools.product([1, 2, 30, 700], GRAINS):
        values = make_column(kind, size)
        values = np.sort(values[np.isfinite(values)])
        if values.size:
            assert classify_gaps(values, grain).tolist() == plain_steps(values, grain)
            assert bin_boundary_indices(values, grain).tolist() == plain_cuts(values, grain)
    for function in (classify_gaps, bin_boundary_indices):
        assert function(np.empty(0), grain).size == 0


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_bins_of_all_columns_are_those_of_each(transform):
    """Of the columns of one class, in slices, with each kind of grain."""
    for size, bins in itertools.product([1, 40, 1500], [2, 32]):
        rows = np.stack([make_column(kind, size) for kind in KINDS], axis=1)
        columns = np.arange(len(KINDS))
        grains = [GRAINS[i % len(GRAINS)] for i in columns]
        values = difference_or_sort_rows(rows, transform)
        pairs = [grains[0], *map(weighted_sum_rounding, itertools.pairwise(grains))]
        moved = {"values": grains, "differences": pairs}
        moved["sorted"] = [merge_grains(grains)] * len(KINDS)
        for classes in (columns, columns // 3) if transform != "sorted" else (columns,):
            layout = ColumnBins.of_sample(rows, transform, grains, bins, classes)
            edges, symbols = [], []
            for kind in classes:
                own = np.flatnonzero(classes == kind)
                grain = merge_grains([moved[transform][i] for i in own])
                column_edges, column_symbols = plain_bins(values[:, own].ravel(), grain, bins)
                edges.append(column_edges)
                symbols.append(column_symbols)
            assert np.array_equal(layout.edges, np.concatenate(edges))
            assert layout.symbols.tolist() == list(itertools.chain(*symbols))
            assert np.diff(layout.offsets).tolist() == [*map(len, edges)]
            shape = [[place >= 0 for place in places] for places in layout.places]
            assert [sum(flags) for flags in shape] == [*map(len, symbols)]


def test_slices_and_threads_change_nothing(monkeypatch):
    rows = GENERATOR.laplace(size=(200, 50))
    arguments = rows, "values", [Tolerance(53, 1.0)] * 50, 8, np.arange(50) // 2
    layout = ColumnBins.of_sample(*arguments)
    monkeypatch.setattr(arrays, "SLICE_NUMBERS", 1000)
    for part, other in zip(layout, ColumnBins.of_sample(*arguments), strict=True):
        assert np.array_equal(part, other)
    values = np.sort(GENERATOR.laplace(size=(300, 2000)), axis=1).ravel()
    ends, grains = np.arange(1, 301) * 2000, (np.full(300, 53), np.ones(300), np.zeros(300))
    single = _core.bin_columns(values, ends, grains, 8, 1)
    for part, other in zip(single, _core.bin_columns(values, ends, grains, 8, 3), strict=True):
        assert np.array_equal(part, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_grains_of_all_columns_are_those_of_each(dtype):
    with np.errstate(over="ignore"):
        for size in (1, 30, 400):
            rows = np.stack([make_column(kind, size) for kind in KINDS], axis=1)
            sides = rows.astype(dtype)[: size // 3], rows[size // 3 :]
            expected = [plain_grain([side[:, i] for side in sides]) for i in range(len(KINDS))]
            assert list(column_tolerances(*sides)) == expected


def test_remainders_are_compared_as_numpys_are():
    rng, split = np.random.default_rng(11), 60
    columns = rng.laplace(scale=10.0 ** rng.integers(0, 6, (40, 1)), size=(40, 150))
    columns[::3] = np.rint(columns[::3])
    columns[1, :9], columns[2] = (
        [np.nan, np.inf, -np.inf, -0.0, 1e300, -1e16, 5e-324, 60.0, -1.0],
        3.0,
    )
    moduli = np.array([1.0, 10.0, 60.0, 4096.0])
    statistics, freedoms = _core.compare_remainders(columns, split, moduli)
    with np.errstate(invalid="ignore"):
        remainders = [np.remainder(_round_to_16_bits(row), moduli[:, None]) for row in columns]
    expected = _core.compare_columns(np.concatenate(remainders), split)
    compared = freedoms > 0.0
    assert 40 < np.count_nonzero(compared) < freedoms.size
    assert np.array_equal(statistics[compared], expected[0][compared])
    assert np.array_equal(freedoms[compared], expected[1][compared])


def test_values_below_points_are_counted_as_numpy_does():
    rng = np.random.default_rng(12)
    ordered = np.sort(rng.integers(-9, 9, (20, 50)).astype(np.float64), axis=1)
    points = np.concatenate([rng.normal(size=(20, 5)), ordered[:, :4]], axis=1)
    points[:, 0] = [np.nan, np.inf, -np.inf, 0.0] * 5
    pairs = zip(ordered, points, strict=True)
    expected = [np.searchsorted(values, places) for values, places in pairs]
    assert np.array_equal(_core.count_below(ordered, points), expected)


@pytest.mark.parametrize(("threads", "used"), [(1, 1), (2, 2), (3, 3)])
def test_the_fit_takes_the_threads_of_the_audit(monkeypatch, threads, used):
    numbers = []

    def make_scores(self, *rows):
        numbers.append(THREADS.get())
        return []

    monkeypatch.setattr(Discriminant, "make_scores", make_scores)
    pair = ([0.0, 0.0], [1.0, 1.0])
    dpcore.audit(dpcore.Laplace(2.0), pair, claim=2.0, trials=1000, rng=1, threads=threads)
    assert {*numbers} == {used}
    assert THREADS.get() == 1
