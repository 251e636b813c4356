"""The majority-vote event against a naive loop, and what it refuses."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shared_messages import check_messages

from dpcore.attacks import MajorityVote
from dpcore.events import Vote
from dpcore.pairs import zeros_ones
from dpcore.records import Pair

ENTRIES = st.floats(-1e308, 1e308) | st.sampled_from([0.0, 0.5, 1.0, -0.0])
OUTPUTS = ENTRIES | st.sampled_from([np.nan, np.inf, -np.inf])


@st.composite
def cases(draw):
    dim = draw(st.integers(1, 6))
    x = draw(hnp.arrays(np.float64, dim, elements=ENTRIES))
    x_prime = draw(hnp.arrays(np.float64, dim, elements=ENTRIES))
    assume((x != x_prime).any())
    outputs = draw(hnp.arrays(np.float64, (draw(st.integers(0, 5)), dim), elements=OUTPUTS))
    return Pair(x, x_prime), outputs


def naive(vote, row):
    ayes = noes = 0
    for output, threshold, towards in zip(row, vote.threshold, vote.towards, strict=True):
        if towards == 0:
            continue
        beyond = output >= threshold if towards > 0 else output <= threshold
        ayes, noes = ayes + bool(beyond), noes + (not beyond)
    return ayes > noes


@given(cases())
def test_the_vote_is_the_naive_loop(case):
    pair, outputs = case
    vote = Vote.between(pair)
    expected = [naive(vote, row) for row in outputs]
    decided = vote(outputs)
    assert (decided.dtype, decided.tolist()) == (np.bool_, expected)
    assert Vote.between(pair, "x")(outputs).tolist() == [not won for won in expected]


@given(cases())
def test_thresholds_lie_between_and_directions_point_to_x_prime(case):
    pair, _ = case
    vote = Vote.between(pair)
    low, high = np.minimum(pair.x, pair.x_prime), np.maximum(pair.x, pair.x_prime)
    assert ((low <= vote.threshold) & (vote.threshold <= high)).all()
    with np.errstate(over="ignore"):
        assert (vote.towards == np.sign(pair.x_prime - pair.x)).all()
    back = Vote.between(Pair(pair.x_prime, pair.x))
    assert (back.towards == -vote.towards).all()
    assert (back.threshold == vote.threshold).all()


def test_equal_entries_of_the_smallest_numbers_keep_their_threshold():
    tiny = 2.03824228028939e-308
    assert tiny / 2.0 + tiny / 2.0 != tiny
    vote = Vote.between(Pair([tiny, tiny], [tiny, 0.0]))
    assert vote.threshold[0] == tiny
    assert 0.0 <= vote.threshold[1] <= tiny


def test_zeros_ones_rules():
    vote = Vote.between(zeros_ones(2))
    assert vote.threshold.tolist() == [0.5, 0.5]
    below = np.nextafter(0.5, 0.0)
    outputs = [[0.5, 0.5], [0.5, below], [9.0, np.nan], [np.nan, np.nan], [np.inf, 1.0]]
    # A tie at the threshold is for x', a tied vote for x, NaN for x.
    assert vote(outputs).tolist() == [True, False, False, False, True]


def test_equal_entries_do_not_vote():
    vote = Vote.between(Pair([0.0, 5.0, 5.0], [1.0, 5.0, 5.0]))
    assert vote([[1.0, -9.0, -9.0], [0.0, 9.0, 9.0]]).tolist() == [True, False]
    assert vote.voting == 1


def test_midpoint_does_not_overflow():
    assert Vote.between(Pair([1e308], [1.2e308])).threshold == pytest.approx([1.1e308])
    assert Vote.between(Pair([-1.7e308], [1.7e308])).threshold.tolist() == [0.0]


def test_integer_and_float32_outputs_and_flat_outputs_of_one_entry():
    vote = Vote.between(zeros_ones(1))
    assert vote(np.array([[0], [1]])).tolist() == [False, True]
    assert vote(np.array([0.25, 0.5], dtype=np.float32)).tolist() == [False, True]


def test_text():
    vote = Vote.between(Pair([0.0, 5.0], [1.0, 5.0]))
    assert str(vote) == "majority vote for x' (1 of 2 entries vote)"
    assert str(Vote.between(zeros_ones(2), "x")) == "majority vote for x (2 of 2 entries vote)"
    assert len(repr(Vote.between(zeros_ones(10**5)))) < 250


@given(cases(), st.sampled_from(["x", "x_prime"]))
def test_json_and_pickle_round_trips(case, side):
    vote = Vote.between(case[0], side)
    assert Vote.from_dict(json.loads(json.dumps(vote.to_dict(), allow_nan=False))) == vote
    assert pickle.loads(pickle.dumps(vote)) == vote
    assert hash(Vote.from_dict(vote.to_dict())) == hash(vote)
    assert vote != Vote.between(case[0], "x" if side == "x_prime" else "x_prime")


def test_arrays_are_read_only_copies_of_fixed_dtype():
    source = np.array([1, 2])
    vote = Vote(source, [1, -1])
    source[0] = 7
    assert vote.threshold.tolist() == [1.0, 2.0]
    assert (vote.threshold.dtype, vote.towards.dtype) == (np.float64, np.int8)
    assert (vote.threshold.flags.writeable, vote.towards.flags.writeable) == (False, False)


@pytest.mark.parametrize("shape", [(2,), (3, 1), (3, 3), (1, 2, 1), ()])
def test_bad_output_shapes(shape):
    with pytest.raises(ValueError, match=r"^outputs must be of shape \(size, 2\), got \("):
        Vote.between(zeros_ones(2))(np.zeros(shape))


def test_the_attack_picks_the_vote_that_shows_more():
    pair = zeros_ones(1)
    rare, common = np.zeros((100, 1)), np.zeros((100, 1))
    rare[:2], common[:60] = 1.0, 1.0
    attack = MajorityVote()
    assert attack(rare, common, pair) == attack.event(pair) == Vote.between(pair)
    # Votes for x: 40 of 100 against 2 of 100, the rarer one decides.
    assert attack(common, 1.0 - rare, pair) == Vote.between(pair, "x")
    with pytest.raises(ValueError, match=r"^n must be an integer at least 1, got 0$"):
        attack(np.zeros((0, 1)), common, pair)


# Messages of wrong calls of `dpcore.events`: the argument, and a word of the remedy.


RECORD = Vote.between(zeros_ones(1)).to_dict()

VALUE_ERRORS = [
    # The majority-vote event against a naive loop, and what it refuses.
    (lambda: Vote.between(Pair([1.0, 2.0], [1.0, 2.0])), "pair", "different in at least one entry"),
    (lambda: Vote.between(Pair([1.0], [1.0, 2.0])), "pair", "two inputs of equal shape"),
    (lambda: Vote.between(Pair([], [])), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair([np.nan], [1.0])), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair([1.0], [np.inf])), "x_prime", "a non-empty vector of finite"),
    (lambda: Vote.between(Pair(0.0, 1.0)), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair(np.zeros((1, 1)), [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote.between(Pair([[1.0], [1.0, 2.0]], [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote([0.5], [1], "y"), "vote", "one of 'x_prime', 'x'"),
    (lambda: Vote([0.5], [0]), "towards", "made of -1, 0 and 1 and not all 0"),
    (lambda: Vote([0.5], [2]), "towards", "made of -1, 0 and 1 and not all 0"),
    (lambda: Vote([0.5], [1, 1]), "towards", "of shape (1,) like threshold"),
    (lambda: Vote([np.nan], [1]), "threshold", "a non-empty vector of finite numbers"),
    (lambda: Vote.from_dict({**RECORD, "extra": 1}), "record", "a mapping with the keys"),
    (lambda: Vote.from_dict({**RECORD, "event": "Above"}), "event", "one of 'Vote'"),
]  # fmt: skip
TYPE_ERRORS = [
    # The majority-vote event against a naive loop, and what it refuses.
    (lambda: Vote.between(Pair("a", "b")), "x", "a non-empty vector of finite numbers"),
    (lambda: Vote.between(Pair(np.array([1j]), [1.0])), "x", "a non-empty vector of finite"),
    (lambda: Vote.between(zeros_ones(1))([["a"]]), "outputs", "real numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
