"""What runs: native noise, published systems' common part, and users' callables."""

from ..streams import Rng
from .noise import (
    LARGEST,
    PRIMITIVES,
    Clip,
    DPTextNoise,
    Exponential,
    Gaussian,
    Identity,
    Laplace,
    Native,
    Primitive,
    RandomBits,
    Steps,
    Uniform,
    positive,
)

__all__ = [
    "LARGEST",
    "PRIMITIVES",
    "Clip",
    "DPTextNoise",
    "Exponential",
    "Gaussian",
    "Identity",
    "Laplace",
    "Native",
    "Primitive",
    "RandomBits",
    "Rng",
    "Steps",
    "Uniform",
    "positive",
]
