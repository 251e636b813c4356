"""Messages of wrong calls of `dpcore.adapters`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from scipy import stats
from shared_messages import check_messages

from dpcore.adapters import adapt


def rng(seed=1):
    return np.random.default_rng(seed)


VALUE_ERRORS = [
    # Adapters: what they find, the law they draw, what they claim, and that they change nothing.
    (lambda: adapt(stats.laplace())([[1.0], [1.0, 2.0]], 3, rng()), "x", "an array of real"),
]  # fmt: skip
TYPE_ERRORS = [
    # Adapters: what they find, the law they draw, what they claim, and that they change nothing.
    (lambda: adapt(stats.laplace), "mechanism", "such as scipy"),
    (lambda: adapt(stats.poisson), "mechanism", "such as scipy"),
    (lambda: adapt(stats.multivariate_normal), "mechanism", "such as scipy"),
    (lambda: adapt(stats.laplace())("text", 3, rng()), "x", "an array of real numbers"),
    (lambda: adapt(stats.laplace())([1j], 3, rng()), "x", "an array of real numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
