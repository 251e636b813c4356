"""Inspecting a source: one call as a mechanism, on the first row of its real input."""

from __future__ import annotations

import pytest
from shared_extras import needs

torch = needs("torch")
from torch import nn  # noqa: E402

from dpcore.torch import noise_sources  # noqa: E402

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)


class Adding(nn.Module):
    """Noise of a given law added to the input, and what surrounds it."""

    def __init__(self, draw, before=None, after=None):
        super().__init__()
        self.draw, self.before, self.after = draw, before, after

    def forward(self, x):
        x = x if self.before is None else self.before(x)
        x = x + self.draw(x)
        return x if self.after is None else self.after(x)


def one_sided(x):
    return torch.empty_like(x).exponential_()


def shared(x):
    return torch.randn(*x.shape[:-1], 1, dtype=x.dtype)


def test_faults_of_a_layer_inside_a_model():
    model = nn.Sequential(
        nn.Linear(4, 3), Adding(one_sided), nn.Tanh(), Adding(shared), Adding(torch.randn_like)
    )
    found = noise_sources(model, X)
    flags = [one.inspect(rng=1, draws=2000).flagged for one in found]
    assert flags == [("one_sided", "off_centre"), ("rank", "correlation", "shared_size"), ()]


def test_the_vector_behind_the_noise_is_known_or_the_checks_that_need_it_are_left_out():
    linear = nn.Linear(4, 4)
    (source,) = noise_sources(Adding(one_sided, before=linear), X)
    found = source.inspect(rng=1, draws=2000)
    assert all("is not known" in found[n].what for n in ("one_sided", "atom", "off_centre"))
    clean = linear(X[0]).detach().numpy()
    found = source.inspect(rng=1, draws=2000, clean=clean, others=())
    assert found.flagged == ("one_sided", "off_centre")
    # Parameters alone do not hide it: a scale that is trained.
    layer = Adding(lambda x: layer.scale * one_sided(x))
    layer.scale = nn.Parameter(torch.tensor(2.0))
    (source,) = noise_sources(layer, X)
    assert source.inspect(rng=1, draws=2000).flagged == ("one_sided", "off_centre")


def test_noise_that_only_a_child_gets_is_looked_at_there():
    behind = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5), Adding(torch.randn_like))
    model = Adding(shared, before=nn.Linear(4, 4), after=behind)
    found = noise_sources(model, X)
    assert [one.name for one in found] == ["(root)", "after.1", "after.2"]
    assert found[0].inspect(rng=1, draws=2000).flagged == ("rank", "correlation", "shared_size")


def test_noise_of_other_layers_does_not_mix_in():
    inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), Adding(shared))
    model = Adding(torch.randn_like, before=inner)
    found = noise_sources(model, X)
    assert [one.name for one in found] == ["(root)", "before.1", "before.2"]
    assert found[0].inspect(rng=1, draws=2000).passed


def test_rows_of_other_arguments():
    class Takes(nn.Module):
        def forward(self, x, mask, table):
            assert table.shape == (3, 4)
            return {"z": x * mask + torch.randn_like(x) * mask, "all": [mask, "text"]}

    mask = torch.tensor([[1.0, 1.0, 0.0, 1.0]] + [[0.0] * 4] * 5)
    (source,) = noise_sources(Takes(), X, mask=mask, table=torch.zeros(3, 4))
    found = source.inspect(rng=1, draws=500)
    assert found.flagged == ("no_noise",)
    assert "1 of 4 coordinates" in found["no_noise"].what


def test_a_batch_along_another_axis():
    x = torch.randn(5, 6, 4, generator=torch.Generator().manual_seed(1))
    for first in (True, False):
        lstm = nn.LSTM(4, 3, num_layers=2, dropout=0.5, batch_first=first)
        (source,) = noise_sources(lstm, x)
        steps = 6 if first else 5
        # All outputs, and with batch_first=False those of each layer too.
        assert source.inspect(rng=1, draws=300).dim == steps * 3 + (0 if first else 12)

    class Late(nn.Module):
        def forward(self, x):
            return x + torch.randn(1, *x.shape[1:])

    (source,) = noise_sources(Late(), x)
    assert "shared_rows" in source.inspect(rng=1, draws=300).flagged
    assert source.inspect(rng=1, draws=300, axis=1).flagged[0] == "rank"
    with pytest.raises(ValueError, match="axis must be below 3, the dimensions of the input"):
        source.inspect(axis=3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_types_and_shapes(dtype):
    # Noise drawn in a short type does lie on a grid.
    options = {"rng": 1, "draws": 500, "skip": ["grid"]}
    for shape, dim in {(4,): 4, (6, 4): 4, (2, 30, 50): 1024, (1, 1): 1}.items():
        (source,) = noise_sources(Adding(torch.randn_like), torch.zeros(shape, dtype=dtype))
        found = source.inspect(**options)
        assert (found.passed, found.dim) == (True, dim)
        (source,) = noise_sources(Adding(one_sided), torch.ones(shape, dtype=dtype))
        assert "one_sided" in source.inspect(**options).flagged


def test_tokens():
    class Embedding(nn.Embedding):
        def forward(self, tokens):
            return super().forward(tokens).mean(dim=1) + torch.randn(len(tokens), 3)

    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    (source,) = noise_sources(Embedding(10, 3), tokens)
    assert torch.equal(source.input, tokens)
    assert source.inspect(rng=1, draws=500).passed
    others = [torch.tensor([7, 8, 9])]
    assert source.inspect(rng=1, draws=500, others=others)["scale"].p_value is not None


def test_dropout_is_random_in_one_mode_only():
    (source,) = noise_sources(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), X)
    assert source.inspect(rng=1, draws=500).flagged == ("scale", "modes")
    assert source.module.training


def test_what_cannot_be_inspected():
    class Texts(nn.Module):
        def forward(self, texts):
            return torch.randn(len(texts), 3)

    (source,) = noise_sources(Texts(), ["a", "b"])
    assert source.input is None
    assert str(source).endswith("on no tensor")
    with pytest.raises(TypeError, match="a tensor among its arguments"):
        source.inspect()
    (source,) = noise_sources(Adding(torch.randn_like, before=nn.BatchNorm1d(4)), X)
    with pytest.raises(ValueError, match="without a batch norm that mixes"):
        source.inspect()
    (source,) = noise_sources(Adding(lambda x: torch.randn(6, 4), after=lambda x: x.sum()), X[:6])
    with pytest.raises(RuntimeError):
        source.inspect()
    (source,) = noise_sources(Adding(torch.randn_like, after=lambda x: x.sum()), X)
    with pytest.raises(ValueError, match=r"outputs must be with .* rows along axis 0"):
        source.inspect()
