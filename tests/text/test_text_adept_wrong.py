"""ADePT: what is refused, what is said, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from shared_extras import needs

torch = needs("torch")

from dpcore.text import DPNR, ADePTModel, Corpus  # noqa: E402
from dpcore.text.systems import autoencoder  # noqa: E402

TEXTS = ["a train to morwen", "list the fares to garrow", "how late is it", "book two seats"]


def fitted(epsilon=10.0, **given):
    return ADePTModel(epsilon, hidden=8, embedding=4).fit(TEXTS * 4, rng=1, **{"epochs": 2} | given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"epochs": 0}, "epochs must be"),
        ({"batch": 0}, "batch must be"),
        ({"lr": 0.0}, "lr must be"),
        ({"lr": 1e38}, "lr must be"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"device": "nowhere"}, "device must be one of this machine"),
        ({"corpus": []}, "texts must be"),
        ({"corpus": [""]}, r"texts\[0\] must be"),
        ({"corpus": ["a b", "?!"]}, r"texts\[1\] must be a text with a word"),
        ({"corpus": ["?!"]}, "min_count must be"),
    ],
)
def test_wrong_training(given, text):
    given = {"corpus": TEXTS} | given
    with pytest.raises(ValueError, match=f"^{text}"):
        ADePTModel(1.0, hidden=4).fit(given.pop("corpus"), **given)
    with pytest.raises(TypeError, match="pair must be"):
        ADePTModel(1.0, hidden=4).fit(TEXTS, pair="no")
    with pytest.raises(TypeError, match="texts must be"):
        ADePTModel(1.0, hidden=4).fit("one text")


@pytest.mark.parametrize("do", ["encode", "rewrite", "clean", "decode", "worst_pair"])
def test_nothing_before_fit(do):
    with pytest.raises(ValueError, match=r"^model must be fitted before it .*not fitted\)"):
        getattr(ADePTModel(1.0), do)(TEXTS)


def test_more_that_needs_fit(tmp_path):
    for ask in (
        lambda model: model.rewriter,
        lambda model: model.save_pretrained(tmp_path),
        lambda model: model.renoised(2.0),
        lambda model: model.as_mechanism(),
    ):
        with pytest.raises(ValueError, match="model must be fitted"):
            ask(ADePTModel(1.0))
    assert ADePTModel(1.0).worst is ADePTModel(1.0).real is None
    assert "not yet: model.fit(corpus)" in str(ADePTModel(1.0))


def test_wrong_texts_and_vectors():
    model = fitted()
    for texts, error, text in (
        ("one text", TypeError, "texts must be"),
        ([""], ValueError, r"texts\[0\] must be a text that is not empty"),
        (["a train", "?!"], ValueError, r"texts\[1\] must be a text with a word"),
        ([3], TypeError, r"texts\[0\] must be"),
    ):
        with pytest.raises(error, match=text):
            model.rewrite(texts)
    assert model.rewrite([]) == model.decode(np.zeros((0, 16))) == []
    for vectors, error, text in (
        (np.zeros((2, 5)), ValueError, r"vectors must be of shape \(n, 16\)"),
        (np.zeros(16), ValueError, r"vectors must be of shape \(n, 16\)"),
        (np.full((1, 16), np.nan), ValueError, "vectors must be finite"),
        ("vectors", TypeError, "vectors must be"),
    ):
        with pytest.raises(error, match=text):
            model.decode(vectors)
    # Noise beyond the numbers of float32.
    with pytest.raises(ValueError, match="vectors must be finite in float32"):
        model.renoised(1e-39).rewrite(["a train"], rng=1)
    with pytest.raises(ValueError, match="variant must be one that clips in l2, as the weights"):
        model.renoised(1.0, variant="l1")


def test_texts_without_a_known_word_are_named():
    model = fitted()
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


def interrupted(monkeypatch, step):
    """Ctrl-C in the middle of a step."""
    real, steps = autoencoder.words_loss, iter(range(1, 100))

    def loss(*given):
        if next(steps) == step:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(autoencoder, "words_loss", loss)
    model = ADePTModel(10.0, hidden=8, embedding=4)
    return model, lambda: model.fit(TEXTS * 4, epochs=9, batch=4, rng=1)


def test_ctrl_c_keeps_the_last_whole_epoch(monkeypatch):
    model, fit = interrupted(monkeypatch, 11)
    assert fit() is model
    assert model.trained.partial
    assert len(model.trained.losses) == 2
    assert "INTERRUPTED after 2" in str(model)
    assert len(model.rewrite(["a train"], rng=1)) == 1
    # The same steps, ended inside the next epoch's first one: the weights are those in between.
    other, again = interrupted(monkeypatch, 9)
    again()
    for name, weight in model.encoder.state_dict().items():
        assert torch.equal(weight, other.encoder.state_dict()[name])


def test_ctrl_c_before_an_epoch_has_ended(monkeypatch):
    model, fit = interrupted(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        fit()
    with pytest.raises(ValueError, match="model must be fitted"):
        model.rewrite(["a train"])


def test_ctrl_c_in_the_search_for_a_pair_keeps_the_model(monkeypatch):
    def end(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ADePTModel, "worst_pair", end)
    model = fitted()
    assert model.worst is None
    assert not model.trained.partial


def test_folders_of_others(tmp_path):
    needs("safetensors")
    with pytest.raises(FileNotFoundError):
        ADePTModel.from_pretrained(tmp_path / "nowhere")
    dpnr = DPNR(dim=4, epsilon=5.0).fit(Corpus(TEXTS, [0, 1, 0, 1]), epochs=1, rng=1, pair=False)
    dpnr.save_pretrained(tmp_path / "dpnr")
    with pytest.raises(ValueError, match=r"dpcore\.text\.ADePT/1"):
        ADePTModel.from_pretrained(tmp_path / "dpnr")
    model = fitted()
    model.save_pretrained(tmp_path / "adept")
    file = tmp_path / "adept" / "config.json"
    config = json.loads(file.read_text())
    for changed in (
        {**config, "format": "dpcore.text.ADePT/2"},
        {**config, "more": 1},
        {key: value for key, value in config.items() if key != "words"},
        {**config, "arguments": {**config["arguments"], "more": 1}},
        {**config, "arguments": {**config["arguments"], "hidden": 9}},
        {**config, "trained": {}},
        {**config, "words": [*config["words"], "another"]},
    ):
        file.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match="must be"):
            ADePTModel.from_pretrained(tmp_path / "adept")
    file.write_text(json.dumps(config))
    assert ADePTModel.from_pretrained(tmp_path / "adept").rewrite(TEXTS, rng=1) == model.rewrite(
        TEXTS, rng=1
    )
    (tmp_path / "adept" / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        ADePTModel.from_pretrained(tmp_path / "adept")
