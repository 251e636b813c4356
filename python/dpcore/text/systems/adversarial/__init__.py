"""Baselines against attribute leakage: an extractor trained against a reader of its vectors."""

from __future__ import annotations

from .base import Defended
from .classification import AdversarialClassification
from .declustering import Declustering
from .generation import AdversarialGeneration
from .minmax import MinMaxAdversary

__all__ = [
    "AdversarialClassification",
    "AdversarialGeneration",
    "Declustering",
    "Defended",
    "MinMaxAdversary",
]
