"""Samplers of word mechanisms follow their tables, whatever is prepared and however it is called.

Chi-square tests have significance 1e-4 and fixed seeds; each has a control, a table that is wrong
by 2 %, which the same draws refute.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from dpcore import _core
from dpcore.calibration import L2Laplace
from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

RNG = np.random.default_rng(28)
NAMES = tuple(f"word{i}" for i in range(30))
LINE = Embedding(NAMES, RNG.normal(size=(30, 1)))
SPACE = Embedding(NAMES, RNG.normal(size=(30, 8)))
DRAWS = 10**6

MECHANISMS = {
    "SanText": SanText(SPACE, 1.5),
    "SanTextPlus": SanTextPlus(SPACE, 1.5, NAMES[12:]),
    "TEM": TEM(SPACE, 6.0),
    "conservative": CusText(SPACE, 2.0, k=7),
    "aggressive": CusText(SPACE, 2.0, k=7, mapping="aggressive"),
    "MetricLaplace": MetricLaplace(LINE, 2.0),
    "Vickrey": Vickrey(LINE, 2.0, t=0.6),
}


def chi_square(counts, rows, numbers):
    """p-value of counts of outputs, a row for each input; rare outputs of a row are one cell."""
    statistic = degrees = 0.0
    for row, count, number in zip(rows, counts, numbers, strict=True):
        expected = row * number
        assert count[row == 0.0].sum() == 0
        rare = expected < 10.0
        cells = [(expected[~rare], count[~rare])]
        if expected[rare].sum() >= 10.0:
            cells.append((expected[rare].sum(keepdims=True), count[rare].sum(keepdims=True)))
        for wanted, found in cells:
            statistic += ((found - wanted) ** 2 / wanted).sum()
            degrees += wanted.size
        # With rare outputs left out the shares do not add up, and no degree is lost.
        degrees -= float(len(cells) == 2 or not rare.any())
    return chi2.sf(statistic, degrees)


def counted(mech, size, seed=1):
    inputs = np.random.default_rng(seed).integers(0, 30, size)
    outputs = mech.replace(inputs, seed)
    counts = np.bincount(inputs * 30 + outputs, minlength=900).reshape(30, 30)
    return counts, np.bincount(inputs, minlength=30)


@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_their_table_and_a_fault_of_two_per_cent_is_found(name):
    mech = MECHANISMS[name]
    rows = np.exp(mech.log_rows(0, 30))
    counts, numbers = counted(mech, DRAWS)
    assert chi_square(counts, rows, numbers) > 1e-4
    # Two in a hundred draws go to the second likeliest word instead of the first.
    wrong, order = rows.copy(), rows.argsort(axis=1)
    wrong[np.arange(30), order[:, -1]] -= 0.02
    wrong[np.arange(30), order[:, -2]] += 0.02
    assert chi_square(counts, wrong, numbers) < 1e-4


@pytest.mark.parametrize("t", [None, 0.6])
def test_noise_in_several_dimensions_is_that_of_the_plain_formula(t):
    mech = MetricLaplace(SPACE, 6.0) if t is None else Vickrey(SPACE, 6.0, t=t)
    size, rng = 60_000, np.random.default_rng(5)
    word = SPACE.words[3]
    found = np.bincount(mech(word, size, 1), minlength=30)

    def plain(noise):
        apart = np.linalg.norm((SPACE[word] + noise)[:, None] - SPACE.vectors, axis=2)
        order = apart.argsort(axis=1)[:, :2]
        near, second = np.take_along_axis(apart, order, axis=1).T
        share = 0.0 if t is None else t * near / (t * near + (1 - t) * second)
        return np.bincount(np.where(rng.random(size) < share, *order.T[::-1]), minlength=30)

    noise = L2Laplace(1 / 6.0)(np.zeros(8), size, rng)
    wrong = noise / np.linalg.norm(noise, axis=1, keepdims=True) * rng.exponential(1 / 6, (size, 1))
    for drawn, is_right in ((plain(noise), True), (plain(wrong), False)):
        common = (found + drawn) >= 20
        one, other = found[common].astype(float), drawn[common].astype(float)
        statistic = ((one - other) ** 2 / (one + other)).sum()
        # The control: Gamma(1) for Gamma(8), a fault of public code.
        assert (chi2.sf(statistic, common.sum() - 1) > 1e-4) == is_right


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_sampler_serves_calls_texts_and_rewriting(name, monkeypatch):
    mech = MECHANISMS[name]
    text = "word3 word29 word3"
    numbers = [3, 29, 3]
    outputs = mech(text, 50_000, 7)
    assert outputs.shape == (50_000, 3)
    assert outputs.tolist() == mech(numbers_to_words(numbers), 50_000, 7).tolist()
    repeated = mech.replace(np.tile(numbers, 50_000), 7)
    assert repeated.tolist() == outputs.ravel().tolist()
    again = mech.rewrite(["word3, Word29!", "word3"], rng=7)
    assert again == [" ".join(NAMES[i] for i in outputs[0, :2]), NAMES[outputs[0, 2]]]
    assert mech("word3", 4, 7).tolist() == mech(3, 4, 7).tolist()
    assert mech("word3", 0, 7).shape == (0,)
    # A Generator gives one seed.
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    assert (
        mech("word3", 9, first).tolist() == mech("word3", 9, int(second.integers(2**63))).tolist()
    )
    assert first.bit_generator.state == second.bit_generator.state
    # Neither threads nor the rows that are prepared together change a draw.
    monkeypatch.setattr("dpcore.text.words.mechanism._MAX_PREPARED_ENTRIES", 70)
    monkeypatch.setattr(_core, "cores", lambda: 1)
    fresh = type(mech)(*mech._values())
    assert fresh(text, 50_000, 7).tolist() == outputs.tolist()
    assert fresh("word5", 9, 7).tolist() == mech("word5", 9, 7).tolist()


def numbers_to_words(numbers):
    return [NAMES[number] for number in numbers]


@pytest.mark.parametrize("name", ["SanText", "MetricLaplace"])
def test_unknown_words_are_dropped_kept_or_replaced_by_any_word(name):
    mech = MECHANISMS[name]
    texts = ["word1 cat word2", "dog", "word4"]
    dropped = mech.rewrite(texts, unknown="drop", rng=3)
    assert [len(text.split()) for text in dropped] == [2, 0, 1]
    kept = mech.rewrite(texts, unknown="keep", rng=3)
    assert (kept[0].split()[1], kept[1]) == ("cat", "dog")
    assert [one for one in " ".join(kept).split() if one not in ("cat", "dog")] == " ".join(
        dropped
    ).split()
    drawn = mech.rewrite(["cat word1"] * 60_000, unknown="uniform", rng=3)
    places = [[NAMES.index(word) for word in text.split()] for text in drawn]
    counts = [np.bincount(column, minlength=30) for column in np.transpose(places)]
    rows = np.array([np.full(30, 1 / 30), np.exp(mech.log_rows(1, 2)[0])])
    assert chi_square(counts, rows, [60_000] * 2) > 1e-4
    assert chi_square(counts, rows[::-1], [60_000] * 2) < 1e-4
    cased = mech.rewrite(["word1_word2"], tokenise=lambda text: text.split("_"), rng=1)
    assert len(cased[0].split()) == 2


def test_two_equally_near_words_give_the_lower_number():
    mech = MetricLaplace(Embedding(("far", "up", "down"), [[9.0], [1.0], [-1.0]]), 1.0)
    assert mech._choose_words(np.array([[0.0], [0.5], [-0.5]]), np.zeros(3)).tolist() == [1, 1, 2]
