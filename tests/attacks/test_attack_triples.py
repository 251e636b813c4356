"""What three parts of an output show together, boxes that are empty, values of one side only.

A leak must certify 80 % of what the event of an expert certifies on as many draws, medians of
three seeds. The private twin, whose loss is at most the claim, is the negative control: more than
MOST refuted of AUDITS fail at the significance ALPHA.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics

import numpy as np
import pytest
from scipy import stats
from shared_audits import assert_kept

import dpcore
from dpcore import Counts, Pair
from dpcore.attacks import Products
from dpcore.attacks.attack import Goal
from dpcore.attacks.triples import CellRatios, choose_3_interval_event
from dpcore.bounds import clopper_pearson

ALPHA, AUDITS, SEEDS = 1e-4, 200, (3, 4, 5)
MOST = int(stats.binom.isf(ALPHA, AUDITS, 0.05))
PAIR = Pair([0.0], [1.0])
COLUMNS = [1, 4, 7]
TRUTH = math.e / (1.0 + math.e)


def leaky(x, size, rng):
    """The bit of the input; a uniform value of three instead in 5 % of the outputs."""
    noise = rng.random(size) < 0.05
    return np.where(noise, rng.integers(0, 3, size), int(x[0]))


def private(x, size, rng):
    """The bit of the input, false so often that the loss is 1."""
    return int(x[0]) ^ (rng.random(size) > TRUTH)


def certain(x, size, rng):
    return np.full(size, int(x[0]))


def sums(modulus, high):
    """Ten uniform integers below `high`; the sum of three modulo a number is the secret."""

    def mechanism(x, size, rng, secret):
        rows = rng.integers(0, high, (size, 10))
        rest = (secret(x, size, rng) - rows[:, COLUMNS].sum(axis=1)) % modulus
        rows[:, 7] = rows[:, 7] - rows[:, 7] % modulus + (rows[:, 7] + rest) % modulus
        return rows

    return mechanism


def written(mechanism, words):
    def sentences(*arguments):
        return [" ".join(words[number] for number in row) for row in mechanism(*arguments)]

    return sentences


def products(x, size, rng, secret):
    rows = rng.normal(0.2, 1.0, (size, 6))
    sign = 2.0 * secret(x, size, rng) - 1.0
    rows[:, 5] = sign * np.abs(rows[:, 5]) * np.sign(rows[:, 0] * rows[:, 2])
    return rows


def rounded(decimals):
    """Twelve rounded normal columns, one of which is 9 or 9.01 in one output of a thousand."""

    def mechanism(x, size, rng, secret):
        rows = np.round(rng.normal(size=(size, 12)), decimals)
        rows[:, 5] = np.where(
            rng.random(size) < 1e-3, 9.0 + 0.01 * secret(x, size, rng), rows[:, 5]
        )
        return rows

    return mechanism


def holes(x, size, rng, secret):
    """Eight uniform columns, in three of which the secret 0 leaves a box empty."""
    rows = rng.random((size, 8))
    is_kept = secret(x, size, rng) == 1
    while (again := in_box(rows) & ~is_kept).any():
        rows[again] = rng.random((np.count_nonzero(again), 8))
    return rows


def in_box(rows):
    low = np.array([0.337, 0.512, 0.718])
    return ((rows[:, COLUMNS] >= low) & (rows[:, COLUMNS] < low + 0.15)).all(axis=1)


def thinned(x, size, rng):
    """Each row may stay on x'; on x it stays with probability 1 / e: the loss is 1."""
    return np.maximum(int(x[0]), rng.random(size) < math.exp(-1.0))


COLOURS, ANSWERS = ["red", "green", "blue"], ["no", "yes"]


def total(words, modulus):
    numbers = {word: number for number, word in enumerate(words)}
    return lambda texts: np.array(
        [sum(numbers[text.split()[i]] for i in COLUMNS) % modulus == 1 for text in texts]
    )


LEAKS = {
    "sum of digits": (sums(3, 3), leaky, private, 20_000, lambda y: y[:, COLUMNS].sum(1) % 3 == 1),
    "sum": (sums(3, 99), leaky, private, 20_000, lambda y: y[:, COLUMNS].sum(1) % 3 == 1),
    "colours": (written(sums(3, 3), COLOURS), leaky, private, 20_000, total(COLOURS, 3)),
    "answers": (written(sums(2, 2), ANSWERS), leaky, private, 20_000, total(ANSWERS, 2)),
    "product": (products, certain, private, 50_000, lambda y: y[:, [0, 2, 5]].prod(axis=1) > 0),
    "tenths": (rounded(1), certain, private, 100_000, lambda y: y[:, 5] > 9.005),
    "hundredths": (rounded(2), certain, private, 100_000, lambda y: y[:, 5] > 9.005),
    "box": (holes, certain, thinned, 200_000, in_box),
}


def audit(name, secret, seed, trials):
    def mechanism(x, size, rng):
        return LEAKS[name][0](x, size, rng, secret)

    return dpcore.audit(mechanism, PAIR, claim=1.0, trials=trials, rng=seed)


def expert_bound(name, seed):
    mechanism, secret, _, trials, event = LEAKS[name]
    rng = np.random.default_rng([seed, 77])
    hits = [int(event(mechanism(x, trials, rng, secret)).sum()) for x in (PAIR.x_prime, PAIR.x)]
    return clopper_pearson(Counts(hits[0], trials, hits[1], trials), 0.0, 0.95)


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found(name):
    _, secret, _, trials, _ = LEAKS[name]
    bounds = [audit(name, secret, seed, trials).epsilon_lower for seed in SEEDS]
    expert = statistics.median(expert_bound(name, seed) for seed in SEEDS)
    assert statistics.median(bounds) >= 0.8 * expert > 2.0


@pytest.mark.parametrize("name", LEAKS)
def test_its_private_twin_is_not_refuted(name):
    twin, trials = LEAKS[name][2:4]
    assert not audit(name, twin, 3, trials).refuted


@pytest.mark.sweep
@pytest.mark.parametrize("name", LEAKS)
def test_private_twins_are_refuted_no_more_often_than_the_level_allows(name):
    twin, trials = LEAKS[name][2:4]
    assert sum(audit(name, twin, seed, trials // 4).refuted for seed in range(AUDITS)) <= MOST


@pytest.mark.parametrize("name", ["entries", "moduli"])
def test_numbers_below_zero_are_refused(name):
    fields = {"entries": [0], "moduli": [0], "cuts": [[0.5]], "weights": [0.0, 1.0, 2.0]}
    with pytest.raises(ValueError, match=rf"^{name} must be at least 0, got "):
        CellRatios(**fields | {name: [-1]})


def test_more_trials_do_not_lower_the_bound():
    few, many = (
        [audit("sum of digits", leaky, seed, trials).epsilon_lower for seed in SEEDS]
        for trials in (20_000, 100_000)
    )
    assert statistics.median(many) > statistics.median(few)


def test_parts_of_dicts_and_json_are_compared_together():
    """The sum of three of ten numbers modulo 3; the events name the keys."""

    def dicts(x, size, rng):
        rows = sums(3, 99)(x, size, rng, leaky)
        return [{f"k{i}": number for i, number in enumerate(row)} for row in rows.tolist()]

    def texts(x, size, rng):
        return list(map(json.dumps, dicts(x, size, rng)))

    for mechanism in (dicts, texts):
        report = dpcore.audit(mechanism, PAIR, claim=1.0, trials=10_000, rng=3)
        assert report.epsilon_lower > 0.8 * 3.9
        assert "k1, k4 and k7 modulo 3" in str(report.event)
        assert dpcore.Audit.from_json(report.to_json()).event == report.event


def test_events_name_the_entries():
    names = {
        name: str(audit(name, certain, 3, LEAKS[name][3]).event) for name in ("box", "product")
    }
    assert names["product"].startswith("product of the signs of entries 0, 2 and 5")
    assert names["box"].startswith("entry 1 in [0.3")
    assert len(names["box"]) <= 100


@pytest.mark.parametrize("columns", [3, 8, 20])
def test_columns_that_are_independent_on_both_sides_have_no_table_and_no_box(columns):
    """At 5.5 standard errors: of 40,000 moments one in 600 pilots has one by chance."""
    rng = np.random.default_rng(3)
    for shift in (0.0, 1.0):
        sides = [shift * side + rng.normal(size=(2**14, columns)) for side in (0, 1)]
        assert Products().telling(*sides) == ()
        box = choose_3_interval_event(*sides, Goal(10**5))
        assert box is None or box.merit <= max(0.0, shift)
        whole = [np.rint(30.0 * side).astype(np.int64) for side in sides]
        assert Products().telling(*whole) == ()


def score(moduli=(2, 0), cuts=((np.nan, np.nan), (0.0, 1.5)), radix=4):
    weights = np.arange(radix**2, dtype=float).reshape(radix, radix)
    return CellRatios(np.array([2, 0]), np.array(moduli), np.array(cuts), weights)


def test_scores_are_what_a_loop_says_also_of_nan_and_infinities():
    values = [-2.0, -0.5, 0.0, 1.0, 1.5, 3.0, math.inf, -math.inf, math.nan]
    rows = np.array([(b, 0.0, a) for a, b in itertools.product(values, repeat=2)])

    def code(parity, cut):
        first = int(parity % 2) if abs(parity) < 9 and parity % 1 == 0 else 3
        return 4 * first + (3 if math.isnan(cut) else int(cut >= 0.0) + int(cut >= 1.5))

    expected = [code(a, b) for b, _, a in rows.tolist()]
    assert score()(rows).tolist() == expected
    assert_kept(score())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radix": 3}, "weights must be finite, 2 dimensions of 4 or more"),
        ({"moduli": (5, 0)}, "weights must be finite, 2 dimensions of 6 or more"),
        ({"cuts": ((0.0,),)}, "cuts must be one row for each of 2 entries"),
        ({"moduli": (2,)}, "moduli must be of shape"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        score(**arguments)
