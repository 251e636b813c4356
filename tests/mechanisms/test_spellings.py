"""Lines of tools: equal values that were written in different ways."""

from __future__ import annotations

import json
import math
import pickle
import random
import sys

import numpy as np
import pytest
from shared_audits import AUDITS, CONFIDENCE, MOST

import dpcore
from dpcore.attacks.objects import form_of
from dpcore.bounds import clopper_pearson
from dpcore.mechanisms.answers import rows_to_objects, to_outputs
from dpcore.mechanisms.spellings import parse_line, parse_output

PAIR = np.array([0]), np.array([1])
TRIALS = 1000
EXPERT = clopper_pearson(dpcore.Counts(int(0.9 * TRIALS), TRIALS, int(0.1 * TRIALS), TRIALS))
LINES = {
    "boolean": ("true", "1"), "integer": ("1", "1.0"), "zero": ("0", "-0"), "plus": ("1", "+1"),
    "decimals": ("1.5", "1.50"), "exponent": ("1e5", "1E5"), "range": ("1e400", "1e500"),
    "underflow": ("1e-400", "1e-500"), "digits": ("0.1234567890123456789", "0.1234567890123456788"),
    "more digits": ("0.1", "0.10000000000000001"), "end": ("[0.1]", "[0.10000000000000001]"),
    "last digit": ("0.90000000000000002", "0.90000000000000003"),
    "sixteen digits": ("0.9007199254740993", "0.90071992547409926"),
    "large digits": ("1.23456789012345678901e+30", "1.23456789012345678902e+30"),
    "name": ("nan", "NaN"), "number end": ("1", "1\r"), "text end": ("a", "a\r"),
    "null end": ("null", "null\r"), "quotes": ("a", '"a"'), "spaces": ('{"a":1}', '{"a": 1}'),
    "inner spaces": ('{"a": [1,2], "b": "c, d"}', '{"a": [1, 2], "b": "c, d"}'),
    "key order": ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'), "keys": ('{"a": 1}', '{"a": 2, "a": 1}'),
    "escape": ('["a"]', '["\\u0061"]'), "letter": ('["\u00e9"]', '["\\u00e9"]'),
    "document end": ("[1]", "[1]\r"), "inner decimals": ("[1.5]", "[1.50]"),
    "inner zero": ('{"a": 0}', '{"a": -0}'), "inner range": ("[1e400]", "[1e500]"),
}  # fmt: skip
"""Two lines that hold equal values, or values that a float64 makes equal."""


def write_lines(lines, shares=(0.9, 0.1)):
    """Make a mechanism that reads the first of two lines with a probability for each input."""

    def tool(x, size, rng):
        return parse_output([lines[i] for i in (rng.random(size) >= shares[x[0]]).astype(int)])

    return tool


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_the_spelling_of_a_line_is_a_part_of_the_output(lines):
    options = {"claim": 1.0, "trials": TRIALS, "rng": 1}
    report = dpcore.audit(write_lines(lines), PAIR, **options)
    assert report.refuted
    assert report.epsilon_lower > 0.9 * EXPERT
    private = dpcore.audit(write_lines(lines, (0.5, 0.5)), PAIR, **options)
    assert private.refuted is False
    assert private.epsilon_lower < 1.0


@pytest.mark.sweep
def test_a_spelling_with_the_loss_of_the_claim_is_not_refuted_too_often():
    """200 audits at loss 1, of each two lines in turn; the control loses 1.4."""
    kinds = list(LINES.values())

    def count(shares):
        mechanisms = [write_lines(lines, shares) for lines in kinds]
        pairs = ((mechanisms[seed % len(kinds)], seed) for seed in range(AUDITS))
        options = {"claim": 1.0, "trials": TRIALS, "confidence": CONFIDENCE}
        return sum(
            dpcore.audit(fn, PAIR, rng=seed, **options).refuted is True for fn, seed in pairs
        )

    assert count((math.e / (1 + math.e), 1 / (1 + math.e))) <= MOST
    assert count((0.8, 0.2)) > MOST


FORMATS = {
    "shortest": repr, "fixed": "{:.6f}".format, "long": "{:.17f}".format, "general": "{:g}".format,
    "every digit": "{:.17g}".format, "every digit, line ends": "{:.17g}\r".format,
    "scientific": "{:.3e}".format, "wide": "{:8.3f}".format, "rounded": lambda v: repr(round(v, 1)),
    "whole": lambda v: repr(round(v, 1) + 0.0).removesuffix(".0"),
    "int": lambda v: str(round(9 * v)), "line ends": lambda v: f"{v!r}\r",
    "fixed, line ends": "{:.2f}\r".format,
}  # fmt: skip


def draw_lines(kind, size, shift=0.0):
    rng = random.Random(1)
    return [FORMATS[kind](shift + rng.gauss(0.0, 1.0)) for _ in range(size)]


@pytest.mark.parametrize("kind", FORMATS)
def test_numbers_of_one_format_are_an_array_that_restores_their_forms(kind):
    lines = draw_lines(kind, 2000)
    outputs = to_outputs("outputs", parse_output(lines), len(lines))
    assert outputs.dtype.kind == ("i" if kind == "int" else "f")
    assert outputs.tolist() == list(map(float, lines))
    # A form follows from the line alone, whatever stands in other lines of the block.
    forms = [form_of(parse_line(line)) for line in lines]
    assert list(map(form_of, rows_to_objects(outputs))) == forms
    lines[7] = "1e500"
    mixed = to_outputs("outputs", parse_output(lines), len(lines))
    forms[7] = 'written "1e500"'
    assert list(map(form_of, mixed)) == forms


@pytest.mark.parametrize(
    "form", ["%.2f", "%r", "%g", "%.17g", "%8.3f", "%.2e", "whole", '{"a": %.3f}', "[%.2f,1]"]
)
def test_a_spelling_that_follows_from_the_value_adds_nothing(form):
    def tool(x, size, rng):
        values = (x[0] + rng.laplace(size=size)).tolist()
        if form == "whole":
            return parse_output([repr(round(value, 2)).removesuffix(".0") for value in values])
        return parse_output([form % value for value in values])

    report = dpcore.audit(tool, PAIR, claim=1.0, trials=4000, rng=1)
    assert report.refuted is False
    assert 0.75 < report.epsilon_lower <= 1.0
    assert "written" not in str(report.event)


CAUGHT = """
import os, random, sys
rng, share = random.Random(os.environ["DPCORE_SEED"]), (0.9, 0.1)[int(sys.argv[1][1])]
if rng.random() < 0.1:
    sys.exit(3)
sys.stdout.buffer.write(b"1.50\\r\\n" if rng.random() < share else b"1.50\\n")
"""


def test_caught_statuses_leave_other_answers_their_spelling():
    code = [sys.executable, "-S", "-E", "-c", CAUGHT, "{x}", "{size}"]
    tool = dpcore.command(code, catch=3)
    outputs = to_outputs("outputs", tool([0], 40, np.random.default_rng(1)), 40)
    assert {form_of(output) for output in outputs} == {
        "Raised", 'written "0.00"', 'written "0.00\\r"'
    }  # fmt: skip


def test_lists_within_lists_are_read():
    for depth in (20, 900, 990, 5000):
        for opening, end in ("[]", ('{"a":', "}")):
            parse_output([opening * depth + "1.50" + end * depth])


def test_values_with_a_spelling_are_values():
    for line in ("1.50", "-0", '"a"', '{"a":[1.50]}', "[1,2]"):
        value = parse_line(line)
        assert value == json.loads(line)
        copy = pickle.loads(pickle.dumps(value))
        assert (copy, form_of(copy), repr(copy)) == (value, form_of(value), repr(value))
        assert form_of(value) in repr(value)
