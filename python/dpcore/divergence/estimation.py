"""Estimation of the Renyi and KL divergences between the laws of two samples."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, confidence_level, flag, integer, invalid, mistyped
from ..records import Floats, set_fields
from ..streams import Rng, threads_of, to_seed
from ..suggestions import explain_argument_errors
from . import reliability
from .certificates import certify, count_held_out, epsilon_lower
from .estimators import estimate_by_balls, estimate_by_k_nearest, estimate_by_paper
from .points import (
    ERRORS,
    Error,
    Groups,
    Points,
    Raw,
    ResamplingPlan,
    Scale,
    Task,
    find_points,
    plan_replicates,
)
from .record import Beside, Diagnostics, Estimate
from .score import CrossFit, cross_fit, estimate_from_scores
from .two_sample_tests import check_equality, group_sizes_depend_on_values_note, size_vs_values_p

Method = Literal["auto", "ball", "score", "poczos", "paper", "paper-literal"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
"""Allowed values of the argument `method` of `renyi`."""

KL_ONLY: Final = object()
"""Value of `alphas` that requests only order 1."""

_ORDER_RATIO: Final = 1.1
_MAX_DEFAULT_ORDER: Final = 32.0
_MIN_ERROR_BAR_ROWS: Final = 40
_MIN_HALVED_UNITS: Final = 4
_MIN_ATOM_SHARE: Final = 0.99
_MAX_BALL_DIMENSIONS: Final = 2
"""Method "auto" chooses "ball" up to this dimension, or if nearly all rows are repeated values."""

PLAN, FOLDS, HELD_OUT, CHECKS, DRAWN, BEYOND, GROUPS, SINGLE = range(8)
"""Purposes of random numbers. Each purpose has its own stream of random numbers."""

_MIN_SINGLE_GROUPS: Final = 40
_MAX_BALL_ROWS: Final = 10_000
_MAX_SIZE_RATIO: Final = 20
"""Factor in the limit on the number of rows of a set that "ball" uses. The limit is the larger of
`_MAX_BALL_ROWS` and this factor times the rows of the smaller set. If "ball" is only the comparison
method, the limit is `_MAX_BALL_ROWS`.
"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Request:
    """Checked arguments of one estimate of Renyi divergences, with defaults filled in.

    Attributes:
        points: the rows of both samples.
        method: name of the method that computes the values, never "auto".
        checks: True if the estimate is tested on held-out rows. It is False if the caller wants no
            tests, or if a sample has fewer than 4 rows (or groups).
        begun: time at which the estimate began, in seconds of `time.perf_counter`.
        wanted: the orders that the caller requested, shape (n_alpha,).
        grid: orders at which the reliability of the estimate is judged, ascending. They include the
            orders in `wanted`.
        stated: True if the caller stated that rows (or groups) are independent.
        seed: seed with which the caller can repeat the estimate.
        notes: remarks about the arguments, as sentences that the report prints.
    """

    points: Points
    alphas: Any
    k: int
    method: str
    error: str | None
    certified: bool
    rows: str | None
    confidence: float
    rng: Rng
    threads: int | None
    progress: bool | None
    score: Callable[..., Any] | None
    checks: bool
    replicates: int | None
    self_neighbour: bool
    begun: float
    wanted: Floats = field(init=False)
    grid: Floats = field(init=False)
    stated: bool = field(init=False)
    seed: int = field(init=False)
    notes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments; raise a ValueError or TypeError that names the wrong argument."""
        points, score = self.points, self.score
        asked = choice("method", self.method, METHODS)
        for name in ("certified", "checks", "self_neighbour"):
            flag(name, getattr(self, name))
        if score is not None and not callable(score):
            raise mistyped("score", "None or a callable", score)
        scores = self.checks or self.certified or asked in ("auto", "score")
        if score is not None and not scores:
            raise invalid("score", "None where no score is used (checks=False)", score)
        k = _check_neighbour_count(self.k, points)
        orders, grid, notes = _orders_and_finer(self.alphas, _max_order(asked, points, k), k)
        stated = _is_independence_stated(self.rows, points, self.certified)
        checks = self.checks and min(points.unit_counts) >= _MIN_HALVED_UNITS
        if self.checks and not checks:
            few = f"no checks: a set of fewer than {_MIN_HALVED_UNITS} rows or groups has no halves"
            notes += (few,)
        if points.scale is None:
            # Notes on coordinates with a much larger variance than the others.
            for note in points.notes:
                warnings.warn(note, stacklevel=5)
        method = _resolve_method(points) if asked == "auto" else asked
        if self.error is not None:
            choice("error", self.error, ERRORS)
            _warn_rough_error_bars(points, k, method == "score" and score is None)
        settings = {
            "method": method, "k": k, "wanted": orders, "grid": grid, "notes": notes,
            "stated": stated, "checks": checks, "confidence": confidence_level(self.confidence),
            "seed": to_seed(self.rng), "threads": threads_of(self.threads),
        }  # fmt: skip
        set_fields(self, **settings)

    def with_points(self, points: Points) -> Request:
        """Return a copy of this request with other rows. The arguments are not checked again."""
        other = copy.copy(self)
        object.__setattr__(other, "points", points)
        return other

    def make_generator(self, purpose: int) -> np.random.Generator:
        """Return a random generator that depends only on the seed of this request and on `purpose`.

        `purpose` is a number that stands for one use of random numbers, such as the split into
        folds.
        """
        return np.random.default_rng((self.seed, purpose))

    def plan(self, sizes: tuple[int, int], groups: Groups) -> ResamplingPlan | None:
        """Return the plan to resample rows, or None if no standard errors were requested."""
        return plan_replicates(
            self.error, sizes, groups, self.make_generator(PLAN), self.replicates
        )


def _resolve_method(points: Points) -> str:
    """Choose "ball" in few dimensions, or if 99 % of the rows are repeated values; else "score"."""
    if points.dim <= _MAX_BALL_DIMENSIONS:
        return "ball"
    m0, m1 = points.multiplicity
    # The ball's rule for atoms (5 other rows at a point), in each direction.
    atom = ((m0 > 0) & (np.maximum(m0 - 1, m1) >= 5)) | ((m1 > 0) & (np.maximum(m1 - 1, m0) >= 5))
    mostly = (m0 + m1)[atom].sum() >= _MIN_ATOM_SHARE * sum(points.sizes)
    return "ball" if mostly else "score"


def _check_neighbour_count(requested: Any, points: Points) -> int:
    k = integer("k", requested, 1)
    smaller = min(points.sizes)
    if k > smaller:
        raise invalid("k", f"at most {smaller}, the rows of the smaller set", k)
    distinct = points.smaller_distinct_count(k)
    if k > distinct:
        warnings.warn(
            f"k = {k} exceeds the {distinct} distinct rows of a set: balls hold whole ties",
            stacklevel=6,
        )
    return k


def _warn_rough_error_bars(points: Points, k: int, fitted: bool) -> None:
    smaller = min(points.sizes)
    if smaller >= _MIN_ERROR_BAR_ROWS:
        return
    warning = f"error bars from {smaller} rows are rough: {_MIN_ERROR_BAR_ROWS} or more are needed"
    if fitted:
        rows = f"{reliability.rows_to_see_one_nat(points.dim, k, fitted):,}"
        warning += (
            f", and {rows} for a fitted score of {points.dim:,} numbers to see half of one nat"
        )
    warnings.warn(warning, stacklevel=6)


def _is_independence_stated(rows: Any, points: Points, certified: bool) -> bool:
    """Check `rows`; return True if the caller stated that rows, or groups, are independent."""
    if rows is not None and not (isinstance(rows, str) and rows == "independent"):
        raise invalid("rows", "None or 'independent'", rows)
    stated = rows is not None or all(groups is not None for groups in points.groups)
    if certified and not stated:
        need = (
            "'independent' for certified=True (every row drawn independently), or groups0 and "
            "groups1 given (one row of each group is counted)"
        )
        raise invalid("rows", need, rows)
    return stated


def _max_order(method: str, points: Points, k: int) -> float:
    """Return the largest order that both the method and the comparison method allow."""
    if method == "poczos":
        # At order k + 1 the constant of this method is infinite.
        return float(np.nextafter(k + 1, 0))
    return np.inf if method.startswith("paper") else float(min(*points.sizes, k + 1))


def _orders_and_finer(alphas: Any, limit: float, k: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return the requested orders, a finer grid of orders to judge the estimate, and notes."""
    usual = _ORDER_RATIO ** np.arange(1, 64)
    usual = usual[usual <= min(_MAX_DEFAULT_ORDER, limit)]
    if alphas is KL_ONLY:
        return np.ones(1), np.ones(1), ()
    if alphas is None:
        orders = np.concatenate([np.ones(1), usual])
        short = limit < _MAX_DEFAULT_ORDER
        note = f"orders stop at {orders[-1]:.3g}: the method allows at most {limit:g} here"
        return orders, orders, (note,) if short else ()
    orders = _check_positive_orders(alphas)
    if orders[-1] > limit:
        need = f"at most {limit:.15g} (both numbers of rows, and k + 1, below which poczos stays)"
        raise invalid("alphas", need, float(orders[-1]))
    # Beliefs need the curve between order 1 and the requested orders.
    finer = usual[usual <= min(max(orders[-1], _ORDER_RATIO), 1.0 + k)]
    lower = 1.0 / usual[usual <= 1.0 / orders[0]] if orders[0] < 1.0 else usual[:0]
    return orders, np.unique(np.concatenate([orders, np.ones(1), finer, lower])), ()


def _check_positive_orders(alphas: Any) -> Floats:
    try:
        orders = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        raise mistyped("alphas", "None or orders above 0", alphas) from None
    if orders.ndim != 1 or not len(orders):
        raise invalid("alphas", "one order or a row of them", alphas)
    wrong = orders[~(np.isfinite(orders) & (orders > 0.0))]
    if len(wrong):
        raise invalid("alphas", "finite orders above 0", float(wrong[0]))
    if (np.diff(orders) <= 0.0).any():
        raise invalid("alphas", "strictly ascending", orders.tolist())
    return orders


def run_estimate(request: Request) -> Estimate:
    """Compute the estimate of Renyi divergences that a request describes.

    The function runs the requested method and tests, and computes certified lower bounds if
    requested. Then the function judges how reliable each value is.
    """
    points = request.points
    fit = None
    if request.checks or request.method == "score":
        fit = cross_fit(points, request.make_generator(FOLDS), request.score)
    used = _select_sample_rows_for_method(request, request.method)
    raw = _run_method(request, request.method, used, fit)
    # The method for comparison: the ball next to a score, otherwise the score.
    other, beside = "ball" if request.method == "score" else "score", None
    if request.checks:
        beside = _run_method(request, other, _select_sample_rows_for_method(request, other), fit)
    held_out = certificate = checked = None
    size_p = size_vs_values_p(points, request.make_generator(GROUPS))
    if request.checks or request.certified:
        grouped = any(groups is not None for groups in points.groups)
        held_out = count_held_out(
            points.unscaled, request.make_generator(HELD_OUT), request.score, grouped
        )
        if request.certified:
            certificate = certify(held_out, request.grid, request.confidence)
    shown = None if certificate is None else certificate.at(request.wanted)
    if request.checks and fit is not None and held_out is not None:
        lower = epsilon_lower(held_out, 0.0, request.confidence) if request.stated else None
        checked = replace(
            check_equality(points, fit, request.make_generator(CHECKS), request.confidence),
            certified=None if shown is None else shown.bound,
            epsilon_lower=lower,
            size_p=size_p,
        )
    score = beside if other == "score" else None
    if points.identical and certificate is None:
        judged = reliability.judge_as_zero(request.grid)
    else:
        case = reliability.Case(
            alphas=request.grid,
            raw=raw,
            sizes=used.sizes,
            k=request.k,
            certified=None if certificate is None else certificate.bound,
            beside=score,
            above=_ball_to_compare(request, beside, size_p) if other == "ball" else None,
            energy_p=np.nan if checked is None else checked.energy_p,
            outside=_describe_outside_rows(request, fit),
            dim=points.dim,
            fitted=request.method == "score",
            inconsistent=request.method.startswith("paper"),
            asked=np.isin(request.grid, request.wanted),
        )
        judged = reliability.judge_estimate(case)
    notes = _list_notes(request, raw, used, fit, score, size_p)
    figures = {"checks": checked, "held_out": held_out, "notes": notes, "certificate": shown}
    return _make_estimate(
        request, raw, judged, None if beside is None else (other, beside), figures
    )


def _select_sample_rows_for_method(request: Request, method: str) -> Points:
    """Select the rows that a method uses.

    In two or more dimensions, the method "ball" uses at most a limited number of rows of each set,
    drawn at random. The limit mainly affects the larger set. This limit costs little accuracy,
    because the smaller set mainly determines the error. It saves time, because the search time is
    proportional to the product of the numbers of rows.
    """
    points = request.points
    if method != "ball" or points.dim == 1 or points.identical:
        return points
    most = _MAX_SIZE_RATIO * min(points.sizes) if method == request.method else 0
    enough = max(_MAX_BALL_ROWS, most)
    return points.draw_up_to((enough, enough), request.make_generator(DRAWN))


def _run_method(request: Request, method: str, points: Points, fit: CrossFit | None) -> Raw:
    grid, k = request.grid, request.k
    if request.points.identical:
        return _make_zero_estimate(request)
    if method == "score":
        assert fit is not None
        return estimate_from_scores(fit, request.points, grid, k, request.plan, request.threads)
    plan, threads = request.plan(points.sizes, points.groups), threads_of(request.threads)
    task = Task(points, grid, k, plan, threads, request.progress)
    if method == "ball":
        return estimate_by_balls(task)
    if method == "poczos":
        return estimate_by_k_nearest(task)
    literal = method == "paper-literal"
    return estimate_by_paper(task, self_neighbour=request.self_neighbour, literal=literal)


def _ball_to_compare(request: Request, ball: Raw | None, size_p: float | None) -> Raw | None:
    """Return the estimate by "ball" with which an estimate by "score" is compared.

    Rows of one group are often near each other. If they counted as neighbours, the estimate by
    "ball" would be too large. With groups, the estimate therefore uses one random row of each
    group. The function returns None if there are few groups, or if the law of one random row of
    each group differs from the law of all rows.
    """
    points = request.points
    if ball is None or points.identical or points.unit_counts == points.sizes:
        return ball
    if group_sizes_depend_on_values_note(size_p) or min(points.unit_counts) < max(
        request.grid[-1], _MIN_SINGLE_GROUPS
    ):
        return None
    few = request.with_points(points.draw_one_per_group(request.make_generator(SINGLE)))
    return _run_method(few, "ball", _select_sample_rows_for_method(few, "ball"), None)


def _describe_outside_rows(request: Request, fit: CrossFit | None) -> tuple[str | None, str | None]:
    """Describe in words the rows of each set that lie outside the region of the other set."""
    if request.points.identical:
        return None, None
    scores, rng = fit if request.method == "score" else None, request.make_generator(BEYOND)
    return reliability.describe_far_rows(request.points, scores, rng, threads_of(request.threads))


def _list_notes(
    request: Request,
    raw: Raw,
    used: Points,
    fit: CrossFit | None,
    score: Raw | None,
    size_p: float | None,
) -> tuple[str, ...]:
    """List the report's notes on the rows, the request, the method and the estimates."""
    points = request.points
    notes = [*points.notes, *request.notes, *raw.notes]
    if used.sizes != points.sizes:
        notes.append(
            f"the ball is taken on {used.sizes[0]} and {used.sizes[1]} rows drawn at random: the "
            "smaller set decides the error"
        )
    rows, kind = min(points.sizes), None if fit is None else fit.kind
    if request.method == "score" and kind == "logistic" and rows < 2 * points.dim:
        notes.append(reliability.few_fitted_rows_note(rows, points.dim, request.k))
    notes += group_sizes_depend_on_values_note(size_p)
    value = raw.value[:, np.isin(request.grid, request.wanted)]
    if (value < 0.0).any():
        notes.append(
            f"{int((value < 0.0).sum())} of {value.size} values are negative, down to "
            f"{value.min():.3g}: kept as they are, though no divergence is below 0"
        )
    if score is not None and points.dim > 2:
        # In many dimensions, a local method may over-estimate.
        spread = np.hypot(*(np.nan_to_num(each.std_error, nan=0.0) for each in (raw, score)))
        if (raw.value > score.value + 2.0 * spread).any():
            notes.append(
                f"{request.method} gives more than the held-out score: either the score is blind "
                "to a difference, or the narrower law is over-estimated, as local methods do in "
                "many dimensions"
            )
    return tuple(notes)


def _make_estimate(
    request: Request,
    raw: Raw,
    judged: reliability.Judged,
    beside: tuple[str, Raw] | None,
    figures: dict[str, Any],
) -> Estimate:
    """Make the `Estimate` at the requested orders.

    `figures` holds the fields that do not depend on the order. `beside` is the name and the result
    of the comparison method.
    """
    at = np.searchsorted(request.grid, request.wanted)
    first = int(np.searchsorted(request.grid, 1.0))
    other = None
    if beside is not None:
        other = Beside(beside[0], beside[1].value[:, at], beside[1].std_error[:, at])
    # Jackknife replicates are not draws of the estimate: their running mean does not converge.
    drawn = None if request.error == "jackknife" else raw.replicates
    replicates = None if drawn is None else drawn[..., at]
    diagnostics = Diagnostics(
        raw.effective[:, at], raw.unseen_share, raw.atom_share, raw.rows_per_atom, raw.counted,
        request.points.scale, replicates,
    )  # fmt: skip
    asked = "method", "k", "error", "stated", "confidence", "seed"
    return Estimate(
        belief=judged.belief[:, at],
        reason=judged.reason,
        alphas=request.wanted,
        value=raw.value[:, at],
        std_error=judged.std_error[:, at],
        resolved=judged.resolved[:, at],
        ceiling=raw.ceiling[:, at],
        alpha_max=judged.alpha_max,
        kl=raw.value[:, first],
        sizes=request.points.sizes,
        dim=request.points.dim,
        depth=raw.depth,
        beside=other,
        diagnostics=diagnostics,
        seconds=time.perf_counter() - request.begun,
        **{name: getattr(request, name) for name in asked},
        **figures,
    )


def _make_zero_estimate(request: Request) -> Raw:
    """Make the result for two equal sets: all divergences are 0."""
    shape = (2, len(request.grid))
    return Raw(
        value=np.zeros(shape),
        std_error=np.zeros(shape) if request.error else np.full(shape, np.nan),
        depth=(request.k, request.k),
        ceiling=np.full(shape, np.nan),
        effective=np.full(shape, np.nan),
    )


@explain_argument_errors
def renyi(
    y0: Any,
    y1: Any,
    *,
    alphas: Any = None,
    k: int = 20,
    method: Method = "auto",
    error: Error | None = "jackknife",
    counts0: Any = None,
    counts1: Any = None,
    groups0: Any = None,
    groups1: Any = None,
    decimals: int | None = None,
    scale: Scale | None = None,
    certified: bool = False,
    rows: Literal["independent"] | None = None,
    confidence: float = 0.95,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool | None = None,
    score: Callable[..., Any] | None = None,
    checks: bool = True,
    replicates: int | None = None,
    self_neighbour: bool = False,
) -> Estimate:
    """Estimate the Renyi divergences between the distributions of two samples, in both directions.

    D_alpha(P0||P1) = ln E_P0[(dP0/dP1)^(alpha - 1)] / (alpha - 1), in nats. The result is an
    estimate, never a bound. Read the field `belief` of the result first. This field states how
    reliable each value is. No sample can bound a divergence from above. With `certified=True`, the
    function also computes a lower bound. In D(P||Q), the sample of P is called the numerator, and
    the sample of Q the denominator.

    The methods are:

    - "ball": For every row, take the ball around this row whose radius is the distance to the k-th
      nearest row of the other sample. Count the rows of each sample in this ball. The divergence is
      computed from these counts, with a correction by factorial moments. Repeated values are
      treated as atoms (values of positive probability). The method does not use the dimension or a
      volume. It is accurate in one and two dimensions and for discrete distributions. In more
      dimensions, its values are far too low.
    - "score": Fit a logistic regression on one half of the rows. The regression uses the
      coordinates and the squared norm, and maps each row to a number (the score). Then apply "ball"
      to the scores of the other half, exchange the halves, and average the two results. The average
      estimates the divergence of the scores. This divergence is at most D_alpha.
    - "auto": Use "ball" if the rows have at most two dimensions, or if 99 % of the rows are
      repeated values. Otherwise, use "score".
    - "poczos": the estimator of Poczos and Schneider, from ratios of distances to the k-th nearest
      rows.
    - "paper": the estimator of Gusain and Leith with two misprints corrected.
    - "paper-literal": the estimator of Gusain and Leith as printed. Its result is not a Renyi
      divergence.

    With `checks=True`, a comparison method also runs: "ball" if the method is "score", and "score"
    otherwise.

    The belief in a value is the first of these phrases that applies:

    - "refuted by its own certificate": A certified lower bound exceeds the value by more than 2
      standard errors.
    - "saturated": The value is infinite, or within ln 2 of the largest value that the method can
      give (`ceiling`). At orders of at least one, there is a second reason: more than 1 % of the
      rows of the numerator are repeated values that do not occur in the denominator. In one
      dimension, there is a third reason: more than about 5 % of the rows of the numerator lie
      outside the range of the denominator. For the method "score", the third reason is tested on
      the scores of the rows.
    - "not resolved at this alpha": One of the conditions below holds.
    - "estimate only": No test contradicts the value.

    A value is not resolved if one of these conditions holds:

    - The comparison method gives a larger value. The difference is more than 2 joint standard
      errors if the comparison method is "score", or more than 3 if it is "ball".
    - A test of P0 = P1 by the energy distance rejects at the level .01, but the value is not more
      than 2 standard errors above 0.
    - The order is at least one, and too many rows of the numerator lie beyond all rows of the
      denominator, in one coordinate or by their scores. A test at the level 1e-4 decides whether
      there are too many. The null hypothesis of this test is that the ratio of densities is
      constant near the outermost rows of the denominator.
    - The order is at least one, and too many rows of the numerator lie far from the denominator.
      For each row of the denominator, take the distance to the nearest other row of the
      denominator. A row of the numerator is far if its distance from the denominator is more than
      three times the largest of these distances. A test at the level 1e-4 decides whether there are
      too many far rows. The null hypothesis of this test is that the two distributions are equal.
    - The order is above `alpha_max`, a field of the result. At larger orders, the average over the
      rows depends on too few rows.
    - The value is less than 4 standard errors from 0, and the standard error is above .0125. The
      result then states how many rows would suffice.
    - There are repeated values, but on average a repeated value occurs fewer than 3 times, or fewer
      than 10 times for orders above one.
    - The method is "paper" or "paper-literal", which do not converge to a Renyi divergence.

    If rows have groups, the estimates and the tests concern the distribution of all rows. The
    certified bounds concern the distribution of one random row of each group. These two
    distributions differ if the size of a group depends on the values of its rows. A permutation
    test at the level .01 checks whether the size depends on the values. If the test rejects, the
    field `notes` of the result states this dependence.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,). float32 and float64 arrays are not
            converted. If only one sample is float32, it becomes float64. Integers and booleans
            become float64.
        y1: rows of the second sample, shape (n1, d) or (n1,).
        alphas: orders above 0, ascending. The divergence of order 1 is the KL divergence. The field
            `kl` of the result always holds the KL divergence. Defaults to 1 and the powers of 1.1
            up to 32, or up to the largest order that the method allows.
        k: number of nearest neighbours that the method uses, at least 1.
        method: "auto", "ball", "score", "poczos", "paper" or "paper-literal", as explained above.
        error: kind of standard errors: "jackknife" (each of 20 random parts of a sample is left out
            in turn), "subsample" (random halves of the rows) or "bootstrap" (rows drawn with
            replacement, as by Gusain and Leith). None gives no standard errors.
        counts0: number of times that each row of y0 occurs, shape (n0,). None means that each row
            occurs once.
        counts1: the same for the rows of y1, shape (n1,).
        groups0: label of each row of y0. Rows with the same label form a group. A group is never
            divided when rows are split or resampled, and a certified bound uses only one random row
            of each group.
        groups1: label of each row of y1. Equal labels in `groups0` and `groups1` do not make a
            common group.
        decimals: number of decimals to which all entries of y0 and y1 are first rounded. None means
            no rounding.
        scale: None (no scaling), "std" (divide each coordinate by its standard deviation, computed
            from both samples together) or "whiten" (transform the rows so that both samples
            together have the identity as covariance).
        certified: True to compute certified lower bounds on held-out rows. True requires `rows`, or
            `groups0` and `groups1`.
        rows: "independent" states that every row was drawn independently. dpcore cannot check this.
            None makes no statement.
        confidence: probability that all certified bounds of one direction hold.
        rng: seed or random generator for all random splits, permutations and resampling.
        threads: number of threads. Defaults to all cores.
        progress: True shows a progress bar, False does not. None shows the bar only on a terminal
            or in a notebook.
        score: function that replaces the logistic regression of "score". A function of two
            arguments (train0, train1) fits a score, and returns a function that maps rows to
            scores. A function of one argument is the score itself. It maps rows to scores, and must
            be fixed before the data are seen.
        checks: True to test the values on held-out rows, and to run the comparison method. False
            saves time. The method `epsilon` of the result then cannot use events on held-out rows.
        replicates: number of resampled data sets for "subsample" and "bootstrap". Defaults to 200.
        self_neighbour: True if the methods "paper" and "paper-literal" count a row as its own
            nearest neighbour.

    Returns:
        The estimate. Its arrays have shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0).

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for one of these reasons:

            - rows are not finite, or the samples differ in dimension;
            - a sample is empty, or has fewer than k rows;
            - an order is not above 0, or exceeds the method's limit (for "ball": min(n0, n1, k +
              1));
            - `certified` is True without `rows` and without groups.

    Warns:
        UserWarning: for one of these reasons:

            - k exceeds the number of distinct rows of a sample;
            - a sample has fewer than 40 rows, and `error` is not None;
            - the variance of one coordinate is more than 100 times the median variance;
            - the method is "paper-literal".

    Source:
        Poczos and Schneider (2011); Wang, Kulkarni and Verdu (2009); Gao, Kannan, Oh and Viswanath
        (2017) for the counts in balls; van Erven and Harremoes (2014), theorem 9, for scores and
        certified bounds; Gusain and Leith (2025).

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> y0, y1 = rng.normal(0.0, 1.0, 2000), rng.normal(1.0, 1.0, 2000)
        >>> estimate = renyi(y0, y1, alphas=[1.5, 2.0, 8.0], rng=1)
        >>> estimate.value.shape, estimate.belief[0].tolist()[::2]
        ((2, 3), ['estimate only', 'not resolved at this alpha'])
        >>> bool(np.all(np.abs(estimate.value[:, 1] - 1.0) < 0.3))
        True
    """
    begun = time.perf_counter()
    refuse_distributions(y0, y1)
    both = find_points(
        y0, y1, counts0=counts0, counts1=counts1, groups0=groups0, groups1=groups1,
        decimals=decimals, scale=scale,
    )  # fmt: skip
    request = Request(
        points=both, alphas=alphas, k=k, method=method, error=error, certified=certified, rows=rows,
        confidence=confidence, rng=rng, threads=threads, progress=progress, score=score,
        checks=checks, replicates=replicates, self_neighbour=self_neighbour, begun=begun,
    )  # fmt: skip
    return run_estimate(request)


def refuse_distributions(y0: Any, y1: Any) -> None:
    """Raise an error if y0 and y1 are probability vectors or distribution objects, not samples."""
    need = "rows of a sample, and no law: see dpcore.divergence.closed_forms"
    if all(hasattr(law, "pdf") or hasattr(law, "pmf") for law in (y0, y1)):
        raise mistyped("y0", f"{need}.gaussian_renyi and others", y0)
    if not all(isinstance(law, (list, tuple, np.ndarray)) for law in (y0, y1)):
        return
    try:
        p, q = (np.asarray(law, np.float64) for law in (y0, y1))
    except (OverflowError, TypeError, ValueError):
        return
    is_law = [law.ndim == 1 and law.size > 1 and (law >= 0.0).all() for law in (p, q)]
    if all(is_law) and p.size == q.size and max(abs(p.sum() - 1.0), abs(q.sum() - 1.0)) < 1e-9:
        raise invalid("y0", f"{need}.discrete_renyi([1.0], p, q)", y0)


@explain_argument_errors
def kl(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the Kullback-Leibler divergences between the distributions of two samples.

    KL(P0||P1) = E_P0[ln dP0/dP1], in nats. It is the limit of the Renyi divergence at order 1. The
    field `belief` of the result states how reliable each value is. For example, "estimate only"
    means that no test contradicts the value.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,).
        y1: rows of the second sample, shape (n1, d) or (n1,).
        **options: arguments of `renyi`, except `alphas`.

    Returns:
        The estimate at the single order 1. Its arrays have shape (2, 1): KL(P0||P1) and KL(P1||P0).

    Raises:
        TypeError: if an argument has the wrong type, or if `alphas` is given.
        ValueError: if rows are not finite, the samples differ in dimension, or another argument is
            out of range.

    Source:
        Wang, Kulkarni and Verdu (2009), and the sources of `renyi`.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> estimate = kl(rng.normal(0.0, 1.0, 2000), rng.normal(1.0, 1.0, 2000), rng=1)
        >>> estimate.value.round(1)  # both directions; 1/2 is true
        array([[0.5],
               [0.5]])
    """
    if "alphas" in options:
        raise mistyped("alphas", "left out (kl is the order 1)", options["alphas"])
    return renyi(y0, y1, alphas=KL_ONLY, **options)
