"""Thresholds on simple scores of numeric outputs: one entry, a distance, a sum, an extreme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from ..errors import choice, integer, mistyped, suggest_arguments
from ..events.event import Score
from ..pairs.differences import differing_points
from ..records import Pair
from .arrays import Array, Grain, Places, grains_of
from .attack import ScoreAttack
from .bins import sorted_values
from .rows import Closer, Coordinate, RowMax, RowMin, RowSum, read_both_sides

ScoreName = Literal["coordinate", "l1", "l2", "min", "max", "sum"]
_SCORE_NAMES: Final[tuple[ScoreName, ...]] = get_args(ScoreName)
_MAX_KEPT_ENTRIES: Final = 3
"""Entries that go on to the choice of the event."""
_SCREENED_NUMBERS: Final = 2**22
"""Numbers a side on which the entries are compared; at least `_MIN_SCREENED_ROWS` rows of them."""
_MIN_SCREENED_ROWS: Final = 1024
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Standard errors taken off an estimated log ratio: the best of many is good by luck, too."""

_ROW_SCORES: Final[dict[str, Score]] = {"min": RowMin(), "max": RowMax(), "sum": RowSum()}


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class Threshold(ScoreAttack):
    """A threshold on a simple score: the attack to try first on numeric outputs.

    Args:
        score: "coordinate" compares all entries on the pilot and keeps the three that tell most;
            an int is that one entry; "l1" and "l2" are `Closer` (for inputs that broadcast to the
            shape of an output), "min", "max" and "sum" the statistics of a row; a function
            `outputs -> real numbers (size,)` is taken as it is, on outputs of any kind. None
            tries all of these that apply and differ.

    Raises:
        TypeError: if `score` is none of these kinds.
        ValueError: if it is an unknown name or a negative index.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, for half-lines; Bichsel, Steffen,
        Bogunovic and Vechev (2021), DP-Sniper, section 4, for thresholds on a score.

    Example:
        >>> import dpcore
        >>> mechanism, pair = dpcore.published.HalfNoise(1.0), dpcore.pairs.zeros_ones(1)
        >>> audit = dpcore.audit(mechanism, pair, attack=Threshold(), trials=10**5, rng=1)
        >>> audit.verdict, 1.8 < audit.epsilon_lower < 2.0
        ('refuted', True)
    """

    score: ScoreName | int | Score | None = None

    @property
    def parts(self) -> bool:  # type: ignore[override]
        """True for a named or chosen score; functions and indices read outputs, not their parts."""
        return self.score is None or isinstance(self.score, str)

    def __post_init__(self) -> None:
        """Check the score."""
        if self.score is None or callable(self.score):
            return
        if isinstance(self.score, str):
            choice("score", self.score, _SCORE_NAMES)
        elif isinstance(self.score, (int, np.integer)) and not isinstance(self.score, bool):
            object.__setattr__(self, "score", integer("score", self.score, 0))
        else:
            requirement = "None, a name, an index or a function outputs -> scores"
            raise mistyped("score", requirement, self.score)

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores to try.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            Scores; none where the outputs are not numbers, or have no such entry, or the inputs
            do not broadcast to them.
        """
        if callable(self.score):
            return (self.score,)
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None:
            return ()
        dim = rows[0].shape[1]
        if isinstance(self.score, int):
            return (Coordinate(self.score),) if self.score < dim else ()
        wanted = _SCORE_NAMES if self.score is None else (self.score,)
        found: list[Score] = []
        if "coordinate" in wanted:
            found += [Coordinate(i) for i in _rank_entries(*rows)]
        if self.score is None and dim == 1:
            # Every other score is a monotone function of the one entry.
            return tuple(found)
        found += _make_distances(wanted, np.shape(outputs)[1:], pair)
        found += [score for name, score in _ROW_SCORES.items() if name in wanted]
        return tuple(found)


def _make_distances(wanted: tuple[str, ...], shape: tuple[int, ...], pair: Pair) -> list[Score]:
    ends = differing_points(pair.x, pair.x_prime, shape)
    if ends is None:
        return []
    norms = [norm for norm in ("l1", "l2") if norm in wanted]
    if len(wanted) > 1 and np.ptp(ends[0] - ends[1]) == 0.0:
        # With one shift for all entries "l2" is the sum again.
        norms.remove("l2")
    return [Closer(norm, *ends) for norm in norms]


def _rank_entries(rows: Array, rows_prime: Array) -> list[int]:
    """Return the entries whose half-lines distinguish the sides best, the best first."""
    dim = rows.shape[1]
    if dim == 1:
        return [0]
    most = max(_MIN_SCREENED_ROWS, _SCREENED_NUMBERS // dim)
    sides = rows[:most], rows_prime[:most]
    grains = grains_of(*sides)
    merits = [_log_ratio(*columns) for columns in zip(sides[0].T, sides[1].T, grains, strict=True)]
    return [int(i) for i in np.argsort(np.negative(merits), kind="stable")[:_MAX_KEPT_ENTRIES]]


def _log_ratio(column: Array, column_prime: Array, grain: Grain) -> float:
    """Return a cautious log ratio of the best half-line, by a normal approximation."""
    sides = [sorted_values(side) for side in (column, column_prime)]
    if not sides[0].size or not sides[1].size:
        return 0.0
    # Just below an order statistic: all of its atom is above the threshold, on both sides.
    points = np.concatenate([side[_choose_ranks(side.size)] for side in sides]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        points = points - 2.0 * grain.at(points)
    below = [np.searchsorted(side, points) for side in sides]
    sizes = len(column), len(column_prime)
    above = [side.size - count for side, count in zip(sides, below, strict=True)]
    return max(_lower_log_ratio(below, sizes), _lower_log_ratio(above, sizes))


def _lower_log_ratio(hits: list[Places], sizes: tuple[int, int]) -> float:
    first, second = (count + 0.5 for count in hits)
    ratio = np.log(first / sizes[0]) - np.log(second / sizes[1])
    error = np.sqrt(1.0 / first + 1.0 / second)
    return float(np.max(np.abs(ratio) - _RATIO_STANDARD_ERRORS * error))


def _choose_ranks(size: int) -> Places:
    """Return ranks in geometric steps from both ends."""
    steps = np.unique(np.geomspace(1, max(1, size // 2), 40).astype(np.intp)) - 1
    return np.unique(np.concatenate([steps, size - 1 - steps]))
