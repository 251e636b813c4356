"""The bridge to torch: noise layers, transforms, encoders of texts, and where noise enters a model.

Needs torch: `pip install dpcore[torch]`.
"""

from __future__ import annotations

from .faults import DPTextNoise, SharedNoise
from .layers import GaussianNoise, L2LaplaceNoise, LaplaceNoise, NoiseLayer
from .transforms import Clip, MinMax, Normalise

__all__ = [
    "Clip",
    "DPTextNoise",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "MinMax",
    "NoiseLayer",
    "Normalise",
    "SharedNoise",
]
