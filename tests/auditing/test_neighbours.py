"""Which inputs a claim speaks of: pairs that are too far apart, equal, or out of nowhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpcore
from dpcore import Audit, Laplace, Pair, audit, audit_table, pairs
from dpcore.pairs import L1, L2, AddRemove, Box, Linf, Replace
from dpcore.published import ADePT, LaplaceMechanism
from dpcore.report.encoding import format_call, make_script
from dpcore.sensitivity import refute

FEW = {"trials": 1000, "rng": 1}


def noisy(x, size, rng):
    """Loses the L1 distance of its inputs, exactly."""
    return x + rng.laplace(size=(size, len(x)))


def length(x, size, rng):
    return len(x) + rng.laplace(size=(size, 1))


# What the issue is about: correct noise, refuted on inputs that its claim does not speak of.


@pytest.mark.parametrize(("dim", "certified"), [(2, 1.8), (8, 4.0)])
def test_correct_noise_is_no_longer_refuted_on_inputs_that_are_no_neighbours(dim, certified):
    far, near = pairs.zeros_ones(dim), Pair(np.zeros(dim), np.eye(dim)[0])
    options = {"claim": 1.0, "trials": 10**5, "rng": 77}
    # Without a relation the two inputs are all that a claim can speak of: it is refuted there.
    found = audit(noisy, far, **options)
    assert found.epsilon_lower > certified
    assert found.refuted
    text = rf"^pair must be at L1 distance at most 1.0 \(neighbour=L1.*\), got {dim}.0$"
    with pytest.raises(ValueError, match=text):
        audit(noisy, far, neighbour=L1(1.0), **options)
    assert audit(noisy, near, neighbour=L1(1.0), **{**options, "claim": 1.05}).refuted is False


# Every relation: what it calls neighbours, and what it refuses with both distances.

SETS = (["a", "b", "c"], ["a", "x", "c"], ["b", "x", "c"], ["a", "b", "q", "c"])


@pytest.mark.parametrize(
    ("relation", "near", "far", "text"),
    [
        (L1(1.0), ([0, 0], [0.5, 0.5]), ([0, 0], [1, 1]), "L1 distance at most 1.0 .*, got 2.0"),
        (L1(2.0), ([0, 0], [1, 1]), ([0, 0], [1, 2]), "L1 distance at most 2.0 .*, got 3.0"),
        (L2(5.0), ([0, 0], [3, 4]), ([0, 0], [3, 5]), "L2 distance at most 5.0 .*, got 5.83"),
        (Linf(1.0), ([0, 0], [1, -1]), ([0, 0], [1, -2]), "Linf distance at most 1.0 .*, got 2.0"),
        (L1(1.0), ([0.0], [1.0 + 1e-12]), ([0.0], [1.0 + 1e-6]), r"at most 1.0 .*, got 1.000001"),
        (L1(1.0), ([0.0], [1.0]), ([0.0], [math.nan]), "at most 1.0 .*, got nan"),
        (L1(1.0), ([0.0], [1.0]), ([0.0], [math.inf]), "at most 1.0 .*, got inf"),
        (Replace(), ([1, 2, 3], [1, 9, 3]), ([1, 2, 3], [9, 9, 3]), "record is replaced .*, got 2"),
        (Replace(), SETS[:2], SETS[::2], "at most 1 record is replaced .*, got 2"),
        (Replace(), ("a b", "a c"), ("a b", "b c"), "at most 1 record is replaced .*, got 2"),
        (Replace(), SETS[:2], SETS[::3], r"two data sets of one size, .* got \(3, 4\)"),
        (AddRemove(), SETS[::3], SETS[:2], "has at most 1 record more, .*, got 2"),
        (AddRemove(), ([1, 2], [1, 2, 3]), ([1, 2], [1]*3), "has at most 1 record more, .*, got 3"),
        (AddRemove(), ("a b", "a"), ("a b", "b a"), "has at most 1 record more, .*, got 2"),
        (AddRemove(), ("ab", "ab x"), ("", "x " * 400), "has at most 1 record more, .*, got inf")
    ]
)  # fmt: skip
def test_a_farther_pair_is_refused(relation, near, far, text):
    found = audit(length, near, neighbour=relation, claim=9.0, **FEW)
    assert found.neighbour == repr(relation)
    with pytest.raises(ValueError, match=rf"^pair must be .*{text}"):
        audit(length, far, neighbour=relation, claim=9.0, **FEW)


@pytest.mark.parametrize(
    ("relation", "pair", "text"),
    [
        (L1(1.0), ("a", "b"), "x must be an array of real numbers"),
        (L1(1.0), ([0.0], {1}), "x_prime must be an array of real numbers"),
        (Replace(), ({1}, {2}), "pair must be two data sets: lists, arrays or texts"),
        (AddRemove(), ([0.0], {1: 2}), "pair must be two data sets"),
        (L1, ([0.0], [1.0]), "neighbour must be a neighbour relation"),
        ("l3", ([0.0], [1.0]), "neighbour must be a neighbour relation"),
        (1.0, ([0.0], [1.0]), "neighbour must be a neighbour relation"),
    ],
)
def test_a_relation_of_other_inputs_is_a_type_error(relation, pair, text):
    with pytest.raises(TypeError, match=f"^{text}"):
        audit(length, pair, neighbour=relation, claim=1.0, **FEW)


def test_inputs_of_two_sizes_have_no_distance():
    with pytest.raises(ValueError, match=r"^pair must be two arrays of equal shape"):
        audit(length, ([0.0], [0.0, 1.0]), neighbour=L1(1.0), claim=1.0, **FEW)


class Twins:
    """A relation of one's own: inputs of one parity."""

    def holds(self, pair, domain):
        assert domain.contains(pair.x)
        return (pair.x.sum() - pair.x_prime.sum()) % 2 == 0

    def starts(self, domain, rng):
        raise NotImplementedError

    def move(self, pair, domain, rng):
        raise NotImplementedError


def test_a_relation_of_ones_own_is_asked_whether_it_holds():
    found = audit(noisy, ([0.0], [2.0]), neighbour=Twins(), claim=3.0, **FEW)
    assert found.neighbour == "Twins"
    with pytest.raises(ValueError, match=r"^pair must be two neighbours by Twins, got .*'l1': 1.0"):
        audit(noisy, ([0.0], [1.0]), neighbour=Twins(), claim=3.0, **FEW)
    assert "neighbour=neighbour" in format_call(found)
    assert "neighbour = ...  # Twins\n" in make_script(found)


# Every pair that an audit could choose is checked.


def test_the_pair_of_the_mechanism_is_checked():
    assert audit(LaplaceMechanism(1.0), neighbour=L1(1.0), **FEW).claim == 1.0
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 0.5 .* got 1.0$"):
        audit(LaplaceMechanism(1.0), neighbour=L1(0.5), **FEW)


def test_every_one_of_several_pairs_is_checked():
    near, far = Pair([0.0, 0.0], [0.0, 1.0]), pairs.zeros_ones(2)
    options = {"neighbour": L1(1.0), "claim": 2.0, **FEW}
    assert audit(noisy, [near, Pair([0.0, 0.0], [1.0, 0.0])], **options).neighbour
    with pytest.raises(ValueError, match=r"at most 1.0 .*, got 2.0$"):
        audit(noisy, [near, far], **options)
    assert audit(noisy, pairs.patterns(3, "one"), **options).refuted is False
    with pytest.raises(ValueError, match=r"at most 1.0 .*, got 3.0$"):
        audit(noisy, pairs.patterns(3, "all"), **options)


def test_every_pair_that_a_search_proposes_is_checked():
    def plan(relation):
        return pairs.search(Box(-3, 3, 3), relation, rounds=2, budget=10**4, candidates=8)

    options = {"claim": 2.0, "trials": 1000, "rng": 1}
    # The relation of a search is what its pairs were checked against.
    assert audit(noisy, plan(L1(1.0)), **options).neighbour == "L1(radius=1.0)"
    assert audit(noisy, plan(L1(1.0)), neighbour=Linf(1.0), **options).neighbour == repr(Linf(1.0))
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0 .*, got "):
        audit(noisy, plan(Linf(1.0)), neighbour=L1(1.0), **options)


# What neighbours, a metric claim and a mechanism's own claim have to do with one another.


def test_a_metric_claim_and_one_about_neighbours_exclude_each_other():
    far = Pair([0.0], [2.0], distance=2.0)
    assert audit(noisy, far, claim=1.1, trials=10**5, rng=1).refuted is False
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0 .* got 2.0$"):
        audit(noisy, far, neighbour=L1(1.0), claim=1.1, **FEW)
    # Within the relation, too, 2.0 would double a claim that was not made per unit of distance.
    with pytest.raises(ValueError, match=r"^distance of the pair must be 1 where neighbour= is"):
        audit(noisy, far, neighbour=L1(2.0), claim=1.1, **FEW)


@pytest.mark.parametrize(
    ("name", "relation"),
    [("l1", L1(1.0)), (("l1", 2.0), L1(2.0)), ("l2", L2(1.0)), (("linf", 3), Linf(3.0))],
)
def test_the_name_of_a_norm_stands_for_its_ball(name, relation):
    by_name, report = (
        audit(noisy, ([0.0], [1.0]), neighbour=one, claim=1.1, **FEW) for one in (name, relation)
    )
    assert by_name == report
    assert by_name.neighbour == report.neighbour != ""
    table = [[0.5, 0.5], [0.4, 0.6]]
    assert audit_table(table, neighbour=name) == audit_table(table, neighbour=relation)
    by_name, found = (
        refute(np.array, 9.0, "l1", Box(0, 9, 2), neighbour=one, trials=50, rng=1)
        for one in (name, relation)
    )
    assert by_name == found
    for wrong in ("L1", "l3", ("l1",), ["l1", 2.0]):
        with pytest.raises(TypeError, match=r"^neighbour must be a neighbour relation with holds"):
            audit(noisy, ([0.0], [1.0]), neighbour=wrong, claim=1.1, **FEW)


def test_a_wider_relation_does_not_widen_a_mechanisms_own_claim():
    pair, wide = ([0.0], [2.0]), L1(3.0)
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0, got 2.0 "):
        audit(LaplaceMechanism(1.0), pair, neighbour=wide, **FEW)
    assert audit(LaplaceMechanism(1.0), pair, neighbour=wide, claim=3.0, **FEW).claim == 3.0
    # What clips makes neighbours of any two inputs, and is still held to a narrower relation.
    far = ([0.0, 0.0], [9.0, 0.0])
    assert audit(ADePT(1.0), far, **FEW).neighbour == ""
    with pytest.raises(ValueError, match=r"got 9.0$"):
        audit(ADePT(1.0), far, neighbour=L2(1.0), **FEW)


# A pair, and one that differs.


def test_a_callable_without_a_pair_is_an_error_that_shows_how_to_give_one():
    text = r"^pair must be given for .*, as in audit\(mechanism, \(\[0.0\], \[1.0\]\)\), got None$"
    with pytest.raises(ValueError, match=text):
        audit(noisy, claim=1.0, **FEW)
    with pytest.raises(ValueError, match=text):
        audit(dpcore.repeat(lambda x: float(x[0])), claim=1.0, **FEW)

    class Mine:
        def default_pair(self):
            return Pair([0.0], [0.5])

        __call__ = staticmethod(noisy)

    class Louder(Laplace):
        __call__ = staticmethod(noisy)

    assert audit(Mine(), claim=1.0, **FEW).pair == Pair([0.0], [0.5])
    assert audit(Laplace(1.0), claim=1.0, **FEW).pair == pairs.zeros_ones(1)
    assert audit(Louder(1.0), claim=1.0, **FEW).pair == pairs.zeros_ones(1)


EQUAL = [
    ([0.0], [0]),
    (np.array([1.0, math.nan]), np.array([1.0, math.nan])),
    (np.array([["a", 2]], dtype=object), np.array([["a", 2]], dtype=object)),
    ("text", "text"),
    (3, 3.0),
    (("a", np.zeros(2)), ("a", np.zeros(2))),
    ({"a": [1.0], "b": math.nan}, {"a": [1.0], "b": math.nan}),
    ({1, 2}, {2, 1}),
]
DIFFERENT = [
    ([0.0], [0.0, 0.0]),
    (np.array([1.0, math.nan]), np.array([math.nan, 1.0])),
    (np.array([["a", 2]], dtype=object), np.array([["a", 3]], dtype=object)),
    ("text", "text "),
    (3, 3.5),
    (("a", np.zeros(2)), ("a", np.ones(2))),
    ({"a": [1.0], "b": math.nan}, {"a": [1.0], "c": math.nan}),
    ({1, 2}, [1, 2]),
]


def blind(x, size, rng):
    return rng.laplace(size=(size, 1))


@pytest.mark.parametrize("pair", EQUAL, ids=str)
def test_equal_inputs_are_an_error_unless_they_are_asked_for(pair):
    for mechanism in (blind, Laplace(1.0)) if isinstance(pair[0], list) else (blind,):
        text = r"^pair must be different in at least one entry, got .*\(null=True allows two equal"
        with pytest.raises(ValueError, match=text):
            audit(mechanism, pair, claim=1.0, **FEW)
        with pytest.raises(ValueError, match=text):
            audit(mechanism, [Pair([0.0], [1.0]), Pair(*pair)], claim=1.0, **FEW)
        found = audit(mechanism, pair, null=True, claim=1.0, **FEW)
        assert found.refuted is False
        assert "equal: whatever is found is a false alarm" in str(found)
        assert "null=True" in format_call(found)


@pytest.mark.parametrize("pair", DIFFERENT, ids=str)
def test_inputs_that_differ_pass(pair):
    found = audit(blind, pair, claim=1.0, **FEW)
    assert "equal:" not in str(found)
    assert "null=True" not in format_call(found)


def test_equal_inputs_are_neighbours_by_any_relation():
    found = audit(noisy, ([0.0], [0.0]), null=True, neighbour=L1(1.0), claim=1.0, **FEW)
    assert (
        eval(format_call(found, "noisy"), {"dpcore": dpcore, __name__: __import__(__name__)})
        == found
    )


# The record, and what a reader sees of it.


def test_the_relation_is_part_of_the_record():
    found = audit(Laplace(1.0), neighbour=L1(1.0), claim=1.0, **FEW)
    bare = audit(Laplace(1.0), claim=1.0, **FEW)
    assert (found.neighbour, bare.neighbour, found.counts) == ("L1(radius=1.0)", "", bare.counts)
    assert found != bare
    assert Audit.from_json(found.to_json()) == found
    assert eval(format_call(found)) == found
    later = audit(Laplace(1.0), neighbour=L1(1.0), claim=1.0, start=1000, **FEW)
    assert (found + later).neighbour == found.neighbour
    with pytest.raises(ValueError, match=r"^neighbour of the second audit must be"):
        _ = found + audit(Laplace(1.0), claim=1.0, start=1000, **FEW)


def test_records_written_before_are_read():
    record = audit(Laplace(1.0), claim=1.0, **FEW).to_dict()
    del record["neighbour"]
    del record["derived"]["distances"], record["derived"]["neighbours"]
    assert Audit.from_dict(record).neighbour == ""


@pytest.mark.parametrize(
    ("pair", "shown"),
    [
        (([0, 0], [3, 4]), "L1 7, L2 5, Linf 4, 2 of 2 entries changed"),
        ((np.zeros(1), np.ones(1)), "L1 1, L2 1, Linf 1, 1 of 1 entry changed"),
        (
            (np.zeros((3, 2)), np.eye(3, 2)),
            "L1 2, L2 1.41421, Linf 1, 2 of 6 entries changed, 2 of 3 records replaced",
        ),
        (([1, 2, 3], [1, 3]), "1 record added or removed (3 on x, 2 on x')"),
        ((["a", "b"], ["a", "c"]), "1 of 2 records replaced, or 2 added or removed"),
        (("a good film", "a film"), "1 word added or removed (3 on x, 2 on x')"),
        (("a good film", "a bad film"), "1 of 3 words replaced, or 2 added or removed"),
        (("a film", "a  film"), "1 character added or removed (6 on x, 7 on x')"),
        (("", "a " * 300), "more than 200 words added or removed (0 on x, 300 on x')"),
        ((b"ab", b"ac"), "1 of 2 bytes replaced, or 2 added or removed"),
        (({"a": 1}, {"a": 2}), None),
        (([1.0], "a"), None),
    ],
)
def test_the_report_has_a_row_of_distances_where_there_are_any(pair, shown):
    found = audit(blind, pair, claim=1.0, **FEW)
    lines = [line for line in str(found).splitlines() if line.startswith("  distances ")]
    assert lines == ([] if shown is None else [f"  distances    {shown}"])
    derived = found.to_dict()["derived"]["distances"]
    assert (derived is None) == (shown is None)


def test_without_a_relation_a_report_says_what_it_speaks_of():
    words = "not given: the claim is read as one about these two inputs"
    bare = audit(noisy, ([0.0], [1.0]), claim=1.5, **FEW)
    for text in (str(bare), bare.to_html(), bare.to_json(), bare._repr_html_()):
        assert words in text
    given_one = audit(noisy, ([0.0], [1.0]), claim=1.5, neighbour=L1(1.0), **FEW)
    for text in (str(given_one), given_one.to_html(), given_one.to_json()):
        assert words not in text
        assert "distances" in text
        assert "L1(radius=1.0), which holds for this pair" in text
    metric = audit(noisy, Pair([0.0], [2.0], distance=2.0), claim=1.5, **FEW)
    assert f"{words}, at distance 2\n" in str(metric)
    own = str(audit(LaplaceMechanism(1.0), **FEW))
    assert f"{words} (the mechanism speaks of L1 distance at most 1)\n" in own
    # No claim, nothing that it could speak of.
    assert "\n  neighbours " not in str(audit(noisy, ([0.0], [1.0]), **FEW))


def test_a_relation_that_python_can_write_is_written():
    found = audit(length, ("a b", "a"), neighbour=AddRemove(("a", "b")), claim=9.0, **FEW)
    assert "neighbour=dpcore.pairs.AddRemove(values=('a', 'b'))" in format_call(found)
    odd = audit(length, ("a b", "a"), neighbour=AddRemove([L1(1.0)]), claim=9.0, **FEW)
    assert "neighbour=neighbour" in format_call(odd)
