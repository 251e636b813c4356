"""Whether outputs are so few that a table of them says all there is to say."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_ROWS: Final = 2**13
_OFTEN: Final = 8


def familiar(rows: npt.NDArray[Any], rows_prime: npt.NDArray[Any]) -> bool:
    """Whether whole rows come again and again, so that scores of patterns see them one by one.

    No product, sum or residue of the entries tells more than the pattern itself, and a score for
    it would only cost time.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        True if the first rows of both sides hold a row 8 times on average, or more.
    """
    some = np.concatenate([rows[:_ROWS], rows_prime[:_ROWS]])
    few = some[:: max(1, len(some) // 64)]
    if len(few) > 8 and _distinct(few) == len(few):
        # Nothing comes again among 64 rows: there is no need to sort them all.
        return False
    return _distinct(some) * _OFTEN <= len(some)


def _distinct(rows: npt.NDArray[Any]) -> int:
    """Different rows, by their bytes: -0.0 is not 0.0, which makes them no fewer than they are."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return int(np.unique(whole).size)
