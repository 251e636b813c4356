"""Policies of other packages: masks that a network of torch learns, and entities of spaCy."""

import pickle

import numpy as np
import pytest
from shared_extras import needs

from dpcore.text.redaction import Learned, Random, Spans, policy_mask_levels, redact
from dpcore.text.words import Embedding

needs("torch")
spacy = needs("spacy")

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


def test_a_learned_policy_masks_the_word_that_one_set_has_first():
    """At .3 the median of 3 fits hides nine tenths of the word, random masks a third of it."""
    sets = make_texts(2, 80, True), make_texts(3, 80, False)
    other = make_texts(4, 40, True)
    policies = [Learned(VECTORS, hidden=16).fit(*sets, rng=seed) for seed in range(3)]
    assert np.median([masked_share(policy, other) for policy in policies]) > 0.9
    assert masked_share(Random(), other) < 0.5


def test_a_seed_repeats_the_fit_and_pickling_keeps_it():
    sets = make_texts(2, 20, True), make_texts(3, 20, False)
    empty = Learned(VECTORS, hidden=8, epochs=2)
    policy = empty.fit(*sets, rng=1)
    assert (empty.is_fitted, policy.is_fitted) == (False, True)
    assert policy == empty.fit(*sets, rng=1) != empty.fit(*sets, rng=2)
    assert pickle.loads(pickle.dumps(policy)) == policy
    (levels,) = policy_mask_levels(policy, ["w1 strange w2."], np.random.default_rng(1))
    # A word without a vector is masked last.
    assert (sorted(levels), levels.argmax()) == (pytest.approx([1 / 6, 3 / 6, 5 / 6]), 1)
    with pytest.warns(UserWarning, match=r"texts are among those that learned .*was fitted on"):
        redact(sets[0], policy, level=0.3)


def test_entities_of_a_spacy_pipeline_are_masked():
    pipeline = spacy.blank("en")
    patterns = [{"label": "PERSON", "pattern": name} for name in ("Tony Blair", "Kerry")]
    pipeline.add_pipe("entity_ruler").add_patterns(patterns)
    found = redact(["Yesterday Tony Blair met Kerry's man."], Spans(pipeline))
    assert found == ["Yesterday [MASK] [MASK] met [MASK] man."]
