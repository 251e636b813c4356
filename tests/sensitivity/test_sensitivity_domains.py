"""The domains: membership, random members, nearest members, bad input."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.pairs import NORMS, Box, Domain, Records
from dpcore.sensitivity import Ball, HistogramCounts, MinMaxRows, OneHot, Simplex, Sphere

ALPHA = 1e-9
"""Chance that a statistical test of this file fails although the code is right."""

MAKERS = [
    MinMaxRows, lambda d: Ball("l1", 0.3, d), lambda d: Ball("l2", 7.0, d),
    lambda d: Ball("linf", 1e-8, d), Simplex, Sphere, lambda d: Sphere(d, "l1"),
    lambda d: Sphere(d, "linf"), OneHot, HistogramCounts,
    lambda d: HistogramCounts(d, "add_remove"),
]  # fmt: skip
DOMAINS = [make(dim) for make in MAKERS for dim in (2, 3, 50)]
DOMAINS += [make(1) for make in MAKERS[1:]]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_record_whose_draws_are_members_and_their_own_clip(domain):
    assert isinstance(domain, Domain)
    rng = np.random.default_rng(3)
    for _ in range(50):
        x = domain.draw(rng)
        assert (x.dtype, x.shape) == (np.float64, (domain.dim,))
        assert domain.contains(x)
        assert domain.clip(x) is x
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert domain != MinMaxRows(1 + domain.dim)
    x = domain.draw(np.random.default_rng(5))
    np.testing.assert_array_equal(domain.draw(np.random.default_rng(5)), x)


ENTRIES = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-2.0, 2.0)


@given(st.sampled_from(DOMAINS[::3] + DOMAINS[1::3]), st.data())
def test_clipping_any_vector_gives_a_member_and_twice_changes_nothing(domain, data):
    x = np.array(data.draw(st.lists(ENTRIES, min_size=domain.dim, max_size=domain.dim)))
    once = domain.clip(x)
    assert domain.contains(once)
    np.testing.assert_array_equal(domain.clip(once), once)
    assert domain.contains(x) == (once is x)


@pytest.mark.parametrize(
    ("domain", "x", "clipped"),
    [
        (MinMaxRows(4), [5.0, 0.3, -2.0, 0.4], [1.0, 0.3, 0.0, 0.4]),
        (MinMaxRows(3), [0.5, 0.5, 0.5], [0.0, 0.5, 1.0]),
        (MinMaxRows(3), [7.0, 7.0, 7.0], [0.0, 1.0, 1.0]),
        (Ball("l1", 7.0, 2), [6.0, -8.0], [3.0, -4.0]),
        (Ball("l2", 1.0, 2), [3.0, -4.0], [0.6, -0.8]),
        (Ball("linf", 1.0, 2), [2.0, -1.0], [1.0, -0.5]),
        (Ball("l2", 1.0, 2), [1e308, 1e308], [0.5**0.5, 0.5**0.5]),
        (Simplex(3), [0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        (Simplex(3), [-1e308, 1e308, 0.0], [0.0, 1.0, 0.0]),
        (Sphere(2), [0.0, 0.0], [1.0, 0.0]),
        (Sphere(2, "linf"), [1.0, -4.0], [0.25, -1.0]),
        (OneHot(3), [0.0, 0.0, 0.1], [0.0, 0.0, 1.0]),
        (HistogramCounts(3), [-1.0, 0.6, 1e300], [0.0, 1.0, 2.0**53]),
    ],
)
def test_what_clips_to_what(domain, x, clipped):
    np.testing.assert_allclose(domain.clip(x), clipped, rtol=1e-15, atol=0.0)


@pytest.mark.parametrize(
    "domain", [MinMaxRows(3), Ball("l2", 1.0, 3), Simplex(3), Sphere(3), OneHot(3)], ids=repr
)
def test_the_clip_is_the_nearest_member(domain):
    rng = np.random.default_rng(11)
    members = np.array([domain.draw(rng) for _ in range(400)])
    for _ in range(50):
        x = 2.0 * rng.standard_normal(3)
        nearest = np.linalg.norm(domain.clip(x) - x)
        assert nearest <= np.linalg.norm(members - x, axis=1).min() + 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_slack_is_relative_to_the_radius(norm):
    ball = Ball(norm, 1e6, 3)
    outside = ball.clip([1e9, 1e9, 1e9]) * (1.0 + 1e-10)
    assert not ball.contains(outside)
    assert ball.contains(outside, slack=2e-10)
    assert not ball.contains(outside, slack=1e-11)


def test_the_smallest_excess_is_seen():
    radius = 1.9999999999999998
    assert Ball("linf", radius, 1).contains([radius])
    assert not Ball("linf", radius, 1).contains([np.nextafter(radius, 2.0)])


@pytest.mark.parametrize("norm", NORMS)
def test_ball_draws_are_uniform(norm):
    # The share of radii below r is r^d: Kolmogorov-Smirnov, by the DKW inequality.
    dim, size = 3, 4000
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    rng = np.random.default_rng(17)
    drawn = [np.linalg.norm(Ball(norm, 2.0, dim).draw(rng), order) for _ in range(size)]
    level = (np.sort(drawn) / 2.0) ** dim
    limit = np.sqrt(np.log(2.0 / ALPHA) / (2 * size)) + 1.0 / size
    assert np.abs(level - np.arange(size) / size).max() < limit
    assert np.abs(level ** (2.0 / dim) - np.arange(size) / size).max() > limit


MASKED = np.ma.masked_array([0.0, 1.0], [0, 1])
NO_VECTORS = [
    None, "a", [], [[1.0, 0.0], [0.0, 1.0]], [1.0] * 51, ["a", "b"], [[1.0], [1.0, 2.0]], 1.0,
    [1j, 0], MASKED,
]  # fmt: skip


@pytest.mark.parametrize("domain", [*DOMAINS, Box(0, 1, 3)], ids=repr)
def test_what_is_no_vector_of_finite_numbers_is_no_member(domain):
    for x in (*NO_VECTORS, [1.0, 0.0] if domain.dim == 1 else [1.0]):
        assert not domain.contains(x)
        with pytest.raises((TypeError, ValueError), match=r"^x must be "):
            domain.clip(x)
    for bad in (np.nan, np.inf, -np.inf):
        x = domain.draw(np.random.default_rng(1)).copy()
        x[-1] = bad
        assert not domain.contains(x, *([] if isinstance(domain, Box) else [1e9]))
        with pytest.raises(ValueError, match=r"^x must be a non-empty vector of finite numbers"):
            domain.clip(x)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_neighbours_of_a_histogram(neighbours):
    domain = HistogramCounts(3, neighbours)
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(300):
        other = domain.neighbour([0.0, 2.0, 1.0], rng)
        assert domain.neighbouring([0.0, 2.0, 1.0], other)
        seen.add(tuple(other - [0.0, 2.0, 1.0]))
    # By hand: a record leaves bin 1 or 2, and appears anywhere.
    replaced = {(0, 0, 0), (1, -1, 0), (0, -1, 1), (1, 0, -1), (0, 1, -1)}
    changed = {(0, -1, 0), (0, 0, -1), (1, 0, 0), (0, 1, 0), (0, 0, 1)}
    assert seen == (replaced if neighbours == "replace" else changed)


def test_what_neighbouring_means():
    data = [np.array(x, dtype=float) for x in itertools.product(range(3), repeat=2)]
    for x, y in itertools.product(data, repeat=2):
        gap = np.abs(x - y).sum()
        assert HistogramCounts(2).neighbouring(x, y) == (gap <= 2 and x.sum() == y.sum())
        assert HistogramCounts(2, "add_remove").neighbouring(x, y) == (gap <= 1)
    assert not HistogramCounts(2).neighbouring([0.5, 0.5], [1.0, 0.0])
    assert not HistogramCounts(2).neighbouring([1, 0], [1, 0, 0])


def test_an_empty_histogram_has_nothing_to_replace():
    rng = np.random.default_rng(0)
    assert HistogramCounts(2, "add_remove").neighbour([0, 0], rng).sum() == 1.0
    with pytest.raises(ValueError, match=r"^x must be a histogram of at least one record, got "):
        HistogramCounts(2).neighbour([0, 0], rng)
    with pytest.raises(ValueError, match=r"^x must be a histogram of 2 bins, got "):
        HistogramCounts(2).neighbour([0.5, 0], rng)


@pytest.mark.parametrize(
    "domain",
    [*(kind(2) for kind in (MinMaxRows, Simplex, OneHot, Sphere, HistogramCounts)),
     Ball("l1", 1.0, 2), Box(0, 1, 2), Box(0, 1, 2, integers=True), Records((0, 1), 2)],
    ids=repr,
)  # fmt: skip
def test_every_domain_draws_from_a_generator_only(domain):
    assert domain.contains(domain.draw(np.random.default_rng(1)))
    for rng in (None, 1, np.random.RandomState(1)):
        with pytest.raises(TypeError, match=r"^rng must be a Generator, got"):
            domain.draw(rng)
