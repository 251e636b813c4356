"""The figure as text and as plain data."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ...report.encoding import encode_float, encode_value
from ..text import aligned, make_record_head
from .experiment import NAME, Cell, Result


def write_table(result: Result) -> str:
    """Format a block for each mechanism."""
    config = result.config
    parts = [
        f"Habernal (2022), figure 1: {config.trials:,} trials a side, seed {config.seed}\n"
        "empirical loss / loss in closed form; rows epsilon, columns number of entries"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts += [_format_mechanism(result, name) for name in config.mechanisms if result.of(name)]
    parts.append(
        f"{2 * len(result.cells)} counts against the exact law: smallest two-sided p-value "
        f"{result.smallest_p_value:.2g} (about {0.5 / len(result.cells):.2g} is expected)"
    )
    return "\n\n".join(parts)


def _format_mechanism(result: Result, name: str) -> str:
    cells = {(cell.epsilon, cell.dim): cell for cell in result.of(name)}
    refuted = sum(cell.audit.refuted is True for cell in cells.values())
    rows = [["", *(f"n = {dim}" for dim in result.config.dims)]]
    for epsilon in result.config.epsilons:
        found = (cells.get((epsilon, dim)) for dim in result.config.dims)
        rows.append([f"{epsilon:g}", *(_format_entry(cell) for cell in found)])
    title = f"{name}: epsilon refuted in {refuted} of {len(cells)} cells"
    return f"{title} ({100 * result.config.confidence:g} % each)\n{aligned(rows, left=())}"


def _format_entry(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return f"{_format_nats(cell.audit.epsilon_hat)} / {_format_nats(cell.exact)}"


def _format_nats(value: float) -> str:
    return f"{value:.4f}" if value < 10.0 else f"{value:.4g}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    return {
        **make_record_head(NAME, result),
        "smallest_p_value": result.smallest_p_value,
        "cells": [_audit_cell_to_dict(cell) for cell in result.cells],
    }


def _audit_cell_to_dict(cell: Cell) -> dict[str, Any]:
    audit = cell.audit
    return {
        "mechanism": cell.mechanism,
        "epsilon": cell.epsilon,
        "dim": cell.dim,
        "counts": {f.name: getattr(audit.counts, f.name) for f in fields(audit.counts)},
        "vote": audit.event.vote,
        "direction": audit.direction,
        "epsilon_hat": encode_float(audit.epsilon_hat),
        "epsilon_lower": encode_float(audit.epsilon_lower),
        "exact": encode_float(cell.exact),
        "verdict": audit.verdict,
        "native": encode_value(audit.mechanism),
        "seed": str(audit.seed),
        "block": audit.block,
        "partial": audit.partial,
    }
