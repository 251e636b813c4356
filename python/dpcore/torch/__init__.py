"""The bridge to torch: noise layers, transforms, encoders of texts, and where noise enters a model.

For audits and experiments, not for releasing data: the last bits of floats give the input away
(Mironov 2012), and torch's generators are not cryptographic. Needs torch:
`pip install dpcore[torch]`.
"""

from __future__ import annotations

from .encoders import Pooled as Pooled
from .layers import (
    DPTextNoise,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    NoiseLayer,
    SharedNoise,
)
from .mechanisms import EncoderMechanism, mechanism
from .private_encoder import NOISES as NOISES
from .private_encoder import PrivateEncoder
from .sources import Source, Sources, noise_sources
from .transforms import Clip, MinMax, Normalise, Project

__all__ = [
    "Clip",
    "DPTextNoise",
    "EncoderMechanism",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "MinMax",
    "NoiseLayer",
    "Normalise",
    "PrivateEncoder",
    "Project",
    "SharedNoise",
    "Source",
    "Sources",
    "mechanism",
    "noise_sources",
]


def __dir__() -> list[str]:
    """Return its own names; imported names can be imported from here too, but are not shown."""
    return [*__all__]
