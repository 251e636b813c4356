"""Noise layers told what they cannot do."""

from __future__ import annotations

import inspect
import math

import pytest
from shared_extras import needs

torch = needs("torch")
from dpcore import torch as package  # noqa: E402
from dpcore.torch import (  # noqa: E402
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    NoiseLayer,
    SharedNoise,
)

LAYERS = [LaplaceNoise, L2LaplaceNoise, DPTextNoiseLayer, SharedNoise, GaussianNoise]


def test_what_draws_says_first_that_it_is_not_for_releases():
    exported = [getattr(package, name) for name in package.__all__]
    layers = [one for one in exported if inspect.isclass(one) and issubclass(one, NoiseLayer)]
    assert {NoiseLayer, *LAYERS} == set(layers)
    for thing in (package, *layers):
        first = inspect.getdoc(thing).split("\n\n")[1]
        assert first.startswith("For audits and experiments, not for releasing data: ")


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e301])
def test_a_scale_out_of_range(kind, value):
    name = "sigma" if kind is GaussianNoise else "scale"
    with pytest.raises(ValueError, match=f"{name} must be a finite number above 0 and at most"):
        kind(value)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("value", ["1", True, [1.0], 1j])
def test_a_scale_of_another_kind(kind, value):
    with pytest.raises(TypeError, match="must be a finite number above 0"):
        kind(value)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_scale_that_is_a_tensor(kind):
    for value in (torch.tensor(1.0), torch.tensor(1.0, requires_grad=True)):
        with pytest.raises(TypeError, match="a number, not a tensor"):
            kind(value)


@pytest.mark.parametrize("kind", LAYERS)
def test_inputs_that_are_no_floating_point_tensors(kind):
    requirement = "x must be a tensor of float64, float32, bfloat16 or float16"
    for x in (
        torch.zeros(2, dtype=torch.int64),
        torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2, dtype=torch.bool),
        [0.0, 1.0],
        "text",
    ):
        with pytest.raises(TypeError, match=requirement):
            kind(1.0)(x)


def test_a_single_number_has_no_rows():
    with pytest.raises(ValueError, match=r"x must be of a shape \(..., dim\), got \(\)"):
        L2LaplaceNoise(1.0)(torch.tensor(0.0))
    assert LaplaceNoise(1.0)(torch.tensor(0.0)).shape == ()


def test_nan_stays_visible():
    x = torch.tensor([math.nan, math.inf, 0.0])
    found = LaplaceNoise(1.0)(x)
    assert found.isnan().tolist() == [True, False, False]
    assert found.isinf().tolist() == [False, True, False]


def test_a_learnt_epsilon_that_left_its_range():
    layer = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True)
    for value in (-0.5, 0.0, math.nan):
        layer.epsilon.data.fill_(value)
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
            layer(torch.zeros(2))
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
            _ = layer.scale
    layer.epsilon.data = torch.tensor(0.1, dtype=torch.float16)
    with pytest.raises(ValueError, match="epsilon must be of float64"):
        layer(torch.zeros(2))


def test_the_scale_cannot_be_set_by_the_way():
    with pytest.raises(AttributeError):
        LaplaceNoise(1.0).scale = 2.0
    with pytest.raises(KeyError):
        LaplaceNoise(1.0).scale = torch.nn.Parameter(torch.tensor(1.0))


def test_states_of_another_layer_or_that_something_has_cast():
    layer, learnt = LaplaceNoise(1.0), LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True)
    for state in (torch.tensor([0.1]), torch.tensor([0.1, 0.2], dtype=torch.float64)):
        with pytest.raises(ValueError, match="the state of LaplaceNoise must be a tensor of 1 flo"):
            layer.load_state_dict({"_extra_state": state})
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        layer.load_state_dict({"_extra_state": torch.tensor([-1.0], dtype=torch.float64)})
    with pytest.raises(TypeError, match="the state of LaplaceNoise must be"):
        layer.load_state_dict({"_extra_state": {"scale": 1.0}})
    with pytest.raises(ValueError, match="as a layer of fixed scale saves it"):
        layer.load_state_dict(learnt.state_dict())
    assert layer.scale == 1.0
