"""Threads that stay alive: few, whatever was asked for and by however many at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpcore import _core

TASKS = Path("/proc/self/task")

CODE = """
import os, sys, threading, time
import numpy as np
from dpcore import Laplace, _core
from dpcore.mechanisms.native import describe_natively
from dpcore.streams import SAMPLE

def sample(threads):
    # Of 64 blocks every thread gets some.
    out = np.empty((64, 1))
    steps = describe_natively(Laplace(1.0), 1)
    _core.sample(steps, np.zeros(1), out, (1, SAMPLE, 0, 1), 0, threads)

def together(calls):
    barrier = threading.Barrier(calls)
    callers = [threading.Thread(target=lambda: (barrier.wait(), sample(2))) for _ in range(calls)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

def more(expected):
    # A thread that has ended may be listed for a moment.
    for _ in range(600):
        found = len(os.listdir("/proc/self/task")) - before
        if found == expected:
            break
        time.sleep(0.1)
    print(found)

before = len(os.listdir("/proc/self/task"))
"""

ONE_AFTER_ANOTHER = "for threads in range(2, 61):\n    sample(threads)\n"


def power(threads):
    return 1 << (threads - 1).bit_length()


def threads_left(calls, expected):
    run = subprocess.run(
        [sys.executable, "-c", f"{CODE}\n{calls}\nmore({expected})"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.skipif(not TASKS.exists(), reason="no list of threads on this system")
def test_many_numbers_of_threads_share_few_pools():
    # 126 with up to 2 cores: 2, 4, ..., 64. A pool has no fewer threads than there are cores.
    sizes = {power(max(threads, _core.cores())) for threads in range(2, 61)}
    assert threads_left(ONE_AFTER_ANOTHER, sum(sizes)) == sum(sizes)


@pytest.mark.skipif(not TASKS.exists(), reason="no list of threads on this system")
def test_first_callers_at_once_share_one_pool():
    expected = power(max(2, _core.cores()))
    assert threads_left("together(16)", expected) == expected


@pytest.mark.skipif(not TASKS.exists(), reason="no list of threads on this system")
def test_a_large_pool_serves_all_others():
    expected = power(max(60, _core.cores()))
    assert threads_left(f"sample(60)\n{ONE_AFTER_ANOTHER}", expected) == expected
