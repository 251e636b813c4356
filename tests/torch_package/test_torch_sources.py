"""Sources of noise: which calls of a module are random, and that nothing else is called so."""

import random
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
from shared_encoders import tiny_sentences
from shared_extras import CUDA, needs

torch = needs("torch")
from torch import nn  # noqa: E402

from dpcore.torch import LaplaceNoise, noise_sources  # noqa: E402

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)
DEVICES = ["cpu", CUDA]


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def of(function, **parts):
    """A module made of a function of itself and its inputs, and of its parts."""

    class Module(nn.Module):
        def forward(self, *inputs, **more):
            return function(self, *inputs, **more)

    module = Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def names(module, *inputs, **kwargs):
    return [source.name for source in noise_sources(module, *inputs, **kwargs)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_noise_layer_behind_and_before_others(device):
    noise, x = Noise(), X.to(device)
    model = nn.Sequential(nn.Linear(4, 3), noise, nn.Tanh(), nn.Sequential(noise, Noise()))
    found = noise_sources(model.to(device), x)
    assert [one.name for one in found] == ["1, call 1 of 2", "1, call 2 of 2", "3.1"]
    assert [one.path for one in found] == ["1", "1", "3.1"]
    assert found[0].module is noise
    assert torch.equal(found[0].input, model[0](x))
    assert ({one.kind for one in found}, found.calls) == ({"noise"}, 7)
    assert not found[2].inspect(rng=1, draws=500).flagged


def test_no_source_in_deterministic_models():
    chain = nn.Sequential(
        nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Dropout(0.0), nn.BatchNorm1d(4),
        nn.ReLU(inplace=True), nn.LayerNorm(4), nn.Hardtanh(inplace=True),
    )  # fmt: skip
    found = noise_sources(chain, X)
    assert not found
    assert str(found) == "no source of noise among 8 module calls (Sequential in train mode)"
    # Random numbers that were frozen when the layer was made, and a power iteration.
    frozen = of(lambda self, x: x + self.shift, shift=torch.randn(4))
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).train()
    assert names(frozen, X) == names(spectral, X) == []
    fixed = of(lambda self, x: x + torch.rand(4, generator=torch.Generator().manual_seed(1)))
    assert names(fixed, X) == []


def test_what_a_module_makes_in_its_forward():
    assert names(of(lambda self, x: nn.Softmax(dim=1)(x)), X) == []
    found = noise_sources(of(lambda self, x: nn.Dropout(0.5)(x)).eval(), X)
    assert [(one.path, one.name, one.kind) for one in found] == [(None, "(Dropout)", "dropout")]


def test_noise_of_a_parent_before_between_and_after_its_children():
    def run(self, x):
        for place, part in enumerate(self.parts):
            x = part(x + torch.randn(len(x), 4) if self.where == place else x)
        return x + torch.randn(len(x), 4) if self.where == 2 else x

    parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    for where in (0, 1, 2):
        parent = of(run, parts=parts, where=where)
        (source,) = noise_sources(nn.Sequential(nn.Identity(), parent), X)
        assert (source.name, source.inspect(rng=1, draws=500).passed) == ("1", True)
        assert names(parent, X) == ["(root)"]
    assert names(of(run, parts=parts, where=None), X) == []


def test_dropout_left_in_train_mode():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), Noise())
    assert [one.kind for one in noise_sources(model, X)] == ["dropout", "noise"]
    assert [one.kind for one in noise_sources(model.eval(), X)] == ["noise"]
    functional = of(lambda self, x: nn.functional.dropout(x, 0.5, self.training))
    assert [one.kind for one in noise_sources(functional, X)] == ["train mode"]
    assert functional.training
    # So rare that two seeds hardly ever show it.
    assert names(nn.Dropout(0.01), X) == ["(root)"]


def test_nothing_of_the_module_and_its_input_changes():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5))
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, call = X.clone(), nn.Module.__call__
    noise_sources(model[1:], x)
    noise_sources(model, x)
    assert torch.equal(x, X)
    assert nn.Module.__call__ is call
    assert [one.training for one in model] == [True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    with pytest.raises(RuntimeError):
        noise_sources(nn.Linear(5, 5), x)
    assert nn.Module.__call__ is call


def test_in_place_operations_on_either_side():
    def write(self, x):
        x += torch.randn(len(x), 4)

    def run(self, x):
        x = self.inner(x)
        self.noise(x)
        return self.after(x)

    whole = of(run, inner=nn.Linear(4, 4), noise=of(write), after=nn.ReLU(inplace=True))
    (source,) = noise_sources(whole, X)
    assert source.name == "noise"
    # As it was before the noise was written to it.
    assert torch.equal(source.input, whole.inner(X).detach())
    assert source.inspect(rng=1, draws=500).passed


def test_hooks_belong_to_their_module():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].register_forward_hook(lambda module, args, output: output + torch.randn(4))
    model[2].register_forward_pre_hook(lambda module, args: (args[0] + torch.randn(4),))
    model.register_forward_hook(lambda *args: None)
    assert names(model, X) == ["1", "2"]


def test_parameters_that_are_shared_and_modules_under_two_names():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    model.append(model[1])
    assert names(model, X) == ["1, call 1 of 2", "1, call 2 of 2"]


def test_layers_that_are_left_out_at_random():
    def run(self, x):
        for layer in self.layers:
            x = layer(x) if torch.rand(()) < self.chance else x
        return x

    layers = nn.ModuleList([nn.Linear(4, 4), Noise()])
    some, every = (names(of(run, layers=layers, chance=chance), X) for chance in (0.5, 2.0))
    assert (some[0], every) == ("(root)", ["layers.1"])


def test_a_parent_that_needs_more_of_a_child_than_its_outputs():
    def keep_sum(self, x):
        self.last = [x.sum()]
        return x + torch.randn(4)

    whole = of(lambda self, x: self.child(x) + self.child.last.pop(), child=of(keep_sum))
    assert names(whole, X) == ["child"]


def test_a_child_that_raises_and_a_parent_that_goes_on():
    def go_on(self, x):
        try:
            return self.bad(x)
        except IndexError:
            return self.noise(x)

    assert names(of(go_on, bad=of(lambda self, x: x[99]), noise=Noise()), X) == ["noise"]


def test_compiled_modules_are_refused():
    with pytest.warns(Warning, match="torch.jit"):
        traced = torch.jit.trace(nn.Linear(4, 4), X)
    called = nn.Linear(4, 4)
    called.compile()
    with_forward = nn.Linear(4, 4)
    with_forward.forward = torch.compile(with_forward.forward)
    for one in (traced, called, with_forward, torch.compile(nn.Linear(4, 4))):
        with pytest.raises(ValueError, match="module must be not compiled"):
            noise_sources(one, X)
        with pytest.raises(ValueError, match=r"without the compiled part '0\.0'"):
            noise_sources(nn.Sequential(nn.Sequential(one)), X)
        hidden = of(lambda self, x: self.parts[0](x), parts=[one])
        with pytest.raises(ValueError, match="not compiled"):
            noise_sources(hidden, X)
    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module, got"):
        noise_sources(lambda x: x, X)


def test_the_record_reads_well():
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), Noise())
    found = noise_sources(model, X)
    assert str(found).splitlines() == [
        "2 sources of noise among 4 module calls (Sequential in train mode)",
        "  1: Dropout, dropout in train mode from torch, on (6, 3) float32",
        "  2: Noise, noise from torch, on (6, 3) float32",
    ]
    assert repr(found) == str(found)
    assert repr(found[1]) == "<NoiseSource 2: Noise, noise from torch, on (6, 3) float32>"
    assert (found[0:1], len(list(found))) == ((found[0],), 2)
    parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    found = noise_sources(of(lambda self, x: self.parts["a"](x), parts=parts), X)
    assert str(found).endswith("\n  never called: parts.b")


# Every generator, and inputs and outputs of every kind.

_GLOBAL = np.random


class Drawing(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.draw, self.own, self.ours = draw, torch.Generator(), np.random.default_rng(1)

    def forward(self, x):
        return x + self.draw(self, len(x))

    def states(self):
        """Of its own generators, and of the global ones."""
        numpy = _GLOBAL.get_state(legacy=False)["state"]
        own = self.own.get_state().tolist(), self.ours.bit_generator.state
        everywhere = torch.get_rng_state().tolist(), random.getstate()
        return own, (*everywhere, numpy["key"].tolist(), numpy["pos"])


@pytest.mark.parametrize(
    ("draw", "draws"),
    [
        (lambda self, n: torch.randn(n, 4), ("torch",)),
        (lambda self, n: torch.from_numpy(_GLOBAL.normal(size=(n, 4))).float(), ("numpy",)),
        (lambda self, n: torch.tensor([[random.gauss()] * 4] * n), ("python",)),
        (lambda self, n: torch.randn(n, 4, generator=self.own), ()),
        (lambda self, n: torch.from_numpy(self.ours.normal(size=(n, 4))).float(), ()),
    ],
)
def test_every_generator_is_seen_and_left_as_it_was(draw, draws):
    module = Drawing(draw)
    before = module.states()
    (source,) = noise_sources(module, X)
    assert (source.draws, module.states()) == (draws, before)
    if draws:
        assert source.inspect(rng=1, draws=300) == source.inspect(rng=1, draws=300)
        assert module.states() == before
    else:
        assert "a generator or state of its own" in str(source)
        assert not source.inspect(rng=1, draws=300)["no_noise"].flagged
        assert module.states()[1] == before[1]


@dataclass
class Output:
    vector: torch.Tensor
    label: str


class Slots:
    __slots__ = ("vector",)

    def __init__(self, vector):
        self.vector = vector


def packing(pack, noise):
    return of(lambda self, x, *, scale=1.0: pack(x * scale + noise()))


def call_twice(self, x, scale):
    self.inner(x, scale=scale)
    return self.inner(x)


@pytest.mark.parametrize(
    "pack",
    [
        lambda z: (z, "text", None), lambda z: {"a": 1, "z": z}, lambda z: OrderedDict(z=[z]),
        lambda z: Output(z, "text"), Slots, lambda z: z.numpy(), lambda z: [f"{z.sum():.9f}"],
        lambda z: float(z.sum()), lambda z: nn.utils.rnn.pack_sequence(list(z)),
        lambda z: torch.distributions.Normal(z, 1.0), lambda z: z.to_sparse(),
        lambda z: z.to(torch.bfloat16), lambda z: z.to(torch.complex64),
        lambda z: (z * 2**20).long(), lambda z: z[:, 0] > 0.3,
    ],
)  # fmt: skip
def test_outputs_of_any_kind(pack):
    calls = ["inner, call 1 of 2", "inner, call 2 of 2"]
    for noise, found in ((lambda: torch.randn(6, 1), calls), (lambda: torch.ones(6, 1), [])):
        assert names(of(call_twice, inner=packing(pack, noise)), X, 2.0) == found


def test_nan_equals_nan():
    assert names(packing(lambda z: z / (z - z), lambda: torch.zeros(1)), X) == []
    assert names(packing(lambda z: z.numpy() * np.nan, lambda: torch.zeros(1)), X) == []


def test_inputs_of_any_kind():
    def run(self, texts, options, *, x, fill=None):
        lengths = torch.tensor([[float(len(text))] for text in texts])
        return {"z": x + lengths * options["k"] + torch.randn_like(x), "texts": texts}

    (source,) = noise_sources(of(run), ["a", "bcd"], {"k": 2}, x=X[:2], fill=print)
    assert source.args == (["a", "bcd"], {"k": 2})
    assert torch.equal(source.input, X[:2])
    assert source.kwargs["fill"] is print


def test_an_input_that_needs_a_gradient_or_cannot_be_copied():
    x = (X.clone().requires_grad_() * 2.0).requires_grad_()
    held = OrderedDict(x=x, lines=(line for line in ["a"]))
    assert names(packing(lambda z: z, lambda: torch.randn(1)), x) == ["(root)"]
    assert names(of(lambda self, held: held["x"] * 2), held) == []


def test_inference_mode_within_and_around():
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Dropout(0.5))
    whole = of(torch.inference_mode()(lambda self, x: self.inner(x)), inner=inner)
    assert names(whole, X) == ["inner.2"]
    with torch.inference_mode():
        assert (names(whole, X), names(whole.eval(), X)) == (["inner.2"], [])


# One call as a mechanism, on the first row of its real input.


def adding(draw, before=None, after=None):
    """Noise of a given law added to the input, and what surrounds it."""

    def run(self, x):
        x = x if before is None else self.before(x)
        x = x + draw(x)
        return x if after is None else self.after(x)

    return of(run, before=before, after=after)


def inspect_one(module, *inputs, draws=500, **options):
    """Inspect the only source of noise in a module."""
    (source,) = noise_sources(module, *inputs)
    return source.inspect(rng=1, draws=draws, **options)


def one_sided(x):
    return torch.empty_like(x).exponential_()


def shared(x):
    return torch.randn(*x.shape[:-1], 1, dtype=x.dtype)


def test_faults_of_a_layer_inside_a_model():
    model = nn.Sequential(
        nn.Linear(4, 3), adding(one_sided), nn.Tanh(), adding(shared), adding(torch.randn_like)
    )
    flags = [one.inspect(rng=1, draws=2000).flagged for one in noise_sources(model, X)]
    assert flags == [("one_sided", "off_centre"), ("rank", "correlation", "shared_size"), ()]


def test_the_vector_behind_the_noise_is_known_or_the_checks_that_need_it_are_left_out():
    linear = nn.Linear(4, 4)
    (source,) = noise_sources(adding(one_sided, before=linear), X)
    found = source.inspect(rng=1, draws=2000)
    assert all("is not known" in found[n].what for n in ("one_sided", "atom", "off_centre"))
    found = source.inspect(rng=1, draws=2000, clean=linear(X[0]).detach().numpy(), others=())
    assert found.flagged == ("one_sided", "off_centre")
    # Parameters alone do not hide it: a scale that is trained.
    layer = adding(lambda x: layer.scale * one_sided(x))
    layer.scale = nn.Parameter(torch.tensor(2.0))
    assert inspect_one(layer, X, draws=2000).flagged == ("one_sided", "off_centre")


def test_noise_that_only_a_child_gets_is_looked_at_there():
    behind = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5), adding(torch.randn_like))
    found = noise_sources(adding(shared, before=nn.Linear(4, 4), after=behind), X)
    assert [one.name for one in found] == ["(root)", "after.1", "after.2"]
    assert found[0].inspect(rng=1, draws=2000).flagged == ("rank", "correlation", "shared_size")


def test_noise_of_other_layers_does_not_mix_in():
    inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), adding(shared))
    found = noise_sources(adding(torch.randn_like, before=inner), X)
    assert [one.name for one in found] == ["(root)", "before.1", "before.2"]
    assert found[0].inspect(rng=1, draws=2000).passed


def test_rows_of_other_arguments():
    def run(self, x, mask, table):
        assert table.shape == (3, 4)
        return {"z": x * mask + torch.randn_like(x) * mask, "all": [mask, "text"]}

    mask = torch.tensor([[1.0, 1.0, 0.0, 1.0]] + [[0.0] * 4] * 5)
    (source,) = noise_sources(of(run), X, mask=mask, table=torch.zeros(3, 4))
    found = source.inspect(rng=1, draws=500)
    assert found.flagged == ("no_noise",)
    assert "1 of 4 coordinates" in found["no_noise"].what


def test_a_batch_along_another_axis():
    x = torch.randn(5, 6, 4, generator=torch.Generator().manual_seed(1))
    for first in (True, False):
        found = inspect_one(nn.LSTM(4, 3, num_layers=2, dropout=0.5, batch_first=first), x)
        # All outputs, and with batch_first=False those of each layer too.
        assert found.dim == (6 * 3 if first else 5 * 3 + 12)
    (source,) = noise_sources(of(lambda self, x: x + torch.randn(1, *x.shape[1:])), x)
    assert "shared_rows" in source.inspect(rng=1, draws=300).flagged
    assert source.inspect(rng=1, draws=300, axis=1).flagged[0] == "rank"
    with pytest.raises(ValueError, match="axis must be below 3, the dimensions of the input"):
        source.inspect(axis=3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_types_and_shapes(dtype):
    # Noise drawn in a short type does lie on a grid.
    for shape, dim in {(4,): 4, (6, 4): 4, (2, 30, 50): 1024, (1, 1): 1}.items():
        x = torch.zeros(shape, dtype=dtype)
        found = inspect_one(adding(torch.randn_like), x, skip=["grid"])
        assert (found.passed, found.dim) == (True, dim)
        assert "one_sided" in inspect_one(adding(one_sided), x + 1.0, skip=["grid"]).flagged


def test_tokens():
    def run(self, tokens):
        return self.table(tokens).mean(dim=1) + torch.randn(len(tokens), 3)

    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    (source,) = noise_sources(of(run, table=nn.Embedding(10, 3)), tokens)
    assert torch.equal(source.input, tokens)
    assert source.inspect(rng=1, draws=500).passed
    others = [torch.tensor([7, 8, 9])]
    assert source.inspect(rng=1, draws=500, others=others)["scale"].p_value is not None


def test_dropout_is_random_in_one_mode_only():
    (source,) = noise_sources(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), X)
    assert source.inspect(rng=1, draws=500).flagged == ("scale", "modes")
    assert source.module.training


def test_what_cannot_be_inspected():
    (source,) = noise_sources(of(lambda self, texts: torch.randn(len(texts), 3)), ["a", "b"])
    assert source.input is None
    assert str(source).endswith("on no tensor")
    with pytest.raises(TypeError, match="a tensor among its arguments"):
        source.inspect()
    with pytest.raises(ValueError, match="without a batch norm that mixes"):
        inspect_one(adding(torch.randn_like, before=nn.BatchNorm1d(4)), X)
    with pytest.raises(RuntimeError):
        inspect_one(adding(lambda x: torch.randn(6, 4), after=lambda x: x.sum()), X[:6])
    with pytest.raises(ValueError, match=r"outputs must be with .* rows along axis 0"):
        inspect_one(adding(torch.randn_like, after=lambda x: x.sum()), X)


# Real encoders: recurrent ones, torch's transformer, a model of sentence-transformers.

SEQUENCES = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_transformer_of_torch_and_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    mask = torch.tensor([[False] * 4 + [True]] * 3)
    parts = ["self_attn", "dropout1", "dropout", "dropout2"]
    found = noise_sources(encoder, SEQUENCES, src_key_padding_mask=mask)
    assert [one.name for one in found] == [f"layers.{k}.{part}" for k in (0, 1) for part in parts]
    encoder.layers[0].dropout2 = Noise()
    assert not noise_sources(encoder.eval(), SEQUENCES, src_key_padding_mask=mask)
    found = noise_sources(encoder, SEQUENCES)
    # True of the model: in eval mode and without gradients the noise is not added.
    assert not found
    with torch.no_grad():
        assert torch.equal(encoder(SEQUENCES), encoder(SEQUENCES))
    assert "layers.0.dropout2" in found.uncalled
    assert "never called: " in str(found)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert [one.name for one in noise_sources(encoder, SEQUENCES)] == ["layers.0.dropout2"]
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_a_sentence_transformer(tmp_path):
    model = tiny_sentences(tmp_path)
    batch = model.tokenize(["he has cancer", "she has the flu"])
    assert not noise_sources(model.eval(), batch)

    def add_noise(self, features):
        vectors = features["sentence_embedding"]
        del features["token_embeddings"], features["attention_mask"], features["input_ids"]
        features.pop("token_type_ids", None)
        return {**features, "sentence_embedding": vectors + torch.randn_like(vectors)}

    model.append(of(add_noise))
    found = noise_sources(model, batch)
    assert [one.path for one in found] == [str(len(model) - 1)]
    assert (found[0].inspect(rng=1, draws=500).passed, found[0].input.shape) == (True, (2, 96))
    kinds = [one.kind for one in noise_sources(model.train(), batch)]
    # A dropout behind the embeddings, and three in each of three layers.
    assert (kinds.count("dropout"), kinds.count("train mode"), kinds[-1]) == (7, 3, "noise")


def test_a_layer_that_learns_is_one_source_with_its_input():
    learnt = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True)
    sources = noise_sources(nn.Sequential(nn.Linear(4, 3), learnt), X)
    assert [source.path for source in sources] == ["1"]
    assert (sources.calls, sources.uncalled) == (3, ())
    inspection = sources[0].inspect(rng=1, draws=1000)
    assert not inspection.flagged
    # The input is known to be what the noise is added to.
    assert inspection["one_sided"].what == "noise on both sides of the clean vector"
