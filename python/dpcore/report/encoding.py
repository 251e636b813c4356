"""Audits, also those of recorded outputs, as strict JSON and back, and as Python code."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import Field, fields
from importlib import import_module
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from .. import attacks, pairs, records
from ..attacks.attack import AuditAttack
from ..bounds import BOUNDS
from ..bounds.binomial import find_declaration
from ..claims.renyi import RDP
from ..claims.trade_off import Claim
from ..errors import instance, integer, invalid, mistyped
from ..events import Vote
from ..mechanisms.commands import Tool
from ..mechanisms.declarations import NATIVE, inputs_of, is_native, name_of
from ..packages import imported_module
from ..pairs import distances
from ..pairs.differences import inputs_equal
from ..paths import name_path_errors, require_path
from ..published import SYSTEMS
from ..results.audits import Audit
from ..results.evidence import LEFT_OUT, Finding, Slice, lists_to_tuples, name_field, read_field
from ..results.outputs_audits import OutputsAudit
from ..streams import block_of
from .text import describe_event, describe_neighbours

_MAX_SHOWN_ENTRIES = 16
"""Entries of an array that are written out; beyond, a reader is helped by its name alone."""

_PARTIAL_RUN_COMMENT = (
    "# Not one whole run: the same trials again, but event and direction may be chosen on other "
    "pilot draws."
)
_UNREPEATED_COMMENTS = {
    "own": (
        "# The mechanism draws its own randomness: the seed does not repeat it, and the counts "
        "will be others."
    ),
    "rounding": "# The outputs repeat up to rounding, not bit for bit: counts may differ slightly.",
}

_AnyResult = TypeVar("_AnyResult", bound=records.Result)

_REAL_DTYPE: Final = re.compile("[<>|=][buifU]([0-9]{1,9})")
_MAX_PADDED_WIDTH: Final = 4096
"""Characters that a dtype may have beyond its items: numpy converts 8,192 entries at a time."""

_NON_FINITE_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_JSON_TYPES: Final = (bool, int, float, str)
_INPUT_NAMES: Final = {"x", "x_prime"}
_LOOSE_RECORDS = (records.Pair, Finding, Slice)
"""Records in which a field may be a mere name."""
"""Native mechanisms by the names that the compiled core has for them too."""

_LAZY_PACKAGES = (
    "calibration", "sensitivity", "tracing", "training", "mechanisms.texts", "text.inference",
)  # fmt: skip
"""Packages with words of their own that `import dpcore` does not load."""

_DERIVED_FIGURES = (
    "epsilon_lower", "epsilon_hat", "ceiling", "exact", "verdict", "power", "draws_per_second",
)  # fmt: skip
_DERIVED_OUTPUTS_FIGURES: Final = (
    "epsilon_lower", "epsilon_hat", "ceiling", "guesses_needed", "refuted", "verdict",
)  # fmt: skip


def format_call(audit: Audit, mechanism: str = "mechanism", pair: str = "pair") -> str:
    """Format the call of `dpcore.audit` that repeats an audit, on one line.

    Args:
        audit: the audit.
        mechanism: what stands for the mechanism where no expression gives it, such as a lambda.
        pair: what stands for the pair where it is too long to write out, or any object.

    Returns:
        Python source; audits of several ranges of trials are added. It gives the same counts
        unless `Audit.randomness` says that they are not the seed's.

    Example:
        >>> import dpcore
        >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
        >>> print(format_call(report))  # doctest: +NORMALIZE_WHITESPACE
        dpcore.audit(dpcore.Laplace(scale=1.0, variant='two_branch'),
            dpcore.Pair(np.array([0.0]), np.array([1.0])), attack=dpcore.attacks.Auto(),
            trials=1000, claim=1.0, confidence=0.95, rng=1, pilot=512)
        >>> eval(format_call(report)) == report
        True
    """
    inputs = [mechanism_expression(audit.mechanism) or mechanism, pair_expression(audit) or pair]
    calls = [f"dpcore.audit({', '.join(inputs + one)})" for one in list_call_keywords(audit)]
    return " + ".join(calls)


def make_script(audit: Audit) -> str:
    """Write a script that repeats an audit, as far as its record allows.

    Args:
        audit: the audit.

    Returns:
        Python source. What a record cannot hold (a lambda, an attack's own options) is left as
        `...` with a comment that names it; a long pair is read from the audit's JSON. A comment
        says where the seed does not repeat the draws.
    """
    mechanism = mechanism_expression(audit.mechanism)
    pair = pair_expression(audit) or _stored_pair_code(audit)
    imports = [*["import numpy as np"] * ("np." in pair), "import dpcore"]
    if mechanism is not None and not mechanism.startswith("dpcore."):
        imports.insert(0, f"import {audit.mechanism.__module__}")
    lines = [*imports, ""]
    lines.append(f"mechanism = {mechanism or f'...  # {records.one_line(audit.name, 200)}'}")
    lines.append(f"pair = {pair}")
    if attack_expression(audit) is None:
        lines.append(f"attack = ...  # {records.one_line(audit.attack, 200)}")
    if audit.neighbour and neighbour_expression(audit) is None:
        lines.append(f"neighbour = ...  # {records.one_line(audit.neighbour, 200)}")
    is_whole = len(audit.ranges) == 1 and audit.ranges[0][1] == audit.end and not audit.partial
    lines += [] if is_whole else [_PARTIAL_RUN_COMMENT]
    lines += filter(None, [_UNREPEATED_COMMENTS.get(audit.randomness)])
    calls = []
    for arguments in list_call_keywords(audit):
        body = "".join(f"    {argument},\n" for argument in ["mechanism", "pair", *arguments])
        calls.append(f"dpcore.audit(\n{body})")
    return "\n".join([*lines, f"report = {' + '.join(calls)}"])


def list_call_keywords(audit: Audit) -> list[list[str]]:
    """List the keyword arguments of the calls that repeat an audit, one call per trial range."""
    common = [f"claim={_claim_to_code(audit.claim)}"] if audit.claim is not None else []
    common += [f"delta={audit.delta!r}"] if audit.delta and audit.tangent is None else []
    common += [f"confidence={audit.confidence!r}", f"rng={audit.seed}"]
    common += [f"block={audit.block}"] if audit.block != block_of(audit.elements) else []
    if records.attribute_of(AuditAttack, getattr(attacks, audit.attack, None), "by_ballot"):
        # The integer route has the same counts, but only one of the two is the default.
        common += ["route='sampled'"] if audit.route == "sampled" else []
    else:
        common += [f"pilot={audit.pilot}"]
    common += [] if find_declaration(BOUNDS[audit.bound]).implied else [f"bound={audit.bound!r}"]
    common += ["stop='refuted'"] if audit.stop == "refuted" else []
    common += ["floats=True"] if audit.floats else []
    common += [f"neighbour={neighbour_expression(audit) or 'neighbour'}"] * bool(audit.neighbour)
    inputs = inputs_of(audit.mechanism, audit.pair)
    common += ["null=True"] if inputs_equal(inputs.x, inputs.x_prime) else []
    common += ["source=False"] * any(one.origin == LEFT_OUT for one in audit.provenance)
    attack = f"attack={attack_expression(audit) or 'attack'}"
    return [
        [attack, f"trials={stop - start}", *([f"start={start}"] if start else []), *common]
        for start, stop in audit.ranges
    ]


def _claim_to_code(claim: Any) -> str:
    """Return the claim as Python, or the name `claim` if it is a long table."""
    if isinstance(claim, RDP) and claim.alphas.size <= _MAX_SHOWN_ENTRIES:
        return f"dpcore.claims.RDP({claim.alphas.tolist()}, {claim.epsilons.tolist()})"
    if isinstance(claim, Claim) and claim.parameter is not None:
        return f"dpcore.claims.{type(claim).__name__}({getattr(claim, claim.parameter)!r})"
    return "claim" if isinstance(claim, Claim) else repr(claim)


def attack_expression(audit: Audit) -> str | None:
    """Return the attack as Python code, or None if its name does not determine it."""
    text = audit.attack if audit.attack.endswith(")") else f"{audit.attack}()"
    return f"dpcore.attacks.{text}" if _is_plain_call(text, attacks.__all__) else None


def neighbour_expression(audit: Audit) -> str | None:
    """Return the neighbour relation as Python code, or None if its text does not determine it."""
    text = audit.neighbour
    return f"dpcore.pairs.{text}" if _is_plain_call(text, pairs.__all__) else None


def _is_plain_call(text: str, names: Iterable[str]) -> bool:
    """Return True if a text is one call of one of the names, with literals as keyword arguments.

    The text may come from a file of somebody else, and a script of it is run.
    """
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            return False
        for keyword in call.keywords:
            ast.literal_eval(keyword.value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return call.func.id in names and text.isprintable()


def mechanism_expression(mechanism: Any) -> str | None:
    """Return a mechanism as Python code, or None.

    A native mechanism is written by its fields, any other by the name under which it is imported.

    Example:
        >>> import numpy as np
        >>> mechanism_expression(np.linalg.norm), mechanism_expression(lambda x, size, rng: x)
        ('numpy.linalg.norm', None)
    """
    if is_native(mechanism):
        place = type(mechanism).__module__ if type(mechanism) in SYSTEMS else "dpcore"
        return f"{place}.{mechanism!r}"
    if isinstance(mechanism, Tool):
        return f"dpcore.{mechanism!r}"
    module, name = (getattr(mechanism, key, None) for key in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(name, str)) or module == "__main__":
        return None
    found = imported_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is mechanism else None


def pair_expression(audit: Audit) -> str | None:
    """Return the pair as Python code, or None if it is long or not plain data."""
    inputs = [_value_to_code(audit.pair.x), _value_to_code(audit.pair.x_prime)]
    if None in inputs:
        return None
    apart = [f"distance={audit.pair.distance!r}"] if audit.pair.distance != 1.0 else []
    return f"dpcore.Pair({', '.join([str(text) for text in inputs] + apart)})"


def _value_to_code(value: Any) -> str | None:
    if isinstance(value, np.ndarray):
        return _vector_to_code(value)
    try:
        shown = repr(value)
        same = len(shown) <= 200 and records.have_one_content(ast.literal_eval(shown), value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return shown if same else None


def _vector_to_code(array: np.ndarray[Any, Any]) -> str | None:
    """Return a vector of float64 as code, or None."""
    if array.dtype != np.float64 or array.ndim != 1 or not array.size:
        return None
    entries: list[float] = array.tolist()
    if not all(map(math.isfinite, entries)):
        return None
    # By its text: 0.0 and -0.0 differ.
    if len(entries) > 4 and len(set(map(repr, entries))) == 1:
        return f"np.array([{entries[0]!r}] * {len(entries)})"
    return f"np.array({entries!r})" if len(entries) <= _MAX_SHOWN_ENTRIES else None


def _stored_pair_code(audit: Audit) -> str:
    if '"repr"' not in json.dumps(encode_value(audit.pair)):
        return "dpcore.Audit.from_json(text).pair  # text: the JSON of this audit"
    return f"...  # {records.one_line(repr((audit.pair.x, audit.pair.x_prime)), 200)}"


def encode_float(value: float) -> float | str:
    """Return the float, or the word for a value that JSON lacks."""
    return value if math.isfinite(value) else "nan" if value != value else f"{value:g}"


def encode_value(value: Any) -> Any:
    """Convert one field of a result to plain data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, records.Result):
        return value.to_dict()
    if isinstance(value, (float, np.floating)):
        return encode_float(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if is_native(value):
        return {"native": type(value).__name__, **_encode_fields(value)}
    if type(value) is Vote:
        return value.to_dict()
    word = records.word_of(type(value))
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


def _encode_fields(value: Any) -> dict[str, Any]:
    """Return the fields as plain data, without those that no file holds."""
    held = [f.name for f in fields(value) if f.metadata.get("held", True)]
    record = {name: encode_value(getattr(value, name)) for name in held if name not in _INPUT_NAMES}
    for name in _INPUT_NAMES & set(held):
        encode = _encode_input if type(value) is records.Pair else encode_value
        try:
            record[name] = encode(getattr(value, name))
        except RecursionError:
            record[name] = {"repr": repr(getattr(value, name))}
    return {name: record[name] for name in held}


def _encode_input(value: Any) -> Any:
    """Convert an input to plain data that keeps the type of every item.

    JSON has lists, booleans, integers and finite floats; tuples, other floats and numpy's scalars
    are mappings.
    """
    if type(value) in (list, tuple):
        items = [_encode_input(item) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) is float and not math.isfinite(value):
        return {"float": encode_float(value)}
    if isinstance(value, np.generic) and value.dtype.kind in "buifU" and value.itemsize != 16:
        return {"scalar": encode_value(np.asarray(value))}
    if isinstance(value, (bool, int, float, str)) and type(value) not in _JSON_TYPES:
        return {"repr": repr(value)}
    return encode_value(value)


def _encode_record(word: str, value: Any) -> dict[str, Any]:
    """Return the fields of a record; only its text if one of them cannot be stored."""
    values = _encode_fields(value)
    names = [item for item in values.values() if isinstance(item, dict) and "repr" in item]
    whole = type(value) in _LOOSE_RECORDS or not names
    return {"record": word, **values} if whole else {"repr": str(value)}


def _find_class(word: Any) -> type:
    """Return the class of a word.

    No file can name a module: only modules of this package are imported.
    """
    found = records.class_of(word)
    for package in _LAZY_PACKAGES:
        if found is None:
            import_module(f"dpcore.{package}")
            found = records.class_of(word)
    if found is None:
        raise invalid("record", "a word that one of dpcore's records declares", word)
    return found


def decode_value(value: Any) -> Any:
    """Decode the result of `encode_value`; return the name of an object that JSON cannot hold."""
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "native" in value:
        name = value["native"]
        if not isinstance(name, str) or name not in NATIVE:
            raise invalid("native", "the name of one of dpcore's mechanisms", name)
        return NATIVE[name](**_decode_fields(NATIVE[name], value, "native"))
    if "tuple" in value:
        return tuple(decode_value(value["tuple"]))
    if "float" in value:
        return _NON_FINITE_WORDS[value["float"]]
    if "scalar" in value:
        return decode_value(value["scalar"])[()]
    if "array" in value:
        # By its text: `np.dtype` parses more, and a short text may be a width of billions.
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
        rest = _decode_fields(cls, value, "record")
        # An input may be a list of its own; every other sequence in a record is a tuple.
        hints = {} if cls is records.Pair else _annotations_of(cls)
        return cls(**{key: read_as(key, hints.get(key), rest[key]) for key in rest})
    if "format" in value:
        return result_from_dict(_find_class(value["format"]), value)
    if "mapping" in value:
        return dict(value["mapping"])
    if value.get("event") == "Vote":
        return Vote.from_dict(value)
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


@functools.cache
def _annotations_of(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def read_as(name: str, hint: Any, value: Any) -> Any:
    """Read decoded data as an annotation says: lists as tuples, words such as "inf" as floats.

    Args:
        name: what an error calls the data.
        hint: the annotation. None accepts everything unchanged.
        value: the data.

    Raises:
        TypeError: if the data is of another kind.
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


def _decode_fields(cls: type, value: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Decode all fields of a record or a mechanism; none that files hold may be missing."""
    held = {f.name for f in fields(cls) if f.metadata.get("held", True)}
    if value.keys() - {kind} != held:
        raise mistyped(cls.__name__, f"a record with the fields {sorted(held)}", sorted(value))
    return {key: decode_value(item) for key, item in value.items() if key != kind}


def result_to_dict(result: records.Result, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result as plain data, with its format and figures that follow.

    Args:
        result: a dataclass.
        figures: written under "derived", and not read again.
    """
    record = {"format": _format_of(type(result)), **_encode_fields(result)}
    if record.get("seed") is not None:
        record["seed"] = str(record["seed"])
    derived = {k: v if isinstance(v, dict) else encode_value(v) for k, v in figures.items()}
    return {**record, "derived": derived}


def _format_of(cls: type[records.Result]) -> str:
    """Return the name of the layout of a class, or of the class that it extends."""
    return next(word for word in map(records.word_of, cls.__mro__) if word is not None)


def list_audit_figures(audit: Audit) -> dict[str, Any]:
    """Return the figures that follow from the fields of an audit."""
    apart = {name: encode_value(value) for name, value in distances(audit.pair).items()}
    return {
        **{name: getattr(audit, name) for name in _DERIVED_FIGURES},
        "source_sha256": [one.sha256 for one in audit.provenance],
        "distances": apart or None,
        "neighbours": describe_neighbours(audit),
    }


def _read_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text}, which is not a finite number")
    return number


def parse_object(text: Any) -> dict[str, Any]:
    """Parse a JSON object from its text."""
    if not isinstance(text, (str, bytes)):
        raise mistyped("text", "a string of JSON", text)
    try:
        record = json.loads(text, parse_float=_read_finite, parse_constant=_read_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON, got {error}") from None
    if not isinstance(record, dict):
        raise invalid("text", "a JSON object", record)
    return record


def write_json(result: records.Result, indent: int | None) -> str:
    """Write the result of `to_dict` as strict JSON."""
    spaces = None if indent is None else integer("indent", indent, 0, 64)
    return json.dumps(result.to_dict(), allow_nan=False, indent=spaces)


def read_json(cls: type[_AnyResult], text: Any) -> _AnyResult:
    """Read a result from the text of a JSON object, by `from_dict`."""
    return cls.from_dict(parse_object(text))


def save_json(result: records.Result, path: Any) -> None:
    """Write a result to a file."""
    records.write_file(path, write_json(result, None) + "\n")


def load_json(cls: type[_AnyResult], path: Any) -> _AnyResult:
    """Read a result from a file; an error about its content names the file."""
    place = require_path("path", path)
    with name_path_errors(place, "read"):
        text = place.read_bytes()
    try:
        return read_json(cls, text)
    except ValueError as error:
        error.add_note(f"read from {place}")
        raise


def result_from_dict(cls: type[_AnyResult], record: Mapping[str, Any]) -> _AnyResult:
    """Make a result from its plain data, each field read as its class declares.

    Args:
        cls: the class.
        record: the plain data.

    Returns:
        The result.

    Raises:
        TypeError: if the record is not a mapping.
        ValueError: if it is not of that form.
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
    """Raise an error if the fields of a result do not have the verdict that was written with them.

    It finds damage that leaves every field possible, except for bounds that take minutes.
    """
    if not isinstance(derived, Mapping) or "verdict" not in derived:
        return
    bound = getattr(result, "bound", None)
    if bound in BOUNDS and find_declaration(BOUNDS[bound]).slow:
        return
    # Without the reason, whose words may change.
    words = [str(text).partition(":")[0] for text in (derived["verdict"], result.verdict)]
    if words[0] != words[1]:
        raise invalid("derived.verdict", f"{words[1]!r}, which the fields give", words[0])


def list_outputs_figures(audit: OutputsAudit) -> dict[str, Any]:
    """Return the figures that follow from the fields of an audit of recorded outputs."""
    return {
        **{name: getattr(audit, name) for name in _DERIVED_OUTPUTS_FIGURES},
        "source_sha256": [one.sha256 for one in audit.provenance],
        "witness": describe_event(audit),
    }


def _read_field(cls: type, field: Field[Any], held: Any) -> Any:
    """Read a field by its rule or, if it has none, by its annotation."""
    if "read" in field.metadata:
        return read_field(field, held, decode_value)
    with name_field(field.name, held):
        value = decode_value(held)
        if field.name == "seed" and isinstance(held, str) and held.isdecimal():
            value = int(held)
        return read_as(field.name, _annotations_of(cls)[field.name], value)
