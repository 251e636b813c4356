"""Audit with early stop: it ends as soon as the claim is refuted.

The trials are counted in slices. After each slice, the audit tests whether the claim is refuted.
The event of each slice is learned from earlier slices. One test martingale covers all slices, so
repeated tests do not increase the error probability. With several workers, several slices are drawn
at once. They are counted in order, and slices after the end of the audit are discarded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from ..attacks.attack import (
    Choice,
    Goal,
    ScoreAttack,
    choose_events,
    inapplicable_error,
    simplest_with_wide_gap,
)
from ..attacks.candidates import read_candidates
from ..bounds import Martingale
from ..claims.trade_off import Claim
from ..errors import choice, integer, invalid, mistyped, real
from ..events import SIDES
from ..events.event import Never, evaluate_event
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import is_thread_safe
from ..progress import record_interrupt_and_check_second
from ..records import Counts, PartsRead, SeenOutput
from ..report.plain import decode_value, encode_value, name_field, to_hint
from ..results.evidence import Slice, put_numerator_first
from ..sampling.columns import PilotFacts, pilot_anomalies
from ..sampling.driver import Source
from ..sampling.rows import IndependenceSums, evidence_from_dict, evidence_to_dict, list_doubts
from ..sampling.workers import count_workers
from ..streams import COUNT, PILOT
from .event_choice import Sides, choose_event_of_wide_outputs, note_no_bound
from .pilot import frequent_outputs
from .request import BLOCK, Request
from .wide_outputs import WideReading, is_wide, read_and_select_columns

_SLICE_SHARE: Final = 0.25
"""Size of a slice divided by the number of trials before it. A slice has at least one block."""
REFIT_RATIO: Final = 1.5
"""An event is chosen again when the number of draws has grown by this factor."""
_MAX_HISTORY_ELEMENTS: Final = 2**25
"""Largest number of values per input that are kept from earlier slices to learn events. It also
limits the number of values that are drawn ahead."""
_MAX_SLICE_ELEMENTS: Final = 2**22
"""Largest number of values per input in a slice of wide outputs. A slice has at least one block."""


def split_at_block_ends(start: int, stop: int, block: int) -> Iterator[tuple[int, int]]:
    """Split the range of trials [start, stop) at the ends of blocks.

    A block has `block` trials. The first block begins at trial 0.

    Yields:
        For each piece, the index of the first trial, and the index of the last trial plus 1.
    """
    edges = [start, *range((start // block + 1) * block, stop, block), stop]
    return itertools.pairwise(edges) if start < stop else iter(())


@dataclass
class SequentialAudit:
    """State of an audit that can stop early: the audit ends as soon as the claim is refuted.

    The audit counts trials in slices (ranges of trials). The audit can choose a new event for each
    slice. A test martingale bets on the counts of each slice. Its wealth measures the evidence
    against the claim.

    Args:
        source: object that makes the draws of the mechanism.
        request: the checked arguments of the audit. The claim is refuted when the wealth of the
            test martingale reaches 1 / (1 - confidence). If the claim is a curve, the audit tests
            one tangent (epsilon, delta) of this curve. The tangent is chosen together with the
            first event.
        attack: attack that chooses the events.
        pilot: number of draws per input that are made to choose the first event. These draws are
            not counted.
        tangent: counts of the first event in the pilot draws, from which the tangent was chosen.
            The input on which the event is more frequent comes first. None if the claim is not a
            curve, or if no tangent is chosen yet.
        done: number of trials per input that are counted so far.
        martingale: the test martingale after all slices that are counted so far. None for a curve
            without a chosen tangent.
        chosen: the latest chosen event, or None if no event is chosen yet.
        label: number of times that the audit has changed the event.
    """

    source: Source
    request: Request
    attack: ScoreAttack
    pilot: int
    tangent: Counts | None = None
    done: int = 0
    martingale: Martingale | None = None
    chosen: Choice | None = None
    label: int = 0
    _counted: list[tuple[Slice, tuple[int, int]]] = field(default_factory=list)
    _evidence: dict[int, list[IndependenceSums]] = field(default_factory=dict)
    _kept: list[Sides] = field(default_factory=list)
    _wide: WideReading | None = None
    _fitted_at: float = 0.0
    remarks: tuple[str, ...] = ()
    read: PartsRead | None = None
    inside: tuple[SeenOutput, ...] = ()
    facts: PilotFacts = field(default_factory=PilotFacts)

    def __post_init__(self) -> None:
        """Begin the test martingale, if the tested claim is already known."""
        claim = self.request.claim
        if claim is not None and not isinstance(claim, Claim):
            self.martingale = Martingale(claim * self.request.pair.distance, self.request.delta)

    @property
    def slices(self) -> tuple[Slice, ...]:
        """Ranges of trials (slices) that are counted so far, each with its event and its counts."""
        return tuple(piece for piece, _ in self._counted)

    @property
    def nan_entry_counts(self) -> tuple[int, int]:
        """Number of NaN values in the counted outputs on x, and in the counted outputs on x'."""
        return sum(nan[0] for _, nan in self._counted), sum(nan[1] for _, nan in self._counted)

    @property
    def independence_doubts(self) -> tuple[str, ...]:
        """Sentences that describe signs of dependence between the counted outputs.

        The tuple is empty if the outputs seem independent.
        """
        return list_doubts([[pair[side] for pair in self._evidence.values()] for side in (0, 1)])

    def run(self, keep: Callable[[], None] | None = None) -> bool:
        """Count trials until the claim is refuted or all trials are counted.

        The trials are counted in slices (ranges of trials).

        Args:
            keep: function without arguments that this method calls after each slice. Usually, the
                function stores the state of the audit in a file. With None, no function is called.

        Returns:
            True if Ctrl-C ended the count early, else False.
        """
        start, trials, course = self.request.start, self.request.trials, self.source.course
        course.begin_step("fit", "choosing the event", 2 * self.pilot)
        try:
            if not self._kept and self._wide is None:
                self._draw_pilot_and_find_anomalies()
            course.begin_step("count", "counting until refuted", 2 * (trials - self.done))
            while self.done < trials and not self._is_refuted:
                course.begin_step("fit")
                self._choose_next_event_if_due(trials)
                course.begin_step("count")
                for piece, sides in self._draw_until_next_refit(start, start + trials):
                    self._count(piece, sides)
                    if keep is not None:
                        keep()
                    if self._is_refuted:
                        break
        except KeyboardInterrupt:
            if keep is not None or record_interrupt_and_check_second() or not self._counted:
                raise
            return True
        return False

    @property
    def _is_refuted(self) -> bool:
        goal = -math.log1p(-self.request.confidence)
        return self.martingale is not None and self.martingale.log_wealth >= goal

    def _draw_until_next_refit(self, start: int, stop: int) -> list[tuple[tuple[int, int], Sides]]:
        """Draw the next slice, or with several workers all slices until the next event is chosen.

        Returns:
            For each slice, its first and end trial, counted from the start of the audit, and the
            outputs on x and on x'.
        """
        ends = [start + self.done]
        most = self._max_trials_drawn_ahead
        workers = (
            self.source.threads
            if self.source.executor is None
            else count_workers(self.source.executor, self.source.threads)
        )
        while ends[-1] < stop:
            done = ends[-1] - start
            ahead = len(ends) > 1
            if ahead and (workers == 1 or done - self.done > most or self._is_refit_due(done)):
                break
            ends.append(min(stop, ends[-1] + self._next_slice_trials(done)))
        sides = self.source.outputs(COUNT, ends[0], ends[-1])
        cuts = [(a - ends[0], b - ends[0]) for a, b in itertools.pairwise(ends)]
        pieces = [(sides[0][a:b], sides[1][a:b]) for a, b in cuts]
        return list(zip(itertools.pairwise(ends), pieces, strict=True))

    @property
    def _max_trials_drawn_ahead(self) -> int:
        """Largest number of trials per input that may be drawn before they are counted."""
        elements = _MAX_HISTORY_ELEMENTS if self._wide is None else _MAX_SLICE_ELEMENTS
        return elements // max(1, self.source.elements)

    def _is_refit_due(self, done: int) -> bool:
        return self.pilot + done >= REFIT_RATIO * self._fitted_at

    def to_dict(self) -> dict[str, Any]:
        """Return the state of this audit as plain data.

        Another process can continue the audit from these data.

        Raises:
            ValueError: if the latest event cannot be stored as JSON.
        """
        chosen = self.chosen
        event = None if chosen is None else encode_value(chosen.event)
        if isinstance(event, Mapping) and "repr" in event:
            requirement = "None with early stop where JSON cannot hold the event"
            raise invalid("checkpoint", requirement, event["repr"])
        return {
            "slices": encode_value(self.slices),
            "nan": [list(nan) for _, nan in self._counted],
            "evidence": [
                [label, *map(evidence_to_dict, both)] for label, both in self._evidence.items()
            ],
            "chosen": chosen and [event, chosen.direction, encode_value(chosen.counts)],
            "tangent": encode_value(self.tangent),
            "fitted_at": self._fitted_at,
            "label": self.label,
            "said": encode_value([self.read, self.remarks, self.inside]),
        }

    def restore(self, state: Mapping[str, Any], refuse: Callable[[str], NoReturn]) -> None:
        """Continue an audit that another process began, from its stored state.

        The trials were counted in slices (ranges of trials). The outputs of the latest slices are
        drawn again, because the next event is chosen on these outputs. If a seed fixes the outputs
        of the mechanism, the new counts of these slices must equal the stored counts.

        Args:
            state: the stored state, as returned by `read_state`.
            refuse: function that raises an error for a changed mechanism. The argument of the
                function is a text that describes the difference between the counts.

        Raises:
            ValueError: if the stored slices have more trials than this audit, or if the new counts
                of a slice differ from the stored counts.
        """
        pieces = state["slices"]
        self._counted = list(zip(pieces, state["nan"], strict=True))
        done = integer("slices", sum(piece.counts.n for piece in pieces), 0, self.request.trials)
        self._evidence = {label: [*both] for label, *both in state["evidence"]}
        self._draw_pilot_and_find_anomalies()
        if state["chosen"] is None:
            return
        event, direction, counts = state["chosen"]
        self.chosen = Choice(event, direction, 0.0, counts)
        if state["tangent"] is not None:
            self._start_tangent_test(state["tangent"])
        self._fitted_at, self.label = state["fitted_at"], state["label"]
        self.read, self.remarks, self.inside = state["said"]
        label = 0
        for before, piece in itertools.pairwise(pieces[:1] + pieces):
            label += (piece.event, piece.direction) != (before.event, before.direction)
            self._bet_on_slice(piece, label)
        self._redraw_slices_for_next_event(refuse)
        self.done = done

    def _redraw_slices_for_next_event(self, refuse: Callable[[str], NoReturn]) -> None:
        """Draw again the latest slices of trials, from which the next event will be learned."""
        sizes = (piece.counts.n for piece in self.slices)
        ends = list(itertools.accumulate(sizes, initial=self.request.start))
        room, first = _MAX_HISTORY_ELEMENTS, len(self.slices)
        while first > 0 and room > 0:
            first -= 1
            width = self.source.elements if self._wide is None else self._wide.kept_values_per_row
            room -= self.slices[first].counts.n * width
        for number in range(first, len(self.slices)):
            piece, trials = self.slices[number], (ends[number], ends[number + 1])
            sides = self.source.outputs(COUNT, *trials)
            hits = [int(np.count_nonzero(evaluate_event(piece.event, side))) for side in sides]
            expected_hits = [piece.counts.k, piece.counts.k_prime]
            if self.source.draws.same_bits and hits != expected_hits:
                refuse(f"one with {hits} hits in trials {trials}, where it had {expected_hits}")
            self._keep(sides)

    def _start_tangent_test(self, tangent: Counts) -> None:
        """Choose the tangent (epsilon, delta) of the claimed curve, and begin the test martingale.

        Args:
            tangent: pilot counts of the first event, from which the tangent is chosen.
        """
        self.tangent, self.request = tangent, self.request.with_best_tangent(tangent)
        self.martingale = Martingale(self.request.tangent or 0.0, self.request.delta)

    def _next_slice_trials(self, done: int) -> int:
        block = self.source.block
        # Threads that share short blocks get several blocks.
        least = BLOCK if is_thread_safe(self.source.draws.mechanism) else block
        trials = max(least, int(_SLICE_SHARE * done))
        if self._wide is not None:
            trials = min(trials, self._max_trials_drawn_ahead)
        return max(1, trials // block) * block

    def _draw_pilot_and_find_anomalies(self) -> None:
        claim, pair = self.request.claim, self.request.pair
        if claim is not None and not isinstance(claim, Claim):
            claim *= pair.distance
        if is_wide(self.source.elements, self.pilot):
            asks = self.attack, self.request.pair_as_floats, self.pilot
            self._wide = read_and_select_columns(self.source, *asks, (), claim, self.request.delta)
        if self._wide is not None:
            self.read, self.facts = self._wide.read, self._wide.facts
            return
        sides = self.source.outputs(PILOT, 0, self.pilot)
        self._kept.append(sides)
        self.facts = pilot_anomalies(sides, self.request.pair_as_floats, claim, self.request.delta)

    @property
    def _pending_curve(self) -> Claim | None:
        """The claimed curve before its tangent is chosen, and None afterwards."""
        claim = self.request.claim
        return claim if isinstance(claim, Claim) and self.tangent is None else None

    def _choose_next_event_if_due(self, trials: int) -> None:
        """Choose an event for the next slices, if there are enough new draws.

        The number of draws must be at least 1.5 times the number at the last choice of an event.
        """
        if self.chosen is not None and not self._is_refit_due(self.done):
            return
        before = self.chosen
        self._fitted_at = self.pilot + self.done
        self.chosen = self._fit_next_event(trials)
        if self.martingale is None:
            self._start_tangent_test(put_numerator_first(self.chosen.counts, self.chosen.direction))
        self.label += before is not None and not _is_same_event(before, self.chosen)

    def _fit_wide(self, reading: WideReading, trials: int) -> Choice:
        """Choose the event for outputs of many columns.

        The event depends on all columns, or on columns that were chosen on the pilot (the first
        draws).
        """
        scores = reading.learn_scores(f"outputs of {self.source.name}")
        if not scores and not reading.whole:
            raise inapplicable_error(self.attack, reading.choosing_outputs[0])
        level = self.request.delta, self.request.confidence
        goal = Goal(min(trials, 2 * (self.pilot + self.done)), *level, claim=self._pending_curve)
        best, _ = choose_event_of_wide_outputs(self.source, scores, reading, goal)
        self.remarks = note_no_bound([best], reading.choosing_outputs[0])
        wide = reading.choice_on_full_output(best)
        return replace(wide, event=wide.counted)  # type: ignore[arg-type]

    def _fit_next_event(self, trials: int) -> Choice:
        if self._wide is not None:
            return self._fit_wide(self._wide, trials)
        n_seen = self.pilot + self.done
        outputs, outputs_prime = self.source.convert_to_common_type(
            *(join_outputs([piece[side] for piece in self._kept]) for side in (0, 1))
        )
        halves = outputs[::2], outputs_prime[::2]
        name = f"outputs of {self.source.name}"
        scores, self.read = read_candidates(self.attack, *halves, self.request.pair_as_floats, name)
        if not scores:
            if outputs.size:
                raise inapplicable_error(self.attack, outputs)
            return Choice(Never(), "x", 0.0, Counts(0, 1, 0, 1))  # type: ignore[arg-type]
        level = self.request.delta, self.request.confidence
        goal = Goal(min(trials, 2 * n_seen), *level, claim=self._pending_curve)
        events = choose_events(scores, outputs[1::2], outputs_prime[1::2], goal)
        best = simplest_with_wide_gap(events, outputs[1::2], outputs_prime[1::2])
        self.remarks = note_no_bound(events, outputs)
        self.inside = frequent_outputs(best.counted, outputs[1::2], outputs_prime[1::2])
        return replace(best, event=best.counted)  # type: ignore[arg-type]

    def _count(self, trials: tuple[int, int], sides: Sides) -> None:
        """Count the event in a slice and update the test martingale.

        Args:
            trials: first and end trial of the slice.
            sides: outputs on x and on x'.
        """
        chosen, size = self.chosen, trials[1] - trials[0]
        assert chosen is not None
        assert self.martingale is not None
        answers = [evaluate_event(chosen.event, outputs) for outputs in sides]
        k, k_prime = (int(np.count_nonzero(side)) for side in answers)
        nan, nan_prime = (
            int(np.isnan(outputs).sum()) if outputs.dtype.kind == "f" else 0 for outputs in sides
        )
        if not self.source.draws.native:
            self._update_row_dependence_test(sides, answers, trials[0])
        self._keep(sides)
        ordered = put_numerator_first(chosen.counts, chosen.direction)
        guess = (
            (ordered.k + 0.5) / (ordered.n + 1.0),
            (ordered.k_prime + 0.5) / (ordered.n_prime + 1.0),
        )
        counts = Counts(k, size, k_prime, size)
        piece = Slice(self.request.pair, chosen.event, chosen.direction, counts, guess)
        self._bet_on_slice(piece, self.label)
        # A single list, so that Ctrl-C cannot separate a slice from its NaN.
        self._counted.append((piece, (nan, nan_prime)))
        self.done = sum(side.counts.n for side, _ in self._counted)

    def _bet_on_slice(self, piece: Slice, event_number: int) -> None:
        assert self.martingale is not None
        counts = piece.bound_counts
        self.martingale.update(
            counts.k, counts.k_prime, counts.n, event=event_number, predicted=piece.guess
        )

    def _update_row_dependence_test(
        self, sides: Sides, answers: list[npt.NDArray[np.bool_]], first: int
    ) -> None:
        """Update the statistics that show whether the rows of a call are independent.

        Args:
            sides: outputs on x and on x'.
            answers: for each of these outputs, True if the output is in the event.
            first: number of the first trial.
        """
        evidence = self._evidence.setdefault(self.label, [IndependenceSums(), IndependenceSums()])
        for begin, stop in split_at_block_ends(first, first + len(sides[0]), self.source.block):
            rows = slice(begin - first, stop - first)
            since = begin - self.source.start
            number = since // self.source.block
            for side, outputs in enumerate(sides):
                evidence[side] += IndependenceSums.of_event_answers(
                    outputs[rows], since, number, answers[side][rows]
                )

    def _keep(self, sides: Sides) -> None:
        if self._wide is not None:
            self._wide = self._wide.extend(sides)
            return
        self._kept.append(sides)
        while (
            len(self._kept) > 1
            and sum(piece[0].size for piece in self._kept) > _MAX_HISTORY_ELEMENTS
        ):
            self._kept.pop(0)


def _is_same_event(first: Choice, second: Choice) -> bool:
    return (first.event, first.direction) == (second.event, second.direction)


_STATE: Final = {
    "slices": tuple[Slice, ...],
    "nan": tuple[tuple[int, int], ...],
    "evidence": tuple[tuple[int, dict[str, Any], dict[str, Any]], ...],
    "chosen": tuple[Any, str, Counts] | None,
    "tangent": Counts | None,
    "fitted_at": float,
    "label": int,
    "said": tuple[PartsRead | None, tuple[str, ...], tuple[SeenOutput, ...]],
}
"""Names and types of the entries that `SequentialAudit.to_dict` returns."""


def read_state(held: Mapping[str, Any]) -> dict[str, Any]:
    """Check and decode the stored state of an audit that stops as soon as the claim is refuted.

    Args:
        held: the stored state as plain data, as returned by `SequentialAudit.to_dict`.

    Returns:
        The decoded entries of the state by name, as `SequentialAudit.restore` needs them.

    Raises:
        TypeError: if an entry is of the wrong type.
        ValueError: if an entry is missing or is impossible.
    """
    state: dict[str, Any] = {}
    for name, hint in _STATE.items():
        with name_field(name, held.get(name)):
            value = held[name] if name == "evidence" else decode_value(held[name])
            state[name] = to_hint(name, hint, value)
    state["evidence"] = [
        (label, evidence_from_dict(own), evidence_from_dict(other))
        for label, own, other in state["evidence"]
    ]
    real("fitted_at", state["fitted_at"], low=0.0)
    if len(state["nan"]) != len(state["slices"]):
        raise invalid("nan", f"{len(state['slices'])} pairs, one for each slice", state["nan"])
    events = [piece.event for piece in state["slices"]]
    if state["chosen"] is not None:
        events.append(state["chosen"][0])
        choice("chosen", state["chosen"][1], SIDES)
    for event in events:
        if not callable(event):
            raise mistyped("slices", "those of events", event)
    return state
