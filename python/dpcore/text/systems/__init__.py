"""Trained encoders of texts, as published and repaired, and baselines. They need torch."""

from __future__ import annotations

from .autoencoder import ADePT
from .dpnr import DPNR, TextClassifier
from .dptext import DPText
from .system import TextSystem
from .training import Bag, Prepared, Trained, Units, WordDropout

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
