"""Wrong input to next-word models, and what the messages name."""

from __future__ import annotations

import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore import training
from dpcore.text import Vocabulary, generated, lm

torch = needs("torch", "opacus")

CORPUS = generated("intents", 120, rng=1)
TEXTS, VALID = list(CORPUS.train.texts), list(CORPUS.valid.texts)
WORDS = Vocabulary.from_texts(TEXTS, unknown="token")
SMALL = {"vocabulary": WORDS, "hidden": 4, "epochs": 1, "progress": False}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number above 0"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta must be a finite number above 0"),
        ({"epsilon": 1.0, "clip": 0.0}, "clip must be a finite number above 0"),
        ({"epsilon": 1.0, "dropout": 0.2}, "dropout must be 0 for a private training"),
        ({"epsilon": 1.0, "optimiser": "adam"}, "optimiser must be 'sgd' for a private training"),
        ({"epsilon": 1.0, "batch": None}, "texts must be at least as many as a batch, 256"),
        ({"optimiser": "sdg"}, "optimiser must be one of 'sgd', 'adam'"),
        ({"device": "nowhere"}, "device must be one of this machine"),
        ({"length": 1}, "length must be an integer at least 2"),
        ({"lr": 0.0}, "lr must be a finite number above 0"),
        ({"lr": 1e30}, "lr must be small enough that training does not diverge"),
        ({"vocabulary": Vocabulary(["a"], "drop")}, "with unknown='token'"),
        ({"vocabulary": ["a"]}, "vocabulary must be a Vocabulary"),
        ({"start": "model"}, "start must be a NextWordModel"),
    ],
)
def test_wrong_arguments_are_named(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        lm.fit(TEXTS, VALID, **{**SMALL, "batch": 20, **options})


def test_canaries_have_words_of_the_vocabulary():
    own = ["find a train"]
    assert lm.canaries(WORDS, own) == own
    with pytest.raises(ValueError, match=r"canaries\[0\] must be words of the vocabulary"):
        lm.canaries(WORDS, ["find xylophones"])
    with pytest.raises(TypeError, match="many must be an integer"):
        lm.canaries(WORDS, 2.5)
    with pytest.raises(ValueError, match="words must be an integer at least 2"):
        lm.canaries(WORDS, 2, words=1)


def test_large_delta_is_warned_of():
    with pytest.warns(UserWarning, match="is 1/N = .* or more"):
        lm.fit(TEXTS, VALID, **SMALL, epsilon=8.0, delta=0.1, batch=20, rng=1)


def test_large_private_training_is_warned_of(monkeypatch):
    from dpcore.text.lm import network

    monkeypatch.setattr(network, "_MAX_QUIET_GRADIENTS", 1e4)
    with pytest.warns(UserWarning, match="gradients of .* weights, most of them of the") as seen:
        lm.fit(TEXTS, VALID, **SMALL, epsilon=8.0, batch=20, rng=1)
    assert __file__ in {one.filename for one in seen}


def _make_optimizer():
    optimizers = pytest.importorskip("opacus.optimizers")
    weights = [torch.nn.Parameter(torch.zeros(2))]
    return optimizers.DPOptimizer(
        torch.optim.SGD(weights, lr=1.0), noise_multiplier=1.0, max_grad_norm=1.0,
        expected_batch_size=1,
    )  # fmt: skip


def test_missing_opacus_is_named_with_its_extra(monkeypatch):
    def refuse(module):
        raise ModuleNotFoundError(module, name="opacus")

    monkeypatch.setattr("dpcore.packages.import_module", refuse)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dpcore\[dpsgd\]'"):
        lm.fit(TEXTS, VALID, **SMALL, epsilon=8.0, batch=20)


VALUE_ERRORS = [
    (lambda: lm.fit(["[MASK] [MASK]"] * 30, VALID), "vocabulary", "given where all words"),
    (lambda: lm.fit(TEXTS, VALID, **{**SMALL, "vocabulary": Vocabulary(["a"], "token")},
     start=lm.fit(TEXTS, VALID, **SMALL)), "vocabulary", "that of start"),
    (lambda: lm.fit(TEXTS, VALID, **{**SMALL, "hidden": 5}, start=lm.fit(TEXTS, VALID, **SMALL)),
     "hidden", "4, as that of start"),
    (lambda: lm.fit(TEXTS, VALID, **SMALL).step(), "model", "got 'plain'"),
    (lambda: lm.fit(TEXTS, VALID, **SMALL).perplexity(TEXTS), "texts", "texts that are"),
    (lambda: lm.fit(TEXTS, VALID, **SMALL).perplexity(["[MASK] [MASK]"]), "texts", "texts with"),
    (lambda: training.OpacusStep(torch.nn.LSTM(2, 2), _make_optimizer(), lambda model,
     records: records), "model", "DPLSTM"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: lm.fit(TEXTS, VALID, **SMALL).losses("one text"), "texts", "not a single string"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
