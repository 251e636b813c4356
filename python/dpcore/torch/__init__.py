"""Tools for torch: noise layers, transforms, text encoders, and the sources of noise in a model.

Use these tools for audits and experiments, not for releasing data. The last bits of noisy floats
reveal the input (Mironov 2012), and torch's random generators are not cryptographic. This package
needs torch: `pip install dpcore[torch]`.
"""

from __future__ import annotations

from .encoders import Pooled as Pooled
from .layers import (
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    NoiseLayer,
    SharedNoise,
)
from .mechanisms import EncoderMechanism, mechanism
from .private_encoder import NOISES as NOISES
from .private_encoder import PrivateEncoder
from .sources import NoiseSource, NoiseSources, noise_sources
from .transforms import Clip, MinMax, Normalise, Project

__all__ = [
    "Clip",
    "DPTextNoiseLayer",
    "EncoderMechanism",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "MinMax",
    "NoiseLayer",
    "NoiseSource",
    "NoiseSources",
    "Normalise",
    "PrivateEncoder",
    "Project",
    "SharedNoise",
    "mechanism",
    "noise_sources",
]


def __dir__() -> list[str]:
    """List the public names of this package, without the names that it imports."""
    return [*__all__]
