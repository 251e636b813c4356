"""Questions to a timetable: what is wanted, and which places and days are named."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, Words, drawn, filled, read_words

__all__ = ["intents"]

_READ: Final = read_words("intents")
_QUESTIONS: Final[dict[str, list[str]]] = _READ["questions"]
_WORDS: Final[Words] = {
    **_READ["words"], "origin": _READ["cities"], "destination": _READ["cities"],
}  # fmt: skip


def intents(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw texts of one question; label: the intent; attributes: slots `destination` and `day`."""
    found, names = Drawn(), list(_QUESTIONS)
    for _ in range(rows):
        intent = drawn(names, rng)
        text, slots = filled(drawn(_QUESTIONS[intent], rng), _WORDS, rng)
        while slots.get("origin", "") == slots.get("destination"):
            text, slots = filled(drawn(_QUESTIONS[intent], rng), _WORDS, rng)
        named = {name: slots.get(name, "none") for name in ("destination", "day")}
        found.add(text, intent, **named)
    return found
