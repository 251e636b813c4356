"""Figures of others on the same sentences, for comparison."""

from __future__ import annotations

from typing import Final

__all__ = ["SENTENCES", "SINGLE", "STUDY"]

SENTENCES: Final = 118_964
"""So many there are: of a part of them the figures would be others."""

SINGLE: Final[dict[tuple[str, str, int], tuple[str, str]]] = {
    ("disjoint", "hashed", 0): (".169", ".259"),
    ("disjoint", "same", 0): (".008", ".013"),
    ("disjoint", "other", 0): (".000", ".001"),
    ("disjoint", "hashed", 500): (".25", ".35"),
    ("disjoint", "same", 500): (".27", ".37"),
    ("disjoint", "other", 500): (".27", ".36"),
    ("overlapping", "hashed", 0): (".191", ".292"),
}
"""Top-1 and top-5 of a single run: 1,496 held-out words, the attacker's vocabulary 3,537."""

STUDY: Final = (".24", ".33")
"""Figures of the DPNR study: gensim 3.8.3, two samples of 50 %, all words of the victim."""
