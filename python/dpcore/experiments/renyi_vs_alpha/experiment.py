"""Does the divergence of two sets of texts grow with its order, or does the formula?

Figure 3 of Gusain and Leith shows the Renyi divergence of two sets of medical texts against its
order, and a line above it from which they compute an epsilon. Here the curve is estimated by their
formula as printed, by that formula with its misprints corrected, and by the cross-fitted score with
its certified lower bound; and by all three on permuted labels, where every divergence is 0.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from ...divergence import Estimate, Line, line, renyi
from ...divergence.reliability.belief import ESTIMATE
from ...records import Shown
from ...streams import threads_of
from ...text import TfidfSVD
from ...text.needed import needed
from ..running import ShownResult, cell_seed, require_own_config, run_jobs
from ..two_sets import TextOptions, TwoSets, read_two_sets

NAME = "renyi-vs-alpha"

ORDERS: Final = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""Orders of the curves. The formulas of the source divide by alpha - 1: they have no order 1."""

METHODS: Final = {"paper-literal": 5, "paper": 5, "score": 20}
"""Methods of `divergence.renyi`, and the number of neighbours of each."""

DIM: Final = 50
"""Entries of a vector."""

DELTA: Final = 0.05
"""The delta of every epsilon."""

_DRAW_PERMUTATIONS: Final = {False: 4, True: 2}
"""Permutations of the labels in each draw, without and with `quick`."""

Curves = tuple[tuple[float, ...], ...]
"""D(sensitive||rest) and D(rest||sensitive) at each order, in nats."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """The sets, and the number of draws.

    Args:
        trials: texts of the sensitive set, at most; the other set has as many. At least 100.
        seed: int in [0, 2**63); draws, permutations and folds get their own from it.
        seeds: draws of the other set; None for 5, 20 with `full`, 1 with `quick`.
        data: the folder of the corpora, with medical/abstracts.csv in it; None generates texts.
        full: True for 20 draws.
        quick: True for one draw and few permutations.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (5, 20, 1)
    """


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """The curves of one method on one draw of the other set.

    Args:
        method: a key of `METHODS`.
        number: of the draw, from 0.
        value: the estimates, shape `(2, orders)`.
        belief: of each estimate, the same shape.
        ceiling: the largest value that the method can give; None where it has no ceiling.
        certified: lower bounds at 95 % in each direction; None except for "score".
        epsilon_lower: certified at `DELTA` by a held-out event; None except for "score".
        null: the estimates on permuted labels, shape `(permutations, 2, orders)`.
        null_certified: lower bounds on permuted labels, the same shape; None except for "score".
    """

    method: str
    number: int
    value: Curves
    belief: tuple[tuple[str, ...], ...]
    ceiling: Curves | None
    certified: Curves | None
    epsilon_lower: float | None
    null: tuple[Curves, ...]
    null_certified: tuple[Curves, ...] | None


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Estimate the curves of every method on every draw.

    Args:
        config: the sets, and the number of draws.
        threads: number of threads, None for all cores; never changes a result.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, a cell for each draw and method.

    Raises:
        ModuleNotFoundError: without scikit-learn; it says what to install.
        FileNotFoundError: if the folder has no such file.
        ValueError: if there are too few texts.
        KeyboardInterrupt: on Ctrl-C before anything was found.

    Source:
        Gusain and Leith (2025), supplement, figure 3.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     result = run(Config(quick=True, trials=200), progress=False)
        ...     assert result.mean("paper-literal")[0, 0] > result.mean("score")[0, 0]
    """
    require_own_config(config, __name__)
    threads = threads_of(threads)
    begun = time.perf_counter()
    needed("sklearn", NAME)
    sets = read_two_sets(config)
    # The methods of one draw follow each other and share its vectors.
    features = lru_cache(maxsize=1)(lambda number: _encode_draw(config, sets, number))
    jobs = [(number, method) for number in range(config.seeds or 1) for method in METHODS]
    cells, partial = run_jobs(
        "renyi against alpha", jobs, lambda job: _make_cell(config, features, *job, threads),
        progress,
    )  # fmt: skip
    size = len(sets.sensitive)
    sizes = (size, len(sets.rest) - size, sets.dropped)
    return Result(config, sets.origin, sizes, cells, partial, time.perf_counter() - begun)


def _encode_draw(config: Config, sets: TwoSets, number: int) -> Floats:
    """Return the vectors of both sets, one below the other, by an encoder fitted on other texts."""
    size = len(sets.sensitive)
    rng = np.random.default_rng(cell_seed(config.seed, f"draw {number}"))
    order = rng.permutation(len(sets.rest))
    drawn, public = ([sets.rest[row] for row in rows] for rows in (order[:size], order[size:]))
    encoder = TfidfSVD(DIM).fit(public)
    return encoder.encode([*sets.sensitive, *drawn])


def _make_cell(
    config: Config, features: Callable[[int], Floats], number: int, method: str, threads: int
) -> Cell:
    """Estimate the curves of one method on one draw, and on permuted labels."""
    rows = features(number)
    size = len(rows) // 2
    seed = cell_seed(config.seed, f"folds {number}")
    certifies = method == "score"

    def estimate(order: npt.NDArray[np.intp], **options: Any) -> Estimate:
        if certifies:
            options |= {"certified": True, "rows": "independent"}
        with warnings.catch_warnings():
            # The package warns that the printed formula is not a divergence, which is shown here.
            warnings.simplefilter("ignore", UserWarning)
            return renyi(
                rows[order[:size]], rows[order[size:]], alphas=ORDERS, method=cast(Any, method),
                k=METHODS[method], rng=seed, threads=threads, progress=False, **options,
            )  # fmt: skip

    found = estimate(np.arange(2 * size))
    rng = np.random.default_rng(cell_seed(config.seed, f"permutations {number}"))
    orders = [rng.permutation(2 * size) for _ in range(_DRAW_PERMUTATIONS[config.quick])]
    null = [estimate(order, checks=False, error=None) for order in orders]
    return Cell(
        method, number, _to_curves(found.value), tuple(map(tuple, found.belief.tolist())),
        None if np.isnan(found.ceiling).all() else _to_curves(found.ceiling),
        _to_curves(found.certified) if certifies else None,
        found.epsilon(DELTA).epsilon_lower if certifies else None,
        tuple(_to_curves(one.value) for one in null),
        tuple(_to_curves(one.certified) for one in null) if certifies else None,
    )  # fmt: skip


def _to_curves(values: Any) -> Curves:
    return tuple(map(tuple, values.tolist()))


@dataclass(frozen=True, slots=True, repr=False)
class Result(ShownResult):
    """The curves, draw by draw and method by method.

    Args:
        config: the options.
        corpus: where the texts come from.
        sizes: texts of each set, those that the encoder was fitted on, and those left out because
            they belong to both sets.
        cells: one for each draw and method.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    corpus: str
    sizes: tuple[int, int, int]
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of which there are curves."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def of(self, method: str) -> tuple[Cell, ...]:
        """Return the cells of a method, one a draw; none after Ctrl-C before the first."""
        return tuple(cell for cell in self.cells if cell.method == method)

    def mean(self, method: str, name: str = "value") -> Floats:
        """Return the mean over the draws, shape `(2, orders)`.

        Args:
            method: a key of `METHODS`.
            name: a field of `Cell` that has a value at each order; those on permuted labels are
                averaged over the permutations, too.
        """
        found = np.array([getattr(cell, name) for cell in self.of(method)], np.float64)
        means: Floats = found.mean(axis=tuple(range(found.ndim - 2)))
        return means

    def sd(self, method: str) -> Floats | None:
        """Return the standard deviation over the draws, None of one draw."""
        found = np.array([cell.value for cell in self.of(method)])
        return found.std(axis=0, ddof=1) if len(found) > 1 else None

    def resolved(self, method: str) -> npt.NDArray[np.bool_]:
        """Return True at the orders where the belief is "estimate only" in every draw."""
        beliefs = np.array([cell.belief for cell in self.of(method)])
        believed: npt.NDArray[np.bool_] = (beliefs == ESTIMATE).all(axis=0)
        return believed

    def line(self, method: str, name: str = "value") -> Line:
        """Return the source's line above the mean curve of the larger direction.

        Fitted to all orders, as the source does, believed or not: the epsilon is not a bound.
        """
        return line(ORDERS, self.mean(method, name).max(axis=0), DELTA)
