"""Messages of wrong calls of `dpcore.sensitivity`: the argument, and a word of the remedy."""

from __future__ import annotations

from functools import partial

import numpy as np
from shared_messages import check_messages

from dpcore.sensitivity import (
    Ball,
    Box,
    Clip,
    HistogramCounts,
    MinMax,
    MinMaxRows,
    Normalise,
    OneHot,
    Simplex,
    Sphere,
    assert_sensitivity,
    declaration,
    laplace_scale,
    member_strategy,
    pair_strategy,
)

MASKED = np.ma.masked_array([1.0, 0.0], [False, True])

ASSERT = partial(assert_sensitivity, np.sum, 1, "l1", Box(0, 1, 2))

VALUE_ERRORS = [
    # Bounds on sensitivities as tests.
    (lambda: assert_sensitivity(np.sum, -1, "l1", Box(0, 1, 2)), "bound", "at least 0, got -1"),
    (lambda: ASSERT(max_examples=0), "max_examples", "an integer at least 1, got 0"),
    # The domains: membership, random members, nearest members, bad input.
    (lambda: Ball("l2", 0, 3), "radius", "a finite number above 0 and at most 1e"),
    (lambda: Ball("l3", 1.0, 3), "norm", "one of 'l1', 'l2', 'linf'"),
    (lambda: Ball("l2", 1.0, 0), "dim", "an integer at least 1"),
    (lambda: MinMaxRows(1), "dim of min-max rows", "at least 2, for a row of"),
    (lambda: MinMaxRows(0), "dim", "an integer at least 1"),
    (lambda: Simplex(0), "dim", "an integer at least 1"),
    (lambda: Sphere(0), "dim", "an integer at least 1"),
    (lambda: Sphere(2, "l0"), "norm", "one of"),
    (lambda: HistogramCounts(-1), "dim", "an integer at least 1"),
    (lambda: HistogramCounts(2, "both"), "neighbours", "one of 'replace', 'add_remove"),
    (lambda: Sphere(2).contains([1, 0], slack=-1), "slack", "a finite number"),
    (lambda: Sphere(2).clip([1, 0, 0]), "x", "a vector of 2 entries"),
    (lambda: Sphere(2).clip(MASKED), "x", "a non-empty vector of finite"),
    # Transforms before the noise, and the scale that their ranges ask for.
    (lambda: Clip("l2", 0.0), "radius", "a finite number above 0 and at most"),
    (lambda: Clip("l4", 1.0), "norm", "one of"),
    (lambda: Normalise("max"), "norm", "one of"),
    (lambda: MinMax()([2.0, 2.0, 2.0]), "x", "a row of at least two different entries"),
    (lambda: MinMax()([[0, 1], [3, 3]]), "row 1 of x", "a row of at least two"),
    (lambda: MinMax()([[0], [3]]), "row 0 of x", "a row of at least two different"),
    (lambda: MinMax().range(1), "dim of min-max rows", "at least 2"),
    (lambda: Normalise("l1")([[1, 0], [0, 1], [0, 0]]), "row 2 of x", "a row that is not zero"),
    (lambda: Normalise()([0.0]), "x", "a row that is not zero"),
    (lambda: Normalise().range(0), "dim", "an integer at least 1"),
    (lambda: laplace_scale(1.0, Clip("l1", 1.0), 9, declared=18.0), "declared", "the declared"),
    (lambda: laplace_scale(0.0, MinMax(), 2), "epsilon", "a finite number above"),
    (lambda: laplace_scale(1.0, MinMax(), 1), "dim of min-max rows", "at least"),
    (lambda: laplace_scale(1.0, Clip("l1", 1.0), 0), "dim", "an integer at least"),
    (lambda: laplace_scale(1.0, Sphere(3), 4), "dim", "that of the domain, 3"),
    (lambda: laplace_scale(1.0, OneHot(1)), "noise scale sensitivity / epsilon", "a finite"),
    (lambda: laplace_scale(1e-300, Box(0, 1e300, 1)), "noise scale sensitivity / epsilon", "a fin"),
    (lambda: laplace_scale(1.0, Sphere(3), declared=-1), "declared", "a finite"),
    (lambda: declaration(np.nan, Sphere(3), "l1"), "declared", "a finite number"),
    (lambda: declaration(1.0, Sphere(3), "l0"), "norm", "one of"),
]  # fmt: skip
TYPE_ERRORS = [
    # Bounds on sensitivities as tests.
    (lambda: ASSERT(derandomize=1), "derandomize", "True or False, got 1"),
    (lambda: member_strategy(3), "domain", "a domain"),
    (lambda: pair_strategy(Box(0, 1, 2), "replace"), "neighbour", "a neighbour relation"),
    # The domains: membership, random members, nearest members, bad input.
    (lambda: OneHot(True), "dim", "an integer at least 1"),
    (lambda: HistogramCounts(2).neighbour([1, 0], 3), "rng", "a Generator"),
    # Transforms before the noise, and the scale that their ranges ask for.
    (lambda: laplace_scale(1.0, MinMax()), "dim", "the number of entries, which"),
    (lambda: laplace_scale(1.0, range(3), 4), "transform", "one with range"),
    (lambda: laplace_scale(1.0, Clip, 4), "transform", "one with range"),
    (lambda: declaration(1.0, Sphere, "l1", 4), "transform", "one with range"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
