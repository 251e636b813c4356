"""Messages on four topics, in which a turn of phrase gives away who has children."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, drawn, filled, mostly, read_words

__all__ = ["TOPICS", "sentence", "topics"]

CLEAR: Final = 0.92
"""Share of texts that speak of their own topic, and of those whose phrase fits their writer."""

TOPICS: Final = read_words("topics")
"""Templates of sentences for each topic, and the words for their blanks."""

_PARENT_PHRASES: Final = read_words("parents")
"""Phrases of those without and with children, and the words for their blanks."""


def sentence(topic: str, rng: np.random.Generator) -> str:
    """Draw a sentence on a topic."""
    return filled(drawn(TOPICS[topic]["templates"], rng), TOPICS[topic]["words"], rng)[0]


def topics(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw texts of two sentences; label: the topic; attribute `parent`: 1 for four in ten."""
    found, names = Drawn(), list(TOPICS)
    for _ in range(rows):
        topic, parent = int(rng.integers(len(names))), int(rng.random() < 0.4)
        said = sentence(names[mostly(topic, len(names), CLEAR, rng)], rng)
        phrase = drawn(_PARENT_PHRASES["phrases"][mostly(parent, 2, CLEAR, rng)], rng)
        family = filled(phrase, _PARENT_PHRASES["words"], rng)[0]
        found.add(f"{said} {family}", names[topic], parent=parent)
    return found
