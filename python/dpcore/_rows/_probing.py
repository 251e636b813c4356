"""A few short calls before anything else: what all rows of a call share shows between calls.

An audit may make no more than three calls on a side, and of a mistake in every row nobody should
learn after an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ._calls import FEWEST, Same, by_chance, first_difference, one_output, same_rows
from ._evidence import varying_calls
from ._parts import Array, sequences

_CALLS: Final = 12
_MORE: Final = 36
"""Calls on each side; more of them, and longer, where those were equal throughout."""
_SHARE: Final = 600
"""A first call has one row for so many trials: together they are 2 per cent of an audit."""
_CHANCE: Final = 1e-15
_COMPARED: Final = 8
"""Rows in a call from which columns are compared between calls."""
_VARIATION: Final = 1e-13
_PEAKED: Final = 3.0
"""Fourth moment of ranks beyond which so few rows do not follow the chi-square's tail."""

Draw = Callable[[int, int, int], Array]
"""(side, number of the call, rows) -> outputs."""


def probe(draw: Draw, name: str, trials: int, block: int) -> tuple[str, ...]:
    """Make a few short calls on both sides and compare them.

    Args:
        draw: makes one call.
        name: what complaints call the mechanism.
        trials: of the audit.
        block: rows that a call of the audit has; these have no more.

    Returns:
        What speaks against independence, one sentence for each contradiction.

    Raises:
        ValueError: if a call has one value in all its rows, and another call another.
    """
    longest = min(FEWEST, block)
    rows = max(2, min(longest, trials // _SHARE))
    found = []
    for side in (0, 1) if block > 1 else ():
        outputs = [draw(side, number, rows) for number in range(_CALLS)]
        same = list(map(same_rows, outputs))
        if all(call is not None for call in same):
            _refuse([call for call in same if call is not None], name)
            more = [same_rows(draw(side, _CALLS + number, longest)) for number in range(_MORE)]
            if all(call is not None for call in more):
                _refuse([call for call in more if call is not None], name)
        chance = _between(outputs) if rows >= _COMPARED else 1.0
        if chance < _VARIATION:
            found.append(varying_calls("x'" if side else "x", chance))
    return tuple(found)


def _refuse(calls: list[Same], name: str) -> None:
    """Complain of calls that are equal throughout but not to each other."""
    if len({tuple(map(len, call.columns)) for call in calls}) > 1:
        return
    column = first_difference(calls)
    if column is not None and by_chance(calls, column) < _CHANCE:
        raise one_output(name, calls[0], column)


def _between(outputs: list[Array]) -> float:
    """The least p-value of Kruskal and Wallis over a few columns, the calls as groups."""
    from scipy.special import chdtrc

    whole = np.concatenate(outputs)
    rows, groups = len(whole), len(outputs)
    least = 1.0
    for ranks in sequences(whole)[0]:
        centred = ranks - ranks.mean()
        second = float((centred**2).sum())
        if second <= 1e-9 * rows or rows * float((centred**4).sum()) > _PEAKED * second**2:
            continue
        sums = centred.reshape(groups, -1).sum(axis=1)
        statistic = (rows - 1) * float((sums**2).sum()) / (rows / groups) / second
        least = min(least, float(chdtrc(groups - 1, statistic)))
    return least
