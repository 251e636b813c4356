"""Fields of an audit, each declared with how it is read, checked and merged.

A field without metadata is read without a check. It must be equal in audits that are added: a field
without a rule raises an error, and no value is lost.

The provenance is not compared and no figure depends on it. It names no host, no user and no
folder; only the command line, which its user typed, may hold a path.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable
from dataclasses import Field, dataclass, field, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import errors
from ..bounds import BOUNDS, clopper_pearson
from ..claims.trade_off import Claim
from ..events import SIDES
from ..pairs import Searched
from ..records import Counts, Pair, PartsRead, Record, Result, SeenOutput, frozen_array
from ..report.plain import Reading, as_it_stands

Randomness = Literal["seed", "rounding", "own", "not known"]
RANDOMNESS: Final[tuple[Randomness, ...]] = get_args(Randomness)
"""Sources of a mechanism's randomness, see `Audit.randomness`."""

_RANDOMNESS_FROM_WORST: Final = ("own", "rounding", "seed", "not known")
"""Values of `Audit.randomness` from worst to best: two merged audits get the worse one."""

Merging = Callable[[Any, Any], Any]
"""From the values of the earlier and the later trials to that of both."""

total: Final[Merging] = operator.add
larger: Final[Merging] = max
either: Final[Merging] = operator.or_

LEFT_OUT: Final = "left out (source=False)"
"""The origin where no source was wanted: no hash then either, for short texts can be guessed."""

MOST_DIGESTS: Final = 1024
"""Digests of blocks that an audit holds."""

MOST_NAMES: Final = 64
"""Names of columns that the record of a table holds: there may be 100,000."""

_MAX_SHOWN_NAMES: Final = 8
_TEXT_FIELDS: Final = ("date", "origin", "source", "cpu", "system", "architecture", "command")


def numerator_first(counts: Counts, direction: str | None) -> Counts:
    """Return the counts with the numerator's side first, as a direction "x" or "x_prime" names."""
    return counts if direction == "x" else counts.swapped()


def per_distance(loss: float, delta: float, distance: float) -> float:
    """Compute a loss per unit of distance at delta 0; at delta > 0 it is never divided."""
    return loss / distance if delta == 0.0 else loss


def log_ratio(k: int, k_prime: int, n: int = 1, n_prime: int = 1) -> float:
    """Compute the log of the quotient of k/n and k'/n': 0 for 0/0, infinite with one 0."""
    if k == 0 or k_prime == 0:
        return 0.0 if k == k_prime else math.copysign(math.inf, k - 0.5)
    return math.log(k / n) - math.log(k_prime / n_prime)


def empirical_loss(counts: Counts) -> float:
    """Compute the larger of abs(ln(k/k')) and abs(ln((n-k)/(n'-k'))), of frequencies.

    Source:
        Habernal (2022), equation 12.
    """
    cells = (counts, counts.complement())
    return max(abs(log_ratio(c.k, c.k_prime, c.n, c.n_prime)) for c in cells)


def format_verdict(refuted: bool | None, doubts: tuple[str, ...], undecided: str) -> str:
    """Format the outcome in words.

    Args:
        refuted: the outcome.
        doubts: contradictions to the independence of the rows. With any no bound holds.
        undecided: reason why the claim was not tested, or "".
    """
    if doubts:
        return f"invalid: {doubts[0]}"
    if undecided:
        return f"undecided: {undecided}"
    words = {None: "no claim given", True: "refuted", False: "not refuted by this attack"}
    return words[refuted]


def less_repeated(early: str, late: str) -> str:
    """Return the source of randomness that repeats less, of two audits; see `RANDOMNESS`."""
    return min((early, late), key=_RANDOMNESS_FROM_WORST.index)


def explain_reach(size: str, ceiling: float, claim: Any, parameter: float | None) -> str:
    """Explain that not even a perfect event refutes the claim.

    Args:
        size: number of trials, in words.
        ceiling: largest epsilon that they certify.
        claim: what is tested.
        parameter: largest parameter of a claim that is a curve that they refute, or None.
    """
    most = f"{ceiling:.3g}" if parameter is None else f"{claim.parameter} {parameter:.3g}"
    if isinstance(claim, Claim) and parameter is None:
        return f"{size} refute no curve as low as this one, whatever the event"
    return f"{size} certify at most {most}"


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
        errors.instance("step", self.step, str)
        errors.real("seconds", self.seconds, low=0.0)
        errors.integer("outputs", self.outputs, 0)


def both_spent(early: tuple[Spent, ...], late: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """Sum the time and outputs of two audits, step by step."""
    spent_by_step: dict[str, Spent] = {}
    for spent in (*early, *late):
        so_far = spent_by_step.get(spent.step, Spent(spent.step, 0.0, 0))
        together = so_far.seconds + spent.seconds, so_far.outputs + spent.outputs
        spent_by_step[spent.step] = Spent(spent.step, *together)
    return tuple(spent_by_step.values())


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

    event: Any = field(metadata={"named": True})
    direction: str
    counts: Counts
    delta: float
    confidence: float

    def __post_init__(self) -> None:
        """Check the fields that a bound rests on."""
        errors.choice("direction", self.direction, SIDES)
        errors.instance("counts", self.counts, Counts)
        errors.delta_level(self.delta)
        errors.confidence_level(self.confidence)

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
                raise errors.invalid(name, requirement, counts)
            object.__setattr__(self, name, counts)

    def __add__(self, other: object) -> Scored:
        """Return the curve on both sets of draws."""
        if not isinstance(other, Scored):
            return NotImplemented
        if not np.array_equal(self.thresholds, other.thresholds):
            raise errors.invalid("thresholds", "equal in both curves", other.thresholds)
        k, k_prime = self.k + other.k, self.k_prime + other.k_prime
        return Scored(self.thresholds, k, self.n + other.n, k_prime, self.n_prime + other.n_prime)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Record, word="Slice"):
    """One slice of an audit with early stop: an event that earlier slices chose, and its counts.

    Args:
        pair: the two inputs.
        event: what was counted.
        direction: "x" or "x_prime".
        counts: of this slice only, equal numbers of trials on both sides.
        guess: the probabilities (numerator's side, other side) expected before the slice.
    """

    pair: Pair = field(metadata={"named": True})
    event: Any = field(metadata={"named": True})
    direction: str
    counts: Counts
    guess: tuple[float, float]

    def __post_init__(self) -> None:
        """Check the fields that a bound rests on."""
        errors.instance("pair", self.pair, Pair)
        errors.choice("direction", self.direction, SIDES)
        counts = errors.instance("counts", self.counts, Counts)
        if counts.n != counts.n_prime:
            raise errors.invalid("counts", "of equal numbers of trials", counts)
        if len(self.guess) != 2:
            raise errors.invalid("guess", "two probabilities", self.guess)
        for probability in self.guess:
            errors.real("guess", probability, low=0.0, high=1.0, open_low=True, open_high=True)

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


def unite_digests(early: tuple[str, ...], late: tuple[str, ...]) -> tuple[str, ...]:
    """Return the smallest digests of two audits: equal blocks are kept or dropped together."""
    return tuple(sorted({*early, *late})[:MOST_DIGESTS])


def require_equal(early: Any, late: Any) -> Any:
    """Return the value that both audits have in common; `merge` refuses other audits."""
    return early


def merge_together(early: Any, late: Any) -> Any:
    """Mark a field that follows from several fields of both audits; `merge` computes it."""
    raise NotImplementedError


def either_one(early: Any, late: Any) -> Any:
    """Return the value that is not None, the earlier one if both have a value."""
    return late if early is None else early


def field_rule(read: Reading = as_it_stands, merge: Merging = require_equal) -> dict[str, Any]:
    """Make the metadata of a field.

    Args:
        read: checks what a file holds and returns the field's value.
        merge: the value for the trials of two audits: `require_equal`, `total`, `larger`, `either`,
            `merge_together`, or a function of the earlier and the later one.

    Returns:
        What `dataclasses.field` takes as `metadata`.
    """
    return {"read": read, "merge": merge}


def merging_of(field: Field[Any]) -> Merging:
    """Return the function that merges two values of a field."""
    merging: Merging = field.metadata.get("merge", require_equal)
    return merging


def read_checked(check: Callable[[Any], Any]) -> Reading:
    """Return a reader that accepts the values that `check` accepts."""

    def read(name: str, value: Any) -> Any:
        check(value)
        return value

    return read


def read_instance(kind: type) -> Reading:
    """Return a reader that accepts objects of one class."""
    return lambda name, value: errors.instance(name, value, kind)


def read_optional(read: Reading) -> Reading:
    """Return a reader that accepts None or any value that `read` accepts."""
    return lambda name, value: None if value is None else read(name, value)


def one_of(*options: str) -> Reading:
    """Return a reader that accepts one of these words."""
    return lambda name, value: errors.choice(name, value, options)


def lists_of(kind: type, many: int | None = None) -> Reading:
    """Return a reader that makes a tuple of a list of objects of one class.

    `many` is the required length. None allows any.
    """

    def read(name: str, value: Any) -> Any:
        for item in errors.instance(name, value, list):
            errors.instance(name, item, kind)
        if many is not None and len(value) != many:
            raise errors.invalid(name, "two values", tuple(value))
        return tuple(value)

    return read


def read_whole_number(low: int) -> Reading:
    """Return a reader that accepts integers from `low` on."""
    return lambda name, value: errors.integer(name, value, low)


def read_epsilon(name: str, value: Any) -> Any:
    """Read an epsilon: a finite number, at least 0."""
    errors.real(name, value, low=0.0)
    return value


def read_claim(name: str, value: Any) -> Any:
    """Read an epsilon, or a claim that is a curve."""
    return value if isinstance(value, Claim) else read_epsilon(name, value)


def read_float(name: str, value: Any) -> float:
    """Read a float."""
    return float(value)


def read_seed(name: str, value: Any) -> int:
    """Read a seed; files hold it as a string because some JSON readers lack such integers."""
    return errors.integer(name, int(value), 0, 2**63 - 1)


def read_shape(name: str, value: Any) -> tuple[int, ...]:
    """Read the lengths of an array's axes."""
    return tuple(errors.integer(name, length, 0) for length in value)


def read_ranges(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Read ranges of trials, which must be in order and disjoint, as they are written."""
    reach = 0
    for start, stop in value:
        errors.integer("stop", stop, errors.integer("start", start, reach) + 1)
        reach = stop
    return tuple((start, stop) for start, stop in value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(Record, word="Provenance"):
    """Record of how one run was made.

    Attributes:
        date: when it began, UTC, such as "2026-11-22T14:41:41Z".
        origin: what `source` is the text of, or why there is none.
        source: the source text as `inspect.getsource` gives it; what it calls is not followed.
            Read from its file when the audit began: a file that was edited since it was imported
            gives the edited text.
        versions: (name, version) of Python, dpcore, numpy and the libraries that the mechanism
            comes from.
        cpu: model of the CPU, empty if the system does not state it.
        cores: cores of the machine.
        system: the operating system.
        architecture: what the machine is, such as "x86_64".
        command: the command line of `dpcore audit`, or "pytest" and the id of the test; empty in
            scripts and notebooks.
    """

    date: str
    origin: str
    source: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    cpu: str = ""
    cores: int = 1
    system: str = ""
    architecture: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Check the kinds: a page shows what a file holds."""
        for name in _TEXT_FIELDS:
            errors.instance(name, getattr(self, name), str)
        errors.integer("cores", self.cores, 1)
        for pair in errors.instance("versions", self.versions, tuple):
            if len(errors.instance("versions", pair, tuple)) != 2 or not all(
                isinstance(w, str) for w in pair
            ):
                raise errors.invalid("versions", "pairs of a name and a version", self.versions)

    @property
    def sha256(self) -> str:
        """SHA-256 of the source text in UTF-8, in hexadecimal; empty without a text."""
        text = self.source.encode("utf-8", "backslashreplace")
        return hashlib.sha256(text).hexdigest() if text else ""

    def __repr__(self) -> str:
        """Return one line, without the source text."""
        return f"<Provenance of {self.date}: {self.origin}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRead(Record, word="TableRead"):
    """A file or a frame that outputs were read from, and what was found in it.

    Args:
        name: name of the file without its folder, or of the argument that held the frame.
        kind: name of the format, such as "csv" (of tables with tabs too), or "frame".
        rows: number of rows.
        columns: the columns that were read, by name or by number from 0, the first 64, or none for
            an array that was read whole.
        there: names of all columns, the first 64, or none without names.
        width: number of all columns.
        header: True if the first row of a text held the names, or None where none can.
        sep: what stands between the cells of a CSV file.
        encoding: of a text.
        sha256: SHA-256 of the bytes of the file, in hexadecimal; empty for frames.
        by_position: True if its columns were matched by position with those of the other side,
            because only one of the two has names.

    Example:
        >>> print(TableRead("a.csv", "csv", 2, ("y",), ("x", "y"), 2, True, ",", "utf-8"))
        a.csv: 2 rows, column 'y' of 'x', 'y'; csv with a header, ',' between cells, utf-8
    """

    name: str
    kind: str
    rows: int
    columns: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    width: int = 1
    header: bool | None = None
    sep: str = ""
    encoding: str = ""
    sha256: str = ""
    by_position: bool = False
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the kinds: a page shows what a file holds."""
        for name in ("name", "kind", "sep", "encoding", "sha256"):
            errors.instance(name, getattr(self, name), str)
        errors.integer("rows", self.rows, 0)
        errors.integer("width", self.width, 0)
        errors.instance("by_position", self.by_position, bool)
        if self.header is not None:
            errors.instance("header", self.header, bool)
        for names in (self.columns, self.there, self.kinds):
            for name in errors.instance("columns", names, tuple):
                errors.instance("columns", name, str)

    def __str__(self) -> str:
        """Return one line for a report."""
        header = {True: " with a header", False: " without a header", None: ""}[self.header]
        sep = f"{self.sep!r} between cells" if self.sep and self.width > 1 else ""
        how = ", ".join(part for part in (f"{self.kind}{header}", sep, self.encoding) if part)
        end = "; columns matched by position" if self.by_position else ""
        end += f"; SHA-256 {self.sha256}" if self.sha256 else ""
        what = f"{self._list_columns()}{self._list_kinds()}"
        return f"{self.name}: {self.rows:,} rows{what}; {how}{end}"

    def _list_columns(self) -> str:
        if not self.columns or (self.width == 1 and not self.there):
            return ""
        quoted = [repr(name) if self.there else name for name in self.columns]
        many = "column" if len(quoted) == 1 else "columns"
        others = _shorten_name_list([repr(name) for name in self.there], self.width)
        of = f" of {others}" if self.there else f" of {self.width:,}"
        return f", {many} {_shorten_name_list(quoted, len(quoted))}{of if self.width > 1 else ''}"

    def _list_kinds(self) -> str:
        """Return what the cells are, once for all columns where they are alike."""
        names: dict[str, list[str]] = {}
        for name, kind in zip(self.columns, self.kinds, strict=False):
            names.setdefault(kind, []).append(repr(name) if self.there else name)
        if len(names) < 2:
            return f": {self.kinds[0]}" if names else ""
        lists = [f"{_shorten_name_list(each, len(each))} {kind}" for kind, each in names.items()]
        return f": {_shorten_name_list(lists, len(lists))}"


def _shorten_name_list(names: list[str], size: int) -> str:
    more = f" ({size:,} in all)" if size > _MAX_SHOWN_NAMES else ""
    return ", ".join(names[:_MAX_SHOWN_NAMES]) + more


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence(Result):
    """A finished audit. Every figure is a property of the four integers in `counts`.

    Three words differ: `claim` is what somebody states, `epsilon_lower` what is certified at
    `confidence`, `epsilon_hat` a point estimate, not a bound.

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
        end: where the run was meant to end, which after early stop or Ctrl-C no range shows (part
            of what repeats a callable's last block).
        nan: output entries on x that were NaN.
        nan_prime: the same on x'.
        pilot: pilot draws on each side, which were not counted.
        partial: True if Ctrl-C ended the audit early or parts of its run were left out.
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
        notes: what a reader should know in addition to the figures; no note changes a verdict.
        neighbour: the relation of neighbours that the pair was checked against, or empty.
        randomness: "seed" (repeats the outputs), "rounding" (not bit for bit), "own", "not known".
        runs_on: device and version of torch, for a torch mechanism; else empty. Part of what
            repeats it.
        shape: shape of one output.
        clean: the vectors that the noise is added to, if the mechanism states them: attacks knew
            these of the pair.
        declared_loss: exact loss of the pair at `delta`, computed from the noise that the mechanism
            declares and not certified, or None where it declares none.
        read: part of the pilot's outputs that was read before the event was chosen, or None where
            the attack does not say (not compared).
        inside: up to five distinct outputs inside the event, of 4,096 pilot outputs per side; empty
            with `source=False`, and for real numbers that do not repeat (not compared).
        tangent: epsilon of the tangent to a claim that is a curve, chosen by the pilot, or None for
            other claims.
        searched: what a search for the pair took, or None (not compared: the pair is in `pair`).
        budget: seconds by which the trials were chosen, or None; of audits that were added, None
            (not compared: the trials repeat the audit).
        digests: of counted blocks of a callable, the 1,024 smallest, by which outputs are
            recognized that another audit counted too.
        threads: threads used (not compared).
        seconds: time taken to count, in all processes of a run (not compared).
        spent: time and outputs of every step in the last process (not compared); empty for merged
            parts of a run.
        provenance: how each run that was added up was made (not compared).
        constant: sentence that all pilot outputs on both sides were one value; else empty.
        rounding_won: True if `event` is the floating-point finding, which certifies more than the
            event that the attack chose. That event is then in `floating_point`.
    """

    mechanism: Any = field(metadata=field_rule())
    pair: Pair = field(metadata=field_rule(read_instance(Pair)))
    attack: str = field(metadata=field_rule(read_instance(str)))
    event: Any = field(metadata=field_rule())
    direction: str = field(metadata=field_rule(one_of(*SIDES)))
    counts: Counts = field(metadata=field_rule(read_instance(Counts), total))
    claim: float | Claim | None = field(metadata=field_rule(read_optional(read_claim)))
    delta: float = field(metadata=field_rule(read_checked(errors.delta_level)))
    confidence: float = field(metadata=field_rule(read_checked(errors.confidence_level)))
    seed: int = field(metadata=field_rule(read_seed))
    block: int = field(metadata=field_rule(read_whole_number(1)))
    route: str = field(
        metadata=field_rule(one_of("integer", "sampled", "callable", "timed"), larger)
    )
    ranges: tuple[tuple[int, int], ...] = field(metadata=field_rule(read_ranges, merge_together))
    end: int = field(metadata=field_rule(merge=merge_together))
    nan: int = field(default=0, metadata=field_rule(read_whole_number(0), total))
    nan_prime: int = field(default=0, metadata=field_rule(read_whole_number(0), total))
    pilot: int = field(default=0, metadata=field_rule(read_whole_number(0), larger))
    partial: bool = field(default=False, metadata=field_rule(read_instance(bool), either))
    bound: str = field(
        default="clopper_pearson",
        metadata=field_rule(
            lambda name, value: errors.choice(name, value, tuple(BOUNDS)), merge_together
        ),
    )
    stop: str = field(
        default="fixed",
        metadata=field_rule(one_of("fixed", "refuted", "interrupted", "looked"), merge_together),
    )
    pooled: tuple[Counts, ...] = field(
        default=(), metadata=field_rule(lists_of(Counts), merge_together)
    )
    floating_point: Finding | None = field(
        default=None, metadata=field_rule(read_optional(read_instance(Finding)), both_findings)
    )
    floats: bool = field(default=False, metadata=field_rule(read_instance(bool)))
    curve: Scored | None = field(
        default=None, metadata=field_rule(read_optional(read_instance(Scored)), both_curves)
    )
    slices: tuple[Slice, ...] = field(
        default=(), metadata=field_rule(lists_of(Slice), merge_together)
    )
    checks: tuple[str, ...] = field(default=(), metadata=field_rule(lists_of(str), merge_together))
    notes: tuple[str, ...] = field(default=(), metadata=field_rule(lists_of(str), merge_together))
    neighbour: str = field(default="", metadata=field_rule(read_instance(str)))
    randomness: Randomness = field(
        default="not known", metadata=field_rule(one_of(*RANDOMNESS), less_repeated)
    )
    runs_on: str = field(default="", metadata=field_rule(read_instance(str)))
    shape: tuple[int, ...] = field(default=(1,), metadata=field_rule(read_shape))
    clean: Pair | None = field(
        default=None, metadata=field_rule(read_optional(read_instance(Pair)))
    )
    declared_loss: float | None = field(
        default=None, metadata=field_rule(read_optional(read_float))
    )
    tangent: float | None = field(default=None, metadata=field_rule(read_optional(read_epsilon)))
    read: PartsRead | None = field(
        default=None,
        compare=False,
        metadata=field_rule(read_optional(read_instance(PartsRead)), either_one),
    )
    inside: tuple[SeenOutput, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(SeenOutput), either_one)
    )
    digests: tuple[str, ...] = field(default=(), metadata=field_rule(lists_of(str), unite_digests))
    searched: Searched | None = field(
        default=None,
        compare=False,
        metadata=field_rule(read_optional(read_instance(Searched)), either_one),
    )
    budget: float | None = field(
        default=None,
        compare=False,
        metadata=field_rule(read_optional(read_float), lambda early, late: None),
    )
    threads: int = field(
        default=1, compare=False, metadata=field_rule(read_whole_number(1), larger)
    )
    seconds: float = field(default=0.0, compare=False, metadata=field_rule(read_float, total))
    spent: tuple[Spent, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(Spent), both_spent)
    )
    provenance: tuple[Provenance, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(Provenance), total)
    )
    constant: str = field(default="", metadata=field_rule(read_instance(str)))
    rounding_won: bool = field(default=False, metadata=field_rule(read_instance(bool)))

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon of the claim at `delta`: of a curve, that of the tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def bound_counts(self) -> Counts:
        """The counts with the numerator's side first."""
        return numerator_first(self.counts, self.direction)
