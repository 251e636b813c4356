"""Evidence on the independence of one side's counted rows, added up block by block."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ...events.device_outputs import Held
from .dispersion import Blocks, cut_block, dispersion_p_value
from .neighbours import Sums, compare_neighbours, farthest_lag, looked_at
from .parts import Array

_DISPERSION_LEVEL: Final = 1e-9
"""p-value below which counts vary too much for independent rows."""

_NO_BOUND_REASON = "the mechanism's rows depend on each other, and no bound holds"


@dataclass(slots=True, eq=False)
class Evidence:
    """Evidence on independence from the rows of some blocks, on one side and for one event.

    Args:
        blocks: trials and hits of each sub-block, in their order.
        near: what neighbouring rows say (see `_neighbours`); None where nothing was compared.
    """

    blocks: list[tuple[int, int]] = field(default_factory=list)
    near: Sums | None = None

    @classmethod
    def of(
        cls,
        outputs: Array | Held,
        start: int,
        hits: Callable[[int, int], int],
        answers: Callable[[int], npt.NDArray[np.bool_]],
    ) -> Evidence:
        """Collect the evidence of one block, which is one call of the mechanism.

        Args:
            outputs: of the call.
            start: its first trial.
            hits: how often the event happened in the rows `first .. end`.
            answers: whether it happened in each of the first rows, up to an end.
        """
        edges = cut_block(len(outputs), start)
        counts = [(b - a, hits(a, b)) for a, b in itertools.pairwise(edges)]
        rows = looked_at(start, len(outputs))
        return cls(counts, compare_neighbours(outputs[:rows], answers(rows)) if rows else None)

    @classmethod
    def of_answers(
        cls, outputs: Array | Held, start: int, answers: npt.NDArray[np.bool_]
    ) -> Evidence:
        """Collect the evidence if the event has been decided for every row."""

        def hits(first: int, end: int) -> int:
            return int(np.count_nonzero(answers[first:end]))

        return cls.of(outputs, start, hits, lambda end: answers[:end])

    def __iadd__(self, other: Evidence) -> Evidence:
        """Add the evidence of later blocks in place, since there may be very many."""
        self.blocks += other.blocks
        if other.near is not None:
            self.near = other.near.copy() if self.near is None else self.near + other.near
        return self


def list_doubts(sides: Sequence[Sequence[Evidence]]) -> tuple[str, ...]:
    """List contradictions to the assumption that an audit's rows are independent draws of one law.

    Args:
        sides: on x and on x', what was seen of each event that was counted.

    Returns:
        One sentence for each contradiction; empty if there is none.
    """
    found = []
    for side, parts in zip(("x", "x'"), sides, strict=True):
        compared = [part.near for part in parts if part.near is not None]
        apart = farthest_lag(np.sum(compared, axis=0)) if compared else None
        if apart is not None:
            found.append(_describe_likeness(side, *apart))
        chance = dispersion_p_value([part.blocks for part in parts])
        if chance < _DISPERSION_LEVEL:
            found.append(_describe_variation(side, "block to block", chance))
    return tuple(found)


def blocks_apart(sides: Sequence[Blocks]) -> tuple[str, ...]:
    """List such contradictions between two or more audits of one event.

    Only their trials and hits are compared.

    Args:
        sides: on x and on x', trials and hits of each audit.
    """
    chances = [dispersion_p_value([blocks]) for blocks in sides]
    return tuple(
        _describe_variation(side, "audit to audit", chance)
        for side, chance in zip(("x", "x'"), chances, strict=True)
        if chance < _DISPERSION_LEVEL
    )


def _describe_likeness(side: str, lag: int, sigmas: float) -> str:
    more = "more" if sigmas > 0.0 else "less"
    place = "next to each other" if lag == 1 else f"{lag} places apart"
    return (
        f"outputs on {side} that stand {place} in a call are {more} alike than independent draws "
        f"would be ({abs(sigmas):.1f} standard deviations): {_NO_BOUND_REASON}"
    )


def _describe_variation(side: str, where: str, chance: float) -> str:
    return (
        f"counts on {side} vary more from {where} than those of independent draws would "
        f"(p-value {chance:.1e}): {_NO_BOUND_REASON}"
    )


def varying_calls(chance: float) -> str:
    """Format the sentence on columns that vary more between calls than within them."""
    return (
        f"outputs vary more from call to call than those of independent draws would "
        f"(p-value {chance:.1e}): {_NO_BOUND_REASON}"
    )
