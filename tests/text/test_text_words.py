"""Mechanisms that replace words: tables against plain formulas, losses against all outputs."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from shared_extras import data

import dpcore
from dpcore import Pair
from dpcore.text import words
from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

RNG = np.random.default_rng(27)
NAMES = tuple(f"word{i}" for i in range(40))
SPACES = {dim: Embedding(NAMES, RNG.normal(size=(40, dim))) for dim in (1, 3, 20)}
SMALL = Embedding(("bad", "fine", "good", "grim"), [[0.0], [4.0], [5.0], [1.0]])


def distances(vectors):
    rows = vectors.vectors
    return np.array([[math.dist(one, other) for other in rows] for one in rows])


def whole(mech):
    return mech.log_rows(0, len(mech.words))


def naive_worst(rows):
    """The largest loss of every two words over all outputs."""
    with np.errstate(invalid="ignore"):
        losses = rows[:, None, :] - rows[None, :, :]
    # Outputs that neither word has.
    return np.where(np.isnan(losses), 0.0, losses).max(axis=2)


def tables():
    for dim, vectors in SPACES.items():
        yield f"SanText-{dim}", SanText(vectors, 3.0)
        # gamma is below the diameter, so that both branches are there.
        yield f"TEM-{dim}", TEM(vectors, 12.0)
        yield f"SanTextPlus-{dim}", SanTextPlus(vectors, 3.0, NAMES[10:], p=0.3)
        yield f"conservative-{dim}", CusText(vectors, 2.0, k=7)
        yield f"aggressive-{dim}", CusText(vectors, 2.0, k=7, mapping="aggressive")
    yield "MetricLaplace-1", MetricLaplace(SPACES[1], 2.0)
    yield "Vickrey-1", Vickrey(SPACES[1], 2.0, t=0.4)


TABLES = dict(tables())


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_probabilities_and_blocks_are_parts_of_the_table(name):
    mech = TABLES[name]
    rows = whole(mech)
    assert mech.shape == rows.shape == (40, 40)
    assert np.abs(np.exp(rows).sum(axis=1) - 1.0).max() < 1e-9
    np.testing.assert_allclose(mech.log_rows(7, 9), rows[7:9], rtol=0, atol=1e-10)
    for start, stop in ((-1, 2), (3, 2), (0, 41)):
        with pytest.raises(ValueError, match=r"^st"):
            mech.log_rows(start, stop)


@pytest.mark.parametrize("dim", SPACES)
def test_santext_is_its_formula(dim):
    apart = distances(SPACES[dim])
    np.testing.assert_allclose(SanText(SPACES[dim], 3.0).distance_rows(0, 40), apart, atol=1e-12)
    scores = np.exp(-1.5 * apart)
    rows = np.log(scores / scores.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(whole(TABLES[f"SanText-{dim}"]), rows, atol=1e-10)
    # TEM's rows are compared where its published fault is.
    gamma = 2 / 12.0 * math.log(0.999 * 39 / 0.001)
    assert TABLES[f"TEM-{dim}"].gamma == pytest.approx(gamma)
    assert (apart > gamma).any()


@pytest.mark.parametrize("dim", SPACES)
def test_santextplus_and_custext_are_their_formulas(dim):
    apart = distances(SPACES[dim])
    sensitive = np.arange(40) >= 10
    scores = np.where(sensitive, np.exp(-1.5 * apart), 0.0)
    rows = scores / scores.sum(axis=1, keepdims=True)
    rows[:10] *= 0.3
    rows[range(10), range(10)] += 0.7
    plus = TABLES[f"SanTextPlus-{dim}"]
    np.testing.assert_allclose(np.exp(whole(plus)), rows, rtol=1e-9)
    assert not hasattr(plus, "loss_rows")
    left, lists = list(range(40)), {}
    while left:
        cluster = sorted(left, key=lambda y: (apart[left[0], y], y))[:7]
        lists |= dict.fromkeys(cluster, cluster)
        left = [y for y in left if y not in cluster]
    near = {x: sorted(range(40), key=lambda y: (apart[x, y], y))[:7] for x in range(40)}
    for mapping, found in (("conservative", lists), ("aggressive", near)):
        mech = TABLES[f"{mapping}-{dim}"]
        for x, row in enumerate(np.exp(whole(mech))):
            away = apart[x, found[x]]
            weights = np.exp((away.max() - away) / (away.max() - away.min()))
            wanted = np.zeros(40)
            wanted[found[x]] = weights / weights.sum()
            np.testing.assert_allclose(row, wanted, rtol=1e-9)
        same = [[set(found[x]) == set(found[y]) for y in range(40)] for x in range(40)]
        np.testing.assert_array_equal(mech.same_list, same)
        worst = naive_worst(whole(mech))
        # Epsilon holds within a list, and nothing across lists.
        assert worst[mech.same_list].max() <= 2.0 + 1e-9
        assert np.isinf(worst[~mech.same_list]).all()
    assert not hasattr(mech, "distance_rows")


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith(("SanText-", "TEM"))])
def test_the_closed_form_is_the_largest_loss_over_all_outputs(name):
    mech = TABLES[name]
    rows = whole(mech)
    losses, outputs = mech.loss_rows(0, 40)
    np.testing.assert_allclose(losses, naive_worst(rows), rtol=0, atol=1e-10)
    np.testing.assert_allclose(mech.loss_rows(5, 9)[0], losses[5:9], rtol=0, atol=1e-12)
    x, x_prime = np.indices((40, 40))
    attained = rows[x, outputs] - rows[x_prime, outputs]
    np.testing.assert_allclose(attained, losses, rtol=0, atol=1e-10)
    # The claim holds: the largest loss is at most epsilon times the distance.
    assert (losses <= mech.epsilon * mech.distance_rows(0, 40) + 1e-9).all()


def test_near_vectors_keep_their_distance():
    rows = RNG.normal(size=(30, 50))
    rows[1] = rows[0] + 1e-9 * RNG.normal(size=50)
    vectors = Embedding(NAMES[:30], rows)
    found = SanText(vectors, 1.0).distance_rows(0, 30)
    np.testing.assert_allclose(found, distances(vectors), rtol=1e-10)
    assert (found.diagonal() == 0.0).all()


@pytest.mark.parametrize(
    ("epsilon", "ratio", "pair", "kept"),
    [
        (1.0, 0.5697, ("aii", "just"), 0.002),
        (5.0, 0.5713, ("aii", "just"), 0.026),
        (10.0, 0.5476, ("ain", "do"), 0.411),
        (30.0, 0.5032, ("two", "four"), 0.9998),
    ],
)
def test_santext_on_real_vectors_has_the_known_loss(epsilon, ratio, pair, kept):
    mech = SanText(Embedding.load(data("words", "wordvecs1000.js")), epsilon)
    apart = mech.distance_rows(0, 1000)
    np.fill_diagonal(apart, np.inf)
    ratios = mech.loss_rows(0, 1000)[0] / (epsilon * apart)
    x, x_prime = np.unravel_index(ratios.argmax(), ratios.shape)
    assert (mech.words[x], mech.words[x_prime]) == pair
    assert ratios.max() == pytest.approx(ratio, abs=5e-5)
    assert np.exp(whole(mech).diagonal()).mean() == pytest.approx(kept, abs=5e-4)
    found = mech.pair(*pair)
    assert mech.loss(found) / found.distance == pytest.approx(epsilon * ratio, rel=1e-4)
    if epsilon == 10.0:
        # The known exact loss is 5.4756 per unit of distance; the default attack certifies most.
        report = dpcore.audit(mech, found, trials=10**6, rng=1)
        assert 5.32 < report.epsilon_lower < 5.4756
        assert report.claim == 10.0
        assert report.undecided.startswith("1,000,000 trials certify at most ")


def test_an_audit_reads_claim_and_distance_and_refutes_a_smaller_claim():
    mech = SanText(SMALL, 2.0)
    pair = mech.pair("good", "bad")
    assert pair == Pair("good", "bad", 5.0)
    report = dpcore.audit(mech, pair, trials=100_000, rng=1)
    assert (report.claim, report.verdict) == (2.0, "not refuted by this attack")
    exact = mech.loss(pair) / 5.0
    assert 0.9 * exact < report.epsilon_lower <= exact
    assert dpcore.audit(mech, pair, claim=0.8 * exact, trials=100_000, rng=1).refuted
    texts = mech.pair("Good, fine!", "bad grim")
    assert texts.distance == pytest.approx(5.0 + 3.0)
    report = dpcore.audit(mech, texts, trials=20_000, rng=1)
    assert report.verdict == "undecided: 20,000 trials certify at most 1.07"
    rewritten = mech.rewriter("Good, fine!", 3, np.random.default_rng(1))
    assert rewritten == mech.rewrite(["good fine"] * 3, rng=np.random.default_rng(1))


def test_reports_name_vectors_and_do_not_hold_them():
    mech = SanText(SPACES[3], 3.0)
    assert repr(mech) == f"SanText(<40 words, dim=3, sha256 {SPACES[3].sha256[:16]}>, epsilon=3.0)"
    report = dpcore.audit(mech, mech.pair("word1", "word2"), trials=2000, rng=1)
    assert json.loads(report.to_json())["mechanism"] == {"repr": repr(mech)}
    number = repr(float(SPACES[3].vectors[0, 0]))[:8]
    for text in (report.to_json(), report.to_html(), str(report)):
        assert "word1" in text
        assert number not in text
    plus = SanTextPlus(SPACES[3], 3.0, NAMES[10:])
    assert repr(plus).endswith("epsilon=3.0, <30 words>, p=0.3, from_texts=False)")


def test_losses_at_delta_are_those_of_all_events():
    mech = SanText(SMALL, 1.0)
    rows = np.exp(whole(mech))
    pair = mech.pair("good", "bad")
    for delta in (0.01, 0.2, 0.6):
        found = mech.loss(pair, delta)
        excess = max(
            rows[one, list(event)].sum() - math.exp(found) * rows[other, list(event)].sum()
            for one, other in ((2, 0), (0, 2))
            for size in range(5)
            for event in itertools.combinations(range(4), size)
        )
        assert excess == pytest.approx(delta, rel=1e-9) if found else excess <= delta
    assert mech.loss(pair, 0.999) == 0.0
    assert mech.loss(pair) == pytest.approx(np.abs(np.log(rows[2] / rows[0])).max(), rel=1e-12)


def test_losses_of_texts_add_up_and_unequal_lengths_are_infinite():
    mech = SanText(SMALL, 1.0)
    pair = mech.pair("good fine", "bad grim")
    rows = whole(mech)
    sums = [rows[2] - rows[0], rows[1] - rows[3]]
    exact = max(sum(one.max() for one in sums), -sum(one.min() for one in sums))
    assert mech.loss(pair) == pytest.approx(exact)
    assert (mech.loss(Pair("good", "good bad")), mech.loss(pair, 0.1)) == (math.inf, None)
    assert mech.loss(Pair("good bad", "good bad")) == 0.0
    outputs = np.array([[0, 1], [3, 2]])
    wanted = [sums[0][0] + sums[1][1], sums[0][3] + sums[1][2]]
    np.testing.assert_allclose(mech.log_ratio(outputs, pair), wanted)
    one = mech.log_ratio([0, 3], Pair("good", "bad"))
    np.testing.assert_allclose(one, sums[0][[0, 3]])
    assert mech.notes_on(pair) != () == mech.notes_on(Pair("good", "bad"))
    custom = CusText(SMALL, 1.0, k=2)
    assert custom.log_ratio([0, 1, 2], Pair("bad", "good")).tolist() == [
        math.inf, -math.inf, -math.inf,
    ]  # fmt: skip
    assert "different lists" in custom.notes_on(Pair("bad", "good"))[-1]
    assert custom.pair("bad fine", "good fine").distance == 1.0


def test_losses_of_texts_at_delta_bound_all_events():
    mech = SanText(SMALL, 1.0)
    found = mech.text_loss("good fine good good", "bad grim bad fine", delta=0.05)
    rows = whole(mech)
    places = [(2, 0), (1, 3), (2, 0), (2, 1)]
    losses, mass = np.zeros(1), np.ones(1)
    for x, x_prime in places:
        losses = np.add.outer(losses, rows[x] - rows[x_prime]).ravel()
        mass = np.multiply.outer(mass, np.exp(rows[x])).ravel()
    assert found.whole == pytest.approx(np.abs(losses).max())
    assert found.one_word == max(mech.loss(Pair(*map(int, one))) for one in places)
    assert (found.words, found.changed, found.claimed) == (4, 4, pytest.approx(5 + 3 + 5 + 1.0))
    excess = (mass * -np.expm1(np.minimum(found.at_delta - losses, 0.0))).sum()
    # The bound holds, and it is not idle: the exact loss at this delta is at least half of it.
    assert excess <= 0.05
    assert (mass * -np.expm1(np.minimum(found.at_delta / 2 - losses, 0.0))).sum() > 0.05
    assert found.at_delta < found.whole
    assert mech.text_loss("good", "bad", delta=1e-12).at_delta <= mech.loss(Pair("good", "bad"))
    assert CusText(SMALL, 1.0, k=2).text_loss("bad fine", "good fine").at_delta == math.inf
    assert "texts of 4 words that differ in 4" in str(found)


@pytest.mark.parametrize(("epsilon", "whole", "at_delta"), [(1, 120, 4.9), (10, 1182, 733)])
def test_santext_on_texts_of_real_words_has_about_the_known_losses(epsilon, whole, at_delta):
    vectors = Embedding.load(data("words", "wordvecs1000.js"))
    order = np.random.default_rng(0).permutation(1000)[:360]
    texts = [[vectors.words[i] for i in part] for part in (order[:180], order[180:])]
    found = SanText(vectors, float(epsilon)).text_loss(*texts)
    # Other random words than those of the figures: within 3 %.
    assert found.whole == pytest.approx(whole, rel=0.03)
    assert found.at_delta == pytest.approx(at_delta, rel=0.03)


@pytest.mark.parametrize("kind", [SanText, TEM, MetricLaplace, Vickrey])
def test_the_calibrated_epsilon_has_the_loss(kind):
    found = words.calibrate(kind, SPACES[3], loss=4.0)
    epsilon = found.mechanism.epsilon
    if found.is_exact:
        assert naive_worst(whole(found.mechanism)).max() == pytest.approx(4.0, rel=1e-6)
        # The control: another epsilon has another loss.
        assert abs(naive_worst(whole(kind(SPACES[3], 1.01 * epsilon))).max() - 4.0) > 1e-3
    else:
        assert epsilon * distances(SPACES[3]).max() == pytest.approx(4.0)
    assert found.is_exact == (kind in (SanText, TEM))
    assert ("exact" in str(found)) == found.is_exact


def test_above_one_dimension_noise_has_no_table():
    for mech in (MetricLaplace(SPACES[3], 2.0), Vickrey(SPACES[3], 2.0)):
        on_line = type(mech)(SPACES[1], 2.0)
        assert (mech.has_table, on_line.has_table) == (False, True)
        for name in ("log_rows", "log_ratio", "loss", "add_unknown_row"):
            assert not hasattr(mech, name)
            assert hasattr(on_line, name)
        with pytest.raises(TypeError, match="table must be a matrix of real numbers"):
            dpcore.audit_table(mech)
        assert dpcore.audit_table(on_line, claim=2.0).verdict == "holds for this table"
        found = dpcore.audit(mech, mech.pair("word1", "word2"), trials=2_000, rng=1)
        assert found.verdict == "not refuted by this attack"
        assert "log ratio" not in str(found)
        # The subclass refuses what is no line, and does not read its first numbers alone.
        with pytest.raises(ValueError, match=r"reshape|rows of 1"):
            type(on_line)(SPACES[3], 2.0).log_rows(0, 1)
        np.testing.assert_allclose(mech.distance_rows(0, 2), distances(SPACES[3])[:2])


def test_metric_laplace_on_a_line_loses_what_it_claims():
    mech = MetricLaplace(Embedding(NAMES, np.linspace(0.0, 2.0, 40)[:, None]), 3.0)
    losses = naive_worst(whole(mech))
    apart = mech.distance_rows(0, 40)
    assert (losses <= 3.0 * apart + 1e-9).all()
    assert (losses / np.where(apart > 0.0, 3.0 * apart, 1.0)).max() == pytest.approx(1.0, rel=1e-6)
    # Far in the tails, where plain probabilities are 0.
    far = MetricLaplace(SMALL, 400.0)
    assert far.log_rows(0, 1)[0, 2] == pytest.approx(-400.0 * 4.5 - math.log(2.0))
    assert naive_worst(whole(Vickrey(SMALL, 400.0)))[0, 2] <= 2000.0 + 1e-9


def test_vickrey_without_a_second_word_is_metric_laplace():
    noisy, first = MetricLaplace(SPACES[1], 2.0), Vickrey(SPACES[1], 2.0, t=0.0)
    np.testing.assert_allclose(whole(first), whole(noisy), rtol=1e-9)


def test_mechanisms_are_equal_hashed_and_pickled_by_their_fields():
    for mech in TABLES.values():
        again = pickle.loads(pickle.dumps(mech))
        assert (again, hash(again)) == (mech, hash(mech))
        assert again("word3", 5, 1).tolist() == mech("word3", 5, 1).tolist()
    assert SanText(SMALL, 1.0) != SanText(SMALL, 2.0)


def test_rarest_words_of_texts_are_sensitive_and_flagged():
    mech = SanTextPlus.rarest(SMALL, 1.0, ["good good fine", "bad good"], share=0.5)
    assert (mech.sensitive, mech.from_texts) == (("grim", "bad"), True)
    assert "private texts" in mech.notes_on(Pair("good", "bad"))[-1]
    assert SanTextPlus(SMALL, 1.0, ("bad",)).notes_on(Pair("good", "bad")) == ()


def test_noise_on_a_line_of_many_words_is_drawn():
    many = Embedding([str(i) for i in range(2**16 + 1)], np.arange(2.0**16 + 1)[:, None])
    assert MetricLaplace(many, 1000.0)("5", 3, 1).tolist() == [5, 5, 5]


WORDS = [f"w{i}" for i in range(40)]
VECTORS = Embedding(WORDS, np.random.default_rng(1).normal(size=(40, 6)))
ROWS = np.random.default_rng(2).integers(0, 40, (60, 8))
TEXTS = [" ".join(WORDS[i] for i in row) for row in ROWS]


def numbers_of(texts):
    return np.array([[WORDS.index(word) for word in text.split()] for text in texts])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_likeliest_original_is_chosen(epsilon):
    mech = SanText(VECTORS, epsilon)
    outputs = mech.rewrite(TEXTS, rng=3)
    found = words.link(mech, TEXTS, outputs)
    likelihoods = mech.log_rows(0, 40)[ROWS[:, None], numbers_of(outputs)].sum(axis=2)
    assert found.right == (likelihoods.argmax(axis=0) == np.arange(60)).sum()
    assert (found.texts, found.words, found.by) == (60, 8, "likelihood")


@pytest.mark.parametrize("kind", [SanText, MetricLaplace])
def test_no_noise_links_all_and_much_noise_links_none(kind):
    """At epsilon 1e-6 the share lies in the floor's 99.99 % interval; at 100 all are right."""
    loud, quiet = kind(VECTORS, 1e-6), kind(VECTORS, 100.0)
    assert words.link(quiet, TEXTS, quiet.rewrite(TEXTS, rng=4)).share == 1.0
    found = words.link(loud, TEXTS, loud.rewrite(TEXTS, rng=4), confidence=0.9999)
    assert found.interval[0] <= found.floor == 1 / 60
    assert found.share < 0.2


def test_without_a_table_the_nearest_text_is_chosen():
    mech = MetricLaplace(VECTORS, 8.0)
    outputs = mech.rewrite(TEXTS, rng=5)
    found = words.link(mech, TEXTS, outputs)
    apart = distances(VECTORS)[ROWS[:, None], numbers_of(outputs)].sum(axis=2)
    assert found.right == (apart.argmin(axis=0) == np.arange(60)).sum()
    assert found.by == "distance"


def test_texts_are_cut_to_the_shortest_and_equal_ones_are_both_right():
    mech = SanText(VECTORS, 200.0)
    texts = ["w1 w2 w3", "w1 w2", "w4 w5 w6 w7"]
    found = words.link(mech, texts, mech.rewrite(texts, rng=1))
    assert (found.words, found.right, found.floor) == (2, 3, pytest.approx(2 / 3))


def test_unknown_words_are_dropped_on_request():
    mech = SanText(VECTORS, 200.0)
    texts = ["w1 strange w2", "w3 w4"]
    outputs = mech.rewrite(texts, unknown="drop", rng=1)
    assert words.link(mech, texts, outputs, unknown="drop").right == 2
    with pytest.raises(ValueError, match=r"originals\[0\] must be made of words with a vector"):
        words.link(mech, texts, outputs)
