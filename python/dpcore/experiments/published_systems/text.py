"""The verdicts as text and as plain data."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from ...report.encoding import encode_float
from ...report.text import format_epsilon
from ..text import aligned, make_record_head
from .experiment import ATTACKS, CLASSES, NAME, VOTE, Result, Row, refuting_attacks

_ATTACK_DESCRIPTIONS = {
    VOTE: "the papers' majority vote",
    "auto": "the default",
    "Coordinatewise": "declared: entries independent and alike (as they are here)",
}
_NOT_REFUTED_NOTE = (
    "Not refuted says what the attack sees, not that the claim holds. Left standing, though false:"
)


def write_table(result: Result) -> str:
    """Format a table for each number of entries with conclusions."""
    config = result.config
    lines = [
        f"Published systems, each claiming epsilon = {config.epsilon:g}, on their worst pairs: "
        "certified bounds,",
        f"each at {100 * config.confidence:g} % confidence on its own (Clopper-Pearson), seed "
        f"{config.seed}. A star: above the claim, which is refuted.",
    ]
    lines += [
        f"  {name:<14}  {config.counted(name):,} trials a side: {kind}"
        for name, kind in _ATTACK_DESCRIPTIONS.items()
    ]
    parts = ["\n".join(lines)]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts += [_format_part(result, dim) for dim in config.dims if result.at(dim)]
    return "\n\n".join(parts)


def _format_part(result: Result, dim: int) -> str:
    head = ("system", "claim is", "true loss", "vote can see", *ATTACKS, "verdict")
    cells = [_format_system_bounds(name, rows) for name, rows in result.at(dim).items()]
    found, broken, wrong, sound = result.agreement(dim)
    lines = [
        f"{dim} entries",
        aligned([head, *cells], left=(0, 1, len(head) - 1)),
        f"Verdicts against the truth at {dim} entries: {found} of {broken} false claims "
        f"refuted, {wrong} of {sound} true claims refuted.",
    ]
    missed = result.missed(dim)
    if missed:
        lines.append(_NOT_REFUTED_NOTE)
        lines += [fill(line, 98, initial_indent="  ", subsequent_indent=4 * " ") for line in missed]
    return "\n".join(lines)


def _format_system_bounds(name: str, rows: dict[str, Row]) -> tuple[str, ...]:
    first = next(iter(rows.values()))
    return (
        name,
        "true" if CLASSES[name].sound else "false",
        format_epsilon(first.true_loss),
        format_epsilon(rows[VOTE].audit.exact),
        *(_format_bound(rows.get(attack)) for attack in ATTACKS),
        _format_refuting(rows),
    )


def _format_bound(row: Row | None) -> str:
    """Format the bound of an attack, with a star if it refutes the claim, otherwise a blank."""
    if row is None:
        return "- "
    return f"{row.audit.epsilon_lower:.4f}{'*' if row.audit.refuted else ' '}"


def _format_refuting(rows: dict[str, Row]) -> str:
    hit = refuting_attacks(rows.values())
    if not hit:
        return "not refuted"
    return "refuted by all" if len(hit) == len(ATTACKS) else f"refuted by {', '.join(hit)}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "system": row.system,
            "dim": row.dim,
            "attack": row.attack,
            "sound": row.sound,
            "fault": CLASSES[row.system].fault,
            "source": CLASSES[row.system].source,
            "true_loss": encode_float(row.true_loss),
            "audit": row.audit.to_dict(),
        }
        for row in result.rows
    ]
    agreement = {
        str(dim): {
            **_agreement_to_dict(result, dim, None),
            "by_attack": {name: _agreement_to_dict(result, dim, name) for name in ATTACKS},
        }
        for dim in result.config.dims
    }
    missed = {str(dim): list(result.missed(dim)) for dim in result.config.dims}
    return {
        **make_record_head(NAME, result),
        "rows": rows,
        "agreement": agreement,
        "missed": missed,
    }


def _agreement_to_dict(result: Result, dim: int, attack: str | None) -> dict[str, int]:
    names = ("false_refuted", "false", "true_refuted", "true")
    return dict(zip(names, result.agreement(dim, attack), strict=True))
