"""Conversion of objects to strict JSON and back; files name each class by a separate word."""

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
from ..paths import name_path_errors, require_path, write_file
from . import WORD_PACKAGES
from .shown import name_of


class PlainResult(Protocol):
    """Protocol of a result here: a dataclass that converts itself to plain data and back."""

    @property
    def _is_verdict_slow(self) -> bool:
        """True if the computation of the verdict takes minutes."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make the result from plain data."""

    def _require_consistency(self) -> None:
        """Raise an error for a combination of fields that no result has."""


AnyResult = TypeVar("AnyResult", bound=PlainResult)

Reading = Callable[[str, Any], Any]
"""Type of a function from the name of a field and its value in a file to the value of the field."""

_REAL_DTYPE: Final = re.compile("[<>|=][buifU]([0-9]{1,9})")
_MAX_PADDED_WIDTH: Final = 4096
"""Largest width of a dtype beyond its items. numpy converts 8,192 entries at a time."""
_NON_FINITE_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_JSON_TYPES: Final = (bool, int, float, str)
_WORD_HOMES: Final[dict[str, tuple[str, str]]] = {}
"""Module and name of the class that declares a word."""


class Form(NamedTuple):
    """Representation of objects of one type in files.

    Args:
        holds: function `(value)` that returns True for an object of this type.
        encode: function `(value)` that returns a mapping with the key of the form.
        decode: function `(mapping)` that returns the object.
    """

    holds: Callable[[Any], bool]
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[Mapping[str, Any]], Any]


_FORMS: Final[dict[str, Form]] = {}
"""Forms of objects other than records, by the key that identifies each form in files.

They are tried in the order of their declaration. The form of results must be first, because results
also have fields.
"""


def declare_form(key: str, form: Form) -> None:
    """Declare the key by which files identify a form."""
    _FORMS[key] = form


def declare(word: str, cls: type) -> None:
    """Declare the word by which files identify a class, independent of the class's name.

    Raises:
        TypeError: if another class has declared the word.
    """
    home = cls.__module__, cls.__qualname__
    taken = _WORD_HOMES.setdefault(word, home)
    if taken != home:
        names = ".".join(taken), ".".join(home)
        raise TypeError(
            f"word must be unlike for namesakes, got {word!r} for {' and '.join(names)}"
        )


def class_of(word: object) -> type | None:
    """Return the class that declares a word, or None if no loaded module declares it."""
    home = _WORD_HOMES.get(word) if isinstance(word, str) else None
    if home is None:
        return None
    # The class is found by its name: a dataclass with slots replaces the class that was declared.
    cls: type = getattr(import_module(home[0]), home[1])
    return cls


def word_of(cls: type) -> str | None:
    """Return the word that a class itself declares, or None; subclasses do not inherit it."""
    home = cls.__module__, cls.__qualname__
    words = (word for word, where in _WORD_HOMES.items() if where == home)
    return next((word for word in words if class_of(word) is cls), None)


@contextlib.contextmanager
def name_field(name: str, held: Any) -> Iterator[None]:
    """Name the field in errors about its value in a file, unless they name an argument."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
            RecursionError, MemoryError) as error:  # fmt: skip
        if argument_of(error):
            raise
        raise invalid(name, "what a result holds there", held) from error


def read_field(field: Field[Any], held: Any, decode: Callable[[Any], Any]) -> Any:
    """Read the value of a field from its value in a file; `decode` makes its objects."""
    read: Reading = field.metadata.get("read", as_it_stands)
    with name_field(field.name, held):
        return read(field.name, decode(held))


def lists_to_tuples(value: Any) -> Any:
    """Convert lists to tuples, also nested ones, because a record contains no lists."""
    return tuple(lists_to_tuples(item) for item in value) if isinstance(value, list) else value


def as_it_stands(name: str, value: Any) -> Any:
    """Return any value unchanged, for fields on which no number depends."""
    return value


def encode_float(value: float) -> float | str:
    """Return the float, or a word for inf, -inf and nan, which JSON lacks."""
    return value if math.isfinite(value) else "nan" if value != value else f"{value:g}"


def encode_value(value: Any) -> Any:
    """Convert one field of a result to plain data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return encode_float(float(value))
    if isinstance(value, np.integer):
        return int(value)
    for form in _FORMS.values():
        if form.holds(value):
            return form.encode(value)
    word = word_of(type(value))
    if word is not None:
        return _encode_record(word, value)
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
    """Return the fields as plain data, without fields that are not stored in files."""
    return {
        field.name: (encode_input if field.metadata.get("input") else encode_value)(
            getattr(value, field.name)
        )
        for field in fields(value)
        if field.metadata.get("held", True)
    }


def encode_input(value: Any) -> Any:
    """Convert an input to plain data that keeps the type of every item.

    Lists, booleans, integers and finite floats are written as in JSON. Tuples, other floats and
    numpy scalars become mappings. For an object that contains itself, only its text is kept.
    """
    try:
        return _encode_typed(value)
    except RecursionError:
        return {"repr": repr(value)}


def _encode_typed(value: Any) -> Any:
    if type(value) in (list, tuple):
        items = [_encode_typed(item) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) is float and not math.isfinite(value):
        return {"float": encode_float(value)}
    if isinstance(value, np.generic) and value.dtype.kind in "buifU" and value.itemsize != 16:
        return {"scalar": encode_value(np.asarray(value))}
    if isinstance(value, (bool, int, float, str)) and type(value) not in _JSON_TYPES:
        return {"repr": repr(value)}
    return encode_value(value)


def _encode_record(word: str, value: Any) -> dict[str, Any]:
    """Return the fields of a record, or only its text if a field cannot be stored."""
    values = encode_fields(value)
    # Inputs, and fields marked as "named", may be stored by name only.
    strict = [f.name for f in fields(value) if not f.metadata.keys() & {"input", "named"}]
    items = [values[name] for name in strict if name in values]
    is_whole = not any(isinstance(item, dict) and "repr" in item for item in items)
    return {"record": word, **values} if is_whole else {"repr": str(value)}


def _find_class(word: Any) -> type:
    """Return the class that declares a word.

    A file cannot name a module: only modules of this package are imported.
    """
    cls = class_of(word)
    for package in WORD_PACKAGES:
        if cls is None:
            import_module(package)
            cls = class_of(word)
    if cls is None:
        raise invalid("record", "a word that one of dpcore's records declares", word)
    return cls


def decode_value(value: Any) -> Any:
    """Decode the result of `encode_value`; an object that JSON cannot hold becomes its name."""
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
        hints = _annotations_of(cls)
        return cls(**{key: read_as(key, hints.get(key), rest[key]) for key in rest})
    for key, form in _FORMS.items():
        if key in value:
            return form.decode(value)
    if "mapping" in value:
        return dict(value["mapping"])
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


@functools.cache
def _annotations_of(cls: type) -> dict[str, Any]:
    # An input may be a list. All other sequences in a record are tuples.
    inputs = {field.name for field in fields(cls) if field.metadata.get("input")}
    return {name: hint for name, hint in get_type_hints(cls).items() if name not in inputs}


def read_as(name: str, hint: Any, value: Any) -> Any:
    """Convert decoded data to an annotated type: lists to tuples, words such as "inf" to floats.

    Args:
        name: name of the data in errors.
        hint: the annotation. None accepts all data unchanged.
        value: the data.

    Raises:
        TypeError: if the data has another type.
    """
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is None:
        return value
    if kind is Any:
        return lists_to_tuples(value)
    if kind in (Union, UnionType):
        for part in inner:
            with contextlib.suppress(TypeError):
                return read_as(name, part, value)
    elif kind is tuple and isinstance(value, list):
        parts = inner[:1] * len(value) if inner[1:] == (...,) else inner
        if len(parts) == len(value):
            return tuple(read_as(name, *part) for part in zip(parts, value, strict=True))
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


def decode_fields(cls: type, value: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Decode all fields of an object, except for the key of its kind; all must be present."""
    held = {f.name for f in fields(cls) if f.metadata.get("held", True)}
    if value.keys() - {kind} != held:
        raise mistyped(cls.__name__, f"a record with the fields {sorted(held)}", sorted(value))
    return {key: decode_value(item) for key, item in value.items() if key != kind}


def result_to_dict(result: PlainResult, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result as plain data, with its format and derived numbers.

    Args:
        result: a dataclass.
        figures: derived numbers. They are written under "derived", and not read again.
    """
    record = {"format": _format_of(type(result)), **encode_fields(result)}
    if record.get("seed") is not None:
        record["seed"] = str(record["seed"])
    derived = {k: v if isinstance(v, dict) else encode_value(v) for k, v in figures.items()}
    return {**record, "derived": derived}


def _format_of(cls: type) -> str:
    """Return the word of the format of a class, or of the class that it extends."""
    return next(word for word in map(word_of, cls.__mro__) if word is not None)


def decode_result(record: Mapping[str, Any]) -> Any:
    """Decode a result of any class, by the format that its data names."""
    return result_from_dict(_find_class(record["format"]), record)


def _read_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text}, which is not a finite number")
    return number


def parse_object(text: Any) -> dict[str, Any]:
    """Parse the text of a JSON object."""
    if not isinstance(text, (str, bytes)):
        raise mistyped("text", "a string of JSON", text)
    try:
        record = json.loads(text, parse_float=_read_finite, parse_constant=_read_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON, got {error}") from None
    if not isinstance(record, dict):
        raise invalid("text", "a JSON object", record)
    return record


def write_json(result: PlainResult, indent: int | None) -> str:
    """Convert a result to strict JSON by its `to_dict`."""
    spaces = None if indent is None else integer("indent", indent, 0, 64)
    return json.dumps(result.to_dict(), allow_nan=False, indent=spaces)


def read_json(cls: type[AnyResult], text: Any) -> AnyResult:
    """Read a result from the text of a JSON object, by `from_dict`."""
    return cls.from_dict(parse_object(text))


def save_json(result: PlainResult, path: Any) -> None:
    """Write a result to a file as JSON."""
    write_file(path, write_json(result, None) + "\n")


def load_json(cls: type[AnyResult], path: Any) -> AnyResult:
    """Read a result from a file; an error about its content names the file."""
    place = require_path("path", path)
    with name_path_errors(place, "read"):
        text = place.read_bytes()
    try:
        return read_json(cls, text)
    except ValueError as error:
        error.add_note(f"read from {place}")
        raise


def result_from_dict(cls: type[AnyResult], record: Mapping[str, Any]) -> AnyResult:
    """Make a result from its plain data, with each field read as its class declares.

    Args:
        cls: class of the result.
        record: the plain data.

    Returns:
        The result.

    Raises:
        TypeError: if the record is not a mapping.
        ValueError: if the record does not have the form of the class.
    """
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != _format_of(cls):
        raise invalid("format", repr(_format_of(cls)), record.get("format"))
    try:
        held = [f for f in fields(cls) if f.metadata.get("held", True)]  # type: ignore[arg-type]
        values = {f.name: _read_field(cls, f, record[f.name]) for f in held}
        result = cls(**values)
        result._require_consistency()
        _require_verdict(result, record.get("derived"))
        return result
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        requirement = f"record must be what {cls.__name__}.to_dict wrote"
        raise ValueError(f"{requirement}, got {error!r}") from None


def _require_verdict(result: Any, derived: Any) -> None:
    """Raise an error if the fields of a result do not give the verdict in the file.

    This finds damage that leaves every single field valid. Bounds that take minutes are not
    checked.
    """
    if not isinstance(derived, Mapping) or "verdict" not in derived or result._is_verdict_slow:
        return
    # The reason after the colon is ignored, because its text may change.
    words = [str(text).partition(":")[0] for text in (derived["verdict"], result.verdict)]
    if words[0] != words[1]:
        raise invalid("derived.verdict", f"{words[1]!r}, which the fields give", words[0])


def _read_field(cls: type, field: Field[Any], held: Any) -> Any:
    """Read a field by its own rule, or else by its annotation."""
    if "read" in field.metadata:
        return read_field(field, held, decode_value)
    with name_field(field.name, held):
        value = decode_value(held)
        if field.name == "seed" and isinstance(held, str) and held.isdecimal():
            value = int(held)
        return read_as(field.name, _annotations_of(cls)[field.name], value)
