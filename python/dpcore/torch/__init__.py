"""The bridge to torch: noise layers, transforms, encoders of texts, and where noise enters a model.

For audits and experiments, not for releasing data: the last bits of floats give the input away
(Mironov 2012), and torch's generators are not cryptographic. Needs torch:
`pip install dpcore[torch]`.
"""

from __future__ import annotations

from .encoding import Pooled
from .faults import DPTextNoise, SharedNoise
from .layers import GaussianNoise, L2LaplaceNoise, LaplaceNoise, NoiseLayer
from .mechanisms import EncoderMechanism, mechanism
from .private import NOISES, PrivateEncoder
from .sources import Source, Sources, noise_sources
from .transforms import Clip, MinMax, Normalise, Project

__all__ = [
    "NOISES",
    "Clip",
    "DPTextNoise",
    "EncoderMechanism",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "MinMax",
    "NoiseLayer",
    "Normalise",
    "Pooled",
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
