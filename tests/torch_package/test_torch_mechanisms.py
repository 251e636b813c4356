"""Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw."""

import math
import secrets

import numpy as np
import pytest
from record_encoders import centred, min_max_scaled, whitened
from shared_encoders import WIDTH, hashed, tiny_bert
from shared_extras import CUDA, data, needs

import dpcore
from dpcore.attacks import Threshold
from dpcore.experiments.corpora import read_corpus
from dpcore.mechanisms.texts import relative_tolerance
from dpcore.text import TfidfSVD

torch = needs("torch")

from dpcore.torch import (  # noqa: E402  # noqa: E402
    Clip,
    LaplaceNoise,
    MinMax,
    PrivateEncoder,
    SharedNoise,
    mechanism,
)
from dpcore.torch.encoders import Pooled, encoder_of, probe_randomness, state_digest  # noqa: E402

PAIR = ("he has cancer", "he has the flu")
DEVICES = ["cpu", CUDA]


def test_a_text_is_encoded_a_few_times_however_many_draws_and_attacks_see_its_vector():
    encoded, pairs = [], []

    def encode(texts):
        encoded.extend(texts)
        return hashed(texts)

    def attack(outputs, outputs_prime, pair):
        pairs.append(pair)
        return Threshold()(outputs, outputs_prime, pair)

    found = mechanism(encode, LaplaceNoise(9.0))
    report = dpcore.audit(found, PAIR, claim=9.0, attack=attack, trials=20_000)
    # 64 encodings of each text, in batches of others, once more alone, and the built-in texts.
    assert 2 * 65 <= len(encoded) <= 300
    z, z_prime = hashed(list(PAIR))
    assert pairs[0] == dpcore.Pair(z, z_prime)
    assert report.declared_loss == pytest.approx(np.abs(z - z_prime).sum() / 9.0)


def test_a_random_encoder_runs_for_every_draw(tmp_path):
    model, tokenizer = tiny_bert(tmp_path, dropout=0.5)
    state = torch.get_rng_state()
    model.train()
    found, options = mechanism((model, tokenizer), LaplaceNoise(1.0)), {"trials": 300, "rng": 1}
    report = dpcore.audit(found, PAIR, claim=20.0, **options)
    assert report.declared_loss is None
    notes = " ".join(report.notes)
    # Batches are compared in eval mode.
    assert "agree within" in notes
    assert "the encoder is random: it ran for every draw" in notes
    assert report.clean is not None
    assert report.counts == dpcore.audit(found, PAIR, claim=20.0, **options).counts
    assert torch.equal(torch.get_rng_state(), state)
    # Dropout alone leaves atoms and tells texts apart for good; without it nothing is random.
    assert dpcore.audit(mechanism((model, tokenizer)), PAIR, claim=0.5, **options).refuted
    assert model.training
    still = mechanism((model.eval(), tokenizer), LaplaceNoise(1.0))
    assert dpcore.audit(still, PAIR, claim=20.0, **options).declared_loss is not None


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
    def encode(texts):
        return torch.tensor(hashed(texts), device=device)

    found = mechanism(encode, SharedNoise(5.0), device=device)
    assert found("a good film", 100, np.random.default_rng(1)).shape == (100, WIDTH)
    assert found.tensor("a good film", 3, np.random.default_rng(1)).device.type == device
    report = dpcore.audit(found, PAIR, claim=1.0, trials=20_000, rng=1)
    assert (report.refuted, report.declared_loss) == (True, np.inf)


def test_a_module_of_ones_own_may_be_the_noise_and_write_to_its_input():
    class Adding(torch.nn.Module):
        def forward(self, rows):
            return rows.add_(9.0 * torch.randn_like(rows))

    found = mechanism(hashed, Adding())
    assert found.loss(dpcore.Pair(*PAIR)) is None
    outputs, again = (found("a film", 1000, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(outputs, again)
    assert np.abs(outputs.mean(axis=0) - hashed(["a film"])[0]).max() < 6 * 9.0 / 1000**0.5
    assert np.array_equal(found.clean("a film"), hashed(["a film"])[0])
    report = dpcore.audit(found, PAIR, claim=1.0, delta=1e-3, trials=20_000, rng=1)
    assert (report.declared_loss, report.randomness) == (None, "seed")


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
        assert (seen[0], set(seen[1:]), torch.get_num_threads()) == (2, {1}, 2)
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
    assert PrivateEncoder(encode, Clip("l1", 1.0), epsilon=1.0).encode(["a film"]).dtype == released


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
    assert dp_audit(mechanism(encode, LaplaceNoise(1.0)), pair, claim=5.5).trials == 4000
    still = mechanism(hashed, LaplaceNoise(1.0))
    with pytest.raises(pytest.fail.Exception, match=r"100,000 trials certify at most 9\.22"):
        dp_audit(still, pair, claim=500.0)
    # Two pairs are no pair of two texts.
    several = [dpcore.Pair(*pair), dpcore.Pair("b", "bc")]
    with pytest.raises(pytest.fail.Exception, match=r"100,000 trials certify at most 9\.22"):
        dp_audit(still, several, claim=500.0)


@pytest.mark.parametrize("times", [0, 4])
def test_larger_calls_are_timed_before_a_forecast_of_slow_outputs(times, monkeypatch):
    class Noise(torch.nn.Module):
        def forward(self, x):
            asked.append(len(x))
            return x + torch.distributions.Laplace(0.0, 9.0).sample(x.shape)

    asked = []
    limit = 0.0 if times else math.inf
    monkeypatch.setattr("dpcore.auditing.forecast._FAST_OUTPUT_SECONDS", limit)
    monkeypatch.setattr("dpcore.auditing.forecast._FIRST_TIMED_ROWS", 48)
    dpcore.audit(mechanism(hashed, Noise()), PAIR, claim=9.0, trials=48, pilot=32, progress=False)
    # The count has one such call on each side; each side is timed twice.
    assert asked.count(48) == 2 + times


@pytest.mark.sweep
def test_the_first_two_texts_of_dpnrs_corpus():
    texts = read_corpus(data("dpnr_ag", "ag_data.txt")).train.texts
    encoder = TfidfSVD(768).fit(list(texts))
    private = PrivateEncoder(encoder, MinMax(), epsilon=0.1, noise=LaplaceNoise(10.0), strict=False)
    x, x_prime = private.clean(texts[:2]).numpy()
    assert abs(np.abs(x - x_prime).sum() - 80.7) < 0.1
    report = dpcore.audit(private, texts[:2], trials=20_000, rng=1)
    # A bound of at most 8.07 may be false once in 20 audits; this one does not come near it.
    assert 0.5 <= report.epsilon_lower < 1.0
    assert report.declared_loss == private.noise.loss(x, x_prime)
    told = private.as_mechanism()
    # A function does not tell its clean vectors.
    hidden = dpcore.audit(lambda *given: told(*given), texts[:2], trials=10_000, rng=1, claim=0.1)
    assert hidden.epsilon_lower < 0.2


# What an encoder hides: other texts in a vector, rare randomness, weights that have changed.


CLIP = Clip("l1", 1.0)


def numbered(texts):
    return hashed(texts) + 0.1 * np.arange(len(texts))[:, None]


def padded(texts):
    longest = max(len(text.split()) for text in texts)
    return np.array([hashed([text])[0] / longest for text in texts])


class Cached:
    """Subtracts the mean of the call before."""

    def __init__(self):
        self.mean = 0.0

    def __call__(self, texts):
        rows = hashed(texts)
        found, self.mean = rows - self.mean, rows.mean(axis=0)
        return found


@pytest.mark.parametrize("encoder", [centred, whitened, min_max_scaled, numbered, padded])
@pytest.mark.parametrize("make", [mechanism, lambda one: PrivateEncoder(one, CLIP, epsilon=1.0)])
def test_an_encoder_in_which_texts_mix_is_refused_with_texts_and_distance(encoder, make):
    said = r"the same vector alone and in any batch .*another one for '.*', .* of its norm away"
    with pytest.raises(ValueError, match=said):
        make(encoder)


def test_a_state_that_other_texts_change_is_refused_or_said():
    with pytest.raises(ValueError, match="encoder must be the same in two equal calls"):
        PrivateEncoder(Cached(), CLIP, epsilon=1.0)
    report = dpcore.audit(mechanism(Cached(), LaplaceNoise(9.0)), PAIR, claim=9.0, rng=1)
    assert "not checked: two equal calls differ although no generator" in str(report)
    assert (report.declared_loss, report.trials) == (None, 4_000)
    assert "4,000 trials certify an epsilon of 6.99 at most; 40,000 trials" in str(report)


def test_a_transform_of_ones_own_must_not_mix_rows():
    class Centre(torch.nn.Module):
        def forward(self, rows):
            return (rows - rows.mean(dim=0)).clamp(-1.0, 1.0)

        def range(self, dim):
            return Clip("l2", dim**0.5).range(dim)

    with pytest.raises(ValueError, match="transform must be one that gives a text the same"):
        PrivateEncoder(hashed, Centre(), epsilon=1.0)


def test_texts_at_hand_are_checked_before_their_first_draw():
    def leaking(texts):
        # Only texts that the built-in ones are not like mix.
        rows = hashed(texts)
        return rows + (rows.mean(axis=0) if any("cancer" in text for text in texts) else 0.0)

    found = mechanism(leaking, LaplaceNoise(1.0))
    with pytest.raises(ValueError, match=r"another one for '.*', .* in a batch with"):
        dpcore.audit(found, PAIR, claim=1.0, trials=1000)
    with pytest.raises(ValueError, match="the same vector alone and in any batch"):
        mechanism(leaking, LaplaceNoise(1.0), probe=PAIR)


def test_texts_and_limit_are_the_users():
    known = dict(zip(PAIR, hashed(list(PAIR)), strict=True))
    private = PrivateEncoder(known, CLIP, epsilon=1.0)
    assert (private.batches.texts, private.encode(PAIR, rng=1).shape) == (2, (2, WIDTH))

    def look_up(texts):
        return np.array([known[text] for text in texts])

    with pytest.raises(KeyError) as caught:
        PrivateEncoder(look_up, CLIP, epsilon=1.0)
    assert "probe= gives others" in caught.value.__notes__[0]
    assert PrivateEncoder(look_up, CLIP, epsilon=1.0, probe=known).batches.distance == 0.0

    def rounded(texts):
        return hashed(texts) * (1.0 + 1e-4 * len(texts))

    with pytest.raises(ValueError, match=r"up to 1e-05 of its norm"):
        PrivateEncoder(rounded, CLIP, epsilon=1.0)
    loose = PrivateEncoder(rounded, CLIP, epsilon=1.0, rounding=0.01)
    assert 1e-4 < loose.batches.distance < 0.01
    assert "(limit 0.01)" in str(loose)


def test_the_limit_follows_the_type():
    types = ("float64", "torch.float32", "torch.bfloat16", "float16")
    assert [relative_tolerance(None, one) for one in types] == [1e-5, 1e-5, 0.05, 0.05]


def test_encoders_that_do_not_mix_are_accepted(tmp_path):
    model, tokenizer = tiny_bert(tmp_path)

    def build(layer, dtype):
        return lambda texts: layer(torch.tensor(hashed(texts), dtype=dtype))

    for seed, dtype in enumerate((torch.float32, torch.bfloat16, torch.float16, torch.float64)):
        torch.manual_seed(seed)
        layer = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.GELU()).eval()
        PrivateEncoder(build(layer.to(dtype), dtype), CLIP, epsilon=1.0)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        PrivateEncoder((model, tokenizer), CLIP, epsilon=1.0)
        mechanism((model.train(), tokenizer), LaplaceNoise(1.0))
        model.eval()


def test_a_forgotten_attention_mask_is_refused(tmp_path):
    model, tokenizer = tiny_bert(tmp_path)

    class Unmasked(Pooled):
        def _embed(self, texts):
            tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=16)
            return self.model(torch.tensor(tokens["input_ids"])).last_hidden_state.mean(dim=1)

    with pytest.raises(ValueError, match="the same vector alone and in any batch"):
        PrivateEncoder(Unmasked(model, tokenizer), CLIP, epsilon=1.0)


@pytest.mark.parametrize("source", ["torch", "numpy", "own"])
def test_rare_randomness_is_randomness(source):
    own = torch.Generator().manual_seed(1)
    draws = {
        "torch": lambda: float(torch.rand(())),
        "numpy": lambda: np.random.random(),  # noqa: NPY002
        "own": lambda: float(torch.rand((), generator=own)),
    }

    def encode(texts):
        rows = hashed(texts) / 10.0
        return 50.0 * rows if draws[source]() < 0.01 else rows

    report = dpcore.audit(mechanism(encode, LaplaceNoise(9.0)), PAIR, claim=9.0, trials=500, rng=1)
    assert report.declared_loss is None
    assert "the encoder is random" in " ".join(report.notes)


def test_entropy_of_the_system_is_seen_in_the_encodings():
    def encode(texts):
        return hashed(texts) + np.array([[secrets.randbelow(2)] for _ in texts])

    assert probe_randomness(encoder_of(encode), "a film", None).is_seen
    quiet = probe_randomness(encoder_of(hashed), "a film", None)
    assert not quiet.is_random
    assert "less than 4.6 % of rows, or 31 % of calls" in str(quiet)
    # Of a long text there are fewer copies, and the bound says so.
    lengths = encoder_of(lambda texts: [[float(len(text))] for text in texts])
    assert "less than 31 % of rows" in str(probe_randomness(lengths, "a " * 10**5, None))


def test_vectors_are_forgotten_when_weights_change():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)
            self.seen = 0

        def forward(self, texts):
            self.seen += len(texts)
            return self.layer(torch.tensor(hashed(texts), dtype=torch.float32))

    model = Model().eval()
    found = mechanism(model, LaplaceNoise(2.0))
    options = {"claim": 5.0, "trials": 1000, "rng": 1}
    first = dpcore.audit(found, PAIR, **options)
    seen = model.seen
    assert dpcore.audit(found, PAIR, **options).declared_loss == first.declared_loss
    assert model.seen == seen + 1
    before = state_digest([model])
    model.layer.weight.data.mul_(1000.0)
    assert state_digest([model]) != before
    changed = dpcore.audit(found, PAIR, **options)
    assert changed.declared_loss == pytest.approx(1000.0 * first.declared_loss, rel=1e-3)
    assert changed.refuted


def test_a_function_is_encoded_anew_once():
    factor = [1.0]
    found = mechanism(lambda texts: factor[0] * hashed(texts), LaplaceNoise(9.0))
    options = {"claim": 50.0, "trials": 1000, "rng": 1}
    first = dpcore.audit(found, PAIR, **options)
    factor[0] = 3.0
    again = dpcore.audit(found, PAIR, **options)
    assert again.declared_loss == pytest.approx(3.0 * first.declared_loss)


def test_ten_thousand_vectors_are_remembered(monkeypatch):
    monkeypatch.setattr("dpcore.torch.mechanisms._MAX_REMEMBERED_TEXTS", 3)
    found = mechanism(hashed, LaplaceNoise(9.0))
    for word in ("one", "two", "three", "four"):
        found.random(word)
    assert list(found._learnt) == ["two", "three", "four"]


@pytest.mark.parametrize("atoms", ["argmax", "round", "sign"])
def test_outputs_with_atoms_are_audited(atoms):
    def encode(texts):
        rows = torch.tensor(hashed(texts))
        rows = rows / rows.abs().sum(dim=1, keepdim=True)
        # So much noise that one set of seeds would give both texts the same atoms.
        rows = rows + torch.distributions.Laplace(0.0, 20.0).sample(rows.shape).double()
        if atoms == "argmax":
            return torch.nn.functional.one_hot(rows.argmax(dim=1), WIDTH).double()
        return rows.round() if atoms == "round" else rows.sign()

    for seed in range(5):
        report = dpcore.audit(mechanism(encode), PAIR, claim=1.0, trials=2000, rng=seed)
        assert report.refuted is False


def test_equal_means_are_no_error_where_draws_differ():
    def coin(texts):
        return (torch.rand(len(texts), 1) < 0.0).double()

    report = dpcore.audit(mechanism(coin), PAIR, claim=1.0, trials=2000, rng=1)
    assert (bool(report.undecided), report.clean) == (True, None)
    with pytest.raises(ValueError, match="does not encode to one vector"):
        dpcore.audit(mechanism(lambda texts: np.zeros((len(texts), 1)), LaplaceNoise(1.0)), PAIR)


def _vectors(width):
    rows = np.random.default_rng(0).normal(size=(2, width))
    return dict(zip(PAIR, rows / np.abs(rows).sum(axis=1, keepdims=True), strict=True))


@pytest.mark.parametrize("width", [6, 48])
def test_a_pool_of_noises_is_refuted(width):
    torch.manual_seed(width)
    pool = torch.distributions.Laplace(0.0, 1.0).sample((1000, width)).double()

    class Pool(torch.nn.Module):
        def forward(self, rows):
            return rows + pool[torch.randint(1000, (len(rows),))]

    report = dpcore.audit(mechanism(_vectors(width), Pool()), PAIR, claim=8.0, trials=10**5, rng=1)
    assert report.refuted
    assert "rows that came again on one side alone" in str(report.event)
    fresh = mechanism(_vectors(width), LaplaceNoise(1.0))
    assert dpcore.audit(fresh, PAIR, claim=2.0, trials=10**5, rng=1).refuted is False


@pytest.mark.parametrize("width", [6, 48])
def test_noise_that_is_missing_in_one_row_of_a_hundred_is_refuted(width):
    class Missing(torch.nn.Module):
        def forward(self, rows):
            noise = torch.distributions.Laplace(0.0, 1.0).sample(rows.shape)
            return rows + noise * (torch.rand(len(rows), 1) > 0.01)

    found = mechanism(_vectors(width), Missing())
    assert dpcore.audit(found, PAIR, claim=3.0, trials=10**5, rng=1).refuted
