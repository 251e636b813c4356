"""Inputs are handed over as they are: lists, arrays and other objects, and what is said of them."""

from __future__ import annotations

import io
import socket
import sys
import threading

import numpy as np
import pytest
from shared_audits import AUDITS, MOST, count_refutations

from dpcore import Audit, Laplace, Pair, audit, command, pairs, repeat
from dpcore.results.audit_json import format_call

FEW = {"trials": 2000, "rng": 1}
MANY = {"trials": 20_000, "rng": 1}
FORMS_NOTE = "a list and an array give different answers here; the list was passed"


def total(data, rng):
    return sum(d for d in data if isinstance(d, int))


def padded(r, rng):
    return sum(r + [0] * (4 - len(r))) + rng.laplace()


def upsampled(r, rng):
    return len(r * 3) + rng.laplace()


def with_method(x, rng):
    return x.sum() + rng.laplace()


def summed(x, rng):
    return sum(x) + rng.laplace()


@pytest.mark.parametrize(
    ("function", "inputs", "relation", "claim", "refuted"),
    [
        (total, ([1, 2, 3], [1, 2]), pairs.AddRemove(), 1.0, True),
        (padded, ([1], [0]), pairs.Replace(), 1.5, False),
        (upsampled, ([1, 1, 1], [1, 1]), pairs.AddRemove(), 1.5, True),
        (upsampled, ([1, 1, 1], [1, 1]), pairs.AddRemove(), 3.0, False),
    ],
)
def test_a_function_of_one_answer_gets_the_list(function, inputs, relation, claim, refuted):
    report = audit(repeat(function), inputs, neighbour=relation, claim=claim, **MANY)
    assert (report.refuted, FORMS_NOTE in report.notes) == (refuted, True)
    assert "(list)" in dict(report.lines())["pair"]


# A number that a function makes of its input, the two inputs, and how far the numbers are apart.
NUMBERS = {
    "type of entries": (lambda x: sum(v for v in x if isinstance(v, int)), [1, 2, 3], [1, 2], 3),
    "joined": (lambda x: sum(x + [0] * (4 - len(x))), [1], [0], 1),
    "repeated": (lambda x: len(x * 3), [1, 1, 1], [1, 1], 3),
    "counted": (lambda x: x.count(1), [1, 2, 1], [1, 2], 1),
    "categories": (lambda x: ["1", "1.0", "2"].index(str(x[0])), [1], [2], 2),
    "words": (lambda x: "ab".index(x[0]), ["a"], ["b"], 1),
    "booleans": (lambda x: x[0] is True, [True], [False], 1),
    "types": (lambda x: type(x[0]) is float, (1.0,), (1,), 1),
    "large integers": (lambda x: x[0] - 2**60, [2**60 + 1], [2**60], 1),
    "nested lists": (lambda x: len(x[0]), [[1, 2], [3]], [[1], [3]], 1),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NUMBERS)
def test_what_a_list_says_with_the_noise_of_the_claim_is_not_refuted_too_often(name):
    """200 audits of functions that lose exactly the claim; the control loses three times as much.

    More than MOST refuted have a probability below 1e-4.
    """
    number, x, x_prime, distance = NUMBERS[name]

    def count(loss):
        function = repeat(lambda x, rng: number(x) + rng.laplace(scale=distance / loss))
        return count_refutations(function, 1.0, Pair(x, x_prime))

    assert count(1.0) <= MOST
    assert count(3.0) > 0.9 * AUDITS


class Recorder:
    """A mechanism, or a function, that keeps the inputs of its calls."""

    def __init__(self):
        self.inputs = []

    def block(self, x, size, rng):
        self.inputs.append(x)
        return rng.random((size, 1))

    def one(self, x, rng):
        self.inputs.append(x)
        return rng.random()


KINDS = [
    # A list, what a mechanism of blocks gets, and the form of the probe's other calls.
    ([1, 2], np.array([1, 2]), np.ndarray),
    ([True, False], np.array([True, False]), np.ndarray),
    ((0.5, 2), np.array([0.5, 2.0]), tuple),
    ([2**60 + 1], np.array([2**60 + 1]), None),
    ([2**70 + 1], [2**70 + 1], None),
    ([2**60 + 1, 0.5], [2**60 + 1, 0.5], None),
    ([[1, 2], [3]], [[1, 2], [3]], None),
    (["a", 1, None], ["a", 1, None], None),
    (np.arange(3), np.arange(3), None),
]


@pytest.mark.parametrize(("x", "array", "other"), KINDS, ids=lambda value: str(value)[:20])
def test_each_kind_of_mechanism_gets_its_form(x, array, other):
    for function in (False, True):
        recorder, passed = Recorder(), x if function else array
        audit(repeat(recorder.one) if function else recorder.block, (x, "x'"), **FEW)
        inputs = [value for value in recorder.inputs if not isinstance(value, str)]
        others = [value for value in inputs if Pair(value, 0) != Pair(passed, 0)]
        assert len(inputs) > 2
        assert len(others) == (other is not None)
        assert all(type(value) is (np.ndarray if function else other) for value in others)


def test_a_list_is_not_repeated_by_a_product():
    def doubled(x, size, rng):
        return x * 2 + rng.laplace(size=(size, 1))

    assert audit(doubled, ([0], [1]), claim=1.0, **MANY).refuted
    with_floats = audit(doubled, ([0.0], [1.0]), claim=1.0, **MANY)
    assert "a list and an array give different answers here; the array was passed" in (
        with_floats.notes
    )
    arrays = audit(doubled, (np.array([0.0]), np.array([1.0])), claim=1.0, **MANY)
    assert arrays.counts == with_floats.counts
    assert not any("answers" in note for note in arrays.notes)


def test_whole_numbers_where_floats_are_needed_are_named():
    def filled(x, size, rng):
        outputs = np.tile(np.zeros_like(x), (size, 1))
        outputs[:] = x + rng.laplace(size=(size, 1))
        return outputs

    report = audit(filled, ([0], [1]), claim=1.0, **FEW)
    text = "an int64 array and an array give different answers here; the int64 array was passed"
    assert text in report.notes


@pytest.mark.parametrize(
    ("mechanism", "x", "texts"),
    [
        (repeat(with_method), [0.0], ["as a list, as in pair=", "asarray(x)"]),
        (repeat(with_method), (0,), ["as a tuple, as in pair="]),
        (lambda x, size, rng: np.add(x, 0.5, out=x.copy()) + rng.random((size, 1)), [0],
         ["as an int64 array of the numbers in pair=", "asarray(x, float)"]),
    ],
)  # fmt: skip
def test_an_error_that_a_list_causes_has_a_note(mechanism, x, texts):
    with pytest.raises((AttributeError, TypeError)) as caught:
        audit(mechanism, (x, type(x)([1])), claim=1.0, **FEW)
    (note,) = caught.value.__notes__
    assert all(text in note for text in texts)


@pytest.mark.parametrize("x", [[0.0], np.array([0.0])], ids=["list", "array"])
def test_an_error_of_both_forms_has_no_note(x):
    with pytest.raises(ZeroDivisionError) as caught:
        audit(repeat(lambda x, rng: 1 / 0), (x, [1.0]), claim=1.0, **FEW)
    assert not hasattr(caught.value, "__notes__")


def test_sound_functions_have_no_note_on_forms():
    for mechanism in (repeat(summed), lambda x, size, rng: x[0] + rng.laplace(size=size)):
        for inputs in (([0], [1]), ([0.0], [1.0]), ([True], [False]), ((0.5,), (0,))):
            report = audit(mechanism, inputs, claim=1.0, **FEW)
            assert report.refuted is False
            assert not any("answers" in note for note in report.notes)


def test_a_command_and_functions_with_their_own_randomness_are_not_called_in_another_form():
    forms = []

    def own(x):
        forms.append(type(x))
        return np.random.default_rng().random()

    audit(repeat(own), ([0], [1]), **FEW)
    assert set(forms) == {list}
    code = (
        "import sys,random\nfor _ in range(int(sys.argv[2])): print(sys.argv[1], random.random())"
    )
    tool = command([sys.executable, "-c", code, "{x}", "{size}"])
    report = audit(tool, ([1, True], [2, None]), claim=1.0, trials=500, rng=1)
    assert report.refuted
    assert any("[1, true]" in str(seen) for seen in report.inside)


EQUAL = [[1], [1.0], [True], (1,), [[1]], [1, None]]


def test_inputs_of_other_types_differ_for_functions_and_not_for_arrays():
    for n, x in enumerate(EQUAL):
        for other in EQUAL[n + 1 :]:
            assert audit(repeat(lambda x, rng: rng.random()), (x, other), **FEW).counts.n == 2000
    for mechanism in (Laplace(1.0), lambda x, size, rng: x + rng.laplace(size=(size, 1))):
        for other in EQUAL[1:4]:
            with pytest.raises(ValueError, match="different in at least one entry"):
                audit(mechanism, ([1], other), **FEW)


def test_large_whole_numbers_differ():
    assert pairs.distance(Pair([2**60 + 1], [2**60]), "l1") == 1.0
    assert pairs.distances(Pair([2**60 + 1, 3], [2**60]))["added_or_removed"] == 3
    counted = audit(repeat(lambda data, rng: data.count(1) + rng.laplace()), ([1, 1], [1]), **FEW)
    assert counted.counts.n == 2000


VALUES = [
    [1, 1.0, True, None, "nan", float("nan"), float("inf"), -0.0, 2**70],
    (1, (2.0, [3, ()]), []), [np.float64(1.0), np.int64(1), np.float32(0.1), np.bool_(True)],
    np.float16("nan"), np.uint8(3), np.str_("a"), (), 1, 1.0, True, None, np.arange(3), "a",
    float("-inf"), ["repr", "tuple"],
]  # fmt: skip


@pytest.mark.parametrize("x", VALUES, ids=str)
def test_json_brings_back_inputs_with_their_types(x):
    report = audit(repeat(lambda x, rng: rng.random()), (x, "other"), **FEW)
    again = Audit.from_json(report.to_json())
    assert again.pair == report.pair
    assert again.pair != Pair("nan", "other")


def test_code_and_run_files_keep_types(tmp_path):
    report = audit(Laplace(1.0), ([1, 2.5], (0, True)), **FEW)
    assert "dpcore.Pair([1, 2.5], (0, True))" in format_call(report)
    options = {"claim": 1.0, "checkpoint": tmp_path / "run", **FEW}
    audit(repeat(summed), ([1], [0]), **options)
    with pytest.raises(ValueError, match="as in the run file"):
        audit(repeat(summed), ([1.0], [0]), **options)


@pytest.mark.parametrize("step", [100, 2000])
def test_a_list_that_a_later_call_changes_is_refused(step):
    calls = []

    def growing(x, rng):
        calls.append(0)
        if len(calls) == step:
            x.append(1)
        return len(x) + rng.laplace()

    with pytest.raises(ValueError, match="changes its input x"):
        audit(repeat(growing), ([1, 2], [1]), claim=1.0, **FEW)


def cyclic():
    x = [1]
    x.append(x)
    return x


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: (n for n in range(3)), TypeError, "not an iterator"),
        (lambda: [[(n for n in range(3))]], TypeError, "not an iterator"),
        (lambda: io.StringIO("a"), TypeError, "not an iterator"),
        (socket.socket, TypeError, "not a socket"),
        (threading.Lock, TypeError, "not a lock"),
        (lambda: {"a": [threading.Condition()]}, TypeError, "not a Condition"),
        (cyclic, ValueError, "does not hold itself"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_inputs_that_not_every_call_can_read_are_refused_by_name(make, kind, text):
    for inputs, name in (((make(), [1]), "x"), (([1], make()), "x_prime")):
        with pytest.raises(kind, match=rf"^{name} must be .*{text}"):
            audit(repeat(lambda x, rng: rng.random()), inputs, **FEW)


def test_objects_with_a_strange_equality_are_handed_over():
    class Strange:
        def __eq__(self, other):
            raise RuntimeError("no")

        __hash__ = None

    shared = [1]
    for x in (Strange(), [Strange()], [shared, shared]):
        report = audit(repeat(lambda x, rng: rng.random()), (x, "other"), **FEW)
        assert report.pair.x is x


def test_a_native_noise_names_what_makes_two_integers_equal():
    for pair, words in (
        (([2**60 + 1], [2**60]), "entry as float64, got"),
        (([1], [1]), "entry, got"),
    ):
        with pytest.raises(ValueError, match=f"^pair must be different in at least one {words}"):
            audit(Laplace(1.0), pair, claim=1.0, trials=100, rng=1)
