"""Trained encoders of texts, as published and repaired, and baselines. They need torch."""

from __future__ import annotations

from .autoencoder import ADePT
from .bag import Bag, Units
from .classifier import TextClassifier
from .dpnr import DPNR
from .dptext import DPText
from .masking import WordDropout
from .prepared import Prepared
from .system import TextSystem
from .training import Trained

__all__ = [
    "DPNR",
    "ADePT",
    "Bag",
    "DPText",
    "Prepared",
    "TextClassifier",
    "TextSystem",
    "Trained",
    "Units",
    "WordDropout",
]
