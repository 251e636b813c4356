"""The common part of native mechanisms: steps that the core runs.

A primitive states what it does (its scale), never what it claims. The objects hold numbers only;
`dpcore.sample` reads class and fields and draws. Each noise has a file of its own beside this
one, with all that is known of its law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, mistyped, real, vector
from ..records import Shown
from ..streams import SAMPLE, Rng, array_for, block_of, check_size, seed_of, threads_of
from .laws import Law, Logs, Tails

__all__ = [
    "LARGEST",
    "Clip",
    "Native",
    "Primitive",
    "Steps",
    "describe_natively",
    "fill_outputs",
    "law_of",
    "list_declared",
    "log_votes",
    "positive",
    "with_law",
]

LARGEST = 1e300
"""Largest scale or range end: the largest noise, 36.04 scales, then stays finite."""


def positive(name: str, value: Any) -> float:
    """Check a scale: finite, above 0 and at most `LARGEST`."""
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native(Shown):
    """Base of native mechanisms: a call samples the mechanism in the core."""

    __slots__ = ()

    if not TYPE_CHECKING:  # for mypy every name would be an attribute

        def __getattr__(self, name):
            """Raise an error that says how to draw; any other is the usual one."""
            if name in ("sample", "rvs", "draw"):
                call = f"dpcore.sample({self!r}, x, size)"
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}: {call}")
            return object.__getattribute__(self, name)

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw outputs on `x`.

        Args:
            x: the input, one dimension, shape `(dim,)`.
            size: number of outputs.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Outputs of shape `(size, dim)`.
        """
        return fill_outputs(self, x, size, rng)

    def steps(self, dim: int) -> Steps:
        """Return the steps of the mechanism on an input of `dim` entries."""
        raise NotImplementedError(f"{type(self).__name__} has no native steps")


class Primitive(Native):
    """A mechanism that is noise and nothing else."""

    __slots__ = ()

    def steps(self, dim: int) -> Steps:
        """Return the noise alone, for any dimension."""
        return Steps(self)


_PrimitiveClass = TypeVar("_PrimitiveClass", bound=type[Primitive])

_LAWS: dict[type[Primitive], Law] = {}
"""By exact type: a subclass could mean something the core does not do."""


def with_law(law: Law) -> Callable[[_PrimitiveClass], _PrimitiveClass]:
    """Make a class one of dpcore's primitives, with what is known of its law.

    Above `dataclass`, which replaces the class that it is given.
    """

    def declare(cls: _PrimitiveClass) -> _PrimitiveClass:
        _LAWS[cls] = law
        return cls

    return declare


def list_declared() -> tuple[type[Primitive], ...]:
    """List the classes with a law, in the order of their declaration."""
    return tuple(_LAWS)


def law_of(noise: Primitive) -> Law:
    """Return the known law of a noise; it is empty for noise that is not dpcore's."""
    return _LAWS.get(type(noise), Law())


def log_votes(noise: Primitive, a: Logs, up: bool) -> Tails | None:
    """Compute the two log tails for thresholds `a` on the noise, up or down; None if unknown."""
    known = law_of(noise).log_votes
    # A threshold beyond the range of float64, or b below it, is simply never or always passed.
    with np.errstate(over="ignore", under="ignore"):
        return None if known is None else known(noise, a, up)


@dataclass(frozen=True, slots=True, repr=False)
class Clip(Shown):
    """Clipping of a vector onto a ball: ``x min(1, radius / norm(x))``.

    Args:
        norm: "l1" or "l2".
        radius: radius of the ball, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string or `radius` not a number.
        ValueError: if one of them is out of range.

    Source:
        Abadi et al. (2016), algorithm 1.

    Example:
        >>> Clip("l2", 1.0)
        Clip(norm='l2', radius=1.0)
    """

    norm: Literal["l1", "l2"]
    radius: float

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("norm", self.norm, ("l1", "l2"))
        object.__setattr__(self, "radius", positive("radius", self.radius))


@dataclass(frozen=True, slots=True, repr=False)
class Steps(Shown):
    """The steps of a native mechanism on one input: ``(clip(x) + noise) * factor``.

    Args:
        noise: one of the primitives.
        clip: applied to the input first, or None.
        factor: multiplies the noisy vector last, in (0, 1e300].

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if `factor` is out of range.

    Source:
        The order is ADePT's (Krishna, Gupta and Dupuy, 2021): clip, then noise.

    Example:
        >>> from dpcore.mechanisms import Laplace
        >>> Steps(Laplace(2.0), factor=0.5)
        Steps(noise=Laplace(scale=2.0, variant='two_branch'), clip=None, factor=0.5)
    """

    noise: Primitive
    clip: Clip | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        if type(self.noise) not in _LAWS:
            raise mistyped("noise", "one of dpcore's primitives", self.noise)
        if self.clip is not None and type(self.clip) is not Clip:
            raise mistyped("clip", "a Clip or None", self.clip)
        object.__setattr__(self, "factor", positive("factor", self.factor))


def describe_natively(mechanism: Native, dim: int) -> tuple[Any, ...]:
    """Describe a native mechanism to the core, by names and numbers only."""
    steps = mechanism.steps(dim)
    values = [getattr(steps.noise, field.name) for field in fields(steps.noise)]  # type: ignore[arg-type]
    numbers = [value for value in values if not isinstance(value, str)]
    mode = next((value for value in values if isinstance(value, str)), "")
    clip = None if steps.clip is None else (steps.clip.norm, steps.clip.radius)
    return type(steps.noise).__name__, numbers, mode, clip, steps.factor


def fill_outputs(
    mech: Native,
    x: npt.ArrayLike,
    size: int,
    rng: Rng = None,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Draw outputs of any mechanism with native steps, subclasses too, as `sample` does."""
    point = vector("x", x)
    size = check_size(size, point.size)
    out = array_for(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (seed_of(rng), SAMPLE, 0, block_of(point.size))
    _core.sample(describe_natively(mech, point.size), point, out, run, 0, threads_of(threads))
    return out
