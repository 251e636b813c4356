"""Audits as strict JSON and back."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bounds import BOUNDS
from ..bounds.declaration import declared
from ..errors import (
    choice,
    confidence_level,
    delta_level,
    instance,
    integer,
    invalid,
    mistyped,
    real,
)
from ..events import SIDES, Vote
from ..pairs import distances
from ..published import NATIVE, is_native
from ..records import Counts, Pair, Record
from ..results.findings import RANDOMNESS, Finding, Scored, Slice
from .distances import neighbours

if TYPE_CHECKING:
    from ..results.audits import Audit

FORMAT = "dpcore.audit/2"
_DECODED = ("mechanism", "event", "floating_point", "curve")
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_ADDED = ("notes", "neighbour", "randomness")
"""Fields that records written before they existed do not have."""
_LOOSE = (Pair, Finding, Slice)
"""Records in which a field may be a mere name."""
_CLASSES = {cls.__name__: cls for cls in NATIVE}


def number(value: float) -> float | str:
    """A float, or the word for one that JSON lacks."""
    return value if math.isfinite(value) else "nan" if value != value else f"{value:g}"


def encode(value: Any) -> Any:
    """Plain data for one field of an audit."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if is_native(value):
        values = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
        return {"native": type(value).__name__, **values}
    if type(value) is Vote:
        return value.to_dict()
    if type(value) is _records().get(type(value).__name__):
        return _record(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif":
        return {"dtype": value.dtype.str, "shape": list(value.shape), "array": _flat(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return {"repr": repr(value) if not callable(value) else _name(value)}


@functools.cache
def _records() -> dict[str, Any]:
    """Every record of dpcore by its name: what JSON keeps by its fields."""
    found: dict[str, Any] = {"Counts": Counts}
    waiting = list(Record.__subclasses__())
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        # A dataclass with slots has a forgotten twin without: the module knows the real one.
        if cls.__module__.startswith("dpcore."):
            found[cls.__name__] = getattr(sys.modules[cls.__module__], cls.__name__, cls)
    return found


def _record(value: Any) -> dict[str, Any]:
    """The fields of a record; its text alone where one of them cannot be kept."""
    values = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    whole = type(value) in _LOOSE or not any(_is_name(item) for item in values.values())
    return {"record": type(value).__name__, **values} if whole else {"repr": str(value)}


def _is_name(item: Any) -> bool:
    return isinstance(item, dict) and "repr" in item


def _flat(array: np.ndarray[Any, Any]) -> list[Any]:
    flat = array.ravel().tolist()
    return [number(item) for item in flat] if array.dtype.kind == "f" else flat


def _name(value: Any) -> str:
    from ..mechanisms.callables import name_of

    return name_of(value)


def decode(value: Any) -> Any:
    """What `encode` made plain; of objects that JSON cannot hold, their name."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "native" in value:
        rest = {key: decode(item) for key, item in value.items() if key != "native"}
        return _CLASSES[value["native"]](**rest)
    if "array" in value:
        if np.dtype(value["dtype"]).kind not in "buif":
            raise invalid("dtype", "one of real numbers", value["dtype"])
        items = [_WORDS.get(item, item) for item in value["array"]]
        return np.array(items, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if "record" in value:
        cls = _records()[value["record"]]
        rest = {key: decode(item) for key, item in value.items() if key != "record"}
        # An input may be a list of its own; every other sequence in a record is a tuple.
        return cls(**rest if cls is Pair else {key: _tuples(rest[key]) for key in rest})
    if value.get("event") == "Vote":
        return Vote.from_dict(value)
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


_DERIVED = (
    "epsilon_lower", "epsilon_hat", "exact", "verdict", "power", "draws_per_second",
)  # fmt: skip


def plain(audit: Audit) -> dict[str, Any]:
    """The plain data of an audit, and the figures that follow from it."""
    record: dict[str, Any] = {"format": FORMAT}
    record.update({f.name: encode(getattr(audit, f.name)) for f in fields(audit)})
    record["seed"] = str(audit.seed)
    record["derived"] = {name: encode(getattr(audit, name)) for name in _DERIVED}
    apart = distances(audit.pair)
    record["derived"]["distances"] = {name: encode(value) for name, value in apart.items()} or None
    record["derived"]["neighbours"] = neighbours(audit)
    return record


def parse(text: Any) -> dict[str, Any]:
    """A JSON object from its text."""
    if not isinstance(text, (str, bytes)):
        raise mistyped("text", "a string of JSON", text)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text must be JSON, got {error}") from None
    if not isinstance(record, dict):
        raise invalid("text", "a JSON object", record)
    return record


def audit(cls: type[Audit], record: Mapping[str, Any]) -> Audit:
    """An audit from its plain data."""
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != FORMAT:
        raise invalid("format", repr(FORMAT), record.get("format"))
    try:
        names = [f.name for f in fields(cls) if f.name in record or f.name not in _ADDED]
        values = {name: record[name] for name in names}
        values.update({name: decode(values[name]) for name in _DECODED})
        for name, kind in (("pair", Pair), ("counts", Counts)):
            values[name] = instance(name, decode(values[name]), kind)
        values["seed"] = integer("seed", int(values["seed"]), 0, 2**63 - 1)
        for name in ("pooled", "slices", "checks", "notes"):
            values[name] = _tuples(decode(values.get(name, [])))
        values["ranges"] = tuple((start, stop) for start, stop in values["ranges"])
        values["shape"] = tuple(integer("shape", length, 0) for length in values["shape"])
        values["seconds"] = float(values["seconds"])
        _check(values)
        return cls(**values)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"record must be what Audit.to_dict wrote, got {error!r}") from None


def _check(values: Mapping[str, Any]) -> None:
    """The values that a bound and a verdict rest on, as `audit` itself would have them."""
    confidence_level(values["confidence"])
    delta_level(values["delta"])
    if values["claim"] is not None:
        real("claim", values["claim"], low=0.0)
    choice("direction", values["direction"], SIDES)
    choice("bound", values["bound"], tuple(BOUNDS))
    choice("stop", values["stop"], ("fixed", "refuted", "interrupted", "looked"))
    choice("route", values["route"], ("integer", "sampled", "callable", "timed"))
    total = reach = 0
    for start, stop in values["ranges"]:
        # In order and disjoint, as they are when they are written.
        total += integer("stop", stop, integer("start", start, reach) + 1) - start
        reach = stop
    for name in ("n", "n_prime"):
        if getattr(values["counts"], name) != total:
            raise invalid(f"counts.{name}", f"{total}, the length of the ranges", values["counts"])
    for name, low in (("block", 1), ("threads", 1), ("end", reach), ("nan", 0), ("nan_prime", 0)):
        integer(name, values[name], low)
    integer("pilot", values["pilot"], 0)
    _check_more(values)


def _check_more(values: Mapping[str, Any]) -> None:
    """What an audit holds beside its counts, as far as a figure or a verdict rests on it."""
    counts, event = values["counts"], values["event"]
    for name in ("partial", "floats"):
        instance(name, values[name], bool)
    for name, kind in (("pooled", Counts), ("slices", Slice), ("checks", str), ("notes", str)):
        for item in instance(name, values[name], tuple):
            instance(name, item, kind)
    instance("neighbour", values.get("neighbour", ""), str)
    choice("randomness", values.get("randomness", "not known"), RANDOMNESS)
    if values["floating_point"] is not None:
        instance("floating_point", values["floating_point"], Finding)
    if values["curve"] is not None:
        instance("curve", values["curve"], Scored)
    slices, pooled = values["slices"], values["pooled"]
    if values["stop"] == "fixed" and values["partial"]:
        raise invalid("stop", "another than 'fixed' for a partial audit", values["stop"])
    if values["stop"] != "fixed" and not declared(BOUNDS[values["bound"]]).anytime:
        raise invalid("bound", "'anytime' unless all was fixed in advance", values["bound"])
    if (values["stop"] == "refuted") != bool(slices):
        raise invalid("slices", "there exactly where stop is 'refuted'", len(slices))
    if slices and sum((one.counts for one in slices[1:]), slices[0].counts) != counts:
        raise invalid("slices", f"pieces that add up to {counts}", slices)
    sizes = [counts.n * many for many in event.multiplicities] if pooled else []
    if sizes != [c.n for c in pooled] or sizes != [c.n_prime for c in pooled]:
        raise invalid("pooled", "counts of every coordinate of the event", pooled)
