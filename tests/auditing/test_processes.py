"""Forked, spawned and pooled processes: no hang, fresh entropy, the same bits.

Every wait has a hard limit; a child that does not answer is killed and fails its test.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import dpcore
from dpcore import Laplace, published

LIMIT = 60.0
SIZE = 600_000
"""Five blocks: enough for the pool's threads to be needed."""

METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]


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


def finish(*processes):
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
    answers = multiprocessing.get_context(method).Queue()
    children = [start(method, audit_and_sample, answers, 1) for _ in range(2)]
    for _ in children:
        total, theirs = answers.get(timeout=LIMIT)
        assert total == drawn.sum()
        assert theirs == report
        # The record crossed the process boundary whole.
        np.testing.assert_array_equal(theirs.outputs("x", 0, 10), report.outputs("x", 0, 10))
    finish(*children)
    # The parent's own pool still works.
    assert use_the_pool().tobytes() == drawn.tobytes()


def fresh_seeds(answers):
    first = dpcore.sample(Laplace(1.0), [0.0], 3).tobytes()
    answers.put((first, *(dpcore.audit(Laplace(1.0), trials=100).seed for _ in range(2))))


@pytest.mark.parametrize("method", METHODS)
def test_entropy_is_fresh_in_every_process(method):
    answers = multiprocessing.get_context(method).Queue()
    local = queue.Queue()
    fresh_seeds(local)
    children = [start(method, fresh_seeds, answers) for _ in range(2)]
    found = [local.get(), *(answers.get(timeout=LIMIT) for _ in children)]
    finish(*children)
    values = [value for answer in found for value in answer]
    assert len(set(values)) == len(values) == 9


def grandchild(answers):
    use_the_pool()
    inner = multiprocessing.get_context("fork").Queue()
    child = start("fork", audit_and_sample, inner, 1)
    total, _ = inner.get(timeout=LIMIT)
    finish(child)
    answers.put(total)


@pytest.mark.skipif("fork" not in METHODS, reason="no fork on this system")
def test_a_fork_of_a_fork():
    total = use_the_pool().sum()
    answers = multiprocessing.get_context("fork").Queue()
    child = start("fork", grandchild, answers)
    assert answers.get(timeout=LIMIT) == total
    finish(child)


@pytest.mark.skipif("fork" not in METHODS, reason="no fork on this system")
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
        answers = multiprocessing.get_context("fork").Queue()
        children = [start("fork", audit_and_sample, answers, 1) for _ in range(4)]
        totals = [answers.get(timeout=LIMIT)[0] for _ in children]
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    finish(*children)
    assert totals == [expected] * 4


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


@pytest.mark.skipif("fork" not in METHODS, reason="no fork on this system")
def test_a_forked_child_is_interrupted():
    expected = use_the_pool().sum()
    answers = multiprocessing.get_context("fork").Queue()
    children = [start("fork", interrupted, answers) for _ in range(2)]
    try:
        assert [answers.get(timeout=LIMIT) for _ in children] == [(True, expected)] * 2
    finally:
        finish(*children)


def load(tasks, batches):
    """A data loader's worker: noisy batches for as long as there are indices."""
    for index in iter(tasks.get, None):
        batch = dpcore.sample(Laplace(1.0), np.full(8, float(index)), 50_000, rng=index)
        batches.put((index, float(batch.mean()), batch.shape))


@pytest.mark.parametrize("method", METHODS)
def test_a_data_loader(method):
    """Workers that live over two epochs, a parent that samples in between."""
    context = multiprocessing.get_context(method)
    tasks, batches = context.Queue(), context.Queue()
    use_the_pool()
    workers = [start(method, load, tasks, batches) for _ in range(2)]
    for epoch in range(2):
        indices = range(10 * epoch, 10 * epoch + 6)
        for index in indices:
            tasks.put(index)
        use_the_pool()
        for index, mean, shape in sorted(batches.get(timeout=LIMIT) for _ in indices):
            expected = dpcore.sample(Laplace(1.0), np.full(8, float(index)), 50_000, rng=index)
            assert (mean, shape) == (float(expected.mean()), expected.shape)
    for _ in workers:
        tasks.put(None)
    finish(*workers)


def part(start):
    return dpcore.audit(
        published.HalfNoise(1.0), trials=200_000, start=start, rng=5, confidence=0.9
    )


def test_a_pool_of_processes_counts_what_one_process_counts():
    starts = range(0, 800_000, 200_000)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        parts = list(pool.map(part, starts, timeout=LIMIT))
    merged = parts[0] + parts[1] + parts[2] + parts[3]
    whole = part(0)
    for first in starts[1:]:
        whole = whole + part(first)
    assert (merged, merged.trials) == (whole, 800_000)
