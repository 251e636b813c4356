"""One event per coordinate, for mechanisms that are declared to treat coordinates independently.

The loss of n independent coordinates with one law is n times the loss of one of them, and every
output holds n draws of that one coordinate. Nothing in the counted draws proves independence: it
is declared by whoever asks for this attack, and printed with the verdict. The pilot can only
disprove it, and is then refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..bounds import predicted
from ..errors import instance, invalid, vector
from ..events.every_coordinate import EveryCoordinate, Intervals, rows
from ..records import Pair
from .attack import AuditAttack, Fitted, Pilot
from .choosing.choice import Floats, Goal, thresholds
from .choosing.grains import grain_of

__all__ = [
    "Chosen",
    "Coordinatewise",
    "Options",
]

_BINS: Final = 64
_WORTH: Final = 1.05
"""A union of intervals must promise so much more than a half-line before it is preferred."""
_FAINT: Final = 1e-9
_ROUNDS: Final = 10
_MOST_ENTRIES: Final = 2**22
LEVEL: Final = 1e-6
"""Probability that a pilot with independent coordinates is refused, all tests together."""
_TESTED: Final = 2**19
_MOST_COLUMNS: Final = 512
_LEAST_ROWS: Final = 20
_GRID: Final = 256
_LEAST_MOVES: Final = 200.0
"""Rows in which two independent coordinates should both leave their most frequent value: with
fewer, a chance meeting of rare values looks like a correlation."""


@dataclass(frozen=True, slots=True, repr=False)
class Coordinatewise(AuditAttack):
    """Learns one set per group of like coordinates, for mechanisms *declared* independent.

    Coordinates with equal (x_i, x'_i) form a group; where x_i = x'_i a coordinate says nothing
    and is left out. For each group the set that promises most is learnt: a half-line, or a union
    of intervals where that promises clearly more. The event is "every coordinate lies in its
    set", with probability ``prod_g p_g^m_g``, so that

    ``epsilon >= ln((prod_g p_g^m_g - delta) / prod_g q_g^m_g)``

    and p_g, q_g are counted on m_g coordinates of every output at once.

    Three things are declared by using this attack: the outputs' coordinates are independent of
    each other given the input, coordinate i depends on x_i alone, and those of one group have one
    law. A pilot that contradicts them is refused; one that does not proves nothing.

    Source:
        The sum of the losses of independent coordinates: Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> outputs = rng.laplace(0.0, 2.0, (2000, 8)), 1.0 + rng.laplace(0.0, 2.0, (2000, 8))
        >>> event = Coordinatewise()(*outputs, Pair(np.zeros(8), np.ones(8)))
        >>> event.multiplicities, event.sets[0].below
        ((8,), True)
    """

    pools: ClassVar[bool] = True

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Event and direction: that of all coordinates is too rare for counts to tell them."""
        outputs, outputs_prime = pilot.outputs()
        chosen = self.choose(outputs, outputs_prime, pilot.pair, pilot.goal)
        size = len(outputs)
        return Fitted(chosen.event, chosen.direction, chosen.merit, size, np.empty(0))

    def __call__(
        self, outputs: npt.ArrayLike, outputs_prime: npt.ArrayLike, pair: Pair
    ) -> EveryCoordinate:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, dim)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', dim)`.
            pair: the pair they were drawn on, two vectors of `dim` numbers.

        Returns:
            The event of `choose` for ten times as many draws.

        Raises:
            TypeError: if outputs or pair do not hold real numbers.
            ValueError: as for `choose`.
        """
        size = len(np.asarray(outputs))
        return self.choose(outputs, outputs_prime, pair, Goal(10 * max(1, size))).event

    def choose(
        self, outputs: npt.ArrayLike, outputs_prime: npt.ArrayLike, pair: Pair, goal: Goal
    ) -> Chosen:
        """Choose event and direction from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, dim)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', dim)`.
            pair: the pair they were drawn on, two vectors of `dim` numbers.
            goal: what the counted draws are to certify.

        Returns:
            The event, the side for the numerator and the bound that is expected.

        Raises:
            TypeError: if outputs or pair do not hold real numbers, or `goal` is no `Goal`.
            ValueError: if the shapes do not fit, a side has fewer than two outputs, the inputs
                agree everywhere, the pilot's coordinates are visibly dependent, or those of one
                group visibly unlike.
        """
        goal = instance("goal", goal, Goal)
        groups, dim = _groups(pair)
        sides = [_pilot(side, dim) for side in (outputs, outputs_prime)]
        differing = [group for group, equal in groups if not equal]
        refuse_dependent(tuple(zip(("x", "x'"), sides, strict=True)), differing)
        # The groups share the probability of error.
        shared = replace(goal, confidence=1.0 - (1.0 - goal.confidence) / len(differing))
        found: list[Chosen] = []
        for way in ("x", "x_prime"):
            options = [_options(sides, group, way, shared) for group in differing]
            found.append(_combined(way, options, differing, dim, goal))
        return max(found, key=lambda chosen: chosen.merit)


class Chosen(NamedTuple):
    """An event, the side that goes into the numerator, and the bound expected.

    Args:
        event: what is to be counted.
        direction: "x" or "x_prime".
        merit: the bound that the counted draws would certify at the pilot's pessimistic rates.
    """

    event: EveryCoordinate
    direction: str
    merit: float


class Options(NamedTuple):
    """Sets that a group may take.

    Args:
        log_p: logarithm of a pessimistic lower limit for each set's probability, numerator's side.
        log_q: logarithm of a pessimistic upper limit on the other side.
        make: the set of an index.
    """

    log_p: Floats
    log_q: Floats
    make: Callable[[int], Intervals]


def _groups(pair: Pair) -> tuple[list[tuple[tuple[int, ...], bool]], int]:
    """Coordinates with equal inputs, and whether x and x' agree there."""
    pair = instance("pair", pair, Pair)
    ends = vector("x", pair.x), vector("x_prime", pair.x_prime)
    if ends[0].shape != ends[1].shape:
        raise invalid("pair", "two inputs of equal shape", tuple(end.shape for end in ends))
    if np.array_equal(*ends):
        raise invalid("pair", "different in at least one entry", pair)
    kinds, where = np.unique(np.stack(ends, axis=1), axis=0, return_inverse=True)
    found = [
        (tuple(np.flatnonzero(where.ravel() == i).tolist()), bool(kind[0] == kind[1]))
        for i, kind in enumerate(kinds)
    ]
    return found, ends[0].size


def _pilot(outputs: npt.ArrayLike, dim: int) -> npt.NDArray[Any]:
    values = rows(np.asarray(outputs), dim)
    if len(values) < 2:
        raise invalid("outputs", "at least two pilot outputs on each side", len(values))
    return values


def _options(
    sides: Sequence[npt.NDArray[Any]], group: tuple[int, ...], way: str, goal: Goal
) -> Options:
    """Sets worth trying for one group: half-lines, then unions of the most telling bins.

    Thresholds and the order of the bins come from the first halves of the pilot, probabilities
    from the second ones.
    """
    fit: list[Floats] = []
    rest: list[Floats] = []
    sizes: list[int] = []
    for side in sides if way == "x" else sides[::-1]:
        part = side[: max(2, _MOST_ENTRIES // len(group)), list(group)].astype(np.float64)
        cut = len(part) // 2
        fit.append(_known(part[:cut]))
        rest.append(_known(part[cut:]))
        sizes.append(part[cut:].size)
    points = thresholds(fit[0], fit[1], grain_of(*fit))
    if points.size == 0:
        return Options(np.zeros(1), np.zeros(1), lambda _: Intervals(np.zeros(1), True))
    edges = points[np.unique(np.linspace(0, points.size - 1, _BINS - 1).astype(np.int64))]
    order = _order(fit[0], fit[1], edges)
    hits = [_hits(values, points, edges, order) for values in rest]
    draws = goal.trials * len(group)
    ratio = predicted(hits[0], sizes[0], hits[1], sizes[1], draws, 0.0, goal.confidence)
    log_q = -predicted(sizes[0], sizes[0], hits[1], sizes[1], draws, 0.0, goal.confidence)
    # Where nothing promises anything, what is clearest on the pilot is the best guess.
    ratio += _FAINT * _clarity(hits[0], hits[1], sizes[0], sizes[1])
    ratio[2 * points.size :] /= _WORTH

    def make(index: int) -> Intervals:
        if index < 2 * points.size:
            return Intervals(points[index % points.size][np.newaxis], index < points.size)
        members = np.zeros(edges.size + 1, dtype=np.bool_)
        members[order[: index - 2 * points.size + 1]] = True
        return Intervals(edges[members[1:] != members[:-1]], bool(members[0]))

    return Options(ratio + log_q, log_q, make)


def _clarity(hits: Floats, hits_prime: Floats, size: int, size_prime: int) -> Floats:
    """Standard errors by which each set is more frequent on the numerator's side."""
    pooled = (hits + hits_prime + 1.0) / (size + size_prime + 2.0)
    error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / size + 1.0 / size_prime))
    clarity: Floats = np.maximum((hits / size - hits_prime / size_prime) / error, 0.0)
    return clarity


def _known(values: Floats) -> Floats:
    return np.sort(values[~np.isnan(values)])


def _order(values: Floats, values_prime: Floats, edges: Floats) -> npt.NDArray[np.intp]:
    """Bins between the edges, those that speak most for the first side foremost."""
    held, held_prime = (_bins(side, edges) + 0.5 for side in (values, values_prime))
    return np.argsort(held_prime / held, kind="stable")


def _bins(values: Floats, edges: Floats) -> Floats:
    passed = np.searchsorted(values, edges)
    return np.diff(passed, prepend=0, append=values.size).astype(np.float64)


def _hits(values: Floats, points: Floats, edges: Floats, order: npt.NDArray[np.intp]) -> Floats:
    """Hits of every set: below each point, at or above it, in the first bins of the order."""
    below = np.searchsorted(values, points).astype(np.float64)
    unions = np.cumsum(_bins(values, edges)[order])[:-1]
    return np.concatenate([below, values.size - below, unions])


def _combined(
    way: str, options: Sequence[Options], groups: Sequence[tuple[int, ...]], dim: int, goal: Goal
) -> Chosen:
    """The best sets of all groups together; without a delta each group's own best."""
    weights = [float(len(group)) for group in groups]
    # -1 is "anything": the group is left out.
    picks = [-1] * len(options)
    for _ in range(_ROUNDS if goal.delta > 0.0 else 1):
        before = list(picks)
        for i, option in enumerate(options):
            rest = _sums(options, weights, [-1 if j == i else p for j, p in enumerate(picks)])
            log_p = rest[0] + weights[i] * option.log_p
            log_q = rest[1] + weights[i] * option.log_q
            gain = _log_margin(log_p, goal.delta) - log_q
            best = int(np.argmax(gain))
            alone = float(_log_margin(np.array(rest[0]), goal.delta)) - rest[1]
            picks[i] = best if gain[best] > alone else -1
        if picks == before:
            break
    sums = _sums(options, weights, picks)
    merit = max(0.0, float(_log_margin(np.array(sums[0]), goal.delta)) - sums[1])
    if max(picks) < 0:
        picks[0] = int(np.argmax(options[0].log_p - options[0].log_q))
    used = [i for i, pick in enumerate(picks) if pick >= 0]
    sets = tuple(options[i].make(picks[i]) for i in used)
    return Chosen(EveryCoordinate(tuple(groups[i] for i in used), sets, dim), way, merit)


def _sums(
    options: Sequence[Options], weights: Sequence[float], picks: Sequence[int]
) -> tuple[float, float]:
    chosen = [(w, o, p) for w, o, p in zip(weights, options, picks, strict=True) if p >= 0]
    log_p = sum(weight * float(option.log_p[pick]) for weight, option, pick in chosen)
    return log_p, sum(weight * float(option.log_q[pick]) for weight, option, pick in chosen)


def _log_margin(log_p: Floats, delta: float) -> Floats:
    """ln(e^log_p - delta), minus infinity where nothing is left."""
    if delta == 0.0:
        return log_p
    left = -np.expm1(np.minimum(np.log(delta) - log_p, 0.0))
    with np.errstate(divide="ignore"):
        margin: Floats = log_p + np.log(left)
    return margin


def refuse_dependent(
    sides: Sequence[tuple[str, npt.NDArray[Any]]], groups: Sequence[tuple[int, ...]]
) -> None:
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
        values = _finite(outputs[: max(_LEAST_ROWS, _TESTED // max(1, outputs.shape[1]))])
        if len(values) < _LEAST_ROWS:
            continue
        for group in groups:
            _refuse_unlike(side, values, group, level / (4 * len(groups)))
        _refuse_correlated(side, "values", values, level / 4)
        middle = np.median(values, axis=0)
        _refuse_correlated(side, "distances from the median", abs(values - middle), level / 4)


def _finite(outputs: npt.NDArray[Any]) -> Floats:
    """The outputs as doubles; infinities and NaN become values beyond all others."""
    values = outputs.astype(np.float64)
    known = np.isfinite(values)
    if known.all():
        return values
    # Halved, so that nothing overflows; only ranks matter from here on.
    values /= 2.0
    edge = float(np.abs(values[known]).max(initial=1.0))
    beyond = min(1.5 * edge + 1.0, np.finfo(np.float64).max)
    return np.nan_to_num(values, nan=beyond, posinf=0.9 * beyond, neginf=-0.9 * beyond)


def _ranks(values: Floats) -> Floats:
    """Middle ranks of every column, centred, of length 1; 0 where a column hardly ever moves."""
    size = len(values)
    ranks = np.empty_like(values)
    for column in range(values.shape[1]):
        _, where, times = np.unique(values[:, column], return_inverse=True, return_counts=True)
        if size * (1.0 - times.max() / size) ** 2 < _LEAST_MOVES:
            times = times * 0
        ranks[:, column] = (np.cumsum(times) - times / 2.0)[where] - times.sum() / 2.0
    length = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(length > 0.0, length, 1.0)


def _refuse_correlated(side: str, what: str, values: Floats, level: float) -> None:
    from scipy.special import chdtrc, ndtri

    dim = values.shape[1]
    columns = np.arange(dim)
    if dim > _MOST_COLUMNS:
        columns = np.sort(np.random.default_rng(dim).permutation(dim)[:_MOST_COLUMNS])
    ranks = _ranks(values[:, columns])
    moves = (ranks != 0.0).any(axis=0)
    ranks, columns = ranks[:, moves], columns[moves]
    first, second = np.triu_indices(columns.size, 1)
    if first.size == 0:
        return
    found = (ranks.T @ ranks)[first, second]
    scores = found * math.sqrt(len(values) - 1)
    worst = int(np.argmax(abs(scores)))
    if abs(scores[worst]) > -ndtri(level / 6.0 / first.size):
        pair = f"coordinates {columns[first[worst]]} and {columns[second[worst]]}"
        raise _refusal(f"rank correlation {found[worst]:.3g} between {what} of {pair}", side)
    total = float(scores.sum()) / math.sqrt(first.size)
    if abs(total) > -ndtri(level / 6.0):
        mean = float(found.mean())
        all_of = f"{what} of coordinates {columns[0]} to {columns[-1]}"
        raise _refusal(f"mean rank correlation {mean:.3g} between {all_of}", side)
    squares = float((scores**2).sum())
    if chdtrc(first.size, squares) < level / 3.0:
        size = math.sqrt(squares / first.size / (len(values) - 1))
        all_of = f"{what} of coordinates {columns[0]} to {columns[-1]}"
        raise _refusal(f"rank correlations of size {size:.3g} between {all_of}", side)


def _refuse_unlike(side: str, values: Floats, group: tuple[int, ...], level: float) -> None:
    """Compare each coordinate's distribution with that of the rest of its group."""
    if len(group) < 2:
        return
    part = values[:, list(group)]
    size, many = part.shape
    grid = np.unique(np.quantile(part, np.linspace(0.0, 1.0, _GRID), method="nearest"))
    shares = np.stack([np.searchsorted(np.sort(column), grid, "right") for column in part.T]) / size
    # Against the pool, which holds the coordinate itself; the rest is m/(m - 1) as far away.
    gaps = abs(shares - shares.mean(axis=0)).max(axis=1) * many / (many - 1)
    worst = int(np.argmax(gaps))
    samples = size * (many - 1) / many
    if gaps[worst] > math.sqrt(math.log(2.0 * many / level) / (2.0 * samples)):
        name = f"coordinate {group[worst]} and the {many - 1} others with the same inputs"
        raise _refusal(f"distance {gaps[worst]:.3g} between the distributions of {name}", side)


def _refusal(found: str, side: str) -> ValueError:
    requirement = "independent from coordinate to coordinate, with one law where inputs are equal"
    return ValueError(f"outputs must be {requirement}, got {found} on {side}")
