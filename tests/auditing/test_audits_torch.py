"""What is recorded of a user's modules of torch, and of what other packages release."""

from __future__ import annotations

import gc
import inspect
import random
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats
from shared_audits import rng
from shared_extras import needs
from shared_randomness import audited

import dpcore
from dpcore.auditing.provenance import provenance_of
from dpcore.streams import Generators, seeded_globals, seeded_torch

torch = needs("torch")


class UserNoise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn(x.shape)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = UserNoise()

    def forward(self, x):
        return self.noise(x)


TEXT, ENCODER = inspect.getsource(UserNoise), inspect.getsource(Encoder)


@pytest.mark.parametrize(("module", "origin", "text"), [
    (Encoder(), "class Encoder around class UserNoise", f"{ENCODER}\n{TEXT}"),
    (torch.nn.Sequential(torch.nn.Identity(), UserNoise(), UserNoise()), "class UserNoise", TEXT),
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

    found = provenance_of(mechanism(lengths, UserNoise()), True)
    assert found.origin == "function lengths around class UserNoise"
    assert found.source == f"{inspect.getsource(lengths)}\n{TEXT}"
    found = provenance_of(PrivateEncoder(lengths, MinMax(), epsilon=1.0), True)
    assert found.origin == "function lengths"
    found = provenance_of(LaplaceNoise(1.0), True)
    assert found.origin.startswith("dpcore.torch.layers.LaplaceNoise of dpcore")
    assert ("torch", torch.__version__) in found.versions


def test_of_installed_modules_inside_only_the_versions_are_kept(monkeypatch):
    import dpcore.auditing.provenance as provenance

    monkeypatch.setattr(provenance, "_is_installed", lambda one: one is UserNoise)
    assert provenance_of(Encoder(), True).source == ENCODER
    # What is audited itself is shown wherever it is.
    assert provenance_of(UserNoise(), True).source == TEXT


def test_a_measurement_is_named_with_its_version():
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")
    space = prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float)
    found = provenance_of(prelude.m.make_laplace(*space, scale=1.0), True)
    assert found.origin == f"opendp.mod.Measurement of opendp {dict(found.versions)['opendp']}"
    assert found.source == ""


# Whose randomness torch has: whole states, its global generator, and generators of modules.


MODULE = torch.Generator().manual_seed(3)


def globally(x, size, rng):
    return torch.from_numpy(np.array(x)) + torch.randn(size, 1)


def by_the_module(x, size, rng):
    return torch.from_numpy(np.array(x)) + torch.randn(size, 1, generator=MODULE)


class Noise(torch.nn.Module):
    """A layer of noise, of torch's generator or of its own."""

    def __init__(self, own=False):
        super().__init__()
        self.own = torch.Generator().manual_seed(0) if own else None

    def forward(self, x):
        return x + torch.randn(x.shape, generator=self.own)


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as found:
        yield found


class Plain:
    """An object whose attributes are in no dictionary that the collector knows."""

    def __init__(self, own):
        self.own = own


class Slotted(Plain):
    __slots__ = ("own",)


HOLDERS = {
    "attribute": (Plain, lambda held: held.own),
    "slot": (Slotted, lambda held: held.own),
    "list": (lambda own: Plain([own]), lambda held: held.own[0]),
    # Containers that the collector stops to track.
    "nested": (lambda own: Plain({"a": ({"b": own},)}), lambda held: held.own["a"][0]["b"]),
    # The default of an argument, which is in a tuple of the function.
    "default": (lambda own: Plain(lambda own=own: own), lambda held: held.own()),
    "partial": (
        lambda own: Plain(partial(torch.rand, (), generator=own)),
        lambda held: held.own.keywords["generator"],
    ),
}
"""How a generator may be held, and how it is found there: no name of a test may hold it too."""


@pytest.mark.parametrize("kind", HOLDERS)
def test_generators_are_found_wherever_they_are_held(kind):
    hold, find = HOLDERS[kind]
    holder = hold(torch.Generator().manual_seed(3))
    gc.collect()
    first = find(holder).get_state()
    with Generators.collect_from_memory() as every:
        _, moved = every.moved_by(lambda: torch.rand((), generator=find(holder)))
        assert moved
    assert torch.equal(find(holder).get_state(), first)


# States.


@pytest.mark.sweep
def test_no_two_of_200_000_streams_are_equal():
    """Of seeds of 32 bits about five pairs would be."""
    source, seen = rng(), set()
    for _ in range(200_000):
        with seeded_torch(source):
            seen.add(torch.randint(2**62, (1,)).item())
    assert len(seen) == 200_000
    assert len(np.unique(rng().integers(2**32, size=200_000))) < 200_000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_state_gives_the_laws_of_torch(dtype):
    """Over many states and along one: 10^-6 each; and a scale 2 % off is seen."""
    first, source = [], rng(7)
    for _ in range(5000):
        with seeded_torch(source):
            first.append((torch.rand((), dtype=dtype).item(), torch.randn((), dtype=dtype).item()))
    uniform, normal = np.array(first).T
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    assert stats.kstest(normal, "norm").pvalue > 1e-6
    with seeded_torch(source):
        # More than the 624 words of a state.
        along = torch.randn(1_000_001, dtype=dtype).numpy()
    assert stats.kstest(along, "norm").pvalue > 1e-6
    assert stats.kstest(1.02 * along, "norm").pvalue < 1e-6


def test_the_generator_is_put_back():
    torch.manual_seed(5)
    torch.randn(3)
    state = torch.random.get_rng_state()
    with seeded_torch(rng()):
        torch.randn(3)
    assert torch.equal(state, torch.random.get_rng_state())
    with Generators.collect_defaults():
        torch.randn(3)
    assert torch.equal(state, torch.random.get_rng_state())


def test_repeat_seeds_the_global_generators_of_all_three():
    def drawn(x):
        return random.random(), np.random.random(), torch.rand(()).item()  # noqa: NPY002

    mechanism = dpcore.repeat(drawn, seeded="global")
    first = mechanism(0, 3, rng())
    assert np.array_equal(first, mechanism(0, 3, rng()))
    assert not np.isin(first, mechanism(0, 3, rng(2))).any()
    with seeded_globals(rng()):
        assert tuple(first[0]) == drawn(0)


# Whose it is.


@pytest.mark.parametrize(("mechanism", "expected"), [
    (torch.distributions.Laplace(0.0, 2.0), "seed"),
    (Noise(), "seed"),
    (Noise(own=True), "own"),
    (globally, "own"),
    (by_the_module, "own"),
    (dpcore.repeat(lambda x: torch.randn(()).item(), seeded="global"), "seed"),
])  # fmt: skip
def test_whose_randomness_torch_has(mechanism, expected):
    assert audited(mechanism, trials=4000).randomness == expected


@pytest.mark.parametrize("mechanism", [Noise(own=True), by_the_module])
def test_generators_of_torch_are_refused_in_processes(pool, mechanism):
    with pytest.raises(ValueError, match=r"^executor must be None for .*generator of its own"):
        audited(mechanism, executor=pool, trials=4000)


def test_the_global_generator_of_torch_is_seeded_in_processes(pool):
    options = {"executor": pool, "block": 500, "trials": 8000, "claim": 3.0}
    first, again = (audited(globally, **options) for _ in range(2))
    assert first.counts == again.counts
    assert first.refuted is False
    alone = audited(Noise(), **{**options, "executor": None})
    assert audited(Noise(), **options).counts == alone.counts


@pytest.mark.sweep
def test_outputs_that_want_gradients_are_read():
    def scored(x, size, rng):
        weight = torch.ones(1, requires_grad=True, dtype=torch.float64)
        return weight * torch.as_tensor(x + rng.laplace(size=(size, 1)))

    found = dpcore.audit(scored, ([0.0], [1.0]), claim=1.5, trials=1000, rng=1)
    assert (found.refuted, found.epsilon_lower > 0.3) == (False, True)
