"""The experiment on DPText as text and as plain data."""

from __future__ import annotations

import math
from typing import Any

from ...report.encoding import encode_float
from ..text import aligned, make_record_head
from .experiment import NAME, Result, Row

_SYSTEM_HEAD = (
    ("noise", "epsilon", "claim", "", "certified", "exact loss", "exact,", "flags", "utility", "",
     "AUC of the attacker", "floor", "attacker"),
    ("", "", "or learnt", "verdict", "", "as it is", "if right", "", "", "", "", "", ""),
)  # fmt: skip


def write_table(result: Result) -> str:
    """Format the figures, then what they mean."""
    config = result.config
    runs = f"mean and spread of {config.seeds} seeds" if config.seeds != 1 else "1 seed"
    made = " (made-up texts: give --data for real ones)" if config.data is None else ""
    parts = [
        f"DPText: {result.corpus}{made}\nprivate attribute {config.attribute}; {config.epochs} "
        f"epochs, {config.trials:,} trials a side, {runs}, seed {config.seed};\nintervals and "
        f"bounds at {100 * config.confidence:g} % each; majority of the main task "
        f"{result.majority:.3f}"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    rows = [*_SYSTEM_HEAD, *(_format_system_row(row, result) for row in result.rows)]
    parts.append(aligned(rows, left=(0, 1, 3, 7, 9, 10, 12)))
    parts.append("\n".join(_write_notes(result)))
    return "\n\n".join(parts)


def _format_system_row(row: Row, result: Result) -> tuple[str, ...]:
    first, case = row.runs[0], row.case
    low, high = first.utility[1:]
    auc, least, most = first.auc
    return (
        case.noise,
        f"LEARNT {case.level}" if case.learn else f"fixed {case.level}",
        _format_mean_spread(row, "epsilon"),
        _describe_verdict(row),
        _format_mean_spread(row, "certified", 3),
        _format_mean_spread(row, "exact", 3),
        _format_mean_spread(row, "right", 3),
        ", ".join(row.flags) or "-",
        f"{_format_mean_spread(row, 'utility', 3)} [{low:.3f}, {high:.3f}]",
        "*" if row.useless(result.majority) else "",
        f"{auc:.3f} [{least:.3f}, {most:.3f}] {first.attacker}",
        f"{first.floor:.3f}",
        "above" if first.beaten else "at floor",
    )


def _describe_verdict(row: Row) -> str:
    """Format the verdict on a fixed epsilon as a claim, on a learnt one as an unclaimed value."""
    several = f" in {row.refuted} of {len(row.runs)}" if len(row.runs) > 1 else ""
    found = f"refuted{several}" if row.refuted else "not refuted"
    return f"no claim; value {found}" if row.case.learn else found


def _format_mean_spread(row: Row, name: str, digits: int = 0) -> str:
    mean, wide = row.spread(name)
    if math.isinf(mean):
        return "infinite"
    style = f".{digits}f" if digits else ".4g"
    return f"{mean:{style}} +- {wide:{style}}" if wide else f"{mean:{style}}"


def _write_notes(result: Result) -> list[str]:
    x, x_prime = (one if len(one) <= 60 else f"{one[:57]}..." for one in result.pair)
    notes = [
        f"pair: {x!r} and {x_prime!r}, which training did not see",
        "exact, if right: the loss of the pair under Laplace noise of the same scale; as it is: "
        "zero and resample are never\nbelow the clean vector, so that no epsilon bounds their "
        "loss, whatever an audit has certified.",
    ]
    if any(row.case.learn for row in result.rows):
        notes.append(
            "LEARNT: fitted to the training texts: no claim fixed in advance, and it covers none "
            "of them. For a later text it holds\nat its learnt value, at most the cap, and with "
            "repaired noise only. A fixed epsilon, too, covers later texts only."
        )
    useless = [row for row in result.rows if row.useless(result.majority)]
    if useless:
        idle = sum(not row.runs[0].beaten for row in useless)
        notes.append(
            f"*: utility at the majority. An attacker at its floor there ({idle} of {len(useless)} "
            "rows) is no evidence of privacy:\nthe vectors tell nobody anything, not the main "
            "task either."
        )
    if any(len(row.runs) > 1 for row in result.rows):
        notes.append("intervals, attacker and floor are those of the first seed")
    return notes


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything for strict JSON."""
    rows = [
        {
            "noise": row.case.noise,
            "epsilon": row.case.epsilon,
            "learnt": row.case.learn,
            "cap": row.case.cap,
            "claim": None if row.case.learn else row.case.epsilon,
            "flags": list(row.flags),
            "at_majority": row.useless(result.majority),
            "runs": [_training_to_dict(run) for run in row.runs],
        }
        for row in result.rows
    ]
    return {
        **make_record_head(NAME, result),
        "corpus": result.corpus,
        "majority": result.majority,
        "pair": list(result.pair),
        "rows": rows,
    }


def _training_to_dict(run: Any) -> dict[str, Any]:
    return {
        "seed": str(run.seed),
        "audit_seed": str(run.audit_seed),
        "epsilons": list(run.epsilons),
        "counts": [getattr(run.counts, key) for key in ("k", "n", "k_prime", "n_prime")],
        "event": run.event,
        "refuted": run.refuted,
        "certified": encode_float(run.certified),
        "exact": encode_float(run.exact),
        "exact_if_right": encode_float(run.right),
        "flags": list(run.flags),
        "utility": list(run.utility),
        "attacker": run.attacker,
        "auc": list(run.auc),
        "floor": run.floor,
        "above_floor": run.beaten,
    }
