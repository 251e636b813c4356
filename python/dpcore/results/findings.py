"""Additional findings of an audit: floating-point finding, curve, early slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..bounds import clopper_pearson
from ..errors import choice, confidence_level, delta_level, instance, integer, invalid, real
from ..events import SIDES
from ..records import Counts, Pair, Record, frozen_array
from .figures import numerator_first

RANDOMNESS: Final = ("seed", "rounding", "own", "not known")
"""Sources of randomness, which decide what the seed repeats, see `Audit.randomness`."""

_RANDOMNESS_FROM_WORST: Final = ("own", "rounding", "seed", "not known")
"""Sources of randomness, the worst first: of two audits the worse one holds for both."""


def less_repeated(early: str, late: str) -> str:
    """Return the source of randomness that repeats less, of two audits; see `RANDOMNESS`."""
    return min((early, late), key=_RANDOMNESS_FROM_WORST.index)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spent(Record, word="Spent"):
    """Time and outputs of one step of an audit.

    Args:
        step: "probe" (a few calls show the shape and the source of randomness), "search" (for the
            pair), "fit" (event and direction, on pilot draws), "count" or "report" (checks of
            the counted rows, and the record).
        seconds: time.
        outputs: outputs made, on both sides together.
    """

    step: str
    seconds: float
    outputs: int

    def __post_init__(self) -> None:
        """Check the fields."""
        instance("step", self.step, str)
        real("seconds", self.seconds, low=0.0)
        integer("outputs", self.outputs, 0)


def both_spent(early: tuple[Spent, ...], late: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """Sum the time and outputs of two audits, step by step."""
    found: dict[str, Spent] = {}
    for one in (*early, *late):
        so_far = found.get(one.step, Spent(one.step, 0.0, 0))
        together = so_far.seconds + one.seconds, so_far.outputs + one.outputs
        found[one.step] = Spent(one.step, *together)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finding(Record, word="Finding"):
    """Finding besides the event of an audit, with its own counts and bound.

    It speaks of the code as it runs (of rounding, say), not of the law that the code means to
    have, and never changes the audit's own bound, verdict or exit status. Every textbook sampler
    of continuous noise has one: the last bits of its floats distinguish the inputs. It matters
    where raw outputs are released; rounding them to a coarse grid, or discrete noise, mends it.

    Args:
        event: what was counted.
        direction: "x" or "x_prime": the side in the numerator.
        counts: on the trials on which it was counted; `counts.k` belongs to x.
        delta: delta of the claim.
        confidence: confidence of its bound, on its own.

    Source:
        Mironov (2012), On significance of the least significant bits for differential privacy.
    """

    event: Any
    direction: str
    counts: Counts
    delta: float
    confidence: float

    def __post_init__(self) -> None:
        """Check the fields that a bound rests on."""
        choice("direction", self.direction, SIDES)
        instance("counts", self.counts, Counts)
        delta_level(self.delta)
        confidence_level(self.confidence)

    @property
    def bound_counts(self) -> Counts:
        """The counts with the numerator's side first."""
        return numerator_first(self.counts, self.direction)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on the loss of the code as it runs (Clopper-Pearson)."""
        return clopper_pearson(self.bound_counts, self.delta, self.confidence)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scored(Record, word="Scored"):
    """Numbers of outputs that scored at or above thresholds that the pilot had fixed.

    Args:
        thresholds: increasing, in the units of the event's score, shape `(m,)`.
        k: outputs on x at or above each, shape `(m,)`.
        n: outputs on x that were scored.
        k_prime: outputs on x' at or above each, shape `(m,)`.
        n_prime: outputs on x' that were scored.
    """

    thresholds: npt.NDArray[np.float64]
    k: npt.NDArray[np.int64]
    n: int
    k_prime: npt.NDArray[np.int64]
    n_prime: int

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they belong together."""
        object.__setattr__(self, "thresholds", frozen_array(np.asarray(self.thresholds, float)))
        for name, total in (("k", self.n), ("k_prime", self.n_prime)):
            counts = frozen_array(np.asarray(getattr(self, name), np.int64))
            if counts.shape != self.thresholds.shape or ((counts < 0) | (counts > total)).any():
                requirement = f"counts from 0 to {total}, one for each threshold"
                raise invalid(name, requirement, counts)
            object.__setattr__(self, name, counts)

    def __add__(self, other: object) -> Scored:
        """Return the curve on both sets of draws."""
        if not isinstance(other, Scored):
            return NotImplemented
        if not np.array_equal(self.thresholds, other.thresholds):
            raise invalid("thresholds", "equal in both curves", other.thresholds)
        return Scored(
            self.thresholds,
            self.k + other.k,
            self.n + other.n,
            self.k_prime + other.k_prime,
            self.n_prime + other.n_prime,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Record, word="Slice"):
    """One slice of an audit with early stop: an event that earlier slices chose, and its counts.

    Args:
        pair: the two inputs.
        event: what was counted.
        direction: "x" or "x_prime".
        counts: of this slice alone, equal numbers of trials on both sides.
        guess: the probabilities (numerator's side, other side) expected before the slice.
    """

    pair: Pair
    event: Any
    direction: str
    counts: Counts
    guess: tuple[float, float]

    def __post_init__(self) -> None:
        """Check the fields that a bound rests on."""
        instance("pair", self.pair, Pair)
        choice("direction", self.direction, SIDES)
        counts = instance("counts", self.counts, Counts)
        if counts.n != counts.n_prime:
            raise invalid("counts", "of equal numbers of trials", counts)
        if len(self.guess) != 2:
            raise invalid("guess", "two probabilities", self.guess)
        for one in self.guess:
            real("guess", one, low=0.0, high=1.0, open_low=True, open_high=True)

    @property
    def bound_counts(self) -> Counts:
        """The counts with the numerator's side first."""
        return numerator_first(self.counts, self.direction)


def both_findings(early: Finding | None, late: Finding | None) -> Finding | None:
    """Merge the findings of two audits; of two events, keep the one of the earlier trials."""
    if early is None or late is None or early.event != late.event:
        return early or late
    return replace(early, counts=early.counts + late.counts)


def both_curves(early: Scored | None, late: Scored | None) -> Scored | None:
    """Merge the curves of two audits; of two sets of thresholds, keep the earlier trials' curve."""
    if early is None or late is None:
        return early or late
    # Of pilots of two sizes the thresholds differ even where the event is the same.
    same = np.array_equal(early.thresholds, late.thresholds)
    return early + late if same else early
