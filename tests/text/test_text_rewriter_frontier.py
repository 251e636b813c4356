"""The table of rewriters: kinds of rewriters by figures, and wrong calls."""

import math
from dataclasses import replace

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore.text import Corpus, Rewriter, frontier, generated, lm, redaction, split, words, words_of
from dpcore.text.rewriter_frontiers import compute_bleu

needs("sacrebleu")

CORPUS = split(generated("topics", 300, rng=1), (0.5, 0.15, 0.35), rng=1)
TESTED = CORPUS.test.texts
SMALL = CORPUS[::3]
WORDS = sorted({word for text in CORPUS.texts for word in words_of(text)})
VECTORS = words.Embedding(WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 8)))
SECRET = CORPUS.attribute("parent")


def keep_half(text, rng):
    return " ".join(word for word in text.split() if rng.random() < 0.5)


def write_nothing(texts):
    return [""] * len(texts)


def disclose(texts):
    """Write the attribute in each text, and nothing else."""
    values = dict(zip(CORPUS.texts, SECRET, strict=True))
    return [f"value {values[text]}" for text in texts]


REWRITERS = {
    "copy": Rewriter(list, claim=5.0),
    "half": keep_half,
    "nothing": write_nothing,
    "disclosed": Rewriter(disclose, claim=2.0),
    "words": words.SanText(VECTORS, 6.0),
    "masked": redaction.policy_mechanism(redaction.Random(), 0.6),
    "money": redaction.Keywords(["money", "bank"]),
}


@pytest.fixture(scope="module")
def table():
    return frontier(REWRITERS, CORPUS, attribute="parent", rng=1)


NAN, ABOVE, FLOOR = math.nan, (0.8, 1.0), (0.3, 0.7)
KINDS = {
    # Ranges of BLEU, similarity, AUC, share linked by words; the claim; the method of its kind.
    "not rewritten": ((1.0, 1.0), (1.0, 1.0), (0.7, 1.0), (1.0, 1.0), "", None),
    "copy": ((1.0, 1.0), (1.0, 1.0), (0.7, 1.0), (1.0, 1.0), "5", None),
    "half": ((0.01, 0.5), (0.4, 0.9), (0.5, 1.0), (0.5, 1.0), "", None),
    "nothing": ((0.0, 0.0), (0.0, 0.0), FLOOR, (0.0, 0.1), "", None),
    "disclosed": ((0.0, 0.1), (0.0, 0.2), (1.0, 1.0), (0.0, 0.2), "2", None),
    "words": ((0.3, 0.9), (0.4, 0.95), (0.5, 1.0), (0.8, 1.0), "6 a unit", "likelihood"),
    "masked": ((0.01, 0.5), (0.2, 0.9), (0.5, 1.0), (0.5, 1.0), "", "places"),
    "money": ((0.7, 1.0), (0.7, 1.0), (0.7, 1.0), (0.9, 1.0), "", "places"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_rewriter_has_each_figure(table, kind):
    *ranges, claim, method = KINDS[kind]
    row = table[kind]
    figures = row.bleu, row.similarity, row.attack.figures.auc.value, row.linkages[0].share
    for figure, (low, high) in zip(figures, ranges, strict=True):
        assert low - 1e-9 <= figure <= high + 1e-9
    assert row.claim == claim
    assert math.isnan(row.certified) == (claim == "")
    assert [linked.by for linked in row.linkages] == ["words", method][: 1 + bool(method)]
    assert row.perplexity is None
    assert row.empty == (len(CORPUS.texts) if kind == "nothing" else row.empty)
    assert f"\n{kind} " in str(table)


def test_the_task_needs_words_and_a_disclosed_attribute_is_certified(table):
    assert table["not rewritten"].utility.above_floor
    assert not table["nothing"].utility.above_floor
    assert table["disclosed"].attack.above_floor
    assert not table["nothing"].attack.above_floor
    assert table["disclosed"].certified > 2.0
    refuted = {row.name for row in table.rows if row.is_refuted}
    assert refuted == {"disclosed"}
    assert f"{table['disclosed'].certified:.2f}!" in str(table)
    assert table["copy"].attack.figures == table["not rewritten"].attack.figures
    assert "nothing: 300 texts are rewritten to nothing" in str(table)


def test_masks_have_no_part_in_the_similarity_whatever_signs_the_corpus_holds():
    corpus = replace(CORPUS, texts=[f"[ {text} ]" for text in CORPUS.texts])
    policy = redaction.policy_mechanism(redaction.Random(), 0.8)
    rows = [frontier({"masked": policy}, part, rng=1)["masked"] for part in (CORPUS, corpus)]
    assert 0.2 < rows[0].similarity < 0.8
    assert 0.2 < rows[1].similarity < 0.8


def test_a_seed_repeats_the_table_and_a_single_rewriter_has_two_rows():
    first, again, other = (
        frontier(Rewriter(keep_half), SMALL, by=["words", "bag"], rng=seed) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert [row.name for row in first.rows] == ["not rewritten", "keep_half"]
    assert first.rows[1].attack is None
    assert [linked.by for linked in first.rows[1].linkages] == ["words", "bag"]
    assert len(first.plot().axes) == 2


class FirstWord:
    """An attacker of texts that reads the value that `disclose` wrote."""

    def fit(self, texts, truth):
        assert all(isinstance(text, str) for text in texts)
        return self

    def scores(self, texts):
        return np.array([float(text.endswith("1")) for text in texts])


def test_attackers_of_texts_and_vectors_of_similarity_are_the_users():
    def count_letters(texts):
        return np.array([[len(text), text.count("e") + 1.0] for text in texts], float)

    settings = {"attribute": "parent", "attackers": FirstWord(), "similarity": count_letters}
    report = frontier({"disclosed": disclose}, CORPUS, **settings, rng=1)
    assert report["disclosed"].attack.figures.auc.value == 1.0
    assert report["disclosed"].attack.attacker == "FirstWord"
    rows = [count_letters(side) for side in (TESTED, disclose(TESTED))]
    norms = np.linalg.norm(rows[0], axis=1) * np.linalg.norm(rows[1], axis=1)
    cosine = ((rows[0] * rows[1]).sum(axis=1) / norms).mean()
    assert report["disclosed"].similarity == pytest.approx(cosine, 1e-9)


@pytest.mark.parametrize(("text", "bleu"), [
    ("A b c d e", 0.2 ** 0.25), ("a b c d f", 1.0), ("a b c d", math.exp(1.0 - 5.0 / 4.0)),
    ("x y z u v", 0.0),
])  # fmt: skip
def test_bleu_is_the_mean_of_four_orders_and_a_penalty(text, bleu):
    assert compute_bleu([text], ["a b c d f"]) == pytest.approx(bleu, abs=1e-9)


def test_perplexity_is_that_of_the_public_model_and_adept_has_its_claim_and_its_encoder():
    needs("torch")
    from dpcore.text import ADePTModel

    public = [text for text in generated("topics", 200, rng=2).texts if text not in CORPUS.texts]
    model = lm.fit(
        public[20:], public[:20], optimiser="adam", hidden=8, epochs=1, rng=1, progress=False
    )
    published = ADePTModel(9.0, hidden=8, embedding=4).fit(public, epochs=1, pair=False, rng=1)
    gaussian = published.renoised(7.0, variant="gaussian", delta=1e-5)
    rewriters = [write_nothing, keep_half, published, gaussian]
    report = frontier(rewriters, SMALL, public=model, rng=1)
    rows = report["ADePTModel published 9"], report["ADePTModel gaussian 7"]
    assert [row.claim for row in rows] == ["9 (true 36)", "7"]
    assert [(row.claimed, row.delta) for row in rows] == [(9.0, 0.0), (7.0, 1e-5)]
    assert [[linked.by for linked in row.linkages] for row in rows] == [["words", "encoding"]] * 2
    expected = model.perplexity(SMALL.test.texts, rng=1)
    assert report["not rewritten"].perplexity == expected
    assert report["write_nothing"].perplexity is None
    assert report["keep_half"].perplexity.value > expected.value


def measure_wrongly(rewriters=None, corpus=CORPUS, **changed):
    return lambda: frontier(rewriters or [keep_half], corpus, **changed)


class NotFitted:
    fit = print


def test_messages():
    policy = redaction.policy_mechanism(redaction.Ranked(), 0.5, safe=["a text", "b text"])
    check_messages(ValueError, [
        (measure_wrongly(epsilons=[1.0]), "epsilons", "None for rewriters"),
        (measure_wrongly(dims=[1]), "dims", "None for rewriters"),
        (measure_wrongly(delta=0.1), "delta", "0.0 for rewriters"),
        (measure_wrongly(noise="laplace"), "noise", "'best' for rewriters"),
        (measure_wrongly(directions="random"), "directions", "'principal' for rewriters"),
        (measure_wrongly({"a": [1.0]}, by="words"), "by", "None for encoders"),
        (measure_wrongly([policy]), "", "not fitted on its input"),
        (measure_wrongly([redaction.Random()]), "level", "which random needs"),
        (measure_wrongly(public=TESTED), "public", "without texts of the corpus"),
        (measure_wrongly(public=["a public text"]), "public", "at least two"),
        (measure_wrongly(by="length"), "by", "'length'"),
        (measure_wrongly({"not rewritten": keep_half}), "encoder", "of other names"),
        (measure_wrongly(attribute="age"), "attribute", "'parent'"),
        (measure_wrongly([lambda texts: texts[:1]]), "", "one for each"),
        (measure_wrongly(corpus=Corpus(["a", "b"], split=["train", "test"])), "corpus", "labels"),
    ])  # fmt: skip
    check_messages(TypeError, [
        (measure_wrongly([3]), "", "a function"),
        (measure_wrongly(keep_half), "epsilons", "unless encoder is a Rewriter"),
        (measure_wrongly([lambda text: len(text)]), "", "strings"),
        (measure_wrongly(public=3), "public", "a list of texts"),
        (measure_wrongly(attribute="parent", attackers=NotFitted()), "attackers", "scores(texts)"),
        (measure_wrongly(attribute="parent", attackers=[]), "attackers", "of texts"),
    ])  # fmt: skip
