"""Which released code leaks through the low-order bits of its noise?

Every system adds noise to one number, 0 against 1, and claims a small epsilon for it: a true claim
about real numbers. The float lattice is looked for in what the code really returns. What is found
concerns the floating-point implementation, not the law of the mechanism; noise that is snapped to
a coarse grid, drawn from a discrete law or rounded exactly passes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ..._core import __version__
from ...attacks.lattice import FloatLattice
from ...auditing.run import Audit, audit
from ...errors import choice
from ...events import event_of
from ...progress import Progress
from ...records import Pair
from ...report.text import epsilon
from ..running import SEED, aligned, cell_seed, check, listed, own, record
from .systems import SYSTEMS, Mechanism, System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "floating-point"
PAIR = Pair([0.0], [1.0])
_NAMES = tuple(system.name for system in SYSTEMS)


@dataclass(frozen=True, slots=True)
class Config:
    """What to audit, and how long.

    Args:
        trials: draws on each side of every audit; libraries that are called once for every output
            get a tenth of them or less.
        seed: int in [0, 2**63); every audit gets its own seed derived from it.
        confidence: probability that a bound holds, for each bound on its own.
        systems: names of the systems, in order; all of them by default.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4", systems=("dpcore.Laplace",)).trials
        20000
    """

    trials: int = 10**6
    seed: int = SEED
    confidence: float = 0.95
    systems: tuple[str, ...] = _NAMES

    def __post_init__(self) -> None:
        """Check the fields."""
        check(self)
        names = listed("systems", self.systems, lambda name: choice("systems", name, _NAMES))
        object.__setattr__(self, "systems", names)


@dataclass(frozen=True, slots=True)
class Row:
    """One system.

    Args:
        system: which.
        audit: what was counted; None if the system could not be imported.
        missing: why not; empty where there is an audit.
        version: of the package.
        seconds: time for pilot and count (not compared).
    """

    system: System
    audit: Audit | None
    missing: str = ""
    version: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def found(self) -> bool | None:
        """True if the low-order bits refute the claim, None if nothing was counted."""
        return None if self.audit is None else self.audit.refuted


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every system that can be imported.

    Args:
        config: what to audit, and how long.
        threads: number of threads for dpcore's own mechanisms, None for all cores; callables get
            one.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each system, missing ones too.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        Mironov (2012); the event: see `dpcore.attacks.lattice`.

    Example:
        >>> result = run(Config(trials=10**5, systems=("dpcore.Laplace", "discrete Laplace")))
        >>> [row.found for row in result.rows]
        [True, False]
    """
    own(config, __name__)
    begun = time.perf_counter()
    systems = [system for name in config.systems for system in SYSTEMS if system.name == name]
    rows: list[Row] = []
    with Progress("floating point", len(systems), progress) as bar:
        try:
            for system in systems:
                rows.append(_row(system, config, threads))
                if rows[-1].audit is not None and rows[-1].audit.partial:
                    break
                bar.advance(1)
        except KeyboardInterrupt:
            if not any(row.audit for row in rows):
                raise
    last = rows[-1].audit
    partial = len(rows) < len(systems) or (last is not None and last.partial)
    return Result(config, tuple(rows), partial, time.perf_counter() - begun)


def _row(system: System, config: Config, threads: int | None) -> Row:
    version = _version(system.package)
    try:
        mechanism = system.build()
    except ImportError as error:
        return Row(system, None, _missing(version, error), version)
    begun = time.perf_counter()
    found = _audit(system, mechanism, config, threads if not system.package else None)
    return Row(system, found, "", version, time.perf_counter() - begun)


def _version(package: str) -> str:
    try:
        return metadata.version(package) if package else str(__version__)
    except metadata.PackageNotFoundError:
        return ""


def _missing(version: str, error: ImportError) -> str:
    """Why a system has no audit: a package that is there may still fail to import."""
    return f"cannot be imported: {error}" if version else "not installed"


def _audit(system: System, mechanism: Mechanism, config: Config, threads: int | None) -> Audit:
    return audit(
        mechanism,
        PAIR,
        attack=FloatLattice(),
        claim=system.claim,
        delta=system.delta,
        trials=max(1, config.trials // system.share),
        confidence=config.confidence,
        rng=cell_seed(config.seed, system.name),
        threads=threads,
        progress=False,
    )


@dataclass(frozen=True, slots=True)
class Result:
    """The audits, system by system.

    Args:
        config: what was asked for.
        rows: one for each system, in the order of the configuration.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def table(self) -> str:
        """The figures as text, then the events that were counted."""
        config = self.config
        head = (
            "system", "version", "draws a side", "hits on x", "on x'", "certified", "claim",
            "verdict", "seconds",
        )  # fmt: skip
        parts = [
            "Low-order bits of value + noise, x = 0 against x' = 1: traces of the "
            f"floating-point\nimplementation, seed {config.seed}, each bound at "
            f"{100 * config.confidence:g} % confidence on its own (Clopper-Pearson)"
        ]
        if self.partial:
            parts.append("INTERRUPTED: only what was counted is shown")
        parts.append(aligned([head, *map(_cells, self.rows)], left=(0, 1, 7)))
        if any(not row.system.seeded and row.audit for row in self.rows):
            parts.append("* draws from the operating system: the seed does not repeat its counts")
        events = [(row.system.name, _event(row)) for row in self.rows]
        parts.append("Events counted:\n" + aligned(events, left=(0, 1)))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        rows = [
            {
                "system": row.system.name,
                "package": row.system.package,
                "version": row.version,
                "lattice": row.system.lattice,
                "seeded": row.system.seeded,
                "missing": row.missing,
                "seconds": row.seconds,
                "audit": None if row.audit is None else row.audit.to_dict(),
            }
            for row in self.rows
        ]
        return {**record(NAME, self), "rows": rows}

    def plot(self) -> Figure:
        """The certified bounds as bars, one for each system, and the claims.

        Returns:
            A matplotlib figure.
        """
        from .drawing import figure

        return figure(self)


def _event(row: Row) -> str:
    """What was counted, in words."""
    if row.audit is None:
        return row.missing
    if not event_of(row.audit.event).happens:
        return "none: the pilot shows no trace"
    return str(row.audit.event)


def _cells(row: Row) -> tuple[str, ...]:
    name = row.system.name if row.system.seeded else f"{row.system.name} *"
    claim = f"{row.system.claim:g}"
    if row.system.delta:
        claim = f"({claim}, {row.system.delta:g})"
    if row.audit is None:
        return name, row.version, "-", "-", "-", "-", claim, row.missing.partition(":")[0], "-"
    counts = row.audit.counts
    return (
        name,
        row.version,
        f"{counts.n:,}",
        f"{counts.k:,}",
        f"{counts.k_prime:,}",
        epsilon(row.audit.epsilon_lower),
        claim,
        row.audit.verdict,
        f"{row.seconds:.2f}" if math.isfinite(row.seconds) else "-",
    )
