"""Redacted texts: policies that mask words, and what masking hides."""

from __future__ import annotations

from .masking import (
    MASK,
    link,
    mask_words,
    mechanism,
    record_delta,
    redact,
)
from .masking import PolicyMechanism as PolicyMechanism
from .masking import policy_levels as policy_levels
from .masking import split_words as split_words
from .measures import ExposedDocument
from .policies import Gazetteer, Keywords, Learned, Random, Ranked, Spans
from .sweeps import LEVELS, Sweep, SweepPoint, sweep

__all__ = [
    "LEVELS", "MASK", "ExposedDocument", "Gazetteer", "Keywords", "Learned", "Random", "Ranked",
    "Spans", "Sweep", "SweepPoint", "link", "mask_words", "mechanism", "record_delta", "redact",
    "sweep",
]  # fmt: skip
