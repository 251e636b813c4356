"""Equal outputs of different forms: type, decimal places, sign of zero."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from dataclasses import make_dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest
from shared_audits import AUDITS, CONFIDENCE, MOST

import dpcore
from dpcore.bounds import clopper_pearson

PAIR = np.array([0.0]), np.array([1.0])
TRIALS = 2000
EXPERT = clopper_pearson(dpcore.Counts(int(0.9 * TRIALS), TRIALS, int(0.1 * TRIALS), TRIALS))
Flag = enum.IntEnum("Flag", {"A": 1})
First, Second = (make_dataclass(name, ["a"], eq=False) for name in ("First", "Second"))

FORMS = {
    "boolean": (True, 1), "integer": (1, 1.0), "float32": (np.float32(1.0), 1.0),
    "enum": (Flag.A, 1), "decimal": (Decimal("1.0"), Decimal("1.00")), "fraction": (Fraction(1), 1),
    "tuple": ((1,), [1]), "array": (np.ones(1), [1.0]), "dtype": (np.ones(1), np.ones(1, "f4")),
    "set": ({1}, frozenset({1})), "bytes": (b"a", bytearray(b"a")), "order": ({}, OrderedDict()),
    "class": (First(1), Second(1)), "zero": ([0.0], [-0.0]), "text": ("a", np.array(["a"])),
    "frame": (pandas.Series([1.0]), pandas.Series([1.0], dtype="float32")),
}  # fmt: skip
"""Two outputs that most comparisons call equal."""
PLACES = {
    "output": lambda value: value, "key": lambda value: {"a": value},
    "entry": lambda value: [value, 2.5], "inner": lambda value: ({"a": [value]}, 1),
}  # fmt: skip
"""Where the two stand in an output."""


def choose_form(forms, place, shares=(0.9, 0.1), **options):
    """Make a function whose answers have the first form with these probabilities."""
    return dpcore.repeat(
        lambda x, rng: PLACES[place](forms[int(rng.random() >= shares[int(x[0])])]), **options
    )


SLOW_FORMS = [("frame", place) for place in PLACES if place != "output"]
"""Comparing these takes seconds."""


@pytest.mark.parametrize(("name", "place"), [
    pytest.param(name, place, marks=pytest.mark.sweep if (name, place) in SLOW_FORMS else ())
    for name in FORMS for place in PLACES
])  # fmt: skip
def test_a_form_is_a_part_of_the_output(name, place):
    forms = FORMS[name]
    options = {"claim": 1.0, "trials": TRIALS, "rng": 1}
    report = dpcore.audit(choose_form(forms, place), PAIR, **options)
    assert report.refuted
    assert report.epsilon_lower > 0.9 * EXPERT
    private = dpcore.audit(choose_form(forms, place, (0.5, 0.5)), PAIR, **options)
    assert private.refuted is False
    assert private.epsilon_lower < 1.0


@pytest.mark.sweep
@pytest.mark.parametrize("place", ["output", "inner"])
def test_a_form_with_the_loss_of_the_claim_is_not_refuted_too_often(place):
    """200 audits at loss 1, of each form in turn; the control loses 1.4."""
    kinds = list(FORMS.values())

    def count(shares):
        mechanisms = [choose_form(forms, place, shares) for forms in kinds]
        pairs = ((mechanisms[seed % len(kinds)], seed) for seed in range(AUDITS))
        options = {"claim": 1.0, "trials": TRIALS, "confidence": CONFIDENCE}
        return sum(
            dpcore.audit(fn, PAIR, rng=seed, **options).refuted is True for fn, seed in pairs
        )

    assert count((math.e / (1 + math.e), 1 / (1 + math.e))) <= MOST
    assert count((0.8, 0.2)) > MOST


@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS)
def test_a_form_stays_a_part_where_exceptions_are_outputs(forms):
    for shares, is_leaky in (((0.9, 0.1), True), ((0.5, 0.5), False)):
        mechanism = choose_form(forms, "output", shares, catch=ValueError)
        report = dpcore.audit(mechanism, PAIR, claim=1.0, trials=TRIALS, rng=1)
        assert report.refuted is is_leaky
        assert (report.epsilon_lower > 0.9 * EXPERT) is is_leaky


def test_the_count_does_not_depend_on_the_blocks():
    # A block of one form is an array, which has no types of its own.
    counts = set()
    for block in (1, 3, 500):
        mechanism = choose_form(((1, 2.0), [1, 2.0]), "output")
        report = dpcore.audit(mechanism, PAIR, claim=1.0, trials=500, pilot=500, block=block, rng=1)
        counts.add(report.counts.k / report.counts.n > 0.5)
        assert report.refuted, block


def test_a_form_that_follows_from_the_value_adds_nothing():
    def clip(x, rng):
        return max(0, x[0] + rng.laplace())

    report = dpcore.audit(dpcore.repeat(clip), PAIR, claim=1.0, trials=TRIALS, rng=1)
    assert report.refuted is False
    assert 0.6 < report.epsilon_lower <= 1.0


@pytest.mark.parametrize(
    "make",
    [lambda digit, low: Decimal(1) + Decimal(low) / 10**40 + Decimal(digit) / 10**27,
     lambda digit, low: Fraction(10**30 + 1 + 2 * low + digit, 10**30 + 1),
     lambda digit, low: 10**30 + 2 * low + digit],
    ids=["decimal", "fraction", "integer"],
)  # fmt: skip
def test_digits_that_float64_rounds_are_read(make):
    def answer(x, rng):
        return make(int(rng.random() >= (0.99, 0.01)[int(x[0])]), int(rng.integers(2**40)))

    report = dpcore.audit(dpcore.repeat(answer), PAIR, claim=1.0, trials=TRIALS, rng=1)
    assert report.epsilon_lower > 0.75 * math.log(99)
