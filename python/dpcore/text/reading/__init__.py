"""Readers: tables, lines and folders of texts, and vectors of words."""

from __future__ import annotations

from ...hints import make_getattr
from .reader import KINDS, read
from .vectors import word_vectors

__all__ = ["KINDS", "read", "word_vectors"]

__getattr__ = make_getattr(
    __name__, {name: f"dpcore.experiments.corpora.{name}" for name in ("ENTITIES", "KNOWN")}
)
