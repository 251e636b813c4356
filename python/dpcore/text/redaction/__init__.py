"""Redaction of texts: policies that mask words, and attacks on the masked texts."""

from __future__ import annotations

from .masking import MASK, link_redacted, mask_words, policy_mechanism, record_delta, redact
from .masking import PolicyMechanism as PolicyMechanism
from .masking import policy_mask_levels as policy_mask_levels
from .masking import split_words as split_words
from .measures import ExposedDocument
from .policies import Gazetteer, Keywords, Learned, Random, Ranked, Spans
from .spans import SpanScore, SpanScores, score_spans
from .sweeps import LEVELS, Sweep, SweepPoint, sweep

__all__ = [
    "LEVELS", "MASK", "ExposedDocument", "Gazetteer", "Keywords", "Learned", "Random", "Ranked",
    "SpanScore", "SpanScores", "Spans", "Sweep", "SweepPoint", "link_redacted", "mask_words",
    "policy_mechanism", "record_delta", "redact", "score_spans", "sweep",
]  # fmt: skip
