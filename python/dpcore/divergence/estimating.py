"""Renyi and KL divergence of two samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..errors import invalid, mistyped
from ..hints import hinted
from ..streams import Rng
from .points.points import Scale, find_points
from .points.replicates import Error
from .record import Estimate
from .request import KL_ONLY, METHODS, Method, Request
from .steps import run_estimate

__all__ = ["METHODS", "kl", "renyi"]


@hinted
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
    `certified=True` bounds it from below.

    Methods. "ball": the same ball for both sets, around every row, reaching the k-th nearest row
    of the other set; rows inside are counted, with factorial-moment corrections; repeated values
    are atoms. Neither the dimension nor a volume enters. Good in one and two dimensions and for
    discrete laws; far too low beyond. "score": a logistic score of the coordinates and their
    squared norm, fitted on one half of the rows, then the ball on the scores of the other half,
    and the other way round; it estimates the divergence of the scores, which is at most D_alpha.
    "auto": "ball" up to two dimensions or where 99 % of the rows are repeated values, else
    "score"; the other one is shown beside it. "poczos": Poczos and Schneider's ratio of
    k-th-neighbour distances. "paper": Gusain and Leith's, its two misprints corrected;
    "paper-literal": as printed, which is not a Renyi divergence.

    Belief. "estimate only" means that nothing here speaks against the value. It is "not resolved at
    this alpha" where the method beside it lies above it (a held-out score by 2 joint standard
    errors, the ball by 3); where the energy test rejects P0 = P1 at .01 and the value is 0 within
    2 standard errors; from order one on, where more of the numerator's rows lie beyond the other
    set than a constant ratio of densities at its edge explains, or farther from it than three times
    its largest gap (each at 1e-4); beyond `alpha_max`; where a value cannot be told from 0, with
    the number of rows that would tell it; and where repeated values have too few rows. More than
    5 % of rows beyond, or values within ln 2 of the ceiling, are "saturated". Of equal laws the
    energy test takes one belief in a hundred.

    Groups. Estimates and tests speak of the law of rows, certificates of the law of one random row
    of each group. Where sizes of groups depend on values (a permutation test at .01) these are two
    laws, which a note says.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,); float32 and float64 are taken as
            they are, integers and booleans become float64.
        y1: rows of the second sample, shape (n1, d) or (n1,).
        alphas: orders above 0, ascending; D_1 is the KL divergence, which is always in
            `Estimate.kl`. None is 1.1^i up to 32, as far as the method goes, and D_1.
        k: neighbours, at least 1.
        method: one of `METHODS`.
        error: "jackknife" (20 groups of rows deleted in turn), "subsample" (half of the rows),
            "bootstrap" (the paper's), or None for no error bars.
        counts0: how often each row of y0 occurs, shape (n0,), or None for once.
        counts1: the same for y1.
        groups0: a label for each row of y0; rows of one label stay together in folds and
            replicates, and a certificate counts one of them.
        groups1: the same for y1.
        decimals: round the rows to so many decimals first, or None.
        scale: None, "std" (each coordinate divided by its pooled standard deviation) or "whiten".
        certified: True certifies lower bounds on held-out rows; needs `rows` or both groups.
        rows: "independent" if every row was drawn on its own; there is no default.
        confidence: of everything certified, in each direction.
        rng: seed or generator for folds, groups, permutations and replicates.
        threads: threads to use; None is all cores.
        progress: True, False, or None for "where somebody is looking".
        score: for the scores, in place of the logistic one: a function of (train0, train1) that
            returns a function of rows, or a function of rows fixed before the data were seen.
        checks: False leaves out the held-out tests, the score beside and `Estimate.epsilon`'s
            event, for speed.
        replicates: number of replicates of "subsample" and "bootstrap"; None is 200.
        self_neighbour: for "paper" and "paper-literal": True counts a row as its own neighbour.

    Returns:
        The estimate; arrays have shape (2, n_alpha), row 0 is D(P0||P1).

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if rows are not finite or the sets differ in dimension; if a set is empty or k
            exceeds it; if an order is not above 0, or lies beyond the method's limit
            ("ball": min(n0, n1, k + 1)); if `certified` lacks `rows` or groups.

    Warns:
        UserWarning: if k exceeds the distinct rows of a set; below 40 rows with an error bar; if
            one coordinate's variance dwarfs the others; for "paper-literal".

    Source:
        Poczos and Schneider (2011); Wang, Kulkarni and Verdu (2009); Gao, Kannan, Oh and Viswanath
        (2017) for counting in mixtures; van Erven and Harremoes (2014), Theorem 9, for what the
        scores and certificates rest on; Gusain and Leith (2025).

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
        y0,
        y1,
        counts0=counts0,
        counts1=counts1,
        groups0=groups0,
        groups1=groups1,
        decimals=decimals,
        scale=scale,
    )
    request = Request(
        points=both,
        alphas=alphas,
        k=k,
        method=method,
        error=error,
        certified=certified,
        rows=rows,
        confidence=confidence,
        rng=rng,
        threads=threads,
        progress=progress,
        score=score,
        checks=checks,
        replicates=replicates,
        self_neighbour=self_neighbour,
        begun=begun,
    )
    return run_estimate(request)


def refuse_laws(y0: Any, y1: Any) -> None:
    """Raise an error for two vectors of probabilities, or two distributions, in place of rows."""
    need = "rows of a sample, and no law: see dpcore.divergence.closed_forms"
    if all(hasattr(one, "pdf") or hasattr(one, "pmf") for one in (y0, y1)):
        raise mistyped("y0", f"{need}.gaussian and others", y0)
    if not all(isinstance(one, (list, tuple, np.ndarray)) for one in (y0, y1)):
        return
    try:
        p, q = (np.asarray(one, np.float64) for one in (y0, y1))
    except (TypeError, ValueError):
        return
    is_law = [one.ndim == 1 and one.size > 1 and (one >= 0.0).all() for one in (p, q)]
    if all(is_law) and p.size == q.size and max(abs(p.sum() - 1.0), abs(q.sum() - 1.0)) < 1e-9:
        raise invalid("y0", f"{need}.discrete([1.0], p, q)", y0)


@hinted
def kl(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the Kullback-Leibler divergences between the laws of two samples.

    KL(P0||P1) = E_P0[ln dP0/dP1], the limit of D_alpha at order 1. What is believed follows the
    rules of `renyi`.

    Args:
        y0: rows of the first sample, shape (n0, d) or (n0,).
        y1: rows of the second sample, shape (n1, d) or (n1,).
        **options: those of `renyi`, except `alphas`.

    Returns:
        The estimate at the single order 1; arrays have shape (2, 1).

    Raises:
        TypeError: if an argument is of the wrong kind, or `alphas` is given.
        ValueError: as `renyi`.

    Source:
        Wang, Kulkarni and Verdu (2009); otherwise as `renyi`.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> estimate = kl(rng.normal(0.0, 1.0, 2000), rng.normal(1.0, 1.0, 2000), rng=1)
        >>> bool(abs(estimate.value[0, 0] - 0.5) < 0.15)
        True
    """
    if "alphas" in options:
        raise mistyped("alphas", "left out (kl is the order 1)", options["alphas"])
    return renyi(y0, y1, alphas=KL_ONLY, **options)
