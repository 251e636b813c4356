"""The work of `dpcore audit-outputs`: from files to an audit, its report and its exit status."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import attacks
from ..auditing.recorded.run import OutputsAudit, audit_outputs
from ..errors import AssumptionWarning, choice, invalid
from .audits import _check_plot, _print
from .status import NO_VERDICT, NOT_REFUTED, REFUTED, Usage, say, usage

_OPTIONS = re.compile(r"^(rows|count_share|guesses|label|column|paired)(?= | must be )")


@dataclass(frozen=True)
class AskedOutputs:
    """What the command line asks for; None, or nothing, where an option was not given."""

    files: tuple[str, ...]
    rows: str | None
    claim: float | None
    no_claim: bool
    delta: float
    confidence: float
    attack: str | None
    bound: str | None
    count_share: float | None
    guesses: str | None
    column: tuple[str, ...]
    label: str | None
    paired: bool
    seed: int | None
    plot: str | None
    as_json: bool


def run(asked: AskedOutputs) -> int:
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
        _check_plot(Path(asked.plot))
    report = _audit(asked)
    for doubt in report.doubts:
        say(f"warning: {doubt}")
    if asked.as_json:
        sys.stdout.write(report.to_json() + "\n")
    else:
        _print(report)  # type: ignore[arg-type]
    if asked.plot is not None:
        sys.stdout.flush()
        report.plot().savefig(asked.plot)
        say(f"wrote {asked.plot}")
    if report.doubts:
        # No verdict: neither status may stand for rows that no bound holds for.
        return NO_VERDICT
    return REFUTED if report.refuted else NOT_REFUTED


def _audit(asked: AskedOutputs) -> OutputsAudit:
    with _usage(), warnings.catch_warnings():
        # The report holds them, and `run` says them in its own words.
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_outputs(
            *asked.files,
            rows=asked.rows,
            claim=asked.claim,
            delta=asked.delta,
            confidence=asked.confidence,
            attack=_attack(asked.attack),
            bound=asked.bound,
            count_share=asked.count_share,
            guesses=_guesses(asked.guesses),
            column=[_column(name) for name in asked.column] or None,
            label=None if asked.label is None else _column(asked.label),
            paired=asked.paired,
            rng=asked.seed,
        )


@contextlib.contextmanager
def _usage() -> Iterator[None]:
    """Bad usage for bad arguments and for files that cannot be read, in the words of options."""
    try:
        with usage():
            yield
    except Usage as error:
        text = _OPTIONS.sub(lambda found: "--" + found[1].replace("_", "-"), str(error))
        raise Usage(text) from error.__cause__
    except (OSError, ImportError) as error:
        raise Usage(str(error)) from error


def _attack(name: str | None) -> Any:
    return None if name is None else attacks.named(choice("attack", name, tuple(attacks.NAMES)))


def _column(name: str) -> str | int:
    return int(name) if name.isascii() and name.isdigit() else name


def _guesses(text: str | None) -> int | float | tuple[int, int] | None:
    """A number, a share such as 0.2, or two numbers with a comma between."""
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
