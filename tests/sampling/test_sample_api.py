"""`dpcore.sample`: what it accepts, what it refuses and in which words."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from shared_audits import EVERY_NATIVE
from shared_messages import check_messages

from dpcore import Laplace, _core, sample

NOISE = Laplace(1.0)


@pytest.mark.parametrize("mechanism", EVERY_NATIVE, ids=repr)
@pytest.mark.parametrize("dim", [1, 7, 64])
def test_the_number_of_threads_changes_nothing(mechanism, dim):
    x = np.linspace(-1.0, 2.0, dim)
    size = 5 * 2**17 // dim + 3
    one = sample(mechanism, x, size, rng=1, threads=1)
    assert one.shape == (size, dim)
    for threads in (2, 3, None):
        assert one.tobytes() == sample(mechanism, x, size, rng=1, threads=threads).tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, "float64", "f4", float])
def test_out_is_filled_and_returned(dtype):
    out = np.full((100, 3), 7.0, dtype=dtype)
    assert sample(NOISE, [0, 1, 2], 100, rng=3, out=out, dtype=dtype) is out
    # What is float32 is rounded once from float64.
    np.testing.assert_array_equal(out, sample(NOISE, [0, 1, 2], 100, rng=3).astype(dtype))


def test_a_part_of_a_larger_array_is_filled_and_nothing_else():
    whole = np.zeros((30, 2))
    sample(NOISE, [0.0, 1.0], 10, rng=4, out=whole[10:20])
    assert not np.delete(whole, range(10, 20), axis=0).any()
    np.testing.assert_array_equal(whole[10:20], sample(NOISE, [0.0, 1.0], 10, rng=4))
    # It may hold the input.
    out = np.full((5, 2), 3.0)
    sample(NOISE, out[0], 5, rng=5, out=out)
    np.testing.assert_array_equal(out, sample(NOISE, [3.0, 3.0], 5, rng=5))


def test_no_outputs():
    for dim in (1, 4):
        assert sample(NOISE, np.zeros(dim), 0).shape == (0, dim)
        empty = np.empty((0, dim))
        assert sample(NOISE, np.zeros(dim), 0, out=empty) is empty


@pytest.mark.parametrize(
    "x",
    [
        [0, 1], (0.0, 1.0), np.array([0, 1], dtype=np.int8), np.array([False, True]),
        np.array([0, 1], dtype=np.float16), np.array([0.0, 9.0, 1.0, 9.0])[::2], range(2),
    ],
)  # fmt: skip
def test_inputs_of_any_real_type_or_layout(x):
    np.testing.assert_array_equal(sample(NOISE, x, 9, rng=6), sample(NOISE, [0.0, 1.0], 9, rng=6))


def test_seeds():
    draw = partial(sample, NOISE, [0.0], 50)
    seed = int(np.random.default_rng(7).integers(2**63))
    generator = np.random.default_rng(7)
    for one, other in ((draw(rng=7), draw(rng=np.int64(7))), (draw(rng=generator), draw(rng=seed))):
        np.testing.assert_array_equal(one, other)
    others = (draw(rng=7), draw(rng=8)), (draw(rng=seed), draw(rng=generator)), (draw(), draw())
    assert all((one != other).all() for one, other in others)
    draw(rng=2**63 - 1)


def test_a_mechanism_is_called_like_a_function():
    np.testing.assert_array_equal(NOISE([0.0], 5, 9), sample(NOISE, [0.0], 5, rng=9))
    np.testing.assert_array_equal(NOISE([0.0], 5, rng=9), sample(NOISE, [0.0], 5, rng=9))


SCRIPT = """
import hashlib, numpy as np, dpcore
from dpcore import attacks, published
noises = [dpcore.Laplace(1.5), dpcore.Gaussian(1.5), dpcore.Exponential(1.5),
          dpcore.Uniform(-1.5, 0.5), dpcore.RandomBits(), dpcore.Identity()]
noises += [dpcore.DPTextNoise(1.5, nan) for nan in ("zero", "resample", "keep")]
noises += [system(1.0) for system in published.SYSTEMS]
digest = hashlib.sha256()
for number, noise in enumerate(noises):
    # More draws, of more dimensions: tests/rust/samplers.rs.
    for dim in (1, 5, 33):
        x = np.linspace(-1.0, 1.0, dim)
        digest.update(dpcore.sample(noise, x, 4001, rng=11).tobytes())
        for route in ("sampled", "auto"):
            report = dpcore.audit(noise, (x, x + 0.5), trials=2001, rng=11, claim=1.0,
                                  attack=attacks.MajorityVote(), route=route)
            digest.update(repr((report.counts, report.nan, report.nan_prime)).encode())
    # What the default attack learns, and what it then counts, of each noise.
    if number < 9:
        report = dpcore.audit(noise, (x, x + 0.5), trials=2001, rng=11, claim=1.0)
        digest.update(repr((report.event, report.counts)).encode())
print(dpcore._core.cpu(), digest.hexdigest())
"""


def in_subprocess(code, **environment):
    options = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, "-c", code], env=os.environ | environment, **options)


@pytest.mark.sweep
def test_every_path_of_the_cpu_gives_the_same_bytes():
    answers = {}
    for path in _core.cpus():
        done = in_subprocess(SCRIPT, DPCORE_CPU=path)
        assert done.returncode == 0, done.stderr
        name, answers[path] = done.stdout.split()
        assert name == path
    assert _core.cpus()[0] == "baseline"
    assert len(set(answers.values())) == 1, answers
    assert len(answers["baseline"]) == len(hashlib.sha256().hexdigest())


@pytest.mark.parametrize(
    "path", ["avx1024", "AVX2", " ", *sorted({"avx2", "avx512"} - {*_core.cpus()})]
)
def test_a_path_that_this_cpu_lacks_is_an_error_of_the_first_draw(path):
    code = "import dpcore; dpcore.audit(dpcore.Laplace(1.0), trials=100)"
    done = in_subprocess(code, DPCORE_CPU=path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("ValueError: DPCORE_CPU must be ")


# Threads that stay alive: few, whatever was asked for and by however many at once.


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
    done = in_subprocess(f"{CODE}\n{calls}\nmore({expected})")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


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


# Messages of wrong calls of `dpcore.sampling`: the argument, and a word of the remedy.


SEEDS = "None, an int in [0, 2**63) or a numpy.random.Generator"
ONES = np.ones((10, 1))


class Mine(Laplace):
    """A subclass, which may override what the core reads."""


def draw(mech=NOISE, x=(0.0,), size=10, **options):
    return sample(mech, x, size, **options)


def lock(array):
    array.setflags(write=False)
    return array


NOT_ALIGNED = np.zeros(81, dtype=np.uint8)[1:].view(np.float64).reshape(10, 1)

VALUE_ERRORS = [
    (lambda: draw(x=0.0), "x", "a non-empty vector of finite numbers, got 0.0"),
    (lambda: draw(x=[]), "x", "a non-empty vector"),
    (lambda: draw(x=[[0.0]]), "x", "a non-empty vector"),
    (lambda: draw(x=[[0.0], [0.0, 1.0]]), "x", "a non-empty vector"),
    (lambda: draw(x=[np.nan]), "x", "finite numbers"),
    (lambda: draw(x=[np.inf]), "x", "finite numbers"),
    (lambda: draw(size=-1), "size", "an integer at least 0, got -1"),
    (lambda: draw(size=2**60), "size", "small enough that size * dim * 8 bytes can be addressed"),
    (lambda: draw(rng=-1), "rng", f"an integer from 0 to {2**63 - 1}, got -1"),
    (lambda: draw(rng=2**63), "rng", f"an integer from 0 to {2**63 - 1}, got {2**63}"),
    (lambda: draw(threads=0), "threads", "an integer from 1 to 1024, got 0"),
    (lambda: draw(threads=1025), "threads", "an integer from 1 to 1024, got 1025"),
    (lambda: draw(dtype="i8"), "dtype", "float64 or float32, got 'i8'"),
    (lambda: draw(dtype=">f8"), "dtype", "float64 or float32, got '>f8'"),
    (lambda: draw(out=ONES[1:]), "out", "of shape (10, 1) and type float64, got ((9, 1), 'float64"),
    (lambda: draw(out=ONES[:, 0]), "out", "of shape (10, 1) and type float64, got ((10,), 'float"),
    (lambda: draw(out=ONES.astype("f4")), "out", "type float64, got ((10, 1), 'float32')"),
    (lambda: draw(out=ONES, dtype=np.float32), "out", "type float32, got ((10, 1), 'float64')"),
    (lambda: draw(out=np.zeros((20, 1))[::2]), "out", "C-contiguous and writeable"),
    (lambda: draw(x=np.zeros(10), size=3, out=np.zeros((10, 3)).T), "out", "C-contiguous"),
    (lambda: draw(x=np.zeros(3), out=np.zeros((10, 3), order="F")), "out", "C-contiguous"),
    (lambda: draw(out=lock(np.zeros((10, 1)))), "out", "C-contiguous and writeable"),
    (lambda: draw(out=NOT_ALIGNED), "out", "aligned, its address a multiple of 8"),
]
TYPE_ERRORS = [
    (lambda: draw(x=["a"]), "x", "a non-empty vector of finite numbers, got ['a']"),
    (lambda: draw(x=None), "x", "a non-empty vector"),
    (lambda: draw(x=[1j]), "x", "a non-empty vector"),
    (lambda: draw(size=2.0), "size", "an integer at least 0, got 2.0"),
    (lambda: draw(size=True), "size", "an integer at least 0, got True"),
    (lambda: draw(size="3"), "size", "an integer at least 0, got '3'"),
    (lambda: draw(rng=True), "rng", f"{SEEDS}, got True"),
    (lambda: draw(rng=1.0), "rng", f"{SEEDS}, got 1.0"),
    (lambda: draw(threads=1.5), "threads", "an integer from 1 to 1024, got 1.5"),
    (lambda: draw(dtype="f8,(3"), "dtype", "float64 or float32, got 'f8,(3'"),
    (lambda: draw(dtype="junk"), "dtype", "float64 or float32, got 'junk'"),
    (lambda: draw(out=[[0.0]] * 10), "out", "a numpy array"),
    (lambda: draw(len), "mech", "a native mechanism (call any other one itself)"),
    (lambda: draw(Mine(1.0)), "mech", "a native mechanism"),
    (lambda: draw(Laplace), "mech", "an instance and not the class (Laplace(...) makes one)"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
