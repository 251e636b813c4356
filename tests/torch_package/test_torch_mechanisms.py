"""Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw."""

import math

import numpy as np
import pytest
from shared_encoders import WIDTH, hashed, tiny_bert
from shared_extras import data, needs

import dpcore
from dpcore.attacks import Threshold
from dpcore.experiments.corpora import read_corpus
from dpcore.text import TfidfSVD

torch = needs("torch")

from dpcore.torch import (  # noqa: E402
    Clip,
    LaplaceNoise,
    MinMax,
    PrivateEncoder,
    SharedNoise,
    mechanism,
)

PAIR = ("he has cancer", "he has the flu")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


class Counted:
    """An encoder that counts the texts it was given."""

    def __init__(self):
        self.seen = []

    def __call__(self, texts):
        self.seen += texts
        return hashed(texts)


def test_a_text_is_encoded_a_few_times_however_many_draws():
    encoder = Counted()
    report = dpcore.audit(mechanism(encoder, LaplaceNoise(9.0)), PAIR, claim=9.0, trials=20_000)
    # 64 encodings of each text, in batches of others, once more alone, and the built-in texts.
    assert 2 * 65 <= len(encoder.seen) <= 300
    z, z_prime = hashed(list(PAIR))
    assert report.declared_loss == pytest.approx(np.abs(z - z_prime).sum() / 9.0)
    assert report.claim == 9.0


def test_attacks_see_the_vectors():
    seen = []

    def attack(outputs, outputs_prime, pair):
        seen.append(pair)
        return Threshold()(outputs, outputs_prime, pair)

    dpcore.audit(mechanism(hashed, LaplaceNoise(9.0)), PAIR, claim=9.0, attack=attack, trials=2000)
    assert seen[0] == dpcore.Pair(*hashed(list(PAIR)))


def test_a_random_encoder_runs_for_every_draw(tmp_path):
    model, tokenizer = tiny_bert(tmp_path, dropout=0.5)
    state = torch.get_rng_state()
    model.train()
    found = mechanism((model, tokenizer), LaplaceNoise(1.0))
    report = dpcore.audit(found, PAIR, claim=20.0, trials=2_000, rng=1)
    assert report.declared_loss is None
    assert any(
        note.startswith("the encoder is random: it ran for every draw") for note in report.notes
    )
    assert report.clean is not None
    assert report.counts == dpcore.audit(found, PAIR, claim=20.0, trials=2_000, rng=1).counts
    assert torch.equal(torch.get_rng_state(), state)
    # Dropout alone leaves atoms and tells texts apart for good; without it nothing is random.
    alone = mechanism((model, tokenizer))
    assert dpcore.audit(alone, PAIR, claim=1.0, trials=2_000, rng=1).refuted
    model.eval()
    still = mechanism((model, tokenizer), LaplaceNoise(1.0))
    assert dpcore.audit(still, PAIR, claim=20.0, trials=2_000, rng=1).declared_loss is not None


def test_an_encoder_with_noise_of_its_own_needs_none():
    def noisy(texts):
        vectors = torch.tensor(hashed(texts))
        return vectors + torch.distributions.Laplace(0.0, 9.0).sample(vectors.shape).double()

    loss = float(np.abs(np.subtract(*hashed(list(PAIR)))).sum() / 9.0)
    report = dpcore.audit(mechanism(noisy), PAIR, claim=loss, trials=50_000, rng=1)
    assert report.refuted is False
    assert report.epsilon_lower > 0.4 * loss
    assert dpcore.audit(mechanism(noisy), PAIR, claim=0.3 * loss, trials=50_000, rng=1).refuted


@pytest.mark.parametrize("device", DEVICES)
def test_it_runs_where_it_is_told(device):
    found = mechanism(
        lambda texts: torch.tensor(hashed(texts), device=device), SharedNoise(5.0), device=device
    )
    outputs = found("a good film", 100, np.random.default_rng(1))
    assert outputs.shape == (100, WIDTH)
    assert found.tensor("a good film", 3, np.random.default_rng(1)).device.type == device
    report = dpcore.audit(found, PAIR, claim=1.0, trials=20_000, rng=1)
    assert report.refuted
    assert report.declared_loss == np.inf


def test_a_module_of_ones_own_may_be_the_noise():
    class Noise(torch.nn.Module):
        def forward(self, rows):
            return rows + 9.0 * torch.randn_like(rows)

    found = mechanism(hashed, Noise())
    assert found.loss(dpcore.Pair(*PAIR)) is None
    first, again = (found("a film", 5, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first, again)
    report = dpcore.audit(found, PAIR, claim=1.0, delta=1e-3, trials=20_000, rng=1)
    assert report.declared_loss is None
    assert report.randomness == "seed"


def test_a_module_may_write_to_its_input_and_must_return_a_tensor():
    class Adding(torch.nn.Module):
        def forward(self, rows):
            return rows.add_(9.0 * torch.randn_like(rows))

    found = mechanism(hashed, Adding())
    outputs = found("a film", 1000, np.random.default_rng(1))
    assert np.abs(outputs.mean(axis=0) - hashed(["a film"])[0]).max() < 6 * 9.0 / 1000**0.5
    assert np.array_equal(found.clean("a film"), hashed(["a film"])[0])

    class Two(torch.nn.Module):
        def forward(self, rows):
            return rows, rows

    with pytest.raises(TypeError, match=r"^outputs of hashed, Two\(\) must be one tensor"):
        dpcore.audit(mechanism(hashed, Two()), PAIR, claim=1.0)


def test_noise_alone_is_drawn_by_one_thread_of_torchs():
    seen = []

    class Watching(torch.nn.Module):
        def forward(self, rows):
            seen.append(torch.get_num_threads())
            return rows + torch.randn_like(rows)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        dpcore.audit(mechanism(hashed, Watching()), PAIR, claim=30.0, trials=5_000)
        # All but the call that tells the shape of outputs.
        assert seen[0] == 2
        assert set(seen[1:]) == {1}
        assert torch.get_num_threads() == 2
        seen.clear()
        # A module of the user's own has what the user gave torch.
        dpcore.audit(Watching(), ([0.0], [1.0]), claim=30.0, trials=5_000)
        assert set(seen) == {2}
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("given", "audited", "released"),
    [
        (np.float64, np.float64, np.float32),
        (np.float32, np.float32, np.float32),
        (np.float16, np.float16, np.float16),
        (np.longdouble, np.float64, np.float32),
        (np.int64, np.float64, np.float32),
        (list, np.float64, np.float32),
    ],
)
def test_what_arrays_become(given, audited, released):
    def encode(texts):
        numbers = [[1.0, float(len(text))] for text in texts]
        return numbers if given is list else np.array(numbers, given)

    found = mechanism(encode, LaplaceNoise(1.0))
    assert found("a film", 2, np.random.default_rng(1)).dtype == audited
    private = PrivateEncoder(encode, Clip("l1", 1.0), epsilon=1.0)
    assert private.encode(["a film"]).dtype == released


def test_a_pair_of_bfloat16_tensors():
    pair = tuple(torch.tensor([value, 0.0], dtype=torch.bfloat16) for value in (0.0, 1.0))
    report = dpcore.audit(LaplaceNoise(1.0), pair, claim=1.0, trials=20_000, rng=1)
    assert report.refuted is False
    assert report.epsilon_lower > 0.8


def test_a_learnt_epsilon_is_no_dtype_of_the_layer():
    layer = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True, cap=2.0)
    report = dpcore.audit(layer, ([0.0], [1.0]), claim=1.0, trials=20_000, rng=1)
    assert report.outputs("x", 0, 10).dtype == np.float32


def test_attributes_of_other_meaning_make_no_tensors():
    class Own:
        tensor = torch.zeros(3)
        device_type = None

        def __call__(self, x, size, rng):
            return x + rng.laplace(size=(size, 1))

    report = dpcore.audit(Own(), ([0.0], [1.0]), claim=1.0, trials=20_000, rng=1)
    assert (report.refuted, report.runs_on) == (False, "")


def test_dp_audit_counts_as_few_trials_as_an_audit_where_the_encoder_is_random(dp_audit):
    def encode(texts):
        return torch.randn(len(texts), 2) + torch.tensor([[float(len(text))] for text in texts])

    pair = ("a", "ab")
    assert dp_audit(mechanism(encode, LaplaceNoise(1.0)), pair, claim=9.0).trials == 4000
    still = mechanism(hashed, LaplaceNoise(1.0))
    assert dp_audit(still, pair, claim=500.0).trials == 100_000
    # Two pairs are no pair of two texts.
    several = [dpcore.Pair(*pair), dpcore.Pair("b", "bc")]
    assert dp_audit(still, several, claim=500.0).trials == 100_000


@pytest.mark.parametrize(("limit", "times"), [(math.inf, 1), (0.0, 0)])
def test_a_larger_call_is_timed_before_the_forecast_unless_outputs_are_slow(
    limit, times, monkeypatch
):
    class Noise(torch.nn.Module):
        def forward(self, x):
            asked.append(len(x))
            return x + torch.distributions.Laplace(0.0, 9.0).sample(x.shape)

    asked = []
    monkeypatch.setattr("dpcore.auditing.request._SLOW_CALL_SECONDS", limit)
    dpcore.audit(mechanism(hashed, Noise()), PAIR, claim=9.0, trials=32, pilot=32, progress=False)
    # No other call of so few trials has as many outputs.
    assert asked.count(64) == times


class Hidden:
    """A mechanism that does not tell its clean vectors."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __call__(self, x, size, rng):
        return self.mechanism(x, size, rng)


def test_the_first_two_texts_of_dpnrs_corpus():
    texts = read_corpus(data("dpnr_ag", "ag_data.txt")).train.texts
    needs("sklearn")
    encoder = TfidfSVD(768).fit(list(texts))
    private = PrivateEncoder(encoder, MinMax(), epsilon=0.1, noise=LaplaceNoise(10.0), strict=False)
    x, x_prime = private.clean(texts[:2]).numpy()
    assert abs(np.abs(x - x_prime).sum() - 80.7) < 0.1
    audits = [dpcore.audit(private, texts[:2], trials=20_000, rng=seed) for seed in range(2)]
    assert np.median([audit.epsilon_lower for audit in audits]) >= 0.5
    # A bound of at most 8.07 may be false once in 20 audits; none comes near it.
    assert max(audit.epsilon_lower for audit in audits) < 1.0
    assert audits[0].declared_loss == private.noise.loss(x, x_prime)
    hidden = Hidden(private.as_mechanism())
    blind = dpcore.audit(hidden, texts[:2], trials=20_000, rng=1, claim=0.1)
    assert blind.epsilon_lower < 0.2
