"""Renyi and KL divergence between two samples, with what is known of their reliability."""

from . import closed_forms
from ._record import Beside, Diagnostics, Epsilon, Estimate
from .conversion import Converted, Line, canonne_kamath_steinke, line
from .estimating import METHODS, kl, renyi

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
