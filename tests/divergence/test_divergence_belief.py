"""Which estimates are to be believed: the rules one by one, and data on which methods fail.

Tests of real texts need the Medical Abstracts corpus (CC BY-SA 3.0) as medical/abstracts.csv in the
folder that the environment variable DPCORE_DATA names.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from shared_divergence import judge, make_raw
from shared_extras import data

from dpcore.divergence import kl, renyi
from dpcore.divergence.reliability import ESTIMATE, REFUTED, SATURATED, UNRESOLVED

ALPHAS = np.array([1.0, 1.5, 2.0, 4.0])


def case(value, **options):
    return judge(ALPHAS, value, **options)


def test_a_small_flat_curve_is_an_estimate_and_no_more():
    judged = case(0.1)
    assert (judged.belief == ESTIMATE).all()
    assert judged.resolved.all()
    assert judged.alpha_max == (4.0, 4.0)
    assert "nothing here is certified" in judged.reason


def test_a_certificate_above_the_value_comes_first():
    certified = np.zeros((2, 4))
    certified[1, 2] = 5.03
    judged = case(5.0, certified=certified)
    assert judged.belief[1, 2] == REFUTED
    assert (judged.belief[0] == SATURATED).all()
    assert "certifies at least 5.03 for D(P1||P0) at order 2" in judged.reason
    # Within two standard errors it refutes nothing.
    certified[1, 2] = 5.02
    assert case(5.0, spread=0.011, certified=certified).belief[1, 2] == SATURATED


def test_alpha_max_is_where_the_tilted_law_leaves_the_sample():
    # D = mu^2 alpha / 2 makes alpha psi' - psi = mu^2 alpha^2 / 2 against .4 ln(1000/20) = 1.565.
    fine = 1.1 ** np.arange(0, 30)
    for mu, expected in ((0.5, 3.54), (1.0, 1.77)):
        judged = judge(fine, mu**2 * fine / 2.0, spread=0.001, ceiling=9.0)
        limit = judged.alpha_max[0]
        assert limit is not None
        assert limit <= expected < limit * 1.1**2
        assert np.isnan(judged.std_error[0, fine > limit]).all()
        assert np.isfinite(judged.std_error[0, fine <= limit]).all()


def test_no_order_beyond_a_fifth_of_the_neighbours():
    # 1 + 10/5 = 3.
    assert (case(0.1).alpha_max[0], case(0.1, k=10).alpha_max) == (4.0, (2.0, 2.0))


SAW_MORE = make_raw(0.2, (2, 4))
"""A score beside the value."""


@pytest.mark.parametrize(
    ("value", "options", "first", "others"),
    [
        # Few rows per atom.
        (0.1, {"rows": 9.9}, ESTIMATE, UNRESOLVED), (0.1, {"rows": 2.9}, UNRESOLVED, UNRESOLVED),
        (0.1, {"rows": 10.0}, ESTIMATE, ESTIMATE),
        # A score that sees more.
        (0.1, {"beside": SAW_MORE}, UNRESOLVED, UNRESOLVED),
        (0.19, {"beside": SAW_MORE}, ESTIMATE, ESTIMATE),
        # A value that cannot be told from zero.
        (0.039, {"spread": 0.01}, ESTIMATE, ESTIMATE),
        (0.1, {"spread": 0.03}, UNRESOLVED, UNRESOLVED),
        (-0.1, {"spread": 0.03}, UNRESOLVED, UNRESOLVED),
        # Within ln 2 of the ceiling.
        (4.0 - np.log(2.0) + 1e-9, {}, SATURATED, SATURATED),
        (4.0 - np.log(2.0) - 1e-9, {}, UNRESOLVED, UNRESOLVED), (np.inf, {}, SATURATED, SATURATED),
    ],
)  # fmt: skip
def test_what_one_rule_says_of_a_value(value, options, first, others):
    assert case(value, **options).belief.tolist() == [[first, others, others, others]] * 2


FAILING = {
    "wider, d = 5": (5, lambda rng, n: 2.0 * rng.normal(size=(n, 5)), 2000),
    "wider, d = 20": (20, lambda rng, n: 1.2 * rng.normal(size=(n, 20)), 2000),
    "mu = 2, d = 384": (384, lambda rng, n: rng.normal(size=(n, 384)) + _first(384, 2.0), 2000),
    "Cauchy": (1, lambda rng, n: rng.standard_cauchy((n, 1)), 2000),
}


def _first(dim, shift):
    return shift * (np.arange(dim) == 0)


def refused(estimate):
    """No value believed lies three standard errors below a certified bound."""
    spread = np.nan_to_num(estimate.std_error, nan=0.0)
    below = estimate.value + 3.0 * spread < estimate.certified
    return bool(((estimate.belief == ESTIMATE) & below).any())


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("method", ["auto", "ball"])
def test_failing_rows_are_never_believed(name, method):
    dim, draw, rows = FAILING[name]
    rng = np.random.default_rng(5)
    options = {"alphas": [2.0, 4.0], "certified": True, "rows": "independent", "rng": 1}
    estimate = renyi(draw(rng, rows), rng.normal(size=(rows, dim)), method=method, **options)
    assert not refused(estimate)
    assert not estimate.resolved.all()
    if method == "ball" and dim > 1:
        # The rule is not idle: the ball does fall short here.
        assert (np.maximum(estimate.certified, estimate.beside.value) > estimate.value).any()


def test_what_the_other_set_never_has_is_saturated_from_order_one_on():
    rng = np.random.default_rng(7)
    noise = rng.exponential(size=(2, 4000))
    # KL(P0||P1) is infinite, for P1 has no mass below 0.5; the other direction is finite.
    estimate = renyi(noise[0], noise[1] + 0.5, alphas=[0.5, 2.0], rng=1, checks=False)
    assert estimate.belief[0].tolist() == [ESTIMATE, SATURATED]
    assert "of the rows of y0 (or their scores) lie beyond all of y1" in estimate.reason
    assert estimate.belief[1, 0] == ESTIMATE
    dice = rng.integers(4, size=900), rng.integers(3, size=900)
    with pytest.warns(UserWarning, match="k = 20 exceeds the 3 distinct rows"):
        dice = renyi(*dice, alphas=[0.5, 2.0], rng=1)
    assert dice.belief[0].tolist() == [ESTIMATE, SATURATED]
    assert "repeated values that y1 does not have" in dice.reason
    assert dice.belief[1].tolist() == [ESTIMATE, ESTIMATE]


@pytest.mark.sweep
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_nulls_of_unequal_size_are_near_zero_or_not_believed(dim):
    # In the plane, where balls are searched for, the larger set is drawn from.
    larger, drawn_from = (100_000, 10_000) if dim == 2 else (20_000, 20_000)
    for seed in range(4):
        rng = np.random.default_rng((seed, dim))
        y0, y1 = rng.normal(size=(100, dim)), rng.normal(size=(larger, dim))
        estimate = renyi(y0, y1, alphas=[1.1, 2.0, 4.0], rng=seed, checks=dim > 2)
        assert (np.abs(estimate.value[estimate.resolved]) <= 0.05).all()
        noted = any("100 and 10000 rows drawn at random" in note for note in estimate.notes)
        assert (noted, estimate.sizes) == (dim == 2, (100, larger))
        assert estimate.depth == (20 * drawn_from // 100, 20)


def test_the_maximum_needs_both_directions():
    rng = np.random.default_rng(3)
    estimate = renyi(rng.normal(size=4000), rng.normal(0.5, 1.0, 4000), alphas=[2.0, 8.0], rng=1)
    assert estimate.resolved[:, 0].all()
    assert not estimate.resolved[:, 1].any()
    assert estimate.maximum[0] == estimate.value[:, 0].max()
    assert np.isnan(estimate.maximum[1])


def test_the_papers_forms_are_never_believed():
    y0, y1 = np.random.default_rng(4).normal(size=(2, 500, 2))
    estimate = renyi(y0, y1, alphas=[2.0], method="paper", rng=1)
    assert not estimate.resolved.any()
    assert "does not converge" in estimate.reason


def test_equal_sets_are_exactly_zero():
    rows = np.random.default_rng(6).normal(size=(50, 3))
    for method in ("ball", "score", "poczos", "paper"):
        estimate = renyi(rows, rows[::-1], alphas=[2.0], method=method, rng=1, checks=False)
        assert (estimate.value.tolist(), estimate.kl.tolist()) == ([[0.0]] * 2, [0.0] * 2)
        assert estimate.resolved.all()
    assert (kl(rows, rows, rng=1, checks=False).value == 0.0).all()


def test_checks_hold_what_is_certified():
    y0, y1 = np.random.default_rng(8).normal(size=(2, 1000, 2))
    estimate = renyi(y0, y1 + 1.0, alphas=[2.0], certified=True, rows="independent", rng=1)
    assert estimate.checks.epsilon_lower == estimate.epsilon(0.0).epsilon_lower > 0.5
    np.testing.assert_array_equal(estimate.checks.certified, estimate.certified)
    assert "at delta 0, certified by a held-out event" in str(estimate)
    silent = renyi(y0, y1, alphas=[2.0], rng=1).checks
    assert silent.certified is silent.epsilon_lower is None


def test_a_coordinate_that_dwarfs_the_others_is_a_warning():
    y0, y1 = np.random.default_rng(9).normal(size=(2, 100, 3)) * [1.0, 1.0, 30.0]
    with pytest.warns(UserWarning, match="variance") as seen:
        kl(y0, y1, rng=1, checks=False)
    assert len(seen) == 1
    kl(y0, y1, rng=1, checks=False, scale="std")


def test_warnings_point_at_the_caller():
    rows = np.random.default_rng(10).normal(size=(30, 1))
    with pytest.warns(UserWarning, match="rough") as seen:
        renyi(rows, rows + 0.1, alphas=[2.0], rng=1, checks=False)
    assert seen[0].filename == __file__


# Real texts, where the ball falls far below what held-out rows certify.


NEOPLASMS = "1"


@pytest.fixture(scope="module")
def embeddings():
    """TF-IDF and a truncated SVD to 50 coordinates: all other abstracts, and neoplasms."""
    path = data("medical/abstracts.csv")
    decomposition = pytest.importorskip("sklearn.decomposition")
    text = pytest.importorskip("sklearn.feature_extraction.text")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counted = text.TfidfVectorizer(min_df=2, sublinear_tf=True, stop_words="english")
    words = counted.fit_transform([row["medical_abstract"] for row in rows])
    made = decomposition.TruncatedSVD(50, random_state=0).fit_transform(words)
    neoplasm = np.array([row["condition_label"] == NEOPLASMS for row in rows])
    return made[~neoplasm], made[neoplasm]


@pytest.mark.parametrize("method", ["ball", "auto"])
def test_neoplasms_against_the_rest(embeddings, method):
    rest, neoplasms = embeddings
    assert len(rest) + len(neoplasms) == 2888
    options = {"alphas": [2.0, 4.0], "certified": True, "rows": "independent", "rng": 1}
    estimate = renyi(rest, neoplasms, method=method, **options)
    certified = estimate.certified
    assert (certified[0] > 0.5).all()
    assert not refused(estimate)
    if method == "ball":
        # The rule is needed: the score beside, or the certificate, lies far above the ball.
        above = np.maximum(estimate.beside.value, certified)[0]
        assert (above > estimate.value[0] + 3.0 * np.nan_to_num(estimate.std_error[0])).all()
        assert not (estimate.belief[0] == ESTIMATE).any()
