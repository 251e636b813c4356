"""Faults of DP-SGD found by audits of one step, of one run and of many runs.

A logistic regression is trained by a recipe with one fault at a time, and audited in three ways:
one step as it is drawn, one run with canaries, and many runs with and without one record. What one
step cannot show, batches that are fixed under an accountant for Poisson sampling, shows in the sums
of all steps of an epoch, which stand in the place of many runs.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...auditing.run import audit
from ...claims import GDP
from ...errors import AssumptionWarning, flag
from ...mechanisms.repeating import repeat
from ...records import Shown
from ...text.needed import needed
from ...training import audit_run, audit_step
from ..running import SEED, ShownResult, cell_seed, check_config, require_own_config, run_jobs
from .faults import (
    FAULTS,
    FIXED,
    POISSON,
    REPAIRED,
    RIGHT,
    Recipe,
    compute_losses,
    make_opposed_record,
)

NAME = "dpsgd-audit"

WAYS: Final = ("one step", "one run", "many runs")

STEP_SIGMA: Final = 1.0
RUN_SIGMA: Final = 9.0
STEPS: Final = 20
MANY_SIGMA: Final = 4.5
MANY_STEPS: Final = 5
"""Many runs have fewer steps, with the same mu: sqrt(20)/9 = sqrt(5)/4.5."""

CANARIES: Final = 600
GUESSES: Final = 120
BATCHES: Final = 100

POISSON_MU: Final = math.sqrt(math.expm1(1.0 / STEP_SIGMA**2) / BATCHES)
"""mu of one epoch of Poisson sampling with sigma 1 and rate 1/100, about .13 (Bu et al., 2020).

It is the limit of many batches. The exact delta of 100 batches is up to 8 % above it at epsilon .1,
50 % at .2: far less than fixed batches add, and less than these audits can see.
"""

_BATCH_RECORDS: Final = 32
"""Records of one step and of many runs; one run has more."""

_QUICK_TRIALS: Final = 1000
_QUICK_MANY_FAULTS: Final = (RIGHT, "no noise", "half the noise", POISSON, FIXED)
"""Recipes that `quick` also trains many times."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """The size of the audits, and the data.

    Args:
        trials: draws on each side of the audits of one step and of many runs; with `quick` at most
            1,000.
        seed: int in [0, 2**63).
        full: True for five times as many trials.
        quick: True for generated data alone, few trials, and many runs of five recipes only.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(quick=True).size, Config().size, Config(full=True).size
        (1000, 6000, 30000)
    """

    trials: int = 6000
    seed: int = SEED
    full: bool = False
    quick: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        flag("full", self.full)
        flag("quick", self.quick)

    @property
    def size(self) -> int:
        """Trials on each side."""
        if self.quick:
            return min(self.trials, _QUICK_TRIALS)
        return self.trials * (5 if self.full else 1)

    @property
    def many(self) -> int:
        """Trainings on each side, which take longer than steps."""
        return max(100, self.size // 2)

    @property
    def corpora(self) -> tuple[str, ...]:
        """The data: generated, and scikit-learn's digits."""
        return ("generated",) if self.quick else ("generated", "digits")


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One audit.

    Args:
        data: "generated" or "digits".
        fault: a key of `FAULTS`.
        way: one of `WAYS`.
        certified: lower bound on mu at 95 %.
        claim: mu claimed.
        refuted: True if the claim was refuted.
        seconds: time taken (not compared).
    """

    data: str
    fault: str
    way: str
    certified: float
    claim: float
    refuted: bool
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_unexpected(self) -> bool:
        """True for a repaired recipe that was refuted, or a fault that passed where it must show.

        How batches are drawn must show in many runs, every other fault in one step.
        """
        if self.fault in REPAIRED:
            return self.refuted
        return self.way == ("many runs" if self.fault == FIXED else "one step") and not self.refuted


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit the recipe with every fault in every way.

    Args:
        config: the size.
        threads: has no effect: the functions of Python run in one thread.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, a cell for each data set, fault and way.

    Raises:
        ModuleNotFoundError: without scikit-learn, whose digits are read unless `quick` is set.
        KeyboardInterrupt: on Ctrl-C before anything was found.

    Source:
        Nasr et al. (2023); Steinke, Nasr and Jagielski (2023); Jagielski, Ullman and Oprea (2020).

    Example:
        >>> result = run(Config(quick=True, trials=300), progress=False)
        >>> [cell.refuted for cell in result.cells if cell.fault == "no noise"]
        [True, True, True]
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    jobs = [
        (data, fault, way)
        for data in config.corpora
        for fault in FAULTS
        for way in _choose_ways(config, data, fault)
    ]
    rows = {data: _load_records(data, config.seed) for data in config.corpora}
    cells, partial_ = run_jobs(
        NAME, jobs, lambda job: _make_cell(config, rows[job[0]], *job), progress
    )
    return Result(config, cells, partial_, time.perf_counter() - begun)


def _choose_ways(config: Config, data: str, fault: str) -> tuple[str, ...]:
    """Return the ways that apply: how batches are drawn shows in no single step of one batch."""
    if config.quick and fault not in _QUICK_MANY_FAULTS:
        return WAYS[:2]
    if fault in (POISSON, FIXED):
        # One made record stands for all data.
        return WAYS[2:] if data == "generated" else ()
    return WAYS


def _load_records(data: str, seed: int) -> npt.NDArray[np.float64]:
    """Return records with their labels in the last column.

    Their norms are about 20 or more: noise on such gradients is lost where they are then clipped.
    """
    if data == "digits":
        found = needed("sklearn.datasets", NAME).load_digits()
        return np.column_stack([found.data, found.target % 2])
    rng = np.random.default_rng(cell_seed(seed, data))
    features = 5.0 * rng.normal(size=(500, 20))
    return np.column_stack([features, features[:, 0] > 0.0])


def _make_cell(
    config: Config, rows: npt.NDArray[np.float64], data: str, fault: str, way: str
) -> Cell:
    begun = time.perf_counter()
    seed = cell_seed(config.seed, f"{data} {fault} {way}")
    found = _AUDIT_OF_WAY[way](config, rows, fault, seed)
    return Cell(
        data, fault, way, found.parameter_lower, found.claim.mu, found.refuted is True,
        time.perf_counter() - begun,
    )  # fmt: skip


def _audit_step(config: Config, rows: Any, fault: str, seed: int) -> Any:
    recipe = Recipe(STEP_SIGMA, fault)
    batch = rows[:_BATCH_RECORDS]
    batch = np.concatenate([make_opposed_record(batch)[None], batch])

    def step(records: Any, rng: np.random.Generator) -> Any:
        total = recipe.sum_gradients(records, rng, np.zeros(rows.shape[1]))
        return np.split(total, [-1])  # two tensors: the weights of the features, and the bias

    return audit_step(
        step, batch, sigma=STEP_SIGMA, clip=1.0, left_out=0, trials=config.size, rng=seed
    )


def _audit_run(config: Config, rows: Any, fault: str, seed: int) -> Any:
    """Train with canaries of which each has a feature of its own."""
    recipe = Recipe(RUN_SIGMA, fault, steps=STEPS)
    rng = np.random.default_rng(seed)
    width = rows.shape[1] - 1
    records = np.insert(rows[:200], [width] * CANARIES, 0.0, axis=1)
    canaries = np.zeros((CANARIES, records.shape[1]))
    canaries[:, width:-1] = 3.0 * np.eye(CANARIES)
    canaries[:, -1] = 1.0

    def fit(records: Any) -> Callable[[Any], Any]:
        return partial(compute_losses, recipe.train(records, rng))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_run(
            fit, records, canaries=canaries, guesses=GUESSES, rng=seed,
            claim=GDP(math.sqrt(STEPS) / RUN_SIGMA),
        )  # fmt: skip


def _audit_runs(config: Config, rows: Any, fault: str, seed: int) -> Any:
    """Train often with and without one record, or release the sums of an epoch (batches)."""
    batch = rows[:_BATCH_RECORDS]
    canary = make_opposed_record(batch)[None]
    pair = (np.concatenate([canary, batch]), batch)
    if fault in (POISSON, FIXED):
        recipe, mu = Recipe(STEP_SIGMA, fault), POISSON_MU
        # One feature, and no other record: at fixed weights these add constants to the sums.
        canary = np.array([[4.0, 1.0]])
        pair = (canary, canary[:0])
        train = repeat(partial(recipe.release_sums, batches=BATCHES), seeded="rng")
    else:
        recipe, mu = Recipe(MANY_SIGMA, fault, steps=MANY_STEPS), math.sqrt(MANY_STEPS) / MANY_SIGMA
        train = repeat(recipe.train, seeded="rng")
    return audit(
        train, pair, claim=GDP(mu), trials=config.many, pilot=max(400, config.many // 4), rng=seed,
        progress=False, source=False,
    )  # fmt: skip


_AUDIT_OF_WAY: Final[dict[str, Callable[[Config, Any, str, int], Any]]] = {
    "one step": _audit_step,
    "one run": _audit_run,
    "many runs": _audit_runs,
}


@dataclass(frozen=True, slots=True, repr=False)
class Result(ShownResult):
    """The audits, data set by data set and fault by fault.

    Args:
        config: the options.
        cells: one for each data set, fault and way.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def of(self, data: str, fault: str, way: str) -> Cell | None:
        """Return the audit of a fault in one way, or None."""
        key = data, fault, way
        return next((one for one in self.cells if (one.data, one.fault, one.way) == key), None)

    @property
    def unexpected(self) -> tuple[Cell, ...]:
        """Audits of which the verdict is not what it must be, see `Cell`."""
        return tuple(one for one in self.cells if one.is_unexpected)
