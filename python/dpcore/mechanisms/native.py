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
from ..streams import SAMPLE, Rng, block_trials, check_size, prepare_out_array, threads_of, to_seed
from .declarations import NATIVE

Logs = npt.NDArray[np.float64]
Tails = tuple[Logs, Logs]

LN2 = float(np.log(2.0))
LARGEST = 1e300
"""Largest allowed scale or bound. The largest noise, 52 ln 2 = 36.04 scales, is then finite."""


def log_complement(log_p: Any) -> Any:
    """Compute ln(1 - p) from ln p, accurately also for p near 0 and near 1.

    There is one formula for p below 1/2 and another formula for p above 1/2, as in Maechler (2012),
    Accurately computing log(1 - exp(-a)).
    """
    log_p = np.minimum(log_p, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(
            log_p > -LN2, np.log(-np.expm1(log_p)), np.log1p(-np.exp(np.minimum(log_p, -LN2)))
        )


class Cost(NamedTuple):
    """Privacy loss of additive noise, for all pairs of inputs with at most a given distance.

    Args:
        epsilon: smallest epsilon that holds with delta 0; inf if no finite epsilon holds.
        reason: text of one line that states how epsilon was computed.
        mu: for Gaussian noise, the distance divided by sigma. This ratio determines delta as a
            function of epsilon. None for other noise.
    """

    epsilon: float
    reason: str
    mu: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """Facts that dpcore knows about the distribution of a kind of noise.

    A fact is None if it is unknown. The entries of an input get independent noise.

    Args:
        log_votes: function `(noise, thresholds, up)` that returns two arrays of natural logarithms
            of probabilities. If `up` is True, the arrays are ln P(noise >= threshold) and ln
            P(noise < threshold). Otherwise they are ln P(noise <= threshold) and ln P(noise >
            threshold). If the noise may be NaN, the second array includes the probability of NaN.
            Small probabilities have a small relative error.
        support: function `(noise)` that returns the smallest and the largest possible value of the
            noise.
        cost: function `(noise, distance, entries)` that returns a `Cost`, the privacy loss for
            pairs of inputs. The inputs of a pair have at most the distance `distance` (above 0),
            and differ in at most `entries` entries (at least 1).
        norm: norm in which the distance in `cost` is measured, "l1" or "l2".
        blind: True if the output is only the noise, and does not depend on the input.
        traced: name of the numpy method that draws this noise: "laplace", "normal" or
            "exponential". Empty for other noise.

    Example:
        >>> from dpcore.mechanisms import Uniform
        >>> from dpcore.mechanisms.native import facts_about_noise
        >>> facts_about_noise(noise := Uniform(-1.0, 2.0)).support(noise)
        (-1.0, 2.0)
    """

    log_votes: Callable[[Any, Logs, bool], Tails] | None = None
    support: Callable[[Any], tuple[float, float]] | None = None
    cost: Callable[[Any, float, int], Cost] | None = None
    norm: Norm = "l1"
    blind: bool = False
    traced: str = ""


def whole_real_line(noise: object) -> tuple[float, float]:
    """Return (-inf, inf): the smallest and largest value of noise that can be any real number."""
    return -math.inf, math.inf


def support_of_nonnegative_noise(noise: object) -> tuple[float, float]:
    """Return (0, inf): the smallest and largest value of noise that is never negative."""
    return 0.0, math.inf


def cost_over_scale(distance: float, scale: float, norm: str) -> Cost:
    """Return the privacy loss of noise for which epsilon is `distance` / `scale`.

    `distance` is the largest distance between two inputs, in the norm `norm`.
    """
    return Cost(distance / scale, f"{norm.upper()} distance {distance:g} over scale {scale:g}")


def make_unbounded_cost(reason: str) -> Callable[[object, float, int], Cost]:
    """Make a function that returns a `Cost` with infinite epsilon and with the given reason.

    The returned function is meant for the field `cost` of a `Law`. The text `reason` states why no
    finite epsilon holds for a noise.
    """
    return lambda noise, apart, entries: Cost(math.inf, reason)


def positive(name: str, value: Any) -> float:
    """Check that a number is above 0 and at most 1e300, and return it as a float.

    Args:
        name: name of the number in error messages.
        value: the number.

    Raises:
        TypeError: if the value is not a number.
        ValueError: if the number is out of range.
    """
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native(Shown):
    """Base class of mechanisms whose outputs are drawn by the compiled core of dpcore."""

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

    def steps(self, dim: int) -> Formula:
        """Return the clipping, noise and factor that define this mechanism for `dim` entries."""
        raise NotImplementedError(f"{type(self).__name__} has no native steps")


class Primitive(Native):
    """Base class of mechanisms of the compiled core that only add noise to the input."""

    __slots__ = ()

    def steps(self, dim: int) -> Formula:
        """Return the steps of this mechanism: only noise, without clipping, and with factor 1."""
        return Formula(self)


_PrimitiveClass = TypeVar("_PrimitiveClass", bound=type[Primitive])

_LAWS: dict[type[Primitive], Law] = {}
"""Facts about each kind of noise, by its exact class. A subclass may behave differently."""


def register_law(**facts: Any) -> Callable[[_PrimitiveClass], _PrimitiveClass]:
    """Return a decorator that registers a class of noise in dpcore, with facts about this noise.

    The arguments are fields of `Law`. Place the decorator above `dataclass`, because `dataclass`
    replaces the class.
    """

    def declare(cls: _PrimitiveClass) -> _PrimitiveClass:
        _LAWS[cls], NATIVE[cls.__name__] = Law(**facts), cls
        return cls

    return declare


def list_declared() -> tuple[type[Primitive], ...]:
    """Return all registered classes of noise, in the order in which they were registered."""
    return tuple(_LAWS)


def facts_about_noise(noise: Primitive) -> Law:
    """Return the facts that dpcore knows about a noise.

    All facts are unknown if the class of the noise is not registered.
    """
    return _LAWS.get(type(noise), Law())


def log_tails(noise: Primitive, a: Logs, up: bool) -> Tails | None:
    """Compute the log probabilities that noise is on each side of each threshold `a`.

    If `up` is True, the arrays are ln P(noise >= a) and ln P(noise < a). Otherwise they are ln
    P(noise <= a) and ln P(noise > a). The result is None if the distribution of the noise is
    unknown.
    """
    votes = facts_about_noise(noise).log_votes
    # Noise passes a threshold outside the range of float64 always or never.
    with np.errstate(over="ignore", under="ignore"):
        return None if votes is None else votes(noise, a, up)


@dataclass(frozen=True, slots=True, repr=False)
class ClipStep(Shown):
    """Clipping of a vector x to a ball around 0: ``x min(1, radius / norm(x))``.

    Args:
        norm: norm that is limited, "l1" or "l2".
        radius: radius of the ball, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string, or `radius` is not a number.
        ValueError: if `norm` is another string, or `radius` is out of range.

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
class Formula(Shown):
    """Description of a mechanism that computes ``(clip(x) + noise) * factor`` from the input x.

    Args:
        noise: noise of dpcore that is added, such as `dpcore.Laplace`.
        clip: clipping of the input before the noise is added. None means that x is not clipped.
        factor: number in (0, 1e300] by which the noisy vector is multiplied.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: if `factor` is out of range.

    Source:
        Krishna, Gupta and Dupuy (2021) (ADePT), who first clip and then add noise.

    Example:
        >>> from dpcore.mechanisms import Laplace
        >>> Formula(Laplace(2.0), factor=0.5)
        Formula(noise=Laplace(scale=2.0, variant='two_branch'), clip=None, factor=0.5)
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
    """Describe a mechanism to the compiled core of dpcore, as a tuple of names and numbers.

    `dim` is the number of entries of an input.
    """
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
    """Draw outputs of a mechanism with the compiled core, as `dpcore.sample` does.

    Args:
        mech: a mechanism whose outputs the compiled core can draw.
        x: the input, a vector of shape `(dim,)`.
        size: number of outputs.
        rng: None, an int seed or a numpy Generator.
        out: array of shape `(size, dim)` that is filled with the outputs. None makes a new array.
        dtype: dtype of the new array, if `out` is None.
        threads: number of threads. With None, dpcore chooses the number.

    Returns:
        The outputs, shape `(size, dim)`.
    """
    point = vector("x", x)
    size = check_size(size, point.size)
    out = prepare_out_array(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (to_seed(rng), SAMPLE, 0, block_trials(point.size))
    _core.sample(describe_natively(mech, point.size), point, out, run, 0, threads_of(threads))
    return out
