"""Run file of an audit: its decisions and its counts so far, so that the audit can be continued.

The file is JSON, which is never executed. Each write replaces the whole file. If the process is
killed during a write, the previous file remains.

A run is an audit that can be continued, possibly by several processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NoReturn, get_type_hints

import numpy as np

from .. import errors
from ..errors import FileWarning, choice, flag, instance, integer, invalid, mistyped, real
from ..events import SIDES, EventRecord
from ..mechanisms.declarations import can_core_draw
from ..paths import name_path_errors, require_path, write_atomically
from ..records import get_attribute
from ..report.plain import decode_value, encode_value, name_field, parse_object, read_field, to_hint
from ..results.audits import Audit
from ..results.evidence import read_ranges
from ..sampling.driver import Done, Edge, Range
from ..sampling.replay import Collisions, Replays
from ..sampling.rows import compare_rates_of_audits, evidence_from_dict, evidence_to_dict
from ..sampling.tally import Tally
from ..sampling.workers import SAME_BITS_REMEDY
from ..visible import make_visible

RUN_FORMAT: Final = "dpcore.run/2"

_SECONDS_BETWEEN_WRITES: Final = 5.0
_MAX_KEPT_DIGESTS: Final = 4096
"""Largest number of hashes of blocks in a file. If there are more, only hashes that begin with some
zero bits are kept."""

_UNCOMPARED: Final = (
    "provenance", "inside", "read", "searched", "budget", "notes", "runs_on", "event",
)  # fmt: skip
"""Fields that are fixed before the count, but may be different in a process that continues the
count."""


_MOST_TRIALS: Final = 2**63 - 1
"""Largest integer that a file may contain."""

_EDGES: Final[Any] = tuple[tuple[int, tuple[tuple[tuple[int, ...], int, str], ...]], ...]
"""Type of the counts of some blocks: number of the block, then for each input the number of outputs
in the event, the number of NaN, and a hash."""

_COUNTED: Final = (
    "counts", "ranges", "nan", "nan_prime", "partial", "stop", "pooled", "floating_point", "curve",
    "rounding_won",
    "slices", "checks", "digests", "threads", "seconds", "spent",
)  # fmt: skip
_FIELDS: Final = tuple(f for f in fields(Audit) if f.name not in _COUNTED)
"""Fields of an audit that are fixed before the count."""


@dataclass(slots=True)
class FixedFields:
    """All facts of an audit that are known before the first trial is counted.

    Args:
        audit: fields of the result (the `Audit`) that are already known, by name.
        start: number of the first trial.
        trials: number of trials per input.
        thresholds: thresholds on the score of the attack (one number per output). To compute a
            trade-off curve, dpcore counts the outputs whose score is at or above each threshold.
        lattice: a second event, on the low-order bits of floats, and the input on which this event
            is more frequent. None if no such event is counted.
        checks: sentences that describe signs of dependence between the outputs of the first calls.
        remarks: sentences for the report on the choice of the event.
        collisions: for x and for x', the number of pairs of outputs that were compared before the
            count, and the number of equal pairs.
        whole: True if JSON can store the event. False if JSON can store only the text of the event.
        bits: hash of some outputs, or an empty text if no hash was made. A process that continues
            the audit must get the same hash.
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
        """Return these facts of the audit as plain data that JSON can store."""
        record = {name: encode_value(value) for name, value in self.audit.items()}
        record["seed"] = str(self.audit["seed"])
        names = [entry.name for entry in fields(self) if entry.name not in ("audit", "whole")]
        return {"audit": record} | {name: encode_value(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> FixedFields:
        """Make an object with the facts of an audit, from plain data of a run file."""
        held = instance("fixed.audit", instance("fixed", record, dict)["audit"], dict)
        audit = {f.name: read_field(f, held[f.name], decode_value) for f in _FIELDS}
        with name_field("fixed.thresholds", record["thresholds"]):
            thresholds = np.asarray(decode_value(record["thresholds"]), float)
        lattice = _read_as(record, "lattice", tuple[Any, str] | None)
        with name_field("fixed.lattice", record["lattice"]):
            if lattice is not None:
                lattice = decode_value(record["lattice"][0]), choice("lattice", lattice[1], SIDES)
        whole = "repr" not in _mapping_or_empty(held["event"])
        for name, event in (("event", audit["event"]), ("lattice", lattice and lattice[0])):
            if whole and event is not None and not callable(event):
                raise mistyped(f"fixed.{name}", "an event", event)
        pairs = _read_as(record, "collisions", tuple[tuple[int, int], tuple[int, int]])
        for many, equal in pairs:
            integer("collisions", equal, 0, integer("collisions", many, 0, _MOST_TRIALS))
        start = integer("start", record["start"], 0, _MOST_TRIALS)
        return cls(
            audit,
            start,
            integer("trials", record["trials"], 1, _MOST_TRIALS - start),
            thresholds,
            lattice,
            _read_as(record, "checks", tuple[str, ...]),
            _read_as(record, "remarks", tuple[str, ...]),
            (Collisions(*pairs[0]), Collisions(*pairs[1])),
            whole,
            instance("bits", record["bits"], str),
        )

    @property
    def digest(self) -> str:
        """Hash of these facts of an audit. Run files with equal hashes belong to the same audit."""
        record = self.to_dict()
        record["audit"].pop("provenance", None)
        return _digest_text(json.dumps(record))

    def find_difference(self, other: FixedFields) -> tuple[str, Any, Any] | None:
        """Find the first argument in which this audit differs from another audit.

        Args:
            other: facts of the other audit, known before its first trial was counted.

        Returns:
            The name of the argument, its value in this audit, and its value in the other audit.
            None if all compared arguments agree.
        """
        mine, theirs = _unwrap_reprs(self.to_dict()), _unwrap_reprs(other.to_dict())
        for name in ("start", "trials"):
            if mine[name] != theirs[name]:
                return name, mine[name], theirs[name]
        for name, value in mine["audit"].items():
            # Inputs are compared as text, because 1, 1.0 and True are equal but are different
            # inputs.
            texts = json.dumps(value), json.dumps(theirs["audit"].get(name))
            if name not in _UNCOMPARED and texts[0] != texts[1]:
                return name, value, theirs["audit"].get(name)
        sources = (
            [run_facts.sha256 for run_facts in run.audit["provenance"]] for run in (self, other)
        )
        versions = (
            [run_facts.versions for run_facts in run.audit["provenance"]] for run in (self, other)
        )
        for what, (run_facts, another) in (("source text", sources), ("versions", versions)):
            if run_facts != another and all(run_facts) and all(another):
                return f"{what} of the mechanism", run_facts[0], another[0]
        return None


def tally_to_dict(tally: Tally) -> dict[str, Any]:
    """Convert the counts of an audit on one input to plain data that JSON can store."""
    record = {entry.name: getattr(tally, entry.name) for entry in fields(Tally)}
    return record | {"evidence": evidence_to_dict(tally.evidence)}


def tally_from_dict(record: Mapping[str, Any]) -> Tally:
    """Make the counts of an audit on one input, from plain data of a run file."""
    hints = get_type_hints(Tally)
    record = instance("sides", record, dict)
    names = [entry.name for entry in fields(Tally) if entry.name != "evidence"]
    values = {name: _read_as(record, name, hints[name]) for name in names}
    tally = Tally(**values, evidence=evidence_from_dict(record["evidence"]))
    for number in (tally.rows, tally.nan, *tally.hits, *tally.watched_rows):
        integer("counts", number, 0, _MOST_TRIALS)
    if tally.hits and tally.hits[0] > tally.rows:
        raise invalid("hits", f"at most {tally.rows}, the trials", tally.hits[0])
    with name_field("watched", tally.watched):
        for counts, rows in zip(tally.watched, tally.watched_rows, strict=True):
            for number in (rows, *counts):
                integer("watched", number, 0, tally.rows)
    return tally


@dataclass
class RunFile:
    """State of an audit, and the file that stores this state so that the audit can be continued.

    The trials of an audit can be divided into parts. Each part is then counted with its own file.

    Args:
        path: path of the file, as messages show it.
        place: the same path after symbolic links are resolved.
        fixed: facts that are known before the count. None if the event is not chosen yet.
        done: the counts so far.
        part: the number of the part that is counted with this file (1, 2, ...), and the number of
            parts. None if the file is for all trials.
        asked: options of the command line that began the audit. Empty if the audit was begun in
            Python.
        looked: True if a person saw counts before all trials were counted.
        same_bits: False if a process of this audit drew outputs that may differ in some bits from
            the outputs of another process with the same seed.
        edges: indices and counts of two blocks of trials (the first counted block and a late
            block). A process that continues the audit draws these blocks again and compares the
            counts.
        sessions: three numbers for each process that counted trials. The first is the number of
            trials that were counted before the process began. The others are the numbers of outputs
            in the event in these trials, on x and on x'.
        digests: hashes of counted blocks. Two equal hashes show that outputs of one block occur
            again in another block.
        zeros: a number of bits, which limits how many hashes are stored: only hashes that begin
            with this many zero bits are kept in `digests`.
        registration: folder with the records of all counted parts, and a random number that
            identifies this count. Empty if no record is needed or possible.
        slices: state of an audit that stops as soon as the claim is refuted, from
            `SequentialAudit.to_dict`. Empty for other audits.
        seconds: time of counting in seconds, summed over all processes.
        time_of_day: time of day of the last write, for the progress bar.
        failure: error of the last attempt to write the file, or None if there was no error.
        held: number of trials per input whose counts are in the file.
    """

    path: Path
    place: Path = field(init=False)
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
    registration: dict[str, str] = field(default_factory=dict)
    slices: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    time_of_day: str = ""
    _written: float = 0.0
    failure: OSError | None = None
    held: int = 0
    _resumed: bool = False
    _replays: Replays | None = None

    def __post_init__(self) -> None:
        """Follow the symbolic links of the path."""
        self.place = Path(os.path.realpath(self.path))

    @property
    def range(self) -> Range:
        """Range (first, end) of the trials that are counted with this file.

        If the file is for one part of the audit, these are the trials of this part.
        """
        assert self.fixed is not None
        start, stop = self.fixed.start, self.fixed.start + self.fixed.trials
        return (start, stop) if self.part is None else part_range(self, self.part)

    @property
    def is_repeatable(self) -> bool:
        """True if the same seed gives the same outputs, and so the same counts, in this audit."""
        assert self.fixed is not None
        is_seeded = (
            self.fixed.audit["route"] != "callable" or self.fixed.audit["randomness"] == "seed"
        )
        return self.same_bits and is_seeded

    @property
    def resume_advice(self) -> str:
        """Text that shows how to continue this audit: a Python call or a command line."""
        if not self.asked:
            argument = "checkpoint" if self.part is None else "out"
            return f"the same call with {argument}={str(self.path)!r}"
        if self.part is not None:
            return self.count_command(self.part, self.path)
        return join_shell_words("dpcore", "audit", *self._cli_mechanism, "--resume", self.path)

    def count_command(self, part: tuple[int, int], out: Path | str) -> str:
        """Return the command line `dpcore count ...` that counts one part of this audit's trials.

        Args:
            part: the number of the part that is counted (1, 2, ...), and the number of parts.
            out: path of the file for the counts of this part.
        """
        path = self.path if self.part is None else self.asked.get("checkpoint") or "RUN.json"
        options = "--part", f"{part[0]}/{part[1]}", "--out", out
        return join_shell_words("dpcore", "count", path, *self._cli_mechanism, *options)

    @property
    def _cli_mechanism(self) -> list[str]:
        """Words of the command line that specify the mechanism."""
        command, target = self.asked.get("command"), self.asked.get("target")
        return ["--command", str(command)] if command is not None else [str(target)]

    def begin(self, fixed: FixedFields) -> None:
        """Store the facts of the audit that are known before the count, and write the run file.

        Raises:
            ValueError: if no other process could continue the audit. This is the case if JSON
                cannot store the event, and the same seed does not give the same outputs again.
        """
        record = fixed.to_dict()
        fixed.whole = "repr" not in _mapping_or_empty(record["audit"]["event"])
        if not fixed.whole and fixed.audit["randomness"] in ("own", "rounding"):
            requirement = (
                "None where the seed does not repeat the outputs and JSON cannot hold the event "
                "(choose an attack= of dpcore's own)"
            )
            raise invalid("checkpoint", requirement, str(self.path))
        self.fixed = fixed
        self.write_or_raise()

    def save_counts(self, done: Done, edges: list[Edge], replays: Replays, seconds: float) -> None:
        """Add new counts to this state of an audit.

        If the last write of the run file was at least five seconds ago, the file is written.

        Args:
            done: all counts so far.
            edges: index and counts of two blocks of trials: the first new block and the last new
                block.
            replays: hashes of the counted blocks.
            seconds: time in seconds that was spent on counting since the last call of this method.
        """
        if not self._resumed:
            hits = [side.hits[0] for side in self.done.sides] if self.done.ranges else [0, 0]
            self.sessions.append([self.done.trials, *hits])
            self._resumed = True
        self.done, self.seconds = done, self.seconds + seconds
        if edges:
            self.edges = [*self.edges[:1], edges[-1]] if self.edges else [edges[0], edges[-1]]
        self._replays = replays
        self.write()

    def save_early_stop_state_if_due(
        self, make: Callable[[], dict[str, Any]], replays: Replays, seconds: float
    ) -> None:
        """Store the state of an audit that stops as soon as the claim is refuted.

        The state is stored, and the run file is written, only if the last write was at least five
        seconds ago.

        Args:
            make: function that returns the state as plain data.
            replays: hashes of the counted blocks of trials.
            seconds: time in seconds that was spent on counting since the last call of this method.
        """
        self.seconds, self._replays = self.seconds + seconds, replays
        if self._is_due():
            self.slices = make()
            self.write()

    def compare_session_rates(self) -> tuple[str, ...]:
        """Compare how often the event occurred in the counts of different processes of this audit.

        If the frequencies differ by more than chance can explain, the result has one sentence.
        Otherwise, the result is empty.
        """
        if len(self.sessions) < 2:
            return ()
        ends = [*self.sessions, [self.done.trials, *(side.hits[0] for side in self.done.sides)]]
        rows = [[b - a for a, b in zip(*two, strict=True)] for two in itertools.pairwise(ends)]
        return compare_rates_of_audits([[(n, hits[side]) for n, *hits in rows] for side in (0, 1)])

    def refuse_difference(self, mine: FixedFields) -> None:
        """Raise a ValueError if an argument of this process has another value in the run file.

        Args:
            mine: facts of the audit in this process, before the count.
        """
        assert self.fixed is not None
        difference = self.fixed.find_difference(mine)
        if difference is not None:
            name, before, now = difference
            name = "rng" if name == "seed" else name
            raise invalid(name, f"{before!r} as in the run file {self.path}", now)
        if self.fixed.bits and mine.bits not in ("", self.fixed.bits):
            self.refuse_mechanism("one whose outputs differ from its outputs")

    def refuse_changed_counts(self, block: Edge, again: Edge) -> NoReturn:
        """Raise a ValueError: a block of trials that was drawn again gave different counts.

        Args:
            block: index and counts of the block, from the run file.
            again: index and counts of the same block, drawn again.
        """
        assert self.fixed is not None
        before, now = (
            ", ".join(f"{side[0][0]} hits and digest {side[2][:8]}" for side in counts[1])
            for counts in (block, again)
        )
        self.refuse_mechanism(
            f"one of which block {block[0]} has {now} on the two sides, where it had {before}"
        )

    def refuse_mechanism(self, difference: str) -> NoReturn:
        """Raise a ValueError: the mechanism differs from the mechanism that began this audit.

        Args:
            difference: text for the message that describes the new mechanism.
        """
        text = (
            f"mechanism must be the one that began the run file {self.path}, on a CPU with the "
            f"same bits ({SAME_BITS_REMEDY}), got {difference}"
        )
        raise errors.tag_error(ValueError(text), "mechanism")

    def _copy_limited_block_digests(self, replays: Replays) -> None:
        """Copy the hashes of counted blocks, at most 4,096 of them."""
        digests, self.zeros = replays.digests, replays.zeros
        while len(digests) > _MAX_KEPT_DIGESTS:
            self.zeros += 1
            limit = 1 << (64 - self.zeros)
            digests = {d: at for d, at in digests.items() if int.from_bytes(d[:8], "big") < limit}
        self.digests = dict(digests)

    def _is_due(self) -> bool:
        return time.monotonic() - self._written >= _SECONDS_BETWEEN_WRITES

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the run file (the state of the audit) as plain data."""
        assert self.fixed is not None
        return {
            "format": RUN_FORMAT,
            "run": self.fixed.digest,
            "part": None if self.part is None else list(self.part),
            "looked": self.looked,
            "same_bits": self.same_bits,
            "asked": self.asked,
            "fixed": self.fixed.to_dict(),
            "ranges": [list(entry) for entry in self.done.ranges],
            "sides": [tally_to_dict(side) for side in self.done.sides],
            "edges": self.edges,
            "sessions": self.sessions,
            "zeros": self.zeros,
            "registration": self.registration,
            "digests": [[digest.hex(), *at] for digest, at in self.digests.items()],
            "slices": self.slices,
            "seconds": self.seconds,
        }

    def load_state(self, argument_name: str) -> None:
        """Read the state of the audit from the run file, and check it.

        Args:
            argument_name: name of the argument that contains the path, for error messages.

        Raises:
            ValueError: if the file is not a run file, or if its counts contradict each other.
        """
        try:
            record = parse_object(self.place.read_text(encoding="utf-8"))
            if record.get("format") != RUN_FORMAT:
                raise invalid("format", repr(RUN_FORMAT), record.get("format"))
            self.fixed = FixedFields.from_dict(record["fixed"])
            self.part = _read_as(record, "part", tuple[int, int] | None)
            if self.part is not None:
                integer("part", self.part[0], 1, integer("part", self.part[1], 1, _MOST_TRIALS))
            self.looked = flag("looked", record["looked"])
            self.same_bits = flag("same_bits", record["same_bits"])
            self.asked = dict(instance("asked", record["asked"], dict))
            with name_field("ranges", record["ranges"]):
                ranges = read_ranges("ranges", record["ranges"])
            own, other = _read_as(record, "sides", tuple[dict[str, Any], dict[str, Any]])
            self.done = Done(ranges, (tally_from_dict(own), tally_from_dict(other)))
            _read_as(record, "edges", _EDGES)
            _read_as(record, "sessions", tuple[tuple[int, int, int], ...])
            self.edges, self.sessions = record["edges"], record["sessions"]
            self.zeros = integer("zeros", record["zeros"], 0, 64)
            digests = _read_as(record, "digests", tuple[tuple[str, int, int], ...])
            with name_field("digests", digests):
                self.digests = {bytes.fromhex(text): (side, n) for text, side, n in digests}
            self.slices = dict(instance("slices", record["slices"], dict))
            self.seconds = real("seconds", record["seconds"], low=0.0)
            self.registration = dict(_read_as(record, "registration", Mapping[str, str]))
            if self.registration and {*self.registration} != {"folder", "number"}:
                raise invalid("registration", "a folder and a number", self.registration)
            self._check_stored_counts()
            if record != seal_record(record):
                raise invalid("digest", "that of the other entries", record["digest"])
            self.held = self._count_trials()
        except (KeyError, TypeError, ValueError) as error:
            why = f"no entry {error}" if isinstance(error, KeyError) else error
            text = f"{argument_name} must be a run file that dpcore wrote, got {self.path}: {why}"
            raise errors.tag_error(ValueError(text), argument_name) from error

    def _check_stored_counts(self) -> None:
        start, stop = self.range
        for tally in self.done.sides:
            if tally.rows != self.done.trials:
                raise invalid("rows", f"{self.done.trials}, as the ranges say", tally.rows)
        if (
            self.done.ranges
            and not start <= self.done.ranges[0][0] <= self.done.ranges[-1][1] <= stop
        ):
            raise invalid("ranges", f"within the trials {(start, stop)}", self.done.ranges)
        own, other = self.done.sides
        assert self.fixed is not None
        size = self.fixed.thresholds.size
        sizes = [1] * (self.fixed.lattice is not None) + [size] * bool(size)
        for tally in self.done.sides:
            if tally.rows and [len(counts) for counts in tally.watched] != sizes:
                raise invalid("watched", f"lists of {sizes} numbers", tally.watched)
        event = self.fixed.audit["event"]
        groups = get_attribute(EventRecord, event, "multiplicities") if self.fixed.whole else ()
        numbers = {len(side.hits) for side in (own, other) if side.rows}
        if len(numbers) > 1 or (self.fixed.whole and numbers - {1 + len(groups)}):
            raise invalid("hits", f"{1 + len(groups)} numbers on each side", numbers)
        for number, _ in self.edges:
            integer("edges", number, 0, stop)
        ends = [*self.sessions, [self.done.trials, *(sum(side.hits[:1]) for side in (own, other))]]
        for before, after in itertools.pairwise([[0, 0, 0], *ends]):
            for less, more in zip(before, after, strict=True):
                integer("sessions", more, less, less + after[0] - before[0])
        for side, number in self.digests.values():
            integer("digests", side, 0, 1)
            integer("digests", number, 0, _MOST_TRIALS)

    def write(self, always: bool = False) -> None:
        """Write the run file if `always` is True, or at least five seconds after the last write.

        If the file cannot be written, the count continues, and a warning is issued. If a later
        write fails too, a second warning is issued only if `always` is True.
        """
        if not always and not self._is_due():
            return
        try:
            self.write_or_raise()
        except OSError as error:
            if always or self.failure is None:
                what = "ends and leaves" if always else "goes on, but a kill would leave"
                text = f"{self.path} could not be written ({error.__cause__}): the count {what}"
                text = f"{text} {self.stored_trial_count_text()} in the file"
                warnings.warn(text, FileWarning, stacklevel=2)
            self.failure = error

    def write_and_describe_resume(self) -> str:
        """Write the run file of the audit before an error ends this process.

        Returns:
            A text for the user: how many trials the file contains, and how to continue the audit.
        """
        self.write(always=True)
        return make_visible(
            f"{self.path} holds {self.stored_trial_count_text()}: go on with {self.resume_advice}"
        )

    def write_if_never_written(self) -> None:
        """Write the run file of the audit, if this process has not written the file before.

        Raises:
            OSError: if the file cannot be written.
        """
        if not self.time_of_day:
            self.write_or_raise()

    def write_or_raise(self) -> None:
        """Write the state of this audit to its run file.

        Raises:
            OSError: if the file cannot be written.
        """
        if self._replays is not None:
            self._copy_limited_block_digests(self._replays)
        assert self.fixed is not None
        text, now = json.dumps(seal_record(self.to_dict()), allow_nan=False), time.monotonic()
        # The file may hold inputs and outputs of a user's own mechanism.
        mode = 0o666 if can_core_draw(self.fixed.audit["mechanism"]) else 0o600
        with name_path_errors(self.path, "written", "out" if self.part else "checkpoint"):
            write_atomically(self.place, text, mode)
        self._written, self.failure, self.held = now, None, self._count_trials()
        self.time_of_day = time.strftime("%H:%M:%S")

    def stored_trial_count_text(self) -> str:
        """Return a text with the number of trials whose counts are in the run file.

        If more trials were counted since the last write, the text also contains the larger number.
        """
        counted = self._count_trials()
        more = "" if counted == self.held else f", not the {counted:,} counted"
        return f"{self.held:,} trials per side{more}"

    def _count_trials(self) -> int:
        """Return the number of counted trials per input."""
        pieces = self.slices.get("slices") or [self.done.trials]
        return sum(piece if isinstance(piece, int) else piece["counts"]["n"] for piece in pieces)


def _digest_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def seal_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the entries of a run file, with a further entry "digest".

    This entry is a hash of all other entries. From this hash, dpcore later detects whether the file
    was damaged or changed.

    Example:
        >>> seal_record({"zeros": 0}) == seal_record({"zeros": 1})
        False
    """
    entries = {name: value for name, value in record.items() if name != "digest"}
    return {**entries, "digest": _digest_text(json.dumps(entries))}


def join_shell_words(*words: Any) -> str:
    """Join words to one shell command line, with quotes. Invisible characters are escaped."""
    return " ".join(map(_quote_word_for_shell, map(str, words)))


def _quote_word_for_shell(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # `$'...'` of bash and zsh: two hexadecimal digits stand for a byte, not for a character.
    escapes = (
        char
        if char.isprintable() and char not in "'\\"
        else f"\\x{ord(char):02x}"
        if char.isascii()
        else f"\\U{ord(char):08x}"
        for char in word
    )
    return f"$'{''.join(escapes)}'"


def _unwrap_reprs(value: Any) -> Any:
    """Replace each object that JSON stores only as its repr by the text of this repr."""
    if isinstance(value, Mapping):
        if set(value) == {"repr"}:
            return value["repr"]
        return {key: _unwrap_reprs(item) for key, item in value.items()}
    return [_unwrap_reprs(item) for item in value] if isinstance(value, list) else value


def _read_as(record: Mapping[str, Any], name: str, hint: Any) -> Any:
    """Return an entry of a file, converted to the type `hint`."""
    return to_hint(name, hint, record[name])


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def part_range(run: RunFile, part: tuple[int, int]) -> Range:
    """Return the range (first, end) of the trials that belong to one part of an audit.

    A part consists of whole blocks of trials. All parts have about the same number of blocks.

    Args:
        run: the run file of the audit.
        part: the number of the part (1, 2, ...), and the number of parts.
    """
    assert run.fixed is not None
    number, parts = part
    start, trials, block = run.fixed.start, run.fixed.trials, run.fixed.audit["block"]
    first = start // block
    blocks = -(-(start + trials) // block) - first
    edges = [(first + blocks * k // parts) * block for k in (number - 1, number)]
    return max(start, edges[0]), min(start + trials, edges[1])


def read_run(path: Any, name: str = "path") -> RunFile:
    """Read an existing run file, which stores the state of an audit.

    Args:
        path: path of the file.
        name: name of the argument that contains the path, for error messages.

    Raises:
        TypeError: if the path is None.
        ValueError: if the file does not exist, or is not a run file.
    """
    run = RunFile(require_path(name, path))
    if not run.place.is_file():
        raise invalid(name, "a run file that is there", str(path))
    run.load_state(name)
    return run


@contextmanager
def open_locked_run(
    path: Any, name: str = "checkpoint", requested: Mapping[str, Any] | None = None
) -> Iterator[RunFile]:
    """Open the run file of an audit, and lock the file so that no other process can use it.

    If no file exists at the path, the run file is new and empty.

    Args:
        path: path of the file.
        name: name of the argument that contains the path, for error messages.
        requested: options of the command line that begins the audit. None means no options.

    Raises:
        TypeError: if the path is None.
        ValueError: if the file is not a run file, if its folder cannot be written to, or if another
            process has locked it.
    """
    run = RunFile(require_path(name, path), asked=dict(requested or {}))
    path = run.place
    if os.path.lexists(path) and not path.is_file():
        raise invalid(name, "a run file or the name of a new one", str(run.path))
    lock = path.with_name(f".{path.name}.lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        text = f"{name} must be a file in a folder that can be written to, got {run.path}"
        raise errors.tag_error(ValueError(f"{text}: {error.strerror}"), name) from error
    is_held = False
    try:
        is_held = _lock_file(handle) and _is_same_file(handle, lock)
        if not is_held:
            raise invalid(name, "a run file that no other process counts for", str(run.path))
        for left in path.parent.glob(f".{path.name}.*.tmp"):
            # The file is left over from a process that was killed during a write.
            left.unlink(missing_ok=True)
        if path.exists():
            run.load_state(name)
        yield run
    finally:
        # If another process holds the lock, its file must keep the name.
        if is_held:
            with contextlib.suppress(OSError):
                os.unlink(lock)
        os.close(handle)


def _is_same_file(handle: int, path: Path) -> bool:
    """Return False if the file at `path` was removed or replaced after it was opened."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _lock_file(handle: int) -> bool:
    """Lock a file until its handle is closed or the process ends.

    Return False if another process has locked the file.
    """
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
