"""Policies that mask words: which words, how many, in which style, and bad input."""

import math
import pickle
from collections import Counter
from itertools import combinations
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from shared_extras import data
from shared_messages import check_messages

import dpcore
from dpcore import Pair, pairs
from dpcore.experiments.corpora import read_corpus
from dpcore.text import redaction
from dpcore.text.redaction import (
    MASK,
    Gazetteer,
    Keywords,
    Random,
    Ranked,
    Spans,
    link_redacted,
    mask_words,
    policy_mask_levels,
    policy_mechanism,
    record_delta,
    redact,
)

SENSITIVE = ["a tumour grew fast", "the tumour was malignant", "malignant cells of a tumour"]
SAFE = ["a knee was sore", "the knee grew fast", "cells of the sore heart"]
LONG = [" ".join(f"w{i}" for i in range(words)) for words in (1, 2, 5, 10, 50, 173)]


def levels_of(policy, texts, seed=1):
    return policy_mask_levels(policy, texts, np.random.default_rng(seed))


def masks_of(policy, texts, level):
    return [one <= level for one in levels_of(policy, texts)]


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
        levels = levels_of(policy, LONG, 3)
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
    redacted = {(4, 5): "ab [MASK] de", (1, 4): "[MASK] [MASK] de", (2, 3): "ab cc de"}
    for span, text in redacted.items():
        assert redact(["ab cc de"], Spans(lambda text, span=span: [span])) == [text]


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
    policy = Ranked(per_document).fit(SENSITIVE, SAFE)
    text = "The Tumour, of knee-high cells unheard-of"
    (levels,) = levels_of(policy, [text])
    weights = dict(zip(policy.words, policy.weights, strict=True))
    assert weights["tumour"] > 0 > weights["knee"]
    # The places of "Tumour," and "knee-high", whose weights are the largest.
    assert set(np.argsort(levels)[:2]) == {1, 3}
    if per_document:
        assert sorted(levels) == [1 / 12, 3 / 12, 5 / 12, 7 / 12, 9 / 12, 11 / 12]
        assert levels.argmax() == 5 or levels[5] > 0.5
    else:
        assert (levels[[0, 2, 4, 5]] > levels[[1, 3]].max()).all()


def test_one_threshold_for_all_masks_the_share_of_all_words():
    """Of the fitted texts the masked share is at most p, short of it by one group of ties."""
    policy = Ranked(per_document=False).fit(SENSITIVE, SAFE)
    each = levels_of(policy, SENSITIVE + SAFE)
    levels = np.concatenate(each)
    for level in (0.2, 0.5, 0.8):
        assert np.mean(levels <= level) <= level
    assert all(np.mean(levels <= one) == pytest.approx(one) for one in np.unique(levels))
    assert len({int((one <= 0.5).sum()) for one in each}) > 1


def test_a_fitted_policy_is_a_new_one_and_warns_on_its_own_texts():
    empty = Ranked()
    policy = empty.fit(SENSITIVE, SAFE)
    assert (empty.is_fitted, policy.is_fitted) == (False, True)
    assert policy == Ranked().fit(SENSITIVE, SAFE) != Ranked().fit(SAFE, SENSITIVE)
    assert not policy.weights.flags.writeable
    with pytest.warns(UserWarning, match="1 of 2 texts are among those that ranked was fitted on"):
        redact(["a  tumour grew fast", "a new text"], policy, level=0.5)
    assert redact(["a new text"], policy, level=1.0) == ["[MASK] [MASK] [MASK]"]


TWO = ["one two", "one two three"]


def test_a_function_is_a_policy():
    def longest_first(documents, rng):
        return [np.array([1 / len(word) for word in text.split()]) for text in documents]

    assert redact(TWO, longest_first, level=0.25) == ["one two", "one two [MASK]"]


# Redaction of records: delta against enumeration, and audits of policies as mechanisms.


PRIVATE = ["the lump is cancer", "no cancer was seen", "the lump was small", "a small scan"]
CHANGED = ["the lump is benign", *PRIVATE[1:]]
"""Of these and the private texts the first is replaced."""
HEALTHY = ["the knee was seen", "no knee is small", "a heart was seen", "the scan is a heart"]


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
    assert record_delta(m / n, words=n, differing=k, exact=True) == pytest.approx(exact, rel=1e-12)
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
    return lambda *given: lambda drawn: (drawn[:, 1:] == reference[1:]).all(axis=(1, 2))


def audit(mech):
    reference = mech(PRIVATE, 1, np.random.default_rng(1))[0]
    return dpcore.audit(
        mech, Pair(PRIVATE, CHANGED), neighbour=pairs.Replace(),
        attack=read_other_masks(reference), trials=1000, claim=1.0, rng=1,
    )  # fmt: skip


def test_a_policy_fitted_inside_is_a_release_and_one_fitted_on_public_texts_is_not():
    public = ["one cancer grew", "the cancer and a lump", "a lump", "was small"]
    inside = audit(policy_mechanism(Ranked(), 0.25, safe=HEALTHY))
    assert inside.refuted
    assert inside.epsilon_lower > 5.0
    outside = audit(policy_mechanism(Ranked().fit(public, HEALTHY), 0.25))
    assert (outside.epsilon_lower, outside.refuted) == (0.0, None)
    assert outside.verdict.startswith("undecided: all ")


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
    mech = policy_mechanism(policy, 0.5, safe=HEALTHY)
    drawn = [mech(PRIVATE, size, np.random.default_rng(1)) for size in (4, 5)]
    assert (policy.fits, drawn[0].shape) == (fits, (4, 4, 4))
    assert (drawn[0] == drawn[1][:4]).all()


def test_masks_have_the_shape_that_is_asked_for_and_survive_pickling():
    mech = pickle.loads(pickle.dumps(policy_mechanism(Keywords(["cancer"]), 0.5, words=6)))
    found = mech(["no cancer", "a b c d e f"], 2, np.random.default_rng(1))
    assert (found.dtype, found[1].tolist()) == (np.int8, [[0, 1, -1, -1, -1, -1], [0] * 6])
    assert repr(mech) == "redaction.policy_mechanism(keywords, 0.5)"
    with pytest.raises(ValueError, match="words must be at least 7, the words of the longest"):
        mech(["a b c d e f g"], 1)


NUMBERED = [f"word{number}" for number in range(11)]
OTHERS = {
    "one word": [*NUMBERED[:4], "other", *NUMBERED[5:]],
    "two words": [*NUMBERED[:4], "other", *NUMBERED[5:7], "another", *NUMBERED[8:]],
    "two change places": [*NUMBERED[:4], NUMBERED[7], *NUMBERED[5:7], NUMBERED[4], *NUMBERED[8:]],
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


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "delta"), [(name, 0.1 if name == "one word" else 0.19) for name in OTHERS]
)
def test_texts_as_strings_are_refuted_below_their_delta_and_not_at_it(name, delta):
    """The default attack; at the true delta at most 4 of 8 audits may refute (at 1e-4)."""
    pair = Pair(" ".join(NUMBERED), " ".join(OTHERS[name]))
    differing = sum(a != b for a, b in zip(NUMBERED, OTHERS[name], strict=True))
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
    levels = levels_of(Random(), originals, 2)
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
    assert (found.right, found.floor) == (2, pytest.approx(2 / 3))


EXPECTED = {
    # length and places, bag of words
    0.5: (1.0, 1.0), 0.9: (1.0, 0.99), 0.95: (1.0, 0.94), 0.98: (0.998, 0.64), 0.99: (0.96, 0.37),
    1.0: (0.12, 0.0),
}  # fmt: skip


@pytest.mark.sweep
def test_medical_abstracts_are_linked_as_measured_before():
    """Of 300 texts: within 4 standard deviations of another draw of as many, and a rounding."""
    texts = list(dict.fromkeys(read_corpus(data(), "medical").texts))
    rng = np.random.default_rng(1)
    rows = rng.choice(len(texts), 300, replace=False)
    tried = [texts[row] for row in rows]
    levels = policy_mask_levels(Random(), tried, rng)
    for level, expected in EXPECTED.items():
        outputs = mask_words(tried, levels, level)
        for by, share in zip(("places", "bag"), expected, strict=True):
            spread = 4 * np.sqrt(2 * share * (1 - share) / 300) + 0.007
            assert abs(link_redacted(texts, outputs, truth=rows, by=by).share - share) < spread


def link(**given):
    return lambda: link_redacted(**{"originals": ["a b", "a c"], "redacted": ["a b", "a"], **given})


def fit_ranked(sensitive=SENSITIVE, safe=SAFE):
    return lambda: Ranked().fit(sensitive, safe)


VALUE_ERRORS = [
    (link(originals=["a"]), "originals", "two texts or more, got 1"),
    (link(originals=["a", ""]), "originals[1]", "a text that is not empty"),
    (link(redacted=["a"]), "redacted", "one for each of 2 originals, got 1"),
    (link(redacted=[]), "redacted", "a list of at least one text"),
    (link(truth=[0, 2]), "truth", "the row of an original, below 2"),
    (link(truth=[0]), "truth", "the row of an original"),
    (link(by="size"), "by", "one of 'places', 'kept_places', 'bag'"),
    (link(confidence=1.0), "confidence", "a finite number above 0"),
    (fit_ranked([]), "sensitive", "a list of at least one text"),
    (fit_ranked(safe=["a", " "]), "safe[1]", "a text that is not empty"),
    (fit_ranked(["a b"], ["c d"]), "sensitive", "texts with a word that 2 texts have"),
    (fit_ranked(["--"], ["..."]), "sensitive", "texts with a word that 2 texts have"),
]
TYPE_ERRORS = [
    (link(redacted="ab"), "redacted", "a list of at least one text"),
    (link(redacted=["a", 3]), "redacted[1]", "a text"),
    (link(truth=[0.0, 1.0]), "truth", "the row of an original"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (Random(), "random"),
        (Random(exact=False), "random exact=False"),
        (Ranked(per_document=False), "ranked per_document=False"),
        (Keywords(["fever"]), "keywords"),
        (Spans(len, language="de"), "spans language='de'"),
    ],
)
def test_a_policy_is_named_by_its_kind_and_unusual_settings(policy, name):
    assert policy.name == name


GOLD_SPANS = [[(0, 4, "PERSON"), (10, 15, "PLACE"), (20, 24, "PLACE")], [(3, 9, "DATE")], []]


@pytest.mark.parametrize(
    ("predicted", "type", "expected"),
    [
        (GOLD_SPANS, "any type", (4, 4, 4, 4, 4)),
        ([[], [], []], "PLACE", (0, 2, 0, 0, 0)),
        # One long span reaches two true ones, and none of another type.
        ([[(8, 30, "PLACE")], [], []], "PLACE", (1, 2, 0, 1, 2)),
        ([[(8, 30, "PERSON")], [], []], "PERSON", (1, 1, 0, 0, 0)),
        ([[(8, 30, "PERSON")], [], []], "any type", (1, 4, 0, 1, 2)),
        # Spans that only touch do not overlap; each text has its own places.
        ([[(4, 10, "PERSON")], [], [(3, 9, "DATE")]], "DATE", (1, 1, 0, 0, 0)),
        ([[(4, 10, "PERSON")], [], [(3, 9, "DATE")]], "any type", (2, 4, 0, 0, 0)),
    ],
)
def test_spans_are_counted_by_type_exactly_and_where_they_overlap(predicted, type, expected):
    score = redaction.score_spans(predicted, GOLD_SPANS)[type]
    counts = score.predicted, score.gold, score.exact, score.overlapping, score.reached
    assert counts == expected
    shares = [score.precision, score.recall, score.overlap_precision, score.overlap_recall]
    wholes = [score.predicted, score.gold] * 2
    parts = [score.exact, score.exact, score.overlapping, score.reached]
    for share, part, whole in zip(shares, parts, wholes, strict=True):
        assert math.isnan(share) if whole == 0 else share == part / whole


def test_spans_of_spacy_and_presidio_are_read():
    entity = SimpleNamespace(start_char=0, end_char=4, label_="PERSON")
    result = SimpleNamespace(start=0, end=4, entity_type="PERSON")
    report = redaction.score_spans([SimpleNamespace(ents=[entity])], [[result]])
    assert report["PERSON"].f1 == 1.0
    assert "PERSON            1     1      1.000" in str(report)


def test_wrong_spans_are_named():
    def score(predicted, gold=([(0, 4, "PERSON")],)):
        return lambda: redaction.score_spans(predicted, gold)

    check_messages(ValueError, [
        (score([]), "predicted", "spans of 1 texts"),
        (score([[]], [[]]), "gold", "at least one span"),
        (score([[(4, 4, "PERSON")]]), "predicted[0]", "0 <= start < end"),
        (score([[(0, 4, "PERSON")] * 2]), "predicted[0]", "spans that differ"),
        (score([[(0, 4, "any type")]]), "predicted[0]", "not 'any type'"),
        (score([[(-1, 4, "PERSON")]]), "predicted[0]", "at least 0"),
    ])  # fmt: skip
    check_messages(TypeError, [
        (score("PERSON"), "predicted", "a list with a list of spans"),
        (score(["PERSON"]), "predicted[0]", "a list of spans"),
        (score([[(0, 4)]]), "predicted[0]", "(start, end, type)"),
        (score([[(0.0, 4, "PERSON")]]), "predicted[0]", "an integer"),
        (score([[(0, 4, 1)]]), "predicted[0]", "(start, end, type)"),
        (score([(0, 4, "PERSON")]), "predicted[0]", "(start, end, type)"),
    ])  # fmt: skip
