"""Redacted texts: policies that mask words, and what masking hides."""

from __future__ import annotations

from .masking import MASK, redact, split_words
from .policies import Gazetteer, Keywords, Random, Ranked, Spans

__all__ = [
    "MASK",
    "Gazetteer",
    "Keywords",
    "Random",
    "Ranked",
    "Spans",
    "redact",
    "split_words",
]
