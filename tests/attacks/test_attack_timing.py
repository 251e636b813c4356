"""Timing: fair coins against drift, a leak that is found, a clock that no machine can disturb."""

from __future__ import annotations

import gc
import math
import time

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from dpcore.attacks.timing import Latency, Timing, choose_latency
from dpcore.bounds.binomial import conditional
from dpcore.events import Above
from dpcore.records import Counts, Pair
from dpcore.sampling.sources import Timed, time_calls

ALPHA = 1e-3
"""Significance of the tests that count false alarms; the seeds are fixed."""

PAIR = Pair(0, 1)
CONFIDENCE = 0.95


class Machine:
    """A clock that moves when a call is made: drift, noise and a cost of the input.

    The drift is a slow wave with a random phase, far larger than the noise, and it never looks at
    the input. The output tells nothing, unless it is to be the input itself.
    """

    def __init__(self, seed, leak=0, period=700.0, drift=4000.0, echo=False):
        self.echo = echo
        self.rng = np.random.default_rng(seed)
        self.now = self.calls = 0
        self.leak, self.period, self.drift = leak, period, drift
        self.phase = self.rng.random()

    def clock(self):
        return self.now

    def __call__(self, value):
        wave = 1.0 + math.sin(2.0 * math.pi * (self.calls / self.period + self.phase))
        self.calls += 1
        self.now += 500 + int(self.drift * wave) + int(self.rng.exponential(300.0))
        self.now += self.leak * value
        return value if self.echo else 0


class Blocks(np.random.Generator):
    """A coin that is not fair: all calls on one side, then all on the other."""

    def random(self, *args, **fields):
        return np.sort(super().random(*args, **fields))


def lower(found, confidence=CONFIDENCE):
    """The conditional bound of the module's theorem, from its formula."""
    k, k_prime = (found.k, found.k_prime)[:: 1 if found.direction == "x" else -1]
    if k == 0:
        return 0.0
    share = betaincinv(k, k_prime + 1, 1.0 - confidence)
    own = max(0.0, math.log(share / (1.0 - share)))
    calls = found.n + found.n_prime
    bound = conditional(Counts(k, calls, k_prime, calls), 0.0, confidence, sides="coin")
    assert bound == pytest.approx(own, abs=1e-6)
    return own


def audit(seed, trials=600, rng=None, **fields):
    machine = Machine(seed, **fields)
    rng = np.random.default_rng(seed + 1000) if rng is None else rng
    return Timing(machine.clock, warmup=0).timed_counts(machine, PAIR, trials, rng, pilot=300)


def most_alarms(audits):
    return int(binom.ppf(1.0 - ALPHA, audits, 1.0 - CONFIDENCE))


@pytest.mark.parametrize(("trials", "period"), [(600, 700.0), (300, 300.0)])
def test_drift_alone_raises_no_more_alarms_than_the_confidence_allows(trials, period):
    bounds = [lower(audit(seed, trials, period=period)) for seed in range(200)]
    assert sum(bound > 0.0 for bound in bounds) <= most_alarms(200)
    # The test has something to see: some of these audits came close.
    assert sum(found > 0 for found in bounds) > 0


def test_the_same_drift_in_blocks_looks_like_a_leak():
    # The control: nothing but the coin is changed, and the alarms are counted alike. One wave in
    # all calls, the pilot's included: each side has half of it.
    rngs = [Blocks(np.random.PCG64(seed)) for seed in range(200)]
    bounds = [lower(audit(seed, 300, rng, period=600.0)) for seed, rng in enumerate(rngs)]
    assert sum(bound > 0.0 for bound in bounds) > 100 > most_alarms(200)
    assert max(bounds) > 2.0


@pytest.mark.parametrize(("leak", "least"), [(20_000, 3.0), (1_500, 0.25)])
def test_a_leak_is_found(leak, least):
    assert min(lower(audit(seed, trials=2000, leak=leak)) for seed in range(5)) > least


def test_the_alarms_keep_their_level_for_a_true_loss():
    # The slow event has probability e^epsilon/10 on x' and 1/10 on x: the loss is epsilon.
    epsilon, audits = 1.0, 200

    def run(seed):
        rng, machine = np.random.default_rng(seed), Machine(seed, drift=0.0)

        def call(value):
            machine(value)
            machine.now += 10_000 * int(rng.random() < math.exp(epsilon * value) / 10.0)

        toss = np.random.default_rng(seed + 5000)
        return Timing(machine.clock).timed_counts(call, PAIR, 400, toss, pilot=200)

    found = [run(seed) for seed in range(audits)]
    bounds = [lower(one) for one in found]
    assert sum(bound > epsilon for bound in bounds) <= most_alarms(audits)
    assert np.median(bounds) > 0.2
    # The control: the point estimate in place of the bound overclaims about every other time.
    estimates = [abs(math.log(max(one.k, 0.5) / max(one.k_prime, 0.5))) for one in found]
    assert sum(estimate > epsilon for estimate in estimates) > most_alarms(audits)


def test_every_side_is_tossed_and_every_latency_belongs_to_its_call():
    machine = Machine(1, leak=50_000, drift=0.0, echo=True)
    timed = time_calls(machine, PAIR, 4000, np.random.default_rng(3), machine.clock)
    assert timed.outputs == [0 if side else 1 for side in timed.sides]
    assert ((timed.latencies > 50_000) == ~timed.sides).all()
    # A fair coin: within 4 standard deviations in number and in runs.
    for coin in (timed.sides, timed.sides[1:] != timed.sides[:-1]):
        assert abs(int(coin.sum()) - 2000) < 4 * math.sqrt(1000)


def test_the_counts_are_those_of_the_counted_calls_only():
    machine = Machine(1, leak=50_000, drift=0.0)
    rng = np.random.default_rng(4)
    found = Timing(machine.clock, warmup=7).timed_counts(machine, PAIR, 500, rng, pilot=200)
    assert (machine.calls, found.n + found.n_prime, found.pilot) == (7 + 200 + 500, 500, 200)
    # The leak is larger than everything else: all of one side hits, none of the other.
    slow = found.event.side == "above"
    assert (found.k, found.k_prime) == ((0, found.n_prime) if slow else (found.n, 0))
    assert found.direction == ("x_prime" if slow else "x")


def test_pilot_and_warm_up_have_their_usual_sizes():
    machine = Machine(1)
    found = Timing(machine.clock).timed_counts(machine, PAIR, 1000, np.random.default_rng(4))
    assert (machine.calls, found.pilot) == (100 + 250 + 1000, 250)


def test_k_belongs_to_x_in_either_direction():
    for leak in (30_000, -450):
        machine = Machine(2, leak=leak, drift=0.0)
        found = Timing(machine.clock).timed_counts(machine, PAIR, 400, np.random.default_rng(1))
        k, k_prime = found.k / found.n, found.k_prime / found.n_prime
        assert (k > k_prime) == (found.direction == "x")


@pytest.mark.parametrize("slow", [True, False])
def test_the_pilot_chooses_the_telling_side(slow):
    sides = np.arange(400) % 2 == 0
    latencies = np.random.default_rng(1).integers(1000, 1100, 400)
    # A tenth of the calls on x, and none on x', leaves the common range on one side of it.
    odd = np.flatnonzero(sides)[::10]
    latencies[odd] += 500 if slow else -500
    event, direction = choose_latency(Timed(sides, latencies, [None] * 400), 4000)
    assert (direction, event.side) == ("x", "above" if slow else "below")
    assert event(latencies).tolist() == np.isin(np.arange(400), odd).tolist()


def test_a_clock_that_stands_still_tells_nothing():
    found = Timing(lambda: 5).timed_counts(lambda x: 0, PAIR, 300, np.random.default_rng(1))
    assert (found.k, found.k_prime) == (found.n, found.n_prime)


def test_the_collector_waits_and_comes_back():
    seen = []
    time_calls(lambda _: seen.append(gc.isenabled()), PAIR, 3, np.random.default_rng(1))
    assert (seen, gc.isenabled()) == ([False] * 3, True)
    with pytest.raises(ZeroDivisionError):
        time_calls(lambda x: 1 // 0, PAIR, 3, np.random.default_rng(1))
    assert gc.isenabled()
    gc.disable()
    try:
        time_calls(abs, PAIR, 3, np.random.default_rng(1))
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["perf_counter_ns", "process_time_ns", "thread_time_ns"])
def test_real_clocks_give_nanoseconds(name):
    timed = time_calls(sum, Pair([1], [2]), 20, np.random.default_rng(1), getattr(time, name))
    assert (timed.latencies.dtype, timed.latencies.min() >= 0) == (np.int64, True)
    rng = np.random.default_rng(1)
    found = Timing(name, 2).timed_counts(sum, Pair([1], [2]), 50, rng, pilot=20)
    assert found.n + found.n_prime == 50


def test_the_score_is_a_record():
    event = Above(Latency(), 3.5)
    assert (event, str(event)) == (Above(Latency(), 3.5), "latency in ns >= 3.5")
    assert event(np.array([3, 4])).tolist() == [False, True]


@pytest.mark.parametrize("clock", [time.time, lambda: "now"])
def test_a_clock_that_counts_no_whole_nanoseconds_is_refused(clock):
    with pytest.raises(TypeError, match=r"^clock must be a function that returns whole nanosec"):
        time_calls(abs, Pair(-1, 1), 3, np.random.default_rng(1), clock)
