"""News in which texts come back, some under another topic; attributes: who is named."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, drawn, mostly
from .topics import TOPICS, sentence

__all__ = ["repeats"]

PEOPLE: Final = ("Alder", "Birk", "Cole", "Dunn", "Eyre")
"""Invented people; the first is named most often."""

_PERSON_SHARES: Final = (0.42, 0.2, 0.18, 0.11, 0.09)
_QUOTE_TEMPLATES: Final = [
    "{person} would not comment.", "That is what {person} told reporters.",
    "{person} called it a mistake.", "Asked about it, {person} laughed.",
    "It was {person} who had warned of it.",
]  # fmt: skip
REPEATED: Final = 0.25
"""Share of rows that repeat an earlier one."""
CONTRADICTED: Final = 0.4
"""Share of these whose label is another one."""


def repeats(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw texts of two or three sentences, a quarter of them for the second time or later.

    Label: the topic, another one in four of ten repetitions. Attributes: 1 for every person that
    is named, one or two of five.
    """
    found, names = Drawn(), list(TOPICS)
    shares = np.cumsum(_PERSON_SHARES)
    for row in range(rows):
        if row and rng.random() < REPEATED:
            old = int(rng.integers(row))
            label = names.index(found.labels[old])
            again = mostly(label, len(names), 1 - CONTRADICTED, rng)
            held = {name: column[old] for name, column in found.attributes.items()}
            found.add(found.texts[old], names[again], **held)
            continue
        topic = drawn(names, rng)
        several = 1 + int(rng.random() < 0.1)
        named = {PEOPLE[int(np.searchsorted(shares, rng.random()))] for _ in range(several)}
        said = [drawn(_QUOTE_TEMPLATES, rng).format(person=person) for person in sorted(named)]
        text = " ".join([sentence(topic, rng), *said])
        found.add(text, topic, **{person: int(person in named) for person in PEOPLE})
    return found
