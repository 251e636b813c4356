"""Private encoders: the noise follows from the transform, what does not suffice is refused."""

import json
import math
import random
import socket
from functools import partial

import numpy as np
import pytest
from shared_damage import damage_bytes, list_bad_readings, peak_memory
from shared_encoders import WIDTH, hashed, tiny_bert, tiny_sentences
from shared_extras import needs

import dpcore
from dpcore import calibration, sensitivity

torch = needs("torch", "safetensors")

from dpcore.torch import (  # noqa: E402  # noqa: E402
    Clip,
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    MinMax,
    Normalise,
    PrivateEncoder,
    SharedNoise,
    mechanism,
)
from dpcore.torch.private_encoder import farthest_rows  # noqa: E402

pytest_plugins = ["pytester"]

TEXTS = ["he has cancer", "he has the flu", "a good film"]
PAIR = ("he has cancer", "he has the flu")


SIGMA = calibration.gaussian_analytic(8.0, 1e-5, 2.0).sigma


@pytest.mark.parametrize(
    ("transform", "given", "noise"),
    [
        (Clip("l1", 1.0), {"epsilon": 8.0}, LaplaceNoise(0.25)),
        (Clip("l2", 1.0), {"epsilon": 8.0}, LaplaceNoise(2.0 * math.sqrt(WIDTH) / 8.0)),
        (MinMax(), {"epsilon": 8.0}, LaplaceNoise(WIDTH / 8.0)),
        (Normalise("l1"), {"epsilon": 8.0}, LaplaceNoise(0.25)),
        (Clip("l2", 1.0), {"epsilon": 8.0, "noise": "l2_laplace"}, L2LaplaceNoise(0.25)),
        (
            Clip("l2", 1.0),
            {"epsilon": 8.0, "delta": 1e-5, "noise": "gaussian"},
            GaussianNoise(SIGMA),
        ),
        (sensitivity.Clip("l1", 2.0), {"epsilon": 8.0}, LaplaceNoise(0.5)),
    ],
)
def test_the_scale_follows_from_the_range(transform, given, noise):
    private = PrivateEncoder(hashed, transform, **given)
    assert type(private.noise) is type(noise)
    assert private.noise.scale == pytest.approx(noise.scale, rel=1e-12)
    assert private.true_epsilon == pytest.approx(8.0, rel=1e-9)
    assert (private.claim, private.width) == (8.0, WIDTH)
    vectors = private.encode(TEXTS, rng=1)
    assert vectors.shape == (3, WIDTH)
    assert np.array_equal(vectors, private.encode(TEXTS, rng=1))
    assert not np.array_equal(vectors, private.encode(TEXTS, rng=2))


class Pipeline:
    """What a feature-extraction pipeline returns: lists of shape (1, tokens, width)."""

    task = "feature-extraction"

    def __init__(self):
        self.model = torch.nn.Linear(1, 1).eval()

    def __call__(self, texts):
        if isinstance(texts, list):
            return [self(text) for text in texts]
        return [[hashed([word])[0].tolist() for word in texts.split()]]


def hash_one(text):
    return hashed([text])[0].tolist()


@pytest.mark.parametrize(
    ("encoder", "wanted"),
    [
        (hash_one, hashed(TEXTS)),
        (lambda text: [[float(len(text)), 1.0]], [[13.0, 1.0], [14.0, 1.0], [11.0, 1.0]]),
        # A list has a length, too: one answer for all texts.
        (lambda text: [float(len(text)), 2.0], [[13.0, 2.0], [14.0, 2.0], [11.0, 2.0]]),
        (Pipeline(), hashed(TEXTS) / [[3], [4], [3]]),
    ],
)
def test_functions_of_one_text_and_pipelines_are_encoders(encoder, wanted):
    private = PrivateEncoder(encoder, Clip("l1", 1e6), epsilon=8.0)
    assert private.clean(TEXTS).numpy() == pytest.approx(np.array(wanted), rel=1e-5)
    noisy = mechanism(encoder, LaplaceNoise(1.0))
    assert noisy.clean(TEXTS[0]) == pytest.approx(np.array(wanted[0]), rel=1e-5)


def test_whole_numbers_become_floats_and_long_texts_are_encoded():
    def count(texts):
        return np.array([[len(text.split()), 1] for text in texts])

    private = PrivateEncoder(count, Clip("l1", 1e9), epsilon=8.0)
    assert private.clean(["word " * 10**5]).tolist() == [[1e5, 1.0]]


def test_noise_is_fresh_unless_a_seed_is_given():
    private = PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0)
    before = torch.get_rng_state()
    assert not np.array_equal(private.encode(TEXTS), private.encode(TEXTS))
    torch.manual_seed(1)
    first = private.encode(TEXTS)
    torch.manual_seed(1)
    assert not np.array_equal(first, private.encode(TEXTS))
    torch.set_rng_state(before)
    private.encode(TEXTS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("transform", "noise", "shown"),
    [
        (Clip("l2", 1.0), LaplaceNoise(0.25), "epsilon 19.5959 is reached by this pair"),
        (MinMax(), LaplaceNoise(0.125), "epsilon 48 is reached by this pair"),
        (MinMax(), SharedNoise(1.0), "differences of its entries are exact; epsilon inf is reac"),
        (Clip("l1", 1.0), DPTextNoiseLayer(0.25), "never below its input.*inf is reached by"),
        (Clip("l1", 1.0), GaussianNoise(100.0), "epsilon inf is reached by this pair"),
        (Clip("l1", 1.0), LaplaceNoise(sensitivity=2.0, epsilon=4.0, trainable=True),
         "learnt without a cap"),
    ],
)  # fmt: skip
def test_what_does_not_suffice_is_refused_with_the_pair(transform, noise, shown):
    with pytest.raises(ValueError, match=r"noise must be enough for epsilon 8 on .*" + shown):
        PrivateEncoder(hashed, transform, epsilon=8.0, noise=noise)
    private = PrivateEncoder(hashed, transform, epsilon=8.0, noise=noise, strict=False)
    assert (private.claim, private.encode(TEXTS).shape) == (8.0, (3, WIDTH))
    learnt = noise.caution != ""
    assert ("THE CLAIM IS FALSE" in str(private)) is not learnt
    assert (private.true_epsilon > 8.0) is not learnt


def test_a_learnt_epsilon_counts_by_its_cap():
    given, clip = {"sensitivity": 2.0, "epsilon": 4.0, "trainable": True}, Clip("l1", 1.0)
    private = PrivateEncoder(hashed, clip, epsilon=8.0, noise=LaplaceNoise(**given, cap=8.0))
    assert private.true_epsilon == pytest.approx(4.0)
    assert "learnt, at most 8" in str(private)
    with pytest.raises(ValueError, match="noise must be enough for epsilon 8"):
        PrivateEncoder(hashed, clip, epsilon=8.0, noise=LaplaceNoise(**given, cap=8.1))


def test_gaussian_noise_is_checked_at_its_delta():
    given = {"epsilon": 8.0, "delta": 1e-5}
    private = PrivateEncoder(hashed, Clip("l2", 1.0), noise=GaussianNoise(SIGMA), **given)
    assert private.true_epsilon == pytest.approx(8.0)
    with pytest.raises(ValueError, match="enough for epsilon 8 at delta 1e-05"):
        PrivateEncoder(hashed, Clip("l2", 1.0), noise=GaussianNoise(0.98 * SIGMA), **given)
    # Pure epsilon is more than was requested.
    noise = L2LaplaceNoise(0.25)
    assert PrivateEncoder(hashed, Clip("l2", 1.0), noise=noise, **given).true_epsilon == 8.0


def test_what_it_says_of_itself():
    private = PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0)
    private.encode(TEXTS)
    text = str(private)
    for said in (
        "LaplaceNoise(scale=0.25): independent in every entry",
        "epsilon 8, for any two texts",
        "epsilon 8, for any two texts: L1 distance 2 over scale 0.25",
        "k encodings of one text cost k times 8",
        "the texts that the encoder was trained on",
        "3 encoded so far",
        "not looked for (worst_pair(texts))",
        "cpu",
        "no cryptographic generator",
    ):
        assert said in text
    parts = "hashed, Clip(norm='l1', radius=1.0), epsilon=8.0, LaplaceNoise(scale=0.25)"
    assert repr(private) == f"PrivateEncoder({parts})"


def test_an_audit_finds_claim_texts_and_loss():
    private = PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=2.0)
    report = dpcore.audit(private, PAIR, trials=50_000, rng=1)
    assert (report.claim, report.refuted) == (2.0, False)
    clean = private.clean(PAIR).double().numpy()
    assert report.declared_loss == pytest.approx(np.abs(clean[0] - clean[1]).sum(), rel=1e-6)
    assert 0.5 * report.declared_loss < report.epsilon_lower <= report.declared_loss
    assert "x = 'he has cancer' (str), x' = 'he has the flu' (str)" in str(report)
    assert report.name == repr(private)
    assert dpcore.audit(private, PAIR, trials=50_000, rng=1).counts == report.counts
    given = {"trials": 10_000, "rng": 1, "block": 1000}
    one, other = (dpcore.audit(private, PAIR, start=start, **given) for start in (0, 10_000))
    assert (one + other).counts.n == 20_000
    assert report.outputs("x", 0, 1000).shape == (1000, WIDTH)


def test_the_last_bits_give_nothing_away():
    def numbers(texts):
        return np.array([[len(text.split()) / 10.0] for text in texts])

    private = PrivateEncoder(numbers, Clip("l1", 1.0), epsilon=2.0)
    assert private.encode(PAIR).dtype == np.float32
    report = dpcore.audit(private, ("a b c", "a"), trials=200_000, rng=1)
    assert report.floating_point is None
    # The control: the same in float64.
    wide = mechanism(numbers, LaplaceNoise(1.0))
    report = dpcore.audit(wide, ("a b c", "a"), claim=2.0, trials=200_000, rng=1)
    assert report.floating_point.epsilon_lower > 5.0


def test_a_false_claim_is_refuted_and_a_gaussian_one_is_read_with_its_delta():
    slip = PrivateEncoder(hashed, MinMax(), epsilon=1.0, noise=LaplaceNoise(1.0), strict=False)
    assert slip.true_epsilon == pytest.approx(WIDTH)
    report = dpcore.audit(slip, slip.worst_pair([*TEXTS, "very long"]), trials=20_000, rng=1)
    assert report.refuted
    private = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=1.0, delta=1e-3, noise="gaussian")
    report = dpcore.audit(private, PAIR, trials=20_000, rng=1)
    assert (report.claim, report.delta, report.refuted) == (1.0, 1e-3, False)


def test_the_worst_pair_is_that_of_all_pairs(capsys):
    rng = np.random.default_rng(4)
    words = [f"word{i}" for i in range(40)]
    texts = [" ".join(rng.choice(words, 5)) for _ in range(600)]
    for given, order in (({}, 1), ({"noise": "l2_laplace"}, 2)):
        private = PrivateEncoder(hashed, Clip("l2", 3.0), epsilon=1.0, **given)
        pair = private.worst_pair([*texts, *texts[:3]], progress=False)
        rows = private.clean(texts).double().numpy()
        apart = [np.linalg.norm(rows - row, order, axis=1).max() for row in rows]
        assert private.worst[1] == pytest.approx(max(apart) / private.noise.scale, rel=1e-9)
        found = private.clean([pair.x, pair.x_prime]).double().numpy()
        assert np.linalg.norm(found[0] - found[1], order) == pytest.approx(max(apart))
        assert f"exact loss {private.worst[1]:.4f} (computed" in str(private)
        assert repr(private).endswith(f"; exact loss of the worst pair {private.worst[1]:.6g})")


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_float64_decides_which_rows_are_farthest(norm):
    rows = torch.zeros(600, 3, dtype=torch.float64)
    rows[5, 0], rows[300, 0], rows[599, 0] = 1.0, 1.0 + 1e-8, 1.0 + 5e-9
    # Far from the origin float32 would see nothing of it.
    rows += 1e6
    assert farthest_rows(rows, norm) == (0, 300)


def test_the_author_of_a_library_tests_it(pytester):
    pytester.makepyfile(
        test_it="""
        from dpcore.torch import Clip, LaplaceNoise, PrivateEncoder

        def hashed(texts):
            return [[float(len(text)), 1.0 + text.count("a")] for text in texts]

        def test_private(dp_audit):
            dp_audit(PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=1.0), ("a b", "c"), claim=1.0)

        def test_broken(dp_audit):
            noise = LaplaceNoise(0.1)
            slip = PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=1.0, noise=noise, strict=False)
            dp_audit(slip, ("a b", "c"))
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1, failed=1)


class Encoder(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, texts):
        return self.layers(torch.tensor(hashed(texts), dtype=torch.float32))


def test_modules_must_be_in_eval_mode_and_keep_texts_apart():
    module = Encoder(torch.nn.Dropout(0.5))
    with pytest.raises(ValueError, match=r"encoder must be in eval mode \(encoder.eval\(\)\)"):
        PrivateEncoder(module, Clip("l1", 1.0), epsilon=8.0)
    private = PrivateEncoder(module.eval(), Clip("l1", 1.0), epsilon=8.0)
    assert private.encode(TEXTS).dtype == np.float32
    mixing = Encoder(torch.nn.BatchNorm1d(WIDTH, track_running_stats=False)).eval()
    with pytest.raises(ValueError, match="encoder must be without a batch norm that mixes"):
        PrivateEncoder(mixing, Clip("l1", 1.0), epsilon=8.0)


def test_a_transformer_with_its_tokenizer(tmp_path):
    model, tokenizer = tiny_bert(tmp_path)
    with pytest.raises(TypeError, match=r"pair \(model, tokenizer\) for a transformer"):
        PrivateEncoder(model, Clip("l1", 1.0), epsilon=8.0)
    mean = PrivateEncoder((model, tokenizer), Clip("l1", 1e6), epsilon=8.0)
    cls = PrivateEncoder((model, tokenizer, "cls"), Clip("l1", 1e6), epsilon=8.0)
    tokens = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens).last_hidden_state
    assert torch.allclose(cls.clean(TEXTS), states[:, 0], atol=1e-6)
    lengths = tokens["attention_mask"].sum(dim=1).tolist()
    means = [states[place, :length].mean(dim=0) for place, length in enumerate(lengths)]
    assert torch.allclose(mean.clean(TEXTS), torch.stack(means), atol=1e-6)
    assert len(set(lengths)) > 1
    mean.encode([" ".join(["very"] * 40), *TEXTS])
    assert "4 encoded so far, 1 of them cut after 16 tokens" in str(mean)
    with pytest.raises(ValueError, match="in eval mode"):
        PrivateEncoder((model.train(), tokenizer), Clip("l1", 1.0), epsilon=8.0)


def test_a_sentence_transformer_agrees_up_to_rounding_encodes_and_is_audited(tmp_path):
    model = tiny_sentences(tmp_path)
    private = PrivateEncoder(model, Clip("l1", 1.0), epsilon=8.0)
    assert private.batches.distance < 1e-5
    assert (private.encode(TEXTS).shape, private.noise.scale) == ((3, 96), 0.25)
    report = dpcore.audit(private, PAIR, trials=2_000, rng=1)
    assert (report.claim, bool(report.undecided)) == (8.0, True)
    assert 0.5 < report.declared_loss < 8.0
    assert private.encoder.longest == 16
    half = PrivateEncoder(model.to(torch.bfloat16), Clip("l1", 1.0), epsilon=8.0)
    # Some processors' kernels give equal vectors in a batch and alone, so the distance may be 0.
    assert (half.batches.texts, half.batches.rounding) == (9, 0.05)
    assert half.batches.distance < 0.05


# The noise of least error is chosen before a text is seen, and the signal that is left is said.


@pytest.mark.parametrize(
    ("transform", "delta", "kind"),
    [
        (Clip("l2", 1.0), 0.0, L2LaplaceNoise),
        (Clip("l2", 1.0), 0.5, GaussianNoise),
        (Clip("l2", 1.0), 1e-30, L2LaplaceNoise),
        (Clip("l1", 1.0), 0.0, LaplaceNoise),
    ],
)
def test_the_noise_of_least_error_is_chosen(transform, delta, kind):
    private = PrivateEncoder(hashed, transform, epsilon=8.0, delta=delta, noise="best")
    assert type(private.noise) is kind
    assert private.true_epsilon <= 8.0 * (1.0 + 1e-9)
    assert set(private.errors) == {"laplace", "l2_laplace", *["gaussian"] * (delta > 0.0)}
    errors = private.errors
    assert errors == calibration.noise_errors(private.domain, 8.0, delta)
    chosen = min(errors, key=errors.get)
    line = f"{chosen}: least expected squared error of a vector, {errors[chosen]:.4g}"
    assert line in str(private)
    assert all(f"{name} {errors[name]:.4g}" in str(private) for name in errors if name != chosen)


def test_what_was_chosen_from_is_known_after_loading(tmp_path):
    private = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, delta=1e-9, noise="best")
    folder = private.save_pretrained(tmp_path / "best")
    assert PrivateEncoder.from_pretrained(folder, encoder=hashed).errors == private.errors != {}
    given = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, noise="laplace")
    folder = given.save_pretrained(tmp_path / "given")
    assert PrivateEncoder.from_pretrained(folder, encoder=hashed).errors == {}


@pytest.mark.parametrize("noise", ["laplace", "l2_laplace", "gaussian"])
def test_errors_are_those_of_the_layers(noise):
    delta = 1e-5 if noise == "gaussian" else 0.0
    private = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, delta=delta, noise=noise)
    assert private.errors == {}
    expected = calibration.noise_errors(private.domain, 8.0, 1e-5)[noise]
    noisy = private.noise(torch.zeros(40_000, WIDTH), torch.Generator().manual_seed(1))
    squares = noisy.double().square().sum(dim=1).numpy()
    # Five standard errors: of 3 fixed seeds none is as far by chance (p < 1e-5).
    error = 5.0 * squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - expected) < error
    assert abs(squares.mean() - 1.1 * expected) > error
    assert "least expected" not in str(private)
    entry, level, share = private.measure_signal()
    assert level == pytest.approx(math.sqrt(expected / WIDTH))
    clean = private.clean(private.probe).double().numpy()
    assert entry == pytest.approx(np.sqrt((clean**2).mean()))
    assert share == pytest.approx(entry**2 / (entry**2 + level**2))


def test_print_says_when_no_utility_is_to_be_expected():
    for epsilon, few in ((0.1, True), (100.0, False)):
        text = str(PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=epsilon, noise="best"))
        assert "% of a vector's energy is signal (root mean squares over" in text
        assert ("NO UTILITY IS TO BE EXPECTED below 2 %" in text) is few
    shared = PrivateEncoder(hashed, MinMax(), epsilon=8.0, noise=SharedNoise(1.0), strict=False)
    assert shared.measure_signal() is None
    assert "not known: no law of the noise is" in str(shared)


# Private encoders in folders: config.json and safetensors, no pickle, no network.


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*arguments, **more):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refused)


LEARNT = LaplaceNoise(sensitivity=2.0, epsilon=0.1, trainable=True, cap=8.0)


def returns(private, folder, **given):
    private.save_pretrained(folder)
    again = PrivateEncoder.from_pretrained(folder, **given)
    assert repr(again) == repr(private)
    assert np.array_equal(again.encode(TEXTS, rng=1), private.encode(TEXTS, rng=1))
    return again


@pytest.mark.parametrize(
    ("transform", "given"),
    [
        (Clip("l1", 1.0), {"epsilon": 0.1}),
        (MinMax(), {"epsilon": 8.0, "noise": "l2_laplace"}),
        (Normalise("l2"), {"epsilon": 8.0, "delta": 1e-5, "noise": "gaussian"}),
        (MinMax(), {"epsilon": 8.0, "noise": SharedNoise(0.1), "strict": False}),
        (MinMax(), {"epsilon": 8.0, "noise": DPTextNoiseLayer(0.1, "resample"), "strict": False}),
        (Clip("l1", 1.0), {"epsilon": 8.0, "noise": LEARNT, "strict": False}),
    ],
)
def test_a_function_is_handed_over_and_all_else_comes_back(tmp_path, transform, given):
    private = PrivateEncoder(hashed, transform, **given)
    assert returns(private, tmp_path / "folder", encoder=hashed).noise.scale == private.noise.scale
    words = json.loads((tmp_path / "folder" / "config.json").read_text())["noise"]
    assert words["class"] == type(private.noise).__name__.replace("DPTextNoiseLayer", "DPTextNoise")
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["config.json"]
    load = partial(PrivateEncoder.from_pretrained, tmp_path / "folder")
    with pytest.raises(ValueError, match=r"encoder must be given for an encoder of one's own \(ha"):
        load()
    with pytest.raises(ValueError, match=f"encoder must be of width {WIDTH}, as saved, got 2"):
        load(encoder=lambda texts: np.eye(2)[[len(text) % 2 for text in texts]])


def test_of_a_module_the_weights_come_back(tmp_path):
    model, other = (Encoder(torch.nn.Linear(WIDTH, 4)).eval() for _ in range(2))
    private = PrivateEncoder(model, Clip("l1", 1.0), epsilon=8.0)
    assert not torch.equal(other.layers[0].weight, model.layers[0].weight)
    returns(private, tmp_path, encoder=other)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "encoder.safetensors"}


def test_transformers_and_sentence_transformers(tmp_path):
    for pooling in ("mean", "cls"):
        model = (*tiny_bert(tmp_path), pooling)
        returns(PrivateEncoder(model, Clip("l1", 1.0), epsilon=8.0), tmp_path / pooling)
    private = PrivateEncoder(tiny_sentences(tmp_path), Clip("l1", 1.0), epsilon=8.0)
    returns(private, tmp_path / "sentences")
    with pytest.raises(ValueError, match="encoder must be left out, for the folder holds one"):
        PrivateEncoder.from_pretrained(tmp_path / "sentences", encoder=hashed)
    (tmp_path / "sentences" / "encoder" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"without files that could hold a pickle or code, .*model.bin"
    ):
        PrivateEncoder.from_pretrained(tmp_path / "sentences")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more": 1}, "key of .*config.json must be one of chosen, delta, encoder, .*, got 'more'"),
        ({"epsilon": None}, "epsilon"),
        ({"format": "other/1"}, "format of .* must be 'dpcore.PrivateEncoder/1', got 'other/1'"),
        ({"transform": {"class": "Linear"}}, "class of transform in config.json must be one of"),
        ({"noise": {"class": "LaplaceNoise", "sigma": 1.0}}, "have the arguments of LaplaceNoise"),
        ({"noise": {"class": "LaplaceNoise", "scale": 0.01}}, "noise must be enough for epsilon 8"),
        ({"encoder": {"kind": "pickle"}}, "kind of the encoder in config.json must be one of"),
        ({"encoder": 3}, "encoder in config.json must be an object"),
        ("{", "config.json must be JSON"),
        ('{"format": "dpcore.PrivateEncoder/1", "chosen": false}', "must be there, got 'delta'"),
    ],
)
def test_a_config_that_was_changed(tmp_path, change, message):
    PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    is_whole = isinstance(change, str)
    file.write_text(change if is_whole else json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises((ValueError, TypeError), match=message):
        PrivateEncoder.from_pretrained(tmp_path, encoder=hashed)


@pytest.mark.parametrize("many", [20, pytest.param(200, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("file", ["config.json", "encoder.safetensors"])
def test_a_damaged_encoder_is_an_error_or_has_its_claim(tmp_path, file, many):
    def make():
        return Encoder(torch.nn.Linear(WIDTH, 4)).eval()

    rng, before = random.Random(1), peak_memory()
    saved = PrivateEncoder(make(), MinMax(), epsilon=8.0)
    saved.save_pretrained(tmp_path)
    content = (tmp_path / file).read_bytes()

    def read(changed):
        (tmp_path / file).write_bytes(changed)
        private = PrivateEncoder.from_pretrained(tmp_path, encoder=make())
        # A claim is part of the file, and its noise follows from it.
        return private.noise.scale * private.epsilon

    damaged = (damage_bytes(content, rng) for _ in range(many))
    whole = saved.noise.scale * saved.epsilon
    assert list_bad_readings(damaged, read, pytest.approx(whole)) == []
    assert peak_memory() - before < 2**30


class Bounding(torch.nn.Module):
    """A transform of one's own."""

    def forward(self, rows):
        return torch.tanh(rows)

    def range(self, dim):
        return Clip("linf", 1.0).range(dim)


def test_a_transform_of_ones_own_is_used_and_not_saved(tmp_path):
    private = PrivateEncoder(hashed, Bounding(), epsilon=8.0)
    assert private.noise.scale == pytest.approx(2.0 * WIDTH / 8.0)
    with pytest.raises(TypeError, match=r"transform must be one of dpcore\.torch, to be saved"):
        private.save_pretrained(tmp_path)
