"""The work of `dpcore audit`: from options to an audit, its report and its exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from dataclasses import MISSING, dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .. import attacks, published
from ..auditing.run import Audit, audit
from ..errors import AssumptionWarning, choice, count, invalid
from ..events import Vote
from ..mechanisms.systems import System
from ..pairs import distance
from ..published import is_native
from ..records import Pair
from . import user as _cli_user
from .pairs import given as given_pair
from .pairs import relation
from .status import INTERRUPTED, NO_VERDICT, NOT_REFUTED, REFUTED, Usage, say, usage

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

_Pairs = Pair | tuple[Pair, ...]

_OF_SYSTEMS = ("epsilon", "sensitivity", "clip", "nan")


@dataclass(frozen=True)
class Asked:
    """What the command line asks for; None where an option was not given."""

    target: str | None
    epsilon: float | None
    sensitivity: float | None
    clip: float | None
    nan: str | None
    dim: int | None
    x: str | None
    x_prime: str | None
    claim: float | None
    no_claim: bool
    delta: float
    confidence: float
    attack: str
    bound: str
    stop: str
    floats: bool
    pilot: int | None
    patterns: str | None
    neighbour: str | None
    null: bool
    trials: str
    start: str
    seed: int | None
    route: str
    block: int | None
    threads: int | None
    plot: str | None
    html: str | None
    as_json: bool
    progress: bool | None


def run(asked: Asked) -> int:
    """Audit what was asked for, print the result, and return the exit status."""
    if asked.target is None:
        raise Usage("name a system or FILE.py:FUNCTION (dpcore audit --list shows the systems)")
    if asked.claim is not None and asked.no_claim:
        raise Usage("--claim and --no-claim exclude each other")
    if asked.stop == "refuted" and asked.no_claim:
        raise Usage("--stop refuted needs a claim")
    if asked.plot is not None:
        _check_plot(Path(asked.plot))
    if asked.html is not None:
        _check_folder("--html", Path(asked.html))
    if _cli_user.is_own(asked.target):
        path, name = _cli_user.split(asked.target)
        with _cli_user.at_work(path):
            mechanism, pair = _own(asked, asked.target, path, name)
            report = _audit(asked, mechanism, pair)
    else:
        mechanism, pair = _system(asked, asked.target)
        report = _audit(asked, mechanism, pair)
    _deliver(asked, report)
    if report.partial:
        return INTERRUPTED
    if report.checks:
        return NO_VERDICT
    return REFUTED if report.refuted else NOT_REFUTED


def _audit(asked: Asked, mechanism: Any, pair: _Pairs) -> Audit:
    neighbour = relation(asked.neighbour)
    with usage(), warnings.catch_warnings():
        # The report says the same, in its own words.
        warnings.simplefilter("ignore", AssumptionWarning)
        report = audit(
            mechanism,
            pair,
            neighbour=neighbour,
            null=asked.null,
            trials=asked.trials,
            start=_start(asked.start),
            attack=attacks.named(choice("attack", asked.attack, tuple(attacks.NAMES))),
            bound=asked.bound,
            stop=asked.stop,
            floats=asked.floats,
            pilot=asked.pilot,
            # Any number here keeps the mechanism's own claim out of an audit without one.
            claim=0.0 if asked.no_claim else asked.claim,
            delta=asked.delta,
            confidence=asked.confidence,
            rng=asked.seed,
            route=asked.route,
            block=asked.block,
            threads=asked.threads,
            progress=asked.progress,
        )
    return replace(report, claim=None) if asked.no_claim else report


def _start(text: str) -> int:
    with contextlib.suppress(InvalidOperation):
        if Decimal(text) == 0:
            return 0
    try:
        return count("start", text)
    except ValueError:
        raise invalid("start", "a whole number at least 0 and below 2**63", text) from None


def _system(asked: Asked, name: str) -> tuple[System, _Pairs]:
    """The published system with its options, and the pair to audit it on."""
    if name not in SYSTEMS:
        close = get_close_matches(name.lower(), SYSTEMS, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise Usage(f"no such system: {name} ({meant}dpcore audit --list shows all)")
    cls = SYSTEMS[name]
    known = {field.name: field.default is MISSING for field in fields(cls)}
    given = {key: getattr(asked, key) for key in _OF_SYSTEMS if getattr(asked, key) is not None}
    for key in given:
        if key not in known:
            options = ", ".join(f"--{key}" for key in known)
            raise Usage(f"--{key} does not apply to {name} (its options: {options})")
    for key, needed in known.items():
        if needed and key not in given:
            raise Usage(f"{name} needs --{key}")
    pair = given_pair(asked)
    with usage():
        if isinstance(pair, Pair) and not asked.null:
            Vote.between(pair)
            if "sensitivity" in known and "sensitivity" not in given:
                given["sensitivity"] = distance(pair, "l1")
        system = cls(**given)
        if pair is None:
            pair = system.default_pair() if asked.dim is None else system.default_pair(asked.dim)
    return system, pair


def _own(asked: Asked, target: str, path: Path, name: str) -> tuple[Any, _Pairs]:
    """A user's mechanism, and the pair to audit it on."""
    for key in _OF_SYSTEMS:
        if getattr(asked, key) is not None:
            raise Usage(f"--{key} does not apply to a mechanism of your own ({target})")
    pair = given_pair(asked)
    mechanism = _cli_user.load(path, name, target)
    own = getattr(mechanism, "claim", None)
    if asked.claim is None and not asked.no_claim and (own is None or callable(own)):
        raise Usage(f"{target} has no claim: give --claim EPSILON, or --no-claim to estimate only")
    if pair is None:
        pair = _cli_user.own_pair(mechanism, target, path, asked.dim)
    if pair is None:
        # A silent choice could refute in somebody's CI what nobody claimed: 0 against 1 need not
        # be neighbours, and zeros against ones in many entries hardly ever are.
        raise Usage(
            f"{target} has no default_pair: give two inputs that the claim calls neighbours, "
            "--x NUMBERS and --x-prime NUMBERS (or --patterns one --dim D, for claims about one "
            "entry that changes by 1)"
        )
    return mechanism, pair


def _check_plot(path: Path) -> None:
    """Complain before the audit: a picture that cannot be saved should not cost an hour."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in kinds:
        raise Usage(f"--plot must end in one of .{', .'.join(kinds)}, got {path}")
    _check_folder("--plot", path)


def _check_folder(option: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Usage(f"{option} must name a file in a folder that can be written to, got {path}")


def _deliver(asked: Asked, report: Audit) -> None:
    if asked.as_json:
        # A callable is kept by name, so that what is printed is just what from_json reads.
        plain = report if is_native(report.mechanism) else replace(report, mechanism=report.name)
        sys.stdout.write(plain.to_json() + "\n")
    else:
        _print(report)
    if asked.plot is not None:
        sys.stdout.flush()
        report.plot().savefig(asked.plot)
        say(f"wrote {asked.plot}")
    if asked.html is not None:
        report.to_html(asked.html)
        say(f"wrote {asked.html}")


def _print(report: Audit) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for number, line in enumerate(str(report).splitlines()):
        style = "bold" if number == 0 else ""
        if line.startswith("  verdict "):
            # A claim that stands is no pass mark: neither green nor bold.
            style = {True: "bold red", False: "", None: "bold yellow"}[report.refuted]
        console.print(line, style=style, markup=False, emoji=False)
