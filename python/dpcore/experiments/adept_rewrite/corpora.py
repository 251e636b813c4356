"""The texts of the experiment: public ones to train on, others to rewrite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ...errors import invalid
from ...records import Shown
from ...text import Corpus, generated, words_of
from ..corpora import read_corpus

__all__ = ["EPOCHS", "FOLDS", "MADE_UP", "Texts", "read_corpora", "rejoin_words"]

MADE_UP: Final = "generated"
"""Name of the corpus that is made up where there is no data."""
FOLDS: Final = 5
"""Parts of the rewritten texts, each told by a classifier that has seen the others."""
EPOCHS: Final = {"atis": (40, 1), "snips": (7, 2), MADE_UP: (20, 1)}
"""Passes over the train file, fixed beforehand, and how often a word must occur there."""
_GENERATED_TEXTS: Final = 2000
_QUICK_SIZES: Final = (480, 120, 10)
"""Texts to train on, texts to rewrite and passes of a run that shows no more than that it works."""


@dataclass(frozen=True, slots=True, repr=False)
class Texts(Shown):
    """A corpus, as the experiment takes it.

    Args:
        name: "atis", "snips" or "generated".
        origin: where it is from.
        train: public texts: the auto-encoder is fitted to them.
        held: texts to rewrite, none of which occurs in `train`.
        labels: their intents.
        dropped: texts left out because they occur in `train`.
        epochs: passes over `train`.
        min_count: how often a word must occur in `train`.
    """

    name: str
    origin: str
    train: tuple[str, ...]
    held: tuple[str, ...]
    labels: tuple[str, ...]
    dropped: int
    epochs: int
    min_count: int


def rejoin_words(text: str) -> str:
    """Join the words of a text by blanks, which is the best that the auto-encoder can write."""
    return " ".join(words_of(text))


def read_corpora(config: Any) -> tuple[Texts, ...]:
    """Read or generate the corpora of a run.

    Args:
        config: has `data`, `full` and `quick`.

    Raises:
        FileNotFoundError: if a file is missing; it says which, and where it is from.
        ValueError: if too few texts are left to rewrite.
    """
    data, quick = config.data, config.quick
    if data is None:
        rows = sum(_QUICK_SIZES[:2]) if quick else _GENERATED_TEXTS
        return (_split_corpus(MADE_UP, generated("intents", rows, rng=1), quick),)
    names: tuple[Literal["atis", "snips"], ...] = ("atis", "snips") if config.full else ("atis",)
    return tuple(_split_corpus(name, read_corpus(data, name), quick) for name in names)


def _split_corpus(name: str, corpus: Corpus, quick: bool) -> Texts:
    known = {rejoin_words(text) for text in corpus.train}
    held, dropped = [], 0
    for part in (corpus.valid, corpus.test):
        assert part.labels is not None
        rows = list(zip(part.texts, map(str, part.labels.tolist()), strict=True))
        new = [row for row in rows if rejoin_words(row[0]) not in known]
        held += new
        dropped += len(rows) - len(new)
    train, (epochs, few) = tuple(corpus.train), EPOCHS[name]
    if quick:
        train, held, epochs = train[: _QUICK_SIZES[0]], held[: _QUICK_SIZES[1]], _QUICK_SIZES[2]
    if len({rejoin_words(text) for text, _ in held}) < FOLDS:
        requirement = f"a corpus with {FOLDS} texts at least that the train file does not hold"
        raise invalid("data", requirement, name)
    texts, labels = zip(*held, strict=True)
    return Texts(name, corpus.origin, train, texts, labels, dropped, epochs, few)
