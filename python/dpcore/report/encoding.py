"""Audits, also those of recorded outputs, as strict JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, Final, TypeVar

import numpy as np

from ..bounds import BOUNDS
from ..bounds.declaration import find_declaration
from ..errors import choice, instance, integer, invalid, mistyped
from ..events import SIDES, Vote
from ..mechanisms.declarations import name_of
from ..pairs import distances
from ..published import NATIVE, is_native
from ..records import Counts, Pair, Record, StoredRecord, WrittenRecord, class_of, word_of
from ..results.audits import Audit
from ..results.evidence import Finding, Slice, lists_to_tuples, may_lack, read_field
from ..results.outputs_audits import OUTPUTS_BOUNDS, Guesses, OutputsAudit
from .text import describe_event, describe_neighbours

_AnyRecord = TypeVar("_AnyRecord", bound=Record)
_AnyStored = TypeVar("_AnyStored", bound=StoredRecord)

AUDIT_FORMAT = "dpcore.audit/2"
_NON_FINITE_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_LOOSE_RECORDS = (Pair, Finding, Slice)
"""Records in which a field may be a mere name."""
_NATIVE_TYPES = {cls.__name__: cls for cls in NATIVE}
"""Native mechanisms by the names that the compiled core has for them too."""

_LAZY_PACKAGES = ("calibration", "sensitivity", "training", "mechanisms.texts")
"""Packages with words of their own that `import dpcore` does not load."""

_DERIVED_FIGURES = (
    "epsilon_lower", "epsilon_hat", "exact", "verdict", "power", "draws_per_second",
)  # fmt: skip

OUTPUTS_FORMAT: Final = "dpcore.audit_outputs/1"

_DERIVED_OUTPUTS_FIGURES: Final = (
    "epsilon_lower", "epsilon_hat", "ceiling", "guesses_needed", "refuted", "verdict",
)  # fmt: skip


def encode_float(value: float) -> float | str:
    """Return the float, or the word for a value that JSON lacks."""
    return value if math.isfinite(value) else "nan" if value != value else f"{value:g}"


def encode_value(value: Any) -> Any:
    """Convert one field of an audit to plain data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return encode_float(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if is_native(value):
        return {"native": type(value).__name__, **_encode_fields(value)}
    if type(value) is Vote:
        return value.to_dict()
    word = word_of(type(value))
    if word is not None:
        return _encode_record(word, value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif":
        flat = value.ravel().tolist()
        flat = [encode_float(item) for item in flat] if value.dtype.kind == "f" else flat
        return {"dtype": value.dtype.str, "shape": list(value.shape), "array": flat}
    if isinstance(value, (tuple, list)):
        return [encode_value(item) for item in value]
    return {"repr": name_of(value) if callable(value) else repr(value)}


def _encode_fields(value: Any) -> dict[str, Any]:
    return {f.name: encode_value(getattr(value, f.name)) for f in fields(value)}


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
    found = class_of(word)
    for package in _LAZY_PACKAGES:
        if found is None:
            import_module(f"dpcore.{package}")
            found = class_of(word)
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
        if not isinstance(name, str) or name not in _NATIVE_TYPES:
            raise invalid("native", "the name of one of dpcore's mechanisms", name)
        return _NATIVE_TYPES[name](**_decode_fields(value, "native"))
    if "array" in value:
        if np.dtype(value["dtype"]).kind not in "buif":
            raise invalid("dtype", "one of real numbers", value["dtype"])
        items = [_NON_FINITE_WORDS.get(item, item) for item in value["array"]]
        return np.array(items, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if "record" in value:
        cls = _find_class(value["record"])
        rest = _decode_fields(value, "record")
        # An input may be a list of its own; every other sequence in a record is a tuple.
        return cls(**rest if cls is Pair else {key: lists_to_tuples(rest[key]) for key in rest})
    if value.get("event") == "Vote":
        return Vote.from_dict(value)
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


def _decode_fields(value: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {key: decode_value(item) for key, item in value.items() if key != kind}


def result_to_dict(
    result: Any, form: str, figures: Sequence[str], left_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the fields of a result as plain data, with its format and figures that follow.

    Args:
        result: a dataclass.
        form: its format.
        figures: attributes that are shown as derived figures, and not read again.
        left_out: fields that no file holds.
    """
    names = [f.name for f in fields(result) if f.name not in left_out]
    return {
        "format": form,
        **{name: encode_value(getattr(result, name)) for name in names},
        "derived": {name: encode_value(getattr(result, name)) for name in figures},
    }


def audit_to_dict(audit: Audit) -> dict[str, Any]:
    """Return the plain data of an audit and the figures that follow from it."""
    record = result_to_dict(audit, AUDIT_FORMAT, _DERIVED_FIGURES)
    apart = {name: encode_value(value) for name, value in distances(audit.pair).items()}
    record["derived"].update(
        source_sha256=[one.sha256 for one in audit.provenance],
        distances=apart or None,
        neighbours=describe_neighbours(audit),
    )
    return record | {"seed": str(audit.seed)}


def parse_object(text: Any) -> dict[str, Any]:
    """Parse a JSON object from its text."""
    if not isinstance(text, (str, bytes)):
        raise mistyped("text", "a string of JSON", text)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON, got {error}") from None
    if not isinstance(record, dict):
        raise invalid("text", "a JSON object", record)
    return record


def write_json(audit: WrittenRecord, indent: int | None) -> str:
    """Write the result of `to_dict` as strict JSON."""
    return json.dumps(audit.to_dict(), allow_nan=False, indent=indent)


def read_json(cls: type[_AnyStored], text: Any) -> _AnyStored:
    """Read a result from the text of a JSON object, by `from_dict`."""
    return cls.from_dict(parse_object(text))


def audit_from_dict(cls: type[Audit], record: Mapping[str, Any]) -> Audit:
    """Make an audit from its plain data."""
    return from_plain(cls, record, AUDIT_FORMAT, _check_audit_fields)


def from_plain(
    cls: type[_AnyRecord], record: Mapping[str, Any], form: str, check: Callable[[_AnyRecord], None]
) -> _AnyRecord:
    """Make a result from its plain data, each field read as its class declares.

    Args:
        cls: the class.
        record: the plain data.
        form: the format that it must say it has.
        check: refuses fields that do not belong together.

    Returns:
        The result; of a field that may be lacking and is, the default.

    Raises:
        TypeError: if the record is not a mapping.
        ValueError: if it is not of that form.
    """
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != form:
        raise invalid("format", repr(form), record.get("format"))
    try:
        declared = [f for f in fields(cls) if f.name in record or not may_lack(f)]  # type: ignore[arg-type]
        values = {f.name: read_field(f, record[f.name], decode_value) for f in declared}
        found = cls(**values)
        check(found)
        return found
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        requirement = f"record must be what {cls.__name__}.to_dict wrote"
        raise ValueError(f"{requirement}, got {error!r}") from None


def _check_audit_fields(audit: Audit) -> None:
    """Refuse fields that no audit has together, as far as a figure or a verdict rests on them."""
    total = sum(stop - start for start, stop in audit.ranges)
    for name in ("n", "n_prime"):
        if getattr(audit.counts, name) != total:
            raise invalid(f"counts.{name}", f"{total}, the length of the ranges", audit.counts)
    integer("end", audit.end, audit.ranges[-1][1])
    if audit.stop == "fixed" and audit.partial:
        raise invalid("stop", "another than 'fixed' for a partial audit", audit.stop)
    if audit.stop != "fixed" and not find_declaration(BOUNDS[audit.bound]).anytime:
        raise invalid("bound", "'anytime' unless all was fixed in advance", audit.bound)
    if (audit.stop == "refuted") != bool(audit.slices):
        raise invalid("slices", "there exactly where stop is 'refuted'", len(audit.slices))
    if audit.slices and sum((s.counts for s in audit.slices[1:]), audit.slices[0].counts) != (
        audit.counts
    ):
        raise invalid("slices", f"pieces that add up to {audit.counts}", audit.slices)
    sizes = [audit.counts.n * many for many in audit.event.multiplicities] if audit.pooled else []
    if sizes != [c.n for c in audit.pooled] or sizes != [c.n_prime for c in audit.pooled]:
        raise invalid("pooled", "counts of every coordinate of the event", audit.pooled)


def outputs_audit_to_dict(audit: OutputsAudit) -> dict[str, Any]:
    """Return the plain data of an audit and the figures that follow from it."""
    record = result_to_dict(audit, OUTPUTS_FORMAT, _DERIVED_OUTPUTS_FIGURES)
    record["derived"].update(
        source_sha256=[one.sha256 for one in audit.provenance], witness=describe_event(audit)
    )
    evidence = {f.name: getattr(audit.evidence, f.name) for f in fields(audit.evidence)}
    return record | {"seed": str(audit.seed), "evidence": evidence}


def outputs_audit_from_dict(cls: type[OutputsAudit], record: Mapping[str, Any]) -> OutputsAudit:
    """Make an audit from its plain data."""
    evidence = record.get("evidence") if isinstance(record, Mapping) else None
    if isinstance(evidence, Mapping):
        kind = Guesses if record.get("rows") == "one_run" else Counts
        record = {**record, "evidence": {**evidence, "record": kind.__name__}}
    return from_plain(cls, record, OUTPUTS_FORMAT, _check_outputs_fields)


def _check_outputs_fields(audit: OutputsAudit) -> None:
    """Refuse fields that no audit of recorded outputs has together."""
    instance("evidence", audit.evidence, Guesses if audit.rows == "one_run" else Counts)
    bound = choice("bound", audit.bound, tuple(OUTPUTS_BOUNDS[audit.rows]))
    if audit.rows == "independent":
        choice("direction", audit.direction, SIDES)
    if audit.paired and not find_declaration(OUTPUTS_BOUNDS[audit.rows][bound]).paired:
        raise invalid("bound", "'clopper_pearson' where rows are paired", bound)
