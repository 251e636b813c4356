"""Texts: corpora, vocabularies, encoders, and what an attacker infers from encoded texts.

Imported without torch and without scikit-learn; names that need them say what to install.
"""

from __future__ import annotations

from . import inference
from .corpus import Corpus

__all__ = ["Corpus", "inference"]
