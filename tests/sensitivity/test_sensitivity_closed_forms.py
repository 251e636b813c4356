"""Closed-form sensitivities: the table, its witnesses, and that nothing exceeds them."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_examples import examples
from shared_messages import check_messages

from dpcore import Pair, _core
from dpcore.pairs import NORMS, Box
from dpcore.sensitivity import (
    Ball,
    HistogramCounts,
    MinMaxRows,
    OneHot,
    Sensitivity,
    Simplex,
    Sphere,
    sensitivity,
)

DIMS = (1, 2, 3, 5, 8, 31, 256, 768, 4097)

KINDS = {
    "box": lambda d: Box(-1.0, 2.5, d), "integers": lambda d: Box(-1, 3, d, integers=True),
    "min-max": MinMaxRows, "l1 ball": lambda d: Ball("l1", 5.0, d),
    "l2 ball": lambda d: Ball("l2", 0.3, d), "linf ball": lambda d: Ball("linf", 10.0, d),
    "simplex": Simplex, "one-hot": OneHot, "sphere": Sphere,
    "l1 sphere": lambda d: Sphere(d, "l1"), "linf sphere": lambda d: Sphere(d, "linf"),
    "replace": lambda d: HistogramCounts(d, "replace"),
    "add_remove": lambda d: HistogramCounts(d, "add_remove"),
}  # fmt: skip


def table(kind, d):
    """The table of the literature: (l1, l2, linf)."""
    root = math.sqrt(d)
    if d == 1 and kind in ("simplex", "one-hot", "replace"):
        return 0.0, 0.0, 0.0
    return {
        "box": (d * 3.5, root * 3.5, 3.5),
        "integers": (d * 4.0, root * 4.0, 4.0),
        "min-max": (d, root, 1.0),
        "l1 ball": (10.0, 10.0, 10.0),
        "l2 ball": (0.6 * root, 0.6, 0.6),
        "linf ball": (20.0 * d, 20.0 * root, 20.0),
        "simplex": (2.0, math.sqrt(2.0), 1.0),
        "one-hot": (2.0, math.sqrt(2.0), 1.0),
        "sphere": (2.0 * root, 2.0, 2.0),
        "l1 sphere": (2.0, 2.0, 2.0),
        "linf sphere": (2.0 * d, 2.0 * root, 2.0),
        "replace": (2.0, math.sqrt(2.0), 1.0),
        "add_remove": (1.0, 1.0, 1.0),
    }[kind]


def norm_of(gap, norm):
    """By numpy, not by the package."""
    return float(np.linalg.norm(gap, {"l1": 1, "l2": 2, "linf": np.inf}[norm]))


CASES = [(kind, dim) for kind in KINDS for dim in DIMS if not (kind == "min-max" and dim == 1)]


@pytest.mark.parametrize(("kind", "dim"), CASES)
def test_the_table_and_the_witness_by_one_subtraction(kind, dim):
    domain = KINDS[kind](dim)
    for norm, value in zip(NORMS, table(kind, dim), strict=True):
        found = sensitivity(domain, norm)
        x, x_prime = found.pair.x, found.pair.x_prime
        assert (found.norm, found.domain, found.against) == (norm, domain, "another")
        assert found.value == pytest.approx(value, rel=1e-15, abs=0.0)
        assert norm_of(x - x_prime, norm) == pytest.approx(found.value, rel=1e-12, abs=0.0)
        for side in (x, x_prime):
            assert (side.dtype, side.shape, domain.contains(side)) == (np.float64, (dim,), True)
            np.testing.assert_array_equal(domain.clip(side), side)
        if isinstance(domain, HistogramCounts):
            assert domain.neighbouring(x, x_prime)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("radius", [1e-3, 1.0, 0.7, 10.0, 1e250])
def test_the_clip_of_the_mechanisms_leaves_the_witness_alone(norm, dim, radius):
    for side in (found := sensitivity(Ball(norm, radius, dim), "l1").pair).x, found.x_prime:
        np.testing.assert_allclose(_core.clip(side, norm, radius), side, rtol=1e-12, atol=0.0)


POLYTOPES = (
    "box", "min-max", "l1 ball", "linf ball", "simplex", "one-hot", "l1 sphere", "linf sphere"
)  # fmt: skip


def vertices(kind, dim):
    """Members between which a distance, being convex, is largest; by enumeration."""
    cube = [np.array(v, dtype=float) for v in itertools.product((0.0, 1.0), repeat=dim)]
    axes = [sign * row for row in np.eye(dim) for sign in (1.0, -1.0)]
    signs = [2.0 * v - 1.0 for v in cube]
    return {
        "box": [3.5 * v - 1.0 for v in cube],
        "min-max": [v for v in cube if v.min() == 0.0 and v.max() == 1.0],
        "l1 ball": [5.0 * v for v in axes],
        "linf ball": [10.0 * v for v in signs],
        "simplex": list(np.eye(dim)),
        "one-hot": list(np.eye(dim)),
        "l1 sphere": axes,
        "linf sphere": signs,
    }[kind]


@pytest.mark.parametrize(
    ("kind", "dim"), [(kind, dim) for kind, dim in CASES if kind in POLYTOPES and dim <= 5]
)
def test_polytopes_by_enumeration_of_their_vertices(kind, dim):
    corners = vertices(kind, dim)
    domain = KINDS[kind](dim)
    assert all(domain.contains(corner) for corner in corners)
    for norm in NORMS:
        largest = max(norm_of(v - w, norm) for v, w in itertools.product(corners, repeat=2))
        assert sensitivity(domain, norm).value == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_histograms_by_enumeration_of_data(neighbours, dim):
    def histogram(data):
        return np.bincount(np.array(data, dtype=int), minlength=dim).astype(float)

    gaps = []
    for data in itertools.product(range(dim), repeat=3):
        x = histogram(data)
        if neighbours == "replace":
            near = [histogram((*data[1:], record)) for record in range(dim)]
        else:
            near = [histogram(data[1:]), *(histogram((*data, record)) for record in range(dim))]
        domain = HistogramCounts(dim, neighbours)
        assert all(domain.neighbouring(x, other) for other in near)
        gaps += [x - other for other in near]
    for norm in NORMS:
        largest = max(norm_of(gap, norm) for gap in gaps)
        assert sensitivity(HistogramCounts(dim, neighbours), norm).value == pytest.approx(largest)


def largest_drawn(domain, norm, rng, size):
    """The largest distance among random neighbours, drawn members and corners of clipped ones."""
    largest = 0.0
    for _ in range(size):
        if isinstance(domain, HistogramCounts):
            x = domain.draw(rng)
            others = [domain.neighbour(x, rng)]
        else:
            x = domain.clip(domain.draw(rng))
            far = 10.0 * rng.standard_normal(domain.dim)
            others = [domain.draw(rng), domain.clip(far), domain.clip(-10.0 * x)]
        largest = max(largest, *(norm_of(x - other, norm) for other in others))
    return largest


@examples(40)
@given(st.sampled_from(sorted(KINDS)), st.integers(2, 12), st.integers(0, 2**32))
def test_no_members_are_farther_apart(kind, dim, seed):
    domain = KINDS[kind](dim)
    rng = np.random.default_rng(seed)
    for norm in NORMS:
        assert largest_drawn(domain, norm, rng, 10) <= sensitivity(domain, norm).value * (1 + 1e-12)


VECTORS = st.integers(2, 9).flatmap(
    lambda d: st.tuples(*[st.lists(st.floats(-1e6, 1e6), min_size=d, max_size=d)] * 2)
)


@given(VECTORS, st.sampled_from([k for k in sorted(KINDS) if k not in ("replace", "add_remove")]))
def test_no_clipped_vectors_are_farther_apart(vectors, kind):
    domain = KINDS[kind](len(vectors[0]))
    x, x_prime = (domain.clip(np.array(v)) for v in vectors)
    assert all(map(domain.contains, (x, x_prime)))
    for norm in NORMS:
        assert norm_of(x - x_prime, norm) <= sensitivity(domain, norm).value * (1 + 1e-12)


@pytest.mark.parametrize(
    ("domain", "norm", "wrong"),
    [
        # ADePT: the L2 diameter in L1. DPNR: the Linf one in L1.
        (Ball("l2", 1.0, 32), "l1", 2.0), (MinMaxRows(32), "l1", 1.0),
        (Ball("linf", 1.0, 8), "l2", 2.0), (Simplex(3), "l1", math.sqrt(2.0) / 2.0),
        (Sphere(8), "l1", 2.0), (HistogramCounts(4), "l1", 1.0),
    ],
)  # fmt: skip
def test_control_wrong_formulas_are_exceeded(domain, norm, wrong):
    assert largest_drawn(domain, norm, np.random.default_rng(7), 50) > wrong * (1 + 1e-12)
    pair = sensitivity(domain, norm).pair
    with pytest.raises(ValueError, match=f"^value must be the {norm} distance of its pair, "):
        Sensitivity(wrong, pair, norm, domain)


@pytest.mark.parametrize("ball", NORMS)
@pytest.mark.parametrize("norm", NORMS)
def test_against_an_absent_row_is_half(ball, norm):
    for dim in (1, 2, 9):
        domain = Ball(ball, 3.0, dim)
        found = sensitivity(domain, norm, against="absent")
        assert found.value == sensitivity(domain, norm).value / 2.0
        assert not found.pair.x_prime.any()
        assert domain.contains(found.pair.x)
        assert norm_of(found.pair.x, norm) == pytest.approx(found.value, rel=1e-12)
    assert "against an absent row" in str(found)


def test_a_domain_without_differences_has_sensitivity_0():
    for norm in NORMS:
        found = sensitivity(Box(1, 1, 3), norm)
        assert found.value == 0.0
        np.testing.assert_array_equal(found.pair.x, found.pair.x_prime)


@given(st.floats(-250, 250), st.integers(1, 40), st.sampled_from(NORMS), st.sampled_from(NORMS))
def test_radii_of_any_size(exponent, dim, ball, norm):
    radius = 10.0**exponent
    found = sensitivity(Ball(ball, radius, dim), norm)
    scaled = sensitivity(Ball(ball, 1.0, dim), norm).value * radius
    assert found.value == pytest.approx(scaled, rel=1e-14, abs=0.0)


def test_the_record():
    found = sensitivity(Ball("l2", 1.0, 4), "l1")
    assert found == sensitivity(Ball("l2", 1.0, 4), "l1")
    assert found != sensitivity(Ball("l2", 1.0, 4), "l2")
    assert pickle.loads(pickle.dumps(found)) == found
    assert str(found) == (
        "l1 sensitivity 4 of Ball(norm='l2', radius=1.0, dim=4), attained by "
        "x = [0.5, 0.5, 0.5, 0.5] and x_prime = [-0.5, -0.5, -0.5, -0.5]"
    )
    assert "\n" not in str(sensitivity(Box(0, 1, 1000), "l2"))


class MyBall(Ball):
    """A user's own: its members may be others."""


UNITS = Pair([1.0, 0.0], [0.0, 1.0])


VALUE_ERRORS = [
    # A class has every method of a domain, but no members.
    (lambda: sensitivity(Sphere(2), "l3"), "norm", "one of 'l1', 'l2', 'linf'"),
    (lambda: sensitivity(Sphere(2), "l1", against="absent"), "against", "'another' where"),
    (lambda: sensitivity(Sphere(2), "l1", against="x"), "against", "one of"),
    (lambda: sensitivity(Box(-8e307, 8e307, 2), "l1"), "domain", "one whose l1 sensitivity"),
    (lambda: Sensitivity(2, UNITS, "l1", OneHot(2), "absent"), "pair.x_prime", "zeros against"),
    (lambda: Sensitivity(2, UNITS, "l1", Ball("l2", 0.9, 2)), "pair.x", "a member"),
    (lambda: Sensitivity(2, UNITS, "l1", HistogramCounts(2, "add_remove")), "pair",
     "one of neighbours"),
]  # fmt: skip
TYPE_ERRORS = [
    # A class has every method of a domain, but no members.
    (lambda: sensitivity(Sphere(2), 2), "norm", "one of 'l1', 'l2', 'linf'"),
    (lambda: sensitivity("ball", "l1"), "domain", "one with a closed form"),
    (lambda: sensitivity(MyBall("l1", 1.0, 2), "l1"), "domain", "one with a"),
    (lambda: Sensitivity(2, UNITS, "l1", "x"), "domain", "a domain with dim"),
    (lambda: Sensitivity(2, UNITS, "l1", OneHot), "domain", "a domain with"),
    (lambda: Sensitivity(2, "x", "l1", OneHot(2)), "pair", "a Pair"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
