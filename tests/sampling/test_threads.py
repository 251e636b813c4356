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
    command = [sys.executable, "-c", f"{CODE}\n{calls}\nmore({expected})"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


POOL_OF_60 = power(max(60, _core.cores()))
# 126 with up to 2 cores: 2, 4, ..., 64. A pool has no fewer threads than there are cores.
EVERY_POOL = sum({power(max(threads, _core.cores())) for threads in range(2, 61)})


@pytest.mark.skipif(not TASKS.exists(), reason="no list of threads on this system")
@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (ONE_AFTER_ANOTHER, EVERY_POOL), ("together(16)", power(max(2, _core.cores()))),
        (f"sample(60)\n{ONE_AFTER_ANOTHER}", POOL_OF_60),
    ],
    ids=["many numbers share few pools", "first callers share one", "a large one serves all"],
)  # fmt: skip
def test_few_pools_serve_all(calls, expected):
    assert threads_left(calls, expected) == expected
