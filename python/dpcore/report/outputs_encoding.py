"""Audits of recorded outputs as strict JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ..bounds.declaration import declared
from ..errors import choice, instance, invalid
from ..events import SIDES
from ..records import Counts
from ..results.guesses import BOUNDS, Guesses
from ..results.recorded import OutputsAudit
from . import encoding

OUTPUTS_FORMAT: Final = "dpcore.audit_outputs/1"

_DERIVED_OUTPUTS_FIGURES: Final = (
    "epsilon_lower", "epsilon_hat", "ceiling", "guesses_needed", "refuted", "verdict",
)  # fmt: skip


def outputs_audit_to_dict(audit: OutputsAudit) -> dict[str, Any]:
    """Return the plain data of an audit and the figures that follow from it."""
    record: dict[str, Any] = {"format": OUTPUTS_FORMAT}
    record.update({f.name: encoding.encode_value(getattr(audit, f.name)) for f in fields(audit)})
    evidence = audit.evidence
    record["evidence"] = {f.name: getattr(evidence, f.name) for f in fields(evidence)}
    record["seed"] = str(audit.seed)
    record["derived"] = {
        name: encoding.encode_value(getattr(audit, name)) for name in _DERIVED_OUTPUTS_FIGURES
    }
    record["derived"]["source_sha256"] = [one.sha256 for one in audit.provenance]
    record["derived"]["witness"] = dict(audit.lines())["witness"]
    return record


def outputs_audit_from_dict(cls: type[OutputsAudit], record: Mapping[str, Any]) -> OutputsAudit:
    """Make an audit from its plain data."""
    evidence = record.get("evidence") if isinstance(record, Mapping) else None
    if isinstance(evidence, Mapping):
        kind = Guesses if record.get("rows") == "one_run" else Counts
        record = {**record, "evidence": {**evidence, "record": kind.__name__}}
    return encoding.from_plain(cls, record, OUTPUTS_FORMAT, _check_outputs_fields)


def _check_outputs_fields(audit: OutputsAudit) -> None:
    """Refuse fields that no audit of recorded outputs has together."""
    instance("evidence", audit.evidence, Guesses if audit.rows == "one_run" else Counts)
    bound = choice("bound", audit.bound, tuple(BOUNDS[audit.rows]))
    if audit.rows == "independent":
        choice("direction", audit.direction, SIDES)
    if audit.paired and not declared(BOUNDS[audit.rows][bound]).paired:
        raise invalid("bound", "'clopper_pearson' where rows are paired", bound)
