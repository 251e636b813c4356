"""The table of Renyi divergences of mechanisms, as text and as plain data."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...divergence import Estimate
from ...report import encoding
from ..text import aligned, make_record_head
from .cases import CASES
from .experiment import NAME, Result, Row

DIRECTIONS: Final = ("D(P0||P1)", "D(P1||P0)")

_TABLE_ORDERS: Final = (1.0, 2.0, 4.0)
"""The table has the orders of the grid that are nearest to these."""

_CURVE_HEAD: Final = (
    "mechanism", "direction", "alpha", "truth", "estimate", "+-", "off by", "certified", "belief",
)  # fmt: skip


def write_table(result: Result) -> str:
    """Format the orders, then the epsilons, then the verdict."""
    config = result.config
    title = (
        f"Renyi divergences from {config.trials:,} outputs a side against the closed forms; "
        f"certified figures hold\ntogether with {100.0 * config.confidence:g} % confidence, seed "
        f"{config.seed}"
    )
    curves = [_CURVE_HEAD, *(line for row in result.rows for line in _make_curve_lines(row))]
    figures = [
        ("mechanism", "exact", "certified", "estimate", "curve", "true curve", "method"),
        *(_make_epsilon_line(row) for row in result.rows),
    ]
    words = (
        f"epsilon at delta = {config.delta:g}: exact; certified and estimated from a held-out "
        "event; the estimated curve\nconverted, and the true curve converted"
    )
    claims = 3 * len(result.rows)
    verdict = f"Certified figures above the truth: {result.above} of {claims}"
    parts = [title, "", aligned(curves, (0, 1, 8)), "", words, "", aligned(figures, (0, 6)), ""]
    if result.partial:
        parts.insert(0, "INTERRUPTED: the mechanisms that were done")
    return "\n".join([*parts, verdict])


def shown_orders(estimate: Estimate) -> list[int]:
    """Return the places of the orders that the table shows."""
    return sorted({int(np.argmin(np.abs(estimate.alphas - a))) for a in _TABLE_ORDERS})


def _make_curve_lines(row: Row) -> list[tuple[str, ...]]:
    estimate = row.estimate
    lines: list[tuple[str, ...]] = []
    for side, direction in enumerate(DIRECTIONS):
        for place in shown_orders(estimate):
            truth, value = row.truth[side, place], estimate.value[side, place]
            lines.append(
                (
                    CASES[row.name].title,
                    direction,
                    f"{estimate.alphas[place]:.3g}",
                    format_three_decimals(truth),
                    format_three_decimals(value),
                    format_three_decimals(estimate.std_error[side, place]),
                    format_three_decimals(value - truth, "+") if math.isfinite(truth) else "",
                    format_three_decimals(row.certified[side, place]),
                    _shorten_belief(str(estimate.belief[side, place])),
                )
            )
    return lines


def _shorten_belief(belief: str) -> str:
    return belief.removesuffix(" at this alpha").removesuffix(" by its own certificate")


def _make_epsilon_line(row: Row) -> tuple[str, ...]:
    found = row.epsilon
    figures = (row.exact, found.epsilon_lower, found.epsilon_hat, found.epsilon_rdp, row.converted)
    return (CASES[row.name].title, *map(format_three_decimals, figures), row.estimate.method)


def format_three_decimals(value: float | None, sign: str = "") -> str:
    """Format a value with three decimals, as "inf", or as "-" if it is missing."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:{sign}z.3f}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [mechanism_to_dict(row) for row in result.rows]
    return {**make_record_head(NAME, result), "above": result.above, "rows": rows}


def mechanism_to_dict(row: Row) -> dict[str, Any]:
    """Return one mechanism as plain data for strict JSON."""
    estimate, found = row.estimate, row.epsilon
    curves = {
        "alphas": estimate.alphas,
        "truth": row.truth,
        "value": estimate.value,
        "std_error": estimate.std_error,
        "resolved": estimate.resolved,
        "certified": row.certified,
    }
    return {
        "mechanism": row.name,
        "method": estimate.method,
        **{key: encoding.encode_value(values) for key, values in curves.items()},
        "belief": estimate.belief.tolist(),
        "alpha_max": list(estimate.alpha_max),
        "reason": estimate.reason,
        "delta": found.delta,
        "epsilon_exact": encoding.encode_value(row.exact),
        "epsilon_lower": encoding.encode_value(found.epsilon_lower),
        "epsilon_hat": encoding.encode_value(found.epsilon_hat),
        "epsilon_rdp": encoding.encode_value(found.epsilon_rdp),
        "epsilon_true_curve": encoding.encode_value(row.converted),
        "extrapolated": found.extrapolated,
        "above": row.above,
        "seed": str(estimate.seed),
    }
