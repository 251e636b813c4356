"""Does the size of a group depend on its values? Then rows and groups have two laws.

An estimate averages over rows: its law draws a group with a probability in proportion to its size.
A certificate counts one random row of each group: its law draws every group alike. The two are one
law if and only if sizes are uncorrelated with every event of a group's random row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..points.points import Points, one_of_each
from ..points.replicates import Labels
from ..raw import Reals
from .checks import pairwise_distances, permutation_p

LEVEL: Final = 0.01
"""Chance, at most, of a word about two laws where sizes do not depend on values."""

_SIZE_PERMUTATIONS: Final = 999
_MAX_TESTED_GROUPS: Final = 1000
_MIN_TESTED_GROUPS: Final = 8


def size_p_value(points: Points, rng: np.random.Generator) -> float | None:
    """Test that group sizes do not depend on values, for both sets together; return the p-value.

    The energy distance between the law of rows and that of one random row of each group, whose
    sizes are permuted: exact if sizes and rows are independent. The smaller p-value counts, twice
    if both sets have groups of several sizes.

    Args:
        points: both sets.
        rng: the row of each group, groups where there are more than 1000, and permutations.

    Returns:
        The p-value, or None where no set has enough groups, of more than one size.
    """
    found = []
    for side in (0, 1):
        groups = points.groups[side]
        if groups is None:
            continue
        sizes = np.bincount(groups)
        if len(sizes) >= _MIN_TESTED_GROUPS and sizes.min() < sizes.max():
            found.append(_one_set_p_value(points, side, groups, sizes, rng))
    return min(1.0, len(found) * min(found)) if found else None


def two_laws(p: float | None) -> tuple[str, ...]:
    """Return a note for the reader if sizes depend on values."""
    if p is None or p > LEVEL:
        return ()
    return (
        f"the sizes of groups depend on their values (energy test, p = {p:.3g}): the estimates and "
        "the two tests speak of the law of rows, where a large group weighs more, and all that is "
        "certified of the law of one random row of each group, where it does not; neither bounds "
        "the other",
    )


def _one_set_p_value(
    points: Points, side: int, groups: Labels, sizes: Labels, rng: np.random.Generator
) -> float:
    single = one_of_each(groups, rng)
    if len(single) > _MAX_TESTED_GROUPS:
        kept = rng.choice(len(single), _MAX_TESTED_GROUPS, replace=False)
        single, sizes = single[kept], sizes[kept]
    between = pairwise_distances(points.coordinates(points.ids[side][single]).astype(np.float64))
    # How much more a group weighs by its rows than as a group.
    surplus: Reals = sizes / sizes.sum() - 1.0 / len(sizes)
    drawn = np.stack(
        [surplus, *(rng.permutation(surplus) for _ in range(_SIZE_PERMUTATIONS))], axis=1
    )
    values = -np.einsum("ij,ij->j", drawn, between @ drawn)
    scale = max(float(between.max()) * float(np.abs(surplus).sum()) ** 2, 1e-300)
    return permutation_p(values / scale)
