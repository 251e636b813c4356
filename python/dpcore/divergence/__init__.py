"""Renyi and KL divergence between two samples, with what is known of their reliability."""

from . import closed_forms
from .conversion import Converted, Line, canonne_kamath_steinke, line
from .epsilon import Epsilon
from .estimating import METHODS, kl, renyi
from .record import Beside, Diagnostics, Estimate

__all__ = [
    "METHODS",
    "Beside",
    "Converted",
    "Diagnostics",
    "Epsilon",
    "Estimate",
    "Line",
    "canonne_kamath_steinke",
    "closed_forms",
    "kl",
    "line",
    "renyi",
]


def __dir__() -> list[str]:
    """Its own names: what it imports can be imported from here too, but is not shown."""
    return [*__all__]
