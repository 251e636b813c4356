"""Embeddings by gensim: where they start, that they repeat, and what follows from the start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from shared_extras import data, needs
from shared_messages import check_messages

from dpcore.experiments import word2vec_leakage
from dpcore.experiments.word2vec_leakage import leakage
from dpcore.experiments.word2vec_leakage.leakage import attack_embedding, train_word2vec
from dpcore.text import generated
from dpcore.text.words import Embedding

gensim = needs("gensim", "gensim.models")

TEXTS = generated("topics", 4000, rng=1).texts
FIRST, SECOND = leakage.split_in_halves(TEXTS, rng=1)


def test_a_fixed_hash():
    found = leakage._start_vector("cat", 1, 4)
    assert found.tolist() == pytest.approx(GOLDEN, abs=1e-15)
    many = np.concatenate([leakage._start_vector(word, 1, 100) for word in TEXTS])
    assert abs(many).max() <= 0.005
    assert abs(many.mean()) < 5 * 0.01 / np.sqrt(12 * many.size)
    assert not np.array_equal(leakage._start_vector("cat", 2, 4), found)
    assert np.array_equal(leakage._start_vector("cat", 1, 3), 4 * found[:3] / 3)


GOLDEN = [0.01409618032630533, 0.07488295098301023, -0.009925228427164257, -0.08784113905858248]
"""Of "cat" and seed 1 in four dimensions: SHAKE-256 of "cat1"."""

CODE = """
import sys
from dpcore.text import generated
from dpcore.experiments.word2vec_leakage.leakage import train_word2vec
texts = generated("topics", 200, rng=1).texts
found = [train_word2vec(texts, start=start) for start in ("own", "hashed")]
print([one.vectors.sum(axis=1).tolist() for one in found])
"""


def test_processes_repeat_each_other():
    def run(salt):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=120, env=environment
        )
        assert done.stderr == ""
        return done.stdout

    assert run("1") == run("2")


def test_what_an_embedding_depends_on():
    found = train_word2vec(FIRST, start="hashed", seed=3)
    assert train_word2vec(FIRST, start="hashed", seed=3) == found
    assert found.dim == 100
    assert repr(found).endswith("word2vec, start hashed, seed 3>")
    for other in ({"seed": 4}, {"start": "own"}, {"epochs": 4}, {"window": 2}, {"negative": 2}):
        again = train_word2vec(FIRST, **{"start": "hashed", "seed": 3, **other})
        assert set(again.words) == set(found.words)
        assert not np.array_equal(again.vectors, found.vectors)
    assert len(train_word2vec(FIRST, min_count=60)) < len(found)
    assert train_word2vec(FIRST, dim=7).dim == 7
    cased = train_word2vec(["A cat.", "a CAT"] * 5, tokenise=str.split)
    assert set(cased.words) == {"a", "A", "CAT", "cat."}


def test_own_start_is_gensims():
    model = gensim.models.Word2Vec([text.lower().split() for text in FIRST], workers=1, seed=3)
    found = train_word2vec(FIRST, seed=3, tokenise=lambda text: text.lower().split())
    assert found.vectors.tolist() == Embedding.of(model).vectors.tolist()
    # The attack is gensim's own search.
    victim = train_word2vec(SECOND, seed=3, tokenise=lambda text: text.lower().split())
    _, words = leakage.draw_anchors(victim, found, anchors=0, rng=1)
    near = [[w for w, _ in model.wv.similar_by_vector(victim[word], topn=5)] for word in words]
    pairs = list(zip(words, near, strict=True))
    hits = tuple(sum(word in found[:n] for word, found in pairs) for n in (1, 5))
    assert attack_embedding(victim, found, words).hits == hits


def test_the_start_is_what_leaks():
    """One place for each word in both models; the control has the same hash and another seed."""
    victim = train_word2vec(FIRST, start="hashed", seed=1)
    same, other = (train_word2vec(SECOND, start="hashed", seed=seed) for seed in (1, 2))
    known, words = leakage.draw_anchors(victim, same, other, anchors=150, rng=1)
    shares = [attack_embedding(victim, one, words).share(1) for one in (same, other)]
    # Ten seeds: above .16 and below .055.
    assert shares[0].low > 0.1 > shares[1].high
    assert attack_embedding(victim, other, words, anchors=known).share(1).low > shares[1].high


@pytest.mark.timeout(120)
def test_ctrl_c(ctrl_c):
    before = set(threading.enumerate())
    for seconds in (1.0, 0.4, 0.5, 0.6):
        ctrl_c(seconds)
        # So many epochs never end by themselves.
        with pytest.raises(KeyboardInterrupt):
            train_word2vec(FIRST, epochs=10**7, progress=False)
    # A timer's thread has no function, whose name stands in brackets.
    left = list(set(threading.enumerate()) - before)
    for thread in left:
        # On a busy machine a thread of gensim ends after the call.
        thread.join(30.0)
    left = [thread.name for thread in left if thread.is_alive()]
    assert not [name for name in left if name == "word2vec" or "(" in name]


def test_failed_training_is_told(monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError("too little memory for the training")

    monkeypatch.setattr(gensim.models.Word2Vec, "train", fail)
    with pytest.raises(MemoryError, match="too little memory for the training"):
        train_word2vec(FIRST, progress=False)


@pytest.mark.sweep
def test_the_figures_on_real_sentences():
    """The source's: .17, .008, .000 without anchors; .25 to .27 with 500, whatever the start."""
    folder = data("leakage", "spa-eng.zip").parent.parent
    config = word2vec_leakage.Config(data=folder, seeds=1, anchors=(500, 1500), epsilons=(5,))
    result = word2vec_leakage.run(config, progress=False)
    first = result.cells[0].found
    assert 3450 < first.vocabulary < 3650
    assert 1430 < first.words < 1600
    assert 0.15 < result.mean("hashed", 0) < 0.22
    assert result.mean("same", 0) < 0.03
    assert result.mean("other", 0) < 0.004
    for start in ("hashed", "same", "other"):
        assert 0.22 < result.mean(start, 500) < 0.32
    assert "* not reproduced" in result.table()


VALUE_ERRORS = [
    (lambda: train_word2vec(texts=FIRST, start="hash"), "start", "one of 'own', 'hashed'"),
    (lambda: train_word2vec(texts=FIRST, seed=2**32), "seed", "an integer from 0 to 4294967295"),
    (lambda: train_word2vec(texts=FIRST, dim=0), "dim", "an integer at least 1"),
    (lambda: train_word2vec(texts=FIRST, min_count=0), "min_count", "an integer at least 1"),
    (lambda: train_word2vec(texts=FIRST, epochs=0), "epochs", "an integer at least 1"),
    (lambda: train_word2vec(texts=FIRST, negative=0), "negative", "an integer at least 1"),
    (lambda: train_word2vec(texts=["rare words"]), "texts", "texts in which at least two words"),
    (lambda: train_word2vec(texts=["..."]), "texts", "texts in which at least two words"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: train_word2vec(texts=FIRST, window=1.5), "window", "an integer"),
    (lambda: train_word2vec(texts="a text"), "texts", "a list"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
