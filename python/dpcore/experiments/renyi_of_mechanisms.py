"""Renyi divergences of eight mechanisms: estimates from outputs, and exact values.

The experiment draws outputs of each mechanism on two neighbouring inputs. It then estimates the
Renyi divergence of the two samples without knowledge of the mechanism. For these mechanisms, the
true divergence is known at every order, and the true epsilon is known too. The experiment shows:

- the error of the estimates;
- the orders at which the sample is too small for a reliable estimate;
- that the certified lower bounds do not exceed the true values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from ..calibration import RandomisedResponse, gaussian_epsilon
from ..divergence import Epsilon, Estimate, canonne_kamath_steinke, closed_forms, renyi
from ..errors import real
from ..mechanisms import DPTextNoise, Exponential, Gaussian, Laplace, RandomBits
from ..records import Floats, Record
from ..report.figures import BLUE, GREEN, GREY, INK, WHITE, restyle_figure
from . import drawing
from .base import SEED, Column, Settings, align_columns, check_trials, encode_entries, setting
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "renyi-of-mechanisms"

Curve = Callable[[Floats], Floats]

MOST_DELTA: Final = 0.3
"""Largest allowed delta. With one-sided noise, some outputs are possible on one input only. Their
probability is above 0.3, so epsilon is infinite for every allowed delta. For a delta above this
probability, epsilon may be finite."""

_ONE_SIDED_DISTANCE: Final = 0.5
"""Distance of the two inputs of the mechanisms with one-sided noise."""

_RANDOMISED_RESPONSE: Final = RandomisedResponse(1.0, values=4)

_MIN_OUTPUTS: Final = 100
_STATEMENTS_PER_MECHANISM: Final = 3
"""Number of certified bounds for each mechanism: one on D(P0||P1), one on D(P1||P0), one on
epsilon."""


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism, two inputs, and the true Renyi divergences between its outputs.

    P0 is the distribution of the output on `x`. P1 is the distribution of the output on `x_prime`.

    Args:
        title: name of the mechanism in the table and in the picture.
        mechanism: mechanism that is called as ``mechanism(x, size, seed)``.
        x: the first input.
        x_prime: the second input.
        exact: function that takes a delta in (0, `MOST_DELTA`]. It returns the smallest epsilon for
            which (epsilon, delta)-DP holds for P0 and P1 in both directions.
        forward: function that takes an array of orders alpha and returns D_alpha(P0||P1) at each
            order.
        backward: function that takes an array of orders alpha and returns D_alpha(P1||P0) at each
            order. None if D_alpha(P1||P0) equals D_alpha(P0||P1).
    """

    title: str
    mechanism: Any
    x: Any
    x_prime: Any
    exact: Callable[[float], float]
    forward: Curve
    backward: Curve | None = None


def _make_constant_curve(value: float) -> Curve:
    return lambda alphas: np.full_like(alphas, value)


_INFINITE: Final = _make_constant_curve(np.inf)
"""Divergence that is infinite at every order from 1 on, because some outputs are possible on one
input only."""

_ONE_RATIO: Final = _make_constant_curve(_ONE_SIDED_DISTANCE)
"""Divergence between two exponential laws with different start points.

At every point where the law with the larger start point has a positive density, this density is
e^distance times the density of the other law.
"""

_LAPLACE: Final = partial(closed_forms.laplace_mechanism, sensitivity=1.0, scale=1.0)
_GAUSSIAN: Final = partial(closed_forms.gaussian_mechanism, sensitivity=1.0, sigma=1.0)
_PLANE: Final = partial(closed_forms.laplace_renyi, scale=1.0, shift=[_ONE_SIDED_DISTANCE] * 2)
_ANSWERS: Final = partial(
    closed_forms.randomised_response,
    epsilon=_RANDOMISED_RESPONSE.entry_loss,
    categories=_RANDOMISED_RESPONSE.values,
)


def _response_epsilon(delta: float) -> float:
    """Compute epsilon of randomised response by solving delta = keep - e^epsilon * wrong.

    Here `keep` is the probability that the output is the true value, and `wrong` is the probability
    of each other value.

    The event with the largest loss is "the output is the true value of the first input".
    """
    keep = _RANDOMISED_RESPONSE.keep
    wrong = (1.0 - keep) / (_RANDOMISED_RESPONSE.values - 1)
    return max(0.0, math.log((keep - delta) / wrong))


def _laplace_epsilon(delta: float) -> float:
    """Compute epsilon of a Laplace mechanism with loss 1: delta = 1 - e^{(epsilon - 1)/2}."""
    return max(0.0, 1.0 + 2.0 * math.log1p(-delta))


def _entry_delta(epsilon: float, loss: float) -> float:
    """Compute delta at any real epsilon for one entry with Laplace noise.

    `loss` is the distance of the two inputs, divided by the scale of the noise.
    """
    if epsilon >= loss:
        return 0.0
    return -math.expm1((epsilon - loss) / 2.0 if epsilon >= -loss else epsilon)


def laplace_2d_delta(epsilon: float, loss: float = _ONE_SIDED_DISTANCE) -> float:
    """Compute delta at `epsilon` for a vector of two entries with independent Laplace noise.

    `loss` is the largest privacy loss of one entry. Let L be the privacy loss of the second entry.
    The function computes the delta of the first entry at `epsilon` - L, and returns the mean of
    this delta over L.

    On the first input, L is `loss` with probability 1/2, and -`loss` with probability e^-loss / 2.
    Otherwise, L equals loss - 2 t for a number t between 0 and `loss`. The density of t is 0.5
    e^-t.
    """
    from scipy.integrate import quad

    ends = _entry_delta(epsilon - loss, loss) + math.exp(-loss) * _entry_delta(epsilon + loss, loss)
    kinks = [t for t in (loss - epsilon / 2.0, -epsilon / 2.0) if 0.0 < t < loss]
    inner, _ = quad(
        lambda t: math.exp(-t) * _entry_delta(epsilon - loss + 2.0 * t, loss),
        0.0,
        loss,
        points=kinks or None,
        epsabs=1e-13,
    )
    return 0.5 * (ends + float(inner))


def _plane_epsilon(delta: float) -> float:
    from scipy.optimize import brentq

    if laplace_2d_delta(0.0) <= delta:
        return 0.0
    highest = 2.0 * _ONE_SIDED_DISTANCE
    return float(brentq(lambda e: laplace_2d_delta(e) - delta, 0.0, highest, xtol=1e-12))


def _gaussian_epsilon(delta: float) -> float:
    return gaussian_epsilon(1.0, delta, 1.0)


def _always_infinite(delta: float) -> float:
    return math.inf


CASES: Final[dict[str, Case]] = {
    "laplace": Case("Laplace", Laplace(1.0), [0.0], [1.0], _laplace_epsilon, _LAPLACE),
    "gaussian": Case("Gaussian", Gaussian(1.0), [0.0], [1.0], _gaussian_epsilon, _GAUSSIAN),
    "exponential": Case(
        "Exponential", Exponential(1.0), [0.0], [_ONE_SIDED_DISTANCE], _always_infinite, _INFINITE,
        _ONE_RATIO,
    ),
    "dptext": Case(
        "DPText noise", DPTextNoise(1.0), [0.0], [_ONE_SIDED_DISTANCE], _always_infinite, _INFINITE
    ),
    "randomised-response": Case(
        "Randomised response", _RANDOMISED_RESPONSE, 0, 1, _response_epsilon, _ANSWERS
    ),
    "random-bits": Case(
        "Three random bits", RandomBits(), [0.0] * 3, [7.0] * 3, lambda delta: 0.0, np.zeros_like
    ),
    "laplace-plane": Case(
        "Laplace, d = 2", Laplace(1.0), [0.0] * 2, [_ONE_SIDED_DISTANCE] * 2, _plane_epsilon, _PLANE
    ),
    "gaussian-space": Case(
        "Gaussian, d = 4", Gaussian(1.0), [0.0] * 4, [0.5] * 4, _gaussian_epsilon, _GAUSSIAN
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment that estimates Renyi divergences of mechanisms.

    Args:
        trials: number of outputs that are drawn on each of the two inputs of a mechanism, at least
            100.
        delta: delta for which the experiment computes epsilon, in (0, 0.3]. The product of delta
            and `trials` should be large, so that events of probability delta occur many times.
        confidence: probability that all certified bounds of the experiment are true at once.
        seed: int in [0, 2**63). Every sample gets a separate seed derived from this seed.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4").trials
        20000
    """

    trials: int = setting(20_000, check_trials, _MIN_OUTPUTS)
    delta: float = setting(0.05, real, low=0.0, high=MOST_DELTA, open_low=True)
    confidence: float = 0.95
    seed: int = SEED

    @property
    def each(self) -> float:
        """Confidence of each single certified bound.

        This confidence is so high that, with probability `confidence`, all bounds are true at once.
        """
        return 1.0 - (1.0 - self.confidence) / (_STATEMENTS_PER_MECHANISM * len(CASES))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Row(Record):
    """Estimated and true Renyi divergences of one mechanism.

    P0 and P1 are the distributions of the output on the first and on the second input. An array of
    shape (2, n_alpha) contains D_alpha(P0||P1) in the first row, and D_alpha(P1||P0) in the second
    row. Each column is for one order alpha.

    Args:
        name: name of the mechanism, a key of `CASES` such as "laplace".
        truth: true divergences, shape (2, n_alpha).
        estimate: divergences that are estimated from the outputs, with certified lower bounds.
        epsilon: results on epsilon at the delta of the run: a certified lower bound and two
            estimates.
        exact: true epsilon of the mechanism at the delta of the run.
        converted: epsilon that is computed from the true divergences at the delta of the run. At
            each order, the larger of the two divergences is used. Compare this value with the
            estimate `epsilon.epsilon_rdp`.
    """

    name: str
    truth: Floats
    estimate: Estimate
    epsilon: Epsilon
    exact: float
    converted: float

    @property
    def title(self) -> str:
        """Name of this mechanism in the table and in the picture."""
        return CASES[self.name].title

    @property
    def certified(self) -> Floats:
        """Certified lower bounds on the Renyi divergences of this mechanism.

        The shape is (2, n_alpha). The first row is for D_alpha(P0||P1), and the second row for
        D_alpha(P1||P0). Each column is for one order alpha.
        """
        certificate = self.estimate.certified
        assert certificate is not None
        return certificate

    @property
    def above(self) -> int:
        """Number of false certified bounds of this mechanism, from 0 to 3.

        A lower bound is false if it is above the true value. The bounds on D_alpha(P0||P1) at all
        orders count as one bound. The bounds on D_alpha(P1||P0) count as a second bound. The third
        bound is the bound on epsilon.
        """
        room = 1.0 + 1e-9
        curves = int((self.certified > self.truth * room).any(axis=1).sum())
        lower = self.epsilon.epsilon_lower
        return curves + int(lower is not None and lower > self.exact * room)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Estimate the Renyi divergences of every mechanism, and compare them with the true values.

    Args:
        config: options of the experiment, such as the number of outputs.
        threads: number of threads. The default is one thread per core. The number of threads never
            changes a result.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each mechanism. If the user presses Ctrl-C, the result contains
        only the completed mechanisms.

    Raises:
        TypeError: if `config` is not a `Config` of this module.
        KeyboardInterrupt: if the user presses Ctrl-C before the first mechanism is completed.

    Example:
        >>> result = run(Config(trials=500, seed=1))
        >>> result.above, len(result.rows)
        (0, 8)
    """
    work = partial(_estimate_renyi_of_mechanism, config=config, threads=threads)
    rows, ended = run_jobs("mechanisms", tuple(CASES), work, progress)
    return Result(config, rows, partial=ended)


def _estimate_renyi_of_mechanism(name: str, config: Config, threads: int | None) -> Row:
    case = CASES[name]
    outputs = [
        np.asarray(case.mechanism(x, config.trials, cell_seed(config.seed, f"{name}/{side}")))
        for side, x in (("x", case.x), ("x_prime", case.x_prime))
    ]
    with warnings.catch_warnings():
        # Few categories give few distinct rows, so balls contain whole ties, as intended.
        warnings.filterwarnings("ignore", message="k = .* exceeds the .* distinct rows")
        estimate = renyi(
            *outputs, certified=True, rows="independent", confidence=config.each,
            rng=cell_seed(config.seed, f"{name}/estimate"), threads=threads, progress=False,
        )  # fmt: skip
    curves = case.forward, case.backward or case.forward
    truth = np.stack([curve(estimate.alphas) for curve in curves])
    above = estimate.alphas > 1.0
    # (epsilon, delta) must hold for the larger of both directions.
    largest = truth[:, above].max(axis=0)
    converted = canonne_kamath_steinke(estimate.alphas[above], largest, config.delta)
    figures = estimate.epsilon(config.delta)
    return Row(name, truth, estimate, figures, case.exact(config.delta), converted.epsilon)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Estimated and true Renyi divergences of every mechanism.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each mechanism.
    """

    rows: tuple[Row, ...]

    @property
    def above(self) -> int:
        """Number of false certified bounds, over all mechanisms.

        A lower bound is false if it is above the true value. The number is 0 with a probability of
        at least `config.confidence`.
        """
        return sum(row.above for row in self.rows)

    def table(self) -> str:
        """Return the estimates, the true values and the certified bounds as a text table."""
        config = self.config
        curves = (
            _CurvePoint(row, side, place)
            for row, side in product(self.rows, (0, 1))
            for place in positions_of_table_orders(row.estimate)
        )
        return self.join_parts(
            f"Renyi divergences from {config.trials:,} outputs per side against the closed forms; "
            f"certified figures hold\ntogether with {100.0 * config.confidence:g} % confidence, "
            f"seed {config.seed}",
            align_columns(_CURVE_COLUMNS, curves),
            f"epsilon at delta = {config.delta:g}: exact; certified and estimated from a held-out "
            "event; the estimated curve\nconverted, and the true curve converted",
            align_columns(_EPSILON_COLUMNS, self.rows),
            f"Certified figures above the truth: {self.above} of {3 * len(self.rows)}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        return self.make_record(above=self.above, rows=[results_to_dict(row) for row in self.rows])

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the Renyi divergence of each mechanism against the order alpha.

        Returns:
            A matplotlib figure. Each panel shows the true divergence, estimates with standard
            errors, and certified lower bounds.
        """
        panels = list(product(self.rows, (0, 1)))
        rows = -(-len(panels) // _PANEL_COLUMNS)
        picture = drawing.empty_figure(0.8 + 1.75 * rows, ax)
        axes = picture.subplots(rows, _PANEL_COLUMNS, squeeze=False).ravel()
        for panel, (row, side) in zip(axes, panels, strict=False):
            _draw_divergence_panel(panel, row, side)
        for panel in axes[len(panels) :]:
            panel.set_axis_off()
        picture.supxlabel("order alpha (1 is KL)", fontsize=drawing.TEXT)
        picture.supylabel("nats", fontsize=drawing.TEXT)
        drawing.add_legend(picture, _make_curve_legend(), 4, "upper")
        return restyle_figure(picture)


DIRECTIONS: Final = ("D(P0||P1)", "D(P1||P0)")

_TABLE_ORDERS: Final = (1.0, 2.0, 4.0)
"""For each of these orders, the table shows the nearest order of the estimate."""


def positions_of_table_orders(estimate: Estimate) -> list[int]:
    """Return the positions at which `estimate.alphas` contains the orders that the table shows."""
    return sorted({int(np.argmin(np.abs(estimate.alphas - a))) for a in _TABLE_ORDERS})


class _CurvePoint(NamedTuple):
    """Estimate and true value of D(P0||P1) or D(P1||P0) at one order, for one mechanism."""

    row: Row
    side: int
    place: int

    def select_entry(self, values: Any) -> Any:
        """Return the entry of an array of shape (2, n_alpha) for this divergence and order."""
        return values[self.side, self.place]

    @property
    def off_by(self) -> float:
        """Estimate of D_alpha minus the true value."""
        return float(self.select_entry(self.row.estimate.value) - self.select_entry(self.row.truth))


def format_three_decimals(value: float | None, sign: str = "") -> str:
    """Format a number with three decimals, and write infinity as "inf".

    None and NaN become "-". If `sign` is "+", a positive number gets a plus sign.
    """
    if value is None or math.isnan(value):
        return "-"
    return f"{value:{sign}z.3f}"


def _trim_belief_suffix(belief: Any) -> str:
    return str(belief).removesuffix(" at this alpha").removesuffix(" by its own certificate")


_CURVE_COLUMNS: Final = (
    Column("mechanism", "row.title", left=True),
    Column("direction", lambda at: DIRECTIONS[at.side], left=True),
    Column("alpha", lambda at: at.row.estimate.alphas[at.place], ".3g"),
    Column("truth", lambda at: at.select_entry(at.row.truth), format_three_decimals),
    Column("estimate", lambda at: at.select_entry(at.row.estimate.value), format_three_decimals),
    Column("+-", lambda at: at.select_entry(at.row.estimate.std_error), format_three_decimals),
    Column("off by", "off_by", lambda x: format_three_decimals(x, "+") if math.isfinite(x) else ""),
    Column("certified", lambda at: at.select_entry(at.row.certified), format_three_decimals),
    Column(
        "belief", lambda at: at.select_entry(at.row.estimate.belief), _trim_belief_suffix, left=True
    ),
)
_EPSILON_COLUMNS: Final = (
    Column("mechanism", "title", left=True),
    Column("exact", "exact", format_three_decimals),
    Column("certified", "epsilon.epsilon_lower", format_three_decimals),
    Column("estimate", "epsilon.epsilon_hat", format_three_decimals),
    Column("curve", "epsilon.epsilon_rdp", format_three_decimals),
    Column("true curve", "converted", format_three_decimals),
    Column("method", "estimate.method", left=True),
)


def results_to_dict(row: Row) -> dict[str, Any]:
    """Return the results of one mechanism as a dict of plain data."""
    estimate, epsilon = row.estimate, row.epsilon
    return encode_entries(
        {"mechanism": row.name, "method": estimate.method, "alphas": estimate.alphas}
        | {"truth": row.truth, "value": estimate.value, "std_error": estimate.std_error}
        | {"resolved": estimate.resolved, "certified": row.certified}
        | {"belief": estimate.belief.tolist(), "alpha_max": estimate.alpha_max}
        | {"reason": estimate.reason, "delta": epsilon.delta, "epsilon_exact": row.exact}
        | {"epsilon_lower": epsilon.epsilon_lower, "epsilon_hat": epsilon.epsilon_hat}
        | {"epsilon_rdp": epsilon.epsilon_rdp, "epsilon_true_curve": row.converted}
        | {"extrapolated": epsilon.extrapolated, "above": row.above, "seed": str(estimate.seed)}
    )


_PANEL_COLUMNS: Final = 4
_ORDER_TICKS: Final = (1, 2, 4, 8, 16)


def _draw_divergence_panel(axes: drawing.Axes, row: Row, side: int) -> None:
    estimate, truth = row.estimate, row.truth[side]
    alphas, value = estimate.alphas, estimate.value[side]
    resolved = estimate.resolved[side]
    axes.set_xscale("log")
    axes.plot(alphas, row.certified[side], color=GREEN, linewidth=1.2)
    if np.isfinite(truth).all():
        axes.plot(alphas, truth, color=INK, linewidth=0.9)
    else:
        words: dict[str, Any] = {"transform": axes.transAxes, "fontsize": drawing.SMALL}
        axes.text(0.98, 0.05, "closed form: infinite", color=INK, ha="right", **words)
    # Error bars of neighbouring orders would overlap, so every third is drawn.
    for kept, face in ((resolved, BLUE), (~resolved, WHITE)):
        kept = kept & np.isfinite(value)
        error = np.nan_to_num(estimate.std_error[side][kept])
        axes.errorbar(
            alphas[kept], value[kept], error, fmt="o", color=BLUE, markersize=2.2,
            markerfacecolor=face, markeredgewidth=0.5, elinewidth=0.6, errorevery=3,
        )  # fmt: skip
    _shade_unresolved_orders(axes, alphas, resolved)
    axes.set_ylim(*_panel_y_limits(row, side))
    drawing.style_axes(axes)
    drawing.set_ticks(axes.xaxis, [a for a in _ORDER_TICKS if a <= alphas[-1]])
    axes.set_title(f"{row.title}\n{DIRECTIONS[side]}", loc="left", fontsize=drawing.SMALL)


def _shade_unresolved_orders(axes: drawing.Axes, alphas: Any, resolved: Any) -> None:
    """Shade the orders at which the sample is too small for a reliable estimate."""
    logs = np.log(alphas)
    inner = (logs[1:] + logs[:-1]) / 2.0
    edges = np.exp([logs[0] - 0.06, *inner, logs[-1] + 0.06])
    for i in np.flatnonzero(~resolved):
        axes.axvspan(edges[i], edges[i + 1], color=GREY, alpha=0.16, linewidth=0, zorder=0)
    axes.set_xlim(edges[0], edges[-1])


def _panel_y_limits(row: Row, side: int) -> tuple[float, float]:
    """Return the limits of the vertical axis of a panel.

    All estimates and bounds are visible. The true curve may be cut off.
    """
    values = np.concatenate([row.estimate.value[side], row.certified[side]])
    values, truth = values[np.isfinite(values)], row.truth[side][np.isfinite(row.truth[side])]
    low, high = min(0.0, float(values.min())), max(0.1, float(values.max()))
    high = max(high, min(1.6 * high, float(truth.max(initial=0.0))))
    room = 0.08 * (high - low)
    return low - room, high + room


def _make_curve_legend() -> list[Any]:
    return [
        drawing.make_line("closed form", linewidth=0.9),
        drawing.make_mark("estimate, +- standard error", BLUE, "o", 3.5),
        drawing.make_mark("not resolved (hollow)", BLUE, "o", 3.5, markerfacecolor=WHITE),
        drawing.make_line("certified from below", GREEN, linewidth=1.2),
    ]
