"""Redacted texts: policies that mask words, and what masking hides."""

from __future__ import annotations

from .masking import (
    MASK,
    PolicyMechanism,
    link,
    mask_words,
    mechanism,
    policy_levels,
    record_delta,
    redact,
    split_words,
)
from .measures import ExposedDocument
from .policies import Gazetteer, Keywords, Learned, Random, Ranked, Spans
from .sweeps import LEVELS, Sweep, SweepPoint, sweep

__all__ = [
    "LEVELS", "MASK", "ExposedDocument", "Gazetteer", "Keywords", "Learned", "PolicyMechanism",
    "Random", "Ranked", "Spans", "Sweep", "SweepPoint", "link", "mask_words", "mechanism",
    "policy_levels", "record_delta", "redact", "split_words", "sweep",
]  # fmt: skip
