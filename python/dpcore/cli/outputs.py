"""The work of `dpcore audit-outputs`: from files to an audit, its report and its exit status."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import attacks
from ..auditing.provenance import record_command
from ..errors import AssumptionWarning, invalid
from ..recorded.run import OutputsAudit, audit_outputs
from .delivering import check_folder, check_plot, deliver_outputs
from .options import OutputsArguments, select_arguments
from .status import NO_VERDICT, NOT_REFUTED, REFUTED, Usage, report_bad_usage, write_line

__all__ = [
    "run_outputs_audit",
]


def run_outputs_audit(asked: OutputsArguments, command: str = "") -> int:
    """Audit the outputs in the files, print the result, and return the exit status."""
    wanted = 2 if asked.label is None else 1
    if len(asked.files) != wanted:
        both = "two files, the outputs on x and those on x' (or one, with --label COLUMN)"
        raise Usage(f"name {both if wanted == 2 else 'one file where --label is given'}")
    if asked.claim is not None and asked.no_claim:
        raise Usage("--claim and --no-claim exclude each other")
    if asked.claim is None and not asked.no_claim:
        raise Usage("give --claim EPSILON, or --no-claim to estimate only")
    if asked.plot is not None:
        check_plot(Path(asked.plot))
    if asked.html is not None:
        check_folder("--html", Path(asked.html))
    report = record_command(_audit_output_files(asked), command)
    for doubt in report.doubts:
        write_line(f"warning: {doubt}")
    deliver_outputs(asked, report)
    if report.doubts:
        # No verdict: neither status may stand for rows that no bound holds for.
        return NO_VERDICT
    return REFUTED if report.refuted else NOT_REFUTED


def _audit_output_files(asked: OutputsArguments) -> OutputsAudit:
    with _report_unreadable_files(), warnings.catch_warnings():
        # The report holds them, and `run_outputs_audit` says them in its own words.
        warnings.simplefilter("ignore", AssumptionWarning)
        given = select_arguments(asked, audit_outputs)
        given["attack"], given["guesses"] = (
            _find_attack(asked.attack),
            _parse_guesses(asked.guesses),
        )
        columns = [_parse_column(name) for name in asked.column] or None
        given["column"] = columns[0] if columns and len(columns) == 1 else columns
        for name in ("label", "groups"):
            given[name] = None if given[name] is None else _parse_column(given[name])
        return audit_outputs(*asked.files, rng=asked.seed, **given)


@contextlib.contextmanager
def _report_unreadable_files() -> Iterator[None]:
    """Report bad arguments, and files that cannot be read, as bad usage."""
    try:
        with report_bad_usage():
            yield
    except (OSError, ImportError, MemoryError) as error:
        raise Usage(str(error)) from error


def _find_attack(name: str | None) -> Any:
    return None if name is None else attacks.named(name, "attack")


def _parse_column(name: str) -> str | int:
    return int(name) if name.isascii() and name.isdigit() else name


def _parse_guesses(text: str | None) -> int | float | tuple[int, int] | None:
    """Parse a number, a share such as 0.2, or two numbers with a comma between."""
    if text is None:
        return None
    try:
        if "," in text:
            inside, outside = text.split(",")
            return int(inside), int(outside)
        return float(text) if "." in text else int(text)
    except ValueError:
        requirement = "a number, a share such as 0.2, or IN,OUT"
        raise invalid("guesses", requirement, text) from None
