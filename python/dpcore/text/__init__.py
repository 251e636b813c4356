"""Texts: corpora, vocabularies, encoders, and what an attacker infers from encoded texts.

Imported without torch and without scikit-learn; names that need them say what to install.
"""

from __future__ import annotations

<<<<<<< HEAD
from typing import TYPE_CHECKING, Any

=======
>>>>>>> h-drop
from . import inference, schedules
from .corpus import Corpus
from .generating import generated
from .reading import read, word_vectors
from .rewriting import Rewriter
from .splitting import split
from .tfidf import TfidfSVD
from .vocabulary import Vocabulary, words_of

if TYPE_CHECKING:
    from .systems import DPNR, Bag, WordDropout

__all__ = [
    "DPNR",
    "Bag",
    "Corpus",
    "Rewriter",
    "TfidfSVD",
    "Vocabulary",
    "WordDropout",
    "generated",
    "inference",
    "read",
    "schedules",
    "split",
    "word_vectors",
    "words_of",
]


def __getattr__(name: str) -> Any:
    """What torch is needed for is loaded when it is first named."""
    if name in ("Bag", "DPNR", "WordDropout"):
        from . import systems

        return getattr(systems, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
