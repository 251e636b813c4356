"""The parts of the search for the pair on which f changes most."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..pairs import Domain, Neighbour, distance
from ..records import Pair, Record
from ._probing import Inputs, Probe
from ._rows import Floats

_MAX_COMPARED_MEMBERS: Final = 256
"""Members of the domain whose outputs are compared all with all."""

_PROPOSALS_PER_PAIR: Final = 20
"""Pairs that a neighbour relation may propose for each one that holds."""

_MAX_IDLE_MOVES: Final = 200
"""Moves in a row that lead to pairs known already, before a walk of moves ends."""

_COARSEST_STEP: Final = 2.0
_FINEST_STEP: Final = 2.0**-30
"""Steps of a coordinate, as shares of the domain's width there."""

_MIN_ROUND_GAIN: Final = 1e-9
"""A round that gains less, relatively, goes on with finer steps."""

_MAX_FLOAT: Final = float(np.finfo(np.float64).max)

_MOVES_PER_CALL: Final = 64
"""Coordinates moved in one call of an f that takes rows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneRecord(Record, word="OneRecord"):
    """Neighbours by the domain's own relation: `neighbouring` and `neighbour` of a `Histogram`."""

    def holds(self, pair: Pair, domain: Any) -> bool:
        """Return True if the inputs differ and the domain calls them neighbours."""
        apart = not np.array_equal(pair.x, pair.x_prime)
        return apart and bool(domain.neighbouring(pair.x, pair.x_prime))

    def starts(self, domain: Any, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield random neighbours without end."""
        while True:
            x = domain.draw(rng)
            yield Pair(x, domain.neighbour(x, rng))

    def move(self, pair: Pair, domain: Any, rng: np.random.Generator) -> Pair:
        """Draw another neighbour, or change the counts of one bin on both sides."""
        if rng.integers(2):
            return Pair(pair.x, domain.neighbour(pair.x, rng))
        shift = np.zeros(domain.dim)
        shift[rng.integers(domain.dim)] = rng.choice([-1.0, 1.0]) * 2.0 ** rng.integers(12)
        return Pair(domain.clip(pair.x + shift), domain.clip(pair.x_prime + shift))


class Space:
    """The pairs to search: any two members of the domain, or the neighbours of a relation."""

    def __init__(self, domain: Domain, neighbour: Neighbour | None) -> None:
        self.domain = domain
        self.neighbour = neighbour
        self._clip: Callable[[Any], Any] | None = getattr(domain, "clip", None)
        self._ball: tuple[Any, Any] = (
            getattr(neighbour, "norm", None), getattr(neighbour, "radius", None)
        )  # fmt: skip

    @property
    def free(self) -> bool:
        """True if any two members are neighbours."""
        return self.neighbour is None

    @property
    def moves(self) -> bool:
        """True if coordinates can be moved: inputs are vectors, and neighbours any, or a ball."""
        return self._clip is not None and (self.free or None not in self._ball)

    def clip(self, x: Any) -> Any:
        """Return a member near x."""
        return x if self._clip is None else self._clip(x)

    def holds(self, x: Any, x_prime: Any) -> bool:
        """Return True if the two members are neighbours."""
        return self.neighbour is None or self.neighbour.holds(Pair(x, x_prime), self.domain)

    def fit(self, x: Any, x_prime: Any) -> Inputs | None:
        """Return neighbours near two vectors, or None if they are not neighbours after clipping."""
        x = self.clip(x)
        if self.neighbour is None:
            return x, self.clip(x_prime)
        norm, radius = self._ball
        with np.errstate(over="ignore"):
            change = np.clip(np.asarray(x_prime, dtype=np.float64) - x, -_MAX_FLOAT, _MAX_FLOAT)
        apart = distance(Pair(np.zeros(change.size), change), norm)
        x_prime = self.clip(x + change * (radius / apart) if apart > radius else x_prime)
        return (x, x_prime) if self.holds(x, x_prime) else None

    def random(self, rng: np.random.Generator, most: int) -> list[Inputs]:
        """Draw neighbours, or take those that the relation proposes; fewer if it finds no more."""
        if self.neighbour is None:
            return [(self.domain.draw(rng), self.domain.draw(rng)) for _ in range(most)]
        proposed = itertools.islice(
            self.neighbour.starts(self.domain, rng), _PROPOSALS_PER_PAIR * most
        )
        kept = (pair for pair in proposed if self.neighbour.holds(pair, self.domain))
        return [(pair.x, pair.x_prime) for pair in itertools.islice(kept, most)]

    def widths(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the smallest and largest entry of each coordinate among draws and extremes."""
        points = np.array([*(self.domain.draw(rng) for _ in range(16)), *self.extremes(rng, 16)])
        return points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)

    def extremes(self, rng: np.random.Generator, most: int) -> list[Any]:
        """Return extreme members: constant, one coordinate, halves, random signs, and opposites."""
        if self._clip is None:
            return []
        dim = self.domain.dim
        drawn = np.array([self.domain.draw(rng) for _ in range(4)], dtype=np.float64)
        # Twice the largest sum lies outside of any set that these fill.
        with np.errstate(over="ignore"):
            reach = min(2.0 * float(np.abs(drawn).sum(axis=1).max()), _MAX_FLOAT) or 1.0
        place = np.arange(dim)
        signs = [np.ones(dim), 2.0 * (2 * place < dim) - 1.0, 1.0 - 2.0 * (place % 2)]
        singles = rng.permutation(dim)[: max(1, most // 4)]
        signs += [1.0 * (place == single) for single in singles]
        signs += list(rng.choice([-1.0, 1.0], (max(0, most // 2 - len(signs)), dim)))
        towards = [side * reach * sign for sign in signs for side in (1.0, -1.0)]
        return [self.clip(x) for x in towards[:most]]


def try_pairs(probe: Probe, pairs: Sequence[Inputs]) -> None:
    """Evaluate pairs as far as the allowance goes."""
    step = _MOVES_PER_CALL if probe.batched else 1
    for first in range(0, len(pairs), step):
        probe.gaps(pairs[first : first + step])


def try_extremes(probe: Probe, space: Space, rng: np.random.Generator) -> None:
    """Compare the extreme members, all against all."""
    points = space.extremes(rng, min(_MAX_COMPARED_MEMBERS, probe.left)) if probe.left > 1 else []
    if points:
        probe.farthest(points, 1)


def try_random(probe: Probe, space: Space, rng: np.random.Generator) -> None:
    """Compare random members, all against all; or random neighbours."""
    most = max(2, min(_MAX_COMPARED_MEMBERS, probe.left))
    if not space.free:
        return try_pairs(probe, space.random(rng, max(1, most // 2)))
    points = [space.domain.draw(rng) for _ in range(most)]
    if space.moves:
        # A function may do its worst near the middle, where hardly any draw of a high
        # dimension falls.
        for place in range(0, most, 4):
            share = 10.0 ** rng.uniform(-3.0, 0.0)
            points[place] = space.clip(np.asarray(points[place], dtype=np.float64) * share)
    probe.farthest(points, 1)
    return None


def climb_coordinates(probe: Probe, space: Space, rng: np.random.Generator, start: Inputs) -> None:
    """Run coordinate ascent, with steps that begin at the domain's width and become finer.

    Source:
        Hooke and Jeeves (1961), direct search.
    """
    if not space.moves:
        return _wander_randomly(probe, space, rng, start)
    low, high = space.widths(rng)
    width = np.where(high > low, np.minimum(high - low, _MAX_FLOAT / _COARSEST_STEP), 1.0)
    here, step = start, _COARSEST_STEP
    value = float(probe.gaps([here])[0])
    while step >= _FINEST_STEP:
        before = value
        here, value = _climb_round(probe, space, rng, here, value, step * width)
        if value <= before * (1.0 + _MIN_ROUND_GAIN):
            step /= 4.0
    return None


Move = tuple[int, int, float]
"""Side, coordinate and size of a move."""


def _climb_round(
    probe: Probe, space: Space, rng: np.random.Generator, here: Inputs, value: float, steps: Floats
) -> tuple[Inputs, float]:
    """Try every coordinate of both sides once, up and down, in random order."""
    order = rng.permutation(2 * steps.size)
    size = _MOVES_PER_CALL if probe.batched else 1
    for first in range(0, order.size, size):
        places = [divmod(int(place), steps.size) for place in order[first : first + size]]
        moves = [
            (side, place, sign * float(steps[place]))
            for side, place in places
            for sign in (1.0, -1.0)
        ]
        here, value = _best_of(probe, space, here, value, moves)
    return here, value


def _best_of(
    probe: Probe, space: Space, here: Inputs, value: float, moves: list[Move]
) -> tuple[Inputs, float]:
    """Return the best of some moves, or all moves that gain together.

    With many coordinates, the moves together are better.
    """
    tried = [
        (move, pair) for move in moves if (pair := _move_pair(space, here, [move])) is not None
    ]
    if not tried:
        return here, value
    found = probe.gaps([pair for _, pair in tried])
    best = int(np.argmax(found))
    if not found[best] > value:
        return here, value
    gaining = {tried[n][0][:2]: tried[n][0] for n in np.argsort(found) if found[n] > value}
    together = _move_pair(space, here, list(gaining.values())) if len(gaining) > 1 else None
    here, value = tried[best][1], float(found[best])
    if together is not None and (joint := float(probe.gaps([together])[0])) > value:
        return together, joint
    return here, value


def _move_pair(space: Space, here: Inputs, moves: list[Move]) -> Inputs | None:
    """Return the pair after some moves; None if it is unchanged or not a pair of neighbours."""
    sides = [np.array(side, dtype=np.float64) for side in here]
    for side, place, amount in moves:
        # Neighbours move together; the other side moves alone.
        for moved in sides[side:] if not space.free else sides[side : side + 1]:
            moved[place] = min(max(float(moved[place]) + amount, -_MAX_FLOAT), _MAX_FLOAT)
    pair = space.fit(*sides)
    if pair is None or all(map(np.array_equal, pair, here)):
        return None
    return pair


def _wander_randomly(probe: Probe, space: Space, rng: np.random.Generator, start: Inputs) -> None:
    """Try random moves of the relation and keep those that gain; without one, draw more pairs."""
    size = _MOVES_PER_CALL if probe.batched else 1
    here, value = start, float(probe.gaps([start])[0])
    last, idle = probe.evaluations, 0
    # Inputs seen before cost no call: where all are known, only this ends the search.
    while idle < _MAX_IDLE_MOVES:
        idle = idle + 1 if probe.evaluations == last else 0
        last = probe.evaluations
        if space.neighbour is None:
            tried = space.random(rng, size)
        else:
            pair = Pair(*here)
            proposed = [space.neighbour.move(pair, space.domain, rng) for _ in range(size)]
            tried = [(p.x, p.x_prime) for p in proposed if space.holds(p.x, p.x_prime)]
        if not tried:
            continue
        found = probe.gaps(tried)
        best = int(np.argmax(found))
        if found[best] >= value:
            here, value = tried[best], float(found[best])
