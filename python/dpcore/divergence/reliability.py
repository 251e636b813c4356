"""Belief in an estimate by stated rules, and the number of rows that an estimate needs.

The first rule that applies names the belief of an order and a direction:

1. "refuted by its own certificate": a certified lower bound lies above the value by more than two
   standard errors.
2. "saturated": the value is within ln 2 of its ceiling (balls hold half of the numerator), or
   more than 1 % of the numerator's rows are repeated values that the other set does not have, or in
   one dimension more than 5 % of them lie beyond all rows of the other set (from order one on: no
   sample tells how rare they are there).
3. "not resolved at this alpha": the order is beyond `alpha_max`; or the method beside it lies
   above it, by more than two joint standard errors if it estimates something never larger (the
   score), by more than three else (the ball); or the energy test rejects P0 = P1 at the level
   `ENERGY_LEVEL`, and the value less two standard errors is not above 0; or, from order one on,
   `find_outside_units` finds rows beyond the other set; or repeated values have too few rows; or
   the value differs from 0 by less than four standard errors, and these are above .0125; or the
   method does not converge.
4. "estimate only".

`alpha_max` is the largest order up to which (i) alpha - 1 <= k/5 and (ii) alpha psi' - psi <=
.4 ln(N/depth), where psi = (alpha - 1) D: the left side of (ii) is the divergence from the tilted
law to the denominator, and an average over N rows needs N above its exponential (Chatterjee and
Diaconis 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .points import Raw, Reals

TOLD: Final = 4.0
SHARP: Final = 0.0125
"""A value within `TOLD` standard errors of 0 is resolved only if these are at most `SHARP`."""

SHARE: Final = 0.4
"""Of ln(N/k): the largest KL divergence that N rows and k neighbours resolve."""

_SHOWN_DIVERGENCE: Final = 1.0
"""The divergence in nats that `to_see` speaks of."""

REFUTED: Final = "refuted by its own certificate"
SATURATED: Final = "saturated"
UNRESOLVED: Final = "not resolved at this alpha"
ESTIMATE: Final = "estimate only"

DIRECTIONS: Final = ("D(P0||P1)", "D(P1||P0)")

_SIGNIFICANT_ERRORS: Final = 2.0
"""Standard errors by which a certificate or a held-out score must lie above; and half of the
interval that "calls a value 0" for the energy test."""

_SCORE_EXCESS_ERRORS: Final = 3.0
"""Joint standard errors by which the ball must lie above a score, which it may also exceed by its
bias where there are many coordinates."""

ENERGY_LEVEL: Final = 0.01

_MAX_UNSEEN_SHARE: Final = 0.01
_MAX_OUTSIDE_SHARE, _ALLOWED_EXTREMES = 0.05, 6.0
"""Of two equal laws 2/(N + 1) of the rows lie beyond the N others; three times that is allowed."""

_NEIGHBOURS_PER_ORDER: Final = 5.0
_ROWS_ABOVE_ONE, _ROWS_ANY_ORDER = 10.0, 3.0

Mask = npt.NDArray[np.bool_]


def to_tell(value: float, spread: float, rows: int) -> int:
    """Return the rows of each set that resolve a value, if its error falls with their root.

    Args:
        value: the estimate.
        spread: its standard error from `rows` rows of the smaller set.
        rows: those.
    """
    wanted = max(SHARP, abs(value) / TOLD)
    return _round_up(rows * (spread / wanted) ** 2)


def to_see(dim: int, k: int, fitted: bool) -> int:
    """Return the least number of rows of each set at which a divergence of one nat shows.

    Balls of k neighbours resolve a KL divergence of .4 ln(N/k). A score is fitted on half of the
    rows, and shows in the other half: twice as many. A linear score of d coordinates, fitted on n
    rows of each of two normal laws mu apart, sees the share mu^2/(mu^2 + 2 d/n) of their KL
    divergence mu^2/2, for the rest of its direction is the noise of both means: half of one nat
    with n = d, which takes 2 d rows of each set.

    Args:
        dim: coordinates of a row.
        k: neighbours.
        fitted: True for a fitted score.
    """
    balls = k * math.exp(_SHOWN_DIVERGENCE / SHARE)
    return math.ceil(max(2 * balls, 2 * dim / _SHOWN_DIVERGENCE) if fitted else balls)


def too_few(sizes: tuple[int, int], dim: int, k: int, fitted: bool) -> str:
    """Explain the limit of too few rows, and give the number that suffices."""
    need = to_see(dim, k, fitted)
    numbers = f"{dim:,} number{'s'[: dim > 1]}"
    return (
        f"{sizes[0]:,} and {sizes[1]:,} rows of {numbers} are too few to show any divergence with "
        f"k = {k} neighbours: to see about half of one nat takes {need:,} rows of each set"
    )


def fitting_note(rows: int, dim: int, k: int) -> str:
    """Return a note on a score fitted on too few rows to see half of one nat."""
    return (
        f"{rows:,} rows of {dim:,} numbers are few for a fitted score: of a divergence of "
        f"{2 * dim / rows:.3g} nats it sees about half, of smaller ones less; one nat takes "
        f"{to_see(dim, k, True):,} rows of each set"
    )


def _round_up(rows: float) -> int:
    """Round up to two digits, as the number is a guess."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(rows, 1.0))) - 1)
    return math.ceil(rows / unit) * unit


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The belief in every value, and what follows from it."""

    belief: npt.NDArray[np.str_]
    resolved: Mask
    reason: str
    alpha_max: tuple[float | None, float | None]
    std_error: Reals


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """All that a belief rests on, on one grid of orders that holds 1.

    Args:
        alphas: orders, ascending.
        raw: what the method returned.
        sizes: rows of the two sets.
        k: neighbours asked for.
        certified: certified lower bounds, shape (2, n_alpha), or None.
        beside: what a method returned whose target is never larger, or None.
        above: what a method returned that may see what this one is blind to, or None; of one row
            of each group, since balls count the others of a group as neighbours.
        energy_p: p-value of the energy test of P0 = P1; NaN where it was not made.
        outside: for each direction what of the numerator lies beyond the denominator, in words.
        dim: coordinates of a row.
        fitted: True if the estimate rests on a fitted score.
        inconsistent: True for a method that does not converge to a divergence.
        asked: which orders the caller asked for, shape (n_alpha,): the reason speaks of these.
    """

    alphas: Reals
    raw: Raw
    sizes: tuple[int, int]
    k: int
    certified: Reals | None = None
    beside: Raw | None = None
    above: Raw | None = None
    energy_p: float = np.nan
    outside: tuple[str | None, str | None] = (None, None)
    dim: int = 1
    fitted: bool = False
    inconsistent: bool = False
    asked: Mask | None = None


def judge_estimate(case: Case) -> Judged:
    """Judge the estimate belief by belief, in the order of the rules."""
    value, spread = case.raw.value, np.nan_to_num(case.raw.std_error, nan=0.0, posinf=0.0)
    largest = tuple(_compute_alpha_max(case, direction) for direction in (0, 1))
    beyond = np.stack([case.alphas > (0.0 if top is None else top) for top in largest])
    refuted = np.zeros(value.shape, bool)
    if case.certified is not None:
        # A bound of 0 says nothing, though it is above a negative value.
        refuted = (case.certified > value + _SIGNIFICANT_ERRORS * spread) & (case.certified > 0.0)
    unseen = np.array([_describe_unseen(case, direction) is not None for direction in (0, 1)])
    saturated = (value > case.raw.ceiling - np.log(2.0)) | np.isposinf(value)
    saturated |= unseen[:, None] & (case.alphas >= 1.0)
    causes = _list_causes(case, beyond, spread)
    unresolved = np.logical_or.reduce([mask for mask, _ in causes])
    chosen = [refuted, saturated, unresolved]
    belief = np.select(chosen, [REFUTED, SATURATED, UNRESOLVED], ESTIMATE)
    resolved = belief == ESTIMATE
    reason = _choose_reason(case, refuted, saturated & ~refuted, causes, resolved)
    error = np.where(beyond, np.nan, case.raw.std_error)
    return Judged(belief, resolved, reason, (largest[0], largest[1]), error)


def exact_zero(alphas: Reals) -> Judged:
    """Return 0 for every divergence: the two sets hold the same rows equally often."""
    shape, top = (2, len(alphas)), float(alphas[-1])
    reason = "the two sets hold the same rows equally often, so every divergence of them is 0"
    belief, resolved = np.full(shape, ESTIMATE), np.ones(shape, bool)
    return Judged(belief, resolved, reason, (top, top), np.zeros(shape))


def _compute_alpha_max(case: Case, direction: int) -> float | None:
    alphas, value = case.alphas, case.raw.value[direction]
    rows = case.sizes[1 - direction] / case.raw.depth[direction]
    with np.errstate(invalid="ignore"):
        psi = np.where(alphas == 1.0, 0.0, (alphas - 1.0) * value)
        slope = np.gradient(psi, alphas) if len(alphas) > 1 else value
        # At order one the derivative is the KL divergence itself.
        slope = np.where(alphas == 1.0, value, slope)
        within = alphas * slope - psi <= SHARE * np.log(rows)
        within &= alphas - 1.0 <= case.k / _NEIGHBOURS_PER_ORDER
    kept = alphas[np.logical_and.accumulate(within)]
    return float(kept[-1]) if len(kept) else None


def _list_causes(case: Case, beyond: Mask, spread: Reals) -> list[tuple[Mask, str]]:
    """List reasons why a value may not be resolved: the place, and the words."""
    value, above_one = case.raw.value, np.broadcast_to(case.alphas > 1.0, beyond.shape)
    rows = case.raw.rows_per_atom
    causes = [
        (beyond, "the order is beyond alpha_max: too few rows decide its average"),
        (~np.isfinite(value), "the value is not finite"),
        (
            above_one & (rows < _ROWS_ABOVE_ONE) | (rows < _ROWS_ANY_ORDER),
            f"repeated values have {rows:.3g} rows each: 3 are needed, 10 for orders above one",
        ),
    ]
    causes += _find_contradictions(case, spread)
    causes.append(_find_blurred(case, spread))
    if case.beside is not None:
        apart = np.hypot(spread, np.nan_to_num(case.beside.std_error, nan=0.0))
        mask = case.beside.value > value + _SIGNIFICANT_ERRORS * apart
        causes.append((mask, "a held-out score sees more than this method does"))
    if case.inconsistent:
        text = "this form does not converge to a Renyi divergence, however many the rows"
        causes.insert(0, (np.ones(value.shape, bool), text))
    return causes


def _find_contradictions(case: Case, spread: Reals) -> list[tuple[Mask, str]]:
    """List findings of the other checks that contradict the estimate."""
    value, causes = case.raw.value, []
    if case.above is not None:
        apart = np.hypot(*(_fill_errors(case, each.std_error) for each in (case.raw, case.above)))
        mask = case.above.value > value + _SCORE_EXCESS_ERRORS * apart
        causes.append((mask, _explain_blindness(case, mask)))
    if case.energy_p <= ENERGY_LEVEL:
        text = (
            f"the energy test tells the sets apart (p = {case.energy_p:.3g}), where the value is 0 "
            "within two standard errors"
        )
        causes.append((value <= _SIGNIFICANT_ERRORS * spread, text))
    for i, seen in enumerate(case.outside):
        mask = np.zeros(value.shape, bool)
        mask[i] = (case.alphas >= 1.0) & (seen is not None)
        causes.append((mask, f"{seen}: no sample tells how rare they are there"))
    return causes


def _fill_errors(case: Case, error: Reals) -> Reals:
    """Return standard errors; if missing, use rough upper values for equal laws."""
    if np.isfinite(error).any():
        return np.nan_to_num(error, nan=0.0, posinf=0.0)
    rough = np.sqrt(np.maximum(case.alphas, 1.0) * sum(1.0 / size for size in case.sizes))
    return np.broadcast_to(rough, error.shape)


def _explain_blindness(case: Case, mask: Mask) -> str:
    if not mask.any() or case.above is None:
        return ""
    i, j = _find_lowest_order(mask)
    other, error = case.above.value[i, j], case.above.std_error[i, j]
    told = "" if np.isnan(error) else f" +- {error:.3g}"
    return (
        f"the ball gives {other:.4g}{told} where the score gives {case.raw.value[i, j]:.3g}: the "
        "score may be blind to a difference"
    )


def _find_blurred(case: Case, spread: Reals) -> tuple[Mask, str]:
    """Find values not distinguished from 0; say how many rows would resolve the first."""
    value = case.raw.value
    mask = (spread > SHARP) & (np.abs(value) < TOLD * spread)
    text = "the standard error is too large to tell the value from 0"
    asked = mask if case.asked is None else mask & case.asked
    if asked.any():
        i, j = _find_lowest_order(asked)
        rows = to_tell(float(value[i, j]), float(spread[i, j]), min(case.sizes))
        text += f" (about {rows:,} rows of each set would)"
    return mask, text


def _choose_reason(
    case: Case, refuted: Mask, saturated: Mask, causes: list[tuple[Mask, str]], resolved: Mask
) -> str:
    """Return one sentence on the first rule that applies to any requested order."""
    asked = np.ones(len(case.alphas), bool) if case.asked is None else case.asked
    if (refuted & asked).any():
        assert case.certified is not None
        gap = np.where(refuted & asked, case.certified - case.raw.value, -np.inf)
        i, j = divmod(int(np.argmax(gap)), len(asked))
        return (
            f"a held-out event certifies at least {case.certified[i, j]:.3g} for "
            f"{_format_order(i, case.alphas[j])}, where the estimate is {case.raw.value[i, j]:.3g}"
        )
    if (saturated & asked).any():
        i, j = np.argwhere(saturated & asked)[0].tolist()
        return _explain_saturation(case, i, j)
    if resolved[:, asked].all():
        return "every order is resolved, which makes no bound of it: nothing here is certified"
    # The cause of the lowest order that is not resolved.
    i, j = _find_lowest_order(~resolved & asked)
    text = next(text for mask, text in causes if mask[i, j])
    return f"from {_format_order(i, case.alphas[j])} on, {text}"


def _find_lowest_order(mask: Mask) -> tuple[int, int]:
    """Return direction and place of the lowest order in a mask, of the first direction."""
    place, direction = np.argwhere(mask.T)[0].tolist()
    return direction, place


def _describe_unseen(case: Case, i: int) -> str | None:
    """Describe the numerator's rows missing from the denominator; return None if few."""
    share, beyond = case.raw.unseen_share[i], case.raw.beyond_share[i]
    if share > _MAX_UNSEEN_SHARE:
        return f"{share:.1%} of the rows of y{i} are repeated values that y{1 - i} does not have"
    if beyond > _MAX_OUTSIDE_SHARE + _ALLOWED_EXTREMES / (case.sizes[1 - i] + 1):
        return f"{beyond:.1%} of the rows of y{i} (or their scores) lie beyond all of y{1 - i}"
    return None


def _explain_saturation(case: Case, i: int, j: int) -> str:
    unseen = _describe_unseen(case, i)
    if unseen is not None:
        return f"{unseen}: no sample tells how rare they are, and {DIRECTIONS[i]} may be infinite"
    if case.raw.ceiling[i, j] <= np.log(2.0):
        return too_few(case.sizes, case.dim, case.k, case.fitted)
    return (
        f"{_format_order(i, case.alphas[j])} is {case.raw.value[i, j]:.3g}, as large as "
        f"{case.sizes[0]} and {case.sizes[1]} rows can show: the sets lie farther apart than "
        "this sample can tell"
    )


def _format_order(direction: int, alpha: float) -> str:
    order = "KL" if alpha == 1.0 else f"order {alpha:.4g}"
    return f"{DIRECTIONS[direction]} at {order}"
