"""Mechanisms that replace words, drawn in Rust, with exact losses where they are tables."""

from __future__ import annotations

from .choosing import WordCalibration, WordComparison, WordFigures, calibrate, compare
from .embedding import Embedding
from .exponential import TEM, CusText, SanText, SanTextPlus
from .linking import Linkage, link
from .noisy import MetricLaplace, Vickrey
from .texts import TextLoss, TextReport, WordReport

__all__ = [
    "TEM",
    "CusText",
    "Embedding",
    "Linkage",
    "MetricLaplace",
    "SanText",
    "SanTextPlus",
    "TextLoss",
    "TextReport",
    "Vickrey",
    "WordCalibration",
    "WordComparison",
    "WordFigures",
    "WordReport",
    "calibrate",
    "compare",
    "link",
]
