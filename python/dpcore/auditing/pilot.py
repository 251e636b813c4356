"""Pilot of an audit: the first draws, on which an attack chooses the event.

The pilot draws are not counted. They also show on which input the event is more frequent (the
direction of the event). From the same draws, dpcore chooses thresholds on the score of an output.
The counts at these thresholds give the trade-off curve.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Final, cast

import numpy as np

from ..attacks import FloatLattice
from ..attacks.attack import (
    Choice,
    Fitted,
    Goal,
    ScoreAttack,
    choose_events,
    merit_of,
    rank_of,
    score_ns,
)
from ..attacks.candidates import choose_presence_type_length_rules, read_candidates
from ..attacks.grains import use_tolerance_threads
from ..attacks.parts import OfColumns, Part, cache_parts
from ..attacks.threshold import negative_zero_count_scores
from ..claims.trade_off import Claim
from ..errors import show
from ..events.event import Event, Never, Score, evaluate_event, scores_of
from ..mechanisms import answers
from ..mechanisms.callables import is_unbatched
from ..records import Array, Counts, Floats, Pair, SeenOutput
from ..report.shown import on_one_line
from ..results.evidence import put_numerator_first
from ..sampling.columns import PilotFacts, pilot_anomalies
from ..sampling.driver import Source
from ..sampling.sources import Place
from ..streams import PILOT, PROBE
from .event_choice import (
    Sides,
    choose_by_cross_fitting,
    choose_by_stated_ratio,
    choose_event_of_wide_outputs,
    draw_first_outputs,
    extend_first_outputs,
    list_thresholds,
    note_no_bound,
    select_event,
)
from .output_forms import TYPE_CHECK_CALLS, note_type_difference, types_always_differ
from .wide_outputs import WideReading, is_wide, read_and_select_columns

_MAX_TRAINING_ROWS: Final = 2**21
_SMALL_PILOT_ROWS: Final = 2**12
_MAX_TRAINING_ELEMENTS: Final = 2**26
"""Largest number of values of training draws per input in memory: half a gibibyte per input."""
_MAX_WHOLE_ELEMENTS: Final = 2**24
"""Largest number of values per input that are kept of outputs with many columns, for an attack that
reads whole outputs."""
_MAX_LATTICE_ELEMENTS: Final = 2**18
"""Number of values per input for the attack on floating-point bits. At least `_MIN_LATTICE_ROWS`
outputs are used."""
_MIN_LATTICE_ROWS: Final = 2**12
_MAX_SEARCHED_OUTPUTS: Final = 2**12
"""Number of outputs per input that are searched for examples of the event for the report."""
_SEEN_OUTPUT_WIDTH: Final = 80
_MAX_SEEN_OUTPUTS: Final = 5
_MANY_PARTS_LIMIT: Final = 64
_MIN_KEPT_OBJECTS: Final = 64
_MIN_PROBED_ANSWERS: Final = 8
"""Least number of outputs that are drawn to measure the memory of an output. A function that makes
one output per call makes a sixteenth of the pilot for this, but at least this number."""
_MAX_OBJECT_BYTES: Final = 2**26
"""Largest size of objects that are kept at once, in bytes per input after serialization. In memory,
objects take several times this size."""
_SELDOM_LIMIT: Final = 4
_MAX_PRESENCE_OUTPUTS: Final = 2**14
"""Number of outputs per input that are searched for types, lengths and keys that occur on one input
only."""
_SIMILAR_RATE_RATIO: Final = 0.98
_MIN_MERIT_RATIO: Final = 1.02
"""Least ratio of two expected bounds: the bound from a log ratio that the mechanism states, divided
by the bound from the pilot. If the ratio is smaller, the log ratio is not used."""
_MAX_CURVE_THRESHOLDS: Final = 48


def split_pilot_size(pilot: int, elements: int, has_many_parts: bool = False) -> tuple[int, int]:
    """Divide the pilot (first draws) into draws to train an attack and draws to choose an event.

    In general, a quarter of the pilot is for training. For a small pilot of outputs with many
    parts, the share for training is larger, but at most a half.

    Args:
        pilot: number of pilot draws per input.
        elements: number of values in one output.
        has_many_parts: True if an output has many parts, such as words or keys.

    Returns:
        Two numbers of draws per input: first for the training, then for the choice of the event.
    """
    share = pilot // 4
    if has_many_parts:
        share = max(share, min(pilot, _SMALL_PILOT_ROWS) // 2)
    training = min(max(1, share), _max_training_rows(elements))
    return training, pilot - training


def _max_training_rows(elements: int) -> int:
    return max(1, min(_MAX_TRAINING_ROWS, _MAX_TRAINING_ELEMENTS // max(1, elements)))


@dataclass(frozen=True, slots=True)
class PilotDraws:
    """Pilot of an audit: the first draws, on which an attack chooses the event to count.

    Args:
        source: object that draws outputs of the mechanism.
        pair: the two inputs x and x'.
        goal: settings of the planned audit: number of counted trials, delta, and confidence level.
        size: number of pilot draws per input.
        lattice: if True, the pilot is also searched for events on the low-order bits of floats and
            the signs of zeros.
        stated: functions that the mechanism itself defines. Each function returns the
            log-likelihood ratio of x over x' for each output.
        claim: the claimed epsilon for this pair, or a claimed curve of `dpcore.claims`. None
            without a claim.
    """

    source: Source
    pair: Pair
    goal: Goal
    size: int
    lattice: bool = False
    stated: tuple[Score, ...] = ()
    claim: float | Claim | None = None
    _facts: list[PilotFacts] = field(default_factory=list, compare=False)

    @property
    def facts(self) -> PilotFacts:
        """Facts on constant values in the pilot outputs (the first outputs of an audit).

        An example of such a fact is that all outputs have the same value.
        """
        return self._facts[-1] if self._facts else PilotFacts()

    def _record_pilot_anomalies(self, sides: Sides) -> None:
        self._facts.append(pilot_anomalies(sides, self.pair, self.claim, self.goal.delta))

    def note_constant_outputs(self, fitted: Fitted, *, null: bool) -> Fitted:
        """Add notes on constant pilot outputs (first draws) to the result of an attack.

        Args:
            fitted: the result of the attack: the event to count, and notes for the report.
            null: True if x and x' may be equal. In this case, the result has no warning that all
                outputs have the same value.

        Returns:
            A copy of `fitted` with the added notes.
        """
        facts = self.facts
        constant = "" if null else facts.constant
        notes = (*fitted.notes, *facts.list_notes(fitted.event))
        return replace(fitted, constant=constant, is_steady=facts.is_steady, notes=notes)

    def outputs(self) -> Sides:
        """Draw the outputs of the pilot (the first draws of an audit) on x and on x'.

        If not all outputs fit in the memory limit, only the first outputs are drawn.
        """
        source = self.source
        most = _max_training_rows(source.elements)
        if is_wide(source.elements, self.size):
            most = max(1, min(most, _MAX_WHOLE_ELEMENTS // source.elements))
        size = min(self.size, most)
        sides: Sides = source.convert_to_common_type(*source.outputs(PILOT, 0, size))
        self._record_pilot_anomalies(sides)
        return sides

    def _rows_kept_and_has_many_parts(self) -> tuple[int, bool]:
        """Return the number of outputs per input that are kept at once.

        The second value of the result is True if outputs have many parts. If outputs are objects or
        texts, a few outputs are drawn to measure their memory.
        """
        source = self.source
        if source.shape != () or source.draws.native or self.size <= _MIN_KEPT_OBJECTS:
            return self.size, source.elements >= _MANY_PARTS_LIMIT
        rows = _MIN_KEPT_OBJECTS
        if is_unbatched(source.draws.mechanism):
            rows = min(rows, max(_MIN_PROBED_ANSWERS, self.size // 16))
        place = Place(TYPE_CHECK_CALLS + 1, rows, 0, rows)
        source.course.add_outputs(rows)
        some = source.draws.draw(PROBE, 0, place)
        n_rows = max(
            _MIN_KEPT_OBJECTS, int(_MAX_OBJECT_BYTES / max(1.0, answers.mean_stored_bytes(some)))
        )
        return n_rows, some.dtype.kind in "OUSV"

    def _draw_for_choice(
        self, trained: Sides, selection: int, limit: int, drawn: Sides | None = None
    ) -> tuple[Sides, tuple[tuple[Array, ...], tuple[Array, ...]]]:
        """Draw the outputs on which the event is chosen.

        Args:
            trained: the training outputs on x and on x'.
            selection: number of draws per input for the choice.
            limit: largest number of outputs per input.
            drawn: outputs for the choice that were drawn earlier, or None.

        Returns:
            Two pairs for x and x'. The first pair contains the outputs for the choice. The second
            pair contains all outputs: the training outputs, and then the outputs for the choice.
        """
        if drawn is None:
            rest = draw_first_outputs(self.source, selection, limit)
        else:
            rest = extend_first_outputs(self.source, drawn, selection, limit)
        if len({side.dtype == object for side in (*trained, *rest)}) > 1:
            # Both sides of all parts must have the same form.
            to_objects = answers.rows_to_objects
            trained, rest = ((to_objects(own), to_objects(other)) for own, other in (trained, rest))
        own, other = map(_merge_parts_only_if_shapes_differ, zip(trained, rest, strict=True))
        return rest, (own, other)

    def counts(self, event: Event, draws_per_input: int) -> Counts:
        """Count how often an event occurs in the pilot (the first draws of an audit).

        Args:
            event: the event.
            draws_per_input: number of draws per input in which the event is counted.
        """
        hits = [side.hits[0] for side in self.source.tally(event, PILOT, 0, draws_per_input)]
        if not self._facts and not self.source.draws.native and {*hits} <= {0, draws_per_input}:
            # No difference was counted, so check if all outputs are one value.
            self.outputs()
        return Counts(hits[0], draws_per_input, hits[1], draws_per_input)

    def choose_score_and_event(self, attack: ScoreAttack) -> Fitted:
        """Choose the event that an audit counts: a score, and a threshold on this score.

        A score is a function that returns one number per output. The attack proposes the scores.
        """
        source, pair, goal = self.source, self.pair, self.goal
        reading = self._read_if_many_columns(attack)
        if reading is not None:
            return self._fit_wide(attack, reading)
        limit, has_many_parts = self._rows_kept_and_has_many_parts()
        training, selection = split_pilot_size(self.size, source.elements, has_many_parts)
        training = min(training, limit)
        outputs, outputs_prime = source.convert_to_common_type(*source.outputs(PILOT, 0, training))
        source.course.bar.relabel("reading the outputs")
        name = f"outputs of {source.name}"
        # An executor's workers draw, but the fit runs in a thread of this process.
        with use_tolerance_threads(source.threads if source.executor is None else 1):
            scores, read = read_candidates(attack, outputs, outputs_prime, pair, name)
        scores += self.stated
        source.course.bar.relabel("choosing the event")
        sides = outputs, outputs_prime
        float_scores = make_float_bit_scores(scores, sides, pair) if self.lattice else ()
        types = note_type_difference(outputs, outputs_prime)

        trained = outputs, outputs_prime
        (rest, rest_prime), wholes = self._draw_for_choice(trained, selection, limit)
        irregular = any(part.dtype.kind in "OUSV" for whole in wholes for part in whole)
        if irregular and _has_structure_rare_on_one_side(*map(answers.join_outputs, wholes)):
            # More draws show if this is chance. If the whole pilot is kept, the new draws are kept
            # too.
            selection += self.size
            limit = selection if limit >= self.size else limit
            drawn = rest, rest_prime
            (rest, rest_prime), wholes = self._draw_for_choice(trained, selection, limit, drawn)
        seldom = attack.seldom(*wholes, goal)
        crossed = choose_by_cross_fitting(attack, wholes, goal)
        self._record_pilot_anomalies(trained)
        if self.facts != PilotFacts():
            # Only outputs with constants are read again, now all of them.
            first, second = map(answers.join_outputs, wholes)
            self._record_pilot_anomalies((first, second))
        del outputs, outputs_prime, trained, wholes
        notes = types if types and types_always_differ(source, types) else ()
        watched = (
            max(choose_events(float_scores, rest, rest_prime, goal), key=merit_of)
            if float_scores
            else None
        )
        watched = None if watched is None or watched.merit <= 0.0 else watched
        if not scores:
            attack.no_scores(rest)
            nothing = Fitted(Never(), "x", 0.0, training + selection, np.empty(0), watched, notes)
            return replace(nothing, read=read)
        looked = rest, rest_prime
        chosen = select_event(source, scores, looked, selection, goal, in_tail=True)
        if seldom is not None and _is_better_rare_event(seldom, chosen):
            chosen = seldom
        if crossed is not None and crossed.merit > max(0.0, chosen.merit):
            chosen = crossed
        for score in self.stated:
            values = scores_of(score, rest), scores_of(score, rest_prime)
            promised = choose_by_stated_ratio(score, values, goal)
            if promised is not None and promised.merit > max(0.0, _MIN_MERIT_RATIO * chosen.merit):
                chosen = promised
        watches = [watch for watch in (watched, chosen.rounding) if watch is not None]
        chosen = chosen.farther or chosen
        event = chosen.counted
        return Fitted(
            event,
            chosen.direction,
            chosen.merit,
            training + selection,
            _tradeoff_thresholds(chosen, (rest, rest_prime)) if event.happens else np.empty(0),
            max(watches, key=merit_of, default=None),
            notes,
            note_no_bound([chosen], rest),
            read,
            frequent_outputs(event, rest, rest_prime),
            chosen.counts,
        )

    def _read_if_many_columns(self, attack: ScoreAttack) -> WideReading | None:
        """Read the pilot row by row if outputs have many columns; otherwise return None."""
        if not is_wide(self.source.elements, self.size):
            return None
        asks = self.stated, self.claim, self.goal.delta
        return read_and_select_columns(self.source, attack, self.pair, self.size, *asks)

    def _fit_wide(self, attack: ScoreAttack, reading: WideReading) -> Fitted:
        """Choose the event for outputs of many columns, on chosen columns or on all columns."""
        source, training, rest = self.source, reading.training_outputs, reading.choosing_outputs
        floats: tuple[Score, ...] = ()
        with use_tolerance_threads(source.threads if source.executor is None else 1):
            scores = reading.learn_scores(f"outputs of {source.name}")
            source.course.bar.relabel("choosing the event")
            if self.lattice:
                floats = make_float_bit_scores(scores, training, reading.pair)
        self._facts.append(reading.facts)
        types = note_type_difference(*training)
        notes = types if types and types_always_differ(source, types) else ()
        watched = [
            reading.choice_on_full_output(choice)
            for choice in choose_events(floats, *rest, self.goal)
            if choice.merit > 0.0
        ]
        if not scores and not reading.whole:
            attack.no_scores(rest[0])
            finding = max(watched, key=merit_of, default=None)
            nothing = Fitted(Never(), "x", 0.0, reading.size, np.empty(0), finding, notes)
            return replace(nothing, read=reading.read)
        chosen, thresholds = self._event_and_curve_thresholds(scores, reading)
        remarks = note_no_bound([chosen], rest[0])
        chosen = reading.choice_on_full_output(chosen)
        if chosen.rounding is not None:
            watched.append(chosen.rounding)
        return Fitted(
            chosen.counted,
            chosen.direction,
            chosen.merit,
            reading.size,
            thresholds,
            max(watched, key=merit_of, default=None),
            notes,
            remarks,
            reading.read,
            counts=chosen.counts,
        )

    def _event_and_curve_thresholds(
        self, scores: tuple[Score, ...], reading: WideReading
    ) -> tuple[Choice, Floats]:
        """Return the best event, and the thresholds at which the trade-off curve is counted."""
        goal, training, rest = self.goal, reading.training_outputs, reading.choosing_outputs
        chosen, whole = choose_event_of_wide_outputs(self.source, scores, reading, goal)
        seldom = None
        if reading.learners is not None:
            parts = (training[0], rest[0]), (training[1], rest[1])
            seldom = reading.learners.seldom(*parts, goal)
        if seldom is not None and _is_better_rare_event(seldom, chosen):
            chosen, whole = seldom, None
        for scored in reading.whole:
            if scored.score not in self.stated:
                continue
            promised = choose_by_stated_ratio(scored.score, scored.values, goal)
            if promised is not None and promised.merit > max(0.0, _MIN_MERIT_RATIO * chosen.merit):
                chosen, whole = promised, scored
        if not chosen.counted.happens:
            return chosen, np.empty(0)
        if whole is None:
            return chosen, _tradeoff_thresholds(chosen, rest)
        points = whole.candidate_thresholds().points
        return chosen, _choose_curve_thresholds(chosen, points, whole.values)


@cache_parts()
def _has_structure_rare_on_one_side(outputs: Array, outputs_prime: Array) -> bool:
    """Return True if a type, length or key is rare on one input and more frequent on the other.

    Rare means that it occurs in at most three outputs. Such a difference needs more draws.

    Args:
        outputs: pilot outputs on x. The first 16,384 outputs are read.
        outputs_prime: pilot outputs on x'. The first 16,384 outputs are read.
    """
    if all(side.dtype.kind in "buifcmM" for side in (outputs, outputs_prime)):
        return False
    sides = [side[:_MAX_PRESENCE_OUTPUTS] for side in (outputs, outputs_prime)]
    parts = choose_presence_type_length_rules(*sides)
    for own in zip(*(parts(side).T for side in sides), strict=True):
        values, codes = np.unique(np.concatenate(own), return_inverse=True)
        halves = np.split(codes, [len(own[0])])
        counts = np.sort([np.bincount(half, minlength=values.size) for half in halves], axis=0)
        if ((counts[0] < _SELDOM_LIMIT) & (counts[1] > 2 * counts[0])).any():
            return True
    return False


def name_columns(event: Event, names: tuple[Any, ...]) -> Event:
    """Return a copy of an event whose description contains the names of the columns.

    The description of the given event contains only the indices of the columns. If the columns have
    no names, the event is returned unchanged.
    """
    score = getattr(event, "score", None)
    # Without names, pandas and files without a header number the columns.
    if names == tuple(range(len(names))) or score is None or not is_dataclass(event):
        return event
    plain = (name.item() if isinstance(name, np.generic) else name for name in names)
    texts = tuple(str(Part((("key", name),), "value")) for name in plain)
    named: Event = replace(cast(Any, event), score=OfColumns(texts, score))
    return named if str(named) != str(event) else event


def frequent_outputs(event: Event, outputs: Array, outputs_prime: Array) -> tuple[SeenOutput, ...]:
    """Return the most frequent outputs in an event (a set of outputs), as examples for the report.

    Args:
        event: the event.
        outputs: pilot outputs on x, shape `(size, ...)`.
        outputs_prime: pilot outputs on x', shape `(size, ...)`.

    Returns:
        At most five different outputs, with their counts on x and on x'. Only the first 4,096
        outputs on each input are searched. Outputs that are numbers are listed only if they occur
        at least twice.
    """
    heads = [side[:_MAX_SEARCHED_OUTPUTS] for side in (outputs, outputs_prime)]
    sides = [head[evaluate_event(event, head)] for head in heads]
    if sides[0].dtype == sides[1].dtype and sides[0].dtype.kind in "buif":
        sides = _keep_rows_repeated_when_pooled(sides)
    # A list of rows: objects of an object array, or plain values of other arrays.
    tables = [Counter(map(repr_with_sorted_sets, side.tolist())) for side in sides]
    both = tables[0] + tables[1]
    often = both.most_common(_MAX_SEEN_OUTPUTS)
    numbers = outputs.dtype == object and outputs.ndim == 1 and isinstance(outputs[0], (int, float))
    if numbers or outputs.dtype.kind in "buifcmM":
        # A single number shows nothing new to a reader, but repeated numbers do.
        often = [output for output in often if output[1] > 1]
    return tuple(
        SeenOutput(on_one_line(text, _SEEN_OUTPUT_WIDTH), tables[0][text], tables[1][text])
        for text, _ in often
    )


def _keep_rows_repeated_when_pooled(sides: list[Array]) -> list[Array]:
    """Return the rows of numbers that occur at least twice, on x and x' together."""
    keys = []
    for side in sides:
        # All NaN get the same bits.
        rows = np.where(np.isnan(side), np.nan, side) if side.dtype.kind == "f" else side
        keys.append([row.tobytes() for row in rows.astype(side.dtype)])
    times = Counter(itertools.chain(*keys))
    return [
        side[[times[key] > 1 for key in own]] if own else side
        for side, own in zip(sides, keys, strict=True)
    ]


def repr_with_sorted_sets(value: Any) -> str:
    """Return the repr of a mechanism output. The members of a set are sorted."""
    try:
        if isinstance(value, (set, frozenset)):
            # Equal sets may list their members in different orders.
            return f"{{{', '.join(sorted(map(repr, value)))}}}"
        return repr(value)
    except Exception:
        # An object whose repr fails is still an output.
        return show(value)


def _is_better_rare_event(seldom: Choice, chosen: Choice) -> bool:
    """Return True if a rare event is better than the chosen event.

    The result is False if the chosen event is simpler and about as frequent as the rare event.
    """
    rates = []
    for event in (seldom, chosen):
        counts = put_numerator_first(event.counts, event.direction)
        rates.append(counts.k / counts.n if counts.k_prime == 0 else 0.0)
    simpler = rates[1] >= _SIMILAR_RATE_RATIO * rates[0] and score_ns(chosen) <= score_ns(seldom)
    if chosen.is_clear:
        simpler = rates[0] < 1.0 or rank_of(chosen)[0] <= rank_of(seldom)[0]
    return seldom.merit > max(0.0, chosen.merit) and not simpler


def _merge_parts_only_if_shapes_differ(parts: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the parts of a pilot, joined into one part if their rows have different shapes."""
    return parts if len({part.shape[1:] for part in parts}) == 1 else (answers.join_outputs(parts),)


def make_float_bit_scores(scores: tuple[Score, ...], sides: Sides, pair: Pair) -> tuple[Score, ...]:
    """Make scores that read only the last bits of floats, or only the signs of zeros.

    A score is a function that returns one number per output. If the last bits or the signs of zeros
    reveal the input, the floating-point code of the mechanism has a flaw.

    Args:
        scores: scores that an attack has made. If the outputs are not arrays of numbers, these
            scores show which parts of an output are numbers.
        sides: outputs on x and on x', each of shape `(size, ...)`.
        pair: the two inputs x and x'.
    """
    elements = math.prod(sides[0].shape[1:])
    rows = max(_MIN_LATTICE_ROWS, _MAX_LATTICE_ELEMENTS // max(1, elements))
    few = sides[0][:rows], sides[1][:rows]
    with np.errstate(over="ignore", invalid="ignore"):
        return (*FloatLattice().candidates(*few, pair), *negative_zero_count_scores(scores, *few))


def _tradeoff_thresholds(chosen: Choice, sides: Sides) -> Floats:
    """Choose the thresholds at which the trade-off curve is counted, from the given outputs."""
    score = chosen.event.score
    values = scores_of(score, sides[0]), scores_of(score, sides[1])
    return _choose_curve_thresholds(chosen, list_thresholds(score, sides, values).points, values)


def _choose_curve_thresholds(
    chosen: Choice, possible_thresholds: Floats, values: tuple[Floats, Floats]
) -> Floats:
    """Choose the thresholds at which the trade-off curve is counted, from possible thresholds.

    Args:
        chosen: the chosen event, whose threshold is always included.
        possible_thresholds: possible thresholds of its score, increasing.
        values: values of the score on pilot outputs on x and on x'.
    """
    if possible_thresholds.size > _MAX_CURVE_THRESHOLDS:
        # Half of them evenly over the outputs, half towards the tails, where `edges` are dense.
        half = _MAX_CURVE_THRESHOLDS // 2
        pooled = np.concatenate(values)
        spread = np.quantile(pooled[np.isfinite(pooled)], np.linspace(0.02, 0.98, half))
        even = np.searchsorted(possible_thresholds, spread).clip(0, possible_thresholds.size - 1)
        tails = np.linspace(0, possible_thresholds.size - 1, half).astype(np.intp)
        possible_thresholds = possible_thresholds[np.unique(np.concatenate([even, tails]))]
    return np.unique(np.append(possible_thresholds, chosen.event.threshold))
