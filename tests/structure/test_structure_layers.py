"""Layers with a train and an eval mode, with torch and without."""

from __future__ import annotations

import os

import numpy as np
import pytest
from shared_extras import needs

from dpcore.structure import fork_reuse, inspect
from dpcore.structure.faults import Always, TrainingOnly

X = np.linspace(0.0, 1.0, 20)


@pytest.fixture(scope="module")
def torch():
    return needs("torch")


def layer(torch, shape=None, dtype=None, training_only=False):
    """A noise layer as they are written: `shape` maps that of the batch to that of the noise."""

    class Noise(torch.nn.Module):
        def forward(self, x):
            if training_only and not self.training:
                return x
            kind = {"dtype": dtype or torch.float32}
            law = torch.distributions.Laplace(torch.tensor(0.0, **kind), torch.tensor(1.0, **kind))
            return x + law.sample(shape(x.shape) if shape else x.shape)

    return Noise()


def test_the_mode_is_left_as_it_was():
    for training in (True, False):
        one = TrainingOnly(training=training)
        found = inspect(one, X, rng=1, draws=500)
        assert found["modes"].what == "noise in train mode, none in eval mode"
        assert one.training is training
        assert inspect(Always(training=training), X, rng=1, draws=500).passed


def test_noise_of_another_size_in_the_other_mode():
    class Louder(Always):
        def __call__(self, x, size, rng):
            return x + rng.laplace(scale=1.0 if self.training else 1.5, size=(size, len(x)))

    assert inspect(Louder(), X, rng=1, draws=1000).flagged == ("modes",)


def test_a_mode_that_cannot_be_run_is_said():
    class Half(Always):
        def __call__(self, x, size, rng):
            if not self.training:
                raise ArithmeticError("not fitted")
            return super().__call__(x, size, rng)

    one = Half()
    found = inspect(one, X, rng=1, draws=500)
    assert found.passed
    assert found["modes"].what.endswith("not run in eval mode: ArithmeticError: not fitted")
    assert one.training


@pytest.mark.extras
def test_a_torch_layer_is_called_as_it_is(torch):
    found = inspect(layer(torch, dtype=torch.float64), X, rng=1)
    assert found.passed, str(found)
    assert found.dim == 20


@pytest.mark.extras
def test_the_float32_laplace_of_torch_is_on_a_grid(torch):
    for one in (layer(torch), torch.distributions.Laplace(0.0, 1.0)):
        found = inspect(one, X, rng=1)
        assert found.flagged == ("grid",)
        assert "about 2^24 values" in found["grid"].what
    assert inspect(torch.distributions.Normal(0.0, 1.0), X, rng=1).passed


@pytest.mark.extras
def test_shared_draws_in_torch(torch):
    column = inspect(layer(torch, lambda shape: (shape[0], 1)), X, rng=1, draws=500)
    assert {"rank", "correlation"} <= set(column.flagged)
    assert "row minimum returns the clean vector" in column["rank"].what
    row = inspect(layer(torch, lambda shape: shape[1:]), X, rng=1, draws=500)
    assert row.flagged == ("shared_rows",)


@pytest.mark.extras
def test_torch_noise_in_training_only(torch):
    module = torch.nn.Sequential(layer(torch, dtype=torch.float64, training_only=True))
    assert inspect(module, X, rng=1, draws=500).flagged == ("modes",)
    module.eval()
    assert set(inspect(module, X, rng=1, draws=500).flagged) == {"no_noise", "modes"}
    assert not module.training
    # A part that is frozen in a mode of its own stays in it.
    module.train()
    module[0].eval()
    inspect(module, X, rng=1, draws=500)
    assert (module.training, module[0].training) == (True, False)
    assert inspect(layer(torch, dtype=torch.float64).eval(), X, rng=1, draws=500).passed


@pytest.mark.extras
def test_an_input_that_is_a_tensor(torch):
    x = torch.linspace(0.0, 1.0, 20, dtype=torch.float64)
    assert inspect(layer(torch, dtype=torch.float64), x, rng=1, draws=500).passed


@pytest.mark.extras
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_the_generator_of_torch_is_copied_by_a_fork(torch):
    # An audit seeds it for every call; whoever ships the layer does not.
    for one in (layer(torch), torch.distributions.Laplace(0.0, 1.0)):
        assert fork_reuse(one, X, rng=1).flagged

    class Fresh(torch.nn.Module):
        def forward(self, x):
            generator = torch.Generator()
            generator.seed()
            return x + torch.randn(x.shape, generator=generator)

    assert not fork_reuse(Fresh(), X, rng=1).flagged
