"""Audits as strict JSON and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import (
    choice,
    confidence_level,
    delta_level,
    integer,
    invalid,
    mistyped,
    real,
)
from .events import SIDES, Vote
from .published import NATIVE, is_native
from .records import Counts, Pair

if TYPE_CHECKING:
    from .audit_record import Audit

FORMAT = "dpcore.audit/1"
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
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
    if isinstance(value, Counts):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Pair):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if type(value) is Vote:
        return value.to_dict()
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif":
        return {"dtype": value.dtype.str, "shape": list(value.shape), "array": _flat(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return {"repr": repr(value) if not callable(value) else _name(value)}


def _flat(array: np.ndarray[Any, Any]) -> list[Any]:
    flat = array.ravel().tolist()
    return [number(item) for item in flat] if array.dtype.kind == "f" else flat


def _name(value: Any) -> str:
    from ._counting import name_of

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
    if value.get("event") == "Vote":
        return Vote.from_dict(value)
    if "repr" in value:
        return value["repr"]
    raise invalid("record", "data that an audit wrote", dict(value))


def audit(cls: type[Audit], record: Mapping[str, Any]) -> Audit:
    """An audit from its plain data."""
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != FORMAT:
        raise invalid("format", repr(FORMAT), record.get("format"))
    try:
        values = {f.name: record[f.name] for f in fields(cls)}
        values.update({name: decode(values[name]) for name in ("mechanism", "event")})
        pair = values["pair"]
        values["pair"] = Pair(*(decode(pair[f.name]) for f in fields(Pair)))
        values["counts"] = Counts(**values["counts"])
        values["seed"] = integer("seed", int(values["seed"]), 0, 2**63 - 1)
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
    choice("route", values["route"], ("integer", "sampled", "callable"))
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
