"""Outputs that are no real numbers: what a score written by hand certifies, `auto` certifies too.

In every case no output comes twice, so that only a part of it tells the sides apart.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_audits import assert_kept, count_refutations
from shared_examples import examples
from shared_messages import check_messages
from shared_parts import CASES, PAIR, Leaky
from shared_resumed import allow

import dpcore
from dpcore import Audit, audit_outputs
from dpcore.attacks import Additive, Auto, Histogram, Support, Threshold
from dpcore.attacks.candidates import PartsScore, choose_presence_type_length_rules, differing_parts
from dpcore.attacks.classifier import LinearScore
from dpcore.attacks.parts import Part, Parts, cache_parts
from dpcore.attacks.products import SignProducts
from dpcore.attacks.threshold import Coordinate, RowMax
from dpcore.mechanisms.answers import answer_rows, to_object_array, to_outputs

TRIALS = 40_000


def audited(name, loss, **more):
    options = {"claim": 1.0, "trials": TRIALS, "rng": 11, **more}
    return dpcore.audit(Leaky(name, loss), PAIR, **options)


NAMES = {
    "first letter": "letter 1 ",
    "complex rows": "imaginary part of output[3]",
    "structured": 'inner["value"][1]',
    "labelled": "output[1]",
    "mappings": "count",
}
"""What reports call the part that tells, in some of the cases."""


@pytest.mark.parametrize("name", CASES)
def test_auto_certifies_what_a_score_written_by_hand_does(name):
    found = audited(name, CASES[name].broken)
    by_hand = audited(name, CASES[name].broken, attack=Threshold(CASES[name].score))
    assert by_hand.epsilon_lower > 2.0
    assert found.epsilon_lower >= 0.9 * by_hand.epsilon_lower
    assert found.refuted
    assert all(NAMES.get(name, "") in str(shown) for shown in (found.event, found))


@pytest.mark.parametrize("name", CASES)
def test_a_private_twin_passes(name):
    report = audited(name, 1.0)
    assert 0.85 < report.epsilon_lower < 1.0
    assert report.refuted is False


# Soundness.

AUDITS = max(100, int(os.environ.get("DPCORE_AUDITS", "400")) // 4)
SOUND = ("first letter", "structured", "labelled")


@pytest.mark.sweep
@pytest.mark.parametrize("name", SOUND)
def test_a_true_claim_is_refuted_as_seldom_as_promised_and_half_of_it_often(name):
    assert count_refutations(Leaky(name, 1.0), 1.0, audits=AUDITS) <= allow(AUDITS)
    # The control.
    assert count_refutations(Leaky(name, 1.0), 0.5, audits=30, trials=2000) > 20


# Every score attack, and every way to run one.


@pytest.mark.parametrize("attack", [Threshold(), Additive(), Histogram(), Support()], ids=str)
def test_every_score_attack_is_fitted_on_parts(attack):
    loss = 9.0 if isinstance(attack, Support) else 4.0
    report = audited("withheld", loss, attack=attack)
    assert report.epsilon_lower > 0.85 * (4.0 if loss == 4.0 else 6.0)


def test_an_attack_is_called_on_strings():
    rng = np.random.default_rng(1)
    sides = [Leaky("first letter", 2.2)([x], 4000, rng) for x in (0.0, 1.0)]
    event = Auto()(*sides, dpcore.Pair(*PAIR))
    assert "letter 1" in str(event)
    counts = [int(event(side).sum()) for side in sides]
    assert abs(counts[0] - counts[1]) > 2500


def test_a_score_of_ones_own_sees_outputs_and_never_parts():
    seen = set()

    def own(outputs):
        seen.add(outputs.dtype.kind)
        return np.array([float(ord(one[0])) for one in outputs])

    attack = Auto((Threshold(own), *Auto().members))
    assert audited("first letter", 2.2, attack=attack).epsilon_lower > 2.0
    assert seen == {"U"}


def test_early_stop_learns_from_parts():
    assert audited("first letter", 2.2, stop="refuted").refuted
    assert audited("labelled", 1.0, stop="refuted", trials=3000).refuted is False


# Records.


def test_audits_are_read_in_a_fresh_process():
    names = "first letter", "structured", "labelled", "mappings", "sets"
    reports = [audited(name, 2.2, trials=5000) for name in names]
    assert pickle.loads(pickle.dumps(reports)) == reports
    script = (
        "import sys, dpcore\nfor one in sys.stdin: print(dpcore.Audit.from_json(one).to_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input="\n".join(one.to_json() for one in reports),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    read = [Audit.from_json(line) for line in done.stdout.splitlines()]
    assert [(one.event, one.counts) for one in read] == [(r.event, r.counts) for r in reports]


# What has no parts.


class Opaque:
    """Two of them are never equal, and nothing can be read off one."""


class Unhashable:
    __hash__ = None


class Token:
    """Without parts, but equal ones are equal."""

    def __init__(self, word):
        self.word = word

    def __eq__(self, other):
        return self.word == other.word

    def __hash__(self):
        return hash(self.word)


def tokens(x, size, rng):
    told = rng.random(size) < 0.2 + 0.6 * x[0]
    return [Token("a" if one else "b") for one in told]


def inside(x, size, rng):
    return list(zip(rng.normal(size=size).tolist(), tokens(x, size, rng), strict=True))


@pytest.mark.parametrize(("mechanism", "shown"), [(tokens, ""), (inside, "outcome of output[1]")])
def test_other_objects_are_compared_whole(mechanism, shown):
    report = dpcore.audit(mechanism, PAIR, claim=1.0, trials=20_000, rng=1)
    assert 1.25 < report.epsilon_lower < np.log(4.0)
    assert shown in str(report.event)
    # JSON has no such objects: the event's words stay.
    assert Audit.from_json(report.to_json()).counts == report.counts


@pytest.mark.parametrize(("make", "where", "kind"), [
    (Opaque, "", "Opaque"),
    (lambda: (1.5, Opaque()), r" \(output\[1\]\)", "Opaque"),
    (Unhashable, "", "Unhashable"),
])  # fmt: skip
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_objects_that_nobody_can_compare_are_an_error_that_names_them(make, where, kind, stop):
    def opaque(x, size, rng):
        return [make() for _ in range(size)]

    told = rf"^outputs of .*opaque{where} must be numbers, strings, .* got <class .*{kind}'>$"
    with pytest.raises(TypeError, match=told):
        dpcore.audit(opaque, PAIR, claim=1.0, trials=1000, rng=1, stop=stop)
    with pytest.raises(TypeError, match=r"^outputs.* must be numbers, strings"):
        audit_outputs(opaque([0.0], 99, None), opaque([1.0], 99, None), rows="independent")


@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_an_attack_that_does_not_apply_is_named(stop):
    def words(x, size, rng):
        return np.full(size, "yes")

    for attack in (Threshold(0), Threshold("l1")):
        with pytest.raises(ValueError, match=r"^attack must be one that applies to these outputs"):
            dpcore.audit(words, PAIR, attack=attack, claim=1.0, trials=500, rng=1, stop=stop)


def test_constants_and_outputs_without_entries_certify_nothing():
    options = {"claim": 1.0, "trials": 500, "rng": 1}
    for value in ("same", 1j, (1, "a"), [[1], {}], None, b"\0", 0.0, np.nan, [np.inf, 1.0]):
        constant = lambda x, size, rng, value=value: [value] * size  # noqa: E731
        report = dpcore.audit(constant, PAIR, **options)
        assert (report.epsilon_lower, report.refuted) == (0.0, None)
        assert report.verdict.startswith("undecided: all ")
    empty = dpcore.audit(lambda x, size, rng: np.zeros((size, 0)), PAIR, **options)
    assert empty.epsilon_lower == 0.0
    assert "no event" in str(empty.event)


# Recorded outputs.


@pytest.mark.parametrize("name", CASES)
def test_recorded_outputs_of_every_kind(name):
    broken, rng = CASES[name].broken, np.random.default_rng(3)
    sides = [Leaky(name, broken)([x], 20_000, rng) for x in (0.0, 1.0)]
    assert audit_outputs(*sides, rows="independent", claim=1.0, rng=1).epsilon_lower > 0.8 * broken
    twin = [Leaky(name, 1.0)([x], 5000, rng) for x in (0.0, 1.0)]
    assert audit_outputs(*twin, rows="independent", claim=1.0, rng=1).refuted is False


def test_recorded_lists_that_are_equally_long_on_one_side():
    sides = [[1, 2]] * 50, [[1, 2], [1, 2, 3]] * 25
    assert audit_outputs(*sides, rows="independent", claim=0.1, rng=1).counts.n == 25


def test_recorded_numbers_of_which_one_side_lacks_some():
    values = np.random.default_rng(1).normal(size=400).tolist()
    sides = values[:200], [None, *values[201:]]
    assert audit_outputs(*sides, rows="independent", claim=1.0, rng=1).refuted is False


# Lists of changing length, as a mechanism returns them.


def test_lists_that_are_equally_long_in_the_first_calls():
    def rarely(x, size, rng):
        rows = rng.normal(size=(size, 3)).tolist()
        return [row[: 2 + (rng.random() < 0.9 - 0.8 * x[0])] for row in rows]

    for seed in range(5):
        report = dpcore.audit(rarely, PAIR, claim=1.0, trials=5000, rng=seed)
        assert 1.9 < report.epsilon_lower < np.log(9.0)
        assert report.shape == ()


def test_no_length_tells_more_than_it_does():
    """The control of `lengths`: the same lists on both sides."""
    equal = ([0.0], [0.0])
    same = dpcore.audit(Leaky("lengths", 3.0), equal, null=True, claim=0.0, trials=5000, rng=1)
    assert same.epsilon_lower == 0.0


def test_lists_that_contain_themselves_are_an_error():
    def endless(x, size, rng):
        rows = [[1.0] for _ in range(size)]
        for row in rows:
            row.append(row)
        return rows

    text = "^outputs of .* must be objects that do not contain themselves"
    with pytest.raises(TypeError, match=text):
        dpcore.audit(endless, PAIR, claim=1.0, trials=300, rng=1)


# Parts one by one: answers as rows, what is read of them, and that nothing is lost or raised.


# Answers as rows.


OBJECTS = [
    [("a", 1.5), ("b", 2.5)], ["a", 1.5], ["a", True], [[1], [2, 3]], [np.zeros(2), np.zeros(3)],
    ["a\0", "b"], [b"a\0", b"b"], [2**53 + 1, 0.5], [2**63, -1], [None, 1.0], [{"a": 1}, {"a": 2}],
]  # fmt: skip
"""Answers whose values no array of numbers or strings keeps."""


@pytest.mark.parametrize(("answer", "dtype", "shape"), [
    ([1, 2], "int64", (2,)),
    ([[1.0, 2], [3, 4]], "float64", (2, 2)),
    (["a", "bc"], "<U2", (2,)),
    ([["a", "b"], ["c", "d"]], "<U1", (2, 2)),
    ([b"a\0c", b"b"], "|S3", (2,)),
    ([2**53, 0.5], "float64", (2,)),
    ([1j, 2.0], "complex128", (2,)),
    (np.array([[1, 2], [3, 4]]), "int64", (2, 2)),
    *((answer, "object", (2,)) for answer in OBJECTS),
])  # fmt: skip
def test_answers_as_rows(answer, dtype, shape):
    found = answer_rows("outputs", answer, "an array")
    assert (found.dtype, found.shape) == (np.dtype(dtype), shape)
    if dtype == "object":
        assert [type(one) for one in found] == [type(one) for one in answer]


def test_a_few_long_strings_do_not_widen_all():
    assert answer_rows("outputs", ["a"] * 10_000 + ["b" * 10**6], "an array").dtype == object
    assert answer_rows("outputs", ["a"] * 10_000, "an array").dtype == "<U1"


def test_rows_are_arranged_as_in_other_calls():
    pairs = [("a", 1.5), ("b", 2.5)]
    assert answer_rows("outputs", pairs, "an array", (2,)).shape == (2, 2)
    assert answer_rows("outputs", [[1], [2]], "an array", ()).tolist() == [[1], [2]]
    assert answer_rows("outputs", [[1], [2, 3]], "an array", (1,)).shape == (2,)
    with pytest.raises(ValueError, match=r"^outputs must be an array with 3 rows.*got \(2,\)"):
        to_outputs("outputs", pairs, 3)


# What is read.


def columns(outputs, *parts):
    return Parts(tuple(Part(*part) for part in parts))(answer_rows("o", outputs, "rows")).T.tolist()


def test_letters_lengths_and_counts():
    outputs = ["abca", "", "a"]
    parts = [((), "length"), ((), "letter", 0), ((), "letter", -1), ((), "letter", 3),
             ((), "count", ord("a"))]  # fmt: skip
    expected = [[4, 0, 1], [97, -1, 97], [97, -1, 97], [97, -1, -1], [2, 0, 1]]
    assert columns(outputs, *parts) == expected
    assert columns(to_object_array(outputs), *parts) == expected
    assert columns([one.encode() for one in outputs], *parts) == expected


@examples(60)
@given(st.lists(st.text(max_size=5) | st.binary(max_size=5), min_size=1, max_size=20))
def test_nothing_of_a_short_string_is_lost(outputs):
    """Length and letters say which string it is, whatever NULs it ends with."""
    read = Parts((*(Part((), "kind", kind) for kind in (2, 3)), Part((), "length"),
                  *(Part((), "letter", i) for i in range(5))))  # fmt: skip
    rows = read(answer_rows("outputs", outputs, "rows")).tolist()
    assert [rows.index(row) for row in rows] == [outputs.index(one) for one in outputs]


def test_long_strings_are_read_at_both_ends():
    outputs = ["x" + "a" * 5000 + "y", "z"]
    parts = [((), "letter", 0), ((), "letter", -1), ((), "letter", 9), ((), "count", ord("a"))]
    assert columns(outputs, *parts) == [[120, 122], [121, 122], [97, -1], [5000, 0]]
    assert columns([one.encode() for one in outputs], *parts)[3] == [5000, 0]


@examples(60)
@given(st.lists(st.integers(-(2**200), 2**200), min_size=2, max_size=10))
def test_whole_numbers_of_any_size_are_equal_exactly_where_their_parts_are(outputs):
    rows = to_object_array([*outputs, outputs[0] + 1])
    read = Parts((Part((), "value"), *(Part((), "word", i) for i in range(8))))(rows).tolist()
    assert [read.index(row) for row in read] == [rows.tolist().index(one) for one in rows]


def test_parts_of_wide_integers_hold_their_words():
    rng = np.random.default_rng(1)
    rows = np.zeros(50, dtype=[("n", "i8")])
    rows["n"] = 2**62 + rng.integers(0, 9, 50)
    found, _ = differing_parts(rows, rows, "outputs")
    assert np.unique(found(rows), axis=0).shape[0] == np.unique(rows["n"]).size
    as_objects = to_object_array(rows.tolist())
    words = Parts(tuple(Part((("place", 0),), "word", i) for i in range(3)))
    assert words(rows).tolist() == words(as_objects).tolist()
    assert words(np.array([(-1,)], rows.dtype)).tolist() == words(to_object_array([(-1,)])).tolist()


@dataclasses.dataclass
class Release:
    value: float
    word: str


@pytest.mark.parametrize(("item", "steps", "value"), [
    ((1, (2, [3.5])), (("place", 1), ("place", 1), ("place", 0)), 3.5),
    ({"a": {"b": 4}}, (("key", "a"), ("key", "b")), 4.0),
    (Release(2.5, "w"), (("key", "value"),), 2.5),
    (np.array([1.0, 7.0]), (("place", -1),), 7.0),
    (np.array([(1, 2.0)], dtype="i4,f8")[0], (("place", 1),), 2.0),
    (range(3, 6), (("place", 0),), 3.0),
    *((number, (), value) for number, value in (
        (Fraction(1, 2), 0.5), (Decimal("0.25"), 0.25), (np.float32(0.5), 0.5), (10**400, np.inf),
        (datetime.timedelta(minutes=1), 60.0), (datetime.date(1970, 1, 2), 86400.0),
        (datetime.datetime(1970, 1, 1, 1), 3600.0), (np.datetime64("1970-01-02"), 8.64e13),
    )),
])  # fmt: skip
def test_numbers_inside_objects(item, steps, value):
    assert Parts((Part(steps, "value"),))(to_object_array([item, None])).tolist()[0] == [value]


ODD = [
    None, 1, 1.5, 2j, "a", b"a", "", [], [1], ("a", 1.5), {"a": 1}, {1, 2}, frozenset({"a"}),
    np.zeros(2), np.zeros((2, 2)), np.float32(1.0), np.str_("b"), object(), print, int,
    Release(1.0, "a"), 10**400, float("nan"), [[[[[[[[[[1]]]]]]]]]], np.datetime64("NaT"),
    bytearray(b"ab"), memoryview(b"ab"), Decimal("NaN"), Ellipsis, range(3),
]  # fmt: skip


@pytest.mark.parametrize("seen", [
    ["abc", "d"], [1 + 2j, 3j], [("a", 1.5), ("b", 2.5)], [[1], [2, 3]], [{"a": 1}, {"b": 2}],
    [{1}, {2}], [None, 2.0], [2**80, 2**90], [b"a", b"bc"], [print, len],
    np.array([(1, "a"), (2, "b")], dtype=[("n", "i4"), ("s", "U1")]),
    np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    np.array([b"ab", b"cd"], dtype="V2"),
    np.array([["a", "b"], ["c", "d"]]),
    np.array([["a", None], [1.5, {}]], dtype=object)
])  # fmt: skip
def test_outputs_of_kinds_that_the_pilot_never_showed_are_read(seen):
    pilot = answer_rows("outputs", [*seen] * 20 if isinstance(seen, list) else np.tile(seen, 20)
                    if seen.ndim == 1 else np.tile(seen, (20, 1)), "rows")  # fmt: skip
    found, _ = differing_parts(pilot, pilot[::-1], "outputs")
    assert found.parts
    for outputs in (to_object_array(ODD), np.zeros(3), np.zeros((3, 2)), np.array(["a", "b"]),
                    pilot[:0], np.array([["a"]]), np.zeros(2, "i4,f8"), np.zeros(2, bool),
                    np.ones(2) * 1j, np.array([[None, 1]]),
                    np.zeros(2, "M8[s]"), np.zeros(2, "V3")):  # fmt: skip
        values = found(outputs)
        assert (values.shape, values.dtype) == ((len(outputs), len(found.parts)), np.float64)
    # Twice the same, and each output by itself.
    assert np.array_equal(found(pilot), found(pilot), equal_nan=True)
    single = np.concatenate([found(pilot[i : i + 1]) for i in range(len(pilot))])
    assert np.array_equal(found(pilot), single, equal_nan=True)


def test_a_list_that_holds_itself_ends():
    loop = [1.0]
    loop.append(loop)
    found, _ = differing_parts(
        to_object_array([loop, [2.0]]), to_object_array([[3.0], loop]), "outputs"
    )
    assert 0 < len(found.parts) <= 64


def test_constant_parts_and_copies_are_left_out():
    codes = np.random.default_rng(1).integers(97, 123, (500, 3)).astype(np.uint32)
    strings = codes.view("U3")[:, 0]
    names = differing_parts(strings[:250], strings[250:], "outputs")[0].names()
    assert "length" not in names
    assert sum("letter" in name for name in names) == 3
    assert differing_parts(np.full(9, "same"), np.full(9, "same"), "outputs")[0].parts == ()


def test_of_many_parts_the_telling_ones_stay():
    rng = np.random.default_rng(2)
    sides = [[rng.normal(size=100).tolist() for _ in range(600)] for _ in range(2)]
    for row in sides[1]:
        row[11] += 3.0
    # Rows of one more make lists of changing length of them.
    found, _ = differing_parts(*(to_object_array([*side, [0.0]]) for side in sides), "outputs")
    assert len(found.parts) <= 64
    assert "output[11]" in found.names()
    wide = rng.normal(size=(300, 100)) + 1j * rng.normal(size=(300, 100))
    assert len(differing_parts(wide, wide[::-1], "outputs")[0].parts) == 200


@pytest.mark.parametrize("side", [
    lambda i: {"a": i, "b": ["x", i % 3], "c": {i % 5, "y"}} if i % 7 else None,
    lambda i: [(i % 3, i % 4)] * (i % 5) + [0.5 * i],
    lambda i: f'{{"a": {i}, "b": "word {i % 4}"}}',
    lambda i: (f"{i:x}", b"\0" * (i % 3), True, 1 if i % 2 else 1.0),
], ids=["dict", "list", "json", "tuple"])  # fmt: skip
def test_columns_that_were_compared_are_those_that_parts_read(side):
    sides = [to_object_array([side(i) for i in range(first, 400, 2)]) for first in (0, 1)]
    for explored in (
        choose_presence_type_length_rules,
        lambda *both: differing_parts(*both, "outputs")[0],
    ):
        with cache_parts():
            found = explored(*sides)
            compared = [found(one) for one in sides]
        assert found.parts
        assert all(map(np.array_equal, compared, map(found, sides), [True, True]))


# Records.


def scores():
    rng = np.random.default_rng(3)
    for rows in (
        [("a", 1.5, {"k": 2}), ("b", None, {2: frozenset({1})})] * 9,
        rng.integers(97, 105, (50, 4)).astype(np.uint32).view("U4")[:, 0],
        [{"seen", 3}, {4}] * 9,
    ):
        array = answer_rows("outputs", rows, "rows")
        yield PartsScore(differing_parts(array, array[::-1], "outputs")[0], Coordinate(0))


@pytest.mark.parametrize("score", list(scores()), ids=str)
def test_scores_of_parts_pickle_and_are_kept_by_json(score):
    assert_kept(score)


def test_a_score_of_parts_answers_as_the_inner_one():
    class Inner:
        merged, cost, own = True, 7, 3

        def __call__(self, rows):
            return rows[:, 0]

    score = PartsScore(Parts((Part((), "length"),)), Inner())
    assert (score.merged, score.cost, score.own) == (True, 28, 3)
    check_messages(AttributeError, [(lambda: score.nothing, "", "nothing")])
    check_messages(TypeError, [
        (lambda: PartsScore(None, Inner()), "parts", "a Parts"),
        (lambda: PartsScore(score.parts, None), "score", "a callable"),
    ])  # fmt: skip
    check_messages(ValueError, [
        (lambda: Part((), "colour"), "measure", "one of 'kind'"),
        (lambda: Part((("leap", 1),), "value"), "step", "one of 'entry'"),
    ])  # fmt: skip


@pytest.mark.parametrize(("score", "words"), [
    (SignProducts([0, 2], [0.5, 0.5], [0], [1], [1.0]),
     "product of the signs of length and output[1]"),
    (SignProducts([0, 1, 2], [0.5] * 3, [0], [1], [1.0], [2]),
     "product of the signs of length, k is there and output[1]"),
    (LinearScore([0, 2], [0.0] * 2, [2.0, 1.0]), "weighted sum of length and output[1]"),
    (RowMax(), "largest entry of the parts (length, k is there, output[1])"),
], ids=["pair", "triple", "sum", "all"])  # fmt: skip
def test_a_score_of_parts_names_the_parts(score, words):
    parts = Part((), "length"), Part((("key", "k"),), "there"), Part((("entry", 1),), "value")
    assert str(PartsScore(Parts(parts), score)) == words


def test_parts_are_read_once_while_remembered():
    outputs = np.array(["ab", "c"])
    parts = Parts((Part((), "length"),))
    with cache_parts():
        first = parts(outputs)
        outputs[0] = "abc"
        with cache_parts():
            assert np.array_equal(parts(outputs), first)
        assert np.array_equal(parts(outputs), first)
    outputs[0] = "x"
    assert parts(outputs).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(("part", "words"), [
    (Part((), "value"), "value"),
    (Part((), "real"), "real part"),
    (Part((("entry", 0),), "imaginary"), "imaginary part of output[0]"),
    (Part((("field", "x"),), "value"), "x"),
    (Part((("place", -1),), "length"), "length of output[-1]"),
    (Part((), "letter", -2), "letter 2 from the end"),
    (Part((("key", "k"),), "count", 98), 'number of "b" of k'),
    (Part((), "word", 1), "bits 32 to 63"),
    (Part((("place", 2),), "kind", 0), "output[2] is None"),
    (Part((), "holds", "a"), 'output contains "a"'),
    (Part((("key", "k"),), "kind", 2), "k is a string"),
    (Part((), "number"), "number written"),
    (Part((), "which", ("a",)), "outcome"),
])  # fmt: skip
def test_the_names_of_parts(part, words):
    assert str(part) == words
