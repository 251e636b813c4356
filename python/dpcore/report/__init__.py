"""Tools for reports: rows, cards, pages, figures and plain data, independent of result classes."""

from typing import Final

__all__ = ["WORD_PACKAGES"]

WORD_PACKAGES: Final[list[str]] = []
"""Names of packages whose classes can be stored in JSON files.

A file identifies a class by a word. If a word is unknown, dpcore imports these packages. The
package `dpcore` fills the list, so that this module does not depend on those packages.
"""
