"""Rows set aside for certificates: half teach a score and choose events, half are counted.

Only integers leave this file. Whatever is chosen, is chosen on the choosing rows; the counted rows
are independent of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ...records import Record
from ..estimators.score import Score, fit_score, is_fixed, most_trained, score_rows
from ..points.points import Points, one_of_each
from ..points.replicates import Labels
from ..raw import Reals, freeze_arrays

THRESHOLDS: Final = 200
FOLDS: Final = 4
"""Folds of the rows not counted: each is scored by what the other three teach, to choose on."""

_DENSE_RANKS: Final = 20
"""Ranks from either end of the choosing scores of each set that are all thresholds."""

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldOut(Record):
    """Numbers of rows that reach each threshold of a score.

    Args:
        thresholds: ascending, shape (t,). The event is "score >= threshold", or its opposite.
        chosen: choosing rows of each set that reach each threshold, shape (2, t), scored out of
            fold: by scores that the rows did not teach.
        chosen_rows: choosing rows of each set.
        counted: the same of the counted rows, shape (2, t).
        counted_rows: counted rows of each set.
        trained_rows: rows of each set that taught the score; (0, 0) for a score fixed in advance.
        one_per_group: True if one random row of each group was chosen on, and counted.
        score: what the score is, for the text of an event.
    """

    thresholds: Reals
    chosen: Whole
    chosen_rows: tuple[int, int]
    counted: Whole
    counted_rows: tuple[int, int]
    trained_rows: tuple[int, int]
    one_per_group: bool = False
    score: str = "score"

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "thresholds", "chosen", "counted")


def hold_out(
    points: Points,
    rng: np.random.Generator,
    score: Callable[..., Any] | None = None,
    one_per_group: bool = False,
) -> HeldOut:
    """Split the rows (or groups) once, fit a score, and count what reaches its thresholds.

    Half of the rows of each set are counted. The others teach the score, and choose: out of fold,
    scored by four more fits on three quarters of them each, whose scores are spread much as those
    of the counted rows will be. Where there are many more rows than a fit takes, those left over
    choose instead. A score fixed in advance needs no teaching.

    Args:
        points: both sets, not scaled: moments of all rows would let the counted rows have a say
            in the score that is counted on them.
        rng: the splits, training rows where there are too many, and the row of a group.
        score: as in `cross_fit`.
        one_per_group: True splits by group, and takes one random row of each group that chooses
            or is counted: rows of a group may be copies of each other. A set without groups is
            taken row by row. False takes all rows for independent.

    Returns:
        The counts.

    Raises:
        TypeError: if `score` is no callable of the two kinds or returns no numbers.
        ValueError: if the points are scaled, a set has fewer than 4 rows (or groups), or a score
            is not one finite number a row.
    """
    if points.scale is not None:
        raise invalid("points", "unscaled, since scaling has seen the counted rows", points.scale)
    parts = [
        _RowParts.of(f"y{side}", points.sizes[side], points.groups[side], one_per_group, rng)
        for side in (0, 1)
    ]
    fitted: Score
    if score is not None and is_fixed(score):
        fitted, trained = score, (0, 0)
        chosen = _held_out_scores(points, [part.choosing(None) for part in parts], fitted, trained)
    elif min(len(part.other) for part in parts) >= 2 * FOLDS * most_trained(points.dim):
        # Enough for a full fit in one fold; the other folds choose.
        fitted, trained = fit_score(
            points, _pair_rows(part.inside(0) for part in parts), rng, score
        )
        left = [np.concatenate([part.choosing(f) for f in range(1, FOLDS)]) for part in parts]
        chosen = _held_out_scores(points, left, fitted, trained)
    else:
        fitted, trained = fit_score(points, _pair_rows(part.other for part in parts), rng, score)
        chosen = _score_out_of_fold(points, parts, rng, score)
    counted = _held_out_scores(points, [part.counted for part in parts], fitted, trained)
    thresholds = _candidate_thresholds(*chosen)
    return HeldOut(
        thresholds=thresholds,
        chosen=_count_above(chosen, thresholds),
        chosen_rows=(len(chosen[0]), len(chosen[1])),
        counted=_count_above(counted, thresholds),
        counted_rows=(len(counted[0]), len(counted[1])),
        trained_rows=trained,
        one_per_group=one_per_group,
        score="logistic score" if score is None else "score",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _RowParts:
    """Sample rows of one set: those that are counted, and the folds of the others.

    Args:
        counted: rows that are counted, one of a group.
        other: all rows of the units that are not counted.
        fold: the fold of each of `other`.
        single: for each of `other`, whether it is the one row of its group that chooses.
    """

    counted: Labels
    other: Labels
    fold: Labels
    single: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        name: str,
        size: int,
        groups: Labels | None,
        one_per_group: bool,
        rng: np.random.Generator,
    ) -> _RowParts:
        labels = groups if one_per_group else None
        units = size if labels is None else int(labels.max()) + 1
        if units < 4:
            kind = "rows" if labels is None else "groups"
            raise invalid(name, f"of at least 4 {kind} for held-out events", units)
        place = rng.permutation(units)
        single = np.ones(size, bool)
        if labels is not None:
            single[:] = False
            single[one_of_each(labels, rng)] = True
            place = place[labels]
        counted = place >= units // 2
        other = np.flatnonzero(~counted)
        folds = min(FOLDS, units // 2)
        return cls(np.flatnonzero(counted & single), other, place[other] % folds, single[other])

    def inside(self, fold: int) -> Labels:
        """Return the rows of a fold."""
        return np.asarray(self.other[self.fold == fold])

    def outside(self, fold: int) -> Labels:
        """Return the rows of all other folds."""
        return np.asarray(self.other[self.fold != fold])

    def choosing(self, fold: int | None) -> Labels:
        """Return the rows of a fold (of all for None) that choose, one of a group."""
        here = self.single if fold is None else self.single & (self.fold == fold)
        return np.asarray(self.other[here])


def _pair_rows(rows: Iterable[Labels]) -> tuple[Labels, Labels]:
    first, second = rows
    return first, second


def _held_out_scores(
    points: Points, rows: list[Labels], score: Score, trained: tuple[int, int]
) -> tuple[Reals, Reals]:
    return score_rows(points, _pair_rows(rows), score, trained).values


def _score_out_of_fold(
    points: Points,
    parts: list[_RowParts],
    rng: np.random.Generator,
    score: Callable[..., Any] | None,
) -> tuple[Reals, Reals]:
    """Score the choosing rows by fits on the other folds."""
    found: list[tuple[Reals, Reals]] = []
    for fold in range(min(FOLDS, *(int(part.fold.max()) + 1 for part in parts))):
        fitted, trained = fit_score(
            points, _pair_rows(part.outside(fold) for part in parts), rng, score
        )
        found.append(
            _held_out_scores(points, [part.choosing(fold) for part in parts], fitted, trained)
        )
    return np.concatenate([v for v, _ in found]), np.concatenate([v for _, v in found])


def _candidate_thresholds(scores0: Reals, scores1: Reals) -> Reals:
    """Select about 200 choosing scores: dense at both ends of each set, even in between."""
    found = []
    for scores in (scores0, scores1):
        size = len(scores)
        even = np.linspace(0, size - 1, THRESHOLDS // 2 - 2 * _DENSE_RANKS).astype(np.int64)
        ends = np.arange(min(_DENSE_RANKS, size))
        ranks = np.concatenate([even, ends, size - 1 - ends])
        found.append(np.sort(scores)[np.unique(ranks)])
    return np.unique(np.concatenate(found))


def _count_above(scores: tuple[Reals, Reals], thresholds: Reals) -> Whole:
    """Count the rows of each set with score >= threshold."""
    below = [np.searchsorted(np.sort(values), thresholds, "left") for values in scores]
    return np.stack([len(v) - b for v, b in zip(scores, below, strict=True)]).astype(np.int64)
