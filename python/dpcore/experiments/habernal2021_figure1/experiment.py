"""Figure 1 of Habernal (2021): how many inputs of ADePT its Laplace noise does not protect.

ADePT clips an encoder's vector in L2 to a radius C and scales Laplace noise by 2C, the largest L2
distance; Laplace noise needs the largest L1 distance, 2C sqrt(n). The share of pairs of random
vectors that are more than 2C apart in L1 after clipping is counted, and for comparison after
clipping in L1, which is one of the two remedies. What both cost is the second half of the picture.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ... import _core
from ...bounds.binomial import limits
from ...errors import integer, real
from ...records import Shown
from ...streams import threads_of
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .compared import COMPARED_PAIRS, COMPARISON, p_value
from .cost import LAWS, Cost, Excess, compute_costs, compute_excesses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "habernal2021-figure1"
NORMS: Final = ("l2", "l1")

CONFIDENCE: Final = 0.95
_MAX_MAGNITUDE: Final = 1e90


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the sizes, and the number of pairs.

    Args:
        trials: pairs for every size, law and clip.
        dims: sizes n of the vectors, each from 1 to 4096.
        radius: C, from 1e-90 to 1e90.
        epsilon: what the noise of the remedies must give, from 1e-90 to 1e90.
        seed: int in [0, 2**63); every size and law gets its own seed derived from it.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or `dims` is empty or has a size twice.

    Example:
        >>> Config(trials="1e6", dims=(2, 4096)).trials
        1000000
    """

    trials: int = COMPARED_PAIRS
    dims: tuple[int, ...] = tuple(range(1, 256))
    radius: float = 10.0
    epsilon: float = 1.0
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        most = _core.MOST_PAIR_ENTRIES
        dims = check_list("dims", self.dims, lambda dim: integer("dims", dim, 1, most))
        object.__setattr__(self, "dims", dims)
        for name in ("radius", "epsilon"):
            value = real(name, getattr(self, name), low=1.0 / _MAX_MAGNITUDE, high=_MAX_MAGNITUDE)
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One size, law and clip.

    Args:
        dim: entries of a vector, n.
        law: key in `LAWS`.
        norm: what the vectors were clipped in, "l2" or "l1".
        beyond: pairs with an L1 distance above 2C (1 + 1e-12).
        pairs: pairs counted.
        seed: repeats the pairs; both clips have the same ones.
    """

    dim: int
    law: str
    norm: str
    beyond: int
    pairs: int
    seed: int

    @property
    def share(self) -> float:
        """Share of pairs that are not protected."""
        return self.beyond / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the true share, with 95 % confidence."""
        return limits(self.beyond, self.pairs, (1.0 - CONFIDENCE) / 2.0)

    @property
    def compared(self) -> float | None:
        """The share to compare with, None where there is none."""
        if self.norm != "l2" or self.dim not in COMPARISON:
            return None
        return COMPARISON[self.dim][list(LAWS).index(self.law)]

    @property
    def p_value(self) -> float | None:
        """Probability of shares at least this different if both runs count the same thing."""
        if self.compared is None:
            return None
        return p_value((self.beyond, self.pairs), self.compared, COMPARED_PAIRS)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Count the pairs of every size, law and clip.

    Args:
        config: how many pairs of which sizes.
        threads: number of threads, None for all cores.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result; after Ctrl-C, with the sizes that were done.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first size is done.

    Source:
        Habernal (2021), section 6.

    Example:
        >>> result = run(Config(trials=1000, dims=(1, 32)))
        >>> [result.at(32, law, "l2").share for law in LAWS]
        [1.0, 0.999, 0.0]
        >>> max(cell.share for cell in result.cells if cell.norm == "l1")
        0.0
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    using = threads_of(threads)
    done, partial = run_jobs(
        "figure 1",
        config.dims,
        lambda dim: _count_unprotected_pairs(config, dim, using),
        progress,
        size=lambda dim: dim,
    )
    cells = tuple(itertools.chain.from_iterable(done))
    return Result(config, cells, partial, time.perf_counter() - begun)


def _count_unprotected_pairs(config: Config, dim: int, threads: int) -> list[Cell]:
    cells = []
    for name, law in LAWS.items():
        seed = cell_seed(config.seed, f"{name}/{dim}")
        drawn = (law.kind, law.spread * config.radius)
        for norm in NORMS:
            clip = (norm, config.radius)
            beyond = _core.pairs_beyond(drawn, clip, dim, config.trials, seed, threads)
            cells.append(Cell(dim, name, norm, beyond, config.trials, seed))
    return cells


@dataclass(frozen=True, repr=False)
class Result(Tabled):
    """The shares, size by size.

    Args:
        config: the options of the run.
        cells: one for each size, law and clip.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @cached_property
    def _by_name(self) -> dict[tuple[int, str, str], Cell]:
        return {(cell.dim, cell.law, cell.norm): cell for cell in self.cells}

    def at(self, dim: int, law: str, norm: str) -> Cell:
        """Return the cell of a size, law and clip.

        Raises:
            KeyError: if there is none.
        """
        return self._by_name[dim, law, norm]

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes that were done."""
        return tuple(dict.fromkeys(cell.dim for cell in self.cells))

    @property
    def smallest_p_value(self) -> float | None:
        """The smallest of all comparisons, multiplied by their number; None without any."""
        found = [cell.p_value for cell in self.cells if cell.p_value is not None]
        return min(1.0, min(found) * len(found)) if found else None

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """Costs of the two remedies, computed at the first use."""
        return compute_costs(self.config.radius, self.config.epsilon, self.config.seed)

    @property
    def excesses(self) -> tuple[Excess, ...]:
        """The true sensitivity compared with ADePT's."""
        return compute_excesses(self.config.radius)

    def table(self) -> str:
        """Return the figures as text: shares, the true sensitivity, and costs of the remedies."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the figure above, and the costs of the remedies below.

        Returns:
            A matplotlib figure of three panels.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
