"""Adapter for scipy distributions as additive noise, and the base class of all adapters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import flat_list_to_floats, invalid, mistyped, numeric
from ..mechanisms.callables import check_catch
from ..packages import has_all
from ..report.shown import Shown
from ..streams import check_size


class Adapter(Shown):
    """Base class of mechanisms that wrap an object of another package.

    A mechanism is a function `(x, size, rng) -> outputs`. The function draws `size` outputs on the
    input x.

    The outputs are drawn by the code of the wrapped object. An adapter does not replace the
    samplers or the random generator of this object.

    Attributes:
        reproducible: True if `rng` determines all random numbers. Two audits with the same seed
            then have the same result. If False, the draws are still independent and the bound is
            valid, but two audits with the same seed may have different results.
        thread_safe: True if several threads may draw outputs at the same time.
        default_trials: number of outputs that the pytest fixture `dp_audit` draws on each of its
            two inputs if the user passes no `trials`. None means the default of `dp_audit`.
        wrapped: tuple of strings. The first string describes the wrapped object, for error
            messages. The other strings are names of methods. The object must have at least one of
            these methods.
    """

    __slots__ = ()

    takes_lists: ClassVar[bool] = True
    reproducible: ClassVar[bool] = True
    thread_safe: ClassVar[bool] = False
    default_trials: ClassVar[int | None] = None
    wrapped: ClassVar[tuple[str, ...]] = ("an object of another package",)

    def __post_init__(self) -> None:
        """Check that the object has one of the methods that the adapter needs."""
        name, (requirement, *methods) = self.__match_args__[0], self.wrapped  # type: ignore[attr-defined]
        value = getattr(self, name)
        if isinstance(value, type) or not any(has_all(value, method) for method in methods):
            raise mistyped(name, requirement, value)
        check_catch(getattr(self, "catch", ()))

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) that the wrapped object promises, or None if it has no epsilon."""
        return None

    @property
    def claim(self) -> float | None:
        """Default claim (the epsilon to test) for an audit of the wrapped object, or None.

        The property `stated` contains the epsilon and the delta that the object promises. If the
        delta is 0, `claim` is the epsilon. If the delta is above 0, `claim` is None, because an
        audit with delta 0 could refute the epsilon although the object is correct. In this case,
        pass the two numbers of `stated` to the audit as `claim` and `delta`. If the object promises
        no finite epsilon, `claim` is None too.
        """
        return pure_epsilon(self.stated)

    @property
    def claim_advice(self) -> str:
        """Advice on how to claim an epsilon for the wrapped object, or "" if dpcore has none.

        The error message of an audit that knows no epsilon to test contains this advice.
        """
        return ""

    @property
    def name(self) -> str:
        """The name of this mechanism in reports."""
        return repr(self)


def pure_epsilon(stated: tuple[float, float] | None) -> float | None:
    """Return the epsilon of a pair (epsilon, delta) if the pair states pure DP, otherwise None.

    The result is None if `stated` is None, if delta is not 0, or if epsilon is infinite.
    """
    if stated is None:
        return None
    epsilon, delta = stated
    return epsilon if delta == 0.0 and math.isfinite(epsilon) else None


def input_to_real_array(x: Any) -> npt.NDArray[Any]:
    """Convert the input of additive noise to an array of real numbers of any shape."""
    return numeric("x", "an array of real numbers", flat_list_to_floats(x))


def unwrap_single_number(x: Any) -> Any:
    """Convert an array, list or tuple of one number to this number; keep other inputs unchanged."""
    if type(x) in (list, tuple) and len(x) == 1 and isinstance(x[0], (int, float, np.generic)):
        return unwrap_single_number(x[0])
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim < 2 and x.size == 1):
        return x.item()
    return x


@dataclass(frozen=True, slots=True, repr=False)
class ScipyNoise(Adapter):
    """Mechanism that adds noise to the input x; the noise is drawn from a scipy distribution.

    If the distribution is univariate, each entry of x gets a separate draw. If the parameters of
    the distribution are arrays with the shape of x, each entry of x gets noise with its own
    parameters. If the distribution is multivariate, one draw is a vector, and this vector is added
    to x.

    Args:
        distribution: a frozen distribution such as `scipy.stats.laplace(scale=2.0)`, or a random
            variable of scipy's newer interface such as `scipy.stats.Normal()`. A frozen
            distribution may be multivariate.

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

    wrapped: ClassVar[tuple[str, ...]] = (
        "a distribution of scipy.stats with its parameters",
        "dist",
        "_dist",
        "sample",
    )

    def __repr__(self) -> str:
        frozen = self.distribution
        if has_all(frozen, "dist", "args", "kwds"):
            arguments = [repr(value) for value in frozen.args]
            arguments += [f"{key}={value!r}" for key, value in frozen.kwds.items()]
            return f"ScipyNoise({frozen.dist.name}({', '.join(arguments)}))"
        # Objects of the newer interface have a readable str; frozen multivariate objects do not.
        name = type(frozen).__name__.removesuffix("_frozen") if has_all(frozen, "_dist") else frozen
        return f"ScipyNoise({name})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw `size` outputs on `x`.

        Args:
            x: real numbers, any shape.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            Outputs of shape `(size, *x.shape)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if the noise and x have different shapes.
        """
        point = input_to_real_array(x)
        shape = (check_size(size, point.size), *point.shape)
        noise = np.asarray(self._noise(shape, rng))
        # scipy omits a size of 1 and a dimension of 1.
        if _drop_unit_lengths(noise.shape) != _drop_unit_lengths(shape):
            raise invalid(f"noise of {self.name}", f"of shape {shape} like x", noise.shape)
        return point + noise.reshape(shape)

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        frozen = self.distribution
        if has_all(frozen, "rvs"):
            size = shape if has_all(frozen, "dist") else shape[0]
            return frozen.rvs(size=size, random_state=rng)
        return frozen.sample(shape=shape, rng=rng)


def _drop_unit_lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)
