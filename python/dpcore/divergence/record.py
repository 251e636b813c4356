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
from .report import draw_convergence, draw_estimate, epsilon_text, estimate_text, list_estimate_rows
from .two_sample_tests import Checks, group_sizes_depend_on_values_note

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
    """Three values of epsilon at one delta, computed from two samples: a bound and two estimates.

    The samples are treated as outputs of a mechanism on two neighbouring inputs. Here epsilon means
    the epsilon in (epsilon, delta)-DP for the distributions of the samples. A held-out event is an
    event that was chosen on one half of the rows and counted on the other half.

    Attributes:
        delta: delta in (epsilon, delta)-DP, as requested.
        epsilon_lower: certified lower bound of epsilon, from the counts of a held-out event. The
            bound holds with probability `confidence`. None if no events were counted, or if the
            caller did not state that rows (or groups) are independent.
        epsilon_hat: estimate of epsilon from the relative frequencies of the same event. It is not
            a bound. None if no events were counted.
        epsilon_rdp: estimate of epsilon from the estimated Renyi divergences by the conversion of
            Canonne, Kamath and Steinke (2020). The two directions D(P0||P1) and D(P1||P0) give two
            values, and `epsilon_rdp` is the larger one. It is neither an upper nor a lower bound.
            None if delta is 0, or if a direction has no reliable order above one.
        alpha: order that gives `epsilon_rdp`. None if `epsilon_rdp` is None.
        line: straight line that lies above the estimated divergences (Gusain and Leith 2025), and
            the epsilon that follows from this line. None if `epsilon_rdp` is None.
        confidence: confidence of `epsilon_lower`.
        extrapolated: True if delta is below 10 divided by the number of rows of the smaller sample.
            Events with a probability as small as delta are too rare in the samples to give
            evidence.
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
    """Renyi divergences that a second method estimates from the same rows, for comparison.

    Attributes:
        method: name of the second method, "ball" or "score".
        value: estimates in nats, shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0).
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
    """Numbers that describe how Renyi divergences of two sets of rows were estimated.

    In the direction D(P||Q), the set of P is the numerator, and the set of Q is the denominator.

    Attributes:
        effective: effective number of terms of the average over rows, for each direction and order,
            shape (2, n_alpha). It is (sum w)^2 / sum w^2 with w the averaged terms. NaN if the
            method does not average such terms.
        unseen_share: share of the numerator's rows that are repeated values and do not occur in the
            denominator, for each direction. The share describes the sample, not the distribution.
        atom_share: share of the rows of each set that are on atoms (repeated values).
        rows_per_atom: average number of rows at a repeated value. NaN if there are almost no
            repeated values.
        counted: counts of the computation, by name, such as "rescans" (repeated neighbour searches)
            and "replicates" (resampled data sets).
        scale: scaling of the coordinates: None, "std" (division by the standard deviation) or
            "whiten" (covariance transformed to the identity).
        replicates: estimates on resampled data sets, shape (replicates, 2, n_alpha). None for the
            jackknife, or if no rows were resampled.
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
    """Estimated Renyi divergences of two samples. They are neither upper nor lower bounds.

    Arrays have shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0), in nats. In D(P||Q), the
    set of P is the numerator and the set of Q the denominator.

    Attributes:
        belief: phrase that states how reliable each value is, for each direction and order. It is
            the first of the following four phrases that applies. "refuted by its own certificate"
            means that a certified lower bound exceeds the value. "saturated" means that the
            divergence may be larger than the method can show. "not resolved at this alpha" means
            that a test contradicts the value, or that the value is too uncertain. "estimate only"
            means that no test contradicts the value.
        reason: one sentence that explains the least reliable value.
        method: name of the method that computed the values.
        alphas: orders, ascending, shape (n_alpha,); 1.0 is the KL divergence.
        value: estimates of the divergences. Negative estimates are kept.
        std_error: standard errors of the estimates. NaN at orders above `alpha_max`, and if no
            standard errors were requested.
        resolved: True for each value whose belief is "estimate only".
        ceiling: largest value that the method can give. NaN if the method does not count rows in
            balls. A ball is the neighbourhood of a row up to its k-th nearest row in the other set.
            The method gives the largest value if every ball contains all rows of the numerator.
        alpha_max: for each direction, the largest order at which enough rows contribute to the
            average. None if the smallest order is already too large.
        kl: KL divergence (order 1) in both directions, shape (2,). It is computed even if 1 is not
            among `alphas`.
        sizes: number of rows of each set. Repeated rows are counted as often as they occur.
        dim: number of coordinates of a row.
        k: requested number of neighbours.
        depth: for each direction, the number of nearest rows of the other set that define each
            ball. It is `k`, or more if the sets differ in size.
        error: kind of standard errors: "jackknife", "subsample", "bootstrap" or None.
        beside: estimates of a second method from the same rows. The second method is "ball" if
            `method` is "score", and "score" otherwise. None if the second method did not run.
        checks: results of tests of P0 = P1 on held-out rows. None if the tests did not run.
        certificate: certified lower bounds of D_alpha. None if they were not requested.
        held_out: number of held-out rows in each possible event. The method `epsilon` computes a
            certified bound from these numbers. None if no events were counted.
        stated: True if the caller stated that rows (or groups) are independent.
        confidence: probability that all certified bounds of one direction hold.
        diagnostics: numbers that describe the computation and the rows.
        notes: remarks on the estimate, as sentences that the report prints.
        seed: seed with which the estimate can be repeated.
        seconds: running time in seconds. Two estimates can be equal (==) although this time
            differs.
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
        """Certified lower bounds of the estimated divergences, shape (2, n_alpha).

        None if certified bounds were not requested.
        """
        return None if self.certificate is None else self.certificate.bound

    @property
    def maximum(self) -> Floats:
        """The larger of the estimates of D(P0||P1) and D(P1||P0) at each order, shape (n_alpha,).

        NaN at an order if at least one of the two estimates is not reliable (its belief is not
        "estimate only").
        """
        return np.where(self.resolved.all(axis=0), self.value.max(axis=0), np.nan)

    def epsilon(self, delta: float) -> Epsilon:
        """Compute a bound and two estimates of epsilon at one delta from the two samples.

        Here epsilon means the epsilon in (epsilon, delta)-DP for the distributions of the samples.

        Args:
            delta: delta in [0, 1).

        Returns:
            An object of the class `Epsilon` with three values. The first is a certified lower bound
            from the counts of an event on held-out rows. The second is an estimate from the
            frequencies of the same event. The third is an estimate from the estimated Renyi
            divergences.

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
        if self.checks is not None and group_sizes_depend_on_values_note(self.checks.size_p):
            reasons.append(_TWO_LAWS)
        rdp, alpha, drawn = self._epsilon_order_line(delta)
        if rdp is None:
            reasons.append("epsilon_rdp needs delta above 0" if delta == 0.0 else _NO_ORDER)
        least = SEEN / min(self.sizes)
        if delta < least:
            reasons.append(f"extrapolated: this sample sees delta from {least:.2g} on")
        level, beyond = self.confidence, delta < least
        return Epsilon(delta, lower, hat, rdp, alpha, drawn, level, beyond, tuple(reasons))

    def resolved_curve(self, direction: int) -> tuple[Floats, Floats]:
        """Return the orders above 1 at which this estimate is reliable, and the divergences.

        `direction` is 0 for D(P0||P1) and 1 for D(P1||P0). The orders end before the first order at
        which the estimate is not reliable (the belief is not "estimate only"). True divergences are
        at least 0, and do not decrease as the order increases. Therefore each estimate is replaced
        by the largest estimate at this order or a smaller one, and negative estimates are replaced
        by 0.
        """
        integer("direction", direction, 0, 1)
        above = self.alphas > 1.0
        kept = above & np.logical_and.accumulate(self.resolved[direction] | ~above)
        # D_alpha does not decrease in alpha and is not negative.
        values = np.maximum(self.value[direction][kept], 0.0)
        return self.alphas[kept], np.maximum.accumulate(values)

    def _epsilon_order_line(self, delta: float) -> tuple[float | None, float | None, Line | None]:
        """Compute epsilon from D(P0||P1) and D(P1||P0); return the larger, its order, a line."""
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
        """Draw the mean and spread of the estimates against the number of resampled data sets.

        Each curve shows the estimates of a divergence on resampled data sets. The n-th point of a
        curve is computed from the first n of these data sets.

        Args:
            ax: pair of matplotlib axes, the first for the mean, the second for the standard
                deviation. If it is a single axes object, two panels replace it. Defaults to a new
                pyplot figure, for `plt.show()`.

        Returns:
            The figure. Gusain and Leith (2025) use such a figure to choose the number of resampled
            data sets.

        Raises:
            ValueError: if the standard errors of this estimate are not of the kind "bootstrap" or
                "subsample".
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
