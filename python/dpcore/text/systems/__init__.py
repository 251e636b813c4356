"""Trained private encoders of texts from papers, as published and repaired, and baselines.

All of them need torch.
"""

from __future__ import annotations

from .autoencoder import ADePTModel
from .dpnr import DPNR, TextClassifier
from .dptext import DPTextModel
from .system import TextSystem
from .training import Bag, Prepared, Trained, Units, WordDropout

__all__ = [
    "DPNR", "ADePTModel", "Bag", "DPTextModel", "Prepared", "TextClassifier", "TextSystem",
    "Trained", "Units", "WordDropout",
]  # fmt: skip
