"""The verdicts as text and as plain data."""

from __future__ import annotations

from typing import Any

from ...report.encoding import number
from ...report.text import epsilon
from ..text import aligned, record
from .experiment import CLASSES, NAME, Result, Row


def text(result: Result) -> str:
    """A table for each number of entries, then what it means."""
    config = result.config
    parts = [
        f"Published systems at epsilon = {config.epsilon:g}: {config.trials:,} trials a side, "
        f"seed {config.seed},\neach bound at {100 * config.confidence:g} % confidence on its "
        "own (Clopper-Pearson, majority vote)"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts += [_part(result, dim) for dim in config.dims if result.at(dim)]
    return "\n\n".join(parts)


def _part(result: Result, dim: int) -> str:
    head = (
        "system", "claim", "certified", "estimate", "closed form", "true loss", "claim is",
        "verdict",
    )  # fmt: skip
    body = aligned([head, *(_cells(row) for row in result.at(dim))], left=(0, 6, 7))
    found, broken, wrong, sound = result.agreement(dim)
    lines = [
        f"{dim} entries",
        body,
        f"Verdicts against the truth at {dim} entries: {found} of {broken} false claims "
        f"refuted, {wrong} of {sound} true claims refuted.",
    ]
    missed = result.missed(dim)
    if missed:
        lines += ["False claims that were not refuted:", *(f"  {line}" for line in missed)]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    audit = row.audit
    return (
        row.system,
        f"{audit.claim:g}",
        epsilon(audit.epsilon_lower),
        epsilon(audit.epsilon_hat),
        epsilon(audit.exact),
        epsilon(row.true_loss),
        "true" if row.sound else "false",
        audit.verdict,
    )


def plain(result: Result) -> dict[str, Any]:
    """Everything for strict JSON."""
    rows = [
        {
            "system": row.system,
            "dim": row.dim,
            "sound": row.sound,
            "fault": CLASSES[row.system].fault,
            "source": CLASSES[row.system].source,
            "true_loss": number(row.true_loss),
            "audit": row.audit.to_dict(),
        }
        for row in result.rows
    ]
    names = ("false_refuted", "false", "true_refuted", "true")
    agreement = {
        str(dim): dict(zip(names, result.agreement(dim), strict=True)) for dim in result.config.dims
    }
    missed = {str(dim): list(result.missed(dim)) for dim in result.config.dims}
    return {**record(NAME, result), "rows": rows, "agreement": agreement, "missed": missed}
