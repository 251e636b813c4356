"""Values read from the output lines of a command, each with the way in which it was written.

A reader of the lines can distinguish `1.5` and `1.50`, although these numbers are equal. Therefore
the way of writing (the spelling) is part of an output. A spelling is usual if Python or JavaScript
writes the value in this way. For an unusual spelling, the value has an attribute `form`, a text
that describes the spelling.

The form depends only on the line of the value. If the form depended on other lines, the outputs
would not be independent.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

_MAX_NUMBER_CHARACTERS: Final = 100
"""Largest number of characters of a number that is not written as JSON."""
_NUMBER_PATTERN: Final = re.compile(
    r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
)
_NAMED_NUMBERS: Final = frozenset(
    sign + name for sign in ("", "-", "+") for name in ("nan", "inf", "infinity")
)
_USUAL_NAMES: Final = frozenset(("NaN", "Infinity", "-Infinity"))
_USUAL_PATTERN: Final = re.compile(
    r"(?!-0$)-?(0|[1-9]\d*)(\.(0|\d*[1-9]))?|-?\d(\.\d*[1-9])?e[+-](\d|[12]\d)\d"
)
_UNUSUAL_MARKS: Final = (" ", "\t", "\r", "E", "-0,")
_EVERY_DIGIT: Final = "%.17g"
"""Format in which any two different float64 numbers have different texts."""
_HEAD_LINES: Final = 9
"""Number of first lines that are compared with a format, before all lines are compared."""
_MAX_AXES: Final = 16
"""Largest number of levels of nested lists that can become an array."""
_SURE_CHARACTERS: Final = 15
"""A number with at most this many characters does not lose a digit in float64."""
_STRING_PATTERN: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LAYOUT_PATTERN: Final = re.compile(r"\s*[,:]\s*|[\[{]\s*|\s*[\]}]\s*")
_USUAL_LAYOUT: Final = frozenset((", ", ": ", "[", "]", "{", "}"))
_ESCAPE_PATTERN: Final = re.compile(r"\\[u/]")
_OUTER_PATTERN: Final = re.compile(r"^\s+|\s+$")
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_encode_densely: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Spelled:
    """Value that a program wrote in an unusual way, such as 1.50 for the number 1.5.

    The attribute `form` is a text that describes the way of writing, but not the value. In the form
    of a number other than 0, the digits are replaced by 0. For 1.50, the form is
    ``written "0.00"``.
    """

    form: str

    def __repr__(self) -> str:
        return f"{super().__repr__()} ({self.form})"


class SpelledInteger(Spelled, int):
    """Integer that a program wrote in an unusual way, such as +5."""


class SpelledTruth(Spelled, int):
    """Boolean that a program wrote in an unusual way, such as with a space before it."""


class SpelledNothing(Spelled):
    """JSON null that a program wrote in an unusual way, such as with a space before it."""

    def __init__(self, value: None) -> None:
        """Make an object that stands for None, because None cannot have attributes."""


class SpelledFloat(Spelled, float):
    """Floating-point number that a program wrote in an unusual way, such as 1.50."""


class SpelledText(Spelled, str):
    """Text that a program wrote with quotation marks."""


class SpelledList(Spelled, list[Any]):
    """List that a program wrote as JSON, but not in the way in which Python writes lists."""


class SpelledDict(Spelled, dict[Any, Any]):
    """JSON object that a program wrote, but not in the way in which Python writes objects."""


PLAIN_CLASSES: Final[dict[type, Callable[[Any], Any]]] = {
    SpelledInteger: int, SpelledFloat: float, SpelledText: str, SpelledTruth: bool,
    SpelledList: list, SpelledDict: dict, SpelledNothing: lambda value: None,
}  # fmt: skip
"""Functions that convert values of each class to plain values, without their spelling."""
_SPELLED_CLASSES: Final[dict[Any, Any]] = {
    type(None): SpelledNothing,
    **{plain: spelled for spelled, plain in PLAIN_CLASSES.items()},
}


class Lines(list[Any]):
    """List of the outputs that a program wrote, one per line, as Python values.

    Attributes:
        has_forms: True if an output, or a value inside an output, was written in an unusual way,
            such as 1.50 for 1.5.
        pattern: common format of all numbers, such as "%.6f". "whole" stands for the format of
            Python, but with 2 in place of 2.0. If each line ends with a carriage return, `pattern`
            ends with a carriage return, too. "usual" before a carriage return stands for the format
            of Python. None if the numbers have the format of Python without carriage returns, or
            have different formats.
    """

    has_forms = False
    pattern: str | None = None


def _add_written_form(value: Any, form: str) -> Any:
    spelled = _SPELLED_CLASSES[type(value)](value)
    spelled.form = f"written {form}"
    return spelled


def read_number(text: str) -> Any:
    """Convert a text to a number, and note an unusual way of writing, such as 1.50 for 1.5.

    If the way of writing is unusual, the result has an attribute `form`. This text describes the
    way of writing, with 0 in place of the digits. The result is a Decimal if the number has more
    digits than float64 can represent.

    Example:
        >>> read_number("1.5"), type(read_number("1.50")).__name__, read_number("1.50").form
        (1.5, 'SpelledFloat', 'written "0.00"')
    """
    is_whole = text.strip().lstrip("+-").isdecimal()
    value: Any = int(text) if is_whole else float(text)
    is_shortest = True
    if not is_whole and math.isfinite(value):
        if text == repr(value):
            return value
        digits = _significant_digits(text)
        if len(digits) > _SURE_CHARACTERS and value != 0.0:
            if digits != _significant_digits(f"{value:.{len(digits) - 1}e}"):
                return Decimal(text)
            is_shortest = digits.rstrip("0") == _significant_digits(repr(value)).rstrip("0")
        if digits and value == 0.0:
            return _add_written_form(value, json.dumps(text))
    elif not is_whole and text.strip().lower().lstrip("+-") not in _NAMED_NUMBERS:
        return _add_written_form(value, json.dumps(text))
    if text in _USUAL_NAMES or (is_shortest and _USUAL_PATTERN.fullmatch(text)):
        return value
    # The form omits the sign and the digits before the point, because the value determines them.
    shape = text if value == 0 else re.sub(r"^(\s*)-", r"\1", text)
    shape = re.sub(r"^(\s*[+-]?)\d+", r"\g<1>0", shape)
    return _add_written_form(value, json.dumps(re.sub(r"\d", "0", shape)))


def _significant_digits(text: str) -> str:
    return re.split("[eE]", text)[0].strip().lstrip("+-0.").replace(".", "")


def format_and_reread_numbers(values: Sequence[float], pattern: str) -> list[Any]:
    """Return numbers as if a program had written them in the format `pattern`.

    `pattern` is a format such as "%.6f", or one of the names that the docstring of `Lines`
    describes. Numbers in an unusual format have an attribute `form`, which describes the format.
    """
    name = pattern.rstrip("\r")
    texts = [name % value if "%" in name else json.dumps(value) for value in values]
    if name == "whole":
        texts = [text.removesuffix(".0") for text in texts]
    return [parse_line(text + pattern[len(name) :]) for text in texts]


def _note_repeated_keys(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    return value if len(value) == len(pairs) else _add_written_form(value, "with a key twice")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_note_repeated_keys, parse_float=read_number, parse_int=read_number
)


def parse_line(line: str) -> Any:
    """Convert one line of a program's output to a value: JSON, a number, or else a text.

    A number may be written as in another programming language, such as -.5.

    Example:
        >>> [parse_line(line) for line in ("0.5", "NaN", "-.5", "[1, 2]", "never", "007", "")]
        [0.5, nan, -0.5 (written ".0"), [1, 2], 'never', '007', '']
    """
    try:
        value = json.loads(line)
        is_dense = ": " not in line and ", " not in line
        usual = (_encode_densely if is_dense else _encode)(value)
    except (ValueError, RecursionError):
        is_number = len(line) <= _MAX_NUMBER_CHARACTERS and (
            line.strip().lower() in _NAMED_NUMBERS or _NUMBER_PATTERN.fullmatch(line)
        )
        if is_number or not line.endswith("\r"):
            return read_number(line) if is_number else line
        return _add_written_form(line[:-1], 'with "\\r"')
    if type(value) in (int, float):
        return read_number(line)
    is_text = isinstance(value, str)
    if line == usual and not is_text:
        is_dense = is_dense and ("," in line or ":" in line)
        return _add_written_form(value, "without spaces") if is_dense else value
    layout = {*_ESCAPE_PATTERN.findall(line), *_OUTER_PATTERN.findall(line)}
    if not is_text:
        value = _DECODER.decode(line)
        spaces, marks = line.count(", ") + line.count(": "), line.count(",") + line.count(":")
        if not spaces == marks == line.count(" "):
            # Marks and spaces inside strings are removed first, because they are not layout.
            layout |= {*_LAYOUT_PATTERN.findall(_STRING_PATTERN.sub('""', line))}
        layout -= _USUAL_LAYOUT
    words = list(map(json.dumps, sorted(layout))) + ["quotation marks"] * is_text
    if isinstance(value, Spelled):
        words, value = [*words, "a key twice"], PLAIN_CLASSES[type(value)](value)
    return _add_written_form(value, f"with {' and '.join(words)}") if words else value


def parse_output(lines: list[str]) -> Lines:
    """Convert each line of a program's output to a value, and return the values.

    A value is the content of the JSON in the line, a number, or else a text.
    """
    ending = "\r" * all(line.endswith("\r") for line in lines)
    bare = [line[:-1] for line in lines] if ending else lines
    joined = ",".join(bare)
    if not any(mark in joined for mark in '[{"'):
        # Read all numbers at once. A line with a comma gives more values than lines.
        with contextlib.suppress(ValueError):
            numbers = Lines(json.loads(f"[{joined}]"))
            if len(numbers) == len(lines):
                pattern = _unusual_printf_format_of_all(bare, numbers, f"{joined},")
                is_one = pattern is not None or not ending or set(map(type, numbers)) == {float}
                if is_one and (pattern is not None or _are_usual(bare, numbers, f"{joined},")):
                    numbers.pattern = (pattern or "usual") + ending if pattern or ending else None
                    return numbers
    values = {line: parse_line(line) for line in set(lines)}
    answers = Lines(values[line] for line in lines)
    answers.has_forms = any(map(_has_spelled_or_dict, values.values()))
    return answers


def _has_spelled_or_dict(value: Any, depth: int = 0) -> bool:
    if type(value) is list:
        return depth > _MAX_AXES or any(_has_spelled_or_dict(inner, depth + 1) for inner in value)
    # Arrays are never made from mappings.
    return isinstance(value, (Spelled, Decimal, dict))


def _are_usual(lines: list[str], numbers: list[Any], joined: str) -> bool:
    """Return True if all numbers are written as Python or JavaScript writes them."""
    if any(mark in joined for mark in _UNUSUAL_MARKS):
        return False
    # A whole number may also end with zeros.
    has_zeros = "." in joined and joined.count("0,") > joined.count(".0,")
    if has_zeros or "e" in joined:
        marked = (line for line in lines if "e" in line or (has_zeros and line.endswith("0")))
        if not all(line in ("true", "false") or _USUAL_PATTERN.fullmatch(line) for line in marked):
            return False
    return all(
        line == shortest
        or len(line) <= _SURE_CHARACTERS
        or not isinstance(read_number(line), (Spelled, Decimal))
        for line, shortest in zip(lines, map(repr, numbers), strict=True)
    )


def _unusual_printf_format_of_all(lines: list[str], numbers: list[Any], joined: str) -> str | None:
    """Return the common format of all numbers if it is unusual, and otherwise None."""
    classes = set(map(type, numbers))
    if classes == {int, float} and not re.search(r"\.0,|e\+", joined):
        is_exact = max(map(abs, numbers)) <= 2**53 and _are_usual(lines, numbers, joined)
        return "whole" if is_exact else None
    if classes != {float}:
        return None
    head = [*zip(lines[:_HEAD_LINES], numbers[:_HEAD_LINES], strict=True)]
    has_every_digit = all(line == _EVERY_DIGIT % number for line, number in head)
    if has_every_digit and any(line != repr(number) for line, number in head):
        return _EVERY_DIGIT if _are_written(_EVERY_DIGIT, numbers, joined) else None
    if "0," not in joined:
        return None
    mantissa, exponent, _ = lines[0].replace("E", "e").partition("e")
    decimals = len(mantissa.strip().partition(".")[2])
    letter = ("E" if "E" in lines[0] else "e") if exponent else "f"
    if decimals < 2 and letter == "f":
        return None
    if letter == "f" and not any(mark in joined for mark in (*_UNUSUAL_MARKS, "e", "+")):
        codes = np.frombuffer(joined.encode(), np.uint8)
        ends, points = np.flatnonzero(codes == ord(",")), np.flatnonzero(codes == ord("."))
        if len(ends) != len(points) or (ends - points != decimals + 1).any():
            return None
        if max(map(len, lines)) <= _SURE_CHARACTERS:
            return f"%.{decimals}f"
    width = len(lines[0]) if lines[0].startswith(" ") else ""
    pattern = f"%{width}.{decimals}{letter}"
    return pattern if _are_written(pattern, numbers, joined) else None


def _are_written(pattern: str, numbers: list[Any], joined: str) -> bool:
    return f"{pattern}," * len(numbers) % tuple(numbers) == joined
