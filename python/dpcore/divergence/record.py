"""The record of an estimate: its values, and how much of them to believe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import delta_level
from ..records import Record
from .certificates import Certificate, HeldOut
from .conversion import Epsilon, compute_epsilons, select_resolved_orders
from .points import Flags, Reals, freeze_arrays
from .two_sample_tests import Checks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beside(Record):
    """The other method, on the same rows: `method`, `value` and `std_error` of shape (2, n_alpha).

    Attributes:
        method: "ball" or "score".
        value: its estimates in nats.
        std_error: their standard errors.
    """

    method: str
    value: Reals
    std_error: Reals

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "value", "std_error")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnostics(Record):
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

    effective: Reals
    unseen_share: Reals
    atom_share: Reals
    rows_per_atom: float
    counted: dict[str, int]
    scale: str | None = None
    replicates: Reals | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "effective", "unseen_share", "atom_share", "replicates")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate(Record):
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

    belief: npt.NDArray[np.str_]
    reason: str
    method: str
    alphas: Reals
    value: Reals
    std_error: Reals
    resolved: Flags
    ceiling: Reals
    alpha_max: tuple[float | None, float | None]
    kl: Reals
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

    @property
    def certified(self) -> Reals | None:
        """Certified lower bounds of D_alpha in both directions, shape (2, n_alpha), or None."""
        return None if self.certificate is None else self.certificate.bound

    @property
    def maximum(self) -> Reals:
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
        return compute_epsilons(
            delta_level(delta),
            curves=[
                select_resolved_orders(self.alphas, *row)
                for row in zip(self.value, self.resolved, strict=True)
            ],
            sizes=self.sizes,
            held_out=self.held_out,
            stated=self.stated,
            confidence=self.confidence,
            size_p=None if self.checks is None else self.checks.size_p,
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw D_alpha with error bars, ceiling, certified bound and line.

        Orders that are not resolved are grey.

        Args:
            ax: a pair of matplotlib axes, one per direction, or one whose place both take; None
                makes a figure of pyplot, for `plt.show()`.

        Returns:
            The figure.
        """
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
