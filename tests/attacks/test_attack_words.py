"""The attack on text: words and their number, for rewrites that are all different."""

from __future__ import annotations

import math
import os
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from shared_audits import assert_kept
from shared_examples import examples
from shared_rewriters import PAIR, VOCABULARY, Substituting, telling

import dpcore
from dpcore import Audit, audit_outputs
from dpcore.attacks import Auto, Histogram, Words
from dpcore.attacks.words import Numbering, TokenRatios, fit_log_ratios, split_texts_into_words
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
    assert sum(len(rows.rows) for _, rows in split_texts_into_words(np.array(texts))) == 5000


def test_tokens_are_numbered_as_they_first_occur():
    [(_, rows)] = split_texts_into_words(np.array(["b a b", "c"]))
    table = Numbering()
    place, code = rows.row_and_token_ids(table)
    assert table == {"b": 0, "a": 1, "c": 2}
    assert list(zip(place.tolist(), code.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2)]
    assert [part.tolist() for part in rows.row_and_token_ids({"a": 1, "c": 0})] == [[0, 1], [1, 0]]


def test_ratios_are_those_of_presence_shrunk_towards_nothing():
    rng = np.random.default_rng(1)
    sides = [
        np.array([" ".join(["same", *(["told"] * 2 if one else [])]) for one in rng.random(n) < p])
        for n, p in ((4000, 0.8), (2000, 0.2))
    ]
    score = fit_log_ratios(sides)
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
    score = fit_log_ratios(sides)
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
    score = fit_log_ratios(sides)
    missing, empty, other = score(to_object_array([None, "", "zzz"])).tolist()
    assert missing > 0.4
    assert empty < -1.0
    assert other == score.lengths[score.starts.size - (score.starts[-1] > 1)]


def test_many_lengths_are_few_runs():
    rng = np.random.default_rng(3)
    sides = [np.array(["a " * n for n in rng.integers(0, 400, 800) + shift]) for shift in (0, 60)]
    score = fit_log_ratios(sides)
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


BROKEN = Substituting(0.35, shuffled=True)
NEAR = PAIR[0].replace(VOCABULARY[3], VOCABULARY[30])


def audited(mechanism, pair=PAIR, **more):
    settings = {"attack": Words(), "claim": 1.0, "trials": 4000, "rng": 1, **more}
    return dpcore.audit(mechanism, pair, **settings)


# Power.


def test_rewrites_that_are_all_different_are_refuted_where_a_table_of_them_sees_nothing():
    assert len(set(BROKEN(PAIR[0], 2000, np.random.default_rng(1)))) == 2000
    assert audited(BROKEN, claim=4.0).refuted
    assert audited(BROKEN, attack=Auto()).epsilon_lower > 0.9 * audited(BROKEN).epsilon_lower
    rng = np.random.default_rng(2)
    sides = [np.array(BROKEN(x, 500, rng)) for x in PAIR]
    assert Histogram().candidates(*sides, dpcore.Pair(*PAIR)) == ()
    assert len(Words().candidates(*sides, dpcore.Pair(*PAIR))) == 1


def test_one_word_among_others_is_found():
    report = audited(Substituting(0.9), (PAIR[0], NEAR), trials=20_000)
    # Exactly ln(1 + .9 * 50 / .1) = 6.1 by its place; each of ten may be the word by chance.
    assert report.epsilon_lower > 1.8
    assert {VOCABULARY[3], VOCABULARY[30]} == set(report.event.score.tokens[:2])


def lengths(x, size, rng):
    """Random words; how many they are tells."""
    long = x[0] * 3 + rng.geometric(0.3, size) - rng.geometric(0.3, size) + 14
    return [" ".join(rng.choice(VOCABULARY, max(0, n))) for n in long.astype(int).tolist()]


def test_the_length_tells():
    # Two-sided geometric noise: 3 x ln(1 / .7) = 1.07, less what an empty text hides.
    report = audited(lengths, ([0.0], [1.0]), claim=0.5, trials=20_000)
    assert report.refuted
    assert 0.9 < report.epsilon_lower < 1.07
    assert str(report.event.score).endswith("length")


def test_control_one_law_on_both_sides():
    for seed in range(5):
        same = audited(BROKEN, (PAIR[0], PAIR[0]), null=True, claim=0.0, rng=seed, attack=None)
        assert same.epsilon_lower < 0.05


def test_control_permuted_sides_of_recorded_rewrites():
    rng = np.random.default_rng(3)
    sides = [BROKEN(x, 3000, rng) for x in PAIR]
    told = audit_outputs(*sides, rows="independent", attack=Words(), claim=1.0, rng=1)
    assert told.epsilon_lower > 4.0
    mixed = rng.permutation(np.concatenate(sides))
    halves = mixed[:3000].tolist(), mixed[3000:].tolist()
    again = audit_outputs(*halves, rows="independent", attack=Words(), claim=1.0, rng=1)
    assert again.epsilon_lower < 0.1


# Soundness.

AUDITS = max(100, int(os.environ.get("DPCORE_AUDITS", "400")) // 4)
CONFIDENCE = 0.9
ALPHA = 1e-4
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Refutations of a true claim that chance allows: P(more | 10 %) < ALPHA."""


SMALL = {"trials": 400, "confidence": CONFIDENCE, "bound": "exact"}


def count_refuted(loss, audits):
    return sum(audited(telling(loss), rng=seed, **SMALL).refuted for seed in range(audits))


@pytest.mark.sweep
def test_a_true_claim_is_refuted_as_seldom_as_promised():
    """One word that differs: nearly the whole loss is in one event, and no more of it."""

    def coin(x, size, rng):
        """The telling word by randomised response with loss 1, others at random."""
        told = np.where(rng.random(size) < np.e / (1.0 + np.e), x == PAIR[0], x != PAIR[0])
        rest = VOCABULARY[rng.integers(VOCABULARY.size, size=(size, 9))].tolist()
        return [
            " ".join(["yes" if one else "no", *row])
            for one, row in zip(told.tolist(), rest, strict=True)
        ]

    claims = [audited(coin, (PAIR[0], NEAR), rng=seed, **SMALL) for seed in range(AUDITS)]
    assert sum(report.refuted for report in claims) <= MOST
    # The control: at half the claim the same audits refute mostly.
    assert sum(report.epsilon_lower > 0.5 for report in claims) > AUDITS // 2


@pytest.mark.sweep
def test_a_rewriter_at_its_exact_loss_is_refuted_as_seldom_as_promised():
    assert count_refuted(1.0, AUDITS) <= MOST
    # The control: a claim far below the loss is refuted often.
    assert count_refuted(36.0, 20) > 15


# Records.


@pytest.fixture(scope="module")
def report():
    return audited(BROKEN)


def test_the_event_survives_pickle_json_and_a_fresh_reader(report):
    assert pickle.loads(pickle.dumps(report)) == report
    read = Audit.from_json(report.to_json())
    assert (read.event, read.counts) == (report.event, report.counts)
    assert str(read.event) == str(report.event)
    assert_kept(report.event.score)


def test_slices_add_up():
    report, again = (audited(BROKEN, start=start, block=1000) for start in (0, 4000))
    both = report + again
    assert (both.event, both.counts) == (report.event, report.counts + again.counts)
    assert int(report.event(report.outputs("x", 0, 4000)).sum()) == report.counts.k


def test_the_report_names_the_heaviest_words(report):
    score = report.event.score
    assert np.all(np.diff(np.abs(score.values)) <= 0)
    words = {word: value for word, value in zip(score.tokens, score.values, strict=True)}
    assert all(words[word] > 0.5 for word in PAIR[0].split())
    assert all(words[word] < -0.5 for word in PAIR[1].split())
    told = re.compile(r"words \('[aeort]{5}' [+-][\d.]+, .*, \d+ more\)( and length)? (>=|<) ")
    assert told.match(str(report.event))
    assert str(report.event) in str(report)


def test_early_stop():
    assert audited(BROKEN, stop="refuted").refuted
    assert audited(telling(1.0), stop="refuted", trials=3000).refuted is False


# What `auto` tries.


def test_where_texts_repeat_auto_leaves_them_to_the_table_of_texts():
    sides = [np.array(["yes sir", "no sir"] * 100), np.array(["yes sir", "yes sir"] * 100)]
    assert Words().telling(*sides) == ()
    [score] = Words().candidates(*sides, dpcore.Pair(0, 1))
    assert score(np.array(["yes", "no"])).tolist()[1] > 0.5
    names = [type(one).__name__ for one in Auto().candidates(*sides, dpcore.Pair(0, 1))]
    assert "TokenRatios" not in names
    assert "Cells" in names


def test_texts_without_a_word_in_common_say_nothing():
    rng = np.random.default_rng(4)
    sides = [np.array([f"{a} {b}" for a, b in rng.random((200, 2))]) for _ in range(2)]
    assert Words().telling(*sides) == ()
    [score] = Words().candidates(*sides, dpcore.Pair(0, 1))
    assert score.has_constant_score
    assert np.ptp(score(sides[0])) == 0.0
    assert str(score) == "no words"
