"""Checks of values against the annotated types of arguments and fields."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

_SCALARS: Final[dict[Any, tuple[type, ...]]] = {
    float: (int, float, np.integer, np.floating),
    int: (int, np.integer),
    bool: (bool, np.bool_),
}
"""For each annotation of a scalar, the types of the values that fit the annotation."""

_SCALAR_NAMES: Final[dict[Any, str]] = {
    float: "a number that float64 holds",
    int: "an integer",
    bool: "True or False",
    NoneType: "None",
}


@lru_cache(maxsize=1024)
def type_hints_by_name(target: Any) -> dict[str, Any]:
    """Return a dict of the annotated types of a function's arguments or a class's fields.

    Some annotations contain a name that is imported only for type checkers. An argument with such
    an annotation is left out.
    """
    if isinstance(target, type):
        return get_type_hints(target)
    function, hints = inspect.unwrap(target), {}
    for name, text in inspect.get_annotations(function).items():
        with contextlib.suppress(NameError):
            hints[name] = eval(text, function.__globals__) if isinstance(text, str) else text
    return hints


def fits_hint(value: Any, hint: Any) -> bool:
    """Return False if it is certain that a value does not have the annotated type `hint`.

    numpy scalars count as numbers. If it is not certain that the value has another type, the result
    is True.

    Example:
        >>> fits_hint(("a", 1), tuple[str, ...]), fits_hint(np.int64(1), float | None)
        (False, True)
    """
    parts, kind = get_args(hint), get_origin(hint) or hint
    if hint is not npt.ArrayLike and (kind is UnionType or kind is Union):
        return any(fits_hint(value, part) for part in parts)
    if kind is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if kind in _SCALARS:
        is_number = isinstance(value, _SCALARS[kind]) and not isinstance(value, bool)
        is_small = kind is not float or not isinstance(value, int) or value.bit_length() < 1024
        return (is_number and is_small) or (kind is bool and isinstance(value, bool))
    if kind is Callable:
        return callable(value)
    if getattr(kind, "_is_protocol", False):
        names = (name for name in dir(kind) if name == "__call__" or not name.startswith("_"))
        return all(hasattr(value, name) for name in names)
    if hint is npt.ArrayLike:
        return _can_convert_to_array(value)
    if kind is Any or not isinstance(kind, type):
        return True
    if not isinstance(value, kind):
        return False
    if isinstance(value, np.ndarray) and kind is not np.ndarray:
        items = value if value.dtype == object else value[:1] if value.ndim else ()
        return value.ndim > 0 and all(fits_hint(item, part) for item in items for part in parts[:1])
    if isinstance(value, np.ndarray):
        lengths = get_args(parts[0]) if parts else (...,)
        is_shaped = value.ndim > 0 if ... in lengths else value.ndim == len(lengths)
        return is_shaped and _is_castable(value, parts)
    if not parts or not isinstance(value, Collection) or issubclass(kind, Mapping):
        return True
    if isinstance(value, (str, bytes)):
        return False
    if kind is not tuple or parts[-1] is Ellipsis:
        return all(fits_hint(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(map(fits_hint, value, parts))


def _can_convert_to_array(value: Any) -> bool:
    """Return True if `numpy.asarray` converts a value to an array or to a number.

    The result is False for rows of different lengths and for an object that is not a number.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    return array.ndim > 0 or array.dtype.kind != "O"


def _is_castable(array: np.ndarray[Any, Any], parts: tuple[Any, ...]) -> bool:
    """Return True if the array's entries can be cast to the type in `npt.NDArray[type]`."""
    entry = get_args(parts[1])[0] if parts else Any
    return not isinstance(entry, type) or np.can_cast(array.dtype, entry, "same_kind")


def describe_hint(hint: Any) -> str:
    """Describe an annotated type in words, for an error message.

    Example:
        >>> describe_hint(tuple[float, ...] | None)
        'a tuple of number that float64 holds or None'
    """
    parts, kind = get_args(hint), get_origin(hint) or hint
    if hint is npt.ArrayLike:
        return "an array of numbers"
    if kind is UnionType or kind is Union:
        return " or ".join(map(describe_hint, parts))
    if kind is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if kind in _SCALAR_NAMES:
        return _SCALAR_NAMES[kind]
    if kind is np.ndarray:
        entry = get_args(parts[1])[0] if parts else Any
        entries = f" of {entry.__name__}" if isinstance(entry, type) else ""
        lengths = get_args(parts[0]) if parts else (...,)
        dimensions = "at least one dimension" if ... in lengths else f"{len(lengths)} dimensions"
        return f"an array{entries} of {dimensions}"
    name = "callable" if kind is Callable else getattr(kind, "__name__", str(kind))
    ending = ""
    if parts and isinstance(kind, type) and issubclass(kind, Iterable):
        items = [re.sub("^an? ", "", describe_hint(part)) for part in parts if part is not ...]
        ending = f" of {', '.join(items)}"
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}{ending}"
