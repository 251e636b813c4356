"""Timing of output and latency together, on clocks that move with the work and never with time."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy.stats import binom

import dpcore
from dpcore import Audit, Pair
from dpcore.attacks import Timing, timing
from dpcore.attacks.threshold import Coordinate, RowSum
from dpcore.sampling.sources import Timed, rows_of, time_calls

PAIR = Pair(0.0, 1.0)
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


def audit(mechanism, work, trials=10_000, pair=PAIR, rng=1, **more):
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
    found = audit(lambda x, size, rng: SHAPES[shape](x + noise(rng)), work, claim=0.1)
    assert found.epsilon_lower > 3.0
    assert str(found.event).startswith("latency and output: ")
    assert (found.verdict, found.counts.n, found.counts.n_prime) == ("refuted", 20_000, 20_000)


def test_the_latency_of_that_loop_alone_tells_nothing():
    bounds = []
    for seed in range(5):
        work, rng = Work(), np.random.default_rng(seed)
        noise = counting(work)
        timed = time_calls(lambda x: x + noise(rng), PAIR, 8000, rng, work.clock)  # noqa: B023
        pilot = np.arange(8000) < 2000
        event, direction = timing.choose_latency(timed.select_calls(pilot), 6000)
        fresh = timed.select_calls(~pilot)
        hits = event(fresh.latencies)
        k, k_prime = int((hits & fresh.sides).sum()), int((hits & ~fresh.sides).sum())
        bounds.append(bound_of(k, k_prime, direction, 6000))
    assert np.median(bounds) < 0.05


def test_the_same_noise_in_constant_time_keeps_its_claim():
    # The twin: the same noise, a latency that has nothing to do with it, and drift.
    refuted = 0
    for seed in range(AUDITS):
        work = Work(jitter=300.0, drift=2000.0)
        noise = counting(Work())

        def mechanism(x, size, rng, work=work, noise=noise):
            work.does(500, rng)
            return np.array([x + noise(rng)])

        found = audit(mechanism, work, trials=300, rng=seed, claim=1.0 / SCALE, confidence=0.9)
        refuted += found.refuted
    assert refuted <= binom.ppf(1.0 - ALPHA, AUDITS, 0.1)


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

        found = audit(mechanism, work, trials=trials, rng=seed, claim=sum(losses), confidence=0.9)
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
    assert audit(release(work, 100), work, claim=0.1).epsilon_lower > 3.0
    # The twin takes the same time for every count: what is left is the output's own loss, 0.1.
    work = Work()
    assert audit(release(work, 0), work, claim=0.15, rng=2).refuted is False


def test_a_vector_of_loops_is_known_by_its_distance():
    pair = Pair(np.zeros(3), np.ones(3))

    def mechanism(x, size, rng):
        return (x + np.array([noise(rng) for _ in range(3)]))[np.newaxis]

    work = Work()
    noise = counting(work)
    assert audit(mechanism, work, pair=pair, claim=0.3).epsilon_lower > 2.0
    work = Work()
    noise = counting(work, step=0)
    assert audit(mechanism, work, pair=pair, claim=0.35).refuted is False


def test_a_buffer_that_is_filled_again_is_copied():
    def run(copied):
        work, buffer = Work(), np.empty((1, 1))
        noise = counting(work)

        def mechanism(x, size, rng):
            buffer[0, 0] = x + noise(rng)
            return buffer.copy() if copied else buffer

        return audit(mechanism, work, trials=2000, claim=0.1)

    assert run(copied=False).counts == run(copied=True).counts


def test_outputs_that_never_repeat_are_named():
    def run(output):
        work = Work()

        def mechanism(x, size, rng):
            work.does(500 + 5000 * int(x), rng)
            return output(rng)

        return audit(mechanism, work, trials=500, claim=0.1)

    for output in (lambda rng: [str(rng.random())], lambda rng: [{"a": 1}]):
        found = run(output)
        assert all("latency alone" in text for text in (found.notes[0], str(found)))
        assert found.epsilon_lower > 2.0
    # The twin: strings that repeat are read.
    assert run(lambda rng: [str(rng.integers(3))]).notes == ()


def test_an_output_that_is_no_number_among_numbers_is_on_neither_side():
    timed = Timed(np.ones(3, bool), np.array([5, 6, 7]), [np.array([1.5]), None, "x"])
    rows = timed.to_rows(rows_of([np.array([1.5])], np.array([5]), None))
    assert rows[:, 1].tolist() == [5.0, 6.0, 7.0]
    assert np.isnan(rows[:, 0]).tolist() == [False, True, True]
    # The control: without a pilot of numbers they are objects, compared whole.
    assert timed.to_rows().dtype == object


def test_the_record_survives_json_and_reads_well():
    work = Work()
    noise = counting(work)
    found = audit(lambda x, size, rng: np.array([x + noise(rng)]), work, trials=3000, claim=0.1)
    again = Audit.from_json(found.to_json())
    assert (again.event, again.epsilon_lower) == (found.event, found.epsilon_lower)
    assert f"witness      {found.event}" in str(again)
    rows = np.array([[0.0, 900.0], [3.0, 1200.0]])
    assert again.event(rows).tolist() == found.event(rows).tolist()
    assert "object at 0x" not in str(found.attack)
    assert found.attack.startswith("Timing(clock=Work.clock")


def test_a_score_says_what_it_looks_at():
    entry, far = timing.OutputEntry(0), timing.OutputDistance("x", [0.0])
    columns = entry, timing.Latency(), timing.ExcessLatency("x", far, [0.0, 1.0], [100.0, 200.0])
    scores = *map(Coordinate, range(3)), RowSum()
    assert [str(timing.TimedScore(columns, score)) for score in scores] == [
        "output alone: entry 0 of the output",
        "latency in ns",
        "latency and output: latency in ns less the usual one on x at the output's distance from x",
        "latency and output: sum of the entries of entry 0 of the output, latency in ns, "
        "its excess over the usual one on either side at the output's distance",
    ]
    many = timing.TimedScore((*map(timing.OutputEntry, range(9)), timing.Latency()), RowSum())
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
    objects = rows_of(["a", "b", "c"], np.array([1, 2, 3]), None)
    assert timing.OutcomeCode(("b", "a"))(objects).tolist() == [1.0, 0.0, -1.0]
    assert timing.Latency()(objects).tolist() == [1.0, 2.0, 3.0]


def test_the_pilot_meets_the_same_drift_as_the_counted_calls():
    # The clock slows down to half its pace half way: a threshold from the first calls would fail.
    def run(seed):
        work = Work(drift=0.0)

        def call(x):
            work.does((400 if work.calls < 2000 else 800) * (1.0 + 0.2 * x), rng)
            return 0

        rng = np.random.default_rng(seed)
        found = Timing(work.clock, warmup=0).timed_counts(call, PAIR, 3000, rng, pilot=1000)
        return bound_of(found.k, found.k_prime, found.direction, 3000)

    assert np.median([run(seed) for seed in range(5)]) > 3.0
