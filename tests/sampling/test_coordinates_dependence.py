"""Why the attack on all coordinates refuses dependent ones, and how it finds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from shared_coordinates import ALPHA, certified, constant, counted, geometric, laplace

from dpcore.attacks.entrywise import refuse_dependent
from dpcore.events.every_coordinate import EveryCoordinate, Intervals
from dpcore.records import Pair


def shared(x, size, rng):
    return x + rng.laplace(0.0, 4.0, (size, 1))


def test_why_dependence_must_be_refused():
    # One shared draw loses 1/4; counted as if independent, eight coordinates claim eight times it.
    pair = Pair(np.zeros(8), np.ones(8))
    event = EveryCoordinate((tuple(range(8)),), (Intervals(np.zeros(1), True),), 8)
    bound, _, _ = counted(event, "x", shared, pair, 50_000, np.random.default_rng(1))
    assert bound > 4 * 0.25
    text = "rank correlation 1 between values of coordinates 0 and 1"
    with pytest.raises(ValueError, match=text):
        certified(shared, pair, 50_000)


# What is refused.


def scaled(x, size, rng):
    return x + rng.normal(0.0, 1.0, (size, x.size)) * rng.choice([1.0, 1.5], (size, 1))


def on_a_sphere(x, size, rng):
    outputs = x + rng.normal(0.0, 4.0, (size, x.size))
    return outputs / np.linalg.norm(outputs, axis=1, keepdims=True)


def centred(x, size, rng):
    outputs = x + rng.laplace(0.0, 1.0, (size, x.size))
    return outputs - outputs.mean(axis=1, keepdims=True)


def mixed(x, size, rng):
    # Every entry is nudged a little by some other ones: no pair stands out.
    mixing = np.eye(x.size) + 0.015 * np.random.default_rng(5).choice([-1, 1], (x.size, x.size))
    return x + rng.normal(0.0, 1.0, (size, x.size)) @ mixing


def uneven(x, size, rng):
    return x + rng.laplace(0.0, np.linspace(2.0, 4.0, x.size), (size, x.size))


def later(x, size, rng):
    return (shared if x[0] == 1.0 else laplace(4.0))(x, size, rng)


@pytest.mark.parametrize(
    ("mechanism", "dim", "text"),
    [
        (later, 3, "on x'"),
        (shared, 3, "rank correlation 1 between values of coordinates 0 and 1 on x"),
        (scaled, 8, "distances from the median"),
        (on_a_sphere, 3, "between"),
        (centred, 40, "mean rank correlation -0.02.* between values of coordinates 0 to 39 on x"),
        (mixed, 40, "rank correlations of size"),
        (uneven, 8, "distance .* between the distributions of coordinate [07] and the 7 others"),
    ],
)
def test_a_dependent_pilot_is_refused_by_name(mechanism, dim, text):
    pair = Pair(np.zeros(dim), np.ones(dim))
    with pytest.raises(ValueError, match=text) as raised:
        certified(mechanism, pair, 1000)
    assert str(raised.value).startswith("outputs must be independent from coordinate to coordinate")


def half_nan(x, size, rng):
    outputs = x + rng.exponential(1.0, (size, x.size))
    outputs[rng.random(outputs.shape) < 0.5] = np.nan
    return outputs


def rare(x, size, rng):
    return x + (rng.random((size, x.size)) < 0.002)


INDEPENDENT = {
    "laplace": laplace(1.0), "geometric": geometric, "half NaN": half_nan, "rare": rare,
    "constant": constant, "cauchy": lambda x, size, rng: x + rng.standard_cauchy((size, x.size)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize(("dim", "size"), [(3, 3000), (40, 300), (300, 60)])
def test_independent_coordinates_are_not_refused(name, dim, size):
    rng, x = np.random.default_rng(1), np.zeros(dim)
    for _ in range(10):
        sides = [(side, INDEPENDENT[name](x, size, rng)) for side in ("x", "x'")]
        refuse_dependent(sides, [tuple(range(dim))])


def test_the_rate_of_refusals_at_a_level_one_can_count(monkeypatch):
    # At 1e-6 nothing can be counted; the same tests at 5 % must refuse about that or less.
    monkeypatch.setattr("dpcore.attacks.entrywise.LEVEL", 0.05)
    rng, refused, pilots = np.random.default_rng(1), 0, 300
    for _ in range(pilots):
        try:
            refuse_dependent([("x", rng.laplace(0.0, 1.0, (400, 6)))], [tuple(range(6))])
        except ValueError:
            refused += 1
    assert 0 < refused <= binom.ppf(1.0 - ALPHA, pilots, 0.05)
