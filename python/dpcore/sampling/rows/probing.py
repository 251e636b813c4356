"""Probe by a few short calls: values that all rows of a call share differ between calls.

An audit may make no more than three calls on a side, and of a mistake in every row nobody should
learn after an hour.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from ...errors import invalid
from ...mechanisms.answers import join_outputs
from ..replay import encode_rows
from .calls import FEWEST, WAY_TO_DRAW, by_chance, first_difference, one_output, same_rows
from .evidence import varying_calls
from .parts import Array, list_sequences

_PROBE_CALLS: Final = 6
_EXTRA_PROBE_CALLS: Final = 18
_EXTRA_PROBE_ROWS: Final = 512
"""Calls on each side; more of them, and longer, where those were equal throughout."""
_TRIALS_PER_PROBE_ROW: Final = 600
"""A first call has one row for so many trials: together they are 1 per cent of an audit."""
_MIN_PROBE_ROWS: Final = 16
"""Rows in a call, at least: with fewer nothing can be told between calls and within them."""
_CONSTANT_CALLS_LEVEL: Final = 1e-15
_CALL_VARIATION_LEVEL: Final = 1e-11
_MAX_RANK_KURTOSIS: Final = 3.0
"""Fourth moment of ranks beyond which so few rows do not follow the chi-square's tail."""

Draw = Callable[[int, int, int], Array]
"""(side, number of the call, rows) -> outputs."""


def probe_calls(
    draw: Draw,
    name: str,
    trials: int,
    block: int,
    way_to_draw: str = WAY_TO_DRAW,
    seeded_by: str | None = None,
) -> tuple[str, ...]:
    """Make a few short calls on both sides and compare them.

    Args:
        draw: makes one call.
        name: what complaints call the mechanism.
        trials: of the audit.
        block: rows that a call of the audit has; these have no more.
        way_to_draw: see `Calls`.
        seeded_by: where randomness should come from, of a mechanism whose calls may all be the
            same; None leaves that to the blocks of the audit.

    Returns:
        What speaks against independence, one sentence for each contradiction.

    Raises:
        ValueError: if a call has one value in all its rows, and another call another; with
            `seeded_by`, if all calls on a side have the same rows, which vary.
    """
    if block < 2:
        return ()
    longest = min(FEWEST, block)
    rows = min(longest, max(_MIN_PROBE_ROWS, trials // _TRIALS_PER_PROBE_ROW))
    first = [[draw(side, number, rows) for number in range(_PROBE_CALLS)] for side in (0, 1)]
    for side, outputs in enumerate(first):
        if seeded_by is not None and _same_by_chance(outputs) < _CALL_VARIATION_LEVEL:
            found = (
                f"the same varying outputs in {_PROBE_CALLS} calls on {'x_prime' if side else 'x'}"
            )
            raise invalid(f"outputs of {name}", f"drawn anew in every call from {seeded_by}", found)
        if _refuse_equal_calls(outputs, name, way_to_draw):
            more = max(_EXTRA_PROBE_CALLS, _EXTRA_PROBE_ROWS // longest)
            calls = [draw(side, _PROBE_CALLS + number, longest) for number in range(more)]
            _refuse_equal_calls(calls, name, way_to_draw)
    chance = _between_calls_p_value(first) if rows >= _MIN_PROBE_ROWS else 1.0
    return (varying_calls(chance),) if chance < _CALL_VARIATION_LEVEL else ()


def _refuse_equal_calls(outputs: list[Array], name: str, way_to_draw: str) -> bool:
    """Refuse calls that are constant but not equal; return True if all are constant."""
    calls = [call for call in map(same_rows, outputs) if call is not None]
    shapes = {tuple(map(len, call.columns)) for call in calls}
    if len(calls) < len(outputs) or len(shapes) > 1:
        return False
    column = first_difference(calls)
    if column is not None and by_chance(calls, column) < _CONSTANT_CALLS_LEVEL:
        raise one_output(name, calls[0], column, way_to_draw)
    return True


def _same_by_chance(calls: list[Array]) -> float:
    """Return the probability that a random order of all rows makes all calls equal.

    It is 1 where they differ. Of `G` calls of `n` rows, in which value `j` occurs
    `m_j` times a call, it is
    `(n! / prod m_j!) / ((G n)! / prod (G m_j)!)`.
    """
    rows = [encode_rows(call) for call in calls]
    first = rows[0]
    if first is None or not all(one is not None and np.array_equal(one, first) for one in rows):
        return 1.0
    counts = np.unique(first, axis=0, return_counts=True)[1].tolist()
    orders = [
        math.lgamma(of * len(first) + 1) - sum(math.lgamma(of * count + 1) for count in counts)
        for of in (1, len(calls))
    ]
    return math.exp(orders[0] - orders[1])


def _between_calls_p_value(sides: list[list[Array]]) -> float:
    """Compute the smallest Kruskal-Wallis p-value over a few columns, with calls as groups.

    The statistics of both sides are added: with so few rows neither says much by itself.
    """
    from scipy.special import chdtrc

    found: dict[int, tuple[float, int]] = {}
    for outputs in sides:
        groups = len(outputs)
        for column, ranks in enumerate(list_sequences(join_outputs(outputs))[0]):
            rows, centred = len(ranks), ranks - ranks.mean()
            squares = centred * centred
            second, fourth = float(squares.sum()), float((squares * squares).sum())
            # A constant has a variance by rounding alone.
            if second > 1e-9 and rows * fourth <= _MAX_RANK_KURTOSIS * second**2:
                sums = centred.reshape(groups, -1).sum(axis=1)
                own = (rows - 1) * float((sums**2).sum()) / (rows / groups) / second
                statistic, freedom = found.get(column, (0.0, 0))
                found[column] = statistic + own, freedom + groups - 1
    return min((float(chdtrc(free, own)) for own, free in found.values()), default=1.0)
