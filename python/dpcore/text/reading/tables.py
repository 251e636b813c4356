"""Tables of any origin: csv and tsv with and without a header, and one JSON object a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from ...errors import invalid, mistyped
from .files import File, Row

__all__ = ["SUFFIXES", "Layout", "table"]

SUFFIXES: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Ends of names, and the kind of table that they stand for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is what.

    Args:
        text: the column of the texts: a name of the header, or a position from 0 in a file
            without one; None is "text".
        label: the column of the labels; None is "label" where there is a header and it has that.
        attributes: the columns of the private attributes.
    """

    text: str | int | None = None
    label: str | int | None = None
    attributes: Sequence[str | int] = ()

    def __post_init__(self) -> None:
        """Check that the columns are all named, or all counted."""
        if isinstance(self.attributes, str):
            raise mistyped("attributes", "a list of columns, not a single string", self.attributes)
        for name, value in (("text", self.text), ("label", self.label)):
            if value is not None and (not isinstance(value, (str, int)) or value is True):
                raise mistyped(name, "the name or the position of a column", value)
        columns = [c for c in (self.text, self.label, *self.attributes) if c is not None]
        if len({type(column) for column in columns}) > 1:
            raise invalid("text, label and attributes", "all names, or all positions", columns)
        if self.counted and (self.text is None or any(str(c).startswith("-") for c in columns)):
            raise invalid("text", "a position from 0, as the others are", self.text)

    @property
    def counted(self) -> bool:
        """True for positions, which files without a header have."""
        columns = [self.text, self.label, *self.attributes]
        return any(isinstance(column, int) for column in columns)


def table(file: File, kind: str, layout: Layout) -> Iterator[Row]:
    """The rows of a table.

    Args:
        file: the file.
        kind: "csv" (quotes may hold commas and line feeds), "tsv" (no quoting: a line is a row,
            and a quote is a letter) or "jsonl" (one object a line).
        layout: which column is what.

    Raises:
        ValueError: if a column is missing, or a row has more or fewer fields than the first.
    """
    if kind == "jsonl" and layout.counted:
        raise invalid("text", "a name: objects have no positions", layout.text)
    found = _objects(file) if kind == "jsonl" else _fields(file, kind, layout)
    labelled = None
    for number, values in found:
        label = layout.label
        # Without a header each object says anew what it has.
        if label is None and not layout.counted and layout.text != "label" and "label" in values:
            label = "label"
        if labelled not in (None, label is not None):
            raise file.error(number, "with a label, or without one, as those before", values)
        labelled = label is not None
        yield _row(file, number, values, layout, label)


def _fields(file: File, kind: str, layout: Layout) -> Iterator[tuple[int, dict[Any, Any]]]:
    lines = _quoted(file) if kind == "csv" else _plain(file)
    first, fields = next(lines, (1, []))
    header: Sequence[Any] = range(len(fields)) if layout.counted else fields
    columns = ["text" if layout.text is None else layout.text, layout.label, *layout.attributes]
    for column in columns:
        if column is not None and column not in header:
            hint = "(name the columns with text= and label=; without a header by their positions)"
            raise file.error(first, f"a row with the column {column!r} {hint}", fields)
    if len(set(header)) != len(header):
        raise file.error(first, "a header of different names", fields)
    for number, values in chain([(first, fields)] if layout.counted else [], lines):
        if len(values) != len(header):
            raise file.error(number, f"a row of {len(header)} fields", values)
        yield number, dict(zip(header, values, strict=True))


def _quoted(file: File) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((f"{line}\n" for _, line in file.lines()), strict=True)
    start = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            lines = f"lines {start} to {reader.line_num}"
            raise file.error(start, f"csv ({error})", lines) from None
        if fields:
            yield start, fields
        start = reader.line_num + 1


def _plain(file: File) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in file.filled())


def _objects(file: File) -> Iterator[tuple[int, dict[Any, Any]]]:
    for number, line in file.filled():
        try:
            value = json.loads(line)
        except ValueError as error:
            raise file.error(number, f"a JSON object ({error})", line) from None
        if not isinstance(value, dict):
            raise file.error(number, "a JSON object", line)
        yield number, value


def _row(
    file: File, number: int, values: dict[Any, Any], layout: Layout, label: str | int | None
) -> Row:
    def value(column: str | int) -> int | str:
        found = values.get(column)
        if not isinstance(found, (str, int)) or found == "":
            raise file.error(number, f"a row with a whole number or a string as {column!r}", found)
        return int(found) if isinstance(found, bool) else found

    text = values.get("text" if layout.text is None else layout.text)
    return Row(
        file.text(number, text),
        None if label is None else value(label),
        {c if isinstance(c, str) else f"column {c}": value(c) for c in layout.attributes},
    )
