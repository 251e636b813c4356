"""Fields of an audit. A field can declare how it is read from a file, checked and merged.

A field without such a declaration is read without a check. Two audits can be merged only if they
have equal values in such a field.

The provenance states how an audit was made. A comparison of audits by `==` ignores the provenance,
and no reported number depends on it. It does not contain the names of the host, the user or a
folder. Only the command line, which the user typed, may contain a path.
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
from ..report.plain import Reading, return_unchanged

Randomness = Literal["seed", "rounding", "own", "not known"]
RANDOMNESS: Final[tuple[Randomness, ...]] = get_args(Randomness)
"""Possible values of `Audit.randomness`, which state whether the seed repeats the outputs."""

_RANDOMNESS_FROM_WORST: Final = ("own", "rounding", "seed", "not known")
"""Values of `Audit.randomness` from worst to best. A merge of two audits takes the worse value."""

Merging = Callable[[Any, Any], Any]
"""Function that merges the values that a field has in an earlier and in a later audit."""

total: Final[Merging] = operator.add
larger: Final[Merging] = max
either: Final[Merging] = operator.or_

LEFT_OUT: Final = "left out (source=False)"
"""Value of `Provenance.origin` if the user asked not to store source code, and thus no hash."""

MOST_DIGESTS: Final = 1024
"""Largest number of digests (hashes) of blocks that an audit stores."""

MOST_NAMES: Final = 64
"""Largest number of column names in the record of a table, which may have 100,000 columns."""

_MAX_SHOWN_NAMES: Final = 8
_DELTA_STEPS: Final = 50
"""Number of halvings of [0, 1] in a search for a delta."""
_TEXT_FIELDS: Final = ("date", "origin", "source", "cpu", "system", "architecture", "command")


def put_numerator_first(counts: Counts, direction: str | None) -> Counts:
    """Return counts with `k` and `n` for the input in the numerator of the probability ratio.

    An audit bounds epsilon by this ratio. `direction` is the input in the numerator. If `direction`
    is not "x", the counts on the two inputs are exchanged.
    """
    return counts if direction == "x" else counts.swapped()


def divide_if_delta_0(loss: float, delta: float, distance: float) -> float:
    """Return `loss` divided by `distance` if `delta` is 0, and `loss` itself otherwise."""
    return loss / distance if delta == 0.0 else loss


def log_ratio(k: int, k_prime: int, n: int = 1, n_prime: int = 1) -> float:
    """Compute ln((k/n) / (k'/n')): 0 if k = k' = 0, and infinite if only one of k and k' is 0."""
    if k == 0 or k_prime == 0:
        return 0.0 if k == k_prime else math.copysign(math.inf, k - 0.5)
    return math.log(k / n) - math.log(k_prime / n_prime)


def empirical_epsilon(counts: Counts) -> float:
    """Compute the empirical loss, an estimate of epsilon from the counts of an event.

    The empirical loss is abs(ln(p/p')). Here p and p' are the frequencies of the event on x and x'.
    If the complement of the event gives a larger value, the result is that value.

    Source:
        Habernal (2022), equation 12.
    """
    cells = (counts, counts.complement())
    return max(abs(log_ratio(c.k, c.k_prime, c.n, c.n_prime)) for c in cells)


def format_verdict(refuted: bool | None, doubts: tuple[str, ...], undecided: str) -> str:
    """Return the outcome of an audit in words, such as "refuted".

    Args:
        refuted: True if the claim was refuted, False if it was not refuted, None without
            a verdict.
        doubts: facts that show that the outputs are not independent. If the tuple is not empty, no
            bound holds.
        undecided: reason why the claim was not tested, or "" if it was tested.
    """
    if doubts:
        return f"invalid: {doubts[0]}"
    if undecided:
        return f"undecided: {undecided}"
    words = {None: "no claim given", True: "refuted", False: "not refuted by this attack"}
    return words[refuted]


def choose_less_repeatable(early: str, late: str) -> str:
    """Return the worse of two values of `Audit.randomness`, for the merge of two audits.

    A value is worse if a second run with the same seed reproduces the outputs less exactly.
    """
    return min((early, late), key=_RANDOMNESS_FROM_WORST.index)


def explain_largest_bound(size: str, ceiling: float, claim: Any, parameter: float | None) -> str:
    """Return a text on the largest epsilon that an audit can certify with its trials.

    Args:
        size: number of trials as text, such as "1,000 trials".
        ceiling: largest epsilon that this number of trials can certify.
        claim: claim that the audit cannot refute.
        parameter: largest parameter (mu or rho) that the audit can refute, or None if the claim has
            no such parameter.
    """
    most = f"{ceiling:.3g}" if parameter is None else f"{claim.parameter} {parameter:.3g}"
    if isinstance(claim, Claim) and parameter is None:
        return f"{size} refute no curve as low as this one, whatever the event"
    return f"{size} certify at most {most}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spent(Record, word="Spent"):
    """Time that one step of an audit took, and number of outputs that the step drew.

    Args:
        step: name of the step. "probe" stands for a few calls that show the shape of the outputs
            and the source of randomness, "search" for the search for two inputs, and "fit" for the
            choice of the event from the first draws. "count" stands for the draws in which the
            event is counted, and "report" for the checks of the counted outputs.
        seconds: time of the step in seconds.
        outputs: number of outputs that the step drew on x and on x' together.
    """

    step: str
    seconds: float
    outputs: int

    def __post_init__(self) -> None:
        """Check the fields."""
        errors.instance("step", self.step, str)
        errors.real("seconds", self.seconds, low=0.0)
        errors.integer("outputs", self.outputs, 0)


def add_times_and_outputs(early: tuple[Spent, ...], late: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """Add the times and the numbers of outputs of two audits, for each step of an audit."""
    spent_by_step: dict[str, Spent] = {}
    for spent in (*early, *late):
        so_far = spent_by_step.get(spent.step, Spent(spent.step, 0.0, 0))
        together = so_far.seconds + spent.seconds, so_far.outputs + spent.outputs
        spent_by_step[spent.step] = Spent(spent.step, *together)
    return tuple(spent_by_step.values())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finding(Record, word="Finding"):
    """Second event of an audit, about the last bits of floats, with counts and a bound.

    With every textbook sampler of continuous noise, rounding leaves traces of the input in the last
    bits of the outputs. An event on these bits shows a fault of the code that runs, not of the
    intended distribution. These traces matter if raw outputs are released. They disappear if the
    outputs are rounded to a coarse grid, or if the noise is discrete. By default, the event does
    not change the bound, the verdict or the exit status of the audit.

    Args:
        event: the second event.
        direction: the input in the numerator of the probability ratio that bounds epsilon, "x" or
            "x_prime".
        counts: counts of the second event. `counts.k` is for x. `counts.n` may be less than the
            number of trials of the audit.
        delta: delta of the claim.
        confidence: probability that the bound from the second event holds.

    Source:
        Mironov (2012), On significance of the least significant bits for differential privacy.
    """

    event: Any = field(metadata={"named": True})
    direction: str
    counts: Counts
    delta: float
    confidence: float

    def __post_init__(self) -> None:
        """Check the fields that the bound depends on."""
        errors.choice("direction", self.direction, SIDES)
        errors.instance("counts", self.counts, Counts)
        errors.delta_level(self.delta)
        errors.confidence_level(self.confidence)

    @property
    def bound_counts(self) -> Counts:
        """Counts of the second event, with `k` and `n` for the input that `direction` names."""
        return put_numerator_first(self.counts, self.direction)

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon that this event on last bits certifies (Clopper-Pearson)."""
        return clopper_pearson(self.bound_counts, self.delta, self.confidence)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scored(Record, word="Scored"):
    """Numbers of outputs whose score is at or above a threshold, for each of several thresholds.

    A score is a function that maps an output to a real number. The thresholds were chosen before
    the counted outputs were drawn.

    Args:
        thresholds: thresholds in increasing order, in units of the score, shape `(m,)`.
        k: number of outputs on x with a score at or above each threshold, shape `(m,)`.
        n: number of all counted outputs on x.
        k_prime: number of outputs on x' with a score at or above each threshold, shape `(m,)`.
        n_prime: number of all counted outputs on x'.
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
        """Return the sums of the numbers of two disjoint sets of outputs."""
        if not isinstance(other, Scored):
            return NotImplemented
        if not np.array_equal(self.thresholds, other.thresholds):
            raise errors.invalid("thresholds", "equal in both curves", other.thresholds)
        k, k_prime = self.k + other.k, self.k_prime + other.k_prime
        return Scored(self.thresholds, k, self.n + other.n, k_prime, self.n_prime + other.n_prime)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Record, word="Slice"):
    """Part of the trials of an audit that may stop early, with the event and its counts.

    The audit divides its trials into slices. It tests the claim after each slice, and stops when
    the claim is refuted. The event of a slice is chosen from earlier draws.

    Args:
        pair: the two inputs.
        event: the counted event.
        direction: the input in the numerator of the probability ratio that bounds epsilon, "x" or
            "x_prime".
        counts: counts of the event in this slice only. The numbers of trials on x and on x' are
            equal.
        guess: two expected probabilities of the event, fixed before the slice was drawn. The first
            is for the input in the numerator, the second for the input in the denominator.
    """

    pair: Pair = field(metadata={"named": True})
    event: Any = field(metadata={"named": True})
    direction: str
    counts: Counts
    guess: tuple[float, float]

    def __post_init__(self) -> None:
        """Check the fields that the bound depends on."""
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
        """Counts in this part of the trials; `k` and `n` are for the input in `direction`."""
        return put_numerator_first(self.counts, self.direction)


def delta_lower_at_zero(epsilon_lower_at: Callable[[float], float]) -> float:
    """Compute a certified lower bound on delta at epsilon 0 by bisection.

    The result is the largest delta at which the certified lower bound on epsilon is above 0. The
    result exceeds the true delta only if the bound on epsilon fails at the true delta.

    Args:
        epsilon_lower_at: function that returns the certified lower bound on epsilon for a delta.
    """
    low, high = 0.0, 1.0
    for _ in range(_DELTA_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_lower_at(middle) > 0.0 else (low, middle)
    return low


def merge_or_keep_early(early: Finding | None, late: Finding | None) -> Finding | None:
    """Merge two audits' events on the last bits of floats. If they differ, return `early`."""
    if early is None or late is None or early.event != late.event:
        return early or late
    return replace(early, counts=early.counts + late.counts)


def add_or_keep_early(early: Scored | None, late: Scored | None) -> Scored | None:
    """Add two audits' counts at several thresholds. If the thresholds differ, return `early`."""
    if early is None or late is None:
        return early or late
    # Pilots of different sizes have different thresholds even if the event is the same.
    same = np.array_equal(early.thresholds, late.thresholds)
    return early + late if same else early


def unite_smallest_digests(early: tuple[str, ...], late: tuple[str, ...]) -> tuple[str, ...]:
    """Return the 1,024 smallest of the digests (hashes) that two audits store.

    Each digest is the hash of a block of counted outputs. If two audits have a digest in common,
    they counted the same outputs.
    """
    return tuple(sorted({*early, *late})[:MOST_DIGESTS])


def first_of_equal(early: Any, late: Any) -> Any:
    """Return `early`. The function is the merge rule of fields that must be equal in two audits."""
    return early


def merge_later(early: Any, late: Any) -> Any:
    """Mark a field that cannot be merged separately from other fields.

    The value in a merged audit depends on several fields of both audits. The function only serves
    as an argument of `field_rule`, and is never called.
    """
    raise NotImplementedError


def first_not_none(early: Any, late: Any) -> Any:
    """Return `early`, or `late` if `early` is None, as the value for a merged audit."""
    return late if early is None else early


def field_rule(read: Reading = return_unchanged, merge: Merging = first_of_equal) -> dict[str, Any]:
    """Make the metadata of a field of an audit: how it is read from a file, and how it is merged.

    Args:
        read: function that takes the name of the field and the value in a file. It checks the value
            and returns the value of the field.
        merge: function that takes the values of the field in two audits and returns the value in
            the merged audit. Examples are `first_of_equal`, `total`, `larger`, `either` and
            `merge_later`.

    Returns:
        The `metadata` argument of `dataclasses.field`.
    """
    return {"read": read, "merge": merge}


def get_merger(field: Field[Any]) -> Merging:
    """Return the function that merges the values that two audits have in a field."""
    merging: Merging = field.metadata.get("merge", first_of_equal)
    return merging


def make_checking_reader(check: Callable[[Any], Any]) -> Reading:
    """Return a function `(name, value)` that returns the value if `check` raises no error."""

    def read(name: str, value: Any) -> Any:
        check(value)
        return value

    return read


def type_check_reader(kind: type) -> Reading:
    """Return a function `(name, value)` that returns the value if its class is `kind`."""
    return lambda name, value: errors.instance(name, value, kind)


def none_or(read: Reading) -> Reading:
    """Return a function `(name, value)` that works like `read`, but also accepts None."""
    return lambda name, value: None if value is None else read(name, value)


def enum_reader(*options: str) -> Reading:
    """Return a function `(name, value)` that returns the value if it is one of `options`."""
    return lambda name, value: errors.choice(name, value, options)


def tuple_reader(kind: type, many: int | None = None) -> Reading:
    """Return a function `(name, value)` that converts a list of `kind` objects to a tuple.

    `kind` is the required class of the entries. `many` is the required length. By default, every
    length is accepted.
    """

    def read(name: str, value: Any) -> Any:
        for item in errors.instance(name, value, list):
            errors.instance(name, item, kind)
        if many is not None and len(value) != many:
            raise errors.invalid(name, "two values", tuple(value))
        return tuple(value)

    return read


def make_integer_reader(low: int) -> Reading:
    """Return a function `(name, value)` that returns an integer of at least `low`."""
    return lambda name, value: errors.integer(name, value, low)


def require_epsilon(name: str, value: Any) -> Any:
    """Return `value` if it is a finite number of at least 0. Otherwise raise an error."""
    errors.real(name, value, low=0.0)
    return value


def check_claim_or_epsilon(name: str, value: Any) -> Claim | float:
    """Return `value` if it is an epsilon or a `Claim` object. Otherwise raise an error."""
    return value if isinstance(value, Claim) else require_epsilon(name, value)


def read_float(unused_name: str, value: Any) -> float:
    """Convert the value of a field in a file to a float. `unused_name` is not used."""
    return float(value)


def seed_text_to_int(name: str, value: Any) -> int:
    """Convert a seed in a file from a string to an int.

    Files contain seeds as strings, because some JSON readers lack 64-bit integers.
    """
    return errors.integer(name, int(value), 0, 2**63 - 1)


def read_shape(name: str, value: Any) -> tuple[int, ...]:
    """Convert a list of lengths (the shape of an array) to a tuple of integers of at least 0."""
    return tuple(errors.integer(name, length, 0) for length in value)


def read_ranges(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Convert a list of ranges of trials to a tuple. Each range is a pair (start, stop).

    The function raises an error if the ranges overlap or are not in order.
    """
    reach = 0
    for start, stop in value:
        errors.integer("stop", stop, errors.integer("start", start, reach) + 1)
        reach = stop
    return tuple((start, stop) for start, stop in value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(Record, word="Provenance"):
    """Record of how one run of an audit was made.

    Attributes:
        date: start of the run in UTC, such as "2026-11-22T14:41:41Z".
        origin: name of the object whose code is in `source` (mostly the mechanism), or the reason
            why `source` is empty.
        source: code of the object as `inspect.getsource` returns it, without the functions that the
            object calls. The code is read from the file when the audit begins. If the file was
            edited after the import, this is the edited code.
        versions: pairs (name, version) for Python, dpcore, numpy and the libraries of the
            mechanism.
        cpu: model of the CPU, or "" if the system does not state it.
        cores: number of cores of the machine.
        system: name of the operating system.
        architecture: architecture of the machine, such as "x86_64".
        command: command line of `dpcore audit`, or "pytest" and the id of the test. The text is ""
            if the audit was made in a script or a notebook.
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
        """Check the types of the fields, because a page shows values that are read from a file."""
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
        """SHA-256 of the recorded code in `source`, in hexadecimal, or "" if there is no code."""
        text = self.source.encode("utf-8", "backslashreplace")
        return hashlib.sha256(text).hexdigest() if text else ""

    def __repr__(self) -> str:
        """Return one line, without the source text."""
        return f"<Provenance of {self.date}: {self.origin}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRead(Record, word="TableRead"):
    """File or data frame from which recorded outputs were read, with a summary of its contents.

    Args:
        name: name of the file without its folder. For a data frame, name of the argument.
        kind: format of the file, such as "csv" (also for tab-separated tables), or "frame" for a
            data frame.
        rows: number of rows in the table.
        columns: names or indices (from 0) of the columns that were read, at most 64. The tuple is
            empty if a whole array was read.
        there: names of all columns of the table, at most 64. The tuple is empty if the columns have
            no names.
        width: number of all columns of the table.
        header: True if the first row of a text file contains names of columns, False if it does
            not. None if the format has no header.
        sep: separator between the entries of a CSV file, or "".
        encoding: encoding of a text file, or "".
        sha256: SHA-256 of the bytes of the file, in hexadecimal, or "" for a data frame.
        by_position: True if only one of the tables for x and x' has names of columns. The columns
            of the two tables were then matched by position.
        kinds: type of the entries of each column in `columns`. The tuple is empty if the types are
            not known.

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
        """Check the types of the fields, because a page shows values that are read from a file."""
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
        what = f"{self._format_columns()}{self._describe_cell_types()}"
        return f"{self.name}: {self.rows:,} rows{what}; {how}{end}"

    def _format_columns(self) -> str:
        if not self.columns or (self.width == 1 and not self.there):
            return ""
        quoted = [repr(name) if self.there else name for name in self.columns]
        many = "column" if len(quoted) == 1 else "columns"
        others = _shorten_name_list([repr(name) for name in self.there], self.width)
        of = f" of {others}" if self.there else f" of {self.width:,}"
        return f", {many} {_shorten_name_list(quoted, len(quoted))}{of if self.width > 1 else ''}"

    def _describe_cell_types(self) -> str:
        """Describe the types of the cells; columns of the same type are listed together."""
        names: dict[str, list[str]] = {}
        for name, kind in zip(self.columns, self.kinds, strict=False):
            names.setdefault(kind, []).append(repr(name) if self.there else name)
        if len(names) < 2:
            return f": {self.kinds[0]}" if names else ""
        lists = [f"{_shorten_name_list(each, len(each))} {kind}" for kind, each in names.items()]
        return f": {_shorten_name_list(lists, len(lists))}"


def _shorten_name_list(names: list[str], total_count: int) -> str:
    more = f" ({total_count:,} in all)" if total_count > _MAX_SHOWN_NAMES else ""
    return ", ".join(names[:_MAX_SHOWN_NAMES]) + more


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence(Result):
    """A finished audit. All reported numbers are computed from the counts in its fields.

    There are three different values of epsilon. `claim` was stated in advance. `epsilon_lower` is a
    lower bound that holds with probability `confidence`. `epsilon_hat` is an estimate, not a bound.
    A comparison of audits by `==` ignores fields that are marked "not compared".

    Attributes:
        mechanism: the audited mechanism. If the audit was read from JSON, this is the name of the
            mechanism, except for mechanisms of dpcore's compiled core.
        pair: the two audited inputs, x and x'.
        attack: name of the attack that chose the event.
        event: the counted event, a function that returns True for each output in the event.
        direction: the input in the numerator of the probability ratio that bounds epsilon, "x" or
            "x_prime".
        counts: numbers of outputs in the event (`k` for x, `k_prime` for x'), and numbers of all
            counted outputs (`n`, `n_prime`).
        claim: the tested epsilon or trade-off curve (see `dpcore.claims`), or None if no claim was
            given.
        delta: delta of the claim. If the claim is a curve, delta of the tangent that was tested.
        confidence: probability with which the certified bound holds.
        seed: seed of the audit. With this seed and `block`, the audit can be repeated.
        block: number of trials that are drawn in one block.
        route: how outputs were drawn. "integer" and "sampled" stand for dpcore's compiled core, and
            "callable" for calls of a function. With "timed", the running times of these calls were
            also recorded.
        ranges: counted trials, as pairs `(start, stop)`. Each trial is one output on x and one on
            x'.
        end: planned end of the last range. After early stop or Ctrl-C, the last range ends earlier.
        nan: number of output entries on x that were NaN.
        nan_prime: number of output entries on x' that were NaN.
        pilot: number of pilot draws on each input. The event was chosen from these draws. The pilot
            draws were not counted.
        partial: True if Ctrl-C ended the audit early, or if parts of the run are missing.
        bound: name of the method for the bound, from `dpcore.bounds.BOUNDS`. The method was fixed
            before counting.
        stop: stopping rule. "fixed" means that the number of trials was fixed in advance. "refuted"
            means that the audit tested the claim after each slice of the trials, and stopped when
            the claim was refuted. "interrupted" means that Ctrl-C ended the audit. "looked" means
            that audits were merged after a verdict was seen. All rules except "fixed" need a bound
            that holds at every stopping time.
        pooled: counts for each group of coordinates, if the event counts the coordinates of an
            output separately. Otherwise, the tuple is empty.
        floating_point: a second event about the last bits of the outputs, or None.
        floats: True if `floating_point` counts towards the verdict.
        curve: counts at several thresholds if the event is a threshold on a score, otherwise None.
        slices: parts of the trials in an audit with early stop. Otherwise, the tuple is empty.
        checks: facts that show that the draws are not independent. If the tuple is not empty, no
            bound holds.
        notes: notes for the reader that do not change the verdict.
        neighbour: neighbour relation that dpcore checked for x and x', as text, or "" if no
            relation was given.
        randomness: "seed" if the same seed gives the same outputs again, and "rounding" if the new
            outputs are equal up to rounding. "own" if the same seed gives other outputs, because
            the mechanism draws its own randomness. Otherwise "not known".
        runs_on: device and version of torch, which are needed to repeat the outputs of a torch
            mechanism. The text is "" for any other mechanism.
        shape: shape of one output.
        clean: vectors for x and x' to which the mechanism adds noise, or None if the mechanism does
            not state them. The attack knew these vectors.
        declared_loss: exact loss between x and x' at `delta`, from the noise that the mechanism
            declares. The loss is not certified. None if the mechanism declares no noise.
        read: number of parts of the outputs (such as entries) that the attack read before it chose
            the event. None if the attack does not state this number. Not compared by ==.
        inside: up to five distinct pilot outputs in the event, as examples. The tuple is empty if
            the user passed `source=False`, or if the outputs are real numbers that do not repeat.
            Not compared.
        tangent: epsilon of a tangent to the claimed curve, chosen from the pilot draws. None if the
            claim is not a curve.
        searched: record of the search for x and x', or None if there was no search. Not compared.
        budget: time in seconds that the user gave instead of a number of trials, or None. None for
            merged audits. Not compared.
        digests: the 1,024 smallest hashes of counted blocks of a Python callable. Equal hashes show
            that two audits counted the same outputs.
        threads: number of threads used. Not compared.
        seconds: duration of the counted draws in seconds, summed over all processes. Not compared.
        spent: time and number of outputs of each step of the audit. Not compared.
        provenance: one record for each run, on how the run was made. Not compared.
        constant: text for the report if all pilot outputs had the same value, otherwise "".
        rounding_won: True if `event` is the event about last bits, because its bound is larger. The
            event that the attack chose is then in `floating_point`.
    """

    mechanism: Any = field(metadata=field_rule())
    pair: Pair = field(metadata=field_rule(type_check_reader(Pair)))
    attack: str = field(metadata=field_rule(type_check_reader(str)))
    event: Any = field(metadata=field_rule())
    direction: str = field(metadata=field_rule(enum_reader(*SIDES)))
    counts: Counts = field(metadata=field_rule(type_check_reader(Counts), total))
    claim: float | Claim | None = field(metadata=field_rule(none_or(check_claim_or_epsilon)))
    delta: float = field(metadata=field_rule(make_checking_reader(errors.delta_level)))
    confidence: float = field(metadata=field_rule(make_checking_reader(errors.confidence_level)))
    seed: int = field(metadata=field_rule(seed_text_to_int))
    block: int = field(metadata=field_rule(make_integer_reader(1)))
    route: str = field(
        metadata=field_rule(enum_reader("integer", "sampled", "callable", "timed"), larger)
    )
    ranges: tuple[tuple[int, int], ...] = field(metadata=field_rule(read_ranges, merge_later))
    end: int = field(metadata=field_rule(merge=merge_later))
    nan: int = field(default=0, metadata=field_rule(make_integer_reader(0), total))
    nan_prime: int = field(default=0, metadata=field_rule(make_integer_reader(0), total))
    pilot: int = field(default=0, metadata=field_rule(make_integer_reader(0), larger))
    partial: bool = field(default=False, metadata=field_rule(type_check_reader(bool), either))
    bound: str = field(
        default="clopper_pearson",
        metadata=field_rule(
            lambda name, value: errors.choice(name, value, tuple(BOUNDS)), merge_later
        ),
    )
    stop: str = field(
        default="fixed",
        metadata=field_rule(enum_reader("fixed", "refuted", "interrupted", "looked"), merge_later),
    )
    pooled: tuple[Counts, ...] = field(
        default=(), metadata=field_rule(tuple_reader(Counts), merge_later)
    )
    floating_point: Finding | None = field(
        default=None, metadata=field_rule(none_or(type_check_reader(Finding)), merge_or_keep_early)
    )
    floats: bool = field(default=False, metadata=field_rule(type_check_reader(bool)))
    curve: Scored | None = field(
        default=None, metadata=field_rule(none_or(type_check_reader(Scored)), add_or_keep_early)
    )
    slices: tuple[Slice, ...] = field(
        default=(), metadata=field_rule(tuple_reader(Slice), merge_later)
    )
    checks: tuple[str, ...] = field(default=(), metadata=field_rule(tuple_reader(str), merge_later))
    notes: tuple[str, ...] = field(default=(), metadata=field_rule(tuple_reader(str), merge_later))
    neighbour: str = field(default="", metadata=field_rule(type_check_reader(str)))
    randomness: Randomness = field(
        default="not known", metadata=field_rule(enum_reader(*RANDOMNESS), choose_less_repeatable)
    )
    runs_on: str = field(default="", metadata=field_rule(type_check_reader(str)))
    shape: tuple[int, ...] = field(default=(1,), metadata=field_rule(read_shape))
    clean: Pair | None = field(default=None, metadata=field_rule(none_or(type_check_reader(Pair))))
    declared_loss: float | None = field(default=None, metadata=field_rule(none_or(read_float)))
    tangent: float | None = field(default=None, metadata=field_rule(none_or(require_epsilon)))
    read: PartsRead | None = field(
        default=None,
        compare=False,
        metadata=field_rule(none_or(type_check_reader(PartsRead)), first_not_none),
    )
    inside: tuple[SeenOutput, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(SeenOutput), first_not_none)
    )
    digests: tuple[str, ...] = field(
        default=(), metadata=field_rule(tuple_reader(str), unite_smallest_digests)
    )
    searched: Searched | None = field(
        default=None,
        compare=False,
        metadata=field_rule(none_or(type_check_reader(Searched)), first_not_none),
    )
    budget: float | None = field(
        default=None,
        compare=False,
        metadata=field_rule(none_or(read_float), lambda early, late: None),
    )
    threads: int = field(
        default=1, compare=False, metadata=field_rule(make_integer_reader(1), larger)
    )
    seconds: float = field(default=0.0, compare=False, metadata=field_rule(read_float, total))
    spent: tuple[Spent, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(Spent), add_times_and_outputs)
    )
    provenance: tuple[Provenance, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(Provenance), total)
    )
    constant: str = field(default="", metadata=field_rule(type_check_reader(str)))
    rounding_won: bool = field(default=False, metadata=field_rule(type_check_reader(bool)))

    @property
    def claimed_epsilon(self) -> float | None:
        """Claimed epsilon, or None without a claim. For a curve, epsilon of the tested tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def bound_counts(self) -> Counts:
        """Counts of the event, with `k` and `n` for the input that `direction` names."""
        return put_numerator_first(self.counts, self.direction)
