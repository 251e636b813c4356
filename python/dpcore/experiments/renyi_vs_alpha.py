"""Renyi divergence of two sets of texts at several orders, estimated by three methods.

Figure 3 of Gusain and Leith shows the Renyi divergence of two sets of medical texts against its
order alpha. The authors draw a straight line above this curve and compute an epsilon from the line.
This experiment estimates the curve by three methods:

- the formula of Gusain and Leith as printed ("paper-literal");
- the same formula with corrected misprints ("paper");
- an estimate from the score of a cross-fitted classifier, with a certified lower bound ("score").

The experiment also applies all three methods to permuted labels, so that each text belongs to a
random set. The true divergence is then 0 at every order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..divergence import Estimate, Line, line
from ..divergence.reliability import ESTIMATE
from ..records import Flags, Floats
from ..report.figures import BLUE, GREEN, GREY, INK, PALE, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..text import TfidfSVD
from .corpora import TextOptions, TwoSets, read_sensitive_and_other_texts
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, empty_figure, make_line, style_axes
from .running import Tabled, cell_seed, estimate_renyi, run_jobs, time_run

NAME = "renyi-vs-alpha"

ORDERS: Final = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""Orders alpha of the divergences. Order 1 is missing, because the formulas of the source divide by
alpha - 1."""

METHODS: Final = {"paper-literal": 5, "paper": 5, "score": 20}
"""Methods of `divergence.renyi`, with the number of nearest neighbours that each method uses."""

DIM: Final = 50
"""Dimension of the vector of a text."""

DELTA: Final = 0.05
"""Delta at which every epsilon is computed."""

_DRAW_PERMUTATIONS: Final = {False: 4, True: 2}
"""Number of label permutations in each draw, without and with `quick`."""

Curves = tuple[tuple[float, ...], ...]
"""Divergences in nats at each order: from the sensitive to the other set, and from the other to the
sensitive set."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment on the Renyi divergences between two sets of texts.

    Args:
        trials: largest number of texts in the set of sensitive texts, at least 100. The set of
            other texts has the same size.
        seed: int in [0, 2**63). The draws of other texts, the permutations of labels and the folds
            of cross-fitting get separate seeds derived from this seed.
        seeds: number of random draws of the set of other texts. The default is 5. If `full` is
            True, the default is 20. If `quick` is True, the default is 1.
        data: folder with the texts. The folder must contain the file medical/abstracts.csv. By
            default, dpcore generates texts.
        full: True for 20 draws of the set of other texts.
        quick: True for a short run with one draw of the set of other texts, and few permutations of
            labels.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (5, 20, 1)
    """


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Renyi divergences between sensitive and other texts, estimated by one method.

    The experiment draws the set of other texts at random several times. A `Cell` is for one of
    these draws. In an array of shape `(2, orders)`, the first row is for the divergence from the
    sensitive to the other texts. The second row is for the divergence from the other to the
    sensitive texts. Each column is for one order. All divergences are in nats. With permuted
    labels, each text is put into one of the two sets at random.

    Args:
        method: name of the method of estimation, a key of `METHODS` such as "score".
        number: index of the draw of other texts, from 0.
        value: estimated divergences, shape `(2, orders)`.
        belief: text on the reliability of each estimate, shape `(2, orders)`. "estimate only" means
            that no test contradicts the estimate.
        ceiling: largest divergence that the method can return for these numbers of texts, shape
            `(2, orders)`. None if the method has no such limit.
        certified: lower bounds on the divergences, shape `(2, orders)`, each row with 95 %
            confidence. None if the method is not "score".
        epsilon_lower: certified lower bound on epsilon at `DELTA`. None if the method is not
            "score".
        null: estimated divergences for permuted labels, shape `(permutations, 2, orders)`.
        null_certified: lower bounds on the divergences for permuted labels, shape
            `(permutations, 2, orders)`. None if the method is not "score".
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


@time_run("sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Estimate the Renyi divergences between two sets of texts, by every method.

    Args:
        config: options of the experiment, such as the number of draws.
        threads: number of threads. The default is one thread per core. The number of threads never
            changes a result.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results. They contain one `Cell` for each method and each draw of the second set of
        texts.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed. The message of the error states how
            to install the package.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        ValueError: if the folder `config.data` contains too few texts.
        KeyboardInterrupt: if the user presses Ctrl-C before the first method is completed.

    Source:
        Gusain and Leith (2025), supplement, figure 3.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     result = run(Config(quick=True, trials=200), progress=False)
        ...     assert result.mean("paper-literal")[0, 0] > result.mean("score")[0, 0]
    """
    sets = read_sensitive_and_other_texts(config)
    # Consecutive methods of one draw share its vectors.
    features = lru_cache(maxsize=1)(lambda number: _sample_and_encode_sets(config, sets, number))
    jobs = [(number, method) for number in range(config.seeds) for method in METHODS]
    work = partial(_divergence_and_null_curves, config, features, threads)
    cells, ended = run_jobs("renyi against alpha", jobs, work, progress)
    size = len(sets.sensitive)
    sizes = (size, len(sets.rest) - size, sets.dropped)
    return Result(config, sets.origin, sizes, cells, partial=ended)


def _sample_and_encode_sets(config: Config, sets: TwoSets, number: int) -> Floats:
    """Return the vectors of the sensitive texts, followed by the vectors of the drawn texts.

    The encoder is fitted on texts that belong to neither set.
    """
    size = len(sets.sensitive)
    rng = np.random.default_rng(cell_seed(config.seed, f"draw {number}"))
    order = rng.permutation(len(sets.rest))
    drawn, public = ([sets.rest[row] for row in rows] for rows in (order[:size], order[size:]))
    return TfidfSVD(DIM).fit(public).encode([*sets.sensitive, *drawn])


def _divergence_and_null_curves(
    config: Config, features: Callable[[int], Floats], threads: int | None, number: int, method: str
) -> Cell:
    """Estimate the divergences by one method, for one draw of texts and for permuted labels."""
    rows = features(number)
    size = len(rows) // 2
    seed = cell_seed(config.seed, f"folds {number}")
    certifies = method == "score"

    def estimate(order: npt.NDArray[np.intp], **options: Any) -> Estimate:
        if certifies:
            options |= {"certified": True, "rows": "independent"}
        # The package warns that the printed formula is not a divergence, which is intended here.
        options |= {"method": method, "k": METHODS[method], "rng": seed, "threads": threads}
        return estimate_renyi(rows[order[:size]], rows[order[size:]], alphas=ORDERS, **options)

    curve = estimate(np.arange(2 * size))
    rng = np.random.default_rng(cell_seed(config.seed, f"permutations {number}"))
    orders = [rng.permutation(2 * size) for _ in range(_DRAW_PERMUTATIONS[config.quick])]
    null = [estimate(order, checks=False, error=None) for order in orders]
    return Cell(
        method,
        number,
        _to_nested_tuples(curve.value),
        tuple(map(tuple, curve.belief.tolist())),
        None if np.isnan(curve.ceiling).all() else _to_nested_tuples(curve.ceiling),
        _to_nested_tuples(curve.certified) if certifies else None,
        curve.epsilon(DELTA).epsilon_lower if certifies else None,
        tuple(_to_nested_tuples(control.value) for control in null),
        tuple(_to_nested_tuples(control.certified) for control in null) if certifies else None,
    )


def _to_nested_tuples(values: Any) -> Curves:
    return tuple(map(tuple, values.tolist()))


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Renyi divergences between sensitive and other texts, for all draws and methods.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        sizes: three numbers of texts. The first is the number of texts in each set. The second is
            the number of texts on which the encoder was fitted. The third is the number of texts
            that were left out because they occur in both sets.
        cells: one result (`Cell`) for each draw of the set of other texts and each method.
    """

    corpus: str
    sizes: tuple[int, int, int]
    cells: tuple[Cell, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods of estimation for which this result contains divergences."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def of(self, method: str) -> tuple[Cell, ...]:
        """Return the divergences that one method estimated, one result (`Cell`) for each draw.

        A draw is one random choice of the second set, whose texts are not sensitive. The tuple is
        empty if the user pressed Ctrl-C before this method was used.
        """
        return tuple(cell for cell in self.cells if cell.method == method)

    def mean(self, method: str, name: str = "value") -> Floats:
        """Return the divergences by one method, averaged over the draws, shape `(2, orders)`.

        A draw is one random choice of the second set, whose texts are not sensitive.

        Args:
            method: name of the method of estimation, a key of `METHODS` such as "score".
            name: name of a field of `Cell` that contains divergences at each order, such as "value"
                or "null". The divergences for permuted labels are also averaged over the
                permutations.
        """
        curves = np.array([getattr(cell, name) for cell in self.of(method)], np.float64)
        return np.asarray(curves.mean(axis=tuple(range(curves.ndim - 2))))

    def sd(self, method: str) -> Floats | None:
        """Return the standard deviation of the divergences over the draws.

        A draw is one random choice of the second set, whose texts are not sensitive. The array has
        shape `(2, orders)`. The result is None if there is only one draw. `method` is the method of
        estimation.
        """
        curves = np.array([cell.value for cell in self.of(method)])
        return curves.std(axis=0, ddof=1) if len(curves) > 1 else None

    def resolved(self, method: str) -> Flags:
        """Return a boolean array that is True for each reliable estimate of a method.

        The array has shape `(2, orders)`. An entry is True if the field `belief` is "estimate only"
        for every draw of the set of other texts. Any other value of `belief` states why the
        estimate is not reliable.
        """
        beliefs = np.array([cell.belief for cell in self.of(method)])
        return np.asarray((beliefs == ESTIMATE).all(axis=0))

    def line(self, method: str, name: str = "value") -> Line:
        """Fit a straight line above the divergences, as in Gusain and Leith (2025), and return it.

        The divergences are averaged over the draws. At each order, the larger mean divergence is
        used: from the sensitive to the other texts, or from the other to the sensitive texts.

        The line is fitted at all orders, even at orders with unreliable estimates. The epsilon that
        follows from the line is not a bound. `method` is a key of `METHODS`. `name` is a field of
        `Cell`, such as "value" or "null".
        """
        return line(ORDERS, self.mean(method, name).max(axis=0), DELTA)

    def table(self) -> str:
        """Return the divergences by every method as a text table, followed by conclusions."""
        return self.join_parts(
            _write_head(self),
            align_rows(_table_rows(self), left=(0, 1)),
            "S: sensitive set, R: as many of the rest; permuted: mean of both directions where "
            "labels were permuted, the truth is 0\n"
            "? = not resolved or saturated in some draw; certified: from below on the first draw, "
            "95 % in each direction; all other figures are estimates",
            "\n".join(divergence_conclusions(self)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        facts: dict[str, Any] = {"orders": list(ORDERS), "findings": divergence_conclusions(self)}
        facts["lines"] = {
            name: {method: asdict(self.line(method, name)) for method in self.methods}
            for name in ("value", "null")
        }
        return self.make_record(
            corpus=self.corpus, sizes=list(self.sizes), **facts, cells=self.cells
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the Renyi divergences against the order, with one panel for each method."""
        picture = empty_figure(3.7, ax)
        panels = np.atleast_1d(picture.subplots(1, len(METHODS), sharex=True))
        for panel, method in zip(panels, METHODS, strict=True):
            panel.set_title(f"{_METHOD_TITLES[method]} (k = {METHODS[method]})", fontsize=TEXT)
            if method in self.methods:
                _draw_divergence_curves(panel, self, method)
            _set_ticks_and_axis_labels(panel, method)
        made = "generated texts" if self.config.data is None else "medical abstracts"
        title = f"Renyi divergence of two sets of {self.sizes[0]:,} {made}\nthe shape is the "
        title += "formula's: it remains on permuted labels (grey), where the truth is 0"
        picture.suptitle(title, fontsize=TEXT)
        add_legend(picture, _make_legend(), 4)
        return restyle_figure(picture)


DIRECTIONS: Final = ("D(S||R)", "D(R||S)")
"""Directions of the divergence: from the sensitive set S to the other set R, and from R to S."""

_METHOD_TITLES: Final = dict(
    zip(METHODS, ("formula as printed", "formula corrected", "score, and certified"), strict=True)
)


def fit_hyperbola(values: Floats) -> tuple[float, float, float]:
    """Fit a + b / (alpha - 1) to the given divergences by least squares.

    `values` contains one divergence for each order alpha in `ORDERS`. The formula that Gusain and
    Leith printed gives values of this form for any two sets. Let p and q be the densities of the
    two sets. Then ln(p^alpha / q^(alpha - 1)) / (alpha - 1) equals ln(p/q) + ln(p) / (alpha - 1).
    Therefore, a estimates the KL divergence, and b is the mean log-density of the first set.

    Returns:
        Three numbers: a, b, and the largest absolute difference between the fitted values and
        `values`.

    Example:
        >>> a, b, distance = fit_hyperbola(2.0 + 3.0 / (np.array(ORDERS) - 1.0))
        >>> round(a, 6), round(b, 6), distance < 1e-9
        (2.0, 3.0, True)
    """
    columns = np.stack([np.ones(len(ORDERS)), 1.0 / (np.array(ORDERS) - 1.0)], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns, values, rcond=None)
    return float(a), float(b), float(np.abs(columns @ [a, b] - values).max())


def _write_head(result: Result) -> str:
    config = result.config
    size, public, dropped = result.sizes
    draws = f"mean (sd) of {config.seeds} draws" if config.seeds != 1 else "one draw"
    return (
        f"Renyi divergence of two sets of texts against its order: {result.corpus}"
        f"{config.origin_note}\n{size:,} texts per side, {dropped:,} of both sets left out; TF-IDF "
        f"and SVD {DIM} fitted on {public:,} other texts\n"
        f"{draws} of the other set, seed {config.seed}; estimates in nats; delta {DELTA:g}"
    )


def _table_rows(result: Result) -> list[list[str]]:
    rows = [["method", "curve", *(f"{order:g}" for order in ORDERS)]]
    for method in result.methods:
        name = f"{method}, k = {METHODS[method]}"
        mean, sd, resolved = result.mean(method), result.sd(method), result.resolved(method)
        for side, direction in enumerate(DIRECTIONS):
            marks = ["" if believed else "?" for believed in resolved[side]]
            rows.append([name, direction, *map(_write_number, mean[side], marks)])
            if sd is not None:
                rows.append([name, "  sd", *map(_write_number, sd[side])])
        null = result.mean(method, "null").mean(axis=0)
        rows.append([name, "permuted", *map(_write_number, null)])
        if method == "score":
            first = result.of(method)[0]
            for direction, bounds in zip(DIRECTIONS, first.certified or (), strict=True):
                rows.append([name, f"certified {direction}", *map(_write_number, bounds)])
            rows.append([name, "ceiling", *map(_write_number, (first.ceiling or ((),))[0])])
    return rows


def _write_number(value: float, mark: str = "") -> str:
    return f"{value:.{1 if abs(value) >= 10 else 2}f}".replace("-0.00", "0.00") + mark


def divergence_conclusions(result: Result) -> list[str]:
    """Return conclusions on the divergences that each method estimates, as sentences."""
    sentences = []
    for method in result.methods:
        mean, null = result.mean(method)[0], result.mean(method, "null").mean(axis=0)
        if method == "paper-literal":
            (a, b, distance), (null_a, null_b, _) = fit_hyperbola(mean), fit_hyperbola(null)
            sentences.append(
                f"As printed, every curve is a + b/(alpha - 1) for any two sets: here a = {a:.1f}, "
                f"b = {b:.0f} (off by {distance:.0e}), on permuted labels a = {null_a:.1f}, "
                f"b = {null_b:.0f}.\n  The shape is the formula's: at order 2 "
                f"{100 * null[3] / mean[3]:.0f} % of the value remain where the truth is 0."
            )
        elif method == "paper":
            sentences.append(
                f"Corrected, it goes from {mean[0]:.1f} to {mean[-1]:.1f} nats as the order grows, "
                f"on permuted labels from {null[0]:.1f} to {null[-1]:.1f}."
            )
        else:
            first = result.of(method)[0]
            bounds = first.certified or (), first.null_certified or ()
            certified, control = (np.array(curve).max() for curve in bounds)
            sentences.append(
                f"The score gives {mean[0]:.1f} to {mean.max():.1f} nats, on permuted labels at "
                f"most {max(0.0, null.max()):.2f}; up to {certified:.1f} nats are certified, on "
                f"permuted labels {control:.1f}.\n  A held-out event certifies epsilon "
                f"{first.epsilon_lower:.2f}."
            )
    sentences.append(
        "The source's line above each curve, and its epsilon (an estimate, not a bound):"
    )
    for method in result.methods:
        lines = (_line_equation_text(result.line(method, name), ", ") for name in ("value", "null"))
        sentences.append(f"  {method}: {'; on permuted labels '.join(lines)}")
    return sentences


def _line_equation_text(line: Line, separator: str) -> str:
    xi, rho, epsilon = map(_write_number, (line.xi, line.rho, line.epsilon))
    return f"{xi} + {rho} alpha{separator}epsilon {epsilon}"


def _draw_divergence_curves(panel: Axes, result: Result, method: str) -> None:
    mean, sd, resolved = result.mean(method), result.sd(method), result.resolved(method)
    for side, (colour, mark) in enumerate(zip((BLUE, RED), "os", strict=True)):
        errors = None if sd is None else sd[side]
        panel.errorbar(ORDERS, mean[side], errors, color=colour, linewidth=1.0, elinewidth=0.6)
        for believed, face in ((True, colour), (False, WHITE)):
            kept = resolved[side] == believed
            panel.plot(
                np.array(ORDERS)[kept], mean[side][kept], color=colour, marker=mark, markersize=3.5,
                markerfacecolor=face, markeredgewidth=0.8, linestyle="none",
            )  # fmt: skip
    first = result.of(method)[0]
    for colour, bounds in zip((BLUE, RED), first.certified or (), strict=False):
        panel.plot(ORDERS, bounds, color=colour, linewidth=2.2, alpha=0.8)
    if first.certified is not None and first.ceiling is not None:
        excluded = np.min(first.certified, axis=0)
        panel.fill_between(ORDERS, 0.0, excluded, color=PALE, linewidth=0, zorder=0)
        panel.plot(ORDERS, first.ceiling[0], color=INK, linewidth=0.8, linestyle="-.")
    null = np.array([curves for cell in result.of(method) for curves in cell.null])
    ends = null.min(axis=(0, 1)), null.max(axis=(0, 1))
    panel.fill_between(ORDERS, *ends, color=GREY, alpha=0.25, linewidth=0)
    panel.plot(ORDERS, null.mean(axis=(0, 1)), color=GREY, linewidth=1.2, linestyle="--")
    corner: Any = {"transform": panel.transAxes, "ha": "right", "va": "top", "fontsize": SMALL}
    text = f"order 2: {_write_number(mean[0, 3])}, permuted {_write_number(null[..., 3].mean())}"
    panel.text(0.97, 0.84, text, **corner)
    high = np.max([mean.max(), null.max(), *(first.ceiling or ((),))[0]])
    low = min(0.0, 1.2 * mean.min(), 1.2 * null.min())
    panel.set_ylim(low, high * (50.0 if method == "paper-literal" else 1.6))
    above = result.line(method)
    orders = np.array([ORDERS[0], ORDERS[-1]])
    panel.plot(orders, above.xi + above.rho * orders, color=GREEN, linewidth=1.0, linestyle=":")
    text = f"line {_line_equation_text(above, chr(10))}: an estimate"
    panel.text(0.97, 0.97, text, color=GREEN, **corner)


def _set_ticks_and_axis_labels(panel: Axes, method: str) -> None:
    panel.set_xticks([1.1, 4, 8, 12, 16], ["1.1", "4", "8", "12", "16"])
    if method == "paper-literal":
        panel.set_yscale("symlog", linthresh=1.0)
    style_axes(panel, "order alpha", "nats" if method == "paper-literal" else "")


def _make_legend() -> list[Any]:
    hollow: dict[str, Any] = {"markersize": 4, "markerfacecolor": WHITE}
    return [
        make_line("from sensitive to rest", BLUE, marker="o", **hollow),
        make_line("from rest to sensitive", RED, marker="s", **hollow),
        make_line("hollow: not resolved, saturated", marker="o", linestyle="none", **hollow),
        make_line("permuted labels, and range", GREY, linestyle="--"),
        make_line("certified, 95 % (excluded below)", linewidth=2.2, alpha=0.8),
        make_line("ceiling of the score", linestyle="-.", linewidth=0.8),
        make_line("the source's line", GREEN, linestyle=":"),
    ]
