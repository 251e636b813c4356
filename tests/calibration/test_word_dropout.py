"""Word dropout: its bound, the conditions of the bound, and examples that break each of them."""

from __future__ import annotations

import math
import pickle
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpcore
from dpcore import Pair
from dpcore.calibration import COUNTEREXAMPLES, MaskedWords, word_dropout
from dpcore.calibration.masked_words import (
    MASK,
    answer_by_a_or_b,
    answer_by_end_words,
    mask_answer_probabilities,
)

ALPHA = 1e-6
BOUND = math.log((math.e + 1.0) / 2.0)
"""Of epsilon 1 and mu .5: .6201."""

BY_NAME = {example.name: example for example in COUNTEREXAMPLES}
TEXTS = [" ".join(words) for words in product("abc", repeat=2)]
WITH_MASKS = [" ".join(words) for words in product(f"abc{MASK}", repeat=2)]


def apart(text, other):
    return sum(one != two for one, two in zip(text.split(), other.split(), strict=True))


def largest(mechanism, texts, words=1):
    """The largest loss of texts that differ in so many words at most."""
    pairs = ((x, y) for x, y in product(texts, repeat=2) if apart(x, y) <= words)
    return max(mechanism.loss(Pair(x, y)) for x, y in pairs)


# The bound.


@given(st.floats(-12.0, 3.5).map(lambda t: 10.0**t), st.floats(0.0, 1.0, exclude_max=True))
def test_the_formula_in_any_size(epsilon, mu):
    found = word_dropout(epsilon, mu)
    with mp.workdps(2000):
        # e^3000 has 1,300 digits before the point.
        exact = mp.log((1 - mp.mpf(mu)) * mp.exp(mp.mpf(epsilon)) + mp.mpf(mu))
    assert found <= epsilon
    assert found == pytest.approx(float(exact), rel=1e-15, abs=1e-300)


def test_masks_of_no_word_take_nothing_off():
    assert word_dropout(1.0, 0.5) == pytest.approx(BOUND, rel=1e-15)
    for epsilon in (1e-300, 1e-9, 0.3, 699.0, 701.0, 1e300):
        assert word_dropout(epsilon, 0.0) == pytest.approx(epsilon, rel=1e-15)
    # At large epsilon masks hardly help: 768 of DPNR at mu = .5 become 767.3.
    assert word_dropout(768.0, 0.5) == pytest.approx(768.0 - math.log(2.0), rel=1e-15)


def three_laws(rng, size, answers):
    """Laws with and without the word and with the mask: P1, Q1, P0, ratios near e throughout."""
    laws = rng.dirichlet(np.full(answers, 0.3), size)[:, None, :]
    laws = laws * np.exp(rng.beta(0.2, 0.2, (size, 3, answers)))
    return laws / laws.sum(axis=-1, keepdims=True)


def losses(one, two):
    return np.abs(np.log(one) - np.log(two)).max(axis=-1)


def test_no_triple_of_neighbours_exceeds_the_bound_and_others_do():
    rng = np.random.default_rng(1)
    seen, reached, beyond = 0, 0.0, 0
    while seen < 200_000:
        for answers in (2, 3, 4):
            kept, other, masked = np.moveaxis(three_laws(rng, 40_000, answers), 1, 0)
            found = losses((kept + masked) / 2.0, (other + masked) / 2.0)
            one_word = losses(kept, other) <= 1.0
            neighbours = one_word & (losses(kept, masked) <= 1.0) & (losses(other, masked) <= 1.0)
            seen += int(neighbours.sum())
            reached = max(reached, float(found[neighbours].max()))
            # The control: the mask is any law.
            stranger = np.roll(masked, 1, axis=0)
            found = losses((kept + stranger) / 2.0, (other + stranger) / 2.0)
            beyond += int((found[one_word] > BOUND).sum())
    assert 0.616 < reached <= BOUND
    assert beyond > 1000


# The examples.


def test_there_is_one_for_each_condition_and_the_refusal_names_it():
    broken = {"masks": "exact", "masked_is_neighbour": False, "neighbours": "any two texts"}
    assert [example.broken for example in COUNTEREXAMPLES] == list(broken.items())
    for example in COUNTEREXAMPLES:
        name, value = example.broken
        with pytest.raises(ValueError, match=f"^{name} must be .*'{example.name}' in dpcore") as at:
            word_dropout(1.0, 0.5, **{name: value})
        assert at.value.argument == name


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("exact_counts", math.log((math.e**2 + 1.0) / (math.e + 1.0))),
        ("masked_no_neighbour", 1.0),
        ("any_two_texts", math.log(0.75 * math.e + 0.25)),
    ],
)
def test_exact_losses(name, loss):
    example = BY_NAME[name]
    assert example.mechanism.claim == example.sound.claim == word_dropout(1.0, 0.5)
    assert example.mechanism.loss(example.pair) == pytest.approx(loss, rel=1e-14)
    assert example.sound.loss(example.sound_pair) == pytest.approx(BOUND, rel=1e-14)
    for mechanism, pair in ((example.mechanism, example.pair), (example.sound, example.sound_pair)):
        assert mechanism.law(pair.x).sum() == pytest.approx(1.0, rel=1e-15)
        # Without masks both keep their epsilon: nothing but the masks is at fault.
        assert MaskedWords(mechanism.answer, mu=0.0).loss(pair) == pytest.approx(1.0, rel=1e-14)


def test_exact_counts_as_worked_out_by_hand():
    answer, e = BY_NAME["exact_counts"].mechanism.answer, math.e
    for words, chance in (("a_", e / (1 + e)), ("c_", 1 / (1 + e)), ("_b", 1 / (e * (1 + e)))):
        assert answer(tuple(words), 1.0)[1] == pytest.approx(chance, rel=1e-15)
    # The law of the output: half of what is left is the first word, half the second.
    x, x_prime = (BY_NAME["exact_counts"].mechanism.law(text)[1] for text in ("a b", "c b"))
    assert x / x_prime == pytest.approx((e + 1 / e) / (1 + 1 / e), rel=1e-15)


def test_the_answers_have_the_epsilon_that_they_are_said_to_have():
    for epsilon in (0.1, 1.0, 5.0):
        answers = answer_by_end_words, answer_by_a_or_b, mask_answer_probabilities
        both, either, mask = (MaskedWords(answer, epsilon, mu=0.0) for answer in answers)
        assert largest(both, WITH_MASKS) == pytest.approx(epsilon)
        assert largest(both, WITH_MASKS, words=2) == pytest.approx(2 * epsilon)
        assert largest(either, WITH_MASKS, words=2) == pytest.approx(epsilon)
        assert largest(mask, TEXTS, words=2) == pytest.approx(epsilon)
        assert largest(mask, WITH_MASKS) == math.inf


@pytest.mark.parametrize("mu", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_bound_is_attained_with_its_conditions_and_exceeded_without(epsilon, mu):
    bound = word_dropout(epsilon, mu)
    for answer in (answer_by_end_words, answer_by_a_or_b):
        assert largest(MaskedWords(answer, epsilon, mu), TEXTS) == pytest.approx(bound)
    assert largest(MaskedWords(mask_answer_probabilities, epsilon, mu), TEXTS) > bound * 1.01
    assert largest(MaskedWords(answer_by_a_or_b, epsilon, mu), TEXTS, words=2) > bound * 1.01
    exact = MaskedWords(answer_by_end_words, epsilon, 0.5, masks="exact")
    assert largest(exact, TEXTS) > word_dropout(epsilon, 0.5) * 1.01


def test_any_two_texts_have_next_to_no_amplification():
    for words in range(1, 7):
        both = 0.5**words
        loss = MaskedWords(answer_by_a_or_b).loss(
            Pair(" ".join("a" * words), " ".join("c" * words))
        )
        assert loss == pytest.approx(math.log((1 - both) * math.e + both), rel=1e-14)
    assert loss > 0.99


@pytest.mark.parametrize("name", list(BY_NAME))
def test_what_is_drawn_has_the_law(name):
    example = BY_NAME[name]
    for mechanism, pair in ((example.mechanism, example.pair), (example.sound, example.sound_pair)):
        for side, other in ((pair.x, pair.x_prime), (pair.x_prime, pair.x)):
            drawn = np.bincount(mechanism(side, 10**5, 3), minlength=len(mechanism.law(side)))
            law, wrong = mechanism.law(side), mechanism.law(other)
            there = law > 0.0
            assert drawn[~there].sum() == 0
            assert stats.chisquare(drawn[there], 1e5 * law[there]).pvalue > ALPHA
            if (wrong > 0.0).all():
                assert stats.chisquare(drawn, 1e5 * wrong).pvalue < ALPHA
    assert mechanism(pair.x, 0, 1).shape == (0,)
    assert pickle.loads(pickle.dumps(example)) == example


@pytest.mark.parametrize("name", list(BY_NAME))
def test_an_audit_refutes_the_example_and_not_its_twin(name):
    example = BY_NAME[name]
    loss = example.mechanism.loss(example.pair)
    found = dpcore.audit(example.mechanism, example.pair, trials=10**6, rng=1)
    twin = dpcore.audit(example.sound, example.sound_pair, trials=10**6, rng=1)
    assert (found.refuted, twin.refuted) == (True, False)
    assert f"{example.mechanism.answer.__name__}, epsilon=1, mu=0.5, masks='" in str(found)
    assert loss - 0.01 < found.epsilon_lower <= loss
    assert 0.61 < twin.epsilon_lower <= BOUND


def test_masks_of_any_number_of_words():
    exact = MaskedWords(answer_by_a_or_b, mu=0.1, masks="exact")
    # .1 times 10 words is one word: two of ten are "a" and "b", and one of them always stays.
    assert exact.law("a b" + " c" * 8)[1] == pytest.approx(math.e / (1.0 + math.e))
    none = MaskedWords(answer_by_end_words, mu=0.0, masks="exact")
    assert none.law("a b").tolist() == MaskedWords(answer_by_end_words, mu=0.0).law("a b").tolist()
