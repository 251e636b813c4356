"""Tables of any origin: csv and tsv with and without a header, and one JSON object a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from ...errors import about, invalid, message, mistyped
from .files import File, Row

__all__ = ["SUFFIXES", "Layout", "rows_of_cells", "table"]

SUFFIXES: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Ends of names, and the kind of table that they stand for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table by their meaning.

    Args:
        text: the column of the texts: a name of the header, or a position from 0 in a file
            without one; None is "text".
        label: the column of the labels; None is "label" where there is a header and it has that.
        attributes: the columns of the private attributes.
        group: the column of the authors, or of other groups.
    """

    text: str | int | None = None
    label: str | int | None = None
    attributes: Sequence[str | int] = ()
    group: str | int | None = None

    def __post_init__(self) -> None:
        """Check that the columns are all named, or all counted."""
        if isinstance(self.attributes, str):
            raise mistyped("attributes", "a list of columns, not a single string", self.attributes)
        for name in ("text", "label", "group"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, (str, int)) or value is True):
                raise mistyped(name, "the name or the position of a column", value)
        columns = [c for _, c in self.named if c is not None]
        if len({type(column) for column in columns}) > 1:
            raise invalid(
                "text, label, attributes and group", "all names, or all positions", columns
            )
        if self.counted and (self.text is None or any(str(c).startswith("-") for c in columns)):
            raise invalid("text", "a position from 0, as the others are", self.text)

    @property
    def counted(self) -> bool:
        """True for positions, which files without a header have."""
        return any(isinstance(column, int) for _, column in self.named)

    @property
    def named(self) -> list[tuple[str, str | int | None]]:
        """The arguments of `read` and their columns."""
        some = [("text", self.text), ("label", self.label), ("group", self.group)]
        return [*some, *(("attributes", column) for column in self.attributes)]


def table(file: File, kind: str, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a table.

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
    found = _read_json_lines(file) if kind == "jsonl" else _read_fields(file, kind, layout)
    yield from rows_of_cells(
        file.full_name, layout, [(file.place(n), values) for n, values in found]
    )


def rows_of_cells(name: str, layout: Layout, found: Sequence[tuple[str, Mapping[Any, Any]]]) -> Any:
    """Yield the rows of a table, given the cells of each by column.

    Args:
        name: what messages call the table.
        layout: which column is what.
        found: the place of each row, as messages call it, and its cells.

    Raises:
        ValueError: if a column is missing; the message lists those that are there.
    """
    columns = list(dict.fromkeys(chain.from_iterable(values for _, values in found)))
    if layout.label is None and not layout.counted and layout.text != "label":
        layout = replace(layout, label="label" if "label" in columns else None)
    if layout.text is None:
        layout = replace(layout, text="text")
    if found:
        _require_columns(name, layout, columns)
    for place, values in found:
        yield _make_row(place, values, layout)


def _require_columns(name: str, layout: Layout, columns: Sequence[Any]) -> None:
    """Raise an error that names a missing column, and those that are there."""
    for argument, column in layout.named:
        column = "text" if argument == "text" and column is None else column
        if column is not None and column not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            if layout.counted:
                there = f"0 to {len(columns) - 1}" if columns else "none"
            raise invalid(argument, f"a column of {name}, which are {there}", column)


def _read_fields(file: File, kind: str, layout: Layout) -> Iterator[tuple[int, dict[Any, Any]]]:
    lines = _read_quoted_csv(file) if kind == "csv" else _split_tab_lines(file)
    first, fields = next(lines, (1, []))
    header: Sequence[Any] = range(len(fields)) if layout.counted else fields
    _require_columns(file.full_name, layout, header)
    if len(set(header)) != len(header):
        raise file.error(first, "a header of different names", fields)
    for number, values in chain([(first, fields)] if layout.counted else [], lines):
        if len(values) != len(header):
            raise file.error(number, f"a row of {len(header)} fields", values)
        yield number, dict(zip(header, values, strict=True))


def _read_quoted_csv(file: File) -> Iterator[tuple[int, list[str]]]:
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


def _split_tab_lines(file: File) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in file.filled())


def _read_json_lines(file: File) -> Iterator[tuple[int, dict[Any, Any]]]:
    for number, line in file.filled():
        try:
            value = json.loads(line)
        except ValueError as error:
            raise file.error(number, f"a JSON object ({error})", line) from None
        if not isinstance(value, dict):
            raise file.error(number, "a JSON object", line)
        yield number, value


def _make_row(place: str, values: Mapping[Any, Any], layout: Layout) -> Row:
    cells = {column: values.get(column) for _, column in layout.named if column is not None}
    for column, cell in cells.items():
        if _is_empty(cell):
            return Row("", empty=f"{place}, column {column!r}")

    def read_value(column: str | int, argument: str) -> Any:
        cell = cells[column]
        cell = cell.item() if isinstance(cell, np.generic) else cell
        is_number = isinstance(cell, float) and (argument == "attributes" or cell % 1 == 0)
        if not isinstance(cell, (str, int)) and not is_number:
            need = "a number" if argument == "attributes" else "a whole number"
            need = f"a row with {need} or a string as {column!r}"
            raise about(ValueError(message(place, need, cell)), argument)
        return int(cell) if isinstance(cell, bool) else cell

    assert layout.text is not None
    text = cells[layout.text]
    if not isinstance(text, str):
        need = f"a row with a text (a string) as {layout.text!r}"
        raise about(ValueError(message(place, need, text)), "text")
    return Row(
        text.strip(),
        None if layout.label is None else read_value(layout.label, "label"),
        {
            c if isinstance(c, str) else f"column {c}": read_value(c, "attributes")
            for c in layout.attributes
        },
        None if layout.group is None else read_value(layout.group, "group"),
    )


def _is_empty(cell: Any) -> bool:
    """Return True for a cell without a value: None, NaN, <NA>, NaT, or white space."""
    if isinstance(cell, str):
        return not cell.strip()
    # By name: <NA> answers no comparison.
    return str(cell) in ("None", "nan", "<NA>", "NaT")
