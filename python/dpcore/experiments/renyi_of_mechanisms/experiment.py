"""Renyi divergences of our own samplers: estimated from outputs, against the closed forms.

The outputs of eight mechanisms on two neighbouring inputs are drawn and estimated as any two
samples would be. The truth is known at every order and so is the exact epsilon, which shows what
an estimate is worth, where it stops being resolved, and that nothing certified is above the truth.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...divergence import Epsilon, Estimate, canonne_kamath_steinke, renyi
from ...errors import integer, real
from ...records import Record, Shown
from ..running import SEED, Tabled, cell_seed, check_config, require_own_config, run_jobs
from .cases import CASES, MOST_DELTA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "renyi-of-mechanisms"

_MIN_OUTPUTS: Final = 100
_STATEMENTS_PER_MECHANISM: Final = 3
"""Certified statements about a mechanism: a curve in each direction, and an epsilon."""

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the number of outputs, delta and confidence.

    Args:
        trials: outputs on each side of every pair, at least 100.
        delta: the delta of the epsilons, in (0, 0.3]: one that the sample can see.
        confidence: of all certified figures of the experiment together.
        seed: int in [0, 2**63); every sample gets its own seed derived from it.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4").trials
        20000
    """

    trials: int = 20_000
    delta: float = 0.05
    confidence: float = 0.95
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        object.__setattr__(self, "trials", integer("trials", self.trials, _MIN_OUTPUTS))
        delta = real("delta", self.delta, low=0.0, high=MOST_DELTA, open_low=True)
        object.__setattr__(self, "delta", delta)

    @property
    def each(self) -> float:
        """Confidence of one certified statement: failures of all of them add up to 1 - c."""
        return 1.0 - (1.0 - self.confidence) / (_STATEMENTS_PER_MECHANISM * len(CASES))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Row(Record):
    """One mechanism.

    Args:
        name: key in `CASES`.
        truth: D_alpha in closed form, shape (2, n_alpha) as in the estimate.
        estimate: what the outputs alone give.
        epsilon: its figures at the delta of the configuration.
        exact: the exact epsilon at that delta.
        converted: the closed form converted to that delta, the larger direction: what
            `epsilon_rdp` would be without any error of estimation.
    """

    name: str
    truth: Reals
    estimate: Estimate
    epsilon: Epsilon
    exact: float
    converted: float

    @property
    def certified(self) -> Reals:
        """Certified lower bounds, shape (2, n_alpha)."""
        found = self.estimate.certified
        assert found is not None
        return found

    @property
    def above(self) -> int:
        """Certified figures that are above the truth: directions of the curve, and epsilon."""
        room = 1.0 + 1e-9
        curves = int((self.certified > self.truth * room).any(axis=1).sum())
        lower = self.epsilon.epsilon_lower
        return curves + int(lower is not None and lower > self.exact * room)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Draw, estimate and compare, mechanism by mechanism.

    Args:
        config: how much to draw.
        threads: number of threads, None for all cores; never changes a result.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each mechanism; after Ctrl-C, those that were done.

    Raises:
        TypeError: if `config` is another experiment's.
        KeyboardInterrupt: on Ctrl-C before the first mechanism was done.

    Example:
        >>> result = run(Config(trials=500, seed=1))
        >>> result.above, len(result.rows)
        (0, 8)
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    rows, partial = run_jobs(
        "mechanisms",
        tuple(CASES),
        lambda name: _estimate_mechanism(name, config, threads),
        progress,
    )
    return Result(config, rows, partial, time.perf_counter() - begun)


def _estimate_mechanism(name: str, config: Config, threads: int | None) -> Row:
    case = CASES[name]
    outputs = [
        np.asarray(case.mechanism(x, config.trials, cell_seed(config.seed, f"{name}/{side}")))
        for side, x in (("x", case.x), ("x_prime", case.x_prime))
    ]
    with warnings.catch_warnings():
        # A few answers are a few distinct rows: balls hold whole ties there, as they should.
        warnings.filterwarnings("ignore", message="k = .* exceeds the .* distinct rows")
        estimate = renyi(
            *outputs, certified=True, rows="independent", confidence=config.each,
            rng=cell_seed(config.seed, f"{name}/estimate"), threads=threads, progress=False,
        )  # fmt: skip
    truth = np.stack([case.forward(estimate.alphas), case.backward(estimate.alphas)])
    above = estimate.alphas > 1.0
    # The largest of both directions is what (epsilon, delta) has to hold for.
    converted = canonne_kamath_steinke(
        estimate.alphas[above], truth[:, above].max(axis=0), config.delta
    )
    figures = estimate.epsilon(config.delta)
    return Row(name, truth, estimate, figures, case.exact(config.delta), converted.epsilon)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The rows, mechanism by mechanism.

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
    def above(self) -> int:
        """Certified figures above the truth: 0 with probability `confidence` or more."""
        return sum(row.above for row in self.rows)

    def table(self) -> str:
        """Return the figures as text."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw both directions of every mechanism: truth, estimates with errors, certified bounds.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
