"""scipy's distributions as additive noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import invalid
from ._adapter import Adapter, read_numbers


@dataclass(frozen=True, slots=True, repr=False)
class ScipyNoise(Adapter):
    """Additive noise ``x + s`` with s from a distribution of scipy.

    Every entry of x gets a draw of its own; parameters that are arrays of the shape of x give
    every entry its own law. A multivariate distribution draws the whole vector at once.

    Args:
        distribution: a frozen distribution such as `scipy.stats.laplace(scale=2.0)`, univariate
            or multivariate, or an object of the newer kind such as `scipy.stats.Normal()`.

    Source:
        Dwork, McSherry, Nissim and Smith (2006) for additive noise.

    Example:
        >>> import numpy as np
        >>> from scipy import stats
        >>> noise = ScipyNoise(stats.laplace(scale=2.0))
        >>> noise
        ScipyNoise(laplace(scale=2.0))
        >>> noise([0.0, 5.0], 3, np.random.default_rng(1)).shape
        (3, 2)
    """

    distribution: Any

    def __repr__(self) -> str:
        frozen = self.distribution
        family = getattr(getattr(frozen, "dist", None), "name", None)
        if family is None:
            kind = getattr(frozen, "_dist", None)
            # The newer kind has a readable str, and numpy's scalars in its repr.
            return (
                f"ScipyNoise({frozen})" if kind is None else f"ScipyNoise({_family_name(frozen)})"
            )
        given = [repr(value) for value in frozen.args]
        given += [f"{key}={value!r}" for key, value in frozen.kwds.items()]
        return f"ScipyNoise({family}({', '.join(given)}))"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs on `x`.

        Args:
            x: real numbers, any shape.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            Outputs of shape `(size, *x.shape)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if the noise has another shape than x.
        """
        point = read_numbers(x)
        wanted = (size, *point.shape)
        noise = np.asarray(self._noise(wanted, rng))
        # scipy leaves out a size and a dimension of 1.
        if _drop_unit_lengths(noise.shape) != _drop_unit_lengths(wanted):
            raise invalid(f"noise of {self.name}", f"of shape {wanted} like x", noise.shape)
        return point + noise.reshape(wanted)

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        frozen = self.distribution
        if hasattr(frozen, "dist"):
            return frozen.rvs(size=shape, random_state=rng)
        if hasattr(frozen, "rvs"):
            return frozen.rvs(size=shape[0], random_state=rng)
        return frozen.sample(shape=shape, rng=rng)


def _drop_unit_lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


def _family_name(frozen: Any) -> str:
    """Return the name of a multivariate family, whose frozen objects have no readable repr."""
    return type(frozen).__name__.removesuffix("_frozen")
