"""Figure 1 of Habernal (2022): the empirical privacy loss of seven mechanisms.

The two inputs are a vector of n zeros and a vector of n ones. Each mechanism is run 10 million
times on each input, for 7 values of epsilon and 6 values of n. The attack is a majority vote over
the entries of an output.

The paper shows six mechanisms, one per panel. dpcore adds a seventh mechanism, `HalfNoise`, whose
noise is too small by a factor of 2. The paper has a control with the name "wrong sensitivity", but
this control only halves the noisy *output*. Halving an output is post-processing and cannot
increase the loss.

The panel "ADePT" shows the simplified system of the paper's code. The noise of this system is
scaled for inputs that differ in a single entry. Therefore, the loss of this system on the two
vectors is n epsilon. The published ADePT system has a loss of at most sqrt(n) epsilon.

The empirical loss of a mechanism is computed from four counts: votes for 0 and for 1, on each of
the two inputs. If one of these counts is 0, the empirical loss is infinite. The true loss of ADePT
is finite in all these cases (13.7 to 284). The certified lower bound is always finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

from ..attacks import MajorityVote
from ..errors import choice, integer
from ..exact import VoteLaw, loss, vote_log_probabilities
from ..mechanisms import Identity, Native, RandomBits
from ..pairs import zeros_ones
from ..published import ADePTReference, DPText, HalfNoise, HalvedOutput, LaplaceMechanism
from ..report.figures import INK, PALE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..results.audits import Audit
from . import drawing
from .base import SeededSettings, setting
from .running import Tabled, audit_cell, run_jobs, time_run

NAME = "habernal2022-figure1"

MECHANISMS: dict[str, tuple[str, Callable[[float, int], Native]]] = {
    "no privacy": ("no privacy (copies x)", lambda epsilon, dim: Identity()),
    "random": ("random bits (ignores x)", lambda epsilon, dim: RandomBits()),
    "Laplace": ("Laplace mechanism", lambda epsilon, dim: LaplaceMechanism(epsilon, float(dim))),
    "ADePT": ("ADePT (reference code)", lambda epsilon, dim: ADePTReference(epsilon)),
    "DPText": ("DPText (NaN to 0)", lambda epsilon, dim: DPText(epsilon, float(dim))),
    "halved output": ("halved output (sound)", lambda epsilon, dim: HalvedOutput(epsilon, dim)),
    "half noise": ("half noise (loses 2 epsilon)", lambda epsilon, dim: HalfNoise(epsilon, dim)),
}
"""Title of the panel of each mechanism, and a function. The function takes epsilon and the number
of entries, and returns the mechanism."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment: the mechanisms, claimed epsilons, and lengths of the inputs.

    The defaults are the values of the paper, plus one further mechanism.

    Args:
        trials: number of outputs that are drawn on each of the two inputs, for every mechanism,
            epsilon and number of entries.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        epsilons: claimed epsilons, each above 0.
        dims: numbers of entries that the two inputs can have, each at least 1.
        mechanisms: names of the mechanisms, which are keys of `MECHANISMS`.
        confidence: probability with which each certified bound holds. The probability that all
            bounds are true at once may be smaller.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or if `epsilons`, `dims` or `mechanisms` is empty.

    Source:
        Habernal (2022), section 4 and figure 1.

    Example:
        >>> config = Config()
        >>> len(config.epsilons) * len(config.dims) * len(config.mechanisms)
        294
    """

    trials: int = 10**7
    epsilons: tuple[float, ...] = setting((0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))
    dims: tuple[int, ...] = setting((1, 2, 8, 32, 64, 128), integer, 1)
    mechanisms: tuple[str, ...] = setting(tuple(MECHANISMS), choice, tuple(MECHANISMS))
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Audit of one mechanism at one claimed epsilon, on inputs with `dim` entries.

    Args:
        mechanism: name of the mechanism, a key of `MECHANISMS` such as "Laplace".
        epsilon: claimed epsilon.
        dim: number of entries of each input.
        audit: result of the audit, with the counts, the empirical loss and the certified bound.
    """

    mechanism: str
    epsilon: float
    dim: int
    audit: Audit

    @property
    def exact(self) -> float:
        """Exact privacy loss that a majority vote over the entries of an output can measure.

        The value is computed from a formula, not from the draws of the audit.
        """
        return loss(self._vote_law())

    @property
    def count_p_values(self) -> tuple[float, float]:
        """Two-sided p-values that compare the two counts of the audit with exact probabilities.

        The audit counts the outputs for which a majority vote over the entries guesses one fixed
        input. The first p-value is for the count on the first input. The second p-value is for the
        count on the second input. Each count has a binomial distribution.
        """
        law, counts = self._vote_law(), self.audit.counts
        logs = (law.log_p, law.log_p_prime)
        if self.audit.event.vote == "x":
            logs = (law.log_q, law.log_q_prime)
        p, p_prime = map(math.exp, logs)
        return _p_value(counts.k, counts.n, p), _p_value(counts.k_prime, counts.n_prime, p_prime)

    def _vote_law(self) -> VoteLaw:
        law = vote_log_probabilities(self.audit.mechanism, self.audit.pair)
        assert law is not None  # every mechanism of the figure is native, all entries alike
        return law


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every mechanism at every claimed epsilon and number of entries of the inputs.

    Args:
        config: options of the experiment, such as the mechanisms and the epsilons.
        threads: number of threads. The default is one thread per core.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results of the audits. There is one `Cell` for each combination of a mechanism, an
        epsilon and a number of entries.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before dpcore has counted an output.

    Source:
        Habernal (2022), section 4, equation 12 and figure 1.

    Example:
        >>> grid = Config(trials=10**5, epsilons=(1.0,), dims=(2,), mechanisms=("Laplace",))
        >>> cell = run(grid).cells[0]
        >>> round(cell.exact, 4), abs(cell.audit.epsilon_hat - cell.exact) < 0.05
        (0.8997, True)
    """
    grid = list(product(config.mechanisms, config.epsilons, config.dims))
    work = partial(_audit_by_majority_vote, config, threads)
    cells, ended = run_jobs("figure 1", grid, work, progress, size=lambda place: place[2])
    return Result(config, cells, partial=ended)


def _audit_by_majority_vote(
    config: Config, threads: int | None, name: str, epsilon: float, dim: int
) -> Cell:
    key, mechanism = f"{name}/{epsilon!r}/{dim}", MECHANISMS[name][1](epsilon, dim)
    options: Any = {"attack": MajorityVote(), "claim": epsilon, "threads": threads}
    cell = audit_cell(config, key, mechanism, zeros_ones(dim), **options)
    return Cell(name, epsilon, dim, cell)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits of all mechanisms.

    Args:
        config: options with which the experiment was run.
        cells: one result (`Cell`) for each mechanism, epsilon and number of entries, sorted in this
            order.
    """

    cells: tuple[Cell, ...]

    def of(self, mechanism: str) -> tuple[Cell, ...]:
        """Return the audits of one mechanism, at all epsilons and numbers of entries."""
        return tuple(cell for cell in self.cells if cell.mechanism == mechanism)

    @property
    def smallest_p_value(self) -> float:
        """Smallest p-value of all tests that compare a count with its exact distribution.

        Each audit has two counts of majority votes. Therefore there are 2 len(cells) two-sided
        binomial p-values. If the code is correct, the smallest p-value is about 1 / (2 len(cells)).
        """
        return min(p for cell in self.cells for p in cell.count_p_values)

    def table(self) -> str:
        """Return one text table per mechanism. Each entry is "empirical loss / exact loss"."""
        config = self.config
        return self.join_parts(
            f"Habernal (2022), figure 1: {config.trials:,} trials per side, seed {config.seed}\n"
            "empirical loss / loss in closed form; rows epsilon, columns number of entries",
            *(_format_mechanism_table(self, name) for name in config.mechanisms if self.of(name)),
            f"{2 * len(self.cells)} counts against the exact law: smallest two-sided p-value "
            f"{self.smallest_p_value:.2g} (about {0.5 / len(self.cells):.2g} is expected)",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the audits as a dict of plain data (numbers, strings, lists and dicts)."""
        cells = [_audit_cell_to_dict(cell) for cell in self.cells]
        return self.make_record(smallest_p_value=self.smallest_p_value, cells=cells)

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the empirical loss against the claimed epsilon, with one panel per mechanism.

        Returns:
            A matplotlib figure.
        """
        names = self.config.mechanisms
        columns = min(_MAX_PANEL_COLUMNS, len(names) + 1)
        rows = -(-(len(names) + 1) // columns)
        picture = drawing.empty_figure(0.5 + 2.2 * rows, ax)
        panels = picture.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        colours = _choose_colours(self.config.dims)
        low, high = _INFINITE_LOSS_BAND
        for axes, name in zip(panels, names, strict=False):
            _set_epsilon_and_loss_axes(axes, self)
            axes.set_title(MECHANISMS[name][0], fontsize=drawing.TEXT, loc="left")
            for place, dim in enumerate(self.config.dims):
                cells = [cell for cell in self.of(name) if cell.dim == dim]
                share = (place + 1) / (len(colours) + 1)
                _draw_loss_curve(axes, cells, colours[dim], low ** (1 - share) * high**share)
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        for place in range(len(names) - columns, len(names)):
            panels[max(0, place)].tick_params(labelbottom=True)
        _make_legends(panels[len(names)], colours, self.config.confidence)
        picture.supxlabel("claimed epsilon", fontsize=drawing.TEXT)
        picture.supylabel("privacy loss (nats)", fontsize=drawing.TEXT)
        return restyle_figure(picture)


def _p_value(k: int, n: int, p: float) -> float:
    """Compute min(1, 2 min(P(K <= k), P(K >= k))) for K ~ Binomial(n, p)."""
    from scipy.special import betainc

    p = min(p, 1.0)
    above = 1.0 if k == 0 else float(betainc(k, n - k + 1, p))
    below = 1.0 if k == n else float(betainc(n - k, k + 1, 1.0 - p))
    return min(1.0, 2.0 * min(above, below))


def _format_mechanism_table(result: Result, name: str) -> str:
    cells = {(cell.epsilon, cell.dim): cell for cell in result.of(name)}
    refuted = sum(cell.audit.refuted is True for cell in cells.values())
    rows = [["", *(f"n = {dim}" for dim in result.config.dims)]]
    for epsilon in result.config.epsilons:
        row = (cells.get((epsilon, dim)) for dim in result.config.dims)
        rows.append([f"{epsilon:g}", *(_format_empirical_and_exact(cell) for cell in row)])
    title = f"{name}: epsilon refuted in {refuted} of {len(cells)} cells"
    return f"{title} ({100 * result.config.confidence:g} % each)\n{align_rows(rows, left=())}"


def _format_empirical_and_exact(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return f"{_format_nats(cell.audit.epsilon_hat)} / {_format_nats(cell.exact)}"


def _format_nats(value: float) -> str:
    return f"{value:.4f}" if value < 10.0 else f"{value:.4g}"


def _audit_cell_to_dict(cell: Cell) -> dict[str, Any]:
    audit = cell.audit
    return (
        {"mechanism": cell.mechanism, "epsilon": cell.epsilon, "dim": cell.dim}
        | {"counts": asdict(audit.counts), "vote": audit.event.vote, "direction": audit.direction}
        | {"epsilon_hat": audit.epsilon_hat, "epsilon_lower": audit.epsilon_lower}
        | {"exact": cell.exact, "verdict": audit.verdict, "native": audit.mechanism}
        | {"seed": str(audit.seed), "block": audit.block, "partial": audit.partial}
    )


_LINEAR_LOSS_RANGE = 0.01
"""Loss below which the vertical axis is linear, so that the axis can show 0."""

_INFINITE_LOSS_BAND = (1e3, 2e5)
"""Lower and upper end of the part of the vertical axis that shows infinite losses. Each number of
entries has a separate height in this part."""

_MAX_PANEL_COLUMNS = 4


def _choose_colours(dims: tuple[int, ...]) -> dict[int, Any]:
    from matplotlib import colormaps

    # The bright end of viridis is too pale for thin lines on a white background.
    steps = max(1, len(dims) - 1)
    return {dim: colormaps["viridis"](0.88 * i / steps) for i, dim in enumerate(dims)}


def _set_epsilon_and_loss_axes(axes: drawing.Axes, result: Result) -> None:
    epsilons = result.config.epsilons
    low, high = 0.65 * min(epsilons), 1.5 * max(epsilons)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=_LINEAR_LOSS_RANGE, linscale=0.5)
    axes.set(xlim=(low, high), ylim=(-0.25 * _LINEAR_LOSS_RANGE, _INFINITE_LOSS_BAND[1]))
    axes.axhspan(*_INFINITE_LOSS_BAND, color=PALE, linewidth=0, zorder=0)
    axes.plot([low, high], [low, high], color=INK, linestyle="--", linewidth=0.8, zorder=1)
    drawing.set_ticks(axes.xaxis, [e for e in (0.1, 1.0, 10.0) if low < e < high])
    levels = [0.0, 0.01, 0.1, 1.0, 10.0, 100.0]
    middle = math.sqrt(_INFINITE_LOSS_BAND[0] * _INFINITE_LOSS_BAND[1])
    axes.set_yticks([*levels, middle], [*(f"{v:g}" for v in levels), "infinite"])
    axes.set_yticks([], minor=True)
    drawing.style_axes(axes)


def _draw_loss_curve(axes: drawing.Axes, cells: list[Cell], colour: Any, infinite: float) -> None:
    """Draw the curve of inputs of one length. `infinite` is the height of infinite losses."""
    if not cells:
        return
    epsilons = [cell.epsilon for cell in cells]
    line = [min(cell.exact, infinite) for cell in cells]
    axes.plot(epsilons, line, color=colour, linewidth=0.9, zorder=2)
    hats = [(cell.epsilon, cell.audit.epsilon_hat) for cell in cells]
    finite = [(e, hat) for e, hat in hats if math.isfinite(hat)]
    beyond = [(e, infinite) for e, hat in hats if not math.isfinite(hat)]
    style: dict[str, Any] = {"color": colour, "linestyle": "none", "markeredgewidth": 0}
    for points, marker, size in ((finite, "o", 3.2), (beyond, "^", 3.6)):
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=size, **style)
    lower = [cell.audit.epsilon_lower for cell in cells]
    axes.plot(epsilons, lower, "_", color=colour, markersize=5, markeredgewidth=0.9, zorder=3)


def _make_legends(axes: drawing.Axes, colours: dict[int, Any], confidence: float) -> None:
    dims = [drawing.make_line(f"n = {dim}", colour, linewidth=2) for dim, colour in colours.items()]
    marks = [
        drawing.make_mark("empirical loss", INK, "o", 3.2),
        drawing.make_mark("empirical loss, infinite", INK, "^", 3.6),
        drawing.make_mark(f"certified at {100 * confidence:g} %", INK, "_", 6),
        drawing.make_line("closed form", linewidth=0.9),
        drawing.make_line("loss = claim", linestyle="--", linewidth=0.8),
    ]
    kinds: dict[str, Any] = {"frameon": False, "fontsize": drawing.SMALL, "borderaxespad": 0.0}
    first = axes.legend(handles=dims, loc="upper left", ncols=2, columnspacing=1.0, **kinds)
    axes.add_artist(first)
    axes.legend(handles=marks, loc="lower left", **kinds)
