"""The field's benchmark: 20 mechanisms, what two auditors published on them, and what is true.

Every mechanism is audited over all pairs of inputs on which DP-Sniper was, with the attack that
the package chooses by itself, and set beside DP-Sniper's and StatDP's published bounds and the
exact loss on those pairs, which no sound bound exceeds but by the chance that its confidence
leaves.
"""

from __future__ import annotations

import functools
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auditing.run import Audit, audit
from ...bounds.unconditional import exact
from ...errors import choice, confidence_level, count, integer
from ...records import Counts, Shown
from ...streams import threads_of
from ..running import SEED, Tabled, cell_seed, check_list, require_own_config, run_jobs
from .mechanisms import BENCHMARKS, Benchmark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "dp-sniper-table"

# Meant for less than a minute each on two cores: sampling alone takes 5 to 17 seconds there, the
# choice of the event and its evaluation come on top.
TRIALS = {
    "Laplace": 4 * 10**8,
    "TruncatedGeometric": 4 * 10**8,
    "NoisyHist1": 2 * 10**8,
    "NoisyHist2": 10**8,
    "ReportNoisyMax1": 2 * 10**8,
    "ReportNoisyMax2": 2 * 10**8,
    "ReportNoisyMax3": 2 * 10**8,
    "ReportNoisyMax4": 2 * 10**8,
    "SVT1": 2 * 10**8,
    "SVT2": 2 * 10**8,
    "SVT3": 9 * 10**7,
    "SVT4": 17 * 10**7,
    "SVT5": 10**8,
    "SVT6": 10**8,
    "RAPPOR": 10**8,
    "OneTimeRAPPOR": 10**8,
    "LaplaceParallel": 10**8,
    "SVT34Parallel": 35 * 10**6,
    "PrefixSum": 10**8,
    "NumericalSVT": 8 * 10**7,
}
"""Trials a side of every mechanism where the configuration gives none."""

_PILOT_SHARE = 0.4
"""Pilot draws for each counted one: rare events (ReportNoisyMax4) and faint ones (LaplaceParallel)
are not found on fewer."""

BESIDE = ("SVT1", "SVT2", "SVT4")
"""Mechanisms whose true loss is so near the published bounds that the bound itself decides: the
exact one is shown for them too."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: mechanisms, and the number and size of audits.

    Args:
        trials: draws on each side of every audit; None takes each mechanism's own number.
        seed: int in [0, 2**63); every audit gets its own seed derived from it.
        repeats: audits of every mechanism, each with its own seed.
        confidence: probability that a bound holds, for each bound on its own; .9 is what the
            published figures have.
        mechanisms: names of the mechanisms.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or no mechanism is named, or one twice.

    Example:
        >>> Config(trials="2e4", mechanisms=("SVT1",)).trials_of("SVT1")
        20000
        >>> Config().trials_of("SVT1")
        200000000
    """

    trials: int | None = None
    seed: int = SEED
    repeats: int = 3
    confidence: float = 0.9
    mechanisms: tuple[str, ...] = tuple(BENCHMARKS)

    def __post_init__(self) -> None:
        """Check the fields."""
        known = tuple(BENCHMARKS)
        values = {
            "trials": None if self.trials is None else count("trials", self.trials),
            "seed": integer("seed", self.seed, 0, 2**63 - 1),
            "repeats": integer("repeats", self.repeats, 1),
            "confidence": confidence_level(self.confidence),
            "mechanisms": check_list(
                "mechanisms", self.mechanisms, lambda name: choice("mechanisms", name, known)
            ),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def trials_of(self, name: str) -> int:
        """Return the number of draws on each side of an audit of a mechanism."""
        return TRIALS[name] if self.trials is None else self.trials


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One mechanism.

    Args:
        name: its name.
        audits: one for each repeat.
        seconds: wall-clock time of each, choosing the event included (not compared).
    """

    name: str
    audits: tuple[Audit, ...]
    seconds: tuple[float, ...] = field(default=(), compare=False)

    @property
    def benchmark(self) -> Benchmark:
        """Known facts about the mechanism."""
        return BENCHMARKS[self.name]

    @property
    def bounds(self) -> tuple[float, ...]:
        """Certified bound of each audit, by Clopper-Pearson."""
        return tuple(audit.epsilon_lower for audit in self.audits)

    @property
    def exact_bounds(self) -> tuple[float, ...]:
        """Unconditional exact bounds from the same counts; empty if not in `BESIDE`.

        They are shown in addition to `bounds`. The larger of two bounds on the same counts would
        be chosen after counting, and would overclaim.
        """
        if self.name not in BESIDE:
            return ()
        return tuple(_cached_exact_bound(a.bound_counts, a.confidence) for a in self.audits)

    @property
    def certified(self) -> float:
        """The median of `bounds`, the lower one of an even number: a bound of a single audit."""
        return statistics.median_low(self.bounds)

    @property
    def certified_exact(self) -> float | None:
        """The median of `exact_bounds`, or None."""
        return statistics.median_low(self.exact_bounds) if self.exact_bounds else None

    @property
    def reached(self) -> bool:
        """True if `certified` is at least the better one of DP-Sniper's two bounds."""
        return self.certified >= self.benchmark.dp_sniper_best

    @property
    def above(self) -> int:
        """Number of bounds, of both kinds, that exceed the true loss; each one is an error."""
        return sum(bound > self.benchmark.supremum for bound in (*self.bounds, *self.exact_bounds))


@functools.cache
def _cached_exact_bound(counts: Counts, confidence: float) -> float:
    """Compute the exact bound of counts; it is cached because it is slow."""
    return exact(counts, 0.0, confidence)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit the benchmark.

    Args:
        config: what to audit, and how long.
        threads: number of threads, None for all cores; never changes a bound.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each mechanism.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        The benchmark: Bichsel, Steffen, Bogunovic and Vechev (2021).
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    jobs = [(name, repeat) for name in config.mechanisms for repeat in range(config.repeats)]
    done, partial = run_jobs(
        "the benchmark",
        jobs,
        lambda job: _time_audit(*job, config, threads),
        progress,
        ended=lambda found: found[1].partial,
    )
    rows = tuple(
        Row(
            name,
            tuple(found for key, found, _ in done if key == name),
            tuple(seconds for key, _, seconds in done if key == name),
        )
        for name in dict.fromkeys(key for key, *_ in done)
    )
    return Result(config, rows, partial, time.perf_counter() - begun)


def _time_audit(
    name: str, repeat: int, config: Config, threads: int | None
) -> tuple[str, Audit, float]:
    begun = time.perf_counter()
    found = _audit_benchmark(name, repeat, config, threads)
    return name, found, time.perf_counter() - begun


def _audit_benchmark(name: str, repeat: int, config: Config, threads: int | None) -> Audit:
    benchmark = BENCHMARKS[name]
    return audit(
        benchmark.mechanism,
        list(benchmark.pairs),
        attack="auto",
        trials=config.trials_of(name),
        pilot=max(2, int(_PILOT_SHARE * config.trials_of(name))),
        claim=benchmark.claim,
        confidence=config.confidence,
        bound="clopper_pearson",
        rng=cell_seed(config.seed, f"{name}/{repeat}"),
        threads=threads_of(threads),
        progress=False,
    )


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The audits, mechanism by mechanism.

    Args:
        config: the options of the run.
        rows: one for each mechanism.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def reached(self) -> int:
        """Mechanisms where the certified bound is at least DP-Sniper's better one."""
        return sum(row.reached for row in self.rows)

    @property
    def above(self) -> int:
        """Bounds that exceed the true loss."""
        return sum(row.above for row in self.rows)

    def table(self, *, times: bool = True) -> str:
        """Return the figures as text.

        Args:
            times: show seconds too, which no two runs share.
        """
        from .text import write_table

        return write_table(self, times)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data; `Audit.from_dict` reads each audit."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw certified bounds and true losses, each divided by DP-Sniper's better bound.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
