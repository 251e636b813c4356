"""Options, and two sets of texts, that the experiments on redacted texts share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from ..errors import flag, integer, invalid, mistyped
from ..records import Shown
from ..text import Corpus, generated
from ..text.splitting import likeness
from .corpora import read_corpus
from .running import SEED, cell_seed, check_config

__all__ = ["TextOptions", "TwoSets", "read_texts", "read_two_sets"]

_SENSITIVE_LABELS: Final[dict[bool, int | str]] = {True: 1, False: "money"}
"""The label of the sensitive set: neoplasms with `data`, the topic of money without."""

_GENERATED_ROWS: Final = {False: 4_000, True: 1_000}
"""Texts that are generated without and with `quick`."""

_MIN_SET_TEXTS: Final = 100
"""Texts of a set below which halves of it are too few to fit on."""


@dataclass(frozen=True, slots=True, repr=False)
class TextOptions(Shown):
    """The options of an experiment on texts.

    Args:
        trials: texts of a set, at most; at least 100.
        seed: int in [0, 2**63); every part of the experiment gets its own from it.
        seeds: repetitions, of which mean and standard deviation are shown; None for the
            experiment's own number, which is larger with `full` and 1 with `quick`.
        data: the folder of the corpora; None generates texts.
        full: True for more repetitions.
        quick: True for a run that shows only that the experiment works.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.
    """

    SEEDS: ClassVar[tuple[int, int]] = (5, 20)
    """Repetitions without and with `full`."""

    trials: int = 10**6
    seed: int = SEED
    seeds: int | None = None
    data: str | None = None
    full: bool = False
    quick: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        integer("trials", self.trials, _MIN_SET_TEXTS)
        if self.data is not None:
            if not isinstance(self.data, (str, os.PathLike)):
                raise mistyped("data", "a path of a folder", self.data)
            object.__setattr__(self, "data", str(self.data))
        own = self.SEEDS[flag("full", self.full)]
        own = 1 if flag("quick", self.quick) else own
        seeds = own if self.seeds is None else self.seeds
        object.__setattr__(self, "seeds", integer("seeds", seeds, 1))

    @property
    def origin_note(self) -> str:
        """Note behind the name of a corpus of generated texts."""
        return "" if self.data is not None else " (generated texts: give --data for real ones)"


class TwoSets(NamedTuple):
    """Two sets without a common text, and no text twice.

    Attributes:
        origin: where the texts come from.
        sensitive: the sensitive set.
        rest: all texts that never have its label.
        rest_labels: the first label of each of these.
        dropped: distinct texts that were left out because they have its label and another.
    """

    origin: str
    sensitive: tuple[str, ...]
    rest: tuple[str, ...]
    rest_labels: tuple[int | str, ...]
    dropped: int


def read_texts(config: TextOptions, name: Any, kind: Any, rows: int) -> Corpus:
    """Read a corpus of the folder; generate texts where there is none.

    Args:
        config: the options.
        name: of the corpus.
        kind: of the generated texts.
        rows: how many of them.

    Raises:
        FileNotFoundError: if the folder has no such file.
    """
    if config.data is not None:
        return read_corpus(config.data, name)
    return generated(kind, rows, rng=cell_seed(config.seed, "corpus"))


def read_two_sets(config: TextOptions) -> TwoSets:
    """Read the texts of the sensitive label and all others; of equal texts one is kept.

    Texts are equal if they differ only in letter case or white space. A text that occurs with the
    sensitive label and with another one is left out.

    Args:
        config: the options: medical abstracts with `data`, generated topics without.

    Returns:
        Both sets; the sensitive one has at most `trials` texts, chosen at random.

    Raises:
        FileNotFoundError: if the folder has no such file.
        ValueError: if the sensitive set has fewer than 100 texts, or the others are fewer than
            twice as many.
    """
    corpus = read_texts(config, "medical", "topics", _GENERATED_ROWS[config.quick])
    wanted = _SENSITIVE_LABELS[config.data is not None]
    labels: dict[str, list[int | str]] = {}
    firsts: dict[str, str] = {}
    assert corpus.labels is not None
    for text, label in zip(corpus.texts, corpus.labels.tolist(), strict=True):
        labels.setdefault(likeness(text), []).append(label)
        firsts.setdefault(likeness(text), text)
    sensitive = [firsts[key] for key, found in labels.items() if set(found) == {wanted}]
    others = {firsts[key]: found[0] for key, found in labels.items() if wanted not in found}
    dropped = len(labels) - len(sensitive) - len(others)
    order = np.random.default_rng(cell_seed(config.seed, "sensitive")).permutation(len(sensitive))
    chosen = tuple(sensitive[row] for row in sorted(order[: config.trials].tolist()))
    if len(chosen) < _MIN_SET_TEXTS or len(others) < 2 * len(chosen):
        requirement = f"a corpus with {_MIN_SET_TEXTS} sensitive texts, and twice as many others"
        raise invalid("data", requirement, f"{len(chosen):,} and {len(others):,}")
    return TwoSets(corpus.origin, chosen, tuple(others), tuple(others.values()), dropped)
