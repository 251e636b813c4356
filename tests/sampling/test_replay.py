"""Blocks of outputs that come again: an error where chance is excluded, and nowhere else."""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats
from shared_randomness import constant, kept, noise

import dpcore
from dpcore.sampling import replay
from dpcore.sampling.replay import Collisions, Replays, encode_rows, hash_prefixes
from dpcore.streams import COUNT, PILOT

AUDITS = int(os.environ.get("DPCORE_AUDITS", "400"))
"""DPCORE_AUDITS=3000 makes as many audits of clean mechanisms as the promise speaks of."""

PAIR = ([0.0], [1.0])
TABLE = np.random.default_rng(0).normal(size=(50, 300))
REPLAYED = r"must be drawn anew in every call from the rng it is given, got 'equal outputs for"


def bits(x, size, rng):
    return rng.random(size) < 0.3


def strings(x, size, rng):
    """Words of several lengths: a call that lacks the longest is an array of another type."""
    return np.array(["no", "yes", "perhaps"])[rng.choice(3, size, p=[0.6, 0.39, 0.01])]


def sparse(x, size, rng):
    """Rows of which 98 in 100 are 0 throughout."""
    outputs = np.zeros((size, 50))
    hit = rng.random(size) < 0.02
    outputs[hit, 7] = rng.laplace(size=int(hit.sum()))
    return outputs


def word(x, size, rng, kept=0.99):
    """A word that is kept with high probability, as a row of a table."""
    return TABLE[np.where(rng.random(size) < kept, int(x[0]), rng.integers(0, 50, size))]


def objects(x, size, rng):
    outputs = np.empty(size, dtype=object)
    outputs[:] = [("a", int(i), None) for i in rng.binomial(3, 0.5, size)]
    return outputs


def structured(x, size, rng):
    outputs = np.zeros(size, dtype=np.dtype([("flag", "?"), ("value", "f4")], align=True))
    outputs["flag"], outputs["value"] = rng.random(size) < 0.5, rng.integers(0, 3, size)
    return outputs


def never(outputs, outputs_prime, pair):
    return nothing


def nothing(outputs):
    """An event for all kinds of outputs."""
    return np.zeros(len(outputs), np.bool_)


MECHANISMS = [bits, strings, sparse, word, kept, objects, structured, noise]


class Again:
    """A mechanism whose generator is made anew, with one seed, in every call."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __call__(self, x, size, rng):
        return self.mechanism(x, size, np.random.default_rng(7))


class Circle:
    """A mechanism whose streams come again after so many calls."""

    def __init__(self, mechanism, period):
        self.mechanism, self.period, self.calls = mechanism, period, 0

    def __call__(self, x, size, rng):
        self.calls += 1
        return self.mechanism(x, size, np.random.default_rng(self.calls % self.period))


def audited(mechanism, seed=1, **options):
    options = {"trials": 60_000, "attack": never, "claim": 1.0, **options}
    return dpcore.audit(mechanism, PAIR, rng=seed, **options)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_any_type_that_comes_again_is_an_error_and_its_twin_is_none(mechanism):
    options = {"trials": 240_000, "block": 60_000, "pilot": 2**16} if mechanism is kept else {}
    assert audited(mechanism, **options).counts.n > 0
    with pytest.raises(ValueError, match=REPLAYED):
        audited(Again(mechanism), **{"block": 30_000, **options})


@pytest.mark.parametrize(
    ("block", "period"), [(1, 2), (1, 40), (3, 2), (3, 40), (64, 30), (64, 40)]
)
def test_blocks_too_short_to_tell_are_judged_by_their_run(block, period):
    """One in seven blocks of 64 such words equals the next: alone, they say nothing."""
    often, trials = {1: (noise, 1000), 3: (bits, 9000), 64: (word, 30_000)}[block]
    options = {"trials": trials, "pilot": 2000, "block": block}
    assert audited(often, **options).counts.n == trials
    with pytest.raises(ValueError, match=REPLAYED):
        audited(Circle(often, period), **options)


def test_calls_of_different_sizes_are_compared_by_their_first_rows():
    """One block of counted draws per side: what it repeats is the pilot's, of another size."""
    with pytest.raises(ValueError, match=REPLAYED):
        audited(Again(bits), trials=20_000)


@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_early_stop_and_ranges_are_checked(stop):
    options = {"trials": 16_384, "start": 16_384, "block": 512, "stop": stop, "attack": "auto"}
    assert audited(noise, **{**options, "claim": 2.0}).refuted is False
    with pytest.raises(ValueError, match=REPLAYED):
        audited(Again(noise), **options)


@pytest.mark.parametrize("kind", ["threads", "threads of an executor", "processes"])
def test_whoever_draws_what_comes_again_is_told(kind):
    options = {"block": 4096}
    context = {"mp_context": get_context("fork")} if kind == "processes" else {}
    with (ProcessPoolExecutor if context else ThreadPoolExecutor)(2, **context) as pool:
        options |= {"threads": 2} if kind == "threads" else {"executor": pool}
        audited(bits, **options)
        with pytest.raises(ValueError, match=REPLAYED):
            audited(Again(bits), **options)


# Chance is no error.


def response(x, size, rng):
    return (rng.random(size) < 0.75) == (x[0] > 0)


def tied(x, size, rng):
    return x + 0.1 * (rng.geometric(0.5, (size, 1)) - rng.geometric(0.5, (size, 1)))


def one_side(x, size, rng):
    """No noise on x, one bit on x'."""
    return rng.random(size) < 0.5 * x[0]


def often(x, size, rng):
    return rng.random(size) < 0.99


CLEAN = [noise, tied, bits, sparse, response, kept, constant, one_side, often, objects]


@pytest.mark.sweep
@pytest.mark.parametrize("mechanism", CLEAN)
def test_no_clean_mechanism_is_refused(mechanism):
    """Half of them have few outputs, and blocks of 16 to 256 rows of those are often equal."""
    for seed in range(AUDITS // len(CLEAN)):
        block = (16, 64, 256)[seed % 3]
        assert audited(mechanism, seed, trials=4096, pilot=512, block=block).counts.n == 4096


def test_the_controls_of_that_test_are_blocks_that_are_equal():
    blocks = (often(None, 16, np.random.default_rng(seed)) for seed in range(20))
    marks = [hash_prefixes(block, math.inf, False) for block in blocks]
    assert len(set(mark.digests[16] for mark in marks)) < 10


# What it rests on.


def test_the_limit_of_collisions_is_that_of_clopper_and_pearson():
    """None equal among m/2 pairs: s is at most 28/m."""
    none = Collisions(500, 0).entropy_lower
    assert math.exp(-none) == pytest.approx(1e-6 ** (1 / 500) * -1 + 1, rel=1e-6)
    assert math.exp(-none) < 28 / 1000
    some = math.exp(-Collisions(2048, 2007).entropy_lower)
    assert some == pytest.approx(stats.beta.isf(1e-6, 2008, 41), rel=1e-9)
    assert Collisions(2048, 2048).entropy_lower == Collisions().entropy_lower == 0.0


def test_the_level_counts_all_pairs_of_blocks():
    # 2^10 blocks are 2^19 pairs.
    for rows, blocks in ((41, ()), (60, (1024,))):
        assert replay.is_equality_of_blocks_negligible(math.log(2.0), rows, *blocks)
        assert not replay.is_equality_of_blocks_negligible(math.log(2.0), rows - 2, *blocks)


@pytest.mark.parametrize(("apart", "length"), list(itertools.product(range(1, 6), range(1, 14))))
def test_rows_of_a_run_are_those_of_pairs_that_share_no_block(apart, length):
    """Edges (i, i + apart): paths, of which every second edge is taken."""
    used, pairs = set(), 0
    for i in range(length):
        if not {i, i + apart} & used:
            used |= {i, i + apart}
            pairs += 1
    assert replay._RepeatedRun(apart, length, 10).disjoint_repeated_rows == 10 * pairs


def test_little_is_looked_at_where_rows_have_many_values():
    replays = Replays()
    assert (replays.rows_needed(PILOT, 0), replays.rows_needed(COUNT, 0)) == (math.inf, 0.0)
    outputs = noise(0.0, 4096, np.random.default_rng(1))
    replays.find_earlier_block((PILOT, 0, 0), hash_prefixes(outputs, math.inf, True), 0)
    assert 8 < replays.rows_needed(COUNT, 0) < 16
    assert list(hash_prefixes(outputs, replays.rows_needed(COUNT, 0), False).digests) == [16]
    replays.find_earlier_block((PILOT, 1, 0), hash_prefixes(np.zeros((4096, 1)), math.inf, True), 1)
    assert replays.rows_needed(COUNT, 1) == 0.0


def test_a_block_drawn_twice_under_one_name_is_no_replay():
    replays = Replays()
    outputs = noise(0.0, 4096, np.random.default_rng(1))
    for rows in (1024, 4096):
        assert (
            replays.find_earlier_block(
                (PILOT, 0, 0), hash_prefixes(outputs[:rows], math.inf, True), 0
            )
            is None
        )
    assert replays.find_earlier_block((PILOT, 0, 1), hash_prefixes(outputs, math.inf, True), 0) == (
        PILOT,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.array(["a", "bc"]), np.array(["a", "bc"], dtype="<U9"), True),
        (np.array(["ab", "c"]), np.array(["ba", "c"]), False),
        (np.array([b"ab", b"c"]), np.array([b"ab", b"c"], dtype="S5"), True),
        (np.array([np.nan, 0.0]), np.array([np.nan, 0.0]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([1 + 2j]), np.array([1 - 2j]), False),
        (np.array([(1,), "a"], dtype=object), np.array([(1,), "a"], dtype=object), True),
        (np.array([1.0], dtype=object), np.array([1], dtype=object), False),
        (np.array([["a", "b"]]), np.array([["b", "a"]]), False),
        (np.zeros((2, 300)), np.eye(2, 300, 299), False),
        (np.zeros((2, 0)), np.zeros((2, 0)), True),
    ],
)
def test_encoded_rows_are_equal_where_the_outputs_are(one, other, same):
    first, second = encode_rows(one), encode_rows(other)
    assert first.shape[0] == len(one)
    assert np.array_equal(first, second) is same


def test_what_pads_a_structure_is_not_compared():
    kind = np.dtype([("flag", "?"), ("value", "f8")], align=True)
    one, other = (np.frombuffer(byte * 32, np.uint8).copy().view(kind) for byte in (b"\0", b"\7"))
    for array in (one, other):
        array["flag"], array["value"] = True, 2.0
    assert one.tobytes() != other.tobytes()
    assert np.array_equal(encode_rows(one), encode_rows(other))


def test_objects_that_cannot_be_pickled_say_nothing():
    outputs = np.array([lambda: 0, None], dtype=object)
    assert encode_rows(outputs) is None
    assert hash_prefixes(outputs, math.inf, True) == (2, {}, Collisions())
