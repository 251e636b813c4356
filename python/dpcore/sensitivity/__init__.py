"""Sensitivities in closed form with pairs that attain them, and the search for a larger one."""

from ..pairs import Box
from .asserting import SensitivityError, assert_sensitivity, members_of, pairs_of
from .closed_forms import Sensitivity, sensitivity
from .declaring import Declaration, declaration, laplace_scale
from .domains import Ball, MinMaxRows, OneHot, Simplex, Sphere
from .histograms import Histogram
from .refuting import METHODS, Refutation, refute
from .transforms import Clip, MinMax, Normalise

__all__ = [
    "METHODS",
    "Ball",
    "Box",
    "Clip",
    "Declaration",
    "Histogram",
    "MinMax",
    "MinMaxRows",
    "Normalise",
    "OneHot",
    "Refutation",
    "Sensitivity",
    "SensitivityError",
    "Simplex",
    "Sphere",
    "assert_sensitivity",
    "declaration",
    "laplace_scale",
    "members_of",
    "pairs_of",
    "refute",
    "sensitivity",
]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
