"""The audits of noise layers as text and as plain data."""

from __future__ import annotations

from typing import Any

from ...report.encoding import encode_float
from ...report.text import format_epsilon
from ..text import aligned, make_record_head
from .cases import CASES, PAIR
from .experiment import NAME, Result, Row, compute_mean_sd


def write_table(result: Result) -> str:
    """Format the figures, then the fault of each faulty layer."""
    config = result.config
    several = f", mean and spread of {config.seeds} seeds" if config.seeds > 1 else ""
    head = ("layer", "dtype", "", "claim", "exact loss", "certified", "rounding", "flags")
    parts = [
        f"Noise layers behind an encoder of texts: {config.trials:,} trials a side, seed "
        f"{config.seed}{several},\neach bound at {100 * config.confidence:g} % confidence on its "
        "own; two texts, a made-up encoder (words hashed to 32 numbers)"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts.append(
        aligned(
            [head, *(_format_layer_row(row, config.epsilon) for row in result.rows)],
            left=(0, 1, 2, 7),
        )
    )
    caught, faults, wrong, right = result.agreement()
    parts.append(
        f"{caught} of {faults} faults certified beyond the claim or flagged, {wrong} of {right} "
        "layers without fault."
    )
    shown = {row.layer for row in result.rows}
    told = [
        (case.name, f"{case.what}; repaired: {case.repair}")
        for case in CASES
        if case.name in shown and case.faulty
    ]
    if told:
        parts.append("Faults:\n" + aligned(told, left=(0, 1)))
    return "\n\n".join(parts)


def _format_layer_row(row: Row, level: float) -> tuple[str, ...]:
    claim = f"{level:g}"
    if row.case.delta:
        claim = f"({claim}, {row.case.delta:g})"
    return (
        row.layer,
        row.dtype,
        "fault" if row.faulty else "",
        claim,
        format_epsilon(row.exact),
        _format_mean_and_sd(row.certified),
        _format_mean_and_sd(row.rounding),
        ", ".join(row.flags) or "-",
    )


def _format_mean_and_sd(values: tuple[float, ...]) -> str:
    mean, wide = compute_mean_sd(values)
    if mean == 0.0:
        return "0"
    return f"{mean:.2f} +- {wide:.2f}" if len(values) > 1 else f"{mean:.2f}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "layer": row.layer,
            "dtype": row.dtype,
            "fault": row.case.what if row.faulty else "",
            "repair": row.case.repair if row.faulty else "",
            "claim": result.config.epsilon,
            "delta": row.case.delta,
            "exact": encode_float(row.exact),
            "certified": [encode_float(value) for value in row.certified],
            "rounding": [encode_float(value) for value in row.rounding],
            "mean": encode_float(compute_mean_sd(row.certified)[0]),
            "spread": encode_float(compute_mean_sd(row.certified)[1]),
            "flags": list(row.flags),
            "counts": [
                [getattr(audit.counts, name) for name in ("k", "n", "k_prime", "n_prime")]
                for audit in row.audits
            ],
            "seeds": [str(audit.seed) for audit in row.audits],
            "events": [audit.event for audit in row.audits],
        }
        for row in result.rows
    ]
    names = ("faults_caught", "faults", "others_caught", "others")
    agreement = dict(zip(names, result.agreement(), strict=True))
    return {
        **make_record_head(NAME, result),
        "pair": list(PAIR),
        "rows": rows,
        "agreement": agreement,
    }
