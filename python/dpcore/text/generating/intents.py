"""Questions to a timetable: what is wanted, and which places and days are named."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, Words, drawn, filled, read_words

__all__ = ["intents"]

_INTENT_LISTS: Final = read_words("intents")
_QUESTION_TEMPLATES: Final[dict[str, list[str]]] = _INTENT_LISTS["questions"]
_INTENT_WORDS: Final[Words] = {
    **_INTENT_LISTS["words"], "origin": _INTENT_LISTS["cities"], "destination": _INTENT_LISTS["cities"],
}  # fmt: skip


def intents(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw texts of one question; label: the intent; attributes: slots `destination` and `day`."""
    found, names = Drawn(), list(_QUESTION_TEMPLATES)
    for _ in range(rows):
        intent = drawn(names, rng)
        text, slots = filled(drawn(_QUESTION_TEMPLATES[intent], rng), _INTENT_WORDS, rng)
        while slots.get("origin", "") == slots.get("destination"):
            text, slots = filled(drawn(_QUESTION_TEMPLATES[intent], rng), _INTENT_WORDS, rng)
        named = {name: slots.get(name, "none") for name in ("destination", "day")}
        found.add(text, intent, **named)
    return found
