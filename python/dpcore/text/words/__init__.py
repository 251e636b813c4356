"""Mechanisms that replace words by random words, with sampling in Rust.

If the output probabilities of a mechanism are known, its privacy losses are computed exactly.
"""

from __future__ import annotations

from .embedding import Embedding
from .exponential import (
    TEM,
    CusText,
    SanText,
    SanTextPlus,
    WordCalibration,
    WordComparison,
    WordFigures,
    calibrate,
    compare,
)
from .losses import TextLoss, TextReport, WordReport
from .mechanism import Linkage, link
from .metric_noise import MetricLaplace, Vickrey

__all__ = [
    "TEM", "CusText", "Embedding", "Linkage", "MetricLaplace", "SanText", "SanTextPlus", "TextLoss",
    "TextReport", "Vickrey", "WordCalibration", "WordComparison", "WordFigures", "WordReport",
    "calibrate", "compare", "link",
]  # fmt: skip
