"""Display of records: as one line, as text with all fields, and as a card in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..advice import advise_on_attribute
from ..suggestions import explain_errors_in_methods
from ..visible import make_visible
from .card import escape_html, fold_html, make_html_table, wrap_html_with_style_sheet
from .rows import Row, format_rows

_MAX_REPR_WIDTH: Final = 180
"""Largest number of characters of a `repr`. A notebook cell shows them without scrolling."""
_MAX_RECORD_DEPTH: Final = 3
"""Depth to which nested records can be opened."""


def qualname_of(value: Any) -> str:
    """Return the qualified name of a function or class, such as "Counts.swapped".

    For any other object, return the qualified name of its class.
    """
    return str(getattr(value, "__qualname__", None) or type(value).__qualname__)


def dotted_name(fn: Any) -> str:
    """Return the name of a function with its module, such as "numpy.linalg.norm"."""
    name = qualname_of(fn)
    module = getattr(fn, "__module__", None)
    return str(name if module in (None, "__main__", "builtins") else f"{module}.{name}")


def name_of(mechanism: Any) -> str:
    """Return the name of a user's mechanism for reports.

    The result is the attribute `name` of the mechanism. If the mechanism has no such attribute, the
    result is the name of the function with the module, such as "numpy.linalg.norm".
    """
    own = getattr(mechanism, "name", None)
    return own if isinstance(own, str) else dotted_name(mechanism)


class Shown:
    """Base class that defines `repr`, `str` and the display of objects in notebooks.

    `repr` returns one line, and `str` returns the full text. A subclass that is not a dataclass
    must define its own `repr` and `str`. If a method fails because an argument or a field has a
    wrong type, the error message names the argument or the field.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # for mypy every name would be an attribute

        def __getattr__(self, name):
            """Raise an AttributeError that suggests which attribute the user may have meant."""
            if meant := advise_on_attribute(type(self), name):
                text = f"{type(self).__name__!r} object has no attribute {name!r}: use {meant}"
                raise AttributeError(text.format(self))
            return object.__getattribute__(self, name)

    def __init_subclass__(cls, **more: Any) -> None:
        """Change the methods of a subclass, so that their errors name a wrong argument or field."""
        super().__init_subclass__(**more)
        explain_errors_in_methods(cls)

    def __repr__(self) -> str:
        """Return the constructor call, shortened to one line of at most 180 characters."""
        text = full_call(self)
        return (
            text
            if len(text) <= _MAX_REPR_WIDTH and "\n" not in text
            else _format_constructor(self, _shorten_field, _MAX_REPR_WIDTH)
        )

    @property
    def _title(self) -> str:
        """Title above the rows of the report."""
        return repr(self)

    def _lines(self) -> list[Row]:
        """Return the rows (label, text) of the report; empty for an object without a report."""
        return []

    def __str__(self) -> str:
        """Return the report if there is one, or else the constructor call with all fields.

        If the class defines `__repr__` and has no report, return the result of `repr`.
        """
        if rows := self._lines():
            return format_rows(self._title, rows)
        return full_call(self) if type(self).__repr__ is Shown.__repr__ else repr(self)

    def _repr_html_(self) -> str:
        return record_to_html(self)


explain_errors_in_methods(Shown)


def full_call(record: Any) -> str:
    """Return the constructor call of a dataclass with all its fields. Long arrays are shortened."""
    return _format_constructor(record, _repr_shortening_arrays)


def on_one_line(text: str, longest: int = _MAX_REPR_WIDTH) -> str:
    """Return a text as one line of at most `longest` characters, without hidden characters."""
    text = make_visible(" ".join(text.split()))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _format_constructor(record: Any, show: Callable[[Any], str], longest: float = math.inf) -> str:
    """Format the constructor call with as many fields as fit into `longest` characters."""
    parts, size = [], len(type(record).__name__) + len("(, ...)")
    for name, value in list_shown_fields(record):
        part = f"{name}={show(value)}"
        size += len(part) + len(", ")
        if size > longest:
            parts.append("...")
            break
        parts.append(part)
    return f"{type(record).__name__}({', '.join(parts)})"


def list_shown_fields(record: Any) -> list[tuple[str, Any]]:
    """Return the name and the value of each field that `repr` shows.

    A field can declare one value for which `repr` leaves the field out. For example, the distance
    of a pair is left out if the distance is 1.

    Example:
        >>> from dpcore import Pair
        >>> [name for name, _ in list_shown_fields(Pair([0.0], [2.0]))]
        ['x', 'x_prime']
        >>> [name for name, _ in list_shown_fields(Pair([0.0], [2.0], distance=2.0))]
        ['x', 'x_prime', 'distance']
    """
    shown = ((field, getattr(record, field.name)) for field in fields(record) if field.repr)
    return [
        (field.name, value)
        for field, value in shown
        if "hidden" not in field.metadata or value != field.metadata["hidden"]
    ]


def _shorten_field(value: Any) -> str:
    """Format the value of a field, shortened to about 40 characters."""
    if type(value) is np.ndarray and value.size > 8:
        kind = "str" if value.dtype.kind == "U" else value.dtype
        return f"<{kind} array of shape {value.shape}>"
    if isinstance(value, str):
        return repr(on_one_line(value, 40))
    text = _repr_shortening_arrays(value)
    if len(text) <= 40 and "\n" not in text:
        return text
    if isinstance(value, (tuple, list, dict, set, frozenset)):
        return f"<{type(value).__name__} of {len(value):,}>"
    if isinstance(value, Shown) and not text.startswith("<"):
        return f"{type(value).__name__}(...)"
    return on_one_line(text, 40)


def _repr_shortening_arrays(value: Any) -> str:
    if isinstance(value, Shown) and type(value).__repr__ is Shown.__repr__:
        return full_call(value)
    if type(value) is tuple and any(isinstance(item, Shown) for item in value):
        return f"({', '.join(map(_repr_shortening_arrays, value))}{',' if len(value) == 1 else ''})"
    if type(value) is not np.ndarray:
        return repr(value)
    text = np.array2string(value, separator=", ", threshold=8, edgeitems=3, floatmode="unique")
    text = " ".join(text.split())
    if value.size > 8:
        return f"array({text}, shape={value.shape}, dtype={value.dtype})"
    return f"array({text})" if value.dtype == np.float64 else f"array({text}, dtype={value.dtype})"


def record_to_html(record: Any) -> str:
    """Format an object, such as a result, as one HTML element for a notebook.

    The HTML contains the fields of the object. It also contains its report, or the text of `str` if
    its class defines `__str__`.

    Args:
        record: any object, usually a dataclass.

    Returns:
        One HTML element with its own style sheet.

    Example:
        >>> from dpcore import Counts
        >>> record_to_html(Counts(3, 10, 1, 10)).count("<tr>")
        4
    """
    return wrap_html_with_style_sheet(_record_inner_html(record, _MAX_RECORD_DEPTH))


def _record_inner_html(record: Any, depth: int) -> str:
    kind = type(record).__name__
    shown_fields = list_shown_fields(record) if is_dataclass(record) else []
    inner = [(name, _value_to_html(value, depth), False) for name, value in shown_fields]
    rows = record._lines() if isinstance(record, Shown) else []
    # Without its own text, the report would only list the same fields again.
    methods: tuple[Any, ...] = Shown.__str__, object.__str__
    is_plain = type(record).__str__ in methods and is_dataclass(record)
    text = "" if is_plain or rows else str(record)
    if rows:
        cells = [(label, escape_html(words), label == "verdict") for label, words in rows]
        report = make_html_table("", cells, getattr(record, "refuted", None))
        shown = _html_with_name_above(record._title, report)
    elif text:
        tag = "pre" if "\n" in text else "div"
        shown = _html_with_name_above(kind, f"<{tag}>{escape_html(text)}</{tag}>")
    else:
        return make_html_table(kind, inner)
    return shown + (fold_html("fields", make_html_table("", inner)) if inner else "")


def _html_with_name_above(name: str, inner_html: str) -> str:
    return f'<div class="name">{escape_html(name)}</div>{inner_html}'


def _value_to_html(value: Any, depth: int) -> str:
    """Format the value of a field as HTML.

    A large record becomes an element that the reader can open. Other values become one line.
    """
    if isinstance(value, Shown) and depth > 1 and len(full_call(value)) > 100:
        return fold_html(on_one_line(repr(value), 80), _record_inner_html(value, depth - 1))
    many = type(value) is tuple and len(value) > 1 and all(isinstance(v, Shown) for v in value)
    if many and depth > 1:
        inner = "".join(
            f"<div>{escape_html(on_one_line(str(item), 300))}</div>" for item in value[:50]
        )
        more = f"<div>and {len(value) - 50:,} more</div>" if len(value) > 50 else ""
        kinds = {type(item).__name__ for item in value}
        return fold_html(f"{len(value):,} of {' and '.join(sorted(kinds)[:3])}", inner + more)
    if type(value) is np.ndarray and 8 < value.size <= 100:
        return f"<pre>{escape_html(np.array2string(value, max_line_width=80, precision=4))}</pre>"
    if isinstance(value, str):
        return escape_html(on_one_line(value, 300))
    if type(value) is np.ndarray:
        shown = np.array2string(value, threshold=8, edgeitems=3, precision=5)
        shape = f", shape {value.shape}, {value.dtype}" if value.size > 8 else ""
        return escape_html(" ".join(shown.split()) + shape)
    return escape_html(on_one_line(repr(value), 300))
