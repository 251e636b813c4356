"""Audits: counts against the closed form, and what the counts may not depend on.

The closed form is that of the majority vote, so `audit` below is an audit with that attack; what
holds whatever the attack is tested with the default one too.
"""

from __future__ import annotations

import gc
import importlib.util
import math
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from shared_audits import EVERY_NATIVE, count_again
from shared_examples import examples

import dpcore
from dpcore import Counts, Gaussian, Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.exact import vote_log_probabilities
from dpcore.mechanisms import Formula
from dpcore.published import SYSTEMS, HalfNoise, LaplaceMechanism
from dpcore.sampling import driver
from dpcore.sampling.sources import NativeDraws
from dpcore.sampling.workers import Workers
from dpcore.streams import COUNT

DIMS = [1, 2, 8, 128]
VOTE = MajorityVote()
SIDES = ("x", "x_prime")
ATTACKS = [VOTE, None]
"""The vote, whose counts have fast routes of their own, and the package's default."""

ALPHA = 1e-6 / (4 * len(EVERY_NATIVE) * len(DIMS))
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


@pytest.mark.parametrize("mechanism", EVERY_NATIVE, ids=repr)
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
    report = audit(dpcore.Identity(), dpcore.pairs.zeros_ones(3), trials=1000, claim=1.0)
    assert votes(report) == (0, 1000)
    assert report.epsilon_hat == report.exact == math.inf
    assert 0 < report.epsilon_lower < 20


def test_nan_entries_are_counted_on_each_side():
    pair = dpcore.pairs.zeros_ones(3)
    report = audit(dpcore.DPTextNoise(1.0, "keep"), pair, trials=10**4, rng=2)
    drawn = [int(np.isnan(report.outputs(side, 0, 10**4)).sum()) for side in SIDES]
    assert drawn == [report.nan, report.nan_prime]
    assert len({0, *drawn}) == 3


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


@pytest.mark.parametrize("mechanism", EVERY_NATIVE, ids=repr)
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
    mechanism=st.sampled_from(EVERY_NATIVE),
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
        drawn = dpcore.sample(Laplace(1.0), [0.0, 1.0], 300_000, rng=seed)
        return audit(LaplaceMechanism(1.0), trials=200_000, rng=seed).counts, drawn.tobytes()

    seeds = [1, 2, 3, 4] * 2
    with ThreadPoolExecutor(4) as pool:
        counted = list(pool.map(one, seeds))
    assert counted == [one(seed) for seed in seeds]


# A native mechanism and a Python function are audited in the same way.


LEVEL = 1e-6


def clipped(x, clip):
    if clip is None:
        return x
    return x * min(1.0, clip.radius / np.linalg.norm(x, 1 if clip.norm == "l1" else 2))


def faulty(size, scale, rng):
    with np.errstate(invalid="ignore"):
        u = rng.random(size)
        noise = -scale * np.sign(u) * np.log(1.0 - 2.0 * u)
    return np.where(np.isnan(noise), 0.0, noise)


def twin(system):
    """The same system in numpy, a plain function that claims nothing."""

    def mechanism(x, size, rng):
        steps = system.steps(x.size)
        shape = (size, x.size)
        if isinstance(steps.noise, Laplace):
            noise = rng.laplace(0.0, steps.noise.scale, shape)
        else:
            noise = faulty(shape, steps.noise.scale, rng)
        return (clipped(x, steps.clip) + noise) * steps.factor

    return mechanism


def fisher(left, right):
    """Two-sided p-value for equal probabilities behind two counts of n: exact, conditional."""
    k, k_prime, n = left[0], right[0], left[1]
    law = stats.hypergeom(2 * n, k + k_prime, n)
    return min(1.0, 2.0 * min(law.cdf(k), law.sf(k - 1)))


def count_votes(report):
    """Counts of the vote for x': by symmetry a pilot may choose either vote."""
    return report.counts if report.event.vote == "x_prime" else report.counts.complement()


def side_pvalues(one, other):
    a, b = count_votes(one), count_votes(other)
    return fisher((a.k, a.n), (b.k, b.n)), fisher((a.k_prime, a.n_prime), (b.k_prime, b.n_prime))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("dim", [1, 2])
def test_a_numpy_twin_gets_the_same_verdict(system, dim):
    native, trials = system(1.0), 10**5
    pair = native.default_pair(dim)
    one = dpcore.audit(native, pair, trials=trials, rng=1, attack=VOTE)
    other = dpcore.audit(twin(native), pair, trials=trials, rng=2, claim=1.0, attack=VOTE)
    assert (one.route, other.route, one.verdict) == ("integer", "callable", other.verdict)
    seen = dpcore.exact.vote_loss(native, pair)
    assert one.verdict == ("refuted" if seen > 1.05 else "not refuted by this attack")
    assert min(side_pvalues(one, other)) > LEVEL / 36
    # The oracle belongs to what the core runs; it must not vouch for a function.
    assert one.exact == seen
    assert (other.exact, other.own_claim) == (None, None)


def test_a_twin_five_per_cent_off_is_seen():
    """The control of the test above."""
    native = published.LaplaceMechanism(1.0)
    pair = native.default_pair(1)
    one = dpcore.audit(native, pair, trials=10**6, rng=1, attack=VOTE)
    off = twin(published.LaplaceMechanism(1.05))
    other = dpcore.audit(off, pair, trials=10**6, rng=2, claim=1.0, attack=VOTE)
    assert min(side_pvalues(one, other)) < LEVEL / 36


def test_one_thread_is_the_default_for_a_callable():
    names = set()

    def mechanism(x, size, rng):
        names.add(threading.current_thread().name)
        return rng.normal(size=size)

    assert dpcore.audit(mechanism, ([0.0], [1.0]), trials=5000, block=100, rng=1).threads == 1
    assert names == {threading.current_thread().name}


def scalar(x, size, rng):
    return x[0] + rng.laplace(size=size)


def column(x, size, rng):
    return x + rng.laplace(size=(size, 1))


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_number_an_output(attack):
    options = {"trials": 5000, "rng": 4, "attack": attack}
    flat, tall = (dpcore.audit(one, ([0.0], [1.0]), **options) for one in (scalar, column))
    assert flat.shape == ()
    assert tall.shape == (1,)
    # One number an output has blocks of the same size, hence the same draws.
    assert (flat.block, flat.counts) == (tall.block, tall.counts)
    assert flat.outputs("x", 0, 5000).shape == (5000,)
    np.testing.assert_array_equal(flat.outputs("x", 10, 20), tall.outputs("x", 10, 20)[:, 0])


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "i1", "u1", "?", ">f8"])
@pytest.mark.parametrize("attack", [*ATTACKS, lambda a, b, pair: lambda o: o[:, 0] > 0])
def test_outputs_of_other_types(dtype, attack):
    def mechanism(x, size, rng):
        return (rng.random((size, 2)) * 2 + x).astype(dtype)

    report = dpcore.audit(mechanism, ([0, 0], [1, 1]), trials=3000, rng=5, attack=attack, block=99)
    assert report.counts == count_again(report, 3000)
    assert report.outputs("x", 0, 1).dtype == np.dtype(dtype).newbyteorder("=")


def test_outputs_may_be_lists_or_any_shape_for_a_custom_event():
    def words(x, size, rng):
        return [x if rng.random() < 0.75 else "no" for _ in range(size)]

    def attack(outputs, outputs_prime, pair):
        return lambda outputs: outputs == pair.x

    report = dpcore.audit(words, ("yes", "no"), trials=2000, rng=6, attack=attack)
    assert report.counts.k_prime == 0
    assert stats.binomtest(report.counts.k, 2000, 0.75).pvalue > LEVEL
    assert (report.direction, report.nan) == ("x", 0)

    def images(x, size, rng):
        return rng.normal(x.sum(), 1.0, (size, 3, 4))

    bright = lambda a, b, pair: lambda o: o.mean(axis=(1, 2)) > 2.0  # noqa: E731
    report = dpcore.audit(images, (np.zeros((2, 2)), np.ones((2, 2))), trials=500, attack=bright)
    assert (report.shape, report.elements) == ((3, 4), 12)
    assert report.epsilon_lower > 1


def returning(value):
    def broken(x, size, rng):
        return value(x, size, rng)

    return broken


class Unreachable:
    """A tensor on a device that numpy does not reach."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the host first")


def transpose_later(x, n, r):
    return np.zeros((2, n)).T if n == 2 else np.zeros((2, n))


NAME = r"outputs of test_audit\.returning\.<locals>\.broken must be "


@pytest.mark.parametrize(("value", "kind", "text"), [
    (lambda x, n, r: 1.0, ValueError, r"an array with 2 rows, one per output, got \(\)"),
    (lambda x, n, r: None, ValueError, r"an array with 2 rows, one per output, got \(\)"),
    (lambda x, n, r: np.zeros((n + 1, 2)), ValueError, r"an array with 2 rows.* got \(3, 2\)"),
    (transpose_later, ValueError, r"an array with \d+ rows, one per output, got \(2, \d+\)"),
    (lambda x, n, r: np.zeros((n, n)), ValueError, r"of shape \((\d+), 2\) in .*\(\1, \1\)"),
    (lambda x, n, r: Unreachable(), TypeError, "an array, got"),
])  # fmt: skip
@pytest.mark.parametrize("attack", ATTACKS)
def test_wrong_outputs_are_named(value, kind, text, attack):
    mechanism, pair = returning(value), dpcore.pairs.zeros_ones(2)
    with pytest.raises(kind, match=f"^{NAME}{text}"):
        dpcore.audit(mechanism, pair, trials=10_000, rng=1, attack=attack)


@pytest.mark.parametrize(("value", "kind", "text"), [
    (lambda x, n, r: np.zeros(n), ValueError, r"of shape \(size, 2\), got \(\d+,\)"),
    (lambda x, n, r: np.zeros((n, 3)), ValueError, r"of shape \(size, 2\), got \(\d+, 3\)"),
    (lambda x, n, r: np.zeros((n, 1, 2)), ValueError, r"of shape \(size, 2\), got"),
    (lambda x, n, r: np.zeros((n, 2)) + 0j, TypeError, r"real numbers, got dtype\('compl"),
    (lambda x, n, r: np.full((n, 2), "a"), TypeError, "real numbers, got dtype"),
    (lambda x, n, r: np.full((n, 2), None), TypeError, r"real numbers, got dtype\('O'\)"),
])  # fmt: skip
def test_outputs_that_cannot_vote_are_named(value, kind, text):
    """A vote needs one number for each entry of the pair; the default attack takes them all."""
    pair, mechanism = dpcore.pairs.zeros_ones(2), returning(value)
    with pytest.raises(kind, match=f"^{NAME}{text}"):
        dpcore.audit(mechanism, pair, trials=10_000, rng=1, attack=VOTE)
    report = dpcore.audit(mechanism, pair, trials=10_000, rng=1, claim=0.0)
    # All these outputs are the same on both sides.
    assert report.epsilon_lower == 0.0


class Boom(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", [1, 2, 5, 9])
def test_what_a_callable_raises_passes_through(threads, call):
    calls, lock = [], threading.Lock()
    error = Boom("mine")

    def mechanism(x, size, rng):
        with lock:
            calls.append(size)
            if len(calls) >= call:
                raise error
        return rng.normal(size=(size, 1))

    with pytest.raises(Boom) as caught:
        dpcore.audit(mechanism, ([0.0], [1.0]), trials=2000, block=100, threads=threads)
    assert caught.value is error
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("where", ["attack", "event"])
def test_what_an_attack_or_event_raises_passes_through(where):
    def event(outputs):
        raise Boom("event")

    def attack(outputs, outputs_prime, pair):
        if where == "attack":
            raise Boom("attack")
        return event

    for mechanism in (Laplace(1.0), column):
        with pytest.raises(Boom, match=where):
            dpcore.audit(mechanism, ([0.0], [1.0]), trials=100, attack=attack)


def test_a_subclass_is_audited_by_its_own_call():
    class Silent(Laplace):
        """Says Laplace, adds nothing."""

        def __call__(self, x, size, rng=None):
            return np.tile(x, (size, 1))

    report = dpcore.audit(Silent(1.0), trials=10_000, claim=1.0, rng=1, attack=VOTE)
    assert (report.route, report.epsilon_hat, report.verdict) == ("callable", math.inf, "refuted")
    assert report.exact is None
    assert report.name.endswith("Silent")

    class Quieter(published.DPText):
        """Inherits the native call, but describes other steps: those are audited."""

        def steps(self, dim):
            return Formula(Laplace(10.0 * self.sensitivity / self.epsilon))

    report = dpcore.audit(Quieter(1.0), trials=10_000, rng=1, attack=VOTE)
    assert (report.route, report.verdict) == ("callable", "not refuted by this attack")
    assert report.epsilon_hat < 0.3
    for mechanism, verdict in ((Quieter, report.verdict), (published.DPText, "refuted")):
        for attack in ATTACKS:
            again = dpcore.audit(mechanism(1.0), trials=10_000, rng=1, attack=attack)
            assert again.verdict == verdict

    class Renamed(Laplace):
        """Inherits everything: a subclass of a noise is not taken for the noise."""

    with pytest.raises(TypeError, match=r"^noise must be one of dpcore's primitives, got "):
        dpcore.audit(Renamed(1.0), trials=100)


def test_an_object_with_a_claim_and_a_pair_of_its_own():
    class Mine:
        claim = 0.5

        def default_pair(self):
            return Pair([0.0, 0.0], [3.0, 3.0])

        def __call__(self, x, size, rng):
            return x + rng.laplace(size=(size, 2))

    report = dpcore.audit(Mine(), trials=10_000, rng=1)
    assert report.claim == report.own_claim == 0.5
    assert (report.pair, report.verdict) == (Mine().default_pair(), "refuted")

    class Metric(Mine):
        norm, sensitivity = "l1", 1.0

    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0, got 6.0"):
        dpcore.audit(Metric(), trials=1000)

    class Vague(Mine):
        norm = "l1"  # but nothing that says how far neighbours are apart

    assert dpcore.audit(Vague(), trials=1000).claim == 0.5


# The table of audits that the Rust tests read (tests/rust/audit.rs) is what Python finds today.


SCRIPT = Path(__file__).parents[1] / "reference" / "make_audits.py"
SPEC = importlib.util.spec_from_file_location("make_audits", SCRIPT)
make_audits = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_audits)
HEAD, *ROWS = make_audits.FILE.read_text().splitlines()


def test_the_table_has_every_case():
    assert (make_audits.HEAD, len(make_audits.CASES)) == (HEAD, len(ROWS))


@pytest.mark.parametrize(("case", "row"), list(zip(make_audits.CASES, ROWS, strict=True)))
def test_counts_choices_and_bounds_are_those_of_the_table(case, row):
    assert make_audits.audited(case) == row


@pytest.mark.sweep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sizes are read from /proc")
def test_many_audits_in_one_process_hold_nothing_back(tmp_path):
    def read_sizes():
        status = Path("/proc/self/status").read_text()
        memory, threads = (
            int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads")
        )
        return memory, threads, len(os.listdir("/proc/self/fd"))

    def add_noise(x, size, rng):
        return x + rng.laplace(size=(size, len(x)))

    sizes = []
    with ThreadPoolExecutor(2) as pool:
        for number in range(2_000):
            about = {"trials": 1_000, "claim": 1.0, "rng": number, "progress": False}
            if number % 4 == 0:
                about["checkpoint"] = tmp_path / f"{number}.json"
            if number % 4 == 1:
                about["executor"] = pool
            mechanism = dpcore.Laplace(1.0) if number % 4 == 2 else add_noise
            report = dpcore.audit(mechanism, ([0.0], [1.0]), **about)
            assert len(report.to_html()) > 0 if number % 100 == 0 else report.trials == 1_000
            if number in (200, 1_999):
                gc.collect()
                sizes.append(read_sizes())
    assert sizes[0][1:] == sizes[1][1:]
    assert sizes[1][0] - sizes[0][0] < 20_000, "in kB"
