"""Sources of noise: every generator, and inputs and outputs of every kind."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
from shared_extras import needs

torch = needs("torch")
from torch import nn  # noqa: E402

from dpcore.torch import noise_sources  # noqa: E402

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)
_GLOBAL = np.random


def names(module, *inputs, **kwargs):
    return [source.name for source in noise_sources(module, *inputs, **kwargs)]


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
    assert source.draws == draws
    assert module.states() == before
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


class Packing(nn.Module):
    def __init__(self, pack, noise):
        super().__init__()
        self.pack, self.noise = pack, noise

    def forward(self, x, *, scale=1.0):
        return self.pack(x * scale + self.noise())


class Twice(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, scale):
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
    random_one = Twice(Packing(pack, lambda: torch.randn(6, 1)))
    assert names(random_one, X, 2.0) == calls
    assert names(Twice(Packing(pack, lambda: torch.ones(6, 1))), X, 2.0) == []


def test_nan_equals_nan():
    assert names(Packing(lambda z: z / (z - z), lambda: torch.zeros(1)), X) == []
    assert names(Packing(lambda z: z.numpy() * np.nan, lambda: torch.zeros(1)), X) == []


def test_inputs_of_any_kind():
    class Takes(nn.Module):
        def forward(self, texts, options, *, x, fill=None):
            lengths = torch.tensor([[float(len(text))] for text in texts])
            return {"z": x + lengths * options["k"] + torch.randn_like(x), "texts": texts}

    (source,) = noise_sources(Takes(), ["a", "bcd"], {"k": 2}, x=X[:2], fill=print)
    assert source.args == (["a", "bcd"], {"k": 2})
    assert torch.equal(source.input, X[:2])
    assert source.kwargs["fill"] is print


def test_an_input_that_needs_a_gradient_or_cannot_be_copied():
    x = (X.clone().requires_grad_() * 2.0).requires_grad_()
    held = OrderedDict(x=x, lines=(line for line in ["a"]))
    assert names(Packing(lambda z: z, lambda: torch.randn(1)), x) == ["(root)"]

    class Takes(nn.Module):
        def forward(self, held):
            return held["x"] * 2

    assert names(Takes(), held) == []


def test_inference_mode_within_and_around():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Dropout(0.5))

        @torch.inference_mode()
        def forward(self, x):
            return self.inner(x)

    assert names(Whole(), X) == ["inner.2"]
    with torch.inference_mode():
        assert names(Whole(), X) == ["inner.2"]
        assert names(Whole().eval(), X) == []


def test_layers_of_dpcore():
    from dpcore.torch import DPTextNoiseLayer, LaplaceNoise, SharedNoise

    model = nn.Sequential(
        nn.Linear(4, 3), LaplaceNoise(1.0), SharedNoise(0.5), DPTextNoiseLayer(1.0)
    )
    found = noise_sources(model.eval(), X)
    assert [one.name for one in found] == ["1", "2", "3"]
    flags = [one.inspect(rng=1, draws=2000).flagged for one in found]
    assert flags[:2] == [(), ("rank", "correlation", "shared_size")]
    assert flags[2] == ("one_sided", "atom", "off_centre")
