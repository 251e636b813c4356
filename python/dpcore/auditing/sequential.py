"""Early stop: slices whose event was learnt from earlier ones, one test martingale over all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..attacks.attack import (
    Choice,
    Fitted,
    Goal,
    ScoreAttack,
    choose_events,
    not_applicable,
    remarks_on,
)
from ..attacks.candidates import read_candidates
from ..bounds import Martingale
from ..claims.claim import Claim, choose_tangent
from ..events import Never
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import is_shared
from ..progress import interrupted_again
from ..records import Counts, Pair, PartsRead, SeenOutput
from ..results.figures import numerator_first
from ..results.findings import Slice
from ..sampling.rows import Evidence, list_doubts
from ..sampling.slicing import iterate_blocks
from ..sampling.sources import Source
from ..sampling.tally import evaluate_event
from ..streams import COUNT, PILOT
from .fitting import outputs_inside

BLOCK: Final = 256
"""Trials in a block of an audit that stops early: the first look comes after one block."""

_SLICE_SHARE: Final = 0.25
"""A slice is this share of all trials before it, but at least a block."""
_REFIT_RATIO: Final = 1.5
_MAX_HISTORY_ELEMENTS: Final = 2**25
"""Numbers kept of earlier slices to learn from, on each side."""

Outputs = npt.NDArray[Any]


@dataclass
class Sequence:
    """The course of an audit with early stop.

    Args:
        source: where draws come from.
        pair: the two inputs.
        known: the same as attacks know them.
        attack: learns the event of each slice.
        claim: the epsilon tested, at the pair's whole distance.
        delta: delta of the claim.
        confidence: the martingale stops at wealth 1 / (1 - confidence).
        pilot: draws on each side to learn the first event from.
        curve: a claim of which the first event chooses the tangent that is tested; None where
            claim and delta are what is tested.
        tangent: counts of that event in the pilot, the numerator's side first.
    """

    source: Source
    pair: Pair
    known: Pair
    attack: ScoreAttack
    claim: float
    delta: float
    confidence: float
    pilot: int
    curve: Claim | None = None
    tangent: Counts | None = None
    done: int = 0
    # One list for both, so that no Ctrl-C can fall between a slice and its NaN.
    _counted: list[tuple[Slice, tuple[int, int]]] = field(default_factory=list)
    _evidence: dict[int, list[Evidence]] = field(default_factory=dict)
    _kept: list[tuple[Outputs, Outputs]] = field(default_factory=list)
    _fitted_at: float = 0.0
    remarks: tuple[str, ...] = ()
    read: PartsRead | None = None
    inside: tuple[SeenOutput, ...] = ()

    @property
    def slices(self) -> tuple[Slice, ...]:
        """Counts of every slice."""
        return tuple(piece for piece, _ in self._counted)

    @property
    def nan(self) -> tuple[int, int]:
        """Entries of the counted outputs that were NaN, on both sides."""
        return sum(nan[0] for _, nan in self._counted), sum(nan[1] for _, nan in self._counted)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Contradictions to the independence of the rows."""
        return list_doubts([[pair[side] for pair in self._evidence.values()] for side in (0, 1)])

    def run(self, trials: tuple[int, int]) -> bool:
        """Count slices until the claim is refuted or the trials are used up.

        Args:
            trials: first trial and the end.

        Returns:
            True if Ctrl-C ended it.
        """
        start, stop = trials
        martingale = None if self.curve else Martingale(self.claim, self.delta)
        goal = -math.log1p(-self.confidence)
        chosen: Choice | None = None
        label = 0
        course = self.source.course
        course.step("fit", "choosing the event", 2 * self.pilot)
        try:
            self._learn_from_pilot()
            course.step("count", "counting until refuted", 2 * (stop - start))
            while self.done < stop - start and (martingale is None or martingale.log_wealth < goal):
                course.step("fit")
                before, chosen = chosen, self._choose(chosen, stop - start)
                if martingale is None:
                    martingale = Martingale(*self._choose_tangent(chosen))
                label += before is not None and _get_event_and_direction(
                    before
                ) != _get_event_and_direction(chosen)
                course.step("count")
                first = start + self.done
                end = min(stop, first + self._size())
                piece, nan = self._count(chosen, first, end, label)
                counts = piece.bound_counts
                martingale.update(
                    counts.k, counts.k_prime, counts.n, event=label, predicted=piece.guess
                )
                self._counted.append((piece, nan))
                self.done += end - first
        except KeyboardInterrupt:
            if interrupted_again() or not self._counted:
                raise
            return True
        return False

    def _choose_tangent(self, chosen: Choice) -> tuple[float, float]:
        """Choose, for all slices, the (epsilon, delta) of the curve that the first event tests."""
        assert self.curve is not None
        self.tangent = numerator_first(chosen.counts, chosen.direction)
        self.claim, self.delta = choose_tangent(self.curve, self.tangent)
        return self.claim, self.delta

    def _size(self) -> int:
        block = self.source.block
        # Threads that share short blocks are given several.
        least = BLOCK if is_shared(self.source.draws.mechanism) else block
        return max(1, max(least, int(_SLICE_SHARE * self.done)) // block) * block

    def _learn_from_pilot(self) -> None:
        self._kept.append(self.source.outputs(PILOT, 0, self.pilot))

    @property
    def _sought(self) -> Claim | None:
        """The curve until its tangent is chosen, then None: later events test that tangent."""
        return self.curve if self.tangent is None else None

    def _choose(self, chosen: Choice | None, trials: int) -> Choice:
        seen = self.pilot + self.done
        if chosen is not None and seen < _REFIT_RATIO * self._fitted_at:
            return chosen
        self._fitted_at = seen
        outputs, outputs_prime = self.source.in_one_form(
            *(join_outputs([piece[side] for piece in self._kept]) for side in (0, 1))
        )
        halves = outputs[::2], outputs_prime[::2]
        name = f"outputs of {self.source.name}"
        scores, self.read = read_candidates(self.attack, *halves, self.known, name)
        if not scores:
            if outputs.size:
                raise not_applicable(self.attack, outputs)
            never = Never()
            return Choice(never, "x", 0.0, Counts(0, 1, 0, 1))  # type: ignore[arg-type]
        goal = Goal(min(trials, 2 * seen), self.delta, self.confidence, claim=self._sought)
        found = choose_events(scores, outputs[1::2], outputs_prime[1::2], goal)
        best, self.remarks = max(found, key=lambda choice: choice.merit), remarks_on(found)
        self.inside = outputs_inside(best.counted, outputs[1::2], outputs_prime[1::2])
        return replace(best, event=best.counted)  # type: ignore[arg-type]

    def _count(
        self, chosen: Choice, first: int, end: int, label: int
    ) -> tuple[Slice, tuple[int, int]]:
        sides = self.source.outputs(COUNT, first, end)
        answers = [evaluate_event(chosen.event, outputs) for outputs in sides]
        hits = [int(np.count_nonzero(one)) for one in answers]
        nan, nan_prime = (
            int(np.isnan(outputs).sum()) if outputs.dtype.kind == "f" else 0 for outputs in sides
        )
        if not self.source.draws.native:
            self._look(sides, answers, first, label)
        self._keep(sides[0], sides[1])
        size = end - first
        counts = Counts(hits[0], size, hits[1], size)
        ordered = chosen.counts if chosen.direction == "x" else chosen.counts.swapped()
        guess = (
            (ordered.k + 0.5) / (ordered.n + 1.0),
            (ordered.k_prime + 0.5) / (ordered.n_prime + 1.0),
        )
        piece = Slice(self.pair, chosen.event, chosen.direction, counts, guess)
        return piece, (nan, nan_prime)

    def _look(
        self,
        sides: tuple[Outputs, Outputs],
        answers: list[npt.NDArray[np.bool_]],
        first: int,
        label: int,
    ) -> None:
        """Update, call by call, the evidence on independence of rows and of an event's hits."""
        seen = self._evidence.setdefault(label, [Evidence(), Evidence()])
        for begin, stop in iterate_blocks(first, first + len(sides[0]), self.source.block):
            rows = slice(begin - first, stop - first)
            since = begin - self.source.start
            for side, outputs in enumerate(sides):
                seen[side] += Evidence.of_answers(outputs[rows], since, answers[side][rows])

    def _keep(self, outputs: Outputs, outputs_prime: Outputs) -> None:
        self._kept.append((outputs, outputs_prime))
        while (
            len(self._kept) > 1
            and sum(piece[0].size for piece in self._kept) > _MAX_HISTORY_ELEMENTS
        ):
            self._kept.pop(0)


def _get_event_and_direction(choice: Choice) -> tuple[Any, str]:
    return choice.event, choice.direction


def sum_counts(slices: tuple[Slice, ...]) -> Counts:
    """Sum the counts of all slices, over different events: for the record only."""
    hits = [sum(getattr(piece.counts, name) for piece in slices) for name in ("k", "k_prime")]
    size = sum(piece.counts.n for piece in slices)
    return Counts(hits[0], size, hits[1], size)


def get_last_event(slices: tuple[Slice, ...]) -> Fitted:
    """Return the latest event, in the form of a pilot's decision."""
    piece = slices[-1]
    return Fitted(piece.event, piece.direction, None, 0, np.empty(0))


__all__ = ["BLOCK", "Sequence", "get_last_event", "sum_counts"]
