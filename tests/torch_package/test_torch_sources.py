"""Sources of noise: which calls of a module are random, and that nothing else is called so."""

from __future__ import annotations

import pytest
from shared_extras import needs

torch = needs("torch")
from torch import nn  # noqa: E402

from dpcore.torch import noise_sources  # noqa: E402

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device"))]  # fmt: skip


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def of(function):
    """A module made of a function of (module, x)."""

    class Module(nn.Module):
        def forward(self, x):
            return function(self, x)

    return Module()


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
    assert {one.kind for one in found} == {"noise"}
    assert found.calls == 7
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
    frozen = of(lambda self, x: x + self.shift)
    frozen.shift = torch.randn(4)
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).train()
    assert names(frozen, X) == names(spectral, X) == []
    fixed = of(lambda self, x: x + torch.rand(4, generator=torch.Generator().manual_seed(1)))
    assert names(fixed, X) == []


def test_what_a_module_makes_in_its_forward():
    assert names(of(lambda self, x: nn.Softmax(dim=1)(x)), X) == []
    found = noise_sources(of(lambda self, x: nn.Dropout(0.5)(x)).eval(), X)
    assert [(one.path, one.name, one.kind) for one in found] == [(None, "(Dropout)", "dropout")]


class Parent(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.where, self.inner, self.outer = where, nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        for place, part in enumerate([self.inner, self.outer]):
            x = part(x + torch.randn(len(x), 4) if self.where == place else x)
        return x + torch.randn(len(x), 4) if self.where == 2 else x


@pytest.mark.parametrize("where", [0, 1, 2])
def test_noise_of_a_parent_before_between_and_after_its_children(where):
    found = noise_sources(nn.Sequential(nn.Identity(), Parent(where)), X)
    assert [one.name for one in found] == ["1"]
    assert found[0].inspect(rng=1, draws=500).passed
    assert names(Parent(where), X) == ["(root)"]
    assert names(Parent(None), X) == []


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
    class InPlace(nn.Module):
        def forward(self, x):
            x += torch.randn(len(x), 4)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.noise, self.after = nn.Linear(4, 4), InPlace(), nn.ReLU(inplace=True)

        def forward(self, x):
            x = self.inner(x)
            self.noise(x)
            return self.after(x)

    whole = Whole()
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
    class Layers(nn.Module):
        def __init__(self, chance):
            super().__init__()
            self.layers, self.chance = nn.ModuleList([nn.Linear(4, 4), Noise()]), chance

        def forward(self, x):
            for layer in self.layers:
                x = layer(x) if torch.rand(()) < self.chance else x
            return x

    assert names(Layers(0.5), X)[0] == "(root)"
    assert names(Layers(2.0), X) == ["layers.1"]


def test_a_parent_that_needs_more_of_a_child_than_its_outputs():
    class Child(nn.Module):
        def forward(self, x):
            self.last = [x.sum()]
            return x + torch.randn(4)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child()

        def forward(self, x):
            return self.child(x) + self.child.last.pop()

    assert names(Whole(), X) == ["child"]


def test_a_child_that_raises_and_a_parent_that_goes_on():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.bad, self.noise = of(lambda self, x: x[99]), Noise()

        def forward(self, x):
            try:
                return self.bad(x)
            except IndexError:
                return self.noise(x)

    assert names(Whole(), X) == ["noise"]


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
        hidden = of(lambda self, x: self.parts[0](x))
        hidden.parts = [one]
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
    assert found[0:1] == (found[0],)
    assert len(list(found)) == 2
    model = of(lambda self, x: self.parts["a"](x))
    model.parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    assert str(noise_sources(model, X)).endswith("\n  never called: parts.b")
