"""Trained encoders of texts, as published and repaired. They need torch."""

from __future__ import annotations

from .bag import Bag, Units
from .classifier import TextClassifier, Trained
from .dpnr import DPNR
from .masking import WordDropout

__all__ = ["DPNR", "Bag", "TextClassifier", "Trained", "Units", "WordDropout"]
