"""Products of pairs of columns: what they see, that they stay sound, and their arithmetic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from shared_audits import MOST, count_refutations
from shared_pairs_of_columns import LOSS, UNIT, correlated, likelihood, odd, told, twisted

import dpcore
from dpcore import Pair
from dpcore.attacks import Products, Residues, Threshold
from dpcore.attacks.arrays import has_frequent_rows
from dpcore.attacks.lattice import ResidueRatio
from dpcore.attacks.products import MOST_COLUMNS, SignProducts, ValueProducts

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
    """Before, with 190 pairs: .22."""
    assert certified(correlated(0.735, -0.735, **turned)) > 0.9 * CORRELATED


@pytest.mark.parametrize(("r", "r_prime"), [(0.9, 0.0), (0.0, 0.95)])
def test_a_pair_correlated_on_one_side_alone_is_seen_by_its_difference(r, r_prime):
    knows = certified(correlated(r, r_prime), attack=Threshold(score=likelihood(r, r_prime)))
    assert certified(correlated(r, r_prime)) > 0.9 * knows > 7.0


def test_many_faint_pairs_are_added():
    """A common factor of a fifth of the variance on x: no single pair tells much."""

    def common(x, size, rng):
        outputs = rng.normal(size=(size, 12))
        return outputs if x[0] else outputs + 0.5 * rng.normal(size=(size, 1))

    one = Threshold(score=lambda outputs: outputs[:, 0] * outputs[:, 1])
    # The variance of the sum is 3 + .25 * 144 on one side, 12 on the other.
    assert certified(common, attack=Products()) > 2.0 * certified(common, attack=one) > 0.0


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
    assert has_frequent_rows(rng.integers(0, 10, (5000, 2)), rng.integers(0, 10, (5000, 2)))
    assert not has_frequent_rows(rng.integers(0, 100, (5000, 2)), rng.integers(0, 100, (5000, 2)))
    assert not has_frequent_rows(rng.normal(size=(5000, 1)), rng.normal(size=(5000, 1)))
    assert has_frequent_rows(np.zeros((5000, 3), dtype=bool), np.zeros((5000, 3)))


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
