"""Audits of noise in released code, which find leaks through the low-order bits of the output.

A system is a library function that adds noise to a number and claims a small epsilon. In the audit,
the number is 0 or 1. The claim is true in exact arithmetic. With floating-point numbers, some
outputs can occur for only one of the two inputs. The audit searches the outputs of the code for
such values. A refuted claim therefore shows a fault of the floating-point implementation, not of
the distribution of the noise. The claims of three kinds of noise are not refuted: noise that is
rounded to a coarse grid, noise from a discrete law, and noise that is computed with exact rounding.

A library is imported only when it is audited. If the import fails, the table states this.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._core import __version__
from ..attacks.lattice import FloatLattice
from ..errors import choice
from ..events import event_of
from ..mechanisms import Gaussian, Laplace
from ..packages import get_loaded_module
from ..records import Pair
from ..report.figures import BLUE, GREY, INK, RED, restyle_figure
from ..report.rows import align_rows, format_epsilon
from ..report.shown import Shown
from ..results.audits import Audit
from .base import Column, SeededSettings, align_columns, setting
from .drawing import SMALL, Figure, add_legend, empty_figure, make_line, make_patch, style_axes
from .running import Tabled, audit_cell, run_jobs, time_run

NAME = "floating-point"

SCALE: Final = 10.0
"""Scale b of the Laplace noise, and also the standard deviation of the Gaussian noise. The
sensitivity is 1.
"""

EPSILON: Final = 0.1
"""Claimed epsilon of the Laplace noise."""

GAUSSIAN: Final = (0.5, 1e-6)
"""Claimed (epsilon, delta) of the Gaussian noise. The claim is true in exact arithmetic.

The exact delta at epsilon 0.5 is 6.9e-9, by the closed form of Balle and Wang (2018), theorem 8."""

Mechanism = Callable[[Any, int, np.random.Generator], npt.NDArray[Any]]
Build = Callable[[], Mechanism]

PAIR = Pair(np.array([0.0]), np.array([1.0]))


@dataclass(frozen=True, slots=True, repr=False)
class System(Shown):
    """One library function that adds noise to a number, and the epsilon that the function claims.

    Args:
        name: name of the function in the table.
        package: name of the package to import, or "" if the function is code of dpcore.
        build: function without arguments that returns the mechanism `(x, size, rng) -> outputs`.
        claim: epsilon that the function claims for two inputs at distance 1.
        delta: delta that belongs to the claimed epsilon.
        share: divisor of the number of outputs that the audit of this function draws. The divisor
            is above 1 for slow libraries.
        lattice: True if the function adds floating-point noise without a protection such as
            rounding.
        seeded: False if the function takes random numbers from the operating system. A seed then
            does not reproduce the counts of the audit.
    """

    name: str
    package: str
    build: Build
    claim: float = EPSILON
    delta: float = 0.0
    share: int = 1
    lattice: bool = True
    seeded: bool = True


def _numpy_builder(kind: str, name: str, *, legacy: bool = False) -> Build:
    def draw(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        source = np.random.RandomState(int(rng.integers(2**32))) if legacy else rng
        return np.asarray(x + getattr(source, kind)(0.0, SCALE, (size, x.size)))

    draw.__qualname__ = name
    return lambda: draw


def _torch_builder(kind: str, width: str) -> Build:
    def build() -> Mechanism:
        torch = importlib.import_module("torch")
        dtype = getattr(torch, width)

        def draw(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
            noise = getattr(torch.distributions, kind)(torch.tensor(x, dtype=dtype), SCALE)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(rng.integers(2**63)))
                return np.asarray(noise.sample((size,)).numpy())

        draw.__qualname__ = f"torch_{kind.lower()}_{width}"
        return draw

    return build


def _build_diffprivlib(kind: str, **fields: float) -> Build:
    def build() -> Mechanism:
        mechanism = getattr(_diffprivlib_mechanisms(), kind)

        def draw(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
            # Without a random_state it draws as released. A random_state would use other code.
            inner, value = mechanism(sensitivity=1.0, **fields), float(x[0])
            return np.array([[inner.randomise(value)] for _ in range(size)], dtype=np.float64)

        draw.__qualname__ = f"diffprivlib_{kind.lower()}"
        return draw

    return build


def _diffprivlib_mechanisms() -> Any:
    try:
        return importlib.import_module("diffprivlib.mechanisms")
    except ImportError:
        # With scikit-learn 1.6 or later, release 0.6.6 fails to import its models. Its mechanisms
        # do not need them, and are loaded before the error.
        mechanisms = get_loaded_module("diffprivlib.mechanisms")
        if mechanisms is None:
            raise
        return mechanisms


def _make_opendp_laplace() -> Mechanism:
    prelude = importlib.import_module("opendp.prelude")
    prelude.enable_features("contrib")
    domain = prelude.vector_domain(prelude.atom_domain(T=float, nan=False))
    noise = prelude.m.make_laplace(domain, prelude.l1_distance(T=float), scale=SCALE)

    def opendp_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        # One call on a vector of copies is enough, because the noise of its entries is independent.
        return np.array(noise([float(x[0])] * size))[:, np.newaxis]

    return opendp_laplace


def _make_snapped_laplace() -> Mechanism:
    step, bound = 16.0, 1024.0

    def snapped_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        noisy = np.clip(x, -bound, bound) + rng.laplace(0.0, SCALE, (size, x.size))
        return np.asarray(np.clip(step * np.rint(noisy / step), -bound, bound))

    return snapped_laplace


def _make_discrete_laplace() -> Mechanism:
    chance = -np.expm1(-EPSILON)

    def discrete_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        up, down = (rng.geometric(chance, (size, x.size)) for _ in range(2))
        return np.asarray(x + (up - down))

    return discrete_laplace


SYSTEMS: Final[tuple[System, ...]] = (
    System("numpy Generator.laplace", "numpy", _numpy_builder("laplace", "numpy_laplace")),
    System("numpy RandomState.laplace", "numpy",
           _numpy_builder("laplace", "numpy_legacy_laplace", legacy=True)),
    System("numpy Generator.normal", "numpy", _numpy_builder("normal", "numpy_normal"), *GAUSSIAN),
    System("dpcore.Laplace", "", lambda: Laplace(SCALE)),
    System("dpcore.Gaussian", "", lambda: Gaussian(SCALE), *GAUSSIAN),
    System("torch Laplace float64", "torch", _torch_builder("Laplace", "float64")),
    System("torch Laplace float32", "torch", _torch_builder("Laplace", "float32")),
    System("torch Normal float64", "torch", _torch_builder("Normal", "float64"), *GAUSSIAN),
    System("torch Normal float32", "torch", _torch_builder("Normal", "float32"), *GAUSSIAN),
    System("diffprivlib Laplace", "diffprivlib", _build_diffprivlib("Laplace", epsilon=EPSILON),
           share=10, seeded=False),
    System("diffprivlib Gaussian", "diffprivlib",
           _build_diffprivlib("Gaussian", epsilon=GAUSSIAN[0], delta=GAUSSIAN[1]), *GAUSSIAN,
           share=10, seeded=False),
    System("diffprivlib Snapping", "diffprivlib",
           _build_diffprivlib("Snapping", epsilon=EPSILON, lower=-100.0, upper=100.0),
           share=50, lattice=False, seeded=False),
    System("OpenDP make_laplace", "opendp", _make_opendp_laplace,
           share=20, lattice=False, seeded=False),
    System("snapped Laplace", "", _make_snapped_laplace, lattice=False),
    System("discrete Laplace", "", _make_discrete_laplace, lattice=False),
)  # fmt: skip
"""All systems: first systems with unprotected floating-point noise, then protected systems."""


_SYSTEM_NAMES = tuple(system.name for system in SYSTEMS)


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment on floating-point noise: the audited functions and the draws.

    Args:
        trials: number of outputs that an audit draws for each of the two inputs. Slow libraries use
            a tenth of this number or less.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        confidence: confidence level of the bound for each function. The probability that all bounds
            are true at once can be lower.
        systems: names of the library functions to audit, in the order of the table. Defaults to all
            names of `SYSTEMS`.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4", systems=("dpcore.Laplace",)).trials
        20000
    """

    confidence: float = 0.95
    systems: tuple[str, ...] = setting(_SYSTEM_NAMES, choice, _SYSTEM_NAMES)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Result of the audit of one library function that adds noise.

    Args:
        system: the audited function and the claimed epsilon.
        audit: result of the audit, or None if the library could not be imported.
        missing: reason why the library could not be imported, or "" if the function was audited.
        version: version of the package of the function, or "" if the package is not installed. For
            code of dpcore, this is the version of dpcore.
        seconds: duration of the audit in seconds. A comparison of two rows ignores this field.
    """

    system: System
    audit: Audit | None
    missing: str = ""
    version: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def found(self) -> bool | None:
        """True if the audit refutes the epsilon that the noise function claims.

        The value is False if the audit does not refute the claim, and None if the library could not
        be imported.
        """
        return None if self.audit is None else self.audit.refuted


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every library function that adds noise, if the library can be imported.

    Args:
        config: options of the experiment, such as the names of the functions.
        threads: number of threads for `Laplace` and `Gaussian` of dpcore. Defaults to all cores.
            The audits of all other functions use one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each function in `config.systems`. Functions of missing libraries
        also have a row.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first audit is complete.

    Source:
        Mironov (2012). The module `dpcore.attacks.lattice` describes which outputs the audit
        counts.

    Example:
        >>> result = run(Config(trials=10**5, systems=("dpcore.Laplace", "discrete Laplace")))
        >>> [row.found for row in result.rows]
        [True, False]
    """
    systems = [system for name in config.systems for system in SYSTEMS if system.name == name]
    work, worth = partial(_audit_system, config, threads), lambda row: row.audit is not None
    rows, ended = run_jobs("floating point", systems, work, progress, worth=worth)
    return Result(config, rows, partial=ended)


def _audit_system(config: Config, threads: int | None, system: System) -> Row:
    version = _installed_version(system.package)
    try:
        mechanism = system.build()
    except ImportError as error:
        # An installed package may still fail to import.
        why = f"cannot be imported: {error}" if version else "not installed"
        return Row(system, None, why, version)
    begun = time.perf_counter()
    options: Any = {"claim": system.claim, "delta": system.delta, "attack": FloatLattice()}
    options["threads"] = None if system.package else threads
    trials = max(1, config.trials // system.share)
    cell = audit_cell(config, system.name, mechanism, PAIR, trials=trials, **options)
    return Row(system, cell, "", version, time.perf_counter() - begun)


def _installed_version(package: str) -> str:
    try:
        return metadata.version(package) if package else str(__version__)
    except metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits of library functions that add noise.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each function, in the order of `Config.systems`.
    """

    rows: tuple[Row, ...]

    def table(self) -> str:
        """Return the results of all audits as plain text, and describe the counted outputs."""
        config = self.config
        own = any(not row.system.seeded and row.audit is not None for row in self.rows)
        events = [(row.system.name, _describe_event(row)) for row in self.rows]
        return self.join_parts(
            "Low-order bits of value + noise, x = 0 against x' = 1: traces of the "
            f"floating-point\nimplementation, seed {config.seed}, each bound at "
            f"{100 * config.confidence:g} % confidence on its own (Clopper-Pearson)",
            align_columns(_COLUMNS, self.rows),
            "* draws from the operating system: the seed does not repeat its counts" if own else "",
            "Events counted:\n" + align_rows(events, left=(0, 1)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the results of all audits as a dict of JSON values."""
        return self.make_record(rows=[_row_to_dict(row) for row in self.rows])

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds as bars, one bar per audited function.

        Returns:
            A matplotlib figure. A line shows the claimed epsilon of each function.
        """
        rows = self.rows
        picture = empty_figure(0.9 + 0.24 * len(rows), ax)
        axes = picture.subplots()
        audits = [row.audit for row in rows if row.audit is not None]
        right = max([4.0, *(audit.epsilon_lower for audit in audits)]) * 1.15
        for place, row in enumerate(reversed(rows)):
            claim, ends = row.system.claim, [place - 0.4, place + 0.4]
            axes.plot([claim, claim], ends, color=INK, linewidth=1.2, zorder=3)
            if row.audit is None:
                at = claim + 0.02 * right
                axes.text(at, place, _get_verdict(row), va="center", fontsize=SMALL)
                continue
            bound = row.audit.epsilon_lower
            axes.barh(place, bound, height=0.6, color=RED if row.found else BLUE)
            beyond = max(bound, claim) + 0.01 * right
            axes.text(beyond, place, f"{bound:.3g}", va="center", fontsize=SMALL, color=INK)
        split = sum(not row.system.lattice for row in rows)
        if 0 < split < len(rows):
            axes.axhline(split - 0.5, color=GREY, linewidth=0.6)
        axes.set(xlim=(0.0, right), ylim=(-0.7, len(rows) - 0.3))
        axes.set_yticks(range(len(rows)), [row.system.name for row in reversed(rows)])
        style_axes(axes, "certified privacy loss epsilon")
        axes.tick_params(axis="y", length=0)
        handles = [
            make_patch(color=RED, label="certified, refutes the claim"),
            make_patch(color=BLUE, label="certified, does not"),
            make_line(color=INK, linewidth=1.2, label="claim"),
        ]
        add_legend(picture, handles, 3, "upper")
        return restyle_figure(picture)


def _describe_event(row: Row) -> str:
    """Describe in words the outputs that the audit counted, or why no audit was made."""
    if row.audit is None:
        return row.missing
    if not event_of(row.audit.event).happens:
        return "none: the pilot shows no trace"
    return str(row.audit.event)


def _format_claimed_epsilon(system: System) -> str:
    return f"({system.claim:g}, {system.delta:g})" if system.delta else f"{system.claim:g}"


def _get_verdict(row: Row) -> str:
    return row.missing.partition(":")[0] if row.audit is None else row.audit.verdict


def _format_seconds(row: Row) -> str:
    return "-" if row.audit is None or not math.isfinite(row.seconds) else f"{row.seconds:.2f}"


def _row_to_dict(row: Row) -> dict[str, Any]:
    system, audit = row.system, row.audit
    return (
        {"system": system.name, "package": system.package, "version": row.version}
        | {"lattice": system.lattice, "seeded": system.seeded, "missing": row.missing}
        | {"seconds": row.seconds, "audit": None if audit is None else audit.to_dict()}
    )


_COLUMNS: Final = (
    Column("system", "system", lambda system: system.name + " *" * (not system.seeded), left=True),
    Column("version", "version", left=True),
    Column("draws per side", "audit", lambda audit: f"{audit.counts.n:,}"),
    Column("hits on x", "audit", lambda audit: f"{audit.counts.k:,}"),
    Column("on x'", "audit", lambda audit: f"{audit.counts.k_prime:,}"),
    Column("certified", "audit", lambda audit: format_epsilon(audit.epsilon_lower)),
    Column("claim", "system", _format_claimed_epsilon),
    Column("verdict", _get_verdict, left=True),
    Column("seconds", _format_seconds),
)
