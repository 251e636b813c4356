"""Texts as rows of tokens, whatever array or object holds them; the tables of their ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_examples import examples

import dpcore
from dpcore.attacks import Words
from dpcore.attacks.words import Numbering, TokenRatios, iterate_words, ratios_of
from dpcore.mechanisms.answers import to_object_array

SCORE = TokenRatios(("to", "boston", "é"), [1.0, -0.5, 4.0], [0, 1, 3], [8.0, 16.0, 0.0, 32.0])


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (np.array(["to boston", "", " ", "to to to", "x"]), [0.5, 16.0, 16.0, 33.0, 0.0]),
        (np.array([["to boston"], [""]]), [0.5, 16.0]),
        (np.array([b"to boston", b"\xe9"]), [0.5, 4.0]),
        (to_object_array([None, "to", b"to", np.str_("to"), 3, np.nan, ["to"], bytearray(b"to")]),
         [8.0, 1.0, 1.0, 1.0, 8.0, 8.0, 8.0, 1.0]),
        (np.array([["to", "to"]]), [8.0]),
        (np.array([1.5, 2.0]), [8.0, 8.0]),
        (np.array([("to", 1)], dtype=[("a", "U2"), ("b", "i4")]), [8.0]),
        (np.zeros(0, "U1"), []),
        (np.array(["to\u2003boston\n"]), [0.5]),
    ],
)  # fmt: skip
def test_outputs_of_any_kind_have_a_score(outputs, expected):
    assert SCORE(outputs).tolist() == expected


def by_hand(text, score=SCORE):
    words = text.split()
    values = dict(zip(score.tokens, score.values.tolist(), strict=True))
    length = score.lengths[sum(start <= len(words) for start in score.starts)]
    return sum(values.get(word, 0.0) for word in set(words)) + length


@examples(60)
@given(st.lists(st.text("to bsn\té\0", max_size=20), max_size=12))
def test_the_score_is_what_a_loop_over_words_adds_up(texts):
    for outputs in (np.array(texts, dtype=str), to_object_array(texts)):
        assert SCORE(outputs).tolist() == [by_hand(text) for text in outputs.tolist()]


def test_more_outputs_than_are_read_at_a_time():
    texts = [" ".join(["to", "boston", "x"][: i % 4]) for i in range(5000)]
    assert SCORE(np.array(texts)).tolist() == [by_hand(text) for text in texts]
    assert sum(len(rows.rows) for _, rows in iterate_words(np.array(texts))) == 5000


def test_tokens_are_numbered_as_they_first_occur():
    [(_, rows)] = iterate_words(np.array(["b a b", "c"]))
    table = Numbering()
    place, code = rows.number_tokens(table)
    assert table == {"b": 0, "a": 1, "c": 2}
    assert list(zip(place.tolist(), code.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2)]
    assert [part.tolist() for part in rows.number_tokens({"a": 1, "c": 0})] == [[0, 1], [1, 0]]


def test_ratios_are_those_of_presence_shrunk_towards_nothing():
    rng = np.random.default_rng(1)
    sides = [
        np.array([" ".join(["same", *(["told"] * 2 if one else [])]) for one in rng.random(n) < p])
        for n, p in ((4000, 0.8), (2000, 0.2))
    ]
    score = ratios_of(sides)
    ratio = math.log(4.0)
    assert abs(dict(zip(score.tokens, score.values, strict=True))["told"] - ratio) < 0.15
    assert abs(dict(zip(score.tokens, score.values, strict=True)).get("same", 0.0)) < 0.01
    # One word or three: the length says what the word says.
    assert score.starts.tolist() == [0, 3]
    assert abs(score.lengths[2] - ratio) < 0.15
    assert abs(score.lengths[1] + ratio) < 0.15
    assert score.lengths[0] == 0.0


def test_chance_differences_are_shrunk_away():
    rng = np.random.default_rng(2)
    words = np.array([f"w{i}" for i in range(300)])
    sides = [np.array([" ".join(row) for row in rng.choice(words, (300, 8))]) for _ in range(2)]
    score = ratios_of(sides)
    k, k_prime = (
        np.array([sum(f" {word} " in f" {text} " for text in side) for word in score.tokens])
        for side in sides
    )
    raw = np.abs(np.log((k + 0.5) / (k_prime + 0.5)))
    assert raw.min() > 1.0
    assert np.abs(score.values).max() < 0.5 * raw.max()
    # All others, by chance as far apart as they may be, say nothing.
    assert len(score.tokens) < 15


def test_missing_texts_have_a_length_of_their_own():
    sides = to_object_array([None, "a b"] * 200), to_object_array(["a b", "b a", "", None] * 100)
    score = ratios_of(sides)
    missing, empty, other = score(to_object_array([None, "", "zzz"])).tolist()
    assert missing > 0.4
    assert empty < -1.0
    assert other == score.lengths[score.starts.size - (score.starts[-1] > 1)]


def test_many_lengths_are_few_runs():
    rng = np.random.default_rng(3)
    sides = [np.array(["a " * n for n in rng.integers(0, 400, 800) + shift]) for shift in (0, 60)]
    score = ratios_of(sides)
    assert 1 < score.starts.size < 12
    assert score.starts[0] == 0
    texts = ["", "a " * 450]
    assert score(np.array(texts)).tolist() == [by_hand(text, score) for text in texts]


@pytest.mark.parametrize("value", ["", " ", "same", b"same", None])
def test_constant_texts_certify_nothing(value):
    def constant(x, size, rng):
        return [value] * size

    for attack in (Words(), None) if value is not None else (None,):
        report = dpcore.audit(constant, (0, 1), attack=attack, claim=1.0, trials=300, rng=1)
        assert report.epsilon_lower == 0.0


def test_texts_that_are_missing_more_often_on_one_side():
    def withheld(x, size, rng):
        rows = [" ".join(map(str, row)) for row in rng.integers(0, 10**6, (size, 3)).tolist()]
        gone = rng.random(size) < (0.1 if x == 0 else 0.6)
        return [None if one else row for one, row in zip(gone.tolist(), rows, strict=True)]

    report = dpcore.audit(withheld, (0, 1), attack=Words(), claim=1.0, trials=10_000, rng=1)
    assert 1.6 < report.epsilon_lower < math.log(6.0)


def test_long_words_are_shortened_in_a_report():
    score = TokenRatios(("x" * 1000, *"abcdefg"), np.arange(8, 0, -1.0), [0], [0.0, 0.0])
    shown = f"words ('{'x' * 24}...' +8, 'a' +7, 'b' +6, 'c' +5, 'd' +4, 'e' +3, 2 more)"
    assert str(score) == shown
