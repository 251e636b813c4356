"""Distances of arrays and of next-word models, against formulas computed in another way."""

import json
import math
from functools import cache

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes, qr
from shared_extras import needs
from shared_messages import check_messages

from dpcore.text import Vocabulary, generated, lm

NAMES = ("cka", "pwcca", "procrustes")


def as_tuple(found):
    return tuple(getattr(found, name) for name in NAMES)


@cache
def arrays(seed=0, rows=500, columns=64):
    """Two arrays with common directions, and columns of unequal sizes."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rows, columns)) * np.exp(rng.normal(size=columns))
    b = a @ rng.normal(size=(columns, columns)) / columns**0.5 + rng.normal(size=(rows, columns))
    return a, b


def maps(columns=64, seed=1):
    """An orthogonal map, and an invertible one with condition number 10."""
    rng = np.random.default_rng(seed)
    one, other = (np.linalg.qr(rng.normal(size=(columns, columns)))[0] for _ in range(2))
    return one, one @ np.diag(np.linspace(0.2, 2.0, columns)) @ other


def by_gram_matrices(a, b):
    """CKA from the matrices of inner products of the rows, which Kornblith et al. begin with."""
    k, m = ((x - x.mean(axis=0)) @ (x - x.mean(axis=0)).T for x in (a, b))
    return 1.0 - (k * m).sum() / math.sqrt((k * k).sum() * (m * m).sum())


def by_qr(a, b):
    """PWCCA from QR decompositions; neurons in rows, as its authors have them."""
    a, b = ((x - x.mean(axis=0)).T for x in (a, b))
    q, p = (qr(x.T, mode="economic")[0] for x in (a, b))
    left, correlations, _ = np.linalg.svd(q.T @ p)
    directions = q @ left
    directions = directions.T[: len(correlations)]
    weights = [sum(abs(float(h @ neuron)) for neuron in a) for h in directions]
    return 1.0 - float(np.dot(weights, correlations)) / sum(weights)


def by_rotation(a, b):
    """Squared distance of a and of b after the best rotation, which scipy finds."""
    a, b = ((x - x.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0)) for x in (a, b))
    rotation, _ = orthogonal_procrustes(b, a)
    return float(np.linalg.norm(a - b @ rotation) ** 2)


@pytest.mark.parametrize(("rows", "columns"), [(300, 20), (9, 8), (50, 1)])
def test_the_three_agree_with_other_formulas(rows, columns):
    for a, b in (arrays(3, rows, columns), arrays(4, rows, columns)[::-1]):
        found = lm.representation_distances(a, b)
        assert found.cka == pytest.approx(by_gram_matrices(a, b), abs=1e-10)
        assert found.pwcca == pytest.approx(by_qr(a, b), abs=1e-10)
        assert found.procrustes == pytest.approx(by_rotation(a, b), abs=1e-10)
        assert min(as_tuple(found)) >= 0.0
        assert max(found.cka, found.pwcca) <= 1.0
        assert found.procrustes <= 2.0
        assert (found.rows, found.columns, found.directions) == (rows, *[(columns, columns)] * 2)


def test_values_that_can_be_computed_by_hand():
    # Columns of (1, -1, 0, 0) and (0, 0, 1, -1) have no covariance: as far as can be.
    a, b = np.array([[1.0], [-1.0], [0.0], [0.0]]), np.array([[0.0], [0.0], [1.0], [-1.0]])
    # One column with correlation r: 1 - r^2, 1 - |r| and 2 - 2 |r|; here r = 1/2.
    half = np.array([[1.0], [0.0], [-1.0], [0.0]])
    for other, wanted in (
        (b, (1.0, 1.0, 2.0)), (-3.0 * a + 7.0, (0.0, 0.0, 0.0)), (half, (0.75, 0.5, 1.0)),
    ):  # fmt: skip
        found = as_tuple(lm.representation_distances(a, other))
        assert found == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize("place", [0, 1])
def test_scale_shift_and_orthogonal_maps_change_nothing(place):
    both, (turn, _) = arrays(), maps()
    before = as_tuple(lm.representation_distances(*both))
    moved = list(both)
    shift = np.linspace(-3.0, 3.0, 64)
    moved[place] = 1e3 * both[place] + shift
    assert as_tuple(lm.representation_distances(*moved)) == pytest.approx(before, abs=1e-10)
    moved[place] = -1e-3 * both[place] @ turn + shift
    after = as_tuple(lm.representation_distances(*moved))
    assert after[::2] == pytest.approx(before[::2], abs=1e-10)
    # The weights of PWCCA are sums over the columns of the first array: a turn changes them.
    if place:
        assert after[1] == pytest.approx(before[1], abs=1e-10)
    else:
        assert abs(after[1] - before[1]) > 1e-4


def test_any_invertible_map_of_the_second_array_changes_nothing_but_for_pwcca():
    a, (_, stretch) = arrays()[0], maps()
    b = a + 0.5 * np.random.default_rng(5).normal(size=a.shape)
    before, after = lm.representation_distances(a, b), lm.representation_distances(a, b @ stretch)
    assert after.pwcca == pytest.approx(before.pwcca, abs=1e-10)
    # Control: the others see the map; CKA and Procrustes at least double.
    assert after.cka > 2.0 * before.cka
    assert after.procrustes > 2.0 * before.procrustes
    # The first array is not free: its own columns are the weights.
    assert abs(lm.representation_distances(a @ stretch, b).pwcca - before.pwcca) > 1e-4


def test_directions_that_are_rounding_are_left_out():
    a, b = arrays()
    # A column more that is the sum of two others: a direction without a length.
    found = lm.representation_distances(a, np.column_stack([b, b[:, 0] + b[:, 1]]))
    assert (found.columns, found.directions) == ((64, 65), (64, 64))
    assert found.pwcca == pytest.approx(lm.representation_distances(a, b).pwcca, abs=1e-10)
    constant = np.column_stack([a, np.full(len(a), 0.1)])
    assert lm.representation_distances(constant, b).directions == (64, 64)
    # A small direction above the limit is read, one below it is not.
    rng = np.random.default_rng(6)
    for size, read in ((1e-8, 65), (1e-12, 64)):
        small = np.column_stack([b, size * rng.normal(size=len(b))])
        assert lm.representation_distances(a, small).directions == (64, read)


def test_arrays_of_different_width_and_of_whole_numbers():
    a, b = arrays(7, 200, 6)
    found = lm.representation_distances(a, b[:, :2])
    wide = np.column_stack([b[:, :2], np.zeros((200, 4))])
    assert found.procrustes == pytest.approx(by_rotation(a, wide), abs=1e-10)
    assert found.cka == pytest.approx(by_gram_matrices(a, b[:, :2]), abs=1e-10)
    assert found.pwcca == pytest.approx(by_qr(a, b[:, :2]), abs=1e-10)
    whole = np.arange(12).reshape(6, 2) ** 2
    same = lm.representation_distances(whole.astype(float), whole)
    assert lm.representation_distances(whole, whole.tolist()) == same
    scaled, plain = (lm.representation_distances(a * s, b / s) for s in (1e200, 1.0))
    assert scaled.cka == pytest.approx(plain.cka)


def test_what_is_printed_and_written():
    both = arrays(rows=2000, columns=8)
    found = lm.representation_distances(*both)
    assert str(found).splitlines()[0].split("  ")[-1] == "directions read"
    assert "2,000 x 8" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["columns"] == [8, 8]
    assert found == lm.representation_distances(*both) != lm.representation_distances(*both[::-1])


def compare(a, b):
    return lambda: lm.representation_distances(a, b)


def test_arrays_that_are_refused():
    value_errors = [
        *((compare(np.full((5, 2), value), np.eye(5, 2)), "a", "rows differ, got 'equal rows'")
          for value in (0.0, 0.1, 1.0)),
        (compare(np.eye(5, 2), np.eye(6, 2)), "b", "an array of as many rows as a, 5, got (6, 2)"),
        (compare(np.eye(3), np.eye(3)), "a", "numbers with more rows than columns, got (3, 3)"),
        (compare(np.eye(3, 2), np.eye(3)), "b", "a matrix of finite numbers with more rows"),
        (compare(np.arange(4.0), np.eye(4)), "a", "a matrix of finite numbers"),
        (compare(np.zeros((4, 0)), np.eye(4)), "a", "a matrix of finite numbers"),
        *((compare(np.array([[value], [1.0]]), np.eye(2)), "a", "got '1 entries that are not fin")
          for value in (math.nan, math.inf)),
        (compare(np.eye(3, 2), [[1.0], [1.0, 2.0]]), "b", "a matrix of finite numbers"),
    ]  # fmt: skip
    check_messages(ValueError, value_errors)
    type_errors = [
        (compare([["one"], ["two"]], np.eye(2)), "a", "a matrix of finite numbers"),
        (compare(np.eye(3, 2), np.eye(3, 2) * 1j), "b", "a matrix of finite numbers"),
    ]
    check_messages(TypeError, type_errors)


@cache
def models():
    """Two models of disjoint texts with one start, and held-out texts."""
    needs("torch")
    corpus = generated("intents", 400, rng=1)
    texts = corpus.train.texts
    words = Vocabulary.from_texts(texts, unknown="token", min_count=2)
    fields = {"vocabulary": words, "hidden": 8, "epochs": 2}
    valid = corpus.valid.texts
    half = len(texts) // 2
    both = [lm.fit(part, valid, rng=1, **fields) for part in (texts[:half], texts[half:])]
    return *both, corpus.test.texts


@pytest.mark.extras
def test_closeness_is_made_of_the_distances_and_divergences():
    a, b, texts = models()
    found = lm.closeness(a, b, texts)
    assert found.decoder == lm.representation_distances(a.decoder_weights, b.decoder_weights)
    states = a.hidden_states(texts), b.hidden_states(texts)
    assert found.states == lm.representation_distances(*states)
    assert found.states.rows == sum(map(len, a.log_probabilities(texts)))
    # KL by the cross-entropy less the entropy, context by context.
    kl = []
    for one, other in ((a, b), (b, a)):
        pairs = zip(one.log_probabilities(texts), other.log_probabilities(texts), strict=True)
        contexts = [rows for both in pairs for rows in zip(*both, strict=True)]
        kl.append(np.mean([np.exp(p) @ p - np.exp(p) @ q for p, q in contexts]))
    assert found.kl == pytest.approx(kl, abs=1e-10)
    assert lm.closeness(a, b).to_dict() == {**found.to_dict(), "states": None, "kl": None}
    assert lm.closeness(b, a, texts).kl == pytest.approx(found.kl[::-1], abs=1e-12)
    same = lm.closeness(a, a, texts)
    assert max(*as_tuple(same.decoder), *as_tuple(same.states), *same.kl) < 1e-10


@pytest.mark.extras
def test_what_closeness_prints():
    a, b, texts = models()
    found = lm.closeness(a, b, texts)
    text = str(found)
    assert [line.split("  ")[0].strip() for line in text.splitlines()[2:4]] == ["decoder", "states"]
    assert f"{found.kl[0]:.4g} a to b, {found.kl[1]:.4g} b to a" in text
    assert "compare it with that of two models of disjoint halves" in text
    assert "states" not in str(lm.closeness(a, b))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["kl"] == list(found.kl)
    assert "Procrustes" in found._repr_html_()


def fit_words(words, **fields):
    """A model of few words; training is not what is looked at."""
    vocabulary = Vocabulary(words, unknown="token")
    texts = ["one two", "two one", "three one two"] * 8
    fields = {"hidden": 2, "epochs": 1, "rng": 1} | fields
    return lm.fit(texts, texts[:3], vocabulary=vocabulary, **fields)


@pytest.mark.extras
def test_models_that_cannot_be_compared():
    needs("torch")
    one = fit_words(["one", "two", "three"])
    reordered = fit_words(["two", "one", "three"])
    fewer = fit_words(["one", "two", "four", "five"])
    wide = fit_words(["one", "two", "three"], hidden=4)
    short = fit_words(["one", "two", "three"], length=5)
    text = ["one two three"]
    value_errors = [
        (lambda: lm.closeness(one, reordered), "b", "the words of a in the same order"),
        (lambda: lm.closeness(one, fewer), "b", "words, got '4 words, 2 of them in common'"),
        (lambda: lm.closeness(one, wide), "b", "fewer hidden entries than words, 4, got 4"),
        (lambda: lm.closeness(one, short, text), "b", "a model that reads 20 words of a text"),
        (lambda: lm.closeness(one, one, text), "texts", "texts with more contexts than hidden"),
        (lambda: lm.closeness(one, one, []), "texts", "a list of at least one text"),
    ]
    check_messages(ValueError, value_errors)
    check_messages(TypeError, [(lambda: lm.closeness(one, np.eye(3)), "b", "a NextWordModel")])
    assert lm.closeness(one, short).states is None


@pytest.mark.extras
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("decoder", 0.5, "^b must be .*whose rows differ"),
        ("decoder", math.nan, "^b must be .*of finite numbers"),
        ("embedding", math.nan, "entries that are not finite"),
    ],
)
def test_weights_and_states_that_are_constant_or_not_finite_are_refused(part, value, message):
    torch = needs("torch")
    one, other = (fit_words(["one", "two", "three"]) for _ in range(2))
    torch.nn.init.constant_(getattr(other.network, part).weight, value)
    with pytest.raises(ValueError, match=message):
        lm.closeness(one, other, ["one two three"] * 3)


@pytest.mark.extras
def test_two_models_that_are_read_by_turns_leave_torch_as_it_was():
    torch = needs("torch")
    a, b, texts = models()
    threads = torch.get_num_threads()
    for _ in zip(a.log_probabilities(texts), b.log_probabilities(texts), strict=True):
        assert torch.is_grad_enabled()
        assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()
