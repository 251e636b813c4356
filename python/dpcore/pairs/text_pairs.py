"""Pairs of texts for a search: a text of a corpus, and the same text with one changed word."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..errors import instance, invalid, mistyped
from ..packages import has_all
from ..progress import Progress
from ..records import Pair, Record, set_fields
from ..report.shown import Shown
from ..suggestions import explain_argument_errors

CHANGES: Final = ("number", "name", "negation", "rare word", "capital letters", "word")
"""Kinds of changes, in the order in which a search tries them."""

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019.,:/-][^\W_]+)*")
_SENTENCE_ENDS: Final = ("", ".", "!", "?", ":")
_OPENING: Final = " \t\n\"'([\u2018\u201c\u00ab-"
"""Characters between the end of a sentence and the first word of the next sentence."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Texts(Shown):
    """Set of all texts whose words occur in a corpus; a search looks for neighbours in this set.

    Pass this object to `dpcore.pairs.search` as `domain`.

    A search takes a text from the corpus and changes one word of it. There are six kinds of
    changes:

    - "number": a word with a digit is replaced by another word with a digit.
    - "name": a name is replaced by another name. A name is a word that begins with a capital letter
      inside a sentence, and never occurs in lower case in the corpus.
    - "negation": a word is replaced by a negation, or a negation is replaced by another word. A
      negation may also be inserted or removed, if the neighbour relation allows texts with
      different numbers of words.
    - "rare word": a word is replaced by a rare word. Rare words are the words with the smallest
      frequency in the corpus.
    - "capital letters": a word is replaced by the same word with other capital letters.
    - "word": a word is replaced by a word that belongs to none of the kinds above.

    Args:
        corpus: the texts, as a list of strings or as an object with an attribute `texts` (such as a
            `dpcore.text.Corpus`).
        negations: words that negate, in lower case. Words that end in "n't" are always negations.
        progress: True to show a progress bar while the texts are read. None, the default, shows the
            bar in an interactive terminal or a notebook.

    Raises:
        TypeError: if the corpus is a single string, or if a text or a negation is not a string.
        ValueError: if the corpus has no text, or if a text is empty.

    Example:
        >>> texts = Texts(["take 7 pills a day", "Anna takes 12 pills", "she met Anna and Karl"])
        >>> pair = texts.change("number", np.random.default_rng(1))
        >>> pair.x, pair.x_prime, texts.describe_change(pair)
        ('take 7 pills a day', 'take 12 pills a day', "number: '12' for '7'")
        >>> texts.contains("Karl takes 7 pills"), texts.contains("Karl takes 8 pills")
        (True, False)
    """

    corpus: Any
    negations: Sequence[str] = ("not", "no", "never")
    progress: bool | None = None
    texts: tuple[str, ...] = field(init=False)
    _kinds: dict[str, str] = field(init=False)
    _words: dict[str, list[str]] = field(init=False)
    _places: dict[str, frozenset[str]] = field(init=False)
    _rows: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        """Read the words of all texts, and find the texts that allow each kind of change."""
        corpus = self.corpus.texts if has_all(self.corpus, "texts") else self.corpus
        texts = _check_texts("corpus", corpus)
        set_fields(self, texts=texts, negations=_check_texts("negations", self.negations))
        counts, names = Counter[str](), set[str]()
        with Progress("reading the words of the texts", 2 * len(texts), self.progress) as bar:
            for text in texts:
                counts.update(_WORD.findall(text))
                names |= _find_capitalised_inside_sentences(text)
                bar.advance(1)
            names = {name for name in names if name.lower() not in counts}
            kinds = {word: self._classify_word(word, names) for word in counts}
            numbers = {counts[word] for word, kind in kinds.items() if kind == "word"}
            # If all words have the same frequency, no word is rare.
            rarest = min(numbers) if len(numbers) > 1 else 0
            for word, kind in kinds.items():
                if kind == "word" and counts[word] == rarest:
                    kinds[word] = "rare word"
            words = {kind: [word for word in kinds if kinds[word] == kind] for kind in CHANGES}
            forms = Counter(word.lower() for word in counts)
            words["capital letters"] = [word for word in counts if forms[word.lower()] > 1]
            plain = words["rare word"] + words["word"]
            # If the corpus has no negation, a negation is inserted; if a word has only one form, a
            # second form is made.
            places = {kind: frozenset(words[kind] or plain) for kind in CHANGES}
            places |= {kind: frozenset(words[kind]) for kind in ("number", "name")}
            places["rare word"] = frozenset(plain if words["rare word"] else ())
            if len(words["word"]) < 2:
                words["word"], places["word"] = plain, frozenset(plain)
            rows: dict[str, list[int]] = {kind: [] for kind in CHANGES}
            for row, text in enumerate(texts):
                distinct = set(_WORD.findall(text))
                for kind in CHANGES:
                    if not places[kind].isdisjoint(distinct):
                        rows[kind].append(row)
                bar.advance(1)
        set_fields(self, _kinds=kinds, _words=words, _places=places, _rows=rows)

    def __repr__(self) -> str:
        """Return the numbers of texts and words, without the texts, which may be private."""
        return f"Texts({len(self.texts):,} texts, {len(self._kinds):,} words)"

    @property
    def dim(self) -> int:
        """Number of words of the longest text in the corpus, at least 1."""
        return max(1, *(len(_WORD.findall(text)) for text in self.texts))

    def draw(self, rng: np.random.Generator) -> str:
        """Draw a random text from the corpus."""
        instance("rng", rng, np.random.Generator)
        return self.texts[int(rng.integers(len(self.texts)))]

    def contains(self, x: Any) -> bool:
        """Return True if x is a text that is not empty, and all its words occur in the corpus."""
        is_text = isinstance(x, str) and bool(x.strip())
        return is_text and all(word in self._kinds for word in _WORD.findall(x))

    def starts(self, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs of texts with which a search begins. The iterator never ends.

        The first text of a pair is drawn from the corpus. In the second text, one word is changed.
        The kinds of changes, such as "number" or "name", take turns.

        The search skips pairs that are not neighbours by the neighbour relation of the search.
        """
        for kind in itertools.cycle([kind for kind in CHANGES if self._rows[kind]]):
            yield self.change(kind, rng)

    def change(self, kind: str, rng: np.random.Generator) -> Pair:
        """Draw a text from the corpus, change one word in the text, and return both texts.

        Args:
            kind: kind of the change: "number", "name", "negation", "rare word", "capital letters"
                or "word". The documentation of the class `Texts` explains these kinds.
            rng: generator that chooses the text, the word and its replacement.

        Returns:
            A pair: the text and the changed text. If the corpus has no other word that fits,
            the two texts are equal.

        Raises:
            ValueError: if `kind` has another value, or if this kind of change is not possible in
                any text of the corpus.
        """
        rows = self._rows.get(kind)
        if not rows:
            raise invalid("kind", f"one of {[name for name in CHANGES if self._rows[name]]}", kind)
        text = self.texts[rows[int(rng.integers(len(rows)))]]
        matches = [match for match in _WORD.finditer(text) if match[0] in self._places[kind]]
        match = matches[int(rng.integers(len(matches)))]
        word, (start, end) = match[0], match.span()
        new = self._draw_word(kind, word, rng)
        if kind == "negation" and rng.integers(2):
            if self._kinds[word] == "negation":
                removed = f"{text[:start].rstrip()} {text[end:].lstrip()}".strip()
                return Pair(text, removed or text)
            new = f"{new} {word}"
        return Pair(text, text[:start] + new + text[end:])

    def move(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """Draw a text from the corpus and change one word in the text; return both texts.

        The two texts in `pair` differ in one word of some kind (such as "number" or "name"). The
        changed word is of the same kind.
        """
        return self.change(self.describe_change(pair).partition(":")[0], rng)

    def describe_change(self, pair: Pair) -> str:
        """Describe how two texts differ, such as "number: '12' for '7'".

        The description consists of the kind of the change and the words that differ.
        """
        first, second = _remove_common_prefix(_WORD.findall(pair.x), _WORD.findall(pair.x_prime))
        first, second = (words[::-1] for words in _remove_common_prefix(first[::-1], second[::-1]))
        kinds = {self._kinds.get(word) or self._classify_word(word, ()) for word in first + second}
        before, after = " ".join(first), " ".join(second)
        kind = next((kind for kind in CHANGES if kind in kinds), "word")
        if before.lower() == after.lower():
            kind = "capital letters"
        if not (before and after):
            return f"{kind}: {after or before!r} {'removed' if before else 'inserted'}"
        return f"{kind}: {after!r} for {before!r}"

    def _draw_word(self, kind: str, word: str, rng: np.random.Generator) -> str:
        """Draw a word that replaces `word` in a change of the kind `kind`, such as "name"."""
        if kind == "capital letters":
            forms = {word.lower(), word.upper(), word.capitalize()} - {word}
            pool = sorted(forms & self._kinds.keys() or forms)
        elif kind == "negation" and self._kinds[word] != "negation":
            pool = [new for new in self.negations if new in self._kinds] or [*self.negations]
        else:
            pool = self._words["word" if kind == "negation" else kind]
        if not pool:
            return word
        place = int(rng.integers(len(pool)))
        # If the word itself is drawn, the next word is taken.
        return pool[place] if pool[place] != word else pool[(place + 1) % len(pool)]

    def _classify_word(self, word: str, proper_names: Iterable[str]) -> str:
        """Return the kind of a word: "number", "negation", "name" or "word" (also a rare word)."""
        if any(letter.isdigit() for letter in word):
            return "number"
        if word.lower() in self.negations or word.lower().endswith(("n't", "n\u2019t")):
            return "negation"
        return "name" if word in proper_names else "word"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnyTexts(Record, word="AnyTexts"):
    """Neighbour relation: any two different texts are neighbours.

    The function `dpcore.pairs.search` does not try all pairs of texts. It tries only pairs in which
    the two texts differ in one word, or one text has an additional negation.

    Example:
        >>> AnyTexts().holds(Pair("no fever", "a fever and a cough"), Texts(["a fever"]))
        True
    """

    def holds(self, pair: Pair, domain: Any) -> bool:
        """Return True if the two inputs are different texts that are not empty."""
        texts = pair.x, pair.x_prime
        is_texts = all(isinstance(text, str) and text.strip() for text in texts)
        return is_texts and texts[0] != texts[1]

    def starts(self, domain: Any, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs of texts with which a search begins. The iterator never ends.

        The first text of a pair is drawn from the corpus in `domain`. In the second text, one word
        is changed. The kinds of changes, such as "number" or "name", take turns.

        Raises:
            TypeError: if `domain` is not an instance of `Texts`.
        """
        return instance("domain", domain, Texts).starts(rng)

    def move(self, pair: Pair, domain: Any, rng: np.random.Generator) -> Pair:
        """Draw a text from the corpus in `domain`, change one word, and return both texts.

        The two texts in `pair` differ in one word of some kind (such as "number" or "name"). The
        changed word is of the same kind.

        Raises:
            TypeError: if `domain` is not an instance of `Texts`.
        """
        return instance("domain", domain, Texts).move(pair, rng)


def _find_capitalised_inside_sentences(text: str) -> set[str]:
    """Find the words that begin with a capital letter but do not begin a sentence."""
    return {match[0] for match in _WORD.finditer(text)
            if match[0][0].isupper() and len(match[0]) > 1
            and text[: match.start()].rstrip(_OPENING)[-1:] not in _SENTENCE_ENDS}  # fmt: skip


def _remove_common_prefix(first: list[str], second: list[str]) -> tuple[list[str], list[str]]:
    """Remove the common beginning of two lists of words from these lists."""
    shared = zip(first, second, strict=False)
    length = sum(1 for _ in itertools.takewhile(lambda words: words[0] == words[1], shared))
    return first[length:], second[length:]


def _check_texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise mistyped(name, "a list of texts, or an object with texts", value)
    texts = tuple(value)
    if not texts:
        raise invalid(name, "at least one text", value)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise mistyped(f"{name}[{row}]", "a text (a string)", text)
        if not text.strip():
            raise invalid(f"{name}[{row}]", "a text that is not empty", text)
    return texts
