"""Native noise: its laws belong to exact classes, and its lists are in order."""

from __future__ import annotations

import numpy as np

import dpcore
from dpcore import mechanisms, published
from dpcore.mechanisms.native import Law, law_of, log_votes


def test_only_the_exact_class_has_a_law():
    class Louder(dpcore.Laplace):
        pass

    assert law_of(dpcore.Laplace(1.0)).cost is not None
    assert law_of(Louder(1.0)) == Law()
    assert log_votes(Louder(1.0), np.zeros(2), True) is None
    assert dpcore.exact.vote_loss(Louder(1.0), dpcore.Pair([0.0], [1.0])) is None


def test_native_noise_stands_in_the_order_of_its_table():
    names = "Laplace Gaussian Exponential Uniform Identity RandomBits DPTextNoise"
    assert [cls.__name__ for cls in mechanisms.PRIMITIVES] == names.split()


def test_published_shows_its_own_names():
    own = [*(cls.__name__ for cls in published.SYSTEMS), "SYSTEMS"]
    assert sorted(published.__all__) == sorted(own) == sorted(dir(published))
    # What could be imported from here before still can.
    assert published.Laplace is dpcore.Laplace
