"""Redaction of records: delta against enumeration, and audits of policies as mechanisms."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from shared_extras import data, needs

import dpcore
from dpcore import Pair, pairs
from dpcore.experiments.corpora import read_corpus
from dpcore.text.redaction import (
    MASK,
    Keywords,
    Random,
    Ranked,
    link_redacted,
    mask_words,
    policy_levels,
    policy_mechanism,
    record_delta,
)

PRIVATE = ["the lump is cancer", "no cancer was seen", "the lump was small", "a small scan"]
CHANGED = ["the lump is benign", *PRIVATE[1:]]
"""Of these and the private texts the first is replaced."""
SAFE = ["the knee was seen", "no knee is small", "a heart was seen", "the scan is a heart"]


@pytest.mark.parametrize("words", [1, 4, 7])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
def test_delta_is_the_share_of_masks_that_leave_a_difference(words, p):
    for differing in range(1, words + 1):
        masks = sum(1 for level in (np.arange(words) + 0.5) / words if level <= p)
        chosen = list(combinations(range(words), masks))
        visible = sum(not set(range(differing)) <= set(one) for one in chosen)
        found = record_delta(p, words=words, differing=differing, exact=True)
        assert found == pytest.approx(visible / len(chosen), abs=1e-14)
        coins = record_delta(p, words=words, differing=differing)
        assert coins == pytest.approx(1.0 - p**differing, abs=1e-14)


def test_delta_of_long_texts_is_the_ratio_of_whole_numbers():
    n, k, m = 3000, 700, 2997
    exact = 1 - comb(n - k, m - k) / comb(n, m)
    found = record_delta(m / n, words=n, differing=k, exact=True)
    assert found == pytest.approx(exact, rel=1e-12)
    # 1 - p^k by itself would lose all digits.
    assert record_delta(1 - 2**-50, words=9, differing=3) == pytest.approx(3 * 2**-50, rel=1e-9)


def test_random_masks_leave_a_difference_as_often_as_computed():
    """Binomial test of 20,000 draws at 99.9 %; another share is refused by it."""
    texts = ["a b c d e f g h i j k"]
    for exact in (True, False):
        draws = policy_mechanism(Random(exact=exact), 0.8)(texts, 20_000, np.random.default_rng(1))
        visible = int((draws[:, 0, :2] == 0).any(axis=1).sum())
        delta = record_delta(0.8, words=11, differing=2, exact=exact)
        wrong = record_delta(0.8, words=11, differing=2, exact=not exact)
        spread = 3.29 * np.sqrt(20_000 * delta * (1 - delta))
        assert abs(visible - 20_000 * delta) < spread < abs(visible - 20_000 * wrong)


def read_other_masks(reference):
    """Return an attack whose event reads all masks but those of the first text."""
    return lambda outputs, outputs_prime, pair: (
        lambda drawn: (drawn[:, 1:] == reference[1:]).all(axis=(1, 2))
    )


def audit(mech):
    reference = mech(PRIVATE, 1, np.random.default_rng(1))[0]
    return dpcore.audit(
        mech, Pair(PRIVATE, CHANGED), neighbour=pairs.Replace(),
        attack=read_other_masks(reference), trials=1000, claim=1.0, rng=1,
    )  # fmt: skip


def test_a_policy_fitted_inside_is_a_release_and_one_fitted_on_public_texts_is_not():
    needs("sklearn")
    public = ["one cancer grew", "the cancer and a lump", "a lump", "was small"]
    inside = audit(policy_mechanism(Ranked(), 0.25, safe=SAFE))
    assert inside.refuted
    assert inside.epsilon_lower > 5.0
    outside = audit(policy_mechanism(Ranked().fit(public, SAFE), 0.25))
    assert outside.epsilon_lower == 0.0
    assert not outside.refuted


def test_random_masks_of_other_texts_certify_nothing():
    assert audit(policy_mechanism(Random(), 0.5)).epsilon_lower == 0.0


class CountedFits:
    """A policy that counts its fits; nothing is drawn unless it is said to be."""

    needs_fit, is_fitted, is_random = True, False, False

    def __init__(self, is_fit_random):
        self.is_fit_random, self.fits = is_fit_random, 0

    def fit(self, sensitive, safe, *, rng=None):
        self.fits += 1
        return Keywords(["lump"])


@pytest.mark.parametrize(("is_fit_random", "fits"), [(False, 1), (True, 9)])
def test_a_fit_is_repeated_only_where_it_draws(is_fit_random, fits):
    policy = CountedFits(is_fit_random)
    mech = policy_mechanism(policy, 0.5, safe=SAFE)
    drawn = [mech(PRIVATE, size, np.random.default_rng(1)) for size in (4, 5)]
    assert policy.fits == fits
    assert drawn[0].shape == (4, 4, 4)
    assert (drawn[0] == drawn[1][:4]).all()


def test_masks_have_the_shape_that_is_asked_for_and_survive_pickling():
    mech = pickle.loads(pickle.dumps(policy_mechanism(Keywords(["cancer"]), 0.5, words=6)))
    found = mech(["no cancer", "a b c d e f"], 2, np.random.default_rng(1))
    assert found.dtype == np.int8
    assert found[1].tolist() == [[0, 1, -1, -1, -1, -1], [0] * 6]
    assert repr(mech) == "redaction.policy_mechanism(keywords, 0.5)"
    with pytest.raises(ValueError, match="words must be at least 7, the words of the longest"):
        mech(["a b c d e f g"], 1)


WORDS = [f"word{number}" for number in range(11)]
OTHERS = {
    "one word": [*WORDS[:4], "other", *WORDS[5:]],
    "two words": [*WORDS[:4], "other", *WORDS[5:7], "another", *WORDS[8:]],
    "two change places": [*WORDS[:4], WORDS[7], *WORDS[5:7], WORDS[4], *WORDS[8:]],
}


def draw_redacted(x, size, rng):
    """Return the text with nine words in ten masked by coins; nearly a third are masks alone."""
    words = x.split()
    kept = (rng.random((size, len(words))) < 0.1) @ (1 << np.arange(len(words)))
    texts = {
        code: " ".join(word if code >> place & 1 else MASK for place, word in enumerate(words))
        for code in np.unique(kept).tolist()
    }
    return [texts[code] for code in kept.tolist()]


@pytest.mark.parametrize(
    ("name", "delta"), [(name, 0.1 if name == "one word" else 0.19) for name in OTHERS]
)
def test_texts_as_strings_are_refuted_below_their_delta_and_not_at_it(name, delta):
    """The default attack; at the true delta at most 4 of 8 audits may refute (at 1e-4)."""
    pair = Pair(" ".join(WORDS), " ".join(OTHERS[name]))
    differing = sum(a != b for a, b in zip(WORDS, OTHERS[name], strict=True))
    assert record_delta(0.9, words=11, differing=differing) == pytest.approx(delta)
    options = {"claim": 5.0, "progress": False}
    report = dpcore.audit(draw_redacted, pair, trials=60_000, delta=delta - 0.02, rng=1, **options)
    assert report.refuted
    refuted = sum(
        dpcore.audit(draw_redacted, pair, trials=3_000, delta=delta, rng=seed, **options).refuted
        for seed in range(8)
    )
    assert refuted <= 4


LETTERS = [f"w{i}" for i in range(6)]


def random_texts(seed, texts, most=9):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(LETTERS, size=rng.integers(2, most))) for _ in range(texts)]


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
