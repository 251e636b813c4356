"""The float lattice: the lowest bits of floats, what the attack catches and must leave alone."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from shared_audits import assert_kept
from shared_extras import needs

import dpcore
from dpcore.attacks import lattice
from dpcore.attacks.attack import Goal, choose_events
from dpcore.attacks.lattice import (
    FINEST,
    FinerThan,
    FloatLattice,
    LowBits,
    classes_of_exponents,
    flat_cell_indices,
    lowest_bit,
)
from dpcore.bounds import clopper_pearson
from dpcore.events import Never
from dpcore.events.event import LARGEST
from dpcore.experiments.floating_point import SYSTEMS
from dpcore.pairs.differences import pair_lists_to_float_arrays
from dpcore.records import Pair

ALPHA = 1e-3
"""Significance of the test that counts false findings; the seeds are fixed."""

PAIR = Pair(np.zeros(1), np.ones(1))


def audit(mechanism, pair=PAIR, trials=2 * 10**5, pilot=2**14, seed=1, goal=None):
    """(certified bound, counts, event) of the attack, by the rules of an audit."""
    pair, rng = pair_lists_to_float_arrays(pair), np.random.default_rng(seed)
    half = pilot // 2
    first, second = ([mechanism(x, half, rng) for x in (pair.x, pair.x_prime)] for _ in range(2))
    scores = FloatLattice().candidates(*first, pair)
    choices = choose_events(scores, *second, goal or Goal(trials))
    found = max(choices, key=lambda choice: choice.merit)
    hits = [int(found.event(mechanism(x, trials, rng)).sum()) for x in (pair.x, pair.x_prime)]
    counts = dpcore.Counts(hits[0], trials, hits[1], trials)
    ordered = counts if found.direction == "x" else counts.swapped()
    return clopper_pearson(ordered), counts, found.event


def laplace(scale):
    return lambda x, size, rng: x + rng.laplace(0.0, scale, (size, x.size))


def normal(sigma):
    return lambda x, size, rng: x + rng.normal(0.0, sigma, (size, x.size))


def legacy(x, size, rng):
    return x + np.random.RandomState(int(rng.integers(2**32))).laplace(0.0, 10.0, (size, x.size))


def native(mechanism):
    return lambda x, size, rng: dpcore.sample(mechanism, x, size, rng=rng)


def single(x, size, rng):
    return x.astype(np.float32) + rng.laplace(0.0, 10.0, (size, x.size)).astype(np.float32)


def single_kept_as_double(x, size, rng):
    return single(x, size, rng).astype(np.float64)


def geometric(x, size, rng):
    return x + (rng.geometric(0.1, (size, x.size)) - rng.geometric(0.1, (size, x.size)))


def discrete_normal(x, size, rng):
    return x + np.rint(rng.normal(0.0, 4.0, (size, x.size))) / 4.0


def snapped(x, size, rng):
    return np.clip(16.0 * np.rint((x + rng.laplace(0.0, 10.0, (size, x.size))) / 16.0), -512, 512)


def rounded_once(x, size, rng):
    """Laplace noise on the lattice 2^-92, added exactly and rounded once, for integer x."""
    # A whole multiple of 2^-30 and 62 further bits; a long double holds the sum to 64 bits.
    coarse = np.round(rng.laplace(0.0, 10.0, (size, x.size)) * 2.0**30).astype(np.int64)
    rest = rng.integers(0, 2**62, (size, x.size)).astype(np.longdouble) / np.longdouble(2.0**62)
    exact = (coarse + (x * 2.0**30).astype(np.int64)).astype(np.longdouble) + rest
    return exact.astype(np.float64) / 2.0**30


@pytest.mark.parametrize("ends", [(0.0, 1.0), (5.0, 6.0), (-1.0, 1.0), (2.0, 7.0)], ids=str)
@pytest.mark.parametrize("side", [0, 1])
def test_expected_cuts_are_never_hit_from_the_coarser_end(ends, side):
    rng = np.random.default_rng(1)
    outputs = [end + rng.laplace(0.0, 4.0, (10**5, 1)) for end in ends]
    table = lattice._count_by_interval_and_lowest_bit(*outputs, (0,), ends)
    first, last = np.triu_indices(table.edges.size, 1)
    places = np.argwhere(lattice._predict_cuts_from_rounding(table, first, last, side))
    cuts = [
        (table.edges[first[w]], table.edges[last[w]], -int(table.exponents[e])) for w, e in places
    ]
    doubles = [cut for cut in cuts if cut[2] > 40]
    if ends == (0.0, 1.0) and side == 0:
        assert {(-0.5, 0.5, 53), (-1.0, 0.0, 52)} <= set(doubles)
    # Cuts are expected where the finer end is no further from zero than the coarser one.
    assert bool(doubles) == (abs(ends[side]) <= abs(ends[1 - side]))
    scores = [FinerThan(exponent, low, high) for low, high, exponent in doubles]
    assert not any(score(outputs[1 - side]).any() for score in scores)
    assert 2 * sum(score(outputs[side]).any() for score in scores) >= len(doubles)


# What is found.

BARE = {
    "numpy laplace": laplace(10.0), "numpy normal": normal(10.0), "numpy legacy laplace": legacy,
    "dpcore.Laplace": native(dpcore.Laplace(10.0)),
    "dpcore.Gaussian": native(dpcore.Gaussian(10.0)), "float32": single,
    "float32 kept as float64": single_kept_as_double,
}  # fmt: skip


@pytest.mark.parametrize("name", BARE)
def test_bare_noise_is_certified_above_six(name):
    bound, counts, event = audit(BARE[name])
    assert bound > 6.0
    assert min(counts.k, counts.k_prime) == 0
    assert isinstance(event.score, FinerThan)


@pytest.mark.parametrize("name", ["numpy laplace", "numpy normal", "float32", "dpcore.Laplace"])
def test_a_pilot_of_two_thousand_is_enough(name):
    found = [audit(BARE[name], trials=20_000, pilot=2048, seed=seed)[0] for seed in range(10)]
    assert sum(bound > 4.0 for bound in found) >= 9


@pytest.mark.parametrize(
    "pair",
    [
        Pair([1.0], [0.0]), Pair([5.0], [6.0]), Pair([0.3], [1.3]), Pair([0.1], [0.2]),
        Pair([-1.0], [1.0]), Pair(np.zeros(8), np.ones(8)), Pair([0.0, 1.0, 7.0], [1.0, 0.0, 7.0]),
        Pair(np.linspace(0.0, 1.0, 5), np.linspace(1.0, 2.0, 5)),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("mechanism", [laplace(10.0), normal(10.0)], ids=["laplace", "normal"])
def test_other_pairs_leave_traces_too(pair, mechanism):
    bound, _, event = audit(mechanism, pair, trials=10**5, pilot=2**16)
    assert bound > 5.0, str(event)


def holed(x, size, rng):
    outputs = laplace(10.0)(x, size, rng)
    outputs[rng.random(outputs.shape) < 0.2] = rng.choice([math.nan, math.inf, -math.inf])
    return outputs


def stretched(scale):
    return lambda x, size, rng: laplace(10.0)(x, size, rng) * 2.0 ** math.frexp(scale)[1]


OTHERS = {
    "small scale": (laplace(0.5), {"trials": 10**6, "pilot": 2**17}),
    "large scale": (laplace(100.0), {"trials": 10**6, "pilot": 2**17}),
    "no array": (lambda x, size, rng: (x == "b") + rng.laplace(0.0, 10.0, size),
                 {"pair": Pair("a", "b"), "pilot": 2**15}),
    "a few without a number": (holed, {}),
    "smallest doubles": (stretched(1e-300), {}),
    "largest doubles": (stretched(1e300), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_noise_of_other_scales_and_kinds_is_certified_above_six(name):
    mechanism, options = OTHERS[name]
    bound, _, event = audit(mechanism, **options)
    assert bound > 6.0, str(event)


def test_many_different_entries_are_tabulated_as_one():
    pair = Pair(np.zeros(40), np.linspace(1.0, 2.0, 40))
    mechanism = laplace(1.0)
    rng = np.random.default_rng(1)
    outputs = mechanism(pair.x, 500, rng), mechanism(pair.x_prime, 500, rng)
    assert all(len(score.columns) == 40 for score in FloatLattice().candidates(*outputs, pair))


def test_traces_on_every_entry_add_up_in_the_table():
    # No cut is clean here, on no entry; the whole table sees more.
    def coarser(x, size, rng):
        # Multiples of 2^-40 half of the time on x, three times out of four on x'.
        noise = rng.laplace(0.0, 1.0, (size, 8))
        coarse = np.rint(noise * 2.0**40) / 2.0**40
        return np.where(rng.random((size, 8)) < 0.5 + 0.25 * x[0], coarse, noise)

    bound, _, event = audit(coarser, Pair([0.0], [1.0]), pilot=2**15)
    assert isinstance(event.score, LowBits)
    # Every entry alone tells (1/2) / (1/4).
    assert bound > 3.0 > math.log(2.0)


@pytest.mark.extras
def test_torch_noise_is_certified():
    torch = needs("torch")
    for kind in ("Laplace", "Normal"):
        for dtype in (torch.float32, torch.float64):

            def mechanism(x, size, rng, kind=kind, dtype=dtype):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(int(rng.integers(2**63)))
                    law = getattr(torch.distributions, kind)(torch.tensor(x, dtype=dtype), 10.0)
                    return law.sample((size,)).numpy()

            assert audit(mechanism)[0] > 6.0


def library(name):
    system = next(system for system in SYSTEMS if system.name == name)
    needs(system.package)
    return system.build()


@pytest.mark.extras
@pytest.mark.parametrize("name", ["diffprivlib Laplace", "diffprivlib Gaussian"])
def test_diffprivlib_is_certified(name):
    # 50,000 calls only: the bound grows with their logarithm, and is above 6 at 100,000.
    bound, counts, _ = audit(library(name), trials=50_000, pilot=2**13)
    assert bound > 5.0
    assert counts.k_prime == 0


# What is left alone.

PROTECTED = {
    "geometric": geometric, "discrete normal": discrete_normal, "snapped": snapped,
    "rounded once": rounded_once,
}  # fmt: skip
QUIET = (FinerThan(FINEST, -1.0, 1.0),)


@pytest.mark.parametrize("name", ["geometric", "discrete normal", "snapped"])
@pytest.mark.parametrize(
    "pair", [PAIR, Pair(np.full(1, 5.0), np.full(1, 6.0)), Pair(np.zeros(4), np.ones(4))], ids=str
)
def test_grids_leave_no_trace(name, pair):
    rng = np.random.default_rng(1)
    for size in (500, 5000, 50_000):
        outputs = [PROTECTED[name](x, size, rng) for x in (pair.x, pair.x_prime)]
        assert FloatLattice().candidates(*outputs, pair) == QUIET


def false_findings(mechanism, pilots=60, size=2000):
    rng, found = np.random.default_rng(1), 0
    for _ in range(pilots):
        outputs = [mechanism(x, size, rng) for x in (PAIR.x, PAIR.x_prime)]
        found += FloatLattice().candidates(*outputs, PAIR) != QUIET
    return found


def test_exactly_rounded_noise_is_hardly_ever_suspected():
    # The evidence asked for makes one finding in a hundred pilots rare.
    assert false_findings(rounded_once) <= binom.ppf(1.0 - ALPHA, 60, 0.01)
    # The control: the same noise, added in floating point, is found every time.
    assert false_findings(laplace(10.0)) == 60


def test_the_law_alone_is_no_trace():
    # Half of the outputs lie elsewhere on x', but their low bits are alike.
    def far(x, size, rng):
        return rounded_once(30.0 * x, size, rng)

    assert false_findings(far) <= binom.ppf(1.0 - ALPHA, 60, 0.01)


@pytest.mark.parametrize("name", PROTECTED)
def test_protected_noise_is_certified_at_nothing(name):
    bound, counts, event = audit(PROTECTED[name], trials=10**5)
    assert bound == 0.0
    assert event.score == QUIET[0]
    assert counts.k == counts.k_prime


@pytest.mark.extras
def test_opendp_is_left_alone():
    assert audit(library("OpenDP make_laplace"), trials=5000, pilot=8192)[0] == 0.0


# Awkward outputs.


@pytest.mark.parametrize(
    "value", [0.0, 1.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308, -1.7e308]
)
def test_constants_and_extremes_are_no_trace(value):
    outputs = np.full((50, 2), value)
    assert FloatLattice().candidates(outputs, -outputs, Pair([0.0, 1e308], [1.0, -1e308])) == QUIET
    assert FloatLattice()(outputs, outputs, PAIR) == Never()


def test_through_the_audit():
    options = {"attack": FloatLattice(), "trials": 10**5, "claim": 0.1, "rng": 3}
    report = dpcore.audit(laplace(10.0), PAIR, **options)
    assert report.epsilon_lower > 5.0
    assert "no multiple of 2^-5" in str(report)
    assert json.loads(report.to_json())["counts"]["k"] == report.counts.k


# The lowest bits of floats, and the scores made of them, against exact fractions.


WORDS = st.integers(0, 2**64 - 1)


# Bits.


@given(st.lists(WORDS, min_size=1, max_size=30), st.integers(-1023, FINEST))
def test_bits_are_those_of_exact_fractions(words, exponent):
    values = np.array(words, np.uint64).view(np.float64)
    found, known = lowest_bit(values), np.abs(values) < LARGEST
    broken = FinerThan(exponent, -LARGEST, LARGEST)(values[known]) == 1.0
    for value, bit in zip(values[known].tolist(), found[known].tolist(), strict=True):
        fraction = Fraction(value)
        if fraction == 0:
            assert bit == 1024
            continue
        assert fraction % (Fraction(2) ** bit) == 0
        assert fraction % (Fraction(2) ** (bit + 1)) != 0
    assert (found[~np.isfinite(values)] == 1024).all()
    step = Fraction(2) ** -exponent
    assert broken.tolist() == [Fraction(v) % step != 0 for v in values[known].tolist()]
    # Both say the same: finer than 2^-e is a lowest bit below -e.
    assert broken.tolist() == (found[known] < -exponent).tolist()


@pytest.mark.parametrize("value", [5e-324, -5e-324, 2.0**-1022, 2.0**1023, 1.7976931348623157e308])
def test_the_ends_of_the_doubles(value):
    values = np.array([value])
    assert Fraction(value) / Fraction(2) ** int(lowest_bit(values)[0]) % 2 == 1
    for exponent in (-1023, -52, 0, 52, 1023, 1024, FINEST):
        finer = value < LARGEST and Fraction(value) % Fraction(2) ** -exponent != 0
        assert FinerThan(exponent, -LARGEST, LARGEST)(values)[0] == finer


def test_nothing_is_finer_than_the_finest_lattice():
    words = np.random.default_rng(1).integers(0, 2**64, 10**5, dtype=np.uint64).view(np.float64)
    assert not FinerThan(FINEST, -1e308, 1e308)(words).any()


def test_from_one_no_fine_output_ever_from_zero_many():
    # The arithmetic itself, for any noise: Sterbenz' lemma, and its absence.
    rng = np.random.default_rng(1)
    score = FinerThan(53, -0.5, 0.5)
    for noise in (rng.laplace(0.0, 10.0, 10**6), rng.normal(0.0, 1.0, 10**6)):
        assert not score(1.0 + noise).any()
        assert score(0.0 + noise).mean() > 0.02
    # One bit less, and 1.0 does reach it: the exponent is the right one.
    assert FinerThan(52, -0.5, 0.5)(1.0 + rng.normal(0.0, 1.0, 10**6)).any()


# Scores.


def naive(score, rows):
    hits = []
    for row in rows:
        inside = [
            math.isfinite(row[c])
            and score.low <= row[c] < score.high
            and Fraction(float(row[c])) % Fraction(2) ** -score.exponent != 0
            for c in score.columns
        ]
        hits.append(float(any(inside) if score.quantifier == "some" else all(inside)))
    return hits


@pytest.mark.parametrize("quantifier", ["some", "every"])
@pytest.mark.parametrize("columns", [(0,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_cut_is_its_definition(quantifier, columns, dtype):
    rows = np.random.default_rng(1).laplace(0.0, 1.0, (300, 3)).astype(dtype)
    rows[::7, 1], rows[3, 0], rows[4, 2] = 0.25, np.nan, np.inf
    bits = {np.float64: 53, np.float32: 24, np.float16: 10}[dtype]
    score = FinerThan(bits, -0.5, 0.5, columns, quantifier)
    assert score(rows).tolist() == naive(score, rows.astype(np.float64))
    assert 0 < score(rows).sum() < 300
    assert score(rows.reshape(300, 3, 1)).tolist() == score(rows).tolist()


def test_the_window_holds_its_lower_end_only():
    score = FinerThan(1, 0.25, 0.75)
    assert score(np.array([0.25, 0.75, np.nextafter(0.75, 0.0)])).tolist() == [1.0, 0.0, 1.0]


def test_the_table_is_its_definition():
    rng = np.random.default_rng(1)
    edges, exponents = np.array([-2.0, 0.0, 1.0]), np.array([-54, -52])
    table = rng.normal(size=(2, 3))
    rows = rng.laplace(0.0, 1.0, (4000, 2))
    rows[0], rows[1], rows[2] = (0.5, -1.0), (np.nan, np.inf), (-2.0, 1.0)
    score = LowBits(edges, exponents, table, (1, 0))
    expected = np.zeros(len(rows))
    for column in (1, 0):
        for i, value in enumerate(rows[:, column].tolist()):
            place = int(np.searchsorted(edges, value, side="right")) - 1
            if math.isfinite(value) and 0 <= place < 2:
                bit = int(lowest_bit(np.array([value]))[0])
                expected[i] += table[place, int(np.searchsorted(exponents, bit, side="right"))]
    assert score(rows).tolist() == expected.tolist()


def test_cells_of_a_table():
    place = classes_of_exponents(np.array([-2, 0]))
    values = np.array([-0.5, 0.25, 0.5, 3.0, 0.125, np.nan])
    # Bins: below 0, from 0 to 1, beyond; classes: t < -2, -2 <= t < 0, t >= 0.
    assert flat_cell_indices(values, np.array([0.0, 1.0]), place).tolist() == [1, 4, 4, 8, 3, 8]


def test_scores_are_records_in_words():
    scores = (
        FinerThan(53, -0.5, 0.5),
        FinerThan(52, -1.0, 0.0, (0, 1), "every"),
        LowBits(np.array([0.0, 1.0]), np.array([-53]), np.array([[1.0, -1.0]]), (0, 3)),
    )
    for score in scores:
        assert_kept(score)
        assert score.merged
    assert scores[0] != FinerThan(53, -0.5, 0.25)
    assert str(scores[0]) == "entry 0 is in [-0.5, 0.5) and no multiple of 2^-53"
    assert str(scores[1]) == "each of 2 entries is in [-1, 0) and no multiple of 2^-52"
    assert str(scores[2]) == "log ratio of the lowest set bits of entries 0, 3"
