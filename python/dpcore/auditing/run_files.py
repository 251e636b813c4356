"""Run file of an audit: what is fixed, and what was counted so far, so that a run can go on.

The file is JSON, and nothing in it is executed. It is replaced as a whole: a kill in the middle of
a write leaves the file before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from ..errors import (
    FileWarning,
    about,
    flag,
    instance,
    invalid,
    name_path_errors,
    require_path,
)
from ..records import write_atomically
from ..results.audits import Audit
from ..results.evidence import read_field, read_ranges
from ..sampling.driver import Done, Edge, Range
from ..sampling.replay import Collisions, Replays
from ..sampling.rows import blocks_apart, evidence_from_dict, evidence_to_dict
from ..sampling.tally import Tally
from ..sampling.workers import SAME_BITS_REMEDY
from ..visible import make_visible

RUN_FORMAT: Final = "dpcore.run/1"

_SECONDS_BETWEEN_WRITES: Final = 5.0
_MAX_KEPT_DIGESTS: Final = 4096
"""Digests of blocks in a file; as in memory, those with enough zero bits in front."""

_UNCOMPARED: Final = (
    "provenance", "inside", "read", "searched", "budget", "notes", "runs_on", "event",
)  # fmt: skip
"""Fields that are fixed before the count but may differ in the process that goes on."""


_COUNTED: Final = (
    "counts", "ranges", "nan", "nan_prime", "partial", "stop", "pooled", "floating_point", "curve",
    "rounding_won",
    "slices", "checks", "digests", "threads", "seconds", "spent",
)  # fmt: skip
_FIELDS: Final = tuple(f for f in fields(Audit) if f.name not in _COUNTED)
"""Fields of an audit that are fixed before the count."""


@dataclass(slots=True)
class FixedFields:
    """All that is fixed before the first trial is counted.

    Args:
        audit: fields of the `Audit`, by name.
        start: first trial.
        trials: on each side.
        thresholds: of the event's score, at which the trade-off curve is counted.
        lattice: event and direction of the floating-point finding, or None.
        checks: contradictions that the first calls showed.
        remarks: on the choice of the event.
        collisions: pairs of pilot rows and how many were equal, on x and on x'.
        whole: True if a file holds the event itself, and not only its name.
        bits: digest of some outputs by which other machines are recognized; empty if the seed
            repeats none.
    """

    audit: dict[str, Any]
    start: int
    trials: int
    thresholds: np.ndarray[Any, Any]
    lattice: tuple[Any, str] | None
    checks: tuple[str, ...]
    remarks: tuple[str, ...]
    collisions: tuple[Collisions, Collisions]
    whole: bool = True
    bits: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        from ..report.encoding import encode_value

        record = {name: encode_value(value) for name, value in self.audit.items()}
        record["seed"] = str(self.audit["seed"])
        names = [one.name for one in fields(self) if one.name not in ("audit", "whole")]
        return {"audit": record} | {name: encode_value(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> FixedFields:
        """Read the fields from plain data."""
        from ..report.encoding import decode_value

        held = record["audit"]
        audit = {f.name: read_field(f, held[f.name], decode_value) for f in _FIELDS}
        lattice = decode_value(record["lattice"])
        return cls(
            audit, record["start"], record["trials"],
            np.asarray(decode_value(record["thresholds"])),
            None if lattice is None else (lattice[0], lattice[1]),
            tuple(record["checks"]), tuple(record["remarks"]),
            tuple(Collisions(*side) for side in record["collisions"]),  # type: ignore[arg-type]
            "repr" not in _as_mapping(held["event"]),
            instance("bits", record["bits"], str),
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """A digest by which two files are recognized as being of one run."""
        record = self.to_dict()
        record["audit"].pop("provenance", None)
        return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()

    def find_difference(self, other: FixedFields) -> tuple[str, Any, Any] | None:
        """Find an argument in which two runs differ: its name, mine and the other's value."""
        mine, theirs = _read_names(self.to_dict()), _read_names(other.to_dict())
        for name in ("start", "trials"):
            if mine[name] != theirs[name]:
                return name, mine[name], theirs[name]
        for name, value in mine["audit"].items():
            # As text: 1, 1.0 and True are equal, and other inputs.
            texts = json.dumps(value), json.dumps(theirs["audit"].get(name))
            if name not in _UNCOMPARED and texts[0] != texts[1]:
                return name, value, theirs["audit"].get(name)
        sources = ([one.sha256 for one in run.audit["provenance"]] for run in (self, other))
        versions = ([one.versions for one in run.audit["provenance"]] for run in (self, other))
        for what, (one, another) in (("source text", sources), ("versions", versions)):
            if one != another and all(one) and all(another):
                return f"{what} of the mechanism", one[0], another[0]
        return None


def tally_to_dict(tally: Tally) -> dict[str, Any]:
    """Return the plain data of the counts of one side."""
    record = {one.name: getattr(tally, one.name) for one in fields(Tally)}
    return record | {"evidence": evidence_to_dict(tally.evidence)}


def tally_from_dict(record: Mapping[str, Any]) -> Tally:
    """Read the counts of one side."""
    tally = Tally(
        record["rows"],
        tuple(record["hits"]),
        record["nan"],
        tuple(map(tuple, record["watched"])),
        tuple(record["watched_rows"]),
        evidence_from_dict(record["evidence"]),
    )
    numbers = [tally.rows, *tally.hits, tally.nan, *(n for one in tally.watched for n in one)]
    if not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise invalid("counts", "whole numbers, at least 0", numbers)
    if tally.hits and tally.hits[0] > tally.rows:
        raise invalid("hits", f"at most {tally.rows}, the trials", tally.hits[0])
    return tally


@dataclass
class RunFile:
    """A run of an audit and the file that keeps it.

    Args:
        path: of the file.
        fixed: what is fixed before the count; None until the event is chosen.
        done: what was counted.
        part: number and number of all parts, of the part of a run that is counted here.
        asked: options of the command line that began the run; empty for a run begun in Python.
        looked: True once somebody has seen counts before the end.
        same_bits: False once a process was accepted that may give other bits for one seed.
        edges: of the first block that was counted and of one of the last, the number and counts.
        sessions: trials and hits on both sides each time that the run was begun or went on.
        digests: of counted blocks, by which repeated outputs are recognized.
        zeros: bits with which these begin.
        slices: of an audit with early stop, see `Sequence.to_dict`; else empty.
        seconds: time of counting, in all processes that went on.
        time_of_day: when the file was written last, for the progress bar.
        failure: error of the last write; None if it succeeded.
        held: trials on each side that the file holds.
    """

    path: Path
    fixed: FixedFields | None = None
    done: Done = field(default_factory=Done)
    part: tuple[int, int] | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    looked: bool = False
    same_bits: bool = True
    edges: list[Edge] = field(default_factory=list)
    sessions: list[list[int]] = field(default_factory=list)
    digests: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    zeros: int = 0
    slices: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    time_of_day: str = ""
    _written: float = 0.0
    failure: OSError | None = None
    held: int = 0
    _resumed: bool = False
    _replays: Replays | None = None

    @property
    def range(self) -> Range:
        """Trials that are to be counted: of the whole run, or of the part."""
        assert self.fixed is not None
        start, stop = self.fixed.start, self.fixed.start + self.fixed.trials
        return (start, stop) if self.part is None else part_range(self, self.part)

    @property
    def resume_line(self) -> str:
        """The line that goes on with the run."""
        if self.part is not None:
            return f"the same dpcore count {self.path} again"
        if self.asked:
            return f"dpcore audit --resume {self.path}"
        return f"the same call with checkpoint={str(self.path)!r}"

    def begin(self, fixed: FixedFields) -> None:
        """Begin the run: write what is fixed.

        Raises:
            ValueError: if no other process could go on.
        """
        record = fixed.to_dict()
        fixed.whole = "repr" not in _as_mapping(record["audit"]["event"])
        if not fixed.whole and fixed.audit["randomness"] in ("own", "rounding"):
            requirement = (
                "None where the seed does not repeat the outputs and JSON cannot hold the event "
                "(choose an attack= of dpcore's own)"
            )
            raise invalid("checkpoint", requirement, str(self.path))
        self.fixed = fixed
        self.store()

    def keep(self, done: Done, edges: list[Edge], replays: Replays, seconds: float) -> None:
        """Keep a shard that came back; write the file if it is time."""
        if not self._resumed:
            hits = [side.hits[0] for side in self.done.sides] if self.done.ranges else [0, 0]
            self.sessions.append([self.done.trials, *hits])
            self._resumed = True
        self.done, self.seconds = done, self.seconds + seconds
        if edges:
            self.edges = [*self.edges[:1], edges[-1]] if self.edges else [edges[0], edges[-1]]
        self._replays = replays
        self.write()

    def keep_slices(self, make: Callable[[], dict[str, Any]], seconds: float) -> None:
        """Keep the slices of an audit with early stop, if it is time to write the file."""
        self.seconds += seconds
        if self._is_due():
            self.slices = make()
            self.write()

    def compare_sessions(self) -> tuple[str, ...]:
        """List evidence that the counts of two processes follow different laws."""
        if len(self.sessions) < 2:
            return ()
        ends = [*self.sessions, [self.done.trials, *(side.hits[0] for side in self.done.sides)]]
        rows = [[b - a for a, b in zip(*two, strict=True)] for two in itertools.pairwise(ends)]
        return blocks_apart([[(n, hits[side]) for n, *hits in rows] for side in (0, 1)])

    def refuse_difference(self, mine: FixedFields) -> None:
        """Raise an error that names an argument in which this process differs from the file."""
        assert self.fixed is not None
        found = self.fixed.find_difference(mine)
        if found is not None:
            name, before, now = found
            name = "rng" if name == "seed" else name
            raise invalid(name, f"{before!r} as in the run file {self.path}", now)
        if self.fixed.bits and mine.bits not in ("", self.fixed.bits):
            self.refuse_mechanism("one whose outputs differ from its outputs")

    def refuse_counts(self, edge: Edge, again: Edge) -> NoReturn:
        """Raise the error about a block that gives other counts than it gave."""
        assert self.fixed is not None
        before, now = (
            ", ".join(f"{side[0][0]} hits and digest {side[2][:8]}" for side in one[1])
            for one in (edge, again)
        )
        self.refuse_mechanism(
            f"one of which block {edge[0]} has {now} on the two sides, where it had {before}"
        )

    def refuse_mechanism(self, found: str) -> NoReturn:
        """Raise the error about a mechanism that is not the one that began the run."""
        text = (
            f"mechanism must be the one that began the run file {self.path}, on a CPU with the "
            f"same bits ({SAME_BITS_REMEDY}), got {found}"
        )
        raise about(ValueError(text), "mechanism")

    def _keep_digests(self, replays: Replays) -> None:
        """Copy as many digests of counted blocks as a file holds."""
        kept, self.zeros = replays.digests, replays.zeros
        while len(kept) > _MAX_KEPT_DIGESTS:
            self.zeros += 1
            limit = 1 << (64 - self.zeros)
            kept = {d: at for d, at in kept.items() if int.from_bytes(d[:8], "big") < limit}
        self.digests = dict(kept)

    def _is_due(self) -> bool:
        return time.monotonic() - self._written >= _SECONDS_BETWEEN_WRITES

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        assert self.fixed is not None
        return {
            "format": RUN_FORMAT,
            "run": self.fixed.digest,
            "part": None if self.part is None else list(self.part),
            "looked": self.looked,
            "same_bits": self.same_bits,
            "asked": self.asked,
            "fixed": self.fixed.to_dict(),
            "ranges": [list(one) for one in self.done.ranges],
            "sides": [tally_to_dict(side) for side in self.done.sides],
            "edges": self.edges,
            "sessions": self.sessions,
            "zeros": self.zeros,
            "digests": [[digest.hex(), *at] for digest, at in self.digests.items()],
            "slices": self.slices,
            "seconds": self.seconds,
        }

    def read(self, name: str) -> None:
        """Read the file.

        Args:
            name: of the argument that names the file, for complaints.

        Raises:
            ValueError: if it is not a run file, or its counts contradict each other.
        """
        from ..report.encoding import parse_object

        try:
            record = parse_object(self.path.read_text(encoding="utf-8"))
            if record.get("format") != RUN_FORMAT:
                raise invalid("format", repr(RUN_FORMAT), record.get("format"))
            self.fixed = FixedFields.from_dict(record["fixed"])
            self.part = None if record["part"] is None else tuple(record["part"])
            self.looked = flag("looked", record["looked"])
            self.same_bits = flag("same_bits", record["same_bits"])
            self.asked = dict(record["asked"])
            one, other = map(tally_from_dict, record["sides"])
            self.done = Done(read_ranges("ranges", record["ranges"]), (one, other))
            self.edges, self.sessions = list(record["edges"]), list(record["sessions"])
            self.zeros = record["zeros"]
            self.digests = {bytes.fromhex(d): (side, n) for d, side, n in record["digests"]}
            self.slices, self.seconds = dict(record["slices"]), float(record["seconds"])
            self._check()
            self.held = self._count_trials()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"no entry {error}" if isinstance(error, KeyError) else error
            text = f"{name} must be a run file that dpcore wrote, got {self.path}: {why}"
            raise about(ValueError(text), name) from error

    def _check(self) -> None:
        start, stop = self.range
        for tally in self.done.sides:
            if tally.rows != self.done.trials:
                raise invalid("rows", f"{self.done.trials}, as the ranges say", tally.rows)
        if (
            self.done.ranges
            and not start <= self.done.ranges[0][0] <= self.done.ranges[-1][1] <= stop
        ):
            raise invalid("ranges", f"within the trials {(start, stop)}", self.done.ranges)

    def write(self, always: bool = False) -> None:
        """Write the file, but not more often than every five seconds, unless `always`.

        A full disk is a warning, at once and at the end: counting goes on.
        """
        if not always and not self._is_due():
            return
        try:
            self.store()
        except OSError as error:
            if always or self.failure is None:
                what = "ends and leaves" if always else "goes on, but a kill would leave"
                text = f"{self.path} could not be written ({error.__cause__}): the count {what}"
                text = f"{text} {self.describe_held()} in the file"
                warnings.warn(text, FileWarning, stacklevel=2)
            self.failure = error

    def write_last(self) -> str:
        """Write the file before an error ends this process; return how to go on."""
        self.write(always=True)
        return make_visible(
            f"{self.path} holds {self.describe_held()}: go on with {self.resume_line}"
        )

    def require_file(self) -> None:
        """Write the file unless this process has: what could not be kept is not counted.

        Raises:
            OSError: if the file cannot be written.
        """
        if not self.time_of_day:
            self.store()

    def store(self) -> None:
        """Write the file.

        Raises:
            OSError: if the file cannot be written.
        """
        if self._replays is not None:
            self._keep_digests(self._replays)
        text, now = json.dumps(self.to_dict(), allow_nan=False), time.monotonic()
        with name_path_errors(self.path, "written", "out" if self.part else "checkpoint"):
            write_atomically(self.path, text)
        self._written, self.failure, self.held = now, None, self._count_trials()
        self.time_of_day = time.strftime("%H:%M:%S")

    def describe_held(self) -> str:
        """Describe how many trials the file holds, and how many more were counted."""
        counted = self._count_trials()
        more = "" if counted == self.held else f", not the {counted:,} counted"
        return f"{self.held:,} trials a side{more}"

    def _count_trials(self) -> int:
        """Return the number of trials on each side that were counted."""
        pieces = self.slices.get("slices") or [self.done.trials]
        return sum(piece if isinstance(piece, int) else piece["counts"]["n"] for piece in pieces)


def _read_names(value: Any) -> Any:
    """Replace objects of which JSON has the text alone by this text, as reading does."""
    if isinstance(value, Mapping):
        if set(value) == {"repr"}:
            return value["repr"]
        return {key: _read_names(item) for key, item in value.items()}
    return [_read_names(item) for item in value] if isinstance(value, list) else value


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def part_range(run: RunFile, part: tuple[int, int]) -> Range:
    """Compute the trials of a part of a run: whole blocks, about as many in each part."""
    assert run.fixed is not None
    number, parts = part
    start, trials, block = run.fixed.start, run.fixed.trials, run.fixed.audit["block"]
    first = start // block
    blocks = -(-(start + trials) // block) - first
    edges = [(first + blocks * k // parts) * block for k in (number - 1, number)]
    return max(start, edges[0]), min(start + trials, edges[1])


def read_run(path: Any, name: str = "path") -> RunFile:
    """Read a run file that is there; `name` is what complaints call the argument.

    Raises:
        TypeError: if the path is none.
        ValueError: if there is no such file, or it is no run file.
    """
    run = RunFile(require_path(name, path))
    if not run.path.is_file():
        raise invalid(name, "a run file that is there", str(path))
    run.read(name)
    return run


@contextmanager
def open_run(
    path: Any, name: str = "checkpoint", asked: Mapping[str, Any] | None = None
) -> Iterator[RunFile]:
    """Open a run file, which may not exist yet, for one driver alone.

    Args:
        path: of the file.
        name: of the argument that names it, for complaints.
        asked: options of the command line.

    Raises:
        TypeError: if the path is none.
        ValueError: if the file is no run file, its folder cannot be written to, or another process
            is counting for it.
    """
    path = require_path(name, path)
    lock = path.with_name(f".{path.name}.lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        text = f"{name} must be a file in a folder that can be written to, got {path}"
        raise about(ValueError(f"{text}: {error.strerror}"), name) from error
    is_held = False
    try:
        is_held = _lock_file(handle) and _is_same_file(handle, lock)
        if not is_held:
            raise invalid(name, "a run file that no other process counts for", str(path))
        for left in path.parent.glob(f".{path.name}.*.tmp"):
            # Of a process that was killed while it wrote.
            left.unlink(missing_ok=True)
        run = RunFile(path, asked=dict(asked or {}))
        if path.exists():
            run.read(name)
        yield run
    finally:
        # Not where another process holds the lock: the name must stay that of its file.
        if is_held:
            with contextlib.suppress(OSError):
                os.unlink(lock)
        os.close(handle)


def _is_same_file(handle: int, path: Path) -> bool:
    """Return False if the file was removed, and perhaps made anew, after it was opened."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _lock_file(handle: int) -> bool:
    """Lock a file until its handle is closed, which a kill does too; False if another holds it."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
