"""The messages of wrong calls of an audit: what they name, and what they say to do."""

from __future__ import annotations

import numpy as np
from shared_messages import check_messages

import dpcore


def one_noise(x, size, rng):
    """One noise for all rows of a call."""
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))


def noise(x, size, rng):
    return x + rng.laplace(size=(size, 1))


PAIR = ([0.0], [1.0])

VALUE_ERRORS = [
    (lambda: dpcore.audit(noise, PAIR, attack="treshold"), "attack", "one of"),
    (lambda: dpcore.audit(noise, PAIR, bound="clopper"), "bound", "did you mean"),
    (lambda: dpcore.audit(one_noise, PAIR, trials=1000, claim=1.0), "", "size"),
    (lambda: dpcore.audit(noise, PAIR, rng=-1), "rng", "an integer from 0"),
    (lambda: dpcore.audit(noise, PAIR, trials=0.5), "trials", "a whole number"),
    (lambda: dpcore.repeat(lambda: 1.0), "fn", "a lambda"),
    (lambda: dpcore.audit(noise, claim=1.0), "pair", "two inputs"),
]
TYPE_ERRORS = [
    (lambda: dpcore.plan(None, mechanism=noise, pair=PAIR), "claim", "given"),
    (lambda: dpcore.audit(noise, PAIR, trails=3), "", "did you mean 'trials'"),
    (lambda: dpcore.audit(dpcore.Laplace, PAIR), "mechanism", "an instance"),
    (lambda: dpcore.audit(lambda x: x, PAIR), "mechanism", "dpcore.repeat"),
    (lambda: dpcore.audit_outputs([0.0], rows="independent"), "outputs_prime", "label="),
    (lambda: dpcore.audit_outputs([0.0], [1.0]), "rows", "independent"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
