"""`dpcore.sample`: what it accepts, what it refuses and in which words."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import dpcore
from dpcore import Gaussian, Laplace, _core, published, sample

NOISE = Laplace(1.0)
EVERY = [
    Laplace(1.5), Gaussian(1.5), dpcore.Exponential(1.5), dpcore.Uniform(-1.5, 0.5),
    dpcore.Identity(), dpcore.RandomBits(), dpcore.DPTextNoise(1.5, "zero"),
    dpcore.DPTextNoise(1.5, "resample"), dpcore.DPTextNoise(1.5, "keep"),
    *(system(1.0) for system in published.SYSTEMS),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("dim", [1, 7, 64])
def test_the_number_of_threads_changes_nothing(mechanism, dim):
    x = np.linspace(-1.0, 2.0, dim)
    size = 5 * 2**17 // dim + 3
    one = sample(mechanism, x, size, rng=1, threads=1)
    assert one.shape == (size, dim)
    for threads in (2, 3, None):
        assert one.tobytes() == sample(mechanism, x, size, rng=1, threads=threads).tobytes()


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_float32_is_rounded_once_from_float64(mechanism):
    x = [1.1, -2e7, 3.3e-5]
    wide = sample(mechanism, x, 5000, rng=2)
    narrow = sample(mechanism, x, 5000, rng=2, dtype=np.float32)
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(narrow, wide.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, "float64", "f4", float])
def test_out_is_filled_and_returned(dtype):
    out = np.full((100, 3), 7.0, dtype=dtype)
    assert sample(NOISE, [0, 1, 2], 100, rng=3, out=out, dtype=dtype) is out
    np.testing.assert_array_equal(out, sample(NOISE, [0, 1, 2], 100, rng=3, dtype=dtype))


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


def test_sampling_in_parallel_from_python_threads():
    from concurrent.futures import ThreadPoolExecutor

    def one(seed):
        return sample(NOISE, [0.0, 1.0], 300_000, rng=seed).tobytes()

    seeds = [1, 2, 3, 4] * 2
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, seeds)) == list(map(one, seeds))


SCRIPT = """
import hashlib, numpy as np, dpcore
from dpcore import attacks, published
noises = [dpcore.Laplace(1.5), dpcore.Gaussian(1.5), dpcore.Exponential(1.5),
          dpcore.Uniform(-1.5, 0.5), dpcore.RandomBits(), dpcore.Identity()]
noises += [dpcore.DPTextNoise(1.5, nan) for nan in ("zero", "resample", "keep")]
noises += [system(1.0) for system in published.SYSTEMS]
digest = hashlib.sha256()
for number, noise in enumerate(noises):
    for dim in (1, 2, 5, 33):
        x = np.linspace(-1.0, 1.0, dim)
        for dtype in ("f8", "f4"):
            digest.update(dpcore.sample(noise, x, 40_001, rng=11, dtype=dtype).tobytes())
        for route in ("sampled", "auto"):
            report = dpcore.audit(noise, (x, x + 0.5), trials=20_001, rng=11, claim=1.0,
                                  attack=attacks.MajorityVote(), route=route)
            digest.update(repr((report.counts, report.nan, report.nan_prime)).encode())
    # What the default attack learns, and what it then counts, of each noise.
    if number < 9:
        report = dpcore.audit(noise, (x, x + 0.5), trials=2001, rng=11, claim=1.0)
        digest.update(repr((report.event, report.counts)).encode())
print(dpcore._core.cpu(), digest.hexdigest())
"""


def in_subprocess(code, **environment):
    options = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run([sys.executable, "-c", code], env=os.environ | environment, **options)


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


def test_ctrl_c_stops_sampling_soon():
    """A real SIGINT in the middle of one long call."""
    code = """
import os, signal, threading, time
import numpy as np, dpcore
signal.signal(signal.SIGINT, signal.default_int_handler)
out = np.empty((2**28, 1), np.float32)  # pages that nobody writes cost nothing
dpcore.sample(dpcore.Gaussian(1.0), [0.0], 10)
def interrupt():
    time.sleep(0.15)
    global sent
    sent = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    dpcore.sample(dpcore.Gaussian(1.0), [0.0], 2**28, out=out, dtype="f4", threads=1)
    print("finished", 0)
except KeyboardInterrupt:
    print("stopped", time.process_time() - sent)
# The pool is sound afterwards.
print(len(dpcore.sample(dpcore.Laplace(1.0), [0.0], 10**6, rng=1)))
"""
    done = in_subprocess(code, DPCORE_CPU="baseline")
    assert done.returncode == 0, done.stderr
    word, seconds, size = done.stdout.split()
    assert (word, int(size)) == ("stopped", 10**6)
    # Looked for ten times a second; of the processor, as others may use it too.
    assert float(seconds) < 1.0
