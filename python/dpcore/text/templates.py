"""Corpora of texts that are generated from sentence templates, for use without data files.

A template is a sentence with blanks in braces. A blank is filled with a word from the list that has
the same name as the blank. Templates and words are in templates.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ..errors import choice, integer
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from .corpus import Corpus, part_names

Words = Mapping[str, Sequence[str]]
"""Mapping from the name of a blank to the words that may fill it."""

_BLANK_PATTERN: Final = re.compile(r"\{(\w+)\}")
_ARTICLE_PATTERN: Final = re.compile(r"\b([Aa]) (?=[aeiou])(?!one)")

CLEAR: Final = 0.92
"""Probability that the topic of a text fits its label, and that a phrase fits its attribute."""
PEOPLE: Final = ("Alder", "Birk", "Cole", "Dunn", "Eyre")
"""Names of invented people. The texts name the first person most often."""
_PERSON_SHARES: Final = (0.42, 0.2, 0.18, 0.11, 0.09)
_QUOTE_TEMPLATES: Final = [
    "{person} would not comment.",
    "That is what {person} told reporters.",
    "{person} called it a mistake.",
    "Asked about it, {person} laughed.",
    "It was {person} who had warned of it.",
]
REPEATED: Final = 0.25
"""Share of texts that repeat an earlier text."""
CONTRADICTED: Final = 0.4
"""Share of the repeated texts whose label differs from the label of the earlier text."""
Kind = Literal["topics", "intents", "repeats"]
_SPLIT_SHARES: Final = (0.8, 0.1, 0.1)
_GENERATED_ROWS: Final = (100, 10**8)
"""Smallest and largest number of texts of a corpus."""


@dataclass
class Drawn:
    """List of generated texts, with a label and attribute values for each text."""

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    attributes: dict[str, list[int | str]] = field(default_factory=dict)

    def add(self, text: str, label: str, **attributes: int | str) -> None:
        """Add a text to the list of generated texts, with its label and its attribute values."""
        self.texts.append(text)
        self.labels.append(label)
        for name, value in attributes.items():
            self.attributes.setdefault(name, []).append(value)


def read_templates_and_words(kind: str) -> Any:
    """Read the templates and words for one kind of text from the file templates.json.

    Args:
        kind: key in the file, such as "topics".
    """
    return json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8"))[kind]


def choose_word(words: Sequence[str], rng: np.random.Generator) -> str:
    """Choose one word of a list at random, with equal probabilities."""
    return words[int(rng.integers(len(words)))]


def fill_template(
    template: str, words: Words, rng: np.random.Generator
) -> tuple[str, dict[str, str]]:
    """Fill the blanks of a sentence template with random words.

    Two successive blanks with the same name get different words if the list of words for this name
    contains different words.

    Args:
        template: sentence with blanks, such as "from {city}".
        words: dictionary from the name of a blank to the list of words for this blank.
        rng: generator that chooses the words.

    Returns:
        A pair: the sentence, and a dictionary from the name of a blank to the word in the last
        blank with this name.

    Example:
        >>> fill_template("from {city} to {city}", {"city": ["here"] * 2}, np.random.default_rng(1))
        ('from here to here', {'city': 'here'})
    """
    taken: dict[str, str] = {}

    def word(match: re.Match[str]) -> str:
        name = match[1]
        choice = choose_word(words[name], rng)
        # A list of equal words has no different word. For other lists, eight tries suffice in
        # practice.
        for _ in range(8):
            if choice != taken.get(name):
                break
            choice = choose_word(words[name], rng)
        taken[name] = choice
        return choice

    return _ARTICLE_PATTERN.sub(r"\1n ", _BLANK_PATTERN.sub(word, template)), taken


def draw_mostly(value: int, kinds: int, share: float, rng: np.random.Generator) -> int:
    """Return `value` with probability `share`; otherwise return a different random integer.

    The different integer is at least 0 and below `kinds`.
    """
    if rng.random() < share:
        return value
    return (value + 1 + int(rng.integers(kinds - 1))) % kinds


_INTENT_LISTS: Final = read_templates_and_words("intents")
_QUESTION_TEMPLATES: Final[dict[str, list[str]]] = _INTENT_LISTS["questions"]
_INTENT_WORDS: Final[Words] = {
    **_INTENT_LISTS["words"],
    "origin": _INTENT_LISTS["cities"],
    "destination": _INTENT_LISTS["cities"],
}


def draw_timetable_questions(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw random questions about a timetable; the label of a text is the intent of the question.

    The attributes of a text are `destination` and `day`.

    Args:
        rows: number of texts.
        rng: generator of the random choices.
    """
    drawn, names = Drawn(), list(_QUESTION_TEMPLATES)
    for _ in range(rows):
        intent = choose_word(names, rng)
        text, slots = "", {"destination": ""}
        # Repeat until the two cities differ.
        while slots.get("origin", "") == slots.get("destination"):
            question = choose_word(_QUESTION_TEMPLATES[intent], rng)
            text, slots = fill_template(question, _INTENT_WORDS, rng)
        named = {name: slots.get(name, "none") for name in ("destination", "day")}
        drawn.add(text, intent, **named)
    return drawn


TOPICS: Final = read_templates_and_words("topics")
"""Sentence templates for each topic, and the words for their blanks."""

_PARENT_PHRASES: Final = read_templates_and_words("parents")
"""Phrases of people without and with children, and the words for their blanks."""


def draw_sentence(topic: str, rng: np.random.Generator) -> str:
    """Draw a random sentence about a topic."""
    topic_words = TOPICS[topic]
    return fill_template(choose_word(topic_words["templates"], rng), topic_words["words"], rng)[0]


def draw_texts_labelled_by_topic(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw random texts of two sentences; the label of a text is a topic.

    The attribute `parent` of a text is 1 with probability .4, and otherwise 0.

    Args:
        rows: number of texts.
        rng: generator of the random choices.
    """
    drawn, names = Drawn(), list(TOPICS)
    for _ in range(rows):
        topic, parent = int(rng.integers(len(names))), int(rng.random() < 0.4)
        sentence = draw_sentence(names[draw_mostly(topic, len(names), CLEAR, rng)], rng)
        phrase = choose_word(_PARENT_PHRASES["phrases"][draw_mostly(parent, 2, CLEAR, rng)], rng)
        family = fill_template(phrase, _PARENT_PHRASES["words"], rng)[0]
        drawn.add(f"{sentence} {family}", names[topic], parent=parent)
    return drawn


def draw_texts_with_repeated_texts(rows: int, rng: np.random.Generator) -> Drawn:
    """Draw random texts of two or three sentences; a quarter of the texts repeat an earlier text.

    The label of a text is its topic. However, 40 % of the repeated texts have a different label
    from the earlier text. A text names one or two of five people. A text has an attribute for each
    of the five people: 1 if the text names the person, otherwise 0.

    Args:
        rows: number of texts.
        rng: generator of the random choices.
    """
    drawn, names = Drawn(), list(TOPICS)
    shares = np.cumsum(_PERSON_SHARES)
    for row in range(rows):
        if row and rng.random() < REPEATED:
            old = int(rng.integers(row))
            label = names.index(drawn.labels[old])
            again = draw_mostly(label, len(names), 1 - CONTRADICTED, rng)
            held = {name: column[old] for name, column in drawn.attributes.items()}
            drawn.add(drawn.texts[old], names[again], **held)
            continue
        topic = choose_word(names, rng)
        several = 1 + int(rng.random() < 0.1)
        named = {PEOPLE[int(np.searchsorted(shares, rng.random()))] for _ in range(several)}
        sentences = [choose_word(_QUOTE_TEMPLATES, rng).format(person=who) for who in sorted(named)]
        text = " ".join([draw_sentence(topic, rng), *sentences])
        drawn.add(text, topic, **{person: int(person in named) for person in PEOPLE})
    return drawn


GENERATED: Final[dict[Kind, Callable[[int, np.random.Generator], Drawn]]] = {
    "topics": draw_texts_labelled_by_topic,
    "intents": draw_timetable_questions,
    "repeats": draw_texts_with_repeated_texts,
}
"""Function that draws the texts, for each kind of corpus."""


@explain_argument_errors
def generated(kind: Kind, rows: int, rng: Rng = None) -> Corpus:
    """Generate a corpus of labelled texts from sentence templates, without data files.

    Args:
        kind: kind of corpus:

            - "topics": messages of two sentences. The labels are four topics. Phrases reveal the
              attribute `parent` (0 or 1). In 8 % of the texts, the topic of the first sentence
              differs from the label. In 8 % of the texts, the phrase reveals the wrong value of
              `parent`. Therefore the accuracy of a classifier of the label or of `parent` cannot be
              much above .92.
            - "intents": questions about a timetable. The labels are six intents. The attributes are
              `destination` and `day`, with the value "none" if the text does not name a destination
              or a day.
            - "repeats": texts about the four topics. A quarter of the texts repeat an earlier text.
              40 % of the repeated texts have a different label from the earlier text. There is an
              attribute for each of five people: 1 if the text names the person, otherwise 0.
        rows: number of texts, from 100 to 100,000,000.
        rng: None, an int or a Generator. The attribute `origin` of the returned corpus states the
            seed.

    Returns:
        The corpus, with 80 % training, 10 % validation and 10 % test texts. Equal texts are in the
        same part. The same seed gives the same corpus.

    Raises:
        TypeError: if `kind` is not a string or `rows` is not an integer.
        ValueError: if the kind is unknown, or `rows` is out of range.

    Example:
        >>> corpus = generated("topics", 1000, rng=1)
        >>> corpus.origin
        'generated (topics, 1,000 rows, seed 1)'
        >>> corpus[3]
        'The beach was foggy, and we booked it before the city break. Read it while the little one
        was at the school gate.'
        >>> corpus.attribute("parent")[:5]
        array([0, 0, 1, 0, 0])
    """
    make = GENERATED[choice("kind", kind, tuple(GENERATED))]
    rows, seed = integer("rows", rows, *_GENERATED_ROWS), to_seed(rng)
    generator = np.random.default_rng(seed)
    made = make(rows, generator)
    part = part_names(made.texts, _SPLIT_SHARES, generator)
    origin = f"generated ({kind}, {rows:,} rows, seed {seed})"
    return Corpus(made.texts, made.labels, made.attributes, part, origin)
