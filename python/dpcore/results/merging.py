"""Merge of two audits of disjoint trials into one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ..errors import instance, invalid, mistyped
from ..records import Counts
from ..sampling.rows import blocks_apart
from .audits import Audit
from .fields import merge_together, merging_of, require_equal


def add_audits(first: Audit, second: object) -> Audit:
    """Merge two audits of different trials, the sizes being fixed in advance."""
    if not isinstance(second, Audit):
        return NotImplemented  # type: ignore[no-any-return]
    return _merge_fields(first, second, "fixed")


def merge_audits(first: Audit, second: Audit, looked: bool) -> Audit:
    """Merge two audits of different trials.

    Args:
        first: an audit.
        second: one of other trials.
        looked: whether it was decided to merge after looking.

    Returns:
        The audit; unless all was fixed in advance its bound is the anytime one.

    Raises:
        TypeError: if `second` is not an audit.
        ValueError: if the audits differ in more than their trials, or their trials overlap.
    """
    if not isinstance(second, Audit):
        raise mistyped("other", "an Audit", second)
    return _merge_fields(first, second, "looked" if instance("looked", looked, bool) else "fixed")


def _merge_fields(first: Audit, second: Audit, stop: str) -> Audit:
    rules = {field.name: merging_of(field) for field in fields(first)}
    for name in (name for name, rule in rules.items() if rule is require_equal):
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine != theirs:
            raise invalid(f"{name} of the second audit", f"{mine!r} as in the first", theirs)
    values = _merge_dependent_fields(first, second, stop)
    # What could be kept of either is kept of the earlier trials, whatever was found.
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    for name, rule in rules.items():
        if rule not in (require_equal, merge_together):
            values[name] = rule(getattr(early, name), getattr(late, name))
    return replace(first, **values)


def _merge_dependent_fields(first: Audit, second: Audit, stop: str) -> dict[str, Any]:
    """Compute the fields that follow from several fields of both audits."""
    if first.slices or second.slices:
        raise invalid("audits", "without early stop, to be added", first.stop)
    ranges = _unite_ranges(first.ranges, second.ranges)
    if first.route == "callable":
        _check_block_ends(first, second)
    stops = {stop, first.stop, second.stop} - {"fixed"}
    if not stops and first.bound != second.bound:
        requirement = f"{first.bound!r} as in the first"
        raise invalid("bound of the second audit", requirement, second.bound)
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    pooled = first.pooled and second.pooled and not stops
    return {
        "ranges": ranges,
        # Of a run that Ctrl-C cut short, the end was never reached and shortened no block.
        "end": max(first, second, key=lambda audit: audit.ranges[-1]).end,
        "stop": min(stops) if stops else "fixed",
        "bound": "anytime" if stops else first.bound,
        "pooled": tuple(map(Counts.__add__, first.pooled, second.pooled)) if pooled else (),
        "slices": (),
        "checks": tuple(
            dict.fromkeys(early.checks + late.checks + _describe_difference(early, late))
        ),
        "notes": tuple(dict.fromkeys(early.notes + late.notes)),
    }


def _describe_difference(first: Audit, second: Audit) -> tuple[str, ...]:
    """Describe evidence that the counts of one event in two audits follow different laws.

    Rows of the compiled core need no check.
    """
    if first.route != "callable":
        return ()
    one, other = first.counts, second.counts
    sides = [(one.n, one.k), (other.n, other.k)], [(c.n_prime, c.k_prime) for c in (one, other)]
    return blocks_apart(sides)


def _check_block_ends(first: Audit, second: Audit) -> None:
    # A callable's short last block need not be a prefix of the whole one.
    last = max(first.ranges[-1][1], second.ranges[-1][1])
    for stop in (stop for one in (first, second) for _, stop in one.ranges):
        if stop % first.block and stop != last:
            requirement = f"a multiple of block = {first.block} for a Python callable"
            raise invalid("end of a range of trials", requirement, stop)


def _unite_ranges(
    first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Join adjacent ranges; return disjoint ranges in order."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(first + second):
        if joined and start < joined[-1][1]:
            raise invalid("trials of the second audit", f"disjoint from {first}", second)
        if joined and start == joined[-1][1]:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)
