"""Attributes inferred from vectors of DPNR, as published and repaired, and of its baselines.

The noise of the paper's code, one draw a row, is gone after a subtraction, whatever epsilon is
claimed; that of the paper lets attributes through before it lets the main task through. Shown
with each claim are the true epsilon, the corpus's largest pair, a naive attacker with the spread,
one chosen on validation, and the certified bound.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import flag, instance, integer, mistyped, real
from ...records import Shown
from ...streams import threads_of
from ...text.needed import needed
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .attacks import Run, measure_system
from .cases import NOISES, Case, list_systems
from .claims import Claim, Verdict, audit_claim
from .material import ENCODERS, Facts, Material, prepare_material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "dpnr-table"
_USUAL_CORPUS_TEXTS = {True: 600, False: 4000}


def _check_level(name: str, value: Any) -> float:
    return real(name, value, low=0.0, open_low=True)


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the texts, the claims, and the size of an attack.

    Args:
        trials: draws on each side of every audit.
        seed: int in [0, 2**63); every system gets its own seed derived from it.
        seeds: trainings of each system, of which mean and spread are shown; None for 1, or 5 if
            `full`.
        data: the folder of the corpora, with dpnr_ag/ag_data.txt in it, or one of these two; None
            makes texts up.
        full: True to add MiniLM as encoder, twice the baselines, and all usual attackers.
        quick: True for few made-up texts and few attackers: it shows no more than that it works.
        device: where torch runs, such as "cpu".
        levels: claims of the systems.
        claims: claims that are audited on the largest pair.
        texts: texts that are made up where there are no data; None for 4,000, or 600 if `quick`.
        dim: entries of the vectors of TF-IDF; None for 768, or 64 for texts that are made up.
        confidence: of each interval and bound alone.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(full=True).seeds, Config(quick=True).texts
        (5, 600)
    """

    trials: int = 10**5
    seed: int = SEED
    seeds: int | None = None
    data: str | None = None
    full: bool = False
    quick: bool = False
    device: str = "cpu"
    levels: tuple[float, ...] = (0.05, 1.0, 5.0, 50.0)
    claims: tuple[float, ...] = (0.1, 1.0, 5.0)
    texts: int | None = None
    dim: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        instance("device", self.device, str)
        if self.data is not None:
            if not isinstance(self.data, (str, os.PathLike)):
                raise mistyped("data", "a path of a folder or a file", self.data)
            object.__setattr__(self, "data", str(self.data))
        quick = flag("quick", self.quick)
        texts = _USUAL_CORPUS_TEXTS[quick] if self.texts is None else self.texts
        object.__setattr__(self, "texts", integer("texts", texts, 300))
        seeds = (5 if flag("full", self.full) else 1) if self.seeds is None else self.seeds
        object.__setattr__(self, "seeds", integer("seeds", seeds, 1))
        dim = (64 if self.data is None else 768) if self.dim is None else self.dim
        object.__setattr__(self, "dim", integer("dim", dim, 2))
        for name in ("levels", "claims"):
            levels = check_list(name, getattr(self, name), partial(_check_level, name))
            object.__setattr__(self, name, tuple(sorted(levels)))

    @property
    def size(self) -> str:
        """Size of an attack: "quick", "usual" or "full"."""
        return "full" if self.full else "quick" if self.quick else "usual"

    @property
    def encoders(self) -> tuple[str, ...]:
        """Names of the encoders that get noise."""
        return ENCODERS[: 1 + self.full]

    @property
    def cases(self) -> tuple[Case, ...]:
        """The systems."""
        strengths = {"quick": (), "usual": (1.0,), "full": (0.3, 1.0)}[self.size]
        return list_systems(self.encoders, self.levels, strengths)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One system.

    Args:
        case: which one.
        runs: one for each seed.
    """

    case: Case
    runs: tuple[Run, ...]

    def over(self, value: Callable[[Run], float]) -> tuple[float, float]:
        """Compute mean and standard deviation of a figure over the seeds; of one seed 0."""
        values = [value(one) for one in self.runs]
        return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0

    def naive(self, unseen: bool = False) -> tuple[float, float]:
        """Return the lowest and the highest F1 of naive attackers."""
        found = [one.unseen if unseen else one.f1 for run in self.runs for one in run.naive]
        return min(found), max(found)

    @property
    def f1(self) -> tuple[float, float]:
        """F1 of the chosen attacker on unseen texts, mean and standard deviation."""
        return self.over(lambda one: one.chosen.f1.value)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train every system, attack it, and audit the claims on the largest pair.

    Args:
        config: what to measure.
        threads: checked only: one is used, so that sums keep their order.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, a row for each system.

    Raises:
        ModuleNotFoundError: without torch or scikit-learn; it says what to install.
        FileNotFoundError: if the data are not there.
        ValueError: if there is no such device, or a file is malformed.
        KeyboardInterrupt: on Ctrl-C before anything was measured.

    Source:
        Lyu, He and Li (2020), tables 2 and 4, and their released code.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     result = run(Config(trials=2000, quick=True, levels=(1.0,)))
        ...     shared = next(row for row in result.rows if row.case.system == "shared")
        ...     assert shared.f1[0] > 0.8
    """
    require_own_config(config, __name__)
    from ...torch.mechanisms import device_of

    device_of(config.device)
    threads_of(threads)
    begun = time.perf_counter()
    jobs: list[tuple[Case, int] | Claim] = [
        (case, number) for case in config.cases for number in range(config.seeds or 1)
    ]
    first = config.encoders[0]
    jobs += [Claim(system, first, level) for system in NOISES for level in config.claims]
    with _limit_to_one_thread():
        made = prepare_material(config, cell_seed(config.seed, "texts"))
        done, ended = run_jobs(
            "systems", jobs, lambda job: _run_job(config, made, job), progress,
            ended=lambda one: isinstance(one, Verdict) and one.partial,
        )  # fmt: skip
    runs: dict[Case, list[Run]] = {}
    for job, one in zip(jobs, done, strict=False):
        if isinstance(job, tuple):
            runs.setdefault(job[0], []).append(one)
    rows = tuple(Row(case, tuple(found)) for case, found in runs.items())
    claims = tuple(one for one in done if isinstance(one, Verdict))
    return Result(config, made.facts, rows, claims, ended, time.perf_counter() - begun)


def _run_job(config: Config, made: Material, job: Any) -> Any:
    if isinstance(job, Claim):
        key = f"claim/{job.encoder}/{job.system}/{job.claim}"
        return audit_claim(job, made, cell_seed(config.seed, key), config)
    case, number = job
    return measure_system(case, made, cell_seed(config.seed, f"{case.key}/{number}"), config)


@contextmanager
def _limit_to_one_thread() -> Iterator[None]:
    """Limit torch and the linear algebra below numpy to one thread.

    No sum then depends on the machine.
    """
    from ...text.systems.training import one_thread

    limits = needed("threadpoolctl", NAME).threadpool_limits
    needed("sklearn.neural_network", NAME)
    with one_thread(), limits(1):
        yield


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The systems, and the audits of their claims.

    Args:
        config: the options of the run.
        facts: of the texts.
        rows: one for each system.
        claims: audits on the largest pair.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    facts: Facts
    rows: tuple[Row, ...]
    claims: tuple[Verdict, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def line(self, system: str, encoder: str) -> list[tuple[float, Row]]:
        """Return the rows of a system with noise, each with its claim."""
        found = [r for r in self.rows if (r.case.system, r.case.encoder) == (system, encoder)]
        return [(row.case.claim, row) for row in found if row.case.claim is not None]

    def table(self) -> str:
        """Return the figures as text: task, attackers, audits, and the paper's figures."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the attackers' F1 and the accuracy of the main task against the claim.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
