"""Messages of wrong calls of `dpcore.claims`: the argument, and a word of the remedy."""

from __future__ import annotations

import math
from functools import partial

from shared_messages import check_messages

from dpcore.claims import GDP, RDP, ZCDP, TradeOff

VALUE_ERRORS = [
    *((partial(kind, value), kind.parameter, "a finite number above 0")
      for kind in (GDP, ZCDP) for value in (0.0, -1.0, math.inf, math.nan)),
    # Claims as curves: conversions against closed forms and other packages, rounding, bad input.
    (lambda: RDP([1.0, 2.0], [1.0, 1.0]), "alphas", "finite and above 1 in every entry"),
    (lambda: RDP([3.0, 2.0], [1.0, 1.0]), "alphas", "in rising order, each given once"),
    (lambda: RDP([2.0, 2.0], [1.0, 1.0]), "alphas", "in rising order, each given once"),
    (lambda: RDP([2.0, 3.0], [1.0]), "epsilons", "2 numbers, one for each order"),
    (lambda: RDP([2.0, 3.0], [1.0, -1.0]), "epsilons", "at least 0 in every entry"),
    (lambda: RDP([2.0, 3.0], [1.0, math.nan]), "epsilons", "at least 0 in every entry"),
    (lambda: RDP([2.0], [math.inf]), "epsilons", "finite at one order at least"),
    (lambda: RDP([], []), "alphas", "a non-empty row of numbers"),
    (lambda: TradeOff(lambda a: 1.5), "function(0)", "from 0 to 1 - 0"),
    (lambda: TradeOff(lambda a: 1.0 - a**2), "function(1e-12)", "from 0 to 1 - 1e-12"),
    (lambda: TradeOff(lambda a: 1.0 - a if a < 0.3 else 0.5 * (1.0 - a)), "function(0.299253)",
     "as a convex"),
    (lambda: TradeOff(lambda a: math.nan), "function(0)", "from 0 to 1 - 0"),
    (lambda: TradeOff(epsilons=[1.0], deltas=[1.0]), "deltas", "at least 0 and below 1"),
    (lambda: GDP(1.0).trade_off(1.5), "alpha", "from 0 to 1 in every entry"),
    (lambda: ZCDP(1.0).delta(-1.0), "epsilon", "from 0 to inf in every entry"),
]  # fmt: skip
TYPE_ERRORS = [
    # Claims as curves: conversions against closed forms and other packages, rounding, bad input.
    (lambda: TradeOff(lambda a: "a"), "function(0)", "a number"),
    (lambda: TradeOff(), "function", "given, or epsilons and deltas"),
    (lambda: ZCDP(1.0).epsilon("a"), "delta", "a finite number at least 0 and below 1"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
