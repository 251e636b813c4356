"""Products of pairs of columns, and residues of whole numbers: what they see; their arithmetic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from shared_audits import MOST, count_refutations
from shared_pairs_of_columns import LOSS, UNIT, correlated, likelihood, odd, secret, told, twisted

import dpcore
from dpcore import Pair
from dpcore.attacks import Products, Residues, Threshold
from dpcore.attacks.arrays import has_few_distinct_rows
from dpcore.attacks.products import MOST_COLUMNS, SignProducts, ValueProducts
from dpcore.attacks.residues import MODULI, ResidueRatio, residues_of

XOR, CORRELATED = 2.935, 7.93
"""What the score of somebody who knows the pair certifies with 10^6 trials at 95 %."""


def certified(mechanism, trials=10**6, attack=None, seed=11):
    report = dpcore.audit(mechanism, UNIT, attack=attack, trials=trials, claim=1.0, rng=seed)
    return report.epsilon_lower


def test_the_figures_are_what_a_hand_written_event_certifies():
    score = likelihood(0.735, -0.735)
    assert told(twisted(), lambda bits: bits[:, 4] == bits[:, 19]) == pytest.approx(XOR, abs=0.01)
    found = told(correlated(0.735, -0.735), lambda outputs: score(outputs) >= 6.8)
    assert found == pytest.approx(CORRELATED, abs=0.15)


@pytest.mark.parametrize(
    "turned",
    [{}, {"i": 30, "j": 2}, {"offset": 1000}, {"sign": -1}, {"width": 64}, {"i": 0, "j": 1}],
    ids=str,
)
def test_the_exclusive_or_of_two_bits_is_seen(turned):
    """Before, with 32 bits: .30."""
    assert certified(twisted(**turned), 10**6 if not turned else 2 * 10**5) > 0.9 * XOR


@pytest.mark.parametrize(
    "turned",
    [{}, {"i": 17, "j": 3}, {"offset": 1000.0}, {"sign": -1.0}, {"width": 2, "i": 0, "j": 1}],
    ids=str,
)
def test_one_correlated_pair_of_columns_is_seen(turned):
    """Before, with 190 pairs: .22. A fifth of the trials certifies ln 5 less at most."""
    trials, less = (2 * 10**5, math.log(5.0)) if turned else (10**6, 0.0)
    assert certified(correlated(0.735, -0.735, **turned), trials) > 0.9 * CORRELATED - less


@pytest.mark.parametrize(("r", "r_prime"), [(0.9, 0.0), (0.0, 0.95)])
def test_a_pair_correlated_on_one_side_alone_is_seen_by_its_difference(r, r_prime):
    mechanism, trials = correlated(r, r_prime), 2 * 10**5
    knows = certified(mechanism, trials, attack=Threshold(score=likelihood(r, r_prime)))
    assert certified(mechanism, trials) > 0.9 * knows > 7.0


def test_many_faint_pairs_are_added():
    """A common factor of a fifth of the variance on x: no single pair tells much."""

    def common(x, size, rng):
        outputs = rng.normal(size=(size, 12))
        return outputs if x[0] else outputs + 0.5 * rng.normal(size=(size, 1))

    one, trials = Threshold(score=lambda outputs: outputs[:, 0] * outputs[:, 1]), 2 * 10**5
    # The variance of the sum is 3 + .25 * 144 on one side, 12 on the other.
    assert certified(common, trials, Products()) > 2.0 * certified(common, trials, one) > 0.0


def candidates(mechanism, size=2**14, seed=3):
    rng = np.random.default_rng(seed)
    sides = (mechanism(x, size, rng) for x in (UNIT.x, UNIT.x_prime))
    return Products().telling(*sides)


@pytest.mark.parametrize("width", [2, 20, 64, 200])
def test_columns_that_are_independent_on_both_sides_have_no_scores(width):
    """However far apart the sides are. At 5 standard errors: at most 4,000 x 6e-7 an audit."""
    for noise in ("normal", "laplace", "exponential", "standard_cauchy"):

        def shifted(x, size, rng, noise=noise):
            return 3.0 * x + getattr(rng, noise)(size=(size, width))

        assert candidates(shifted) == ()


def test_few_patterns_are_left_to_tables_of_them():
    assert candidates(twisted(width=4, i=0, j=3)) == ()
    assert candidates(twisted(width=24)) != ()


def test_at_most_512_columns_are_compared_each_with_its_neighbour():
    width = 2 * MOST_COLUMNS
    found = candidates(twisted(i=100, j=101, width=width), 2**11)
    assert all(score.entries.size <= MOST_COLUMNS for score in found)
    every = [twisted(i=i, j=i + 1, width=width) for i in range(0, width - 1, 128)]
    assert sum(bool(candidates(one, 2000)) for one in every) >= len(every) // 2 - 1


def test_rows_that_vary_count_among_the_512():
    def sparse(x, size, rng):
        wide = np.zeros((size, 5000))
        wide[:, ::100] = twisted(width=50)(x, size, rng)
        return wide

    assert str(candidates(sparse, 2**12)[0]) == "product of the signs of entries 400 and 1900"


def naive(score, rows, value):
    terms = list(zip(score.first, score.second, score.weights, strict=True))
    known = [[value(score, row, i) for i in range(len(score.entries))] for row in rows]
    return [sum(w * row[i] * row[j] for i, j, w in terms) for row in known]


def sign(score, row, i):
    entry, centre = row[score.entries[i]], score.centres[i]
    return int(entry >= centre) - int(entry < centre) if entry == entry else 0


def scaled(score, row, i):
    value = (row[score.entries[i]] - score.centres[i]) / score.scales[i]
    return min(max(value, -16.0), 16.0) if value == value else 0.0


def odd_rows():
    rows = np.random.default_rng(5).normal(size=(300, 6)) * 10.0
    rows[:40, 1], rows[20:60, 4], rows[50:70, 0] = np.nan, np.inf, -np.inf
    rows[80:90] = 1e308
    return rows


PAIRS = np.array(list(itertools.combinations(range(4), 2))).T


def test_scores_are_what_a_loop_says_also_of_nan_and_infinities():
    weights = np.linspace(-2.0, 3.0, PAIRS.shape[1])
    signs = SignProducts([0, 1, 4, 5], [0.0, 1.0, -2.0, 0.5], *PAIRS, weights)
    values = ValueProducts(signs.entries, signs.centres, [1.0, 2.0, 9.0, 4.0], *PAIRS, weights)
    rows = odd_rows()
    for score, value in ((signs, sign), (values, scaled)):
        found = score(rows)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, naive(score, rows, value), rtol=1e-12, atol=1e-9)
        # A row's score does not depend on its neighbours.
        alone = np.concatenate([score(rows[i : i + 1]) for i in range(len(rows))])
        assert alone.tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f2", "u8"])
def test_scores_read_every_kind_of_number(dtype):
    rows = np.random.default_rng(2).integers(0, 2, (50, 3)).astype(dtype)
    score = SignProducts([0, 2], [0.5, 0.5], [0], [1], [1.0])
    assert score(rows).tolist() == np.where(rows[:, 0] == rows[:, 2], 1.0, -1.0).tolist()
    assert candidates(lambda x, size, rng: twisted()(x, size, rng).astype(dtype)) != ()


def test_nan_and_infinities_do_not_hide_a_pair():
    def broken(x, size, rng):
        outputs = correlated(0.9, 0.0)(x, size, rng)
        outputs[rng.random(size) < 0.1, 4] = np.nan
        outputs[rng.random(size) < 0.1, 13] = np.inf
        outputs[:, 0], outputs[:, 1] = np.nan, np.inf
        return outputs

    assert any(set(score.entries) == {4, 13} for score in candidates(broken))


@pytest.mark.parametrize(
    "outputs",
    [
        np.zeros((100, 3)), np.zeros((100, 1)), np.full((100, 2), np.nan), np.full((100, 2), "a"),
        np.zeros((100, 0)), np.full((100, 2), None),
    ],
    ids=["constant", "one column", "nan", "strings", "empty", "objects"],
)  # fmt: skip
def test_it_does_not_apply_to_constants_and_other_kinds(outputs):
    assert Products().telling(outputs, outputs) == ()


def test_rows_are_familiar_only_where_they_come_again_and_again():
    rng = np.random.default_rng(1)
    assert has_few_distinct_rows(rng.integers(0, 10, (5000, 2)), rng.integers(0, 10, (5000, 2)))
    assert not has_few_distinct_rows(
        rng.integers(0, 100, (5000, 2)), rng.integers(0, 100, (5000, 2))
    )
    assert not has_few_distinct_rows(rng.normal(size=(5000, 1)), rng.normal(size=(5000, 1)))
    assert has_few_distinct_rows(np.zeros((5000, 3), dtype=bool), np.zeros((5000, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entries": []}, "entries must be at least one place"),
        ({"entries": [-1, 2]}, "entries must be at least one place"),
        ({"centres": [0.0]}, "centres must be finite and of shape"),
        ({"centres": [0.0, np.nan]}, "centres must be finite"),
        ({"second": [2]}, "second must be from 0 to 1"),
        ({"weights": [1.0, 2.0]}, "weights must be finite and of shape"),
        ({"scales": [1.0, 0.0]}, "scales must be above 0"),
    ],
)
def test_tables_that_do_not_fit_are_refused(change, message):
    good = {"entries": [0, 1], "centres": [0.0, 0.0], "first": [0], "second": [1]}
    good |= {"weights": [1.0], "scales": [1.0, 1.0]}
    with pytest.raises(ValueError, match=message):
        ValueProducts(**good | change)
    if "scales" not in change:
        with pytest.raises(ValueError, match=message):
            SignProducts(**{k: v for k, v in (good | change).items() if k != "scales"})


# Products and residues alike.


def noisy_count(x, size, rng):
    """Two-sided geometric noise of scale 50 on a count: loses 1 / 50 a unit."""
    noise = rng.geometric(1.0 - math.exp(-1.0 / 50.0), (2, size, 1))
    return (x + noise[0] - noise[1]).astype(np.int64)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("mechanism", "loss", "attack"),
    [
        (twisted(), LOSS, Products()), (twisted(i=2, j=7, width=12), LOSS, Products()),
        (odd(), LOSS, None), (noisy_count, 1.0 / 50.0, None),
    ],
    ids=["32", "12", "odd", "count"],
)  # fmt: skip
def test_a_true_claim_is_refuted_as_seldom_as_promised(mechanism, loss, attack):
    """At the exact loss with the exact bound at 90 %: significance 1e-4."""
    assert count_refutations(mechanism, loss, attack=attack) <= MOST


@pytest.mark.sweep
@pytest.mark.parametrize(("mechanism", "attack"), [(twisted(), Products()), (odd(), None)])
def test_control_two_thirds_of_the_loss_are_refuted_often(mechanism, attack):
    options = {"attack": attack, "trials": 2000, "audits": 20}
    assert count_refutations(mechanism, LOSS * 2 / 3, **options) > 15


@pytest.mark.parametrize(
    ("mechanism", "attack", "score"),
    [
        (twisted(), Products(), SignProducts), (correlated(0.9, 0.0), Products(), ValueProducts),
        (odd(), None, ResidueRatio),
    ],
)  # fmt: skip
def test_a_record_comes_back_from_json_and_counts_the_same(mechanism, attack, score):
    report = dpcore.audit(mechanism, UNIT, attack=attack, trials=20000, claim=1.0, rng=1)
    assert isinstance(report.event.score, score)
    back = dpcore.Audit.from_json(report.to_json())
    assert (back.event, back.counts) == (report.event, report.counts)
    assert int(back.event(report.outputs("x", 0, 20000)).sum()) == report.counts.k


@pytest.mark.parametrize("attack", [Products(), Residues()])
def test_by_name_they_certify_nothing_where_nothing_tells(attack):
    pair = Pair([0.0, 0.0], [1.0, 1.0])
    report = dpcore.audit(dpcore.Laplace(9.0), pair, attack=attack, trials=1000, claim=1.0, rng=1)
    assert report.epsilon_lower == 0.0


# Residues of whole numbers: what they see, that they stay sound, and their arithmetic.


PARITY = 2.936
"""What the event "the number is even" certifies with 10^6 trials at 95 %."""


def test_the_figure_is_what_a_hand_written_event_certifies():
    assert told(odd(), lambda outputs: outputs[:, 0] % 2 == 0) == pytest.approx(PARITY, abs=0.01)


@pytest.mark.parametrize(
    "turned",
    [
        {}, {"dtype": np.float64}, {"offset": 12345}, {"sign": -1},
        {"offset": 2**52, "dtype": np.float64}, {"offset": 2**62}, {"scale": 1e12},
    ],
    ids=str,
)  # fmt: skip
def test_the_parity_of_a_whole_number_is_seen(turned):
    """Before: 0."""
    assert certified(odd(**turned), 10**6 if not turned else 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("column", [0, 7])
def test_the_parity_of_one_column_of_many_is_seen_wherever_it_is(column):
    def among(x, size, rng):
        outputs = rng.integers(-1000, 1000, (size, 8))
        outputs[:, column] = odd()(x, size, rng)[:, 0]
        return outputs

    assert certified(among, 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_the_parity_of_a_sum_is_seen(shuffled):
    """The last column makes the sum even or odd; each column, and each pair, says nothing."""

    def balanced(x, size, rng):
        outputs = rng.integers(0, 1000, (size, 6))
        outputs[:, -1] += (outputs.sum(axis=1) + secret(x, size, rng)) % 2
        return outputs[:, [3, 5, 0, 1, 4, 2]] if shuffled else outputs

    assert certified(balanced, 2 * 10**5) > 0.9 * PARITY


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float64])
def test_a_sum_is_seen_whatever_its_sign(dtype, sign):
    """Sums of short integers below 0 were once left out as if they had no residue."""
    plain, leaky = np.random.default_rng(3).integers(0, 1000, (2, 4000, 5))
    leaky[:, 4] -= leaky.sum(axis=1) % 7
    sides = [(sign * side).astype(dtype) for side in (leaky, plain)]
    found = Residues().candidates(*sides, UNIT)
    assert "log-likelihood ratio of the sum of the entries modulo 7" in map(str, found)
    # The control: two halves of the same numbers.
    halves = sides[1][::2], sides[1][1::2]
    assert not any("modulo" in str(score) for score in Residues().candidates(*halves, UNIT))


@pytest.mark.parametrize("modulus", MODULI)
def test_every_modulus_is_found_and_no_multiple_of_it(modulus):
    """Multiples of m come more often on x'; of a divisor they come less often than that."""

    def stepped(x, size, rng):
        outputs = rng.integers(-(10**6), 10**6, (size, 1))
        outputs -= np.where(rng.random((size, 1)) < 0.5 * x[0], outputs % modulus, 0)
        return outputs

    rng = np.random.default_rng(3)
    scores = Residues().telling(*(stepped(x, 2**15, rng) for x in (UNIT.x, UNIT.x_prime)))
    assert [score.modulus for score in scores] == [modulus]


def test_columns_that_each_tell_a_little_are_added():
    def several(x, size, rng):
        wide = 2 * rng.integers(-(10**6), 10**6, (size, 5))
        return wide + (rng.random((size, 5)) < 0.4 + 0.2 * x[0])

    # All five even: five times the loss ln 1.5 of one, or ln(.6 / .4)^5 = 2.03.
    assert certified(several, 2 * 10**5) > 0.9 * 5 * math.log(1.5)


@pytest.mark.parametrize("columns", [1, 20])
def test_numbers_that_say_nothing_have_no_scores(columns):
    """At most 15 moduli of 21 columns in 20 pilots, each by chance below 1e-7."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sides = (rng.integers(-5000, 5000, (2**13, columns)) for _ in range(2))
        assert Residues().telling(*sides) == ()


@pytest.mark.parametrize(
    "made",
    [
        lambda rng, shift: shift + rng.laplace(size=(500, 1)),
        lambda rng, shift: np.where(rng.random((500, 1)) < 0.5, 0.5, 2 * rng.integers(999) + shift),
        lambda rng, shift: 1e300 + np.zeros((500, 1)),
        lambda rng, shift: np.full((500, 1), "a"),
        lambda rng, shift: np.full((500, 1), np.nan),
        lambda rng, shift: rng.integers(0, 5, (500, 1)) + shift,
        lambda rng, shift: np.zeros((500, 0), dtype=int),
    ],
    ids=["reals", "halves", "beyond 2^53", "strings", "nan", "few", "empty"],
)
def test_it_does_not_apply_to_other_numbers_nor_to_few(made):
    rng = np.random.default_rng(1)
    assert Residues().telling(made(rng, 0), made(rng, 1)) == ()


def test_a_sentinel_does_not_hide_the_parity_of_the_rest():
    def missing(x, size, rng):
        outputs = odd(dtype=np.float64)(x, size, rng)
        outputs[rng.random(size) < 0.2] = np.nan
        outputs[rng.random(size) < 0.1] = -np.inf
        return outputs

    assert certified(missing, 2 * 10**5) > 0.9 * PARITY


NUMBERS = [0, 1, -1, 7, -7, 16, 720721, -(2**31), 2**52 + 1, 2**62 + 3, -(2**63)]


@pytest.mark.parametrize("modulus", [2, 3, 7, 16])
def test_residues_are_those_of_pythons_integers(modulus):
    small, large = [n for n in NUMBERS if abs(n) < 2**53], [2**64 - 1, 2**63, 5]
    for numbers, kind in ((NUMBERS, np.int64), (small, np.float64), (large, np.uint64)):
        found = residues_of(np.array(numbers, kind), modulus)
        assert found.tolist() == [n % modulus for n in numbers]
    none = [0.5, np.nan, np.inf, -np.inf, 2.0**53, -1e300]
    assert residues_of(np.array(none), modulus).tolist() == [-1] * len(none)
    assert residues_of(np.array([True, False]), modulus).tolist() == [1, 0]


@pytest.mark.parametrize("summed", [False, True], ids=["entries", "sum"])
@pytest.mark.parametrize("dtype", ["i8", "f8", "i1", "u8"])
def test_scores_are_what_a_loop_says(summed, dtype):
    rows = np.random.default_rng(4).integers(0, 100, (200, 4)).astype(dtype)
    if dtype == "f8":
        rows[:20, 0], rows[10:30, 2], rows[40, 3] = np.nan, 0.5, np.inf
    weights = np.arange(5.0 if summed else 10.0).reshape(-1, 5) - 2.0
    found = ResidueRatio(5, [] if summed else [0, 2], weights, summed)(rows)

    def one(value, table):
        return table[int(value) % 5] if math.isfinite(value) and value == int(value) else 0.0

    for row, score in zip(rows.tolist(), found, strict=True):
        known = [int(v) for v in row if math.isfinite(v) and v == int(v)]
        naive = weights[0][sum(known) % 5] if summed else one(row[0], weights[0]) + one(
            row[2], weights[1])  # fmt: skip
        assert score == naive


def test_half_precision_raises_no_warning():
    """2^53, up to which doubles hold whole numbers, is infinite in float16."""
    halves = np.random.default_rng(7).laplace(size=(64, 1)).astype(np.float16)
    assert not (residues_of(halves, 2) >= 0).all()


def draw_bingham(x, size, rng):
    """Draw unit vectors y with density proportional to exp(2 y' x y), by rejection."""
    rows = np.empty((0, len(x)))
    while len(rows) < size:
        drawn = rng.normal(size=(2 * size, len(x)))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        exponents = 2.0 * (np.einsum("ij,jk,ik->i", drawn, x, drawn) - np.linalg.eigvalsh(x)[-1])
        rows = np.vstack([rows, drawn[rng.random(len(drawn)) < np.exp(exponents)]])
    return rows[:size]


@pytest.mark.parametrize("dim", [2, 5, 10])
def test_directions_have_a_quadratic_score(dim):
    """The seed is fixed. The reference is the exact log-likelihood ratio as the score."""
    first, second = np.linalg.qr(np.random.default_rng(5).normal(size=(dim, dim)))[0][:2]
    pair = np.outer(first, first), np.outer(second, second)

    def log_ratio(outputs):
        return 2.0 * ((outputs @ first) ** 2 - (outputs @ second) ** 2)

    report, exact = (
        dpcore.audit(draw_bingham, pair, attack=attack, trials=10**5, claim=4.0, rng=1)
        for attack in (None, Threshold(score=log_ratio))
    )
    assert report.epsilon_lower > 0.75 * exact.epsilon_lower
    assert report.epsilon_lower < 4.0


def test_directions_without_a_difference_have_no_quadratic_score():
    rng = np.random.default_rng(6)
    rows = [rng.normal(size=(4_000, 6)) for _ in range(2)]
    rows = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in rows]
    made = Products().candidates(*rows, Pair(np.zeros(6), np.ones(6)))
    assert not any(isinstance(score, ValueProducts) for score in made)
