"""Fields of an audit, each declared with how it is read, checked and merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..bounds import BOUNDS
from ..claims.claim import Claim
from ..errors import confidence_level, delta_level
from ..events import SIDES
from ..pairs import Searched
from ..records import Counts, Pair, PartsRead, Record, SeenOutput
from .fields import (
    either,
    either_one,
    larger,
    make_field_metadata,
    merge_together,
    one_of,
    read_checked,
    read_claim,
    read_epsilon,
    read_float,
    read_instance,
    read_optional,
    read_ranges,
    read_seed,
    read_several,
    read_shape,
    read_whole_number,
    total,
)
from .figures import numerator_first
from .findings import (
    RANDOMNESS,
    Finding,
    Scored,
    Slice,
    Spent,
    both_curves,
    both_findings,
    both_spent,
    less_repeated,
)
from .provenance import Provenance

__all__ = ["Evidence"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence(Record):
    """A finished audit. Every figure is a property of the four integers in `counts`.

    Three words differ: `claim` is what somebody states, `epsilon_lower` what is certified at
    `confidence`, `epsilon_hat` a point estimate that certifies nothing.

    Attributes:
        mechanism: what was audited (its name, where it was read from JSON and is not native).
        pair: the two inputs.
        attack: name of the attack that chose the event.
        event: what was counted, `outputs -> bool`.
        direction: "x" or "x_prime": the side in the numerator of the bound.
        counts: how often the event happened on each side; `counts.k` belongs to `pair.x`.
        claim: the epsilon tested, or a curve (see `dpcore.claims`), or None.
        delta: the delta of the claim; of a curve, that of the tangent.
        confidence: probability that the bound holds.
        seed: repeats the audit, together with `block`.
        block: trials in a block.
        route: "integer", "sampled" or "callable".
        ranges: the trials that were counted, `(start, stop)` pairs.
        end: where the run was meant to end (part of what repeats a callable's last block).
        nan: output entries on x that were NaN.
        nan_prime: the same on x'.
        pilot: pilot draws on each side, which were not counted.
        partial: True if Ctrl-C ended the audit early.
        bound: name of the bound in `dpcore.bounds.BOUNDS`, fixed before counting.
        stop: the stopping rule: "fixed" (n was fixed in advance), "refuted" (looked after every
            slice), "interrupted" or "looked" (merged after looking). All but the first carry an
            anytime bound.
        pooled: counts by group of coordinates, where the event pools them; else empty.
        floating_point: what was found of rounding in the outputs, or None.
        floats: True if that finding counts towards the verdict.
        curve: counts of the event's score at thresholds of the pilot, or None.
        slices: the pieces of an audit with early stop; else empty.
        checks: what contradicts that rows are independent draws: then no bound holds.
        notes: what a reader should know in addition to the figures; nothing here changes a verdict.
        neighbour: the relation of neighbours that the pair was checked against, or empty.
        randomness: "seed" (repeats the outputs), "rounding" (not bit for bit), "own", "not known".
        runs_on: device and version of torch, for a torch mechanism; else empty. Part of what
            repeats it.
        shape: shape of one output.
        clean: the vectors that the noise is added to, if the mechanism states them: attacks knew
            these of the pair.
        declared_loss: exact loss of the pair at `delta`, computed from the noise that the mechanism
            declares and not certified; None where it declares none.
        read: how much of the pilot's outputs was read before the event was chosen; None where the
            attack does not say, and in older files (not compared).
        inside: up to five distinct outputs inside the event, of 4,096 pilot outputs a side; empty
            with `source=False`, for real numbers that do not repeat, and in older files (not
            compared).
        tangent: epsilon of the tangent to a claim that is a curve, chosen by the pilot; None for
            other claims.
        searched: what a search for the pair took, or None (not compared: the pair is in `pair`).
        threads: threads used (not compared).
        seconds: time taken to count (not compared).
        spent: time and outputs of every step (not compared); empty in older files.
        provenance: how each run that was added up was made (not compared).
    """

    mechanism: Any = field(metadata=make_field_metadata(objects=True))
    pair: Pair = field(metadata=make_field_metadata(read_instance(Pair), objects=True))
    attack: str = field(metadata=make_field_metadata(read_instance(str)))
    event: Any = field(metadata=make_field_metadata(objects=True))
    direction: str = field(metadata=make_field_metadata(one_of(*SIDES)))
    counts: Counts = field(metadata=make_field_metadata(read_instance(Counts), total, objects=True))
    claim: float | Claim | None = field(
        metadata=make_field_metadata(read_optional(read_claim), objects=True)
    )
    delta: float = field(metadata=make_field_metadata(read_checked(delta_level)))
    confidence: float = field(metadata=make_field_metadata(read_checked(confidence_level)))
    seed: int = field(metadata=make_field_metadata(read_seed))
    block: int = field(metadata=make_field_metadata(read_whole_number(1)))
    route: str = field(
        metadata=make_field_metadata(one_of("integer", "sampled", "callable", "timed"), larger)
    )
    ranges: tuple[tuple[int, int], ...] = field(
        metadata=make_field_metadata(read_ranges, merge_together)
    )
    end: int = field(metadata=make_field_metadata(merge=merge_together))
    nan: int = field(
        default=0, metadata=make_field_metadata(read_whole_number(0), total, always=True)
    )
    nan_prime: int = field(
        default=0, metadata=make_field_metadata(read_whole_number(0), total, always=True)
    )
    pilot: int = field(
        default=0, metadata=make_field_metadata(read_whole_number(0), larger, always=True)
    )
    partial: bool = field(
        default=False, metadata=make_field_metadata(read_instance(bool), either, always=True)
    )
    bound: str = field(
        default="clopper_pearson",
        metadata=make_field_metadata(one_of(*BOUNDS), merge_together, always=True),
    )
    stop: str = field(
        default="fixed",
        metadata=make_field_metadata(
            one_of("fixed", "refuted", "interrupted", "looked"), merge_together, always=True
        ),
    )
    pooled: tuple[Counts, ...] = field(
        default=(),
        metadata=make_field_metadata(
            read_several(Counts), merge_together, always=True, objects=True
        ),
    )
    floating_point: Finding | None = field(
        default=None,
        metadata=make_field_metadata(
            read_optional(read_instance(Finding)), both_findings, always=True, objects=True
        ),
    )
    floats: bool = field(
        default=False, metadata=make_field_metadata(read_instance(bool), always=True)
    )
    curve: Scored | None = field(
        default=None,
        metadata=make_field_metadata(
            read_optional(read_instance(Scored)), both_curves, always=True, objects=True
        ),
    )
    slices: tuple[Slice, ...] = field(
        default=(),
        metadata=make_field_metadata(
            read_several(Slice), merge_together, always=True, objects=True
        ),
    )
    checks: tuple[str, ...] = field(
        default=(),
        metadata=make_field_metadata(read_several(str), merge_together, always=True, objects=True),
    )
    notes: tuple[str, ...] = field(
        default=(), metadata=make_field_metadata(read_several(str), merge_together, objects=True)
    )
    neighbour: str = field(default="", metadata=make_field_metadata(read_instance(str)))
    randomness: str = field(
        default="not known", metadata=make_field_metadata(one_of(*RANDOMNESS), less_repeated)
    )
    runs_on: str = field(default="", metadata=make_field_metadata(read_instance(str)))
    shape: tuple[int, ...] = field(
        default=(1,), metadata=make_field_metadata(read_shape, always=True)
    )
    clean: Pair | None = field(
        default=None, metadata=make_field_metadata(read_optional(read_instance(Pair)), objects=True)
    )
    declared_loss: float | None = field(
        default=None, metadata=make_field_metadata(read_optional(read_float))
    )
    tangent: float | None = field(
        default=None, metadata=make_field_metadata(read_optional(read_epsilon))
    )
    read: PartsRead | None = field(
        default=None,
        compare=False,
        metadata=make_field_metadata(
            read_optional(read_instance(PartsRead)), either_one, objects=True
        ),
    )
    inside: tuple[SeenOutput, ...] = field(
        default=(),
        compare=False,
        metadata=make_field_metadata(read_several(SeenOutput), either_one, objects=True),
    )
    searched: Searched | None = field(
        default=None,
        compare=False,
        metadata=make_field_metadata(
            read_optional(read_instance(Searched)), either_one, objects=True
        ),
    )
    threads: int = field(
        default=1,
        compare=False,
        metadata=make_field_metadata(read_whole_number(1), larger, always=True),
    )
    seconds: float = field(
        default=0.0, compare=False, metadata=make_field_metadata(read_float, total, always=True)
    )
    spent: tuple[Spent, ...] = field(
        default=(),
        compare=False,
        metadata=make_field_metadata(read_several(Spent), both_spent, objects=True),
    )
    provenance: tuple[Provenance, ...] = field(
        default=(),
        compare=False,
        metadata=make_field_metadata(read_several(Provenance), total, objects=True),
    )

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon of the claim at `delta`: of a curve, that of the tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def bound_counts(self) -> Counts:
        """The counts with the numerator's side first."""
        return numerator_first(self.counts, self.direction)
