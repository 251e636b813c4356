"""The layers of the experiment on noise layers: what is claimed, what is added, what repairs it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...records import Shown

__all__ = ["CASES", "DELTA", "PAIR", "WIDTH", "Case", "encode_in_dtype", "put_behind_encoder"]

WIDTH = 32
"""Entries of a vector."""
_HASH_PLACES = 64
"""Places that words are hashed to."""
DELTA = 1e-5
"""The delta of the Gaussian claim."""

PAIR = ("he has cancer and lives in this town", "she won the match in the last minute")
"""The two texts: any two are neighbours."""


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """A transform with noise behind it, and the claim.

    Args:
        name: what the table calls it.
        transform: given `dpcore.torch`, what bounds the vectors.
        noise: given `dpcore.torch` and the epsilon claimed, the noise layer, or the name by which
            `PrivateEncoder` makes one.
        faulty: the dtypes in which it has its fault; empty for a layer that is right.
        repair: for one with a fault, the name of the case without it.
        delta: of the claim.
        skip: checks of the structure that are not made: what they find is meant.
        what: the fault in one line.
    """

    name: str
    transform: Callable[[Any], Any]
    noise: Callable[[Any, float], Any]
    faulty: tuple[str, ...] = ()
    repair: str = ""
    delta: float = 0.0
    skip: tuple[str, ...] = ()
    what: str = ""


def encode_in_dtype(texts: list[str], dtype: Any, device: Any) -> Any:
    """Encode texts: hash words to 64 signed counts, then apply a fixed linear layer.

    This is a small encoder for the experiment.

    Args:
        texts: the texts.
        dtype: of the vectors.
        device: where they are.

    Returns:
        A tensor of shape `(texts, 32)`.
    """
    from ...torch.needed import torch

    weight = torch.randn(
        _HASH_PLACES, WIDTH, generator=torch.Generator().manual_seed(WIDTH), dtype=torch.float64
    )
    counts = torch.zeros(len(texts), _HASH_PLACES, dtype=torch.float64)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            place, sign = divmod(zlib.crc32(word.encode()), 2)
            counts[row, place % _HASH_PLACES] += 2 * sign - 1
    return (counts @ weight).to(device, dtype)


def put_behind_encoder(case: Case, epsilon: float, dtype: str, device: str) -> Any:
    """Put a layer behind the encoder.

    Args:
        case: which layer.
        epsilon: the claim.
        dtype: "float32" or "float64".
        device: such as "cpu".
    """
    from ... import torch as bridge
    from ...torch.needed import torch

    kind = getattr(torch, dtype)
    private = bridge.PrivateEncoder(
        lambda texts: encode_in_dtype(texts, kind, device),
        case.transform(bridge),
        epsilon=epsilon,
        delta=case.delta,
        noise=case.noise(bridge, epsilon),
        strict=not case.faulty,
    )
    return private.to(device)


def _make_torch_laplace(bridge: Any, scale: float) -> Any:
    """Make Laplace noise by torch's own distribution in the dtype of the input, as is usual."""
    from ...torch.needed import torch

    class TorchLaplace(bridge.LaplaceNoise):  # type: ignore[misc]
        """`torch.distributions.Laplace`, of the same declared scale."""

        def forward(self, x: Any, generator: Any = None) -> Any:
            zero = torch.zeros((), dtype=x.dtype, device=x.device)
            return x + torch.distributions.Laplace(zero, zero + self.scale).sample(x.shape)

    return TorchLaplace(scale)


BOTH = ("float32", "float64")

CASES: tuple[Case, ...] = (
    Case("LaplaceNoise", lambda t: t.Clip("l1", 1.0), lambda t, e: "laplace"),
    Case(
        "torch's Laplace",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: _make_torch_laplace(t, 2.0 / e),
        ("float32",),
        "LaplaceNoise",
        what="24 random bits in float32: few values in the tail",
    ),
    Case(
        "DPTextNoise, zero",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: t.DPTextNoise(2.0 / e),
        BOTH,
        "LaplaceNoise",
        what="never below the input, and often equal to it",
    ),
    Case(
        "DPTextNoise, resample",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: t.DPTextNoise(2.0 / e, "resample"),
        BOTH,
        "LaplaceNoise",
        what="never below the input",
    ),
    Case("L1 scale, L2 clip", lambda t: t.Clip("l2", 1.0), lambda t, e: "laplace"),
    Case(
        "L2 scale, L2 clip",
        lambda t: t.Clip("l2", 1.0),
        lambda t, e: t.LaplaceNoise(2.0 / e),
        BOTH,
        "L1 scale, L2 clip",
        what="ADePT: Laplace noise for a distance in L2 is too small by sqrt(32)",
    ),
    Case("MinMax, scale 32", lambda t: t.MinMax(), lambda t, e: "laplace"),
    Case(
        "MinMax, scale 1",
        lambda t: t.MinMax(),
        lambda t, e: t.LaplaceNoise(1.0 / e),
        BOTH,
        "MinMax, scale 32",
        what="DPNR: each of 32 entries moves by 1, not all of them together",
    ),
    Case(
        "SharedNoise",
        lambda t: t.MinMax(),
        lambda t, e: t.SharedNoise(1.0 / e),
        BOTH,
        "MinMax, scale 32",
        what="DPNR's code: one draw for a whole row",
    ),
    Case("GaussianNoise", lambda t: t.Clip("l2", 1.0), lambda t, e: "gaussian", delta=DELTA),
    Case(
        "L2LaplaceNoise",
        lambda t: t.Clip("l2", 1.0),
        lambda t, e: "l2_laplace",
        skip=("shared_size",),
    ),
)
"""Every layer, faults beside their repairs."""
