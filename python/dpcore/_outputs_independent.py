"""Recorded outputs of independent runs: shuffled, cut, and counted where nobody has looked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ._counting import name_of
from ._tallying import happened
from .attacks._choosing import Goal, ScoreAttack, choices, not_applicable
from .attacks._reading import candidates_of
from .bounds import clopper_pearson
from .errors import invalid, mistyped, real
from .records import Counts, Pair

Array = npt.NDArray[Any]
Sides = tuple[Array, Array]

_FEWEST: Final = 4
"""Rows on each side: to fit, to choose, and two to count."""

_SHUFFLE: Final = 17
"""Names the streams of shuffles: with the side two numbers, where those of draws have three."""

_CHANCE_CELLS: Final = 2.0**32
"""Values that the coarsest of continuous samplers can take: one word of 32 bits."""

_MOST_ATOMS: Final = 4
"""Repeated values that a law may have beside a density, by clipping or censoring."""

_FEW_DISTINCT: Final = 20

_DECIMALS: Final = 8
"""A number with so few decimal places was rounded: its repetition means nothing."""

_ROUNDING: Final = 2.0**-51
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, a multiplier that spreads bits (Knuth, 1998, section 6.4)."""


class Counted(NamedTuple):
    """What was counted, and what chose it.

    Args:
        counts: of the event, on the rows that chose nothing.
        attack: name of the attack.
        event: the event.
        direction: the side in the numerator.
        pilot: rows of each side that fitted and chose.
    """

    counts: Counts
    attack: str
    event: Any
    direction: str
    pilot: tuple[int, int]


def count_event(
    sides: Sides,
    attack: Callable[..., Any],
    pair: Pair,
    share: float | None,
    seed: int,
    settings: tuple[float, float],
) -> Counted:
    """Choose an event on some rows and count it on the others.

    Args:
        sides: outputs on x and on x', shapes `(size, ...)` and `(size', ...)`.
        attack: `(outputs, outputs_prime, pair) -> event`.
        pair: what the attack is told of the inputs.
        share: share of the rows that is counted; None is a half.
        seed: of the shuffle.
        settings: delta and confidence of the bound.

    Returns:
        The counts and the event.

    Raises:
        TypeError: if the attack does not return an event, or `share` is no number.
        ValueError: if there are too few rows, `share` is out of range, or the attack does not
            apply to such outputs.
    """
    share = real("count_share", 0.5 if share is None else share, low=0.0, high=1.0,
                 open_low=True, open_high=True)  # fmt: skip
    sizes = len(sides[0]), len(sides[1])
    if min(sizes) < _FEWEST:
        raise invalid("outputs", f"at least {_FEWEST} rows on each side", sizes)
    cuts = [_cuts(size, share) for size in sizes]
    # Rows that were sorted, or came in the order of their runs, are exchangeable after this.
    first, second = (_shuffled(side, seed, number) for number, side in enumerate(sides))
    left = sizes[0] - cuts[0][1], sizes[1] - cuts[1][1]
    goal = Goal(min(left), *settings)
    event, direction = _chosen(attack, pair, (first, second), cuts, goal)
    rest = first[cuts[0][1] :], second[cuts[1][1] :]
    hits, hits_prime = (int(np.count_nonzero(happened(event, side))) for side in rest)
    counts = Counts(hits, left[0], hits_prime, left[1])
    return Counted(counts, name_of(attack), event, direction, (cuts[0][1], cuts[1][1]))


def _cuts(size: int, share: float) -> tuple[int, int]:
    """Where the rows that choose begin, and those that are counted."""
    pilot = min(max(2, size - round(size * share)), size - 1)
    return pilot // 2, pilot


def _shuffled(outputs: Array, seed: int, side: int) -> Array:
    sequence = np.random.SeedSequence(seed, spawn_key=(_SHUFFLE, side))
    return outputs[np.random.Generator(np.random.PCG64(sequence)).permutation(len(outputs))]


def _chosen(
    attack: Callable[..., Any],
    pair: Pair,
    sides: Sides,
    cuts: list[tuple[int, int]],
    goal: Goal,
) -> tuple[Any, str]:
    """Event and direction from the rows before the second cuts."""
    (one, stop), (one_prime, stop_prime) = cuts
    if isinstance(attack, ScoreAttack):
        scores = candidates_of(attack, sides[0][:one], sides[1][:one_prime], pair)
        if not scores:
            raise not_applicable(attack, sides[0])
        rest = sides[0][one:stop], sides[1][one_prime:stop_prime]
        best = max(choices(scores, *rest, goal), key=lambda found: found.merit)
        return best.event, best.direction
    pilot = sides[0][:stop], sides[1][:stop_prime]
    event = attack(*pilot, pair)
    if not callable(event):
        raise mistyped("event", "a callable outputs -> bools", event)
    hits, hits_prime = (int(np.count_nonzero(happened(event, side))) for side in pilot)
    counts = Counts(hits, stop, hits_prime, stop_prime)
    merits = {
        way: clopper_pearson(ordered, goal.delta, goal.confidence)
        for way, ordered in (("x_prime", counts.swapped()), ("x", counts))
    }
    return event, max(merits, key=lambda way: merits[way])


def doubts_of_rows(sides: Sides) -> tuple[str, ...]:
    """What speaks against independent rows: repetitions that chance does not give.

    Either every row of a side is there twice, three times, ...; or several rows of a continuous
    law are repeated, values that were rounded apart.

    Args:
        sides: outputs on x and on x'.

    Returns:
        A sentence for each thing found.
    """
    notes = []
    for name, side in zip(("outputs", "outputs_prime"), sides, strict=True):
        if side.dtype.kind not in "buif" or side.size == 0:
            continue
        table = side.reshape(len(side), -1)
        _, first, times = np.unique(_keys(table), return_index=True, return_counts=True)
        copies = int(np.gcd.reduce(times))
        # Independent rows of any law all have even numbers of copies once in 2^20 at most.
        if copies > 1 and times.size >= _FEW_DISTINCT:
            notes.append(f"rows are repeated: each row of {name} occurs {copies} times or more")
            continue
        again = _smooth(table[first[times > 1]])
        if again <= _MOST_ATOMS:
            continue
        alone = _smooth(table[first[times == 1]])
        expected = (again + alone) ** 2 / 2.0 / _CHANCE_CELLS
        # A law with more values that come again than not is discrete, however odd its values.
        if alone > again > _MOST_ATOMS + expected + 5.0 * expected**0.5:
            notes.append(f"rows are repeated: {again:,} rows of {name} occur more than once")
    return tuple(notes)


def _keys(table: Array) -> npt.NDArray[np.uint64]:
    """A hash of every row: two unequal rows share one with probability 2^-64."""
    # Adding 0.0 makes equal what compares equal: -0.0 and 0.0.
    numbers = table.astype(np.float64) + 0.0 if table.dtype.kind == "f" else table.astype(np.int64)
    keys = np.zeros(len(table), dtype=np.uint64)
    for column in numbers.T:
        keys = (keys ^ np.ascontiguousarray(column).view(np.uint64)) * _ODD
        keys ^= keys >> np.uint64(29)
    return keys


def _smooth(rows: Array) -> int:
    """How many rows hold a number that no rounding to decimal or binary places made."""
    if rows.dtype != np.float64:
        # Coarser types repeat themselves by chance.
        return 0
    rounded = ~np.isfinite(rows)
    values = np.where(rounded, 0.0, rows)
    with np.errstate(over="ignore"):
        rounded |= (values == np.rint(values)) | (values == values.astype(np.float32))
    for places in range(1, _DECIMALS + 1):
        scaled = values * 10.0**places
        near = np.abs(scaled - np.rint(scaled)) <= _ROUNDING * np.abs(scaled)
        # Beyond, every double is as near as that to a whole number.
        rounded |= near & (np.abs(scaled) < 0.01 / _ROUNDING)
    return int(np.count_nonzero((~rounded).any(axis=1)))
