"""Native mechanisms, whose outputs the compiled Rust core of dpcore draws.

A native mechanism may clip the input, adds noise, and may multiply the result. The Python objects
hold only numbers, such as the scale of the noise, and no privacy claim. `dpcore.sample` reads the
class and the numbers, and draws outputs. Each kind of noise has its own file in this package, with
known facts about its distribution.
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
from ..streams import SAMPLE, Rng, block_of, check_size, prepare_out_array, seed_of, threads_of
from .declarations import NATIVE

Logs = npt.NDArray[np.float64]
Tails = tuple[Logs, Logs]

LN2 = float(np.log(2.0))
LARGEST = 1e300
"""Largest allowed scale or bound of noise. The largest possible noise, 36.04 scales, is finite."""


def log_complement(log_p: Any) -> Any:
    """Compute ln(1 - p) from ln p <= 0, accurately for p near 0 and near 1.

    The formula changes at p = 1/2, as in Maechler (2012), Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


class Cost(NamedTuple):
    """Privacy that a noise gives to two inputs at a given distance.

    Args:
        epsilon: smallest epsilon that holds with delta 0. It is inf if no finite epsilon holds.
        reason: derivation of epsilon, in one line.
        mu: for Gaussian noise, distance / sigma, which determines the whole privacy profile. None
            for other noise.
    """

    epsilon: float
    reason: str
    mu: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """Known facts about the distribution of a noise.

    None means that a fact is unknown. Each entry of an input has its own draw of the noise.

    Args:
        log_votes: function `(noise, thresholds, up)` that returns two arrays of natural logarithms
            of probabilities. If `up` is True, they are ln P(noise >= threshold) and
            ln P(noise < threshold). Otherwise they are ln P(noise <= threshold) and
            ln P(noise > threshold). If the noise may be NaN, its probability is part of the second
            one. Small probabilities have a small relative error.
        support: function `(noise)` that returns the smallest and the largest possible noise, in
            real numbers.
        cost: function `(noise, distance, entries)` that returns a `Cost`, the privacy of all pairs
            of inputs with at most this distance that differ in at most this number of entries. The
            distance must be above 0, and the number of entries at least 1.
        norm: norm of the distance in `cost`, "l1" or "l2".
        blind: True if the output is only the noise, and does not depend on the input.
        traced: name that a traced function uses for this distribution, "laplace", "normal" or
            "exponential". Empty if it has no such name.

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


def real_line_support(noise: object) -> tuple[float, float]:
    """Return (-inf, inf), the support of noise that can take any real value."""
    return -math.inf, math.inf


def nonnegative_support(noise: object) -> tuple[float, float]:
    """Return (0, inf), the support of noise that is never negative."""
    return 0.0, math.inf


def cost_over_scale(apart: float, scale: float, norm: str) -> Cost:
    """Return the privacy of noise whose largest privacy loss is distance / scale."""
    return Cost(apart / scale, f"{norm.upper()} distance {apart:g} over scale {scale:g}")


def make_unbounded_cost(reason: str) -> Callable[[object, float, int], Cost]:
    """Return a function for `Law.cost` of noise for which no finite epsilon holds."""
    return lambda noise, apart, entries: Cost(math.inf, reason)


def positive(name: str, value: Any) -> float:
    """Check that a number is above 0 and at most 1e300, and return it as a float.

    Args:
        name: name of the number in messages.
        value: the number.

    Raises:
        TypeError: if the value is not a number.
        ValueError: if the value is out of range.
    """
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native(Shown):
    """Base class of native mechanisms, whose outputs the compiled core of dpcore draws."""

    __slots__ = ()

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw independent outputs of the mechanism for the input `x`.

        Args:
            x: the input, a vector of shape `(dim,)`.
            size: number of outputs.
            rng: source of the randomness: an integer seed, a numpy Generator, or None for a random
                seed.

        Returns:
            The outputs, shape `(size, dim)`.
        """
        return fill_outputs(self, x, size, rng)

    def steps(self, dim: int) -> Steps:
        """Return the steps of the mechanism (clipping, noise, factor) for `dim` entries."""
        raise NotImplementedError(f"{type(self).__name__} has no native steps")


class Primitive(Native):
    """Base class of mechanisms that only add noise."""

    __slots__ = ()

    def steps(self, dim: int) -> Steps:
        """Return steps that only add the noise, for any number of entries."""
        return Steps(self)


_PrimitiveClass = TypeVar("_PrimitiveClass", bound=type[Primitive])

_LAWS: dict[type[Primitive], Law] = {}
"""Facts about each kind of noise, by its exact class. A subclass may behave differently."""


def register_law(**facts: Any) -> Callable[[_PrimitiveClass], _PrimitiveClass]:
    """Return a decorator that registers a class of noise, with the facts of its `Law`.

    Place the decorator above `dataclass`, because `dataclass` replaces the class.
    """

    def declare(cls: _PrimitiveClass) -> _PrimitiveClass:
        _LAWS[cls], NATIVE[cls.__name__] = Law(**facts), cls
        return cls

    return declare


def list_declared() -> tuple[type[Primitive], ...]:
    """List the registered classes of noise, in the order of their registration."""
    return tuple(_LAWS)


def law_of(noise: Primitive) -> Law:
    """Return the known facts about a noise; all facts are unknown if dpcore lacks the noise."""
    return _LAWS.get(type(noise), Law())


def log_votes(noise: Primitive, a: Logs, up: bool) -> Tails | None:
    """Compute log probabilities that the noise reaches thresholds `a`, and that it does not.

    If `up` is True, they are ln P(noise >= a) and ln P(noise < a). Otherwise they are
    ln P(noise <= a) and ln P(noise > a). The result is None if the distribution is unknown.
    """
    votes = law_of(noise).log_votes
    # Noise passes a threshold outside the range of float64 always or never.
    with np.errstate(over="ignore", under="ignore"):
        return None if votes is None else votes(noise, a, up)


@dataclass(frozen=True, slots=True, repr=False)
class ClipStep(Shown):
    """Clipping of a vector x to a ball around 0: ``x min(1, radius / norm(x))``.

    Args:
        norm: "l1" or "l2".
        radius: radius of the ball, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string, or if `radius` is not a number.
        ValueError: if `norm` is another string, or if `radius` is out of range.

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
    """Steps of a native mechanism for one input x: ``(clip(x) + noise) * factor``.

    Args:
        noise: noise of dpcore, such as `dpcore.Laplace`.
        clip: clipping of the input, before the noise is added. None means no clipping.
        factor: number by which the noisy vector is multiplied, in (0, 1e300].

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `factor` is out of range.

    Source:
        Krishna, Gupta and Dupuy (2021) (ADePT), who first clip and then add noise.

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
    """Return the names and numbers that describe a native mechanism to the compiled core."""
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
    """Draw outputs of a native mechanism, or of an instance of a subclass, as `dpcore.sample` does.

    Args:
        mech: the mechanism.
        x: the input, a vector of shape `(dim,)`.
        size: number of outputs.
        rng: source of the randomness, as for `dpcore.sample`.
        out: array of shape `(size, dim)` to fill. None makes a new array.
        dtype: dtype of the new array.
        threads: number of threads. None means that dpcore chooses it.

    Returns:
        The outputs, shape `(size, dim)`.
    """
    point = vector("x", x)
    size = check_size(size, point.size)
    out = prepare_out_array(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (seed_of(rng), SAMPLE, 0, block_of(point.size))
    _core.sample(describe_natively(mech, point.size), point, out, run, 0, threads_of(threads))
    return out
