"""Mechanisms and published systems: what they state, and what they refuse."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_noises import make_example

import dpcore
from dpcore import published
from dpcore.errors import show
from dpcore.mechanisms import (
    PRIMITIVES,
    ClipStep,
    DPTextNoise,
    Formula,
    Identity,
    Laplace,
    Uniform,
)
from dpcore.mechanisms.declarations import NATIVE, can_core_draw
from dpcore.mechanisms.native import Law, facts_about_noise, log_tails
from dpcore.pairs import distance, zeros_ones

POSITIVE = st.floats(1e-100, 1e100)
DIMS = [1, 2, 3, 8, 32, 49, 128, 1000]


@pytest.mark.parametrize(
    ("system", "dim", "expected"),
    [
        (published.LaplaceMechanism(0.5, 2.0), 3, Formula(Laplace(4.0))),
        (published.ADePT(2.0, 3.0), 4, Formula(Laplace(3.0), ClipStep("l2", 3.0))),
        (published.ADePTClipL1(2.0, 3.0), 4, Formula(Laplace(3.0), ClipStep("l1", 3.0))),
        (published.ADePTScaled(2.0, 3.0), 4, Formula(Laplace(6.0), ClipStep("l2", 3.0))),
        (published.ADePTReference(4.0), 128, Formula(Laplace(0.25))),
        (published.DPText(0.5, 2.0, "keep"), 3, Formula(DPTextNoise(4.0, "keep"))),
        (published.DPTextRepaired(0.5, 2.0), 3, Formula(Laplace(4.0, "centred"))),
        (published.HalvedOutput(0.5, 2.0), 3, Formula(Laplace(4.0), factor=0.5)),
        (published.HalfNoise(0.5, 2.0), 3, Formula(Laplace(2.0))),
    ],
)
def test_steps_are_those_published(system, dim, expected):
    assert (system.steps(dim), system.claim) == (expected, system.epsilon)


def test_every_system_is_in_the_table_above_and_states_its_facts():
    assert len(published.SYSTEMS) == 9
    for cls in published.SYSTEMS:
        assert cls.fault.startswith("nothing: ") is cls.sound
        assert "\n" not in cls.fault
        assert any(year in cls.source for year in ("2014", "2019", "2021", "2022"))
        assert cls.norm in ("l1", "l2", "linf", None)
        assert "__dict__" not in dir(cls(1.0))
    sound = "LaplaceMechanism ADePTClipL1 ADePTScaled DPTextRepaired HalvedOutput"
    assert {cls.__name__ for cls in published.SYSTEMS if cls.sound} == {*sound.split()}


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("cls", published.SYSTEMS)
def test_default_pairs_are_neighbours_at_the_full_distance(cls, dim):
    system = cls(1.0) if cls is published.ADePTReference else cls(1.0, 0.7)
    pair = system.default_pair(dim)
    assert pair.x.shape == pair.x_prime.shape == (dim,)
    gap = distance(pair, cls.norm or system.steps(dim).clip.norm)
    assert (1.0 - 1e-15) * system.sensitivity <= gap <= system.sensitivity


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("cls", [published.ADePT, published.ADePTClipL1, published.ADePTScaled])
@given(radius=POSITIVE)
def test_clipped_pairs_lie_on_their_ball_and_not_beyond(cls, dim, radius):
    system = cls(1.0, radius)
    clip = system.steps(dim).clip
    entries = np.abs(system.default_pair(dim).x).tolist()
    norm = math.fsum(entries) if clip.norm == "l1" else math.hypot(*entries)
    assert (1.0 - 1e-15) * radius <= norm <= radius


def test_scaled_adept_has_noise_for_the_l1_diameter():
    for system, expected in ((published.ADePTScaled(1.0, 2.0), 1.0), (published.ADePT(1.0), 4.0)):
        loss = distance(system.default_pair(16), "l1") / system.steps(16).noise.scale
        assert loss == pytest.approx(expected, rel=1e-15)
    assert published.ADePTReference(1.0).default_pair(5) == zeros_ones(5)


@given(POSITIVE, POSITIVE)
def test_the_scale_is_sensitivity_over_epsilon(epsilon, sensitivity):
    systems = published.LaplaceMechanism, published.HalfNoise
    scales = [system(epsilon, sensitivity).steps(1).noise.scale for system in systems]
    assert scales == [sensitivity / epsilon, sensitivity / 2 / epsilon]


def test_numbers_become_floats():
    assert type(Laplace(np.int64(2)).scale) is float
    assert Laplace(2) == Laplace(2.0)
    assert (Uniform(0, 1).low, Uniform(0, 1).high) == (0.0, 1.0)
    assert type(published.ADePT(1, 2).clip) is float


def test_only_the_exact_types_are_native():
    class Quiet(Laplace):
        pass

    natives = [make_example(cls) for cls in NATIVE.values()]
    assert (*NATIVE.values(),) == PRIMITIVES + published.SYSTEMS
    assert all(map(can_core_draw, natives))
    # A namesake is another class, whether it inherits from the noise or not.
    namesakes = [type("Laplace", (Laplace,), {})(1.0), type("Laplace", (), {})()]
    others = [Quiet(1.0), *namesakes, Laplace, ClipStep("l1", 1.0), lambda x, size: x, None]
    assert not any(map(can_core_draw, others))
    with pytest.raises(TypeError, match=r"^noise must be one of dpcore's primitives, got "):
        Formula(Quiet(1.0))


def test_primitives_are_frozen_hashable_and_do_only_their_noise():
    for noise in (Laplace(1.0), Identity(), Uniform(0.0, 1.0)):
        assert noise.steps(7) == Formula(noise, None, 1.0)
        assert hash(noise) == hash(dataclasses.replace(noise))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Laplace(1.0).scale = 2.0
    assert show(Laplace(1.0)) == "Laplace(scale=1.0, variant='two_branch')"


def test_only_the_exact_class_has_a_law():
    class Louder(dpcore.Laplace):
        pass

    assert facts_about_noise(dpcore.Laplace(1.0)).cost is not None
    assert facts_about_noise(Louder(1.0)) == Law()
    assert log_tails(Louder(1.0), np.zeros(2), True) is None
    assert dpcore.exact.vote_loss(Louder(1.0), dpcore.Pair([0.0], [1.0])) is None


def test_native_noise_stands_in_the_order_of_its_table_and_published_shows_its_own_names():
    names = "Laplace Gaussian Exponential Uniform Identity RandomBits DPTextNoise"
    assert [cls.__name__ for cls in PRIMITIVES][:7] == names.split()
    own = [*(cls.__name__ for cls in published.SYSTEMS), "SYSTEMS"]
    assert sorted(published.__all__) == sorted(own) == sorted(dir(published))
    # What could be imported from here before still can.
    assert published.Laplace is dpcore.Laplace
