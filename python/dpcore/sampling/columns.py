"""Columns of outputs: conversion to tables for row comparisons, and detection of row numbers.

A column that contains the row number may differ between the outputs on x and on x' for every
mechanism. An audit would then refute a true claim, and the bound of the audit would not show this
error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..claims.trade_off import Claim
from ..errors import flat_list_to_floats, tag_error
from ..events.event import Batch, is_built_in, score_attribute
from ..records import Array, Pair
from ..report.shown import on_one_line
from .replay import encode_rows

MOST_COLUMNS: Final = 4
"""Largest number of columns in which the order of the rows is tested."""

FEWEST_NUMBERED_ROWS: Final = 60
"""Smallest number of rows for which a column may count as row numbers. With fewer rows, independent
draws may look like row numbers."""

_MAX_NUMBERING_RANGE: Final = 1.1
"""Largest range of row numbers, divided by the number of rows. If 60 draws are independent and
uniform on 66 values, all draws differ with probability below 1e-15."""

_MIN_CLOCK_VALUES: Final = 20
"""Smallest number of different values of a column that may count as times of recording."""

_NUMBER_PATTERN: Final = re.compile(r"-?\d+")
_MAX_NUMBERS_PER_TEXT: Final = 8
"""Largest number of numbers that are read from one text."""

_MAX_LISTED_COLUMNS: Final = 4096
"""Largest number of columns that are searched for row numbers."""

_COLUMN_HINT: Final = "exclude=NAME, for the columns of a file or a frame"


_MIN_DESCRIBED_ROWS: Final = 16
"""Smallest number of pilot outputs on each input for a description. If outputs on x and on x' have
the same continuous distribution, 16 outputs on each have disjoint ranges with probability 3e-9."""
_SHOWN_OUTPUT_WIDTH: Final = 40
_MAX_CONSTANT_LINES: Final = 4
_SURE_HITS: Final = 25.0
"""Expected number of occurrences of a value under a claim. A value that is expected so often is
missing with probability e^-25."""
_FIRST_COMPARED_OUTPUTS: Final = 64
_MAX_COMPARED_OUTPUTS: Final = 4096
"""Numbers of outputs on each input that are searched for a common value, in two steps."""
_MAX_COMPARED_ENTRIES: Final = 16
"""Largest number of entries of an output for which whole outputs are compared."""
_MAX_VALUE_SHARE: Final = 0.5
"""Outputs often repeat if the number of distinct values, divided by the number of outputs, is at
most this."""

_MIN_SEED_SHARE: Final = 0.9
"""A column of integers hardly repeats if the number of distinct values, divided by the number of
rows, is above this."""


class PilotFacts(NamedTuple):
    """Facts about the pilot (the first outputs of an audit, from which the event is chosen).

    Args:
        constant: text for the report if all outputs on x and on x' had the same value, otherwise
            "". The text states this fact.
        is_steady: True if all outputs on x were equal, and all outputs on x' were equal.
        notes: texts for the report. A text names a constant part of the outputs (such as an entry).
            A further text is added if outputs on x and on x' had no common value.
        seeds: texts for the report. Each text names a part of the outputs that may be a random
            seed.
    """

    constant: str = ""
    is_steady: bool = False
    notes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()

    def list_notes(self, event: Any) -> tuple[str, ...]:
        """Return texts for the report on parts of the outputs that were constant or may be seeds.

        A seed is a number from which a mechanism computed its random numbers. The texts on seeds
        are left out if the event is defined by a score that reads a seed, or by the user's own
        score.

        Args:
            event: the chosen event.
        """
        score = getattr(event, "own_score", None)
        uses_seed = score is not None and (
            not is_built_in(score) or score_attribute(score, "reads_seed")
        )
        return self.notes if uses_seed else (*self.notes, *self.seeds)


def split_by_kind(outputs: Array) -> list[Array]:
    """Convert outputs of any dtype to two-dimensional arrays, each with only one kind of value.

    Args:
        outputs: outputs of any dtype, shape `(size, ...)`.

    Returns:
        Arrays of shape `(size, columns)` of real numbers, strings or objects. Complex numbers give
        two arrays: the real parts and the imaginary parts. A structured array gives at least one
        array for each field.
    """
    if outputs.dtype.names is not None:
        return [part for name in outputs.dtype.names for part in split_by_kind(outputs[name])]
    if outputs.dtype.kind == "c":
        return [*split_by_kind(outputs.real), *split_by_kind(outputs.imag)]
    if outputs.dtype.kind in "mM":
        outputs = outputs.view(np.int64)
    # Not -1, because rows may be empty.
    return [outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))]


def entries_equal(first: Array, second: Array) -> npt.NDArray[np.bool_]:
    """Compare two arrays entry by entry, and return True for each pair of equal entries.

    NaN counts as equal to NaN. If the arrays cannot be compared, all entries of the result are
    False.
    """
    try:
        same = np.asarray(first == second)
        if first.dtype.kind in "fO":
            same = same | (np.asarray(first != first) & np.asarray(second != second))
        same = same.astype(np.bool_, copy=False)
    except Exception:
        # Comparisons of objects may return arrays entry by entry, or fail.
        ends = (np.broadcast_to(own, first.shape).ravel() for own in (first, second))
        own, other = map(encode_rows, ends)
        if own is None or other is None:
            return np.zeros(first.shape, np.bool_)
        same = (own == other).all(axis=1).reshape(first.shape)
    return same if same.shape == first.shape else np.zeros(first.shape, np.bool_)


def ranks_and_codes(outputs: Array) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.intp]]:
    """Convert outputs to numbers for a test of whether the outputs are in random order.

    Args:
        outputs: outputs of any dtype, shape `(size, ...)`.

    Returns:
        A pair, computed from at most four columns (entries of the outputs). The first item is a
        list with an array for each column. The array contains the rank of each value divided by the
        number of outputs. Equal values get their mean rank. If the values have no order, the array
        contains 1 for the most frequent value and 0 for any other value. The second item is an
        array with an integer for each output. Two outputs have the same integer if they are equal
        in these columns.
    """
    columns = [
        table[:, place]
        for table in split_by_kind(outputs)
        for place in _up_to_4_spread_columns(table.shape[1])
    ]
    if len(columns) > MOST_COLUMNS:
        columns = [columns[place] for place in _up_to_4_spread_columns(len(columns))]
    scores, whole = [], np.zeros(len(outputs), np.intp)
    for number, column in enumerate(columns):
        codes, counts, ordered = _codes_counts_ordered(column)
        if ordered:
            ranks = ((np.cumsum(counts) - 0.5 * (counts + 1)) / len(column))[codes]
        else:
            ranks = (codes == int(np.argmax(counts))).astype(np.float64)
        scores.append(ranks)
        whole = codes if number == 0 else _pair_codes(whole, codes)
    return scores, whole


def few_columns_if_torch_batch(outputs: Array | Batch) -> Array:
    """Return an array of at most four columns of outputs that are in a torch tensor.

    Outputs that are already an array are returned unchanged, with all columns.
    """
    if not isinstance(outputs, Batch):
        return outputs
    return outputs.columns(_up_to_4_spread_columns(int(np.prod(outputs.shape[1:]))))


def _up_to_4_spread_columns(column_count: int) -> list[int]:
    """Return the numbers of at most four of the columns, with the first and the last column."""
    few = min(column_count, MOST_COLUMNS)
    return [place * (column_count - 1) // max(1, few - 1) for place in range(few)]


def pilot_anomalies(sides: tuple[Array, Array], pair: Pair, claim: Any, delta: float) -> PilotFacts:
    """Describe what is striking in the pilot (the first outputs of an audit).

    The result states which parts of the outputs were constant, and which parts may be seeds. If
    outputs on x and on x' had no common value, the result states this too.

    Args:
        sides: pilot outputs on x, and pilot outputs on x', each of shape `(size, ...)`.
        pair: the two inputs x and x', in the form that the attack uses.
        claim: claimed epsilon for the pair, or a claimed trade-off curve. None if the mechanism has
            no claim.
        delta: the delta of the claimed (epsilon, delta)-DP.
    """
    size = min(map(len, sides))
    if size < _MIN_DESCRIBED_ROWS:
        return PilotFacts()
    parts = [split_by_kind(side) for side in sides]
    if len(parts[0]) != len(parts[1]):
        return PilotFacts()
    tables = list(zip(*parts, strict=True))
    # The first two rows exclude most columns.
    firsts = [[table[:1] for table in both] for both in tables]
    is_constant = all(map(_has_only_given_row, tables, [first[:1] * 2 for first in firsts]))
    if is_constant and _has_same_repr_for_all_outputs(sides):
        return PilotFacts(describe_constant_outputs(size, sides[0][0]), True)
    steady = all(map(_has_only_given_row, tables, firsts))
    excluded = _is_refuted_by_constants(claim, delta, size)
    notes = _constant_part_lines(sides, pair, excluded)
    if _have_nothing_in_common(sides):
        notes = ("in the pilot the two sides had no output in common", *notes)
    return PilotFacts("", steady, notes, _list_seed_column_notes(sides))


def describe_constant_outputs(size: int, output: Any) -> str:
    """Return a sentence for the report: all pilot outputs had the same value.

    Args:
        size: number of pilot outputs (the first outputs of an audit) on each of x and x'.
        output: the common value.
    """
    return (
        f"all {size:,} pilot outputs per side were {_show_output(output)} (is the noise "
        "missing, a seed fixed, or does this pair never show it?)"
    )


def _has_only_given_row(tables: Sequence[Array], rows: Sequence[Array]) -> bool:
    """Return True if all rows of each table are equal to the entry of `rows` for this table."""
    return all(
        table.shape[1:] == row.shape[1:]
        and bool(entries_equal(table[:2], np.broadcast_to(row, table[:2].shape)).all())
        and bool(entries_equal(table, np.broadcast_to(row, table.shape)).all())
        for table, row in zip(tables, rows, strict=True)
    )


def _has_same_repr_for_all_outputs(sides: tuple[Array, Array]) -> bool:
    """Return True if outputs that are all equal also have the same text (True and 1 do not)."""
    if all(side.dtype != object for side in sides):
        return True
    try:
        return len({repr(output) for side in sides for output in side}) == 1
    except Exception:
        # Objects without a text are compared by their type.
        return len({type(output) for side in sides for output in side}) == 1


def _show_output(output: Any) -> str:
    """Return an output as text of at most 40 characters; omit brackets around one number."""
    value = output.tolist() if isinstance(output, (np.ndarray, np.generic)) else output
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    entries = value if isinstance(value, list) and value else [value]
    if all(isinstance(entry, float) and entry != entry for entry in entries):
        return "NaN"
    return on_one_line(repr(value), _SHOWN_OUTPUT_WIDTH)


def _is_refuted_by_constants(claim: Any, delta: float, rows: int) -> bool:
    """Return True if `rows` outputs a on x, and `rows` outputs b on x', contradict the claim.

    Here a and b are different constants. The test "the output is b" would then have smaller type I
    and type II errors than the claim allows. The conclusion is wrong with probability e^-25.
    """
    if claim is None:
        return False
    error = min(1.0, _SURE_HITS / rows)
    if isinstance(claim, Claim):
        return float(claim.trade_off(error)) > error
    return 1.0 - delta - math.exp(min(claim, 700.0)) * error > error


def _constant_part_lines(sides: tuple[Array, Array], pair: Pair, excluded: bool) -> tuple[str, ...]:
    """Return sentences on parts of the outputs that are constant on x and constant on x'.

    A part is listed if its two constants differ, or if the inputs differ in this entry. `excluded`
    is True if such constants contradict the claim.
    """
    lines = []
    for name, place, values in _iterate_constant_parts(sides):
        if values[0] != values[1]:
            end = ": no noise" if excluded else " in the pilot"
            lines.append(f"{name} is always {values[0]} on x and always {values[1]} on x'{end}")
        elif place is not None and _do_inputs_differ_at_entry(pair, place, sides[0]):
            lines.append(f"{name} was {values[0]} in all pilot outputs")
    more = len(lines) - _MAX_CONSTANT_LINES
    rest = (f"{more:,} more parts of the outputs were constant",) if more > 0 else ()
    return (*lines[:_MAX_CONSTANT_LINES], *rest)


def _iterate_constant_parts(
    sides: tuple[Array, Array],
) -> Iterator[tuple[str, int | None, tuple[str, str]]]:
    """Yield name, number and both values of each part that is constant on x and constant on x'."""
    first, second = sides
    if all(side.dtype.names is None and side.dtype != object for side in sides):
        tables = [side.reshape(len(side), -1) for side in sides]
        if tables[0].shape[1] != tables[1].shape[1]:
            return
        # A column with different first two rows is not constant.
        columns = np.flatnonzero(
            np.logical_and(*(entries_equal(table[0], table[1]) for table in tables))
        )
        for place in columns.tolist():
            parts = [table[:, place : place + 1] for table in tables]
            if all(_has_only_given_row([part], [part[:1]]) for part in parts):
                name = f"entry {place}" if tables[0].shape[1] > 1 else "the output"
                yield name, place, (_show_output(parts[0][0]), _show_output(parts[1][0]))
        return
    columns_prime = dict(list_columns(second))
    for name, column in list_columns(first):
        other = columns_prime.get(name)
        if other is None:
            continue
        parts = [column.reshape(-1, 1), other.reshape(-1, 1)]
        if all(_has_only_given_row([part], [part[:1]]) for part in parts):
            yield name or "the output", None, (_show_output(parts[0][0]), _show_output(parts[1][0]))


def _list_seed_column_notes(sides: tuple[Array, Array]) -> tuple[str, ...]:
    """Return sentences on columns of integers that may be seeds.

    A column may contain seeds if its values hardly repeat, and if the values of another column
    often repeat. Local hashing has such outputs (value, seed). Without the seed, the value has the
    same distribution on x and on x', so the attacks of dpcore find no difference.
    """
    if any(math.prod(side.shape[1:]) > _MAX_COMPARED_ENTRIES for side in sides):
        return ()
    is_table = all(side.dtype != object and side.dtype.names is None for side in sides)
    columns, columns_prime = (dict(list_columns(side[:_MAX_COMPARED_OUTPUTS])) for side in sides)
    shares = {}
    for name in columns.keys() & columns_prime.keys():
        values = np.concatenate([columns[name], columns_prime[name]])
        is_whole = values.dtype.kind == "f" and bool(
            (np.isfinite(values) & (np.rint(values) == values)).all()
        )
        if is_whole or values.dtype.kind in "iu":
            shares[name] = len(np.unique(values)) / len(values)
    repeating = min(shares.values(), default=1.0) <= _MAX_VALUE_SHARE
    return tuple(
        f"{name.replace('column', 'entry') if is_table else name} hardly repeats (a seed?): give a "
        "score that uses it (dpcore.attacks.hash_score)"
        for name, share in sorted(shares.items())
        if repeating and share > _MIN_SEED_SHARE
    )


def _do_inputs_differ_at_entry(pair: Pair, place: int, outputs: Array) -> bool:
    """Return True if the inputs are arrays as large as an output and differ in entry `place`."""
    sides = flat_list_to_floats(pair.x), flat_list_to_floats(pair.x_prime)
    inputs = [np.asarray(side) for side in sides if isinstance(side, np.ndarray)]
    size = math.prod(outputs.shape[1:])
    if len(inputs) < 2 or size < 2 or any(side.size != size for side in inputs):
        return False
    return not bool(entries_equal(*(side.reshape(-1)[place : place + 1] for side in inputs))[0])


def _have_nothing_in_common(sides: tuple[Array, Array]) -> bool:
    """Return True if outputs on x and on x' have no value in common.

    For numbers, the result is also True if a column has disjoint ranges on x and on x'.
    """
    if all(side.dtype.kind in "buif" for side in sides):
        tables = [side.reshape(len(side), -1) for side in sides]
        if tables[0].shape[1] != tables[1].shape[1] or tables[0].shape[1] == 0:
            return False
        # NaN is not in any range.
        ends = [(table.min(axis=0), table.max(axis=0)) for table in tables]
        if bool(((ends[0][1] < ends[1][0]) | (ends[1][1] < ends[0][0])).any()):
            return True
    if any(math.prod(side.shape[1:]) > _MAX_COMPARED_ENTRIES for side in sides):
        return False
    for rows in (_FIRST_COMPARED_OUTPUTS, _MAX_COMPARED_OUTPUTS):
        values = [_list_values(side[:rows]) for side in sides]
        if not values[0].isdisjoint(values[1]):
            return False
    few = all(
        len(listed) <= _MAX_VALUE_SHARE * min(len(side), _MAX_COMPARED_OUTPUTS)
        for listed, side in zip(values, sides, strict=True)
    )
    # All outputs are compared only now, because a common value may be rare.
    return few and _list_values(sides[0]).isdisjoint(_list_values(sides[1]))


def _list_values(side: Array) -> set[Any]:
    """Return the set of different outputs; an output without a hash is represented by its text."""
    if side.dtype.kind in "buif" and math.prod(side.shape[1:]) == 1:
        return set(np.unique(side).tolist())
    return set(map(_object_key, side.tolist()))


def _codes_counts_ordered(column: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], bool]:
    """Replace each value of a column by a number.

    Returns:
        The number of each row's value, how often each value occurs, and True if values have an
        order.
    """
    if column.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        codes = np.array(
            [numbers.setdefault(_object_key(v), len(numbers)) for v in column], np.intp
        )
        return codes, np.bincount(codes, minlength=1), False
    distinct, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    if distinct.dtype.kind == "f" and distinct.size > 1:
        # Values that differ by rounding are one value, because rounding may change with the call.
        values = np.cumsum(
            np.append(
                0, ~_entries_near(distinct[:-1], distinct[1:], rounding_tolerance(distinct.dtype))
            )
        )
        codes, counts = values[codes], np.bincount(values, weights=counts).astype(np.intp)
    return codes, counts, distinct.dtype.kind in "buif"


def rounding_tolerance(format: np.dtype[Any]) -> float:
    """Return the largest relative difference between two floats that rounding may cause.

    It is the machine epsilon to the power 3/4. This is 54 units in the last place for float32, and
    8,192 units for float64. If a computation adds the same numbers in a different order, the result
    may differ by about this much.

    Args:
        format: dtype of the floats.
    """
    slack: float = float(np.finfo(format).eps) ** 0.75
    return slack


def _entries_near(first: Array, second: Array, slack: Any) -> npt.NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        near = np.abs(first - second) <= slack * np.maximum(np.abs(first), np.abs(second))
    same: npt.NDArray[np.bool_] = near & np.isfinite(first) & np.isfinite(second)
    return same


def entries_differ(first: Array, second: Array, slack: Any) -> npt.NDArray[np.bool_]:
    """Compare two arrays entry by entry: True for entries that differ by more than rounding.

    Args:
        first: the first array.
        second: the second array, of the same shape.
        slack: largest relative difference that counts as rounding: one number, or one number for
            each column. None means 54 units in the last place for float32, and 8,192 units for
            float64.
    """
    apart = ~entries_equal(first, second)
    if first.dtype.kind != "f" or second.dtype.kind != "f" or not apart.any():
        return apart
    if slack is None:
        slack = max(rounding_tolerance(first.dtype), rounding_tolerance(second.dtype))
    different: npt.NDArray[np.bool_] = apart & ~_entries_near(first, second, slack)
    return different


def _object_key(value: Any) -> Any:
    """Return a hashable key for an object: the object, "nan" for every NaN, or else its text."""
    try:
        hash(value)
        return "nan" if isinstance(value, float) and value != value else value
    except Exception:
        try:
            return repr(value)
        except Exception:
            return id(value)


def _pair_codes(first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    both = first * (int(second.max(initial=0)) + 1) + second
    codes: npt.NDArray[np.intp] = np.unique(both, return_inverse=True)[1].reshape(-1)
    return codes


def is_row_numbers_in_any_order(values: Array) -> bool:
    """Return True if the values of a column look like row numbers, in any order.

    The result is True if all values are different whole numbers in a short range. The largest value
    minus the smallest value must be less than 1.1 times the number of values. With fewer than 60
    values, the result is False.

    Example:
        >>> is_row_numbers_in_any_order(np.random.default_rng(1).permutation(100) + 5)
        True
        >>> is_row_numbers_in_any_order(np.random.default_rng(1).integers(0, 110, 100))
        False
    """
    if len(values) < FEWEST_NUMBERED_ROWS or values.ndim != 1 or values.dtype.kind not in "uif":
        return False
    if values.dtype.kind == "f" and not (np.isfinite(values) & (np.rint(values) == values)).all():
        return False
    span = float(values.max()) - float(values.min())
    return span < _MAX_NUMBERING_RANGE * len(values) and len(np.unique(values)) == len(values)


def refuse_row_numbers(rows: Array, name: str, titles: Sequence[str] = ()) -> None:
    """Raise an error if a column of recorded outputs contains row numbers.

    Args:
        rows: outputs on one input, one in each row, shape `(size, ...)`.
        name: name of the outputs in the error message.
        titles: names of the columns in the error message. By default, the columns have no names.

    Raises:
        ValueError: if a column contains row numbers, or if all texts of a column contain the row
            number (for example, as the second number in each text).
    """
    for place, values in list_columns(rows, titles):
        if is_row_numbers_in_any_order(values):
            what = f"{place} of {name}" if place else name
            text = f"{what} numbers the rows: leave it out ({_COLUMN_HINT})"
            raise tag_error(ValueError(text), "column")


def refuse_clocks(sides: tuple[Array, Array], titles: Sequence[str] = ()) -> None:
    """Raise an error if a column of outputs seems to contain the time of recording.

    A column of times has values that never decrease from row to row. In addition, all its values on
    one input are smaller than all its values on the other input.

    Args:
        sides: outputs on x and on x', each in the order in which they were recorded.
        titles: names of the columns in the error message. By default, the columns have no names.

    Raises:
        ValueError: if a column of times with at least 20 different values is found.
    """
    columns = (dict(list_columns(side, titles)) for side in sides)
    first, second = columns
    for place in [place for place in first if place in second]:
        if _is_clock(first[place], second[place]):
            what = f"{place or 'column 0'} of outputs"
            text = f"{what} shows when a row was written: leave it out ({_COLUMN_HINT})"
            raise tag_error(ValueError(text), "column")


def _is_clock(own: Array, other: Array) -> bool:
    try:
        rises = all(bool((side[1:] >= side[:-1]).all()) for side in (own, other))
        apart = own[-1] < other[0] or other[-1] < own[0]
    except TypeError:
        # Values of different types have no order.
        return False
    return (
        rises and bool(apart) and len(np.unique(np.concatenate([own, other]))) >= _MIN_CLOCK_VALUES
    )


def list_columns(rows: Array, titles: Sequence[str] = ()) -> Iterator[tuple[str, Array]]:
    """Yield the columns of outputs, each as a pair of its name and its values.

    If outputs are arrays, a column contains one entry of each output. For structured arrays, a
    column contains one field. For lists, a column contains one item. For mappings, a column
    contains the value of one key. For texts, a column contains one number, such as the second
    number in each text.

    Args:
        rows: the outputs, one in each row.
        titles: names of the columns. By default, the columns have no names, or names such as
            "column 2".
    """
    if rows.dtype.names is not None:
        for name in rows.dtype.names:
            yield f"field {name!r}", rows[name]
    elif rows.dtype == object and rows.ndim == 1:
        yield from _iterate_common_entries(rows.tolist())
    else:
        flat = rows.reshape(len(rows), -1)
        for place in range(min(_MAX_LISTED_COLUMNS, flat.shape[1])):
            alone = "" if rows.ndim == 1 else f"column {place}"
            title = titles[place] if len(titles) == flat.shape[1] else alone
            column = flat[:, place]
            if column.dtype == object:
                is_number = all(isinstance(entry, (int, float)) for entry in column)
                column = column.astype(np.float64 if is_number else str)
            yield title, column
            if column.dtype.kind in "US":
                yield from _iterate_nth_integers(column.tolist(), f" of {title}" if title else "")


def _iterate_common_entries(items: list[Any]) -> Iterator[tuple[str, Array]]:
    """Yield the values at each index (of lists) or key (of mappings) that all objects have.

    Numbers are yielded as an array. Texts are searched for numbers.
    """
    if all(isinstance(item, (str, bytes)) for item in items):
        yield from _iterate_nth_integers(items, "")
        return
    keys: list[Any] = []
    if all(isinstance(item, Mapping) for item in items):
        keys = [key for key in items[0] if all(key in item for item in items)]
    elif all(isinstance(item, (list, tuple, np.ndarray)) for item in items):
        keys = list(range(min(map(len, items))))
    for key in keys[:_MAX_LISTED_COLUMNS]:
        values = [item[key] for item in items]
        name = f"place {key}" if isinstance(key, int) else f"key {key!r}"
        if all(isinstance(item, (int, float, np.number)) for item in values):
            yield name, np.array(values)
        elif all(isinstance(item, str) for item in values):
            yield from _iterate_nth_integers(values, f" of {name}")


def _iterate_nth_integers(texts: list[Any], of: str) -> Iterator[tuple[str, Array]]:
    """Yield the first integers of all texts, then the second integers, and so on.

    An array is yielded only if every text has an integer at this place. `of` is the end of the name
    of the array.
    """
    if len(texts) < FEWEST_NUMBERED_ROWS:
        return
    decoded = (text.decode("latin-1") if isinstance(text, bytes) else text for text in texts)
    numbers_of_texts = [_NUMBER_PATTERN.findall(text)[:_MAX_NUMBERS_PER_TEXT] for text in decoded]
    for place in range(min(map(len, numbers_of_texts))):
        # Longer numbers are not row numbers, and do not fit in int64.
        if all(len(text[place]) <= 15 for text in numbers_of_texts):
            yield f"number {place}{of}", np.array([int(text[place]) for text in numbers_of_texts])
