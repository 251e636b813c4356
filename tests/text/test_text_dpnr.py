"""DPNR trained on generated texts: it learns, its noise reaches the extractor, it repeats."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch", "safetensors", "sklearn")

import dpcore  # noqa: E402
from dpcore import sensitivity, structure  # noqa: E402
from dpcore.text import DPNR, Corpus, TfidfSVD, WordDropout, generated, schedules  # noqa: E402
from dpcore.torch import Clip  # noqa: E402

CORPUS = generated("topics", 1000, rng=1)
SHORT = {"epochs": 8, "pair": False, "rng": 1}
NOISY = {"schedule": schedules.Constant(2.0), "rng": 1}


@pytest.fixture(scope="module")
def model():
    """Not robust, at a claim of 5."""
    return DPNR(dim=32, epsilon=5.0).fit(CORPUS, rng=1)


def same(model, other):
    texts = CORPUS.test.texts
    return np.array_equal(model.encode(texts, rng=3), other.encode(texts, rng=3))


def test_it_learns_and_noise_of_training_makes_it_stand_noise():
    clean = DPNR(dim=64, epsilon=5.0).fit(CORPUS, **SHORT)
    vectors = clean.clean(CORPUS.test.texts).numpy()
    assert np.mean(clean.predicted(vectors) == CORPUS.test.labels) > 0.8
    robust = DPNR(dim=32, epsilon=3.0).fit(CORPUS, schedule=schedules.Constant(5.0), rng=1)
    plain = DPNR(dim=32, epsilon=3.0).fit(CORPUS, rng=1)
    assert robust.accuracy(CORPUS.train, rng=1) > plain.accuracy(CORPUS.train, rng=1) + 0.02
    assert "constant 5" in str(robust)
    assert "no noise" in str(plain)


def test_same_seed_same_weights():
    drawn = {**SHORT, "schedule": schedules.UniformEpsilon(2.0, 10.0, every="batch")}
    first, again, other = (
        DPNR(dim=8, epsilon=1.0, dropout=WordDropout(0.2)).fit(CORPUS, **{**drawn, "rng": seed})
        for seed in (1, 1, 2)
    )
    assert torch.equal(first.extractor.embedding.weight, again.extractor.embedding.weight)
    assert torch.equal(first.head.weight, again.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)
    assert same(first, again)


@pytest.mark.parametrize(("every", "calls"), [("epoch", 2), ("batch", 2 * 13)])
def test_a_schedule_is_asked_every_epoch_or_every_batch(every, calls):
    asked = []

    def schedule(epoch, epochs, rng):
        asked.append((epoch, epochs))
        return 5.0

    schedule.every = every
    DPNR(dim=4, epsilon=1.0).fit(CORPUS, schedule=schedule, epochs=2, pair=False, rng=1)
    # 800 training texts in batches of 64.
    assert (len(asked), asked, set(asked)) == (calls, sorted(asked), {(1, 2), (2, 2)})


@pytest.mark.parametrize("dropout", [None, WordDropout(0.5)])
def test_the_generators_of_torch_are_left_alone(dropout):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model = DPNR(dim=4, epsilon=1.0, dropout=dropout)
    model.fit(CORPUS, schedule=lambda e, n, rng: 3.0, epochs=1, rng=1)
    model.predict(CORPUS.test.texts)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("given", "true", "false"),
    [
        ({}, 160.0, True),
        ({"scale": "sound"}, 5.0, False),
        ({"noise": "shared"}, math.inf, True),
        ({"noise": "shared", "scale": "sound"}, math.inf, True),
        ({"transform": Clip("l1", 1.0)}, 5.0, False),
        ({"transform": sensitivity.Clip("l2", 1.0)}, 5.0, False),
    ],
)
def test_claim_and_truth_stand_apart(given, true, false):
    one = DPNR(dim=32, epsilon=5.0, **given)
    assert one.true_epsilon == pytest.approx(true, rel=1e-12)
    one.fit(CORPUS, epochs=1, rng=1)
    assert one.true_epsilon == pytest.approx(true, rel=1e-12)
    assert one.private.true_epsilon == one.true_epsilon
    assert ["THE CLAIM IS FALSE" in text for text in (repr(one), str(one))] == [false, false]
    assert "the texts that the weights were fitted to" in str(one)
    assert "k encodings of one text cost k times" in str(one)
    pair, loss = one.worst
    assert loss == one.as_mechanism().loss(pair)
    assert loss <= true * (1 + 1e-6)
    assert f"exact loss {'infinite' if loss == math.inf else f'{loss:.4f}'}" in str(one)


def test_published_is_refuted_and_sound_is_not(model):
    report = dpcore.audit(model, model.worst_pair(CORPUS.train.texts), trials=20_000, rng=1)
    assert report.refuted
    assert report.declared_loss == model.worst[1] > 5.0
    sound = DPNR(dim=32, epsilon=5.0, scale="sound").fit(CORPUS, rng=1)
    report = dpcore.audit(sound, sound.worst[0], trials=20_000, rng=1)
    assert not report.refuted
    assert report.declared_loss < 5.0


def test_shared_noise_is_flagged_and_refuted():
    shared = DPNR(dim=16, epsilon=0.05, noise="shared").fit(CORPUS, **SHORT)
    pair = shared.worst_pair(CORPUS.train.texts)
    assert dpcore.audit(shared, pair, trials=20_000, rng=1).refuted
    clean = shared.clean([pair.x])[0]
    assert "rank" in structure.inspect(shared.private.noise, clean, draws=512, rng=1).flagged
    texts = CORPUS.test.texts
    noisy, rows = shared.encode(texts, rng=1), shared.clean(texts).numpy()
    # What minus the smallest entry gives back: the clean rows, but for float32 of noise of 20.
    assert np.abs(noisy - noisy.min(axis=1, keepdims=True) - rows).max() < 1e-4


def test_with_word_dropout_the_encoder_runs_for_every_draw_and_no_loss_is_exact():
    one = DPNR(dim=8, epsilon=2.0, dropout=WordDropout(0.02)).fit(CORPUS, epochs=2, **NOISY)
    pair, loss = one.worst
    assert (loss, "no exact loss" in str(one), "claimed" in str(one)) == (None, True, True)
    report = dpcore.audit(one, pair, trials=2000, rng=1)
    assert report.declared_loss is None
    assert any("the encoder is random" in note for note in report.notes)
    # Of 8 draws without noise most have no mask at all, and yet it is not taken for constant.
    assert 2 <= len(torch.unique(one.as_mechanism().encoder([pair.x] * 200), dim=0)) < 150


def test_masked_texts_may_be_empty_and_say_so_once():
    one = DPNR(dim=8, epsilon=2.0, dropout=WordDropout(0.9))
    one.fit(CORPUS, epochs=1, pair=False, **NOISY)
    short = ("goalkeeper", "penalty")
    with pytest.warns(dpcore.errors.AssumptionWarning, match=r"\d+ of 20 rows are constant"):
        one.encode(short[:1] * 20, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = dpcore.audit(one, short, trials=500, rng=1)
    assert any("became zeros" in note for note in report.notes)


def test_it_returns_from_a_folder(tmp_path):
    one = DPNR(
        dim=8, epsilon=2.0, noise="shared", dropout=WordDropout(0.3, "exact", "zero_id"),
        transform=Clip("l1", 2.0),
    ).fit(CORPUS, schedule=schedules.Stretched(10, 2), **SHORT)  # fmt: skip
    folder = one.save_pretrained(tmp_path / "model")
    again = DPNR.from_pretrained(folder)
    assert (repr(again), again.trained) == (repr(one), one.trained)
    assert same(one, again)
    assert np.array_equal(again.predict(["a goal"], rng=1), one.predict(["a goal"], rng=1))
    assert again.labels.dtype == one.labels.dtype
    assert all(text not in (folder / "config.json").read_text() for text in CORPUS.train.texts)


def test_a_frozen_extractor_is_fitted_once_and_returns(tmp_path):
    tfidf = TfidfSVD(20)
    one = DPNR(epsilon=100.0, extractor=tfidf).fit(CORPUS, epochs=10, rng=1)
    assert (tfidf.fitted_on, one.dim, one.width) == (len(CORPUS.train), None, 20)
    assert one.true_epsilon == pytest.approx(2000.0)
    assert one.accuracy(CORPUS.test, rng=1) > 0.7
    assert same(one, DPNR.from_pretrained(one.save_pretrained(tmp_path)))
    assert one.encode(CORPUS.test.texts).dtype == np.float32


def test_a_function_of_ones_own_returns_with_itself(tmp_path):
    def lengths(texts):
        return [[float(len(t)), float(t.count("e")), float(t.count("a"))] for t in texts]

    one = DPNR(epsilon=10.0, extractor=lengths).fit(CORPUS, epochs=1, rng=1)
    one.save_pretrained(tmp_path)
    assert same(one, DPNR.from_pretrained(tmp_path, extractor=lengths))
    with pytest.raises(ValueError, match="encoder must be given for an encoder of one's own"):
        DPNR.from_pretrained(tmp_path)


def test_integer_labels_stay_integers():
    numbers = np.unique(CORPUS.labels, return_inverse=True)[1]
    corpus = Corpus(CORPUS.texts, numbers, split=CORPUS.split)
    one = DPNR(dim=8, epsilon=50.0).fit(corpus, **SHORT)
    assert one.predict(corpus.test.texts, rng=1).dtype == np.int64


FEW = generated("topics", 200, rng=1)
TEXTS = ["a goal", "shares fell", "the coach stays", "debt grew"] * 10
PLAIN = Corpus(TEXTS, ["sport", "money"] * 20)


def lengths(texts):
    return [[float(len(text)), 1.0] for text in texts]


def test_a_fit_that_failed_leaves_no_model():
    model = DPNR(dim=4, epsilon=1.0).fit(PLAIN, epochs=1, rng=1)
    failing = [
        (lambda: model.fit(PLAIN, lr=1e30, rng=1), "lr", "small enough"),
        (lambda: model.encode(TEXTS), "model", "fitted"),
        (lambda: model.predicted(np.zeros((1, 4))), "model", "fitted"),
    ]
    check_messages(ValueError, failing)


@cache
def known():
    """A fitted model, which no test changes."""
    return DPNR(dim=4, epsilon=1.0).fit(FEW, epochs=1, rng=1)


def test_no_texts_have_no_vectors_and_no_labels():
    assert (known().encode([]).shape, len(known().predict([]))) == ((0, 4), 0)


def test_an_extractor_of_constant_rows_is_told_and_trains():
    def constant(texts):
        return [[1.0, 1.0, 1.0]] * len(texts)

    one = DPNR(epsilon=1.0, extractor=constant)
    one.fit(PLAIN, epochs=1, pair=False, rng=1)
    with pytest.warns(dpcore.errors.AssumptionWarning, match="2 of 2 rows are constant"):
        vectors = one.encode(["a", "b"], rng=1)
    assert np.isfinite(vectors).all()


def test_labels_of_the_test_part_that_were_never_seen_are_wrong_answers():
    assert known().accuracy(Corpus(FEW.texts[:3], ["chess"] * 3), rng=1) == 0.0


def test_wrong_folders(tmp_path):
    file = known().save_pretrained(tmp_path) / "config.json"
    right = file.read_text()
    with pytest.raises(ValueError, match="extractor must be left out"):
        DPNR.from_pretrained(tmp_path, extractor=lengths)
    for changed, message in (
        (right.replace('"iid"', '"odd"'), "noise must be one of"),
        (right.replace('"bag"', '"sack"'), "extractor in config"),
    ):
        file.write_text(changed)
        with pytest.raises(ValueError, match=message):
            DPNR.from_pretrained(tmp_path)


def make(**given):
    return lambda: DPNR(epsilon=1.0, **given)


def fit(corpus=PLAIN, model=None, **given):
    return lambda: (model or make(dim=4))().fit(corpus, **given)


READY = make()().prepare(FEW)


VALUE_ERRORS = [
    (lambda: DPNR(epsilon=0.0), "epsilon", "above 0"),
    (make(dim=1), "dim", "got 1"),
    (make(dim=8, extractor=lengths), "dim", "left out"),
    (make(noise="gaussian"), "noise", "one of 'iid', 'shared'"),
    (make(scale="right"), "scale", "one of 'published', 'sound"),
    (make(scale="published", transform=Clip("l1", 1.0)), "scale", "'sound' for another"),
    (make(dropout=WordDropout(0.5), extractor=lengths), "dropout", "None where"),
    (make(unknown="keep"), "unknown", "one of 'drop', 'token'"),
    (make(min_count=0), "min_count", "an integer at least 1"),
    (fit(corpus=Corpus(TEXTS)), "corpus", "one with labels"),
    (fit(corpus=Corpus(TEXTS, ["a"] * 40)), "labels", "of two values"),
    (fit(corpus=Corpus(TEXTS, ["a", "b"] * 20, split=["test"] * 40)), "split", "a 'train' part"),
    (fit(epochs=0), "epochs", "an integer at least 1"),
    (fit(batch=0), "batch", "an integer from 1 to"),
    (fit(lr=0.0), "lr", "a finite number above 0"),
    (fit(decay=1.5), "decay", "a finite number above 0"),
    (fit(rng=-1), "rng", "an integer from 0"),
    (fit(schedule=lambda epoch, epochs, rng: 3 - epoch, epochs=4), "", "epsilon"),
    (lambda: DPNR(dim=4, epsilon=1.0).predict(["a goal"]), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).accuracy(PLAIN), "model", "fitted before"),
    (lambda: make(extractor=lambda texts: [[1.0]] * len(texts))().fit(PLAIN), "x", "dim >= 2: one"),
    (lambda: known().accuracy(Corpus(TEXTS)), "corpus", "one with labels"),
    (lambda: known().predicted(np.zeros((2, 9))), "vectors", "of shape (n, 4)"),
    (lambda: known().predicted(np.zeros(4)), "vectors", "of shape (n, 4)"),
    (lambda: known().predicted(np.full((1, 4), np.nan)), "vectors", "finite"),
    (lambda: known().to("gpu"), "device", "one of this machine"),
    *((fit(READY, make(**other)), "corpus", "prepared with") for other in (
        {"unknown": "token"}, {"min_count": 2}, {"dropout": WordDropout(0.5, mask="zero_id")})),
    (lambda: make(extractor=TfidfSVD(4))().prepare(FEW), "extractor", "None"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: DPNR(), "", "epsilon"),
    (lambda: DPNR(epsilon="5"), "epsilon", "a finite number above 0"),
    (make(dim=2.5), "dim", "an integer"),
    (make(extractor="bert"), "encoder", "a SentenceTransformer"),
    (make(transform="minmax"), "transform", "Clip, MinMax"),
    (make(dropout=0.5), "dropout", "a WordDropout"),
    (fit(corpus=TEXTS), "corpus", "Corpus"),
    (fit(READY, make(extractor=TfidfSVD(4))), "corpus", "a Corpus"),
    (lambda: make()().prepare(["a text"]), "corpus", "a Corpus"),
    (fit(pair=1), "pair", "True or False"),
    (fit(schedule=5.0), "schedule", "s.Constant(5"),
    (fit(schedule=schedules.Constant), "schedule", "a function"),
    (lambda: known().predict([1]), "texts[0]", "a text (a string)"),
    (lambda: known().accuracy(TEXTS), "corpus", "a Corpus"),
    (lambda: known().predicted([["a"] * 4]), "vectors", "an array of numbers"),
    (lambda: known().save_pretrained(3), "folder", "a path"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


def test_a_prepared_corpus_gives_the_same_model():
    assert "160 texts" in repr(READY)
    fits = {"schedule": schedules.Constant(5.0), "epochs": 3, "pair": False, "rng": 3}
    for dim in (4, 8):
        first, again = (DPNR(dim, epsilon=5.0).fit(corpus, **fits) for corpus in (FEW, READY))
        assert first.trained == again.trained
        assert torch.equal(first.extractor.embedding.weight, again.extractor.embedding.weight)
        assert torch.equal(first.head.weight, again.head.weight)
    assert DPNR(epsilon=1.0).prepare(READY) is READY
    # Whoever leaves masked words out has the same vocabulary as whoever masks none.
    DPNR(epsilon=1.0, dropout=WordDropout(0.5)).fit(READY, epochs=1, pair=False)


def test_no_word_is_masked_in_training_without_noise():
    """Of equal seeds come equal weights: the masks would draw numbers, and change the rows."""
    for noise, is_masked in (({}, False), ({"schedule": schedules.Constant(50.0)}, True)):
        plain, masked = (
            DPNR(4, epsilon=1.0, dropout=dropout).fit(FEW, epochs=2, pair=False, rng=1, **noise)
            for dropout in (None, WordDropout(0.2))
        )
        assert torch.equal(plain.head.weight, masked.head.weight) is not is_masked
        assert masked.extractor.dropout == WordDropout(0.2)
