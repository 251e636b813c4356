"""The domains and the transforms into them: members, nearest members, and scales of noise."""

from __future__ import annotations

import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcore import _core
from dpcore.pairs import NORMS, Domain, Records
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
    declaration,
    laplace_scale,
    sensitivity,
)

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


# Transforms before the noise, and the scale that their ranges ask for.


ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
TRANSFORMS = [
    *(Clip(norm, radius) for norm in NORMS for radius in (0.3, 10.0)),
    MinMax(),
    *(Normalise(norm) for norm in NORMS),
]


def rows(seed, size, dim, scale=10.0):
    return scale * np.random.default_rng(seed).standard_normal((size, dim))


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
@pytest.mark.parametrize("dim", [2, 3, 256])
def test_rows_end_up_in_the_range_and_as_they_would_alone(transform, dim):
    x = rows(1, 50, dim)
    done = transform(x)
    domain = transform.range(dim)
    assert (done.shape, done.dtype) == (x.shape, np.float64)
    for before, after in zip(x, done, strict=True):
        assert domain.contains(after)
        np.testing.assert_array_equal(transform(before), after)
        np.testing.assert_allclose(transform(after), after, rtol=1e-15, atol=0.0)
    np.testing.assert_array_equal(transform(np.asfortranarray(x)), done)
    assert transform(x[:0]).shape == (0, dim)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_the_witness_of_the_range_is_left_alone(transform):
    for norm in NORMS:
        found = sensitivity(transform.range(5), norm)
        for x in (found.pair.x, found.pair.x_prime):
            np.testing.assert_allclose(transform(x), x, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [1, 2, 33, 768, 4096])
def test_no_clipped_row_is_outside_and_twice_changes_nothing(norm, dim):
    for radius in (1e-3, 0.3, 1.0, 10.0, 1e250):
        clip, domain = Clip(norm, radius), Ball(norm, radius, dim)
        for scale in (1e-3 * radius, radius, 1e3 * radius):
            x = rows(2, 20, dim, scale)
            once = clip(x)
            np.testing.assert_array_equal(clip(once), once)
            assert all(domain.contains(row) for row in once)
            length = np.linalg.norm(x / radius, ORDERS[norm], axis=1)
            after = np.linalg.norm(once / radius, ORDERS[norm], axis=1)
            np.testing.assert_allclose(after, np.minimum(length, 1.0), rtol=1e-12)
            assert np.array_equal(once[length < 0.999], x[length < 0.999])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_clip_is_that_of_the_mechanisms(norm):
    for row in rows(3, 100, 64):
        expected = _core.clip(row, norm, 7.0)
        np.testing.assert_allclose(Clip(norm, 7.0)(row), expected, rtol=1e-14, atol=0.0)


RADII = st.floats(1e-300, 1e300) | st.just(5e-324) | st.just(2e-310)


@given(st.lists(ENTRIES, min_size=1, max_size=9), st.sampled_from(NORMS), RADII)
def test_clipping_at_the_ends_of_float64(x, norm, radius):
    clip = Clip(norm, radius)
    once = clip(x)
    assert clip.range(len(x)).contains(once)
    np.testing.assert_array_equal(clip(once), once)
    assert (np.sign(once) * np.sign(x) >= 0).all()


@given(st.lists(ENTRIES, min_size=2, max_size=9).filter(lambda x: min(x) < max(x)))
@example([0.0, 3.35e190, -8.28e-134])  # 0 is so near to the smallest that either may be it
def test_scaling_at_the_ends_of_float64(x):
    scaled = MinMax()(x)
    assert MinMaxRows(len(x)).contains(scaled)
    # An entry next to the smallest may become 0 as well.
    assert (scaled[np.argmin(x)], scaled[np.argmax(x)]) == (0.0, 1.0)
    np.testing.assert_array_equal(MinMax()(scaled), scaled)


@given(st.lists(ENTRIES, min_size=1, max_size=9).filter(any), st.sampled_from(NORMS))
def test_normalising_at_the_ends_of_float64(x, norm):
    assert abs(np.linalg.norm(Normalise(norm)(x), ORDERS[norm]) - 1.0) < 1e-12


def test_norms_and_ranges_beyond_float64():
    huge = np.array([[1.7e308, -1.7e308, 1.7e308, 0.0]])
    third = [[1 / 3, -1 / 3, 1 / 3, 0.0]]
    np.testing.assert_allclose(Clip("l1", 6.0)(huge), 6.0 * np.array(third), rtol=1e-15)
    np.testing.assert_allclose(Normalise("l1")(huge), third, rtol=1e-15)
    np.testing.assert_allclose(Normalise("l2")(huge), 3**0.5 * np.array(third), rtol=1e-15)
    np.testing.assert_array_equal(MinMax()(huge), [[1.0, 0.0, 1.0, 0.5]])
    # In one call with small rows, which keep all their digits.
    np.testing.assert_array_equal(MinMax()([[1.7e308, -1.7e308], [0.0, 5e-324]]), np.eye(2))


@pytest.mark.parametrize("transform", [Clip("l2", 1.0), MinMax(), Normalise("l2")], ids=repr)
@pytest.mark.parametrize(
    ("x", "error", "text"),
    [
        ([1.0, np.nan], ValueError, "x must be finite numbers, got array"),
        ([[1.0, 2.0], [np.inf, 0.0]], ValueError, "row 1 of x must be finite numbers, got array"),
        (["a", "b"], TypeError, "x must be a vector or rows of finite numbers, shape"),
        ([], ValueError, "x must be a vector or rows"),
        (1.0, ValueError, "x must be a vector or rows"),
        (np.ones((2, 0)), ValueError, "x must be a vector or rows"),
        (np.ones((2, 2, 2)), ValueError, "x must be a vector or rows"),
        ([[1.0], [1.0, 2.0]], ValueError, "x must be a vector or rows"),
        (np.ma.masked_array([1.0, 2.0], [0, 1]), ValueError, "x must be a vector or rows"),
    ],
)
def test_bad_rows(transform, x, error, text):
    with pytest.raises(error, match=f"^{text}"):
        transform(x)


def test_input_stays_as_it_is():
    for transform in TRANSFORMS:
        x = rows(4, 5, 3)
        before = x.copy()
        transform(x)
        np.testing.assert_array_equal(x, before)
        assert pickle.loads(pickle.dumps(transform)) == transform


@pytest.mark.parametrize(
    ("transform", "dim", "expected"),
    [
        (Clip("l2", 5.0), 256, 160.0), (Clip("l1", 5.0), 256, 10.0), (Clip("linf", 5.0), 4, 40.0),
        (MinMax(), 768, 768.0), (Normalise("l2"), 16, 8.0), (Normalise("l1"), 16, 2.0),
        (Ball("l2", 5.0, 256), None, 160.0), (Box(0, 2, 3), 3, 6.0),
    ],
)  # fmt: skip
def test_the_scale_is_the_l1_sensitivity_over_epsilon(transform, dim, expected):
    assert laplace_scale(0.5, transform, dim) == pytest.approx(2.0 * expected, rel=1e-15)
    assert laplace_scale(0.5, transform, dim, declared=expected) == 2.0 * expected


def test_a_declared_sensitivity_that_is_too_small_is_shown_with_its_pair():
    text = (
        "declared must be the l1 sensitivity of MinMaxRows(dim=768), got 1; "
        "declared 1, attained 768 by this pair (l1): x = [1., 0., ..., 0., 0.] and "
        "x_prime = [0., 1., ..., 1., 1.]; the declared one is too small"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        laplace_scale(1.0, MinMax(), 768, declared=1)


def test_the_record_reports_without_raising():
    found = declaration(20.0, Clip("l2", 10.0), "l1", 256)
    assert (found.too_small, found.too_large, found.matches) == (True, False, False)
    assert found.attained == sensitivity(Ball("l2", 10.0, 256), "l1")
    assert declaration(20.0, Clip("l2", 10.0), "l2", 256).matches
    for slack, said in ((1e-13, "matches"), (1e-11, "too_large"), (-1e-11, "too_small")):
        assert getattr(declaration(320.0 * (1 + slack), Clip("l2", 10.0), "l1", 256), said)
    text = "declared 2, attained 2 by this pair (l2): x = [1., 0.] and x_prime = [-1., -0.]"
    assert str(declaration(2, Sphere(2), "l2")) == text
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_transform_of_the_users_own():
    class Halved:
        def range(self, dim):
            return Ball("l1", 0.5, dim)

    assert laplace_scale(1.0, Halved(), 7) == 1.0
