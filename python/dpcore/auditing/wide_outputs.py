"""Pilots of wide outputs: a stream that keeps sums and bins of each column, and what it chooses.

A pilot of 10^5 columns does not fit in memory. Its first half is read block by block: count, sum,
sum of squares and 16 bins of each column and side are kept. The columns whose laws differ most go
on, and the attacks learn from these columns of the second half. No single column shows a shift that
is spread over all of them: a weighted sum of all columns, whose weights follow from the sums and
squares, is one more score, as is the distance to both inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attacks.arrays import (
    EXACT,
    PLACES,
    Grain,
    deviates_of,
    freeze_arrays,
    grain_of,
    grains_of,
    read_columns,
    read_numbers,
)
from ..attacks.attack import Choice, Goal, ScoreAttack, best_threshold
from ..attacks.auto import Auto
from ..attacks.bins import Marks, marks_of, sorted_values
from ..attacks.candidates import read_candidates
from ..attacks.classifier import Discriminant, LinearScore
from ..attacks.parts import name_entries, name_sentences
from ..attacks.threshold import Closer, Coordinate, RowSum, Threshold
from ..errors import invalid, mistyped
from ..events.event import Held, Rough, Score, is_own, score_attribute, score_name, scores_of
from ..pairs.differences import differing_points
from ..records import Array, Floats, Ints, Pair, PartsRead, Record
from ..sampling.columns import PilotFacts, describe_constant, describe_pilot
from ..sampling.driver import Source
from ..streams import PILOT, SELECTION

Sides = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Outputs on x and on x'."""

WIDE_COLUMNS: Final = 2**15
"""Columns beyond which a pilot of any size is read in a stream."""
WIDE_BYTES: Final = 2**29
"""Bytes of a pilot (both sides, as float64) from which it is read in a stream."""
FEWEST_COLUMNS: Final = 2**9
"""Columns up to which no pilot is: all of them could be chosen."""
_MAX_SCREENED_COLUMNS: Final = 2**22
"""Columns that are screened, the first ones; of more, the sums would fill the memory."""
_CHUNK_NUMBERS: Final = 2**21
"""Numbers per side of a chunk of the stream, which has one block at least."""
_MAX_KEPT_NUMBERS: Final = 2**23
"""Numbers per side that are kept of the second half."""
_SLICE_COLUMNS: Final = 2**14
"""Columns that are added up at a time: their table of bins stays in the cache."""
_BINS: Final = 16
_CELLS: Final = _BINS + 3
"""Cells of a column: its bins, then NaN, minus infinity and infinity."""
_BINNED_SPREADS: Final = 5.0
"""Standard deviations of the first rows that the bins cover; the outer bins are open."""
_HEAD_ROWS: Final = 16
"""Rows per side, at most, that the bins are laid out by."""
_MAX_PARTIAL_ROWS: Final = 255
"""Rows that counts of 8 bits hold."""
_CHOSEN_PER_TEST: Final = 48
"""Columns that each test chooses."""
_LEADERS_PER_TEST: Final = 4
"""The best of these, which are learnt from by themselves too: many columns carry the noise of all.
"""
_MAX_DIRECTED_COLUMNS: Final = 64
"""Columns that are chosen because the inputs differ most in them."""
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Standard errors taken off a log ratio: the best of many is good by luck."""
_FLOAT64_BITS: Final = 53
_TINY: Final = 1e-300
_NAMED_ENTRIES: Final = 3
_DISTANCES: Final = ("l1", "l2")
_PLACE_PATTERN: Final = re.compile(r"\boutput\[(\d+)\]")


def is_wide(elements: int, size: int) -> bool:
    """Return True if a pilot is read in a stream.

    Args:
        elements: numbers in one output.
        size: pilot draws per side.
    """
    if elements <= FEWEST_COLUMNS:
        return False
    return elements > WIDE_COLUMNS or 16 * elements * size >= WIDE_BYTES


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfEntries(Record, word="OfEntries"):
    """A score of some entries of the outputs: ``score(outputs[:, entries])``.

    Args:
        entries: which entries, counted from 0 in row-major order, shape `(read,)`.
        score: columns -> one real number per output.

    Raises:
        TypeError: if the entries are not whole numbers, or the score is not callable.
        ValueError: if there are none, or one is below 0.

    Example:
        >>> score = OfEntries([3, 1], lambda columns: columns[:, 0] - columns[:, 1])
        >>> score(np.array([[9.0, 1.0, 9.0, 5.0]])).tolist()
        [4.0]
    """

    entries: Ints
    score: Any

    def __post_init__(self) -> None:
        """Freeze the entries and check the fields."""
        freeze_arrays(self, "entries")
        if not self.entries.size or self.entries.min() < 0:
            raise invalid("entries", "an array of numbers at least 0, not empty", self.entries)
        if not callable(self.score):
            raise mistyped("score", "a callable columns -> scores", self.score)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the inner score, or raise an AttributeError."""
        if name.startswith("_") or name in ("entries", "score"):
            raise AttributeError(name)
        return getattr(self.score, name)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`."""
        rows = read_numbers(outputs, least=int(self.entries.max()) + 1)
        return scores_of(self.score, rows[:, self.entries])

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        ask = score_attribute(self.score, "on_device")
        if ask is None or outputs.flat.shape[1] <= self.entries.max():
            return None
        found: Rough | None = ask(Held(outputs.flat[:, self.entries.tolist()]))
        return found

    @property
    def rounding(self) -> Any:
        """The inner score's map from the grains of all entries; None without one."""
        inner = score_attribute(self.score, "rounding")
        return inner and (lambda grains: inner([grains[i] for i in self.entries.tolist()]))

    @property
    def alone(self) -> Any:
        """The function that names the one entry read, and its score; None for several."""
        inner = score_attribute(self.score, "alone")
        return inner and (lambda: (int(self.entries[inner()[0]]), inner()[1]))

    @property
    def sentences(self) -> tuple[str, str] | None:
        """The sentences of the inner score, with the true entries."""
        return name_sentences(self.score, self._rename)

    def _rename(self, text: str) -> str:
        """Return a text of the columns with the numbers of the true entries."""
        return _name_true_entries(text, self.entries)

    def __str__(self) -> str:
        """Return one line for a report."""
        text = score_name(self.score)
        renamed = self._rename(text)
        if renamed != text:
            return renamed
        names = ", ".join(f"entry {i}" for i in self.entries[:_NAMED_ENTRIES].tolist())
        more = self.entries.size - _NAMED_ENTRIES
        names += f" and {more} more" if more > 0 else ""
        if self.entries.size == 1 and "the output" in text:
            return text.replace("the output's cell", f"the cell of {names}").replace(
                "the output", names
            )
        return text.replace("the entries", names) if "the entries" in text else f"{text} of {names}"


def _name_true_entries(text: str, entries: Ints) -> str:
    """Return a text about chosen columns with the numbers of the true entries."""
    plain = _PLACE_PATTERN.sub(r"entry \1", text)
    return name_entries(plain, [f"entry {i}" for i in entries.tolist()])


class ColumnSums:
    """The sums and bins of the columns of one side, added up row by row.

    Args:
        centre: subtracted from each row before it is added up, shape `(columns,)`.
        widths: of the bins, shape `(columns,)`.
    """

    def __init__(self, centre: Floats, widths: Floats) -> None:
        self.centre, self.widths, self.rows = centre, widths, 0
        self.sums, self.squares = np.zeros(centre.size), np.zeros(centre.size)
        self.cells: Array = np.zeros((_CELLS, centre.size), np.uint8)
        self.first: Array | None = None
        self.steady: Ints = np.arange(centre.size)

    def add(self, rows: Array) -> None:
        """Add rows, shape `(size, columns)`."""
        for first in range(0, len(rows), _MAX_PARTIAL_ROWS):
            self._add_part(rows[first : first + _MAX_PARTIAL_ROWS])
        self.first = rows[0].copy() if self.first is None else self.first
        for row in rows:
            if not self.steady.size:
                break
            here, there = row[self.steady], self.first[self.steady]
            self.steady = self.steady[(here == there) | ((here != here) & (there != there))]

    def _add_part(self, rows: Array) -> None:
        self.rows += len(rows)
        if self.rows > np.iinfo(self.cells.dtype).max:
            self.cells = self.cells.astype(np.uint16 if self.rows < 2**16 else np.uint32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.centre.size, _SLICE_COLUMNS):
                part = slice(start, start + _SLICE_COLUMNS)
                self.cells[:, part] += self._add_slice(rows, part)

    def _add_slice(self, rows: Array, part: slice) -> npt.NDArray[np.uint8]:
        """Add some columns of the rows; return the numbers of rows in their cells."""
        centre, scale = self.centre[part], 1.0 / self.widths[part]
        counts = np.zeros((_CELLS, centre.size), np.uint8)
        moved, scaled = np.empty(centre.size), np.empty(centre.size)
        for row in rows:
            np.subtract(row[part], centre, out=moved, dtype=np.float64)
            places = self._place_in_bins(moved, scale, scaled)
            self.sums[part] += moved
            np.multiply(moved, moved, out=scaled)
            self.squares[part] += scaled
            most = _BINS if places.max(initial=0) < _BINS else _CELLS
            for cell in range(most):
                counts[cell] += (places == cell).view(np.uint8)
        return counts

    @staticmethod
    def _place_in_bins(moved: Floats, scale: Floats, scaled: Floats) -> npt.NDArray[np.uint8]:
        """Return the cell of each number; put 0 in the place of those that are not finite."""
        np.multiply(moved, scale, out=scaled)
        scaled += 0.5 * _BINS - 0.5
        np.clip(scaled, 0.0, _BINS - 1.0, out=scaled)
        if not math.isfinite(float(moved @ moved)):
            odd = ~np.isfinite(moved)
            kinds = np.where(np.isnan(moved[odd]), _BINS, np.where(moved[odd] < 0, 17.0, 18.0))
            moved[odd], scaled[odd] = 0.0, kinds
        return scaled.astype(np.uint8)

    def read_moments(self) -> tuple[Floats, Floats, Floats]:
        """Return count, mean and variance of the finite numbers of each column."""
        counts = self.cells[:_BINS].sum(axis=0, dtype=np.float64)
        held = np.maximum(counts, 1.0)
        means = self.sums / held
        variances = np.maximum(self.squares / held - means * means, 0.0)
        # What cancels in the difference says nothing.
        variances[variances <= 1e-12 * self.squares / held] = 0.0
        return counts, means, variances


def _lay_out_bins(heads: Sides) -> tuple[Floats, Floats]:
    """Return the centre and the width of the bins of each column, from the first rows."""
    pooled = np.concatenate([head[:_HEAD_ROWS] for head in heads]).astype(np.float64)
    pooled[~np.isfinite(pooled)] = np.nan
    held = np.maximum(np.count_nonzero(~np.isnan(pooled), axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.nansum(pooled, axis=0) / held
        centre[~np.isfinite(centre)] = 0.0
        pooled -= centre
        spread = np.sqrt(np.nansum(pooled * pooled, axis=0) / held)
    spread[~np.isfinite(spread)] = 1.0
    least = np.maximum(1e-9 * np.abs(centre), 1e-290)
    return centre, np.maximum(_BINNED_SPREADS * spread / _BINS, least)


def _screen_slice(sides: Sequence[ColumnSums], part: slice) -> list[Floats]:
    """Return how unlike the laws of some columns are: by bins, and by the best half-line."""
    cells = [side.cells[:, part].astype(np.float64) for side in sides]
    rows = [float(side.rows) for side in sides]
    pooled = cells[0] + cells[1]
    expected = [pooled * (size / sum(rows)) for size in rows]
    statistic = sum(
        ((own - fit) ** 2 / np.maximum(fit, _TINY)).sum(axis=0)
        for own, fit in zip(cells, expected, strict=True)
    )
    freedoms = np.count_nonzero(pooled, axis=0) - 1.0
    # In the order of the line: minus infinity, the bins, infinity; then each cell for itself.
    order = [_BINS + 1, *range(_BINS), _BINS + 2]
    below = [np.cumsum(one[order], axis=0) for one in cells]
    hits = [
        np.concatenate([under, under[-1] - under, one])
        for under, one in zip(below, cells, strict=True)
    ]
    ratios = np.abs(
        np.log((hits[0] + 0.5) / (rows[0] + 1.0)) - np.log((hits[1] + 0.5) / (rows[1] + 1.0))
    )
    errors = np.sqrt(1.0 / (hits[0] + 0.5) + 1.0 / (hits[1] + 0.5))
    cautious = (ratios - _RATIO_STANDARD_ERRORS * errors).max(axis=0)
    return [deviates_of(statistic, freedoms), cautious]


def rank_by_tests(sides: Sequence[ColumnSums]) -> list[Floats]:
    """Return how unlike the sides each column is: by mean, spread, bins and half-lines."""
    (size, mean, variance), (size_prime, mean_prime, variance_prime) = (
        side.read_moments() for side in sides
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        error = variance / np.maximum(size, 1.0) + variance_prime / np.maximum(size_prime, 1.0)
        shifts = np.abs(mean - mean_prime) / np.sqrt(error)
        spreads = np.abs(np.log(variance) - np.log(variance_prime))
        slices = [
            _screen_slice(sides, slice(start, start + _SLICE_COLUMNS))
            for start in range(0, mean.size, _SLICE_COLUMNS)
        ]
    by_bins = [np.concatenate(one) for one in zip(*slices, strict=True)]
    return [np.where(np.isnan(one), -np.inf, one) for one in (shifts, spreads, *by_bins)]


def choose_columns(
    sides: Sequence[ColumnSums], ends: tuple[Floats, Floats] | None
) -> tuple[Ints, tuple[Ints, ...]]:
    """Choose the columns whose laws differ most, and those in which the inputs differ most.

    Args:
        sides: sums on x and on x'.
        ends: the inputs as one number per column; None where they are none.

    Returns:
        Their numbers, increasing; and groups of them, by place, that are also learnt from by
        themselves: the best column of each test, and the best few of all tests.
    """
    ranked = []
    for merits in rank_by_tests(sides):
        most = np.argsort(-merits, kind="stable")[:_CHOSEN_PER_TEST]
        ranked.append(most[merits[most] > -np.inf])
    if ends is not None:
        apart = np.abs(ends[0] - ends[1])[: sides[0].centre.size]
        most = np.argsort(-apart, kind="stable")[:_MAX_DIRECTED_COLUMNS]
        ranked.append(most[apart[most] > 0.0])
    chosen = np.unique(np.concatenate(ranked))
    leaders = np.unique(np.concatenate([one[:1] for one in ranked]))
    few = np.unique(np.concatenate([one[:_LEADERS_PER_TEST] for one in ranked]))
    groups = [*leaders[:, np.newaxis], few]
    places = tuple(np.searchsorted(chosen, one) for one in groups if one.size < chosen.size)
    return (chosen.astype(np.int64), places) if chosen.size else (np.zeros(1, np.int64), ())


def weigh_columns(sides: Sequence[ColumnSums]) -> LinearScore | None:
    """Return the diagonal discriminant of all columns that vary; None if no mean differs.

    Source:
        Fisher (1936), Annals of Eugenics 7; Bickel and Levina (2004), Bernoulli 10, for
        independent columns.
    """
    (_, mean, variance), (_, mean_prime, variance_prime) = (side.read_moments() for side in sides)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = (mean - mean_prime) / (variance + variance_prime)
        varies = np.isfinite(weights) & (weights != 0.0)
        if not varies.any():
            return None
        centres = sides[0].centre + 0.5 * (mean + mean_prime)
        # In units of its own spread, as the draws of the stream have it.
        weights /= math.sqrt(float(np.sum(weights[varies] ** 2 * (variance + variance_prime)[varies])))
    entries = np.flatnonzero(np.isfinite(centres) & np.isfinite(weights) & (weights != 0.0))
    return LinearScore(entries, centres[entries], weights[entries]) if entries.size > 1 else None


class WholeScore(NamedTuple):
    """A score of whole outputs, with its values on the second half of the pilot.

    Args:
        score: outputs -> one real number per output.
        values: on x and on x', shape `(size,)` each.
        grain: what rounding may move the values by.
    """

    score: Score
    values: tuple[Floats, Floats]
    grain: Grain

    def choose(self, goal: Goal) -> Choice:
        """Choose the best threshold; no draw here has fitted the score."""
        return best_threshold(self.score, *self.values, self.grain, goal)

    def make_marks(self) -> Marks:
        """Make thresholds between the values."""
        return marks_of(*map(sorted_values, self.values), self.grain)


@dataclass(frozen=True, slots=True)
class WideReading:
    """The pilot of wide outputs, as far as it is kept.

    Args:
        entries: the chosen columns, increasing.
        groups: places of chosen columns that are also learnt from by themselves.
        pair: the inputs on these columns; as they were where they are not numbers of columns.
        learners: the attack on the chosen columns; None where the attack reads whole outputs only.
        training: the chosen columns of the outputs that the attack learns from.
        rest: those of the outputs that choose the event.
        whole: scores of whole outputs.
        facts: constants of the outputs.
        size: pilot draws per side.
        read: what was screened.
    """

    entries: Ints
    groups: tuple[Ints, ...]
    pair: Pair
    learners: ScoreAttack | None
    training: Sides
    rest: Sides
    whole: tuple[WholeScore, ...]
    facts: PilotFacts
    size: int
    read: PartsRead

    def make_scores(self, name: str) -> tuple[Score, ...]:
        """Return the scores that the attack makes of the chosen columns, and of groups of them.

        Args:
            name: what complaints call the outputs.
        """
        if self.learners is None:
            return ()
        found = list(read_candidates(self.learners, *self.training, self.pair, name)[0])
        for group in self.groups:
            sides = [side[:, group] for side in self.training]
            ends = [np.asarray(side) for side in (self.pair.x, self.pair.x_prime)]
            pair = self.pair
            if all(side.shape == self.entries.shape for side in ends):
                pair = replace(pair, x=ends[0][group], x_prime=ends[1][group])
            made = read_candidates(self.learners, sides[0], sides[1], pair, name)[0]
            found += [widen_score(score, group) for score in made]
        return tuple(dict.fromkeys(found))

    def widen(self, choice: Choice | None) -> Choice | None:
        """Return a choice on the chosen columns as one on whole outputs."""
        if choice is None or any(choice.event.score is one.score for one in self.whole):
            return choice
        event = replace(choice.event, score=widen_score(choice.event.score, self.entries))
        return replace(choice, event=event, rounding=self.widen(choice.rounding))


def widen_score(score: Score, entries: Ints) -> Score:
    """Return a score of chosen columns as one of whole outputs.

    Example:
        >>> print(widen_score(Coordinate(1), np.array([3, 8])))
        entry 8
    """
    if isinstance(score, OfEntries):
        return OfEntries(entries[score.entries], score.score)
    if isinstance(score, Coordinate):
        return Coordinate(int(entries[score.index]))
    alone = score_attribute(score, "alone")
    if alone is None:
        return OfEntries(entries, score)
    place, inner = alone()
    return OfEntries(entries[[place]], inner)


def divide_attack(attack: Any) -> tuple[ScoreAttack | None, tuple[Threshold, ...]] | None:
    """Divide an attack into what learns from columns and thresholds on stated functions or entries.

    Args:
        attack: a score attack.

    Returns:
        Both parts; None for somebody else's attack, which reads whole outputs.
    """
    members = attack.members if type(attack) is Auto else (attack,)
    if not all(map(is_own, members)):
        return None
    stated = tuple(one for one in members if isinstance(one, Threshold) and _reads_whole(one))
    learners = tuple(one for one in members if one not in stated)
    if not stated:
        return attack, ()
    return (replace(attack, members=learners) if learners else None), stated


def _reads_whole(attack: Threshold) -> bool:
    return attack.score not in (None, "coordinate")


def _iterate_chunks(source: Source, purpose: int, size: int) -> Iterator[Sides | None]:
    """Yield the rows of some draws, a chunk at a time; None for outputs that are not numbers."""
    rows = max(1, _CHUNK_NUMBERS // source.elements // source.block) * source.block
    for start in range(0, size, rows):
        drawn = source.outputs(purpose, start, min(size, start + rows))
        tables = [read_columns(side) for side in drawn]
        fits = all(one is not None and one.shape[1] == source.elements for one in tables)
        yield (tables[0], tables[1]) if fits else None  # type: ignore[misc]


def _read_sums(source: Source, size: int) -> tuple[tuple[ColumnSums, ColumnSums], Sides] | None:
    """Add up the first half of a pilot; return the sums and the first rows, or None."""
    sums: tuple[ColumnSums, ColumnSums] | None = None
    heads: Sides | None = None
    for chunk in _iterate_chunks(source, PILOT, size):
        if chunk is None:
            return None
        screened = [side[:, :_MAX_SCREENED_COLUMNS] for side in chunk]
        if sums is None or heads is None:
            bins = _lay_out_bins((screened[0], screened[1]))
            sums = ColumnSums(*bins), ColumnSums(*bins)
            heads = chunk[0][:2].copy(), chunk[1][:2].copy()
        for own, side in zip(sums, screened, strict=True):
            own.add(side)
    return None if sums is None or heads is None else (sums, heads)


def _list_whole_scores(
    attack: Any,
    stated: Sequence[Threshold],
    sums: Sequence[ColumnSums],
    heads: Sides,
    pair: Pair,
    has_distance: bool,
) -> list[Score]:
    """List the scores of all columns: what the attack states, distances, the weighted sum."""
    members = attack.members if isinstance(attack, Auto) else (attack,)
    found: list[Score] = []
    for one in stated:
        found += one.candidates(*heads, pair)
    # Where all columns with other inputs are chosen, these have the same distance.
    if has_distance and any(isinstance(one, Threshold) and one.score is None for one in members):
        for norm in _DISTANCES:
            found += Threshold(norm).candidates(*heads, pair)  # type: ignore[arg-type]
    if any(isinstance(one, Discriminant) for one in members):
        weighted = weigh_columns(sums)
        found += [] if weighted is None else [weighted]
    return list(dict.fromkeys(found))


def _keep_columns(
    source: Source, size: int, entries: Ints, scores: Sequence[Score]
) -> tuple[Sides, list[tuple[Floats, Floats]]] | None:
    """Draw the second half; keep the chosen columns and the scores of whole outputs, or None."""
    kept: tuple[list[Array], list[Array]] = [], []
    values: list[tuple[list[Floats], list[Floats]]] = [([], []) for _ in scores]
    for chunk in _iterate_chunks(source, SELECTION, size):
        if chunk is None:
            return None
        for side in (0, 1):
            outputs = chunk[side].reshape(-1, *source.shape)
            kept[side].append(chunk[side][:, entries])
            for score, own in zip(scores, values, strict=True):
                own[side].append(scores_of(score, outputs))
    sides = np.concatenate(kept[0]), np.concatenate(kept[1])
    return sides, [(np.concatenate(one), np.concatenate(other)) for one, other in values]


def _measure_moves(sums: Sequence[ColumnSums], kept: Sides, columns: int) -> Floats:
    """Return what rounding may move the numbers of each column by, shape `(columns,)`."""
    bits = [grain.bits for grain in grains_of(*kept) if grain.bits]
    squares = np.zeros(sums[0].centre.size)
    for side in sums:
        _, mean, variance = side.read_moments()
        squares = np.maximum(squares, (mean + side.centre) ** 2 + variance)
    sizes = np.minimum(np.sqrt(squares), np.finfo(np.float64).max / 2.0)
    moves = PLACES * np.spacing(sizes) * 2.0 ** (_FLOAT64_BITS - min(bits, default=_FLOAT64_BITS))
    return np.pad(moves, (0, columns - moves.size), constant_values=moves.max())


def _find_grain(score: Score, values: tuple[Floats, Floats], moves: Floats) -> Grain:
    """Return what rounding may move a score of whole outputs by."""
    if isinstance(score, LinearScore):
        return Grain(_FLOAT64_BITS, 0.0, float((np.abs(score.weights) * moves[score.entries]).sum()))
    if isinstance(score, (Closer, RowSum)):
        apart = score.x - score.x_prime if isinstance(score, Closer) and score.norm == "l2" else 1.0
        return Grain(_FLOAT64_BITS, 0.0, float((np.abs(apart) * moves).sum()))
    if score_attribute(score, "merged"):
        return EXACT
    own = grain_of(*values)
    return own if isinstance(score, Coordinate) else replace(own, absolute=float(moves.max()))


def _describe_facts(
    sums: Sequence[ColumnSums], kept: Sides, entries: Ints, pair: Pair, claim: Any, delta: float
) -> PilotFacts:
    """Describe what is constant: in all columns by the stream, else in the chosen ones."""
    firsts = [side.first for side in sums if side.first is not None]
    steady = all(side.steady.size == side.centre.size for side in sums)
    if steady and len(firsts) == 2 and np.array_equal(*firsts, equal_nan=firsts[0].dtype.kind == "f"):
        return PilotFacts(describe_constant(sums[0].rows, firsts[0]), True)
    notes = describe_pilot(kept, pair, claim, delta).notes
    return PilotFacts("", steady, tuple(_name_true_entries(note, entries) for note in notes))


def read_wide(
    source: Source,
    attack: ScoreAttack,
    pair: Pair,
    size: int,
    stated: Sequence[Score] = (),
    claim: Any = None,
    delta: float = 0.0,
) -> WideReading | None:
    """Read a pilot of wide outputs in a stream: screen the columns, keep those that differ most.

    Args:
        source: where draws come from.
        attack: what learns from the chosen columns.
        pair: the two inputs.
        size: pilot draws per side.
        stated: scores that the mechanism itself states.
        claim: epsilon of the claim for the pair, a curve, or None.
        delta: delta of the claim.

    Returns:
        What was kept; None where the outputs are not real numbers of one shape, or the attack is
        somebody else's, which reads whole outputs.
    """
    divided = divide_attack(attack)
    if divided is None:
        return None
    learners, whole = divided
    columns = source.elements
    source.course.bar.relabel(f"screening {columns:,} columns")
    streamed = _read_sums(source, max(1, size // 2))
    if streamed is None:
        return None
    sums, heads = streamed
    ends = differing_points(pair.x, pair.x_prime, source.shape)
    entries, groups = choose_columns(sums, ends)
    inner = [side.reshape(-1, *source.shape) for side in heads]
    has_distance = ends is not None and np.count_nonzero(ends[0] != ends[1]) > np.count_nonzero(
        ends[0][entries] != ends[1][entries]
    )
    listed = _list_whole_scores(attack, whole, sums, (inner[0], inner[1]), pair, has_distance)
    scores = [*listed, *stated]
    source.course.bar.relabel(f"reading {entries.size:,} of {columns:,} columns")
    most = _MAX_KEPT_NUMBERS // (entries.size + len(scores))
    further = max(2, min(size - sums[0].rows, most))
    held = _keep_columns(source, further, entries, scores)
    if held is None:
        return None
    kept, values = held
    moves = _measure_moves(sums, kept, columns)
    if ends is not None:
        pair = replace(pair, x=ends[0][entries], x_prime=ends[1][entries])
    cut = further // 2
    return WideReading(
        entries, groups, pair, learners,
        (kept[0][:cut], kept[1][:cut]), (kept[0][cut:], kept[1][cut:]),
        tuple(
            WholeScore(score, own, _find_grain(score, own, moves))
            for score, own in zip(scores, values, strict=True)
        ),
        _describe_facts(sums, kept, entries, pair, claim, delta),
        sums[0].rows + further,
        PartsRead(columns, sums[0].centre.size, sums[0].rows, int(entries.size), further),
    )  # fmt: skip
