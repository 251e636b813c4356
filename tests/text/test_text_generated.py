"""Generated corpora: learnable, repeatable, split as said."""

import re

import numpy as np
import pytest

from dpcore.text import generated, words_of
from dpcore.text.templates import CONTRADICTED, GENERATED, REPEATED

ROWS = 4000


@pytest.fixture(scope="module")
def corpora():
    return {kind: generated(kind, ROWS, rng=1) for kind in GENERATED}


@pytest.fixture(scope="module")
def accuracy(corpora):
    import sklearn.feature_extraction.text as extraction
    import sklearn.linear_model as linear

    def of(kind, attribute=None, shuffled=None):
        corpus = corpora[kind]
        given = {"tokenizer": words_of, "token_pattern": None, "lowercase": False}
        weights = extraction.TfidfVectorizer(**given).fit(corpus.train.texts)
        parts = corpus.train, corpus.test
        values = [part.attribute(attribute) if attribute else part.labels for part in parts]
        if shuffled is not None:
            values[0] = np.random.default_rng(shuffled).permutation(values[0])
        model = linear.LogisticRegression(max_iter=1000)
        model.fit(weights.transform(corpus.train.texts), values[0])
        return model.score(weights.transform(corpus.test.texts), values[1])

    return of


def test_topics_and_the_leaking_attribute_are_learnable_to_nine_tenths(accuracy):
    # The ceiling is .92; 400 texts put four standard errors of .014 around it.
    assert 0.86 <= accuracy("topics") <= 0.975
    assert 0.86 <= accuracy("topics", "parent") <= 0.975
    # The control: shuffled values leave the floors, a quarter and the larger of .4 and .6.
    assert accuracy("topics", shuffled=1) < 0.4
    assert accuracy("topics", "parent", shuffled=1) < 0.7


def test_intents_and_names_are_learnable(accuracy):
    assert accuracy("intents") > 0.95
    assert accuracy("repeats", "Alder") > 0.95
    # Repetitions under another label are what no classifier can tell.
    assert 0.8 < accuracy("repeats") < 0.95


@pytest.mark.parametrize("kind", GENERATED)
def test_the_same_seed_makes_the_same_corpus(kind, corpora):
    corpus = corpora[kind]
    assert corpus == generated(kind, ROWS, rng=1)
    assert corpus != generated(kind, ROWS, rng=2)
    assert corpus.origin == f"generated ({kind}, 4,000 rows, seed 1)"
    fresh = generated(kind, 100)
    assert fresh == generated(kind, 100, rng=int(fresh.origin[:-1].rpartition(" ")[2]))
    drawn, again = (generated(kind, 100, np.random.default_rng(3)) for _ in range(2))
    assert drawn == again


@pytest.mark.parametrize("kind", GENERATED)
def test_parts_have_their_shares_and_no_text_in_common(kind, corpora):
    corpus = corpora[kind]
    sizes = [len(part) for part in (corpus.train, corpus.valid, corpus.test)]
    assert np.allclose(sizes, [3200, 400, 400], atol=15)
    texts = [*set(corpus.train), *set(corpus.valid), *set(corpus.test)]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("kind", GENERATED)
def test_sentences_are_complete(kind, corpora):
    for text in corpora[kind]:
        assert not re.search(r"[{}]|  |\ba [aeiu]|\ban [^aeiou]", text), text


def test_slots_are_words_of_the_text(corpora):
    corpus = corpora["intents"]
    assert set(corpus.attributes) == {"destination", "day"}
    for name, column in corpus.attributes.items():
        named = [value in text for text, value in zip(corpus, column, strict=True)]
        assert np.array_equal(named, column != "none"), name
        assert 0.2 < np.mean(named) < 1.0


def test_repeats_repeat_and_contradict(corpora):
    corpus = corpora["repeats"]
    first, again, other = {}, 0, 0
    for text, label in zip(corpus, corpus.labels.tolist(), strict=True):
        if text in first:
            again, other = again + 1, other + (first[text] != label)
        first.setdefault(text, label)
    assert abs(again / ROWS - REPEATED) < 4 * np.sqrt(REPEATED * (1 - REPEATED) / ROWS)
    # A third copy may contradict the second only.
    assert abs(other / again - CONTRADICTED) < 0.08
    assert set(np.stack(list(corpus.attributes.values())).sum(axis=0).tolist()) == {1, 2}
    for name, column in corpus.attributes.items():
        assert [name in text for text in corpus] == column.astype(bool).tolist()
