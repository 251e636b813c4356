"""Matching of the outputs on x and the outputs on x': columns, order of fields, units of time.

The outputs on x and on x' are called the two sides. The order of columns, the unit of times and the
time zone are the same in all rows of one side. If such a property differs between the sides, the
difference is only one observation, which is not enough evidence for an audit. The report then
describes the difference in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from ..errors import mistyped, show, tag_error
from ..files.cells import JSON, MINUS_ZERO, Cells, describe_number_format, spells_twice
from ..files.columns import Table, attach_zone, zone_of
from ..mechanisms.answers import to_object_array
from ..packages import has_all
from ..records import Array

_MAX_LISTED_NAMES: Final = 8
_Written = tuple[Array, Array, tuple[int, ...]]
_MAX_SPELLINGS: Final = 16
"""Largest number of different spellings that are added to the outputs."""


def match_columns(
    first: Table, places: Sequence[int], second: Table, places_prime: list[int]
) -> list[int]:
    """Find, for each chosen column of one table, the corresponding column of a second table.

    The lists `places` and `places_prime` contain the indices of the chosen columns of the first and
    of the second table. If both tables have column names, columns with equal names correspond to
    each other. Otherwise, columns at equal positions in the two lists correspond. The result
    contains the elements of `places_prime`, in the order of the corresponding elements of `places`.

    Raises:
        ValueError: if the chosen columns of the two tables have different names, or if a name
            occurs twice and the columns have different orders in the two tables.
    """
    if first.names is None or second.names is None:
        return places_prime
    chosen = [first.names[place] for place in places]
    chosen_prime = [second.names[place] for place in places_prime]
    if chosen == chosen_prime:
        return places_prime
    lists = (chosen, {*chosen_prime}, first.name), (chosen_prime, {*chosen}, second.name)
    differences = []
    for own, others, name in lists:
        if alone := [column for column in dict.fromkeys(own) if column not in others]:
            differences.append(f"{_quote_names(alone)} only in {name}")
    where = dict(zip(chosen_prime, places_prime, strict=True))
    if not differences and not len(where) == len(chosen) == len(chosen_prime):
        differences = ["a name that is repeated, in another order"]
    if differences:
        text = f"outputs_prime must have the columns of outputs, got {'; '.join(differences)}"
        hint = "column= chooses columns, exclude= leaves some out"
        raise tag_error(ValueError(f"{text} ({hint})"), "outputs_prime")
    return [where[column] for column in chosen]


def add_empty_columns(table: Table, names: Iterable[str]) -> Table:
    """Add to a table an empty column for each of the given names that the table does not have.

    Each entry of such a column is None.

    If the table was not read from JSON objects, it is returned unchanged.
    """
    own = table.names or ()
    lacking = tuple(name for name in dict.fromkeys((*own, *names)))[len(dict.fromkeys(own)) :]
    if not table.is_sparse or not lacking:
        return table
    nothing = np.full(len(table.columns[0]), None, dtype=object)
    columns = table.columns + (nothing,) * len(lacking)
    return table._replace(names=own + lacking, columns=columns)


def match_time_units(
    first: Table, places: Sequence[int], second: Table, places_prime: Sequence[int]
) -> tuple[Table, Table, tuple[str, ...]]:
    """Convert corresponding columns of times in two tables to the same unit.

    The unit is the finer of the two units. For example, the common unit is microseconds if one
    table has seconds and the other table has microseconds. The lists `places` and `places_prime`
    contain the indices of corresponding columns.

    The result contains both tables, and a tuple of notes for the report. A note states that a
    column has different units or time zones in the two tables.

    Raises:
        TypeError: if two units of time have no common unit, such as months and days.
        ValueError: if the finer unit cannot represent a time.
    """
    columns, columns_prime = [*first.columns], [*second.columns]
    notes: list[str] = []
    for place, other in zip(places, places_prime, strict=False):
        title = f"column {place if first.names is None else repr(first.names[place])}"
        columns[place], columns_prime[other], differences = _to_finer_unit(
            columns[place], columns_prime[other], title
        )
        notes += differences
    first = first._replace(columns=tuple(columns))
    return first, second._replace(columns=tuple(columns_prime)), tuple(notes)


def add_number_format_columns(
    sides: tuple[Array, Array], cells: Sequence[Sequence[Cells | None]], titles: tuple[str, ...]
) -> tuple[tuple[Array, Array], tuple[str, ...], tuple[str, ...]]:
    """Add a column that states how numbers are written, if the spelling may distinguish x from x'.

    The same number can be written in several ways (spellings), such as 1.5 and 1.50.

    For each column of the outputs, the function adds a column if a number has two spellings among
    the outputs on x, or among the outputs on x'. If a number has one spelling on x and another
    spelling on x', the function returns a note instead.

    Args:
        sides: the outputs on x and the outputs on x', each of shape `(size,)` or `(size, columns)`.
        cells: for x and for x', a list with one entry per column. An entry contains the spellings
            of the numbers in the column, or is None if the column was not read from text.
        titles: names of the columns in messages.

    Returns:
        Three results: the outputs on x and on x' with the added columns, the names of all columns,
        and notes for the report.
    """
    added: list[tuple[Array, Array]] = []
    notes: list[str] = []
    names = list(titles)
    for place, pair in enumerate(zip(*cells, strict=False)):
        first, second = (_find_spellings(*each, place) for each in zip(sides, pair, strict=True))
        if first is None or second is None:
            continue
        numbers = first[0], second[0]
        every, codes = _merge_spelling_codes(first, second)
        # Only rounded numbers have two signs, namely the two zeros. Their sign is judged
        # separately.
        plain = [spelling & ~MINUS_ZERO for spelling in every]
        twice = [spells_twice(*side, plain) for side in zip(numbers, codes, strict=True)]
        zeros = [spells_twice(*side, every) for side in zip(numbers, codes, strict=True)]
        if (any(twice) or zeros[0] != zeros[1]) and len(every) <= _MAX_SPELLINGS:
            texts = np.array([describe_number_format(spelling) for spelling in every], dtype=object)
            added.append((texts[codes[0]], texts[codes[1]]))
            title = titles[place].removeprefix("column ").strip("'\"")
            names.append(f"column {f'{title}, as written'!r}")
        elif not any(twice) and spells_twice(np.concatenate(numbers), np.concatenate(codes), plain):
            notes.append(
                f"{titles[place]} is written in another way on each side, such as 1.5 and 1.50: "
                "equal numbers are counted as equal, but whoever sees the texts sees the input"
            )
    if added:
        sides = tuple(
            np.column_stack([side.astype(object), *(texts[at] for texts in added)])
            for at, side in enumerate(sides)
        )  # type: ignore[assignment]
    return sides, tuple(names), tuple(notes)


def _merge_spelling_codes(first: _Written, second: _Written) -> tuple[list[int], list[Array]]:
    """Return a list of all spellings, and the index of each cell's spelling for x and for x'."""
    every = list(dict.fromkeys((*first[2], *second[2])))
    places = []
    for _, codes, spellings in (first, second):
        own = np.array([every.index(spelling) for spelling in spellings] or [0])
        places.append(own[np.minimum(codes, len(own) - 1)])
    return every, places


def _find_spellings(side: Array, cells: Cells | None, place: int) -> _Written | None:
    """Return the numbers of a column, the code of each number's spelling, and the spellings.

    A cell that is not a number becomes NaN. The result is None if the column has no spellings.
    """
    if cells is None or cells.codes is None or cells.kind.name not in ("number", JSON):
        return None
    column = side if side.ndim == 1 else side[:, place]
    if column.dtype == object:
        are_numbers = np.array([type(entry) in (int, float) for entry in column])
        column = np.where(are_numbers, column, np.nan).astype(np.float64)
    return column, cells.codes, cells.spellings


def align_fields_and_units(rows: Array, rows_prime: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """Give the outputs on x and on x' the same order of fields and the same unit of time.

    Each row is one output. If rows are structured arrays, the fields on x' get the order of the
    fields on x.

    If rows are mappings, the keys on x' get the order of the keys on x. This is done only if all
    rows on x have the same order of keys, and all rows on x' have the same order of keys. Times are
    converted to the finer of the two units.

    Returns:
        The rows on x, the rows on x', and notes for the report. A note states that the order of
        fields or keys, the unit of times or the time zone differs.

    Raises:
        TypeError: if two units of time have no common unit.
        ValueError: if the names of the fields differ on x and on x', or if the finer unit cannot
            represent a time.
    """
    names, names_prime = rows.dtype.names, rows_prime.dtype.names
    if names is not None and names_prime is not None and rows.dtype != rows_prime.dtype:
        first, second = (
            Table(name, side.dtype.names, tuple(side[field] for field in side.dtype.names or ()))
            for name, side in (("outputs", rows), ("outputs_prime", rows_prime))
        )
        every = range(len(names))
        places = match_columns(first, every, second, [*range(len(names_prime))])
        first, second, notes = match_time_units(first, every, second, places)
        return _as_structured(first, every), _as_structured(second, places), notes
    matched, notes = _reorder_keys_as_on_x(rows, rows_prime)
    if notes:
        return rows, matched, notes
    read = _to_datetime64_if_datetimes(rows), _to_datetime64_if_datetimes(rows_prime)
    times, times_prime, notes = _to_finer_unit(*read, "outputs")
    # datetime objects of one type and zone are left unchanged.
    is_matched = bool(notes) or rows.dtype != object
    return (times, times_prime, notes) if is_matched else (rows, rows_prime, ())


def _reorder_keys_as_on_x(outputs: Array, outputs_prime: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the outputs on x' with the keys of mappings in the order of x, and a note.

    The outputs are changed only if all mappings on x have one order of keys, all mappings on x'
    have one order of keys, and the two orders differ.

    Args:
        outputs: outputs on `x`.
        outputs_prime: outputs on `x_prime`.
    """
    order, order_prime = _shared_key_order(outputs), _shared_key_order(outputs_prime)
    if order == order_prime or not (order and order_prime) or {*order} != {*order_prime}:
        return outputs_prime, ()
    matched = [{key: row[key] for key in order} for row in outputs_prime]
    note = (
        f"the keys of outputs on x are {_quote_names(order)}, of those on x' "
        f"{_quote_names(order_prime)}: they are matched, but whoever sees the order sees the input"
    )
    return to_object_array(matched), (note,)


def _quote_names(names: Sequence[Any]) -> str:
    """Return at most eight names in quotation marks, and the number of names if there are more."""
    more = f", ... ({len(names):,} in all)" if len(names) > _MAX_LISTED_NAMES else ""
    return ", ".join(map(repr, names[:_MAX_LISTED_NAMES])) + more


def _shared_key_order(rows: Array) -> tuple[Any, ...] | None:
    """Return the keys of the mappings if all have the same keys in one order, otherwise None."""
    if rows.dtype != object or rows.ndim != 1 or type(rows[0]) is not dict:
        return None
    order = tuple(rows[0])
    return order if all(type(row) is dict and tuple(row) == order for row in rows) else None


def _as_structured(table: Table, places: Sequence[int]) -> Array:
    """Return the chosen columns of a table as a structured array with a field per column."""
    names = table.names or ()
    kinds = [(names[at], table.columns[at].dtype, table.columns[at].shape[1:]) for at in places]
    rows = np.empty(len(table.columns[0]), kinds)
    for place in places:
        rows[names[place]] = table.columns[place]
    return rows


def _to_datetime64_if_datetimes(rows: Array) -> Array:
    """Convert Python datetimes in one time zone to an array; return other rows unchanged."""
    if rows.dtype != object or not all(isinstance(row, datetime) for row in rows.ravel()):
        return rows
    zones = {row.tzinfo and str(row.tzinfo) for row in rows}
    if len(zones) > 1 or rows.ndim > 1:
        return rows
    zoned = None not in zones
    plain = [row.astimezone(UTC).replace(tzinfo=None) if zoned else row for row in rows]
    # Timestamps of pandas have nanoseconds.
    times = [row.to_datetime64() if has_all(row, "to_datetime64") else row for row in plain]
    return attach_zone(np.array(times, "M8" if has_all(times[0], "astype") else "M8[us]"), *zones)


def _to_finer_unit(first: Array, second: Array, title: str) -> tuple[Array, Array, tuple[str, ...]]:
    """Return two columns of times in the finer of their two units, and notes.

    There is one note if the units or the time zones differ. Columns of other values are unchanged.
    """
    if first.dtype.kind not in "mM" or second.dtype.kind != first.dtype.kind:
        return first, second, ()
    names = []
    for column in (first, second):
        zone = zone_of(column)
        names.append(column.dtype.name if zone is None else f"{column.dtype.name[:-1]}, {zone}]")
    if names[0] == names[1] and first.dtype == second.dtype:
        return first, second, ()
    try:
        finer = np.promote_types(first.dtype, second.dtype)
    except TypeError:
        raise mistyped("outputs_prime", f"times of the type {names[0]}", names[1]) from None
    finer = np.dtype(finer.str)
    columns = []
    for name, column in (("outputs", first), ("outputs_prime", second)):
        plain = column.view(np.dtype(column.dtype.str))
        converted = plain.astype(finer)
        # A time that overflows is different after the conversion back.
        changed = (converted.astype(plain.dtype) != plain) & ~np.isnat(plain)
        if changed.any():
            text = f"{name} must hold times that fit {finer.name}, the unit of the other side"
            error = ValueError(f"{text}, got {show(plain[changed][0])} in {title}")
            raise tag_error(error, name)
        columns.append(converted)
    if names[0] == names[1]:
        # Byte order is not part of a time.
        return columns[0], columns[1], ()
    note = (
        f"{title} of type {names[0]} on x, of type {names[1]} on x': equal times are counted as "
        "one, but whoever sees the type sees the input"
    )
    return columns[0], columns[1], (note,)
