"""The arguments of an estimate: checked, and completed where they were left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import choice, confidence_level, integer, invalid, mistyped
from ..streams import seed_of, threads_of
from .points.points import Points
from .points.replicates import ERRORS, Labels, Plan, plan
from .raw import Reals
from .reliability.needed import to_see

METHODS: Final = ("auto", "ball", "score", "poczos", "paper", "paper-literal")
"""What `method=` may be."""

KL_ONLY: Final = object()
"""In place of `alphas`: the order 1 alone."""

_RATIO: Final = 1.1
_LARGEST: Final = 32.0
_FEW_ROWS: Final = 40
_FEWEST_UNITS: Final = 4
_ATOMS: Final = 0.99
_PLANE: Final = 2
"""Up to this many dimensions, or with this share of rows on atoms, "auto" takes the ball."""

PLAN, FOLDS, HELD_OUT, CHECKS, DRAWN, BEYOND, GROUPS, SINGLE = range(8)
"""What random numbers are for: each has a stream of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The checked arguments of an estimate."""

    points: Points
    wanted: Reals
    grid: Reals
    k: int
    method: str
    error: str | None
    certified: bool
    stated: bool
    confidence: float
    seed: int
    threads: int
    progress: bool | None
    score: Callable[..., Any] | None
    checks: bool
    replicates: int | None
    self_neighbour: bool
    begun: float
    notes: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        *,
        points: Points,
        alphas: Any,
        k: Any,
        method: Any,
        error: Any,
        certified: Any,
        rows: Any,
        confidence: Any,
        rng: Any,
        threads: Any,
        progress: Any,
        score: Any,
        checks: Any,
        replicates: Any,
        self_neighbour: Any,
        begun: float,
    ) -> Request:
        """The request, or a ValueError or TypeError that names what is wrong with it."""
        method = choice("method", method, METHODS)
        for name, flag in (
            ("certified", certified), ("checks", checks), ("self_neighbour", self_neighbour),
        ):  # fmt: skip
            if not isinstance(flag, bool):
                raise mistyped(name, "True or False", flag)
        if score is not None and not callable(score):
            raise mistyped("score", "None or a callable", score)
        if score is not None and not (checks or certified or method in ("auto", "score")):
            raise invalid("score", "None where no score is used (checks=False)", score)
        k = _neighbours(k, points)
        wanted, grid, notes = _orders(alphas, _limit(method, points, k), k)
        stated = _stated(rows, points, certified)
        if checks and min(points.units) < _FEWEST_UNITS:
            checks = False
            notes += (
                f"no checks: a set of fewer than {_FEWEST_UNITS} rows or groups has no halves",
            )
        if points.scale is None:
            # Coordinates that dwarf the others.
            for note in points.notes:
                warnings.warn(note, stacklevel=3)
        if error is not None:
            choice("error", error, ERRORS)
            _warn_few(points, k, _resolved(method, points) == "score" and score is None)
        return cls(
            points=points, wanted=wanted, grid=grid, k=k, method=_resolved(method, points),
            error=error, certified=certified, stated=stated,
            confidence=confidence_level(confidence), seed=seed_of(rng),
            threads=threads_of(threads), progress=progress, score=score, checks=checks,
            replicates=replicates, self_neighbour=self_neighbour, begun=begun, notes=notes,
        )  # fmt: skip

    def stream(self, purpose: int) -> np.random.Generator:
        """The random numbers for one purpose."""
        return np.random.default_rng((self.seed, purpose))

    def plan(
        self, sizes: tuple[int, int], groups: tuple[Labels | None, Labels | None]
    ) -> Plan | None:
        """How the rows of two sets are resampled."""
        return plan(self.error, sizes, groups, self.stream(PLAN), self.replicates)


def _resolved(method: str, points: Points) -> str:
    if method != "auto":
        return method
    return "ball" if points.dim <= _PLANE or _mostly_atoms(points) else "score"


def _mostly_atoms(points: Points) -> bool:
    """Whether 99 % of the rows sit on values that the ball treats as atoms."""
    m0, m1 = points.multiplicity
    # The ball's rule of five, in either direction.
    atom = ((m0 > 0) & (np.maximum(m0 - 1, m1) >= 5)) | ((m1 > 0) & (np.maximum(m1 - 1, m0) >= 5))
    return bool((m0 + m1)[atom].sum() >= _ATOMS * sum(points.sizes))


def _neighbours(given: Any, points: Points) -> int:
    k = integer("k", given, 1)
    smaller = min(points.sizes)
    if k > smaller:
        raise invalid("k", f"at most {smaller}, the rows of the smaller set", k)
    distinct = points.distinct(k)
    if k > distinct:
        warnings.warn(
            f"k = {k} exceeds the {distinct} distinct rows of a set: balls hold whole ties",
            stacklevel=4,
        )
    return k


def _warn_few(points: Points, k: int, fitted: bool) -> None:
    smaller = min(points.sizes)
    if smaller >= _FEW_ROWS:
        return
    told = f"error bars from {smaller} rows are rough: {_FEW_ROWS} or more are needed"
    if fitted:
        told += (
            f", and {to_see(points.dim, k, fitted):,} for a fitted score of {points.dim:,} numbers "
            "to see half of one nat"
        )
    warnings.warn(told, stacklevel=4)


def _stated(rows: Any, points: Points, certified: bool) -> bool:
    """Whether the caller said what may be counted as independent."""
    if rows is not None and not (isinstance(rows, str) and rows == "independent"):
        raise invalid("rows", "None or 'independent'", rows)
    stated = rows is not None or all(groups is not None for groups in points.groups)
    if certified and not stated:
        raise invalid(
            "rows",
            "'independent' for certified=True (every row drawn on its own), or groups0 and groups1 "
            "given (one row of each group is counted)",
            rows,
        )
    return stated


def _limit(method: str, points: Points, k: int) -> float:
    """The largest order that the method, and the one shown beside it, can be asked for."""
    if method == "poczos":
        # At k + 1 its constant has a pole.
        return float(np.nextafter(k + 1, 0))
    return np.inf if method.startswith("paper") else float(min(*points.sizes, k + 1))


def _orders(alphas: Any, limit: float, k: int) -> tuple[Reals, Reals, tuple[str, ...]]:
    """The orders asked for, and the finer grid on which beliefs are decided."""
    usual = _RATIO ** np.arange(1, 64)
    usual = usual[usual <= min(_LARGEST, limit)]
    if alphas is KL_ONLY:
        return np.ones(1), np.ones(1), ()
    if alphas is None:
        wanted = np.concatenate([np.ones(1), usual])
        short = limit < _LARGEST
        note = f"orders stop at {wanted[-1]:.3g}: the method allows at most {limit:g} here"
        return wanted, wanted, (note,) if short else ()
    wanted = _given(alphas)
    if wanted[-1] > limit:
        raise invalid(
            "alphas",
            f"at most {limit:.15g} (both numbers of rows, and k + 1, below which poczos stays)",
            float(wanted[-1]),
        )
    # Beliefs need the curve between one and the orders asked for.
    finer = usual[usual <= min(max(wanted[-1], _RATIO), 1.0 + k)]
    lower = 1.0 / usual[usual <= 1.0 / wanted[0]] if wanted[0] < 1.0 else usual[:0]
    return wanted, np.unique(np.concatenate([wanted, np.ones(1), finer, lower])), ()


def _given(alphas: Any) -> Reals:
    try:
        wanted = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        raise mistyped("alphas", "None or orders above 0", alphas) from None
    if wanted.ndim != 1 or not len(wanted):
        raise invalid("alphas", "one order or a row of them", alphas)
    wrong = wanted[~(np.isfinite(wanted) & (wanted > 0.0))]
    if len(wrong):
        raise invalid("alphas", "finite orders above 0", float(wrong[0]))
    if (wanted == 1.0).any():
        raise invalid("alphas", "other than 1 (D_1 is Estimate.kl, or kl())", 1.0)
    if (np.diff(wanted) <= 0.0).any():
        raise invalid("alphas", "strictly ascending", wanted.tolist())
    return wanted
