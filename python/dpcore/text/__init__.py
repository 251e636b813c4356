"""Texts: corpora, vocabularies, encoders, and what an attacker infers from encoded texts.

Imported without torch and without scikit-learn; names that need them say what to install.
"""

from __future__ import annotations

from . import inference, leakage
from .corpus import Corpus
from .generating import generated
from .reading import read, word_vectors
from .rewriting import Rewriter
from .splitting import split
from .tfidf import TfidfSVD
from .vocabulary import Vocabulary, words_of

__all__ = [
    "Corpus",
    "Rewriter",
    "TfidfSVD",
    "Vocabulary",
    "generated",
    "inference",
    "leakage",
    "read",
    "split",
    "word_vectors",
    "words_of",
]
