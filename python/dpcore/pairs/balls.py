"""Neighbours at a bounded distance: L1, L2 and Linf balls around a vector."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..errors import mistyped, real
from ..hints import hinted
from ..records import Pair, Record
from .domains import SLACK, Bounded, Domain
from .norms import Norm, distance
from .usual import patterns

__all__ = ["L1", "L2", "Floats", "Linf"]

Floats = npt.NDArray[np.float64]

_ENTRY_GAPS: Final = (1 / 3, 1 / 12, 1.0)
"""Gaps between entries as shares of the domain's width.

A query that is far from the others decides alone: its tail then shows the whole of its change.
"""

_MAX_SHIFT_HALVINGS: Final = 7
"""A move shifts entries by the domain's width times 2^-1 to 2^-7."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _NormBall(Record):
    """Vectors at distance at most `radius` in the class's norm."""

    radius: float = 1.0

    norm: ClassVar[Norm]

    def __post_init__(self) -> None:
        """Check the radius."""
        radius = real("radius", self.radius, low=0.0, open_low=True)
        object.__setattr__(self, "radius", radius)

    @property
    def limit(self) -> str:
        """Condition of the relation on a pair, in words."""
        return f"at {self.norm.capitalize()} distance at most {self.radius!r}"

    @property
    def most(self) -> float:
        """The radius, as the largest value of `apart`."""
        return self.radius

    def apart(self, pair: Pair) -> float:
        """Compute the distance of the two inputs in the class's norm, in the units of the inputs.

        Raises:
            TypeError: if they are not arrays of real numbers.
            ValueError: if their shapes differ.
        """
        return distance(pair, self.norm)

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if both inputs lie in the domain and differ by at most `radius`."""
        if not (domain.contains(pair.x) and domain.contains(pair.x_prime)):
            return False
        return 0.0 < distance(pair, self.norm) <= self.radius * (1.0 + SLACK)

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the usual patterns, then changes of mixed signs on level and gapped vectors.

        Args:
            domain: where inputs lie; needs `low`, `high` and `clip`.
            rng: draws more pairs after these, without end.

        Returns:
            An iterator of pairs.

        Raises:
            TypeError: if the domain has no bounds.
        """
        space = _require_bounded(domain)
        for pair in patterns(space.dim, "one" if self.norm == "l1" else "all"):
            # Clipping also gives them the entries of the domain: integers, say.
            yield Pair(space.clip(pair.x), space.clip(pair.x_prime))
        for start, signs in _iterate_combinations(_list_bases(space), _list_directions(space.dim)):
            yield self._pair(start, signs, space)
        while True:
            base = np.asarray(space.draw(rng), dtype=np.float64)
            yield self._pair(base, rng.choice([-1.0, 0.0, 1.0], space.dim), space)

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Shift, align or turn over some entries: one, those level with it, or all the others.

        Args:
            pair: where the move starts.
            domain: where inputs lie; needs `low`, `high` and `clip`.
            rng: chooses the move.

        Returns:
            The new pair.

        Raises:
            TypeError: if the domain has no bounds.
        """
        space = _require_bounded(domain)
        base = np.array(pair.x, dtype=np.float64)
        change = np.asarray(pair.x_prime, dtype=np.float64) - base
        chosen = _choose_group(base, change, rng)
        step = (space.high - space.low) * 0.5 ** rng.integers(1, _MAX_SHIFT_HALVINGS, endpoint=True)
        match rng.integers(5):
            case 0:
                base = base + chosen * step
            case 1:
                base = base - chosen * step
            case 2:
                base[chosen] = base[rng.integers(base.size)]
            case 3:
                change[chosen] = -change[chosen]
            case _:
                change[chosen] = rng.choice([-1.0, 0.0, 1.0]) * np.abs(change).max()
        return self._pair(base, change, space)

    def _pair(self, base: Floats, change: Floats, space: Bounded) -> Pair:
        """Make the pair of base and base + change, inside the domain.

        The change is scaled to the radius.
        """
        apart = distance(Pair(np.zeros(change.size), change), self.norm)
        change = change * (self.radius / apart) if apart > 0.0 else change
        room = space.low + np.maximum(-change, 0.0), space.high - np.maximum(change, 0.0)
        x = space.clip(np.clip(base, *room))
        pair = Pair(x, space.clip(x + change))
        if distance(pair, self.norm) > self.radius * (1.0 + SLACK):
            # Rounding to integers went too far: rounding towards zero cannot.
            return Pair(x, space.clip(x + np.trunc(change)))
        return pair


@hinted
class L1(_NormBall, word="L1"):
    """Neighbours at distance at most `radius` in the sum of absolute differences.

    Args:
        radius: in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if it is not finite or not above 0.

    Source:
        Dwork and Roth (2014), definitions 2.4 and 3.1.

    Example:
        >>> from dpcore.pairs import Box
        >>> L1(1.0).holds(Pair([0, 0], [0.5, 0.5]), Box(0, 1, 2))
        True
        >>> L1(1.0).holds(Pair([0, 0], [1, 1]), Box(0, 1, 2))
        False
    """

    __slots__ = ()
    norm = "l1"


@hinted
class L2(_NormBall, word="L2"):
    """Neighbours at Euclidean distance at most `radius`.

    Args:
        radius: in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if it is not finite or not above 0.

    Source:
        Dwork and Roth (2014), definition 3.8.

    Example:
        >>> from dpcore.pairs import Box
        >>> L2(5.0).holds(Pair([0, 0], [3, 4]), Box(0, 9, 2))
        True
    """

    __slots__ = ()
    norm = "l2"


@hinted
class Linf(_NormBall, word="Linf"):
    """Neighbours that differ by at most `radius` in every entry.

    Args:
        radius: in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if it is not finite or not above 0.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018): one record changes the answer to each of several
        counting queries by at most 1.

    Example:
        >>> from dpcore.pairs import Box
        >>> Linf(1.0).holds(Pair([0, 0], [1, -1]), Box(-5, 5, 2))
        True
    """

    __slots__ = ()
    norm = "linf"


def _require_bounded(domain: Domain) -> Bounded:
    if not isinstance(domain, Bounded):
        raise mistyped("domain", "one of vectors, with low, high and clip", domain)
    return domain


def _list_directions(dim: int) -> list[Floats]:
    """List directions of change: one entry, all, halves, one against the rest, alternating."""
    place = np.arange(dim)
    first, last, front = place == 0, place == dim - 1, place < (dim + 1) // 2
    ones = np.ones(dim)
    found = [
        ones - 2.0 * first, ones - 2.0 * last, 1.0 * first, ones, 1.0 * last,
        2.0 * front - ones, 1.0 * front, 1.0 - 2.0 * (place % 2),
    ]  # fmt: skip
    return list({signs.tobytes(): signs for signs in found}.values())


def _list_bases(space: Bounded) -> list[Floats]:
    """List vectors to change: constant ones, one entry below or above the others, two halves."""
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), space.dim)
                 for end in (space.low, space.high))  # fmt: skip
    width, middle = high - low, low + (high - low) / 2.0
    place = np.arange(space.dim)
    found = [middle]
    for gap in _ENTRY_GAPS:
        for part in (place == 0, place == space.dim - 1, place < (space.dim + 1) // 2):
            # Half the gap each way keeps both sides of a full gap inside the domain.
            found += [middle + gap * width * (0.5 - part), middle + gap * width * (part - 0.5)]
    found += [np.zeros(space.dim), np.ones(space.dim), low.copy(), high.copy()]
    clipped = [np.asarray(space.clip(base), dtype=np.float64) for base in found]
    return list({base.tobytes(): base for base in clipped}.values())


def _iterate_combinations(
    bases: list[Floats], signs: list[Floats]
) -> Iterator[tuple[Floats, Floats]]:
    """Yield all combinations, those that are early in both lists first."""
    ranks = itertools.product(range(len(bases)), range(len(signs)))
    for row, column in sorted(ranks, key=sum):
        yield bases[row], signs[column]


def _choose_group(base: Floats, change: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose the entries that a move changes."""
    place = int(rng.integers(base.size))
    alone: npt.NDArray[np.bool_] = np.arange(base.size) == place
    level: npt.NDArray[np.bool_] = base == base[place]
    alike: npt.NDArray[np.bool_] = change == change[place]
    everything = np.ones(base.size, dtype=np.bool_)
    others = ~alone if base.size > 1 else alone
    return (alone, others, level, alike, everything)[rng.integers(5)]
