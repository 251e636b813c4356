"""Parts of outputs: columns of real numbers for outputs that are not real numbers.

A part is one real number of an output. It is defined by steps and a measure. The steps lead to a
place inside the output: an entry of an array, a field, a place of a sequence, a key of a mapping.
The measure turns the object at this place into a number: the value of a number, a length, the code
of a letter, or the number of times that a letter occurs. The same part can be read from numpy
arrays and from Python objects, because one rare None turns an array of strings into objects.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import choice, instance
from ..events.event import score_attribute, score_name, scores_of
from ..mechanisms.answers import mean_stored_bytes, noted_row_types, restore_rows
from ..records import Array, Floats, Record
from . import objects
from .arrays import Words
from .objects import (
    ABSENT,
    BYTES,
    MISSING,
    NUMBER,
    OTHER,
    SEQUENCE,
    SET,
    TEXT,
    WORD,
    Items,
    Strings,
    form_of,
)

STEPS: Final = ("entry", "field", "place", "key", "view")
MEASURES: Final = (
    "kind", "value", "real", "imaginary", "word", "length", "letter", "count", "number", "holds",
    "which", "there", "bit", "is", "times", "near", "modulo", "form",
    "raises",
)  # fmt: skip
_VIEW_NAMES: Final = {
    "json": "", "pairs": "", "words": "word", "numbers": "number written", "keys": "key",
    "fields ,": "field between commas", "fields ;": "field between semicolons",
    "fields \t": "field between tabs", "fields |": "field between bars",
    "digits": "digit", "numerator": "numerator", "denominator": "denominator",
    "message": "message",
}  # fmt: skip
"""Names in reports for the places of each view. A view of the content itself has an empty name."""
_PLAIN_NAME: Final = re.compile(r"(?!(?:output|value)$)[^\W\d][\w.:/-]*")
_MAX_NAME_CHARACTERS: Final = 56
_MAX_VALUE_CHARACTERS: Final = 80
_MAX_SENTENCE_CHARACTERS: Final = 100
_ENTRY_PATTERN: Final = re.compile(r"\bentr(?:y|ies) (\d+(?:(?:, \d+)* and \d+)?)\b")
_PLACE_PATTERN: Final = re.compile(r"\boutput\[(\d+)\]")
_DERIVED_VIEWS: Final = ("numbers", "digits", "numerator", "denominator")
DERIVED: Final = 4
"""Difficulty of derived numbers (such as a length or a count) for readers of a report."""
_WHOLE_VIEWS: Final = ("message", "numerator", "denominator")
_VIEW_PLAINNESS: Final = {"json": 0, "pairs": 0, **dict.fromkeys(_DERIVED_VIEWS, DERIVED)}
_FIELD_PLAINNESS: Final = 2
_LETTER_PLAINNESS: Final = 3
_KIND_NAMES: Final = (
    "None", "a number", "a string", "a string of bytes", "a sequence", "a mapping", "a set",
    "another object", "an exception",
)  # fmt: skip
_MEASURE_NAMES: Final = {
    "value": "", "length": "length", "real": "real part", "imaginary": "imaginary part",
    "number": "number written", "which": "outcome", "modulo": "remainder modulo {0:g}",
    "near": "number of members from {0[0]:.6g} to {0[1]:.6g}",
}  # fmt: skip
_PLAIN_MEASURES: Final = ("kind", "value", "holds", "there", "bit", "is", "raises")
_DERIVED_MEASURES: Final = ("word", "times", "near", "modulo")
_MAX_JOINT_PARTS: Final = 20
"""Largest number of parts from which pairs and triples are compared."""
_MAX_JOINT_TEXTS: Final = 4
"""If the texts at one place have at most this many different values, each value has a code."""
_JOINT_MEASURES: Final = ("value", "number", "there", "holds")
_PLAIN_COST: Final = 20
_Steps = tuple[tuple[str, Any], ...]
Node = Array | list[Any]
"""Content of many outputs at one place: a regular array, or a list of objects."""
_CHUNK_NUMBERS: Final = 2**18
"""Number of array entries that are read in one step. They fit into the cache."""
_MAX_CHUNK_BYTES: Final = 2**25
"""Bytes of outputs that are read in one step. Python objects need several times as much memory."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part(Record, word="Part"):
    """A rule that reads one real number from each output, or NaN if the output has no such number.

    For instance, the rule with steps `(("key", "name"),)` and measure "length" reads the length of
    the value under the key "name".

    Args:
        steps: path to an object inside the output, as a tuple of pairs. The first entry of a pair
            is "entry", "field", "place", "key" or "view". The second entry is a number, a name or a
            key. A negative number after "place" counts from the end of the sequence.
        measure: name of the function that converts the object to a number, such as "value",
            "length" or "letter". It is one of `MEASURES`.
        argument: argument of this function, or None if the function has no argument. Examples are
            the index of a bit, a modulus, a value to compare with, a member to count, or the name
            of an exception. For the function "letter", the argument is the position of the letter;
            negative positions count from the end.

    Raises:
        TypeError: if `measure` is not a string.
        ValueError: if `measure` is not one of `MEASURES`, or if a step is not of this form.
    """

    steps: tuple[tuple[str, Any], ...]
    measure: str
    argument: Any = None

    def __post_init__(self) -> None:
        """Check the names of the measure and of the steps."""
        choice("measure", self.measure, MEASURES)
        for kind, _ in self.steps:
            choice("step", kind, STEPS)

    @property
    def is_flag(self) -> bool:
        """True if this `Part` reads a flag from each output: 1 for true and 0 for false."""
        return self.measure in ("kind", "form", "holds", "there", "bit", "is", "raises")

    @property
    def is_integral(self) -> bool:
        """True if this `Part` reads an exact integer from each output, such as a flag or count."""
        return self.measure not in ("value", "real", "imaginary", "number", "modulo")

    @property
    def reader_effort(self) -> int:
        """Difficulty of the number that this `Part` reads, for readers of a report; 0 is easiest.

        The result is 0 if the number is the whole output, and 1 if it is the value of a key or
        column. It is 2 for a word, 3 for a letter, and 4 for a derived number such as a length.
        """
        views = [which for kind, which in self.steps if kind == "view"]
        inner = [_VIEW_PLAINNESS.get(view, _FIELD_PLAINNESS) for view in views]
        is_plain = self.measure in _PLAIN_MEASURES and self.measure != "bit"
        own = 0 if is_plain or self.measure in ("real", "imaginary") else DERIVED
        own = _LETTER_PLAINNESS if self.measure == "letter" else own
        return max(own, *inner, int(any(kind != "view" for kind, _ in self.steps)))

    def __str__(self) -> str:
        """Return the name of the part in a report, such as ``length of name``."""
        if self.is_flag:
            return self.flag_sentence(True)
        where, own = _name_place(self.steps), self._measure_phrase()
        return f"{own} of {where}" if own and where else own or where or "value"

    @property
    def cost(self) -> int:
        """Approximate time in which this `Part` reads its number, in nanoseconds per output.

        If two parts read equal values, the part that is easier to understand has the lower cost.
        """
        is_plain, is_derived = self.measure in _PLAIN_MEASURES, self.measure in _DERIVED_MEASURES
        return _PLAIN_COST + (not is_plain) + 2 * is_derived

    def flag_sentence(self, is_so: bool) -> str:
        """Return a sentence for a report about a flag that is read from an output.

        If `is_so` is True, the sentence states that the flag is 1. Otherwise, it states that the
        flag is 0.
        """
        where, argument = _name_place(self.steps), self.argument
        if self.measure == "bit":
            return f"bit {argument}{' of ' if where else ''}{where} is {int(is_so)}"
        if self.measure == "holds":
            verb = "contains" if is_so else "does not contain"
            return f"{where or 'output'} {verb} {_quote_value(argument)}"
        if self.measure == "raises":
            verbs = (
                ("ends with", "does not end with")
                if " " in argument
                else ("raises", "does not raise")
            )
            return f"{where} {verbs[not is_so]} {argument}".lstrip()
        if self.measure == "there":
            return f"{where or 'output'} is {'there' if is_so else 'missing'}"
        start = f"{where or 'output'} is {'' if is_so else 'not '}"
        room = min(_MAX_VALUE_CHARACTERS, _MAX_SENTENCE_CHARACTERS - len(start))
        if self.measure == "form":
            return f"{start}{'' if argument.startswith('written ') else 'of type '}{argument}"
        if self.measure == "kind":
            return start + _KIND_NAMES[argument]
        return start + _quote_value(argument, room)

    def _measure_phrase(self) -> str:
        argument = self.argument
        if self.measure == "letter":
            return _name_with_number("letter", argument)
        if self.measure in ("count", "times"):
            return (
                f"number of {_quote_value(chr(argument) if self.measure == 'count' else argument)}"
            )
        if self.measure == "word":
            return f"bits {WORD * argument} to {WORD * argument + WORD - 1}"
        if self.measure == "length" and self.steps and self.steps[-1][0] == "view":
            return "number"
        return _MEASURE_NAMES[self.measure].format(argument)


def _quote_value(value: Any, room: int = _MAX_VALUE_CHARACTERS) -> str:
    """Return a value as text for a report, with at most `room` characters. Strings are quoted."""
    is_plain = isinstance(value, str) and value.isprintable() and '"' not in value
    text = f'"{value}"' if is_plain else repr(value)
    return text if len(text) <= room else f"{text[: room - 3]}..."


def _name_with_number(noun: str, place: int) -> str:
    """Return the name of a word or letter at a place, such as "letter 1" for place 0."""
    noun, _, rest = noun.partition(" ")
    number = f"{place + 1}" if place >= 0 else f"{-place} from the end"
    return f"{noun} {number} {rest}".rstrip()


def _name_place(steps: tuple[tuple[str, Any], ...]) -> str:
    """Return the name of a place in reports, such as ``weight[0, 0]``; "" for the whole output."""
    name, noun, is_index = "", "", False
    for kind, which in steps:
        of = f" of {name}" if name else ""
        indexes = f"{which}".strip("(,)") if kind in ("place", "entry") else _quote_value(which)
        if kind == "view":
            noun = _VIEW_NAMES.get(which, "field")
        elif noun:
            name, noun = _name_with_number(noun, which) + of, ""
        elif kind in ("key", "field") and not name and isinstance(which, str):
            name = which if _PLAIN_NAME.fullmatch(which) else _quote_value(which)
        elif is_index and kind in ("place", "entry"):
            name = f"{name[:-1]}, {indexes}]"
        else:
            name = f"{name or 'output'}[{indexes}]"
        is_index = kind in ("place", "entry") and name.endswith("]")
    if noun:
        if noun in _WHOLE_VIEWS:
            return f"the {noun}"
        noun, _, rest = noun.partition(" ")
        name = f"{noun}s {rest}".strip() + (f" of {name}" if name else "")
    half = _MAX_NAME_CHARACTERS // 2
    return name if len(name) <= _MAX_NAME_CHARACTERS else f"{name[:half]}...{name[3 - half :]}"


def _read_array(array: Array, texts: Strings | None, part: Part, out: Floats) -> None:
    """Write the values of a part of a numpy array to `out`.

    `out` stays NaN if the measure of the part does not apply to the array.
    """
    if array.ndim != 1:
        if part.measure == "times" and array.dtype.kind in "US":
            held = array.reshape(len(array), -1) == part.argument
            out[:] = np.count_nonzero(held, axis=1)
    elif part.measure == "kind":
        kind = {"U": TEXT, "S": BYTES, "V": SEQUENCE}.get(array.dtype.kind, NUMBER)
        out[:] = kind == part.argument
    elif part.measure in ("there", "raises"):
        out[:] = part.measure == "there"
    elif part.measure == "form" and noted_row_types(array) is not None:
        out[:] = [form_of(item) == part.argument for item in restore_rows(array)]
    elif part.measure == "form":
        form, is_negative = form_of(array[0]) if array.size else "", np.zeros(len(array), np.bool_)
        if array.dtype == np.float64:
            form, is_negative = "float", (array == 0.0) & np.signbit(array)
        out[:] = np.where(is_negative, part.argument == "negative zero", part.argument == form)
    elif part.measure == "is":
        out[:] = array == part.argument if texts is not None else 0.0
    elif part.measure == "which" and texts is not None:
        out[:] = -1.0
        for number, text in enumerate(part.argument):
            out[array == text] = number
    elif texts is not None:
        out[:] = _read_text_measure(texts, part)
    elif array.dtype.kind in "mM" and part.measure not in ("real", "imaginary"):
        out[:] = _read_number_measure(array.view(np.int64), part)
        if part.measure == "value":
            out[np.isnat(array)] = np.nan
    elif array.dtype.kind in "buifc":
        out[:] = _read_number_measure(array, part)


def _read_number_measure(values: Array, part: Part) -> Array | float:
    kind, measure = values.dtype.kind, part.measure
    if measure in ("value", "real"):
        return values.real
    if measure == "imaginary":
        return values.imag
    if measure == "modulo" and kind in "uif":
        with np.errstate(invalid="ignore"):
            # A modulus may exceed the range of int8 or int16.
            whole = values.astype(np.int64) if kind == "i" else values
            rounded = _round_to_16_bits(values) if kind == "f" else whole
            remainders: Array = np.remainder(rounded, rounded.dtype.type(part.argument))
        return remainders
    if measure == "bit" and kind in "iu":
        place = min(part.argument, 8 * values.dtype.itemsize - 1)
        flags: Array = (values >> values.dtype.type(place)) & values.dtype.type(1)
        return flags
    return _read_32_bits(values, part.argument) if measure == "word" and kind in "iu" else np.nan


def _round_to_16_bits(values: Array) -> Floats:
    """Round numbers to 16 significant bits, so that remainders do not show rounding errors.

    Whole numbers are not rounded.
    """
    values = values.astype(np.float64)
    mantissas, exponents = np.frexp(values)
    rounded = np.ldexp(np.rint(mantissas * 2.0**16) / 2.0**16, exponents)
    return np.where(values == np.rint(values), values, rounded)


def _read_32_bits(integers: Array, word_index: int) -> Words:
    """Return the bits of one 32-bit word of integers in two's complement."""
    mask = np.uint64(2**WORD - 1)
    if word_index > 1:
        return np.where(integers < 0, mask, np.uint64(0))
    return (integers.astype(np.uint64) >> np.uint64(WORD * word_index)) & mask


def _read_text_measure(texts: Strings, part: Part) -> Floats | float:
    if part.measure == "length":
        return texts.lengths.astype(np.float64)
    if part.measure == "letter":
        return texts.letter_codes_at(part.argument)
    if part.measure == "count":
        return texts.count_letter(part.argument)
    if part.measure == "bit":
        codes = texts.letter_codes_at(part.argument // 8)
        flags = (codes.astype(np.int64) >> part.argument % 8) & 1
        return np.where(codes < 0.0, np.nan, flags)
    return texts.parse_as_numbers() if part.measure == "number" else np.nan


def read_numbers(held: Items | Array, texts: Strings | None, part: Part, out: Floats) -> None:
    """Read one real number (a part) from each output, and write the numbers to the array `out`.

    `out` has shape `(size,)` and must be filled with NaN before the call. An entry stays NaN if the
    output has no such number. `held` and `texts` are the result of `prepare_items_and_strings`.
    """
    if isinstance(held, Items):
        _read_objects(held, part, out)
    else:
        _read_array(held, texts, part, out)


def _read_objects(bunch: Items, part: Part, out: Floats) -> None:
    """Write the values of a part of Python objects to `out`.

    `out` stays NaN for objects to which the measure of the part does not apply.
    """
    if part.measure == "kind":
        out[:] = bunch.kinds == part.argument
    elif part.measure == "form":
        out[:] = [form == part.argument for form in bunch.type_of_each_as_text]
    elif part.measure == "there":
        out[:] = bunch.kinds != MISSING
    elif part.measure == "raises":
        where, raised = bunch.items_of_kind(objects.RAISED)
        out[:] = 0.0
        out[where] = [exception.name == part.argument for exception in raised]
    elif part.measure == "length":
        out[:] = bunch.lengths()
    elif part.measure == "is":
        out[:] = bunch.find_equal_items_of_same_type(part.argument)
    elif part.measure in ("value", "real", "imaginary"):
        where, values = bunch.placed_numbers()
        out[where] = values.imag if part.measure == "imaginary" else values.real
    elif part.measure == "modulo":
        where, values = bunch.placed_numbers()
        with np.errstate(invalid="ignore"):
            out[where] = np.remainder(_round_to_16_bits(values.real), part.argument)
        # Whole numbers beyond 2^53 also have a remainder, as they do in an array.
        where, whole = bunch.placed_integers
        out[where] = [float(argument % int(part.argument)) for argument in whole]
    elif part.measure == "word" or (part.measure == "bit" and NUMBER in bunch.present):
        where, digits = (
            bunch.placed_integer_32_bit_words if part.measure == "word" else bunch.placed_int_bits
        )(part.argument)
        out[where] = digits
    elif part.measure in ("times", "near"):
        is_near, argument = part.measure == "near", part.argument
        for kind in (SEQUENCE, SET) if is_near else (SEQUENCE,):
            where, members = bunch.placed_set_or_sequence_members(kind)
            if where.size:
                out[where] = (
                    members.count_between(*argument) if is_near else members.count_equal(argument)
                )
    elif part.measure in ("letter", "count", "number", "bit"):
        for kind in (TEXT, BYTES):
            where, texts = bunch.placed_texts(kind)
            if where.size:
                out[where] = _read_text_measure(texts, part)
    elif part.measure == "holds":
        where, sets = bunch.items_of_kind(SET)
        out[where] = [part.argument in argument for argument in sets]
    else:
        numbers = {key: number for number, key in enumerate(part.argument)}
        for kind in (OTHER, TEXT, BYTES):
            rows, keys = bunch.items_of_kind(kind)
            out[rows] = [numbers.get(key, -1) if objects.is_hashable(key) else -1 for key in keys]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parts(Record, word="Parts"):
    """A function that reads several real numbers (parts) from each output, shape `(size, parts)`.

    A part is, for example, the length of a string. An entry of the result is NaN if the output does
    not have this part.

    Args:
        parts: the rules that read the numbers, one for each column of the result.

    Raises:
        TypeError: if an element is not a `Part`.

    Example:
        >>> parts = Parts((Part((), "length"), Part((), "letter", -1)))
        >>> parts(np.array(["ab", "b"])).tolist()
        [[2.0, 98.0], [1.0, 98.0]]
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Check that every element is a `Part`."""
        for part in self.parts:
            instance("parts", part, Part)

    def __call__(self, outputs: Array) -> Floats:
        """Return the columns, shape `(size, parts)`; NaN if an output has no such part."""
        columns = _cached_columns_if_enabled(outputs)
        if columns is None or not self.parts:
            return self._read_parts(outputs)
        keys = self._cache_keys()
        missing = [key for key in dict.fromkeys(keys) if key not in columns]
        if missing:
            columns_read = Parts(tuple(part for part, _ in missing))._read_parts(outputs)
            columns.update(zip(missing, columns_read.T, strict=True))
        return np.stack([columns[key] for key in keys], axis=1)

    def cache_columns(self, outputs: Array, columns: Sequence[Floats]) -> None:
        """Store numbers that were already read from some outputs, so that they are not read again.

        `columns` has one array for each part. The numbers are stored only in a context of
        `cache_parts`.
        """
        cached = _cached_columns_if_enabled(outputs)
        if cached is not None:
            cached.update(zip(self._cache_keys(), columns, strict=True))

    def _cache_keys(self) -> list[tuple[Part, type]]:
        # 1 and True are equal, but they are different values to look for.
        return [(part, type(part.argument)) for part in self.parts]

    def _read_parts(self, outputs: Array) -> Floats:
        columns = np.full((len(outputs), len(self.parts)), np.nan)
        readings = [(part.steps, part, i) for i, part in enumerate(self.parts)]
        rows = rows_within_memory(outputs, _CHUNK_NUMBERS // max(1, len(self.parts)))
        for first in range(0, len(outputs), rows):
            part = slice(first, first + rows)
            _read_parts_to_columns(outputs[part], readings, columns[part])
        return columns

    def names(self) -> list[str]:
        """Return the name of each part (number that is read from an output), as used in reports."""
        return list(map(str, self.parts))

    def select(self, columns: list[int]) -> Parts:
        """Return a new `Parts` that reads only the numbers of the given columns."""
        return Parts(tuple(self.parts[i] for i in columns))


class JointParts:
    """A collection of numbers (parts) of the outputs, for scores that combine two or three parts.

    A part is one real number that is read from each output, such as the length of a string. The
    collection contains numbers, flags that state whether an object is present, and codes of
    strings. A string has a code only if few different strings occur at the same place of the
    outputs.
    """

    def __init__(self) -> None:
        self.columns: dict[Part, Floats] = {}
        self.texts: dict[_Steps, dict[Part, Floats]] = {}

    def add(self, part: Part, column: Floats, is_copy: bool) -> None:
        """Add a part (a number that is read from each output) and its values.

        If `is_copy` is True, the values equal those of an earlier part. Such a copy is not added,
        unless the copy is a flag that states whether a string has a certain value.
        """
        if part.measure == "is":
            texts = self.texts.setdefault(part.steps, {})
            if len(texts) <= _MAX_JOINT_TEXTS:
                texts[part] = column
        is_number = part.measure in _JOINT_MEASURES and not is_copy
        if is_number and len(self.columns) < _MAX_JOINT_PARTS:
            self.columns[part] = column

    def read_columns(self) -> tuple[Parts, Floats]:
        """Return at most 20 of the collected parts, and an array with one column per part."""
        columns, places = self.columns.copy(), {part.steps for part in self.columns}
        for steps, flags in self.texts.items():
            part, column = next(iter(flags.items()))
            if len(flags) > _MAX_JOINT_TEXTS or steps in places:
                continue
            if len(flags) > 2:
                part = Part(steps, "which", tuple(flag.argument for flag in flags))
                is_text = np.array(list(flags.values())) == 1.0
                column = np.where(is_text.any(axis=0), is_text.argmax(axis=0), np.nan)
            columns[part] = column
        parts_read = list(columns)[:_MAX_JOINT_PARTS]
        return Parts(tuple(parts_read)), np.array([columns[part] for part in parts_read]).T


def name_entries(text: str, names: Sequence[str]) -> str:
    """Replace the indices of entries in a text by names.

    In a phrase such as "entries 3, 4 and 7", each index i is replaced by `names[i]`.
    """
    return _ENTRY_PATTERN.sub(
        lambda match: re.sub(r"\d+", lambda number: names[int(number[0])], match[1]), text
    )


def renamed_sentences(score: Any, rename: Callable[[str], str]) -> tuple[str, str] | None:
    """Apply `rename` to the two sentences that describe a score in reports, and return them.

    The first sentence states that the score is 1, the second that it is 0. Return None if the score
    has no such sentences.
    """
    first, second = score_attribute(score, "sentences") or ("", "")
    return (rename(first), rename(second)) if first else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfColumns(Record, word="OfColumns"):
    """A score of the rows of a data frame. Reports describe it with the names of the columns.

    Args:
        names: names of the columns in reports, in the order of the columns.
        score: function from an array of rows to one real number per row.
    """

    names: tuple[str, ...]
    score: Any

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the field `score`, or raise an AttributeError."""
        if name.startswith("_") or name in ("names", "score"):
            raise AttributeError(name)
        return getattr(self.score, name)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of rows, shape `(size,)`."""
        return scores_of(self.score, outputs)

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Two sentences about this score for reports, or None if the score has no such sentences.

        The first sentence states that the score is 1, the second that it is 0.
        """
        return renamed_sentences(self.score, self._rename)

    def _rename(self, text: str) -> str:
        """Replace numbers of columns in a text by the names of the columns."""
        listed = dict(enumerate(self.names))
        named = _PLACE_PATTERN.sub(lambda match: listed.get(int(match[1]), match[0]), text)
        return name_entries(named, self.names)

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        return self._rename(score_name(self.score))


class _PartCache(threading.local):
    """Cache of a thread: the columns read from arrays, or None outside of `cache_parts`."""

    known: dict[int, Any] | None = None


_part_cache = _PartCache()


def _cached_columns_if_enabled(outputs: Array) -> dict[tuple[Part, type], Floats] | None:
    """Return the cached columns of an array, or None outside of `cache_parts`."""
    columns = _part_cache.known
    # The array is stored too, so that its id is not used again.
    return None if columns is None else columns.setdefault(id(outputs), (outputs, {}))[1]


@contextmanager
def cache_parts() -> Iterator[None]:
    """Return a context manager that keeps the numbers (parts) read from outputs for later use.

    Inside the context, each number is read only once, even if several scores use it. Do not change
    the arrays of outputs inside the context.
    """
    if _part_cache.known is not None:
        yield
        return
    _part_cache.known = {}
    try:
        yield
    finally:
        _part_cache.known = None


_PartColumns = list[tuple[tuple[tuple[str, Any], ...], Part, int]]


def _read_parts_to_columns(node: Node, readings: _PartColumns, columns: Floats) -> None:
    """Read parts of a node (the values of all outputs at one place) into `columns`."""
    if isinstance(node, np.ndarray) and node.ndim > 1:
        # The result for an output must not depend on whether all outputs of its block have one
        # shape.
        entries = [reading for reading in readings if reading[0] and reading[0][0][0] == "entry"]
        if len(entries) < len(readings):
            _read_parts_to_columns(
                restore_rows(node),
                [column for column in readings if column not in entries],
                columns,
            )
        readings = entries
    held, texts = prepare_items_and_strings(node)
    below: dict[tuple[str, Any], _PartColumns] = defaultdict(list)
    for steps, part, i in readings:
        if steps:
            below[steps[0]].append((steps[1:], part, i))
        else:
            read_numbers(held, texts, part, columns[:, i])
    for step, group in below.items():
        inner = _take_step(held, *step)
        _read_parts_to_columns([ABSENT] * len(columns) if inner is None else inner, group, columns)


def rows_within_memory(outputs: Array, max_rows: int) -> int:
    """Return how many of the outputs can be processed together with at most 32 MiB of memory.

    The result is at least 1 and at most `max_rows`.

    Args:
        outputs: outputs, shape `(size, ...)`.
        max_rows: largest result.
    """
    return max(1, min(max_rows, int(_MAX_CHUNK_BYTES / max(1.0, mean_stored_bytes(outputs)))))


def prepare_items_and_strings(node: Node) -> tuple[Items | Array, Strings | None]:
    """Prepare the objects at one place of all outputs, so that numbers can be read from them.

    The first result is an `Items` if the objects are Python objects, otherwise the array of the
    objects. If the array contains strings, the second result is an object with these strings.
    Otherwise the second result is None.
    """
    if isinstance(node, list) or (node.dtype == object and node.ndim == 1):
        return Items(list(node)), None
    if node.dtype.kind == "V" and node.dtype.names is None and node.dtype.itemsize:
        # Raw bytes are read as strings of bytes.
        node = np.ascontiguousarray(node).view(f"S{node.dtype.itemsize}")
    is_text = node.dtype.kind in "US" and node.ndim == 1
    return node, Strings.of_array(node) if is_text else None


def _take_step(held: Items | Array, kind: str, which: Any) -> Node | None:
    """Return the objects to which a step leads, one per output, or None if no output has one."""
    if kind == "view":
        return (held if isinstance(held, Items) else Items(held.tolist())).convert_items(which)
    if isinstance(held, Items):
        if kind == "field" and not isinstance(which, str):
            return None
        readers: dict[str, Any] = {"entry": held.nested_entries_at, "place": held.entries_at_place}
        items: list[Any] = readers.get(kind, held.values_under_key)(which)
        return items
    names: Sequence[str] = held.dtype.names or ()
    if kind == "entry" and held.ndim > 1:
        index = which if isinstance(which, tuple) else (which,)
        is_inside = len(index) == held.ndim - 1 and all(map(int.__lt__, index, held.shape[1:]))
        return np.asarray(held[(slice(None), *index)]) if is_inside else None
    if kind == "place" and -len(names) <= which < len(names):
        # A row of fields is a tuple if it occurs among objects.
        which = names[which]
    return held[which] if kind in ("place", "field") and which in names else None
