"""Mechanisms that replace words, drawn in Rust, with exact losses where they are tables."""

from __future__ import annotations

from .choosing import WordCalibration, WordComparison, WordFigures, calibrate, compare
from .custext import CusText
from .exponential import TEM, SanText, SanTextPlus
from .linking import Linkage, link
from .noisy import MetricLaplace, Vickrey
from .text_losses import TextLoss
from .text_reports import TextReport, WordReport

__all__ = [
    "TEM",
    "CusText",
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
