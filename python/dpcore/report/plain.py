"""Conversion of results and records to strict JSON and back.

A JSON file identifies a class by a word that the class declares. The word does not change if the
class is renamed. "Plain data" in this module means nested dicts and lists of JSON types.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import Field, fields
from importlib import import_module
from types import UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from ..errors import argument_of, instance, integer, invalid, mistyped
from ..paths import name_path_errors, require_path, write_file_or_keep_old
from . import WORD_PACKAGES
from .shown import name_of


class PlainResult(Protocol):
    """Protocol of a result: a dataclass with methods that convert it to JSON types and back."""

    @property
    def _is_verdict_slow(self) -> bool:
        """True if the computation of the verdict takes minutes."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of this result as a dict of JSON types."""

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make the result from a dict that `to_dict` returned."""

    def _require_consistency(self) -> None:
        """Raise an error if fields that a reported number depends on contradict each other."""


AnyResult = TypeVar("AnyResult", bound=PlainResult)

Reading = Callable[[str, Any], Any]
"""Type of a function that takes the name of a field and the JSON data of this field in a file. It
returns the value of the field."""

_REAL_DTYPE: Final = re.compile("[<>|=][buifU]([0-9]{1,9})")
_MAX_PADDED_WIDTH: Final = 4096
"""Largest width of a text dtype that is accepted although all texts are shorter."""
_NON_FINITE_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_JSON_TYPES: Final = (bool, int, float, str)
_WORD_HOMES: Final[dict[str, tuple[str, str]]] = {}
"""For each word, module and name of the class that declared it."""


class Form(NamedTuple):
    """Functions that convert objects of one type to JSON data and back.

    A JSON file contains such an object as a mapping. One key of the mapping occurs only in mappings
    for objects of this type.

    Args:
        holds: function `(value)` that returns True if the value is an object of this type.
        encode: function `(value)` that converts an object of this type to the mapping.
        decode: function `(mapping)` that converts the mapping to the object.
    """

    holds: Callable[[Any], bool]
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[Mapping[str, Any]], Any]


_FORMS: Final[dict[str, Form]] = {}
"""Functions for types other than records, by the key that identifies each type in JSON files.

The types are tried in the order of their declaration. The type of results must be declared first.
"""


def register_codec(key: str, form: Form) -> None:
    """Register the functions that convert objects of one type to JSON data and back.

    A mapping in a JSON file has the key `key` only if it represents an object of this type.
    """
    _FORMS[key] = form


def register_type(word: str, cls: type) -> None:
    """Register the word that identifies a class in JSON files.

    Raises:
        TypeError: if the word is already registered for another class.
    """
    home = cls.__module__, cls.__qualname__
    taken = _WORD_HOMES.setdefault(word, home)
    if taken != home:
        names = ".".join(taken), ".".join(home)
        raise TypeError(
            f"word must be unlike for namesakes, got {word!r} for {' and '.join(names)}"
        )


def registered_class(word: object) -> type | None:
    """Return the class that a word in JSON files identifies, or None for an unknown word."""
    home = _WORD_HOMES.get(word) if isinstance(word, str) else None
    if home is None:
        return None
    # The class is found by its name: a dataclass with slots replaces the class that was declared.
    cls: type = getattr(import_module(home[0]), home[1])
    return cls


def registered_word(cls: type) -> str | None:
    """Return the word that identifies a class in JSON files, or None if the class has no word.

    If only a base class has a word, the result is None.
    """
    home = cls.__module__, cls.__qualname__
    words = (word for word, where in _WORD_HOMES.items() if where == home)
    return next((word for word in words if registered_class(word) is cls), None)


@contextlib.contextmanager
def name_field(name: str, held: Any) -> Iterator[None]:
    """Return a context manager that adds the name of a field to errors about the field's value.

    `held` is the value in the file. An error whose message already names an argument is not
    changed.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
            RecursionError, MemoryError) as error:  # fmt: skip
        if argument_of(error):
            raise
        raise invalid(name, "what a result holds there", held) from error


def read_field(field: Field[Any], held: Any, decode: Callable[[Any], Any]) -> Any:
    """Convert the data of a field in a JSON file to the value of the field, and check this value.

    `decode` converts JSON data to objects. The field declares the function that checks the value.
    """
    read: Reading = field.metadata.get("read", return_unchanged)
    with name_field(field.name, held):
        return read(field.name, decode(held))


def lists_to_tuples(value: Any) -> Any:
    """Convert a list, and all lists inside it, to tuples. Return other objects unchanged."""
    return tuple(lists_to_tuples(item) for item in value) if isinstance(value, list) else value


def return_unchanged(name: str, value: Any) -> Any:
    """Return a value unchanged. Fields that need no check use this function as their check."""
    return value


def encode_float(value: float) -> float | str:
    """Return a finite float unchanged, and inf, -inf and nan as text, because JSON lacks them."""
    return value if math.isfinite(value) else "nan" if value != value else f"{value:g}"


def encode_value(value: Any) -> Any:
    """Convert the value of a field to JSON types. `decode_value` converts the result back."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return encode_float(float(value))
    if isinstance(value, np.integer):
        return int(value)
    for form in _FORMS.values():
        if form.holds(value):
            return form.encode(value)
    word = registered_word(type(value))
    if word is not None:
        return _encode_record_or_fallback_text(word, value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "buifU":
        flat = value.ravel().tolist()
        flat = [encode_float(item) for item in flat] if value.dtype.kind == "f" else flat
        return {"dtype": value.dtype.str, "shape": list(value.shape), "array": flat}
    if isinstance(value, (tuple, list)):
        return [encode_value(item) for item in value]
    if type(value) is dict and {(type(k), type(v)) for k, v in value.items()} <= {(str, int)}:
        return {"mapping": value}
    return {"repr": name_of(value) if callable(value) else repr(value)}


def encode_fields(value: Any) -> dict[str, Any]:
    """Return the stored fields of a dataclass as a dict of JSON types."""
    return {
        field.name: (encode_input if field.metadata.get("input") else encode_value)(
            getattr(value, field.name)
        )
        for field in fields(value)
        if field.metadata.get("held", True)
    }


def encode_input(value: Any) -> Any:
    """Convert an input of a mechanism to JSON types, from which the original types can be restored.

    Lists, booleans, integers and finite floats are written as in JSON. Tuples, numpy scalars and
    floats that are not finite become mappings. An object that contains itself is stored only as
    text.
    """
    try:
        return _encode_keeping_types(value)
    except RecursionError:
        return {"repr": repr(value)}


def _encode_keeping_types(value: Any) -> Any:
    if type(value) in (list, tuple):
        items = [_encode_keeping_types(item) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) is float and not math.isfinite(value):
        return {"float": encode_float(value)}
    if isinstance(value, np.generic) and value.dtype.kind in "buifU" and value.itemsize != 16:
        return {"scalar": encode_value(np.asarray(value))}
    if isinstance(value, (bool, int, float, str)) and type(value) not in _JSON_TYPES:
        return {"repr": repr(value)}
    return encode_value(value)


def _encode_record_or_fallback_text(word: str, value: Any) -> dict[str, Any]:
    """Return the fields of a record as plain data, or its text if JSON cannot store a field."""
    values = encode_fields(value)
    # Inputs, and fields marked as "named", may be stored by name only.
    strict = [f.name for f in fields(value) if not f.metadata.keys() & {"input", "named"}]
    items = [values[name] for name in strict if name in values]
    is_whole = not any(isinstance(item, dict) and "repr" in item for item in items)
    return {"record": word, **values} if is_whole else {"repr": str(value)}


def _find_class(word: Any) -> type:
    """Return the class that declared a word, or raise an error.

    The function imports only modules of dpcore, so a file cannot make it import other code.
    """
    cls = registered_class(word)
    for package in WORD_PACKAGES:
        if cls is None:
            import_module(package)
            cls = registered_class(word)
    if cls is None:
        raise invalid("record", "a word that one of dpcore's records declares", word)
    return cls


def decode_value(value: Any) -> Any:
    """Convert JSON data that `encode_value` returned to the original object.

    If JSON cannot represent the original object, the result is the name or the text of the object.
    """
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "tuple" in value:
        return tuple(decode_value(value["tuple"]))
    if "float" in value:
        return _NON_FINITE_WORDS[value["float"]]
    if "scalar" in value:
        return decode_value(value["scalar"])[()]
    if "array" in value:
        # The text is checked, because `np.dtype` accepts more, and a width could be billions.
        dtype = _REAL_DTYPE.fullmatch(instance("dtype", value["dtype"], str))
        if dtype is None:
            raise invalid("dtype", "one of real numbers or texts", value["dtype"])
        lengths = [len(item) for item in value["array"] if isinstance(item, str)]
        if int(dtype[1]) > max([_MAX_PADDED_WIDTH, *lengths]):
            raise invalid("dtype", "as wide as its longest item", value["dtype"])
        items = [_NON_FINITE_WORDS.get(item, item) for item in value["array"]]
        return np.array(items, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if "record" in value:
        cls = _find_class(value["record"])
        rest = decode_fields(cls, value, "record")
        hints = _type_hints_except_input_fields(cls)
        return cls(**{key: to_hint(key, hints.get(key), rest[key]) for key in rest})
    for key, form in _FORMS.items():
        if key in value:
            return form.decode(value)
    if "mapping" in value:
        return dict(value["mapping"])
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


@functools.cache
def _type_hints_except_input_fields(cls: type) -> dict[str, Any]:
    # An input may be a list. All other sequences in a record are tuples.
    inputs = {field.name for field in fields(cls) if field.metadata.get("input")}
    return {name: hint for name, hint in get_type_hints(cls).items() if name not in inputs}


def to_hint(name: str, hint: Any, value: Any) -> Any:
    """Check that JSON data fit a type annotation; convert lists to tuples and "inf" to a float.

    Args:
        name: name of the data for error messages.
        hint: the type annotation. None means that the data are returned unchanged.
        value: the data.

    Raises:
        TypeError: if the data do not fit the annotation.
    """
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is None:
        return value
    if kind is Any:
        return lists_to_tuples(value)
    if kind in (Union, UnionType):
        for part in inner:
            with contextlib.suppress(TypeError):
                return to_hint(name, part, value)
    elif kind is tuple and isinstance(value, list):
        parts = inner[:1] * len(value) if inner[1:] == (...,) else inner
        if len(parts) == len(value):
            return tuple(to_hint(name, *part) for part in zip(parts, value, strict=True))
    elif kind is float and (type(value) in (int, float) or str(value) in _NON_FINITE_WORDS):
        return float(value)
    elif kind is Hashable:
        return lists_to_tuples(value)
    elif kind is int and isinstance(value, bool):
        pass
    elif (kind is Literal and value in inner) or (
        isinstance(kind, type) and (getattr(kind, "_is_protocol", False) or isinstance(value, kind))
    ):
        return value
    raise mistyped(name, f"of the kind {hint}", value)


def decode_fields(cls: type, value: Mapping[str, Any], kind_key: str) -> dict[str, Any]:
    """Convert the JSON mapping of an object of class `cls` to a dict with the object's fields.

    The key `kind_key` of the mapping identifies the class. An error is raised if the other keys of
    the mapping are not exactly the stored fields of the class.
    """
    held = {f.name for f in fields(cls) if f.metadata.get("held", True)}
    if value.keys() - {kind_key} != held:
        raise mistyped(cls.__name__, f"a record with the fields {sorted(held)}", sorted(value))
    return {key: decode_value(item) for key, item in value.items() if key != kind_key}


def result_to_dict(result: PlainResult, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of JSON types: the fields of a result, and a word that identifies its class.

    Args:
        result: a dataclass.
        numbers: numbers that are computed from the fields. These numbers are stored under the key
            "derived" for other programs. When dpcore reads the dict, it checks that the verdict
            under this key agrees with the fields, and ignores all other entries under this key.
    """
    record = {"format": _serialized_name(type(result)), **encode_fields(result)}
    if record.get("seed") is not None:
        record["seed"] = str(record["seed"])
    derived = {k: v if isinstance(v, dict) else encode_value(v) for k, v in numbers.items()}
    return {**record, "derived": derived}


def _serialized_name(cls: type) -> str:
    """Return the word that identifies a class in files, or else the word of its base class."""
    return next(word for word in map(registered_word, cls.__mro__) if word is not None)


def decode_result(record: Mapping[str, Any]) -> Any:
    """Make a result of any class from a dict of JSON types. The key "format" names the class."""
    return result_from_dict(_find_class(record["format"]), record)


def _read_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text}, which is not a finite number")
    return number


def parse_object(text: Any) -> dict[str, Any]:
    """Convert the text of a JSON object to a dict. Raise an error for other texts."""
    if not isinstance(text, (str, bytes)):
        raise mistyped("text", "a string of JSON", text)
    try:
        record = json.loads(text, parse_float=_read_finite, parse_constant=_read_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON, got {error}") from None
    if not isinstance(record, dict):
        raise invalid("text", "a JSON object", record)
    return record


def encode_json(result: PlainResult, indent: int | None) -> str:
    """Call the method `to_dict` of a result, and return the dict as JSON text."""
    spaces = None if indent is None else integer("indent", indent, 0, 64)
    return json.dumps(result.to_dict(), allow_nan=False, indent=spaces)


def decode_json(cls: type[AnyResult], text: Any) -> AnyResult:
    """Make a result of class `cls` from the text of a JSON object."""
    return cls.from_dict(parse_object(text))


def save_json(result: PlainResult, path: Any) -> None:
    """Write a result to a file as JSON."""
    write_file_or_keep_old(path, encode_json(result, None) + "\n")


def load_json(cls: type[AnyResult], path: Any) -> AnyResult:
    """Read a result of class `cls` from a JSON file. Error messages state the path of the file."""
    place = require_path("path", path)
    with name_path_errors(place, "read"):
        text = place.read_bytes()
    try:
        return decode_json(cls, text)
    except ValueError as error:
        error.add_note(f"read from {place}")
        raise


def result_from_dict(cls: type[AnyResult], record: Mapping[str, Any]) -> AnyResult:
    """Make a result of class `cls` from a dict of JSON types, and check its fields.

    Args:
        cls: class of the result.
        record: the dict, as the method `to_dict` of the result returned it.

    Returns:
        The result.

    Raises:
        TypeError: if `record` is not a mapping.
        ValueError: if `record` does not have the form that `to_dict` writes for this class.
    """
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != _serialized_name(cls):
        raise invalid("format", repr(_serialized_name(cls)), record.get("format"))
    try:
        held = [f for f in fields(cls) if f.metadata.get("held", True)]  # type: ignore[arg-type]
        values = {f.name: _decode_and_check_field(cls, f, record[f.name]) for f in held}
        result = cls(**values)
        result._require_consistency()
        _require_stored_verdict_matches_fields(result, record.get("derived"))
        return result
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        requirement = f"record must be what {cls.__name__}.to_dict wrote"
        raise ValueError(f"{requirement}, got {error!r}") from None


def _require_stored_verdict_matches_fields(result: Any, derived: Any) -> None:
    """Raise an error if the verdict in a file differs from the verdict that the fields give.

    The check finds a damaged file in which every single field is valid. A verdict that takes
    minutes to compute is not checked.
    """
    if not isinstance(derived, Mapping) or "verdict" not in derived or result._is_verdict_slow:
        return
    # The reason after the colon is ignored, because its text may change.
    words = [str(text).partition(":")[0] for text in (derived["verdict"], result.verdict)]
    if words[0] != words[1]:
        raise invalid("derived.verdict", f"{words[1]!r}, which the fields give", words[0])


def _decode_and_check_field(cls: type, field: Field[Any], held: Any) -> Any:
    """Return the value of a field from its value in a file.

    If the field declares a function `read`, this function checks the value. Otherwise the value
    must have the annotated type.
    """
    if "read" in field.metadata:
        return read_field(field, held, decode_value)
    with name_field(field.name, held):
        value = decode_value(held)
        if field.name == "seed" and isinstance(held, str) and held.isdecimal():
            value = int(held)
        return to_hint(field.name, _type_hints_except_input_fields(cls)[field.name], value)
