"""Scores of outputs of any type: of whole outputs, and of the parts of outputs.

A part is one real number of an output, such as the length of a string. The values of a part in all
pilot outputs (the first draws of an audit) form a column. Each column is compared between the
outputs on x and on x' when it is read.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from .. import _core
from ..errors import instance, mistyped
from ..events.event import Score, ScoreAttributes, score_attribute, score_name, scores_of
from ..mechanisms.answers import to_object_array as listed
from ..records import Array, Floats, Pair, PartsRead, Record
from . import objects
from .arrays import SLICE_NUMBERS, chi_square_deviate, chi_square_deviates, rank_columns
from .objects import ABSENT, DELIMITERS, WORD, Items, Strings, is_hashable, parse_item, parse_number
from .parts import (
    DERIVED,
    JointParts,
    Node,
    Part,
    Parts,
    cache_parts,
    name_entries,
    prepare_items_and_strings,
    read_numbers,
    renamed_sentences,
    rows_within_memory,
)

Formula = tuple[tuple[str, Any], ...]
_Deviates = list[tuple[Part, float]]

_COMPARED_OUTPUTS: Final = 2**13
"""Largest number of outputs on x, and also on x', that are compared."""
MOST_PARTS: Final = 2**16
"""Largest number of columns that are compared. Further columns are only counted and reported."""
_MAX_KEPT_PARTS: Final = 64
"""Number of parts that are kept. For numeric arrays, one part for every 8 bytes if this is more."""
_MAX_COUNTED_LETTERS: Final = 64
"""Largest number of different letters that are counted."""
_MAX_NAMED_MEMBERS: Final = 1024
"""Number of values whose occurrences in sets or sequences are counted: the most frequent values."""
_MIN_READABLE_SHARE: Final = 0.5
"""Strings are read as numbers, fields or JSON if at least this share of them can be read so."""
_MAX_PART_DEPTH: Final = 8
_MODULI: Final = (1.0, 10.0, 60.0, 100.0, 1000.0, 3600.0, 86400.0, *(2.0**k for k in range(5, 21)))
"""Moduli that are tried for numbers and times, if the spread of a column is far larger."""
_FLOAT64_BITS: Final = 53
"""Number of bits of the whole numbers that a float64 holds exactly."""
_MAX_NUMBER_WORDS: Final = 16
_FEW_VALUES_LIMIT: Final = 16
_MIN_MEAN_REPEATS: Final = 8
"""Objects of other types are compared as a whole if they have few distinct values, or if each value
occurs this often on average."""
_MAX_DERIVED_NUMBERS: Final = 2**20
"""Number of array entries on x, and also on x', whose bits and remainders are compared."""
_DERIVED_MEASURES: Final = ("bit", "modulo")
_MIN_DERIVED_DEVIATIONS: Final = 6.0
"""Least z-score of the difference of a bit or remainder. If 65,536 columns have no difference, this
happens by chance in one of 15,000 pilots."""
_MIN_FORM_DEVIATIONS: Final = 2.0
"""Least z-score of a difference in form. The form of a number often follows from its value."""
_VIEW_SAMPLE_OUTPUTS: Final = 64
"""Number of outputs that show which views of texts and mappings apply."""
_NO_INPUTS: Final = Pair(None, None)
"""Placeholder inputs for an attack on parts, because the true inputs do not match the parts."""
_MAX_FITTED_NUMBERS: Final = 2**23
"""Largest number of values per input, in all parts together, on which an attack is fitted."""
_MAX_COMPARED_OBJECTS: Final = 2**18
"""Largest number of objects per side that are compared whole."""
_MAX_SINGLE_PARTS: Final = 2
"""Number of parts on which an attack is also fitted separately."""
_MAX_WHOLE_VALUES: Final = 8
"""Number of flags of the form "the text is ..." that are tried in addition to single letters."""
_MAX_FORMS: Final = 64
"""Number of forms of the objects at one place that are compared: the most frequent forms."""
_SHOWN_PARTS: Final = 3
"""Number of parts that a report names."""


@dataclass(slots=True, eq=False)
class _RankedPart:
    merit: float
    order: int
    part: Part
    is_separate: bool

    def rank(self, part: Part) -> tuple[int, int]:
        """Return the sort key of a part with equal values. The part with the lowest key is kept.

        The key depends on the difficulty of the part only if its values on x and x' do not overlap.
        """
        return part.reader_effort if self.is_separate else DERIVED + 1, part.cost


class _ColumnScreen:
    """A comparison of columns on x and on x' that keeps the columns that differ most.

    Args:
        split: number of rows on x. These rows come first in each column.
        most: number of columns to keep.
        is_presence: True to compare only whether objects are present, their types and lengths.
    """

    def __init__(self, split: int, most: int, is_presence: bool = False) -> None:
        self.split, self.most, self.is_presence = split, most, is_presence
        self.total = self.compared = self.skipped = 0
        self.kept: list[_RankedPart] = []
        self.copies: dict[int, _RankedPart] = {}
        self.columns: dict[int, Floats] = {}
        self.joint = JointParts()

    def compare_column_on_x_and_x_prime(self, part: Part, column: Floats) -> None:
        """Compare one column on x and on x'; skip a constant column or a copy of another one."""
        self.compared += 1
        first = column[0]
        same = (column == first) & (np.signbit(column) == np.signbit(first))
        if same.all() or np.isnan(column).all():
            return
        key = hash(column.tobytes())
        self.joint.add(part, column, key in self.copies)
        if key in self.copies:
            # A plainer part with the same values replaces the part that was found first.
            copy = self.copies[key]
            copy.part = min(copy.part, part, key=copy.rank)
            return
        self.total += 1
        sides = column[: self.split], column[self.split :]
        (low, high), (low_prime, high_prime) = ((side.min(), side.max()) for side in sides)
        is_separate = bool(low > high_prime or low_prime > high)
        self.copies[key] = _RankedPart(chi_square_deviate(*sides), self.total, part, is_separate)
        self.columns[self.total] = column
        self.kept.append(self.copies[key])
        if len(self.kept) > 4 * self.most:
            self._drop_worst_columns()

    def _drop_worst_columns(self) -> None:
        self.kept.sort(key=lambda each: (each.rank(each.part)[0], -each.merit, each.order))
        del self.kept[self.most :]
        self.columns = {candidate.order: self.columns[candidate.order] for candidate in self.kept}

    def choose_most_different_parts(self, *sides: Array) -> Parts:
        """Return the parts that differ most between x and x'. The easiest parts to read come first.

        Args:
            sides: the outputs on x and on x'. Columns of these outputs are cached, so that they are
                read only once.
        """
        forms = [column for column in self.kept if column.part.measure == "form"]
        faint = {column.order for column in forms if column.merit < _MIN_FORM_DEVIATIONS}
        if not self.is_presence and len(faint) < len(self.kept):
            self.kept = [column for column in self.kept if column.order not in faint]
        self._drop_worst_columns()
        orders: dict[Part, int] = {}
        for candidate in sorted(self.kept, key=lambda each: (*each.rank(each.part), each.order)):
            orders.setdefault(candidate.part, candidate.order)
        parts, first = Parts(tuple(orders)), 0
        for side in sides:
            rows = slice(first, first + len(side))
            parts.cache_columns(side, [self.columns[order][rows] for order in orders.values()])
            first += len(side)
        return parts


def differing_parts(outputs: Array, outputs_prime: Array, name: str) -> tuple[Parts, PartsRead]:
    """Find the numbers in an output (its parts) that differ most between outputs on x and on x'.

    Args:
        outputs: pilot outputs (first draws) on x, shape `(size, ...)`.
        outputs_prime: pilot outputs on x', shape `(size', ...)`.
        name: name of the outputs in error messages.

    Returns:
        The parts that are kept, and a record of how many parts were found and compared. A part is,
        for example, the length of a string. At most 64 parts are kept. If an output is a numeric
        array of b bytes, the limit is the larger of 64 and b/8. Constant parts and copies of other
        parts are left out.

    Raises:
        TypeError: if outputs contain objects other than numbers, strings and containers of these,
            and these other objects seldom repeat or cannot be hashed.
    """
    return _explore_parts(outputs, outputs_prime, name)[:2]


def _explore_parts(
    outputs: Array, outputs_prime: Array, name: str
) -> tuple[Parts, PartsRead, _ColumnScreen]:
    # Numbers of a regular output are separate columns.
    irregular = outputs.dtype == object or outputs.dtype.kind in "US"
    most = _MAX_KEPT_PARTS if irregular else max(_MAX_KEPT_PARTS, outputs[:1].nbytes // 8)
    return _explore_sides(outputs, outputs_prime, _COMPARED_OUTPUTS, most, name)


def choose_presence_type_length_rules(outputs: Array, outputs_prime: Array) -> Parts:
    """Return rules that read the presence, type or length of an object inside an output.

    Only numbers that vary between outputs are read.

    Args:
        outputs: outputs on x, shape `(size, ...)`. They are not numeric arrays.
        outputs_prime: outputs on x' of the same form.
    """
    return _explore_sides(outputs, outputs_prime, len(outputs), _MAX_KEPT_PARTS, "outputs", True)[0]


def _explore_sides(
    outputs: Array, outputs_prime: Array, rows: int, most: int, name: str, is_presence: bool = False
) -> tuple[Parts, PartsRead, _ColumnScreen]:
    """Compare all parts in the first rows on x and on x'.

    Return the parts that are kept, the number of parts that were read, and the comparison.
    """
    rows = max(_FEW_VALUES_LIMIT, rows_within_memory(outputs, rows))
    sides = [outputs[:rows], outputs_prime[:rows]]
    screen = _ColumnScreen(len(sides[0]), most, is_presence)
    _compare_parts_in_subtree(_pool_sides(*sides), (), screen, name)
    parts = screen.compared + screen.skipped
    read = PartsRead(parts, screen.compared, min(map(len, sides)))
    return screen.choose_most_different_parts(*sides), read, screen


def bit_and_remainder_parts(outputs: Array, outputs_prime: Array) -> Parts:
    """Find the bits and remainders of numeric entries that clearly differ between x and x'.

    Args:
        outputs: pilot outputs (first draws) on x, real numbers of shape `(size, ...)`.
        outputs_prime: pilot outputs on x', real numbers of shape `(size', ...)`.

    Returns:
        At most 64 bits and remainders of entries. A bit or remainder is left out if the entry
        itself differs at least as much between x and x'.
    """
    width = max(1, outputs[:1].size)
    rows = max(_FEW_VALUES_LIMIT, min(_COMPARED_OUTPUTS, _MAX_DERIVED_NUMBERS // width))
    sides = [side[:rows] for side in (outputs, outputs_prime)]
    if outputs.dtype.kind == "b" or sides[0].shape[1:] != sides[1].shape[1:]:
        return Parts(())
    screen = _ColumnScreen(len(sides[0]), _MAX_KEPT_PARTS)
    pooled = np.concatenate(sides)
    columns = pooled.reshape(len(pooled), -1).T
    for i, derived in _bit_differing_columns(columns, screen.split):
        index = tuple(map(int, np.unravel_index(i, outputs.shape[1:])))
        own = chi_square_deviate(*np.split(columns[i].astype(np.float64), [screen.split]))
        for part, deviate in derived:
            if deviate > own:
                part = replace(part, steps=(("entry", index),) if index else ())
                screen.compare_column_on_x_and_x_prime(part, _read_column(columns[i], part))
    return screen.choose_most_different_parts()


def _bit_differing_columns(columns: Array, split: int) -> Iterator[tuple[int, _Deviates]]:
    """Yield the number of each column with clearly different bits or remainders on x and on x'.

    For each column, also yield these bits and remainders, with the normal deviates of the tests.
    """
    step = max(1, SLICE_NUMBERS // columns.shape[1]) if columns.dtype.kind == "f" else 1
    for first in range(0, len(columns), step):
        block = columns[first : first + step]
        if columns.dtype.kind == "f":
            values, moduli = np.ascontiguousarray(block, np.float64), np.array(_MODULI)
            parts = [Part((), "modulo", modulus) for modulus in _MODULI]
            deviates = chi_square_deviates(*_core.compare_remainders(values, split, moduli))
        else:
            parts = [
                part for part in _parts_of_values(block[0], ()) if part.measure in _DERIVED_MEASURES
            ]
            derived = np.stack(
                [np.zeros(columns.shape[1]), *(_read_column(block[0], part) for part in parts)]
            )
            deviates = chi_square_deviates(*_core.compare_columns(derived, split))[1:]
        deviates = deviates.reshape(len(block), len(parts))
        for i in np.flatnonzero((deviates >= _MIN_DERIVED_DEVIATIONS).any(axis=1)):
            places = np.flatnonzero(deviates[i] >= _MIN_DERIVED_DEVIATIONS)
            yield first + int(i), [(parts[j], float(deviates[i, j])) for j in places]


def _read_column(column: Array, part: Part) -> Floats:
    derived = np.full(len(column), np.nan)
    read_numbers(column, None, part, derived)
    return derived


def _pool_sides(outputs: Array, outputs_prime: Array) -> Array:
    """Return the outputs on x and on x' in one array, of dtype object if their types differ."""
    sides = [outputs, outputs_prime]
    if outputs.dtype.kind == outputs_prime.dtype.kind:
        # Tables with different fields, or rows of different lengths, have no common array.
        with suppress(TypeError, ValueError):
            return np.concatenate(sides)
    # numpy would convert numbers to strings.
    flat = [side.astype(object) if side.ndim == 1 else listed(list(side)) for side in sides]
    return np.concatenate(flat)


def _compare_parts_in_subtree(node: Node, steps: Formula, screen: _ColumnScreen, name: str) -> None:
    """Compare every part of a node. A node holds the values of all outputs at one place.

    Then compare the parts of the nodes inside this node, such as the fields of a record.
    """
    held, texts = prepare_items_and_strings(node)
    list_parts = _presence_type_length_parts if screen.is_presence else _node_parts_and_omissions
    for part in list_parts(held, texts, steps, name):
        if isinstance(part, int) or screen.compared >= MOST_PARTS:
            screen.skipped += part if isinstance(part, int) else 1
            continue
        column = np.full(len(node), np.nan)
        read_numbers(held, texts, part, column)
        screen.compare_column_on_x_and_x_prime(part, column)
    screen.skipped += _unread_letters(held, texts)
    for step, inner in _steps_into_node(held, texts):
        if screen.is_presence and step == ("view", "keys"):
            continue  # The columns of presence show which keys exist; their order is not needed.
        if len(steps) >= _MAX_PART_DEPTH:
            screen.skipped += 1
        elif inner is not None:
            _compare_parts_in_subtree(inner, (*steps, step), screen, name)


def _unread_letters(held: Items | Array, texts: Strings | None) -> int:
    """Return the number of characters in the middle of long strings that no part reads."""
    columns = [texts]
    if isinstance(held, Items):
        kinds = {objects.TEXT, objects.BYTES} & set(held.present)
        columns = [held.placed_texts(kind)[1] for kind in sorted(kinds)]
    long = [column for column in columns if column is not None and column.items is not None]
    return max(
        [0, *(int(column.lengths.max(initial=0)) - 2 * column.coded_edge_length for column in long)]
    )


def _node_parts_and_omissions(
    held: Items | Array, texts: Strings | None, steps: Formula, name: str
) -> Iterator[Part | int]:
    """Yield the parts of a node, but not of its inner nodes, and counts of omitted parts."""
    if isinstance(held, Items):
        yield from _parts_of_objects(held, steps, name)
    elif texts is not None:
        yield from _parts_of_texts(texts, steps)
        yield from _yield_value_flags(held.tolist(), steps)
    elif held.dtype.names is None and held.ndim == 1:
        yield from _parts_of_values(held, steps)
    elif held.dtype.kind in "US" and held.size:
        values, times = np.unique(held, return_counts=True)
        order = np.argsort(-times, kind="stable")[: np.count_nonzero(times > 1)]
        yield from (Part(steps, "times", values[i].item()) for i in order[:_MAX_NAMED_MEMBERS])
        yield max(0, len(order) - _MAX_NAMED_MEMBERS)


def _presence_type_length_parts(
    held: Items | Array, texts: Strings | None, steps: Formula, name: str
) -> Iterator[Part | int]:
    """Yield the parts of a node that state presence, type or length."""
    if isinstance(held, Items):
        kinds = held.present
        yield from _yield_presence_and_type_flags(held, steps)
        if set(kinds) - {objects.MISSING, objects.NOTHING, objects.NUMBER, objects.OTHER}:
            yield Part(steps, "length")
        if objects.OTHER in kinds:
            _make_object_code_part(held.items_of_kind(objects.OTHER)[1], steps, name)
    elif texts is not None:
        yield Part(steps, "length")


def _steps_into_node(
    held: Items | Array, texts: Strings | None
) -> Iterator[tuple[tuple[str, Any], Node | None]]:
    """Yield each node inside a node (such as a field), with the step that leads to it."""
    if isinstance(held, Items):
        yield from _list_child_objects(held)
    elif texts is not None:
        yield from _parsed_views_of_texts(Items(held.tolist()))
    elif held.ndim > 1:
        indexes = np.ndindex(held.shape[1:])
        yield from ((("entry", index), held[(slice(None), *index)]) for index in indexes)
    else:
        yield from ((("field", name), held[name]) for name in held.dtype.names or ())


def _parts_of_values(array: Array, steps: Formula) -> Iterator[Part]:
    """Yield the parts of a one-dimensional array of numbers or times."""
    kind = array.dtype.kind
    if kind not in "buifcmM":
        return
    numbers = array.view(np.int64) if kind in "mM" else array
    ends = (numbers.max(), numbers.min()) if kind in "iumM" and array.size else ()
    bits = max((int(end).bit_length() for end in ends), default=0)
    values = numbers if kind == "c" else numbers.astype(np.float64)
    yield from _parts_of_numbers(values, bits, 2, steps)


def _parts_of_numbers(values: Array, bits: int, words: int, steps: Formula) -> Iterator[Part]:
    """Yield the parts of a column of numbers: the value, 32-bit words, bits and remainders.

    The moduli of the remainders are at most the spread of the column.
    """
    if np.iscomplexobj(values):
        yield from (Part(steps, "real"), Part(steps, "imaginary"))
        return
    yield Part(steps, "value")
    if bits > _FLOAT64_BITS:
        yield from (Part(steps, "word", i) for i in range(words))
    yield from (Part(steps, "bit", i) for i in range(bits if bits > 8 else 0))
    finite = values[np.isfinite(values)]
    if finite.size < _FEW_VALUES_LIMIT:
        return
    low, high = np.quantile(finite, (0.1, 0.9))
    whole = bool((finite == np.rint(finite)).all())
    for modulus in _MODULI:
        if modulus <= high - low and not (whole and modulus <= 1):
            yield Part(steps, "modulo", modulus)


def _parts_of_texts(texts: Strings, steps: Formula) -> Iterator[Part | int]:
    """Yield the parts of strings: the length, letters near both ends, and counts of letters."""
    yield Part(steps, "length")
    width = int(texts.lengths.max(initial=0))
    ends = width if width <= texts.coded_edge_length else texts.coded_edge_length
    yield from (Part(steps, "letter", i) for i in range(ends))
    if (texts.lengths != texts.lengths[:1]).any():
        yield from (Part(steps, "letter", -1 - i) for i in range(ends))
    if texts.is_bytes:
        yield from (Part(steps, "bit", i) for i in range(8 * ends))
    codes = texts.letters_by_frequency()
    yield from (Part(steps, "count", code) for code in codes[:_MAX_COUNTED_LETTERS])
    yield max(0, len(codes) - _MAX_COUNTED_LETTERS)
    numbers = texts.parse_as_numbers(_VIEW_SAMPLE_OUTPUTS)
    if numbers.size and np.isfinite(numbers).mean() >= _MIN_READABLE_SHARE:
        yield Part(steps, "number")


def _yield_presence_and_type_flags(bunch: Items, steps: Formula) -> Iterator[Part]:
    """Yield the parts that state whether an object is present, and its type."""
    kinds = bunch.present
    if objects.MISSING in kinds:
        yield Part(steps, "there")
    # The most frequent kind follows from all other kinds. Exceptions have names instead.
    plain = [kind for kind in kinds if kind != objects.RAISED]
    usual = max(plain, key=lambda kind: int((bunch.kinds == kind).sum()), default=None)
    yield from (Part(steps, "kind", kind) for kind in plain if kind not in (objects.MISSING, usual))
    names = Counter(exception.name for exception in bunch.items_of_kind(objects.RAISED)[1])
    if len(names) + len(kinds) > 2:
        yield from (Part(steps, "raises", name) for name, _ in names.most_common())
    forms = Counter(form for form in bunch.type_of_each_as_text if form is not None).most_common()
    yield from (Part(steps, "form", form) for form, _ in forms[1:_MAX_FORMS])


def _parts_of_objects(bunch: Items, steps: Formula, name: str) -> Iterator[Part | int]:
    """Yield the parts of Python objects that suit the types of the objects."""
    kinds = bunch.present
    yield from _yield_presence_and_type_flags(bunch, steps)
    if objects.NUMBER in kinds:
        bits = bunch.longest_bits()
        words = min(_MAX_NUMBER_WORDS, bits // WORD + 1)
        yield from _parts_of_numbers(bunch.placed_numbers()[1], bits, words, steps)
    for kind in (objects.TEXT, objects.BYTES):
        if kind in kinds:
            yield from _parts_of_texts(bunch.placed_texts(kind)[1], steps)
            yield from _yield_value_flags(bunch.items_of_kind(kind)[1], steps)
    if {objects.SEQUENCE, objects.MAPPING, objects.SET} & set(kinds):
        yield Part(steps, "length")
    if objects.OTHER in kinds:
        yield _make_object_code_part(bunch.items_of_kind(objects.OTHER)[1], steps, name)
    for kind, measure in ((objects.SET, "holds"), (objects.SEQUENCE, "times")):
        if kind in kinds:
            yield from _counting_parts(bunch, kind, measure, steps)


def _yield_value_flags(items: list[Any], steps: Formula) -> Iterator[Part | int]:
    """Yield the flags "the value is ..." for the most frequent values, if values repeat."""
    table = Counter(items)
    if 1 < len(table) <= max(_FEW_VALUES_LIMIT, len(items) / _MIN_MEAN_REPEATS):
        yield from (Part(steps, "is", value) for value, _ in table.most_common(_MAX_NAMED_MEMBERS))
        yield max(0, len(table) - _MAX_NAMED_MEMBERS)


def _counting_parts(bunch: Items, kind: int, measure: str, steps: Formula) -> Iterator[Part | int]:
    """Yield the parts that count members of sets or sequences.

    They count a member that occurs in several outputs, or the floats in an interval.
    """
    rows = bunch.placed_sequences[1] if kind == objects.SEQUENCE else bunch.items_of_kind(kind)[1]
    table = Counter(itertools.chain.from_iterable(map(_hashable_members, rows)))
    # The order of a set of strings differs between processes.
    repeated = [member for member, times in table.items() if times > 1]
    repeated.sort(key=lambda member: (-table[member], type(member).__name__, repr(member)))
    lengths = [len(member) for member in rows]
    if kind == objects.SET or len(set(lengths)) > 1 or len(table) < sum(lengths) / 4:
        yield from (Part(steps, measure, member) for member in repeated[:_MAX_NAMED_MEMBERS])
        yield max(0, len(repeated) - _MAX_NAMED_MEMBERS)
    floats = [member for items in rows for member in items if isinstance(member, float)]
    if len(floats) > 4 * len(rows) or (kind == objects.SET and floats):
        yield from _find_dense_intervals(np.array(floats), len(rows), steps)


def _hashable_members(row: Any) -> set[Any]:
    """Return the set of the hashable members of one set or sequence."""
    try:
        return set(row)
    except TypeError:
        return {member for member in row if is_hashable(member)}


def _find_dense_intervals(values: Floats, rows: int, steps: Formula) -> Iterator[Part]:
    """Yield the intervals with the most floats, on several grids from coarse to fine."""
    values = values[np.isfinite(values)]
    if not values.size:
        return
    width = float(values.max() - values.min())
    for halving in range(4, 28, 3):
        unit = width / 2.0**halving
        if unit <= 0.0:
            return
        for shift in (0.0, 0.5):
            cells, times = np.unique(np.floor(values / unit + shift), return_counts=True)
            for place in np.argsort(-times, kind="stable")[:8]:
                if times[place] >= max(8, rows // 64):
                    low = (float(cells[place]) - shift) * unit
                    yield Part(steps, "near", (low, low + unit))


def _list_child_objects(bunch: Items) -> Iterator[tuple[tuple[str, Any], list[Any]]]:
    """Yield each place of sequences, each key of mappings and each view, with its objects.

    A view is another form of an object, such as the numbers that occur in a text.
    """
    kinds = bunch.present
    if objects.SEQUENCE in kinds:
        rows = bunch.placed_sequences[1]
        yield from ((("place", i), held) for i, held in enumerate(bunch.iterate_places()))
        if len(set(map(len, rows))) > 1:
            ends = enumerate(bunch.iterate_places(from_end=True))
            yield from ((("place", -1 - i), held) for i, held in ends)
        if all(_is_key_value_pairs(row) for row in rows[:_VIEW_SAMPLE_OUTPUTS]):
            yield ("view", "pairs"), bunch.convert_items("pairs")
    if objects.NUMBER in kinds:
        numbers = bunch.items_of_kind(objects.NUMBER)[1]
        for kind, *names in ((Decimal, "digits"), (Fraction, "numerator", "denominator")):
            exact = [number for number in numbers if isinstance(number, kind)]
            if exact and _has_float_collisions(exact):
                yield from ((("view", name), bunch.convert_items(name)) for name in names)
    if objects.MAPPING in kinds:
        maps = bunch.placed_mappings[1]
        keys = Counter(key for mapping in maps for key in mapping)
        yield from ((("key", key), bunch.values_under_key(key)) for key, _ in keys.most_common())
        spaced = maps[:: max(1, len(maps) // (4 * _VIEW_SAMPLE_OUTPUTS))]
        if _has_changing_key_order([list(mapping) for mapping in spaced]):
            yield ("view", "keys"), bunch.convert_items("keys")
    if objects.RAISED in kinds:
        yield ("view", "message"), bunch.convert_items("message")
    yield from _parsed_views_of_texts(bunch)


def _has_float_collisions(numbers: list[Any]) -> bool:
    """Return True if float64 rounds two different exact numbers to the same number."""
    rounded = {objects.read_complex(number) for number in numbers}
    return len(set(map(objects.as_hashable, numbers))) > len(rounded)


def _is_key_value_pairs(row: Any) -> bool:
    """Return True for a nonempty sequence of pairs whose first entries are strings or ints."""
    is_list = len(row) > 0 and all(
        isinstance(item, (tuple, list)) and len(item) == 2 for item in row
    )
    return is_list and all(isinstance(item[0], (str, int)) for item in row)


def _has_changing_key_order(rows: list[list[Any]]) -> bool:
    """Return True if two mappings list their common keys in different orders."""
    for order, other in zip(rows, rows[1:] + rows[:1], strict=True):
        shared = {*order} & {*other}
        if [key for key in order if key in shared] != [key for key in other if key in shared]:
            return True
    return False


def _parsed_views_of_texts(bunch: Items) -> Iterator[tuple[tuple[str, Any], list[Any]]]:
    """Yield the views that apply to strings: JSON, fields, words, and numbers in the text."""
    looked = bunch.items_of_kind(objects.TEXT)[1][:_VIEW_SAMPLE_OUTPUTS]
    if not looked:
        return
    need = _MIN_READABLE_SHARE * len(looked)
    steps: list[str] = []
    if sum(map(_is_json_object_or_array, looked)) >= need:
        steps.append("json")
    else:
        steps += [f"fields {text}" for text in DELIMITERS if sum(text in t for t in looked) >= need]
        if sum(len(text.split()) > 1 for text in looked) >= need:
            steps.append("words")
        numbered = sum(any(c.isdigit() for c in text) and not text.isdigit() for text in looked)
        if numbered >= need and any(math.isnan(parse_number(text)) for text in looked):
            steps.append("numbers")
    yield from ((("view", view), bunch.convert_items(view)) for view in steps)


def _is_json_object_or_array(text: str) -> bool:
    return text.lstrip().startswith(("{", "[")) and parse_item(text, "json") is not ABSENT


def _make_object_code_part(values: list[Any], steps: Formula, name: str) -> Part:
    """Return a part that gives a number to each distinct object, for objects without other parts.

    Raises:
        TypeError: if the objects cannot be hashed or do not repeat.
    """
    odd = next((value for value in values if not is_hashable(value)), None)
    table = Counter(values if odd is None else ())
    if odd is not None or len(table) > max(_FEW_VALUES_LIMIT, len(values) / _MIN_MEAN_REPEATS):
        requirement = "numbers, strings, containers of these, or objects that repeat"
        where = f" ({Part(steps, 'value')})" if steps else ""
        raise mistyped(name + where, requirement, type(values[0] if odd is None else odd))
    return Part(steps, "which", tuple(value for value, _ in table.most_common(_MAX_KEPT_PARTS)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartsScore(Record, word="OfParts"):
    """A score that is computed from numbers (parts) of each output: ``score(parts(outputs))``.

    Args:
        parts: function from outputs to an array of real numbers, with one column for each number.
        score: function from this array to one real number per output.

    Raises:
        TypeError: if `parts` is not a `Parts` or `score` is not callable.

    Example:
        >>> from dpcore.attacks.parts import Part
        >>> score = PartsScore(Parts((Part((), "length"),)), lambda columns: columns[:, 0])
        >>> score(np.array(["a", "abc"])).tolist()
        [1.0, 3.0]
    """

    parts: Parts
    score: Any

    def __post_init__(self) -> None:
        """Check that `parts` is a `Parts` and that `score` is callable."""
        instance("parts", self.parts, Parts)
        if not callable(self.score):
            raise mistyped("score", "a callable parts -> scores", self.score)

    @property
    def merged(self) -> bool:
        """True if rounding errors in the outputs do not change the values of this score."""
        return bool(score_attribute(self.score, "merged"))

    @property
    def cost(self) -> int:
        """Approximate time to compute this score, in nanoseconds per output, on a usual machine."""
        own = int(score_attribute(self.score, "cost"))
        return own + sum(part.cost for part in self.parts.parts)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the field `score`, or raise an AttributeError."""
        if name.startswith("_") or name in ("parts", "score"):
            raise AttributeError(name)
        return getattr(self.score, name)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs of any type, shape `(size,)`."""
        return scores_of(self.score, self.parts(np.asarray(outputs)))

    @property
    def _raw_part(self) -> Part | None:
        """The part whose value is the score, or None if the score is another function."""
        is_value = len(self.parts.parts) == 1 and score_attribute(self.score, "alone") is not None
        return self.parts.parts[0] if is_value else None

    @property
    def plainness(self) -> int:
        """Difficulty of this score for readers of a report: 0 is the easiest to understand."""
        return ScoreAttributes.plainness if self._raw_part is None else self._raw_part.reader_effort

    @property
    def whole(self) -> bool:
        """True if all values of this score are whole numbers."""
        part = self._raw_part
        return bool(score_attribute(self.score, "whole")) if part is None else part.is_integral

    @property
    def letters(self) -> bool:
        """True if the value of this score is the code of a letter in the output."""
        return self._raw_part is not None and self._raw_part.measure == "letter"

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Sentences for outputs with score 1 and with score 0 if this score is a flag, or None."""
        part = self._raw_part
        if part is not None:
            return (part.flag_sentence(True), part.flag_sentence(False)) if part.is_flag else None
        return renamed_sentences(self.score, partial(name_entries, names=self.parts.names()))

    def __str__(self) -> str:
        """Return a description of the score that names its parts, as one line of a report."""
        names, text = self.parts.names(), score_name(self.score)
        sentence = name_entries(text, names)
        if len(names) == 1:
            sentence = sentence.replace("the output's cell", f"the cell of {names[0]}")
            return sentence.replace("the output", names[0])
        if sentence != text:
            return sentence.replace(" entries", " parts")
        more = f" and {len(names) - _SHOWN_PARTS} more" if len(names) > _SHOWN_PARTS else ""
        listed = f"parts ({', '.join(names[:_SHOWN_PARTS])}{more})"
        sentence = text.replace("entries", listed, 1)
        return sentence if sentence != text else f"{text} of the {listed}"


@cache_parts()
@np.errstate(over="ignore", invalid="ignore")
def read_candidates(
    attack: Any, outputs: Array, outputs_prime: Array, pair: Pair, name: str = "outputs"
) -> tuple[tuple[Score, ...], PartsRead | None]:
    """Return the scores that an attack fits on pilot outputs (first draws) of any type.

    The attack makes scores of whole outputs. It also makes scores of numbers (parts) that are read
    from each output, such as the length of a string or the bits of an entry.

    Args:
        attack: an attack that makes scores.
        outputs: pilot outputs on `x`, shape `(size, ...)`.
        outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
        pair: the two inputs x and x'.
        name: name of the outputs in error messages.

    Returns:
        The scores, and a record of how many parts were found and compared. The scores are an empty
        tuple if the attack does not apply. The record is None if the attack does not use parts.

    Raises:
        TypeError: if outputs contain objects other than numbers, strings and containers of these,
            and these other objects seldom repeat or cannot be hashed.
    """
    sides = np.asarray(outputs), np.asarray(outputs_prime)
    if not attack.parts or not all(side.size for side in sides):
        return tuple(attack.candidates(*sides, pair)), None
    regular = all(side.dtype.kind in "buif" for side in sides)
    if regular:
        width = sides[0][:1].size
        parts, read = bit_and_remainder_parts(*sides), PartsRead(width, width, min(map(len, sides)))
    else:
        parts, read, screen = _explore_parts(*sides, name)
    limits = [None if rows.dtype.kind in "buifUSmM" else _MAX_COMPARED_OBJECTS for rows in sides]
    heads = [side[:most] for side, most in zip(sides, limits, strict=True)]
    candidates = attack.candidates(*heads, pair)
    if not parts.parts:
        return tuple(candidates), read
    most = _MAX_COMPARED_OBJECTS if regular else max(1, _MAX_FITTED_NUMBERS // len(parts.parts))
    columns = [parts(side[:most]) for side in sides]
    made = [_narrow_if_one_read(parts, rows) for rows in attack.candidates(*columns, _NO_INPUTS)]
    # A sum over many parts has the noise of all parts, but one part may hold the whole signal.
    ranks = rank_columns(*columns) if len(parts.parts) > 1 and not regular else []
    for i in ranks[:_MAX_SINGLE_PARTS]:
        single = [side[:, [i]] for side in columns]
        made += [PartsScore(parts.select([i]), s) for s in attack.candidates(*single, _NO_INPUTS)]
    if not regular:
        made += _value_flags_at_scored_places(parts, made)
        together, joint = screen.joint.read_columns()
        joint_sides = joint[: screen.split], joint[screen.split :]
        for score in attack.joint(*joint_sides) if together.parts else ():
            used = together.select(score.entries.tolist())
            made.append(PartsScore(used, replace(score, entries=np.arange(len(used.parts)))))
    # A user's own score reads only whole outputs, not their parts.
    own = {id(rows) for rows in candidates}
    made = [rows for rows in made if id(rows.score) not in own]
    return (*candidates, *dict.fromkeys(made)), read


def _value_flags_at_scored_places(parts: Parts, scores: list[PartsScore]) -> list[PartsScore]:
    """Return flags such as "the word is 'yes'" for places where a score reads a letter or length.

    The flag and the letter often give equally good events, and the flag is easier to read.
    """
    single = [s for s in scores if len(s.parts.parts) == 1 and score_attribute(s.score, "alone")]
    steps = {candidate.parts.parts[0].steps for candidate in single}
    flags = [part for part in parts.parts if part.is_flag and part.steps in steps]
    return [PartsScore(Parts((part,)), single[0].score) for part in flags[:_MAX_WHOLE_VALUES]]


def _narrow_if_one_read(parts: Parts, score: Score) -> PartsScore:
    """Return the score as a score of parts; keep only one part if the score reads only one."""
    alone = score_attribute(score, "alone")
    if alone is None:
        return PartsScore(parts, score)
    entry, inner = alone()
    return PartsScore(parts.select([entry]), inner)
