"""`text.link`: which document an output came from, for each kind of mechanism and method."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from scipy import stats
from shared_extras import needs

from dpcore.bounds import limits
from dpcore.text import Rewriter, generated, link, linkage, redaction, words
from dpcore.text.redaction.masking import policy_mask_levels
from dpcore.text.words import Embedding, MetricLaplace, SanText

WORDS = [f"w{i}" for i in range(30)]
VECTORS = Embedding(WORDS, np.random.default_rng(1).normal(size=(30, 4)))
ROWS = np.random.default_rng(2).integers(0, 30, (80, 6))
TEXTS = [" ".join(WORDS[i] for i in row) for row in ROWS]
OTHERS = np.random.default_rng(3).permutation(80)
"""Rows of other texts: the truth of the negative control."""


def keep_some(share):
    """Return a user's rewriter that keeps each word with one probability."""

    def keep(texts, rng=None):
        draw = np.random.default_rng(rng)
        lists = [[word for word in text.split() if draw.random() < share] for text in texts]
        return [" ".join(kept) for kept in lists]

    return keep


def mask_some(texts, share, rng):
    policy = redaction.Random()
    return redaction.mask_words(
        texts, policy_mask_levels(policy, texts, np.random.default_rng(rng)), share
    )


def count_common(output, candidate):
    return len(set(output.split()) & set(candidate.split()))


TEXT_KINDS = {
    # mechanism, by, outputs without noise, outputs with some, outputs that keep nothing
    "table": (
        SanText(VECTORS, 2.0), "likelihood", lambda m: TEXTS, lambda m: m.rewrite(TEXTS, rng=1)
    ),
    "metric": (
        MetricLaplace(VECTORS, 20.0), "encoding", lambda m: TEXTS, lambda m: m.rewrite(TEXTS, rng=1)
    ),
    "places": (
        redaction.Random(), "places", lambda m: TEXTS, lambda m: mask_some(TEXTS, 0.6, 1)
    ),
    "bag": (redaction.Random(), "bag", lambda m: TEXTS, lambda m: mask_some(TEXTS, 0.6, 1)),
    "masked words": (
        redaction.Random(), "words", lambda m: TEXTS, lambda m: mask_some(TEXTS, 0.6, 1)
    ),
    "own function": (keep_some(0.6), "words", lambda m: TEXTS, lambda m: m(TEXTS, 1)),
    "own score": (keep_some(0.6), count_common, lambda m: TEXTS, lambda m: m(TEXTS, 1)),
    "rewriter": (Rewriter(keep_some(0.6)), "words", lambda m: TEXTS, lambda m: m.rewrite(TEXTS, 1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_no_noise_links_all_and_outputs_of_other_texts_link_as_the_floor(kind):
    """At confidence .9999 the interval of the negative control holds the floor or is below it."""
    mechanism, by, plain, noisy = TEXT_KINDS[kind]
    outputs = noisy(mechanism)
    clean, some, control = (
        link(mechanism, TEXTS, found, by=by, truth=truth, confidence=0.9999).linkages[0]
        for found, truth in ((plain(mechanism), None), (outputs, None), (outputs, OTHERS))
    )
    assert clean.share == 1.0 or kind == "own score"
    assert some.is_above_floor
    assert control.interval[0] <= control.floor == 1 / 80
    assert some.median_rank < 10 < 20 < control.median_rank


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_likelihood_of_a_table_is_that_of_a_loop(epsilon):
    mech = SanText(VECTORS, epsilon)
    texts = [*TEXTS[:20], "w1 w2", "w3 w4", TEXTS[0]]
    outputs, logs = mech.rewrite(texts, rng=3), mech.log_rows(0, 30)
    ranks = []
    for row, output in enumerate(outputs):
        drawn = [WORDS.index(word) for word in output.split()]

        def score(text, drawn=drawn):
            own = [WORDS.index(word) for word in text.split()]
            pairs = zip(own, drawn, strict=False)
            return sum(logs[a, b] for a, b in pairs) if len(own) == len(drawn) else -math.inf

        different = set(texts) - {texts[row]}
        ranks.append(1 + sum(score(text) > score(texts[row]) for text in different))
    found = link(mech, texts, outputs, by="likelihood").linkages[0]
    assert found.ranks.tolist() == ranks
    assert found.floor == 2 / 23


NOISES = {
    "laplace": ({"noise": "laplace"}, lambda n, law: stats.laplace(0, law.scale).logpdf(n).sum()),
    "gaussian": (
        {"noise": "gaussian", "delta": 1e-5},
        lambda n, law: stats.norm(0, law.sigma).logpdf(n).sum(),
    ),
    "l2_laplace": (
        {"noise": "l2_laplace"},
        lambda n, law: -math.sqrt((n**2).sum()) / law.scale,
    ),
}


def make_encoder(name="laplace", epsilon=20.0):
    needs("torch")
    torch = import_module("dpcore.torch")
    rows = np.random.default_rng(4).normal(size=(80, 8))
    table = dict(zip(TEXTS, rows, strict=True))
    return torch.PrivateEncoder(table, torch.Clip("l1", 4.0), epsilon=epsilon, **NOISES[name][0])


@pytest.mark.extras
@pytest.mark.parametrize("name", NOISES)
def test_the_likelihood_of_vectors_is_that_of_a_loop(name):
    private, log_density = make_encoder(name), NOISES[name][1]
    clean = private.clean(TEXTS).double().numpy()
    outputs, law = private.encode(TEXTS, rng=1), private.noise.description
    scores = np.array(
        [[log_density(output - row, law) for row in clean] for output in outputs.astype(float)]
    )
    ranks = 1 + (scores > np.diag(scores)[:, np.newaxis]).sum(axis=1)
    report = link(private, TEXTS, outputs, by=["likelihood", "encoding"])
    assert report["likelihood"].ranks.tolist() == ranks.tolist()
    assert report["likelihood"].is_above_floor
    if name != "laplace":  # both fall with the L2 distance alone
        assert report["encoding"].ranks.tolist() == ranks.tolist()
    control = link(private, TEXTS, outputs, by="likelihood", truth=OTHERS, confidence=0.9999)
    assert control.linkages[0].interval[0] <= 1 / 80
    plain = link(private, TEXTS, clean, by=["likelihood", "encoding"])
    assert [linked.share for linked in plain.linkages] == [1.0, 1.0]


@pytest.mark.extras
@pytest.mark.parametrize("nan", ["zero", "resample"])
def test_noise_of_dptext_excludes_most_candidates(nan):
    needs("torch")
    torch = import_module("dpcore.torch")
    rows = np.random.default_rng(4).normal(size=(80, 8))
    table, noise = dict(zip(TEXTS, rows, strict=True)), torch.DPTextNoiseLayer(0.6, nan=nan)
    private = torch.PrivateEncoder(
        table, torch.Clip("l1", 4.0), epsilon=1.0, noise=noise, strict=False
    )
    outputs = private.encode(TEXTS, rng=1)
    report = link(private, TEXTS, outputs, by=["likelihood", "encoding"])
    assert report["likelihood"].share > report["encoding"].share + 0.1
    if nan == "zero":  # half of the entries are unchanged
        assert report["likelihood"].share == 1.0
        return
    noises = outputs[:, np.newaxis].astype(float) - private.clean(TEXTS).double().numpy()
    densities = stats.expon(-1e-6, 0.6).logpdf(noises).sum(axis=2)
    ranks = 1 + (densities > np.diag(densities)[:, np.newaxis]).sum(axis=1)
    assert report["likelihood"].ranks.tolist() == ranks.tolist()


@pytest.fixture(scope="module")
def systems():
    needs("torch")
    text = import_module("dpcore.text.systems")
    corpus = generated("intents", 300, rng=1)
    adept = text.ADePTModel(2000.0, hidden=16, embedding=16).fit(
        corpus, epochs=2, pair=False, rng=1
    )
    return adept, list(dict.fromkeys(corpus.train.texts))[:60]


@pytest.mark.extras
def test_a_text_system_is_linked_by_its_vector_and_by_its_text(systems):
    adept, texts = systems
    report = link(adept, texts, adept.encode(texts, rng=1), by=["likelihood", "encoding"])
    assert report["likelihood"].is_above_floor
    assert report["likelihood"].share >= report["encoding"].share
    written = ["", *adept.rewrite(texts, rng=1)[1:]]
    by_text = link(adept.rewriter, texts, written, by=["encoding", "words"])
    assert by_text["encoding"].ranks[0] == (len(texts) + 1) / 2  # an empty text says nothing
    assert (
        link(adept.rewrite, texts, written, by=["encoding", "words"]).linkages == by_text.linkages
    )
    assert link(adept, texts, texts, by=["encoding", "words"])["words"].share == 1.0
    with pytest.raises(ValueError, match="the law of a rewritten text is not known"):
        link(adept, texts, written, by="likelihood")


@cache
def train_model(name):
    """Return a text system whose noise is small, and texts of those that it is fitted on."""
    needs("torch")
    text = import_module("dpcore.text.systems")
    corpus = generated("intents", 200, rng=1)
    model = {
        "DPNR": lambda: text.DPNR(dim=16, epsilon=500.0),
        "DPNR of dropped words": lambda: text.DPNR(
            dim=16, epsilon=500.0, dropout=text.WordDropout(0.2)
        ),
        "DPTextModel": lambda: text.DPTextModel(5.0, attribute="day", noise="resample", dim=16),
        "ADePTModel": lambda: text.ADePTModel(2000.0, hidden=16, embedding=16),
    }[name]()
    model.fit(corpus, epochs=1, pair=False, rng=1)
    return model, list(dict.fromkeys(corpus.train.texts))[:40]


def draw_outputs(kind):
    """Return the mechanism of a row of the table, its candidates and its outputs."""
    if kind in MODELS:
        model, texts = train_model(MODELS[kind])
        mechanism = model.rewriter if kind == "rewriter of ADePTModel" else model
        written = kind.startswith("rew") or kind.endswith("texts")
        return mechanism, texts, texts if written else model.encode(texts, rng=1)
    if kind == "PrivateEncoder":
        private = make_encoder(epsilon=100.0)
        return private, TEXTS, private.encode(TEXTS, rng=1)
    mechanism, _, _, noisy = TEXT_KINDS[kind]
    return mechanism, TEXTS, noisy(mechanism)


MODELS = {
    "DPNR": "DPNR", "DPNR of dropped words": "DPNR of dropped words",
    "DPTextModel": "DPTextModel", "ADePTModel": "ADePTModel", "ADePTModel, texts": "ADePTModel",
    "DPNR, texts": "DPNR", "rewriter of ADePTModel": "ADePTModel",
}  # fmt: skip
WORKS, LAW = "", "the law of a rewritten text is not known"
VECTORS_HAVE_NO_WORDS = "by must be 'likelihood', 'encoding' or a function, for the outputs are vec"
NO_VECTORS = "by must be 'words' or a function .* has no clean vectors"
METHODS = {
    # kind: what "likelihood", "encoding" and "words" do
    "table": (WORKS, WORKS, WORKS),
    "metric": ("MetricLaplace has no table here", WORKS, WORKS),
    "masked words": (NO_VECTORS, NO_VECTORS, WORKS),
    "own function": (NO_VECTORS, NO_VECTORS, WORKS),
    "rewriter": (NO_VECTORS, NO_VECTORS, WORKS),
    "PrivateEncoder": (WORKS, WORKS, VECTORS_HAVE_NO_WORDS),
    "DPNR": (WORKS, WORKS, VECTORS_HAVE_NO_WORDS),
    "DPNR of dropped words": ("DPNR is random itself", WORKS, VECTORS_HAVE_NO_WORDS),
    "DPTextModel": (WORKS, WORKS, VECTORS_HAVE_NO_WORDS),
    "ADePTModel": (WORKS, WORKS, VECTORS_HAVE_NO_WORDS),
    "ADePTModel, texts": (LAW, WORKS, WORKS),
    "rewriter of ADePTModel": (LAW, WORKS, WORKS),
    "DPNR, texts": (LAW, WORKS, WORKS),
}


@pytest.mark.parametrize(
    "kind",
    [kind if kind in TEXT_KINDS else pytest.param(kind, marks=pytest.mark.extras)
     for kind in METHODS],
)  # fmt: skip
def test_each_method_links_each_kind_or_says_why_it_does_not_fit(kind):
    """At confidence .9999; outputs of other texts are not above the floor."""
    mechanism, texts, outputs = draw_outputs(kind)
    shifted = np.roll(np.arange(len(texts)), 1)
    for by, message in zip(("likelihood", "encoding", "words"), METHODS[kind], strict=True):
        if message:
            with pytest.raises(ValueError, match=message):
                link(mechanism, texts, outputs, by=by)
            continue
        linked, control = (
            link(mechanism, texts, outputs, by=by, truth=truth, confidence=0.9999)[by]
            for truth in (None, shifted)
        )
        # The noise of DPText has one sign, which the distance does not use.
        assert linked.is_above_floor is not (kind == "DPTextModel" and by == "encoding")
        assert not control.is_above_floor
        assert linked.floor == 1 / len(texts)


def test_the_functions_of_one_kind_have_the_same_figures():
    mech = SanText(VECTORS, 2.0)
    outputs = mech.rewrite(TEXTS, rng=1)
    report = link(mech, TEXTS, outputs, by="likelihood")
    assert words.link(mech, TEXTS, outputs).right == report["likelihood"].right
    masked = mask_some(TEXTS, 0.7, 2)
    for by in ("places", "kept_places", "bag"):
        found = link(None, TEXTS, masked, by=by)[by]
        assert found.right == redaction.link_redacted(TEXTS, masked, by=by).right < 80


@pytest.mark.parametrize("values", [(0.0, 0.5, 1.0), (0.0, 1 / 3), (0.0, 1.0)])
def test_the_interval_of_shared_outputs_covers_their_mean(values):
    """2,000 samples of 20 outputs at 90 %: at most 250 misses, probability 1e-4; .35 is missed."""
    rng, mean = np.random.default_rng(1), np.mean(values)
    sums = rng.choice(values, size=(2000, 20)).sum(axis=1)
    has_parts = 1.0 not in values or len(values) > 2
    low, high = np.array([linkage.share_interval(x, 20, 0.9, has_parts) for x in sums]).T
    for value, is_covered in ((mean, True), (mean + 0.35, False)):
        assert bool(((low > value) | (high < value)).sum() <= 250) is is_covered
    assert linkage.share_interval(3.0, 20, 0.9, False) == limits(3, 20, 0.05)


def test_equal_candidates_count_as_one_and_ties_share():
    texts = ["a b", "a b", "a c", "d e"]
    report = link(None, texts, ["a b", "a", "x", "d"], by="words", truth=[1, 2, 3, -1])
    found = report["words"]
    assert found.floor == 0.5
    # Two of three documents that hold "a" are the other text; nothing holds "x".
    assert found.shares.tolist() == [1.0, pytest.approx(1 / 3), 0.25, 0.0]
    np.testing.assert_array_equal(found.ranks, [1.0, 1.5, 2.0, np.nan])
    assert found.guesses.tolist() == [0, 0, 0, 3]
    assert (found.right, found.median_rank) == (2, 1.5)


def fails(**changes):
    usual = {"mechanism": None, "candidates": ["a", "b"], "outputs": ["a", "b"], "by": "words"}
    return lambda: link(**{**usual, **changes})


ERRORS = [
    (fails(by="best"), ValueError, "by must be one of"),
    (fails(by=[]), ValueError, "by must be a method or a list of methods"),
    (fails(by=["words", "words"]), ValueError, "by must be methods of different names"),
    (fails(candidates=["a"]), ValueError, "candidates must be two texts or more"),
    (fails(outputs="a"), TypeError, "outputs must be a list of texts or an array of vectors"),
    (fails(outputs=[]), ValueError, "outputs must be"),
    (fails(outputs=["a"]), ValueError, "outputs must be one for each of 2 candidates"),
    (fails(outputs=["a", 1]), TypeError, r"outputs\[1\] must be a text"),
    (fails(truth=[0, 2]), ValueError, "truth must be the row of a candidate, below 2, or -1"),
    (fails(truth=[0.0, 1.0]), TypeError, "truth must be the row of a candidate"),
    (fails(outputs=[[1.0], [2.0]]), ValueError, "for the outputs are vectors"),
    (fails(outputs=[[1.0], [np.nan]]), ValueError, r"outputs\[1\] must be finite numbers"),
    (fails(by="encoding"), ValueError, "for an unknown mechanism has no clean vectors"),
    (fails(by="likelihood", mechanism=keep_some(0.5)), ValueError, "has no clean vectors"),
    (fails(by=lambda output, text: math.nan), ValueError, r"candidate. must be a .*nan"),
    (
        fails(mechanism=MetricLaplace(VECTORS, 1.0), by="likelihood"), ValueError,
        "MetricLaplace has no table",
    ),
    (fails(mechanism=SanText(VECTORS, 1.0), by="likelihood"), ValueError, "candidates.0. must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_wrong_arguments_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"mechanism": [1]}, TypeError, r"mechanism must be a mechanism of texts, .*got \[1\]"),
    ({"mechanism": "x"}, TypeError, "mechanism must be a mechanism of texts, .*got 'x'"),
    ({"mechanism": SanText}, TypeError, "mechanism must be a mechanism of texts, .*SanText"),
    ({"outputs": []}, ValueError, r"outputs must be at least one text or vector, got \[\]"),
    ({"outputs": np.full((2, 2), np.nan)}, ValueError, r"outputs\[0\] must be finite numbers"),
    ({"by": lambda *_: "x"}, TypeError, r"by\(output, candidate\) must be a number, .*got 'x'"),
    ({"by": lambda *_: math.nan}, ValueError, r"by\(output, candidate\) must be .*got nan"),
])  # fmt: skip
def test_a_wrong_argument_is_named(arguments, error, message):
    usual = {"mechanism": lambda texts: texts, "outputs": ["a b", "c d"], "by": "words"}
    usual |= {"candidates": ["a b", "c d"]} | arguments
    with pytest.raises(error, match=message):
        link(**usual)
