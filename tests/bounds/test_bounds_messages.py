"""Messages of wrong calls of `dpcore.bounds`: the argument, and a word of the remedy."""

from __future__ import annotations

import math

from shared_messages import check_messages

from dpcore.attacks import choose
from dpcore.bounds import (
    Band,
    Martingale,
    anytime,
    berger_boos,
    clopper_pearson,
    conditional,
    delta_lower,
    detectable,
    epsilon_lower_at,
    every_coordinate,
    limits,
    mu_lower,
    one_run,
    one_run_fdp,
    predicted,
    tradeoff_band,
)
from dpcore.bounds.binomial import Declared
from dpcore.events import Vote
from dpcore.exact import vote_loss
from dpcore.mechanisms import Laplace
from dpcore.pairs import distance
from dpcore.records import Counts

COUNTS = Counts(900, 1000, 100, 1000)

VALUE_ERRORS = [
    # A bound for a delta of its own refuses the others.
    (
        lambda: Declared(title="a", deltas="zero").check_bound_allows_delta("a", 0.1),
        "bound",
        "another than 'a'",
    ),
    (
        lambda: Declared(title="a", deltas="positive").check_bound_allows_delta("a", 0.0),
        "delta",
        "above 0 for",
    ),
    # A bound is its own file and its re-export: a toy works everywhere, then a step is left out.
    (lambda: Declared(title=""), "title", "not empty"),
    (lambda: Declared(title="a title", deltas="some"), "deltas", "one of 'any', 'zero'"),
    (lambda: Declared(title="a title", rows="odd"), "rows", "one of 'independent', 'one_run'"),
    # Clopper-Pearson limits against their definition, in 60 digits where doubles give out.
    (lambda: clopper_pearson(Counts(1, 2, 1, 2), 1.0, 0.9), "delta", "at least 0 and below 1"),
    (lambda: clopper_pearson(Counts(1, 2, 1, 2), 0, 0), "confidence", "above 0 and below 1"),
    (lambda: limits(4, 3, 0.1), "k", "an integer from 0 to 3"),
    (lambda: limits(1, 3, 0.0), "alpha", "a finite number above 0 and below 1"),
    # Bounds at every look: each bet is fair under the claim, and looking 200 times overclaims not.
    (lambda: anytime(Counts(1, 2, 1, 3)), "n_prime", "2 like n at every"),
    (lambda: Martingale(-1.0), "claim", "a finite number at least 0"),
    (lambda: Martingale(1.0, 1.0), "delta", "a finite number at least 0 and below 1"),
    (lambda: Martingale(1.0).update(3, 1, 2), "k", "an integer from 0 to 2"),
    (lambda: Martingale(1.0).update(1, 1, 0), "n", "an integer at least 1"),
    (lambda: Martingale(1.0).update(1, 1, 2, predicted=(0.5, 2)), "predicted q", "a finite"),
    (lambda: Martingale(1.0).refuted(1.0), "confidence", "a finite number above 0 and below 1"),
    # Bounds from one run: the theorems' own formulas, and coverage where the truth is known.
    (lambda: one_run(11, 0, 10), "guesses", "an integer from 1 to 10"),
    (lambda: one_run(5, 6, 10), "correct", "an integer from 0 to 5"),
    (lambda: one_run(5, 5, 10, 1.0), "delta", "a finite number at least 0 and below 1"),
    (lambda: one_run(5, 5, 10, 0.1, 0.0), "confidence", "a finite number above 0 and below 1"),
    (lambda: one_run_fdp(5, 5, 10, 0.0), "delta", "a finite number above 0"),
    # The conditional bound: exact for a fair coin, conservative for fixed sides, by enumeration.
    (lambda: conditional(Counts(1, 2, 1, 2), 0.1), "delta", "0 (given the number of hits"),
    (lambda: conditional(Counts(1, 2, 1, 2), 0.0, 0.5), "confidence", "6 for fixed"),
    (lambda: conditional(Counts(1, 2, 1, 2), sides="odd"), "sides", "one of 'fixed', 'coin"),
    # The unconditional bound: sound by enumeration, sharp by its figures, bounded and not sampled.
    (lambda: berger_boos(Counts(1, 2, 1, 2), 1.0), "delta", "below 1"),
    (lambda: berger_boos(Counts(1, 2, 1, 2), 0.0, 1.0), "confidence", "a finite number above 0"),
    # The registry, the prediction of a bound, independent coordinates, and what would be found.
    (lambda: predicted([11], 10, [0], 10, 5), "k", "from 0 to n in every entry"),
    (lambda: predicted([1], 10, [-1], 10, 5), "k_prime", "from 0 to n_prime"),
    (lambda: predicted([1], 0, [0], 10, 5), "n", "at least 1"),
    (lambda: predicted([1, 2], [10] * 3, [0], 10, 5), "k", "of a shape that fits n"),
    (lambda: predicted([1, 2], 10, [0] * 3, 10, 5), "k_prime", "of a shape that fits k, (2,)"),
    (lambda: predicted([1], 10, [0], 10, 0), "trials", "a whole number at least 1 and below"),
    (lambda: predicted([1], 10, [0], 10, 5, 1.0), "delta", "a finite number at least 0"),
    (lambda: every_coordinate([], []), "pooled", "a non-empty sequence"),
    (lambda: every_coordinate([Counts(1, 2, 1, 2)], [1, 2]), "multiplicities", "of length 1"),
    (lambda: every_coordinate([Counts(1, 2, 1, 2)], [0]), "multiplicities", "an integer"),
    (lambda: detectable(0, 1.0, 0.1), "n", "a whole number at least 1 and below"),
    (lambda: detectable(10, -1.0, 0.1), "claim", "a finite number at least 0"),
    (lambda: detectable(10, 1.0, 0.0), "mass", "a finite number above 0 and at most 1"),
    (lambda: detectable(10, 1.0, 0.1, clopper_pearson, 0.0, 0.9, 1.0), "power", "a finite"),
    (lambda: detectable(10, 1.0, 0.1, lambda *a: math.nan), "bound", "a function that returns"),
    # One event, all notions; the band on the trade-off curve lies above the curve as often as said.
    (lambda: tradeoff_band([1, 2], 2, [1, 0], 2), "k", "from 0 to 2 and"),
    (lambda: tradeoff_band([3], 2, [1], 2), "k", "from 0 to 2"),
    (lambda: tradeoff_band([1], 2, [1, 0], 2), "k_prime", "of shape (1,)"),
    (lambda: tradeoff_band([1], 2, [1], 2, 0.9, "ks"), "method", "one of"),
    (lambda: tradeoff_band([1], 0, [1], 2), "n", "an integer at least 1"),
    (lambda: delta_lower(COUNTS, -1.0), "epsilon", "from 0 to inf"),
    (lambda: delta_lower(COUNTS, [math.nan]), "epsilon", "from 0"),
    (lambda: epsilon_lower_at(COUNTS, [1.0]), "delta", "below 1"),
    (lambda: Band([0.5], [1.5], 0.9, "dkw"), "type_two", "from 0 to 1"),
    (lambda: Band([0.5], [0.5, 0.2], 0.9, "dkw"), "type_two", "of shape"),
    (lambda: Band([0.5], [0.5], 0.9, "dkw").at(2.0), "type_one", "from 0"),
]  # fmt: skip
TYPE_ERRORS = [
    # A bound is its own file and its re-export: a toy works everywhere, then a step is left out.
    (lambda: Declared(title=3), "title", "a str"),
    (lambda: Declared(title="a title")(3), "bound", "a function (counts, delta, confidence)"),
    (lambda: Declared(title="a title", anytime=1), "anytime", "True or False"),
    # Clopper-Pearson limits against their definition, in 60 digits where doubles give out.
    (lambda: clopper_pearson(Counts(1, 2, 1, 2), 0, "95"), "confidence", "a finite number above 0"),
    # What is no record is named, here and by those that take records from a bound.
    (lambda: clopper_pearson("a"), "counts", "a Counts, got 'a'"),
    (lambda: choose(3), "counts", "a Counts, got 3"),
    (lambda: Vote.between("ab"), "pair", "a Pair, got 'ab'"),
    (lambda: distance(None, "l1"), "pair", "a Pair, got None"),
    (lambda: vote_loss(Laplace(1.0), 3), "pair", "a Pair, got 3"),
    # Bounds at every look: each bet is fair under the claim, and looking 200 times overclaims not.
    (lambda: anytime(None), "counts", "a Counts"),
    (lambda: Martingale(1.0).update(1, 1, 2, predicted=0.5), "predicted", "a pair of rates"),
    # Bounds from one run: the theorems' own formulas, and coverage where the truth is known.
    # The conditional bound: exact for a fair coin, conservative for fixed sides, by enumeration.
    (lambda: conditional([1, 2, 1, 2]), "counts", "a Counts"),
    # The unconditional bound: sound by enumeration, sharp by its figures, bounded and not sampled.
    (lambda: berger_boos("a"), "counts", "a Counts"),
    # The registry, the prediction of a bound, independent coordinates, and what would be found.
    (lambda: predicted(["1"], 10, [0], 10, 5), "k", "an array of numbers"),
    (lambda: every_coordinate([(1, 2, 1, 2)], [1]), "pooled", "a Counts"),
    (lambda: every_coordinate(Counts(1, 2, 1, 2), [1]), "pooled", "a sequence"),
    # One event, all notions; the band on the trade-off curve lies above the curve as often as said.
    (lambda: tradeoff_band([1.0], 2, [1], 2), "k", "a vector of integers"),
    (lambda: tradeoff_band([], 2, [], 2), "k", "a vector of integers"),
    (lambda: delta_lower(COUNTS, "1"), "epsilon", "numbers"),
    (lambda: mu_lower((1, 2, 3, 4)), "counts", "a Counts"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
