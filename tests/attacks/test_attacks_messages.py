"""Messages of wrong calls of `dpcore.attacks`: the argument, and a word of the remedy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from shared_messages import check_messages

from dpcore import _core, attacks
from dpcore.attacks.additive import Additive
from dpcore.attacks.attack import attack_of
from dpcore.attacks.classifier import Boosted, Classifier, Features, Linear, LinearScore
from dpcore.attacks.entrywise import Coordinatewise
from dpcore.attacks.histogram import Cells, Histogram, LetterEncoder, Outcomes
from dpcore.attacks.lattice import FinerThan, LowBits
from dpcore.attacks.products import SignProducts
from dpcore.attacks.residues import ResidueRatio
from dpcore.attacks.support import AtAtoms, AtRows, Outside, Repeats
from dpcore.attacks.threshold import Closer, Coordinate, RowMin, RowSum, Special, Threshold
from dpcore.attacks.timing import ExcessLatency, OutputEntry, Timing
from dpcore.attacks.words import TokenRatios
from dpcore.events.every_coordinate import EveryCoordinate, Intervals
from dpcore.records import Pair
from dpcore.sampling.sources import time_calls

ROWS = np.zeros((10, 2))

HALF_LINE = Intervals(np.zeros(1), True)

PAIR = Pair(0, 1)

RNG = np.random.default_rng(1)

SCORE = TokenRatios(("to", "boston", "é"), [1.0, -0.5, 4.0], [0, 1, 3], [8.0, 16.0, 0.0, 32.0])

FEATURES = Features([0.0], 0.0, [], [], [])

TABLES = LetterEncoder("whole", [0], [2], [], [], [])


class Opaque:
    """Neither a container nor hashable."""

    __hash__ = None

    def __repr__(self):
        return "Opaque()"


OPAQUE = np.array([Opaque()] * 40)


VALUE_ERRORS = [
    # The additive attack: what it makes of outputs, and what it reaches.
    (lambda: Additive(1), "bins", "an integer from 2 to 1024"),
    # Additive scores: the core against plain numpy, to the last bit, and the score as a record.
    (lambda: _core.count_outputs(np.zeros((2, 3)).T, np.zeros(2), np.ones(2, dtype=np.int8)),
     "outputs", "C-contiguous"),
    (lambda: _core.score_closer(np.zeros((2, 3)).T, np.zeros(2), np.ones(2), "l1", np.empty(3)),
     "outputs", "C-contiguous"),
    (lambda: _core.sample(("Laplace", [1.0], "two_branch", None, 1.0), np.zeros(2),
     np.zeros((2, 3)).T, (1, 3, 0, 100), 0, 1), "out", "C-contiguous"),
    # Coordinatewise: the event and its pooled counts, what is learnt, what is refused.
    (lambda: Intervals(np.zeros(0), True), "edges", "a non-empty vector of finite numbers"),
    (lambda: Intervals(np.array([1.0, 1.0]), True), "edges", "increasing"),
    (lambda: EveryCoordinate((), (), 2), "groups", "not empty and without repetition"),
    (lambda: EveryCoordinate(((0, 0),), (HALF_LINE,), 2), "groups", "not empty and without"),
    (lambda: EveryCoordinate(((2,),), (HALF_LINE,), 2), "groups", "an integer from 0 to 1"),
    (lambda: EveryCoordinate(((0,),), (), 2), "sets", "one for each of 1 groups"),
    (lambda: EveryCoordinate(((0,),), (HALF_LINE,), 3)(ROWS), "outputs", "of shape"),
    (lambda: Coordinatewise()(ROWS, ROWS, Pair([0, 0], [0, 0])), "pair", "different in"),
    (lambda: Coordinatewise()(ROWS, ROWS, Pair([0, 0], [1])), "pair", "two inputs of equal shape"),
    (lambda: Coordinatewise()(ROWS, ROWS, Pair([0], [1])), "outputs", "of shape"),
    (lambda: Coordinatewise()(ROWS[:1], ROWS, Pair([0, 0], [1, 1])), "outputs", "at least two"),
    # Linear discriminants: what the score adds up, and which directions the attack finds.
    (lambda: LinearScore([0], [0.0, 1.0], [1.0]), "centres", "of shape (1,)"),
    (lambda: LinearScore([], [], []), "entries", "not empty"),
    (lambda: LinearScore([0], [np.nan], [1.0]), "centres", "finite"),
    (lambda: LinearScore([-1], [0.0], [1.0]), "entries", "an array of numbers at least 0"),
    (lambda: LinearScore([0.5], [0.0], [1.0]), "entries", "whole numbers"),
    # The lowest bits of floats, and the scores made of them, against exact fractions.
    (lambda: FinerThan(1075, 0.0, 1.0), "exponent", "an integer from -1023 to 1074"),
    (lambda: FinerThan(5, 1.0, 1.0), "high", "a finite number above 1"),
    (lambda: FinerThan(5, math.nan, 1.0), "low", "a finite number"),
    (lambda: FinerThan(5, 0.0, 1.0, ()), "columns", "not empty and without repetition"),
    (lambda: FinerThan(5, 0.0, 1.0, (1, 1)), "columns", "not empty and without repetition"),
    (lambda: FinerThan(5, 0.0, 1.0, (0,), "all"), "quantifier", "one of 'some', 'every'"),
    (lambda: FinerThan(5, 0.0, 1.0, (2,))(np.ones((3, 2))), "outputs", "of at least 3 entries"),
    (lambda: LowBits(np.zeros(2), np.zeros(1), np.zeros((2, 2)), (0,)), "table", "of shape"),
    # Products of pairs of columns: what they see, that they stay sound, and their arithmetic.
    (lambda: SignProducts([0, 2], [0.5] * 2, [0], [1], [1.0])(ROWS), "outputs", "at least 3"),
    # Residues of whole numbers: what they see, that they stay sound, and their arithmetic.
    (lambda: ResidueRatio(17, [0], [[1.0, -1.0]]), "modulus", "from 2 to 16"),
    (lambda: ResidueRatio(modulus=2, entries=[], weights=[[1.0, -1.0]]), "entries", "places"),
    (lambda: ResidueRatio(modulus=2, entries=[-1], weights=[[1.0, -1.0]]), "entries", "places"),
    (lambda: ResidueRatio(modulus=2, entries=[0], weights=[[1.0]]), "weights", "finite and"),
    (lambda: ResidueRatio(modulus=2, entries=[0], weights=[[1.0, np.inf]]), "weights", "finite"),
    (lambda: ResidueRatio(2, [3], [[1.0, -1.0]])(ROWS), "outputs", "of at least 4 entries"),
    # Timing: fair coins against drift, a leak that is found, a clock that no machine can disturb.
    (lambda: Timing("time"), "clock", "one of"),
    (lambda: OutputEntry(2)(np.zeros((2, 3))), "rows", "of at least 4 columns"),
    (lambda: ExcessLatency("x", OutputEntry(0), [1.0], []), "usual", "one latency for each of the"),
    (lambda: Timing(warmup=-1), "warmup", "an integer at least 0"),
    (lambda: time_calls(abs, PAIR, 0, np.random.default_rng(1)), "calls", "a whole"),
    (lambda: Timing().timed_counts(abs, PAIR, 0, np.random.default_rng(1)), "calls", "a whole"),
    (lambda: Timing().timed_counts(abs, PAIR, 9, RNG, confidence=1.0), "confidence", "below 1"),
    # Texts as rows of tokens, whatever array or object holds them; the tables of their ratios.
    (lambda: replace(SCORE, tokens=("a", "a", "b")), "tokens", "all different"),
    (lambda: replace(SCORE, values=[1.0]), "values", "one for each of 3 tokens"),
    (lambda: replace(SCORE, starts=[0, 0, 1]), "starts", "increasing"),
    (lambda: replace(SCORE, lengths=[0.0]), "lengths", "one more than the 3 starts"),
    (lambda: replace(SCORE, reader="letters"), "reader", "one of 'words'"),
    # Classifiers: what they learn, and the features.
    (lambda: Classifier("forest"), "model", "one of 'logistic', 'boosting'"),
    (lambda: Classifier(rows=1), "rows", "an integer at least 2, got 1"),
    (lambda: Linear(FEATURES, [1.0, 2.0]), "weights", "of shape (1,)"),
    (lambda: Features([0.0], 0.0, [0], [1.0], []), "highs", "of shape (1,)"),
    (lambda: FEATURES(np.zeros((3, 2))), "outputs", "of 1 entries"),
    # Histograms: letters, cells and outcomes.
    (lambda: Histogram(0), "bins", "an integer at least 1, got 0"),
    (lambda: Outcomes(("a",), [1.0, 2.0]), "values", "one for each of 1 keys"),
    (lambda: Outcomes(("a",), [1.0], -1), "unit", "a finite number at"),
    (lambda: LetterEncoder("signs", [0], [2], [], [], []), "kind", "one of 'whole'"),
    (lambda: Cells(TABLES, (1,), (2,), [0, 1], [0.0]), "values", "one for"),
    (lambda: Cells(TABLES, (1,), (3,), [0, 1], [0.0]), "ends", "one for each"),
    (lambda: Cells(TABLES, (1, 2), (2, 2), [0, 1], []), "ends", "increasing"),
    # Differences of supports: what the scores count.
    (lambda: Special("zero"), "kind", "one of 'nan', 'inf', got 'zero'"),
    (lambda: Outside([0.0], [1.0, 2.0]), "highs", "of shape (1,)"),
    (lambda: Outside([2.0], [1.0]), "lows", "at most highs"),
    (lambda: Outside([np.nan], [1.0]), "lows", "at most highs"),
    (lambda: Outside([0.0], [1.0])(np.zeros((2, 2))), "outputs", "of 1 ent"),
    (lambda: Repeats(-1.0), "tolerance", "a finite number at least 0"),
    (lambda: AtRows(np.array([2, 1], np.uint64), [1, 1]), "codes", "increasing"),
    (lambda: AtAtoms([0], [0.0, 1.0], [1.0], [1]), "lows", "of shape (1,)"),
    (lambda: AtAtoms([2], [0.0], [1.0], [1])(np.zeros((2, 2))), "outputs", "of at least 3 entries"),
    # Thresholds on simple scores.
    (lambda: Threshold("mean"), "score", "one of 'coordinate', 'l1', "),
    (lambda: Threshold(-1), "score", "an integer at least 0, got -1"),
    (lambda: Coordinate(-1), "index", "an integer at least 0, got -1"),
    (lambda: Coordinate(3)(np.zeros((2, 2))), "outputs", "of at least 4 "),
    (lambda: Closer("l3", [0.0], [1.0]), "norm", "one of 'l1', 'l2', got"),
    (lambda: Closer("l1", [0.0], [1.0, 2.0]), "x_prime", "of 1 entries"),
    (lambda: Closer("l1", [np.inf], [1.0]), "x", "a non-empty vector of fi"),
    (lambda: Closer("l1", [0.0], [1.0])(np.zeros((2, 2))), "outputs", "of 1"),
    (lambda: RowMin()(np.zeros((3, 0))), "outputs", "of at least 1 entries"),
]  # fmt: skip
TYPE_ERRORS = [
    # The additive attack: what it makes of outputs, and what it reaches.
    (lambda: Additive(3.0), "bins", "an integer from 2 to 1024"),
    # No package but their own checks the classes of attacks and events.
    (lambda: attack_of(attacks.Threshold), "attack", "an attack, not its class (Threshold()"),
    # Coordinatewise: the event and its pooled counts, what is learnt, what is refused.
    (lambda: Intervals(np.zeros(1), 1), "below", "a bool"),
    (lambda: EveryCoordinate(((0,),), (3,), 2), "sets", "a Intervals"),
    (lambda: EveryCoordinate(((0,),), (HALF_LINE,), 1).pooled(ROWS.astype(str)), "outputs", "real"),
    (lambda: Coordinatewise()(ROWS, ROWS, Pair("a", "b")), "x", "a non-empty vector of finite"),
    (lambda: Coordinatewise().choose(ROWS, ROWS, Pair([0, 0], [1, 1]), 3), "goal", "a Goal"),
    # Linear discriminants: what the score adds up, and which directions the attack finds.
    (lambda: LinearScore("a", [0.0], [1.0]), "entries", "real numbers"),
    # The lowest bits of floats, and the scores made of them, against exact fractions.
    # Timing: fair coins against drift, a leak that is found, a clock that no machine can disturb.
    (lambda: time_calls(3, PAIR, 3, np.random.default_rng(1)), "call", "a callable input ->"),
    (lambda: time_calls(abs, PAIR, 3, 1), "rng", "a numpy Generator"),
    # Texts as rows of tokens, whatever array or object holds them; the tables of their ratios.
    # Classifiers: what they learn, and the features.
    (lambda: Linear(None, [1.0]), "features", "a Features, got None"),
    (lambda: Boosted(None, None), "features", "a Features, got None"),
    (lambda: FEATURES(np.array(["a"])), "outputs", "real numbers"),
    # Histograms: letters, cells and outcomes.
    (lambda: Histogram().candidates(OPAQUE, OPAQUE, PAIR), "outputs", "hashable objects, got Op"),
    (lambda: Outcomes((Opaque(),), [1.0]), "outputs", "hashable objects, got"),
    (lambda: Cells(None, (1,), (2,), [0, 1], [0.0, 1.0]), "letters", "a"),
    # Differences of supports: what the scores count.
    (lambda: Special("nan")(np.array(["a"])), "outputs", "real numbers"),
    # Thresholds on simple scores.
    (lambda: Threshold(True), "score", "None, a name, an index or a "),
    (lambda: Threshold(1.5), "score", "None, a name, an index or a "),
    (lambda: RowSum()(np.array(["a"])), "outputs", "real numbers, got dty"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
