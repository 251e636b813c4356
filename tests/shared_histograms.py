"""The histogram attack as its tests call it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from shared_audits import UNIT

from dpcore.attacks import Histogram


def fitted(outputs, outputs_prime, **settings):
    return Histogram(**settings).candidates(outputs, outputs_prime, UNIT)


def naive(outputs, outputs_prime, a):
    """ln((k + a)/(n + a)) - ln((k' + a)/(n' + a)) by a dictionary of rows."""
    sides = [list(map(tuple, np.asarray(s).reshape(len(s), -1).tolist()))
             for s in (outputs, outputs_prime)]  # fmt: skip
    k, k_prime = ({row: side.count(row) for row in set(side)} for side in sides)
    n, n_prime = map(len, sides)
    return {
        row: math.log((k.get(row, 0) + a) / (n + a))
        - math.log((k_prime.get(row, 0) + a) / (n_prime + a))
        for row in set(k) | set(k_prime)
    }


def check(outputs, outputs_prime, others=()):
    """The first table of the histogram against the dictionary, on the pilot and beyond."""
    table = naive(outputs, outputs_prime, 1.0)
    score = fitted(outputs, outputs_prime)[0]
    for side in (outputs, outputs_prime, *others):
        rows = map(tuple, np.asarray(side).reshape(len(side), -1).tolist())
        expected = [table.get(row, 0.0) for row in rows]
        assert score(side) == pytest.approx(expected, abs=1e-12)
    return score
