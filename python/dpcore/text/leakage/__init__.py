"""What the vectors of words give away to somebody who trains vectors of his own (word2vec)."""

from __future__ import annotations

from .attacking import attack
from .embedding import STARTS, Embedding, embed
from .halving import halves
from .noise import noisy
from .record import Leakage
from .words import deal

__all__ = ["STARTS", "Embedding", "Leakage", "attack", "deal", "embed", "halves", "noisy"]
