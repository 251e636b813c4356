"""What `inspect` and `audit` find in the layers: nothing in the right ones, the faults in others.

Measured in full: `DPCORE_AUDITS=20` audits of 16-bit outputs, five seeds of every inspection.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats
from shared_extras import needs

import dpcore
from dpcore.structure import FAULTS, inspect

torch = needs("torch")
from dpcore.torch import (  # noqa: E402
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    SharedNoise,
)

AUDITS = int(os.environ.get("DPCORE_AUDITS", "3"))
ALPHA = 1e-6
X = np.linspace(0.0, 1.0, 20)
LEARNT = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True, cap=2.0)

RIGHT = [
    (LaplaceNoise(1.0), ()),
    (GaussianNoise(1.0), ()),
    (L2LaplaceNoise(1.0), ("shared_size",)),
    (LEARNT, ()),
]
WRONG = {
    "shared_draw": SharedNoise(1.0),
    "dptext": DPTextNoiseLayer(1.0),
    "dptext_drawn_again": DPTextNoiseLayer(1.0, nan="resample"),
}


class Cast(torch.nn.Module):
    """A layer behind an encoder of another dtype."""

    def __init__(self, layer, dtype):
        super().__init__()
        self.layer, self.dtype = layer, dtype

    def forward(self, x):
        return self.layer(x.to(self.dtype))


class TorchLaplace(torch.nn.Module):
    def forward(self, x):
        law = torch.distributions.Laplace(torch.zeros((), dtype=x.dtype), 1.0)
        return x + law.sample(x.shape)


def pair(dim=1):
    return np.zeros(dim, np.float32), np.ones(dim, np.float32)


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize(("layer", "skip"), RIGHT, ids=lambda value: type(value).__name__)
def test_right_layers_pass(layer, skip, seed):
    found = inspect(layer, X, rng=seed, skip=skip, draws=2000)
    assert found.passed, str(found)


def test_the_size_of_l2_noise_is_shared_by_its_coordinates():
    assert inspect(L2LaplaceNoise(1.0), X, rng=1, draws=2000).flagged == ("shared_size",)


@pytest.mark.parametrize("name", WRONG)
def test_faults_are_flagged_as_the_list_of_faults_says(name):
    fault = next(fault for fault in FAULTS if fault.name == name)
    assert inspect(WRONG[name], fault.x, rng=1).flagged == fault.flagged_by
    assert WRONG[name].faulty


@pytest.mark.parametrize("layer", [layer for layer, _ in RIGHT], ids=lambda one: type(one).__name__)
def test_rounding_to_float32_leaves_nothing_to_find(layer):
    # Cast: numpy's inputs take the dtype of a module's parameters, which a learnt epsilon has.
    report = dpcore.audit(Cast(layer, torch.float32), pair(), claim=1.0, trials=10**6, rng=1)
    assert report.floating_point is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_shows_where_the_sum_keeps_the_noise(dtype):
    # Measured: 11.2 for each of them.
    layer = Cast(TorchLaplace() if dtype == torch.float32 else LaplaceNoise(1.0), dtype)
    report = dpcore.audit(layer, pair(), claim=1.0, trials=10**6, rng=1)
    assert report.floating_point.epsilon_lower > 5.0
    assert not report.refuted


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [1, 4])
def test_audits_of_16_bits_at_their_epsilon(dtype, dim):
    layer = Cast(LaplaceNoise(1.0), dtype)
    refuted = [
        dpcore.audit(layer, pair(dim), claim=float(dim), trials=10**5, rng=100 + seed).refuted
        for seed in range(AUDITS)
    ]
    # Each is refuted by chance with 5 % at most.
    assert sum(refuted) <= stats.binom.isf(ALPHA, AUDITS, 0.05)
    assert dpcore.audit(layer, pair(dim), claim=0.4 * dim, trials=10**5, rng=1).refuted
