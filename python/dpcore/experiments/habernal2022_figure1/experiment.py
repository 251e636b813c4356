"""Figure 1 of Habernal (2022): the empirical privacy loss of mechanisms, cell by cell.

Zeros against ones in n entries, majority vote, 10 million trials a side, for 7 epsilons and 6
dimensions. Beside the paper's six panels stands a seventh, `HalfNoise`: the paper's control for
a wrong sensitivity halves the noisy *output*, which costs no privacy (post-processing), so a
truly under-noised one was missing. ADePT is the reference code's simplification for this pair
(noise for one entry, loss n epsilon), not the real system, which loses sqrt(n) epsilon.

Every cell holds four integers. Where one of them is 0 the empirical loss is infinite, although
ADePT's true loss there is finite (13.7 to 284); the certified bound is finite everywhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auditing.run import Audit
from ...errors import choice, integer, real
from ...exact import VoteLaw, loss, vote_log_probabilities
from ...mechanisms import Identity, Native, RandomBits
from ...pairs import zeros_ones
from ...published import ADePTReference, DPText, HalfNoise, HalvedOutput, LaplaceMechanism
from ...records import Shown
from ..running import SEED, Job, Tabled, check_config, check_list, require_own_config, run_audits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "habernal2022-figure1"

MECHANISMS: dict[str, Callable[[float, int], Native]] = {
    "no privacy": lambda epsilon, dim: Identity(),
    "random": lambda epsilon, dim: RandomBits(),
    "Laplace": lambda epsilon, dim: LaplaceMechanism(epsilon, float(dim)),
    "ADePT": lambda epsilon, dim: ADePTReference(epsilon),
    "DPText": lambda epsilon, dim: DPText(epsilon, float(dim)),
    "halved output": lambda epsilon, dim: HalvedOutput(epsilon, float(dim)),
    "half noise": lambda epsilon, dim: HalfNoise(epsilon, float(dim)),
}
"""The panels: epsilon and the number of entries give the mechanism."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """The grid, by default the paper's.

    Args:
        trials: draws on each side of every cell.
        seed: int in [0, 2**63); every cell gets its own seed derived from it.
        epsilons: the claims, each above 0.
        dims: numbers of entries, each at least 1.
        mechanisms: names from `MECHANISMS`.
        confidence: probability that a bound holds, for each cell on its own.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or the grid is empty.

    Source:
        Habernal (2022), section 4 and figure 1.

    Example:
        >>> config = Config()
        >>> len(config.epsilons) * len(config.dims) * len(config.mechanisms)
        294
    """

    trials: int = 10**7
    seed: int = SEED
    epsilons: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    dims: tuple[int, ...] = (1, 2, 8, 32, 64, 128)
    mechanisms: tuple[str, ...] = tuple(MECHANISMS)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        checks: dict[str, Callable[[Any], Any]] = {
            "epsilons": lambda epsilon: real("epsilons", epsilon, low=0.0, open_low=True),
            "dims": lambda dim: integer("dims", dim, 1),
            "mechanisms": lambda name: choice("mechanisms", name, tuple(MECHANISMS)),
        }
        for name, checked in checks.items():
            object.__setattr__(self, name, check_list(name, getattr(self, name), checked))


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One point of the figure.

    Args:
        mechanism: name of the panel.
        epsilon: the claim.
        dim: number of entries.
        audit: what was counted.
    """

    mechanism: str
    epsilon: float
    dim: int
    audit: Audit

    @property
    def exact(self) -> float:
        """The loss that the vote can see, in closed form."""
        return loss(self._law())

    @property
    def p_values(self) -> tuple[float, float]:
        """Two-sided binomial p-value of each side's count under the exact law."""
        law, counts = self._law(), self.audit.counts
        logs = (law.log_p, law.log_p_prime)
        if self.audit.event.vote == "x":
            logs = (law.log_q, law.log_q_prime)
        return (
            _p_value(counts.k, counts.n, math.exp(logs[0])),
            _p_value(counts.k_prime, counts.n_prime, math.exp(logs[1])),
        )

    def _law(self) -> VoteLaw:
        law = vote_log_probabilities(self.audit.mechanism, self.audit.pair)
        assert law is not None  # every mechanism of the figure is native, all entries alike
        return law


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every cell of the grid.

    Args:
        config: the grid, and how long.
        threads: number of threads, None for all cores.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one cell for each mechanism, epsilon and number of entries.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        Habernal (2022), section 4, equation 12 and figure 1.

    Example:
        >>> grid = Config(trials=10**5, epsilons=(1.0,), dims=(2,), mechanisms=("Laplace",))
        >>> cell = run(grid).cells[0]
        >>> round(cell.exact, 4), abs(cell.audit.epsilon_hat - cell.exact) < 0.05
        (0.8997, True)
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    grid = [
        (name, epsilon, dim)
        for name in config.mechanisms
        for epsilon in config.epsilons
        for dim in config.dims
    ]
    jobs = [
        Job(MECHANISMS[name](epsilon, dim), zeros_ones(dim), epsilon, f"{name}/{epsilon!r}/{dim}")
        for name, epsilon, dim in grid
    ]
    audits, partial = run_audits("figure 1", jobs, config, threads, progress)
    cells = tuple(Cell(*place, audit) for place, audit in zip(grid, audits, strict=False))
    return Result(config, cells, partial, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The grid of audits.

    Args:
        config: the options of the run.
        cells: in the order mechanism, epsilon, number of entries.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def of(self, mechanism: str) -> tuple[Cell, ...]:
        """Return the cells of one panel."""
        return tuple(cell for cell in self.cells if cell.mechanism == mechanism)

    @property
    def smallest_p_value(self) -> float:
        """The worst agreement of a count with the exact law.

        Two-sided binomial p-values, one for each of the 2 len(cells) counts; with no fault
        anywhere the smallest one is about 1 / (2 len(cells)).
        """
        return min(p for cell in self.cells for p in cell.p_values)

    def table(self) -> str:
        """Return the figures as text: estimate / closed form, a block for each mechanism."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw empirical loss against epsilon, a panel for each mechanism.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)


def _p_value(k: int, n: int, p: float) -> float:
    """Compute min(1, 2 min(P(K <= k), P(K >= k))) for K ~ Binomial(n, p)."""
    from scipy.special import betainc

    p = min(p, 1.0)
    above = 1.0 if k == 0 else float(betainc(k, n - k + 1, p))
    below = 1.0 if k == n else float(betainc(n - k, k + 1, 1.0 - p))
    return min(1.0, 2.0 * min(above, below))
