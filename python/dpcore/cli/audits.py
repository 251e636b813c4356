"""The work of `dpcore audit`: from options to an audit, its report and its exit status."""

from __future__ import annotations

import contextlib
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .. import attacks, published
from ..auditing.provenance import record_command
from ..auditing.run import Audit, audit
from ..claims.claim import Claim
from ..errors import AssumptionWarning, count, invalid
from ..events import Vote
from ..mechanisms.commands import command as make_tool
from ..mechanisms.systems import System
from ..pairs import distance
from ..records import Pair
from . import user
from .delivering import check_folder, check_plot, deliver_report
from .options import AuditArguments, select_arguments
from .pairs import parse_relation
from .pairs import read_pairs as given_pair
from .status import (
    INTERRUPTED,
    MECHANISM_CONTRACT,
    NO_VERDICT,
    NOT_REFUTED,
    REFUTED,
    Usage,
    report_bad_usage,
)

__all__ = [
    "SYSTEMS",
    "load_mechanism",
    "run_audit",
]

SYSTEMS: dict[str, type[System]] = {
    "laplace": published.LaplaceMechanism,
    "adept": published.ADePT,
    "adept-clip-l1": published.ADePTClipL1,
    "adept-scaled": published.ADePTScaled,
    "adept-reference": published.ADePTReference,
    "dptext": published.DPText,
    "dptext-repaired": published.DPTextRepaired,
    "halved-output": published.HalvedOutput,
    "half-noise": published.HalfNoise,
}
"""The published systems by the names that the command line gives them."""

_OneOrMorePairs = Pair | tuple[Pair, ...]

_COMMAND_CONTRACT = (
    "it is run without a shell, {x} and {size} replaced, and writes one answer a line, {size} lines"
)

_SYSTEM_OPTIONS = tuple(
    one.name
    for one in fields(AuditArguments)
    if any(one.name == own.name for system in SYSTEMS.values() for own in fields(system))
)
"""Options that describe a published system."""


def run_audit(asked: AuditArguments, command: str = "") -> int:
    """Audit as the options request, print the result, and return the exit status."""
    if asked.target is None and asked.command is None:
        raise Usage("name a system or FILE.py:FUNCTION (dpcore audit --list shows the systems)")
    if asked.target is not None and asked.command is not None:
        raise Usage(f"--command is what is audited: leave out {asked.target}")
    if asked.timeout is not None and asked.command is None:
        raise Usage("--timeout is for --command")
    if asked.claim is not None and asked.no_claim:
        raise Usage("--claim and --no-claim exclude each other")
    if asked.stop == "refuted" and asked.no_claim:
        raise Usage("--stop refuted needs a claim")
    if asked.plot is not None:
        check_plot(Path(asked.plot))
    if asked.html is not None:
        check_folder("--html", Path(asked.html))
    with _find_mechanism(asked) as (mechanism, pair):
        report = _audit_pairs(asked, mechanism, pair)
    report = record_command(report, command)
    deliver_report(asked, report)
    if report.partial:
        return INTERRUPTED
    if report.checks:
        return NO_VERDICT
    return REFUTED if report.refuted else NOT_REFUTED


def _find_mechanism(
    asked: AuditArguments,
) -> contextlib.AbstractContextManager[tuple[Any, _OneOrMorePairs]]:
    if asked.command is not None:
        return contextlib.nullcontext(_make_command_mechanism(asked, asked.command))
    return load_mechanism(asked, asked.target or "")


@contextlib.contextmanager
def load_mechanism(asked: AuditArguments, target: str) -> Iterator[tuple[Any, _OneOrMorePairs]]:
    """Yield the mechanism that a target names and its pair, within the context of its own code."""
    if user.is_file_target(target):
        path, name = user.split_target(target)
        with user.user_code_context(path):
            yield _load_own_mechanism(asked, target, path, name)
    else:
        yield _find_system(asked, target)


def _audit_pairs(asked: AuditArguments, mechanism: Any, pair: _OneOrMorePairs) -> Audit:
    neighbour = parse_relation(asked.neighbour)
    with (
        report_bad_usage(MECHANISM_CONTRACT if asked.command is None else _COMMAND_CONTRACT),
        warnings.catch_warnings(),
    ):
        # The report says the same, in its own words.
        warnings.simplefilter("ignore", AssumptionWarning)
        given = select_arguments(asked, audit)
        given["neighbour"], given["start"] = neighbour, _parse_first_trial(asked.start)
        given["attack"] = attacks.named(asked.attack, "attack")
        if asked.no_claim:
            # Any number here keeps the mechanism's own claim out of an audit without one.
            given["claim"] = 0.0
        report = audit(mechanism, pair, rng=asked.seed, **given)
    return replace(report, claim=None) if asked.no_claim else report


def _parse_first_trial(text: str) -> int:
    with contextlib.suppress(InvalidOperation):
        if Decimal(text) == 0:
            return 0
    try:
        return count("start", text)
    except ValueError:
        raise invalid("start", "a whole number at least 0 and below 2**63", text) from None


def _find_system(asked: AuditArguments, name: str) -> tuple[System, _OneOrMorePairs]:
    """Return the published system with its options, and the pair to audit it on."""
    if name not in SYSTEMS:
        close = get_close_matches(name.lower(), SYSTEMS, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise Usage(f"no such system: {name} ({meant}dpcore audit --list shows all)")
    cls = SYSTEMS[name]
    known = {field.name: field.default is MISSING for field in fields(cls)}
    given = {key: getattr(asked, key) for key in _SYSTEM_OPTIONS if getattr(asked, key) is not None}
    if asked.claim is not None and not isinstance(asked.claim, Claim):
        given.setdefault("epsilon", asked.claim)
    for key in given:
        if key not in known:
            options = ", ".join(f"--{key}" for key in known)
            raise Usage(f"--{key} does not apply to {name} (its options: {options})")
    for key, needed in known.items():
        if needed and key not in given:
            raise Usage(f"{name} needs --{key}")
    if asked.repeat:
        raise Usage(f"--repeat does not apply to {name}: it is for a function of your own")
    if asked.text is not None or asked.text_prime is not None:
        raise Usage(f"--text does not apply to {name}, whose inputs are numbers")
    pair = given_pair(asked)
    with report_bad_usage():
        if isinstance(pair, Pair) and not asked.null:
            Vote.between(pair)
            if "sensitivity" in known and "sensitivity" not in given:
                given["sensitivity"] = distance(pair, "l1")
        system = cls(**given)
        if pair is None:
            pair = system.default_pair() if asked.dim is None else system.default_pair(asked.dim)
    return system, pair


def _make_command_mechanism(asked: AuditArguments, text: str) -> tuple[Any, _OneOrMorePairs]:
    """Make a mechanism of the command, and its pair: the typed inputs, as texts."""
    _refuse_options_of_systems(asked, "a command")
    if asked.repeat:
        raise Usage("--repeat does not apply to a command: it is for a function of your own")
    if asked.claim is None and not asked.no_claim:
        raise Usage("a command has no claim: give --claim EPSILON, or --no-claim to estimate only")
    inputs = (asked.x, asked.x_prime)
    if None in inputs or asked.dim is not None:
        pair = given_pair(asked)
    elif (asked.text, asked.text_prime, asked.patterns) != (None, None, None):
        raise Usage("--x and --x-prime are the two inputs: no --text, --text-prime or --patterns")
    else:
        pair = Pair(*inputs)
    if pair is None:
        raise Usage("give two inputs that the claim calls neighbours: --x TEXT and --x-prime TEXT")
    with report_bad_usage():
        try:
            return make_tool(shlex.split(text), timeout=asked.timeout), pair
        except ValueError as error:
            if hasattr(error, "argument"):
                raise
            # A quotation that is not closed.
            requirement = "a program and its arguments, quoted as in a shell"
            raise invalid("command", f"{requirement} ({error})", text) from None


def _refuse_options_of_systems(asked: AuditArguments, what: str) -> None:
    for key in _SYSTEM_OPTIONS:
        if getattr(asked, key) is not None:
            meant = ": --claim is the epsilon to test" if key == "epsilon" else ""
            raise Usage(f"--{key} does not apply to {what}{meant}")


def _load_own_mechanism(
    asked: AuditArguments, target: str, path: Path, name: str
) -> tuple[Any, _OneOrMorePairs]:
    """Load a user's mechanism and the pair to audit it on."""
    _refuse_options_of_systems(asked, f"a mechanism of your own ({target})")
    pair = given_pair(asked)
    mechanism = user.load_from_file(path, name, target, asked.repeat)
    own = getattr(mechanism, "claim", None)
    if asked.claim is None and not asked.no_claim and (own is None or callable(own)):
        raise Usage(f"{target} has no claim: give --claim EPSILON, or --no-claim to estimate only")
    if pair is None:
        pair = user.own_pair(mechanism, target, path, asked.dim)
    if pair is None:
        # A silent choice could refute in somebody's CI what nobody claimed: 0 against 1 need not
        # be neighbours, and zeros against ones in many entries hardly ever are.
        raise Usage(
            f"{target} has no default_pair: give two inputs that the claim calls neighbours, "
            "--x NUMBERS and --x-prime NUMBERS, or --text and --text-prime (or --patterns one "
            "--dim D, for claims about one entry that changes by 1)"
        )
    return mechanism, pair
