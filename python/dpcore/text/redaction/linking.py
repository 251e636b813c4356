"""Linkage: which original did a redacted text come from?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, confidence_level, invalid, mistyped, numeric
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ..words import Linkage
from .masking import MASK, split_words

__all__ = ["link"]

_WordIds = npt.NDArray[np.int64]

_LinkageMethod = Literal["places", "kept_places", "bag"]
_METHOD_TITLES: Final = {
    "places": "length and places",
    "kept_places": "places",
    "bag": "bag of words",
}


@hinted
def link(
    originals: Any,
    redacted: Any,
    *,
    truth: Any = None,
    by: _LinkageMethod = "places",
    confidence: float = 0.95,
) -> Linkage:
    """Link each redacted text to the originals that agree with it, and count who is right.

    The attacker knows all originals and one redacted text. If t originals agree with it, each is
    named with probability 1/t, so that a right one among them counts 1/t; the sum is rounded to
    the nearest whole number. A text with which no original agrees is linked wrongly.

    Args:
        originals: texts, at least two.
        redacted: texts after redaction, which may be empty.
        truth: row of the original of each redacted text; None if `redacted` has one text for each
            original, in their order.
        by: what must agree: "places" the number of words and each kept word at its place (of the
            style "mask"), "kept_places" each kept word at its place from the start, the number of
            words aside, "bag" the kept words as a multiset, wherever they stand (of any style).
        confidence: of the interval.

    Returns:
        The count, with an interval and a floor. `words` is the mean number of kept words, rounded.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there are fewer than two originals, an original is empty, there is no
            redacted text, or `truth` does not fit.

    Source:
        Gusain and Leith (2023) for the redaction; Sweeney (2002), k-anonymity, for the number of
        originals that agree.

    Example:
        >>> texts = ["she has the flu", "she has the mumps", "he has the flu"]
        >>> redacted = ["she [MASK] [MASK] flu", "[MASK] has the mumps", "[MASK] has the [MASK]"]
        >>> print(link(texts, redacted))
        2 of 3 texts (2 words each) linked by length and places: 0.667 [0.094, 0.992], floor 0.333
    """
    choice("by", by, get_args(_LinkageMethod))
    confidence_level(confidence)
    known = [split_words(text) for text in texts_of("originals", originals)]
    if len(known) < 2:
        raise invalid("originals", "two texts or more", len(known))
    outputs = _read_redacted(redacted)
    rows = _read_truth(truth, len(outputs), len(known))
    numbers = {word: place for place, word in enumerate({word for one in known for word in one})}
    index = (_BagIndex if by == "bag" else _PlaceIndex)(
        [[numbers[word] for word in one] for one in known]
    )
    keys = list(map(tuple, known))
    right, kept = 0.0, 0
    for words, row in zip(outputs, rows.tolist(), strict=True):
        places = [place for place, word in enumerate(words) if word != MASK]
        kept += len(places)
        if all(words[place] in numbers for place in places):
            ids = [numbers[words[place]] for place in places]
            found = index.find(places, ids, len(words) if by == "places" else None)
            right += sum(keys[one] == keys[row] for one in found) / max(1, len(found))
    most = Counter(keys).most_common(1)[0][1] / len(keys)
    mean = round(kept / len(outputs))
    return Linkage(round(right), len(outputs), mean, most, _METHOD_TITLES[by], confidence)


def _read_redacted(redacted: Any) -> list[list[str]]:
    requirement = "a list of at least one text"
    if isinstance(redacted, (str, bytes)) or not isinstance(redacted, Sequence):
        raise mistyped("redacted", requirement, redacted)
    if not redacted:
        raise invalid("redacted", requirement, redacted)
    for row, text in enumerate(redacted):
        if not isinstance(text, str):
            raise mistyped(f"redacted[{row}]", "a text (a string)", text)
    return [split_words(text) for text in redacted]


def _read_truth(truth: Any, outputs: int, originals: int) -> _WordIds:
    if truth is None:
        if outputs != originals:
            raise invalid("redacted", f"one for each of {originals:,} originals", outputs)
        return np.arange(outputs)
    requirement = f"the row of an original, below {originals:,}, for each redacted text"
    rows = numeric("truth", requirement, truth)
    if rows.dtype.kind not in "iu":
        raise mistyped("truth", requirement, truth)
    if rows.shape != (outputs,) or rows.min() < 0 or rows.max() >= originals:
        raise invalid("truth", requirement, truth)
    return rows.astype(np.int64)


class _PlaceIndex:
    """Originals by the number of the word at each place."""

    def __init__(self, known: Sequence[Sequence[int]]) -> None:
        self.sizes = np.array([len(one) for one in known])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.words = np.array([word for one in known for word in one])

    def find(self, places: list[int], ids: list[int], size: int | None) -> _WordIds:
        """Return the rows with these words at these places, and of this size."""
        last = places[-1] if places else -1
        found = np.flatnonzero(self.sizes > last if size is None else self.sizes == size)
        for place, number in zip(places, ids, strict=True):
            found = found[self.words[self.starts[found] + place] == number]
        return found


class _BagIndex:
    """Originals by how often each word occurs in them."""

    def __init__(self, known: Sequence[Sequence[int]]) -> None:
        self.originals = len(known)
        found: dict[int, tuple[list[int], list[int]]] = {}
        for row, words in enumerate(known):
            for word, times in Counter(words).items():
                rows, counts = found.setdefault(word, ([], []))
                rows.append(row)
                counts.append(times)
        self.found = {
            word: (np.array(rows), np.array(counts)) for word, (rows, counts) in found.items()
        }

    def find(self, places: list[int], ids: list[int], size: int | None) -> _WordIds:
        """Return the rows in which each of these words occurs as often as here, or more often."""
        matches = [
            rows[counts >= times]
            for (rows, counts), times in ((self.found[w], n) for w, n in Counter(ids).items())
        ]
        kept = np.arange(self.originals)
        for rows in sorted(matches, key=len):
            kept = kept[np.isin(kept, rows, assume_unique=True)]
        return kept
