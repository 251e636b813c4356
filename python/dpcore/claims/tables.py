"""Claims that are tables: any trade-off curve, held as its tangents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped, numeric, show
from ..hints import hinted
from ..records import frozen_array, one_line
from .claim import Claim, Floats, tangent_slopes

__all__ = ["TradeOff", "check_number_row", "outer_corners"]

_TYPE_ONE_ERRORS: Final = np.concatenate(
    [
        [0.0],
        np.geomspace(1e-12, 1e-3, 161)[:-1],
        np.linspace(1e-3, 0.999, 697),
        1.0 - np.geomspace(1e-3, 1e-12, 161)[1:],
        [1.0],
    ]
)
"""Type I errors at which a function is read."""
_FUNCTION_ROUNDING: Final = (1e-13, 4e-16)
"""Rounding that a function may have: of its value, and of its argument (times the slope). By so
much it may exceed a chord, and is lowered."""
_TANGENT_ROUNDING: Final = 1e-15


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TradeOff(Claim, word="TradeOff"):
    """A claim of any trade-off curve: a function, or (epsilon, delta) pairs that hold together.

    A function is read at 1,019 type I errors. By convexity the lines through neighbouring points
    lie below it elsewhere, and the claim becomes the largest convex curve that these leave: it is
    nowhere above the function, and says nothing about a delta below 1e-12. Of a function f that is
    not its own inverse max(f, f^-1) is meant, as the claim is about both orders of a pair. Files
    and other processes hold the table, never the function.

    Args:
        function: from a type I error, a float from 0 to 1, to the least type II error: convex, at
            least 0 and at most 1 - a; None where epsilons and deltas are given.
        epsilons: epsilons, at least 0, rising, shape `(m,)`.
        deltas: the delta of each, from 0 to below 1.
        origin: where the curve comes from, for reports.

    Raises:
        TypeError: if an argument is of the wrong kind, or both or neither form is given.
        ValueError: if the function is not convex, or below 0 or above 1 - a at a point, which is
            named; if epsilons are not rising or an entry is out of range.

    Source:
        Dong, Roth and Su (2022), definition 2.1, proposition 2.12 for (epsilon, delta) pairs as
        tangents.

    Example:
        >>> claim = TradeOff(lambda a: max(0.0, 1.0 - 2.0 * a, (1.0 - a) / 2.0))
        >>> round(claim.epsilon(1e-9), 6), round(claim.delta(0.0), 6)
        (0.693147, 0.333333)
        >>> round(TradeOff(epsilons=[1.0, 4.0], deltas=[0.1, 1e-5]).delta(1.0), 6)
        0.1
    """

    epsilons: Floats
    deltas: Floats
    origin: str

    conversion: ClassVar[str] = "a table of tangents, rounded down"

    def __init__(
        self,
        function: Callable[[float], float] | None = None,
        epsilons: npt.ArrayLike | None = None,
        deltas: npt.ArrayLike | None = None,
        origin: str = "",
    ) -> None:
        """Read the function, or check the pairs."""
        if (function is None) == (epsilons is None) or (epsilons is None) != (deltas is None):
            requirement = "given, or epsilons and deltas instead of it"
            raise mistyped("function", requirement, function)
        if function is not None:
            if not callable(function):
                raise mistyped("function", "a function of a type I error", function)
            origin = origin or f"function {getattr(function, '__name__', show(function))}"
            epsilons, deltas = _convert_to_pairs(
                *outer_corners(_TYPE_ONE_ERRORS, _read_function(function))
            )
        slopes, heights = _check_pairs(epsilons, deltas)
        object.__setattr__(self, "epsilons", frozen_array(slopes))
        object.__setattr__(self, "deltas", frozen_array(heights))
        object.__setattr__(self, "origin", one_line(origin or "pairs of epsilon and delta", 60))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Rebuild from the table."""
        return type(self), (None, self.epsilons, self.deltas, self.origin)

    def in_words(self) -> str:
        """Return the claim as reports state it."""
        return f"trade-off curve of {self.origin}"

    def least_type_one(self, power: float) -> float:
        """Return the least type I error of any test with a given power."""
        found = max(
            float(((power - self.deltas) * np.exp(-self.epsilons)).max()),
            float((1.0 - self.deltas - np.exp(self.epsilons) * (1.0 - power)).max()),
        )
        return max(0.0, found - _TANGENT_ROUNDING * found)

    def tangents(self) -> tuple[Floats, Floats]:
        """Return the (epsilon, delta) among which a pilot chooses, its own where they are few."""
        epsilons = tangent_slopes(self)
        if self.epsilons.size <= epsilons.size:
            return self.epsilons, self.deltas
        return epsilons, self.delta(epsilons)

    def _type_two(self, errors: Floats) -> Floats:
        steep, flat = np.exp(self.epsilons), np.exp(-self.epsilons)
        first = (1.0 - self.deltas - steep * errors[:, np.newaxis]).max(axis=1)
        second = (flat * (1.0 - self.deltas - errors[:, np.newaxis])).max(axis=1)
        found: Floats = np.maximum(np.maximum(first, second) - _TANGENT_ROUNDING, 0.0)
        return found

    def _deltas(self, epsilons: Floats) -> Floats:
        slopes, deltas = _list_tangents(self)
        # Beyond the last tangent it is the point (0, 1 - delta) that limits the curve.
        found: Floats = np.interp(np.exp(np.minimum(epsilons, 700.0)), slopes, deltas)
        return found * (1.0 + _TANGENT_ROUNDING)

    def _epsilon(self, delta: float) -> float:
        slopes, deltas = _list_tangents(self)
        if delta < deltas[-1]:
            return math.inf
        # delta(epsilon) falls: the first place where it is low enough.
        place = int(np.argmax(deltas <= delta))
        if place == 0 or slopes[place] <= 1.0:
            return 0.0
        share = (deltas[place - 1] - delta) / (deltas[place - 1] - deltas[place])
        slope = slopes[place - 1] + share * (slopes[place] - slopes[place - 1])
        return max(0.0, math.log(slope)) * (1.0 + _TANGENT_ROUNDING)


@lru_cache(maxsize=64)
def _list_tangents(claim: TradeOff) -> tuple[Floats, Floats]:
    """Return slopes e^epsilon and deltas of all tangents: delta is convex in the slope.

    A tangent of the curve is one of its inverse too, and the curve is not below 0: slope 0, delta
    1. Between tangents delta is what the corner between them leaves.
    """
    steep = np.exp(np.minimum(claim.epsilons, 700.0))
    # The line a = (1 - delta) - s b of the inverse is b = (1 - delta)/s - a/s.
    slopes = np.concatenate([[0.0], 1.0 / steep[::-1], steep])
    deltas = np.concatenate([[1.0], 1.0 - (1.0 - claim.deltas[::-1]) / steep[::-1], claim.deltas])
    # 1 - a is above every curve: no delta falls below 0, and none is above that of a smaller slope.
    return _lower_hull(slopes, np.minimum.accumulate(deltas))


def check_number_row(name: str, value: Any) -> Floats:
    """Return an argument as a row of float64, at least one.

    Args:
        name: of the argument.
        value: its value.

    Raises:
        TypeError: if it does not hold numbers.
        ValueError: if it is empty or has another dimension than one.
    """
    array = numeric(name, "a non-empty row of numbers", value)
    if array.ndim != 1 or array.size == 0:
        raise invalid(name, "a non-empty row of numbers", value)
    return array.astype(np.float64)


def _check_pairs(epsilons: Any, deltas: Any) -> tuple[Floats, Floats]:
    """Return checked epsilons and deltas."""
    slopes = check_number_row("epsilons", epsilons)
    heights = check_number_row("deltas", deltas)
    if not (np.isfinite(slopes) & (slopes >= 0.0)).all():
        raise invalid("epsilons", "finite and at least 0 in every entry", epsilons)
    if (np.diff(slopes) <= 0.0).any():
        raise invalid("epsilons", "in rising order, each given once", epsilons)
    if heights.shape != slopes.shape:
        raise invalid("deltas", f"{slopes.size} numbers, one for each epsilon", deltas)
    if not ((heights >= 0.0) & (heights < 1.0)).all():
        raise invalid("deltas", "at least 0 and below 1 in every entry", deltas)
    return slopes, heights


def _read_function(function: Callable[[float], float]) -> Floats:
    """Return the values of a function at the type I errors, checked and lowered by rounding."""
    found = []
    for error in _TYPE_ONE_ERRORS.tolist():
        value = function(error)
        try:
            found.append(float(value))
        except (TypeError, ValueError):
            raise mistyped(f"function({error:g})", "a number", value) from None
    values = np.array(found)
    for index in np.flatnonzero(
        ~((values >= 0.0) & (values <= 1.0 - _TYPE_ONE_ERRORS + _FUNCTION_ROUNDING[0]))
    )[:1]:
        most = f"from 0 to 1 - {_TYPE_ONE_ERRORS[index]:g}"
        raise invalid(f"function({_TYPE_ONE_ERRORS[index]:.6g})", most, values[index])
    slopes = np.abs(np.diff(values) / np.diff(_TYPE_ONE_ERRORS))
    slack = _FUNCTION_ROUNDING[0] + _FUNCTION_ROUNDING[1] * np.maximum(
        np.append(slopes, 0.0), np.append(0.0, slopes)
    )
    share = (_TYPE_ONE_ERRORS[1:-1] - _TYPE_ONE_ERRORS[:-2]) / (
        _TYPE_ONE_ERRORS[2:] - _TYPE_ONE_ERRORS[:-2]
    )
    chord = values[:-2] + share * (values[2:] - values[:-2])
    for index in np.flatnonzero(values[1:-1] > chord + slack[1:-1])[:1]:
        where, most = _TYPE_ONE_ERRORS[index + 1], chord[index]
        requirement = f"at most {most:.6g}, as a convex function is from its neighbours"
        raise invalid(f"function({where:.6g})", requirement, values[index + 1])
    lowered: Floats = np.maximum(np.minimum(values, 1.0 - _TYPE_ONE_ERRORS) - slack, 0.0)
    return lowered


def outer_corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return corners of a convex line that is nowhere above a convex function.

    On each interval between points the function is above the lines through the two points before
    it and the two behind; the corners are where these cross.

    Args:
        x: points in rising order, at least four.
        y: values of the convex function there.

    Returns:
        The corners, x in rising order from the first point to the last.
    """
    x, y = _lower_hull(x, y)
    if x.size < 4:
        return x, y
    slopes = np.diff(y) / np.diff(x)
    before, behind = slopes[:-2], slopes[2:]
    left, right = x[1:-2], x[2:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = (y[2:-1] - y[1:-2] - behind * (right - left)) / (before - behind)
    # Parallel lines: the function is straight here.
    shift = np.where(np.isfinite(shift), shift, 0.0).clip(0.0, right - left)
    first = y[1] - slopes[1] * (x[1] - x[0])
    last = y[-2] + slopes[-2] * (x[-1] - x[-2])
    inner = y[1:-2] + before * shift
    return _lower_hull(
        np.concatenate([x[:1], left + shift, x[-1:]]), np.concatenate([[first], inner, [last]])
    )


def _lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the largest convex function that is nowhere above the points."""
    kept: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if kept and point[0] <= kept[-1][0]:
            kept[-1] = (kept[-1][0], min(kept[-1][1], point[1]))
            continue
        while len(kept) > 1 and _turns_up(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array([one[0] for one in kept]), np.array([one[1] for one in kept])


def _turns_up(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    """Return True if the middle point lies on or above the line between the others."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


def _convert_to_pairs(errors: Floats, type_two: Floats) -> tuple[Floats, Floats]:
    """Return the (epsilon, delta) pairs of the pieces of a curve and of its inverse."""
    slopes = -np.diff(type_two) / np.diff(errors)
    heights = type_two[:-1] + slopes * errors[:-1]
    steep = slopes >= 1.0
    rising = slopes > 0.0
    # A piece of slope below 1 is one of slope above 1 of the inverse, which holds as well.
    slopes, heights = slopes[rising], heights[rising]
    steep = steep[rising]
    epsilons = np.abs(np.log(slopes))
    deltas = 1.0 - np.where(steep, heights, heights / slopes)
    order = np.lexsort((deltas, epsilons))
    epsilons, deltas = epsilons[order], deltas[order].clip(0.0, 1.0)
    first = np.append(True, np.diff(epsilons) > 0.0) & (deltas < 1.0)
    if not first.any():
        return np.zeros(1), np.array([np.nextafter(1.0, 0.0)])
    return epsilons[first], deltas[first]
