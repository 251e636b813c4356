"""The common part of adapters: statements beyond those of a mechanism."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import numeric
from ..records import Shown


class Adapter(Shown):
    """A mechanism `(x, size, rng) -> outputs` around an object of another package.

    The object's own code draws: an adapter never replaces its samplers or its generator.

    Attributes:
        reproducible: True if the outputs follow from `rng`, so that an audit's seed repeats it.
            Without, the draws are as independent and the bound as valid, but no seed gives the
            same counts twice.
        thread_safe: True if several threads may draw at once.
        default_trials: counted draws on each side of a `dp_audit` that nobody gave `trials`; None
            is its usual number. It never depends on a clock.
        claim_advice: how to give the claim that the object makes; empty where nothing is needed.
    """

    __slots__ = ()

    reproducible: ClassVar[bool] = True
    thread_safe: ClassVar[bool] = False
    default_trials: ClassVar[int | None] = None
    claim_advice: ClassVar[str] = ""

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) that the object states itself, or None."""
        return None

    @property
    def claim(self) -> float | None:
        """The epsilon that the object claims with delta 0, or None.

        A statement with delta above 0 is no such claim: tested with delta 0 it would be refuted
        although it is true. Pass `stated` as claim= and delta= then.
        """
        return pure_epsilon(self.stated)

    @property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        return repr(self)


def pure_epsilon(stated: tuple[float, float] | None) -> float | None:
    """Return the epsilon of a statement with delta 0 if it is finite; else None."""
    if stated is None:
        return None
    epsilon, delta = stated
    return epsilon if delta == 0.0 and math.isfinite(epsilon) else None


def read_numbers(x: Any) -> npt.NDArray[Any]:
    """Read the input of additive noise as an array of real numbers of any shape."""
    return numeric("x", "an array of real numbers", x)


def unwrap_scalar(x: Any) -> Any:
    """Return the Python value in an array of one entry; anything else is unchanged."""
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim < 2 and x.size == 1):
        return x.item()
    return x
