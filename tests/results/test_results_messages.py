"""Messages of wrong calls of `dpcore.results`: the argument, and a word of the remedy."""

from __future__ import annotations

from dataclasses import replace

from shared_messages import check_messages
from shared_results import FIRST, OTHER_EVENT, SECOND

from dpcore import Laplace, Pair

VALUE_ERRORS = [
    # Audits of disjoint trials added together, and what each part may hold.
    (lambda: FIRST + replace(SECOND, mechanism=Laplace(1.0)), "mechanism of the second audit",
     "<function noisy"),
    (lambda: FIRST + replace(SECOND, pair=Pair([0.0], [2.0])), "pair of the second audit",
     "Pair(x=array([0.])"),
    (lambda: FIRST + replace(SECOND, attack="mine"), "attack of the second audit",
     "'MajorityVote' as in the first"),
    (lambda: FIRST + replace(SECOND, event=OTHER_EVENT), "event of the second audit",
     "Vote(threshold=array([0.5])"),
    (lambda: FIRST + replace(SECOND, direction=None), "direction of the second audit", "'x_prime"),
    (lambda: FIRST + replace(SECOND, seed=2), "seed of the second audit", "1 as in the first"),
    (lambda: FIRST + replace(SECOND, block=50), "block of the second audit", "100 as in the first"),
    (lambda: FIRST + replace(SECOND, claim=2.0), "claim of the second audit", "1.0 as"),
    (lambda: FIRST + replace(SECOND, claim=None), "claim of the second audit", "1.0 as"),
    (lambda: FIRST + replace(SECOND, delta=0.1), "delta of the second audit", "0.0 as"),
    (lambda: FIRST + replace(SECOND, confidence=0.9), "confidence of the second audit", "0.95 as"),
    (lambda: FIRST + replace(SECOND, shape=()), "shape of the second audit", "1,) as"),
    (lambda: FIRST + replace(SECOND, floats=True), "floats of the second audit", "False as"),
    (lambda: FIRST + replace(SECOND, bound="exact"), "bound of the second audit", "'clopper_pears"),
]  # fmt: skip
TYPE_ERRORS = [
    # Audits of disjoint trials added together, and what each part may hold.
    (lambda: FIRST + 1, "", "unsupported operand"),
    (lambda: FIRST + None, "", "unsupported operand"),
    (lambda: FIRST + FIRST.counts, "", "unsupported operand"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
