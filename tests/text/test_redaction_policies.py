"""Policies that mask words: which words, how many, in which style, and bad input."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from shared_extras import needs

from dpcore.text import redaction
from dpcore.text.redaction import Gazetteer, Keywords, Learned, Random, Ranked, Spans, redact
from dpcore.text.words import Embedding

SENSITIVE = ["a tumour grew fast", "the tumour was malignant", "malignant cells of a tumour"]
SAFE = ["a knee was sore", "the knee grew fast", "cells of the sore heart"]
LONG = [" ".join(f"w{i}" for i in range(words)) for words in (1, 2, 5, 10, 50, 173)]


def masks_of(policy, texts, level, seed=1):
    levels = redaction.policy_levels(policy, texts, np.random.default_rng(seed))
    return [one <= level for one in levels]


@pytest.mark.parametrize("level", [0.0, 0.1, 0.29, 0.35, 0.5, 0.9, 1.0])
def test_exact_random_masks_are_the_rounded_share(level):
    hundredths = round(100 * level)
    for text, masked in zip(LONG, masks_of(Random(), LONG, level), strict=True):
        # floor(p n + 1/2), in whole numbers.
        assert masked.sum() == (2 * hundredths * len(text.split()) + 100) // 200


def test_coins_mask_each_word_alone_and_exact_masks_do_not():
    """Variance of 4,000 numbers of masks among 10 words: 2.1 (sd .05) by coins, 0 if exact."""
    texts = [LONG[3]] * 4000
    counts = [one.sum() for one in masks_of(Random(exact=False), texts, 0.3)]
    assert abs(np.mean(counts) - 3.0) < 0.1
    assert abs(np.var(counts) - 2.1) < 0.2
    assert np.var([one.sum() for one in masks_of(Random(), texts, 0.3)]) == 0.0
    assert not any(one.any() for one in masks_of(Random(exact=False), texts, 0.0))
    assert all(one.all() for one in masks_of(Random(exact=False), texts, 1.0))


def test_each_word_is_masked_equally_often():
    """Chi-square of 5,000 draws of 3 of 10 words, 9 degrees: 99.9 % is 27.9, less a dependence."""
    often = np.sum(masks_of(Random(), [LONG[3]] * 5000, 0.3), axis=0)
    assert ((often - 1500) ** 2 / 1500).sum() < 27.9
    first = np.sum(masks_of(Ranked(words=("w0",), weights=[1.0], shares=[0.1]), LONG[3:4], 0.3), 0)
    assert ((5000 * first - 1500) ** 2 / 1500).sum() > 27.9


def test_redactions_are_nested():
    for policy in (Random(), Random(exact=False)):
        levels = redaction.policy_levels(policy, LONG, np.random.default_rng(3))
        low, high = ([one <= level for one in levels] for level in (0.3, 0.6))
        assert all((a <= b).all() for a, b in zip(low, high, strict=True))
        assert sum(map(np.sum, low)) < sum(map(np.sum, high))


def test_styles_and_seeds():
    text = ["one two three four five six"]
    assert redact(text, Random(), level=0.5, rng=7) == redact(text, Random(), level=0.5, rng=7)
    policy = Keywords(["two", "three", "six"])
    assert redact(text, policy) == ["one [MASK] [MASK] four five [MASK]"]
    assert redact(text, policy, style="collapse") == ["one [MASK] four five [MASK]"]
    assert redact(text, policy, style="drop") == ["one four five"]
    assert redact(["so so  so"], Keywords(["x"]), style="collapse") == ["so so so"]
    assert redact(text, Random(), level=1.0, style="drop") == [""]


@pytest.mark.parametrize(
    ("keywords", "text", "redacted"),
    [
        (["cancer"], "CANCER, cancer. (cancers)", "[MASK] [MASK] (cancers)"),
        (["heart attack"], "Heart attack! A heart, an attack", "[MASK] [MASK] A heart, an attack"),
        (["A - B"], "a b, a c", "[MASK] [MASK] a c"),
        (["a b", "b c"], "a b c d", "[MASK] [MASK] [MASK] d"),
        ({"Äther"}, "äther - ether", "[MASK] - ether"),
    ],
)
def test_keywords_ignore_case_and_punctuation_at_the_ends(keywords, text, redacted):
    assert redact([text], Keywords(keywords)) == [redacted]


@pytest.mark.parametrize(
    ("names", "text", "redacted"),
    [
        (["will", "Kerry"], "Will he? I will. Kerry's man", "[MASK] he? I will. [MASK] man"),
        (["Tony Blair"], "Tony Blair, Tony the Blair", "[MASK] [MASK] Tony the Blair"),
        (["Ludwig van Beethoven"], "ludwig Ludwig van Beethoven", "ludwig [MASK] [MASK] [MASK]"),
    ],
)
def test_names_are_masked_where_they_are_capitalised(names, text, redacted):
    assert redact([text], Gazetteer(names)) == [redacted]


def test_a_word_that_a_span_touches_is_masked():
    for span, redacted in [
        ((4, 5), "ab [MASK] de"),
        ((1, 4), "[MASK] [MASK] de"),
        ((2, 3), "ab cc de"),
    ]:
        assert redact(["ab cc de"], Spans(lambda text, span=span: [span])) == [redacted]


def test_entities_of_a_spacy_pipeline_are_masked():
    spacy = needs("spacy")
    pipeline = spacy.blank("en")
    patterns = [{"label": "PERSON", "pattern": name} for name in ("Tony Blair", "Kerry")]
    pipeline.add_pipe("entity_ruler").add_patterns(patterns)
    found = redact(["Yesterday Tony Blair met Kerry's man."], Spans(pipeline))
    assert found == ["Yesterday [MASK] [MASK] met [MASK] man."]


class Analyzer:
    """A stand-in for presidio's `AnalyzerEngine`, whose results may overlap."""

    def analyze(self, text, language):
        at = text.find("@")
        assert language == "de"
        return [SimpleNamespace(start=at - 2, end=at + 3), SimpleNamespace(start=at, end=at + 2)]


def test_results_of_an_analyzer_are_united():
    assert redact(["to me@x.de now"], Spans(Analyzer(), "de")) == ["to [MASK] now"]


@pytest.mark.parametrize("per_document", [True, False])
def test_words_that_give_the_set_away_are_masked_first(per_document):
    needs("sklearn")
    policy = Ranked(per_document).fit(SENSITIVE, SAFE)
    text = "The Tumour, of knee-high cells unheard-of"
    levels = redaction.policy_levels(policy, [text], np.random.default_rng(1))[0]
    weights = dict(zip(policy.words, policy.weights, strict=True))
    assert weights["tumour"] > 0 > weights["knee"]
    by_size = {"tumour": 1, "knee": 3}
    assert set(np.argsort(levels)[:2]) == set(by_size.values())
    if per_document:
        assert sorted(levels) == [1 / 12, 3 / 12, 5 / 12, 7 / 12, 9 / 12, 11 / 12]
        assert levels.argmax() == 5 or levels[5] > 0.5
    else:
        assert (levels[[0, 2, 4, 5]] > levels[[1, 3]].max()).all()


def test_one_threshold_for_all_masks_the_share_of_all_words():
    """Of the fitted texts the masked share is at most p, short of it by one group of ties."""
    needs("sklearn")
    policy = Ranked(per_document=False).fit(SENSITIVE, SAFE)
    texts = SENSITIVE + SAFE
    levels = np.concatenate(redaction.policy_levels(policy, texts, np.random.default_rng(1)))
    for level in (0.2, 0.5, 0.8):
        assert np.mean(levels <= level) <= level
    assert all(np.mean(levels <= one) == pytest.approx(one) for one in np.unique(levels))
    counts = [int((levels <= 0.5).sum()) for levels in redaction.policy_levels(policy, texts, None)]
    assert len(set(counts)) > 1


def test_a_fitted_policy_is_a_new_one_and_warns_on_its_own_texts():
    needs("sklearn")
    empty = Ranked()
    policy = empty.fit(SENSITIVE, SAFE)
    assert (empty.is_fitted, policy.is_fitted) == (False, True)
    assert policy == Ranked().fit(SENSITIVE, SAFE) != Ranked().fit(SAFE, SENSITIVE)
    assert not policy.weights.flags.writeable
    with pytest.warns(UserWarning, match="1 of 2 texts are among those that ranked was fitted on"):
        redact(["a  tumour grew fast", "a new text"], policy, level=0.5)
    assert redact(["a new text"], policy, level=1.0) == ["[MASK] [MASK] [MASK]"]


@pytest.mark.parametrize(
    ("sensitive", "safe", "message"),
    [
        ([], SAFE, "sensitive must be a list of at least one text"),
        (SENSITIVE, ["a", " "], r"safe\[1\] must be a text that is not empty"),
        (["a b"], ["c d"], "sensitive must be texts with a word that 2 texts have"),
        (["--"], ["..."], "sensitive must be texts with a word that 2 texts have"),
    ],
)
def test_sets_that_cannot_be_fitted_are_refused(sensitive, safe, message):
    needs("sklearn")
    with pytest.raises(ValueError, match=message):
        Ranked().fit(sensitive, safe)


TWO = ["one two", "one two three"]


def test_a_function_is_a_policy():
    def longest_first(documents, rng):
        return [np.array([1 / len(word) for word in text.split()]) for text in documents]

    assert redact(TWO, longest_first, level=0.25) == ["one two", "one two [MASK]"]


def test_the_package_loads_neither_torch_nor_scikit_learn():
    code = (
        "import sys, dpcore.text.redaction; "
        "sys.exit(bool({'torch', 'sklearn', 'spacy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert "redact" in redaction.__all__


WORDS = [f"w{i}" for i in range(30)]
VECTORS = Embedding([*WORDS, "cancer"], np.random.default_rng(1).normal(size=(31, 6)))


def make_texts(seed, texts, planted):
    """Return texts of the same words; with `planted` one word in five is replaced."""
    rng = np.random.default_rng(seed)
    rows = [list(rng.choice(WORDS, 15)) for _ in range(texts)]
    for row in rows if planted else ():
        row[:3] = ["cancer"] * 3
    return [" ".join(rng.permutation(row)) for row in rows]


def masked_share(policy, texts):
    """Return the share of the planted words that are masked at .3."""
    redacted = redact(texts, policy, level=0.3, rng=1)
    left = sum(text.count("cancer") for text in redacted)
    return 1 - left / sum(text.count("cancer") for text in texts)


def test_the_word_that_one_set_has_is_masked_first():
    """At .3 the median of 3 fits hides nine tenths of the word, random masks a third of it."""
    needs("torch")
    sets = make_texts(2, 80, True), make_texts(3, 80, False)
    other = make_texts(4, 40, True)
    policies = [Learned(VECTORS, hidden=16).fit(*sets, rng=seed) for seed in range(3)]
    assert np.median([masked_share(policy, other) for policy in policies]) > 0.9
    assert masked_share(Random(), other) < 0.5


def test_a_seed_repeats_it_and_pickling_keeps_it():
    needs("torch")
    sets = make_texts(2, 20, True), make_texts(3, 20, False)
    empty = Learned(VECTORS, hidden=8, epochs=2)
    policy = empty.fit(*sets, rng=1)
    assert (empty.is_fitted, policy.is_fitted) == (False, True)
    assert policy == empty.fit(*sets, rng=1) != empty.fit(*sets, rng=2)
    assert pickle.loads(pickle.dumps(policy)) == policy
    levels = redaction.policy_levels(policy, ["w1 strange w2."], np.random.default_rng(1))[0]
    # A word without a vector is masked last.
    assert sorted(levels) == pytest.approx([1 / 6, 3 / 6, 5 / 6])
    assert levels.argmax() == 1
    with pytest.warns(UserWarning, match="texts are among those that learned was fitted on"):
        redact(sets[0], policy, level=0.3)
