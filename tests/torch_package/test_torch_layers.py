"""Noise layers: their law beside the native twin's, extreme draws, gradients, an exact scale."""

import copy
import io
import math
import os
import pickle
import shutil
from functools import partial
from inspect import getdoc, isclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from shared_extras import CUDA, needs

import dpcore
from dpcore.calibration import gaussian_epsilon, real_epsilon
from dpcore.sensitivity import Ball
from dpcore.structure import FAULTS, inspect

torch = needs("torch")
from dpcore import torch as package  # noqa: E402
from dpcore.torch import (  # noqa: E402  # noqa: E402
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    NoiseLayer,
    SharedNoise,
    layers,
)

ALPHA = 1e-6
"""Significance of every test of a law; seeds are fixed."""

DRAWS = 10**6
B = 0.25

DEVICES = ["cpu", CUDA]
DTYPES = [torch.float64, torch.float32]
ALL_DTYPES = [*DTYPES, torch.bfloat16, torch.float16]

SCALED = [LaplaceNoise, L2LaplaceNoise, DPTextNoiseLayer, SharedNoise]
LAYERS = [*SCALED, GaussianNoise]
ORIGIN = [0.0, 0.0, 0.0, 0.0]


def learnt(kind=LaplaceNoise, epsilon=0.1, **options):
    return kind(sensitivity=1.0, epsilon=epsilon, trainable=True, **options)


def draws(layer, dtype, device="cpu", rows=DRAWS // 4):
    """Outputs at zero, as float64 in numpy, shape (rows, 4)."""
    generator = torch.Generator(device).manual_seed(1)
    x = torch.zeros(rows, 4, dtype=dtype, device=device)
    return layer(x, generator=generator).double().cpu().numpy()


LAWS = {
    "laplace": (LaplaceNoise, stats.laplace(scale=B).cdf),
    "gaussian": (GaussianNoise, stats.norm(scale=B).cdf),
    "resample": (lambda b: DPTextNoiseLayer(b, "resample"), stats.expon(scale=B).cdf),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAWS)
def test_the_law_of_a_layer_is_that_of_its_description(name, dtype, device):
    kind, cdf = LAWS[name]
    outputs = draws(kind(B), dtype, device)
    assert stats.kstest(outputs.ravel(), cdf).pvalue > ALPHA
    twin = dpcore.sample(kind(B).description, ORIGIN, DRAWS // 4, rng=2)
    assert stats.ks_2samp(outputs.ravel(), twin.ravel()).pvalue > ALPHA
    # The test has power: a scale 2 % off fails it.
    assert stats.kstest(draws(kind(1.02 * B), dtype, device).ravel(), cdf).pvalue < ALPHA


@pytest.mark.sweep
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_l2_noise_has_gamma_lengths_and_uniform_directions(dtype, device):
    def lengths(scale):
        return np.linalg.norm(draws(L2LaplaceNoise(scale), dtype, device, DRAWS), axis=1)

    law = stats.gamma(4, scale=B).cdf
    assert stats.kstest(lengths(B), law).pvalue > ALPHA
    assert stats.kstest(lengths(1.02 * B), law).pvalue < ALPHA
    outputs = draws(L2LaplaceNoise(B), dtype, device, DRAWS)
    # A coordinate of a uniform direction in four dimensions, squared, is Beta(1/2, 3/2).
    shares = (outputs / np.linalg.norm(outputs, axis=1, keepdims=True)) ** 2
    for column in shares.T:
        assert stats.kstest(column, stats.beta(0.5, 1.5).cdf).pvalue > ALPHA
    twin = L2LaplaceNoise(B).description(ORIGIN, DRAWS, 2)
    for column, other in zip(outputs.T, twin.T, strict=True):
        assert stats.ks_2samp(column, other).pvalue > ALPHA
    one = L2LaplaceNoise(B)(torch.zeros(DRAWS, 1, dtype=dtype, device=device))
    assert stats.kstest(one.cpu().numpy().ravel(), stats.laplace(scale=B).cdf).pvalue > ALPHA


@pytest.mark.parametrize("dtype", DTYPES)
def test_half_of_the_published_draws_are_replaced_by_zero(dtype):
    outputs = draws(DPTextNoiseLayer(B), dtype).ravel()
    assert stats.binomtest(int((outputs == 0.0).sum()), outputs.size, 0.5).pvalue > ALPHA
    assert outputs.min() == 0.0
    assert stats.kstest(outputs[outputs > 0.0], stats.expon(scale=B).cdf).pvalue > ALPHA
    assert stats.kstest(outputs[outputs > 0.0], stats.expon(scale=B * 1.02).cdf).pvalue < ALPHA


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_shared_draw_a_row(dtype):
    outputs = draws(SharedNoise(B), dtype, rows=DRAWS)
    assert (outputs == outputs[:, :1]).all()
    assert stats.kstest(outputs[:, 0], stats.laplace(scale=B).cdf).pvalue > ALPHA


def test_the_grid_is_symmetric_without_0_and_infinity():
    w = (torch.tensor([-(2**52), -1, 0, 2**52 - 1], dtype=torch.float64) + 0.5) / 2**52
    noise = layers.uniform_to_laplace(w)
    assert noise[3] == -noise[0] == pytest.approx(53 * math.log(2), rel=1e-15)
    assert noise[2] == -noise[1] == 2.0**-53
    drawn = layers.signed_uniform((DRAWS,), "cpu", torch.Generator().manual_seed(1)) * 2.0**53
    assert bool((drawn % 2 == 1).all())
    # The two lowest bits of the integers are random too, and the sign is.
    odd = (drawn - 1) / 2
    for share in (odd % 2 == 0, odd % 4 < 2, odd < 0):
        assert stats.binomtest(int(share.sum()), DRAWS, 0.5).pvalue > ALPHA


@pytest.mark.parametrize("extreme", [-(2**52), -1, 0, 2**52 - 1])
def test_extreme_integers_in_every_layer(extreme, monkeypatch):
    def draw_extreme(shape, device, generator):
        return torch.full(shape, (extreme + 0.5) / 2**52, dtype=torch.float64)

    monkeypatch.setattr(layers, "signed_uniform", draw_extreme)
    for kind in LAYERS:
        found = kind(1.0)(torch.zeros(2, 3, dtype=torch.float64))
        assert torch.isfinite(found).all()
        if kind is LaplaceNoise and abs(extreme + 0.5) > 2**51:
            assert float(found[0, 0]) == pytest.approx(math.copysign(36.7368005696771, extreme))
        if kind is GaussianNoise:
            assert bool((found != 0.0).all())
            assert float(found.abs().max()) <= math.sqrt(106 * math.log(2)) + 1e-12


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_reach_x(kind):
    x = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).view(2, 3).requires_grad_()

    def output(x):
        return kind(0.5)(x, generator=torch.Generator().manual_seed(1))

    assert torch.autograd.gradcheck(output, (x,))


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("cap", [None, 0.05, 2.0])
def test_gradients_reach_a_learnt_epsilon(kind, cap):
    layer = learnt(kind, epsilon=0.05 if cap == 0.05 else 0.5, cap=cap)
    epsilon = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    x = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).view(2, 3).requires_grad_()

    def output(x, epsilon):
        generator = torch.Generator().manual_seed(1)
        return torch.func.functional_call(layer, {"scaling.epsilon": epsilon}, (x, generator))

    if cap != 0.05:
        assert torch.autograd.gradcheck(output, (x, epsilon))
    (slope,) = torch.autograd.grad(output(x, epsilon).sum(), epsilon)
    (opposite,) = torch.autograd.grad(-output(x, epsilon).sum(), epsilon)
    # Above the cap the gradient leads back, and no further away.
    assert (slope * opposite == 0.0) == (cap == 0.05)
    assert max(slope, opposite) > 0.0
    fixed = kind(1.0 / min(0.5, cap or math.inf))(x, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(fixed, output(x, epsilon), rtol=1e-12)


@pytest.mark.parametrize("nan", ["zero", "resample"])
def test_the_gradient_of_the_published_formula_is_finite(nan):
    layer = learnt(DPTextNoiseLayer, nan=nan)
    layer(torch.zeros(1000, dtype=torch.float32)).sum().backward()
    assert torch.isfinite(layer.epsilon.grad)
    assert layer.epsilon.grad < 0.0


def casts(layer):
    """The layer after everything that must leave its scale alone."""
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    loaded = learnt(epsilon=7.0, cap=9.0) if layer.epsilon is not None else type(layer)(3.0)
    loaded.load_state_dict(torch.load(buffer, weights_only=True))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), copy.deepcopy(layer))
    yield from (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)))
    for cast in ("half", "float", "double", "bfloat16", "cpu"):
        yield getattr(copy.deepcopy(model), cast)()[1]
    yield copy.deepcopy(model).to(torch.float16)[1]
    yield copy.deepcopy(layer).type(torch.float16)


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1e300])
@pytest.mark.parametrize("kind", LAYERS)
def test_the_scale_is_exact_after_casts_copies_and_files(kind, scale):
    for layer in casts(kind(scale)):
        assert layer.scale == scale
        assert type(layer.description) is type(kind(scale).description)
    assert not list(kind(scale).parameters())
    assert not list(kind(scale).buffers())


def test_a_learnt_epsilon_is_never_cast():
    layer = learnt(epsilon=0.1, cap=0.7)
    layer.epsilon.grad = torch.tensor(0.3, dtype=torch.float64)
    for one in casts(layer):
        assert one.epsilon.dtype == torch.float64
        assert (one.epsilon.item(), one.sensitivity, one.cap) == (0.1, 1.0, 0.7)
        assert isinstance(one.epsilon, torch.nn.Parameter)
    assert [*layer.state_dict()] == ["_extra_state", "epsilon"]
    # An optimiser made before a cast still holds the parameter.
    before = layer.epsilon
    assert layer.half().epsilon is before
    assert layer.epsilon.grad.dtype == torch.float64
    assert layer.share_memory().epsilon.is_shared()


def test_the_scale_is_exact_in_a_file_of_tensors_alone(tmp_path):
    files = needs("safetensors.torch", "safetensors")
    for layer in (LaplaceNoise(0.1), learnt(cap=0.7)):
        files.save_file(layer.state_dict(), tmp_path / "layer")
        loaded = learnt(epsilon=7.0, cap=9.0) if layer.epsilon is not None else LaplaceNoise(3.0)
        loaded.load_state_dict(files.load_file(tmp_path / "layer"))
        assert repr(loaded) == repr(layer)


@pytest.mark.gpu
def test_a_learnt_epsilon_follows_the_module():
    layer = learnt().to("cuda", torch.float16)
    assert layer.epsilon.device.type == "cuda"
    assert (layer(torch.zeros(3, device="cuda")).device.type, layer.epsilon.item()) == ("cuda", 0.1)


def test_a_device_without_float64_is_served_by_the_cpu(monkeypatch):
    monkeypatch.setattr(layers, "_has_float64", lambda kind: kind != "meta")
    assert layers.float64_device(torch.device("meta")) == torch.device("cpu")
    layer = learnt(epsilon=0.1)
    assert (layer.to("meta").epsilon.device.type, layer.epsilon.item()) == ("cpu", 0.1)
    # The path of a call: another name of the CPU stands for it.
    monkeypatch.setattr(layers, "float64_device", lambda device: torch.device("cpu", 0))
    x = torch.ones(3, dtype=torch.float16)
    found = layer(x)
    assert (found.dtype, found.device) == (x.dtype, x.device)
    assert repr(layer).endswith("; drawn on the CPU: cpu has no float64)")
    with pytest.raises(ValueError, match="generator must be on cpu:0, where noise is drawn"):
        layer(x, generator=SimpleNamespace(device=torch.device("cuda")))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("kind", LAYERS)
def test_shapes_and_dtypes_stay(kind, dtype):
    for shape in [(0, 3), (3, 0), (2, 1), (5,), (2, 3, 7)]:
        found = kind(1.0)(torch.zeros(shape, dtype=dtype))
        assert (found.shape, found.dtype) == (shape, dtype)
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("kind", LAYERS)
def test_a_call_repeats_with_its_generator_in_either_mode_and_leaves_x(kind):
    layer, x = kind(1.0), torch.ones(3, 5, dtype=torch.float64)
    found = [layer.train(mode)(x, torch.Generator().manual_seed(1)) for mode in (True, False)]
    assert torch.equal(*found)
    assert bool((x == 1.0).all())
    torch.manual_seed(3)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))


def test_rows_of_a_view_keep_their_places():
    x = torch.arange(12.0).view(3, 4).t()
    assert torch.allclose(LaplaceNoise(1e-9)(x), x, atol=1e-6)


def test_the_exact_loss_of_two_vectors():
    x, y = [0.0, 0.0], [3.0, 4.0]
    one, other, shared = L2LaplaceNoise(0.5), GaussianNoise(2.0), SharedNoise(0.5)
    assert (LaplaceNoise(0.5).loss(x, y), one.loss(np.float32(x), np.float32(y))) == (14.0, 10.0)
    assert (other.loss(x, y), DPTextNoiseLayer(1.0).loss(x, y, 1e-5)) == (math.inf, math.inf)
    assert other.loss(x, y, 1e-5) == gaussian_epsilon(2.0, 1e-5, 5.0)
    ends = y, [3.0, 3.0], [3.0, -3.0]
    assert [shared.loss(x, end) for end in ends] == [math.inf, 6.0, math.inf]
    assert learnt(epsilon=0.5).loss([0.0], [1.0]) == 0.5
    assert [kind(1.0).loss(y, y) for kind in LAYERS] == [0.0] * len(LAYERS)


def test_descriptions_are_what_calibration_reads():
    ball = Ball("l1", 1.0, 4)
    three = LaplaceNoise(0.25), L2LaplaceNoise(0.25), DPTextNoiseLayer(1.0)
    assert [real_epsilon(one.description, ball).value for one in three] == [8.0, 8.0, math.inf]
    assert real_epsilon(GaussianNoise(1.0).description, ball).mu == 2.0
    assert SharedNoise(1.0).description is None
    above = learnt(epsilon=0.5, cap=0.5)
    above.epsilon.data.fill_(1.0)
    assert above.description == dpcore.Laplace(2.0)
    assert [kind(1.0).faulty != "" for kind in LAYERS] == [False, False, True, True, False]


def test_what_is_printed():
    assert repr(DPTextNoiseLayer(0.1, "resample")) == "DPTextNoiseLayer(scale=0.1, nan='resample')"
    assert repr(GaussianNoise(2)) == "GaussianNoise(sigma=2.0)"
    assert repr(L2LaplaceNoise(sensitivity=1, epsilon=4)) == "L2LaplaceNoise(scale=0.25)"
    said = "sensitivity=1.0, epsilon=0.1; learnt without a cap: no epsilon holds in advance"
    assert repr(learnt()) == f"LaplaceNoise({said})"
    capped = learnt(DPTextNoiseLayer, cap=8.0)
    said = "sensitivity=1.0, epsilon=0.1, cap=8.0, nan='zero'; learnt, at most 8:"
    assert repr(capped).startswith(f"DPTextNoiseLayer({said}")
    assert capped.caution
    assert not LaplaceNoise(1.0).caution


# Programs that trace, move or repeat modules: fresh noise in each call, and exact gradients.


MAKERS = {kind.__name__: partial(kind, 0.5) for kind in LAYERS}
MAKERS["DPTextNoiseLayer, resample"] = partial(DPTextNoiseLayer, 0.5, "resample")
MAKERS |= {f"{kind.__name__}, learnt": partial(learnt, kind, cap=2.0) for kind in SCALED}
every_layer = pytest.mark.parametrize("name", MAKERS)


def chain(name, rows=6, width=40):
    """A layer behind a linear one that gives zeros, and inputs."""
    model = torch.nn.Sequential(torch.nn.Linear(4, width, bias=False), MAKERS[name]())
    torch.nn.init.zeros_(model[0].weight)
    return model, torch.ones(rows, 4)


def check_compiled(name, backend, rows=6):
    torch._dynamo.reset()
    model, x = chain(name, rows)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second)
    first.square().sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())
    return first.detach()[:, 0], model(x).detach()[:, 0]


@every_layer
def test_a_traced_layer_draws_in_each_call(name):
    check_compiled(name, "aot_eager")


@pytest.mark.sweep
@every_layer
def test_compiled_code_draws_the_same_law(name):
    if not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
        pytest.skip("there is no C++ compiler")
    compiled, eager = check_compiled(name, "inductor", 20_000)
    assert stats.ks_2samp(compiled, eager).pvalue > ALPHA
    assert stats.ks_2samp(compiled, 1.3 * eager).pvalue < ALPHA


def test_an_epsilon_that_left_its_range_gives_nan_where_it_cannot_be_read():
    torch._dynamo.reset()
    layer = learnt(cap=2.0)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert compiled(torch.zeros(3)).isfinite().all()
    for value in (-0.5, 0.0, math.inf, math.nan):
        layer.epsilon.data.fill_(value)
        assert compiled(torch.zeros(3)).isnan().all()


@every_layer
def test_vmap_draws_for_each_row_or_once(name):
    layer, x = MAKERS[name](), torch.zeros(6, 40)
    for randomness, size in (("different", 6), ("same", 1)):
        call = torch.func.vmap(layer, randomness=randomness)
        first, second = call(x), call(x)
        assert len(first.unique(dim=0)) == size
        assert not torch.equal(first, second)


def test_vmap_takes_an_epsilon_for_each_row():
    epsilon, x = torch.tensor([0.1, 1e6, -1.0], dtype=torch.float64), torch.zeros(3, 40)

    def call(epsilon, x):
        return torch.func.functional_call(learnt(), {"scaling.epsilon": epsilon}, (x,))

    found = torch.func.vmap(call, randomness="different")(epsilon, x).detach()
    assert found[0].abs().max() > 1.0 > 1e-3 > found[1].abs().max()
    assert found[2].isnan().all()


@every_layer
def test_a_layer_without_numbers(name):
    model, x = chain(name)
    layer = model.to("meta")[1]
    assert (model(x.to("meta")).shape, model(x.to("meta")).is_meta) == ((6, 40), True)
    if layer.epsilon is not None:
        assert (layer.epsilon.is_meta, layer.epsilon.dtype) == (True, torch.float64)
        assert (layer.sensitivity, layer.cap) == (1.0, 2.0)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@every_layer
@pytest.mark.parametrize("force_functorch", [False, True])
def test_gradients_of_single_records_are_those_of_the_noise_that_was_added(name, force_functorch):
    opacus = needs("opacus")
    model, x = chain(name)
    options = {"loss_reduction": "sum", "force_functorch": force_functorch}
    wrapped = opacus.GradSampleModule(model, **options)
    assert not torch.equal(wrapped(x), wrapped(x))
    wrapped = opacus.GradSampleModule(chain(name)[0], **options)
    wrapped(x).square().sum().backward()
    for weight in wrapped.parameters():
        assert weight.grad_sample.shape == (6, *weight.shape)
        assert torch.allclose(weight.grad_sample.sum(dim=0), weight.grad, rtol=1e-5)


@every_layer
def test_bfloat16_is_the_sum_in_float64_rounded_once(name):
    layer, x = MAKERS[name]().to(torch.bfloat16), torch.linspace(-1.0, 1.0, 40).to(torch.bfloat16)

    def call(x):
        return layer(x.view(4, 10), torch.Generator().manual_seed(1)).detach()

    assert torch.equal(call(x), call(x.double()).float().to(torch.bfloat16))
    assert not torch.equal(layer(x), layer(x))


@every_layer
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_repeats_the_noise(name, use_reentrant):
    checkpoint = torch.utils.checkpoint.checkpoint
    (model, x), gradients = chain(name), []
    x.requires_grad_()
    for wrap in (lambda: model(x), lambda: checkpoint(model, x, use_reentrant=use_reentrant)):
        torch.manual_seed(1)
        outputs = wrap()
        assert not torch.equal(outputs, wrap())
        model.zero_grad()
        outputs.square().sum().backward()
        gradients.append([weight.grad.clone() for weight in model.parameters()])
    assert all(map(torch.equal, *gradients))


def test_an_epsilon_above_its_cap_comes_back():
    layer = learnt(epsilon=1.9, cap=2.0)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.02, momentum=0.9)
    x, generator, levels = torch.zeros(1000), torch.Generator().manual_seed(1), []
    for sign in [1.0] * 20 + [-1.0] * 20:
        optimiser.zero_grad()
        (sign * layer(x, generator).square().mean()).backward()
        optimiser.step()
        levels.append(layer.epsilon.item())
        assert layer.scale >= 0.5
    assert max(levels) > 2.1
    assert levels[-1] < 2.0


# What layers refuse.


def test_what_draws_says_first_that_it_is_not_for_releases():
    exported = [getattr(package, name) for name in package.__all__]
    layers = [one for one in exported if isclass(one) and issubclass(one, NoiseLayer)]
    assert {NoiseLayer, *LAYERS} == set(layers)
    for thing in (package, *layers):
        first = getdoc(thing).split("\n\n")[1]
        assert "for audits and experiments, not for releasing data" in first


def test_nan_stays_visible():
    x = torch.tensor([math.nan, math.inf, 0.0])
    assert LaplaceNoise(1.0)(torch.tensor(0.0)).shape == ()
    found = LaplaceNoise(1.0)(x)
    assert found.isnan().tolist() == [True, False, False]
    assert found.isinf().tolist() == [False, True, False]


def test_a_learnt_epsilon_that_left_its_range():
    layer = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True)
    for value in (-0.5, 0.0, math.nan):
        layer.epsilon.data.fill_(value)
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
            layer(torch.zeros(2))
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
            _ = layer.scale
    layer.epsilon.data = torch.tensor(0.1, dtype=torch.float16)
    with pytest.raises(ValueError, match="epsilon must be of float64"):
        layer(torch.zeros(2))


def test_the_scale_cannot_be_set_by_the_way():
    with pytest.raises(AttributeError):
        LaplaceNoise(1.0).scale = 2.0
    with pytest.raises(KeyError):
        LaplaceNoise(1.0).scale = torch.nn.Parameter(torch.tensor(1.0))


# What `inspect` and `audit` find in the layers: nothing in the right ones, the faults in others.
#
# Measured in full: `DPCORE_AUDITS=20` audits of 16-bit outputs, five seeds of every inspection.


AUDITS = int(os.environ.get("DPCORE_AUDITS", "3"))
X = np.linspace(0.0, 1.0, 20)
LEARNT = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True, cap=2.0)

RIGHT = [LaplaceNoise(1.0), GaussianNoise(1.0), L2LaplaceNoise(1.0), LEARNT]
WRONG = {"shared_draw": SharedNoise(1.0), "dptext": DPTextNoiseLayer(1.0)}
WRONG["dptext_drawn_again"] = DPTextNoiseLayer(1.0, nan="resample")


class Cast(torch.nn.Module):
    """A layer behind an encoder of another dtype."""

    def __init__(self, layer, dtype):
        super().__init__()
        self.layer, self.dtype = layer, dtype

    def forward(self, x):
        return self.layer(x.to(self.dtype))


class TorchLaplace(torch.nn.Module):
    def forward(self, x):
        return x + torch.distributions.Laplace(torch.zeros((), dtype=x.dtype), 1.0).sample(x.shape)


def pair(dim=1):
    return np.zeros(dim, np.float32), np.ones(dim, np.float32)


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("layer", RIGHT, ids=lambda value: type(value).__name__)
def test_right_layers_pass(layer, seed):
    # The size of L2 noise is shared by its coordinates.
    flagged = ("shared_size",) * isinstance(layer, L2LaplaceNoise)
    assert inspect(layer, X, rng=seed, draws=2000).flagged == flagged


@pytest.mark.parametrize("name", WRONG)
def test_faults_are_flagged_as_the_list_of_faults_says(name):
    fault = next(fault for fault in FAULTS if fault.name == name)
    assert inspect(WRONG[name], fault.x, rng=1).flagged == fault.flagged_by
    assert WRONG[name].faulty


@pytest.mark.parametrize("layer", RIGHT, ids=lambda value: type(value).__name__)
def test_rounding_to_float32_leaves_nothing_to_find(layer):
    # Cast: numpy's inputs take the dtype of a module's parameters, which a learnt epsilon has.
    report = dpcore.audit(Cast(layer, torch.float32), pair(), claim=1.0, trials=10**6, rng=1)
    assert report.floating_point is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_shows_where_the_sum_keeps_the_noise(dtype):
    # Measured: 11.2 for each of them.
    layer = Cast(TorchLaplace() if dtype == torch.float32 else LaplaceNoise(1.0), dtype)
    report = dpcore.audit(layer, pair(), claim=1.0, trials=10**6, rng=1)
    assert report.floating_point.epsilon_lower > 5.0
    assert not report.refuted


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [1, 4])
def test_audits_of_16_bits_at_their_epsilon(dtype, dim):
    layer = Cast(LaplaceNoise(1.0), dtype)
    audit = partial(dpcore.audit, layer, pair(dim), trials=10**5)
    refuted = [audit(claim=float(dim), rng=100 + seed).refuted for seed in range(AUDITS)]
    # Each is refuted by chance with 5 % at most.
    assert sum(refuted) <= stats.binom.isf(ALPHA, AUDITS, 0.05)
    assert audit(claim=0.4 * dim, rng=1).refuted
