"""Renyi and KL divergence between two samples, with what is known of their reliability."""

from . import closed_forms
from .estimation import METHODS, kl, renyi
from .record import (
    Beside,
    Converted,
    Diagnostics,
    Epsilon,
    Estimate,
    Line,
    canonne_kamath_steinke,
    line,
)

__all__ = [
    "METHODS", "Beside", "Converted", "Diagnostics", "Epsilon", "Estimate", "Line",
    "canonne_kamath_steinke", "closed_forms", "kl", "line", "renyi",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the names that the module defines; imported names are left out but can be imported."""
    return [*__all__]
