"""The audits on usual and searched pairs as text and as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...auditing.run import Audit
from ...pairs import distance
from ...report.text import format_epsilon
from ..text import aligned, make_record_head
from .experiment import NAME, Result


def write_table(result: Result) -> str:
    """Format two rows for each mechanism."""
    config = result.config
    head = ("mechanism", "claim", "pairs", "certified", "exact loss", "pair")
    lines = [head]
    for row in result.rows:
        for kind, report in (("usual", row.usual), ("searched", row.searched)):
            lines.append(
                (
                    row.name,
                    f"{report.claim:g}",
                    kind,
                    format_epsilon(report.epsilon_lower),
                    format_epsilon(row.supremum(report)),
                    _format_pair(report),
                )
            )
    note = "INTERRUPTED: only what was counted is shown\n" if result.partial else ""
    return (
        f"{note}Searched pairs: {config.trials:,} trials a side, seed {config.seed}, "
        f"{100 * config.confidence:g} % confidence ({config.bound})\n\n"
        + aligned(lines, left=(0, 2, 5))
    )


def _format_pair(report: Audit) -> str:
    """Format the pair briefly: x, and its difference from x'."""
    x, change = report.pair.x, report.pair.x_prime - report.pair.x
    edge: dict[str, Any] = {"precision": 2, "suppress_small": True, "separator": " "}
    apart = distance(report.pair, "linf")
    steps = np.array2string(change, **edge).replace("\n", "")
    return f"{np.array2string(x, **edge)} change {steps} (Linf {apart:.3g})".replace("\n", "")


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "mechanism": row.name,
            **{
                kind: {**report.to_dict(), "exact_loss": row.supremum(report)}
                for kind, report in (("usual", row.usual), ("searched", row.searched))
            },
        }
        for row in result.rows
    ]
    return {**make_record_head(NAME, result), "rows": rows}
