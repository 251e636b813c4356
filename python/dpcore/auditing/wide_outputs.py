"""Pilot of an audit whose outputs have many columns (entries), such as 10^5.

All outputs of the pilot (the first draws) together would not fit in memory. Therefore the first
half of the pilot is read block by block. For each column and each input, the count, the sum, the
sum of squares and a histogram with 16 bins are kept. These numbers show in which columns x and x'
differ most. The attacks learn from the values of these columns in the second half of the pilot.

A difference between x and x' that is spread over all columns is not visible in a single column.
Therefore two kinds of scores of all columns are added. The first is a weighted sum, whose weights
come from the first half of the pilot. The second is how much closer an output is to x than to x'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attacks.arrays import freeze_arrays, read_columns, read_numbers
from ..attacks.attack import Choice, Goal, ScoreAttack, best_threshold
from ..attacks.auto import Auto
from ..attacks.bins import Thresholds, score_thresholds, sorted_no_nan
from ..attacks.candidates import read_candidates
from ..attacks.classifier import Discriminant, LinearScore
from ..attacks.grains import EXACT, PLACES, Tolerance, column_tolerance, column_tolerances
from ..attacks.parts import name_entries, renamed_sentences
from ..attacks.threshold import Closer, Coordinate, RowSum, Threshold
from ..errors import invalid, mistyped
from ..events.event import Batch, Rough, Score, is_built_in, score_attribute, score_name, scores_of
from ..pairs.differences import pair_to_vectors
from ..records import Array, Floats, Ints, Pair, PartsRead, Record
from ..sampling.columns import PilotFacts, describe_constant_outputs, entries_equal, pilot_anomalies
from ..sampling.driver import Source
from ..streams import PILOT, SELECTION
from .column_screen import ColumnSums, centre_and_bin_width, choose_columns, fit_diagonal_score

Sides = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Outputs on x and on x'."""

WIDE_COLUMNS: Final = 2**15
"""Largest number of columns for which a small pilot is kept in memory. With more columns, a pilot
of any size is read block by block."""
WIDE_BYTES: Final = 2**29
"""Size in bytes of the pilot outputs on x and x' together, as float64. A pilot of this size or more
is read block by block."""
FEWEST_COLUMNS: Final = 2**9
"""Largest number of columns for which all pilot outputs are always kept in memory."""
_MAX_SCREENED_COLUMNS: Final = 2**22
"""Number of columns from which some are chosen. Further columns are ignored, because their sums
would not fit in memory."""
_CHUNK_NUMBERS: Final = 2**21
"""Number of values per input that are read at once. At least one block is read."""
_MAX_KEPT_NUMBERS: Final = 2**23
"""Largest number of values per input that are kept from the second half of the pilot."""
_FEWEST_HEAD_ROWS: Final = 4
"""Least number of outputs per input that determine the bins, if there are enough outputs."""
_FLOAT64_BITS: Final = 53
_NAMED_ENTRIES: Final = 3
_DISTANCES: Final = ("l1", "l2")
_PLACE_PATTERN: Final = re.compile(r"\boutput\[(\d+)\]")


def is_wide(elements: int, size: int) -> bool:
    """Return True if outputs are too large to keep all pilot outputs (the first draws) in memory.

    Args:
        elements: number of entries in one output.
        size: number of pilot draws per input.
    """
    if elements <= FEWEST_COLUMNS:
        return False
    return elements > WIDE_COLUMNS or 16 * elements * size >= WIDE_BYTES


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EntriesScore(Record, word="OfEntries"):
    """Score that reads only some entries of an output: ``score(outputs[:, entries])``.

    A score is a function that returns one real number per output.

    Args:
        entries: indices of these entries in the flattened output (row-major order), from 0, shape
            `(read,)`.
        score: function that takes the entries of several outputs, shape `(size, read)`, and returns
            one number per output, shape `(size,)`.

    Raises:
        TypeError: if `entries` does not contain integers, or `score` is not callable.
        ValueError: if `entries` is empty, or contains a negative number.

    Example:
        >>> score = EntriesScore([3, 1], lambda columns: columns[:, 0] - columns[:, 1])
        >>> score(np.array([[9.0, 1.0, 9.0, 5.0]])).tolist()
        [4.0]
    """

    entries: Ints
    score: Any

    def __post_init__(self) -> None:
        """Make `entries` read-only and check the arguments."""
        freeze_arrays(self, "entries")
        if not self.entries.size or self.entries.min() < 0:
            raise invalid("entries", "an array of numbers at least 0, not empty", self.entries)
        if not callable(self.score):
            raise mistyped("score", "a callable columns -> scores", self.score)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of `self.score`.

        Raises:
            AttributeError: if `self.score` does not have the attribute, or if the name begins with
                an underscore.
        """
        if name.startswith("_") or name in ("entries", "score"):
            raise AttributeError(name)
        return getattr(self.score, name)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output, shape `(size,)`."""
        rows = read_numbers(outputs, min_columns=int(self.entries.max()) + 1)
        return scores_of(self.score, rows[:, self.entries])

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score of each output, on the device where the outputs are (such as a GPU).

        The result is None if the function `score` of this object cannot compute on a device.
        """
        ask = score_attribute(self.score, "on_device")
        if ask is None or outputs.flat.shape[1] <= self.entries.max():
            return None
        scores: Rough | None = ask(Batch(outputs.flat[:, self.entries.tolist()]))
        return scores

    @property
    def rounding(self) -> Any:
        """Function that computes how much rounding may change the value of this score, or None.

        The argument of the function is a list that says how much rounding may change each entry of
        the output. The value is None if the attribute `score` has no such function.
        """
        inner = score_attribute(self.score, "rounding")
        return inner and (lambda grains: inner([grains[i] for i in self.entries.tolist()]))

    @property
    def alone(self) -> Any:
        """Function that describes this score if it reads only one entry, otherwise None.

        The function has no arguments. The function returns the index of the entry, and a function
        that computes the score from this entry.
        """
        inner = score_attribute(self.score, "alone")
        return inner and (lambda: (int(self.entries[inner()[0]]), inner()[1]))

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Two texts for a report. They describe outputs with larger and with smaller scores.

        The value is None if the attribute `score` has no such texts.
        """
        return renamed_sentences(self.score, self._rename)

    def _rename(self, text: str) -> str:
        """Replace numbers of columns in a text by the indices of the entries of the output."""
        return _renumber_columns(text, self.entries)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
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


def _renumber_columns(text: str, entries: Ints) -> str:
    """Replace numbers of chosen columns in a text by the indices of the entries of the output.

    Args:
        text: the text.
        entries: index of the entry of the output for each chosen column.
    """
    plain = _PLACE_PATTERN.sub(r"entry \1", text)
    return name_entries(plain, [f"entry {i}" for i in entries.tolist()])


class WholeScore(NamedTuple):
    """A score that reads all columns of an output, with its values on pilot outputs.

    The pilot is the first draws of an audit. The values are computed on the second half of the
    pilot.

    Args:
        score: the score, a function that returns one real number per output.
        values: values of the score for outputs on x and on x', each of shape `(size,)`.
        grain: how much rounding may change a value of the score.
    """

    score: Score
    values: tuple[Floats, Floats]
    grain: Tolerance

    def choose(self, goal: Goal) -> Choice:
        """Choose the threshold on this score with the largest expected bound on epsilon.

        Args:
            goal: settings of the planned audit: number of counted trials, delta, and confidence
                level.
        """
        return best_threshold(self.score, *self.values, self.grain, goal)

    def candidate_thresholds(self) -> Thresholds:
        """Return possible thresholds on this score: numbers between its stored values."""
        first, second = map(sorted_no_nan, self.values)
        return score_thresholds(first, second, self.grain)


@dataclass(frozen=True, slots=True)
class WideReading:
    """The kept columns of the pilot outputs (first draws), if all columns need too much memory.

    The pilot is the first draws of an audit. The columns in which outputs on x and x' differ most
    are chosen on the first half of the pilot. In the second half, only these columns are kept.

    Args:
        entries: indices of the chosen columns, increasing.
        groups: smaller groups of the chosen columns. An attack also learns from each group
            separately. A group is an array of positions in `entries`.
        pair: the two inputs x and x', reduced to the entries of the chosen columns. If an input
            does not have one number per column, both inputs are kept whole.
        learners: the attack that learns from the chosen columns, or None if no attack learns from
            them.
        rows: the chosen columns of the outputs in the second half of the pilot, on x and on x'.
        whole: scores that read all columns of an output.
        facts: facts on constant values in the outputs, such as "all outputs have one value".
        size: number of pilot draws per input.
        read: how many columns and outputs were read in each half of the pilot.
    """

    entries: Ints
    groups: tuple[Ints, ...]
    pair: Pair
    learners: ScoreAttack | None
    rows: Sides
    whole: tuple[WholeScore, ...]
    facts: PilotFacts
    size: int
    read: PartsRead

    @property
    def kept_values_per_row(self) -> int:
        """Number of values that are kept of one output.

        These are the chosen columns, and one value for each score that reads all columns.
        """
        return int(self.entries.size) + len(self.whole)

    @property
    def training_outputs(self) -> Sides:
        """Outputs on x and on x' that train the attack: every second kept pilot output.

        These outputs have only the chosen columns.
        """
        return self.rows[0][::2], self.rows[1][::2]

    @property
    def choosing_outputs(self) -> Sides:
        """Outputs on x and on x' that are used to choose the event.

        These are the kept pilot outputs that are not in `training_outputs`. They contain only the
        chosen columns.
        """
        return self.rows[0][1::2], self.rows[1][1::2]

    def extend(self, outputs: Sides) -> WideReading:
        """Return a copy of this object that also contains the chosen columns of further outputs.

        If all outputs together take too much memory, the oldest outputs are left out.

        Args:
            outputs: the further outputs on x and on x', with all columns.
        """
        most = _MAX_KEPT_NUMBERS // self.kept_values_per_row
        added = read_numbers(outputs[0])[:, self.entries], read_numbers(outputs[1])[:, self.entries]
        whole = []
        for scored in self.whole:
            values = scores_of(scored.score, outputs[0]), scores_of(scored.score, outputs[1])
            whole.append(scored._replace(values=_append_and_keep_last(scored.values, values, most)))
        return replace(self, rows=_append_and_keep_last(self.rows, added, most), whole=tuple(whole))

    def learn_scores(self, outputs_name: str) -> tuple[Score, ...]:
        """Return the scores that the attack learns from the chosen columns.

        A score is a function that returns one number per output. The attack learns from all chosen
        columns together, and from each smaller group of columns separately.

        Args:
            outputs_name: name of the outputs in error messages.
        """
        if self.learners is None:
            return ()
        training = self.training_outputs
        scores = list(read_candidates(self.learners, *training, self.pair, outputs_name)[0])
        for group in self.groups:
            sides = [side[:, group] for side in training]
            ends = [np.asarray(side) for side in (self.pair.x, self.pair.x_prime)]
            pair = self.pair
            if all(side.shape == self.entries.shape for side in ends):
                pair = replace(pair, x=ends[0][group], x_prime=ends[1][group])
            made = read_candidates(self.learners, sides[0], sides[1], pair, outputs_name)[0]
            scores += [widen_score(score, group) for score in made]
        return tuple(dict.fromkeys(scores))

    def choice_on_full_output(self, choice: Choice) -> Choice:
        """Convert an event that reads the chosen columns to the same event on whole outputs."""
        if any(choice.event.score is scored.score for scored in self.whole):
            return choice
        event = replace(choice.event, score=widen_score(choice.event.score, self.entries))
        rounding = None if choice.rounding is None else self.choice_on_full_output(choice.rounding)
        return replace(choice, event=event, rounding=rounding)


def _append_and_keep_last(sides: Sides, added: Sides, most: int) -> Sides:
    """Append rows on x and on x', and return the last `most` rows on each input."""
    first, second = (np.concatenate(parts) for parts in zip(sides, added, strict=True))
    return first[-most:], second[-most:]


def widen_score(score: Score, entries: Ints) -> Score:
    """Convert a score of chosen columns to the same score of whole outputs (all columns).

    Args:
        score: function of an array of the chosen columns that returns one number per output.
        entries: indices of the chosen columns in a whole output.

    Example:
        >>> print(widen_score(Coordinate(1), np.array([3, 8])))
        entry 8
    """
    if isinstance(score, EntriesScore):
        return EntriesScore(entries[score.entries], score.score)
    if isinstance(score, Coordinate):
        return Coordinate(int(entries[score.index]))
    alone = score_attribute(score, "alone")
    if alone is None:
        return EntriesScore(entries, score)
    place, inner = alone()
    return EntriesScore(entries[[place]], inner)


def split_learned_and_fixed(attack: Any) -> tuple[ScoreAttack | None, tuple[Threshold, ...]] | None:
    """Divide an attack for outputs with many columns into two kinds of attacks.

    An attack of the first kind learns from a few chosen columns. An attack of the second kind needs
    no learning. It uses a given score of whole outputs, such as "l1" or a function.

    Args:
        attack: an attack that makes scores.

    Returns:
        A pair. Its first entry is the attack of the first kind, or None without such an attack. Its
        second entry is a tuple of the attacks of the second kind. If the given attack is not from
        dpcore, the result is None instead of a pair. Such an attack must read whole outputs.
    """
    members = attack.members if type(attack) is Auto else (attack,)
    if not all(map(is_built_in, members)):
        return None
    stated = tuple(each for each in members if isinstance(each, Threshold) and _reads_whole(each))
    learners = tuple(each for each in members if each not in stated)
    if not stated:
        return attack, ()
    return (replace(attack, members=learners) if learners else None), stated


def _reads_whole(attack: Threshold) -> bool:
    return attack.score not in (None, "coordinate")


def _iterate_chunks(source: Source, purpose: int, size: int) -> Iterator[Sides | None]:
    """Yield draws on x and on x' in chunks of rows. Yield None if outputs are not numbers.

    Args:
        source: object that makes the draws of the mechanism.
        purpose: number of the random stream, such as that of the pilot.
        size: number of draws per input.
    """
    step = max(1, _CHUNK_NUMBERS // source.elements // source.block) * source.block
    for start in range(0, size, step):
        drawn = source.outputs(purpose, start, min(size, start + step))
        tables = [read_columns(side) for side in drawn]
        fits = all(rows is not None and rows.shape[1] == source.elements for rows in tables)
        yield (tables[0], tables[1]) if fits else None  # type: ignore[misc]


def _read_sums(source: Source, size: int) -> tuple[tuple[ColumnSums, ColumnSums], Sides] | None:
    """Read the first half of a pilot, and return its sums and histograms on x and on x'.

    Two outputs per input are returned too. The result is None if outputs are not numbers.
    """
    sums: tuple[ColumnSums, ColumnSums] | None = None
    waiting: list[Sides] = []
    heads: Sides | None = None
    rows = 0
    for chunk in _iterate_chunks(source, PILOT, size):
        if chunk is None:
            return None
        heads = heads or (chunk[0][:2].copy(), chunk[1][:2].copy())
        waiting.append((chunk[0][:, :_MAX_SCREENED_COLUMNS], chunk[1][:, :_MAX_SCREENED_COLUMNS]))
        rows += len(chunk[0])
        if sums is None and (rows >= _FEWEST_HEAD_ROWS or rows >= size):
            bins = centre_and_bin_width([side for both in waiting for side in both])
            sums = ColumnSums(*bins), ColumnSums(*bins)
        while sums is not None and waiting:
            for own, side in zip(sums, waiting.pop(0), strict=True):
                own.add(side)
    return None if sums is None or heads is None else (sums, heads)


def _make_whole_output_scores(
    attack: Any, stated: Sequence[Threshold], sums: Sequence[ColumnSums], heads: Sides, pair: Pair
) -> list[Score]:
    """Return the scores that read all columns.

    These are the given scores, the scores "closer to x than to x'" in L1 and L2, and the weighted
    sum of all columns.

    Args:
        attack: the attack of the audit.
        stated: thresholds on given scores in this attack.
        sums: sums and histograms on x and on x'.
        heads: two outputs on x and two outputs on x'.
        pair: the two inputs.
    """
    members = attack.members if isinstance(attack, Auto) else (attack,)
    scores: list[Score] = []
    for threshold in stated:
        scores += threshold.candidates(*heads, pair)
    if any(isinstance(each, Threshold) and each.score is None for each in members):
        for norm in _DISTANCES:
            scores += Threshold(norm).candidates(*heads, pair)
    if any(isinstance(each, Discriminant) for each in members):
        weighted = fit_diagonal_score(sums)
        scores += [] if weighted is None else [weighted]
    return list(dict.fromkeys(scores))


def _draw_chosen_columns_and_scores(
    source: Source, size: int, entries: Ints, scores: Sequence[Score]
) -> tuple[Sides, list[tuple[Floats, Floats]]] | None:
    """Draw the second half of a pilot, and keep its chosen columns.

    Args:
        source: object that makes the draws of the mechanism.
        size: number of draws per input.
        entries: indices of the chosen columns.
        scores: scores that read all columns.

    Returns:
        The chosen columns on x and on x', and the values of each score on x and on x'. None if
        outputs are not numbers.
    """
    rows: tuple[list[Array], list[Array]] = [], []
    values: list[tuple[list[Floats], list[Floats]]] = [([], []) for _ in scores]
    for chunk in _iterate_chunks(source, SELECTION, size):
        if chunk is None:
            return None
        for side in (0, 1):
            outputs = chunk[side].reshape(-1, *source.shape)
            rows[side].append(chunk[side][:, entries])
            for score, own in zip(scores, values, strict=True):
                own[side].append(scores_of(score, outputs))
    joined = [(np.concatenate(first), np.concatenate(second)) for first, second in values]
    return (np.concatenate(rows[0]), np.concatenate(rows[1])), joined


def _rounding_error_per_column(sums: Sequence[ColumnSums], rows: Sides, columns: int) -> Floats:
    """Return how much rounding may change the numbers in each column, shape `(columns,)`."""
    bits = [grain.bits for grain in column_tolerances(*rows) if grain.bits]
    squares = np.zeros(sums[0].centre.size)
    for side in sums:
        _, mean, variance = side.count_mean_var()
        squares = np.maximum(squares, (mean + side.centre) ** 2 + variance)
    sizes = np.minimum(np.sqrt(squares), np.finfo(np.float64).max / 2.0)
    moves = PLACES * np.spacing(sizes) * 2.0 ** (_FLOAT64_BITS - min(bits, default=_FLOAT64_BITS))
    return np.pad(moves, (0, columns - moves.size), constant_values=moves.max())


def _rounding_tolerance(score: Score, values: tuple[Floats, Floats], moves: Floats) -> Tolerance:
    """Return how much rounding may change a score that reads all columns.

    Args:
        score: the score.
        values: values of the score on x and on x'.
        moves: how much rounding may change the numbers in each column.
    """
    if isinstance(score, LinearScore):
        moved = float(np.sum(np.abs(score.weights) * moves[score.entries]))
        return Tolerance(_FLOAT64_BITS, 0.0, moved)
    if isinstance(score, (Closer, RowSum)):
        if isinstance(score, Closer) and score.norm == "l2":
            moves = np.abs(score.x - score.x_prime) * moves
        return Tolerance(_FLOAT64_BITS, 0.0, float(np.sum(moves)))
    if score_attribute(score, "merged"):
        return EXACT
    own = column_tolerance(*values)
    return own if isinstance(score, Coordinate) else replace(own, absolute=float(moves.max()))


def _facts_on_constant_outputs(
    sums: Sequence[ColumnSums], rows: Sides, entries: Ints, pair: Pair, claim: Any, delta: float
) -> PilotFacts:
    """Return facts on constants in the outputs, such as "all outputs have one value".

    Facts on all columns come from the first half of the pilot. Other facts are about the chosen
    columns.
    """
    firsts = [side.first for side in sums if side.first is not None]
    steady = all(side.steady.size == side.centre.size for side in sums)
    if steady and len(firsts) == 2 and bool(entries_equal(*firsts).all()):
        return PilotFacts(describe_constant_outputs(sums[0].rows, firsts[0]), True)
    notes = pilot_anomalies(rows, pair, claim, delta).notes
    return PilotFacts("", steady, tuple(_renumber_columns(note, entries) for note in notes))


def read_and_select_columns(
    source: Source,
    attack: ScoreAttack,
    pair: Pair,
    size: int,
    stated: Sequence[Score] = (),
    claim: Any = None,
    delta: float = 0.0,
) -> WideReading | None:
    """Read pilot outputs (the first draws) with many columns, and keep the most useful columns.

    The outputs are read block by block. The first half shows in which columns the outputs on x and
    x' differ most. In the second half, only these columns are kept.

    Args:
        source: object that draws outputs of the mechanism.
        attack: the attack that learns from the kept columns.
        pair: the two inputs x and x'.
        size: number of pilot draws per input.
        stated: functions that the mechanism itself provides. Each one takes outputs, and returns
            the log-likelihood ratio of x over x' for each output. Defaults to an empty tuple.
        claim: the claimed epsilon for this pair, a claimed curve of `dpcore.claims`, or None
            without a claim.
        delta: delta of the claim.

    Returns:
        The kept columns. The result is None if the outputs are not real numbers of one shape. It is
        also None if the attack is not from dpcore. Such an attack must read whole outputs.
    """
    divided = split_learned_and_fixed(attack)
    if divided is None:
        return None
    learners, whole = divided
    columns = source.elements
    source.course.bar.relabel(f"screening {columns:,} columns")
    streamed = _read_sums(source, max(1, size // 2))
    if streamed is None:
        return None
    sums, heads = streamed
    ends = pair_to_vectors(pair.x, pair.x_prime, source.shape)
    entries, groups = choose_columns(sums, ends)
    inner = [side.reshape(-1, *source.shape) for side in heads]
    scores = [*_make_whole_output_scores(attack, whole, sums, (inner[0], inner[1]), pair), *stated]
    source.course.bar.relabel(f"reading {entries.size:,} of {columns:,} columns")
    most = _MAX_KEPT_NUMBERS // (entries.size + len(scores))
    further = max(2, min(size - sums[0].rows, most))
    second = _draw_chosen_columns_and_scores(source, further, entries, scores)
    if second is None:
        return None
    rows, values = second
    moves = _rounding_error_per_column(sums, rows, columns)
    if ends is not None:
        pair = replace(pair, x=ends[0][entries], x_prime=ends[1][entries])
    return WideReading(
        entries,
        groups,
        pair,
        learners,
        rows,
        tuple(
            WholeScore(score, own, _rounding_tolerance(score, own, moves))
            for score, own in zip(scores, values, strict=True)
        ),
        _facts_on_constant_outputs(sums, rows, entries, pair, claim, delta),
        sums[0].rows + further,
        PartsRead(columns, sums[0].centre.size, sums[0].rows, int(entries.size), further),
    )
