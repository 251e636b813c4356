"""The attack on vectors of words: against plain loops, at chance where there is nothing, edges."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from scipy.stats import binom, kstest
from shared_messages import check_messages

from dpcore import Laplace, packages
from dpcore.calibration import real_epsilon
from dpcore.experiments.word2vec_leakage import leakage
from dpcore.experiments.word2vec_leakage.leakage import add_noise, attack_embedding
from dpcore.sensitivity import MinMax, MinMaxRows
from dpcore.text import Corpus
from dpcore.text.words import Embedding

WORDS = [f"word{i}" for i in range(300)]
RNG = np.random.default_rng(14)
MINE = Embedding(WORDS, RNG.normal(size=(300, 20)))
TURN = np.linalg.qr(RNG.normal(size=(20, 20)))[0]
NEAR = Embedding(WORDS[::-1], (MINE.vectors @ TURN + 0.3 * RNG.normal(size=(300, 20)))[::-1])
OTHER = Embedding(WORDS, RNG.normal(size=(300, 20)))
ZERO, ONE = Embedding(("a",), [[0.0, 0.0]]), Embedding(("a",), [[1.0, 1.0]])


def naive(victim, attacker, words, anchors, topn):
    """Words found, one by one."""

    def unit(vector):
        return vector / np.linalg.norm(vector)

    turn = np.eye(victim.dim)
    if anchors:
        sides = [np.array([unit(one[word]) for word in anchors]) for one in (victim, attacker)]
        turn = scipy.linalg.orthogonal_procrustes(*sides)[0]
        if len(anchors) < victim.dim:
            # What lies outside the anchors' span is left to chance by the matrix, and left out.
            turn = scipy.linalg.orth(sides[0].T) @ scipy.linalg.orth(sides[0].T).T @ turn
    found = 0
    for word in words:
        mine = unit(victim[word]) @ turn
        near = {other: mine @ unit(attacker[other]) for other in attacker.words}
        found += word in sorted(near, key=near.get, reverse=True)[:topn]
    return found


@pytest.mark.parametrize("anchors", [0, 5, 60])
def test_the_attack_is_what_a_plain_loop_finds(anchors):
    known, words = WORDS[:anchors], WORDS[100:160]
    found = attack_embedding(MINE, NEAR, words, anchors=known, topn=(1, 3, 40))
    assert found.hits == tuple(naive(MINE, NEAR, words, known, n) for n in (1, 3, 40))
    assert (found.words, found.unknown, found.anchors) == (60, 0, anchors)
    assert found.vocabulary == 300


def test_anchors_undo_the_turn_and_nothing_else_does():
    held_out = WORDS[100:]
    assert attack_embedding(MINE, NEAR, held_out).share(1).high < 0.05
    assert attack_embedding(MINE, NEAR, held_out, anchors=WORDS[:100]).share(1).low > 0.9
    # The control: anchors of an embedding that has nothing to do with it turn to no avail.
    assert attack_embedding(MINE, OTHER, held_out, anchors=WORDS[:100]).share(1).high < 0.05


def test_unrelated_vectors_are_found_at_chance():
    rng = np.random.default_rng(3)
    words = [str(i) for i in range(2000)]
    one, two = (Embedding(words, rng.normal(size=(2000, 50))) for _ in range(2))
    for known, wanted in (((), words), (words[:500], words[500:])):
        found = attack_embedding(one, two, wanted, anchors=known, topn=20)
        assert found.chance == (0.01,)
        low, high = binom.ppf([5e-7, 1 - 5e-7], len(wanted), 0.01)
        assert low <= found.hits[0] <= high
    # The control: the same limits refuse twice the chance.
    assert not low <= 2 * 0.01 * len(wanted) + 3 * math.sqrt(len(wanted) * 0.02) <= high


def test_words_that_the_attacker_lacks_count_as_not_found():
    found = attack_embedding(MINE, Embedding(WORDS[:100], MINE.vectors[:100]))
    assert (found.words, found.unknown, found.hits) == (300, 200, (100, 100))
    assert found.share(1).value == pytest.approx(1 / 3)
    assert "200 of them unknown to the attacker" in str(found)


def test_equal_vectors_tell_nothing():
    same = Embedding(("a", "b", "c"), np.ones((3, 4)))
    assert attack_embedding(same, same, topn=(1, 2, 3)).hits == (0, 0, 3)


def test_centring_undoes_the_shift_of_min_max():
    scaled = Embedding(WORDS, MinMax()(MINE.vectors))
    centred = attack_embedding(scaled, MINE, centre=True).hits
    assert attack_embedding(MINE, MINE, centre=True).hits == centred
    assert attack_embedding(scaled, MINE).hits < centred


def test_what_all_vectors_share_is_dropped():
    rng = np.random.default_rng(5)
    mine, theirs = (
        Embedding(WORDS, MINE.vectors + 30 * (rng.normal(size=(300, 3)) + 2) @ side)
        for side in rng.normal(size=(2, 3, 20))
    )
    assert attack_embedding(mine, theirs).share(1).high < 0.1
    assert attack_embedding(mine, theirs, drop=3).share(1).low > 0.8
    # The control: words that differ are not made alike.
    assert attack_embedding(mine, OTHER, drop=3).share(1).high < 0.05
    assert attack_embedding(mine, theirs, drop=3).dropped == 3


def test_blocks_change_nothing(monkeypatch):
    whole = attack_embedding(MINE, NEAR, anchors=WORDS[:30])
    monkeypatch.setattr(leakage, "_COSINES_PER_BLOCK", 900)
    assert attack_embedding(MINE, NEAR, anchors=WORDS[:30]) == whole


def test_sizes_beyond_the_squares_of_floats():
    for factor in (1e-200, 1e200):
        assert attack_embedding(Embedding(WORDS, factor * MINE.vectors), MINE).hits == (300, 300)


def test_the_report():
    found = attack_embedding(add_noise(MINE, 5.0, rng=1), NEAR, centre=True)
    assert found.true == 100.0
    assert "noise: epsilon claimed 5, true 100 (any words)" in str(found)
    assert "chance 0.0033" in str(found)
    assert repr(found).startswith("<Leakage of 300 words: top-1 0.")
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(ValueError, match=r"^topn must be one of '1', '5', got '2'"):
        found.share(2)


# Words and halves.


def test_held_out_words_are_the_same_for_every_number_of_anchors():
    known, held_out = leakage.draw_anchors(MINE, NEAR, OTHER, anchors=200, rng=5)
    assert (len(known), len(held_out)) == (200, 100)
    assert set(known) | set(held_out) == set(WORDS)
    fewer, rest = leakage.draw_anchors(MINE, NEAR, OTHER, anchors=50, rng=5)
    assert (fewer, rest[-100:]) == (known[:50], held_out)
    assert leakage.draw_anchors(MINE, NEAR, anchors=200, rng=6)[1] != held_out


def test_halves():
    texts = [f"{'Text' if i % 2 else 'text'} {i}" for i in range(101)]
    doubled = [*texts, *(text.upper() for text in texts), "...", "?"]
    first, second = leakage.split_in_halves(doubled, rng=4)
    assert len(first) == len(second) == 50
    assert not {text.lower() for text in first} & {text.lower() for text in second}
    for overlap, shared in ((0.5, 25), (0.3, 15), (1.0, 50)):
        again, other = leakage.split_in_halves(doubled, overlap=overlap, rng=4)
        assert (again, len(other), len(set(again) & set(other))) == (first, 50, shared)
    corpus = Corpus(texts, split=["train", *["test"] * 100])
    assert leakage.split_in_halves(corpus, rng=4) == (first, second)


# Noise.


def test_noise_is_what_it_says():
    noise = add_noise(MINE, 2.0, rng=1)
    left = (noise.vectors - MinMax()(MINE.vectors)).ravel()
    assert kstest(left, "laplace", args=(0, 0.5)).pvalue > 1e-6
    assert kstest(left, "laplace", args=(0, 0.6)).pvalue < 1e-6
    assert noise.real == real_epsilon(Laplace(0.5), MinMaxRows(20))
    assert (noise.claimed, noise.real.value) == (2.0, 40.0)
    assert repr(noise).endswith("epsilon claimed 2, true 40>")
    assert add_noise(MINE, 2.0, rng=1) == noise
    assert add_noise(MINE, 2.0) != noise
    assert add_noise(MINE, 2.0, scale="sound", rng=1).real.value == pytest.approx(2.0)


# Bad input.

VALUE_ERRORS = [
    (lambda: attack_embedding(MINE, Embedding(("else",), np.ones((1, 20)))), "attacker", "words"),
    (lambda: attack_embedding(MINE, Embedding(WORDS, np.ones((300, 3)))), "attacker", "20, got 3"),
    (lambda: attack_embedding(MINE, NEAR, ["no"]), "words[0]", "a word of the victim's"),
    (lambda: attack_embedding(MINE, NEAR, []), "words", "at least one word"),
    (lambda: attack_embedding(MINE, NEAR, ["word1"] * 2), "words", "words that are there once"),
    (lambda: attack_embedding(MINE, NEAR, anchors=WORDS), "words", "at least one word"),
    (lambda: attack_embedding(MINE, NEAR, anchors=["no"]), "anchors[0]", "a word of both"),
    (lambda: attack_embedding(MINE, NEAR, WORDS, anchors=["word1"]), "words", "without anchors"),
    (lambda: attack_embedding(MINE, NEAR, topn=0), "topn", "an integer from 1 to 300"),
    (lambda: attack_embedding(MINE, NEAR, topn=301), "topn", "an integer from 1 to 300"),
    (lambda: attack_embedding(MINE, NEAR, topn=()), "topn", "one number, or several"),
    (lambda: attack_embedding(MINE, NEAR, drop=20), "drop", "an integer from 0 to 19"),
    (lambda: attack_embedding(MINE, NEAR, confidence=1), "confidence", ""),
    (lambda: attack_embedding(ZERO, ONE, topn=1), "victim's vectors", "zero, got \"the one of 'a'"),
    (lambda: attack_embedding(ONE, ONE, topn=1, centre=True), "attacker's vectors", "of unlike"),
    (lambda: leakage.draw_anchors(MINE, NEAR, anchors=300), "anchors", "below the number of comm"),
    (lambda: leakage.draw_anchors(MINE, NEAR, anchors=-1), "anchors", "an integer at least 0"),
    (lambda: leakage.split_in_halves(["one two", "One, two!"]), "texts", "at least two texts"),
    (lambda: leakage.split_in_halves(["a", "b"], overlap=1.5), "overlap", ""),
    (lambda: add_noise(MINE, 0), "epsilon", "a finite number above 0, got 0"),
    (lambda: add_noise(MINE, 1.0, scale="right"), "scale", "one of"),
    (lambda: add_noise(add_noise(MINE, 1.0), 1.0), "embedding", "one without noise"),
    (lambda: add_noise(ONE, 1.0), "", "row 0 of x must be a row"),
    (lambda: Embedding(("a", "a"), np.ones((2, 2))), "words", "each there once"),
    (lambda: Embedding(("a", "b"), np.ones((3, 2))), "vectors", "finite numbers"),
    (lambda: Embedding(("a", "b"), [[1], [math.nan]]), "vectors[1] (b)", ""),
]
TYPE_ERRORS = [
    (lambda: attack_embedding(MINE, "them"), "attacker", "a Embedding"),
    (lambda: attack_embedding(MINE, NEAR, "word1"), "words", "a list of words"),
    (lambda: attack_embedding(MINE, NEAR, [3]), "words[0]", "a string"),
    (lambda: attack_embedding(MINE, NEAR, anchors=5), "anchors", "a list of words"),
    (lambda: attack_embedding(MINE, NEAR, topn="5"), "topn", "an integer"),
    (lambda: attack_embedding(MINE, NEAR, centre=1), "centre", "True or False"),
    (lambda: leakage.draw_anchors(MINE, 3), "attacker", "a Embedding"),
    (lambda: leakage.split_in_halves("a text"), "texts", "a list"),
    (lambda: add_noise(WORDS, 1.0), "embedding", "a Embedding"),
    (lambda: Embedding("ab", np.ones((2, 2))), "words", "a list of at least one"),
    (lambda: Embedding(("a", 1), np.ones((2, 2))), "words", "a list of at least"),
    (lambda: Embedding(("a",), [["x"]]), "vectors", "finite numbers"),
    (lambda: Embedding.of(MINE), "model", "gensim's KeyedVectors"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


def test_an_embedding_of_other_vectors():
    model = SimpleNamespace(index_to_key=["a", "b"], vectors=np.eye(2, dtype=np.float32))
    for given in (model, SimpleNamespace(wv=model)):
        found = Embedding.of(given)
        assert (found.words, found.dim, found["b"].tolist()) == (("a", "b"), 2, [0.0, 1.0])
    assert ("a" in found, "c" in found, len(found)) == (True, False, 2)
    assert not found.vectors.flags.writeable
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert not again.vectors.flags.writeable


def test_without_gensim_it_is_said_what_to_install(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="gensim")

    monkeypatch.setattr(packages, "import_module", absent)
    message = r"^train_word2vec needs gensim, .* 'dpcore\[word2vec\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        leakage.train_word2vec(["a b"] * 9)
