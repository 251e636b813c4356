"""Native mechanisms: steps that the core runs, and what can be declared of the law of a noise.

A primitive states what it does (its scale), never what it claims. The objects hold numbers only;
`dpcore.sample` reads class and fields and draws. Each noise has a file of its own beside this
one, with all that is known of its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, mistyped, real, vector
from ..pairs.differences import Norm
from ..report.shown import Shown
from ..streams import SAMPLE, Rng, array_for, block_of, check_size, seed_of, threads_of
from .declarations import NATIVE

Logs = npt.NDArray[np.float64]
Tails = tuple[Logs, Logs]

LN2 = float(np.log(2.0))
LARGEST = 1e300
"""Largest scale or range end: the largest noise, 36.04 scales, then stays finite."""


def log_complement(log_p: Any) -> Any:
    """Compute ln(1 - p) from ln p <= 0, accurately for p near 0 and near 1.

    The switch at p = 1/2 is that of Maechler (2012), Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


class Cost(NamedTuple):
    """The privacy that a noise gives two inputs at a distance.

    Args:
        epsilon: the smallest pure epsilon that holds; inf if none does.
        reason: how it follows, one line.
        mu: distance over sigma where that fixes the whole profile, else None.
    """

    epsilon: float
    reason: str
    mu: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """All that is known of a noise, declared in its file. None is what is not known.

    Every entry of an input gets a draw of its own. Whoever asks for a part that is not known says
    so in words: the closed form of a vote is left out, `real_epsilon` gives that as its reason.

    Args:
        log_votes: `(noise, thresholds, up)`, the logarithms of the probabilities that a noisy
            entry votes for x' and that it does not. Looking up it votes where the noise is at
            least the threshold, looking down where it is at most that; NaN never votes for x'.
            Both keep their relative accuracy in both tails: the smaller probability is computed
            as such, its complement by log1p.
        support: `(noise)`, the smallest and the largest noise possible, in real numbers.
        cost: `(noise, distance, entries)`, the privacy of all inputs that are at most so far
            apart, above 0, and differ in at most so many entries, at least 1.
        norm: of that distance, "l1" or "l2".
        blind: True if the output is only the noise and does not depend on the input.
        traced: name of the law of traced draws, "laplace", "normal" or "exponential"; empty for
            noise that is one step of a trace.

    Example:
        >>> from dpcore.mechanisms import Uniform
        >>> from dpcore.mechanisms.native import law_of
        >>> law_of(noise := Uniform(-1.0, 2.0)).support(noise)
        (-1.0, 2.0)
    """

    log_votes: Callable[[Any, Logs, bool], Tails] | None = None
    support: Callable[[Any], tuple[float, float]] | None = None
    cost: Callable[[Any, float, int], Cost] | None = None
    norm: Norm = "l1"
    blind: bool = False
    traced: str = ""


def whole_line(noise: object) -> tuple[float, float]:
    """Return the support of noise that can be any number."""
    return -math.inf, math.inf


def not_negative(noise: object) -> tuple[float, float]:
    """Return the support of noise that is never negative."""
    return 0.0, math.inf


def over_scale(apart: float, scale: float, norm: str) -> Cost:
    """Return the cost of a distance where the loss is at most distance / scale."""
    return Cost(apart / scale, f"{norm.upper()} distance {apart:g} over scale {scale:g}")


def make_unbounded_cost(reason: str) -> Callable[[object, float, int], Cost]:
    """Make the cost function of noise for which no epsilon holds."""
    return lambda noise, apart, entries: Cost(math.inf, reason)


def positive(name: str, value: Any) -> float:
    """Check a scale: finite, above 0 and at most `LARGEST`."""
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native(Shown):
    """Base of native mechanisms: a call samples the mechanism in the core."""

    __slots__ = ()

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
    """A mechanism that is only noise."""

    __slots__ = ()

    def steps(self, dim: int) -> Steps:
        """Return only the noise, for any dimension."""
        return Steps(self)


_PrimitiveClass = TypeVar("_PrimitiveClass", bound=type[Primitive])

_LAWS: dict[type[Primitive], Law] = {}
"""By exact type: a subclass could mean something the core does not do."""


def with_law(**facts: Any) -> Callable[[_PrimitiveClass], _PrimitiveClass]:
    """Make a class one of dpcore's primitives, with what is known of its law, see `Law`.

    Above `dataclass`, which replaces the class that it is given.
    """

    def declare(cls: _PrimitiveClass) -> _PrimitiveClass:
        _LAWS[cls], NATIVE[cls.__name__] = Law(**facts), cls
        return cls

    return declare


def list_declared() -> tuple[type[Primitive], ...]:
    """List the classes with a law, in the order of their declaration."""
    return tuple(_LAWS)


def law_of(noise: Primitive) -> Law:
    """Return the known law of a noise; it is empty for noise that is not dpcore's."""
    return _LAWS.get(type(noise), Law())


def log_votes(noise: Primitive, a: Logs, up: bool) -> Tails | None:
    """Compute the two log tails for thresholds `a` on the noise, up or down, or None if unknown."""
    votes = law_of(noise).log_votes
    # A threshold beyond the range of float64, or b below it, is simply never or always passed.
    with np.errstate(over="ignore", under="ignore"):
        return None if votes is None else votes(noise, a, up)


@dataclass(frozen=True, slots=True, repr=False)
class ClipStep(Shown):
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
        >>> ClipStep("l2", 1.0)
        ClipStep(norm='l2', radius=1.0)
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
    clip: ClipStep | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        if type(self.noise) not in _LAWS:
            raise mistyped("noise", "one of dpcore's primitives", self.noise)
        if self.clip is not None and type(self.clip) is not ClipStep:
            raise mistyped("clip", "a ClipStep or None", self.clip)
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
