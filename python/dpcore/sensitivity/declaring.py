"""The scale of the noise from the closed form, and whether a declared sensitivity matches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..errors import instance, invalid, message, mistyped, real
from ..hints import hinted
from ..mechanisms import LARGEST, positive
from ..pairs import dimension
from ..pairs.domains import domain_of
from ..pairs.norms import Norm
from ..records import Record
from .closed_forms import Sensitivity, sensitivity, show_pair

__all__ = ["Declaration", "declaration", "laplace_scale"]

_DECLARATION_TOLERANCE: Final = 1e-12
"""Relative difference up to which a declared sensitivity is the true one: a rounding."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declaration(Record, word="Declaration"):
    """A declared sensitivity and the true one.

    Args:
        declared: what somebody scales the noise by, finite and at least 0.
        attained: the true sensitivity, with the pair that attains it.

    Raises:
        TypeError: if a field is of the wrong kind.
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
        """True if the pair's distance exceeds the declared one: the claim does not hold."""
        return self.attained.value > self.declared * (1.0 + _DECLARATION_TOLERANCE)

    @property
    def too_large(self) -> bool:
        """True if the declared distance is never reached: there is more noise than needed."""
        return self.declared > self.attained.value * (1.0 + _DECLARATION_TOLERANCE)

    @property
    def matches(self) -> bool:
        """True if the declared sensitivity is the true one, to 1e-12 relative."""
        return not (self.too_small or self.too_large)

    def __str__(self) -> str:
        """Return one line: both numbers, the pair, and which number is larger."""
        found = self.attained
        shown = (
            f"declared {self.declared:.12g}, attained {found.value:.12g} by this pair "
            f"({found.norm}): {show_pair(found.pair)}"
        )
        if self.matches:
            return shown
        return f"{shown}; the declared one is too {'small' if self.too_small else 'large'}"


@hinted
def declaration(declared: float, transform: Any, norm: Norm, dim: int | None = None) -> Declaration:
    """Compare a declared sensitivity with the closed form; nothing is raised if they differ.

    Args:
        declared: the sensitivity that somebody states, in the units of the entries.
        transform: what the rows go through before the noise (Clip, MinMax, Normalise, anything
            with such a `range`), or a domain.
        norm: "l1", "l2" or "linf".
        dim: number of entries; may be left out for a domain, which has its own.

    Returns:
        Both numbers, with the pair that attains the true one.

    Raises:
        TypeError: if an argument is of the wrong kind, or a transform comes without `dim`.
        ValueError: if `declared`, `norm` or `dim` is out of range, or `dim` is not the domain's.

    Example:
        >>> from dpcore.sensitivity import Clip
        >>> found = declaration(2.0, Clip("l2", 1.0), "l1", 256)
        >>> found.too_small, found.attained.value
        (True, 32.0)
    """
    return Declaration(declared, sensitivity(_resulting_domain(transform, dim), norm))


@hinted
def laplace_scale(
    epsilon: float, transform: Any, dim: int | None = None, *, declared: float | None = None
) -> float:
    """Compute the scale of Laplace noise that gives pure epsilon: b = Delta_1 / epsilon.

    Args:
        epsilon: the claim, in (0, 1e300].
        transform: what the rows go through before the noise (Clip, MinMax, Normalise, anything
            with such a `range`), or a domain.
        dim: number of entries; may be left out for a domain, which has its own.
        declared: the L1 sensitivity that somebody states, to be checked against the true one.

    Returns:
        The scale b, in the units of the entries.

    Raises:
        TypeError: if an argument is of the wrong kind, or a transform comes without `dim`.
        ValueError: if `declared` is not the sensitivity (the message shows a pair that attains
            it), an argument is out of range, `dim` is not the domain's, or the scale is not in
            (0, 1e300], as for a domain with a single member.

    Source:
        Dwork and Roth (2014), theorem 3.6; Habernal (2021), theorem 5.1, for the L2 clip.

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
        found = Declaration(declared, true)
        if not found.matches:
            requirement = f"the l1 sensitivity of {true.domain!r}"
            # As the value in the message the pair would be cut off and could not be checked.
            raise ValueError(f"{message('declared', requirement, declared)}; {found}")
    name = "noise scale sensitivity / epsilon"
    return real(name, true.value / epsilon, low=0.0, high=LARGEST, open_low=True)


def _resulting_domain(transform: Any, dim: int | None) -> Any:
    """Return the domain of a transform's results, or the domain itself."""
    # A class has the methods of its objects, too, but no fields.
    if callable(getattr(transform, "range", None)) and not isinstance(transform, type):
        if dim is None:
            raise mistyped("dim", "the number of entries, which a transform does not know", dim)
        return transform.range(dim)
    domain_of(
        transform, "transform", "one with range(dim), such as a sensitivity.Clip, or a domain"
    )
    if dim is not None and dimension(dim) != transform.dim:
        raise invalid("dim", f"that of the domain, {transform.dim}", dim)
    return transform
