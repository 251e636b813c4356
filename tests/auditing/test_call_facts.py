"""What a call says once: an input that shows in it is an error, and no count of rows uses it."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from shared_audits import UNIT

import dpcore
from dpcore.mechanisms.answers import frame_to_rows, table_to_mapping


def draw_fields(first, second):
    def mechanism(x, size, rng):
        return rng.laplace(size=size).astype([(second if x[0] else first, float)])

    return mechanism


def draw_rows_as(first, second):
    return lambda x, size, rng: [(second if x[0] else first)(r) for r in rng.random((size, 2))]


def draw_call_as(first, second):
    return lambda x, size, rng: (second if x[0] else first)(rng.random((size, 1)).tolist())


def draw_frames(change):
    def mechanism(x, size, rng):
        frame = pandas.DataFrame({"age": rng.laplace(size=size), "sex": ["m"] * size})
        return change(frame, bool(x[0]))

    return mechanism


def rename_column(frame, second):
    return frame.rename(columns={"age": "bob" if second else "alice"})


def change_categories(frame, second):
    kinds = ["m", "f"] if second else ["m", "d"]
    return frame.assign(sex=pandas.Categorical(frame["sex"], kinds))


def shift_index(frame, second):
    return frame.set_axis(range(5 if second else 0, len(frame) + (5 if second else 0)))


def name_index(frame, second):
    return frame.rename_axis("bob" if second else "alice")


FACTS = [
    (draw_fields("alice", "bob"), 'same field names .* tell the input: "alice" on x, "bob" on x\''),
    (draw_rows_as(list, tuple), "same type of the rows .* tells the input: list on x, tuple on x'"),
    (draw_call_as(list, tuple), "same type of the answer .*: list on x, tuple on x'"),
    (lambda x, size, rng: rng.random((size, 2 + int(x[0]))),
     r"same shape of the rows .* \(2,\) on x, \(3,\) on x'"),
    (draw_frames(rename_column),
     'same columns .* the columns tell the input: "alice" on x, "bob" on x\''),
    (draw_frames(change_categories), 'same categories of column \'sex\' .*"d" on x, "f" on x\''),
    (draw_frames(shift_index), r"same start of the index .* \(0, 1\) on x, \(5, 1\) on x'"),
    (draw_frames(name_index),
     'same name of the index .* tells the input: "alice" on x, "bob" on x\''),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "text"), FACTS)
def test_a_call_that_tells_its_input_is_an_error(mechanism, text):
    with pytest.raises(ValueError, match=f"^outputs of .* must have the {text}.*dpcore.repeat"):
        dpcore.audit(mechanism, UNIT, claim=1.0, trials=200, rng=1)
    # The control: of two equal inputs a call says the same.
    equal = dpcore.audit(mechanism, ([0.0], [0.0]), null=True, claim=1.0, trials=200, rng=1)
    assert equal.verdict != "refuted"


def test_facts_that_change_from_call_to_call_are_no_word_on_the_input():
    """The names of fields may then change in no call that is counted: an error, and no count."""

    def by_chance(x, size, rng):
        return rng.random(size).astype([("ab"[int(rng.integers(2))], float)])

    with pytest.raises(ValueError, match=r"must be of the fields \('.',\) in every call, got"):
        dpcore.audit(by_chance, UNIT, claim=1.0, trials=200_000, rng=1)

    def listed(x, size, rng):
        rows = rng.random((size, 1))
        return rows.tolist() if rng.random() < 0.5 else rows

    assert dpcore.audit(listed, UNIT, claim=1.0, trials=200, rng=1).verdict != "refuted"


def test_integers_against_floats_stay_a_note():
    def typed(x, size, rng):
        return np.rint(rng.laplace(size=size)).astype(float if x[0] else int)

    report = dpcore.audit(typed, UNIT, claim=1.0, trials=2000, rng=1)
    assert any("type int64" in note for note in report.notes)


def test_frames_become_arrays_or_fields():
    numbers = pandas.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]})
    assert np.array_equal(frame_to_rows(numbers), numbers.to_numpy())
    assert np.array_equal(frame_to_rows(numbers.set_axis([7, 8])), numbers.to_numpy())
    rows = frame_to_rows(numbers.assign(city=["x", "y"], whole=[1, 2]))
    assert (rows.dtype.names, rows[1].item()) == (("a", "b", "city", "whole"), (2.5, 4.0, "y", 2))
    labelled = numbers.set_axis(pandas.Index(["u", "v"], name="who"))
    assert frame_to_rows(labelled)["who"].tolist() == ["u", "v"]
    assert frame_to_rows(numbers.set_axis([1, 0])).dtype.names == ("a", "b", "index")
    # As other calls were.
    assert frame_to_rows(numbers, ("a", "b", "index"))["index"].tolist() == [0, 1]
    assert frame_to_rows(labelled, ()).shape == (2, 2)
    missing = pandas.DataFrame({"a": pandas.array(["u", None], dtype="string")})
    assert frame_to_rows(missing, ("a",)).tolist() == [("u",), (None,)]
    assert frame_to_rows(pandas.DataFrame([[1, "a"]], columns=["a", "a"])).tolist() == [(1, "a")]


def draw_cities(x, size, rng):
    kept = rng.random(size) < 0.95
    towns = np.where(kept, "great" if x[0] else "small", "other")
    return pandas.DataFrame({"age": rng.laplace(size=size), "city": towns})


def draw_labels(x, size, rng):
    labels = rng.integers(0, 1000, size) + (1000 if x[0] else 0)
    return pandas.DataFrame({"age": rng.laplace(size=size)}, index=labels)


@pytest.mark.parametrize(
    ("mechanism", "shown"), [(draw_cities, 'field "city"'), (draw_labels, 'field "index"')]
)
def test_a_field_and_an_index_that_does_not_number_the_rows_are_counted(mechanism, shown):
    report = dpcore.audit(mechanism, UNIT, claim=1.0, trials=2000, rng=1)
    assert report.verdict == "refuted"
    assert shown in str(report.event)


def test_frames_under_repeat_are_one_output_each():

    def groups(x, rng):
        towns = ["u", "v"][: 1 + int(x[0])]
        return pandas.DataFrame({"one": rng.integers(3, size=len(towns))}, index=towns)

    mechanism = dpcore.repeat(groups)
    assert mechanism([1.0], 1, np.random.default_rng(1)).tolist()[0].keys() == {"one", "index"}
    assert dpcore.audit(mechanism, UNIT, claim=1.0, trials=500, rng=1).verdict == "refuted"
    counts = pandas.Series([3, 1], index=["u", "v"])
    assert table_to_mapping(counts) == {"u": 3, "v": 1}
    assert table_to_mapping(counts.set_axis(["u", "u"])) == {"values": [3, 1], "index": ["u", "u"]}
