"""The record of an estimate: its values, how much of them to believe, and its epsilons.

With upper bounds on the divergences, such as the closed forms of a mechanism, both conversions of
a curve give upper bounds on epsilon. With estimates they give estimates, which bound nothing on
either side: the least of many figures favours the order whose divergence is most under-estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, delta_level, integer, invalid, numeric
from ..records import Flags, Floats, Record, Result
from ..suggestions import suggest_arguments
from .certificates import Certificate, HeldOut, epsilon_hat, epsilon_lower
from .points import freeze_arrays
from .two_sample_tests import Checks, two_laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_CurvePoint = tuple[float, float]

SEEN: Final = 10
"""Rows that a share of delta of the smaller set must hold for the sample to see that delta."""

_NO_ORDER = "no order above one is resolved in both directions: nothing to convert"
_INDEPENDENCE_NOT_STATED = (
    "epsilon_lower needs rows='independent', or groups0 and groups1: only independent rows or "
    "groups can be counted"
)
_TWO_LAWS = (
    "sizes of groups depend on values: epsilon_lower and epsilon_hat speak of one random row of "
    "each group, epsilon_rdp of all rows"
)
_NO_CHECKS = "epsilon_lower and epsilon_hat need held-out events: checks=True"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Converted(Record):
    """An epsilon from a curve of divergences, and the order that decided.

    Args:
        epsilon: at least 0; inf if no order gives a finite one.
        alpha: the order at which the least epsilon was found; None if none is finite.
        delta: the delta that it goes with.

    Example:
        >>> print(Converted(1.5, 8.0, 1e-5))
        epsilon 1.5 at delta 1e-05 (decided at alpha = 8)
    """

    epsilon: float
    alpha: float | None
    delta: float

    def __str__(self) -> str:
        """Return one line."""
        order = "no order decides" if self.alpha is None else f"decided at alpha = {self.alpha:.4g}"
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} ({order})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Line(Record, word="Line"):
    """A line xi + rho alpha above a curve of divergences, and its epsilon.

    Args:
        xi: intercept, at least 0.
        rho: slope, at least 0.
        epsilon: ``xi + rho a + ln(1/delta) / (a - 1)``.
        alpha: the a of that formula, between the least and the largest order given.
        delta: the delta that it goes with.

    Example:
        >>> print(Line(0.0, 0.5, 5.3, 5.8, 1e-5))
        epsilon 5.3 at delta 1e-05 (line 0 + 0.5 alpha, at alpha = 5.8)
    """

    xi: float
    rho: float
    epsilon: float
    alpha: float
    delta: float

    def __str__(self) -> str:
        """Return one line."""
        formula = f"line {self.xi:.4g} + {self.rho:.4g} alpha, at alpha = {self.alpha:.4g}"
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} ({formula})"


@suggest_arguments
def canonne_kamath_steinke(alphas: npt.ArrayLike, values: npt.ArrayLike, delta: float) -> Converted:
    """Return the least epsilon over the orders given, at one delta.

    ``D + ln(1 - 1/alpha) - ln(alpha delta) / (alpha - 1)``, D itself at order inf, never below 0;
    and 0 where ``delta^2 >= 1 - e^-D``, which is at least the squared total variation.

    Args:
        alphas: orders above 1, ascending, shape (n,); the last may be inf.
        values: the divergence of each order in nats, shape (n,), each the larger one of both
            directions; inf where nothing is known.
        delta: in (0, 1).

    Returns:
        epsilon with the order that decided. An upper bound if the values are; an estimate, on no
        known side of the truth, if they are estimates.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if orders are not above 1 and ascending, lengths differ, a value is NaN or
            -inf, or delta is out of range.

    Source:
        Canonne, Kamath and Steinke (2020), proposition 12; Balle et al. (2020), theorem 21. The
        zero: total variation^2 <= 1 - e^-KL (Bretagnolle and Huber 1979) and KL <= D.

    Example:
        >>> from dpcore.divergence.closed_forms import gaussian_mechanism
        >>> orders = 1.01 * 1.01 ** np.arange(400)
        >>> print(canonne_kamath_steinke(orders, gaussian_mechanism(orders, 1.0, 1.0), 1e-5))
        epsilon 4.72839 at delta 1e-05 (decided at alpha = 5.428)
    """
    a, d = _check_curve(alphas, values, unbounded=True)
    delta = confidence_level(delta, "delta")
    b = a - 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        # ln(1 - 1/a) as ln(b/a), and ln(a) + ln(delta): neither 1/a nor a delta is exact.
        cost = np.log1p(-1.0 / a) - (np.log(a) + math.log(delta)) / b
        none = delta * delta >= -np.expm1(-d)
    found = d + np.where(np.isinf(a), 0.0, cost)
    found = np.where(none, 0.0, np.maximum(found, 0.0))
    i = int(np.argmin(found))
    epsilon = float(found[i])
    return Converted(epsilon, None if math.isinf(epsilon) else float(a[i]), delta)


@suggest_arguments
def line(alphas: npt.ArrayLike, values: npt.ArrayLike, delta: float) -> Line:
    """Return the line above all given divergences that has the least epsilon.

    Among the lines xi + rho alpha with xi, rho >= 0 that no value exceeds, the one with the least
    ``xi + rho a + ln(1/delta) / (a - 1)``, ``a = clip(1 + sqrt(ln(1/delta) / rho), least order,
    largest order)``. At a given a this is linear in xi and rho, so the best line is a vertex of
    the lines allowed: level, through the origin, or an edge of the upper concave hull.

    Without xi >= 0 a steep line has an epsilon as far below 0 as one likes; without the clip the
    line speaks for orders beyond those given. Between two orders a curve may still lie above the
    line: take orders a tenth apart or closer. `canonne_kamath_steinke` has no such gap and is
    tighter.

    Args:
        alphas: finite orders above 1, ascending, shape (n,).
        values: the divergence of each order in nats, shape (n,), each the larger one of both
            directions; finite.
        delta: in (0, 1).

    Returns:
        The line and its epsilon. An upper bound where the line is above the divergences; an
        estimate, on no known side of the truth, if the values are estimates.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if orders are not above 1 and ascending, lengths differ, a value is not
            finite, or delta is out of range.

    Source:
        Bun and Steinke (2016), definition 1.1 and proposition 1.3, with the clip; Mironov (2017),
        proposition 3, for a single order.

    Example:
        >>> from dpcore.divergence.closed_forms import gaussian_mechanism
        >>> orders = 1.1 ** np.arange(1, 45)
        >>> print(line(orders, gaussian_mechanism(orders, 1.0, 1.0), 1e-5))
        epsilon 5.29853 at delta 1e-05 (line 0 + 0.5 alpha, at alpha = 5.799)
    """
    a, d = _check_curve(alphas, values, unbounded=False)
    delta = confidence_level(delta, "delta")
    price, found = -math.log(delta), []
    for xi, rho in _find_vertices(a, d):
        best = 1.0 + math.sqrt(price / rho) if rho > 0.0 else math.inf
        alpha = min(max(best, float(a[0])), float(a[-1]))
        found.append((xi + rho * alpha + price / (alpha - 1.0), xi, rho, alpha))
    epsilon, xi, rho, alpha = min(found)
    return Line(xi, rho, epsilon, alpha, delta)


def _find_vertices(a: Floats, d: Floats) -> list[tuple[float, float]]:
    """List (xi, rho) of the lines that may be best."""
    lines = [(max(0.0, float(d.max())), 0.0), (0.0, max(0.0, float((d / a).max())))]
    hull: list[_CurvePoint] = []
    for point in zip(a.tolist(), d.tolist(), strict=True):
        while len(hull) > 1 and _is_below_chord(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    for (x0, y0), (x1, y1) in pairwise(hull):
        rho = (y1 - y0) / (x1 - x0)
        # Of two roundings the larger: both ends stay below the line.
        xi = max(y0 - rho * x0, y1 - rho * x1)
        if rho >= 0.0 and xi >= 0.0:
            lines.append((xi, rho))
    return lines


def _is_below_chord(first: _CurvePoint, middle: _CurvePoint, last: _CurvePoint) -> bool:
    """Return True if the middle point is on or below the chord of the others."""
    rise, run = last[1] - first[1], last[0] - first[0]
    return (middle[1] - first[1]) * run <= rise * (middle[0] - first[0])


def _check_curve(alphas: Any, values: Any, unbounded: bool) -> tuple[Floats, Floats]:
    a, d = _read_numbers("alphas", alphas), _read_numbers("values", values)
    ends = a[:-1] if unbounded else a
    if not (np.isfinite(ends).all() and (a > 1.0).all() and (np.diff(a) > 0.0).all()):
        kind = "" if unbounded else "finite "
        raise invalid("alphas", f"{kind}orders above 1, ascending", alphas)
    if d.size != a.size:
        raise invalid("values", f"of length {a.size}, as alphas is", d.size)
    if np.isnan(d).any() or np.isneginf(d).any() or (not unbounded and np.isinf(d).any()):
        raise invalid("values", "numbers or inf" if unbounded else "finite numbers", values)
    return a, d


def _read_numbers(name: str, value: Any) -> Floats:
    requirement = "a non-empty vector of numbers"
    found = numeric(name, requirement, value, "uif")
    if found.ndim != 1 or found.size == 0:
        raise invalid(name, requirement, value)
    return found.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Epsilon(Record, word="Epsilon"):
    """Three figures for one delta; none of them stands for another.

    Attributes:
        delta: the delta asked for.
        epsilon_lower: certified at `confidence`: the smallest epsilon at which (epsilon, delta)-DP
            is not refuted by a held-out event. None where nobody said that rows are independent.
        epsilon_hat: the empirical loss of that event; a point estimate.
        epsilon_rdp: the conversion of the estimated curve (Canonne, Kamath and Steinke 2020),
            the larger direction: neither an upper nor a lower bound. None where no order above
            one is resolved in both directions.
        alpha: the order that decided `epsilon_rdp`.
        line: Gusain and Leith's line above the curve with its own epsilon, or None.
        confidence: of `epsilon_lower`.
        extrapolated: True if delta is below 10 over the smaller number of rows: no event of this
            sample can speak about it.
        reasons: a sentence for each figure that is None or needs a word.
    """

    delta: float
    epsilon_lower: float | None
    epsilon_hat: float | None
    epsilon_rdp: float | None
    alpha: float | None
    line: Line | None
    confidence: float
    extrapolated: bool
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the three figures as text, each with its description."""
        from .report import epsilon_text

        return epsilon_text(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beside(Record, word="Beside"):
    """The other method, on the same rows: `method`, `value` and `std_error` of shape (2, n_alpha).

    Attributes:
        method: "ball" or "score".
        value: its estimates in nats.
        std_error: their standard errors.
    """

    method: str
    value: Floats
    std_error: Floats

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "value", "std_error")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnostics(Record, word="Diagnostics"):
    """Diagnostics of the method and the rows.

    Attributes:
        effective: effective number of terms of each average, (sum w)^2 / sum w^2, shape
            (2, n_alpha); NaN where the method averages no weights.
        unseen_share: share of the numerator's rows on repeated values that the denominator does
            not have, per direction. Descriptive: it has no confidence limit.
        atom_share: share of each set's rows on repeated values that count as atoms.
        rows_per_atom: rows on repeated values over distinct repeated values; NaN without any.
        counted: what the search did: rescans, run_outs, replicates and the like.
        scale: None, "std" or "whiten".
        replicates: estimates on resampled rows, shape (replicates, 2, n_alpha); None for the
            jackknife.
    """

    effective: Floats
    unseen_share: Floats
    atom_share: Floats
    rows_per_atom: float
    counted: dict[str, int]
    scale: str | None = None
    replicates: Floats | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "effective", "unseen_share", "atom_share", "replicates")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate(Result, word="dpcore.divergence.estimate/1"):
    """Renyi divergences of two samples as estimated: never a bound in either direction.

    Arrays have shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0), in nats.

    Attributes:
        belief: how much to believe, for each order and direction, the first that applies of
            "refuted by its own certificate", "saturated", "not resolved at this alpha" and
            "estimate only".
        reason: one sentence on it.
        method: what gave the values.
        alphas: the orders, ascending, shape (n_alpha,); 1.0 is the KL divergence.
        value: the estimates, raw: negative ones are kept.
        std_error: their standard errors; NaN beyond `alpha_max` and where none was asked for.
        resolved: True where `belief` is "estimate only".
        ceiling: what the method gives if every ball holds all of the numerator.
        alpha_max: the largest order that each direction resolves, None if there is none.
        kl: D_1 in both directions, whatever `alphas` holds, shape (2,).
        sizes: rows of the two sets, repeated ones counted as often as they occur.
        dim: coordinates of a row.
        k: neighbours asked for.
        depth: rows of the other set that a ball reaches in each direction.
        error: "jackknife", "subsample", "bootstrap" or None.
        beside: the other method on the same rows, or None.
        checks: tests of P0 = P1 on held-out rows, or None.
        certificate: certified lower bounds of D_alpha, or None.
        held_out: counts of held-out events, from which `epsilon` certifies; or None.
        stated: True if the caller said that rows (or groups) are independent.
        confidence: of everything certified.
        diagnostics: what the method saw of the rows.
        notes: sentences for the reader.
        seed: what repeats the estimate.
        seconds: time taken; not compared.
    """

    _INSTEAD: ClassVar[str] = "belief (words, by direction and order)"

    belief: npt.NDArray[np.str_]
    reason: str
    method: str
    alphas: Floats
    value: Floats
    std_error: Floats
    resolved: Flags
    ceiling: Floats
    alpha_max: tuple[float | None, float | None]
    kl: Floats
    sizes: tuple[int, int]
    dim: int
    k: int
    depth: tuple[int, int]
    error: str | None
    beside: Beside | None
    checks: Checks | None
    certificate: Certificate | None
    held_out: HeldOut | None
    stated: bool
    confidence: float
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    seed: int
    seconds: float = field(compare=False, default=0.0)

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "belief", "alphas", "value", "std_error", "resolved", "ceiling", "kl")
        for name in ("value", "std_error", "resolved", "ceiling"):
            array = getattr(self, name)
            if array is not None and array.shape != (2, len(self.alphas)):
                raise invalid(name, f"of shape (2, {len(self.alphas)})", array.shape)

    @property
    def certified(self) -> Floats | None:
        """Certified lower bounds of D_alpha in both directions, shape (2, n_alpha), or None."""
        return None if self.certificate is None else self.certificate.bound

    @property
    def maximum(self) -> Floats:
        """The larger direction at each order, shape (n_alpha,); NaN where one is not resolved."""
        return np.where(self.resolved.all(axis=0), self.value.max(axis=0), np.nan)

    def epsilon(self, delta: float) -> Epsilon:
        """Compute three labelled figures on (epsilon, delta) from the two samples.

        Args:
            delta: in [0, 1); there is no default.

        Returns:
            `Epsilon`: certified from below, the plug-in of the same event, and the conversion of
            the estimated curve.

        Raises:
            TypeError: if delta is not a number.
            ValueError: if delta is not in [0, 1).

        Source:
            Canonne, Kamath and Steinke (2020), Proposition 12; Gusain and Leith (2025) for the
            line.
        """
        delta, reasons = delta_level(delta), []
        lower = hat = None
        if self.held_out is None:
            reasons.append(_NO_CHECKS)
        else:
            hat = epsilon_hat(self.held_out, delta, self.confidence)
            if self.stated:
                lower = epsilon_lower(self.held_out, delta, self.confidence)
            else:
                reasons.append(_INDEPENDENCE_NOT_STATED)
        if self.checks is not None and two_laws(self.checks.size_p):
            reasons.append(_TWO_LAWS)
        rdp, alpha, drawn = self._convert_curves(delta)
        if rdp is None:
            reasons.append("epsilon_rdp needs delta above 0" if delta == 0.0 else _NO_ORDER)
        least = SEEN / min(self.sizes)
        if delta < least:
            reasons.append(f"extrapolated: this sample sees delta from {least:.2g} on")
        level, beyond = self.confidence, delta < least
        return Epsilon(delta, lower, hat, rdp, alpha, drawn, level, beyond, tuple(reasons))

    def resolved_curve(self, direction: int) -> tuple[Floats, Floats]:
        """Return the orders above 1 up to the first unresolved one, and the curve to convert."""
        integer("direction", direction, 0, 1)
        above = self.alphas > 1.0
        kept = above & np.logical_and.accumulate(self.resolved[direction] | ~above)
        # D_alpha never falls with alpha and is never negative.
        values = np.maximum(self.value[direction][kept], 0.0)
        return self.alphas[kept], np.maximum.accumulate(values)

    def _convert_curves(self, delta: float) -> tuple[float | None, float | None, Line | None]:
        """Convert both directions from resolved orders above 1 only; return the larger values."""
        curves = [self.resolved_curve(direction) for direction in (0, 1)]
        if delta == 0.0 or not all(len(alphas) for alphas, _ in curves):
            return None, None, None
        direct = (canonne_kamath_steinke(*curve, delta) for curve in curves)
        larger = max(direct, key=lambda each: each.epsilon)
        drawn = max((line(*curve, delta) for curve in curves), key=lambda each: each.epsilon)
        return larger.epsilon, larger.alpha, drawn

    def _lines(self) -> list[tuple[str, str]]:
        from .report import list_estimate_rows

        return list_estimate_rows(self)

    def _plot(self, ax: Any) -> Figure:
        from .report import draw_estimate

        return draw_estimate(self, ax)

    def plot_convergence(self, ax: Any = None) -> Figure:
        """Draw running mean and standard deviation over bootstrap or subsampling replicates.

        Args:
            ax: a pair of matplotlib axes, one per direction, or one whose place both take; None
                makes a figure of pyplot, for `plt.show()`.

        Returns:
            The figure: how Gusain and Leith (2025) choose the number of replicates.

        Raises:
            ValueError: if the estimate has no replicates of that kind.
        """
        from .report import draw_convergence

        return draw_convergence(self, ax)

    def __repr__(self) -> str:
        """Return one line: D_1 in both directions, and the orders resolved."""
        first = " and ".join(f"{value:.4g}" for value in self.kl)
        orders = " and ".join("none" if a is None else f"{a:.4g}" for a in self.alpha_max)
        found = f"D_1 = {first} nats, orders resolved to {orders}"
        return f"<Estimate by {self.method}: {found}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report: belief first, then the curve, the checks and the seed."""
        from .report import estimate_text

        return estimate_text(self)
