"""The benchmark's result as text and as plain data."""

from __future__ import annotations

import statistics
import textwrap
from typing import Any

from ...report.encoding import encode_float
from ...report.text import format_epsilon
from ..text import aligned, make_record_head
from .experiment import NAME, Result, Row


def write_table(result: Result, times: bool) -> str:
    """Format the table, the verdict over all mechanisms, and the meaning of the words."""
    config = result.config
    given = "as the table says" if config.trials is None else f"{config.trials:,} a side"
    parts = [
        f"The benchmark of DP-Sniper at {100 * config.confidence:g} % confidence: "
        f"{config.repeats} audits of every mechanism,\ntrials {given}, seed {config.seed}"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    head = ("mechanism", "claim is", "true loss", "oracle", "trials", "certified", "exact", "s",
            "DP-Sniper", "s", "StatDP", "s", "against DP-Sniper")  # fmt: skip
    kept = [i for i, word in enumerate(head) if times or word != "s"]
    lines = [
        [line[i] for i in kept]
        for line in (head, *(_format_benchmark_row(row) for row in result.rows))
    ]
    parts.append(aligned(lines, left=(0, 1, len(kept) - 1)))
    shown = sum(len(row.bounds) + len(row.exact_bounds) for row in result.rows)
    parts.append(
        f"At least DP-Sniper's better bound: {result.reached} of {len(result.rows)} mechanisms. "
        f"Above the true loss: {result.above} of {shown} bounds."
    )
    notes = [
        textwrap.indent(textwrap.fill(f"{row.name}: {row.benchmark.note}", 96), "  ")
        for row in result.rows
        if row.benchmark.note
    ]
    heading = ["Notes:"] if notes else []
    parts.append(
        "\n".join([_BENCHMARK_GLOSSARY, *([_TIMES_GLOSSARY] if times else []), *heading, *notes])
    )
    return "\n\n".join(parts)


_BENCHMARK_GLOSSARY = """\
true loss: exact, over the pairs of inputs of the benchmark.
oracle: what the best event of all certifies at 1e8 trials, by Clopper-Pearson at 90 %.
certified: median of the audits, by Clopper-Pearson; each bound holds on its own.
exact: the unconditional exact bound of the same counts, beside it; the larger is never taken.
DP-Sniper: published bounds at 90 % and 2e8 trials, logistic regression/neural network.
StatDP: published bounds at 90 % and 2e8 trials, two runs. *: above the true loss."""
_TIMES_GLOSSARY = """\
s: wall-clock seconds, ours the median with the choice of the event, theirs on their machine;
StatDP's without its verification of about 3 hours."""


def _format_benchmark_row(row: Row) -> tuple[str, ...]:
    known = row.benchmark
    audit = row.audits[0]
    statdp, seconds = "none", "none"
    if known.statdp is not None:
        statdp, seconds = (
            _format_two_bounds(known.statdp, known.supremum),
            f"{known.statdp_seconds:,}",
        )
    beyond = known.dp_sniper_best > known.supremum
    verdict = "at least" if row.reached else "below, theirs is untrue" if beyond else "below"
    return (
        row.name,
        "true" if known.private else "false",
        format_epsilon(known.supremum),
        format_epsilon(known.oracle_at_1e8),
        f"{audit.trials:.3g}".replace("e+0", "e").replace("e+", "e"),
        format_epsilon(row.certified),
        "" if row.certified_exact is None else format_epsilon(row.certified_exact),
        f"{statistics.median(row.seconds):.1f}" if row.seconds else "",
        _format_two_bounds(known.dp_sniper, known.supremum),
        "/".join(map(str, known.dp_sniper_seconds)),
        statdp,
        seconds,
        f"{verdict}; {row.above} ABOVE THE TRUTH" if row.above else verdict,
    )


def _format_two_bounds(figures: tuple[float, float], supremum: float) -> str:
    return "/".join(f"{value:.4f}{'*' if value > supremum else ''}" for value in figures)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [_benchmark_to_dict(row) for row in result.rows]
    return {
        **make_record_head(NAME, result),
        "rows": rows,
        "reached": result.reached,
        "above": result.above,
    }


def _benchmark_to_dict(row: Row) -> dict[str, Any]:
    """Return one mechanism as plain data."""
    known, beside = row.benchmark, row.certified_exact
    return {
        "mechanism": row.name,
        "private": known.private,
        "claim": known.claim,
        "supremum": encode_float(known.supremum),
        "oracle_at_1e8": known.oracle_at_1e8,
        "certified": row.certified,
        "certified_exact": beside,
        "bounds": list(row.bounds),
        "exact_bounds": list(row.exact_bounds),
        "seconds": list(row.seconds),
        "dp_sniper": list(known.dp_sniper),
        "dp_sniper_seconds": list(known.dp_sniper_seconds),
        "statdp": None if known.statdp is None else list(known.statdp),
        "statdp_seconds": known.statdp_seconds,
        "reached": row.reached,
        "above": row.above,
        "note": known.note,
        "audits": [audit.to_dict() for audit in row.audits],
    }
