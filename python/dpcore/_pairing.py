"""Which pair is audited: the one given, or the most telling of several, found on pilots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ._counting import Source
from ._judging import screen, select
from .attacks._choosing import Goal, ScoreAttack
from .attacks._reading import candidates_of
from .errors import invalid, mistyped
from .pairs import Search, drive, zeros_ones
from .records import Pair
from .sampling import PILOT

_LEAST: Final = 2**11
_MOST: Final = 2**19
"""Pilot draws a side on one pair in one round of a comparison."""
_FINAL: Final = 3
_MOST_FINAL: Final = 2**22
"""The same where so few pairs are left."""
_MOST_TRAINING: Final = 2**18


@dataclass(frozen=True, slots=True)
class Asked:
    """The pairs that an audit may choose from.

    Args:
        pairs: one or several; empty for a search.
        search: a plan that proposes pairs, or None.
    """

    pairs: tuple[Pair, ...]
    search: Search | None = None

    @property
    def first(self) -> Pair:
        """A pair to learn the shape of outputs from."""
        if self.search is not None:
            return self.search.start(np.random.default_rng(0))[0]
        return self.pairs[0]


def asked(mechanism: Any, pair: Any) -> Asked:
    """Read the argument `pair` of an audit.

    Raises:
        TypeError: if it is none of the kinds allowed.
        ValueError: if it is an empty list.
    """
    if pair is None:
        default = getattr(mechanism, "default_pair", None)
        found = zeros_ones(1) if default is None else default()
        if not isinstance(found, Pair):
            raise mistyped("default_pair()", "a Pair", found)
        return Asked((found,))
    if isinstance(pair, Pair):
        return Asked((pair,))
    if isinstance(pair, Search):
        return Asked((), pair)
    if isinstance(pair, tuple) and len(pair) == 2 and not isinstance(pair[0], Pair):
        return Asked((Pair(*pair),))
    several = tuple(pair) if isinstance(pair, Iterable) and not _is_data(pair) else ()
    if not all(isinstance(one, Pair) for one in several) or (_is_data(pair) and not several):
        raise mistyped("pair", _KINDS, pair)
    if not several:
        if isinstance(pair, Iterable):
            raise invalid("pair", "at least one Pair", pair)
        raise mistyped("pair", _KINDS, pair)
    return Asked(several)


_KINDS = "a Pair, a tuple (x, x_prime), several Pairs, a pairs.search(...) or None"


def _is_data(value: Any) -> bool:
    return isinstance(value, (str, bytes, dict, np.ndarray))


def settle(
    wanted: Asked,
    source_of: Callable[[Pair], Source],
    attack: ScoreAttack,
    goal: Goal,
    pilot: int,
    seed: int,
) -> Pair:
    """The pair expected to certify most: rounds of pilots, of which the best third goes on.

    Args:
        wanted: the pairs to choose from.
        source_of: makes the source of a pair.
        attack: fitted anew on every pair.
        goal: what is to be certified.
        pilot: pilot draws a side that the last round may use.
        seed: of the search.

    Returns:
        One pair. Nothing that was drawn here is counted.
    """
    if len(wanted.pairs) == 1:
        return wanted.pairs[0]

    def evaluate(pair: Pair, size: int) -> float:
        return _merit(source_of(pair), pair, attack, goal, size)

    if wanted.search is not None:
        return drive(wanted.search, evaluate, np.random.default_rng((seed, 0)))
    left = list(wanted.pairs)
    while len(left) > 1:
        # Every round costs half a pilot in all, and only the last ones may be long.
        most = _MOST if len(left) > _FINAL else _MOST_FINAL
        size = min(max(_LEAST, pilot // (2 * len(left))), most)
        ranked = sorted(left, key=lambda pair: -evaluate(pair, size))
        left = ranked[: (len(ranked) + 2) // 3]
    return left[0]


def _merit(source: Source, pair: Pair, attack: ScoreAttack, goal: Goal, size: int) -> float:
    training = max(1, min(size // 2, _MOST_TRAINING))
    sides = source.outputs(PILOT, 0, 0, training), source.outputs(PILOT, 1, 0, training)
    scores = candidates_of(attack, *sides, pair, f"outputs of {source.name}")
    if not scores:
        return -math.inf
    selection = size - training
    merit = select(source, scores, screen(source, selection), selection, goal.bolder()).merit
    # A metric claim is per unit of distance, and with delta nothing is ever divided.
    return merit if goal.delta or merit < 0.0 else merit / pair.distance
