"""Accuracy of estimated divergences, case by case and method by method.

Both directions of every pair of laws, with the rows on which methods are known to fail. On those
the default grid is estimated with certificates too: a value that its own certified lower bound
contradicts must never come out as "estimate only".
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ...divergence import Estimate, renyi
from ...divergence.reliability import DIRECTIONS
from ...errors import choice, integer
from ...records import Record, frozen_array
from ...report.encoding import encode_value
from ...report.figures import BLUE, GREEN, GREY, INK, RED, WHITE, apply_style
from ...report.text import align_rows
from .. import drawing
from ..presentation import Column, align_columns, encode_attributes
from ..running import Tabled, cell_seed, run_jobs, time_run
from ..settings import SEED, Settings, setting
from .cases import ALPHAS, CASES, Published, Reals, Rows

NAME = "divergence-accuracy"

NEIGHBOURS: Final = {"ball": 20, "score": 20, "poczos": 10, "paper": 5, "paper-literal": 5}
"""The methods, and k of each, as in the published figures."""

_MIN_SAMPLE_ROWS: Final = 100
_MAX_SIZE_RATIO: Final = 10
_MISLEADING_STANDARD_ERRORS: Final = 3.0
"""Standard errors below its certified bound at which a value misleads."""

_MISLEADING_NULL_DIVERGENCE: Final = 0.05
"""Nats from 0 at which a value misleads where both laws are the same."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
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
    repetitions: int = setting(200, integer, 2)
    rows: int | None = setting(None, integer, _MIN_SAMPLE_ROWS)
    cases: tuple[str, ...] = setting(tuple(CASES), choice, tuple(CASES), listed=True)
    methods: tuple[str, ...] = setting(tuple(NEIGHBOURS), choice, tuple(NEIGHBOURS), listed=True)
    certified: int = setting(2, integer, 0)
    seed: int = SEED

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


@time_run()
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

    def work(name: str) -> tuple[list[Cell], list[Trusted]]:
        certified = _estimate_certified(name, config, threads)
        return _estimate_case(name, config, threads), list(certified)

    done, partial = run_jobs("divergences", config.cases, work, progress)
    cells = tuple(cell for found, _ in done for cell in found)
    trusted = tuple(one for _, found in done for one in found)
    return Result(config, cells, trusted, partial=partial)


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
                refused[method], values[method] = str(error), []
    shape = (-1, 2, len(ALPHAS))
    return [
        Cell(name, method, sizes, frozen_array(np.reshape(found, shape)), refused.get(method))
        for method, found in values.items()
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
    """

    config: Config
    cells: tuple[Cell, ...]
    trusted: tuple[Trusted, ...] = ()

    @property
    def misleading(self) -> int:
        """Values that were called "estimate only" against their own certificate, or at a null."""
        return sum(one.misleading for one in self.trusted)

    def cell(self, case: str, method: str) -> Cell:
        """Return the estimates of one method on one case."""
        return next(c for c in self.cells if (c.case, c.method) == (case, method))

    def table(self) -> str:
        """Return the figures as text."""
        lines, heads = _make_lines(self)
        head, *table = align_rows([_BIAS_HEAD, *lines], left=(0, 4)).splitlines()
        shown = [head]
        for i, line in enumerate(table):
            shown += ["", heads[i], line] if i in heads else [line]
        rows = [_Certified(one, direction) for one in self.trusted for direction in (0, 1)]
        certified = align_columns(_CERTIFIED_COLUMNS, rows)
        parts = [_CERTIFIED_GLOSSARY, certified, f"Misleading values: {self.misleading}."]
        refused = sorted({cell.refused for cell in self.cells if cell.refused})[:1]
        return self.join_parts(
            "Accuracy of estimated divergences in nats: KL (order 1), orders 2 and 4; "
            f"seed {self.config.seed}",
            _BIAS_GLOSSARY,
            "\n".join(shown),
            *(parts if rows else []),
            *(textwrap.fill(f"refused: {one}", 96, subsequent_indent="  ") for one in refused),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        names = dict.fromkeys(cell.case for cell in self.cells)
        return self.make_record(
            NAME,
            alphas=list(ALPHAS),
            misleading=self.misleading,
            cases=[_case_to_dict(name) for name in names],
            cells=[_cell_to_dict(cell) for cell in self.cells],
            certified=[_estimate_to_dict(one) for one in self.trusted],
        )

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw bias and spread for every case, direction and method.

        Returns:
            A matplotlib figure.
        """
        # The failing cases come last, and there is a gap between cases.
        names = sorted(dict.fromkeys(c.case for c in self.cells), key=lambda n: CASES[n].fails)
        lines = [(name, direction) for name in names for direction in (0, 1)]
        places = {line: -(i + _DIRECTION_GAP * (i // 2)) for i, line in enumerate(lines)}
        bottom = min(places.values())
        picture = drawing.make_canvas(1.5 + 0.125 * (2.2 - bottom), ax)
        panels = np.atleast_1d(picture.subplots(1, len(ALPHAS), sharey=True))
        methods = self.config.methods
        for i, (panel, alpha) in enumerate(zip(panels, ALPHAS, strict=True)):
            for cell in self.cells:
                for direction in (0, 1):
                    shift = 0.7 * (methods.index(cell.method) / max(len(methods) - 1, 1) - 0.5)
                    _draw_bias(panel, cell, direction, i, places[cell.case, direction] - shift)
            _set_bias_axis(panel, bottom)
            for name in names:
                if CASES[name].fails:
                    top, low = places[name, 0] + 0.5, places[name, 1] - 0.5
                    panel.axhspan(low, top, color=RED, alpha=0.06, linewidth=0)
            panel.set_title(
                "KL" if alpha == 1.0 else f"order {alpha:g}", loc="left", fontsize=drawing.TEXT
            )
            panel.set_xlabel("mean minus truth (nats)", fontsize=drawing.SMALL)
        panels[0].set_yticks(list(places.values()), [_label_line(*line) for line in lines])
        panels[0].tick_params(axis="y", length=0, labelsize=drawing.SMALL - 0.5)
        drawing.add_legend(picture, _make_method_legend(methods), 3, "upper")
        return apply_style(picture)


_BIAS_HEAD = ("", *(f"order {alpha:g}" for alpha in ALPHAS), "published", "rows")
_BIAS_GLOSSARY = """\
Bias: mean minus truth, and the standard deviation of one estimate in brackets.
*: the truth is infinite, the mean itself is shown. n inf: n estimates are not finite, left out.
published: biases of D(P0||P1), *: means. Laws on many atoms are our own draws, not the published.
Nd: normal law of d dimensions around 0; mu: length of the shift of P0; sd 1 where none is said."""
_CERTIFIED_GLOSSARY = """\
The failing cases with certificates: "estimate only" must not be said of a value more than three
standard errors below its certified bound, or more than .05 from 0 where both laws are the same."""


def _make_lines(result: Result) -> tuple[list[tuple[str, ...]], dict[int, str]]:
    """Return the rows of the table, and the headings by the row that they precede."""
    lines: list[tuple[str, ...]] = []
    heads: dict[int, str] = {}
    for name in dict.fromkeys(cell.case for cell in result.cells):
        case = CASES[name]
        repetitions, rows = result.config.size(name)
        for direction, words in enumerate(DIRECTIONS):
            truth = " / ".join(f"{value:.4g}" for value in case.truth[direction])
            sizes = f"{rows:,} and {result.config.other(name):,} rows, {repetitions} times"
            heads[len(lines)] = f"{case.title}: {words} = {truth}; {sizes}"
            lines += [_make_line(c, direction) for c in result.cells if c.case == name]
    return lines, heads


def _make_line(cell: Cell, direction: int) -> tuple[str, ...]:
    head = f"  {cell.method}"
    known = [p for p in CASES[cell.case].published if p.method == cell.method and not direction]
    told, rows = (_format_published(known[0]), f"{known[0].rows:,}") if known else ("", "")
    if cell.refused is not None:
        return (head, "refused", "", "", told, rows)
    return (head, *(_format_bias(cell, direction, i) for i in range(len(ALPHAS))), told, rows)


def _format_bias(cell: Cell, direction: int, i: int) -> str:
    mean, spread = cell.mean[direction, i], cell.spread[direction, i]
    infinite, bias = int(cell.infinite[direction, i]), cell.bias[direction, i]
    if np.isnan(mean):
        return f"{infinite} inf"
    known = np.isfinite(cell.truth[direction, i])
    words = f"{bias:+.3f}" if known else f"*{mean:.3f}"
    words += f" ({spread:.3f})" if np.isfinite(spread) else ""
    return f"{words} {infinite} inf" if infinite else words


def _format_published(known: Published) -> str:
    figures = [
        "none" if value is None else f"{value:+.3g}" if known.biased else f"{value:.3g}"
        for value in known.figures
    ]
    return ("" if known.biased else "*") + "/".join(figures)


class _Certified(NamedTuple):
    """One direction of an estimate with certificates, at the order nearest to 2."""

    trusted: Trusted
    direction: int

    def of(self, name: str) -> Any:
        """Return a figure of the estimate."""
        alphas = self.trusted.estimate.alphas
        at = int(np.argmin(np.abs(alphas - 2.0)))
        return alphas[at] if name == "alphas" else self.all_of(name)[at]

    def all_of(self, name: str) -> Any:
        """Return a figure at all orders."""
        return getattr(self.trusted.estimate, name)[self.direction]

    def count_resolved(self) -> str:
        """Return how many orders are resolved."""
        resolved = self.all_of("resolved")
        return f"{resolved.sum()} of {len(resolved)}"


_CERTIFIED_COLUMNS = (
    Column("case", "trusted.case", left=True),
    Column("method", "trusted.estimate.method", left=True),
    Column("direction", lambda one: DIRECTIONS[one.direction], left=True),
    Column("order", lambda one: one.of("alphas"), ".3g"),
    Column("value", lambda one: one.of("value"), ".3f"),
    Column("certified", lambda one: one.of("certified"), ".3f"),
    Column("orders resolved", _Certified.count_resolved),
    Column("misleading", lambda one: "" if one.direction else str(one.trusted.misleading)),
)


def _encode_arrays(record: Any, names: str) -> dict[str, Any]:
    return {name: encode_value(getattr(record, name).tolist()) for name in names.split()}


def _case_to_dict(name: str) -> dict[str, Any]:
    case = CASES[name]
    published = [
        encode_attributes(known, "method rows source", kind="bias" if known.biased else "mean")
        | encode_attributes(known, "figures spread")
        for known in case.published
    ]
    return {"case": name, **encode_attributes(case, "title truth", published=published)}


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    found = encode_attributes(cell, "case method rows", repetitions=len(cell.values))
    found |= {"refused": cell.refused, **_encode_arrays(cell, "mean bias spread")}
    return found | {"not_finite": cell.infinite.tolist()}


def _estimate_to_dict(one: Trusted) -> dict[str, Any]:
    return {
        **encode_attributes(one, "case method=estimate.method"),
        **_encode_arrays(one.estimate, "alphas value std_error certified belief"),
        **encode_attributes(one, "misleading seed=estimate.seed"),
    }


_METHOD_STYLES: Final[dict[str, tuple[str, str]]] = {
    "ball": (BLUE, "o"),
    "score": (GREEN, "s"),
    "poczos": ("#CC79A7", "D"),
    "paper": (RED, "^"),
    "paper-literal": (GREY, "v"),
}
_LINEAR_BIAS_RANGE: Final = 0.1
_BIAS_AXIS_END: Final = 300.0
_MAX_DRAWN_BIAS: Final = 110.0
"""Place of the mark of a finite bias of this size or more; an infinite bias is marked beyond it."""

_DIRECTION_GAP: Final = 0.8


def _label_line(name: str, direction: int) -> str:
    return "reversed" if direction else CASES[name].title.replace("against", "vs")


def _draw_bias(panel: drawing.Axes, cell: Cell, direction: int, i: int, place: float) -> None:
    """Draw a bias with one standard deviation, or a mark at the edge if it is infinite."""
    colour, marker = _METHOD_STYLES[cell.method]
    if cell.refused is not None:
        return
    bias, spread = cell.bias[direction, i], np.nan_to_num(cell.spread[direction, i])
    if cell.infinite[direction, i] > len(cell.values) // 2:
        # Most values are infinite: so is the bias, unless the truth is infinite too.
        most = np.median(cell.values[:, direction, i])
        with np.errstate(invalid="ignore"):
            bias = 0.0 if most == cell.truth[direction, i] else most - cell.truth[direction, i]
        spread = 0.0
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 2.4}
    if abs(bias) >= _MAX_DRAWN_BIAS:
        edge = np.sign(bias) * (_BIAS_AXIS_END * 0.8 if np.isinf(bias) else _MAX_DRAWN_BIAS)
        face = WHITE if np.isinf(bias) else colour
        panel.plot([edge], [place], **style, markerfacecolor=face, clip_on=False, linestyle="none")
        return
    if np.isfinite(bias):
        panel.errorbar([bias], [place], xerr=[spread], elinewidth=0.6, linestyle="none", **style)


def _set_bias_axis(panel: drawing.Axes, bottom: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    panel.set_xscale("symlog", linthresh=_LINEAR_BIAS_RANGE, linscale=1.0)
    panel.set(xlim=(-_BIAS_AXIS_END, _BIAS_AXIS_END), ylim=(bottom - 0.8, 0.8))
    panel.xaxis.set_major_locator(FixedLocator([-10, -1, -0.1, 0, 0.1, 1, 10]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticklabels(["-10", "-1", "-.1", "0", ".1", "1", "10"])
    panel.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
    for edge in (-_MAX_DRAWN_BIAS * 1.25, _MAX_DRAWN_BIAS * 1.25):
        panel.axvline(edge, color=GREY, linewidth=0.4, linestyle=":", zorder=1)
    drawing.tidy_axes(panel)


def _make_method_legend(methods: tuple[str, ...]) -> list[Any]:
    styles = [_METHOD_STYLES[method] for method in methods]
    hollow: dict[str, Any] = {"markerfacecolor": WHITE}
    return [
        *(drawing.make_mark(name, *style, 4) for name, style in zip(methods, styles, strict=True)),
        drawing.make_mark("hollow at the edge: infinitely far off", *styles[0], 4, **hollow),
        drawing.make_patch("rows on which the ball or others fail", RED, alpha=0.12),
    ]
