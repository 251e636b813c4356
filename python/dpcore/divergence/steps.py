"""The steps from two sets of rows to an `Estimate`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..streams import threads_of
from .certificates import Certificate, certify, epsilon_lower
from .estimators.ball import estimate_by_balls
from .estimators.paper import estimate_by_paper
from .estimators.poczos import estimate_by_distances
from .estimators.score import CrossFit, cross_fit, score_ball
from .points.points import Points
from .points.task import Task
from .raw import Raw
from .record import Beside, Diagnostics, Estimate
from .reliability.belief import Case, Judged, exact_zero, judge_estimate
from .reliability.beyond import find_outside_units
from .reliability.checks import Checks, check_equality
from .reliability.group_sizes import size_p_value, two_laws
from .reliability.held_out import HeldOut, hold_out
from .reliability.needed import fitting_note
from .request import BEYOND, CHECKS, DRAWN, FOLDS, GROUPS, HELD_OUT, SINGLE, Request

__all__ = ["run_estimate"]

_MIN_SINGLE_GROUPS: Final = 40
_MAX_BALL_ROWS: Final = 10_000
_MAX_SIZE_RATIO: Final = 20
"""Rows of a set that the ball takes at most, or times the rows of the smaller set, whichever is
more; beside another method the former."""


def run_estimate(request: Request) -> Estimate:
    """Run the method, the other one, the checks and the certificate, and judge them."""
    points = request.points
    fit = _fit_scores(request)
    used = _select_points(request, request.method)
    raw = _run_method(request, request.method, used, fit)
    other, beside = _run_other_method(request, fit)
    held_out = certificate = None
    if request.checks or request.certified:
        grouped = any(groups is not None for groups in points.groups)
        held_out = hold_out(points.unscaled, request.stream(HELD_OUT), request.score, grouped)
    if request.certified:
        assert held_out is not None
        certificate = certify(held_out, request.grid, request.confidence)
    checked, size_p = None, size_p_value(points, request.stream(GROUPS))
    if request.checks:
        assert fit is not None
        assert held_out is not None
        lower = None
        if request.stated:
            lower = epsilon_lower(held_out, 0.0, request.confidence)
        checked = replace(
            check_equality(points, fit, request.stream(CHECKS), request.confidence),
            certified=None if certificate is None else certificate.at(request.wanted).bound,
            epsilon_lower=lower,
            size_p=size_p,
        )
    above = _choose_ball_to_compare(request, beside, size_p) if other == "ball" else None
    score = beside if other == "score" else None
    judged = _judge_values(
        request,
        raw,
        used,
        beside=score,
        above=above,
        checked=checked,
        certificate=certificate,
        outside=_describe_outside(request, fit),
    )
    notes = (
        *points.notes,
        *request.notes,
        *raw.notes,
        *_note_subsample(points, used),
        *_note_few_rows(request, fit),
        *two_laws(size_p),
        *_note_negative(raw, np.isin(request.grid, request.wanted)),
        *_note_larger_value(request, raw, score),
    )
    return _make_estimate(
        request,
        raw,
        judged,
        notes,
        beside=None if beside is None else (other, beside),
        checked=checked,
        held_out=held_out,
        certificate=certificate,
    )


def _select_points(request: Request, method: str) -> Points:
    """Select the rows that a method uses.

    The ball needs not many more rows of one set than of the other: the smaller one decides the
    error, and a search takes time in proportion to both.
    """
    points = request.points
    if method != "ball" or points.dim == 1 or points.identical:
        return points
    enough = max(
        _MAX_BALL_ROWS, 0 if method != request.method else _MAX_SIZE_RATIO * min(points.sizes)
    )
    return points.drawn((enough, enough), request.stream(DRAWN))


def _run_method(request: Request, method: str, points: Points, fit: CrossFit | None) -> Raw:
    grid, k = request.grid, request.k
    if request.points.identical:
        return _make_zero(request)
    if method == "score":
        assert fit is not None
        return score_ball(fit, request.points, grid, k, request.plan, request.threads)
    task = Task(
        points=points,
        alphas=grid,
        k=k,
        plan=request.plan(points.sizes, points.groups),
        threads=threads_of(request.threads),
        progress=request.progress,
    )
    if method == "ball":
        return estimate_by_balls(task)
    if method == "poczos":
        return estimate_by_distances(task)
    literal = method == "paper-literal"
    return estimate_by_paper(task, self_neighbour=request.self_neighbour, literal=literal)


def _fit_scores(request: Request) -> CrossFit | None:
    if not (request.checks or request.method == "score"):
        return None
    return cross_fit(request.points, request.stream(FOLDS), request.score)


def _run_other_method(request: Request, fit: CrossFit | None) -> tuple[str, Raw | None]:
    """Run the method shown for comparison: the ball with a score, otherwise the score."""
    if not request.checks:
        return "", None
    other = "ball" if request.method == "score" else "score"
    return other, _run_method(request, other, _select_points(request, other), fit)


def _judge_values(
    request: Request,
    raw: Raw,
    used: Points,
    *,
    beside: Raw | None,
    above: Raw | None,
    checked: Checks | None,
    certificate: Certificate | None,
    outside: tuple[str | None, str | None],
) -> Judged:
    if request.points.identical and certificate is None:
        return exact_zero(request.grid)
    return judge_estimate(
        Case(
            alphas=request.grid,
            raw=raw,
            sizes=used.sizes,
            k=request.k,
            certified=None if certificate is None else certificate.bound,
            beside=None if beside is None else (beside.value, beside.std_error),
            above=None if above is None else (above.value, above.std_error),
            energy_p=np.nan if checked is None else checked.energy_p,
            outside=outside,
            dim=request.points.dim,
            fitted=request.method == "score",
            inconsistent=request.method.startswith("paper"),
            asked=np.isin(request.grid, request.wanted),
        )
    )


def _choose_ball_to_compare(request: Request, ball: Raw | None, size_p: float | None) -> Raw | None:
    """Return the ball to compare with a score, on one row of each group if these have one law.

    The rows of a group are near each other: as neighbours they raise the ball above its target.
    """
    points = request.points
    if ball is None or points.identical or points.units == points.sizes:
        return ball
    if two_laws(size_p) or min(points.units) < max(request.grid[-1], _MIN_SINGLE_GROUPS):
        return None
    few = request.on(points.single(request.stream(SINGLE)))
    return _run_method(few, "ball", _select_points(few, "ball"), None)


def _describe_outside(request: Request, fit: CrossFit | None) -> tuple[str | None, str | None]:
    """Describe in words the part of each set that lies beyond the other one."""
    if request.points.identical:
        return None, None
    scores = fit if request.method == "score" else None
    rng = request.stream(BEYOND)
    first, second = find_outside_units(request.points, scores, rng, threads_of(request.threads))
    return (None if first is None else str(first)), (None if second is None else str(second))


def _note_few_rows(request: Request, fit: CrossFit | None) -> tuple[str, ...]:
    """Return a note if a score is fitted on too few rows."""
    rows, dim = min(request.points.sizes), request.points.dim
    if request.method != "score" or fit is None or fit.kind != "logistic" or rows >= 2 * dim:
        return ()
    return (fitting_note(rows, dim, request.k),)


def _make_estimate(
    request: Request,
    raw: Raw,
    judged: Judged,
    notes: tuple[str, ...],
    *,
    beside: tuple[str, Raw] | None,
    checked: Checks | None,
    held_out: HeldOut | None,
    certificate: Certificate | None,
) -> Estimate:
    at = np.searchsorted(request.grid, request.wanted)
    one = int(np.searchsorted(request.grid, 1.0))
    other = None
    if beside is not None:
        method, found = beside
        other = Beside(method, found.value[:, at], found.std_error[:, at])
    # Those of the jackknife are no draws of the estimate: nothing converges along them.
    drawn = None if request.error == "jackknife" else raw.replicates
    diagnostics = Diagnostics(
        effective=raw.effective[:, at],
        unseen_share=raw.unseen_share,
        atom_share=raw.atom_share,
        rows_per_atom=raw.rows_per_atom,
        counted=raw.counted,
        scale=request.points.scale,
        replicates=None if drawn is None else drawn[..., at],
    )
    return Estimate(
        belief=judged.belief[:, at],
        reason=judged.reason,
        method=request.method,
        alphas=request.wanted,
        value=raw.value[:, at],
        std_error=judged.std_error[:, at],
        resolved=judged.resolved[:, at],
        ceiling=raw.ceiling[:, at],
        alpha_max=judged.alpha_max,
        kl=raw.value[:, one],
        sizes=request.points.sizes,
        dim=request.points.dim,
        k=request.k,
        depth=raw.depth,
        error=request.error,
        beside=other,
        checks=checked,
        certificate=None if certificate is None else certificate.at(request.wanted),
        held_out=held_out,
        stated=request.stated,
        confidence=request.confidence,
        diagnostics=diagnostics,
        notes=notes,
        seed=request.seed,
        seconds=time.perf_counter() - request.begun,
    )


def _make_zero(request: Request) -> Raw:
    """Make the result of every method for two equal sets."""
    shape = (2, len(request.grid))
    return Raw(
        value=np.zeros(shape),
        std_error=np.zeros(shape) if request.error else np.full(shape, np.nan),
        depth=(request.k, request.k),
        ceiling=np.full(shape, np.nan),
        effective=np.full(shape, np.nan),
        unseen_share=np.zeros(2),
        atom_share=np.zeros(2),
        rows_per_atom=np.nan,
    )


def _note_subsample(points: Points, used: Points) -> tuple[str, ...]:
    if used.sizes == points.sizes:
        return ()
    return (
        f"the ball is taken on {used.sizes[0]} and {used.sizes[1]} rows drawn at random: the "
        "smaller set decides the error",
    )


def _note_larger_value(request: Request, raw: Raw, score: Raw | None) -> tuple[str, ...]:
    """Return a note if a local method exceeds the score in many dimensions."""
    if score is None or request.points.dim <= 2:
        return ()
    spread = np.hypot(*(np.nan_to_num(each.std_error, nan=0.0) for each in (raw, score)))
    if not (raw.value > score.value + 2.0 * spread).any():
        return ()
    return (
        f"{request.method} gives more than the held-out score: either the score is blind to a "
        "difference, or the narrower law is over-estimated, as local methods do in many dimensions",
    )


def _note_negative(raw: Raw, at: Any) -> tuple[str, ...]:
    value = raw.value[:, at]
    if not (value < 0.0).any():
        return ()
    return (
        f"{int((value < 0.0).sum())} of {value.size} values are negative, down to "
        f"{value.min():.3g}: kept as they are, though no divergence is below 0",
    )
