"""The arguments of an estimate: checked, and completed where they were left out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, confidence_level, flag, integer, invalid, mistyped
from ..streams import Rng, seed_of, threads_of
from .points.points import Points
from .points.replicates import ERRORS, Labels, Plan, plan_replicates
from .raw import Reals
from .reliability.needed import to_see

__all__ = ["KL_ONLY", "METHODS", "Method", "Request"]

Method = Literal["auto", "ball", "score", "poczos", "paper", "paper-literal"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
"""Values that `method=` may have."""

KL_ONLY: Final = object()
"""In place of `alphas`: the order 1 alone."""

_ORDER_RATIO: Final = 1.1
_MAX_DEFAULT_ORDER: Final = 32.0
_MIN_ERROR_BAR_ROWS: Final = 40
_MIN_HALVED_UNITS: Final = 4
_MIN_ATOM_SHARE: Final = 0.99
_MAX_BALL_DIMENSIONS: Final = 2
"""Up to this many dimensions, or with this share of rows on atoms, "auto" takes the ball."""

PLAN, FOLDS, HELD_OUT, CHECKS, DRAWN, BEYOND, GROUPS, SINGLE = range(8)
"""Purposes of random numbers: each has a stream of its own."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Request:
    """The arguments of an estimate, as in `renyi`: making one checks and completes them.

    Attributes:
        points: both sets of rows, resampled as they are told.
        method: what gives the values: "auto" is resolved.
        checks: False, too, where a set is too small to be halved.
        begun: when the estimate began, in seconds of `time.perf_counter`.
        wanted: the orders asked for, shape (n_alpha,).
        grid: these and what beliefs are decided on, ascending.
        stated: True if the caller said that rows (or groups) are independent.
        seed: what repeats the estimate.
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
    wanted: Reals = field(init=False)
    grid: Reals = field(init=False)
    stated: bool = field(init=False)
    seed: int = field(init=False)
    notes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments: a ValueError or TypeError names what is wrong."""
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
        wanted, grid, notes = _read_order_grid(self.alphas, _max_order(asked, points, k), k)
        stated = _states_independence(self.rows, points, self.certified)
        checks = self.checks and min(points.units) >= _MIN_HALVED_UNITS
        if self.checks and not checks:
            notes += (
                f"no checks: a set of fewer than {_MIN_HALVED_UNITS} rows or groups has no halves",
            )
        if points.scale is None:
            # Coordinates that dwarf the others.
            for note in points.notes:
                warnings.warn(note, stacklevel=5)
        method = _resolve_method(asked, points)
        if self.error is not None:
            choice("error", self.error, ERRORS)
            _warn_few_rows(points, k, method == "score" and score is None)
        found = {
            "method": method, "k": k, "wanted": wanted, "grid": grid, "notes": notes,
            "stated": stated, "checks": checks, "confidence": confidence_level(self.confidence),
            "seed": seed_of(self.rng), "threads": threads_of(self.threads),
        }  # fmt: skip
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def on(self, points: Points) -> Request:
        """Return the same request on other rows, without new checks."""
        other = copy.copy(self)
        object.__setattr__(other, "points", points)
        return other

    def stream(self, purpose: int) -> np.random.Generator:
        """Return the random numbers for one purpose."""
        return np.random.default_rng((self.seed, purpose))

    def plan(
        self, sizes: tuple[int, int], groups: tuple[Labels | None, Labels | None]
    ) -> Plan | None:
        """Make the plan to resample the rows of two sets."""
        return plan_replicates(self.error, sizes, groups, self.stream(PLAN), self.replicates)


def _resolve_method(method: str, points: Points) -> str:
    if method != "auto":
        return method
    return "ball" if points.dim <= _MAX_BALL_DIMENSIONS or _mostly_atoms(points) else "score"


def _mostly_atoms(points: Points) -> bool:
    """Return True if 99 % of the rows have values that the ball treats as atoms."""
    m0, m1 = points.multiplicity
    # The ball's rule of five, in either direction.
    atom = ((m0 > 0) & (np.maximum(m0 - 1, m1) >= 5)) | ((m1 > 0) & (np.maximum(m1 - 1, m0) >= 5))
    return bool((m0 + m1)[atom].sum() >= _MIN_ATOM_SHARE * sum(points.sizes))


def _choose_neighbours(given: Any, points: Points) -> int:
    k = integer("k", given, 1)
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
    told = f"error bars from {smaller} rows are rough: {_MIN_ERROR_BAR_ROWS} or more are needed"
    if fitted:
        told += (
            f", and {to_see(points.dim, k, fitted):,} for a fitted score of {points.dim:,} numbers "
            "to see half of one nat"
        )
    warnings.warn(told, stacklevel=6)


def _states_independence(rows: Any, points: Points, certified: bool) -> bool:
    """Return True if the caller stated which rows or groups are independent."""
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


def _max_order(method: str, points: Points, k: int) -> float:
    """Return the largest order that the method and the one shown with it allow."""
    if method == "poczos":
        # At k + 1 its constant has a pole.
        return float(np.nextafter(k + 1, 0))
    return np.inf if method.startswith("paper") else float(min(*points.sizes, k + 1))


def _read_order_grid(alphas: Any, limit: float, k: int) -> tuple[Reals, Reals, tuple[str, ...]]:
    """Return the requested orders, and the finer grid on which beliefs are decided."""
    usual = _ORDER_RATIO ** np.arange(1, 64)
    usual = usual[usual <= min(_MAX_DEFAULT_ORDER, limit)]
    if alphas is KL_ONLY:
        return np.ones(1), np.ones(1), ()
    if alphas is None:
        wanted = np.concatenate([np.ones(1), usual])
        short = limit < _MAX_DEFAULT_ORDER
        note = f"orders stop at {wanted[-1]:.3g}: the method allows at most {limit:g} here"
        return wanted, wanted, (note,) if short else ()
    wanted = _check_orders(alphas)
    if wanted[-1] > limit:
        raise invalid(
            "alphas",
            f"at most {limit:.15g} (both numbers of rows, and k + 1, below which poczos stays)",
            float(wanted[-1]),
        )
    # Beliefs need the curve between one and the orders asked for.
    finer = usual[usual <= min(max(wanted[-1], _ORDER_RATIO), 1.0 + k)]
    lower = 1.0 / usual[usual <= 1.0 / wanted[0]] if wanted[0] < 1.0 else usual[:0]
    return wanted, np.unique(np.concatenate([wanted, np.ones(1), finer, lower])), ()


def _check_orders(alphas: Any) -> Reals:
    try:
        wanted = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        raise mistyped("alphas", "None or orders above 0", alphas) from None
    if wanted.ndim != 1 or not len(wanted):
        raise invalid("alphas", "one order or a row of them", alphas)
    wrong = wanted[~(np.isfinite(wanted) & (wanted > 0.0))]
    if len(wrong):
        raise invalid("alphas", "finite orders above 0", float(wrong[0]))
    if (np.diff(wanted) <= 0.0).any():
        raise invalid("alphas", "strictly ascending", wanted.tolist())
    return wanted
