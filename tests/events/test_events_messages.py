"""Messages of wrong calls of `dpcore.events`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from shared_messages import check_messages

from dpcore.events import Vote
from dpcore.pairs import zeros_ones
from dpcore.records import Pair

RECORD = Vote.between(zeros_ones(1)).to_dict()

VALUE_ERRORS = [
    # The majority-vote event against a naive loop, and what it refuses.
    (lambda: Vote.between(Pair([1.0, 2.0], [1.0, 2.0])), "pair", "different in at least one entry"),
    (lambda: Vote.between(Pair([1.0], [1.0, 2.0])), "pair", "two inputs of equal shape"),
    (lambda: Vote.between(Pair([], [])), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair([np.nan], [1.0])), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair([1.0], [np.inf])), "x_prime", "a non-empty vector of finite"),
    (lambda: Vote.between(Pair(0.0, 1.0)), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair(np.zeros((1, 1)), [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote.between(Pair([[1.0], [1.0, 2.0]], [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote([0.5], [1], "y"), "vote", "one of 'x_prime', 'x'"),
    (lambda: Vote([0.5], [0]), "towards", "made of -1, 0 and 1 and not all 0"),
    (lambda: Vote([0.5], [2]), "towards", "made of -1, 0 and 1 and not all 0"),
    (lambda: Vote([0.5], [1, 1]), "towards", "of shape (1,) like threshold"),
    (lambda: Vote([np.nan], [1]), "threshold", "a non-empty vector of finite numbers"),
    (lambda: Vote.from_dict({**RECORD, "extra": 1}), "record", "a mapping with the keys"),
    (lambda: Vote.from_dict({**RECORD, "event": "Above"}), "event", "one of 'Vote'"),
]  # fmt: skip
TYPE_ERRORS = [
    # The majority-vote event against a naive loop, and what it refuses.
    (lambda: Vote.between(Pair("a", "b")), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair(np.array([1j]), [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote.between(zeros_ones(1))([["a"]]), "outputs", "real numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
