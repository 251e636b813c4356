"""Native noise: descriptions of what the compiled core runs.

A primitive states what it does (its scale), never what it claims. The objects hold numbers only;
`dpcore.sample` reads class and fields and draws. All of them add noise to the input, entry by
entry, except `RandomBits`, which ignores it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, invalid, mistyped, real, vector
from ..streams import SAMPLE, Rng, array_for, block_of, seed_of, sized, threads_of

LARGEST = 1e300
"""Largest scale or range end: the largest noise, 36.04 scales, then stays finite."""


def positive(name: str, value: Any) -> float:
    """Check a scale: finite, above 0 and at most `LARGEST`."""
    return real(name, value, low=0.0, high=LARGEST, open_low=True)


class Native:
    """What every native mechanism has in common: calling it samples it in the core."""

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
        return fill(self, x, size, rng)

    def steps(self, dim: int) -> Steps:
        """What the mechanism does to an input of `dim` entries."""
        raise NotImplementedError(f"{type(self).__name__} has no native steps")


class Primitive(Native):
    """A mechanism that is noise and nothing else."""

    __slots__ = ()

    def steps(self, dim: int) -> Steps:
        """The noise alone, whatever the dimension."""
        return Steps(self)


@dataclass(frozen=True, slots=True)
class Laplace(Primitive):
    """Additive Laplace noise: ``x + s``, density ``exp(-abs(s)/b) / (2b)`` in every entry.

    Args:
        scale: scale b of the noise, in the units of x; mean 0, E[s^2] = 2 b^2.
        variant: which textbook formula of the uniform draw is meant, "two_branch", "sign" or
            "centred"; on the grid of 2^53 uniforms all three give the same bits.

    Raises:
        TypeError: if `scale` is not a number or `variant` not a string.
        ValueError: if `scale` is not in (0, 1e300] or `variant` is none of the three.

    Source:
        Dwork, McSherry, Nissim and Smith (2006); the three formulas: Habernal (2022), equations
        4 to 7.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Laplace(2.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
    """

    scale: float
    variant: str = "two_branch"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "scale", positive("scale", self.scale))
        choice("variant", self.variant, ("two_branch", "sign", "centred"))


@dataclass(frozen=True, slots=True)
class Gaussian(Primitive):
    """Additive Gaussian noise: ``x + s``, s normal with mean 0 and standard deviation sigma.

    Args:
        sigma: standard deviation of the noise, in the units of x.

    Raises:
        TypeError: if `sigma` is not a number.
        ValueError: if `sigma` is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem A.1.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Gaussian(1.0), [0.0, 0.0], 3, rng=1).shape
        (3, 2)
    """

    sigma: float

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))


@dataclass(frozen=True, slots=True)
class Exponential(Primitive):
    """Additive exponential noise: ``x + s``, density ``exp(-s/b) / b`` for s >= 0.

    Never below the input, hence no differential privacy at all between x and a larger x'.

    Args:
        scale: scale b of the noise, in the units of x; mean b, variance b^2.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e300].

    Source:
        Devroye (1986), Non-Uniform Random Variate Generation, section II.2 (inversion).

    Example:
        >>> import dpcore
        >>> bool((dpcore.sample(dpcore.Exponential(2.0), [1.0], 5, rng=1) >= 1.0).all())
        True
    """

    scale: float

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "scale", positive("scale", self.scale))


@dataclass(frozen=True, slots=True)
class Uniform(Primitive):
    """Additive uniform noise: ``x + s``, s uniform on [low, high].

    s is ``low + (high - low) u`` with u below 1; it reaches `high` only by rounding.

    Args:
        low: smallest noise, in the units of x, at least -1e300.
        high: largest noise, above `low` and at most 1e300.

    Raises:
        TypeError: if an end is not a number.
        ValueError: if an end is out of range or `low` is not below `high`.

    Source:
        Devroye (1986), Non-Uniform Random Variate Generation, section II.2 (inversion).

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Uniform(-1.0, 1.0), [0.0], 3, rng=1).shape
        (3, 1)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in ("low", "high"):
            end = real(name, getattr(self, name), low=-LARGEST, high=LARGEST)
            object.__setattr__(self, name, end)
        if self.low >= self.high:
            raise invalid("low", f"below high = {self.high!r}", self.low)


@dataclass(frozen=True, slots=True)
class Identity(Primitive):
    """No noise: the output is the input. The "no privacy" end of the scale.

    Source:
        Habernal (2022), section 5, the baseline that copies its input.

    Example:
        >>> import dpcore
        >>> dpcore.sample(dpcore.Identity(), [0.5], 2, rng=1).tolist()
        [[0.5], [0.5]]
    """


@dataclass(frozen=True, slots=True)
class RandomBits(Primitive):
    """Fair bits: every output entry is 0.0 or 1.0 with probability 1/2, whatever the input.

    Perfect privacy (epsilon 0): the other end of the scale.

    Source:
        Habernal (2022), section 5, the baseline that ignores its input.

    Example:
        >>> import dpcore
        >>> bits = dpcore.sample(dpcore.RandomBits(), [7.0], 5, rng=1)
        >>> bool(((bits == 0.0) | (bits == 1.0)).all())
        True
    """


@dataclass(frozen=True, slots=True)
class DPTextNoise(Primitive):
    """The noise of DPText as published: ``x - b sgn(u) ln(1 - 2 abs(u))``, u uniform on [0, 1).

    u was meant to be centred at 0. As it is, the logarithm is undefined for u above 1/2 and the
    noise is never negative; what happens to the undefined half is the implementation's choice.

    Args:
        scale: scale b of the formula, in the units of x.
        nan: "zero" puts 0 for NaN (noise 0 or Exp(b), half each); "resample" draws again until
            there is none (Exp(b)); "keep" leaves the NaN in the output (half NaN, half Exp(b)).

    Raises:
        TypeError: if `scale` is not a number or `nan` not a string.
        ValueError: if `scale` is not in (0, 1e300] or `nan` is none of the three.

    Source:
        Beigi, Shu, Guo, Wang and Liu (2019), equation 9; the fault: Habernal (2022), theorem 3.1.

    Example:
        >>> import dpcore
        >>> bool((dpcore.sample(dpcore.DPTextNoise(1.0), [0.0], 5, rng=1) >= 0.0).all())
        True
    """

    scale: float
    nan: str = "zero"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "scale", positive("scale", self.scale))
        choice("nan", self.nan, ("zero", "resample", "keep"))


@dataclass(frozen=True, slots=True)
class Clip:
    """Shrink a vector onto a ball: ``x min(1, radius / norm(x))``.

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

    norm: str
    radius: float

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("norm", self.norm, ("l1", "l2"))
        object.__setattr__(self, "radius", positive("radius", self.radius))


@dataclass(frozen=True, slots=True)
class Steps:
    """What a native mechanism does to one input: ``(clip(x) + noise) * factor``.

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
        >>> Steps(Laplace(2.0), factor=0.5)
        Steps(noise=Laplace(scale=2.0, variant='two_branch'), clip=None, factor=0.5)
    """

    noise: Primitive
    clip: Clip | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        # Exact types: a subclass could mean something the core does not do.
        if type(self.noise) not in PRIMITIVES:
            raise mistyped("noise", "one of dpcore's primitives", self.noise)
        if self.clip is not None and type(self.clip) is not Clip:
            raise mistyped("clip", "a Clip or None", self.clip)
        object.__setattr__(self, "factor", positive("factor", self.factor))


def describe(mechanism: Native, dim: int) -> tuple[Any, ...]:
    """What the core is told of a native mechanism: names and numbers only."""
    steps = mechanism.steps(dim)
    values = [getattr(steps.noise, field.name) for field in fields(steps.noise)]  # type: ignore[arg-type]
    numbers = [value for value in values if not isinstance(value, str)]
    mode = next((value for value in values if isinstance(value, str)), "")
    clip = None if steps.clip is None else (steps.clip.norm, steps.clip.radius)
    return type(steps.noise).__name__, numbers, mode, clip, steps.factor


def fill(
    mech: Native,
    x: npt.ArrayLike,
    size: int,
    rng: Rng = None,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """What `sample` does, for whatever describes itself in native steps: subclasses too."""
    point = vector("x", x)
    size = sized(size, point.size)
    out = array_for(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (seed_of(rng), SAMPLE, 0, block_of(point.size))
    _core.sample(describe(mech, point.size), point, out, run, 0, threads_of(threads))
    return out


PRIMITIVES: tuple[type[Primitive], ...] = (
    Laplace,
    Gaussian,
    Exponential,
    Uniform,
    Identity,
    RandomBits,
    DPTextNoise,
)
"""The classes of native noise."""
