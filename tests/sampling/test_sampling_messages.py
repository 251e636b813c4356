"""Messages of wrong calls of `dpcore.sampling`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from shared_messages import check_messages

from dpcore import Laplace, sample

NOISE = Laplace(1.0)
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
    (lambda: draw(x=np.array(0.0)), "x", "a non-empty vector of finite numbers, got array(0.)"),
    (lambda: draw(x=[]), "x", "a non-empty vector"),
    (lambda: draw(x=[[0.0]]), "x", "a non-empty vector"),
    (lambda: draw(x=[[0.0], [0.0, 1.0]]), "x", "a non-empty vector"),
    (lambda: draw(x=[np.nan]), "x", "finite numbers"),
    (lambda: draw(x=[np.inf]), "x", "finite numbers"),
    (lambda: draw(size=-1), "size", "an integer at least 0, got -1"),
    (lambda: draw(size=2**62), "size", "small enough that size * dim * 8 bytes can be addressed"),
    (lambda: draw(rng=-1), "rng", f"an integer from 0 to {2**63 - 1}, got -1"),
    (lambda: draw(rng=2**63), "rng", f"an integer from 0 to {2**63 - 1}, got {2**63}"),
    (lambda: draw(threads=0), "threads", "an integer from 1 to 1024, got 0"),
    (lambda: draw(threads=1025), "threads", "an integer from 1 to 1024, got 1025"),
    (lambda: draw(dtype="i8"), "dtype", "float64 or float32, got 'i8'"),
    (lambda: draw(dtype=">f8"), "dtype", "float64 or float32, got '>f8'"),
    (lambda: draw(dtype=np.float16), "dtype", "float64 or float32"),
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
