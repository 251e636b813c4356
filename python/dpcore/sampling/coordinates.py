"""Checks that the coordinates of outputs are independent and have one law.

Draws can only disprove independence: after the checks it remains an assumption of the user.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LEVEL: Final = 1e-6
"""Probability that a pilot with independent coordinates is refused, all tests together."""
_MAX_TESTED_NUMBERS: Final = 2**19
_MAX_TESTED_COLUMNS: Final = 512
_MIN_TESTED_ROWS: Final = 20
_MAX_GRID_POINTS: Final = 256
_MIN_JOINT_MOVES: Final = 200.0
"""Rows in which two independent coordinates should both leave their most frequent value: with
fewer, a chance meeting of rare values looks like a correlation."""


def refuse_dependent(sides: Sequence[tuple[str, Array]], groups: Sequence[tuple[int, ...]]) -> None:
    """Refuse a pilot whose coordinates are visibly dependent, or unlike within a group.

    On each side: rank correlations of all pairs of coordinates, of the values and of their
    distances from the median; the sum of these correlations and of their squares, which see a
    dependence spread thinly over all pairs; and each coordinate's distribution against the rest
    of its group. The level 1e-6 is divided among all of them.

    Args:
        sides: name of the side and its outputs, shape `(size, dim)`.
        groups: coordinates that should have one law.

    Raises:
        ValueError: naming the coordinates and the statistic.

    Source:
        Spearman (1904) for rank correlations, whose variance under independence is 1/(size - 1)
        with any ties; Massart (1990) for the constant of the distance of distributions.
    """
    level = LEVEL / len(sides)
    for side, outputs in sides:
        values = _make_finite(
            outputs[: max(_MIN_TESTED_ROWS, _MAX_TESTED_NUMBERS // max(1, outputs.shape[1]))]
        )
        if len(values) < _MIN_TESTED_ROWS:
            continue
        for group in groups:
            _refuse_unlike(side, values, group, level / (4 * len(groups)))
        _refuse_correlated(side, "values", values, level / 4)
        middle = np.median(values, axis=0)
        _refuse_correlated(side, "distances from the median", abs(values - middle), level / 4)


def _make_finite(outputs: Array) -> Floats:
    """Return the outputs as doubles; infinities and NaN become values beyond all others."""
    values = outputs.astype(np.float64)
    known = np.isfinite(values)
    if known.all():
        return values
    # Halved, so that nothing overflows; only ranks matter from here on.
    values /= 2.0
    edge = float(np.abs(values[known]).max(initial=1.0))
    beyond = min(1.5 * edge + 1.0, np.finfo(np.float64).max)
    return np.nan_to_num(values, nan=beyond, posinf=0.9 * beyond, neginf=-0.9 * beyond)


def _middle_ranks(values: Floats) -> Floats:
    """Compute middle ranks of every column, centred, of length 1; 0 if it hardly varies."""
    size = len(values)
    ranks = np.empty_like(values)
    for column in range(values.shape[1]):
        _, where, times = np.unique(values[:, column], return_inverse=True, return_counts=True)
        if size * (1.0 - times.max() / size) ** 2 < _MIN_JOINT_MOVES:
            times = times * 0
        ranks[:, column] = (np.cumsum(times) - times / 2.0)[where] - times.sum() / 2.0
    length = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(length > 0.0, length, 1.0)


def _refuse_correlated(side: str, what: str, values: Floats, level: float) -> None:
    from scipy.special import chdtrc, ndtri

    dim = values.shape[1]
    columns = np.arange(dim)
    if dim > _MAX_TESTED_COLUMNS:
        columns = np.sort(np.random.default_rng(dim).permutation(dim)[:_MAX_TESTED_COLUMNS])
    ranks = _middle_ranks(values[:, columns])
    moves = (ranks != 0.0).any(axis=0)
    ranks, columns = ranks[:, moves], columns[moves]
    first, second = np.triu_indices(columns.size, 1)
    if first.size == 0:
        return
    found = (ranks.T @ ranks)[first, second]
    scores = found * math.sqrt(len(values) - 1)
    worst = int(np.argmax(abs(scores)))
    squares = float((scores**2).sum())
    named = f"{columns[0]} to {columns[-1]}"
    if abs(scores[worst]) > -ndtri(level / 6.0 / first.size):
        named = f"{columns[first[worst]]} and {columns[second[worst]]}"
        statistic = f"rank correlation {found[worst]:.3g}"
    elif abs(float(scores.sum()) / math.sqrt(first.size)) > -ndtri(level / 6.0):
        statistic = f"mean rank correlation {float(found.mean()):.3g}"
    elif chdtrc(first.size, squares) < level / 3.0:
        size = math.sqrt(squares / first.size / (len(values) - 1))
        statistic = f"rank correlations of size {size:.3g}"
    else:
        return
    raise _pilot_refused(f"{statistic} between {what} of coordinates {named}", side)


def _refuse_unlike(side: str, values: Floats, group: tuple[int, ...], level: float) -> None:
    """Compare each coordinate's distribution with that of the rest of its group."""
    if len(group) < 2:
        return
    part = values[:, list(group)]
    size, many = part.shape
    grid = np.unique(np.quantile(part, np.linspace(0.0, 1.0, _MAX_GRID_POINTS), method="nearest"))
    shares = np.stack([np.searchsorted(np.sort(column), grid, "right") for column in part.T]) / size
    # Against the pool, which holds the coordinate itself; the rest is m/(m - 1) as far away.
    gaps = abs(shares - shares.mean(axis=0)).max(axis=1) * many / (many - 1)
    worst = int(np.argmax(gaps))
    samples = size * (many - 1) / many
    if gaps[worst] > math.sqrt(math.log(2.0 * many / level) / (2.0 * samples)):
        name = f"coordinate {group[worst]} and the {many - 1} others with the same inputs"
        raise _pilot_refused(
            f"distance {gaps[worst]:.3g} between the distributions of {name}", side
        )


def _pilot_refused(found: str, side: str) -> ValueError:
    requirement = "independent from coordinate to coordinate, with one law where inputs are equal"
    return ValueError(f"outputs must be {requirement}, got {found} on {side}")
