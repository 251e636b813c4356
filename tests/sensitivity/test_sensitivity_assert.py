"""Bounds on sensitivities as tests: what must fail, with which counterexample, and what passes."""

from __future__ import annotations

import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from shared_examples import examples

from dpcore import sensitivity
from dpcore.pairs import L1, Box, Records, Replace, distance
from dpcore.records import Pair
from dpcore.sensitivity import Ball, HistogramCounts, MinMax, MinMaxRows, OneHot, Simplex, Sphere
from dpcore.sensitivity.refutation import (
    SensitivityError,
    assert_sensitivity,
    member_strategy,
    pair_strategy,
)

C = 10.0
QUICK = {"trials": 300, "max_examples": 30}


def adept(x):
    return x * (C / max(C, float(np.linalg.norm(x))))


def identity(x):
    return x


def failure(*arguments, **options):
    with pytest.raises(SensitivityError) as caught:
        assert_sensitivity(*arguments, **options)
    return caught.value


def entries(pair):
    return int(np.count_nonzero(pair.x) + np.count_nonzero(pair.x_prime))


@pytest.mark.parametrize("dim", [2, 32])
def test_the_counterexample_to_a_wrong_clip_is_small(dim):
    error = failure(adept, 2 * C, "l1", Box(-C, C, dim), trials=1000)
    assert isinstance(error, AssertionError)
    pair = error.pair
    assert entries(pair) <= 5
    assert all(entry.is_integer() for side in (pair.x, pair.x_prime) for entry in side)
    assert error.attained > error.bound == 2 * C
    assert distance(Pair(adept(pair.x), adept(pair.x_prime)), "l1") == error.attained
    text = str(error)
    assert "adept must have an l1 sensitivity of at most 20, got 2" in text
    assert len(text) < 300


def test_the_error_lists_what_differs_among_many_records():
    def total(x):
        return float(np.asarray(x).astype(np.int8).sum(dtype=np.int8))

    text = str(failure(total, 4, "l1", Box(0, 4, 60), neighbour=Replace(), **QUICK))
    assert re.search(r"; entry \d+: [\d.]+ -> [\d.]+$", text)
    answers = Records(("yes", "no"), 60)
    text = str(failure(lambda x: x.count("no"), 0.5, "l1", answers, neighbour=Replace(), **QUICK))
    assert re.search(r"; record \d+: '(yes|no)' -> '(yes|no)'$", text)


def test_the_search_alone_is_enough_and_so_is_hypothesis():
    # One point in 2^40 or so, beyond any strategy, but the search's own extremes reach it.
    def corner(x):
        return float((x == 1.0).all())

    assert failure(corner, 0.5, "l1", Box(0, 1, 40), trials=300, max_examples=1).attained == 1.0

    def odd(x):
        # A simple number, where no search of a continuum would look.
        return float(x[0] == 1.0)

    error = failure(odd, 0.6, "l1", Box(-50, 50, 1), trials=8, max_examples=2000)
    assert {float(error.pair.x[0]), float(error.pair.x_prime[0])} == {0.0, 1.0}


def test_what_the_search_finds_is_made_smaller():
    def both(x):
        return float(x[3] > 0.123 and x[7] > 0.9)

    error = failure(both, 0.5, "l1", Box(0, 1, 10), trials=300, max_examples=1)
    assert entries(error.pair) == 2
    assert set(error.pair.x) | set(error.pair.x_prime) <= {0.0, 1.0}
    # Members that must add up shrink too.
    pair = failure(identity, 1.9, "l1", Simplex(8), trials=300, max_examples=20).pair
    assert entries(pair) == 2


def test_what_min_max_scaling_really_does():
    error = failure(MinMax(), 1.0, "l1", Box(-1, 1, 16), catch=ValueError, **QUICK)
    assert entries(error.pair) <= 3
    assert error.attained >= 2.0


@pytest.mark.parametrize(
    ("f", "bound", "norm", "domain", "options"),
    [
        (adept, 2 * C, "l2", Box(-C, C, 16), {}),
        (adept, 2 * C * 4, "l1", Box(-C, C, 16), {}),
        (MinMax(), 16, "l1", Box(-1, 1, 16), {"catch": ValueError}),
        (np.mean, 0.25, "l1", Box(0, 1, 4), {"neighbour": L1(1.0)}),
        (identity, 2, "l1", HistogramCounts(5), {}),
        (identity, 1, "l1", HistogramCounts(5, "add_remove"), {}),
        (identity, 2, "l2", Sphere(5), {}),
        (identity, 2, "l1", Simplex(5), {}),
        (identity, 2, "l1", OneHot(5), {}),
        (identity, 5, "l1", MinMaxRows(5), {}),
        (identity, 2, "l1", Ball("l1", 1.0, 5), {}),
        (lambda x: x.max(axis=1), 1, "l1", Box(0, 1, 5), {"rows": True}),
        (lambda x: sum(x) / 3, 1, "l1", Records((0.0, 3.0), 3), {"neighbour": Replace()}),
    ],
)
def test_the_right_bound_passes_and_a_smaller_one_fails(f, bound, norm, domain, options):
    assert_sensitivity(f, bound, norm, domain, **QUICK, **options)
    error = failure(f, bound * 0.9, norm, domain, **QUICK, **options)
    assert error.bound * (1 + 1e-9) < error.attained <= bound * (1 + 1e-9)
    assert all(map(domain.contains, (error.pair.x, error.pair.x_prime)))
    if "neighbour" in options:
        assert options["neighbour"].holds(error.pair, domain)


@examples(5)
@given(st.integers(1, 4))
def test_inside_a_test_with_given(dim):
    assert_sensitivity(np.max, 1.0, "l1", Box(0, 1, dim), **QUICK)
    failure(np.max, 0.5, "l1", Box(0, 1, dim), **QUICK)


@pytest.mark.parametrize(
    "domain",
    [
        Box(-1, 3, 4), Box(0, 3, 4, integers=True), MinMaxRows(4), Ball("l1", 2.0, 4),
        Ball("l2", 2.0, 4), Simplex(4), Sphere(4), OneHot(4), HistogramCounts(4),
        HistogramCounts(4, "add_remove"), Records((1, 2, 3), 4),
    ],
    ids=repr,
)  # fmt: skip
def test_strategies_stay_in_the_domain(domain):
    @settings(max_examples=40, database=None)
    @given(member_strategy(domain), pair_strategy(domain))
    def check(x, pair):
        assert all(map(domain.contains, (x, pair.x, pair.x_prime)))
        if isinstance(domain, HistogramCounts):
            assert domain.neighbouring(pair.x, pair.x_prime)

    check()


def test_the_earlier_names_of_the_strategies_still_work():
    assert (sensitivity.members_of, sensitivity.pairs_of) == (member_strategy, pair_strategy)


def test_strategies_of_related_pairs_and_their_shrinking():
    domain, relation = Box(-5, 5, 3), L1(2.0)

    @settings(max_examples=40, database=None)
    @given(pair_strategy(domain, relation))
    def check(pair):
        assert relation.holds(pair, domain)

    check()
    pair = find(pair_strategy(Box(0, 1, 6)), lambda pair: distance(pair, "l1") > 0.5)
    assert entries(pair) == 1


def test_errors_come_through():
    with pytest.raises(ValueError, match="must be finite, got array"):
        assert_sensitivity(lambda x: x * np.nan, 1.0, "l1", Box(0, 1, 2), **QUICK)
    with pytest.raises(ZeroDivisionError):
        assert_sensitivity(lambda x: 1 / 0, 1.0, "l1", Box(0, 1, 2), **QUICK)


def test_without_hypothesis_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis.extra.numpy", None)
    with pytest.raises(ImportError, match="needs the package hypothesis: pip install hypothesis"):
        assert_sensitivity(identity, 1.0, "l1", Box(0, 1, 2))


def test_the_error_keeps_its_fields_and_is_the_same_each_time():
    error, same = (failure(identity, 0.5, "l1", Box(0, 1, 20), **QUICK) for _ in range(2))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == str(same)
    assert (again.pair, again.attained, again.bound) == (error.pair, error.attained, 0.5)
    assert "20 zeros" in str(error)
