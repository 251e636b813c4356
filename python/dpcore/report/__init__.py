"""Tools for reports: rows, cards, pages, figures and plain data, independent of result classes."""

from typing import Final

__all__ = ["WORD_PACKAGES"]

WORD_PACKAGES: Final[list[str]] = []
"""Packages whose classes declare words for files. They are imported for an unknown word.

The package `dpcore` fills this list, so that a lower module never names a higher one.
"""
