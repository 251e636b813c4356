"""Arrays at odd addresses: the core says what is wrong with them, the package copies its inputs."""

import numpy as np
import pytest

import dpcore
from dpcore import _core, divergence
from dpcore.attacks.threshold import Closer

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=3), RNG.normal(size=(40, 3))
LAPLACE = ("Laplace", [2.0], "two_branch", None, 1.0)
DRAWS = (1, 3, 0, 1000)
WORDS = np.arange(1, 4, dtype=np.uint64)
COLUMNS = ("values", np.zeros(3), np.arange(4), np.zeros(0, np.uint64))


def misaligned(array):
    data = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    data[...] = array
    assert data.flags.c_contiguous
    assert not data.flags.aligned
    return data


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("out", lambda: _core.sample(LAPLACE, X, misaligned(Y), DRAWS, 0, 1)),
        ("out", lambda: _core.sample(LAPLACE, X, misaligned(Y.astype("f4")), DRAWS, 0, 1)),
        ("x", lambda: _core.sample(LAPLACE, misaligned(X), np.zeros((4, 3)), DRAWS, 0, 1)),
        ("outputs", lambda: _core.count_outputs(misaligned(Y), X, np.ones(3, np.int8))),
        ("threshold", lambda: _core.count_outputs(Y, misaligned(X), np.ones(3, np.int8))),
        ("words", lambda: _core.noise_at(LAPLACE, misaligned(WORDS))),
        ("j", lambda: _core.ln(misaligned(WORDS))),
        ("x", lambda: _core.clip(misaligned(X), "l1", 1.0)),
        ("x_prime", lambda: _core.score_closer(Y, X, misaligned(X), "l1", np.zeros(40))),
        ("out", lambda: _core.score_closer(Y, X, X, "l1", misaligned(np.zeros(40)))),
        ("outputs", lambda: _core.pattern_keys(misaligned(Y), COLUMNS, np.zeros(40, np.uint64))),
        ("values", lambda: _core.bin_counts(misaligned(X), np.zeros(0), np.zeros(1, np.uint64))),
        ("x", lambda: _core.log_gamma_ratio(misaligned(np.ones(3)), 1.0)),
        ("rows0", lambda: _core.pool_rows(misaligned(Y), Y)),
        ("queries", lambda: _core.nearest(Y, Y, misaligned(np.arange(3)), np.arange(9), 1, 1)),
    ],
)
def test_the_core_calls_a_misaligned_array_misaligned(name, call):
    pattern = rf"^{name} must be aligned, its address a multiple of [48], got a misaligned array$"
    with pytest.raises(ValueError, match=pattern):
        call()


def test_strides_are_called_strides():
    with pytest.raises(ValueError, match=r"^x must be C-contiguous$"):
        _core.clip(np.zeros(8)[::2], "l1", 1.0)


def test_an_array_to_fill_is_refused_and_named():
    with pytest.raises(ValueError, match=r"^out must be aligned, its address a multiple of 4"):
        dpcore.sample(dpcore.Laplace(2.0), X, 4, dtype="f4", out=misaligned(np.zeros((4, 3), "f4")))


def test_inputs_are_copied():
    noise = dpcore.Laplace(2.0)
    expected = dpcore.sample(noise, X, 9, rng=1)
    np.testing.assert_array_equal(dpcore.sample(noise, misaligned(X), 9, rng=1), expected)
    shifted = Y + 0.5
    found = divergence.renyi(misaligned(Y), misaligned(shifted), rng=1)
    assert found == divergence.renyi(Y, shifted, rng=1)


def test_outputs_are_copied():
    sides = Y.repeat(50, axis=0), (Y + 1).repeat(50, axis=0)
    sides = tuple(side + RNG.normal(size=side.shape) for side in sides)
    names = {"rows": "independent", "claim": 1.0, "rng": 1, "arranged": True}
    found = dpcore.audit_outputs(*(misaligned(side) for side in sides), **names)
    expected = dpcore.audit_outputs(*sides, **names)
    assert found.counts == expected.counts
    score = Closer("l1", X, X + 1)
    np.testing.assert_array_equal(score(misaligned(Y)), score(Y))
