"""Questions to a timetable: what is wanted, and which places and days are named."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, Words, drawn, filled

__all__ = ["intents"]

_INTENTS: Final[dict[str, list[str]]] = {
    "connection": [
        "{please} a train from {origin} to {destination} on {day}",
        "which trains go to {destination} from {origin} {time}",
        "i have to be in {destination} by {hour} on {day} and start in {origin}",
        "is there a direct train between {origin} and {destination} {time}",
    ],
    "fare": [
        "how much is a {class} ticket from {origin} to {destination}",
        "what does the trip to {destination} cost on {day}",
        "{please} the cheapest fare to {destination} leaving {origin} {time}",
        "is a return to {destination} cheaper than two {class} singles",
    ],
    "platform": [
        "from which platform does the {hour} to {destination} leave",
        "where in {origin} do i change for {destination}",
        "which platform for the train to {destination} on {day}",
    ],
    "booking": [
        "book {number} {class} seats to {destination} for {day}",
        "reserve {number} places on the {hour} from {origin} to {destination}",
        "{please} {number} seats by the window to {destination} {time}",
    ],
    "delay": [
        "is the {hour} from {origin} on time",
        "how late is the train from {origin} to {destination} today",
        "will i miss my connection to {destination} in {origin} {time}",
        "why has the {hour} to {destination} been cancelled",
    ],
    "luggage": [
        "may i take a bicycle to {destination} on {day}",
        "how many suitcases are free on the train to {destination}",
        "i left a {item} on the {hour} from {origin}",
        "somebody found my {item} in {origin} on {day}",
    ],
}
_CITIES: Final = ["aldbury", "brennick", "corvale", "dunmoor", "eastholm", "fennwick", "garrow",
                  "hartsea", "ilverton", "kestrel bay", "larkfield", "morwen"]  # fmt: skip
_WORDS: Final[Words] = {
    "origin": _CITIES,
    "destination": _CITIES,
    "please": ["show me", "please find me", "i need", "could you find", "list", "i would like"],
    "day": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
            "the third of may", "new year's eve", "the first of june"],
    "time": ["in the morning", "after six", "around noon", "before ten", "late at night",
             "this afternoon", "as early as possible"],
    "hour": ["seven fifteen", "eight forty", "noon train", "four twenty", "nine o'clock",
             "midnight express"],
    "class": ["first class", "second class", "off-peak", "sleeper", "family"],
    "number": ["two", "three", "four", "five"],
    "item": ["blue umbrella", "laptop bag", "red scarf", "violin case", "camera"],
}  # fmt: skip


def intents(rows: int, rng: np.random.Generator) -> Drawn:
    """Texts of one question; label: the intent; attributes: the slots `destination` and `day`."""
    found, names = Drawn(), list(_INTENTS)
    for _ in range(rows):
        intent = drawn(names, rng)
        text, slots = filled(drawn(_INTENTS[intent], rng), _WORDS, rng)
        while slots.get("origin", "") == slots.get("destination"):
            text, slots = filled(drawn(_INTENTS[intent], rng), _WORDS, rng)
        named = {name: slots.get(name, "none") for name in ("destination", "day")}
        found.add(text, intent, **named)
    return found
