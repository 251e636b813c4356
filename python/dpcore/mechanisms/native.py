"""Native mechanisms: the steps that the Rust core runs, and the declared distributions of noise.

A primitive states what it does (its scale), not what it claims. The objects hold only numbers;
`dpcore.sample` reads the class and the fields and draws. Each noise has its own file in this
package, with its known distribution.
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
"""Largest scale or range end; the largest possible noise, 36.04 scales, is then finite."""


def log_complement(log_p: Any) -> Any:
    """Compute ln(1 - p) from ln p <= 0, accurately for p near 0 and near 1.

    The switch at p = 1/2 follows Maechler (2012), Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


class Cost(NamedTuple):
    """The privacy that a noise gives to inputs at a distance.

    Args:
        epsilon: smallest pure epsilon that holds; inf if there is none.
        reason: derivation of epsilon, in one line.
        mu: distance / sigma if this determines the whole privacy profile, otherwise None.
    """

    epsilon: float
    reason: str
    mu: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """Known facts about the distribution of a noise, declared in its file; None means unknown.

    Each entry of an input gets its own draw. If a fact is unknown, the functions that need it state
    so: the closed form of a vote is left out, and `real_epsilon` reports the missing fact as its
    reason.

    Args:
        log_votes: function `(noise, thresholds, up)` that returns the logarithms of the
            probabilities that a noisy entry votes for x' and that it does not. If `up` is True, it
            votes for x' when the noise is at least the threshold. Otherwise it votes for x' when
            the noise is at most the threshold. NaN never votes for x'. Both logarithms are accurate
            in both tails: the smaller probability is computed directly, and its complement by
            log1p.
        support: function `(noise)` that returns the smallest and the largest possible noise, in
            real numbers.
        cost: function `(noise, distance, entries)` that returns the privacy for all pairs of inputs
            with at most this distance (above 0) and at most this number of different entries (at
            least 1).
        norm: norm of that distance, "l1" or "l2".
        blind: True if the output is only the noise and does not depend on the input.
        traced: name of the distribution of traced draws, "laplace", "normal" or "exponential";
            empty for noise that is one step of a trace.

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
    """Return the support of noise that can take any real value."""
    return -math.inf, math.inf


def not_negative(noise: object) -> tuple[float, float]:
    """Return the support of noise that is never negative."""
    return 0.0, math.inf


def over_scale(apart: float, scale: float, norm: str) -> Cost:
    """Return the cost of a distance if the loss is at most distance / scale."""
    return Cost(apart / scale, f"{norm.upper()} distance {apart:g} over scale {scale:g}")


def make_unbounded_cost(reason: str) -> Callable[[object, float, int], Cost]:
    """Make the cost function of noise for which no finite epsilon holds."""
    return lambda noise, apart, entries: Cost(math.inf, reason)


def positive(name: str, value: Any) -> float:
    """Check that a scale is finite, above 0 and at most `LARGEST`; return it."""
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native(Shown):
    """Base class of native mechanisms, whose samples are drawn by the compiled core of dpcore."""

    __slots__ = ()

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw outputs on `x`.

        Args:
            x: input with one dimension, shape `(dim,)`.
            size: number of outputs.
            rng: None, an integer seed or a numpy Generator.

        Returns:
            Outputs of shape `(size, dim)`.
        """
        return fill_outputs(self, x, size, rng)

    def steps(self, dim: int) -> Steps:
        """Return the steps of the mechanism for an input of `dim` entries."""
        raise NotImplementedError(f"{type(self).__name__} has no native steps")


class Primitive(Native):
    """Base class of mechanisms that only add noise."""

    __slots__ = ()

    def steps(self, dim: int) -> Steps:
        """Return the noise as the only step, for any dimension."""
        return Steps(self)


_PrimitiveClass = TypeVar("_PrimitiveClass", bound=type[Primitive])

_LAWS: dict[type[Primitive], Law] = {}
"""Distributions by exact type, because a subclass may define behaviour that the core lacks."""


def with_law(**facts: Any) -> Callable[[_PrimitiveClass], _PrimitiveClass]:
    """Register a class as one of dpcore's primitives, with the facts of its `Law`.

    Place this decorator above `dataclass`, which replaces the class.
    """

    def declare(cls: _PrimitiveClass) -> _PrimitiveClass:
        _LAWS[cls], NATIVE[cls.__name__] = Law(**facts), cls
        return cls

    return declare


def list_declared() -> tuple[type[Primitive], ...]:
    """List the classes with a declared law, in the order of declaration."""
    return tuple(_LAWS)


def law_of(noise: Primitive) -> Law:
    """Return the known law of a noise; the law is empty if the noise is not one of dpcore's."""
    return _LAWS.get(type(noise), Law())


def log_votes(noise: Primitive, a: Logs, up: bool) -> Tails | None:
    """Compute the log probabilities of a vote and of no vote at thresholds `a`, or None."""
    votes = law_of(noise).log_votes
    # Noise passes a threshold outside the range of float64 always or never.
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
        ValueError: if an argument is out of range.

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
    """The steps of a native mechanism for one input: ``(clip(x) + noise) * factor``.

    Args:
        noise: one of the primitives.
        clip: clipping of the input before the noise. None means no clipping.
        factor: factor of the noisy vector, the last step, in (0, 1e300].

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if `factor` is out of range.

    Source:
        Krishna, Gupta and Dupuy (2021) (ADePT) for the order: first clip, then add noise.

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
    """Describe a native mechanism to the core by names and numbers only."""
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
    """Draw outputs of a mechanism with native steps, also of a subclass; see `dpcore.sample`."""
    point = vector("x", x)
    size = check_size(size, point.size)
    out = array_for(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (seed_of(rng), SAMPLE, 0, block_of(point.size))
    _core.sample(describe_natively(mech, point.size), point, out, run, 0, threads_of(threads))
    return out
