"""Sensitivities in closed form, each with the pair that attains it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, instance, invalid, mistyped, real
from ..hints import hinted
from ..pairs import NORMS, Box, distance
from ..pairs.domains import domain_of
from ..pairs.norms import Norm
from ..records import Pair, Record
from ._rows import Floats
from ._sets import unit_vector
from .domains import Ball, MinMaxRows, OneHot, Simplex, Sphere
from .histograms import Histogram

__all__ = ["AGAINST", "Against", "Sensitivity", "sensitivity", "show_pair"]

Against = Literal["another", "absent"]
AGAINST: Final[tuple[Against, ...]] = get_args(Against)
"""Kinds of the second input of a pair: another row, or none, which counts as zeros."""

_ATTAINED_TOLERANCE: Final = 1e-12
"""Relative difference that the pair's distance may have from the value."""

_SensitivityForm = tuple[float, Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivity(Record, word="Sensitivity"):
    """The largest distance of two neighbours of a domain, and a pair that attains it.

    Making one checks it by the subtraction that anybody can repeat: the pair consists of members
    and lies at distance `value`, to 1e-12 relative.

    Args:
        value: the largest distance, in the units of the entries.
        pair: two neighbours that attain it, vectors of float64.
        norm: "l1", "l2" or "linf".
        domain: where inputs lie.
        against: "another" if the second input is any neighbour, "absent" if it is zeros.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if the pair does not attain the value, one of its inputs is no member, or they
            are no neighbours.

    Example:
        >>> found = sensitivity(Ball("l2", 1.0, 4), "l1")
        >>> found.value, abs(found.pair.x - found.pair.x_prime).sum()
        (4.0, np.float64(4.0))
    """

    value: float
    pair: Pair
    norm: Norm
    domain: Any
    against: Against = "another"

    def __post_init__(self) -> None:
        """Check that the pair is one of members, and that it attains the value."""
        object.__setattr__(self, "value", real("value", self.value, low=0.0))
        choice("against", self.against, AGAINST)
        domain_of(self.domain)
        attained = distance(instance("pair", self.pair, Pair), self.norm)
        if abs(attained - self.value) > _ATTAINED_TOLERANCE * self.value:
            raise invalid("value", f"the {self.norm} distance of its pair, {attained}", self.value)
        for name in ("x", "x_prime"):
            if not self.domain.contains(getattr(self.pair, name)):
                requirement = f"a member of {self.domain!r}"
                raise invalid(f"pair.{name}", requirement, getattr(self.pair, name))
        if self.against == "absent" and self.pair.x_prime.any():
            raise invalid("pair.x_prime", "zeros against an absent row", self.pair.x_prime)
        neighbouring = getattr(self.domain, "neighbouring", None)
        if neighbouring is not None and not neighbouring(self.pair.x, self.pair.x_prime):
            raise invalid("pair", "one of neighbours", self.pair)

    def __str__(self) -> str:
        """Return one line: the value and the pair that attains it."""
        absent = " against an absent row" if self.against == "absent" else ""
        return (
            f"{self.norm} sensitivity {self.value:.12g} of {self.domain!r}{absent}, "
            f"attained by {show_pair(self.pair)}"
        )


def show_pair(pair: Pair) -> str:
    """Format both inputs on one line for messages; long ones are shortened."""
    return " and ".join(
        f"{name} = {_shorten_repr(getattr(pair, name))}" for name in ("x", "x_prime")
    )


def _shorten_repr(x: Floats) -> str:
    text = np.array2string(x, precision=6, separator=", ", threshold=8, edgeitems=2)
    return " ".join(text.split())


@hinted
def sensitivity(domain: Any, norm: Norm, *, against: Against = "another") -> Sensitivity:
    """Compute the sensitivity of releasing a member of a domain, and a pair that attains it.

    The largest norm of x - x' over all pairs of members, since any two are neighbours (for
    `Histogram`: over all pairs whose data differ in one record):

    ========================  ==============  ===============  ==========
    domain                    l1              l2               linf
    ========================  ==============  ===============  ==========
    Box                       d (b - a)       sqrt(d) (b - a)  b - a
    MinMaxRows                d               sqrt(d)          1
    Ball("l1")                2 C             2 C              2 C
    Ball("l2")                2 C sqrt(d)     2 C              2 C
    Ball("linf")              2 C d           2 C sqrt(d)      2 C
    Simplex, OneHot, d >= 2   2               sqrt(2)          1
    Sphere                    2 sqrt(d)       2                2
    Histogram, replace        2               sqrt(2)          1
    Histogram, add_remove     1               1                1
    ========================  ==============  ===============  ==========

    Simplex, OneHot and Histogram with replacement have sensitivity 0 at d = 1. Sphere with another
    norm has the values of the ball of radius 1. A row against an absent one, which adds zeros to
    a sum, is at most half as far away in a ball: ``against="absent"``.

    Args:
        domain: a Box, MinMaxRows, Ball, Simplex, Sphere, OneHot or Histogram.
        norm: "l1" (for Laplace noise), "l2" (for Gaussian noise) or "linf".
        against: "another" for any two neighbours, "absent" for a row and zeros (balls only).

    Returns:
        The value and the pair.

    Raises:
        TypeError: if the domain is none of these, or another argument is not a string.
        ValueError: if `norm` or `against` is unknown, `against` does not suit the domain, or the
            value is beyond the range of float64.

    Source:
        Dwork and Roth (2014), definitions 3.1 and 3.8; the L2 ball in L1 is theorem 5.1 of
        Habernal (2021).

    Example:
        >>> sensitivity(Ball("l2", 5.0, 256), "l1").value
        160.0
        >>> print(sensitivity(MinMaxRows(3), "l1"))
        l1 sensitivity 3 of MinMaxRows(dim=3), attained by
        x = [1., 0., 0.] and x_prime = [0., 1., 1.]
        >>> sensitivity(Ball("l1", 5.0, 3), "l1", against="absent").value
        5.0
    """
    choice("norm", norm, NORMS)
    choice("against", against, AGAINST)
    # Exact types: a subclass could hold other members.
    form = _SENSITIVITY_FORMS.get(type(domain))
    if form is None:
        known = ", ".join(kind.__name__ for kind in _SENSITIVITY_FORMS)
        raise mistyped("domain", f"one with a closed form ({known})", domain)
    if against == "absent" and type(domain) is not Ball:
        requirement = "'another' where the domain is not a Ball"
        raise invalid("against", requirement, against)
    value, x, x_prime = form(domain, norm)
    if against == "absent":
        value, x_prime = value / 2.0, np.zeros(domain.dim)
    if not math.isfinite(value):
        raise invalid("domain", f"one whose {norm} sensitivity float64 can hold", domain)
    return Sensitivity(value, Pair(x, x_prime), norm, domain, against)


def _length_of_ones(dim: int, norm: Norm) -> float:
    return {"l1": float(dim), "l2": math.sqrt(dim), "linf": 1.0}[norm]


def _box_sensitivity(domain: Box, norm: Norm) -> _SensitivityForm:
    width = domain.high - domain.low
    low, high = np.full(domain.dim, domain.low), np.full(domain.dim, domain.high)
    return width * _length_of_ones(domain.dim, norm), low, high


def _min_max_rows(domain: MinMaxRows, norm: Norm) -> _SensitivityForm:
    x = unit_vector(domain.dim)
    return _length_of_ones(domain.dim, norm), x, 1.0 - x


def _ball_sensitivity(domain: Ball, norm: Norm) -> _SensitivityForm:
    """Return opposite ends of the ball, along one axis or along the diagonal.

    Hoelder: on the unit p-ball the q-norm is at most d^(1/q - 1/p), attained by the diagonal, if
    q < p, and at most 1, attained by any axis (for p = inf by the diagonal), otherwise.
    """
    if NORMS.index(norm) < NORMS.index(domain.norm) or domain.norm == "linf":
        share = _length_of_ones(domain.dim, norm) / _length_of_ones(domain.dim, domain.norm)
        # The quotient of sqrt(d) may round up: clipping puts the corner back on the ball.
        level = domain.radius / _length_of_ones(domain.dim, domain.norm)
        x = domain.clip(np.full(domain.dim, level))
    else:
        share, x = 1.0, domain.radius * unit_vector(domain.dim)
    return 2.0 * domain.radius * share, x, -x


def _sphere_sensitivity(domain: Sphere, norm: Norm) -> _SensitivityForm:
    # Both ends of the ball lie on its surface.
    return _ball_sensitivity(Ball(domain.norm, 1.0, domain.dim), norm)


def _two_units(domain: Simplex | OneHot | Histogram, norm: Norm) -> _SensitivityForm:
    """Return two unit vectors and their distance, which is 0 if there is only one entry."""
    x, x_prime = unit_vector(domain.dim), unit_vector(domain.dim, domain.dim - 1)
    return (_length_of_ones(2, norm) if domain.dim > 1 else 0.0), x, x_prime


def _histogram_sensitivity(domain: Histogram, norm: Norm) -> _SensitivityForm:
    if domain.neighbours == "replace":
        return _two_units(domain, norm)
    return 1.0, unit_vector(domain.dim), np.zeros(domain.dim)


def in_norm(name: str, given: float | Sensitivity, norm: Norm) -> float:
    """Return a sensitivity as a number; a `Sensitivity` must be in the norm.

    Raises:
        ValueError: if it is one in another norm.

    Example:
        >>> from dpcore.sensitivity import Ball
        >>> in_norm("sensitivity", sensitivity(Ball("l1", 1.0, 3), "l1"), "l1")
        2.0
    """
    if not isinstance(given, Sensitivity):
        return given
    if given.norm != norm:
        raise invalid(name, f"a sensitivity in {norm}", f"one in {given.norm}")
    return given.value


_SENSITIVITY_FORMS: Final[dict[type, Callable[[Any, Norm], _SensitivityForm]]] = {
    Box: _box_sensitivity,
    MinMaxRows: _min_max_rows,
    Ball: _ball_sensitivity,
    Simplex: _two_units,
    Sphere: _sphere_sensitivity,
    OneHot: _two_units,
    Histogram: _histogram_sensitivity,
}
