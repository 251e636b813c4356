"""Sensitivities in closed form, and a search for pairs that exceed a claimed sensitivity."""

from ..pairs import Box
from .closed_forms import Declaration, Sensitivity, declaration, laplace_scale, sensitivity
from .domains import (
    Ball,
    Clip,
    HistogramCounts,
    MinMax,
    MinMaxRows,
    Normalise,
    OneHot,
    Simplex,
    Sphere,
)
from .refutation import SEARCH_METHODS, Refutation, SensitivityError, assert_sensitivity, refute
from .refutation import member_strategy as member_strategy
from .refutation import pair_strategy as pair_strategy

# Scripts may still use the earlier names of the two strategies.
members_of, pairs_of = member_strategy, pair_strategy

__all__ = [
    "SEARCH_METHODS", "Ball", "Box", "Clip", "Declaration", "HistogramCounts", "MinMax",
    "MinMaxRows", "Normalise", "OneHot", "Refutation", "Sensitivity", "SensitivityError", "Simplex",
    "Sphere", "assert_sensitivity", "declaration", "laplace_scale", "refute", "sensitivity",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the public names of the package. Imported names are not listed."""
    return [*__all__]
