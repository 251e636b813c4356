"""The sensitivities as text and as plain data."""

from __future__ import annotations

from typing import Any

from ...report.encoding import encode_value
from ..text import aligned, make_record_head
from .experiment import ENTRIES, HIGH, LOW, NAME, RADIUS, Result, Row


def write_table(result: Result) -> str:
    """Format a row for each domain and norm."""
    config = result.config
    head = (
        "domain",
        "norm",
        "closed form",
        "value",
        "by its pair",
        "off by",
        "search",
        "share",
    )
    lines = [head]
    for row in result.rows:
        value, attained = f"{row.closed.value:.6g}", f"{row.attained:.6g}"
        found = (f"{row.found.attained:.6g}", f"{100.0 * row.reached:.2f} %")
        error = f"{row.error:.0e}" if row.error else "0"
        title = ENTRIES[row.name].title
        lines.append((title, row.norm, row.formula, value, attained, error, *found))
    title = (
        f"Sensitivities in closed form: d = {config.dim}, C = {RADIUS:g}, a = {LOW:g}, "
        f"b = {HIGH:g}; each searched for among\n{config.share:,} inputs, without its pair, "
        f"seed {config.seed}"
    )
    least = min((row.reached for row in result.rows), default=0.0)
    note = (
        f"Above the closed form: {result.above} of {len(result.rows)} searches; the least found "
        f"{100.0 * least:.2f} % of it.\nWhat a search finds is a lower bound."
    )
    parts = [title, aligned(lines, left=(0, 1, 2)), note]
    if result.partial:
        parts.insert(1, "INTERRUPTED: only what was searched is shown")
    return "\n\n".join(parts)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    return {
        **make_record_head(NAME, result),
        "above": result.above,
        "rows": [_sensitivity_row_to_dict(r) for r in result.rows],
    }


def _sensitivity_row_to_dict(row: Row) -> dict[str, Any]:
    return {
        "domain": row.name,
        "dim": row.closed.domain.dim,
        "norm": row.norm,
        "formula": row.formula,
        "value": row.closed.value,
        "pair": [encode_value(x) for x in (row.closed.pair.x, row.closed.pair.x_prime)],
        "attained_by_pair": row.attained,
        "attained_by_search": row.found.attained,
        "search_pair": [encode_value(x) for x in (row.found.pair.x, row.found.pair.x_prime)],
        "found_by": row.found.found_by,
        "evaluations": row.found.evaluations,
        "seed": str(row.found.seed),
    }
