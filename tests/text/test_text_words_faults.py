"""Faults of public code, written from their description, and what their exact tables lose.

Each is a table of probabilities in numpy; the repaired twin is the package's own mechanism.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import dpcore
from dpcore.text.words import TEM, CusText, Embedding, SanText, Vickrey


def worst(rows, x, x_prime):
    """The largest loss of two rows of log probabilities, in both directions."""
    with np.errstate(invalid="ignore"):
        losses = np.abs(rows[x] - rows[x_prime])
    return float(np.nan_to_num(losses, nan=0.0, posinf=np.inf).max())


def excess(rows, allowed):
    """The largest loss beyond what is allowed, over all pairs of rows."""
    pairs = [(x, y) for x in range(len(rows)) for y in range(x)]
    return max(worst(rows, x, y) - allowed[x, y] for x, y in pairs)


def near_and_far():
    """300 words on [0, .05] and 300 on [gamma, gamma + .05], with epsilon 50."""
    epsilon = 50.0
    gamma = 2 / epsilon * math.log(0.999 * 599 / 0.001)
    places = np.concatenate([np.linspace(0.0, 0.05, 300), gamma + np.linspace(0.0, 0.05, 300)])
    mech = TEM(Embedding([f"w{i}" for i in range(600)], places[:, None]), epsilon)
    return mech, places


def published_tem(mech, places, bottom_words, bottom_is_input=False):
    """TEM with 2 ln(n)/epsilon in the score of the bottom, n of the number of words near x."""
    apart = np.abs(places[:, None] - places)
    near = apart <= mech.gamma
    weights = np.where(near, np.exp(-mech.epsilon / 2 * apart), 0.0)
    outside = (~near).sum(axis=1)
    number = bottom_words(near.sum(axis=1))
    bottom = np.where(outside > 0, np.exp(-mech.epsilon * mech.gamma / 2) * number, 0.0)
    if bottom_is_input:
        weights[np.arange(len(places)), np.arange(len(places))] += bottom
    else:
        weights += np.where(near, 0.0, (bottom / np.maximum(outside, 1))[:, None])
    with np.errstate(divide="ignore"):
        return np.log(weights / weights.sum(axis=1, keepdims=True))


def test_tem_with_a_quotient_for_a_difference_loses_five_nats():
    mech, places = near_and_far()
    allowed = 50.0 * mech.distance_rows(0, 600)
    wrong = published_tem(mech, places, lambda near: len(places) / near)
    sound = published_tem(mech, places, lambda near: len(places) - near)
    neighbours = [(i, i + 1) for i in range(299)]
    losses = [worst(wrong, *pair) for pair in neighbours]
    at = neighbours[int(np.argmax(losses))]
    assert max(losses) == pytest.approx(5.0, abs=0.02)
    assert allowed[at] == pytest.approx(0.0084, abs=1e-4)
    np.testing.assert_allclose(sound, mech.log_rows(0, 600), rtol=0, atol=1e-9)
    losses = mech.loss_rows(0, 600)[0]
    assert (losses <= allowed + 1e-9).all()
    ratios = losses[~np.eye(600, dtype=bool)] / allowed[~np.eye(600, dtype=bool)]
    assert ratios.max() == pytest.approx(0.994, abs=1e-3)


def test_tem_whose_bottom_returns_the_input_has_an_infinite_loss():
    mech, places = near_and_far()
    wrong = published_tem(mech, places, lambda near: len(places) - near, bottom_is_input=True)
    assert worst(wrong, 0, 599) == math.inf
    assert mech.loss(mech.pair("w0", "w599")) < 50.0 * places[-1]


def vickrey(places, x, t, skips_input):
    """Log probabilities of Vickrey's outputs on word x with epsilon 1, by sums over a fine grid."""
    step = 1e-4
    grid = np.arange(-30.0, 30.0, step) + step / 2
    apart = np.abs(grid[:, None] - places)
    order = np.argsort(apart, axis=1)[:, :3]
    if skips_input:
        # Where the input is the nearest word it is passed over, and nowhere else.
        is_input = order[:, :1] == x
        order = np.where(is_input, order[:, 1:], order[:, :2])
    near, second = np.take_along_axis(apart, order[:, :2], axis=1).T
    share = (1 - t) * second / (t * near + (1 - t) * second)
    density = 0.5 * np.exp(-np.abs(grid - places[x])) * step
    found = np.bincount(order[:, 0], density * share, len(places))
    return np.log(found + np.bincount(order[:, 1], density * (1 - share), len(places)))


def test_vickrey_that_skips_the_input_depends_on_more_than_the_noise():
    places = np.array([0.0, 0.001, 1.0, -1.0])
    wrong = np.array([vickrey(places, x, 0.5, skips_input=True) for x in (0, 1)])
    sound = np.array([vickrey(places, x, 0.5, skips_input=False) for x in (0, 1)])
    # The distance allows .001 nats.
    assert worst(wrong, 0, 1) > 0.1
    assert worst(sound, 0, 1) <= 0.0011
    mech = Vickrey(Embedding(("a", "b", "c", "d"), places[:, None]), 1.0, t=0.5)
    np.testing.assert_allclose(mech.log_rows(0, 2), sound, rtol=0, atol=1e-4)
    assert worst(mech.log_rows(0, 4), 0, 1) <= 0.001 + 1e-9


def test_squared_distances_break_a_claim_in_distances():
    places = np.linspace(0.0, 4.0, 9)
    mech = SanText(Embedding([f"w{i}" for i in range(9)], places[:, None]), 2.0)
    allowed = 2.0 * mech.distance_rows(0, 9)
    scores = -((places[:, None] - places) ** 2)
    wrong = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert excess(wrong, allowed) > 4.0
    assert excess(mech.log_rows(0, 9), allowed) <= 1e-9


def test_synonyms_scored_by_the_input_have_other_supports():
    places = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    mech = CusText(Embedding(list("abcdef"), places), 1.0, k=3)
    synonyms = {
        x: [y for y in range(6) if y != x and abs(places[x] - places[y])[0] < 1.0] for x in range(6)
    }
    with np.errstate(divide="ignore"):
        wrong = np.log(
            [[float(y in synonyms[x]) / len(synonyms[x]) for y in range(6)] for x in range(6)]
        )
    # The score of every synonym is the input's own: a uniform choice, whatever epsilon is.
    assert worst(wrong, 0, 1) == math.inf
    assert mech.same_list[0, 1]
    assert worst(mech.log_rows(0, 6), 0, 1) <= 1.0 + 1e-9


def test_unknown_words_left_unchanged_have_an_infinite_loss():
    mech = SanText(Embedding(("bad", "good", "fine"), [[0.0], [1.0], [2.0]]), 1.0)
    outputs = 4  # three words, and the unknown one itself
    kept = np.full((4, outputs), -np.inf)
    kept[:3, :3], kept[3, 3] = mech.log_rows(0, 3), 0.0
    uniform = np.full((4, outputs), -np.inf)
    uniform[:3, :3], uniform[3, :3] = mech.log_rows(0, 3), -math.log(3.0)
    assert worst(kept, 3, 0) == math.inf
    assert worst(uniform, 3, 0) < 1.0
    texts = ["good zyzzyva"] * 200
    assert all("zyzzyva" in text for text in mech.rewrite(texts, unknown="keep", rng=1))
    assert not any("zyzzyva" in text for text in mech.rewrite(texts, unknown="uniform", rng=1))


# Faults of the noise, which has no table: audits of draws.


def draw_noise(x, size, rng, shape=2.0, spread=1.0):
    """Draw noise of Gamma length; a direction is normalised after one entry was made smaller."""
    direction = rng.normal(size=(size, 2)) * [1.0, spread]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(x) + direction * rng.gamma(shape, size=(size, 1))


@pytest.mark.parametrize(
    ("fault", "least"),
    [({"spread": 0.01}, 4.0), ({"shape": 1.0}, 0.5)],
    ids=["direction normalised after Sigma^(1/2)", "Gamma(1) for Gamma(2)"],
)
def test_faulty_noise_is_refuted_where_sound_noise_is_not(fault, least):
    """Two inputs .05 apart may lose .05; at 95 %, on a fixed seed."""
    pair = dpcore.Pair([0.0, 0.0], [0.0, 0.05])
    settings = {"claim": 0.05, "trials": 200_000, "rng": 1}
    faulty = dpcore.audit(functools.partial(draw_noise, **fault), pair, **settings)
    assert faulty.refuted
    assert faulty.epsilon_lower > least
    assert not dpcore.audit(draw_noise, pair, **settings).refuted
