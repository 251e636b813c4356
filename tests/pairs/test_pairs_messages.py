"""Messages of wrong calls of `dpcore.pairs`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from shared_messages import check_messages

from dpcore import Pair
from dpcore.pairs import L1, AddRemove, Box, Linf, Records, Replace, drive, patterns, search

BOX = Box(0, 1, 2)

PLAN, RNG = search(BOX, L1(1.0)), np.random.default_rng(1)

VALUE_ERRORS = [
    # The usual pairs, neighbour relations and domains.
    (lambda: patterns(0, "all"), "dim", "an integer at least 1"),
    (lambda: patterns(2, "some"), "which", "one of 'one', 'all'"),
    (lambda: Box(1, 0, 2), "high", "a finite number at least 1"),
    (lambda: Box(0, np.inf, 2), "high", "a finite number"),
    (lambda: Box(-1e308, 1e308, 2), "high", "at a finite distance from low"),
    (lambda: Box(0, 1, 0), "dim", "an integer at least 1"),
    (lambda: Box(0.5, 2, 1, True), "low", "a whole number"),
    (lambda: Box(0, 2.0**54, 1, True), "high", "a whole number"),
    (lambda: Linf(0.0), "radius", "a finite number above 0"),
    (lambda: Replace(()), "values", "at least one record"),
    (lambda: AddRemove(()), "values", "at least one record"),
    (lambda: Records((), 2), "values", "at least one record"),
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: PLAN.propose([], RNG), "best", "at least one pair"),
    (lambda: search(Box(0.5, 0.5, 2), L1(1.0)).start(RNG), "domain", "large enough to hold two"),
    (lambda: search(Box(0, 5, 2, integers=True), L1(0.5)).start(RNG), "domain", "large enough"),
    (lambda: drive(PLAN, lambda *_: float("nan"), RNG), "merit of a pair", "a real number"),
    (lambda: search(BOX, L1(1.0), rounds=0), "rounds", "an integer at least 1"),
    (lambda: search(BOX, L1(1.0), budget="many"), "budget", "a whole number"),
    (lambda: search(BOX, L1(1.0), budget=511), "budget", "at least rounds x candidates = 512, got"),
]  # fmt: skip
TYPE_ERRORS = [
    # The usual pairs, neighbour relations and domains.
    (lambda: patterns(2.0, "all"), "dim", "an integer"),
    (lambda: patterns(2), "", "missing 1 required positional argument"),
    (lambda: patterns(2, 1), "which", "one of"),
    (lambda: Box("0", 1, 2), "low", "a finite number"),
    (lambda: Box(0, 2, 1, 1), "integers", "True or False"),
    (lambda: Replace("ab"), "values", "a list or tuple"),
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: PLAN.start(1), "rng", "a Generator"),
    (lambda: PLAN.propose([(Pair([0, 0], [0, 1]), 1.0)], 1), "rng", "a Generator"),
    (lambda: search(Records(("a",), 2), L1(1.0)).start(RNG), "domain", "one of vectors"),
    (lambda: drive(None, lambda pair, size: 0.0, RNG), "plan", "a Search"),
    (lambda: drive(PLAN, 0.0, RNG), "evaluate", "a callable"),
    (lambda: drive(PLAN, lambda *_: "good", RNG), "merit of a pair", "a real number"),
    (lambda: search(3, L1(1.0)), "domain", "a domain with dim, draw and contains, got 3"),
    (lambda: search(Box, L1(1.0)), "domain", "contains, an instance and not the class"),
    (lambda: search(BOX, L1), "neighbour", "a neighbour relation"),
    (lambda: search(BOX, L1(1.0), candidates=1.5), "candidates", "an integer"),
]  # fmt: skip
ZERO_DIVISION_ERRORS = [
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: drive(PLAN, lambda *_: 1 / 0, RNG), "", "division by zero"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(ZeroDivisionError, ZERO_DIVISION_ERRORS)
