"""Messages of wrong calls of `dpcore.sampling`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from shared_messages import check_messages

from dpcore import Laplace, sample

NOISE = Laplace(1.0)

VALUE_ERRORS = [
    # `dpcore.sample`: what it accepts, what it refuses and in which words.
    (lambda: sample(NOISE, np.zeros(10), 3, out=np.zeros((10, 3)).T), "out", "C-contiguous"),
    (lambda: sample(NOISE, np.zeros(3), 10, out=np.zeros((10, 3), order="F")), "out",
     "C-contiguous"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
