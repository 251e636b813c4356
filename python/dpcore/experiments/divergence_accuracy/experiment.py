"""Accuracy of estimated divergences, case by case and method by method.

Both directions of every pair of laws, with the rows on which methods are known to fail. On those
the default grid is estimated with certificates too: a value that its own certified lower bound
contradicts must never come out as "estimate only".
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...divergence import Estimate, renyi
from ...errors import choice, count, integer
from ...records import Record, Shown, frozen_array
from ..running import SEED, Tabled, cell_seed, check_list, require_own_config, run_jobs
from .cases import ALPHAS, CASES, Reals, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "divergence-accuracy"

NEIGHBOURS: Final[dict[str, int]] = {
    "ball": 20,
    "score": 20,
    "poczos": 10,
    "paper": 5,
    "paper-literal": 5,
}
"""The methods, and k of each, as in the published figures."""

_MIN_SAMPLE_ROWS: Final = 100
_MAX_SIZE_RATIO: Final = 10
_MISLEADING_STANDARD_ERRORS: Final = 3.0
"""Standard errors below its certified bound at which a value misleads."""

_MISLEADING_NULL_DIVERGENCE: Final = 0.05
"""Nats from 0 at which a value misleads where both laws are the same."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: cases, methods, and the number and size of samples.

    Args:
        trials: rows a side that all cases may draw together, in place of `rows`; every case is
            repeated twice at least, with 100 rows at least.
        repetitions: samples of every case; slow cases take a fraction of it, at least 2.
        rows: rows of P0 in every sample; None takes each case's own number, as unequal sizes
            always do.
        cases: names of the cases.
        methods: names of the methods.
        certified: samples of every failing case that are estimated with certificates.
        seed: int in [0, 2**63); every sample gets its own seed derived from it.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or a name unknown or given twice.

    Example:
        >>> Config(trials="2e4").size("n1-half"), Config().size("n1-half")
        ((2, 400), (200, 1000))
    """

    trials: int | None = None
    repetitions: int = 200
    rows: int | None = None
    cases: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = tuple(NEIGHBOURS)
    certified: int = 2
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check the fields."""
        values = {
            "trials": None if self.trials is None else count("trials", self.trials),
            "repetitions": integer("repetitions", self.repetitions, 2),
            "rows": None if self.rows is None else integer("rows", self.rows, _MIN_SAMPLE_ROWS),
            "cases": check_list(
                "cases", self.cases, partial(choice, "cases", options=tuple(CASES))
            ),
            "methods": check_list(
                "methods", self.methods, partial(choice, "methods", options=tuple(NEIGHBOURS))
            ),
            "certified": integer("certified", self.certified, 0),
            "seed": integer("seed", self.seed, 0, 2**63 - 1),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def size(self, name: str) -> tuple[int, int]:
        """Return the number of repetitions of a case, and its number of rows of P0."""
        case = CASES[name]
        repetitions = max(2, self.repetitions // case.slow)
        if self.trials is None:
            own = self.rows is None or case.ratio > 1
            return repetitions, case.rows if own else self.rows  # type: ignore[return-value]
        share = self.trials // len(self.cases)
        rows = max(_MIN_SAMPLE_ROWS, min(share // 2, case.rows))
        return max(2, min(repetitions, share // rows)), rows

    def other(self, name: str) -> int:
        """Return the number of rows of P1 in a sample of a case.

        Unequal sizes differ less if `trials` is given.
        """
        ratio = CASES[name].ratio
        return self.size(name)[1] * (ratio if self.trials is None else min(ratio, _MAX_SIZE_RATIO))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell(Record):
    """Estimates of one method on all samples of one case.

    Args:
        case: name of the case.
        method: name of the method.
        rows: rows of P0 and of P1 in a sample.
        values: estimates, shape (repetitions, 2, 3): directions, then orders 1, 2 and 4.
        refused: what the method said where it does not apply; then there are no values.
    """

    case: str
    method: str
    rows: tuple[int, int]
    values: Reals
    refused: str | None = None

    @property
    def truth(self) -> Reals:
        """True values of the estimated divergences, shape (2, 3)."""
        return np.array(CASES[self.case].truth)

    @property
    def infinite(self) -> Reals:
        """Number of values that are not finite, shape (2, 3)."""
        return np.asarray((~np.isfinite(self.values)).sum(axis=0))

    @property
    def mean(self) -> Reals:
        """Mean of the finite values, shape (2, 3); NaN without any."""
        return self._finite()[0]

    @property
    def spread(self) -> Reals:
        """Standard deviation of the finite values, shape (2, 3); NaN below two."""
        return self._finite()[1]

    @property
    def bias(self) -> Reals:
        """Mean minus truth, shape (2, 3): -inf where the truth is infinite and the mean is not."""
        return np.asarray(self.mean - self.truth)

    def _finite(self) -> tuple[Reals, Reals]:
        kept = np.isfinite(self.values)
        number = kept.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(kept, self.values, 0.0).sum(axis=0) / number
            squares = np.where(kept, self.values - mean, 0.0) ** 2
            spread = np.sqrt(squares.sum(axis=0) / (number - 1.0))
        return mean, np.where(number > 1, spread, np.nan)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trusted(Record):
    """One estimate with certificates, on the default orders.

    Args:
        case: name of the case.
        estimate: what was found.
    """

    case: str
    estimate: Estimate

    @property
    def misleading(self) -> int:
        """Values called "estimate only" that lie far below their bound, or far from 0 at a null."""
        found = self.estimate
        assert found.certified is not None
        error = np.nan_to_num(found.std_error, nan=0.0)
        wrong = found.value + _MISLEADING_STANDARD_ERRORS * error < found.certified
        if CASES[self.case].null:
            wrong |= np.abs(found.value) > _MISLEADING_NULL_DIVERGENCE
        return int((wrong & found.resolved).sum())


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Estimate every case.

    Args:
        config: what to estimate, and how often.
        threads: number of threads, None for all cores; never changes a result.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result; after Ctrl-C, the cases that were done.

    Raises:
        TypeError: if `config` is another experiment's.
        KeyboardInterrupt: on Ctrl-C before the first case was done.

    Source:
        The cases and the figures beside ours: those of `PUBLISHED`.

    Example:
        >>> config = Config(repetitions=5, rows=200, cases=("n1-half",), methods=("ball",))
        >>> run(config).cells[0].values.shape
        (5, 2, 3)
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    done, partial = run_jobs(
        "divergences",
        config.cases,
        lambda name: (
            _estimate_case(name, config, threads),
            list(_estimate_certified(name, config, threads)),
        ),
        progress,
    )
    cells = tuple(cell for found, _ in done for cell in found)
    trusted = tuple(one for _, found in done for one in found)
    return Result(config, cells, trusted, partial, time.perf_counter() - begun)


def _draw_sample(name: str, config: Config, i: int) -> tuple[Rows, int]:
    """Draw the i-th sample of a case, and return it with its seed."""
    rows, other = config.size(name)[1], config.other(name)
    seed = cell_seed(config.seed, f"{name}/{rows}/{other}/{i}")
    return CASES[name].draw(np.random.default_rng(seed), rows, other), seed


def _estimate_case(name: str, config: Config, threads: int | None) -> list[Cell]:
    """Run all methods on the same samples of a case."""
    repetitions, rows = config.size(name)
    sizes = (rows, config.other(name))
    values: dict[str, list[Reals]] = {method: [] for method in config.methods}
    refused: dict[str, str] = {}
    for i in range(repetitions):
        (y0, y1), seed = _draw_sample(name, config, i)
        for method in config.methods:
            if method in refused:
                continue
            try:
                values[method].append(estimate_divergences(y0, y1, method, seed, threads))
            except ValueError as error:
                refused[method] = str(error)
    empty = np.empty((0, 2, len(ALPHAS)))
    return [
        Cell(name, method, sizes, frozen_array(empty), refused[method])
        if method in refused
        else Cell(name, method, sizes, frozen_array(np.array(values[method])))
        for method in config.methods
    ]


def estimate_divergences(
    y0: Any, y1: Any, method: Any, seed: int, threads: int | None = None
) -> Reals:
    """Estimate the divergences of one sample by one method, without error bars.

    Args:
        y0: rows of the first sample.
        y1: rows of the second sample.
        method: a name of `NEIGHBOURS`, which gives k.
        seed: seed of the method's own randomness.
        threads: number of threads, None for all cores.

    Returns:
        Shape (2, 3): directions, then orders 1, 2 and 4, in nats.
    """
    with warnings.catch_warnings():
        # Unequal scales and the printed form are among the cases on purpose.
        warnings.simplefilter("ignore", UserWarning)
        found = renyi(
            y0, y1, alphas=ALPHAS[1:], k=NEIGHBOURS[method], method=method, error=None,
            checks=False, rng=seed, threads=threads, progress=False,
        )  # fmt: skip
    return np.column_stack([found.kl, found.value])


def _estimate_certified(name: str, config: Config, threads: int | None) -> Iterator[Trusted]:
    """Estimate the failing cases again with certificates, by the ball and by the default."""
    if not CASES[name].fails:
        return
    repetitions, _ = config.size(name)
    number = min(config.certified, repetitions if config.trials is None else 1)
    for i in range(number):
        (y0, y1), seed = _draw_sample(name, config, i)
        for method in ("ball", "auto"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = renyi(
                    y0, y1, method=method, certified=True, rows="independent", rng=seed,
                    threads=threads, progress=False,
                )  # fmt: skip
            yield Trusted(name, found)
            if method == "ball" and y0.shape[1] <= 2:
                # The default is the ball there.
                break


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The estimates, case by case.

    Args:
        config: the options of the run.
        cells: one for each case and method.
        trusted: the estimates with certificates.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    cells: tuple[Cell, ...]
    trusted: tuple[Trusted, ...] = ()
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def misleading(self) -> int:
        """Values that were called "estimate only" against their own certificate, or at a null."""
        return sum(one.misleading for one in self.trusted)

    def cell(self, case: str, method: str) -> Cell:
        """Return the estimates of one method on one case."""
        return next(c for c in self.cells if (c.case, c.method) == (case, method))

    def table(self) -> str:
        """Return the figures as text."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw bias and spread for every case, direction and method.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
