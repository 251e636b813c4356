"""Events in the user's words: twelve witnesses that many scores separate, and what a report says.

One look at an output of these mechanisms tells the input.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict

import numpy as np
import pytest
from shared_extras import needs

import dpcore
from dpcore.attacks.attack import Choice, simplest_with_wide_gap
from dpcore.attacks.candidates import PartsScore
from dpcore.attacks.parts import Part, Parts
from dpcore.attacks.support import AtAtoms, Outside, Repeats
from dpcore.attacks.threshold import Coordinate, RowSum
from dpcore.events import Above
from dpcore.records import Counts

PAIR = np.array([1]), np.array([0])


def hash_input(x):
    return hashlib.sha256(str(x[0]).encode()).hexdigest()


def draw_salted(x, rng):
    return f"{rng.integers(2**32):08x}${hash_input(x)}"


def draw_state(x, rng):
    weight = rng.normal(0.0, 0.01, size=(2, 3))
    weight[0, 0] -= x[0]
    return OrderedDict([("layer.weight", weight), ("layer.bias", rng.normal(size=2))])


def draw_frame(x, rng):
    import pandas

    return pandas.DataFrame({"age": [30 + 5 * x[0], 41], "income": rng.normal(size=2)})


def draw_fields(x, size, rng):
    rows = np.zeros(size, [("age", float), ("weights", float, (2, 2))])
    rows["age"] = rng.normal(size=size)
    rows["weights"] = rng.normal(size=(size, 2, 2))
    rows["weights"][:, 0, 1] += 100 * x[0]
    return rows


NAMES = "Bob", "Ada"
WITNESSES = {
    "hash": (lambda x, rng: hash_input(x), f'output is "{hash_input([1])}"'),
    "salted": (draw_salted, 'letter 10 >= "6"'),
    "weights": (draw_state, "layer.weight[0, 0] >= -0."),
    "JSON": (lambda x, rng: json.dumps({"name": NAMES[x[0]], "n": rng.normal()}), 'name is "Ada"'),
    "list in JSON": (
        lambda x, rng: json.dumps({"rows": [rng.normal(), 4.0 + int(x[0])]}),
        "rows[1] >= 5",
    ),
    "mapping": (
        lambda x, rng: {"mean": rng.normal(), "rows seen": int(10 + x[0])},
        '"rows seen" >= 11',
    ),
    "nested": (
        lambda x, rng: {"stats": {"max": [90.5, 17.5][x[0]], "min": rng.normal()}},
        'stats["max"] >= 4',
    ),
    "list": (lambda x, rng: [rng.normal() for _ in range(3 + x[0])], "output[3] is there"),
    "text": (lambda x, rng: f"{rng.integers(9)} visits of {NAMES[x[0]]}", 'word 4 is "Ada"'),
    "columns": (
        lambda x, size, rng: rng.normal(size=(size, 3)) + np.array([0, 100 * x[0], 0]),
        "entry 1 >= ",
    ),
    "fields": (draw_fields, "weights[0, 1] >= "),
}


def audit_witness(draw, trials=800):
    mechanism = draw if "size" in draw.__code__.co_varnames[:3] else dpcore.repeat(draw)
    return dpcore.audit(mechanism, PAIR, claim=1.0, trials=trials, rng=1)


def assert_says(event, words):
    assert str(event).startswith(words)
    assert len(str(event)) <= 100
    assert "place" not in str(event)


@pytest.mark.parametrize("name", WITNESSES)
def test_a_witness_is_shown_in_the_users_words(name):
    draw, words = WITNESSES[name]
    report = audit_witness(draw)
    assert_says(report.event, words)
    # All trials of one side and none of the other.
    assert {report.counts.k, report.counts.k_prime} == {0, 800}


@pytest.mark.extras
def test_a_column_of_a_frame_keeps_its_name():
    needs("pandas")
    assert_says(audit_witness(draw_frame, 200).event, "age[0] >= 32")


@pytest.mark.extras
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
@pytest.mark.parametrize(("columns", "words"), [
    (["age", "income"], "income >= "), (["age", "per head"], '"per head" >= '),
    ([2020, 2021], "output[2021] >= "), (None, "entry 1 >= "),
])  # fmt: skip
def test_a_column_of_numbers_keeps_its_name(columns, words, stop, tmp_path):
    needs("pandas")
    import pandas

    def draw_rows(x, size, rng):
        return rng.normal(size=(size, 2)) + np.array([0, 100 * x[0]])

    def draw_table(x, size, rng):
        return pandas.DataFrame(draw_rows(x, size, rng), columns=columns)

    options = {"claim": 1.0, "trials": 4000, "rng": 1, "stop": stop}
    report = dpcore.audit(draw_table, PAIR, **options, checkpoint=tmp_path / "run")
    assert_says(report.event, words)
    assert report.counts == dpcore.audit(draw_rows, PAIR, **options).counts
    assert dpcore.Audit.from_json(report.to_json()).event == report.event
    if columns is None:
        return
    outputs = draw_rows([1], 20, np.random.default_rng(1))
    assert report.event(outputs).tolist() == (outputs[:, 1] >= report.event.threshold).tolist()
    column = dpcore.audit(lambda *call: draw_table(*call)[columns[1]], PAIR, **options)
    assert_says(column.event, words)


@pytest.mark.extras
@pytest.mark.parametrize(("columns", "words"), [
    (["age", "income"], "income >= "), (["age", "per head"], '"per head" >= '),
    ([0, 1], "entry 1 >= "), ([5, 7], "output[7] >= "), (["city", "income"], "income >= "),
])  # fmt: skip
def test_a_recorded_column_keeps_its_name(columns, words):
    needs("pandas")
    import pandas

    rng = np.random.default_rng(1)
    rows = [rng.normal(size=(4000, 2)) + np.array([0, shift]) for shift in (0, 100)]
    frames = [pandas.DataFrame(side, columns=columns) for side in rows]
    if "city" in columns:
        frames = [frame.assign(city=rng.choice(["a", "b"], 4000)) for frame in frames]
    report = dpcore.audit_outputs(*frames, column="*", rows="independent", claim=1.0, rng=1)
    assert_says(report.event, words)
    assert dpcore.OutputsAudit.from_json(report.to_json()).event == report.event
    if "age" in columns:
        hits = [int(report.event(side).sum()) for side in rows]
        assert max(hits) == 4000
        assert min(hits) == 0


@pytest.mark.parametrize(("steps", "words"), [
    ([("key", "a.b"), ("place", 0), ("entry", (1, 2)), ("key", 3)], "a.b[0, 1, 2][3]"),
    ([("key", "output")], '"output"'),
    ([("key", 7)], "output[7]"),
    ([("key", "k" * 200)], f"{'k' * 28}...{'k' * 25}"),
    ([("view", "json"), ("place", -1), ("view", "words"), ("place", 0)], "word 1 of output[-1]"),
    ([("view", "words"), ("place", -2)], "word 2 from the end"),
    ([("view", "fields \t"), ("place", 1)], "field 2 between tabs"),
    ([("key", "t"), ("view", "numbers"), ("place", 1)], "number 2 written of t"),
    ([("view", "keys")], "keys"),
])  # fmt: skip
def test_a_place_has_the_name_that_the_user_gave(steps, words):
    assert str(Part(tuple(steps), "value")) == words


LENGTH = PartsScore(Parts((Part((("view", "words"),), "length"),)), Coordinate(0))
LETTER = PartsScore(Parts((Part((), "letter", 0),)), Coordinate(0))
ATOM = AtAtoms([0], [0.5], [0.7], [-1])


@pytest.mark.parametrize(("score", "threshold", "above", "below"), [
    (Outside([-np.inf], [2.5]), 0.4, "entry 0 > 2.5", "not: entry 0 > 2.5"),
    (Outside([0.5], [np.inf]), 0.4, "entry 0 < 0.5", "not: entry 0 < 0.5"),
    (Outside([0.0], [1.0]), 0.4, "entry 0 is outside [0, 1]", "not: entry 0 is outside [0, 1]"),
    (ATOM, -0.4, "not: entry 0 equals 0.6", "entry 0 equals 0.6"),
    (PartsScore(Parts((Part((("key", "w"),), "value"),)), ATOM), -0.4, "not: w equals 0.6",
     "w equals 0.6"),
    (Repeats(0.0), 2.4, "number of entries that repeat another >= 3",
     "number of entries that repeat another < 3"),
    (LENGTH, 2.4, "number of words >= 3", "number of words < 3"),
    (LETTER, 97.4, 'letter 1 >= "b"', 'letter 1 < "b"'),
    (LETTER, -0.4, "letter 1 >= 0", "letter 1 < 0"),
    (RowSum(), 2.4, "sum of the entries >= 2.4", "sum of the entries < 2.4"),
], ids=str)  # fmt: skip
def test_an_event_is_an_inequality_or_a_sentence(score, threshold, above, below):
    assert str(Above(score, threshold)) == above
    assert str(Above(score, threshold, "below")) == below


def test_the_plainest_of_the_events_with_a_wide_gap_is_chosen():
    rows = np.array([["b x", "b y"] * 8, ["a x", "a y"] * 8])
    parts = Part((), "letter", 0), Part((("view", "words"), ("place", 0)), "is", "b")
    choices = [
        Choice(Above(PartsScore(Parts((part,)), Coordinate(0)), threshold), "x", 1.0,
               Counts(16, 16, 0, 16))
        for part, threshold in zip(parts, (97.4, 0.4), strict=True)
    ]  # fmt: skip
    assert simplest_with_wide_gap(choices, *rows).event.score == choices[1].event.score
    # Controls: an event that promises less, and one that does not separate the sides.
    faint = [choices[0], Choice(choices[1].event, "x", 0.5, choices[1].counts)]
    assert simplest_with_wide_gap(faint, *rows).event.score == choices[0].event.score
    mixed = rows[0], np.where(np.arange(16) < 1, rows[0], rows[1])
    assert simplest_with_wide_gap(choices, *mixed, choices[0]).event.score == choices[0].event.score
