"""Records of an estimate: its values, the belief in each value, and the epsilons from it."""

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
    "sizes of groups depend on values: epsilon_lower and epsilon_hat concern one random row of "
    "each group, epsilon_rdp of all rows"
)
_NO_CHECKS = "epsilon_lower and epsilon_hat need held-out events: checks=True"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Epsilon(Record, word="Epsilon"):
    """Three separate figures on epsilon at one delta, which cannot replace each other.

    Attributes:
        delta: requested delta.
        epsilon_lower: certified lower bound at `confidence`: the smallest epsilon at which a
            held-out event does not refute (epsilon, delta)-DP. None unless the caller stated that
            rows are independent.
        epsilon_hat: empirical loss of that event; a point estimate.
        epsilon_rdp: conversion of the estimated curve (Canonne, Kamath and Steinke 2020), the
            larger of the two directions; neither an upper nor a lower bound. None if no order above
            one is resolved in both directions.
        alpha: order at which `epsilon_rdp` was found.
        line: Gusain and Leith's line above the curve with its own epsilon, or None.
        confidence: confidence of `epsilon_lower`.
        extrapolated: True if delta is below 10 divided by the smaller number of rows; no event of
            this sample then gives evidence at this delta.
        reasons: one sentence for each figure that is missing or needs an explanation.
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
    """Estimates of a second method on the same rows, for comparison.

    Attributes:
        method: "ball" or "score".
        value: estimates in nats, shape (2, n_alpha).
        std_error: standard errors of the estimates, shape (2, n_alpha).
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

    In the direction D(P||Q), the set of P is the numerator and the set of Q the denominator.

    Attributes:
        effective: effective number of terms of each average, (sum w)^2 / sum w^2, shape
            (2, n_alpha); NaN if the method averages no weights.
        unseen_share: share of the numerator's rows on repeated values that the denominator does
            not have, per direction. It is descriptive and has no confidence limit.
        atom_share: share of the rows of each set that are on atoms (repeated values).
        rows_per_atom: rows on repeated values divided by distinct repeated values; NaN if there
            are no repeated values.
        counted: counts of the search steps: rescans, run_outs, replicates and similar.
        scale: scaling of the coordinates: None, "std" or "whiten"; see `renyi`.
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
    """Estimated Renyi divergences of two samples; never a bound in either direction.

    Arrays have shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0), in nats. In D(P||Q), the
    set of P is the numerator and the set of Q the denominator.

    Attributes:
        belief: how reliable each value is, by direction and order. It is the first of these four
            phrases that applies: "refuted by its own certificate", "saturated", "not resolved at
            this alpha", "estimate only".
        reason: one sentence that explains the belief.
        method: method that computed the values.
        alphas: orders, ascending, shape (n_alpha,); 1.0 is the KL divergence.
        value: raw estimates; negative ones are kept.
        std_error: standard errors; NaN beyond `alpha_max` and if no errors were requested.
        resolved: True where `belief` is "estimate only".
        ceiling: value that the method would give if every ball held all rows of the numerator. A
            ball is the neighbourhood of a row up to its k-th nearest neighbour.
        alpha_max: largest order that each direction resolves, or None if no order is resolved.
        kl: D_1 in both directions, also if 1 is not among `alphas`, shape (2,).
        sizes: rows of the two sets; repeated rows are counted as often as they occur.
        dim: number of coordinates of a row.
        k: requested number of neighbours.
        depth: for each direction, the number of rows of the other set inside each ball.
        error: "jackknife", "subsample", "bootstrap" or None.
        beside: estimates of a second method on the same rows, or None: "ball" if `method` is
            "score", and otherwise "score".
        checks: tests of P0 = P1 on held-out rows, or None.
        certificate: certified lower bounds of D_alpha, or None.
        held_out: counts of held-out events, from which the method `epsilon` computes its certified
            bounds, or None.
        stated: True if the caller stated that rows (or groups) are independent.
        confidence: confidence of each certified bound.
        diagnostics: diagnostics of the method and the rows.
        notes: sentences for the reader.
        seed: seed that repeats the estimate.
        seconds: running time; ignored in comparisons.
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
        """The larger direction at each order, shape (n_alpha,); NaN unless both are resolved."""
        return np.where(self.resolved.all(axis=0), self.value.max(axis=0), np.nan)

    def epsilon(self, delta: float) -> Epsilon:
        """Compute three figures on the epsilon of the two samples at one delta.

        Args:
            delta: delta in [0, 1). It has no default.

        Returns:
            `Epsilon`: a certified lower bound, the plug-in estimate of the same event, and the
            conversion of the estimated curve.

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
        """Return the orders above 1 up to the first unresolved order, and the values there."""
        integer("direction", direction, 0, 1)
        above = self.alphas > 1.0
        kept = above & np.logical_and.accumulate(self.resolved[direction] | ~above)
        # D_alpha does not decrease in alpha and is not negative.
        values = np.maximum(self.value[direction][kept], 0.0)
        return self.alphas[kept], np.maximum.accumulate(values)

    def _convert_curves(self, delta: float) -> tuple[float | None, float | None, Line | None]:
        """Convert both directions at resolved orders above 1; return the larger values."""
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
        """Draw the running mean and standard deviation of bootstrap or subsampling replicates.

        Args:
            ax: pair of matplotlib axes, one per direction, or one axes object that is replaced by
                the two panels. Defaults to a new pyplot figure, for `plt.show()`.

        Returns:
            The figure. Gusain and Leith (2025) choose the number of replicates from it.

        Raises:
            ValueError: if the estimate has no replicates of that kind.
        """
        return draw_convergence(self, ax)

    def __repr__(self) -> str:
        """Return one line: D_1 in both directions, and the largest resolved orders."""
        first = " and ".join(f"{value:.4g}" for value in self.kl)
        orders = " and ".join("none" if a is None else f"{a:.4g}" for a in self.alpha_max)
        figures = f"D_1 = {first} nats, orders resolved to {orders}"
        return f"<Estimate by {self.method}: {figures}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report: first the belief, then the curve, the checks and the seed."""
        return estimate_text(self)
