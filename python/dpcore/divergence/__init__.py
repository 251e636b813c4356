"""Estimates of the Renyi and KL divergences between two samples, with reliability checks."""

from . import closed_forms
from .conversions import Converted, Line, canonne_kamath_steinke, line
from .estimation import METHODS, kl, renyi
from .record import Beside, Diagnostics, Epsilon, Estimate

__all__ = [
    "METHODS", "Beside", "Converted", "Diagnostics", "Epsilon", "Estimate", "Line",
    "canonne_kamath_steinke", "closed_forms", "kl", "line", "renyi",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the names that this module provides, without the modules that it imports."""
    return [*__all__]
