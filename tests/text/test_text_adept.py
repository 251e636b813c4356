"""ADePT: what is claimed and true of each variant, the clip, the noise, and rewrites that are read.

What is learnt is asked of generated utterances that the auto-encoder has not seen.
"""

import math
from functools import cache

import numpy as np
import pytest
from shared_extras import CUDA, needs
from shared_messages import check_messages

import dpcore
from dpcore.text import generated, words_of

torch = needs("torch")

from dpcore.text import ADePTModel  # noqa: E402
from dpcore.text.systems import autoencoder  # noqa: E402

VARIANTS = {"published": 0.0, "scaled": 0.0, "l1": 0.0, "gaussian": 1e-5}


def small(epsilon=10.0, rng=1, **given):
    """A few steps of a small one: its weights are of no use, and its noise is that of any other."""
    arguments = {"hidden": 8, "embedding": 4} | given
    corpus = generated("intents", 100, rng=1)
    return ADePTModel(epsilon, **arguments).fit(corpus, epochs=1, pair=False, rng=rng)


@pytest.fixture(scope="module")
def corpus():
    """Utterances, split."""
    return generated("intents", 1200, rng=1)


@pytest.fixture(scope="module")
def learnt(corpus):
    """One that has learnt to repeat them."""
    return ADePTModel(100.0).fit(corpus, epochs=15, pair=False, rng=1)


@pytest.fixture(scope="module")
def held(corpus):
    """Texts that it has not seen, as it could write them at best."""
    seen = set(corpus.train.texts)
    return [" ".join(words_of(text)) for text in corpus.test.texts if text not in seen]


@pytest.mark.sweep
def test_texts_it_has_not_seen_are_repeated_without_noise(learnt, held):
    sacrebleu = needs("sacrebleu")
    # Of noise beyond all vectors nothing is repeated.
    texts = learnt.decode(learnt.clean(held)), learnt.renoised(1.0).rewrite(held, rng=1)
    found, lost = (sacrebleu.corpus_bleu(one, [held], tokenize="none").score for one in texts)
    assert found >= 70.0 > 10.0 > lost


def test_rewrites_have_noise_whatever_the_mode(learnt, held):
    for mode in (True, False):
        learnt.encoder.train(mode)
        learnt.decoder.train(mode)
        one, same, other = (learnt.rewrite(held[:20], rng=seed) for seed in (2, 2, 3))
        assert one == same != other
        assert one != learnt.decode(learnt.clean(held[:20]))
        assert learnt.rewrite(held[:20]) != learnt.rewrite(held[:20])
    learnt.encoder.eval()
    learnt.decoder.eval()


def test_a_rewrite_holds_words_of_texts_alone():
    model = small()
    vectors = torch.as_tensor(model.clean(["a train to morwen", "how late is it"]))
    plain = model.decoder.texts(vectors)
    with torch.no_grad():
        model.decoder.scores.bias[[autoencoder.PAD, autoencoder.START]] += 1e6
    assert model.decoder.texts(vectors) == plain


@pytest.mark.parametrize(("variant", "norm"), [("published", 2), ("l1", 1), ("gaussian", 2)])
def test_the_clip_holds_on_every_row(variant, norm):
    model = small(variant=variant, delta=VARIANTS[variant], clip=0.5)
    texts = [f"{word} a train to {word}" for word in ("morwen", "garrow", "list")] * 5
    rows = model.clean(texts).double()
    # Rounding of float32: 5.00000095 for 5 was seen.
    assert float(rows.norm(p=norm, dim=1).max()) <= 0.5 * (1.0 + 1e-6)
    assert float(model.encoder(texts).detach().norm(p=norm, dim=1).max()) > 0.5


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_claimed_and_what_is_true(variant):
    model = small(10.0, variant=variant, delta=VARIANTS[variant])
    factor = 4.0 if variant == "published" else 1.0
    assert model.true_epsilon == pytest.approx(10.0 * factor, rel=1e-6)
    assert model.claim == model.epsilon == 10.0
    false = variant == "published"
    assert ("THE CLAIM IS FALSE" in repr(model)) == ("THE CLAIM IS FALSE" in str(model)) == false
    assert "exact loss" not in repr(model)
    pair = model.worst_pair(["a train to morwen", "how late is it", "list the fares"])
    exact = model.worst[1]
    assert 0.0 < exact <= model.true_epsilon
    assert f"exact loss of the worst pair {exact:.6g}" in repr(model)
    assert pair.x in str(model)
    assert "not covered  the texts that the weights were fitted to" in str(model)


def test_the_published_noise_is_that_of_the_scaled_one_at_a_sixteenth(corpus):
    published = ADePTModel(100.0 / 16.0).fit(corpus.test.texts, epochs=1, pair=False, rng=5)
    scaled = ADePTModel(100.0, variant="scaled").fit(corpus.test.texts, epochs=1, pair=False, rng=5)
    texts = corpus.valid.texts[:30]
    assert published.encoder.width == 256
    assert np.array_equal(published.clean(texts), scaled.clean(texts))
    assert np.array_equal(published.encode(texts, rng=3), scaled.encode(texts, rng=3))
    assert published.rewrite(texts, rng=3) == scaled.rewrite(texts, rng=3)
    again = scaled.renoised(100.0 / 16.0, variant="published")
    assert np.array_equal(again.encode(texts, rng=3), scaled.encode(texts, rng=3))
    assert again.true_epsilon == scaled.true_epsilon == published.true_epsilon == 100.0


def test_training_sees_no_noise_and_repeats():
    one, other, loud, reseeded = small(), small(), small(1e-3), small(rng=2)
    parts = [list(model.encoder.parameters()) for model in (one, other, loud, reseeded)]
    # The claim decides on the noise, and on nothing that is learnt.
    equal = [all(map(torch.equal, parts[0], part)) for part in parts]
    assert equal == [True, True, True, False]
    assert one.trained == other.trained == loud.trained
    assert one.trained.threads == 1


def test_padding_changes_vectors_by_rounding_only(learnt, held):
    texts = [*held[:20], "train", " ".join(["train"] * 20)]
    together = learnt.clean(texts)
    alone = torch.cat([learnt.clean([text]) for text in texts])
    assert float((together - alone).abs().max()) < 1e-5


def test_a_folder_gives_the_same_model(tmp_path):
    needs("safetensors")
    gaussian = small(variant="gaussian", delta=1e-5, min_count=2, longest=5)
    again = ADePTModel.from_pretrained(gaussian.save_pretrained(tmp_path))
    assert again.arguments == gaussian.arguments
    assert again.rewrite(["a train"], rng=1) == gaussian.rewrite(["a train"], rng=1)


def test_vectors_and_texts_are_audited(learnt, held):
    pair = learnt.worst_pair(held, progress=False)
    report = dpcore.audit(learnt, pair, claim=1.0, trials=2000, rng=1, progress=False)
    assert report.verdict == "refuted"
    assert report.declared_loss == pytest.approx(learnt.worst[1], rel=1e-5)
    words = dpcore.audit(learnt.rewriter, pair, claim=1.0, trials=200, rng=1, progress=False)
    assert (words.refuted, learnt.rewriter.claim) == (True, 100.0)
    assert words.name == f"Rewriter({learnt.name})"
    # Negative control: the same weights with noise that covers any two texts.
    scaled = learnt.renoised(1.0, variant="scaled")
    sound = dpcore.audit(scaled, pair, claim=1.0, trials=2000, rng=1, progress=False)
    assert sound.refuted is False


def test_other_noise_on_the_same_weights():
    model = small(10.0)
    gaussian = model.renoised(5.0, variant="gaussian", delta=1e-5)
    assert (gaussian.epsilon, gaussian.variant, gaussian.delta) == (5.0, "gaussian", 1e-5)
    assert gaussian.true_epsilon == pytest.approx(5.0, rel=1e-6)
    assert torch.equal(gaussian.clean(["a train"]), model.clean(["a train"]))
    assert (model.epsilon, model.variant) == (10.0, "published")
    assert math.isnan(ADePTModel(10.0).true_epsilon)
    assert ADePTModel(10.0).real is None


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_devices(device):
    given = {"epochs": 2, "pair": False, "rng": 1, "device": device}
    model = ADePTModel(10.0, hidden=8).fit(["a train to morwen", "list the fares"] * 8, **given)
    assert model.private.encoder.device.type == device
    assert len(model.rewrite(["a train"], rng=1)) == 1
    assert len(model.decode(model.clean(["a train"]))) == 1
    assert model.to("cpu").decode(model.encode(["a train"], rng=1))


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
    assert (model.worst, model.trained.partial) == (None, False)


def test_no_texts_have_no_rewrites():
    assert known().rewrite([]) == known().decode(np.zeros((0, 16))) == []


VALUE_ERRORS = [
    (lambda: fit_small(epochs=0), "epochs", "an integer at least 1"),
    (lambda: fit_small(batch=0), "batch", "an integer from 1 to"),
    (lambda: fit_small(lr=0.0), "lr", "above 0"),
    (lambda: fit_small(lr=1e38), "lr", "at most 1e+30"),
    (lambda: fit_small(dropout=1.0), "dropout", "below 1"),
    (lambda: fit_small(device="nowhere"), "device", "one of this machine"),
    (lambda: fit_small([]), "texts", "a list of at least one text"),
    (lambda: fit_small(["a b", "?!"]), "texts[1]", "a text with a word"),
    (lambda: fit_small(["?!"]), "min_count", "at most 0"),
    (lambda: ADePTModel(1.0, min_count=9).fit(TEXTS), "min_count", "at most 2"),
    (lambda: ADePTModel(epsilon=0.0), "epsilon", "a finite number above 0"),
    (lambda: ADePTModel(1.0, variant="l2"), "variant", "one of"),
    (lambda: ADePTModel(1.0, variant="gaussian"), "delta", "above 0 for 'gaussian'"),
    (lambda: ADePTModel(1.0, delta=1e-5), "delta", "above 0 for 'gaussian'"),
    (lambda: ADePTModel(1.0, hidden=0), "hidden", "an integer at least 1"),
    (lambda: ADePTModel(1.0, clip=0.0), "clip", "a finite number above 0"),
    (lambda: ADePTModel(1.0, longest=0), "longest", "an integer at least 1"),
    (lambda: ADePTModel(1.0, min_count=0), "min_count", "an integer at least 1"),
    (lambda: ADePTModel(1.0).rewriter, "model", "fitted before it rewrites"),
    (lambda: ADePTModel(1.0).decode(TEXTS), "model", "fitted before it decodes"),
    (lambda: ADePTModel(1.0).renoised(2.0), "model", "fitted before it takes other noise"),
    (lambda: known().rewrite(["a train", "?!"]), "texts[1]", "a text with a word"),
    *((lambda shape=shape: known().decode(np.zeros(shape)), "vectors", "of shape (n, 16)")
      for shape in ((2, 5), 16)),
    (lambda: known().decode(np.full((1, 16), np.nan)), "vectors", "finite"),
    # Noise beyond the numbers of float32.
    (lambda: known().renoised(1e-39).rewrite(["a train"], rng=1), "vectors", "finite in float32"),
    (lambda: known().renoised(1.0, variant="l1"), "variant", "one that clips in l2"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: fit_small(pair="no"), "pair", "True or False"),
    (lambda: fit_small("one text"), "texts", "not a single string"),
    (lambda: known().decode("vectors"), "vectors", "an array of numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
