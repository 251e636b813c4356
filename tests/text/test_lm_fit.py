"""Next-word models: what is learnt, what a record is, what epsilon counts, what a folder holds."""

import json
import math
import warnings

import numpy as np
import pytest
from scipy import stats
from shared_extras import CUDA, needs
from shared_messages import check_messages

from dpcore import training
from dpcore.text import Vocabulary, generated, lm, redaction

torch = needs("torch", "opacus", "safetensors")

from dpcore import AssumptionWarning  # noqa: E402
from dpcore.text.lm import network  # noqa: E402
from dpcore.text.lm.network import Network, draw_weights, record_losses  # noqa: E402
from dpcore.training import audit_run  # noqa: E402

SMALL = {"hidden": 12, "rng": 1, "progress": False}
LONG = {**SMALL, "batch": 10, "epochs": 10}
NOISY = {**SMALL, "batch": 40, "epochs": 6, "lr": 4.0}


@pytest.fixture(scope="module")
def corpus():
    return generated("intents", 400, rng=1)


@pytest.fixture(scope="module")
def words(corpus):
    return Vocabulary.from_texts(corpus, unknown="token", min_count=2)


@pytest.fixture(scope="module")
def plain(corpus, words):
    return lm.fit(corpus, corpus.valid, vocabulary=words, **LONG)


@pytest.fixture(scope="module")
def private(corpus, words):
    return lm.fit(corpus, corpus.valid, vocabulary=words, epsilon=8.0, **NOISY)


def test_plain_model_predicts_better_than_its_unigram(plain, corpus):
    found = plain.perplexity(corpus.test.texts, rng=1)
    assert found.low <= found.value <= found.high < found.unigram < found.uniform
    assert (plain.epsilon, plain.claim, plain.seed) == (None, None, 1)
    # The best epoch's weights are kept.
    assert plain.best_epoch == 1 + int(np.argmin(plain.valid_losses))
    assert plain.losses(corpus.valid.texts).mean() == pytest.approx(min(plain.valid_losses), 1e-5)


def test_samples_follow_the_law_of_the_model(plain, corpus, words):
    """Second words after one first word: chi-square at level 1e-4, and a control of another law."""
    known = {*words.words}
    split = (text.split() for text in corpus.train.texts)
    first, second = next(text[:2] for text in split if known >= {*text[:2]})
    starts = [f"{first} {second} {second} {second} {second}"]
    texts = plain.sample(4000, 1, starts=starts)
    assert texts == plain.sample(4000, 1, starts=starts) != plain.sample(4000, 2, starts=starts)
    assert {len(text.split()) for text in texts} == {5}
    assert {text.split()[0] for text in texts} == {first}
    law = np.exp(next(plain.log_probabilities([f"{first} {second}"]))[0])[1:]
    counts = np.array([sum(text.split()[1] == name for text in texts) for name in words.words])
    assert counts.sum() == 4000  # "<unk>" is never drawn
    likely = law / law.sum() * 4000 >= 5
    observed = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(law[likely], law[~likely].sum()) / law.sum() * 4000
    assert stats.chisquare(observed, expected).pvalue > 1e-4
    assert stats.chisquare(observed, expected[::-1]).pvalue < 1e-4
    assert {len(text.split()) for text in plain.sample(3, 1)} == {plain.length}
    with pytest.raises(ValueError, match="starts must be texts that begin with a word of the voc"):
        plain.sample(3, starts=["zzz yyy"])


def test_private_model_predicts_better_than_the_uniform_law(private, corpus):
    found = private.perplexity(corpus.test.texts, rng=1)
    assert found.high < found.uniform == len(private.vocabulary) - 1


@pytest.mark.sweep
def test_epsilon_is_what_the_accountants_report_for_the_steps_made(private, corpus):
    accountants = needs("opacus.accountants")
    batches = -(-len(corpus.train) // 40)
    assert (private.steps, private.rate) == (6 * batches, 1.0 / batches)
    for kind, found in (("PRV", private.epsilon), ("RDP", private.epsilon_rdp)):
        accountant = getattr(accountants, f"{kind}Accountant")()
        accountant.history = [(private.sigma, private.rate, private.steps)]
        assert found == pytest.approx(accountant.get_epsilon(delta=private.delta), rel=1e-9)
    assert 7.9 < private.epsilon <= 8.0 < private.epsilon_rdp
    assert private.delta == min(8e-5, 0.5 / len(corpus.train))
    assert "PRVAccountant" in str(private.claim)


def test_report_says_what_epsilon_counts_and_what_it_does_not_cover(private, plain, corpus):
    text = str(private)
    for part in ("PRV accountant", "RDP accountant", "one text", "sigma", "validation texts",
                 "several settings", "unigram", "uniform", "% are cut"):  # fmt: skip
        assert part in text
    assert "the vocabulary, which" not in text
    assert "none: a plain training" in str(plain)
    own = lm.fit(corpus, corpus.valid, epsilon=math.inf, **{**NOISY, "epochs": 1})
    assert (own.has_own_vocabulary, own.epsilon, own.claim) == (True, math.inf, None)
    assert "without noise" in str(own)


def test_folder_of_a_private_model_has_neither_seed_nor_figures_without_noise(private, tmp_path):
    folder = private.save_pretrained(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text("utf-8"))["settings"]
    for name in ("seed", "cut", "without_target", "valid_perplexity", "valid_unigram"):
        assert settings[name] is None
    assert not {"counts", "known", "network"} & set(settings)
    assert private.seed is None
    assert "seed" not in repr(private)
    assert "not recorded" in str(private)
    read = lm.NextWordModel.from_pretrained(folder)
    texts = ["find a train", "list flights to morwen on monday"]
    assert np.array_equal(read.losses(texts), private.losses(texts))
    assert (read.epsilon, read.steps, read.sigma) == (
        private.epsilon, private.steps, private.sigma,
    )  # fmt: skip
    found = read.perplexity(texts, rng=1)
    assert (found.left_out, found.unigram) == (None, None)


def test_folder_of_a_plain_model_repeats_its_seed(plain, tmp_path):
    read = lm.NextWordModel.from_pretrained(plain.save_pretrained(tmp_path))
    assert (read.seed, read.valid_losses) == (1, plain.valid_losses)
    assert np.array_equal(read.decoder_weights, plain.decoder_weights)


def test_losses_are_means_over_words_that_are_no_masks(plain):
    texts = ["find a train to [MASK] on monday", "find", "[MASK] [MASK]"]
    found = plain.losses(texts)
    assert found[1] == found[2] == 0.0
    rows, _ = plain.rows.encode(texts)
    laws = list(plain.log_probabilities(texts))
    # Targets are the words after the first, without the fifth, which is masked; the end is none.
    by_hand = -np.mean([laws[0][place, rows[0][place + 1]] for place in (0, 1, 2, 4, 5)])
    assert found[0] == pytest.approx(by_hand, rel=1e-12)
    # All probability goes to words: masks and padding have no column.
    assert laws[0].shape == (6, plain.rows.size)
    np.testing.assert_allclose(np.exp(laws[0]).sum(axis=1), 1.0, rtol=1e-12)
    assert plain.hidden_states(texts).shape == (6 + 0 + 1, 12)


def test_state_starts_at_zero_for_each_text(plain, corpus):
    texts = list(corpus.test.texts[:5])
    alone = np.concatenate([plain.losses([text]) for text in texts])
    np.testing.assert_allclose(plain.losses(texts), alone, rtol=1e-5)


def test_training_on_masks_alone_gives_the_uniform_law(corpus, words):
    def hide(texts):
        return redaction.redact(texts, redaction.Random(), level=1.0, rng=1)

    model = lm.fit(hide(corpus.train.texts), hide(corpus.valid.texts), vocabulary=words, **SMALL)
    found = model.perplexity(corpus.test.texts, rng=1)
    assert found.value == pytest.approx(found.uniform, rel=0.02)
    assert found.unigram == pytest.approx(found.uniform, rel=1e-9)
    assert (model.without_target, model.valid_perplexity) == (model.texts, None)


def _gradients(network, rows, words):
    """Return the gradient of each record, as Opacus computes it for a batch."""
    module = needs("opacus.grad_sample").GradSampleModule(network)
    record_losses(module, rows, words).mean().backward()
    places = np.argsort(sorted(range(len(rows)), key=lambda number: -len(rows[number])))
    samples = [one.grad_sample for one in module.parameters()]
    found = [torch.cat([sample[place].ravel() for sample in samples]) for place in places]
    module.remove_hooks()
    for weight in network.parameters():
        weight.grad = weight.grad_sample = None
    return found


class Carrying(Network):
    """A network that carries the state of a text into the next one, as its source does."""

    def states(self, ids, sizes):
        read = self.embedding(ids)
        state, found = None, []
        for row in read:
            states, state = self.lstm(row[None], state)
            found.append(states)
        return torch.cat(found)


ROWS = [np.array(row) for row in ([1, 2, 3], [4], [5, 6, 7, 8, 1, 2], [9, 9], [2, 9, 3, 4])]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("layers", [1, 2])
def test_gradient_of_a_record_does_not_depend_on_the_rest_of_the_batch(layers):
    network = Network(9, 6, layers, 0.0, needs("opacus.layers").DPLSTM)
    draw_weights(network, np.random.default_rng(1))
    alone = [_gradients(network, [row], 9)[0] for row in ROWS]
    for chosen in ([0, 1, 2, 3, 4], [4, 3], [2, 2, 0]):
        found = _gradients(network, [ROWS[number] for number in chosen], 9)
        for number, gradient in zip(chosen, found, strict=True):
            assert float((gradient - alone[number]).abs().max()) < 1e-5
    assert float(alone[1].abs().max()) == float(alone[3].abs().max()) == 0.0
    assert float(alone[0].abs().max()) > 1e-3


def test_losses_depend_on_the_batch_where_a_state_is_carried():
    # The control. Its per-sample gradients are not those of Opacus: take whole losses.
    for kind, is_carried in ((Network, False), (Carrying, True)):
        network = kind(9, 6, 1, 0.0, torch.nn.LSTM)
        draw_weights(network, np.random.default_rng(1))
        alone = torch.cat([record_losses(network, [row], 9) for row in ROWS])
        apart = (record_losses(network, ROWS, 9) - alone).detach().abs().max()
        assert (float(apart) > 1e-5) is is_carried


def test_empty_batches_are_made_and_counted(corpus, words):
    texts = list(corpus.train.texts[:40])
    rule = {**SMALL, "batch": 1, "epochs": 2, "delta": 1e-3}
    # Batches of 1 expected: more than a third of the 80 are empty.
    model = lm.fit(texts, corpus.valid, vocabulary=words, epsilon=2.0, **rule)
    assert (model.steps, model.epochs) == (80, 2)
    assert np.isfinite(model.decoder_weights).all()


@pytest.mark.sweep
def test_noise_of_one_step_is_the_claimed_one(private, corpus):
    batch = list(corpus.train.texts[:8])
    settings = {"sigma": private.sigma, "clip": private.clip, "trials": 1000, "rng": 5}
    # At 95 % the right noise is refuted in one of twenty audits at most; the seed is fixed.
    assert training.audit_step(private.step(), batch, **settings).refuted is False
    half = private.step()
    half.optimizer.noise_multiplier = private.sigma / 2.0
    assert training.audit_step(half, batch, **settings).refuted is True


@pytest.mark.sweep
@pytest.mark.parametrize("epsilon", [None, 8.0])
def test_ctrl_c_keeps_the_last_whole_epoch(corpus, words, monkeypatch, epsilon):
    rule = {**(SMALL if epsilon is None else NOISY), "vocabulary": words, "epsilon": epsilon}
    calls = {"made": 0}
    right = network.record_losses
    per_epoch = 16 if epsilon is None else 9

    def interrupted(*arguments):
        calls["made"] += 1
        if calls["made"] == per_epoch + 12:
            raise KeyboardInterrupt
        return right(*arguments)

    monkeypatch.setattr(network, "record_losses", interrupted)
    model = lm.fit(corpus, corpus.valid, **{**rule, "epochs": 4})
    monkeypatch.undo()
    assert model.partial
    assert 1 <= model.epochs < 4
    assert "INTERRUPTED" in str(model)
    whole = lm.fit(corpus, corpus.valid, **{**rule, "epochs": model.epochs})
    if epsilon is None:
        assert np.array_equal(model.decoder_weights, whole.decoder_weights)
    else:
        # The noise is that of four epochs; steps of the epoch that was ended count.
        assert model.steps > model.epochs / model.rate
        assert model.epsilon < 8.0


@pytest.mark.sweep
@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("epsilon", [None, math.inf, 8.0])
def test_devices(corpus, words, device, epsilon, monkeypatch):
    rule = {**SMALL, "batch": 100, "epochs": 2, "vocabulary": words, "epsilon": epsilon}
    model, again = (lm.fit(corpus, corpus.valid, device=device, **rule) for _ in range(2))
    assert {weight.device.type for weight in model.network.parameters()} == {"cpu"}
    assert np.array_equal(model.decoder_weights, again.decoder_weights)
    # Other devices hold all gradients of a batch at once: the sum of two chunks is the same.
    monkeypatch.setattr(network, "_RECORDS_PER_CHUNK", network._RECORDS_PER_DEVICE_CHUNK)
    whole = lm.fit(corpus, corpus.valid, **rule)
    if device == "cpu" or epsilon == math.inf:
        # The noise of another device is another; its law is the same.
        np.testing.assert_allclose(model.decoder_weights, whole.decoder_weights, atol=1e-4)
    assert (model.steps, model.epsilon) == (whole.steps, whole.epsilon)


def test_training_starts_from_another_model(plain, corpus):
    model = lm.fit(corpus, corpus.valid, epsilon=8.0, start=plain, **{**NOISY, "epochs": 1})
    assert (model.vocabulary, model.has_own_vocabulary) == (plain.vocabulary, False)
    found = model.perplexity(corpus.test.texts, rng=1)
    assert found.value < found.unigram
    assert "plain" in str(model)
    assert "texts of the model at the start" in str(model)


PUBLIC = generated("topics", 400, rng=3)


def test_a_search_of_rates_reads_public_texts_only(monkeypatch):
    """Two private corpora of one size and one public corpus: the same choice."""
    figures = {"epsilon": 1.0, "epsilon_rdp": 1.0}
    monkeypatch.setattr("dpcore.text.lm.model._find_noise_multiplier", lambda *_: 3.0)
    monkeypatch.setattr("dpcore.text.lm.model._compute_epsilons", lambda *_: figures)
    rules = {
        **SMALL,
        "length": 5,
        "batch": 80,
        "epochs": 1,
        "lr": 64.0,
        "epsilon": 1.0,
        "rate": "searched",
    }
    sets = [
        list(generated(kind, 400, rng=seed).train) for kind, seed in (("intents", 1), ("topics", 2))
    ]
    losses, mean_loss = [], network.mean_loss
    monkeypatch.setattr(
        network, "mean_loss", lambda *rows: losses.append(mean_loss(*rows)) or losses[-1]
    )
    models = [lm.fit(texts[:200], texts[200:250], public=PUBLIC, **rules) for texts in sets]
    assert losses[: len(losses) // 2] == losses[len(losses) // 2 :] != []
    assert len({(model.lr, model.clip, model.settings_tried) for model in models}) == 1
    model = models[0]
    # Rate 64 diverges with this noise: another one is chosen.
    assert (model.lr < 64.0, model.settings_tried >= 5) == (True, True)
    assert (model.public_texts, model.public_read) == (320, 80 + 160)
    assert f"the best of {model.settings_tried} settings" in str(model)
    assert "240 of 320 read" in str(model)
    # What is chosen is trained with, and with the noise of the epsilon: a fixed rate repeats it.
    fixed = {**rules, "rate": "fixed", "lr": model.lr, "clip": model.clip}
    again = lm.fit(sets[0][:200], sets[0][200:250], **fixed)
    assert np.array_equal(again.decoder_weights, model.decoder_weights)
    assert (again.sigma, again.settings_tried) == (model.sigma, 0)


def test_perplexity_leaves_training_texts_out(plain, corpus):
    texts = [*corpus.test.texts, *corpus.train.texts[:7]]
    found, clean = (plain.perplexity(some, rng=1) for some in (texts, corpus.test.texts))
    assert (found.left_out - clean.left_out, found.value) == (7, clean.value)
    assert plain.perplexity(texts, exclude=["another"], rng=1).left_out == 0
    assert f"{found.left_out:,} training texts left out" in str(found)


FEW = generated("intents", 120, rng=1)
TEXTS, VALID = list(FEW.train.texts), list(FEW.valid.texts)
WORDS = Vocabulary.from_texts(TEXTS, unknown="token")
TINY = {"vocabulary": WORDS, "hidden": 4, "epochs": 1, "progress": False}


def test_canaries_have_words_of_the_vocabulary():
    own = ["find a train"]
    assert lm.canaries(WORDS, own) == own
    drawn = lm.canaries(WORDS, 60, words=8, rng=2)
    assert len({*drawn}) == 60
    assert all(len(one.split()) == 8 and set(one.split()) <= set(WORDS.words) for one in drawn)


def test_a_large_delta_and_many_gradients_are_warned_of(monkeypatch):
    monkeypatch.setattr(network, "_MAX_QUIET_GRADIENTS", 1e4)
    with (
        pytest.warns(UserWarning, match="is 1/N = .* or more"),
        pytest.warns(UserWarning, match="gradients of .* weights, most of them of the") as seen,
    ):
        lm.fit(TEXTS, VALID, **TINY, epsilon=8.0, delta=0.1, batch=20, rng=1)
    assert __file__ in {one.filename for one in seen}


def test_missing_opacus_is_named_with_its_extra(monkeypatch):
    def refuse(module):
        raise ModuleNotFoundError(module, name="opacus")

    monkeypatch.setattr("dpcore.packages.import_module", refuse)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dpcore\[dpsgd\]'"):
        lm.fit(TEXTS, VALID, **TINY, epsilon=8.0, batch=20)


def fit(**options):
    return lambda: lm.fit(TEXTS, VALID, **{**TINY, "batch": 20, **options})


VALUE_ERRORS = [
    (fit(epsilon=0.0), "epsilon", "a finite number above 0"),
    (fit(epsilon=1.0, delta=0.0), "delta", "a finite number above 0"),
    (fit(epsilon=1.0, clip=0.0), "clip", "a finite number above 0"),
    (fit(epsilon=1.0, dropout=0.2), "dropout", "0 for a private training"),
    (fit(epsilon=1.0, optimiser="adam"), "optimiser", "'sgd' for a private training"),
    (fit(epsilon=1.0, batch=None), "texts", "at least as many as a batch, 256"),
    (fit(optimiser="sdg"), "optimiser", "one of 'sgd', 'adam'"),
    (fit(device="nowhere"), "device", "one of this machine"),
    (fit(epsilon=1.0, rate="serched"), "rate", "one of 'fixed', 'searched'"),
    (fit(rate="searched", public=TEXTS * 2), "rate", "'fixed' for a plain training"),
    (fit(epsilon=1.0, rate="searched"), "public", "public texts where rate is 'searched'"),
    (fit(epsilon=1.0, public=TEXTS), "public", "left out where rate is not 'searched'"),
    (fit(epsilon=1.0, rate="searched", public=TEXTS[:99]), "public", "at least 100 texts"),
    (fit(length=1), "length", "an integer at least 2"),
    (fit(lr=0.0), "lr", "a finite number above 0"),
    (fit(lr=1e30), "lr", "small enough that training does not diverge"),
    (fit(vocabulary=Vocabulary(["a"], "drop")), "vocabulary", "with unknown='token'"),
    (lambda: lm.canaries(WORDS, ["find xylophones"]), "canaries[0]", "words of the vocabulary"),
    (lambda: lm.canaries(WORDS, 2, words=1), "words", "an integer from 2 to 1000000"),
    (lambda: lm.fit(["[MASK] [MASK]"] * 30, VALID), "vocabulary", "given where all words"),
    (lambda: fit(vocabulary=Vocabulary(["a"], "token"), start=fit()())(), "vocabulary", "of start"),
    (lambda: fit(hidden=5, start=fit()())(), "hidden", "4, as that of start"),
    (lambda: fit()().step(), "model", "got 'plain'"),
    (lambda: fit()().perplexity(TEXTS), "texts", "texts that are"),
    (lambda: fit()().perplexity(["[MASK] [MASK]"]), "texts", "texts with"),
]  # fmt: skip
TYPE_ERRORS = [
    (fit(vocabulary=["a"]), "vocabulary", "a Vocabulary"),
    (fit(epsilon=1.0, rate="searched", public=[1] * 100), "public[0]", "a text"),
    (fit(start="model"), "start", "a NextWordModel"),
    (lambda: lm.canaries(WORDS, 2.5), "many", "an integer"),
    (lambda: fit()().losses("one text"), "texts", "not a single string"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


TRAININGS, CLAIM, DELTA = 20, 0.5, 8e-5
CANARIES, GUESSES = 400, 100


def audit(seed, **recipe):
    """Audit one training on generated intents, as small as shows anything."""
    corpus = generated("intents", 300, rng=1)
    vocabulary = Vocabulary.from_texts(corpus, unknown="token")
    texts = list(corpus.train)

    def fit(records):
        return lm.fit(
            records, list(corpus.valid), vocabulary=vocabulary, hidden=16, rng=seed,
            progress=False, **recipe,
        ).losses  # fmt: skip

    canaries = lm.canaries(vocabulary, CANARIES, words=6, rng=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        claimed = {"claim": CLAIM, "delta": DELTA}
        return audit_run(fit, texts, canaries=canaries, guesses=GUESSES, rng=seed, **claimed)


@pytest.mark.sweep
def test_a_true_claim_is_refuted_no_more_often_than_the_confidence_allows():
    # Fixed seeds. A bound that holds with 95 % refutes more than 4 of 20 with probability .0026.
    recipe = {"epsilon": CLAIM, "delta": DELTA, "batch": 110, "epochs": 2}
    reports = [audit(seed, **recipe) for seed in range(TRAININGS)]
    # So many guesses could refute the claim: this is not a test of too few.
    assert all(report.ceiling > 2.0 for report in reports)
    refuted = sum(report.refuted is True for report in reports)
    limit = int(stats.binom.isf(0.005, TRAININGS, 0.05))
    assert limit == 4
    assert refuted <= limit


def test_a_training_that_remembers_is_refuted_by_the_same_guesses():
    # Negative control: the claim is false for a plain training.
    report = audit(1, optimiser="adam", epochs=40, lr=1e-2)
    assert report.refuted
    assert report.auc > 0.8
