"""Audits in parts: begin a run, count each part of its trials on any machine, and merge the parts.

All parts count the same event, which is chosen once. The merged audit computes one bound from all
trials. A run file contains the settings and the event, which are fixed before the count. Each
part is written to a separate file, which also contains the settings and the event.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .auditing.arguments import Arguments, collect_audit_arguments
from .auditing.registered_parts import find_early_look, record_part_start_once, register_early_look
from .auditing.run import finish_audit, finish_counting_event, run_and_store_audit
from .auditing.run_files import RunFile, open_locked_run, read_run
from .errors import flag, integer, invalid, mistyped, tag_error
from .paths import require_path
from .results.audits import Audit
from .results.evidence import unite_smallest_digests
from .sampling.driver import Done, Range
from .sampling.rows import compare_rates_of_audits
from .suggestions import explain_argument_errors

__all__ = ["MissingPartsError", "begin_run", "count_part", "merge_parts"]


def __dir__() -> list[str]:
    """List the public names of the module; imported names are not shown."""
    return [*__all__]


_MAX_SHOWN_RANGES = 8
FilePath = str | os.PathLike[str]


@explain_argument_errors
class MissingPartsError(ValueError):
    """Error of `merge_parts`: the merged files do not contain all trials of an audit.

    The trials of an audit were divided into parts, which were counted separately.

    Attributes:
        ranges: the missing trials, as tuples `(start, stop)` of trial numbers. `stop` itself is not
            missing.
    """

    def __init__(self, ranges: list[Range], line: str = "") -> None:
        shown = ", ".join(f"{start:,} to {stop:,}" for start, stop in ranges[:_MAX_SHOWN_RANGES])
        more = len(ranges) - _MAX_SHOWN_RANGES
        rest = f" and {more} more ranges" if more > 0 else ""
        advice = f"; go on with {line}" if line else ""
        super().__init__(f"paths must hold all trials of the run; missing: {shown}{rest}{advice}")
        self.ranges = tuple(ranges)


@explain_argument_errors
def begin_run(
    path: FilePath,
    mechanism: Any,
    pair: Any = None,
    *,
    asked: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Begin an audit whose trials will be counted in parts: choose the event and write a run file.

    The event is a set of outputs, which all parts will count. The run file contains the event and
    the settings of the audit. This function does not count trials. Use `count_part` to count a part
    of the trials, and `merge_parts` to get the audit.

    Args:
        path: path of the run file. The file must not exist yet.
        mechanism: the mechanism, as in `dpcore.audit`.
        pair: the two inputs, as in `dpcore.audit`.
        asked: options of the command-line program, which are stored in the file. If you call the
            function from Python, leave out `asked`.
        **options: other keyword arguments of `dpcore.audit`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the file exists, or if `dpcore.audit` would raise a ValueError for the
            arguments.

    Example:
        >>> import dpcore, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> about = dict(claim=1.0, trials=10**6, rng=1)
        >>> begin_run(folder / "run.json", dpcore.Laplace(0.5), **about)
        >>> for number in (1, 2):
        ...     about |= {"part": (number, 2), "out": folder / f"part-{number}.json"}
        ...     count_part(folder / "run.json", dpcore.Laplace(0.5), **about)
        >>> merge_parts(folder.glob("part-*.json")).verdict
        'refuted'
    """
    with open_locked_run(path, "path", asked) as run:
        if run.fixed is not None:
            raise invalid("path", "the name of a new file", str(path))
        arguments = _collect_arguments_with_checkpoint(mechanism, pair, options, run)
        run_and_store_audit(arguments, run, lambda *_: None)


def start_or_resume_run(
    path: FilePath,
    mechanism: Any,
    pair: Any = None,
    *,
    asked: Mapping[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """Begin or continue an audit that stores its counts in a file, and count all its trials.

    The function does the same as `dpcore.audit` with the argument `checkpoint`.

    Args:
        path: path of the file. If the file exists, the audit in it is continued.
        mechanism: the mechanism, as in `dpcore.audit`.
        pair: the two inputs, as in `dpcore.audit`.
        asked: options of the command-line program, which are stored in the file. If you call the
            function from Python, leave out `asked`.
        **options: other keyword arguments of `dpcore.audit`.
    """
    with open_locked_run(path, "checkpoint", asked) as run:
        arguments = _collect_arguments_with_checkpoint(mechanism, pair, options, run)
        report: Audit = run_and_store_audit(arguments, run)
        return report


@explain_argument_errors
def count_part(
    path: FilePath,
    mechanism: Any,
    pair: Any = None,
    *,
    part: tuple[int, int],
    out: FilePath,
    again: bool = False,
    **options: Any,
) -> None:
    """Count one part of the trials of an audit that `begin_run` began.

    If the count of this part was interrupted, the function continues it.

    Some mechanisms do not give the same outputs again with the same seed. For such a mechanism, the
    part and its file are registered in a folder next to the run file. If you count the part again
    for another file, an error is raised, so that you cannot choose between two counts.

    Args:
        path: path of the run file that `begin_run` wrote.
        mechanism: the mechanism that was passed to `begin_run`.
        pair: the two inputs that were passed to `begin_run`.
        part: a tuple of the number of this part, counted from 1, and the number of all parts.
        out: path of the file to which the part is written.
        again: True to count a registered part again for the file `out`. The earlier count of the
            part is then no longer valid.
        **options: the other arguments that were passed to `begin_run`. The seed may be left out.

    Raises:
        OSError: if the file `out` cannot be written.
        TypeError: if an argument has the wrong type.
        ValueError: for one of these reasons:

            - an argument differs from the argument that was passed to `begin_run`;
            - `out` is the file of another part or of another audit;
            - the part is registered for another file, and `again` is False;
            - for the same trials, the mechanism gives other counts than before.
        KeyboardInterrupt: if the user presses Ctrl-C. The file `out` then contains the trials that
            were counted before.
    """
    number, parts = _check_part(part)
    flag("again", again)
    out, begun = require_path("out", out), read_run(path)
    if begun.done.ranges or begun.part is not None:
        raise invalid("path", "a run of which nothing is counted (--fit-only)", str(path))
    if Path(path).resolve() == out.resolve():
        raise invalid("out", "another file than the run's", str(out))
    with open_locked_run(out, "out") as run:
        if run.fixed is None:
            run.fixed, run.part = begun.fixed, (number, parts)
            # The command that continues the part reads this path of the run.
            run.asked = {**begun.asked, "checkpoint": str(path)} if begun.asked else {}
            run.looked, run.same_bits = begun.looked, begun.same_bits
        assert run.fixed is not None
        assert begun.fixed is not None
        if run.part != (number, parts) or run.fixed.digest != begun.fixed.digest:
            raise tag_error(
                ValueError(
                    f"out must be a new file, or one of part {part} of {_name_run(begun)}, got "
                    f"{out}, which holds part {run.part} of {_name_run(run)}"
                ),
                "out",
            )
        arguments = _collect_arguments_with_checkpoint(mechanism, pair, options, run)
        run.same_bits = run.same_bits and arguments.same_bits is not False
        record_part_start_once(begun.place, run, again)
        run_and_store_audit(arguments, run, lambda _, *counted: finish_counting_event(*counted))
        if run.failure is not None:
            raise run.failure


def _collect_arguments_with_checkpoint(
    mechanism: Any, pair: Any, options: Mapping[str, Any], run: RunFile
) -> Arguments:
    """Return all arguments of `dpcore.audit`, with the run file as `checkpoint`."""
    if options.get("checkpoint") is not None:
        raise invalid("checkpoint", "left out: the run file is one", options["checkpoint"])
    return collect_audit_arguments(mechanism, pair, {**options, "checkpoint": run.path})


def _check_part(part: Any) -> tuple[int, int]:
    if not isinstance(part, tuple) or len(part) != 2:
        raise mistyped("part", "a pair (number, number of parts)", part)
    parts = integer("part", part[1], 1)
    return integer("part", part[0], 1, parts), parts


def _name_run(run: RunFile) -> str:
    return f"run {'' if run.fixed is None else run.fixed.digest[:8]}"


@explain_argument_errors
def merge_parts(paths: Iterable[FilePath], *, partial: bool = False) -> Audit:
    """Merge the separately counted parts of an audit into one audit.

    Args:
        paths: paths of the files that `count_part` wrote, in any order. If two of the files are the
            same file, or copies, their trials are counted once.
        partial: True to get an audit of the trials counted so far, even if trials are missing. If
            trials are missing, the files are marked, because you then see an early verdict. From
            then on, the audit must use the bound "anytime", which stays valid after early verdicts.

    Returns:
        The `Audit` of the trials in all files. The `Audit` contains only the name of the
        mechanism, not the mechanism itself, unless dpcore's compiled core draws the outputs.

    Raises:
        TypeError: if `paths` is not an iterable of paths.
        ValueError: for one of these reasons:

            - a file is neither a run file nor the file of a part;
            - the count of a part is not valid, because the part was counted again;
            - two files belong to different audits;
            - two files that are not copies contain the same trials;
            - two files contain the same outputs for different trials.
        MissingPartsError: if trials are missing, unless `partial` is True.
    """
    flag("partial", partial)
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise mistyped("paths", "the paths of files", paths)
    runs = [read_run(path, "paths") for path in paths]
    if not runs:
        raise invalid("paths", "at least one file", [])
    for run in runs:
        if run.slices:
            raise invalid("paths", "files of runs with stop='fixed'", str(run.path))
    first = runs[0]
    assert first.fixed is not None
    done, counted_runs = Done(), list[RunFile]()
    for run in runs:
        assert run.fixed is not None
        if run.fixed.digest != first.fixed.digest:
            text = f"paths must be of one run, got {run.path} of another than {first.path}"
            raise ValueError(text)
        if any(_has_same_trials(run, other) for other in counted_runs):
            continue
        done = _join_run_if_disjoint(done, run, counted_runs)
        counted_runs.append(run)
    missing = done.list_unfinished(first.fixed.start, first.fixed.start + first.fixed.trials)
    if missing and not partial:
        raise MissingPartsError(missing, _propose_command(runs))
    if not done.ranges:
        raise invalid("paths", "files in which something was counted", [str(r.path) for r in runs])
    is_registered_look, note = find_early_look(counted_runs)
    if missing:
        register_early_look(counted_runs)
        for run in runs:
            with open_locked_run(run.path, "paths") as held:
                held.looked = True
                # write() would print a warning with counts of a file that is not marked yet.
                held.write_or_raise()
    looked = bool(missing) or is_registered_look or any(run.looked for run in runs)
    digests = tuple(digest.hex() for run in counted_runs for digest in run.digests)
    report = finish_audit(
        first.fixed,
        done,
        looked=looked,
        same_bits=all(run.same_bits for run in counted_runs),
        seconds=sum(run.seconds for run in counted_runs),
        digests=unite_smallest_digests((), digests),
    )
    checks = report.checks + _event_rate_notes(counted_runs)
    notes = report.notes + (note,) * bool(note)
    return replace(report, checks=tuple(dict.fromkeys(checks)), notes=notes)


def _propose_command(runs: list[RunFile]) -> str:
    """Return a command that counts a missing part or continues an interrupted part, or "".

    The result is "" if the run was not begun on the command line.
    """
    first = runs[0]
    if not first.asked or len({run.part and run.part[1] for run in runs}) > 1:
        return ""
    for run in runs:
        if run.done.list_unfinished(*run.range):
            return run.resume_advice
    counted = {run.part[0] for run in runs if run.part is not None}
    parts = first.part[1] if first.part is not None else 0
    number = next((number for number in range(1, parts + 1) if number not in counted), None)
    return "" if number is None else first.count_command((number, parts), f"part-{number}.json")


def _has_same_trials(run: RunFile, other: RunFile) -> bool:
    """Return True if two files contain the same trials with equal counts.

    Raises:
        ValueError: if the files contain the same trials with different counts.
    """
    if not run.done.ranges or run.done.ranges != other.done.ranges:
        return False
    if run.done.side_hits_and_nans == other.done.side_hits_and_nans:
        return True
    raise ValueError(
        f"paths must agree, got {other.path} and {run.path} with the same trials "
        f"{run.done.ranges} and other counts: {other.done.side_hits_and_nans} "
        f"and {run.done.side_hits_and_nans}"
    )


def _join_run_if_disjoint(done: Done, run: RunFile, counted_runs: list[RunFile]) -> Done:
    for other in counted_runs:
        same = set(run.digests) & set(other.digests)
        if same:
            blocks = [counted.digests[min(same)][1] for counted in (other, run)]
            raise ValueError(
                f"paths must hold outputs that were drawn anew, got equal ones in block "
                f"{blocks[0]} of {other.path} and block {blocks[1]} of {run.path}"
            )
    for start, stop in run.done.ranges:
        for other in counted_runs:
            if any(a < stop and start < b for a, b in other.done.ranges):
                raise ValueError(
                    f"paths must hold each trial once, got trials {start:,} to {stop:,} of "
                    f"{run.path} also in {other.path}"
                )
    return done.join_done(run.done)


def _event_rate_notes(runs: list[RunFile]) -> tuple[str, ...]:
    """Return a sentence if the event has significantly different frequencies in the parts.

    The parts are compared only if the same seed may give other outputs in a second run.
    """
    fixed = runs[0].fixed
    assert fixed is not None
    repeats = fixed.audit["randomness"] == "seed" and all(run.same_bits for run in runs)
    if fixed.audit["route"] != "callable" or repeats:
        return ()
    counted = [run.done for run in runs if run.done.ranges]
    sides = [[(done.trials, done.sides[side].hits[0]) for done in counted] for side in (0, 1)]
    return compare_rates_of_audits(sides)
