"""Renyi divergences of our own samplers: estimated from outputs, against the closed forms.

The outputs of eight mechanisms on two neighbouring inputs are drawn and estimated as any two
samples would be. The truth is known at every order and so is the exact epsilon, which shows what
an estimate is worth, where it stops being resolved, and that nothing certified is above the truth.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..calibration import RandomisedResponse, gaussian_epsilon
from ..divergence import Epsilon, Estimate, canonne_kamath_steinke, closed_forms, renyi
from ..errors import integer, real
from ..mechanisms import DPTextNoise, Exponential, Gaussian, Laplace, RandomBits
from ..records import Record, Shown
from ..report import encoding
from ..report.figures import BLUE, GREEN, GREY, INK, WHITE, apply_style
from ..report.text import align_rows
from .presentation import SMALL, TEXT, make_canvas, make_record_head, tidy_axes
from .running import SEED, Tabled, cell_seed, check_config, require_own_config, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "renyi-of-mechanisms"

Reals = npt.NDArray[np.float64]
Curve = Callable[[Reals], Reals]

MOST_DELTA: Final = 0.3
"""Above it one-sided noise may have a finite epsilon: less than what it shows on one side only."""

_ONE_SIDED_DISTANCE: Final = 0.5
"""Distance of the pairs of one-sided noise."""

_RANDOMISED_RESPONSE: Final = RandomisedResponse(1.0, values=4)

_MIN_OUTPUTS: Final = 100
_STATEMENTS_PER_MECHANISM: Final = 3
"""Certified statements about a mechanism: a curve in each direction, and an epsilon."""


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism, a pair of inputs, and the truth about them.

    Args:
        title: what table and picture say.
        mechanism: called as ``mechanism(x, size, seed)``.
        x: the input of P0.
        x_prime: the input of P1.
        forward: orders to D_alpha(P0||P1).
        backward: orders to D_alpha(P1||P0).
        exact: delta in (0, `MOST_DELTA`] to the smallest epsilon of both directions.
    """

    title: str
    mechanism: Any
    x: Any
    x_prime: Any
    forward: Curve
    backward: Curve
    exact: Callable[[float], float]


def _zero_curve(alphas: Reals) -> Reals:
    return np.zeros_like(alphas)


def _infinite_curve(alphas: Reals) -> Reals:
    """Return inf at every order from 1 on, where an output is possible on one side only."""
    return np.full_like(alphas, np.inf)


def _one_ratio(alphas: Reals) -> Reals:
    """Return the constant curve of two shifted exponential laws.

    Where the later law has any mass, its density is e^distance times the other.
    """
    return np.full_like(alphas, _ONE_SIDED_DISTANCE)


def _laplace_curve(alphas: Reals) -> Reals:
    return closed_forms.laplace_mechanism(alphas, 1.0, 1.0)


def _gaussian_curve(alphas: Reals) -> Reals:
    return closed_forms.gaussian_mechanism(alphas, 1.0, 1.0)


def _plane_curve(alphas: Reals) -> Reals:
    return closed_forms.laplace(alphas, 1.0, [_ONE_SIDED_DISTANCE, _ONE_SIDED_DISTANCE])


def _answers_curve(alphas: Reals) -> Reals:
    return closed_forms.randomised_response(
        alphas, _RANDOMISED_RESPONSE.entry_loss, _RANDOMISED_RESPONSE.values
    )


def _answers_epsilon(delta: float) -> float:
    """Compute epsilon of randomised response from delta = keep - e^epsilon wrong.

    The event is the truth of P0.
    """
    keep = _RANDOMISED_RESPONSE.keep
    wrong = (1.0 - keep) / (_RANDOMISED_RESPONSE.values - 1)
    return max(0.0, math.log((keep - delta) / wrong))


def _laplace_epsilon(delta: float) -> float:
    """Compute epsilon of one Laplace entry with loss 1 from delta = 1 - e^{(epsilon - 1)/2}."""
    return max(0.0, 1.0 + 2.0 * math.log1p(-delta))


def _entry_delta(epsilon: float, loss: float) -> float:
    """Compute the profile of one Laplace entry at any real epsilon."""
    if epsilon >= loss:
        return 0.0
    return -math.expm1((epsilon - loss) / 2.0 if epsilon >= -loss else epsilon)


def plane_delta(epsilon: float, loss: float = _ONE_SIDED_DISTANCE) -> float:
    """Compute the profile of two Laplace entries: that of one, averaged over the other's loss.

    Under P0 the loss of an entry is `loss` with probability 1/2, -`loss` with e^-loss / 2, and
    loss - 2 t with density e^-t / 2 between.
    """
    from scipy.integrate import quad

    ends = _entry_delta(epsilon - loss, loss) + math.exp(-loss) * _entry_delta(epsilon + loss, loss)
    kinks = [t for t in (loss - epsilon / 2.0, -epsilon / 2.0) if 0.0 < t < loss]
    inner, _ = quad(
        lambda t: math.exp(-t) * _entry_delta(epsilon - loss + 2.0 * t, loss),
        0.0, loss, points=kinks or None, epsabs=1e-13,
    )  # fmt: skip
    return 0.5 * (ends + float(inner))


def _plane_epsilon(delta: float) -> float:
    from scipy.optimize import brentq

    if plane_delta(0.0) <= delta:
        return 0.0
    return float(
        brentq(lambda e: plane_delta(e) - delta, 0.0, 2.0 * _ONE_SIDED_DISTANCE, xtol=1e-12)
    )


CASES: Final[dict[str, Case]] = {
    "laplace": Case(
        "Laplace", Laplace(1.0), [0.0], [1.0], _laplace_curve, _laplace_curve, _laplace_epsilon
    ),
    "gaussian": Case(
        "Gaussian", Gaussian(1.0), [0.0], [1.0], _gaussian_curve, _gaussian_curve,
        lambda delta: gaussian_epsilon(1.0, delta, 1.0),
    ),
    "exponential": Case(
        "Exponential", Exponential(1.0), [0.0], [_ONE_SIDED_DISTANCE], _infinite_curve, _one_ratio,
        lambda delta: math.inf,
    ),
    "dptext": Case(
        "DPText noise", DPTextNoise(1.0), [0.0], [_ONE_SIDED_DISTANCE],
        _infinite_curve, _infinite_curve, lambda delta: math.inf,
    ),
    "randomised-response": Case(
        "Randomised response", _RANDOMISED_RESPONSE, 0, 1, _answers_curve, _answers_curve,
        _answers_epsilon,
    ),
    "random-bits": Case(
        "Three random bits", RandomBits(), [0.0] * 3, [7.0] * 3, _zero_curve, _zero_curve,
        lambda delta: 0.0,
    ),
    "laplace-plane": Case(
        "Laplace, d = 2", Laplace(1.0), [0.0] * 2, [_ONE_SIDED_DISTANCE] * 2,
        _plane_curve, _plane_curve, _plane_epsilon,
    ),
    "gaussian-space": Case(
        "Gaussian, d = 4", Gaussian(1.0), [0.0] * 4, [0.5] * 4, _gaussian_curve, _gaussian_curve,
        lambda delta: gaussian_epsilon(1.0, delta, 1.0),
    ),
}  # fmt: skip


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
        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw both directions of every mechanism: truth, estimates with errors, certified bounds.

        Returns:
            A matplotlib figure.
        """
        return draw_figure(self, ax)


DIRECTIONS: Final = ("D(P0||P1)", "D(P1||P0)")

_TABLE_ORDERS: Final = (1.0, 2.0, 4.0)
"""The table has the orders of the grid that are nearest to these."""

_CURVE_HEAD: Final = (
    "mechanism", "direction", "alpha", "truth", "estimate", "+-", "off by", "certified", "belief",
)  # fmt: skip


def write_table(result: Result) -> str:
    """Format the orders, then the epsilons, then the verdict."""
    config = result.config
    title = (
        f"Renyi divergences from {config.trials:,} outputs a side against the closed forms; "
        f"certified figures hold\ntogether with {100.0 * config.confidence:g} % confidence, seed "
        f"{config.seed}"
    )
    curves = [_CURVE_HEAD, *(line for row in result.rows for line in _make_curve_lines(row))]
    figures = [
        ("mechanism", "exact", "certified", "estimate", "curve", "true curve", "method"),
        *(_make_epsilon_line(row) for row in result.rows),
    ]
    words = (
        f"epsilon at delta = {config.delta:g}: exact; certified and estimated from a held-out "
        "event; the estimated curve\nconverted, and the true curve converted"
    )
    claims = 3 * len(result.rows)
    verdict = f"Certified figures above the truth: {result.above} of {claims}"
    parts = [
        title,
        "",
        align_rows(curves, (0, 1, 8)),
        "",
        words,
        "",
        align_rows(figures, (0, 6)),
        "",
    ]
    if result.partial:
        parts.insert(0, "INTERRUPTED: the mechanisms that were done")
    return "\n".join([*parts, verdict])


def shown_orders(estimate: Estimate) -> list[int]:
    """Return the places of the orders that the table shows."""
    return sorted({int(np.argmin(np.abs(estimate.alphas - a))) for a in _TABLE_ORDERS})


def _make_curve_lines(row: Row) -> list[tuple[str, ...]]:
    estimate = row.estimate
    lines: list[tuple[str, ...]] = []
    for side, direction in enumerate(DIRECTIONS):
        for place in shown_orders(estimate):
            truth, value = row.truth[side, place], estimate.value[side, place]
            lines.append(
                (
                    CASES[row.name].title,
                    direction,
                    f"{estimate.alphas[place]:.3g}",
                    format_three_decimals(truth),
                    format_three_decimals(value),
                    format_three_decimals(estimate.std_error[side, place]),
                    format_three_decimals(value - truth, "+") if math.isfinite(truth) else "",
                    format_three_decimals(row.certified[side, place]),
                    _shorten_belief(str(estimate.belief[side, place])),
                )
            )
    return lines


def _shorten_belief(belief: str) -> str:
    return belief.removesuffix(" at this alpha").removesuffix(" by its own certificate")


def _make_epsilon_line(row: Row) -> tuple[str, ...]:
    found = row.epsilon
    figures = (row.exact, found.epsilon_lower, found.epsilon_hat, found.epsilon_rdp, row.converted)
    return (CASES[row.name].title, *map(format_three_decimals, figures), row.estimate.method)


def format_three_decimals(value: float | None, sign: str = "") -> str:
    """Format a value with three decimals, as "inf", or as "-" if it is missing."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:{sign}z.3f}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [mechanism_to_dict(row) for row in result.rows]
    return {**make_record_head(NAME, result), "above": result.above, "rows": rows}


def mechanism_to_dict(row: Row) -> dict[str, Any]:
    """Return one mechanism as plain data for strict JSON."""
    estimate, found = row.estimate, row.epsilon
    curves = {
        "alphas": estimate.alphas,
        "truth": row.truth,
        "value": estimate.value,
        "std_error": estimate.std_error,
        "resolved": estimate.resolved,
        "certified": row.certified,
    }
    return {
        "mechanism": row.name,
        "method": estimate.method,
        **{key: encoding.encode_value(values) for key, values in curves.items()},
        "belief": estimate.belief.tolist(),
        "alpha_max": list(estimate.alpha_max),
        "reason": estimate.reason,
        "delta": found.delta,
        "epsilon_exact": encoding.encode_value(row.exact),
        "epsilon_lower": encoding.encode_value(found.epsilon_lower),
        "epsilon_hat": encoding.encode_value(found.epsilon_hat),
        "epsilon_rdp": encoding.encode_value(found.epsilon_rdp),
        "epsilon_true_curve": encoding.encode_value(row.converted),
        "extrapolated": found.extrapolated,
        "above": row.above,
        "seed": str(estimate.seed),
    }


_PANEL_COLUMNS: Final = 4
_ORDER_TICKS: Final = (1, 2, 4, 8, 16)
_CURVE_LABELS: Final = (
    "closed form",
    "estimate, +- standard error",
    "not resolved (hollow)",
    "certified from below",
)


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw truth, estimates and certified bounds, with unresolved orders in grey."""
    panels = [(row, side) for row in result.rows for side in (0, 1)]
    rows = -(-len(panels) // _PANEL_COLUMNS)
    picture = make_canvas(0.8 + 1.75 * rows, ax)
    axes = picture.subplots(rows, _PANEL_COLUMNS, squeeze=False).ravel()
    for panel, (row, side) in zip(axes, panels, strict=False):
        _draw_curve_panel(panel, row, side)
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    picture.supxlabel("order alpha (1 is KL)", fontsize=TEXT)
    picture.supylabel("nats", fontsize=TEXT)
    picture.legend(
        handles=_make_curve_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_curve_panel(axes: Axes, row: Row, side: int) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    estimate, truth = row.estimate, row.truth[side]
    alphas, value = estimate.alphas, estimate.value[side]
    resolved = estimate.resolved[side]
    axes.set_xscale("log")
    axes.plot(alphas, row.certified[side], color=GREEN, linewidth=1.2)
    if np.isfinite(truth).all():
        axes.plot(alphas, truth, color=INK, linewidth=0.9)
    else:
        words: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "fontsize": SMALL}
        axes.text(0.98, 0.05, "closed form: infinite", color=INK, **words)
    # Error bars of neighbouring orders overlap: every third is enough to see them.
    for kept, face in ((resolved, BLUE), (~resolved, WHITE)):
        kept = kept & np.isfinite(value)
        error = np.nan_to_num(estimate.std_error[side][kept])
        axes.errorbar(
            alphas[kept], value[kept], error, fmt="o", color=BLUE, markersize=2.2,
            markerfacecolor=face, markeredgewidth=0.5, elinewidth=0.6, errorevery=3,
        )  # fmt: skip
    _shade_unresolved_orders(axes, alphas, resolved)
    axes.set_ylim(*_panel_limits(row, side))
    tidy_axes(axes)
    axes.xaxis.set_major_locator(FixedLocator([a for a in _ORDER_TICKS if a <= alphas[-1]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_title(f"{CASES[row.name].title}\n{DIRECTIONS[side]}", loc="left", fontsize=SMALL)


def _shade_unresolved_orders(axes: Axes, alphas: Any, resolved: Any) -> None:
    """Shade every order that is not resolved, half way to its neighbours."""
    logs = np.log(alphas)
    inner = (logs[1:] + logs[:-1]) / 2.0
    ends = (logs[0] - 0.06, logs[-1] + 0.06)
    edges = np.exp(np.concatenate([[ends[0]], inner, [ends[1]]]))
    for i in np.flatnonzero(~resolved):
        axes.axvspan(edges[i], edges[i + 1], color=GREY, alpha=0.16, linewidth=0, zorder=0)
    axes.set_xlim(edges[0], edges[-1])


def _panel_limits(row: Row, side: int) -> tuple[float, float]:
    """Return limits for all figures found, and as much of the truth as leaves these visible."""
    found = np.concatenate([row.estimate.value[side], row.certified[side]])
    found, truth = found[np.isfinite(found)], row.truth[side][np.isfinite(row.truth[side])]
    low, high = min(0.0, float(found.min())), max(0.1, float(found.max()))
    high = max(high, min(1.6 * high, float(truth.max(initial=0.0))))
    room = 0.08 * (high - low)
    return low - room, high + room


def _make_curve_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": BLUE, "markersize": 3.5}
    return [
        Line2D([], [], color=INK, linewidth=0.9, label=_CURVE_LABELS[0]),
        Line2D([], [], label=_CURVE_LABELS[1], **dot),
        Line2D([], [], markerfacecolor=WHITE, label=_CURVE_LABELS[2], **dot),
        Line2D([], [], color=GREEN, linewidth=1.2, label=_CURVE_LABELS[3]),
    ]
