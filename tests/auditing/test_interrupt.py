"""Ctrl-C: simulated at every line of the counting loop, and a real one in a subprocess."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from shared_audits import count_again, noisy
from shared_resumed import cut_after

import dpcore
from dpcore import Audit, Counts, Laplace, Pair, audit, progress, published
from dpcore.attacks import MajorityVote, Threshold
from dpcore.auditing import early_stop
from dpcore.auditing.run import finish_counting_event
from dpcore.sampling import driver
from dpcore.streams import COUNT, PILOT

MECHANISMS = {"native": Laplace(1.0), "callable": noisy}
BLOCK, TRIALS, SIDES = 100, 550, ("x", "x_prime")


@pytest.fixture(autouse=True)
def _long_after_any_other(monkeypatch):
    monkeypatch.setattr(progress, "_last_interrupt", -1e9)


def run(kind, **change):
    """By default with the vote, whose pilot is counted too, in one call."""
    arguments = {"trials": TRIALS, "block": BLOCK, "rng": 1, "claim": 1.0, "threads": 1}
    arguments |= {"attack": MajorityVote()} | change
    return audit(MECHANISMS[kind], Pair([0.0], [1.0]), **arguments)


def check(report, whole, done):
    """A partial audit is the whole one, cut off."""
    assert report.counts.n == report.counts.n_prime == done
    hits = [int(whole.event(whole.outputs(side, 0, TRIALS)[:done]).sum()) for side in SIDES]
    assert (report.counts, report.ranges) == (Counts(hits[0], done, hits[1], done), ((0, done),))
    assert report.end == TRIALS
    assert report.partial is (done < TRIALS)
    # The end was not fixed in advance: only a bound that holds at every end may be certified.
    if report.partial:
        assert (report.bound, report.stop) == ("anytime", "interrupted")
        anytime = dpcore.bounds.anytime(report.bound_counts, 0.0, report.confidence)
        assert report.epsilon_lower == anytime
        assert anytime <= dpcore.bounds.clopper_pearson(report.bound_counts, 0.0, 0.95)
    else:
        assert (report.bound, report.stop) == ("clopper_pearson", "fixed")


def run_interrupted(slices, kind, **change):
    """Audit until so many shards were counted, and once without an interrupt."""
    whole = run(kind, **change)
    with cut_after(slices):
        report = run(kind, **change)
    check(report, whole, BLOCK * slices)
    return report, whole


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("slices", [1, 2, 5])
def test_what_both_sides_have_counted_is_kept(kind, slices):
    report, whole = run_interrupted(slices, kind)
    assert report.partial
    assert "interrupted: only the trials shown were counted" in str(report)
    assert Audit.from_json(report.to_json()).partial
    # What was counted can be drawn again, and the rest added later.
    assert int(report.event(report.outputs("x", 0, report.trials)).sum()) == report.counts.k
    rest = run(kind, start=report.trials, trials=TRIALS - report.trials)
    rest = replace(rest, event=report.event, direction=report.direction)
    for both in (report + rest, rest + report):
        assert (both.ranges, both.counts) == (whole.ranges, report.counts + rest.counts)
        # What was added after an interrupt was added after it: the bound stays.
        assert both.partial
        assert (both.bound, both.stop) == ("anytime", "interrupted")


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("slices", [1, 4])
def test_of_the_default_attack_too(kind, slices):
    """Its pilot is drawn, not counted."""
    report, whole = run_interrupted(slices, kind, attack=None)
    assert report.event == whole.event
    # What rests on a number fixed in advance is not kept.
    assert whole.curve is not None
    assert (report.curve, report.floating_point) == (None, None)


def test_pooled_coordinates_of_an_interrupted_audit_are_not_used():
    """Their bound is one for numbers that were fixed in advance."""
    coordinatewise = dpcore.attacks.Coordinatewise()
    arguments = {"attack": coordinatewise, "trials": 1000, "block": 100, "threads": 1}
    with cut_after(3):
        report = audit(Laplace(1.0), dpcore.pairs.zeros_ones(3), claim=1.0, rng=1, **arguments)
    assert (report.trials, report.pooled, report.bound) == (300, (), "anytime")
    assert report.counts == count_again(report, 300)
    assert report.epsilon_lower == dpcore.bounds.anytime(report.bound_counts, 0.0, 0.95)


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("purpose", [PILOT, COUNT])
def test_before_both_sides_have_counted_it_propagates(kind, purpose):
    with cut_after(0, purpose), pytest.raises(KeyboardInterrupt):
        run(kind)


@pytest.mark.parametrize(("pause", "raises"), [(0.1, True), (1.9, True), (2.1, False)])
def test_a_second_one_within_two_seconds_raises(monkeypatch, pause, raises):
    """In a loop of audits the first is kept, the second ends the loop."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with cut_after(2):
        assert run("native").partial
    now[0] += pause
    with cut_after(2), pytest.raises(KeyboardInterrupt) if raises else nullcontext():
        assert run("native").partial


def interrupted_at_every_line(monkeypatch, codes, work):
    """What the work returns (None where it raises) if one line after the other is interrupted."""
    line = 0

    def tracer(frame, what, argument):
        if frame.f_code not in codes:
            return None

        def local(frame, what, argument):
            nonlocal seen
            if what == "line":
                seen += 1
                if seen == line:
                    raise KeyboardInterrupt
            return local

        return local

    while True:
        line, seen = line + 1, 0
        monkeypatch.setattr(progress, "_last_interrupt", -1e9)
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            report = work()
        except KeyboardInterrupt:
            report = None
        finally:
            sys.settrace(before)
        if seen < line:
            return  # there is no such line: every one was tried
        yield report


@pytest.mark.parametrize("kind", MECHANISMS)
def test_an_interrupt_at_any_line_leaves_equal_counts(monkeypatch, kind):
    """Python may raise between any two lines of the loop: sums and sizes must stay together."""
    monkeypatch.setattr(driver.Pace, "shard_trials", lambda *given: given[3])
    whole = run(kind)
    codes = {
        function.__code__
        for function in (finish_counting_event, driver.run_shards, driver.Done.add_shard)
    }
    outcomes = list(interrupted_at_every_line(monkeypatch, codes, lambda: run(kind)))
    kept = [report for report in outcomes if report is not None]
    for report in kept:
        check(report, whole, report.trials)
    assert {report.trials for report in kept} == {*range(BLOCK, TRIALS, BLOCK), TRIALS}
    assert len(outcomes) > 30


# Early stop.


def sparse(x, size, rng):
    """Some entries are NaN."""
    drawn = x + rng.laplace(size=(size, 1))
    return np.where(rng.random((size, 1)) < 0.1, np.nan, drawn)


def run_early():
    arguments = {"trials": 400, "block": BLOCK, "rng": 1, "claim": 9.0, "stop": "refuted"}
    return audit(sparse, Pair([0.0], [1.0]), attack=Threshold("coordinate"), **arguments)


def test_an_interrupt_at_any_line_of_early_stop_leaves_whole_slices(monkeypatch):
    whole = run_early()
    assert (whole.trials, whole.partial) == (400, False)
    codes = {
        getattr(early_stop.SequentialAudit, name).__code__ for name in ("run", "_count", "_keep")
    }
    outcomes = list(interrupted_at_every_line(monkeypatch, codes, run_early))
    kept = [report for report in outcomes if report is not None]
    for report in kept:
        assert report.slices == whole.slices[: len(report.slices)]
        assert report.counts.n == report.counts.n_prime == report.ranges[0][1]
        assert sum(piece.counts.n for piece in report.slices) == report.trials
        drawn = [report.outputs(side, 0, report.trials) for side in SIDES]
        assert [int(np.isnan(one).sum()) for one in drawn] == [report.nan, report.nan_prime]
        assert (report.bound, report.stop) == ("anytime", "refuted")
    assert {report.trials for report in kept} == set(range(BLOCK, 401, BLOCK))
    partial = next(report for report in kept if report.partial)
    assert replace(Audit.from_json(partial.to_json()), mechanism=sparse) == partial
    assert len(outcomes) > 30


def test_a_second_interrupt_ends_a_loop_of_audits_with_early_stop(monkeypatch):
    original, made = early_stop.SequentialAudit._count, []

    def count(self, *arguments):
        made.append(arguments)
        if len(made) % 3 == 0:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(early_stop.SequentialAudit, "_count", count)
    first = run_early()
    assert first.partial
    assert first.trials == 2 * BLOCK
    with pytest.raises(KeyboardInterrupt):
        run_early()


def above_half(outputs):
    return outputs[:, 0] > 0.5


def test_merged_partial_audits_draw_what_was_counted():
    """The second part ends within the block in which the first was meant to end."""

    def columns(x, size, rng):
        return x + rng.laplace(size=(2, size)).sum(axis=0)[:, None]

    def attack(outputs, outputs_prime, pair):
        return above_half

    pair, arguments = Pair([0.0], [1.0]), {"block": BLOCK, "rng": 1, "attack": attack}
    with cut_after(1):
        first = audit(columns, pair, trials=199, **arguments)
    assert first.ranges == ((0, BLOCK),)
    second = audit(columns, pair, trials=49, start=BLOCK, **arguments)
    both = first + second
    assert both.ranges == ((0, 149),)
    for side, k in (("x", both.counts.k), ("x_prime", both.counts.k_prime)):
        assert int(both.event(both.outputs(side, 0, 149)).sum()) == k
        np.testing.assert_array_equal(*(one.outputs(side, BLOCK, 49) for one in (both, second)))


# A real SIGINT.

HEAD = """
import os, signal, threading, time
import numpy as np
import scipy.special  # not within what is measured: seconds of the processor
import dpcore
VOTE = dpcore.attacks.MajorityVote()
# Whoever ignores it hands that on to all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
def later(seconds):
    def send():
        time.sleep(seconds)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
sent = []
"""


def read_printed(code):
    """Run code that is interrupted in a process, and return the words that it prints."""
    command = [sys.executable, "-c", HEAD + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("mechanism", "options"), [
    ("dpcore.Laplace(1.0)", "trials=10**15, attack=VOTE, route='integer'"),
    ("dpcore.Laplace(1.0)", "trials=10**15, attack=VOTE, route='sampled'"),
    ("dpcore.Laplace(1.0)", "trials=10**15"),
    ("slow", "trials=10**5, attack=VOTE, block=100, threads=1"),
    ("slow", "trials=10**5, attack=VOTE, block=100, threads=2"),
])  # fmt: skip
def test_a_real_interrupt_of_a_count(mechanism, options):
    printed = read_printed(f"""
def slow(x, size, rng):
    time.sleep(0.002)
    return x + rng.laplace(size=(size, len(x)))
given = dict(pair=dpcore.pairs.zeros_ones(3), claim=1.0, rng=1, pilot=500, {options})
dpcore.audit({mechanism}, **given | dict(trials=100))
later(2.0)
report = dpcore.audit({mechanism}, **given)
waited = time.process_time() - sent[0]
c = report.counts
print(report.partial, c.n == c.n_prime > 0, c.n % report.block == 0, waited < 2.0)
print(len(dpcore.sample(dpcore.Laplace(1.0), [0.0], 10**6)))
""")
    assert printed == ["True", "True", "True", "True", "1000000"]


ONE_SHARD = """
from dpcore.sampling import driver
driver.Pace.shard_trials = lambda pace, left, workers, block, travels: (left // block + 1) * block
"""
COUNT_OF_HOURS = "dpcore.audit(dpcore.Gaussian(1.0), trials=10**14, attack=VOTE"
PILOT_OF_HOURS = "dpcore.audit(dpcore.Laplace(1.0), trials=10**13, pilot=10**12, threads="
# Pages that nobody writes cost nothing.
MANY_OUTPUTS = "out = np.empty((2**29, 1), np.float32)"


@pytest.mark.sweep
@pytest.mark.parametrize(("before", "begun", "call"), [
    (ONE_SHARD, 0.5, f"{COUNT_OF_HOURS})"),
    (ONE_SHARD, 0.5, f"{COUNT_OF_HOURS}, block=2**40)"),
    (ONE_SHARD, 0.5, f"{COUNT_OF_HOURS}, block=2**40, start=10**12)"),
    ("", 2.0, f"{PILOT_OF_HOURS}1)"),
    ("", 2.0, f"{PILOT_OF_HOURS}2)"),
    (MANY_OUTPUTS, 0.2, "dpcore.sample(dpcore.Gaussian(1.0), [0.0], 2**29, out=out, dtype='f4')"),
])  # fmt: skip
def test_a_real_interrupt_of_one_long_call_of_the_core(before, begun, call):
    """One slice, one block, the rows skipped in one, a pilot, or a sample: left at once."""
    printed = read_printed(f"""{before}
later({begun})
try:
    {call}
except KeyboardInterrupt:
    print("raised", time.process_time() - sent[0] < 2.0)
# The pool is sound afterwards.
print(len(dpcore.sample(dpcore.Laplace(1.0), [0.0], 10**6)))
""")
    assert printed == ["raised", "True", "1000000"]


# Forked, spawned and pooled processes: no hang, fresh entropy, the same bits.
#
# Every wait has a hard limit; a child that does not answer is killed and fails its test.


LIMIT = 60.0
SIZE = 600_000
"""Five blocks: enough for the pool's threads to be needed."""

METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]


needs_fork = pytest.mark.skipif("fork" not in METHODS, reason="no fork on this system")


def start(method, target, *arguments):
    """A started process. Python 3.12 and later warn that fork and threads do not mix.

    That is what is tested here: the child must build a thread pool of its own. The warning is
    expected of this one call and silenced for nothing else.
    """
    process = multiprocessing.get_context(method).Process(target=target, args=arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"This process .* is multi-threaded", DeprecationWarning)
        process.start()
    return process


def finish(processes):
    """Wait for all, kill what hangs, and fail if any did."""
    end = time.monotonic() + LIMIT
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
    hung = [process for process in processes if process.is_alive()]
    for process in hung:
        process.kill()
        process.join()
    assert not hung, "a child process hangs"
    assert [process.exitcode for process in processes] == [0] * len(processes)


def collect_answers(method, target, *arguments, count=2):
    """Start processes with a queue, and return what each of them puts into it."""
    answers = multiprocessing.get_context(method).Queue()
    children = [start(method, target, answers, *arguments) for _ in range(count)]
    try:
        return [answers.get(timeout=LIMIT) for _ in children]
    finally:
        finish(children)


def use_the_pool():
    """The parent's pool is built and has run before anything is forked."""
    return dpcore.sample(Laplace(1.0), [0.0], SIZE, rng=1, threads=2)


def audit_and_sample(answers, seed):
    drawn = dpcore.sample(Laplace(1.0), [0.0], SIZE, rng=seed, threads=2)
    report = dpcore.audit(published.HalfNoise(1.0), trials=10**6, rng=seed, threads=2)
    answers.put((drawn.sum(), report))


@pytest.mark.parametrize("method", METHODS)
def test_children_give_the_parents_bits(method):
    drawn = use_the_pool()
    report = dpcore.audit(published.HalfNoise(1.0), trials=10**6, rng=1, threads=2)
    for total, theirs in collect_answers(method, audit_and_sample, 1):
        assert (total, theirs) == (drawn.sum(), report)
        # The record crossed the process boundary whole.
        np.testing.assert_array_equal(theirs.outputs("x", 0, 10), report.outputs("x", 0, 10))
    # The parent's own pool still works.
    assert use_the_pool().tobytes() == drawn.tobytes()


def fresh_seeds(answers):
    first = dpcore.sample(Laplace(1.0), [0.0], 3).tobytes()
    answers.put((first, *(dpcore.audit(Laplace(1.0), trials=100).seed for _ in range(2))))


@pytest.mark.parametrize("method", METHODS)
def test_entropy_is_fresh_in_every_process(method):
    local = queue.Queue()
    fresh_seeds(local)
    found = [local.get(), *collect_answers(method, fresh_seeds)]
    values = [value for answer in found for value in answer]
    assert len(set(values)) == len(values) == 9


def grandchild(answers):
    use_the_pool()
    ((total, _),) = collect_answers("fork", audit_and_sample, 1, count=1)
    answers.put(total)


@needs_fork
def test_a_fork_of_a_fork():
    total = use_the_pool().sum()
    assert collect_answers("fork", grandchild, count=1) == [total]


@needs_fork
def test_a_fork_while_other_threads_sample():
    """Whatever locks the busy pool holds at that moment, the child must not wait for them."""
    expected = use_the_pool().sum()
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            use_the_pool()

    workers = [threading.Thread(target=busy) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        found = collect_answers("fork", audit_and_sample, 1, count=4)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert [total for total, _ in found] == [expected] * 4


def interrupted(answers):
    """Ctrl-C in a child, while its own pool counts or is being built."""
    # Whoever started the tests in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        partial = dpcore.audit(Laplace(1.0), trials=10**15, rng=1, threads=2).partial
    except KeyboardInterrupt:
        partial = True
    answers.put((partial, use_the_pool().sum()))


@needs_fork
def test_a_forked_child_is_interrupted():
    expected = use_the_pool().sum()
    assert collect_answers("fork", interrupted) == [(True, expected)] * 2
