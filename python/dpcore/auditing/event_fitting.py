"""Choice on pilot draws of what is counted: the event, its direction, and the further counts.

An audit that stops early learns the event of each slice from earlier slices; one test martingale
covers all of them. The shape of the outputs, and differences in type that values do not show, are
found here too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from ..attacks import FloatLattice
from ..attacks.attack import (
    Choice,
    Fitted,
    Goal,
    ScoreAttack,
    choose_events,
    cost_of,
    merit_of,
    rank_of,
    remarks_on,
)
from ..attacks.candidates import has_rare_presence, read_candidates
from ..attacks.grains import use_threads
from ..attacks.parts import OfColumns, Part
from ..attacks.threshold import sign_scores
from ..claims.trade_off import Claim
from ..errors import about, show
from ..events.event import Event, Never, Score, evaluate_event, scores_of
from ..mechanisms import answers
from ..mechanisms.callables import (
    call_mechanism,
    explain_failures,
    make_generator,
    makes_tensors,
    one_by_one,
)
from ..mechanisms.declarations import name_of
from ..records import Array, Counts, Floats, Pair, SeenOutput, one_line
from ..results.evidence import numerator_first
from ..sampling.columns import PilotFacts, describe_pilot
from ..sampling.driver import Source
from ..sampling.sources import Course, Place
from ..streams import PILOT, PROBE
from .selection import (
    Sides,
    choose_as_stated,
    choose_crossed,
    draw_first_outputs,
    draw_more_outputs,
    marks_on,
    select_event,
    select_wide_event,
)
from .wide_outputs import WholeScore, WideReading, is_wide, read_wide

_PROBE_ROWS: Final = 2
_PROBE_ROWS_OF_LISTS: Final = 64
"""Outputs of a call that tells their shape; of lists, whose lengths may differ, more."""
_TRIALS_PER_PROBE_CALL: Final = 64
"""Of a function of one answer, one call a side in so many trials at most: it may be slow, and where
two lengths do not show there, outputs become objects as soon as they do."""

Outputs = npt.NDArray[Any]

_MAX_FACT_CALLS: Final = 20
"""Short calls on each side that must say what the first ones said before it is called the input's:
where it is a matter of chance, all of them do in at most one audit of 2^40."""

_MAX_FACT_CHARACTERS: Final = 80
"""Characters of what a side says that a message shows."""

_NUMBER_KINDS = "biufc"
"""Kinds of numbers, each able to hold those before it."""

_MAX_TRAINING_ROWS: Final = 2**21
_SMALL_PILOT_ROWS: Final = 2**12
_MAX_TRAINING_ELEMENTS: Final = 2**26
"""Numbers kept at once of the draws that train an attack: half a gibibyte a side."""
_MAX_WHOLE_ELEMENTS: Final = 2**24
"""The same of wide outputs, for an attack that reads them as they are."""
_MAX_LATTICE_ELEMENTS: Final = 2**18
"""Numbers a side that the floating-point attack learns from; at least `_MIN_LATTICE_ROWS` rows."""
_MIN_LATTICE_ROWS: Final = 2**12
_MAX_SEARCHED_OUTPUTS: Final = 2**12
"""Outputs of each side among which those inside the event are shown."""
_SEEN_OUTPUT_WIDTH: Final = 80
_MAX_SEEN_OUTPUTS: Final = 5
_MANY_PARTS_LIMIT: Final = 64
_MIN_KEPT_OBJECTS: Final = 64
_MIN_PROBED_ANSWERS: Final = 8
"""Outputs that show what outputs take: of a function of one answer one in 16 of the pilot, but at
least so many."""
_MAX_OBJECT_BYTES: Final = 2**26
"""Bytes a side, written out, of objects that are kept at once. In memory they take several times as
many."""
_TIMES: Final = (np.datetime64, np.timedelta64)
_SIMILAR_RATE_RATIO: Final = 0.98
_MIN_MERIT_RATIO: Final = 1.02
"""Times what the pilot shows that a stated log ratio must promise."""
_MAX_CURVE_THRESHOLDS: Final = 48
_TYPE_CHECK_CALLS: Final = 20
"""Short calls on each side that must show the types that the pilot showed: where a type is a
matter of chance, all of them do in at most one audit of 2^40."""


def form_of(
    mechanism: Any, pair: Pair, seed: int, course: Course, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    """Determine the shape of one output, the names of its fields, and those of its columns.

    The shape is () for Python objects, such as lists of changing length.

    Args:
        mechanism: what is called.
        pair: the two inputs.
        seed: of all generators.
        course: records every call.
        trials: of the audit; they limit the calls of a function of one answer.

    Raises:
        ValueError: if a fact stated once per call distinguishes the two inputs, see
            `call_facts`; if outputs hold themselves.
    """

    def make_rng(side: int, number: int) -> np.random.Generator:
        return make_generator(seed, PROBE, side, number)

    with explain_failures(mechanism, (pair.x, pair.x_prime), _PROBE_ROWS_OF_LISTS, make_rng):
        return _read_form(mechanism, pair, seed, course, trials)


def _read_form(
    mechanism: Any, pair: Pair, seed: int, course: Course, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    name = f"outputs of {name_of(mechanism)}"

    def ask(side: int, number: int = 0) -> Any:
        # Streams that nothing else uses: these calls only tell the form.
        begun = course.clock()
        x = pair.x_prime if side else pair.x
        answer = mechanism(x, _PROBE_ROWS, make_generator(seed, PROBE, side, number))
        course.called(_PROBE_ROWS, course.clock() - begun)
        return answer

    answer = ask(0)
    outputs = answers.outputs_of(name, answer, _PROBE_ROWS)
    shape, fields = outputs.shape[1:], outputs.dtype.names or ()
    if outputs.dtype == object:
        answers.refuse_nested(name, outputs.tolist())
    if not one_by_one(mechanism) and not makes_tensors(mechanism):
        _refuse_facts(name, answers.call_facts(answer), ask)
    of_rows = isinstance(answer, (list, tuple)) or outputs.dtype == object or one_by_one(mechanism)
    if answers.is_frame(answer) or (shape and of_rows and not makes_tensors(mechanism)):
        # Two lists may be equally long by chance.
        rows = _PROBE_ROWS_OF_LISTS
        if one_by_one(mechanism):
            rows = min(rows, max(_PROBE_ROWS, trials // _TRIALS_PER_PROBE_CALL))
        for side, x in enumerate((pair.x, pair.x_prime)):
            more = call_mechanism(mechanism, x, rows, make_generator(seed, PROBE, side, 1))
            course.drew(rows)
            shape = shape if more.shape[1:] == shape else ()
            fields = max(fields, more.dtype.names or (), key=len)
    return () if fields else shape, fields, () if fields else answers.column_names(answer)


def name_columns(event: Event, names: tuple[Any, ...]) -> Event:
    """Return an event whose words are the names of columns, if there are some."""
    score = getattr(event, "score", None)
    # Without names pandas and files without a header number the columns.
    if names == tuple(range(len(names))) or score is None or not is_dataclass(event):
        return event
    plain = (name.item() if isinstance(name, np.generic) else name for name in names)
    texts = tuple(str(Part((("key", name),), "value")) for name in plain)
    named: Event = replace(cast(Any, event), score=OfColumns(texts, score))
    return named if str(named) != str(event) else event


def _refuse_facts(name: str, facts: dict[str, Any], ask: Callable[[int, int], Any]) -> None:
    """Refuse a mechanism if a fact stated once per call, for all its rows, shows the input."""
    both = facts, answers.call_facts(ask(1, 0))
    facts_prime = both[1]
    differing = [what for what in facts if what in facts_prime and facts[what] != facts_prime[what]]
    for number in range(_MAX_FACT_CALLS):
        if not differing:
            return
        # Each side is the first in half of the calls: what alternates is not the input's.
        order = (1, 0) if number % 2 else (0, 1)
        again = {side: answers.call_facts(ask(side, number + 2)) for side in order}
        differing = [w for w in differing if all(again[i].get(w) == both[i][w] for i in (0, 1))]
    for what in differing:
        one = _format_differences(facts[what], facts_prime[what])
        other = _format_differences(facts_prime[what], facts[what])
        tell = "tell" if what.startswith(("columns", "field names", "categories")) else "tells"
        error = ValueError(
            f"{name} must have the same {what} in every call, for the {what} {tell} the input: "
            f"{one} on x, {other} on x'; a call says it once, so no count of rows may use it (to "
            "have it counted, return one output a call and pass dpcore.repeat(function), or rows "
            "as lists)"
        )
        raise about(error, name)


def _format_differences(mine: Any, others: Any) -> str:
    """Format the part of one side that the other lacks, cut if it is long."""
    if not isinstance(mine, tuple):
        return str(mine)
    if all(isinstance(one, int) for one in mine):
        return show(mine)
    only = [one for one in mine if one not in others] or list(mine)
    text = ", ".join(f'"{one}"' if isinstance(one, str) else show(one) for one in only)
    return text if len(text) <= _MAX_FACT_CHARACTERS else text[: _MAX_FACT_CHARACTERS - 3] + "..."


def types_apart(outputs: Outputs, outputs_prime: Outputs) -> tuple[str, ...]:
    """Return a note if the outputs on x have another type than those on x'.

    1 and 1.0 are equal, and an audit counts them as one value; a reader of the type does not.
    Nothing is certified: a type is one observation for a call, of any number of rows.

    Nothing is said where the values themselves explain the types (whole numbers became floats
    with a NaN or a half, a list of strings is as wide as its longest), since scores see those.

    Args:
        outputs: outputs on `x`, shape `(size, ...)`.
        outputs_prime: outputs on `x_prime`, shape `(size', ...)`.

    Returns:
        One sentence, or none.

    Example:
        >>> for note in types_apart(np.zeros(2), np.zeros(2, dtype=np.int64)):
        ...     print(note.split(":")[0])
        outputs on x are of type float64, those on x' of type int64
    """
    named: Any = _find_time_type(outputs), _find_time_type(outputs_prime)
    if None in named or named[0] == named[1]:
        named = outputs.dtype, outputs_prime.dtype
        if not _types_differ(outputs, outputs_prime):
            return ()
    return (
        f"outputs on x are of type {named[0]}, those on x' of type {named[1]}: equal values are "
        "counted as one, but whoever sees the type sees the input",
    )


def _find_time_type(rows: Outputs) -> Any:
    """Return the type of numpy's times among objects, if all rows have it; otherwise None."""
    if rows.dtype != object or rows.ndim != 1:
        return None
    types = {row.dtype if isinstance(row, _TIMES) else None for row in rows}
    return types.pop() if len(types) == 1 else None


def _types_differ(outputs: Outputs, outputs_prime: Outputs) -> bool:
    """Return True if two types differ for another reason than the values."""
    one, other = outputs.dtype, outputs_prime.dtype
    if one.kind not in _NUMBER_KINDS or other.kind not in _NUMBER_KINDS:
        return False
    if one.kind == other.kind:
        return one.itemsize != other.itemsize
    wide, kind = outputs, other.kind
    if _NUMBER_KINDS.index(one.kind) < _NUMBER_KINDS.index(kind):
        wide, kind = outputs_prime, one.kind
    return _fits_kind(wide, kind)


def _fits_kind(wide: Outputs, kind: str) -> bool:
    """Return True if all values fit a narrower kind, so that they do not explain their type."""
    if wide.dtype.kind == "c":
        return bool((wide.imag == 0.0).all()) and (kind == "f" or _fits_kind(wide.real, kind))
    if kind == "b":
        return bool(((wide == 0) | (wide == 1)).all())
    if wide.dtype.kind == "u":
        return bool((wide <= np.uint64(np.iinfo(np.int64).max)).all())
    return bool((wide == np.rint(wide)).all() and (np.abs(wide) < 2.0**63).all())


def sizes_of(pilot: int, elements: int, has_many_parts: bool = False) -> tuple[int, int]:
    """Split the pilot draws into those that train an attack and those that choose its event.

    Where outputs have many parts, half of a small pilot trains: what is learnt from few draws
    limits what can be chosen.
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
    """The pilot of an audit (see `dpcore.attacks.attack.Pilot`).

    Args:
        source: where draws come from.
        pair: the two inputs.
        goal: what is to be certified.
        size: pilot draws on each side.
        lattice: look for a floating-point finding too.
        stated: scores that the mechanism itself states.
        claim: epsilon of the claim for the pair, a curve, or None.
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
        """Constants of the outputs that were read; none if none were read."""
        return self._facts[-1] if self._facts else PilotFacts()

    def _note_facts(self, sides: Sides) -> None:
        self._facts.append(describe_pilot(sides, self.pair, self.claim, self.goal.delta))

    def add_facts(self, fitted: Fitted, *, null: bool) -> Fitted:
        """Return what an attack chose with the constants of the outputs that it read.

        Args:
            fitted: what the attack chose.
            null: True if the inputs may be equal: then a constant says nothing of the claim.
        """
        facts = self.facts
        constant = "" if null else facts.constant
        notes = (*fitted.notes, *facts.notes)
        return replace(fitted, constant=constant, is_steady=facts.is_steady, notes=notes)

    def outputs(self) -> Sides:
        """Draw outputs on both sides, as many of the pilot as are kept at once."""
        source = self.source
        most = _max_training_rows(source.elements)
        if is_wide(source.elements, self.size):
            most = max(1, min(most, _MAX_WHOLE_ELEMENTS // source.elements))
        size = min(self.size, most)
        sides: Sides = source.in_one_form(*source.outputs(PILOT, 0, size))
        self._note_facts(sides)
        return sides

    def _rows_kept(self) -> tuple[int, bool]:
        """Return the number of outputs a side that are kept at once, and if they have many parts.

        Of objects and texts a few are drawn, to see what they take.
        """
        source = self.source
        if source.shape != () or source.draws.native or self.size <= _MIN_KEPT_OBJECTS:
            return self.size, source.elements >= _MANY_PARTS_LIMIT
        rows = _MIN_KEPT_OBJECTS
        if one_by_one(source.draws.mechanism):
            rows = min(rows, max(_MIN_PROBED_ANSWERS, self.size // 16))
        place = Place(_TYPE_CHECK_CALLS + 1, rows, 0, rows)
        source.course.drew(rows)
        some = source.draws.draw(PROBE, 0, place)
        kept = max(_MIN_KEPT_OBJECTS, int(_MAX_OBJECT_BYTES / max(1.0, answers.bytes_of(some))))
        return kept, some.dtype.kind in "OUSV"

    def _draw_rest(
        self, trained: Sides, selection: int, kept: int, drawn: Sides | None = None
    ) -> tuple[Sides, tuple[tuple[Outputs, ...], tuple[Outputs, ...]]]:
        """Draw the outputs that choose, beyond those drawn, and join them with the trained ones."""
        if drawn is None:
            rest = draw_first_outputs(self.source, selection, kept)
        else:
            rest = draw_more_outputs(self.source, drawn, selection, kept)
        if len({side.dtype == object for side in (*trained, *rest)}) > 1:
            # Both sides of all parts keep the forms that one of them has.
            to_objects = answers.rows_to_objects
            trained, rest = ((to_objects(one), to_objects(other)) for one, other in (trained, rest))
        one, other = map(_join_unlike_parts, zip(trained, rest, strict=True))
        return rest, (one, other)

    def counts(self, event: Event, size: int) -> Counts:
        """Count the occurrences of an event among the first `size` draws on each side."""
        hits = [side.hits[0] for side in self.source.tally(event, PILOT, 0, size)]
        if not self._facts and not self.source.draws.native and {*hits} <= {0, size}:
            # Nothing differed: are these outputs all one value?
            self.outputs()
        return Counts(hits[0], size, hits[1], size)

    def fit_scores(self, attack: ScoreAttack) -> Fitted:
        """Choose the best threshold on the best of the scores that an attack makes."""
        source, pair, goal = self.source, self.pair, self.goal
        reading = self._read_wide(attack)
        if reading is not None:
            return self._fit_wide(attack, reading)
        kept, has_many_parts = self._rows_kept()
        training, selection = sizes_of(self.size, source.elements, has_many_parts)
        training = min(training, kept)
        outputs, outputs_prime = source.in_one_form(*source.outputs(PILOT, 0, training))
        source.course.bar.relabel("reading the outputs")
        name = f"outputs of {source.name}"
        # An executor's workers draw; the fit is on a thread of this process.
        with use_threads(source.threads if source.executor is None else 1):
            scores, read = read_candidates(attack, outputs, outputs_prime, pair, name)
        scores += self.stated
        source.course.bar.relabel("choosing the event")
        sides = outputs, outputs_prime
        found = _float_scores(source, scores, sides, pair) if self.lattice else ()
        types = types_apart(outputs, outputs_prime)

        trained = outputs, outputs_prime
        (rest, rest_prime), wholes = self._draw_rest(trained, selection, kept)
        irregular = any(part.dtype.kind in "OUSV" for whole in wholes for part in whole)
        if irregular and has_rare_presence(*map(answers.join_outputs, wholes)):
            # More draws say whether it is luck. Where the pilot is held as a whole, they are too.
            selection += self.size
            kept = selection if kept >= self.size else kept
            drawn = rest, rest_prime
            (rest, rest_prime), wholes = self._draw_rest(trained, selection, kept, drawn)
        seldom = attack.seldom(*wholes, goal)
        crossed = choose_crossed(attack, wholes, goal)
        self._note_facts(trained)
        if self.facts != PilotFacts():
            # Only such outputs are worth a second look, at all of them.
            first, second = map(answers.join_outputs, wholes)
            self._note_facts((first, second))
        del outputs, outputs_prime, trained, wholes
        notes = types if types and _types_always_differ(source, types) else ()
        watched = max(choose_events(found, rest, rest_prime, goal), key=merit_of) if found else None
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
            promised = choose_as_stated(score, (rest, rest_prime), goal)
            if promised is not None and promised.merit > max(0.0, _MIN_MERIT_RATIO * chosen.merit):
                chosen = promised
        told = [one for one in (watched, chosen.rounding) if one is not None]
        chosen = chosen.farther or chosen
        event = chosen.counted
        return Fitted(
            event,
            chosen.direction,
            chosen.merit,
            training + selection,
            _mark_curve(chosen, (rest, rest_prime)) if event.happens else np.empty(0),
            max(told, key=merit_of, default=None),
            notes,
            remarks_on([chosen], rest),
            read,
            outputs_inside(event, rest, rest_prime),
            chosen.counts,
        )

    def _read_wide(self, attack: ScoreAttack) -> WideReading | None:
        """Read a pilot of wide outputs in a stream. Others are read as a whole."""
        if not is_wide(self.source.elements, self.size):
            return None
        asks = self.stated, self.claim, self.goal.delta
        return read_wide(self.source, attack, self.pair, self.size, *asks)

    def _fit_wide(self, attack: ScoreAttack, reading: WideReading) -> Fitted:
        """Choose the event of wide outputs: on the chosen columns, or on all of them."""
        source, training, rest = self.source, reading.training, reading.rest
        floats: tuple[Score, ...] = ()
        with use_threads(source.threads if source.executor is None else 1):
            scores = reading.make_scores(f"outputs of {source.name}")
            source.course.bar.relabel("choosing the event")
            if self.lattice:
                floats = _float_scores(source, scores, training, reading.pair)
        self._facts.append(reading.facts)
        types = types_apart(*training)
        notes = types if types and _types_always_differ(source, types) else ()
        watched = [
            reading.widen(choice)
            for choice in choose_events(floats, *rest, self.goal)
            if choice.merit > 0.0
        ]
        if not scores and not reading.whole:
            attack.no_scores(rest[0])
            finding = max(watched, key=merit_of, default=None)
            nothing = Fitted(Never(), "x", 0.0, reading.size, np.empty(0), finding, notes)
            return replace(nothing, read=reading.read)
        chosen, thresholds = self._choose_wide_event(scores, reading)
        remarks = remarks_on([chosen], rest[0])
        chosen = reading.widen(chosen)
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

    def _choose_wide_event(
        self, scores: tuple[Score, ...], reading: WideReading
    ) -> tuple[Choice, Floats]:
        """Return the best choice, and thresholds of its score for the trade-off curve."""
        goal, training, rest = self.goal, reading.training, reading.rest
        chosen, whole = select_wide_event(self.source, scores, reading, goal)
        seldom = None
        if reading.learners is not None:
            parts = (training[0], rest[0]), (training[1], rest[1])
            seldom = reading.learners.seldom(*parts, goal)
        if seldom is not None and _is_better_rare_event(seldom, chosen):
            chosen, whole = seldom, None
        for scored in reading.whole:
            promised = _choose_promised(scored, goal) if scored.score in self.stated else None
            if promised is not None and promised.merit > max(0.0, _MIN_MERIT_RATIO * chosen.merit):
                chosen, whole = promised, scored
        if not chosen.counted.happens:
            return chosen, np.empty(0)
        if whole is None:
            return chosen, _mark_curve(chosen, rest)
        points = whole.make_marks().points
        return chosen, _choose_curve_thresholds(chosen, points, whole.values)


def outputs_inside(
    event: Event, outputs: Outputs, outputs_prime: Outputs
) -> tuple[SeenOutput, ...]:
    """Return the most frequent distinct outputs inside an event.

    Args:
        event: what is to be counted.
        outputs: pilot outputs on x, shape `(size, ...)`.
        outputs_prime: the same on x'.

    Returns:
        At most five, of the first 4,096 outputs a side; none of real numbers that do not repeat.
    """
    heads = [side[:_MAX_SEARCHED_OUTPUTS] for side in (outputs, outputs_prime)]
    sides = [head[evaluate_event(event, head)] for head in heads]
    if sides[0].dtype == sides[1].dtype and sides[0].dtype.kind in "buif":
        sides = _keep_repeated_rows(sides)
    # A list of rows: an object array has its objects, any other rows of plain values.
    tables = [Counter(map(represent_value, side.tolist())) for side in sides]
    both = tables[0] + tables[1]
    often = both.most_common(_MAX_SEEN_OUTPUTS)
    numbers = outputs.dtype == object and outputs.ndim == 1 and isinstance(outputs[0], (int, float))
    if numbers or outputs.dtype.kind in "buifcmM":
        # What numbers look like is clear; which of them come again and again is not.
        often = [one for one in often if one[1] > 1]
    return tuple(
        SeenOutput(one_line(text, _SEEN_OUTPUT_WIDTH), tables[0][text], tables[1][text])
        for text, _ in often
    )


def _keep_repeated_rows(sides: list[Array]) -> list[Array]:
    """Return the rows of numbers that occur at least twice on both sides together."""
    keys = []
    for side in sides:
        # All NaN have one text, whatever their bits.
        rows = np.where(np.isnan(side), np.nan, side) if side.dtype.kind == "f" else side
        keys.append([row.tobytes() for row in rows.astype(side.dtype)])
    times = Counter(itertools.chain(*keys))
    return [
        side[[times[key] > 1 for key in own]] if own else side
        for side, own in zip(sides, keys, strict=True)
    ]


def represent_value(value: Any) -> str:
    """Return the repr of an output; that of a set has its members in order."""
    try:
        if isinstance(value, (set, frozenset)):
            # Equal sets may have their members in different orders.
            return f"{{{', '.join(sorted(map(repr, value)))}}}"
        return repr(value)
    except Exception:
        # An object whose own repr fails is still an output.
        return show(value)


def _is_better_rare_event(seldom: Choice, chosen: Choice) -> bool:
    """Return False if a simpler event, the chosen one, is one-sided too and as frequent."""
    rates = []
    for one in (seldom, chosen):
        counts = numerator_first(one.counts, one.direction)
        rates.append(counts.k / counts.n if counts.k_prime == 0 else 0.0)
    simpler = rates[1] >= _SIMILAR_RATE_RATIO * rates[0] and cost_of(chosen) <= cost_of(seldom)
    if chosen.is_clear:
        simpler = rates[0] < 1.0 or rank_of(chosen)[0] <= rank_of(seldom)[0]
    return seldom.merit > max(0.0, chosen.merit) and not simpler


def _join_unlike_parts(parts: tuple[Outputs, ...]) -> tuple[Outputs, ...]:
    """Return the parts of a pilot; join them if one of them has rows of another shape."""
    return parts if len({part.shape[1:] for part in parts}) == 1 else (answers.join_outputs(parts),)


def _float_scores(
    source: Source, scores: tuple[Score, ...], sides: Sides, pair: Pair
) -> tuple[Score, ...]:
    """Make scores of float properties besides the value: last bits and the sign of zero."""
    rows = max(_MIN_LATTICE_ROWS, _MAX_LATTICE_ELEMENTS // max(1, source.elements))
    few = sides[0][:rows], sides[1][:rows]
    with np.errstate(over="ignore", invalid="ignore"):
        return (*FloatLattice().candidates(*few, pair), *sign_scores(scores, *few))


def _types_always_differ(source: Source, types: tuple[str, ...]) -> bool:
    """Return True if the two types differ in every call, so that the input explains it.

    A type may also change from call to call.
    """
    rows = 1 if one_by_one(source.draws.mechanism) else 2
    for number in range(1, _TYPE_CHECK_CALLS + 1):
        place = Place(number, rows, 0, rows)
        source.course.drew(2 * place.size)
        sides: dict[int, Any] = dict(source.draws.draw_both(PROBE, place))
        if types_apart(sides[0], sides[1]) != types:
            return False
    return True


def _choose_promised(whole: WholeScore, goal: Goal) -> Choice | None:
    """Choose the best threshold on a stated log ratio, by its values on the pilot."""
    promised = choose_as_stated(_return_values, whole.values, goal)
    if promised is None:
        return None
    return replace(promised, event=replace(promised.event, score=whole.score))


def _return_values(values: Floats) -> Floats:
    return values


def _mark_curve(chosen: Choice, sides: Sides) -> Floats:
    """Choose thresholds of the score, on outputs that it reads, for the trade-off curve."""
    score = chosen.event.score
    values = scores_of(score, sides[0]), scores_of(score, sides[1])
    return _choose_curve_thresholds(chosen, marks_on(score, sides, values).points, values)


def _choose_curve_thresholds(
    chosen: Choice, edges: Floats, values: tuple[Floats, Floats]
) -> Floats:
    """Choose the thresholds of the score at which the trade-off curve will be counted."""
    if edges.size > _MAX_CURVE_THRESHOLDS:
        # Half of them evenly over the outputs, half towards the tails, where `edges` is dense.
        half = _MAX_CURVE_THRESHOLDS // 2
        pooled = np.concatenate(values)
        spread = np.quantile(pooled[np.isfinite(pooled)], np.linspace(0.02, 0.98, half))
        even = np.searchsorted(edges, spread).clip(0, edges.size - 1)
        tails = np.linspace(0, edges.size - 1, half).astype(np.intp)
        edges = edges[np.unique(np.concatenate([even, tails]))]
    return np.unique(np.append(edges, chosen.event.threshold))
