"""Thresholds on simple scores: exact scores, the entry that tells, atoms, soundness."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import Pair, _core, _json
from dpcore.attacks import Threshold
from dpcore.attacks._choosing import Goal, best, scale_of
from dpcore.attacks._columns import (
    atoms_of,
    both,
    columns,
    head,
    known,
    loose_of,
    numbers,
    tolerance_of,
)
from dpcore.attacks._rows import Closer, Coordinate, RowMax, RowMin, RowSum
from dpcore.bounds import clopper_pearson
from dpcore.events import Above
from dpcore.pairs import zeros_ones
from dpcore.published import HalfNoise, LaplaceMechanism
from dpcore.records import Counts

ALPHA = 1e-4
AUDITS = 300
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Bounds above a true loss in 300 audits at 90 % that chance allows, at the significance ALPHA."""

UNIT = Pair([0.0], [1.0])


def rng(seed=1):
    return np.random.default_rng(seed)


def names(scores):
    return [str(score) for score in scores]


def choose(scores, outputs, outputs_prime, trials=10**6):
    """The best choice, judged on outputs that the scores have not seen."""
    scale, goal = scale_of(outputs, outputs_prime), Goal(trials)
    made = [best(s, s(outputs), s(outputs_prime), scale, goal) for s in scores]
    return max(made, key=lambda choice: choice.merit)


def copies(x, size, generator):
    """20 numbers x + Lap(20): the mechanism whose L1 score has atoms."""
    return np.asarray(x) + generator.laplace(0.0, 20.0, (size, 20))


# Scores.


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_closer_is_the_difference_of_distances(norm):
    x, x_prime = rng(1).normal(size=(2, 7))
    x_prime[3] = x[3]
    outputs = rng(2).normal(size=(500, 7)) * 3
    power = 1 if norm == "l1" else 2
    naive = [
        math.fsum(abs(y - b) ** power - abs(y - a) ** power for y, a, b in zip(row, x, x_prime))  # noqa: B905
        / power
        for row in outputs
    ]
    assert Closer(norm, x, x_prime)(outputs) == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("dim", [1, 2, 9, 130])
def test_closer_gives_the_same_bits_with_and_without_the_kernel(norm, dim, monkeypatch):
    x, x_prime = rng(3).normal(size=(2, dim))
    x_prime[::3] = x[::3]
    outputs = rng(4).normal(size=(1234, dim)) * 5
    outputs[5, 0], outputs[6, -1], outputs[7, 0], outputs[8, 0] = np.nan, np.inf, -np.inf, 1e308
    score = Closer(norm, x, x_prime)
    with_kernel = score(outputs)
    # Rows that are not contiguous take the other way, and so does a build without the kernel.
    assert score(np.asfortranarray(outputs)).tobytes() == with_kernel.tobytes()
    monkeypatch.delattr(_core, "score_closer")
    assert score(outputs).tobytes() == with_kernel.tobytes()


def test_closer_counts_infinities_as_far_and_nan_as_unknown():
    score = Closer("l1", [0.0, 0.0], [1.0, 3.0])
    outputs = np.array([[-np.inf, -np.inf], [np.inf, np.inf], [np.inf, -np.inf], [np.nan, 0.0]])
    assert score(outputs)[:3].tolist() == [4.0, -4.0, 2.0]
    assert np.isnan(score(outputs)[3])
    assert np.isnan(Closer("l2", [0.0, 0.0], [1.0, 1.0])(outputs[2:])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, bool, np.uint16])
def test_scores_read_every_kind_of_numbers(dtype):
    outputs = rng(5).integers(0, 2, (50, 3)).astype(dtype)
    expected = outputs.astype(np.float64)
    for score in (Coordinate(2), RowSum(), RowMin(), RowMax(), Closer("l1", [0.0] * 3, [1.0] * 3)):
        found = score(outputs)
        assert found.dtype == np.float64
        assert found.tolist() == score(expected).tolist()
    assert RowSum()(outputs).tolist() == expected.sum(axis=1).tolist()
    assert RowMin()(outputs).tolist() == expected.min(axis=1).tolist()
    assert RowMax()(outputs).tolist() == expected.max(axis=1).tolist()
    assert Coordinate(2)(outputs).tolist() == expected[:, 2].tolist()


def test_rows_of_any_shape():
    flat = rng(6).normal(size=(40, 6))
    cube = flat.reshape(40, 2, 3)
    assert Coordinate(4)(cube).tolist() == flat[:, 4].tolist()
    assert RowSum()(cube).tolist() == RowSum()(flat).tolist()
    assert Coordinate(0)(flat[:, 0]).tolist() == flat[:, 0].tolist()


def test_nan_in_a_row_is_neither_side():
    outputs = np.array([[1.0, np.nan], [np.inf, -np.inf], [2.0, 3.0]])
    for score in (RowSum(), RowMin(), RowMax(), Coordinate(1), Closer("l2", [0, 0], [1, 1])):
        assert np.isnan(score(outputs)[0])
        above, below = (Above(score, 0.5, side)(outputs)[0] for side in ("above", "below"))
        assert not above
        assert not below
    assert np.isnan(RowSum()(outputs)[1])
    assert RowMin()(outputs)[1] == -np.inf


SCORES = [
    Coordinate(3),
    Closer("l1", [0.0, 1.0], [1.0, 1.0]),
    Closer("l2", [0.0, 1.0], [1.0, 1.0]),
    RowSum(),
    RowMin(),
    RowMax(),
]


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_scores_pickle_and_are_kept_by_json(score):
    assert pickle.loads(pickle.dumps(score)) == score
    text = json.dumps(_json.encode(Above(score, 0.25, "below")), allow_nan=False)
    assert _json.decode(json.loads(text)) == Above(score, 0.25, "below")
    assert hash(pickle.loads(pickle.dumps(score))) == hash(score)


# Which scores are tried.


def test_which_scores_are_tried():
    outputs = rng(7).normal(size=(100, 3))
    pair = Pair([0.0, 0.0, 0.0], [1.0, 2.0, 0.0])
    found = names(Threshold().candidates(outputs, outputs + 1, pair))
    assert sorted(found) == [
        "closer to x than to x' in L1",
        "closer to x than to x' in L2",
        "entry 0",
        "entry 1",
        "entry 2",
        "largest entry",
        "smallest entry",
        "sum of the entries",
    ]
    # With one shift for all entries the L2 score is the sum.
    even = names(Threshold().candidates(outputs, outputs + 1, Pair([0.0], [1.0])))
    assert "closer to x than to x' in L1" in even
    assert "closer to x than to x' in L2" not in even
    # An input that does not fit the outputs, is no vector or is the same leaves the distances out.
    same = Pair([0.0], [0.0])
    for other in (
        Pair("a", "b"),
        Pair([0, 0], [1, 1]),
        same,
        Pair([[0], [0, 1]], [1]),
        Pair({}, 1),
    ):
        assert not [name for name in names(Threshold().candidates(outputs, outputs, other))
                    if "closer" in name]  # fmt: skip


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("l1", ["closer to x than to x' in L1"]),
        ("l2", ["closer to x than to x' in L2"]),
        ("min", ["smallest entry"]),
        ("max", ["largest entry"]),
        ("sum", ["sum of the entries"]),
        (1, ["entry 1"]),
        (np.int64(0), ["entry 0"]),
        (2, []),
    ],
)
def test_one_score_by_name(score, expected):
    outputs = rng(8).normal(size=(50, 2))
    assert names(Threshold(score).candidates(outputs, outputs, UNIT)) == expected


def test_one_entry_needs_one_score():
    outputs = rng(9).normal(size=50)
    assert names(Threshold().candidates(outputs, outputs, UNIT)) == ["entry 0"]
    assert names(Threshold("l1").candidates(outputs, outputs, UNIT)) == [
        "closer to x than to x' in L1"
    ]


def test_what_it_does_not_apply_to():
    text = np.array(["a", "b", "c"])
    assert Threshold().candidates(text, text, UNIT) == ()
    assert Threshold().candidates(np.empty((5, 0)), np.empty((5, 0)), UNIT) == ()
    assert Threshold().candidates(np.empty((0, 2)), np.empty((0, 2)), UNIT) == ()
    assert Threshold().candidates(np.zeros((5, 2)), np.zeros((5, 3)), UNIT) == ()
    with pytest.raises(ValueError, match="one that applies to these outputs"):
        Threshold()(text, text, UNIT)


def test_a_function_of_your_own_scores_anything():
    def length(outputs):
        return np.array([len(text) for text in outputs], dtype=float)

    def words(x, size, generator):
        return np.where(generator.random(size) < (0.6 if x else 0.2), "long word", "word")

    report = dpcore.audit(words, (1, 0), attack=Threshold(length), trials=20_000, rng=1)
    assert 1.0 < report.epsilon_lower < math.log(3)
    assert report.event.score is length


@pytest.mark.parametrize("index", [0, 77, 127])
def test_the_telling_entry_of_many_is_found(index):
    outputs, outputs_prime = rng(10).normal(size=(2, 4000, 128))
    outputs[:, index] += 0.5
    outputs[::7, 5] = np.nan
    assert Threshold("coordinate").candidates(outputs, outputs_prime, UNIT)[0] == Coordinate(index)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_entry_that_tells_in_its_tail_comes_before_one_that_tells_a_little(sign):
    outputs, outputs_prime = rng(11).uniform(size=(2, 20_000, 30))
    outputs[: 20_000 // 200, 13] += sign
    outputs[: 20_000 // 5, 21] = 0.9
    found = Threshold("coordinate").candidates(outputs, outputs_prime, UNIT)
    assert found[:2] == (Coordinate(13), Coordinate(21))


# What it finds.


def test_half_the_noise_is_refuted_and_the_right_noise_is_not():
    pair = zeros_ones(1)
    broken = dpcore.audit(HalfNoise(1.0), pair, attack=Threshold(), trials=20_000, rng=1)
    assert broken.refuted
    assert 1.6 < broken.epsilon_lower < 2.0
    sound = dpcore.audit(LaplaceMechanism(1.0), pair, attack=Threshold(), trials=20_000, rng=1)
    assert not sound.refuted
    assert 0.8 < sound.epsilon_lower < 1.0


def test_the_smallest_entry_refutes_noise_that_is_never_negative():
    report = dpcore.audit(
        dpcore.DPTextNoise(1.0), zeros_ones(16), attack=Threshold("min"), trials=20_000, rng=1
    )
    assert report.epsilon_lower > 7
    assert str(report.event).startswith("smallest entry ")


def test_closer_in_l1_beats_every_entry_of_many_copies():
    generator = rng(12)
    sides = [copies([x], 200_000, generator) for x in (0.0, 1.0)]
    train, rest = [side[:100_000] for side in sides], [side[100_000:] for side in sides]
    merits = {}
    for score in ("coordinate", "l1"):
        found = Threshold(score).candidates(*train, UNIT)
        merits[score] = choose(found, *rest, trials=10**8).merit
    # One entry alone loses at most 1/20; the likelihood ratio of all sees more.
    assert merits["coordinate"] < 0.05 < merits["l1"]


def test_integers_bools_and_lists():
    def geometric(x, size, generator):
        noise = generator.geometric(0.4, (2, size))
        return int(x) + noise[0] - noise[1]

    report = dpcore.audit(geometric, (0, 1), attack=Threshold(), trials=50_000, rng=1)
    assert 0.4 < report.epsilon_lower < -math.log(0.6)

    def bits(x, size, generator):
        return generator.random(size) < (0.75 if x else 0.25)

    report = dpcore.audit(bits, (1, 0), attack=Threshold(), trials=50_000, rng=1)
    assert 1.05 < report.epsilon_lower < math.log(3)


# Atoms: equal real numbers that are different doubles.


def nudged(outputs):
    """The same real numbers: every double moved by a last bit or two, either way."""
    step = np.array([1e-16, -1e-16, 2e-16])
    return outputs * (1.0 + step[np.arange(outputs.size) % 3]).reshape(outputs.shape)


def rounded(x, size, generator):
    """x + a multiple of 0.1: what is equal for x = 0 and x = 0.3 differs in the last bits."""
    return np.asarray(x) + np.round(generator.laplace(0.0, 1.0, (size, 1)), 1)


def test_a_threshold_never_splits_an_atom():
    generator = rng(13)
    sides = [rounded([x], 20_000, generator) for x in (0.0, 0.3)]
    assert set(sides[0].ravel()).isdisjoint(
        set(sides[1].ravel()) - set(np.round(sides[1].ravel(), 1))
    )
    event = Threshold()(*sides, Pair([0.0], [0.3]))
    for side in sides:
        assert (event(side) == event(nudged(side))).all()
    # The control: a threshold at the atom itself does split it.
    splits = Above(event.score, float(sides[1][0, 0]))
    assert (splits(sides[1]) != splits(nudged(sides[1]))).any()


def test_the_atoms_of_the_l1_score_stay_whole():
    generator = rng(14)
    sides = [copies([x], 50_000, generator) for x in (0.0, 1.0)]
    score = Closer("l1", np.zeros(20), np.ones(20))

    def naive(outputs):
        return np.sum(np.abs(outputs - 1.0) - np.abs(outputs), axis=1)

    def spread(values):
        """Distinct doubles near the whole numbers, where the atoms are."""
        near = np.abs(values - np.rint(values)) < 1e-9
        return len(np.unique(values[near])), len(np.unique(np.rint(values[near])))

    doubles, atoms = spread(score(sides[0]))
    assert doubles < 2 * atoms
    # The control: the formula as it stands in the books has dozens of doubles for each atom.
    assert spread(naive(sides[0]))[0] > 10 * atoms
    for made in (score, naive):
        event = choose([made], *sides, trials=10**7).event
        assert abs(event.threshold - round(event.threshold)) > 1e-8
        for side in sides:
            assert (event(side) == event(nudged(side))).all()


# Soundness.


def null(x, size, generator):
    return np.round(generator.laplace(0.0, 1.0, (size, 4)), 1)


def overclaims(attack, mechanism, pair, true, audits=AUDITS):
    found = [
        dpcore.audit(mechanism, pair, attack=attack, trials=1000, confidence=CONFIDENCE, rng=seed)
        for seed in range(audits)
    ]
    return sum(audit.epsilon_lower > true for audit in found)


def test_a_mechanism_that_ignores_its_input_is_not_overclaimed():
    assert overclaims(Threshold(), null, ([0.0], [1.0]), 0.0) <= MOST


def test_a_claim_that_is_exactly_true_is_not_overclaimed():
    mechanism, pair = dpcore.Laplace(1.0), Pair([0.0], [1.0])
    assert overclaims(Threshold(), mechanism, pair, 1.0) <= MOST


def test_choosing_on_the_counted_draws_overclaims():
    """The control: null audits whose event is the best-looking one on the draws it counts."""
    found = 0
    for seed in range(AUDITS):
        sides = [null(x, 1000, rng((seed, x))) for x in (0, 1)]
        hits = []
        for score in Threshold().candidates(*sides, UNIT):
            values, values_prime = (np.sort(score(side)) for side in sides)
            points = np.quantile(values, np.linspace(0.002, 0.998, 200)) + 0.03
            hits += zip(
                np.searchsorted(values, points), np.searchsorted(values_prime, points), strict=True
            )
        counts = np.array(hits, dtype=float)
        gaps = np.abs(counts[:, 0] - counts[:, 1]) / np.sqrt(counts.sum(axis=1) + 1.0)
        best_looking = Counts(
            int(hits[np.argmax(gaps)][0]), 1000, int(hits[np.argmax(gaps)][1]), 1000
        )
        ways = best_looking, best_looking.swapped()
        ways += tuple(counts.complement() for counts in ways)
        found += max(clopper_pearson(way, 0.0, CONFIDENCE) for way in ways) > 0.0
    assert found > MOST


def nothing(x, size, generator):
    return np.full((size, 3), 7.0)


def all_nan(x, size, generator):
    return np.full((size, 3), np.nan)


@pytest.mark.parametrize("mechanism", [nothing, all_nan])
def test_outputs_that_never_differ_certify_nothing(mechanism):
    report = dpcore.audit(mechanism, ([0.0], [1.0]), attack=Threshold(), trials=1000, rng=1)
    assert report.epsilon_lower == 0.0


# Bad input.


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Threshold("mean"), ValueError, "score must be one of 'coordinate', 'l1', "),
        (lambda: Threshold(-1), ValueError, "score must be an integer at least 0, got -1"),
        (lambda: Threshold(True), TypeError, "score must be None, a name, an index or a "),
        (lambda: Threshold(1.5), TypeError, "score must be None, a name, an index or a "),
        (lambda: Coordinate(-1), ValueError, "index must be an integer at least 0, got -1"),
        (lambda: Coordinate(3)(np.zeros((2, 2))), ValueError, "outputs must be of at least 4 "),
        (lambda: Closer("l3", [0.0], [1.0]), ValueError, "norm must be one of 'l1', 'l2', got"),
        (lambda: Closer("l1", [0.0], [1.0, 2.0]), ValueError, "x_prime must be of 1 entries"),
        (lambda: Closer("l1", [np.inf], [1.0]), ValueError, "x must be a non-empty vector of fi"),
        (lambda: Closer("l1", [0.0], [1.0])(np.zeros((2, 2))), ValueError, "outputs must be of 1"),
        (lambda: RowSum()(np.array(["a"])), TypeError, "outputs must be real numbers, got dty"),
        (lambda: RowMin()(np.zeros((3, 0))), ValueError, "outputs must be of at least one entry"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


# What all attacks on numbers share: columns, tolerances, atoms.


def test_columns():
    assert columns(np.array(["a"])) is None
    assert columns(np.array(3.0)) is None
    assert columns(np.zeros(4)).shape == (4, 1)
    assert columns(np.zeros((4, 2, 3))).shape == (4, 6)
    assert both(np.zeros((4, 2)), np.zeros((5, 2)))[1].shape == (5, 2)
    assert both(np.zeros((4, 2)), np.zeros((5, 3))) is None
    with pytest.raises(TypeError, match="outputs must be real numbers"):
        numbers(np.array([None, 1]))


def test_the_tolerance_is_absolute_and_follows_the_type():
    assert tolerance_of(np.array([0.5, -20.0, np.inf, np.nan])) == pytest.approx(2e-8)
    assert tolerance_of(np.array([5, 7])) == 0.0
    narrow = tolerance_of(np.array([1.0], np.float32))
    assert narrow == pytest.approx(2 * np.finfo(np.float32).eps)
    assert tolerance_of(np.array([1.0]), np.array([1.0], np.float16)) > narrow


def test_atoms_are_values_that_repeat_and_stand_apart():
    generator = rng(15)
    plain = generator.normal(size=5000)
    atom = np.full(200, 0.1 + 0.2) + generator.integers(-2, 3, 200) * 1e-16
    values = known(np.concatenate([plain, atom, [np.nan, np.inf]]))
    assert values.size == 5200
    tolerance = tolerance_of(values)
    atoms = atoms_of(values, tolerance)
    assert atoms.counts.tolist() == [200]
    assert atoms.lows[0] < 0.3 < atoms.highs[0] < 0.3 + 1e-6
    assert loose_of(values, atoms).sum() == 5000
    assert atoms_of(np.empty(0), 0.0).counts.size == 0
    assert atoms_of(np.zeros(3), 0.0).counts.size == 0
    assert atoms_of(np.zeros(4), 0.0).counts.tolist() == [4]


def test_a_huge_outlier_does_not_make_everything_one_atom():
    values = known(np.append(rng(16).normal(size=5000), 1e7))
    assert atoms_of(values, tolerance_of(values)).counts.sum() < 100


def test_atoms_are_looked_for_in_part_of_the_pilot():
    assert len(head(np.zeros((2**18, 1)))) == 2**17
    assert len(head(np.zeros((2**18, 1), np.float32))) == 2**13


def test_thresholds_keep_away_from_the_atoms_of_float32():
    """Sums of float32 meet the atoms of the real law to seven digits only."""

    def released(x, size, generator):
        noise = np.round(generator.laplace(0.0, 1.0, (size, 1)), 1)
        return np.float32(x) + noise.astype(np.float32)

    for seed in range(5):
        audit = dpcore.audit(released, ([0.0], [0.3]), claim=0.3, trials=10**5, rng=seed)
        threshold = audit.event.threshold
        if str(audit.event).startswith("entry 0"):
            assert abs(threshold * 10 - round(threshold * 10)) > 1e-4
        # Just as in real numbers: the nearest multiple of a tenth decides.
        for side in ("x", "x_prime"):
            outputs = audit.outputs(side, 0, 10**5).astype(np.float64)
            clean = np.round(outputs, 1).astype(np.float32)
            assert np.array_equal(audit.event(clean), audit.event(outputs.astype(np.float32)))
