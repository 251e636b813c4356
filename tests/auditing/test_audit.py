"""Audits: counts against the closed form, and what the counts may not depend on.

The closed form is that of the majority vote, so `audit` below is an audit with that attack; what
holds whatever the attack is tested with the default one too.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from shared_examples import examples

import dpcore
from dpcore import Counts, Gaussian, Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.exact import vote_log_probabilities
from dpcore.published import SYSTEMS, HalfNoise, LaplaceMechanism
from dpcore.sampling import driver
from dpcore.sampling.sources import NativeDraws
from dpcore.sampling.workers import Workers
from dpcore.streams import COUNT

DIMS = [1, 2, 8, 128]
NOISES = [
    Laplace(1.5), Gaussian(1.5), dpcore.Exponential(1.5), dpcore.Uniform(-1.5, 0.9),
    dpcore.Identity(), dpcore.RandomBits(),
    *(dpcore.DPTextNoise(1.5, nan) for nan in ("zero", "resample", "keep")),
]  # fmt: skip
EVERY = [*NOISES, *(system(1.0) for system in SYSTEMS), published.DPText(1.0, nan="keep")]

VOTE = MajorityVote()
SIDES = ("x", "x_prime")
ATTACKS = [VOTE, None]
"""The vote, whose counts have fast routes of their own, and the package's default."""

ALPHA = 1e-6 / (4 * len(EVERY) * len(DIMS))
"""Significance of one of the binomial tests; together they fail by chance once in a million."""


def audit(mechanism, pair=None, *, attack=VOTE, **arguments):
    return dpcore.audit(mechanism, pair, attack=attack, **arguments)


def pair_for(mechanism, dim):
    own = getattr(mechanism, "default_pair", None)
    return dpcore.pairs.zeros_ones(dim) if own is None else own(dim)


def votes(report):
    """Votes for x' on both sides, whichever vote the audit counted."""
    c = report.counts
    return (c.k, c.k_prime) if report.event.vote == "x_prime" else (c.n - c.k, c.n - c.k_prime)


def binomial_pvalue(k, n, log_p, log_q):
    """Two-sided, exact, from the logarithm of whichever probability is small."""
    if log_p > log_q:
        k, log_p = n - k, log_q
    law = stats.binom(n, math.exp(log_p))
    return min(1.0, 2.0 * min(law.cdf(k), law.sf(k - 1)))


def vote_pvalues(report, law):
    logs = (law.log_p, law.log_q), (law.log_p_prime, law.log_q_prime)
    both = zip(votes(report), logs, strict=True)
    return [binomial_pvalue(k, report.counts.n, *of_side) for k, of_side in both]


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("dim", DIMS)
def test_votes_have_the_law_of_the_closed_form(mechanism, dim):
    pair = pair_for(mechanism, dim)
    report = audit(mechanism, pair, trials=10**6, rng=dim)
    assert min(vote_pvalues(report, vote_log_probabilities(mechanism, pair))) > ALPHA
    assert report.counts.n == report.counts.n_prime == 10**6


@pytest.mark.parametrize("dim", [1, 2, 8])
@pytest.mark.parametrize("name", ["LaplaceMechanism", "ADePT", "ADePTReference", "HalfNoise"])
def test_a_scale_three_per_cent_wrong_is_seen(name, dim):
    """The control of the test above."""
    right, wrong = (getattr(published, name)(epsilon) for epsilon in (1.0, 1.03))
    pair = right.default_pair(dim)
    report = audit(wrong, pair, trials=10**6, rng=dim, claim=1.0)
    assert min(vote_pvalues(report, vote_log_probabilities(right, pair))) < ALPHA


def test_impossible_votes_never_happen():
    report = audit(published.DPText(1.0), trials=10**6, rng=1)
    k, k_prime = votes(report)
    assert k_prime == 10**6
    assert 0 < k < 10**6
    report = audit(dpcore.Identity(), dpcore.pairs.zeros_ones(3), trials=1000, claim=1.0)
    assert votes(report) == (0, 1000)
    assert report.epsilon_hat == report.exact == math.inf
    assert 0 < report.epsilon_lower < 20


def test_nan_entries_are_counted_on_each_side():
    mechanism, n = dpcore.DPTextNoise(1.0, "keep"), 10**5
    report = audit(mechanism, dpcore.pairs.zeros_ones(3), trials=n, rng=2)
    for nan in (report.nan, report.nan_prime):
        assert stats.binomtest(nan, 3 * n, 0.5).pvalue > 1e-6
    drawn = [int(np.isnan(report.outputs(side, 0, n)).sum()) for side in SIDES]
    assert drawn == [report.nan, report.nan_prime]
    assert audit(Laplace(1.0), trials=1000).nan == 0


def test_the_figures_are_those_of_the_counts():
    report = audit(HalfNoise(1.0), trials=10**5, rng=3, confidence=0.9)
    k, k_prime = votes(report)
    n = 10**5
    empirical = max(abs(math.log(k / k_prime)), abs(math.log((n - k) / (n - k_prime))))
    assert report.epsilon_hat == pytest.approx(empirical, rel=1e-12)
    ordered = report.counts if report.direction == "x" else report.counts.swapped()
    assert report.bound_counts == ordered
    assert report.epsilon_lower == dpcore.bounds.clopper_pearson(ordered, 0.0, 0.9)
    assert (report.verdict, report.refuted, report.trials) == ("refuted", True, n)
    assert report.pilot <= n // 100


# What the counts may not depend on.


def same(left, right):
    """Equal in everything that is compared but the route."""
    for name in ("counts", "event", "direction", "nan", "nan_prime", "pilot", "ranges", "seed"):
        assert getattr(left, name) == getattr(right, name), name


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("dim", [1, 5, 64])
def test_threads_and_routes_change_nothing(mechanism, dim):
    pair = pair_for(mechanism, dim)
    arguments = {"trials": 300_001, "start": 77, "rng": 4, "block": 1000, "claim": 1.0}
    one = audit(mechanism, pair, threads=1, route="sampled", **arguments)
    assert one.route == "sampled"
    for threads in (2, 3):
        same(one, audit(mechanism, pair, threads=threads, route="sampled", **arguments))
    auto = audit(mechanism, pair, **arguments)
    same(one, auto)
    assert auto.route == ("sampled" if type(mechanism) is Gaussian else "integer")


def test_auto_takes_the_sampled_route_where_limits_would_not_pay():
    """Few trials of many different coordinates; the counts are the same."""
    x = np.arange(50.0)
    for pair, trials, route in [
        ((x, x + 1), 99, "sampled"),
        ((x, x + 1), 100, "integer"),
        ((np.zeros(50), np.ones(50)), 10, "integer"),
    ]:
        ran = {"trials": trials, "rng": 1, "attack": MajorityVote()}
        report = audit(Laplace(1.0), pair, **ran)
        assert report.route == route
        assert report.counts == audit(Laplace(1.0), pair, route="sampled", **ran).counts


def named(mechanism):
    """What a test is called: nothing that differs from process to process."""
    return getattr(mechanism, "__name__", str(mechanism))


def column_noise(x, size, rng):
    """A twin whose rows depend on the number of rows asked for: shared scale, drawn first."""
    return x + rng.laplace(0.0, 1.0, (len(x), size)).T


SHARDS = {
    "one block": lambda pace, left, workers, block, travels: block,
    "everything": lambda pace, left, workers, block, travels: (left // block + 1) * block,
    "longer and longer": lambda pace, left, _, block, travels: (
        (2 * pace.longest // block + 1) * block
    ),
}


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Gaussian(1.0), column_noise], ids=named)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize("size", SHARDS)
def test_the_length_of_shards_changes_nothing(monkeypatch, mechanism, attack, size):
    arguments = {"trials": 30_001, "start": 600, "rng": 5, "block": 300, "attack": attack}
    pair = Pair([0.0, 0.0], [1.0, 1.0])
    usual = audit(mechanism, pair, **arguments)
    monkeypatch.setattr(driver.Pace, "shard_trials", SHARDS[size])
    for threads in (1, 2):
        assert audit(mechanism, pair, threads=threads, **arguments) == usual


@given(
    st.integers(0, 10**6), st.integers(1, 20_000), st.integers(1, 10**5), st.floats(1e-9, 1.0),
    st.booleans()
)  # fmt: skip
def test_shards_are_whole_blocks_that_cover_the_range(start, trials, block, seconds, travels):
    stop, seen = start + trials, start
    source = driver.Source(NativeDraws(Laplace(1.0), Pair([0.0], [1.0]), 1, block), 1, stop)
    source.pace = driver.Pace(seconds, block)
    workers = Workers()
    workers.travels = travels
    for task in driver._cut_shards(source, workers, COUNT, [(start, stop)]):
        assert task.first == seen < task.end <= stop
        assert task.first == start or task.first % block == 0
        seen = task.end
        source.pace.longest = max(source.pace.longest, task.end - task.first)
    assert seen == stop


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Gaussian(1.0), column_noise], ids=named)
def test_ranges_added_are_the_whole(mechanism):
    pair, step = Pair([0.0, 0.0], [1.0, 1.0]), 10_000
    options = {"rng": 6, "block": 500, "claim": 1.0}
    # Equal parts use equal pilots, so that event and direction agree.
    parts = [audit(mechanism, pair, trials=step, start=i * step, **options) for i in range(3)]
    whole = audit(mechanism, pair, trials=3 * step, **options)
    assert (whole.event, whole.direction) == (parts[0].event, parts[0].direction)
    merged = parts[2] + parts[0] + parts[1]
    assert merged.ranges == whole.ranges == ((0, 3 * step),)
    assert (merged.counts, merged.end) == (whole.counts, whole.end)
    assert merged.epsilon_lower == whole.epsilon_lower
    gap = parts[0] + parts[2]
    assert gap.ranges == ((0, step), (2 * step, 3 * step))
    assert gap.counts == parts[0].counts + parts[2].counts
    np.testing.assert_array_equal(*(one.outputs("x", 20_003, 700) for one in (gap, whole)))
    with pytest.raises(ValueError, match="start, size must be within the counted trials"):
        gap.outputs("x", step - 1, 2)


def near_zero(outputs):
    return np.abs(np.asarray(outputs)).reshape(len(outputs), -1).min(axis=1) < 0.25


def any_event(outputs, outputs_prime, pair):
    return near_zero


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Gaussian(1.0), column_noise], ids=named)
@pytest.mark.parametrize("attack", [*ATTACKS, any_event])
def test_outputs_are_exactly_those_that_were_counted(mechanism, attack):
    pair, trials, start = Pair([0.0, 0.0], [1.0, 1.0]), 2345, 1200
    report = audit(mechanism, pair, trials=trials, start=start, rng=7, block=400, attack=attack)
    sides = {"x": report.counts.k, "x_prime": report.counts.k_prime}
    assert max(sides.values()) > 0
    for side, k in sides.items():
        drawn = report.outputs(side, start, trials)
        assert drawn.shape == (trials, 2)
        assert int(report.event(drawn).sum()) == k
        # Any part of them, across blocks and up to the short last one.
        for first, size in [(1200, 1), (1599, 2), (1300, 1100), (3544, 1), (3400, 145), (1700, 0)]:
            part = report.outputs(side, first, size)
            np.testing.assert_array_equal(part, drawn[first - start : first - start + size])
    for first, size in [(1199, 1), (3545, 1), (0, 0), (1200, 2346)]:
        with pytest.raises(ValueError, match="start, size must be within the counted trials"):
            report.outputs("x", first, size)
    with pytest.raises(ValueError, match="side must be one of 'x', 'x_prime', got 'y'"):
        report.outputs("y", start, 1)


@pytest.mark.parametrize("mechanism", [Laplace(1.0), column_noise], ids=named)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_recorded_seed_repeats_the_audit(mechanism, attack):
    pair = Pair([0.0, 0.0], [1.0, 1.0])
    fresh = audit(mechanism, pair, trials=5000, attack=attack)
    assert 0 <= fresh.seed < 2**63
    assert fresh == audit(mechanism, pair, trials=5000, attack=attack, rng=fresh.seed)
    other = audit(mechanism, pair, trials=5000, attack=attack)
    assert (other.seed, other.counts) != (fresh.seed, fresh.counts)


def test_a_generator_gives_one_integer():
    generator = np.random.default_rng(8)
    first, second = (audit(Laplace(1.0), trials=500, rng=generator) for _ in range(2))
    again = np.random.default_rng(8)
    assert [first.seed, second.seed] == [int(again.integers(2**63)) for _ in range(2)]


def test_sides_and_pilot_use_different_numbers():
    """Equal inputs up to a rounding: the two sides must still be independent draws."""
    report = audit(Laplace(1.0), Pair([0.0], [1e-12]), trials=1000, rng=9)
    x, x_prime = (report.outputs(side, 0, 1000) for side in SIDES)
    assert (np.abs(x - x_prime) > 1e-9).all()


@examples(30)
@given(
    seed=st.integers(0, 2**63 - 1),
    dim=st.integers(1, 70),
    trials=st.integers(1, 3000),
    start=st.integers(0, 10**12),
    block=st.integers(1, 500),
    threads=st.integers(1, 3),
    mechanism=st.sampled_from(EVERY),
    attack=st.sampled_from(ATTACKS),
    spread=st.floats(-3.0, 3.0),
)
def test_any_native_audit_counts_its_outputs(
    seed, dim, trials, start, block, threads, mechanism, attack, spread
):
    x = np.linspace(-1.0, spread, dim)
    x_prime = x + np.where(np.arange(dim) % 3 == 2, -0.7, 0.4)
    options = {"trials": trials, "start": start, "block": block, "threads": threads, "rng": seed}
    report = audit(mechanism, (x, x_prime), claim=1.0, attack=attack, **options)
    drawn = [report.outputs(side, start, trials) for side in SIDES]
    k, k_prime = (int(report.event(outputs).sum()) for outputs in drawn)
    assert report.counts == Counts(k, trials, k_prime, trials)
    assert report.nan == np.isnan(drawn[0]).sum()


def test_trials_as_people_write_them():
    spellings = (10_000, 1e4, "1e4", "10000", np.int32(10_000), np.float32(1e4))
    assert len({audit(Laplace(1.0), trials=trials, rng=1).counts for trials in spellings}) == 1


def test_audits_in_parallel_from_python_threads():
    def one(seed):
        return audit(LaplaceMechanism(1.0), trials=200_000, rng=seed).counts

    seeds = [1, 2, 3, 4] * 2
    with ThreadPoolExecutor(4) as pool:
        counted = list(pool.map(one, seeds))
    assert counted == [one(seed) for seed in seeds]
