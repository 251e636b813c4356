"""Results of `dpcore.divergence.renyi`: estimates, their reliability, and epsilons from them."""

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
    """Three different results on epsilon at one delta: a bound and two estimates.

    The two samples are treated as outputs of a mechanism on two neighbouring inputs, and epsilon is
    the epsilon of (epsilon, delta)-DP for their laws. A held-out event is an event that was chosen
    on one half of the rows and counted on the other half.

    Attributes:
        delta: delta in (epsilon, delta)-DP, as requested.
        epsilon_lower: certified lower bound of epsilon, which holds with probability `confidence`.
            Every smaller epsilon is refuted by the counts of a held-out event. None unless the
            caller stated that rows (or groups) are independent.
        epsilon_hat: estimate of epsilon from the relative frequencies of the same event. It is not
            a bound. None if no events were counted.
        epsilon_rdp: estimate of epsilon from the estimated Renyi divergences by the conversion of
            Canonne, Kamath and Steinke (2020). It is the larger result of the two directions, and
            neither an upper nor a lower bound. None if no order above one is reliable in both
            directions.
        alpha: order that gives `epsilon_rdp`, or None.
        line: Gusain and Leith's line above the estimated divergences, with the epsilon of this
            line, or None.
        confidence: confidence of `epsilon_lower`.
        extrapolated: True if delta is below 10 divided by the smaller number of rows. Events of
            such a small probability are too rare in the samples to give evidence.
        reasons: one sentence for each result that is missing or needs an explanation.
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
        """Return the three results as text, each with its description."""
        return epsilon_text(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beside(Record, word="Beside"):
    """Estimates of a second method from the same rows, for comparison.

    Attributes:
        method: "ball" or "score".
        value: estimates in nats, shape (2, n_alpha).
        std_error: standard errors of the estimates, shape (2, n_alpha).
    """

    method: str
    value: Floats
    std_error: Floats

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze_arrays(self, "value", "std_error")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnostics(Record, word="Diagnostics"):
    """Diagnostics of an estimate: how many rows decide it, and how many rows are repeated.

    In the direction D(P||Q), the set of P is the numerator and the set of Q the denominator.

    Attributes:
        effective: effective number of terms of each average, (sum w)^2 / sum w^2 with w the
            averaged terms, shape (2, n_alpha). NaN if the method does not average such terms.
        unseen_share: share of the numerator's rows that are repeated values without a row of the
            denominator, for each direction. This number describes the sample and has no confidence
            limit.
        atom_share: share of the rows of each set that are on atoms (repeated values).
        rows_per_atom: average number of rows at a repeated value. NaN if there are almost no
            repeated values.
        counted: numbers of steps of the search, such as "rescans" (repeated searches) and
            "replicates" (resampled data sets).
        scale: scaling of the coordinates: None, "std" (division by the standard deviation) or
            "whiten" (covariance transformed to the identity).
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
        """Make the arrays read-only."""
        freeze_arrays(self, "effective", "unseen_share", "atom_share", "replicates")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate(Result, word="dpcore.divergence.estimate/1"):
    """Estimated Renyi divergences of two samples; never a bound in either direction.

    Arrays have shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0), in nats. In D(P||Q), the
    set of P is the numerator and the set of Q the denominator.

    Attributes:
        belief: how reliable each value is, for each direction and order. It is the first of four
            phrases that applies. "refuted by its own certificate" means that a certified lower
            bound exceeds the value. "saturated" means that the divergence may be larger than the
            method can show. "not resolved at this alpha" means that a check contradicts the value,
            or that the value is too uncertain. "estimate only" means that no check contradicts the
            value.
        reason: one sentence that explains the worst belief.
        method: method that computed the values.
        alphas: orders, ascending, shape (n_alpha,); 1.0 is the KL divergence.
        value: estimates of the divergences. Negative estimates are kept.
        std_error: standard errors of the estimates. NaN at orders above `alpha_max`, and if no
            standard errors were requested.
        resolved: True for each value whose belief is "estimate only".
        ceiling: largest value that the method can give. It results if every ball contains all rows
            of the numerator. A ball is the neighbourhood of a row up to its k-th nearest neighbour
            in the other set.
        alpha_max: for each direction, the largest order at which enough rows contribute to the
            average, or None.
        kl: KL divergence (order 1) in both directions, also if 1 is not among `alphas`, shape (2,).
        sizes: number of rows of each set. Repeated rows are counted as often as they occur.
        dim: number of coordinates of a row.
        k: requested number of neighbours.
        depth: for each direction, the number of rows of the other set inside each ball.
        error: kind of standard errors: "jackknife", "subsample", "bootstrap" or None.
        beside: estimates of a second method from the same rows, or None. The second method is
            "ball" if `method` is "score", and "score" otherwise.
        checks: tests of P0 = P1 on held-out rows, or None.
        certificate: certified lower bounds of D_alpha, or None.
        held_out: numbers of held-out rows in each possible event, or None. The method `epsilon`
            computes its certified bound from them.
        stated: True if the caller stated that rows (or groups) are independent.
        confidence: probability that the certified bounds of one direction hold.
        diagnostics: diagnostics of the method and the rows.
        notes: sentences that the report prints.
        seed: seed with which the estimate can be repeated.
        seconds: running time in seconds. It is ignored if two estimates are compared.
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
        """Make the arrays read-only."""
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
        """Larger value of the two directions at each order, shape (n_alpha,), or NaN.

        It is NaN unless the belief in both values is "estimate only".
        """
        return np.where(self.resolved.all(axis=0), self.value.max(axis=0), np.nan)

    def epsilon(self, delta: float) -> Epsilon:
        """Compute a bound and two estimates of epsilon at one delta, for the laws of the samples.

        Args:
            delta: delta in [0, 1).

        Returns:
            An `Epsilon` with three results. The first is a certified lower bound from a held-out
            event. The second is an estimate from the frequencies of the same event. The third is
            the conversion of the estimated divergences.

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
        """Return the orders above 1 that are reliable in one direction, and the divergences there.

        The orders end before the first order whose belief is not "estimate only". Negative values
        are replaced by 0. Each value is replaced by the largest value up to its order.
        """
        integer("direction", direction, 0, 1)
        above = self.alphas > 1.0
        kept = above & np.logical_and.accumulate(self.resolved[direction] | ~above)
        # D_alpha does not decrease in alpha and is not negative.
        values = np.maximum(self.value[direction][kept], 0.0)
        return self.alphas[kept], np.maximum.accumulate(values)

    def _convert_curves(self, delta: float) -> tuple[float | None, float | None, Line | None]:
        """Convert the reliable divergences of each direction; return the larger epsilons."""
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
        """Draw the running mean and standard deviation of the estimates on resampled rows.

        The n-th point of a curve uses the first n resampled data sets of "bootstrap" or
        "subsample".

        Args:
            ax: pair of matplotlib axes, one per direction. If it is a single axes object, two
                panels replace it. Defaults to a new pyplot figure, for `plt.show()`.

        Returns:
            The figure. Gusain and Leith (2025) use it to choose the number of resampled data sets.

        Raises:
            ValueError: if the estimate was not made with `error="bootstrap"` or "subsample".
        """
        return draw_convergence(self, ax)

    def __repr__(self) -> str:
        """Return one line: the KL divergence and `alpha_max` of both directions, and the seed."""
        first = " and ".join(f"{value:.4g}" for value in self.kl)
        orders = " and ".join("none" if a is None else f"{a:.4g}" for a in self.alpha_max)
        figures = f"D_1 = {first} nats, orders resolved to {orders}"
        return f"<Estimate by {self.method}: {figures}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report: first the belief, then the estimates, the checks and the seed."""
        return estimate_text(self)
