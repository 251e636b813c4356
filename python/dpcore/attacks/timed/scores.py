"""Scores of output and latency together, fitted on timed calls.

Where the time of a loop depends on the noise, its law may be one and the same on both sides: only
the latency *of this output* tells them apart, for output less noise is the input. So beside the
latency stand its excesses over what is usual, on x and on x', for such an output; the attacks
that make scores of rows of numbers do the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...records import Pair
from ..additive import Additive
from ..scores.columns import Floats
from ..scores.outcomes import keys_of
from ..threshold import Threshold, point
from .columns import (
    ExcessLatency,
    Latency,
    OutcomeCode,
    OutputDistance,
    OutputEntry,
    OutputGroup,
    Rows,
    TimedScore,
    table_of,
)

Sides = npt.NDArray[np.bool_]

_MEMBERS: Final = (Threshold("coordinate"), Additive())
"""The attacks that make scores of the columns."""
_FINE: Final = (Additive(128), 3200)
"""For a comb of latencies, and the calls from which it has more bins than the usual one."""
_NOBODY: Final = Pair("x", "x_prime")
"""The columns are no entries of the inputs."""
_USUAL: Final = (0.02, 0.5)
"""Quantiles that stand for the usual latency: a call is never faster than its work, and the
fastest calls scatter least; where they are odd, the median is not."""
_PLACES: Final = 64
"""Places at most at which a usual latency is taken."""
_KEPT: Final = 2
"""Entries whose latencies tell the sides apart best; at most `_LOOKED_AT` are looked at."""
_LOOKED_AT: Final = 256
_GROUPS: Final = 16
_MOST_OUTCOMES: Final = 64
_BEYOND: Final = 10.0
"""A straight line reaches so many times beyond the pilot's values."""


def timed_scores(rows: Rows, sides: Sides, pair: Pair) -> list[TimedScore]:
    """Scores to try.

    Args:
        rows: timed calls, see `rows_of`.
        sides: True where a call was on x, shape `(calls,)`.
        pair: the two inputs.

    Returns:
        Scores, all of them fitted on these rows; none where a side is missing, or outputs cannot
        be compared.
    """
    if sides.all() or not sides.any():
        return []
    return [
        TimedScore(columns, score)
        for columns in _tables(rows, sides, pair)
        for score in _scores(table_of(columns, rows), sides)
    ]


def _scores(table: Floats, sides: Sides) -> list[Any]:
    found: dict[Any, None] = {}
    members = (*_MEMBERS, _FINE[0]) if len(table) > _FINE[1] else _MEMBERS
    for member in members:
        found |= dict.fromkeys(member.candidates(table[sides], table[~sides], _NOBODY))
    return list(found)


def _tables(rows: Rows, sides: Sides, pair: Pair) -> Iterator[tuple[Any, ...]]:
    """The columns from which scores are made, one table after the other."""
    entries = _entries(rows)
    if not entries:
        return
    if not any(np.ptp(entry(rows)) for entry in entries):
        # The output never changes, and the latency is all there is.
        return
    yield (*entries, Latency())
    latencies = Latency()(rows)
    telling = _telling(entries, rows, sides, latencies)
    first = telling[0](rows)
    if np.unique(first).size > _GROUPS:
        edges = np.unique(np.nanquantile(first, np.arange(1, _GROUPS) / _GROUPS))
        yield OutputGroup(telling[0], edges), Latency()
    for share in _USUAL:
        for excesses in _excesses(rows, sides, pair, telling, share):
            yield telling[0], Latency(), *excesses


def _entries(rows: Rows) -> tuple[Any, ...]:
    """The output's columns."""
    if rows.dtype != object:
        return tuple(OutputEntry(i) for i in range(rows.shape[1] - 1))
    try:
        tally = Counter(keys_of(rows[:, 0]))
    except TypeError:
        return ()
    return (OutcomeCode(tuple(key for key, _ in tally.most_common(_MOST_OUTCOMES))),)


def _telling(
    entries: tuple[Any, ...], rows: Rows, sides: Sides, latencies: Floats
) -> tuple[Any, ...]:
    """The entries at whose values the usual latencies of the two sides differ most."""
    if len(entries) == 1:
        return entries

    def apart(entry: Any) -> float:
        values = entry(rows)
        edges = np.unique(np.nanquantile(values, np.arange(1, 8) / 8))
        groups = np.searchsorted(edges, values)
        found = 0.0
        for number in range(edges.size + 1):
            here = groups == number
            usual = [latencies[here & own] for own in (sides, ~sides)]
            if usual[0].size and usual[1].size:
                found += abs(float(np.median(usual[0]) - np.median(usual[1])))
        return found

    return tuple(sorted(entries[:_LOOKED_AT], key=apart, reverse=True)[:_KEPT])


def _excesses(
    rows: Rows, sides: Sides, pair: Pair, telling: tuple[Any, ...], share: float
) -> Iterator[tuple[ExcessLatency, ExcessLatency]]:
    """Pairs of excesses over the usual latency on x and on x'."""
    latencies = Latency()(rows)
    for entry in telling:
        values = entry(rows)
        curves = [_curve(values[own], latencies[own], share) for own in (sides, ~sides)]
        yield ExcessLatency("x", entry, *curves[0]), ExcessLatency("x'", entry, *curves[1])
    ends = _ends(rows, pair)
    if ends is None:
        return
    # The time that noise takes does not depend on the input: one curve, of all calls.
    own_distance = np.where(sides, ends[0](rows), ends[1](rows))
    curve = _curve(own_distance, latencies, share)
    for places, usual in (curve, _line(*curve)):
        yield (
            ExcessLatency("x", ends[0], places, usual),
            ExcessLatency("x'", ends[1], places, usual),
        )


def _ends(rows: Rows, pair: Pair) -> tuple[OutputDistance, OutputDistance] | None:
    """Distances from the two inputs, where these are as large as an output."""
    if rows.dtype == object:
        return None
    shape = (rows.shape[1] - 1,)
    inputs = pair.x, pair.x_prime
    flat = (side.ravel() if isinstance(side, np.ndarray) else side for side in inputs)
    x, x_prime = (point(side, shape) for side in flat)
    if x is None or x_prime is None or np.array_equal(x, x_prime):
        return None
    return OutputDistance("x", x), OutputDistance("x'", x_prime)


def _curve(values: Floats, latencies: Floats, share: float) -> tuple[Floats, Floats]:
    """A quantile of the latency at each of some places, in increasing order of these."""
    known = np.isfinite(values)
    order = np.argsort(values[known], kind="stable")
    values, latencies = values[known][order], latencies[known][order]
    if values.size == 0:
        return np.zeros(1), np.zeros(1)
    distinct, first = np.unique(values, return_index=True)
    if distinct.size > _PLACES:
        # Equal values stay together.
        wanted = values[np.arange(_PLACES) * values.size // _PLACES]
        first = np.unique(np.searchsorted(values, wanted))
    parts = list(zip(first, [*first[1:], values.size], strict=True))
    places = np.array([values[a:b].mean() for a, b in parts])
    return places, np.array([np.quantile(latencies[a:b], share) for a, b in parts])


def _line(places: Floats, usual: Floats) -> tuple[Floats, Floats]:
    """The straight line with the least sum of distances from a curve's points."""
    weights = np.ones(places.size)
    design = np.column_stack([np.ones(places.size), places])
    least = 1e-9 * max(1.0, float(np.abs(usual).max()))
    line = np.zeros(2)
    # Iterated least squares: each point weighs the inverse of how far off it was.
    for _ in range(30):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, None], usual * root, rcond=None)[0]
        weights = 1.0 / np.maximum(np.abs(usual - design @ line), least)
    ends = np.array([-_BEYOND, _BEYOND]) * max(1.0, float(np.abs(places).max()))
    return ends, line[0] + line[1] * ends
