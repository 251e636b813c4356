"""Words as numbers: which words have one, and what becomes of all others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..errors import choice, instance, integer, invalid, mistyped
from ..hints import hinted
from ..mechanisms.texts import texts_of
from ..records import Shown
from .corpus import training_texts

__all__ = ["Vocabulary", "words_of"]

Tokeniser = Callable[[str], Sequence[str]]
Ids = npt.NDArray[np.int64]

_UNKNOWN_TOKEN: Final = "<unk>"
_WORD_PATTERN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """List the words of a text, in lower case: runs of letters and digits, inner apostrophes kept.

    Example:
        >>> words_of("The coach's 3rd win, at last!")
        ['the', "coach's", '3rd', 'win', 'at', 'last']
    """
    return _WORD_PATTERN.findall(text.lower())


@hinted
@dataclass(frozen=True)
class Vocabulary(Shown):
    """Numbers for words, and an explicit choice of what becomes of unknown words.

    Numbers begin with the reserved names in their order ("<pad>" is 0), then comes "<unk>" where
    unknown words have a token, then the words. An embedding needs `len(vocabulary)` rows. A word
    of a text that is spelt as a reserved name gets its number; `words_of` yields none.

    Args:
        words: the words, or n-grams joined by blanks, each once.
        unknown: "drop" leaves unknown words out; "token" puts the number of "<unk>" for each.
        reserved: names of numbers that no word has.
        ngrams: 1 for words; n for all runs of 1 to n words: all single words first, then pairs.
        tokenise: from a text to its words.

    Raises:
        ValueError: if a word comes twice or is reserved, or an argument is outside its range.

    Example:
        >>> v = Vocabulary.from_texts(["a goal", "a late goal"], unknown="token", min_count=2)
        >>> v.words, len(v), v.encode(["a great goal"])
        (('a', 'goal'), 4, [array([2, 1, 3])])
        >>> v.decode(v.encode(["a great goal"]))
        ['a <unk> goal']
    """

    words: Sequence[str]
    unknown: Literal["drop", "token"]
    reserved: Sequence[str] = ("<pad>",)
    ngrams: int = 1
    tokenise: Tokeniser = words_of
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the fields and assign numbers to the words."""
        choice("unknown", self.unknown, ("drop", "token"))
        integer("ngrams", self.ngrams, 1)
        if not callable(self.tokenise):
            raise mistyped("tokenise", "a function from a text to its words", self.tokenise)
        for name in ("words", "reserved"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(word, str) for word in value):
                raise mistyped(name, "a list of strings", value)
            object.__setattr__(self, name, tuple(value))
        special = (*self.reserved, *([_UNKNOWN_TOKEN] if self.unknown == "token" else []))
        listed = (*special, *self.words)
        ids = {word: number for number, word in enumerate(listed)}
        if len(ids) != len(listed):
            twice = next(word for word, times in Counter(listed).items() if times > 1)
            raise invalid("words", "different words, none of them reserved", twice)
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def from_texts(
        cls,
        texts: Any,
        *,
        unknown: Literal["drop", "token"],
        min_count: int = 1,
        max_size: int | None = None,
        reserved: Sequence[str] = ("<pad>",),
        ngrams: int = 1,
        tokenise: Tokeniser = words_of,
    ) -> Vocabulary:
        """Make a vocabulary of the words of texts, most frequent first, ties in alphabetical order.

        Args:
            texts: a list of strings, or a `Corpus`, of which the train part is read.
            unknown: as for the class.
            min_count: how often a word must occur.
            max_size: most words that are kept, reserved names not counted; None keeps all.
            reserved: as for the class.
            ngrams: as for the class.
            tokenise: as for the class.

        Raises:
            ValueError: if no word is left.
        """
        integer("min_count", min_count, 1)
        if max_size is not None:
            integer("max_size", max_size, 1)
        empty = cls((), unknown, reserved, ngrams, tokenise)
        special = empty._ids
        counts = Counter(unit for text in training_texts(texts) for unit in empty._units(text))
        often = [w for w, times in counts.items() if times >= min_count and w not in special]
        often.sort(key=lambda word: (-counts[word], word))
        if not often:
            most = max(counts.values(), default=0)
            requirement = f"at most {most}, how often the most frequent word occurs"
            raise invalid("min_count", requirement, min_count)
        return cls(often[:max_size], unknown, reserved, ngrams, tokenise)

    def __len__(self) -> int:
        """Return how many numbers there are, including the reserved ones."""
        return len(self._ids)

    def __contains__(self, word: object) -> bool:
        """Return True for a word that has its own number."""
        return word in self._ids

    def __repr__(self) -> str:
        """Return the number of words, and the choice for all others."""
        kind = "words" if self.ngrams == 1 else f"runs of 1 to {self.ngrams} words"
        return f"Vocabulary({len(self.words):,} {kind}; unknown={self.unknown!r})"

    def encode(self, texts: Any, *, empty: Literal["error", "keep"] = "error") -> list[Ids]:
        """Return the numbers of the words of every text.

        Args:
            texts: a list of strings.
            empty: what becomes of a text without any number (all its words unknown and dropped):
                "error", or "keep" for an array of no entries.

        Returns:
            For each text an int64 array, one entry a word that is not dropped.

        Raises:
            ValueError: if a text is left without a number and `empty` is "error".
        """
        choice("empty", empty, ("error", "keep"))
        found = []
        for row, text in enumerate(texts_of("texts", texts)):
            ids, _, _ = self.spans(text)
            if not ids and empty == "error":
                requirement = "a text with a known word (empty='keep' allows none)"
                raise invalid(f"texts[{row}]", requirement, text)
            found.append(np.array(ids, dtype=np.int64))
        return found

    def spans(self, text: str) -> tuple[list[int], list[tuple[int, int]], int]:
        """Return the numbers of a text's units, and which words each of them covers.

        Args:
            text: a string.

        Returns:
            Numbers as `encode` gives them; for each the places of its first word and of the word
            after its last; and how many words the text has, known or not.

        Raises:
            TypeError: if the text is no string.

        Example:
            >>> v = Vocabulary(["a", "goal", "a goal"], "drop", reserved=(), ngrams=2)
            >>> v.spans("a late goal, a goal")
            ([0, 1, 0, 1, 2], [(0, 1), (2, 3), (3, 4), (4, 5), (3, 5)], 5)
        """
        unknown = self._ids.get(_UNKNOWN_TOKEN, -1) if self.unknown == "token" else -1
        words = self._words(instance("text", text, str))
        ids, places = [], []
        for length in range(1, self.ngrams + 1):
            for start in range(len(words) - length + 1):
                number = self._ids.get(" ".join(words[start : start + length]), unknown)
                if number >= 0:
                    ids.append(number)
                    places.append((start, start + length))
        return ids, places, len(words)

    def decode(self, ids: Iterable[Any]) -> list[str]:
        """Join the words of every row of numbers by blanks; reserved names are left out.

        Raises:
            ValueError: if a number is none of this vocabulary.
        """
        names = list(self._ids)
        texts = []
        for row, numbers in enumerate(ids):
            chosen = np.asarray(numbers)
            if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
                raise mistyped(f"ids[{row}]", "a row of integers", numbers)
            if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(names):
                raise invalid(f"ids[{row}]", f"numbers from 0 to {len(names) - 1}", numbers)
            texts.append(" ".join(names[i] for i in chosen if i >= len(self.reserved)))
        return texts

    def _words(self, text: str) -> Sequence[str]:
        words = self.tokenise(text)
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise mistyped("tokenise(text)", "a list of strings", words)
        return words

    def _units(self, text: str) -> Iterator[str]:
        words = self._words(text)
        for length in range(1, self.ngrams + 1):
            for start in range(len(words) - length + 1):
                yield " ".join(words[start : start + length])
