"""A file of texts, line by line: what is wrong with it is said with its name, origin and line."""

from __future__ import annotations

import codecs
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Final

from ...errors import about, message
from ..corpus import Corpus

__all__ = ["File", "Row", "corpus_of", "missing_file", "opened"]


@dataclass(frozen=True, slots=True)
class Row:
    """One text as a reader found it; a label or an attribute in letters may be a number yet.

    `empty` is the place of an empty cell, such as "line 3 of a.csv, column 'age'".
    """

    text: str
    label: int | str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    group: int | str | None = None
    empty: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file or of a member of an archive.

    Args:
        name: what messages call it.
        origin: where such a file is from.
        content: the bytes.
    """

    name: str
    origin: str
    content: bytes

    def error(self, line: int, requirement: str, found: object) -> ValueError:
        """Return the error that states what a line must be, and what it is."""
        return about(ValueError(message(self.place(line), requirement, found)), "path")

    def place(self, line: int) -> str:
        """Return the name of a line in messages: its number and its file."""
        return f"line {line:,} of {self.full_name}"

    @property
    def full_name(self) -> str:
        """Name and origin."""
        return f"{self.name} ({self.origin})" if self.origin else self.name

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of every line, without its end.

        Lines end at a line feed alone: what else Python takes for an end stands inside real texts.
        """
        content = self.content.removeprefix(codecs.BOM_UTF8)
        for number, line in enumerate(content.split(b"\n"), 1):
            yield number, self.decoded(number, line).removesuffix("\r")

    def decoded(self, number: int, line: bytes) -> str:
        """Decode the text of a line; raise an error where it is not UTF-8."""
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            found = line[max(0, error.start - 10) : error.end + 10]
            raise self.error(number, "text in UTF-8", found) from None

    def filled(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of every line that holds more than white space."""
        return ((number, line) for number, line in self.lines() if line.strip())

    def text(self, line: int, value: object) -> str:
        """Return a text without the white space around it; raise an error if nothing is left."""
        if not isinstance(value, str) or not value.strip():
            raise self.error(line, "a text that is not empty", value)
        return value.strip()


def opened(path: Path, origin: str = "", member: str | None = None) -> File:
    """Read a file, or a member of a zip archive.

    Raises:
        FileNotFoundError: if there is none; the message says what it is and where it is from.
        ValueError: if the archive is none, or lacks the member.
    """
    what = f"a file of texts{f' from {origin}' if origin else ''}"
    if not path.is_file():
        hint = f"{what} (the README of the data says where it comes from)" if origin else what
        raise missing_file(path, hint)
    if member is None:
        return File(path.name, origin, path.read_bytes())
    try:
        with zipfile.ZipFile(path) as archive:
            return File(f"{path.name}:{member}", origin, archive.read(member))
    except (zipfile.BadZipFile, KeyError) as error:
        requirement = f"a zip archive that holds {member} ({origin})"
        text = f"{message('path', requirement, str(path))}: {error}"
        raise about(ValueError(text), "path") from None


def missing_file(path: Path, requirement: str) -> FileNotFoundError:
    """Make the error for a path at which there is no file."""
    return about(FileNotFoundError(message("path", requirement, str(path))), "path")


_NUMBER_PATTERN: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A number in letters; a leading zero makes a code of it."""
_MAX_EXACT_INTEGER: Final = 2.0**53
"""Size up to which every whole number is a float."""


def _convert_numbers(values: Sequence[Any], *, fractions: bool = False) -> list[Any]:
    """Return numbers where all values are numbers, whole ones as integers; else all as found.

    Args:
        values: strings and numbers, as a reader found them.
        fractions: whether numbers that are not whole count; labels with a point are names.
    """
    found = list(map(_read_number, values))
    if any(value is None for value in found):
        return list(values)
    if all(
        isinstance(value, int) or (abs(value) < _MAX_EXACT_INTEGER and value % 1 == 0)
        for value in found
    ):
        return list(map(int, found))
    return found if fractions else list(values)


def _read_number(value: Any) -> Any:
    """Return the number that a value is, or None."""
    if not isinstance(value, str):
        return value
    if _NUMBER_PATTERN.fullmatch(value) is None or len(value) >= 19:
        return None
    found = float(value)
    return int(value) if value.removeprefix("-").isdigit() else found if isfinite(found) else None


def _drop_empty(
    rows: list[Row], split: list[str | None], missing: str, origin: str
) -> tuple[list[Row], list[str | None]]:
    """Return the rows without an empty cell; one error for all of them unless they are dropped."""
    empty = [row.empty for row in rows if row.empty]
    if empty and missing == "error":
        text = (
            f"path must be of a table without empty cells (missing='drop' leaves out their rows), "
            f"got {len(empty):,} of {len(rows):,} rows with one, the first in {empty[0]} ({origin})"
        )
        raise about(ValueError(text), "path", missing="'drop'")
    kept = [(row, part) for row, part in zip(rows, split, strict=True) if not row.empty]
    return [row for row, _ in kept], [part for _, part in kept]


def corpus_of(
    parts: Iterable[tuple[str | None, Iterable[Row]]], origin: str, missing: str = "error"
) -> Corpus:
    """Collect the rows of all parts in one Corpus, without a split if a part has no name."""
    split: list[str | None] = []
    rows: list[Row] = []
    for name, found in parts:
        rows.extend(found)
        split.extend([name] * (len(rows) - len(split)))
    many = len(rows)
    rows, split = _drop_empty(rows, split, missing, origin)
    if not rows:
        raise about(ValueError(message("path", "a file with at least one text", origin)), "path")
    labels = [row.label for row in rows]
    if 0 < labels.count(None) < len(labels):
        lacking = f"texts without one from row {labels.index(None):,} on"
        text = message("path", f"of files that all have labels, or none ({origin})", lacking)
        raise about(ValueError(text), "path")
    return Corpus(
        [row.text for row in rows],
        None if labels.count(None) == len(labels) else _convert_numbers(labels),
        {
            name: _convert_numbers([row.attributes[name] for row in rows], fractions=True)
            for name in rows[0].attributes
        },
        None if None in split else split,
        origin,
        None if rows[0].group is None else _convert_numbers([row.group for row in rows]),
        many - len(rows),
    )


Reader = Callable[[File], Iterable[Row]]
"""Function from a file to its rows."""
