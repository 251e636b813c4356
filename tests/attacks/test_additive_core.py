"""Additive scores: the core against plain numpy, to the last bit, and the score as a record."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_examples import examples
from shared_messages import check_messages

from dpcore.attacks.additive import AdditiveScore
from dpcore.attacks.bins import difference_or_sort_rows, float_blocks

# The kernel.

VALUES = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 3.0, np.inf, np.nan]


def places(score, row):
    """Places of a row's bins among those of all columns, by the definition."""
    row = difference_or_sort_rows(np.array([row]), score.transform)[0]
    found = []
    for i, value in enumerate(row):
        edges = score.edges[score.offsets[i] : score.offsets[i + 1]]
        bin_ = edges.size + 1 if np.isnan(value) else int(np.sum(edges <= value))
        found.append(int(score.offsets[i]) + 2 * i + bin_)
    return found


def plain(score, row):
    """The score of one row, added up in the order that the definition gives."""
    found = places(score, row)
    total, group = 0.0, 0
    if score.keys.size:
        key = sum(int(score.keys[place]) for place in found)
        for place in np.flatnonzero(score.patterns == key):
            total, group = float(score.pattern_weights[place]), int(score.groups[place])
    if len(score.weights):
        for place in found:
            total += float(score.weights[group, place])
    return total


@st.composite
def scores(draw):
    """A random score, most of whose edges are values that rows take."""
    columns = draw(st.integers(1, 4))
    numbers = st.one_of(st.sampled_from(VALUES[:-1]), st.floats(-3, 3))
    edges = [sorted(draw(st.lists(numbers, max_size=12))) for _ in range(columns)]
    offsets = np.cumsum([0, *map(len, edges)])
    bins = int(offsets[-1]) + 2 * columns
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    keyed, groups = draw(st.booleans()), draw(st.integers(0, 3))
    patterns = random.permutation(9)[: draw(st.integers(0, 9))] if keyed else np.zeros(0)
    return AdditiveScore(
        draw(st.sampled_from(["values", "differences", "sorted"])),
        np.concatenate(edges) if bins > 2 * columns else np.zeros(0),
        offsets,
        random.integers(4, size=bins) if keyed else np.zeros(0),
        patterns.astype(np.uint64),
        random.integers(max(1, groups), size=patterns.size).astype(np.uint32),
        random.normal(size=patterns.size),
        random.normal(size=(groups, bins)),
    )


@given(score=scores(), data=st.data())
@examples(150)
def test_scores_are_what_their_definition_says_to_the_last_bit(score, data):
    columns = score.offsets.size - 1
    # Sizes about that of a tile of the core, and the empty one.
    size = data.draw(st.sampled_from([0, 1, 7, 127, 128, 129, 300]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = random.choice(VALUES, size=(size, columns))
    found = score(rows)
    assert (found.shape, found.dtype) == ((size,), np.float64)
    assert found.tolist() == [plain(score, row) for row in rows]


# The score as a record.


def small_score(**changed):
    fields = {
        "transform": "values", "edges": [0.0, 0.5], "offsets": [0, 1, 2],
        "keys": [0, 1, 0, 0, 2, 0], "patterns": [1, 3], "groups": [0, 1],
        "pattern_weights": [0.5, -0.5], "weights": [[1.0, 2.0, 0.0, 0.0, 0.25, 0.0], [0.0] * 6],
    }  # fmt: skip
    return AdditiveScore(**fields | changed)


def test_a_score_is_a_frozen_record():
    score = small_score()
    again = pickle.loads(pickle.dumps(score))
    assert (again, hash(again)) == (score, hash(score))
    assert score != small_score(pattern_weights=[0.5, 0.0])
    rows = np.array([[-1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [np.nan, np.nan]])
    assert score(rows).tolist() == again(rows).tolist() == [1.0, 2.5, -0.5, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        again.edges[0] = 3.0
    assert str(score) == "log-likelihood ratio summed over 2 entries and a pattern (2 bins)"
    flags = small_score(weights=np.zeros((0, 6)))
    assert str(flags) == "log-likelihood ratio of the pattern of 2 entries"
    assert flags(rows).tolist() == [0.0, 0.5, -0.5, 0.0]


def test_outputs_of_every_real_kind_are_scored_alike():
    score = AdditiveScore("values", [0.5, 2.5], [0, 1, 2], [], [], [], [], [range(6)])
    rows = np.array([[0, 1], [1, 3], [1, 2]])
    expected = score(rows.astype(np.float64))
    for kind in (np.int8, np.uint64, np.float32, np.float16, np.longdouble):
        assert score(rows.astype(kind)).tolist() == expected.tolist()
    assert score(np.asfortranarray(rows.astype(np.float64))).tolist() == expected.tolist()
    assert score(rows[:, :, None]).tolist() == expected.tolist()
    assert score(rows > 0).tolist() == score((rows > 0).astype(float)).tolist()


def test_threads_score_with_one_score_at_a_time():
    score = small_score()
    rows = np.random.default_rng(1).normal(size=(40_000, 2))
    expected = score(rows)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(score, np.array_split(rows, 16)))
    assert np.concatenate(parts).tolist() == expected.tolist()


def test_long_integer_rows_are_converted_in_parts():
    rows = np.arange(3 * 2**20, dtype=np.int64).reshape(-1, 3)
    parts = list(float_blocks(rows))
    assert len(parts) > 1
    assert np.array_equal(np.concatenate([block for _, block in parts]), rows)
    assert [part.start for part, _ in parts[1:]] == [part.stop for part, _ in parts[:-1]]


VALUE_ERRORS = [
    (lambda: small_score(transform="sums"), "transform", "one of 'values', 'differences'"),
    (lambda: small_score(edges=[1.0, 0.0], offsets=[0, 2, 2]), "edges", "numbers in nondecreasing"),
    (lambda: small_score(edges=[[0.0, 0.5]]), "edges", "an array of 1 dimensions"),
    (lambda: small_score(offsets=[0, 1]), "weights", "rows of 4, one for each bin"),
    (lambda: small_score(offsets=[]), "weights", "rows of 0, one for each bin"),
    (lambda: small_score(keys=[0, 1, 0]), "keys", "one for each of 6 bins, or none"),
    (lambda: small_score(keys=[0, 1, 0, 0, -2, 0]), "keys", "whole numbers that uint64 holds"),
    (lambda: small_score(patterns=[1, 1]), "patterns", "all different"),
    (lambda: small_score(groups=[0]), "groups", "of length 2, as patterns are"),
    (lambda: small_score(groups=[0, 2]), "groups", "below 2, a row of weights"),
    (lambda: small_score(pattern_weights=[0.5]), "pattern_weights", "of length 2, as patterns are"),
    (lambda: small_score(pattern_weights=[0.5, np.nan]), "weights", "finite"),
    (lambda: small_score(weights=[[0.0] * 5]), "weights", "rows of 6, one for each bin"),
    (lambda: small_score(weights=[[np.inf] * 6] * 2), "weights", "finite"),
    (lambda: small_score()(np.zeros((3, 3))), "outputs", "of 2 entries"),
    (lambda: small_score()(np.full((3, 2), 2**60)), "outputs", "within 2**53"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: small_score(transform=1), "transform", "one of 'values', 'differences', 'sorted'"),
    (lambda: small_score(edges=["a", "b"]), "edges", "real numbers"),
    (lambda: small_score()(np.array([["a", "b"]])), "outputs", "real numbers"),
    (lambda: small_score(keys=[0.0, 1.0, 0.0, 0.0, 2.0, 0.0]), "keys", "whole numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
