"""Linkage of redacted texts: against a plain loop, ties, other styles, real texts, bad input."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from shared_extras import data

from dpcore.experiments.corpora import read_corpus
from dpcore.text.redaction import MASK, Random, link_redacted, mask_words, policy_levels

WORDS = [f"w{i}" for i in range(6)]


def random_texts(seed, texts, most=9):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, most))) for _ in range(texts)]


def agrees(original, output, by):
    """Return True if an original agrees with an output, word by word."""
    original, output = original.split(), output.split()
    kept = [(place, word) for place, word in enumerate(output) if word != MASK]
    if by == "bag":
        return not Counter(word for _, word in kept) - Counter(original)
    if by == "places" and len(original) != len(output):
        return False
    return all(place < len(original) and original[place] == word for place, word in kept)


@pytest.mark.parametrize("by", ["places", "kept_places", "bag"])
@pytest.mark.parametrize("style", ["mask", "collapse", "drop"])
def test_ties_are_shared_as_by_a_plain_loop(by, style):
    originals = random_texts(1, 80)
    levels = policy_levels(Random(), originals, np.random.default_rng(2))
    for level in (0.3, 0.6, 1.0):
        outputs = mask_words(originals, levels, level, style)
        right = 0.0
        for own, output in zip(originals, outputs, strict=True):
            found = [one for one in originals if agrees(one, output, by)]
            right += found.count(own) / max(1, len(found))
        assert link_redacted(originals, outputs, by=by).right == round(right)


def test_some_of_the_originals_are_tried():
    originals = [*random_texts(3, 50), "a b c", "a b d"]
    found = link_redacted(originals, ["a [MASK] d", "a b [MASK]"], truth=[51, 50])
    assert (found.right, found.texts, found.words) == (2, 2, 2)
    assert link_redacted(originals, ["a [MASK] d", "[MASK] b d"], truth=[50, 50]).right == 0
    assert found.by == "length and places"
    assert found.floor >= 1 / 52


def test_equal_originals_are_both_right_and_unknown_words_link_to_nothing():
    found = link_redacted(["a b", "a b", "c d"], ["a [MASK]", "[MASK] b", "x [MASK]"])
    assert found.right == 2
    assert found.floor == pytest.approx(2 / 3)


EXPECTED = {
    # length and places, bag of words
    0.5: (1.0, 1.0), 0.9: (1.0, 0.99), 0.95: (1.0, 0.94), 0.98: (0.998, 0.64), 0.99: (0.96, 0.37),
    1.0: (0.12, 0.0),
}  # fmt: skip


def test_medical_abstracts_are_linked_as_measured_before():
    """Of 300 texts: within 4 standard deviations of another draw of as many, and a rounding."""
    texts = list(dict.fromkeys(read_corpus(data(), "medical").texts))
    rng = np.random.default_rng(1)
    rows = rng.choice(len(texts), 300, replace=False)
    tried = [texts[row] for row in rows]
    levels = policy_levels(Random(), tried, rng)
    for level, expected in EXPECTED.items():
        outputs = mask_words(tried, levels, level)
        for by, share in zip(("places", "bag"), expected, strict=True):
            spread = 4 * np.sqrt(2 * share * (1 - share) / 300) + 0.007
            assert abs(link_redacted(texts, outputs, truth=rows, by=by).share - share) < spread


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"originals": ["a"]}, ValueError, "originals must be two texts or more, got 1"),
        ({"originals": ["a", ""]}, ValueError, r"originals\[1\] must be a text that is not empty"),
        ({"redacted": ["a"]}, ValueError, "redacted must be one for each of 2 originals, got 1"),
        ({"redacted": []}, ValueError, "redacted must be a list of at least one text"),
        ({"redacted": "ab"}, TypeError, "redacted must be a list of at least one text"),
        ({"redacted": ["a", 3]}, TypeError, r"redacted\[1\] must be a text"),
        ({"truth": [0, 2]}, ValueError, "truth must be the row of an original, below 2"),
        ({"truth": [0]}, ValueError, "truth must be the row of an original"),
        ({"truth": [0.0, 1.0]}, TypeError, "truth must be the row of an original"),
        ({"by": "size"}, ValueError, "by must be one of 'places', 'kept_places', 'bag'"),
        ({"confidence": 1.0}, ValueError, "confidence must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_named(given, error, message):
    with pytest.raises(error, match=message):
        link_redacted(**{"originals": ["a b", "a c"], "redacted": ["a b", "a"], **given})
