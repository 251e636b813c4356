"""The score of local hashing, (value, seed), and the note for outputs that it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpcore
from dpcore.attacks import Threshold, hash_score

BUCKETS = 4
KEPT = 0.5
"""Probability that the value is the hash; otherwise it is uniform on the buckets."""
LOSS = math.log((KEPT + (1.0 - KEPT) / BUCKETS) / ((1.0 - KEPT) / BUCKETS))
NOTE = "hardly repeats (a seed?): give a score that uses it (dpcore.attacks.hash_score)"


def hash_to_bucket(item, seed):
    return (item * 40503 + seed * 48271) % 65537 % BUCKETS


def draw_hashes(x, size, rng):
    seeds = rng.integers(0, 2**20, size)
    hashes = hash_to_bucket(x, seeds)
    values = np.where(rng.random(size) < KEPT, hashes, rng.integers(0, BUCKETS, size))
    return np.stack([values, seeds], axis=1)


def as_tuples(rows):
    return np.fromiter(map(tuple, rows.tolist()), dtype=object, count=len(rows))


FORMATS = {
    "int64": lambda rows: rows,
    "uint64": lambda rows: rows.astype(np.uint64),
    "float64": lambda rows: rows.astype(np.float64),
    "objects": lambda rows: rows.astype(object),
    "tuples": as_tuples,
}


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_broken_client_is_refuted_and_a_true_claim_is_not(form):
    """With a fixed seed; a true claim is refuted with probability 0.05 at most."""

    def client(x, size, rng):
        return form(draw_hashes(x, size, rng))

    attack = Threshold(score=hash_score(hash_to_bucket, (1, 2)))
    report = dpcore.audit(client, (1, 2), attack=attack, trials=20_000, claim=LOSS, rng=1)
    assert 0.93 * LOSS < report.epsilon_lower <= LOSS
    assert report.verdict != "refuted"
    assert str(report.event).startswith("[value = hash(x, seed)] - [value = hash(x', seed)] ")
    assert not any("a seed?" in note for note in report.notes)
    # Negative control: without the score nothing is seen, and a note states why.
    blind = dpcore.audit(client, (1, 2), trials=20_000, claim=LOSS, rng=1)
    assert blind.epsilon_lower < 0.1
    assert any(note.endswith(NOTE) for note in blind.notes)


def test_a_score_is_that_of_a_loop():
    rows = draw_hashes(1, 300, np.random.default_rng(2))
    scores = hash_score(hash_to_bucket, (1, 2))(rows)
    assert set(scores) == {-1.0, 0.0, 1.0}
    for (value, seed), score in zip(rows.tolist(), scores, strict=True):
        assert score == (value == hash_to_bucket(1, seed)) - (value == hash_to_bucket(2, seed))


def test_seeds_of_64_bits_are_exact():
    seed = 2**63 + 1
    rows = np.array([[seed % 5, seed]], dtype=np.uint64)
    assert hash_score(lambda item, seed: (seed + item) % 5, (0, 1))(rows).tolist() == [1.0]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([[0.0, 2.0**53]], ValueError, "^outputs must be whole numbers, and below 2.53 .* got 9"),
        ([[0.5, 1.0]], ValueError, "^outputs must be whole numbers.* got 0.5"),
        ([[np.nan, 1.0]], ValueError, "^outputs must be whole numbers.* got nan"),
        ([[1, 2, 3]], ValueError, r"^outputs must be rows of a value and a seed.* got \(1, 3\)"),
        ([1, 2], ValueError, r"^outputs must be rows of a value and a seed.* got \(2,\)"),
        ([["a", "b"]], TypeError, "^outputs must be rows of a value and a seed, .* got 'a'"),
        ([[True, False]], TypeError, "^outputs must be rows of a value and a seed, .* got True"),
    ],
)
def test_other_outputs_are_refused(rows, error, message):
    with pytest.raises(error, match=message):
        hash_score(hash_to_bucket, (1, 2))(np.array(rows))


def test_one_rounded_seed_among_objects_is_refused():
    def client(x, size, rng):
        rows = draw_hashes(x, size, rng).astype(object)
        rows[0, 1] = 2.0**60
        return rows

    attack = Threshold(score=hash_score(hash_to_bucket, (1, 2)))
    with pytest.raises(ValueError, match=r"whole numbers, and below 2.53"):
        dpcore.audit(client, (1, 2), attack=attack, trials=1_000, claim=LOSS, rng=1)


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match=r"^hash must be a function"):
        hash_score(4, (1, 2))
    for inputs in ((1, 2, 3), "ab"):
        with pytest.raises(ValueError, match=r"^inputs must be the two inputs"):
            hash_score(hash_to_bucket, inputs)


@pytest.mark.parametrize("answer", ["1", 1.0, None, np.array([1, 1])])
def test_a_hash_that_is_no_whole_number_is_refused(answer):
    """It would equal no value, so that the audit would see nothing."""
    with pytest.raises(TypeError, match=r"^hash must be a function that returns a whole number"):
        hash_score(lambda item, seed: answer, (1, 2))(np.array([[1, 2]]))


@pytest.mark.parametrize(
    ("draw", "is_noted"),
    [
        (lambda x, size, rng: rng.poisson((50, 3 + x), (size, 2)), False),
        (lambda x, size, rng: rng.integers(0, 2**40, (size, 2)), False),
        (lambda x, size, rng: rng.normal(x, 1.0, (size, 2)), False),
        (lambda x, size, rng: [{"v": int(rng.integers(3)), "s": int(s)}
                               for s in rng.integers(0, 2**40, size)], True),
    ],
    ids=["counts", "two long numbers", "floats", "keys"],
)  # fmt: skip
def test_the_note_is_for_a_seed_next_to_a_value(draw, is_noted):
    report = dpcore.audit(draw, (1, 2), trials=4_000, claim=1.0, rng=3)
    assert is_noted == any(note.endswith(NOTE) for note in report.notes)


@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_the_note_is_in_all_kinds_of_audits(stop):
    report = dpcore.audit(draw_hashes, (1, 2), trials=8_000, claim=LOSS, stop=stop, rng=4)
    rng = np.random.default_rng(5)
    sides = draw_hashes(1, 4_000, rng), draw_hashes(2, 4_000, rng)
    recorded = dpcore.audit_outputs(*sides, claim=LOSS, rows="independent")
    for notes in (report.notes, recorded.notes):
        assert f"entry 1 {NOTE}" in notes
