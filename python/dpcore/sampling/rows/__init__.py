"""Checks that rows are independent draws, which every certified bound assumes.

Nothing here can show that rows are independent. Each check speaks only where chance is excluded:

- *calls* (`_calls`): one output for all rows of a call, another for all rows of the next; and, on
  a few short calls of their own, columns that vary more between calls than within them.
- *neighbours* (`_neighbours`): rows that stand 1, 2, 3 ... apart in a call, against the mean and
  the variance over all orders of these rows.
- *dispersion* (`_dispersion`): hits of the event from sub-block to sub-block.

The budget: of audits with independent rows fewer than one in a million may be called invalid or
end in an error here.

| check | how often by chance, at most |
|---|---|
| one output for a whole call, all calls | 1e-8 |
| one output for a whole call, short calls: 1e-15 a column | 1e-10 |
| all short calls on a side equal, of commands alone: 1e-11, 2 sides | 2e-11 |
| columns from call to call: 4, p-value 1e-11 | 1e-8 |
| neighbours: 7 (8) standard deviations, 25 pairs expected, 2 sides | 3e-7 |
| dispersion: p-value 1e-9, 25 hits and misses expected, all resolutions, 2 sides | 1e-7 |

The last two are not the normal's tail or the chi-square's but what counts of 25 leave of it: 7
standard deviations above a Poisson mean of 25 are 2e-9 (8: 2e-11), and a nominal 1e-9 of Pearson's
statistic is about 3e-8 in the finest resolution alone.
"""

from __future__ import annotations

from .calls import WAY_TO_DRAW, Calls, Same, same_rows
from .evidence import Evidence, blocks_apart, list_doubts
from .probing import probe_calls

__all__ = [
    "WAY_TO_DRAW",
    "Calls",
    "Evidence",
    "Same",
    "blocks_apart",
    "list_doubts",
    "probe_calls",
    "same_rows",
]
