"""Closed forms of sensitivities, pairs of inputs that attain them, and scales of noise.

A `Declaration` compares a sensitivity that a user declares with the value of the closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, instance, invalid, message, mistyped, real
from ..mechanisms import positive
from ..pairs import NORMS, Box, dimension, distance
from ..pairs.differences import Norm
from ..pairs.neighbours import attr_or_none, check_domain
from ..records import Floats, Pair, Record
from ..suggestions import explain_argument_errors
from . import domains

Against = Literal["another", "absent"]
AGAINST: Final[tuple[Against, ...]] = get_args(Against)
"""Choices for the second input of a pair: another input, or an absent input (zeros)."""

_ATTAINED_TOLERANCE: Final = 1e-12
"""Largest allowed relative difference between a sensitivity and the distance of its pair."""

_SensitivityForm = tuple[float, Floats, Floats]

_DECLARATION_TOLERANCE: Final = 1e-12
"""Largest relative difference between the declared and the true sensitivity that counts as
rounding."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivity(Record, word="Sensitivity"):
    """Largest distance between two neighbouring inputs, with a pair of inputs at this distance.

    The inputs are members of a set of inputs, the domain. The constructor checks that both inputs
    of the pair are in the domain, and that their distance equals `value` up to a relative error of
    1e-12.

    Args:
        value: largest distance between two neighbours, in the units of the entries of the inputs.
        pair: two neighbours at this distance, vectors of float64.
        norm: norm in which distances are measured: "l1", "l2" or "linf".
        domain: set of the possible inputs.
        against: "another" if the second input of a pair may be any neighbour of the first input,
            "absent" if the second input is always the zero vector.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the distance of the pair is not `value`, if an input is not in the domain, or
            if the inputs are not neighbours.

    Example:
        >>> from dpcore.sensitivity import Ball
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
        """Check that both inputs are members of the domain at distance `value`."""
        object.__setattr__(self, "value", real("value", self.value, low=0.0))
        choice("against", self.against, AGAINST)
        check_domain(self.domain)
        attained = distance(instance("pair", self.pair, Pair), self.norm)
        if abs(attained - self.value) > _ATTAINED_TOLERANCE * self.value:
            raise invalid("value", f"the {self.norm} distance of its pair, {attained}", self.value)
        for name, side in (("x", self.pair.x), ("x_prime", self.pair.x_prime)):
            if not self.domain.contains(side):
                raise invalid(f"pair.{name}", f"a member of {self.domain!r}", side)
        if self.against == "absent" and np.any(self.pair.x_prime):
            raise invalid("pair.x_prime", "zeros against an absent row", self.pair.x_prime)
        neighbouring = attr_or_none(self.domain, "neighbouring")
        if neighbouring is not None and not neighbouring(self.pair.x, self.pair.x_prime):
            raise invalid("pair", "one of neighbours", self.pair)

    def __str__(self) -> str:
        """Return one line with the sensitivity and with the pair that attains the sensitivity."""
        absent = " against an absent row" if self.against == "absent" else ""
        return (
            f"{self.norm} sensitivity {self.value:.12g} of {self.domain!r}{absent}, "
            f"attained by {format_pair(self.pair)}"
        )


def format_pair(pair: Pair) -> str:
    """Return a text on one line that shows both inputs of a pair, for messages.

    Long inputs are shortened.
    """
    both = (
        np.array2string(side, precision=6, separator=", ", threshold=8, edgeitems=2)
        for side in (pair.x, pair.x_prime)
    )
    x, x_prime = (" ".join(text.split()) for text in both)
    return f"x = {x} and x_prime = {x_prime}"


@explain_argument_errors
def sensitivity(domain: Any, norm: Norm, *, against: Against = "another") -> Sensitivity:
    """Compute the sensitivity of a set of inputs: the largest distance between two neighbours.

    The set of inputs is called the domain. A mechanism that adds noise to an input from the domain
    has this distance as its sensitivity.

    The sensitivity is the largest norm of x - x' over all pairs of neighbours x and x'. Any two
    inputs in the domain are neighbours, except for the domain `HistogramCounts`. In this domain,
    two histograms are neighbours only if their data differ in one record. The following table shows
    the sensitivity for each domain (row) and norm (column). In the table, C is the radius of the
    ball, a and b are the bounds of the box, and d is the dimension:

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
    counts, replace           2               sqrt(2)          1
    counts, add_remove        1               1                1
    ========================  ==============  ===============  ==========

    The two rows "counts" are for HistogramCounts, with the argument `neighbours` equal to "replace"
    or "add_remove". If d = 1, three domains have sensitivity 0: Simplex, OneHot, and
    HistogramCounts with "replace". The row "Sphere" is for a Sphere in the L2 norm. For a Sphere in
    the L1 or Linf norm, use the row of the Ball in the same norm with C = 1.

    With ``against="absent"``, x' is always the zero vector, because an absent record adds zeros to
    a sum. The sensitivity is then half of the value in the table. The value "absent" is possible
    only for a Ball.

    Args:
        domain: an instance of Box, MinMaxRows, Ball, Simplex, Sphere, OneHot or HistogramCounts.
        norm: norm in which distances are measured: "l1" (for Laplace noise), "l2" (for Gaussian
            noise) or "linf".
        against: "another" if x' may be any neighbour of x, "absent" if x' is the zero vector.

    Returns:
        The sensitivity, and a pair of neighbours at this distance.

    Raises:
        TypeError: if `domain` is not one of the listed domains, or if another argument is not a
            string.
        ValueError: if `norm` or `against` is unknown, if `against` is "absent" and the domain is
            not a Ball, or if the sensitivity exceeds the range of float64.

    Source:
        Dwork and Roth (2014), definitions 3.1 and 3.8. The L1 sensitivity of the L2 ball is theorem
        5.1 of Habernal (2021).

    Example:
        >>> from dpcore.sensitivity import Ball, MinMaxRows
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
    # Exact types are compared, because a subclass could have other members.
    form = _SENSITIVITY_FORMS.get(type(domain))
    if form is None:
        kinds = ", ".join(kind.__name__ for kind in _SENSITIVITY_FORMS)
        raise mistyped("domain", f"one with a closed form ({kinds})", domain)
    if against == "absent" and type(domain) is not domains.Ball:
        raise invalid("against", "'another' where the domain is not a Ball", against)
    value, x, x_prime = form(domain, norm)
    if against == "absent":
        value, x_prime = value / 2.0, np.zeros(domain.dim)
    if not math.isfinite(value):
        raise invalid("domain", f"one whose {norm} sensitivity float64 can hold", domain)
    return Sensitivity(value, Pair(x, x_prime), norm, domain, against)


def _norm_of_ones(dim: int, norm: Norm) -> float:
    return {"l1": float(dim), "l2": math.sqrt(dim), "linf": 1.0}[norm]


def _box_sensitivity(domain: Box, norm: Norm) -> _SensitivityForm:
    width = domain.high - domain.low
    low, high = np.full(domain.dim, domain.low), np.full(domain.dim, domain.high)
    return width * _norm_of_ones(domain.dim, norm), low, high


def _min_max_scaled_rows_sensitivity(domain: domains.MinMaxRows, norm: Norm) -> _SensitivityForm:
    x = domains.unit_vector(domain.dim)
    return _norm_of_ones(domain.dim, norm), x, 1.0 - x


def _ball_extreme_pair(domain: domains.Ball, norm: Norm) -> tuple[float, Floats, Floats]:
    """Return two opposite points of a ball and their distance, along one axis or the diagonal.

    The ball is a ball in the p-norm, and distances are in the q-norm. If q < p, the q-norm on the
    unit p-ball is at most d^(1/q - 1/p) (Hoelder's inequality), and the diagonal attains this
    value. If q >= p, the q-norm is at most 1, and any axis attains 1 (for p = inf, the diagonal).
    """
    if NORMS.index(norm) < NORMS.index(domain.norm) or domain.norm == "linf":
        share = _norm_of_ones(domain.dim, norm) / _norm_of_ones(domain.dim, domain.norm)
        # Division by sqrt(d) may round up. Clipping puts the corner back on the ball.
        level = domain.radius / _norm_of_ones(domain.dim, domain.norm)
        x = domain.clip(np.full(domain.dim, level))
    else:
        share, x = 1.0, domain.radius * domains.unit_vector(domain.dim)
    return 2.0 * domain.radius * share, x, -x


def _unit_vector_distance(
    domain: domains.Simplex | domains.OneHot | domains.HistogramCounts, norm: Norm
) -> tuple[float, Floats, Floats]:
    """Return two unit vectors and their distance. The distance is 0 if dim is 1."""
    x, x_prime = domains.unit_vector(domain.dim), domains.unit_vector(domain.dim, domain.dim - 1)
    return (_norm_of_ones(2, norm) if domain.dim > 1 else 0.0), x, x_prime


def _histogram_sensitivity(domain: domains.HistogramCounts, norm: Norm) -> _SensitivityForm:
    if domain.neighbours == "replace":
        return _unit_vector_distance(domain, norm)
    return 1.0, domains.unit_vector(domain.dim), np.zeros(domain.dim)


def sensitivity_to_number(name: str, stated: float | Sensitivity, norm: Norm) -> float:
    """Convert a sensitivity, given as a number or as a `Sensitivity`, to a number.

    If `stated` is a `Sensitivity`, it must be measured in the norm `norm`. The error message calls
    the number `name`.

    Raises:
        ValueError: if `stated` is a `Sensitivity` that is measured in another norm.

    Example:
        >>> from dpcore.sensitivity import Ball
        >>> sensitivity_to_number("sensitivity", sensitivity(Ball("l1", 1.0, 3), "l1"), "l1")
        2.0
    """
    if not isinstance(stated, Sensitivity):
        return stated
    if stated.norm != norm:
        raise invalid(name, f"a sensitivity in {norm}", f"one in {stated.norm}")
    return stated.value


_SENSITIVITY_FORMS: Final[dict[type, Callable[[Any, Norm], _SensitivityForm]]] = {
    Box: _box_sensitivity,
    domains.MinMaxRows: _min_max_scaled_rows_sensitivity,
    domains.Ball: _ball_extreme_pair,
    domains.Simplex: _unit_vector_distance,
    # The opposite ends of the ball lie on its surface.
    domains.Sphere: lambda domain, norm: _ball_extreme_pair(
        domains.Ball(domain.norm, 1.0, domain.dim), norm
    ),
    domains.OneHot: _unit_vector_distance,
    domains.HistogramCounts: _histogram_sensitivity,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declaration(Record, word="Declaration"):
    """Comparison of a sensitivity that a user declared with the true sensitivity.

    Args:
        declared: sensitivity that the user declared, finite and at least 0.
        attained: true sensitivity, with a pair of inputs whose distance is the true sensitivity.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `declared` is negative or not finite.

    Example:
        >>> from dpcore.sensitivity import MinMax
        >>> print(declaration(1.0, MinMax(), "l1", 768))
        declared 1, attained 768 by this pair (l1): x = [1., 0., ..., 0., 0.] and
        x_prime = [0., 1., ..., 1., 1.]; the declared one is too small
    """

    declared: float
    attained: Sensitivity

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "declared", real("declared", self.declared, low=0.0))
        instance("attained", self.attained, Sensitivity)

    @property
    def too_small(self) -> bool:
        """True if the declared sensitivity is below the true sensitivity: the noise is too low."""
        return self.attained.value > self.declared * (1.0 + _DECLARATION_TOLERANCE)

    @property
    def too_large(self) -> bool:
        """True if the declared sensitivity is above the true sensitivity: the noise is too high."""
        return self.declared > self.attained.value * (1.0 + _DECLARATION_TOLERANCE)

    @property
    def matches(self) -> bool:
        """True if the declared and the true sensitivity are equal, up to relative error 1e-12."""
        return not (self.too_small or self.too_large)

    def __str__(self) -> str:
        """Return one line with both sensitivities, the pair, and a remark if they differ."""
        attained = self.attained
        shown = (
            f"declared {self.declared:.12g}, attained {attained.value:.12g} by this pair "
            f"({attained.norm}): {format_pair(attained.pair)}"
        )
        if self.matches:
            return shown
        return f"{shown}; the declared one is too {'small' if self.too_small else 'large'}"


@explain_argument_errors
def declaration(declared: float, transform: Any, norm: Norm, dim: int | None = None) -> Declaration:
    """Compare a sensitivity that a user declared with the true sensitivity.

    If the two sensitivities differ, no error is raised.

    Args:
        declared: sensitivity that the user declared, in the units of the entries of an input.
        transform: the function that is applied to an input before the noise is added. It is a Clip,
            MinMax or Normalise, or an object whose method `range(dim)` returns the set of possible
            results (the domain). The domain itself is also allowed, such as a `Box`.
        norm: norm in which the sensitivity is measured: "l1", "l2" or "linf".
        dim: number of entries of an input. May be left out if `transform` is a domain.

    Returns:
        The declared sensitivity, the true sensitivity, and a pair of inputs whose distance is the
        true sensitivity.

    Raises:
        TypeError: if an argument has the wrong type, or if `dim` is missing and `transform` is not
            a domain.
        ValueError: if `declared`, `norm` or `dim` is out of range, or if `dim` differs from the
            dimension of the domain.

    Example:
        >>> from dpcore.sensitivity import Clip
        >>> found = declaration(2.0, Clip("l2", 1.0), "l1", 256)
        >>> found.too_small, found.attained.value
        (True, 32.0)
    """
    return Declaration(declared, sensitivity(_resulting_domain(transform, dim), norm))


@explain_argument_errors
def laplace_scale(
    epsilon: float, transform: Any, dim: int | None = None, *, declared: float | None = None
) -> float:
    """Compute the scale of Laplace noise for epsilon-DP: the L1 sensitivity divided by epsilon.

    Args:
        epsilon: claimed epsilon, in (0, 1e300].
        transform: the function that is applied to an input before the noise is added. It is a Clip,
            MinMax or Normalise, or an object whose method `range(dim)` returns the set of possible
            results (the domain). The domain itself is also allowed, such as a `Box`.
        dim: number of entries of an input. May be left out if `transform` is a domain.
        declared: an L1 sensitivity that is compared with the true L1 sensitivity. If the two
            differ, a ValueError is raised. None means no comparison.

    Returns:
        The scale of the noise, in the units of the entries.

    Raises:
        TypeError: if an argument has the wrong type, or if `dim` is missing and `transform` is not
            a domain.
        ValueError: if `declared` is not the true sensitivity, if an argument is out of range, or if
            `dim` differs from the dimension of the domain. The error is also raised if the scale is
            not in (0, 1e300], for example for a domain with a single input. If `declared` is wrong,
            the message shows a pair of inputs whose distance is the true sensitivity.

    Source:
        Dwork and Roth (2014), theorem 3.6. For the L2 clip: Habernal (2021), theorem 5.1.

    Example:
        >>> from dpcore.sensitivity import Clip, MinMax
        >>> laplace_scale(1.0, Clip("l2", 5.0), 256)
        160.0
        >>> laplace_scale(1.0, MinMax(), 768, declared=1.0)
        Traceback (most recent call last):
        ValueError: declared must be the l1 sensitivity of MinMaxRows(dim=768), got 1.0; declared 1,
        attained 768 by this pair (l1): x = [1., 0., ..., 0., 0.] and x_prime = [0., 1., ..., 1.,
        1.]; the declared one is too small
    """
    epsilon = positive("epsilon", epsilon)
    true = sensitivity(_resulting_domain(transform, dim), "l1")
    if declared is not None:
        declaration = Declaration(declared, true)
        if not declaration.matches:
            requirement = f"the l1 sensitivity of {true.domain!r}"
            # Shown as the value of the message, the pair would be shortened and could not be
            # checked.
            raise ValueError(f"{message('declared', requirement, declared)}; {declaration}")
    return positive("noise scale sensitivity / epsilon", true.value / epsilon)


def _resulting_domain(transform: Any, dim: int | None) -> Any:
    """Return the domain of the results of a transform. A domain is returned unchanged."""
    if domains.has_range_method(transform):
        if dim is None:
            raise mistyped("dim", "the number of entries, which a transform does not know", dim)
        return transform.range(dim)
    need = "one with range(dim), such as a sensitivity.Clip, or a domain"
    check_domain(transform, "transform", need)
    if dim is not None and dimension(dim) != transform.dim:
        raise invalid("dim", f"that of the domain, {transform.dim}", dim)
    return transform
