"""The experiment on ADePT: rewrites, what is told of them, and the epsilon that is true."""

from __future__ import annotations

import numpy as np
import pytest
from shared_extras import data, needs

from dpcore.experiments import adept_rewrite
from dpcore.experiments.adept_rewrite import measure_intent_utility, top_label_share

CONFIG = {"quick": True, "trials": 2000, "claimed": (300.0,), "variants": ("published", "l1")}


@pytest.fixture(scope="module")
def result():
    """Two variants at one claim, on made-up utterances."""
    needs("torch", "sacrebleu", "sklearn")
    return adept_rewrite.run(adept_rewrite.Config(**CONFIG), threads=1, progress=False)


def corpus(texts, labels):
    return adept_rewrite.StudyTexts("generated", "", ("a",), tuple(texts), tuple(labels), 0, 1, 1)


@pytest.mark.extras
@pytest.mark.sweep
def test_the_rows(result):
    published, l1 = result.rows
    assert (published.variant, published.true) == ("published", pytest.approx(2400.0))
    assert (l1.variant, l1.true) == ("l1", pytest.approx(300.0))
    for row in result.rows:
        (cell,) = row.cells
        assert 0.0 <= cell.on_text <= cell.exact <= row.true * (1.0 + 1e-6)
        assert 0.0 < cell.on_vector <= cell.exact
        assert len(cell.examples) == 5
        assert 0.0 <= cell.bleu <= 1.0
        assert not cell.partial
    (texts,) = result.texts
    assert not {*texts.train} & {*texts.held}
    assert [one.setup.clip for one in result.models] == ["l2", "l1"]
    assert all(one.model is None for one in result.models)


@pytest.mark.sweep
@pytest.mark.extras
def test_the_table(result):
    text = result.table()
    assert "utterances made up" in text
    assert "memorised: not private text" in text
    assert "no training text is covered by any" in text
    assert "2400!" in text
    for original in result.texts[0].held[:5]:
        assert original.lower().split()[-1] in text
    assert text.count("no noise") == 2 * 5
    assert "published: " in text


@pytest.mark.sweep
@pytest.mark.extras
def test_the_record_and_the_picture(result):
    record = result.to_dict()
    assert record["config"]["claimed"] == [300.0]
    assert [row["variant"] for row in record["rows"]] == ["published", "l1"]
    assert record["corpora"][0]["made_up"] is True
    assert record["corpora"][0]["majority"] == pytest.approx(top_label_share(result.texts[0]))
    above, below = result.plot().axes
    assert "made up" in above.get_title()
    assert "true epsilon" in below.get_xlabel()
    assert [text.get_text() for text in above.texts] == ["claimed 300"]


def test_utility_is_told_from_texts_alone():
    rng = np.random.default_rng(1)
    labels = np.repeat(["fare", "delay", "seat"], 40)
    texts = [f"{label} {rng.integers(99)}" for label in labels]
    known = corpus(texts, labels)
    assert measure_intent_utility(texts, known, 0.95, 1).accuracy.value == 1.0
    # Texts that say nothing, and none at all: the majority of two folds more or less.
    for same in (["same"] * 120, [""] * 120):
        found = measure_intent_utility(same, known, 0.95, 1)
        assert found.accuracy.low <= top_label_share(known)
        assert found.f1.value < 0.4


def test_equal_originals_are_in_one_fold():
    # The word of a text tells its label, but no other text has it: only a copy would.
    texts = [f"word{number}" for number in range(30)] * 2
    labels = [("a", "b", "c")[number * 7 % 11 % 3] for number in range(30)] * 2
    copied = corpus(texts, labels)
    apart = corpus([f"{text} {place}" for place, text in enumerate(texts)], labels)
    assert measure_intent_utility(texts, copied, 0.95, 1).accuracy.value < 0.6
    assert measure_intent_utility(texts, apart, 0.95, 1).accuracy.value > 0.9


def test_an_intent_with_one_text_is_outside_of_macro_f1():
    texts = [f"{name} {number}" for name in ("one", "two", "six") for number in range(10)]
    labels = [text.split()[0] for text in texts]
    # Twice the same text is one.
    lonely = corpus([*texts, "lonely text", "Lonely text!"], [*labels, "lonely", "lonely"])
    assert adept_rewrite.list_one_text_intents(lonely) == ("lonely",)
    found = measure_intent_utility([*texts, "lonely text", "lonely text"], lonely, 0.95, 1)
    assert found.accuracy.value == pytest.approx(30 / 32)
    assert found.f1.value > 0.9


def test_full_and_quick():
    full = adept_rewrite.Config(full=True)
    assert (full.seeds, full.widths) == (3, (64, 128, 256))
    assert adept_rewrite.Config(full=True, seeds=1).seeds == 1
    assert adept_rewrite.Config().widths == (128,)
    assert adept_rewrite.Config().claimed == (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def test_held_out_texts_of_the_real_corpora():
    config = adept_rewrite.Config(data=data("atis").parent, full=True)
    atis, snips = adept_rewrite.read_or_generate_corpora(config)
    assert (len(atis.train), len(atis.held), atis.dropped) == (4478, 1328, 65)
    assert not {*atis.train} & {*atis.held}
    assert (snips.epochs, snips.min_count, len(snips.train)) == (7, 2, 13084)
    assert top_label_share(atis) == pytest.approx(0.710, abs=0.01)
