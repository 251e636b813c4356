"""Text on the distances of an audit's inputs and on the neighbours of its claim."""

from __future__ import annotations

from typing import Any

from ..pairs import distances
from ..pairs.comparing import MOST_CHANGES, inputs_equal
from ..results.audits import Audit

_NORM_NAMES = {"l1": "L1", "l2": "L2", "linf": "Linf"}


def list_distance_rows(audit: Audit) -> list[tuple[str, str]]:
    """List the report's rows about the pair: its distances and the relation of neighbours."""
    encoded = "" if audit.clean is None else _format_distances(distances(audit.clean))
    found = [
        ("distances", _format_distances(distances(audit.pair))),
        ("encoded", encoded),
        ("neighbours", describe_neighbours(audit)),
    ]
    return [(label, text) for label, text in found if text]


def describe_neighbours(audit: Audit) -> str:
    """Describe in one sentence which inputs are neighbours; return "" without a claim.

    Args:
        audit: the audit.

    Returns:
        The relation that the pair was checked against; without one, that the claim is read as one
        about these two inputs.
    """
    if inputs_equal(audit.pair.x, audit.pair.x_prime):
        return "the two inputs are equal: whatever is found is a false alarm"
    if audit.neighbour:
        return f"{audit.neighbour}, which holds for this pair"
    if audit.claim is None:
        return ""
    apart = "" if audit.pair.distance == 1.0 else f", at distance {audit.pair.distance:g}"
    own = _describe_own_neighbours(audit)
    return f"not given: the claim is read as one about these two inputs{apart}{own}"


def _describe_own_neighbours(audit: Audit) -> str:
    """Describe the neighbours that the mechanism states, if its own claim was tested."""
    norm, most = (getattr(audit.mechanism, name, None) for name in ("norm", "sensitivity"))
    if audit.own_claim != audit.claim or norm not in _NORM_NAMES or most is None:
        return ""
    return f" (the mechanism speaks of {_NORM_NAMES[norm]} distance at most {most:g})"


def _format_distances(found: dict[str, Any]) -> str:
    parts = [f"{shown} {found[norm]:.6g}" for norm, shown in _NORM_NAMES.items() if norm in found]
    if "changed" in found:
        parts.append(
            f"{found['changed']:,} of {_format_plural_count(found['entries'], 'entry')} changed"
        )
    if "replaced" in found:
        parts.append(
            f"{found['replaced']:,} of {_format_plural_count(found['size'], found['unit'])} replaced"
        )
    if "added_or_removed" in found:
        parts.append(_format_changes(found))
    return ", ".join(parts)


def _format_changes(found: dict[str, Any]) -> str:
    number = found["added_or_removed"]
    shown = f"{number:,}" if number <= MOST_CHANGES else f"more than {MOST_CHANGES}"
    if "replaced" in found:
        return f"or {shown} added or removed"
    sizes = f"{found['size']:,} on x, {found['size_prime']:,} on x'"
    unit = found["unit"] if number == 1 else f"{found['unit']}s"
    return f"{shown} {unit} added or removed ({sizes})"


def _format_plural_count(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"
