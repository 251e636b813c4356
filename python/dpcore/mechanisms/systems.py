"""The common part of published systems: a claim, a default pair, and a checked noise scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..errors import real
from ..pairs import dimension, distance
from ..pairs.differences import Norm
from ..records import Pair
from .laplace import Laplace
from .native import LARGEST, Clip, Native, Steps, positive


def noise_scale(formula: str, numerator: float, epsilon: float) -> float:
    """Compute and check the noise scale numerator / epsilon.

    Two valid fields can still give a scale out of range.
    """
    name = f"noise scale {formula}"
    return real(name, numerator / epsilon, low=0.0, high=LARGEST, open_low=True)


def _constant_entry(norm: Norm, radius: float, dim: int, share: float) -> float:
    """Compute the entry of a constant vector whose norm is the radius or one rounding below.

    Never above: a clip would then change the very input that was chosen to lie on its ball.
    """
    level = radius / share
    while distance(Pair(np.zeros(dim), np.full(dim, level)), norm) > radius:
        level = math.nextafter(level, 0.0)
    return level


@dataclass(frozen=True, slots=True, repr=False)
class System(Native):
    """Base of published systems: epsilon, which is the claim, and the facts about that claim.

    Attributes:
        norm: norm in which two inputs are neighbours ("l1", "l2", "linf"); None means any two
            inputs, because the system clips.
        source: where it was published.
        fault: what is wrong with it, one line.
        sound: True if the claim is true.
    """

    epsilon: float

    norm: ClassVar[str | None] = None
    source: ClassVar[str]
    fault: ClassVar[str]
    sound: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check every number, and the noise scale that they give together."""
        for name in ("epsilon", "sensitivity", "clip"):
            if name in type(self).__dataclass_fields__:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        self.steps(1)

    @property
    def claim(self) -> float:
        """The epsilon it claims."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """The largest distance of two inputs in the claim: a bound, or the diameter of the clip."""
        raise NotImplementedError(f"{type(self).__name__} states no sensitivity")

    def default_pair(self, dim: int = 2) -> Pair:
        """Return the worst pair of inputs: the pair with the largest loss.

        Args:
            dim: number of entries, at least 1.

        Returns:
            Two neighbouring inputs of shape `(dim,)`.
        """
        raise NotImplementedError(f"{type(self).__name__} states no pair")


@dataclass(frozen=True, slots=True, repr=False)
class Sensitive(System):
    """Systems calibrated to an L1 sensitivity that the caller states."""

    sensitivity: float = 1.0

    norm: ClassVar[str | None] = "l1"

    def default_pair(self, dim: int = 2) -> Pair:
        """Return zeros and ``sensitivity / dim`` in every entry: the full L1 distance, never more.

        In many entries attacks see more of the same loss on a pair that differs in one of them:
        `dpcore.pairs.patterns(dim, "one")` at sensitivity 1.
        """
        dim = dimension(dim)
        level = _constant_entry("l1", self.sensitivity, dim, float(dim))
        return Pair(np.zeros(dim), np.full(dim, level))


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(System):
    """Systems that clip every input to a ball of radius `clip`, so that any two are neighbours."""

    clip: float = 1.0

    norm: ClassVar[str | None] = None
    ball: ClassVar[Literal["l1", "l2"]] = "l2"

    @property
    def sensitivity(self) -> float:
        """The diameter of the clip ball, 2 C, in the norm of the clip."""
        return 2.0 * self.clip

    def default_pair(self, dim: int = 2) -> Pair:
        """Return opposite corners of the ball: ``+c`` and ``-c`` in every entry, with norm C."""
        dim = dimension(dim)
        share = math.sqrt(dim) if self.ball == "l2" else float(dim)
        level = _constant_entry(self.ball, self.clip, dim, share)
        return Pair(np.full(dim, level), np.full(dim, -level))

    def steps(self, dim: int) -> Steps:
        """Return a clip and then Laplace noise of scale 2 C / epsilon in every entry."""
        scale = noise_scale("2 clip / epsilon", 2.0 * self.clip, self.epsilon)
        return Steps(Laplace(scale), clip=Clip(self.ball, self.clip))
