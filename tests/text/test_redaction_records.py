"""Redaction of records: delta against enumeration, and audits of policies as mechanisms."""

from __future__ import annotations

import pickle
from itertools import combinations
from math import comb

import numpy as np
import pytest
from shared_extras import needs

import dpcore
from dpcore import Pair, pairs
from dpcore.text.redaction import MASK, Keywords, Random, Ranked, policy_mechanism, record_delta

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
