"""Tools for audits of text privacy: corpora, encoders, and attacks on encoded texts.

The package can be imported without torch and scikit-learn. If a name needs torch or scikit-learn
and the library is missing, dpcore raises an error that states what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..mechanisms.texts import Rewriter
from . import inference, lm, redaction, schedules, words
from .corpus import Corpus, Vocabulary, split, words_of
from .frontiers import Frontier, FrontierCell, frontier
from .linkage import LinkedOutputs
from .linking import DocumentLinkage, link
from .reading import read
from .rewriter_frontiers import RewriterFrontier, RewriterRow
from .templates import generated
from .tfidf import TfidfSVD
from .words.embedding import word_vectors

if TYPE_CHECKING:
    from .systems import DPNR as DPNR
    from .systems import ADePTModel as ADePTModel
    from .systems import Bag as Bag
    from .systems import DPTextModel as DPTextModel
    from .systems import WordDropout as WordDropout

__all__ = [
    "Corpus", "DocumentLinkage", "Frontier", "FrontierCell", "LinkedOutputs", "Rewriter",
    "RewriterFrontier", "RewriterRow", "TfidfSVD", "Vocabulary", "frontier", "generated",
    "inference", "link", "lm", "read", "redaction", "schedules", "split", "word_vectors", "words",
    "words_of",
]  # fmt: skip

_TORCH_NAMES = ("ADePTModel", "Bag", "DPNR", "DPTextModel", "WordDropout")
"""Names that need torch. They are not exported by `import *`, which would fail without torch."""


def __getattr__(name: str) -> Any:
    """Import a class that needs torch when its name is first used."""
    if name in _TORCH_NAMES:
        from . import systems

        return getattr(systems, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List all names of the package, including the names that need torch."""
    return sorted([*__all__, *_TORCH_NAMES])
