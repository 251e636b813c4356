"""Eight Python threads at once give what one gives: so it is with the lock, and so without one.

The job of free-threaded Python runs this file with PYTHON_GIL=0, where nothing takes turns. It
imports little, because few packages have wheels for that interpreter.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpcore
from dpcore import divergence, pairs, published

THREADS, CALLS = 8, 3
NOISES = (dpcore.Laplace(1.5), dpcore.Gaussian(1.5), dpcore.Exponential(1.5), dpcore.RandomBits())


def sampled(seed):
    return [dpcore.sample(noise, [0.0, 1.0], 5000, rng=seed).tobytes() for noise in NOISES]


def audited(seed):
    return [
        dpcore.audit(published.HalfNoise(1.0), attack=attack, trials=5000, rng=seed).counts
        for attack in (dpcore.attacks.MajorityVote(), None)
    ]


def called(seed):
    def noise(x, size, rng):
        return x + rng.laplace(size=(size, len(x)))

    return dpcore.audit(noise, pairs.zeros_ones(2), claim=1.0, trials=5000, rng=seed).counts


def neighboured(seed):
    points = np.random.default_rng(seed).normal(size=(2, 300, 5))
    found = divergence.renyi(*points, alphas=2.0, k=5, method="ball", rng=seed)
    # Not its checks: numpy's products add in another order when others compute beside them.
    return found.value.tobytes(), repr(found.kl), repr(found.diagnostics)


WORK = (sampled, audited, called, neighboured)


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_eight_threads_at_once_give_what_one_gives(work):
    together = threading.Barrier(THREADS)

    def one(seed):
        together.wait(timeout=60)
        return [work(seed) for _ in range(CALLS)]

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, range(THREADS)))
    assert found == [[work(seed)] * CALLS for seed in range(THREADS)]
    # The control: seeds differ, so that a thread which got another's numbers would be seen.
    assert len({repr(answer) for answer in found}) == THREADS


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="the lock is built in")
def test_a_free_threaded_interpreter_runs_these_tests_without_its_lock():
    assert not sys._is_gil_enabled()
