"""The samplers against scipy's laws, each test with a control that is two per cent wrong.

Every test has the significance ALPHA and a fixed seed: it fails by chance once in a million.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import DPTextNoise, Exponential, Gaussian, Identity, Laplace, RandomBits, Uniform, _core
from dpcore.attacks import MajorityVote
from dpcore.mechanisms.native import describe_natively
from dpcore.streams import COUNT, PAIRS, PILOT, PROBE, SAMPLE, SELECTION, block_trials

ALPHA = 1e-6
SIZE = 10**6
BINS = 200
WRONG = 1.02
"""The scale of a negative control: each test must tell it from 1."""

SCALE = 1.7

LAWS = {
    "laplace": (Laplace, stats.laplace(0.0, SCALE)),
    "gaussian": (Gaussian, stats.norm(0.0, SCALE)),
    "exponential": (Exponential, stats.expon(0.0, SCALE)),
    "uniform": (lambda b: Uniform(-b, 2.0 * b), stats.uniform(-SCALE, 3.0 * SCALE)),
    "resample": (lambda b: DPTextNoise(b, "resample"), stats.expon(0.0, SCALE)),
}


def noise(mechanism, seed, size=SIZE):
    """Noise of one coordinate, added to 0.0."""
    return dpcore.sample(mechanism, [0.0], size, rng=seed)[:, 0]


def ks(sample, law):
    return stats.kstest(sample, law.cdf).pvalue


def chi_square(sample, law):
    """The p-value over 200 bins of equal probability."""
    edges = law.ppf(np.arange(1, BINS) / BINS)
    return stats.chisquare(np.bincount(np.searchsorted(edges, sample), minlength=BINS)).pvalue


def both_moments(sample, law):
    """The smaller of two p-values, for the mean and for the mean square, in units of their law."""
    values = []
    for power in (1, 2):
        mean = law.moment(power)
        spread = math.sqrt((law.moment(2 * power) - mean**2) / sample.size)
        values.append(math.erfc(abs((sample**power).mean() - mean) / spread / math.sqrt(2)))
    return 2 * min(values)


@pytest.mark.parametrize("test", [ks, chi_square, both_moments])
@pytest.mark.parametrize("name", LAWS)
def test_law(name, test):
    make, law = LAWS[name]
    assert test(noise(make(SCALE), 101), law) > ALPHA
    assert test(noise(make(SCALE * WRONG), 101), law) < ALPHA


def test_gaussian_tails():
    """Both methods of the sampler (body and tail) beyond 3.5 sigma, by exact binomial tests."""
    draws = noise(Gaussian(1.0), 102, 10**7)

    def p_value(draws, cut):
        return stats.binomtest(int((draws > cut).sum()), draws.size, stats.norm.sf(cut)).pvalue

    for cut in (3.5, 4.0, 4.5):
        assert min(p_value(draws, cut), p_value(-draws, cut)) > ALPHA / 6
    assert p_value(noise(Gaussian(1.1), 102, 10**7), 4.0) < ALPHA


def test_the_three_laplace_formulas_are_one_function():
    samples = [noise(Laplace(SCALE, name), 103) for name in ("two_branch", "sign", "centred")]
    assert samples[0].tobytes() == samples[1].tobytes() == samples[2].tobytes()
    assert samples[0].tobytes() != noise(Laplace(SCALE), 104).tobytes()


@pytest.mark.parametrize("factor", [1.0, WRONG])
def test_dptext_that_keeps_nan(factor):
    draws = noise(DPTextNoise(SCALE * factor, "keep"), 107)
    missing = np.isnan(draws)
    assert stats.binomtest(int(missing.sum()), SIZE, 0.5).pvalue > ALPHA
    law = stats.expon(0.0, SCALE)
    tests = [test(draws[~missing], law) for test in (ks, chi_square, both_moments)]
    assert all(bool(p > ALPHA) is (factor == 1.0) for p in tests)


def test_the_three_ways_with_nan_share_their_numbers():
    """zero and keep use one word a coordinate, the same one."""
    zero, keep = (noise(DPTextNoise(SCALE, nan), 108) for nan in ("zero", "keep"))
    np.testing.assert_array_equal(np.where(np.isnan(keep), 0.0, keep), zero)


@pytest.mark.parametrize("nan", ["zero", "resample", "keep"])
@pytest.mark.parametrize("x", [0.0, 1.0, -3.25, 1e9])
def test_faulty_noise_never_goes_below_the_input(nan, x):
    draws = dpcore.sample(DPTextNoise(SCALE, nan), [x], SIZE, rng=109)[:, 0]
    assert not (draws < x).any()
    assert (draws > x).any()
    correct = dpcore.sample(Laplace(SCALE), [x], SIZE, rng=109)[:, 0]
    assert stats.binomtest(int((correct < x).sum()), SIZE, 0.5).pvalue > ALPHA


def bits_pvalues(bits):
    """Chi-square of single bits, of words of eight, and of pairs at several distances."""
    flat = bits.astype(np.int64).ravel()
    words = flat[: flat.size // 8 * 8].reshape(-1, 8) @ (1 << np.arange(8))
    values = [stats.chisquare(np.bincount(flat, minlength=2)).pvalue]
    values.append(stats.chisquare(np.bincount(words, minlength=256)).pvalue)
    for lag in (1, 2, 31, 32, 33, 64):
        pairs = 2 * flat[:-lag] + flat[lag:]
        # Every second run of `lag`, so that the pairs do not overlap.
        pairs = pairs[: pairs.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)[:, 0].ravel()
        values.append(stats.chisquare(np.bincount(pairs, minlength=4)).pvalue)
    return values


def test_random_bits_are_fair_and_independent():
    bits = dpcore.sample(RandomBits(), [0.0, 5.0, -1.0], SIZE, rng=110)
    assert set(np.unique(bits)) == {0.0, 1.0}
    assert min(bits_pvalues(bits)) > ALPHA / 8
    for column in bits.T:
        assert stats.binomtest(int(column.sum()), SIZE, 0.5).pvalue > ALPHA / 3


def test_unfair_or_dependent_bits_are_seen():
    """The control: P(1) = 0.505, and a bit that repeats the one 32 before it once in 50."""
    rng = np.random.default_rng(111)
    assert bits_pvalues(rng.random(3 * SIZE) < 0.505)[0] < ALPHA / 8
    sticky = rng.random(3 * SIZE) < 0.5
    copied = np.flatnonzero(rng.random(sticky.size - 32) < 0.02)
    sticky[copied + 32] = sticky[copied]
    assert bits_pvalues(sticky)[5] < ALPHA / 8


# Random streams: independence of coordinates, rows, blocks, sides and seeds; injected words.
#
# Tests of independence look at correlations and at pairs of bins; together they have the
# significance ALPHA, and a stream with one draw in fifty copied is the control.


STANDARD = Uniform(-math.sqrt(3.0), math.sqrt(3.0))
"""Mean 0, variance 1."""

LAGS = [*range(1, 67), 96, 127, 128, 129, 256, 2048, 4096]


def correlation_pvalue(left, right):
    """Of products and of products of squares; both have a normal mean."""
    z = (left * right).mean() * math.sqrt(left.size)
    squares = (left**2 - 1.0) * (right**2 - 1.0)
    z_squares = squares.mean() * math.sqrt(left.size) / 0.8  # Var(u^2) = 9/5 - 1
    return 2 * min(2 * stats.norm.sf(abs(z)), 2 * stats.norm.sf(abs(z_squares)))


def pair_pvalue(left, right, bins=16):
    """Chi-square of the joint bins of two uniform streams."""
    cells = [np.floor((v / math.sqrt(12.0) + 0.5) * bins).astype(np.int64) for v in (left, right)]
    assert 0 <= min(c.min() for c in cells) <= max(c.max() for c in cells) < bins
    seen = np.bincount(cells[0] * bins + cells[1], minlength=bins * bins)
    return stats.chisquare(seen).pvalue


def lag_pvalues(flat):
    return [correlation_pvalue(flat[:-lag], flat[lag:]) for lag in LAGS]


def draw(size, dim=1, seed=5, purpose=SAMPLE, side=0, block=None, start=0):
    """Standard noise of any stream, also of those that only audits use."""
    out = np.empty((size, dim))
    draws = (seed, purpose, side, block_trials(dim) if block is None else block)
    _core.sample(describe_natively(STANDARD, dim), np.zeros(dim), out, draws, start, 2)
    return out


def test_one_stream_has_no_memory():
    flat = draw(2**19).ravel()
    values = lag_pvalues(flat)
    for lag in (1, 31, 32, 33, 64):
        runs = flat[: flat.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        values.append(pair_pvalue(runs[:, 0].ravel(), runs[:, 1].ravel()))
    assert min(values) > ALPHA / len(values)


@pytest.mark.parametrize("lag", [1, 32, 2048])
def test_a_stream_with_memory_is_seen(lag):
    rng = np.random.default_rng(1)
    flat = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), 2**19)
    copied = np.flatnonzero(rng.random(flat.size - lag) < 0.02)
    flat[copied + lag] = flat[copied]
    assert lag_pvalues(flat)[LAGS.index(lag)] < ALPHA / len(LAGS)
    assert correlation_pvalue(flat, -flat) < ALPHA
    sign = np.where(rng.random(flat.size) < 0.5, 1.0, -1.0)
    assert correlation_pvalue(flat, sign * flat) < ALPHA


@pytest.mark.parametrize("dim", [2, 7, 32, 33, 128])
def test_coordinates_and_rows_are_independent(dim):
    rows = draw(2**21 // dim, dim)
    pairs = [(rows[:-1, 0], rows[1:, dim - 1])]
    for gap in sorted({1, 2, dim // 2, dim - 1} & set(range(1, dim))):
        pairs += [(rows[:, 0], rows[:, gap]), (rows[:, -1], rows[:, -1 - gap])]
    pairs += [(rows[:-gap, 0], rows[gap:, 0]) for gap in (1, 2, 16, 32)]
    assert min(correlation_pvalue(*pair) for pair in pairs) > ALPHA / len(pairs)


def test_blocks_are_independent():
    blocks = draw(2**20, block=2**15).reshape(32, 2**15)
    small = draw(2**20, block=64).reshape(-1, 64)
    values = []
    for rows in (blocks, small):
        for gap in (1, 2, 4, 16):
            one, other = rows[:-gap], rows[gap:]
            pairs = (one, other), (one[:, :-1], other[:, 1:]), (one[:, 32:], other[:, :-32])
            values += [correlation_pvalue(*map(np.ravel, pair)) for pair in pairs]
    # One row of blocks over all first draws: the seeding, not the generator.
    first = draw(2**20, block=1, seed=6).ravel()
    values += lag_pvalues(first)
    assert min(values) > ALPHA / len(values)


def test_purposes_sides_and_seeds_are_independent():
    streams = [
        draw(2**17, seed=seed, purpose=purpose, side=side).ravel()
        for seed in (0, 1, 2, 2**62, 2**63 - 1)
        for purpose in (PILOT, SELECTION, COUNT, SAMPLE)
        for side in (0, 1)
    ]
    values = [
        pair
        for i, left in enumerate(streams)
        for right in streams[:i]
        for pair in (correlation_pvalue(left, right), correlation_pvalue(left[32:], right[:-32]))
    ]
    assert min(values) > ALPHA / len(values)


PURPOSES = (PILOT, SELECTION, COUNT, SAMPLE, PROBE, PAIRS)


def test_no_two_purposes_share_a_word():
    drawn = [draw(2**14, seed=7, purpose=p, side=side) for p in PURPOSES for side in (0, 1)]
    # A uniform number holds 52 bits of its word.
    assert np.unique(drawn).size == 12 * 2**14
    # The control: one purpose twice shares them all.
    assert np.unique([drawn[0], drawn[-1], drawn[0]]).size == 2 * 2**14
    # No purpose was left out.
    with pytest.raises(ValueError, match=r"^purpose must be from 0 to 5, got 6$"):
        draw(1, purpose=len(PURPOSES))


def pairs_apart(purpose, dim, seed, blocks=20, clip=10.0):
    """The count of `pairs_beyond` from plain draws: 128 pairs a block, 32 side by side."""
    size = 128 * 2 * dim
    out = np.empty((blocks * size, 1))
    draws = (seed, purpose, 0, size)
    _core.sample(describe_natively(Uniform(-10.0, 10.0), 1), np.zeros(1), out, draws, 0, 1)
    entries = out.reshape(blocks, 4, dim, 2, 32)
    clipped = entries * np.minimum(1.0, clip / np.sqrt((entries**2).sum(axis=2, keepdims=True)))
    apart = np.abs(clipped[:, :, :, 0] - clipped[:, :, :, 1]).sum(axis=2)
    return int((apart > 2.0 * clip * (1.0 + 1e-12)).sum())


@pytest.mark.parametrize("dim", [2, 5])
def test_random_pairs_are_draws_of_their_own_purpose(dim):
    found = _core.pairs_beyond(("uniform", 10.0), ("l2", 10.0), dim, 20 * 128, 7, 1)
    assert found == pairs_apart(PAIRS, dim, 7)
    assert found not in [pairs_apart(purpose, dim, 7) for purpose in PURPOSES[:-1]]


def test_an_audit_counts_streams_that_sampling_does_not_use():
    pair = dpcore.Pair([0.0], [0.0 + 1e-9])
    drawn = dpcore.audit(STANDARD, pair, trials=1000, rng=5).outputs("x", 0, 1000)
    np.testing.assert_array_equal(drawn, draw(1000, seed=5, purpose=COUNT))


def at(mechanism, k):
    """The noise at the uniform k / 2^53, the eleven unused bits once clear and once set."""
    words = np.array(k, dtype=np.uint64) << np.uint64(11)
    clear = _core.noise_at(describe_natively(mechanism, 1), words)
    unused = _core.noise_at(describe_natively(mechanism, 1), words | np.uint64(0x7FF))
    assert clear.tobytes() == unused.tobytes()
    return clear


LARGEST = 52.0 * math.log(2.0)


@pytest.mark.parametrize("variant", ["two_branch", "sign", "centred"])
@pytest.mark.parametrize("scale", [1.0, 0.3, 1e300, 1e-300])
def test_laplace_at_its_end_points(variant, scale):
    ends = at(Laplace(scale, variant), [0, 1, 2, 2**52, 2**53 - 1])
    assert np.isfinite(ends).all()
    assert ends[0] == ends[1] == -ends[4]
    assert abs(ends[0]) == pytest.approx(LARGEST * scale, rel=1e-15)
    assert round(LARGEST, 2) == 36.04
    assert ends[1] < ends[2] < ends[3] == 0.0


def test_laplace_is_the_printed_formula_and_increasing():
    rng = np.random.default_rng(2)
    dense = [np.arange(a, a + 5000) for a in (1, 2**52 - 2500, 2**53 - 5000)]
    k = np.unique(np.concatenate([*dense, rng.integers(1, 2**53, 50_000)]))
    u = k / 2.0**53
    ours = at(Laplace(1.0), k)
    upper = np.where(u < 0.5, 0.5, u)  # keep the unused branch away from ln 0
    numpy_formula = np.where(u < 0.5, np.log(2.0 * u), -np.log(2.0 * (1.0 - upper)))
    np.testing.assert_array_almost_equal_nulp(ours[u != 0.5], numpy_formula[u != 0.5], 2)
    assert (np.diff(ours) > 0).all()


@pytest.mark.parametrize("nan", ["zero", "resample", "keep"])
def test_dptext_at_its_end_points(nan):
    """Of the lower half: what the sampler does with the words of the upper one is its law."""
    noise = at(DPTextNoise(2.0, nan), [0, 1, 2**52 - 2, 2**52 - 1, 2**52])
    assert noise[0] == 0.0 < noise[1] < 1e-15
    # u = 1/2 would be +inf as printed: it takes the value of the grid point before it.
    assert noise[2] < noise[3] == noise[4] == pytest.approx(LARGEST * 2.0, rel=1e-15)


def test_exponential_and_uniform_at_their_end_points():
    noise = at(Exponential(2.0), [0, 1, 2**52, 2**53 - 1])
    assert 0.0 <= noise.min() <= noise.max() <= 2.0 * 53.0 * math.log(2.0) * (1 + 1e-15)
    noise = at(Uniform(-1.0, 3.0), [0, 2**51, 2**52, 2**53 - 1])
    assert noise.tolist()[:3] == [-1.0, 0.0, 1.0]
    assert noise[3] < 3.0
    # Where the width is small against the ends the sum may round to `high`, never beyond it.
    for low, high in [(1.0, math.nextafter(1.0, 2.0)), (-1e300, 1e300), (1e9, 1e9 + 1e-6)]:
        noise = at(Uniform(low, high), [0, 1, 2**52, 2**53 - 1])
        assert low == noise.min() <= noise.max() <= high


def test_noise_that_is_no_monotone_function_of_one_word_has_no_value_at_a_word():
    words = np.arange(4, dtype=np.uint64) << np.uint64(62)
    assert _core.noise_at(describe_natively(Gaussian(1.0), 1), words) is None
    for noise, known in ((Identity(), [0.0] * 4), (RandomBits(), [0.0, 0.0, 1.0, 1.0])):
        assert _core.noise_at(describe_natively(noise, 1), words).tolist() == known


def test_no_two_calls_of_a_callable_share_a_stream():
    """Sides, blocks and pilot: every call of one audit starts with another random number."""
    first = []

    def recording(x, size, rng):
        first.append(int(rng.integers(2**63)))
        return x + rng.laplace(size=(size, 1))

    arguments = {"claim": 1.0, "trials": 1000, "block": 100, "rng": 1}
    dpcore.audit(recording, (np.zeros(1), np.ones(1)), attack=MajorityVote(), **arguments)
    # One probe of the form, six short calls, one pilot call and ten blocks on each side; and two
    # streams drawn twice, a row and a block of them, to see whose randomness it is.
    assert (len(first), len(set(first))) == (2 + 12 + 2 + 20 + 4, len(first) - 2)
    voted = set(first)

    first.clear()
    report = dpcore.audit(recording, (np.zeros(1), np.ones(1)), **arguments)
    # The pilot is drawn in two parts, that the attack learns from and that chooses its event.
    assert report.pilot > 200
    assert len(first) > 1 + 12 + 4 + 20 + 4
    assert len(set(first)) == len(first) - 2
    # Whatever the attack, the same draws are counted.
    assert len(voted & set(first)) >= 20
