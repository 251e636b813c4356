"""Estimation of Renyi and KL divergences from two samples: check arguments, make an `Estimate`."""

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
from ..streams import Rng, seed_of, threads_of
from ..suggestions import suggest_arguments
from . import reliability
from .certificates import certify, epsilon_lower, hold_out
from .estimators import estimate_by_balls, estimate_by_distances, estimate_by_paper
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
from .score import CrossFit, cross_fit, score_ball
from .two_sample_tests import check_equality, size_p_value, two_laws

Method = Literal["auto", "ball", "score", "poczos", "paper", "paper-literal"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
"""Values that `method=` may have."""

KL_ONLY: Final = object()
"""Value of `alphas` that requests only order 1."""

_ORDER_RATIO: Final = 1.1
_MAX_DEFAULT_ORDER: Final = 32.0
_MIN_ERROR_BAR_ROWS: Final = 40
_MIN_HALVED_UNITS: Final = 4
_MIN_ATOM_SHARE: Final = 0.99
_MAX_BALL_DIMENSIONS: Final = 2
"""Method "auto" chooses "ball" up to this many dimensions, or from this share of rows on atoms."""

PLAN, FOLDS, HELD_OUT, CHECKS, DRAWN, BEYOND, GROUPS, SINGLE = range(8)
"""Purposes of random numbers; each has its own stream."""

_MIN_SINGLE_GROUPS: Final = 40
_MAX_BALL_ROWS: Final = 10_000
_MAX_SIZE_RATIO: Final = 20
"""Factor in the limit on the rows of a set that the ball uses. The limit is the larger of
`_MAX_BALL_ROWS` and this factor times the rows of the smaller set. If the ball is only shown for
comparison: `_MAX_BALL_ROWS`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Request:
    """Checked and completed arguments of an estimate, as in `renyi`.

    Attributes:
        points: both sets of rows.
        method: method that computes the values; "auto" is replaced by the chosen method.
        checks: True if the held-out tests run. It is also False if a set is too small to be split.
        begun: start of the estimate, in seconds of `time.perf_counter`.
        wanted: requested orders, shape (n_alpha,).
        grid: orders at which beliefs are decided, ascending; includes the requested orders.
        stated: True if the caller stated that rows (or groups) are independent.
        seed: seed that repeats the estimate.
        notes: sentences for the reader.
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
        """Check the arguments; a ValueError or TypeError names the wrong argument."""
        points, score = self.points, self.score
        asked = choice("method", self.method, METHODS)
        for name in ("certified", "checks", "self_neighbour"):
            flag(name, getattr(self, name))
        if score is not None and not callable(score):
            raise mistyped("score", "None or a callable", score)
        scores = self.checks or self.certified or asked in ("auto", "score")
        if score is not None and not scores:
            raise invalid("score", "None where no score is used (checks=False)", score)
        k = _choose_neighbours(self.k, points)
        orders, grid, notes = _read_order_grid(self.alphas, _max_order(asked, points, k), k)
        stated = _states_independence(self.rows, points, self.certified)
        checks = self.checks and min(points.units) >= _MIN_HALVED_UNITS
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
            _warn_few_rows(points, k, method == "score" and score is None)
        settings = {
            "method": method, "k": k, "wanted": orders, "grid": grid, "notes": notes,
            "stated": stated, "checks": checks, "confidence": confidence_level(self.confidence),
            "seed": seed_of(self.rng), "threads": threads_of(self.threads),
        }  # fmt: skip
        set_fields(self, **settings)

    def on(self, points: Points) -> Request:
        """Return the same request for other rows, without a new check."""
        other = copy.copy(self)
        object.__setattr__(other, "points", points)
        return other

    def stream(self, purpose: int) -> np.random.Generator:
        """Return the random number generator for one purpose."""
        return np.random.default_rng((self.seed, purpose))

    def plan(self, sizes: tuple[int, int], groups: Groups) -> ResamplingPlan | None:
        """Make the plan by which the rows of two sets are resampled."""
        return plan_replicates(self.error, sizes, groups, self.stream(PLAN), self.replicates)


def _resolve_method(points: Points) -> str:
    """Choose "ball" in few dimensions or if 99 % of the rows are on atoms; otherwise "score"."""
    if points.dim <= _MAX_BALL_DIMENSIONS:
        return "ball"
    m0, m1 = points.multiplicity
    # The ball's rule for atoms (5 other rows at a point), in each direction.
    atom = ((m0 > 0) & (np.maximum(m0 - 1, m1) >= 5)) | ((m1 > 0) & (np.maximum(m1 - 1, m0) >= 5))
    mostly = (m0 + m1)[atom].sum() >= _MIN_ATOM_SHARE * sum(points.sizes)
    return "ball" if mostly else "score"


def _choose_neighbours(requested: Any, points: Points) -> int:
    k = integer("k", requested, 1)
    smaller = min(points.sizes)
    if k > smaller:
        raise invalid("k", f"at most {smaller}, the rows of the smaller set", k)
    distinct = points.distinct(k)
    if k > distinct:
        warnings.warn(
            f"k = {k} exceeds the {distinct} distinct rows of a set: balls hold whole ties",
            stacklevel=6,
        )
    return k


def _warn_few_rows(points: Points, k: int, fitted: bool) -> None:
    smaller = min(points.sizes)
    if smaller >= _MIN_ERROR_BAR_ROWS:
        return
    warning = f"error bars from {smaller} rows are rough: {_MIN_ERROR_BAR_ROWS} or more are needed"
    if fitted:
        rows = f"{reliability.to_see(points.dim, k, fitted):,}"
        warning += (
            f", and {rows} for a fitted score of {points.dim:,} numbers to see half of one nat"
        )
    warnings.warn(warning, stacklevel=6)


def _states_independence(rows: Any, points: Points, certified: bool) -> bool:
    """Check `rows`; return True if the caller stated which rows or groups are independent."""
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
    """Return the largest order that the method and the method shown for comparison allow."""
    if method == "poczos":
        # At order k + 1 the constant of this method is infinite.
        return float(np.nextafter(k + 1, 0))
    return np.inf if method.startswith("paper") else float(min(*points.sizes, k + 1))


def _read_order_grid(alphas: Any, limit: float, k: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return the requested orders, and the finer grid on which beliefs are decided."""
    usual = _ORDER_RATIO ** np.arange(1, 64)
    usual = usual[usual <= min(_MAX_DEFAULT_ORDER, limit)]
    if alphas is KL_ONLY:
        return np.ones(1), np.ones(1), ()
    if alphas is None:
        orders = np.concatenate([np.ones(1), usual])
        short = limit < _MAX_DEFAULT_ORDER
        note = f"orders stop at {orders[-1]:.3g}: the method allows at most {limit:g} here"
        return orders, orders, (note,) if short else ()
    orders = _check_orders(alphas)
    if orders[-1] > limit:
        need = f"at most {limit:.15g} (both numbers of rows, and k + 1, below which poczos stays)"
        raise invalid("alphas", need, float(orders[-1]))
    # Beliefs need the curve between order 1 and the requested orders.
    finer = usual[usual <= min(max(orders[-1], _ORDER_RATIO), 1.0 + k)]
    lower = 1.0 / usual[usual <= 1.0 / orders[0]] if orders[0] < 1.0 else usual[:0]
    return orders, np.unique(np.concatenate([orders, np.ones(1), finer, lower])), ()


def _check_orders(alphas: Any) -> Floats:
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
    """Run the chosen method, the other method, the checks and the certificate; judge the result."""
    points = request.points
    fit = None
    if request.checks or request.method == "score":
        fit = cross_fit(points, request.stream(FOLDS), request.score)
    used = _select_points(request, request.method)
    raw = _run_method(request, request.method, used, fit)
    # The method for comparison: the ball next to a score, otherwise the score.
    other, beside = "ball" if request.method == "score" else "score", None
    if request.checks:
        beside = _run_method(request, other, _select_points(request, other), fit)
    held_out = certificate = checked = None
    size_p = size_p_value(points, request.stream(GROUPS))
    if request.checks or request.certified:
        grouped = any(groups is not None for groups in points.groups)
        held_out = hold_out(points.unscaled, request.stream(HELD_OUT), request.score, grouped)
        if request.certified:
            certificate = certify(held_out, request.grid, request.confidence)
    shown = None if certificate is None else certificate.at(request.wanted)
    if request.checks and fit is not None and held_out is not None:
        lower = epsilon_lower(held_out, 0.0, request.confidence) if request.stated else None
        checked = replace(
            check_equality(points, fit, request.stream(CHECKS), request.confidence),
            certified=None if shown is None else shown.bound,
            epsilon_lower=lower,
            size_p=size_p,
        )
    score = beside if other == "score" else None
    if points.identical and certificate is None:
        judged = reliability.exact_zero(request.grid)
    else:
        case = reliability.Case(
            alphas=request.grid,
            raw=raw,
            sizes=used.sizes,
            k=request.k,
            certified=None if certificate is None else certificate.bound,
            beside=score,
            above=_choose_ball_to_compare(request, beside, size_p) if other == "ball" else None,
            energy_p=np.nan if checked is None else checked.energy_p,
            outside=_describe_outside(request, fit),
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


def _select_points(request: Request, method: str) -> Points:
    """Select the rows that a method uses.

    The ball uses a limited number of rows of the larger set. The smaller set decides the error,
    but the search time is proportional to both sizes.
    """
    points = request.points
    if method != "ball" or points.dim == 1 or points.identical:
        return points
    most = _MAX_SIZE_RATIO * min(points.sizes) if method == request.method else 0
    enough = max(_MAX_BALL_ROWS, most)
    return points.drawn((enough, enough), request.stream(DRAWN))


def _run_method(request: Request, method: str, points: Points, fit: CrossFit | None) -> Raw:
    grid, k = request.grid, request.k
    if request.points.identical:
        return _make_zero(request)
    if method == "score":
        assert fit is not None
        return score_ball(fit, request.points, grid, k, request.plan, request.threads)
    plan, threads = request.plan(points.sizes, points.groups), threads_of(request.threads)
    task = Task(points, grid, k, plan, threads, request.progress)
    if method == "ball":
        return estimate_by_balls(task)
    if method == "poczos":
        return estimate_by_distances(task)
    literal = method == "paper-literal"
    return estimate_by_paper(task, self_neighbour=request.self_neighbour, literal=literal)


def _choose_ball_to_compare(request: Request, ball: Raw | None, size_p: float | None) -> Raw | None:
    """Return the ball estimate to compare with a score, or None if the two are not comparable.

    Rows of a group are near each other; as neighbours they would raise the ball's estimate. The
    ball is therefore computed on one row of each group, if these have the same law as all rows.
    """
    points = request.points
    if ball is None or points.identical or points.units == points.sizes:
        return ball
    if two_laws(size_p) or min(points.units) < max(request.grid[-1], _MIN_SINGLE_GROUPS):
        return None
    few = request.on(points.single(request.stream(SINGLE)))
    return _run_method(few, "ball", _select_points(few, "ball"), None)


def _describe_outside(request: Request, fit: CrossFit | None) -> tuple[str | None, str | None]:
    """Describe in words the rows of each set that lie outside the other set."""
    if request.points.identical:
        return None, None
    scores, rng = fit if request.method == "score" else None, request.stream(BEYOND)
    return reliability.find_outside_units(request.points, scores, rng, threads_of(request.threads))


def _list_notes(
    request: Request,
    raw: Raw,
    used: Points,
    fit: CrossFit | None,
    score: Raw | None,
    size_p: float | None,
) -> tuple[str, ...]:
    """List notes for the reader on the rows, the request, the method and its values."""
    points = request.points
    notes = [*points.notes, *request.notes, *raw.notes]
    if used.sizes != points.sizes:
        notes.append(
            f"the ball is taken on {used.sizes[0]} and {used.sizes[1]} rows drawn at random: the "
            "smaller set decides the error"
        )
    rows, kind = min(points.sizes), None if fit is None else fit.kind
    if request.method == "score" and kind == "logistic" and rows < 2 * points.dim:
        notes.append(reliability.fitting_note(rows, points.dim, request.k))
    notes += two_laws(size_p)
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
    """Make the estimate at the requested orders; `figures` holds the fields without orders."""
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


def _make_zero(request: Request) -> Raw:
    """Make the result that every method has for two equal sets."""
    shape = (2, len(request.grid))
    return Raw(
        value=np.zeros(shape),
        std_error=np.zeros(shape) if request.error else np.full(shape, np.nan),
        depth=(request.k, request.k),
        ceiling=np.full(shape, np.nan),
        effective=np.full(shape, np.nan),
    )


@suggest_arguments
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
    """Estimate the Renyi divergences between the laws of two samples, in both directions.

    D_alpha(P0||P1) = ln E_P0[(dP0/dP1)^(alpha - 1)] / (alpha - 1), in nats. The result is an
    estimate, never a bound: read `belief` first. No sample can bound a divergence from above;
    `certified=True` also computes a bound from below.

    Methods. "ball" draws a ball around every row, up to the k-th nearest row of the other set. It
    counts the rows of each set in the ball and corrects the counts by factorial moments. Repeated
    values are treated as atoms, that is, as values of positive probability. It does not use the
    dimension or a volume. It is accurate in one and two dimensions and for discrete laws, and far
    too low in more dimensions. "score" fits a logistic score of the coordinates and their squared
    norm on one half of the rows. It applies "ball" to the scores of the other half, then exchanges
    the halves. It estimates the divergence of the scores, which is at most D_alpha. "auto" is
    "ball" up to two dimensions or if 99 % of the rows are repeated values; otherwise it is "score".
    The result of the method that is not chosen is also shown. "poczos" is Poczos and Schneider's
    ratio of k-th-neighbour distances. "paper" is Gusain and Leith's estimator without its two
    misprints. "paper-literal" is the estimator as printed, which is not a Renyi divergence.

    Belief. "estimate only" means that no check contradicts the value. "saturated" means that more
    than 5 % of the rows lie outside the other set, or that the value is within ln 2 of its ceiling.
    "not resolved at this alpha" means that one of these holds:

    - The method shown for comparison gives a larger value: a held-out score by 2 joint standard
      errors, or the ball by 3.
    - The energy test rejects P0 = P1 at .01, but the value is within 2 standard errors of 0. For
      equal laws this test rejects one time in a hundred.
    - The order is at least one, and rows of the numerator lie outside the other set. Either these
      are more rows than a constant ratio of densities at the edge of the other set explains, or
      they are farther from it than three times its largest gap (each tested at 1e-4).
    - The order is beyond `alpha_max`.
    - The value cannot be distinguished from 0. The number of rows that would suffice is given.
    - Repeated values have too few rows.

    Groups. Estimates and tests concern the law of all rows; certificates concern the law of one
    random row of each group. If group sizes depend on values (a permutation test at .01), these two
    laws differ, and a note states it.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,). float32 and float64 are not converted;
            integers and booleans become float64.
        y1: rows of the second sample, shape (n1, d) or (n1,).
        alphas: orders above 0, ascending. D_1 is the KL divergence, which is always in
            `Estimate.kl`. Defaults to 1 and 1.1^i up to 32, or up to the method's largest order.
        k: number of neighbours, at least 1.
        method: one of `METHODS`.
        error: kind of standard errors: "jackknife" (20 groups of rows deleted in turn), "subsample"
            (half of the rows) or "bootstrap" (as in the paper). None gives no errors.
        counts0: number of times that each row of y0 occurs, shape (n0,). None means once each.
        counts1: the same for y1.
        groups0: label of each row of y0. Rows with one label stay together in folds and replicates,
            and a certificate counts one of them.
        groups1: the same for y1.
        decimals: number of decimals to which rows are first rounded. None means no rounding.
        scale: None, "std" (divide each coordinate by its pooled standard deviation) or "whiten".
        certified: True to compute certified lower bounds on held-out rows. It needs `rows`, or
            `groups0` and `groups1`.
        rows: "independent" if every row was drawn independently. It must be stated explicitly.
        confidence: confidence of each certified bound, in each direction.
        rng: seed or generator for folds, groups, permutations and replicates.
        threads: number of threads. Defaults to all cores.
        progress: True shows progress, False does not. None shows it on a terminal or in a notebook.
        score: score that replaces the logistic score. It is a function of (train0, train1) that
            returns a function of rows, or a function of rows that was fixed before the data were
            seen.
        checks: False to skip, for speed, the held-out tests, the score shown for comparison and
            the event of `Estimate.epsilon`.
        replicates: number of replicates of "subsample" and "bootstrap". Defaults to 200.
        self_neighbour: True to count a row as its own neighbour in "paper" and "paper-literal".

    Returns:
        The estimate. Arrays have shape (2, n_alpha); row 0 is D(P0||P1), row 1 is D(P1||P0).

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: for one of these reasons:

            - rows are not finite, or the sets differ in dimension;
            - a set is empty or smaller than k;
            - an order is not above 0, or exceeds the method's limit (for "ball": min(n0, n1, k +
              1));
            - `certified` is True without `rows` and without groups.

    Warns:
        UserWarning: for one of these reasons:

            - k exceeds the number of distinct rows of a set;
            - a set has fewer than 40 rows, and `error` is not None;
            - the variance of one coordinate is far above the variances of the others;
            - the method is "paper-literal".

    Source:
        Poczos and Schneider (2011); Wang, Kulkarni and Verdu (2009); Gao, Kannan, Oh and Viswanath
        (2017) for counting in mixtures; van Erven and Harremoes (2014), theorem 9, on which scores
        and certificates rest; Gusain and Leith (2025).

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
    refuse_laws(y0, y1)
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


def refuse_laws(y0: Any, y1: Any) -> None:
    """Raise an error if the arguments are probability vectors or distributions, not samples."""
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


@suggest_arguments
def kl(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the Kullback-Leibler divergences between the laws of two samples.

    KL(P0||P1) = E_P0[ln dP0/dP1], the limit of D_alpha at order 1. Beliefs follow the rules of
    `renyi`.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,).
        y1: rows of the second sample, shape (n1, d) or (n1,).
        **options: options of `renyi`, except `alphas`.

    Returns:
        The estimate at the single order 1; arrays have shape (2, 1).

    Raises:
        TypeError: if an argument is of the wrong kind, or `alphas` is given.
        ValueError: as in `renyi`.

    Source:
        Wang, Kulkarni and Verdu (2009); otherwise as in `renyi`.

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
