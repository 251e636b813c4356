"""What is recorded of a user's modules of torch, and of what other packages release."""

from __future__ import annotations

import inspect

import pytest
from shared_extras import needs

from dpcore.auditing.provenance import provenance_of

torch = needs("torch")


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn(x.shape)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = Noise()

    def forward(self, x):
        return self.noise(x)


NOISE, ENCODER = inspect.getsource(Noise), inspect.getsource(Encoder)


@pytest.mark.parametrize(("module", "origin", "text"), [
    (Encoder(), "class Encoder around class Noise", f"{ENCODER}\n{NOISE}"),
    (torch.nn.Sequential(torch.nn.Identity(), Noise(), Noise()), "class Noise", NOISE),
    (torch.nn.Identity(), f"torch.nn.modules.linear.Identity of torch {torch.__version__}", ""),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_a_module_shows_every_class_that_its_user_wrote(module, origin, text):
    found = provenance_of(module, True)
    assert (found.origin, found.source) == (origin, text)
    assert ("torch", torch.__version__) in found.versions


def lengths(texts):
    return [[float(len(text)), 1.0] for text in texts]


def test_an_encoder_and_its_noise_show_what_is_the_users():
    from dpcore.torch import LaplaceNoise, MinMax, PrivateEncoder, mechanism

    found = provenance_of(mechanism(lengths, Noise()), True)
    assert found.origin == "function lengths around class Noise"
    assert found.source == f"{inspect.getsource(lengths)}\n{NOISE}"
    found = provenance_of(PrivateEncoder(lengths, MinMax(), epsilon=1.0), True)
    assert found.origin == "function lengths"
    found = provenance_of(LaplaceNoise(1.0), True)
    assert found.origin.startswith("dpcore.torch.layers.LaplaceNoise of dpcore")
    assert ("torch", torch.__version__) in found.versions


def test_of_installed_modules_inside_only_the_versions_are_kept(monkeypatch):
    import dpcore.auditing.provenance as provenance

    monkeypatch.setattr(provenance, "_is_installed", lambda one: one is Noise)
    assert provenance_of(Encoder(), True).source == ENCODER
    # What is audited itself is shown wherever it is.
    assert provenance_of(Noise(), True).source == NOISE


def test_a_measurement_is_named_with_its_version():
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")
    space = prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float)
    found = provenance_of(prelude.m.make_laplace(*space, scale=1.0), True)
    assert found.origin == f"opendp.mod.Measurement of opendp {dict(found.versions)['opendp']}"
    assert found.source == ""
