"""Defences against attribute leakage: the control, the direction of each step, what is kept."""

import inspect

import numpy as np
import pytest
from shared_extras import CUDA, needs
from shared_messages import check_messages

torch = needs("torch", "safetensors", "sklearn")

from dpcore.experiments.dpnr_table import defences  # noqa: E402
from dpcore.experiments.dpnr_table.defences import Declustering, Material, MinMaxAdversary  # noqa: E402
from dpcore.text import DPNR, Corpus, generated, inference  # noqa: E402
from dpcore.text.systems.dptext import Discriminator  # noqa: E402
from dpcore.text.systems.training import one_thread  # noqa: E402

CORPUS = generated("topics", 2000, rng=1)
TEST, SMALL = CORPUS.test, CORPUS.train[:400]
PARENT = {"dim": 64, "attribute": "parent"}
SHORT = {"epochs": 3, "rng": 1}
DEFENCES = defences.Defended.__subclasses__()
DEVICES = ["cpu", CUDA]
every = pytest.mark.parametrize("defence", DEFENCES)


@pytest.fixture(scope="module")
def control():
    """No defence at all: strength 0."""
    return MinMaxAdversary(**PARENT, strength=0).fit(CORPUS, epochs=8, rng=1)


@pytest.fixture(scope="module")
def defended():
    """The usual strength."""
    return MinMaxAdversary(**PARENT).fit(CORPUS, epochs=8, rng=1)


def attacked(model):
    from sklearn.linear_model import LogisticRegression

    attackers = [inference.Attacker(LogisticRegression(max_iter=200))]
    return inference.infer(model, CORPUS, "parent", attackers=attackers, rng=1)


def weights(model):
    return [model.extractor.embedding.weight, model.head.weight, model.head.bias]


def equal(model, other):
    pairs = zip(weights(model), weights(other), strict=True)
    return all(torch.equal(one, two) for one, two in pairs)


def test_without_a_defence_it_learns_and_both_readers_find_the_leak(control):
    assert control.accuracy(TEST) > 0.85
    assert attacked(control).above_floor
    assert control.discriminator_accuracy(TEST)["parent"] > 0.7


def test_a_defence_keeps_the_label_and_keeps_off_the_discriminator(control, defended):
    assert defended.accuracy(TEST) > 0.85
    found = defended.discriminator_accuracy(TEST)["parent"]
    assert found < control.discriminator_accuracy(TEST)["parent"] - 0.1
    # Not so an attacker trained afresh: he reads as much as the discriminator, or more.
    assert attacked(defended).accuracy.value >= found


@every
def test_strength_0_is_plain_training_bit_for_bit(defence):
    plain = DPNR(dim=64, epsilon=1.0).fit(SMALL, pair=False, **SHORT)
    assert equal(defence(**PARENT, strength=0).fit(SMALL, **SHORT), plain)
    assert not equal(defence(**PARENT).fit(SMALL, **SHORT), plain)


@every
@pytest.mark.parametrize("device", DEVICES)
def test_same_seed_same_weights_and_equal_outputs_after_load(defence, device, tmp_path):
    model = defence(**PARENT, strength=0.5).fit(SMALL, device=device, **SHORT)
    again = defence(**PARENT, strength=0.5).fit(SMALL, device=device, **SHORT)
    other = defence(**PARENT, strength=0.5).fit(SMALL, epochs=3, rng=2, device=device)
    assert equal(model, again)
    assert not equal(model, other)
    vectors = model.encode(TEST.texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(TEST), 64))
    assert np.array_equal(vectors, model.encode(TEST.texts))
    assert (vectors.min(), vectors.max()) == (0.0, 1.0)
    back = defence.from_pretrained(model.save_pretrained(tmp_path / "model"), device=device)
    assert np.array_equal(back.encode(TEST.texts), vectors)
    assert np.array_equal(back.predict(TEST.texts), model.predict(TEST.texts))
    assert back.discriminator_accuracy(TEST) == model.discriminator_accuracy(TEST)
    assert (repr(back), back.trained, back.strength) == (repr(model), model.trained, 0.5)


def opponent_of(kind, model, steps=60):
    """An opponent that has learnt to read a model's vectors, and those of 64 training texts."""
    train = CORPUS.train
    units = model.extractor.units(train.texts)
    codes = torch.from_numpy(train.attribute("parent").astype(np.int64)).unsqueeze(1)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    opponent = kind(Material(Discriminator(64, [2]), codes, units, 1.0, rng, torch.device("cpu")))
    for _ in range(steps):
        batch = torch.from_numpy(rng.integers(0, len(train), 64))
        with torch.no_grad():
            rows = model.transform(model.extractor(units.take(batch)))
        opponent.step(rows, batch)
    # Of one text, lower loss on the wrong value is higher loss on the right one; the gradients of
    # several texts may outweigh each other.
    return opponent, units, batch[:1]


@pytest.mark.parametrize(
    "kind", [defences.MinMaxOpponent, defences.ComplementOpponent, defences.DecodingOpponent]
)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["as it is", "turned"])
def test_one_step_of_the_extractor_raises_the_loss_of_its_opponent(control, kind, sign):
    with one_thread():
        opponent, units, batch = opponent_of(kind, control)
    embedding = control.extractor.embedding
    kept = embedding.weight.detach().clone()
    part = units.take(batch)

    def rows():
        return control.transform(control.extractor(part))

    def loss():
        with torch.no_grad():
            if kind is defences.DecodingOpponent:
                return opponent.loss(rows(), batch).item()
            return opponent.discriminator.loss(rows(), opponent.true_values(rows(), batch)).item()

    readers = [opponent.discriminator, getattr(opponent, "decoder", opponent.discriminator)]
    before = [value.detach().clone() for reader in readers for value in reader.parameters()]
    opponent.optimiser.zero_grad()
    first = loss()
    (gradient,) = torch.autograd.grad(opponent.penalty(rows(), batch), embedding.weight)
    with torch.no_grad():
        embedding.weight -= sign * 0.01 * gradient.to_dense()
    second = loss()
    with torch.no_grad():
        embedding.weight.copy_(kept)
    # The negative control: the other way the loss falls.
    assert sign * (second - first) > 0.0
    after = [value for reader in readers for value in reader.parameters()]
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    assert all(value.requires_grad for value in after)
    assert all(value.grad is None for value in opponent.discriminator.parameters())


@pytest.mark.parametrize(
    ("codes", "grows"),
    [
        ([[1], [1]], True),
        ([[0], [1]], False),
        ([[0, 1, 1], [0, 1, 0]], True),
        ([[0, 1, 1], [0, 0, 0]], False),
        ([[0, 1], [0, 0]], None),
    ],
    ids=["equal", "different", "two of three equal", "one of three equal", "half equal"],
)
def test_equal_attributes_are_pushed_apart_and_different_ones_together(codes, grows):
    reader = Discriminator(3, [2] * len(codes[0]))
    rng = np.random.default_rng(1)
    made = Material(reader, torch.tensor(codes), None, 1.0, rng, torch.device("cpu"))
    rows = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.2, 0.0]], requires_grad=True)
    (step,) = torch.autograd.grad(
        defences.DeclusteringOpponent(made).penalty(rows, torch.arange(2)), rows
    )
    first, second = ((each[0] - each[1]).norm().item() for each in (rows, rows - 0.1 * step))
    assert (second > first if grows else second < first) if grows is not None else second == first


def test_a_batch_of_one_text_has_no_partner():
    # 65 texts in batches of 64.
    model = Declustering(**PARENT, strength=1).fit(CORPUS.train[:65], epochs=2, rng=1)
    assert np.isfinite(model.encode(TEST.texts[:3])).all()


def test_wrong_values_are_the_other_one_or_the_others_in_equal_shares():
    torch.manual_seed(1)
    reader, rows = Discriminator(4, [2, 3]), torch.rand(2, 4)
    codes = torch.tensor([[0, 2], [1, 0]])
    made = Material(reader, codes, None, 1.0, np.random.default_rng(1), torch.device("cpu"))
    found = defences.ComplementOpponent(made).penalty(rows, torch.arange(2)).item()
    two, three = (scores.log_softmax(dim=1).detach().numpy() for scores in reader(rows))
    complement = -(two[0, 1] + two[1, 0]) / 2
    shares = -(three[0, :2].mean() + three[1, 1:].mean()) / 2
    assert found == pytest.approx((complement + shares) / 2, rel=1e-5)


@every
def test_attributes_of_more_values_and_several_at_once(defence):
    topics = {label: place for place, label in enumerate(np.unique(CORPUS.labels))}
    more = {
        "parent": CORPUS.attribute("parent"),
        "topic": [str(label) for label in CORPUS.labels],
        "number": [topics[label] for label in CORPUS.labels],
    }
    corpus = Corpus(CORPUS.texts, CORPUS.labels, more, CORPUS.split)
    names = ["topic", "parent", "number"]
    model = defence(16, attribute=names, strength=0).fit(corpus, epochs=12, rng=1)
    found = model.discriminator_accuracy(corpus.test)
    assert list(found) == names
    assert found["topic"] > 0.8
    assert found["number"] > 0.8
    guesses = model.discriminated(corpus.test.texts)
    assert set(guesses["topic"]) <= set(topics)
    assert np.mean(guesses["topic"] == corpus.test.attribute("topic")) == found["topic"]


def test_it_claims_no_epsilon_and_draws_nothing(defended, control):
    assert defended.claim is None
    assert repr(defended) == (
        "MinMaxAdversary(dim=64, attribute='parent', strength=1; claims no epsilon)"
    )
    assert "nothing holds for any two texts" in str(defended)
    assert "strength 0: plain training" in str(control)
    assert "not yet" in str(Declustering(attribute=["a", "b"]))
    # With an argument `rng` an attack would take it for noisy.
    for method in (defended.encode, defended.predict, defended.accuracy):
        assert "rng" not in inspect.signature(method).parameters
    assert not attacked(defended).seeded


@every
def test_training_that_diverges_is_refused(defence):
    model = defence(**PARENT, strength=1e30)
    with pytest.raises(ValueError, match=r"lr must be small .* as the strength must, 1e\+30"):
        model.fit(SMALL, **SHORT)
    with pytest.raises(ValueError, match="model must be fitted before it encodes"):
        model.encode(TEST.texts)


SAME = Corpus(["a b", "c d", "a d"], [0, 1, 0], {"male": [1, 1, 1]})
STRANGE = Corpus(["a b"], [0], {"parent": [7]})


VALUE_ERRORS = [
    (lambda: MinMaxAdversary(attribute=[]), "attribute", "the name"),
    (lambda: MinMaxAdversary(attribute=["a", "a"]), "attribute", "that differ, got ['a', 'a']"),
    (lambda: MinMaxAdversary(attribute="a", strength=-1), "strength", "at least 0"),
    (lambda: MinMaxAdversary(1, attribute="a"), "dim", ""),
    (lambda: MinMaxAdversary(attribute="a").fit(CORPUS), "", "one of 'parent', got"),
    (lambda: MinMaxAdversary(attribute="male").fit(SAME), "", "two values at least"),
    (lambda: Declustering(attribute="a").encode(["a"]), "model", "fitted before"),
    (lambda: Declustering(attribute="a").predict(["a"]), "model", "fitted before"),
    (lambda: Declustering(attribute="a").discriminator_accuracy(CORPUS), "model", "fitted before"),
    (lambda: Declustering(attribute="a").save_pretrained("x"), "model", "fitted before"),
]
TYPE_ERRORS = [
    (lambda: MinMaxAdversary(attribute=None), "attribute", "the name"),
    (lambda: MinMaxAdversary(attribute=[1]), "attribute", "the name"),
    (lambda: MinMaxAdversary(attribute="a", strength="1"), "strength", ""),
    (lambda: MinMaxAdversary(attribute="a", transform="l1"), "transform", ""),
    (lambda: MinMaxAdversary(attribute="a").fit(["a b"]), "corpus", ""),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


def test_wrong_texts_and_corpora(defended, tmp_path):
    with pytest.raises(TypeError, match="not a single string"):
        defended.encode("a goal")
    with pytest.raises(ValueError, match="'parent'"):
        defended.discriminator_accuracy(STRANGE)
    with pytest.raises(TypeError, match="corpus must be"):
        defended.discriminator_accuracy(TEST.texts)
    with pytest.raises(ValueError, match="format"):
        Declustering.from_pretrained(defended.save_pretrained(tmp_path / "model"))
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"beside": {"parent"', '"beside": {"other"'))
    config.write_text(config.read_text().replace('"parent": [', '"other": ['))
    with pytest.raises(ValueError, match="beside in config"):
        MinMaxAdversary.from_pretrained(tmp_path / "model")
