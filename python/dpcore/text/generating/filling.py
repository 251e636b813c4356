"""Sentences from templates: blanks in braces are filled with words of the list of that name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

__all__ = ["Drawn", "Words", "drawn", "filled", "mostly", "read_words"]

Words = Mapping[str, Sequence[str]]
"""Name of a blank -> what may stand there."""

_BLANK_PATTERN: Final = re.compile(r"\{(\w+)\}")
_ARTICLE_PATTERN: Final = re.compile(r"\b([Aa]) (?=[aeiou])(?!one)")


@dataclass
class Drawn:
    """Texts under way to a corpus: as many labels, and entries of each attribute, as texts."""

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    attributes: dict[str, list[int | str]] = field(default_factory=dict)

    def add(self, text: str, label: str, **attributes: int | str) -> None:
        """Add one more text."""
        self.texts.append(text)
        self.labels.append(label)
        for name, value in attributes.items():
            self.attributes.setdefault(name, []).append(value)


def read_words(kind: str) -> Any:
    """Read the templates and words of a kind of text from words.json."""
    file = Path(__file__).with_name("words.json")
    return json.loads(file.read_text(encoding="utf-8"))[kind]


def drawn(words: Sequence[str], rng: np.random.Generator) -> str:
    """Choose one of the words, each with the same probability."""
    return words[int(rng.integers(len(words)))]


def filled(template: str, words: Words, rng: np.random.Generator) -> tuple[str, dict[str, str]]:
    """Fill the blanks of a template; return the sentence and the words by blank name.

    Two blanks of one name in a row get different words, if the list has them.

    Example:
        >>> filled("from {city} to {city}", {"city": ["here"] * 2}, np.random.default_rng(1))
        ('from here to here', {'city': 'here'})
    """
    taken: dict[str, str] = {}

    def word(match: re.Match[str]) -> str:
        name = match[1]
        found = drawn(words[name], rng)
        # A list of equal words has no other one; eight tries are enough for all that have.
        for _ in range(8):
            if found != taken.get(name):
                break
            found = drawn(words[name], rng)
        taken[name] = found
        return found

    return _ARTICLE_PATTERN.sub(r"\1n ", _BLANK_PATTERN.sub(word, template)), taken


def mostly(value: int, kinds: int, share: float, rng: np.random.Generator) -> int:
    """Return the value with probability `share`, else one of the others with equal probability."""
    if rng.random() < share:
        return value
    return (value + 1 + int(rng.integers(kinds - 1))) % kinds
