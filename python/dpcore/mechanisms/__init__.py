"""Mechanisms: kinds of noise, and the base classes of the published systems of dpcore.

All noise is for audits and experiments, not for releasing data. The last bits of a float with added
noise reveal the input (Mironov 2012), and the random numbers are not cryptographic.
"""

from ..streams import Rng
from .declarations import Mechanism
from .native import LARGEST as LARGEST
from .native import ClipStep, Native, Primitive, list_declared, positive
from .native import Formula as Formula

# isort: off
# Importing a noise declares it, so this order is also the order of `PRIMITIVES`.
from .laplace import Laplace
from .gaussian import Gaussian
from .exponential import Exponential
from .uniform import Uniform
from .baselines import Identity, RandomBits
from .dptext import DPTextNoise
from .cauchy import Cauchy
from .staircase import Staircase
# isort: on

__all__ = [
    "Cauchy",
    "ClipStep",
    "DPTextNoise",
    "Exponential",
    "Gaussian",
    "Identity",
    "Laplace",
    "Mechanism",
    "Native",
    "RandomBits",
    "Rng",
    "Staircase",
    "Uniform",
    "positive",
]

PRIMITIVES: tuple[type[Primitive], ...] = list_declared()
"""The classes of noise that the compiled core of dpcore draws."""
