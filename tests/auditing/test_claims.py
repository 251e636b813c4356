"""Claims, pairs and distances: what an audit tests, and when it refuses to."""

from __future__ import annotations

import dataclasses
import functools
import io
import math

import numpy as np
import pytest
import shared_plugin
from shared_audits import noisy
from shared_messages import check_messages

import dpcore
from dpcore import Audit, Gaussian, Laplace, Pair, audit, audit_table, pairs
from dpcore.attacks import MajorityVote
from dpcore.bounds import clopper_pearson
from dpcore.pairs import L1, L2, AddRemove, Box, Linf, Replace, zeros_ones
from dpcore.pairs.differences import fingerprint_input, inputs_equal
from dpcore.published import SYSTEMS, ADePT, ADePTReference, HalfNoise, LaplaceMechanism
from dpcore.results.audit_json import format_call, make_script
from dpcore.sensitivity import refute

FEW = {"trials": 1000, "rng": 1}


def length(x, size, rng):
    return len(x) + rng.laplace(size=(size, 1))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_published_system_brings_claim_and_pair(system):
    mechanism = system(0.7)
    report = audit(mechanism, trials=1000, rng=1)
    assert report.claim == report.own_claim == 0.7
    assert report.pair == mechanism.default_pair()
    assert "epsilon <= 0.7\n" in str(report) + "\n"
    assert "own:" not in str(report)


def test_an_explicit_claim_wins_and_both_are_shown():
    # The vote sees 1.66 of the loss of 2: it cannot refute a claim of 2, not even by chance.
    report = audit(HalfNoise(1.0), trials=10**5, claim=2.0, rng=1, attack=MajorityVote())
    assert (report.claim, report.own_claim) == (2.0, 1.0)
    assert report.verdict == "not refuted by this attack"
    assert "epsilon <= 2 (the mechanism's own: 1)" in str(report)
    assert audit(HalfNoise(1.0), trials=10**5, rng=1).verdict == "refuted"
    zero = audit(dpcore.RandomBits(), trials=1000, claim=0, rng=1, attack=MajorityVote())
    assert (zero.claim, zero.verdict) == (0.0, "not refuted by this attack")


@pytest.mark.parametrize("mechanism", [Laplace(0.01), lambda x, size, rng: rng.normal(size=size)])
def test_no_claim_is_never_a_pass(mechanism):
    report = audit(mechanism, ([0.0], [1.0]), trials=1000, rng=1)
    assert (report.claim, report.refuted, report.verdict) == (None, None, "no claim given")
    assert "none given" in str(report)


def test_a_pair_beyond_the_sensitivity_needs_an_explicit_claim():
    """What is refused without one is in the table of messages."""
    assert audit(LaplaceMechanism(1.0), zeros_ones(128), trials=1000, claim=1.0).claim == 1.0
    for mechanism in (LaplaceMechanism(1.0, 128.0), ADePTReference(1.0)):
        assert audit(mechanism, zeros_ones(128), trials=1000, attack=MajorityVote()).claim == 1.0
    # Clipping makes any two inputs neighbours, and a rounding is let pass.
    assert audit(ADePT(1.0), ([0.0, 0.0], [1e6, 1e6]), trials=1000).claim == 1.0
    assert audit(LaplaceMechanism(1.0), ([0.0], [1.0 + 1e-12]), trials=100).claim == 1.0


def test_a_callable_takes_any_two_objects():
    attack = lambda a, b, pair: lambda o: o[:, 0] > 3.5  # noqa: E731
    report = audit(length, ("short", {"a", "b"}), trials=1000, attack=attack, claim=1.0)
    assert report.verdict == "refuted"
    assert "x = 'short'" in str(report)
    # The default attack needs outputs alone, the vote thresholds between two vectors.
    assert audit(length, ("short", "longer"), trials=1000, rng=1, claim=1.0).epsilon_hat > 0.0


# Metric claims: (epsilon D, delta) at distance D.


def test_without_delta_figures_are_per_unit_of_distance():
    mechanism, far = Laplace(1.0), Pair([0.0], [3.0], distance=3.0)
    arguments = {"trials": 10**5, "claim": 1.0, "rng": 4, "attack": MajorityVote()}
    metric = audit(mechanism, far, **arguments)
    plain = audit(mechanism, Pair([0.0], [3.0]), **arguments)
    assert (metric.counts, metric.epsilon_lower) == (plain.counts, plain.epsilon_lower / 3.0)
    assert (metric.epsilon_hat, metric.exact) == (plain.epsilon_hat / 3.0, plain.exact / 3.0)
    assert (plain.verdict, metric.verdict) == ("refuted", "not refuted by this attack")
    assert "per unit of distance" in str(metric)
    assert "per unit of distance" not in str(plain)


def test_with_delta_a_bound_is_never_divided():
    """A Gaussian with mu = 5 and delta 1e-5: dividing would refute a true claim."""
    delta = 1e-5
    far = Pair([0.0], [5.0], distance=5.0)
    attack = lambda a, b, pair: lambda o: o[:, 0] > 4.0  # noqa: E731
    arguments = {"trials": 10**6, "delta": delta, "attack": attack, "rng": 5}
    report = audit(Gaussian(1.0), far, claim=1.0, **arguments)
    whole = clopper_pearson(report.bound_counts, delta, report.confidence)
    assert report.epsilon_lower == whole > 5.0
    # Metric: the claim is (5 x 1, delta) at this distance.
    assert report.refuted is True
    assert audit(Gaussian(1.0), far, claim=whole / 5 * 1.001, **arguments).refuted is False
    assert audit(Gaussian(1.0), far, claim=whole / 5 * 0.999, **arguments).refuted is True
    assert "per unit of distance" not in str(report)
    assert "epsilon <= 1, delta = 1e-05 (metric: epsilon <= 5 at distance 5)" in str(report)


def test_the_note_compares_like_with_like():
    """With delta the closed form is of the whole pair, the claim per unit of distance."""
    pair = Pair([0.0], [1.0], distance=2.0)
    arguments = {"delta": 1e-6, "rng": 6, "attack": MajorityVote()}
    report = audit(Laplace(1.0), pair, trials=1000, claim=0.5, **arguments)
    assert 0.5 < report.exact < 1.0
    assert report.refuted is False
    assert "with any number of trials" in str(report)
    closer = audit(Laplace(1.0), pair, trials=100, claim=0.4, **arguments)
    assert "with any number of trials" not in str(closer)


# Inputs that a call would use up or change.


def blind(x, size, rng):
    return rng.laplace(size=(size, 1))


@pytest.mark.parametrize("make", [
    lambda: iter([1.0]), lambda: (one for one in [1.0]), lambda: io.StringIO("1"),
    lambda: [iter([1.0])], lambda: {"a": map(float, [1])},
])  # fmt: skip
@pytest.mark.parametrize("name", ["x", "x_prime"])
def test_an_iterator_as_an_input_is_refused(make, name):
    pair = Pair(make(), [1.0]) if name == "x" else Pair([1.0], make())
    for given in (pair, [pair, Pair(0, 1)]):
        text = f"^{name} must be an input that every call can read, not"
        with pytest.raises(TypeError, match=text):
            audit(blind, given, claim=1.0, **FEW)


@dataclasses.dataclass
class Data:
    rows: list


def pop_and_draw(x, size, rng):
    x.pop()
    return rng.random(size)


CHANGES = [
    (lambda: [["a"], "b"] * 500, pop_and_draw),
    (lambda: Data([1.0]), lambda x, size, rng: x.rows.append(1.0) or rng.random(size)),
    (lambda: {"a": [1.0]}, lambda x, size, rng: x["a"].clear() or rng.random(size)),
    (lambda: [np.zeros(3), "a"], lambda x, size, rng: x[0].fill(1.0) or rng.random(size)),
    (lambda: {1, 2}, lambda x, size, rng: x.clear() or rng.random(size)),
    (lambda: bytearray(b"ab"), lambda x, size, rng: x.reverse() or rng.random(size)),
    # What goes wrong later is the change's doing.
    (lambda: ["a"], pop_and_draw),
]


@pytest.mark.parametrize(("make", "mechanism"), CHANGES)
@pytest.mark.parametrize("shown", ["x", "x'"])
def test_a_mechanism_that_changes_its_input_is_named(make, mechanism, shown):
    pair = (make(), None) if shown == "x" else (None, make())

    def changing(given, size, rng):
        return rng.random(size) if given is None else mechanism(given, size, rng)

    with pytest.raises(ValueError, match=f"changing changes its input {shown}; copy it first"):
        dpcore.audit(changing, pair, trials=100, claim=1.0, rng=1)


class Cached:
    """An object that keeps what it has computed: not a change of what it is."""

    @functools.cached_property
    def mean(self):
        return 1.0


@pytest.mark.parametrize(
    "x", [Cached(), [np.nan, "a"], {"a": np.array([np.nan, None])}, lambda: 1, (Cached(), [1.0])]
)
def test_inputs_that_do_not_change_are_no_error(x):
    def reading(given, size, rng):
        getattr(given, "mean", None)
        return rng.random(size)

    assert dpcore.audit(reading, (x, None), trials=100, claim=1.0, rng=1).verdict


def test_what_is_large_is_not_read():
    large = [0] * 2**20 + [[1]]
    before = fingerprint_input(large)
    large[-1].append(2)
    assert fingerprint_input(large) == before
    # The control: a shorter one is.
    assert fingerprint_input([*large[:10], [1]]) != fingerprint_input([*large[:10], [2]])


# Which inputs a claim speaks of: pairs that are too far apart, equal, or out of nowhere.


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

        (L2(5.0), ([0, 0], [3, 4]), ([0, 0], [3, 5]), "L2 distance at most 5.0 .*, got 5.83"),
        (Linf(1.0), ([0, 0], [1, -1]), ([0, 0], [1, -2]), "Linf distance at most 1.0 .*, got 2.0"),
        (L1(1.0), ([0.0], [1.0 + 1e-12]), ([0.0], [1.0 + 1e-6]), r"at most 1.0 .*, got 1.000001"),
        (L1(1.0), ([0.0], [1.0]), ([0.0], [math.nan]), "at most 1.0 .*, got nan"),

        (Replace(), SETS[:2], SETS[::2], "at most 1 record is replaced .*, got 2"),
        (Replace(), ("a b", "a c"), ("a b", "b c"), "at most 1 record is replaced .*, got 2"),
        (Replace(), SETS[:2], SETS[::3], r"two data sets of one size, .* got \(3, 4\)"),
        (AddRemove(), SETS[::3], SETS[:2], "has at most 1 record more, .*, got 2"),

        (AddRemove(), ("a b", "a"), ("a b", "b a"), "has at most 1 record more, .*, got 2"),
        (AddRemove(), ("ab", "ab x"), ("", "x " * 400), "has at most 1 record more, .*, got inf")
    ]
)  # fmt: skip
def test_a_farther_pair_is_refused(relation, near, far, text):
    assert audit(length, near, neighbour=relation, claim=9.0, **FEW).neighbour == repr(relation)
    with pytest.raises(ValueError, match=rf"^pair must be .*{text}"):
        audit(length, far, neighbour=relation, claim=9.0, **FEW)


NEAR = Pair([0.0, 0.0], [0.0, 1.0])


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
    assert "neighbour=neighbour" in format_call(found)
    assert "neighbour = ...  # Twins\n" in make_script(found)


# Every pair that an audit could choose is checked.


def test_the_pair_of_the_mechanism_and_every_one_of_several_are_checked():
    assert audit(LaplaceMechanism(1.0), neighbour=L1(1.0), **FEW).claim == 1.0
    options = {"neighbour": L1(1.0), "claim": 2.0, **FEW}
    assert audit(noisy, [NEAR, Pair([0.0, 0.0], [1.0, 0.0])], **options).neighbour
    assert audit(noisy, pairs.patterns(3, "one"), **options).refuted is False


def plan_search(relation):
    return pairs.search(Box(-3, 3, 3), relation, rounds=2, budget=10**4, candidates=8)


def test_every_pair_that_a_search_proposes_is_checked():
    # The relation of a search is what its pairs were checked against.
    for relation, given in ((L1(1.0), {}), (Linf(1.0), {"neighbour": Linf(1.0)})):
        found = audit(noisy, plan_search(L1(1.0)), claim=2.0, **given, **FEW)
        assert found.neighbour == repr(relation)


# What neighbours, a metric claim and a mechanism's own claim have to do with one another.


FAR = Pair([0.0], [2.0], distance=2.0)


def test_a_metric_claim_and_one_about_neighbours_exclude_each_other():
    """With a relation it is refused: see the table of messages."""
    assert audit(noisy, FAR, claim=1.1, trials=10**5, rng=1).refuted is False


@pytest.mark.parametrize(
    ("name", "relation"),
    [("l1", L1(1.0)), (("l1", 2.0), L1(2.0)), ("l2", L2(1.0)), (("linf", 3), Linf(3.0))],
)
def test_the_name_of_a_norm_stands_for_its_ball(name, relation):
    both, options = (name, relation), {"claim": 1.1, **FEW}
    by_name, report = (audit(noisy, ([0.0], [1.0]), neighbour=one, **options) for one in both)
    assert by_name == report
    assert by_name.neighbour == report.neighbour != ""
    table = [[0.5, 0.5], [0.4, 0.6]]
    assert audit_table(table, neighbour=name) == audit_table(table, neighbour=relation)
    searched = np.array, 9.0, "l1", Box(0, 9, 2)
    by_name, found = (refute(*searched, neighbour=one, trials=50, rng=1) for one in both)
    assert by_name == found


NINE = ([0.0, 0.0], [9.0, 0.0])


def test_a_wider_relation_does_not_widen_a_mechanisms_own_claim():
    found = audit(LaplaceMechanism(1.0), ([0.0], [2.0]), neighbour=L1(3.0), claim=3.0, **FEW)
    assert found.claim == 3.0
    # What clips makes neighbours of any two inputs, and is still held to a narrower relation.
    assert audit(ADePT(1.0), NINE, **FEW).neighbour == ""


# A pair, and one that differs.


def test_a_noise_and_its_subclass_have_the_same_pair():
    class Louder(Laplace):
        __call__ = staticmethod(noisy)

    for mechanism in (Laplace(1.0), Louder(1.0)):
        assert audit(mechanism, claim=1.0, **FEW).pair == zeros_ones(1)


EQUAL = [
    ([0.0], [0]),
    (np.array([1.0, math.nan]), np.array([1.0, math.nan])),
    (np.array([["a", 2]], dtype=object), np.array([["a", 2]], dtype=object)),
    ("text", "text"),
    (("a", np.zeros(2)), ("a", np.zeros(2))),
    ({"a": [1.0], "b": math.nan}, {"a": [1.0], "b": math.nan}),
    ({1, 2}, {2, 1}),
]
DIFFERENT = [
    ([0.0], [0.0, 0.0]),
    (np.array([1.0, math.nan]), np.array([math.nan, 1.0])),
    (np.array([["a", 2]], dtype=object), np.array([["a", 3]], dtype=object)),
    ("text", "text "),
    (3, 3.0),
    (1, True),
    (("a", np.zeros(2)), ("a", np.ones(2))),
    ({"a": [1.0], "b": math.nan}, {"a": [1.0], "c": math.nan}),
    ({1, 2}, [1, 2]),
]


@pytest.mark.parametrize("pair", EQUAL, ids=str)
def test_equal_inputs_are_an_error_unless_they_are_asked_for(pair):
    for mechanism in (blind, Laplace(1.0)) if isinstance(pair[0], list) else (blind,):
        # A list and its twin of another kind of number are equal once a noise has added to them.
        as_numbers = " as float64" * (not inputs_equal(*pair))
        text = (
            rf"^pair must be different in at least one entry{as_numbers}, got .*\(null=True allows"
        )
        for given in (pair, [Pair([0.0], [1.0]), Pair(*pair)]):
            with pytest.raises(ValueError, match=text):
                audit(mechanism, given, claim=1.0, **FEW)
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
    names = {"dpcore": dpcore, noisy.__module__: __import__(noisy.__module__)}
    assert eval(format_call(found, "noisy"), names) == found


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


@pytest.mark.parametrize(("pair", "shown"), [
    (([0, 0], [3, 4]), "L1 7, L2 5, Linf 4, 2 of 2 entries changed"),
    ((np.zeros(1), np.ones(1)), "L1 1, L2 1, Linf 1, 1 of 1 entry changed"),
    ((np.zeros((3, 2)), np.eye(3, 2)),
     "L1 2, L2 1.41421, Linf 1, 2 of 6 entries changed, 2 of 3 records replaced"),
    (([1, 2, 3], [1, 3]), "1 record added or removed (3 on x, 2 on x')"),
    ((["a", "b"], ["a", "c"]), "1 of 2 records replaced, or 2 added or removed"),
    (("a good film", "a film"), "1 word added or removed (3 on x, 2 on x')"),
    (("a good film", "a bad film"), "1 of 3 words replaced, or 2 added or removed"),
    (("a film", "a  film"), "1 character added or removed (6 on x, 7 on x')"),
    (("", "a " * 300), "more than 200 words added or removed (0 on x, 300 on x')"),
    ((b"ab", b"ac"), "1 of 2 bytes replaced, or 2 added or removed"),
    (({"a": 1}, {"a": 2}), None),
    (([1.0], "a"), None),
])  # fmt: skip
def test_the_report_has_a_row_of_distances_where_there_are_any(pair, shown):
    found = audit(blind, pair, claim=1.0, **FEW)
    lines = [line for line in str(found).splitlines() if line.startswith("  distances ")]
    assert lines == ([] if shown is None else [f"  distances    {shown}"])
    assert (found.to_dict()["derived"]["distances"] is None) == (shown is None)


def test_without_a_relation_a_report_says_what_it_speaks_of():
    words = "not given: the claim is tested for these two inputs only"
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
    assert f"{words} (the mechanism's claim covers L1 distance at most 1)\n" in own
    # No claim, nothing that it could speak of.
    assert "\n  neighbours " not in str(audit(noisy, ([0.0], [1.0]), **FEW))


def test_a_relation_that_python_can_write_is_written():
    found = audit(length, ("a b", "a"), neighbour=AddRemove(("a", "b")), claim=9.0, **FEW)
    assert "neighbour=dpcore.pairs.AddRemove(values=('a', 'b'))" in format_call(found)
    odd = audit(length, ("a b", "a"), neighbour=AddRemove([L1(1.0)]), claim=9.0, **FEW)
    assert "neighbour=neighbour" in format_call(odd)


# Wrong calls.


def refused(mechanism, *pair, **options):
    return lambda: audit(mechanism, *pair, **FEW | options)


def refused_length(relation, *pair):
    return refused(length, pair, neighbour=relation, claim=1.0)


def refused_noise(pair, relation, claim=1.1):
    return refused(noisy, pair, neighbour=relation, claim=claim)


PAIR = ([0.0], [1.0])
LAPLACE, ONE = LaplaceMechanism(1.0), "at L1 distance at most 1.0"
BY_L1 = "(neighbour=L1(radius=1.0)), got"
OTHER = "a neighbour relation with holds"
HOW = "as in audit(mechanism, ([0.0], [1.0])), got None"

VALUE_ERRORS = [
    (refused(LAPLACE, zeros_ones(128)), "pair",
     f"{ONE}, got 128.0 (or give claim=, which is then tested as it stands)"),
    (refused(ADePTReference(1.0), ([0.0], [2.0])), "pair", "at Linf distance at most 1.0, got 2.0"),
    (refused(LAPLACE, ([0.0], [1.0 + 1e-6])), "pair", "at L1 distance"),
    (refused_length(L1(1.0), [0.0], [0.0, 1.0]), "pair", "two arrays of equal shape"),
    (refused_noise(PAIR, Twins()), "pair", "two neighbours by Twins, got {"),
    (refused_noise(PAIR, Twins()), "pair", "'l1': 1.0"),
    (refused(LAPLACE, neighbour=L1(0.5)), "pair",
     "at L1 distance at most 0.5 (neighbour=L1(radius=0.5)), got 1.0"),
    (refused_noise([NEAR, zeros_ones(2)], L1(1.0), 2.0), "pair", f"{ONE} {BY_L1} 2.0"),
    (refused_noise(pairs.patterns(3, "all"), L1(1.0), 2.0), "pair", f"{ONE} {BY_L1} 3.0"),
    (refused_noise(plan_search(Linf(1.0)), L1(1.0), 2.0), "pair", f"{ONE} {BY_L1} "),
    (refused_noise(FAR, L1(1.0)), "pair", f"{ONE} {BY_L1} 2.0"),
    # Within the relation, too, 2.0 would double a claim that was not made per unit of distance.
    (refused_noise(FAR, L1(2.0)), "distance of the pair", "1 where neighbour= is"),
    (refused(LAPLACE, ([0.0], [2.0]), neighbour=L1(3.0)), "pair", f"{ONE}, got 2.0 "),
    (refused(ADePT(1.0), NINE, neighbour=L2(1.0)), "pair", ", got 9.0"),
    (refused(noisy, claim=1.0), "pair", HOW),
    (refused(dpcore.repeat(lambda x: float(x[0])), claim=1.0), "pair", HOW),
    (lambda: audit(Laplace(1.0), neighbour=L1(1.0), claim=1.0, **FEW)
     + audit(Laplace(1.0), claim=1.0, start=1000, **FEW), "neighbour of the second audit", ""),
]  # fmt: skip
TYPE_ERRORS = [
    (refused(length, ("short", "longer"), attack=MajorityVote()), "x", "a non-empty vector"),
    (refused_length(L1(1.0), "a", "b"), "x", "an array of real numbers"),
    (refused_length(L1(1.0), [0.0], {1}), "x_prime", "an array of real numbers"),
    (refused_length(Replace(), {1}, {2}), "pair", "two data sets: lists, arrays or texts"),
    (refused_length(AddRemove(), [0.0], {1: 2}), "pair", "two data sets"),
    *((refused_length(wrong, *PAIR), "neighbour", OTHER)
      for wrong in (L1, 1.0, "L1", "l3", ("l1",), ["l1", 2.0])),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


# Neighbours and equal inputs on the command line and in tests of other packages.


pytest_plugins = ["pytester"]

inner = shared_plugin.inner

RUN = "--trials 2e4 --seed 1 --claim 0.6 --json"


@pytest.mark.parametrize(("relation", "near", "far", "shown", "text"), [
    ("l1=1", "1,0", "1,1", "L1(radius=1.0)", "pair must be at L1 distance at most 1.0"),
    ("L2=5", "3,4", "3,5", "L2(radius=5.0)", "pair must be at L2 distance at most 5.0"),
    ("linf=.5", "0.5,0.5", "0.5,1", "Linf(radius=0.5)", "at Linf distance at most 0.5"),
    ("replace", "9,0", "9,9", "Replace(values=None)", "at most 1 record is replaced"),
    ("add-remove", "0,0,7", "7,0", "AddRemove(values=None)", "has at most 1 record more"),
])  # fmt: skip
def test_a_farther_pair_is_bad_usage(run, own, relation, near, far, shown, text):
    words = f"audit {own}:flat {RUN} --neighbour {relation} --x 0,0"
    _, out, err = run(f"{words} --x-prime {near}")
    assert dpcore.Audit.from_json(out).neighbour == shown, err
    status, out, err = run(f"{words} --x-prime {far}")
    assert (status, out) == (2, "")
    assert text in err
    assert "--neighbour" in err


@pytest.mark.parametrize(
    "relation", ["l3=1", "l1", "l1=", "l1=-1", "l1=0", "linf=nan", "replace=1"]
)
def test_a_relation_that_there_is_not_is_bad_usage(run, relation):
    status, out, err = run(f"audit laplace --epsilon 1 --trials 100 --neighbour {relation}")
    assert (status, out) == (2, "")
    assert err.startswith("error: --neighbour must be l1=RADIUS, l2=RADIUS, linf=RADIUS, replace")


def test_the_pair_of_a_system_and_those_of_patterns_are_checked(run, own):
    words = "audit laplace --epsilon 1 --dim 3 --trials 1000 --seed 1 --json --neighbour"
    assert dpcore.Audit.from_json(run(f"{words} l1=1")[1]).neighbour == "L1(radius=1.0)"
    assert run(f"{words} l1=0.5")[0] == 2
    words = f"audit {own}:release --dim 3 {RUN} --neighbour l1=1 --patterns"
    assert dpcore.Audit.from_json(run(f"{words} one")[1]).neighbour == "L1(radius=1.0)"
    status, _, err = run(f"{words} all")
    assert status == 2
    assert "pair must be at L1 distance at most 1.0" in err


@pytest.mark.parametrize("words", ["--x 0", "--x-prime 0", "--x 0 --x-prime 1", ""])
def test_patterns_give_the_inputs_alone(run, own, words):
    dim = "--dim 2" if words else ""
    status, _, err = run(f"audit {own}:release {RUN} --patterns one {words} {dim}")
    assert status == 2
    assert "--patterns needs --dim, and no other inputs" in err
    err = run(f"audit {own}:release {RUN} --patterns some --dim 2")[2]
    assert err.startswith("error: --patterns must be one of 'one', 'all'")


@pytest.mark.parametrize("target", ["own:release", "own:native"])
@pytest.mark.parametrize("words", ["--dim 8", "--dim 1", ""])
def test_dim_is_no_pair_of_ones_own_mechanism(run, own, target, words):
    """Zeros against ones in 8 entries refute noise that is right for a change by 1."""
    target = target.replace("own", own)
    status, out, err = run(f"audit {target} --claim 0.5 --trials 1e4 --seed 1 {words}")
    assert (status, out) == (2, "")
    assert "give two inputs that the claim calls neighbours, --x NUMBERS and --x-prime" in err
    words = "--x 0,0 --x-prime 1,0 --neighbour l1=1 --claim 2.1 --trials 1e4 --seed 1"
    assert run(f"audit {target} {words}")[0] == 0


def test_equal_inputs_on_the_command_line(run, own):
    for target in (f"{own}:release", f"{own}:native", "laplace --epsilon 0.6"):
        words = f"audit {target} --x 1,2 --x-prime 1,2 {RUN}"
        status, out, err = run(words)
        assert (status, out) == (2, "")
        assert "pair must be different in at least one entry" in err
        status, out, _ = run(f"{words} --null")
        assert status == 0
        assert "the two inputs are equal" in out


# The fixture of pytest.


def test_neighbours_and_claims_in_a_test(inner):
    body = """
from dpcore.pairs import L1, Linf

class Claiming:
    claim = 1.0
    __call__ = staticmethod(noisy)

def test_near(dp_audit):
    found = dp_audit(noisy, PAIR, claim=1.0, neighbour=Linf(1.0))
    assert (found.claim, found.neighbour) == (1.0, "Linf(radius=1.0)")
    assert dp_audit(noisy, PAIR, epsilon=1.0).claim == 1.0
    assert dp_audit(Claiming(), PAIR).claim == 1.0
    assert dp_audit(noisy, ([0.0], [0.0]), claim=0.0, null=True).refuted is False
    assert dp_audit.refutes(broken, PAIR, claim=1.0, neighbour=L1(2.0)).neighbour
    assert dp_audit.refutes(broken, PAIR, epsilon=1.0).refuted

@pytest.mark.parametrize(("arguments", "text"), [
    ({"neighbour": L1(1.0)}, "pair must be at L1 distance at most 1.0 .*, got 2.0"),
    ({"pair": ([0.0], [0.0])}, "pair must be different in at least one entry"),
    ({"pair": None}, "pair must be given"),
    ({"claim": None}, "claim must be given for a mechanism without its own claim"),
    ({"epsilon": 1.0}, "claim must be given once, as claim or as epsilon"),
])
def test_far(dp_audit, arguments, text):
    for call in (dp_audit, dp_audit.refutes):
        with pytest.raises(ValueError, match=f"^{text}"):
            call(noisy, **{"pair": PAIR, "claim": 1.0, **arguments})
"""
    inner(body).assert_outcomes(passed=6)


def test_what_a_failure_says_repeats_the_relation(inner):
    body = """
from dpcore.pairs import Linf

def test_it(dp_audit): dp_audit(broken, PAIR, claim=1.0, neighbour=Linf(1.0))
"""
    result = inner(body)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "neighbour=dpcore.pairs.Linf(radius=1.0)" in text
    assert "Linf(radius=1.0), which holds for this pair" in text
