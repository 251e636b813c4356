"""Messages of wrong calls of `dpcore.calibration`: the argument, and a word of the remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from shared_messages import check_messages

from dpcore import Laplace, Pair
from dpcore.calibration import (
    CalibratedGaussian,
    L2Laplace,
    MaskedWords,
    RandomisedResponse,
    gaussian_delta,
    gaussian_epsilon,
    l2_laplace,
    laplace,
    real_epsilon,
    word_dropout,
)
from dpcore.calibration.masked_words import answer_by_a_or_b
from dpcore.published import ADePT
from dpcore.sensitivity import Ball, Box, HistogramCounts, MinMaxRows

UNIT = Ball("l1", 0.5, 6)


class Mine(Laplace):
    """A subclass may do anything."""


REAL = real_epsilon(Laplace(1.0), UNIT)

LOSS, UNITS = L2Laplace(1.0).log_ratio, Pair([0.0], [1.0])

MASKED = np.ma.masked_array([0, 1], [False, True])

VALUE_ERRORS = [
    (lambda: CalibratedGaussian(1.0, 1.0, 1e-5, 1.0, 1e-6, "best"), "formula", "one of"),
    (lambda: CalibratedGaussian(1.0, 1.0, 1e-5, 1.0, 0.5, "analytic"), "true_delta", "at most"),
    # Gaussian calibration: the profile against 60 digits, its inverses, and the classical guard.
    (lambda: gaussian_delta(0.0, 0.5, 1.0), "sigma", "a finite number above 0"),
    (lambda: gaussian_delta(1.0, 0.5, 0.0), "sensitivity", "a finite number above 0"),
    (lambda: gaussian_epsilon(0.0, 0.5, 1.0), "sigma", "a finite number above 0"),
    (lambda: gaussian_epsilon(1.0, 0.5, 0.0), "sensitivity", "a finite number above 0"),
    (lambda: gaussian_delta(1.0, -1.0, 1.0), "epsilon", "a finite number at least 0"),
    (lambda: gaussian_epsilon(1.0, 1.0, 1.0), "delta", "a finite number at least 0 and below 1"),
    # Noise for pure epsilon: the law of the L2 Laplace mechanism, its loss, and an audit of it.
    (lambda: laplace(0.0, 1.0), "epsilon", "a finite number above 0"),
    (lambda: laplace(1.0, 0.0), "sensitivity", "a finite number above 0"),
    (lambda: laplace(1e-300, 1e300), "noise scale sensitivity / epsilon", "a finite number above"),
    (lambda: l2_laplace(1.0, -1.0), "sensitivity", "a finite number above 0"),
    (lambda: L2Laplace(float("nan")), "scale", "a finite number above 0"),
    (lambda: L2Laplace(1.0)([float("nan")], 1, 1), "x", "a non-empty vector of finite numbers"),
    (lambda: L2Laplace(1.0)([0.0], -1, 1), "size", "an integer at least 0"),
    (lambda: L2Laplace(1.0).log_ratio([0.0], Pair([0], [1])), "outputs", "of shape"),
    (lambda: L2Laplace(1.0)([0.0], 10**30, 1), "size", "small enough"),
    (lambda: LOSS([[1.0], [1.0, 2.0]], UNITS), "outputs", "finite numbers of shape (size, 1)"),
    (lambda: LOSS([[float("nan")]], UNITS), "outputs", "finite numbers of shape (size, 1)"),
    (lambda: LOSS([[float("inf")]], UNITS), "outputs", "finite numbers of shape (size, 1)"),
    (lambda: LOSS(MASKED[:, None], UNITS), "outputs", "finite numbers of shape (size, 1)"),
    # What a noise really buys on a domain: closed forms, and the certified audit from below.
    (lambda: real_epsilon(Laplace(1.0), UNIT).epsilon(1e-5), "delta", "0 for this noise"),
    (lambda: real_epsilon(Laplace(1.0), UNIT).delta(0.5), "epsilon", "at least the pure epsilon 1"),
    (lambda: real_epsilon(Laplace(1.0), UNIT).delta(-1.0), "epsilon", "a finite number at least 0"),
    (lambda: real_epsilon(ADePT(1.0), MinMaxRows(4)), "domain", "within the clip's ball, or reach"),
    (lambda: real_epsilon(ADePT(1.0), Box(0.0, 3.0, 4)), "domain", "within the clip's ball"),
    (lambda: real_epsilon(ADePT(1.0), HistogramCounts(4)), "domain", "other than a histogram"),
    (lambda: real_epsilon(RandomisedResponse(1.0), Box(0, 2, 3, True)), "x_prime", "one whole"),
    (lambda: replace(REAL, value=-1.0), "value", "a finite number at least 0, got -1"),
    (lambda: replace(REAL, distance=float("inf")), "distance", "a finite number"),
    (lambda: replace(REAL, norm="l3"), "norm", "one of 'l1', 'l2', 'entries'"),
    (lambda: replace(REAL, mu=-1.0), "mu", "a finite number"),
    # Randomised response: its law on the grid of the draws, its exact loss, and an audit.
    (lambda: RandomisedResponse(0.0), "epsilon", "a finite number above 0"),
    (lambda: RandomisedResponse(1.0, 1), "values", "an integer from 2 to 2147483648"),
    (lambda: RandomisedResponse(1.0)(2, 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0)(-1, 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0)(0.5, 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0)(float("nan"), 1, 1), "x", "one whole number or a vector"),
    (lambda: RandomisedResponse(1.0)([], 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0)([[0]], 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0)(0, -1, 1), "size", "an integer at least 0"),
    (lambda: RandomisedResponse(1.0).loss(Pair([0], [0, 1])), "pair", "two inputs of equal shape"),
    (lambda: RandomisedResponse(1.0).loss(Pair([0], [2])), "x_prime", "one whole"),
    (lambda: RandomisedResponse(1.0).default_pair(0), "dim", "an integer at least 1"),
    (lambda: RandomisedResponse(1.0).default_pair(10**30), "dim", "below"),
    (lambda: RandomisedResponse(1.0)(0, 10**30, 1), "size", "small enough"),
    (lambda: RandomisedResponse(1.0)(MASKED, 1, 1), "x", "one whole number"),
    # Word dropout: its bound, the conditions of the bound, and examples that break each of them.
    (lambda: word_dropout(0.0, 0.5), "epsilon", "a finite number above 0"),
    (lambda: word_dropout(1.0, 1.0), "mu", "a finite number at least 0 and below 1, got 1.0"),
    (lambda: word_dropout(1.0, 0.5, masks="poisson"), "masks", "one of 'bernoulli', 'exact'"),
    (lambda: word_dropout(1.0, 0.5, neighbours="l1"), "neighbours", "one of 'one word'"),
    (
        lambda: MaskedWords(answer_by_a_or_b, mu=1.0),
        "mu",
        "a finite number at least 0 and below 1",
    ),
    (lambda: MaskedWords(answer_by_a_or_b, epsilon=0), "epsilon", "a finite number above 0"),
    (lambda: MaskedWords(answer_by_a_or_b, masks="all"), "masks", "one of"),
    (lambda: MaskedWords(answer_by_a_or_b).law("a " * 13), "text", "1 to 12 words"),
    (lambda: MaskedWords(answer_by_a_or_b).law(""), "text", "1 to 12 words"),
    (lambda: MaskedWords(answer_by_a_or_b)("a", -1), "size", "an integer at least 0"),
    (lambda: MaskedWords(answer_by_a_or_b, masks="exact").law("a"), "text", "5 masks a whole"),
    (lambda: MaskedWords(lambda *_: (0.5, 0.6)).law("a"), "answer", "a function"),
    (lambda: MaskedWords(lambda *_: (1.5, -0.5)).law("a"), "answer", "a function"),
]  # fmt: skip
TYPE_ERRORS = [
    # Noise for pure epsilon: the law of the L2 Laplace mechanism, its loss, and an audit of it.
    (lambda: L2Laplace(1.0)(["a"], 1, 1), "x", "a non-empty vector of finite numbers"),
    (lambda: L2Laplace(1.0)([0.0], 1, "seed"), "rng", "None, an int in [0, 2**63)"),
    (lambda: L2Laplace(1.0).log_ratio([[0.0]], ([0], [1])), "pair", "a Pair"),
    (lambda: L2Laplace(1.0).log_ratio([[1j]], Pair([0.0], [1.0])), "outputs", "finite numbers"),
    # What a noise really buys on a domain: closed forms, and the certified audit from below.
    (lambda: real_epsilon(Laplace(1.0), 4), "domain", "one of dpcore"),
    (lambda: real_epsilon(Mine(1.0), UNIT), "mechanism", "one of dpcore's"),
    (lambda: real_epsilon(Laplace, UNIT), "mechanism", "one of dpcore's"),
    (lambda: real_epsilon(RandomisedResponse(1.0), UNIT), "domain", "a Box with integers=True"),
    (lambda: replace(REAL, value=None), "value", "a finite number"),
    (lambda: replace(REAL, pair=3), "pair", "a Pair"),
    (lambda: replace(REAL, reason=3), "reason", "a str"),
    # Randomised response: its law on the grid of the draws, its exact loss, and an audit.
    (lambda: RandomisedResponse(1.0)("a", 1, 1), "x", "one whole number or a vector of them"),
    (lambda: RandomisedResponse(1.0).loss(([0], [1])), "pair", "a Pair"),
    # Word dropout: its bound, the conditions of the bound, and examples that break each of them.
    (lambda: word_dropout("1", 0.5), "epsilon", "a finite number above 0"),
    (lambda: word_dropout(1.0, 0.5, masked_is_neighbour=1), "masked_is_neighbour", "True or"),
    (lambda: MaskedWords("a"), "answer", "a function"),
    (lambda: MaskedWords(answer_by_a_or_b)(["a"], 1), "text", "a str"),
    (lambda: MaskedWords(answer_by_a_or_b).loss(("a", "b")), "pair", "a Pair"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
