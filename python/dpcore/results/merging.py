"""Two audits of disjoint trials as one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import invalid
from ..records import Counts
from ..sampling.rows import blocks_apart
from .findings import Finding, Scored

if TYPE_CHECKING:
    from .audits import Audit

_MERGE_EQUAL = (
    "mechanism", "pair", "attack", "event", "direction", "seed", "block", "claim", "delta",
    "confidence", "shape", "floats", "neighbour",
)  # fmt: skip

_TELLING = ("own", "rounding", "seed", "not known")
"""What is known of either audit's randomness is known of both; the worst wins."""


def merge(first: Audit, second: Audit, stop: str = "fixed") -> Audit:
    """The audit of both ranges of trials.

    Args:
        first: an audit.
        second: one of other trials.
        stop: how it was decided to merge, "fixed" or "looked".

    Returns:
        The audit; unless all was fixed in advance its bound is the anytime one.

    Raises:
        ValueError: if the audits differ in more than their trials, or their trials overlap.
    """
    for name in _MERGE_EQUAL:
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine != theirs:
            raise invalid(f"{name} of the second audit", f"{mine!r} as in the first", theirs)
    if first.slices or second.slices:
        raise invalid("audits", "without early stop, to be added", first.stop)
    ranges = _union(first.ranges, second.ranges)
    if first.route == "callable":
        _check_block_ends(first, second)
    stops = {stop, first.stop, second.stop} - {"fixed"}
    # What could be kept of either is kept of the earlier trials, whatever was found.
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    if not stops and first.bound != second.bound:
        requirement = f"{first.bound!r} as in the first"
        raise invalid("bound of the second audit", requirement, second.bound)
    pooled = first.pooled and second.pooled and not stops
    return replace(
        first,
        counts=first.counts + second.counts,
        ranges=ranges,
        # Of a run that Ctrl-C cut short, the end was never reached and shortened no block.
        end=max(first, second, key=lambda audit: audit.ranges[-1]).end,
        nan=first.nan + second.nan,
        nan_prime=first.nan_prime + second.nan_prime,
        pilot=max(first.pilot, second.pilot),
        partial=first.partial or second.partial,
        seconds=first.seconds + second.seconds,
        stop=min(stops) if stops else "fixed",
        bound="anytime" if stops else first.bound,
        pooled=tuple(map(Counts.__add__, first.pooled, second.pooled)) if pooled else (),
        floating_point=_finding(early.floating_point, late.floating_point),
        curve=_curve(early.curve, late.curve),
        randomness=min((first.randomness, second.randomness), key=_TELLING.index),
        checks=tuple(dict.fromkeys(early.checks + late.checks + _apart(early, late))),
    )


def _apart(first: Audit, second: Audit) -> tuple[str, ...]:
    """What two counts of one event say against one law; the compiled core's rows need no look."""
    if first.route != "callable":
        return ()
    one, other = first.counts, second.counts
    sides = [(one.n, one.k), (other.n, other.k)], [(c.n_prime, c.k_prime) for c in (one, other)]
    return blocks_apart(sides)


def _finding(first: Finding | None, second: Finding | None) -> Finding | None:
    if first is None or second is None or first.event != second.event:
        return first or second
    return replace(first, counts=first.counts + second.counts)


def _curve(first: Scored | None, second: Scored | None) -> Scored | None:
    if first is None or second is None:
        return first or second
    # Of pilots of two sizes the thresholds differ even where the event is the same.
    same = np.array_equal(first.thresholds, second.thresholds)
    return first + second if same else first


def _check_block_ends(first: Audit, second: Audit) -> None:
    # A callable's short last block need not be a prefix of the whole one.
    last = max(first.ranges[-1][1], second.ranges[-1][1])
    for stop in (stop for one in (first, second) for _, stop in one.ranges):
        if stop % first.block and stop != last:
            requirement = f"a multiple of block = {first.block} for a Python callable"
            raise invalid("end of a range of trials", requirement, stop)


def _union(
    first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Disjoint ranges in order, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(first + second):
        if joined and start < joined[-1][1]:
            raise invalid("trials of the second audit", f"disjoint from {first}", second)
        if joined and start == joined[-1][1]:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)
