"""Linkage: which original did a rewritten text come from?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...bounds import limits
from ...errors import choice, confidence_level, instance, integer, invalid, mistyped
from ...hints import hinted
from ...records import Record
from ..vocabulary import words_of
from .mechanism import WordMechanism
from .texts import CONFIDENCE, Floats, Numbers, split_rows

__all__ = ["Linkage", "link"]

_MAX_LINKED_TEXTS: Final = 2**53


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linkage(Record, word="Linkage"):
    """Number of outputs that were linked to the original that they came from.

    Args:
        right: outputs linked to their own original, or to one of the same words.
        texts: outputs.
        words: words of each text that were compared.
        floor: share that is right by always naming the most frequent original.
        by: what the originals were ranked by.
        confidence: of the interval.

    Raises:
        TypeError: if a count is not an integer.
        ValueError: if more are right than there are.

    Example:
        >>> print(Linkage(80, 100, words=12, floor=0.01, by="likelihood"))
        80 of 100 texts (12 words each) linked by likelihood: 0.800 [0.708, 0.873], floor 0.010
    """

    right: int
    texts: int
    words: int
    floor: float
    by: str
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        """Check the counts."""
        integer("right", self.right, 0, integer("texts", self.texts, 1, _MAX_LINKED_TEXTS))
        confidence_level(self.confidence)

    @property
    def share(self) -> float:
        """Share of the outputs that were linked rightly."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's interval of the share, both ends at `confidence` together."""
        return limits(self.right, self.texts, (1.0 - self.confidence) / 2.0)

    def __str__(self) -> str:
        """Return one line for a report."""
        low, high = self.interval
        texts = f"{self.texts:,} texts ({self.words:,} words each)"
        share = f"{self.share:.3f} [{low:.3f}, {high:.3f}], floor {self.floor:.3f}"
        return f"{self.right:,} of {texts} linked by {self.by}: {share}"


@hinted
def link(
    mechanism: WordMechanism,
    originals: Sequence[Any],
    outputs: Sequence[Any],
    *,
    unknown: str = "error",
    confidence: float = CONFIDENCE,
) -> Linkage:
    """Link each output to the original that it most likely came from, and count who is right.

    The attacker knows the mechanism, all originals, and one output. Where the mechanism has a
    table he ranks by likelihood, which no attacker improves on; without one, by the sum of the
    distances between words of the same place. All texts are cut to the length of the shortest,
    for their lengths would tell them; a tie is won by the first original.

    Args:
        mechanism: a mechanism of this package.
        originals: texts, or lists of words.
        outputs: one output for each original, in their order, as `rewrite` returns them.
        unknown: "error", or "drop" for words without a vector, as `rewrite` dropped them.
        confidence: of the interval.

    Returns:
        The count, with an interval and a floor.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there are fewer than two originals, not one output for each, a text without
            a word, or a word without a vector where `unknown` is "error".

    Source:
        Neyman and Pearson (1933), for the likelihood.

    Example:
        >>> from dpcore.text.words import Embedding
        >>> from dpcore.text.words import SanText
        >>> mech = SanText(Embedding(["a", "b", "c"], [[0.0], [1.0], [2.0]]), epsilon=9.0)
        >>> texts = ["a b a b", "c c c c", "b b a a"]
        >>> print(link(mech, texts, mech.rewrite(texts, rng=1)))
        3 of 3 texts (4 words each) linked by likelihood: 1.000 [0.292, 1.000], floor 0.333
    """
    instance("mechanism", mechanism, WordMechanism)  # type: ignore[type-abstract]
    choice("unknown", unknown, ("error", "drop"))
    texts, answers = (
        _read_word_numbers(name, mechanism, given, unknown)
        for name, given in (("originals", originals), ("outputs", outputs))
    )
    if len(texts) < 2:
        raise invalid("originals", "two texts or more", len(texts))
    if len(answers) != len(texts):
        raise invalid("outputs", f"one for each of {len(texts)} originals", len(answers))
    words = min(map(len, (*texts, *answers)))
    table, rewritten = (np.array([one[:words] for one in side]) for side in (texts, answers))
    chosen = _score_originals(mechanism, table, rewritten).argmax(axis=1)
    right = int((table[chosen] == table).all(axis=1).sum())
    most = Counter(map(tuple, table.tolist())).most_common(1)[0][1]
    by = "likelihood" if mechanism.has_table else "distance"
    return Linkage(right, len(texts), words, most / len(texts), by, confidence)


def _read_word_numbers(
    name: str, mechanism: WordMechanism, texts: Sequence[Any], unknown: str
) -> list[list[int]]:
    """Return the numbers of the words of each text."""
    if not isinstance(texts, (list, tuple)):
        raise mistyped(name, "a list of texts or of lists of words", texts)
    found = []
    for place, text in enumerate(texts):
        found.append(mechanism._read_words(f"{name}[{place}]", text, unknown, words_of)[1])
        if not found[-1]:
            raise invalid(f"{name}[{place}]", "a text with a word that has a vector", text)
    return found


def _score_originals(mechanism: Any, originals: Numbers, outputs: Numbers) -> Floats:
    """Return log likelihoods, or distances below 0, shape `(outputs, originals)`."""
    ranks = np.zeros((len(outputs), len(originals)))
    needed = np.unique(originals)
    for part in split_rows(len(needed), len(mechanism.vectors)):
        block = needed[part]
        if mechanism.has_table:
            rows = mechanism.rows_with_unknown(block)
        else:
            rows = -mechanism.vectors.distances(block)
        slots = np.full(len(mechanism.vectors), -1)
        slots[block] = np.arange(len(block))
        for place in range(originals.shape[1]):
            at = slots[originals[:, place]]
            here = np.flatnonzero(at >= 0)
            ranks[:, here] += rows[at[here]][:, outputs[:, place]].T
    return ranks
