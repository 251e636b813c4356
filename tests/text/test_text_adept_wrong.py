"""ADePT: what is refused, what is said, and what Ctrl-C leaves."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch")

from dpcore.text import ADePTModel  # noqa: E402
from dpcore.text.systems import autoencoder  # noqa: E402

TEXTS = ["a train to morwen", "list the fares to garrow", "how late is it", "book two seats"]


def fitted(**given):
    return ADePTModel(10.0, hidden=8, embedding=4).fit(TEXTS * 4, rng=1, **{"epochs": 2} | given)


@cache
def known():
    """A fitted model, which no test changes."""
    return fitted()


def fit_small(texts=TEXTS, **given):
    return ADePTModel(1.0, hidden=4).fit(texts, **given)


def test_texts_without_a_known_word_are_named():
    model = known()
    with pytest.warns(UserWarning, match="1 of 2 texts have no known word"):
        found = model.rewrite(["a train", "xyzzy plugh"], rng=1)
    assert len(found) == 2


def test_long_texts_are_cut_and_counted():
    long = " ".join(["fares"] * 21)
    model = ADePTModel(10.0, hidden=4).fit([*TEXTS, long], epochs=1, pair=False, rng=1)
    assert (model.trained.texts, model.trained.cut) == (5, 1)
    assert "on 5 texts (1 of them cut)" in str(model)
    assert torch.equal(model.clean([long]), model.clean([long + " to morwen"]))
    assert not torch.equal(model.clean([long]), model.clean(["fares"]))
    model.rewrite([long, "fares"], rng=1)
    assert model.private.counted == {"texts": 2, "cut": 1}
    assert "2 encoded so far, 1 of them cut after 20 tokens" in str(model)
    assert all(len(text.split()) <= 20 for text in model.rewrite(TEXTS * 5, rng=1))


@pytest.mark.parametrize("lr", [1e6, 1e30])
def test_a_loss_that_diverges_names_epoch_and_rate(lr):
    with pytest.raises(ValueError, match=r"lr must be small enough .*in epoch \d+\), got 1"):
        fitted(lr=lr)


def test_a_loss_that_is_no_number(monkeypatch):
    nan = torch.tensor(math.nan, requires_grad=True)
    monkeypatch.setattr(autoencoder, "words_loss", lambda *_: nan)
    with pytest.raises(ValueError, match=r"it does in epoch 1\), got 0.003"):
        fitted()


def test_ctrl_c_in_the_search_for_a_pair_keeps_the_model(monkeypatch):
    def end(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ADePTModel, "worst_pair", end)
    model = fitted()
    assert model.worst is None
    assert not model.trained.partial


def test_no_texts_have_no_rewrites():
    assert known().rewrite([]) == known().decode(np.zeros((0, 16))) == []


VALUE_ERRORS = [
    (lambda: fit_small(epochs=0), "epochs", "an integer at least 1"),
    (lambda: fit_small(batch=0), "batch", "an integer at least 1"),
    (lambda: fit_small(lr=0.0), "lr", "above 0"),
    (lambda: fit_small(lr=1e38), "lr", "at most 1e+30"),
    (lambda: fit_small(dropout=1.0), "dropout", "below 1"),
    (lambda: fit_small(device="nowhere"), "device", "one of this machine"),
    (lambda: fit_small([]), "texts", "a list of at least one text"),
    (lambda: fit_small([""]), "texts[0]", "a text that is not empty"),
    (lambda: fit_small(["a b", "?!"]), "texts[1]", "a text with a word"),
    (lambda: fit_small(["?!"]), "min_count", "at most 0"),
    (lambda: ADePTModel(1.0).rewriter, "model", "fitted before it rewrites"),
    (lambda: ADePTModel(1.0).rewrite(TEXTS), "model", "fitted before it encodes"),
    (lambda: ADePTModel(1.0).decode(TEXTS), "model", "fitted before it decodes"),
    (lambda: ADePTModel(1.0).renoised(2.0), "model", "fitted before it takes other noise"),
    (lambda: known().rewrite([""]), "texts[0]", "a text that is not empty"),
    (lambda: known().rewrite(["a train", "?!"]), "texts[1]", "a text with a word"),
    (lambda: known().decode(np.zeros((2, 5))), "vectors", "of shape (n, 16)"),
    (lambda: known().decode(np.zeros(16)), "vectors", "of shape (n, 16)"),
    (lambda: known().decode(np.full((1, 16), np.nan)), "vectors", "finite"),
    # Noise beyond the numbers of float32.
    (lambda: known().renoised(1e-39).rewrite(["a train"], rng=1), "vectors", "finite in float32"),
    (lambda: known().renoised(1.0, variant="l1"), "variant", "one that clips in l2"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: fit_small(pair="no"), "pair", "True or False"),
    (lambda: fit_small("one text"), "texts", "not a single string"),
    (lambda: known().rewrite("one text"), "texts", "not a single string"),
    (lambda: known().rewrite([3]), "texts[0]", "a text (a string)"),
    (lambda: known().decode("vectors"), "vectors", "an array of numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
