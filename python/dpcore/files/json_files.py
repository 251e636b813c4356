"""Outputs as JSON: a list, lists by name, or one value a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid, show
from ..mechanisms.answers import rows_of, to_object_array
from ..records import Array
from .columns import ALL, Found, Request, Table, fill_columns, select_columns
from .opened import HashedFile, Settings, require_memory

_MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers up to which floats are exact."""


def read_json(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read a list, or lists by the names of their columns."""
    if file.size is not None:
        # Its text, and objects that take as much at least.
        require_memory(file.name, 2.0 * file.size)
    rows = parse_json(file.name, file.open_text(settings.encoding).read(), 1)
    how = Found("json", None, "", file.encoding, file.sha256)
    if isinstance(rows, dict):
        for name, values in rows.items():
            if not isinstance(values, list):
                requirement = "a list, as are all columns"
                raise invalid(f"{name!r} of {file.name}", requirement, values)
        return Table(file.name, tuple(rows), tuple(map(_as_column, rows.values())), how)
    if not isinstance(rows, list):
        raise ValueError(f"{file.name} must hold a list of outputs, got {show(rows)}")
    if rows and all(isinstance(one, dict) for one in rows):
        names = tuple(dict.fromkeys(name for one in rows for name in one))
        columns = ([one.get(name) for one in rows] for name in names)
        return Table(file.name, names, tuple(map(_as_column, columns)), how, is_sparse=True)
    return Table(file.name, None, (_as_column(rows),), how)


def read_json_lines(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read one answer a line, or one object a line with the names of the columns."""
    given = {one for one in request.columns if one is not None}
    by_name = ALL not in given and all(isinstance(one, str) for one in given)
    wanted = given if given and by_name and not request.is_broad else None
    names: dict[str, Any] = {}
    found: dict[str, list[Array]] = {}
    size, is_table = 0, None
    lines = file.open_text(settings.encoding)
    for number, (line, rows) in enumerate(_read_values(file.name, lines)):
        is_table = isinstance(rows[0], dict) if is_table is None else is_table
        if any(isinstance(row, dict) != is_table for row in rows):
            kinds = "objects, or none of them" if is_table else "no objects, or all of them"
            text = f"lines up to {line} of {file.name} must all be {kinds}, got both kinds"
            raise ValueError(text)
        if is_table:
            for row in rows:
                names.update(row)
        for name in names if is_table else ("",):
            if is_table and wanted is not None and name not in wanted:
                continue
            # A name that is new here was missing in all rows before.
            parts = found.setdefault(name, [to_object_array([None] * size)] if size else [])
            parts.append(_as_column([row.get(name) for row in rows] if is_table else rows))
        size += len(rows)
        if number == 0:
            if is_table and not given and request.is_open:
                select_columns(Table(file.name, tuple(names), (np.empty(0),) * len(names)), None)
            file.check_memory(sum(_size_in_memory(one) for each in found.values() for one in each))
    how = Found("jsonl", None, "", file.encoding, file.sha256)
    if not is_table:
        return Table(file.name, None, tuple(map(_join_parts, found.values())), how)
    columns = {name: _join_parts(parts) for name, parts in found.items()}
    filled = fill_columns(columns, names, size)
    return Table(file.name, tuple(names), filled, how, is_sparse=True)


def _read_values(name: str, text: TextIO) -> Iterator[tuple[int, list[Any]]]:
    """Yield values, many at a time, with the number of the last line."""
    numbered = enumerate(text, 1)
    while piece := list(islice(numbered, 2**16)):
        rows = [parse_json(name, line.strip(), number) for number, line in piece if line.strip()]
        if rows:
            yield piece[-1][0], rows


def _as_column(items: list[Any]) -> Array:
    kinds = {type(one) for one in items}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return rows_of("outputs", items, "")
    return to_object_array(items)


def parse_json(name: str, text: str, line: int) -> Any:
    """Return the value of a text; raise an error that names file and line where it is no JSON."""
    try:
        return _JSON_DECODER.decode(text)
    except json.JSONDecodeError as error:
        text = f"line {line + error.lineno - 1} of {name} must be JSON, got {error}"
    except _DuplicateNameError as error:
        text = f"line {line} of {name} must hold each name once, got {error}"
    except ValueError as error:
        # Of a number with thousands of digits.
        text = f"line {line} of {name} must be JSON, got {error}"
    except RecursionError:
        text = f"line {line} of {name} must be JSON of less depth"
    raise ValueError(text)


class _DuplicateNameError(ValueError):
    """An object with two values of one name."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Python would keep the last of them and say nothing.
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DuplicateNameError(f"{twice!r} twice")
    return found


_JSON_DECODER: Final = json.JSONDecoder(object_pairs_hook=_make_object)


def _size_in_memory(part: Array) -> float:
    if part.dtype != object:
        return float(part.nbytes)
    texts = sum(4 * len(one) if isinstance(one, str) else 24 for one in part.tolist())
    return float(part.nbytes + texts)


def _join_parts(parts: list[Array]) -> Array:
    """Return the pieces of a column as one array; the list is emptied.

    Args:
        parts: arrays of shape `(size, ...)`.

    Returns:
        An array of numbers or texts where all are of one kind, else of objects.
    """
    kinds = {part.dtype.kind for part in parts}
    is_whole = kinds == {"i", "f"} and all(
        part.dtype.kind == "f" or not len(part) or np.abs(part).max() <= _MAX_EXACT_INTEGER
        for part in parts
    )
    if "O" not in kinds and (len(kinds) == 1 or is_whole):
        whole = np.empty(sum(map(len, parts)), np.result_type(*parts))
        _move_pieces(parts, whole)
        return whole
    items = list(chain.from_iterable(part.tolist() for part in parts))
    parts.clear()
    is_text = all(isinstance(item, str) for item in items)
    return rows_of("outputs", items, "") if is_text else to_object_array(items)


def _move_pieces(pieces: list[Any], whole: Array) -> None:
    """Copy pieces into an array; each is given up as soon as it is copied."""
    stop = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[stop - len(piece) : stop] = piece
        stop -= len(piece)
