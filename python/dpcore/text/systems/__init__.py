"""Private text models from three papers, in the published and in repaired versions.

All models need torch.
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
