"""Ready-made pairs: zeros against ones, and the patterns that auditors usually try."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice
from ..hints import hinted
from ..records import Pair
from .norms import dimension

__all__ = ["WHICH", "Floats", "Which", "patterns", "zeros_ones"]

Floats = npt.NDArray[np.float64]

Which = Literal["one", "all"]
WHICH: Final[tuple[Which, ...]] = get_args(Which)
"""Entries that `patterns` changes: one, or all of them."""


@hinted
def zeros_ones(dim: int) -> Pair:
    """Make the pair of the reconstruction attack: all zeros against all ones.

    Args:
        dim: number of entries, at least 1.

    Returns:
        `Pair(zeros(dim), ones(dim))` in float64: L1 distance dim, L2 sqrt(dim), Linf 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is below 1.

    Source:
        Habernal (2022), section 4: D = (0, ..., 0) and D' = (1, ..., 1).

    Example:
        >>> zeros_ones(2)
        Pair(x=array([0., 0.]), x_prime=array([1., 1.]))
    """
    dim = dimension(dim)
    return Pair(np.zeros(dim), np.ones(dim))


@hinted
def patterns(dim: int, which: Which) -> tuple[Pair, ...]:
    """List the pairs of query answers that the literature tries, each in one order only.

    From (1, ..., 1): the first entry one up or one down (`which="one"`, at L1 distance 1); and
    for `which="all"`, at Linf distance 1, also the first entry up and the others down, the first
    down and the others up, one half up and the other down, all up, all down, and the halves
    (1, ..., 0, ...) against (0, ..., 1, ...). An audit chooses which input goes into the
    numerator, so a pair is not listed twice for its two orders; in few dimensions several
    patterns are one pair, which is listed once.

    Of two pairs at one L1 distance an attack sees most on the one that differs in a single entry:
    in the example noise a tenth too small (its loss is 1.11 on both) is refuted there, and hardly
    seen where the distance is spread over 128 entries.

    Args:
        dim: number of entries, at least 1.
        which: "one" if neighbours differ in one entry, "all" if every entry may differ. There
            is no default: at a claim about one entry, all of them refute what is private.

    Returns:
        Pairs of float64 vectors: 2 for "one", at most 8 for "all".

    Raises:
        TypeError: if `dim` is not an integer or `which` not a string.
        ValueError: if `dim` is below 1 or `which` neither of the two.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), the categories of their input selector; Bichsel,
        Steffen, Bogunovic and Vechev (2021) try the same set.

    Example:
        >>> [pair.x_prime.tolist() for pair in patterns(3, "one")]
        [[0.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
        >>> [len(patterns(dim, "all")) for dim in (1, 2, 5)]
        [2, 7, 8]
        >>> import dpcore
        >>> spread = Pair(np.zeros(128), np.full(128, 1 / 128))
        >>> for pair in (patterns(128, "one"), spread):
        ...     report = dpcore.audit(dpcore.Laplace(0.9), pair, claim=1.0, trials=10**5, rng=7)
        ...     print(f"{report.epsilon_lower:.2f} {report.verdict}")
        1.08 refuted
        0.07 not refuted by this attack
    """
    dim = dimension(dim)
    choice("which", which, WHICH)
    first, front = np.arange(dim) == 0, np.arange(dim) < dim // 2
    ones, zeros = np.ones(dim), np.zeros(dim)
    found: list[tuple[Floats, Floats]] = [(ones, ones - first), (ones, ones + first)]
    if which == "all":
        found += [
            (ones, zeros + 2.0 * first),
            (ones, zeros + 2.0 * ~first),
            (ones, zeros + 2.0 * front),
            (ones, ones + ones),
            (ones, zeros),
            (zeros + front, zeros + ~front),
        ]
    distinct: dict[frozenset[bytes], Pair] = {}
    for x, x_prime in found:
        distinct.setdefault(frozenset((x.tobytes(), x_prime.tobytes())), Pair(x, x_prime))
    return tuple(distinct.values())
