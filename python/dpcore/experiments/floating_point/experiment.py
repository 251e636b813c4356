"""Leaks of released code through the low-order bits of its noise.

Every system adds noise to one number, 0 against 1, and claims a small epsilon for it: a true claim
about real numbers. The float lattice is looked for in what the code really returns. What is found
concerns the floating-point implementation, not the law of the mechanism; noise that is snapped to
a coarse grid, drawn from a discrete law or rounded exactly passes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ..._core import __version__
from ...attacks.lattice import FloatLattice
from ...auditing.run import Audit, audit
from ...errors import choice
from ...records import Pair, Shown
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .systems import SYSTEMS, Mechanism, System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "floating-point"
PAIR = Pair([0.0], [1.0])
_SYSTEM_NAMES = tuple(system.name for system in SYSTEMS)


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the systems, and the size of the audits.

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
    systems: tuple[str, ...] = _SYSTEM_NAMES

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        names = check_list(
            "systems", self.systems, lambda name: choice("systems", name, _SYSTEM_NAMES)
        )
        object.__setattr__(self, "systems", names)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
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
    require_own_config(config, __name__)
    begun = time.perf_counter()
    systems = [system for name in config.systems for system in SYSTEMS if system.name == name]
    rows, partial = run_jobs(
        "floating point",
        systems,
        lambda system: _make_system_row(system, config, threads),
        progress,
        ended=lambda row: row.audit is not None and row.audit.partial,
        worth=lambda row: row.audit is not None,
    )
    return Result(config, rows, partial, time.perf_counter() - begun)


def _make_system_row(system: System, config: Config, threads: int | None) -> Row:
    version = _installed_version(system.package)
    try:
        mechanism = system.build()
    except ImportError as error:
        return Row(system, None, _explain_missing(version, error), version)
    begun = time.perf_counter()
    found = _audit_system(system, mechanism, config, threads if not system.package else None)
    return Row(system, found, "", version, time.perf_counter() - begun)


def _installed_version(package: str) -> str:
    try:
        return metadata.version(package) if package else str(__version__)
    except metadata.PackageNotFoundError:
        return ""


def _explain_missing(version: str, error: ImportError) -> str:
    """Explain why a system has no audit; an installed package may still fail to import."""
    return f"cannot be imported: {error}" if version else "not installed"


def _audit_system(
    system: System, mechanism: Mechanism, config: Config, threads: int | None
) -> Audit:
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


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The audits, system by system.

    Args:
        config: the options of the run.
        rows: one for each system, in the order of the configuration.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def table(self) -> str:
        """Return the figures as text, then the events that were counted."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds as bars, one for each system, and the claims.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
