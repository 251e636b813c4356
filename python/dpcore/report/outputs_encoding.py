"""Audits of recorded outputs as strict JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

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
from ..events import SIDES
from ..records import Counts, Pair
from ..results.guesses import BOUNDS, ROWS, Guesses
from . import encoding as _json

if TYPE_CHECKING:
    from ..results.recorded import OutputsAudit

FORMAT: Final = "dpcore.audit_outputs/1"

_DERIVED: Final = (
    "epsilon_lower", "epsilon_hat", "ceiling", "guesses_needed", "refuted", "verdict",
)  # fmt: skip
_ADDED: Final = ("paired", "remarks")
"""Fields that records written before they existed do not have."""


def plain(audit: OutputsAudit) -> dict[str, Any]:
    """The plain data of an audit, and the figures that follow from it."""
    record: dict[str, Any] = {"format": FORMAT}
    record.update({f.name: _json.encode(getattr(audit, f.name)) for f in fields(audit)})
    evidence = audit.evidence
    record["evidence"] = {f.name: getattr(evidence, f.name) for f in fields(evidence)}
    record["seed"] = str(audit.seed)
    record["derived"] = {name: _json.encode(getattr(audit, name)) for name in _DERIVED}
    record["derived"]["witness"] = dict(audit.lines())["witness"]
    return record


def audit(cls: type[OutputsAudit], record: Mapping[str, Any]) -> OutputsAudit:
    """An audit from its plain data."""
    if not isinstance(record, Mapping):
        raise mistyped("record", "a mapping", record)
    if record.get("format") != FORMAT:
        raise invalid("format", repr(FORMAT), record.get("format"))
    try:
        names = [f.name for f in fields(cls) if f.name in record or f.name not in _ADDED]
        values = {name: record[name] for name in names}
        values["pair"] = instance("pair", _json.decode(values["pair"]), Pair)
        values["event"] = _json.decode(values["event"])
        values["seed"] = integer("seed", int(values["seed"]), 0, 2**63 - 1)
        for name in ("names", "pilot", "doubts", "remarks"):
            values[name] = tuple(instance(name, values.get(name, []), list))
        kind = Guesses if choice("rows", values["rows"], tuple(ROWS)) == "one_run" else Counts
        values["evidence"] = kind(**values["evidence"])
        _check(values)
        return cls(**values)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        text = f"record must be what OutputsAudit.to_dict wrote, got {error!r}"
        raise ValueError(text) from None


def _check(values: Mapping[str, Any]) -> None:
    """The values that a bound and a verdict rest on, as `audit_outputs` would have them."""
    confidence_level(values["confidence"])
    delta_level(values["delta"])
    if values["claim"] is not None:
        real("claim", values["claim"], low=0.0)
    bound = choice("bound", values["bound"], tuple(BOUNDS[values["rows"]]))
    if values["rows"] == "independent":
        choice("direction", values["direction"], SIDES)
    paired = instance("paired", values.get("paired", False), bool)
    if paired and not declared(BOUNDS[values["rows"]][bound]).paired:
        raise invalid("bound", "'clopper_pearson' where rows are paired", bound)
    lists = (("names", str, 2), ("pilot", int, 2), ("doubts", str, None), ("remarks", str, None))
    for name, kind, many in lists:
        for item in values[name]:
            instance(name, item, kind)
        if many is not None and len(values[name]) != many:
            raise invalid(name, "two values", values[name])
    instance("attack", values["attack"], str)
