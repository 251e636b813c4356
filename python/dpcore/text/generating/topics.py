"""Messages on four topics, in which a turn of phrase gives away who has children."""

from __future__ import annotations

from typing import Final

import numpy as np

from .filling import Drawn, Words, drawn, filled, mostly

__all__ = ["TOPICS", "sentence", "topics"]

CLEAR: Final = 0.92
"""Share of texts that speak of their own topic, and of those whose phrase fits their writer."""

TOPICS: Final[dict[str, tuple[list[str], Words]]] = {
    "sport": (
        [
            "The {who} {did} the {thing} after a {how} {when}.",
            "In the {when} the {who} lost the {thing}, and nobody had expected such a {how} game.",
            "A {how} {thing} decided it: the {who} had {did} it in the {when}.",
            "Our {who} says that the {thing} was {how}, but the {when} was not.",
        ],
        {
            "who": ["goalkeeper", "striker", "coach", "referee", "captain", "home team", "sprinter",
                    "cyclist", "champion", "defender", "rower", "skier"],
            "did": ["won", "saved", "missed", "defended", "scored", "dominated", "abandoned"],
            "thing": ["penalty", "match", "final", "league title", "relay", "corner kick", "medal",
                      "tournament", "rebound", "sprint", "derby"],
            "how": ["fierce", "muddy", "breathless", "goalless", "unbeaten", "exhausting",
                    "one-sided", "tactical"],
            "when": ["second half", "extra time", "last lap", "training camp", "play-off",
                     "semi-final", "warm-up", "away game"],
        },
    ),
    "money": (
        [
            "The {who} {did} its {thing} after a {how} {when}.",
            "A {how} {when} cost the {who} most of its {thing}.",
            "Analysts call the {thing} of the {who} {how}, and wait for the {when}.",
            "Since the {when} the {who} has {did} the {thing}, which looks {how}.",
        ],
        {
            "who": ["bank", "insurer", "central bank", "retailer", "pension fund", "carmaker",
                    "start-up", "shareholder group", "broker", "landlord", "exporter", "airline"],
            "did": ["raised", "cut", "refinanced", "restated", "doubled", "sold", "hedged"],
            "thing": ["interest rate", "dividend", "debt", "share price", "profit forecast",
                      "mortgage book", "cash reserve", "bond yield", "revenue", "tax bill"],
            "how": ["volatile", "profitable", "inflated", "overvalued", "sluggish", "taxable",
                    "solvent", "costly"],
            "when": ["quarter", "merger", "audit", "takeover bid", "fiscal year", "sell-off",
                     "budget", "downturn"],
        },
    ),
    "science": (
        [
            "The {who} {did} a {how} {thing} during the {when}.",
            "With the {when} came a surprise: the {thing} is {how}, the {who} reports.",
            "A {how} {thing} was {did} by the {who}, who had planned the {when} for years.",
            "What the {who} took for a {thing} was {how}, as the {when} has shown.",
        ],
        {
            "who": ["astronomer", "chemist", "geologist", "laboratory", "research team",
                    "biologist", "physicist", "observatory", "zoologist", "doctoral student"],
            "did": ["measured", "discovered", "simulated", "sequenced", "photographed", "isolated",
                    "modelled"],
            "thing": ["comet", "protein", "galaxy", "fossil", "enzyme", "magnetic field", "glacier",
                      "neutrino", "genome", "crystal", "bacterium"],
            "how": ["radioactive", "microscopic", "faint", "superconducting", "extinct",
                    "luminous", "unstable", "molecular"],
            "when": ["experiment", "expedition", "eclipse", "field study", "space mission",
                     "peer review", "replication", "simulation run"],
        },
    ),
    "travel": (
        [
            "We took the {who} to a {how} {thing} at the end of the {when}.",
            "The {thing} was {how}, and we {did} it before the {when}.",
            "On our {when} the {who} was late, so we {did} the {how} {thing}.",
            "Nothing beats a {how} {thing} after a {when} in the {who}.",
        ],
        {
            "who": ["ferry", "night train", "cable car", "hired van", "tour bus", "sleeper coach",
                    "tram", "sailing boat", "shuttle", "guide"],
            "did": ["visited", "booked", "skipped", "photographed", "reached", "recommended",
                    "hiked past"],
            "thing": ["harbour", "old town", "lighthouse", "mountain hut", "guest house", "beach",
                      "castle ruin", "vineyard", "market square", "hostel", "waterfall"],
            "how": ["sunny", "crowded", "remote", "picturesque", "windswept", "overpriced",
                    "charming", "foggy"],
            "when": ["holiday", "road trip", "long weekend", "cruise", "walking tour",
                     "city break", "stopover", "journey"],
        },
    ),
}  # fmt: skip
"""Of each topic: templates of sentences, and the words for their blanks."""

_PHRASES: Final = (
    [
        "Had a {drink} on my own after the {free}.",
        "Went straight from the {free} to {night}.",
        "My {home} is so quiet that I read it over a {drink}.",
        "Told them about it at {night}, we stayed until two.",
    ],
    [
        "Read it while the {child} was at {place}.",
        "My {child} asked about it at {meal}.",
        "Told the other parents about it at {place}.",
        "We talked about it over {meal}, until the {child} fell asleep.",
    ],
)
_WORDS: Final[Words] = {
    "drink": ["glass of wine", "late espresso", "cocktail", "pint"],
    "free": ["gym", "yoga class", "office", "concert", "late shift"],
    "night": ["the club", "a house party", "karaoke", "the pub quiz", "a date"],
    "home": ["studio flat", "loft", "bedsit", "shared flat"],
    "child": ["baby", "toddler", "little one", "youngest", "daughter", "son"],
    "place": ["nursery", "the playground", "the school gate", "swimming lessons", "the creche"],
    "meal": ["bedtime", "breakfast with the twins", "the birthday party", "bath time"],
}


def sentence(topic: str, rng: np.random.Generator) -> str:
    """A sentence on a topic."""
    templates, words = TOPICS[topic]
    return filled(drawn(templates, rng), words, rng)[0]


def topics(rows: int, rng: np.random.Generator) -> Drawn:
    """Texts of two sentences; label: the topic; attribute `parent`: 1 for four in ten."""
    found, names = Drawn(), list(TOPICS)
    for _ in range(rows):
        topic, parent = int(rng.integers(len(names))), int(rng.random() < 0.4)
        said = sentence(names[mostly(topic, len(names), CLEAR, rng)], rng)
        phrase = drawn(_PHRASES[mostly(parent, 2, CLEAR, rng)], rng)
        found.add(f"{said} {filled(phrase, _WORDS, rng)[0]}", names[topic], parent=parent)
    return found
