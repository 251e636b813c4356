"""Bounds: from four integers to a certified lower limit on epsilon."""

from .binomial import clopper_pearson, limits

__all__ = ["clopper_pearson", "limits"]
