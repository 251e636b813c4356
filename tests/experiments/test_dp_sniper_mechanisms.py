"""The benchmark's mechanisms: exact laws, with controls that must fail; the published figures."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from shared_benchmarks import NAMES, PRINTED

from dpcore.experiments import dp_sniper_table as truth
from dpcore.experiments.dp_sniper_table import mechanisms
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS, make_shift_pairs, shift_first

ALPHA = 1e-4
"""Significance of every test of a law; the controls, 5 % wrong, must fall below it."""

N = 200_000
FAR = np.array([30.0, -20.0, 10.0, 45.0])
"""Queries away from the threshold: near it flags hardly depend on the scale of the noise."""


def draw(mechanism, x, size=N, seed=1):
    return mechanism(np.asarray(x, dtype=float), size, np.random.default_rng(seed))


def ks(values, scale, law=stats.laplace):
    return stats.kstest(values, law(scale=scale).cdf).pvalue


def cells(counts, expected):
    """Chi-square of counts by cell against probabilities by cell, rare cells taken together."""
    assert set(counts) <= set(expected)
    total = sum(counts.values())
    seen = np.array([counts.get(cell, 0) for cell in expected], dtype=float)
    wanted = total * np.array(list(expected.values()))
    assert wanted.sum() == pytest.approx(total, rel=1e-6)
    rare = wanted < 10
    seen = np.append(seen[~rare], seen[rare].sum())
    wanted = np.append(wanted[~rare], wanted[rare].sum())
    if wanted[-1] == 0:
        seen, wanted = seen[:-1], wanted[:-1]
    return stats.chisquare(seen, wanted * total / wanted.sum()).pvalue


def runs(flags, cutoff):
    """Counts of the answers up to the end of each run, and whether the rest says so."""
    found = Counter()
    codes = (flags.astype(np.int64) + 1) @ 3 ** np.arange(flags.shape[1])
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    for row, count in zip(map(tuple, flags[first].tolist()), counts.tolist(), strict=True):
        run = tuple(flag for flag in row if flag != -1)
        assert row == run + (-1,) * (len(row) - len(run))
        assert len(run) == len(row) or (sum(run) == cutoff and run[-1] == 1)
        found[run] += count
    return found


def noise_of(name, x, scale):
    """All entries' noise, pooled."""
    values = (draw(BENCHMARKS[name].mechanism, x, 100_000) - np.asarray(x)).ravel()
    return lambda w: ks(values, scale * w)


def increments_of(x):
    sums = draw(mechanisms.prefix_sum, x, 100_000)
    values = (np.diff(sums, axis=1, prepend=0.0) - np.asarray(x)).ravel()
    return lambda w: ks(values, 10 * w)


def flags_of(mechanism, threshold, rho, nu, cutoff=1, queries=FAR):
    found = runs(draw(mechanism, queries), cutoff)
    return lambda w: cells(
        found, truth.svt_probabilities(queries, threshold, rho * w, nu * w, cutoff)
    )


def parallel_flags(x, size, rng):
    """The flags alone, which are the second half of an output."""
    return mechanisms.svt34_parallel(x, size, rng)[:, len(x) :]


def numerical_flags(x, size, rng):
    """The flags that answers with fresh noise stand for."""
    outputs = mechanisms.numerical_svt(x, size, rng)
    return np.where(outputs == -1000, -1, outputs != 0).astype(int)


def argmax_of(mechanism, exponential):
    found = Counter(draw(mechanism, [0, 5, 20, 30, 40]).tolist())
    point = np.array([0.0, 5, 20, 30, 40])
    return lambda w: cells(found, dict(enumerate(truth.argmax_cells(point, exponential, 20.0 * w))))


def maximum_of(mechanism, exponential):
    point, values = np.array([0.0, 5, 20, 30, 40]), draw(mechanism, [0, 5, 20, 30, 40])
    law = stats.expon if exponential else stats.laplace

    def pvalue(w):
        def cdf(t):
            return law.cdf((t[:, None] - point) / (20.0 * w)).prod(axis=1)

        return stats.kstest(values, cdf).pvalue

    return pvalue


def geometric_of():
    found = Counter(draw(mechanisms.truncated_geometric, [1]).tolist())

    def pvalue(w):
        return cells(found, dict(enumerate(truth.geometric_pmf(1, (8 / 9) ** (1 / w)))))

    return pvalue


def bits_of(mechanism, keep):
    """Sum of the 20 squared deviations of the bits' frequencies on the input 1."""
    ones = draw(mechanism, [1]).sum(axis=0, dtype=np.int64)
    set_bits = np.isin(np.arange(20), [3, 10, 13])

    def pvalue(w):
        p = np.where(set_bits, keep, 1 - keep) / w
        return stats.chi2.sf(((ones - N * p) ** 2 / (N * p * (1 - p))).sum(), 20)

    return pvalue


def released_of(mechanism, rho, nu, half=slice(None)):
    """A value released as the first answer: density f(v - x) F(v - T), by a fine sum."""
    values = draw(mechanism, FAR)[:, half][:, 0]
    values = values[values != -1000]

    def pvalue(w):
        grid = np.linspace(-600 * w, 700 * w, 130_001)
        density = stats.laplace.pdf(grid, 30, nu * w) * stats.laplace.cdf(grid, 1, rho * w)
        cdf = np.cumsum(density) / density.sum()
        return stats.kstest(values, lambda v: np.interp(v, grid, cdf)).pvalue

    return pvalue


def marks_of(mechanism, rho, nu, cutoff, below, stopped, queries=slice(None)):
    """The flags that a vector of values stands for."""
    outputs = draw(mechanism, FAR)[:, queries]
    found = runs(np.where(outputs == stopped, -1, outputs != below).astype(int), cutoff)
    return lambda w: cells(found, truth.svt_probabilities(FAR, 1.0, rho * w, nu * w, cutoff))


def answers_of():
    outputs = draw(mechanisms.numerical_svt, FAR)
    released = (outputs != 0) & (outputs != -1000)
    values = (outputs - FAR)[released]
    return lambda w: ks(values, 60 * w)


FIRST, X5 = slice(0, 4), [1.0, -3.0, 0.0, 2.0, 7.0]

LAWS = {
    "Laplace": lambda: noise_of("Laplace", [3.0], 10),
    "TruncatedGeometric": geometric_of,
    "NoisyHist1": lambda: noise_of("NoisyHist1", X5, 10),
    "NoisyHist2": lambda: noise_of("NoisyHist2", X5, 0.1),
    "ReportNoisyMax1": lambda: argmax_of(mechanisms.report_noisy_max1, False),
    "ReportNoisyMax2": lambda: argmax_of(mechanisms.report_noisy_max2, True),
    "ReportNoisyMax3": lambda: maximum_of(mechanisms.report_noisy_max3, False),
    "ReportNoisyMax4": lambda: maximum_of(mechanisms.report_noisy_max4, True),
    "SVT1": lambda: flags_of(mechanisms.svt1, 0.5, 20, 40),
    "SVT2": lambda: flags_of(mechanisms.svt2, 1.0, 20, 40),
    "SVT3 flags": lambda: marks_of(mechanisms.svt3, 20, 20, 1, -1000, -2000),
    "SVT3 values": lambda: released_of(mechanisms.svt3, 20, 20),
    "SVT4": lambda: flags_of(mechanisms.svt4, 1.0, 40, 40 / 3),
    "SVT5": lambda: flags_of(mechanisms.svt5, 1.0, 20, 0, cutoff=9),
    "SVT6": lambda: flags_of(mechanisms.svt6, 1.0, 20, 20, cutoff=9),
    "RAPPOR": lambda: bits_of(mechanisms.rappor, 0.5125),
    "OneTimeRAPPOR": lambda: bits_of(mechanisms.one_time_rappor, 0.525),
    "LaplaceParallel": lambda: noise_of("LaplaceParallel", [2.0], 200),
    "SVT34Parallel flags": lambda: flags_of(parallel_flags, 1.0, 40, 40 / 3, cutoff=2),
    "SVT34Parallel marks": lambda: marks_of(
        mechanisms.svt34_parallel, 20, 40, 2, -1000, -2000, FIRST
    ),
    "SVT34Parallel values": lambda: released_of(mechanisms.svt34_parallel, 20, 40, FIRST),
    "PrefixSum": lambda: increments_of(X5),
    "NumericalSVT flags": lambda: marks_of(mechanisms.numerical_svt, 30, 120, 2, 0, -1000),
    "NumericalSVT answers": answers_of,
}


def test_every_mechanism_has_a_law():
    assert {name.split()[0] for name in LAWS} == set(NAMES) == set(PRINTED)


@pytest.mark.parametrize("name", LAWS)
def test_law_and_control(name):
    pvalue = LAWS[name]()
    assert pvalue(1.0) > ALPHA
    assert pvalue(1.05) < ALPHA
    assert pvalue(1 / 1.05) < ALPHA


@pytest.mark.parametrize(
    ("mechanism", "threshold", "rho", "nu", "cutoff"),
    [
        (mechanisms.svt1, 0.5, 20, 40, 1),
        (mechanisms.svt2, 1.0, 20, 40, 1),
        (lambda *given: (mechanisms.svt3(*given) > -1000) * 1, 1.0, 20, 20, 99),
        (mechanisms.svt4, 1.0, 40, 40 / 3, 1),
        (mechanisms.svt5, 1.0, 20, 0, 99),
        (mechanisms.svt6, 1.0, 20, 20, 99),
        (parallel_flags, 1.0, 40, 40 / 3, 99),
        (lambda *given: (mechanisms.numerical_svt(*given) != 0) * 1, 1.0, 30, 120, 99),
    ],
)
def test_thresholds(mechanism, threshold, rho, nu, cutoff):
    query = np.array([0.75])
    found = runs(draw(mechanism, query, 3_000_000), cutoff)
    for shift, passes in ((0.0, True), (0.5, False), (-0.5, False)):
        expected = truth.svt_probabilities(query, threshold + shift, rho, nu, cutoff)
        assert bool(cells(found, expected) > ALPHA) is passes


@pytest.mark.parametrize(
    ("mechanism", "rho", "nu", "cutoff"),
    [
        (mechanisms.svt2, 20, 40, 1),
        (mechanisms.svt4, 40, 40 / 3, 1),
        (mechanisms.svt6, 20, 20, 9),
        (parallel_flags, 40, 40 / 3, 2),
        (numerical_flags, 30, 120, 2),
    ],
)
def test_the_scale_of_the_noise_that_all_entries_share(mechanism, rho, nu, cutoff):
    """It is the only dependence of entries that are equal."""
    queries = np.ones(4)
    found = runs(draw(mechanism, queries, 3_000_000), cutoff)
    for factor, passes in ((1.0, True), (1.25, False), (0.8, False)):
        expected = truth.svt_probabilities(queries, 1.0, factor * rho, nu, cutoff)
        assert bool(cells(found, expected) > ALPHA) is passes


def test_the_geometric_table_is_the_law_itself():
    for center in range(6):
        table = mechanisms.equally_likely_geometric_outputs(center, 0.1)
        counts = np.bincount(table, minlength=6)
        assert table.size == 17 * 9**4
        assert counts == pytest.approx(table.size * truth.geometric_pmf(center), abs=1e-6)


def test_laplace_tail_and_signs():
    values = mechanisms.laplace_noise(1.0, 4_000_000, np.random.default_rng(3))
    for scales in (3, 8, 11):
        expected = values.size * math.exp(-scales)
        seen = int((np.abs(values) > scales).sum())
        assert min(stats.poisson.cdf(seen, expected), stats.poisson.sf(seen - 1, expected)) > ALPHA
    # Signs are independent of sizes and of their neighbours.
    positive = values > 0
    large = np.abs(values) > 1
    table = [[int((positive & large).sum()), int((positive & ~large).sum())],
             [int((~positive & large).sum()), int((~positive & ~large).sum())]]  # fmt: skip
    assert stats.chi2_contingency(table).pvalue > ALPHA
    words = np.packbits(positive[: 8 * (values.size // 8)])
    assert stats.chisquare(np.bincount(words, minlength=256)).pvalue > ALPHA


@pytest.mark.parametrize(
    "name", ["NoisyHist1", "LaplaceParallel", "PrefixSum", "RAPPOR", "OneTimeRAPPOR"]
)
def test_entries_are_independent(name):
    benchmark = BENCHMARKS[name]
    outputs = draw(benchmark.mechanism, benchmark.pairs[0].x)
    if name == "PrefixSum":
        # The sums themselves are the control: what is not independent must be seen.
        assert largest_correlation(outputs) > 10
        outputs = np.diff(outputs, axis=1, prepend=0.0)
    assert largest_correlation(outputs) < stats.norm.isf(ALPHA / 400)
    assert largest_correlation(np.abs(outputs - outputs.mean(axis=0))) < stats.norm.isf(ALPHA / 400)


def largest_correlation(outputs):
    table = np.corrcoef(outputs, rowvar=False) - np.eye(outputs.shape[1])
    return np.abs(table).max() * math.sqrt(len(outputs))


def test_the_two_halves_of_the_parallel_mechanism_are_independent():
    outputs = draw(mechanisms.svt34_parallel, FAR)
    table = stats.contingency.crosstab(outputs[:, 0] == -1000, outputs[:, 4]).count
    assert stats.chi2_contingency(table).pvalue > ALPHA
    # The control: queries of one half share their noisy threshold.
    both = outputs[outputs[:, 5] != -1]
    table = stats.contingency.crosstab(both[:, 4], both[:, 5]).count
    assert stats.chi2_contingency(table).pvalue < ALPHA


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 2, 777])
def test_shape_type_determinism_and_a_clean_input(name, size):
    benchmark, (shape, kind) = BENCHMARKS[name], PRINTED[name][:2]
    for pair in benchmark.pairs:
        for x in (pair.x, pair.x_prime):
            before = x.tobytes()
            first, again = (draw(benchmark.mechanism, x, size, seed=4) for _ in range(2))
            assert (first.shape, first.dtype.kind) == ((size, *shape), kind)
            assert first.dtype.itemsize == (8 if kind == "f" else 1)
            assert first.tobytes() == again.tobytes()
            assert np.isfinite(first).all()
            assert x.tobytes() == before
    if size == 777:
        assert first.tobytes() != draw(benchmark.mechanism, x, size, seed=5).tobytes()


@pytest.mark.parametrize(
    ("name", "below", "stopped", "cutoff"),
    [("SVT3", -1000, -2000, 1), ("SVT34Parallel", -1000, -2000, 2), ("NumericalSVT", 0, -1000, 2)],
)
def test_what_stands_for_below_and_stopped(name, below, stopped, cutoff):
    outputs = draw(BENCHMARKS[name].mechanism, BENCHMARKS[name].pairs[0].x, 20_000)[:, :10]
    released = (outputs != below) & (outputs != stopped)
    assert {below, stopped} <= set(outputs.ravel().tolist())
    assert not np.isin(outputs[released], [0.0, -1.0, -1000.0, -2000.0]).any()
    assert len(np.unique(outputs[released])) == released.sum()
    assert not np.signbit(outputs[outputs == 0.0]).any()
    earlier = np.cumsum(released, axis=1) - released
    assert ((outputs == stopped) == (earlier >= cutoff)).all()


def murmur3(text, seed):
    """MurmurHash3 (x86, 32 bits) of less than four bytes, as a signed number."""
    mask, value = 2**32 - 1, int.from_bytes(text.encode(), "little")
    value = value * 0xCC9E2D51 & mask
    value = (value << 15 | value >> 17) * 0x1B873593 & mask
    value = (seed ^ value) ^ len(text.encode())
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    value ^= value >> 16
    return value - 2**32 if value >= 2**31 else value


def test_the_bits_of_the_filters():
    for number, bits in mechanisms.BLOOM.items():
        assert {murmur3(str(number), seed) % 20 for seed in range(4)} == set(bits)


def test_pairs():
    assert [pair.x_prime.tolist() for pair in shift_first(3)] == [[0, 1, 1], [2, 1, 1]]
    pairs = make_shift_pairs(5)
    assert (len(pairs), pairs[:2]) == (8, shift_first(5))
    assert [pair.x_prime.tolist() for pair in pairs[2:]] == [
        [2, 0, 0, 0, 0], [0, 2, 2, 2, 2], [2, 2, 0, 0, 0], [2] * 5, [0] * 5, [0, 0, 1, 1, 1],
    ]  # fmt: skip
    assert pairs[7].x.tolist() == [1, 1, 0, 0, 0]
    assert all((np.abs(pair.x - pair.x_prime) == 1).all() for pair in pairs[2:])
