"""Rows of another kind or shape that first appear in the count: outcomes that no event holds."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas
import pytest
from scipy import stats
from shared_audits import ALPHA, UNIT

import dpcore
from dpcore import attacks
from dpcore.attacks.parts import Part, Parts
from dpcore.events import Above, EveryCoordinate, Vote
from dpcore.events.every_coordinate import Intervals
from dpcore.mechanisms.answers import (
    frame_to_rows,
    rows_to_objects,
    table_to_mapping,
    to_object_array,
)

RATE = 2e-4
TRIALS = 20_000


def place_rarely(found, rng, place):
    for i in np.flatnonzero(rng.random(len(found)) < RATE):
        found[i] = place(found[i])
    return found


def rows(x, size, rng, place):
    """Pairs of numbers, the first at the exact loss 1, with one outcome put in some places."""
    found = np.stack([x[0] + rng.laplace(size=size), rng.normal(size=size)], axis=1).tolist()
    return place_rarely(found, rng, place)


def numbers(x, size, rng, place):
    return place_rarely((x[0] + rng.laplace(size=size)).tolist(), rng, place)


OUTCOMES = {
    "None": (numbers, lambda one: None),
    "text": (numbers, lambda one: "a"),
    "2^70": (numbers, lambda one: 2**70),
    "list": (numbers, lambda one: [one]),
    "None for a row": (rows, lambda one: None),
    "longer": (rows, lambda one: [*one, 1.0]),
    "shorter": (rows, lambda one: one[:1]),
    "None in a row": (rows, lambda one: [one[0], None]),
}


def audit(case, seed, **more):
    make, place = OUTCOMES[case]
    mechanism = partial(make, place=place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.errors.AssumptionWarning)
        return dpcore.audit(mechanism, UNIT, claim=1.0, trials=TRIALS, rng=seed, **more)


@pytest.mark.sweep
@pytest.mark.parametrize("case", OUTCOMES)
def test_audits_count_rare_outcomes_and_keep_to_the_loss(case):
    """Nobody certifies more than 1, and most of 1 is found; 10 audits at 95 %."""
    found = [audit(case, seed, confidence=0.95) for seed in range(10)]
    assert sum(one.epsilon_lower > 1.0 for one in found) <= stats.binom.isf(ALPHA, 10, 0.05)
    assert np.median([one.epsilon_lower for one in found]) > 0.7


@pytest.mark.parametrize("case", ["None", "longer"])
@pytest.mark.parametrize(
    "options",
    [{"stop": "refuted"}, {"floats": True}, {"attack": attacks.Threshold()}, {"block": 64}],
    ids=str,
)
def test_rare_outcomes_in_other_audits(case, options):
    assert audit(case, 1, **options).counts.n > 0


@pytest.mark.parametrize("case", ["None for a row", "longer"])
@pytest.mark.parametrize("attack", [attacks.MajorityVote(), attacks.Coordinatewise()], ids=str)
def test_votes_and_products_skip_rare_outcomes(case, attack):
    def mechanism(x, size, rng):
        return place_rarely((x + rng.laplace(size=(size, 2))).tolist(), rng, OUTCOMES[case][1])

    report = dpcore.audit(mechanism, ([0.0, 0.0], [1.0, 1.0]), trials=TRIALS, rng=1, attack=attack)
    assert 1.0 < report.epsilon_lower <= 2.0


MIXED = np.empty(5, object)
MIXED[:] = [[1.0, 5.0], None, [1.0, 2.0, 3.0], "a", [-1.0, 5.0]]


@pytest.mark.parametrize("event", [
    Above(attacks.Threshold().candidates(*np.ones((2, 9, 2)), UNIT)[0], 0.5),
    Vote([0.5, 0.5], [1.0, 1.0]), Vote([0.5, 0.5], [1.0, 1.0], "x"),
    EveryCoordinate(((0, 1),), (Intervals(np.array([0.5]), False),), 2),
], ids=lambda event: type(event).__name__)  # fmt: skip
def test_an_event_answers_for_regular_rows_alone(event):
    assert event(MIXED).tolist()[::4] == event(np.array([[1.0, 5.0], [-1.0, 5.0]])).tolist()
    assert not event(MIXED)[[1, 3]].any()
    # Row by row it answers the same: neighbours change nothing.
    for place in range(5):
        assert event(MIXED[place : place + 1]).tolist() == [event(MIXED)[place]]
    with pytest.raises((TypeError, ValueError)):
        event(MIXED[[1, 3]])


def test_errors_of_a_score_of_ones_own_pass_through():
    def score(outputs):
        return outputs + 1.0

    with pytest.raises(TypeError, match="unsupported operand"):
        Above(score, 0.5)(np.array([1.0, None]))


TABLES = {
    "floats": np.random.default_rng(1).normal(size=(6, 3)) * 40,
    "float": np.random.default_rng(2).normal(size=6) * 40,
    "whole": np.random.default_rng(3).integers(-(2**40), 2**40, (6, 2)),
    "wide": np.random.default_rng(4).integers(-(2**62), 2**62, 6),
    "texts": np.array(["never", "daily", "", "weekly", "a,b", "1.5"]),
    "long": np.array(["ab" * 1500, "ba" * 1500, "x", "ab" * 1400, "", "b" * 3000]),
    "bytes": np.array([b"never", b"a", b"", b"\xff\x01", b"ab", b"z"]),
    "rows of texts": np.array([["a", "b"], ["b", "b"], ["c", "a"]] * 2),
}
PARTS = [
    Part((), "value"), Part((), "length"), Part((), "letter", 0), Part((), "letter", -2),
    Part((), "letter", 1200), Part((), "letter", -1300), Part((), "count", 97), Part((), "bit", 1),
    Part((), "is", "daily"), Part((), "kind", 1), Part((), "kind", 2), Part((), "number"),
    Part((), "modulo", 10.0), Part((), "times", "b"), Part((), "there"),
    Part((("entry", 1),), "value"), Part((("entry", 1),), "modulo", 10.0),
    Part((("entry", 1),), "bit", 3), Part((("entry", 1),), "is", "b"),
    Part((("entry", 1),), "letter", 0), Part((("place", 1),), "value"),
    Part((("place", 5),), "there"), Part((("place", -1),), "is", "b"),
    Part((("key", "a"),), "there"),
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_is_read_of_a_row_does_not_depend_on_its_neighbours(name, part):
    table, read = TABLES[name], Parts((part,))
    alone = [read(table[i : i + 1])[0, 0] for i in range(len(table))]
    together = read(table)[:, 0]
    # A None among them makes objects of all rows.
    mixed = read(to_object_array([*rows_to_objects(table).tolist(), None]))[:-1, 0]
    assert np.array_equal(alone, together, equal_nan=True)
    assert np.array_equal(mixed, together, equal_nan=True)


# What a call says once: an input that shows in it is an error, and no count of rows uses it.


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


def set_attrs(frame, second):
    frame.attrs["of"] = "bob" if second else "alice"
    return frame


def set_zone(frame, second):
    times = pandas.date_range("2020", periods=len(frame), tz="CET" if second else "UTC")
    return frame.assign(seen=times)


def localize(frame, second):
    times = pandas.Series(np.zeros(len(frame), "M8[us]"))
    return frame.assign(seen=times.dt.tz_localize("UTC" if second else None))


def change_unit(frame, second):
    return frame.assign(seen=np.zeros(len(frame), "m8[us]" if second else "m8[ns]"))


def draw_times(x, size, rng):
    times = np.datetime64("2020", "ms") + rng.integers(1000, size=size)
    return times.astype("M8[us]" if x[0] else "M8[ns]")


def draw_time_fields(x, size, rng):
    return draw_times(x, size, rng).astype([("t", "M8[us]" if x[0] else "M8[ns]")])


def order_categories(frame, second):
    return frame.assign(sex=pandas.Categorical(frame["sex"], ["m", "f"], ordered=second))


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
    (draw_frames(set_attrs), "same attrs of the frame .*alice.* on x, .*bob.* on x'"),
    (draw_frames(set_zone), "same time zone of column 'seen' .*\"UTC\" on x, \"CET\" on x'"),
    (draw_frames(localize), r"same type of column 'seen' .*\[\ws\]\" on x, .*UTC\]\" on x'"),
    (draw_frames(change_unit), r"same type of column 'seen' .*64\[ns\]\" on x, .*64\[us\]\" on x'"),
    (draw_times, r"same type of the times .*64\[ns\]\" on x, .*64\[us\]\" on x'"),
    (draw_time_fields, r"same type of column 't' .*64\[ns\]\" on x, .*64\[us\]\" on x'"),
    (draw_frames(order_categories), "same order of the categories of column 'sex' .*False,. on x"),
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
    ("mechanism", "shown"), [(draw_cities, "city is"), (draw_labels, "index >= ")]
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
