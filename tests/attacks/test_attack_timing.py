"""Timing: fair coins against drift, leaks by latency, and by output and latency together."""

from __future__ import annotations

import gc
import math
import os
import time

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

import dpcore
from dpcore import Audit, Pair
from dpcore.attacks import Timing, timing
from dpcore.attacks.threshold import Coordinate, RowSum
from dpcore.attacks.timing import Latency, pick_latency_and_side
from dpcore.bounds.binomial import conditional
from dpcore.events import Above
from dpcore.records import Counts
from dpcore.sampling.sources import Timed, time_calls, timed_to_rows

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


@pytest.mark.sweep
@pytest.mark.parametrize(("trials", "period"), [(600, 700.0), (300, 300.0)])
def test_drift_alone_raises_no_more_alarms_than_the_confidence_allows(trials, period):
    bounds = [lower(audit(seed, trials, period=period)) for seed in range(200)]
    assert sum(bound > 0.0 for bound in bounds) <= most_alarms(200)
    # The test has something to see: some of these audits came close.
    assert sum(found > 0 for found in bounds) > 0


@pytest.mark.sweep
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


@pytest.mark.sweep
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
    event, direction = pick_latency_and_side(Timed(sides, latencies, [None] * 400), 4000)
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


# Timing of output and latency together, on clocks that move with the work and never with time.


REALS = Pair(0.0, 1.0)
ALPHA = 1e-3
"""Significance of the tests that count false alarms; the seeds are fixed."""
AUDITS = max(60, int(os.environ.get("DPCORE_AUDITS", "0")) // 10)
SCALE = 10.0


class Work:
    """A clock that moves by the work done, with a jitter and a slow drift."""

    def __init__(self, jitter=20.0, drift=40.0):
        self.now, self.jitter, self.drift, self.calls = 0, jitter, drift, 0

    def clock(self):
        return self.now

    def does(self, nanoseconds, rng):
        self.calls += 1
        wave = self.drift * (1.0 + math.sin(self.calls / 500.0))
        self.now += int(nanoseconds + wave + rng.exponential(self.jitter))


def failures(rng):
    return int(rng.geometric(1.0 - math.exp(-1.0 / SCALE))) - 1


def counting(work, step=100):
    """Discrete Laplace noise by counting failures: `step` nanoseconds for each of them."""

    def noise(rng):
        while True:
            size, sign = failures(rng), int(rng.random() < 0.5)
            work.does(step * size, rng)
            if size or sign:
                return size if sign else -size

    return noise


def run_work(mechanism, work, trials=10_000, pair=REALS, rng=1, **more):
    timing = Timing(clock=work.clock, warmup=0)
    return dpcore.audit(mechanism, pair, attack=timing, trials=trials, rng=rng, **more)


def bound_of(k, k_prime, direction, calls):
    """The conditional bound of hits among calls whose side a coin chose."""
    counts = dpcore.Counts(k, calls, k_prime, calls)
    return dpcore.bounds.conditional(counts if direction == "x" else counts.swapped(), sides="coin")


SHAPES = {
    "(1,)": lambda value: np.array([value]), "(1, 1)": lambda value: np.array([[value]]),
    "scalar": float, "numpy scalar": np.float32,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_loop_that_counts_failures_is_found_by_output_and_latency(shape):
    work = Work()
    noise = counting(work)
    found = run_work(lambda x, size, rng: SHAPES[shape](x + noise(rng)), work, claim=0.1)
    assert found.epsilon_lower > 3.0
    assert str(found.event).startswith("latency and output: ")
    assert (found.verdict, found.counts.n, found.counts.n_prime) == ("refuted", 20_000, 20_000)


def test_the_latency_of_that_loop_alone_tells_nothing():
    bounds = []
    for seed in range(5):
        work, rng = Work(), np.random.default_rng(seed)
        noise = counting(work)
        timed = time_calls(lambda x: x + noise(rng), REALS, 8000, rng, work.clock)  # noqa: B023
        pilot = np.arange(8000) < 2000
        event, direction = pick_latency_and_side(timed.select_calls(pilot), 6000)
        fresh = timed.select_calls(~pilot)
        hits = event(fresh.latencies)
        k, k_prime = int((hits & fresh.sides).sum()), int((hits & ~fresh.sides).sum())
        bounds.append(bound_of(k, k_prime, direction, 6000))
    assert np.median(bounds) < 0.05


@pytest.mark.sweep
def test_the_same_noise_in_constant_time_keeps_its_claim():
    # The twin: the same noise, a latency that has nothing to do with it, and drift.
    refuted = 0
    for seed in range(AUDITS):
        work = Work(jitter=300.0, drift=2000.0)
        noise = counting(Work())

        def mechanism(x, size, rng, work=work, noise=noise):
            work.does(500, rng)
            return np.array([x + noise(rng)])

        found = run_work(mechanism, work, trials=300, rng=seed, claim=1.0 / SCALE, confidence=0.9)
        refuted += found.refuted
    assert refuted <= binom.ppf(1.0 - ALPHA, AUDITS, 0.1)


@pytest.mark.sweep
def test_bounds_keep_their_level_where_output_and_latency_leak_apart():
    # A bit with loss 1, and a slow path with loss 0.8 whatever the bit: together 1.8, no more.
    losses = (1.0, 0.8)

    def run(seed, trials):
        work = Work()

        def mechanism(x, size, rng):
            likely = [math.exp(loss * float(x)) / (1.0 + math.exp(loss)) for loss in losses]
            bit, slow = rng.random(2) < likely
            work.does(5000 * int(slow), rng)
            return np.array([int(bit)])

        found = run_work(
            mechanism, work, trials=trials, rng=seed, claim=sum(losses), confidence=0.9
        )
        return found.epsilon_lower

    bounds = [run(seed, 400) for seed in range(AUDITS)]
    assert sum(bound > sum(losses) for bound in bounds) <= binom.ppf(1.0 - ALPHA, AUDITS, 0.1)
    # Neither of the two alone could certify as much as both together do.
    assert max(losses) < run(1, 5000) < sum(losses)


def test_strings_have_usual_latencies_too():
    def release(work, step):
        def mechanism(x, size, rng):
            count = failures(rng)
            work.does(step * count, rng)
            return np.array(["even" if (count + int(x)) % 2 == 0 else "odd"])

        return mechanism

    work = Work()
    assert run_work(release(work, 100), work, claim=0.1).epsilon_lower > 3.0
    # The twin takes the same time for every count: what is left is the output's own loss, 0.1.
    work = Work()
    assert run_work(release(work, 0), work, claim=0.15, rng=2).refuted is False


def test_a_vector_of_loops_is_known_by_its_distance():
    pair = Pair(np.zeros(3), np.ones(3))

    def mechanism(x, size, rng):
        return (x + np.array([noise(rng) for _ in range(3)]))[np.newaxis]

    work = Work()
    noise = counting(work)
    assert run_work(mechanism, work, pair=pair, claim=0.3).epsilon_lower > 2.0
    work = Work()
    noise = counting(work, step=0)
    assert run_work(mechanism, work, pair=pair, claim=0.35).refuted is False


def test_a_buffer_that_is_filled_again_is_copied():
    def run(copied):
        work, buffer = Work(), np.empty((1, 1))
        noise = counting(work)

        def mechanism(x, size, rng):
            buffer[0, 0] = x + noise(rng)
            return buffer.copy() if copied else buffer

        return run_work(mechanism, work, trials=2000, claim=0.1)

    assert run(copied=False).counts == run(copied=True).counts


def test_outputs_that_never_repeat_are_named():
    def run(output):
        work = Work()

        def mechanism(x, size, rng):
            work.does(500 + 5000 * int(x), rng)
            return output(rng)

        return run_work(mechanism, work, trials=500, claim=0.1)

    for output in (lambda rng: [str(rng.random())], lambda rng: [{"a": 1}]):
        found = run(output)
        assert all("latency alone" in text for text in (found.notes[0], str(found)))
        assert found.epsilon_lower > 2.0
    # The twin: strings that repeat are read.
    assert run(lambda rng: [str(rng.integers(3))]).notes == ()


def test_an_output_that_is_no_number_among_numbers_is_on_neither_side():
    timed = Timed(np.ones(3, bool), np.array([5, 6, 7]), [np.array([1.5]), None, "x"])
    rows = timed.to_output_latency_rows(timed_to_rows([np.array([1.5])], np.array([5]), None))
    assert rows[:, 1].tolist() == [5.0, 6.0, 7.0]
    assert np.isnan(rows[:, 0]).tolist() == [False, True, True]
    # The control: without a pilot of numbers they are objects, compared whole.
    assert timed.to_output_latency_rows().dtype == object


def test_the_record_survives_json_and_reads_well():
    work = Work()
    noise = counting(work)
    found = run_work(lambda x, size, rng: np.array([x + noise(rng)]), work, trials=3000, claim=0.1)
    again = Audit.from_json(found.to_json())
    assert (again.event, again.epsilon_lower) == (found.event, found.epsilon_lower)
    assert f"witness      {found.event}" in str(again)
    rows = np.array([[0.0, 900.0], [3.0, 1200.0]])
    assert again.event(rows).tolist() == found.event(rows).tolist()
    assert "object at 0x" not in str(found.attack)
    assert found.attack.startswith("Timing(clock=Work.clock")


def test_a_score_says_what_it_looks_at():
    entry, far = timing.OutputEntry(0), timing.OutputDistance("x", [0.0])
    columns = entry, Latency(), timing.ExcessLatency("x", far, [0.0, 1.0], [100.0, 200.0])
    scores = *map(Coordinate, range(3)), RowSum()
    assert [str(timing.TimedScore(columns, score)) for score in scores] == [
        "output alone: entry 0 of the output",
        "latency in ns",
        "latency and output: latency in ns less the usual one on x at the output's distance from x",
        "latency and output: sum of the entries of entry 0 of the output, latency in ns, "
        "its excess over the usual one on either side at the output's distance",
    ]
    many = timing.TimedScore((*map(timing.OutputEntry, range(9)), Latency()), RowSum())
    assert str(many).endswith("of entry 0 of the output, ..., latency in ns")
    assert repr(Timing(clock=Work().clock, warmup=3)) == "Timing(clock=Work.clock, warmup=3)"


def test_columns_of_timed_rows():
    rows = np.array([[1.0, -2.0, 500.0], [4.0, 0.0, 900.0]])
    assert timing.OutputEntry(1)(rows).tolist() == [-2.0, 0.0]
    assert timing.OutputDistance("x", [0.0, 0.0])(rows).tolist() == [3.0, 4.0]
    assert timing.OutputGroup(timing.OutputEntry(0), [2.0])(rows).tolist() == [0.0, 1.0]
    excess = timing.ExcessLatency("x", timing.OutputEntry(0), [1.0, 3.0], [100.0, 300.0])
    assert excess(rows).tolist() == [400.0, 600.0]
    assert str(excess) == "latency in ns less the usual one on x at entry 0 of the output"
    objects = timed_to_rows(["a", "b", "c"], np.array([1, 2, 3]), None)
    assert timing.OutcomeCode(("b", "a"))(objects).tolist() == [1.0, 0.0, -1.0]
    assert Latency()(objects).tolist() == [1.0, 2.0, 3.0]


def test_the_pilot_meets_the_same_drift_as_the_counted_calls():
    # The clock slows down to half its pace half way: a threshold from the first calls would fail.
    def run(seed):
        work = Work(drift=0.0)

        def call(x):
            work.does((400 if work.calls < 2000 else 800) * (1.0 + 0.2 * x), rng)
            return 0

        rng = np.random.default_rng(seed)
        found = Timing(work.clock, warmup=0).timed_counts(call, REALS, 3000, rng, pilot=1000)
        return bound_of(found.k, found.k_prime, found.direction, 3000)

    assert np.median([run(seed) for seed in range(5)]) > 3.0
