"""Texts with labels, private attributes and a split: what is fitted on, and what is tested on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import choice, instance, integer, invalid, masked, mistyped
from ..hints import hinted
from ..mechanisms.texts import texts_of
from ..records import Shown

__all__ = ["SPLITS", "Column", "Corpus", "training_texts"]

SPLITS: Final = ("train", "valid", "test")
"""The names of the parts: fitted on, chosen on, evaluated on."""

Column = npt.NDArray[Any]
"""One value a text: int64 or strings, of attributes float64 too; read-only."""


def training_texts(value: Any) -> tuple[str, ...]:
    """Return the texts that may be fitted on: the train part of a split `Corpus`, else all."""
    if isinstance(value, Corpus) and value.split is not None:
        return tuple(value.train)
    return texts_of("texts", value)


def _check_column(name: str, values: Any, size: int, *, fractions: bool = False) -> Column:
    kinds = (int, float, str) if fractions else (int, str)
    one = "a number or a string" if fractions else "an integer or a string"
    requirement = f"{one} for each of the {size:,} texts"
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise mistyped(name, requirement, values)
    if masked(values):
        raise invalid(name, requirement, values)
    entries = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len(entries) != size:
        raise invalid(name, requirement, f"{len(entries):,} values")
    for row, value in enumerate(entries):
        # What stands for a missing value in tables, looked at by name: <NA> answers no comparison.
        if str(value) in ("None", "nan", "<NA>", "NaT") and not isinstance(value, str):
            raise invalid(f"{name}[{row}]", "known: leave out texts without one", value)
        if not isinstance(value, kinds):
            raise mistyped(f"{name}[{row}]", one, value)
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


def _list_values(column: Column) -> str:
    values = np.unique(column).tolist()
    shown = " ".join(map(str, values))
    return shown if len(values) <= 8 and len(shown) <= 60 else f"of {len(values)} kinds"


@hinted
@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Shown):
    """Texts, and what is known of each.

    Iteration and an integer index give texts; a slice, a mask or an array of rows gives a Corpus
    of these rows. Two are equal when texts, labels, attributes, groups and split are, whatever the
    origin.

    Args:
        texts: the texts, a list of strings; kept as a tuple.
        labels: what is to be predicted: an integer or a string for each text; None without.
        attributes: what is to be kept private: name -> column, each with an integer (0 and 1 for
            "has it not" and "has it"), another number, such as an age, or a string for each text.
        split: "train", "valid" or "test" for each text; None before it is split (`text.split`).
        origin: where the texts come from, as tables and pictures show it.
        groups: the author, or another group, of each text, an integer or a string: `text.split`
            keeps the texts of one in one part. None without.
        dropped: number of rows that `read(missing="drop")` left out.

    Raises:
        TypeError: if the texts are one string, an entry is none, or a column holds anything but
            integers or strings (of attributes also other numbers).
        ValueError: if there is no text, one is empty, lengths differ, a value is missing (None,
            NaN), or a split has another name.

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
        """Check and freeze all columns."""
        texts = texts_of("texts", self.texts)
        size, columns = len(texts), {} if self.attributes is None else self.attributes
        if not isinstance(columns, Mapping):
            raise mistyped("attributes", "a mapping from names to columns", columns)
        for name in columns:
            if not isinstance(name, str) or not name.strip():
                raise mistyped("attributes", "a mapping whose keys are names", name)
        split = None if self.split is None else _check_column("split", self.split, size)
        for row, part in enumerate([] if split is None else split.tolist()):
            choice(f"split[{row}]", part, SPLITS)
        kept = {
            "texts": texts,
            "labels": None if self.labels is None else _check_column("labels", self.labels, size),
            "attributes": MappingProxyType(
                {
                    n: _check_column(f"attributes[{n!r}]", v, size, fractions=True)
                    for n, v in columns.items()
                }
            ),
            "split": split,
            "origin": instance("origin", self.origin, str),
            "groups": None if self.groups is None else _check_column("groups", self.groups, size),
            "dropped": integer("dropped", self.dropped, 0),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def train(self) -> Corpus:
        """The texts to fit on."""
        return self._part("train")

    @property
    def valid(self) -> Corpus:
        """The texts to choose on."""
        return self._part("valid")

    @property
    def test(self) -> Corpus:
        """The texts to evaluate on."""
        return self._part("test")

    def _part(self, name: str) -> Corpus:
        if self.split is None:
            raise invalid("split", f"known to have a {name!r} part (see dpcore.text.split)", None)
        if name not in self.split:
            raise invalid("split", f"a split with a {name!r} part", _list_values(self.split))
        part: Corpus = self[self.split == name]
        return part

    def attribute(self, name: str) -> Column:
        """Return the column of an attribute.

        Raises:
            ValueError: if the corpus has none of that name; the message lists those it has.
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
        """Return the text of one row, or the Corpus of several: a slice, a mask or an array."""
        if isinstance(rows, (int, np.integer)) and not isinstance(rows, bool):
            return self.texts[int(rows)]
        if isinstance(rows, (str, bytes)):
            raise mistyped("rows", "an integer, a slice, a mask or an array of rows", rows)
        kept = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        if kept.ndim != 1 or not kept.size:
            raise invalid("rows", "a choice of at least one text", rows)
        return replace(
            self,
            texts=[self.texts[row] for row in kept],
            labels=None if self.labels is None else self.labels[kept],
            attributes={name: column[kept] for name, column in self._columns()},
            split=None if self.split is None else self.split[kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def _columns(self) -> Sequence[tuple[str, Column]]:
        return sorted(self.attributes.items()) if self.attributes else []

    def _content(self) -> tuple[object, ...]:
        columns = [self.labels, self.split, self.groups, *(column for _, column in self._columns())]
        listed = [None if column is None else tuple(column.tolist()) for column in columns]
        return tuple(self.texts), *listed, *(name for name, _ in self._columns())

    def __eq__(self, other: object) -> bool:
        """Return True for equal texts, labels, attributes, groups and split in the same order."""
        if not isinstance(other, Corpus):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash(self._content())

    def __reduce__(self) -> tuple[type[Corpus], tuple[Any, ...]]:
        """Rebuild through the constructor: pickled arrays would come back writeable."""
        fields = self.texts, self.labels, dict(self._columns()), self.split, self.origin
        return type(self), (*fields, self.groups, self.dropped)

    def __repr__(self) -> str:
        """Format number of texts, labels, attributes, groups, part sizes, origin, dropped rows."""
        size, names = len(self), list(self.attributes or ())
        parts = [f"{size:,} text{'s' if size != 1 else ''}"]
        if self.labels is not None:
            parts.append(f"labels {_list_values(self.labels)}")
        if names:
            parts.append(f"attribute{'s' if len(names) > 1 else ''} {' '.join(names)}")
        if self.groups is not None:
            parts.append(f"groups {_list_values(self.groups)}")
        if self.split is not None:
            sizes = {name: int(np.sum(self.split == name)) for name in SPLITS}
            parts.append(", ".join(f"{name} {size:,}" for name, size in sizes.items() if size))
        if self.origin:
            parts.append(self.origin)
        if self.dropped:
            rows = "row" if self.dropped == 1 else "rows"
            parts.append(f"{self.dropped:,} {rows} with an empty cell dropped")
        return f"Corpus({'; '.join(parts)})"
