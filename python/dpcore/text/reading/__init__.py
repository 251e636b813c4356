"""Readers: known corpora, tables, lines and folders of texts, and vectors of words."""

from .known import ENTITIES
from .reader import KINDS, read
from .vectors import word_vectors

__all__ = ["ENTITIES", "KINDS", "read", "word_vectors"]
