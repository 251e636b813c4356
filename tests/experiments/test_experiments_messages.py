"""Messages of wrong calls of `dpcore.experiments`: the argument, and a word of the remedy."""

from __future__ import annotations

import math

import numpy as np
from shared_messages import check_messages

from dpcore import _core
from dpcore.experiments import dp_sniper_table as truth
from dpcore.experiments.dp_sniper_table import mechanisms

VALUE_ERRORS = [
    # The benchmark's mechanisms: exact laws, with controls that must fail; the published figures.
    (lambda: mechanisms.laplace_single([1.0, 2.0], 10, np.random.default_rng(1)), "x", "a vector"),
    (lambda: mechanisms.truncated_geometric([1.5], 10, np.random.default_rng(1)), "x", "a whole"),
    (lambda: mechanisms.rappor([3], 10, np.random.default_rng(1)), "x", "0, 1 or 2, whose filters"),
    (lambda: mechanisms.svt1([math.nan], 10, np.random.default_rng(1)), "x", "a non-empty vector"),
    (lambda: truth.exact_supremum("SVT7", []), "name", "one of 'Laplace', 'TruncatedGeometric"),
    # The share of pairs that ADePT's noise does not protect: counts, comparison, files.
    (lambda: _core.pairs_beyond(("cauchy", 1.0), ("l2", 1.0), 2, 10, 1, 1), "law", '"uniform" or'),
    (lambda: _core.pairs_beyond(("normal", 0.0), ("l2", 1.0), 2, 10, 1, 1), "spread", "a number"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("linf", 1.0), 2, 10, 1, 1), "norm",
     '"l1" or "l2"'),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 0.0), 2, 10, 1, 1), "radius", "a number"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 1.0), 0, 10, 1, 1), "dim",
     "from 1 to 4096"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 1.0), 2, 10, 1, 0), "threads",
     "from 1 to 1024"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: mechanisms.laplace_single(["a"], 10, np.random.default_rng(1)), "x", "a non-empty"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
