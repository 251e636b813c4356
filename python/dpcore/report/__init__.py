"""Toolkit of reports: rows, cards, pages, figures and plain data. It knows no result."""

from typing import Final

__all__ = ["WORD_PACKAGES"]

WORD_PACKAGES: Final[list[str]] = []
"""Packages that declare words of files, and that are imported when a file has an unknown word.

The top of the package fills this list, so that no lower file names a higher one.
"""
