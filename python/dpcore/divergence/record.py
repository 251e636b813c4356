"""The record of an estimate: its values, how much of them to believe, and its epsilons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import delta_level, integer, invalid
from ..records import Flags, Floats, Record, Result
from ..report.rows import Row
from .certificates import Certificate, HeldOut, epsilon_hat, epsilon_lower
from .conversions import SEEN, Line, canonne_kamath_steinke, line
from .points import freeze_arrays
from .report import (
    draw_convergence,
    draw_estimate,
    epsilon_text,
    estimate_text,
    list_estimate_rows,
)
from .two_sample_tests import Checks, two_laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
class Epsilon(Record, word="Epsilon"):
    """Three figures for one delta, or none of them stands for another.

    Attributes:
        delta: the delta asked for.
        epsilon_lower: certified at `confidence`: the smallest epsilon at which (epsilon, delta)-DP
            is not refuted by a held-out event. None unless it is stated that rows are independent.
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
        replicates: estimates on resampled rows, shape (replicates, 2, n_alpha), or None for the
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
            delta: in [0, 1). It must be given.

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

    def _lines(self) -> list[Row]:
        return list_estimate_rows(self)

    def _plot(self, ax: Any) -> Figure:
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
        return draw_convergence(self, ax)

    def __repr__(self) -> str:
        """Return one line: D_1 in both directions, and the orders resolved."""
        first = " and ".join(f"{value:.4g}" for value in self.kl)
        orders = " and ".join("none" if a is None else f"{a:.4g}" for a in self.alpha_max)
        figures = f"D_1 = {first} nats, orders resolved to {orders}"
        return f"<Estimate by {self.method}: {figures}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report: belief first, then the curve, the checks and the seed."""
        return estimate_text(self)
