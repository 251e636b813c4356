"""Redacted texts: policies that mask words, and what masking hides."""

from __future__ import annotations

from .learned import Learned
from .linking import link
from .masking import MASK, mask_words, policy_levels, redact, split_words
from .measuring import ExposedDocument
from .policies import Gazetteer, Keywords, Random, Ranked, Spans
from .records import PolicyMechanism, mechanism, record_delta
from .sweeping import LEVELS, Sweep, SweepPoint, sweep

__all__ = [
    "LEVELS", "MASK", "ExposedDocument", "Gazetteer", "Keywords", "Learned", "PolicyMechanism",
    "Random", "Ranked", "Spans", "Sweep", "SweepPoint", "link", "mask_words", "mechanism",
    "policy_levels", "record_delta", "redact", "split_words", "sweep",
]  # fmt: skip
