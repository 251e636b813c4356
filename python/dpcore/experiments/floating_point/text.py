"""The audits of the low-order bits as text and as plain data."""

from __future__ import annotations

import math
from typing import Any

from ...events import event_of
from ...report.text import format_epsilon
from ..text import aligned, make_record_head
from .experiment import NAME, Result, Row


def write_table(result: Result) -> str:
    """Format the figures, then the events that were counted."""
    config = result.config
    head = (
        "system", "version", "draws a side", "hits on x", "on x'", "certified", "claim",
        "verdict", "seconds",
    )  # fmt: skip
    parts = [
        "Low-order bits of value + noise, x = 0 against x' = 1: traces of the "
        f"floating-point\nimplementation, seed {config.seed}, each bound at "
        f"{100 * config.confidence:g} % confidence on its own (Clopper-Pearson)"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts.append(aligned([head, *map(_format_system_audit, result.rows)], left=(0, 1, 7)))
    if any(not row.system.seeded and row.audit for row in result.rows):
        parts.append("* draws from the operating system: the seed does not repeat its counts")
    events = [(row.system.name, _describe_event(row)) for row in result.rows]
    parts.append("Events counted:\n" + aligned(events, left=(0, 1)))
    return "\n\n".join(parts)


def _describe_event(row: Row) -> str:
    """Describe the counted event in words."""
    if row.audit is None:
        return row.missing
    if not event_of(row.audit.event).happens:
        return "none: the pilot shows no trace"
    return str(row.audit.event)


def _format_system_audit(row: Row) -> tuple[str, ...]:
    name = row.system.name if row.system.seeded else f"{row.system.name} *"
    claim = f"{row.system.claim:g}"
    if row.system.delta:
        claim = f"({claim}, {row.system.delta:g})"
    if row.audit is None:
        return name, row.version, "-", "-", "-", "-", claim, row.missing.partition(":")[0], "-"
    counts = row.audit.counts
    return (
        name,
        row.version,
        f"{counts.n:,}",
        f"{counts.k:,}",
        f"{counts.k_prime:,}",
        format_epsilon(row.audit.epsilon_lower),
        claim,
        row.audit.verdict,
        f"{row.seconds:.2f}" if math.isfinite(row.seconds) else "-",
    )


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "system": row.system.name,
            "package": row.system.package,
            "version": row.version,
            "lattice": row.system.lattice,
            "seeded": row.system.seeded,
            "missing": row.missing,
            "seconds": row.seconds,
            "audit": None if row.audit is None else row.audit.to_dict(),
        }
        for row in result.rows
    ]
    return {**make_record_head(NAME, result), "rows": rows}
