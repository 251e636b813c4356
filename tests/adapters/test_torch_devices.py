"""What an audit records of a torch mechanism's device, and modules that return something else."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from shared_extras import CUDA, needs

import dpcore
from dpcore import Audit
from dpcore.adapters.torch import TorchModule, TorchNoise
from dpcore.attacks import MajorityVote, Threshold
from dpcore.mechanisms.callables import device_text, make_generator
from dpcore.streams import COUNT, block_trials, seeded_torch

torch = needs("torch")

DEVICES = ["cpu", CUDA]
VERSION = torch.__version__.partition("+")[0]


class Returns(torch.nn.Module):
    """What `made` makes of noisy inputs."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x):
        return self.made(x + torch.distributions.Laplace(0.0, 1.0).sample(x.shape).to(x.device))


def audited(mechanism, attack=None, **options):
    options = {"trials": 2000, "rng": 1, "claim": 1.0, **options}
    return dpcore.audit(mechanism, ([0.0], [1.0]), attack=attack or MajorityVote(), **options)


@pytest.mark.parametrize("device", DEVICES)
def test_the_device_is_recorded_and_shown(device):
    found = audited(torch.nn.Sequential(torch.nn.Linear(1, 1), Returns(lambda y: y)).to(device))
    assert found.runs_on == f"{device}, torch {VERSION}"
    assert f"  device       {found.runs_on}\n" in str(found)
    assert Audit.from_json(found.to_json()).runs_on == found.runs_on
    assert audited(torch.distributions.Laplace(0.0, 1.0)).runs_on == f"cpu, torch {VERSION}"


def test_nothing_is_recorded_of_other_mechanisms():
    found = audited(dpcore.Laplace(1.0))
    assert (found.runs_on, device_text(lambda x, size, rng: x)) == ("", "")
    assert "  device " not in str(found)


def test_audits_of_two_devices_do_not_add_up():
    module = Returns(lambda y: y)
    first, second = (audited(module, block=500, start=start) for start in (0, 2000))
    assert (first + second).counts.n == 4000
    with pytest.raises(ValueError, match=r"^runs_on of the second audit must be 'cpu, torch"):
        first + replace(second, runs_on="cuda, torch 2.15.0")


@pytest.mark.parametrize(("device", "block"), [("cpu", 2**17), ("cuda", 2**22), ("xpu", 2**17)])
def test_blocks_are_longer_on_cuda(device, block, monkeypatch):
    assert (block_trials(1, device), block_trials(768, device)) == (block, block // 768)
    monkeypatch.setattr(TorchModule, "device_type", device)
    found = audited(Returns(lambda y: y), trials=100)
    assert (found.block, found.runs_on) == (block, f"{device}, torch {VERSION}")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda y: {"hidden": y, "pooled": y}, "dict with 'hidden', 'pooled'"),
        (lambda y: (y, y), "tuple of Tensor, Tensor"),
        (lambda y: None, "NoneType: None"),
    ],
)
def test_outputs_that_are_no_tensor_are_refused(made, said):
    text = rf"^outputs of TorchModule\(Returns\(\)\) must be one .*{re.escape(said)}"
    with pytest.raises(TypeError, match=text):
        audited(Returns(made))


@pytest.mark.parametrize("made", [lambda y: y[:1], lambda y: y.sum()])
def test_outputs_that_are_too_few_are_refused(made):
    with pytest.raises(ValueError, match=r"^outputs of TorchModule\(Ret.* be an array"):
        audited(Returns(made))


@pytest.mark.parametrize(
    "made",
    [
        lambda y: torch.complex(y, torch.zeros_like(y)),
        lambda y: torch.complex(torch.zeros_like(y), -y).conj(),
        lambda y: torch.complex(torch.zeros_like(y), -y).conj().imag, lambda y: y.round().long(),
        lambda y: y.round().to(torch.int8), lambda y: y > 0.5, lambda y: y.half(),
        lambda y: y.to(torch.uint8).to(torch.uint16), lambda y: torch.nn.Parameter(y),
        lambda y: y.unsqueeze(2).expand(-1, 2, 3), lambda y: y.to_sparse().to_dense(),
    ],
)  # fmt: skip
def test_numbers_of_every_kind_are_audited(made):
    assert audited(Returns(made), Threshold(), trials=20_000, claim=0.2).verdict == "refuted"


def test_the_short_calls_see_one_noise_for_all_rows():
    class Shared(torch.nn.Module):
        def forward(self, x):
            return x + torch.randn(x.shape[1:])

    with pytest.raises(ValueError, match="must be drawn anew for every row of a call"):
        audited(Shared(), trials=200)


def test_tensors_are_the_arrays():
    for mechanism in (
        TorchModule(Returns(lambda y: y.bfloat16())), TorchNoise(torch.distributions.Normal(0, 1))
    ):  # fmt: skip
        tensor = mechanism.tensor(np.zeros(3), 50, np.random.default_rng(1))
        array = mechanism(np.zeros(3), 50, np.random.default_rng(1))
        assert np.array_equal(tensor.float().numpy(), array)
        assert mechanism.device_type == "cpu"


def test_no_two_of_100_000_blocks_are_equal():
    """With seeds of 32 bits, as torch keeps them, blocks 8,929 and 17,191 were."""
    seen = set()
    for block in range(100_000):
        with seeded_torch(make_generator(13, COUNT, 0, block)):
            seen.add(torch.randint(2**62, (1,)).item())
    assert len(seen) == 100_000
