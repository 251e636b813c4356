"""The histograms as text and as plain data."""

from __future__ import annotations

from typing import Any

from ...report.encoding import encode_value
from ..text import aligned, make_record_head
from .experiment import BINS, HIGH, LOW, NAME, Histogram, Result


def write_table(result: Result) -> str:
    """Format a row for each histogram."""
    head = ("noise of scale 1", "mean", "expected", "E[s^2]", "expected", "s = 0", "s < 0")
    rows = [
        (
            drawn.law.title,
            f"{round(drawn.mean, 4) + 0.0:.4f}",
            f"{drawn.law.mean:g}",
            f"{drawn.square:.4f}",
            f"{drawn.law.square:g}",
            f"{drawn.zeros / drawn.trials:.4f}",
            f"{drawn.below / drawn.trials:.4f}",
        )
        for drawn in result.histograms
    ]
    title = (
        f"Habernal (2022), appendix figure: {result.config.trials:,} draws each, "
        f"seed {result.config.seed}"
    )
    note = (
        "The three correct formulas give the same bits on the grid of 2^53 uniforms; they\n"
        "have different seeds here."
    )
    parts = [title, aligned([head, *rows]), note]
    if result.partial:
        parts.insert(1, "INTERRUPTED: only what was drawn is shown")
    return "\n\n".join(parts)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [_histogram_to_dict(drawn) for drawn in result.histograms]
    bins = {"low": LOW, "high": HIGH, "bins": BINS}
    return {**make_record_head(NAME, result), **bins, "histograms": rows}


def _histogram_to_dict(drawn: Histogram) -> dict[str, Any]:
    return {
        "name": drawn.name,
        "native": encode_value(drawn.law.noise),
        "seed": str(drawn.seed),
        "trials": drawn.trials,
        "mean": drawn.mean,
        "expected_mean": drawn.law.mean,
        "mean_error": drawn.errors[0],
        "square": drawn.square,
        "expected_square": drawn.law.square,
        "square_error": drawn.errors[1],
        "zeros": drawn.zeros,
        "expected_zeros": drawn.law.atom * drawn.trials,
        "below": drawn.below,
        "outside": drawn.outside,
        "counts": list(drawn.counts),
    }
