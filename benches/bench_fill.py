"""Filling an array with noise, one thread each: ours against numpy and torch."""

import numpy as np
import pytest

import dpcore

SIZE = 2**20


def buffers(tiny: bool) -> np.ndarray:
    return np.empty((2**12 if tiny else SIZE, 1))


def dpcore_laplace(out: np.ndarray):
    return lambda: dpcore.sample(dpcore.Laplace(1.0), [0.0], len(out), rng=1, out=out, threads=1)


def numpy_laplace(out: np.ndarray):
    rng = np.random.default_rng(1)
    return lambda: rng.laplace(size=out.shape)


def numpy_exponential_in_place(out: np.ndarray):
    """A ziggurat exponential with a random sign: the fastest in-place formula found for numpy."""
    rng = np.random.default_rng(1)
    top = np.uint64(1 << 63)

    def work() -> np.ndarray:
        rng.standard_exponential(out=out)
        signs = np.frombuffer(rng.bytes(out.size), dtype=np.uint8).reshape(out.shape)
        bits = out.view(np.uint64)
        np.bitwise_or(bits, top, out=bits, where=signs > 127)
        return out

    return work


def numpy_inverse_in_place(out: np.ndarray):
    """Inversion with in-place operations, in chunks that fit the cache."""
    rng = np.random.default_rng(1)
    parts = np.array_split(out, max(1, out.size // 8192))

    def work() -> np.ndarray:
        for u in parts:
            rng.random(out=u)
            np.subtract(u, 0.5, out=u)
            sign = np.copysign(1.0, u)
            np.abs(u, out=u)
            np.multiply(u, -2.0, out=u)
            np.add(u, 1.0, out=u)
            np.log(u, out=u)
            np.multiply(u, sign, out=u)
        return out

    return work


def torch_laplace(out: np.ndarray):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)
    law = torch.distributions.Laplace(
        torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    )
    return lambda: law.sample(out.shape).numpy()


LAPLACE = [
    dpcore_laplace, numpy_laplace, numpy_exponential_in_place, numpy_inverse_in_place,
    torch_laplace,
]  # fmt: skip


@pytest.mark.parametrize("contender", LAPLACE)
def test_laplace(race, tiny, contender):
    out = buffers(tiny)
    # An unlucky -infinity (u = 0) would come once in 2^53 draws.
    with np.errstate(divide="ignore"):
        drawn = race("fill Laplace, one thread", contender(out), out.size)
    # E|s| = 1 with standard deviation 1: five standard errors.
    assert abs(np.abs(drawn).mean() - 1.0) < 5.0 / np.sqrt(drawn.size)


def dpcore_gaussian(out: np.ndarray):
    return lambda: dpcore.sample(dpcore.Gaussian(1.0), [0.0], len(out), rng=1, out=out, threads=1)


def numpy_normal(out: np.ndarray):
    rng = np.random.default_rng(1)
    return lambda: rng.normal(size=out.shape)


def numpy_standard_normal_in_place(out: np.ndarray):
    rng = np.random.default_rng(1)
    return lambda: rng.standard_normal(out=out)


def torch_normal(out: np.ndarray):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)
    tensor = torch.from_numpy(out)
    return lambda: tensor.normal_().numpy()


GAUSSIAN = [dpcore_gaussian, numpy_normal, numpy_standard_normal_in_place, torch_normal]


@pytest.mark.parametrize("contender", GAUSSIAN)
def test_gaussian(race, tiny, contender):
    out = buffers(tiny)
    drawn = race("fill Gaussian, one thread", contender(out), out.size)
    # Var s^2 = 2: five standard errors of the second moment.
    assert abs((drawn**2).mean() - 1.0) < 5.0 * np.sqrt(2.0 / drawn.size)
