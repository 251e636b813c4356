"""Trained encoders of texts, as published and repaired, and baselines. They need torch."""

from __future__ import annotations

from .adversarial import (
    AdversarialClassification,
    AdversarialGeneration,
    Declustering,
    MinMaxAdversary,
)
from .autoencoder import ADePT
from .bag import Bag, Units
from .classifier import TextClassifier, Trained
from .dpnr import DPNR
from .masking import WordDropout

__all__ = [
    "DPNR",
    "ADePT",
    "AdversarialClassification",
    "AdversarialGeneration",
    "Bag",
    "Declustering",
    "MinMaxAdversary",
    "TextClassifier",
    "Trained",
    "Units",
    "WordDropout",
]
