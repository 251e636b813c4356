"""Class `Corpus` for texts with labels, `split` for random splits, `Vocabulary` to number words.

`split` puts equal texts into the same part: train, valid or test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..errors import choice, has_masked, instance, integer, invalid, mistyped, real
from ..mechanisms.texts import as_texts
from ..records import set_fields
from ..report.shown import Shown
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors

SPLITS: Final = ("train", "valid", "test")
"""Names of the parts of a split corpus: models are fitted on "train", chosen on "valid" and
evaluated on "test"."""

Column = npt.NDArray[Any]
"""Read-only array with one value per text: int64 or strings, for attributes also float64."""

Tokeniser = Callable[[str], Sequence[str]]
Ids = npt.NDArray[np.int64]
_UNKNOWN_TOKEN: Final = "<unk>"
_WORD_PATTERN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def all_or_training_texts(value: Any) -> tuple[str, ...]:
    """Return the texts in `value`. For a `Corpus` with a split, return only the training texts."""
    if isinstance(value, Corpus) and value.split is not None:
        return tuple(value.train)
    return as_texts("texts", value)


def _check_column(name: str, values: Any, size: int, *, fractions: bool = False) -> Column:
    kinds = (int, float, str) if fractions else (int, str)
    requirement_of_entry = "a number or a string" if fractions else "an integer or a string"
    requirement = f"{requirement_of_entry} for each of the {size:,} texts"
    is_single = isinstance(values, (str, bytes, Mapping)) or getattr(values, "ndim", 1) == 0
    if is_single or not isinstance(values, Iterable):
        raise mistyped(name, requirement, values)
    if has_masked(values):
        raise invalid(name, requirement, values)
    entries = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len(entries) != size:
        raise invalid(name, requirement, f"{len(entries):,} values")
    for row, value in enumerate(entries):
        # Missing values of tables are recognised by name, because <NA> cannot be compared.
        if str(value) in ("None", "nan", "<NA>", "NaT") and not isinstance(value, str):
            raise invalid(f"{name}[{row}]", "known: leave out texts without one", value)
        if not isinstance(value, kinds):
            raise mistyped(f"{name}[{row}]", requirement_of_entry, value)
        if isinstance(value, float) and not isfinite(value):
            raise invalid(f"{name}[{row}]", "a finite number", value)
        if isinstance(value, str) != isinstance(entries[0], str):
            requirement = f"of the same type as {name}[0], {entries[0]!r}"
            raise mistyped(f"{name}[{row}]", requirement, value)
    if any(isinstance(value, int) and abs(value) >= 2**63 for value in entries):
        raise invalid(name, "integers of at most 63 bits", values)
    if isinstance(entries[0], str):
        column: Column = np.array(entries)
    else:
        is_whole = not any(isinstance(value, float) for value in entries)
        column = np.array(entries, np.int64 if is_whole else np.float64)
    column.setflags(write=False)
    return column


def _values_or_count(column: Column) -> str:
    values = np.unique(column).tolist()
    shown = " ".join(map(str, values))
    return shown if len(values) <= 8 and len(shown) <= 60 else f"of {len(values)} kinds"


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Shown):
    """Texts with their labels, attributes, groups and split.

    Iteration over a Corpus yields the texts. `corpus[3]` is one text. If the index is a slice, a
    boolean mask or an array of positions, the result is a Corpus of the selected texts. Two corpora
    are equal if their texts, labels, attributes, groups and split are equal. The comparison ignores
    `origin` and `dropped`.

    Args:
        texts: list of strings. The Corpus stores them as a tuple.
        labels: the label of each text, an integer or a string. Classifiers predict these labels.
            None means that the texts have no labels.
        attributes: private attributes, as a mapping from the name of an attribute to a list of its
            values, one value per text. The values are integers (0 and 1 for "no" and "yes"), other
            numbers such as ages, or strings.
        split: the part to which each text belongs, "train", "valid" or "test". None means that the
            corpus has no split; `dpcore.text.split` adds one.
        origin: text that states where the texts come from, for tables and figures.
        groups: group of each text, such as its author, as an integer or a string.
            `dpcore.text.split` keeps the texts of a group in the same part. None means that the
            texts have no groups.
        dropped: number of rows of the file that `dpcore.text.read` left out because a cell of the
            row was empty.

    Raises:
        TypeError: if `texts` is a single string, an entry of `texts` is not a string, or a label,
            group or attribute value has a type that is not allowed.
        ValueError: for one of these reasons:

            - `texts` is empty, or a text is empty;
            - `labels`, `split`, `groups` or a list in `attributes` does not have one value per
              text;
            - a label, group or attribute value is missing (None or NaN);
            - `split` contains an unknown name.

    Example:
        >>> corpus = Corpus(
        ...     ["a goal in the last minute", "shares fell", "the coach stays"],
        ...     labels=["sport", "business", "sport"],
        ...     attributes={"male": [1, 0, 1]},
        ...     split=["train", "train", "test"],
        ... )
        >>> corpus
        Corpus(3 texts; labels business sport; attribute male; train 2, test 1)
        >>> corpus.train.labels
        array(['sport', 'business'], dtype='<U8')
        >>> corpus[1], corpus[1:].attribute("male")
        ('shares fell', array([0, 1]))
    """

    texts: Sequence[str]
    labels: Any = None
    attributes: Mapping[str, Any] | None = None
    split: Any = None
    origin: str = ""
    groups: Any = None
    dropped: int = 0

    def __post_init__(self) -> None:
        """Check all fields, and make the arrays read-only."""
        texts = as_texts("texts", self.texts)
        size, columns = len(texts), {} if self.attributes is None else self.attributes
        if not isinstance(columns, Mapping):
            raise mistyped("attributes", "a mapping from names to columns", columns)
        attributes = dict[str, Column]()
        for name, column in columns.items():
            if not isinstance(name, str) or not name.strip():
                raise mistyped("attributes", "a mapping whose keys are names", name)
            attributes[name] = _check_column(f"attributes[{name!r}]", column, size, fractions=True)
        others = {
            name: None if value is None else _check_column(name, value, size)
            for name, value in self._fields_per_text().items()
        }
        for row, part in enumerate([] if others["split"] is None else others["split"].tolist()):
            choice(f"split[{row}]", part, SPLITS)
        origin, dropped = instance("origin", self.origin, str), integer("dropped", self.dropped, 0)
        set_fields(
            self, texts=texts, attributes=MappingProxyType(attributes), origin=origin,
            dropped=dropped, **others,
        )  # fmt: skip

    @property
    def train(self) -> Corpus:
        """Training part: a Corpus of the texts on which models are trained."""
        return self._select_part("train")

    @property
    def valid(self) -> Corpus:
        """Validation part: a Corpus of the texts on which the best model is chosen."""
        return self._select_part("valid")

    @property
    def test(self) -> Corpus:
        """Test part: a Corpus of the texts on which the chosen model is evaluated."""
        return self._select_part("test")

    def _select_part(self, name: str) -> Corpus:
        if self.split is None:
            raise invalid("split", f"known to have a {name!r} part (see dpcore.text.split)", None)
        if name not in self.split:
            raise invalid("split", f"a split with a {name!r} part", _values_or_count(self.split))
        part: Corpus = self[self.split == name]
        return part

    def attribute(self, name: str) -> Column:
        """Return the values of one attribute of this corpus as an array with one value per text.

        Raises:
            ValueError: if the corpus has no attribute with this name. The message lists the
                attributes of the corpus.
        """
        if not self.attributes:
            raise invalid("attribute", "in the corpus, which has no attributes", name)
        column: Column = self.attributes[choice("attribute", name, tuple(self.attributes))]
        return column

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the texts."""
        return iter(self.texts)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of one row, or the Corpus of several rows."""
        if isinstance(rows, (int, np.integer)) and not isinstance(rows, bool):
            return self.texts[int(rows)]
        if isinstance(rows, (str, bytes)):
            raise mistyped("rows", "an integer, a slice, a mask or an array of rows", rows)
        kept = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        if kept.ndim != 1 or not kept.size:
            raise invalid("rows", "a choice of at least one text", rows)
        texts = [self.texts[row] for row in kept]
        attributes = {name: column[kept] for name, column in self._attributes()}
        fields = self._fields_per_text().items()
        others: Any = {name: None if entries is None else entries[kept] for name, entries in fields}
        return replace(self, texts=texts, attributes=attributes, **others)

    def _fields_per_text(self) -> dict[str, Any]:
        return {"labels": self.labels, "split": self.split, "groups": self.groups}

    def _attributes(self) -> Sequence[tuple[str, Column]]:
        return sorted(self.attributes.items()) if self.attributes else []

    def _content(self) -> tuple[object, ...]:
        columns = [*self._fields_per_text().values(), *(column for _, column in self._attributes())]
        listed = [None if column is None else tuple(column.tolist()) for column in columns]
        return tuple(self.texts), *listed, *(name for name, _ in self._attributes())

    def __eq__(self, other: object) -> bool:
        """Return True if all fields except `origin` and `dropped` are equal."""
        if not isinstance(other, Corpus):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash(self._content())

    def __reduce__(self) -> tuple[type[Corpus], tuple[Any, ...]]:
        """Return a recipe for pickle that calls the constructor, so that arrays stay read-only."""
        fields = self.texts, self.labels, dict(self._attributes()), self.split, self.origin
        return type(self), (*fields, self.groups, self.dropped)

    def __repr__(self) -> str:
        """Return one line with the number of texts, the labels, attributes, split and origin."""
        size, names = len(self), list(self.attributes or ())
        parts = [f"{size:,} text{'s' if size != 1 else ''}"]
        if self.labels is not None:
            parts.append(f"labels {_values_or_count(self.labels)}")
        if names:
            parts.append(f"attribute{'s' if len(names) > 1 else ''} {' '.join(names)}")
        if self.groups is not None:
            parts.append(f"groups {_values_or_count(self.groups)}")
        if self.split is not None:
            sizes = {name: int(np.sum(self.split == name)) for name in SPLITS}
            parts.append(", ".join(f"{name} {size:,}" for name, size in sizes.items() if size))
        if self.origin:
            parts.append(self.origin)
        if self.dropped:
            rows = "row" if self.dropped == 1 else "rows"
            parts.append(f"{self.dropped:,} {rows} with an empty cell dropped")
        return f"Corpus({'; '.join(parts)})"


def fold_case_and_blanks(text: str) -> str:
    """Convert a text to lower case, and replace each run of white space with one blank.

    Two texts count as equal if this function returns the same string for both.

    Example:
        >>> fold_case_and_blanks("A  Goal ") == fold_case_and_blanks("a goal")
        True
    """
    return " ".join(text.split()).casefold()


@explain_argument_errors
def split(
    corpus: Corpus,
    shares: Sequence[float] | Mapping[str, float] = (0.8, 0.1, 0.1),
    rng: Rng = None,
    *,
    group: Any = None,
) -> Corpus:
    """Split a corpus at random into train, valid and test, with equal texts in the same part.

    Two texts count as equal if they differ only in letter case or white space. The rows of equal
    texts form a group (the argument `group` can make larger groups). `split` puts the groups in
    random order, one after another. The shares divide this sequence of rows into three parts. If a
    boundary between two parts falls inside a group, the whole group belongs to the part that
    contains the middle of the group. Therefore a part can be larger or smaller than its share by
    about one group. `split` does not balance the labels.

    Args:
        corpus: the texts. If the corpus already has a split, the new split replaces the old split.
        shares: shares of the rows in train, valid and test, each at least 0, with sum 1. A mapping
            from "train", "valid" and "test" to shares is also allowed. A part that is missing in
            the mapping has share 0.
        rng: None, an int seed or a numpy Generator. The field `origin` of the result states the
            seed.
        group: group of each text, such as its author: the name of an attribute, or a list with one
            value per text. All texts of a group are in the same part. If two groups share a text,
            both groups are in the same part. If `group` is None, the groups come from the field
            `groups` of the corpus (if this field is not None).

    Returns:
        A copy of the corpus with the new split. The order of the texts does not change.

    Raises:
        TypeError: if `corpus` is not a Corpus, or the shares are not numbers.
        ValueError: if the sum of the shares is not 1, or a part would have no text, for example
            because one group contains all texts.

    Example:
        >>> corpus = Corpus([f"text {i % 50}" for i in range(100)])
        >>> split(corpus, (0.8, 0.1, 0.1), rng=1)
        Corpus(100 texts; train 80, valid 10, test 10; split 0.8/0.1/0.1, seed 1)
    """
    instance("corpus", corpus, Corpus)
    fractions, seed = _read_shares(shares), to_seed(rng)
    groups = _group_of_each_text_or_none(corpus, group)
    part = part_names(corpus.texts, fractions, np.random.default_rng(seed), groups)
    shown = "/".join(f"{share:g}" for share in fractions)
    origin = f"{corpus.origin}; " if corpus.origin else ""
    how = "" if groups is None else " by groups"
    return replace(corpus, split=part, origin=f"{origin}split {shown}{how}, seed {seed}")


def _group_of_each_text_or_none(corpus: Corpus, group: Any) -> Any:
    """Return the group of each text, or None if the texts have no groups."""
    if group is None:
        return corpus.groups
    if isinstance(group, str):
        if not corpus.attributes:
            raise invalid("group", "an attribute of the corpus, which has none", group)
        return corpus.attribute(choice("group", group, tuple(corpus.attributes)))
    return replace(corpus, groups=group).groups


def part_names(
    texts: Sequence[str],
    shares: Sequence[float],
    rng: np.random.Generator,
    column: Column | None = None,
) -> list[str]:
    """Choose a part ("train", "valid" or "test") at random for each text, and return the parts.

    `shares` has three numbers: the shares of the texts for train, valid and test. Equal texts are
    in the same part. `column` has one value per text. Texts with the same value in `column` are in
    the same part.
    """
    group = _number_components(texts, column)
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    middle = np.empty(len(sizes))
    middle[order] = np.cumsum(sizes[order]) - sizes[order] / 2
    # A share of 0 gets no text, even if rounding would assign one.
    kept = [name for name, share in zip(SPLITS, shares, strict=True) if share > 0]
    ends = np.cumsum([share for share in shares if share > 0])[:-1] * len(texts)
    part = [kept[i] for i in np.searchsorted(ends, middle, side="right")[group]]
    for name in kept:
        if name not in part:
            if column is not None:
                requirement = f"of enough groups for a {name!r} part"
                values = len(np.unique(column))
                problem = (
                    f"{values:,} groups, {len(sizes):,} without a text in common (shared texts "
                )
                problem += "join groups: give finer ones, or leave group out)"
                raise invalid("group", requirement, problem)
            requirement = f"of enough different texts for a {name!r} part"
            raise invalid("corpus", requirement, f"{len(sizes):,} different texts")
    return part


def _number_components(texts: Sequence[str], column: Column | None) -> npt.NDArray[np.int64]:
    """Return a set number per text; equal texts and texts of one group get the same number."""
    number: dict[str, int] = {}
    alike = np.array([number.setdefault(fold_case_and_blanks(text), len(number)) for text in texts])
    if column is None:
        return alike
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    groups = len(number) + np.unique(column, return_inverse=True)[1]
    size = int(groups.max()) + 1
    graph = coo_array((np.ones(len(alike)), (alike, groups)), shape=(size, size))
    components: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1][alike]
    return components


def _read_shares(shares: Any) -> list[float]:
    requirement = "three shares, of train, valid and test, or a mapping from their names"
    if isinstance(shares, Mapping):
        for name in shares:
            choice("shares", name, SPLITS)
        shares = [shares.get(name, 0.0) for name in SPLITS]
    elif isinstance(shares, (str, bytes)) or not isinstance(shares, (Sequence, np.ndarray)):
        raise mistyped("shares", requirement, shares)
    if len(shares) != len(SPLITS):
        raise invalid("shares", requirement, shares)
    fractions = [real(f"shares[{i}]", share, low=0.0) for i, share in enumerate(shares)]
    if abs(sum(fractions) - 1.0) > 1e-9:
        raise invalid("shares", "shares that add up to 1", shares)
    return fractions


def split_text(tokenise: Tokeniser, text: str) -> list[str]:
    """Split a text into words with the function `tokenise`, and return the list of words.

    Raises:
        TypeError: if `tokenise` does not return a list of strings.
    """
    words: Any = tokenise(text)
    is_list = isinstance(words, Iterable) and not isinstance(words, str)
    items = list(words) if is_list else [words]
    if not is_list or not all(isinstance(item, str) for item in items):
        raise mistyped("tokenise(text)", "a list of strings", words)
    return items


@explain_argument_errors
def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case.

    A word consists of letters and digits, with single apostrophes inside the word.

    Example:
        >>> words_of("The coach's 3rd win, at last!")
        ['the', "coach's", '3rd', 'win', 'at', 'last']
    """
    return _WORD_PATTERN.findall(text.lower())


@explain_argument_errors
@dataclass(frozen=True)
class Vocabulary(Shown):
    """Mapping from words to numbers, with a rule for unknown words.

    The numbers start at 0. The names in `reserved` (by default only "<pad>") have the first
    numbers. If `unknown` is "token", the name "<unk>" has the next number. The words are numbered
    after these names. A torch embedding needs `len(vocabulary)` rows. If a word in a text is spelt
    like a reserved name, the word gets the number of this name. With the default tokeniser
    `words_of`, no word is spelt like "<pad>", because words have only letters, digits and
    apostrophes.

    Args:
        words: the words, each once. An n-gram (n adjacent words) is one string with a blank between
            the words.
        unknown: treatment of words that are not in `words`. "drop" leaves these words out. "token"
            gives each of these words the number of "<unk>".
        reserved: names that have the first numbers, such as "<pad>" for padding. No entry of
            `words` may be one of these names.
        ngrams: largest number of words in an n-gram. With 1, the method `encode` converts single
            words. With n, `encode` converts all runs of 1 to n adjacent words: first all single
            words, then all pairs, and so on.
        tokenise: function that returns the list of words of a text.

    Raises:
        ValueError: if a word occurs twice or is a reserved name, or an argument is out of range.

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
        """Create a vocabulary of the words that occur in texts, with the most frequent words first.

        Words of equal frequency are in alphabetical order.

        Args:
            texts: a list of strings, or a `Corpus`. If the Corpus has a split, only the words of
                its training part are used.
            unknown: treatment of words that are not in the vocabulary, when a text is converted to
                numbers. "drop" leaves these words out. "token" gives each of these words the number
                of "<unk>".
            min_count: smallest number of times that a word must occur in the texts. Words that
                occur fewer times are left out of the vocabulary.
            max_size: largest number of words in the vocabulary, without the reserved names. If
                there are more words, the most frequent words are kept. None keeps all words.
            reserved: names that have the first numbers, such as "<pad>" for padding.
            ngrams: largest number of adjacent words that form one entry of the vocabulary; 1 means
                single words.
            tokenise: function that returns the list of words of a text.

        Raises:
            ValueError: if no word occurs at least `min_count` times.
        """
        integer("min_count", min_count, 1)
        if max_size is not None:
            integer("max_size", max_size, 1)
        empty = cls((), unknown, reserved, ngrams, tokenise)
        each = map(empty._split_words, all_or_training_texts(texts))
        counts = Counter(unit for words in each for unit, _ in empty._iterate_ngrams(words))
        often = [w for w, times in counts.items() if times >= min_count and w not in empty]
        often.sort(key=lambda word: (-counts[word], word))
        if not often:
            most = max(counts.values(), default=0)
            requirement = f"at most {most}, how often the most frequent word occurs"
            raise invalid("min_count", requirement, min_count)
        return cls(often[:max_size], unknown, reserved, ngrams, tokenise)

    def __len__(self) -> int:
        """Return the number of words and reserved names, plus 1 if "<unk>" has a number."""
        return len(self._ids)

    def __contains__(self, word: object) -> bool:
        """Return True if the word has its own number in the vocabulary."""
        return word in self._ids

    def __repr__(self) -> str:
        """Return one line with the number of words and the value of `unknown`."""
        kind = "words" if self.ngrams == 1 else f"runs of 1 to {self.ngrams} words"
        return f"Vocabulary({len(self.words):,} {kind}; unknown={self.unknown!r})"

    def encode(self, texts: Any, *, empty: Literal["error", "keep"] = "error") -> list[Ids]:
        """Convert each text to an array with the numbers of its words in this vocabulary.

        Args:
            texts: a list of strings.
            empty: treatment of a text whose array would be empty. The array would be empty if
                `unknown` of the vocabulary is "drop" and no word of the text is in the vocabulary.
                "error" raises an error. "keep" returns an empty array.

        Returns:
            One int64 array per text. The array has one number for each word (or n-gram) of the text
            that is in the vocabulary. For other words and n-grams, the array has the number of
            "<unk>" if `unknown` is "token". If `unknown` is "drop", other words and n-grams are
            left out.

        Raises:
            ValueError: if the array of a text would be empty and `empty` is "error".
        """
        choice("empty", empty, ("error", "keep"))
        codes = []
        for row, text in enumerate(as_texts("texts", texts)):
            ids, _, _ = self.spans(text)
            if not ids and empty == "error":
                requirement = "a text with a known word (empty='keep' allows none)"
                raise invalid(f"texts[{row}]", requirement, text)
            codes.append(np.array(ids, dtype=np.int64))
        return codes

    def spans(self, text: str) -> tuple[list[int], list[tuple[int, int]], int]:
        """Return the numbers of the words and n-grams of a text, and their positions in the text.

        Args:
            text: a string.

        Returns:
            A tuple with three entries:

            - the numbers of the words and n-grams, as the method `encode` returns them;
            - for each number, a pair: the position of the first word of the n-gram, and the
              position after its last word. Positions count the words of the text from 0;
            - the number of words in the text, including words that are not in the vocabulary.

        Raises:
            TypeError: if the text is not a string.

        Example:
            >>> v = Vocabulary(["a", "goal", "a goal"], "drop", reserved=(), ngrams=2)
            >>> v.spans("a late goal, a goal")
            ([0, 1, 0, 1, 2], [(0, 1), (2, 3), (3, 4), (4, 5), (3, 5)], 5)
        """
        unknown = self._ids.get(_UNKNOWN_TOKEN, -1) if self.unknown == "token" else -1
        words = self._split_words(instance("text", text, str))
        ids, places = [], []
        for unit, place in self._iterate_ngrams(words):
            if (number := self._ids.get(unit, unknown)) >= 0:
                ids.append(number)
                places.append(place)
        return ids, places, len(words)

    def decode(self, ids: Iterable[Any]) -> list[str]:
        """Convert each list of word numbers to a text, and leave out the numbers of reserved names.

        Raises:
            ValueError: if a number is not in this vocabulary.
        """
        names = list(self._ids)
        texts = []
        for row, numbers in enumerate(ids):
            try:
                chosen = np.asarray(numbers)
            except ValueError:
                raise mistyped(f"ids[{row}]", "a row of integers", numbers) from None
            if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
                raise mistyped(f"ids[{row}]", "a row of integers", numbers)
            if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(names):
                raise invalid(f"ids[{row}]", f"numbers from 0 to {len(names) - 1}", numbers)
            texts.append(" ".join(names[i] for i in chosen if i >= len(self.reserved)))
        return texts

    def _split_words(self, text: str) -> list[str]:
        return split_text(self.tokenise, text)

    def _iterate_ngrams(self, words: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield each n-gram of the words, with its start and end positions (end excluded)."""
        for length in range(1, self.ngrams + 1):
            for start in range(len(words) - length + 1):
                yield " ".join(words[start : start + length]), (start, start + length)
