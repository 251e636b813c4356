"""Adapters: what they find, the law they draw, what they claim, and that they change nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from shared_adapters import ALPHA, above_half, laplace_ks, rng
from shared_extras import needs
from shared_messages import check_messages

import dpcore
from dpcore.adapters import ScipyNoise, TorchModule, TorchNoise, adapt
from dpcore.adapters.scipy import unwrap_single_number


@pytest.fixture(scope="module")
def torch():
    return needs("torch")


# Discovery.


def test_nothing_is_imported_by_looking():
    code = """
import sys, dpcore.adapters
others = (1.5, print, None, object(), dpcore.Laplace(1.0))
assert all(dpcore.adapters.adapt(obj) is None for obj in others)
print(*{name.split(".")[0] for name in sys.modules})
print(*(name for name in sys.modules if name.startswith("scipy.stats")))
"""
    options = {"capture_output": True, "text": True, "timeout": 60, "check": True}
    packages, parts = subprocess.run([sys.executable, "-c", code], **options).stdout.split("\n")[:2]
    assert "numpy" in packages.split()
    assert not {"opendp", "diffprivlib", "sklearn", "torch"} & set(packages.split())
    assert parts == ""


def test_only_a_vector_of_one_entry_is_a_number():
    for one in (np.array([2.0]), np.array(2.0), np.float64(2.0), [2.0], (np.float64(2.0),)):
        assert type(unwrap_single_number(one)) is float
    for other in (np.zeros((1, 1)), np.zeros(2), [2.0, 3.0], [[2.0]], ["a"], "a"):
        assert unwrap_single_number(other) is other
    # An adapter is no object of another package.
    assert adapt(adapt(stats.laplace(scale=2.0))) is None


# scipy.


@pytest.mark.parametrize(
    ("distribution", "shown"),
    [
        (stats.laplace(scale=2.0), "ScipyNoise(laplace(scale=2.0))"),
        (stats.norm(0.0, 3.0), "ScipyNoise(norm(0.0, 3.0))"),
        (stats.dlaplace(0.5), "ScipyNoise(dlaplace(0.5))"),
        (stats.multivariate_normal([0.0, 0.0]), "ScipyNoise(multivariate_normal)"),
    ],
)
def test_distributions_of_scipy_are_found(distribution, shown):
    found = adapt(distribution)
    assert type(found) is ScipyNoise
    assert repr(found) == found.name == shown
    assert (found.claim, found.stated) == (None, None)
    assert found.reproducible


@pytest.mark.extras
@pytest.mark.parametrize("package", ["scipy", "torch"])
def test_noise_of_a_distribution_has_its_law(package, torch):
    x, of_torch = np.array([3.0, -1.0]), package == "torch"
    noise = torch.distributions.Laplace(0.0, 2.0) if of_torch else stats.laplace(scale=2.0)
    outputs = adapt(noise)(x, 100_000, rng())
    assert outputs.shape == (100_000, 2)
    assert laplace_ks(outputs - x, 2.0) > ALPHA
    assert laplace_ks(outputs - x, 2.1) < ALPHA
    # Every entry has a draw of its own.
    assert abs(np.corrcoef((outputs - x).T)[0, 1]) < 5 / np.sqrt(100_000)


def test_scipy_draws_from_the_generator_alone():
    noise = adapt(stats.laplace(scale=2.0))
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    first, again, other = (noise([0.0], 5, rng(seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert repr(state) == repr(np.random.get_state(legacy=False))  # noqa: NPY002
    # Also after pickling.
    copied = pickle.loads(pickle.dumps(noise))
    assert (repr(copied), copied([0.0], 5, rng()).tolist()) == (repr(noise), first)


@pytest.mark.parametrize(("x", "shape"), [(0.0, ()), ([0.0], (1,)), (np.zeros((2, 3)), (2, 3))])
def test_scipy_takes_x_of_any_shape(x, shape):
    for size in (4, 1):
        assert adapt(stats.laplace())(x, size, rng()).shape == (size, *shape)


def test_scipy_parameters_may_be_arrays():
    outputs = adapt(stats.laplace(scale=[1.0, 100.0]))([0.0, 0.0], 50_000, rng())
    assert laplace_ks(outputs[:, 0], 1.0) > ALPHA
    assert laplace_ks(outputs[:, 1], 100.0) > ALPHA
    assert laplace_ks(outputs[:, 1], 1.0) < ALPHA


def test_multivariate_noise_draws_the_vector_at_once():
    noise = adapt(stats.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]]))
    outputs = noise([5.0, 6.0], 20_000, rng())
    assert outputs.shape == (20_000, 2)
    assert abs(np.corrcoef(outputs.T)[0, 1] - 0.9) < 0.02
    assert noise([5.0, 6.0], 1, rng()).shape == (1, 2)
    assert adapt(stats.multivariate_normal([0.0]))([5.0], 3, rng()).shape == (3, 1)
    for x in ([0.0], [0.0, 0.0, 0.0], np.zeros((2, 2))):
        with pytest.raises(ValueError, match=r"noise of ScipyNoise.* must be of shape"):
            noise(x, 3, rng())


def test_discrete_noise_keeps_integers():
    outputs = adapt(stats.dlaplace(0.5))(np.array([7]), 1000, rng())
    assert outputs.dtype.kind == "i"
    observed = int((outputs == 7).sum())
    assert stats.binomtest(observed, 1000, stats.dlaplace(0.5).pmf(0)).pvalue > ALPHA


def test_scipys_newer_distributions():
    if not hasattr(stats, "Normal"):
        pytest.skip("this scipy has no stats.Normal")
    noise = adapt(stats.Normal(mu=0.0, sigma=2.0))
    assert repr(noise) == "ScipyNoise(Normal(mu=0.0, sigma=2.0))"
    outputs = noise([1.0], 100_000, rng())
    assert stats.kstest(outputs[:, 0], stats.norm(1.0, 2.0).cdf).pvalue > ALPHA
    assert stats.kstest(outputs[:, 0], stats.norm(1.0, 2.1).cdf).pvalue < ALPHA


def test_scipy_is_audited():
    pair = ([0.0], [1.0])
    options = {"attack": above_half, "trials": 100_000, "rng": 1}
    sound = dpcore.audit(adapt(stats.laplace(scale=1.0)), pair, claim=1.0, **options)
    assert sound.verdict == "not refuted by this attack"
    assert sound.epsilon_lower > 0.7
    broken = dpcore.audit(adapt(stats.laplace(scale=0.5)), pair, claim=1.0, **options)
    assert broken.verdict == "refuted"


TYPE_ERRORS = [
    *((lambda kind=kind: adapt(kind), "mechanism", "such as scipy")
      for kind in (stats.laplace, stats.poisson, stats.multivariate_normal)),
    *((lambda x=x: adapt(stats.laplace())(x, 3, rng()), "x", "an array of real numbers")
      for x in ("text", [1j])),
]  # fmt: skip


def test_messages():
    ragged = (lambda: adapt(stats.laplace())([[1.0], [1.0, 2.0]], 3, rng())), "x", "an array of"
    check_messages(ValueError, [ragged])
    check_messages(TypeError, TYPE_ERRORS)


# torch.


@pytest.mark.extras
def test_torch_distributions_are_found(torch):
    found = adapt(torch.distributions.Laplace(0.0, 2.0))
    assert type(found) is TorchNoise
    assert (found.name, found.reproducible) == ("TorchNoise(Laplace(loc: 0.0, scale: 2.0))", True)
    assert (found.thread_safe, found.claim) == (False, None)


@pytest.mark.extras
def test_torch_is_seeded_from_the_generator_and_put_back(torch):
    noise = adapt(torch.distributions.Laplace(0.0, 2.0))
    state = torch.random.get_rng_state()
    first = noise([0.0], 5, rng())
    assert torch.equal(state, torch.random.get_rng_state())
    assert np.array_equal(first, noise([0.0], 5, rng()))
    assert not np.isin(first, noise([0.0], 5, rng(2))).any()
    generator = rng()
    assert not np.isin(noise([0.0], 5, generator), noise([0.0], 5, generator)).any()


@pytest.mark.extras
def test_torch_shapes(torch):
    each = adapt(torch.distributions.Laplace(torch.zeros(2), torch.tensor([1.0, 100.0])))
    outputs = each([0.0, 0.0], 20_000, rng())
    assert outputs.shape == (20_000, 2)
    assert laplace_ks(outputs[:, 1], 100.0) > ALPHA
    assert laplace_ks(outputs[:, 0], 100.0) < ALPHA
    whole = adapt(torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)))
    assert whole([0.0, 0.0], 3, rng()).shape == (3, 2)
    normal = adapt(torch.distributions.Normal(0.0, 1.0))
    assert [normal(x, 3, rng()).shape for x in (0.0, np.eye(2))] == [(3,), (3, 2, 2)]
    for noise in (each, whole):
        with pytest.raises(ValueError, match=r"x must be of shape \(\) or \(2,\).*got \(3,\)"):
            noise([0.0, 0.0, 0.0], 3, rng())


@pytest.mark.extras
def test_torch_keeps_the_wider_type(torch):
    noise = adapt(torch.distributions.Laplace(0.0, 1.0))
    inputs = np.zeros(1), torch.zeros(1), torch.zeros(1, dtype=torch.bfloat16)
    assert [noise(x, 2, rng()).dtype for x in inputs] == [np.float64, np.float32, np.float32]


def noise_layer(torch, scale):
    class Noise(torch.nn.Module):
        def forward(self, x):
            return x + torch.distributions.Laplace(0.0, scale).sample(x.shape)

    return Noise()


@pytest.mark.extras
def test_a_module_is_run_on_a_batch(torch):
    found = adapt(noise_layer(torch, 2.0))
    assert type(found) is TorchModule
    assert found.name == "TorchModule(Noise())"
    outputs = found(np.array([3.0, -1.0]), 50_000, rng())
    assert (outputs.shape, outputs.dtype) == ((50_000, 2), np.float32)
    assert laplace_ks(outputs - [3.0, -1.0], 2.0) > ALPHA
    assert laplace_ks(outputs - [3.0, -1.0], 2.3) < ALPHA
    assert np.array_equal(outputs, found(np.array([3.0, -1.0]), 50_000, rng()))


@pytest.mark.extras
def test_a_module_keeps_its_mode_and_its_parameters(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3, dtype=torch.float64), torch.nn.Dropout(0.5))
    found = adapt(model)
    trained = found([1.0, 2.0], 100, rng())
    assert (trained.shape, trained.dtype) == ((100, 3), np.float64)
    assert (trained == 0.0).any()
    assert model.training
    model.eval()
    outputs = found([1.0, 2.0], 100, rng())
    assert (outputs == outputs[0]).all()
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.extras
def test_a_module_that_mixes_the_rows_is_refused(torch):
    norm = torch.nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="module must be without a batch norm"):
        adapt(norm)([0.0, 1.0], 4, rng())
    assert adapt(norm.eval())([0.0, 1.0], 4, rng()).shape == (4, 2)


@pytest.mark.extras
def test_integers_and_tensors_reach_a_module_as_they_are(torch):
    assert adapt(torch.nn.Embedding(5, 3))(np.array([1, 4]), 2, rng()).shape == (2, 2, 3)
    kinds = []

    class Seen(torch.nn.Module):
        def forward(self, x):
            kinds.append(x.dtype)
            return x

    for x in (torch.zeros(1, dtype=torch.float64), np.zeros(1), np.zeros(1, dtype=np.int64)):
        adapt(Seen())(x, 2, rng())
    assert kinds == [torch.float64, torch.float32, torch.int64]


@pytest.mark.extras
def test_a_module_that_is_a_mechanism_already_is_left_alone(torch):
    class Mechanism(torch.nn.Module):
        def forward(self, x, size, rng):
            return rng.laplace(size=(size, len(x)))

    assert adapt(Mechanism()) is None


@pytest.mark.extras
def test_torch_is_audited(torch):
    options = {"attack": above_half, "trials": 100_000, "rng": 1}
    for scale, verdict in ((1.0, "not refuted by this attack"), (0.5, "refuted")):
        for obj in (torch.distributions.Laplace(0.0, scale), noise_layer(torch, scale)):
            report = dpcore.audit(adapt(obj), ([0.0], [1.0]), claim=1.0, **options)
            assert report.verdict == verdict
            again = dpcore.audit(adapt(obj), ([0.0], [1.0]), claim=1.0, **options)
            assert again.counts == report.counts
