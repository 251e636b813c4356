"""Readers: tables, lines and folders of texts."""

from __future__ import annotations

from ...hints import make_getattr
from .reader import KINDS, read

__all__ = ["KINDS", "read"]

__getattr__ = make_getattr(
    __name__,
    {
        "word_vectors": "dpcore.text.word_vectors",
        **{name: f"dpcore.experiments.corpora.{name}" for name in ("ENTITIES", "KNOWN")},
    },
)
