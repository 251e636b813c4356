"""Python objects in outputs: functions that read numbers, strings and entries from many objects.

An `Items` holds the objects at one place of many outputs: one object per output, or `ABSENT`. A
kind is a group of types, such as numbers, strings or sequences. An `Items` determines the kind of
each object once. Therefore each function needs only one pass over the objects of one kind.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from numbers import Integral, Number, Rational
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import mistyped
from ..events.event import numpy_of
from ..mechanisms.answers import is_table_class, table_to_mapping
from ..mechanisms.callables import Raised
from ..mechanisms.spellings import PLAIN_CLASSES, Spelled
from ..packages import has_array_method, is_tensor
from ..records import Array, Flags, Floats, Ints
from .arrays import Places

_MAX_UNCUT_CHARACTERS: Final = 256
"""Largest length of strings that are coded as a whole. Of longer strings, the ends are coded."""
_END_CHARACTERS: Final = 1024
"""Number of characters that are coded at each end of a long string."""
_FROM_END: Final = slice(None, -_END_CHARACTERS - 1, -1)
_COUNTS_BEFORE_TABLE: Final = 2
"""Number of values that are counted one by one before a table of all members is made."""
DELIMITERS: Final = ",;\t|"
"""Characters that may separate the fields of a text."""
NO_LETTER: Final = -1.0
"""The code of a character at a place beyond the end of the string."""


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Many strings (or bytes objects), stored as arrays of character codes.

    Args:
        lengths: number of characters of each string, shape `(size,)`.
        heads: codes of the first characters of each string, shape `(size, width)`. Entries beyond
            the end of a string are 0.
        tails: codes of the last characters of each string, from the end backwards, shape
            `(size, width)`. None if `heads` contains all characters.
        items: the strings, or None if `heads` contains all characters.
    """

    lengths: Ints
    heads: Array
    tails: Array | None = None
    items: Sequence[Any] | None = None

    @classmethod
    def of_array(cls, array: Array) -> Strings:
        """Store the strings of a numpy array (dtype U or S, shape `(size,)`) as character codes."""
        return cls(np.char.str_len(array).astype(np.int64), _to_character_codes(array))

    @classmethod
    def of_items(cls, items: Sequence[Any], is_bytes: bool) -> Strings:
        """Store Python strings (or bytes objects if `is_bytes` is True) as character codes."""
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        width, kind = int(lengths.max(initial=0)), "S" if is_bytes else "U"
        if width <= _MAX_UNCUT_CHARACTERS:
            return cls(lengths, _to_character_codes(np.array(items, f"{kind}{max(1, width)}")))
        kind, cuts = f"{kind}{_END_CHARACTERS}", (slice(_END_CHARACTERS), _FROM_END)
        ends = [_to_character_codes(np.array([item[cut] for item in items], kind)) for cut in cuts]
        return cls(lengths, ends[0], ends[1], items)

    @property
    def coded_edge_length(self) -> int:
        """Number of characters that are stored as codes, at each end of a string."""
        return _END_CHARACTERS if self.tails is not None else self.heads.shape[1]

    @property
    def is_bytes(self) -> bool:
        """True if the strings are bytes objects."""
        return self.heads.dtype == np.uint8

    def letter_codes_at(self, place: int) -> Floats:
        """Return the code of one character of each string, shape `(size,)`.

        `place` is the position of the character, counted from 0. A negative position counts from
        the end. The result is -1 for strings that are too short.
        """
        width = self.heads.shape[1]
        inside = self.lengths > place if place >= 0 else self.lengths >= -place
        if self.items is not None and not -_END_CHARACTERS <= place < _END_CHARACTERS:
            # For a long text among objects, only the ends are kept as numbers.
            reached = zip(self.items, inside, strict=True)
            letters = [item[place] if has else 0 for item, has in reached]
            codes: Any = [ord(item) if isinstance(item, str) else item for item in letters]
        elif place >= 0:
            codes = self.heads[:, min(place, width - 1)]
        elif self.tails is not None:
            codes = self.tails[:, -place - 1]
        else:
            at = np.clip(self.lengths + place, 0, width - 1)
            codes = np.take_along_axis(self.heads, at[:, np.newaxis], axis=1)[:, 0]
        return np.where(inside, codes, NO_LETTER)

    def count_letter(self, code: int) -> Floats:
        """Return how often the character with the code `code` occurs in each string."""
        if self.items is not None:
            letter = bytes([code]) if isinstance(self.items[0], bytes) else chr(code)
            return np.fromiter((item.count(letter) for item in self.items), np.float64)
        # Zeros beyond the end are not letters.
        beyond = self.heads.shape[1] - self.lengths if code == 0 else 0
        return np.asarray(np.count_nonzero(self.heads == code, axis=1) - beyond, np.float64)

    def parse_as_numbers(self, max_strings: int | None = None) -> Floats:
        """Convert the strings (or the first `max_strings`) to floats; other texts become NaN."""
        return np.array(
            [parse_number(text) for text in self._python_strings()[:max_strings]], dtype=np.float64
        )

    def letters_by_frequency(self) -> list[int]:
        """Return the codes of all characters that occur. The most frequent character is first."""
        used = np.arange(self.heads.shape[1]) < self.lengths[:, np.newaxis]
        codes, counts = np.unique(self.heads[used], return_counts=True)
        return [int(code) for code in codes[np.argsort(-counts, kind="stable")]]

    def _python_strings(self) -> Sequence[Any]:
        if self.items is not None:
            return self.items
        kind = f"{'S' if self.is_bytes else 'U'}{self.heads.shape[1]}"
        return list(np.ascontiguousarray(self.heads).view(kind)[:, 0].tolist())


def _to_character_codes(array: Array) -> Array:
    """Convert a numpy array of strings to character codes, shape `(size, width)`."""
    code = np.uint32 if array.dtype.kind == "U" else np.uint8
    width = array.dtype.itemsize // np.dtype(code).itemsize
    if width == 0:
        return np.zeros((len(array), 1), code)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native).view(code).reshape(len(array), width)


def parse_number(text: Any) -> float:
    """Convert a string to a float, or return NaN if the string is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


class _AbsentType:
    """The class of the constant `ABSENT`."""


ABSENT: Final = _AbsentType()
"""Placeholder for the missing object if an output has no object at a place (such as a key)."""

NOTHING, NUMBER, TEXT, BYTES, SEQUENCE, MAPPING, SET, OTHER, RAISED = range(9)
"""The kinds of objects."""

MISSING: Final = -1
"""The kind of `ABSENT`."""

WORD: Final = 32
"""Number of bits in a word (a piece of a whole number)."""

_EPOCH: Final = datetime.datetime(1970, 1, 1)


class Members:
    """A list of sequences or sets, and methods that count their members.

    Args:
        rows: the list of sequences or sets.
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        """Store the sequences or sets."""
        self.rows = rows
        self._counted = 0

    def count_equal(self, value: Any) -> Floats:
        """Return, for each sequence or set, how many members are equal to a hashable value."""
        self._counted += 1
        if self._counted <= _COUNTS_BEFORE_TABLE or self._member_numbers_rows_and_starts is None:
            return np.array([_count_equal(row, value) for row in self.rows], dtype=np.float64)
        numbers, holders, first = self._member_numbers_rows_and_starts
        if (number := numbers.get(value)) is None:
            return np.zeros(len(self.rows))
        held = holders[first[number] : first[number + 1]]
        return np.bincount(held, minlength=len(self.rows)).astype(np.float64)

    def count_between(self, low: float, high: float) -> Floats:
        """Return, for each sequence or set, how many members are floats in [low, high)."""
        self._counted += 1
        if self._counted <= _COUNTS_BEFORE_TABLE:
            values, holders = self._floats_and_rows
            inside: Any = (values >= low) & (values < high)
        else:
            values, holders = self._sorted_floats_and_rows
            inside = slice(*np.searchsorted(values, (low, high)))
        return np.bincount(holders[inside], minlength=len(self.rows)).astype(np.float64)

    @functools.cached_property
    def _member_numbers_rows_and_starts(self) -> tuple[dict[Any, int], Places, Places] | None:
        """Tables of all members, or None if a member cannot be hashed.

        The three tables are: a number for each distinct value, the rows that contain each value,
        and the index at which the rows of each value begin.
        """
        numbers: dict[Any, int] = {}
        try:
            codes = [
                numbers.setdefault(member, len(numbers)) for row in self.rows for member in row
            ]
        except TypeError:
            # Members without a hash are compared one by one.
            return None
        holders = np.repeat(np.arange(len(self.rows)), list(map(len, self.rows)))
        first = np.cumsum([0, *np.bincount(np.array(codes, np.intp), minlength=len(numbers))])
        return numbers, holders[np.argsort(codes, kind="stable")], first

    @functools.cached_property
    def _floats_and_rows(self) -> tuple[Floats, Places]:
        """The floats of all rows in one array, and the index of each float's row."""
        members = list(itertools.chain.from_iterable(self.rows))
        holders = np.repeat(np.arange(len(self.rows)), list(map(len, self.rows)))
        if not all(issubclass(member, float) for member in set(map(type, members))):
            is_float = [isinstance(member, float) for member in members]
            members, holders = list(itertools.compress(members, is_float)), holders[is_float]
        return np.array(members, dtype=np.float64), holders

    @functools.cached_property
    def _sorted_floats_and_rows(self) -> tuple[Floats, Places]:
        values, holders = self._floats_and_rows
        order = np.argsort(values)
        return values[order], holders[order]


def _count_equal(row: Any, value: Any) -> int:
    try:
        return list(row).count(value)
    except ValueError:
        # For an array inside a row, `==` compares entry by entry.
        return 0


class Items:
    """List with one Python object for each output: the object at the same place of every output.

    A place is, for example, one key of a dictionary.

    Args:
        items: the objects, one per output. An entry is `ABSENT` if the output has no object at this
            place.
    """

    def __init__(self, items: list[Any]) -> None:
        """Store the items, and find the kind of each item, such as number or string."""
        self.items = self._returned = items
        classes: set[Any] = set(map(type, items))
        if not classes.isdisjoint(_PLAIN_CLASSES):
            plain = _PLAIN_CLASSES
            items = [plain[type(item)](item) if type(item) in plain else item for item in items]
            self.items, classes = items, set(map(type, items))
        kinds = {cls: _classify_type(cls) for cls in classes}
        if len(classes) == 1:
            self.kinds = np.full(len(items), kinds[classes.pop()], np.int8)
        else:
            self.kinds = np.fromiter(map(kinds.__getitem__, map(type, items)), np.int8, len(items))
        self._texts: dict[int, tuple[Places, Strings]] = {}
        self._members: dict[int, tuple[Places, Members]] = {}
        self.present = sorted(set(kinds.values()))
        self._compared = 0

    def items_of_kind(self, kind: int) -> tuple[Places, list[Any]]:
        """Return the indices of the objects of one kind in this `Items`, and these objects.

        A kind is one of the constants of this module, such as `NUMBER`, `TEXT` or `SEQUENCE`.
        """
        is_one = self.kinds == kind
        where = np.flatnonzero(is_one)
        if where.size == len(self.items):
            return where, self.items
        return where, list(itertools.compress(self.items, is_one.tolist())) if where.size else []

    def placed_numbers(self) -> tuple[Places, npt.NDArray[np.complex128] | Floats]:
        """Return the indices of the (real or complex) numbers in this `Items`, and the numbers."""
        where, values_found = self.items_of_kind(NUMBER)
        try:
            return where, np.array(values_found, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([read_complex(value) for value in values_found], dtype=np.complex128)
        return where, values if values.imag.any() else values.real

    @functools.cached_property
    def type_of_each_as_text(self) -> list[str | None]:
        """The type of each object in this `Items` as text, such as 'float'.

        The entry is None for an object that is `ABSENT`.
        """
        items = self._returned
        classes: set[Any] = set(map(type, items))
        has_one = len(classes) == 1 and not any(map(can_instances_differ_in_type_text, classes))
        # Among floats, only zeros can have a different form.
        if has_one or (classes == {float} and 0.0 not in items):
            return [form_of(items[0])] * len(items)
        return [None if item is ABSENT else form_of(item) for item in items]

    @functools.cached_property
    def placed_integers(self) -> tuple[Places, list[int]]:
        """The indices of the integers in this `Items`, and a list of these integers."""
        where, numbers = self.items_of_kind(NUMBER)
        classes: set[Any] = set(map(type, numbers))
        integral = {number for number in classes if issubclass(number, Integral)}
        if integral != classes:
            places = [i for i, number in enumerate(numbers) if type(number) in integral]
            where, numbers = where[places], [numbers[i] for i in places]
        return where, list(map(int, numbers))

    def placed_integer_32_bit_words(self, word_index: int) -> tuple[Places, Floats]:
        """Return the indices of the integers in this `Items`, and 32 bits of each integer.

        The 32 bits are returned as a number. They start at bit `32 * word_index` of the integer, in
        two's complement.
        """
        where, whole = self.placed_integers
        shift, mask = WORD * word_index, 2**WORD - 1
        return where, np.array([float((whole_number >> shift) & mask) for whole_number in whole])

    def placed_int_bits(self, bit_index: int) -> tuple[Places, Floats]:
        """Return the indices of the integers in this `Items`, and the bit `bit_index` of each one.

        Bits are counted from the lowest one, in two's complement. Each bit is 0.0 or 1.0.
        """
        # Beyond the longest number, every bit equals its sign bit.
        column = self._integer_bit_table[:, min(bit_index, self._integer_bit_table.shape[1] - 1)]
        return self.placed_integers[0], column.astype(np.float64)

    @functools.cached_property
    def _integer_bit_table(self) -> Array:
        whole, width = self.placed_integers[1], self.longest_bits() // 8 + 1
        rows = b"".join(number.to_bytes(width, "little", signed=True) for number in whole)
        table = np.frombuffer(rows, np.uint8).reshape(len(whole), width)
        return np.unpackbits(table, axis=1, bitorder="little")

    def convert_items(self, kind: str) -> list[Any]:
        """Convert each object in this `Items` to another form, such as the list of its keys.

        `kind` names the form. If an object does not have this form, the result for it is `ABSENT`.
        """
        kinds = {"keys": MAPPING, "pairs": SEQUENCE, "message": RAISED, **_DIGIT_VIEWS}
        source = kinds.get(kind, TEXT)
        where, items = self.placed_sequences if source == SEQUENCE else self.items_of_kind(source)
        return self._pad_values_with_absent(where, [parse_item(item, kind) for item in items])

    def longest_bits(self) -> int:
        """Return the number of bits of the longest integer in this `Items`."""
        return max((number.bit_length() for number in self.placed_integers[1]), default=0)

    def placed_texts(self, kind: int) -> tuple[Places, Strings]:
        """Return the indices of the strings (or bytes) in this `Items`, and these strings."""
        if kind not in self._texts:
            where, texts = self.items_of_kind(kind)
            plain = list(map(bytes, texts)) if kind == BYTES else texts
            self._texts[kind] = where, Strings.of_items(plain, kind == BYTES)
        return self._texts[kind]

    @functools.cached_property
    def placed_sequences(self) -> tuple[Places, list[Sequence[Any]]]:
        """The indices of the sequences and arrays in this `Items`, and these sequences as lists."""
        where, rows = self.items_of_kind(SEQUENCE)
        classes: set[Any] = set(map(type, rows))
        return where, rows if classes <= _BUILTIN_SEQUENCES else list(map(to_list_or_tuple, rows))

    def entries_at_place(self, number: int) -> list[Any]:
        """Return the entry with the index `number` of each sequence in this `Items`.

        Entries are counted from 0. Negative numbers count from the end of the sequence. The result
        is `ABSENT` if an object is not a sequence or is too short.
        """
        where, rows = self.placed_sequences
        least = number + 1 if number >= 0 else -number
        return self._pad_values_with_absent(
            where, [r[number] if len(r) >= least else ABSENT for r in rows]
        )

    def iterate_places(self, from_end: bool = False) -> Iterator[list[Any]]:
        """Yield the first entry of each sequence in this `Items`, then the second entry, and so on.

        Each result is a list with one element per output. The element is `ABSENT` if the output has
        no such entry. If `from_end` is True, the entries are counted from the end.
        """
        where, rows = self.placed_sequences
        entries: Any = map(reversed, rows) if from_end else rows
        for column in itertools.zip_longest(*entries, fillvalue=ABSENT):
            yield self._pad_values_with_absent(where, list(column))

    def nested_entries_at(self, index: Any) -> list[Any]:
        """For each nested sequence in this `Items`, return the entry at an index like `(1, 0)`."""
        items = self.items
        for place in np.atleast_1d(index).tolist():
            items = Items(items).entries_at_place(place)
        return items

    @functools.cached_property
    def placed_mappings(self) -> tuple[Places, list[Mapping[Any, Any]]]:
        """The indices of the mappings in this `Items`, and these mappings.

        A data class is converted to the mapping of its fields, and a data frame to the mapping of
        its columns.
        """
        where, maps = self.items_of_kind(MAPPING)
        return where, list(map(table_or_dataclass_mapping, maps))

    def values_under_key(self, key: Any) -> list[Any]:
        """Return the value under the key `key` of each mapping in this `Items`, or `ABSENT`."""
        where, maps = self.placed_mappings
        return self._pad_values_with_absent(where, [mapping.get(key, ABSENT) for mapping in maps])

    def find_equal_items_of_same_type(self, value: Any) -> Flags:
        """Return a bool for each object: True if it equals `value` and both have the same class."""
        self._compared += 1
        if self._compared == 1:
            return np.array([type(item) is type(value) and item == value for item in self.items])
        return self._type_item_pairs.count_equal((type(value), value)) > 0.0

    @functools.cached_property
    def _type_item_pairs(self) -> Members:
        return Members([((type(item), item),) for item in self.items])

    def placed_set_or_sequence_members(self, kind: int) -> tuple[Places, Members]:
        """Return the indices of the sequences (or sets) in this `Items`, and their members."""
        if kind not in self._members:
            where, rows = self.placed_sequences if kind == SEQUENCE else self.items_of_kind(kind)
            self._members[kind] = where, Members(rows)
        return self._members[kind]

    def _pad_values_with_absent(self, where: Places, values: list[Any]) -> list[Any]:
        if len(values) == len(self.items):
            return values
        spread: list[Any] = [ABSENT] * len(self.items)
        for place, item in zip(where.tolist(), values, strict=True):
            spread[place] = item
        return spread

    def lengths(self) -> Floats:
        """Return the length of each object in this `Items` (number of characters or members).

        The result is NaN for objects without a length.
        """
        lengths = np.full(len(self.items), np.nan)
        for kind in {TEXT, BYTES, SEQUENCE, MAPPING, SET} & {*self.present}:
            readers: dict[int, Any] = {
                SEQUENCE: self.placed_sequences,
                MAPPING: self.placed_mappings,
            }
            where, sized = readers.get(kind) or self.items_of_kind(kind)
            lengths[where] = list(map(len, sized))
        return lengths


_BUILTIN_SEQUENCES: Final = {list, tuple}

_NUMBER_PATTERN: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def parse_item(item: Any, kind: str) -> Any:
    """Convert an object to another form, such as parsed JSON or the list of its keys.

    Return `ABSENT` if the object does not have this form.
    """
    if kind == "words":
        return item.split()
    if kind == "numbers":
        return list(map(float, _NUMBER_PATTERN.findall(item)))
    if kind == "keys":
        return list(table_or_dataclass_mapping(item))
    if kind in _DIGIT_VIEWS:
        return _digits_numerator_or_denominator(item, kind)
    if kind == "message":
        return item.message
    if kind.startswith("fields "):
        return item.split(kind[-1])
    try:
        return dict(item) if kind == "pairs" else json.loads(item)
    except (TypeError, ValueError, RecursionError):
        return ABSENT


def _digits_numerator_or_denominator(number: Any, kind: str) -> Any:
    """Return the digits of a `Decimal`, or the numerator or denominator of a fraction, as an int.

    Return `ABSENT` for other objects.
    """
    if kind != "digits":
        return int(getattr(number, kind)) if isinstance(number, Rational) else ABSENT
    if not isinstance(number, Decimal) or not number.is_finite():
        return ABSENT
    sign, digits, _ = number.as_tuple()
    return int("".join(map(str, digits))) * (-1 if sign else 1)


def form_of(item: Any) -> str:
    """Return the type of an object as text; for some types with a detail such as decimal places.

    Two equal objects may have different texts. For example, 1.0 equals True, but the texts are
    'float' and 'bool'. A numpy scalar has the same text as a Python number.

    Example:
        >>> form_of(np.float64(1.0)), form_of(True), form_of(Decimal("1.50"))
        ('float', 'bool', 'Decimal with 2 decimal places')
    """
    cls = type(item)
    if isinstance(item, Spelled):
        return item.form
    name = _FORM_NAMES.get(cls, cls.__name__)
    if issubclass(cls, Decimal):
        exponent = item.as_tuple().exponent
        # For infinity and NaN the exponent is a letter.
        places = -exponent if isinstance(exponent, int) else exponent
        return f"{name} with {places} decimal place{'' if places == 1 else 's'}"
    if name == "float" and item == 0.0 and math.copysign(1.0, item) < 0.0:
        return "negative zero"
    # The unit of a time is not part of its form.
    has_type = name == cls.__name__ and not issubclass(cls, (np.datetime64, np.timedelta64))
    dtype = getattr(item, "dtype", None) if has_type else None
    return name if dtype is None else f"{name} of {dtype}"


@functools.lru_cache(maxsize=256)
def can_instances_differ_in_type_text(cls: type) -> bool:
    """Return True if two objects of a class can have different texts that describe their types.

    The function `form_of` makes these texts. For example, the text for a `Decimal` states how many
    decimal places it has.
    """
    is_number = issubclass(cls, (float, np.floating, Decimal, Spelled))
    return is_number or (hasattr(cls, "dtype") and not issubclass(cls, np.generic))


def to_list_or_tuple(item: Any) -> Sequence[Any]:
    """Convert an object that is a sequence or an array to a list or tuple of its entries."""
    if type(item) in _BUILTIN_SEQUENCES:
        return item  # type: ignore[no-any-return]
    if has_array_method(item):
        array = numpy_of(item) if is_tensor(item) else np.asarray(item)
        # A structured scalar is one row of fields. Nested rows are kept, because a shape is
        # information.
        is_row = array.dtype.names and not array.ndim
        return tuple(array.item()) if is_row else np.atleast_1d(array).tolist()
    return list(item)


def as_hashable(item: Any) -> Hashable:
    """Convert an object to a hashable object. Two equal objects give two equal results.

    Raises:
        TypeError: if the object cannot be hashed and is not a list, set, mapping or similar
            container.

    Example:
        >>> as_hashable([1, {"b": {2}}])
        (1, (('b', frozenset({2})),))
    """
    cls: Any = type(item)
    kind = _classify_type(cls)
    if kind == SEQUENCE:
        return tuple(map(as_hashable, to_list_or_tuple(item)))
    if kind == SET:
        return frozenset(item)
    if kind == BYTES:
        return bytes(item)
    if is_hashable(item):
        return item  # type: ignore[no-any-return]
    if kind == NUMBER:
        # A signalling NaN of decimal raises an error in every comparison.
        return repr(item)
    if kind != MAPPING:
        raise mistyped("outputs", "hashable objects", item)
    pairs = [(key, as_hashable(value)) for key, value in table_or_dataclass_mapping(item).items()]
    return tuple(sorted(pairs, key=repr))


def is_hashable(item: Any) -> bool:
    """Return True if an object can be hashed, so that it can be a key of a dictionary."""
    try:
        hash(item)
    except TypeError:
        return False
    return True


def table_or_dataclass_mapping(item: Any) -> Mapping[Any, Any]:
    """Convert a data frame to a mapping from column names to columns.

    Convert a data class to a mapping from field names to values. Return mappings unchanged.
    """
    if type(item) is dict or isinstance(item, Mapping):
        return item
    if is_table_class(type(item)):
        return table_to_mapping(item)
    return {field.name: getattr(item, field.name, ABSENT) for field in fields(item)}


@functools.lru_cache(maxsize=256)
def _classify_type(cls: Any) -> int:
    """Return the kind of the objects of a class, such as `NUMBER` or `SEQUENCE`."""
    if cls in (type(None), _AbsentType):
        return NOTHING if cls is type(None) else MISSING
    if issubclass(cls, str):
        return TEXT
    if issubclass(cls, (bytes, bytearray, memoryview)):
        return BYTES
    if issubclass(cls, (Number, np.bool_, np.datetime64, *_TIME_TYPES)):
        return NUMBER
    if cls is Raised:
        return RAISED
    if issubclass(cls, Mapping) or is_dataclass(cls) or is_table_class(cls):
        return MAPPING
    if issubclass(cls, Set):
        return SET
    return SEQUENCE if issubclass(cls, Sequence) or has_array_method(cls) else OTHER


def _to_nanoseconds_if_exact(time: Any) -> Any:
    """Convert a numpy time to nanoseconds if the conversion is exact.

    Other times, such as a time span in months or years, are returned unchanged.
    """
    unit = np.datetime_data(time.dtype)[0]
    if np.isnat(time) or unit == "generic" or (unit in "YM" and isinstance(time, np.timedelta64)):
        return time
    converted = time.astype(f"{time.dtype.kind}8[ns]")
    return converted if converted.astype(time.dtype) == time == converted else time


_DIGIT_VIEWS: Final = {name: NUMBER for name in ("digits", "numerator", "denominator")}
"""For exact numbers that float64 would round: forms in which they are read, and their kind."""
_FORM_NAMES: Final[dict[type, str]] = {
    np.float64: "float", np.int64: "int", np.bool_: "bool", np.str_: "str", np.bytes_: "bytes",
}  # fmt: skip
_PLAIN_CLASSES: Final[Any] = {
    bytearray: bytes,
    memoryview: bytes,
    np.datetime64: _to_nanoseconds_if_exact,
    np.timedelta64: _to_nanoseconds_if_exact,
    **PLAIN_CLASSES,
}
"""For some classes, a function that replaces an object by hashable bytes or by a plain value."""
_TIME_TYPES: Final = (datetime.date, datetime.timedelta, np.timedelta64)


def read_complex(item: Any) -> complex:
    """Convert a number to a complex number. A time is first converted to seconds.

    A numpy time is given in its own unit, not in seconds. The result is infinite if a number
    exceeds the range of float64. The result is NaN for an object that is neither a number nor a
    time.
    """
    try:
        return complex(item)
    except OverflowError:
        return complex(np.inf if item > 0 else -np.inf)
    except (TypeError, ValueError):
        return complex(_time_to_seconds(item))


def _time_to_seconds(item: Any) -> float:
    """Convert a time to seconds since the start of 1970, and a time span to seconds.

    Return NaN for other objects. A numpy time keeps its own unit.
    """
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return math.nan if np.isnat(item) else float(item.astype(np.int64))
    if isinstance(item, datetime.datetime):
        item = item.replace(tzinfo=None) - _EPOCH
    elif isinstance(item, datetime.date):
        item = item - _EPOCH.date()
    return item.total_seconds() if isinstance(item, datetime.timedelta) else math.nan
